"""Bills of random tariffs and loads of 2018 by NREL-PySAM (SSC's Utilityrate5), for tests to compare with.

Run by ``make oracles``: every bill is compared here, to the cent by month and component, and a sample of the
answers is written beside this file. Inputs of PySAM are made from the rates here, not by its reader of URDB.
Left out is what SSC counts otherwise: tiers of energy where periods share a month (it splits each tier
over the periods in proportion), months whose energy costs less than 0 (it carries the credit), and peaks
of the year before (it looks back one month further than asked).
"""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from service.formats.urdb import tariff_from_urdb
from service.planning.tariff.bill import MeteredLoad, PeriodBill
from service.planning.tariff.billing import compute_bill

HERE = Path(__file__).parent
SAMPLE = HERE / "electricity_bills.json"
RATES, LOADS, LOADS_OF_A_RATE, SAMPLED = 3000, 200, 2, 40
CENT = 0.01
HOURS, MONTHS = 8760, 12
NO_LIMIT = 1e38
UNITS = {"kWh": 0, "kWh/kW": 1}

Rate = dict[str, Any]


def random_rate(seed: int) -> Rate:
    """A rate of version 8 with some of the charges that SSC has too."""
    draw = Random(seed)  # noqa: S311 - a draw that can be repeated
    rate: Rate = {"name": f"rate {seed}"}
    if draw.random() < 0.8:
        rate |= {"fixedchargefirstmeter": round(draw.uniform(0, 5000), 2), "fixedchargeunits": "$/month"}
    rate |= draw.choice([_time_of_use, _seasonal_tiers, _hours_of_use])(draw)
    timed = draw.random() < 0.6
    if timed:
        periods, tops = draw.randint(1, 4), _tops(draw, 400)
        rate["demandratestructure"] = [_ladder(draw, 5, 25, tops, "kW") for _ in range(periods)]
        rate |= _schedules(draw, "demand", periods)
    if draw.random() < 0.7:
        entries = draw.randint(1, 4)
        rate["flatdemandstructure"] = [_ladder(draw, 1, 30, _tops(draw, 400), "kW") for _ in range(entries)]
        rate["flatdemandmonths"] = [draw.randrange(entries) for _ in range(MONTHS)]
        if not timed:
            rate["x_billing_demand"] = _billing_demand(draw)
    if draw.random() < 0.3:
        rate |= {"mincharge": round(draw.uniform(1000, 90_000), 2), "minchargeunits": "$/month"}
    return rate


def _billing_demand(draw: Random) -> Rate:
    return {
        "percent_by_month": [draw.randint(30, 100) for _ in range(MONTHS)],
        "include_actual_peak_by_month": [int(draw.random() < 0.8) for _ in range(MONTHS)],
        "lookback_months": draw.randint(1, 11),
        "minimum_kw": draw.choice([0, 0, draw.randint(100, 900)]),
    }


def _tops(draw: Random, step: float) -> list[float]:
    return sorted({round(draw.uniform(step / 10, step * 3), 1) for _ in range(draw.randint(0, 3))})


def _ladder(draw: Random, low: float, high: float, tops: Sequence[float], unit: str) -> list[Rate]:
    return [
        {"rate": round(draw.uniform(low, high), 5), "unit": unit, **({"max": top} if top else {})}
        for top in [*tops, None]
    ]


def _schedules(draw: Random, kind: str, periods: int) -> Rate:
    def schedule() -> list[list[int]]:
        rows = []
        for _ in range(draw.randint(1, 3)):
            row: list[int] = []
            while len(row) < 24:
                row += [draw.randrange(periods)] * draw.randint(1, 12)
            rows.append(row[:24])
        return [draw.choice(rows) for _ in range(MONTHS)]

    return {f"{kind}weekdayschedule": schedule(), f"{kind}weekendschedule": schedule()}


def _time_of_use(draw: Random) -> Rate:
    periods = draw.randint(1, 5)
    structure = [[{"rate": round(draw.uniform(0.0, 0.4), 5), "adj": 0.001}] for _ in range(periods)]
    return {"energyratestructure": structure, **_schedules(draw, "energy", periods)}


def _by_season(draw: Random, structure: Sequence[Any]) -> Rate:
    seasons = [draw.randrange(len(structure)) for _ in range(MONTHS)]
    schedule = [[season] * 24 for season in seasons]
    return {
        "energyratestructure": list(structure),
        "energyweekdayschedule": schedule,
        "energyweekendschedule": schedule,
    }


def _seasonal_tiers(draw: Random) -> Rate:
    return _by_season(
        draw, [_ladder(draw, 0.02, 0.4, _tops(draw, 200_000), "kWh") for _ in range(draw.randint(1, 3))]
    )


def _hours_of_use(draw: Random) -> Rate:
    """Ladders by hours of use, the first reach divided by kWh as in the Southern states."""
    structure = []
    for _ in range(draw.randint(1, 2)):
        reaches = sorted(draw.sample(range(50, 600), draw.randint(1, 3)))
        ladder: list[Rate] = []
        for top in [*reaches, None]:
            limit = {"max": top} if top else {}
            ladder.append({"rate": round(draw.uniform(0.005, 0.2), 5), "unit": "kWh/kW", **limit})
            if len(ladder) == 1 and draw.random() < 0.5:
                ladder += _ladder(draw, 0.02, 0.3, _tops(draw, 50_000), "kWh")
        structure.append(ladder)
    return _by_season(draw, structure)


def random_load(seed: int) -> list[float]:
    """Mean kW of the hours of 2018: a base, days and nights, weekends, seasons, and noise."""
    draw = Random(seed)  # noqa: S311 - a draw that can be repeated
    base, swing, noise = draw.uniform(50, 900), draw.uniform(0, 0.8), draw.uniform(0, 0.3)
    seasons = [draw.uniform(0.4, 1.3) for _ in range(MONTHS)]
    weekend = draw.uniform(0.3, 1.1)
    begins = datetime(2018, 1, 1, tzinfo=UTC)
    kw = []
    for hour in range(HOURS):
        now = begins + timedelta(hours=hour)
        day = 1.0 + swing * (8 <= now.hour < 18)
        level = base * seasons[now.month - 1] * day * (weekend if now.isoweekday() > 5 else 1.0)
        kw.append(round(level * (1.0 + noise * (draw.random() - 0.5)), 3))
    return kw


def billed(rate: Mapping[str, object], kw: Sequence[float]) -> list[dict[str, float]]:
    """What the engine charges, by month and component."""
    found = tariff_from_urdb(rate, time_zone="Etc/UTC", only_listed=True)
    assert not found.refused, found.refused
    load = MeteredLoad(datetime(2018, 1, 1, tzinfo=UTC), 60, np.asarray(kw, np.float64))
    return [_components(one) for one in compute_bill(found.tariff, load).periods]


def _components(one: PeriodBill) -> dict[str, float]:
    sums = dict.fromkeys(("energy", "fixed", "flat_demand", "time_of_use_demand", "minimum"), 0.0)
    for line in one.lines:
        sums[line.charge if line.kind == "demand" else line.kind] += float(line.amount)
    return {**sums, "total": float(one.total)}


def inputs(rate: Mapping[str, Any]) -> dict[str, Any]:
    """What PySAM must be told for the same rate."""
    rule = rate.get("x_billing_demand")
    structure = rate.get("demandratestructure", [[{"rate": 0.0}]])
    found = {
        "en_electricity_rates": 1,
        "rate_escalation": [0.0],
        "ur_metering_option": 0,
        "ur_monthly_fixed_charge": rate.get("fixedchargefirstmeter", 0.0),
        "ur_monthly_min_charge": rate.get("mincharge", 0.0),
        "ur_annual_min_charge": 0.0,
        **_ssc_schedules(rate, "energy", "ec"),
        **_ssc_schedules(rate, "demand", "dc"),
        "ur_ec_tou_mat": [
            [
                float(period + 1),
                float(place + 1),
                tier.get("max", NO_LIMIT),
                UNITS[tier.get("unit", "kWh")],
                _price(tier),
                0.0,
            ]
            for period, ladder in enumerate(rate["energyratestructure"])
            for place, tier in enumerate(ladder)
        ],
        "ur_dc_enable": 1,
        "ur_dc_tou_mat": _ssc_demand(enumerate(structure, start=1)),
        "ur_dc_flat_mat": _ssc_demand(_by_month(rate)),
        "ur_enable_billing_demand": int(rule is not None),
    }
    return found | (_ssc_billing_demand(rule, len(structure)) if rule else {})


def _price(tier: Mapping[str, float]) -> float:
    return tier["rate"] + tier.get("adj", 0.0)


def _by_month(rate: Mapping[str, Any]) -> list[tuple[int, Any]]:
    structure = rate.get("flatdemandstructure", [[{"rate": 0.0}]])
    months = rate.get("flatdemandmonths", [0] * MONTHS)
    return [(month, structure[entry]) for month, entry in enumerate(months)]


def _ssc_demand(ladders: Any) -> list[list[float]]:
    return [
        [float(number), float(place), tier.get("max", NO_LIMIT), _price(tier)]
        for number, ladder in ladders
        for place, tier in enumerate(ladder, start=1)
    ]


def _ssc_schedules(rate: Mapping[str, Any], kind: str, short: str) -> dict[str, Any]:
    nothing = [[0] * 24 for _ in range(MONTHS)]
    return {
        f"ur_{short}_sched_{days}": [
            [place + 1 for place in row] for row in rate.get(f"{kind}{days}schedule", nothing)
        ]
        for days in ("weekday", "weekend")
    }


def _ssc_billing_demand(rule: Mapping[str, Any], periods: int) -> dict[str, Any]:
    pairs = zip(rule["percent_by_month"], rule["include_actual_peak_by_month"], strict=True)
    return {
        "ur_billing_demand_minimum": rule["minimum_kw"],
        "ur_billing_demand_lookback_period": rule["lookback_months"],
        "ur_billing_demand_lookback_percentages": [[float(percent), float(flag)] for percent, flag in pairs],
        "ur_dc_billing_demand_periods": [[float(period + 1), 1.0] for period in range(periods)],
        "ur_yearzero_usage_peaks": [0.0] * MONTHS,
    }


def answered(rate: Mapping[str, Any], kw: Sequence[float]) -> list[dict[str, float]]:
    """What PySAM charges, by month and component."""
    from PySAM import Utilityrate5  # noqa: PLC0415 - only the oracle's environment has it

    model = Utilityrate5.new()
    model.Lifetime.assign({"analysis_period": 1, "system_use_lifetime_output": 0, "inflation_rate": 0.0})
    model.SystemOutput.assign({"degradation": [0.0], "gen": [0.0] * HOURS})
    model.Load.assign({"load": list(kw)})
    model.ElectricityRates.assign(inputs(rate))
    model.execute(0)
    names = {
        "energy": "charge_wo_sys_ec_ym",
        "fixed": "charge_wo_sys_fixed_ym",
        "flat_demand": "charge_wo_sys_dc_fixed_ym",
        "time_of_use_demand": "charge_wo_sys_dc_tou_ym",
        "minimum": "charge_wo_sys_minimum_ym",
        "total": "utility_bill_wo_sys_ym",
    }
    tables = {name: getattr(model.Outputs, output)[1] for name, output in names.items()}
    return [{name: table[month] for name, table in tables.items()} for month in range(MONTHS)]


def furthest(ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]]) -> float:
    """The largest difference of a month's component."""
    return max(abs(mine[name] - its[name]) for mine, its in zip(ours, theirs, strict=True) for name in its)


def main() -> int:
    """Compare every bill, and write the sample."""
    loads = [random_load(seed) for seed in range(LOADS)]
    worst, apart, sample = 0.0, [], []
    for seed in range(RATES):
        rate = random_rate(seed)
        for each in range(LOADS_OF_A_RATE):
            number = (seed + each * LOADS // LOADS_OF_A_RATE) % LOADS
            theirs = answered(rate, loads[number])
            difference = furthest(billed(rate, loads[number]), theirs)
            worst = max(worst, difference)
            if difference >= CENT:
                apart.append(f"rate {seed}, load {number}: {difference:.4f} apart")
            if seed < SAMPLED and not each:
                months = [{name: round(value, 6) for name, value in one.items()} for one in theirs]
                sample.append({"rate": rate, "load": number, "months": months})
    document = {"source": "NREL-PySAM 7.1.1.post1, Utilityrate5", "bills": sample}
    SAMPLE.write_text(json.dumps(document, separators=(",", ":")) + "\n")
    number = RATES * LOADS_OF_A_RATE
    print(
        f"{number} bills of {RATES} rates: at most {worst:.6f} apart in a month, {len(apart)} a cent or more"
    )
    print("\n".join(apart[:20]))
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())

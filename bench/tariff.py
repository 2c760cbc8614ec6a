"""Measures the time of a bill, and that of PySAM's Utilityrate5 for the same bill in the same run.

``python -m bench.tariff``; with NREL-PySAM on the path the hourly bill is also computed by it, timed with its
inputs, and compared. A bill is timed with the calendar of the tariff compiled (a load under a tariff that has
billed one before) and with nothing kept.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from importlib.util import find_spec

import numpy as np

from service.planning.tariff.bill import MeteredLoad
from service.planning.tariff.billing import compute_bill
from service.planning.tariff.calendar import build_clock
from service.planning.tariff.charges import (
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    LocalTimeWindow,
    PricePeriod,
    PriceTier,
    Tariff,
    TariffRevision,
)

SUMMER, WINTER = frozenset(range(5, 11)), frozenset({1, 2, 3, 4, 11, 12})
WORKDAYS, WEEKEND = frozenset(range(1, 6)), frozenset({6, 7})
HOURS = {  # season, workday or weekend, from, to, period
    ("on", SUMMER, WORKDAYS): ((12, 18),),
    ("part", SUMMER, WORKDAYS): ((8, 12), (18, 21)),
    ("off", SUMMER, WORKDAYS): ((21, 8),),
    ("off", SUMMER, WEEKEND): ((0, 24),),
    ("part winter", WINTER, WORKDAYS): ((8, 21),),
    ("off winter", WINTER, WORKDAYS): ((21, 8),),
    ("off winter", WINTER, WEEKEND): ((0, 24),),
}
ENERGY = {
    "on": "0.14244",
    "part": "0.10559",
    "off": "0.08029",
    "part winter": "0.10024",
    "off winter": "0.08653",
}
DEMAND = {"on": "18.05", "part": "5.01", "part winter": "0.05"}
FLAT_DEMAND, FIXED = "17.44", "1199.18"
LIMIT_MS, REPEATS = 10.0, 200


def _periods(prices: dict[str, str]) -> tuple[PricePeriod, ...]:
    """Returns price periods whose nights are split at midnight, as in a grid of hours."""
    return tuple(
        PricePeriod(
            name=name,
            tiers=(PriceTier(price=Decimal(price)),),
            windows=tuple(
                LocalTimeWindow(months=months, weekdays=days, from_minute=start * 60, to_minute=end * 60)
                for (of, months, days), hours in HOURS.items()
                for begin, until in hours
                for start, end in (((begin, 24), (0, until)) if until < begin else ((begin, until),))
                if of == name
            ),
        )
        for name, price in prices.items()
    )


def tariff() -> Tariff:
    """Time-of-use energy and demand as in PG&E's E-20 of 2017, with a demand charge of all hours."""
    everything = (PricePeriod(name="all", tiers=(PriceTier(price=Decimal(FLAT_DEMAND)),)),)
    charges = (
        FixedCharge(name="customer", price=Decimal(FIXED)),
        EnergyCharge(name="energy", periods=_periods(ENERGY)),
        DemandCharge(name="peaks", periods=_periods(DEMAND)),
        DemandCharge(name="demand", periods=everything),
    )
    revision = TariffRevision(effective_from=date(1, 1, 1), charges=charges)
    return Tariff(currency_code="USD", time_zone="Etc/GMT+8", revisions=(revision,))


def _milliseconds(run: Callable[[], object], repeats: int = REPEATS) -> tuple[float, float]:
    """The least and the median of single runs."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        taken.append(1e3 * (time.perf_counter() - start))
    return min(taken), statistics.median(taken)


def _load(minutes: int) -> MeteredLoad:
    kw = np.random.default_rng(8).uniform(200.0, 1000.0, 365 * 24 * 60 // minutes)
    return MeteredLoad(datetime(2018, 1, 1, 8, tzinfo=UTC), minutes, kw)


def _cold(terms: Tariff, load: MeteredLoad) -> None:
    build_clock.cache_clear()
    compute_bill(replace(terms), load)  # calendars are kept by the tariff itself: an equal one is another


def _schedule(days: frozenset[int], names: Sequence[str]) -> list[list[int]]:
    """PySAM's months x hours of period numbers, from 1; hours outside every period get the next number."""
    grid = [[len(names) + 1] * 24 for _ in range(12)]
    for (name, months, of), hours in HOURS.items():
        if of & days and name in names:
            for begin, end in hours:
                for hour in range(begin, end if end > begin else end + 24):
                    for month in months:
                        grid[month - 1][hour % 24] = names.index(name) + 1
    return grid


def _pysam(kw: Sequence[float]) -> float:
    """The year's bill by Utilityrate5, its inputs made anew."""
    from PySAM import Utilityrate5  # type: ignore[import-not-found]  # noqa: PLC0415 - an oracle that need not be there

    model, energy, demand = Utilityrate5.new(), list(ENERGY), list(DEMAND)
    peaks = [[place, 1, 1e38, float(DEMAND[name])] for place, name in enumerate(demand, 1)]
    given = {
        "ElectricityRates": {
            "en_electricity_rates": 1,
            "rate_escalation": [0.0],
            "ur_annual_min_charge": 0.0,
            "ur_dc_enable": 1,
            "ur_dc_flat_mat": [[month, 1, 1e38, float(FLAT_DEMAND)] for month in range(12)],
            "ur_dc_sched_weekday": _schedule(WORKDAYS, demand),
            "ur_dc_sched_weekend": _schedule(WEEKEND, demand),
            "ur_dc_tou_mat": [*peaks, [len(demand) + 1, 1, 1e38, 0.0]],
            "ur_ec_sched_weekday": _schedule(WORKDAYS, energy),
            "ur_ec_sched_weekend": _schedule(WEEKEND, energy),
            "ur_ec_tou_mat": [[n, 1, 1e38, 0, float(ENERGY[name]), 0.0] for n, name in enumerate(energy, 1)],
            "ur_en_ts_buy_rate": 0,
            "ur_en_ts_sell_rate": 0,
            "ur_enable_billing_demand": 0,
            "ur_metering_option": 4,
            "ur_monthly_fixed_charge": float(FIXED),
            "ur_monthly_min_charge": 0.0,
            "ur_nm_yearend_sell_rate": 0.0,
            "ur_sell_eq_buy": 0,
            "TOU_demand_single_peak": 0,
        },
        "Lifetime": {"analysis_period": 1, "inflation_rate": 0.0, "system_use_lifetime_output": 0},
        "SystemOutput": {"degradation": [0.0], "gen": [0.0] * len(kw)},
        "Load": {"load": list(kw)},
    }
    model.assign(given)
    model.execute()
    return float(model.Outputs.utility_bill_wo_sys_year1)


def _row(name: str, target: float | None, times: tuple[float, float]) -> str:
    cells = ("", "") if target is None else (f"{target:.1f} ms", f"{times[0] / target:.2f}")
    return f"| {name} | {cells[0]} | {times[0]:.2f} ms | {times[1]:.2f} ms | {cells[1]} |"


def report() -> Iterator[str]:
    """The section of the page, line by line."""
    terms, loads = tariff(), {minutes: _load(minutes) for minutes in (15, 60)}
    yield "## Bills of a year\n"
    yield (
        "`python -m bench.tariff`: time-of-use energy and demand, in one process on one core, by the\n"
        "clock. A calendar is kept for the next load of the same intervals; cold, nothing is. PySAM's\n"
        "hourly bill is timed in the same run, with its inputs, where it is installed: the target is\n"
        "twice its least time.\n"
    )
    kw = loads[60].kw.tolist()
    theirs = _milliseconds(lambda: _pysam(kw)) if find_spec("PySAM") else None
    limits = {15: LIMIT_MS, 60: None if theirs is None else 2.0 * theirs[0]}
    yield "| | target | least | median | of its target |\n|---|---:|---:|---:|---:|"
    for minutes, load in loads.items():
        compute_bill(terms, load)
        yield _row(f"{minutes} min", limits[minutes], _milliseconds(partial(compute_bill, terms, load)))
        yield _row(f"{minutes} min, cold", limits[minutes], _milliseconds(partial(_cold, terms, load)))
    if theirs is not None:
        yield _row("60 min, PySAM", None, theirs)
        yield f"\nPySAM says {_pysam(kw):.4f} USD, the engine {compute_bill(terms, loads[60]).total:.4f} USD."
    yield ""


def main() -> None:
    """Print the section."""
    print("\n".join(report()))


if __name__ == "__main__":
    main()

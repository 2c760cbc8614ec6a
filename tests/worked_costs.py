"""Worked examples of costs, computed by planning."""

from decimal import Decimal

from service.planning.cost import YEAR_HOURS, compare_equal_work, compute_charge
from service.planning.energy.power import energy_kwh
from service.planning.training import iron_law_seconds
from service.planning.units import GIGABYTE_BYTES
from tests.worked import example

DAY, HOUR = 86_400, 3_600


def usd(quantity, price):
    """An amount of USD as a number."""
    return float(compute_charge(quantity, Decimal(str(price)), "USD"))


@example("scn-3am-loss")
def lost_night(i):
    """With hourly checkpoints at most an hour of work is lost."""
    price = Decimal(i["lost_cost"]) / (i["lost_days"] * 24)
    return {"cost_per_hour": float(price), "max_loss_with_hourly_ckpt": usd(1.0, price)}


@example("mp-cost-fp32", "mp-cost-fp16")
def implied_price(i):
    """What a GPU-hour must have cost; at one price both runs compare."""
    days = i.get("days") or i["weeks"] * 7
    hours = days * 24 * i["gpus"]
    price = Decimal(i["cost"]) / Decimal(hours)
    return {
        "days": days,
        "gpu_hours": hours,
        "usd_per_gpu_hour": float(price),
        "cost_at_fp32_price": usd(hours, Decimal(50_000) / 10_752),
    }


@example("mp-cost-saving")
def saved_by_a_format(i):
    found = compare_equal_work(
        i["fp16"], 32 * i["d16"] * 24, i["d16"] * DAY, against=(i["fp32"], 32 * i["d32"] * 24, i["d32"] * DAY)
    )
    return {
        "saving": i["fp32"] - i["fp16"],
        "days_saved": i["d32"] * (1.0 - found.time),
        "saving_pct": 100.0 * (1.0 - found.cost),
    }


@example("ga-gpt2-hourly")
def hourly(i):
    """An hour of fewer devices is cheaper; of the same work see ga-gpt2-equal-work."""
    naive, accumulated = (usd(i[name], i["gpu_hourly_rate"]) for name in ("gpus_naive", "gpus_accum"))
    return {
        "naive_hourly": naive,
        "accum_hourly": accumulated,
        "savings_hourly": naive - accumulated,
        "savings_pct": 100.0 * (1.0 - accumulated / naive),
    }


@example("ga-gpt2-2wk")
def two_weeks(i):
    return {
        f"{name}_2wk": usd(devices * i["training_hours"], i["rate"]) / 1000
        for name, devices in (("accum", 8), ("naive", 32))
    }


@example("ga-gpt2-equal-work")
def same_work(i):
    hours = i["hours32"] * 4 * (1 + i["overhead"])
    costs = usd(32 * i["hours32"], i["rate"]), usd(8 * hours, i["rate"])
    against = (costs[0], 32 * i["hours32"], i["hours32"] * HOUR)
    found = compare_equal_work(costs[1], 8 * hours, hours * HOUR, against=against)
    return {"cost32": costs[0], "hours8": hours, "cost8": costs[1], "ratio": found.cost}


@example("fp-dist-hours")
def distributed(i):
    """Faster by the clock, twice as dear: the claim holds for device-hours alone."""
    single, cluster = i["single_h"], i["cluster_h"]
    found = compare_equal_work(
        cluster * i["gpus"], cluster * i["gpus"], cluster * HOUR, against=(single, single, single * HOUR)
    )
    return {
        "cluster_gpu_h": cluster * i["gpus"],
        "speedup": 1.0 / found.time,
        "efficiency": 1.0 / found.device_hours,
        "cost_ratio": found.cost,
    }


@example("sum-cost")
def electricity(i):
    return {
        name: usd(i[energy], i["price"]) for name, energy in (("b_cost", "b_energy"), ("o_cost", "o_energy"))
    }


@example("mlsys-fleet-tco")
def fleet(i):
    kwh = energy_kwh(i["w"] * i["q"], i["y"] * YEAR_HOURS * HOUR)
    capital, running = usd(i["q"], i["unit"]), usd(kwh, i["price"])
    return {"capex": capital, "kwh": kwh, "opex": running, "tco": capital + running}


@example("mlsys-egress")
def egress(i):
    gigabytes = i["Bps"] * 30 * DAY / GIGABYTE_BYTES
    return {"gb": gigabytes, "usd": usd(gigabytes, i["price"])}


@example("gpt3-run-footnote")
def gpt3_days(i):
    def days(devices):
        seconds = iron_law_seconds(
            i["ops"], peak_flops_per_second=i["peak"], utilization=i["eta"], devices=devices
        )
        return seconds / DAY

    return {"days": days(i["n"]), "days_10000": days(10_000)}

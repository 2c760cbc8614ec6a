"""Up to how many workloads a fleet's best schedule is found: random fleets, by size.

python -m bench.schedules [fleets]
"""

import random
import sys
import time
from decimal import Decimal

from service.planning.scheduling.schedule import (
    FleetDevices,
    FleetSchedule,
    FleetTask,
    TaskMode,
    find_schedule,
)

DAY = 86_400
SIZES = (4, 6, 8, 10, 12, 20, 40)
CAPACITIES = (16, 32, 64, 128)


def _task(chance: random.Random, capacities: tuple[int, ...], slack: float) -> FleetTask:
    """Returns work on 8 devices or doublings of them on every pool, with a window of some of its time."""
    work, earliest = chance.randint(1, 40) * DAY * 16, chance.randint(0, 20) * DAY
    modes = []
    for pool, capacity in enumerate(capacities):
        for doubling in range(4):
            devices = 8 * 2**doubling
            if devices <= capacity:
                seconds = int(work / devices * (1 + 0.05 * doubling) * chance.uniform(0.8, 1.3))
                cost = Decimal(int(seconds * devices * chance.uniform(1, 3) / 3600))
                modes.append(TaskMode(pool, devices, seconds, cost))
    window = int(chance.uniform(1.2, 4) * slack * min(mode.seconds for mode in modes))
    return FleetTask(chance.randint(1, 3), earliest, earliest + window, tuple(modes))


def _fleet(
    chance: random.Random, size: int, pools: int, slack: float
) -> tuple[list[FleetTask], FleetDevices]:
    capacities = tuple(chance.choice(CAPACITIES) for _ in range(pools))
    tasks = [_task(chance, capacities, slack) for _ in range(size)]
    least = sum((min(mode.cost for mode in task.modes) for task in tasks), Decimal(0))
    budget = chance.choice((None, least * Decimal("0.7"), least))
    return tasks, FleetDevices(capacities, budget, chance.choice(("cheapest", "earliest")))


def _gap(found: FleetSchedule) -> int:
    return found.bound.most_in_all - len(found.placed)


def main() -> None:
    """One line for each size and number of pools."""
    fleets = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print("pools  workloads  optimal  slowest s  left out / more than the bound says can be placed")
    for pools, slack in ((3, 3.0), (1, 8.0)):
        for size in SIZES:
            chance, found, slowest = random.Random(size), list[FleetSchedule](), 0.0  # noqa: S311
            for _ in range(fleets):
                asked = _fleet(chance, size, pools, slack)
                begun = time.process_time()
                found.append(find_schedule(*asked))
                slowest = max(slowest, time.process_time() - begun)
            optimal = sum(one.is_optimal for one in found)
            out = sum(size - len(one.placed) for one in found)
            gaps = sum(_gap(one) for one in found if not one.is_optimal)
            print(f"{pools:5}  {size:9}  {optimal:3}/{fleets:<3}  {slowest:9.2f}  {out}, {gaps}", flush=True)


if __name__ == "__main__":
    main()

"""Power of a device from what it does: the parts one by one, the limit, and what a step is made of."""

import numpy as np
import pytest

from service.evidence.service import load_reference_curves
from service.planning.energy.power import (
    DeviceWork,
    build_iteration_work,
    build_step_works,
    device_watts,
    energy_per_token_joules,
    idle_watts,
    is_limited,
    mean_device_watts,
    mean_watts,
)
from service.planning.errors import PlanningError
from service.planning.hardware.calibration import AchievedShare, PowerCalibration, PowerQuantity, PowerRates
from service.planning.inference import IterationTime
from service.planning.operators import TimeBound
from service.planning.training.step import FurtherPhase, MicroBatch, StepSeconds

RATES = PowerRates(
    idle_share=0.1,
    active_share=0.1,
    unpacking_share=0.2,
    matrix_share=1.2,
    matrix_exponent=0.5,
    communication_share=0.05,
    byte_joules=1e-10,
)
LIMIT = 700.0


def watts(**work):
    return device_watts(DeviceWork(**work), LIMIT, RATES)


def test_a_device_without_kernels_draws_its_idle_power():
    assert watts(seconds=5.0, busy_seconds=0.0) == pytest.approx(70.0)
    assert idle_watts(LIMIT, RATES) == pytest.approx(70.0)


def test_a_kernel_that_waits_draws_more_than_none_and_less_than_one_that_works():
    waiting = watts(seconds=1.0, busy_seconds=1.0)
    assert waiting == pytest.approx(140.0)
    assert watts(seconds=1.0, busy_seconds=1.0, communication_seconds=1.0) == pytest.approx(175.0)
    assert watts(seconds=1.0, busy_seconds=1.0, unpacking_seconds=1.0) == pytest.approx(280.0)


def test_bytes_cost_their_energy_whatever_the_limit():
    """2e12 bytes a second at 1e-10 J each are 200 W on any device."""
    work = DeviceWork(1.0, 1.0, moved_bytes=2e12)
    for limit in (400.0, 700.0, 1000.0):
        still = device_watts(work._replace(moved_bytes=0.0), limit, RATES)
        assert device_watts(work, limit, RATES) - still == pytest.approx(200.0)


def test_multiplying_grows_with_the_root_of_its_rate():
    """A quarter of the sustained rate draws half of what all of it would: 0.5 x 1.2 x 700 W."""
    assert watts(seconds=1.0, busy_seconds=1.0, matrix_seconds=0.25) == pytest.approx(140.0 + 420.0)


def test_the_limit_caps_the_time_in_which_kernels_run():
    """At its sustained rate a device would draw 1.4 times its limit: its clock falls until it does not."""
    work = DeviceWork(1.0, 1.0, matrix_seconds=1.0)
    assert is_limited(work, LIMIT, RATES)
    assert device_watts(work, LIMIT, RATES) == LIMIT
    half = work._replace(seconds=2.0)
    assert device_watts(half, LIMIT, RATES) == pytest.approx((LIMIT + 70.0) / 2.0)
    assert not is_limited(work._replace(matrix_seconds=0.1), LIMIT, RATES)


@pytest.mark.parametrize("seed", range(5))
def test_power_lies_between_idle_and_limit_and_grows_with_every_part_of_the_work(seed):
    random = np.random.default_rng(seed)
    busy = random.uniform(0.01, 1.0, 200)
    work = DeviceWork(
        np.ones(200),
        busy,
        matrix_seconds=busy * random.uniform(0.0, 1.0, 200),
        moved_bytes=busy * random.uniform(0.0, 4e12, 200),
        communication_seconds=busy * random.uniform(0.0, 1.0, 200),
        unpacking_seconds=busy * random.uniform(0.0, 1.0, 200),
    )
    drawn = device_watts(work, LIMIT, RATES)
    assert (drawn >= 70.0).all()
    assert (drawn <= LIMIT).all()
    for name in ("matrix_seconds", "moved_bytes", "communication_seconds", "unpacking_seconds"):
        more = work._replace(**{name: getattr(work, name) * 1.1})
        assert (device_watts(more, LIMIT, RATES) >= drawn).all()


def test_one_number_and_an_array_of_them_are_the_same_formula():
    each = [DeviceWork(1.0, b, 0.3 * b, 1e12 * b) for b in (0.1, 0.5, 1.0)]
    together = DeviceWork(*[np.array(column) for column in zip(*each, strict=True)])
    alone = [device_watts(work, LIMIT, RATES) for work in each]
    assert device_watts(together, LIMIT, RATES) == pytest.approx(alone)


def test_a_mean_is_energy_over_time():
    assert mean_watts([(1.0, 100.0), (3.0, 500.0)]) == pytest.approx(400.0)
    works = (DeviceWork(1.0, 1.0, matrix_seconds=1.0), DeviceWork(1.0, 0.0), DeviceWork(0.0, 0.0))
    assert mean_device_watts(works, LIMIT, RATES) == pytest.approx((LIMIT + 70.0) / 2.0)


def test_a_step_is_passes_optimizer_communication_waits_and_host():
    slowest = MicroBatch(forward=1.0, backward=2.0, tensor=0.5, launch=0.25, moved_bytes=1e12)
    step = StepSeconds(slowest, 4.0, bubble=3.0, gradients=1.0, optimizer=0.5, host=0.1, stragglers=0.2)
    works = build_step_works(step, matrix_seconds=6.0, bandwidth_bytes_per_second=3e12)
    passes, optimizer, sending, waiting, host = works
    assert sum(work.seconds for work in works) == pytest.approx(step.total)
    assert passes == DeviceWork(12.0, 12.0, 6.0, 4e12)
    assert optimizer == DeviceWork(0.5, 0.5, 0.0, 1.5e12)
    assert sending.communication_seconds == sending.seconds == pytest.approx(3.0)
    assert waiting == DeviceWork(pytest.approx(3.2), pytest.approx(3.2))
    assert (host.seconds, host.busy_seconds) == (pytest.approx(1.1), 0.0)


def test_further_models_work_as_the_own_passes_do_and_generation_streams():
    slowest = MicroBatch(forward=1.0, backward=2.0, moved_bytes=1e12)
    step = StepSeconds(slowest, 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, transfers=0.25, host_update=0.5)
    further = [
        FurtherPhase("teacher_forward", 1.5, TimeBound.COMPUTE),
        FurtherPhase("generation", 4.0, TimeBound.MEMORY),
        FurtherPhase("weights", 0.1, TimeBound.COMMUNICATION),
    ]
    step = step.prepend_phases(*further)
    works = build_step_works(step, matrix_seconds=3.0, bandwidth_bytes_per_second=3e12)
    passes, streams, *_, idle = works
    assert sum(work.seconds for work in works) == pytest.approx(step.total)
    assert passes == DeviceWork(4.5, 4.5, 3.0, pytest.approx(1.5e12))
    assert streams == DeviceWork(4.5, 4.5, 0.0, pytest.approx(13.5e12))
    assert (idle.seconds, idle.busy_seconds) == (pytest.approx(0.85), 0.0)


def test_an_iteration_is_busy_all_of_its_time():
    time = IterationTime(4e-3, 2e-3, 1e-3, 1e-3, 1e-3, 0.5e-3, 0.5e-3, 1e12, 2e10, 0.0)
    work = build_iteration_work(time, sustained_flops_per_second=8e14, is_narrow=True)
    assert work.seconds == work.busy_seconds == work.unpacking_seconds == pytest.approx(10e-3)
    assert work.matrix_seconds == pytest.approx(1.25e-3)
    assert (work.moved_bytes, work.communication_seconds) == (2e10, 1e-3)
    assert not build_iteration_work(time, sustained_flops_per_second=8e14, is_narrow=False).unpacking_seconds
    assert sum(
        part.seconds for part in (work.scale_to_seconds(0.3), work.scale_to_seconds(0.7))
    ) == pytest.approx(1.0)
    assert device_watts(work.scale_to_seconds(0.3), LIMIT, RATES) == pytest.approx(
        device_watts(work, LIMIT, RATES)
    )


def test_constants_of_a_generation_go_before_those_of_any():
    def share(value):
        return AchievedShare(value, value, value, 1, "a test")

    constants = {(quantity, None): share(0.5) for quantity in PowerQuantity}
    constants[PowerQuantity.BYTE_JOULES, "hopper"] = share(7e-11)
    power = PowerCalibration(constants=constants)
    assert power.get_rates("hopper").byte_joules == 7e-11
    assert power.get_rates("ampere").byte_joules == 0.5
    with pytest.raises(PlanningError, match="is not known"):
        PowerCalibration(constants={}).get_rates("hopper")


def test_shipped_constants_are_within_their_range_and_say_where_they_come_from():
    power = load_reference_curves().calibration.power
    assert power.measured == {"hopper", "blackwell"}
    for share in power.constants.values():
        assert share.low <= share.value <= share.high
        assert len(share.source) > 40
    rates = power.get_rates("hopper")
    # Streaming at the whole bandwidth of an H100 draws less than its limit, and more than half of it.
    streaming = DeviceWork(1.0, 1.0, matrix_seconds=0.01, moved_bytes=0.92 * 3.35e12)
    assert 350.0 < device_watts(streaming, LIMIT, rates) < LIMIT
    # A large multiplication runs at the limit: that is why it does not reach the rate of the data sheet.
    assert is_limited(DeviceWork(1.0, 1.0, matrix_seconds=1.0), LIMIT, rates)


def test_the_worked_number_of_the_page():
    """docs/methods/power.md: 10 ms of an H100 that serves."""
    rates = load_reference_curves().calibration.power.get_rates("hopper")
    work = DeviceWork(10e-3, 10e-3, 0.5e12 / (0.83 * 989e12), 17.5e9)
    assert device_watts(work, LIMIT, rates) == pytest.approx(487.7, abs=0.05)
    assert energy_per_token_joules(487.7, 1.0, 1600.0) == pytest.approx(0.305, abs=5e-4)

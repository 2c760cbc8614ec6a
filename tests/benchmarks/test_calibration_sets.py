"""What is kept of a calibration is what planning reads of it, and only its own tenant's snapshot has it."""

import pytest

from service.calibrations import service as calibrations
from service.calibrations.sets import FigureSources, MeasuredSet, list_figures, parse_calibration, to_document
from service.catalog import service as catalog
from service.evidence.snapshot import SnapshotStore
from service.planning.hardware.calibration import OperatorQuantity, PowerQuantity, ServingQuantity
from service.planning.hardware.calibration.measured import (
    DeviceCalibration,
    MeasuredAnswer,
    MeasuredFigure,
    MeasuredLink,
    MeasuredScope,
)
from service.planning.hardware.links import LinkKind
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis, Quantity

SCOPE = MeasuredScope("cuda", "node-1", "h100-sxm", "hopper", 700.0, 575)


def figure(value, limit=None):
    return MeasuredFigure(value * 0.99, value, value * 1.01, 3, limit, "3 runs")


def whole():
    """A set that has every kind of figure."""
    return DeviceCalibration(
        id="set",
        scope=SCOPE,
        operators={
            (OperatorQuantity.MATRIX_PEAK, NumberFormat.BF16): figure(7e14, 989e12),
            (OperatorQuantity.KERNEL_SECONDS, None): figure(4e-6),
        },
        serving={ServingQuantity.WEIGHT_BANDWIDTH: figure(2.8e12, 2.9e12)},
        power={PowerQuantity.IDLE_SHARE: figure(100.0, 700.0)},
        links={LinkKind.NVLINK: MeasuredLink(figure(3.6e11, 4.5e11), None, figure(2e-5))},
        memory_bytes=Quantity(8.4e10, 8.3e10, 8.5e10, EvidenceBasis.CALIBRATED_NODE),
        host_link_bytes_per_second=figure(5.5e10, 6.4e10),
    )


def test_a_set_comes_back_as_it_was_kept():
    kept = [to_document(name, figure) for name, figure in list_figures(whole())]
    assert parse_calibration("set", SCOPE, kept) == whole()


def test_a_figure_is_kept_with_what_it_rests_on():
    rest = FigureSources(result_ids=("r1", "r2"), run_ids=("run",), method="median")
    kept = to_document("operators.kernel_seconds", figure(4e-6), rest)
    assert (kept["result_ids"], kept["run_ids"], kept["method"]) == (["r1", "r2"], ["run"], "median")
    assert "limit" not in kept


@pytest.fixture
def store(database):
    store = SnapshotStore(database)
    store.refresh()
    return store


def test_the_snapshot_of_the_tenant_follows_and_no_other(store, database):
    answer = MeasuredAnswer("", "", "throughput", "serving_tpot", 0.02, {"model": {"source": "catalog"}})
    before = store.get_current("own")
    with database.open_writer() as session:
        kept = calibrations.store_imported(
            session, "own", MeasuredSet(whole(), (answer,)), {"import_id": "import"}
        )
    store.refresh()
    (held,) = store.get_current("own").calibrations
    assert (held.id, held.operators, held.links) == (kept, whole().operators, whole().links)
    (measured,) = store.get_current("own").measured_answers
    assert measured == answer._replace(id=f"{kept}-1", calibration_id=kept)
    assert store.get_current("own").revision > before.revision
    assert store.get_current("another").calibrations == ()


def test_a_write_that_leaves_the_calibrations_does_not_read_them_again(store, database):
    with database.open_writer() as session:
        calibrations.store_imported(session, "own", MeasuredSet(whole(), ()), {"import_id": "import"})
    store.refresh()
    before = store.get_current("own")
    with database.open_writer() as session:
        catalog.take_next_revision(session, "own")
    store.refresh()
    after = store.get_current("own")
    assert after.revision > before.revision
    assert after.calibrations is before.calibrations

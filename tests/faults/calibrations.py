"""What must hold of calibrations and imports once everything has ended, whatever was killed meanwhile."""

from collections import Counter, defaultdict
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import undefer, undefer_group

from service.benchmarks.calibration_jobs import DRAW
from service.benchmarks.validation.repository import get_validations, list_accepted_results
from service.calibrations import service
from service.calibrations.readings import RUNS_READ
from service.calibrations.tables import ACTIVE, WITHDRAWN, CalibrationRow
from service.catalog.tables import CatalogState
from service.evidence.imports.tables import EvidenceImportRow
from service.evidence.service import load_reference_curves
from service.kit.jobs.tables import DONE, JobRow
from tests.faults.harness import rows
from tests.faults.node_service import DRAWN

TENANT = "default"
DATA = Path(__file__).parents[1] / "data" / "measurements"
EVIDENCE = {
    "format": "nvbandwidth",
    "content": (DATA / "nvbandwidth-h100-8gpu-memcpy-sm.txt").read_text(),
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 8},
}


def revision(database):
    """How often the catalog of the tenant has moved."""
    found = rows(database, select(CatalogState.revision).where(CatalogState.tenant_id == TENANT))
    return found[0].revision if found else 0


def undrawn(database):
    """How many drawings have been asked for and are not done."""
    count = select(func.count()).select_from(JobRow).where(JobRow.kind == DRAW.name, JobRow.state != DONE)
    return rows(database, count)[0][0]


def withdrawable(database):
    """The id of the newest set of a node that counts; none while another may be drawn in its place."""
    if undrawn(database):
        return None
    active = select(CalibrationRow).where(CalibrationRow.state == ACTIVE, CalibrationRow.node_id.is_not(None))
    newest = active.order_by(CalibrationRow.created_at.desc())
    return next((row.id for (row,) in rows(database, newest)), None)


class Stored:
    """Sets and imports as they are stored."""

    def __init__(self, database):
        self._database = database
        whole = (undefer_group("content"), undefer(CalibrationRow.new_result_ids))
        self.sets = [row for (row,) in rows(database, select(CalibrationRow).options(*whole))]
        self.imports = [row for (row,) in rows(database, select(EvidenceImportRow))]
        self.of_nodes = defaultdict(list)
        for row in sorted(self.sets, key=lambda row: row.number):
            if row.node_id is not None:
                self.of_nodes[row.node_id, row.hardware_sha256].append(row)

    def counts(self):
        """What there is, for the report."""
        return {
            "sets": sum(len(sets) for sets in self.of_nodes.values()),
            "withdrawn": sum(row.state == WITHDRAWN for row in self.sets),
            "imported": len(self.imports),
        }

    def checks(self, withdrawn, imported, revision_before):
        """Whether each thing holds, and what it is."""
        for (node_id, _), sets in self.of_nodes.items():
            yield from self._checks_of(node_id, sets)
        found = {row.id for row in self.sets if row.state == WITHDRAWN}
        yield (
            found == set(withdrawn),
            "the sets that were withdrawn are those whose withdrawal was acknowledged",
        )
        yield len(withdrawn) == len(set(withdrawn)), "no set is withdrawn twice"
        kept = Counter((row.id, row.calibration_id) for row in self.imports)
        acknowledged = Counter((one["id"], one["calibration_id"]) for one in imported)
        yield kept == acknowledged, "every import that was acknowledged is there once, and no other"
        of_imports = Counter(row.id for row in self.sets if row.node_id is None)
        yield of_imports == Counter(row.calibration_id for row in self.imports), "each with its one set"
        moved = revision(self._database) - revision_before
        yield moved == len(self.sets) + len(withdrawn), "each change has moved the catalog's revision once"

    def _checks_of(self, node_id, sets):
        numbers = [row.number for row in sets]
        yield numbers == list(range(1, len(sets) + 1)), f"the sets of {node_id} are numbered without a gap"
        yield sum(row.state == ACTIVE for row in sets) <= 1, f"one set of {node_id} counts"
        digests = {row.content_sha256 for row in sets}
        yield len(digests) == len(sets), f"no set of {node_id} is drawn twice from the same results"
        gone = {name for row in sets if row.state == WITHDRAWN for name in row.new_result_ids}
        used = {name for row in sets if row.state == ACTIVE for name in _rests_on(row)}
        yield not used & gone, f"nothing that was withdrawn of {node_id} comes back"
        yield (
            all(is_drawn_or_passed_over(sets, *results) for results in self._list_accepted(node_id, gone)),
            f"every accepted result of {node_id} is in a set, or the next drawing read newer runs alone",
        )
        yield self._is_last(node_id), f"what counts of {node_id} is what its accepted results make now"

    def _list_accepted(self, node_id, gone):
        """Each accepted result of a node, its verdict's time, and when each later run had its first verdict.

        A run counts by any of its benchmarks: a drawing reads the last runs, whatever they measured.
        """
        with self._database.open_reader() as session:
            accepted = [row for row in list_accepted_results(session, TENANT, node_id) if row.id not in gone]
            judged = get_validations(session, TENANT, [row.id for row in accepted])
        first = {}
        for row in reversed(accepted):  # the last received first
            at = judged[row.id].validated_at
            if row.benchmark == DRAWN:
                yield row.id, [at, *(time for run, time in first.items() if run != row.run_id)]
            first[row.run_id] = min(at, first.get(row.run_id, at))

    def _is_last(self, node_id):
        """Whether a drawing of what is stored now would change nothing."""
        before = revision(self._database)
        with self._database.open_writer() as session:
            drawn = service.calibrate_node(session, TENANT, node_id, load_reference_curves().calibration)
        return not drawn and revision(self._database) == before


def is_drawn_or_passed_over(sets, result, judged):
    """Whether a set has brought a result, or drawings came so late that they passed it over.

    A drawing reads the runs that were received last, and stores nothing where the same figures come of them.
    The first drawing after the verdict may have been under way by then.
    """
    if any(result in row.new_result_ids for row in sets):
        return True
    own, *later = judged
    drawn = sorted(row.created_at for row in sets if row.created_at > own)
    if len(drawn) < 2:
        return len(later) >= RUNS_READ
    return sum(time <= drawn[1] for time in later) >= service._MOST_RUNS


def _rests_on(row):
    return {name for figure in row.figures for name in figure.get("result_ids", ())}

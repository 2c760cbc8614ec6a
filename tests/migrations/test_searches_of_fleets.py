"""What migration 0033 makes of plans that an older version searches, and what its end leaves of fleets."""

import json

from alembic import command
from pydantic_core import to_json
from sqlalchemy import insert, select, text

from service.app.background.plans import RANKING, SEARCHING
from service.app.storage import build_alembic_config
from service.evidence.snapshot import get_store
from service.plans import stored
from service.plans.service import estimate_plan, prepare_fleet, prepare_pieces
from service.plans.tables import PlanPieceRow, PlanRow
from service.schemas.fleet_plans import FleetPlanRequest
from service.schemas.plans import PlanRequest
from tests.plans.test_fleet import fleet, run
from tests.working import do_all

QUESTION = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {
        "kind": "training",
        "sequence_length": 8192,
        "global_batch_size": 128,
        "total_tokens": 10_000_000_000,
    },
    "goal": "cheapest",
    "search": {
        "accelerators": ["h100-sxm"],
        "accelerator_counts": [16],
        "training": {"tensor": [1], "pipeline": [1], "micro_batch_sizes": [1]},
    },
}


def catalog_of(database):
    store = get_store(database)
    store.refresh()
    return store.get_current("default")


def test_a_search_of_an_older_version_goes_on(databases):
    database = databases.loaded()
    question, catalog = PlanRequest.model_validate_json(json.dumps(QUESTION)), catalog_of(database)
    with database.open_writer() as session:
        plan_id = stored.create_plan(session, "default", prepare_pieces(question, catalog)).body["id"]
    command.downgrade(build_alembic_config(database), "0032")
    command.upgrade(build_alembic_config(database), "head")
    assert do_all(database, SEARCHING, RANKING) > 1
    with database.open_reader() as session:
        plan = json.loads(to_json(stored.get_plan(session, "default", plan_id)))
    assert (plan["state"], plan["kind"]) == ("done", "configuration")
    assert plan["answer"] == json.loads(to_json(estimate_plan(question, catalog)))


def test_an_older_version_beside_this_one_stores_plans(databases):
    """It knows no column of kinds."""
    database = databases.loaded()
    question = PlanRequest.model_validate_json(json.dumps(QUESTION))
    row = stored.build_draft("default", prepare_pieces(question, catalog_of(database)))
    columns = [column.name for column in PlanRow.__table__.columns if column.name != "kind"]
    with database.open_writer() as session:
        session.execute(insert(PlanRow.__table__), [{name: getattr(row, name) for name in columns}])
        assert session.scalars(select(PlanRow.kind)).all() == ["configuration"]


def test_an_older_version_does_not_find_fleets(databases):
    database = databases.loaded()
    catalog = catalog_of(database)
    question = PlanRequest.model_validate_json(json.dumps(QUESTION))
    several = FleetPlanRequest.model_validate_json(json.dumps(fleet(run("a"))))
    with database.open_writer() as session:
        kept = stored.create_plan(session, "default", prepare_pieces(question, catalog)).body["id"]
        stored.create_plan(session, "default", prepare_fleet(several, catalog))
    command.downgrade(build_alembic_config(database), "0032")
    with database.open_reader() as session:
        assert session.scalars(text("SELECT id FROM plans")).all() == [kept]
        assert set(session.scalars(select(PlanPieceRow.plan_id))) == {kept}

"""What migration 0024 makes of nodes that were put out before hosts could be kept out."""

from datetime import UTC, datetime, timedelta

from alembic import command
from sqlalchemy import select, text

from service.app.storage import build_alembic_config
from service.nodes.tables import NodeRow
from tests.clocks import START

COLUMNS = "tenant_id, id, name, device, state, reason, installation_id, worker_version, boots"
VALUES = "'default', :id, :id, 'cpu', :state, :reason, :installation, '1', '[]'"
INSERTED = text(
    f"INSERT INTO nodes ({COLUMNS}, rotate_requested, created_at, revoked_at, version) "
    f"VALUES ({VALUES}, false, :at, :revoked_at, 1)"
)


def stored(connection, node_id, installation, state, *, reason=None, hours=0):
    connection.execute(
        INSERTED,
        {
            "id": node_id,
            "installation": installation * 32,
            "state": state,
            "reason": reason,
            "at": f"{START:%Y-%m-%d %H:%M:%S.%f}",
            "revoked_at": f"{START + timedelta(hours=hours):%Y-%m-%d %H:%M:%S.%f}" if hours else None,
        },
    )


def test_who_was_put_out_is_kept_out_and_who_is_back_stays(databases):
    database = databases.empty()
    command.upgrade(build_alembic_config(database), "0021")
    with database.engine.begin() as connection:
        stored(connection, "works", "a", "active")
        stored(connection, "set-aside", "b", "quarantined", reason="OPERATOR")
        stored(connection, "two-hosts", "c", "quarantined", reason="TWO_HOSTS")
        stored(connection, "earlier", "d", "revoked", hours=1)
        stored(connection, "later", "d", "revoked", hours=2)
        stored(connection, "before", "e", "revoked", hours=1)
        stored(connection, "came-back", "e", "draining")
    began = datetime.now(UTC) - timedelta(seconds=2)
    command.upgrade(build_alembic_config(database), "head")
    with database.open_reader() as session:
        barred = {row.id: row.barred_at for row in session.scalars(select(NodeRow)) if row.barred_at}
    assert barred.keys() == {"set-aside", "later"}
    assert barred["later"] == START + timedelta(hours=2)
    assert barred["set-aside"] >= began

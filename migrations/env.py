"""Runs the migrations on SQLite and PostgreSQL, with the database of the configuration."""

from alembic import context
from sqlalchemy import Connection

from service.app.storage import ONE_MIGRATION_AT_A_TIME
from service.app.tables import METADATA
from service.kit.database.engine import Database

LOCK_TIMEOUT = "5s"


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        render_as_batch=connection.dialect.name == "sqlite",
        # SQLite reads the revision inside the one immediate transaction, so two processes take turns.
        transaction_per_migration=connection.dialect.name == "postgresql",
        transactional_ddl=True,
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()


def _run_alone(database: Database) -> None:
    engine = database.engine.execution_options(ironlaw_write=True, ironlaw_unbounded=True)
    with engine.connect() as opened:
        if opened.dialect.name == "postgresql":
            opened.detach()  # what is set below ends with this connection
            opened.exec_driver_sql("SET statement_timeout = 0")
            opened.exec_driver_sql(f"SELECT pg_advisory_lock({ONE_MIGRATION_AT_A_TIME})")
            opened.exec_driver_sql(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
            opened.commit()
        _run(opened)


given = context.config.attributes
if "connection" in given:
    _run(given["connection"])
else:
    _run_alone(given["database"])

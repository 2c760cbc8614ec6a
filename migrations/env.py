"""Runs the migrations on SQLite and PostgreSQL; the database comes with the configuration."""

from alembic import context
from sqlalchemy import Connection

from service.catalog import tables as catalog_tables
from service.kit.database import Base, Database

assert catalog_tables.TABLES  # noqa: S101  # importing them fills the metadata

LOCK_TIMEOUT = "5s"
ONE_AT_A_TIME = 0x1A0414  # key of the advisory lock that two migrating processes share


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        # SQLite reads the revision inside the one immediate transaction, so two processes take turns.
        transaction_per_migration=connection.dialect.name == "postgresql",
        transactional_ddl=True,
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()


database: Database = context.config.attributes["database"]
engine = database.engine.execution_options(ironlaw_write=True)
with engine.connect() as opened:
    if opened.dialect.name == "postgresql":
        opened.detach()  # what is set below ends with this connection
        opened.exec_driver_sql("SET statement_timeout = 0")
        opened.exec_driver_sql(f"SELECT pg_advisory_lock({ONE_AT_A_TIME})")
        opened.exec_driver_sql(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
        opened.commit()
    _run(opened)

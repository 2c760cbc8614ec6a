"""A clock that tests set, in place of the database's own; the statements stay as they are."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import event, text

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


_FUNCTION = """
CREATE FUNCTION shadow.statement_timestamp() RETURNS timestamptz STABLE LANGUAGE sql
AS 'SELECT at FROM shadow.clock'
"""


_SHADOWS = {}


def unset(database):
    """Give the database its own clock back."""
    if database in _SHADOWS:
        event.remove(database.engine, "connect", _SHADOWS.pop(database))
    if not database.is_sqlite:
        with database.engine.begin() as connection:
            connection.execute(text("DROP SCHEMA IF EXISTS shadow CASCADE"))
            connection.execute(text(f"ALTER DATABASE {database.url.database} RESET search_path"))
    database.dispose()


class Clock:
    """The time of one database."""

    def __init__(self, database):
        self.at = START
        self._database = database
        if database.is_sqlite:
            _SHADOWS[database] = self._shadow
            event.listen(database.engine, "connect", self._shadow)
        else:
            self._shadow_on_server()
        database.dispose()
        self.set(START)

    def _shadow(self, connection, _):
        connection.create_function("strftime", -1, self._strftime)

    def _strftime(self, pattern, moment, modifier):
        assert (pattern, moment) == ("%Y-%m-%d %H:%M:%f", "now")
        ahead = timedelta(seconds=float(modifier.removesuffix(" seconds")))
        return f"{(self.at + ahead).replace(tzinfo=None).isoformat(sep=' ', timespec='milliseconds')}"

    def _shadow_on_server(self):
        name = self._database.url.database
        with self._database.engine.begin() as connection:
            for statement in (
                "CREATE SCHEMA shadow",
                "CREATE TABLE shadow.clock (at timestamptz)",
                "INSERT INTO shadow.clock VALUES (now())",
                _FUNCTION,
                f"ALTER DATABASE {name} SET search_path = shadow, public, pg_catalog",
            ):
                connection.execute(text(statement))

    def set(self, at):
        self.at = at
        if not self._database.is_sqlite:
            with self._database.engine.begin() as connection:
                connection.execute(text("UPDATE shadow.clock SET at = :at"), {"at": at})

    def move(self, **span):
        self.set(self.at + timedelta(**span))

"""What the requests of the contract tests say about their caller, in one place."""

from tests.applications import Callers, bearing


def credentials(app):
    """Headers of a caller who may call every operation of ``app``, whose database is attached."""
    return bearing(Callers(app, app.state.database).key("*:*", "tenants:*", "metrics:*"))

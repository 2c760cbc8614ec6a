"""Many callers change one row at once, as the API tells them to: no change is lost."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from service.audit.service import WriteContext
from service.catalog import service
from service.catalog.registry import SITES
from service.kit.http.versions import VersionConflict
from service.kit.security.principals import DEFAULT_TENANT, LOCAL
from tests.applications import catalog_transactions

CALLERS = 8
CHANGES = 10


def test_no_change_is_lost(database):
    """Each of 80 changes reads, adds one and writes with If-Match, again after every 412."""
    transactions = catalog_transactions(database)
    creating, changing = (
        WriteContext(LOCAL, f"{verb}_site", "/v1/sites", "test") for verb in ("create", "update")
    )
    site = SITES.example | {"note": "0"}
    transactions.write_row(creating, site, SITES, partial(service.create_row, document=site))
    conflicts = []

    def read():
        return transactions.read(lambda session: service.get_row(session, SITES, DEFAULT_TENANT, site["id"]))

    def add_one():
        row = read()
        sent = {"patch": {"note": str(int(row["note"]) + 1)}, "if_match": service.build_etag(row)}
        transactions.write_row(changing, sent, SITES, partial(service.update_row, row_id=row["id"], **sent))

    def call(_):
        changed = 0
        while changed < CHANGES:
            try:
                add_one()
            except VersionConflict as conflict:
                conflicts.append(conflict.status)
                time.sleep(random.uniform(0, 0.1))  # noqa: S311  # as a good caller does
            else:
                changed += 1

    first = read()
    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(call, range(CALLERS)))
    last = read()
    assert int(last["note"]) == CALLERS * CHANGES
    assert last["version"] == first["version"] + CALLERS * CHANGES
    # A change that conflicts takes no revision: the catalog counts exactly what was stored.
    assert last["revision"] == first["revision"] + CALLERS * CHANGES
    assert set(conflicts) == {412}

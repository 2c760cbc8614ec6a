"""Many callers change one row at once, as the API tells them to: no change is lost."""

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor

from service.app.examples import EXAMPLES
from service.audit.service import Call
from service.catalog.nouns import SITES
from service.catalog.sites.schemas import SiteInput, SitePatch
from service.kit.http.versions import VersionConflict
from service.kit.security.subjects import DEFAULT_TENANT, LOCAL
from tests.applications import catalog_face

CALLERS = 8
CHANGES = 20


def test_no_change_is_lost(database):
    """Each of 160 changes reads, adds one and writes with If-Match, again after every 412."""
    face = catalog_face(database)
    creating, changing = (Call(LOCAL, f"{verb}_site", "/v1/sites", "test") for verb in ("create", "update"))
    site = SiteInput.model_validate(EXAMPLES["create_site"] | {"note": "0"})
    first = json.loads(face.create(SITES, creating, site).body)
    conflicts = []

    def add_one():
        read = face.get(SITES, DEFAULT_TENANT, site.id, "")
        patch = SitePatch.model_validate({"note": str(int(json.loads(read.body)["note"]) + 1)})
        face.change(SITES, changing, site.id, patch, read.headers["etag"])

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

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(call, range(CALLERS)))
    last = json.loads(face.get(SITES, DEFAULT_TENANT, site.id, "").body)
    assert int(last["note"]) == CALLERS * CHANGES
    assert last["version"] == first["version"] + CALLERS * CHANGES
    # A change that conflicts takes no revision: the catalog counts exactly what was stored.
    assert last["revision"] == first["revision"] + CALLERS * CHANGES
    assert set(conflicts) == {412}

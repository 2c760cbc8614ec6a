"""What a request leaves to the garbage collector, which runs seldom: nothing of the service."""

import gc
from types import FrameType

import pytest

from service.app.examples import EXAMPLES
from service.kit.http.web.answers import RenderedJson
from tests.contract.test_document import OPERATIONS

REQUESTS = [
    (method.upper(), path, body)
    for name, (method, path, operation) in OPERATIONS.items()
    if "{" not in path and ("requestBody" in operation or method == "get")
    for body in ([None] if method == "get" else [EXAMPLES[name], {"unknown": 1}])
]


def collect_garbage():
    """Collects what only refers to itself, and returns it."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return gc.garbage.copy()
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def is_own(value):
    """Returns true for an instance of a class of the service, and for a frame of its code.

    Bodies of answers are left out: those of the client of the tests refer to themselves, and hold them.
    """
    if isinstance(value, RenderedJson):
        return False
    if isinstance(value, FrameType):
        return str(value.f_globals.get("__name__")).startswith("service.")
    return type(value).__module__.startswith("service.")


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_requests_leave_no_values_of_the_service_to_the_collector(client):
    """The statements of SQLAlchemy and the routes of Starlette refer to themselves, and are small."""
    gc.collect()
    gc.disable()
    left = {}
    try:
        for method, path, body in REQUESTS:
            gc.freeze()  # what was built once is not looked through again
            client.request(method, path, json=body)
            names = {type(each).__qualname__ for each in collect_garbage() if is_own(each)}
            if names:
                left[method, path, str(body)[:40]] = names
    finally:
        gc.enable()
    assert left == {}

"""The client that was generated from the document of the last release gets its answers from this service."""

import importlib
import json
import sys
from contextlib import closing

import pytest

from tests.contract import clients
from tests.contract.breaks import read_last_release
from tests.contract.tenant import tenant
from tests.contract.test_clients import PythonClient, assert_sound, offer_of, told_to_python


@pytest.fixture
def package(tmp_path):
    """The package of the last release, forgotten afterwards."""
    document = tmp_path / "last.json"
    document.write_text(json.dumps(read_last_release()))
    made = clients.python(tmp_path, document)
    known = set(sys.modules)
    sys.path.insert(0, str(made.parent))
    yield made.name
    sys.path.remove(str(made.parent))
    for name in set(sys.modules) - known:
        del sys.modules[name]
    importlib.invalidate_caches()


@pytest.mark.enable_socket
def test_the_last_client_gets_its_answers(package, tmp_path):
    offer = offer_of("last-release")
    with tenant(tmp_path / "data") as service, closing(PythonClient(package, service)) as client:
        assert_sound(told_to_python(client, offer), service, offer)

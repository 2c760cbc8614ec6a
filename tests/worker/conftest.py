"""The credential of a worker."""

import pytest

from service.worker.credential import Credentials
from tests.worker.fake import secret


@pytest.fixture
def credentials(tmp_path):
    Credentials.store(tmp_path / "credential.json", secret(1))
    return Credentials(tmp_path / "credential.json")

"""The credential of a worker."""

import pytest

from service.worker.credential import WorkerCredentials
from tests.worker.fake import secret


@pytest.fixture
def credentials(tmp_path):
    WorkerCredentials.store(tmp_path / "credential.json", secret(1))
    return WorkerCredentials(tmp_path / "credential.json")

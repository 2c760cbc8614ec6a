"""The client: where credentials go, which answers settle something, and what errors say."""

import inspect
import ssl
import threading

import httpx
import pytest
import uvicorn

from service.cli import main as cli
from service.protocol.leases import LeaseClaimRequest, LeaseCompletionRequest
from service.protocol.nodes import NodeEnrolmentRequest, NodeHeartbeatRequest, NodeSpoolState
from service.worker import client as module
from service.worker.client import NoAnswer, RequestRefused, ServiceClient, Unauthorized, validate_address
from service.worker.credential import WorkerCredentials
from service.worker.errors import WorkerError
from service.worker.ids import generate_hex_128
from tests.worker.fake import ADDRESS, NODE_ID, FakeService, problem, secret

BEAT = NodeHeartbeatRequest(
    boot_id_sha256="0" * 64, worker_version="0.1.0", inventory_sha256="0" * 64, activity="idle",
    spool=NodeSpoolState(waiting_count=0, waiting_bytes=0),
)  # fmt: skip


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def client(service, credentials):
    return ServiceClient(ADDRESS, credentials=credentials, transport=service.transport)


def beat(client):
    return client.send_heartbeat(NODE_ID, BEAT)


def test_an_idle_connection_is_not_used_until_the_service_closes_it(credentials):
    """What is sent at the moment in which the service closes it is lost."""
    closed_after_seconds = inspect.signature(uvicorn.Config).parameters["timeout_keep_alive"].default
    assert "timeout_keep_alive" not in inspect.getsource(cli.serve)
    assert closed_after_seconds / 2 > module.IDLE_SECONDS
    client = ServiceClient(ADDRESS, credentials=credentials)
    assert client._client._transport._pool._keepalive_expiry == module.IDLE_SECONDS
    client.close()


class TestAddress:
    @pytest.mark.parametrize(
        ("address", "used"),
        [
            ("https://ironlaw.example", "https://ironlaw.example"),
            ("https://ironlaw.example/", "https://ironlaw.example"),
            ("https://ironlaw.example:8443/base/", "https://ironlaw.example:8443/base"),
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("http://[::1]:8000", "http://[::1]:8000"),
            ("http://localhost:8000", "http://localhost:8000"),
        ],
    )
    def test_https_or_loopback(self, address, used):
        assert validate_address(address) == used

    @pytest.mark.parametrize(
        "address",
        [
            "http://ironlaw.example", "http://10.0.0.1", "http://127.0.0.1.example", "http://localhost.example",
            "ftp://127.0.0.1", "ironlaw.example", "", "https://", "https://user:secret@ironlaw.example",
            "https://ironlaw.example?x=1", "http://0.0.0.0:8000",
        ],
    )  # fmt: skip
    def test_nothing_else(self, address):
        with pytest.raises(WorkerError) as raised:
            validate_address(address)
        assert "secret" not in str(raised.value)

    def test_proxies_of_the_environment_are_for_what_lies_beyond_this_host(self, monkeypatch):
        monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
        monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:3128")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)

        def proxies(address):
            pools = [
                transport._pool for transport in ServiceClient(address)._client._mounts.values() if transport
            ]
            return [pool for pool in pools if hasattr(pool, "_proxy_url")]

        assert proxies("https://ironlaw.test")
        assert not proxies("http://127.0.0.1:8000")

    def test_certificates_are_always_verified(self, tmp_path):
        context = ServiceClient("https://ironlaw.test")._client._transport._pool._ssl_context
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.check_hostname
        (tmp_path / "none.pem").write_text("no certificate")
        with pytest.raises(WorkerError, match="contains no certificates"):
            ServiceClient("https://ironlaw.test", ca_file=tmp_path / "none.pem")


class TestAnswers:
    @pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 301, 304])
    def test_later(self, service, client, status):
        service.faults[f"{NODE_ID}:heartbeat"] = [problem(status, "LATER", retry_after="7")]
        with pytest.raises(NoAnswer) as raised:
            beat(client)
        assert raised.value.retry_after_seconds == 7
        assert beat(client).state == "active"

    @pytest.mark.parametrize("status", [400, 403, 404, 409, 413, 422])
    def test_no(self, service, client, status):
        service.faults[f"{NODE_ID}:heartbeat"] = [problem(status, "STALE_LEASE", retry_after="3")]
        with pytest.raises(RequestRefused) as raised:
            beat(client)
        refused = raised.value
        assert (refused.status, refused.code, refused.retry_after_seconds) == (status, "STALE_LEASE", 3)

    @pytest.mark.parametrize(
        ("said", "seconds"),
        [("0", 0), ("120", 120), ("999999", 3600), ("-5", 0), ("soon", 0), ("", 0), ("1e9", 0)],
    )
    def test_retry_after(self, service, client, said, seconds):
        service.faults[f"{NODE_ID}:heartbeat"] = [problem(503, "LATER", retry_after=said)]
        with pytest.raises(NoAnswer) as raised:
            beat(client)
        assert raised.value.retry_after_seconds == seconds

    def test_retry_after_as_a_date(self, service, client):
        service.faults[f"{NODE_ID}:heartbeat"] = [
            problem(503, "LATER", retry_after="Fri, 21 Nov 2025 12:00:00 GMT"),
            problem(503, "LATER", retry_after="Sat, 21 Nov 2076 12:00:00 GMT"),
        ]
        for seconds in (0, 3600):
            with pytest.raises(NoAnswer) as raised:
                beat(client)
            assert raised.value.retry_after_seconds == seconds

    @pytest.mark.parametrize("body", [b"", b"<html>log in</html>", b"{}", b'{"state": "asleep"}'])
    def test_a_page_of_somebody_else_is_no_answer(self, service, client, body):
        service.faults[f"{NODE_ID}:heartbeat"] = [httpx.Response(200, content=body)]
        with pytest.raises(NoAnswer, match="not a valid NodeInstructions"):
            beat(client)

    def test_no_work(self, client, service):
        service.inventories["0" * 64] = None
        assert (
            client.claim_lease(LeaseClaimRequest(request_id=generate_hex_128(), inventory_sha256="0" * 64))
            is None
        )

    @pytest.mark.parametrize(
        "error",
        [
            httpx.ConnectError("refused"),
            httpx.ReadTimeout("late"),
            httpx.RemoteProtocolError("cut"),
            httpx.WriteError("x"),
        ],
    )
    def test_no_connection(self, service, client, credentials, error):
        service.faults[f"{NODE_ID}:heartbeat"] = [error]
        credentials._given_up_at = float("-inf")
        with pytest.raises(NoAnswer) as raised:
            beat(client)
        assert not raised.value.is_reached
        assert credentials.is_settled == isinstance(error, httpx.ConnectError)


class TestCredentials:
    def test_they_are_in_no_error(self, service, client):
        faults = [problem(401, "X"), problem(403, "X"), problem(500, "X"), httpx.ReadTimeout(secret(1))]
        echo = problem(422, "X")
        echo = httpx.Response(422, json={"code": "X", "detail": f"got Bearer {secret(1)}"})
        service.faults[f"{NODE_ID}:heartbeat"] = [*faults, echo]
        for _ in range(5):
            with pytest.raises((Unauthorized, RequestRefused, NoAnswer)) as raised:
                beat(client)
            assert secret(1) not in f"{raised.value} {raised.value!r}"
            assert raised.value.__cause__ is None
            assert raised.value.__suppress_context__ or raised.value.__context__ is None

    def test_enrolment_carries_none(self, service, client):
        client.enrol_node(
            NodeEnrolmentRequest(
                token="right",  # noqa: S106
                installation_id=generate_hex_128(),
                device="cpu",
                worker_version="0",
            )
        )
        assert service.log == [("POST", "/v1/nodes:enrol", "")]

    def test_a_rotation(self, service, client):
        beat(client)
        client.rotate_credential(NODE_ID)
        beat(client)
        assert [carried for _, _, carried in service.log] == [f"Bearer {secret(n)}" for n in (1, 1, 2)]
        assert service.generation == 2

    def test_an_answer_to_a_rotation_that_is_lost_costs_nothing(self, service, client):
        def lost(request):
            service.answer(request)
            return httpx.ReadTimeout("lost")

        service.faults[f"{NODE_ID}:rotate"] = [lost]
        with pytest.raises(NoAnswer):
            client.rotate_credential(NODE_ID)
        beat(client)
        assert (service.generation, service.pending) == (1, 2)
        client.rotate_credential(NODE_ID)
        beat(client)
        assert (service.generation, service.is_quarantined) == (3, False)

    @pytest.mark.parametrize("is_confirmed", [True, False])
    def test_after_a_crash_in_a_rotation_the_node_is_still_known(
        self, service, client, tmp_path, is_confirmed
    ):
        client.rotate_credential(NODE_ID)
        if is_confirmed:  # but the worker was killed before it could note it
            kept = (tmp_path / "credential.json").read_bytes()
            beat(client)
            (tmp_path / "credential.json").write_bytes(kept)
        again = ServiceClient(
            ADDRESS, credentials=WorkerCredentials(tmp_path / "credential.json"), transport=service.transport
        )
        beat(again)
        assert (service.generation, service.is_quarantined) == (2, False)
        assert secret(1) not in (tmp_path / "credential.json").read_text()

    def test_a_pending_one_that_the_service_forgot(self, service, client, tmp_path):
        """A service restored from a backup may not know it: the current one still works."""
        client.rotate_credential(NODE_ID)
        service.pending = None
        beat(client)
        assert [carried for *_, carried in service.log[-2:]] == [f"Bearer {secret(2)}", f"Bearer {secret(1)}"]
        assert secret(2) not in (tmp_path / "credential.json").read_text()

    def test_many_threads_and_many_rotations_never_use_an_old_one(self, service, client):
        stop = threading.Event()
        errors = []

        def send():
            while not stop.is_set():
                try:
                    beat(client)
                except Exception as error:  # noqa: BLE001
                    errors.append(error)

        senders = [threading.Thread(target=send) for _ in range(6)]
        for sender in senders:
            sender.start()
        for _ in range(25):
            client.rotate_credential(NODE_ID)
            beat(client)
        stop.set()
        for sender in senders:
            sender.join()
        assert errors == []
        assert not service.is_quarantined
        assert service.generation > 20

    def test_refused_altogether(self, service, client):
        service.is_revoked = True
        with pytest.raises(Unauthorized):
            beat(client)


def test_the_clock_of_the_service_is_estimated_from_the_quickest_answer(service, client):
    service.clock_offset_seconds = 3600.0
    beat(client)
    assert client.offset.seconds == pytest.approx(3600.0, abs=0.5)


def test_complete_is_understood(service, client):
    service.held, service.token = ("x", "y"), 1
    completion = LeaseCompletionRequest(fencing_token=1, outcome="released", reason="WORKER_STOPPED")
    assert client.complete_lease("run-1", completion).state == "waiting"
    with pytest.raises(RequestRefused, match="STALE_LEASE"):
        client.complete_lease("run-1", completion)


def test_no_setting_turns_verification_off():
    """Every client of the worker is made in one place, and none is told to trust everybody."""
    text = module.__loader__.get_source(module.__name__)
    assert text.count("httpx.Client(") == 1
    assert "CERT_NONE" not in text

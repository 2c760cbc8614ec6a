"""The estimates over HTTP: the same answers as without, batches, revisions, no database."""

import asyncio
import json
import threading
import time

import pytest
from sqlalchemy import event, update

from service.app import application
from service.app.examples import EXAMPLES, REFERENCE_QUESTION
from service.catalog.tables import CatalogState
from service.estimates import router
from service.estimates.service import ESTIMATES
from service.evidence.snapshot import SnapshotStore
from service.schemas.estimates import BATCH_LIMIT
from tests.applications import bearing
from tests.asking import ask, question
from tests.prepared import ON_SQLITE

OPERATIONS = list(ESTIMATES)
SERVED = EXAMPLES["estimate_memory"]


def example(operation):
    return EXAMPLES[f"estimate_{operation.replace('-', '_')}"]


def without_revision(answer):
    return {**answer, "evidence": {**answer["evidence"], "catalog_revision": 0}}


@ON_SQLITE
def test_a_batch_ends_when_its_caller_hangs_up(reader, monkeypatch):
    """Those behind it would wait for answers that nobody reads."""
    asked, sent, third, gone = [], [], threading.Event(), threading.Event()

    def slow(_question, _snapshot):
        asked.append(threading.current_thread())
        if len(asked) == 3:
            third.set()
            assert gone.wait(60)
        return {}

    memory = router.ESTIMATES["memory"]._replace(estimator=slow)
    monkeypatch.setattr(router, "ESTIMATES", {"memory": memory})
    body = json.dumps({"requests": [SERVED] * 20}).encode()
    messages = [{"type": "http.disconnect"}, {"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if len(messages) == 1:
            await asyncio.to_thread(third.wait, 60)
        return messages.pop()

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/estimates/memory:batch",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))],
        "client": ("127.0.0.1", 1),
        "state": {},
    }
    asyncio.run(reader.app(scope, receive, send))
    gone.set()
    asked[0].join(60)
    assert (len(asked), sent) == (3, [])


@pytest.fixture
def _stopped_clock(monkeypatch):
    async def never(*_):
        pass

    monkeypatch.setattr(application, "_repeat_every", never)


@pytest.fixture
def statements(_stopped_clock, database):
    """Statements that the database sees, while the clock of the application stands still."""
    seen = []

    def note(_connection, _cursor, statement, *_):
        seen.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    yield seen
    event.remove(database.engine, "before_cursor_execute", note)


@pytest.mark.parametrize("operation", OPERATIONS)
@ON_SQLITE
class TestEveryOperation:
    def test_over_http_the_answer_is_the_same(self, reader, snapshot, operation):
        response = reader.post(f"/v1/estimates/{operation}", example(operation))
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        direct = json.loads(json.dumps(ask(snapshot, operation, example(operation))))
        assert without_revision(response.json()) == without_revision(direct)

    def test_a_batch_answers_each_question_as_it_would_alone(self, reader, operation):
        asked = [example(operation)]
        asked += [{**example(operation), "model": {"source": "catalog", "id": "llama-2-7b"}}]
        alone = [reader.post(f"/v1/estimates/{operation}", body).json() for body in asked]
        together = reader.post(f"/v1/estimates/{operation}:batch", {"requests": asked * 3})
        assert together.status_code == 200
        assert together.json() == {"results": alone * 3}

    def test_a_batch_says_which_question_is_at_fault(self, reader, operation):
        url = f"/v1/estimates/{operation}:batch"
        bad = {**example(operation), "model": {"source": "catalog", "id": "nothing"}}
        refused = reader.post(url, {"requests": [example(operation), bad]})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == "/requests/1/model/id"
        misshaped = {**example(operation), "workload": {"kind": "training", "sequence_length": 0}}
        refused = reader.post(url, {"requests": [example(operation), misshaped]})
        assert refused.json()["errors"][0]["pointer"] == "/requests/1/workload/sequence_length"

    def test_a_batch_has_a_size(self, reader, operation):
        url = f"/v1/estimates/{operation}:batch"
        for requests in ([], [example(operation)] * (BATCH_LIMIT + 1)):
            refused = reader.post(url, {"requests": requests})
            assert refused.status_code == 422
            assert refused.json()["errors"][0]["pointer"] == "/requests"

    def test_no_statement_of_a_caller_with_a_key_reaches_the_database(self, statements, callers, operation):
        headers = bearing(callers.key("estimates:read"))
        url, batch = f"/v1/estimates/{operation}", {"requests": [example(operation)] * 5}
        statements.clear()
        assert callers.client.post(url, example(operation), headers=headers).status_code == 200
        assert callers.client.post(f"{url}:batch", batch, headers=headers).status_code == 200
        assert callers.client.post(url, example(operation)).status_code == 401
        assert callers.client.post(url, example(operation), headers=bearing("nonsense")).status_code == 401
        assert statements == []

    def test_no_statement_reaches_the_database(self, statements, client, operation):
        statements.clear()
        assert client.post(f"/v1/estimates/{operation}", example(operation)).status_code == 200
        batch = {"requests": [example(operation)] * 5}
        assert client.post(f"/v1/estimates/{operation}:batch", batch).status_code == 200
        assert statements == []
        client.get("/v1/models")
        assert statements

    def test_a_refusal_names_the_field(self, reader, operation):
        body = {**example(operation), "model": {"source": "catalog", "id": "nothing"}}
        refused = reader.post(f"/v1/estimates/{operation}", body)
        assert refused.status_code == 422
        document = refused.json()
        assert document["code"] == "NO_SOUND_ANSWER"
        (error,) = document["errors"]
        assert (error["pointer"], error["code"]) == ("/model/id", "UNKNOWN_REFERENCE")

    def test_the_digest_is_of_the_question_with_its_defaults(self, reader, operation):
        url = f"/v1/estimates/{operation}"

        def digest(**change):
            body = {**example(operation), **change}
            return reader.post(url, body).json()["evidence"]["input_digest"]

        left_out = {**example(operation)["workload"]}
        default = {"objective": "pretraining"} if left_out["kind"] == "training" else {"output_tokens": 256}
        left_out = {name: value for name, value in left_out.items() if name not in default}
        spelled = {**left_out, **default}
        assert digest(workload=left_out) == digest(workload=spelled)
        assert digest() != digest(model={"source": "catalog", "id": "gpt2"})


class TestRevisions:
    def test_an_estimate_sees_the_write_whose_revision_it_sends(self, client):
        body = {**EXAMPLES["create_accelerator"], "id": "new"}
        written = client.post("/v1/accelerators", body).headers["catalog-revision"]
        asked = question("gpt2", "new")
        answer = client.post("/v1/estimates/memory", asked, headers={"Catalog-Revision": written})
        assert answer.status_code == 200
        assert answer.json()["evidence"]["catalog_revision"] == int(written)

    def test_a_write_of_another_process_is_waited_for(self, client):
        with client.app.state.database.open_writer() as session:
            session.execute(update(CatalogState).values(revision=CatalogState.revision + 1))
            revision = session.query(CatalogState.revision).scalar()
        headers = {"Catalog-Revision": str(revision)}
        answer = client.post("/v1/estimates/memory", SERVED, headers=headers)
        assert answer.json()["evidence"]["catalog_revision"] == revision

    @ON_SQLITE
    def test_a_revision_that_does_not_come_is_503(self, reader, monkeypatch):
        monkeypatch.setattr("service.evidence.snapshot.WAIT_SECONDS", 0.2)
        started = time.monotonic()
        answer = reader.post("/v1/estimates/memory", SERVED, headers={"Catalog-Revision": "999"})
        assert time.monotonic() - started < 10
        assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")
        assert answer.headers["retry-after"] == "1"

    @pytest.mark.parametrize("revision", ["-1", "x", "1.5", "9" * 17, "\u0661"])
    @ON_SQLITE
    def test_what_is_no_revision_is_refused(self, reader, revision):
        headers = {"Catalog-Revision": revision.encode()}
        answer = reader.post("/v1/estimates/memory", SERVED, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["pointer"] == "/header/Catalog-Revision"

    def test_a_changed_row_changes_the_answer(self, client):
        def power():
            answer = client.post("/v1/estimates/utility-bill", REFERENCE_QUESTION).json()
            return answer["energy"]["lines"][0]["it_kwh"]["value"]

        before = power()
        assert client.post("/v1/accelerators/h100-sxm:copy", {}).status_code == 201
        assert power() == before
        patch = {"power_limit_watts": 350.0}
        client.patch("/v1/accelerators/h100-sxm", patch, headers={"If-Match": '"1"'})
        assert power() == pytest.approx(before / 2)


@ON_SQLITE
class TestRange:
    """Figures at the ends of what the shapes allow end in an answer or a refusal, never in a defect."""

    @pytest.mark.parametrize("operation", ["memory", "throughput"])
    @pytest.mark.parametrize(
        "workload",
        [
            {"kind": "training", "sequence_length": 2**31 - 1, "micro_batch_size": 10**6},
            {"kind": "training", "gradient_accumulation_steps": 10**6, "total_samples": 2**53 - 1},
            {"kind": "inference", "input_tokens": 2**31 - 1, "output_tokens": 2**31 - 1},
            {"kind": "inference", "concurrency": 10**6, "output_tokens": 1, "input_tokens": 1},
        ],
    )
    def test_largest_figures(self, reader, operation, workload):
        asked = {**question("gpt2", "h100-sxm", 10**6), "workload": workload}
        assert reader.post(f"/v1/estimates/{operation}", asked).status_code in (200, 422)

    @pytest.mark.parametrize(
        ("code", "blocks", "layer"),
        [
            ("TOO_MANY_BLOCKS", 10_001, {"kind": "linear", "input_size": 1, "output_size": 1}),
            ("TOO_MANY_PARAMETERS", 1, {"kind": "linear", "input_size": 2**31 - 1, "output_size": 2**31 - 1}),
            ("TOO_MANY_PARAMETERS", 1, {"kind": "linear", "input_size": 4096, "output_size": 4096,
                                        "count": 2**31 - 1}),
        ],
    )  # fmt: skip
    def test_models_beyond_any_machine_are_refused(self, reader, code, blocks, layer):
        layers = [{"kind": "block", "count": blocks, "layers": [layer]}]
        model = {"source": "architecture", "architecture": {"layers": layers}}
        answer = reader.post("/v1/estimates/memory", question(model, "h100-sxm"))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["code"] == code
        model = {"id": "huge", "name": "Huge", "architecture": {"layers": layers}}
        assert reader.post("/v1/models", model).status_code == 422

    @pytest.mark.parametrize(
        "layer",
        [
            {"kind": "normalization", "size": 64},
            {"kind": "linear", "input_size": 1, "output_size": 1},
            {"kind": "learned_vectors", "purpose": "bias", "size": 1},
            {"kind": "embedding_table", "rows": 1, "size": 1},
            {"kind": "activation", "size": 1},
            {"kind": "block", "layers": [{"kind": "normalization", "size": 1}], "unit": False},
        ],
    )
    def test_a_repetition_beyond_any_model_is_refused_by_name(self, reader, layer):
        layers = [{"kind": "normalization", "size": 1}, {**layer, "count": 2**31 - 1}]
        model = {"source": "architecture", "architecture": {"layers": layers}}
        answer = reader.post("/v1/estimates/memory", question(model, "h100-sxm"))
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert (error["code"], error["pointer"]) == (
            "TOO_MANY_LAYERS",
            "/model/architecture/layers/1/count",
        )

    @pytest.mark.parametrize("inside", [True, False])
    def test_a_layer_that_contradicts_itself_is_named_by_its_place(self, reader, inside):
        norm = {"kind": "normalization", "size": 64}
        experts = {
            "kind": "mixture_of_experts",
            "hidden_size": 64,
            "expert_count": 4,
            "experts_per_token": 8,
            "expert_inner_size": 32,
        }
        wrong = {"kind": "block", "layers": [norm, experts], "count": 3} if inside else experts
        model = {"source": "architecture", "architecture": {"layers": [norm, wrong, norm]}}
        answer = reader.post("/v1/estimates/memory", question(model, "h100-sxm"))
        (error,) = answer.json()["errors"]
        place = "1/layers/1" if inside else "1"
        pointer = f"/model/architecture/layers/{place}/experts_per_token"
        assert (error["code"], error["pointer"]) == ("EXPERTS_PER_TOKEN", pointer)

    def test_figures_beyond_int64_are_refused(self, reader):
        """2^31 tokens x 10^6 sequences x 2^20 wide is far above 2^63 bytes."""
        layer = {"kind": "linear", "input_size": 2**20, "output_size": 2**20}
        model = {"source": "architecture", "architecture": {"layers": [layer]}}
        workload = {"sequence_length": 2**31 - 1, "micro_batch_size": 10**6}
        answer = reader.post("/v1/estimates/memory", question(model, "h100-sxm", **workload))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["code"] == "OUT_OF_RANGE"


@ON_SQLITE
def test_before_the_catalog_is_loaded_nothing_is_answered(client):
    empty = SnapshotStore(client.app.state.database)
    client.app.state.snapshots = empty
    assert client.get("/readyz").status_code == 503
    assert client.get("/livez").status_code == 204
    answer = client.post("/v1/estimates/memory", SERVED)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    empty.refresh()
    assert client.get("/readyz").status_code == 200
    assert client.post("/v1/estimates/memory", SERVED).status_code == 200

"""Questions that take long: which they are, where they are answered, and what goes on beside them."""

import asyncio
import contextlib
import json
import re
import signal
import threading
import time
from bisect import bisect_right
from functools import partial

import httpx
import pytest
from pydantic import TypeAdapter

from service.app.examples import EXAMPLES
from service.audit.verification import Verifier
from service.budgets.actuals import service as actuals
from service.catalog import service as catalog
from service.catalog import transactions
from service.catalog.grids import router as grids
from service.catalog.models import router as models
from service.catalog.offers import router as offers
from service.catalog.tariffs import router as tariffs
from service.catalog.token_prices import router as token_prices
from service.estimates import frontier, router
from service.estimates.service import ESTIMATES
from service.evidence.imports import service as evidence
from service.kit.http import web
from service.kit.http.long_work import QUESTIONS, SEARCHES, VERIFICATIONS, LongWork
from service.kit.http.web import requests
from service.plans import creation
from service.quotes import service as quotes
from service.quotes.form import router as form
from service.quotes.form.fields import AT_FIRST
from service.resolve.length import (
    MOST_SHORT_ADAPTED,
    MOST_SHORT_BYTES,
    MOST_SHORT_LAYERS,
    MOST_SHORT_TRAINED,
    is_long,
)
from service.schemas.frontier import ThroughputFrontierRequest
from tests.asking import shipped
from tests.prepared import ON_SQLITE
from tests.serving import serving

LOOPBACK = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]
PATIENCE = 60

SMALL = EXAMPLES["estimate_memory"]
BILL = EXAMPLES["estimate_utility_bill"]
SERVED = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {"kind": "inference", "concurrency": 4, "horizon": {"duration_seconds": 3600}},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 8},
    "parallelism": {"data": 8},
}
OPEN = {name: member for name, member in SERVED.items() if name != "parallelism"}
CONFIG = {"source": "huggingface_config", "config": {"model_type": "llama"}}
LAYER = {"kind": "normalization", "size": 64}


TRAINED = {**SERVED, "workload": {"kind": "training"}}
ONE_STAGE = {"pipeline_schedule": "one_f_one_b", "virtual_stages": 1}
SIZED = {
    **SERVED,
    "workload": {"kind": "training", "micro_batch_size": 1},
    "parallelism": {"data": 8, "sharding": "zero_1", "sequence_parallel": False, **ONE_STAGE},
}


def site(**members):
    return {**BILL, "site": {"time_zone": "America/Chicago", **members}}


LONG = {
    "a configuration": ("memory", {**SMALL, "model": CONFIG}),
    "layers": ("memory", {**SMALL, "model": {"source": "architecture", "architecture": {"layers": [LAYER]}}}),
    "an open layout of a service": ("cost", OPEN),
    "a scaling curve": ("throughput", {**SERVED, "scaling": {}}),
    "a simulation": ("throughput", {**SERVED, "solver": {"kind": "simulated"}}),
    "prefill and decode apart": (
        "throughput",
        {
            **SERVED,
            "workload": {
                **SERVED["workload"],
                "disaggregated": {"prefill": {"replicas": 1}, "decode": {"replicas": 1}},
            },
        },
    ),
    "a training run that leaves its layout open": ("memory", TRAINED),
    "a pipeline without a schedule": ("memory", {**SIZED, "parallelism": {"pipeline": 8}}),
    "a tariff": ("utility-bill", site(electricity={"tariff_id": "pge-e19-secondary-2017"})),
    "a site of the catalog": ("utility-bill", site(site_id="aws-fleet")),
    "a load beside the run": (
        "utility-bill",
        site(
            electricity={"price_per_kwh": {"amount": "0.1", "currency_code": "USD"}},
            baseline_load={"kind": "constant", "kw": 1},
        ),
    ),
}

SEARCHED = ("a scaling curve", "a simulation", "prefill and decode apart")


def asked(operation, body):
    return TypeAdapter(ESTIMATES[operation].question).validate_json(json.dumps(body))


class TestWhichTakeLong:
    @pytest.mark.parametrize("name", LONG)
    def test_what_may(self, snapshot, name):
        operation, body = LONG[name]
        assert is_long(asked(operation, body), 500, snapshot)

    @pytest.mark.parametrize(
        ("operation", "body"),
        [
            *((name, EXAMPLES[f"estimate_{name.replace('-', '_')}"]) for name in ESTIMATES),
            ("memory", SIZED),
            ("throughput", SERVED),
            ("cost", SERVED),
            ("utility-bill", SERVED),
        ],
    )
    def test_what_does_not(self, snapshot, operation, body):
        question = asked(operation, body)
        assert not is_long(question, MOST_SHORT_BYTES, snapshot)
        assert is_long(question, MOST_SHORT_BYTES + 1, snapshot)

    @pytest.mark.parametrize(
        ("workload", "most"),
        [
            ({"kind": "inference"}, MOST_SHORT_LAYERS),
            ({"kind": "training", "micro_batch_size": 1}, MOST_SHORT_TRAINED),
            (
                {"kind": "training", "micro_batch_size": 1, "adaptation": {"kind": "qlora"}},
                MOST_SHORT_ADAPTED,
            ),
        ],
    )
    def test_a_model_of_many_layers(self, snapshot, workload, most):
        """Trained with adapters on 4,096 devices, one of 47 entries took the loop 0.6 s."""
        rows = sorted(snapshot.models.values(), key=lambda row: len(row.architecture["layers"]))
        counts = [len(row.architecture["layers"]) for row in rows]
        place = bisect_right(counts, most)
        for row, expected in ((rows[place - 1], False), (rows[place], True)):
            model = {"source": "catalog", "id": row.source["id"]}
            question = asked("memory", {**SMALL, "model": model, "workload": workload})
            assert is_long(question, 500, snapshot) is expected


@pytest.fixture
def threads(monkeypatch):
    """Where functions were called that :meth:`watch` was told of."""
    seen = []

    class Threads:
        def watch(self, module, name):
            real = getattr(module, name)

            def watched(*arguments, **options):
                seen.append(threading.current_thread())
                return real(*arguments, **options)

            monkeypatch.setattr(module, name, watched)

        def queue(self):
            """Line of long work in which all were called, or None."""
            names = {thread.name for thread in seen}
            assert len(names) == 1
            return name if (name := names.pop()) in (QUESTIONS, SEARCHES, VERIFICATIONS) else None

    return Threads()


@ON_SQLITE
class TestWhereTheyAreAnswered:
    @pytest.mark.parametrize("operation", ESTIMATES)
    def test_short_ones_on_the_loop_and_batches_beside_it(self, reader, threads, operation):
        threads.watch(router, "answer_question")
        body = EXAMPLES[f"estimate_{operation.replace('-', '_')}"]
        assert reader.post(f"/v1/estimates/{operation}", body).status_code == 200
        assert threads.queue() is None

    @pytest.mark.parametrize("name", LONG)
    def test_long_ones_beside_it(self, reader, threads, name):
        threads.watch(router, "answer_question")
        operation, body = LONG[name]
        assert reader.post(f"/v1/estimates/{operation}", body).status_code in (200, 422)
        assert threads.queue() == (SEARCHES if name in SEARCHED else QUESTIONS)

    @pytest.mark.parametrize(
        ("asked", "queue", "watched"),
        [
            *(
                ((f"/v1/estimates/{name}", f"estimate_{said}"), queue, (router, "answer_question"))
                for name, said, queue in (
                    ("summary", "summary", QUESTIONS),
                    ("cost:compare", "cost_comparison", QUESTIONS),
                    ("cost:export", "cost_export", QUESTIONS),
                    ("utility-bill:export", "utility_bill_export", QUESTIONS),
                    ("throughput:frontier", "throughput_frontier", SEARCHES),
                    ("utility-bill:shift", "utility_bill_shift", SEARCHES),
                    ("utility-bill:compare", "utility_bill_comparison", SEARCHES),
                    ("utility-bill:cap", "utility_bill_power_cap", SEARCHES),
                    ("memory:batch", "memory_batch", SEARCHES),
                    ("utility-bill:batch", "utility_bill_batch", SEARCHES),
                )
            ),
            (("/v1/tariffs:bill", "bill_tariff"), QUESTIONS, (router, "answer_question")),
            (("/v1/plans:fleet", "plan_fleet"), SEARCHES, (creation, "answer_question")),
            (("/v1/plans", "create_plan"), SEARCHES, (creation, "answer_question")),
            (("/v1/quotes", "create_quote"), QUESTIONS, (quotes, "build_quote")),
            (("/v1/models:import", "import_model"), QUESTIONS, (models, "read_config")),
            (("/v1/grids:import", "import_grid"), QUESTIONS, (grids, "read_table")),
            (("/v1/tariffs:import", "import_tariff"), QUESTIONS, (tariffs, "read_tariff")),
            (("/v1/offers:import", "import_offers"), SEARCHES, (offers, "read_list")),
            (("/v1/token-prices:import", "import_token_prices"), SEARCHES, (token_prices, "read_list")),
            (("/v1/evidence:import", "import_evidence"), SEARCHES, (evidence, "read_evidence")),
            (("/v1/actuals:import", "import_actuals"), SEARCHES, (actuals, "parse_bill")),
        ],
    )
    def test_whatever_takes_long_beside_it(self, client, threads, asked, queue, watched):
        client.post("/v1/cost-centers", EXAMPLES["create_cost_center"])  # the quote's
        threads.watch(*watched)
        url, example = asked
        answered = client.post(url, EXAMPLES[example])
        assert answered.status_code < 500, answered.text
        assert threads.queue() == queue

    @pytest.mark.parametrize(
        ("written", "example"),
        [
            ((catalog, "create_row", "/v1/models"), "create_model"),
            ((catalog, "create_row", "/v1/tariffs"), "create_tariff"),
            ((catalog, "create_row", "/v1/grids"), "create_grid"),
            ((catalog, "update_row", "/v1/models/example-decoder"), "update_model"),
            ((catalog, "update_row", "/v1/tariffs/example-large-power"), "update_tariff"),
            ((transactions, "compare_import", "/v1/offers:import"), "import_offers"),
            ((transactions, "compare_import", "/v1/token-prices:import"), "import_token_prices"),
        ],
    )
    @pytest.mark.parametrize("is_large", [True, False])
    def test_large_writes_beside_it(self, client, threads, written, example, is_large):
        """Eight prices of 10,000 models side by side took 10 s, however long their callers waited."""
        module, name, url = written
        is_change = example.startswith("update")
        for kind in ("model", "tariff"):
            if is_change:
                client.post(f"/v1/{kind}s", EXAMPLES[f"create_{kind}"])
        threads.watch(module, name)
        raw = json.dumps(EXAMPLES[example]) + " " * (web.LARGE_BODY_BYTES * is_large)
        method = "PATCH" if is_change else "POST"
        headers = {"content-type": "application/json", "if-match": "*"}
        answered = client.request(method, url, content=raw, headers=headers)
        assert answered.status_code in (200, 201), answered.text
        assert threads.queue() == (SEARCHES if is_large else None)

    def test_the_form_beside_it(self, reader, threads):
        threads.watch(form, "_answer_all")
        token = re.search(r'name="form_token" value="([0-9a-f]+)"', reader.get("/ask").text).group(1)
        typed = {"model": "", "parameters_billions": "8", "utilization_percent": "40"}
        sent = {**AT_FIRST, **typed, "total_tokens_billions": "1", "form_token": token}
        assert reader.request("POST", "/ask/answer", data=sent).status_code == 200
        assert threads.queue() == QUESTIONS

    def test_a_verification_beside_it(self, reader, threads):
        """Twenty of 60,000 events, which a tenant asked for at once, took readiness 31 s."""
        threads.watch(Verifier, "verify_tenant")
        assert reader.get("/v1/audit-events:verify").json()["valid"]
        assert threads.queue() == VERIFICATIONS

    def test_a_quote_of_a_simulation_in_the_line_of_searches(self, reader, threads):
        threads.watch(quotes, "build_quote")
        asked = {"operation": "throughput", "name": "q", "request": LONG["a simulation"][1]}
        assert reader.post("/v1/quotes", asked).status_code < 500
        assert threads.queue() == SEARCHES

    def test_a_large_body_is_read_beside_it(self, reader, threads):
        threads.watch(requests, "check_limits")
        body = json.dumps(SMALL) + " " * web.LARGE_BODY_BYTES
        headers = {"content-type": "application/json"}
        for url in ("/v1/estimates/memory", "/v1/sites"):
            assert reader.request("POST", url, content=body, headers=headers).status_code in (200, 422)
        assert threads.queue() == SEARCHES


@ON_SQLITE
def test_small_questions_and_probes_do_not_wait(reader, monkeypatch):
    began, go_on = threading.Semaphore(0), threading.Event()
    question = EXAMPLES["estimate_throughput_frontier"]
    body = ThroughputFrontierRequest.model_validate_json(json.dumps(question))
    answer = frontier.estimate_frontier(body, shipped())

    def held(*_):
        began.release()
        assert go_on.wait(PATIENCE)
        return answer

    monkeypatch.setattr(frontier, "estimate_frontier", held)

    async def scene():
        transport = httpx.ASGITransport(app=reader.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            ask = partial(client.post, "/v1/estimates/throughput:frontier", json=question)
            waiting = [asyncio.create_task(ask()) for _ in range(8)]
            assert await asyncio.to_thread(began.acquire, timeout=PATIENCE)
            small = await client.post("/v1/estimates/memory", json=SMALL)
            probes = [(await client.get(path)).status_code for path in ("/livez", "/readyz")]
            early = [task.done() for task in waiting]
            go_on.set()
            answers = await asyncio.gather(*waiting)
        assert (small.status_code, probes, any(early)) == (200, [204, 200], False)
        assert [answer.status_code for answer in answers] == [200] * 8

    asyncio.run(scene())


@ON_SQLITE
def test_what_takes_too_long_is_answered_with_a_problem(reader, monkeypatch):
    go_on = threading.Event()
    monkeypatch.setattr(frontier, "estimate_frontier", lambda *_: go_on.wait(PATIENCE))
    monkeypatch.setitem(reader.app.state.work_queues, SEARCHES, LongWork(SEARCHES, 0.05))
    refused = reader.post("/v1/estimates/throughput:frontier", EXAMPLES["estimate_throughput_frontier"])
    go_on.set()
    assert refused.status_code == 503
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["code"] == "OUT_OF_TIME"


@ON_SQLITE
def test_they_are_counted(reader):
    found = reader.get("/metrics").text
    for queue in (QUESTIONS, SEARCHES):
        assert f'ironlaw_long_work_running{{queue="{queue}"}} 0.0' in found
        assert f'ironlaw_long_work_waiting{{queue="{queue}"}} 0.0' in found
        assert f'ironlaw_long_work_refused_total{{queue="{queue}",reason="busy"}}' in found


class TestStopping:
    pytestmark = LOOPBACK

    def test_a_server_does_not_wait_for_minutes_of_work(self, tmp_path):
        curve = {**SERVED, "workload": {"kind": "training"}, "scaling": {}}
        batch = {"requests": [curve] * 500}
        asking = httpx.Timeout(PATIENCE, read=None)
        with serving(tmp_path, IRONLAW_ANSWER_SECONDS="3600", IRONLAW_BACKGROUND_THREADS="0") as server:
            ask = partial(httpx.post, f"{server.address}/v1/estimates/throughput:batch", timeout=asking)
            callers = [threading.Thread(target=_ignoring, args=(ask, batch), daemon=True) for _ in range(20)]
            for caller in callers:
                caller.start()
            deadline = time.monotonic() + PATIENCE
            while 'ironlaw_long_work_running{queue="searches"} 1.0' not in server.client.get("/metrics").text:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            server.process.send_signal(signal.SIGTERM)
            # It gives them ten seconds; the questions take far longer than this.
            server.process.wait(timeout=PATIENCE)


def _ignoring(ask, batch):
    with contextlib.suppress(httpx.TransportError):
        ask(json=batch)

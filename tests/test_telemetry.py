"""Traces and metrics, as a collector of OpenTelemetry receives them from a served process."""

import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from service.app.examples import EXAMPLES
from service.app.telemetry import start_telemetry
from service.kit.tracing import get_traceparent, open_span
from tests import forked
from tests.serving import run, serving
from tests.test_background import worker
from tests.webhooks.receiving import Receiver, answer

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACED = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
TOLD = "webhook approval.requested"
QUOTE = {name: value for name, value in EXAMPLES["create_quote"].items() if name != "cost_center_id"}


class Collector(ThreadingHTTPServer):
    """Takes what is exported to it by OTLP over HTTP."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Export)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.bodies = defaultdict(list)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def environment(self, **variables):
        given = {"OTEL_EXPORTER_OTLP_ENDPOINT": self.address, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        return {**given, "OTEL_METRIC_EXPORT_INTERVAL": "200", **variables}

    def resources(self, signal, message, member):
        return [
            resource
            for body in list(self.bodies[f"/v1/{signal}"])
            for resource in getattr(message.FromString(body), member)
        ]

    def spans(self):
        found = self.resources("traces", ExportTraceServiceRequest, "resource_spans")
        return [span for resource in found for scope in resource.scope_spans for span in scope.spans]

    def metrics(self):
        """The last state of each metric."""
        found = self.resources("metrics", ExportMetricsServiceRequest, "resource_metrics")
        scopes = [scope for resource in found for scope in resource.scope_metrics]
        return {metric.name: metric for scope in scopes for metric in scope.metrics}

    def waits_for(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, [span.name for span in self.spans()]
            time.sleep(0.02)


class _Export(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["content-length"])
        self.server.bodies[self.path].append(self.rfile.read(length))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        """Says nothing."""


@pytest.fixture
def collector():
    started = Collector()
    yield started
    started.shutdown()
    started.server_close()


@pytest.fixture
def receiver():
    started = Receiver()
    yield started
    started.close()


def attributes_of(span):
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def named(spans, name):
    """The only span of a name."""
    (span,) = (each for each in spans if each.name == name)
    return span


def of_trace(collector):
    return [span for span in collector.spans() if span.trace_id.hex() == TRACE]


def url_of(database):
    return database.url.render_as_string(hide_password=False)


def ask_approval(client):
    """A quote is submitted, by requests of one trace."""
    assert client.post("/v1/approval-policies", json=EXAMPLES["create_approval_policy"]).status_code == 201
    quote = client.post("/v1/quotes", json=QUOTE, headers=TRACED)
    assert quote.status_code == 201
    asked = {"content_digest": quote.json()["content_digest"]}
    submitted = client.post(f"/v1/quotes/{quote.json()['id']}:submit", json=asked, headers=TRACED)
    assert submitted.status_code == 201, submitted.text


@pytest.fixture
def traced(database, tmp_path, collector, receiver):
    """Spans of a quote from its request, to one process, to the webhook that another one tells."""
    own = collector.environment(IRONLAW_DATABASE_URL=url_of(database), IRONLAW_WEBHOOK_NETWORKS="127.0.0.0/8")
    receiver.script["/told"] = answer(204)
    with serving(tmp_path, **own, IRONLAW_BACKGROUND_THREADS="0") as server, worker(tmp_path, **own):
        told = {"url": receiver.url("/told"), "event_types": ["approval.requested"]}
        assert server.client.post("/v1/webhooks", json=told).status_code == 201
        ask_approval(server.client)
        collector.waits_for(lambda: any(span.name == TOLD for span in of_trace(collector)))
    return of_trace(collector)


def test_a_quote_is_one_trace_from_request_to_webhook(traced, receiver):
    by_id = {span.span_id.hex(): span for span in traced}
    assert {span.parent_span_id.hex() for span in traced} == {CALLER} | (
        by_id.keys() & {span.parent_span_id.hex() for span in traced}
    )
    request = named(traced, "POST /v1/quotes")
    assert (request.parent_span_id.hex(), request.kind) == (CALLER, Span.SPAN_KIND_SERVER)
    assert request.span_id in {span.parent_span_id for span in traced if span.name == "estimate"}
    delivery = named(traced, TOLD)
    for sent in (delivery, named(traced, "job events.publish")):
        transaction = by_id[sent.parent_span_id.hex()]
        assert transaction.name == "database write"
        assert by_id[transaction.parent_span_id.hex()].name == "POST /v1/quotes/{id}:submit"
    ((headers, _),) = receiver.at("/told")
    assert headers["traceparent"] == f"00-{TRACE}-{delivery.span_id.hex()}-01"
    of_request, of_delivery = attributes_of(request), attributes_of(delivery)
    assert (of_request["http.route"], of_request["ironlaw.tenant_id"]) == ("/v1/quotes", "default")
    assert (of_request["http.response.status_code"], of_delivery["http.response.status_code"]) == (201, 204)
    said = [str(value) for span in traced for value in attributes_of(span).values()]
    assert not any(text in value for text in (QUOTE["name"], "127.0.0.1", "/told") for value in said)


def test_counters_of_every_process_reach_the_collector(tmp_path, collector):
    with serving(tmp_path, **collector.environment()) as server:
        for _ in range(3):
            assert server.client.get("/v1/links").status_code == 200

        def counts():
            requests = collector.metrics().get("ironlaw_requests")
            points = requests.sum.data_points if requests else ()
            return {attributes_of(each)["operation"]: each.as_double for each in points}

        collector.waits_for(lambda: counts().get("list_links") == 3)
        rendered = server.client.get("/metrics").text
    metrics = collector.metrics()
    assert metrics["ironlaw_requests"].sum.is_monotonic
    assert metrics["ironlaw_build_info"].gauge.data_points[0].as_double == 1
    (times,) = (
        each
        for each in metrics["ironlaw_request_seconds"].histogram.data_points
        if attributes_of(each)["operation"] == "list_links"
    )
    assert (times.count, sum(times.bucket_counts)) == (3, 3)
    assert len(times.bucket_counts) == len(times.explicit_bounds) + 1
    assert not times.HasField("min")
    assert f'ironlaw_request_seconds_sum{{operation="list_links"}} {times.sum}' in rendered


def test_a_trace_that_cannot_be_read_begins_anew(tmp_path, collector):
    broken = {"traceparent": f"00-{'0' * 32}-{CALLER}-01"}
    with serving(tmp_path, **collector.environment()) as server:
        assert server.client.get("/v1/links/none", headers=broken).status_code == 404
        collector.waits_for(lambda: any(span.name == "GET /v1/links/{id}" for span in collector.spans()))
        logged = server.client.get("/v1/links/none")
    asked = [span for span in collector.spans() if span.name == "GET /v1/links/{id}"]
    assert logged.status_code == 404
    assert all(not span.parent_span_id and span.trace_id.hex() != "0" * 32 for span in asked)
    assert {span.status.code for span in asked} == {Status.STATUS_CODE_UNSET}


def test_a_collector_that_is_away_keeps_nobody_from_an_answer_or_an_end(tmp_path):
    with serving(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9") as server:
        assert server.client.get("/v1/links").status_code == 200
        server.process.terminate()
        server.process.wait(timeout=25)  # the library itself waits for thirty seconds


class TestWithoutACollector:
    def test_nothing_of_an_exporter_is_imported(self, tmp_path):
        program = (
            "import sys; from service.app.telemetry import start_telemetry as start; start().stop(); "
            "import service.app.application; "
            "exporters = ('opentelemetry.sdk', 'opentelemetry.exporter', 'requests', 'google'); "
            "print([name for name in sys.modules if name.startswith(exporters)])"
        )
        assert forked.Process(exec, program, {}, folder=tmp_path).wait() == 0
        assert (tmp_path / "out").read_text() == "[]\n"

    def test_no_span_is_opened_and_none_is_sent_or_stored(self):
        with open_span("request") as span:
            assert (span, get_traceparent()) == (None, None)

    @pytest.mark.parametrize(
        "variable",
        [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}],
    )
    def test_it_can_be_turned_off(self, monkeypatch, variable):
        for name, value in {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", **variable}.items():
            monkeypatch.setenv(name, value)
        started = start_telemetry()
        assert (started.tracing, started.metrics) == (None, None)

    def test_another_protocol_is_refused_at_the_start(self, tmp_path):
        own = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
        _, errors, status = run("serve", data_dir=tmp_path, IRONLAW_PORT="0", **own)
        assert (errors, status) == (
            "ironlaw: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, not grpc\n",
            1,
        )

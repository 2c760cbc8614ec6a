"""Metrics say how things stand; rules and dashboards read what there is, and every alert is explained."""

import json
import re
from datetime import timedelta
from pathlib import Path

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update

from service.app.examples import EXAMPLES
from service.approvals.tables import ApprovalRow
from service.budgets.actuals.tables import ActualChargeRow
from service.kit.clock import now
from service.kit.metrics import count_refusal, count_request
from service.nodes.tables import NodeRow
from service.webhooks import repository as webhooks
from service.webhooks.tables import WebhookRow
from tests.applications import ask_job
from tests.approvals.deciding import Actor, governed, policy, step

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "deploy" / "observability"
GROUPS = yaml.safe_load((HERE / "prometheus" / "rules.yml").read_text())["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = [rule for rule in RULES if "alert" in rule]
RECORDED = {rule["record"] for rule in RULES if "record" in rule}
BOARDS = [json.loads(path.read_text()) for path in sorted((HERE / "grafana" / "dashboards").glob("*.json"))]
PANELS = [panel for board in BOARDS for panel in board["panels"]]
SQL = [
    (panel["title"], target["rawSql"])
    for panel in PANELS
    for target in panel["targets"]
    if "rawSql" in target
]
EXPRESSIONS = [rule["expr"] for rule in RULES] + [
    target["expr"].replace("$__rate_interval", "5m")
    for panel in PANELS
    for target in panel["targets"]
    if "expr" in target
]
OF_PROMETHEUS = {"job", "instance"}
"""Labels that the scrape adds."""
DAY = timedelta(days=1)


def parts(expression):
    """Every selector of an expression, and the labels by which it groups."""
    for name in ("expr", "lhs", "rhs", "vector_selector"):
        if (inner := getattr(expression, name, None)) is not None:
            yield from parts(inner)
    for argument in getattr(expression, "args", None) or []:
        yield from parts(argument)
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression, set()
    elif isinstance(expression, promql_parser.AggregateExpr) and expression.modifier is not None:
        yield None, set(expression.modifier.labels)


def stand(callers):
    """Something of all that metrics and panels show; the approval that waits."""
    database = callers.client.app.state.database
    asker, chief = Actor(callers), Actor(callers)
    assert governed(asker, policy(step(chief))).status_code == 201
    for name in ("create_cost_center", "create_budget"):
        path = {"create_cost_center": "cost-centers", "create_budget": "budgets"}[name]
        today = now().date()
        runs = {"starts_on": str(today - DAY), "ends_on": str(today + DAY)} if path == "budgets" else {}
        assert asker.post(f"/v1/{path}", EXAMPLES[name] | runs).status_code == 201
    quotes = [asker.quote(), asker.quote()]
    approvals = [asker.submit(quote).json() for quote in quotes]
    assert chief.decide(approvals[0]).status_code == 200
    assert asker.post("/v1/webhooks", EXAMPLES["create_webhook"]).status_code == 201
    made = asker.post("/v1/webhooks", EXAMPLES["create_webhook"]).json()["webhook"]
    callers.node()
    ask_job(database)
    ask_job(database, state="dead")
    count_request("tests", 500, 0.1)
    count_refusal(503, "BUSY")
    with database.open_writer() as session:
        session.execute(update(NodeRow).values(last_seen_at=now() - DAY))
        late = {"submitted_at": now() - DAY, "acts_at": now() - DAY / 2}
        session.execute(update(ApprovalRow).where(ApprovalRow.id == approvals[1]["id"]).values(late))
        webhook = webhooks.get_webhook(session, "default", made["id"])
        webhooks.add_delivery(session, webhook, delivery_id="d", event_id="e", event_type="webhook.test")
        session.execute(update(WebhookRow).where(WebhookRow.id == webhook.id).values(disabled_reason="GONE"))
        # A moment of purchase that the budget of two days has.
        at = now()
        committed = {"committed_micros": 1_700_000_000_000, "committed_currency_code": "USD"}
        committed |= {"cost_center_id": "research", "due_from": at, "due_until": at}
        approved = update(ApprovalRow).where(ApprovalRow.id == approvals[0]["id"])
        session.execute(approved.values(committed))
        session.add(charged(quotes[0]))
    return approvals[1]


def charged(quote):
    return ActualChargeRow(
        tenant_id="default", import_id="i", number=1, billing_starts_at=now(), day="2026-11-22",
        quote_id=quote["id"], cost_center_id="research", service_category="Compute",
        currency_code=quote["headlines"]["total"]["currency_code"], billed_micros=2_000_000,
        effective_micros=2_000_000,
    )  # fmt: skip


@pytest.fixture
def scraped(callers):
    """Every sample of a service in which something of all has happened."""
    stand(callers)
    text = Actor(callers, "metrics:read").get("/metrics").text
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def test_metrics_say_how_decisions_stand(scraped):
    found = {(sample.name, *sample.labels.values()): sample.value for sample in scraped}
    assert found["ironlaw_quotes", "approved"] == found["ironlaw_quotes", "pending"] == 1
    assert found["ironlaw_approvals", "approved"] == found["ironlaw_approvals", "pending"] == 1
    assert found["ironlaw_approvals_waiting_seconds",] == pytest.approx(86_400, abs=60)
    assert found["ironlaw_approvals_overdue_seconds", "pending"] == pytest.approx(43_200, abs=60)
    assert found["ironlaw_budgets", "80_to_100_percent"] == 1
    assert found["ironlaw_webhooks", "no"] == found["ironlaw_webhooks", "GONE"] == 1
    assert found["ironlaw_webhook_deliveries", "waiting"] == 1
    assert found["ironlaw_nodes_silent", "cpu"] == 1


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_every_expression_reads_what_there_is(scraped):
    """Names and labels of a live scrape; and some sample has each value that is asked for."""
    samples = {}
    for sample in scraped:
        samples.setdefault(sample.name, []).append(sample.labels)
    for text in EXPRESSIONS:
        found = list(parts(promql_parser.parse(text)))
        selectors = [selector for selector, _ in found if selector is not None]
        assert selectors, text
        read = [selector for selector in selectors if selector.name not in RECORDED | {"up"}]
        grouped = set().union(*(labels for _, labels in found)) - OF_PROMETHEUS
        for selector in read:
            assert selector.name in samples, f"{selector.name} of {text}"
            for matcher in selector.matchers.matchers:
                assert any(asks(matcher, labels) for labels in samples[selector.name]), f"{matcher} of {text}"
            assert grouped <= {label for labels in samples[selector.name] for label in labels}, text


def asks(matcher, labels):
    """Whether a label is what a matcher asks for."""
    if matcher.name not in labels:
        return False
    op, value = str(matcher.op), labels[matcher.name]
    is_same = bool(re.fullmatch(matcher.value, value)) if "Re" in op else value == matcher.value
    return is_same != ("Not" in op)


@pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
def test_every_query_shows_rows(callers):
    """Each as Grafana sends it, to the schema as it is migrated."""
    stand(callers)
    with callers.client.app.state.database.engine.connect() as connection:
        for title, statement in SQL:
            assert connection.exec_driver_sql(statement).all(), title


def test_every_alert_is_explained():
    page = (ROOT / "docs" / "operations" / "alerts.md").read_text()
    titles = re.findall(r"^## (Ironlaw\w+)$", page, re.MULTILINE)
    assert titles == [rule["alert"] for rule in ALERTS]
    for rule in ALERTS:
        assert rule["annotations"]["runbook_url"] == f"docs/operations/alerts.md#{rule['alert'].lower()}"


def test_dashboards_name_the_sources_that_are_provisioned():
    provisioned = yaml.safe_load(
        (HERE / "grafana" / "provisioning" / "datasources" / "ironlaw.yml").read_text()
    )
    known = {(source["type"], source["uid"]) for source in provisioned["datasources"]}
    assert {(panel["datasource"]["type"], panel["datasource"]["uid"]) for panel in PANELS} == known
    assert len({board["uid"] for board in BOARDS}) == len(BOARDS)

"""Every operation that may write is recorded, or is named here with the reason why it is not."""

from service.audit.service import _build_call

_ANSWERS = "computes an answer and stores nothing"
_WORK = "moves work that is under way; what comes of it is recorded where it decides"
_MEASURED = "keeps what a node measured, under a digest of its own; what is drawn from it is recorded"

NOT_RECORDED = {
    **dict.fromkeys(("ask", "ask_again", "bill_tariff"), _ANSWERS),
    **dict.fromkeys(("heartbeat_node", "claim_lease", "renew_lease", "complete_lease"), _WORK),
    **dict.fromkeys(("put_node_inventory", "report_benchmark_result"), _MEASURED),
}
RECORDED_BY_THEMSELVES = {
    "enrol_node": "nobody has a key there: the node that the token lets in is the subject",
    "rotate_node_credential": "the answer is a secret, which no repeated request may see again",
    "logout": "a form of a page; what it ends is ended by the operation of the API",
    "receive_security_event": "ends what a person acts by as `end_sessions` does, once for each tenant",
    "decide_on_page": "a form of a page; it decides by the operation of the API",
    "decide_by_link": "a form of a page; whoever the link is for is the subject",
    "quote_question": "a form of a page; it makes a quote by the operation of the API",
    "plan_on_page": "a form of a page; it makes a plan by the operation of the API",
    "cancel_plan_on_page": "a form of a page; it cancels by the operation of the API",
    "quote_candidate": "a form of a page; it makes a quote by the operation of the API",
    "submit_on_page": "a form of a page; it submits by the operation of the API",
}


def is_recorded(dependant):
    """Whether an operation runs under the call of a stored write."""
    return dependant.call is _build_call or any(is_recorded(each) for each in dependant.dependencies)


def test_every_operation_that_may_write_is_recorded(app):
    routes = [route for route in app.routes if hasattr(route, "dependant")]
    writing = [route for route in routes if set(route.methods or ()) - {"GET", "HEAD"}]
    left = {
        route.name
        for route in writing
        if not is_recorded(route.dependant) and not route.path.startswith("/v1/estimates/")
    }
    assert left == NOT_RECORDED.keys() | RECORDED_BY_THEMSELVES.keys()
    assert not NOT_RECORDED.keys() & RECORDED_BY_THEMSELVES.keys()
    assert len(writing) - len(left) > 90


def test_operations_on_nodes_that_are_recorded_by_themselves(client):
    from tests.nodes.hosts import Host, token  # noqa: PLC0415

    host = Host(client).enrol(token(client))
    assert host.heartbeat().status_code == 200
    assert host.rotate().status_code == 200
    told = [event["operation"] for event in client.get("/v1/audit-events").json()["items"]]
    assert {"enrol_node", "confirm_node_credential", "rotate_node_credential"} <= set(told)
    assert client.get("/v1/audit-events:verify").json()["valid"]

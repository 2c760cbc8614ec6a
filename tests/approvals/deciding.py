"""Quotes that are submitted, and who decides about them."""

from service.kit.security.credentials import parse_id
from tests.applications import bearing

QUOTED = {
    "operation": "cost",
    "name": "A week of training",
    "request": {
        "model": {"source": "parameter_count", "parameter_count": 1_000_000_000},
        "workload": {"kind": "training", "sequence_length": 2048, "total_tokens": 10_000_000_000},
        "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 8},
        "efficiency": {"source": "assumed", "utilization": 0.4},
        "rental": {"price_per_device_hour": {"amount": "2.5", "currency_code": "USD"}},
    },
}


class Actor:
    """Somebody with a key of their own."""

    def __init__(self, callers, *scopes, by=None):
        self.secret = made_by(callers, by, scopes or ("*:*",)) if by else callers.key(*(scopes or ("*:*",)))
        self.name = f"api_key:{parse_id(self.secret)}"
        self.callers, self._client = callers, callers.client

    def post(self, path, body, **options):
        headers = {**bearing(self.secret), **options.pop("headers", {})}
        return self._client.post(path, body, headers=headers, **options)

    def get(self, path, **options):
        return self._client.get(path, headers=bearing(self.secret), **options)

    def request(self, method, path, **options):
        headers = {**bearing(self.secret), **options.pop("headers", {})}
        return self._client.request(method, path, headers=headers, **options)

    def quote(self, **members):
        made = self.post("/v1/quotes", QUOTED | members)
        assert made.status_code == 201, made.text
        return made.json()

    def submit(self, quote, **options):
        body = {"content_digest": quote["content_digest"]}
        return self.post(f"/v1/quotes/{quote['id']}:submit", body, **options)

    def decide(self, approval, verb="approve", **members):
        body = {"content_digest": approval["content_digest"], **members}
        return self.post(f"/v1/approvals/{approval['id']}:{verb}", body)


def made_by(callers, maker, scopes):
    """The secret of a key that somebody with a key has made."""
    made = maker.post("/v1/api-keys", {"name": "another", "scopes": list(scopes)})
    assert made.status_code == 201, made.text
    callers.client.app.state.held_keys.refresh()
    return made.json()["secret"]


def at_once(admin):
    """Let every change of policies hold at once; the tenant has none yet."""
    headers = {"If-Match": "*"}
    set_ = admin.request("PATCH", "/v1/approval-settings", json={"change_delay_seconds": 0}, headers=headers)
    assert set_.status_code == 200, set_.text


def governed(asker, body):
    """Somebody else than ``asker``, who could not ask under it then, writes a policy that holds at once."""
    author = Actor(asker.callers)
    at_once(author)
    return author.post("/v1/approval-policies", body)


def policy(*steps, name="policy", **conditions):
    body = {"id": name, "name": name, "conditions": conditions, "steps": list(steps)}
    return body if steps else {**body, "automatic": True}


def step(*approvers, quorum=1, **members):
    return {"name": "step", "approvers": [one.name for one in approvers], "quorum": quorum, **members}

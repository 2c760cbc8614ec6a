"""What somebody has reached at the end of a walk that they were not given, and what of that is meant."""

from typing import NamedTuple

from service.kit.security.principals import can_grant
from tests.escalation.world import FOREIGN, OWN

READS = {
    "approval": "approvals:read",
    "benchmark": "benchmark-results:read",
    "budget": "budgets:read",
    "policy": "approval-policies:read",
    "quote": "quotes:read",
    "webhook": "webhooks:read",
}
"""The scope that reads what events carry, by the first word of their type."""
_TESTED = "webhook.test"
"""It tells a webhook of itself."""


class Finding(NamedTuple):
    """Something that was reached."""

    kind: str
    detail: str


def findings(holder):
    """All that a holder has reached beyond the scopes that they began with."""
    parts = (_scopes, _secrets, _tenants, _events, _pages, _decisions, _own, _policies, _nodes)
    return {finding for part in parts for finding in part(holder)}


def may(holder, scope):
    """Whether the scopes that a holder began with cover another."""
    return can_grant(frozenset(holder.granted), scope)


def _scopes(holder):
    for held in holder.hands.values():
        yield from (Finding("scope", f"{scope} by {held.kind}") for scope in held.scopes)


def _secrets(holder):
    yield from (Finding("secret", name) for name in holder.shown)


def _tenants(holder):
    done = (name for name, resource in holder.world.done_elsewhere() if not resource.startswith("tenants/"))
    yield from (Finding("another tenant is changed", name) for name in done)
    yield from (Finding("another tenant is read", name) for name in holder.leaked)
    yield from (
        Finding("another tenant is read", message["type"])
        for message in holder.world.told()
        if message["data"].get("name") == FOREIGN
    )
    yield from (
        Finding("another tenant is acted for", held.kind)
        for held in holder.hands.values()
        if held.tenant != OWN
    )


def _events(holder):
    for message in holder.world.told():
        topic = message["type"].partition(".")[0]
        if message["type"] != _TESTED and not may(holder, READS.get(topic, "*:*")):
            yield Finding("events are read", topic)


def _pages(holder):
    if holder.has_read_by_link and not may(holder, "approvals:read"):
        yield Finding("an approval is read", "by a link for a person")


def _decisions(holder):
    """Decisions that count, by which way the holder came to them; two in a step are a quorum of one."""
    for approval in holder.world.approvals():
        for step in approval.steps:
            ways = [way for made in approval.list_decisions(step) if (way := _way(holder, made))]
            yield from (Finding("a decision counts", way) for way in ways)
            if len(ways) > 1:
                yield Finding("more than one decision of a step counts", " and ".join(sorted(ways)))


def _way(holder, made):
    if made.linked_by is not None:
        return "by a link for a person" if made.linked_by in holder.names else ""
    if made.decided_by not in holder.names:
        return ""
    if made.delegation_id is not None:
        return "by a delegation"
    return "by a rotated key" if made.decided_by in holder.world.names else "as an approver of their own"


def _own(holder):
    for approval in holder.world.approvals():
        is_others = approval.row.id in holder.world.own.rows["approvals"]
        if is_others or approval.row.state != "approved":
            continue
        if not holder.names.isdisjoint(approval.row.asked_by):
            asked = any(approval.list_decisions(step) for step in approval.steps)
            yield Finding("an own quote is approved", "by a decision" if asked else "without a decision")


def _policies(holder):
    if holder.passes:
        yield Finding("a quote of others passes", "without a decision")


def _nodes(holder):
    known, put_out = holder.world.nodes(), holder.world.put_out
    hosts = {node.installation_id: node.state for node in put_out.values() if node.tenant_id == OWN}
    for node in known:
        before = put_out[node.id].state if node.id in put_out else hosts.get(node.installation_id)
        if before is None or node.state in (before, "revoked"):
            continue
        # Whoever has nodes:write lifts what was put out.
        if not may(holder, "nodes:write"):
            yield Finding("a node comes back", before)


class IntendedFinding(NamedTuple):
    """A finding that is what scopes are for."""

    kind: str
    detail: str
    """Of the finding; any one where it is empty."""
    needs: tuple[str, ...]
    """Scopes that whoever reaches it began with."""
    reason: str


MEANT: tuple[IntendedFinding, ...] = (
    IntendedFinding(
        "an approval is read",
        "by a link for a person",
        ("approval-links:write",),
        "Whoever decides reads what they decide about: the page of a link shows the approval and its quote.",
    ),
    IntendedFinding(
        "a decision counts",
        "by a link for a person",
        ("approval-links:write",),
        "Whoever sends links to people is trusted with one decision of a step: the links that they made "
        "count once together, and never where they have asked.",
    ),
    IntendedFinding(
        "a decision counts",
        "by a rotated key",
        ("api-keys:write", "approvals:write"),
        "Whoever replaces the lost key of an approver holds its secret until they hand it on: they are one "
        "voice with it, in this step and where they have asked.",
    ),
    *(
        IntendedFinding(
            kind,
            "",
            ("api-keys:write", "tenants:write"),
            "Who operates the service makes the first key of a tenant, and so could make another.",
        )
        for kind in ("another tenant is acted for", "another tenant is changed")
    ),
    IntendedFinding(
        "another tenant is read",
        "",
        ("*:*", "tenants:*"),
        "Who operates the service makes the first key of a tenant, and so could make another.",
    ),
)
"""What a holder reaches beyond their own name or tenant because that is what their scopes are for."""


def explanation(granted, finding):
    """What explains a finding, or None."""
    return next((one for one in MEANT if _explains(granted, one, finding)), None)


def _explains(granted, meant, finding):
    is_it = finding.kind == meant.kind and meant.detail in ("", finding.detail)
    return is_it and all(can_grant(frozenset(granted), scope) for scope in meant.needs)


def unexplained(granted, found):
    """Findings that nothing explains: escalations."""
    return sorted(each for each in found if explanation(granted, each) is None)

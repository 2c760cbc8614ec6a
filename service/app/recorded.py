"""Tables of the service: those that are verified against the audit, and the reasons for the others."""

from collections.abc import Mapping
from typing import Final

from service.approvals import tables as approvals
from service.approvals.links.records import LINKS
from service.approvals.service import find_deviations
from service.audit.records import CheckedTables, RecordedTable
from service.auth.records import IDENTITIES, KEYS, PAST_KEYS, SESSIONS, TENANTS, find_register_deviations
from service.auth.tables import TenantRow
from service.budgets.actuals import tables as actuals
from service.budgets.tables import BudgetRow
from service.catalog.registry import RESOURCES
from service.cost_centers.tables import CostCenterRow
from service.nodes.records import NODES, TOKENS
from service.policies.changes.tables import ApprovalSettingsRow, PolicyChangeRow
from service.policies.tables import ApprovalPolicyRow
from service.quotes.tables import QuoteRow
from service.webhooks.records import WEBHOOKS

_DECISIONS: Final = CheckedTables(
    (
        approvals.ApprovalRow,
        approvals.ApprovalStepRow,
        approvals.ApprovalApproverRow,
        approvals.ApprovalDecisionRow,
        approvals.ApprovalCommentRow,
        ApprovalPolicyRow,
        approvals.ApprovalDelegationRow,
        CostCenterRow,
        BudgetRow,
        PolicyChangeRow,
        ApprovalSettingsRow,
        actuals.ActualsImportRow,
        actuals.ActualsPeriodRow,
        actuals.ActualChargeRow,
        QuoteRow,
    ),
    find_deviations,
)


def _to_recorded_tables(recorded: RecordedTable) -> CheckedTables:
    return CheckedTables((recorded.table, *(one.table for one in recorded.owned)), recorded.find_deviations)


HELD: Final = (
    CheckedTables((TenantRow,), find_register_deviations),
    *map(
        _to_recorded_tables, (TENANTS, KEYS, PAST_KEYS, IDENTITIES, SESSIONS, NODES, TOKENS, LINKS, WEBHOOKS)
    ),
    _DECISIONS,
)
"""Tables that determine who may do what; a verification compares all of them with the chain."""

_CATALOG: Final = (
    "is a figure that estimates read, in versions of which each write is an event; nobody may do more by it"
)
_EVIDENCE: Final = "is what a node measured, with the digest of what it sent; nobody may do more by it"
_WORK: Final = "is work under way, which moves at every step; what comes of it is recorded where it decides"

DECIDES_NOTHING: Final[Mapping[str, str]] = {
    **dict.fromkeys(("catalog_state", *RESOURCES), _CATALOG),
    **dict.fromkeys(
        (
            "benchmark_results",
            "benchmark_runs",
            "benchmark_validations",
            "calibrations",
            "evidence_imports",
            "node_inventories",
        ),
        _EVIDENCE,
    ),
    **dict.fromkeys(
        (
            "background_jobs",
            "events",
            "lease_grants",
            "leases",
            "node_intakes",
            "plan_pieces",
            "plans",
            "webhook_attempts",
            "webhook_deliveries",
        ),
        _WORK,
    ),
    "audit_events": "is the chain, which is verified first",
    "audit_heads": "is the end of the chain, which is sealed and verified with it",
    "idempotency_keys": "is an answer that is given again within a day; a write behind it is recorded",
    "installation": "is the fingerprint of the secret, which every start compares with the secret itself",
}
"""Tables that no verification reads, with the reason."""

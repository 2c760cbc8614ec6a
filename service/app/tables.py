"""Tables of the service, each after those that it refers to."""

from service.approvals import tables as approval_tables
from service.approvals.links import tables as approval_link_tables
from service.audit import tables as audit_tables
from service.auth import tables as auth_tables
from service.benchmarks import tables as benchmark_tables
from service.benchmarks.validation import tables as validation_tables
from service.budgets import tables as budget_tables
from service.budgets.actuals import tables as actuals_tables
from service.calibrations import tables as calibration_tables
from service.catalog import registry as catalog_registry
from service.catalog import tables as catalog_tables
from service.cost_centers import tables as cost_center_tables
from service.evidence.imports import tables as evidence_tables
from service.kit.database.engine import Base
from service.kit.http import idempotency
from service.kit.jobs import events
from service.kit.jobs import tables as job_tables
from service.nodes import tables as node_tables
from service.plans import tables as plan_tables
from service.policies import tables as policy_tables
from service.policies.changes import tables as policy_change_tables
from service.quotes import tables as quote_tables
from service.webhooks import tables as webhook_tables

# Importing the modules fills the metadata.
_MODULES = (
    approval_link_tables,
    actuals_tables,
    approval_tables,
    audit_tables,
    auth_tables,
    benchmark_tables,
    budget_tables,
    calibration_tables,
    catalog_registry,
    catalog_tables,
    events,
    cost_center_tables,
    evidence_tables,
    idempotency,
    job_tables,
    node_tables,
    plan_tables,
    policy_change_tables,
    policy_tables,
    quote_tables,
    validation_tables,
    webhook_tables,
)

METADATA = Base.metadata
TABLES = METADATA.sorted_tables

"""The groups of operations, in the order of the document."""

from service.catalog.registry import RESOURCES

TAGS = (
    ("estimates", "Estimates of memory, throughput, cost and the utility bill of a workload."),
    *((resource.path, resource.description) for resource in RESOURCES.values()),
    ("enrolment-tokens", "Tokens by which a host enrols as a node, once."),
    ("nodes", "Hosts that run benchmarks, with their inventories and heartbeats."),
    ("leases", "Rights of nodes to run one suite each."),
    ("benchmark-suites", "Lists of benchmarks that nodes can run."),
    ("benchmark-runs", "Suites, each run once on one node."),
    ("benchmark-results", "Measured results with their raw samples; recomputed, compared and exported."),
    ("calibrations", "Figures of devices from measurements, each with its evidence."),
    ("evidence", "Measurements in files of other programs, which move the tenant's estimates."),
    ("plans", "Searches for the best configuration for some work, by a goal and under constraints."),
    ("quotes", "Estimates and rows of plans, frozen with their prices for approval."),
    ("approvals", "Quotes that are submitted for approval, their approvers and decisions."),
    ("approval-links", "Links by which people without credentials decide once."),
    ("approval-policies", "Rules that name the approvers of quotes."),
    (
        "policy-changes",
        "Changes that loosen policies and budgets, in force after their approval or a delay.",
    ),
    ("approval-settings", "Delay of such changes."),
    ("approval-delegations", "Rights to decide in an approver's place, for a time."),
    ("cost-centers", "Cost centres that pay for quotes, with the accounts and tags of their bills."),
    ("budgets", "Amounts that cost centres may spend, with committed and spent amounts."),
    ("actuals", "Imported bills, compared with quotes and budgets."),
    ("webhooks", "Addresses that are told of events, and the deliveries to them."),
    ("api-keys", "Keys with which programs call the service."),
    ("sessions", "Browser sessions of people who have signed in."),
    ("tenants", "Tenants, which separate the data of teams; for the operator of the service."),
    ("background-jobs", "Work that the service does by itself."),
    ("audit-events", "The record of every stored write."),
)

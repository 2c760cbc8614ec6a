"""Requests and answers of the service. Written by `make client-sources`."""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class Accelerator(TypedDict):
    """An accelerator of the catalog."""

    id: str

    name: str

    vendor: str
    """Manufacturer."""

    memory_label_gb: NotRequired[float]
    """Memory size on the label, in GB."""

    memory_bandwidth_bytes_per_second: NotRequired[float]
    """Peak bandwidth of its own memory."""

    peak_flops_per_second: NotRequired[PeakRates]
    """Dense rate by number format; tensor rates accumulate in FP32."""

    power_limit_watts: NotRequired[float]
    """Highest power that it draws."""

    sources: list[Citation]

    version: int
    """Number of this version of the row; the ETag of the resource."""

    revision: int
    """Catalog revision of this version."""

    origin: RowOrigin
    """`shipped` if the row ships with the service, `tenant` if it is a row of the tenant."""

    created_at: str

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    generation: NotRequired[str]
    """Architecture in lower case, such as hopper."""

    form_factor: NotRequired[str]
    """Form factor, such as SXM5 or PCIe."""

    launched_on: NotRequired[str]
    """Date of the announcement or the first sale."""

    memory_label_reading: NotRequired[MemoryLabelReading]
    """Unit of the label: `binary` counts 2^30 bytes, `decimal` counts 10^9 bytes."""

    memory_kind: NotRequired[str]
    """Kind of its memory, such as HBM3e. Rates are refused where it is SRAM, on the chip only."""

    memory_reported_bytes: NotRequired[int]
    """Memory that the driver reports to a process."""

    intra_node_link_id: NotRequired[str]
    """Link to the other accelerators of its node."""

    inter_node_link_id: NotRequired[str]
    """Link between nodes of the vendor's reference server."""

    network_interfaces_per_device: NotRequired[float]
    """Interfaces of that link for each accelerator. Below 1 if accelerators share one."""

    pcie_generation: NotRequired[int]
    """PCI Express generation of its link to the host."""

    device_count: NotRequired[int]
    """Devices that software sees for one part, if more than one."""

    systems: NotRequired[list[ReferenceSystem]]
    """Systems that the accelerator comes in. A question that names none gets the first."""

    server: NotRequired[ReferenceServer]

    embodied_kg_co2e: NotRequired[EmbodiedEmissionsFigure]
    """Emissions of making one accelerator."""


AcceleratorName: TypeAlias = "str"
"""The id of a catalog row, or one of its aliases. Case does not matter."""


class AcceleratorPage(TypedDict):
    """A page of accelerators."""

    items: list[Accelerator]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class AcceleratorPatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]

    vendor: NotRequired[str]
    """Manufacturer."""

    memory_label_gb: NotRequired[float | None]
    """Memory size on the label, in GB."""

    memory_bandwidth_bytes_per_second: NotRequired[float | None]
    """Peak bandwidth of its own memory."""

    peak_flops_per_second: NotRequired[PeakRates | None]
    """Dense rate by number format; tensor rates accumulate in FP32."""

    power_limit_watts: NotRequired[float | None]
    """Highest power that it draws."""

    sources: NotRequired[list[Citation]]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str | None]

    generation: NotRequired[str | None]
    """Architecture in lower case, such as hopper."""

    form_factor: NotRequired[str | None]
    """Form factor, such as SXM5 or PCIe."""

    launched_on: NotRequired[str | None]
    """Date of the announcement or the first sale."""

    memory_label_reading: NotRequired[MemoryLabelReading | None]
    """Unit of the label: `binary` counts 2^30 bytes, `decimal` counts 10^9 bytes."""

    memory_kind: NotRequired[str | None]
    """Kind of its memory, such as HBM3e. Rates are refused where it is SRAM, on the chip only."""

    memory_reported_bytes: NotRequired[int | None]
    """Memory that the driver reports to a process."""

    intra_node_link_id: NotRequired[str | None]
    """Link to the other accelerators of its node."""

    inter_node_link_id: NotRequired[str | None]
    """Link between nodes of the vendor's reference server."""

    network_interfaces_per_device: NotRequired[float | None]
    """Interfaces of that link for each accelerator. Below 1 if accelerators share one."""

    pcie_generation: NotRequired[int | None]
    """PCI Express generation of its link to the host."""

    device_count: NotRequired[int | None]
    """Devices that software sees for one part, if more than one."""

    systems: NotRequired[list[ReferenceSystem] | None]
    """Systems that the accelerator comes in. A question that names none gets the first."""

    server: NotRequired[ReferenceServer | None]
    """The vendor's server for this accelerator."""

    embodied_kg_co2e: NotRequired[EmbodiedEmissionsFigure | None]
    """Emissions of making one accelerator."""


AcceleratorReference: TypeAlias = "CatalogAccelerator | SpecifiedAccelerator"


class AcceleratorRequest(TypedDict):
    """One accelerator as sold. Rates are dense, for the whole part, and absent if unknown."""

    id: str

    name: str

    vendor: str
    """Manufacturer."""

    memory_label_gb: NotRequired[float]
    """Memory size on the label, in GB."""

    memory_bandwidth_bytes_per_second: NotRequired[float]
    """Peak bandwidth of its own memory."""

    peak_flops_per_second: NotRequired[PeakRates]
    """Dense rate by number format; tensor rates accumulate in FP32."""

    power_limit_watts: NotRequired[float]
    """Highest power that it draws."""

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    generation: NotRequired[str]
    """Architecture in lower case, such as hopper."""

    form_factor: NotRequired[str]
    """Form factor, such as SXM5 or PCIe."""

    launched_on: NotRequired[str]
    """Date of the announcement or the first sale."""

    memory_label_reading: NotRequired[MemoryLabelReading]
    """Unit of the label: `binary` counts 2^30 bytes, `decimal` counts 10^9 bytes."""

    memory_kind: NotRequired[str]
    """Kind of its memory, such as HBM3e. Rates are refused where it is SRAM, on the chip only."""

    memory_reported_bytes: NotRequired[int]
    """Memory that the driver reports to a process."""

    intra_node_link_id: NotRequired[str]
    """Link to the other accelerators of its node."""

    inter_node_link_id: NotRequired[str]
    """Link between nodes of the vendor's reference server."""

    network_interfaces_per_device: NotRequired[float]
    """Interfaces of that link for each accelerator. Below 1 if accelerators share one."""

    pcie_generation: NotRequired[int]
    """PCI Express generation of its link to the host."""

    device_count: NotRequired[int]
    """Devices that software sees for one part, if more than one."""

    systems: NotRequired[list[ReferenceSystem]]
    """Systems that the accelerator comes in. A question that names none gets the first."""

    server: NotRequired[ReferenceServer]

    embodied_kg_co2e: NotRequired[EmbodiedEmissionsFigure]
    """Emissions of making one accelerator."""


class AcceleratorSpecification(TypedDict):
    """An accelerator that is not in the catalog. A figure that is left out is unknown."""

    name: NotRequired[str]
    """Name of the accelerator in the answer."""

    generation: NotRequired[str]
    """Generation of its chip, as the catalog names it. The measured constants of that generation apply."""

    memory_bytes: NotRequired[int]
    """Memory that the driver reports to a process."""

    memory_bandwidth_bytes_per_second: NotRequired[float]
    """Peak bandwidth of the device's own memory."""

    peak_flops_per_second: NotRequired[dict[str, float]]
    """Dense rate by number format. Requests about memory alone need none."""

    power_limit_watts: NotRequired[float]
    """Highest power that one device draws."""


class AcknowledgedBenchmarkResult(TypedDict):
    """A result that the service has acknowledged."""

    result_id: str
    """Id of the result."""

    content_sha256: str
    """Digest of the bytes of the result."""


class ActivationLayer(TypedDict):
    """A smooth function of each element, whose backward pass needs its input; no parameters."""

    kind: Literal["activation"]

    size: int
    """Number of elements of a token."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


class Actuals(TypedDict):
    """A bill that was imported."""

    id: str
    """Id of the import."""

    source: str
    """Source of the bill."""

    state: ActualsState
    """State of the bill. A `superseded` bill no longer counts in any of its billing periods."""

    note: NotRequired[str]
    """Note on the bill."""

    content_sha256: str
    """SHA-256 of the table, which itself is not stored."""

    row_count: int
    """Rows of the bill."""

    matched_row_count: int
    """Rows that belong to a quote or a cost centre. The others are not stored."""

    periods: list[ActualsPeriod]
    """Billing periods of the bill."""

    notes: list[ActualsNote]
    """Notes on the rows of the bill."""

    created_at: str
    """Time of the import."""

    withdrawn_at: NotRequired[str]
    """Time from which the bill no longer counts."""

    reason: NotRequired[str]
    """Reason of the withdrawal."""


class ActualsAccuracy(TypedDict):
    """Deviation of the tenant's quotes from what was billed for them so far."""

    quote_count: int
    """Number of quotes whose cost can be compared."""

    median_absolute_error: NotRequired[float]
    """Median of the absolute deviation, as a share of the quoted cost."""

    bias: NotRequired[float]
    """Mean ratio of billed to expected cost, less 1. Above 0, runs cost more than quoted."""

    interval_coverage: NotRequired[float]
    """Share of the quotes whose cost lies within the 80% interval."""

    partly_billed_count: int
    """Compared quotes whose run is not fully billed yet. The billed part is compared."""

    without_figure_count: int
    """Number of quotes with charges that cannot be compared."""

    without_figure: list[UncomparedQuotes]
    """Quotes that cannot be compared by the first gap of each."""

    by_operation: list[QuoteAccuracyGroup]
    """Deviation by quoted operation."""

    by_accelerator: list[QuoteAccuracyGroup]
    """Deviation by accelerator."""


class ActualsImportRequest(TypedDict):
    """A bill as a table in the columns of FOCUS 1.0 to 1.3, with every charge of its billing periods."""

    source: str
    """Source of the bill, such as a provider or an account. A later bill of the same source replaces this
    one in the billing periods that both have.
    """

    content: str
    """Comma-separated values under one line of column names. Rows of a run have the tag `quote_id`."""

    replaces: NotRequired[str]
    """Id of the import of the same table, to match its rows again. Without it a bill that was imported
    before is refused.
    """

    note: NotRequired[str]
    """Note on the bill."""


class ActualsNote(TypedDict):
    """A note on the rows of a bill."""

    code: str
    """Stable name of the note."""

    row_count: int
    """Number of rows that the note concerns."""

    detail: str
    """Text of the note."""


class ActualsPage(TypedDict):
    """A page of imported bills."""

    items: list[Actuals]
    """Imported bills, the newest first."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class ActualsPeriod(TypedDict):
    """A billing period of a bill."""

    starts_at: str
    """Start of the period."""

    ends_at: str
    """End of the period."""

    covered_until: str
    """Time up to which the bill covers the period: its end, or the last charge of a period that was not
    over yet.
    """

    row_count: int
    """Rows of the bill in the period."""

    matched_row_count: int
    """Rows that belong to a quote or a cost centre. The others are not stored."""

    billed: list[MoneyAmount]
    """Sum of the billed cost, by currency."""

    effective: list[MoneyAmount]
    """Sum of the effective cost, by currency."""


ActualsState: TypeAlias = "Literal['active', 'superseded', 'withdrawn']"


class ActualsWithdrawalRequest(TypedDict):
    """Reason why a bill no longer counts."""

    reason: str
    """Reason of the withdrawal."""


class AdaptationInput(TypedDict):
    """Parameters that are trained."""

    kind: AdaptationKind
    """Kind of adaptation: all parameters (`full`), or small ones beside frozen weights. `scale` trains
    norms, a factor and a shift behind every matrix, and virtual tokens in each layer (LLaMA-Adapter
    V2).
    """

    rank: NotRequired[int]
    """Rank of the low-rank matrices (default 16), or width of an adapter's bottleneck (default 64)."""

    target_modules: NotRequired[list[AdaptationInputTargetModules]]
    """Matrices that get low-rank ones. Defaults to query and value, for qlora to all_linear."""

    base_weights: NotRequired[FrozenWeightFormat]
    """Format of the frozen weights. `plain` is the width of the activations. Defaults to plain, for qlora
    to nf4_double.
    """

    virtual_tokens: NotRequired[int]
    """Virtual tokens of prompt tuning, prefix tuning and scale. Defaults to 20."""


AdaptationInputTargetModules: TypeAlias = "Literal['all_linear', 'query', 'key', 'value', 'output', 'gate', 'up', 'down', 'expert_gate', 'expert_up', 'expert_down', 'query_down', 'query_up', 'key_value_down', 'key_value_up', 'query_key_value_gate', 'input']"

AdaptationKind: TypeAlias = "Literal['full', 'lora', 'qlora', 'dora', 'prompt', 'prefix', 'adapter', 'scale']"
"""Parameters that are trained: all, or small ones beside frozen weights."""


class AdaptersInput(TypedDict):
    """Low-rank adapters served beside the model, on every matrix inside its blocks but those of experts."""

    max_loras: NotRequired[int]
    """Adapters that are loaded at a time."""

    rank: NotRequired[int]
    """Largest rank of the adapters. Memory is reserved for it, for each adapter."""


class AlternativeCost(TypedDict):
    """One way of doing the work, compared with the baseline. A ratio above 1 is more than the baseline."""

    cost: CostEstimate
    """Cost of this way."""

    time_ratio: NotRequired[QuantityEstimate]
    """Its duration over that of the baseline."""

    device_hours_ratio: NotRequired[QuantityEstimate]
    """Its device-hours over those of the baseline."""

    cost_ratio: NotRequired[QuantityEstimate]
    """Its total over that of the baseline."""


class AnalyticSolver(TypedDict):
    """Formulas for the steady state."""

    kind: Literal["analytic"]


class AnnualDemand(TypedDict):
    """Energy and peak of a year, for a load without a known series."""

    kind: Literal["annual"]

    year: int
    """Calendar year of the load."""

    energy_kwh: float
    """Energy of the year."""

    peak_kw: float
    """Highest demand of the year."""


class AnswerWarning(TypedDict):
    """A remark about the question that the reader of the answer should know."""

    code: str
    """Stable name of the warning."""

    pointer: str
    """JSON Pointer into the request."""

    detail: str
    """Text of the remark."""


class ApiKey(TypedDict):
    """An API key, without its secret."""

    id: str

    tenant_id: str
    """Tenant that the key acts for."""

    name: str

    scopes: list[str]
    """Rights of the key."""

    version: int
    """Number of changes, the creation included."""

    created_at: str

    created_by: NotRequired[str]
    """Kind and id of the subject that created the key."""

    lineage: NotRequired[list[str]]
    """Subjects that can act by the key, from its maker to the first. They and the key count as one
    subject.
    """

    expires_at: NotRequired[str]
    """Time at which the key expires."""

    revoked_at: NotRequired[str]
    """Time at which the key was revoked."""

    rotation_ends_at: NotRequired[str]
    """Time until which the secret before the newest works."""

    last_used_at: NotRequired[str]
    """Time of the last use of the key, to the minute."""


class ApiKeyPage(TypedDict):
    """A page of keys."""

    items: list[ApiKey]
    """Keys in order of id."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class ApiKeyRequest(TypedDict):
    """A key to create."""

    name: str
    """Purpose of the key."""

    scopes: list[str]
    """Rights of the key. They cannot exceed the rights of its creator."""

    expires_at: NotRequired[str]
    """Time at which the key expires. Defaults to the expiry of the key that creates it, and is never
    later.
    """

    tenant_id: NotRequired[str]
    """Tenant of the key. A tenant other than the creator's needs `tenants:write`."""


class ApiKeyRotationRequest(TypedDict):
    """Overlap in which the old and the new secret both work."""

    overlap_seconds: NotRequired[int]
    """Seconds in which the old secret still works, to replace it in every caller."""


class Approval(TypedDict):
    """An approval with its steps, comments and budgets."""

    id: str
    """Id of the approval."""

    state: ApprovalState
    """State of the approval."""

    quote_id: str
    """Id of the quote to approve."""

    quote_version: int
    """Version of the quote."""

    content_digest: str
    """Digest of all frozen content of the version."""

    name: str
    """Name of the quote."""

    headlines: QuoteHeadlines
    """Headline figures of the quote."""

    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""

    requester: str
    """Subject that requests the approval."""

    submitted_at: str
    """Time of the submission."""

    expires_at: NotRequired[str]
    """Time at which the approval expires, unless it is decided earlier."""

    ended_at: NotRequired[str]
    """Time at which the approval was decided or ended otherwise."""

    version: int
    """Number of changes."""

    supersedes: NotRequired[str]
    """Id of the approval of an earlier version of the quote that this one replaces."""

    steps: list[ApprovalStep]
    """Steps in order. Empty if a policy requires no approver."""

    comments: list[ApprovalComment]
    """Comments in the order in which they were written."""

    commitment: NotRequired[ApprovalCommitment]
    """Amount that is to be paid, once the quote is approved. Absent if the total is unknown."""

    budgets: list[BudgetEffect]
    """Effect on the budgets of the cost centre: at submission, and from the approval on at the time of the
    approval.
    """

    warnings: list[AnswerWarning]
    """Conditions that a policy could not evaluate, such as those on an unknown total. They count against
    the requester.
    """

    judged: PolicyEvaluation
    """Policies and exchange rates that determined the approvers."""


class ApprovalComment(TypedDict):
    """A comment on an approval."""

    written_by: str
    """Author of the comment."""

    text: str
    """Text of the comment."""

    written_at: str
    """Time of the comment."""


class ApprovalCommentRequest(TypedDict):
    """A comment on an approval."""

    text: str
    """Text of the comment."""


class ApprovalCommitment(TypedDict):
    """Amount that is to be paid for an approved quote, in the currency of the quote."""

    amount: MoneyAmount
    """Total of the quote."""

    committed_at: str
    """Time from which the amount counts in budgets of the cost centre."""

    due_from: str
    """Start of the time over which the amount falls due evenly: the start of the run, or the time of the
    purchase.
    """

    due_until: str
    """End of the time over which the amount falls due. Equal to the start if it falls due at once."""

    released_at: NotRequired[str]
    """Time at which the commitment was released because the approval was closed, cancelled or superseded.
    Only bills count from then on.
    """

    outstanding: NotRequired[MoneyAmount]
    """Amount that is not billed yet. Present in single reads and after closing; absent if a bill has no
    exchange rate.
    """


class ApprovalDecision(TypedDict):
    """Decision of an approver."""

    approver: str
    """Approver whose decision it is, as the policy names them."""

    decided_by: str
    """Subject that decided: the approver or their delegate."""

    linked_by: NotRequired[str]
    """Subject that made the link by which the decision was made."""

    delegation_id: NotRequired[str]
    """Id of the delegation by which the delegate decided."""

    decision: ApprovalDecisionKind
    """Decision: approve or reject."""

    via: ApprovalDecisionChannel
    """Channel of the decision."""

    comment: NotRequired[str]
    """Reason for the decision."""

    content_digest: str
    """Digest of the quote that the approver has seen."""

    decided_at: str
    """Time of the decision."""


ApprovalDecisionChannel: TypeAlias = "Literal['api', 'page', 'link']"

ApprovalDecisionKind: TypeAlias = "Literal['approve', 'reject']"


class ApprovalDecisionRequest(TypedDict):
    """A decision on one version of a quote."""

    content_digest: str
    """Digest of the quote that the approver has seen. A decision on another version is refused."""

    comment: NotRequired[str]
    """Reason for the decision."""


class ApprovalDelegation(TypedDict):
    """Right of a delegate to decide in an approver's place, for a time."""

    id: str
    """Id of the delegation."""

    approver: str
    """Subject in whose place the delegate decides."""

    delegate: str
    """Subject that may decide."""

    starts_at: str
    """Start of the delegation."""

    ends_at: str
    """End of the delegation."""

    note: NotRequired[str]
    """Reason for the delegation."""

    created_at: str
    """Time at which the delegation was created."""

    revoked_at: NotRequired[str]
    """Time at which the delegation was revoked. Absent unless it was ended early."""


class ApprovalDelegationPage(TypedDict):
    """A page of delegations, including those that have ended."""

    items: list[ApprovalDelegation]
    """Delegations, the newest first."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class ApprovalDelegationRequest(TypedDict):
    """Right of a delegate to decide in the caller's place, for a time."""

    delegate: str
    """Subject that may decide. A delegate cannot delegate further, and never decides on their own
    requests.
    """

    starts_at: NotRequired[str]
    """Start of the delegation. Defaults to now."""

    ends_at: str
    """End of the delegation."""

    note: NotRequired[str]
    """Reason for the delegation."""


class ApprovalEscalation(TypedDict):
    """Subjects that may also decide once a step has been open for some time."""

    after_seconds: int
    """Seconds after the step opened."""

    to: list[str]
    """Subjects that may decide then, beside the approvers."""


class ApprovalEvent(TypedDict):
    """Approval of an event. Everything else about it is read by its id."""

    approval_id: str
    """Id of the approval."""

    quote_id: str
    """Id of the quote."""

    quote_version: int
    """Version of the quote."""

    name: str
    """Name of the quote."""

    requester: str
    """Subject that asked for the approval."""

    total: NotRequired[MoneyAmount]
    """Amount that has to be paid."""

    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""

    step: NotRequired[str]
    """Name of the open step."""

    approvers: NotRequired[list[str]]
    """Subjects that are asked to decide the open step."""

    due_at: NotRequired[str]
    """Time until which the open step has to be decided."""

    decided_by: NotRequired[str]
    """Subject of the last decision."""

    page_url: NotRequired[str]
    """URL of the page of the approval. Absent if the service does not know its own address."""


class ApprovalHistory(TypedDict):
    """Every recorded change of an approval."""

    items: list[ApprovalHistoryEvent]
    """Changes in the order in which they were made."""

    is_as_recorded: bool
    """True if the stored approval matches its last event. If false, the database was changed directly."""


class ApprovalHistoryEvent(TypedDict):
    """A recorded change of an approval."""

    sequence: int
    """Number of the event in the audit chain of the tenant."""

    occurred_at: str
    """Time of the change."""

    operation: str
    """Operation that made the change."""

    subject: NotRequired[str]
    """Kind and id of the subject that made the change. Absent after a redaction of the tenant."""

    request_id: str
    """Id of the request, as in the log. Empty for changes that the service made by itself."""

    before_digest: NotRequired[str]
    """SHA-256 of the approval before the change."""

    after_digest: NotRequired[str]
    """SHA-256 of the approval after the change."""

    hash: str
    """SHA-256 of the event."""


class ApprovalLink(TypedDict):
    """An approval link, without its secret."""

    id: str
    """Id of the link."""

    approval_id: str
    """Id of the approval to decide."""

    approver: str
    """Approver whose decision it will be."""

    created_by: str
    """Subject that made the link."""

    created_at: str
    """Time at which the link was made."""

    expires_at: str
    """Time at which the link expires, unless the step ends earlier."""

    used_at: NotRequired[str]
    """Time at which a decision was made by the link."""

    revoked_at: NotRequired[str]
    """Time at which the link was revoked."""


class ApprovalLinkDetails(TypedDict):
    """An approval link and its state."""

    id: str
    """Id of the link."""

    approval_id: str
    """Id of the approval to decide."""

    approver: str
    """Approver whose decision it will be."""

    created_by: str
    """Subject that made the link."""

    created_at: str
    """Time at which the link was made."""

    expires_at: str
    """Time at which the link expires, unless the step ends earlier."""

    used_at: NotRequired[str]
    """Time at which a decision was made by the link."""

    revoked_at: NotRequired[str]
    """Time at which the link was revoked."""

    state: ApprovalLinkDetailsState
    """State of the link. `ended` if the step that it was made for has ended without it."""


ApprovalLinkDetailsState: TypeAlias = "Literal['open', 'used', 'revoked', 'expired', 'ended']"


class ApprovalLinkList(TypedDict):
    """Links of an approval."""

    items: list[ApprovalLinkDetails]
    """Links in the order in which they were made."""


class ApprovalLinkRequest(TypedDict):
    """An approval link for one person."""

    approver: str
    """Approver of the open step who has no credentials: `person:` and an id."""


class ApprovalMessage(TypedDict):
    """Message about an approval."""

    type: ApprovalMessageType
    """Type of the event."""

    timestamp: str
    """Time of the event."""

    data: ApprovalEvent
    """Members of the event."""


ApprovalMessageType: TypeAlias = "Literal['approval.requested', 'approval.escalated', 'approval.due_soon', 'approval.approved', 'approval.rejected', 'approval.expired', 'approval.cancelled', 'approval.superseded', 'approval.closed', 'approval.commented']"


class ApprovalPage(TypedDict):
    """A page of approvals."""

    items: list[ApprovalSummary]
    """Approvals, the newest first."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class ApprovalPolicy(TypedDict):
    """A policy as it is now. Approvals keep the steps under which they were submitted."""

    id: str

    name: str

    conditions: PolicyConditions
    """Conditions on the quotes that the policy applies to."""

    steps: list[PolicyStep]
    """Steps of the approval, in order. A policy without steps approves quotes automatically, except if the
    total of a quote that costs money is unknown or a condition cannot be evaluated; it then sets
    `automatic`.
    """

    automatic: NotRequired[bool]
    """Set to true if and only if the policy has no steps: quotes then pass without an approver."""

    version: int
    """Number of changes, the creation included."""

    written_by: NotRequired[list[str]]
    """Subjects that have written a version of the policy. They cannot submit quotes under it. Absent for
    older policies until their next change.
    """

    created_at: str
    """Time at which the policy was created."""

    updated_at: str
    """Time of the last change."""


class ApprovalPolicyPage(TypedDict):
    """A page of policies."""

    items: list[ApprovalPolicy]
    """Policies in order of id."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class ApprovalPolicyPatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]

    conditions: NotRequired[PolicyConditions]
    """Conditions on the quotes that the policy applies to."""

    steps: NotRequired[list[PolicyStep]]
    """Steps of the approval, in order. A policy without steps approves quotes automatically, except if the
    total of a quote that costs money is unknown or a condition cannot be evaluated; it then sets
    `automatic`.
    """

    automatic: NotRequired[bool]
    """Set to true if and only if the policy has no steps: quotes then pass without an approver."""


class ApprovalPolicyRequest(TypedDict):
    """A policy: the quotes that it applies to, and the steps of their approval."""

    id: str

    name: str

    conditions: PolicyConditions
    """Conditions on the quotes that the policy applies to."""

    steps: list[PolicyStep]
    """Steps of the approval, in order. A policy without steps approves quotes automatically, except if the
    total of a quote that costs money is unknown or a condition cannot be evaluated; it then sets
    `automatic`.
    """

    automatic: NotRequired[bool]
    """Set to true if and only if the policy has no steps: quotes then pass without an approver."""


class ApprovalSettings(TypedDict):
    """Approval settings of a tenant."""

    change_delay_seconds: int
    """Seconds before a change takes effect that loosens a policy or a budget, unless it is approved
    earlier.
    """

    version: int
    """Number of changes. 0 while the defaults of a new tenant apply."""


class ApprovalSettingsPatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    change_delay_seconds: NotRequired[int]
    """Seconds before a change takes effect that loosens a policy or a budget, unless it is approved
    earlier.
    """


class ApprovalSettingsValues(TypedDict):
    """Approval settings of a tenant that can change."""

    change_delay_seconds: int
    """Seconds before a change takes effect that loosens a policy or a budget, unless it is approved
    earlier.
    """


ApprovalState: TypeAlias = "Literal['pending', 'approved', 'rejected', 'cancelled', 'expired', 'superseded']"


class ApprovalStep(TypedDict):
    """A step of an approval. The next step opens once it is approved."""

    name: str
    """Name of the step."""

    policy_id: str
    """Id of the policy that requires the step."""

    policy_version: int
    """Version of the policy."""

    approvers: list[str]
    """Subjects that may decide, including those that the step was escalated to."""

    quorum: int
    """Number of approvers that must approve. A single rejection rejects."""

    state: ApprovalStepState
    """State of the step."""

    opened_at: NotRequired[str]
    """Time at which the step opened."""

    due_at: NotRequired[str]
    """Time at which the approval expires if the step is undecided."""

    escalates_at: NotRequired[str]
    """Time at which the step escalates."""

    escalated_at: NotRequired[str]
    """Time at which the step was escalated."""

    decisions: list[ApprovalDecision]
    """Decisions in the order in which they were made."""


ApprovalStepState: TypeAlias = "Literal['waiting', 'open', 'approved', 'rejected', 'ended']"


class ApprovalSummary(TypedDict):
    """An approval in lists."""

    id: str
    """Id of the approval."""

    state: ApprovalState
    """State of the approval."""

    quote_id: str
    """Id of the quote to approve."""

    quote_version: int
    """Version of the quote."""

    content_digest: str
    """Digest of all frozen content of the version."""

    name: str
    """Name of the quote."""

    headlines: QuoteHeadlines
    """Headline figures of the quote."""

    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""

    requester: str
    """Subject that requests the approval."""

    submitted_at: str
    """Time of the submission."""

    expires_at: NotRequired[str]
    """Time at which the approval expires, unless it is decided earlier."""

    ended_at: NotRequired[str]
    """Time at which the approval was decided or ended otherwise."""

    version: int
    """Number of changes."""

    supersedes: NotRequired[str]
    """Id of the approval of an earlier version of the quote that this one replaces."""


class Architecture(TypedDict):
    """A model as a list of layers with shapes, in the order in which data walks through it."""

    inputs: NotRequired[list[ArchitectureInputShape]]
    """Inputs of the model. Defaults to tokens."""

    layers: list[ModelLayer]
    """Layers with shapes, in order."""

    embeddings: NotRequired[ArchitectureEmbeddings]
    """Look-up tables in front of the first layer."""

    heads: NotRequired[list[ArchitectureHead]]
    """Layers that turn the last hidden state into answers."""

    tied: NotRequired[list[ArchitectureTied]]
    """Heads whose weight is the token table itself."""


class ArchitectureEmbeddings(TypedDict):
    """Look-up tables in front of the first layer, and the norm over their sum."""

    size: int
    """Width of a row."""

    vocabulary_size: int
    """Number of tokens of the vocabulary."""

    position_count: NotRequired[int]
    """Number of learned positions, if there are any."""

    token_type_count: NotRequired[int]
    """Number of learned token types, if there are any."""

    norm: NotRequired[ArchitectureEmbeddingsNorm]
    """Norm over the sum of the tables."""

    dropout: NotRequired[bool]
    """True if the sum passes a dropout in training."""


ArchitectureEmbeddingsNorm: TypeAlias = "Literal['none', 'rms', 'layer']"


class ArchitectureHead(TypedDict):
    """A layer that turns the last hidden state into an answer."""

    kind: ArchitectureTied
    """Kind of answer: logits over a vocabulary (`language_model`), scores (`classifier`), or the product
    of a square matrix and one token of the sequence (`pooler`).
    """

    input_size: int
    """Width of the hidden state."""

    output_size: int
    """Width of the answer."""

    bias: NotRequired[bool]
    """True if a learned vector is added."""

    second_bias: NotRequired[bool]
    """True if it has the copy of its bias that an untied BERT head keeps."""

    per: NotRequired[ArchitectureHeadPer]
    """Unit that is answered for: each token or each sequence."""


ArchitectureHeadPer: TypeAlias = "Literal['token', 'sequence']"


class ArchitectureInputShape(TypedDict):
    """An input of the model: a sequence of tokens, a grid of pixels or latents, or features."""

    name: str
    """Name of the input within the model."""

    kind: ArchitectureInputShapeKind
    """Kind of input. `tokens` are those of the decoder or of the only encoder, `source_tokens` those of an
    encoder that others read, `queries` are learned.
    """

    channels: NotRequired[int]
    """Numbers in one cell of the grid."""

    length: NotRequired[int]
    """Tokens, queries or spectrogram frames of a sample that does not state them; absent if there may be
    any number.
    """

    height: NotRequired[int]
    """Rows of a sample that does not state them."""

    width: NotRequired[int]
    """Columns of a sample that does not state them."""

    frames: NotRequired[int]
    """Frames of a sample that does not state them."""

    downsampling: NotRequired[int]
    """Pixels of the sample for each cell of the grid along an axis."""

    frame_downsampling: NotRequired[int]
    """Frames of the sample for each latent frame after the first, as causal video autoencoders count."""


ArchitectureInputShapeKind: TypeAlias = "Literal['tokens', 'source_tokens', 'queries', 'image', 'video', 'audio', 'latent', 'dense_features', 'sparse_features']"


class ArchitectureModel(TypedDict):
    """A model given by its layers."""

    source: Literal["architecture"]

    architecture: Architecture
    """Layers with shapes."""


ArchitectureTied: TypeAlias = "Literal['language_model', 'classifier', 'pooler']"

ArrivalsInput: TypeAlias = "PoissonArrivals | UniformArrivals | TraceArrivals"


class AssumedEfficiency(TypedDict):
    """Takes the achieved share of the limits as given: T = O / (R_peak x utilization)."""

    source: Literal["assumed"]

    utilization: float
    """Achieved share of the peak rate."""

    bandwidth_utilization: NotRequired[float]
    """Achieved share of the memory bandwidth. Defaults to `utilization`, with a warning if it matters."""


AttentionKernel: TypeAlias = "Literal['standard', 'flash']"
"""Attention kernel that stores the score matrix (standard) or does not (flash; Dao et al. 2022)."""


class AttentionLayer(TypedDict):
    """Multi-head, multi-query or grouped-query attention, by the number of key-value heads."""

    kind: Literal["attention"]

    hidden_size: int
    """Width of the residual stream."""

    query_heads: int
    """Number of query heads."""

    key_value_heads: int
    """Number of key-value heads: that of the query heads (MHA), fewer (GQA) or 1 (MQA)."""

    head_size: int
    """Width of a head."""

    value_head_size: NotRequired[int]
    """Width of the value of a head. Defaults to `head_size`."""

    output_size: NotRequired[int]
    """Width of the output. Defaults to `hidden_size`."""

    query_rank: NotRequired[int]
    """Width of the compressed query, which passes a norm before the heads are rebuilt from it; absent
    without compression.
    """

    causal: NotRequired[bool]
    """True if a token sees only the tokens before it."""

    window_tokens: NotRequired[int]
    """Length of the sliding window in tokens; absent without one."""

    cross_size: NotRequired[int]
    """Width of the other sequence that keys and values are read from; absent for self-attention."""

    key_value: NotRequired[AttentionLayerKeyValue]
    """Source of keys and values: projections of their own (`own`), the keys as values too
    (`key_as_value`), or those of an earlier layer, which are read again without projections or a cache
    (`shared`).
    """

    query_key_value_bias: NotRequired[bool]
    """True if a learned vector is added to queries, keys and values."""

    key_bias: NotRequired[bool]
    """True if `query_key_value_bias` covers the keys."""

    output_bias: NotRequired[bool]
    """True if a learned vector is added to the output."""

    query_key_norm: NotRequired[AttentionLayerQueryKeyNorm]
    """Norm of queries and keys, over each head or over the whole projection."""

    query_key_norm_shift: NotRequired[bool]
    """True if the norm of queries and keys has a shift beside its scale."""

    gate: NotRequired[AttentionLayerGate]
    """Projection that scales the output, by head or by element."""

    gate_bias: NotRequired[bool]
    """True if a learned vector is added to the gate."""

    output_norm: NotRequired[bool]
    """True if a norm stands in front of the output projection."""

    sinks: NotRequired[bool]
    """True if each head has a learned score that belongs to no token."""

    dropout: NotRequired[bool]
    """True if attention weights and output pass a dropout in training."""

    score_bias: NotRequired[bool]
    """True if a learned term is added to the scores (relative positions). Fused kernels do not
    differentiate it, so training stores the scores.
    """

    index_heads: NotRequired[int]
    """Number of heads of the scorer that picks tokens (sparse attention); absent where every token is
    read.
    """

    index_head_size: NotRequired[int]
    """Width of the heads of the scorer, and of the one key that it keeps for each token or pool."""

    index_tokens: NotRequired[int]
    """Number of tokens that the scorer picks for each query, by blocks or one by one."""

    index_pool: NotRequired[int]
    """Number of tokens whose keys the scorer averages into one; absent where each token has a key of its
    own.
    """

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


AttentionLayerGate: TypeAlias = "Literal['none', 'head', 'element']"

AttentionLayerKeyValue: TypeAlias = "Literal['own', 'key_as_value', 'shared']"

AttentionLayerQueryKeyNorm: TypeAlias = "Literal['none', 'head', 'projection']"


class AttentionWork(TypedDict):
    """Softmax(Q K^T / sqrt(d)) V of random numbers, or its gradients.

    A prompt, one query a sequence over a cache, or the backward pass of a prompt.
    """

    kind: Literal["attention"]

    phase: AttentionWorkPhase
    """`prefill` is causal and its queries are as many as the context, `decode` has one query a sequence,
    `backward` computes the gradients of `prefill`.
    """

    back_end: AttentionWorkBackEnd
    """The worker's own kernel, cuDNN, FlashInfer, flash-attn 3, or one of PyTorch's
    scaled_dot_product_attention.
    """

    dtype: AttentionWorkDtype
    """Type of the elements."""

    batch: int
    """Sequences."""

    query_heads: int
    """Heads of a query."""

    kv_heads: int
    """Heads of keys and values; each serves query_heads / kv_heads heads of a query."""

    head_size: AttentionWorkHeadSize
    """Elements of a head of queries and keys."""

    context_tokens: int
    """Keys of a sequence."""

    value_size: NotRequired[AttentionWorkValueSize]
    """Elements of a head of values, if they are not as many as those of a key. In decoding, values are the
    first elements of the keys, as in the latent cache of DeepSeek-V3.
    """

    page_tokens: NotRequired[AttentionWorkPageTokens]
    """Tokens of a page of the cache. Without it the cache of a sequence is in one piece."""


AttentionWorkBackEnd: TypeAlias = (
    "Literal['own', 'flash', 'efficient', 'cudnn', 'math', 'flashinfer', 'flash3']"
)

AttentionWorkDtype: TypeAlias = "Literal['fp32', 'bf16', 'fp16', 'fp8_e4m3']"

AttentionWorkHeadSize: TypeAlias = "Literal[64, 128, 192, 256, 576]"

AttentionWorkPageTokens: TypeAlias = "Literal[16, 32, 64, 128]"

AttentionWorkPhase: TypeAlias = "Literal['prefill', 'decode', 'backward']"

AttentionWorkValueSize: TypeAlias = "Literal[64, 128, 256, 512]"


class AuditDeviation(TypedDict):
    """A stored resource that differs from its last event."""

    resource: str
    """Resource: collection and id."""

    code: str
    """Code of the deviation: `CHANGED`, `MISSING`, `NOT_RECORDED`, `CHARGES_CHANGED`, or `UNREADABLE` for
    a table.
    """


class AuditEvent(TypedDict):
    """One stored write."""

    sequence: int
    """Number of the event in the chain of its tenant, from 1 without a gap."""

    occurred_at: str
    """Time of the write."""

    operation: str
    """Id of the operation."""

    resource: str
    """Resource that was written: collection and id."""

    subject_kind: str
    """Kind of the subject, by its means of authentication."""

    subject_id: NotRequired[str]
    """Id of the subject. Absent after a redaction of the tenant."""

    request_id: str
    """Id of the request, as in the log."""

    before_digest: NotRequired[str]
    """SHA-256 of the resource before the write. Absent if it did not exist."""

    after_digest: NotRequired[str]
    """SHA-256 of the resource after the write. Absent if it no longer exists."""

    state_digest: NotRequired[str]
    """SHA-256 of everything stored of the resource after the write, including what no answer shows.

    Absent if it equals `after_digest`, if the resource is gone, and from events of earlier versions.
    """

    previous_hash: str
    """Hash of the preceding event. Zeros for the first event."""

    hash: str
    """SHA-256 of the event, including the preceding hash."""


class AuditEventPage(TypedDict):
    """A page of events."""

    items: list[AuditEvent]
    """Events, the newest first."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class AuditFault(TypedDict):
    """A break in a chain."""

    sequence: int
    """Number of the first event at fault."""

    code: str
    """Stable name of the fault."""

    detail: str
    """Description of the fault."""


class AuditGap(TypedDict):
    """Part of a verification that is impossible because events of earlier versions lack the data."""

    collection: str
    """Collection of the resources."""

    code: str
    """Stable name of the gap."""

    detail: str
    """Description of the gap."""

    resource_count: int
    """Number of resources."""


class AuditHeadEvent(TypedDict):
    """Last event of the audit chain."""

    sequence: int
    """Number of the last event."""

    hash: str
    """Hash of the last event, 64 hexadecimal digits."""


class AuditHeadMessage(TypedDict):
    """Message about the end of the audit chain."""

    type: Literal["audit.head"]
    """Type of the event."""

    timestamp: str
    """Time of the event."""

    data: AuditHeadEvent
    """Members of the event."""


class AuditVerdict(TypedDict):
    """Result of a verification of the tenant's chain, and of the stored resources that control access."""

    valid: bool
    """True if the whole chain is intact and reaches the expected heads, and no resource was changed
    outside it.
    """

    events: int
    """Number of intact events, from the first."""

    head_hash: str
    """Hash of the last intact event. A copy kept elsewhere reveals if the end was cut off together with
    its seal.
    """

    fault: NotRequired[AuditFault]
    """First fault of the chain. Absent if there is none."""

    changed: NotRequired[list[AuditDeviation]]
    """First resources that differ from their records. Absent if there are none."""

    changed_count: NotRequired[int]
    """Number of resources that differ."""

    gaps: NotRequired[list[AuditGap]]
    """Parts that cannot be verified because events of earlier versions lack the data. Absent if there are
    none.
    """


class AutoencoderInput(TypedDict):
    """The autoencoder whose decoder turns latents into pixels."""

    model: ModelReference
    """Model of encoder and decoder. Its decoder runs once a picture."""

    precision: NotRequired[AutoencoderInputPrecision]
    """Format that the autoencoder multiplies in. Defaults to 16 bit. The autoencoder of Stable Diffusion
    XL overflows there and needs tf32.
    """

    tile_pixels: NotRequired[int]
    """Side of the tiles that a picture is decoded in, to save memory. Defaults to the whole picture."""


AutoencoderInputPrecision: TypeAlias = "Literal['fp32', 'tf32', 'fp16', 'bf16']"


class BackgroundJob(TypedDict):
    """Work that the service does by itself, in short pieces, in any of its processes."""

    id: str

    kind: str
    """Kind of the work."""

    state: BackgroundJobState
    """State of the job. A `dead` job has failed too often and waits for an operator; `:retry` runs it
    again.
    """

    attempt: int
    """Number of starts since the last progress."""

    cancel_requested: bool
    """True if the job ends after its present piece."""

    progress: dict[str, Any]
    """Progress of the job, in members that depend on its kind."""

    result: dict[str, Any]
    """Result of the job, once it is done."""

    created_at: str

    due_at: NotRequired[str]
    """Time at which the job continues. While it runs, time at which another process may take it over.
    Absent once it has ended.
    """

    finished_at: NotRequired[str]
    """Time at which the job ended."""

    error_code: NotRequired[str]
    """Code of the last failure."""

    error_summary: NotRequired[str]
    """Description of the last failure."""


class BackgroundJobPage(TypedDict):
    """A page of jobs."""

    items: list[BackgroundJob]
    """Jobs, newest first."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


BackgroundJobState: TypeAlias = "Literal['waiting', 'running', 'done', 'cancelled', 'dead']"


class BankConflictWork(TypedDict):
    """Reads of the memory that a multiprocessor shares, words of a warp `stride_words` apart."""

    kind: Literal["bank_conflict"]

    stride_words: int
    """1 has no conflict, 32 lets every thread of a warp ask the same bank."""

    reads: int
    """Reads of each thread."""

    threads: int
    """Threads of one execution."""


class BaselineLoadSeries(TypedDict):
    """Mean power of consecutive intervals."""

    kind: Literal["series"]
    """Selects this shape."""

    starts_at: str
    """Start of the first interval."""

    interval_minutes: Literal[5, 15, 30, 60]
    """Length of each interval, in minutes."""

    kw: list[float]
    """Mean power of each interval at the meter. The series covers every billing period in which the run
    takes place.
    """


class BatchingInput(TypedDict):
    """Batching of requests that are forward passes."""

    max_requests: NotRequired[int]
    """Most requests of one pass. Defaults to all that wait and that the memory holds."""

    delay_seconds: NotRequired[float]
    """Time that a pass waits for further requests."""


class Benchmark(TypedDict):
    """One benchmark of a suite."""

    name: str
    """Name within the suite, such as gemm.bf16 or hbm.copy."""

    work: (
        GemmWork
        | AttentionWork
        | FftWork
        | BlockScaledGemmWork
        | GroupedGemmWork
        | WeightOnlyGemmWork
        | StreamWork
        | StridedReadWork
        | CacheStreamWork
        | DeviceCopyWork
        | PointerChaseWork
        | HostStreamWork
        | BankConflictWork
        | DivergenceWork
        | OccupancyWork
        | CapacityWork
        | ContextMemoryWork
        | HostLinkWork
        | PeerLinkWork
        | PeerMatrixWork
        | CollectiveWork
        | ExternalToolWork
        | RdmaLinkWork
        | StorageWork
        | StorageToDeviceWork
        | LaunchLatencyWork
        | EnqueueLatencyWork
        | PowerWork
        | OptimizerStepWork
        | GradientAccumulationWork
        | GradientCompressionWork
        | TrainingStepWork
        | DecodeLoopWork
    )
    """Work of one execution."""

    metric: BenchmarkMetric
    """Unit of the figure."""

    direction: BetterDirection
    """Direction in which a figure is better."""

    formula: str
    """Amount of work of one sample, in words and symbols."""

    repeats: NotRequired[int]
    """Number of processes that measure it one after the other."""

    concurrent: NotRequired[bool]
    """True if all accelerators of the node measure it at the same time; the slowest gives the figure."""

    sampling: NotRequired[BenchmarkSampling]

    timeout_seconds: NotRequired[float]
    """Time after which its process is killed."""

    windows: NotRequired[list[PublishedRange]]


class BenchmarkComparison(TypedDict):
    """The runs of one benchmark on equal hardware."""

    benchmark: str
    """Name of the benchmark."""

    metric: BenchmarkMetric
    """Quantity and unit of the figures."""

    direction: BetterDirection
    """Direction in which a figure is better."""

    work_sha256: str
    """Digest of the work, which is the same in all runs."""

    hardware: NotRequired[str]
    """Name of the hardware by its driver."""

    hardware_sha256: NotRequired[str]
    """Digest of the numbers that identify the hardware; absent if they are unknown: one node is compared."""

    baseline: BenchmarkComparisonRun
    """Run that the others are compared with."""

    runs: list[BenchmarkComparisonRun]
    """Runs in the order of time."""


class BenchmarkComparisonRun(TypedDict):
    """One run beside the baseline."""

    run_id: str
    """Benchmark run."""

    node_id: str
    """Node that measured it."""

    suite_version: int
    """Version of the suite."""

    received_at: str
    """Time at which the first of its results came."""

    value: float
    """Middle figure of the repeats."""

    lowest: float
    """Lowest figure of the repeats."""

    highest: float
    """Highest figure of the repeats."""

    relative_spread: NotRequired[float]
    """Highest minus lowest figure, divided by the value; absent with one repeat."""

    repeats: int
    """Number of repeats that count."""

    sample_minimum: float
    """Lowest sample of all repeats: seconds of one execution, or a reading."""

    sample_median: float
    """Median of the medians of the repeats."""

    sample_q3: float
    """Highest upper quartile of the repeats."""

    has_clocks: bool
    """True if the clocks of both runs are known, so that times are compared in cycles too."""

    verdict: BenchmarkComparisonRunVerdict
    """Verdict on the run: `slower` or `faster` where the samples from minimum to upper quartile lie apart,
    in time and in cycles; `same` where each median lies among the samples of the other; otherwise
    `ambiguous`. For readings, `lower` or `higher`.
    """

    relative_change: NotRequired[float]
    """Value divided by that of the baseline, minus 1."""


BenchmarkComparisonRunVerdict: TypeAlias = (
    "Literal['slower', 'same', 'faster', 'lower', 'higher', 'ambiguous']"
)


class BenchmarkFigure(TypedDict):
    """The figure of one benchmark in a run, computed by the service from the raw samples."""

    benchmark: str
    """Name in the suite."""

    metric: BenchmarkMetric
    """Quantity and unit of the figure."""

    direction: BetterDirection
    """Direction in which a figure is better."""

    value: float
    """Middle figure of the repeats."""

    lowest: float
    """Lowest figure of the repeats."""

    highest: float
    """Highest figure of the repeats."""

    relative_spread: NotRequired[float]
    """Highest minus lowest figure, divided by the value: its uncertainty. Absent with one repeat."""

    repeats: int
    """Number of repeats that count."""

    result_verdict: NotRequired[ResultVerdict]
    """Worst verdict on a repeat; absent until all repeats are validated."""


class BenchmarkLease(TypedDict):
    """The right of one node to run one suite until it ends or is renewed."""

    id: str
    """Id of the benchmark run."""

    fencing_token: int
    """Fencing token, which rises with every grant; every write under the lease carries it."""

    nonce: str
    """Random value that goes into every result, to show that it was measured under this lease."""

    attempt: int
    """Number of grants of the run so far."""

    lease_seconds: float
    """Duration of the lease, counted from the time at which the request was sent."""

    renew_seconds: float
    """Time after which the node renews the lease."""

    runtime_seconds: float
    """Longest duration of an attempt."""

    seed: int
    """Seed of the input data of the benchmarks."""

    suite: BenchmarkSuite
    """Suite to run: data, never code."""

    server_time: str
    """Time of the service."""


class BenchmarkMeasurement(TypedDict):
    """Samples, and the method by which they were taken."""

    library: str
    """Library that ran, such as cublasLt 13.0.2 or own kernel stream_copy."""

    data: str
    """Distribution of the input, such as normal(0, 1)."""

    timer: BenchmarkMeasurementTimer
    """Timer of the samples."""

    warmup_seconds: float
    """Duration of the warm-up: the same work, run before the first sample."""

    warmup_iterations: int
    """Number of executions of the warm-up."""

    stop_reason: BenchmarkMeasurementStopReason
    """Reason that there are no more samples."""

    algorithm: NotRequired[str]
    """Algorithm that the library chose."""

    math_mode: NotRequired[str]
    """Mode of the multiplications, such as tf32."""

    accumulation: NotRequired[str]
    """Type of the accumulator."""

    inner_iterations: NotRequired[int]
    """Number of executions in one sample."""

    samples_ns: NotRequired[list[int]]
    """Time of each sample, in the order in which they were taken."""

    readings: NotRequired[list[float]]
    """Readings of a figure that is no time: bytes or watts."""

    discarded: NotRequired[list[DiscardedSamples]]

    working_set_bytes: NotRequired[int]
    """Memory that one execution touches; 0 if it is not counted."""

    flush_bytes: NotRequired[int]
    """Bytes that are read before each sample, so that no input is cached."""

    rotated_buffers: NotRequired[int]
    """Number of sets of input that take turns, so that none of them is cached."""

    uses_graph: NotRequired[bool]
    """True if the executions were launched as a graph."""

    threads: NotRequired[int]
    """Number of threads of the host that did the work, if the host is measured."""

    first_call_seconds: NotRequired[float]
    """Duration of the first execution, with its preparation."""

    correctness: NotRequired[CorrectnessCheck]

    telemetry: NotRequired[DeviceTelemetry]


BenchmarkMeasurementStopReason: TypeAlias = "Literal['spread', 'time_limit', 'sample_limit', 'single']"

BenchmarkMeasurementTimer: TypeAlias = "Literal['cuda_event', 'host_clock', 'nvml']"

BenchmarkMetric: TypeAlias = "Literal['flops_per_second', 'bytes_per_second', 'seconds', 'bytes', 'watts']"

BenchmarkName: TypeAlias = "str"


class BenchmarkProgress(TypedDict):
    """Progress of one benchmark."""

    benchmark: str
    """Name of the benchmark."""

    state: BenchmarkProgressState
    """State of the benchmark."""

    repeat: NotRequired[int]
    """Number of repeats that have ended."""

    detail: NotRequired[str]
    """Figure of the benchmark, or the reason that there is none."""


BenchmarkProgressState: TypeAlias = "Literal['waiting', 'running', 'done', 'failed', 'skipped']"


class BenchmarkRegression(TypedDict):
    """A figure that is worse than those before it on its node, or than those of equal nodes."""

    against: BenchmarkRegressionAgainst
    """Figures that it is compared with: earlier runs of the node, or other nodes with equal hardware."""

    benchmark: str
    """Name of the benchmark."""

    metric: BenchmarkMetric
    """Quantity and unit of the figures."""

    direction: BetterDirection
    """Direction in which a figure is better."""

    work_sha256: str
    """Digest of the work, which is the same in all runs."""

    hardware: NotRequired[str]
    """Name of the hardware by its driver."""

    node_id: str
    """Node that is worse."""

    run_id: str
    """Its last run of the benchmark."""

    received_at: str
    """Time at which the first result of that run came."""

    value: float
    """Figure of that run."""

    baseline_node_id: str
    """Node that it is compared with: itself, or the middle one of the others."""

    baseline_run_id: str
    """Run that it is compared with: the middle one of the earlier ones, or the last one of that node."""

    baseline_value: float
    """Figure of the baseline."""

    compared: int
    """Number of earlier runs, or of other nodes, of which the baseline is the middle one."""

    relative_change: float
    """Value divided by that of the baseline, minus 1."""

    has_clocks: bool
    """True if both clocks are known, so that a lower clock can be told from slower work."""


BenchmarkRegressionAgainst: TypeAlias = "Literal['earlier_runs', 'other_nodes']"


class BenchmarkRegressionEvent(TypedDict):
    """Benchmark that measures worse than before, or worse than on equal nodes."""

    node_id: str
    """Id of the node."""

    benchmark: str
    """Name of the benchmark."""

    metric: str
    """Metric of the benchmark."""

    against: BenchmarkRegressionAgainst
    """Results that it is compared with: earlier ones of the node, or those of nodes with equal hardware."""

    relative_change: float
    """Share by which the figure is worse. Negative if a lower figure is worse."""

    result_id: str
    """Id of the result that is worse."""


class BenchmarkRegressionList(TypedDict):
    """Regressions, the largest change first."""

    items: list[BenchmarkRegression]
    """Regressions."""

    results_considered: int
    """Number of accepted and suspect results that the answer rests on, the last ones."""

    since: NotRequired[str]
    """Time at which the first of these results came."""


class BenchmarkRegressionMessage(TypedDict):
    """Message about a benchmark that measures worse."""

    type: Literal["benchmark.regressed"]
    """Type of the event."""

    timestamp: str
    """Time of the event."""

    data: BenchmarkRegressionEvent
    """Members of the event."""


class BenchmarkResult(TypedDict):
    """One repeat of one benchmark."""

    id: str

    content_sha256: str
    """Digest of the bytes that the node sent."""

    run_id: str
    """Benchmark run that the result names."""

    attempt: int
    """Attempt of the run."""

    fencing_token: int
    """Fencing token of the lease that the result names."""

    benchmark: str
    """Name in the suite."""

    repeat: int
    """Number of the repeat, counted from 1."""

    lease: ResultLeaseStanding
    """Standing of the attempt: `current` if it counts for its run, `late` if its lease had ended when the
    result came or another attempt counts, `unknown` if it was not granted.
    """

    conflicts_with: NotRequired[str]
    """Result that came first for the same repeat of the same attempt; this one does not count."""

    is_counted: bool
    """True if figures are computed from the result."""

    node_id: str
    """Node that measured it."""

    suite_id: str
    """Suite of the benchmark."""

    suite_version: int
    """Version of the suite."""

    device: DeviceKind
    """Kind of device that was measured."""

    hardware: NotRequired[str]
    """Name of the hardware by its driver."""

    hardware_sha256: NotRequired[str]
    """Digest of the numbers that identify the hardware: results with equal digests can be compared."""

    work_sha256: str
    """Digest of the work: results of equal work can be compared."""

    metric: BenchmarkMetric
    """Quantity and unit of the figure."""

    direction: BetterDirection
    """Direction in which a figure is better."""

    status: BenchmarkResultStatus
    """Status of the measurement."""

    reason: NotRequired[str]
    """Reason that there is no measurement."""

    figure: NotRequired[float]
    """Figure that the service computes from the raw samples."""

    summary: NotRequired[SampleSummary]
    """Statistics that the service computes from the raw samples."""

    conditions: MeasurementConditions
    """Conditions of the measurement."""

    started_at: str
    """Start by the clock of the node."""

    finished_at: str
    """End by the clock of the node."""

    received_at: str
    """Time of receipt by the clock of the service."""

    validation: NotRequired[BenchmarkResultValidation]
    """Validation of the result; absent until it is done, and where nothing was measured."""


class BenchmarkResultPage(TypedDict):
    """A page of results."""

    items: list[BenchmarkResult]
    """Results, the last received first."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class BenchmarkResultReceipt(TypedDict):
    """Receipt of a stored result. The node may delete the result if the digest matches its own."""

    result_id: str
    """Id of the stored result."""

    content_sha256: str
    """Digest of the stored bytes."""

    lease: ResultLeaseStanding
    """Standing of the lease. A `late` result was measured under a lease that had ended: it is stored, but
    does not count yet.
    """


class BenchmarkResultReport(TypedDict):
    """One repeat of one benchmark. Never changed once it is stored."""

    result_id: str
    """UUIDv7 that the node makes."""

    run_id: str
    """Benchmark run of the lease."""

    fencing_token: int
    """Fencing token of the lease."""

    attempt: int
    """Attempt of the lease."""

    nonce: str
    """Nonce of the lease."""

    node_id: str
    """Node that measured it."""

    boot_id_sha256: str
    """Digest of the id of the boot of the host."""

    inventory_sha256: str
    """Digest of the inventory of the node."""

    worker_version: str
    """Version of the worker."""

    suite_id: str
    """Suite of the benchmark."""

    suite_version: int
    """Version of the suite."""

    seed: int
    """Seed of the input data, from the lease."""

    repeat: int
    """Number of the repeat, counted from 1."""

    benchmark: Benchmark

    device: DeviceKind
    """Kind of device that was measured."""

    started_at: str
    """Start by the clock of the node."""

    finished_at: str
    """End by the clock of the node."""

    started_monotonic_seconds: float
    """Start by a clock of the node that is never set."""

    finished_monotonic_seconds: float
    """End by the same clock."""

    status: BenchmarkResultStatus
    """Status of the repeat: `ok` has a measurement, every other status a failure."""

    schema_version: NotRequired[Literal[1]]

    accelerator_index: NotRequired[int]
    """Index of the accelerator in the inventory; absent on a node without accelerators."""

    concurrent_accelerators: NotRequired[int]
    """Number of accelerators that were measured at the same time, this one included."""

    clock_offset_seconds: NotRequired[float]
    """Clock of the service minus the clock of the node."""

    failure: NotRequired[MeasurementFailure]

    measurement: NotRequired[BenchmarkMeasurement]

    software: NotRequired[list[NodeSoftware]]

    environment: NotRequired[dict[str, Any]]
    """Environment variables that change a measurement, from a list of known names, in lower case."""

    gaps: NotRequired[list[NodeGap]]


BenchmarkResultStatus: TypeAlias = "Literal['ok', 'failed', 'timeout', 'unsupported']"


class BenchmarkResultValidation(TypedDict):
    """Verdict on a result as a measurement of its device, with its reasons."""

    verdict: ResultVerdict
    """Verdict on the result. Only an `accepted` result enters a calibration. A `suspect` result is
    measured again, and is accepted once two of three runs agree; an `evidence_only` result is true, but
    not of the device alone; a `rejected` result cannot be true.
    """

    findings: list[ValidationFinding]
    """Checks that did not pass."""

    unchecked: list[UncheckedValidationRule]
    """Checks that could not be made."""

    agreeing_run_ids: list[str]
    """Other runs of the same benchmark on the same device with the same figure."""

    rules_version: int
    """Version of the rules."""

    validated_at: str
    """Time of the validation by the clock of the service."""


class BenchmarkRun(TypedDict):
    """A suite, run once on one node."""

    id: str

    suite_id: str
    """Suite of the run."""

    suite_version: int
    """Version of the suite when the run was requested."""

    device: DeviceKind
    """Kind of device that the suite is for."""

    seed: int
    """Seed of the input data of the benchmarks."""

    node_id: NotRequired[str]
    """Node of the run: the requested node, or the last that took it."""

    note: NotRequired[str]

    re_run_of: NotRequired[str]
    """Run whose suspect results it measures again; validation requests at most two."""

    state: BenchmarkRunState
    """State of the run. A `dead` run was lost too often; its results so far are kept."""

    attempt: int
    """Number of times that a node has taken the run."""

    cancel_requested: bool
    """True if the cancellation of the run is requested."""

    progress: list[BenchmarkProgress]
    """Progress of each benchmark, as the node reports it."""

    reason: NotRequired[str]
    """Code of the reason that the run failed."""

    detail: NotRequired[str]
    """Reason in words."""

    created_at: str

    begun_at: NotRequired[str]
    """Time at which a node took the run."""

    finished_at: NotRequired[str]
    """Time at which the run ended."""

    figures: NotRequired[list[BenchmarkFigure]]
    """Figures of the latest attempt that has measurements; absent from lists."""


class BenchmarkRunPage(TypedDict):
    """A page of runs."""

    items: list[BenchmarkRun]
    """Runs, the newest first."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class BenchmarkRunRequest(TypedDict):
    """A request for a benchmark run."""

    suite_id: str
    """Suite to run."""

    node_id: NotRequired[str]
    """Node that runs the suite. Defaults to the first free node with the device of the suite."""

    note: NotRequired[str]
    """Purpose of the run."""


BenchmarkRunState: TypeAlias = "Literal['waiting', 'running', 'completed', 'failed', 'cancelled', 'dead']"


class BenchmarkSampling(TypedDict):
    """Rules for the warm-up and the number of samples of a measurement."""

    warmup_seconds: NotRequired[float]
    """Duration of the warm-up: the same work, run before the first sample."""

    most_warmup_seconds: NotRequired[float]
    """Longest duration of the warm-up. If it is longer than `warmup_seconds`, the warm-up goes on until
    rate and temperature are steady.
    """

    least_samples: NotRequired[int]
    """Least number of samples."""

    least_seconds: NotRequired[float]
    """Least sum of the samples."""

    relative_spread: NotRequired[float]
    """Interquartile range, as a share of the median, at which there are enough samples."""

    most_samples: NotRequired[int]
    """Largest number of samples."""

    most_seconds: NotRequired[float]
    """Longest sum of the samples, even if the spread is larger; the result states it."""


class BenchmarkSuite(TypedDict):
    """Benchmarks that one node runs under one lease."""

    id: str

    version: int
    """Version of the suite, which rises when its measurements change."""

    title: str
    """Title of the suite."""

    device: DeviceKind
    """Kind of device that it runs on."""

    benchmarks: list[Benchmark]


class BenchmarkSuitePage(TypedDict):
    """A page of benchmark suites."""

    items: list[BenchmarkSuite]
    """Suites in order of id."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


BetterDirection: TypeAlias = "Literal['higher', 'lower']"


class BillTagMatch(TypedDict):
    """A tag of a bill, key and value."""

    key: str
    """Key as it stands in the bill."""

    value: str
    """Value in full."""


class BilledDemand(TypedDict):
    """Demand that a charge bills."""

    charge: str
    """Name of the charge."""

    kw: float
    """Demand after floors and ratchets."""


class BillingDemand(TypedDict):
    """The rule by which a metered peak becomes the demand that is billed: the highest of all members."""

    minimum_kw: NotRequired[float]
    """Least demand that is billed, in kW."""

    contract_kw: NotRequired[float]
    """Contracted capacity in kW, billed whether it is used or not."""

    ratchets: NotRequired[list[DemandRatchet]]
    """Shares of earlier peaks."""

    apparent_power_share: NotRequired[float]
    """Share of the kVA at the peak."""

    power_factor_threshold: NotRequired[float]
    """Power factor below which demand is multiplied by 1 + threshold - power factor."""

    own_peak_months: NotRequired[list[int]]
    """Calendar months in which the period's own peak counts. Defaults to all months."""


class BillingPeriod(TypedDict):
    """A billing period on the clock of the site."""

    start_date: str
    """First day of the period."""

    end_date: str
    """Day after the last day of the period."""


class BillingPeriodTotal(TypedDict):
    """Totals of a billing period."""

    billing_period: BillingPeriod
    """Billing period of the totals."""

    energy_kwh: float
    """Energy that is billed."""

    peak_kw: float
    """Highest demand of the meter, including the baseline load if there is one."""

    total: MoneyAmount
    """Sum of the charges of the period."""

    after_run: NotRequired[bool]
    """True if the billing period lies after the run."""


class BlockLayer(TypedDict):
    """Layers that repeat together: the unit of recomputation and of a pipeline stage."""

    kind: Literal["block"]

    layers: list[SimpleLayer]
    """Layers of one block, in order."""

    reused: NotRequired[bool]
    """True if it takes the weights of an earlier block of the same layers."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""

    over: NotRequired[list[str]]
    """Inputs whose positions it runs over, one after the other. Defaults to the first input."""

    reads: NotRequired[list[str]]
    """Inputs that its cross-attention reads."""

    joins: NotRequired[list[str]]
    """Inputs whose keys and values its other attention sees beside its own (joint attention of two
    streams).
    """

    per: NotRequired[BlockLayerPer]
    """Unit that it runs for: each position, or each sample once, such as a time embedding."""

    unit: NotRequired[bool]
    """True if it counts as depth: a unit of recomputation and of a pipeline stage. A stem, a projector or
    a transform does not.
    """


BlockLayerPer: TypeAlias = "Literal['position', 'sample']"


class BlockScaledGemmWork(TypedDict):
    """C = A B of random numbers of 8 or 4 bits with a scale for each block, and a result of bf16."""

    kind: Literal["block_scaled_gemm"]

    number_format: BlockScaledGemmWorkNumberFormat
    """`mxfp8`: 8 bits, and a power of two for each 32 elements. `nvfp4`: 4 bits, and a number of 8 bits
    for each 16 elements. `fp8_blocks`: 8 bits, and a number of 32 bits for each 128 elements of A and
    each block of 128 x 128 of B, as DeepSeek-V3 has them.
    """

    m: int
    """Rows of A and C."""

    n: int
    """Columns of B and C."""

    k: int
    """Columns of A and rows of B."""


BlockScaledGemmWorkNumberFormat: TypeAlias = "Literal['mxfp8', 'nvfp4', 'fp8_blocks']"


class Bottleneck(TypedDict):
    """Limit of the speed. `axis` is the axis of data, algorithm and machine."""

    bound: BottleneckBound
    """The limit that sets most of the time."""

    axis: BottleneckAxis
    """Place to look for a remedy."""

    advice: list[EstimateAdvice]
    """Changes worth trying."""


BottleneckAxis: TypeAlias = "Literal['algorithm', 'machine', 'data']"

BottleneckBound: TypeAlias = "Literal['compute', 'memory', 'communication', 'waiting', 'host', 'data']"


class BreakEven(TypedDict):
    """Point at which a purchase has paid for itself against the rent, under the named assumptions."""

    counts: list[BreakEvenCounts]
    """Costs that are set against the rent. Running costs are maintenance, staff and space."""

    utilization: float
    """Share of the time in which the devices run such runs, one after another."""

    runs: NotRequired[QuantityEstimate]
    """Runs until the purchase has paid for itself. Absent if it never does."""

    months: NotRequired[QuantityEstimate]
    """Months (730.5 hours) until the purchase has paid for itself."""


BreakEvenCounts: TypeAlias = "Literal['purchase', 'running_costs', 'financing', 'electricity']"


class Budget(TypedDict):
    """A budget with its latest commitments."""

    id: str
    """Id of the budget."""

    name: str
    """Display name of the budget."""

    note: NotRequired[str]
    """Note on the budget."""

    cost_center_id: str
    """Id of the cost centre."""

    starts_on: str
    """First day of the period, UTC."""

    ends_on: str
    """Last day of the period, UTC."""

    amount: MoneyAmount
    """Amount of the budget."""

    thresholds: list[float]
    """Shares of the amount at which an event is sent."""

    enforcement: BudgetEnforcement
    """Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning."""

    committed: MoneyAmount
    """Amount that approvals have committed."""

    spent: MoneyAmount
    """Amount that was spent, by imported actuals (effective cost)."""

    outstanding: MoneyAmount
    """Amount that is committed and not spent yet, computed for each quote separately."""

    remaining: MoneyAmount
    """Amount less spent and outstanding. For each quote the larger of committed and spent counts."""

    gaps: list[EstimateGap]
    """Figures that are not included, and why."""

    version: int
    """Number of this version; the ETag of the resource."""

    created_at: str
    """Time at which the budget was created."""

    commitments: list[BudgetCommitment]
    """Newest 100 commitments, the newest first, including released ones."""


class BudgetAmount(TypedDict):
    """An amount of one currency."""

    amount: str
    """Decimal number as text, such as \"250000\"."""

    currency_code: str
    """ISO 4217 code."""


class BudgetCommitment(TypedDict):
    """Amount that an approval commits from a budget."""

    approval_id: str
    """Id of the approval."""

    quote_id: str
    """Id of the quote."""

    quote_version: int
    """Version of the quote."""

    quoted: NotRequired[MoneyAmount]
    """Total of the quote. Absent if it is unknown."""

    amount: NotRequired[MoneyAmount]
    """Part of the total that falls into the period, in the currency of the budget. Absent if there is no
    exchange rate.
    """

    rate: NotRequired[str]
    """Units of the budget's currency for one unit of the quote's currency at the time of the approval."""

    rate_on: NotRequired[str]
    """Day of the exchange rate."""

    committed_at: str
    """Time of the commitment."""

    released_at: NotRequired[str]
    """Time at which the commitment was released because the approval was cancelled, closed or superseded."""


class BudgetEffect(TypedDict):
    """Effect of a quote on a budget of its cost centre. Amounts are in the currency of the budget."""

    budget_id: str
    """Id of the budget."""

    amount: NotRequired[MoneyAmount]
    """Part of the quote's total that falls into the period of the budget."""

    remaining_before: NotRequired[MoneyAmount]
    """Amount that is left without the quote."""

    remaining_after: NotRequired[MoneyAmount]
    """Amount that is left with the quote. Below 0 if the budget is exceeded."""

    unknown: NotRequired[str]
    """Reason why the effect is unknown: TOTAL_UNKNOWN or RATE_UNKNOWN."""

    is_exceeded: bool
    """True if the quote exceeds the budget, or if the effect is unknown."""

    blocks: bool
    """True if the budget refuses approvals that exceed it."""


BudgetEnforcement: TypeAlias = "Literal['warn', 'block']"


class BudgetEvent(TypedDict):
    """Budget of an event."""

    budget_id: str
    """Id of the budget."""

    cost_center_id: str
    """Id of the cost centre of the budget."""

    amount: MoneyAmount
    """Amount of the budget."""

    committed: MoneyAmount
    """Amount that approvals have committed."""

    spent: MoneyAmount
    """Amount that was spent, by imported actuals."""

    threshold_share: NotRequired[float]
    """Share of the budget that was reached."""

    approval_id: NotRequired[str]
    """Id of the approval by which it was reached."""


class BudgetMessage(TypedDict):
    """Message about a budget."""

    type: BudgetMessageType
    """Type of the event."""

    timestamp: str
    """Time of the event."""

    data: BudgetEvent
    """Members of the event."""


BudgetMessageType: TypeAlias = "Literal['budget.threshold_reached', 'budget.exceeded']"


class BudgetPage(TypedDict):
    """A page of budgets."""

    items: list[BudgetSummary]
    """Budgets in order of id."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class BudgetPatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]
    """Display name of the budget."""

    note: NotRequired[str | None]
    """Note on the budget."""

    amount: NotRequired[BudgetAmount]
    """Amount of the budget. Its currency cannot change."""

    thresholds: NotRequired[list[float]]
    """Shares of the amount. When so much is committed or spent, an event is sent once."""

    enforcement: NotRequired[BudgetEnforcement]
    """Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning."""


class BudgetRequest(TypedDict):
    """Amount that a cost centre may spend in a period.

    An approval commits the total of its quote. A run over several periods is divided by the time in
    each, whether it was approved before or after the budget was created.
    """

    name: str
    """Display name of the budget."""

    amount: BudgetAmount
    """Amount of the budget. Its currency cannot change."""

    id: str
    """Id of the budget."""

    cost_center_id: str
    """Id of the cost centre."""

    starts_on: str
    """First day of the period, UTC."""

    ends_on: str
    """Last day of the period, UTC."""

    note: NotRequired[str]
    """Note on the budget."""

    thresholds: NotRequired[list[float]]
    """Shares of the amount. When so much is committed or spent, an event is sent once."""

    enforcement: NotRequired[BudgetEnforcement]
    """Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning."""


class BudgetSummary(TypedDict):
    """A budget in lists."""

    id: str
    """Id of the budget."""

    name: str
    """Display name of the budget."""

    note: NotRequired[str]
    """Note on the budget."""

    cost_center_id: str
    """Id of the cost centre."""

    starts_on: str
    """First day of the period, UTC."""

    ends_on: str
    """Last day of the period, UTC."""

    amount: MoneyAmount
    """Amount of the budget."""

    thresholds: list[float]
    """Shares of the amount at which an event is sent."""

    enforcement: BudgetEnforcement
    """Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning."""

    committed: MoneyAmount
    """Amount that approvals have committed."""

    spent: MoneyAmount
    """Amount that was spent, by imported actuals (effective cost)."""

    outstanding: MoneyAmount
    """Amount that is committed and not spent yet, computed for each quote separately."""

    remaining: MoneyAmount
    """Amount less spent and outstanding. For each quote the larger of committed and spent counts."""

    gaps: list[EstimateGap]
    """Figures that are not included, and why."""

    version: int
    """Number of this version; the ETag of the resource."""

    created_at: str
    """Time at which the budget was created."""


class BudgetTerms(TypedDict):
    """Members of a budget that can change."""

    name: str
    """Display name of the budget."""

    note: NotRequired[str]
    """Note on the budget."""

    amount: BudgetAmount
    """Amount of the budget. Its currency cannot change."""

    thresholds: NotRequired[list[float]]
    """Shares of the amount. When so much is committed or spent, an event is sent once."""

    enforcement: NotRequired[BudgetEnforcement]
    """Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning."""


CachePrecision: TypeAlias = "Literal['fp32', 'fp16', 'bf16', 'fp8', 'int8', 'int4', 'q8_0', 'q5_0', 'q4_0']"


class CacheStreamWork(TypedDict):
    """Bandwidth of arrays that stay in the last-level cache: the control for a leak of it into others."""

    kind: Literal["cache_stream"]

    pattern: CacheStreamWorkPattern
    """Access to the array."""

    array_bytes: int
    """Size of each array, far below that of the cache."""

    passes: int
    """Times that one execution goes over it."""


CacheStreamWorkPattern: TypeAlias = "Literal['read', 'copy']"


class CalibratedFigure(TypedDict):
    """One constant and its evidence."""

    name: str
    """Group, quantity and number format, such as `operators.matrix_peak.bf16`."""

    unit: str
    """Unit of the figure."""

    value: float
    """Median over the runs."""

    low: float
    """Smallest measured value."""

    high: float
    """Largest measured value."""

    runs: NotRequired[int]
    """Number of runs."""

    limit: NotRequired[float]
    """Limit of the data sheet, in the same unit. Absent if the figure is not a share of a limit."""

    share: NotRequired[float]
    """Value over limit, which planning uses."""

    source: NotRequired[str]
    """Source of the measurement."""

    method: NotRequired[str]
    """Derivation of the figure from the measurements."""

    benchmarks: NotRequired[list[BenchmarkName]]
    """Names of the benchmarks."""

    result_ids: NotRequired[list[str]]
    """Accepted results that the figure was derived from."""

    run_ids: NotRequired[list[str]]
    """Runs of those results."""

    conditions: NotRequired[dict[str, Any]]
    """Median of each condition of the measurements, or the text that they agree on."""


class Calibration(TypedDict):
    """Figures of one device, derived once and never changed."""

    id: str
    """Id of the calibration, as in `evidence.calibration_ids` of answers."""

    number: int
    """Sequence number among the calibrations of one node and hardware. 1 for an import."""

    origin: CalibrationOrigin
    """Origin of the figures: benchmarks of a node, or imported measurements."""

    state: CalibrationState
    """State of the calibration. Only an `active` one is used; a newer one supersedes it."""

    reason: NotRequired[str]
    """Reason of the withdrawal."""

    device: DeviceKind
    """Kind of device that was measured. A calibration of a processor is not used for accelerators."""

    node_id: NotRequired[str]
    """Node that measured the device."""

    hardware: NotRequired[str]
    """Name of the device, as the driver reports it."""

    hardware_sha256: NotRequired[str]
    """SHA-256 of the numbers that identify the device."""

    accelerator_id: NotRequired[str]
    """Accelerator of the catalog that the device is. Absent if none has its name, memory and power limit."""

    generation: NotRequired[str]
    """Architecture of that accelerator."""

    power_limit_watts: NotRequired[float]
    """Enforced power limit."""

    driver_major: NotRequired[int]
    """Major version of the driver."""

    rests_on: NotRequired[dict[str, Any]]
    """Import that the figures come from. Present for imported figures."""

    created_at: str
    """Time at which the calibration was made."""

    ended_at: NotRequired[str]
    """Time at which the calibration was superseded or withdrawn."""


class CalibrationDetails(TypedDict):
    """A calibration with every figure and its evidence."""

    id: str
    """Id of the calibration, as in `evidence.calibration_ids` of answers."""

    number: int
    """Sequence number among the calibrations of one node and hardware. 1 for an import."""

    origin: CalibrationOrigin
    """Origin of the figures: benchmarks of a node, or imported measurements."""

    state: CalibrationState
    """State of the calibration. Only an `active` one is used; a newer one supersedes it."""

    reason: NotRequired[str]
    """Reason of the withdrawal."""

    device: DeviceKind
    """Kind of device that was measured. A calibration of a processor is not used for accelerators."""

    node_id: NotRequired[str]
    """Node that measured the device."""

    hardware: NotRequired[str]
    """Name of the device, as the driver reports it."""

    hardware_sha256: NotRequired[str]
    """SHA-256 of the numbers that identify the device."""

    accelerator_id: NotRequired[str]
    """Accelerator of the catalog that the device is. Absent if none has its name, memory and power limit."""

    generation: NotRequired[str]
    """Architecture of that accelerator."""

    power_limit_watts: NotRequired[float]
    """Enforced power limit."""

    driver_major: NotRequired[int]
    """Major version of the driver."""

    rests_on: NotRequired[dict[str, Any]]
    """Import that the figures come from. Present for imported figures."""

    created_at: str
    """Time at which the calibration was made."""

    ended_at: NotRequired[str]
    """Time at which the calibration was superseded or withdrawn."""

    figures: list[CalibratedFigure]
    """Constants of the device."""

    fits: list[CollectiveFit]
    """Lines fitted to the times of collectives."""

    answers: list[EndToEndMeasurement]
    """Measured answers to whole questions."""


class CalibrationEfficiency(TypedDict):
    """Takes the achieved share of the limits from one calibration, else from the reference set."""

    source: Literal["calibration"]

    id: str
    """Id of a calibration that is in use."""


CalibrationOrigin: TypeAlias = "Literal['benchmarks', 'import']"


class CalibrationPage(TypedDict):
    """A page of calibrations."""

    items: list[Calibration]
    """Calibrations, the newest first."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


CalibrationState: TypeAlias = "Literal['active', 'superseded', 'withdrawn']"


class CalibrationWithdrawalRequest(TypedDict):
    """Reason why a calibration no longer counts."""

    reason: str
    """Finding that led to the withdrawal."""


class CandidateQuoteRequest(TypedDict):
    """Request for a quote on a row of a plan. Its requests are answered anew under the present catalog."""

    name: str
    """Name of the quote."""

    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""

    note: NotRequired[str]
    """Note for the approvers."""

    valid_for_days: NotRequired[int]
    """Days in which the quote may be approved. A price that ends earlier shortens the validity."""

    plan_id: str
    """Id of the plan."""

    candidate: int
    """Rank of the row."""


class CapacityBlockTerms(TypedDict):
    """Terms of devices that are paid in whole blocks of time, in advance."""

    block_hours: float
    """Length of one block, such as 24."""


class CapacityWork(TypedDict):
    """The largest block of device memory that a process can allocate."""

    kind: Literal["capacity"]


class CarbonEmissions(TypedDict):
    """Emissions of the run."""

    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions at the average intensity of the grid."""

    location_based_method: NotRequired[CarbonMethod]
    """Method of the location-based figure."""

    marginal_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions that the run changes, at the marginal intensity of the grid. Reported beside the other
    figures, not part of them.
    """

    marginal_method: NotRequired[CarbonMethod]
    """Method of the marginal figure."""

    market_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions at the intensity of the contracted electricity."""

    market_based_method: NotRequired[CarbonMethod]
    """Method of the market-based figure."""

    market_based_lines: NotRequired[list[MarketBasedEmissionsLine]]
    """Market-based emissions by instrument, at the middle of the interval of the energy."""

    embodied_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions of making the equipment that are allocated to the run."""

    embodied_lines: NotRequired[list[EmbodiedEmissionsLine]]
    """Embodied emissions by kind of machine."""

    software_carbon_intensity: NotRequired[list[SoftwareCarbonIntensity]]
    """Emissions by functional unit."""


CarbonIntensitySeriesInput: TypeAlias = (
    "HoursOfYearIntensityInput | MonthHoursIntensityInput | IntervalIntensityInput"
)


class CarbonMethod(TypedDict):
    """Method of an emission figure. Figures of different methods do not add up."""

    emission_rate: EmissionRate
    """Rate of the average kWh, or of one additional kWh."""

    accounting: NotRequired[EmissionAccounting]
    """Emissions that are counted. Absent if the request gives a bare number."""

    in_time: bool
    """True if the figure sums the intervals of the run, false if it is a mean intensity times its energy."""


class CatalogAccelerator(TypedDict):
    """An accelerator of the catalog."""

    source: Literal["catalog"]

    id: str
    """The id of a catalog row, or one of its aliases. Case does not matter."""


class CatalogLink(TypedDict):
    """A link of the catalog."""

    source: Literal["catalog"]

    id: str
    """The id of a catalog row, or one of its aliases. Case does not matter."""


class CatalogModel(TypedDict):
    """A model of the catalog."""

    source: Literal["catalog"]

    id: str
    """The id of a catalog row, or one of its aliases. Case does not matter."""


class CatalogRowCopyRequest(TypedDict):
    """Id of the copy."""

    id: NotRequired[str]
    """Id of the copy. Defaults to the id of the row: the copy of a shipped row then replaces it."""


CatalogRowOrder: TypeAlias = "Literal['id', '-id', 'name', '-name']"


class CatalogTariff(TypedDict):
    """A tariff of the catalog."""

    source: Literal["catalog"]

    id: str
    """The id of a catalog row, or one of its aliases. Case does not matter."""


ChargeProration: TypeAlias = "Literal['none', 'thirty_days', 'days_of_month']"


class CheckpointEstimate(TypedDict):
    """Checkpoints of a training run: their size, their interval and the time that training stops for them."""

    bytes: int
    """Bytes of trained weights, master weights and optimizer states of the whole model, counted once."""

    bytes_per_device: int
    """Bytes that a saving device copies."""

    write_seconds: NotRequired[QuantityEstimate]
    """Time to write a checkpoint to the storage."""

    stall_seconds: NotRequired[QuantityEstimate]
    """Time that training stops for each checkpoint."""

    interval_seconds: NotRequired[QuantityEstimate]
    """Training time from one checkpoint to the next."""

    interval_steps: NotRequired[int]
    """Optimizer steps from one checkpoint to the next."""


class CheckpointingInput(TypedDict):
    """Interval and method of saving the training state."""

    mode: NotRequired[CheckpointingInputMode]
    """`synchronous` if training waits until the checkpoint is written, `asynchronous` if it waits only
    until the checkpoint is copied to the host, `none` if the run saves nothing.
    """

    interval_seconds: NotRequired[float]
    """Training time from one checkpoint to the next. Without it and `interval_steps`, the interval that
    loses the least time (Daly 2006), which needs `reliability`.
    """

    interval_steps: NotRequired[int]
    """Optimizer steps from one checkpoint to the next."""

    storage_bandwidth_bytes_per_second: NotRequired[float]
    """Write bandwidth of the storage for all devices together."""

    read_bandwidth_bytes_per_second: NotRequired[float]
    """Read bandwidth of the storage for all devices after a failure. Defaults to the write bandwidth."""

    device_to_host_bandwidth_bytes_per_second: NotRequired[float]
    """Bandwidth of copies from one device to its host. Required for asynchronous checkpoints."""

    sharded: NotRequired[bool]
    """True if every device saves a share of the state. Otherwise one device saves all of it."""

    stall_seconds: NotRequired[float]
    """Measured time that training stops for a checkpoint."""


CheckpointingInputMode: TypeAlias = "Literal['synchronous', 'asynchronous', 'none']"


class Citation(TypedDict):
    """Source of values of a row."""

    pointers: list[str]
    """JSON Pointers of the values; the empty pointer is the whole row."""

    citation: str
    """Document, publisher and way of access."""

    url: NotRequired[str]

    licence: NotRequired[str]

    as_of: str
    """Date of the document, or of its reading."""


class ClusterInput(TypedDict):
    """Equal accelerators in equal nodes."""

    accelerator: AcceleratorReference
    """Accelerator of every device."""

    accelerator_count: NotRequired[int]
    """Devices of the whole cluster."""

    system: NotRequired[str]
    """Name of a system that the catalog lists for the accelerator, such as DGX H100 or p5.48xlarge.
    Defaults to the first.
    """

    node_id: NotRequired[str]
    """Id of a node of the tenant. Its measurements are preferred to those of other nodes of its kind. An
    accelerator that is given by its figures has the measurements of this node.
    """

    accelerators_per_node: NotRequired[int]
    """Accelerators of one node. Defaults to those of the system, else of the vendor's reference server,
    else 8.
    """

    intra_node_link: NotRequired[LinkReference]
    """Link between the devices of a node. Defaults to the link of the system in the catalog."""

    inter_node_link: NotRequired[LinkReference]
    """Link between nodes. Defaults to the link of the system in the catalog."""

    network_interfaces_per_node: NotRequired[int]
    """Network interfaces that the devices of a node share. Defaults to those of the system, else to one a
    device.
    """

    host_power_watts: NotRequired[float]
    """Power of a node without its accelerators. Defaults to a share of the power of the reference server."""

    host: NotRequired[HostInput]

    driver_version: NotRequired[str]
    """Driver version of the accelerators. Measurements under the same major version are preferred to
    others.
    """


class CoincidentPeakCharge(TypedDict):
    """A price for the demand in the grid's own peak intervals (4CP in ERCOT, the triad in Great Britain)."""

    name: str
    """Name that no other charge of the revision has."""

    months: NotRequired[list[int]]
    """Calendar months in which it is charged: energy by its time, all else by the month in which most days
    of the billing period lie. Defaults to all months.
    """

    hours_of_use_from: NotRequired[float]
    """Annual kWh for each kW of the annual peak from which it is charged."""

    hours_of_use_below: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which it is charged; absent without a bound."""

    kind: Literal["coincident_peak"]

    sets: list[CoincidentPeakSet]
    """Sets of peak intervals, each with its price."""

    statistic: NotRequired[CoincidentPeakChargeStatistic]
    """Statistic of the demands in a set that is billed."""

    in_following_year: NotRequired[bool]
    """True if it is billed in the calendar year after the peaks."""


CoincidentPeakChargeStatistic: TypeAlias = "Literal['max', 'mean']"


class CoincidentPeakSet(TypedDict):
    """Peak intervals of the grid: by hour of the local year (the first is 1) or by their start."""

    price: NotRequired[str]
    """Price per kW, once a year; absent where only the kW are wanted."""

    hours_of_year: NotRequired[list[int]]
    """Hours of the local year; 1 begins on 1 January 00:00."""

    starts: NotRequired[list[str]]
    """Starts of the intervals."""

    given: NotRequired[int]
    """Number of intervals that only the determinants of a load state."""

    interval_minutes: NotRequired[int]
    """Length of the intervals that are given by their start. Defaults to the intervals of the load."""


Collective: TypeAlias = (
    "Literal['all_reduce', 'all_gather', 'reduce_scatter', 'all_to_all', 'broadcast', 'point_to_point']"
)
"""Collective operation of a group of devices; point-to-point is between two of them."""


class CollectiveFit(TypedDict):
    """Line fitted to the times of one collective: seconds are alpha plus bytes over beta."""

    collective: str
    """Collective operation that was timed."""

    devices: int
    """Devices that took part."""

    algorithm: NotRequired[str]
    """Algorithm that the library was told to use. Absent if the library chose it."""

    alpha_seconds: float
    """Time of an empty message."""

    beta_bytes_per_second: float
    """Rate of the additional bytes."""

    residuals: list[MessageResidual]
    """Deviations from the line, by message size."""


class CollectiveWork(TypedDict):
    """A collective of devices of one node."""

    kind: Literal["collective"]

    operation: CollectiveWorkOperation
    """Operation of the collective."""

    devices: int
    """Devices that take part."""

    payload_bytes: int
    """Payload as nccl-tests counts it: bytes of a device after a gather, before all others."""

    algorithm: NotRequired[CollectiveWorkAlgorithm]
    """Algorithm that the library is told to use."""

    processes: NotRequired[Literal["per_device"]]
    """A process for each device, as frameworks have. Without it one process works on all devices."""

    launch: NotRequired[Literal["graph"]]
    """A graph that replays several collectives, as engines do. Without it they are started one by one."""

    in_place: NotRequired[Literal[True]]
    """True if the result takes the place of the input, as of tensors that are reduced."""


CollectiveWorkAlgorithm: TypeAlias = "Literal['default', 'ring', 'tree', 'nvls']"

CollectiveWorkOperation: TypeAlias = (
    "Literal['all_reduce', 'all_gather', 'reduce_scatter', 'all_to_all', 'broadcast', 'send_receive']"
)


class CommitmentTerms(TypedDict):
    """Terms of devices that are paid for a term, whether they are used or not."""

    term_hours: float
    """Length of the term, such as 8766 for a year."""

    upfront_per_device: NotRequired[MoneyInput]
    """Amount that is paid once for each device and term, in addition to the hourly price."""

    idle_share: NotRequired[float]
    """Share of the term in which the devices are idle; the run bears its part of the used hours. By
    default only the run uses the devices, and it bears whole terms.
    """


class CompressedAttentionLayer(TypedDict):
    """Attention over a window and over entries that each stand for several tokens (DeepSeek-V4)."""

    kind: Literal["compressed_attention"]

    hidden_size: int
    """Width of the residual stream."""

    query_heads: int
    """Number of query heads."""

    query_rank: int
    """Width of the compressed query."""

    head_size: int
    """Width of a head, and of the vector that is key and value of all heads."""

    window_tokens: int
    """Length of the sliding window in tokens, which are seen uncompressed."""

    output_groups: int
    """Number of groups of heads that the output projects by themselves first."""

    output_rank: int
    """Width that each of these groups is projected to."""

    compression: NotRequired[int]
    """Number of tokens that an entry stands for; absent where only the window is seen."""

    overlapped: NotRequired[bool]
    """True if an entry is made of its own tokens and of those of the entry before."""

    index_heads: NotRequired[int]
    """Number of heads of the scorer that picks entries; absent where all are read."""

    index_head_size: NotRequired[int]
    """Width of the heads of the scorer, and of the one key that it keeps for each entry."""

    index_entries: NotRequired[int]
    """Number of entries that the scorer picks for each query."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


class ConstantBaselineLoad(TypedDict):
    """Constant power."""

    kind: Literal["constant"]
    """Selects this shape."""

    kw: float
    """Power at the meter."""


class ConstantDemand(TypedDict):
    """Constant power."""

    kind: Literal["constant"]

    starts_at: str
    """Start of the first interval. Without an offset from UTC it is on the local clock."""

    ends_at: str
    """End of the last interval, as a time of the same kind as the start."""

    interval_minutes: NotRequired[Literal[5, 15, 30, 60]]
    """Length of each interval, in minutes."""

    kw: float
    """Power at the meter."""


class ContextMemoryWork(TypedDict):
    """Device memory that a process takes before it allocates anything."""

    kind: Literal["context_memory"]

    with_library: bool
    """True if the matrix library is initialised too."""


class ConvolutionLayer(TypedDict):
    """A convolution over frames, height and width; a kernel side of 1 leaves that axis out."""

    kind: Literal["convolution"]

    input_channels: int
    """Number of channels of the input."""

    output_channels: int
    """Number of channels of the output."""

    kernel_height: int
    """Number of rows that the kernel sees."""

    kernel_width: int
    """Number of columns that the kernel sees."""

    kernel_frames: NotRequired[int]
    """Number of frames that the kernel sees."""

    stride: NotRequired[int]
    """Step of the kernel over height and width."""

    frame_stride: NotRequired[int]
    """Step of the kernel over frames."""

    groups: NotRequired[int]
    """Number of groups of channels that do not mix."""

    bias: NotRequired[bool]
    """True if a learned vector is added."""

    padded: NotRequired[bool]
    """True if the border is covered: n cells become ceil(n / stride), otherwise floor((n - kernel) /
    stride) + 1, as for patches.
    """

    shortcut: NotRequired[bool]
    """True if it runs beside the other layers of its block, on the input of the block."""

    upsamples: NotRequired[bool]
    """True if the stride enlarges the grid (transposed convolution)."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


class CorrectnessCheck(TypedDict):
    """Comparison of the computed result with a reference that depends on the seed of the run."""

    method: str
    """Reference of the comparison."""

    largest_error: float
    """Largest error, relative to the scale of the result."""

    tolerance: float
    """Largest error that passes."""

    passed: bool
    """True if the largest error is within the tolerance."""

    checksum: NotRequired[str]
    """Digest of the part of the result that was checked."""


class CostBreakdown(TypedDict):
    """Charges and their sum."""

    lines: list[CostLine]
    """Charges."""

    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""


class CostCenter(TypedDict):
    """A cost centre."""

    id: str
    """Id of the cost centre, used in quotes and policies."""

    name: str
    """Display name of the cost centre."""

    note: NotRequired[str]
    """Note on the cost centre."""

    accounts: NotRequired[list[str]]
    """Sub-accounts and billing accounts (SubAccountId, BillingAccountId) whose charges belong to the cost
    centre.
    """

    tags: NotRequired[list[BillTagMatch]]
    """Tags whose charges belong to the cost centre."""

    version: int
    """Number of this version; the ETag of the resource."""

    created_at: str
    """Time at which the cost centre was created."""


class CostCenterPage(TypedDict):
    """A page of cost centres."""

    items: list[CostCenter]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class CostCenterPatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]
    """Display name of the cost centre."""

    note: NotRequired[str | None]
    """Note on the cost centre."""

    accounts: NotRequired[list[str]]
    """Sub-accounts and billing accounts (SubAccountId, BillingAccountId) whose charges belong to the cost
    centre.
    """

    tags: NotRequired[list[BillTagMatch]]
    """Tags whose charges belong to the cost centre."""


class CostCenterRequest(TypedDict):
    """A cost centre, which pays for quotes.

    A charge of a bill belongs to the cost centre of its quote (tag `quote_id`), else to the one named
    by its tag `cost_center_id`, else to the one that has its tag, its sub-account or its billing
    account.
    """

    id: str
    """Id of the cost centre, used in quotes and policies."""

    name: str
    """Display name of the cost centre."""

    note: NotRequired[str]
    """Note on the cost centre."""

    accounts: NotRequired[list[str]]
    """Sub-accounts and billing accounts (SubAccountId, BillingAccountId) whose charges belong to the cost
    centre.
    """

    tags: NotRequired[list[BillTagMatch]]
    """Tags whose charges belong to the cost centre."""


class CostComparisonEstimate(TypedDict):
    """Cost of the same work done in different ways."""

    baseline: CostEstimate
    """Cost that the others are compared with."""

    alternatives: list[AlternativeCost]
    """Alternatives in the order of the request."""

    gaps: list[EstimateGap]
    """Ratios that are absent, and why."""


class CostComparisonRequest(TypedDict):
    """Request for a comparison of ways to do the same work."""

    baseline: CostEstimateRequest
    """Way that the others are compared with."""

    alternatives: list[CostEstimateRequest]
    """Ways of doing the work with the same model and the same tokens or requests, on other devices, in
    other layouts or on other terms.
    """


class CostEstimate(TypedDict):
    """Cost of a training run or of a served model."""

    parallelism: ParallelismDegrees
    """The layout that the figures hold for."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""

    defaults: list[EstimateDefault]
    """Members that the question leaves open and that shape the answer, as they are filled."""

    warnings: list[AnswerWarning]
    """Remarks about the question."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""

    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run, without interruptions of spot devices."""

    device_hours: NotRequired[QuantityEstimate]
    """Hours of all devices together over that time."""

    lines: list[CostLine]
    """Charges of the run: its rent, else its share of owned devices, else the purchase; also storage and
    egress.
    """

    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""

    cost_per_million_tokens: NotRequired[MoneyQuantity]
    """Total over the tokens that are trained on or generated."""

    cost_per_million_input_tokens: NotRequired[MoneyQuantity]
    """Cost of the prompts of a served model: the share of the total that prompts take of the devices' busy
    time, over the tokens of the prompts.
    """

    cost_per_million_output_tokens: NotRequired[MoneyQuantity]
    """Rest of the total over the generated tokens."""

    cost_per_request: NotRequired[MoneyQuantity]
    """Total over the requests that are served."""

    rent: NotRequired[RentCostBreakdown]
    """Cost of renting the devices. Present if a rental is given."""

    purchase: NotRequired[CostBreakdown]
    """Cost of buying the devices. Present if a purchase is given."""

    ownership: NotRequired[OwnershipCostBreakdown]
    """Cost of the run on bought devices. Present if the request asks for it."""

    break_even_runs: NotRequired[QuantityEstimate]
    """Purchase over rent: number of runs after which the purchase has paid for itself."""

    break_even: NotRequired[list[BreakEven]]
    """The same in runs and months, under further assumptions."""

    list_prices: NotRequired[list[TokenListPrice]]
    """Providers' prices of the same tokens: at the list prices of the request, else at those of the model."""


class CostEstimateBatchRequest(TypedDict):
    """Several requests for cost, answered in order."""

    requests: list[CostEstimateRequest]
    """Requests. If one of them has no answer, the batch fails."""


class CostEstimateList(TypedDict):
    """Answers in the order of the questions."""

    results: list[CostEstimate]


class CostEstimateRequest(TypedDict):
    """Request for the cost of a workload."""

    model: ModelReference
    """Model that is trained or served."""

    workload: WorkloadInput
    """Work of the model."""

    cluster: ClusterInput
    """Cluster that the workload runs on."""

    rental: NotRequired[Rental]
    """Terms and price of renting the devices."""

    purchase: NotRequired[Purchase]
    """Price of buying the devices."""

    efficiency: NotRequired[EfficiencyInput]
    """Source of the efficiency of the devices. Defaults to measured runs."""

    parallelism: NotRequired[ParallelismInput]
    """Layout of the workload over the devices. Defaults to a sensible layout, which the answer states."""

    storage: NotRequired[StorageInput]
    """Price of storing data and checkpoints."""

    egress: NotRequired[EgressInput]
    """Price of data that leave the provider."""

    token_price_ids: NotRequired[list[str]]
    """Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
    model that are at most a year older than the newest of the catalog.
    """

    starts_at: NotRequired[str]
    """Start of the run."""

    currency_code: NotRequired[str]
    """Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
    prices, which then must all have the same one.
    """


class CostExportRequest(TypedDict):
    """Request for the charges of a run as FOCUS rows."""

    model: ModelReference
    """Model that is trained or served."""

    workload: WorkloadInput
    """Work of the model."""

    cluster: ClusterInput
    """Cluster that the workload runs on."""

    rental: NotRequired[Rental]
    """Terms and price of renting the devices."""

    purchase: NotRequired[Purchase]
    """Price of buying the devices."""

    efficiency: NotRequired[EfficiencyInput]
    """Source of the efficiency of the devices. Defaults to measured runs."""

    parallelism: NotRequired[ParallelismInput]
    """Layout of the workload over the devices. Defaults to a sensible layout, which the answer states."""

    starts_at: NotRequired[str]
    """Start of the run."""

    billing_account_id: NotRequired[str]
    """Id of the account that is charged. Defaults to the id of the tenant."""

    billing_account_name: NotRequired[str]
    """Name of the account. Defaults to its id."""

    storage: NotRequired[StorageInput]
    """Price of storing data and checkpoints."""

    egress: NotRequired[EgressInput]
    """Price of data that leave the provider."""

    token_price_ids: NotRequired[list[str]]
    """Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
    model that are at most a year older than the newest of the catalog.
    """

    currency_code: NotRequired[str]
    """Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
    prices, which then must all have the same one.
    """


class CostLine(TypedDict):
    """One charge: quantity times unit price, rounded once."""

    name: str
    """Name of what is charged."""

    quantity: float
    """Number of units."""

    unit: str
    """Unit of the quantity."""

    unit_price: NotRequired[MoneyAmount]
    """Price of one unit. Absent if no price is known."""

    amount: NotRequired[MoneyAmount]
    """Quantity times unit price."""

    source: str
    """Source of the price."""

    category: NotRequired[CostLineCategory]
    """Category of the charge (ChargeCategory of FOCUS). Usage if absent."""


CostLineCategory: TypeAlias = "Literal['usage', 'purchase', 'tax', 'credit']"


class CostQuoteRequest(TypedDict):
    """Request for a quote on cost, which includes memory and throughput."""

    name: str
    """Name of the quote."""

    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""

    note: NotRequired[str]
    """Note for the approvers."""

    valid_for_days: NotRequired[int]
    """Days in which the quote may be approved. A price that ends earlier shortens the validity."""

    operation: Literal["cost"]

    request: CostEstimateRequest
    """Body of `POST /v1/estimates/cost`."""


CudaGraphs: TypeAlias = "Literal['none', 'layer', 'iteration']"
"""Kernels of a step that are launched together, in graphs."""


class DataPipelineEstimate(TypedDict):
    """Data pipeline of a training run, and the time that devices wait for it."""

    stages: list[DataPipelineStage]
    """Stages whose figures are given, and compute."""

    slowest: DataPipelineEstimateSlowest
    """Stage that takes longest."""

    exposed_seconds: QuantityEstimate
    """Time of a step in which the devices wait for data."""

    device_utilization: QuantityEstimate
    """Share of a step in which the devices do not wait for data."""

    workers_needed: NotRequired[int]
    """Workers of each replica that prepare samples as fast as the devices consume them."""

    buffer_bytes: int
    """Host memory of the batches of a replica that are ready, in preparation or in transfer."""

    dataset_bytes: NotRequired[int]
    """Size of the stored dataset."""

    stream_seconds: NotRequired[QuantityEstimate]
    """Time to read the dataset once."""

    epochs: NotRequired[float]
    """Number of times that the run reads the dataset."""


DataPipelineEstimateSlowest: TypeAlias = "Literal['storage', 'preprocessing', 'transfer', 'compute']"


class DataPipelineInput(TypedDict):
    """Path of samples to the devices. A stage with too few figures is left out and reported as a gap."""

    stored_bytes_per_sample: NotRequired[float]
    """Bytes of a stored sequence or sample."""

    storage_bandwidth_bytes_per_second: NotRequired[float]
    """Bandwidth of sequential reads from the storage, for the whole cluster."""

    preprocessing_seconds_per_sample: NotRequired[float]
    """Time that one worker takes to prepare a sample."""

    worker_count: NotRequired[int]
    """Worker processes of each data-parallel replica."""

    node_bandwidth_bytes_per_second: NotRequired[float]
    """Highest read bandwidth of one node: of its network interface, or of a drive of its own."""

    access_factor: NotRequired[float]
    """Share of the bandwidth that the access pattern achieves: 1 in sequence, about 0.1 if shuffled."""

    prefetch: NotRequired[bool]
    """True if batches are prepared while the devices compute. Otherwise each step waits for all stages."""

    prefetch_factor: NotRequired[int]
    """Batches that each worker keeps ready."""

    host_to_device_bandwidth_bytes_per_second: NotRequired[float]
    """Bandwidth of copies from the host to one device."""

    device_bytes_per_sample: NotRequired[float]
    """Bytes of a sample as it is copied to the device. Defaults to 8 for each token."""

    dataset_bytes: NotRequired[float]
    """Size of the stored dataset. Defaults to what the run reads, each sample once."""


class DataPipelineStage(TypedDict):
    """One stage of the data pipeline."""

    name: DataPipelineEstimateSlowest
    """Name of the stage."""

    seconds: QuantityEstimate
    """Time of the stage for the samples of a step."""


class DecodeLoopWork(TypedDict):
    """Tokens of a small decoder, one after the other for each sequence of a batch."""

    layers: int
    """Layers, all alike."""

    hidden: int
    """Elements of a token."""

    query_heads: int
    """Heads of a query."""

    kv_heads: int
    """Heads of keys and values."""

    head_size: DecodeLoopWorkHeadSize
    """Elements of a head."""

    feed_forward: int
    """Elements between the matrices of the feed-forward network."""

    vocabulary: int
    """Tokens of the vocabulary."""

    dtype: DecodeLoopWorkDtype
    """Type of weights and activations."""

    kind: Literal["decode_loop"]

    batch: int
    """Sequences."""

    context_tokens: int
    """Tokens in the cache of a sequence before the first step."""

    steps: int
    """Tokens that one execution makes for each sequence."""

    uses_graph: NotRequired[bool]
    """True if the launches of a step are replayed from a graph."""


DecodeLoopWorkDtype: TypeAlias = "Literal['fp32', 'bf16']"

DecodeLoopWorkHeadSize: TypeAlias = "Literal[64, 128]"


class DemandCharge(TypedDict):
    """A price for each kW (or kVA) of demand: the mean over a demand window at its highest."""

    name: str
    """Name that no other charge of the revision has."""

    kind: Literal["demand"]

    periods: list[TariffPricePeriod]
    """Prices by the time of use."""

    months: NotRequired[list[int]]
    """Calendar months in which it is charged: energy by its time, all else by the month in which most days
    of the billing period lie. Defaults to all months.
    """

    hours_of_use_from: NotRequired[float]
    """Annual kWh for each kW of the annual peak from which it is charged."""

    hours_of_use_below: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which it is charged; absent without a bound."""

    apparent: NotRequired[bool]
    """True if the charge is billed in kVA (kW divided by the power factor)."""

    window_minutes: NotRequired[int]
    """Minutes over which demand is averaged. Defaults to the intervals of the load."""

    rolling: NotRequired[bool]
    """True if a demand window begins with every interval, and not only at multiples of its length past
    local midnight. A rolling window belongs to the time at which it ends.
    """

    peaks: NotRequired[int]
    """Number of highest demands whose mean is billed."""

    on_distinct_days: NotRequired[bool]
    """True if each of these demands is of another local day."""

    span: NotRequired[DemandChargeSpan]
    """Time over which a peak is the highest; the peak of a calendar year is charged once."""

    pricing: NotRequired[DemandChargePricing]
    """Method by which tiers price a demand: each tier prices the part within it (`marginal`), the whole
    demand has the price of the tier that it falls in (`bracket`), or that price is the amount
    (`bracket_amount`).
    """

    billing_demand: NotRequired[BillingDemand]
    """Rule by which the peak becomes the demand that is billed. Defaults to the metered peak."""

    proration: NotRequired[ChargeProration]
    """Part of a monthly price that is charged in a billing period that is not one month."""

    minimum: NotRequired[str]
    """Least decimal amount of the charge in a period."""


DemandChargePricing: TypeAlias = "Literal['marginal', 'bracket', 'bracket_amount']"

DemandChargeSpan: TypeAlias = "Literal['billing_period', 'calendar_year']"


class DemandDeterminants(TypedDict):
    """Billing quantities of the months of a year, for a load without a known series."""

    kind: Literal["determinants"]

    year: int
    """Calendar year of the load."""

    energy_kwh: NotRequired[list[MonthlyBillingQuantity]]
    """Energy by month and price period."""

    peak_kw: NotRequired[list[MonthlyBillingQuantity]]
    """Highest demand by month, and by month and price period."""

    coincident_kw: NotRequired[list[float]]
    """Demand in the grid's peak intervals, in the order of the tariff's sets."""


class DemandRatchet(TypedDict):
    """A billing demand is at least a share of earlier peaks."""

    share_by_billing_month: NotRequired[list[float]]
    """Twelve shares by the calendar month that is billed. Defaults to 1 each."""

    share_by_peak_month: NotRequired[list[float]]
    """Twelve shares by the calendar month of the peak, multiplied by the others. Defaults to 1 each."""

    preceding_months: NotRequired[int]
    """Number of months before the billing month whose peaks are looked back on."""

    peak_months: NotRequired[list[int]]
    """Calendar months whose peaks are looked back on."""

    within_billing_month: NotRequired[bool]
    """True if the peak of the billing month itself is looked back on too."""

    period: NotRequired[str]
    """Price period whose peaks count. Defaults to all hours."""

    raises: NotRequired[list[str]]
    """Price periods whose demand is raised. Defaults to all."""

    wraps_year: NotRequired[bool]
    """True if months before the load whose peaks are unknown are taken from the end of the same year."""


class DemandRule(TypedDict):
    """Power by local month, weekday and time of day."""

    kind: Literal["rule"]

    starts_at: str
    """Start of the first interval. Without an offset from UTC it is on the local clock."""

    ends_at: str
    """End of the last interval, as a time of the same kind as the start."""

    interval_minutes: NotRequired[Literal[5, 15, 30, 60]]
    """Length of each interval, in minutes."""

    base_kw: NotRequired[float]
    """Power of every interval."""

    step_kw: NotRequired[float]
    """Power that each interval adds to the one before it."""

    add: NotRequired[list[DemandRuleIncrement]]
    """Powers that are added in intervals of some months, weekdays and times of day."""

    set: NotRequired[list[DemandRuleOverride]]
    """Intervals with a power of their own."""


class DemandRuleIncrement(TypedDict):
    """Power that is added in the intervals whose start matches every member that is given."""

    kw: float
    """Added power."""

    months: NotRequired[list[int]]
    """Calendar months. Defaults to all."""

    weekdays: NotRequired[list[int]]
    """1 (Monday) to 7. Defaults to all."""

    from_time: NotRequired[str]
    """Local time of day at which the added power begins."""

    to_time: NotRequired[str]
    """Local time of day at which the added power ends. A time not after `from_time` is on the next day."""


class DemandRuleOverride(TypedDict):
    """Power of single intervals, which replaces the power of the rest of the rule."""

    intervals: list[int]
    """Positions of the intervals in the load, from 1."""

    kw: float
    """Power of the intervals."""


class DemandSeries(TypedDict):
    """Mean power of consecutive intervals."""

    kind: Literal["series"]

    starts_at: str
    """Start of the first interval. Without an offset from UTC it is on the local clock."""

    interval_minutes: NotRequired[Literal[5, 15, 30, 60]]
    """Length of each interval, in minutes."""

    kw: list[float]
    """Mean power of each interval at the meter."""


class DeviceCopyWork(TypedDict):
    """A copy within device memory by the driver, which takes a copy engine or a kernel of its own."""

    kind: Literal["device_copy"]

    array_bytes: int
    """Size of the source and of the target."""


DeviceKind: TypeAlias = "Literal['cuda', 'cpu']"


class DeviceMemory(TypedDict):
    """Memory of the fullest device. `known_bytes` is the sum of the components."""

    total_bytes: NotRequired[QuantityEstimate]
    """Sum of all components. Absent if one of them is unknown."""

    known_bytes: int
    """Sum of the components that are listed."""

    components: list[MemoryComponent]
    """Parts of the memory."""


class DeviceTelemetry(TypedDict):
    """Readings of the device over the timed window."""

    window_seconds: float
    """Duration of the window of the readings."""

    sample_period_seconds: NotRequired[float]
    """Mean time from one reading to the next."""

    sample_count: NotRequired[int]
    """Number of readings of each kind."""

    sm_clock_hz: NotRequired[ReadingSpread]
    """Clock of the multiprocessors."""

    memory_clock_hz: NotRequired[ReadingSpread]
    """Clock of the memory."""

    cpu_clock_hz: NotRequired[ReadingSpread]
    """Clock of the processors that the worker may use, on a node without accelerators."""

    temperature_celsius: NotRequired[ReadingSpread]
    """Temperature of the device."""

    memory_temperature_celsius: NotRequired[ReadingSpread]
    """Temperature of the memory of the device."""

    power_watts: NotRequired[ReadingSpread]
    """Power by the sensor, on most devices its average over one second."""

    power_instant_watts: NotRequired[ReadingSpread]
    """Power by the sensor at the moment of each reading."""

    energy_joules: NotRequired[float]
    """Energy by the energy counter."""

    energy_power_watts: NotRequired[float]
    """Power by the energy counter, over the time between its readings."""

    throttle_seconds: NotRequired[ThrottleSeconds]

    throttle_reasons: NotRequired[list[str]]
    """Every reason for a lower clock that was seen at a reading."""

    ecc_corrected: NotRequired[int]
    """Number of corrected errors of the memory in the window."""

    ecc_uncorrected: NotRequired[int]
    """Number of uncorrected errors of the memory in the window."""

    pcie_generation: NotRequired[int]
    """Generation of the bus, read under load: it drops when idle."""

    pcie_width: NotRequired[int]
    """Number of lanes, read under load."""

    other_processes: NotRequired[int]
    """Number of other processes on the device."""

    load_average: NotRequired[float]
    """Load average of the host over one minute, at the end of the window."""


class DiffusionInput(TypedDict):
    """Sampling of a picture or a video. The model of the request is the denoiser."""

    sampler: NotRequired[DiffusionInputSampler]
    """Sampler, which sets the usual number of steps. `heun` evaluates the denoiser twice in each step but
    the last.
    """

    steps: NotRequired[int]
    """Steps from noise to sample. Defaults to 1000 for ddpm, 50 for ddim, 20 for dpm_solver, 28 for euler
    and 18 for heun.
    """

    guidance: NotRequired[DiffusionInputGuidance]
    """Guidance of the sampling. Classifier-free guidance evaluates the denoiser with and without the
    prompt. Use `none` for a model that guidance was distilled into, such as Flux.
    """

    guided_share: NotRequired[float]
    """Share of the steps that are guided."""

    samples: NotRequired[int]
    """Pictures or videos of a request."""

    text_encoders: NotRequired[list[TextEncoderInput]]
    """Models that encode the prompt. Without them their time is left out."""

    autoencoder: NotRequired[AutoencoderInput]
    """Autoencoder of the latents. Without it the time to decode them is left out."""


DiffusionInputGuidance: TypeAlias = "Literal['classifier_free', 'none']"

DiffusionInputSampler: TypeAlias = "Literal['ddpm', 'ddim', 'dpm_solver', 'euler', 'heun']"


class DisaggregatedPoolEstimate(TypedDict):
    """Figures of the replicas of one kind."""

    accelerator_count: int
    """Devices of all its replicas."""

    most_requests_per_second: QuantityEstimate
    """Rate that all its replicas cannot exceed."""

    utilization: float
    """Share of the time in which a replica computes."""

    mean_batch: float
    """Mean prompts of a pass, or mean requests that decode at a time, on one replica."""


class DisaggregatedPoolInput(TypedDict):
    """Replicas of one kind: all of them compute prompts, or all of them generate."""

    parallelism: NotRequired[ParallelismInput]
    """Layout of one replica. `data`, the number of attention ranks that share its experts, defaults to
    `expert`.
    """

    replicas: NotRequired[int]
    """Equal replicas, with devices of their own."""

    accelerator: NotRequired[AcceleratorReference]
    """Accelerator of the replicas. Defaults to the accelerator of the cluster."""

    max_num_seqs: NotRequired[int]
    """Most requests of one replica in one iteration. Defaults to the value of the engine."""

    max_batched_tokens: NotRequired[int]
    """Most tokens of one iteration. Defaults to the value of the engine."""


class DisaggregationEstimate(TypedDict):
    """Both kinds of replicas of disaggregated serving, at the rate that they reach together."""

    prefill: DisaggregatedPoolEstimate
    """Replicas that compute prompts."""

    decode: DisaggregatedPoolEstimate
    """Replicas that generate."""

    transfer: KvCacheTransferEstimate
    """Transfer of the KV cache from prefill to decode."""

    balanced_prefill_replicas_per_decode_replica: float
    """Ratio at which neither kind waits for the other: the highest rate of a decode replica over that of a
    prefill replica.
    """


class DisaggregationInput(TypedDict):
    """Prefill and decode on replicas of their own. The KV cache of a prompt is transferred between them."""

    prefill: DisaggregatedPoolInput
    """Replicas that compute prompts."""

    decode: DisaggregatedPoolInput
    """Replicas that generate."""

    transfer_link: NotRequired[LinkReference]
    """Link of each device that carries the KV cache. Defaults to the cluster's link between nodes, or to
    the link inside a node if all replicas are in one node.
    """

    transfer: NotRequired[DisaggregationInputTransfer]
    """`by_layer` if the cache of a layer is sent while later layers compute, `whole` if all of it is sent
    after the last.
    """


DisaggregationInputTransfer: TypeAlias = "Literal['by_layer', 'whole']"


class DiscardedSamples(TypedDict):
    """Samples that do not count, with the reason."""

    reason: str
    """Reason that they do not count."""

    count: int
    """Number of samples."""


class DivergenceWork(TypedDict):
    """Multiply-adds of warps whose threads take `paths` different ways."""

    kind: Literal["divergence"]

    paths: DivergenceWorkPaths
    """Ways among the threads of a warp. They run one after the other, so the rate falls with their number."""

    steps: int
    """Multiply-adds of each thread."""

    threads: int
    """Threads of one execution."""


DivergenceWorkPaths: TypeAlias = "Literal[1, 2, 4, 8, 16, 32]"

EfficiencyInput: TypeAlias = "ModelledEfficiency | AssumedEfficiency | CalibrationEfficiency"


class EgressInput(TypedDict):
    """Data that leave the provider, charged by gigabyte (1e9 bytes)."""

    price_per_gigabyte: MoneyInput
    """Price of a gigabyte that leaves."""

    bytes: NotRequired[float]
    """Bytes that leave over the whole run."""

    bytes_per_second: NotRequired[float]
    """Mean rate of the bytes that leave, for the duration of the run."""


class ElectricityBill(TypedDict):
    """The electricity bill: a line for each kind of equipment at a flat price, else those of the tariff."""

    allocation: NotRequired[ElectricityBillAllocation]
    """Share of the bill that is answered, under a tariff: what the run adds, or the run by itself."""

    lines: list[ElectricityBillLine]
    """Charges. With the allocation `incremental`, an amount below 0 is a saving through the run."""

    periods: NotRequired[list[BillingPeriodTotal]]
    """Totals by billing period, under a tariff."""

    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""


ElectricityBillAllocation: TypeAlias = "Literal['incremental', 'standalone']"


class ElectricityBillLine(TypedDict):
    """One charge. Under a tariff: for one billing period, price period and tier."""

    name: str
    """Name of what is charged."""

    quantity: float
    """Number of units."""

    unit: str
    """Unit of the quantity."""

    unit_price: NotRequired[MoneyAmount]
    """Price of one unit. Absent if no price is known."""

    amount: NotRequired[MoneyAmount]
    """Quantity times unit price."""

    source: str
    """Source of the price."""

    category: NotRequired[CostLineCategory]
    """Category of the charge (ChargeCategory of FOCUS). Usage if absent."""

    kind: NotRequired[ElectricityBillLineKind]
    """Kind of the charge."""

    billing_period: NotRequired[BillingPeriod]
    """Billing period that the charge falls in."""

    price_period: NotRequired[str]
    """Hours that share the price."""

    tier: NotRequired[int]
    """Position of the tier among its tiers, from 1."""

    peak_at: NotRequired[str]
    """Start of the interval that set the demand. If the demand looks back, start of the earlier peak."""

    note: NotRequired[str]
    """Remark, such as the reason why a demand was raised to the billed one."""

    after_run: NotRequired[bool]
    """True if the charge falls in a billing period after the run, because of a peak of the run."""


ElectricityBillLineKind: TypeAlias = "Literal['fixed', 'energy', 'demand', 'overrun', 'coincident_peak', 'reactive', 'minimum', 'percentage', 'tax']"


class ElectricityContract(TypedDict):
    """Electricity that is bought at an intensity of its own."""

    kind: ElectricityContractKind
    """Instrument by which the electricity is bought."""

    share: float
    """Share of the run's energy."""

    carbon_intensity_kg_co2e_per_kwh: float
    """Emissions of each kWh."""

    accounting: NotRequired[EmissionAccounting]
    """Emissions that are counted."""

    source: str
    """Document that states the figure."""


ElectricityContractKind: TypeAlias = (
    "Literal['power_purchase_agreement', 'certificate', 'supplier', 'green_tariff']"
)


class ElectricityPriceInput(TypedDict):
    """Price of electricity: a flat price, or a tariff with the data that its bill depends on."""

    price_per_kwh: NotRequired[MoneyInput]
    """Price of a kWh at the meter, at any time."""

    tariff_id: NotRequired[str]
    """Id of a tariff of the catalog. Defaults to the tariff of the catalog's site."""

    tariff: NotRequired[TariffTerms]
    """Terms of a tariff that is not in the catalog."""

    allocation: NotRequired[ElectricityBillAllocation]
    """Allocation of the bill: the amount that the run adds to the bill of the baseline load
    (`incremental`), or the bill of the run alone for every billing period in which it runs
    (`standalone`). Defaults to incremental if a baseline load is given, else to standalone.
    """

    billing_period_starts: NotRequired[list[str]]
    """First days of consecutive billing periods, and of the period after the last. Defaults to calendar
    months.
    """

    monthly_peaks: NotRequired[list[MonthlyPeak]]
    """Demand of earlier months, for charges that look back: of the baseline load, or of the load before
    the run.
    """

    power_factor: NotRequired[float]
    """Ratio of active to apparent power at the meter."""

    price_factor: NotRequired[float]
    """Factor of the price, or of each charge of the tariff, for prices that move."""

    metering_side: NotRequired[ElectricityPriceInputMeteringSide]
    """Side of the transformer that the meter is on. A tariff may add the loss of the transformer to the
    reading of a secondary meter.
    """


ElectricityPriceInputMeteringSide: TypeAlias = "Literal['primary', 'secondary']"


class EmbeddingTableLayer(TypedDict):
    """A look-up table of a recommender's sparse feature."""

    kind: Literal["embedding_table"]

    rows: int
    """Number of rows of the table."""

    size: int
    """Width of a row."""

    lookups_per_sample: NotRequired[float]
    """Mean number of rows that a sample reads."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


class EmbodiedEmissionsFigure(TypedDict):
    """Embodied emissions by one assessment, with the range of others."""

    value: float
    """Emissions of one accelerator from its materials to the gate of the factory, in kg CO2-equivalent."""

    low: float
    """Lowest value of an assessment, in kg CO2-equivalent."""

    high: float
    """Highest value of an assessment, in kg CO2-equivalent."""


class EmbodiedEmissionsInput(TypedDict):
    """Emissions of making the machines, and their lifetime. Figures given here replace the catalog's."""

    kg_co2e_per_device: NotRequired[float]
    """Emissions of making one accelerator. Defaults to the value of the catalog."""

    kg_co2e_per_server: NotRequired[float]
    """Emissions of making a server without its accelerators."""

    lifetime_years: NotRequired[float]
    """Years from first to last use."""

    utilization: NotRequired[float]
    """Share of its lifetime in which a machine is used."""


class EmbodiedEmissionsLine(TypedDict):
    """Embodied emissions of machines of one kind."""

    name: EmbodiedEmissionsLineName
    """Kind of machine. Servers are counted without their accelerators."""

    kg_co2e: QuantityEstimate
    """Emissions of making the machines that are allocated to the run."""

    source: str
    """Source of the assessment."""


EmbodiedEmissionsLineName: TypeAlias = "Literal['accelerators', 'servers']"

EmissionAccounting: TypeAlias = "Literal['generation', 'life_cycle', 'provider', 'unstated']"

EmissionRate: TypeAlias = "Literal['average', 'marginal']"


class EmpiricalScalingFit(TypedDict):
    """n / S(n) = a + b n + c ln n, fitted to the points of a curve; n is relative to the smallest number."""

    a: float
    """Constant term."""

    b: float
    """Coefficient of n."""

    c: float
    """Coefficient of ln n."""

    largest_relative_error: float
    """Largest relative error of the fit at its own points."""


class EndToEndMeasurement(TypedDict):
    """A measured end-to-end figure and the request of the estimate for it."""

    operation: str
    """Estimate that answers the question."""

    family: str
    """Kind of figure."""

    figure: NotRequired[str]
    """JSON Pointer of the figure in the answer."""

    measured: float
    """Measured value, in the unit of the figure."""

    question: dict[str, Any]
    """Body of the request."""


class EnergyCharge(TypedDict):
    """A price for each kWh: flat, by time of use, by tier, by hours of use of the billing demand."""

    name: str
    """Name that no other charge of the revision has."""

    months: NotRequired[list[int]]
    """Calendar months in which it is charged: energy by its time, all else by the month in which most days
    of the billing period lie. Defaults to all months.
    """

    hours_of_use_from: NotRequired[float]
    """Annual kWh for each kW of the annual peak from which it is charged."""

    hours_of_use_below: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which it is charged; absent without a bound."""

    kind: Literal["energy"]

    periods: list[TariffPricePeriod]
    """Prices by the time of use."""

    accumulation: NotRequired[EnergyChargeAccumulation]
    """Energy that fills the tiers."""

    billing_demand_of: NotRequired[str]
    """Demand charge whose billing demand scales hours of use. Defaults to the peak of the billing period."""


EnergyChargeAccumulation: TypeAlias = "Literal['per_period', 'all_periods_in_time_order']"


class EnergyEquivalent(TypedDict):
    """An illustration of the amount of energy; it is not a measure."""

    name: Literal["household_months"]
    """Unit of the illustration."""

    value: float
    """Number of units."""

    detail: str
    """Definition of one unit."""


class EnergyEstimate(TypedDict):
    """Energy of the accelerators and the equipment around them, and of the building at its meter."""

    lines: list[EnergyUseLine]
    """Energy by kind of equipment."""

    it_kwh: NotRequired[QuantityEstimate]
    """Energy that all equipment draws."""

    facility_kwh: NotRequired[QuantityEstimate]
    """Energy of all equipment at the meter of the building."""

    overhead_kwh: NotRequired[QuantityEstimate]
    """Energy that cooling and distribution of the building add."""

    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter of the building in the phase that draws most."""

    load_profile: NotRequired[LoadProfileEstimate]
    """Power over time."""


class EnergyUseLine(TypedDict):
    """The energy of one kind of equipment."""

    name: EnergyUseLineName
    """Kind of equipment. `measured` is all equipment of a measured run."""

    it_kwh: NotRequired[QuantityEstimate]
    """Energy that the equipment draws."""

    facility_kwh: NotRequired[QuantityEstimate]
    """Energy of the equipment at the meter of the building."""

    source: str
    """Source of the figure."""


EnergyUseLineName: TypeAlias = (
    "Literal['accelerators', 'hosts', 'fans', 'power_supplies', 'fabric', 'measured']"
)


class EnqueueLatencyWork(TypedDict):
    """Time in which the host enqueues an empty kernel, whenever the device runs it."""

    kind: Literal["enqueue_latency"]

    caller: EnqueueLatencyWorkCaller
    """Caller of the driver: a loop in C, or Python through cuda-bindings."""

    launches: int
    """Launches of one execution, no more than a stream queues before the host has to wait."""


EnqueueLatencyWorkCaller: TypeAlias = "Literal['c', 'cuda_bindings']"


class EnrolmentToken(TypedDict):
    """An enrolment token, without its secret."""

    id: str

    node_name: NotRequired[str]
    """Name of the node."""

    created_at: str

    created_by: NotRequired[str]
    """Kind and id of the subject that made the token."""

    expires_at: str
    """Time at which the token expires, unless the key that made it ends earlier."""

    used_at: NotRequired[str]
    """Time at which a node enrolled by the token."""

    node_id: NotRequired[str]
    """Id of the node that enrolled by the token."""


class EnrolmentTokenPage(TypedDict):
    """A page of enrolment tokens."""

    items: list[EnrolmentToken]
    """Tokens in order of id."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class EnrolmentTokenRequest(TypedDict):
    """A token by which one node enrols."""

    lifetime_seconds: NotRequired[int]
    """Lifetime of the token."""

    node_name: NotRequired[str]
    """Name of the node. By default the node chooses it, and takes its host name unless configured
    otherwise.
    """


class EstimateAdvice(TypedDict):
    """A change worth trying, and its effect."""

    code: str
    """Stable name of the change."""

    detail: str
    """Description of the change and its effect."""

    gain_share: NotRequired[float]
    """Share of the time of a token that the change saves, estimated anew with it."""


class EstimateDefault(TypedDict):
    """A member that the question leaves open, and the value that the answer holds for."""

    pointer: str
    """JSON Pointer of the member in the question."""

    value: str
    """Value that the answer holds for."""

    rule: EstimateDefaultRule
    """Rule that fills the member: the publication of the model, the reference system of the accelerator,
    the default of the framework or engine, the search, or the default of the service.
    """

    detail: str
    """Reason for the value."""


EstimateDefaultRule: TypeAlias = (
    "Literal['published', 'reference_system', 'framework', 'engine', 'search', 'service']"
)


class EstimateEvidence(TypedDict):
    """Versions, calibrations and catalog rows that reproduce an answer."""

    catalog_revision: int
    """Catalog revision that was read."""

    method_version: str
    """Version of the formulas."""

    input_digest: str
    """SHA-256 of the question with its defaults filled in."""

    calibration_ids: list[str]
    """Calibrations that entered the answer."""

    sources: list[EstimateSource]
    """Catalog rows and reference curves that entered the answer."""


class EstimateGap(TypedDict):
    """A figure that is absent, and why. It is unknown, not zero."""

    pointer: str
    """JSON Pointer of the absent member of the answer."""

    code: str
    """Stable name of the reason."""

    detail: str
    """Description of what is missing."""


class EstimateSource(TypedDict):
    """A catalog row or a reference curve that the answer rests on."""

    pointer: str
    """JSON Pointer of the member of the request that it stands for."""

    kind: EstimateSourceKind
    """Kind of the row."""

    id: str
    """Id of the row or curve."""

    version: int
    """Version of the row or curve."""

    origin: RowOrigin
    """`shipped` for a row that ships with the service, `tenant` for a row of the tenant."""

    shadows_shipped_version: NotRequired[int]
    """Version of the shipped row of the same id that the tenant's row replaces."""

    citation: str
    """Citation of the source of its values."""


EstimateSourceKind: TypeAlias = "Literal['model', 'accelerator', 'link', 'offer', 'tariff', 'grid', 'site', 'exchange_rate', 'token_price', 'hardware_price', 'reference_curve']"


class EvaluatedExchangeRate(TypedDict):
    """An exchange rate by which a total was compared with the limit of a policy."""

    id: NotRequired[str]
    """Id of the row of the catalog."""

    version: NotRequired[int]
    """Version of the row."""

    from_currency_code: str
    """Currency of the one unit that is converted."""

    to_currency_code: str
    """Currency that the rate is counted in."""

    rate: str
    """Units of the second currency for one of the first, as decimal text."""

    as_of: str
    """Day of the rate."""


class EvaluatedPolicy(TypedDict):
    """A policy that existed when the approval was requested."""

    policy_id: str
    """Id of the policy."""

    version: int
    """Version of the policy."""

    matches: bool
    """True if the policy applies to the quote."""


EvidenceBasis: TypeAlias = "Literal['exact', 'calibrated_node', 'calibrated_sku', 'calibrated_generation', 'reference', 'datasheet', 'assumed']"
"""The evidence behind a number, strongest first; ``assumed`` was given by the caller."""

EvidenceFormat: TypeAlias = "Literal['guidellm', 'aiperf_json', 'aiperf_csv', 'vllm_bench', 'inferencex', 'llama_bench', 'mlperf_inference', 'engine_log', 'training_log', 'nvbandwidth', 'nccl_tests', 'superbench', 'dcgm_diagnostics', 'dcgm_dmon', 'dcgm_exporter', 'nsight_compute', 'torch_profiler', 'own_csv']"


class EvidenceImportRequest(TypedDict):
    """A file of measurements, and facts that it does not state.

    If file and request both leave a fact open, the problem names it. Facts of the request must not
    contradict the file; for lengths the request takes precedence.
    """

    format: EvidenceFormat
    """Format of the file, by the program that wrote it. `own_csv` is the service's own table."""

    content: str
    """The file as text."""

    model: NotRequired[ModelReference]
    """Model that ran. Required if the file names no model of the catalog."""

    cluster: NotRequired[ClusterInput]
    """Cluster that it ran on. Required if the file does not name an accelerator of the catalog and the
    number of devices.
    """

    workload: NotRequired[WorkloadInput]
    """Workload that was measured, as far as the file does not state it: lengths, load, precision, engine."""

    parallelism: NotRequired[ParallelismInput]
    """Layout of the model. Required on several devices if the file does not state it."""

    collective: NotRequired[Collective]
    """Collective that was timed, if the file does not state it."""

    power_limit_watts: NotRequired[float]
    """Power limit of each device during the measurement, if it was not the delivered one."""

    note: NotRequired[str]
    """Origin of the file."""


class EvidencePage(TypedDict):
    """A page of imports."""

    items: list[EvidenceSummary]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class EvidenceRemark(TypedDict):
    """A part of the file that does not count, or a remark on a part that does."""

    pointer: str
    """Place in the file."""

    code: str
    """Stable name of the reason."""

    detail: str
    """Description of the reason."""


EvidenceState: TypeAlias = "Literal['active', 'superseded', 'withdrawn']"


class EvidenceSummary(TypedDict):
    """A file of measurements that was imported."""

    id: str

    format: EvidenceFormat
    """Format of the file, by the program that wrote it."""

    state: EvidenceState
    """State of the evidence, which is the state of its calibration."""

    reason: NotRequired[str]
    """Reason of the withdrawal."""

    note: NotRequired[str]
    """Origin of the file."""

    calibration_id: str
    """Id of the calibration that was made from the file."""

    content_sha256: str
    """SHA-256 of the file, which itself is not stored."""

    run_count: int
    """Number of runs in the file."""

    reading_count: int
    """Number of figures that were read."""

    answers: list[ImportedEvidenceFigure]
    """Figures of whole runs, which adjust estimates of the tenant."""

    figures: list[str]
    """Figures of the device that were derived, by their name in the calibration."""

    refused: list[EvidenceRemark]
    """Parts of the file that do not count, with the reasons."""

    notes: list[EvidenceRemark]
    """Remarks on parts that count."""

    created_at: str

    withdrawn_at: NotRequired[str]
    """Time of the withdrawal."""


class EvidenceWithdrawalRequest(TypedDict):
    """Reason why imported evidence no longer counts."""

    reason: str
    """Reason of the withdrawal."""


class ExchangeRate(TypedDict):
    """An exchange rate of the catalog."""

    id: str

    name: str

    from_currency_code: str
    """Currency of the one unit that is converted (ISO 4217)."""

    to_currency_code: str
    """Currency that the rate is counted in (ISO 4217)."""

    rate: str
    """Units of the second currency for one of the first, as decimal text above zero."""

    as_of: str
    """Day of the rate. The rate applies until a newer one of the same pair."""

    sources: list[Citation]

    version: int
    """Number of this version of the row; the ETag of the resource."""

    revision: int
    """Catalog revision of this version."""

    origin: RowOrigin
    """`shipped` if the row ships with the service, `tenant` if it is a row of the tenant."""

    created_at: str

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]


class ExchangeRatePage(TypedDict):
    """A page of exchange rates."""

    items: list[ExchangeRate]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class ExchangeRatePatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]

    from_currency_code: NotRequired[str]
    """Currency of the one unit that is converted (ISO 4217)."""

    to_currency_code: NotRequired[str]
    """Currency that the rate is counted in (ISO 4217)."""

    rate: NotRequired[str]
    """Units of the second currency for one of the first, as decimal text above zero."""

    as_of: NotRequired[str]
    """Day of the rate. The rate applies until a newer one of the same pair."""

    sources: NotRequired[list[Citation]]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str | None]


class ExchangeRateRequest(TypedDict):
    """Value of one unit of a currency in another currency on a day."""

    id: str

    name: str

    from_currency_code: str
    """Currency of the one unit that is converted (ISO 4217)."""

    to_currency_code: str
    """Currency that the rate is counted in (ISO 4217)."""

    rate: str
    """Units of the second currency for one of the first, as decimal text above zero."""

    as_of: str
    """Day of the rate. The rate applies until a newer one of the same pair."""

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]


class ExcludedCharges(TypedDict):
    """Charges that are left out of the comparison."""

    code: ExcludedChargesCode
    """Code of the reason."""

    effective: MoneyAmount
    """Effective cost of the charges."""

    detail: str
    """Description of the reason."""


ExcludedChargesCode: TypeAlias = "Literal['OUTSIDE_RUN', 'NOT_COVERED']"


class ExpectedCost(TypedDict):
    """Quoted cost of the time that is billed so far, with its 80% interval."""

    amount: str
    """Decimal number as text."""

    low: str
    """Lower end of the interval."""

    high: str
    """Upper end of the interval."""

    currency_code: str
    """ISO 4217 code."""


ExpertBalance: TypeAlias = "Literal['trained', 'forced']"
"""Load of the experts of a trained model."""


class ExportedTariff(TypedDict):
    """A tariff as a rate of OpenEI's utility rate database, version 8."""

    urdb: dict[str, Any]
    """The rate. It states every one of its charges exactly."""

    left_out: list[AnswerWarning]
    """Terms that a rate cannot express; pointers lead into the tariff."""


class ExternalToolWork(TypedDict):
    """A transfer that a tool measures, where it is installed. Its times are those that the tool reports."""

    kind: Literal["external_tool"]

    tool: ExternalToolWorkTool
    """Tool that runs: a fixed name, looked up on the path."""

    test: str
    """Test of the tool, such as host_to_device_memcpy_ce or all_reduce."""

    transfer_bytes: int
    """Payload."""


ExternalToolWorkTool: TypeAlias = "Literal['nvbandwidth', 'nccl_tests', 'dcgm']"


class FeedForwardLayer(TypedDict):
    """Two matrices with an activation between them; a gate adds a third."""

    kind: Literal["feed_forward"]

    hidden_size: int
    """Width of the residual stream."""

    inner_size: int
    """Width between the matrices."""

    gated: NotRequired[bool]
    """True if a third matrix, beside the first, gates its result."""

    bias: NotRequired[bool]
    """True if a learned vector is added."""

    inner_norm: NotRequired[bool]
    """True if a norm stands in front of the last matrix."""

    activation_parameters: NotRequired[int]
    """Number of learned scalars of the activation function."""

    activation: NotRequired[FeedForwardLayerActivation]
    """Activation function: one operator whose backward pass needs its input (`smooth`) or only its result
    (`relu`), or several operators, as PyTorch's classes write it out, each of which keeps a tensor of
    its own (`quick_gelu`, `gelu_new`).
    """

    dropout: NotRequired[bool]
    """True if the output passes a dropout in training."""

    inner_dropout: NotRequired[bool]
    """True if the result of the activation passes a dropout in training."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


FeedForwardLayerActivation: TypeAlias = "Literal['smooth', 'relu', 'quick_gelu', 'gelu_new']"


class FftWork(TypedDict):
    """Complex transforms, of as many points in each dimension."""

    kind: Literal["fft"]

    dtype: FftWorkDtype
    """Precision of the parts of a complex number."""

    points: int
    """Length of a transform in each dimension."""

    batch: int
    """Transforms of one execution."""

    dimensions: NotRequired[int]
    """1 for a row, 2 for a square, 3 for a cube."""

    in_place: NotRequired[bool]
    """True if the result takes the place of the input."""


FftWorkDtype: TypeAlias = "Literal['fp16', 'fp32', 'fp64']"


class FieldError(TypedDict):
    """One field that is wrong."""

    pointer: str
    """JSON Pointer (RFC 6901) into the request."""

    code: str
    """Stable name of the error."""

    detail: str
    """Description of the error."""


class FixedCharge(TypedDict):
    """An amount that does not depend on use."""

    name: str
    """Name that no other charge of the revision has."""

    kind: Literal["fixed"]

    price: str
    """Decimal number as text; credits are below zero."""

    months: NotRequired[list[int]]
    """Calendar months in which it is charged: energy by its time, all else by the month in which most days
    of the billing period lie. Defaults to all months.
    """

    hours_of_use_from: NotRequired[float]
    """Annual kWh for each kW of the annual peak from which it is charged."""

    hours_of_use_below: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which it is charged; absent without a bound."""

    per: NotRequired[FixedChargePeriod]
    """Time that the price is for; of a yearly price, one twelfth is charged for each month."""

    meters: NotRequired[int]
    """Number of meters that are charged."""

    proration: NotRequired[ChargeProration]
    """Part of a monthly or yearly price that is charged in a billing period that is not one month.
    Defaults to the whole: each billing period counts as one month.
    """


FixedChargePeriod: TypeAlias = "Literal['day', 'month', 'year']"


class FixedLength(TypedDict):
    """Every request has the same length."""

    distribution: Literal["fixed"]

    tokens: int
    """Tokens of every request."""


class FleetAssignment(TypedDict):
    """Placement of a workload on a pool, in time."""

    workload: str
    """Name of the workload."""

    pool: str
    """Name of the pool."""

    devices_taken: int
    """Devices that no other workload can use meanwhile: those of whole nodes, unless nodes are shared."""

    starts_at: str
    """Start of the workload."""

    ends_at: str
    """End of the workload, by the middle of the interval of its duration."""

    may_end_late: bool
    """True if the workload ends after `finish_by` at the high end of its duration."""

    row: PlanRow
    """Configuration with its estimates and the requests that give them. Its rank is always 1."""


class FleetBound(TypedDict):
    """Bounds that no schedule exceeds."""

    most_workloads: list[FleetPriorityBound]
    """Most workloads of each priority, as if it were alone."""

    most_in_all: int
    """Most workloads of all priorities."""

    least_cost: NotRequired[MoneyAmount]
    """Least cost of the placed workloads. Present if the goal is `cheapest`."""

    least_seconds: NotRequired[float]
    """Least sum of the times from the earliest start of each placed workload to its end. Present if the
    goal is `earliest`.
    """


class FleetMonthlySpend(TypedDict):
    """Cost of a calendar month (UTC). The cost of a workload is spread evenly over its time."""

    month: str
    """Month, such as 2026-11."""

    spend: MoneyAmount
    """Cost in the month."""

    spend_so_far: MoneyAmount
    """Cost from the start until the end of the month."""

    budget_left: NotRequired[MoneyAmount]
    """Budget that is left after the month."""


class FleetPlan(TypedDict):
    """Schedule of several workloads over pools of devices."""

    assignments: list[FleetAssignment]
    """Placed workloads, by start."""

    unplaced: list[UnplacedFleetWorkload]
    """Workloads that are not placed, in the order of the request."""

    is_optimal: bool
    """True if no schedule of these configurations is better. Otherwise `bound` limits how much better one
    could be.
    """

    bound: FleetBound
    """Bounds that no schedule exceeds."""

    pools: list[FleetPoolOccupation]
    """Occupation of the pools in the order of the request, owned ones first."""

    months: list[FleetMonthlySpend]
    """Cost by month, from the first month with a cost to the last. Empty if a cost is unknown."""

    cost: NotRequired[MoneyAmount]
    """Cost of all placed workloads. Absent if the cost of one is unknown."""

    currency_code: str
    """Currency of all costs."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""

    defaults: list[EstimateDefault]
    """Service levels that workloads leave open, as the search fills them."""

    warnings: list[AnswerWarning]
    """Remarks about the question."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class FleetPlanRequest(TypedDict):
    """Request for a schedule of several workloads over pools of devices."""

    workloads: list[FleetWorkload]
    """Workloads to schedule."""

    owned: NotRequired[list[OwnedNodes]]
    """Machines that are already available. Their electricity has a price per kWh, because under a tariff
    the bill of one workload would depend on the others.
    """

    rented: NotRequired[list[RentedDevices]]
    """Devices that can be rented."""

    starts_at: str
    """Time from which the pools are free, rounded up to the next whole second."""

    ends_at: str
    """Latest end of workloads that give no time of their own."""

    budget: NotRequired[MoneyInput]
    """Most that all workloads may cost together."""

    goal: NotRequired[FleetPlanRequestGoal]
    """Objective among schedules that place as many workloads. `cheapest` takes the least cost, then the
    least sum of the times from the earliest start of each workload to its end; `earliest` takes them in
    the other order.
    """

    share_nodes: NotRequired[bool]
    """Set to true to let workloads on less than a node share it, with devices counted one by one. By
    default each workload takes whole nodes.
    """

    currency_code: NotRequired[str]
    """Currency of the costs, at the exchange rates of the catalog. Defaults to the currency of the budget,
    else USD.
    """


FleetPlanRequestGoal: TypeAlias = "Literal['cheapest', 'earliest']"


class FleetPoolOccupation(TypedDict):
    """Occupation of a pool over time."""

    pool: str
    """Name of the pool."""

    accelerator_count: int
    """Devices of the pool."""

    share_taken: float
    """Share of the pool's device-hours that is occupied, from the start of the fleet to its end, or to the
    end of the last workload.
    """

    spans: list[FleetPoolSpan]
    """Spans in which workloads run, in order of time."""


class FleetPoolReason(TypedDict):
    """Reason why a workload does not run on a pool."""

    pool: str
    """Name of the pool."""

    reason: FleetPoolReasonReason
    """Reason: no configuration that the devices hold; none whose cost is known; none that alone ends
    within its window; devices that others occupy; the budget, or what others leave of it.
    """

    ruled_out: NotRequired[list[RuledOutCandidates]]
    """Constraints that ruled out the configurations. Present if none is left."""

    pruned: NotRequired[list[PrunedCandidates]]
    """Configurations that a bound proves to be ruled out, because their state exceeds the memory of a
    device. Present if none is left.
    """

    least_duration_seconds: NotRequired[float]
    """Shortest duration of a training run among the configurations that are left."""

    least_cost: NotRequired[MoneyAmount]
    """Least cost among the configurations that end within the window."""

    could_end_at: NotRequired[str]
    """Earliest end of the workload beside the others, within what is left of the budget."""


FleetPoolReasonReason: TypeAlias = "Literal['configuration', 'price', 'deadline', 'devices', 'budget']"


class FleetPoolSpan(TypedDict):
    """A span of time in which the same workloads run on a pool."""

    starts_at: str
    """Start of the span."""

    ends_at: str
    """End of the span."""

    devices_taken: int
    """Devices that are occupied."""

    workloads: list[str]
    """Names of the workloads that occupy them."""


class FleetPriorityBound(TypedDict):
    """Most workloads of a priority that any schedule places."""

    priority: int
    """Priority of the workloads."""

    workloads: int
    """Number of workloads."""


class FleetRemedy(TypedDict):
    """One change that lets a workload run while the others stay where they are."""

    change: FleetRemedyChange
    """Change: more devices of a pool, a later `finish_by`, or a larger budget."""

    pool: str
    """Pool that the workload would run on."""

    added_devices: NotRequired[int]
    """Number of devices to add to the pool."""

    finish_by: NotRequired[str]
    """Earliest time by which the workload can end."""

    budget: NotRequired[MoneyAmount]
    """Least budget of the fleet that includes the workload."""

    accelerator_count: int
    """Devices that the workload would run on."""

    starts_at: str
    """Start of the workload after the change."""

    ends_at: str
    """End of the workload after the change."""

    cost: NotRequired[MoneyAmount]
    """Cost of the workload after the change."""


FleetRemedyChange: TypeAlias = "Literal['devices', 'deadline', 'budget']"


class FleetWorkload(TypedDict):
    """A training run or a service that the fleet is to run."""

    name: str
    """Name of the workload in the answer."""

    model: ModelReference
    """Model that is trained or served."""

    workload: WorkloadInput
    """Work of the model. For training: its total and its global batch. For a service: its load and its
    service levels, which default to those of a plan. A service has no horizon of its own: it runs from
    `earliest_start_at` to `finish_by`.
    """

    priority: NotRequired[int]
    """Priority of the workload, 1 being the highest. No number of workloads of a lower priority displaces
    one of a higher.
    """

    earliest_start_at: NotRequired[str]
    """Earliest start of a training run; start of a service. Defaults to the start of the fleet."""

    finish_by: NotRequired[str]
    """Latest end of a training run; end of a service. Defaults to the end of the fleet."""

    pools: NotRequired[list[str]]
    """Names of the `owned` and `rented` pools that the workload may run on. Defaults to all of them."""

    accelerator_counts: NotRequired[list[int]]
    """Numbers of devices of a training run. Defaults to whole nodes in doublings, and all of a pool. A
    service takes the fewest devices that meet its service levels.
    """

    training: NotRequired[TrainingSearch]
    """Settings of a training run that are searched."""

    serving: NotRequired[ServingSearch]
    """Settings of a service that are searched."""


FloatPrecision: TypeAlias = "Literal['fp32', 'bf16', 'fp16']"


class ForwardPassEstimate(TypedDict):
    """Figures of requests that are forward passes."""

    models: list[ForwardPassEvaluations]
    """Models that a request passes, in order."""

    samples_per_second: QuantityEstimate
    """Sequences, pictures or videos that the whole cluster processes."""

    batch: float
    """Mean requests of a pass on one replica."""

    pass_seconds: QuantityEstimate
    """Time of a pass from start to end."""

    energy_per_sample_joules: NotRequired[QuantityEstimate]
    """Energy of all devices for one sample."""


class ForwardPassEvaluations(TypedDict):
    """Evaluations of one model for a request."""

    phase: ForwardPassEvaluationsPhase
    """Phase of the model."""

    evaluations: float
    """Passes of a request through the model, one after another."""

    samples: float
    """Samples of a request in each pass."""

    flops: float
    """Floating-point operations of all passes for one request, on one device."""


ForwardPassEvaluationsPhase: TypeAlias = "Literal['forward', 'text_encoder', 'denoiser', 'autoencoder']"


class ForwardPassesInput(TypedDict):
    """Requests that are each one pass over their sequences. Nothing is generated, even if the model could."""

    task: NotRequired[ForwardPassesInputTask]
    """Task of a pass. Embedding takes the hidden states; the others put one token of each sequence through
    the head.
    """

    sequences: NotRequired[int]
    """Sequences or pictures of a request, each of `input_tokens`: texts to embed, or a query with each of
    the documents to rank.
    """


ForwardPassesInputTask: TypeAlias = "Literal['embedding', 'reranking', 'classification']"


class FrontierConfigurationCounts(TypedDict):
    """Configurations of a search by outcome."""

    considered: int
    """Combinations of layout, precision, accelerator and concurrent requests."""

    feasible: int
    """Configurations that no constraint rules out."""

    pareto: int
    """Feasible configurations that no other exceeds in both rates."""

    ruled_out: list[RuledOutConfigurations]
    """Configurations that a constraint rules out, in the order in which constraints are checked."""


FrontierConstraint: TypeAlias = (
    "Literal['precision', 'heads', 'blocks', 'experts', 'link', 'memory', 'engine', 'service_level']"
)
"""Constraints that rule a configuration out, in the order in which they are checked.

The device has no rate for the ``precision`` of the weights; ``heads``, ``blocks`` and ``experts``
of the model do not divide among the devices; tensor parallelism exceeds the fast ``link``; the
``memory`` of a device is too small; the ``engine`` takes fewer concurrent requests; a
``service_level`` is missed.
"""


class FrontierPoint(TypedDict):
    """A configuration that no other exceeds in both rates."""

    parallelism: ParallelismDegrees
    """Layout of the configuration."""

    accelerator_id: str
    """Id of the accelerator."""

    weight_format: str
    """Format of the stored weights."""

    kv_cache_precision: str
    """Format of the stored KV cache."""

    concurrency: int
    """Concurrent requests over the whole cluster."""

    requests_per_replica: int
    """Concurrent requests on each replica, or on each part of a replica whose experts are spread."""

    output_tokens_per_second_per_device: QuantityEstimate
    """Tokens that each device generates."""

    output_tokens_per_second_per_user: QuantityEstimate
    """Tokens that a user receives after the first: 1 over the time per output token."""

    output_tokens_per_second: QuantityEstimate
    """Tokens that the whole cluster generates."""

    requests_per_second: QuantityEstimate
    """Requests that the whole cluster completes."""

    time_to_first_token_seconds: QuantityEstimate
    """Time from a request to its first token."""

    time_per_output_token_seconds: QuantityEstimate
    """Time from one token of a request to the next."""

    request_seconds: QuantityEstimate
    """Time from a request to its last token."""

    service_level_share: NotRequired[QuantityEstimate]
    """Share of the requests that meet the service levels. Present if these are given."""

    headroom_bytes: NotRequired[int]
    """Bytes of the engine's share of the fullest device that are free. Absent if its capacity is unknown."""

    throughput_question: ThroughputEstimateRequest
    """Body of `POST /v1/estimates/throughput` that returns the same figures."""


class FrontierSearchInput(TypedDict):
    """Settings to search: layouts and concurrent requests; precisions and accelerators if listed."""

    weight_precisions: NotRequired[list[WeightPrecision]]
    """Precisions that the weights may have, beside `weight_formats`. Defaults to the precision of the
    workload.
    """

    requests_per_replica: NotRequired[list[int]]
    """Concurrent requests on each replica. Defaults to each number from 1 to 32 and steps of 5% up to
    4,096.
    """

    tensor: NotRequired[list[int]]
    """Tensor-parallel degrees. Defaults to those that divide the cluster."""

    weight_formats: NotRequired[list[WeightFormatName]]
    """Formats that the weights may be stored in. Defaults to the format of the workload."""

    kv_cache_precisions: NotRequired[list[CachePrecision]]
    """Formats that the KV cache may be stored in. Defaults to the format of the workload."""

    pipeline: NotRequired[list[int]]
    """Numbers of pipeline stages. Defaults to those that divide the cluster."""

    expert: NotRequired[list[int]]
    """Numbers of replicas that the experts are spread over. Defaults to those that divide the number of
    replicas. Values other than 1 need a model with experts.
    """

    expert_tensor: NotRequired[list[int]]
    """Devices that each expert is divided over. Defaults to 1 and the tensor-parallel degree."""

    accelerators: NotRequired[list[AcceleratorReference]]
    """Accelerators that the devices of the cluster may be. Defaults to the accelerator of the cluster."""

    most_points: NotRequired[int]
    """Most points of the answer. Of a larger Pareto set the answer has both ends and an even selection
    between them.
    """


FrozenWeightFormat: TypeAlias = "Literal['plain', 'nf4', 'nf4_double']"
"""Format of frozen weights: as wide as the activations, or matrices in NF4."""

FusedAttention: TypeAlias = "Literal['first', 'second', 'native']"
"""Releases of fused attention: FlashAttention, FlashAttention-2, or for the device's own instructions."""


class GemmWork(TypedDict):
    """C = A B of random numbers."""

    kind: Literal["gemm"]

    dtype: GemmWorkDtype
    """Type of the elements."""

    m: int
    """Rows of A and C."""

    n: int
    """Columns of B and C."""

    k: int
    """Columns of A and rows of B."""


GemmWorkDtype: TypeAlias = "Literal['fp64', 'fp32', 'tf32', 'bf16', 'fp16', 'fp8_e4m3', 'int8']"


class GivenConfiguration(TypedDict):
    """A configuration to rank with the others, such as the one in use."""

    name: str
    """Name of the configuration in the answer."""

    supply: NotRequired[str]
    """Name of an `owned` or `rented` supply, or id of an offer. Defaults to the supply on which the
    configuration does best.
    """

    cluster: ClusterInput
    """Cluster that the configuration runs on."""

    parallelism: ParallelismInput
    """Layout of the configuration."""

    workload: WorkloadInput
    """Workload of the configuration: the same work, in its own batch, precision and recomputation."""


class GradientAccumulationWork(TypedDict):
    """Gradients of a micro-batch added to the sum of those before it."""

    kind: Literal["gradient_accumulation"]

    gradient_dtype: GradientAccumulationWorkGradientDtype
    """Type of the gradients that are added."""

    parameters: int
    """Gradients."""


GradientAccumulationWorkGradientDtype: TypeAlias = "Literal['bf16', 'fp32']"


class GradientCompressionEstimate(TypedDict):
    """Effect of gradient compression on a step."""

    ratio: float
    """Ratio of the bytes that a replica sends without compression to those with it."""

    compression_seconds: QuantityEstimate
    """Time of a step to compress and decompress."""

    step_seconds_without: QuantityEstimate
    """Time of a step without gradient compression."""

    pays: bool
    """True if the step is shorter with compression."""


class GradientCompressionInput(TypedDict):
    """Compression of the gradients that replicas exchange. They must hold whole gradients (sharding none)."""

    kind: GradientCompressionKind
    """Kind of compression: fp16 and int8 narrow the format, one_bit sends signs, top_k and random_k send a
    share, and power_sgd sends two thin matrices.
    """

    kept_share: NotRequired[float]
    """Share of the elements that top_k and random_k send. Defaults to 0.01."""

    rank: NotRequired[int]
    """Columns of the thin matrices of power_sgd. Defaults to 4."""

    error_feedback: NotRequired[bool]
    """True if the part that was not sent is kept in FP32 and added to the next gradient."""


GradientCompressionKind: TypeAlias = "Literal['fp16', 'int8', 'one_bit', 'top_k', 'random_k', 'power_sgd']"
"""Data that replicas send in place of their gradients.

``fp16`` and ``int8`` narrow each element, ``one_bit`` sends its sign and a scale, ``top_k`` the
largest elements with their indices, ``random_k`` those that a common seed selects, ``power_sgd``
two thin matrices.
"""


class GradientCompressionWork(TypedDict):
    """Gradients of 4 bytes made smaller before they are sent, with the error kept for the next step."""

    kind: Literal["gradient_compression"]

    method: GradientCompressionWorkMethod
    """8 bits with a scale for each block of 1024, one bit with a scale, or the largest with their places."""

    parameters: int
    """Gradients."""

    kept_share: NotRequired[float]
    """Share of the gradients that `top_k` sends."""


GradientCompressionWorkMethod: TypeAlias = "Literal['int8', 'sign', 'top_k']"

GreenhouseGases: TypeAlias = "Literal['co2e', 'co2']"


class Grid(TypedDict):
    """A grid of the catalog."""

    id: str

    name: str

    code: str
    """Code of the place in the source."""

    kind: GridKind
    """Kind of place that the code names."""

    carbon_intensity_kg_co2e_per_kwh: float
    """Mean intensity of a year."""

    accounting: EmissionAccounting
    """Emissions that are counted: those of generation, of the life cycle, or as the provider publishes
    them.
    """

    sources: list[Citation]

    version: int
    """Number of this version of the row; the ETag of the resource."""

    revision: int
    """Catalog revision of this version."""

    origin: RowOrigin
    """`shipped` if the row ships with the service, `tenant` if it is a row of the tenant."""

    created_at: str

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    data_year: NotRequired[int]
    """Year of the mean."""

    emission_rate: NotRequired[EmissionRate]
    """Rate of the average kWh, or of one additional kWh."""

    greenhouse_gases: NotRequired[GreenhouseGases]
    """Gases that are counted: all greenhouse gases, or carbon dioxide alone."""

    series: NotRequired[CarbonIntensitySeriesInput]
    """Intensity over time."""

    water_liters_per_kwh: NotRequired[float]
    """Water that evaporates in power plants for each kWh."""


class GridImportRequest(TypedDict):
    """A grid from a published table of hourly intensities."""

    id: str

    name: str

    code: str
    """Code of the place in the source. For AVERT, the column of its region."""

    kind: GridKind
    """Kind of place that the code names."""

    format: GridImportRequestFormat
    """Format of the file: EPA's AVERT (marginal, lb CO2 by hour of the year), or average kg CO2e/MWh by
    month and hour.
    """

    content: str
    """The file as text."""

    time_zone: str
    """Time zone of its hours."""

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    accounting: NotRequired[EmissionAccounting]
    """Emissions that are counted."""

    data_year: NotRequired[int]
    """Year of the series."""

    water_liters_per_kwh: NotRequired[float]
    """Water that evaporates in power plants for each kWh."""


GridImportRequestFormat: TypeAlias = "Literal['avert_csv', 'month_hour_csv']"

GridKind: TypeAlias = "Literal['country', 'egrid_subregion', 'bidding_zone', 'cloud_region', 'other']"


class GridPage(TypedDict):
    """A page of grids."""

    items: list[Grid]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class GridPatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]

    code: NotRequired[str]
    """Code of the place in the source."""

    kind: NotRequired[GridKind]
    """Kind of place that the code names."""

    carbon_intensity_kg_co2e_per_kwh: NotRequired[float]
    """Mean intensity of a year."""

    accounting: NotRequired[EmissionAccounting]
    """Emissions that are counted: those of generation, of the life cycle, or as the provider publishes
    them.
    """

    sources: NotRequired[list[Citation]]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str | None]

    data_year: NotRequired[int | None]
    """Year of the mean."""

    emission_rate: NotRequired[EmissionRate]
    """Rate of the average kWh, or of one additional kWh."""

    greenhouse_gases: NotRequired[GreenhouseGases]
    """Gases that are counted: all greenhouse gases, or carbon dioxide alone."""

    series: NotRequired[CarbonIntensitySeriesInput | None]
    """Intensity over time."""

    water_liters_per_kwh: NotRequired[float | None]
    """Water that evaporates in power plants for each kWh."""


class GridRequest(TypedDict):
    """An electricity grid with its yearly mean intensity, and its intensity over time if that is known."""

    id: str

    name: str

    code: str
    """Code of the place in the source."""

    kind: GridKind
    """Kind of place that the code names."""

    carbon_intensity_kg_co2e_per_kwh: float
    """Mean intensity of a year."""

    accounting: EmissionAccounting
    """Emissions that are counted: those of generation, of the life cycle, or as the provider publishes
    them.
    """

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    data_year: NotRequired[int]
    """Year of the mean."""

    emission_rate: NotRequired[EmissionRate]
    """Rate of the average kWh, or of one additional kWh."""

    greenhouse_gases: NotRequired[GreenhouseGases]
    """Gases that are counted: all greenhouse gases, or carbon dioxide alone."""

    series: NotRequired[CarbonIntensitySeriesInput]
    """Intensity over time."""

    water_liters_per_kwh: NotRequired[float]
    """Water that evaporates in power plants for each kWh."""


class GroupedGemmWork(TypedDict):
    """Products of one call, of the rows of each expert with its own matrix, as in a mixture of experts."""

    kind: Literal["grouped_gemm"]

    dtype: GroupedGemmWorkDtype
    """Type of the elements."""

    groups: int
    """Experts, each with a matrix of its own."""

    m: int
    """Rows of each expert."""

    n: int
    """Columns of the matrices of experts."""

    k: int
    """Rows of the matrices of experts."""


GroupedGemmWorkDtype: TypeAlias = "Literal['bf16', 'fp16']"

HardwareInclusion: TypeAlias = "Literal['host', 'network']"


class HardwarePrice(TypedDict):
    """A hardware price of the catalog."""

    id: str

    name: str

    product: str
    """Product, as its seller or the source names it."""

    accelerator_id: str
    """Accelerator of the catalog."""

    accelerator_count: NotRequired[int]
    """Accelerators of the product, such as 8 of a server or 72 of a rack."""

    price: NotRequired[MoneyInput]
    """Price of the whole product. Left out where only a range is published."""

    as_of: str
    """Date of the price."""

    sources: list[Citation]

    version: int
    """Number of this version of the row; the ETag of the resource."""

    revision: int
    """Catalog revision of this version."""

    origin: RowOrigin
    """`shipped` if the row ships with the service, `tenant` if it is a row of the tenant."""

    created_at: str

    price_per_device: MoneyInput
    """Price of the product, or the middle of its range, over its accelerators."""

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    price_range: NotRequired[HardwarePriceRange]
    """Range of the price of the whole product."""

    includes: NotRequired[list[HardwareInclusion]]
    """Parts that the price covers beside the accelerators. Left out if that is unknown."""

    doubt: NotRequired[str]
    """Reason why the price may be wrong. Estimates that use it repeat the reason."""


class HardwarePricePage(TypedDict):
    """A page of hardware prices."""

    items: list[HardwarePrice]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class HardwarePricePatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]

    product: NotRequired[str]
    """Product, as its seller or the source names it."""

    accelerator_id: NotRequired[str]
    """Accelerator of the catalog."""

    accelerator_count: NotRequired[int]
    """Accelerators of the product, such as 8 of a server or 72 of a rack."""

    price: NotRequired[MoneyInput | None]
    """Price of the whole product. Left out where only a range is published."""

    as_of: NotRequired[str]
    """Date of the price."""

    sources: NotRequired[list[Citation]]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str | None]

    price_range: NotRequired[HardwarePriceRange | None]
    """Range of the price of the whole product."""

    includes: NotRequired[list[HardwareInclusion] | None]
    """Parts that the price covers beside the accelerators. Left out if that is unknown."""

    doubt: NotRequired[str | None]
    """Reason why the price may be wrong. Estimates that use it repeat the reason."""


class HardwarePriceRange(TypedDict):
    """Range of a published price, for the whole product."""

    low: MoneyInput
    """Lowest price."""

    high: MoneyInput
    """Highest price."""


class HardwarePriceRequest(TypedDict):
    """A dated price of buying an accelerator, or a product that contains some."""

    id: str

    name: str

    product: str
    """Product, as its seller or the source names it."""

    accelerator_id: str
    """Accelerator of the catalog."""

    accelerator_count: NotRequired[int]
    """Accelerators of the product, such as 8 of a server or 72 of a rack."""

    price: NotRequired[MoneyInput]
    """Price of the whole product. Left out where only a range is published."""

    as_of: str
    """Date of the price."""

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    price_range: NotRequired[HardwarePriceRange]
    """Range of the price of the whole product."""

    includes: NotRequired[list[HardwareInclusion]]
    """Parts that the price covers beside the accelerators. Left out if that is unknown."""

    doubt: NotRequired[str]
    """Reason why the price may be wrong. Estimates that use it repeat the reason."""


class HistogramLength(TypedDict):
    """Lengths by their frequency."""

    distribution: Literal["histogram"]

    tokens: list[int]
    """Lengths."""

    weights: list[float]
    """Frequency of each length, in any unit."""


HolidayTreatment: TypeAlias = "Literal['as_weekday', 'included', 'excluded']"


class HorizonInput(TypedDict):
    """Length of the service. Give one member."""

    duration_seconds: NotRequired[float]
    """Time that the service runs."""

    total_requests: NotRequired[int]
    """Number of requests that it answers. If the number of concurrent requests is constant, the first of
    them all begin at once.
    """

    total_output_tokens: NotRequired[int]
    """Number of tokens that it generates."""


class HostInput(TypedDict):
    """Host resources that the accelerators of a node share. They matter if state is offloaded."""

    link_bandwidth_bytes_per_second: NotRequired[float]
    """Bandwidth of copies between one accelerator and its host, in each direction. Defaults to the PCI
    Express of the accelerator, 16 lanes, else to generation 4.
    """

    memory_bandwidth_bytes_per_second: NotRequired[float]
    """Data-sheet bandwidth of all memory channels of the node. Defaults to that of the DGX with the same
    generation of PCI Express.
    """

    drive_bandwidth_bytes_per_second: NotRequired[float]
    """Bandwidth of all NVMe drives of the node together, reading or writing. Defaults to 25e9."""


class HostLinkWork(TypedDict):
    """Copies between host and device."""

    kind: Literal["host_link"]

    direction: HostLinkWorkDirection
    """Direction of the copies, or both at once."""

    memory: HostLinkWorkMemory
    """Kind of memory on the host."""

    transfer_bytes: int
    """Payload of one direction."""


HostLinkWorkDirection: TypeAlias = "Literal['host_to_device', 'device_to_host', 'both']"

HostLinkWorkMemory: TypeAlias = "Literal['pinned', 'pageable']"


class HostStreamWork(TypedDict):
    """Bandwidth of the host's memory on a node with accelerators, over arrays far larger than its caches."""

    kind: Literal["host_stream"]

    pattern: HostStreamWorkPattern
    """Access to the arrays."""

    array_bytes: int
    """Size of each array."""


HostStreamWorkPattern: TypeAlias = "Literal['read', 'write', 'copy', 'triad']"


class HoursOfYearIntensityInput(TypedDict):
    """Intensity of the hours of any year, from its first hour. 29 February repeats the day before."""

    kind: Literal["hours_of_year"]
    """Selects this shape."""

    time_zone: str
    """Time zone of the hours."""

    kg_co2e_per_kwh: list[float]
    """Intensity of each hour."""


class HuggingFaceModel(TypedDict):
    """A model given by its published `config.json`."""

    source: Literal["huggingface_config"]

    config: dict[str, Any]
    """The parsed config.json, as published."""


class ImportedEvidence(TypedDict):
    """A file of measurements that was imported, with the figures that were read."""

    id: str

    format: EvidenceFormat
    """Format of the file, by the program that wrote it."""

    state: EvidenceState
    """State of the evidence, which is the state of its calibration."""

    reason: NotRequired[str]
    """Reason of the withdrawal."""

    note: NotRequired[str]
    """Origin of the file."""

    calibration_id: str
    """Id of the calibration that was made from the file."""

    content_sha256: str
    """SHA-256 of the file, which itself is not stored."""

    run_count: int
    """Number of runs in the file."""

    reading_count: int
    """Number of figures that were read."""

    answers: list[ImportedEvidenceFigure]
    """Figures of whole runs, which adjust estimates of the tenant."""

    figures: list[str]
    """Figures of the device that were derived, by their name in the calibration."""

    refused: list[EvidenceRemark]
    """Parts of the file that do not count, with the reasons."""

    notes: list[EvidenceRemark]
    """Remarks on parts that count."""

    created_at: str

    withdrawn_at: NotRequired[str]
    """Time of the withdrawal."""

    readings: list[ImportedEvidenceReading]
    """The first 1,000 figures."""


class ImportedEvidenceFigure(TypedDict):
    """One figure that counts as evidence, with the estimate of it at the time of the import."""

    pointer: str
    """Place of the figure in the file."""

    family: str
    """Kind of figure that it is evidence for."""

    measured: float
    """Measured value, in the unit of the estimate's figure."""

    estimated: float
    """Estimate of the service for the same question, without this evidence."""


class ImportedEvidenceReading(TypedDict):
    """One figure as it was read, in the SI unit that ends the name of the metric."""

    pointer: str
    """Line of the file (/12) or JSON Pointer into it."""

    metric: str
    """Metric that was measured."""

    value: float
    """Value of the figure."""

    statistic: str
    """Statistic of the figure: mean, a percentile such as p50, min, max, or single."""

    of: NotRequired[dict[str, TextOrNumber]]
    """Scope of the figure: step, rank, device, test, size."""


class ImportedGrid(TypedDict):
    """A grid that was imported."""

    grid: Grid

    warnings: list[AnswerWarning]


class ImportedModel(TypedDict):
    """The stored model, and what its configuration leaves open."""

    model: Model
    """The model as stored."""

    warnings: list[AnswerWarning]
    """Facts that the configuration leaves open, and the values that were assumed."""


class ImportedOffers(TypedDict):
    """Result of importing a price list."""

    created: list[str]
    """Ids of new offers."""

    changed: list[str]
    """Ids of offers that have a new version."""

    unchanged: list[str]
    """Ids of offers that were already stored with the same content."""

    refused: list[RefusedRow]
    """First thousand rows that are not offers, with the reason."""

    refused_reasons: list[RefusedRowCount]
    """All refused rows by reason."""

    row_count: int
    """Rows, or prices of a document, that were read."""


class ImportedTariff(TypedDict):
    """The stored tariff, and the parts of the file that were left out or approximated."""

    tariff: Tariff
    """The tariff as stored."""

    refused: list[AnswerWarning]
    """Keys that were left out on request, each with the reason if it could not be taken over."""

    approximated: list[AnswerWarning]
    """Keys that were taken over under an assumption."""

    warnings: list[AnswerWarning]
    """Remarks that have no effect on a bill."""


class ImportedTokenPrices(TypedDict):
    """Result of importing a list of token prices."""

    created: list[str]
    """Ids of new token prices."""

    changed: list[str]
    """Ids of token prices that have a new version."""

    unchanged: list[str]
    """Ids of token prices that were already stored with the same content."""

    refused: list[RefusedRow]
    """First thousand models without a price of tokens, with the reason."""

    refused_reasons: list[RefusedRowCount]
    """All refused models by reason."""

    row_count: int
    """Number of models that were read."""


class InferenceWorkloadInput(TypedDict):
    """A served model under requests that arrive, or that are kept at a constant number.

    Without concurrency, a rate or a trace there is one request at a time.
    """

    kind: Literal["inference"]

    input_tokens: NotRequired[int | LengthDistribution]
    """Tokens of a prompt. Tokens of pictures are added if `sample` gives their sizes. Defaults to 1024."""

    output_tokens: NotRequired[int | LengthDistribution]
    """Tokens that are generated for a prompt. Defaults to 256."""

    concurrency: NotRequired[int]
    """Concurrent requests over the whole cluster. A new request follows each that ends."""

    request_rate_per_second: NotRequired[float]
    """Requests per second that arrive at the whole cluster, however many are being served."""

    weight_precision: NotRequired[WeightPrecision]
    """Width of the weights, without scales. Below 16 bit only matrices inside blocks are narrow. Defaults
    to the format of the checkpoint if the model's configuration has a `quantization_config`, else to
    bf16, on an accelerator without a bf16 rate to fp16, then to fp32. llama.cpp loads gguf_q4_k_m by
    default, or the mxfp4 of the checkpoint.
    """

    engine: NotRequired[ServingEngineInput]
    """The serving engine. Defaults to the newest vllm for a model that generates tokens, and to llama.cpp
    for its formats and on devices that are served by it, such as Apple silicon and processors.
    """

    service_levels: NotRequired[ServiceLevelsInput]
    """Limits of a request. Without them there is no goodput."""

    horizon: NotRequired[HorizonInput]
    """Length of the service. Required for cost and utility bill."""

    weight_format: NotRequired[WeightFormatName]
    """Storage format of a quantised checkpoint, with scales and zero points: a layout of a quantisation
    tool, or a file type of llama.cpp. Replaces `weight_precision`.
    """

    kv_cache_precision: NotRequired[InferenceWorkloadInputKvCachePrecision]
    """Format that the KV cache is stored in. q8_0, q5_0 and q4_0 are formats of llama.cpp. Defaults to the
    format that the `quantization_config` of the checkpoint states for the cache, else to bf16, fp16 or
    fp32 like weights.
    """

    state_precision: NotRequired[FloatPrecision]
    """Format that recurrent states (state space, linear attention) are stored in. Defaults to the format
    of the engine: fp32 for transformers, sglang and llama.cpp, else bf16.
    """

    sample: NotRequired[SampleInput]
    """Content of a request beside its tokens: sizes of pictures and videos, and the input of an encoder."""

    arrivals: NotRequired[ArrivalsInput]
    """Arrival process of the requests. Defaults to poisson."""

    prefix_cache_hit_rate: NotRequired[float]
    """Share of the tokens of prompts whose keys and values are found in the cache. Defaults to 0."""

    scheduler: NotRequired[InferenceWorkloadInputScheduler]
    """`continuous` if requests join and leave the batch at every step, `static` if a batch runs until its
    last request ends. Defaults to continuous, for transformers to static.
    """

    memory_fraction: NotRequired[float]
    """Share of the device's memory that the engine may use, as the engine defines it: of the device
    (vllm), of the free memory once the model is loaded (tensorrt-llm), for weights and cache alone
    (sglang). Defaults to 0.92 for vllm, or 0.9 before version 0.21; to 0.9 for tensorrt-llm; for sglang
    to its own value by version, device and group; for llama.cpp and transformers to 1. If the engine is
    open too and no request fits, it is raised to 0.95.
    """

    speculative: NotRequired[SpeculativeDecodingInput]
    """Speculative decoding. Without it a pass generates one token."""

    passes: NotRequired[ForwardPassesInput]
    """Requests that are forward passes of a model that could generate, such as a decoder that embeds."""

    diffusion: NotRequired[DiffusionInput]
    """Sampling of a request of a denoiser. Without it a request is one evaluation of one sample."""

    batching: NotRequired[BatchingInput]
    """Batching of requests that are passes. Defaults to all requests that wait."""

    disaggregated: NotRequired[DisaggregationInput]
    """Prefill and decode on replicas of their own. They replace `parallelism`."""

    adapters: NotRequired[AdaptersInput]
    """Low-rank adapters served beside the model."""


InferenceWorkloadInputKvCachePrecision: TypeAlias = (
    "Literal['fp32', 'fp16', 'bf16', 'fp8', 'int8', 'fp4', 'int4', 'q8_0', 'q5_0', 'q4_0']"
)

InferenceWorkloadInputScheduler: TypeAlias = "Literal['continuous', 'static']"


class InteractionLayer(TypedDict):
    """Pairwise dot products of feature vectors; no parameters."""

    kind: Literal["interaction"]

    features: int
    """Number of feature vectors."""

    size: int
    """Width of a vector."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


class IntervalIntensityInput(TypedDict):
    """Intensity of consecutive intervals from a fixed time."""

    kind: Literal["intervals"]
    """Selects this shape."""

    starts_at: str
    """Start of the first interval."""

    interval_minutes: NotRequired[Literal[5, 15, 30, 60]]
    """Length of each interval, in minutes."""

    kg_co2e_per_kwh: list[float]
    """Intensity of each interval."""


class IntervalPrices(TypedDict):
    """Prices of consecutive intervals."""

    starts_at: str
    """Start of the first interval."""

    interval_minutes: int
    """Length of an interval; it divides the hour."""

    values: list[float]
    """Price of a kWh in each interval, in the currency of the tariff."""


class IssuedApiKey(TypedDict):
    """A key and its secret. The secret is shown only in this answer and is not stored."""

    key: ApiKey

    secret: NotRequired[str]
    """Secret that callers send as `Authorization: Bearer`. Absent from a repeated answer."""


class IssuedApprovalLink(TypedDict):
    """An approval link and its address. The address is shown only in this answer and is not stored."""

    link: ApprovalLink
    """The stored link."""

    url: NotRequired[str]
    """Address of the link. Whoever opens it may decide in the approver's name, once. Absent from a
    repeated answer.
    """


class IssuedEnrolmentToken(TypedDict):
    """An enrolment token and its secret. The secret is shown only in this answer and is not stored."""

    enrolment_token: EnrolmentToken
    """The stored token."""

    token: NotRequired[str]
    """Secret that the node sends. Absent from a repeated answer."""


class IssuedNodeCredential(TypedDict):
    """The next credential of a node. The previous credential works until this one has been used."""

    credential: str
    """Credential that the node sends as `Authorization: Bearer` from now on."""

    generation: int
    """Number of credentials of the node so far."""


class IssuedWebhook(TypedDict):
    """A webhook and its secret. The secret is shown only in this answer."""

    webhook: Webhook
    """The webhook."""

    secret: NotRequired[str]
    """Secret that verifies `v1` signatures, in the form that libraries of Standard Webhooks take. Absent
    from a repeated answer, and for `v1a`, whose public key is a member of the webhook.
    """


class IterationPartTime(TypedDict):
    """Time of one part of the iterations of a phase."""

    part: IterationPartTimePart
    """Part of an iteration. Matrices and experts multiply; attention reads the cache; other streams
    activations; collectives are waited for; launch is the time of kernels beside their work; host is
    the time of the engine's own program.
    """

    seconds: float
    """Time of the phase that the part takes."""


IterationPartTimePart: TypeAlias = (
    "Literal['matrices', 'experts', 'attention', 'other', 'collectives', 'launch', 'host']"
)

JsonScalar: TypeAlias = "str | float | bool"


class KvCacheTransferEstimate(TypedDict):
    """Transfer of the KV cache of a prompt."""

    bytes_per_request: int
    """Bytes of a prompt's cache over all links. What several devices of a replica hold, such as a latent,
    is sent to each of them.
    """

    seconds: float
    """Time from the first byte to the last."""

    exposed_seconds: float
    """Time of the transfer, and of handing the request over, that a request waits for."""

    most_requests_per_second: NotRequired[float]
    """Rate that the links cannot exceed. Absent if nothing is sent."""


class KvCacheUsage(TypedDict):
    """The KV cache of one request: on the fullest device, except for `model_bytes_per_token`."""

    allocation: KvCacheUsageAllocation
    """`paged` if a request takes blocks as it grows, `contiguous` if it takes its whole length at once."""

    block_tokens: int
    """Tokens that are allocated at a time."""

    bytes_per_token: float
    """Bytes of a token on the fullest device, as a mean over the length of a request. A windowed layer
    takes no more beyond its window.
    """

    bytes_per_request: int
    """Bytes of a request at its full length on the fullest device."""

    waste_bytes_per_request: int
    """Bytes of a request on the fullest device that are never filled: the rest of the last block, and in a
    contiguous cache on average half of the output.
    """

    model_bytes_per_token: float
    """Bytes of a token over all layers and heads of the model, each held once, as a mean over the length
    of a request. A tensor-parallel group divides them by its degree, at most by the key-value heads.
    Each of its devices holds a latent whole.
    """


KvCacheUsageAllocation: TypeAlias = "Literal['paged', 'contiguous']"


class LatencyPercentiles(TypedDict):
    """Percentiles over requests, in seconds. Each has the relative uncertainty of the mean."""

    p50: float
    """Half of the requests take no longer."""

    p95: float
    """95% of the requests take no longer."""

    p99: float
    """99% of the requests take no longer."""


class LatentAttentionLayer(TypedDict):
    """Multi-head latent attention (MLA): keys and values are rebuilt from one compressed vector."""

    kind: Literal["latent_attention"]

    hidden_size: int
    """Width of the residual stream."""

    query_heads: int
    """Number of query heads."""

    key_value_rank: int
    """Width of the compressed key and value."""

    rotary_head_size: int
    """Width of the part of a head that carries the position; 0 where none does."""

    plain_head_size: int
    """Width of the part of a head that carries no position."""

    value_head_size: int
    """Width of the value of a head."""

    query_rank: NotRequired[int]
    """Width of the compressed query; absent without compression."""

    window_tokens: NotRequired[int]
    """Length of the sliding window in tokens; absent without one."""

    index_heads: NotRequired[int]
    """Number of heads of the scorer that picks tokens (sparse attention); absent where every token is
    read.
    """

    index_head_size: NotRequired[int]
    """Width of the heads of the scorer, and of the one key that it keeps for each token or pool."""

    index_tokens: NotRequired[int]
    """Number of tokens that the scorer picks for each query."""

    index_pool: NotRequired[int]
    """Number of tokens that the scorer weighs into one key and picks together; absent where each token has
    a key of its own.
    """

    gate: NotRequired[AttentionLayerGate]
    """Projection that scales the output, by head or by element."""

    sinks: NotRequired[bool]
    """True if each head has a learned score that belongs to no token."""

    bias: NotRequired[bool]
    """True if a learned vector is added."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


class LaunchLatencyWork(TypedDict):
    """Time from one empty kernel to the next, launched one by one or as a graph."""

    kind: Literal["launch_latency"]

    method: LaunchLatencyWorkMethod
    """Way in which the kernels are launched."""

    launches: int
    """Kernels of one execution."""


LaunchLatencyWorkMethod: TypeAlias = "Literal['stream', 'graph']"


class LaunchSettings(TypedDict):
    """Settings with which a framework or an engine runs the first row."""

    tool: LaunchSettingsTool
    """Framework or engine."""

    arguments: NotRequired[list[str]]
    """Arguments of its command line."""

    configuration: NotRequired[dict[str, Any]]
    """Configuration file by section and key."""

    missing: list[EstimateGap]
    """Settings of the row that the tool does not have."""


LaunchSettingsTool: TypeAlias = (
    "Literal['torchrun', 'megatron_lm', 'deepspeed', 'torchtitan', 'vllm', 'sglang']"
)


class LearnedVectorsLayer(TypedDict):
    """Learned vectors that no matrix multiplication reads."""

    kind: Literal["learned_vectors"]

    purpose: LearnedVectorsLayerPurpose
    """Purpose of the vectors; class tokens lengthen the sequence."""

    rows: NotRequired[int]
    """Number of vectors."""

    size: int
    """Width of a vector."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


LearnedVectorsLayerPurpose: TypeAlias = "Literal['positions', 'relative_positions', 'class_tokens', 'query_tokens', 'mask_token', 'layer_scale', 'bias', 'scale', 'modulation', 'tokens']"


class LearningRateInput(TypedDict):
    """A learning rate that is known to work. Hints at other batch sizes start from it."""

    base: float
    """The learning rate."""

    base_batch_size: int
    """Sequences per optimizer step at which it worked."""


class LeaseClaimRequest(TypedDict):
    """A claim of a node for work. A claim with the same `request_id` gets the same lease."""

    request_id: str
    """Random name of the claim; each claim has its own."""

    wait_seconds: NotRequired[float]
    """Longest time that the service may hold the answer back until there is work."""

    inventory_sha256: str
    """Digest of the current inventory of the node."""

    suite_form: NotRequired[int]
    """Newest form of suites that the node reads. The service leaves out benchmarks of newer forms."""


class LeaseCompletion(TypedDict):
    """State of the run after its lease was completed."""

    state: LeaseCompletionState
    """State of the run: `waiting` for another attempt, or ended."""


class LeaseCompletionRequest(TypedDict):
    """The completion of a lease. The lease ends only once every result that it names is stored."""

    fencing_token: int
    """Fencing token of the lease."""

    outcome: LeaseCompletionRequestOutcome
    """Outcome of the attempt; `released` gives the run back, for another attempt that does not count."""

    reason: NotRequired[str]
    """Code of the reason that the run failed or was released."""

    detail: NotRequired[str]
    """Reason in words."""

    results: NotRequired[list[AcknowledgedBenchmarkResult]]

    progress: NotRequired[LeaseProgress]


LeaseCompletionRequestOutcome: TypeAlias = "Literal['completed', 'failed', 'released', 'cancelled']"

LeaseCompletionState: TypeAlias = "Literal['waiting', 'completed', 'failed', 'cancelled', 'dead']"


class LeaseProgress(TypedDict):
    """Progress of a run."""

    steps: list[BenchmarkProgress]


class LeaseRenewal(TypedDict):
    """A renewed lease."""

    lease_seconds: float
    """Duration of the lease, counted from the time at which the request was sent."""

    cancel: bool
    """True if the node should end the run and complete the lease with the outcome `cancelled`."""


class LeaseRenewalRequest(TypedDict):
    """A renewal of a lease, with the progress of the run."""

    fencing_token: int
    """Fencing token of the lease."""

    progress: NotRequired[LeaseProgress]


LengthDistribution: TypeAlias = "FixedLength | LognormalLength | HistogramLength"


class LinearAttentionLayer(TypedDict):
    """Attention with a state of fixed size under a rule of forgetting."""

    kind: Literal["linear_attention"]

    hidden_size: int
    """Width of the residual stream."""

    key_heads: int
    """Number of heads of keys and queries."""

    value_heads: int
    """Number of heads of values."""

    key_head_size: int
    """Width of a key."""

    value_head_size: int
    """Width of a value."""

    convolution_width: int
    """Number of tokens that the short convolution sees."""

    rule: NotRequired[LinearAttentionLayerRule]
    """Rule by which the state forgets: a decay for each head (`gated_delta`, Yang et al. 2024), a decay
    for each channel (`channel_delta`, Kimi Linear 2025), or a constant of the head, without convolution
    (`fixed`, MiniMax-01 2025).
    """

    gate_rank: NotRequired[int]
    """Width inside the projections of forget gate and output gate; absent where they are full."""

    full_output_gate: NotRequired[bool]
    """True if the output gate is full beside a forget gate of rank `gate_rank` (Kimi K3 2026)."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


LinearAttentionLayerRule: TypeAlias = "Literal['gated_delta', 'channel_delta', 'fixed']"


class LinearLayer(TypedDict):
    """One matrix on every token."""

    kind: Literal["linear"]

    input_size: int
    """Width of the input."""

    output_size: int
    """Width of the output."""

    bias: NotRequired[bool]
    """True if a learned vector is added."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


class Link(TypedDict):
    """A link of the catalog."""

    id: str

    name: str

    kind: LinkKind
    """Technology of the link."""

    scope: LinkScope
    """Scope of the link: the devices of a node, or nodes."""

    bandwidth_bytes_per_second: float
    """Bandwidth of one device in one direction."""

    latency_seconds: NotRequired[float]
    """Latency in one direction."""

    sources: list[Citation]

    version: int
    """Number of this version of the row; the ETag of the resource."""

    revision: int
    """Catalog revision of this version."""

    origin: RowOrigin
    """`shipped` if the row ships with the service, `tenant` if it is a row of the tenant."""

    created_at: str

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    bidirectional_bandwidth_bytes_per_second: NotRequired[float]
    """Bandwidth of both directions together, as vendors state it."""

    joined_count: NotRequired[int]
    """Accelerators that the link joins, if they are not those of a node: cards of a bridge, GPUs of a
    rack.
    """

    torus: NotRequired[LinkTorus]
    """Torus that the link forms; absent where switches or a mesh join the accelerators."""

    in_network_reduction: NotRequired[bool]
    """True if the switches of the link reduce the data that pass through them."""


LinkKind: TypeAlias = "Literal['nvlink', 'pcie', 'infiniband', 'roce', 'efa', 'ethernet', 'infinity_fabric', 'ici', 'neuronlink', 'hccs', 'c2c']"
"""Technology of a link. ``ethernet`` is TCP over it, ``roce`` and ``efa`` are remote memory access."""


class LinkPage(TypedDict):
    """A page of links."""

    items: list[Link]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class LinkPatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]

    kind: NotRequired[LinkKind]
    """Technology of the link."""

    scope: NotRequired[LinkScope]
    """Scope of the link: the devices of a node, or nodes."""

    bandwidth_bytes_per_second: NotRequired[float]
    """Bandwidth of one device in one direction."""

    latency_seconds: NotRequired[float | None]
    """Latency in one direction."""

    sources: NotRequired[list[Citation]]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str | None]

    bidirectional_bandwidth_bytes_per_second: NotRequired[float | None]
    """Bandwidth of both directions together, as vendors state it."""

    joined_count: NotRequired[int | None]
    """Accelerators that the link joins, if they are not those of a node: cards of a bridge, GPUs of a
    rack.
    """

    torus: NotRequired[LinkTorus | None]
    """Torus that the link forms; absent where switches or a mesh join the accelerators."""

    in_network_reduction: NotRequired[bool | None]
    """True if the switches of the link reduce the data that pass through them."""


LinkReference: TypeAlias = "CatalogLink | SpecifiedLink"


class LinkRequest(TypedDict):
    """A link between accelerators of a node, or between nodes."""

    id: str

    name: str

    kind: LinkKind
    """Technology of the link."""

    scope: LinkScope
    """Scope of the link: the devices of a node, or nodes."""

    bandwidth_bytes_per_second: float
    """Bandwidth of one device in one direction."""

    latency_seconds: NotRequired[float]
    """Latency in one direction."""

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    bidirectional_bandwidth_bytes_per_second: NotRequired[float]
    """Bandwidth of both directions together, as vendors state it."""

    joined_count: NotRequired[int]
    """Accelerators that the link joins, if they are not those of a node: cards of a bridge, GPUs of a
    rack.
    """

    torus: NotRequired[LinkTorus]
    """Torus that the link forms; absent where switches or a mesh join the accelerators."""

    in_network_reduction: NotRequired[bool]
    """True if the switches of the link reduce the data that pass through them."""


LinkScope: TypeAlias = "Literal['intra_node', 'inter_node']"


class LinkSpecification(TypedDict):
    """A link that is not in the catalog."""

    kind: LinkKind
    """Technology of the link, which determines what software achieves on it."""

    bandwidth_bytes_per_second: float
    """Bandwidth of one device in one direction."""

    latency_seconds: NotRequired[float]
    """Latency in one direction. Defaults to the known latency of the technology."""

    joined_count: NotRequired[int]
    """Accelerators that the link joins. Defaults to those of a node."""

    in_network_reduction: NotRequired[bool]
    """True if the switches of the link reduce the data that pass through them."""


class LinkTorus(TypedDict):
    """Wires along the axes of a torus, instead of switches."""

    axes: int
    """Dimensions of the torus."""

    ring_count: int
    """Accelerators of an axis from which on it closes into a ring; a shorter one is a line."""


class LoadProfileEstimate(TypedDict):
    """Power over time, at the middle of the interval of the energy."""

    elapsed_seconds: float
    """Time from switching on to switching off, pauses included."""

    phases: list[LoadProfilePhase]
    """Time and energy by phase."""

    interval_minutes: int
    """Interval of the meter, in minutes."""

    first_interval_at: NotRequired[str]
    """Start of the first interval."""

    highest_interval_kw: NotRequired[float]
    """Highest mean of an interval at the meter."""

    intervals_kw: NotRequired[list[float]]
    """Mean power of each interval at the meter."""


class LoadProfilePhase(TypedDict):
    """Total of all phases of one name."""

    name: LoadProfilePhaseName
    """Activity of the run."""

    seconds: float
    """Time of the phases."""

    it_kwh: float
    """Energy that all equipment draws in the phases."""


LoadProfilePhaseName: TypeAlias = "Literal['ramp', 'steady', 'checkpoint', 'restart', 'maintenance', 'idle']"


class LoadSaturation(TypedDict):
    """Load of the cluster relative to the load that it can serve."""

    saturated: bool
    """True if the load exceeds what can be served. Queues then grow, and latencies are those after an hour
    of the load.
    """

    most_requests_per_second: QuantityEstimate
    """Highest rate of the whole cluster, at any load."""

    knee_concurrency: NotRequired[float]
    """Concurrent requests at which the rate over the time of a request is largest (Kleinrock 1979). Beyond
    it latency grows faster than the rate.
    """

    limit: LoadSaturationLimit
    """Limit of the rate: the number of requests, the arrivals, the KV cache, the engine's setting, or the
    speed of the devices; in disaggregated serving of one side, or of the links between them.
    """


LoadSaturationLimit: TypeAlias = (
    "Literal['concurrency', 'arrivals', 'cache', 'max_num_seqs', 'rate', 'prefill', 'decode', 'transfer']"
)


class LognormalLength(TypedDict):
    """Log-normally distributed lengths. Give `p95_tokens` or `sigma`."""

    distribution: Literal["lognormal"]

    mean_tokens: float
    """Mean length before the cut at `most_tokens`."""

    p95_tokens: NotRequired[float]
    """Length that 95% of the requests do not exceed: from the mean to 3.86 times the mean."""

    sigma: NotRequired[float]
    """Standard deviation of the logarithm."""

    most_tokens: NotRequired[int]
    """Length that longer requests are cut to, which lowers the mean."""


LossImplementation: TypeAlias = "Literal['fp32', 'narrow', 'chunked', 'fused']"
"""Computation of the loss from logits: in FP32, at the activations' width, in chunks, or never stored."""


class MaintenanceSchedule(TypedDict):
    """Windows at equal intervals in which the run is paused."""

    every_seconds: float
    """Time from the start of one window to the start of the next."""

    duration_seconds: float
    """Length of a window."""

    first_after_seconds: NotRequired[float]
    """Time from the start of the run to the first window. Defaults to `every_seconds`."""

    power: NotRequired[MaintenanceSchedulePower]
    """Power state of the machines during a window."""


MaintenanceSchedulePower: TypeAlias = "Literal['idle', 'off']"


class MarketBasedEmissionsLine(TypedDict):
    """Electricity of one contract instrument."""

    name: MarketBasedEmissionsLineName
    """Instrument, or the residual mix for what the instruments leave."""

    share: float
    """Share of the run's energy."""

    kwh: float
    """Energy at the meter."""

    kg_co2e: float
    """Emissions of the electricity."""

    source: str
    """Document that states the intensity."""


MarketBasedEmissionsLineName: TypeAlias = (
    "Literal['power_purchase_agreement', 'certificate', 'supplier', 'green_tariff', 'residual_mix']"
)


class MarketTariffImportRequest(TypedDict):
    """A tariff by the prices of a market: the price of each interval times a factor, and an adder."""

    id: str

    name: str

    format: Literal["entsoe_a44_xml"]

    content: str
    """A publication document of ENTSO-E's day-ahead prices (A44)."""

    time_zone: str
    """IANA name of the local clock."""

    adder: NotRequired[str]
    """Decimal number as text; credits are below zero."""

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    utility: NotRequired[str]
    """Company that charges by the tariff."""

    factor: NotRequired[str]
    """Decimal factor of the price of the market."""


class MeasuredEnergyInput(TypedDict):
    """Measured energy of a run, in place of the estimate."""

    energy_kwh: float
    """Energy of the whole run."""

    duration_seconds: float
    """Time over which the energy was measured."""

    device_count: int
    """Accelerators that took part."""

    boundary: NotRequired[MeasuredEnergyInputBoundary]
    """Place of the measurement: the meter of the building, or the supply of its machines."""


MeasuredEnergyInputBoundary: TypeAlias = "Literal['facility', 'it']"


class MeasurementConditions(TypedDict):
    """Conditions under which a result was measured, as its node reports them; of readings, the middle one."""

    worker_version: str
    """Version of the worker."""

    accelerator_index: NotRequired[int]
    """Index of the accelerator in the inventory of the node."""

    concurrent_accelerators: int
    """Number of accelerators that were measured at the same time, this one included; 0 without any."""

    library: NotRequired[str]
    """Library that ran."""

    algorithm: NotRequired[str]
    """Algorithm that the library chose."""

    math_mode: NotRequired[str]
    """Mode of the multiplications."""

    accumulation: NotRequired[str]
    """Type of the accumulator."""

    data: NotRequired[str]
    """Distribution of the input."""

    timer: NotRequired[str]
    """Timer of the samples."""

    warmup_seconds: NotRequired[float]
    """Duration of the warm-up: the same work, run before the first sample."""

    inner_iterations: NotRequired[int]
    """Number of executions in one sample."""

    stop_reason: NotRequired[str]
    """Reason that there are no more samples."""

    discarded_samples: NotRequired[int]
    """Number of samples that do not count."""

    flush_bytes: NotRequired[int]
    """Bytes that are read before each sample, so that no input is cached."""

    rotated_buffers: NotRequired[int]
    """Number of sets of input that take turns."""

    uses_graph: NotRequired[bool]
    """True if the executions were launched as a graph."""

    threads: NotRequired[int]
    """Number of threads of the host that did the work."""

    correctness_passed: NotRequired[bool]
    """True if the computed result passed the comparison with a reference."""

    largest_relative_error: NotRequired[float]
    """Largest error against the reference, relative to the scale of the result."""

    window_seconds: NotRequired[float]
    """Duration of the window of the readings."""

    sm_clock_hz: NotRequired[float]
    """Clock of the multiprocessors."""

    cpu_clock_hz: NotRequired[float]
    """Clock of the processors, on a node without accelerators."""

    memory_clock_hz: NotRequired[float]
    """Clock of the memory."""

    temperature_celsius: NotRequired[float]
    """Temperature of the device."""

    memory_temperature_celsius: NotRequired[float]
    """Temperature of the memory of the device."""

    power_watts: NotRequired[float]
    """Power by the sensor, on most devices its average over one second."""

    power_instant_watts: NotRequired[float]
    """Power by the sensor at the moment of a reading."""

    energy_joules: NotRequired[float]
    """Energy by the energy counter."""

    energy_power_watts: NotRequired[float]
    """Power by the energy counter, over the time between its readings."""

    ecc_corrected: NotRequired[int]
    """Number of corrected errors of the memory."""

    ecc_uncorrected: NotRequired[int]
    """Number of uncorrected errors of the memory."""

    pcie_generation: NotRequired[int]
    """Generation of the bus under load."""

    pcie_width: NotRequired[int]
    """Number of lanes under load."""

    other_processes: NotRequired[int]
    """Number of other processes on the device."""

    load_average: NotRequired[float]
    """Load average of the host over one minute."""

    throttle_sw_power_cap_seconds: NotRequired[float]
    """Time at a lower clock for the power limit."""

    throttle_sw_thermal_seconds: NotRequired[float]
    """Time at a lower clock for the temperature."""

    throttle_hw_thermal_seconds: NotRequired[float]
    """Time at a lower clock for the temperature, by the hardware."""

    throttle_hw_power_brake_seconds: NotRequired[float]
    """Time at a lower clock for the power supply."""

    throttle_sync_boost_seconds: NotRequired[float]
    """Time at a lower clock for other devices."""


class MeasurementFailure(TypedDict):
    """The reason that there is no measurement."""

    reason: str
    """Stable name of the reason."""

    detail: NotRequired[str]
    """Reason in words."""

    exit_code: NotRequired[int]
    """Exit code of the process; a code below 0 is the signal that ended it."""

    error_output: NotRequired[str]
    """End of the error output of the process."""


class MemoryComponent(TypedDict):
    """One part of the memory of a device."""

    name: MemoryComponentName
    """Content of the memory. Parts of a training step that take no bytes are left out, except its training
    state.
    """

    bytes: int
    """Bytes on the fullest device."""


MemoryComponentName: TypeAlias = "Literal['weights', 'gradients', 'master_weights', 'optimizer_states', 'weight_copies', 'auxiliary_models', 'activations', 'logits', 'gathered_weights', 'gradient_buffers', 'kv_cache', 'state', 'draft_weights', 'draft_kv_cache', 'adapters', 'workspace', 'sampler', 'cuda_graphs', 'communication_buffers', 'runtime', 'device_context', 'fragmentation', 'framework_overhead']"


class MemoryEstimate(TypedDict):
    """Memory of a workload on its fullest device, and whether it fits."""

    parallelism: ParallelismDegrees
    """The layout that the figures hold for."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""

    defaults: list[EstimateDefault]
    """Members that the question leaves open and that shape the answer, as they are filled."""

    warnings: list[AnswerWarning]
    """Remarks about the question."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""

    parameter_count: int
    """Parameters as PyTorch counts those of the model class: tied ones once, buffers not."""

    active_parameter_count: int
    """Parameters that one token uses."""

    trained_parameter_count: NotRequired[int]
    """Parameters that a training run changes."""

    stored_weight_bytes: NotRequired[int]
    """Bytes of the weights of the whole served model as they are stored, counted once: the size of its
    files.
    """

    per_device: DeviceMemory
    """Memory of the fullest device."""

    kv_cache: NotRequired[KvCacheUsage]
    """KV cache of a request. Present for a served model that keeps one."""

    host: NotRequired[OffloadedMemory]
    """State that is offloaded from the device. Absent if nothing is."""

    capacity_bytes: NotRequired[int]
    """Memory that the driver of the device reports. Absent if it is unknown."""

    usable_bytes: NotRequired[int]
    """Memory of the device that the workload may use. Under a serving engine: its share, and what it takes
    outside that share.
    """

    headroom_bytes: NotRequired[int]
    """Usable bytes less the total. Below 0 if the workload does not fit."""

    fits: NotRequired[bool]
    """True if the total is at most the usable bytes."""

    fit_probability: NotRequired[float]
    """Probability that the workload fits, from the intervals of total and capacity."""

    limits: MemoryLimits
    """Largest value of each dimension before the device is full."""

    advice: list[EstimateAdvice]
    """Changes that make the workload fit. For training: the cheapest set of changes, to be made together,
    ordered by their cost. For serving: single changes, or the smallest sets if no single one is enough.
    """


class MemoryEstimateBatchRequest(TypedDict):
    """Several requests for memory, answered in order."""

    requests: list[MemoryEstimateRequest]
    """Requests. If one of them has no answer, the batch fails."""


class MemoryEstimateList(TypedDict):
    """Answers in the order of the questions."""

    results: list[MemoryEstimate]


class MemoryEstimateRequest(TypedDict):
    """Request for the memory of a workload."""

    model: ModelReference
    """Model that is trained or served."""

    workload: WorkloadInput
    """Work of the model."""

    cluster: NotRequired[ClusterInput]
    """Cluster that the workload runs on. Without it the answer has no capacity and does not say if the
    workload fits.
    """

    parallelism: NotRequired[ParallelismInput]
    """Layout of the workload over the devices. Defaults to a sensible layout, which the answer states."""


MemoryLabelReading: TypeAlias = "Literal['binary', 'decimal', 'unknown']"


class MemoryLimits(TypedDict):
    """Largest value of each dimension before the device is full, with the others as requested."""

    max_micro_batch_size: NotRequired[int]
    """Largest number of sequences that a replica can process at a time."""

    max_sequence_length: NotRequired[int]
    """Longest sequence, in tokens."""

    max_concurrency: NotRequired[int]
    """Largest number of concurrent requests over the whole cluster."""

    kv_cache_tokens: NotRequired[int]
    """Tokens that the KV cache of the whole cluster holds, as the engine counts them."""


class MemoryQuoteRequest(TypedDict):
    """Request for a quote on memory."""

    name: str
    """Name of the quote."""

    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""

    note: NotRequired[str]
    """Note for the approvers."""

    valid_for_days: NotRequired[int]
    """Days in which the quote may be approved. A price that ends earlier shortens the validity."""

    operation: Literal["memory"]

    request: MemoryEstimateRequest
    """Body of `POST /v1/estimates/memory`."""


class MessageResidual(TypedDict):
    """Deviation of one message size from the fitted line."""

    message_bytes: float
    """Size of the message."""

    measured_over_line: float
    """Measured time over that of the line."""


class MinimumCharge(TypedDict):
    """The least that other charges amount to in a billing period."""

    name: str
    """Name that no other charge of the revision has."""

    kind: Literal["minimum"]

    amount: str
    """Decimal number as text; credits are below zero."""

    months: NotRequired[list[int]]
    """Calendar months in which it is charged: energy by its time, all else by the month in which most days
    of the billing period lie. Defaults to all months.
    """

    hours_of_use_from: NotRequired[float]
    """Annual kWh for each kW of the annual peak from which it is charged."""

    hours_of_use_below: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which it is charged; absent without a bound."""

    per: NotRequired[FixedChargePeriod]
    """Time that the amount is for; of a yearly amount, one twelfth counts for each month."""

    of: NotRequired[list[str]]
    """Charges that fill it. Defaults to all but taxes and riders."""

    proration: NotRequired[ChargeProration]
    """Part of a monthly or yearly amount that counts in a billing period that is not one month."""


class MixtureOfExpertsLayer(TypedDict):
    """A router over feed-forwards, with an optional expert that every token takes."""

    kind: Literal["mixture_of_experts"]

    hidden_size: int
    """Width of the residual stream."""

    expert_count: int
    """Number of experts to choose from."""

    experts_per_token: int
    """Number of experts that each token takes."""

    expert_inner_size: int
    """Width between the matrices of an expert."""

    image_expert_inner_size: NotRequired[int]
    """Width between the matrices of the experts that positions of images take in place of the others: as
    many, with a router of their own; absent where all positions take the same.
    """

    expert_groups: NotRequired[int]
    """Number of groups that the experts are divided into, of which a token takes some; absent without."""

    groups_per_token: NotRequired[int]
    """Number of groups that the experts of a token lie in at most."""

    gated: NotRequired[bool]
    """True if an expert has a third matrix as a gate."""

    bias: NotRequired[bool]
    """True if a learned vector is added."""

    router_bias: NotRequired[bool]
    """True if a learned vector is added to the router."""

    router_scales: NotRequired[bool]
    """True if the input of the router and its answers have learned scales."""

    latent_size: NotRequired[int]
    """Width that tokens are projected to for the routed experts, and back from (LatentMoE); absent where
    they keep their width.
    """

    shared_inner_size: NotRequired[int]
    """Inner width of the expert that every token takes; absent without one."""

    shared_bias: NotRequired[bool]
    """True if learned vectors are added in the shared expert."""

    shared_gate: NotRequired[bool]
    """True if the shared expert has a gate of its own."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


class Model(TypedDict):
    """A model of the catalog."""

    id: str

    name: str

    architecture: Architecture
    """Layers with shapes."""

    context_tokens: NotRequired[int]
    """Longest sequence that the model was built for."""

    sources: list[Citation]

    version: int
    """Number of this version of the row; the ETag of the resource."""

    revision: int
    """Catalog revision of this version."""

    origin: RowOrigin
    """`shipped` if the row ships with the service, `tenant` if it is a row of the tenant."""

    created_at: str

    parameter_count: int
    """Parameters as PyTorch counts those of the model class: tied ones once, buffers not."""

    active_parameter_count: int
    """Parameters that one token uses."""

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    hub_id: NotRequired[str]
    """Repository on the Hugging Face Hub that publishes the weights, such as `openai/gpt-oss-120b`."""

    license: NotRequired[str]
    """Licence of the weights, as the repository names it."""

    quantization_config: NotRequired[dict[str, Any]]
    """Quantization of the published weights, as their config.json states it. Questions that name no
    precision load the weights so; without it, weights are published in 16 bits or wider and loaded in
    16 bits.
    """


class ModelImportRequest(TypedDict):
    """A model given by its published `config.json`."""

    id: str

    name: str

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    sources: list[Citation]

    config: dict[str, Any]
    """The parsed config.json, as published."""


ModelLayer: TypeAlias = "AttentionLayer | LatentAttentionLayer | CompressedAttentionLayer | LinearAttentionLayer | StateSpaceLayer | FeedForwardLayer | MixtureOfExpertsLayer | NormalizationLayer | ActivationLayer | LinearLayer | ConvolutionLayer | ResamplingLayer | LearnedVectorsLayer | EmbeddingTableLayer | InteractionLayer | ModulationLayer | BlockLayer"


class ModelPage(TypedDict):
    """A page of models."""

    items: list[Model]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class ModelPatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]

    architecture: NotRequired[Architecture]
    """Layers with shapes."""

    context_tokens: NotRequired[int | None]
    """Longest sequence that the model was built for."""

    sources: NotRequired[list[Citation]]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str | None]

    hub_id: NotRequired[str | None]
    """Repository on the Hugging Face Hub that publishes the weights, such as `openai/gpt-oss-120b`."""

    license: NotRequired[str | None]
    """Licence of the weights, as the repository names it."""

    quantization_config: NotRequired[ModelPatchQuantizationConfig | None]
    """Quantization of the published weights, as their config.json states it. Questions that name no
    precision load the weights so; without it, weights are published in 16 bits or wider and loaded in
    16 bits.
    """


ModelPatchQuantizationConfig: TypeAlias = "dict[str, Any]"

ModelReference: TypeAlias = "CatalogModel | HuggingFaceModel | ArchitectureModel | ParameterCountModel"


class ModelRequest(TypedDict):
    """A model: an architecture with a name."""

    id: str

    name: str

    architecture: Architecture
    """Layers with shapes."""

    context_tokens: NotRequired[int]
    """Longest sequence that the model was built for."""

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    hub_id: NotRequired[str]
    """Repository on the Hugging Face Hub that publishes the weights, such as `openai/gpt-oss-120b`."""

    license: NotRequired[str]
    """Licence of the weights, as the repository names it."""

    quantization_config: NotRequired[dict[str, Any]]
    """Quantization of the published weights, as their config.json states it. Questions that name no
    precision load the weights so; without it, weights are published in 16 bits or wider and loaded in
    16 bits.
    """


class ModelledEfficiency(TypedDict):
    """Takes the achieved share of the limits from measured runs."""

    source: Literal["modelled"]

    time_factor: NotRequired[float]
    """Factor of the time of a training step, for devices that turn out slower or faster."""


class ModulationLayer(TypedDict):
    """Shifts, scales and gates computed from a condition vector (adaptive norm of a DiT)."""

    kind: Literal["modulation"]

    condition_size: int
    """Width of the condition vector."""

    hidden_size: int
    """Width of the residual stream."""

    vectors: NotRequired[int]
    """Number of shifts, scales and gates together."""

    streams: NotRequired[int]
    """Number of sequences that have vectors of their own among these."""

    bias: NotRequired[bool]
    """True if a learned vector is added."""

    shared: NotRequired[bool]
    """True if the vectors come from a matrix that stands elsewhere and serves many layers."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


class MoneyAmount(TypedDict):
    """An amount of one currency."""

    amount: str
    """Decimal number as text."""

    currency_code: str
    """ISO 4217 code."""


class MoneyInput(TypedDict):
    """An amount of one currency."""

    amount: str
    """Decimal number as text, such as \"3\" or \"2.49\"."""

    currency_code: str
    """ISO 4217 code."""


class MoneyQuantity(TypedDict):
    """A headline amount with its 80% interval and the evidence behind it."""

    amount: str
    """Decimal number as text."""

    low: str
    """Lower end of the interval."""

    high: str
    """Upper end of the interval."""

    currency_code: str
    """ISO 4217 code."""

    basis: EvidenceBasis
    """Weakest evidence that the amount rests on."""


class MonthHoursIntensityInput(TypedDict):
    """Intensity of the hours of the day, for each month of any year."""

    kind: Literal["month_hours"]
    """Selects this shape."""

    time_zone: str
    """Time zone of the hours."""

    kg_co2e_per_kwh: list[float]
    """Intensity of the 24 hours of January, then of February, and so on."""


class MonthlyBillingQuantity(TypedDict):
    """A billing quantity of a month."""

    month: int
    """Calendar month."""

    period: NotRequired[str]
    """Price period of the charge. Absent for a quantity of all hours of the month."""

    value: float
    """Value of the quantity."""


class MonthlyPeak(TypedDict):
    """Highest demand of a month before the load."""

    month: str
    """Calendar month."""

    peak_kw: float
    """Highest mean power of an interval of the month, at the meter."""


class NaiveLayout(TypedDict):
    """The first layout that fits in the order of practice, which the chosen one is compared with."""

    parallelism: ParallelismDegrees
    """The layout."""

    micro_batch_size: int
    """Sequences that a replica processes at a time on it."""

    recomputation: Recomputation
    """Activations that it recomputes."""

    step_time_ratio: float
    """Time of a step on it over the time of a step on the chosen layout: the gain of the choice. Below 1
    if it leaves less memory free than the chosen layout has to.
    """


class Node(TypedDict):
    """A host that has enrolled as a node, with GPUs or to measure its processor."""

    id: str

    name: str

    device: DeviceKind
    """Kind of device that the node measures."""

    state: NodeState
    """State of the node. A `draining` node finishes its suite and gets no other; a `quarantined` node gets
    nothing.
    """

    reason: NotRequired[str]
    """Reason of the quarantine: `OPERATOR`, `CREDENTIAL_REUSED` or `TWO_HOSTS`."""

    reachable: bool
    """True if the node was heard from recently."""

    last_seen_at: NotRequired[str]
    """Time at which the node was last heard from. Accurate to some minutes if it spoke with another
    process of the service.
    """

    activity: NotRequired[NodeActivity]
    """Activity of the node, as last reported."""

    spool: NotRequired[NodeSpoolState]
    """Results that are kept on the node, as last reported."""

    worker_version: str
    """Version of the worker on the node."""

    inventory_sha256: NotRequired[str]
    """SHA-256 of the present inventory."""

    inventory: NotRequired[NodeInventory]
    """Inventory of the node. Present only if a single node is requested."""

    lease: NotRequired[RunningLease]
    """Benchmark run that the node is running."""

    rotation_requested: bool
    """True if the credential of the node is to be replaced before its time."""

    version: int
    """Number of changes of the node's state."""

    created_at: str

    revoked_at: NotRequired[str]
    """Time from which the node is refused."""

    barred_at: NotRequired[str]
    """Time from which the host may not enrol again. Absent unless an operator quarantined or revoked the
    node.
    """


class NodeAccelerator(TypedDict):
    """A device, as its driver describes it. Its numbers identify it, not its name."""

    index: int
    """Place among the devices of the node."""

    uuid_sha256: str
    """Digest of the id of the device."""

    name: str

    pci_bus_id: NotRequired[str]
    """Place on the bus."""

    pci_device_id: NotRequired[str]
    """Vendor and model of the chip."""

    pci_subsystem_id: NotRequired[str]
    """Vendor and model of the board."""

    vbios_version: NotRequired[str]
    """Firmware of the board."""

    compute_capability: NotRequired[str]
    """Compute capability by major and minor version, such as 9.0."""

    multiprocessor_count: NotRequired[int]
    """Number of enabled multiprocessors."""

    memory_bytes: NotRequired[int]
    """Memory as the driver reports it."""

    l2_bytes: NotRequired[int]
    """Size of the second-level cache."""

    memory_bus_bits: NotRequired[int]
    """Width of the memory bus."""

    power_limit_watts: NotRequired[float]
    """Power limit that is enforced now."""

    power_limit_default_watts: NotRequired[float]
    """Power limit as delivered."""

    power_limit_minimum_watts: NotRequired[float]
    """Lowest power limit that can be set."""

    power_limit_maximum_watts: NotRequired[float]
    """Highest power limit that can be set."""

    sm_clock_maximum_hz: NotRequired[int]
    """Highest clock of the multiprocessors."""

    memory_clock_maximum_hz: NotRequired[int]
    """Highest clock of the memory."""

    sm_clock_application_hz: NotRequired[int]
    """Requested clock of the multiprocessors."""

    memory_clock_application_hz: NotRequired[int]
    """Requested clock of the memory."""

    persistence_mode: NotRequired[bool]
    """True if the driver stays loaded."""

    compute_mode: NotRequired[str]
    """Compute mode: the processes that may use the device at a time."""

    mig_mode: NotRequired[bool]
    """True if the device is partitioned."""

    mig_profile: NotRequired[str]
    """Profile of a slice of a partitioned device, such as `1g.10gb`; absent of a whole device."""

    ecc_mode: NotRequired[bool]
    """True if errors of the memory are corrected."""

    pcie_generation_maximum: NotRequired[int]
    """Highest generation of the bus that device and slot have."""

    pcie_width_maximum: NotRequired[int]
    """Most lanes that device and slot have."""

    nvlink_count: NotRequired[int]
    """Number of links to other devices that are up."""

    numa_node: NotRequired[int]
    """NUMA node of the host that the device is attached to."""


NodeActivity: TypeAlias = "Literal['idle', 'measuring', 'draining']"


class NodeCalibrationWithdrawalRequest(TypedDict):
    """Withdrawal of everything that a node has measured."""

    reason: str
    """Finding that led to the withdrawal."""

    node_id: str
    """Node whose calibrations are withdrawn."""


class NodeEnrolment(TypedDict):
    """A node and its credential, which is shown this once."""

    node_id: str
    """Id of the node."""

    credential: str
    """Credential that the node sends as `Authorization: Bearer`."""

    server_time: str
    """Time of the service."""


class NodeEnrolmentRequest(TypedDict):
    """The enrolment of a node. A request with the same `installation_id` enrols the same node."""

    token: str
    """Enrolment token, which works once."""

    installation_id: str
    """Id that the node makes and keeps before its first attempt, so that a lost answer costs nothing."""

    name: NotRequired[str]
    """Name of the node. Defaults to its host name."""

    device: DeviceKind
    """Kind of device that the node measures."""

    worker_version: str
    """Version of the worker."""


class NodeGap(TypedDict):
    """An unknown fact, with the reason."""

    pointer: str
    """JSON Pointer of the absent member."""

    code: str
    """Stable name of the reason."""

    detail: NotRequired[str]
    """Reason in words."""


class NodeHeartbeatRequest(TypedDict):
    """A message that the node is alive."""

    boot_id_sha256: str
    """Digest of the id of the boot of the host; two ids that alternate are two hosts with one credential."""

    worker_version: str
    """Version of the worker."""

    inventory_sha256: str
    """Digest of the current inventory of the node."""

    activity: NodeActivity
    """Activity of the node."""

    spool: NodeSpoolState

    acknowledged: NotRequired[list[str]]
    """Digests of acknowledged results, sent after a reconnect, that the service may ask for again."""


class NodeHost(TypedDict):
    """The machine around the devices."""

    operating_system: str
    """Name and version of the operating system."""

    kernel: str
    """Version of the kernel."""

    architecture: str
    """Architecture of the processor, such as x86_64."""

    cpu_count: int
    """Number of logical processors that the worker may use."""

    cpu_model: NotRequired[str]
    """Model of the processor, as it names itself."""

    socket_count: NotRequired[int]
    """Number of processors in sockets."""

    numa_node_count: NotRequired[int]
    """Number of NUMA nodes."""

    memory_bytes: NotRequired[int]
    """Memory of the host."""

    virtualization: NotRequired[str]
    """Kind of virtualization, such as none, container or kvm."""

    cgroup_memory_limit_bytes: NotRequired[int]
    """Memory that the container may use."""

    cgroup_cpu_limit: NotRequired[float]
    """Number of processors that the container may use."""


class NodeInstructions(TypedDict):
    """Instructions of the service to a node."""

    state: NodeInstructionsState
    """State of the node; a quarantined node may only report."""

    rotate: bool
    """True if the node should rotate its credential."""

    send_inventory: bool
    """True if the service does not know the inventory of the digest, and the node should send it."""

    missing: NotRequired[list[str]]
    """Acknowledged digests whose results the service does not have; the node should send them again."""

    heartbeat_seconds: float
    """Time until the next heartbeat."""

    server_time: str
    """Time of the service."""


NodeInstructionsState: TypeAlias = "Literal['active', 'draining', 'quarantined']"


class NodeInventory(TypedDict):
    """Devices, host and software of a node. The digest of its canonical form names it."""

    device: DeviceKind
    """Kind of device that the node measures."""

    host: NodeHost

    accelerators: NotRequired[list[NodeAccelerator]]

    software: NotRequired[list[NodeSoftware]]

    gaps: NotRequired[list[NodeGap]]


class NodeInventoryReceipt(TypedDict):
    """Receipt of an inventory, with the digest by which claims and results name it."""

    inventory_sha256: str
    """Digest of the inventory."""


class NodePage(TypedDict):
    """A page of nodes."""

    items: list[Node]
    """Nodes in order of id, without their inventories."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class NodeSoftware(TypedDict):
    """A part of the stack that a measurement goes through."""

    name: str
    """Name of the part, such as driver, cuda_driver_api, nvrtc, cublas, numpy or python."""

    version: str
    """Version, as the part states it."""


class NodeSpoolState(TypedDict):
    """Results that a node holds."""

    waiting_count: int
    """Number of results that are not acknowledged yet."""

    waiting_bytes: int
    """Size of the results that are not acknowledged yet."""

    rejected_count: NotRequired[int]
    """Number of results that the service refused and the node keeps for inspection."""

    free_bytes: NotRequired[int]
    """Free space on the file system of the spool."""

    is_full: NotRequired[bool]
    """True if the spool is full, so that the node claims no work."""


NodeState: TypeAlias = "Literal['active', 'draining', 'quarantined', 'revoked']"


class NormalizationLayer(TypedDict):
    """A norm with a learned scale (`rms`) or with scale and shift (`layer`, `group`, `batch`)."""

    kind: Literal["normalization"]

    size: int
    """Width of the normalized vector."""

    norm: NotRequired[NormalizationLayerNorm]
    """Kind of norm, by the values that are normalized together."""

    learned: NotRequired[bool]
    """True if the norm has parameters."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


NormalizationLayerNorm: TypeAlias = "Literal['rms', 'layer', 'group', 'batch']"

NumberFormat: TypeAlias = "Literal['fp64', 'fp32', 'tf32', 'fp16', 'bf16', 'fp8', 'int8', 'fp4', 'int4']"
"""Storage format of an element, or mode in which it is multiplied."""


class OccupancyWork(TypedDict):
    """A copy by so few warps on each multiprocessor: throughput against occupancy."""

    kind: Literal["occupancy"]

    resident_warps: int
    """Warps on a multiprocessor at a time. More than the device has room for are unsupported."""

    array_bytes: int
    """Size of each array."""


class Offer(TypedDict):
    """An offer of the catalog."""

    id: str

    name: str

    provider: str
    """Provider that rents the instance out."""

    region: NotRequired[str]
    """Region, as the provider names it."""

    accelerator_id: str
    """Accelerator of the catalog."""

    accelerator_count: NotRequired[int]
    """Accelerators of one instance."""

    purchase_option: PurchaseOption
    """Purchase option. `committed` promises an amount of use or spend, `reserved` keeps an instance
    available, and `capacity_block` is paid as a whole in advance.
    """

    price_per_instance_hour: NotRequired[MoneyInput]
    """Hourly price of the whole instance with all its accelerators. Under a commitment, all payments over
    its hours. Left out if the commitment states its parts.
    """

    as_of: str
    """Date of the price."""

    sources: list[Citation]

    version: int
    """Number of this version of the row; the ETag of the resource."""

    revision: int
    """Catalog revision of this version."""

    origin: RowOrigin
    """`shipped` if the row ships with the service, `tenant` if it is a row of the tenant."""

    created_at: str

    effective_price_per_instance_hour: MoneyInput
    """Hourly price of the whole instance. Under a commitment, all payments over its hours."""

    price_per_device_hour: MoneyInput
    """Effective price of the instance over its accelerators."""

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    zone: NotRequired[str]
    """Part of the region that the price applies to, if prices differ within the region."""

    instance_type: NotRequired[str]
    """The provider's name of the instance."""

    commitment: NotRequired[OfferCommitment]
    """Length and parts of a reserved or committed term, or of a capacity block."""

    billing_increment_seconds: NotRequired[int]
    """Increment that use is rounded up to."""

    minimum_billed_seconds: NotRequired[int]
    """Shortest use that is billed."""

    includes: NotRequired[list[OfferInclusion]]
    """Parts that the price covers beside the accelerators. Left out if that is unknown."""

    valid_from: NotRequired[str]
    """First day on which the price applies."""

    valid_until: NotRequired[str]
    """Last day, month or year in which the price applies."""

    doubt: NotRequired[str]
    """Reason why the price may be wrong. Estimates that use it repeat the reason."""


class OfferCommitment(TypedDict):
    """Terms that are agreed in advance. Amounts are for one instance, in the currency of the price."""

    term_days: int
    """Length of the term. A year counts 365 days."""

    upfront_per_instance: NotRequired[MoneyInput]
    """Amount that is paid at the start for the whole term."""

    hourly_per_instance: NotRequired[MoneyInput]
    """Amount that is paid for every hour of the term, used or not."""

    minimum_instances: NotRequired[int]
    """Smallest number of instances that the term is sold for."""

    minimum_spend_per_hour: NotRequired[MoneyInput]
    """Smallest hourly spend that the term is sold for."""


OfferFormat: TypeAlias = "Literal['skypilot', 'gpuhunt', 'gpuhunt_tpu', 'ec2instances', 'opencost_csv', 'opencost_json', 'dated_csv']"


class OfferImportRequest(TypedDict):
    """A price list in the format of its publisher."""

    format: OfferFormat
    """Format of the list: the catalog CSV of SkyPilot or gpuhunt (of one provider), the TPU prices of
    gpuhunt, instances of ec2instances.info, custom prices of OpenCost, or a CSV of dated prices whose
    rows name their provider, date and source.
    """

    provider: NotRequired[str]
    """Provider of the prices, such as aws. Required if the format does not state it, refused if rows do."""

    accelerator_id: NotRequired[str]
    """Accelerator of an OpenCost price document, which names none."""

    as_of: str
    """Date of the prices. Rows of dated_csv state their own."""

    valid_until: NotRequired[str]
    """Last day, month or year in which the prices apply."""

    source: PriceListSource

    content: str
    """The file as text."""


OfferInclusion: TypeAlias = (
    "Literal['host', 'local_storage', 'network_storage', 'network', 'software', 'support']"
)


class OfferPage(TypedDict):
    """A page of offers."""

    items: list[Offer]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class OfferPatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]

    provider: NotRequired[str]
    """Provider that rents the instance out."""

    region: NotRequired[str | None]
    """Region, as the provider names it."""

    accelerator_id: NotRequired[str]
    """Accelerator of the catalog."""

    accelerator_count: NotRequired[int]
    """Accelerators of one instance."""

    purchase_option: NotRequired[PurchaseOption]
    """Purchase option. `committed` promises an amount of use or spend, `reserved` keeps an instance
    available, and `capacity_block` is paid as a whole in advance.
    """

    price_per_instance_hour: NotRequired[MoneyInput | None]
    """Hourly price of the whole instance with all its accelerators. Under a commitment, all payments over
    its hours. Left out if the commitment states its parts.
    """

    as_of: NotRequired[str]
    """Date of the price."""

    sources: NotRequired[list[Citation]]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str | None]

    zone: NotRequired[str | None]
    """Part of the region that the price applies to, if prices differ within the region."""

    instance_type: NotRequired[str | None]
    """The provider's name of the instance."""

    commitment: NotRequired[OfferCommitment | None]
    """Length and parts of a reserved or committed term, or of a capacity block."""

    billing_increment_seconds: NotRequired[int | None]
    """Increment that use is rounded up to."""

    minimum_billed_seconds: NotRequired[int | None]
    """Shortest use that is billed."""

    includes: NotRequired[list[OfferInclusion] | None]
    """Parts that the price covers beside the accelerators. Left out if that is unknown."""

    valid_from: NotRequired[str | None]
    """First day on which the price applies."""

    valid_until: NotRequired[str | None]
    """Last day, month or year in which the price applies."""

    doubt: NotRequired[str | None]
    """Reason why the price may be wrong. Estimates that use it repeat the reason."""


class OfferRequest(TypedDict):
    """A dated price of renting an instance."""

    id: str

    name: str

    provider: str
    """Provider that rents the instance out."""

    region: NotRequired[str]
    """Region, as the provider names it."""

    accelerator_id: str
    """Accelerator of the catalog."""

    accelerator_count: NotRequired[int]
    """Accelerators of one instance."""

    purchase_option: PurchaseOption
    """Purchase option. `committed` promises an amount of use or spend, `reserved` keeps an instance
    available, and `capacity_block` is paid as a whole in advance.
    """

    price_per_instance_hour: NotRequired[MoneyInput]
    """Hourly price of the whole instance with all its accelerators. Under a commitment, all payments over
    its hours. Left out if the commitment states its parts.
    """

    as_of: str
    """Date of the price."""

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    zone: NotRequired[str]
    """Part of the region that the price applies to, if prices differ within the region."""

    instance_type: NotRequired[str]
    """The provider's name of the instance."""

    commitment: NotRequired[OfferCommitment]
    """Length and parts of a reserved or committed term, or of a capacity block."""

    billing_increment_seconds: NotRequired[int]
    """Increment that use is rounded up to."""

    minimum_billed_seconds: NotRequired[int]
    """Shortest use that is billed."""

    includes: NotRequired[list[OfferInclusion]]
    """Parts that the price covers beside the accelerators. Left out if that is unknown."""

    valid_from: NotRequired[str]
    """First day on which the price applies."""

    valid_until: NotRequired[str]
    """Last day, month or year in which the price applies."""

    doubt: NotRequired[str]
    """Reason why the price may be wrong. Estimates that use it repeat the reason."""


class OffloadInput(TypedDict):
    """State that is kept outside the device between its uses."""

    optimizer: NotRequired[TrainingStateLocation]
    """Location of master weights and optimizer states; under zero_2 and zero_3 of the gradients too."""

    parameters: NotRequired[TrainingStateLocation]
    """Location of the weights, which are gathered block by block."""

    activations: NotRequired[OffloadInputActivations]
    """Location of the saved activations, except those of two blocks."""


OffloadInputActivations: TypeAlias = "Literal['none', 'cpu']"


class OffloadedMemory(TypedDict):
    """State of a training step that is kept outside the device, for each device."""

    memory_bytes: int
    """Bytes in the memory of the host."""

    nvme_bytes: int
    """Bytes on the drives of the host."""


class OperatorEstimate(TypedDict):
    """One operator of a block on one device and one micro-batch, under the roofline."""

    operator: str
    """Name of the operator."""

    direction: OperatorEstimateDirection
    """Pass that the operator belongs to."""

    flops: float
    """Floating-point operations."""

    moved_bytes: int
    """Bytes read and written in the device's memory."""

    flops_per_byte: float
    """Arithmetic intensity."""

    attainable_flops_per_second: float
    """Rate that the data sheet allows at this intensity."""

    achieved_flops_per_second: float
    """Rate that follows from the estimated time."""

    seconds: float
    """Estimated time."""

    bound: OperatorEstimateBound
    """The limit that sets the time."""


OperatorEstimateBound: TypeAlias = "Literal['compute', 'memory']"

OperatorEstimateDirection: TypeAlias = "Literal['forward', 'backward']"

OperatorFusion: TypeAlias = "Literal['eager', 'fused', 'compiled']"
"""Fusion of memory-bound operators into kernels: none, chains by hand, or chains by a compiler."""

Optimizer: TypeAlias = "Literal['sgd', 'momentum', 'rmsprop', 'adagrad', 'adam', 'adamw', 'adam_8bit', 'paged_adamw', 'paged_adamw_8bit', 'adafactor', 'lion', 'lamb', 'lars', 'shampoo', 'muon', 'galore']"
"""Optimizers by their state."""


class OptimizerStepWork(TypedDict):
    """One update of parameters in mixed precision, in one fused kernel."""

    kind: Literal["optimizer_step"]

    optimizer: OptimizerStepWorkOptimizer
    """Rule of the update."""

    parameters: int
    """Parameters that are updated."""


OptimizerStepWorkOptimizer: TypeAlias = "Literal['adamw', 'sgd_momentum']"


class OverrunCharge(TypedDict):
    """A price for each kW of the period's peak above the contracted capacity."""

    name: str
    """Name that no other charge of the revision has."""

    kind: Literal["overrun"]

    contract_kw: float
    """Contracted capacity in kW."""

    price: str
    """Decimal number as text; credits are below zero."""

    months: NotRequired[list[int]]
    """Calendar months in which it is charged: energy by its time, all else by the month in which most days
    of the billing period lie. Defaults to all months.
    """

    hours_of_use_from: NotRequired[float]
    """Annual kWh for each kW of the annual peak from which it is charged."""

    hours_of_use_below: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which it is charged; absent without a bound."""

    tolerance: NotRequired[float]
    """Factor of the contracted capacity above which demand is charged."""

    window_minutes: NotRequired[int]
    """Minutes over which demand is averaged. Defaults to the intervals of the load."""


class OwnedNodes(TypedDict):
    """Machines that are already available."""

    name: str
    """Name of the machines in the answer."""

    cluster: ClusterInput
    """One of the machines: its devices, their number and their links. `accelerator_count` is that of all
    machines: the most that a plan takes.
    """

    site: NotRequired[RunSiteInput]
    """Building that houses the machines. The cost of their electricity is part of the cost of a plan."""

    purchase: NotRequired[Purchase]
    """Price of the machines. With `ownership` the run bears its share of it. If left out, only electricity
    counts.
    """


class Ownership(TypedDict):
    """Terms that turn a purchase into a yearly cost; a run bears its share of the device-hours used."""

    years: float
    """Years of use over which the purchase is depreciated in equal parts."""

    residual_share: NotRequired[float]
    """Share of the purchase that the devices are worth at the end."""

    interest_rate: NotRequired[float]
    """Rate per year at which the purchase is financed; paid back in equal yearly amounts (an annuity)."""

    maintenance_share: NotRequired[float]
    """Maintenance in a year as a share of the purchase."""

    utilization: NotRequired[float]
    """Share of the hours of a year in which the devices run something."""

    staff_per_year: NotRequired[MoneyInput]
    """Yearly cost of the staff that runs the devices."""

    space_per_year: NotRequired[MoneyInput]
    """Yearly cost of floor, racks and cooling, without electricity."""


class OwnershipCostBreakdown(TypedDict):
    """Cost of the run on owned devices: its share of the cost of each year."""

    lines: list[CostLine]
    """Charges."""

    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""

    yearly: CostBreakdown
    """Cost of a year, whatever runs."""

    price_per_device_hour: MoneyQuantity
    """Cost of a year over the device-hours that are used in it."""

    device_hours_per_year: QuantityEstimate
    """Device-hours that are used in a year."""


class ParallelismDegrees(TypedDict):
    """The layout that the figures hold for, given or chosen."""

    tensor: int
    """Devices that share each layer."""

    pipeline: int
    """Stages that the layers are divided into."""

    data: int
    """Replicas that each take a share of the batch."""

    context: int
    """Devices that share each sequence."""

    expert: int
    """Replicas that the experts are spread over."""

    expert_tensor: NotRequired[int]
    """Devices that each expert of a served model is divided over. Absent if they are the devices of
    `tensor`.
    """

    sequence_parallel: bool
    """True if tensor parallelism also divides the activations between layers."""

    sharding: Sharding
    """Part of the training state that is sharded over the replicas."""

    pipeline_schedule: PipelineSchedule
    """Order in which the micro-batches pass the pipeline."""

    virtual_stages: int
    """Parts of the model on each pipeline device."""

    overlap_expert_communication: NotRequired[bool]
    """True if tokens travel to their experts and back while another micro-batch computes. Absent if they
    do not.
    """

    overlap_tensor_communication: NotRequired[bool]
    """True if collectives of tensor parallelism run in pieces beside matrix products, false if products
    wait for them. Absent if the question leaves it to the habit of the framework.
    """

    chosen: bool
    """True if the service chose the layout because the question did not give one."""


class ParallelismInput(TypedDict):
    """Layout of a workload over devices. Degrees default to 1, `data` to the rest of the cluster."""

    tensor: NotRequired[int]
    """Devices that share each layer."""

    pipeline: NotRequired[int]
    """Stages that the layers are divided into."""

    data: NotRequired[int]
    """Replicas that each take a share of the batch."""

    expert: NotRequired[int]
    """Replicas that the experts are spread over."""

    context: NotRequired[int]
    """Devices that share each sequence."""

    sharding: NotRequired[Sharding]
    """Part of the training state that is sharded over the replicas. Defaults to the way of the framework,
    else to the fastest that fits, else to none.
    """

    expert_tensor: NotRequired[int]
    """Devices that each expert of a served model is divided over, out of the tensor x expert devices that
    hold all experts. Defaults to `tensor`.
    """

    sequence_parallel: NotRequired[bool]
    """True if tensor parallelism also divides the activations between layers. Defaults to the way of the
    framework, else to the fastest way that fits, else to false.
    """

    sharding_group_size: NotRequired[int]
    """Devices that together hold one copy of the state. Required for hybrid sharding."""

    pipeline_schedule: NotRequired[PipelineSchedule]
    """Order in which the micro-batches pass the pipeline. Defaults to the way of the framework, else to
    the faster of one_f_one_b and interleaved that fits, else to one_f_one_b.
    """

    virtual_stages: NotRequired[int]
    """Parts of the model on each pipeline device. Defaults to the fastest number for the interleaved
    schedule, else to 1. More than 1 without a schedule means the interleaved one.
    """

    overlap_expert_communication: NotRequired[bool]
    """True if tokens travel to their experts and back while another micro-batch computes: a forward pass
    runs beside a backward pass. Defaults to the way of the framework, else to true where `expert` is
    above 1.
    """

    overlap_tensor_communication: NotRequired[bool]
    """True if collectives of tensor parallelism are sent in pieces beside the matrix products that need
    them, false if products wait for them. True needs `tensor` above 1 and sequence parallelism, which
    it implies if `sequence_parallel` is left out. Defaults to the habit of the framework on blocks
    without experts, and to false on those with experts.
    """


class ParameterCountModel(TypedDict):
    """A rough model of which only the number of parameters is known. Figures that need more are gaps."""

    source: Literal["parameter_count"]

    parameter_count: int
    """Parameters of the model. Every token uses all of them."""


PeakFormat: TypeAlias = "Literal['fp64', 'fp64_tensor', 'fp32', 'tf32', 'bf16', 'fp16', 'fp8', 'fp4', 'int8']"

PeakRates: TypeAlias = "dict[str, float]"


class PeerLinkWork(TypedDict):
    """Copies from one device of a node to the next."""

    kind: Literal["peer_link"]

    direction: PeerLinkWorkDirection
    """One way, or both at once."""

    method: PeerLinkWorkMethod
    """Means of the copies. Their figures differ, so they are never compared."""

    transfer_bytes: int
    """Payload of one direction."""


PeerLinkWorkDirection: TypeAlias = "Literal['one_way', 'both']"

PeerLinkWorkMethod: TypeAlias = "Literal['copy_engine', 'kernel']"


class PeerMatrixWork(TypedDict):
    """Copies of the copy engines between several devices of a node, all at once."""

    kind: Literal["peer_matrix"]

    pattern: PeerMatrixWorkPattern
    """Pairs that copy: every other device and the first one, or every two devices in both directions."""

    devices: int
    """Devices that take part."""

    transfer_bytes: int
    """Payload of each pair in one direction."""


PeerMatrixWorkPattern: TypeAlias = "Literal['all_to_one', 'one_to_all', 'all_to_all']"


class PercentageCharge(TypedDict):
    """A rider, tax or credit: percent of other charges."""

    name: str
    """Name that no other charge of the revision has."""

    months: NotRequired[list[int]]
    """Calendar months in which it is charged: energy by its time, all else by the month in which most days
    of the billing period lie. Defaults to all months.
    """

    hours_of_use_from: NotRequired[float]
    """Annual kWh for each kW of the annual peak from which it is charged."""

    hours_of_use_below: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which it is charged; absent without a bound."""

    kind: Literal["percentage"]

    percent: str
    """Decimal percent of the charges; credits are below zero."""

    of: NotRequired[list[str]]
    """Charges that it is a percentage of. Defaults to all before it."""

    tax: NotRequired[bool]
    """True if it is a tax."""


class PhaseTime(TypedDict):
    """A part of the time and the limit that sets it."""

    phase: PhaseTimePhase
    """Part of a step or of a request."""

    seconds: QuantityEstimate
    """Time of the phase."""

    bound: BottleneckBound
    """The limit that sets the time."""

    parts: NotRequired[list[IterationPartTime]]
    """Time of a phase of a request by part of its iterations. The parts sum to the time of the phase."""


PhaseTimePhase: TypeAlias = "Literal['generation', 'weight_synchronization', 'policy_forward', 'reference_forward', 'reward_forward', 'critic_forward', 'critic_training', 'teacher_forward', 'forward', 'backward', 'recomputation', 'tensor_communication', 'context_communication', 'expert_communication', 'data_communication', 'pipeline_communication', 'offload_communication', 'bubble', 'optimizer', 'host', 'stragglers', 'data', 'waiting', 'encoder', 'text_encoder', 'denoiser', 'autoencoder', 'prefill', 'transfer', 'decode']"

PipelineSchedule: TypeAlias = "Literal['gpipe', 'one_f_one_b', 'interleaved', 'zero_bubble']"
"""Order in which the micro-batches of a step pass the pipeline."""


class Plan(TypedDict):
    """A search, with its answer once it is done."""

    id: str

    state: PlanState
    """State of the search. A failed search has `error_code` and `error_summary`."""

    kind: PlanKind
    """Kind of the search: the best configuration for some work, or the schedule of a fleet."""

    goal: StoredPlanGoal
    """Goal of the search. `earliest` is a goal of fleets."""

    question: NotRequired[PlanRequest]
    """Request of the search. Absent for a fleet, and left out of lists."""

    fleet_question: NotRequired[FleetPlanRequest]
    """Request of the search of a fleet. Left out of lists."""

    created_at: str
    """Time of the request."""

    finished_at: NotRequired[str]
    """Time at which the search ended."""

    progress: PlanProgress
    """Progress of the search."""

    error_code: NotRequired[str]
    """Code of the failure."""

    error_summary: NotRequired[str]
    """Description of the failure."""

    best_cost: NotRequired[MoneyAmount]
    """Cost of the first row, or of all placed workloads of a fleet."""

    answer: NotRequired[PlanResult]
    """Answer of the search. Present once it is done; absent for a fleet, and left out of lists."""

    fleet_answer: NotRequired[FleetPlan]
    """Schedule of a fleet. Present once its search is done; left out of lists."""


class PlanCandidateCounts(TypedDict):
    """Counts of a search. A configuration is a layout, batch, precision and devices, whoever owns these."""

    considered: int
    """Configurations that were considered."""

    scored: int
    """Configurations whose memory and time were computed."""

    feasible: int
    """Scored configurations that no constraint rules out before prices."""

    ruled_out: list[RuledOutCandidates]
    """Configurations that a constraint rules out."""

    pruned: list[PrunedCandidates]
    """Configurations that a bound decides."""

    priced: int
    """Configurations with a supply and a start that were computed in full."""

    priced_feasible: int
    """Priced configurations that no constraint rules out."""

    priced_ruled_out: list[RuledOutCandidates]
    """Priced configurations that a constraint rules out."""


PlanConstraint: TypeAlias = "Literal['precision', 'devices', 'heads', 'blocks', 'experts', 'sequence', 'batch', 'link', 'memory', 'engine', 'service_level', 'deadline', 'power', 'carbon', 'budget', 'price', 'emissions']"
"""Constraint that rules a candidate out. Constraints are checked in this order; the first one counts.

No rate of the device for the ``precision``; degrees that the number of ``devices`` does not allow,
or more devices than the plan may take; ``heads``, ``blocks`` and ``experts`` of the model, a
``sequence`` or a ``batch`` that do not divide among the devices; tensor parallelism beyond the fast
``link``; ``memory`` of a device, less its headroom; limits of the ``engine``; a ``service_level``
that is not met; a run longer than its ``deadline``; the ``power`` of the building; ``carbon``;
``budget``; a supply whose cost in the currency of the plan is unknown (``price``), or whose
emissions are (``emissions``).
"""


class PlanConstraints(TypedDict):
    """Constraints of a configuration. A constraint that is left out does not apply."""

    budget: NotRequired[MoneyInput]
    """Highest cost of the run."""

    finish_by: NotRequired[str]
    """Latest end of a training run. Needs `starts_at` or `window`."""

    duration_seconds: NotRequired[float]
    """Longest duration of a training run, interruptions included."""

    accelerator_count: NotRequired[int]
    """Largest number of devices."""

    providers: NotRequired[list[str]]
    """Providers whose offers are considered. Defaults to all providers of the catalog."""

    regions: NotRequired[list[str]]
    """Regions whose offers are considered. Defaults to all regions."""

    purchase_options: NotRequired[list[PurchaseOption]]
    """Purchase options whose offers are considered. Defaults to all of them."""

    headroom_share: NotRequired[float]
    """Smallest share of the usable memory of a device that is left free; for a service, of the part that
    its engine may use (`memory_fraction`). Defaults to 0.05 for the configurations of the search.
    """

    facility_kw: NotRequired[float]
    """Highest power at the meter of the building, hosts and cooling included."""

    location_based_kg_co2e: NotRequired[float]
    """Highest location-based emissions of the electricity."""


class PlanEstimateRequests(TypedDict):
    """Bodies of `POST /v1/estimates/...` that return the same figures."""

    memory: MemoryEstimateRequest
    """Body for `memory`."""

    throughput: ThroughputEstimateRequest
    """Body for `throughput`."""

    cost: NotRequired[CostEstimateRequest]
    """Body for `cost`. Present if devices or their storage are paid for."""

    utility_bill: NotRequired[UtilityBillRequest]
    """Body for `utility-bill`. Present if the building is known."""


PlanGoal: TypeAlias = "Literal['cheapest', 'fastest', 'cleanest', 'fewest_devices', 'pareto']"

PlanKind: TypeAlias = "Literal['configuration', 'fleet']"


class PlanPage(TypedDict):
    """A page of plans, without their answers."""

    items: list[Plan]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class PlanProgress(TypedDict):
    """Progress of a search."""

    pieces: int
    """Parts of the search."""

    pieces_done: int
    """Parts that are done."""

    candidates: int
    """Configurations of all parts."""

    candidates_decided: int
    """Configurations that are scored, ruled out or pruned."""


class PlanRequest(TypedDict):
    """Request for the best configuration for some work."""

    model: ModelReference
    """Model that is trained or served."""

    workload: WorkloadInput
    """Work of the model. For training: its total and its global batch. For serving: its load and its
    service levels. Without `request_seconds`, the levels of the configurations of the search default to
    a first token within 2 s and 0.2 s a further token; a search that finds none within them ranks
    without these and warns. Settings that are searched replace those given here.
    """

    goal: PlanGoal
    """Objective: least cost, least time (for a service: of a request), least emissions of the electricity,
    fewest devices, or every configuration that no other exceeds in cost, time and emissions.
    """

    constraints: NotRequired[PlanConstraints]
    """Constraints of the configurations."""

    owned: NotRequired[list[OwnedNodes]]
    """Machines that are already available."""

    rented: NotRequired[list[RentedDevices]]
    """Devices that can be rented on terms that are no offer of the catalog."""

    search: NotRequired[PlanSearch]

    starts_at: NotRequired[str]
    """Start of the run."""

    sites: NotRequired[list[RegionSite]]
    """Buildings of rented devices by region."""

    site: NotRequired[RunSiteInput]
    """Building of rented devices in other regions."""

    storage: NotRequired[StorageInput]
    """Price of storing data and checkpoints."""

    egress: NotRequired[EgressInput]
    """Price of data that leave the provider."""

    window: NotRequired[StartWindow]
    """Possible starts of the run. The best one is chosen for each configuration."""

    currency_code: NotRequired[str]
    """Currency of the costs, at the exchange rates of the catalog. Defaults to the currency of the budget,
    else USD.
    """

    given: NotRequired[list[GivenConfiguration]]
    """Configurations to rank with the others."""

    assumptions: NotRequired[list[SensitivityAssumption]]
    """Changes of assumptions to try."""

    most_candidates: NotRequired[int]
    """Largest number of candidates. A larger search is refused, and the problem names the list that makes
    it so large.
    """


class PlanResult(TypedDict):
    """Best configurations for some work."""

    rows: list[PlanRow]
    """Ranked rows by the goal. A Pareto set starts with the cheapest."""

    given: list[PlanRow]
    """Given configurations in the order of the request."""

    candidates: PlanCandidateCounts
    """Counts of the search."""

    separation: NotRequired[PlanSeparation]
    """Differences between the first two rows."""

    sensitivities: list[PlanSensitivity]
    """Assumptions that the choice depends on, the smallest change first."""

    launch_hints: list[LaunchSettings]
    """Settings for running the first row."""

    currency_code: str
    """Currency of all costs."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""

    defaults: list[EstimateDefault]
    """Limits that the question leaves open, as the search fills them."""

    warnings: list[AnswerWarning]
    """Remarks about the question."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class PlanRow(TypedDict):
    """A configuration with its estimates."""

    rank: int
    """Rank by the goal among the candidates that are ranked individually (`search.depth`) and not ruled
    out; 1 is the best. A given configuration worse than all of them ranks after them.
    """

    name: NotRequired[str]
    """Name of a given configuration."""

    ruled_out_by: NotRequired[PlanConstraint]
    """Constraint that rules a given configuration out. Its rank is then 0."""

    supply: PlanSupply
    """Supply of the devices."""

    accelerator_id: str
    """Id of the accelerator."""

    accelerator_count: int
    """Number of devices."""

    parallelism: ParallelismDegrees
    """Layout of the devices."""

    precision: NotRequired[str]
    """Precision of training."""

    micro_batch_size: NotRequired[int]
    """Sequences that a replica processes at a time."""

    gradient_accumulation_steps: NotRequired[int]
    """Micro-batches of an optimizer step."""

    recomputation: NotRequired[str]
    """Activations that the backward pass recomputes."""

    weight_format: NotRequired[str]
    """Format of the served weights."""

    kv_cache_precision: NotRequired[str]
    """Format of the stored KV cache."""

    replicas: NotRequired[int]
    """Replicas of the service."""

    starts_at: NotRequired[str]
    """Start of the run. Present if the request gives one."""

    total_bytes: NotRequired[QuantityEstimate]
    """Memory of the fullest device. Absent if a part of it is unknown."""

    headroom_bytes: NotRequired[int]
    """Bytes that are left of the device, or of the engine's share of it."""

    fit_probability: NotRequired[float]
    """Probability that a device holds the configuration, from the intervals of its memory and of the
    device's capacity.
    """

    step_seconds: NotRequired[QuantityEstimate]
    """Time of one optimizer step."""

    tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens that the run trains on."""

    model_flops_utilization: NotRequired[QuantityEstimate]
    """Model FLOPs utilization of training."""

    time_to_first_token_seconds: NotRequired[QuantityEstimate]
    """Time from a request of a service to its first token."""

    time_per_output_token_seconds: NotRequired[QuantityEstimate]
    """Time from one token of a request of a service to the next."""

    request_seconds: NotRequired[QuantityEstimate]
    """Time from a request of a service to its last token."""

    service_level_share: NotRequired[QuantityEstimate]
    """Share of the requests that meet the service levels."""

    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the run."""

    device_hours: NotRequired[QuantityEstimate]
    """Devices times hours."""

    cost: NotRequired[MoneyQuantity]
    """Rent or share of owned devices, electricity of owned devices, storage and egress."""

    facility_kwh: NotRequired[QuantityEstimate]
    """Energy at the meter of the building."""

    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter of the building."""

    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions of the electricity."""

    requests: PlanEstimateRequests
    """Requests that return the same figures."""


class PlanRowDifference(TypedDict):
    """A figure in which two rows differ."""

    name: str
    """A setting, a phase of the step, a charge or a headline, as the rows and estimates name it."""

    first: NotRequired[TextOrNumber]
    """Value of the first row. Absent if it has none."""

    second: NotRequired[TextOrNumber]
    """Value of the second row. Absent if it has none."""

    unit: NotRequired[str]
    """Unit of both values, if they are numbers."""


class PlanSearch(TypedDict):
    """Settings to search, and limits of the search."""

    accelerators: NotRequired[list[AcceleratorName]]
    """Accelerators of the catalog to rent. Defaults to all with offers that the constraints allow."""

    accelerator_counts: NotRequired[list[int]]
    """Numbers of devices of a training run. Defaults to whole nodes in doublings, up to 16,384, and to all
    nodes of a supply. A service takes the fewest devices that meet its service levels.
    """

    offers: NotRequired[bool]
    """Set to false to leave out the offers of the catalog, beside `owned` and `rented`."""

    rows: NotRequired[int]
    """Most ranked rows."""

    training: NotRequired[TrainingSearch]
    """Settings of a training workload to search."""

    serving: NotRequired[ServingSearch]
    """Settings of a service to search."""

    spot: NotRequired[SpotTerms]
    """Interruptions of spot devices of the catalog. Without it, spot offers are considered only if
    `purchase_options` of the constraints names spot, at the rent of a run without interruptions.
    """

    depth: NotRequired[int]
    """Configurations of one supply and number of devices that are ranked individually. They become the
    ranked rows, and the sensitivity is computed over them.
    """

    rows_per_supply: NotRequired[int]
    """Most ranked rows of one supply, to leave room for others. A Pareto set ignores the limit."""


class PlanSensitivity(TypedDict):
    """Change of an assumption that changes the first row. Changes up and down are reported separately."""

    assumption: PlanSensitivityAssumption
    """Assumption that is changed: one of `assumptions` of the request, a constraint, or the amount of
    work.
    """

    of: NotRequired[str]
    """Supply, accelerator or site of the assumption."""

    factor: NotRequired[float]
    """Factor closest to 1, above or below, that changes the first row. Absent if none within the range
    does.
    """

    searched_low: float
    """Smallest factor that was tried."""

    searched_high: float
    """Largest factor that was tried."""

    becomes: NotRequired[PlanRow]
    """First row under the changed assumption, with its figures. Absent if no row is left."""


PlanSensitivityAssumption: TypeAlias = "Literal['price', 'time', 'electricity_price', 'carbon_intensity', 'interruption_rate', 'budget', 'deadline', 'work']"


class PlanSeparation(TypedDict):
    """Differences between the first row and the second."""

    settings: list[PlanRowDifference]
    """Settings that differ."""

    figures: list[PlanRowDifference]
    """Headline figures that differ, the figure of the goal first."""

    parts: list[PlanRowDifference]
    """Parts of the goal's figure that differ, by the size of the difference: phases of all steps or of a
    request, charges, or emissions by kind of equipment.
    """

    within_interval: bool
    """True if the first row is better by less than the uncertainty of the estimates."""


PlanState: TypeAlias = "Literal['running', 'done', 'cancelled', 'failed']"


class PlanSupply(TypedDict):
    """Supply of the devices."""

    name: str
    """Name of the supply in the request, or id of the offer."""

    kind: PlanSupplyKind
    """Kind of the supply: owned already, rented on given terms, or rented by an offer of the catalog."""

    provider: NotRequired[str]
    """Provider that rents the devices out."""

    region: NotRequired[str]
    """Region of the devices."""

    purchase_option: NotRequired[str]
    """Purchase option of the rental."""


PlanSupplyKind: TypeAlias = "Literal['owned', 'rented', 'offer']"


class PointerChaseWork(TypedDict):
    """Loads of one thread, each at the place that the one before it has read: the latency of memory."""

    kind: Literal["pointer_chase"]

    array_bytes: int
    """Size of the array, a power of two, of which every line of 128 bytes is visited in turn."""

    hops: int
    """Loads of one execution."""


class PoissonArrivals(TypedDict):
    """Requests that arrive independently of each other."""

    process: Literal["poisson"]


class PolicyChange(TypedDict):
    """A change of a policy, a budget or the delay. It takes effect by an approval or after the delay."""

    id: str
    """Id of the change."""

    resource: str
    """Resource that changes: its path below `/v1/`."""

    action: PolicyChangeAction
    """Action on the resource: create, update or delete."""

    policy: NotRequired[ApprovalPolicyRequest]
    """Policy after the change."""

    budget: NotRequired[BudgetTerms]
    """Terms of the budget after the change."""

    settings: NotRequired[ApprovalSettingsValues]
    """Settings after the change."""

    based_on_version: int
    """Version that is in force until the change takes effect. 0 if there is none."""

    proposed_by: str
    """Subject that proposed the change."""

    proposed_at: str
    """Time of the proposal."""

    effective_at: str
    """Time at which the change takes effect, unless it is approved or rejected earlier."""

    state: PolicyChangeState
    """State of the change. A change that has become impossible is rejected too."""

    approvals: list[PolicyChangeApproval]
    """Approvals of the change."""

    ended_at: NotRequired[str]
    """Time at which the change took effect or was rejected."""

    ended_by: NotRequired[str]
    """Subject that approved the change last or rejected it. Absent if it took effect after the delay."""

    version: int
    """Number of changes of this resource."""


PolicyChangeAction: TypeAlias = "Literal['create', 'update', 'delete']"


class PolicyChangeApproval(TypedDict):
    """Approval of a change by one person."""

    decided_by: str
    """Subject that approved."""

    decided_at: str
    """Time of the approval."""


class PolicyChangeEvent(TypedDict):
    """Change of a policy, a budget or the delay of changes. Everything else about it is read by its id."""

    change_id: str
    """Id of the change."""

    resource: str
    """Path of the resource that changes, below `/v1/`."""

    action: str
    """Action on the resource: it is created, changed or deleted."""

    proposed_by: str
    """Subject that proposed the change."""

    effective_at: str
    """Time at which the change takes effect, unless it is approved or rejected before."""

    ended_by: NotRequired[str]
    """Subject that approved it last or rejected it. Absent if the delay was over."""


class PolicyChangeMessage(TypedDict):
    """Message about a change of a policy, a budget or the delay of changes."""

    type: PolicyChangeMessageType
    """Type of the event."""

    timestamp: str
    """Time of the event."""

    data: PolicyChangeEvent
    """Members of the event."""


PolicyChangeMessageType: TypeAlias = (
    "Literal['policy_change.proposed', 'policy_change.effective', 'policy_change.rejected']"
)


class PolicyChangePage(TypedDict):
    """A page of changes."""

    items: list[PolicyChange]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


PolicyChangeState: TypeAlias = "Literal['waiting', 'effective', 'rejected']"


class PolicyConditions(TypedDict):
    """Conditions of a policy, all of which must hold. A policy without conditions applies to every quote."""

    total_above: NotRequired[MoneyInput]
    """Applies to totals above this amount, converted at the exchange rates of the catalog. A total that is
    unknown or leaves out charges counts as above.
    """

    total_high_above: NotRequired[MoneyInput]
    """Applies if the upper end of the total's 80% interval is above this amount."""

    location_based_kg_co2e_above: NotRequired[float]
    """Applies to emissions above this value. Unknown emissions count as above."""

    cost_center_ids: NotRequired[list[str]]
    """Applies to quotes that one of these cost centres pays for."""

    requesters: NotRequired[list[str]]
    """Applies to quotes that one of these subjects requests, directly or by a key that they made."""

    providers: NotRequired[list[ProviderName]]
    """Applies to quotes with devices from one of these providers."""


class PolicyEvaluation(TypedDict):
    """Policies and exchange rates that determined the approvers, frozen at submission."""

    on: str
    """Day of the exchange rates, UTC."""

    policies: list[EvaluatedPolicy]
    """All policies that existed, in order of id."""

    exchange_rates: list[EvaluatedExchangeRate]
    """Exchange rates that were used, as stated in the catalog."""


class PolicyStep(TypedDict):
    """A step of an approval, decided by a quorum of approvers."""

    name: str
    """Name of the step."""

    approvers: list[str]
    """Subjects that may decide."""

    quorum: NotRequired[int]
    """Number of approvers that must approve. A single rejection rejects."""

    order: NotRequired[int]
    """Order of the step. Steps of all matching policies open one after another by this number, then by id
    of the policy.
    """

    expires_after_seconds: NotRequired[int]
    """Seconds after which the approval expires if the step is undecided. The end of the quote's validity
    ends it in any case.
    """

    escalation: NotRequired[ApprovalEscalation]
    """Escalation of a step that stays open."""


class PowerCapEstimate(TypedDict):
    """Effect of power caps on the time and the cost of a run."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""

    warnings: list[AnswerWarning]
    """Remarks about the question."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""

    uncapped: PowerCapFigures
    """Figures at the device's own limit."""

    caps: list[PowerCapFigures]
    """Figures by cap, in the order of the request."""

    least_energy_watts: NotRequired[float]
    """Cap of the request with the least energy. Absent if no cap saves energy."""


class PowerCapEstimateRequest(TypedDict):
    """Request for the effect of power caps on the time and the cost of a run."""

    model: ModelReference
    """Model that is trained or served."""

    workload: WorkloadInput
    """Work of the model."""

    cluster: ClusterInput
    """Cluster that the workload runs on."""

    site: NotRequired[RunSiteInput]
    """Building that houses the run. Without it electricity and carbon are gaps."""

    rental: NotRequired[Rental]
    """Terms and price of renting the devices."""

    purchase: NotRequired[Purchase]
    """Price of buying the devices."""

    starts_at: NotRequired[str]
    """Start of the run."""

    power_caps_watts: list[float]
    """Highest power of each device, one for each cap to compare."""

    parallelism: NotRequired[ParallelismInput]
    """Layout of the workload over the devices. Defaults to a sensible layout, which the answer states."""

    efficiency: NotRequired[EfficiencyInput]
    """Source of the efficiency of the devices. Defaults to measured runs."""

    storage: NotRequired[StorageInput]
    """Price of storing data and checkpoints."""

    egress: NotRequired[EgressInput]
    """Price of data that leave the provider."""

    token_price_ids: NotRequired[list[str]]
    """Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
    model that are at most a year older than the newest of the catalog.
    """

    currency_code: NotRequired[str]
    """Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
    prices, which then must all have the same one.
    """

    load_profile: NotRequired[RunLoadInput]
    """Power of the run over time."""

    measured: NotRequired[MeasuredEnergyInput]
    """Measured energy of the run, in place of the estimate."""

    embodied: NotRequired[EmbodiedEmissionsInput]
    """Emissions of making the machines."""


class PowerCapFigures(TypedDict):
    """The run with one power cap."""

    power_cap_watts: NotRequired[float]
    """Highest power of a device. Absent for the device's own limit."""

    clock_share: float
    """Lowest share of the clock that the work has left, relative to its clock under the device's own
    limit.
    """

    slowdown: QuantityEstimate
    """Time of the work over its time without a cap."""

    power_per_device_watts: QuantityEstimate
    """Mean power of a device."""

    duration_seconds: QuantityEstimate
    """Time of the whole run."""

    it_kwh: NotRequired[QuantityEstimate]
    """Energy that all equipment draws."""

    facility_kwh: NotRequired[QuantityEstimate]
    """Energy of all equipment at the meter of the building."""

    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter of the building."""

    electricity: NotRequired[MoneyQuantity]
    """Cost of the electricity."""

    rent: NotRequired[MoneyQuantity]
    """Cost of renting the devices for the duration."""

    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Location-based emissions."""


class PowerWork(TypedDict):
    """Power of a device, by its energy counter over the window, idle or under a load."""

    kind: Literal["power"]

    load: PowerWorkLoad
    """`idle` without any context, `context` with one that does nothing, `decode` streams weights."""

    duty: NotRequired[float]
    """Share of the time in which the load runs. The device waits in between, too shortly to idle."""

    window_seconds: float
    """Time over which energy is counted."""

    settle_seconds: float
    """Time under the load before that."""


PowerWorkLoad: TypeAlias = "Literal['idle', 'context', 'gemm', 'stream', 'decode']"


class PriceListSource(TypedDict):
    """Source of a price list."""

    citation: str
    """Document, publisher and way of access."""

    url: NotRequired[str]

    licence: NotRequired[str]


class PriceRange(TypedDict):
    """Range of a price, in the currency of the price."""

    low: str
    """Lowest price."""

    high: str
    """Highest price."""


class Problem(TypedDict):
    """Description of a problem (RFC 9457). It never repeats what was sent."""

    type: str
    """Address of the documentation of this problem."""

    title: str
    """Short description of the problem."""

    status: int
    """HTTP status."""

    detail: str
    """Description of this occurrence."""

    instance: str
    """Path of the request."""

    code: str
    """Stable name of the problem."""

    request_id: str
    """Id of the request, also in the header Request-Id."""

    errors: list[FieldError]
    """Fields that are wrong."""


ProviderName: TypeAlias = "str"


class PrunedCandidates(TypedDict):
    """Candidates that a bound decides without a score."""

    rule: PruningRule
    """Rule that decides the candidates."""

    candidates: int
    """Number of candidates."""


PruningRule: TypeAlias = "Literal['state', 'deadline', 'roofline', 'work', 'levels']"
"""Bound that decides a candidate without a score: it is ruled out, or enough others are better.

The ``state`` of a layout without any activation exceeds the memory of the device; the FLOPs of the
run at the peak of all devices take longer than the ``deadline``, or (``roofline``) longer than the
full time of enough known configurations of the same supply to fill its ranked ones; a layout with
more of the ``work`` that adds memory does not fit where one with less does not; an iteration of a
service takes longer than its service ``levels`` allow for a token, whatever the load.
"""


class PublishedRange(TypedDict):
    """Published figures of a device. A figure outside the range is reviewed, not discarded."""

    accelerator_id: str
    """Id of the accelerator in the catalog."""

    low: NotRequired[float]
    """Lowest expected figure."""

    high: float
    """Highest expected figure."""

    source: str
    """Publication of the figures."""

    is_provisional: NotRequired[bool]
    """True if fewer than two independent sources support the range."""


class Purchase(TypedDict):
    """Price of a bought cluster, given directly or by a hardware price of the catalog."""

    price_per_device: NotRequired[MoneyInput]
    """Price of one device."""

    hardware_price_id: NotRequired[str]
    """Id of a hardware price of the catalog, in place of the price of a device. Its products are bought
    whole, and its published range is that of the price unless `price_range` is given.
    """

    price_range: NotRequired[PriceRange]
    """Range of the price of one device. The interval of the total includes it."""

    price_factor: NotRequired[float]
    """Factor of the price and its range: a discount, or a price that moves."""

    hosts: NotRequired[PurchasedHosts]
    """Servers around the devices. If left out, they are part of the price of a device; refused beside a
    hardware price that includes them.
    """

    network_per_device: NotRequired[MoneyInput]
    """Adapters, cables and switches, divided among the devices."""

    storage: NotRequired[MoneyInput]
    """Price of the storage of the cluster."""

    ownership: NotRequired[Ownership]
    """Terms of ownership, for the cost of a year and of the run. Without it the purchase is only a total."""


PurchaseOption: TypeAlias = "Literal['on_demand', 'spot', 'reserved', 'committed', 'capacity_block']"


class PurchasedHosts(TypedDict):
    """Servers around the devices, priced without the devices."""

    price_per_host: MoneyInput
    """Price of one server."""

    devices_per_host: NotRequired[int]
    """Devices of one server. Defaults to the devices of a node of the cluster. Servers are bought whole."""


class QuantityEstimate(TypedDict):
    """A number with its 80% interval and the evidence behind it."""

    value: float
    """Estimate, in the unit that ends the name of the member."""

    low: float
    """Lower end of the interval."""

    high: float
    """Upper end of the interval."""

    basis: EvidenceBasis
    """Weakest evidence that the number rests on."""


class Quote(TypedDict):
    """A version of a quote with its requests, answers and prices."""

    id: str
    """Id of the quote, the same for all of its versions."""

    version: int
    """Number of the version, from 1. Each version is frozen."""

    state: QuoteState
    """State of the version's approval."""

    name: str
    """Name of the quote."""

    operation: QuotedOperation
    """Operation that was quoted."""

    headlines: QuoteHeadlines
    """Headline figures of the quote."""

    accelerator_id: NotRequired[str]
    """Id of the accelerator."""

    accelerator_count: NotRequired[int]
    """Number of devices."""

    providers: list[str]
    """Providers that rent the devices out, as far as they are known."""

    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""

    starts_at: NotRequired[str]
    """Start of the run, if it is given."""

    created_at: str
    """Time at which the version was frozen."""

    created_by: str
    """Kind and id of the subject that requested the version."""

    valid_until: str
    """Time after which the version can be neither submitted nor approved."""

    content_digest: str
    """SHA-256 of all frozen content, which approvers confirm to have seen."""

    tenant_id: str
    """Tenant of the quote."""

    note: NotRequired[str]
    """Note of the author."""

    plan: NotRequired[QuotedCandidate]
    """Plan and row that the quote was made from."""

    owns_devices: bool
    """True if the devices are neither rented nor offered. Electricity is then paid in addition."""

    requests: QuoteEstimateRequests
    """Bodies of `POST /v1/estimates/...` that were answered."""

    answers: QuoteEstimates
    """Answers to the requests."""

    alternatives: NotRequired[list[QuoteAlternative]]
    """Cheaper ways to the same work, the cheapest first, at most one of a kind. Absent from versions of
    earlier releases of the service, which did not look for any.
    """

    inputs: list[QuotedRow]
    """Rows of the catalog that the answers rest on, with their prices."""

    catalog_revision: int
    """Revision of the catalog that was read."""

    method_version: str
    """Version of the formulas."""

    focus_digest: NotRequired[str]
    """SHA-256 of the charges as FOCUS rows. Absent if there are none, and a gap says why."""

    warnings: list[AnswerWarning]
    """Remarks for the reader, each once. Pointers are into the quote."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why, each once. Pointers are into the quote."""


class QuoteAccuracyGroup(TypedDict):
    """Deviation of a group of quotes from their billed cost."""

    quote_count: int
    """Number of quotes whose cost can be compared."""

    median_absolute_error: NotRequired[float]
    """Median of the absolute deviation, as a share of the quoted cost."""

    bias: NotRequired[float]
    """Mean ratio of billed to expected cost, less 1. Above 0, runs cost more than quoted."""

    interval_coverage: NotRequired[float]
    """Share of the quotes whose cost lies within the 80% interval."""

    name: str
    """Name of the group."""


class QuoteActuals(TypedDict):
    """Billed cost of a quote, compared with the quoted cost."""

    quote_id: str
    """Id of the quote."""

    quote_version: int
    """Newest approved version of the quote, else its newest version."""

    state: QuoteState
    """Approval state of that version."""

    total: NotRequired[MoneyQuantity]
    """Quoted cost of the whole run."""

    starts_at: NotRequired[str]
    """Start of the run as quoted, else the day of the first charge."""

    ends_at: NotRequired[str]
    """End of the run as quoted."""

    covered_share: NotRequired[float]
    """Share of the run's time that is covered by bills which name the quote."""

    expected: NotRequired[ExpectedCost]
    """Quoted cost of that share."""

    billed: NotRequired[MoneyAmount]
    """Billed cost in the currency of the quote."""

    effective: NotRequired[MoneyAmount]
    """Effective cost: the billed cost with prepayments spread over their use."""

    compared: NotRequired[MoneyAmount]
    """Part of the effective cost that is compared: all of it once the whole run is billed, else the cost
    of the run's days.
    """

    left_out: list[ExcludedCharges]
    """Charges that are left out of the comparison, with the reason."""

    ratio: NotRequired[float]
    """Compared cost over expected cost."""

    is_within_interval: NotRequired[bool]
    """True if the compared cost lies within the 80% interval."""

    services: list[ServiceCategoryActuals]
    """Compared cost by service category, or all billed cost if nothing is compared."""

    import_ids: list[str]
    """Ids of the bills that the figures come from."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class QuoteAlternative(TypedDict):
    """A cheaper way to the same work, computed under the same catalog."""

    kind: QuoteAlternativeKind
    """Fewer devices of the same kind, another offer of the same devices, or tokens at a list price."""

    detail: str
    """Sentence for a reader."""

    total: MoneyQuantity
    """Amount to be paid for it, comparable with the total of the headlines."""

    accelerator_count: NotRequired[int]
    """Number of devices that serve the load, for `fewer_devices`."""

    offer_id: NotRequired[str]
    """Id of the offer, for `other_offer`."""

    token_price_id: NotRequired[str]
    """Id of the token price, for `token_price`."""

    provider: NotRequired[str]
    """Provider of the offer or of the tokens."""


QuoteAlternativeKind: TypeAlias = "Literal['fewer_devices', 'other_offer', 'token_price']"


class QuoteAmendmentRequest(TypedDict):
    """New version of a quote that replaces the submitted one."""

    content_digest: str
    """Digest of the newest version that the caller has seen. Another version is refused."""

    quote: QuoteRequest
    """Request of the next version."""


class QuoteChargeSum(TypedDict):
    """Sum of all charges of one purpose in one quote."""

    amount: MoneyAmount
    """Sum of the amounts."""

    quantity: NotRequired[float]
    """Sum of the quantities. Absent if the charges do not share a unit."""

    unit: NotRequired[str]
    """Unit of the quantity."""

    unit_price: NotRequired[MoneyAmount]
    """Price of a unit. Absent if the charges do not share one."""


class QuoteComparison(TypedDict):
    """Changes between two quotes."""

    before: QuoteSummary
    """First quote of the comparison."""

    after: QuoteSummary
    """Second quote of the comparison."""

    terms: list[QuoteValueChange]
    """Differences in their terms, and in what they were computed under."""

    requests: list[QuoteValueChange]
    """Members of their requests that differ."""

    inputs: list[QuotedRowChange]
    """Rows of the catalog that differ, rows with prices first."""

    headlines: list[QuoteHeadlineChange]
    """Headlines that differ."""

    total_change: NotRequired[QuoteTotalChange]
    """Causes of the change of the total. Absent if the two cannot be compared, and a gap says why."""

    lines: list[QuoteLineChange]
    """Charges that differ, by the size of their effect on the total."""

    warnings: list[AnswerWarning]
    """Remarks on the comparability of the amounts. Pointers are into the comparison."""

    gaps: list[EstimateGap]
    """Figures that are not compared, and why. Pointers are into the comparison."""


class QuoteEstimateRequests(TypedDict):
    """Bodies of `POST /v1/estimates/...` that a quote answers."""

    memory: NotRequired[MemoryEstimateRequest]
    """Body for `memory`."""

    throughput: NotRequired[ThroughputEstimateRequest]
    """Body for `throughput`."""

    cost: NotRequired[CostEstimateRequest]
    """Body for `cost`."""

    utility_bill: NotRequired[UtilityBillRequest]
    """Body for `utility-bill`."""


class QuoteEstimates(TypedDict):
    """Answers of the estimates that a quote rests on, frozen when it was made."""

    memory: NotRequired[MemoryEstimate]
    """Memory estimate."""

    throughput: NotRequired[ThroughputEstimate]
    """Throughput estimate."""

    cost: NotRequired[CostEstimate]
    """Cost estimate."""

    utility_bill: NotRequired[UtilityBill]
    """Utility bill."""


class QuoteEvent(TypedDict):
    """Quote that nobody has decided."""

    quote_id: str
    """Id of the quote."""

    quote_version: int
    """Version of the quote."""

    name: str
    """Name of the quote."""

    created_by: str
    """Subject that created the quote."""

    valid_until: str
    """Time until which its prices hold."""

    cost_center_id: NotRequired[str]
    """Id of the cost centre that would pay."""


class QuoteHeadlineChange(TypedDict):
    """A headline that differs."""

    name: str
    """Name of the headline."""

    before: NotRequired[JsonScalar]
    """Value in the first quote. Absent if it was unknown."""

    after: NotRequired[JsonScalar]
    """Value in the second quote. Absent if it is unknown."""

    difference: NotRequired[TextOrNumber]
    """Second value minus the first, a string for money. Absent unless both are numbers of one unit."""

    ratio: NotRequired[float]
    """Second value divided by the first."""

    currency_code: NotRequired[str]
    """Currency of both amounts."""

    is_beyond_intervals: NotRequired[bool]
    """True if the two 80% intervals do not overlap."""


class QuoteHeadlines(TypedDict):
    """Headline figures of a quote. A figure that is unknown is absent."""

    total: NotRequired[MoneyQuantity]
    """Amount to be paid: rent or share of owned devices, else the purchase; electricity of owned devices."""

    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the run."""

    device_hours: NotRequired[QuantityEstimate]
    """Devices times hours."""

    total_bytes: NotRequired[QuantityEstimate]
    """Memory of the fullest device."""

    fits: NotRequired[bool]
    """True if the workload fits the device."""

    facility_kwh: NotRequired[QuantityEstimate]
    """Energy at the meter of the building."""

    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter of the building."""

    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions of the electricity."""

    water_liters: NotRequired[QuantityEstimate]
    """Water that evaporates on the site and in the power plants of the grid."""


class QuoteLineChange(TypedDict):
    """Change of the charges of one purpose: of the same bill, name, resource, period and tier."""

    part: QuoteLineChangePart
    """Bill of the charges."""

    name: str
    """Name of the charge."""

    resource: NotRequired[str]
    """Accelerator of the devices, or tariff with the periods and tiers."""

    billing_period: NotRequired[BillingPeriod]
    """Billing period of the charges."""

    price_period: NotRequired[str]
    """Price period of the charges: hours that share a price."""

    tier: NotRequired[int]
    """Number of the tier in its ladder, from 1."""

    change: QuoteLineChangeChange
    """`changed` if both quotes have the charges, `new` or `removed` if only the second or the first has."""

    before: NotRequired[QuoteChargeSum]
    """Charges of the first quote. Absent if it has none."""

    after: NotRequired[QuoteChargeSum]
    """Charges of the second quote. Absent if it has none."""

    contribution: NotRequired[MoneyAmount]
    """Contribution to the change of the total. Absent if the totals are not comparable."""

    by_quantity: NotRequired[MoneyAmount]
    """Part of the contribution from the change of the quantity, at the mean of both prices."""

    by_price: NotRequired[MoneyAmount]
    """Part of the contribution from the change of the price, at the mean of both quantities, with
    rounding.
    """

    by_exchange_rate: NotRequired[MoneyAmount]
    """Part of the contribution from the change of the exchange rate."""

    not_split: NotRequired[QuoteLineChangeNotSplit]
    """Reason why the contribution of charges that both quotes have cannot be split."""


QuoteLineChangeChange: TypeAlias = "Literal['new', 'removed', 'changed']"

QuoteLineChangeNotSplit: TypeAlias = (
    "Literal['UNIT_DIFFERS', 'CURRENCY_DIFFERS', 'PRICE_UNKNOWN', 'NOT_A_PRODUCT', 'ROUNDING']"
)

QuoteLineChangePart: TypeAlias = "Literal['cost', 'electricity']"


class QuoteMessage(TypedDict):
    """Message about a quote."""

    type: Literal["quote.expires_soon"]
    """Type of the event."""

    timestamp: str
    """Time of the event."""

    data: QuoteEvent
    """Members of the event."""


class QuotePage(TypedDict):
    """A page of quotes, each in its newest version."""

    items: list[QuoteSummary]
    """Quotes, the newest first."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class QuoteRepriceRequest(TypedDict):
    """Terms of the next version of a quote, beside its prices."""

    version: NotRequired[int]
    """Newest version that the caller knows. If there is a newer one, the quote stays as it is."""

    valid_for_days: NotRequired[int]
    """Days in which the quote may be approved. A price that ends earlier shortens the validity."""


QuoteRequest: TypeAlias = "MemoryQuoteRequest | ThroughputQuoteRequest | CostQuoteRequest | UtilityBillQuoteRequest | CandidateQuoteRequest"

QuoteState: TypeAlias = (
    "Literal['draft', 'pending', 'approved', 'rejected', 'expired', 'cancelled', 'superseded']"
)


class QuoteSubmissionRequest(TypedDict):
    """Version of a quote to submit for approval."""

    content_digest: str
    """Digest of the newest version that the caller has seen. Another version is refused."""


class QuoteSummary(TypedDict):
    """A version of a quote in lists."""

    id: str
    """Id of the quote, the same for all of its versions."""

    version: int
    """Number of the version, from 1. Each version is frozen."""

    state: QuoteState
    """State of the version's approval."""

    name: str
    """Name of the quote."""

    operation: QuotedOperation
    """Operation that was quoted."""

    headlines: QuoteHeadlines
    """Headline figures of the quote."""

    accelerator_id: NotRequired[str]
    """Id of the accelerator."""

    accelerator_count: NotRequired[int]
    """Number of devices."""

    providers: list[str]
    """Providers that rent the devices out, as far as they are known."""

    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""

    starts_at: NotRequired[str]
    """Start of the run, if it is given."""

    created_at: str
    """Time at which the version was frozen."""

    created_by: str
    """Kind and id of the subject that requested the version."""

    valid_until: str
    """Time after which the version can be neither submitted nor approved."""

    content_digest: str
    """SHA-256 of all frozen content, which approvers confirm to have seen."""


class QuoteTotalChange(TypedDict):
    """Change of the total, as parts that add up exactly."""

    difference: MoneyAmount
    """Second total minus the first: the sum of the contributions of all lines."""

    by_quantity: MoneyAmount
    """Part from changes of quantities."""

    by_price: MoneyAmount
    """Part from changes of prices."""

    by_exchange_rate: MoneyAmount
    """Part from changes of exchange rates."""

    by_new: MoneyAmount
    """Part from lines that only the second quote has."""

    by_removed: MoneyAmount
    """Part from lines that only the first quote has."""

    not_split: MoneyAmount
    """Part from changed lines whose contribution cannot be split."""


class QuoteValueChange(TypedDict):
    """A value that differs."""

    pointer: str
    """JSON Pointer of the value."""

    before: NotRequired[JsonScalar]
    """Value in the first quote. Absent if it has none."""

    after: NotRequired[JsonScalar]
    """Value in the second quote. Absent if it has none."""


class QuotedCandidate(TypedDict):
    """The row of a plan that is quoted."""

    plan_id: str
    """Id of the plan."""

    candidate: int
    """Rank of the row."""


QuotedOperation: TypeAlias = "Literal['memory', 'throughput', 'cost', 'utility-bill', 'plan']"


class QuotedRow(TypedDict):
    """A catalog row that the answers rest on, frozen with its values."""

    pointer: str
    """JSON Pointer of the member of the request that it stands for."""

    kind: EstimateSourceKind
    """Kind of the row."""

    id: str
    """Id of the row or curve."""

    version: int
    """Version of the row or curve."""

    origin: RowOrigin
    """`shipped` for a row that ships with the service, `tenant` for a row of the tenant."""

    shadows_shipped_version: NotRequired[int]
    """Version of the shipped row of the same id that the tenant's row replaces."""

    citation: str
    """Citation of the source of its values."""

    row: dict[str, Any]
    """The row as the catalog showed it."""


class QuotedRowChange(TypedDict):
    """A row of the catalog that only one of two quotes uses, or both with different values."""

    kind: str
    """Kind of the row, such as `offer` or `tariff`."""

    id: str
    """Id of the row."""

    version_before: NotRequired[int]
    """Version of the row in the first quote. Absent if that does not use the row."""

    version_after: NotRequired[int]
    """Version of the row in the second quote. Absent if that does not use the row."""

    changes: list[QuoteValueChange]
    """Values that differ, prices first. Pointers are relative to the row."""


class RdmaLinkWork(TypedDict):
    """Messages from the adapter nearest to an accelerator to another one of the node, or to itself.

    The time of one is that which perftest reports: the payload over the average bandwidth, or the
    median latency, half of the way there and back of writes and sends.
    """

    kind: Literal["rdma_link"]

    operation: RdmaLinkWorkOperation
    """Operation of the messages."""

    path: RdmaLinkWorkPath
    """Path of the messages: through the network to another adapter, or within one."""

    memory: RdmaLinkWorkMemory
    """Memory at both ends, which adapters access directly."""

    message_bytes: int
    """Size of one message."""


RdmaLinkWorkMemory: TypeAlias = "Literal['device', 'host']"

RdmaLinkWorkOperation: TypeAlias = "Literal['write', 'read', 'send']"

RdmaLinkWorkPath: TypeAlias = "Literal['between_adapters', 'loopback']"


class ReactiveCharge(TypedDict):
    """A price for each kvar at the period's peak, or each kvarh, above a free share of the active part."""

    name: str
    """Name that no other charge of the revision has."""

    months: NotRequired[list[int]]
    """Calendar months in which it is charged: energy by its time, all else by the month in which most days
    of the billing period lie. Defaults to all months.
    """

    hours_of_use_from: NotRequired[float]
    """Annual kWh for each kW of the annual peak from which it is charged."""

    hours_of_use_below: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which it is charged; absent without a bound."""

    kind: Literal["reactive"]

    price: str
    """Decimal number as text; credits are below zero."""

    free_share_of_active: NotRequired[float]
    """Share of the active part up to which nothing is charged."""

    by_energy: NotRequired[bool]
    """True if it is charged per kvarh instead of kvar."""


class ReadingSpread(TypedDict):
    """Lowest, middle and highest reading over the timed window."""

    minimum: float
    """Lowest reading."""

    median: float
    """Middle reading."""

    maximum: float
    """Highest reading."""


class RealTimeCharge(TypedDict):
    """The price of the market in each interval times a factor, and an adder for each kWh."""

    name: str
    """Name that no other charge of the revision has."""

    months: NotRequired[list[int]]
    """Calendar months in which it is charged: energy by its time, all else by the month in which most days
    of the billing period lie. Defaults to all months.
    """

    hours_of_use_from: NotRequired[float]
    """Annual kWh for each kW of the annual peak from which it is charged."""

    hours_of_use_below: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which it is charged; absent without a bound."""

    kind: Literal["real_time"]

    prices: IntervalPrices
    """Prices of the market."""

    adder: NotRequired[str]
    """Decimal amount that is added for each kWh; credits are below zero."""

    factor: NotRequired[str]
    """Decimal factor of the price of the market."""


class RecipeHint(TypedDict):
    """A hint for the recipe. The estimate does not depend on it."""

    code: RecipeHintCode
    """Stable name of the hint."""

    detail: str
    """Description of the change."""

    factor: NotRequired[float]
    """Factor to multiply the learning rate by."""

    learning_rate: NotRequired[float]
    """Learning rate that results."""


RecipeHintCode: TypeAlias = "Literal['LINEAR_LEARNING_RATE', 'SQUARE_ROOT_LEARNING_RATE', 'WARM_UP', 'LAYERWISE_LEARNING_RATES', 'SMALL_MODEL', 'SMALL_DEVICE_BATCH']"

Recomputation: TypeAlias = "Literal['none', 'selective', 'full', 'every_k', 'sqrt']"
"""Activations that the backward pass recomputes.

``selective`` saves activations that are expensive to compute, ``full`` each block's input,
``every_k`` the input of every k-th block, ``sqrt`` of blocks whose distance is the square root of
the depth (Chen et al. 2016).
"""


class RecomputationInput(TypedDict):
    """Activations that the backward pass recomputes."""

    strategy: Recomputation
    """Strategy of recomputation."""

    k: NotRequired[int]
    """Blocks from one kept input to the next. Required for the strategy `every_k`, and allowed only there."""


class RecoveredWebhookDeliveries(TypedDict):
    """Number of deliveries that are sent again."""

    delivery_count: int
    """Number of `failed` or `cancelled` deliveries that wait again. None if a request is repeated."""


class ReferenceServer(TypedDict):
    """The vendor's server for this accelerator."""

    name: str

    accelerator_count: int
    """Number of accelerators in the server."""

    power_limit_watts: float
    """Highest power that the whole server draws."""


class ReferenceSystem(TypedDict):
    """A system that the accelerator comes in. Links and interfaces default to those of the row."""

    name: str
    """Name, such as DGX H100 or trn2.48xlarge."""

    accelerators_per_node: int
    """Accelerators of a node."""

    intra_node_link_id: NotRequired[str]
    """Link between the accelerators of a node, slice or rack."""

    inter_node_link_id: NotRequired[str]
    """Link between nodes, slices or racks."""

    network_interfaces_per_device: NotRequired[float]
    """Interfaces of the link between nodes for each accelerator."""


class RefusedRow(TypedDict):
    """A row of a price list that is not an offer."""

    pointer: str
    """Line of a table (the header is /1), with the column after it if its cell is the reason, or JSON
    Pointer into a document.
    """

    code: str
    """Stable name of the reason."""

    detail: str
    """Description of the reason."""


class RefusedRowCount(TypedDict):
    """Rows that were refused for one reason."""

    code: str
    """Stable name of the reason."""

    row_count: int
    """Number of rows."""


class RegionSite(TypedDict):
    """Building that houses rented devices of some regions, for their energy and carbon."""

    regions: list[str]
    """Names of the regions, as offers give them."""

    site: RunSiteInput
    """Building of the devices. Its electricity is paid by the provider and is not part of the cost of a
    plan.
    """


class ReliabilityEstimate(TypedDict):
    """Expected failures, and the time of the whole run by activity."""

    mean_time_between_failures_seconds: QuantityEstimate
    """Mean time between failures of the whole cluster."""

    restart_seconds: QuantityEstimate
    """Time from a failure until training resumes, loading the checkpoint included."""

    failure_probability: NotRequired[float]
    """Probability of at least one failure in the time that the run needs without any."""

    expected_failures: NotRequired[float]
    """Expected failures over the whole run."""

    expected_silent_corruptions: NotRequired[QuantityEstimate]
    """Expected results that a device computes wrongly without notice, at published rates. They add no time
    here.
    """

    productive_seconds: NotRequired[QuantityEstimate]
    """Time of progress: the duration without checkpoints and failures."""

    checkpoint_seconds: NotRequired[QuantityEstimate]
    """Time that training stops for checkpoints."""

    lost_work_seconds: NotRequired[QuantityEstimate]
    """Time of work that failures lose and that is repeated."""

    restarting_seconds: NotRequired[QuantityEstimate]
    """Time spent in restarts."""


class ReliabilityInput(TypedDict):
    """Failures of devices and the time to recover. An empty object takes published figures."""

    device_mtbf_hours: NotRequired[float]
    """Mean time between failures of one device with its share of node and network, in hours. n devices
    fail n times as often. Defaults to the value of published runs.
    """

    restart_seconds: NotRequired[float]
    """Time from a failure until training starts to load its checkpoint: detection, replacement and start.
    Defaults to the value of published runs.
    """


class RentCostBreakdown(TypedDict):
    """Cost of renting the devices."""

    lines: list[CostLine]
    """Charges."""

    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""

    purchase_option: NotRequired[str]
    """Purchase option of the rental: on_demand, spot, reserved or capacity_block."""

    instances: int
    """Number of whole instances."""

    devices_per_instance: int
    """Devices of one instance."""

    paid_device_hours: QuantityEstimate
    """Device-hours that are paid for, used or not."""

    due_at_start: NotRequired[MoneyAmount]
    """Part of the total that is paid before the devices start."""

    interruptions: NotRequired[SpotInterruptionEstimate]
    """Cost of interruptions. Present for spot devices."""


class Rental(TypedDict):
    """Price of a rented device, given directly or by an offer of the catalog.

    Terms of the offer apply where the request gives none. At most one of spot, commitment and capacity
    block applies.
    """

    price_per_device_hour: NotRequired[MoneyInput]
    """Price of one device for an hour."""

    offer_id: NotRequired[str]
    """Id of an offer of the catalog."""

    purchase_option: NotRequired[str]
    """Expected purchase option of the offer. An offer with another one is refused, such as spot for
    on_demand.
    """

    spot: NotRequired[SpotTerms]
    """Terms of spot devices, which the provider may reclaim."""

    price_range: NotRequired[PriceRange]
    """Range of the price. The interval of the total includes it."""

    devices_per_instance: NotRequired[int]
    """Devices of an instance. An instance is rented whole, and devices that the run does not use are
    charged too. Defaults to the value of the offer, and with a price to 1.
    """

    billing: NotRequired[RentalBillingTerms]
    """Billing of time. Defaults to the billing of the offer, else to exact time."""

    commitment: NotRequired[CommitmentTerms]
    """Terms of devices that are paid for a term."""

    capacity_block: NotRequired[CapacityBlockTerms]
    """Terms of devices that are paid in whole blocks."""

    price_factor: NotRequired[float]
    """Factor of all prices of the rental: a discount, or a price that moves."""


class RentalBillingTerms(TypedDict):
    """Billing of the time of an instance."""

    increment_seconds: NotRequired[float]
    """Increment to which time is rounded up, such as 60 or 3600. By default time is billed exactly."""

    minimum_seconds: NotRequired[float]
    """Shortest time that an instance is charged for."""


class RentedDevices(TypedDict):
    """Devices that can be rented on terms that are no offer of the catalog."""

    name: str
    """Name of the devices in the answer."""

    cluster: ClusterInput
    """Devices and their links. `accelerator_count` is the most that can be rented."""

    rental: Rental
    """Terms of the rental."""

    provider: NotRequired[str]
    """Provider that rents the devices out. It is compared with `providers` of the constraints."""

    region: NotRequired[str]
    """Region of the devices. It is compared with `regions` of the constraints and of the sites."""


class ReplayedWebhookDeliveries(TypedDict):
    """Deliveries that are sent again."""

    items: list[WebhookDelivery]
    """Deliveries in the order of the request."""


class ResamplingLayer(TypedDict):
    """Pooling or merging (factor above 1) or up-sampling (below 1) of the spatial axes; no parameters."""

    kind: Literal["resampling"]

    factor: float
    """Length of an axis before over its length after."""

    frame_factor: NotRequired[float]
    """Number of frames before over their number after."""

    drops_extra_tokens: NotRequired[bool]
    """True if class tokens are left behind."""

    channels: NotRequired[int]
    """Number of channels of a maximum pooling, which keeps its input and the places of the maxima; absent
    for other resamplings.
    """

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


class ResidualMix(TypedDict):
    """Electricity of a grid that is left when all contracts are taken out."""

    carbon_intensity_kg_co2e_per_kwh: float
    """Emissions of each kWh."""

    accounting: NotRequired[EmissionAccounting]
    """Emissions that are counted."""

    source: str
    """Document that states the figure."""


ResultLeaseStanding: TypeAlias = "Literal['current', 'late', 'unknown']"

ResultVerdict: TypeAlias = "Literal['accepted', 'suspect', 'rejected', 'evidence_only']"
"""Permitted use of a result. Only accepted results enter a calibration."""


class RolloutEstimate(TypedDict):
    """Generation of the sequences that a policy is trained on."""

    seconds: QuantityEstimate
    """Time of one rollout."""

    sequences: int
    """Sequences of a rollout."""

    generated_tokens_per_second: QuantityEstimate
    """Tokens of responses that all replicas generate during a rollout."""

    replicas: int
    """Engines that generate in parallel."""

    devices_per_replica: int
    """Devices of each engine."""

    sequences_per_replica: int
    """Sequences that each engine holds at a time. 0 if not even one fits."""


class RolloutInput(TypedDict):
    """Generation of the sequences of ppo and grpo. Prompt and response together are `sequence_length`."""

    prompt_tokens: NotRequired[int]
    """Tokens of the prompt in a sequence. Defaults to the rest beside `response_tokens`, else to half the
    sequence.
    """

    response_tokens: NotRequired[int]
    """Mean tokens of a sequence that are generated. Defaults to the rest beside `prompt_tokens`."""

    samples_per_prompt: NotRequired[int]
    """Sequences that begin with the same prompt (the group of grpo). Defaults to 8 for grpo, else to 1."""

    placement: NotRequired[RolloutInputPlacement]
    """`colocated` if the devices that train also generate, in turn; `separate` if other devices of the
    cluster do.
    """

    longest_response_tokens: NotRequired[int]
    """Tokens of the longest response of a rollout; engines work until it ends. Defaults to
    `response_tokens`.
    """

    steps_per_rollout: NotRequired[int]
    """Optimizer steps of one rollout: its sequences over the global batch."""

    epochs: NotRequired[int]
    """Number of times that each sequence of a rollout is trained on."""

    accelerator_count: NotRequired[int]
    """Devices of the cluster that generate and do not train. Required for the placement `separate`, and
    allowed only there.
    """

    asynchronous: NotRequired[bool]
    """Set to true to generate a rollout while the one before is trained on. Allowed only for the placement
    `separate`.
    """

    tensor: NotRequired[int]
    """Devices of one replica of the engine. Defaults to the fewest that hold the model and some sequences."""

    memory_fraction: NotRequired[float]
    """Share of a device that the engine takes. Defaults to 0.5 beside training (verl), else to 0.9 (vLLM)."""


RolloutInputPlacement: TypeAlias = "Literal['colocated', 'separate']"

RowOrigin: TypeAlias = "Literal['shipped', 'tenant']"


class RuledOutCandidates(TypedDict):
    """Candidates that one constraint rules out."""

    constraint: PlanConstraint
    """Constraint that rules the candidates out."""

    candidates: int
    """Number of candidates."""


class RuledOutConfigurations(TypedDict):
    """Configurations that one constraint rules out. Each counts for the first constraint that does."""

    constraint: FrontierConstraint
    """Constraint: no rate of the accelerator for the precision of the weights; heads, blocks or experts of
    the model that do not divide among the devices; tensor parallelism beyond the fast link; device
    memory; the most requests that the engine takes at a time; a service level.
    """

    configurations: int
    """Number of configurations."""


class RunLoadInput(TypedDict):
    """Power of a run over time."""

    interval_minutes: NotRequired[Literal[5, 15, 30, 60]]
    """Interval over which the meter takes the mean, in minutes."""

    ramp_seconds: NotRequired[float]
    """Time from switching on to steady work, at half the power above idle on average. It is added to the
    run.
    """

    idle_seconds: NotRequired[float]
    """Time after the run until the machines are switched off. It is added to the run."""

    maintenance: NotRequired[MaintenanceSchedule]
    """Windows in which the run is paused. They delay its end."""

    daily_shape: NotRequired[list[float]]
    """Load of a service in each hour of the day, from midnight, over the mean of all hours."""

    include_intervals: NotRequired[bool]
    """Set to true to list the power of every interval in the answer. Needs `starts_at`."""


RunScale: TypeAlias = "Literal['single_device', 'single_node', 'cluster']"
"""Scale on which a run is spread."""


class RunSiteInput(TypedDict):
    """The building that houses the run. Figures given here replace those of `site_id`."""

    site_id: NotRequired[str]
    """Id of a site of the catalog."""

    pue: NotRequired[float]
    """Power usage effectiveness: energy of the facility over energy of the IT equipment."""

    electricity: NotRequired[ElectricityPriceInput]
    """Price of electricity."""

    carbon_intensity_kg_co2e_per_kwh: NotRequired[float]
    """Emissions of each kWh at the meter."""

    grid_id: NotRequired[str]
    """Id of a grid of the catalog."""

    time_zone: NotRequired[str]
    """Time zone of the site, by which a tariff is applied. Defaults to that of the tariff."""

    carbon_intensity_series: NotRequired[CarbonIntensitySeriesInput]
    """Average intensity over time, in place of the intensity of the grid. Needs `starts_at`."""

    carbon_intensity_factor: NotRequired[float]
    """Factor of the average intensity, given or of the grid, to model a grid that changes."""

    marginal_grid_id: NotRequired[str]
    """Grid of the catalog with marginal intensities. Adds the emissions that the run changes to those it
    is charged with.
    """

    contracts: NotRequired[list[ElectricityContract]]
    """Electricity that is bought at intensities of its own. The shares sum to at most 1."""

    residual_mix: NotRequired[ResidualMix]
    """Intensity of the electricity that the contracts leave."""

    pue_by_month: NotRequired[list[float]]
    """Power usage effectiveness from January to December, in place of `pue`; needs `starts_at`."""

    cooling: NotRequired[RunSiteInputCooling]
    """Cooling of a node: its fans, cold plates, or an immersion bath."""

    fabric_power_watts_per_device: NotRequired[float]
    """Power of switches and optics between nodes, for each device. Defaults to an estimate from its
    bandwidth to other nodes.
    """

    baseline_load: NotRequired[ConstantBaselineLoad | BaselineLoadSeries]
    """Load of the site's meter without the run."""

    water_usage_effectiveness_liters_per_kwh: NotRequired[float]
    """Water that evaporates on the site per kWh of IT energy."""


RunSiteInputCooling: TypeAlias = "Literal['air', 'liquid', 'immersion']"


class RunningLease(TypedDict):
    """Benchmark run that a node is running."""

    benchmark_run_id: str
    """Id of the benchmark run that the lease is for."""

    attempt: int
    """Number of times that the run was granted so far."""

    begun_at: str
    """Start of this attempt."""


class SampleInput(TypedDict):
    """Content of one sample beside its tokens. Members default to the values that the model was built for."""

    height: NotRequired[int]
    """Height in pixels. For latents, the height of the picture that they encode."""

    width: NotRequired[int]
    """Width in pixels. Defaults to the height."""

    channels: NotRequired[int]
    """Numbers of one input cell. The model sets it, and another number is refused."""

    frames: NotRequired[int]
    """Frames of a video."""

    images: NotRequired[int]
    """Pictures or videos of a sample, each encoded on its own."""

    source_tokens: NotRequired[int]
    """Tokens that an encoder reads, or that condition a diffusion model. A training sequence of an
    encoder-decoder defaults to as many as the decoder has.
    """

    audio_frames: NotRequired[int]
    """Frames of a spectrogram."""


class SampleSummary(TypedDict):
    """Statistics of samples: of seconds of one execution, or of readings in the unit of the metric."""

    size: int
    """Number of samples."""

    minimum: float
    """Lowest sample."""

    q1: float
    """Lower quartile."""

    median: float
    """Middle sample."""

    q3: float
    """Upper quartile."""

    maximum: float
    """Highest sample."""

    mean: float
    """Arithmetic mean."""

    standard_deviation: float
    """Standard deviation of all samples."""

    median_absolute_deviation: float
    """Median of the distances from the median."""

    p95: float
    """95th percentile."""

    p99: float
    """99th percentile."""

    median_low: float
    """Lower end of the 95% confidence interval of the median."""

    median_high: float
    """Upper end of the 95% confidence interval of the median."""

    drift: float
    """Change over the whole window by least squares, as a share of the median."""

    autocorrelation: float
    """Correlation of each sample with the next."""


class ScaleOption(TypedDict):
    """The run on one device, one node, or the cluster."""

    scale: RunScale
    """Scale of the run."""

    accelerator_count: int
    """Number of accelerators."""

    fits: NotRequired[bool]
    """True if a device holds its share. Absent if the capacity is unknown."""

    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run."""

    in_time: NotRequired[bool]
    """True if the run ends within the time limit."""


class ScalingCurve(TypedDict):
    """Points of one kind of scaling."""

    points: list[ScalingPoint]
    """Points by number of accelerators."""

    serial_share: NotRequired[float]
    """Share of the work that is not divided, by the law that fits best."""

    crossover_accelerator_count: NotRequired[float]
    """Number of accelerators at which the divided compute of the smallest number takes as long as the
    communication of the largest, which does not shrink. Present for strong scaling.
    """

    empirical: NotRequired[EmpiricalScalingFit]
    """Empirical curve. Present if there are four points."""


class ScalingDecision(TypedDict):
    """The smallest scale that holds the step and ends within the time limit."""

    scale: NotRequired[RunScale]
    """Chosen scale. Absent if none qualifies."""

    options: list[ScaleOption]
    """Scales, the smallest first."""

    least_accelerator_count: NotRequired[int]
    """Accelerators that weights, gradients and optimizer states alone fill, if spread evenly."""

    time_limit_seconds: float
    """Longest acceptable run."""

    rule_of_thumb: NotRequired[RunScale]
    """Scale that sizes alone suggest, as a hint. Absent if the size of the dataset is unknown."""

    streaming: NotRequired[bool]
    """True if the dataset is too large to stage."""


class ScalingEstimate(TypedDict):
    """The run on other numbers of accelerators."""

    strong: ScalingCurve
    """The same step divided among more accelerators."""

    weak: ScalingCurve
    """A step that grows with the number of accelerators."""


class ScalingInput(TypedDict):
    """Requests the same run on other numbers of accelerators. An empty object lets the service choose."""

    accelerator_counts: NotRequired[list[int]]
    """Numbers of accelerators. Defaults to doublings of the smallest number that the layout allows and
    that holds the step, up to eight of them and to four times the cluster.
    """

    time_limit_seconds: NotRequired[float]
    """Longest acceptable run before it is spread over more accelerators, in seconds. Defaults to two
    weeks.
    """


class ScalingPoint(TypedDict):
    """The run on another number of accelerators. Speed-ups are relative to the curve's smallest number."""

    accelerator_count: int
    """Number of accelerators."""

    global_batch_size: int
    """Sequences of a step over all replicas."""

    step_seconds: QuantityEstimate
    """Time of a step."""

    tokens_per_second: QuantityEstimate
    """Tokens that the whole cluster trains on."""

    speedup: float
    """Speed-up over the smallest number of accelerators: of the same step, or of tokens per second if the
    step grows.
    """

    efficiency: float
    """Speed-up over the ratio of the numbers of accelerators."""

    work_cost_factor: float
    """Device-hours of the same work over those on the smallest number of accelerators: 1 / efficiency."""

    communication_share: float
    """Share of the step in which the devices wait for communication."""

    fits: NotRequired[bool]
    """True if a device holds its share. Absent if the capacity is unknown."""

    law_speedup: NotRequired[float]
    """Speed-up by the law of the curve with its serial share: Amdahl for strong scaling, Gustafson for
    weak scaling.
    """

    empirical_speedup: NotRequired[float]
    """Speed-up by the empirical curve that is fitted to the points."""


class SensitivityAssumption(TypedDict):
    """A change of an assumption, to see its effect on the choice."""

    kind: SensitivityAssumptionKind
    """Assumption: rent or price of the devices of a supply; time of the work on an accelerator; price or
    emissions of a kWh, if a figure is given or known; interruptions of spot devices.
    """

    of: NotRequired[str]
    """Supply, accelerator or site that the assumption is about. Defaults to all of them."""

    factor: float
    """Factor that the assumption is multiplied by."""


SensitivityAssumptionKind: TypeAlias = (
    "Literal['price', 'time', 'electricity_price', 'carbon_intensity', 'interruption_rate']"
)


class ServiceCategoryActuals(TypedDict):
    """Costs of one service category."""

    service_category: NotRequired[str]
    """Category as FOCUS names it. Absent if bill and quote name none."""

    expected: NotRequired[MoneyAmount]
    """Quoted cost of the time that is billed."""

    billed: NotRequired[MoneyAmount]
    """Billed cost."""

    effective: NotRequired[MoneyAmount]
    """Effective cost: the billed cost with prepayments spread over their use."""


class ServiceLevelAttainment(TypedDict):
    """Requests that meet all service levels."""

    share: QuantityEstimate
    """Share of the requests that meet them."""

    requests_per_second: QuantityEstimate
    """Rate of the requests that meet them, of the whole cluster."""

    attained: bool
    """True if at least the requested percentile of the requests meets them."""


class ServiceLevelsInput(TypedDict):
    """Limits of a request, at least one of them. Goodput counts the requests that meet all limits."""

    time_to_first_token_seconds: NotRequired[float]
    """Longest time from a request to its first token."""

    time_per_output_token_seconds: NotRequired[float]
    """Longest mean time from one token of a request to the next."""

    request_seconds: NotRequired[float]
    """Longest time from a request to its last token."""

    percentile: NotRequired[float]
    """Percentage of the requests that must meet the limits."""


class ServingEngineInput(TypedDict):
    """The serving engine and its settings.

    Memory follows the rules of vllm, tensorrt-llm, sglang, llama.cpp and transformers. For another
    engine, or none, weights, cache and the largest intermediates are summed.
    """

    name: str
    """Name of the engine, in any case."""

    version: NotRequired[str]
    """Version, as the engine names it. \"V0\" or \"V1\" in it names the engine core of vLLM. Defaults to
    the newest.
    """

    max_num_seqs: NotRequired[int]
    """Most requests of one replica in one iteration. Defaults to the value of the engine by version and
    device.
    """

    max_batched_tokens: NotRequired[int]
    """Most tokens of one iteration. Defaults to the value of the engine by version and device, else 8192."""

    cuda_graphs: NotRequired[bool]
    """True if a decode step is launched as one graph, whose buffers take memory."""

    warmed_up: NotRequired[bool]
    """True if kernels were compiled and selected before the first request of a run that begins cold."""

    block_tokens: NotRequired[int]
    """Tokens of one block of the KV cache. Defaults to the value of the engine, else 16."""

    max_model_len: NotRequired[int]
    """Longest sequence that the engine is started for. If the cache is not paged (llama.cpp,
    transformers), each request takes all of it. Defaults to the length of the model, or without a paged
    cache to the length of the request.
    """

    chunked_prefill: NotRequired[bool]
    """True if a long prompt is computed in several iterations beside decoding. Defaults to the way of the
    engine.
    """

    attention_release: NotRequired[FusedAttention]
    """Release of the fused attention of prompts: `first` (FlashAttention), `second` (FlashAttention-2), or
    `native` for kernels of the device's own instructions, such as FlashAttention-3 on Hopper. Defaults
    to native, and to second for llama.cpp, transformers, vllm before 0.7 and sglang before 0.4.6.
    """

    device_layers: NotRequired[int]
    """Blocks of the model on the device. The others are on the host with their cache (llama.cpp). Defaults
    to all.
    """


class ServingGoal(TypedDict):
    """Serving the model."""

    kind: Literal["serve"]

    context_tokens: NotRequired[int]
    """Longest request, its prompt and its answer together. Defaults to the context of the model."""

    input_tokens: NotRequired[int]
    """Tokens of a usual prompt. Defaults to 1024, or to what the context of the model has room for."""

    output_tokens: NotRequired[int]
    """Tokens that are generated for it."""

    concurrency: NotRequired[int]
    """Usual requests at a time."""

    weights: NotRequired[str]
    """Storage of the weights, in any case: a width such as `fp8` (`weight_precision`), or a format such as
    `q4_k_m` or `awq` (`weight_format`). Defaults to the published one.
    """


class ServingSearch(TypedDict):
    """Settings of a service to search. A setting that is left out takes the values usual in practice."""

    weight_formats: NotRequired[list[WeightFormatName]]
    """Formats that the weights may be stored in. Defaults to the format of the workload."""

    weight_precisions: NotRequired[list[WeightPrecision]]
    """Precisions that the weights may have, beside `weight_formats`. Defaults to the precision of the
    workload.
    """

    kv_cache_precisions: NotRequired[list[CachePrecision]]
    """Formats that the KV cache may be stored in. Defaults to the format of the workload."""

    tensor: NotRequired[list[int]]
    """Tensor-parallel degrees. Defaults to those that divide a node."""

    pipeline: NotRequired[list[int]]
    """Numbers of pipeline stages. Defaults to 1, or to whole nodes if no replica fits into one node."""

    expert: NotRequired[list[int]]
    """Numbers of replicas that the experts are spread over. Defaults to those that divide the experts."""

    expert_tensor: NotRequired[list[int]]
    """Devices that each expert is divided over. Defaults to 1 and the tensor-parallel degree."""


class SessionRevocation(TypedDict):
    """Result of ending every session, token and key of a person."""

    id: str
    """Id of the person's sessions in the audit, which does not name the person."""

    ended_at: str
    """Time up to which sessions that began and tokens that were issued have ended."""

    revoked_key_ids: NotRequired[list[str]]
    """Keys that the person made or was handed, and keys that were made with them."""


class SessionRevocationRequest(TypedDict):
    """Person whose sessions, tokens and keys to end."""

    subject_id: str
    """The `sub` of the person at the issuer, or the verified identity that the service knows them by."""

    disabled: NotRequired[bool]
    """Set to true to refuse the person until a request sends `false`. If left out, the present state
    stays.
    """


Sharding: TypeAlias = "Literal['none', 'zero_1', 'zero_2', 'zero_3', 'hybrid']"
"""Part of the training state that is sharded over the data-parallel devices."""

SimpleLayer: TypeAlias = "AttentionLayer | LatentAttentionLayer | CompressedAttentionLayer | LinearAttentionLayer | StateSpaceLayer | FeedForwardLayer | MixtureOfExpertsLayer | NormalizationLayer | ActivationLayer | LinearLayer | ConvolutionLayer | ResamplingLayer | LearnedVectorsLayer | EmbeddingTableLayer | InteractionLayer | ModulationLayer"


class SimulatedSolver(TypedDict):
    """A simulation, event by event. Give `duration_seconds` or `requests`."""

    kind: Literal["simulated"]

    seed: NotRequired[int]
    """Seed of the simulation. The same seed gives the same answer."""

    duration_seconds: NotRequired[float]
    """Time that is simulated, with at most 200,000 requests."""

    requests: NotRequired[int]
    """Requests of one replica that are simulated. Defaults to 2,000."""


class Site(TypedDict):
    """A site of the catalog."""

    id: str

    name: str

    pue: float
    """Power usage effectiveness: energy of the facility over energy of the IT equipment."""

    grid_id: NotRequired[str]
    """Grid that the site draws from."""

    tariff_id: NotRequired[str]
    """Tariff of the catalog that the site's electricity is billed by."""

    time_zone: NotRequired[str]
    """IANA name of the site's time zone."""

    sources: list[Citation]

    version: int
    """Number of this version of the row; the ETag of the resource."""

    revision: int
    """Catalog revision of this version."""

    origin: RowOrigin
    """`shipped` if the row ships with the service, `tenant` if it is a row of the tenant."""

    created_at: str

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    water_usage_effectiveness_liters_per_kwh: NotRequired[float]
    """Water that evaporates on the site for each kWh of IT energy."""


class SiteChoice(TypedDict):
    """A building that could house the run."""

    name: str
    """Name of the building in the answer."""

    site: RunSiteInput
    """The building."""


class SiteComparisonEstimate(TypedDict):
    """The cheapest, the cleanest and the least water-intensive site of a run."""

    sites: list[SiteComparisonFigures]
    """Figures by building, in the order of the request."""

    cheapest: NotRequired[str]
    """Name of the site with the least cost. Absent unless all costs are known in one currency."""

    cleanest: NotRequired[str]
    """Name of the site with the least emissions. Absent unless all are known."""

    least_water: NotRequired[str]
    """Name of the site with the least water. Absent unless all are known."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""

    gaps: list[EstimateGap]
    """Comparisons that are absent, and why."""


class SiteComparisonFigures(TypedDict):
    """The run in one building."""

    name: str
    """Name of the building in the request."""

    facility_kwh: NotRequired[QuantityEstimate]
    """Energy at the meter of the building."""

    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter of the building."""

    electricity: NotRequired[MoneyQuantity]
    """Cost of the electricity, in the currency of its price or tariff."""

    converted: NotRequired[MoneyQuantity]
    """Cost of the electricity in the currency of the request."""

    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Location-based emissions."""

    water_liters: NotRequired[QuantityEstimate]
    """Water that evaporates on the site and in the power plants of the grid."""

    warnings: list[AnswerWarning]
    """Remarks about the question for this building."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class SiteComparisonRequest(TypedDict):
    """Request for the cheapest, the cleanest and the least water-intensive site of a run."""

    model: ModelReference
    """Model that is trained or served."""

    workload: WorkloadInput
    """Work of the model."""

    cluster: ClusterInput
    """Cluster that the workload runs on."""

    sites: list[SiteChoice]
    """Buildings to compare. They replace `site`."""

    rental: NotRequired[Rental]
    """Terms and price of renting the devices."""

    purchase: NotRequired[Purchase]
    """Price of buying the devices."""

    starts_at: NotRequired[str]
    """Start of the run."""

    parallelism: NotRequired[ParallelismInput]
    """Layout of the workload over the devices. Defaults to a sensible layout, which the answer states."""

    efficiency: NotRequired[EfficiencyInput]
    """Source of the efficiency of the devices. Defaults to measured runs."""

    storage: NotRequired[StorageInput]
    """Price of storing data and checkpoints."""

    egress: NotRequired[EgressInput]
    """Price of data that leave the provider."""

    token_price_ids: NotRequired[list[str]]
    """Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
    model that are at most a year older than the newest of the catalog.
    """

    currency_code: NotRequired[str]
    """Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
    prices, which then must all have the same one.
    """

    site: NotRequired[RunSiteInput]
    """Building that houses the run. Without it electricity and carbon are gaps."""

    load_profile: NotRequired[RunLoadInput]
    """Power of the run over time."""

    measured: NotRequired[MeasuredEnergyInput]
    """Measured energy of the run, in place of the estimate."""

    embodied: NotRequired[EmbodiedEmissionsInput]
    """Emissions of making the machines."""


class SitePage(TypedDict):
    """A page of sites."""

    items: list[Site]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class SitePatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]

    pue: NotRequired[float]
    """Power usage effectiveness: energy of the facility over energy of the IT equipment."""

    grid_id: NotRequired[str | None]
    """Grid that the site draws from."""

    tariff_id: NotRequired[str | None]
    """Tariff of the catalog that the site's electricity is billed by."""

    time_zone: NotRequired[str | None]
    """IANA name of the site's time zone."""

    sources: NotRequired[list[Citation]]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str | None]

    water_usage_effectiveness_liters_per_kwh: NotRequired[float | None]
    """Water that evaporates on the site for each kWh of IT energy."""


class SiteRequest(TypedDict):
    """A building or a fleet of buildings."""

    id: str

    name: str

    pue: float
    """Power usage effectiveness: energy of the facility over energy of the IT equipment."""

    grid_id: NotRequired[str]
    """Grid that the site draws from."""

    tariff_id: NotRequired[str]
    """Tariff of the catalog that the site's electricity is billed by."""

    time_zone: NotRequired[str]
    """IANA name of the site's time zone."""

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    water_usage_effectiveness_liters_per_kwh: NotRequired[float]
    """Water that evaporates on the site for each kWh of IT energy."""


class SoftwareCarbonIntensity(TypedDict):
    """Location-based and embodied emissions over a functional unit (ISO/IEC 21031)."""

    per: SoftwareCarbonIntensityPer
    """Functional unit. Tokens are those trained on, or those generated."""

    kg_co2e: QuantityEstimate
    """Emissions of one unit."""


SoftwareCarbonIntensityPer: TypeAlias = "Literal['run', 'million_tokens', 'request']"


class SoftwareVersion(TypedDict):
    """A framework or an engine by name and version."""

    name: str

    version: NotRequired[str]
    """Version, as the software names it."""


SolverInput: TypeAlias = "AnalyticSolver | SimulatedSolver"


class SpecifiedAccelerator(TypedDict):
    """An accelerator given by its figures."""

    source: Literal["specification"]

    specification: AcceleratorSpecification
    """Figures of the accelerator."""


class SpecifiedLink(TypedDict):
    """A link given by its figures."""

    source: Literal["specification"]

    specification: LinkSpecification
    """Figures of the link."""


class SpecifiedTariff(TypedDict):
    """A tariff that is not in the catalog."""

    source: Literal["terms"]

    terms: TariffTerms
    """Terms of the tariff."""


class SpeculativeDecodingInput(TypedDict):
    """Speculative decoding: tokens are proposed, then checked in one pass. Give `model` or `method`."""

    model: NotRequired[ModelReference]
    """A smaller model on the same devices that proposes tokens."""

    method: NotRequired[SpeculativeDecodingInputMethod]
    """Method that proposes tokens: the model's own multi-token prediction, or n-grams of the text."""

    tokens: NotRequired[int]
    """Tokens that are proposed at a time. Defaults to 5, for mtp to 1."""

    acceptance_rate: NotRequired[float]
    """Probability that a proposed token is accepted if those before it are. Defaults to published rates."""


SpeculativeDecodingInputMethod: TypeAlias = "Literal['mtp', 'ngram']"


class SpotInterruptionEstimate(TypedDict):
    """Cost of interruptions of spot devices."""

    mean_time_between_interruptions_seconds: NotRequired[float]
    """Mean time between interruptions of all instances together. Absent if none is expected."""

    expected_interruptions: float
    """Number of them over the run."""

    extra_device_hours: QuantityEstimate
    """Device-hours of lost work and restarts, beyond those of the run."""

    duration_seconds: QuantityEstimate
    """Duration of the run with interruptions. A served model keeps its horizon, and interrupted instances
    are replaced.
    """


class SpotTerms(TypedDict):
    """Terms of devices that the provider may reclaim. Interrupting one instance stops a training run."""

    interruptions_per_hour: float
    """Mean number of interruptions of one instance in an hour."""

    restart_seconds: NotRequired[float]
    """Time from an interruption until training starts to load its checkpoint, or until another instance
    serves. Defaults to the workload's `reliability`, and without it to the value of published runs.
    """


class StartFigures(TypedDict):
    """The run with one start. Figures are those at the middle of the intervals of power and duration."""

    starts_at: str
    """Start of the run."""

    electricity: NotRequired[MoneyAmount]
    """Cost of the electricity. Absent without a tariff or price."""

    location_based_kg_co2e: NotRequired[float]
    """Emissions. Absent if the emissions of the grid over time are unknown."""


class StartShiftEstimate(TypedDict):
    """The cheapest and the cleanest start of a run."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""

    warnings: list[AnswerWarning]
    """Remarks about the question."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""

    starts_compared: int
    """Number of starts that were compared: all of the window."""

    duration_seconds: QuantityEstimate
    """Time of the run."""

    facility_kwh: QuantityEstimate
    """Energy at the meter of the building, the same for every start."""

    first: StartFigures
    """First start of the window."""

    cheapest: NotRequired[StartFigures]
    """Start with the least cost; among equals the cleanest, then the earliest."""

    cleanest: NotRequired[StartFigures]
    """Start with the least emissions; among equals the cheapest, then the earliest."""

    best: list[StartFigures]
    """Starts that no other improves in both cost and emissions, from the cheapest to the cleanest."""

    highest_electricity: NotRequired[MoneyAmount]
    """Cost of the most expensive start."""

    highest_location_based_kg_co2e: NotRequired[float]
    """Emissions of the start with the most emissions."""


class StartShiftEstimateRequest(TypedDict):
    """Request for the cheapest and the cleanest start of a run."""

    model: ModelReference
    """Model that is trained or served."""

    workload: WorkloadInput
    """Work of the model."""

    cluster: ClusterInput
    """Cluster that the workload runs on."""

    site: NotRequired[RunSiteInput]
    """Building that houses the run. Without it electricity and carbon are gaps."""

    window: StartWindow
    """Possible starts of the run."""

    rental: NotRequired[Rental]
    """Terms and price of renting the devices."""

    parallelism: NotRequired[ParallelismInput]
    """Layout of the workload over the devices. Defaults to a sensible layout, which the answer states."""

    efficiency: NotRequired[EfficiencyInput]
    """Source of the efficiency of the devices. Defaults to measured runs."""

    purchase: NotRequired[Purchase]
    """Price of buying the devices."""

    storage: NotRequired[StorageInput]
    """Price of storing data and checkpoints."""

    egress: NotRequired[EgressInput]
    """Price of data that leave the provider."""

    token_price_ids: NotRequired[list[str]]
    """Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
    model that are at most a year older than the newest of the catalog.
    """

    starts_at: NotRequired[str]
    """Start of the run."""

    currency_code: NotRequired[str]
    """Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
    prices, which then must all have the same one.
    """

    load_profile: NotRequired[RunLoadInput]
    """Power of the run over time."""

    measured: NotRequired[MeasuredEnergyInput]
    """Measured energy of the run, in place of the estimate."""

    embodied: NotRequired[EmbodiedEmissionsInput]
    """Emissions of making the machines."""


class StartWindow(TypedDict):
    """Possible starts of the run."""

    earliest_start_at: str
    """First possible start."""

    latest_start_at: str
    """Last possible start."""

    step_minutes: NotRequired[int]
    """Minutes from one start to the next: a multiple of the interval of the load profile."""


class StateSpaceLayer(TypedDict):
    """Selective state space: Mamba 1 (`time_step_rank`), Mamba 2 (`heads`), RG-LRU (`gate_blocks`)."""

    kind: Literal["state_space"]

    hidden_size: int
    """Width of the residual stream."""

    inner_size: int
    """Width inside the layer."""

    state_size: int
    """Width of the state of each channel; 1 in RG-LRU."""

    convolution_width: int
    """Number of tokens that the short convolution sees."""

    time_step_rank: NotRequired[int]
    """Width of the compressed time step; only Mamba 1 has it."""

    heads: NotRequired[int]
    """Number of heads; only Mamba 2 has them."""

    gate_blocks: NotRequired[int]
    """Number of diagonal blocks in each of the two gates; only RG-LRU has them (De et al. 2024)."""

    groups: NotRequired[int]
    """Number of groups of heads that share the input and output of their state."""

    state_norms: NotRequired[bool]
    """True if Mamba 1 normalizes step, input and output of its state."""

    gated_norm: NotRequired[bool]
    """True if Mamba 2 normalizes the output of its gate."""

    convolution_bias: NotRequired[bool]
    """True if a learned vector is added to the convolution."""

    projection_bias: NotRequired[bool]
    """True if a learned vector is added to the projections."""

    count: NotRequired[int]
    """Number of times that the layer stands in a row."""


class StorageInput(TypedDict):
    """Stored data and checkpoints, charged by gigabyte (1e9 bytes) and month (730.5 hours)."""

    price_per_gigabyte_month: MoneyInput
    """Price of storing a gigabyte for a month."""

    dataset_bytes: NotRequired[float]
    """Size of the stored data. Defaults to the dataset of the workload's data pipeline."""

    checkpoints_kept: NotRequired[float]
    """Checkpoints that are stored at a time. Each has the size that the workload implies."""

    checkpoint_bytes: NotRequired[float]
    """Size of a checkpoint, if it is known."""

    kept_seconds: NotRequired[float]
    """Time for which they are stored. Defaults to the duration of the run."""


class StorageToDeviceWork(TypedDict):
    """A file read into device memory past the page cache, block after block."""

    kind: Literal["storage_to_device"]

    method: StorageToDeviceWorkMethod
    """Means of the reads: cuFile, which the record says the mode of, or pinned host memory and copies."""

    file_bytes: int
    """Size of the file."""

    block_bytes: int
    """Size of one read."""


StorageToDeviceWorkMethod: TypeAlias = "Literal['cufile', 'host_memory']"


class StorageWork(TypedDict):
    """A file written and flushed to the device, or read back past the page cache where that is possible."""

    kind: Literal["storage"]

    direction: StorageWorkDirection
    """Direction: the file is read or written."""

    file_bytes: int
    """Size of the file."""

    block_bytes: int
    """Size of one call."""


StorageWorkDirection: TypeAlias = "Literal['read', 'write']"


class StoredBenchmarkResult(TypedDict):
    """One repeat of one benchmark, with the record as the node sent it."""

    id: str

    content_sha256: str
    """Digest of the bytes that the node sent."""

    run_id: str
    """Benchmark run that the result names."""

    attempt: int
    """Attempt of the run."""

    fencing_token: int
    """Fencing token of the lease that the result names."""

    benchmark: str
    """Name in the suite."""

    repeat: int
    """Number of the repeat, counted from 1."""

    lease: ResultLeaseStanding
    """Standing of the attempt: `current` if it counts for its run, `late` if its lease had ended when the
    result came or another attempt counts, `unknown` if it was not granted.
    """

    conflicts_with: NotRequired[str]
    """Result that came first for the same repeat of the same attempt; this one does not count."""

    is_counted: bool
    """True if figures are computed from the result."""

    node_id: str
    """Node that measured it."""

    suite_id: str
    """Suite of the benchmark."""

    suite_version: int
    """Version of the suite."""

    device: DeviceKind
    """Kind of device that was measured."""

    hardware: NotRequired[str]
    """Name of the hardware by its driver."""

    hardware_sha256: NotRequired[str]
    """Digest of the numbers that identify the hardware: results with equal digests can be compared."""

    work_sha256: str
    """Digest of the work: results of equal work can be compared."""

    metric: BenchmarkMetric
    """Quantity and unit of the figure."""

    direction: BetterDirection
    """Direction in which a figure is better."""

    status: BenchmarkResultStatus
    """Status of the measurement."""

    reason: NotRequired[str]
    """Reason that there is no measurement."""

    figure: NotRequired[float]
    """Figure that the service computes from the raw samples."""

    summary: NotRequired[SampleSummary]
    """Statistics that the service computes from the raw samples."""

    conditions: MeasurementConditions
    """Conditions of the measurement."""

    started_at: str
    """Start by the clock of the node."""

    finished_at: str
    """End by the clock of the node."""

    received_at: str
    """Time of receipt by the clock of the service."""

    validation: NotRequired[BenchmarkResultValidation]
    """Validation of the result; absent until it is done, and where nothing was measured."""

    record: BenchmarkResultReport
    """Record with the raw samples."""


StoredPlanGoal: TypeAlias = (
    "Literal['cheapest', 'fastest', 'cleanest', 'fewest_devices', 'pareto', 'earliest']"
)


class StreamWork(TypedDict):
    """Memory bandwidth of one access pattern over arrays far larger than the cache."""

    kind: Literal["stream"]

    pattern: HostStreamWorkPattern
    """Access to the arrays."""

    array_bytes: int
    """Size of each array."""


class StridedReadWork(TypedDict):
    """Reads of 4 bytes that lie `stride_bytes` apart: the share of the bandwidth that a gather gets."""

    kind: Literal["strided_read"]

    stride_bytes: int
    """Distance between two reads."""

    array_bytes: int
    """Size of the array."""


class SummaryBill(TypedDict):
    """Energy and emissions of the same hours or run."""

    it_kwh: NotRequired[QuantityEstimate]
    """Energy of accelerators and hosts."""

    facility_kwh: NotRequired[QuantityEstimate]
    """Energy at the meter of the building."""

    electricity_total: NotRequired[MoneyQuantity]
    """Cost of the electricity."""

    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions of the grid."""


class SummaryEstimate(TypedDict):
    """Fit, users, speed, price and bill of a model on hardware."""

    model_id: str
    """Model of the catalog that the name stands for."""

    accelerator_id: str
    """Accelerator of the catalog that the name stands for."""

    accelerator_count: int
    """Accelerators of the hardware."""

    fit: SummaryFit
    """Memory of the usual request, or of a training step."""

    users: NotRequired[SummaryUsers]
    """Requests of the full context at a time. Present for a served model."""

    speed: SummarySpeed
    """Speed of the usual requests, or of training."""

    price: SummaryPrice
    """Price of the hours of a served model, or of a training run."""

    bill: SummaryBill
    """Energy and emissions of the same hours or run."""

    requests: SummaryEstimateRequests
    """Full requests that give the same figures."""

    defaults: list[EstimateDefault]
    """Members of the full requests that are left open, as they are filled. Pointers begin at `requests`."""

    warnings: list[AnswerWarning]
    """Remarks about the full requests. Pointers begin at `requests`."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""


class SummaryEstimateRequests(TypedDict):
    """Bodies of `POST /v1/estimates/...` that return the same figures."""

    memory: MemoryEstimateRequest
    """Body of `fit`, for `memory`."""

    full_context: NotRequired[MemoryEstimateRequest]
    """Body of `users`, for `memory`. Present for a served model that generates tokens."""

    throughput: ThroughputEstimateRequest
    """Body of `speed`, for `throughput`."""

    cost: CostEstimateRequest
    """Body of `price`, for `cost`."""

    utility_bill: UtilityBillRequest
    """Body of `bill`, for `utility-bill`."""


class SummaryFit(TypedDict):
    """Memory of the usual request, or of a training step, on the fullest device."""

    fits: NotRequired[bool]
    """True if the total is at most the usable bytes."""

    fit_probability: NotRequired[float]
    """Probability that it fits, from the intervals of total and capacity."""

    total_bytes: NotRequired[QuantityEstimate]
    """Memory of the fullest device."""

    usable_bytes: NotRequired[int]
    """Memory of the device that the workload may use."""

    advice: NotRequired[list[EstimateAdvice]]
    """Advice of the memory estimate, and the least doubling of the accelerators with which it fits.
    Present if it does not fit.
    """


SummaryGoal: TypeAlias = "ServingGoal | TrainingGoal"


class SummaryPrice(TypedDict):
    """Price of the hours of a served model, or of a training run."""

    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""

    cost_per_million_tokens: NotRequired[MoneyQuantity]
    """Total over the tokens that are trained on or generated."""


class SummaryRequest(TypedDict):
    """Request for fit, users, speed, price and bill of a model on hardware."""

    model: str
    """Model of the catalog, by any of its names."""

    hardware: str
    """Accelerators: `<count>x<name>` with any name of an accelerator, or of an instance of a cloud or a
    slice of TPUs, whose accelerators are counted. Without a count there is one.
    """

    goal: NotRequired[SummaryGoal]
    """Purpose of the hardware. Defaults to serving."""

    hours: NotRequired[float]
    """Hours that a served model runs for its price and its bill. Defaults to a month."""

    rental: NotRequired[Rental]
    """Terms and price of renting the devices. Defaults to the cheapest on-demand offer of the catalog, of
    those in instances that hold the accelerators that work together, unless all of these have more
    accelerators than the question.
    """

    purchase: NotRequired[Purchase]
    """Price of buying the devices."""

    site: NotRequired[RunSiteInput]
    """Building that houses the run. Without it the bill has no price of electricity and no emissions."""

    starts_at: NotRequired[str]
    """Start of the run, for a tariff whose prices depend on the time."""


class SummarySpeed(TypedDict):
    """Speed of the usual requests, or of training. Members of the other kind are absent."""

    time_to_first_token_seconds: NotRequired[QuantityEstimate]
    """Time from a request to its first token."""

    time_per_output_token_seconds: NotRequired[QuantityEstimate]
    """Time between tokens of an answer."""

    output_tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens that all devices generate."""

    requests_per_second: NotRequired[QuantityEstimate]
    """Requests that all devices answer."""

    step_seconds: NotRequired[QuantityEstimate]
    """Time of one optimizer step."""

    tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens that the whole cluster trains on."""

    model_flops_utilization: NotRequired[QuantityEstimate]
    """Share of the peak rate that the model's own operations reach."""

    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run."""


class SummaryUsers(TypedDict):
    """Requests of the full context that the hardware holds at a time."""

    context_tokens: int
    """Tokens of such a request."""

    max_concurrency: NotRequired[int]
    """Most of them at a time, over all devices."""

    max_sequence_length: NotRequired[int]
    """Tokens of the longest request that fits, where none of the full context does."""


class Tariff(TypedDict):
    """A tariff of the catalog."""

    id: str

    name: str

    utility: NotRequired[str]
    """Company that charges by the tariff."""

    currency_code: str
    """Currency of every price (ISO 4217)."""

    time_zone: str
    """IANA name of the local clock, such as America/Los_Angeles."""

    revisions: list[TariffRevision]
    """Charges by the day from which they are in force, ascending."""

    sources: list[Citation]

    version: int
    """Number of this version of the row; the ETag of the resource."""

    revision: int
    """Catalog revision of this version."""

    origin: RowOrigin
    """`shipped` if the row ships with the service, `tenant` if it is a row of the tenant."""

    created_at: str

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    holidays: NotRequired[list[str]]
    """Local days that windows treat as holidays."""

    secondary_loss_factor: NotRequired[float]
    """Share that raises kWh and kW of a load that is metered behind the customer's transformer."""

    hours_of_use_minimum: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which the tariff does not apply."""

    notes: NotRequired[list[str]]
    """Terms that no charge can express: shown as warnings."""


class TariffBill(TypedDict):
    """The bill of a load. Each line is rounded once, half to even, to the minor unit of the currency."""

    total: MoneyQuantity
    """Sum of the lines."""

    energy_kwh: QuantityEstimate
    """Energy of all billing periods at the meter."""

    peak_kw: QuantityEstimate
    """Highest demand of all billing periods."""

    lines: list[ElectricityBillLine]
    """Charges by billing period, in the order of the tariff."""

    periods: list[TariffBillPeriodTotal]
    """Totals by billing period."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""

    warnings: list[AnswerWarning]
    """Remarks about the question and the tariff."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class TariffBillPeriodTotal(TypedDict):
    """Totals of a billing period."""

    billing_period: BillingPeriod
    """Billing period of the totals."""

    energy_kwh: float
    """Energy that is billed."""

    peak_kw: float
    """Highest demand of the meter, including the baseline load if there is one."""

    total: MoneyAmount
    """Sum of the charges of the period."""

    after_run: NotRequired[bool]
    """True if the billing period lies after the run."""

    billing_demand: list[BilledDemand]
    """Billed demand by demand charge."""


class TariffBillRequest(TypedDict):
    """Request for the charges of a tariff for a load."""

    tariff: TariffReference
    """Tariff that the load is billed by."""

    load: TariffLoad
    """Load at the meter."""

    power_factor: NotRequired[float]
    """Ratio of active to apparent power at the meter."""

    metering_side: NotRequired[ElectricityPriceInputMeteringSide]
    """Side of the transformer that the meter is on. A tariff may add the loss of the transformer to the
    reading of a secondary meter.
    """

    billing_period_starts: NotRequired[list[str]]
    """First local days of consecutive billing periods, and of the period after the last. Defaults to the
    calendar months of the load.
    """

    monthly_peaks: NotRequired[list[MonthlyPeak]]
    """Demand of months before the load, for charges that look back."""

    wraps_year: NotRequired[bool]
    """Set to true to take the peaks of months before the load that are not given from the end of the same
    year.
    """


TariffCharge: TypeAlias = "FixedCharge | EnergyCharge | RealTimeCharge | DemandCharge | OverrunCharge | CoincidentPeakCharge | ReactiveCharge | MinimumCharge | PercentageCharge"

TariffImportRequest: TypeAlias = "UrdbTariffImportRequest | MarketTariffImportRequest"

TariffLoad: TypeAlias = "ConstantDemand | DemandSeries | DemandRule | AnnualDemand | DemandDeterminants"


class TariffPage(TypedDict):
    """A page of tariffs."""

    items: list[Tariff]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class TariffPatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]

    utility: NotRequired[str | None]
    """Company that charges by the tariff."""

    currency_code: NotRequired[str]
    """Currency of every price (ISO 4217)."""

    time_zone: NotRequired[str]
    """IANA name of the local clock, such as America/Los_Angeles."""

    revisions: NotRequired[list[TariffRevision]]
    """Charges by the day from which they are in force, ascending."""

    sources: NotRequired[list[Citation]]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str | None]

    holidays: NotRequired[list[str]]
    """Local days that windows treat as holidays."""

    secondary_loss_factor: NotRequired[float]
    """Share that raises kWh and kW of a load that is metered behind the customer's transformer."""

    hours_of_use_minimum: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which the tariff does not apply."""

    notes: NotRequired[list[str]]
    """Terms that no charge can express: shown as warnings."""


class TariffPricePeriod(TypedDict):
    """The hours of a charge that share a ladder of tiers. The periods of one charge do not overlap."""

    name: str
    """Name that no other period of the charge has."""

    tiers: list[TariffPriceTier]
    """Prices, with ascending limits."""

    windows: NotRequired[list[TariffWindow]]
    """Times at which it applies. Defaults to all times."""


class TariffPriceTier(TypedDict):
    """A price up to a limit; tiers are marginal unless a charge says otherwise."""

    price: str
    """Decimal number as text; credits are below zero."""

    limit: NotRequired[float]
    """Cumulative upper limit within the billing period; absent without end."""

    unit: NotRequired[TariffTierUnit]
    """Unit of the limit; hours of use are kWh for each kW of billing demand."""


TariffReference: TypeAlias = "CatalogTariff | SpecifiedTariff"


class TariffRequest(TypedDict):
    """The terms by which a utility charges electricity."""

    id: str

    name: str

    utility: NotRequired[str]
    """Company that charges by the tariff."""

    currency_code: str
    """Currency of every price (ISO 4217)."""

    time_zone: str
    """IANA name of the local clock, such as America/Los_Angeles."""

    revisions: list[TariffRevision]
    """Charges by the day from which they are in force, ascending."""

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    holidays: NotRequired[list[str]]
    """Local days that windows treat as holidays."""

    secondary_loss_factor: NotRequired[float]
    """Share that raises kWh and kW of a load that is metered behind the customer's transformer."""

    hours_of_use_minimum: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which the tariff does not apply."""

    notes: NotRequired[list[str]]
    """Terms that no charge can express: shown as warnings."""


class TariffRevision(TypedDict):
    """The charges in force from a local day on, until the next revision."""

    effective_from: str
    """First local day."""

    charges: list[TariffCharge]
    """Charges in the order of the bill."""


class TariffTerms(TypedDict):
    """The terms of a tariff: revisions in order of time, on one local clock."""

    currency_code: str
    """Currency of every price (ISO 4217)."""

    time_zone: str
    """IANA name of the local clock, such as America/Los_Angeles."""

    revisions: list[TariffRevision]
    """Charges by the day from which they are in force, ascending."""

    holidays: NotRequired[list[str]]
    """Local days that windows treat as holidays."""

    secondary_loss_factor: NotRequired[float]
    """Share that raises kWh and kW of a load that is metered behind the customer's transformer."""

    hours_of_use_minimum: NotRequired[float]
    """Annual kWh for each kW of the annual peak below which the tariff does not apply."""

    notes: NotRequired[list[str]]
    """Terms that no charge can express: shown as warnings."""


TariffTierUnit: TypeAlias = "Literal['kwh', 'kwh_per_kw', 'kwh_per_day', 'kwh_per_kw_per_day', 'kw']"


class TariffWindow(TypedDict):
    """Local times: an instant is inside when its month, its day and its time all match."""

    months: NotRequired[list[int]]
    """Calendar months; all if absent."""

    weekdays: NotRequired[list[int]]
    """1 for Monday to 7; all if absent."""

    from_time: NotRequired[str]
    """Local time at which it begins."""

    to_time: NotRequired[str]
    """Local time at which it ends. A time that is not above `from_time` passes midnight into the next day."""

    holidays: NotRequired[HolidayTreatment]
    """Treatment of a holiday: a day like any other, always inside, or never."""


class Tenant(TypedDict):
    """A tenant."""

    id: str

    name: str

    version: int
    """Number of changes, the creation included."""

    created_at: str

    disabled_at: NotRequired[str]
    """Time from which the credentials of the tenant are refused."""


class TenantPage(TypedDict):
    """A page of tenants."""

    items: list[Tenant]
    """Tenants in order of id."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class TenantRequest(TypedDict):
    """A tenant to create."""

    id: str

    name: str


class TextEncoderInput(TypedDict):
    """A model that encodes the prompt for the denoiser. It runs once a request."""

    model: ModelReference
    """The encoder, such as a CLIP text model or T5."""

    tokens: NotRequired[int]
    """Tokens that the encoder pads the prompt to. Defaults to 77, for T5 to 512."""


TextOrNumber: TypeAlias = "str | float"


class ThrottleSeconds(TypedDict):
    """Time in the window at a lowered clock, by the counters of the driver."""

    sw_power_cap: NotRequired[float]
    """Time at a lower clock for the power limit."""

    sw_thermal: NotRequired[float]
    """Time at a lower clock for the temperature."""

    hw_thermal: NotRequired[float]
    """Time at a lower clock for the temperature, by the hardware."""

    hw_power_brake: NotRequired[float]
    """Time at a lower clock for the power supply of the host."""

    sync_boost: NotRequired[float]
    """Time at a lower clock for other devices of a group."""


class ThroughputEstimate(TypedDict):
    """Speed of a training run or of a served model, and its limits."""

    parallelism: ParallelismDegrees
    """The layout that the figures hold for."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""

    defaults: list[EstimateDefault]
    """Members that the question leaves open and that shape the answer, as they are filled."""

    warnings: list[AnswerWarning]
    """Remarks about the question."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""

    total_flops: NotRequired[float]
    """Floating-point operations of the whole run."""

    peak_flops_per_second_per_device: float
    """Dense rate of the number format that the multiplications use."""

    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run."""

    step_seconds: NotRequired[QuantityEstimate]
    """Time of one optimizer step."""

    tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens that the whole cluster trains on."""

    tokens_per_second_per_device: NotRequired[QuantityEstimate]
    """Tokens that each device trains on."""

    samples_per_second: NotRequired[QuantityEstimate]
    """Sequences that the whole cluster trains on."""

    model_flops_utilization: NotRequired[QuantityEstimate]
    """Share of the peak rate that the model's own operations reach."""

    hardware_flops_utilization: NotRequired[QuantityEstimate]
    """Share of the peak rate that the model's own operations and those of recomputation reach."""

    hardware_flops_per_second_per_device: NotRequired[QuantityEstimate]
    """Operations that each device executes, recomputation included and attention counted in full."""

    model_flops_per_second_per_device: NotRequired[QuantityEstimate]
    """The model's own operations, attention counted in full whatever its mask hides."""

    unmasked_flops_per_second_per_device: NotRequired[QuantityEstimate]
    """The model's own operations without the scores that a causal mask hides."""

    data_pipeline: NotRequired[DataPipelineEstimate]
    """Data pipeline. Present if the request gives one."""

    gradient_compression: NotRequired[GradientCompressionEstimate]
    """Effect of gradient compression. Present if the request gives it and replicas exchange whole
    gradients.
    """

    checkpoint: NotRequired[CheckpointEstimate]
    """Checkpoints. Present if the request gives checkpointing."""

    reliability: NotRequired[ReliabilityEstimate]
    """Failures. Present if the request gives reliability."""

    goodput: NotRequired[QuantityEstimate]
    """Share of the duration that is progress. Present if the request gives checkpointing or reliability."""

    scaling: NotRequired[ScalingEstimate]
    """Scaling. Present if the request gives it."""

    scaling_decision: NotRequired[ScalingDecision]
    """Choice of one device, one node or the cluster. Present if the request gives scaling."""

    rollout: NotRequired[RolloutEstimate]
    """Generation of the sequences of ppo and grpo."""

    hints: NotRequired[list[RecipeHint]]
    """Hints for the recipe at this batch size."""

    time_to_first_token_seconds: NotRequired[QuantityEstimate]
    """Time from a request to its first token; the mean over requests."""

    time_to_first_token_seconds_percentiles: NotRequired[LatencyPercentiles]
    """Percentiles of the time to first token over requests."""

    time_per_output_token_seconds: NotRequired[QuantityEstimate]
    """Time from one token of a request to the next; the mean."""

    time_per_output_token_seconds_percentiles: NotRequired[LatencyPercentiles]
    """Percentiles over requests of the mean time per output token of each request."""

    request_seconds: NotRequired[QuantityEstimate]
    """Time from a request to its last token; the mean."""

    request_seconds_percentiles: NotRequired[LatencyPercentiles]
    """Percentiles of the time of a request."""

    requests_per_second: NotRequired[QuantityEstimate]
    """Requests that the whole cluster completes."""

    output_tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens that the whole cluster generates."""

    output_tokens_per_second_per_device: NotRequired[QuantityEstimate]
    """Tokens that each device generates."""

    total_tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens of prompts and answers together that the whole cluster processes."""

    utilization: NotRequired[QuantityEstimate]
    """Share of the time in which a replica computes."""

    mean_batch: NotRequired[QuantityEstimate]
    """Mean number of requests that decode at a time on one replica."""

    mean_queue: NotRequired[QuantityEstimate]
    """Mean number of requests that wait for a place on one replica."""

    preemptions_per_request: NotRequired[QuantityEstimate]
    """Number of times that a request loses its place in the cache and is recomputed."""

    service_level_goodput: NotRequired[ServiceLevelAttainment]
    """Requests that meet the service levels. Present if these are given."""

    saturation: NotRequired[LoadSaturation]
    """Load of the cluster relative to the load that it can serve."""

    power_per_device_watts: NotRequired[QuantityEstimate]
    """Mean power of one device."""

    energy_per_output_token_joules: NotRequired[QuantityEstimate]
    """Energy of all devices over the tokens that they generate."""

    breakdown: list[PhaseTime]
    """Time of a step or of a request by phase."""

    passes: NotRequired[ForwardPassEstimate]
    """Figures of forward passes. Present if each request is a forward pass."""

    disaggregation: NotRequired[DisaggregationEstimate]
    """Figures of disaggregated serving. Present if prefill and decode have replicas of their own."""

    naive_layout: NotRequired[NaiveLayout]
    """Layout that the chosen one is compared with. Present if the service chose the layout by time and a
    naive one fits.
    """

    bottleneck: NotRequired[Bottleneck]
    """Limit of the speed."""

    operators: NotRequired[list[OperatorEstimate]]
    """Operators of one block of a training run, on one device and one micro-batch."""


class ThroughputEstimateBatchRequest(TypedDict):
    """Several requests for throughput, answered in order."""

    requests: list[ThroughputEstimateRequest]
    """Requests. If one of them has no answer, the batch fails."""


class ThroughputEstimateList(TypedDict):
    """Answers in the order of the questions."""

    results: list[ThroughputEstimate]


class ThroughputEstimateRequest(TypedDict):
    """Request for the speed of a workload."""

    model: ModelReference
    """Model that is trained or served."""

    workload: WorkloadInput
    """Work of the model."""

    cluster: ClusterInput
    """Cluster that the workload runs on."""

    parallelism: NotRequired[ParallelismInput]
    """Layout of the workload over the devices. Defaults to a sensible layout, which the answer states."""

    efficiency: NotRequired[EfficiencyInput]
    """Source of the efficiency of the devices. Defaults to measured runs."""

    scaling: NotRequired[ScalingInput]
    """Other numbers of accelerators to answer. If left out, only the requested run is answered."""

    solver: NotRequired[SolverInput]
    """Solver of a served model. Defaults to formulas."""

    explain: NotRequired[bool]
    """Adds advice, and the operators under the roofline. Each advice is an estimate of its own and takes
    most of the time: set to false for many requests.
    """


class ThroughputFrontier(TypedDict):
    """Best configurations of a served model."""

    best: NotRequired[FrontierPoint]
    """Point with the most tokens per second and device within the service levels. Present if these are
    given and can be met.
    """

    points: list[FrontierPoint]
    """Pareto set, or an even selection of it, by descending tokens per second and device."""

    configurations: FrontierConfigurationCounts
    """Configurations of the search by outcome."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""

    warnings: list[AnswerWarning]
    """Remarks about the question."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class ThroughputFrontierRequest(TypedDict):
    """Request for the configurations of a served model that are best for its users and for the devices."""

    model: ModelReference
    """Model that is served."""

    workload: InferenceWorkloadInput
    """Load of the model. Concurrent requests are searched. With `service_levels`, only requests that meet
    them count.
    """

    cluster: ClusterInput
    """Cluster that the model runs on. Each configuration uses all of it."""

    search: NotRequired[FrontierSearchInput]
    """Settings to search. Defaults to layouts and concurrent requests."""


class ThroughputQuoteRequest(TypedDict):
    """Request for a quote on throughput, which includes memory."""

    name: str
    """Name of the quote."""

    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""

    note: NotRequired[str]
    """Note for the approvers."""

    valid_for_days: NotRequired[int]
    """Days in which the quote may be approved. A price that ends earlier shortens the validity."""

    operation: Literal["throughput"]

    request: ThroughputEstimateRequest
    """Body of `POST /v1/estimates/throughput`."""


class TokenListPrice(TypedDict):
    """A provider's list price of the same tokens."""

    id: str
    """Id of the price in the catalog."""

    provider: str
    """Provider that asks the price."""

    model: str
    """The provider's name of the model."""

    as_of: str
    """Date of the price."""

    price_per_million_input_tokens: MoneyAmount
    """Price of the tokens of prompts."""

    price_per_million_output_tokens: MoneyAmount
    """Price of the generated tokens."""

    price_per_million_cached_input_tokens: NotRequired[MoneyAmount]
    """Price of the tokens of prompts that are found in a cache."""

    total: NotRequired[MoneyQuantity]
    """Cost of the tokens of the run at these prices."""

    ratio: NotRequired[QuantityEstimate]
    """Total of the run over the total of the list prices."""


class TokenPrice(TypedDict):
    """A token price of the catalog."""

    id: str

    name: str

    provider: str
    """Provider that serves the model."""

    model_name: str
    """The provider's name of the model."""

    model_id: NotRequired[str]
    """Model of the catalog with the same architecture."""

    input_price_per_million_tokens: MoneyInput
    """Price of a million input tokens."""

    output_price_per_million_tokens: MoneyInput
    """Price of a million generated tokens."""

    as_of: str
    """Date of the price."""

    sources: list[Citation]

    version: int
    """Number of this version of the row; the ETag of the resource."""

    revision: int
    """Catalog revision of this version."""

    origin: RowOrigin
    """`shipped` if the row ships with the service, `tenant` if it is a row of the tenant."""

    created_at: str

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    cached_input_price_per_million_tokens: NotRequired[MoneyInput]
    """Price of a million input tokens that are found in a cache."""

    doubt: NotRequired[str]
    """Reason why the price may be wrong."""


TokenPriceFormat: TypeAlias = "Literal['litellm', 'dated_csv']"


class TokenPriceImportRequest(TypedDict):
    """A list of token prices in the format of its publisher."""

    format: TokenPriceFormat
    """Format of the content: model_prices_and_context_window.json of litellm, or a CSV of dated prices
    whose rows name their date and source.
    """

    content: str
    """The file as text."""

    provider: NotRequired[str]
    """Provider whose prices to import, as the list names it. Defaults to all providers."""

    as_of: str
    """Date of the prices. Rows of dated_csv state their own."""

    source: PriceListSource


class TokenPricePage(TypedDict):
    """A page of token prices."""

    items: list[TokenPrice]

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class TokenPricePatch(TypedDict):
    """Members to change, each as a whole; the others stay. Null removes a member that may be absent."""

    name: NotRequired[str]

    provider: NotRequired[str]
    """Provider that serves the model."""

    model_name: NotRequired[str]
    """The provider's name of the model."""

    model_id: NotRequired[str | None]
    """Model of the catalog with the same architecture."""

    input_price_per_million_tokens: NotRequired[MoneyInput]
    """Price of a million input tokens."""

    output_price_per_million_tokens: NotRequired[MoneyInput]
    """Price of a million generated tokens."""

    as_of: NotRequired[str]
    """Date of the price."""

    sources: NotRequired[list[Citation]]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str | None]

    cached_input_price_per_million_tokens: NotRequired[MoneyInput | None]
    """Price of a million input tokens that are found in a cache."""

    doubt: NotRequired[str | None]
    """Reason why the price may be wrong."""


class TokenPriceRequest(TypedDict):
    """A provider's list price for tokens of a model, for comparison."""

    id: str

    name: str

    provider: str
    """Provider that serves the model."""

    model_name: str
    """The provider's name of the model."""

    model_id: NotRequired[str]
    """Model of the catalog with the same architecture."""

    input_price_per_million_tokens: MoneyInput
    """Price of a million input tokens."""

    output_price_per_million_tokens: MoneyInput
    """Price of a million generated tokens."""

    as_of: str
    """Date of the price."""

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    cached_input_price_per_million_tokens: NotRequired[MoneyInput]
    """Price of a million input tokens that are found in a cache."""

    doubt: NotRequired[str]
    """Reason why the price may be wrong."""


class TraceArrivals(TypedDict):
    """Requests that arrive at given times, which set the rate."""

    process: Literal["trace"]

    at_seconds: list[float]
    """Arrival times, ascending, over all replicas."""


class TrainingGoal(TypedDict):
    """Training the model, or low-rank adapters of it."""

    kind: Literal["train"]

    adaptation: NotRequired[TrainingGoalAdaptation]
    """Parameters that are trained."""

    total_tokens: NotRequired[int]
    """Tokens of the whole run. Without them there are neither a price nor a bill."""

    sequence_length: NotRequired[int]
    """Tokens of a sequence. Defaults to 4096, or to the context of the model if that is shorter."""

    precision: NotRequired[TrainingPrecision]
    """Format of the arithmetic. Defaults to that of the accelerator."""


TrainingGoalAdaptation: TypeAlias = "Literal['full', 'lora', 'qlora']"

TrainingObjective: TypeAlias = (
    "Literal['pretraining', 'supervised', 'dpo', 'simpo', 'orpo', 'ppo', 'grpo', 'distillation']"
)
"""Objective of the loss, which decides how many copies of a model are held."""

TrainingPrecision: TypeAlias = (
    "Literal['fp32', 'tf32', 'fp16', 'bf16', 'pure_bf16', 'fp8_delayed', 'fp8_blockwise', 'mxfp8', 'nvfp4']"
)
"""Names of the recipes; all but ``fp32``, ``tf32`` and ``pure_bf16`` keep an FP32 master copy."""


class TrainingSearch(TypedDict):
    """Settings of a training run to search. A setting that is left out takes the values usual in practice."""

    tensor: NotRequired[list[int]]
    """Tensor-parallel degrees. Defaults to those that divide a node."""

    pipeline: NotRequired[list[int]]
    """Numbers of pipeline stages. Defaults to those that divide the cluster, up to the blocks of the
    model.
    """

    shardings: NotRequired[list[Sharding]]
    """Shardings of the training state. Defaults to none, zero_1 and zero_3."""

    micro_batch_sizes: NotRequired[list[int]]
    """Micro-batch sizes. Defaults to 1, 2, 4 and 8, and the size of the workload."""

    precisions: NotRequired[list[TrainingPrecision]]
    """Precisions that are allowed. Defaults to the precision of the workload."""

    context: NotRequired[list[int]]
    """Numbers of devices that share a sequence. Defaults to 1, and to powers of 2 for sequences of 32,768
    tokens and more.
    """

    expert: NotRequired[list[int]]
    """Numbers of replicas that the experts are spread over. Defaults to those that divide the experts."""

    sequence_parallel: NotRequired[list[bool]]
    """Settings of sequence parallelism. Defaults to true where `tensor` is above 1."""

    sharding_group_sizes: NotRequired[list[int]]
    """Sizes of a sharding group under hybrid sharding. Defaults to the devices of a node."""

    pipeline_schedules: NotRequired[list[PipelineSchedule]]
    """Pipeline schedules. Defaults to one_f_one_b and interleaved."""

    virtual_stages: NotRequired[list[int]]
    """Virtual stages under the interleaved schedule. Defaults to 2 and 4."""

    recomputations: NotRequired[list[RecomputationInput]]
    """Recomputation strategies. Defaults to none, selective and full."""


TrainingStateLocation: TypeAlias = "Literal['none', 'cpu', 'nvme']"
"""Location of a part of the training state."""


class TrainingStepWork(TypedDict):
    """A whole step of a small decoder: forward, backward, accumulation and the optimizer."""

    layers: int
    """Layers, all alike."""

    hidden: int
    """Elements of a token."""

    query_heads: int
    """Heads of a query."""

    kv_heads: int
    """Heads of keys and values."""

    head_size: DecodeLoopWorkHeadSize
    """Elements of a head."""

    feed_forward: int
    """Elements between the matrices of the feed-forward network."""

    vocabulary: int
    """Tokens of the vocabulary."""

    dtype: DecodeLoopWorkDtype
    """Type of weights and activations."""

    kind: Literal["training_step"]

    sequence_length: int
    """Tokens of a sequence."""

    micro_batch_size: int
    """Sequences of a micro-batch."""

    accumulation_steps: NotRequired[int]
    """Micro-batches of a step."""

    recomputation: NotRequired[TrainingStepWorkRecomputation]
    """Recomputation of the activations of a layer in the backward pass."""


TrainingStepWorkRecomputation: TypeAlias = "Literal['none', 'full']"


class TrainingWorkloadInput(TypedDict):
    """A training run. One of the three totals sets its length."""

    kind: Literal["training"]

    sequence_length: NotRequired[int]
    """Tokens per sequence, including those of its pictures. Models without tokens do not use it."""

    total_tokens: NotRequired[int]
    """Tokens of the whole run."""

    global_batch_size: NotRequired[int]
    """Sequences per optimizer step over all replicas. Defaults to the batch of published runs of this kind
    if there is a cluster and the question states neither micro-batch nor micro-batches.
    """

    micro_batch_size: NotRequired[int]
    """Sequences or other samples that a data-parallel replica processes at a time. For dpo, simpo and
    orpo: pairs of them. Defaults to the fastest that fits if the layout is open, else to 1.
    """

    precision: NotRequired[TrainingPrecision]
    """Number format of training. All but fp32, tf32 and pure_bf16 keep an FP32 master copy in the way of
    the framework. Defaults to bf16; on an accelerator without a bf16 rate to fp16, then to fp32.
    """

    optimizer: NotRequired[Optimizer]
    """Optimizer, which sets the state that is kept for each parameter."""

    recomputation: NotRequired[RecomputationInput]
    """Activations that the backward pass recomputes. Defaults to the way of the framework, else to the
    fastest strategy that fits.
    """

    adaptation: NotRequired[AdaptationInput]
    """Parameters that are trained. Defaults to all."""

    objective: NotRequired[TrainingObjective]
    """Objective that the loss is taken on. Pretraining and supervised cost the same; dpo and distillation
    also run a frozen model; ppo and grpo generate their sequences and score them; ppo also trains a
    critic.
    """

    sample: NotRequired[SampleInput]
    """Content of a sample beside its tokens: sizes of pictures and videos, and the input of an encoder."""

    gradient_accumulation_steps: NotRequired[int]
    """Micro-batches per optimizer step. Defaults to the number that follows from the global batch size.
    With a micro-batch alone it is 1, or four for each pipeline stage.
    """

    gradient_precision: NotRequired[FloatPrecision]
    """Format that gradients are kept in. Defaults to the format of the precision and the framework."""

    optimizer_state_precision: NotRequired[FloatPrecision]
    """Format of the optimizer's states. Defaults to the format of the precision."""

    optimizer_rank: NotRequired[int]
    """Rank of the projection of galore."""

    optimizer_in_backward: NotRequired[bool]
    """True if each block is updated as soon as its gradients are ready, which are then freed. Allowed for
    a step of one micro-batch.
    """

    attention: NotRequired[AttentionKernel]
    """Attention kernel: `standard` stores the score matrix, `flash` does not."""

    attention_release: NotRequired[FusedAttention]
    """Release of the fused attention: `first` (FlashAttention), `second` (FlashAttention-2), or `native`
    for kernels of the device's own instructions, such as FlashAttention-3 and cuDNN on Hopper. Defaults
    to that of the framework: native for megatron_core and where none is named, first for megatron_lm
    and megatron_deepspeed, else second.
    """

    fusion: NotRequired[OperatorFusion]
    """Grouping of operators without a multiplication into kernels: each in a kernel of its own (`eager`),
    in chains that are fused by hand (`fused`), or in chains from a compiler such as torch.compile
    (`compiled`), which keeps only what a backward pass reads. Defaults to the way of the framework.
    """

    expert_capacity_factor: NotRequired[float]
    """Tokens that each expert takes over the mean of all experts: those beyond it are dropped, missing
    ones padded (`--moe-expert-capacity-factor` with `--moe-pad-expert-input-to-capacity` of Megatron-
    LM, `capacity_factor` of MaxText). Without it no token is dropped.
    """

    expert_balance: NotRequired[ExpertBalance]
    """Load of the experts: as a trained router spreads tokens over them (`trained`), or the same for each
    (`forced`), as in benchmarks that override the router (`--moe-router-force-load-balancing`).
    """

    cuda_graphs: NotRequired[CudaGraphs]
    """CUDA graphs of a step: `none`, one for each layer but for its routed experts (`layer`; `--cuda-
    graph-impl transformer_engine` or `local` of Megatron-LM), or one for the whole iteration
    (`iteration`). The host launches the kernels of a graph at once.
    """

    loss: NotRequired[LossImplementation]
    """Computation of the loss from the logits: all in FP32 (`fp32`), all at the width of the activations
    (`narrow`), in eight parts (`chunked`), or without storing logits (`fused`).
    """

    teacher_parameter_count: NotRequired[int]
    """Parameters of the teacher of a distillation. Defaults to those of the model."""

    reward_parameter_count: NotRequired[int]
    """Parameters of the reward model. Defaults to those of the model for ppo; for grpo no model rewards by
    default.
    """

    critic_parameter_count: NotRequired[int]
    """Parameters of the critic of ppo. Defaults to those of the model."""

    rollout: NotRequired[RolloutInput]
    """Generation of the sequences that ppo and grpo train on. Defaults to the defaults of its members."""

    weight_average: NotRequired[bool]
    """Set to true to keep a moving average of the weights in FP32."""

    offload: NotRequired[OffloadInput]
    """State that is kept outside the device. Defaults to none."""

    data_pipeline: NotRequired[DataPipelineInput]
    """Path of samples to the devices. Without it the devices never wait for data."""

    gradient_compression: NotRequired[GradientCompressionInput]
    """Compression of the gradients. Without it gradients are sent in the format that they are kept in."""

    checkpointing: NotRequired[CheckpointingInput]
    """Saving of the training state. Without it no checkpoint is written, except on spot devices: there as
    often as loses the least time, to storage as fast as that of published runs.
    """

    reliability: NotRequired[ReliabilityInput]
    """Failures of devices. Without it nothing fails."""

    learning_rate: NotRequired[LearningRateInput]
    """Learning rate for hints. Without it hints scale the rate of one data-parallel replica."""

    total_steps: NotRequired[int]
    """Optimizer steps of the whole run."""

    total_samples: NotRequired[int]
    """Sequences of the whole run."""

    framework: NotRequired[SoftwareVersion]
    """Framework of the run: megatron_lm, megatron_core, megatron_deepspeed, deepspeed, ddp, fsdp,
    torchtitan, torchtune, litgpt, internevo, transformers, maxtext or neuronx_distributed. Another name
    gives a warning, and memory follows the precision alone.
    """


class UncheckedValidationRule(TypedDict):
    """A check that could not be made: it neither passed nor found anything."""

    rule: str
    """Name of the check."""

    detail: str
    """Fact that is unknown."""


class UncomparedQuotes(TypedDict):
    """Quotes that cannot be compared for one reason."""

    code: str
    """Code of the gap in their actuals."""

    quote_count: int
    """Number of quotes."""


class UniformArrivals(TypedDict):
    """Requests that arrive evenly."""

    process: Literal["uniform"]


class UnplacedFleetWorkload(TypedDict):
    """A workload that the schedule does not place."""

    workload: str
    """Name of the workload."""

    reason: FleetPoolReasonReason
    """Reason of the pool where the workload comes closest, in the order configuration, price, deadline,
    devices and budget.
    """

    pools: list[FleetPoolReason]
    """Reasons by pool."""

    remedies: list[FleetRemedy]
    """Changes that would place the workload. More devices are tried in the numbers that the workload
    names, else in doublings of a pool, up to 16 times its size.
    """


class UrdbTariffImportRequest(TypedDict):
    """A tariff by its rate in OpenEI's utility rate database (URDB)."""

    id: str

    name: str

    format: Literal["urdb_json"]

    urdb: dict[str, Any]
    """The parsed rate of version 8 or older, or the answer of the database with that rate in `items`."""

    time_zone: str
    """IANA name of the local clock; a rate does not state it."""

    sources: list[Citation]

    aliases: NotRequired[list[str]]
    """Other names by which a request may refer to the row."""

    note: NotRequired[str]

    holidays: NotRequired[list[str]]
    """Local days that windows treat as holidays; a rate has none."""

    effective_from: NotRequired[str]
    """First local day of the charges. Defaults to the day of the rate, or to the first day there is."""

    excluded_keys: NotRequired[list[str]]
    """Keys of the rate to leave out of the tariff, such as the refused ones."""


class UtilityBill(TypedDict):
    """Energy, emissions and cost of a run, rented or bought."""

    parallelism: ParallelismDegrees
    """The layout that the figures hold for."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""

    defaults: list[EstimateDefault]
    """Members that the question leaves open and that shape the answer, as they are filled."""

    warnings: list[AnswerWarning]
    """Remarks about the question."""

    gaps: list[EstimateGap]
    """Figures that are absent, and why."""

    total_flops: NotRequired[float]
    """Floating-point operations of the whole run."""

    peak_flops_per_second_per_device: float
    """Dense rate of the number format that the multiplications use."""

    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run."""

    device_hours: NotRequired[QuantityEstimate]
    """Hours of all devices together."""

    energy: EnergyEstimate
    """Energy of the run."""

    electricity: ElectricityBill
    """The electricity bill of the run."""

    carbon: CarbonEmissions
    """Emissions of the run."""

    water_liters: NotRequired[QuantityEstimate]
    """Water evaporated on the site and by the grid."""

    water: NotRequired[WaterUse]
    """Water by place."""

    equivalents: NotRequired[list[EnergyEquivalent]]
    """Illustrations of the amount of energy."""

    rent: CostBreakdown
    """Cost of renting the devices."""

    purchase: CostBreakdown
    """Cost of buying the devices."""

    break_even_runs: NotRequired[QuantityEstimate]
    """Purchase over rent: number of runs after which the purchase has paid for itself."""

    break_even_runs_with_electricity: NotRequired[QuantityEstimate]
    """The same if a run on owned devices pays for its electricity."""

    break_even: NotRequired[list[BreakEven]]
    """Runs and months until the purchase has paid itself back, under further assumptions."""


class UtilityBillBatchRequest(TypedDict):
    """Several requests for utility bills, answered in order."""

    requests: list[UtilityBillRequest]
    """Requests. If one of them has no answer, the batch fails."""


class UtilityBillExportRequest(TypedDict):
    """Request for the electricity of a run as FOCUS rows."""

    model: ModelReference
    """Model that is trained or served."""

    workload: WorkloadInput
    """Work of the model."""

    cluster: ClusterInput
    """Cluster that the workload runs on."""

    site: NotRequired[RunSiteInput]
    """Building that houses the run. Without it electricity and carbon are gaps."""

    rental: NotRequired[Rental]
    """Terms and price of renting the devices."""

    purchase: NotRequired[Purchase]
    """Price of buying the devices."""

    starts_at: NotRequired[str]
    """Start of the run."""

    billing_account_id: NotRequired[str]
    """Id of the account that is charged. Defaults to the id of the tenant."""

    billing_account_name: NotRequired[str]
    """Name of the account. Defaults to its id."""

    parallelism: NotRequired[ParallelismInput]
    """Layout of the workload over the devices. Defaults to a sensible layout, which the answer states."""

    efficiency: NotRequired[EfficiencyInput]
    """Source of the efficiency of the devices. Defaults to measured runs."""

    storage: NotRequired[StorageInput]
    """Price of storing data and checkpoints."""

    egress: NotRequired[EgressInput]
    """Price of data that leave the provider."""

    token_price_ids: NotRequired[list[str]]
    """Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
    model that are at most a year older than the newest of the catalog.
    """

    currency_code: NotRequired[str]
    """Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
    prices, which then must all have the same one.
    """

    load_profile: NotRequired[RunLoadInput]
    """Power of the run over time."""

    measured: NotRequired[MeasuredEnergyInput]
    """Measured energy of the run, in place of the estimate."""

    embodied: NotRequired[EmbodiedEmissionsInput]
    """Emissions of making the machines."""


class UtilityBillList(TypedDict):
    """Answers in the order of the questions."""

    results: list[UtilityBill]


class UtilityBillQuoteRequest(TypedDict):
    """Request for a quote on all four questions."""

    name: str
    """Name of the quote."""

    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""

    note: NotRequired[str]
    """Note for the approvers."""

    valid_for_days: NotRequired[int]
    """Days in which the quote may be approved. A price that ends earlier shortens the validity."""

    operation: Literal["utility-bill"]

    request: UtilityBillRequest
    """Body of `POST /v1/estimates/utility-bill`."""


class UtilityBillRequest(TypedDict):
    """Request for the energy, emissions and cost of a run, rented or bought."""

    model: ModelReference
    """Model that is trained or served."""

    workload: WorkloadInput
    """Work of the model."""

    cluster: ClusterInput
    """Cluster that the workload runs on."""

    site: NotRequired[RunSiteInput]
    """Building that houses the run. Without it electricity and carbon are gaps."""

    rental: NotRequired[Rental]
    """Terms and price of renting the devices."""

    purchase: NotRequired[Purchase]
    """Price of buying the devices."""

    starts_at: NotRequired[str]
    """Start of the run."""

    parallelism: NotRequired[ParallelismInput]
    """Layout of the workload over the devices. Defaults to a sensible layout, which the answer states."""

    efficiency: NotRequired[EfficiencyInput]
    """Source of the efficiency of the devices. Defaults to measured runs."""

    storage: NotRequired[StorageInput]
    """Price of storing data and checkpoints."""

    egress: NotRequired[EgressInput]
    """Price of data that leave the provider."""

    token_price_ids: NotRequired[list[str]]
    """Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
    model that are at most a year older than the newest of the catalog.
    """

    currency_code: NotRequired[str]
    """Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
    prices, which then must all have the same one.
    """

    load_profile: NotRequired[RunLoadInput]
    """Power of the run over time."""

    measured: NotRequired[MeasuredEnergyInput]
    """Measured energy of the run, in place of the estimate."""

    embodied: NotRequired[EmbodiedEmissionsInput]
    """Emissions of making the machines."""


class ValidationFinding(TypedDict):
    """A check that did not pass, or a label."""

    rule: str
    """Name of the check, such as physics.above_dense_peak."""

    verdict: ResultVerdict
    """Best verdict that the finding allows; a label allows `accepted`."""

    detail: str
    """Observation with its unit."""

    observed: NotRequired[float]
    """Observed value."""

    limit: NotRequired[float]
    """Limit that the observed value was compared with."""


class WaterUse(TypedDict):
    """Water use of the run, by place."""

    onsite_liters: NotRequired[QuantityEstimate]
    """Water that evaporates on the site for cooling."""

    offsite_liters: NotRequired[QuantityEstimate]
    """Water that the power plants of the grid use."""


class Webhook(TypedDict):
    """An address that is told of events, and the state of its deliveries."""

    id: str

    url: str
    """Address that messages are posted to."""

    event_types: NotRequired[list[WebhookEventType]]
    """Types of events that are sent. All if absent."""

    description: NotRequired[str]
    """Purpose of the webhook."""

    signature_scheme: WebhookSignatureScheme
    """Signature of the messages."""

    public_key: NotRequired[str]
    """Public key that verifies `v1a` signatures. The newest one during a rotation."""

    state: WebhookState
    """State of the webhook. A disabled webhook gets no messages."""

    disabled_at: NotRequired[str]
    """Time at which the webhook was disabled."""

    disabled_reason: NotRequired[WebhookDisabledReason]
    """Reason why it was disabled: by its owner, by an answer of 410 from its receiver, or by the service
    after five days in which every attempt failed.
    """

    succeeded_at: NotRequired[str]
    """Time of the last successful attempt."""

    failing_since: NotRequired[str]
    """Time of the first failed attempt since then."""

    paused_until: NotRequired[str]
    """Time until which deliveries pause because the receiver has asked for it."""

    rotation_ends_at: NotRequired[str]
    """Time until which messages are also signed with the secret or key before the newest."""

    version: int
    """Number of changes, the creation included."""

    created_at: str

    created_by: str
    """Kind and id of the subject that created the webhook."""

    on_behalf_of: str
    """Kind and id of the subject that last set the address or the event types. Events that it may not read
    are withheld.
    """


class WebhookDelivery(TypedDict):
    """Delivery of one event to one webhook."""

    id: str

    webhook_id: str
    """Id of the webhook."""

    event_id: str
    """Id of the event, sent as `webhook-id`, the same at every attempt."""

    event_type: WebhookEventType
    """Type of the event."""

    state: WebhookDeliveryState
    """State of the delivery. A `failed` delivery has failed ten times or permanently. A `cancelled` one
    was waiting when its webhook was disabled, or may no longer be sent. `:replay` sends single ones
    again, and `:recover` all of both.
    """

    attempts: list[WebhookDeliveryAttempt]
    """The last fifty attempts, in order."""

    next_attempt_at: NotRequired[str]
    """Earliest time of the next attempt."""

    created_at: str

    finished_at: NotRequired[str]
    """Time at which the event was delivered or given up."""


class WebhookDeliveryAttempt(TypedDict):
    """One request to the receiver, and its outcome."""

    started_at: str
    """Start of the attempt."""

    milliseconds: int
    """Duration of the attempt."""

    status_code: NotRequired[int]
    """HTTP status of the answer. Absent if there was none."""

    error_code: NotRequired[str]
    """Code of the failure. Absent if the attempt succeeded."""

    answer_excerpt: NotRequired[str]
    """Beginning of the body of the answer."""


class WebhookDeliveryPage(TypedDict):
    """A page of deliveries."""

    items: list[WebhookDelivery]
    """Deliveries, the newest first."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


WebhookDeliveryState: TypeAlias = "Literal['waiting', 'running', 'delivered', 'failed', 'cancelled']"


class WebhookDisabledEvent(TypedDict):
    """Webhook that the service has disabled."""

    webhook_id: str
    """Id of the webhook."""

    description: NotRequired[str]
    """Description of the webhook."""

    reason: WebhookDisabledEventReason
    """Reason: its receiver answered with 410, or every attempt of five days has failed."""


WebhookDisabledEventReason: TypeAlias = "Literal['GONE', 'FAILING']"


class WebhookDisabledMessage(TypedDict):
    """Message about a webhook that the service has disabled."""

    type: Literal["webhook.disabled"]
    """Type of the event."""

    timestamp: str
    """Time of the event."""

    data: WebhookDisabledEvent
    """Members of the event."""


WebhookDisabledReason: TypeAlias = "Literal['BY_OWNER', 'GONE', 'FAILING']"

WebhookEventType: TypeAlias = "Literal['approval.requested', 'approval.escalated', 'approval.due_soon', 'approval.approved', 'approval.rejected', 'approval.expired', 'approval.cancelled', 'approval.superseded', 'approval.closed', 'approval.commented', 'budget.threshold_reached', 'budget.exceeded', 'policy_change.proposed', 'policy_change.effective', 'policy_change.rejected', 'benchmark.regressed', 'quote.expires_soon', 'audit.head', 'webhook.disabled', 'webhook.test']"
"""Type of an event."""


class WebhookPage(TypedDict):
    """A page of webhooks."""

    items: list[Webhook]
    """Webhooks, the newest first."""

    next_page_token: str | None
    """Value of `page_token` for the next page; null on the last page."""


class WebhookPatch(TypedDict):
    """Members to change; the others stay."""

    url: NotRequired[str]
    """New address that messages are posted to."""

    event_types: NotRequired[list[WebhookEventType] | None]
    """Types of events to send. Null selects all."""

    description: NotRequired[str | None]
    """Purpose of the webhook. Null removes it."""

    enabled: NotRequired[bool]
    """False cancels waiting deliveries. True resumes with events that happen from then on."""


class WebhookRecoveryRequest(TypedDict):
    """Time from which to send failed and cancelled deliveries again."""

    since: str
    """Time of the first event that the receiver may have missed."""


class WebhookReplayRequest(TypedDict):
    """Deliveries to send again."""

    delivery_ids: list[str]
    """Ids of deliveries of this webhook."""


class WebhookRequest(TypedDict):
    """An address and the events to send to it."""

    url: str
    """Address that messages are posted to: https, at port 443 or 8443 of a public host, unless the
    operator allows other networks.
    """

    event_types: NotRequired[list[WebhookEventType]]
    """Types of events to send. Defaults to all, including types that are added later."""

    description: NotRequired[str]
    """Purpose of the webhook."""

    signature_scheme: NotRequired[WebhookSignatureScheme]
    """Signature of the messages: with a secret that the receiver shares (`v1`, HMAC-SHA256), or with a key
    whose public half the receiver has (`v1a`, Ed25519).
    """


class WebhookRotationRequest(TypedDict):
    """Overlap in which messages are signed with both secrets, or both keys."""

    overlap_seconds: NotRequired[int]
    """Seconds of the overlap, to replace the secret or key at the receiver."""


WebhookSignatureScheme: TypeAlias = "Literal['v1', 'v1a']"
"""Scheme by which messages are signed."""

WebhookState: TypeAlias = "Literal['enabled', 'disabled']"


class WebhookTestEvent(TypedDict):
    """Webhook that a test delivery was asked for."""

    webhook_id: str
    """Id of the webhook."""


class WebhookTestMessage(TypedDict):
    """Message about a test delivery."""

    type: Literal["webhook.test"]
    """Type of the event."""

    timestamp: str
    """Time of the event."""

    data: WebhookTestEvent
    """Members of the event."""


WeightFormatName: TypeAlias = "Literal['fp8_tensor', 'fp8_channel', 'fp8_block_128', 'fbgemm_fp8', 'int8_channel', 'gptq_int4_g128', 'gptq_int8_g128', 'awq_int4_g128', 'bnb_int8', 'bnb_nf4', 'bnb_nf4_double_quant', 'mxfp4', 'nvfp4', 'gguf_f16', 'gguf_q4_0', 'gguf_q4_1', 'gguf_q5_0', 'gguf_q5_1', 'gguf_q8_0', 'gguf_q2_k', 'gguf_q2_k_s', 'gguf_q3_k_s', 'gguf_q3_k_m', 'gguf_q3_k_l', 'gguf_q4_k_s', 'gguf_q4_k_m', 'gguf_q5_k_s', 'gguf_q5_k_m', 'gguf_q6_k', 'gguf_iq1_s', 'gguf_iq1_m', 'gguf_iq2_xxs', 'gguf_iq2_xs', 'gguf_iq2_s', 'gguf_iq2_m', 'gguf_iq3_xxs', 'gguf_iq3_xs', 'gguf_iq3_s', 'gguf_iq3_m', 'gguf_iq4_nl', 'gguf_iq4_xs', 'gguf_tq1_0', 'gguf_tq2_0', 'gguf_mxfp4_moe']"


class WeightOnlyGemmWork(TypedDict):
    """C = A B of few rows of bf16 and weights of 4 bits, which are widened before they multiply.

    As in checkpoints of GPTQ and AWQ: a scale of bf16 for each 128 weights of a column.
    """

    kind: Literal["weight_only_gemm"]

    dtype: Literal["bf16"]
    """Type of A and C, in which the weights multiply."""

    has_zero_points: bool
    """True if each group has a zero point of 4 bits; without them it is 8, in the middle."""

    m: int
    """Rows of A and C."""

    n: int
    """Columns of B and C."""

    k: int
    """Columns of A and rows of B."""


WeightPrecision: TypeAlias = "Literal['fp32', 'fp16', 'bf16', 'fp8', 'int8', 'fp4', 'int4']"


class WithdrawnCalibrations(TypedDict):
    """Calibrations that were withdrawn together."""

    items: list[Calibration]
    """Calibrations, the oldest first."""


WorkloadInput: TypeAlias = "TrainingWorkloadInput | InferenceWorkloadInput"

WebhookMessage: TypeAlias = "ApprovalMessage | AuditHeadMessage | BenchmarkRegressionMessage | BudgetMessage | PolicyChangeMessage | QuoteMessage | WebhookDisabledMessage | WebhookTestMessage"

// Requests and answers of the service. Written by `make client-sources`.

/** An accelerator of the catalog. */
export interface Accelerator {
    id: string;
    name: string;
    /** Manufacturer. */
    vendor: string;
    /** Memory size on the label, in GB. */
    memory_label_gb?: number;
    /** Peak bandwidth of its own memory. */
    memory_bandwidth_bytes_per_second?: number;
    /** Dense rate by number format; tensor rates accumulate in FP32. */
    peak_flops_per_second?: PeakRates;
    /** Highest power that it draws. */
    power_limit_watts?: number;
    sources: Array<Citation>;
    /** Number of this version of the row; the ETag of the resource. */
    version: number;
    /** Catalog revision of this version. */
    revision: number;
    /** `shipped` if the row ships with the service, `tenant` if it is a row of the tenant. */
    origin: RowOrigin;
    created_at: string;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Architecture in lower case, such as hopper. */
    generation?: string;
    /** Form factor, such as SXM5 or PCIe. */
    form_factor?: string;
    /** Date of the announcement or the first sale. */
    launched_on?: string;
    /** Unit of the label: `binary` counts 2^30 bytes, `decimal` counts 10^9 bytes. */
    memory_label_reading?: MemoryLabelReading;
    /** Kind of its memory, such as HBM3e. Rates are refused where it is SRAM, on the chip only. */
    memory_kind?: string;
    /** Memory that the driver reports to a process. */
    memory_reported_bytes?: number;
    /** Link to the other accelerators of its node. */
    intra_node_link_id?: string;
    /** Link between nodes of the vendor's reference server. */
    inter_node_link_id?: string;
    /** Interfaces of that link for each accelerator. Below 1 if accelerators share one. */
    network_interfaces_per_device?: number;
    /** PCI Express generation of its link to the host. */
    pcie_generation?: number;
    /** Devices that software sees for one part, if more than one. */
    device_count?: number;
    /** Systems that the accelerator comes in. A question that names none gets the first. */
    systems?: Array<ReferenceSystem>;
    server?: ReferenceServer;
    /** Emissions of making one accelerator. */
    embodied_kg_co2e?: EmbodiedEmissionsFigure;
}

/** The id of a catalog row, or one of its aliases. Case does not matter. */
export type AcceleratorName = string;

/** A page of accelerators. */
export interface AcceleratorPage {
    items: Array<Accelerator>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface AcceleratorPatch {
    name?: string;
    /** Manufacturer. */
    vendor?: string;
    /** Memory size on the label, in GB. */
    memory_label_gb?: number | null;
    /** Peak bandwidth of its own memory. */
    memory_bandwidth_bytes_per_second?: number | null;
    /** Dense rate by number format; tensor rates accumulate in FP32. */
    peak_flops_per_second?: PeakRates | null;
    /** Highest power that it draws. */
    power_limit_watts?: number | null;
    sources?: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string | null;
    /** Architecture in lower case, such as hopper. */
    generation?: string | null;
    /** Form factor, such as SXM5 or PCIe. */
    form_factor?: string | null;
    /** Date of the announcement or the first sale. */
    launched_on?: string | null;
    /** Unit of the label: `binary` counts 2^30 bytes, `decimal` counts 10^9 bytes. */
    memory_label_reading?: MemoryLabelReading | null;
    /** Kind of its memory, such as HBM3e. Rates are refused where it is SRAM, on the chip only. */
    memory_kind?: string | null;
    /** Memory that the driver reports to a process. */
    memory_reported_bytes?: number | null;
    /** Link to the other accelerators of its node. */
    intra_node_link_id?: string | null;
    /** Link between nodes of the vendor's reference server. */
    inter_node_link_id?: string | null;
    /** Interfaces of that link for each accelerator. Below 1 if accelerators share one. */
    network_interfaces_per_device?: number | null;
    /** PCI Express generation of its link to the host. */
    pcie_generation?: number | null;
    /** Devices that software sees for one part, if more than one. */
    device_count?: number | null;
    /** Systems that the accelerator comes in. A question that names none gets the first. */
    systems?: Array<ReferenceSystem> | null;
    /** The vendor's server for this accelerator. */
    server?: ReferenceServer | null;
    /** Emissions of making one accelerator. */
    embodied_kg_co2e?: EmbodiedEmissionsFigure | null;
}

export type AcceleratorReference = CatalogAccelerator | SpecifiedAccelerator;

/** One accelerator as sold. Rates are dense, for the whole part, and absent if unknown. */
export interface AcceleratorRequest {
    id: string;
    name: string;
    /** Manufacturer. */
    vendor: string;
    /** Memory size on the label, in GB. */
    memory_label_gb?: number;
    /** Peak bandwidth of its own memory. */
    memory_bandwidth_bytes_per_second?: number;
    /** Dense rate by number format; tensor rates accumulate in FP32. */
    peak_flops_per_second?: PeakRates;
    /** Highest power that it draws. */
    power_limit_watts?: number;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Architecture in lower case, such as hopper. */
    generation?: string;
    /** Form factor, such as SXM5 or PCIe. */
    form_factor?: string;
    /** Date of the announcement or the first sale. */
    launched_on?: string;
    /** Unit of the label: `binary` counts 2^30 bytes, `decimal` counts 10^9 bytes. */
    memory_label_reading?: MemoryLabelReading;
    /** Kind of its memory, such as HBM3e. Rates are refused where it is SRAM, on the chip only. */
    memory_kind?: string;
    /** Memory that the driver reports to a process. */
    memory_reported_bytes?: number;
    /** Link to the other accelerators of its node. */
    intra_node_link_id?: string;
    /** Link between nodes of the vendor's reference server. */
    inter_node_link_id?: string;
    /** Interfaces of that link for each accelerator. Below 1 if accelerators share one. */
    network_interfaces_per_device?: number;
    /** PCI Express generation of its link to the host. */
    pcie_generation?: number;
    /** Devices that software sees for one part, if more than one. */
    device_count?: number;
    /** Systems that the accelerator comes in. A question that names none gets the first. */
    systems?: Array<ReferenceSystem>;
    server?: ReferenceServer;
    /** Emissions of making one accelerator. */
    embodied_kg_co2e?: EmbodiedEmissionsFigure;
}

/** An accelerator that is not in the catalog. A figure that is left out is unknown. */
export interface AcceleratorSpecification {
    /** Name of the accelerator in the answer. */
    name?: string;
    /** Generation of its chip, as the catalog names it. The measured constants of that generation apply. */
    generation?: string;
    /** Memory that the driver reports to a process. */
    memory_bytes?: number;
    /** Peak bandwidth of the device's own memory. */
    memory_bandwidth_bytes_per_second?: number;
    /** Dense rate by number format. Requests about memory alone need none. */
    peak_flops_per_second?: Record<string, number>;
    /** Highest power that one device draws. */
    power_limit_watts?: number;
}

/** A result that the service has acknowledged. */
export interface AcknowledgedBenchmarkResult {
    /** Id of the result. */
    result_id: string;
    /** Digest of the bytes of the result. */
    content_sha256: string;
}

/** A smooth function of each element, whose backward pass needs its input; no parameters. */
export interface ActivationLayer {
    kind: 'activation';
    /** Number of elements of a token. */
    size: number;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

/** A bill that was imported. */
export interface Actuals {
    /** Id of the import. */
    id: string;
    /** Source of the bill. */
    source: string;
    /** State of the bill. A `superseded` bill no longer counts in any of its billing periods. */
    state: ActualsState;
    /** Note on the bill. */
    note?: string;
    /** SHA-256 of the table, which itself is not stored. */
    content_sha256: string;
    /** Rows of the bill. */
    row_count: number;
    /** Rows that belong to a quote or a cost centre. The others are not stored. */
    matched_row_count: number;
    /** Billing periods of the bill. */
    periods: Array<ActualsPeriod>;
    /** Notes on the rows of the bill. */
    notes: Array<ActualsNote>;
    /** Time of the import. */
    created_at: string;
    /** Time from which the bill no longer counts. */
    withdrawn_at?: string;
    /** Reason of the withdrawal. */
    reason?: string;
}

/** Deviation of the tenant's quotes from what was billed for them so far. */
export interface ActualsAccuracy {
    /** Number of quotes whose cost can be compared. */
    quote_count: number;
    /** Median of the absolute deviation, as a share of the quoted cost. */
    median_absolute_error?: number;
    /** Mean ratio of billed to expected cost, less 1. Above 0, runs cost more than quoted. */
    bias?: number;
    /** Share of the quotes whose cost lies within the 80% interval. */
    interval_coverage?: number;
    /** Compared quotes whose run is not fully billed yet. The billed part is compared. */
    partly_billed_count: number;
    /** Number of quotes with charges that cannot be compared. */
    without_figure_count: number;
    /** Quotes that cannot be compared by the first gap of each. */
    without_figure: Array<UncomparedQuotes>;
    /** Deviation by quoted operation. */
    by_operation: Array<QuoteAccuracyGroup>;
    /** Deviation by accelerator. */
    by_accelerator: Array<QuoteAccuracyGroup>;
}

/** A bill as a table in the columns of FOCUS 1.0 to 1.3, with every charge of its billing periods. */
export interface ActualsImportRequest {
    /**
     * Source of the bill, such as a provider or an account. A later bill of the same source replaces this
     * one in the billing periods that both have.
     */
    source: string;
    /** Comma-separated values under one line of column names. Rows of a run have the tag `quote_id`. */
    content: string;
    /**
     * Id of the import of the same table, to match its rows again. Without it a bill that was imported
     * before is refused.
     */
    replaces?: string;
    /** Note on the bill. */
    note?: string;
}

/** A note on the rows of a bill. */
export interface ActualsNote {
    /** Stable name of the note. */
    code: string;
    /** Number of rows that the note concerns. */
    row_count: number;
    /** Text of the note. */
    detail: string;
}

/** A page of imported bills. */
export interface ActualsPage {
    /** Imported bills, the newest first. */
    items: Array<Actuals>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** A billing period of a bill. */
export interface ActualsPeriod {
    /** Start of the period. */
    starts_at: string;
    /** End of the period. */
    ends_at: string;
    /**
     * Time up to which the bill covers the period: its end, or the last charge of a period that was not
     * over yet.
     */
    covered_until: string;
    /** Rows of the bill in the period. */
    row_count: number;
    /** Rows that belong to a quote or a cost centre. The others are not stored. */
    matched_row_count: number;
    /** Sum of the billed cost, by currency. */
    billed: Array<MoneyAmount>;
    /** Sum of the effective cost, by currency. */
    effective: Array<MoneyAmount>;
}

export type ActualsState = 'active' | 'superseded' | 'withdrawn';

/** Reason why a bill no longer counts. */
export interface ActualsWithdrawalRequest {
    /** Reason of the withdrawal. */
    reason: string;
}

/** Parameters that are trained. */
export interface AdaptationInput {
    /**
     * Kind of adaptation: all parameters (`full`), or small ones beside frozen weights. `scale` trains
     * norms, a factor and a shift behind every matrix, and virtual tokens in each layer (LLaMA-Adapter
     * V2).
     */
    kind: AdaptationKind;
    /** Rank of the low-rank matrices (default 16), or width of an adapter's bottleneck (default 64). */
    rank?: number;
    /** Matrices that get low-rank ones. Defaults to query and value, for qlora to all_linear. */
    target_modules?: Array<AdaptationInputTargetModules>;
    /**
     * Format of the frozen weights. `plain` is the width of the activations. Defaults to plain, for qlora
     * to nf4_double.
     */
    base_weights?: FrozenWeightFormat;
    /** Virtual tokens of prompt tuning, prefix tuning and scale. Defaults to 20. */
    virtual_tokens?: number;
}

export type AdaptationInputTargetModules = 'all_linear' | 'query' | 'key' | 'value' | 'output' | 'gate' | 'up' | 'down' | 'expert_gate' | 'expert_up' | 'expert_down' | 'query_down' | 'query_up' | 'key_value_down' | 'key_value_up' | 'query_key_value_gate' | 'input';

/** Parameters that are trained: all, or small ones beside frozen weights. */
export type AdaptationKind = 'full' | 'lora' | 'qlora' | 'dora' | 'prompt' | 'prefix' | 'adapter' | 'scale';

/** Low-rank adapters served beside the model, on every matrix inside its blocks but those of experts. */
export interface AdaptersInput {
    /** Adapters that are loaded at a time. */
    max_loras?: number;
    /** Largest rank of the adapters. Memory is reserved for it, for each adapter. */
    rank?: number;
}

/** One way of doing the work, compared with the baseline. A ratio above 1 is more than the baseline. */
export interface AlternativeCost {
    /** Cost of this way. */
    cost: CostEstimate;
    /** Its duration over that of the baseline. */
    time_ratio?: QuantityEstimate;
    /** Its device-hours over those of the baseline. */
    device_hours_ratio?: QuantityEstimate;
    /** Its total over that of the baseline. */
    cost_ratio?: QuantityEstimate;
}

/** Formulas for the steady state. */
export interface AnalyticSolver {
    kind: 'analytic';
}

/** Energy and peak of a year, for a load without a known series. */
export interface AnnualDemand {
    kind: 'annual';
    /** Calendar year of the load. */
    year: number;
    /** Energy of the year. */
    energy_kwh: number;
    /** Highest demand of the year. */
    peak_kw: number;
}

/** A remark about the question that the reader of the answer should know. */
export interface AnswerWarning {
    /** Stable name of the warning. */
    code: string;
    /** JSON Pointer into the request. */
    pointer: string;
    /** Text of the remark. */
    detail: string;
}

/** An API key, without its secret. */
export interface ApiKey {
    id: string;
    /** Tenant that the key acts for. */
    tenant_id: string;
    name: string;
    /** Rights of the key. */
    scopes: Array<string>;
    /** Number of changes, the creation included. */
    version: number;
    created_at: string;
    /** Kind and id of the subject that created the key. */
    created_by?: string;
    /**
     * Subjects that can act by the key, from its maker to the first. They and the key count as one
     * subject.
     */
    lineage?: Array<string>;
    /** Time at which the key expires. */
    expires_at?: string;
    /** Time at which the key was revoked. */
    revoked_at?: string;
    /** Time until which the secret before the newest works. */
    rotation_ends_at?: string;
    /** Time of the last use of the key, to the minute. */
    last_used_at?: string;
}

/** A page of keys. */
export interface ApiKeyPage {
    /** Keys in order of id. */
    items: Array<ApiKey>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** A key to create. */
export interface ApiKeyRequest {
    /** Purpose of the key. */
    name: string;
    /** Rights of the key. They cannot exceed the rights of its creator. */
    scopes: Array<string>;
    /**
     * Time at which the key expires. Defaults to the expiry of the key that creates it, and is never
     * later.
     */
    expires_at?: string;
    /** Tenant of the key. A tenant other than the creator's needs `tenants:write`. */
    tenant_id?: string;
}

/** Overlap in which the old and the new secret both work. */
export interface ApiKeyRotationRequest {
    /** Seconds in which the old secret still works, to replace it in every caller. */
    overlap_seconds?: number;
}

/** An approval with its steps, comments and budgets. */
export interface Approval {
    /** Id of the approval. */
    id: string;
    /** State of the approval. */
    state: ApprovalState;
    /** Id of the quote to approve. */
    quote_id: string;
    /** Version of the quote. */
    quote_version: number;
    /** Digest of all frozen content of the version. */
    content_digest: string;
    /** Name of the quote. */
    name: string;
    /** Headline figures of the quote. */
    headlines: QuoteHeadlines;
    /** Id of the cost centre that pays. */
    cost_center_id?: string;
    /** Subject that requests the approval. */
    requester: string;
    /** Time of the submission. */
    submitted_at: string;
    /** Time at which the approval expires, unless it is decided earlier. */
    expires_at?: string;
    /** Time at which the approval was decided or ended otherwise. */
    ended_at?: string;
    /** Number of changes. */
    version: number;
    /** Id of the approval of an earlier version of the quote that this one replaces. */
    supersedes?: string;
    /** Steps in order. Empty if a policy requires no approver. */
    steps: Array<ApprovalStep>;
    /** Comments in the order in which they were written. */
    comments: Array<ApprovalComment>;
    /** Amount that is to be paid, once the quote is approved. Absent if the total is unknown. */
    commitment?: ApprovalCommitment;
    /**
     * Effect on the budgets of the cost centre: at submission, and from the approval on at the time of the
     * approval.
     */
    budgets: Array<BudgetEffect>;
    /**
     * Conditions that a policy could not evaluate, such as those on an unknown total. They count against
     * the requester.
     */
    warnings: Array<AnswerWarning>;
    /** Policies and exchange rates that determined the approvers. */
    judged: PolicyEvaluation;
}

/** A comment on an approval. */
export interface ApprovalComment {
    /** Author of the comment. */
    written_by: string;
    /** Text of the comment. */
    text: string;
    /** Time of the comment. */
    written_at: string;
}

/** A comment on an approval. */
export interface ApprovalCommentRequest {
    /** Text of the comment. */
    text: string;
}

/** Amount that is to be paid for an approved quote, in the currency of the quote. */
export interface ApprovalCommitment {
    /** Total of the quote. */
    amount: MoneyAmount;
    /** Time from which the amount counts in budgets of the cost centre. */
    committed_at: string;
    /**
     * Start of the time over which the amount falls due evenly: the start of the run, or the time of the
     * purchase.
     */
    due_from: string;
    /** End of the time over which the amount falls due. Equal to the start if it falls due at once. */
    due_until: string;
    /**
     * Time at which the commitment was released because the approval was closed, cancelled or superseded.
     * Only bills count from then on.
     */
    released_at?: string;
    /**
     * Amount that is not billed yet. Present in single reads and after closing; absent if a bill has no
     * exchange rate.
     */
    outstanding?: MoneyAmount;
}

/** Decision of an approver. */
export interface ApprovalDecision {
    /** Approver whose decision it is, as the policy names them. */
    approver: string;
    /** Subject that decided: the approver or their delegate. */
    decided_by: string;
    /** Subject that made the link by which the decision was made. */
    linked_by?: string;
    /** Id of the delegation by which the delegate decided. */
    delegation_id?: string;
    /** Decision: approve or reject. */
    decision: ApprovalDecisionKind;
    /** Channel of the decision. */
    via: ApprovalDecisionChannel;
    /** Reason for the decision. */
    comment?: string;
    /** Digest of the quote that the approver has seen. */
    content_digest: string;
    /** Time of the decision. */
    decided_at: string;
}

export type ApprovalDecisionChannel = 'api' | 'page' | 'link';

export type ApprovalDecisionKind = 'approve' | 'reject';

/** A decision on one version of a quote. */
export interface ApprovalDecisionRequest {
    /** Digest of the quote that the approver has seen. A decision on another version is refused. */
    content_digest: string;
    /** Reason for the decision. */
    comment?: string;
}

/** Right of a delegate to decide in an approver's place, for a time. */
export interface ApprovalDelegation {
    /** Id of the delegation. */
    id: string;
    /** Subject in whose place the delegate decides. */
    approver: string;
    /** Subject that may decide. */
    delegate: string;
    /** Start of the delegation. */
    starts_at: string;
    /** End of the delegation. */
    ends_at: string;
    /** Reason for the delegation. */
    note?: string;
    /** Time at which the delegation was created. */
    created_at: string;
    /** Time at which the delegation was revoked. Absent unless it was ended early. */
    revoked_at?: string;
}

/** A page of delegations, including those that have ended. */
export interface ApprovalDelegationPage {
    /** Delegations, the newest first. */
    items: Array<ApprovalDelegation>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Right of a delegate to decide in the caller's place, for a time. */
export interface ApprovalDelegationRequest {
    /**
     * Subject that may decide. A delegate cannot delegate further, and never decides on their own
     * requests.
     */
    delegate: string;
    /** Start of the delegation. Defaults to now. */
    starts_at?: string;
    /** End of the delegation. */
    ends_at: string;
    /** Reason for the delegation. */
    note?: string;
}

/** Subjects that may also decide once a step has been open for some time. */
export interface ApprovalEscalation {
    /** Seconds after the step opened. */
    after_seconds: number;
    /** Subjects that may decide then, beside the approvers. */
    to: Array<string>;
}

/** Approval of an event. Everything else about it is read by its id. */
export interface ApprovalEvent {
    /** Id of the approval. */
    approval_id: string;
    /** Id of the quote. */
    quote_id: string;
    /** Version of the quote. */
    quote_version: number;
    /** Name of the quote. */
    name: string;
    /** Subject that asked for the approval. */
    requester: string;
    /** Amount that has to be paid. */
    total?: MoneyAmount;
    /** Id of the cost centre that pays. */
    cost_center_id?: string;
    /** Name of the open step. */
    step?: string;
    /** Subjects that are asked to decide the open step. */
    approvers?: Array<string>;
    /** Time until which the open step has to be decided. */
    due_at?: string;
    /** Subject of the last decision. */
    decided_by?: string;
    /** URL of the page of the approval. Absent if the service does not know its own address. */
    page_url?: string;
}

/** Every recorded change of an approval. */
export interface ApprovalHistory {
    /** Changes in the order in which they were made. */
    items: Array<ApprovalHistoryEvent>;
    /** True if the stored approval matches its last event. If false, the database was changed directly. */
    is_as_recorded: boolean;
}

/** A recorded change of an approval. */
export interface ApprovalHistoryEvent {
    /** Number of the event in the audit chain of the tenant. */
    sequence: number;
    /** Time of the change. */
    occurred_at: string;
    /** Operation that made the change. */
    operation: string;
    /** Kind and id of the subject that made the change. Absent after a redaction of the tenant. */
    subject?: string;
    /** Id of the request, as in the log. Empty for changes that the service made by itself. */
    request_id: string;
    /** SHA-256 of the approval before the change. */
    before_digest?: string;
    /** SHA-256 of the approval after the change. */
    after_digest?: string;
    /** SHA-256 of the event. */
    hash: string;
}

/** An approval link, without its secret. */
export interface ApprovalLink {
    /** Id of the link. */
    id: string;
    /** Id of the approval to decide. */
    approval_id: string;
    /** Approver whose decision it will be. */
    approver: string;
    /** Subject that made the link. */
    created_by: string;
    /** Time at which the link was made. */
    created_at: string;
    /** Time at which the link expires, unless the step ends earlier. */
    expires_at: string;
    /** Time at which a decision was made by the link. */
    used_at?: string;
    /** Time at which the link was revoked. */
    revoked_at?: string;
}

/** An approval link and its state. */
export interface ApprovalLinkDetails {
    /** Id of the link. */
    id: string;
    /** Id of the approval to decide. */
    approval_id: string;
    /** Approver whose decision it will be. */
    approver: string;
    /** Subject that made the link. */
    created_by: string;
    /** Time at which the link was made. */
    created_at: string;
    /** Time at which the link expires, unless the step ends earlier. */
    expires_at: string;
    /** Time at which a decision was made by the link. */
    used_at?: string;
    /** Time at which the link was revoked. */
    revoked_at?: string;
    /** State of the link. `ended` if the step that it was made for has ended without it. */
    state: ApprovalLinkDetailsState;
}

export type ApprovalLinkDetailsState = 'open' | 'used' | 'revoked' | 'expired' | 'ended';

/** Links of an approval. */
export interface ApprovalLinkList {
    /** Links in the order in which they were made. */
    items: Array<ApprovalLinkDetails>;
}

/** An approval link for one person. */
export interface ApprovalLinkRequest {
    /** Approver of the open step who has no credentials: `person:` and an id. */
    approver: string;
}

/** Message about an approval. */
export interface ApprovalMessage {
    /** Type of the event. */
    type: ApprovalMessageType;
    /** Time of the event. */
    timestamp: string;
    /** Members of the event. */
    data: ApprovalEvent;
}

export type ApprovalMessageType = 'approval.requested' | 'approval.escalated' | 'approval.due_soon' | 'approval.approved' | 'approval.rejected' | 'approval.expired' | 'approval.cancelled' | 'approval.superseded' | 'approval.closed' | 'approval.commented';

/** A page of approvals. */
export interface ApprovalPage {
    /** Approvals, the newest first. */
    items: Array<ApprovalSummary>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** A policy as it is now. Approvals keep the steps under which they were submitted. */
export interface ApprovalPolicy {
    id: string;
    name: string;
    /** Conditions on the quotes that the policy applies to. */
    conditions: PolicyConditions;
    /**
     * Steps of the approval, in order. A policy without steps approves quotes automatically, except if the
     * total of a quote that costs money is unknown or a condition cannot be evaluated; it then sets
     * `automatic`.
     */
    steps: Array<PolicyStep>;
    /** Set to true if and only if the policy has no steps: quotes then pass without an approver. */
    automatic?: boolean;
    /** Number of changes, the creation included. */
    version: number;
    /**
     * Subjects that have written a version of the policy. They cannot submit quotes under it. Absent for
     * older policies until their next change.
     */
    written_by?: Array<string>;
    /** Time at which the policy was created. */
    created_at: string;
    /** Time of the last change. */
    updated_at: string;
}

/** A page of policies. */
export interface ApprovalPolicyPage {
    /** Policies in order of id. */
    items: Array<ApprovalPolicy>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface ApprovalPolicyPatch {
    name?: string;
    /** Conditions on the quotes that the policy applies to. */
    conditions?: PolicyConditions;
    /**
     * Steps of the approval, in order. A policy without steps approves quotes automatically, except if the
     * total of a quote that costs money is unknown or a condition cannot be evaluated; it then sets
     * `automatic`.
     */
    steps?: Array<PolicyStep>;
    /** Set to true if and only if the policy has no steps: quotes then pass without an approver. */
    automatic?: boolean;
}

/** A policy: the quotes that it applies to, and the steps of their approval. */
export interface ApprovalPolicyRequest {
    id: string;
    name: string;
    /** Conditions on the quotes that the policy applies to. */
    conditions: PolicyConditions;
    /**
     * Steps of the approval, in order. A policy without steps approves quotes automatically, except if the
     * total of a quote that costs money is unknown or a condition cannot be evaluated; it then sets
     * `automatic`.
     */
    steps: Array<PolicyStep>;
    /** Set to true if and only if the policy has no steps: quotes then pass without an approver. */
    automatic?: boolean;
}

/** Approval settings of a tenant. */
export interface ApprovalSettings {
    /**
     * Seconds before a change takes effect that loosens a policy or a budget, unless it is approved
     * earlier.
     */
    change_delay_seconds: number;
    /** Number of changes. 0 while the defaults of a new tenant apply. */
    version: number;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface ApprovalSettingsPatch {
    /**
     * Seconds before a change takes effect that loosens a policy or a budget, unless it is approved
     * earlier.
     */
    change_delay_seconds?: number;
}

/** Approval settings of a tenant that can change. */
export interface ApprovalSettingsValues {
    /**
     * Seconds before a change takes effect that loosens a policy or a budget, unless it is approved
     * earlier.
     */
    change_delay_seconds: number;
}

export type ApprovalState = 'pending' | 'approved' | 'rejected' | 'cancelled' | 'expired' | 'superseded';

/** A step of an approval. The next step opens once it is approved. */
export interface ApprovalStep {
    /** Name of the step. */
    name: string;
    /** Id of the policy that requires the step. */
    policy_id: string;
    /** Version of the policy. */
    policy_version: number;
    /** Subjects that may decide, including those that the step was escalated to. */
    approvers: Array<string>;
    /** Number of approvers that must approve. A single rejection rejects. */
    quorum: number;
    /** State of the step. */
    state: ApprovalStepState;
    /** Time at which the step opened. */
    opened_at?: string;
    /** Time at which the approval expires if the step is undecided. */
    due_at?: string;
    /** Time at which the step escalates. */
    escalates_at?: string;
    /** Time at which the step was escalated. */
    escalated_at?: string;
    /** Decisions in the order in which they were made. */
    decisions: Array<ApprovalDecision>;
}

export type ApprovalStepState = 'waiting' | 'open' | 'approved' | 'rejected' | 'ended';

/** An approval in lists. */
export interface ApprovalSummary {
    /** Id of the approval. */
    id: string;
    /** State of the approval. */
    state: ApprovalState;
    /** Id of the quote to approve. */
    quote_id: string;
    /** Version of the quote. */
    quote_version: number;
    /** Digest of all frozen content of the version. */
    content_digest: string;
    /** Name of the quote. */
    name: string;
    /** Headline figures of the quote. */
    headlines: QuoteHeadlines;
    /** Id of the cost centre that pays. */
    cost_center_id?: string;
    /** Subject that requests the approval. */
    requester: string;
    /** Time of the submission. */
    submitted_at: string;
    /** Time at which the approval expires, unless it is decided earlier. */
    expires_at?: string;
    /** Time at which the approval was decided or ended otherwise. */
    ended_at?: string;
    /** Number of changes. */
    version: number;
    /** Id of the approval of an earlier version of the quote that this one replaces. */
    supersedes?: string;
}

/** A model as a list of layers with shapes, in the order in which data walks through it. */
export interface Architecture {
    /** Inputs of the model. Defaults to tokens. */
    inputs?: Array<ArchitectureInputShape>;
    /** Layers with shapes, in order. */
    layers: Array<ModelLayer>;
    /** Look-up tables in front of the first layer. */
    embeddings?: ArchitectureEmbeddings;
    /** Layers that turn the last hidden state into answers. */
    heads?: Array<ArchitectureHead>;
    /** Heads whose weight is the token table itself. */
    tied?: Array<ArchitectureTied>;
}

/** Look-up tables in front of the first layer, and the norm over their sum. */
export interface ArchitectureEmbeddings {
    /** Width of a row. */
    size: number;
    /** Number of tokens of the vocabulary. */
    vocabulary_size: number;
    /** Number of learned positions, if there are any. */
    position_count?: number;
    /** Number of learned token types, if there are any. */
    token_type_count?: number;
    /** Norm over the sum of the tables. */
    norm?: ArchitectureEmbeddingsNorm;
    /** True if the sum passes a dropout in training. */
    dropout?: boolean;
}

export type ArchitectureEmbeddingsNorm = 'none' | 'rms' | 'layer';

/** A layer that turns the last hidden state into an answer. */
export interface ArchitectureHead {
    /**
     * Kind of answer: logits over a vocabulary (`language_model`), scores (`classifier`), or the product
     * of a square matrix and one token of the sequence (`pooler`).
     */
    kind: ArchitectureTied;
    /** Width of the hidden state. */
    input_size: number;
    /** Width of the answer. */
    output_size: number;
    /** True if a learned vector is added. */
    bias?: boolean;
    /** True if it has the copy of its bias that an untied BERT head keeps. */
    second_bias?: boolean;
    /** Unit that is answered for: each token or each sequence. */
    per?: ArchitectureHeadPer;
}

export type ArchitectureHeadPer = 'token' | 'sequence';

/** An input of the model: a sequence of tokens, a grid of pixels or latents, or features. */
export interface ArchitectureInputShape {
    /** Name of the input within the model. */
    name: string;
    /**
     * Kind of input. `tokens` are those of the decoder or of the only encoder, `source_tokens` those of an
     * encoder that others read, `queries` are learned.
     */
    kind: ArchitectureInputShapeKind;
    /** Numbers in one cell of the grid. */
    channels?: number;
    /**
     * Tokens, queries or spectrogram frames of a sample that does not state them; absent if there may be
     * any number.
     */
    length?: number;
    /** Rows of a sample that does not state them. */
    height?: number;
    /** Columns of a sample that does not state them. */
    width?: number;
    /** Frames of a sample that does not state them. */
    frames?: number;
    /** Pixels of the sample for each cell of the grid along an axis. */
    downsampling?: number;
    /** Frames of the sample for each latent frame after the first, as causal video autoencoders count. */
    frame_downsampling?: number;
}

export type ArchitectureInputShapeKind = 'tokens' | 'source_tokens' | 'queries' | 'image' | 'video' | 'audio' | 'latent' | 'dense_features' | 'sparse_features';

/** A model given by its layers. */
export interface ArchitectureModel {
    source: 'architecture';
    /** Layers with shapes. */
    architecture: Architecture;
}

export type ArchitectureTied = 'language_model' | 'classifier' | 'pooler';

export type ArrivalsInput = PoissonArrivals | UniformArrivals | TraceArrivals;

/** Takes the achieved share of the limits as given: T = O / (R_peak x utilization). */
export interface AssumedEfficiency {
    source: 'assumed';
    /** Achieved share of the peak rate. */
    utilization: number;
    /** Achieved share of the memory bandwidth. Defaults to `utilization`, with a warning if it matters. */
    bandwidth_utilization?: number;
}

/** Attention kernel that stores the score matrix (standard) or does not (flash; Dao et al. 2022). */
export type AttentionKernel = 'standard' | 'flash';

/** Multi-head, multi-query or grouped-query attention, by the number of key-value heads. */
export interface AttentionLayer {
    kind: 'attention';
    /** Width of the residual stream. */
    hidden_size: number;
    /** Number of query heads. */
    query_heads: number;
    /** Number of key-value heads: that of the query heads (MHA), fewer (GQA) or 1 (MQA). */
    key_value_heads: number;
    /** Width of a head. */
    head_size: number;
    /** Width of the value of a head. Defaults to `head_size`. */
    value_head_size?: number;
    /** Width of the output. Defaults to `hidden_size`. */
    output_size?: number;
    /**
     * Width of the compressed query, which passes a norm before the heads are rebuilt from it; absent
     * without compression.
     */
    query_rank?: number;
    /** True if a token sees only the tokens before it. */
    causal?: boolean;
    /** Length of the sliding window in tokens; absent without one. */
    window_tokens?: number;
    /** Width of the other sequence that keys and values are read from; absent for self-attention. */
    cross_size?: number;
    /**
     * Source of keys and values: projections of their own (`own`), the keys as values too
     * (`key_as_value`), or those of an earlier layer, which are read again without projections or a cache
     * (`shared`).
     */
    key_value?: AttentionLayerKeyValue;
    /** True if a learned vector is added to queries, keys and values. */
    query_key_value_bias?: boolean;
    /** True if `query_key_value_bias` covers the keys. */
    key_bias?: boolean;
    /** True if a learned vector is added to the output. */
    output_bias?: boolean;
    /** Norm of queries and keys, over each head or over the whole projection. */
    query_key_norm?: AttentionLayerQueryKeyNorm;
    /** True if the norm of queries and keys has a shift beside its scale. */
    query_key_norm_shift?: boolean;
    /** Projection that scales the output, by head or by element. */
    gate?: AttentionLayerGate;
    /** True if a learned vector is added to the gate. */
    gate_bias?: boolean;
    /** True if a norm stands in front of the output projection. */
    output_norm?: boolean;
    /** True if each head has a learned score that belongs to no token. */
    sinks?: boolean;
    /** True if attention weights and output pass a dropout in training. */
    dropout?: boolean;
    /**
     * True if a learned term is added to the scores (relative positions). Fused kernels do not
     * differentiate it, so training stores the scores.
     */
    score_bias?: boolean;
    /**
     * Number of heads of the scorer that picks tokens (sparse attention); absent where every token is
     * read.
     */
    index_heads?: number;
    /** Width of the heads of the scorer, and of the one key that it keeps for each token or pool. */
    index_head_size?: number;
    /** Number of tokens that the scorer picks for each query, by blocks or one by one. */
    index_tokens?: number;
    /**
     * Number of tokens whose keys the scorer averages into one; absent where each token has a key of its
     * own.
     */
    index_pool?: number;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

export type AttentionLayerGate = 'none' | 'head' | 'element';

export type AttentionLayerKeyValue = 'own' | 'key_as_value' | 'shared';

export type AttentionLayerQueryKeyNorm = 'none' | 'head' | 'projection';

/**
 * Softmax(Q K^T / sqrt(d)) V of random numbers, or its gradients.
 *
 * A prompt, one query a sequence over a cache, or the backward pass of a prompt.
 */
export interface AttentionWork {
    kind: 'attention';
    /**
     * `prefill` is causal and its queries are as many as the context, `decode` has one query a sequence,
     * `backward` computes the gradients of `prefill`.
     */
    phase: AttentionWorkPhase;
    /**
     * The worker's own kernel, cuDNN, FlashInfer, flash-attn 3, or one of PyTorch's
     * scaled_dot_product_attention.
     */
    back_end: AttentionWorkBackEnd;
    /** Type of the elements. */
    dtype: AttentionWorkDtype;
    /** Sequences. */
    batch: number;
    /** Heads of a query. */
    query_heads: number;
    /** Heads of keys and values; each serves query_heads / kv_heads heads of a query. */
    kv_heads: number;
    /** Elements of a head of queries and keys. */
    head_size: AttentionWorkHeadSize;
    /** Keys of a sequence. */
    context_tokens: number;
    /**
     * Elements of a head of values, if they are not as many as those of a key. In decoding, values are the
     * first elements of the keys, as in the latent cache of DeepSeek-V3.
     */
    value_size?: AttentionWorkValueSize;
    /** Tokens of a page of the cache. Without it the cache of a sequence is in one piece. */
    page_tokens?: AttentionWorkPageTokens;
}

export type AttentionWorkBackEnd = 'own' | 'flash' | 'efficient' | 'cudnn' | 'math' | 'flashinfer' | 'flash3';

export type AttentionWorkDtype = 'fp32' | 'bf16' | 'fp16' | 'fp8_e4m3';

export type AttentionWorkHeadSize = 64 | 128 | 192 | 256 | 576;

export type AttentionWorkPageTokens = 16 | 32 | 64 | 128;

export type AttentionWorkPhase = 'prefill' | 'decode' | 'backward';

export type AttentionWorkValueSize = 64 | 128 | 256 | 512;

/** A stored resource that differs from its last event. */
export interface AuditDeviation {
    /** Resource: collection and id. */
    resource: string;
    /**
     * Code of the deviation: `CHANGED`, `MISSING`, `NOT_RECORDED`, `CHARGES_CHANGED`, or `UNREADABLE` for
     * a table.
     */
    code: string;
}

/** One stored write. */
export interface AuditEvent {
    /** Number of the event in the chain of its tenant, from 1 without a gap. */
    sequence: number;
    /** Time of the write. */
    occurred_at: string;
    /** Id of the operation. */
    operation: string;
    /** Resource that was written: collection and id. */
    resource: string;
    /** Kind of the subject, by its means of authentication. */
    subject_kind: string;
    /** Id of the subject. Absent after a redaction of the tenant. */
    subject_id?: string;
    /** Id of the request, as in the log. */
    request_id: string;
    /** SHA-256 of the resource before the write. Absent if it did not exist. */
    before_digest?: string;
    /** SHA-256 of the resource after the write. Absent if it no longer exists. */
    after_digest?: string;
    /**
     * SHA-256 of everything stored of the resource after the write, including what no answer shows.
     *
     * Absent if it equals `after_digest`, if the resource is gone, and from events of earlier versions.
     */
    state_digest?: string;
    /** Hash of the preceding event. Zeros for the first event. */
    previous_hash: string;
    /** SHA-256 of the event, including the preceding hash. */
    hash: string;
}

/** A page of events. */
export interface AuditEventPage {
    /** Events, the newest first. */
    items: Array<AuditEvent>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** A break in a chain. */
export interface AuditFault {
    /** Number of the first event at fault. */
    sequence: number;
    /** Stable name of the fault. */
    code: string;
    /** Description of the fault. */
    detail: string;
}

/** Part of a verification that is impossible because events of earlier versions lack the data. */
export interface AuditGap {
    /** Collection of the resources. */
    collection: string;
    /** Stable name of the gap. */
    code: string;
    /** Description of the gap. */
    detail: string;
    /** Number of resources. */
    resource_count: number;
}

/** Last event of the audit chain. */
export interface AuditHeadEvent {
    /** Number of the last event. */
    sequence: number;
    /** Hash of the last event, 64 hexadecimal digits. */
    hash: string;
}

/** Message about the end of the audit chain. */
export interface AuditHeadMessage {
    /** Type of the event. */
    type: 'audit.head';
    /** Time of the event. */
    timestamp: string;
    /** Members of the event. */
    data: AuditHeadEvent;
}

/** Result of a verification of the tenant's chain, and of the stored resources that control access. */
export interface AuditVerdict {
    /**
     * True if the whole chain is intact and reaches the expected heads, and no resource was changed
     * outside it.
     */
    valid: boolean;
    /** Number of intact events, from the first. */
    events: number;
    /**
     * Hash of the last intact event. A copy kept elsewhere reveals if the end was cut off together with
     * its seal.
     */
    head_hash: string;
    /** First fault of the chain. Absent if there is none. */
    fault?: AuditFault;
    /** First resources that differ from their records. Absent if there are none. */
    changed?: Array<AuditDeviation>;
    /** Number of resources that differ. */
    changed_count?: number;
    /**
     * Parts that cannot be verified because events of earlier versions lack the data. Absent if there are
     * none.
     */
    gaps?: Array<AuditGap>;
}

/** The autoencoder whose decoder turns latents into pixels. */
export interface AutoencoderInput {
    /** Model of encoder and decoder. Its decoder runs once a picture. */
    model: ModelReference;
    /**
     * Format that the autoencoder multiplies in. Defaults to 16 bit. The autoencoder of Stable Diffusion
     * XL overflows there and needs tf32.
     */
    precision?: AutoencoderInputPrecision;
    /** Side of the tiles that a picture is decoded in, to save memory. Defaults to the whole picture. */
    tile_pixels?: number;
}

export type AutoencoderInputPrecision = 'fp32' | 'tf32' | 'fp16' | 'bf16';

/** Work that the service does by itself, in short pieces, in any of its processes. */
export interface BackgroundJob {
    id: string;
    /** Kind of the work. */
    kind: string;
    /**
     * State of the job. A `dead` job has failed too often and waits for an operator; `:retry` runs it
     * again.
     */
    state: BackgroundJobState;
    /** Number of starts since the last progress. */
    attempt: number;
    /** True if the job ends after its present piece. */
    cancel_requested: boolean;
    /** Progress of the job, in members that depend on its kind. */
    progress: Record<string, unknown>;
    /** Result of the job, once it is done. */
    result: Record<string, unknown>;
    created_at: string;
    /**
     * Time at which the job continues. While it runs, time at which another process may take it over.
     * Absent once it has ended.
     */
    due_at?: string;
    /** Time at which the job ended. */
    finished_at?: string;
    /** Code of the last failure. */
    error_code?: string;
    /** Description of the last failure. */
    error_summary?: string;
}

/** A page of jobs. */
export interface BackgroundJobPage {
    /** Jobs, newest first. */
    items: Array<BackgroundJob>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

export type BackgroundJobState = 'waiting' | 'running' | 'done' | 'cancelled' | 'dead';

/** Reads of the memory that a multiprocessor shares, words of a warp `stride_words` apart. */
export interface BankConflictWork {
    kind: 'bank_conflict';
    /** 1 has no conflict, 32 lets every thread of a warp ask the same bank. */
    stride_words: number;
    /** Reads of each thread. */
    reads: number;
    /** Threads of one execution. */
    threads: number;
}

/** Mean power of consecutive intervals. */
export interface BaselineLoadSeries {
    /** Selects this shape. */
    kind: 'series';
    /** Start of the first interval. */
    starts_at: string;
    /** Length of each interval, in minutes. */
    interval_minutes: 5 | 15 | 30 | 60;
    /**
     * Mean power of each interval at the meter. The series covers every billing period in which the run
     * takes place.
     */
    kw: Array<number>;
}

/** Batching of requests that are forward passes. */
export interface BatchingInput {
    /** Most requests of one pass. Defaults to all that wait and that the memory holds. */
    max_requests?: number;
    /** Time that a pass waits for further requests. */
    delay_seconds?: number;
}

/** One benchmark of a suite. */
export interface Benchmark {
    /** Name within the suite, such as gemm.bf16 or hbm.copy. */
    name: string;
    /** Work of one execution. */
    work: GemmWork | AttentionWork | FftWork | BlockScaledGemmWork | GroupedGemmWork | WeightOnlyGemmWork | StreamWork | StridedReadWork | CacheStreamWork | DeviceCopyWork | PointerChaseWork | HostStreamWork | BankConflictWork | DivergenceWork | OccupancyWork | CapacityWork | ContextMemoryWork | HostLinkWork | PeerLinkWork | PeerMatrixWork | CollectiveWork | ExternalToolWork | RdmaLinkWork | StorageWork | StorageToDeviceWork | LaunchLatencyWork | EnqueueLatencyWork | PowerWork | OptimizerStepWork | GradientAccumulationWork | GradientCompressionWork | TrainingStepWork | DecodeLoopWork;
    /** Unit of the figure. */
    metric: BenchmarkMetric;
    /** Direction in which a figure is better. */
    direction: BetterDirection;
    /** Amount of work of one sample, in words and symbols. */
    formula: string;
    /** Number of processes that measure it one after the other. */
    repeats?: number;
    /** True if all accelerators of the node measure it at the same time; the slowest gives the figure. */
    concurrent?: boolean;
    sampling?: BenchmarkSampling;
    /** Time after which its process is killed. */
    timeout_seconds?: number;
    windows?: Array<PublishedRange>;
}

/** The runs of one benchmark on equal hardware. */
export interface BenchmarkComparison {
    /** Name of the benchmark. */
    benchmark: string;
    /** Quantity and unit of the figures. */
    metric: BenchmarkMetric;
    /** Direction in which a figure is better. */
    direction: BetterDirection;
    /** Digest of the work, which is the same in all runs. */
    work_sha256: string;
    /** Name of the hardware by its driver. */
    hardware?: string;
    /** Digest of the numbers that identify the hardware; absent if they are unknown: one node is compared. */
    hardware_sha256?: string;
    /** Run that the others are compared with. */
    baseline: BenchmarkComparisonRun;
    /** Runs in the order of time. */
    runs: Array<BenchmarkComparisonRun>;
}

/** One run beside the baseline. */
export interface BenchmarkComparisonRun {
    /** Benchmark run. */
    run_id: string;
    /** Node that measured it. */
    node_id: string;
    /** Version of the suite. */
    suite_version: number;
    /** Time at which the first of its results came. */
    received_at: string;
    /** Middle figure of the repeats. */
    value: number;
    /** Lowest figure of the repeats. */
    lowest: number;
    /** Highest figure of the repeats. */
    highest: number;
    /** Highest minus lowest figure, divided by the value; absent with one repeat. */
    relative_spread?: number;
    /** Number of repeats that count. */
    repeats: number;
    /** Lowest sample of all repeats: seconds of one execution, or a reading. */
    sample_minimum: number;
    /** Median of the medians of the repeats. */
    sample_median: number;
    /** Highest upper quartile of the repeats. */
    sample_q3: number;
    /** True if the clocks of both runs are known, so that times are compared in cycles too. */
    has_clocks: boolean;
    /**
     * Verdict on the run: `slower` or `faster` where the samples from minimum to upper quartile lie apart,
     * in time and in cycles; `same` where each median lies among the samples of the other; otherwise
     * `ambiguous`. For readings, `lower` or `higher`.
     */
    verdict: BenchmarkComparisonRunVerdict;
    /** Value divided by that of the baseline, minus 1. */
    relative_change?: number;
}

export type BenchmarkComparisonRunVerdict = 'slower' | 'same' | 'faster' | 'lower' | 'higher' | 'ambiguous';

/** The figure of one benchmark in a run, computed by the service from the raw samples. */
export interface BenchmarkFigure {
    /** Name in the suite. */
    benchmark: string;
    /** Quantity and unit of the figure. */
    metric: BenchmarkMetric;
    /** Direction in which a figure is better. */
    direction: BetterDirection;
    /** Middle figure of the repeats. */
    value: number;
    /** Lowest figure of the repeats. */
    lowest: number;
    /** Highest figure of the repeats. */
    highest: number;
    /** Highest minus lowest figure, divided by the value: its uncertainty. Absent with one repeat. */
    relative_spread?: number;
    /** Number of repeats that count. */
    repeats: number;
    /** Worst verdict on a repeat; absent until all repeats are validated. */
    result_verdict?: ResultVerdict;
}

/** The right of one node to run one suite until it ends or is renewed. */
export interface BenchmarkLease {
    /** Id of the benchmark run. */
    id: string;
    /** Fencing token, which rises with every grant; every write under the lease carries it. */
    fencing_token: number;
    /** Random value that goes into every result, to show that it was measured under this lease. */
    nonce: string;
    /** Number of grants of the run so far. */
    attempt: number;
    /** Duration of the lease, counted from the time at which the request was sent. */
    lease_seconds: number;
    /** Time after which the node renews the lease. */
    renew_seconds: number;
    /** Longest duration of an attempt. */
    runtime_seconds: number;
    /** Seed of the input data of the benchmarks. */
    seed: number;
    /** Suite to run: data, never code. */
    suite: BenchmarkSuite;
    /** Time of the service. */
    server_time: string;
}

/** Samples, and the method by which they were taken. */
export interface BenchmarkMeasurement {
    /** Library that ran, such as cublasLt 13.0.2 or own kernel stream_copy. */
    library: string;
    /** Distribution of the input, such as normal(0, 1). */
    data: string;
    /** Timer of the samples. */
    timer: BenchmarkMeasurementTimer;
    /** Duration of the warm-up: the same work, run before the first sample. */
    warmup_seconds: number;
    /** Number of executions of the warm-up. */
    warmup_iterations: number;
    /** Reason that there are no more samples. */
    stop_reason: BenchmarkMeasurementStopReason;
    /** Algorithm that the library chose. */
    algorithm?: string;
    /** Mode of the multiplications, such as tf32. */
    math_mode?: string;
    /** Type of the accumulator. */
    accumulation?: string;
    /** Number of executions in one sample. */
    inner_iterations?: number;
    /** Time of each sample, in the order in which they were taken. */
    samples_ns?: Array<number>;
    /** Readings of a figure that is no time: bytes or watts. */
    readings?: Array<number>;
    discarded?: Array<DiscardedSamples>;
    /** Memory that one execution touches; 0 if it is not counted. */
    working_set_bytes?: number;
    /** Bytes that are read before each sample, so that no input is cached. */
    flush_bytes?: number;
    /** Number of sets of input that take turns, so that none of them is cached. */
    rotated_buffers?: number;
    /** True if the executions were launched as a graph. */
    uses_graph?: boolean;
    /** Number of threads of the host that did the work, if the host is measured. */
    threads?: number;
    /** Duration of the first execution, with its preparation. */
    first_call_seconds?: number;
    correctness?: CorrectnessCheck;
    telemetry?: DeviceTelemetry;
}

export type BenchmarkMeasurementStopReason = 'spread' | 'time_limit' | 'sample_limit' | 'single';

export type BenchmarkMeasurementTimer = 'cuda_event' | 'host_clock' | 'nvml';

export type BenchmarkMetric = 'flops_per_second' | 'bytes_per_second' | 'seconds' | 'bytes' | 'watts';

export type BenchmarkName = string;

/** Progress of one benchmark. */
export interface BenchmarkProgress {
    /** Name of the benchmark. */
    benchmark: string;
    /** State of the benchmark. */
    state: BenchmarkProgressState;
    /** Number of repeats that have ended. */
    repeat?: number;
    /** Figure of the benchmark, or the reason that there is none. */
    detail?: string;
}

export type BenchmarkProgressState = 'waiting' | 'running' | 'done' | 'failed' | 'skipped';

/** A figure that is worse than those before it on its node, or than those of equal nodes. */
export interface BenchmarkRegression {
    /** Figures that it is compared with: earlier runs of the node, or other nodes with equal hardware. */
    against: BenchmarkRegressionAgainst;
    /** Name of the benchmark. */
    benchmark: string;
    /** Quantity and unit of the figures. */
    metric: BenchmarkMetric;
    /** Direction in which a figure is better. */
    direction: BetterDirection;
    /** Digest of the work, which is the same in all runs. */
    work_sha256: string;
    /** Name of the hardware by its driver. */
    hardware?: string;
    /** Node that is worse. */
    node_id: string;
    /** Its last run of the benchmark. */
    run_id: string;
    /** Time at which the first result of that run came. */
    received_at: string;
    /** Figure of that run. */
    value: number;
    /** Node that it is compared with: itself, or the middle one of the others. */
    baseline_node_id: string;
    /** Run that it is compared with: the middle one of the earlier ones, or the last one of that node. */
    baseline_run_id: string;
    /** Figure of the baseline. */
    baseline_value: number;
    /** Number of earlier runs, or of other nodes, of which the baseline is the middle one. */
    compared: number;
    /** Value divided by that of the baseline, minus 1. */
    relative_change: number;
    /** True if both clocks are known, so that a lower clock can be told from slower work. */
    has_clocks: boolean;
}

export type BenchmarkRegressionAgainst = 'earlier_runs' | 'other_nodes';

/** Benchmark that measures worse than before, or worse than on equal nodes. */
export interface BenchmarkRegressionEvent {
    /** Id of the node. */
    node_id: string;
    /** Name of the benchmark. */
    benchmark: string;
    /** Metric of the benchmark. */
    metric: string;
    /** Results that it is compared with: earlier ones of the node, or those of nodes with equal hardware. */
    against: BenchmarkRegressionAgainst;
    /** Share by which the figure is worse. Negative if a lower figure is worse. */
    relative_change: number;
    /** Id of the result that is worse. */
    result_id: string;
}

/** Regressions, the largest change first. */
export interface BenchmarkRegressionList {
    /** Regressions. */
    items: Array<BenchmarkRegression>;
    /** Number of accepted and suspect results that the answer rests on, the last ones. */
    results_considered: number;
    /** Time at which the first of these results came. */
    since?: string;
}

/** Message about a benchmark that measures worse. */
export interface BenchmarkRegressionMessage {
    /** Type of the event. */
    type: 'benchmark.regressed';
    /** Time of the event. */
    timestamp: string;
    /** Members of the event. */
    data: BenchmarkRegressionEvent;
}

/** One repeat of one benchmark. */
export interface BenchmarkResult {
    id: string;
    /** Digest of the bytes that the node sent. */
    content_sha256: string;
    /** Benchmark run that the result names. */
    run_id: string;
    /** Attempt of the run. */
    attempt: number;
    /** Fencing token of the lease that the result names. */
    fencing_token: number;
    /** Name in the suite. */
    benchmark: string;
    /** Number of the repeat, counted from 1. */
    repeat: number;
    /**
     * Standing of the attempt: `current` if it counts for its run, `late` if its lease had ended when the
     * result came or another attempt counts, `unknown` if it was not granted.
     */
    lease: ResultLeaseStanding;
    /** Result that came first for the same repeat of the same attempt; this one does not count. */
    conflicts_with?: string;
    /** True if figures are computed from the result. */
    is_counted: boolean;
    /** Node that measured it. */
    node_id: string;
    /** Suite of the benchmark. */
    suite_id: string;
    /** Version of the suite. */
    suite_version: number;
    /** Kind of device that was measured. */
    device: DeviceKind;
    /** Name of the hardware by its driver. */
    hardware?: string;
    /** Digest of the numbers that identify the hardware: results with equal digests can be compared. */
    hardware_sha256?: string;
    /** Digest of the work: results of equal work can be compared. */
    work_sha256: string;
    /** Quantity and unit of the figure. */
    metric: BenchmarkMetric;
    /** Direction in which a figure is better. */
    direction: BetterDirection;
    /** Status of the measurement. */
    status: BenchmarkResultStatus;
    /** Reason that there is no measurement. */
    reason?: string;
    /** Figure that the service computes from the raw samples. */
    figure?: number;
    /** Statistics that the service computes from the raw samples. */
    summary?: SampleSummary;
    /** Conditions of the measurement. */
    conditions: MeasurementConditions;
    /** Start by the clock of the node. */
    started_at: string;
    /** End by the clock of the node. */
    finished_at: string;
    /** Time of receipt by the clock of the service. */
    received_at: string;
    /** Validation of the result; absent until it is done, and where nothing was measured. */
    validation?: BenchmarkResultValidation;
}

/** A page of results. */
export interface BenchmarkResultPage {
    /** Results, the last received first. */
    items: Array<BenchmarkResult>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Receipt of a stored result. The node may delete the result if the digest matches its own. */
export interface BenchmarkResultReceipt {
    /** Id of the stored result. */
    result_id: string;
    /** Digest of the stored bytes. */
    content_sha256: string;
    /**
     * Standing of the lease. A `late` result was measured under a lease that had ended: it is stored, but
     * does not count yet.
     */
    lease: ResultLeaseStanding;
}

/** One repeat of one benchmark. Never changed once it is stored. */
export interface BenchmarkResultReport {
    /** UUIDv7 that the node makes. */
    result_id: string;
    /** Benchmark run of the lease. */
    run_id: string;
    /** Fencing token of the lease. */
    fencing_token: number;
    /** Attempt of the lease. */
    attempt: number;
    /** Nonce of the lease. */
    nonce: string;
    /** Node that measured it. */
    node_id: string;
    /** Digest of the id of the boot of the host. */
    boot_id_sha256: string;
    /** Digest of the inventory of the node. */
    inventory_sha256: string;
    /** Version of the worker. */
    worker_version: string;
    /** Suite of the benchmark. */
    suite_id: string;
    /** Version of the suite. */
    suite_version: number;
    /** Seed of the input data, from the lease. */
    seed: number;
    /** Number of the repeat, counted from 1. */
    repeat: number;
    benchmark: Benchmark;
    /** Kind of device that was measured. */
    device: DeviceKind;
    /** Start by the clock of the node. */
    started_at: string;
    /** End by the clock of the node. */
    finished_at: string;
    /** Start by a clock of the node that is never set. */
    started_monotonic_seconds: number;
    /** End by the same clock. */
    finished_monotonic_seconds: number;
    /** Status of the repeat: `ok` has a measurement, every other status a failure. */
    status: BenchmarkResultStatus;
    schema_version?: 1;
    /** Index of the accelerator in the inventory; absent on a node without accelerators. */
    accelerator_index?: number;
    /** Number of accelerators that were measured at the same time, this one included. */
    concurrent_accelerators?: number;
    /** Clock of the service minus the clock of the node. */
    clock_offset_seconds?: number;
    failure?: MeasurementFailure;
    measurement?: BenchmarkMeasurement;
    software?: Array<NodeSoftware>;
    /** Environment variables that change a measurement, from a list of known names, in lower case. */
    environment?: Record<string, unknown>;
    gaps?: Array<NodeGap>;
}

export type BenchmarkResultStatus = 'ok' | 'failed' | 'timeout' | 'unsupported';

/** Verdict on a result as a measurement of its device, with its reasons. */
export interface BenchmarkResultValidation {
    /**
     * Verdict on the result. Only an `accepted` result enters a calibration. A `suspect` result is
     * measured again, and is accepted once two of three runs agree; an `evidence_only` result is true, but
     * not of the device alone; a `rejected` result cannot be true.
     */
    verdict: ResultVerdict;
    /** Checks that did not pass. */
    findings: Array<ValidationFinding>;
    /** Checks that could not be made. */
    unchecked: Array<UncheckedValidationRule>;
    /** Other runs of the same benchmark on the same device with the same figure. */
    agreeing_run_ids: Array<string>;
    /** Version of the rules. */
    rules_version: number;
    /** Time of the validation by the clock of the service. */
    validated_at: string;
}

/** A suite, run once on one node. */
export interface BenchmarkRun {
    id: string;
    /** Suite of the run. */
    suite_id: string;
    /** Version of the suite when the run was requested. */
    suite_version: number;
    /** Kind of device that the suite is for. */
    device: DeviceKind;
    /** Seed of the input data of the benchmarks. */
    seed: number;
    /** Node of the run: the requested node, or the last that took it. */
    node_id?: string;
    note?: string;
    /** Run whose suspect results it measures again; validation requests at most two. */
    re_run_of?: string;
    /** State of the run. A `dead` run was lost too often; its results so far are kept. */
    state: BenchmarkRunState;
    /** Number of times that a node has taken the run. */
    attempt: number;
    /** True if the cancellation of the run is requested. */
    cancel_requested: boolean;
    /** Progress of each benchmark, as the node reports it. */
    progress: Array<BenchmarkProgress>;
    /** Code of the reason that the run failed. */
    reason?: string;
    /** Reason in words. */
    detail?: string;
    created_at: string;
    /** Time at which a node took the run. */
    begun_at?: string;
    /** Time at which the run ended. */
    finished_at?: string;
    /** Figures of the latest attempt that has measurements; absent from lists. */
    figures?: Array<BenchmarkFigure>;
}

/** A page of runs. */
export interface BenchmarkRunPage {
    /** Runs, the newest first. */
    items: Array<BenchmarkRun>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** A request for a benchmark run. */
export interface BenchmarkRunRequest {
    /** Suite to run. */
    suite_id: string;
    /** Node that runs the suite. Defaults to the first free node with the device of the suite. */
    node_id?: string;
    /** Purpose of the run. */
    note?: string;
}

export type BenchmarkRunState = 'waiting' | 'running' | 'completed' | 'failed' | 'cancelled' | 'dead';

/** Rules for the warm-up and the number of samples of a measurement. */
export interface BenchmarkSampling {
    /** Duration of the warm-up: the same work, run before the first sample. */
    warmup_seconds?: number;
    /**
     * Longest duration of the warm-up. If it is longer than `warmup_seconds`, the warm-up goes on until
     * rate and temperature are steady.
     */
    most_warmup_seconds?: number;
    /** Least number of samples. */
    least_samples?: number;
    /** Least sum of the samples. */
    least_seconds?: number;
    /** Interquartile range, as a share of the median, at which there are enough samples. */
    relative_spread?: number;
    /** Largest number of samples. */
    most_samples?: number;
    /** Longest sum of the samples, even if the spread is larger; the result states it. */
    most_seconds?: number;
}

/** Benchmarks that one node runs under one lease. */
export interface BenchmarkSuite {
    id: string;
    /** Version of the suite, which rises when its measurements change. */
    version: number;
    /** Title of the suite. */
    title: string;
    /** Kind of device that it runs on. */
    device: DeviceKind;
    benchmarks: Array<Benchmark>;
}

/** A page of benchmark suites. */
export interface BenchmarkSuitePage {
    /** Suites in order of id. */
    items: Array<BenchmarkSuite>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

export type BetterDirection = 'higher' | 'lower';

/** A tag of a bill, key and value. */
export interface BillTagMatch {
    /** Key as it stands in the bill. */
    key: string;
    /** Value in full. */
    value: string;
}

/** Demand that a charge bills. */
export interface BilledDemand {
    /** Name of the charge. */
    charge: string;
    /** Demand after floors and ratchets. */
    kw: number;
}

/** The rule by which a metered peak becomes the demand that is billed: the highest of all members. */
export interface BillingDemand {
    /** Least demand that is billed, in kW. */
    minimum_kw?: number;
    /** Contracted capacity in kW, billed whether it is used or not. */
    contract_kw?: number;
    /** Shares of earlier peaks. */
    ratchets?: Array<DemandRatchet>;
    /** Share of the kVA at the peak. */
    apparent_power_share?: number;
    /** Power factor below which demand is multiplied by 1 + threshold - power factor. */
    power_factor_threshold?: number;
    /** Calendar months in which the period's own peak counts. Defaults to all months. */
    own_peak_months?: Array<number>;
}

/** A billing period on the clock of the site. */
export interface BillingPeriod {
    /** First day of the period. */
    start_date: string;
    /** Day after the last day of the period. */
    end_date: string;
}

/** Totals of a billing period. */
export interface BillingPeriodTotal {
    /** Billing period of the totals. */
    billing_period: BillingPeriod;
    /** Energy that is billed. */
    energy_kwh: number;
    /** Highest demand of the meter, including the baseline load if there is one. */
    peak_kw: number;
    /** Sum of the charges of the period. */
    total: MoneyAmount;
    /** True if the billing period lies after the run. */
    after_run?: boolean;
}

/** Layers that repeat together: the unit of recomputation and of a pipeline stage. */
export interface BlockLayer {
    kind: 'block';
    /** Layers of one block, in order. */
    layers: Array<SimpleLayer>;
    /** True if it takes the weights of an earlier block of the same layers. */
    reused?: boolean;
    /** Number of times that the layer stands in a row. */
    count?: number;
    /** Inputs whose positions it runs over, one after the other. Defaults to the first input. */
    over?: Array<string>;
    /** Inputs that its cross-attention reads. */
    reads?: Array<string>;
    /**
     * Inputs whose keys and values its other attention sees beside its own (joint attention of two
     * streams).
     */
    joins?: Array<string>;
    /** Unit that it runs for: each position, or each sample once, such as a time embedding. */
    per?: BlockLayerPer;
    /**
     * True if it counts as depth: a unit of recomputation and of a pipeline stage. A stem, a projector or
     * a transform does not.
     */
    unit?: boolean;
}

export type BlockLayerPer = 'position' | 'sample';

/** C = A B of random numbers of 8 or 4 bits with a scale for each block, and a result of bf16. */
export interface BlockScaledGemmWork {
    kind: 'block_scaled_gemm';
    /**
     * `mxfp8`: 8 bits, and a power of two for each 32 elements. `nvfp4`: 4 bits, and a number of 8 bits
     * for each 16 elements. `fp8_blocks`: 8 bits, and a number of 32 bits for each 128 elements of A and
     * each block of 128 x 128 of B, as DeepSeek-V3 has them.
     */
    number_format: BlockScaledGemmWorkNumberFormat;
    /** Rows of A and C. */
    m: number;
    /** Columns of B and C. */
    n: number;
    /** Columns of A and rows of B. */
    k: number;
}

export type BlockScaledGemmWorkNumberFormat = 'mxfp8' | 'nvfp4' | 'fp8_blocks';

/** Limit of the speed. `axis` is the axis of data, algorithm and machine. */
export interface Bottleneck {
    /** The limit that sets most of the time. */
    bound: BottleneckBound;
    /** Place to look for a remedy. */
    axis: BottleneckAxis;
    /** Changes worth trying. */
    advice: Array<EstimateAdvice>;
}

export type BottleneckAxis = 'algorithm' | 'machine' | 'data';

export type BottleneckBound = 'compute' | 'memory' | 'communication' | 'waiting' | 'host' | 'data';

/** Point at which a purchase has paid for itself against the rent, under the named assumptions. */
export interface BreakEven {
    /** Costs that are set against the rent. Running costs are maintenance, staff and space. */
    counts: Array<BreakEvenCounts>;
    /** Share of the time in which the devices run such runs, one after another. */
    utilization: number;
    /** Runs until the purchase has paid for itself. Absent if it never does. */
    runs?: QuantityEstimate;
    /** Months (730.5 hours) until the purchase has paid for itself. */
    months?: QuantityEstimate;
}

export type BreakEvenCounts = 'purchase' | 'running_costs' | 'financing' | 'electricity';

/** A budget with its latest commitments. */
export interface Budget {
    /** Id of the budget. */
    id: string;
    /** Display name of the budget. */
    name: string;
    /** Note on the budget. */
    note?: string;
    /** Id of the cost centre. */
    cost_center_id: string;
    /** First day of the period, UTC. */
    starts_on: string;
    /** Last day of the period, UTC. */
    ends_on: string;
    /** Amount of the budget. */
    amount: MoneyAmount;
    /** Shares of the amount at which an event is sent. */
    thresholds: Array<number>;
    /** Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning. */
    enforcement: BudgetEnforcement;
    /** Amount that approvals have committed. */
    committed: MoneyAmount;
    /** Amount that was spent, by imported actuals (effective cost). */
    spent: MoneyAmount;
    /** Amount that is committed and not spent yet, computed for each quote separately. */
    outstanding: MoneyAmount;
    /** Amount less spent and outstanding. For each quote the larger of committed and spent counts. */
    remaining: MoneyAmount;
    /** Figures that are not included, and why. */
    gaps: Array<EstimateGap>;
    /** Number of this version; the ETag of the resource. */
    version: number;
    /** Time at which the budget was created. */
    created_at: string;
    /** Newest 100 commitments, the newest first, including released ones. */
    commitments: Array<BudgetCommitment>;
}

/** An amount of one currency. */
export interface BudgetAmount {
    /** Decimal number as text, such as "250000". */
    amount: string;
    /** ISO 4217 code. */
    currency_code: string;
}

/** Amount that an approval commits from a budget. */
export interface BudgetCommitment {
    /** Id of the approval. */
    approval_id: string;
    /** Id of the quote. */
    quote_id: string;
    /** Version of the quote. */
    quote_version: number;
    /** Total of the quote. Absent if it is unknown. */
    quoted?: MoneyAmount;
    /**
     * Part of the total that falls into the period, in the currency of the budget. Absent if there is no
     * exchange rate.
     */
    amount?: MoneyAmount;
    /** Units of the budget's currency for one unit of the quote's currency at the time of the approval. */
    rate?: string;
    /** Day of the exchange rate. */
    rate_on?: string;
    /** Time of the commitment. */
    committed_at: string;
    /** Time at which the commitment was released because the approval was cancelled, closed or superseded. */
    released_at?: string;
}

/** Effect of a quote on a budget of its cost centre. Amounts are in the currency of the budget. */
export interface BudgetEffect {
    /** Id of the budget. */
    budget_id: string;
    /** Part of the quote's total that falls into the period of the budget. */
    amount?: MoneyAmount;
    /** Amount that is left without the quote. */
    remaining_before?: MoneyAmount;
    /** Amount that is left with the quote. Below 0 if the budget is exceeded. */
    remaining_after?: MoneyAmount;
    /** Reason why the effect is unknown: TOTAL_UNKNOWN or RATE_UNKNOWN. */
    unknown?: string;
    /** True if the quote exceeds the budget, or if the effect is unknown. */
    is_exceeded: boolean;
    /** True if the budget refuses approvals that exceed it. */
    blocks: boolean;
}

export type BudgetEnforcement = 'warn' | 'block';

/** Budget of an event. */
export interface BudgetEvent {
    /** Id of the budget. */
    budget_id: string;
    /** Id of the cost centre of the budget. */
    cost_center_id: string;
    /** Amount of the budget. */
    amount: MoneyAmount;
    /** Amount that approvals have committed. */
    committed: MoneyAmount;
    /** Amount that was spent, by imported actuals. */
    spent: MoneyAmount;
    /** Share of the budget that was reached. */
    threshold_share?: number;
    /** Id of the approval by which it was reached. */
    approval_id?: string;
}

/** Message about a budget. */
export interface BudgetMessage {
    /** Type of the event. */
    type: BudgetMessageType;
    /** Time of the event. */
    timestamp: string;
    /** Members of the event. */
    data: BudgetEvent;
}

export type BudgetMessageType = 'budget.threshold_reached' | 'budget.exceeded';

/** A page of budgets. */
export interface BudgetPage {
    /** Budgets in order of id. */
    items: Array<BudgetSummary>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface BudgetPatch {
    /** Display name of the budget. */
    name?: string;
    /** Note on the budget. */
    note?: string | null;
    /** Amount of the budget. Its currency cannot change. */
    amount?: BudgetAmount;
    /** Shares of the amount. When so much is committed or spent, an event is sent once. */
    thresholds?: Array<number>;
    /** Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning. */
    enforcement?: BudgetEnforcement;
}

/**
 * Amount that a cost centre may spend in a period.
 *
 * An approval commits the total of its quote. A run over several periods is divided by the time in
 * each, whether it was approved before or after the budget was created.
 */
export interface BudgetRequest {
    /** Display name of the budget. */
    name: string;
    /** Amount of the budget. Its currency cannot change. */
    amount: BudgetAmount;
    /** Id of the budget. */
    id: string;
    /** Id of the cost centre. */
    cost_center_id: string;
    /** First day of the period, UTC. */
    starts_on: string;
    /** Last day of the period, UTC. */
    ends_on: string;
    /** Note on the budget. */
    note?: string;
    /** Shares of the amount. When so much is committed or spent, an event is sent once. */
    thresholds?: Array<number>;
    /** Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning. */
    enforcement?: BudgetEnforcement;
}

/** A budget in lists. */
export interface BudgetSummary {
    /** Id of the budget. */
    id: string;
    /** Display name of the budget. */
    name: string;
    /** Note on the budget. */
    note?: string;
    /** Id of the cost centre. */
    cost_center_id: string;
    /** First day of the period, UTC. */
    starts_on: string;
    /** Last day of the period, UTC. */
    ends_on: string;
    /** Amount of the budget. */
    amount: MoneyAmount;
    /** Shares of the amount at which an event is sent. */
    thresholds: Array<number>;
    /** Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning. */
    enforcement: BudgetEnforcement;
    /** Amount that approvals have committed. */
    committed: MoneyAmount;
    /** Amount that was spent, by imported actuals (effective cost). */
    spent: MoneyAmount;
    /** Amount that is committed and not spent yet, computed for each quote separately. */
    outstanding: MoneyAmount;
    /** Amount less spent and outstanding. For each quote the larger of committed and spent counts. */
    remaining: MoneyAmount;
    /** Figures that are not included, and why. */
    gaps: Array<EstimateGap>;
    /** Number of this version; the ETag of the resource. */
    version: number;
    /** Time at which the budget was created. */
    created_at: string;
}

/** Members of a budget that can change. */
export interface BudgetTerms {
    /** Display name of the budget. */
    name: string;
    /** Note on the budget. */
    note?: string;
    /** Amount of the budget. Its currency cannot change. */
    amount: BudgetAmount;
    /** Shares of the amount. When so much is committed or spent, an event is sent once. */
    thresholds?: Array<number>;
    /** Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning. */
    enforcement?: BudgetEnforcement;
}

export type CachePrecision = 'fp32' | 'fp16' | 'bf16' | 'fp8' | 'int8' | 'int4' | 'q8_0' | 'q5_0' | 'q4_0';

/** Bandwidth of arrays that stay in the last-level cache: the control for a leak of it into others. */
export interface CacheStreamWork {
    kind: 'cache_stream';
    /** Access to the array. */
    pattern: CacheStreamWorkPattern;
    /** Size of each array, far below that of the cache. */
    array_bytes: number;
    /** Times that one execution goes over it. */
    passes: number;
}

export type CacheStreamWorkPattern = 'read' | 'copy';

/** One constant and its evidence. */
export interface CalibratedFigure {
    /** Group, quantity and number format, such as `operators.matrix_peak.bf16`. */
    name: string;
    /** Unit of the figure. */
    unit: string;
    /** Median over the runs. */
    value: number;
    /** Smallest measured value. */
    low: number;
    /** Largest measured value. */
    high: number;
    /** Number of runs. */
    runs?: number;
    /** Limit of the data sheet, in the same unit. Absent if the figure is not a share of a limit. */
    limit?: number;
    /** Value over limit, which planning uses. */
    share?: number;
    /** Source of the measurement. */
    source?: string;
    /** Derivation of the figure from the measurements. */
    method?: string;
    /** Names of the benchmarks. */
    benchmarks?: Array<BenchmarkName>;
    /** Accepted results that the figure was derived from. */
    result_ids?: Array<string>;
    /** Runs of those results. */
    run_ids?: Array<string>;
    /** Median of each condition of the measurements, or the text that they agree on. */
    conditions?: Record<string, unknown>;
}

/** Figures of one device, derived once and never changed. */
export interface Calibration {
    /** Id of the calibration, as in `evidence.calibration_ids` of answers. */
    id: string;
    /** Sequence number among the calibrations of one node and hardware. 1 for an import. */
    number: number;
    /** Origin of the figures: benchmarks of a node, or imported measurements. */
    origin: CalibrationOrigin;
    /** State of the calibration. Only an `active` one is used; a newer one supersedes it. */
    state: CalibrationState;
    /** Reason of the withdrawal. */
    reason?: string;
    /** Kind of device that was measured. A calibration of a processor is not used for accelerators. */
    device: DeviceKind;
    /** Node that measured the device. */
    node_id?: string;
    /** Name of the device, as the driver reports it. */
    hardware?: string;
    /** SHA-256 of the numbers that identify the device. */
    hardware_sha256?: string;
    /** Accelerator of the catalog that the device is. Absent if none has its name, memory and power limit. */
    accelerator_id?: string;
    /** Architecture of that accelerator. */
    generation?: string;
    /** Enforced power limit. */
    power_limit_watts?: number;
    /** Major version of the driver. */
    driver_major?: number;
    /** Import that the figures come from. Present for imported figures. */
    rests_on?: Record<string, unknown>;
    /** Time at which the calibration was made. */
    created_at: string;
    /** Time at which the calibration was superseded or withdrawn. */
    ended_at?: string;
}

/** A calibration with every figure and its evidence. */
export interface CalibrationDetails {
    /** Id of the calibration, as in `evidence.calibration_ids` of answers. */
    id: string;
    /** Sequence number among the calibrations of one node and hardware. 1 for an import. */
    number: number;
    /** Origin of the figures: benchmarks of a node, or imported measurements. */
    origin: CalibrationOrigin;
    /** State of the calibration. Only an `active` one is used; a newer one supersedes it. */
    state: CalibrationState;
    /** Reason of the withdrawal. */
    reason?: string;
    /** Kind of device that was measured. A calibration of a processor is not used for accelerators. */
    device: DeviceKind;
    /** Node that measured the device. */
    node_id?: string;
    /** Name of the device, as the driver reports it. */
    hardware?: string;
    /** SHA-256 of the numbers that identify the device. */
    hardware_sha256?: string;
    /** Accelerator of the catalog that the device is. Absent if none has its name, memory and power limit. */
    accelerator_id?: string;
    /** Architecture of that accelerator. */
    generation?: string;
    /** Enforced power limit. */
    power_limit_watts?: number;
    /** Major version of the driver. */
    driver_major?: number;
    /** Import that the figures come from. Present for imported figures. */
    rests_on?: Record<string, unknown>;
    /** Time at which the calibration was made. */
    created_at: string;
    /** Time at which the calibration was superseded or withdrawn. */
    ended_at?: string;
    /** Constants of the device. */
    figures: Array<CalibratedFigure>;
    /** Lines fitted to the times of collectives. */
    fits: Array<CollectiveFit>;
    /** Measured answers to whole questions. */
    answers: Array<EndToEndMeasurement>;
}

/** Takes the achieved share of the limits from one calibration, else from the reference set. */
export interface CalibrationEfficiency {
    source: 'calibration';
    /** Id of a calibration that is in use. */
    id: string;
}

export type CalibrationOrigin = 'benchmarks' | 'import';

/** A page of calibrations. */
export interface CalibrationPage {
    /** Calibrations, the newest first. */
    items: Array<Calibration>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

export type CalibrationState = 'active' | 'superseded' | 'withdrawn';

/** Reason why a calibration no longer counts. */
export interface CalibrationWithdrawalRequest {
    /** Finding that led to the withdrawal. */
    reason: string;
}

/** Request for a quote on a row of a plan. Its requests are answered anew under the present catalog. */
export interface CandidateQuoteRequest {
    /** Name of the quote. */
    name: string;
    /** Id of the cost centre that pays. */
    cost_center_id?: string;
    /** Note for the approvers. */
    note?: string;
    /** Days in which the quote may be approved. A price that ends earlier shortens the validity. */
    valid_for_days?: number;
    /** Id of the plan. */
    plan_id: string;
    /** Rank of the row. */
    candidate: number;
}

/** Terms of devices that are paid in whole blocks of time, in advance. */
export interface CapacityBlockTerms {
    /** Length of one block, such as 24. */
    block_hours: number;
}

/** The largest block of device memory that a process can allocate. */
export interface CapacityWork {
    kind: 'capacity';
}

/** Emissions of the run. */
export interface CarbonEmissions {
    /** Emissions at the average intensity of the grid. */
    location_based_kg_co2e?: QuantityEstimate;
    /** Method of the location-based figure. */
    location_based_method?: CarbonMethod;
    /**
     * Emissions that the run changes, at the marginal intensity of the grid. Reported beside the other
     * figures, not part of them.
     */
    marginal_kg_co2e?: QuantityEstimate;
    /** Method of the marginal figure. */
    marginal_method?: CarbonMethod;
    /** Emissions at the intensity of the contracted electricity. */
    market_based_kg_co2e?: QuantityEstimate;
    /** Method of the market-based figure. */
    market_based_method?: CarbonMethod;
    /** Market-based emissions by instrument, at the middle of the interval of the energy. */
    market_based_lines?: Array<MarketBasedEmissionsLine>;
    /** Emissions of making the equipment that are allocated to the run. */
    embodied_kg_co2e?: QuantityEstimate;
    /** Embodied emissions by kind of machine. */
    embodied_lines?: Array<EmbodiedEmissionsLine>;
    /** Emissions by functional unit. */
    software_carbon_intensity?: Array<SoftwareCarbonIntensity>;
}

export type CarbonIntensitySeriesInput = HoursOfYearIntensityInput | MonthHoursIntensityInput | IntervalIntensityInput;

/** Method of an emission figure. Figures of different methods do not add up. */
export interface CarbonMethod {
    /** Rate of the average kWh, or of one additional kWh. */
    emission_rate: EmissionRate;
    /** Emissions that are counted. Absent if the request gives a bare number. */
    accounting?: EmissionAccounting;
    /** True if the figure sums the intervals of the run, false if it is a mean intensity times its energy. */
    in_time: boolean;
}

/** An accelerator of the catalog. */
export interface CatalogAccelerator {
    source: 'catalog';
    /** The id of a catalog row, or one of its aliases. Case does not matter. */
    id: string;
}

/** A link of the catalog. */
export interface CatalogLink {
    source: 'catalog';
    /** The id of a catalog row, or one of its aliases. Case does not matter. */
    id: string;
}

/** A model of the catalog. */
export interface CatalogModel {
    source: 'catalog';
    /** The id of a catalog row, or one of its aliases. Case does not matter. */
    id: string;
}

/** Id of the copy. */
export interface CatalogRowCopyRequest {
    /** Id of the copy. Defaults to the id of the row: the copy of a shipped row then replaces it. */
    id?: string;
}

export type CatalogRowOrder = 'id' | '-id' | 'name' | '-name';

/** A tariff of the catalog. */
export interface CatalogTariff {
    source: 'catalog';
    /** The id of a catalog row, or one of its aliases. Case does not matter. */
    id: string;
}

export type ChargeProration = 'none' | 'thirty_days' | 'days_of_month';

/** Checkpoints of a training run: their size, their interval and the time that training stops for them. */
export interface CheckpointEstimate {
    /** Bytes of trained weights, master weights and optimizer states of the whole model, counted once. */
    bytes: number;
    /** Bytes that a saving device copies. */
    bytes_per_device: number;
    /** Time to write a checkpoint to the storage. */
    write_seconds?: QuantityEstimate;
    /** Time that training stops for each checkpoint. */
    stall_seconds?: QuantityEstimate;
    /** Training time from one checkpoint to the next. */
    interval_seconds?: QuantityEstimate;
    /** Optimizer steps from one checkpoint to the next. */
    interval_steps?: number;
}

/** Interval and method of saving the training state. */
export interface CheckpointingInput {
    /**
     * `synchronous` if training waits until the checkpoint is written, `asynchronous` if it waits only
     * until the checkpoint is copied to the host, `none` if the run saves nothing.
     */
    mode?: CheckpointingInputMode;
    /**
     * Training time from one checkpoint to the next. Without it and `interval_steps`, the interval that
     * loses the least time (Daly 2006), which needs `reliability`.
     */
    interval_seconds?: number;
    /** Optimizer steps from one checkpoint to the next. */
    interval_steps?: number;
    /** Write bandwidth of the storage for all devices together. */
    storage_bandwidth_bytes_per_second?: number;
    /** Read bandwidth of the storage for all devices after a failure. Defaults to the write bandwidth. */
    read_bandwidth_bytes_per_second?: number;
    /** Bandwidth of copies from one device to its host. Required for asynchronous checkpoints. */
    device_to_host_bandwidth_bytes_per_second?: number;
    /** True if every device saves a share of the state. Otherwise one device saves all of it. */
    sharded?: boolean;
    /** Measured time that training stops for a checkpoint. */
    stall_seconds?: number;
}

export type CheckpointingInputMode = 'synchronous' | 'asynchronous' | 'none';

/** Source of values of a row. */
export interface Citation {
    /** JSON Pointers of the values; the empty pointer is the whole row. */
    pointers: Array<string>;
    /** Document, publisher and way of access. */
    citation: string;
    url?: string;
    licence?: string;
    /** Date of the document, or of its reading. */
    as_of: string;
}

/** Equal accelerators in equal nodes. */
export interface ClusterInput {
    /** Accelerator of every device. */
    accelerator: AcceleratorReference;
    /** Devices of the whole cluster. */
    accelerator_count?: number;
    /**
     * Name of a system that the catalog lists for the accelerator, such as DGX H100 or p5.48xlarge.
     * Defaults to the first.
     */
    system?: string;
    /**
     * Id of a node of the tenant. Its measurements are preferred to those of other nodes of its kind. An
     * accelerator that is given by its figures has the measurements of this node.
     */
    node_id?: string;
    /**
     * Accelerators of one node. Defaults to those of the system, else of the vendor's reference server,
     * else 8.
     */
    accelerators_per_node?: number;
    /** Link between the devices of a node. Defaults to the link of the system in the catalog. */
    intra_node_link?: LinkReference;
    /** Link between nodes. Defaults to the link of the system in the catalog. */
    inter_node_link?: LinkReference;
    /**
     * Network interfaces that the devices of a node share. Defaults to those of the system, else to one a
     * device.
     */
    network_interfaces_per_node?: number;
    /** Power of a node without its accelerators. Defaults to a share of the power of the reference server. */
    host_power_watts?: number;
    host?: HostInput;
    /**
     * Driver version of the accelerators. Measurements under the same major version are preferred to
     * others.
     */
    driver_version?: string;
}

/** A price for the demand in the grid's own peak intervals (4CP in ERCOT, the triad in Great Britain). */
export interface CoincidentPeakCharge {
    /** Name that no other charge of the revision has. */
    name: string;
    /**
     * Calendar months in which it is charged: energy by its time, all else by the month in which most days
     * of the billing period lie. Defaults to all months.
     */
    months?: Array<number>;
    /** Annual kWh for each kW of the annual peak from which it is charged. */
    hours_of_use_from?: number;
    /** Annual kWh for each kW of the annual peak below which it is charged; absent without a bound. */
    hours_of_use_below?: number;
    kind: 'coincident_peak';
    /** Sets of peak intervals, each with its price. */
    sets: Array<CoincidentPeakSet>;
    /** Statistic of the demands in a set that is billed. */
    statistic?: CoincidentPeakChargeStatistic;
    /** True if it is billed in the calendar year after the peaks. */
    in_following_year?: boolean;
}

export type CoincidentPeakChargeStatistic = 'max' | 'mean';

/** Peak intervals of the grid: by hour of the local year (the first is 1) or by their start. */
export interface CoincidentPeakSet {
    /** Price per kW, once a year; absent where only the kW are wanted. */
    price?: string;
    /** Hours of the local year; 1 begins on 1 January 00:00. */
    hours_of_year?: Array<number>;
    /** Starts of the intervals. */
    starts?: Array<string>;
    /** Number of intervals that only the determinants of a load state. */
    given?: number;
    /** Length of the intervals that are given by their start. Defaults to the intervals of the load. */
    interval_minutes?: number;
}

/** Collective operation of a group of devices; point-to-point is between two of them. */
export type Collective = 'all_reduce' | 'all_gather' | 'reduce_scatter' | 'all_to_all' | 'broadcast' | 'point_to_point';

/** Line fitted to the times of one collective: seconds are alpha plus bytes over beta. */
export interface CollectiveFit {
    /** Collective operation that was timed. */
    collective: string;
    /** Devices that took part. */
    devices: number;
    /** Algorithm that the library was told to use. Absent if the library chose it. */
    algorithm?: string;
    /** Time of an empty message. */
    alpha_seconds: number;
    /** Rate of the additional bytes. */
    beta_bytes_per_second: number;
    /** Deviations from the line, by message size. */
    residuals: Array<MessageResidual>;
}

/** A collective of devices of one node. */
export interface CollectiveWork {
    kind: 'collective';
    /** Operation of the collective. */
    operation: CollectiveWorkOperation;
    /** Devices that take part. */
    devices: number;
    /** Payload as nccl-tests counts it: bytes of a device after a gather, before all others. */
    payload_bytes: number;
    /** Algorithm that the library is told to use. */
    algorithm?: CollectiveWorkAlgorithm;
    /** A process for each device, as frameworks have. Without it one process works on all devices. */
    processes?: 'per_device';
    /** A graph that replays several collectives, as engines do. Without it they are started one by one. */
    launch?: 'graph';
    /** True if the result takes the place of the input, as of tensors that are reduced. */
    in_place?: true;
}

export type CollectiveWorkAlgorithm = 'default' | 'ring' | 'tree' | 'nvls';

export type CollectiveWorkOperation = 'all_reduce' | 'all_gather' | 'reduce_scatter' | 'all_to_all' | 'broadcast' | 'send_receive';

/** Terms of devices that are paid for a term, whether they are used or not. */
export interface CommitmentTerms {
    /** Length of the term, such as 8766 for a year. */
    term_hours: number;
    /** Amount that is paid once for each device and term, in addition to the hourly price. */
    upfront_per_device?: MoneyInput;
    /**
     * Share of the term in which the devices are idle; the run bears its part of the used hours. By
     * default only the run uses the devices, and it bears whole terms.
     */
    idle_share?: number;
}

/** Attention over a window and over entries that each stand for several tokens (DeepSeek-V4). */
export interface CompressedAttentionLayer {
    kind: 'compressed_attention';
    /** Width of the residual stream. */
    hidden_size: number;
    /** Number of query heads. */
    query_heads: number;
    /** Width of the compressed query. */
    query_rank: number;
    /** Width of a head, and of the vector that is key and value of all heads. */
    head_size: number;
    /** Length of the sliding window in tokens, which are seen uncompressed. */
    window_tokens: number;
    /** Number of groups of heads that the output projects by themselves first. */
    output_groups: number;
    /** Width that each of these groups is projected to. */
    output_rank: number;
    /** Number of tokens that an entry stands for; absent where only the window is seen. */
    compression?: number;
    /** True if an entry is made of its own tokens and of those of the entry before. */
    overlapped?: boolean;
    /** Number of heads of the scorer that picks entries; absent where all are read. */
    index_heads?: number;
    /** Width of the heads of the scorer, and of the one key that it keeps for each entry. */
    index_head_size?: number;
    /** Number of entries that the scorer picks for each query. */
    index_entries?: number;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

/** Constant power. */
export interface ConstantBaselineLoad {
    /** Selects this shape. */
    kind: 'constant';
    /** Power at the meter. */
    kw: number;
}

/** Constant power. */
export interface ConstantDemand {
    kind: 'constant';
    /** Start of the first interval. Without an offset from UTC it is on the local clock. */
    starts_at: string;
    /** End of the last interval, as a time of the same kind as the start. */
    ends_at: string;
    /** Length of each interval, in minutes. */
    interval_minutes?: 5 | 15 | 30 | 60;
    /** Power at the meter. */
    kw: number;
}

/** Device memory that a process takes before it allocates anything. */
export interface ContextMemoryWork {
    kind: 'context_memory';
    /** True if the matrix library is initialised too. */
    with_library: boolean;
}

/** A convolution over frames, height and width; a kernel side of 1 leaves that axis out. */
export interface ConvolutionLayer {
    kind: 'convolution';
    /** Number of channels of the input. */
    input_channels: number;
    /** Number of channels of the output. */
    output_channels: number;
    /** Number of rows that the kernel sees. */
    kernel_height: number;
    /** Number of columns that the kernel sees. */
    kernel_width: number;
    /** Number of frames that the kernel sees. */
    kernel_frames?: number;
    /** Step of the kernel over height and width. */
    stride?: number;
    /** Step of the kernel over frames. */
    frame_stride?: number;
    /** Number of groups of channels that do not mix. */
    groups?: number;
    /** True if a learned vector is added. */
    bias?: boolean;
    /**
     * True if the border is covered: n cells become ceil(n / stride), otherwise floor((n - kernel) /
     * stride) + 1, as for patches.
     */
    padded?: boolean;
    /** True if it runs beside the other layers of its block, on the input of the block. */
    shortcut?: boolean;
    /** True if the stride enlarges the grid (transposed convolution). */
    upsamples?: boolean;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

/** Comparison of the computed result with a reference that depends on the seed of the run. */
export interface CorrectnessCheck {
    /** Reference of the comparison. */
    method: string;
    /** Largest error, relative to the scale of the result. */
    largest_error: number;
    /** Largest error that passes. */
    tolerance: number;
    /** True if the largest error is within the tolerance. */
    passed: boolean;
    /** Digest of the part of the result that was checked. */
    checksum?: string;
}

/** Charges and their sum. */
export interface CostBreakdown {
    /** Charges. */
    lines: Array<CostLine>;
    /** Sum of the charges. */
    total?: MoneyQuantity;
}

/** A cost centre. */
export interface CostCenter {
    /** Id of the cost centre, used in quotes and policies. */
    id: string;
    /** Display name of the cost centre. */
    name: string;
    /** Note on the cost centre. */
    note?: string;
    /**
     * Sub-accounts and billing accounts (SubAccountId, BillingAccountId) whose charges belong to the cost
     * centre.
     */
    accounts?: Array<string>;
    /** Tags whose charges belong to the cost centre. */
    tags?: Array<BillTagMatch>;
    /** Number of this version; the ETag of the resource. */
    version: number;
    /** Time at which the cost centre was created. */
    created_at: string;
}

/** A page of cost centres. */
export interface CostCenterPage {
    items: Array<CostCenter>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface CostCenterPatch {
    /** Display name of the cost centre. */
    name?: string;
    /** Note on the cost centre. */
    note?: string | null;
    /**
     * Sub-accounts and billing accounts (SubAccountId, BillingAccountId) whose charges belong to the cost
     * centre.
     */
    accounts?: Array<string>;
    /** Tags whose charges belong to the cost centre. */
    tags?: Array<BillTagMatch>;
}

/**
 * A cost centre, which pays for quotes.
 *
 * A charge of a bill belongs to the cost centre of its quote (tag `quote_id`), else to the one named
 * by its tag `cost_center_id`, else to the one that has its tag, its sub-account or its billing
 * account.
 */
export interface CostCenterRequest {
    /** Id of the cost centre, used in quotes and policies. */
    id: string;
    /** Display name of the cost centre. */
    name: string;
    /** Note on the cost centre. */
    note?: string;
    /**
     * Sub-accounts and billing accounts (SubAccountId, BillingAccountId) whose charges belong to the cost
     * centre.
     */
    accounts?: Array<string>;
    /** Tags whose charges belong to the cost centre. */
    tags?: Array<BillTagMatch>;
}

/** Cost of the same work done in different ways. */
export interface CostComparisonEstimate {
    /** Cost that the others are compared with. */
    baseline: CostEstimate;
    /** Alternatives in the order of the request. */
    alternatives: Array<AlternativeCost>;
    /** Ratios that are absent, and why. */
    gaps: Array<EstimateGap>;
}

/** Request for a comparison of ways to do the same work. */
export interface CostComparisonRequest {
    /** Way that the others are compared with. */
    baseline: CostEstimateRequest;
    /**
     * Ways of doing the work with the same model and the same tokens or requests, on other devices, in
     * other layouts or on other terms.
     */
    alternatives: Array<CostEstimateRequest>;
}

/** Cost of a training run or of a served model. */
export interface CostEstimate {
    /** The layout that the figures hold for. */
    parallelism: ParallelismDegrees;
    /** Versions and sources that reproduce the answer. */
    evidence: EstimateEvidence;
    /** Members that the question leaves open and that shape the answer, as they are filled. */
    defaults: Array<EstimateDefault>;
    /** Remarks about the question. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
    /** Time of the whole run, without interruptions of spot devices. */
    duration_seconds?: QuantityEstimate;
    /** Hours of all devices together over that time. */
    device_hours?: QuantityEstimate;
    /**
     * Charges of the run: its rent, else its share of owned devices, else the purchase; also storage and
     * egress.
     */
    lines: Array<CostLine>;
    /** Sum of the charges. */
    total?: MoneyQuantity;
    /** Total over the tokens that are trained on or generated. */
    cost_per_million_tokens?: MoneyQuantity;
    /**
     * Cost of the prompts of a served model: the share of the total that prompts take of the devices' busy
     * time, over the tokens of the prompts.
     */
    cost_per_million_input_tokens?: MoneyQuantity;
    /** Rest of the total over the generated tokens. */
    cost_per_million_output_tokens?: MoneyQuantity;
    /** Total over the requests that are served. */
    cost_per_request?: MoneyQuantity;
    /** Cost of renting the devices. Present if a rental is given. */
    rent?: RentCostBreakdown;
    /** Cost of buying the devices. Present if a purchase is given. */
    purchase?: CostBreakdown;
    /** Cost of the run on bought devices. Present if the request asks for it. */
    ownership?: OwnershipCostBreakdown;
    /** Purchase over rent: number of runs after which the purchase has paid for itself. */
    break_even_runs?: QuantityEstimate;
    /** The same in runs and months, under further assumptions. */
    break_even?: Array<BreakEven>;
    /** Providers' prices of the same tokens: at the list prices of the request, else at those of the model. */
    list_prices?: Array<TokenListPrice>;
}

/** Several requests for cost, answered in order. */
export interface CostEstimateBatchRequest {
    /** Requests. If one of them has no answer, the batch fails. */
    requests: Array<CostEstimateRequest>;
}

/** Answers in the order of the questions. */
export interface CostEstimateList {
    results: Array<CostEstimate>;
}

/** Request for the cost of a workload. */
export interface CostEstimateRequest {
    /** Model that is trained or served. */
    model: ModelReference;
    /** Work of the model. */
    workload: WorkloadInput;
    /** Cluster that the workload runs on. */
    cluster: ClusterInput;
    /** Terms and price of renting the devices. */
    rental?: Rental;
    /** Price of buying the devices. */
    purchase?: Purchase;
    /** Source of the efficiency of the devices. Defaults to measured runs. */
    efficiency?: EfficiencyInput;
    /** Layout of the workload over the devices. Defaults to a sensible layout, which the answer states. */
    parallelism?: ParallelismInput;
    /** Price of storing data and checkpoints. */
    storage?: StorageInput;
    /** Price of data that leave the provider. */
    egress?: EgressInput;
    /**
     * Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
     * model that are at most a year older than the newest of the catalog.
     */
    token_price_ids?: Array<string>;
    /** Start of the run. */
    starts_at?: string;
    /**
     * Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
     * prices, which then must all have the same one.
     */
    currency_code?: string;
}

/** Request for the charges of a run as FOCUS rows. */
export interface CostExportRequest {
    /** Model that is trained or served. */
    model: ModelReference;
    /** Work of the model. */
    workload: WorkloadInput;
    /** Cluster that the workload runs on. */
    cluster: ClusterInput;
    /** Terms and price of renting the devices. */
    rental?: Rental;
    /** Price of buying the devices. */
    purchase?: Purchase;
    /** Source of the efficiency of the devices. Defaults to measured runs. */
    efficiency?: EfficiencyInput;
    /** Layout of the workload over the devices. Defaults to a sensible layout, which the answer states. */
    parallelism?: ParallelismInput;
    /** Start of the run. */
    starts_at?: string;
    /** Id of the account that is charged. Defaults to the id of the tenant. */
    billing_account_id?: string;
    /** Name of the account. Defaults to its id. */
    billing_account_name?: string;
    /** Price of storing data and checkpoints. */
    storage?: StorageInput;
    /** Price of data that leave the provider. */
    egress?: EgressInput;
    /**
     * Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
     * model that are at most a year older than the newest of the catalog.
     */
    token_price_ids?: Array<string>;
    /**
     * Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
     * prices, which then must all have the same one.
     */
    currency_code?: string;
}

/** One charge: quantity times unit price, rounded once. */
export interface CostLine {
    /** Name of what is charged. */
    name: string;
    /** Number of units. */
    quantity: number;
    /** Unit of the quantity. */
    unit: string;
    /** Price of one unit. Absent if no price is known. */
    unit_price?: MoneyAmount;
    /** Quantity times unit price. */
    amount?: MoneyAmount;
    /** Source of the price. */
    source: string;
    /** Category of the charge (ChargeCategory of FOCUS). Usage if absent. */
    category?: CostLineCategory;
}

export type CostLineCategory = 'usage' | 'purchase' | 'tax' | 'credit';

/** Request for a quote on cost, which includes memory and throughput. */
export interface CostQuoteRequest {
    /** Name of the quote. */
    name: string;
    /** Id of the cost centre that pays. */
    cost_center_id?: string;
    /** Note for the approvers. */
    note?: string;
    /** Days in which the quote may be approved. A price that ends earlier shortens the validity. */
    valid_for_days?: number;
    operation: 'cost';
    /** Body of `POST /v1/estimates/cost`. */
    request: CostEstimateRequest;
}

/** Kernels of a step that are launched together, in graphs. */
export type CudaGraphs = 'none' | 'layer' | 'iteration';

/** Data pipeline of a training run, and the time that devices wait for it. */
export interface DataPipelineEstimate {
    /** Stages whose figures are given, and compute. */
    stages: Array<DataPipelineStage>;
    /** Stage that takes longest. */
    slowest: DataPipelineEstimateSlowest;
    /** Time of a step in which the devices wait for data. */
    exposed_seconds: QuantityEstimate;
    /** Share of a step in which the devices do not wait for data. */
    device_utilization: QuantityEstimate;
    /** Workers of each replica that prepare samples as fast as the devices consume them. */
    workers_needed?: number;
    /** Host memory of the batches of a replica that are ready, in preparation or in transfer. */
    buffer_bytes: number;
    /** Size of the stored dataset. */
    dataset_bytes?: number;
    /** Time to read the dataset once. */
    stream_seconds?: QuantityEstimate;
    /** Number of times that the run reads the dataset. */
    epochs?: number;
}

export type DataPipelineEstimateSlowest = 'storage' | 'preprocessing' | 'transfer' | 'compute';

/** Path of samples to the devices. A stage with too few figures is left out and reported as a gap. */
export interface DataPipelineInput {
    /** Bytes of a stored sequence or sample. */
    stored_bytes_per_sample?: number;
    /** Bandwidth of sequential reads from the storage, for the whole cluster. */
    storage_bandwidth_bytes_per_second?: number;
    /** Time that one worker takes to prepare a sample. */
    preprocessing_seconds_per_sample?: number;
    /** Worker processes of each data-parallel replica. */
    worker_count?: number;
    /** Highest read bandwidth of one node: of its network interface, or of a drive of its own. */
    node_bandwidth_bytes_per_second?: number;
    /** Share of the bandwidth that the access pattern achieves: 1 in sequence, about 0.1 if shuffled. */
    access_factor?: number;
    /** True if batches are prepared while the devices compute. Otherwise each step waits for all stages. */
    prefetch?: boolean;
    /** Batches that each worker keeps ready. */
    prefetch_factor?: number;
    /** Bandwidth of copies from the host to one device. */
    host_to_device_bandwidth_bytes_per_second?: number;
    /** Bytes of a sample as it is copied to the device. Defaults to 8 for each token. */
    device_bytes_per_sample?: number;
    /** Size of the stored dataset. Defaults to what the run reads, each sample once. */
    dataset_bytes?: number;
}

/** One stage of the data pipeline. */
export interface DataPipelineStage {
    /** Name of the stage. */
    name: DataPipelineEstimateSlowest;
    /** Time of the stage for the samples of a step. */
    seconds: QuantityEstimate;
}

/** Tokens of a small decoder, one after the other for each sequence of a batch. */
export interface DecodeLoopWork {
    /** Layers, all alike. */
    layers: number;
    /** Elements of a token. */
    hidden: number;
    /** Heads of a query. */
    query_heads: number;
    /** Heads of keys and values. */
    kv_heads: number;
    /** Elements of a head. */
    head_size: DecodeLoopWorkHeadSize;
    /** Elements between the matrices of the feed-forward network. */
    feed_forward: number;
    /** Tokens of the vocabulary. */
    vocabulary: number;
    /** Type of weights and activations. */
    dtype: DecodeLoopWorkDtype;
    kind: 'decode_loop';
    /** Sequences. */
    batch: number;
    /** Tokens in the cache of a sequence before the first step. */
    context_tokens: number;
    /** Tokens that one execution makes for each sequence. */
    steps: number;
    /** True if the launches of a step are replayed from a graph. */
    uses_graph?: boolean;
}

export type DecodeLoopWorkDtype = 'fp32' | 'bf16';

export type DecodeLoopWorkHeadSize = 64 | 128;

/** A price for each kW (or kVA) of demand: the mean over a demand window at its highest. */
export interface DemandCharge {
    /** Name that no other charge of the revision has. */
    name: string;
    kind: 'demand';
    /** Prices by the time of use. */
    periods: Array<TariffPricePeriod>;
    /**
     * Calendar months in which it is charged: energy by its time, all else by the month in which most days
     * of the billing period lie. Defaults to all months.
     */
    months?: Array<number>;
    /** Annual kWh for each kW of the annual peak from which it is charged. */
    hours_of_use_from?: number;
    /** Annual kWh for each kW of the annual peak below which it is charged; absent without a bound. */
    hours_of_use_below?: number;
    /** True if the charge is billed in kVA (kW divided by the power factor). */
    apparent?: boolean;
    /** Minutes over which demand is averaged. Defaults to the intervals of the load. */
    window_minutes?: number;
    /**
     * True if a demand window begins with every interval, and not only at multiples of its length past
     * local midnight. A rolling window belongs to the time at which it ends.
     */
    rolling?: boolean;
    /** Number of highest demands whose mean is billed. */
    peaks?: number;
    /** True if each of these demands is of another local day. */
    on_distinct_days?: boolean;
    /** Time over which a peak is the highest; the peak of a calendar year is charged once. */
    span?: DemandChargeSpan;
    /**
     * Method by which tiers price a demand: each tier prices the part within it (`marginal`), the whole
     * demand has the price of the tier that it falls in (`bracket`), or that price is the amount
     * (`bracket_amount`).
     */
    pricing?: DemandChargePricing;
    /** Rule by which the peak becomes the demand that is billed. Defaults to the metered peak. */
    billing_demand?: BillingDemand;
    /** Part of a monthly price that is charged in a billing period that is not one month. */
    proration?: ChargeProration;
    /** Least decimal amount of the charge in a period. */
    minimum?: string;
}

export type DemandChargePricing = 'marginal' | 'bracket' | 'bracket_amount';

export type DemandChargeSpan = 'billing_period' | 'calendar_year';

/** Billing quantities of the months of a year, for a load without a known series. */
export interface DemandDeterminants {
    kind: 'determinants';
    /** Calendar year of the load. */
    year: number;
    /** Energy by month and price period. */
    energy_kwh?: Array<MonthlyBillingQuantity>;
    /** Highest demand by month, and by month and price period. */
    peak_kw?: Array<MonthlyBillingQuantity>;
    /** Demand in the grid's peak intervals, in the order of the tariff's sets. */
    coincident_kw?: Array<number>;
}

/** A billing demand is at least a share of earlier peaks. */
export interface DemandRatchet {
    /** Twelve shares by the calendar month that is billed. Defaults to 1 each. */
    share_by_billing_month?: Array<number>;
    /** Twelve shares by the calendar month of the peak, multiplied by the others. Defaults to 1 each. */
    share_by_peak_month?: Array<number>;
    /** Number of months before the billing month whose peaks are looked back on. */
    preceding_months?: number;
    /** Calendar months whose peaks are looked back on. */
    peak_months?: Array<number>;
    /** True if the peak of the billing month itself is looked back on too. */
    within_billing_month?: boolean;
    /** Price period whose peaks count. Defaults to all hours. */
    period?: string;
    /** Price periods whose demand is raised. Defaults to all. */
    raises?: Array<string>;
    /** True if months before the load whose peaks are unknown are taken from the end of the same year. */
    wraps_year?: boolean;
}

/** Power by local month, weekday and time of day. */
export interface DemandRule {
    kind: 'rule';
    /** Start of the first interval. Without an offset from UTC it is on the local clock. */
    starts_at: string;
    /** End of the last interval, as a time of the same kind as the start. */
    ends_at: string;
    /** Length of each interval, in minutes. */
    interval_minutes?: 5 | 15 | 30 | 60;
    /** Power of every interval. */
    base_kw?: number;
    /** Power that each interval adds to the one before it. */
    step_kw?: number;
    /** Powers that are added in intervals of some months, weekdays and times of day. */
    add?: Array<DemandRuleIncrement>;
    /** Intervals with a power of their own. */
    set?: Array<DemandRuleOverride>;
}

/** Power that is added in the intervals whose start matches every member that is given. */
export interface DemandRuleIncrement {
    /** Added power. */
    kw: number;
    /** Calendar months. Defaults to all. */
    months?: Array<number>;
    /** 1 (Monday) to 7. Defaults to all. */
    weekdays?: Array<number>;
    /** Local time of day at which the added power begins. */
    from_time?: string;
    /** Local time of day at which the added power ends. A time not after `from_time` is on the next day. */
    to_time?: string;
}

/** Power of single intervals, which replaces the power of the rest of the rule. */
export interface DemandRuleOverride {
    /** Positions of the intervals in the load, from 1. */
    intervals: Array<number>;
    /** Power of the intervals. */
    kw: number;
}

/** Mean power of consecutive intervals. */
export interface DemandSeries {
    kind: 'series';
    /** Start of the first interval. Without an offset from UTC it is on the local clock. */
    starts_at: string;
    /** Length of each interval, in minutes. */
    interval_minutes?: 5 | 15 | 30 | 60;
    /** Mean power of each interval at the meter. */
    kw: Array<number>;
}

/** A copy within device memory by the driver, which takes a copy engine or a kernel of its own. */
export interface DeviceCopyWork {
    kind: 'device_copy';
    /** Size of the source and of the target. */
    array_bytes: number;
}

export type DeviceKind = 'cuda' | 'cpu';

/** Memory of the fullest device. `known_bytes` is the sum of the components. */
export interface DeviceMemory {
    /** Sum of all components. Absent if one of them is unknown. */
    total_bytes?: QuantityEstimate;
    /** Sum of the components that are listed. */
    known_bytes: number;
    /** Parts of the memory. */
    components: Array<MemoryComponent>;
}

/** Readings of the device over the timed window. */
export interface DeviceTelemetry {
    /** Duration of the window of the readings. */
    window_seconds: number;
    /** Mean time from one reading to the next. */
    sample_period_seconds?: number;
    /** Number of readings of each kind. */
    sample_count?: number;
    /** Clock of the multiprocessors. */
    sm_clock_hz?: ReadingSpread;
    /** Clock of the memory. */
    memory_clock_hz?: ReadingSpread;
    /** Clock of the processors that the worker may use, on a node without accelerators. */
    cpu_clock_hz?: ReadingSpread;
    /** Temperature of the device. */
    temperature_celsius?: ReadingSpread;
    /** Temperature of the memory of the device. */
    memory_temperature_celsius?: ReadingSpread;
    /** Power by the sensor, on most devices its average over one second. */
    power_watts?: ReadingSpread;
    /** Power by the sensor at the moment of each reading. */
    power_instant_watts?: ReadingSpread;
    /** Energy by the energy counter. */
    energy_joules?: number;
    /** Power by the energy counter, over the time between its readings. */
    energy_power_watts?: number;
    throttle_seconds?: ThrottleSeconds;
    /** Every reason for a lower clock that was seen at a reading. */
    throttle_reasons?: Array<string>;
    /** Number of corrected errors of the memory in the window. */
    ecc_corrected?: number;
    /** Number of uncorrected errors of the memory in the window. */
    ecc_uncorrected?: number;
    /** Generation of the bus, read under load: it drops when idle. */
    pcie_generation?: number;
    /** Number of lanes, read under load. */
    pcie_width?: number;
    /** Number of other processes on the device. */
    other_processes?: number;
    /** Load average of the host over one minute, at the end of the window. */
    load_average?: number;
}

/** Sampling of a picture or a video. The model of the request is the denoiser. */
export interface DiffusionInput {
    /**
     * Sampler, which sets the usual number of steps. `heun` evaluates the denoiser twice in each step but
     * the last.
     */
    sampler?: DiffusionInputSampler;
    /**
     * Steps from noise to sample. Defaults to 1000 for ddpm, 50 for ddim, 20 for dpm_solver, 28 for euler
     * and 18 for heun.
     */
    steps?: number;
    /**
     * Guidance of the sampling. Classifier-free guidance evaluates the denoiser with and without the
     * prompt. Use `none` for a model that guidance was distilled into, such as Flux.
     */
    guidance?: DiffusionInputGuidance;
    /** Share of the steps that are guided. */
    guided_share?: number;
    /** Pictures or videos of a request. */
    samples?: number;
    /** Models that encode the prompt. Without them their time is left out. */
    text_encoders?: Array<TextEncoderInput>;
    /** Autoencoder of the latents. Without it the time to decode them is left out. */
    autoencoder?: AutoencoderInput;
}

export type DiffusionInputGuidance = 'classifier_free' | 'none';

export type DiffusionInputSampler = 'ddpm' | 'ddim' | 'dpm_solver' | 'euler' | 'heun';

/** Figures of the replicas of one kind. */
export interface DisaggregatedPoolEstimate {
    /** Devices of all its replicas. */
    accelerator_count: number;
    /** Rate that all its replicas cannot exceed. */
    most_requests_per_second: QuantityEstimate;
    /** Share of the time in which a replica computes. */
    utilization: number;
    /** Mean prompts of a pass, or mean requests that decode at a time, on one replica. */
    mean_batch: number;
}

/** Replicas of one kind: all of them compute prompts, or all of them generate. */
export interface DisaggregatedPoolInput {
    /**
     * Layout of one replica. `data`, the number of attention ranks that share its experts, defaults to
     * `expert`.
     */
    parallelism?: ParallelismInput;
    /** Equal replicas, with devices of their own. */
    replicas?: number;
    /** Accelerator of the replicas. Defaults to the accelerator of the cluster. */
    accelerator?: AcceleratorReference;
    /** Most requests of one replica in one iteration. Defaults to the value of the engine. */
    max_num_seqs?: number;
    /** Most tokens of one iteration. Defaults to the value of the engine. */
    max_batched_tokens?: number;
}

/** Both kinds of replicas of disaggregated serving, at the rate that they reach together. */
export interface DisaggregationEstimate {
    /** Replicas that compute prompts. */
    prefill: DisaggregatedPoolEstimate;
    /** Replicas that generate. */
    decode: DisaggregatedPoolEstimate;
    /** Transfer of the KV cache from prefill to decode. */
    transfer: KvCacheTransferEstimate;
    /**
     * Ratio at which neither kind waits for the other: the highest rate of a decode replica over that of a
     * prefill replica.
     */
    balanced_prefill_replicas_per_decode_replica: number;
}

/** Prefill and decode on replicas of their own. The KV cache of a prompt is transferred between them. */
export interface DisaggregationInput {
    /** Replicas that compute prompts. */
    prefill: DisaggregatedPoolInput;
    /** Replicas that generate. */
    decode: DisaggregatedPoolInput;
    /**
     * Link of each device that carries the KV cache. Defaults to the cluster's link between nodes, or to
     * the link inside a node if all replicas are in one node.
     */
    transfer_link?: LinkReference;
    /**
     * `by_layer` if the cache of a layer is sent while later layers compute, `whole` if all of it is sent
     * after the last.
     */
    transfer?: DisaggregationInputTransfer;
}

export type DisaggregationInputTransfer = 'by_layer' | 'whole';

/** Samples that do not count, with the reason. */
export interface DiscardedSamples {
    /** Reason that they do not count. */
    reason: string;
    /** Number of samples. */
    count: number;
}

/** Multiply-adds of warps whose threads take `paths` different ways. */
export interface DivergenceWork {
    kind: 'divergence';
    /** Ways among the threads of a warp. They run one after the other, so the rate falls with their number. */
    paths: DivergenceWorkPaths;
    /** Multiply-adds of each thread. */
    steps: number;
    /** Threads of one execution. */
    threads: number;
}

export type DivergenceWorkPaths = 1 | 2 | 4 | 8 | 16 | 32;

export type EfficiencyInput = ModelledEfficiency | AssumedEfficiency | CalibrationEfficiency;

/** Data that leave the provider, charged by gigabyte (1e9 bytes). */
export interface EgressInput {
    /** Price of a gigabyte that leaves. */
    price_per_gigabyte: MoneyInput;
    /** Bytes that leave over the whole run. */
    bytes?: number;
    /** Mean rate of the bytes that leave, for the duration of the run. */
    bytes_per_second?: number;
}

/** The electricity bill: a line for each kind of equipment at a flat price, else those of the tariff. */
export interface ElectricityBill {
    /** Share of the bill that is answered, under a tariff: what the run adds, or the run by itself. */
    allocation?: ElectricityBillAllocation;
    /** Charges. With the allocation `incremental`, an amount below 0 is a saving through the run. */
    lines: Array<ElectricityBillLine>;
    /** Totals by billing period, under a tariff. */
    periods?: Array<BillingPeriodTotal>;
    /** Sum of the charges. */
    total?: MoneyQuantity;
}

export type ElectricityBillAllocation = 'incremental' | 'standalone';

/** One charge. Under a tariff: for one billing period, price period and tier. */
export interface ElectricityBillLine {
    /** Name of what is charged. */
    name: string;
    /** Number of units. */
    quantity: number;
    /** Unit of the quantity. */
    unit: string;
    /** Price of one unit. Absent if no price is known. */
    unit_price?: MoneyAmount;
    /** Quantity times unit price. */
    amount?: MoneyAmount;
    /** Source of the price. */
    source: string;
    /** Category of the charge (ChargeCategory of FOCUS). Usage if absent. */
    category?: CostLineCategory;
    /** Kind of the charge. */
    kind?: ElectricityBillLineKind;
    /** Billing period that the charge falls in. */
    billing_period?: BillingPeriod;
    /** Hours that share the price. */
    price_period?: string;
    /** Position of the tier among its tiers, from 1. */
    tier?: number;
    /** Start of the interval that set the demand. If the demand looks back, start of the earlier peak. */
    peak_at?: string;
    /** Remark, such as the reason why a demand was raised to the billed one. */
    note?: string;
    /** True if the charge falls in a billing period after the run, because of a peak of the run. */
    after_run?: boolean;
}

export type ElectricityBillLineKind = 'fixed' | 'energy' | 'demand' | 'overrun' | 'coincident_peak' | 'reactive' | 'minimum' | 'percentage' | 'tax';

/** Electricity that is bought at an intensity of its own. */
export interface ElectricityContract {
    /** Instrument by which the electricity is bought. */
    kind: ElectricityContractKind;
    /** Share of the run's energy. */
    share: number;
    /** Emissions of each kWh. */
    carbon_intensity_kg_co2e_per_kwh: number;
    /** Emissions that are counted. */
    accounting?: EmissionAccounting;
    /** Document that states the figure. */
    source: string;
}

export type ElectricityContractKind = 'power_purchase_agreement' | 'certificate' | 'supplier' | 'green_tariff';

/** Price of electricity: a flat price, or a tariff with the data that its bill depends on. */
export interface ElectricityPriceInput {
    /** Price of a kWh at the meter, at any time. */
    price_per_kwh?: MoneyInput;
    /** Id of a tariff of the catalog. Defaults to the tariff of the catalog's site. */
    tariff_id?: string;
    /** Terms of a tariff that is not in the catalog. */
    tariff?: TariffTerms;
    /**
     * Allocation of the bill: the amount that the run adds to the bill of the baseline load
     * (`incremental`), or the bill of the run alone for every billing period in which it runs
     * (`standalone`). Defaults to incremental if a baseline load is given, else to standalone.
     */
    allocation?: ElectricityBillAllocation;
    /**
     * First days of consecutive billing periods, and of the period after the last. Defaults to calendar
     * months.
     */
    billing_period_starts?: Array<string>;
    /**
     * Demand of earlier months, for charges that look back: of the baseline load, or of the load before
     * the run.
     */
    monthly_peaks?: Array<MonthlyPeak>;
    /** Ratio of active to apparent power at the meter. */
    power_factor?: number;
    /** Factor of the price, or of each charge of the tariff, for prices that move. */
    price_factor?: number;
    /**
     * Side of the transformer that the meter is on. A tariff may add the loss of the transformer to the
     * reading of a secondary meter.
     */
    metering_side?: ElectricityPriceInputMeteringSide;
}

export type ElectricityPriceInputMeteringSide = 'primary' | 'secondary';

/** A look-up table of a recommender's sparse feature. */
export interface EmbeddingTableLayer {
    kind: 'embedding_table';
    /** Number of rows of the table. */
    rows: number;
    /** Width of a row. */
    size: number;
    /** Mean number of rows that a sample reads. */
    lookups_per_sample?: number;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

/** Embodied emissions by one assessment, with the range of others. */
export interface EmbodiedEmissionsFigure {
    /** Emissions of one accelerator from its materials to the gate of the factory, in kg CO2-equivalent. */
    value: number;
    /** Lowest value of an assessment, in kg CO2-equivalent. */
    low: number;
    /** Highest value of an assessment, in kg CO2-equivalent. */
    high: number;
}

/** Emissions of making the machines, and their lifetime. Figures given here replace the catalog's. */
export interface EmbodiedEmissionsInput {
    /** Emissions of making one accelerator. Defaults to the value of the catalog. */
    kg_co2e_per_device?: number;
    /** Emissions of making a server without its accelerators. */
    kg_co2e_per_server?: number;
    /** Years from first to last use. */
    lifetime_years?: number;
    /** Share of its lifetime in which a machine is used. */
    utilization?: number;
}

/** Embodied emissions of machines of one kind. */
export interface EmbodiedEmissionsLine {
    /** Kind of machine. Servers are counted without their accelerators. */
    name: EmbodiedEmissionsLineName;
    /** Emissions of making the machines that are allocated to the run. */
    kg_co2e: QuantityEstimate;
    /** Source of the assessment. */
    source: string;
}

export type EmbodiedEmissionsLineName = 'accelerators' | 'servers';

export type EmissionAccounting = 'generation' | 'life_cycle' | 'provider' | 'unstated';

export type EmissionRate = 'average' | 'marginal';

/** n / S(n) = a + b n + c ln n, fitted to the points of a curve; n is relative to the smallest number. */
export interface EmpiricalScalingFit {
    /** Constant term. */
    a: number;
    /** Coefficient of n. */
    b: number;
    /** Coefficient of ln n. */
    c: number;
    /** Largest relative error of the fit at its own points. */
    largest_relative_error: number;
}

/** A measured end-to-end figure and the request of the estimate for it. */
export interface EndToEndMeasurement {
    /** Estimate that answers the question. */
    operation: string;
    /** Kind of figure. */
    family: string;
    /** JSON Pointer of the figure in the answer. */
    figure?: string;
    /** Measured value, in the unit of the figure. */
    measured: number;
    /** Body of the request. */
    question: Record<string, unknown>;
}

/** A price for each kWh: flat, by time of use, by tier, by hours of use of the billing demand. */
export interface EnergyCharge {
    /** Name that no other charge of the revision has. */
    name: string;
    /**
     * Calendar months in which it is charged: energy by its time, all else by the month in which most days
     * of the billing period lie. Defaults to all months.
     */
    months?: Array<number>;
    /** Annual kWh for each kW of the annual peak from which it is charged. */
    hours_of_use_from?: number;
    /** Annual kWh for each kW of the annual peak below which it is charged; absent without a bound. */
    hours_of_use_below?: number;
    kind: 'energy';
    /** Prices by the time of use. */
    periods: Array<TariffPricePeriod>;
    /** Energy that fills the tiers. */
    accumulation?: EnergyChargeAccumulation;
    /** Demand charge whose billing demand scales hours of use. Defaults to the peak of the billing period. */
    billing_demand_of?: string;
}

export type EnergyChargeAccumulation = 'per_period' | 'all_periods_in_time_order';

/** An illustration of the amount of energy; it is not a measure. */
export interface EnergyEquivalent {
    /** Unit of the illustration. */
    name: 'household_months';
    /** Number of units. */
    value: number;
    /** Definition of one unit. */
    detail: string;
}

/** Energy of the accelerators and the equipment around them, and of the building at its meter. */
export interface EnergyEstimate {
    /** Energy by kind of equipment. */
    lines: Array<EnergyUseLine>;
    /** Energy that all equipment draws. */
    it_kwh?: QuantityEstimate;
    /** Energy of all equipment at the meter of the building. */
    facility_kwh?: QuantityEstimate;
    /** Energy that cooling and distribution of the building add. */
    overhead_kwh?: QuantityEstimate;
    /** Power at the meter of the building in the phase that draws most. */
    peak_kw?: QuantityEstimate;
    /** Power over time. */
    load_profile?: LoadProfileEstimate;
}

/** The energy of one kind of equipment. */
export interface EnergyUseLine {
    /** Kind of equipment. `measured` is all equipment of a measured run. */
    name: EnergyUseLineName;
    /** Energy that the equipment draws. */
    it_kwh?: QuantityEstimate;
    /** Energy of the equipment at the meter of the building. */
    facility_kwh?: QuantityEstimate;
    /** Source of the figure. */
    source: string;
}

export type EnergyUseLineName = 'accelerators' | 'hosts' | 'fans' | 'power_supplies' | 'fabric' | 'measured';

/** Time in which the host enqueues an empty kernel, whenever the device runs it. */
export interface EnqueueLatencyWork {
    kind: 'enqueue_latency';
    /** Caller of the driver: a loop in C, or Python through cuda-bindings. */
    caller: EnqueueLatencyWorkCaller;
    /** Launches of one execution, no more than a stream queues before the host has to wait. */
    launches: number;
}

export type EnqueueLatencyWorkCaller = 'c' | 'cuda_bindings';

/** An enrolment token, without its secret. */
export interface EnrolmentToken {
    id: string;
    /** Name of the node. */
    node_name?: string;
    created_at: string;
    /** Kind and id of the subject that made the token. */
    created_by?: string;
    /** Time at which the token expires, unless the key that made it ends earlier. */
    expires_at: string;
    /** Time at which a node enrolled by the token. */
    used_at?: string;
    /** Id of the node that enrolled by the token. */
    node_id?: string;
}

/** A page of enrolment tokens. */
export interface EnrolmentTokenPage {
    /** Tokens in order of id. */
    items: Array<EnrolmentToken>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** A token by which one node enrols. */
export interface EnrolmentTokenRequest {
    /** Lifetime of the token. */
    lifetime_seconds?: number;
    /**
     * Name of the node. By default the node chooses it, and takes its host name unless configured
     * otherwise.
     */
    node_name?: string;
}

/** A change worth trying, and its effect. */
export interface EstimateAdvice {
    /** Stable name of the change. */
    code: string;
    /** Description of the change and its effect. */
    detail: string;
    /** Share of the time of a token that the change saves, estimated anew with it. */
    gain_share?: number;
}

/** A member that the question leaves open, and the value that the answer holds for. */
export interface EstimateDefault {
    /** JSON Pointer of the member in the question. */
    pointer: string;
    /** Value that the answer holds for. */
    value: string;
    /**
     * Rule that fills the member: the publication of the model, the reference system of the accelerator,
     * the default of the framework or engine, the search, or the default of the service.
     */
    rule: EstimateDefaultRule;
    /** Reason for the value. */
    detail: string;
}

export type EstimateDefaultRule = 'published' | 'reference_system' | 'framework' | 'engine' | 'search' | 'service';

/** Versions, calibrations and catalog rows that reproduce an answer. */
export interface EstimateEvidence {
    /** Catalog revision that was read. */
    catalog_revision: number;
    /** Version of the formulas. */
    method_version: string;
    /** SHA-256 of the question with its defaults filled in. */
    input_digest: string;
    /** Calibrations that entered the answer. */
    calibration_ids: Array<string>;
    /** Catalog rows and reference curves that entered the answer. */
    sources: Array<EstimateSource>;
}

/** A figure that is absent, and why. It is unknown, not zero. */
export interface EstimateGap {
    /** JSON Pointer of the absent member of the answer. */
    pointer: string;
    /** Stable name of the reason. */
    code: string;
    /** Description of what is missing. */
    detail: string;
}

/** A catalog row or a reference curve that the answer rests on. */
export interface EstimateSource {
    /** JSON Pointer of the member of the request that it stands for. */
    pointer: string;
    /** Kind of the row. */
    kind: EstimateSourceKind;
    /** Id of the row or curve. */
    id: string;
    /** Version of the row or curve. */
    version: number;
    /** `shipped` for a row that ships with the service, `tenant` for a row of the tenant. */
    origin: RowOrigin;
    /** Version of the shipped row of the same id that the tenant's row replaces. */
    shadows_shipped_version?: number;
    /** Citation of the source of its values. */
    citation: string;
}

export type EstimateSourceKind = 'model' | 'accelerator' | 'link' | 'offer' | 'tariff' | 'grid' | 'site' | 'exchange_rate' | 'token_price' | 'hardware_price' | 'reference_curve';

/** An exchange rate by which a total was compared with the limit of a policy. */
export interface EvaluatedExchangeRate {
    /** Id of the row of the catalog. */
    id?: string;
    /** Version of the row. */
    version?: number;
    /** Currency of the one unit that is converted. */
    from_currency_code: string;
    /** Currency that the rate is counted in. */
    to_currency_code: string;
    /** Units of the second currency for one of the first, as decimal text. */
    rate: string;
    /** Day of the rate. */
    as_of: string;
}

/** A policy that existed when the approval was requested. */
export interface EvaluatedPolicy {
    /** Id of the policy. */
    policy_id: string;
    /** Version of the policy. */
    version: number;
    /** True if the policy applies to the quote. */
    matches: boolean;
}

/** The evidence behind a number, strongest first; ``assumed`` was given by the caller. */
export type EvidenceBasis = 'exact' | 'calibrated_node' | 'calibrated_sku' | 'calibrated_generation' | 'reference' | 'datasheet' | 'assumed';

export type EvidenceFormat = 'guidellm' | 'aiperf_json' | 'aiperf_csv' | 'vllm_bench' | 'inferencex' | 'llama_bench' | 'mlperf_inference' | 'engine_log' | 'training_log' | 'nvbandwidth' | 'nccl_tests' | 'superbench' | 'dcgm_diagnostics' | 'dcgm_dmon' | 'dcgm_exporter' | 'nsight_compute' | 'torch_profiler' | 'own_csv';

/**
 * A file of measurements, and facts that it does not state.
 *
 * If file and request both leave a fact open, the problem names it. Facts of the request must not
 * contradict the file; for lengths the request takes precedence.
 */
export interface EvidenceImportRequest {
    /** Format of the file, by the program that wrote it. `own_csv` is the service's own table. */
    format: EvidenceFormat;
    /** The file as text. */
    content: string;
    /** Model that ran. Required if the file names no model of the catalog. */
    model?: ModelReference;
    /**
     * Cluster that it ran on. Required if the file does not name an accelerator of the catalog and the
     * number of devices.
     */
    cluster?: ClusterInput;
    /** Workload that was measured, as far as the file does not state it: lengths, load, precision, engine. */
    workload?: WorkloadInput;
    /** Layout of the model. Required on several devices if the file does not state it. */
    parallelism?: ParallelismInput;
    /** Collective that was timed, if the file does not state it. */
    collective?: Collective;
    /** Power limit of each device during the measurement, if it was not the delivered one. */
    power_limit_watts?: number;
    /** Origin of the file. */
    note?: string;
}

/** A page of imports. */
export interface EvidencePage {
    items: Array<EvidenceSummary>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** A part of the file that does not count, or a remark on a part that does. */
export interface EvidenceRemark {
    /** Place in the file. */
    pointer: string;
    /** Stable name of the reason. */
    code: string;
    /** Description of the reason. */
    detail: string;
}

export type EvidenceState = 'active' | 'superseded' | 'withdrawn';

/** A file of measurements that was imported. */
export interface EvidenceSummary {
    id: string;
    /** Format of the file, by the program that wrote it. */
    format: EvidenceFormat;
    /** State of the evidence, which is the state of its calibration. */
    state: EvidenceState;
    /** Reason of the withdrawal. */
    reason?: string;
    /** Origin of the file. */
    note?: string;
    /** Id of the calibration that was made from the file. */
    calibration_id: string;
    /** SHA-256 of the file, which itself is not stored. */
    content_sha256: string;
    /** Number of runs in the file. */
    run_count: number;
    /** Number of figures that were read. */
    reading_count: number;
    /** Figures of whole runs, which adjust estimates of the tenant. */
    answers: Array<ImportedEvidenceFigure>;
    /** Figures of the device that were derived, by their name in the calibration. */
    figures: Array<string>;
    /** Parts of the file that do not count, with the reasons. */
    refused: Array<EvidenceRemark>;
    /** Remarks on parts that count. */
    notes: Array<EvidenceRemark>;
    created_at: string;
    /** Time of the withdrawal. */
    withdrawn_at?: string;
}

/** Reason why imported evidence no longer counts. */
export interface EvidenceWithdrawalRequest {
    /** Reason of the withdrawal. */
    reason: string;
}

/** An exchange rate of the catalog. */
export interface ExchangeRate {
    id: string;
    name: string;
    /** Currency of the one unit that is converted (ISO 4217). */
    from_currency_code: string;
    /** Currency that the rate is counted in (ISO 4217). */
    to_currency_code: string;
    /** Units of the second currency for one of the first, as decimal text above zero. */
    rate: string;
    /** Day of the rate. The rate applies until a newer one of the same pair. */
    as_of: string;
    sources: Array<Citation>;
    /** Number of this version of the row; the ETag of the resource. */
    version: number;
    /** Catalog revision of this version. */
    revision: number;
    /** `shipped` if the row ships with the service, `tenant` if it is a row of the tenant. */
    origin: RowOrigin;
    created_at: string;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
}

/** A page of exchange rates. */
export interface ExchangeRatePage {
    items: Array<ExchangeRate>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface ExchangeRatePatch {
    name?: string;
    /** Currency of the one unit that is converted (ISO 4217). */
    from_currency_code?: string;
    /** Currency that the rate is counted in (ISO 4217). */
    to_currency_code?: string;
    /** Units of the second currency for one of the first, as decimal text above zero. */
    rate?: string;
    /** Day of the rate. The rate applies until a newer one of the same pair. */
    as_of?: string;
    sources?: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string | null;
}

/** Value of one unit of a currency in another currency on a day. */
export interface ExchangeRateRequest {
    id: string;
    name: string;
    /** Currency of the one unit that is converted (ISO 4217). */
    from_currency_code: string;
    /** Currency that the rate is counted in (ISO 4217). */
    to_currency_code: string;
    /** Units of the second currency for one of the first, as decimal text above zero. */
    rate: string;
    /** Day of the rate. The rate applies until a newer one of the same pair. */
    as_of: string;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
}

/** Charges that are left out of the comparison. */
export interface ExcludedCharges {
    /** Code of the reason. */
    code: ExcludedChargesCode;
    /** Effective cost of the charges. */
    effective: MoneyAmount;
    /** Description of the reason. */
    detail: string;
}

export type ExcludedChargesCode = 'OUTSIDE_RUN' | 'NOT_COVERED';

/** Quoted cost of the time that is billed so far, with its 80% interval. */
export interface ExpectedCost {
    /** Decimal number as text. */
    amount: string;
    /** Lower end of the interval. */
    low: string;
    /** Upper end of the interval. */
    high: string;
    /** ISO 4217 code. */
    currency_code: string;
}

/** Load of the experts of a trained model. */
export type ExpertBalance = 'trained' | 'forced';

/** A tariff as a rate of OpenEI's utility rate database, version 8. */
export interface ExportedTariff {
    /** The rate. It states every one of its charges exactly. */
    urdb: Record<string, unknown>;
    /** Terms that a rate cannot express; pointers lead into the tariff. */
    left_out: Array<AnswerWarning>;
}

/** A transfer that a tool measures, where it is installed. Its times are those that the tool reports. */
export interface ExternalToolWork {
    kind: 'external_tool';
    /** Tool that runs: a fixed name, looked up on the path. */
    tool: ExternalToolWorkTool;
    /** Test of the tool, such as host_to_device_memcpy_ce or all_reduce. */
    test: string;
    /** Payload. */
    transfer_bytes: number;
}

export type ExternalToolWorkTool = 'nvbandwidth' | 'nccl_tests' | 'dcgm';

/** Two matrices with an activation between them; a gate adds a third. */
export interface FeedForwardLayer {
    kind: 'feed_forward';
    /** Width of the residual stream. */
    hidden_size: number;
    /** Width between the matrices. */
    inner_size: number;
    /** True if a third matrix, beside the first, gates its result. */
    gated?: boolean;
    /** True if a learned vector is added. */
    bias?: boolean;
    /** True if a norm stands in front of the last matrix. */
    inner_norm?: boolean;
    /** Number of learned scalars of the activation function. */
    activation_parameters?: number;
    /**
     * Activation function: one operator whose backward pass needs its input (`smooth`) or only its result
     * (`relu`), or several operators, as PyTorch's classes write it out, each of which keeps a tensor of
     * its own (`quick_gelu`, `gelu_new`).
     */
    activation?: FeedForwardLayerActivation;
    /** True if the output passes a dropout in training. */
    dropout?: boolean;
    /** True if the result of the activation passes a dropout in training. */
    inner_dropout?: boolean;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

export type FeedForwardLayerActivation = 'smooth' | 'relu' | 'quick_gelu' | 'gelu_new';

/** Complex transforms, of as many points in each dimension. */
export interface FftWork {
    kind: 'fft';
    /** Precision of the parts of a complex number. */
    dtype: FftWorkDtype;
    /** Length of a transform in each dimension. */
    points: number;
    /** Transforms of one execution. */
    batch: number;
    /** 1 for a row, 2 for a square, 3 for a cube. */
    dimensions?: number;
    /** True if the result takes the place of the input. */
    in_place?: boolean;
}

export type FftWorkDtype = 'fp16' | 'fp32' | 'fp64';

/** One field that is wrong. */
export interface FieldError {
    /** JSON Pointer (RFC 6901) into the request. */
    pointer: string;
    /** Stable name of the error. */
    code: string;
    /** Description of the error. */
    detail: string;
}

/** An amount that does not depend on use. */
export interface FixedCharge {
    /** Name that no other charge of the revision has. */
    name: string;
    kind: 'fixed';
    /** Decimal number as text; credits are below zero. */
    price: string;
    /**
     * Calendar months in which it is charged: energy by its time, all else by the month in which most days
     * of the billing period lie. Defaults to all months.
     */
    months?: Array<number>;
    /** Annual kWh for each kW of the annual peak from which it is charged. */
    hours_of_use_from?: number;
    /** Annual kWh for each kW of the annual peak below which it is charged; absent without a bound. */
    hours_of_use_below?: number;
    /** Time that the price is for; of a yearly price, one twelfth is charged for each month. */
    per?: FixedChargePeriod;
    /** Number of meters that are charged. */
    meters?: number;
    /**
     * Part of a monthly or yearly price that is charged in a billing period that is not one month.
     * Defaults to the whole: each billing period counts as one month.
     */
    proration?: ChargeProration;
}

export type FixedChargePeriod = 'day' | 'month' | 'year';

/** Every request has the same length. */
export interface FixedLength {
    distribution: 'fixed';
    /** Tokens of every request. */
    tokens: number;
}

/** Placement of a workload on a pool, in time. */
export interface FleetAssignment {
    /** Name of the workload. */
    workload: string;
    /** Name of the pool. */
    pool: string;
    /** Devices that no other workload can use meanwhile: those of whole nodes, unless nodes are shared. */
    devices_taken: number;
    /** Start of the workload. */
    starts_at: string;
    /** End of the workload, by the middle of the interval of its duration. */
    ends_at: string;
    /** True if the workload ends after `finish_by` at the high end of its duration. */
    may_end_late: boolean;
    /** Configuration with its estimates and the requests that give them. Its rank is always 1. */
    row: PlanRow;
}

/** Bounds that no schedule exceeds. */
export interface FleetBound {
    /** Most workloads of each priority, as if it were alone. */
    most_workloads: Array<FleetPriorityBound>;
    /** Most workloads of all priorities. */
    most_in_all: number;
    /** Least cost of the placed workloads. Present if the goal is `cheapest`. */
    least_cost?: MoneyAmount;
    /**
     * Least sum of the times from the earliest start of each placed workload to its end. Present if the
     * goal is `earliest`.
     */
    least_seconds?: number;
}

/** Cost of a calendar month (UTC). The cost of a workload is spread evenly over its time. */
export interface FleetMonthlySpend {
    /** Month, such as 2026-11. */
    month: string;
    /** Cost in the month. */
    spend: MoneyAmount;
    /** Cost from the start until the end of the month. */
    spend_so_far: MoneyAmount;
    /** Budget that is left after the month. */
    budget_left?: MoneyAmount;
}

/** Schedule of several workloads over pools of devices. */
export interface FleetPlan {
    /** Placed workloads, by start. */
    assignments: Array<FleetAssignment>;
    /** Workloads that are not placed, in the order of the request. */
    unplaced: Array<UnplacedFleetWorkload>;
    /**
     * True if no schedule of these configurations is better. Otherwise `bound` limits how much better one
     * could be.
     */
    is_optimal: boolean;
    /** Bounds that no schedule exceeds. */
    bound: FleetBound;
    /** Occupation of the pools in the order of the request, owned ones first. */
    pools: Array<FleetPoolOccupation>;
    /** Cost by month, from the first month with a cost to the last. Empty if a cost is unknown. */
    months: Array<FleetMonthlySpend>;
    /** Cost of all placed workloads. Absent if the cost of one is unknown. */
    cost?: MoneyAmount;
    /** Currency of all costs. */
    currency_code: string;
    /** Versions and sources that reproduce the answer. */
    evidence: EstimateEvidence;
    /** Service levels that workloads leave open, as the search fills them. */
    defaults: Array<EstimateDefault>;
    /** Remarks about the question. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
}

/** Request for a schedule of several workloads over pools of devices. */
export interface FleetPlanRequest {
    /** Workloads to schedule. */
    workloads: Array<FleetWorkload>;
    /**
     * Machines that are already available. Their electricity has a price per kWh, because under a tariff
     * the bill of one workload would depend on the others.
     */
    owned?: Array<OwnedNodes>;
    /** Devices that can be rented. */
    rented?: Array<RentedDevices>;
    /** Time from which the pools are free, rounded up to the next whole second. */
    starts_at: string;
    /** Latest end of workloads that give no time of their own. */
    ends_at: string;
    /** Most that all workloads may cost together. */
    budget?: MoneyInput;
    /**
     * Objective among schedules that place as many workloads. `cheapest` takes the least cost, then the
     * least sum of the times from the earliest start of each workload to its end; `earliest` takes them in
     * the other order.
     */
    goal?: FleetPlanRequestGoal;
    /**
     * Set to true to let workloads on less than a node share it, with devices counted one by one. By
     * default each workload takes whole nodes.
     */
    share_nodes?: boolean;
    /**
     * Currency of the costs, at the exchange rates of the catalog. Defaults to the currency of the budget,
     * else USD.
     */
    currency_code?: string;
}

export type FleetPlanRequestGoal = 'cheapest' | 'earliest';

/** Occupation of a pool over time. */
export interface FleetPoolOccupation {
    /** Name of the pool. */
    pool: string;
    /** Devices of the pool. */
    accelerator_count: number;
    /**
     * Share of the pool's device-hours that is occupied, from the start of the fleet to its end, or to the
     * end of the last workload.
     */
    share_taken: number;
    /** Spans in which workloads run, in order of time. */
    spans: Array<FleetPoolSpan>;
}

/** Reason why a workload does not run on a pool. */
export interface FleetPoolReason {
    /** Name of the pool. */
    pool: string;
    /**
     * Reason: no configuration that the devices hold; none whose cost is known; none that alone ends
     * within its window; devices that others occupy; the budget, or what others leave of it.
     */
    reason: FleetPoolReasonReason;
    /** Constraints that ruled out the configurations. Present if none is left. */
    ruled_out?: Array<RuledOutCandidates>;
    /**
     * Configurations that a bound proves to be ruled out, because their state exceeds the memory of a
     * device. Present if none is left.
     */
    pruned?: Array<PrunedCandidates>;
    /** Shortest duration of a training run among the configurations that are left. */
    least_duration_seconds?: number;
    /** Least cost among the configurations that end within the window. */
    least_cost?: MoneyAmount;
    /** Earliest end of the workload beside the others, within what is left of the budget. */
    could_end_at?: string;
}

export type FleetPoolReasonReason = 'configuration' | 'price' | 'deadline' | 'devices' | 'budget';

/** A span of time in which the same workloads run on a pool. */
export interface FleetPoolSpan {
    /** Start of the span. */
    starts_at: string;
    /** End of the span. */
    ends_at: string;
    /** Devices that are occupied. */
    devices_taken: number;
    /** Names of the workloads that occupy them. */
    workloads: Array<string>;
}

/** Most workloads of a priority that any schedule places. */
export interface FleetPriorityBound {
    /** Priority of the workloads. */
    priority: number;
    /** Number of workloads. */
    workloads: number;
}

/** One change that lets a workload run while the others stay where they are. */
export interface FleetRemedy {
    /** Change: more devices of a pool, a later `finish_by`, or a larger budget. */
    change: FleetRemedyChange;
    /** Pool that the workload would run on. */
    pool: string;
    /** Number of devices to add to the pool. */
    added_devices?: number;
    /** Earliest time by which the workload can end. */
    finish_by?: string;
    /** Least budget of the fleet that includes the workload. */
    budget?: MoneyAmount;
    /** Devices that the workload would run on. */
    accelerator_count: number;
    /** Start of the workload after the change. */
    starts_at: string;
    /** End of the workload after the change. */
    ends_at: string;
    /** Cost of the workload after the change. */
    cost?: MoneyAmount;
}

export type FleetRemedyChange = 'devices' | 'deadline' | 'budget';

/** A training run or a service that the fleet is to run. */
export interface FleetWorkload {
    /** Name of the workload in the answer. */
    name: string;
    /** Model that is trained or served. */
    model: ModelReference;
    /**
     * Work of the model. For training: its total and its global batch. For a service: its load and its
     * service levels, which default to those of a plan. A service has no horizon of its own: it runs from
     * `earliest_start_at` to `finish_by`.
     */
    workload: WorkloadInput;
    /**
     * Priority of the workload, 1 being the highest. No number of workloads of a lower priority displaces
     * one of a higher.
     */
    priority?: number;
    /** Earliest start of a training run; start of a service. Defaults to the start of the fleet. */
    earliest_start_at?: string;
    /** Latest end of a training run; end of a service. Defaults to the end of the fleet. */
    finish_by?: string;
    /** Names of the `owned` and `rented` pools that the workload may run on. Defaults to all of them. */
    pools?: Array<string>;
    /**
     * Numbers of devices of a training run. Defaults to whole nodes in doublings, and all of a pool. A
     * service takes the fewest devices that meet its service levels.
     */
    accelerator_counts?: Array<number>;
    /** Settings of a training run that are searched. */
    training?: TrainingSearch;
    /** Settings of a service that are searched. */
    serving?: ServingSearch;
}

export type FloatPrecision = 'fp32' | 'bf16' | 'fp16';

/** Figures of requests that are forward passes. */
export interface ForwardPassEstimate {
    /** Models that a request passes, in order. */
    models: Array<ForwardPassEvaluations>;
    /** Sequences, pictures or videos that the whole cluster processes. */
    samples_per_second: QuantityEstimate;
    /** Mean requests of a pass on one replica. */
    batch: number;
    /** Time of a pass from start to end. */
    pass_seconds: QuantityEstimate;
    /** Energy of all devices for one sample. */
    energy_per_sample_joules?: QuantityEstimate;
}

/** Evaluations of one model for a request. */
export interface ForwardPassEvaluations {
    /** Phase of the model. */
    phase: ForwardPassEvaluationsPhase;
    /** Passes of a request through the model, one after another. */
    evaluations: number;
    /** Samples of a request in each pass. */
    samples: number;
    /** Floating-point operations of all passes for one request, on one device. */
    flops: number;
}

export type ForwardPassEvaluationsPhase = 'forward' | 'text_encoder' | 'denoiser' | 'autoencoder';

/** Requests that are each one pass over their sequences. Nothing is generated, even if the model could. */
export interface ForwardPassesInput {
    /**
     * Task of a pass. Embedding takes the hidden states; the others put one token of each sequence through
     * the head.
     */
    task?: ForwardPassesInputTask;
    /**
     * Sequences or pictures of a request, each of `input_tokens`: texts to embed, or a query with each of
     * the documents to rank.
     */
    sequences?: number;
}

export type ForwardPassesInputTask = 'embedding' | 'reranking' | 'classification';

/** Configurations of a search by outcome. */
export interface FrontierConfigurationCounts {
    /** Combinations of layout, precision, accelerator and concurrent requests. */
    considered: number;
    /** Configurations that no constraint rules out. */
    feasible: number;
    /** Feasible configurations that no other exceeds in both rates. */
    pareto: number;
    /** Configurations that a constraint rules out, in the order in which constraints are checked. */
    ruled_out: Array<RuledOutConfigurations>;
}

/**
 * Constraints that rule a configuration out, in the order in which they are checked.
 *
 * The device has no rate for the ``precision`` of the weights; ``heads``, ``blocks`` and ``experts``
 * of the model do not divide among the devices; tensor parallelism exceeds the fast ``link``; the
 * ``memory`` of a device is too small; the ``engine`` takes fewer concurrent requests; a
 * ``service_level`` is missed.
 */
export type FrontierConstraint = 'precision' | 'heads' | 'blocks' | 'experts' | 'link' | 'memory' | 'engine' | 'service_level';

/** A configuration that no other exceeds in both rates. */
export interface FrontierPoint {
    /** Layout of the configuration. */
    parallelism: ParallelismDegrees;
    /** Id of the accelerator. */
    accelerator_id: string;
    /** Format of the stored weights. */
    weight_format: string;
    /** Format of the stored KV cache. */
    kv_cache_precision: string;
    /** Concurrent requests over the whole cluster. */
    concurrency: number;
    /** Concurrent requests on each replica, or on each part of a replica whose experts are spread. */
    requests_per_replica: number;
    /** Tokens that each device generates. */
    output_tokens_per_second_per_device: QuantityEstimate;
    /** Tokens that a user receives after the first: 1 over the time per output token. */
    output_tokens_per_second_per_user: QuantityEstimate;
    /** Tokens that the whole cluster generates. */
    output_tokens_per_second: QuantityEstimate;
    /** Requests that the whole cluster completes. */
    requests_per_second: QuantityEstimate;
    /** Time from a request to its first token. */
    time_to_first_token_seconds: QuantityEstimate;
    /** Time from one token of a request to the next. */
    time_per_output_token_seconds: QuantityEstimate;
    /** Time from a request to its last token. */
    request_seconds: QuantityEstimate;
    /** Share of the requests that meet the service levels. Present if these are given. */
    service_level_share?: QuantityEstimate;
    /** Bytes of the engine's share of the fullest device that are free. Absent if its capacity is unknown. */
    headroom_bytes?: number;
    /** Body of `POST /v1/estimates/throughput` that returns the same figures. */
    throughput_question: ThroughputEstimateRequest;
}

/** Settings to search: layouts and concurrent requests; precisions and accelerators if listed. */
export interface FrontierSearchInput {
    /**
     * Precisions that the weights may have, beside `weight_formats`. Defaults to the precision of the
     * workload.
     */
    weight_precisions?: Array<WeightPrecision>;
    /**
     * Concurrent requests on each replica. Defaults to each number from 1 to 32 and steps of 5% up to
     * 4,096.
     */
    requests_per_replica?: Array<number>;
    /** Tensor-parallel degrees. Defaults to those that divide the cluster. */
    tensor?: Array<number>;
    /** Formats that the weights may be stored in. Defaults to the format of the workload. */
    weight_formats?: Array<WeightFormatName>;
    /** Formats that the KV cache may be stored in. Defaults to the format of the workload. */
    kv_cache_precisions?: Array<CachePrecision>;
    /** Numbers of pipeline stages. Defaults to those that divide the cluster. */
    pipeline?: Array<number>;
    /**
     * Numbers of replicas that the experts are spread over. Defaults to those that divide the number of
     * replicas. Values other than 1 need a model with experts.
     */
    expert?: Array<number>;
    /** Devices that each expert is divided over. Defaults to 1 and the tensor-parallel degree. */
    expert_tensor?: Array<number>;
    /** Accelerators that the devices of the cluster may be. Defaults to the accelerator of the cluster. */
    accelerators?: Array<AcceleratorReference>;
    /**
     * Most points of the answer. Of a larger Pareto set the answer has both ends and an even selection
     * between them.
     */
    most_points?: number;
}

/** Format of frozen weights: as wide as the activations, or matrices in NF4. */
export type FrozenWeightFormat = 'plain' | 'nf4' | 'nf4_double';

/** Releases of fused attention: FlashAttention, FlashAttention-2, or for the device's own instructions. */
export type FusedAttention = 'first' | 'second' | 'native';

/** C = A B of random numbers. */
export interface GemmWork {
    kind: 'gemm';
    /** Type of the elements. */
    dtype: GemmWorkDtype;
    /** Rows of A and C. */
    m: number;
    /** Columns of B and C. */
    n: number;
    /** Columns of A and rows of B. */
    k: number;
}

export type GemmWorkDtype = 'fp64' | 'fp32' | 'tf32' | 'bf16' | 'fp16' | 'fp8_e4m3' | 'int8';

/** A configuration to rank with the others, such as the one in use. */
export interface GivenConfiguration {
    /** Name of the configuration in the answer. */
    name: string;
    /**
     * Name of an `owned` or `rented` supply, or id of an offer. Defaults to the supply on which the
     * configuration does best.
     */
    supply?: string;
    /** Cluster that the configuration runs on. */
    cluster: ClusterInput;
    /** Layout of the configuration. */
    parallelism: ParallelismInput;
    /** Workload of the configuration: the same work, in its own batch, precision and recomputation. */
    workload: WorkloadInput;
}

/** Gradients of a micro-batch added to the sum of those before it. */
export interface GradientAccumulationWork {
    kind: 'gradient_accumulation';
    /** Type of the gradients that are added. */
    gradient_dtype: GradientAccumulationWorkGradientDtype;
    /** Gradients. */
    parameters: number;
}

export type GradientAccumulationWorkGradientDtype = 'bf16' | 'fp32';

/** Effect of gradient compression on a step. */
export interface GradientCompressionEstimate {
    /** Ratio of the bytes that a replica sends without compression to those with it. */
    ratio: number;
    /** Time of a step to compress and decompress. */
    compression_seconds: QuantityEstimate;
    /** Time of a step without gradient compression. */
    step_seconds_without: QuantityEstimate;
    /** True if the step is shorter with compression. */
    pays: boolean;
}

/** Compression of the gradients that replicas exchange. They must hold whole gradients (sharding none). */
export interface GradientCompressionInput {
    /**
     * Kind of compression: fp16 and int8 narrow the format, one_bit sends signs, top_k and random_k send a
     * share, and power_sgd sends two thin matrices.
     */
    kind: GradientCompressionKind;
    /** Share of the elements that top_k and random_k send. Defaults to 0.01. */
    kept_share?: number;
    /** Columns of the thin matrices of power_sgd. Defaults to 4. */
    rank?: number;
    /** True if the part that was not sent is kept in FP32 and added to the next gradient. */
    error_feedback?: boolean;
}

/**
 * Data that replicas send in place of their gradients.
 *
 * ``fp16`` and ``int8`` narrow each element, ``one_bit`` sends its sign and a scale, ``top_k`` the
 * largest elements with their indices, ``random_k`` those that a common seed selects, ``power_sgd``
 * two thin matrices.
 */
export type GradientCompressionKind = 'fp16' | 'int8' | 'one_bit' | 'top_k' | 'random_k' | 'power_sgd';

/** Gradients of 4 bytes made smaller before they are sent, with the error kept for the next step. */
export interface GradientCompressionWork {
    kind: 'gradient_compression';
    /** 8 bits with a scale for each block of 1024, one bit with a scale, or the largest with their places. */
    method: GradientCompressionWorkMethod;
    /** Gradients. */
    parameters: number;
    /** Share of the gradients that `top_k` sends. */
    kept_share?: number;
}

export type GradientCompressionWorkMethod = 'int8' | 'sign' | 'top_k';

export type GreenhouseGases = 'co2e' | 'co2';

/** A grid of the catalog. */
export interface Grid {
    id: string;
    name: string;
    /** Code of the place in the source. */
    code: string;
    /** Kind of place that the code names. */
    kind: GridKind;
    /** Mean intensity of a year. */
    carbon_intensity_kg_co2e_per_kwh: number;
    /**
     * Emissions that are counted: those of generation, of the life cycle, or as the provider publishes
     * them.
     */
    accounting: EmissionAccounting;
    sources: Array<Citation>;
    /** Number of this version of the row; the ETag of the resource. */
    version: number;
    /** Catalog revision of this version. */
    revision: number;
    /** `shipped` if the row ships with the service, `tenant` if it is a row of the tenant. */
    origin: RowOrigin;
    created_at: string;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Year of the mean. */
    data_year?: number;
    /** Rate of the average kWh, or of one additional kWh. */
    emission_rate?: EmissionRate;
    /** Gases that are counted: all greenhouse gases, or carbon dioxide alone. */
    greenhouse_gases?: GreenhouseGases;
    /** Intensity over time. */
    series?: CarbonIntensitySeriesInput;
    /** Water that evaporates in power plants for each kWh. */
    water_liters_per_kwh?: number;
}

/** A grid from a published table of hourly intensities. */
export interface GridImportRequest {
    id: string;
    name: string;
    /** Code of the place in the source. For AVERT, the column of its region. */
    code: string;
    /** Kind of place that the code names. */
    kind: GridKind;
    /**
     * Format of the file: EPA's AVERT (marginal, lb CO2 by hour of the year), or average kg CO2e/MWh by
     * month and hour.
     */
    format: GridImportRequestFormat;
    /** The file as text. */
    content: string;
    /** Time zone of its hours. */
    time_zone: string;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Emissions that are counted. */
    accounting?: EmissionAccounting;
    /** Year of the series. */
    data_year?: number;
    /** Water that evaporates in power plants for each kWh. */
    water_liters_per_kwh?: number;
}

export type GridImportRequestFormat = 'avert_csv' | 'month_hour_csv';

export type GridKind = 'country' | 'egrid_subregion' | 'bidding_zone' | 'cloud_region' | 'other';

/** A page of grids. */
export interface GridPage {
    items: Array<Grid>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface GridPatch {
    name?: string;
    /** Code of the place in the source. */
    code?: string;
    /** Kind of place that the code names. */
    kind?: GridKind;
    /** Mean intensity of a year. */
    carbon_intensity_kg_co2e_per_kwh?: number;
    /**
     * Emissions that are counted: those of generation, of the life cycle, or as the provider publishes
     * them.
     */
    accounting?: EmissionAccounting;
    sources?: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string | null;
    /** Year of the mean. */
    data_year?: number | null;
    /** Rate of the average kWh, or of one additional kWh. */
    emission_rate?: EmissionRate;
    /** Gases that are counted: all greenhouse gases, or carbon dioxide alone. */
    greenhouse_gases?: GreenhouseGases;
    /** Intensity over time. */
    series?: CarbonIntensitySeriesInput | null;
    /** Water that evaporates in power plants for each kWh. */
    water_liters_per_kwh?: number | null;
}

/** An electricity grid with its yearly mean intensity, and its intensity over time if that is known. */
export interface GridRequest {
    id: string;
    name: string;
    /** Code of the place in the source. */
    code: string;
    /** Kind of place that the code names. */
    kind: GridKind;
    /** Mean intensity of a year. */
    carbon_intensity_kg_co2e_per_kwh: number;
    /**
     * Emissions that are counted: those of generation, of the life cycle, or as the provider publishes
     * them.
     */
    accounting: EmissionAccounting;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Year of the mean. */
    data_year?: number;
    /** Rate of the average kWh, or of one additional kWh. */
    emission_rate?: EmissionRate;
    /** Gases that are counted: all greenhouse gases, or carbon dioxide alone. */
    greenhouse_gases?: GreenhouseGases;
    /** Intensity over time. */
    series?: CarbonIntensitySeriesInput;
    /** Water that evaporates in power plants for each kWh. */
    water_liters_per_kwh?: number;
}

/** Products of one call, of the rows of each expert with its own matrix, as in a mixture of experts. */
export interface GroupedGemmWork {
    kind: 'grouped_gemm';
    /** Type of the elements. */
    dtype: GroupedGemmWorkDtype;
    /** Experts, each with a matrix of its own. */
    groups: number;
    /** Rows of each expert. */
    m: number;
    /** Columns of the matrices of experts. */
    n: number;
    /** Rows of the matrices of experts. */
    k: number;
}

export type GroupedGemmWorkDtype = 'bf16' | 'fp16';

export type HardwareInclusion = 'host' | 'network';

/** A hardware price of the catalog. */
export interface HardwarePrice {
    id: string;
    name: string;
    /** Product, as its seller or the source names it. */
    product: string;
    /** Accelerator of the catalog. */
    accelerator_id: string;
    /** Accelerators of the product, such as 8 of a server or 72 of a rack. */
    accelerator_count?: number;
    /** Price of the whole product. Left out where only a range is published. */
    price?: MoneyInput;
    /** Date of the price. */
    as_of: string;
    sources: Array<Citation>;
    /** Number of this version of the row; the ETag of the resource. */
    version: number;
    /** Catalog revision of this version. */
    revision: number;
    /** `shipped` if the row ships with the service, `tenant` if it is a row of the tenant. */
    origin: RowOrigin;
    created_at: string;
    /** Price of the product, or the middle of its range, over its accelerators. */
    price_per_device: MoneyInput;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Range of the price of the whole product. */
    price_range?: HardwarePriceRange;
    /** Parts that the price covers beside the accelerators. Left out if that is unknown. */
    includes?: Array<HardwareInclusion>;
    /** Reason why the price may be wrong. Estimates that use it repeat the reason. */
    doubt?: string;
}

/** A page of hardware prices. */
export interface HardwarePricePage {
    items: Array<HardwarePrice>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface HardwarePricePatch {
    name?: string;
    /** Product, as its seller or the source names it. */
    product?: string;
    /** Accelerator of the catalog. */
    accelerator_id?: string;
    /** Accelerators of the product, such as 8 of a server or 72 of a rack. */
    accelerator_count?: number;
    /** Price of the whole product. Left out where only a range is published. */
    price?: MoneyInput | null;
    /** Date of the price. */
    as_of?: string;
    sources?: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string | null;
    /** Range of the price of the whole product. */
    price_range?: HardwarePriceRange | null;
    /** Parts that the price covers beside the accelerators. Left out if that is unknown. */
    includes?: Array<HardwareInclusion> | null;
    /** Reason why the price may be wrong. Estimates that use it repeat the reason. */
    doubt?: string | null;
}

/** Range of a published price, for the whole product. */
export interface HardwarePriceRange {
    /** Lowest price. */
    low: MoneyInput;
    /** Highest price. */
    high: MoneyInput;
}

/** A dated price of buying an accelerator, or a product that contains some. */
export interface HardwarePriceRequest {
    id: string;
    name: string;
    /** Product, as its seller or the source names it. */
    product: string;
    /** Accelerator of the catalog. */
    accelerator_id: string;
    /** Accelerators of the product, such as 8 of a server or 72 of a rack. */
    accelerator_count?: number;
    /** Price of the whole product. Left out where only a range is published. */
    price?: MoneyInput;
    /** Date of the price. */
    as_of: string;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Range of the price of the whole product. */
    price_range?: HardwarePriceRange;
    /** Parts that the price covers beside the accelerators. Left out if that is unknown. */
    includes?: Array<HardwareInclusion>;
    /** Reason why the price may be wrong. Estimates that use it repeat the reason. */
    doubt?: string;
}

/** Lengths by their frequency. */
export interface HistogramLength {
    distribution: 'histogram';
    /** Lengths. */
    tokens: Array<number>;
    /** Frequency of each length, in any unit. */
    weights: Array<number>;
}

export type HolidayTreatment = 'as_weekday' | 'included' | 'excluded';

/** Length of the service. Give one member. */
export interface HorizonInput {
    /** Time that the service runs. */
    duration_seconds?: number;
    /**
     * Number of requests that it answers. If the number of concurrent requests is constant, the first of
     * them all begin at once.
     */
    total_requests?: number;
    /** Number of tokens that it generates. */
    total_output_tokens?: number;
}

/** Host resources that the accelerators of a node share. They matter if state is offloaded. */
export interface HostInput {
    /**
     * Bandwidth of copies between one accelerator and its host, in each direction. Defaults to the PCI
     * Express of the accelerator, 16 lanes, else to generation 4.
     */
    link_bandwidth_bytes_per_second?: number;
    /**
     * Data-sheet bandwidth of all memory channels of the node. Defaults to that of the DGX with the same
     * generation of PCI Express.
     */
    memory_bandwidth_bytes_per_second?: number;
    /** Bandwidth of all NVMe drives of the node together, reading or writing. Defaults to 25e9. */
    drive_bandwidth_bytes_per_second?: number;
}

/** Copies between host and device. */
export interface HostLinkWork {
    kind: 'host_link';
    /** Direction of the copies, or both at once. */
    direction: HostLinkWorkDirection;
    /** Kind of memory on the host. */
    memory: HostLinkWorkMemory;
    /** Payload of one direction. */
    transfer_bytes: number;
}

export type HostLinkWorkDirection = 'host_to_device' | 'device_to_host' | 'both';

export type HostLinkWorkMemory = 'pinned' | 'pageable';

/** Bandwidth of the host's memory on a node with accelerators, over arrays far larger than its caches. */
export interface HostStreamWork {
    kind: 'host_stream';
    /** Access to the arrays. */
    pattern: HostStreamWorkPattern;
    /** Size of each array. */
    array_bytes: number;
}

export type HostStreamWorkPattern = 'read' | 'write' | 'copy' | 'triad';

/** Intensity of the hours of any year, from its first hour. 29 February repeats the day before. */
export interface HoursOfYearIntensityInput {
    /** Selects this shape. */
    kind: 'hours_of_year';
    /** Time zone of the hours. */
    time_zone: string;
    /** Intensity of each hour. */
    kg_co2e_per_kwh: Array<number>;
}

/** A model given by its published `config.json`. */
export interface HuggingFaceModel {
    source: 'huggingface_config';
    /** The parsed config.json, as published. */
    config: Record<string, unknown>;
}

/** A file of measurements that was imported, with the figures that were read. */
export interface ImportedEvidence {
    id: string;
    /** Format of the file, by the program that wrote it. */
    format: EvidenceFormat;
    /** State of the evidence, which is the state of its calibration. */
    state: EvidenceState;
    /** Reason of the withdrawal. */
    reason?: string;
    /** Origin of the file. */
    note?: string;
    /** Id of the calibration that was made from the file. */
    calibration_id: string;
    /** SHA-256 of the file, which itself is not stored. */
    content_sha256: string;
    /** Number of runs in the file. */
    run_count: number;
    /** Number of figures that were read. */
    reading_count: number;
    /** Figures of whole runs, which adjust estimates of the tenant. */
    answers: Array<ImportedEvidenceFigure>;
    /** Figures of the device that were derived, by their name in the calibration. */
    figures: Array<string>;
    /** Parts of the file that do not count, with the reasons. */
    refused: Array<EvidenceRemark>;
    /** Remarks on parts that count. */
    notes: Array<EvidenceRemark>;
    created_at: string;
    /** Time of the withdrawal. */
    withdrawn_at?: string;
    /** The first 1,000 figures. */
    readings: Array<ImportedEvidenceReading>;
}

/** One figure that counts as evidence, with the estimate of it at the time of the import. */
export interface ImportedEvidenceFigure {
    /** Place of the figure in the file. */
    pointer: string;
    /** Kind of figure that it is evidence for. */
    family: string;
    /** Measured value, in the unit of the estimate's figure. */
    measured: number;
    /** Estimate of the service for the same question, without this evidence. */
    estimated: number;
}

/** One figure as it was read, in the SI unit that ends the name of the metric. */
export interface ImportedEvidenceReading {
    /** Line of the file (/12) or JSON Pointer into it. */
    pointer: string;
    /** Metric that was measured. */
    metric: string;
    /** Value of the figure. */
    value: number;
    /** Statistic of the figure: mean, a percentile such as p50, min, max, or single. */
    statistic: string;
    /** Scope of the figure: step, rank, device, test, size. */
    of?: Record<string, TextOrNumber>;
}

/** A grid that was imported. */
export interface ImportedGrid {
    grid: Grid;
    warnings: Array<AnswerWarning>;
}

/** The stored model, and what its configuration leaves open. */
export interface ImportedModel {
    /** The model as stored. */
    model: Model;
    /** Facts that the configuration leaves open, and the values that were assumed. */
    warnings: Array<AnswerWarning>;
}

/** Result of importing a price list. */
export interface ImportedOffers {
    /** Ids of new offers. */
    created: Array<string>;
    /** Ids of offers that have a new version. */
    changed: Array<string>;
    /** Ids of offers that were already stored with the same content. */
    unchanged: Array<string>;
    /** First thousand rows that are not offers, with the reason. */
    refused: Array<RefusedRow>;
    /** All refused rows by reason. */
    refused_reasons: Array<RefusedRowCount>;
    /** Rows, or prices of a document, that were read. */
    row_count: number;
}

/** The stored tariff, and the parts of the file that were left out or approximated. */
export interface ImportedTariff {
    /** The tariff as stored. */
    tariff: Tariff;
    /** Keys that were left out on request, each with the reason if it could not be taken over. */
    refused: Array<AnswerWarning>;
    /** Keys that were taken over under an assumption. */
    approximated: Array<AnswerWarning>;
    /** Remarks that have no effect on a bill. */
    warnings: Array<AnswerWarning>;
}

/** Result of importing a list of token prices. */
export interface ImportedTokenPrices {
    /** Ids of new token prices. */
    created: Array<string>;
    /** Ids of token prices that have a new version. */
    changed: Array<string>;
    /** Ids of token prices that were already stored with the same content. */
    unchanged: Array<string>;
    /** First thousand models without a price of tokens, with the reason. */
    refused: Array<RefusedRow>;
    /** All refused models by reason. */
    refused_reasons: Array<RefusedRowCount>;
    /** Number of models that were read. */
    row_count: number;
}

/**
 * A served model under requests that arrive, or that are kept at a constant number.
 *
 * Without concurrency, a rate or a trace there is one request at a time.
 */
export interface InferenceWorkloadInput {
    kind: 'inference';
    /** Tokens of a prompt. Tokens of pictures are added if `sample` gives their sizes. Defaults to 1024. */
    input_tokens?: number | LengthDistribution;
    /** Tokens that are generated for a prompt. Defaults to 256. */
    output_tokens?: number | LengthDistribution;
    /** Concurrent requests over the whole cluster. A new request follows each that ends. */
    concurrency?: number;
    /** Requests per second that arrive at the whole cluster, however many are being served. */
    request_rate_per_second?: number;
    /**
     * Width of the weights, without scales. Below 16 bit only matrices inside blocks are narrow. Defaults
     * to the format of the checkpoint if the model's configuration has a `quantization_config`, else to
     * bf16, on an accelerator without a bf16 rate to fp16, then to fp32. llama.cpp loads gguf_q4_k_m by
     * default, or the mxfp4 of the checkpoint.
     */
    weight_precision?: WeightPrecision;
    /**
     * The serving engine. Defaults to the newest vllm for a model that generates tokens, and to llama.cpp
     * for its formats and on devices that are served by it, such as Apple silicon and processors.
     */
    engine?: ServingEngineInput;
    /** Limits of a request. Without them there is no goodput. */
    service_levels?: ServiceLevelsInput;
    /** Length of the service. Required for cost and utility bill. */
    horizon?: HorizonInput;
    /**
     * Storage format of a quantised checkpoint, with scales and zero points: a layout of a quantisation
     * tool, or a file type of llama.cpp. Replaces `weight_precision`.
     */
    weight_format?: WeightFormatName;
    /**
     * Format that the KV cache is stored in. q8_0, q5_0 and q4_0 are formats of llama.cpp. Defaults to the
     * format that the `quantization_config` of the checkpoint states for the cache, else to bf16, fp16 or
     * fp32 like weights.
     */
    kv_cache_precision?: InferenceWorkloadInputKvCachePrecision;
    /**
     * Format that recurrent states (state space, linear attention) are stored in. Defaults to the format
     * of the engine: fp32 for transformers, sglang and llama.cpp, else bf16.
     */
    state_precision?: FloatPrecision;
    /** Content of a request beside its tokens: sizes of pictures and videos, and the input of an encoder. */
    sample?: SampleInput;
    /** Arrival process of the requests. Defaults to poisson. */
    arrivals?: ArrivalsInput;
    /** Share of the tokens of prompts whose keys and values are found in the cache. Defaults to 0. */
    prefix_cache_hit_rate?: number;
    /**
     * `continuous` if requests join and leave the batch at every step, `static` if a batch runs until its
     * last request ends. Defaults to continuous, for transformers to static.
     */
    scheduler?: InferenceWorkloadInputScheduler;
    /**
     * Share of the device's memory that the engine may use, as the engine defines it: of the device
     * (vllm), of the free memory once the model is loaded (tensorrt-llm), for weights and cache alone
     * (sglang). Defaults to 0.92 for vllm, or 0.9 before version 0.21; to 0.9 for tensorrt-llm; for sglang
     * to its own value by version, device and group; for llama.cpp and transformers to 1. If the engine is
     * open too and no request fits, it is raised to 0.95.
     */
    memory_fraction?: number;
    /** Speculative decoding. Without it a pass generates one token. */
    speculative?: SpeculativeDecodingInput;
    /** Requests that are forward passes of a model that could generate, such as a decoder that embeds. */
    passes?: ForwardPassesInput;
    /** Sampling of a request of a denoiser. Without it a request is one evaluation of one sample. */
    diffusion?: DiffusionInput;
    /** Batching of requests that are passes. Defaults to all requests that wait. */
    batching?: BatchingInput;
    /** Prefill and decode on replicas of their own. They replace `parallelism`. */
    disaggregated?: DisaggregationInput;
    /** Low-rank adapters served beside the model. */
    adapters?: AdaptersInput;
}

export type InferenceWorkloadInputKvCachePrecision = 'fp32' | 'fp16' | 'bf16' | 'fp8' | 'int8' | 'fp4' | 'int4' | 'q8_0' | 'q5_0' | 'q4_0';

export type InferenceWorkloadInputScheduler = 'continuous' | 'static';

/** Pairwise dot products of feature vectors; no parameters. */
export interface InteractionLayer {
    kind: 'interaction';
    /** Number of feature vectors. */
    features: number;
    /** Width of a vector. */
    size: number;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

/** Intensity of consecutive intervals from a fixed time. */
export interface IntervalIntensityInput {
    /** Selects this shape. */
    kind: 'intervals';
    /** Start of the first interval. */
    starts_at: string;
    /** Length of each interval, in minutes. */
    interval_minutes?: 5 | 15 | 30 | 60;
    /** Intensity of each interval. */
    kg_co2e_per_kwh: Array<number>;
}

/** Prices of consecutive intervals. */
export interface IntervalPrices {
    /** Start of the first interval. */
    starts_at: string;
    /** Length of an interval; it divides the hour. */
    interval_minutes: number;
    /** Price of a kWh in each interval, in the currency of the tariff. */
    values: Array<number>;
}

/** A key and its secret. The secret is shown only in this answer and is not stored. */
export interface IssuedApiKey {
    key: ApiKey;
    /** Secret that callers send as `Authorization: Bearer`. Absent from a repeated answer. */
    secret?: string;
}

/** An approval link and its address. The address is shown only in this answer and is not stored. */
export interface IssuedApprovalLink {
    /** The stored link. */
    link: ApprovalLink;
    /**
     * Address of the link. Whoever opens it may decide in the approver's name, once. Absent from a
     * repeated answer.
     */
    url?: string;
}

/** An enrolment token and its secret. The secret is shown only in this answer and is not stored. */
export interface IssuedEnrolmentToken {
    /** The stored token. */
    enrolment_token: EnrolmentToken;
    /** Secret that the node sends. Absent from a repeated answer. */
    token?: string;
}

/** The next credential of a node. The previous credential works until this one has been used. */
export interface IssuedNodeCredential {
    /** Credential that the node sends as `Authorization: Bearer` from now on. */
    credential: string;
    /** Number of credentials of the node so far. */
    generation: number;
}

/** A webhook and its secret. The secret is shown only in this answer. */
export interface IssuedWebhook {
    /** The webhook. */
    webhook: Webhook;
    /**
     * Secret that verifies `v1` signatures, in the form that libraries of Standard Webhooks take. Absent
     * from a repeated answer, and for `v1a`, whose public key is a member of the webhook.
     */
    secret?: string;
}

/** Time of one part of the iterations of a phase. */
export interface IterationPartTime {
    /**
     * Part of an iteration. Matrices and experts multiply; attention reads the cache; other streams
     * activations; collectives are waited for; launch is the time of kernels beside their work; host is
     * the time of the engine's own program.
     */
    part: IterationPartTimePart;
    /** Time of the phase that the part takes. */
    seconds: number;
}

export type IterationPartTimePart = 'matrices' | 'experts' | 'attention' | 'other' | 'collectives' | 'launch' | 'host';

export type JsonScalar = string | number | boolean;

/** Transfer of the KV cache of a prompt. */
export interface KvCacheTransferEstimate {
    /**
     * Bytes of a prompt's cache over all links. What several devices of a replica hold, such as a latent,
     * is sent to each of them.
     */
    bytes_per_request: number;
    /** Time from the first byte to the last. */
    seconds: number;
    /** Time of the transfer, and of handing the request over, that a request waits for. */
    exposed_seconds: number;
    /** Rate that the links cannot exceed. Absent if nothing is sent. */
    most_requests_per_second?: number;
}

/** The KV cache of one request: on the fullest device, except for `model_bytes_per_token`. */
export interface KvCacheUsage {
    /** `paged` if a request takes blocks as it grows, `contiguous` if it takes its whole length at once. */
    allocation: KvCacheUsageAllocation;
    /** Tokens that are allocated at a time. */
    block_tokens: number;
    /**
     * Bytes of a token on the fullest device, as a mean over the length of a request. A windowed layer
     * takes no more beyond its window.
     */
    bytes_per_token: number;
    /** Bytes of a request at its full length on the fullest device. */
    bytes_per_request: number;
    /**
     * Bytes of a request on the fullest device that are never filled: the rest of the last block, and in a
     * contiguous cache on average half of the output.
     */
    waste_bytes_per_request: number;
    /**
     * Bytes of a token over all layers and heads of the model, each held once, as a mean over the length
     * of a request. A tensor-parallel group divides them by its degree, at most by the key-value heads.
     * Each of its devices holds a latent whole.
     */
    model_bytes_per_token: number;
}

export type KvCacheUsageAllocation = 'paged' | 'contiguous';

/** Percentiles over requests, in seconds. Each has the relative uncertainty of the mean. */
export interface LatencyPercentiles {
    /** Half of the requests take no longer. */
    p50: number;
    /** 95% of the requests take no longer. */
    p95: number;
    /** 99% of the requests take no longer. */
    p99: number;
}

/** Multi-head latent attention (MLA): keys and values are rebuilt from one compressed vector. */
export interface LatentAttentionLayer {
    kind: 'latent_attention';
    /** Width of the residual stream. */
    hidden_size: number;
    /** Number of query heads. */
    query_heads: number;
    /** Width of the compressed key and value. */
    key_value_rank: number;
    /** Width of the part of a head that carries the position; 0 where none does. */
    rotary_head_size: number;
    /** Width of the part of a head that carries no position. */
    plain_head_size: number;
    /** Width of the value of a head. */
    value_head_size: number;
    /** Width of the compressed query; absent without compression. */
    query_rank?: number;
    /** Length of the sliding window in tokens; absent without one. */
    window_tokens?: number;
    /**
     * Number of heads of the scorer that picks tokens (sparse attention); absent where every token is
     * read.
     */
    index_heads?: number;
    /** Width of the heads of the scorer, and of the one key that it keeps for each token or pool. */
    index_head_size?: number;
    /** Number of tokens that the scorer picks for each query. */
    index_tokens?: number;
    /**
     * Number of tokens that the scorer weighs into one key and picks together; absent where each token has
     * a key of its own.
     */
    index_pool?: number;
    /** Projection that scales the output, by head or by element. */
    gate?: AttentionLayerGate;
    /** True if each head has a learned score that belongs to no token. */
    sinks?: boolean;
    /** True if a learned vector is added. */
    bias?: boolean;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

/** Time from one empty kernel to the next, launched one by one or as a graph. */
export interface LaunchLatencyWork {
    kind: 'launch_latency';
    /** Way in which the kernels are launched. */
    method: LaunchLatencyWorkMethod;
    /** Kernels of one execution. */
    launches: number;
}

export type LaunchLatencyWorkMethod = 'stream' | 'graph';

/** Settings with which a framework or an engine runs the first row. */
export interface LaunchSettings {
    /** Framework or engine. */
    tool: LaunchSettingsTool;
    /** Arguments of its command line. */
    arguments?: Array<string>;
    /** Configuration file by section and key. */
    configuration?: Record<string, unknown>;
    /** Settings of the row that the tool does not have. */
    missing: Array<EstimateGap>;
}

export type LaunchSettingsTool = 'torchrun' | 'megatron_lm' | 'deepspeed' | 'torchtitan' | 'vllm' | 'sglang';

/** Learned vectors that no matrix multiplication reads. */
export interface LearnedVectorsLayer {
    kind: 'learned_vectors';
    /** Purpose of the vectors; class tokens lengthen the sequence. */
    purpose: LearnedVectorsLayerPurpose;
    /** Number of vectors. */
    rows?: number;
    /** Width of a vector. */
    size: number;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

export type LearnedVectorsLayerPurpose = 'positions' | 'relative_positions' | 'class_tokens' | 'query_tokens' | 'mask_token' | 'layer_scale' | 'bias' | 'scale' | 'modulation' | 'tokens';

/** A learning rate that is known to work. Hints at other batch sizes start from it. */
export interface LearningRateInput {
    /** The learning rate. */
    base: number;
    /** Sequences per optimizer step at which it worked. */
    base_batch_size: number;
}

/** A claim of a node for work. A claim with the same `request_id` gets the same lease. */
export interface LeaseClaimRequest {
    /** Random name of the claim; each claim has its own. */
    request_id: string;
    /** Longest time that the service may hold the answer back until there is work. */
    wait_seconds?: number;
    /** Digest of the current inventory of the node. */
    inventory_sha256: string;
    /** Newest form of suites that the node reads. The service leaves out benchmarks of newer forms. */
    suite_form?: number;
}

/** State of the run after its lease was completed. */
export interface LeaseCompletion {
    /** State of the run: `waiting` for another attempt, or ended. */
    state: LeaseCompletionState;
}

/** The completion of a lease. The lease ends only once every result that it names is stored. */
export interface LeaseCompletionRequest {
    /** Fencing token of the lease. */
    fencing_token: number;
    /** Outcome of the attempt; `released` gives the run back, for another attempt that does not count. */
    outcome: LeaseCompletionRequestOutcome;
    /** Code of the reason that the run failed or was released. */
    reason?: string;
    /** Reason in words. */
    detail?: string;
    results?: Array<AcknowledgedBenchmarkResult>;
    progress?: LeaseProgress;
}

export type LeaseCompletionRequestOutcome = 'completed' | 'failed' | 'released' | 'cancelled';

export type LeaseCompletionState = 'waiting' | 'completed' | 'failed' | 'cancelled' | 'dead';

/** Progress of a run. */
export interface LeaseProgress {
    steps: Array<BenchmarkProgress>;
}

/** A renewed lease. */
export interface LeaseRenewal {
    /** Duration of the lease, counted from the time at which the request was sent. */
    lease_seconds: number;
    /** True if the node should end the run and complete the lease with the outcome `cancelled`. */
    cancel: boolean;
}

/** A renewal of a lease, with the progress of the run. */
export interface LeaseRenewalRequest {
    /** Fencing token of the lease. */
    fencing_token: number;
    progress?: LeaseProgress;
}

export type LengthDistribution = FixedLength | LognormalLength | HistogramLength;

/** Attention with a state of fixed size under a rule of forgetting. */
export interface LinearAttentionLayer {
    kind: 'linear_attention';
    /** Width of the residual stream. */
    hidden_size: number;
    /** Number of heads of keys and queries. */
    key_heads: number;
    /** Number of heads of values. */
    value_heads: number;
    /** Width of a key. */
    key_head_size: number;
    /** Width of a value. */
    value_head_size: number;
    /** Number of tokens that the short convolution sees. */
    convolution_width: number;
    /**
     * Rule by which the state forgets: a decay for each head (`gated_delta`, Yang et al. 2024), a decay
     * for each channel (`channel_delta`, Kimi Linear 2025), or a constant of the head, without convolution
     * (`fixed`, MiniMax-01 2025).
     */
    rule?: LinearAttentionLayerRule;
    /** Width inside the projections of forget gate and output gate; absent where they are full. */
    gate_rank?: number;
    /** True if the output gate is full beside a forget gate of rank `gate_rank` (Kimi K3 2026). */
    full_output_gate?: boolean;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

export type LinearAttentionLayerRule = 'gated_delta' | 'channel_delta' | 'fixed';

/** One matrix on every token. */
export interface LinearLayer {
    kind: 'linear';
    /** Width of the input. */
    input_size: number;
    /** Width of the output. */
    output_size: number;
    /** True if a learned vector is added. */
    bias?: boolean;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

/** A link of the catalog. */
export interface Link {
    id: string;
    name: string;
    /** Technology of the link. */
    kind: LinkKind;
    /** Scope of the link: the devices of a node, or nodes. */
    scope: LinkScope;
    /** Bandwidth of one device in one direction. */
    bandwidth_bytes_per_second: number;
    /** Latency in one direction. */
    latency_seconds?: number;
    sources: Array<Citation>;
    /** Number of this version of the row; the ETag of the resource. */
    version: number;
    /** Catalog revision of this version. */
    revision: number;
    /** `shipped` if the row ships with the service, `tenant` if it is a row of the tenant. */
    origin: RowOrigin;
    created_at: string;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Bandwidth of both directions together, as vendors state it. */
    bidirectional_bandwidth_bytes_per_second?: number;
    /**
     * Accelerators that the link joins, if they are not those of a node: cards of a bridge, GPUs of a
     * rack.
     */
    joined_count?: number;
    /** Torus that the link forms; absent where switches or a mesh join the accelerators. */
    torus?: LinkTorus;
    /** True if the switches of the link reduce the data that pass through them. */
    in_network_reduction?: boolean;
}

/** Technology of a link. ``ethernet`` is TCP over it, ``roce`` and ``efa`` are remote memory access. */
export type LinkKind = 'nvlink' | 'pcie' | 'infiniband' | 'roce' | 'efa' | 'ethernet' | 'infinity_fabric' | 'ici' | 'neuronlink' | 'hccs' | 'c2c';

/** A page of links. */
export interface LinkPage {
    items: Array<Link>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface LinkPatch {
    name?: string;
    /** Technology of the link. */
    kind?: LinkKind;
    /** Scope of the link: the devices of a node, or nodes. */
    scope?: LinkScope;
    /** Bandwidth of one device in one direction. */
    bandwidth_bytes_per_second?: number;
    /** Latency in one direction. */
    latency_seconds?: number | null;
    sources?: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string | null;
    /** Bandwidth of both directions together, as vendors state it. */
    bidirectional_bandwidth_bytes_per_second?: number | null;
    /**
     * Accelerators that the link joins, if they are not those of a node: cards of a bridge, GPUs of a
     * rack.
     */
    joined_count?: number | null;
    /** Torus that the link forms; absent where switches or a mesh join the accelerators. */
    torus?: LinkTorus | null;
    /** True if the switches of the link reduce the data that pass through them. */
    in_network_reduction?: boolean | null;
}

export type LinkReference = CatalogLink | SpecifiedLink;

/** A link between accelerators of a node, or between nodes. */
export interface LinkRequest {
    id: string;
    name: string;
    /** Technology of the link. */
    kind: LinkKind;
    /** Scope of the link: the devices of a node, or nodes. */
    scope: LinkScope;
    /** Bandwidth of one device in one direction. */
    bandwidth_bytes_per_second: number;
    /** Latency in one direction. */
    latency_seconds?: number;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Bandwidth of both directions together, as vendors state it. */
    bidirectional_bandwidth_bytes_per_second?: number;
    /**
     * Accelerators that the link joins, if they are not those of a node: cards of a bridge, GPUs of a
     * rack.
     */
    joined_count?: number;
    /** Torus that the link forms; absent where switches or a mesh join the accelerators. */
    torus?: LinkTorus;
    /** True if the switches of the link reduce the data that pass through them. */
    in_network_reduction?: boolean;
}

export type LinkScope = 'intra_node' | 'inter_node';

/** A link that is not in the catalog. */
export interface LinkSpecification {
    /** Technology of the link, which determines what software achieves on it. */
    kind: LinkKind;
    /** Bandwidth of one device in one direction. */
    bandwidth_bytes_per_second: number;
    /** Latency in one direction. Defaults to the known latency of the technology. */
    latency_seconds?: number;
    /** Accelerators that the link joins. Defaults to those of a node. */
    joined_count?: number;
    /** True if the switches of the link reduce the data that pass through them. */
    in_network_reduction?: boolean;
}

/** Wires along the axes of a torus, instead of switches. */
export interface LinkTorus {
    /** Dimensions of the torus. */
    axes: number;
    /** Accelerators of an axis from which on it closes into a ring; a shorter one is a line. */
    ring_count: number;
}

/** Power over time, at the middle of the interval of the energy. */
export interface LoadProfileEstimate {
    /** Time from switching on to switching off, pauses included. */
    elapsed_seconds: number;
    /** Time and energy by phase. */
    phases: Array<LoadProfilePhase>;
    /** Interval of the meter, in minutes. */
    interval_minutes: number;
    /** Start of the first interval. */
    first_interval_at?: string;
    /** Highest mean of an interval at the meter. */
    highest_interval_kw?: number;
    /** Mean power of each interval at the meter. */
    intervals_kw?: Array<number>;
}

/** Total of all phases of one name. */
export interface LoadProfilePhase {
    /** Activity of the run. */
    name: LoadProfilePhaseName;
    /** Time of the phases. */
    seconds: number;
    /** Energy that all equipment draws in the phases. */
    it_kwh: number;
}

export type LoadProfilePhaseName = 'ramp' | 'steady' | 'checkpoint' | 'restart' | 'maintenance' | 'idle';

/** Load of the cluster relative to the load that it can serve. */
export interface LoadSaturation {
    /**
     * True if the load exceeds what can be served. Queues then grow, and latencies are those after an hour
     * of the load.
     */
    saturated: boolean;
    /** Highest rate of the whole cluster, at any load. */
    most_requests_per_second: QuantityEstimate;
    /**
     * Concurrent requests at which the rate over the time of a request is largest (Kleinrock 1979). Beyond
     * it latency grows faster than the rate.
     */
    knee_concurrency?: number;
    /**
     * Limit of the rate: the number of requests, the arrivals, the KV cache, the engine's setting, or the
     * speed of the devices; in disaggregated serving of one side, or of the links between them.
     */
    limit: LoadSaturationLimit;
}

export type LoadSaturationLimit = 'concurrency' | 'arrivals' | 'cache' | 'max_num_seqs' | 'rate' | 'prefill' | 'decode' | 'transfer';

/** Log-normally distributed lengths. Give `p95_tokens` or `sigma`. */
export interface LognormalLength {
    distribution: 'lognormal';
    /** Mean length before the cut at `most_tokens`. */
    mean_tokens: number;
    /** Length that 95% of the requests do not exceed: from the mean to 3.86 times the mean. */
    p95_tokens?: number;
    /** Standard deviation of the logarithm. */
    sigma?: number;
    /** Length that longer requests are cut to, which lowers the mean. */
    most_tokens?: number;
}

/** Computation of the loss from logits: in FP32, at the activations' width, in chunks, or never stored. */
export type LossImplementation = 'fp32' | 'narrow' | 'chunked' | 'fused';

/** Windows at equal intervals in which the run is paused. */
export interface MaintenanceSchedule {
    /** Time from the start of one window to the start of the next. */
    every_seconds: number;
    /** Length of a window. */
    duration_seconds: number;
    /** Time from the start of the run to the first window. Defaults to `every_seconds`. */
    first_after_seconds?: number;
    /** Power state of the machines during a window. */
    power?: MaintenanceSchedulePower;
}

export type MaintenanceSchedulePower = 'idle' | 'off';

/** Electricity of one contract instrument. */
export interface MarketBasedEmissionsLine {
    /** Instrument, or the residual mix for what the instruments leave. */
    name: MarketBasedEmissionsLineName;
    /** Share of the run's energy. */
    share: number;
    /** Energy at the meter. */
    kwh: number;
    /** Emissions of the electricity. */
    kg_co2e: number;
    /** Document that states the intensity. */
    source: string;
}

export type MarketBasedEmissionsLineName = 'power_purchase_agreement' | 'certificate' | 'supplier' | 'green_tariff' | 'residual_mix';

/** A tariff by the prices of a market: the price of each interval times a factor, and an adder. */
export interface MarketTariffImportRequest {
    id: string;
    name: string;
    format: 'entsoe_a44_xml';
    /** A publication document of ENTSO-E's day-ahead prices (A44). */
    content: string;
    /** IANA name of the local clock. */
    time_zone: string;
    /** Decimal number as text; credits are below zero. */
    adder?: string;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Company that charges by the tariff. */
    utility?: string;
    /** Decimal factor of the price of the market. */
    factor?: string;
}

/** Measured energy of a run, in place of the estimate. */
export interface MeasuredEnergyInput {
    /** Energy of the whole run. */
    energy_kwh: number;
    /** Time over which the energy was measured. */
    duration_seconds: number;
    /** Accelerators that took part. */
    device_count: number;
    /** Place of the measurement: the meter of the building, or the supply of its machines. */
    boundary?: MeasuredEnergyInputBoundary;
}

export type MeasuredEnergyInputBoundary = 'facility' | 'it';

/** Conditions under which a result was measured, as its node reports them; of readings, the middle one. */
export interface MeasurementConditions {
    /** Version of the worker. */
    worker_version: string;
    /** Index of the accelerator in the inventory of the node. */
    accelerator_index?: number;
    /** Number of accelerators that were measured at the same time, this one included; 0 without any. */
    concurrent_accelerators: number;
    /** Library that ran. */
    library?: string;
    /** Algorithm that the library chose. */
    algorithm?: string;
    /** Mode of the multiplications. */
    math_mode?: string;
    /** Type of the accumulator. */
    accumulation?: string;
    /** Distribution of the input. */
    data?: string;
    /** Timer of the samples. */
    timer?: string;
    /** Duration of the warm-up: the same work, run before the first sample. */
    warmup_seconds?: number;
    /** Number of executions in one sample. */
    inner_iterations?: number;
    /** Reason that there are no more samples. */
    stop_reason?: string;
    /** Number of samples that do not count. */
    discarded_samples?: number;
    /** Bytes that are read before each sample, so that no input is cached. */
    flush_bytes?: number;
    /** Number of sets of input that take turns. */
    rotated_buffers?: number;
    /** True if the executions were launched as a graph. */
    uses_graph?: boolean;
    /** Number of threads of the host that did the work. */
    threads?: number;
    /** True if the computed result passed the comparison with a reference. */
    correctness_passed?: boolean;
    /** Largest error against the reference, relative to the scale of the result. */
    largest_relative_error?: number;
    /** Duration of the window of the readings. */
    window_seconds?: number;
    /** Clock of the multiprocessors. */
    sm_clock_hz?: number;
    /** Clock of the processors, on a node without accelerators. */
    cpu_clock_hz?: number;
    /** Clock of the memory. */
    memory_clock_hz?: number;
    /** Temperature of the device. */
    temperature_celsius?: number;
    /** Temperature of the memory of the device. */
    memory_temperature_celsius?: number;
    /** Power by the sensor, on most devices its average over one second. */
    power_watts?: number;
    /** Power by the sensor at the moment of a reading. */
    power_instant_watts?: number;
    /** Energy by the energy counter. */
    energy_joules?: number;
    /** Power by the energy counter, over the time between its readings. */
    energy_power_watts?: number;
    /** Number of corrected errors of the memory. */
    ecc_corrected?: number;
    /** Number of uncorrected errors of the memory. */
    ecc_uncorrected?: number;
    /** Generation of the bus under load. */
    pcie_generation?: number;
    /** Number of lanes under load. */
    pcie_width?: number;
    /** Number of other processes on the device. */
    other_processes?: number;
    /** Load average of the host over one minute. */
    load_average?: number;
    /** Time at a lower clock for the power limit. */
    throttle_sw_power_cap_seconds?: number;
    /** Time at a lower clock for the temperature. */
    throttle_sw_thermal_seconds?: number;
    /** Time at a lower clock for the temperature, by the hardware. */
    throttle_hw_thermal_seconds?: number;
    /** Time at a lower clock for the power supply. */
    throttle_hw_power_brake_seconds?: number;
    /** Time at a lower clock for other devices. */
    throttle_sync_boost_seconds?: number;
}

/** The reason that there is no measurement. */
export interface MeasurementFailure {
    /** Stable name of the reason. */
    reason: string;
    /** Reason in words. */
    detail?: string;
    /** Exit code of the process; a code below 0 is the signal that ended it. */
    exit_code?: number;
    /** End of the error output of the process. */
    error_output?: string;
}

/** One part of the memory of a device. */
export interface MemoryComponent {
    /**
     * Content of the memory. Parts of a training step that take no bytes are left out, except its training
     * state.
     */
    name: MemoryComponentName;
    /** Bytes on the fullest device. */
    bytes: number;
}

export type MemoryComponentName = 'weights' | 'gradients' | 'master_weights' | 'optimizer_states' | 'weight_copies' | 'auxiliary_models' | 'activations' | 'logits' | 'gathered_weights' | 'gradient_buffers' | 'kv_cache' | 'state' | 'draft_weights' | 'draft_kv_cache' | 'adapters' | 'workspace' | 'sampler' | 'cuda_graphs' | 'communication_buffers' | 'runtime' | 'device_context' | 'fragmentation' | 'framework_overhead';

/** Memory of a workload on its fullest device, and whether it fits. */
export interface MemoryEstimate {
    /** The layout that the figures hold for. */
    parallelism: ParallelismDegrees;
    /** Versions and sources that reproduce the answer. */
    evidence: EstimateEvidence;
    /** Members that the question leaves open and that shape the answer, as they are filled. */
    defaults: Array<EstimateDefault>;
    /** Remarks about the question. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
    /** Parameters as PyTorch counts those of the model class: tied ones once, buffers not. */
    parameter_count: number;
    /** Parameters that one token uses. */
    active_parameter_count: number;
    /** Parameters that a training run changes. */
    trained_parameter_count?: number;
    /**
     * Bytes of the weights of the whole served model as they are stored, counted once: the size of its
     * files.
     */
    stored_weight_bytes?: number;
    /** Memory of the fullest device. */
    per_device: DeviceMemory;
    /** KV cache of a request. Present for a served model that keeps one. */
    kv_cache?: KvCacheUsage;
    /** State that is offloaded from the device. Absent if nothing is. */
    host?: OffloadedMemory;
    /** Memory that the driver of the device reports. Absent if it is unknown. */
    capacity_bytes?: number;
    /**
     * Memory of the device that the workload may use. Under a serving engine: its share, and what it takes
     * outside that share.
     */
    usable_bytes?: number;
    /** Usable bytes less the total. Below 0 if the workload does not fit. */
    headroom_bytes?: number;
    /** True if the total is at most the usable bytes. */
    fits?: boolean;
    /** Probability that the workload fits, from the intervals of total and capacity. */
    fit_probability?: number;
    /** Largest value of each dimension before the device is full. */
    limits: MemoryLimits;
    /**
     * Changes that make the workload fit. For training: the cheapest set of changes, to be made together,
     * ordered by their cost. For serving: single changes, or the smallest sets if no single one is enough.
     */
    advice: Array<EstimateAdvice>;
}

/** Several requests for memory, answered in order. */
export interface MemoryEstimateBatchRequest {
    /** Requests. If one of them has no answer, the batch fails. */
    requests: Array<MemoryEstimateRequest>;
}

/** Answers in the order of the questions. */
export interface MemoryEstimateList {
    results: Array<MemoryEstimate>;
}

/** Request for the memory of a workload. */
export interface MemoryEstimateRequest {
    /** Model that is trained or served. */
    model: ModelReference;
    /** Work of the model. */
    workload: WorkloadInput;
    /**
     * Cluster that the workload runs on. Without it the answer has no capacity and does not say if the
     * workload fits.
     */
    cluster?: ClusterInput;
    /** Layout of the workload over the devices. Defaults to a sensible layout, which the answer states. */
    parallelism?: ParallelismInput;
}

export type MemoryLabelReading = 'binary' | 'decimal' | 'unknown';

/** Largest value of each dimension before the device is full, with the others as requested. */
export interface MemoryLimits {
    /** Largest number of sequences that a replica can process at a time. */
    max_micro_batch_size?: number;
    /** Longest sequence, in tokens. */
    max_sequence_length?: number;
    /** Largest number of concurrent requests over the whole cluster. */
    max_concurrency?: number;
    /** Tokens that the KV cache of the whole cluster holds, as the engine counts them. */
    kv_cache_tokens?: number;
}

/** Request for a quote on memory. */
export interface MemoryQuoteRequest {
    /** Name of the quote. */
    name: string;
    /** Id of the cost centre that pays. */
    cost_center_id?: string;
    /** Note for the approvers. */
    note?: string;
    /** Days in which the quote may be approved. A price that ends earlier shortens the validity. */
    valid_for_days?: number;
    operation: 'memory';
    /** Body of `POST /v1/estimates/memory`. */
    request: MemoryEstimateRequest;
}

/** Deviation of one message size from the fitted line. */
export interface MessageResidual {
    /** Size of the message. */
    message_bytes: number;
    /** Measured time over that of the line. */
    measured_over_line: number;
}

/** The least that other charges amount to in a billing period. */
export interface MinimumCharge {
    /** Name that no other charge of the revision has. */
    name: string;
    kind: 'minimum';
    /** Decimal number as text; credits are below zero. */
    amount: string;
    /**
     * Calendar months in which it is charged: energy by its time, all else by the month in which most days
     * of the billing period lie. Defaults to all months.
     */
    months?: Array<number>;
    /** Annual kWh for each kW of the annual peak from which it is charged. */
    hours_of_use_from?: number;
    /** Annual kWh for each kW of the annual peak below which it is charged; absent without a bound. */
    hours_of_use_below?: number;
    /** Time that the amount is for; of a yearly amount, one twelfth counts for each month. */
    per?: FixedChargePeriod;
    /** Charges that fill it. Defaults to all but taxes and riders. */
    of?: Array<string>;
    /** Part of a monthly or yearly amount that counts in a billing period that is not one month. */
    proration?: ChargeProration;
}

/** A router over feed-forwards, with an optional expert that every token takes. */
export interface MixtureOfExpertsLayer {
    kind: 'mixture_of_experts';
    /** Width of the residual stream. */
    hidden_size: number;
    /** Number of experts to choose from. */
    expert_count: number;
    /** Number of experts that each token takes. */
    experts_per_token: number;
    /** Width between the matrices of an expert. */
    expert_inner_size: number;
    /**
     * Width between the matrices of the experts that positions of images take in place of the others: as
     * many, with a router of their own; absent where all positions take the same.
     */
    image_expert_inner_size?: number;
    /** Number of groups that the experts are divided into, of which a token takes some; absent without. */
    expert_groups?: number;
    /** Number of groups that the experts of a token lie in at most. */
    groups_per_token?: number;
    /** True if an expert has a third matrix as a gate. */
    gated?: boolean;
    /** True if a learned vector is added. */
    bias?: boolean;
    /** True if a learned vector is added to the router. */
    router_bias?: boolean;
    /** True if the input of the router and its answers have learned scales. */
    router_scales?: boolean;
    /**
     * Width that tokens are projected to for the routed experts, and back from (LatentMoE); absent where
     * they keep their width.
     */
    latent_size?: number;
    /** Inner width of the expert that every token takes; absent without one. */
    shared_inner_size?: number;
    /** True if learned vectors are added in the shared expert. */
    shared_bias?: boolean;
    /** True if the shared expert has a gate of its own. */
    shared_gate?: boolean;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

/** A model of the catalog. */
export interface Model {
    id: string;
    name: string;
    /** Layers with shapes. */
    architecture: Architecture;
    /** Longest sequence that the model was built for. */
    context_tokens?: number;
    sources: Array<Citation>;
    /** Number of this version of the row; the ETag of the resource. */
    version: number;
    /** Catalog revision of this version. */
    revision: number;
    /** `shipped` if the row ships with the service, `tenant` if it is a row of the tenant. */
    origin: RowOrigin;
    created_at: string;
    /** Parameters as PyTorch counts those of the model class: tied ones once, buffers not. */
    parameter_count: number;
    /** Parameters that one token uses. */
    active_parameter_count: number;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Repository on the Hugging Face Hub that publishes the weights, such as `openai/gpt-oss-120b`. */
    hub_id?: string;
    /** Licence of the weights, as the repository names it. */
    license?: string;
    /**
     * Quantization of the published weights, as their config.json states it. Questions that name no
     * precision load the weights so; without it, weights are published in 16 bits or wider and loaded in
     * 16 bits.
     */
    quantization_config?: Record<string, unknown>;
}

/** A model given by its published `config.json`. */
export interface ModelImportRequest {
    id: string;
    name: string;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    sources: Array<Citation>;
    /** The parsed config.json, as published. */
    config: Record<string, unknown>;
}

export type ModelLayer = AttentionLayer | LatentAttentionLayer | CompressedAttentionLayer | LinearAttentionLayer | StateSpaceLayer | FeedForwardLayer | MixtureOfExpertsLayer | NormalizationLayer | ActivationLayer | LinearLayer | ConvolutionLayer | ResamplingLayer | LearnedVectorsLayer | EmbeddingTableLayer | InteractionLayer | ModulationLayer | BlockLayer;

/** A page of models. */
export interface ModelPage {
    items: Array<Model>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface ModelPatch {
    name?: string;
    /** Layers with shapes. */
    architecture?: Architecture;
    /** Longest sequence that the model was built for. */
    context_tokens?: number | null;
    sources?: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string | null;
    /** Repository on the Hugging Face Hub that publishes the weights, such as `openai/gpt-oss-120b`. */
    hub_id?: string | null;
    /** Licence of the weights, as the repository names it. */
    license?: string | null;
    /**
     * Quantization of the published weights, as their config.json states it. Questions that name no
     * precision load the weights so; without it, weights are published in 16 bits or wider and loaded in
     * 16 bits.
     */
    quantization_config?: ModelPatchQuantizationConfig | null;
}

export type ModelPatchQuantizationConfig = Record<string, unknown>;

export type ModelReference = CatalogModel | HuggingFaceModel | ArchitectureModel | ParameterCountModel;

/** A model: an architecture with a name. */
export interface ModelRequest {
    id: string;
    name: string;
    /** Layers with shapes. */
    architecture: Architecture;
    /** Longest sequence that the model was built for. */
    context_tokens?: number;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Repository on the Hugging Face Hub that publishes the weights, such as `openai/gpt-oss-120b`. */
    hub_id?: string;
    /** Licence of the weights, as the repository names it. */
    license?: string;
    /**
     * Quantization of the published weights, as their config.json states it. Questions that name no
     * precision load the weights so; without it, weights are published in 16 bits or wider and loaded in
     * 16 bits.
     */
    quantization_config?: Record<string, unknown>;
}

/** Takes the achieved share of the limits from measured runs. */
export interface ModelledEfficiency {
    source: 'modelled';
    /** Factor of the time of a training step, for devices that turn out slower or faster. */
    time_factor?: number;
}

/** Shifts, scales and gates computed from a condition vector (adaptive norm of a DiT). */
export interface ModulationLayer {
    kind: 'modulation';
    /** Width of the condition vector. */
    condition_size: number;
    /** Width of the residual stream. */
    hidden_size: number;
    /** Number of shifts, scales and gates together. */
    vectors?: number;
    /** Number of sequences that have vectors of their own among these. */
    streams?: number;
    /** True if a learned vector is added. */
    bias?: boolean;
    /** True if the vectors come from a matrix that stands elsewhere and serves many layers. */
    shared?: boolean;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

/** An amount of one currency. */
export interface MoneyAmount {
    /** Decimal number as text. */
    amount: string;
    /** ISO 4217 code. */
    currency_code: string;
}

/** An amount of one currency. */
export interface MoneyInput {
    /** Decimal number as text, such as "3" or "2.49". */
    amount: string;
    /** ISO 4217 code. */
    currency_code: string;
}

/** A headline amount with its 80% interval and the evidence behind it. */
export interface MoneyQuantity {
    /** Decimal number as text. */
    amount: string;
    /** Lower end of the interval. */
    low: string;
    /** Upper end of the interval. */
    high: string;
    /** ISO 4217 code. */
    currency_code: string;
    /** Weakest evidence that the amount rests on. */
    basis: EvidenceBasis;
}

/** Intensity of the hours of the day, for each month of any year. */
export interface MonthHoursIntensityInput {
    /** Selects this shape. */
    kind: 'month_hours';
    /** Time zone of the hours. */
    time_zone: string;
    /** Intensity of the 24 hours of January, then of February, and so on. */
    kg_co2e_per_kwh: Array<number>;
}

/** A billing quantity of a month. */
export interface MonthlyBillingQuantity {
    /** Calendar month. */
    month: number;
    /** Price period of the charge. Absent for a quantity of all hours of the month. */
    period?: string;
    /** Value of the quantity. */
    value: number;
}

/** Highest demand of a month before the load. */
export interface MonthlyPeak {
    /** Calendar month. */
    month: string;
    /** Highest mean power of an interval of the month, at the meter. */
    peak_kw: number;
}

/** The first layout that fits in the order of practice, which the chosen one is compared with. */
export interface NaiveLayout {
    /** The layout. */
    parallelism: ParallelismDegrees;
    /** Sequences that a replica processes at a time on it. */
    micro_batch_size: number;
    /** Activations that it recomputes. */
    recomputation: Recomputation;
    /**
     * Time of a step on it over the time of a step on the chosen layout: the gain of the choice. Below 1
     * if it leaves less memory free than the chosen layout has to.
     */
    step_time_ratio: number;
}

/** A host that has enrolled as a node, with GPUs or to measure its processor. */
export interface Node {
    id: string;
    name: string;
    /** Kind of device that the node measures. */
    device: DeviceKind;
    /**
     * State of the node. A `draining` node finishes its suite and gets no other; a `quarantined` node gets
     * nothing.
     */
    state: NodeState;
    /** Reason of the quarantine: `OPERATOR`, `CREDENTIAL_REUSED` or `TWO_HOSTS`. */
    reason?: string;
    /** True if the node was heard from recently. */
    reachable: boolean;
    /**
     * Time at which the node was last heard from. Accurate to some minutes if it spoke with another
     * process of the service.
     */
    last_seen_at?: string;
    /** Activity of the node, as last reported. */
    activity?: NodeActivity;
    /** Results that are kept on the node, as last reported. */
    spool?: NodeSpoolState;
    /** Version of the worker on the node. */
    worker_version: string;
    /** SHA-256 of the present inventory. */
    inventory_sha256?: string;
    /** Inventory of the node. Present only if a single node is requested. */
    inventory?: NodeInventory;
    /** Benchmark run that the node is running. */
    lease?: RunningLease;
    /** True if the credential of the node is to be replaced before its time. */
    rotation_requested: boolean;
    /** Number of changes of the node's state. */
    version: number;
    created_at: string;
    /** Time from which the node is refused. */
    revoked_at?: string;
    /**
     * Time from which the host may not enrol again. Absent unless an operator quarantined or revoked the
     * node.
     */
    barred_at?: string;
}

/** A device, as its driver describes it. Its numbers identify it, not its name. */
export interface NodeAccelerator {
    /** Place among the devices of the node. */
    index: number;
    /** Digest of the id of the device. */
    uuid_sha256: string;
    name: string;
    /** Place on the bus. */
    pci_bus_id?: string;
    /** Vendor and model of the chip. */
    pci_device_id?: string;
    /** Vendor and model of the board. */
    pci_subsystem_id?: string;
    /** Firmware of the board. */
    vbios_version?: string;
    /** Compute capability by major and minor version, such as 9.0. */
    compute_capability?: string;
    /** Number of enabled multiprocessors. */
    multiprocessor_count?: number;
    /** Memory as the driver reports it. */
    memory_bytes?: number;
    /** Size of the second-level cache. */
    l2_bytes?: number;
    /** Width of the memory bus. */
    memory_bus_bits?: number;
    /** Power limit that is enforced now. */
    power_limit_watts?: number;
    /** Power limit as delivered. */
    power_limit_default_watts?: number;
    /** Lowest power limit that can be set. */
    power_limit_minimum_watts?: number;
    /** Highest power limit that can be set. */
    power_limit_maximum_watts?: number;
    /** Highest clock of the multiprocessors. */
    sm_clock_maximum_hz?: number;
    /** Highest clock of the memory. */
    memory_clock_maximum_hz?: number;
    /** Requested clock of the multiprocessors. */
    sm_clock_application_hz?: number;
    /** Requested clock of the memory. */
    memory_clock_application_hz?: number;
    /** True if the driver stays loaded. */
    persistence_mode?: boolean;
    /** Compute mode: the processes that may use the device at a time. */
    compute_mode?: string;
    /** True if the device is partitioned. */
    mig_mode?: boolean;
    /** Profile of a slice of a partitioned device, such as `1g.10gb`; absent of a whole device. */
    mig_profile?: string;
    /** True if errors of the memory are corrected. */
    ecc_mode?: boolean;
    /** Highest generation of the bus that device and slot have. */
    pcie_generation_maximum?: number;
    /** Most lanes that device and slot have. */
    pcie_width_maximum?: number;
    /** Number of links to other devices that are up. */
    nvlink_count?: number;
    /** NUMA node of the host that the device is attached to. */
    numa_node?: number;
}

export type NodeActivity = 'idle' | 'measuring' | 'draining';

/** Withdrawal of everything that a node has measured. */
export interface NodeCalibrationWithdrawalRequest {
    /** Finding that led to the withdrawal. */
    reason: string;
    /** Node whose calibrations are withdrawn. */
    node_id: string;
}

/** A node and its credential, which is shown this once. */
export interface NodeEnrolment {
    /** Id of the node. */
    node_id: string;
    /** Credential that the node sends as `Authorization: Bearer`. */
    credential: string;
    /** Time of the service. */
    server_time: string;
}

/** The enrolment of a node. A request with the same `installation_id` enrols the same node. */
export interface NodeEnrolmentRequest {
    /** Enrolment token, which works once. */
    token: string;
    /** Id that the node makes and keeps before its first attempt, so that a lost answer costs nothing. */
    installation_id: string;
    /** Name of the node. Defaults to its host name. */
    name?: string;
    /** Kind of device that the node measures. */
    device: DeviceKind;
    /** Version of the worker. */
    worker_version: string;
}

/** An unknown fact, with the reason. */
export interface NodeGap {
    /** JSON Pointer of the absent member. */
    pointer: string;
    /** Stable name of the reason. */
    code: string;
    /** Reason in words. */
    detail?: string;
}

/** A message that the node is alive. */
export interface NodeHeartbeatRequest {
    /** Digest of the id of the boot of the host; two ids that alternate are two hosts with one credential. */
    boot_id_sha256: string;
    /** Version of the worker. */
    worker_version: string;
    /** Digest of the current inventory of the node. */
    inventory_sha256: string;
    /** Activity of the node. */
    activity: NodeActivity;
    spool: NodeSpoolState;
    /** Digests of acknowledged results, sent after a reconnect, that the service may ask for again. */
    acknowledged?: Array<string>;
}

/** The machine around the devices. */
export interface NodeHost {
    /** Name and version of the operating system. */
    operating_system: string;
    /** Version of the kernel. */
    kernel: string;
    /** Architecture of the processor, such as x86_64. */
    architecture: string;
    /** Number of logical processors that the worker may use. */
    cpu_count: number;
    /** Model of the processor, as it names itself. */
    cpu_model?: string;
    /** Number of processors in sockets. */
    socket_count?: number;
    /** Number of NUMA nodes. */
    numa_node_count?: number;
    /** Memory of the host. */
    memory_bytes?: number;
    /** Kind of virtualization, such as none, container or kvm. */
    virtualization?: string;
    /** Memory that the container may use. */
    cgroup_memory_limit_bytes?: number;
    /** Number of processors that the container may use. */
    cgroup_cpu_limit?: number;
}

/** Instructions of the service to a node. */
export interface NodeInstructions {
    /** State of the node; a quarantined node may only report. */
    state: NodeInstructionsState;
    /** True if the node should rotate its credential. */
    rotate: boolean;
    /** True if the service does not know the inventory of the digest, and the node should send it. */
    send_inventory: boolean;
    /** Acknowledged digests whose results the service does not have; the node should send them again. */
    missing?: Array<string>;
    /** Time until the next heartbeat. */
    heartbeat_seconds: number;
    /** Time of the service. */
    server_time: string;
}

export type NodeInstructionsState = 'active' | 'draining' | 'quarantined';

/** Devices, host and software of a node. The digest of its canonical form names it. */
export interface NodeInventory {
    /** Kind of device that the node measures. */
    device: DeviceKind;
    host: NodeHost;
    accelerators?: Array<NodeAccelerator>;
    software?: Array<NodeSoftware>;
    gaps?: Array<NodeGap>;
}

/** Receipt of an inventory, with the digest by which claims and results name it. */
export interface NodeInventoryReceipt {
    /** Digest of the inventory. */
    inventory_sha256: string;
}

/** A page of nodes. */
export interface NodePage {
    /** Nodes in order of id, without their inventories. */
    items: Array<Node>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** A part of the stack that a measurement goes through. */
export interface NodeSoftware {
    /** Name of the part, such as driver, cuda_driver_api, nvrtc, cublas, numpy or python. */
    name: string;
    /** Version, as the part states it. */
    version: string;
}

/** Results that a node holds. */
export interface NodeSpoolState {
    /** Number of results that are not acknowledged yet. */
    waiting_count: number;
    /** Size of the results that are not acknowledged yet. */
    waiting_bytes: number;
    /** Number of results that the service refused and the node keeps for inspection. */
    rejected_count?: number;
    /** Free space on the file system of the spool. */
    free_bytes?: number;
    /** True if the spool is full, so that the node claims no work. */
    is_full?: boolean;
}

export type NodeState = 'active' | 'draining' | 'quarantined' | 'revoked';

/** A norm with a learned scale (`rms`) or with scale and shift (`layer`, `group`, `batch`). */
export interface NormalizationLayer {
    kind: 'normalization';
    /** Width of the normalized vector. */
    size: number;
    /** Kind of norm, by the values that are normalized together. */
    norm?: NormalizationLayerNorm;
    /** True if the norm has parameters. */
    learned?: boolean;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

export type NormalizationLayerNorm = 'rms' | 'layer' | 'group' | 'batch';

/** Storage format of an element, or mode in which it is multiplied. */
export type NumberFormat = 'fp64' | 'fp32' | 'tf32' | 'fp16' | 'bf16' | 'fp8' | 'int8' | 'fp4' | 'int4';

/** A copy by so few warps on each multiprocessor: throughput against occupancy. */
export interface OccupancyWork {
    kind: 'occupancy';
    /** Warps on a multiprocessor at a time. More than the device has room for are unsupported. */
    resident_warps: number;
    /** Size of each array. */
    array_bytes: number;
}

/** An offer of the catalog. */
export interface Offer {
    id: string;
    name: string;
    /** Provider that rents the instance out. */
    provider: string;
    /** Region, as the provider names it. */
    region?: string;
    /** Accelerator of the catalog. */
    accelerator_id: string;
    /** Accelerators of one instance. */
    accelerator_count?: number;
    /**
     * Purchase option. `committed` promises an amount of use or spend, `reserved` keeps an instance
     * available, and `capacity_block` is paid as a whole in advance.
     */
    purchase_option: PurchaseOption;
    /**
     * Hourly price of the whole instance with all its accelerators. Under a commitment, all payments over
     * its hours. Left out if the commitment states its parts.
     */
    price_per_instance_hour?: MoneyInput;
    /** Date of the price. */
    as_of: string;
    sources: Array<Citation>;
    /** Number of this version of the row; the ETag of the resource. */
    version: number;
    /** Catalog revision of this version. */
    revision: number;
    /** `shipped` if the row ships with the service, `tenant` if it is a row of the tenant. */
    origin: RowOrigin;
    created_at: string;
    /** Hourly price of the whole instance. Under a commitment, all payments over its hours. */
    effective_price_per_instance_hour: MoneyInput;
    /** Effective price of the instance over its accelerators. */
    price_per_device_hour: MoneyInput;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Part of the region that the price applies to, if prices differ within the region. */
    zone?: string;
    /** The provider's name of the instance. */
    instance_type?: string;
    /** Length and parts of a reserved or committed term, or of a capacity block. */
    commitment?: OfferCommitment;
    /** Increment that use is rounded up to. */
    billing_increment_seconds?: number;
    /** Shortest use that is billed. */
    minimum_billed_seconds?: number;
    /** Parts that the price covers beside the accelerators. Left out if that is unknown. */
    includes?: Array<OfferInclusion>;
    /** First day on which the price applies. */
    valid_from?: string;
    /** Last day, month or year in which the price applies. */
    valid_until?: string;
    /** Reason why the price may be wrong. Estimates that use it repeat the reason. */
    doubt?: string;
}

/** Terms that are agreed in advance. Amounts are for one instance, in the currency of the price. */
export interface OfferCommitment {
    /** Length of the term. A year counts 365 days. */
    term_days: number;
    /** Amount that is paid at the start for the whole term. */
    upfront_per_instance?: MoneyInput;
    /** Amount that is paid for every hour of the term, used or not. */
    hourly_per_instance?: MoneyInput;
    /** Smallest number of instances that the term is sold for. */
    minimum_instances?: number;
    /** Smallest hourly spend that the term is sold for. */
    minimum_spend_per_hour?: MoneyInput;
}

export type OfferFormat = 'skypilot' | 'gpuhunt' | 'gpuhunt_tpu' | 'ec2instances' | 'opencost_csv' | 'opencost_json' | 'dated_csv';

/** A price list in the format of its publisher. */
export interface OfferImportRequest {
    /**
     * Format of the list: the catalog CSV of SkyPilot or gpuhunt (of one provider), the TPU prices of
     * gpuhunt, instances of ec2instances.info, custom prices of OpenCost, or a CSV of dated prices whose
     * rows name their provider, date and source.
     */
    format: OfferFormat;
    /** Provider of the prices, such as aws. Required if the format does not state it, refused if rows do. */
    provider?: string;
    /** Accelerator of an OpenCost price document, which names none. */
    accelerator_id?: string;
    /** Date of the prices. Rows of dated_csv state their own. */
    as_of: string;
    /** Last day, month or year in which the prices apply. */
    valid_until?: string;
    source: PriceListSource;
    /** The file as text. */
    content: string;
}

export type OfferInclusion = 'host' | 'local_storage' | 'network_storage' | 'network' | 'software' | 'support';

/** A page of offers. */
export interface OfferPage {
    items: Array<Offer>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface OfferPatch {
    name?: string;
    /** Provider that rents the instance out. */
    provider?: string;
    /** Region, as the provider names it. */
    region?: string | null;
    /** Accelerator of the catalog. */
    accelerator_id?: string;
    /** Accelerators of one instance. */
    accelerator_count?: number;
    /**
     * Purchase option. `committed` promises an amount of use or spend, `reserved` keeps an instance
     * available, and `capacity_block` is paid as a whole in advance.
     */
    purchase_option?: PurchaseOption;
    /**
     * Hourly price of the whole instance with all its accelerators. Under a commitment, all payments over
     * its hours. Left out if the commitment states its parts.
     */
    price_per_instance_hour?: MoneyInput | null;
    /** Date of the price. */
    as_of?: string;
    sources?: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string | null;
    /** Part of the region that the price applies to, if prices differ within the region. */
    zone?: string | null;
    /** The provider's name of the instance. */
    instance_type?: string | null;
    /** Length and parts of a reserved or committed term, or of a capacity block. */
    commitment?: OfferCommitment | null;
    /** Increment that use is rounded up to. */
    billing_increment_seconds?: number | null;
    /** Shortest use that is billed. */
    minimum_billed_seconds?: number | null;
    /** Parts that the price covers beside the accelerators. Left out if that is unknown. */
    includes?: Array<OfferInclusion> | null;
    /** First day on which the price applies. */
    valid_from?: string | null;
    /** Last day, month or year in which the price applies. */
    valid_until?: string | null;
    /** Reason why the price may be wrong. Estimates that use it repeat the reason. */
    doubt?: string | null;
}

/** A dated price of renting an instance. */
export interface OfferRequest {
    id: string;
    name: string;
    /** Provider that rents the instance out. */
    provider: string;
    /** Region, as the provider names it. */
    region?: string;
    /** Accelerator of the catalog. */
    accelerator_id: string;
    /** Accelerators of one instance. */
    accelerator_count?: number;
    /**
     * Purchase option. `committed` promises an amount of use or spend, `reserved` keeps an instance
     * available, and `capacity_block` is paid as a whole in advance.
     */
    purchase_option: PurchaseOption;
    /**
     * Hourly price of the whole instance with all its accelerators. Under a commitment, all payments over
     * its hours. Left out if the commitment states its parts.
     */
    price_per_instance_hour?: MoneyInput;
    /** Date of the price. */
    as_of: string;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Part of the region that the price applies to, if prices differ within the region. */
    zone?: string;
    /** The provider's name of the instance. */
    instance_type?: string;
    /** Length and parts of a reserved or committed term, or of a capacity block. */
    commitment?: OfferCommitment;
    /** Increment that use is rounded up to. */
    billing_increment_seconds?: number;
    /** Shortest use that is billed. */
    minimum_billed_seconds?: number;
    /** Parts that the price covers beside the accelerators. Left out if that is unknown. */
    includes?: Array<OfferInclusion>;
    /** First day on which the price applies. */
    valid_from?: string;
    /** Last day, month or year in which the price applies. */
    valid_until?: string;
    /** Reason why the price may be wrong. Estimates that use it repeat the reason. */
    doubt?: string;
}

/** State that is kept outside the device between its uses. */
export interface OffloadInput {
    /** Location of master weights and optimizer states; under zero_2 and zero_3 of the gradients too. */
    optimizer?: TrainingStateLocation;
    /** Location of the weights, which are gathered block by block. */
    parameters?: TrainingStateLocation;
    /** Location of the saved activations, except those of two blocks. */
    activations?: OffloadInputActivations;
}

export type OffloadInputActivations = 'none' | 'cpu';

/** State of a training step that is kept outside the device, for each device. */
export interface OffloadedMemory {
    /** Bytes in the memory of the host. */
    memory_bytes: number;
    /** Bytes on the drives of the host. */
    nvme_bytes: number;
}

/** One operator of a block on one device and one micro-batch, under the roofline. */
export interface OperatorEstimate {
    /** Name of the operator. */
    operator: string;
    /** Pass that the operator belongs to. */
    direction: OperatorEstimateDirection;
    /** Floating-point operations. */
    flops: number;
    /** Bytes read and written in the device's memory. */
    moved_bytes: number;
    /** Arithmetic intensity. */
    flops_per_byte: number;
    /** Rate that the data sheet allows at this intensity. */
    attainable_flops_per_second: number;
    /** Rate that follows from the estimated time. */
    achieved_flops_per_second: number;
    /** Estimated time. */
    seconds: number;
    /** The limit that sets the time. */
    bound: OperatorEstimateBound;
}

export type OperatorEstimateBound = 'compute' | 'memory';

export type OperatorEstimateDirection = 'forward' | 'backward';

/** Fusion of memory-bound operators into kernels: none, chains by hand, or chains by a compiler. */
export type OperatorFusion = 'eager' | 'fused' | 'compiled';

/** Optimizers by their state. */
export type Optimizer = 'sgd' | 'momentum' | 'rmsprop' | 'adagrad' | 'adam' | 'adamw' | 'adam_8bit' | 'paged_adamw' | 'paged_adamw_8bit' | 'adafactor' | 'lion' | 'lamb' | 'lars' | 'shampoo' | 'muon' | 'galore';

/** One update of parameters in mixed precision, in one fused kernel. */
export interface OptimizerStepWork {
    kind: 'optimizer_step';
    /** Rule of the update. */
    optimizer: OptimizerStepWorkOptimizer;
    /** Parameters that are updated. */
    parameters: number;
}

export type OptimizerStepWorkOptimizer = 'adamw' | 'sgd_momentum';

/** A price for each kW of the period's peak above the contracted capacity. */
export interface OverrunCharge {
    /** Name that no other charge of the revision has. */
    name: string;
    kind: 'overrun';
    /** Contracted capacity in kW. */
    contract_kw: number;
    /** Decimal number as text; credits are below zero. */
    price: string;
    /**
     * Calendar months in which it is charged: energy by its time, all else by the month in which most days
     * of the billing period lie. Defaults to all months.
     */
    months?: Array<number>;
    /** Annual kWh for each kW of the annual peak from which it is charged. */
    hours_of_use_from?: number;
    /** Annual kWh for each kW of the annual peak below which it is charged; absent without a bound. */
    hours_of_use_below?: number;
    /** Factor of the contracted capacity above which demand is charged. */
    tolerance?: number;
    /** Minutes over which demand is averaged. Defaults to the intervals of the load. */
    window_minutes?: number;
}

/** Machines that are already available. */
export interface OwnedNodes {
    /** Name of the machines in the answer. */
    name: string;
    /**
     * One of the machines: its devices, their number and their links. `accelerator_count` is that of all
     * machines: the most that a plan takes.
     */
    cluster: ClusterInput;
    /** Building that houses the machines. The cost of their electricity is part of the cost of a plan. */
    site?: RunSiteInput;
    /**
     * Price of the machines. With `ownership` the run bears its share of it. If left out, only electricity
     * counts.
     */
    purchase?: Purchase;
}

/** Terms that turn a purchase into a yearly cost; a run bears its share of the device-hours used. */
export interface Ownership {
    /** Years of use over which the purchase is depreciated in equal parts. */
    years: number;
    /** Share of the purchase that the devices are worth at the end. */
    residual_share?: number;
    /** Rate per year at which the purchase is financed; paid back in equal yearly amounts (an annuity). */
    interest_rate?: number;
    /** Maintenance in a year as a share of the purchase. */
    maintenance_share?: number;
    /** Share of the hours of a year in which the devices run something. */
    utilization?: number;
    /** Yearly cost of the staff that runs the devices. */
    staff_per_year?: MoneyInput;
    /** Yearly cost of floor, racks and cooling, without electricity. */
    space_per_year?: MoneyInput;
}

/** Cost of the run on owned devices: its share of the cost of each year. */
export interface OwnershipCostBreakdown {
    /** Charges. */
    lines: Array<CostLine>;
    /** Sum of the charges. */
    total?: MoneyQuantity;
    /** Cost of a year, whatever runs. */
    yearly: CostBreakdown;
    /** Cost of a year over the device-hours that are used in it. */
    price_per_device_hour: MoneyQuantity;
    /** Device-hours that are used in a year. */
    device_hours_per_year: QuantityEstimate;
}

/** The layout that the figures hold for, given or chosen. */
export interface ParallelismDegrees {
    /** Devices that share each layer. */
    tensor: number;
    /** Stages that the layers are divided into. */
    pipeline: number;
    /** Replicas that each take a share of the batch. */
    data: number;
    /** Devices that share each sequence. */
    context: number;
    /** Replicas that the experts are spread over. */
    expert: number;
    /**
     * Devices that each expert of a served model is divided over. Absent if they are the devices of
     * `tensor`.
     */
    expert_tensor?: number;
    /** True if tensor parallelism also divides the activations between layers. */
    sequence_parallel: boolean;
    /** Part of the training state that is sharded over the replicas. */
    sharding: Sharding;
    /** Order in which the micro-batches pass the pipeline. */
    pipeline_schedule: PipelineSchedule;
    /** Parts of the model on each pipeline device. */
    virtual_stages: number;
    /**
     * True if tokens travel to their experts and back while another micro-batch computes. Absent if they
     * do not.
     */
    overlap_expert_communication?: boolean;
    /**
     * True if collectives of tensor parallelism run in pieces beside matrix products, false if products
     * wait for them. Absent if the question leaves it to the habit of the framework.
     */
    overlap_tensor_communication?: boolean;
    /** True if the service chose the layout because the question did not give one. */
    chosen: boolean;
}

/** Layout of a workload over devices. Degrees default to 1, `data` to the rest of the cluster. */
export interface ParallelismInput {
    /** Devices that share each layer. */
    tensor?: number;
    /** Stages that the layers are divided into. */
    pipeline?: number;
    /** Replicas that each take a share of the batch. */
    data?: number;
    /** Replicas that the experts are spread over. */
    expert?: number;
    /** Devices that share each sequence. */
    context?: number;
    /**
     * Part of the training state that is sharded over the replicas. Defaults to the way of the framework,
     * else to the fastest that fits, else to none.
     */
    sharding?: Sharding;
    /**
     * Devices that each expert of a served model is divided over, out of the tensor x expert devices that
     * hold all experts. Defaults to `tensor`.
     */
    expert_tensor?: number;
    /**
     * True if tensor parallelism also divides the activations between layers. Defaults to the way of the
     * framework, else to the fastest way that fits, else to false.
     */
    sequence_parallel?: boolean;
    /** Devices that together hold one copy of the state. Required for hybrid sharding. */
    sharding_group_size?: number;
    /**
     * Order in which the micro-batches pass the pipeline. Defaults to the way of the framework, else to
     * the faster of one_f_one_b and interleaved that fits, else to one_f_one_b.
     */
    pipeline_schedule?: PipelineSchedule;
    /**
     * Parts of the model on each pipeline device. Defaults to the fastest number for the interleaved
     * schedule, else to 1. More than 1 without a schedule means the interleaved one.
     */
    virtual_stages?: number;
    /**
     * True if tokens travel to their experts and back while another micro-batch computes: a forward pass
     * runs beside a backward pass. Defaults to the way of the framework, else to true where `expert` is
     * above 1.
     */
    overlap_expert_communication?: boolean;
    /**
     * True if collectives of tensor parallelism are sent in pieces beside the matrix products that need
     * them, false if products wait for them. True needs `tensor` above 1 and sequence parallelism, which
     * it implies if `sequence_parallel` is left out. Defaults to the habit of the framework on blocks
     * without experts, and to false on those with experts.
     */
    overlap_tensor_communication?: boolean;
}

/** A rough model of which only the number of parameters is known. Figures that need more are gaps. */
export interface ParameterCountModel {
    source: 'parameter_count';
    /** Parameters of the model. Every token uses all of them. */
    parameter_count: number;
}

export type PeakFormat = 'fp64' | 'fp64_tensor' | 'fp32' | 'tf32' | 'bf16' | 'fp16' | 'fp8' | 'fp4' | 'int8';

export type PeakRates = Record<string, number>;

/** Copies from one device of a node to the next. */
export interface PeerLinkWork {
    kind: 'peer_link';
    /** One way, or both at once. */
    direction: PeerLinkWorkDirection;
    /** Means of the copies. Their figures differ, so they are never compared. */
    method: PeerLinkWorkMethod;
    /** Payload of one direction. */
    transfer_bytes: number;
}

export type PeerLinkWorkDirection = 'one_way' | 'both';

export type PeerLinkWorkMethod = 'copy_engine' | 'kernel';

/** Copies of the copy engines between several devices of a node, all at once. */
export interface PeerMatrixWork {
    kind: 'peer_matrix';
    /** Pairs that copy: every other device and the first one, or every two devices in both directions. */
    pattern: PeerMatrixWorkPattern;
    /** Devices that take part. */
    devices: number;
    /** Payload of each pair in one direction. */
    transfer_bytes: number;
}

export type PeerMatrixWorkPattern = 'all_to_one' | 'one_to_all' | 'all_to_all';

/** A rider, tax or credit: percent of other charges. */
export interface PercentageCharge {
    /** Name that no other charge of the revision has. */
    name: string;
    /**
     * Calendar months in which it is charged: energy by its time, all else by the month in which most days
     * of the billing period lie. Defaults to all months.
     */
    months?: Array<number>;
    /** Annual kWh for each kW of the annual peak from which it is charged. */
    hours_of_use_from?: number;
    /** Annual kWh for each kW of the annual peak below which it is charged; absent without a bound. */
    hours_of_use_below?: number;
    kind: 'percentage';
    /** Decimal percent of the charges; credits are below zero. */
    percent: string;
    /** Charges that it is a percentage of. Defaults to all before it. */
    of?: Array<string>;
    /** True if it is a tax. */
    tax?: boolean;
}

/** A part of the time and the limit that sets it. */
export interface PhaseTime {
    /** Part of a step or of a request. */
    phase: PhaseTimePhase;
    /** Time of the phase. */
    seconds: QuantityEstimate;
    /** The limit that sets the time. */
    bound: BottleneckBound;
    /** Time of a phase of a request by part of its iterations. The parts sum to the time of the phase. */
    parts?: Array<IterationPartTime>;
}

export type PhaseTimePhase = 'generation' | 'weight_synchronization' | 'policy_forward' | 'reference_forward' | 'reward_forward' | 'critic_forward' | 'critic_training' | 'teacher_forward' | 'forward' | 'backward' | 'recomputation' | 'tensor_communication' | 'context_communication' | 'expert_communication' | 'data_communication' | 'pipeline_communication' | 'offload_communication' | 'bubble' | 'optimizer' | 'host' | 'stragglers' | 'data' | 'waiting' | 'encoder' | 'text_encoder' | 'denoiser' | 'autoencoder' | 'prefill' | 'transfer' | 'decode';

/** Order in which the micro-batches of a step pass the pipeline. */
export type PipelineSchedule = 'gpipe' | 'one_f_one_b' | 'interleaved' | 'zero_bubble';

/** A search, with its answer once it is done. */
export interface Plan {
    id: string;
    /** State of the search. A failed search has `error_code` and `error_summary`. */
    state: PlanState;
    /** Kind of the search: the best configuration for some work, or the schedule of a fleet. */
    kind: PlanKind;
    /** Goal of the search. `earliest` is a goal of fleets. */
    goal: StoredPlanGoal;
    /** Request of the search. Absent for a fleet, and left out of lists. */
    question?: PlanRequest;
    /** Request of the search of a fleet. Left out of lists. */
    fleet_question?: FleetPlanRequest;
    /** Time of the request. */
    created_at: string;
    /** Time at which the search ended. */
    finished_at?: string;
    /** Progress of the search. */
    progress: PlanProgress;
    /** Code of the failure. */
    error_code?: string;
    /** Description of the failure. */
    error_summary?: string;
    /** Cost of the first row, or of all placed workloads of a fleet. */
    best_cost?: MoneyAmount;
    /** Answer of the search. Present once it is done; absent for a fleet, and left out of lists. */
    answer?: PlanResult;
    /** Schedule of a fleet. Present once its search is done; left out of lists. */
    fleet_answer?: FleetPlan;
}

/** Counts of a search. A configuration is a layout, batch, precision and devices, whoever owns these. */
export interface PlanCandidateCounts {
    /** Configurations that were considered. */
    considered: number;
    /** Configurations whose memory and time were computed. */
    scored: number;
    /** Scored configurations that no constraint rules out before prices. */
    feasible: number;
    /** Configurations that a constraint rules out. */
    ruled_out: Array<RuledOutCandidates>;
    /** Configurations that a bound decides. */
    pruned: Array<PrunedCandidates>;
    /** Configurations with a supply and a start that were computed in full. */
    priced: number;
    /** Priced configurations that no constraint rules out. */
    priced_feasible: number;
    /** Priced configurations that a constraint rules out. */
    priced_ruled_out: Array<RuledOutCandidates>;
}

/**
 * Constraint that rules a candidate out. Constraints are checked in this order; the first one counts.
 *
 * No rate of the device for the ``precision``; degrees that the number of ``devices`` does not allow,
 * or more devices than the plan may take; ``heads``, ``blocks`` and ``experts`` of the model, a
 * ``sequence`` or a ``batch`` that do not divide among the devices; tensor parallelism beyond the fast
 * ``link``; ``memory`` of a device, less its headroom; limits of the ``engine``; a ``service_level``
 * that is not met; a run longer than its ``deadline``; the ``power`` of the building; ``carbon``;
 * ``budget``; a supply whose cost in the currency of the plan is unknown (``price``), or whose
 * emissions are (``emissions``).
 */
export type PlanConstraint = 'precision' | 'devices' | 'heads' | 'blocks' | 'experts' | 'sequence' | 'batch' | 'link' | 'memory' | 'engine' | 'service_level' | 'deadline' | 'power' | 'carbon' | 'budget' | 'price' | 'emissions';

/** Constraints of a configuration. A constraint that is left out does not apply. */
export interface PlanConstraints {
    /** Highest cost of the run. */
    budget?: MoneyInput;
    /** Latest end of a training run. Needs `starts_at` or `window`. */
    finish_by?: string;
    /** Longest duration of a training run, interruptions included. */
    duration_seconds?: number;
    /** Largest number of devices. */
    accelerator_count?: number;
    /** Providers whose offers are considered. Defaults to all providers of the catalog. */
    providers?: Array<string>;
    /** Regions whose offers are considered. Defaults to all regions. */
    regions?: Array<string>;
    /** Purchase options whose offers are considered. Defaults to all of them. */
    purchase_options?: Array<PurchaseOption>;
    /**
     * Smallest share of the usable memory of a device that is left free; for a service, of the part that
     * its engine may use (`memory_fraction`). Defaults to 0.05 for the configurations of the search.
     */
    headroom_share?: number;
    /** Highest power at the meter of the building, hosts and cooling included. */
    facility_kw?: number;
    /** Highest location-based emissions of the electricity. */
    location_based_kg_co2e?: number;
}

/** Bodies of `POST /v1/estimates/...` that return the same figures. */
export interface PlanEstimateRequests {
    /** Body for `memory`. */
    memory: MemoryEstimateRequest;
    /** Body for `throughput`. */
    throughput: ThroughputEstimateRequest;
    /** Body for `cost`. Present if devices or their storage are paid for. */
    cost?: CostEstimateRequest;
    /** Body for `utility-bill`. Present if the building is known. */
    utility_bill?: UtilityBillRequest;
}

export type PlanGoal = 'cheapest' | 'fastest' | 'cleanest' | 'fewest_devices' | 'pareto';

export type PlanKind = 'configuration' | 'fleet';

/** A page of plans, without their answers. */
export interface PlanPage {
    items: Array<Plan>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Progress of a search. */
export interface PlanProgress {
    /** Parts of the search. */
    pieces: number;
    /** Parts that are done. */
    pieces_done: number;
    /** Configurations of all parts. */
    candidates: number;
    /** Configurations that are scored, ruled out or pruned. */
    candidates_decided: number;
}

/** Request for the best configuration for some work. */
export interface PlanRequest {
    /** Model that is trained or served. */
    model: ModelReference;
    /**
     * Work of the model. For training: its total and its global batch. For serving: its load and its
     * service levels. Without `request_seconds`, the levels of the configurations of the search default to
     * a first token within 2 s and 0.2 s a further token; a search that finds none within them ranks
     * without these and warns. Settings that are searched replace those given here.
     */
    workload: WorkloadInput;
    /**
     * Objective: least cost, least time (for a service: of a request), least emissions of the electricity,
     * fewest devices, or every configuration that no other exceeds in cost, time and emissions.
     */
    goal: PlanGoal;
    /** Constraints of the configurations. */
    constraints?: PlanConstraints;
    /** Machines that are already available. */
    owned?: Array<OwnedNodes>;
    /** Devices that can be rented on terms that are no offer of the catalog. */
    rented?: Array<RentedDevices>;
    search?: PlanSearch;
    /** Start of the run. */
    starts_at?: string;
    /** Buildings of rented devices by region. */
    sites?: Array<RegionSite>;
    /** Building of rented devices in other regions. */
    site?: RunSiteInput;
    /** Price of storing data and checkpoints. */
    storage?: StorageInput;
    /** Price of data that leave the provider. */
    egress?: EgressInput;
    /** Possible starts of the run. The best one is chosen for each configuration. */
    window?: StartWindow;
    /**
     * Currency of the costs, at the exchange rates of the catalog. Defaults to the currency of the budget,
     * else USD.
     */
    currency_code?: string;
    /** Configurations to rank with the others. */
    given?: Array<GivenConfiguration>;
    /** Changes of assumptions to try. */
    assumptions?: Array<SensitivityAssumption>;
    /**
     * Largest number of candidates. A larger search is refused, and the problem names the list that makes
     * it so large.
     */
    most_candidates?: number;
}

/** Best configurations for some work. */
export interface PlanResult {
    /** Ranked rows by the goal. A Pareto set starts with the cheapest. */
    rows: Array<PlanRow>;
    /** Given configurations in the order of the request. */
    given: Array<PlanRow>;
    /** Counts of the search. */
    candidates: PlanCandidateCounts;
    /** Differences between the first two rows. */
    separation?: PlanSeparation;
    /** Assumptions that the choice depends on, the smallest change first. */
    sensitivities: Array<PlanSensitivity>;
    /** Settings for running the first row. */
    launch_hints: Array<LaunchSettings>;
    /** Currency of all costs. */
    currency_code: string;
    /** Versions and sources that reproduce the answer. */
    evidence: EstimateEvidence;
    /** Limits that the question leaves open, as the search fills them. */
    defaults: Array<EstimateDefault>;
    /** Remarks about the question. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
}

/** A configuration with its estimates. */
export interface PlanRow {
    /**
     * Rank by the goal among the candidates that are ranked individually (`search.depth`) and not ruled
     * out; 1 is the best. A given configuration worse than all of them ranks after them.
     */
    rank: number;
    /** Name of a given configuration. */
    name?: string;
    /** Constraint that rules a given configuration out. Its rank is then 0. */
    ruled_out_by?: PlanConstraint;
    /** Supply of the devices. */
    supply: PlanSupply;
    /** Id of the accelerator. */
    accelerator_id: string;
    /** Number of devices. */
    accelerator_count: number;
    /** Layout of the devices. */
    parallelism: ParallelismDegrees;
    /** Precision of training. */
    precision?: string;
    /** Sequences that a replica processes at a time. */
    micro_batch_size?: number;
    /** Micro-batches of an optimizer step. */
    gradient_accumulation_steps?: number;
    /** Activations that the backward pass recomputes. */
    recomputation?: string;
    /** Format of the served weights. */
    weight_format?: string;
    /** Format of the stored KV cache. */
    kv_cache_precision?: string;
    /** Replicas of the service. */
    replicas?: number;
    /** Start of the run. Present if the request gives one. */
    starts_at?: string;
    /** Memory of the fullest device. Absent if a part of it is unknown. */
    total_bytes?: QuantityEstimate;
    /** Bytes that are left of the device, or of the engine's share of it. */
    headroom_bytes?: number;
    /**
     * Probability that a device holds the configuration, from the intervals of its memory and of the
     * device's capacity.
     */
    fit_probability?: number;
    /** Time of one optimizer step. */
    step_seconds?: QuantityEstimate;
    /** Tokens that the run trains on. */
    tokens_per_second?: QuantityEstimate;
    /** Model FLOPs utilization of training. */
    model_flops_utilization?: QuantityEstimate;
    /** Time from a request of a service to its first token. */
    time_to_first_token_seconds?: QuantityEstimate;
    /** Time from one token of a request of a service to the next. */
    time_per_output_token_seconds?: QuantityEstimate;
    /** Time from a request of a service to its last token. */
    request_seconds?: QuantityEstimate;
    /** Share of the requests that meet the service levels. */
    service_level_share?: QuantityEstimate;
    /** Time of the run. */
    duration_seconds?: QuantityEstimate;
    /** Devices times hours. */
    device_hours?: QuantityEstimate;
    /** Rent or share of owned devices, electricity of owned devices, storage and egress. */
    cost?: MoneyQuantity;
    /** Energy at the meter of the building. */
    facility_kwh?: QuantityEstimate;
    /** Power at the meter of the building. */
    peak_kw?: QuantityEstimate;
    /** Emissions of the electricity. */
    location_based_kg_co2e?: QuantityEstimate;
    /** Requests that return the same figures. */
    requests: PlanEstimateRequests;
}

/** A figure in which two rows differ. */
export interface PlanRowDifference {
    /** A setting, a phase of the step, a charge or a headline, as the rows and estimates name it. */
    name: string;
    /** Value of the first row. Absent if it has none. */
    first?: TextOrNumber;
    /** Value of the second row. Absent if it has none. */
    second?: TextOrNumber;
    /** Unit of both values, if they are numbers. */
    unit?: string;
}

/** Settings to search, and limits of the search. */
export interface PlanSearch {
    /** Accelerators of the catalog to rent. Defaults to all with offers that the constraints allow. */
    accelerators?: Array<AcceleratorName>;
    /**
     * Numbers of devices of a training run. Defaults to whole nodes in doublings, up to 16,384, and to all
     * nodes of a supply. A service takes the fewest devices that meet its service levels.
     */
    accelerator_counts?: Array<number>;
    /** Set to false to leave out the offers of the catalog, beside `owned` and `rented`. */
    offers?: boolean;
    /** Most ranked rows. */
    rows?: number;
    /** Settings of a training workload to search. */
    training?: TrainingSearch;
    /** Settings of a service to search. */
    serving?: ServingSearch;
    /**
     * Interruptions of spot devices of the catalog. Without it, spot offers are considered only if
     * `purchase_options` of the constraints names spot, at the rent of a run without interruptions.
     */
    spot?: SpotTerms;
    /**
     * Configurations of one supply and number of devices that are ranked individually. They become the
     * ranked rows, and the sensitivity is computed over them.
     */
    depth?: number;
    /** Most ranked rows of one supply, to leave room for others. A Pareto set ignores the limit. */
    rows_per_supply?: number;
}

/** Change of an assumption that changes the first row. Changes up and down are reported separately. */
export interface PlanSensitivity {
    /**
     * Assumption that is changed: one of `assumptions` of the request, a constraint, or the amount of
     * work.
     */
    assumption: PlanSensitivityAssumption;
    /** Supply, accelerator or site of the assumption. */
    of?: string;
    /**
     * Factor closest to 1, above or below, that changes the first row. Absent if none within the range
     * does.
     */
    factor?: number;
    /** Smallest factor that was tried. */
    searched_low: number;
    /** Largest factor that was tried. */
    searched_high: number;
    /** First row under the changed assumption, with its figures. Absent if no row is left. */
    becomes?: PlanRow;
}

export type PlanSensitivityAssumption = 'price' | 'time' | 'electricity_price' | 'carbon_intensity' | 'interruption_rate' | 'budget' | 'deadline' | 'work';

/** Differences between the first row and the second. */
export interface PlanSeparation {
    /** Settings that differ. */
    settings: Array<PlanRowDifference>;
    /** Headline figures that differ, the figure of the goal first. */
    figures: Array<PlanRowDifference>;
    /**
     * Parts of the goal's figure that differ, by the size of the difference: phases of all steps or of a
     * request, charges, or emissions by kind of equipment.
     */
    parts: Array<PlanRowDifference>;
    /** True if the first row is better by less than the uncertainty of the estimates. */
    within_interval: boolean;
}

export type PlanState = 'running' | 'done' | 'cancelled' | 'failed';

/** Supply of the devices. */
export interface PlanSupply {
    /** Name of the supply in the request, or id of the offer. */
    name: string;
    /** Kind of the supply: owned already, rented on given terms, or rented by an offer of the catalog. */
    kind: PlanSupplyKind;
    /** Provider that rents the devices out. */
    provider?: string;
    /** Region of the devices. */
    region?: string;
    /** Purchase option of the rental. */
    purchase_option?: string;
}

export type PlanSupplyKind = 'owned' | 'rented' | 'offer';

/** Loads of one thread, each at the place that the one before it has read: the latency of memory. */
export interface PointerChaseWork {
    kind: 'pointer_chase';
    /** Size of the array, a power of two, of which every line of 128 bytes is visited in turn. */
    array_bytes: number;
    /** Loads of one execution. */
    hops: number;
}

/** Requests that arrive independently of each other. */
export interface PoissonArrivals {
    process: 'poisson';
}

/** A change of a policy, a budget or the delay. It takes effect by an approval or after the delay. */
export interface PolicyChange {
    /** Id of the change. */
    id: string;
    /** Resource that changes: its path below `/v1/`. */
    resource: string;
    /** Action on the resource: create, update or delete. */
    action: PolicyChangeAction;
    /** Policy after the change. */
    policy?: ApprovalPolicyRequest;
    /** Terms of the budget after the change. */
    budget?: BudgetTerms;
    /** Settings after the change. */
    settings?: ApprovalSettingsValues;
    /** Version that is in force until the change takes effect. 0 if there is none. */
    based_on_version: number;
    /** Subject that proposed the change. */
    proposed_by: string;
    /** Time of the proposal. */
    proposed_at: string;
    /** Time at which the change takes effect, unless it is approved or rejected earlier. */
    effective_at: string;
    /** State of the change. A change that has become impossible is rejected too. */
    state: PolicyChangeState;
    /** Approvals of the change. */
    approvals: Array<PolicyChangeApproval>;
    /** Time at which the change took effect or was rejected. */
    ended_at?: string;
    /** Subject that approved the change last or rejected it. Absent if it took effect after the delay. */
    ended_by?: string;
    /** Number of changes of this resource. */
    version: number;
}

export type PolicyChangeAction = 'create' | 'update' | 'delete';

/** Approval of a change by one person. */
export interface PolicyChangeApproval {
    /** Subject that approved. */
    decided_by: string;
    /** Time of the approval. */
    decided_at: string;
}

/** Change of a policy, a budget or the delay of changes. Everything else about it is read by its id. */
export interface PolicyChangeEvent {
    /** Id of the change. */
    change_id: string;
    /** Path of the resource that changes, below `/v1/`. */
    resource: string;
    /** Action on the resource: it is created, changed or deleted. */
    action: string;
    /** Subject that proposed the change. */
    proposed_by: string;
    /** Time at which the change takes effect, unless it is approved or rejected before. */
    effective_at: string;
    /** Subject that approved it last or rejected it. Absent if the delay was over. */
    ended_by?: string;
}

/** Message about a change of a policy, a budget or the delay of changes. */
export interface PolicyChangeMessage {
    /** Type of the event. */
    type: PolicyChangeMessageType;
    /** Time of the event. */
    timestamp: string;
    /** Members of the event. */
    data: PolicyChangeEvent;
}

export type PolicyChangeMessageType = 'policy_change.proposed' | 'policy_change.effective' | 'policy_change.rejected';

/** A page of changes. */
export interface PolicyChangePage {
    items: Array<PolicyChange>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

export type PolicyChangeState = 'waiting' | 'effective' | 'rejected';

/** Conditions of a policy, all of which must hold. A policy without conditions applies to every quote. */
export interface PolicyConditions {
    /**
     * Applies to totals above this amount, converted at the exchange rates of the catalog. A total that is
     * unknown or leaves out charges counts as above.
     */
    total_above?: MoneyInput;
    /** Applies if the upper end of the total's 80% interval is above this amount. */
    total_high_above?: MoneyInput;
    /** Applies to emissions above this value. Unknown emissions count as above. */
    location_based_kg_co2e_above?: number;
    /** Applies to quotes that one of these cost centres pays for. */
    cost_center_ids?: Array<string>;
    /** Applies to quotes that one of these subjects requests, directly or by a key that they made. */
    requesters?: Array<string>;
    /** Applies to quotes with devices from one of these providers. */
    providers?: Array<ProviderName>;
}

/** Policies and exchange rates that determined the approvers, frozen at submission. */
export interface PolicyEvaluation {
    /** Day of the exchange rates, UTC. */
    on: string;
    /** All policies that existed, in order of id. */
    policies: Array<EvaluatedPolicy>;
    /** Exchange rates that were used, as stated in the catalog. */
    exchange_rates: Array<EvaluatedExchangeRate>;
}

/** A step of an approval, decided by a quorum of approvers. */
export interface PolicyStep {
    /** Name of the step. */
    name: string;
    /** Subjects that may decide. */
    approvers: Array<string>;
    /** Number of approvers that must approve. A single rejection rejects. */
    quorum?: number;
    /**
     * Order of the step. Steps of all matching policies open one after another by this number, then by id
     * of the policy.
     */
    order?: number;
    /**
     * Seconds after which the approval expires if the step is undecided. The end of the quote's validity
     * ends it in any case.
     */
    expires_after_seconds?: number;
    /** Escalation of a step that stays open. */
    escalation?: ApprovalEscalation;
}

/** Effect of power caps on the time and the cost of a run. */
export interface PowerCapEstimate {
    /** Versions and sources that reproduce the answer. */
    evidence: EstimateEvidence;
    /** Remarks about the question. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
    /** Figures at the device's own limit. */
    uncapped: PowerCapFigures;
    /** Figures by cap, in the order of the request. */
    caps: Array<PowerCapFigures>;
    /** Cap of the request with the least energy. Absent if no cap saves energy. */
    least_energy_watts?: number;
}

/** Request for the effect of power caps on the time and the cost of a run. */
export interface PowerCapEstimateRequest {
    /** Model that is trained or served. */
    model: ModelReference;
    /** Work of the model. */
    workload: WorkloadInput;
    /** Cluster that the workload runs on. */
    cluster: ClusterInput;
    /** Building that houses the run. Without it electricity and carbon are gaps. */
    site?: RunSiteInput;
    /** Terms and price of renting the devices. */
    rental?: Rental;
    /** Price of buying the devices. */
    purchase?: Purchase;
    /** Start of the run. */
    starts_at?: string;
    /** Highest power of each device, one for each cap to compare. */
    power_caps_watts: Array<number>;
    /** Layout of the workload over the devices. Defaults to a sensible layout, which the answer states. */
    parallelism?: ParallelismInput;
    /** Source of the efficiency of the devices. Defaults to measured runs. */
    efficiency?: EfficiencyInput;
    /** Price of storing data and checkpoints. */
    storage?: StorageInput;
    /** Price of data that leave the provider. */
    egress?: EgressInput;
    /**
     * Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
     * model that are at most a year older than the newest of the catalog.
     */
    token_price_ids?: Array<string>;
    /**
     * Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
     * prices, which then must all have the same one.
     */
    currency_code?: string;
    /** Power of the run over time. */
    load_profile?: RunLoadInput;
    /** Measured energy of the run, in place of the estimate. */
    measured?: MeasuredEnergyInput;
    /** Emissions of making the machines. */
    embodied?: EmbodiedEmissionsInput;
}

/** The run with one power cap. */
export interface PowerCapFigures {
    /** Highest power of a device. Absent for the device's own limit. */
    power_cap_watts?: number;
    /**
     * Lowest share of the clock that the work has left, relative to its clock under the device's own
     * limit.
     */
    clock_share: number;
    /** Time of the work over its time without a cap. */
    slowdown: QuantityEstimate;
    /** Mean power of a device. */
    power_per_device_watts: QuantityEstimate;
    /** Time of the whole run. */
    duration_seconds: QuantityEstimate;
    /** Energy that all equipment draws. */
    it_kwh?: QuantityEstimate;
    /** Energy of all equipment at the meter of the building. */
    facility_kwh?: QuantityEstimate;
    /** Power at the meter of the building. */
    peak_kw?: QuantityEstimate;
    /** Cost of the electricity. */
    electricity?: MoneyQuantity;
    /** Cost of renting the devices for the duration. */
    rent?: MoneyQuantity;
    /** Location-based emissions. */
    location_based_kg_co2e?: QuantityEstimate;
}

/** Power of a device, by its energy counter over the window, idle or under a load. */
export interface PowerWork {
    kind: 'power';
    /** `idle` without any context, `context` with one that does nothing, `decode` streams weights. */
    load: PowerWorkLoad;
    /** Share of the time in which the load runs. The device waits in between, too shortly to idle. */
    duty?: number;
    /** Time over which energy is counted. */
    window_seconds: number;
    /** Time under the load before that. */
    settle_seconds: number;
}

export type PowerWorkLoad = 'idle' | 'context' | 'gemm' | 'stream' | 'decode';

/** Source of a price list. */
export interface PriceListSource {
    /** Document, publisher and way of access. */
    citation: string;
    url?: string;
    licence?: string;
}

/** Range of a price, in the currency of the price. */
export interface PriceRange {
    /** Lowest price. */
    low: string;
    /** Highest price. */
    high: string;
}

/** Description of a problem (RFC 9457). It never repeats what was sent. */
export interface Problem {
    /** Address of the documentation of this problem. */
    type: string;
    /** Short description of the problem. */
    title: string;
    /** HTTP status. */
    status: number;
    /** Description of this occurrence. */
    detail: string;
    /** Path of the request. */
    instance: string;
    /** Stable name of the problem. */
    code: string;
    /** Id of the request, also in the header Request-Id. */
    request_id: string;
    /** Fields that are wrong. */
    errors: Array<FieldError>;
}

export type ProviderName = string;

/** Candidates that a bound decides without a score. */
export interface PrunedCandidates {
    /** Rule that decides the candidates. */
    rule: PruningRule;
    /** Number of candidates. */
    candidates: number;
}

/**
 * Bound that decides a candidate without a score: it is ruled out, or enough others are better.
 *
 * The ``state`` of a layout without any activation exceeds the memory of the device; the FLOPs of the
 * run at the peak of all devices take longer than the ``deadline``, or (``roofline``) longer than the
 * full time of enough known configurations of the same supply to fill its ranked ones; a layout with
 * more of the ``work`` that adds memory does not fit where one with less does not; an iteration of a
 * service takes longer than its service ``levels`` allow for a token, whatever the load.
 */
export type PruningRule = 'state' | 'deadline' | 'roofline' | 'work' | 'levels';

/** Published figures of a device. A figure outside the range is reviewed, not discarded. */
export interface PublishedRange {
    /** Id of the accelerator in the catalog. */
    accelerator_id: string;
    /** Lowest expected figure. */
    low?: number;
    /** Highest expected figure. */
    high: number;
    /** Publication of the figures. */
    source: string;
    /** True if fewer than two independent sources support the range. */
    is_provisional?: boolean;
}

/** Price of a bought cluster, given directly or by a hardware price of the catalog. */
export interface Purchase {
    /** Price of one device. */
    price_per_device?: MoneyInput;
    /**
     * Id of a hardware price of the catalog, in place of the price of a device. Its products are bought
     * whole, and its published range is that of the price unless `price_range` is given.
     */
    hardware_price_id?: string;
    /** Range of the price of one device. The interval of the total includes it. */
    price_range?: PriceRange;
    /** Factor of the price and its range: a discount, or a price that moves. */
    price_factor?: number;
    /**
     * Servers around the devices. If left out, they are part of the price of a device; refused beside a
     * hardware price that includes them.
     */
    hosts?: PurchasedHosts;
    /** Adapters, cables and switches, divided among the devices. */
    network_per_device?: MoneyInput;
    /** Price of the storage of the cluster. */
    storage?: MoneyInput;
    /** Terms of ownership, for the cost of a year and of the run. Without it the purchase is only a total. */
    ownership?: Ownership;
}

export type PurchaseOption = 'on_demand' | 'spot' | 'reserved' | 'committed' | 'capacity_block';

/** Servers around the devices, priced without the devices. */
export interface PurchasedHosts {
    /** Price of one server. */
    price_per_host: MoneyInput;
    /** Devices of one server. Defaults to the devices of a node of the cluster. Servers are bought whole. */
    devices_per_host?: number;
}

/** A number with its 80% interval and the evidence behind it. */
export interface QuantityEstimate {
    /** Estimate, in the unit that ends the name of the member. */
    value: number;
    /** Lower end of the interval. */
    low: number;
    /** Upper end of the interval. */
    high: number;
    /** Weakest evidence that the number rests on. */
    basis: EvidenceBasis;
}

/** A version of a quote with its requests, answers and prices. */
export interface Quote {
    /** Id of the quote, the same for all of its versions. */
    id: string;
    /** Number of the version, from 1. Each version is frozen. */
    version: number;
    /** State of the version's approval. */
    state: QuoteState;
    /** Name of the quote. */
    name: string;
    /** Operation that was quoted. */
    operation: QuotedOperation;
    /** Headline figures of the quote. */
    headlines: QuoteHeadlines;
    /** Id of the accelerator. */
    accelerator_id?: string;
    /** Number of devices. */
    accelerator_count?: number;
    /** Providers that rent the devices out, as far as they are known. */
    providers: Array<string>;
    /** Id of the cost centre that pays. */
    cost_center_id?: string;
    /** Start of the run, if it is given. */
    starts_at?: string;
    /** Time at which the version was frozen. */
    created_at: string;
    /** Kind and id of the subject that requested the version. */
    created_by: string;
    /** Time after which the version can be neither submitted nor approved. */
    valid_until: string;
    /** SHA-256 of all frozen content, which approvers confirm to have seen. */
    content_digest: string;
    /** Tenant of the quote. */
    tenant_id: string;
    /** Note of the author. */
    note?: string;
    /** Plan and row that the quote was made from. */
    plan?: QuotedCandidate;
    /** True if the devices are neither rented nor offered. Electricity is then paid in addition. */
    owns_devices: boolean;
    /** Bodies of `POST /v1/estimates/...` that were answered. */
    requests: QuoteEstimateRequests;
    /** Answers to the requests. */
    answers: QuoteEstimates;
    /**
     * Cheaper ways to the same work, the cheapest first, at most one of a kind. Absent from versions of
     * earlier releases of the service, which did not look for any.
     */
    alternatives?: Array<QuoteAlternative>;
    /** Rows of the catalog that the answers rest on, with their prices. */
    inputs: Array<QuotedRow>;
    /** Revision of the catalog that was read. */
    catalog_revision: number;
    /** Version of the formulas. */
    method_version: string;
    /** SHA-256 of the charges as FOCUS rows. Absent if there are none, and a gap says why. */
    focus_digest?: string;
    /** Remarks for the reader, each once. Pointers are into the quote. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why, each once. Pointers are into the quote. */
    gaps: Array<EstimateGap>;
}

/** Deviation of a group of quotes from their billed cost. */
export interface QuoteAccuracyGroup {
    /** Number of quotes whose cost can be compared. */
    quote_count: number;
    /** Median of the absolute deviation, as a share of the quoted cost. */
    median_absolute_error?: number;
    /** Mean ratio of billed to expected cost, less 1. Above 0, runs cost more than quoted. */
    bias?: number;
    /** Share of the quotes whose cost lies within the 80% interval. */
    interval_coverage?: number;
    /** Name of the group. */
    name: string;
}

/** Billed cost of a quote, compared with the quoted cost. */
export interface QuoteActuals {
    /** Id of the quote. */
    quote_id: string;
    /** Newest approved version of the quote, else its newest version. */
    quote_version: number;
    /** Approval state of that version. */
    state: QuoteState;
    /** Quoted cost of the whole run. */
    total?: MoneyQuantity;
    /** Start of the run as quoted, else the day of the first charge. */
    starts_at?: string;
    /** End of the run as quoted. */
    ends_at?: string;
    /** Share of the run's time that is covered by bills which name the quote. */
    covered_share?: number;
    /** Quoted cost of that share. */
    expected?: ExpectedCost;
    /** Billed cost in the currency of the quote. */
    billed?: MoneyAmount;
    /** Effective cost: the billed cost with prepayments spread over their use. */
    effective?: MoneyAmount;
    /**
     * Part of the effective cost that is compared: all of it once the whole run is billed, else the cost
     * of the run's days.
     */
    compared?: MoneyAmount;
    /** Charges that are left out of the comparison, with the reason. */
    left_out: Array<ExcludedCharges>;
    /** Compared cost over expected cost. */
    ratio?: number;
    /** True if the compared cost lies within the 80% interval. */
    is_within_interval?: boolean;
    /** Compared cost by service category, or all billed cost if nothing is compared. */
    services: Array<ServiceCategoryActuals>;
    /** Ids of the bills that the figures come from. */
    import_ids: Array<string>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
}

/** A cheaper way to the same work, computed under the same catalog. */
export interface QuoteAlternative {
    /** Fewer devices of the same kind, another offer of the same devices, or tokens at a list price. */
    kind: QuoteAlternativeKind;
    /** Sentence for a reader. */
    detail: string;
    /** Amount to be paid for it, comparable with the total of the headlines. */
    total: MoneyQuantity;
    /** Number of devices that serve the load, for `fewer_devices`. */
    accelerator_count?: number;
    /** Id of the offer, for `other_offer`. */
    offer_id?: string;
    /** Id of the token price, for `token_price`. */
    token_price_id?: string;
    /** Provider of the offer or of the tokens. */
    provider?: string;
}

export type QuoteAlternativeKind = 'fewer_devices' | 'other_offer' | 'token_price';

/** New version of a quote that replaces the submitted one. */
export interface QuoteAmendmentRequest {
    /** Digest of the newest version that the caller has seen. Another version is refused. */
    content_digest: string;
    /** Request of the next version. */
    quote: QuoteRequest;
}

/** Sum of all charges of one purpose in one quote. */
export interface QuoteChargeSum {
    /** Sum of the amounts. */
    amount: MoneyAmount;
    /** Sum of the quantities. Absent if the charges do not share a unit. */
    quantity?: number;
    /** Unit of the quantity. */
    unit?: string;
    /** Price of a unit. Absent if the charges do not share one. */
    unit_price?: MoneyAmount;
}

/** Changes between two quotes. */
export interface QuoteComparison {
    /** First quote of the comparison. */
    before: QuoteSummary;
    /** Second quote of the comparison. */
    after: QuoteSummary;
    /** Differences in their terms, and in what they were computed under. */
    terms: Array<QuoteValueChange>;
    /** Members of their requests that differ. */
    requests: Array<QuoteValueChange>;
    /** Rows of the catalog that differ, rows with prices first. */
    inputs: Array<QuotedRowChange>;
    /** Headlines that differ. */
    headlines: Array<QuoteHeadlineChange>;
    /** Causes of the change of the total. Absent if the two cannot be compared, and a gap says why. */
    total_change?: QuoteTotalChange;
    /** Charges that differ, by the size of their effect on the total. */
    lines: Array<QuoteLineChange>;
    /** Remarks on the comparability of the amounts. Pointers are into the comparison. */
    warnings: Array<AnswerWarning>;
    /** Figures that are not compared, and why. Pointers are into the comparison. */
    gaps: Array<EstimateGap>;
}

/** Bodies of `POST /v1/estimates/...` that a quote answers. */
export interface QuoteEstimateRequests {
    /** Body for `memory`. */
    memory?: MemoryEstimateRequest;
    /** Body for `throughput`. */
    throughput?: ThroughputEstimateRequest;
    /** Body for `cost`. */
    cost?: CostEstimateRequest;
    /** Body for `utility-bill`. */
    utility_bill?: UtilityBillRequest;
}

/** Answers of the estimates that a quote rests on, frozen when it was made. */
export interface QuoteEstimates {
    /** Memory estimate. */
    memory?: MemoryEstimate;
    /** Throughput estimate. */
    throughput?: ThroughputEstimate;
    /** Cost estimate. */
    cost?: CostEstimate;
    /** Utility bill. */
    utility_bill?: UtilityBill;
}

/** Quote that nobody has decided. */
export interface QuoteEvent {
    /** Id of the quote. */
    quote_id: string;
    /** Version of the quote. */
    quote_version: number;
    /** Name of the quote. */
    name: string;
    /** Subject that created the quote. */
    created_by: string;
    /** Time until which its prices hold. */
    valid_until: string;
    /** Id of the cost centre that would pay. */
    cost_center_id?: string;
}

/** A headline that differs. */
export interface QuoteHeadlineChange {
    /** Name of the headline. */
    name: string;
    /** Value in the first quote. Absent if it was unknown. */
    before?: JsonScalar;
    /** Value in the second quote. Absent if it is unknown. */
    after?: JsonScalar;
    /** Second value minus the first, a string for money. Absent unless both are numbers of one unit. */
    difference?: TextOrNumber;
    /** Second value divided by the first. */
    ratio?: number;
    /** Currency of both amounts. */
    currency_code?: string;
    /** True if the two 80% intervals do not overlap. */
    is_beyond_intervals?: boolean;
}

/** Headline figures of a quote. A figure that is unknown is absent. */
export interface QuoteHeadlines {
    /** Amount to be paid: rent or share of owned devices, else the purchase; electricity of owned devices. */
    total?: MoneyQuantity;
    /** Time of the run. */
    duration_seconds?: QuantityEstimate;
    /** Devices times hours. */
    device_hours?: QuantityEstimate;
    /** Memory of the fullest device. */
    total_bytes?: QuantityEstimate;
    /** True if the workload fits the device. */
    fits?: boolean;
    /** Energy at the meter of the building. */
    facility_kwh?: QuantityEstimate;
    /** Power at the meter of the building. */
    peak_kw?: QuantityEstimate;
    /** Emissions of the electricity. */
    location_based_kg_co2e?: QuantityEstimate;
    /** Water that evaporates on the site and in the power plants of the grid. */
    water_liters?: QuantityEstimate;
}

/** Change of the charges of one purpose: of the same bill, name, resource, period and tier. */
export interface QuoteLineChange {
    /** Bill of the charges. */
    part: QuoteLineChangePart;
    /** Name of the charge. */
    name: string;
    /** Accelerator of the devices, or tariff with the periods and tiers. */
    resource?: string;
    /** Billing period of the charges. */
    billing_period?: BillingPeriod;
    /** Price period of the charges: hours that share a price. */
    price_period?: string;
    /** Number of the tier in its ladder, from 1. */
    tier?: number;
    /** `changed` if both quotes have the charges, `new` or `removed` if only the second or the first has. */
    change: QuoteLineChangeChange;
    /** Charges of the first quote. Absent if it has none. */
    before?: QuoteChargeSum;
    /** Charges of the second quote. Absent if it has none. */
    after?: QuoteChargeSum;
    /** Contribution to the change of the total. Absent if the totals are not comparable. */
    contribution?: MoneyAmount;
    /** Part of the contribution from the change of the quantity, at the mean of both prices. */
    by_quantity?: MoneyAmount;
    /**
     * Part of the contribution from the change of the price, at the mean of both quantities, with
     * rounding.
     */
    by_price?: MoneyAmount;
    /** Part of the contribution from the change of the exchange rate. */
    by_exchange_rate?: MoneyAmount;
    /** Reason why the contribution of charges that both quotes have cannot be split. */
    not_split?: QuoteLineChangeNotSplit;
}

export type QuoteLineChangeChange = 'new' | 'removed' | 'changed';

export type QuoteLineChangeNotSplit = 'UNIT_DIFFERS' | 'CURRENCY_DIFFERS' | 'PRICE_UNKNOWN' | 'NOT_A_PRODUCT' | 'ROUNDING';

export type QuoteLineChangePart = 'cost' | 'electricity';

/** Message about a quote. */
export interface QuoteMessage {
    /** Type of the event. */
    type: 'quote.expires_soon';
    /** Time of the event. */
    timestamp: string;
    /** Members of the event. */
    data: QuoteEvent;
}

/** A page of quotes, each in its newest version. */
export interface QuotePage {
    /** Quotes, the newest first. */
    items: Array<QuoteSummary>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Terms of the next version of a quote, beside its prices. */
export interface QuoteRepriceRequest {
    /** Newest version that the caller knows. If there is a newer one, the quote stays as it is. */
    version?: number;
    /** Days in which the quote may be approved. A price that ends earlier shortens the validity. */
    valid_for_days?: number;
}

export type QuoteRequest = MemoryQuoteRequest | ThroughputQuoteRequest | CostQuoteRequest | UtilityBillQuoteRequest | CandidateQuoteRequest;

export type QuoteState = 'draft' | 'pending' | 'approved' | 'rejected' | 'expired' | 'cancelled' | 'superseded';

/** Version of a quote to submit for approval. */
export interface QuoteSubmissionRequest {
    /** Digest of the newest version that the caller has seen. Another version is refused. */
    content_digest: string;
}

/** A version of a quote in lists. */
export interface QuoteSummary {
    /** Id of the quote, the same for all of its versions. */
    id: string;
    /** Number of the version, from 1. Each version is frozen. */
    version: number;
    /** State of the version's approval. */
    state: QuoteState;
    /** Name of the quote. */
    name: string;
    /** Operation that was quoted. */
    operation: QuotedOperation;
    /** Headline figures of the quote. */
    headlines: QuoteHeadlines;
    /** Id of the accelerator. */
    accelerator_id?: string;
    /** Number of devices. */
    accelerator_count?: number;
    /** Providers that rent the devices out, as far as they are known. */
    providers: Array<string>;
    /** Id of the cost centre that pays. */
    cost_center_id?: string;
    /** Start of the run, if it is given. */
    starts_at?: string;
    /** Time at which the version was frozen. */
    created_at: string;
    /** Kind and id of the subject that requested the version. */
    created_by: string;
    /** Time after which the version can be neither submitted nor approved. */
    valid_until: string;
    /** SHA-256 of all frozen content, which approvers confirm to have seen. */
    content_digest: string;
}

/** Change of the total, as parts that add up exactly. */
export interface QuoteTotalChange {
    /** Second total minus the first: the sum of the contributions of all lines. */
    difference: MoneyAmount;
    /** Part from changes of quantities. */
    by_quantity: MoneyAmount;
    /** Part from changes of prices. */
    by_price: MoneyAmount;
    /** Part from changes of exchange rates. */
    by_exchange_rate: MoneyAmount;
    /** Part from lines that only the second quote has. */
    by_new: MoneyAmount;
    /** Part from lines that only the first quote has. */
    by_removed: MoneyAmount;
    /** Part from changed lines whose contribution cannot be split. */
    not_split: MoneyAmount;
}

/** A value that differs. */
export interface QuoteValueChange {
    /** JSON Pointer of the value. */
    pointer: string;
    /** Value in the first quote. Absent if it has none. */
    before?: JsonScalar;
    /** Value in the second quote. Absent if it has none. */
    after?: JsonScalar;
}

/** The row of a plan that is quoted. */
export interface QuotedCandidate {
    /** Id of the plan. */
    plan_id: string;
    /** Rank of the row. */
    candidate: number;
}

export type QuotedOperation = 'memory' | 'throughput' | 'cost' | 'utility-bill' | 'plan';

/** A catalog row that the answers rest on, frozen with its values. */
export interface QuotedRow {
    /** JSON Pointer of the member of the request that it stands for. */
    pointer: string;
    /** Kind of the row. */
    kind: EstimateSourceKind;
    /** Id of the row or curve. */
    id: string;
    /** Version of the row or curve. */
    version: number;
    /** `shipped` for a row that ships with the service, `tenant` for a row of the tenant. */
    origin: RowOrigin;
    /** Version of the shipped row of the same id that the tenant's row replaces. */
    shadows_shipped_version?: number;
    /** Citation of the source of its values. */
    citation: string;
    /** The row as the catalog showed it. */
    row: Record<string, unknown>;
}

/** A row of the catalog that only one of two quotes uses, or both with different values. */
export interface QuotedRowChange {
    /** Kind of the row, such as `offer` or `tariff`. */
    kind: string;
    /** Id of the row. */
    id: string;
    /** Version of the row in the first quote. Absent if that does not use the row. */
    version_before?: number;
    /** Version of the row in the second quote. Absent if that does not use the row. */
    version_after?: number;
    /** Values that differ, prices first. Pointers are relative to the row. */
    changes: Array<QuoteValueChange>;
}

/**
 * Messages from the adapter nearest to an accelerator to another one of the node, or to itself.
 *
 * The time of one is that which perftest reports: the payload over the average bandwidth, or the
 * median latency, half of the way there and back of writes and sends.
 */
export interface RdmaLinkWork {
    kind: 'rdma_link';
    /** Operation of the messages. */
    operation: RdmaLinkWorkOperation;
    /** Path of the messages: through the network to another adapter, or within one. */
    path: RdmaLinkWorkPath;
    /** Memory at both ends, which adapters access directly. */
    memory: RdmaLinkWorkMemory;
    /** Size of one message. */
    message_bytes: number;
}

export type RdmaLinkWorkMemory = 'device' | 'host';

export type RdmaLinkWorkOperation = 'write' | 'read' | 'send';

export type RdmaLinkWorkPath = 'between_adapters' | 'loopback';

/** A price for each kvar at the period's peak, or each kvarh, above a free share of the active part. */
export interface ReactiveCharge {
    /** Name that no other charge of the revision has. */
    name: string;
    /**
     * Calendar months in which it is charged: energy by its time, all else by the month in which most days
     * of the billing period lie. Defaults to all months.
     */
    months?: Array<number>;
    /** Annual kWh for each kW of the annual peak from which it is charged. */
    hours_of_use_from?: number;
    /** Annual kWh for each kW of the annual peak below which it is charged; absent without a bound. */
    hours_of_use_below?: number;
    kind: 'reactive';
    /** Decimal number as text; credits are below zero. */
    price: string;
    /** Share of the active part up to which nothing is charged. */
    free_share_of_active?: number;
    /** True if it is charged per kvarh instead of kvar. */
    by_energy?: boolean;
}

/** Lowest, middle and highest reading over the timed window. */
export interface ReadingSpread {
    /** Lowest reading. */
    minimum: number;
    /** Middle reading. */
    median: number;
    /** Highest reading. */
    maximum: number;
}

/** The price of the market in each interval times a factor, and an adder for each kWh. */
export interface RealTimeCharge {
    /** Name that no other charge of the revision has. */
    name: string;
    /**
     * Calendar months in which it is charged: energy by its time, all else by the month in which most days
     * of the billing period lie. Defaults to all months.
     */
    months?: Array<number>;
    /** Annual kWh for each kW of the annual peak from which it is charged. */
    hours_of_use_from?: number;
    /** Annual kWh for each kW of the annual peak below which it is charged; absent without a bound. */
    hours_of_use_below?: number;
    kind: 'real_time';
    /** Prices of the market. */
    prices: IntervalPrices;
    /** Decimal amount that is added for each kWh; credits are below zero. */
    adder?: string;
    /** Decimal factor of the price of the market. */
    factor?: string;
}

/** A hint for the recipe. The estimate does not depend on it. */
export interface RecipeHint {
    /** Stable name of the hint. */
    code: RecipeHintCode;
    /** Description of the change. */
    detail: string;
    /** Factor to multiply the learning rate by. */
    factor?: number;
    /** Learning rate that results. */
    learning_rate?: number;
}

export type RecipeHintCode = 'LINEAR_LEARNING_RATE' | 'SQUARE_ROOT_LEARNING_RATE' | 'WARM_UP' | 'LAYERWISE_LEARNING_RATES' | 'SMALL_MODEL' | 'SMALL_DEVICE_BATCH';

/**
 * Activations that the backward pass recomputes.
 *
 * ``selective`` saves activations that are expensive to compute, ``full`` each block's input,
 * ``every_k`` the input of every k-th block, ``sqrt`` of blocks whose distance is the square root of
 * the depth (Chen et al. 2016).
 */
export type Recomputation = 'none' | 'selective' | 'full' | 'every_k' | 'sqrt';

/** Activations that the backward pass recomputes. */
export interface RecomputationInput {
    /** Strategy of recomputation. */
    strategy: Recomputation;
    /** Blocks from one kept input to the next. Required for the strategy `every_k`, and allowed only there. */
    k?: number;
}

/** Number of deliveries that are sent again. */
export interface RecoveredWebhookDeliveries {
    /** Number of `failed` or `cancelled` deliveries that wait again. None if a request is repeated. */
    delivery_count: number;
}

/** The vendor's server for this accelerator. */
export interface ReferenceServer {
    name: string;
    /** Number of accelerators in the server. */
    accelerator_count: number;
    /** Highest power that the whole server draws. */
    power_limit_watts: number;
}

/** A system that the accelerator comes in. Links and interfaces default to those of the row. */
export interface ReferenceSystem {
    /** Name, such as DGX H100 or trn2.48xlarge. */
    name: string;
    /** Accelerators of a node. */
    accelerators_per_node: number;
    /** Link between the accelerators of a node, slice or rack. */
    intra_node_link_id?: string;
    /** Link between nodes, slices or racks. */
    inter_node_link_id?: string;
    /** Interfaces of the link between nodes for each accelerator. */
    network_interfaces_per_device?: number;
}

/** A row of a price list that is not an offer. */
export interface RefusedRow {
    /**
     * Line of a table (the header is /1), with the column after it if its cell is the reason, or JSON
     * Pointer into a document.
     */
    pointer: string;
    /** Stable name of the reason. */
    code: string;
    /** Description of the reason. */
    detail: string;
}

/** Rows that were refused for one reason. */
export interface RefusedRowCount {
    /** Stable name of the reason. */
    code: string;
    /** Number of rows. */
    row_count: number;
}

/** Building that houses rented devices of some regions, for their energy and carbon. */
export interface RegionSite {
    /** Names of the regions, as offers give them. */
    regions: Array<string>;
    /**
     * Building of the devices. Its electricity is paid by the provider and is not part of the cost of a
     * plan.
     */
    site: RunSiteInput;
}

/** Expected failures, and the time of the whole run by activity. */
export interface ReliabilityEstimate {
    /** Mean time between failures of the whole cluster. */
    mean_time_between_failures_seconds: QuantityEstimate;
    /** Time from a failure until training resumes, loading the checkpoint included. */
    restart_seconds: QuantityEstimate;
    /** Probability of at least one failure in the time that the run needs without any. */
    failure_probability?: number;
    /** Expected failures over the whole run. */
    expected_failures?: number;
    /**
     * Expected results that a device computes wrongly without notice, at published rates. They add no time
     * here.
     */
    expected_silent_corruptions?: QuantityEstimate;
    /** Time of progress: the duration without checkpoints and failures. */
    productive_seconds?: QuantityEstimate;
    /** Time that training stops for checkpoints. */
    checkpoint_seconds?: QuantityEstimate;
    /** Time of work that failures lose and that is repeated. */
    lost_work_seconds?: QuantityEstimate;
    /** Time spent in restarts. */
    restarting_seconds?: QuantityEstimate;
}

/** Failures of devices and the time to recover. An empty object takes published figures. */
export interface ReliabilityInput {
    /**
     * Mean time between failures of one device with its share of node and network, in hours. n devices
     * fail n times as often. Defaults to the value of published runs.
     */
    device_mtbf_hours?: number;
    /**
     * Time from a failure until training starts to load its checkpoint: detection, replacement and start.
     * Defaults to the value of published runs.
     */
    restart_seconds?: number;
}

/** Cost of renting the devices. */
export interface RentCostBreakdown {
    /** Charges. */
    lines: Array<CostLine>;
    /** Sum of the charges. */
    total?: MoneyQuantity;
    /** Purchase option of the rental: on_demand, spot, reserved or capacity_block. */
    purchase_option?: string;
    /** Number of whole instances. */
    instances: number;
    /** Devices of one instance. */
    devices_per_instance: number;
    /** Device-hours that are paid for, used or not. */
    paid_device_hours: QuantityEstimate;
    /** Part of the total that is paid before the devices start. */
    due_at_start?: MoneyAmount;
    /** Cost of interruptions. Present for spot devices. */
    interruptions?: SpotInterruptionEstimate;
}

/**
 * Price of a rented device, given directly or by an offer of the catalog.
 *
 * Terms of the offer apply where the request gives none. At most one of spot, commitment and capacity
 * block applies.
 */
export interface Rental {
    /** Price of one device for an hour. */
    price_per_device_hour?: MoneyInput;
    /** Id of an offer of the catalog. */
    offer_id?: string;
    /**
     * Expected purchase option of the offer. An offer with another one is refused, such as spot for
     * on_demand.
     */
    purchase_option?: string;
    /** Terms of spot devices, which the provider may reclaim. */
    spot?: SpotTerms;
    /** Range of the price. The interval of the total includes it. */
    price_range?: PriceRange;
    /**
     * Devices of an instance. An instance is rented whole, and devices that the run does not use are
     * charged too. Defaults to the value of the offer, and with a price to 1.
     */
    devices_per_instance?: number;
    /** Billing of time. Defaults to the billing of the offer, else to exact time. */
    billing?: RentalBillingTerms;
    /** Terms of devices that are paid for a term. */
    commitment?: CommitmentTerms;
    /** Terms of devices that are paid in whole blocks. */
    capacity_block?: CapacityBlockTerms;
    /** Factor of all prices of the rental: a discount, or a price that moves. */
    price_factor?: number;
}

/** Billing of the time of an instance. */
export interface RentalBillingTerms {
    /** Increment to which time is rounded up, such as 60 or 3600. By default time is billed exactly. */
    increment_seconds?: number;
    /** Shortest time that an instance is charged for. */
    minimum_seconds?: number;
}

/** Devices that can be rented on terms that are no offer of the catalog. */
export interface RentedDevices {
    /** Name of the devices in the answer. */
    name: string;
    /** Devices and their links. `accelerator_count` is the most that can be rented. */
    cluster: ClusterInput;
    /** Terms of the rental. */
    rental: Rental;
    /** Provider that rents the devices out. It is compared with `providers` of the constraints. */
    provider?: string;
    /** Region of the devices. It is compared with `regions` of the constraints and of the sites. */
    region?: string;
}

/** Deliveries that are sent again. */
export interface ReplayedWebhookDeliveries {
    /** Deliveries in the order of the request. */
    items: Array<WebhookDelivery>;
}

/** Pooling or merging (factor above 1) or up-sampling (below 1) of the spatial axes; no parameters. */
export interface ResamplingLayer {
    kind: 'resampling';
    /** Length of an axis before over its length after. */
    factor: number;
    /** Number of frames before over their number after. */
    frame_factor?: number;
    /** True if class tokens are left behind. */
    drops_extra_tokens?: boolean;
    /**
     * Number of channels of a maximum pooling, which keeps its input and the places of the maxima; absent
     * for other resamplings.
     */
    channels?: number;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

/** Electricity of a grid that is left when all contracts are taken out. */
export interface ResidualMix {
    /** Emissions of each kWh. */
    carbon_intensity_kg_co2e_per_kwh: number;
    /** Emissions that are counted. */
    accounting?: EmissionAccounting;
    /** Document that states the figure. */
    source: string;
}

export type ResultLeaseStanding = 'current' | 'late' | 'unknown';

/** Permitted use of a result. Only accepted results enter a calibration. */
export type ResultVerdict = 'accepted' | 'suspect' | 'rejected' | 'evidence_only';

/** Generation of the sequences that a policy is trained on. */
export interface RolloutEstimate {
    /** Time of one rollout. */
    seconds: QuantityEstimate;
    /** Sequences of a rollout. */
    sequences: number;
    /** Tokens of responses that all replicas generate during a rollout. */
    generated_tokens_per_second: QuantityEstimate;
    /** Engines that generate in parallel. */
    replicas: number;
    /** Devices of each engine. */
    devices_per_replica: number;
    /** Sequences that each engine holds at a time. 0 if not even one fits. */
    sequences_per_replica: number;
}

/** Generation of the sequences of ppo and grpo. Prompt and response together are `sequence_length`. */
export interface RolloutInput {
    /**
     * Tokens of the prompt in a sequence. Defaults to the rest beside `response_tokens`, else to half the
     * sequence.
     */
    prompt_tokens?: number;
    /** Mean tokens of a sequence that are generated. Defaults to the rest beside `prompt_tokens`. */
    response_tokens?: number;
    /** Sequences that begin with the same prompt (the group of grpo). Defaults to 8 for grpo, else to 1. */
    samples_per_prompt?: number;
    /**
     * `colocated` if the devices that train also generate, in turn; `separate` if other devices of the
     * cluster do.
     */
    placement?: RolloutInputPlacement;
    /**
     * Tokens of the longest response of a rollout; engines work until it ends. Defaults to
     * `response_tokens`.
     */
    longest_response_tokens?: number;
    /** Optimizer steps of one rollout: its sequences over the global batch. */
    steps_per_rollout?: number;
    /** Number of times that each sequence of a rollout is trained on. */
    epochs?: number;
    /**
     * Devices of the cluster that generate and do not train. Required for the placement `separate`, and
     * allowed only there.
     */
    accelerator_count?: number;
    /**
     * Set to true to generate a rollout while the one before is trained on. Allowed only for the placement
     * `separate`.
     */
    asynchronous?: boolean;
    /** Devices of one replica of the engine. Defaults to the fewest that hold the model and some sequences. */
    tensor?: number;
    /** Share of a device that the engine takes. Defaults to 0.5 beside training (verl), else to 0.9 (vLLM). */
    memory_fraction?: number;
}

export type RolloutInputPlacement = 'colocated' | 'separate';

export type RowOrigin = 'shipped' | 'tenant';

/** Candidates that one constraint rules out. */
export interface RuledOutCandidates {
    /** Constraint that rules the candidates out. */
    constraint: PlanConstraint;
    /** Number of candidates. */
    candidates: number;
}

/** Configurations that one constraint rules out. Each counts for the first constraint that does. */
export interface RuledOutConfigurations {
    /**
     * Constraint: no rate of the accelerator for the precision of the weights; heads, blocks or experts of
     * the model that do not divide among the devices; tensor parallelism beyond the fast link; device
     * memory; the most requests that the engine takes at a time; a service level.
     */
    constraint: FrontierConstraint;
    /** Number of configurations. */
    configurations: number;
}

/** Power of a run over time. */
export interface RunLoadInput {
    /** Interval over which the meter takes the mean, in minutes. */
    interval_minutes?: 5 | 15 | 30 | 60;
    /**
     * Time from switching on to steady work, at half the power above idle on average. It is added to the
     * run.
     */
    ramp_seconds?: number;
    /** Time after the run until the machines are switched off. It is added to the run. */
    idle_seconds?: number;
    /** Windows in which the run is paused. They delay its end. */
    maintenance?: MaintenanceSchedule;
    /** Load of a service in each hour of the day, from midnight, over the mean of all hours. */
    daily_shape?: Array<number>;
    /** Set to true to list the power of every interval in the answer. Needs `starts_at`. */
    include_intervals?: boolean;
}

/** Scale on which a run is spread. */
export type RunScale = 'single_device' | 'single_node' | 'cluster';

/** The building that houses the run. Figures given here replace those of `site_id`. */
export interface RunSiteInput {
    /** Id of a site of the catalog. */
    site_id?: string;
    /** Power usage effectiveness: energy of the facility over energy of the IT equipment. */
    pue?: number;
    /** Price of electricity. */
    electricity?: ElectricityPriceInput;
    /** Emissions of each kWh at the meter. */
    carbon_intensity_kg_co2e_per_kwh?: number;
    /** Id of a grid of the catalog. */
    grid_id?: string;
    /** Time zone of the site, by which a tariff is applied. Defaults to that of the tariff. */
    time_zone?: string;
    /** Average intensity over time, in place of the intensity of the grid. Needs `starts_at`. */
    carbon_intensity_series?: CarbonIntensitySeriesInput;
    /** Factor of the average intensity, given or of the grid, to model a grid that changes. */
    carbon_intensity_factor?: number;
    /**
     * Grid of the catalog with marginal intensities. Adds the emissions that the run changes to those it
     * is charged with.
     */
    marginal_grid_id?: string;
    /** Electricity that is bought at intensities of its own. The shares sum to at most 1. */
    contracts?: Array<ElectricityContract>;
    /** Intensity of the electricity that the contracts leave. */
    residual_mix?: ResidualMix;
    /** Power usage effectiveness from January to December, in place of `pue`; needs `starts_at`. */
    pue_by_month?: Array<number>;
    /** Cooling of a node: its fans, cold plates, or an immersion bath. */
    cooling?: RunSiteInputCooling;
    /**
     * Power of switches and optics between nodes, for each device. Defaults to an estimate from its
     * bandwidth to other nodes.
     */
    fabric_power_watts_per_device?: number;
    /** Load of the site's meter without the run. */
    baseline_load?: ConstantBaselineLoad | BaselineLoadSeries;
    /** Water that evaporates on the site per kWh of IT energy. */
    water_usage_effectiveness_liters_per_kwh?: number;
}

export type RunSiteInputCooling = 'air' | 'liquid' | 'immersion';

/** Benchmark run that a node is running. */
export interface RunningLease {
    /** Id of the benchmark run that the lease is for. */
    benchmark_run_id: string;
    /** Number of times that the run was granted so far. */
    attempt: number;
    /** Start of this attempt. */
    begun_at: string;
}

/** Content of one sample beside its tokens. Members default to the values that the model was built for. */
export interface SampleInput {
    /** Height in pixels. For latents, the height of the picture that they encode. */
    height?: number;
    /** Width in pixels. Defaults to the height. */
    width?: number;
    /** Numbers of one input cell. The model sets it, and another number is refused. */
    channels?: number;
    /** Frames of a video. */
    frames?: number;
    /** Pictures or videos of a sample, each encoded on its own. */
    images?: number;
    /**
     * Tokens that an encoder reads, or that condition a diffusion model. A training sequence of an
     * encoder-decoder defaults to as many as the decoder has.
     */
    source_tokens?: number;
    /** Frames of a spectrogram. */
    audio_frames?: number;
}

/** Statistics of samples: of seconds of one execution, or of readings in the unit of the metric. */
export interface SampleSummary {
    /** Number of samples. */
    size: number;
    /** Lowest sample. */
    minimum: number;
    /** Lower quartile. */
    q1: number;
    /** Middle sample. */
    median: number;
    /** Upper quartile. */
    q3: number;
    /** Highest sample. */
    maximum: number;
    /** Arithmetic mean. */
    mean: number;
    /** Standard deviation of all samples. */
    standard_deviation: number;
    /** Median of the distances from the median. */
    median_absolute_deviation: number;
    /** 95th percentile. */
    p95: number;
    /** 99th percentile. */
    p99: number;
    /** Lower end of the 95% confidence interval of the median. */
    median_low: number;
    /** Upper end of the 95% confidence interval of the median. */
    median_high: number;
    /** Change over the whole window by least squares, as a share of the median. */
    drift: number;
    /** Correlation of each sample with the next. */
    autocorrelation: number;
}

/** The run on one device, one node, or the cluster. */
export interface ScaleOption {
    /** Scale of the run. */
    scale: RunScale;
    /** Number of accelerators. */
    accelerator_count: number;
    /** True if a device holds its share. Absent if the capacity is unknown. */
    fits?: boolean;
    /** Time of the whole run. */
    duration_seconds?: QuantityEstimate;
    /** True if the run ends within the time limit. */
    in_time?: boolean;
}

/** Points of one kind of scaling. */
export interface ScalingCurve {
    /** Points by number of accelerators. */
    points: Array<ScalingPoint>;
    /** Share of the work that is not divided, by the law that fits best. */
    serial_share?: number;
    /**
     * Number of accelerators at which the divided compute of the smallest number takes as long as the
     * communication of the largest, which does not shrink. Present for strong scaling.
     */
    crossover_accelerator_count?: number;
    /** Empirical curve. Present if there are four points. */
    empirical?: EmpiricalScalingFit;
}

/** The smallest scale that holds the step and ends within the time limit. */
export interface ScalingDecision {
    /** Chosen scale. Absent if none qualifies. */
    scale?: RunScale;
    /** Scales, the smallest first. */
    options: Array<ScaleOption>;
    /** Accelerators that weights, gradients and optimizer states alone fill, if spread evenly. */
    least_accelerator_count?: number;
    /** Longest acceptable run. */
    time_limit_seconds: number;
    /** Scale that sizes alone suggest, as a hint. Absent if the size of the dataset is unknown. */
    rule_of_thumb?: RunScale;
    /** True if the dataset is too large to stage. */
    streaming?: boolean;
}

/** The run on other numbers of accelerators. */
export interface ScalingEstimate {
    /** The same step divided among more accelerators. */
    strong: ScalingCurve;
    /** A step that grows with the number of accelerators. */
    weak: ScalingCurve;
}

/** Requests the same run on other numbers of accelerators. An empty object lets the service choose. */
export interface ScalingInput {
    /**
     * Numbers of accelerators. Defaults to doublings of the smallest number that the layout allows and
     * that holds the step, up to eight of them and to four times the cluster.
     */
    accelerator_counts?: Array<number>;
    /**
     * Longest acceptable run before it is spread over more accelerators, in seconds. Defaults to two
     * weeks.
     */
    time_limit_seconds?: number;
}

/** The run on another number of accelerators. Speed-ups are relative to the curve's smallest number. */
export interface ScalingPoint {
    /** Number of accelerators. */
    accelerator_count: number;
    /** Sequences of a step over all replicas. */
    global_batch_size: number;
    /** Time of a step. */
    step_seconds: QuantityEstimate;
    /** Tokens that the whole cluster trains on. */
    tokens_per_second: QuantityEstimate;
    /**
     * Speed-up over the smallest number of accelerators: of the same step, or of tokens per second if the
     * step grows.
     */
    speedup: number;
    /** Speed-up over the ratio of the numbers of accelerators. */
    efficiency: number;
    /** Device-hours of the same work over those on the smallest number of accelerators: 1 / efficiency. */
    work_cost_factor: number;
    /** Share of the step in which the devices wait for communication. */
    communication_share: number;
    /** True if a device holds its share. Absent if the capacity is unknown. */
    fits?: boolean;
    /**
     * Speed-up by the law of the curve with its serial share: Amdahl for strong scaling, Gustafson for
     * weak scaling.
     */
    law_speedup?: number;
    /** Speed-up by the empirical curve that is fitted to the points. */
    empirical_speedup?: number;
}

/** A change of an assumption, to see its effect on the choice. */
export interface SensitivityAssumption {
    /**
     * Assumption: rent or price of the devices of a supply; time of the work on an accelerator; price or
     * emissions of a kWh, if a figure is given or known; interruptions of spot devices.
     */
    kind: SensitivityAssumptionKind;
    /** Supply, accelerator or site that the assumption is about. Defaults to all of them. */
    of?: string;
    /** Factor that the assumption is multiplied by. */
    factor: number;
}

export type SensitivityAssumptionKind = 'price' | 'time' | 'electricity_price' | 'carbon_intensity' | 'interruption_rate';

/** Costs of one service category. */
export interface ServiceCategoryActuals {
    /** Category as FOCUS names it. Absent if bill and quote name none. */
    service_category?: string;
    /** Quoted cost of the time that is billed. */
    expected?: MoneyAmount;
    /** Billed cost. */
    billed?: MoneyAmount;
    /** Effective cost: the billed cost with prepayments spread over their use. */
    effective?: MoneyAmount;
}

/** Requests that meet all service levels. */
export interface ServiceLevelAttainment {
    /** Share of the requests that meet them. */
    share: QuantityEstimate;
    /** Rate of the requests that meet them, of the whole cluster. */
    requests_per_second: QuantityEstimate;
    /** True if at least the requested percentile of the requests meets them. */
    attained: boolean;
}

/** Limits of a request, at least one of them. Goodput counts the requests that meet all limits. */
export interface ServiceLevelsInput {
    /** Longest time from a request to its first token. */
    time_to_first_token_seconds?: number;
    /** Longest mean time from one token of a request to the next. */
    time_per_output_token_seconds?: number;
    /** Longest time from a request to its last token. */
    request_seconds?: number;
    /** Percentage of the requests that must meet the limits. */
    percentile?: number;
}

/**
 * The serving engine and its settings.
 *
 * Memory follows the rules of vllm, tensorrt-llm, sglang, llama.cpp and transformers. For another
 * engine, or none, weights, cache and the largest intermediates are summed.
 */
export interface ServingEngineInput {
    /** Name of the engine, in any case. */
    name: string;
    /**
     * Version, as the engine names it. "V0" or "V1" in it names the engine core of vLLM. Defaults to the
     * newest.
     */
    version?: string;
    /**
     * Most requests of one replica in one iteration. Defaults to the value of the engine by version and
     * device.
     */
    max_num_seqs?: number;
    /** Most tokens of one iteration. Defaults to the value of the engine by version and device, else 8192. */
    max_batched_tokens?: number;
    /** True if a decode step is launched as one graph, whose buffers take memory. */
    cuda_graphs?: boolean;
    /** True if kernels were compiled and selected before the first request of a run that begins cold. */
    warmed_up?: boolean;
    /** Tokens of one block of the KV cache. Defaults to the value of the engine, else 16. */
    block_tokens?: number;
    /**
     * Longest sequence that the engine is started for. If the cache is not paged (llama.cpp,
     * transformers), each request takes all of it. Defaults to the length of the model, or without a paged
     * cache to the length of the request.
     */
    max_model_len?: number;
    /**
     * True if a long prompt is computed in several iterations beside decoding. Defaults to the way of the
     * engine.
     */
    chunked_prefill?: boolean;
    /**
     * Release of the fused attention of prompts: `first` (FlashAttention), `second` (FlashAttention-2), or
     * `native` for kernels of the device's own instructions, such as FlashAttention-3 on Hopper. Defaults
     * to native, and to second for llama.cpp, transformers, vllm before 0.7 and sglang before 0.4.6.
     */
    attention_release?: FusedAttention;
    /**
     * Blocks of the model on the device. The others are on the host with their cache (llama.cpp). Defaults
     * to all.
     */
    device_layers?: number;
}

/** Serving the model. */
export interface ServingGoal {
    kind: 'serve';
    /** Longest request, its prompt and its answer together. Defaults to the context of the model. */
    context_tokens?: number;
    /** Tokens of a usual prompt. Defaults to 1024, or to what the context of the model has room for. */
    input_tokens?: number;
    /** Tokens that are generated for it. */
    output_tokens?: number;
    /** Usual requests at a time. */
    concurrency?: number;
    /**
     * Storage of the weights, in any case: a width such as `fp8` (`weight_precision`), or a format such as
     * `q4_k_m` or `awq` (`weight_format`). Defaults to the published one.
     */
    weights?: string;
}

/** Settings of a service to search. A setting that is left out takes the values usual in practice. */
export interface ServingSearch {
    /** Formats that the weights may be stored in. Defaults to the format of the workload. */
    weight_formats?: Array<WeightFormatName>;
    /**
     * Precisions that the weights may have, beside `weight_formats`. Defaults to the precision of the
     * workload.
     */
    weight_precisions?: Array<WeightPrecision>;
    /** Formats that the KV cache may be stored in. Defaults to the format of the workload. */
    kv_cache_precisions?: Array<CachePrecision>;
    /** Tensor-parallel degrees. Defaults to those that divide a node. */
    tensor?: Array<number>;
    /** Numbers of pipeline stages. Defaults to 1, or to whole nodes if no replica fits into one node. */
    pipeline?: Array<number>;
    /** Numbers of replicas that the experts are spread over. Defaults to those that divide the experts. */
    expert?: Array<number>;
    /** Devices that each expert is divided over. Defaults to 1 and the tensor-parallel degree. */
    expert_tensor?: Array<number>;
}

/** Result of ending every session, token and key of a person. */
export interface SessionRevocation {
    /** Id of the person's sessions in the audit, which does not name the person. */
    id: string;
    /** Time up to which sessions that began and tokens that were issued have ended. */
    ended_at: string;
    /** Keys that the person made or was handed, and keys that were made with them. */
    revoked_key_ids?: Array<string>;
}

/** Person whose sessions, tokens and keys to end. */
export interface SessionRevocationRequest {
    /** The `sub` of the person at the issuer, or the verified identity that the service knows them by. */
    subject_id: string;
    /**
     * Set to true to refuse the person until a request sends `false`. If left out, the present state
     * stays.
     */
    disabled?: boolean;
}

/** Part of the training state that is sharded over the data-parallel devices. */
export type Sharding = 'none' | 'zero_1' | 'zero_2' | 'zero_3' | 'hybrid';

export type SimpleLayer = AttentionLayer | LatentAttentionLayer | CompressedAttentionLayer | LinearAttentionLayer | StateSpaceLayer | FeedForwardLayer | MixtureOfExpertsLayer | NormalizationLayer | ActivationLayer | LinearLayer | ConvolutionLayer | ResamplingLayer | LearnedVectorsLayer | EmbeddingTableLayer | InteractionLayer | ModulationLayer;

/** A simulation, event by event. Give `duration_seconds` or `requests`. */
export interface SimulatedSolver {
    kind: 'simulated';
    /** Seed of the simulation. The same seed gives the same answer. */
    seed?: number;
    /** Time that is simulated, with at most 200,000 requests. */
    duration_seconds?: number;
    /** Requests of one replica that are simulated. Defaults to 2,000. */
    requests?: number;
}

/** A site of the catalog. */
export interface Site {
    id: string;
    name: string;
    /** Power usage effectiveness: energy of the facility over energy of the IT equipment. */
    pue: number;
    /** Grid that the site draws from. */
    grid_id?: string;
    /** Tariff of the catalog that the site's electricity is billed by. */
    tariff_id?: string;
    /** IANA name of the site's time zone. */
    time_zone?: string;
    sources: Array<Citation>;
    /** Number of this version of the row; the ETag of the resource. */
    version: number;
    /** Catalog revision of this version. */
    revision: number;
    /** `shipped` if the row ships with the service, `tenant` if it is a row of the tenant. */
    origin: RowOrigin;
    created_at: string;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Water that evaporates on the site for each kWh of IT energy. */
    water_usage_effectiveness_liters_per_kwh?: number;
}

/** A building that could house the run. */
export interface SiteChoice {
    /** Name of the building in the answer. */
    name: string;
    /** The building. */
    site: RunSiteInput;
}

/** The cheapest, the cleanest and the least water-intensive site of a run. */
export interface SiteComparisonEstimate {
    /** Figures by building, in the order of the request. */
    sites: Array<SiteComparisonFigures>;
    /** Name of the site with the least cost. Absent unless all costs are known in one currency. */
    cheapest?: string;
    /** Name of the site with the least emissions. Absent unless all are known. */
    cleanest?: string;
    /** Name of the site with the least water. Absent unless all are known. */
    least_water?: string;
    /** Versions and sources that reproduce the answer. */
    evidence: EstimateEvidence;
    /** Comparisons that are absent, and why. */
    gaps: Array<EstimateGap>;
}

/** The run in one building. */
export interface SiteComparisonFigures {
    /** Name of the building in the request. */
    name: string;
    /** Energy at the meter of the building. */
    facility_kwh?: QuantityEstimate;
    /** Power at the meter of the building. */
    peak_kw?: QuantityEstimate;
    /** Cost of the electricity, in the currency of its price or tariff. */
    electricity?: MoneyQuantity;
    /** Cost of the electricity in the currency of the request. */
    converted?: MoneyQuantity;
    /** Location-based emissions. */
    location_based_kg_co2e?: QuantityEstimate;
    /** Water that evaporates on the site and in the power plants of the grid. */
    water_liters?: QuantityEstimate;
    /** Remarks about the question for this building. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
}

/** Request for the cheapest, the cleanest and the least water-intensive site of a run. */
export interface SiteComparisonRequest {
    /** Model that is trained or served. */
    model: ModelReference;
    /** Work of the model. */
    workload: WorkloadInput;
    /** Cluster that the workload runs on. */
    cluster: ClusterInput;
    /** Buildings to compare. They replace `site`. */
    sites: Array<SiteChoice>;
    /** Terms and price of renting the devices. */
    rental?: Rental;
    /** Price of buying the devices. */
    purchase?: Purchase;
    /** Start of the run. */
    starts_at?: string;
    /** Layout of the workload over the devices. Defaults to a sensible layout, which the answer states. */
    parallelism?: ParallelismInput;
    /** Source of the efficiency of the devices. Defaults to measured runs. */
    efficiency?: EfficiencyInput;
    /** Price of storing data and checkpoints. */
    storage?: StorageInput;
    /** Price of data that leave the provider. */
    egress?: EgressInput;
    /**
     * Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
     * model that are at most a year older than the newest of the catalog.
     */
    token_price_ids?: Array<string>;
    /**
     * Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
     * prices, which then must all have the same one.
     */
    currency_code?: string;
    /** Building that houses the run. Without it electricity and carbon are gaps. */
    site?: RunSiteInput;
    /** Power of the run over time. */
    load_profile?: RunLoadInput;
    /** Measured energy of the run, in place of the estimate. */
    measured?: MeasuredEnergyInput;
    /** Emissions of making the machines. */
    embodied?: EmbodiedEmissionsInput;
}

/** A page of sites. */
export interface SitePage {
    items: Array<Site>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface SitePatch {
    name?: string;
    /** Power usage effectiveness: energy of the facility over energy of the IT equipment. */
    pue?: number;
    /** Grid that the site draws from. */
    grid_id?: string | null;
    /** Tariff of the catalog that the site's electricity is billed by. */
    tariff_id?: string | null;
    /** IANA name of the site's time zone. */
    time_zone?: string | null;
    sources?: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string | null;
    /** Water that evaporates on the site for each kWh of IT energy. */
    water_usage_effectiveness_liters_per_kwh?: number | null;
}

/** A building or a fleet of buildings. */
export interface SiteRequest {
    id: string;
    name: string;
    /** Power usage effectiveness: energy of the facility over energy of the IT equipment. */
    pue: number;
    /** Grid that the site draws from. */
    grid_id?: string;
    /** Tariff of the catalog that the site's electricity is billed by. */
    tariff_id?: string;
    /** IANA name of the site's time zone. */
    time_zone?: string;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Water that evaporates on the site for each kWh of IT energy. */
    water_usage_effectiveness_liters_per_kwh?: number;
}

/** Location-based and embodied emissions over a functional unit (ISO/IEC 21031). */
export interface SoftwareCarbonIntensity {
    /** Functional unit. Tokens are those trained on, or those generated. */
    per: SoftwareCarbonIntensityPer;
    /** Emissions of one unit. */
    kg_co2e: QuantityEstimate;
}

export type SoftwareCarbonIntensityPer = 'run' | 'million_tokens' | 'request';

/** A framework or an engine by name and version. */
export interface SoftwareVersion {
    name: string;
    /** Version, as the software names it. */
    version?: string;
}

export type SolverInput = AnalyticSolver | SimulatedSolver;

/** An accelerator given by its figures. */
export interface SpecifiedAccelerator {
    source: 'specification';
    /** Figures of the accelerator. */
    specification: AcceleratorSpecification;
}

/** A link given by its figures. */
export interface SpecifiedLink {
    source: 'specification';
    /** Figures of the link. */
    specification: LinkSpecification;
}

/** A tariff that is not in the catalog. */
export interface SpecifiedTariff {
    source: 'terms';
    /** Terms of the tariff. */
    terms: TariffTerms;
}

/** Speculative decoding: tokens are proposed, then checked in one pass. Give `model` or `method`. */
export interface SpeculativeDecodingInput {
    /** A smaller model on the same devices that proposes tokens. */
    model?: ModelReference;
    /** Method that proposes tokens: the model's own multi-token prediction, or n-grams of the text. */
    method?: SpeculativeDecodingInputMethod;
    /** Tokens that are proposed at a time. Defaults to 5, for mtp to 1. */
    tokens?: number;
    /** Probability that a proposed token is accepted if those before it are. Defaults to published rates. */
    acceptance_rate?: number;
}

export type SpeculativeDecodingInputMethod = 'mtp' | 'ngram';

/** Cost of interruptions of spot devices. */
export interface SpotInterruptionEstimate {
    /** Mean time between interruptions of all instances together. Absent if none is expected. */
    mean_time_between_interruptions_seconds?: number;
    /** Number of them over the run. */
    expected_interruptions: number;
    /** Device-hours of lost work and restarts, beyond those of the run. */
    extra_device_hours: QuantityEstimate;
    /**
     * Duration of the run with interruptions. A served model keeps its horizon, and interrupted instances
     * are replaced.
     */
    duration_seconds: QuantityEstimate;
}

/** Terms of devices that the provider may reclaim. Interrupting one instance stops a training run. */
export interface SpotTerms {
    /** Mean number of interruptions of one instance in an hour. */
    interruptions_per_hour: number;
    /**
     * Time from an interruption until training starts to load its checkpoint, or until another instance
     * serves. Defaults to the workload's `reliability`, and without it to the value of published runs.
     */
    restart_seconds?: number;
}

/** The run with one start. Figures are those at the middle of the intervals of power and duration. */
export interface StartFigures {
    /** Start of the run. */
    starts_at: string;
    /** Cost of the electricity. Absent without a tariff or price. */
    electricity?: MoneyAmount;
    /** Emissions. Absent if the emissions of the grid over time are unknown. */
    location_based_kg_co2e?: number;
}

/** The cheapest and the cleanest start of a run. */
export interface StartShiftEstimate {
    /** Versions and sources that reproduce the answer. */
    evidence: EstimateEvidence;
    /** Remarks about the question. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
    /** Number of starts that were compared: all of the window. */
    starts_compared: number;
    /** Time of the run. */
    duration_seconds: QuantityEstimate;
    /** Energy at the meter of the building, the same for every start. */
    facility_kwh: QuantityEstimate;
    /** First start of the window. */
    first: StartFigures;
    /** Start with the least cost; among equals the cleanest, then the earliest. */
    cheapest?: StartFigures;
    /** Start with the least emissions; among equals the cheapest, then the earliest. */
    cleanest?: StartFigures;
    /** Starts that no other improves in both cost and emissions, from the cheapest to the cleanest. */
    best: Array<StartFigures>;
    /** Cost of the most expensive start. */
    highest_electricity?: MoneyAmount;
    /** Emissions of the start with the most emissions. */
    highest_location_based_kg_co2e?: number;
}

/** Request for the cheapest and the cleanest start of a run. */
export interface StartShiftEstimateRequest {
    /** Model that is trained or served. */
    model: ModelReference;
    /** Work of the model. */
    workload: WorkloadInput;
    /** Cluster that the workload runs on. */
    cluster: ClusterInput;
    /** Building that houses the run. Without it electricity and carbon are gaps. */
    site?: RunSiteInput;
    /** Possible starts of the run. */
    window: StartWindow;
    /** Terms and price of renting the devices. */
    rental?: Rental;
    /** Layout of the workload over the devices. Defaults to a sensible layout, which the answer states. */
    parallelism?: ParallelismInput;
    /** Source of the efficiency of the devices. Defaults to measured runs. */
    efficiency?: EfficiencyInput;
    /** Price of buying the devices. */
    purchase?: Purchase;
    /** Price of storing data and checkpoints. */
    storage?: StorageInput;
    /** Price of data that leave the provider. */
    egress?: EgressInput;
    /**
     * Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
     * model that are at most a year older than the newest of the catalog.
     */
    token_price_ids?: Array<string>;
    /** Start of the run. */
    starts_at?: string;
    /**
     * Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
     * prices, which then must all have the same one.
     */
    currency_code?: string;
    /** Power of the run over time. */
    load_profile?: RunLoadInput;
    /** Measured energy of the run, in place of the estimate. */
    measured?: MeasuredEnergyInput;
    /** Emissions of making the machines. */
    embodied?: EmbodiedEmissionsInput;
}

/** Possible starts of the run. */
export interface StartWindow {
    /** First possible start. */
    earliest_start_at: string;
    /** Last possible start. */
    latest_start_at: string;
    /** Minutes from one start to the next: a multiple of the interval of the load profile. */
    step_minutes?: number;
}

/** Selective state space: Mamba 1 (`time_step_rank`), Mamba 2 (`heads`), RG-LRU (`gate_blocks`). */
export interface StateSpaceLayer {
    kind: 'state_space';
    /** Width of the residual stream. */
    hidden_size: number;
    /** Width inside the layer. */
    inner_size: number;
    /** Width of the state of each channel; 1 in RG-LRU. */
    state_size: number;
    /** Number of tokens that the short convolution sees. */
    convolution_width: number;
    /** Width of the compressed time step; only Mamba 1 has it. */
    time_step_rank?: number;
    /** Number of heads; only Mamba 2 has them. */
    heads?: number;
    /** Number of diagonal blocks in each of the two gates; only RG-LRU has them (De et al. 2024). */
    gate_blocks?: number;
    /** Number of groups of heads that share the input and output of their state. */
    groups?: number;
    /** True if Mamba 1 normalizes step, input and output of its state. */
    state_norms?: boolean;
    /** True if Mamba 2 normalizes the output of its gate. */
    gated_norm?: boolean;
    /** True if a learned vector is added to the convolution. */
    convolution_bias?: boolean;
    /** True if a learned vector is added to the projections. */
    projection_bias?: boolean;
    /** Number of times that the layer stands in a row. */
    count?: number;
}

/** Stored data and checkpoints, charged by gigabyte (1e9 bytes) and month (730.5 hours). */
export interface StorageInput {
    /** Price of storing a gigabyte for a month. */
    price_per_gigabyte_month: MoneyInput;
    /** Size of the stored data. Defaults to the dataset of the workload's data pipeline. */
    dataset_bytes?: number;
    /** Checkpoints that are stored at a time. Each has the size that the workload implies. */
    checkpoints_kept?: number;
    /** Size of a checkpoint, if it is known. */
    checkpoint_bytes?: number;
    /** Time for which they are stored. Defaults to the duration of the run. */
    kept_seconds?: number;
}

/** A file read into device memory past the page cache, block after block. */
export interface StorageToDeviceWork {
    kind: 'storage_to_device';
    /** Means of the reads: cuFile, which the record says the mode of, or pinned host memory and copies. */
    method: StorageToDeviceWorkMethod;
    /** Size of the file. */
    file_bytes: number;
    /** Size of one read. */
    block_bytes: number;
}

export type StorageToDeviceWorkMethod = 'cufile' | 'host_memory';

/** A file written and flushed to the device, or read back past the page cache where that is possible. */
export interface StorageWork {
    kind: 'storage';
    /** Direction: the file is read or written. */
    direction: StorageWorkDirection;
    /** Size of the file. */
    file_bytes: number;
    /** Size of one call. */
    block_bytes: number;
}

export type StorageWorkDirection = 'read' | 'write';

/** One repeat of one benchmark, with the record as the node sent it. */
export interface StoredBenchmarkResult {
    id: string;
    /** Digest of the bytes that the node sent. */
    content_sha256: string;
    /** Benchmark run that the result names. */
    run_id: string;
    /** Attempt of the run. */
    attempt: number;
    /** Fencing token of the lease that the result names. */
    fencing_token: number;
    /** Name in the suite. */
    benchmark: string;
    /** Number of the repeat, counted from 1. */
    repeat: number;
    /**
     * Standing of the attempt: `current` if it counts for its run, `late` if its lease had ended when the
     * result came or another attempt counts, `unknown` if it was not granted.
     */
    lease: ResultLeaseStanding;
    /** Result that came first for the same repeat of the same attempt; this one does not count. */
    conflicts_with?: string;
    /** True if figures are computed from the result. */
    is_counted: boolean;
    /** Node that measured it. */
    node_id: string;
    /** Suite of the benchmark. */
    suite_id: string;
    /** Version of the suite. */
    suite_version: number;
    /** Kind of device that was measured. */
    device: DeviceKind;
    /** Name of the hardware by its driver. */
    hardware?: string;
    /** Digest of the numbers that identify the hardware: results with equal digests can be compared. */
    hardware_sha256?: string;
    /** Digest of the work: results of equal work can be compared. */
    work_sha256: string;
    /** Quantity and unit of the figure. */
    metric: BenchmarkMetric;
    /** Direction in which a figure is better. */
    direction: BetterDirection;
    /** Status of the measurement. */
    status: BenchmarkResultStatus;
    /** Reason that there is no measurement. */
    reason?: string;
    /** Figure that the service computes from the raw samples. */
    figure?: number;
    /** Statistics that the service computes from the raw samples. */
    summary?: SampleSummary;
    /** Conditions of the measurement. */
    conditions: MeasurementConditions;
    /** Start by the clock of the node. */
    started_at: string;
    /** End by the clock of the node. */
    finished_at: string;
    /** Time of receipt by the clock of the service. */
    received_at: string;
    /** Validation of the result; absent until it is done, and where nothing was measured. */
    validation?: BenchmarkResultValidation;
    /** Record with the raw samples. */
    record: BenchmarkResultReport;
}

export type StoredPlanGoal = 'cheapest' | 'fastest' | 'cleanest' | 'fewest_devices' | 'pareto' | 'earliest';

/** Memory bandwidth of one access pattern over arrays far larger than the cache. */
export interface StreamWork {
    kind: 'stream';
    /** Access to the arrays. */
    pattern: HostStreamWorkPattern;
    /** Size of each array. */
    array_bytes: number;
}

/** Reads of 4 bytes that lie `stride_bytes` apart: the share of the bandwidth that a gather gets. */
export interface StridedReadWork {
    kind: 'strided_read';
    /** Distance between two reads. */
    stride_bytes: number;
    /** Size of the array. */
    array_bytes: number;
}

/** Energy and emissions of the same hours or run. */
export interface SummaryBill {
    /** Energy of accelerators and hosts. */
    it_kwh?: QuantityEstimate;
    /** Energy at the meter of the building. */
    facility_kwh?: QuantityEstimate;
    /** Cost of the electricity. */
    electricity_total?: MoneyQuantity;
    /** Emissions of the grid. */
    location_based_kg_co2e?: QuantityEstimate;
}

/** Fit, users, speed, price and bill of a model on hardware. */
export interface SummaryEstimate {
    /** Model of the catalog that the name stands for. */
    model_id: string;
    /** Accelerator of the catalog that the name stands for. */
    accelerator_id: string;
    /** Accelerators of the hardware. */
    accelerator_count: number;
    /** Memory of the usual request, or of a training step. */
    fit: SummaryFit;
    /** Requests of the full context at a time. Present for a served model. */
    users?: SummaryUsers;
    /** Speed of the usual requests, or of training. */
    speed: SummarySpeed;
    /** Price of the hours of a served model, or of a training run. */
    price: SummaryPrice;
    /** Energy and emissions of the same hours or run. */
    bill: SummaryBill;
    /** Full requests that give the same figures. */
    requests: SummaryEstimateRequests;
    /** Members of the full requests that are left open, as they are filled. Pointers begin at `requests`. */
    defaults: Array<EstimateDefault>;
    /** Remarks about the full requests. Pointers begin at `requests`. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
    /** Versions and sources that reproduce the answer. */
    evidence: EstimateEvidence;
}

/** Bodies of `POST /v1/estimates/...` that return the same figures. */
export interface SummaryEstimateRequests {
    /** Body of `fit`, for `memory`. */
    memory: MemoryEstimateRequest;
    /** Body of `users`, for `memory`. Present for a served model that generates tokens. */
    full_context?: MemoryEstimateRequest;
    /** Body of `speed`, for `throughput`. */
    throughput: ThroughputEstimateRequest;
    /** Body of `price`, for `cost`. */
    cost: CostEstimateRequest;
    /** Body of `bill`, for `utility-bill`. */
    utility_bill: UtilityBillRequest;
}

/** Memory of the usual request, or of a training step, on the fullest device. */
export interface SummaryFit {
    /** True if the total is at most the usable bytes. */
    fits?: boolean;
    /** Probability that it fits, from the intervals of total and capacity. */
    fit_probability?: number;
    /** Memory of the fullest device. */
    total_bytes?: QuantityEstimate;
    /** Memory of the device that the workload may use. */
    usable_bytes?: number;
    /**
     * Advice of the memory estimate, and the least doubling of the accelerators with which it fits.
     * Present if it does not fit.
     */
    advice?: Array<EstimateAdvice>;
}

export type SummaryGoal = ServingGoal | TrainingGoal;

/** Price of the hours of a served model, or of a training run. */
export interface SummaryPrice {
    /** Sum of the charges. */
    total?: MoneyQuantity;
    /** Total over the tokens that are trained on or generated. */
    cost_per_million_tokens?: MoneyQuantity;
}

/** Request for fit, users, speed, price and bill of a model on hardware. */
export interface SummaryRequest {
    /** Model of the catalog, by any of its names. */
    model: string;
    /**
     * Accelerators: `<count>x<name>` with any name of an accelerator, or of an instance of a cloud or a
     * slice of TPUs, whose accelerators are counted. Without a count there is one.
     */
    hardware: string;
    /** Purpose of the hardware. Defaults to serving. */
    goal?: SummaryGoal;
    /** Hours that a served model runs for its price and its bill. Defaults to a month. */
    hours?: number;
    /**
     * Terms and price of renting the devices. Defaults to the cheapest on-demand offer of the catalog, of
     * those in instances that hold the accelerators that work together, unless all of these have more
     * accelerators than the question.
     */
    rental?: Rental;
    /** Price of buying the devices. */
    purchase?: Purchase;
    /** Building that houses the run. Without it the bill has no price of electricity and no emissions. */
    site?: RunSiteInput;
    /** Start of the run, for a tariff whose prices depend on the time. */
    starts_at?: string;
}

/** Speed of the usual requests, or of training. Members of the other kind are absent. */
export interface SummarySpeed {
    /** Time from a request to its first token. */
    time_to_first_token_seconds?: QuantityEstimate;
    /** Time between tokens of an answer. */
    time_per_output_token_seconds?: QuantityEstimate;
    /** Tokens that all devices generate. */
    output_tokens_per_second?: QuantityEstimate;
    /** Requests that all devices answer. */
    requests_per_second?: QuantityEstimate;
    /** Time of one optimizer step. */
    step_seconds?: QuantityEstimate;
    /** Tokens that the whole cluster trains on. */
    tokens_per_second?: QuantityEstimate;
    /** Share of the peak rate that the model's own operations reach. */
    model_flops_utilization?: QuantityEstimate;
    /** Time of the whole run. */
    duration_seconds?: QuantityEstimate;
}

/** Requests of the full context that the hardware holds at a time. */
export interface SummaryUsers {
    /** Tokens of such a request. */
    context_tokens: number;
    /** Most of them at a time, over all devices. */
    max_concurrency?: number;
    /** Tokens of the longest request that fits, where none of the full context does. */
    max_sequence_length?: number;
}

/** A tariff of the catalog. */
export interface Tariff {
    id: string;
    name: string;
    /** Company that charges by the tariff. */
    utility?: string;
    /** Currency of every price (ISO 4217). */
    currency_code: string;
    /** IANA name of the local clock, such as America/Los_Angeles. */
    time_zone: string;
    /** Charges by the day from which they are in force, ascending. */
    revisions: Array<TariffRevision>;
    sources: Array<Citation>;
    /** Number of this version of the row; the ETag of the resource. */
    version: number;
    /** Catalog revision of this version. */
    revision: number;
    /** `shipped` if the row ships with the service, `tenant` if it is a row of the tenant. */
    origin: RowOrigin;
    created_at: string;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Local days that windows treat as holidays. */
    holidays?: Array<string>;
    /** Share that raises kWh and kW of a load that is metered behind the customer's transformer. */
    secondary_loss_factor?: number;
    /** Annual kWh for each kW of the annual peak below which the tariff does not apply. */
    hours_of_use_minimum?: number;
    /** Terms that no charge can express: shown as warnings. */
    notes?: Array<string>;
}

/** The bill of a load. Each line is rounded once, half to even, to the minor unit of the currency. */
export interface TariffBill {
    /** Sum of the lines. */
    total: MoneyQuantity;
    /** Energy of all billing periods at the meter. */
    energy_kwh: QuantityEstimate;
    /** Highest demand of all billing periods. */
    peak_kw: QuantityEstimate;
    /** Charges by billing period, in the order of the tariff. */
    lines: Array<ElectricityBillLine>;
    /** Totals by billing period. */
    periods: Array<TariffBillPeriodTotal>;
    /** Versions and sources that reproduce the answer. */
    evidence: EstimateEvidence;
    /** Remarks about the question and the tariff. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
}

/** Totals of a billing period. */
export interface TariffBillPeriodTotal {
    /** Billing period of the totals. */
    billing_period: BillingPeriod;
    /** Energy that is billed. */
    energy_kwh: number;
    /** Highest demand of the meter, including the baseline load if there is one. */
    peak_kw: number;
    /** Sum of the charges of the period. */
    total: MoneyAmount;
    /** True if the billing period lies after the run. */
    after_run?: boolean;
    /** Billed demand by demand charge. */
    billing_demand: Array<BilledDemand>;
}

/** Request for the charges of a tariff for a load. */
export interface TariffBillRequest {
    /** Tariff that the load is billed by. */
    tariff: TariffReference;
    /** Load at the meter. */
    load: TariffLoad;
    /** Ratio of active to apparent power at the meter. */
    power_factor?: number;
    /**
     * Side of the transformer that the meter is on. A tariff may add the loss of the transformer to the
     * reading of a secondary meter.
     */
    metering_side?: ElectricityPriceInputMeteringSide;
    /**
     * First local days of consecutive billing periods, and of the period after the last. Defaults to the
     * calendar months of the load.
     */
    billing_period_starts?: Array<string>;
    /** Demand of months before the load, for charges that look back. */
    monthly_peaks?: Array<MonthlyPeak>;
    /**
     * Set to true to take the peaks of months before the load that are not given from the end of the same
     * year.
     */
    wraps_year?: boolean;
}

export type TariffCharge = FixedCharge | EnergyCharge | RealTimeCharge | DemandCharge | OverrunCharge | CoincidentPeakCharge | ReactiveCharge | MinimumCharge | PercentageCharge;

export type TariffImportRequest = UrdbTariffImportRequest | MarketTariffImportRequest;

export type TariffLoad = ConstantDemand | DemandSeries | DemandRule | AnnualDemand | DemandDeterminants;

/** A page of tariffs. */
export interface TariffPage {
    items: Array<Tariff>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface TariffPatch {
    name?: string;
    /** Company that charges by the tariff. */
    utility?: string | null;
    /** Currency of every price (ISO 4217). */
    currency_code?: string;
    /** IANA name of the local clock, such as America/Los_Angeles. */
    time_zone?: string;
    /** Charges by the day from which they are in force, ascending. */
    revisions?: Array<TariffRevision>;
    sources?: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string | null;
    /** Local days that windows treat as holidays. */
    holidays?: Array<string>;
    /** Share that raises kWh and kW of a load that is metered behind the customer's transformer. */
    secondary_loss_factor?: number;
    /** Annual kWh for each kW of the annual peak below which the tariff does not apply. */
    hours_of_use_minimum?: number;
    /** Terms that no charge can express: shown as warnings. */
    notes?: Array<string>;
}

/** The hours of a charge that share a ladder of tiers. The periods of one charge do not overlap. */
export interface TariffPricePeriod {
    /** Name that no other period of the charge has. */
    name: string;
    /** Prices, with ascending limits. */
    tiers: Array<TariffPriceTier>;
    /** Times at which it applies. Defaults to all times. */
    windows?: Array<TariffWindow>;
}

/** A price up to a limit; tiers are marginal unless a charge says otherwise. */
export interface TariffPriceTier {
    /** Decimal number as text; credits are below zero. */
    price: string;
    /** Cumulative upper limit within the billing period; absent without end. */
    limit?: number;
    /** Unit of the limit; hours of use are kWh for each kW of billing demand. */
    unit?: TariffTierUnit;
}

export type TariffReference = CatalogTariff | SpecifiedTariff;

/** The terms by which a utility charges electricity. */
export interface TariffRequest {
    id: string;
    name: string;
    /** Company that charges by the tariff. */
    utility?: string;
    /** Currency of every price (ISO 4217). */
    currency_code: string;
    /** IANA name of the local clock, such as America/Los_Angeles. */
    time_zone: string;
    /** Charges by the day from which they are in force, ascending. */
    revisions: Array<TariffRevision>;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Local days that windows treat as holidays. */
    holidays?: Array<string>;
    /** Share that raises kWh and kW of a load that is metered behind the customer's transformer. */
    secondary_loss_factor?: number;
    /** Annual kWh for each kW of the annual peak below which the tariff does not apply. */
    hours_of_use_minimum?: number;
    /** Terms that no charge can express: shown as warnings. */
    notes?: Array<string>;
}

/** The charges in force from a local day on, until the next revision. */
export interface TariffRevision {
    /** First local day. */
    effective_from: string;
    /** Charges in the order of the bill. */
    charges: Array<TariffCharge>;
}

/** The terms of a tariff: revisions in order of time, on one local clock. */
export interface TariffTerms {
    /** Currency of every price (ISO 4217). */
    currency_code: string;
    /** IANA name of the local clock, such as America/Los_Angeles. */
    time_zone: string;
    /** Charges by the day from which they are in force, ascending. */
    revisions: Array<TariffRevision>;
    /** Local days that windows treat as holidays. */
    holidays?: Array<string>;
    /** Share that raises kWh and kW of a load that is metered behind the customer's transformer. */
    secondary_loss_factor?: number;
    /** Annual kWh for each kW of the annual peak below which the tariff does not apply. */
    hours_of_use_minimum?: number;
    /** Terms that no charge can express: shown as warnings. */
    notes?: Array<string>;
}

export type TariffTierUnit = 'kwh' | 'kwh_per_kw' | 'kwh_per_day' | 'kwh_per_kw_per_day' | 'kw';

/** Local times: an instant is inside when its month, its day and its time all match. */
export interface TariffWindow {
    /** Calendar months; all if absent. */
    months?: Array<number>;
    /** 1 for Monday to 7; all if absent. */
    weekdays?: Array<number>;
    /** Local time at which it begins. */
    from_time?: string;
    /** Local time at which it ends. A time that is not above `from_time` passes midnight into the next day. */
    to_time?: string;
    /** Treatment of a holiday: a day like any other, always inside, or never. */
    holidays?: HolidayTreatment;
}

/** A tenant. */
export interface Tenant {
    id: string;
    name: string;
    /** Number of changes, the creation included. */
    version: number;
    created_at: string;
    /** Time from which the credentials of the tenant are refused. */
    disabled_at?: string;
}

/** A page of tenants. */
export interface TenantPage {
    /** Tenants in order of id. */
    items: Array<Tenant>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** A tenant to create. */
export interface TenantRequest {
    id: string;
    name: string;
}

/** A model that encodes the prompt for the denoiser. It runs once a request. */
export interface TextEncoderInput {
    /** The encoder, such as a CLIP text model or T5. */
    model: ModelReference;
    /** Tokens that the encoder pads the prompt to. Defaults to 77, for T5 to 512. */
    tokens?: number;
}

export type TextOrNumber = string | number;

/** Time in the window at a lowered clock, by the counters of the driver. */
export interface ThrottleSeconds {
    /** Time at a lower clock for the power limit. */
    sw_power_cap?: number;
    /** Time at a lower clock for the temperature. */
    sw_thermal?: number;
    /** Time at a lower clock for the temperature, by the hardware. */
    hw_thermal?: number;
    /** Time at a lower clock for the power supply of the host. */
    hw_power_brake?: number;
    /** Time at a lower clock for other devices of a group. */
    sync_boost?: number;
}

/** Speed of a training run or of a served model, and its limits. */
export interface ThroughputEstimate {
    /** The layout that the figures hold for. */
    parallelism: ParallelismDegrees;
    /** Versions and sources that reproduce the answer. */
    evidence: EstimateEvidence;
    /** Members that the question leaves open and that shape the answer, as they are filled. */
    defaults: Array<EstimateDefault>;
    /** Remarks about the question. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
    /** Floating-point operations of the whole run. */
    total_flops?: number;
    /** Dense rate of the number format that the multiplications use. */
    peak_flops_per_second_per_device: number;
    /** Time of the whole run. */
    duration_seconds?: QuantityEstimate;
    /** Time of one optimizer step. */
    step_seconds?: QuantityEstimate;
    /** Tokens that the whole cluster trains on. */
    tokens_per_second?: QuantityEstimate;
    /** Tokens that each device trains on. */
    tokens_per_second_per_device?: QuantityEstimate;
    /** Sequences that the whole cluster trains on. */
    samples_per_second?: QuantityEstimate;
    /** Share of the peak rate that the model's own operations reach. */
    model_flops_utilization?: QuantityEstimate;
    /** Share of the peak rate that the model's own operations and those of recomputation reach. */
    hardware_flops_utilization?: QuantityEstimate;
    /** Operations that each device executes, recomputation included and attention counted in full. */
    hardware_flops_per_second_per_device?: QuantityEstimate;
    /** The model's own operations, attention counted in full whatever its mask hides. */
    model_flops_per_second_per_device?: QuantityEstimate;
    /** The model's own operations without the scores that a causal mask hides. */
    unmasked_flops_per_second_per_device?: QuantityEstimate;
    /** Data pipeline. Present if the request gives one. */
    data_pipeline?: DataPipelineEstimate;
    /**
     * Effect of gradient compression. Present if the request gives it and replicas exchange whole
     * gradients.
     */
    gradient_compression?: GradientCompressionEstimate;
    /** Checkpoints. Present if the request gives checkpointing. */
    checkpoint?: CheckpointEstimate;
    /** Failures. Present if the request gives reliability. */
    reliability?: ReliabilityEstimate;
    /** Share of the duration that is progress. Present if the request gives checkpointing or reliability. */
    goodput?: QuantityEstimate;
    /** Scaling. Present if the request gives it. */
    scaling?: ScalingEstimate;
    /** Choice of one device, one node or the cluster. Present if the request gives scaling. */
    scaling_decision?: ScalingDecision;
    /** Generation of the sequences of ppo and grpo. */
    rollout?: RolloutEstimate;
    /** Hints for the recipe at this batch size. */
    hints?: Array<RecipeHint>;
    /** Time from a request to its first token; the mean over requests. */
    time_to_first_token_seconds?: QuantityEstimate;
    /** Percentiles of the time to first token over requests. */
    time_to_first_token_seconds_percentiles?: LatencyPercentiles;
    /** Time from one token of a request to the next; the mean. */
    time_per_output_token_seconds?: QuantityEstimate;
    /** Percentiles over requests of the mean time per output token of each request. */
    time_per_output_token_seconds_percentiles?: LatencyPercentiles;
    /** Time from a request to its last token; the mean. */
    request_seconds?: QuantityEstimate;
    /** Percentiles of the time of a request. */
    request_seconds_percentiles?: LatencyPercentiles;
    /** Requests that the whole cluster completes. */
    requests_per_second?: QuantityEstimate;
    /** Tokens that the whole cluster generates. */
    output_tokens_per_second?: QuantityEstimate;
    /** Tokens that each device generates. */
    output_tokens_per_second_per_device?: QuantityEstimate;
    /** Tokens of prompts and answers together that the whole cluster processes. */
    total_tokens_per_second?: QuantityEstimate;
    /** Share of the time in which a replica computes. */
    utilization?: QuantityEstimate;
    /** Mean number of requests that decode at a time on one replica. */
    mean_batch?: QuantityEstimate;
    /** Mean number of requests that wait for a place on one replica. */
    mean_queue?: QuantityEstimate;
    /** Number of times that a request loses its place in the cache and is recomputed. */
    preemptions_per_request?: QuantityEstimate;
    /** Requests that meet the service levels. Present if these are given. */
    service_level_goodput?: ServiceLevelAttainment;
    /** Load of the cluster relative to the load that it can serve. */
    saturation?: LoadSaturation;
    /** Mean power of one device. */
    power_per_device_watts?: QuantityEstimate;
    /** Energy of all devices over the tokens that they generate. */
    energy_per_output_token_joules?: QuantityEstimate;
    /** Time of a step or of a request by phase. */
    breakdown: Array<PhaseTime>;
    /** Figures of forward passes. Present if each request is a forward pass. */
    passes?: ForwardPassEstimate;
    /** Figures of disaggregated serving. Present if prefill and decode have replicas of their own. */
    disaggregation?: DisaggregationEstimate;
    /**
     * Layout that the chosen one is compared with. Present if the service chose the layout by time and a
     * naive one fits.
     */
    naive_layout?: NaiveLayout;
    /** Limit of the speed. */
    bottleneck?: Bottleneck;
    /** Operators of one block of a training run, on one device and one micro-batch. */
    operators?: Array<OperatorEstimate>;
}

/** Several requests for throughput, answered in order. */
export interface ThroughputEstimateBatchRequest {
    /** Requests. If one of them has no answer, the batch fails. */
    requests: Array<ThroughputEstimateRequest>;
}

/** Answers in the order of the questions. */
export interface ThroughputEstimateList {
    results: Array<ThroughputEstimate>;
}

/** Request for the speed of a workload. */
export interface ThroughputEstimateRequest {
    /** Model that is trained or served. */
    model: ModelReference;
    /** Work of the model. */
    workload: WorkloadInput;
    /** Cluster that the workload runs on. */
    cluster: ClusterInput;
    /** Layout of the workload over the devices. Defaults to a sensible layout, which the answer states. */
    parallelism?: ParallelismInput;
    /** Source of the efficiency of the devices. Defaults to measured runs. */
    efficiency?: EfficiencyInput;
    /** Other numbers of accelerators to answer. If left out, only the requested run is answered. */
    scaling?: ScalingInput;
    /** Solver of a served model. Defaults to formulas. */
    solver?: SolverInput;
    /**
     * Adds advice, and the operators under the roofline. Each advice is an estimate of its own and takes
     * most of the time: set to false for many requests.
     */
    explain?: boolean;
}

/** Best configurations of a served model. */
export interface ThroughputFrontier {
    /**
     * Point with the most tokens per second and device within the service levels. Present if these are
     * given and can be met.
     */
    best?: FrontierPoint;
    /** Pareto set, or an even selection of it, by descending tokens per second and device. */
    points: Array<FrontierPoint>;
    /** Configurations of the search by outcome. */
    configurations: FrontierConfigurationCounts;
    /** Versions and sources that reproduce the answer. */
    evidence: EstimateEvidence;
    /** Remarks about the question. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
}

/** Request for the configurations of a served model that are best for its users and for the devices. */
export interface ThroughputFrontierRequest {
    /** Model that is served. */
    model: ModelReference;
    /**
     * Load of the model. Concurrent requests are searched. With `service_levels`, only requests that meet
     * them count.
     */
    workload: InferenceWorkloadInput;
    /** Cluster that the model runs on. Each configuration uses all of it. */
    cluster: ClusterInput;
    /** Settings to search. Defaults to layouts and concurrent requests. */
    search?: FrontierSearchInput;
}

/** Request for a quote on throughput, which includes memory. */
export interface ThroughputQuoteRequest {
    /** Name of the quote. */
    name: string;
    /** Id of the cost centre that pays. */
    cost_center_id?: string;
    /** Note for the approvers. */
    note?: string;
    /** Days in which the quote may be approved. A price that ends earlier shortens the validity. */
    valid_for_days?: number;
    operation: 'throughput';
    /** Body of `POST /v1/estimates/throughput`. */
    request: ThroughputEstimateRequest;
}

/** A provider's list price of the same tokens. */
export interface TokenListPrice {
    /** Id of the price in the catalog. */
    id: string;
    /** Provider that asks the price. */
    provider: string;
    /** The provider's name of the model. */
    model: string;
    /** Date of the price. */
    as_of: string;
    /** Price of the tokens of prompts. */
    price_per_million_input_tokens: MoneyAmount;
    /** Price of the generated tokens. */
    price_per_million_output_tokens: MoneyAmount;
    /** Price of the tokens of prompts that are found in a cache. */
    price_per_million_cached_input_tokens?: MoneyAmount;
    /** Cost of the tokens of the run at these prices. */
    total?: MoneyQuantity;
    /** Total of the run over the total of the list prices. */
    ratio?: QuantityEstimate;
}

/** A token price of the catalog. */
export interface TokenPrice {
    id: string;
    name: string;
    /** Provider that serves the model. */
    provider: string;
    /** The provider's name of the model. */
    model_name: string;
    /** Model of the catalog with the same architecture. */
    model_id?: string;
    /** Price of a million input tokens. */
    input_price_per_million_tokens: MoneyInput;
    /** Price of a million generated tokens. */
    output_price_per_million_tokens: MoneyInput;
    /** Date of the price. */
    as_of: string;
    sources: Array<Citation>;
    /** Number of this version of the row; the ETag of the resource. */
    version: number;
    /** Catalog revision of this version. */
    revision: number;
    /** `shipped` if the row ships with the service, `tenant` if it is a row of the tenant. */
    origin: RowOrigin;
    created_at: string;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Price of a million input tokens that are found in a cache. */
    cached_input_price_per_million_tokens?: MoneyInput;
    /** Reason why the price may be wrong. */
    doubt?: string;
}

export type TokenPriceFormat = 'litellm' | 'dated_csv';

/** A list of token prices in the format of its publisher. */
export interface TokenPriceImportRequest {
    /**
     * Format of the content: model_prices_and_context_window.json of litellm, or a CSV of dated prices
     * whose rows name their date and source.
     */
    format: TokenPriceFormat;
    /** The file as text. */
    content: string;
    /** Provider whose prices to import, as the list names it. Defaults to all providers. */
    provider?: string;
    /** Date of the prices. Rows of dated_csv state their own. */
    as_of: string;
    source: PriceListSource;
}

/** A page of token prices. */
export interface TokenPricePage {
    items: Array<TokenPrice>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change, each as a whole; the others stay. Null removes a member that may be absent. */
export interface TokenPricePatch {
    name?: string;
    /** Provider that serves the model. */
    provider?: string;
    /** The provider's name of the model. */
    model_name?: string;
    /** Model of the catalog with the same architecture. */
    model_id?: string | null;
    /** Price of a million input tokens. */
    input_price_per_million_tokens?: MoneyInput;
    /** Price of a million generated tokens. */
    output_price_per_million_tokens?: MoneyInput;
    /** Date of the price. */
    as_of?: string;
    sources?: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string | null;
    /** Price of a million input tokens that are found in a cache. */
    cached_input_price_per_million_tokens?: MoneyInput | null;
    /** Reason why the price may be wrong. */
    doubt?: string | null;
}

/** A provider's list price for tokens of a model, for comparison. */
export interface TokenPriceRequest {
    id: string;
    name: string;
    /** Provider that serves the model. */
    provider: string;
    /** The provider's name of the model. */
    model_name: string;
    /** Model of the catalog with the same architecture. */
    model_id?: string;
    /** Price of a million input tokens. */
    input_price_per_million_tokens: MoneyInput;
    /** Price of a million generated tokens. */
    output_price_per_million_tokens: MoneyInput;
    /** Date of the price. */
    as_of: string;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Price of a million input tokens that are found in a cache. */
    cached_input_price_per_million_tokens?: MoneyInput;
    /** Reason why the price may be wrong. */
    doubt?: string;
}

/** Requests that arrive at given times, which set the rate. */
export interface TraceArrivals {
    process: 'trace';
    /** Arrival times, ascending, over all replicas. */
    at_seconds: Array<number>;
}

/** Training the model, or low-rank adapters of it. */
export interface TrainingGoal {
    kind: 'train';
    /** Parameters that are trained. */
    adaptation?: TrainingGoalAdaptation;
    /** Tokens of the whole run. Without them there are neither a price nor a bill. */
    total_tokens?: number;
    /** Tokens of a sequence. Defaults to 4096, or to the context of the model if that is shorter. */
    sequence_length?: number;
    /** Format of the arithmetic. Defaults to that of the accelerator. */
    precision?: TrainingPrecision;
}

export type TrainingGoalAdaptation = 'full' | 'lora' | 'qlora';

/** Objective of the loss, which decides how many copies of a model are held. */
export type TrainingObjective = 'pretraining' | 'supervised' | 'dpo' | 'simpo' | 'orpo' | 'ppo' | 'grpo' | 'distillation';

/** Names of the recipes; all but ``fp32``, ``tf32`` and ``pure_bf16`` keep an FP32 master copy. */
export type TrainingPrecision = 'fp32' | 'tf32' | 'fp16' | 'bf16' | 'pure_bf16' | 'fp8_delayed' | 'fp8_blockwise' | 'mxfp8' | 'nvfp4';

/** Settings of a training run to search. A setting that is left out takes the values usual in practice. */
export interface TrainingSearch {
    /** Tensor-parallel degrees. Defaults to those that divide a node. */
    tensor?: Array<number>;
    /**
     * Numbers of pipeline stages. Defaults to those that divide the cluster, up to the blocks of the
     * model.
     */
    pipeline?: Array<number>;
    /** Shardings of the training state. Defaults to none, zero_1 and zero_3. */
    shardings?: Array<Sharding>;
    /** Micro-batch sizes. Defaults to 1, 2, 4 and 8, and the size of the workload. */
    micro_batch_sizes?: Array<number>;
    /** Precisions that are allowed. Defaults to the precision of the workload. */
    precisions?: Array<TrainingPrecision>;
    /**
     * Numbers of devices that share a sequence. Defaults to 1, and to powers of 2 for sequences of 32,768
     * tokens and more.
     */
    context?: Array<number>;
    /** Numbers of replicas that the experts are spread over. Defaults to those that divide the experts. */
    expert?: Array<number>;
    /** Settings of sequence parallelism. Defaults to true where `tensor` is above 1. */
    sequence_parallel?: Array<boolean>;
    /** Sizes of a sharding group under hybrid sharding. Defaults to the devices of a node. */
    sharding_group_sizes?: Array<number>;
    /** Pipeline schedules. Defaults to one_f_one_b and interleaved. */
    pipeline_schedules?: Array<PipelineSchedule>;
    /** Virtual stages under the interleaved schedule. Defaults to 2 and 4. */
    virtual_stages?: Array<number>;
    /** Recomputation strategies. Defaults to none, selective and full. */
    recomputations?: Array<RecomputationInput>;
}

/** Location of a part of the training state. */
export type TrainingStateLocation = 'none' | 'cpu' | 'nvme';

/** A whole step of a small decoder: forward, backward, accumulation and the optimizer. */
export interface TrainingStepWork {
    /** Layers, all alike. */
    layers: number;
    /** Elements of a token. */
    hidden: number;
    /** Heads of a query. */
    query_heads: number;
    /** Heads of keys and values. */
    kv_heads: number;
    /** Elements of a head. */
    head_size: DecodeLoopWorkHeadSize;
    /** Elements between the matrices of the feed-forward network. */
    feed_forward: number;
    /** Tokens of the vocabulary. */
    vocabulary: number;
    /** Type of weights and activations. */
    dtype: DecodeLoopWorkDtype;
    kind: 'training_step';
    /** Tokens of a sequence. */
    sequence_length: number;
    /** Sequences of a micro-batch. */
    micro_batch_size: number;
    /** Micro-batches of a step. */
    accumulation_steps?: number;
    /** Recomputation of the activations of a layer in the backward pass. */
    recomputation?: TrainingStepWorkRecomputation;
}

export type TrainingStepWorkRecomputation = 'none' | 'full';

/** A training run. One of the three totals sets its length. */
export interface TrainingWorkloadInput {
    kind: 'training';
    /** Tokens per sequence, including those of its pictures. Models without tokens do not use it. */
    sequence_length?: number;
    /** Tokens of the whole run. */
    total_tokens?: number;
    /**
     * Sequences per optimizer step over all replicas. Defaults to the batch of published runs of this kind
     * if there is a cluster and the question states neither micro-batch nor micro-batches.
     */
    global_batch_size?: number;
    /**
     * Sequences or other samples that a data-parallel replica processes at a time. For dpo, simpo and
     * orpo: pairs of them. Defaults to the fastest that fits if the layout is open, else to 1.
     */
    micro_batch_size?: number;
    /**
     * Number format of training. All but fp32, tf32 and pure_bf16 keep an FP32 master copy in the way of
     * the framework. Defaults to bf16; on an accelerator without a bf16 rate to fp16, then to fp32.
     */
    precision?: TrainingPrecision;
    /** Optimizer, which sets the state that is kept for each parameter. */
    optimizer?: Optimizer;
    /**
     * Activations that the backward pass recomputes. Defaults to the way of the framework, else to the
     * fastest strategy that fits.
     */
    recomputation?: RecomputationInput;
    /** Parameters that are trained. Defaults to all. */
    adaptation?: AdaptationInput;
    /**
     * Objective that the loss is taken on. Pretraining and supervised cost the same; dpo and distillation
     * also run a frozen model; ppo and grpo generate their sequences and score them; ppo also trains a
     * critic.
     */
    objective?: TrainingObjective;
    /** Content of a sample beside its tokens: sizes of pictures and videos, and the input of an encoder. */
    sample?: SampleInput;
    /**
     * Micro-batches per optimizer step. Defaults to the number that follows from the global batch size.
     * With a micro-batch alone it is 1, or four for each pipeline stage.
     */
    gradient_accumulation_steps?: number;
    /** Format that gradients are kept in. Defaults to the format of the precision and the framework. */
    gradient_precision?: FloatPrecision;
    /** Format of the optimizer's states. Defaults to the format of the precision. */
    optimizer_state_precision?: FloatPrecision;
    /** Rank of the projection of galore. */
    optimizer_rank?: number;
    /**
     * True if each block is updated as soon as its gradients are ready, which are then freed. Allowed for
     * a step of one micro-batch.
     */
    optimizer_in_backward?: boolean;
    /** Attention kernel: `standard` stores the score matrix, `flash` does not. */
    attention?: AttentionKernel;
    /**
     * Release of the fused attention: `first` (FlashAttention), `second` (FlashAttention-2), or `native`
     * for kernels of the device's own instructions, such as FlashAttention-3 and cuDNN on Hopper. Defaults
     * to that of the framework: native for megatron_core and where none is named, first for megatron_lm
     * and megatron_deepspeed, else second.
     */
    attention_release?: FusedAttention;
    /**
     * Grouping of operators without a multiplication into kernels: each in a kernel of its own (`eager`),
     * in chains that are fused by hand (`fused`), or in chains from a compiler such as torch.compile
     * (`compiled`), which keeps only what a backward pass reads. Defaults to the way of the framework.
     */
    fusion?: OperatorFusion;
    /**
     * Tokens that each expert takes over the mean of all experts: those beyond it are dropped, missing
     * ones padded (`--moe-expert-capacity-factor` with `--moe-pad-expert-input-to-capacity` of Megatron-
     * LM, `capacity_factor` of MaxText). Without it no token is dropped.
     */
    expert_capacity_factor?: number;
    /**
     * Load of the experts: as a trained router spreads tokens over them (`trained`), or the same for each
     * (`forced`), as in benchmarks that override the router (`--moe-router-force-load-balancing`).
     */
    expert_balance?: ExpertBalance;
    /**
     * CUDA graphs of a step: `none`, one for each layer but for its routed experts (`layer`; `--cuda-
     * graph-impl transformer_engine` or `local` of Megatron-LM), or one for the whole iteration
     * (`iteration`). The host launches the kernels of a graph at once.
     */
    cuda_graphs?: CudaGraphs;
    /**
     * Computation of the loss from the logits: all in FP32 (`fp32`), all at the width of the activations
     * (`narrow`), in eight parts (`chunked`), or without storing logits (`fused`).
     */
    loss?: LossImplementation;
    /** Parameters of the teacher of a distillation. Defaults to those of the model. */
    teacher_parameter_count?: number;
    /**
     * Parameters of the reward model. Defaults to those of the model for ppo; for grpo no model rewards by
     * default.
     */
    reward_parameter_count?: number;
    /** Parameters of the critic of ppo. Defaults to those of the model. */
    critic_parameter_count?: number;
    /** Generation of the sequences that ppo and grpo train on. Defaults to the defaults of its members. */
    rollout?: RolloutInput;
    /** Set to true to keep a moving average of the weights in FP32. */
    weight_average?: boolean;
    /** State that is kept outside the device. Defaults to none. */
    offload?: OffloadInput;
    /** Path of samples to the devices. Without it the devices never wait for data. */
    data_pipeline?: DataPipelineInput;
    /** Compression of the gradients. Without it gradients are sent in the format that they are kept in. */
    gradient_compression?: GradientCompressionInput;
    /**
     * Saving of the training state. Without it no checkpoint is written, except on spot devices: there as
     * often as loses the least time, to storage as fast as that of published runs.
     */
    checkpointing?: CheckpointingInput;
    /** Failures of devices. Without it nothing fails. */
    reliability?: ReliabilityInput;
    /** Learning rate for hints. Without it hints scale the rate of one data-parallel replica. */
    learning_rate?: LearningRateInput;
    /** Optimizer steps of the whole run. */
    total_steps?: number;
    /** Sequences of the whole run. */
    total_samples?: number;
    /**
     * Framework of the run: megatron_lm, megatron_core, megatron_deepspeed, deepspeed, ddp, fsdp,
     * torchtitan, torchtune, litgpt, internevo, transformers, maxtext or neuronx_distributed. Another name
     * gives a warning, and memory follows the precision alone.
     */
    framework?: SoftwareVersion;
}

/** A check that could not be made: it neither passed nor found anything. */
export interface UncheckedValidationRule {
    /** Name of the check. */
    rule: string;
    /** Fact that is unknown. */
    detail: string;
}

/** Quotes that cannot be compared for one reason. */
export interface UncomparedQuotes {
    /** Code of the gap in their actuals. */
    code: string;
    /** Number of quotes. */
    quote_count: number;
}

/** Requests that arrive evenly. */
export interface UniformArrivals {
    process: 'uniform';
}

/** A workload that the schedule does not place. */
export interface UnplacedFleetWorkload {
    /** Name of the workload. */
    workload: string;
    /**
     * Reason of the pool where the workload comes closest, in the order configuration, price, deadline,
     * devices and budget.
     */
    reason: FleetPoolReasonReason;
    /** Reasons by pool. */
    pools: Array<FleetPoolReason>;
    /**
     * Changes that would place the workload. More devices are tried in the numbers that the workload
     * names, else in doublings of a pool, up to 16 times its size.
     */
    remedies: Array<FleetRemedy>;
}

/** A tariff by its rate in OpenEI's utility rate database (URDB). */
export interface UrdbTariffImportRequest {
    id: string;
    name: string;
    format: 'urdb_json';
    /** The parsed rate of version 8 or older, or the answer of the database with that rate in `items`. */
    urdb: Record<string, unknown>;
    /** IANA name of the local clock; a rate does not state it. */
    time_zone: string;
    sources: Array<Citation>;
    /** Other names by which a request may refer to the row. */
    aliases?: Array<string>;
    note?: string;
    /** Local days that windows treat as holidays; a rate has none. */
    holidays?: Array<string>;
    /** First local day of the charges. Defaults to the day of the rate, or to the first day there is. */
    effective_from?: string;
    /** Keys of the rate to leave out of the tariff, such as the refused ones. */
    excluded_keys?: Array<string>;
}

/** Energy, emissions and cost of a run, rented or bought. */
export interface UtilityBill {
    /** The layout that the figures hold for. */
    parallelism: ParallelismDegrees;
    /** Versions and sources that reproduce the answer. */
    evidence: EstimateEvidence;
    /** Members that the question leaves open and that shape the answer, as they are filled. */
    defaults: Array<EstimateDefault>;
    /** Remarks about the question. */
    warnings: Array<AnswerWarning>;
    /** Figures that are absent, and why. */
    gaps: Array<EstimateGap>;
    /** Floating-point operations of the whole run. */
    total_flops?: number;
    /** Dense rate of the number format that the multiplications use. */
    peak_flops_per_second_per_device: number;
    /** Time of the whole run. */
    duration_seconds?: QuantityEstimate;
    /** Hours of all devices together. */
    device_hours?: QuantityEstimate;
    /** Energy of the run. */
    energy: EnergyEstimate;
    /** The electricity bill of the run. */
    electricity: ElectricityBill;
    /** Emissions of the run. */
    carbon: CarbonEmissions;
    /** Water evaporated on the site and by the grid. */
    water_liters?: QuantityEstimate;
    /** Water by place. */
    water?: WaterUse;
    /** Illustrations of the amount of energy. */
    equivalents?: Array<EnergyEquivalent>;
    /** Cost of renting the devices. */
    rent: CostBreakdown;
    /** Cost of buying the devices. */
    purchase: CostBreakdown;
    /** Purchase over rent: number of runs after which the purchase has paid for itself. */
    break_even_runs?: QuantityEstimate;
    /** The same if a run on owned devices pays for its electricity. */
    break_even_runs_with_electricity?: QuantityEstimate;
    /** Runs and months until the purchase has paid itself back, under further assumptions. */
    break_even?: Array<BreakEven>;
}

/** Several requests for utility bills, answered in order. */
export interface UtilityBillBatchRequest {
    /** Requests. If one of them has no answer, the batch fails. */
    requests: Array<UtilityBillRequest>;
}

/** Request for the electricity of a run as FOCUS rows. */
export interface UtilityBillExportRequest {
    /** Model that is trained or served. */
    model: ModelReference;
    /** Work of the model. */
    workload: WorkloadInput;
    /** Cluster that the workload runs on. */
    cluster: ClusterInput;
    /** Building that houses the run. Without it electricity and carbon are gaps. */
    site?: RunSiteInput;
    /** Terms and price of renting the devices. */
    rental?: Rental;
    /** Price of buying the devices. */
    purchase?: Purchase;
    /** Start of the run. */
    starts_at?: string;
    /** Id of the account that is charged. Defaults to the id of the tenant. */
    billing_account_id?: string;
    /** Name of the account. Defaults to its id. */
    billing_account_name?: string;
    /** Layout of the workload over the devices. Defaults to a sensible layout, which the answer states. */
    parallelism?: ParallelismInput;
    /** Source of the efficiency of the devices. Defaults to measured runs. */
    efficiency?: EfficiencyInput;
    /** Price of storing data and checkpoints. */
    storage?: StorageInput;
    /** Price of data that leave the provider. */
    egress?: EgressInput;
    /**
     * Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
     * model that are at most a year older than the newest of the catalog.
     */
    token_price_ids?: Array<string>;
    /**
     * Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
     * prices, which then must all have the same one.
     */
    currency_code?: string;
    /** Power of the run over time. */
    load_profile?: RunLoadInput;
    /** Measured energy of the run, in place of the estimate. */
    measured?: MeasuredEnergyInput;
    /** Emissions of making the machines. */
    embodied?: EmbodiedEmissionsInput;
}

/** Answers in the order of the questions. */
export interface UtilityBillList {
    results: Array<UtilityBill>;
}

/** Request for a quote on all four questions. */
export interface UtilityBillQuoteRequest {
    /** Name of the quote. */
    name: string;
    /** Id of the cost centre that pays. */
    cost_center_id?: string;
    /** Note for the approvers. */
    note?: string;
    /** Days in which the quote may be approved. A price that ends earlier shortens the validity. */
    valid_for_days?: number;
    operation: 'utility-bill';
    /** Body of `POST /v1/estimates/utility-bill`. */
    request: UtilityBillRequest;
}

/** Request for the energy, emissions and cost of a run, rented or bought. */
export interface UtilityBillRequest {
    /** Model that is trained or served. */
    model: ModelReference;
    /** Work of the model. */
    workload: WorkloadInput;
    /** Cluster that the workload runs on. */
    cluster: ClusterInput;
    /** Building that houses the run. Without it electricity and carbon are gaps. */
    site?: RunSiteInput;
    /** Terms and price of renting the devices. */
    rental?: Rental;
    /** Price of buying the devices. */
    purchase?: Purchase;
    /** Start of the run. */
    starts_at?: string;
    /** Layout of the workload over the devices. Defaults to a sensible layout, which the answer states. */
    parallelism?: ParallelismInput;
    /** Source of the efficiency of the devices. Defaults to measured runs. */
    efficiency?: EfficiencyInput;
    /** Price of storing data and checkpoints. */
    storage?: StorageInput;
    /** Price of data that leave the provider. */
    egress?: EgressInput;
    /**
     * Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
     * model that are at most a year older than the newest of the catalog.
     */
    token_price_ids?: Array<string>;
    /**
     * Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the
     * prices, which then must all have the same one.
     */
    currency_code?: string;
    /** Power of the run over time. */
    load_profile?: RunLoadInput;
    /** Measured energy of the run, in place of the estimate. */
    measured?: MeasuredEnergyInput;
    /** Emissions of making the machines. */
    embodied?: EmbodiedEmissionsInput;
}

/** A check that did not pass, or a label. */
export interface ValidationFinding {
    /** Name of the check, such as physics.above_dense_peak. */
    rule: string;
    /** Best verdict that the finding allows; a label allows `accepted`. */
    verdict: ResultVerdict;
    /** Observation with its unit. */
    detail: string;
    /** Observed value. */
    observed?: number;
    /** Limit that the observed value was compared with. */
    limit?: number;
}

/** Water use of the run, by place. */
export interface WaterUse {
    /** Water that evaporates on the site for cooling. */
    onsite_liters?: QuantityEstimate;
    /** Water that the power plants of the grid use. */
    offsite_liters?: QuantityEstimate;
}

/** An address that is told of events, and the state of its deliveries. */
export interface Webhook {
    id: string;
    /** Address that messages are posted to. */
    url: string;
    /** Types of events that are sent. All if absent. */
    event_types?: Array<WebhookEventType>;
    /** Purpose of the webhook. */
    description?: string;
    /** Signature of the messages. */
    signature_scheme: WebhookSignatureScheme;
    /** Public key that verifies `v1a` signatures. The newest one during a rotation. */
    public_key?: string;
    /** State of the webhook. A disabled webhook gets no messages. */
    state: WebhookState;
    /** Time at which the webhook was disabled. */
    disabled_at?: string;
    /**
     * Reason why it was disabled: by its owner, by an answer of 410 from its receiver, or by the service
     * after five days in which every attempt failed.
     */
    disabled_reason?: WebhookDisabledReason;
    /** Time of the last successful attempt. */
    succeeded_at?: string;
    /** Time of the first failed attempt since then. */
    failing_since?: string;
    /** Time until which deliveries pause because the receiver has asked for it. */
    paused_until?: string;
    /** Time until which messages are also signed with the secret or key before the newest. */
    rotation_ends_at?: string;
    /** Number of changes, the creation included. */
    version: number;
    created_at: string;
    /** Kind and id of the subject that created the webhook. */
    created_by: string;
    /**
     * Kind and id of the subject that last set the address or the event types. Events that it may not read
     * are withheld.
     */
    on_behalf_of: string;
}

/** Delivery of one event to one webhook. */
export interface WebhookDelivery {
    id: string;
    /** Id of the webhook. */
    webhook_id: string;
    /** Id of the event, sent as `webhook-id`, the same at every attempt. */
    event_id: string;
    /** Type of the event. */
    event_type: WebhookEventType;
    /**
     * State of the delivery. A `failed` delivery has failed ten times or permanently. A `cancelled` one
     * was waiting when its webhook was disabled, or may no longer be sent. `:replay` sends single ones
     * again, and `:recover` all of both.
     */
    state: WebhookDeliveryState;
    /** The last fifty attempts, in order. */
    attempts: Array<WebhookDeliveryAttempt>;
    /** Earliest time of the next attempt. */
    next_attempt_at?: string;
    created_at: string;
    /** Time at which the event was delivered or given up. */
    finished_at?: string;
}

/** One request to the receiver, and its outcome. */
export interface WebhookDeliveryAttempt {
    /** Start of the attempt. */
    started_at: string;
    /** Duration of the attempt. */
    milliseconds: number;
    /** HTTP status of the answer. Absent if there was none. */
    status_code?: number;
    /** Code of the failure. Absent if the attempt succeeded. */
    error_code?: string;
    /** Beginning of the body of the answer. */
    answer_excerpt?: string;
}

/** A page of deliveries. */
export interface WebhookDeliveryPage {
    /** Deliveries, the newest first. */
    items: Array<WebhookDelivery>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

export type WebhookDeliveryState = 'waiting' | 'running' | 'delivered' | 'failed' | 'cancelled';

/** Webhook that the service has disabled. */
export interface WebhookDisabledEvent {
    /** Id of the webhook. */
    webhook_id: string;
    /** Description of the webhook. */
    description?: string;
    /** Reason: its receiver answered with 410, or every attempt of five days has failed. */
    reason: WebhookDisabledEventReason;
}

export type WebhookDisabledEventReason = 'GONE' | 'FAILING';

/** Message about a webhook that the service has disabled. */
export interface WebhookDisabledMessage {
    /** Type of the event. */
    type: 'webhook.disabled';
    /** Time of the event. */
    timestamp: string;
    /** Members of the event. */
    data: WebhookDisabledEvent;
}

export type WebhookDisabledReason = 'BY_OWNER' | 'GONE' | 'FAILING';

/** Type of an event. */
export type WebhookEventType = 'approval.requested' | 'approval.escalated' | 'approval.due_soon' | 'approval.approved' | 'approval.rejected' | 'approval.expired' | 'approval.cancelled' | 'approval.superseded' | 'approval.closed' | 'approval.commented' | 'budget.threshold_reached' | 'budget.exceeded' | 'policy_change.proposed' | 'policy_change.effective' | 'policy_change.rejected' | 'benchmark.regressed' | 'quote.expires_soon' | 'audit.head' | 'webhook.disabled' | 'webhook.test';

/** A page of webhooks. */
export interface WebhookPage {
    /** Webhooks, the newest first. */
    items: Array<Webhook>;
    /** Value of `page_token` for the next page; null on the last page. */
    next_page_token: string | null;
}

/** Members to change; the others stay. */
export interface WebhookPatch {
    /** New address that messages are posted to. */
    url?: string;
    /** Types of events to send. Null selects all. */
    event_types?: Array<WebhookEventType> | null;
    /** Purpose of the webhook. Null removes it. */
    description?: string | null;
    /** False cancels waiting deliveries. True resumes with events that happen from then on. */
    enabled?: boolean;
}

/** Time from which to send failed and cancelled deliveries again. */
export interface WebhookRecoveryRequest {
    /** Time of the first event that the receiver may have missed. */
    since: string;
}

/** Deliveries to send again. */
export interface WebhookReplayRequest {
    /** Ids of deliveries of this webhook. */
    delivery_ids: Array<string>;
}

/** An address and the events to send to it. */
export interface WebhookRequest {
    /**
     * Address that messages are posted to: https, at port 443 or 8443 of a public host, unless the
     * operator allows other networks.
     */
    url: string;
    /** Types of events to send. Defaults to all, including types that are added later. */
    event_types?: Array<WebhookEventType>;
    /** Purpose of the webhook. */
    description?: string;
    /**
     * Signature of the messages: with a secret that the receiver shares (`v1`, HMAC-SHA256), or with a key
     * whose public half the receiver has (`v1a`, Ed25519).
     */
    signature_scheme?: WebhookSignatureScheme;
}

/** Overlap in which messages are signed with both secrets, or both keys. */
export interface WebhookRotationRequest {
    /** Seconds of the overlap, to replace the secret or key at the receiver. */
    overlap_seconds?: number;
}

/** Scheme by which messages are signed. */
export type WebhookSignatureScheme = 'v1' | 'v1a';

export type WebhookState = 'enabled' | 'disabled';

/** Webhook that a test delivery was asked for. */
export interface WebhookTestEvent {
    /** Id of the webhook. */
    webhook_id: string;
}

/** Message about a test delivery. */
export interface WebhookTestMessage {
    /** Type of the event. */
    type: 'webhook.test';
    /** Time of the event. */
    timestamp: string;
    /** Members of the event. */
    data: WebhookTestEvent;
}

export type WeightFormatName = 'fp8_tensor' | 'fp8_channel' | 'fp8_block_128' | 'fbgemm_fp8' | 'int8_channel' | 'gptq_int4_g128' | 'gptq_int8_g128' | 'awq_int4_g128' | 'bnb_int8' | 'bnb_nf4' | 'bnb_nf4_double_quant' | 'mxfp4' | 'nvfp4' | 'gguf_f16' | 'gguf_q4_0' | 'gguf_q4_1' | 'gguf_q5_0' | 'gguf_q5_1' | 'gguf_q8_0' | 'gguf_q2_k' | 'gguf_q2_k_s' | 'gguf_q3_k_s' | 'gguf_q3_k_m' | 'gguf_q3_k_l' | 'gguf_q4_k_s' | 'gguf_q4_k_m' | 'gguf_q5_k_s' | 'gguf_q5_k_m' | 'gguf_q6_k' | 'gguf_iq1_s' | 'gguf_iq1_m' | 'gguf_iq2_xxs' | 'gguf_iq2_xs' | 'gguf_iq2_s' | 'gguf_iq2_m' | 'gguf_iq3_xxs' | 'gguf_iq3_xs' | 'gguf_iq3_s' | 'gguf_iq3_m' | 'gguf_iq4_nl' | 'gguf_iq4_xs' | 'gguf_tq1_0' | 'gguf_tq2_0' | 'gguf_mxfp4_moe';

/**
 * C = A B of few rows of bf16 and weights of 4 bits, which are widened before they multiply.
 *
 * As in checkpoints of GPTQ and AWQ: a scale of bf16 for each 128 weights of a column.
 */
export interface WeightOnlyGemmWork {
    kind: 'weight_only_gemm';
    /** Type of A and C, in which the weights multiply. */
    dtype: 'bf16';
    /** True if each group has a zero point of 4 bits; without them it is 8, in the middle. */
    has_zero_points: boolean;
    /** Rows of A and C. */
    m: number;
    /** Columns of B and C. */
    n: number;
    /** Columns of A and rows of B. */
    k: number;
}

export type WeightPrecision = 'fp32' | 'fp16' | 'bf16' | 'fp8' | 'int8' | 'fp4' | 'int4';

/** Calibrations that were withdrawn together. */
export interface WithdrawnCalibrations {
    /** Calibrations, the oldest first. */
    items: Array<Calibration>;
}

export type WorkloadInput = TrainingWorkloadInput | InferenceWorkloadInput;

export type WebhookMessage = ApprovalMessage | AuditHeadMessage | BenchmarkRegressionMessage | BudgetMessage | PolicyChangeMessage | QuoteMessage | WebhookDisabledMessage | WebhookTestMessage;

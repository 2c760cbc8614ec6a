// Operations of the service. Written by `make client-sources`.

import { Resource } from './core.js';
import type { Changing, Deciding, Estimating, Pages, Waiting } from './core.js';
import type * as t from './types.js';

export class Accelerators extends Resource {
    /** Lists the accelerators that match every filter. Needs the scope `accelerators:read`. */
    list(options: { page_size?: number; page_token?: string; order_by?: t.CatalogRowOrder; id?: string | Array<string>; q?: string; vendor?: string | Array<string>; generation?: string | Array<string>; min_memory_reported_bytes?: number; min_memory_bandwidth_bytes_per_second?: number; max_power_limit_watts?: number } = {}): Pages<t.AcceleratorPage, t.Accelerator> {
        return this.pages({ method: 'GET', path: '/v1/accelerators', query: { page_size: options.page_size, page_token: options.page_token, order_by: options.order_by, id: options.id, q: options.q, vendor: options.vendor, generation: options.generation, min_memory_reported_bytes: options.min_memory_reported_bytes, min_memory_bandwidth_bytes_per_second: options.min_memory_bandwidth_bytes_per_second, max_power_limit_watts: options.max_power_limit_watts } });
    }

    /** Creates an accelerator under an unused id. Needs the scope `accelerators:write`. */
    create(request: t.AcceleratorRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Accelerator> {
        return this.ask({ method: 'POST', path: '/v1/accelerators', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns the current version of an accelerator. Needs the scope `accelerators:read`. */
    get(id: string): Promise<t.Accelerator> {
        return this.ask({ method: 'GET', path: `/v1/accelerators/${encodeURIComponent(id)}` });
    }

    /**
     * Changes members of an accelerator, if its version matches the ETag. Needs the scope
     * `accelerators:write`.
     */
    update(id: string, request: t.AcceleratorPatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.Accelerator> {
        return this.ask({ method: 'PATCH', path: `/v1/accelerators/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes an accelerator that no row refers to, if its version matches the ETag. Needs the scope
     * `accelerators:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/accelerators/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Copies an accelerator into the tenant's own rows. Under the id of a shipped row it replaces that
     * row. Needs the scope `accelerators:write`.
     */
    copy(id: string, request: t.CatalogRowCopyRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Accelerator> {
        return this.ask({ method: 'POST', path: `/v1/accelerators/${encodeURIComponent(id)}:copy`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Actuals extends Resource {
    /** Lists the tenant's imported bills, the newest first. Needs the scope `actuals:read`. */
    list(options: { page_size?: number; page_token?: string } = {}): Pages<t.ActualsPage, t.Actuals> {
        return this.pages({ method: 'GET', path: '/v1/actuals', query: { page_size: options.page_size, page_token: options.page_token } });
    }

    /**
     * Imports a bill as a table in the columns of FOCUS 1.0 to 1.3, to compare with quotes and budgets.
     *
     * A charge belongs to the quote that its tag `quote_id` names, and to a cost centre by its quote, tags
     * or account. A bill with a wrong row is refused as a whole, with the line and column of each fault. A
     * bill that was imported before is refused too, unless `replaces` names the earlier import. Needs the
     * scope `actuals:write`.
     */
    import(request: t.ActualsImportRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Actuals> {
        return this.ask({ method: 'POST', path: '/v1/actuals:import', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns how far quotes deviate from their bills: error, bias, and how often the interval held. Needs
     * the scope `actuals:read`.
     */
    getAccuracy(): Promise<t.ActualsAccuracy> {
        return this.ask({ method: 'GET', path: '/v1/actuals:accuracy' });
    }

    /**
     * Returns an imported bill: its billing periods, its sums, and the number of its rows that matched.
     * Needs the scope `actuals:read`.
     */
    get(id: string): Promise<t.Actuals> {
        return this.ask({ method: 'GET', path: `/v1/actuals/${encodeURIComponent(id)}` });
    }

    /**
     * Withdraws a bill, which no longer counts. An earlier bill that it replaced does not count again.
     * Needs the scope `actuals:write`.
     */
    withdraw(id: string, request: t.ActualsWithdrawalRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Actuals> {
        return this.ask({ method: 'POST', path: `/v1/actuals/${encodeURIComponent(id)}:withdraw`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns what was billed for a quote so far, and what was quoted for the time that is billed. Needs
     * the scope `actuals:read`.
     */
    getQuote(id: string): Promise<t.QuoteActuals> {
        return this.ask({ method: 'GET', path: `/v1/quotes/${encodeURIComponent(id)}/actuals` });
    }
}

export class ApiKeys extends Resource {
    /** Lists the tenant's API keys, without their secrets. Needs the scope `api-keys:read`. */
    list(options: { page_size?: number; page_token?: string } = {}): Pages<t.ApiKeyPage, t.ApiKey> {
        return this.pages({ method: 'GET', path: '/v1/api-keys', query: { page_size: options.page_size, page_token: options.page_token } });
    }

    /**
     * Creates a key with at most the rights of its creator. The secret is shown only in this answer. Needs
     * the scope `api-keys:write`.
     */
    create(request: t.ApiKeyRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.IssuedApiKey> {
        return this.ask({ method: 'POST', path: '/v1/api-keys', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns a key of the tenant, without its secret. Needs the scope `api-keys:read`. */
    get(id: string): Promise<t.ApiKey> {
        return this.ask({ method: 'GET', path: `/v1/api-keys/${encodeURIComponent(id)}` });
    }

    /**
     * Revokes a key and the keys made or rotated by it. They stop working within two seconds, everywhere.
     * Needs the scope `api-keys:write`.
     */
    revoke(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/api-keys/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Issues the next secret of a key. The previous one works until the rotation ends or is retired.
     *
     * The caller must hold every scope of the key, and from then on counts as one person with it. Needs
     * the scope `api-keys:write`.
     */
    rotate(id: string, request: t.ApiKeyRotationRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.IssuedApiKey> {
        return this.ask({ method: 'POST', path: `/v1/api-keys/${encodeURIComponent(id)}:rotate`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Ends the rotation of a key. Only its newest secret works from then on. Needs the scope `api-
     * keys:write`.
     */
    retire(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ApiKey> {
        return this.ask({ method: 'POST', path: `/v1/api-keys/${encodeURIComponent(id)}:retire`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class ApprovalDelegations extends Resource {
    /** Lists the tenant's delegations, the newest first. Needs the scope `approval-delegations:read`. */
    list(options: { page_size?: number; page_token?: string } = {}): Pages<t.ApprovalDelegationPage, t.ApprovalDelegation> {
        return this.pages({ method: 'GET', path: '/v1/approval-delegations', query: { page_size: options.page_size, page_token: options.page_token } });
    }

    /**
     * Lets another subject decide in the caller's place for a time. Needs the scope `approval-
     * delegations:write`.
     */
    create(request: t.ApprovalDelegationRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ApprovalDelegation> {
        return this.ask({ method: 'POST', path: '/v1/approval-delegations', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Ends one of the caller's delegations now. Decisions made by it stay. Needs the scope `approval-
     * delegations:write`.
     */
    revoke(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/approval-delegations/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class ApprovalLinks extends Resource {
    /** Revokes a link. A decision made by it stays. Needs the scope `approval-links:write`. */
    revoke(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/approval-links/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class ApprovalPolicies extends Resource {
    /** Lists the tenant's policies in order of id. Needs the scope `approval-policies:read`. */
    list(options: { page_size?: number; page_token?: string } = {}): Pages<t.ApprovalPolicyPage, t.ApprovalPolicy> {
        return this.pages({ method: 'GET', path: '/v1/approval-policies', query: { page_size: options.page_size, page_token: options.page_token } });
    }

    /**
     * Creates a policy: the approvers of the quotes that it applies to, from the next submission on.
     *
     * It takes effect at once (201) if it is the tenant's first policy, or if it has steps and applies
     * only to quotes that another policy with steps applies to. Otherwise it waits (202) for approval or
     * the end of the tenant's delay. Needs the scope `approval-policies:write`.
     */
    create(request: t.ApprovalPolicyRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ApprovalPolicy | t.PolicyChange> {
        return this.ask({ method: 'POST', path: '/v1/approval-policies', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns the current version of a policy. Needs the scope `approval-policies:read`. */
    get(id: string): Promise<t.ApprovalPolicy> {
        return this.ask({ method: 'GET', path: `/v1/approval-policies/${encodeURIComponent(id)}` });
    }

    /**
     * Changes members of a policy, if its version matches the ETag.
     *
     * A change that only adds steps or names takes effect at once (200). Any other change waits (202) for
     * approval or the end of the tenant's delay. Needs the scope `approval-policies:write`.
     */
    update(id: string, request: t.ApprovalPolicyPatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.ApprovalPolicy | t.PolicyChange> {
        return this.ask({ method: 'PATCH', path: `/v1/approval-policies/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes a policy, if its version matches the ETag. Pending approvals keep its steps.
     *
     * The deletion waits (202) for approval or the end of the tenant's delay. Without a delay it is
     * immediate (204). Needs the scope `approval-policies:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.PolicyChange | void> {
        return this.ask({ method: 'DELETE', path: `/v1/approval-policies/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class ApprovalSettings extends Resource {
    /**
     * Returns the delay for changes of the tenant's policies and budgets. Needs the scope `approval-
     * settings:read`.
     */
    get(): Promise<t.ApprovalSettings> {
        return this.ask({ method: 'GET', path: '/v1/approval-settings' });
    }

    /**
     * Changes the delay. A shorter delay takes effect (202) only after the present one.
     *
     * Until the tenant has its first policy, every change takes effect at once. Needs the scope `approval-
     * settings:write`.
     */
    update(request: t.ApprovalSettingsPatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.ApprovalSettings | t.PolicyChange> {
        return this.ask({ method: 'PATCH', path: '/v1/approval-settings', body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Approvals extends Resource {
    /** Lists the tenant's approvals, the newest first. Needs the scope `approvals:read`. */
    list(options: { page_size?: number; page_token?: string; state?: t.ApprovalState | Array<t.ApprovalState>; approver?: '' | 'me'; requester?: string; quote_id?: string | Array<string> } = {}): Pages<t.ApprovalPage, t.ApprovalSummary> {
        return this.pages({ method: 'GET', path: '/v1/approvals', query: { page_size: options.page_size, page_token: options.page_token, state: options.state, approver: options.approver, requester: options.requester, quote_id: options.quote_id } });
    }

    /**
     * Returns an approval: its steps, its decisions, and its effect on budgets. Needs the scope
     * `approvals:read`.
     */
    get(id: string): Promise<t.Approval> {
        return this.ask({ method: 'GET', path: `/v1/approvals/${encodeURIComponent(id)}` });
    }

    /** Asks again until the state is no longer `pending`; rejects with `WaitTimeout` before that. */
    wait(id: string, options: Waiting = {}): Promise<t.Approval> {
        return this.waitFor({ method: 'GET', path: `/v1/approvals/${encodeURIComponent(id)}` }, ['pending'], options);
    }

    /**
     * Lists every change of an approval from the audit chain, and tells if the stored approval matches it.
     * Needs the scope `approvals:read`.
     */
    getHistory(id: string): Promise<t.ApprovalHistory> {
        return this.ask({ method: 'GET', path: `/v1/approvals/${encodeURIComponent(id)}/history` });
    }

    /**
     * Approves the version with the digest, in every step of the caller. A repetition changes nothing.
     * Needs the scope `approvals:write`.
     */
    approve(id: string, request: t.ApprovalDecisionRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Approval> {
        return this.ask({ method: 'POST', path: `/v1/approvals/${encodeURIComponent(id)}:approve`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Rejects the version with the digest. A single rejection ends the approval. Needs the scope
     * `approvals:write`.
     */
    reject(id: string, request: t.ApprovalDecisionRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Approval> {
        return this.ask({ method: 'POST', path: `/v1/approvals/${encodeURIComponent(id)}:reject`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Closes an approval whose work is over. Budgets get back what is not billed; later bills still count.
     *
     * The approval stays approved. Closing it again gives the same answer. Needs the scope
     * `approvals:write`.
     */
    close(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Approval> {
        return this.ask({ method: 'POST', path: `/v1/approvals/${encodeURIComponent(id)}:close`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Adds a comment to an approval. Needs the scope `approvals:write`. */
    comment(id: string, request: t.ApprovalCommentRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Approval> {
        return this.ask({ method: 'POST', path: `/v1/approvals/${encodeURIComponent(id)}:comment`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Creates a link by which one approver of the open step decides once, without credentials.
     *
     * In one step, decisions by links of one maker count once, and not beside a decision of the maker.
     * Needs the scope `approval-links:write`.
     */
    link(id: string, request: t.ApprovalLinkRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.IssuedApprovalLink> {
        return this.ask({ method: 'POST', path: `/v1/approvals/${encodeURIComponent(id)}:link`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Lists the links of an approval with their state, without their secrets. Needs the scope `approval-
     * links:read`.
     */
    listLinks(id: string): Promise<t.ApprovalLinkList> {
        return this.ask({ method: 'GET', path: `/v1/approvals/${encodeURIComponent(id)}/links` });
    }
}

export class AuditEvents extends Resource {
    /** Lists the tenant's writes, the newest first. Needs the scope `audit-events:read`. */
    list(options: { page_size?: number; page_token?: string } = {}): Pages<t.AuditEventPage, t.AuditEvent> {
        return this.pages({ method: 'GET', path: '/v1/audit-events', query: { page_size: options.page_size, page_token: options.page_token } });
    }

    /**
     * Verifies the whole audit chain of the tenant, and the stored resources that control access.
     *
     * Finds any event that was changed, dropped or reordered, and any approval, policy, delegation,
     * budget, bill, quote, key, link, webhook or node that was changed outside the service. Needs the
     * scope `audit-events:read`.
     */
    verify(options: { expected_head?: string | Array<string> } = {}): Promise<t.AuditVerdict> {
        return this.ask({ method: 'GET', path: '/v1/audit-events:verify', query: { expected_head: options.expected_head } });
    }
}

export class BackgroundJobs extends Resource {
    /** Lists the tenant's background jobs, the newest first. Needs the scope `background-jobs:read`. */
    list(options: { page_size?: number; page_token?: string; kind?: string | Array<string>; state?: t.BackgroundJobState | Array<t.BackgroundJobState> } = {}): Pages<t.BackgroundJobPage, t.BackgroundJob> {
        return this.pages({ method: 'GET', path: '/v1/background-jobs', query: { page_size: options.page_size, page_token: options.page_token, kind: options.kind, state: options.state } });
    }

    /** Returns a job with its progress. Needs the scope `background-jobs:read`. */
    get(id: string): Promise<t.BackgroundJob> {
        return this.ask({ method: 'GET', path: `/v1/background-jobs/${encodeURIComponent(id)}` });
    }

    /**
     * Asks again until the state is no longer `waiting` or `running`; rejects with `WaitTimeout` before
     * that.
     */
    wait(id: string, options: Waiting = {}): Promise<t.BackgroundJob> {
        return this.waitFor({ method: 'GET', path: `/v1/background-jobs/${encodeURIComponent(id)}` }, ['waiting', 'running'], options);
    }

    /**
     * Cancels a job. A running job ends after its present piece, any other at once. Needs the scope
     * `background-jobs:write`.
     */
    cancel(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.BackgroundJob> {
        return this.ask({ method: 'POST', path: `/v1/background-jobs/${encodeURIComponent(id)}:cancel`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Runs a dead job again, from the point that it reached. Needs the scope `background-jobs:write`. */
    retry(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.BackgroundJob> {
        return this.ask({ method: 'POST', path: `/v1/background-jobs/${encodeURIComponent(id)}:retry`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class BenchmarkResults extends Resource {
    /** Lists the tenant's results, the last received first. Needs the scope `benchmark-results:read`. */
    list(options: { page_size?: number; page_token?: string; run_id?: string | Array<string>; node_id?: string | Array<string>; suite_id?: string | Array<string>; benchmark?: string | Array<string>; status?: t.BenchmarkResultStatus | Array<t.BenchmarkResultStatus>; lease?: t.ResultLeaseStanding | Array<t.ResultLeaseStanding>; verdict?: t.ResultVerdict | Array<t.ResultVerdict> } = {}): Pages<t.BenchmarkResultPage, t.BenchmarkResult> {
        return this.pages({ method: 'GET', path: '/v1/benchmark-results', query: { page_size: options.page_size, page_token: options.page_token, run_id: options.run_id, node_id: options.node_id, suite_id: options.suite_id, benchmark: options.benchmark, status: options.status, lease: options.lease, verdict: options.verdict } });
    }

    /**
     * Compares the runs of one benchmark on equal hardware with a baseline, over time and across nodes.
     * Needs the scope `benchmark-results:read`.
     */
    compare(options: { benchmark: string; node_id?: string; baseline_run_id?: string; runs?: number }): Promise<t.BenchmarkComparison> {
        return this.ask({ method: 'GET', path: '/v1/benchmark-results:compare', query: { benchmark: options.benchmark, node_id: options.node_id, baseline_run_id: options.baseline_run_id, runs: options.runs } });
    }

    /**
     * Lists regressions: against earlier runs of a node, and against other nodes of equal hardware.
     *
     * A difference counts if the samples lie apart, in time and in cycles, as in comparisons. Needs the
     * scope `benchmark-results:read`.
     */
    listRegressions(options: { node_id?: string | Array<string>; benchmark?: string | Array<string>; least_change?: number } = {}): Promise<t.BenchmarkRegressionList> {
        return this.ask({ method: 'GET', path: '/v1/benchmark-results:regressions', query: { node_id: options.node_id, benchmark: options.benchmark, least_change: options.least_change } });
    }

    /**
     * Exports results as CSV or Parquet with one row each, the last received first. Needs the scope
     * `benchmark-results:read`.
     */
    export(options: { run_id?: string | Array<string>; node_id?: string | Array<string>; suite_id?: string | Array<string>; benchmark?: string | Array<string>; status?: t.BenchmarkResultStatus | Array<t.BenchmarkResultStatus>; lease?: t.ResultLeaseStanding | Array<t.ResultLeaseStanding>; verdict?: t.ResultVerdict | Array<t.ResultVerdict>; format?: 'csv' | 'parquet' } = {}): Promise<string | Uint8Array> {
        return this.ask({ method: 'GET', path: '/v1/benchmark-results:export', query: { run_id: options.run_id, node_id: options.node_id, suite_id: options.suite_id, benchmark: options.benchmark, status: options.status, lease: options.lease, verdict: options.verdict, format: options.format } });
    }

    /**
     * Returns a result with its raw samples, and the figures that the service computed from them. Needs
     * the scope `benchmark-results:read`.
     */
    get(id: string): Promise<t.StoredBenchmarkResult> {
        return this.ask({ method: 'GET', path: `/v1/benchmark-results/${encodeURIComponent(id)}` });
    }

    /**
     * Stores a result as it is sent, once, however often it is sent. Only for the node that measured it.
     *
     * The result is stored even if its lease has ended, and the receipt says so. The same id with other
     * content is refused, as is a result of a run that the node was not granted, and more than a node may
     * send in a day. A result has at most 22,000 members and elements, and 1 MiB. Needs the scope
     * `benchmark-results:report`.
     */
    report(id: string, request: t.BenchmarkResultReport): Promise<t.BenchmarkResultReceipt> {
        return this.ask({ method: 'PUT', path: `/v1/benchmark-results/${encodeURIComponent(id)}`, body: request, is_digested: true });
    }
}

export class BenchmarkRuns extends Resource {
    /** Lists the tenant's benchmark runs, the newest first. Needs the scope `benchmark-runs:read`. */
    list(options: { page_size?: number; page_token?: string; state?: t.BenchmarkRunState | Array<t.BenchmarkRunState>; node_id?: string | Array<string>; suite_id?: string | Array<string> } = {}): Pages<t.BenchmarkRunPage, t.BenchmarkRun> {
        return this.pages({ method: 'GET', path: '/v1/benchmark-runs', query: { page_size: options.page_size, page_token: options.page_token, state: options.state, node_id: options.node_id, suite_id: options.suite_id } });
    }

    /** Requests a run of a suite on a node. Needs the scope `benchmark-runs:write`. */
    create(request: t.BenchmarkRunRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.BenchmarkRun> {
        return this.ask({ method: 'POST', path: '/v1/benchmark-runs', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns a benchmark run with its progress and its figures. Needs the scope `benchmark-runs:read`. */
    get(id: string): Promise<t.BenchmarkRun> {
        return this.ask({ method: 'GET', path: `/v1/benchmark-runs/${encodeURIComponent(id)}` });
    }

    /**
     * Asks again until the state is no longer `waiting` or `running`; rejects with `WaitTimeout` before
     * that.
     */
    wait(id: string, options: Waiting = {}): Promise<t.BenchmarkRun> {
        return this.waitFor({ method: 'GET', path: `/v1/benchmark-runs/${encodeURIComponent(id)}` }, ['waiting', 'running'], options);
    }

    /**
     * Cancels a benchmark run. A waiting run ends at once, any other when its node learns of it. Needs the
     * scope `benchmark-runs:write`.
     */
    cancel(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.BenchmarkRun> {
        return this.ask({ method: 'POST', path: `/v1/benchmark-runs/${encodeURIComponent(id)}:cancel`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Validates the results of a run again, with the present peers and the present catalog. Needs the
     * scope `benchmark-runs:write`.
     */
    validate(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.BenchmarkRun> {
        return this.ask({ method: 'POST', path: `/v1/benchmark-runs/${encodeURIComponent(id)}:validate`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class BenchmarkSuites extends Resource {
    /** Lists every suite that comes with the service. Needs the scope `benchmark-suites:read`. */
    list(): Promise<t.BenchmarkSuitePage> {
        return this.ask({ method: 'GET', path: '/v1/benchmark-suites' });
    }

    /**
     * Returns a suite: its benchmarks, their duration, and the meaning of their figures. Needs the scope
     * `benchmark-suites:read`.
     */
    get(id: string): Promise<t.BenchmarkSuite> {
        return this.ask({ method: 'GET', path: `/v1/benchmark-suites/${encodeURIComponent(id)}` });
    }
}

export class Budgets extends Resource {
    /** Lists the tenant's budgets, with the remaining amount of each. Needs the scope `budgets:read`. */
    list(options: { page_size?: number; page_token?: string; cost_center_id?: string | Array<string> } = {}): Pages<t.BudgetPage, t.BudgetSummary> {
        return this.pages({ method: 'GET', path: '/v1/budgets', query: { page_size: options.page_size, page_token: options.page_token, cost_center_id: options.cost_center_id } });
    }

    /** Creates a budget of a cost centre under an unused id. Needs the scope `budgets:write`. */
    create(request: t.BudgetRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Budget> {
        return this.ask({ method: 'POST', path: '/v1/budgets', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns a budget: its committed, spent and remaining amounts, and its commitments. Needs the scope
     * `budgets:read`.
     */
    get(id: string): Promise<t.Budget> {
        return this.ask({ method: 'GET', path: `/v1/budgets/${encodeURIComponent(id)}` });
    }

    /**
     * Changes terms of a budget, if its version matches the ETag. Its period cannot change.
     *
     * A larger amount, or enforcement that no longer blocks, waits (202) for approval or the end of the
     * tenant's delay. Needs the scope `budgets:write`.
     */
    update(id: string, request: t.BudgetPatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.Budget | t.PolicyChange> {
        return this.ask({ method: 'PATCH', path: `/v1/budgets/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes a budget from which no approval has committed, if its version matches the ETag.
     *
     * The deletion waits (202) for approval or the end of the tenant's delay. Without a delay it is
     * immediate (204). Needs the scope `budgets:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.PolicyChange | void> {
        return this.ask({ method: 'DELETE', path: `/v1/budgets/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns commitments and billed charges of a budget as CSV in the columns of FOCUS 1.2.
     *
     * Commitments have the tag `estimate`; `x_LineName` is `committed` or `charged`. An amount that is
     * committed and then billed is in both. Needs the scope `budgets:read`.
     */
    getFocus(id: string): Promise<string> {
        return this.ask({ method: 'GET', path: `/v1/budgets/${encodeURIComponent(id)}/focus` });
    }
}

export class Calibrations extends Resource {
    /** Lists the tenant's calibrations, the newest first. Needs the scope `calibrations:read`. */
    list(options: { page_size?: number; page_token?: string; state?: t.CalibrationState | Array<t.CalibrationState>; origin?: t.CalibrationOrigin | Array<t.CalibrationOrigin>; device?: t.DeviceKind | Array<t.DeviceKind>; node_id?: string | Array<string>; accelerator_id?: string | Array<string> } = {}): Pages<t.CalibrationPage, t.Calibration> {
        return this.pages({ method: 'GET', path: '/v1/calibrations', query: { page_size: options.page_size, page_token: options.page_token, state: options.state, origin: options.origin, device: options.device, node_id: options.node_id, accelerator_id: options.accelerator_id } });
    }

    /**
     * Withdraws all calibrations of a node, because the node proved bad.
     *
     * Its next runs make new calibrations. Needs the scope `calibrations:write`.
     */
    withdrawNode(request: t.NodeCalibrationWithdrawalRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.WithdrawnCalibrations> {
        return this.ask({ method: 'POST', path: '/v1/calibrations:withdraw', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns a calibration: every figure, and the results, runs and conditions behind it. Needs the scope
     * `calibrations:read`.
     */
    get(id: string): Promise<t.CalibrationDetails> {
        return this.ask({ method: 'GET', path: `/v1/calibrations/${encodeURIComponent(id)}` });
    }

    /**
     * Withdraws a calibration permanently. The calibration that it superseded counts again.
     *
     * Its results are never used for a calibration again. Needs the scope `calibrations:write`.
     */
    withdraw(id: string, request: t.CalibrationWithdrawalRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Calibration> {
        return this.ask({ method: 'POST', path: `/v1/calibrations/${encodeURIComponent(id)}:withdraw`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class CostCenters extends Resource {
    /** Lists the tenant's cost centres. Needs the scope `cost-centers:read`. */
    list(options: { page_size?: number; page_token?: string } = {}): Pages<t.CostCenterPage, t.CostCenter> {
        return this.pages({ method: 'GET', path: '/v1/cost-centers', query: { page_size: options.page_size, page_token: options.page_token } });
    }

    /** Creates a cost centre under an unused id. Needs the scope `cost-centers:write`. */
    create(request: t.CostCenterRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.CostCenter> {
        return this.ask({ method: 'POST', path: '/v1/cost-centers', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns a cost centre. Needs the scope `cost-centers:read`. */
    get(id: string): Promise<t.CostCenter> {
        return this.ask({ method: 'GET', path: `/v1/cost-centers/${encodeURIComponent(id)}` });
    }

    /**
     * Changes members of a cost centre, if its version matches the ETag. Needs the scope `cost-
     * centers:write`.
     */
    update(id: string, request: t.CostCenterPatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.CostCenter> {
        return this.ask({ method: 'PATCH', path: `/v1/cost-centers/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes a cost centre that has no budgets, if its version matches the ETag. Needs the scope `cost-
     * centers:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/cost-centers/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class EnrolmentTokens extends Resource {
    /** Lists the tenant's enrolment tokens, without their secrets. Needs the scope `enrolment-tokens:read`. */
    list(options: { page_size?: number; page_token?: string } = {}): Pages<t.EnrolmentTokenPage, t.EnrolmentToken> {
        return this.pages({ method: 'GET', path: '/v1/enrolment-tokens', query: { page_size: options.page_size, page_token: options.page_token } });
    }

    /**
     * Creates a token by which one node enrols, once. The secret is shown only in this answer. Needs the
     * scope `enrolment-tokens:write`.
     */
    create(request: t.EnrolmentTokenRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.IssuedEnrolmentToken> {
        return this.ask({ method: 'POST', path: '/v1/enrolment-tokens', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns an enrolment token, without its secret. Needs the scope `enrolment-tokens:read`. */
    get(id: string): Promise<t.EnrolmentToken> {
        return this.ask({ method: 'GET', path: `/v1/enrolment-tokens/${encodeURIComponent(id)}` });
    }

    /**
     * Deletes an enrolment token. A node that has enrolled by it stays. Needs the scope `enrolment-
     * tokens:write`.
     */
    delete(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/enrolment-tokens/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Estimates extends Resource {
    /**
     * Estimates fit, users, speed, price and bill of a model on hardware, from a few members. Needs the
     * scope `estimates:read`.
     */
    summary(request: t.SummaryRequest, options: Estimating = {}): Promise<t.SummaryEstimate> {
        return this.ask({ method: 'POST', path: '/v1/estimates/summary', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Estimates the memory of the fullest device by component, and whether it fits. Needs the scope
     * `estimates:read`.
     */
    memory(request: t.MemoryEstimateRequest, options: Estimating = {}): Promise<t.MemoryEstimate> {
        return this.ask({ method: 'POST', path: '/v1/estimates/memory', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Estimates memory for several questions, in order and from one catalog revision. Needs the scope
     * `estimates:read`.
     */
    memoryBatch(request: t.MemoryEstimateBatchRequest, options: Estimating = {}): Promise<t.MemoryEstimateList> {
        return this.ask({ method: 'POST', path: '/v1/estimates/memory:batch', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Estimates rates, the phases of the time, and the limit of the speed. Needs the scope
     * `estimates:read`.
     */
    throughput(request: t.ThroughputEstimateRequest, options: Estimating = {}): Promise<t.ThroughputEstimate> {
        return this.ask({ method: 'POST', path: '/v1/estimates/throughput', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Estimates throughput for several questions, in order and from one catalog revision. Needs the scope
     * `estimates:read`.
     */
    throughputBatch(request: t.ThroughputEstimateBatchRequest, options: Estimating = {}): Promise<t.ThroughputEstimateList> {
        return this.ask({ method: 'POST', path: '/v1/estimates/throughput:batch', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Searches the best configurations: the Pareto set of tokens per second by device and by user. Needs
     * the scope `estimates:read`.
     */
    throughputFrontier(request: t.ThroughputFrontierRequest, options: Estimating = {}): Promise<t.ThroughputFrontier> {
        return this.ask({ method: 'POST', path: '/v1/estimates/throughput:frontier', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /** Estimates device-hours, charges, and the cost of a million tokens. Needs the scope `estimates:read`. */
    cost(request: t.CostEstimateRequest, options: Estimating = {}): Promise<t.CostEstimate> {
        return this.ask({ method: 'POST', path: '/v1/estimates/cost', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Estimates cost for several questions, in order and from one catalog revision. Needs the scope
     * `estimates:read`.
     */
    costBatch(request: t.CostEstimateBatchRequest, options: Estimating = {}): Promise<t.CostEstimateList> {
        return this.ask({ method: 'POST', path: '/v1/estimates/cost:batch', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Exports the charges of an estimate as CSV, in the columns of FOCUS 1.2; a row by charge and month.
     * Needs the scope `estimates:read`.
     */
    costExport(request: t.CostExportRequest, options: Estimating = {}): Promise<string> {
        return this.ask({ method: 'POST', path: '/v1/estimates/cost:export', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Compares ways of doing the same work: time, device-hours and cost against a baseline. Needs the
     * scope `estimates:read`.
     */
    costComparison(request: t.CostComparisonRequest, options: Estimating = {}): Promise<t.CostComparisonEstimate> {
        return this.ask({ method: 'POST', path: '/v1/estimates/cost:compare', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Estimates the energy, electricity, carbon, water, rent and purchase of a run. Needs the scope
     * `estimates:read`.
     */
    utilityBill(request: t.UtilityBillRequest, options: Estimating = {}): Promise<t.UtilityBill> {
        return this.ask({ method: 'POST', path: '/v1/estimates/utility-bill', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Estimates utility bills for several questions, in order and from one catalog revision. Needs the
     * scope `estimates:read`.
     */
    utilityBillBatch(request: t.UtilityBillBatchRequest, options: Estimating = {}): Promise<t.UtilityBillList> {
        return this.ask({ method: 'POST', path: '/v1/estimates/utility-bill:batch', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Exports the electricity of a run as CSV, in the columns of FOCUS 1.2; a row by charge and period.
     * Needs the scope `estimates:read`.
     */
    utilityBillExport(request: t.UtilityBillExportRequest, options: Estimating = {}): Promise<string> {
        return this.ask({ method: 'POST', path: '/v1/estimates/utility-bill:export', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Compares every start of a window by tariff and grid: the cheapest and the cleanest. Needs the scope
     * `estimates:read`.
     */
    utilityBillShift(request: t.StartShiftEstimateRequest, options: Estimating = {}): Promise<t.StartShiftEstimate> {
        return this.ask({ method: 'POST', path: '/v1/estimates/utility-bill:shift', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Compares buildings side by side: the cheapest, the cleanest, and that with least water. Needs the
     * scope `estimates:read`.
     */
    utilityBillComparison(request: t.SiteComparisonRequest, options: Estimating = {}): Promise<t.SiteComparisonEstimate> {
        return this.ask({ method: 'POST', path: '/v1/estimates/utility-bill:compare', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /**
     * Estimates the time and the money that a training run takes below the power limit of its devices.
     * Needs the scope `estimates:read`.
     */
    utilityBillPowerCap(request: t.PowerCapEstimateRequest, options: Estimating = {}): Promise<t.PowerCapEstimate> {
        return this.ask({ method: 'POST', path: '/v1/estimates/utility-bill:cap', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }
}

export class Evidence extends Resource {
    /** Lists the tenant's imports, the newest first. Needs the scope `evidence:read`. */
    list(options: { page_size?: number; page_token?: string; format?: t.EvidenceFormat | Array<t.EvidenceFormat> } = {}): Pages<t.EvidencePage, t.EvidenceSummary> {
        return this.pages({ method: 'GET', path: '/v1/evidence', query: { page_size: options.page_size, page_token: options.page_token, format: options.format } });
    }

    /**
     * Imports a file of measurements as evidence of the tenant, in the format of the program that wrote
     * it.
     *
     * Figures of whole runs move the tenant's estimates; transfers, collectives and rates become figures
     * of the device. Parts that cannot count are refused with the reason. The file itself is not stored.
     * Needs the scope `evidence:write`.
     */
    import(request: t.EvidenceImportRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ImportedEvidence> {
        return this.ask({ method: 'POST', path: '/v1/evidence:import', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns an import: the figures that were read, those that count, and the parts that were refused.
     * Needs the scope `evidence:read`.
     */
    get(id: string): Promise<t.ImportedEvidence> {
        return this.ask({ method: 'GET', path: `/v1/evidence/${encodeURIComponent(id)}` });
    }

    /**
     * Withdraws an import, which no longer counts. Estimates are then as they were without it. Needs the
     * scope `evidence:write`.
     */
    withdraw(id: string, request: t.EvidenceWithdrawalRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ImportedEvidence> {
        return this.ask({ method: 'POST', path: `/v1/evidence/${encodeURIComponent(id)}:withdraw`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class ExchangeRates extends Resource {
    /** Lists the exchange rates that match every filter. Needs the scope `exchange-rates:read`. */
    list(options: { page_size?: number; page_token?: string; order_by?: t.CatalogRowOrder; id?: string | Array<string>; q?: string; from_currency_code?: string | Array<string>; to_currency_code?: string | Array<string> } = {}): Pages<t.ExchangeRatePage, t.ExchangeRate> {
        return this.pages({ method: 'GET', path: '/v1/exchange-rates', query: { page_size: options.page_size, page_token: options.page_token, order_by: options.order_by, id: options.id, q: options.q, from_currency_code: options.from_currency_code, to_currency_code: options.to_currency_code } });
    }

    /** Creates an exchange rate under an unused id. Needs the scope `exchange-rates:write`. */
    create(request: t.ExchangeRateRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ExchangeRate> {
        return this.ask({ method: 'POST', path: '/v1/exchange-rates', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns the current version of an exchange rate. Needs the scope `exchange-rates:read`. */
    get(id: string): Promise<t.ExchangeRate> {
        return this.ask({ method: 'GET', path: `/v1/exchange-rates/${encodeURIComponent(id)}` });
    }

    /**
     * Changes members of an exchange rate, if its version matches the ETag. Needs the scope `exchange-
     * rates:write`.
     */
    update(id: string, request: t.ExchangeRatePatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.ExchangeRate> {
        return this.ask({ method: 'PATCH', path: `/v1/exchange-rates/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes an exchange rate that no row refers to, if its version matches the ETag. Needs the scope
     * `exchange-rates:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/exchange-rates/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Copies an exchange rate into the tenant's own rows. Under the id of a shipped row it replaces that
     * row. Needs the scope `exchange-rates:write`.
     */
    copy(id: string, request: t.CatalogRowCopyRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ExchangeRate> {
        return this.ask({ method: 'POST', path: `/v1/exchange-rates/${encodeURIComponent(id)}:copy`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Grids extends Resource {
    /** Lists the grids that match every filter. Needs the scope `grids:read`. */
    list(options: { page_size?: number; page_token?: string; order_by?: t.CatalogRowOrder; id?: string | Array<string>; q?: string; code?: string | Array<string>; kind?: t.GridKind | Array<t.GridKind>; accounting?: t.EmissionAccounting | Array<t.EmissionAccounting>; emission_rate?: t.EmissionRate | Array<t.EmissionRate>; max_carbon_intensity_kg_co2e_per_kwh?: number } = {}): Pages<t.GridPage, t.Grid> {
        return this.pages({ method: 'GET', path: '/v1/grids', query: { page_size: options.page_size, page_token: options.page_token, order_by: options.order_by, id: options.id, q: options.q, code: options.code, kind: options.kind, accounting: options.accounting, emission_rate: options.emission_rate, max_carbon_intensity_kg_co2e_per_kwh: options.max_carbon_intensity_kg_co2e_per_kwh } });
    }

    /** Creates a grid under an unused id. Needs the scope `grids:write`. */
    create(request: t.GridRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Grid> {
        return this.ask({ method: 'POST', path: '/v1/grids', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns the current version of a grid. Needs the scope `grids:read`. */
    get(id: string): Promise<t.Grid> {
        return this.ask({ method: 'GET', path: `/v1/grids/${encodeURIComponent(id)}` });
    }

    /** Changes members of a grid, if its version matches the ETag. Needs the scope `grids:write`. */
    update(id: string, request: t.GridPatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.Grid> {
        return this.ask({ method: 'PATCH', path: `/v1/grids/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes a grid that no row refers to, if its version matches the ETag. Needs the scope
     * `grids:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/grids/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Creates a grid with its intensity over time from a published table. Needs the scope `grids:write`. */
    import(request: t.GridImportRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ImportedGrid> {
        return this.ask({ method: 'POST', path: '/v1/grids:import', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Copies a grid into the tenant's own rows. Under the id of a shipped row it replaces that row. Needs
     * the scope `grids:write`.
     */
    copy(id: string, request: t.CatalogRowCopyRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Grid> {
        return this.ask({ method: 'POST', path: `/v1/grids/${encodeURIComponent(id)}:copy`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class HardwarePrices extends Resource {
    /** Lists the hardware prices that match every filter. Needs the scope `hardware-prices:read`. */
    list(options: { page_size?: number; page_token?: string; order_by?: t.CatalogRowOrder; id?: string | Array<string>; q?: string; accelerator_id?: string | Array<string> } = {}): Pages<t.HardwarePricePage, t.HardwarePrice> {
        return this.pages({ method: 'GET', path: '/v1/hardware-prices', query: { page_size: options.page_size, page_token: options.page_token, order_by: options.order_by, id: options.id, q: options.q, accelerator_id: options.accelerator_id } });
    }

    /** Creates a hardware price under an unused id. Needs the scope `hardware-prices:write`. */
    create(request: t.HardwarePriceRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.HardwarePrice> {
        return this.ask({ method: 'POST', path: '/v1/hardware-prices', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns the current version of a hardware price. Needs the scope `hardware-prices:read`. */
    get(id: string): Promise<t.HardwarePrice> {
        return this.ask({ method: 'GET', path: `/v1/hardware-prices/${encodeURIComponent(id)}` });
    }

    /**
     * Changes members of a hardware price, if its version matches the ETag. Needs the scope `hardware-
     * prices:write`.
     */
    update(id: string, request: t.HardwarePricePatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.HardwarePrice> {
        return this.ask({ method: 'PATCH', path: `/v1/hardware-prices/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes a hardware price that no row refers to, if its version matches the ETag. Needs the scope
     * `hardware-prices:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/hardware-prices/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Copies a hardware price into the tenant's own rows. Under the id of a shipped row it replaces that
     * row. Needs the scope `hardware-prices:write`.
     */
    copy(id: string, request: t.CatalogRowCopyRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.HardwarePrice> {
        return this.ask({ method: 'POST', path: `/v1/hardware-prices/${encodeURIComponent(id)}:copy`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Leases extends Resource {
    /**
     * Claims a benchmark run, and waits for one if necessary. A repeated claim returns the same lease.
     * Needs the scope `leases:claim`.
     */
    claim(request: t.LeaseClaimRequest): Promise<t.BenchmarkLease | void> {
        return this.ask({ method: 'POST', path: '/v1/leases:claim', body: request });
    }

    /** Renews a lease. Refused if it has ended or was granted again. Needs the scope `leases:claim`. */
    renew(id: string, request: t.LeaseRenewalRequest): Promise<t.LeaseRenewal> {
        return this.ask({ method: 'POST', path: `/v1/leases/${encodeURIComponent(id)}:renew`, body: request });
    }

    /**
     * Completes a lease once every result that it names is stored. Only for the node that holds it. Needs
     * the scope `leases:claim`.
     */
    complete(id: string, request: t.LeaseCompletionRequest): Promise<t.LeaseCompletion> {
        return this.ask({ method: 'POST', path: `/v1/leases/${encodeURIComponent(id)}:complete`, body: request });
    }
}

export class Links extends Resource {
    /** Lists the links that match every filter. Needs the scope `links:read`. */
    list(options: { page_size?: number; page_token?: string; order_by?: t.CatalogRowOrder; id?: string | Array<string>; q?: string; kind?: t.LinkKind | Array<t.LinkKind>; scope?: t.LinkScope | Array<t.LinkScope>; min_bandwidth_bytes_per_second?: number } = {}): Pages<t.LinkPage, t.Link> {
        return this.pages({ method: 'GET', path: '/v1/links', query: { page_size: options.page_size, page_token: options.page_token, order_by: options.order_by, id: options.id, q: options.q, kind: options.kind, scope: options.scope, min_bandwidth_bytes_per_second: options.min_bandwidth_bytes_per_second } });
    }

    /** Creates a link under an unused id. Needs the scope `links:write`. */
    create(request: t.LinkRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Link> {
        return this.ask({ method: 'POST', path: '/v1/links', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns the current version of a link. Needs the scope `links:read`. */
    get(id: string): Promise<t.Link> {
        return this.ask({ method: 'GET', path: `/v1/links/${encodeURIComponent(id)}` });
    }

    /** Changes members of a link, if its version matches the ETag. Needs the scope `links:write`. */
    update(id: string, request: t.LinkPatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.Link> {
        return this.ask({ method: 'PATCH', path: `/v1/links/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes a link that no row refers to, if its version matches the ETag. Needs the scope
     * `links:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/links/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Copies a link into the tenant's own rows. Under the id of a shipped row it replaces that row. Needs
     * the scope `links:write`.
     */
    copy(id: string, request: t.CatalogRowCopyRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Link> {
        return this.ask({ method: 'POST', path: `/v1/links/${encodeURIComponent(id)}:copy`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Models extends Resource {
    /** Lists the models that match every filter. Needs the scope `models:read`. */
    list(options: { page_size?: number; page_token?: string; order_by?: t.CatalogRowOrder; id?: string | Array<string>; q?: string; min_parameter_count?: number; max_parameter_count?: number } = {}): Pages<t.ModelPage, t.Model> {
        return this.pages({ method: 'GET', path: '/v1/models', query: { page_size: options.page_size, page_token: options.page_token, order_by: options.order_by, id: options.id, q: options.q, min_parameter_count: options.min_parameter_count, max_parameter_count: options.max_parameter_count } });
    }

    /** Creates a model under an unused id. Needs the scope `models:write`. */
    create(request: t.ModelRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Model> {
        return this.ask({ method: 'POST', path: '/v1/models', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns the current version of a model. Needs the scope `models:read`. */
    get(id: string): Promise<t.Model> {
        return this.ask({ method: 'GET', path: `/v1/models/${encodeURIComponent(id)}` });
    }

    /** Changes members of a model, if its version matches the ETag. Needs the scope `models:write`. */
    update(id: string, request: t.ModelPatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.Model> {
        return this.ask({ method: 'PATCH', path: `/v1/models/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes a model that no row refers to, if its version matches the ETag. Needs the scope
     * `models:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/models/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Creates a model from a published Hugging Face config.json. Needs the scope `models:write`. */
    import(request: t.ModelImportRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ImportedModel> {
        return this.ask({ method: 'POST', path: '/v1/models:import', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Copies a model into the tenant's own rows. Under the id of a shipped row it replaces that row. Needs
     * the scope `models:write`.
     */
    copy(id: string, request: t.CatalogRowCopyRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Model> {
        return this.ask({ method: 'POST', path: `/v1/models/${encodeURIComponent(id)}:copy`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Nodes extends Resource {
    /** Enrols a node by its token. Repeated before the credential was used, it returns a fresh one. */
    enrol(request: t.NodeEnrolmentRequest): Promise<t.NodeEnrolment> {
        return this.ask({ method: 'POST', path: '/v1/nodes:enrol', body: request });
    }

    /** Lists the tenant's nodes. Needs the scope `nodes:read`. */
    list(options: { page_size?: number; page_token?: string; state?: t.NodeState | Array<t.NodeState>; device?: t.DeviceKind | Array<t.DeviceKind> } = {}): Pages<t.NodePage, t.Node> {
        return this.pages({ method: 'GET', path: '/v1/nodes', query: { page_size: options.page_size, page_token: options.page_token, state: options.state, device: options.device } });
    }

    /** Returns a node with its inventory and the run that it is running. Needs the scope `nodes:read`. */
    get(id: string): Promise<t.Node> {
        return this.ask({ method: 'GET', path: `/v1/nodes/${encodeURIComponent(id)}` });
    }

    /** Drains a node: it finishes its suite and gets no other. Needs the scope `nodes:write`. */
    drain(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Node> {
        return this.ask({ method: 'POST', path: `/v1/nodes/${encodeURIComponent(id)}:drain`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Resumes a node, which gets runs again. A node whose credential was reused has to enrol again. Needs
     * the scope `nodes:write`.
     */
    resume(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Node> {
        return this.ask({ method: 'POST', path: `/v1/nodes/${encodeURIComponent(id)}:resume`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Lets the host of a quarantined or revoked node enrol again. The node keeps its state until then.
     * Needs the scope `nodes:write`.
     */
    readmit(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Node> {
        return this.ask({ method: 'POST', path: `/v1/nodes/${encodeURIComponent(id)}:readmit`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Quarantines a node: ends its lease and bars its host. Results that it still has are accepted. Needs
     * the scope `nodes:write`.
     */
    quarantine(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Node> {
        return this.ask({ method: 'POST', path: `/v1/nodes/${encodeURIComponent(id)}:quarantine`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Revokes a node permanently: nothing is accepted from it, and its host is barred. Its results stay.
     * Needs the scope `nodes:write`.
     */
    revoke(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Node> {
        return this.ask({ method: 'POST', path: `/v1/nodes/${encodeURIComponent(id)}:revoke`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Requests that a node replaces its credential at its next heartbeat. Needs the scope `nodes:write`. */
    requestRotation(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Node> {
        return this.ask({ method: 'POST', path: `/v1/nodes/${encodeURIComponent(id)}:request-rotation`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns the next credential of the calling node. The previous one works until the new one is used.
     * Needs the scope `leases:claim`.
     */
    rotateCredential(id: string): Promise<t.IssuedNodeCredential> {
        return this.ask({ method: 'POST', path: `/v1/nodes/${encodeURIComponent(id)}:rotate` });
    }

    /** Stores the inventory of the calling node. Needs the scope `leases:claim`. */
    putInventory(id: string, request: t.NodeInventory): Promise<t.NodeInventoryReceipt> {
        return this.ask({ method: 'PUT', path: `/v1/nodes/${encodeURIComponent(id)}/inventory`, body: request });
    }

    /**
     * Records that the calling node is alive, and returns instructions to it. Needs the scope
     * `leases:claim`.
     */
    heartbeat(id: string, request: t.NodeHeartbeatRequest): Promise<t.NodeInstructions> {
        return this.ask({ method: 'POST', path: `/v1/nodes/${encodeURIComponent(id)}:heartbeat`, body: request });
    }
}

export class Offers extends Resource {
    /** Lists the offers that match every filter. Needs the scope `offers:read`. */
    list(options: { page_size?: number; page_token?: string; order_by?: t.CatalogRowOrder; id?: string | Array<string>; q?: string; provider?: string | Array<string>; region?: string | Array<string>; accelerator_id?: string | Array<string>; purchase_option?: t.PurchaseOption | Array<t.PurchaseOption> } = {}): Pages<t.OfferPage, t.Offer> {
        return this.pages({ method: 'GET', path: '/v1/offers', query: { page_size: options.page_size, page_token: options.page_token, order_by: options.order_by, id: options.id, q: options.q, provider: options.provider, region: options.region, accelerator_id: options.accelerator_id, purchase_option: options.purchase_option } });
    }

    /** Creates an offer under an unused id. Needs the scope `offers:write`. */
    create(request: t.OfferRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Offer> {
        return this.ask({ method: 'POST', path: '/v1/offers', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns the current version of an offer. Needs the scope `offers:read`. */
    get(id: string): Promise<t.Offer> {
        return this.ask({ method: 'GET', path: `/v1/offers/${encodeURIComponent(id)}` });
    }

    /** Changes members of an offer, if its version matches the ETag. Needs the scope `offers:write`. */
    update(id: string, request: t.OfferPatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.Offer> {
        return this.ask({ method: 'PATCH', path: `/v1/offers/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes an offer that no row refers to, if its version matches the ETag. Needs the scope
     * `offers:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/offers/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Creates or updates the offers of a price list in the format of its publisher, all or none of them.
     * Needs the scope `offers:write`.
     */
    import(request: t.OfferImportRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ImportedOffers> {
        return this.ask({ method: 'POST', path: '/v1/offers:import', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Copies an offer into the tenant's own rows. Under the id of a shipped row it replaces that row.
     * Needs the scope `offers:write`.
     */
    copy(id: string, request: t.CatalogRowCopyRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Offer> {
        return this.ask({ method: 'POST', path: `/v1/offers/${encodeURIComponent(id)}:copy`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Plans extends Resource {
    /** Lists the tenant's plans, the newest first, without their answers. Needs the scope `plans:read`. */
    list(options: { page_size?: number; page_token?: string; state?: t.PlanState | Array<t.PlanState>; goal?: t.StoredPlanGoal | Array<t.StoredPlanGoal> } = {}): Pages<t.PlanPage, t.Plan> {
        return this.pages({ method: 'GET', path: '/v1/plans', query: { page_size: options.page_size, page_token: options.page_token, state: options.state, goal: options.goal } });
    }

    /**
     * Searches for the best configuration for some work, by a goal and under constraints.
     *
     * A small search is answered at once (200). A large search, and a small one that is not answered
     * within a second, runs in the background (202): get the plan at `Location` until its `state` is no
     * longer `running`. Needs the scope `plans:write`.
     */
    create(request: t.PlanRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Plan> {
        return this.ask({ method: 'POST', path: '/v1/plans', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns a plan: the progress of its search and, once it is done, its answer. Needs the scope
     * `plans:read`.
     */
    get(id: string): Promise<t.Plan> {
        return this.ask({ method: 'GET', path: `/v1/plans/${encodeURIComponent(id)}` });
    }

    /** Asks again until the state is no longer `running`; rejects with `WaitTimeout` before that. */
    wait(id: string, options: Waiting = {}): Promise<t.Plan> {
        return this.waitFor({ method: 'GET', path: `/v1/plans/${encodeURIComponent(id)}` }, ['running'], options);
    }

    /**
     * Deletes a plan and ends its search. Quotes of its rows keep their frozen content. Needs the scope
     * `plans:write`.
     */
    delete(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/plans/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Cancels a search, which ends without an answer after its present piece. Needs the scope
     * `plans:write`.
     */
    cancel(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Plan> {
        return this.ask({ method: 'POST', path: `/v1/plans/${encodeURIComponent(id)}:cancel`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Plans several workloads over pools of devices and a budget: place, devices and time of each.
     *
     * A fleet that is not answered within a second runs in the background (202), if the caller has the
     * scope `plans:write`: get the plan at `Location` until its `state` is no longer `running`. Only such
     * a fleet is stored. A caller without that scope gets the answer within five seconds, or 503, and an
     * Idempotency-Key has no effect. A tenant that has as many searches as may run gets it within five
     * seconds, or 409 `TOO_MANY_PLANS`. Needs the scope `plans:read`.
     */
    fleet(request: t.FleetPlanRequest, options: Deciding & Estimating & { validate_only?: boolean } = {}): Promise<t.FleetPlan | t.Plan> {
        return this.ask({ method: 'POST', path: '/v1/plans:fleet', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID(), is_estimate: true, catalog_revision: options.catalog_revision });
    }
}

export class PolicyChanges extends Resource {
    /**
     * Lists the tenant's changes of policies, budgets and the delay, the newest first. Needs the scope
     * `policy-changes:read`.
     */
    list(options: { page_size?: number; page_token?: string; state?: t.PolicyChangeState | Array<t.PolicyChangeState> } = {}): Pages<t.PolicyChangePage, t.PolicyChange> {
        return this.pages({ method: 'GET', path: '/v1/policy-changes', query: { page_size: options.page_size, page_token: options.page_token, state: options.state } });
    }

    /**
     * Returns a change: the terms after it, its author, and the time at which it takes effect. Needs the
     * scope `policy-changes:read`.
     */
    get(id: string): Promise<t.PolicyChange> {
        return this.ask({ method: 'GET', path: `/v1/policy-changes/${encodeURIComponent(id)}` });
    }

    /** Asks again until the state is no longer `waiting`; rejects with `WaitTimeout` before that. */
    wait(id: string, options: Waiting = {}): Promise<t.PolicyChange> {
        return this.waitFor({ method: 'GET', path: `/v1/policy-changes/${encodeURIComponent(id)}` }, ['waiting'], options);
    }

    /**
     * Approves a change, as an approver of the policies in force. With every quorum it takes effect at
     * once.
     *
     * A policy that gives up quotes or signatures of its own needs the approvers of its steps. Any other
     * change needs those of every policy; a change of a budget needs those of the policies that can apply
     * to its cost centre. The author of a change never counts. Needs the scope `policy-changes:write`.
     */
    approve(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.PolicyChange> {
        return this.ask({ method: 'POST', path: `/v1/policy-changes/${encodeURIComponent(id)}:approve`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Rejects a change, whoever proposed it. The present terms stay, and a new change can be proposed.
     * Needs the scope `policy-changes:write`.
     */
    reject(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.PolicyChange> {
        return this.ask({ method: 'POST', path: `/v1/policy-changes/${encodeURIComponent(id)}:reject`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Quotes extends Resource {
    /**
     * Lists the tenant's quotes in their newest version, the last frozen first. Needs the scope
     * `quotes:read`.
     */
    list(options: { page_size?: number; page_token?: string; state?: t.QuoteState | Array<t.QuoteState>; operation?: t.QuotedOperation | Array<t.QuotedOperation>; cost_center_id?: string | Array<string> } = {}): Pages<t.QuotePage, t.QuoteSummary> {
        return this.pages({ method: 'GET', path: '/v1/quotes', query: { page_size: options.page_size, page_token: options.page_token, state: options.state, operation: options.operation, cost_center_id: options.cost_center_id } });
    }

    /**
     * Freezes an estimate or a row of a plan as a quote. The service computes all figures itself.
     *
     * The questions within the requested one are answered with it, all under one catalog revision. Needs
     * the scope `quotes:write`.
     */
    create(request: t.QuoteRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Quote> {
        return this.ask({ method: 'POST', path: '/v1/quotes', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns a version of a quote with its requests, answers and prices as they were frozen. Needs the
     * scope `quotes:read`.
     */
    get(id: string, options: { version?: number } = {}): Promise<t.Quote> {
        return this.ask({ method: 'GET', path: `/v1/quotes/${encodeURIComponent(id)}`, query: { version: options.version } });
    }

    /** Lists the versions of a quote, the newest first. Needs the scope `quotes:read`. */
    getVersions(id: string, options: { page_size?: number; page_token?: string } = {}): Pages<t.QuotePage, t.QuoteSummary> {
        return this.pages({ method: 'GET', path: `/v1/quotes/${encodeURIComponent(id)}/versions`, query: { page_size: options.page_size, page_token: options.page_token } });
    }

    /**
     * Answers a quote anew under the present catalog, as its next version. Earlier versions stay.
     *
     * Refused while an approval of the quote is pending: amend the quote to restart its approval. Of
     * several concurrent requests on one version, one succeeds and the others are refused. Needs the scope
     * `quotes:write`.
     */
    reprice(id: string, request: t.QuoteRepriceRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Quote> {
        return this.ask({ method: 'POST', path: `/v1/quotes/${encodeURIComponent(id)}:reprice`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Compares a quote with its preceding version or another quote: question, prices and figures. Needs
     * the scope `quotes:read`.
     */
    compare(id: string, options: { version?: number; base_id?: string; base_version?: number } = {}): Promise<t.QuoteComparison> {
        return this.ask({ method: 'GET', path: `/v1/quotes/${encodeURIComponent(id)}:compare`, query: { version: options.version, base_id: options.base_id, base_version: options.base_version } });
    }

    /**
     * Returns the charges of a version as CSV in the columns of FOCUS 1.2, tagged with the quote.
     *
     * A quote whose run has no start, or whose total is unknown, has no such rows. Needs the scope
     * `quotes:read`.
     */
    getFocus(id: string, options: { version?: number } = {}): Promise<string> {
        return this.ask({ method: 'GET', path: `/v1/quotes/${encodeURIComponent(id)}/focus`, query: { version: options.version } });
    }

    /**
     * Submits the newest version of a quote for approval by the approvers of the matching policies.
     *
     * With `validate_only` the answer names the approvers, and nothing is submitted. Needs the scope
     * `quotes:write`.
     */
    submit(id: string, request: t.QuoteSubmissionRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Approval> {
        return this.ask({ method: 'POST', path: `/v1/quotes/${encodeURIComponent(id)}:submit`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Quotes another request as the next version and submits it. Its approval begins anew. Needs the scope
     * `quotes:write`.
     */
    amend(id: string, request: t.QuoteAmendmentRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Approval> {
        return this.ask({ method: 'POST', path: `/v1/quotes/${encodeURIComponent(id)}:amend`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Cancels the approval of a version, even an approved one. Its commitment is released. Needs the scope
     * `quotes:write`.
     */
    cancel(id: string, request: t.QuoteSubmissionRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Approval> {
        return this.ask({ method: 'POST', path: `/v1/quotes/${encodeURIComponent(id)}:cancel`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns a version of a quote as a self-contained page that reads on a phone and prints.
     *
     * It names who approved or rejected the version, and when, to callers that may read approvals. Needs
     * the scope `quotes:read`.
     */
    getReport(id: string, options: { version?: number } = {}): Promise<string> {
        return this.ask({ method: 'GET', path: `/v1/quotes/${encodeURIComponent(id)}/report`, query: { version: options.version } });
    }
}

export class Sessions extends Resource {
    /**
     * Ends every session, token and key of a person of the tenant, within two seconds, everywhere.
     *
     * A person who is still signed in at the issuer can begin another session, unless they are disabled
     * here too. Needs the scope `sessions:write`.
     */
    end(request: t.SessionRevocationRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.SessionRevocation> {
        return this.ask({ method: 'POST', path: '/v1/sessions:end', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Sites extends Resource {
    /** Lists the sites that match every filter. Needs the scope `sites:read`. */
    list(options: { page_size?: number; page_token?: string; order_by?: t.CatalogRowOrder; id?: string | Array<string>; q?: string; grid_id?: string | Array<string>; tariff_id?: string | Array<string> } = {}): Pages<t.SitePage, t.Site> {
        return this.pages({ method: 'GET', path: '/v1/sites', query: { page_size: options.page_size, page_token: options.page_token, order_by: options.order_by, id: options.id, q: options.q, grid_id: options.grid_id, tariff_id: options.tariff_id } });
    }

    /** Creates a site under an unused id. Needs the scope `sites:write`. */
    create(request: t.SiteRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Site> {
        return this.ask({ method: 'POST', path: '/v1/sites', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns the current version of a site. Needs the scope `sites:read`. */
    get(id: string): Promise<t.Site> {
        return this.ask({ method: 'GET', path: `/v1/sites/${encodeURIComponent(id)}` });
    }

    /** Changes members of a site, if its version matches the ETag. Needs the scope `sites:write`. */
    update(id: string, request: t.SitePatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.Site> {
        return this.ask({ method: 'PATCH', path: `/v1/sites/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes a site that no row refers to, if its version matches the ETag. Needs the scope
     * `sites:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/sites/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Copies a site into the tenant's own rows. Under the id of a shipped row it replaces that row. Needs
     * the scope `sites:write`.
     */
    copy(id: string, request: t.CatalogRowCopyRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Site> {
        return this.ask({ method: 'POST', path: `/v1/sites/${encodeURIComponent(id)}:copy`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Tariffs extends Resource {
    /** Bills a load under a tariff: every line of every billing period. Needs the scope `tariffs:read`. */
    bill(request: t.TariffBillRequest, options: Estimating = {}): Promise<t.TariffBill> {
        return this.ask({ method: 'POST', path: '/v1/tariffs:bill', body: request, is_estimate: true, catalog_revision: options.catalog_revision });
    }

    /** Lists the tariffs that match every filter. Needs the scope `tariffs:read`. */
    list(options: { page_size?: number; page_token?: string; order_by?: t.CatalogRowOrder; id?: string | Array<string>; q?: string; name?: string | Array<string>; utility?: string | Array<string>; currency_code?: string | Array<string>; time_zone?: string | Array<string> } = {}): Pages<t.TariffPage, t.Tariff> {
        return this.pages({ method: 'GET', path: '/v1/tariffs', query: { page_size: options.page_size, page_token: options.page_token, order_by: options.order_by, id: options.id, q: options.q, name: options.name, utility: options.utility, currency_code: options.currency_code, time_zone: options.time_zone } });
    }

    /** Creates a tariff under an unused id. Needs the scope `tariffs:write`. */
    create(request: t.TariffRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Tariff> {
        return this.ask({ method: 'POST', path: '/v1/tariffs', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns the current version of a tariff. Needs the scope `tariffs:read`. */
    get(id: string): Promise<t.Tariff> {
        return this.ask({ method: 'GET', path: `/v1/tariffs/${encodeURIComponent(id)}` });
    }

    /** Changes members of a tariff, if its version matches the ETag. Needs the scope `tariffs:write`. */
    update(id: string, request: t.TariffPatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.Tariff> {
        return this.ask({ method: 'PATCH', path: `/v1/tariffs/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes a tariff that no row refers to, if its version matches the ETag. Needs the scope
     * `tariffs:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/tariffs/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Creates a tariff from a rate of OpenEI's utility rate database, or from the prices of a market.
     * Needs the scope `tariffs:write`.
     */
    import(request: t.TariffImportRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ImportedTariff> {
        return this.ask({ method: 'POST', path: '/v1/tariffs:import', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns a tariff as a rate of OpenEI's utility rate database, with the terms that such a rate lacks.
     * Needs the scope `tariffs:read`.
     */
    export(id: string, options: { on?: string } = {}): Promise<t.ExportedTariff> {
        return this.ask({ method: 'GET', path: `/v1/tariffs/${encodeURIComponent(id)}:export`, query: { on: options.on } });
    }

    /**
     * Copies a tariff into the tenant's own rows. Under the id of a shipped row it replaces that row.
     * Needs the scope `tariffs:write`.
     */
    copy(id: string, request: t.CatalogRowCopyRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Tariff> {
        return this.ask({ method: 'POST', path: `/v1/tariffs/${encodeURIComponent(id)}:copy`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Tenants extends Resource {
    /** Lists the tenants of the service. Needs the scope `tenants:read`. */
    list(options: { page_size?: number; page_token?: string } = {}): Pages<t.TenantPage, t.Tenant> {
        return this.pages({ method: 'GET', path: '/v1/tenants', query: { page_size: options.page_size, page_token: options.page_token } });
    }

    /** Creates a tenant. A key with its `tenant_id` gives access to it. Needs the scope `tenants:write`. */
    create(request: t.TenantRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Tenant> {
        return this.ask({ method: 'POST', path: '/v1/tenants', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns a tenant. Needs the scope `tenants:read`. */
    get(id: string): Promise<t.Tenant> {
        return this.ask({ method: 'GET', path: `/v1/tenants/${encodeURIComponent(id)}` });
    }

    /**
     * Disables a tenant: every credential of it is refused. Nothing is deleted. Needs the scope
     * `tenants:write`.
     */
    disable(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Tenant> {
        return this.ask({ method: 'POST', path: `/v1/tenants/${encodeURIComponent(id)}:disable`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Enables a tenant: its credentials are accepted again. Needs the scope `tenants:write`. */
    enable(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.Tenant> {
        return this.ask({ method: 'POST', path: `/v1/tenants/${encodeURIComponent(id)}:enable`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class TokenPrices extends Resource {
    /** Lists the token prices that match every filter. Needs the scope `token-prices:read`. */
    list(options: { page_size?: number; page_token?: string; order_by?: t.CatalogRowOrder; id?: string | Array<string>; q?: string; provider?: string | Array<string>; model_id?: string | Array<string> } = {}): Pages<t.TokenPricePage, t.TokenPrice> {
        return this.pages({ method: 'GET', path: '/v1/token-prices', query: { page_size: options.page_size, page_token: options.page_token, order_by: options.order_by, id: options.id, q: options.q, provider: options.provider, model_id: options.model_id } });
    }

    /** Creates a token price under an unused id. Needs the scope `token-prices:write`. */
    create(request: t.TokenPriceRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.TokenPrice> {
        return this.ask({ method: 'POST', path: '/v1/token-prices', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /** Returns the current version of a token price. Needs the scope `token-prices:read`. */
    get(id: string): Promise<t.TokenPrice> {
        return this.ask({ method: 'GET', path: `/v1/token-prices/${encodeURIComponent(id)}` });
    }

    /**
     * Changes members of a token price, if its version matches the ETag. Needs the scope `token-
     * prices:write`.
     */
    update(id: string, request: t.TokenPricePatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.TokenPrice> {
        return this.ask({ method: 'PATCH', path: `/v1/token-prices/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes a token price that no row refers to, if its version matches the ETag. Needs the scope
     * `token-prices:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/token-prices/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Creates or updates the token prices of a list in the format of its publisher, all or none of them.
     * Needs the scope `token-prices:write`.
     */
    import(request: t.TokenPriceImportRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ImportedTokenPrices> {
        return this.ask({ method: 'POST', path: '/v1/token-prices:import', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Copies a token price into the tenant's own rows. Under the id of a shipped row it replaces that row.
     * Needs the scope `token-prices:write`.
     */
    copy(id: string, request: t.CatalogRowCopyRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.TokenPrice> {
        return this.ask({ method: 'POST', path: `/v1/token-prices/${encodeURIComponent(id)}:copy`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }
}

export class Webhooks extends Resource {
    /**
     * Returns a page of the tenant's webhooks, the newest first, without their secrets. Needs the scope
     * `webhooks:read`.
     */
    list(options: { page_size?: number; page_token?: string } = {}): Pages<t.WebhookPage, t.Webhook> {
        return this.pages({ method: 'GET', path: '/v1/webhooks', query: { page_size: options.page_size, page_token: options.page_token } });
    }

    /**
     * Creates a webhook. The secret that messages are signed with is shown this once.
     *
     * Messages are posted as Standard Webhooks 1.0 specifies, at least once each and in no promised order.
     * Each type of event needs the scope to read what it carries, such as `approvals:read`. Events that
     * the maker of the webhook may no longer read are withheld. Needs the scope `webhooks:write`.
     */
    create(request: t.WebhookRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.IssuedWebhook> {
        return this.ask({ method: 'POST', path: '/v1/webhooks', body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns a webhook and the state of its deliveries, without its secret. Needs the scope
     * `webhooks:read`.
     */
    get(id: string): Promise<t.Webhook> {
        return this.ask({ method: 'GET', path: `/v1/webhooks/${encodeURIComponent(id)}` });
    }

    /**
     * Changes a webhook, enables or disables it, if it is still at the version of the ETag.
     *
     * A caller who changes its URL or its event types must be able to read what those events carry. From
     * then on the webhook is told on the caller's behalf. Needs the scope `webhooks:write`.
     */
    update(id: string, request: t.WebhookPatch, options: Deciding & Changing & { validate_only?: boolean }): Promise<t.Webhook> {
        return this.ask({ method: 'PATCH', path: `/v1/webhooks/${encodeURIComponent(id)}`, body: request, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Deletes a webhook and its deliveries, if it is still at the version of the ETag. Needs the scope
     * `webhooks:write`.
     */
    delete(id: string, options: Deciding & Changing & { validate_only?: boolean }): Promise<void> {
        return this.ask({ method: 'DELETE', path: `/v1/webhooks/${encodeURIComponent(id)}`, query: { validate_only: options.validate_only }, if_match: options.if_match, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Creates the next secret or key of a webhook. Messages are signed with both until the overlap ends.
     * Needs the scope `webhooks:write`.
     */
    rotate(id: string, request: t.WebhookRotationRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.IssuedWebhook> {
        return this.ask({ method: 'POST', path: `/v1/webhooks/${encodeURIComponent(id)}:rotate`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Sends a message of type `webhook.test` to this webhook, whatever its event types are. Needs the
     * scope `webhooks:write`.
     */
    test(id: string, options: Deciding & { validate_only?: boolean } = {}): Promise<t.WebhookDelivery> {
        return this.ask({ method: 'POST', path: `/v1/webhooks/${encodeURIComponent(id)}:test`, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Sends deliveries again that were delivered or given up, under the same ids. Needs the scope
     * `webhooks:write`.
     */
    replay(id: string, request: t.WebhookReplayRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.ReplayedWebhookDeliveries> {
        return this.ask({ method: 'POST', path: `/v1/webhooks/${encodeURIComponent(id)}:replay`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Sends deliveries again that were given up since a time, under the same ids. Needs the scope
     * `webhooks:write`.
     */
    recover(id: string, request: t.WebhookRecoveryRequest, options: Deciding & { validate_only?: boolean } = {}): Promise<t.RecoveredWebhookDeliveries> {
        return this.ask({ method: 'POST', path: `/v1/webhooks/${encodeURIComponent(id)}:recover`, body: request, query: { validate_only: options.validate_only }, idempotency_key: options.idempotency_key ?? crypto.randomUUID() });
    }

    /**
     * Returns a page of the deliveries to a webhook, the newest first, each with its attempts.
     *
     * The caller must be able to read the events that the webhook is told of, or those that `event_type`
     * names. Needs the scope `webhooks:read`.
     */
    listDeliveries(id: string, options: { page_size?: number; page_token?: string; state?: t.WebhookDeliveryState | Array<t.WebhookDeliveryState>; event_type?: t.WebhookEventType | Array<t.WebhookEventType> } = {}): Pages<t.WebhookDeliveryPage, t.WebhookDelivery> {
        return this.pages({ method: 'GET', path: `/v1/webhooks/${encodeURIComponent(id)}/deliveries`, query: { page_size: options.page_size, page_token: options.page_token, state: options.state, event_type: options.event_type } });
    }
}

export class Resources extends Resource {
    readonly accelerators = new Accelerators(this.transport);
    readonly actuals = new Actuals(this.transport);
    readonly apiKeys = new ApiKeys(this.transport);
    readonly approvalDelegations = new ApprovalDelegations(this.transport);
    readonly approvalLinks = new ApprovalLinks(this.transport);
    readonly approvalPolicies = new ApprovalPolicies(this.transport);
    readonly approvalSettings = new ApprovalSettings(this.transport);
    readonly approvals = new Approvals(this.transport);
    readonly auditEvents = new AuditEvents(this.transport);
    readonly backgroundJobs = new BackgroundJobs(this.transport);
    readonly benchmarkResults = new BenchmarkResults(this.transport);
    readonly benchmarkRuns = new BenchmarkRuns(this.transport);
    readonly benchmarkSuites = new BenchmarkSuites(this.transport);
    readonly budgets = new Budgets(this.transport);
    readonly calibrations = new Calibrations(this.transport);
    readonly costCenters = new CostCenters(this.transport);
    readonly enrolmentTokens = new EnrolmentTokens(this.transport);
    readonly estimates = new Estimates(this.transport);
    readonly evidence = new Evidence(this.transport);
    readonly exchangeRates = new ExchangeRates(this.transport);
    readonly grids = new Grids(this.transport);
    readonly hardwarePrices = new HardwarePrices(this.transport);
    readonly leases = new Leases(this.transport);
    readonly links = new Links(this.transport);
    readonly models = new Models(this.transport);
    readonly nodes = new Nodes(this.transport);
    readonly offers = new Offers(this.transport);
    readonly plans = new Plans(this.transport);
    readonly policyChanges = new PolicyChanges(this.transport);
    readonly quotes = new Quotes(this.transport);
    readonly sessions = new Sessions(this.transport);
    readonly sites = new Sites(this.transport);
    readonly tariffs = new Tariffs(this.transport);
    readonly tenants = new Tenants(this.transport);
    readonly tokenPrices = new TokenPrices(this.transport);
    readonly webhooks = new Webhooks(this.transport);
}

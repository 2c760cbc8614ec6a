"""Operations of the service, awaited. Written by `make client-sources`."""

# ruff: noqa: A002, D205, E501
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from .aio import AsyncPages, AsyncResource
from .core import Call, new_key, quoted

if TYPE_CHECKING:
    from . import types as t


class AsyncAccelerators(AsyncResource):
    """Operations of `accelerators`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        order_by: t.CatalogRowOrder | None = None,
        id: str | Sequence[str] | None = None,
        q: str | None = None,
        vendor: str | Sequence[str] | None = None,
        generation: str | Sequence[str] | None = None,
        min_memory_reported_bytes: float | None = None,
        min_memory_bandwidth_bytes_per_second: float | None = None,
        max_power_limit_watts: float | None = None,
    ) -> AsyncPages[t.AcceleratorPage, t.Accelerator]:
        """Lists the accelerators that match every filter. Needs the scope `accelerators:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/accelerators",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "order_by": order_by,
                    "id": id,
                    "q": q,
                    "vendor": vendor,
                    "generation": generation,
                    "min_memory_reported_bytes": min_memory_reported_bytes,
                    "min_memory_bandwidth_bytes_per_second": min_memory_bandwidth_bytes_per_second,
                    "max_power_limit_watts": max_power_limit_watts,
                },
            )
        )

    async def create(
        self,
        request: t.AcceleratorRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Accelerator:
        """Creates an accelerator under an unused id. Needs the scope `accelerators:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/accelerators",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.Accelerator:
        """Returns the current version of an accelerator. Needs the scope `accelerators:read`."""
        return await self._ask(Call("GET", f"/v1/accelerators/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.AcceleratorPatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.Accelerator:
        """Changes members of an accelerator, if its version matches the ETag. Needs the scope
        `accelerators:write`.
        """
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/accelerators/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> None:
        """Deletes an accelerator that no row refers to, if its version matches the ETag. Needs the scope
        `accelerators:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/accelerators/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def copy(
        self,
        id: str,
        request: t.CatalogRowCopyRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Accelerator:
        """Copies an accelerator into the tenant's own rows. Under the id of a shipped row it replaces that
        row. Needs the scope `accelerators:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/accelerators/{quoted(id)}:copy",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncActuals(AsyncResource):
    """Operations of `actuals`."""

    def list(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> AsyncPages[t.ActualsPage, t.Actuals]:
        """Lists the tenant's imported bills, the newest first. Needs the scope `actuals:read`."""
        return self._pages(
            Call("GET", "/v1/actuals", query={"page_size": page_size, "page_token": page_token})
        )

    async def import_(
        self,
        request: t.ActualsImportRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Actuals:
        """Imports a bill as a table in the columns of FOCUS 1.0 to 1.3, to compare with quotes and budgets.

        A charge belongs to the quote that its tag `quote_id` names, and to a cost centre by its quote, tags
        or account. A bill with a wrong row is refused as a whole, with the line and column of each fault. A
        bill that was imported before is refused too, unless `replaces` names the earlier import. Needs the
        scope `actuals:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/actuals:import",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get_accuracy(self) -> t.ActualsAccuracy:
        """Returns how far quotes deviate from their bills: error, bias, and how often the interval held. Needs
        the scope `actuals:read`.
        """
        return await self._ask(Call("GET", "/v1/actuals:accuracy"))

    async def get(self, id: str) -> t.Actuals:
        """Returns an imported bill: its billing periods, its sums, and the number of its rows that matched.
        Needs the scope `actuals:read`.
        """
        return await self._ask(Call("GET", f"/v1/actuals/{quoted(id)}"))

    async def withdraw(
        self,
        id: str,
        request: t.ActualsWithdrawalRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Actuals:
        """Withdraws a bill, which no longer counts. An earlier bill that it replaced does not count again.
        Needs the scope `actuals:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/actuals/{quoted(id)}:withdraw",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get_quote(self, id: str) -> t.QuoteActuals:
        """Returns what was billed for a quote so far, and what was quoted for the time that is billed. Needs
        the scope `actuals:read`.
        """
        return await self._ask(Call("GET", f"/v1/quotes/{quoted(id)}/actuals"))


class AsyncApiKeys(AsyncResource):
    """Operations of `api_keys`."""

    def list(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> AsyncPages[t.ApiKeyPage, t.ApiKey]:
        """Lists the tenant's API keys, without their secrets. Needs the scope `api-keys:read`."""
        return self._pages(
            Call("GET", "/v1/api-keys", query={"page_size": page_size, "page_token": page_token})
        )

    async def create(
        self,
        request: t.ApiKeyRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.IssuedApiKey:
        """Creates a key with at most the rights of its creator. The secret is shown only in this answer. Needs
        the scope `api-keys:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/api-keys",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.ApiKey:
        """Returns a key of the tenant, without its secret. Needs the scope `api-keys:read`."""
        return await self._ask(Call("GET", f"/v1/api-keys/{quoted(id)}"))

    async def revoke(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> None:
        """Revokes a key and the keys made or rotated by it. They stop working within two seconds, everywhere.
        Needs the scope `api-keys:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/api-keys/{quoted(id)}",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def rotate(
        self,
        id: str,
        request: t.ApiKeyRotationRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.IssuedApiKey:
        """Issues the next secret of a key. The previous one works until the rotation ends or is retired.

        The caller must hold every scope of the key, and from then on counts as one person with it. Needs
        the scope `api-keys:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/api-keys/{quoted(id)}:rotate",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def retire(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.ApiKey:
        """Ends the rotation of a key. Only its newest secret works from then on. Needs the scope `api-
        keys:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/api-keys/{quoted(id)}:retire",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncApprovalDelegations(AsyncResource):
    """Operations of `approval_delegations`."""

    def list(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> AsyncPages[t.ApprovalDelegationPage, t.ApprovalDelegation]:
        """Lists the tenant's delegations, the newest first. Needs the scope `approval-delegations:read`."""
        return self._pages(
            Call("GET", "/v1/approval-delegations", query={"page_size": page_size, "page_token": page_token})
        )

    async def create(
        self,
        request: t.ApprovalDelegationRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.ApprovalDelegation:
        """Lets another subject decide in the caller's place for a time. Needs the scope `approval-
        delegations:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/approval-delegations",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def revoke(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> None:
        """Ends one of the caller's delegations now. Decisions made by it stay. Needs the scope `approval-
        delegations:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/approval-delegations/{quoted(id)}",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncApprovalLinks(AsyncResource):
    """Operations of `approval_links`."""

    async def revoke(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> None:
        """Revokes a link. A decision made by it stays. Needs the scope `approval-links:write`."""
        await self._ask(
            Call(
                "DELETE",
                f"/v1/approval-links/{quoted(id)}",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncApprovalPolicies(AsyncResource):
    """Operations of `approval_policies`."""

    def list(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> AsyncPages[t.ApprovalPolicyPage, t.ApprovalPolicy]:
        """Lists the tenant's policies in order of id. Needs the scope `approval-policies:read`."""
        return self._pages(
            Call("GET", "/v1/approval-policies", query={"page_size": page_size, "page_token": page_token})
        )

    async def create(
        self,
        request: t.ApprovalPolicyRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.ApprovalPolicy | t.PolicyChange:
        """Creates a policy: the approvers of the quotes that it applies to, from the next submission on.

        It takes effect at once (201) if it is the tenant's first policy, or if it has steps and applies
        only to quotes that another policy with steps applies to. Otherwise it waits (202) for approval or
        the end of the tenant's delay. Needs the scope `approval-policies:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/approval-policies",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.ApprovalPolicy:
        """Returns the current version of a policy. Needs the scope `approval-policies:read`."""
        return await self._ask(Call("GET", f"/v1/approval-policies/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.ApprovalPolicyPatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.ApprovalPolicy | t.PolicyChange:
        """Changes members of a policy, if its version matches the ETag.

        A change that only adds steps or names takes effect at once (200). Any other change waits (202) for
        approval or the end of the tenant's delay. Needs the scope `approval-policies:write`.
        """
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/approval-policies/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> t.PolicyChange | None:
        """Deletes a policy, if its version matches the ETag. Pending approvals keep its steps.

        The deletion waits (202) for approval or the end of the tenant's delay. Without a delay it is
        immediate (204). Needs the scope `approval-policies:write`.
        """
        return await self._ask(
            Call(
                "DELETE",
                f"/v1/approval-policies/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncApprovalSettings(AsyncResource):
    """Operations of `approval_settings`."""

    async def get(self) -> t.ApprovalSettings:
        """Returns the delay for changes of the tenant's policies and budgets. Needs the scope `approval-
        settings:read`.
        """
        return await self._ask(Call("GET", "/v1/approval-settings"))

    async def update(
        self,
        request: t.ApprovalSettingsPatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.ApprovalSettings | t.PolicyChange:
        """Changes the delay. A shorter delay takes effect (202) only after the present one.

        Until the tenant has its first policy, every change takes effect at once. Needs the scope `approval-
        settings:write`.
        """
        return await self._ask(
            Call(
                "PATCH",
                "/v1/approval-settings",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncApprovals(AsyncResource):
    """Operations of `approvals`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        state: t.ApprovalState | Sequence[t.ApprovalState] | None = None,
        approver: Literal["", "me"] | None = None,
        requester: str | None = None,
        quote_id: str | Sequence[str] | None = None,
    ) -> AsyncPages[t.ApprovalPage, t.ApprovalSummary]:
        """Lists the tenant's approvals, the newest first. Needs the scope `approvals:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/approvals",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "state": state,
                    "approver": approver,
                    "requester": requester,
                    "quote_id": quote_id,
                },
            )
        )

    async def get(self, id: str) -> t.Approval:
        """Returns an approval: its steps, its decisions, and its effect on budgets. Needs the scope
        `approvals:read`.
        """
        return await self._ask(Call("GET", f"/v1/approvals/{quoted(id)}"))

    async def wait(self, id: str, *, timeout_seconds: float = 600.0) -> t.Approval:
        """Asks again until the state is no longer `pending`; raises `WaitTimeout` before that."""
        return await self._wait(Call("GET", f"/v1/approvals/{quoted(id)}"), ("pending",), timeout_seconds)

    async def get_history(self, id: str) -> t.ApprovalHistory:
        """Lists every change of an approval from the audit chain, and tells if the stored approval matches it.
        Needs the scope `approvals:read`.
        """
        return await self._ask(Call("GET", f"/v1/approvals/{quoted(id)}/history"))

    async def approve(
        self,
        id: str,
        request: t.ApprovalDecisionRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Approval:
        """Approves the version with the digest, in every step of the caller. A repetition changes nothing.
        Needs the scope `approvals:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/approvals/{quoted(id)}:approve",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def reject(
        self,
        id: str,
        request: t.ApprovalDecisionRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Approval:
        """Rejects the version with the digest. A single rejection ends the approval. Needs the scope
        `approvals:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/approvals/{quoted(id)}:reject",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def close(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Approval:
        """Closes an approval whose work is over. Budgets get back what is not billed; later bills still count.

        The approval stays approved. Closing it again gives the same answer. Needs the scope
        `approvals:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/approvals/{quoted(id)}:close",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def comment(
        self,
        id: str,
        request: t.ApprovalCommentRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Approval:
        """Adds a comment to an approval. Needs the scope `approvals:write`."""
        return await self._ask(
            Call(
                "POST",
                f"/v1/approvals/{quoted(id)}:comment",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def link(
        self,
        id: str,
        request: t.ApprovalLinkRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.IssuedApprovalLink:
        """Creates a link by which one approver of the open step decides once, without credentials.

        In one step, decisions by links of one maker count once, and not beside a decision of the maker.
        Needs the scope `approval-links:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/approvals/{quoted(id)}:link",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def list_links(self, id: str) -> t.ApprovalLinkList:
        """Lists the links of an approval with their state, without their secrets. Needs the scope `approval-
        links:read`.
        """
        return await self._ask(Call("GET", f"/v1/approvals/{quoted(id)}/links"))


class AsyncAuditEvents(AsyncResource):
    """Operations of `audit_events`."""

    def list(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> AsyncPages[t.AuditEventPage, t.AuditEvent]:
        """Lists the tenant's writes, the newest first. Needs the scope `audit-events:read`."""
        return self._pages(
            Call("GET", "/v1/audit-events", query={"page_size": page_size, "page_token": page_token})
        )

    async def verify(self, *, expected_head: str | Sequence[str] | None = None) -> t.AuditVerdict:
        """Verifies the whole audit chain of the tenant, and the stored resources that control access.

        Finds any event that was changed, dropped or reordered, and any approval, policy, delegation,
        budget, bill, quote, key, link, webhook or node that was changed outside the service. Needs the
        scope `audit-events:read`.
        """
        return await self._ask(Call("GET", "/v1/audit-events:verify", query={"expected_head": expected_head}))


class AsyncBackgroundJobs(AsyncResource):
    """Operations of `background_jobs`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        kind: str | Sequence[str] | None = None,
        state: t.BackgroundJobState | Sequence[t.BackgroundJobState] | None = None,
    ) -> AsyncPages[t.BackgroundJobPage, t.BackgroundJob]:
        """Lists the tenant's background jobs, the newest first. Needs the scope `background-jobs:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/background-jobs",
                query={"page_size": page_size, "page_token": page_token, "kind": kind, "state": state},
            )
        )

    async def get(self, id: str) -> t.BackgroundJob:
        """Returns a job with its progress. Needs the scope `background-jobs:read`."""
        return await self._ask(Call("GET", f"/v1/background-jobs/{quoted(id)}"))

    async def wait(self, id: str, *, timeout_seconds: float = 600.0) -> t.BackgroundJob:
        """Asks again until the state is no longer `waiting` or `running`; raises `WaitTimeout` before that."""
        return await self._wait(
            Call("GET", f"/v1/background-jobs/{quoted(id)}"), ("waiting", "running"), timeout_seconds
        )

    async def cancel(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.BackgroundJob:
        """Cancels a job. A running job ends after its present piece, any other at once. Needs the scope
        `background-jobs:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/background-jobs/{quoted(id)}:cancel",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def retry(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.BackgroundJob:
        """Runs a dead job again, from the point that it reached. Needs the scope `background-jobs:write`."""
        return await self._ask(
            Call(
                "POST",
                f"/v1/background-jobs/{quoted(id)}:retry",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncBenchmarkResults(AsyncResource):
    """Operations of `benchmark_results`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        run_id: str | Sequence[str] | None = None,
        node_id: str | Sequence[str] | None = None,
        suite_id: str | Sequence[str] | None = None,
        benchmark: str | Sequence[str] | None = None,
        status: t.BenchmarkResultStatus | Sequence[t.BenchmarkResultStatus] | None = None,
        lease: t.ResultLeaseStanding | Sequence[t.ResultLeaseStanding] | None = None,
        verdict: t.ResultVerdict | Sequence[t.ResultVerdict] | None = None,
    ) -> AsyncPages[t.BenchmarkResultPage, t.BenchmarkResult]:
        """Lists the tenant's results, the last received first. Needs the scope `benchmark-results:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/benchmark-results",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "run_id": run_id,
                    "node_id": node_id,
                    "suite_id": suite_id,
                    "benchmark": benchmark,
                    "status": status,
                    "lease": lease,
                    "verdict": verdict,
                },
            )
        )

    async def compare(
        self,
        *,
        benchmark: str,
        node_id: str | None = None,
        baseline_run_id: str | None = None,
        runs: int | None = None,
    ) -> t.BenchmarkComparison:
        """Compares the runs of one benchmark on equal hardware with a baseline, over time and across nodes.
        Needs the scope `benchmark-results:read`.
        """
        return await self._ask(
            Call(
                "GET",
                "/v1/benchmark-results:compare",
                query={
                    "benchmark": benchmark,
                    "node_id": node_id,
                    "baseline_run_id": baseline_run_id,
                    "runs": runs,
                },
            )
        )

    async def list_regressions(
        self,
        *,
        node_id: str | Sequence[str] | None = None,
        benchmark: str | Sequence[str] | None = None,
        least_change: float | None = None,
    ) -> t.BenchmarkRegressionList:
        """Lists regressions: against earlier runs of a node, and against other nodes of equal hardware.

        A difference counts if the samples lie apart, in time and in cycles, as in comparisons. Needs the
        scope `benchmark-results:read`.
        """
        return await self._ask(
            Call(
                "GET",
                "/v1/benchmark-results:regressions",
                query={"node_id": node_id, "benchmark": benchmark, "least_change": least_change},
            )
        )

    async def export(
        self,
        *,
        run_id: str | Sequence[str] | None = None,
        node_id: str | Sequence[str] | None = None,
        suite_id: str | Sequence[str] | None = None,
        benchmark: str | Sequence[str] | None = None,
        status: t.BenchmarkResultStatus | Sequence[t.BenchmarkResultStatus] | None = None,
        lease: t.ResultLeaseStanding | Sequence[t.ResultLeaseStanding] | None = None,
        verdict: t.ResultVerdict | Sequence[t.ResultVerdict] | None = None,
        format: Literal["csv", "parquet"] | None = None,
    ) -> str | bytes:
        """Exports results as CSV or Parquet with one row each, the last received first. Needs the scope
        `benchmark-results:read`.
        """
        return await self._ask(
            Call(
                "GET",
                "/v1/benchmark-results:export",
                query={
                    "run_id": run_id,
                    "node_id": node_id,
                    "suite_id": suite_id,
                    "benchmark": benchmark,
                    "status": status,
                    "lease": lease,
                    "verdict": verdict,
                    "format": format,
                },
            )
        )

    async def get(self, id: str) -> t.StoredBenchmarkResult:
        """Returns a result with its raw samples, and the figures that the service computed from them. Needs
        the scope `benchmark-results:read`.
        """
        return await self._ask(Call("GET", f"/v1/benchmark-results/{quoted(id)}"))

    async def report(self, id: str, request: t.BenchmarkResultReport) -> t.BenchmarkResultReceipt:
        """Stores a result as it is sent, once, however often it is sent. Only for the node that measured it.

        The result is stored even if its lease has ended, and the receipt says so. The same id with other
        content is refused, as is a result of a run that the node was not granted, and more than a node may
        send in a day. A result has at most 22,000 members and elements, and 1 MiB. Needs the scope
        `benchmark-results:report`.
        """
        return await self._ask(
            Call("PUT", f"/v1/benchmark-results/{quoted(id)}", body=request, is_digested=True)
        )


class AsyncBenchmarkRuns(AsyncResource):
    """Operations of `benchmark_runs`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        state: t.BenchmarkRunState | Sequence[t.BenchmarkRunState] | None = None,
        node_id: str | Sequence[str] | None = None,
        suite_id: str | Sequence[str] | None = None,
    ) -> AsyncPages[t.BenchmarkRunPage, t.BenchmarkRun]:
        """Lists the tenant's benchmark runs, the newest first. Needs the scope `benchmark-runs:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/benchmark-runs",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "state": state,
                    "node_id": node_id,
                    "suite_id": suite_id,
                },
            )
        )

    async def create(
        self,
        request: t.BenchmarkRunRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.BenchmarkRun:
        """Requests a run of a suite on a node. Needs the scope `benchmark-runs:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/benchmark-runs",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.BenchmarkRun:
        """Returns a benchmark run with its progress and its figures. Needs the scope `benchmark-runs:read`."""
        return await self._ask(Call("GET", f"/v1/benchmark-runs/{quoted(id)}"))

    async def wait(self, id: str, *, timeout_seconds: float = 600.0) -> t.BenchmarkRun:
        """Asks again until the state is no longer `waiting` or `running`; raises `WaitTimeout` before that."""
        return await self._wait(
            Call("GET", f"/v1/benchmark-runs/{quoted(id)}"), ("waiting", "running"), timeout_seconds
        )

    async def cancel(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.BenchmarkRun:
        """Cancels a benchmark run. A waiting run ends at once, any other when its node learns of it. Needs the
        scope `benchmark-runs:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/benchmark-runs/{quoted(id)}:cancel",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def validate(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.BenchmarkRun:
        """Validates the results of a run again, with the present peers and the present catalog. Needs the
        scope `benchmark-runs:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/benchmark-runs/{quoted(id)}:validate",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncBenchmarkSuites(AsyncResource):
    """Operations of `benchmark_suites`."""

    async def list(self) -> t.BenchmarkSuitePage:
        """Lists every suite that comes with the service. Needs the scope `benchmark-suites:read`."""
        return await self._ask(Call("GET", "/v1/benchmark-suites"))

    async def get(self, id: str) -> t.BenchmarkSuite:
        """Returns a suite: its benchmarks, their duration, and the meaning of their figures. Needs the scope
        `benchmark-suites:read`.
        """
        return await self._ask(Call("GET", f"/v1/benchmark-suites/{quoted(id)}"))


class AsyncBudgets(AsyncResource):
    """Operations of `budgets`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        cost_center_id: str | Sequence[str] | None = None,
    ) -> AsyncPages[t.BudgetPage, t.BudgetSummary]:
        """Lists the tenant's budgets, with the remaining amount of each. Needs the scope `budgets:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/budgets",
                query={"page_size": page_size, "page_token": page_token, "cost_center_id": cost_center_id},
            )
        )

    async def create(
        self,
        request: t.BudgetRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Budget:
        """Creates a budget of a cost centre under an unused id. Needs the scope `budgets:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/budgets",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.Budget:
        """Returns a budget: its committed, spent and remaining amounts, and its commitments. Needs the scope
        `budgets:read`.
        """
        return await self._ask(Call("GET", f"/v1/budgets/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.BudgetPatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.Budget | t.PolicyChange:
        """Changes terms of a budget, if its version matches the ETag. Its period cannot change.

        A larger amount, or enforcement that no longer blocks, waits (202) for approval or the end of the
        tenant's delay. Needs the scope `budgets:write`.
        """
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/budgets/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> t.PolicyChange | None:
        """Deletes a budget from which no approval has committed, if its version matches the ETag.

        The deletion waits (202) for approval or the end of the tenant's delay. Without a delay it is
        immediate (204). Needs the scope `budgets:write`.
        """
        return await self._ask(
            Call(
                "DELETE",
                f"/v1/budgets/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get_focus(self, id: str) -> str:
        """Returns commitments and billed charges of a budget as CSV in the columns of FOCUS 1.2.

        Commitments have the tag `estimate`; `x_LineName` is `committed` or `charged`. An amount that is
        committed and then billed is in both. Needs the scope `budgets:read`.
        """
        return await self._ask(Call("GET", f"/v1/budgets/{quoted(id)}/focus"))


class AsyncCalibrations(AsyncResource):
    """Operations of `calibrations`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        state: t.CalibrationState | Sequence[t.CalibrationState] | None = None,
        origin: t.CalibrationOrigin | Sequence[t.CalibrationOrigin] | None = None,
        device: t.DeviceKind | Sequence[t.DeviceKind] | None = None,
        node_id: str | Sequence[str] | None = None,
        accelerator_id: str | Sequence[str] | None = None,
    ) -> AsyncPages[t.CalibrationPage, t.Calibration]:
        """Lists the tenant's calibrations, the newest first. Needs the scope `calibrations:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/calibrations",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "state": state,
                    "origin": origin,
                    "device": device,
                    "node_id": node_id,
                    "accelerator_id": accelerator_id,
                },
            )
        )

    async def withdraw_node(
        self,
        request: t.NodeCalibrationWithdrawalRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.WithdrawnCalibrations:
        """Withdraws all calibrations of a node, because the node proved bad.

        Its next runs make new calibrations. Needs the scope `calibrations:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/calibrations:withdraw",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.CalibrationDetails:
        """Returns a calibration: every figure, and the results, runs and conditions behind it. Needs the scope
        `calibrations:read`.
        """
        return await self._ask(Call("GET", f"/v1/calibrations/{quoted(id)}"))

    async def withdraw(
        self,
        id: str,
        request: t.CalibrationWithdrawalRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Calibration:
        """Withdraws a calibration permanently. The calibration that it superseded counts again.

        Its results are never used for a calibration again. Needs the scope `calibrations:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/calibrations/{quoted(id)}:withdraw",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncCostCenters(AsyncResource):
    """Operations of `cost_centers`."""

    def list(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> AsyncPages[t.CostCenterPage, t.CostCenter]:
        """Lists the tenant's cost centres. Needs the scope `cost-centers:read`."""
        return self._pages(
            Call("GET", "/v1/cost-centers", query={"page_size": page_size, "page_token": page_token})
        )

    async def create(
        self,
        request: t.CostCenterRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.CostCenter:
        """Creates a cost centre under an unused id. Needs the scope `cost-centers:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/cost-centers",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.CostCenter:
        """Returns a cost centre. Needs the scope `cost-centers:read`."""
        return await self._ask(Call("GET", f"/v1/cost-centers/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.CostCenterPatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.CostCenter:
        """Changes members of a cost centre, if its version matches the ETag. Needs the scope `cost-
        centers:write`.
        """
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/cost-centers/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> None:
        """Deletes a cost centre that has no budgets, if its version matches the ETag. Needs the scope `cost-
        centers:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/cost-centers/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncEnrolmentTokens(AsyncResource):
    """Operations of `enrolment_tokens`."""

    def list(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> AsyncPages[t.EnrolmentTokenPage, t.EnrolmentToken]:
        """Lists the tenant's enrolment tokens, without their secrets. Needs the scope `enrolment-tokens:read`."""
        return self._pages(
            Call("GET", "/v1/enrolment-tokens", query={"page_size": page_size, "page_token": page_token})
        )

    async def create(
        self,
        request: t.EnrolmentTokenRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.IssuedEnrolmentToken:
        """Creates a token by which one node enrols, once. The secret is shown only in this answer. Needs the
        scope `enrolment-tokens:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/enrolment-tokens",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.EnrolmentToken:
        """Returns an enrolment token, without its secret. Needs the scope `enrolment-tokens:read`."""
        return await self._ask(Call("GET", f"/v1/enrolment-tokens/{quoted(id)}"))

    async def delete(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> None:
        """Deletes an enrolment token. A node that has enrolled by it stays. Needs the scope `enrolment-
        tokens:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/enrolment-tokens/{quoted(id)}",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncEstimates(AsyncResource):
    """Operations of `estimates`."""

    async def summary(
        self, request: t.SummaryRequest, *, catalog_revision: int | None = None
    ) -> t.SummaryEstimate:
        """Estimates fit, users, speed, price and bill of a model on hardware, from a few members. Needs the
        scope `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/summary",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def memory(
        self, request: t.MemoryEstimateRequest, *, catalog_revision: int | None = None
    ) -> t.MemoryEstimate:
        """Estimates the memory of the fullest device by component, and whether it fits. Needs the scope
        `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/memory",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def memory_batch(
        self, request: t.MemoryEstimateBatchRequest, *, catalog_revision: int | None = None
    ) -> t.MemoryEstimateList:
        """Estimates memory for several questions, in order and from one catalog revision. Needs the scope
        `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/memory:batch",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def throughput(
        self, request: t.ThroughputEstimateRequest, *, catalog_revision: int | None = None
    ) -> t.ThroughputEstimate:
        """Estimates rates, the phases of the time, and the limit of the speed. Needs the scope
        `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/throughput",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def throughput_batch(
        self, request: t.ThroughputEstimateBatchRequest, *, catalog_revision: int | None = None
    ) -> t.ThroughputEstimateList:
        """Estimates throughput for several questions, in order and from one catalog revision. Needs the scope
        `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/throughput:batch",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def throughput_frontier(
        self, request: t.ThroughputFrontierRequest, *, catalog_revision: int | None = None
    ) -> t.ThroughputFrontier:
        """Searches the best configurations: the Pareto set of tokens per second by device and by user. Needs
        the scope `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/throughput:frontier",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def cost(
        self, request: t.CostEstimateRequest, *, catalog_revision: int | None = None
    ) -> t.CostEstimate:
        """Estimates device-hours, charges, and the cost of a million tokens. Needs the scope `estimates:read`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/cost",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def cost_batch(
        self, request: t.CostEstimateBatchRequest, *, catalog_revision: int | None = None
    ) -> t.CostEstimateList:
        """Estimates cost for several questions, in order and from one catalog revision. Needs the scope
        `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/cost:batch",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def cost_export(self, request: t.CostExportRequest, *, catalog_revision: int | None = None) -> str:
        """Exports the charges of an estimate as CSV, in the columns of FOCUS 1.2; a row by charge and month.
        Needs the scope `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/cost:export",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def cost_comparison(
        self, request: t.CostComparisonRequest, *, catalog_revision: int | None = None
    ) -> t.CostComparisonEstimate:
        """Compares ways of doing the same work: time, device-hours and cost against a baseline. Needs the
        scope `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/cost:compare",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def utility_bill(
        self, request: t.UtilityBillRequest, *, catalog_revision: int | None = None
    ) -> t.UtilityBill:
        """Estimates the energy, electricity, carbon, water, rent and purchase of a run. Needs the scope
        `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/utility-bill",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def utility_bill_batch(
        self, request: t.UtilityBillBatchRequest, *, catalog_revision: int | None = None
    ) -> t.UtilityBillList:
        """Estimates utility bills for several questions, in order and from one catalog revision. Needs the
        scope `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/utility-bill:batch",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def utility_bill_export(
        self, request: t.UtilityBillExportRequest, *, catalog_revision: int | None = None
    ) -> str:
        """Exports the electricity of a run as CSV, in the columns of FOCUS 1.2; a row by charge and period.
        Needs the scope `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/utility-bill:export",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def utility_bill_shift(
        self, request: t.StartShiftEstimateRequest, *, catalog_revision: int | None = None
    ) -> t.StartShiftEstimate:
        """Compares every start of a window by tariff and grid: the cheapest and the cleanest. Needs the scope
        `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/utility-bill:shift",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def utility_bill_comparison(
        self, request: t.SiteComparisonRequest, *, catalog_revision: int | None = None
    ) -> t.SiteComparisonEstimate:
        """Compares buildings side by side: the cheapest, the cleanest, and that with least water. Needs the
        scope `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/utility-bill:compare",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )

    async def utility_bill_power_cap(
        self, request: t.PowerCapEstimateRequest, *, catalog_revision: int | None = None
    ) -> t.PowerCapEstimate:
        """Estimates the time and the money that a training run takes below the power limit of its devices.
        Needs the scope `estimates:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/estimates/utility-bill:cap",
                body=request,
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )


class AsyncEvidence(AsyncResource):
    """Operations of `evidence`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        format: t.EvidenceFormat | Sequence[t.EvidenceFormat] | None = None,
    ) -> AsyncPages[t.EvidencePage, t.EvidenceSummary]:
        """Lists the tenant's imports, the newest first. Needs the scope `evidence:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/evidence",
                query={"page_size": page_size, "page_token": page_token, "format": format},
            )
        )

    async def import_(
        self,
        request: t.EvidenceImportRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.ImportedEvidence:
        """Imports a file of measurements as evidence of the tenant, in the format of the program that wrote
        it.

        Figures of whole runs move the tenant's estimates; transfers, collectives and rates become figures
        of the device. Parts that cannot count are refused with the reason. The file itself is not stored.
        Needs the scope `evidence:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/evidence:import",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.ImportedEvidence:
        """Returns an import: the figures that were read, those that count, and the parts that were refused.
        Needs the scope `evidence:read`.
        """
        return await self._ask(Call("GET", f"/v1/evidence/{quoted(id)}"))

    async def withdraw(
        self,
        id: str,
        request: t.EvidenceWithdrawalRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.ImportedEvidence:
        """Withdraws an import, which no longer counts. Estimates are then as they were without it. Needs the
        scope `evidence:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/evidence/{quoted(id)}:withdraw",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncExchangeRates(AsyncResource):
    """Operations of `exchange_rates`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        order_by: t.CatalogRowOrder | None = None,
        id: str | Sequence[str] | None = None,
        q: str | None = None,
        from_currency_code: str | Sequence[str] | None = None,
        to_currency_code: str | Sequence[str] | None = None,
    ) -> AsyncPages[t.ExchangeRatePage, t.ExchangeRate]:
        """Lists the exchange rates that match every filter. Needs the scope `exchange-rates:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/exchange-rates",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "order_by": order_by,
                    "id": id,
                    "q": q,
                    "from_currency_code": from_currency_code,
                    "to_currency_code": to_currency_code,
                },
            )
        )

    async def create(
        self,
        request: t.ExchangeRateRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.ExchangeRate:
        """Creates an exchange rate under an unused id. Needs the scope `exchange-rates:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/exchange-rates",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.ExchangeRate:
        """Returns the current version of an exchange rate. Needs the scope `exchange-rates:read`."""
        return await self._ask(Call("GET", f"/v1/exchange-rates/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.ExchangeRatePatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.ExchangeRate:
        """Changes members of an exchange rate, if its version matches the ETag. Needs the scope `exchange-
        rates:write`.
        """
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/exchange-rates/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> None:
        """Deletes an exchange rate that no row refers to, if its version matches the ETag. Needs the scope
        `exchange-rates:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/exchange-rates/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def copy(
        self,
        id: str,
        request: t.CatalogRowCopyRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.ExchangeRate:
        """Copies an exchange rate into the tenant's own rows. Under the id of a shipped row it replaces that
        row. Needs the scope `exchange-rates:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/exchange-rates/{quoted(id)}:copy",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncGrids(AsyncResource):
    """Operations of `grids`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        order_by: t.CatalogRowOrder | None = None,
        id: str | Sequence[str] | None = None,
        q: str | None = None,
        code: str | Sequence[str] | None = None,
        kind: t.GridKind | Sequence[t.GridKind] | None = None,
        accounting: t.EmissionAccounting | Sequence[t.EmissionAccounting] | None = None,
        emission_rate: t.EmissionRate | Sequence[t.EmissionRate] | None = None,
        max_carbon_intensity_kg_co2e_per_kwh: float | None = None,
    ) -> AsyncPages[t.GridPage, t.Grid]:
        """Lists the grids that match every filter. Needs the scope `grids:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/grids",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "order_by": order_by,
                    "id": id,
                    "q": q,
                    "code": code,
                    "kind": kind,
                    "accounting": accounting,
                    "emission_rate": emission_rate,
                    "max_carbon_intensity_kg_co2e_per_kwh": max_carbon_intensity_kg_co2e_per_kwh,
                },
            )
        )

    async def create(
        self, request: t.GridRequest, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Grid:
        """Creates a grid under an unused id. Needs the scope `grids:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/grids",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.Grid:
        """Returns the current version of a grid. Needs the scope `grids:read`."""
        return await self._ask(Call("GET", f"/v1/grids/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.GridPatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.Grid:
        """Changes members of a grid, if its version matches the ETag. Needs the scope `grids:write`."""
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/grids/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> None:
        """Deletes a grid that no row refers to, if its version matches the ETag. Needs the scope
        `grids:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/grids/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def import_(
        self,
        request: t.GridImportRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.ImportedGrid:
        """Creates a grid with its intensity over time from a published table. Needs the scope `grids:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/grids:import",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def copy(
        self,
        id: str,
        request: t.CatalogRowCopyRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Grid:
        """Copies a grid into the tenant's own rows. Under the id of a shipped row it replaces that row. Needs
        the scope `grids:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/grids/{quoted(id)}:copy",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncHardwarePrices(AsyncResource):
    """Operations of `hardware_prices`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        order_by: t.CatalogRowOrder | None = None,
        id: str | Sequence[str] | None = None,
        q: str | None = None,
        accelerator_id: str | Sequence[str] | None = None,
    ) -> AsyncPages[t.HardwarePricePage, t.HardwarePrice]:
        """Lists the hardware prices that match every filter. Needs the scope `hardware-prices:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/hardware-prices",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "order_by": order_by,
                    "id": id,
                    "q": q,
                    "accelerator_id": accelerator_id,
                },
            )
        )

    async def create(
        self,
        request: t.HardwarePriceRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.HardwarePrice:
        """Creates a hardware price under an unused id. Needs the scope `hardware-prices:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/hardware-prices",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.HardwarePrice:
        """Returns the current version of a hardware price. Needs the scope `hardware-prices:read`."""
        return await self._ask(Call("GET", f"/v1/hardware-prices/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.HardwarePricePatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.HardwarePrice:
        """Changes members of a hardware price, if its version matches the ETag. Needs the scope `hardware-
        prices:write`.
        """
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/hardware-prices/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> None:
        """Deletes a hardware price that no row refers to, if its version matches the ETag. Needs the scope
        `hardware-prices:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/hardware-prices/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def copy(
        self,
        id: str,
        request: t.CatalogRowCopyRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.HardwarePrice:
        """Copies a hardware price into the tenant's own rows. Under the id of a shipped row it replaces that
        row. Needs the scope `hardware-prices:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/hardware-prices/{quoted(id)}:copy",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncLeases(AsyncResource):
    """Operations of `leases`."""

    async def claim(self, request: t.LeaseClaimRequest) -> t.BenchmarkLease | None:
        """Claims a benchmark run, and waits for one if necessary. A repeated claim returns the same lease.
        Needs the scope `leases:claim`.
        """
        return await self._ask(Call("POST", "/v1/leases:claim", body=request))

    async def renew(self, id: str, request: t.LeaseRenewalRequest) -> t.LeaseRenewal:
        """Renews a lease. Refused if it has ended or was granted again. Needs the scope `leases:claim`."""
        return await self._ask(Call("POST", f"/v1/leases/{quoted(id)}:renew", body=request))

    async def complete(self, id: str, request: t.LeaseCompletionRequest) -> t.LeaseCompletion:
        """Completes a lease once every result that it names is stored. Only for the node that holds it. Needs
        the scope `leases:claim`.
        """
        return await self._ask(Call("POST", f"/v1/leases/{quoted(id)}:complete", body=request))


class AsyncLinks(AsyncResource):
    """Operations of `links`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        order_by: t.CatalogRowOrder | None = None,
        id: str | Sequence[str] | None = None,
        q: str | None = None,
        kind: t.LinkKind | Sequence[t.LinkKind] | None = None,
        scope: t.LinkScope | Sequence[t.LinkScope] | None = None,
        min_bandwidth_bytes_per_second: float | None = None,
    ) -> AsyncPages[t.LinkPage, t.Link]:
        """Lists the links that match every filter. Needs the scope `links:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/links",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "order_by": order_by,
                    "id": id,
                    "q": q,
                    "kind": kind,
                    "scope": scope,
                    "min_bandwidth_bytes_per_second": min_bandwidth_bytes_per_second,
                },
            )
        )

    async def create(
        self, request: t.LinkRequest, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Link:
        """Creates a link under an unused id. Needs the scope `links:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/links",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.Link:
        """Returns the current version of a link. Needs the scope `links:read`."""
        return await self._ask(Call("GET", f"/v1/links/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.LinkPatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.Link:
        """Changes members of a link, if its version matches the ETag. Needs the scope `links:write`."""
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/links/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> None:
        """Deletes a link that no row refers to, if its version matches the ETag. Needs the scope
        `links:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/links/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def copy(
        self,
        id: str,
        request: t.CatalogRowCopyRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Link:
        """Copies a link into the tenant's own rows. Under the id of a shipped row it replaces that row. Needs
        the scope `links:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/links/{quoted(id)}:copy",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncModels(AsyncResource):
    """Operations of `models`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        order_by: t.CatalogRowOrder | None = None,
        id: str | Sequence[str] | None = None,
        q: str | None = None,
        min_parameter_count: float | None = None,
        max_parameter_count: float | None = None,
    ) -> AsyncPages[t.ModelPage, t.Model]:
        """Lists the models that match every filter. Needs the scope `models:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/models",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "order_by": order_by,
                    "id": id,
                    "q": q,
                    "min_parameter_count": min_parameter_count,
                    "max_parameter_count": max_parameter_count,
                },
            )
        )

    async def create(
        self,
        request: t.ModelRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Model:
        """Creates a model under an unused id. Needs the scope `models:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/models",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.Model:
        """Returns the current version of a model. Needs the scope `models:read`."""
        return await self._ask(Call("GET", f"/v1/models/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.ModelPatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.Model:
        """Changes members of a model, if its version matches the ETag. Needs the scope `models:write`."""
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/models/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> None:
        """Deletes a model that no row refers to, if its version matches the ETag. Needs the scope
        `models:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/models/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def import_(
        self,
        request: t.ModelImportRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.ImportedModel:
        """Creates a model from a published Hugging Face config.json. Needs the scope `models:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/models:import",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def copy(
        self,
        id: str,
        request: t.CatalogRowCopyRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Model:
        """Copies a model into the tenant's own rows. Under the id of a shipped row it replaces that row. Needs
        the scope `models:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/models/{quoted(id)}:copy",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncNodes(AsyncResource):
    """Operations of `nodes`."""

    async def enrol(self, request: t.NodeEnrolmentRequest) -> t.NodeEnrolment:
        """Enrols a node by its token. Repeated before the credential was used, it returns a fresh one."""
        return await self._ask(Call("POST", "/v1/nodes:enrol", body=request))

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        state: t.NodeState | Sequence[t.NodeState] | None = None,
        device: t.DeviceKind | Sequence[t.DeviceKind] | None = None,
    ) -> AsyncPages[t.NodePage, t.Node]:
        """Lists the tenant's nodes. Needs the scope `nodes:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/nodes",
                query={"page_size": page_size, "page_token": page_token, "state": state, "device": device},
            )
        )

    async def get(self, id: str) -> t.Node:
        """Returns a node with its inventory and the run that it is running. Needs the scope `nodes:read`."""
        return await self._ask(Call("GET", f"/v1/nodes/{quoted(id)}"))

    async def drain(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Node:
        """Drains a node: it finishes its suite and gets no other. Needs the scope `nodes:write`."""
        return await self._ask(
            Call(
                "POST",
                f"/v1/nodes/{quoted(id)}:drain",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def resume(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Node:
        """Resumes a node, which gets runs again. A node whose credential was reused has to enrol again. Needs
        the scope `nodes:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/nodes/{quoted(id)}:resume",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def readmit(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Node:
        """Lets the host of a quarantined or revoked node enrol again. The node keeps its state until then.
        Needs the scope `nodes:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/nodes/{quoted(id)}:readmit",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def quarantine(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Node:
        """Quarantines a node: ends its lease and bars its host. Results that it still has are accepted. Needs
        the scope `nodes:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/nodes/{quoted(id)}:quarantine",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def revoke(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Node:
        """Revokes a node permanently: nothing is accepted from it, and its host is barred. Its results stay.
        Needs the scope `nodes:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/nodes/{quoted(id)}:revoke",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def request_rotation(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Node:
        """Requests that a node replaces its credential at its next heartbeat. Needs the scope `nodes:write`."""
        return await self._ask(
            Call(
                "POST",
                f"/v1/nodes/{quoted(id)}:request-rotation",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def rotate_credential(self, id: str) -> t.IssuedNodeCredential:
        """Returns the next credential of the calling node. The previous one works until the new one is used.
        Needs the scope `leases:claim`.
        """
        return await self._ask(Call("POST", f"/v1/nodes/{quoted(id)}:rotate"))

    async def put_inventory(self, id: str, request: t.NodeInventory) -> t.NodeInventoryReceipt:
        """Stores the inventory of the calling node. Needs the scope `leases:claim`."""
        return await self._ask(Call("PUT", f"/v1/nodes/{quoted(id)}/inventory", body=request))

    async def heartbeat(self, id: str, request: t.NodeHeartbeatRequest) -> t.NodeInstructions:
        """Records that the calling node is alive, and returns instructions to it. Needs the scope
        `leases:claim`.
        """
        return await self._ask(Call("POST", f"/v1/nodes/{quoted(id)}:heartbeat", body=request))


class AsyncOffers(AsyncResource):
    """Operations of `offers`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        order_by: t.CatalogRowOrder | None = None,
        id: str | Sequence[str] | None = None,
        q: str | None = None,
        provider: str | Sequence[str] | None = None,
        region: str | Sequence[str] | None = None,
        accelerator_id: str | Sequence[str] | None = None,
        purchase_option: t.PurchaseOption | Sequence[t.PurchaseOption] | None = None,
    ) -> AsyncPages[t.OfferPage, t.Offer]:
        """Lists the offers that match every filter. Needs the scope `offers:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/offers",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "order_by": order_by,
                    "id": id,
                    "q": q,
                    "provider": provider,
                    "region": region,
                    "accelerator_id": accelerator_id,
                    "purchase_option": purchase_option,
                },
            )
        )

    async def create(
        self,
        request: t.OfferRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Offer:
        """Creates an offer under an unused id. Needs the scope `offers:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/offers",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.Offer:
        """Returns the current version of an offer. Needs the scope `offers:read`."""
        return await self._ask(Call("GET", f"/v1/offers/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.OfferPatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.Offer:
        """Changes members of an offer, if its version matches the ETag. Needs the scope `offers:write`."""
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/offers/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> None:
        """Deletes an offer that no row refers to, if its version matches the ETag. Needs the scope
        `offers:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/offers/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def import_(
        self,
        request: t.OfferImportRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.ImportedOffers:
        """Creates or updates the offers of a price list in the format of its publisher, all or none of them.
        Needs the scope `offers:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/offers:import",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def copy(
        self,
        id: str,
        request: t.CatalogRowCopyRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Offer:
        """Copies an offer into the tenant's own rows. Under the id of a shipped row it replaces that row.
        Needs the scope `offers:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/offers/{quoted(id)}:copy",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncPlans(AsyncResource):
    """Operations of `plans`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        state: t.PlanState | Sequence[t.PlanState] | None = None,
        goal: t.StoredPlanGoal | Sequence[t.StoredPlanGoal] | None = None,
    ) -> AsyncPages[t.PlanPage, t.Plan]:
        """Lists the tenant's plans, the newest first, without their answers. Needs the scope `plans:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/plans",
                query={"page_size": page_size, "page_token": page_token, "state": state, "goal": goal},
            )
        )

    async def create(
        self, request: t.PlanRequest, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Plan:
        """Searches for the best configuration for some work, by a goal and under constraints.

        A small search is answered at once (200). A large search, and a small one that is not answered
        within a second, runs in the background (202): get the plan at `Location` until its `state` is no
        longer `running`. Needs the scope `plans:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/plans",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.Plan:
        """Returns a plan: the progress of its search and, once it is done, its answer. Needs the scope
        `plans:read`.
        """
        return await self._ask(Call("GET", f"/v1/plans/{quoted(id)}"))

    async def wait(self, id: str, *, timeout_seconds: float = 600.0) -> t.Plan:
        """Asks again until the state is no longer `running`; raises `WaitTimeout` before that."""
        return await self._wait(Call("GET", f"/v1/plans/{quoted(id)}"), ("running",), timeout_seconds)

    async def delete(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> None:
        """Deletes a plan and ends its search. Quotes of its rows keep their frozen content. Needs the scope
        `plans:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/plans/{quoted(id)}",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def cancel(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Plan:
        """Cancels a search, which ends without an answer after its present piece. Needs the scope
        `plans:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/plans/{quoted(id)}:cancel",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def fleet(
        self,
        request: t.FleetPlanRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
        catalog_revision: int | None = None,
    ) -> t.FleetPlan | t.Plan:
        """Plans several workloads over pools of devices and a budget: place, devices and time of each.

        A fleet that is not answered within a second runs in the background (202), if the caller has the
        scope `plans:write`: get the plan at `Location` until its `state` is no longer `running`. Only such
        a fleet is stored. A caller without that scope gets the answer within five seconds, or 503, and an
        Idempotency-Key has no effect. A tenant that has as many searches as may run gets it within five
        seconds, or 409 `TOO_MANY_PLANS`. Needs the scope `plans:read`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/plans:fleet",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
                is_estimate=True,
                catalog_revision=catalog_revision,
            )
        )


class AsyncPolicyChanges(AsyncResource):
    """Operations of `policy_changes`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        state: t.PolicyChangeState | Sequence[t.PolicyChangeState] | None = None,
    ) -> AsyncPages[t.PolicyChangePage, t.PolicyChange]:
        """Lists the tenant's changes of policies, budgets and the delay, the newest first. Needs the scope
        `policy-changes:read`.
        """
        return self._pages(
            Call(
                "GET",
                "/v1/policy-changes",
                query={"page_size": page_size, "page_token": page_token, "state": state},
            )
        )

    async def get(self, id: str) -> t.PolicyChange:
        """Returns a change: the terms after it, its author, and the time at which it takes effect. Needs the
        scope `policy-changes:read`.
        """
        return await self._ask(Call("GET", f"/v1/policy-changes/{quoted(id)}"))

    async def wait(self, id: str, *, timeout_seconds: float = 600.0) -> t.PolicyChange:
        """Asks again until the state is no longer `waiting`; raises `WaitTimeout` before that."""
        return await self._wait(
            Call("GET", f"/v1/policy-changes/{quoted(id)}"), ("waiting",), timeout_seconds
        )

    async def approve(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.PolicyChange:
        """Approves a change, as an approver of the policies in force. With every quorum it takes effect at
        once.

        A policy that gives up quotes or signatures of its own needs the approvers of its steps. Any other
        change needs those of every policy; a change of a budget needs those of the policies that can apply
        to its cost centre. The author of a change never counts. Needs the scope `policy-changes:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/policy-changes/{quoted(id)}:approve",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def reject(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.PolicyChange:
        """Rejects a change, whoever proposed it. The present terms stay, and a new change can be proposed.
        Needs the scope `policy-changes:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/policy-changes/{quoted(id)}:reject",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncQuotes(AsyncResource):
    """Operations of `quotes`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        state: t.QuoteState | Sequence[t.QuoteState] | None = None,
        operation: t.QuotedOperation | Sequence[t.QuotedOperation] | None = None,
        cost_center_id: str | Sequence[str] | None = None,
    ) -> AsyncPages[t.QuotePage, t.QuoteSummary]:
        """Lists the tenant's quotes in their newest version, the last frozen first. Needs the scope
        `quotes:read`.
        """
        return self._pages(
            Call(
                "GET",
                "/v1/quotes",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "state": state,
                    "operation": operation,
                    "cost_center_id": cost_center_id,
                },
            )
        )

    async def create(
        self,
        request: t.QuoteRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Quote:
        """Freezes an estimate or a row of a plan as a quote. The service computes all figures itself.

        The questions within the requested one are answered with it, all under one catalog revision. Needs
        the scope `quotes:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/quotes",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str, *, version: int | None = None) -> t.Quote:
        """Returns a version of a quote with its requests, answers and prices as they were frozen. Needs the
        scope `quotes:read`.
        """
        return await self._ask(Call("GET", f"/v1/quotes/{quoted(id)}", query={"version": version}))

    def get_versions(
        self, id: str, *, page_size: int | None = None, page_token: str | None = None
    ) -> AsyncPages[t.QuotePage, t.QuoteSummary]:
        """Lists the versions of a quote, the newest first. Needs the scope `quotes:read`."""
        return self._pages(
            Call(
                "GET",
                f"/v1/quotes/{quoted(id)}/versions",
                query={"page_size": page_size, "page_token": page_token},
            )
        )

    async def reprice(
        self,
        id: str,
        request: t.QuoteRepriceRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Quote:
        """Answers a quote anew under the present catalog, as its next version. Earlier versions stay.

        Refused while an approval of the quote is pending: amend the quote to restart its approval. Of
        several concurrent requests on one version, one succeeds and the others are refused. Needs the scope
        `quotes:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/quotes/{quoted(id)}:reprice",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def compare(
        self,
        id: str,
        *,
        version: int | None = None,
        base_id: str | None = None,
        base_version: int | None = None,
    ) -> t.QuoteComparison:
        """Compares a quote with its preceding version or another quote: question, prices and figures. Needs
        the scope `quotes:read`.
        """
        return await self._ask(
            Call(
                "GET",
                f"/v1/quotes/{quoted(id)}:compare",
                query={"version": version, "base_id": base_id, "base_version": base_version},
            )
        )

    async def get_focus(self, id: str, *, version: int | None = None) -> str:
        """Returns the charges of a version as CSV in the columns of FOCUS 1.2, tagged with the quote.

        A quote whose run has no start, or whose total is unknown, has no such rows. Needs the scope
        `quotes:read`.
        """
        return await self._ask(Call("GET", f"/v1/quotes/{quoted(id)}/focus", query={"version": version}))

    async def submit(
        self,
        id: str,
        request: t.QuoteSubmissionRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Approval:
        """Submits the newest version of a quote for approval by the approvers of the matching policies.

        With `validate_only` the answer names the approvers, and nothing is submitted. Needs the scope
        `quotes:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/quotes/{quoted(id)}:submit",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def amend(
        self,
        id: str,
        request: t.QuoteAmendmentRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Approval:
        """Quotes another request as the next version and submits it. Its approval begins anew. Needs the scope
        `quotes:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/quotes/{quoted(id)}:amend",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def cancel(
        self,
        id: str,
        request: t.QuoteSubmissionRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Approval:
        """Cancels the approval of a version, even an approved one. Its commitment is released. Needs the scope
        `quotes:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/quotes/{quoted(id)}:cancel",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get_report(self, id: str, *, version: int | None = None) -> str:
        """Returns a version of a quote as a self-contained page that reads on a phone and prints.

        It names who approved or rejected the version, and when, to callers that may read approvals. Needs
        the scope `quotes:read`.
        """
        return await self._ask(Call("GET", f"/v1/quotes/{quoted(id)}/report", query={"version": version}))


class AsyncSessions(AsyncResource):
    """Operations of `sessions`."""

    async def end(
        self,
        request: t.SessionRevocationRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.SessionRevocation:
        """Ends every session, token and key of a person of the tenant, within two seconds, everywhere.

        A person who is still signed in at the issuer can begin another session, unless they are disabled
        here too. Needs the scope `sessions:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/sessions:end",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncSites(AsyncResource):
    """Operations of `sites`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        order_by: t.CatalogRowOrder | None = None,
        id: str | Sequence[str] | None = None,
        q: str | None = None,
        grid_id: str | Sequence[str] | None = None,
        tariff_id: str | Sequence[str] | None = None,
    ) -> AsyncPages[t.SitePage, t.Site]:
        """Lists the sites that match every filter. Needs the scope `sites:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/sites",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "order_by": order_by,
                    "id": id,
                    "q": q,
                    "grid_id": grid_id,
                    "tariff_id": tariff_id,
                },
            )
        )

    async def create(
        self, request: t.SiteRequest, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Site:
        """Creates a site under an unused id. Needs the scope `sites:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/sites",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.Site:
        """Returns the current version of a site. Needs the scope `sites:read`."""
        return await self._ask(Call("GET", f"/v1/sites/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.SitePatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.Site:
        """Changes members of a site, if its version matches the ETag. Needs the scope `sites:write`."""
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/sites/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> None:
        """Deletes a site that no row refers to, if its version matches the ETag. Needs the scope
        `sites:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/sites/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def copy(
        self,
        id: str,
        request: t.CatalogRowCopyRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Site:
        """Copies a site into the tenant's own rows. Under the id of a shipped row it replaces that row. Needs
        the scope `sites:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/sites/{quoted(id)}:copy",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncTariffs(AsyncResource):
    """Operations of `tariffs`."""

    async def bill(
        self, request: t.TariffBillRequest, *, catalog_revision: int | None = None
    ) -> t.TariffBill:
        """Bills a load under a tariff: every line of every billing period. Needs the scope `tariffs:read`."""
        return await self._ask(
            Call(
                "POST", "/v1/tariffs:bill", body=request, is_estimate=True, catalog_revision=catalog_revision
            )
        )

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        order_by: t.CatalogRowOrder | None = None,
        id: str | Sequence[str] | None = None,
        q: str | None = None,
        name: str | Sequence[str] | None = None,
        utility: str | Sequence[str] | None = None,
        currency_code: str | Sequence[str] | None = None,
        time_zone: str | Sequence[str] | None = None,
    ) -> AsyncPages[t.TariffPage, t.Tariff]:
        """Lists the tariffs that match every filter. Needs the scope `tariffs:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/tariffs",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "order_by": order_by,
                    "id": id,
                    "q": q,
                    "name": name,
                    "utility": utility,
                    "currency_code": currency_code,
                    "time_zone": time_zone,
                },
            )
        )

    async def create(
        self,
        request: t.TariffRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Tariff:
        """Creates a tariff under an unused id. Needs the scope `tariffs:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/tariffs",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.Tariff:
        """Returns the current version of a tariff. Needs the scope `tariffs:read`."""
        return await self._ask(Call("GET", f"/v1/tariffs/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.TariffPatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.Tariff:
        """Changes members of a tariff, if its version matches the ETag. Needs the scope `tariffs:write`."""
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/tariffs/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> None:
        """Deletes a tariff that no row refers to, if its version matches the ETag. Needs the scope
        `tariffs:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/tariffs/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def import_(
        self,
        request: t.TariffImportRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.ImportedTariff:
        """Creates a tariff from a rate of OpenEI's utility rate database, or from the prices of a market.
        Needs the scope `tariffs:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/tariffs:import",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def export(self, id: str, *, on: str | None = None) -> t.ExportedTariff:
        """Returns a tariff as a rate of OpenEI's utility rate database, with the terms that such a rate lacks.
        Needs the scope `tariffs:read`.
        """
        return await self._ask(Call("GET", f"/v1/tariffs/{quoted(id)}:export", query={"on": on}))

    async def copy(
        self,
        id: str,
        request: t.CatalogRowCopyRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Tariff:
        """Copies a tariff into the tenant's own rows. Under the id of a shipped row it replaces that row.
        Needs the scope `tariffs:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/tariffs/{quoted(id)}:copy",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncTenants(AsyncResource):
    """Operations of `tenants`."""

    def list(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> AsyncPages[t.TenantPage, t.Tenant]:
        """Lists the tenants of the service. Needs the scope `tenants:read`."""
        return self._pages(
            Call("GET", "/v1/tenants", query={"page_size": page_size, "page_token": page_token})
        )

    async def create(
        self,
        request: t.TenantRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.Tenant:
        """Creates a tenant. A key with its `tenant_id` gives access to it. Needs the scope `tenants:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/tenants",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.Tenant:
        """Returns a tenant. Needs the scope `tenants:read`."""
        return await self._ask(Call("GET", f"/v1/tenants/{quoted(id)}"))

    async def disable(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Tenant:
        """Disables a tenant: every credential of it is refused. Nothing is deleted. Needs the scope
        `tenants:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/tenants/{quoted(id)}:disable",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def enable(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.Tenant:
        """Enables a tenant: its credentials are accepted again. Needs the scope `tenants:write`."""
        return await self._ask(
            Call(
                "POST",
                f"/v1/tenants/{quoted(id)}:enable",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncTokenPrices(AsyncResource):
    """Operations of `token_prices`."""

    def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        order_by: t.CatalogRowOrder | None = None,
        id: str | Sequence[str] | None = None,
        q: str | None = None,
        provider: str | Sequence[str] | None = None,
        model_id: str | Sequence[str] | None = None,
    ) -> AsyncPages[t.TokenPricePage, t.TokenPrice]:
        """Lists the token prices that match every filter. Needs the scope `token-prices:read`."""
        return self._pages(
            Call(
                "GET",
                "/v1/token-prices",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "order_by": order_by,
                    "id": id,
                    "q": q,
                    "provider": provider,
                    "model_id": model_id,
                },
            )
        )

    async def create(
        self,
        request: t.TokenPriceRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.TokenPrice:
        """Creates a token price under an unused id. Needs the scope `token-prices:write`."""
        return await self._ask(
            Call(
                "POST",
                "/v1/token-prices",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.TokenPrice:
        """Returns the current version of a token price. Needs the scope `token-prices:read`."""
        return await self._ask(Call("GET", f"/v1/token-prices/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.TokenPricePatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.TokenPrice:
        """Changes members of a token price, if its version matches the ETag. Needs the scope `token-
        prices:write`.
        """
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/token-prices/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> None:
        """Deletes a token price that no row refers to, if its version matches the ETag. Needs the scope
        `token-prices:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/token-prices/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def import_(
        self,
        request: t.TokenPriceImportRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.ImportedTokenPrices:
        """Creates or updates the token prices of a list in the format of its publisher, all or none of them.
        Needs the scope `token-prices:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/token-prices:import",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def copy(
        self,
        id: str,
        request: t.CatalogRowCopyRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.TokenPrice:
        """Copies a token price into the tenant's own rows. Under the id of a shipped row it replaces that row.
        Needs the scope `token-prices:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/token-prices/{quoted(id)}:copy",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )


class AsyncWebhooks(AsyncResource):
    """Operations of `webhooks`."""

    def list(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> AsyncPages[t.WebhookPage, t.Webhook]:
        """Returns a page of the tenant's webhooks, the newest first, without their secrets. Needs the scope
        `webhooks:read`.
        """
        return self._pages(
            Call("GET", "/v1/webhooks", query={"page_size": page_size, "page_token": page_token})
        )

    async def create(
        self,
        request: t.WebhookRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.IssuedWebhook:
        """Creates a webhook. The secret that messages are signed with is shown this once.

        Messages are posted as Standard Webhooks 1.0 specifies, at least once each and in no promised order.
        Each type of event needs the scope to read what it carries, such as `approvals:read`. Events that
        the maker of the webhook may no longer read are withheld. Needs the scope `webhooks:write`.
        """
        return await self._ask(
            Call(
                "POST",
                "/v1/webhooks",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def get(self, id: str) -> t.Webhook:
        """Returns a webhook and the state of its deliveries, without its secret. Needs the scope
        `webhooks:read`.
        """
        return await self._ask(Call("GET", f"/v1/webhooks/{quoted(id)}"))

    async def update(
        self,
        id: str,
        request: t.WebhookPatch,
        *,
        validate_only: bool | None = None,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> t.Webhook:
        """Changes a webhook, enables or disables it, if it is still at the version of the ETag.

        A caller who changes its URL or its event types must be able to read what those events carry. From
        then on the webhook is told on the caller's behalf. Needs the scope `webhooks:write`.
        """
        return await self._ask(
            Call(
                "PATCH",
                f"/v1/webhooks/{quoted(id)}",
                query={"validate_only": validate_only},
                body=request,
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def delete(
        self, id: str, *, validate_only: bool | None = None, if_match: str, idempotency_key: str | None = None
    ) -> None:
        """Deletes a webhook and its deliveries, if it is still at the version of the ETag. Needs the scope
        `webhooks:write`.
        """
        await self._ask(
            Call(
                "DELETE",
                f"/v1/webhooks/{quoted(id)}",
                query={"validate_only": validate_only},
                if_match=if_match,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def rotate(
        self,
        id: str,
        request: t.WebhookRotationRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.IssuedWebhook:
        """Creates the next secret or key of a webhook. Messages are signed with both until the overlap ends.
        Needs the scope `webhooks:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/webhooks/{quoted(id)}:rotate",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def test(
        self, id: str, *, validate_only: bool | None = None, idempotency_key: str | None = None
    ) -> t.WebhookDelivery:
        """Sends a message of type `webhook.test` to this webhook, whatever its event types are. Needs the
        scope `webhooks:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/webhooks/{quoted(id)}:test",
                query={"validate_only": validate_only},
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def replay(
        self,
        id: str,
        request: t.WebhookReplayRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.ReplayedWebhookDeliveries:
        """Sends deliveries again that were delivered or given up, under the same ids. Needs the scope
        `webhooks:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/webhooks/{quoted(id)}:replay",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    async def recover(
        self,
        id: str,
        request: t.WebhookRecoveryRequest,
        *,
        validate_only: bool | None = None,
        idempotency_key: str | None = None,
    ) -> t.RecoveredWebhookDeliveries:
        """Sends deliveries again that were given up since a time, under the same ids. Needs the scope
        `webhooks:write`.
        """
        return await self._ask(
            Call(
                "POST",
                f"/v1/webhooks/{quoted(id)}:recover",
                query={"validate_only": validate_only},
                body=request,
                idempotency_key=idempotency_key or new_key(),
            )
        )

    def list_deliveries(
        self,
        id: str,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        state: t.WebhookDeliveryState | Sequence[t.WebhookDeliveryState] | None = None,
        event_type: t.WebhookEventType | Sequence[t.WebhookEventType] | None = None,
    ) -> AsyncPages[t.WebhookDeliveryPage, t.WebhookDelivery]:
        """Returns a page of the deliveries to a webhook, the newest first, each with its attempts.

        The caller must be able to read the events that the webhook is told of, or those that `event_type`
        names. Needs the scope `webhooks:read`.
        """
        return self._pages(
            Call(
                "GET",
                f"/v1/webhooks/{quoted(id)}/deliveries",
                query={
                    "page_size": page_size,
                    "page_token": page_token,
                    "state": state,
                    "event_type": event_type,
                },
            )
        )


class AsyncResources(AsyncResource):
    """Resources of the service."""

    @property
    def accelerators(self) -> AsyncAccelerators:
        """Operations of `accelerators`."""
        return AsyncAccelerators(self._client)

    @property
    def actuals(self) -> AsyncActuals:
        """Operations of `actuals`."""
        return AsyncActuals(self._client)

    @property
    def api_keys(self) -> AsyncApiKeys:
        """Operations of `api_keys`."""
        return AsyncApiKeys(self._client)

    @property
    def approval_delegations(self) -> AsyncApprovalDelegations:
        """Operations of `approval_delegations`."""
        return AsyncApprovalDelegations(self._client)

    @property
    def approval_links(self) -> AsyncApprovalLinks:
        """Operations of `approval_links`."""
        return AsyncApprovalLinks(self._client)

    @property
    def approval_policies(self) -> AsyncApprovalPolicies:
        """Operations of `approval_policies`."""
        return AsyncApprovalPolicies(self._client)

    @property
    def approval_settings(self) -> AsyncApprovalSettings:
        """Operations of `approval_settings`."""
        return AsyncApprovalSettings(self._client)

    @property
    def approvals(self) -> AsyncApprovals:
        """Operations of `approvals`."""
        return AsyncApprovals(self._client)

    @property
    def audit_events(self) -> AsyncAuditEvents:
        """Operations of `audit_events`."""
        return AsyncAuditEvents(self._client)

    @property
    def background_jobs(self) -> AsyncBackgroundJobs:
        """Operations of `background_jobs`."""
        return AsyncBackgroundJobs(self._client)

    @property
    def benchmark_results(self) -> AsyncBenchmarkResults:
        """Operations of `benchmark_results`."""
        return AsyncBenchmarkResults(self._client)

    @property
    def benchmark_runs(self) -> AsyncBenchmarkRuns:
        """Operations of `benchmark_runs`."""
        return AsyncBenchmarkRuns(self._client)

    @property
    def benchmark_suites(self) -> AsyncBenchmarkSuites:
        """Operations of `benchmark_suites`."""
        return AsyncBenchmarkSuites(self._client)

    @property
    def budgets(self) -> AsyncBudgets:
        """Operations of `budgets`."""
        return AsyncBudgets(self._client)

    @property
    def calibrations(self) -> AsyncCalibrations:
        """Operations of `calibrations`."""
        return AsyncCalibrations(self._client)

    @property
    def cost_centers(self) -> AsyncCostCenters:
        """Operations of `cost_centers`."""
        return AsyncCostCenters(self._client)

    @property
    def enrolment_tokens(self) -> AsyncEnrolmentTokens:
        """Operations of `enrolment_tokens`."""
        return AsyncEnrolmentTokens(self._client)

    @property
    def estimates(self) -> AsyncEstimates:
        """Operations of `estimates`."""
        return AsyncEstimates(self._client)

    @property
    def evidence(self) -> AsyncEvidence:
        """Operations of `evidence`."""
        return AsyncEvidence(self._client)

    @property
    def exchange_rates(self) -> AsyncExchangeRates:
        """Operations of `exchange_rates`."""
        return AsyncExchangeRates(self._client)

    @property
    def grids(self) -> AsyncGrids:
        """Operations of `grids`."""
        return AsyncGrids(self._client)

    @property
    def hardware_prices(self) -> AsyncHardwarePrices:
        """Operations of `hardware_prices`."""
        return AsyncHardwarePrices(self._client)

    @property
    def leases(self) -> AsyncLeases:
        """Operations of `leases`."""
        return AsyncLeases(self._client)

    @property
    def links(self) -> AsyncLinks:
        """Operations of `links`."""
        return AsyncLinks(self._client)

    @property
    def models(self) -> AsyncModels:
        """Operations of `models`."""
        return AsyncModels(self._client)

    @property
    def nodes(self) -> AsyncNodes:
        """Operations of `nodes`."""
        return AsyncNodes(self._client)

    @property
    def offers(self) -> AsyncOffers:
        """Operations of `offers`."""
        return AsyncOffers(self._client)

    @property
    def plans(self) -> AsyncPlans:
        """Operations of `plans`."""
        return AsyncPlans(self._client)

    @property
    def policy_changes(self) -> AsyncPolicyChanges:
        """Operations of `policy_changes`."""
        return AsyncPolicyChanges(self._client)

    @property
    def quotes(self) -> AsyncQuotes:
        """Operations of `quotes`."""
        return AsyncQuotes(self._client)

    @property
    def sessions(self) -> AsyncSessions:
        """Operations of `sessions`."""
        return AsyncSessions(self._client)

    @property
    def sites(self) -> AsyncSites:
        """Operations of `sites`."""
        return AsyncSites(self._client)

    @property
    def tariffs(self) -> AsyncTariffs:
        """Operations of `tariffs`."""
        return AsyncTariffs(self._client)

    @property
    def tenants(self) -> AsyncTenants:
        """Operations of `tenants`."""
        return AsyncTenants(self._client)

    @property
    def token_prices(self) -> AsyncTokenPrices:
        """Operations of `token_prices`."""
        return AsyncTokenPrices(self._client)

    @property
    def webhooks(self) -> AsyncWebhooks:
        """Operations of `webhooks`."""
        return AsyncWebhooks(self._client)

"""Examples of keys, tenants, background jobs and the audit."""

from typing import Any, Final

from service.app.examples.catalog import WRITTEN_AT

EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "create_api_key": {"name": "Capacity dashboard", "scopes": ["estimates:read", "models:read"]},
    "rotate_api_key": {"overlap_seconds": 86400},
    "end_sessions": {"subject_id": "erin@example.com"},
    "create_tenant": {"id": "research", "name": "Research"},
}
_KEY: Final[dict[str, Any]] = {
    **EXAMPLES["create_api_key"],
    "id": "k3q8v1x7m2c9d4ha",
    "tenant_id": "default",
    "version": 1,
    "created_at": WRITTEN_AT,
    "created_by": "local:local",
    "lineage": ["local:local"],
}
_ROTATING: Final = {**_KEY, "version": 2, "rotation_ends_at": "2026-11-21T12:00:00Z"}
_SECRET: Final = "ironlaw_k3q8v1x7m2c9d4ha_" + "0" * 49  # no key: its checksum is wrong
_JOB: Final[dict[str, Any]] = {
    "id": "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "kind": "plans.search",
    "state": "waiting",
    "attempt": 0,
    "cancel_requested": False,
    "progress": {"scored": 120000},
    "result": {},
    "created_at": WRITTEN_AT,
    "due_at": WRITTEN_AT,
}
_TENANT: Final = {**EXAMPLES["create_tenant"], "version": 1, "created_at": WRITTEN_AT}
_EVENT: Final = {
    "sequence": 2,
    "occurred_at": WRITTEN_AT,
    "operation": "create_tenant",
    "resource": "tenants/research",
    "subject_kind": "local",
    "subject_id": "local",
    "request_id": "5c1a9e7702b4d3f8",
    "after_digest": "4" * 64,
    "previous_hash": "a" * 64,
    "hash": "b" * 64,
}
ANSWERED: Final[dict[str, Any]] = {
    "list_api_keys": {"items": [_KEY], "next_page_token": None},
    "create_api_key": {"key": _KEY, "secret": _SECRET},
    "get_api_key": _KEY,
    "rotate_api_key": {"key": _ROTATING, "secret": _SECRET},
    "retire_api_key": {**_KEY, "version": 3},
    "end_sessions": {
        "id": "of-5d0c1b7e9a3f4826b1c7d8e2f3a40516",
        "ended_at": WRITTEN_AT,
        "revoked_key_ids": [],
    },
    "list_tenants": {"items": [_TENANT], "next_page_token": None},
    "create_tenant": _TENANT,
    "get_tenant": _TENANT,
    "disable_tenant": {**_TENANT, "version": 2, "disabled_at": WRITTEN_AT},
    "enable_tenant": {**_TENANT, "version": 3},
    "list_background_jobs": {"items": [_JOB], "next_page_token": None},
    "get_background_job": _JOB,
    "cancel_background_job": {
        **{name: value for name, value in _JOB.items() if name != "due_at"},
        "state": "cancelled",
        "cancel_requested": True,
        "finished_at": WRITTEN_AT,
    },
    "retry_background_job": _JOB,
    "list_audit_events": {"items": [_EVENT], "next_page_token": None},
    "verify_audit_events": {"valid": True, "events": 2, "head_hash": "b" * 64},
}
IDS: Final = {"api-keys": _KEY["id"], "tenants": _TENANT["id"], "background-jobs": _JOB["id"]}

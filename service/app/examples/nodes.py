"""Examples of nodes, leases and benchmarks."""

import json
from dataclasses import asdict
from typing import Any, Final

from service import __version__
from service.app.examples.catalog import WRITTEN_AT
from service.benchmarks.conditions import build_conditions
from service.benchmarks.figures import compute_measured
from service.benchmarks.validation.rules import RULES_VERSION
from service.protocol.canonical import compute_digest
from service.protocol.nodes import NodeInventory
from service.protocol.results import BenchmarkResultReport
from service.protocol.suites import shipped_suites

_INVENTORY: Final[dict[str, Any]] = {
    "device": "cpu",
    "host": {
        "operating_system": "Linux",
        "kernel": "6.8.0",
        "architecture": "x86_64",
        "cpu_model": "Example 9000",
        "cpu_count": 8,
        "memory_bytes": 68_719_476_736,
    },
    "accelerators": [],
    "software": [{"name": "numpy", "version": "2.3.4"}],
    "gaps": [],
}
_INVENTORY_SHA256: Final = compute_digest(NodeInventory.model_validate(_INVENTORY))
_RUN_ID: Final = "8c1f0a6b2d7e4c5f9a3b6d8e0f1a2b3c"
_NODE_ID: Final = "n5r8k1m4p7s0v3ya"
_SUITE: Final = shipped_suites()["cpu-quick"]
_BENCHMARK: Final = _SUITE.benchmarks[0]
_RECORD: Final[dict[str, Any]] = {
    "result_id": "019aa6f2-7c31-7b5e-9d04-3f8a61c2e7b9",
    "run_id": _RUN_ID,
    "fencing_token": 1,
    "attempt": 1,
    "nonce": "6" * 32,
    "node_id": _NODE_ID,
    "boot_id_sha256": "7" * 64,
    "inventory_sha256": _INVENTORY_SHA256,
    "worker_version": __version__,
    "suite_id": _SUITE.id,
    "suite_version": _SUITE.version,
    "seed": 20261120,
    "repeat": 1,
    "benchmark": _BENCHMARK.model_dump(mode="json"),
    "device": "cpu",
    "started_at": "2026-11-20T12:00:00Z",
    "finished_at": "2026-11-20T12:00:02Z",
    "started_monotonic_seconds": 5000.0,
    "finished_monotonic_seconds": 5002.0,
    "status": "ok",
    "measurement": {
        "library": "numpy 2.4.6, OpenBLAS 0.3.30",
        "data": "normal(0, 1)",
        "timer": "host_clock",
        "warmup_seconds": 0.3,
        "warmup_iterations": 12,
        "samples_ns": [23_415_870, 23_390_114, 23_544_902],
        "stop_reason": "spread",
    },
}
"""One repeat of a matrix product, in three samples."""
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "create_benchmark_run": {"suite_id": "cpu-quick", "note": "Before the new memory"},
    "report_benchmark_result": _RECORD,
    "complete_lease": {
        "fencing_token": 1,
        "outcome": "completed",
        "results": [{"result_id": _RECORD["result_id"], "content_sha256": "5" * 64}],
    },
    "withdraw_calibration": {"reason": "The fans of rack 7 stood still"},
    "withdraw_node_calibrations": {"node_id": _NODE_ID, "reason": "Its memory reports errors"},
    "create_enrolment_token": {"lifetime_seconds": 900, "node_name": "rack-7"},
    "enrol_node": {
        "token": "ironlawenrol_t4b7n2w9q5z1x8ce_" + "0" * 49,  # no token: its checksum is wrong
        "installation_id": "6f2d0c9b8a7e4f13a5c6d7e8f9012345",
        "name": "rack-7",
        "device": "cpu",
        "worker_version": "1.0.0",
    },
    "put_node_inventory": _INVENTORY,
    "heartbeat_node": {
        "boot_id_sha256": "b" * 64,
        "worker_version": "1.0.0",
        "inventory_sha256": _INVENTORY_SHA256,
        "activity": "idle",
        "spool": {"waiting_count": 0, "waiting_bytes": 0, "free_bytes": 53_687_091_200},
    },
    "claim_lease": {
        "request_id": "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "wait_seconds": 30.0,
        "inventory_sha256": _INVENTORY_SHA256,
    },
    "renew_lease": {
        "fencing_token": 1,
        "progress": {"steps": [{"benchmark": "gemm.fp64", "state": "running", "repeat": 1}]},
    },
}
_TOKEN: Final[dict[str, Any]] = {
    "id": "t4b7n2w9q5z1x8ce",
    "node_name": "rack-7",
    "created_at": WRITTEN_AT,
    "created_by": "local:local",
    "expires_at": "2026-11-20T12:15:00Z",
}
_NODE: Final[dict[str, Any]] = {
    "id": _NODE_ID,
    "name": "rack-7",
    "device": "cpu",
    "state": "active",
    "reachable": True,
    "last_seen_at": WRITTEN_AT,
    "activity": "idle",
    "spool": {**EXAMPLES["heartbeat_node"]["spool"], "rejected_count": 0, "is_full": False},
    "worker_version": "1.0.0",
    "inventory_sha256": _INVENTORY_SHA256,
    "rotation_requested": False,
    "version": 2,
    "created_at": WRITTEN_AT,
}
_CREDENTIAL: Final = "ironlawnode_n5r8k1m4p7s0v3ya_" + "0" * 49  # no credential: its checksum is wrong
ANSWERED: Final[dict[str, Any]] = {
    "list_enrolment_tokens": {"items": [_TOKEN], "next_page_token": None},
    "create_enrolment_token": {"enrolment_token": _TOKEN, "token": EXAMPLES["enrol_node"]["token"]},
    "get_enrolment_token": _TOKEN,
    "enrol_node": {"node_id": _NODE["id"], "credential": _CREDENTIAL, "server_time": WRITTEN_AT},
    "list_nodes": {"items": [_NODE], "next_page_token": None},
    "get_node": {**_NODE, "inventory": _INVENTORY},
    "drain_node": {**_NODE, "state": "draining", "version": 3},
    "resume_node": {**_NODE, "version": 4},
    "readmit_node": {**_NODE, "state": "quarantined", "reason": "CREDENTIAL_REUSED", "version": 7},
    "request_node_rotation": {**_NODE, "rotation_requested": True, "version": 5},
    "quarantine_node": {
        **_NODE,
        "state": "quarantined",
        "reason": "OPERATOR",
        "version": 6,
        "barred_at": WRITTEN_AT,
    },
    "revoke_node": {
        **_NODE,
        "state": "revoked",
        "version": 7,
        "revoked_at": WRITTEN_AT,
        "barred_at": WRITTEN_AT,
    },
    "rotate_node_credential": {"credential": _CREDENTIAL, "generation": 2},
    "put_node_inventory": {"inventory_sha256": _INVENTORY_SHA256},
    "heartbeat_node": {
        "state": "active",
        "rotate": False,
        "send_inventory": False,
        "missing": [],
        "heartbeat_seconds": 30.0,
        "server_time": WRITTEN_AT,
    },
    "claim_lease": {
        "id": _RUN_ID,
        "fencing_token": 1,
        "nonce": "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
        "attempt": 1,
        "lease_seconds": 90.0,
        "renew_seconds": 30.0,
        "runtime_seconds": 540.0,
        "seed": 7,
        "suite": {
            "id": "cpu-example",
            "version": 1,
            "title": "One matrix product",
            "device": "cpu",
            "benchmarks": [
                {
                    "name": "gemm.fp64",
                    "work": {"kind": "gemm", "dtype": "fp64", "m": 2048, "n": 2048, "k": 2048},
                    "metric": "flops_per_second",
                    "direction": "higher",
                    "formula": "2 m n k",
                }
            ],
        },
        "server_time": WRITTEN_AT,
    },
    "renew_lease": {"lease_seconds": 90.0, "cancel": False},
}
_CALIBRATION: Final[dict[str, Any]] = {
    "id": "0c4b7e6f9d1a4a52b7c3e8f1d2a6b905",
    "number": 1,
    "origin": "benchmarks",
    "state": "active",
    "device": "cuda",
    "node_id": _NODE_ID,
    "hardware": "NVIDIA H100 80GB HBM3",
    "hardware_sha256": "9" * 64,
    "accelerator_id": "h100-sxm",
    "generation": "hopper",
    "power_limit_watts": 700.0,
    "driver_major": 575,
    "created_at": WRITTEN_AT,
}
_BANDWIDTH: Final[dict[str, Any]] = {
    "name": "operators.bandwidth",
    "unit": "bytes_per_second",
    "value": 2.9e12,
    "low": 2.88e12,
    "high": 2.91e12,
    "runs": 1,
    "limit": 3.35e12,
    "share": 2.9e12 / 3.35e12,
    "source": "measured by hbm.copy",
    "method": "bytes over the time without that of a kernel, the middle of copies and triads",
    "benchmarks": ["hbm.copy"],
    "result_ids": [_RECORD["result_id"]],
    "run_ids": [_RUN_ID],
    "conditions": {"timer": "cuda_event", "sm_clock_hz": 1.98e9, "temperature_celsius": 51.0},
}
_WITHDRAWN: Final[dict[str, Any]] = {**_CALIBRATION, "state": "withdrawn", "ended_at": WRITTEN_AT}
IDS: Final = {
    "benchmark-suites": _SUITE.id,
    "benchmark-runs": _RUN_ID,
    "benchmark-results": _RECORD["result_id"],
    "enrolment-tokens": _TOKEN["id"],
    "nodes": _NODE["id"],
    "calibrations": _CALIBRATION["id"],
    "leases": _RUN_ID,
}


def build_benchmarks() -> dict[str, Any]:
    """Returns the answers on suites, runs and results."""
    run = {
        **EXAMPLES["create_benchmark_run"],
        "id": _RUN_ID,
        "suite_version": _SUITE.version,
        "device": _SUITE.device,
        "seed": _RECORD["seed"],
        "state": "waiting",
        "attempt": 0,
        "cancel_requested": False,
        "progress": [],
        "created_at": WRITTEN_AT,
    }
    ended = {"cancel_requested": True, "state": "cancelled", "finished_at": WRITTEN_AT}
    suite = _SUITE.model_dump(mode="json")
    suite["benchmarks"] = suite["benchmarks"][:1]
    result = _build_result()
    figures = {name: result[name] for name in ("benchmark", "metric", "direction")}
    value = dict.fromkeys(("value", "lowest", "highest"), result["figure"])
    compared = {
        "run_id": _RUN_ID,
        "node_id": _NODE_ID,
        "suite_version": _SUITE.version,
        "received_at": WRITTEN_AT,
        **value,
        "repeats": 1,
        **{f"sample_{name}": result["summary"][name] for name in ("minimum", "median", "q3")},
        "has_clocks": False,
        "verdict": "same",
        "relative_change": 0.0,
    }
    shared = {name: result[name] for name in ("work_sha256", "hardware", "hardware_sha256")}
    return {
        "list_benchmark_suites": {"items": [suite], "next_page_token": None},
        "get_benchmark_suite": suite,
        "list_benchmark_runs": {"items": [run], "next_page_token": None},
        "create_benchmark_run": run,
        "get_benchmark_run": {**run, "figures": [{**figures, **value, "repeats": 1}]},
        "cancel_benchmark_run": {**run, **ended},
        "validate_benchmark_run": {**run, "state": "completed", "finished_at": WRITTEN_AT},
        "list_benchmark_results": {"items": [result], "next_page_token": None},
        "get_benchmark_result": {**result, "record": _RECORD},
        "list_benchmark_regressions": {
            "items": [
                {
                    "against": "earlier_runs",
                    **figures,
                    "work_sha256": result["work_sha256"],
                    "hardware": result["hardware"],
                    "node_id": _NODE_ID,
                    "run_id": _RUN_ID,
                    "received_at": WRITTEN_AT,
                    "value": result["figure"] * 0.75,
                    "baseline_node_id": _NODE_ID,
                    "baseline_run_id": "0" * 32,
                    "baseline_value": result["figure"],
                    "compared": 3,
                    "relative_change": -0.25,
                    "has_clocks": False,
                }
            ],
            "results_considered": 12,
            "since": WRITTEN_AT,
        },
        "compare_benchmark_results": {**figures, **shared, "baseline": compared, "runs": [compared]},
        "report_benchmark_result": {
            "result_id": _RECORD["result_id"],
            "content_sha256": "5" * 64,
            "lease": "current",
        },
        "complete_lease": {"state": "completed"},
        "list_calibrations": {"items": [_CALIBRATION], "next_page_token": None},
        "get_calibration": {**_CALIBRATION, "figures": [_BANDWIDTH], "fits": [], "answers": []},
        "withdraw_calibration": {**_WITHDRAWN, **EXAMPLES["withdraw_calibration"]},
        "withdraw_node_calibrations": {
            "items": [{**_WITHDRAWN, "reason": EXAMPLES["withdraw_node_calibrations"]["reason"]}]
        },
    }


def _build_result() -> dict[str, Any]:
    record = BenchmarkResultReport.model_validate_json(json.dumps(_RECORD))
    found = compute_measured(record)
    if found is None:
        raise ValueError("the example is a record with a measurement")
    copied = (
        "run_id",
        "attempt",
        "fencing_token",
        "repeat",
        "node_id",
        "suite_id",
        "suite_version",
        "device",
    )
    return {
        "id": _RECORD["result_id"],
        "content_sha256": "5" * 64,
        **{name: _RECORD[name] for name in (*copied, "status", "started_at", "finished_at")},
        "benchmark": _BENCHMARK.name,
        "lease": "current",
        "is_counted": True,
        "hardware": _INVENTORY["host"]["cpu_model"],
        "hardware_sha256": "9" * 64,
        "work_sha256": compute_digest(_BENCHMARK.work),
        "metric": _BENCHMARK.metric,
        "direction": _BENCHMARK.direction,
        "figure": found.figure,
        "summary": asdict(found.summary),
        "conditions": build_conditions(record),
        "validation": {
            "verdict": "accepted",
            "findings": [],
            "unchecked": [
                {"rule": "quality.repeat_spread", "detail": "no other repeat of the attempt counts"}
            ],
            "agreeing_run_ids": [],
            "rules_version": RULES_VERSION,
            "validated_at": WRITTEN_AT,
        },
        "received_at": WRITTEN_AT,
    }

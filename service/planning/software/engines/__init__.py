"""Serving engines by name and version: memory that they reserve, charges of a cache, and their defaults.

The rules restate the start-up of each engine, which has a module of its own.
"""

from service.planning.software.engines.llama_cpp import describe_llama_cpp_device
from service.planning.software.engines.names import EngineName, resolve_engine_name
from service.planning.software.engines.rules import EngineBuffers, EngineRules, MemoryReservation, WindowSlack
from service.planning.software.engines.settings import EngineSettings, resolve_defaults, resolve_rules
from service.planning.software.engines.vllm import LARGE_DEVICE_BYTES, is_vllm_v0

__all__ = [
    "LARGE_DEVICE_BYTES",
    "EngineBuffers",
    "EngineName",
    "EngineRules",
    "EngineSettings",
    "MemoryReservation",
    "WindowSlack",
    "describe_llama_cpp_device",
    "is_vllm_v0",
    "resolve_defaults",
    "resolve_engine_name",
    "resolve_rules",
]

"""An engine as a question names it: its rules, its defaults and its start options."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from service.planning.software.engines.generations import resolve_generation
from service.planning.software.engines.llama_cpp import build_llama_cpp_rules
from service.planning.software.engines.names import MOST_TEXTS, EngineName
from service.planning.software.engines.rules import EngineDefaults, EngineRules
from service.planning.software.engines.sglang import build_sglang_rules, resolve_sglang_defaults
from service.planning.software.engines.tensorrt_llm import build_tensorrt_llm_rules
from service.planning.software.engines.transformers import build_transformers_rules
from service.planning.software.engines.vllm import LARGE_DEVICE_BYTES, build_vllm_rules, resolve_vllm_defaults

_RULES: Mapping[EngineName, Callable[[str | None], EngineRules]] = {
    EngineName.VLLM: build_vllm_rules,
    EngineName.TENSORRT_LLM: build_tensorrt_llm_rules,
    EngineName.SGLANG: build_sglang_rules,
    EngineName.LLAMA_CPP: build_llama_cpp_rules,
    EngineName.TRANSFORMERS: build_transformers_rules,
}


@lru_cache(maxsize=MOST_TEXTS)
def resolve_rules(name: EngineName | None, version: str | None) -> EngineRules:
    """Returns the rules of an engine; without a version those of the newest known one."""
    rules = EngineRules() if name is None else _RULES[name](version)
    return rules._replace(generation=resolve_generation(name, version))


def resolve_defaults(
    rules: EngineRules,
    version: str | None,
    *,
    capacity_bytes: float,
    device: str = "",
    model_tokens: int | None,
    devices: int = 1,
) -> EngineDefaults:
    """Returns the defaults on ``devices`` of ``capacity_bytes`` each for a model of ``model_tokens``.

    ``device`` is the id of the device.

    vLLM V1 takes 1,024 requests and 8,192 tokens on devices of 70 GiB and more other than the A100, else 256
    and 2,048. V0 takes 256, and prefills whole prompts up to 32,768 tokens of model length, else 2,048 at a
    time. Transformers passes whole prompts, which is 0 here.
    """
    share = rules.memory_fraction
    match rules.name:
        case EngineName.VLLM:
            excepted = any(name in device for name in rules.small_batches_on)
            large = capacity_bytes >= LARGE_DEVICE_BYTES and not excepted
            return EngineDefaults(
                *resolve_vllm_defaults(version, large=large, model_tokens=model_tokens or 0), share
            )
        case EngineName.TENSORRT_LLM:
            return EngineDefaults(2048, 8192, share)
        case EngineName.SGLANG:
            return resolve_sglang_defaults(version, capacity_bytes=capacity_bytes, devices=devices)
        case _:
            batched = {EngineName.LLAMA_CPP: 512, EngineName.TRANSFORMERS: 0}
            return EngineDefaults(None, batched.get(rules.name, 8192) if rules.name else 8192, share)


class EngineSettings(NamedTuple):
    """An engine and its start options; None for those that it sets itself, by version, model and devices."""

    name: EngineName | None
    version: str | None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_batched_tokens: int | None = None
    block_tokens: int | None = None
    memory_fraction: float | None = None
    cuda_graphs: bool = True
    warmed_up: bool = True
    device_layers: int | None = None

    @property
    def rules(self) -> EngineRules:
        """Rules of the engine in this version."""
        return resolve_rules(self.name, self.version)

    def defaults_on(
        self, *, capacity_bytes: float, device: str, model_tokens: int | None, devices: int
    ) -> EngineDefaults:
        """Returns the defaults on ``devices`` per replica, each a ``device`` of ``capacity_bytes``."""
        return resolve_defaults(
            self.rules,
            self.version,
            capacity_bytes=capacity_bytes,
            device=device,
            model_tokens=model_tokens if self.max_model_len is None else self.max_model_len,
            devices=devices,
        )

"""Settings that training frameworks document for what a run leaves open.

What a question states comes first, then the documentation of its framework, then the search.
"""

from typing import NamedTuple

from service.planning.parallelism import PipelineSchedule, Sharding
from service.planning.software.frameworks import Framework
from service.planning.workload import Recomputation


class FrameworkDefaults(NamedTuple):
    """Documented settings of a framework; None where it documents none.

    ``sequence_parallel`` applies to tensor parallelism, ``schedule`` to pipelines, ``sharding`` to replicas,
    ``overlap_expert_communication`` to experts that are spread over devices.
    """

    source: str = ""
    """Documentation of the settings, as an answer cites it."""
    sequence_parallel: bool | None = None
    sharding: Sharding | None = None
    schedule: PipelineSchedule | None = None
    overlap_expert_communication: bool | None = None
    recomputation: Recomputation | None = None


_DEFAULTS = {
    Framework.MEGATRON_CORE: FrameworkDefaults(
        "the parallelism guide of Megatron Core and the recipes of Megatron-Bridge",
        sequence_parallel=True,
        sharding=Sharding.ZERO_1,
        overlap_expert_communication=False,
    ),
    Framework.MEGATRON_DEEPSPEED: FrameworkDefaults(
        "Megatron-DeepSpeed of BigScience, which has no sequence parallelism", sequence_parallel=False
    ),
    Framework.TORCHTITAN: FrameworkDefaults(
        "the job configuration of torchtitan",
        sequence_parallel=True,
        sharding=Sharding.ZERO_3,
        schedule=PipelineSchedule.ONE_F_ONE_B,
        recomputation=Recomputation.SELECTIVE,
    ),
    Framework.TORCHTUNE: FrameworkDefaults("the recipes of torchtune", recomputation=Recomputation.FULL),
    Framework.TRANSFORMERS: FrameworkDefaults(
        "TrainingArguments of transformers", recomputation=Recomputation.NONE
    ),
    Framework.MAXTEXT: FrameworkDefaults(
        "the base configuration of MaxText", sharding=Sharding.ZERO_3, recomputation=Recomputation.FULL
    ),
    Framework.NEURONX_DISTRIBUTED: FrameworkDefaults(
        "the Llama tutorials of NeuronX Distributed",
        sequence_parallel=True,
        sharding=Sharding.ZERO_1,
        recomputation=Recomputation.SELECTIVE,
    ),
}
"""Megatron Core: its parallelism guide recommends ``--sequence-parallel`` beside tensor parallelism, and the
recipes of Megatron-Bridge set ``use_distributed_optimizer``; ``overlap_moe_expert_parallel_comm`` is off
unless set; recomputation differs by recipe. torchtitan:
``ActivationCheckpoint.mode``, ``pipeline_parallel_schedule``, ``data_parallel_shard_degree`` -1; its tensor
parallelism divides sequences. torchtune: ``enable_activation_checkpointing``. transformers:
``gradient_checkpointing``. MaxText: ``remat_policy``, ``ici_fsdp_parallelism`` -1. NeuronX Distributed:
``use_sequence_parallel``, ``use_zero1_optimizer`` and ``use_selective_checkpoint`` of the tutorial of tensor
parallelism and ZeRO-1. DeepSpeed states its stage in every configuration, and the scripts of LitGPT differ
between pretraining and fine-tuning: both are left to the search. The settings are the same in all versions
that were read (2024 to 2026)."""


def find_defaults(framework: Framework) -> FrameworkDefaults:
    """Returns the documented settings of a framework."""
    return _DEFAULTS.get(framework, FrameworkDefaults())

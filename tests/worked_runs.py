"""Worked examples of data pipelines, scaling and reliability, computed by planning."""

import math

from service.planning.hardware.cluster import unnamed_cluster
from service.planning.memory.stages import stage_start
from service.planning.memory.states import shard_parameters, state_bytes_per_parameter
from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import FeedForward
from service.planning.models.profile import StageParameters, build_profile
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.planning.precision import (
    ELEMENT_BYTES,
    TRAINING_RECIPES,
    NumberFormat,
    Optimizer,
    TrainingPrecision,
)
from service.planning.reliability.interruptions import (
    failure_probability,
    system_mtbf,
    young_interval_seconds,
)
from service.planning.training import iron_law_seconds
from service.planning.training.data_pipeline import (
    INT64_BYTES,
    StageSeconds,
    buffer_bytes,
    compute_step_seconds,
    count_needed_workers,
    device_utilization,
    prefetched_batches,
    preprocessing_seconds,
    read_seconds,
    storage_bytes_per_second,
)
from service.planning.training.scaling import (
    TIME_LIMIT_SECONDS,
    RunScale,
    amdahl_speedup,
    communication_tax_speedup,
    strong_efficiency,
    suggest_scale,
)
from service.resolve.training import apply_layout, resolve_training_workload
from service.schemas.workloads import TrainingWorkloadInput
from tests.worked import example

DAY, YEAR = 86_400, 31_557_600


@example("storage-throughput")
def storage(i):
    return {"T_storage": storage_bytes_per_second(i["B_disk"], i["B_network"])}


@example("effective-throughput")
def shuffled(i):
    rate = i["T_storage"]
    return {"T_effective": storage_bytes_per_second(rate, math.inf, access_factor=i["F_access"])}


@example("practical-throughput")
def sustained(i):
    rate = storage_bytes_per_second(i["B_theoretical"], math.inf, access_factor=0.5)
    return {"T_practical": rate, "T_random": storage_bytes_per_second(rate, math.inf, access_factor=0.1)}


@example("memory-hierarchy-bw")
def hierarchy(i):
    behind = storage_bytes_per_second(i["storage"], i["system"])
    return {"T_memory": storage_bytes_per_second(behind, i["accelerator"])}


@example("preprocess-throughput")
def transformed(i):
    seconds = preprocessing_seconds(1.0, i["t_transform"], workers=i["workers"])
    return {
        "batches_per_s": 1 / seconds,
        "gpu_batches_per_s": 1 / compute_step_seconds(i["t_gpu"], StageSeconds(), prefetched=True),
        "workers_needed": count_needed_workers(i["t_transform"], i["t_gpu"]),
    }


@example("training-bottleneck-min3")
def slowest(i):
    stages = StageSeconds(preprocessing=i["t_pre"], transfer=i["t_xfer"])
    return {"throughput": 1000 / compute_step_seconds(i["t_gpu"], stages, prefetched=True)}


@example("pipeline-tokens")
def tokenised(i):
    tokens = i["batch_size"] * i["seq_len"]
    seconds = preprocessing_seconds(tokens, 1 / i["token_rate"], workers=1.0)
    return {"tokens_per_batch": tokens, "tokenization_ms": seconds * 1000}


@example("pipeline-batch-bytes")
def transferred(i):
    size = i["tokens"] * INT64_BYTES
    return {
        "batch_bytes": size,
        "batch_kb": size / 1024,
        "transfer_ms": read_seconds(size, i["pcie_bw"] * 1e9) * 1000,
    }


@example("pipeline-parallel-tokenise")
def parallel(i):
    return {"parallel_token_ms": preprocessing_seconds(1.0, i["tokenization_ms"], workers=i["workers"])}


@example("pipeline-verdict")
def verdict(i):
    stages = StageSeconds(preprocessing=i["tok_ms"])

    def limit(compute):
        return (
            "compute" if compute_step_seconds(compute, stages, prefetched=True) == compute else "tokenization"
        )

    a100 = i["a100_ms"]
    return {
        "v100_limit": limit(i["v100_ms"]),
        "a100_limit": limit(a100),
        "a100_util": device_utilization(a100, compute_step_seconds(a100, stages, prefetched=True)),
    }


@example("gpu-util-200")
def fed(i):
    stages = StageSeconds(storage=1 / i["pipeline"])

    def busy(rate):
        return 100 * device_utilization(1 / rate, compute_step_seconds(1 / rate, stages, prefetched=True))

    return {
        "util": busy(i["gpu"]),
        "util_fast": busy(i["gpu_fast"]),
        "system_rate": 1 / compute_step_seconds(1 / i["gpu"], stages, prefetched=True),
    }


@example("iteration-time-max")
def overlapped(i):
    stages = StageSeconds(storage=i["fetch"])
    together, serial = (compute_step_seconds(i["compute"], stages, prefetched=way) for way in (True, False))
    return {"overlapped": together, "serial": serial, "speedup": serial / together}


@example("stage-optimise-20pct")
def optimised(i):
    def takes(load, compute):
        return compute_step_seconds(compute, StageSeconds(storage=load), prefetched=True)

    before = takes(i["load"], i["compute"])
    return {
        "saved_compute": before - takes(i["load"], i["compute"] * 0.8),
        "saved_load": before - takes(i["load"] * 0.8, i["compute"]),
    }


@example("buffer-memory-eq")
def buffers(i):
    parts = {"processing": i["processing"], "transferring": i["transfer"]}
    return {"M_required": buffer_bytes(i["batch_bytes"], prefetched=i["prefetch"], **parts)}


@example("pipeline-condition")
def condition(i):
    return {
        "workers_worst": count_needed_workers(i["t_pre_max"], i["t_gpu_min"]),
        "workers_best": count_needed_workers(i["t_pre_min"], i["t_gpu_max"]),
    }


@example("prefetch-buffer-batches")
def ready(i):
    return {"batches": prefetched_batches(i["num_workers"], i["prefetch_factor"])}


@example("prefetch-buffer-memory")
def ready_images(i):
    samples = i["batch"] * i["res"] ** 2 * i["channels"]

    def gb(element_bytes, workers=1):
        held = prefetched_batches(workers, i["factor"])
        return buffer_bytes(samples * element_bytes, prefetched=held, processing=0, transferring=0) / 1e9

    return {
        "uint8_gb": gb(i["bytes"]),
        "fp32_gb": gb(ELEMENT_BYTES[NumberFormat.FP32]),
        "with_4_workers_gb": gb(i["bytes"], workers=4),
    }


@example("fp-io-idle")
def idle(i):
    def without(share):
        waiting = StageSeconds(storage=share)
        return compute_step_seconds(1 - share, waiting, prefetched=False) / (1 - share)

    return {"speedup_lo": without(i["lo"]), "speedup_hi": without(i["hi"])}


@example("scale-factor-10gb")
def streamed(i):
    small, large = (read_seconds(i[size] * 1e9, i["bw"] * 1e9) for size in ("small", "large"))
    return {"t_small": small, "t_large_h": large / 3600, "ratio": large / small}


@example("gpt2-profile")
def without_data(i):
    computing = i["attn"] + i["matmul"]
    whole = compute_step_seconds(computing, StageSeconds(storage=i["data"]), prefetched=False)
    return {"total": whole, "amdahl_no_data": whole / computing}


@example("profile-40-35-25", "wt-profile-before")
def dominant(i):
    beside = i.get("memory") or i["transfer"]
    stages = StageSeconds(storage=i["data"], transfer=beside)
    longest = "data" if stages.slowest == i["data"] > i["compute"] else "other"
    return {
        "total": compute_step_seconds(i["compute"], stages, prefetched=False),
        "dominant": longest,
        "diagnosis": f"{longest}-bound",
    }


@example("ga-gpt2-batch")
def accumulated(i):
    given = TrainingWorkloadInput(
        kind="training", micro_batch_size=i["micro_batch"], global_batch_size=i["effective_batch"]
    )
    plain = resolve_training_workload(given, unnamed_cluster(1), AnswerNotes())

    def steps(devices):
        laid_out = apply_layout(plain, given, Parallelism(data=devices))
        return laid_out and laid_out.micro_batches

    per_device = i["micro_batch"] * steps(i["gpus_accum"])
    return {
        "gpus_naive": next(n for n in range(1, 1000) if steps(n) == 1),
        "batch_per_gpu": per_device,
        "global_batch_accum": per_device * i["gpus_accum"],
    }


@example(
    *(
        f"comm-tax-{kind}-{count}"
        for kind in ("ideal", "compute-bound", "balanced", "bandwidth-bound")
        for count in (8, 64, 256)
    ),
    "comm-tax-annotation",
)
def communication_tax(i):
    speedup = communication_tax_speedup(i["N"], i["r"])
    return {"speedup": speedup, "efficiency": strong_efficiency(1.0, i["N"], 1 / speedup)}


@example("comm-tax-limit")
def ceilings(_):
    taxes = {"c05": 0.05, "c15": 0.15, "c40": 0.40}
    return {name: amdahl_speedup(1e12, tax) for name, tax in taxes.items()}


@example("mlsys-amdahl")
def amdahl(i):
    return {"speedup": amdahl_speedup(i["s"], 1 - i["p"])}


@example("fp-dist-speedup")
def synchronised(i):
    return {
        f"speedup_{end}": i["gpus"] * device_utilization(1 - i[share], 1.0)
        for end, share in (("hi", "lo"), ("lo", "hi"))
    }


@example("mp-layers-24-4")
def stages_of_layers(_):
    def first(blocks, stages):
        architecture = Architecture(
            layers=(LayerBlock(layers=(FeedForward(hidden_size=8, inner_size=8),), count=blocks),)
        )
        layout = Parallelism(pipeline=stages)
        return stage_start(build_profile(architecture), layout, 1)

    return {"a": first(24, 4), "b": first(48, 3)}


@example("mp-bubble")
def naive(i):
    return {"naive_util": 1 - Parallelism(pipeline=i["devices"]).bubble_share(1)}


@example("pp-util")
def piped(i):
    layout = Parallelism(pipeline=i["P"])
    return {f"util_{end}": 1 - layout.bubble_share(i[f"M_{end}"]) for end in ("lo", "hi")}


@example("mlsys-pipeline-bubble")
def bubble(i):
    return {"bubble": Parallelism(pipeline=i["P"]).bubble_share(i["M"])}


@example("dp-vs-mp-split")
def split(i):
    width = ELEMENT_BYTES[NumberFormat.FP16]
    parameters = StageParameters(i["P"], 0.0, 0.0)

    def held(layout):
        return shard_parameters(parameters, layout).weights * width / 1e9

    return {
        "dp_mem_gb": held(Parallelism(data=i["N"])),
        "mp_mem_gb": held(Parallelism(tensor=i["N"])),
        "dp_comm_gb": held(Parallelism(data=i["N"])),
        "mp_comm_gb_per_boundary": i["B"] * i["S"] * i["H"] * width / 1e9,
    }


@example(
    "scale-decision-single-gpu",
    "scale-decision-single-node",
    "scale-decision-multi-node",
    "scale-decision-streaming",
)
def decided(i):
    names = {
        RunScale.SINGLE_DEVICE: "single-gpu",
        RunScale.SINGLE_NODE: "single-node",
        RunScale.CLUSTER: "multi-node",
    }
    hint = suggest_scale(i["params"], i["data_gb"] * 1e9)
    return {"approach": names[hint.scale] + ("+streaming" if hint.streaming else "")}


@example("scale-exhaust-first")
def exhausted(_):
    wide, narrow = (
        state_bytes_per_parameter(TRAINING_RECIPES[precision], Optimizer.ADAM).weights
        for precision in (TrainingPrecision.FP32, TrainingPrecision.BF16)
    )
    return {"mp_memory_saving": 1 - narrow / wide, "wallclock_limit": TIME_LIMIT_SECONDS / DAY}


@example("scale-h100-1e24")
def decades(i):
    def years(rate, utilization):
        return iron_law_seconds(i["flops"], peak_flops_per_second=rate, utilization=utilization) / YEAR

    return {"years": years(i["rate"], 1.0), "years_at_mfu50": years(989e12, 0.5)}


@example("mlsys-young-daly")
def young(i):
    return {"tau": young_interval_seconds(i["delta"], i["mtbf"])}


@example("mlsys-cluster-mtbf")
def cluster_mtbf(i):
    return {"mtbf": system_mtbf((i["N"], i["mttf"]))}


@example("mlsys-node-mtbf")
def node_mtbf(_):
    return {"mtbf": system_mtbf((8, 50_000.0), (8, 150_000.0), (2, 100_000.0))}


@example("mlsys-failure-prob")
def failing(i):
    return {"p": failure_probability(i["T"], i["mtbf"])}

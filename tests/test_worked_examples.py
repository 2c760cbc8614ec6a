"""Every worked example is placed: computed by planning, a catalog fact, a decision, or out for a reason."""

import csv
import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from service.catalog.shipped import list_shipped_documents
from service.planning.cost import break_even_runs, compute_charge
from service.planning.energy.carbon import location_based_kg_co2e
from service.planning.energy.power import energy_kwh, facility_kwh, power_watts
from service.planning.hardware.storage import PLAIN_FORMATS
from service.planning.memory.activations import activation_bytes_per_token
from service.planning.memory.caches import key_value_bytes
from service.planning.memory.states import state_bytes_per_parameter
from service.planning.memory.training import estimate_training_memory
from service.planning.models.architecture import Architecture, LayerBlock, ModelEmbeddings, ModelInputShape
from service.planning.models.layers import Attention, Convolution, FeedForward, Linear, Normalization
from service.planning.models.positions import SampleShape, block_positions, forward_flops_of_sample
from service.planning.models.profile import (
    ActivationTerms,
    activation_terms,
    build_profile,
    build_profile_from_count,
)
from service.planning.models.profile.saved import sampled_terms
from service.planning.operators import (
    arithmetic_intensity,
    compute_roofline,
    forward_flops_per_token,
    ridge_point,
    step_flops,
    wave_rounds,
)
from service.planning.parallelism import Parallelism
from service.planning.precision import (
    ELEMENT_BYTES,
    OPTIMIZER_STATES,
    TRAINING_RECIPES,
    NumberFormat,
    Optimizer,
    TrainingPrecision,
)
from service.planning.training import IRON_LAW_TERMS, IronLawTechnique, compute_utilization, iron_law_seconds
from service.planning.units import GIBIBYTE_BYTES
from service.planning.workload import AttentionKernel, Recomputation, TrainingWorkload
from tests import worked_communication, worked_costs, worked_energy, worked_runs  # noqa: F401
from tests.shapes import catalog_architecture
from tests.worked import COMPUTED, example

HERE = Path(__file__).parent
EXAMPLES = {
    example["id"]: example for example in json.loads((HERE / "data" / "worked_examples.json").read_text())
}
with (HERE / "worked_examples.csv").open() as file:
    PLACED = {row["id"]: row for row in csv.DictReader(file)}

DAY, HOUR, YEAR = 86_400, 3_600, 31_557_600
FP32_ADAM = state_bytes_per_parameter(TRAINING_RECIPES[TrainingPrecision.FP32], Optimizer.ADAM)


@example("model-gpt2")
def gpt2(i):
    return {
        "gpt2_params_gb_fp32": i["params"] * FP32_ADAM.weights / 1e9,
        "gpt2_adam_gb": i["params"] * FP32_ADAM.optimizer_states / 1e9,
        "gpt2_layers": build_profile(catalog_architecture("gpt2-xl")).block_count,
    }


@example("model-resnet50")
def resnet50(i):
    return {"resnet_params_gb": i["params"] * FP32_ADAM.weights / 1e9}


@example("dlrm-range")
def dlrm(i):
    return {"lo_gb": i["lo"] * FP32_ADAM.weights / 1e9, "hi_tb": i["hi"] * FP32_ADAM.weights / 1e12}


def first_convolution(**changes):
    """The first convolution of ResNet-50 (He et al. 2015)."""
    shape = {"input_channels": 3, "output_channels": 64, "kernel_height": 7, "kernel_width": 7, "stride": 2}
    return Convolution(**{**shape, **changes})


def picture(*layers):
    return Architecture(
        inputs=(ModelInputShape(name="image", kind="image", height=224),), layers=(LayerBlock(layers=layers),)
    )


@example("resnet-conv1")
def first_feature_map(i):
    """What the norm behind the convolution keeps is what the convolution gave."""
    norm = Normalization(size=i["c"], norm="batch")
    places = block_positions(picture(first_convolution(), norm), SampleShape())[0].layers
    assert places[0].leaving == i["h"] * i["w"]
    size = sampled_terms(norm, places[1]).whole_elements * i["bytes"] / 1e6
    batch = size * i["batch"]
    return {"first_conv_mb": size, "batch_mb": batch, "first_conv_mb_batch32": batch}


@example("bwd-dims")
def backward_tensors(i):
    """The input that the convolution keeps, and a gradient as large as what it gives, of 64 images."""
    del i
    convolution = first_convolution()
    places = block_positions(picture(convolution), SampleShape())[0].layers[0]
    kernel = next(iter(convolution.list_tensors()))
    return {
        "input_mb": 64 * sampled_terms(convolution, places).whole_elements * 4 / 1e6,
        "grad_mb": 64 * places.leaving * convolution.output_channels * 4 / 1e6,
        "kernel_params": kernel.size,
    }


@example("conv-ops")
def convolution_work(i):
    """Without padding and in steps of one, as the example counts."""
    layer = first_convolution(stride=1, padded=False, output_channels=i["filters"], kernel_height=i["k"])
    architecture = picture(layer)
    (positions,) = block_positions(architecture, SampleShape(height=i["hw"]))
    return {
        "ops_per_pos": next(iter(layer.list_tensors())).size / i["filters"],
        "spatial": math.isqrt(positions.leaving),
        "total_macs": i["batch"] * forward_flops_of_sample(architecture, SampleShape(height=i["hw"])) / 2,
    }


@example("conv-footnote")
def separable(i):
    """One convolution over all channels, against one in each channel and a matrix across them."""

    def ratio(channels):
        shape = {"input_channels": channels, "output_channels": channels}
        whole, each, across = (
            next(
                iter(
                    Convolution(**shape, kernel_height=side, kernel_width=side, groups=groups).list_tensors()
                )
            ).size
            for side, groups in ((3, 1), (3, channels), (1, 1))
        )
        return whole / (each + across)

    return {"r1": ratio(i["K1"]), "r2": ratio(i["K2"])}


@example("model-gpt2-param-count-check")
def gpt2_parameters(i):
    hidden = i["H"]
    attention = Attention(hidden_size=hidden, query_heads=25, key_value_heads=25, head_size=hidden // 25)
    block = LayerBlock(
        layers=(attention, FeedForward(hidden_size=hidden, inner_size=4 * hidden)), count=i["L"]
    )
    table = ModelEmbeddings(size=hidden, vocabulary_size=i["vocab"], position_count=i["ctx"])
    blocks = build_profile(Architecture(layers=(block,))).parameter_count
    total = build_profile(Architecture(layers=(block,), embeddings=table)).parameter_count
    return {"block_params": blocks, "embed_params": total - blocks, "total_params": total}


@example("gpt2-head-dim")
def gpt2_head(i):
    blocks = catalog_architecture("gpt2-xl").list_blocks()
    attention = next(layer for block in blocks for layer in block.layers if layer.kind == "attention")
    assert (attention.hidden_size, attention.query_heads) == (i["hidden_dim"], i["heads"])
    return {"head_dim": attention.head_size}


@example("arith-intensity-eq")
def intensity(i):
    return {"ai": arithmetic_intensity(i["flops"], i["bytes_read"] + i["bytes_written"])}


@example(
    "roofline-point-softmax",
    "roofline-point-layernorm",
    "roofline-point-std-attention",
    "roofline-point-matmul",
    "roofline-point-flash-attention",
)
def attainable(i):
    times = compute_roofline(
        i["ai"], 1.0, peak_flops_per_second=i["peak"], bandwidth_bytes_per_second=i["bw"]
    )
    return {"attainable": i["ai"] / times.seconds}


@example("roofline-ridge-figure", "roofline-ridge-a100", "roofline-ridge-h100")
def ridge(i):
    value = ridge_point(i["peak"], i["bw"])
    return {"ridge": value, "a100_ridge": value, "h100_ridge": value}


@example("roofline-classify-a100-96", "roofline-classify-a100-200", "roofline-classify-h100-200")
def classify(i):
    bound = compute_roofline(
        i["ai"], 1.0, peak_flops_per_second=i["ridge"], bandwidth_bytes_per_second=1.0
    ).bound
    return {"bound": f"{bound}-bound"}


@example("mlsys-bottleneck")
def bottleneck(i):
    times = compute_roofline(
        i["ops"], i["bytes"], peak_flops_per_second=i["peak"], bandwidth_bytes_per_second=i["bw"]
    )
    return {
        "compute_ms": times.compute_seconds * 1000,
        "memory_ms": times.memory_seconds * 1000,
        "bottleneck": times.bound.capitalize(),
        "ratio": times.seconds / min(times.compute_seconds, times.memory_seconds),
        "intensity": arithmetic_intensity(i["ops"], i["bytes"]),
    }


@example("iron-law")
def iron_law(i):
    return {"T_train": iron_law_seconds(i["O"], peak_flops_per_second=i["R_peak"], utilization=i["eta"])}


@example("iron-law-mapping")
def iron_law_terms(_):
    names = {"operations": "O", "utilization": "eta", "peak_rate": "R_peak", "bytes": "HBM bytes"}
    signs = {"up": "+", "down": "-"}
    written = {
        technique: ",".join(f"{names[term]}{signs[way]}" for term, way in terms)
        for technique, terms in IRON_LAW_TERMS.items()
    }
    return {
        "mixed_precision": written[IronLawTechnique.MIXED_PRECISION],
        "prefetch": written[IronLawTechnique.PREFETCH],
        "checkpointing": written[IronLawTechnique.RECOMPUTATION],
        "grad_accumulation": written[IronLawTechnique.GRADIENT_ACCUMULATION],
        "fusion": written[IronLawTechnique.OPERATOR_FUSION],
        "flash_attention": {"O+,eta+,HBM bytes-": "O+ (about 20% more in backward), eta+, HBM bytes -"}[
            written[IronLawTechnique.FLASH_ATTENTION]
        ],
    }


@example("ub-flops", "cf-flops")
def flops(i):
    parameters, tokens = i.get("params") or i["cf_params"], i.get("tokens") or i["cf_tokens"]
    forward = forward_flops_per_token(build_profile_from_count(int(parameters)), 2048)
    value = step_flops(forward).model * tokens
    return {"total_flops": value, "cf_total_flops": value}


@example("ub-effective")
def effective(i):
    seconds = iron_law_seconds(1.0, peak_flops_per_second=i["peak_tflops"], utilization=i["utilization"])
    return {"effective_tflops": 1.0 / seconds}


@example("ub-time")
def time_on_one(i):
    peak = i["effective_tflops"] * 1e12
    seconds = iron_law_seconds(i["total_flops"], peak_flops_per_second=peak, utilization=1.0)
    return {"time_seconds": seconds, "time_years": seconds / YEAR}


@example("ub-cluster-days")
def cluster_days(i):
    operations = i["time_seconds"] * 494.5e12
    seconds = iron_law_seconds(
        operations, peak_flops_per_second=989e12, utilization=0.5, devices=i["num_gpus"]
    )
    return {"cluster_days": seconds / DAY, "gpu_hours": seconds * i["num_gpus"] / HOUR}


@example("ub-rental")
def rental(i):
    hours = i["num_gpus"] * 24 * i["cluster_days"]
    return {"rental_cost": float(compute_charge(hours, Decimal(i["rental_rate"]), "USD"))}


@example("ub-purchase")
def purchase(i):
    return {"purchase_cost": float(compute_charge(i["num_gpus"], Decimal(i["purchase_price"]), "USD"))}


@example("ub-breakeven", "ub-breakeven-hours", "ub-guards")
def break_even(i):
    purchase = i.get("purchase_cost") or i.get("purchase") or i["price"]
    rental = i.get("rental_cost") or i.get("rental") or i["rate"]
    runs = break_even_runs(purchase, rental)
    return {
        "breakeven_runs": runs,
        "whole_runs_needed": math.ceil(runs),
        "breakeven_days": runs * 19.660712279519156,
        "hours": runs,
        "rent_cheaper_once": rental < purchase,
        "breakeven_ok": runs >= 3,
    }


@example("ub-energy-extension")
def energy_of_bill(i):
    watts = power_watts(accelerators=i["gpus"], accelerator_watts=i["tdp"])
    it = energy_kwh(watts, i["days"] * DAY)
    facility = facility_kwh(it, i["pue"])
    electricity = float(compute_charge(facility, Decimal(str(i["price"])), "USD"))
    return {
        "it_kwh": it,
        "facility_kwh": facility,
        "electricity_usd": electricity,
        "co2_t": location_based_kg_co2e(facility, i["ci"]) / 1000,
        "share_of_rental": electricity / 1415571.2841253793,
    }


@example("cf-time")
def carbon_time(i):
    peak = i["cf_sustained_tflops"] * 1e12
    seconds = iron_law_seconds(
        i["cf_total_flops"], peak_flops_per_second=peak, utilization=1.0, devices=i["cf_num_gpus"]
    )
    return {"cf_time_seconds": seconds, "cf_time_hours": seconds / HOUR, "cf_time_days": seconds / DAY}


@example("cf-mfu")
def carbon_utilization(i):
    return {"util": compute_utilization(i["sustained"], peak_flops_per_second=i["peak"])}


@example("cf-power")
def carbon_power(i):
    hosts = i["cf_num_gpus"] // i["gpus_per_host"]
    devices = {"accelerators": i["cf_num_gpus"], "accelerator_watts": i["cf_gpu_tdp_w"]}
    beside = {"hosts": hosts, "host_watts": i["cf_cpu_tdp_per_host_w"]}
    return {
        "cf_hosts": hosts,
        "cf_gpu_power_w": power_watts(**devices),
        "cf_cpu_power_w": power_watts(**beside),
        "cf_total_power_w": power_watts(**devices, **beside),
    }


@example("cf-energy")
def carbon_energy(i):
    return {"cf_energy_kwh": energy_kwh(i["cf_total_power_w"], i["cf_time_hours"] * HOUR)}


@example("cf-saved")
def carbon_saved(i):
    # Half of the energy is that of half the time at the same power.
    saved = energy_kwh(435_200.0, i["cf_energy_kwh"] / 435.2 / 2 * HOUR)
    return {
        "cf_energy_saved_kwh": saved,
        "cf_co2_tons": location_based_kg_co2e(saved, i["ci"]) / 1000,
    }


@example("cf-co2-total")
def carbon_total(i):
    with_pue = facility_kwh(i["kwh"], 1.12)
    return {
        "co2_seed_t": location_based_kg_co2e(i["kwh"], 0.4) / 1000,
        "co2_us_t": location_based_kg_co2e(i["kwh"], 0.429) / 1000,
        "co2_us_pue_t": location_based_kg_co2e(with_pue, 0.429) / 1000,
    }


@example("cf-cost")
def carbon_cost(i):
    return {
        "usd_012": float(compute_charge(i["kwh"], Decimal("0.12"), "USD")),
        "usd_010": float(compute_charge(i["kwh"], Decimal("0.10"), "USD")),
    }


@example("grid-quebec", "grid-norway", "grid-france", "grid-eu", "grid-us", "grid-poland")
def grid(i):
    facility = facility_kwh(i["it_kwh"], i["pue"])
    return {
        "facility_kwh": facility,
        "co2_t": location_based_kg_co2e(facility, i["g_per_kwh"] / 1000) / 1000,
    }


@example("mlsys-kv-cache")
def kv_cache(i):
    shape = {"hidden_size": i["H"] * i["D"], "query_heads": i["H"], "key_value_heads": i["H"]}
    attention = Attention(head_size=i["D"], **shape)
    profile = build_profile(Architecture(layers=(LayerBlock(layers=(attention,), count=i["L"]),)))
    size = i["B"] * key_value_bytes(profile, i["S"], NumberFormat.FP16)
    assert ELEMENT_BYTES[NumberFormat.FP16] == i["b"]
    return {"bytes_": size, "gb": size / 1e9}


@example("sum-quant-8x")
def quantised(_):
    one = build_profile_from_count(10**9).weights
    wide, narrow = (
        one.get_stored_weights(PLAIN_FORMATS[n]).total for n in (NumberFormat.FP32, NumberFormat.INT4)
    )
    return {"ratio": wide / narrow}


@example("gpt2-qkv-flops")
def query_key_value_flops(i):
    hidden = i["hidden_dim"]
    attention = Attention(hidden_size=hidden, query_heads=25, key_value_heads=25, head_size=hidden // 25)
    projections = [tensor for tensor in attention.list_tensors() if tensor.name != "output"]
    per_token = sum(tensor.size * tensor.multiplied for tensor in projections)
    macs = per_token * i["batch"] * i["seq_len"]
    return {"macs_qkv": macs, "flops_qkv": 2 * macs}


PURE = TRAINING_RECIPES[TrainingPrecision.PURE_BF16]
AMP_ADAM = state_bytes_per_parameter(TRAINING_RECIPES[TrainingPrecision.FP16], Optimizer.ADAM)


@example("lighthouse-gpt2-weights", "gpt3-weights", "mp-1b-weights")
def weights(i):
    count = i.get("params") or i["gpt3_params"]
    wide, narrow = (count * state.weights / 1e9 for state in (FP32_ADAM, AMP_ADAM))
    return {
        "fp16_gb": narrow,
        "fp32_gb": wide,
        "gpt3_fp16_gb": narrow,
        "gpt3_fp32_gb": wide,
        "saving_pct": 100 * (1 - narrow / wide),
    }


@example("scn-memory-pressure", "adam-100m")
def adam(i):
    count = i.get("params") or i["params_m"] * 1e6
    states = count * FP32_ADAM.optimizer_states
    return {"weights": count * FP32_ADAM.weights / 1e9, "adam": states / 1e9, "overhead_mb": states / 1e6}


@example("gpt2-static-fp32", "gpt2-static-amp", "scale-70b-training-state", "fp-7b-same-method")
def static_state(i):
    count = i.get("params") or i["p"] * 1e9
    wide, narrow = ([count * part / 1e9 for part in state] for state in (FP32_ADAM, AMP_ADAM))
    return {
        "param_fp32_gb": wide[0],
        "grad_fp32_gb": wide[1],
        "adam_m_fp32_gb": wide[3] / 2,
        "adam_v_fp32_gb": wide[3] / 2,
        "total_static_fp32": sum(wide),
        "param_fp16_gb": narrow[0],
        "grad_fp16_gb": narrow[1],
        "master_fp32_gb": narrow[2],
        "total_static_amp": sum(narrow),
        "state_gb": sum(narrow),
        "gpus": math.ceil(sum(narrow) / 80),
        "fallacies_gb": narrow[0] + narrow[3],
        "vram_gb": narrow[0] + narrow[1] + narrow[3],
        "full_gb": sum(narrow),
    }


@example("vram-7b", "vram-admin-tax")
def small_device(i):
    narrow = [7e9 * part / 1e9 for part in AMP_ADAM]
    subtotal = narrow[0] + narrow[1] + narrow[3]
    return {
        "weights_gb": narrow[0],
        "gradients_gb": narrow[1],
        "optimizer_gb": narrow[3],
        "subtotal_gb": subtotal,
        "subtotal_with_master_gb": sum(narrow),
        "fits": subtotal <= i.get("gpu_capacity_gb", 0),
        "tax": (narrow[1] + narrow[3]) / narrow[0],
        "tax_with_master": (narrow[1] + narrow[2] + narrow[3]) / narrow[0],
    }


@example("dp-7b-weights", "mlsys-model-memory-gpt3")
def widths(i):
    count = i.get("params", 0)
    return {
        "weights_gb": count * ELEMENT_BYTES[NumberFormat.FP16] / 1e9,
        "fp16_gb": count * ELEMENT_BYTES[NumberFormat.FP16] / 1e9,
        "int4_gb": count * ELEMENT_BYTES[NumberFormat.INT4] / 1e9,
    }


@example("mlsys-model-memory-resnet")
def resnet_weights(i):
    return {"mb": i["params"] * FP32_ADAM.weights / 1e6}


@example("optimizer-table")
def optimizers(_):
    return {
        f"{name}_mem": 1 + OPTIMIZER_STATES[Optimizer(name)]
        for name in ("sgd", "momentum", "rmsprop", "adam")
    }


@example("scn-ckpt-fn")
def recomputed(_):
    flops = step_flops(1.0, recomputed=1.0)
    return {"extra_compute": flops.recomputation / flops.model}


@example("ckpt-selective")
def saved_by_layer(i):
    hidden, tokens = i["H"], i["B"] * i["S"]
    attention = Attention(hidden_size=hidden, query_heads=25, key_value_heads=25, head_size=hidden // 25)
    inner = activation_terms(FeedForward(hidden_size=hidden, inner_size=4 * hidden)).split_elements
    # Query, key and value; the result of attention is the fourth.
    rows = activation_terms(attention).split_elements - hidden
    return {name: n * tokens * i["bytes"] / 1e6 for name, n in (("qkv_mb", rows), ("ffn_mb", inner))}


@example("attn-matrix-mem")
def score_matrix(i):
    def stored(heads):
        terms = ActivationTerms(score_elements=heads)
        of = {"element_bytes": i["bytes"], "kernel": AttentionKernel.STANDARD}
        return activation_bytes_per_token(terms, **of).quadratic * i["seq_len"] ** 2

    return {
        "attn_matrix_mb": stored(1) / 1e6,
        "total_attn_mb": stored(i["n_heads"]) / 1e6,
        "total_attn_gb": stored(i["n_heads"]) / 1e9,
    }


@example("ga-equivalence", "ckpt-strategy-none")
def accumulated(i):
    def held(**changes):
        workload = TrainingWorkload(
            sequence_length=128,
            micro_batch_size=1,
            micro_batches=1,
            recipe=PURE,
            optimizer=Optimizer.ADAM,
            kernel=AttentionKernel.FLASH,
            recomputation=Recomputation.NONE,
        )._replace(**changes)
        attention = Attention(hidden_size=64, query_heads=1, key_value_heads=1, head_size=64)
        blocks = LayerBlock(
            layers=(attention, FeedForward(hidden_size=64, inner_size=256)), count=i.get("L", 1)
        )
        profile = build_profile(Architecture(layers=(blocks,)))
        stage = estimate_training_memory(profile, workload, Parallelism())[0]
        one = activation_bytes_per_token(
            profile.blocks[0].activations, element_bytes=2.0, kernel=AttentionKernel.FLASH
        ).linear
        return stage.stored.linear * stage.tokens, stage.stored.linear / one

    steps, size = i.get("k", 1), i.get("b", 1)
    whole, micro = held(micro_batch_size=steps * size)[0], held(micro_batch_size=size)[0]
    return {
        "B": steps * size,
        "memory_reduction": whole / micro,
        "memory_units": held()[1],
        "recompute_layers": step_flops(1.0).recomputation,
    }


@example("fit-gib-vs-gb")
def binary(_):
    return {f"g{label}": label * GIBIBYTE_BYTES / 1e9 for label in (24, 32, 40, 80)}


@example("scn-backward-2x", "ckpt-33")
def backward(i):
    forward = forward_flops_per_token(build_profile_from_count(int(i.get("params", 1))), 2048)
    flops = step_flops(forward, recomputed=forward)
    return {
        "train_per_token": flops.model,
        "multiplier": flops.model / flops.forward,
        "overhead": flops.recomputation / flops.model,
    }


@example("scn-mixed-fn")
def halved(_):
    return {"memory_saving": FP32_ADAM.weights / AMP_ADAM.weights}


@example("gpt2-attn-score-flops", "mp-qk-flops")
def scores(i):
    """Scores and the weighting of values, as many FLOPs each, are what no weight matrix multiplies."""
    heads, size = i.get("heads") or i["H"], i.get("head_dim") or i["D"]
    length, batch = i.get("seq_len") or i["N"], i.get("batch") or i["B"]
    attention = Attention(hidden_size=heads * size, query_heads=heads, key_value_heads=heads, head_size=size)
    profile = build_profile(Architecture(layers=(LayerBlock(layers=(attention,)),)))
    both = forward_flops_per_token(profile, length) - profile.matmul_flops_per_token
    flops = both / 2 * batch * length
    return {"macs_score": flops / 2, "flops_score": flops, "flops": flops}


@example("gpt2-ffn-flops", "gpt2-layer-fwd-flops")
def layer_flops(i):
    hidden, length, batch = i.get("hidden_dim", 1600), i.get("seq_len", 1024), i.get("batch", 32)
    attention = Attention(hidden_size=hidden, query_heads=25, key_value_heads=25, head_size=hidden // 25)
    inner = FeedForward(hidden_size=hidden, inner_size=4 * hidden)

    def flops(*layers):
        profile = build_profile(Architecture(layers=(LayerBlock(layers=layers),)))
        return forward_flops_per_token(profile, length) * length * batch

    return {
        "macs_ffn": flops(inner) / 2,
        "flops_ffn": flops(inner),
        "flops_layer_fwd": flops(attention, inner),
    }


@example("layer-ops")
def linear_flops(i):
    profile = build_profile(
        Architecture(layers=(LayerBlock(layers=(Linear(input_size=i["h"], output_size=i["w"]),)),))
    )
    flops = profile.matmul_flops_per_token * i["batch"]
    return {"macs": flops / 2, "flops": flops}


@example("gpt2-training-flops-6nd")
def training_flops(i):
    tokens = i["steps"] * i["batch"] * i["seq"]
    return {
        "flops_6nd": step_flops(
            forward_flops_per_token(build_profile_from_count(int(i["N"])), i["seq"])
        ).model
        * tokens
    }


@example("gpt2-step-v100-time", "mlsys-training-time")
def seconds_of(i):
    seconds = iron_law_seconds(
        i.get("ops") or i["step_tflops"] * 1e12,
        peak_flops_per_second=i.get("peak") or i["v100_tflops"] * 1e12,
        utilization=i.get("eta", 1.0),
        devices=i.get("n", 1),
    )
    return {"v100_time_s": seconds, "seconds": seconds, "days": seconds / DAY}


@example("mfu-eq", "flash-fa3", "mfu-7b-a100-upstream")
def utilization(i):
    rate = i.get("achieved") or i.get("flops_per_step", 0) * i.get("steps_per_s", 0)
    if "N" in i:
        forward = forward_flops_per_token(build_profile_from_count(int(i["N"])), i["tokens"])
        rate = step_flops(forward).model * i["tokens"] / i["t"]
    share = compute_utilization(rate, peak_flops_per_second=i["peak"])
    return {"mfu": share, "fraction": share}


@example("fa2-72")
def rate_at_a_utilization(i):
    return {"tflops": 1 / iron_law_seconds(1.0, peak_flops_per_second=i["peak"], utilization=0.72)}


@example("mp-a100-speedup")
def faster_format(i):
    slow, fast = (
        iron_law_seconds(1.0, peak_flops_per_second=i[name], utilization=1.0) for name in ("fp32", "fp16")
    )
    return {"speedup": slow / fast}


@example("sum-adam-third")
def adam_copies(_):
    return {"memory_ratio": 1 + OPTIMIZER_STATES[Optimizer.ADAM]}


@example("fp-mem-compute")
def divided(i):
    whole, physical = int(i["fp_effective_batch"]), int(i["fp_physical_batch"])
    return {"fp_memory_reduction": accumulated({"k": whole // physical, "b": physical})["memory_reduction"]}


@example("wave-32", "wave-33", "wave-64", "wave-65")
def warps_of_a_batch(i):
    warps = wave_rounds(i["batch"], i["warp"])
    whole = i["batch"] - i["batch"] % i["warp"]
    return {
        "warps": warps,
        "utilization_pct": 100 * i["batch"] / i["warp"] / warps,
        "relative_time": warps / wave_rounds(whole, i["warp"]),
    }


@example("wave-h100-sm")
def waves_of_an_h100(i):
    multiprocessors = 132
    rounds = wave_rounds(i["waves"] * multiprocessors, multiprocessors)
    return {"waves_run": rounds, "efficiency": i["waves"] / rounds}


@example("wave-tail-warp")
def one_thread_of_a_warp(_):
    return {"fraction": 1 / 32 / wave_rounds(1, 32)}


RESTATED = {
    # Operations per parameter and the most that a source claims, which no function computes.
    "mp-bubble": {"stated_min", "stated_max"},
    "optimizer-table": {"sgd_ops", "momentum_ops", "rmsprop_ops", "adam_ops"},
    "scn-ckpt-fn": {"max_memory_reduction"},
    "scn-mixed-fn": {"throughput_min", "throughput_max"},
    "sum-adam-third": {"iteration_ratio"},
    "fp-mem-compute": {"fp_util_diff"},
    # Restatements of an input, which no function computes.
    "gpt2-training-flops-6nd": {"tokens", "ratio"},
    "model-gpt2": {"gpt2_params_b"},
    "model-resnet50": {"resnet_params_m"},
}


def test_every_example_is_placed_once():
    assert PLACED.keys() == EXAMPLES.keys()
    assert {row["kind"] for row in PLACED.values()} <= {"test", "catalog", "decision", "out"}
    unexplained = [i for i, row in PLACED.items() if row["kind"] != "test" and not row["reference"]]
    assert not unexplained


def test_what_the_notes_doubt_is_computed_or_decided():
    """Of the areas of cost, energy, carbon, memory and of training on one device."""
    areas = {
        "cost",
        "memory",
        "optimizer",
        "numerics",
        "compute",
        "throughput",
        "roofline",
        "models",
        "constants",
        "energy",
        "carbon",
    }
    doubts = {"seed-error", "implausible", "internal-inconsistency"}
    left_out = [
        example_id
        for example_id, placed in EXAMPLES.items()
        if placed["area"] in areas
        and doubts & set(placed.get("flags", []))
        and PLACED[example_id]["kind"] == "out"
    ]
    assert not left_out


def test_what_is_placed_as_computed_is_computed():
    assert COMPUTED.keys() == {i for i, row in PLACED.items() if row["kind"] == "test"}


@pytest.mark.parametrize("example_id", sorted(COMPUTED))
def test_planning_gives_the_sound_value(example_id):
    placed = EXAMPLES[example_id]
    computed = COMPUTED[example_id]({name: given["value"] for name, given in placed["inputs"].items()})
    sound = {**placed["expected"], **placed.get("corrected", {})}
    expected = {name: entry for name, entry in sound.items() if name not in RESTATED.get(example_id, set())}
    assert expected.keys() <= computed.keys()
    for name, entry in expected.items():
        value, unit = entry["value"], entry["unit"]
        if isinstance(value, str | bool):
            assert computed[name] == value, name
        else:
            # Money is rounded to the cent once, shares as they are printed.
            rounded = {"USD": 0.005, "%": placed["tolerance"].get("abs", 0.0)}.get(unit, 0.0)
            relative = placed["tolerance"].get("rel", 0.0)
            assert computed[name] == pytest.approx(value, rel=relative, abs=rounded), name


CATALOG_FACTS: dict[str, dict[str, Callable[[dict[str, Any]], float]]] = {
    "hw-v100": {
        "v100_tflops_fp16": lambda row: row["peak_flops_per_second"]["fp16"] / 1e12,
        "v100_tflops_fp32": lambda row: row["peak_flops_per_second"]["fp32"] / 1e12,
        "v100_bw": lambda row: row["memory_bandwidth_bytes_per_second"] / 1e9,
        "v100_mem": lambda row: row["memory_label_gb"],
    },
    "hw-a100": {
        "a100_tflops_fp16": lambda row: row["peak_flops_per_second"]["bf16"] / 1e12,
        "a100_tflops_fp32": lambda row: row["peak_flops_per_second"]["fp32"] / 1e12,
        "a100_bw_tbs": lambda row: row["memory_bandwidth_bytes_per_second"] / 1e12,
        "a100_bw_gbs": lambda row: row["memory_bandwidth_bytes_per_second"] / 1e9,
        "a100_mem": lambda row: row["memory_label_gb"],
        "a100_tdp": lambda row: row["power_limit_watts"],
        "a100_ridge": lambda row: ridge_point(
            row["peak_flops_per_second"]["bf16"], row["memory_bandwidth_bytes_per_second"]
        ),
    },
}


def test_what_is_placed_as_a_fact_is_looked_up():
    assert CATALOG_FACTS.keys() == {i for i, row in PLACED.items() if row["kind"] == "catalog"}


@pytest.mark.parametrize("example_id", sorted(CATALOG_FACTS))
def test_the_catalog_holds_the_fact(example_id):
    noun, row_id = PLACED[example_id]["reference"].split("/")
    row = next(row for row in list_shipped_documents()[noun] if row["id"] == row_id)
    facts = CATALOG_FACTS[example_id]
    assert facts.keys() == EXAMPLES[example_id]["expected"].keys()
    for name, read in facts.items():
        assert read(row) == pytest.approx(EXAMPLES[example_id]["expected"][name]["value"], rel=1e-6), name

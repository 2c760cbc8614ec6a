"""Number formats, and the format of each part of the training state.

Widths are the storage widths of IEEE 754 and of the OCP 8-bit and 4-bit formats; TF32 is a compute mode of
FP32 storage. The recipes follow mixed-precision training (Micikevicius et al. 2018): 16-bit weights and
gradients, an FP32 master copy, FP32 optimizer states. Together with Adam's two moments that is 2 + 2 + 4 + 8
= 16 bytes per parameter, as is pure FP32 with 4 + 4 + 8. ``frameworks`` lists the deviations of frameworks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class NumberFormat(StrEnum):
    """Storage format of an element, or mode in which it is multiplied."""

    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    INT8 = "int8"
    FP4 = "fp4"
    INT4 = "int4"


ELEMENT_BITS = {
    NumberFormat.FP64: 64,
    NumberFormat.FP32: 32,
    NumberFormat.TF32: 32,
    NumberFormat.FP16: 16,
    NumberFormat.BF16: 16,
    NumberFormat.FP8: 8,
    NumberFormat.INT8: 8,
    NumberFormat.FP4: 4,
    NumberFormat.INT4: 4,
}
_TENSOR_FP64 = "fp64_tensor"


def parse_peaks(rates: Mapping[str, float]) -> dict[NumberFormat, float]:
    """Returns the dense rates of products of a data sheet, in FLOP/s, from its rates by name.

    Products of FP64 take tensor cores where a device has them for it. Other names are left out.
    """
    names = {number_format.value: number_format for number_format in NumberFormat}
    found = {names[name]: float(rate) for name, rate in rates.items() if name in names}
    return found | ({NumberFormat.FP64: float(rates[_TENSOR_FP64])} if _TENSOR_FP64 in rates else {})


ELEMENT_BYTES = {number_format: bits / 8 for number_format, bits in ELEMENT_BITS.items()}

COMPUTE_FORMATS = {
    NumberFormat.FP64: (NumberFormat.FP64,),
    NumberFormat.FP32: (NumberFormat.FP32,),
    NumberFormat.TF32: (NumberFormat.TF32,),
    NumberFormat.FP16: (NumberFormat.FP16,),
    NumberFormat.BF16: (NumberFormat.BF16,),
    NumberFormat.FP8: (NumberFormat.FP8, NumberFormat.BF16, NumberFormat.FP16, NumberFormat.FP32),
    NumberFormat.INT8: (NumberFormat.INT8, NumberFormat.BF16, NumberFormat.FP16, NumberFormat.FP32),
    NumberFormat.FP4: (NumberFormat.FP4, NumberFormat.BF16, NumberFormat.FP16, NumberFormat.FP32),
    NumberFormat.INT4: (NumberFormat.BF16, NumberFormat.FP16, NumberFormat.FP32),
}
"""Modes in which weights of a format are multiplied: the first that the accelerator has.

A device without the narrow unit widens the weights to 16 bits first (weight-only quantisation: Marlin,
matmul_ogs of Triton), FP4 on units of FP8 too, since activations stay wide; INT4 has no dense unit in the
current generations and is always widened. A device without fast 16-bit units, such as a Tesla P40, widens
them to FP32 (llama.cpp).
"""


class LowPrecision(StrEnum):
    """Scaling of a recipe: per tensor from a history, or per block (OCP MX: 32 elements, NVFP4: 16)."""

    DELAYED = "delayed"
    BLOCKWISE = "blockwise"
    MX = "mx"
    NVFP4 = "nvfp4"


@dataclass(frozen=True, slots=True)
class TrainingRecipe:
    """Formats of the training state and of the multiplication; ``master`` is None without a copy.

    ``accumulated_gradients`` are held beside the gradients and sharded like them, ``main_gradients`` beside
    the master weights and sharded like those. ``casts`` is true if weights are stored wide and multiplied
    from a narrow copy; ``low`` is the scaling of FP8 copies that matrices are multiplied from.
    """

    weights: NumberFormat
    gradients: NumberFormat
    master: NumberFormat | None
    optimizer_states: NumberFormat
    activations: NumberFormat
    compute: NumberFormat
    accumulated_gradients: NumberFormat | None = None
    main_gradients: NumberFormat | None = None
    casts: bool = False
    low: LowPrecision | None = None


class TrainingPrecision(StrEnum):
    """Names of the recipes; all but ``fp32``, ``tf32`` and ``pure_bf16`` keep an FP32 master copy."""

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    PURE_BF16 = "pure_bf16"
    FP8_DELAYED = "fp8_delayed"
    FP8_BLOCKWISE = "fp8_blockwise"
    MXFP8 = "mxfp8"
    NVFP4 = "nvfp4"


_F32, _F16, _B16, _F8 = NumberFormat.FP32, NumberFormat.FP16, NumberFormat.BF16, NumberFormat.FP8
_F4 = NumberFormat.FP4

TRAINING_RECIPES = {
    TrainingPrecision.FP32: TrainingRecipe(_F32, _F32, None, _F32, _F32, _F32),
    TrainingPrecision.TF32: TrainingRecipe(_F32, _F32, None, _F32, _F32, NumberFormat.TF32),
    TrainingPrecision.FP16: TrainingRecipe(_F16, _F16, _F32, _F32, _F16, _F16),
    TrainingPrecision.BF16: TrainingRecipe(_B16, _B16, _F32, _F32, _B16, _B16),
    TrainingPrecision.PURE_BF16: TrainingRecipe(_B16, _B16, None, _B16, _B16, _B16),
    TrainingPrecision.FP8_DELAYED: TrainingRecipe(
        _B16, _B16, _F32, _F32, _B16, _F8, low=LowPrecision.DELAYED
    ),
    TrainingPrecision.FP8_BLOCKWISE: TrainingRecipe(
        _B16, _B16, _F32, _F32, _B16, _F8, low=LowPrecision.BLOCKWISE
    ),
    TrainingPrecision.MXFP8: TrainingRecipe(_B16, _B16, _F32, _F32, _B16, _F8, low=LowPrecision.MX),
    TrainingPrecision.NVFP4: TrainingRecipe(_B16, _B16, _F32, _F32, _B16, _F4, low=LowPrecision.NVFP4),
}

LOW_PRECISION_BYTES = {
    LowPrecision.DELAYED: 1.0,
    LowPrecision.BLOCKWISE: 1.0 + 4.0 / 128,
    LowPrecision.MX: 1.0 + 1.0 / 32,
    LowPrecision.NVFP4: 0.5 + 1.0 / 16,
}
"""Bytes of an element with its share of the scales: FP32 per 128 elements of a row (DeepSeek-V3 2024,
section 3.3.2), 8 bits per 32 (OCP MX 1.0) or per 16 (NVFP4: Abecassis et al. 2025, section 2). The history of
a delayed recipe is of tensors, not elements."""


class Optimizer(StrEnum):
    """Optimizers by their state."""

    SGD = "sgd"
    MOMENTUM = "momentum"
    RMSPROP = "rmsprop"
    ADAGRAD = "adagrad"
    ADAM = "adam"
    ADAMW = "adamw"
    ADAM_8BIT = "adam_8bit"
    PAGED_ADAMW = "paged_adamw"
    PAGED_ADAMW_8BIT = "paged_adamw_8bit"
    ADAFACTOR = "adafactor"
    LION = "lion"
    LAMB = "lamb"
    LARS = "lars"
    SHAMPOO = "shampoo"
    MUON = "muon"
    GALORE = "galore"


OPTIMIZER_STATES = {
    Optimizer.SGD: 0,
    Optimizer.MOMENTUM: 1,
    Optimizer.RMSPROP: 1,
    Optimizer.ADAGRAD: 1,
    Optimizer.ADAM: 2,
    Optimizer.ADAMW: 2,
    Optimizer.PAGED_ADAMW: 2,
    Optimizer.LION: 1,
    Optimizer.LAMB: 2,
    Optimizer.LARS: 1,
}
"""State elements per parameter of the optimizers with equal states for each: velocity; squared

gradient; first and second moment. The states of the others depend on the shape of each tensor.
"""

PAGED = frozenset({Optimizer.PAGED_ADAMW, Optimizer.PAGED_ADAMW_8BIT})
"""Optimizers whose states are managed memory, which the driver moves to the host when the device is full."""

"""Effect of optimizer updates and compressions on gradients, by NumPy: the reference of the kernels."""

from typing import Any, NamedTuple

import numpy as np

BLOCK = 1024
"""Gradients that share a scale when each is sent in 8 bits."""
LARGEST = 127

Values = np.ndarray[Any, Any]


class UpdateRule(NamedTuple):
    """An update: m' = keep_m m + add_m g, v' = keep_v v + add_v g^2, and their effect on the weight.

    w' = decay w - rate m' / (sqrt(correct_v v') + epsilon); of momentum decay w - rate m'.
    """

    keep_m: float
    add_m: float
    keep_v: float
    add_v: float
    correct_v: float
    epsilon: float
    rate: float
    decay: float

    def to_fp32(self) -> "UpdateRule":
        """Returns the same rule with numbers rounded to fp32, as a kernel uses them."""
        return UpdateRule._make(np.float32(value) for value in self)

    def to_bits(self) -> tuple[int, ...]:
        """Returns the bits of the numbers in fp32, as arguments of a kernel."""
        return tuple(int(value) for value in np.array(self, np.float32).view(np.uint32))


_STEP, _RATE = 10, 3e-4
RULES = {
    # Loshchilov, Hutter, Decoupled Weight Decay Regularization, ICLR 2019, algorithm 2, in step 10.
    "adamw": UpdateRule(
        keep_m=0.9,
        add_m=0.1,
        keep_v=0.95,
        add_v=0.05,
        correct_v=1 / (1 - 0.95**_STEP),
        epsilon=1e-8,
        rate=_RATE / (1 - 0.9**_STEP),
        decay=1 - _RATE * 0.1,
    ),
    # Sutskever, Martens, Dahl, Hinton, ICML 2013, as torch.optim.SGD writes it; no dampening, no decay.
    "sgd_momentum": UpdateRule(0.9, 1.0, 0.0, 0.0, 0.0, 0.0, 1e-2, 1.0),
}


def apply_rule(
    rule: UpdateRule, gradient: Values, weight: Values, m: Values, v: Values | None
) -> tuple[Values, Values, Values | None]:
    """Returns weight and states after one update, in the arrays' precision, one rounding an operation."""
    m = rule.keep_m * m + rule.add_m * gradient
    if v is None:
        return rule.decay * weight - rule.rate * m, m, None
    v = rule.keep_v * v + rule.add_v * (gradient * gradient)
    size = np.sqrt(v * rule.correct_v) + rule.epsilon
    return weight * rule.decay - rule.rate * m / size, m, v


def quantize_int8(values: Values) -> tuple[Values, Values, Values]:
    """Returns whole numbers, a scale for each block of 1024, and the residuals; fp32."""
    blocks = values.reshape(-1, BLOCK)
    largest = np.abs(blocks).max(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        inverse = np.where(largest, np.float32(LARGEST) / largest, np.float32(0))
    scales = largest / np.float32(LARGEST)
    sent = np.rint(blocks * inverse)
    return sent.astype(np.int8).reshape(-1), scales.reshape(-1), (blocks - sent * scales).reshape(-1)


def quantize_sign(values: Values, scale: np.float32) -> tuple[Values, Values]:
    """Returns the signs (true below 0), and the residuals if the scale stands for every size."""
    below = values < 0
    return below, values - np.where(below, -scale, scale)


def encode_bf16(values: Values) -> Values:
    """Rounds fp32 to bf16, ties to even, as its 16 bits."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype(
        np.uint16
    )

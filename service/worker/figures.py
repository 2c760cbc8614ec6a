"""Figures formatted for people."""

from collections.abc import Sequence
from statistics import median

_UNITS = {
    "flops_per_second": "FLOP/s",
    "bytes_per_second": "B/s",
    "seconds": "s",
    "bytes": "B",
    "watts": "W",
}
_PREFIXES = (
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "u"),
)
_SMALLEST = (1e-9, "n")


def format_value(value: float, metric: str) -> str:
    """Formats a value with the decimal prefix that fits it: 812.3 TFLOP/s, 5.12 us."""
    size, prefix = next(
        ((size, prefix) for size, prefix in _PREFIXES if abs(value) >= size),
        _SMALLEST if value else (1.0, ""),
    )
    return f"{value / size:.4g} {prefix}{_UNITS[metric]}"


def format_figures(figures: Sequence[float], metric: str) -> str:
    """Formats the median of repeats, and their spread."""
    middle = median(figures)
    text = format_value(middle, metric)
    if len(figures) == 1 or not middle:
        return text
    return f"{text}, repeats within {compute_spread(figures):.1%}"


def compute_spread(figures: Sequence[float]) -> float:
    """Returns the largest less the smallest figure, as a share of their median."""
    return (max(figures) - min(figures)) / median(figures)

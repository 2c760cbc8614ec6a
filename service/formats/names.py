"""Names of accelerators, models and other rows as people and machines write them."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import lru_cache
from heapq import nlargest
from typing import Final

_SIGNS: Final = re.compile(r"\((?:r|tm|c)\)|[®™]")
_BETWEEN_DIGITS: Final = re.compile(r"(?<=[0-9])[\W_]+(?=[0-9])")
_SEPARATORS: Final = re.compile(r"(?<![0-9])-|-(?![0-9])|[^\w-]|_")
_WORDS: Final = re.compile(r"[^\W_]+(?:\.[0-9]+[^\W_]*)*")
_VENDORS: Final = (
    *("nvidia", "amd", "intel", "habana", "google", "aws", "amazon"),
    *("instinct", "tesla", "geforce", "quadro", "cloud", "standard"),
)
_VENDOR_PREFIX: Final = re.compile(rf"^(?:{'|'.join(_VENDORS)})+(?=[a-z0-9])")
VENDOR_WORDS: Final = frozenset(_VENDORS)
"""Words of the maker or seller of an accelerator, which tell no two of its parts apart."""

_NEAREST_LENGTH: Final = 100
_NEAREST_COMPARED: Final = 64
_NEAREST_RATIO: Final = 0.5


def normalize_name(name: str) -> str:
    """Returns ``name`` without case and without separators, except one hyphen between two digits.

    ``NVIDIA H100 80GB HBM3`` and ``nvidia-h100-80gb-hbm3`` are one name, ``qwen2.5-7b`` and ``qwen2-57b``
    are two.
    """
    hyphened = _BETWEEN_DIGITS.sub("-", _SIGNS.sub("", name.casefold()))
    return _SEPARATORS.sub("", hyphened)


def normalize_part_name(name: str) -> str:
    """Returns the normal form of an accelerator's name without its vendor."""
    return _VENDOR_PREFIX.sub("", normalize_name(name))


@lru_cache(maxsize=8192)
def split_words(name: str) -> tuple[str, ...]:
    """Returns the words of ``name`` without case; a dot between digits belongs to its word."""
    return tuple(_WORDS.findall(_SIGNS.sub("", name.casefold())))


def find_nearest(name: str, known: Iterable[str], most: int) -> list[str]:
    """Returns the normal forms among ``known`` that are most like ``name``, the nearest first."""
    asked = name[:_NEAREST_LENGTH]
    wanted, words = normalize_name(asked), [normalize_name(word) for word in split_words(asked)]

    def count_shared(other: str) -> tuple[int, bool, int]:
        shared = sum(len(word) for word in words if word in other)
        return shared, other[:2] == wanted[:2], -abs(len(other) - len(wanted))

    compared = nlargest(_NEAREST_COMPARED, known, key=count_shared)
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    rated: list[tuple[float, str]] = []
    for other in compared:
        matcher.set_seq1(other[:_NEAREST_LENGTH])
        if matcher.quick_ratio() >= _NEAREST_RATIO and (ratio := matcher.ratio()) >= _NEAREST_RATIO:
            rated.append((ratio, other))
    return [other for _, other in nlargest(most, rated)]

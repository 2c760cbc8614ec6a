"""Whole groups of rows, dealt to five folds: what one of them teaches is tried on the others.

A group is one source's rows of one model on one device. Random rows would flatter every table: siblings of
a row would be in the fit. The split is a file of digests, because most rows may not ship; a group that it
does not know goes by its digest alone.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from accuracy.rows import MeasuredRow

FOLDS: Final = 5
_DIGITS: Final = 16


def group_of(row: MeasuredRow) -> str:
    """Digest of the row's group."""
    name = json.dumps([row.source, row.model_id, row.accelerator_id], ensure_ascii=False)
    return hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]


@cache
def committed_split() -> Mapping[str, int]:
    """The fold of each group that was dealt."""
    split: Mapping[str, int] = json.loads((files("accuracy") / "folds.json").read_text())
    return split


def fold_of(group: str, split: Mapping[str, int]) -> int:
    """The fold of a group, by the split or else by its digest."""
    return split.get(group, int(group, 16) % FOLDS)


def deal(rows: Iterable[MeasuredRow], split: Mapping[str, int]) -> dict[str, int]:
    """The split with the groups of ``rows`` that it lacks, the largest first, each to the emptiest fold."""
    sizes = Counter(group_of(row) for row in rows)
    dealt = dict(split)
    filled = Counter(dict.fromkeys(range(FOLDS), 0))
    for group, size in sizes.items():
        if group in dealt:
            filled[dealt[group]] += size
    for group in sorted(sizes.keys() - dealt.keys(), key=lambda group: (-sizes[group], group)):
        fold = min(filled, key=lambda fold: (filled[fold], fold))
        dealt[group] = fold
        filled[fold] += sizes[group]
    return dict(sorted(dealt.items()))

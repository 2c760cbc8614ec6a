"""Folds of groups of rows, for validation on groups outside of a fit.

A group is one source's rows of one model on one device. Random rows would flatter every table, since siblings
of a row would be in the fit. The split is a file of digests, because most rows may not ship; a group outside
of the file is assigned by its digest.
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
    """Returns the digest of the row's group."""
    name = json.dumps([row.source, row.model_id, row.accelerator_id], ensure_ascii=False)
    return hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]


@cache
def committed_split() -> Mapping[str, int]:
    """Returns the fold of each group in the committed split."""
    split: Mapping[str, int] = json.loads((files("accuracy") / "folds.json").read_text())
    return split


def fold_of(group: str, split: Mapping[str, int]) -> int:
    """Returns the fold of a group, from the split or else from its digest."""
    return split.get(group, int(group, 16) % FOLDS)


def deal(rows: Iterable[MeasuredRow], split: Mapping[str, int]) -> dict[str, int]:
    """Returns the split with missing groups of ``rows``, the largest first, each in the emptiest fold."""
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

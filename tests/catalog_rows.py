"""Catalogs of tests with other rows."""

from service.resolve.names import NamedRows
from service.resolve.row_layers import build_named_row

_KEYS = ("as_of", "model_id", "accelerator_id")


def with_rows(rows, changed):
    """Returns rows with the planning values of ``changed`` added or in place of theirs."""
    return NamedRows(
        *rows.layers,
        [
            build_named_row(
                row_id, (), row, keys=[(key, getattr(row, key)) for key in _KEYS if hasattr(row, key)]
            )
            for row_id, row in changed.items()
        ],
    )

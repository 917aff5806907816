"""What Python users have in their hands: frames, arrays and tensors of any library, as ours.

Nothing is imported to know them: a tensor, a pandas frame or a data set of Hugging Face is known by
what it can do. Rows are taken by position; where two indices of pandas say otherwise, that is said.
"""

from __future__ import annotations

from isolux.core.inputs.arrays import as_array
from isolux.core.inputs.columns import (
    infer_label_type,
    to_series_with_nulls,
    to_single_column,
)
from isolux.core.inputs.frames import is_table_like, to_polars
from isolux.core.inputs.rows import refuse_misaligned_pandas_indices

__all__ = [
    "IN_MEMORY",
    "as_array",
    "infer_label_type",
    "is_table_like",
    "refuse_misaligned_pandas_indices",
    "to_polars",
    "to_series_with_nulls",
    "to_single_column",
]

IN_MEMORY = "(in memory)"
"""What stands in the place of a file's name, in messages and in the record of a run."""

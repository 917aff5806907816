"""Stand-ins for what torch, jax and datasets give: no more of each than isolux relies on."""

from __future__ import annotations

import numpy as np
import polars as pl


class Tensor:
    """A tensor that, as torch's, cannot be read by numpy before it is detached and on the CPU."""

    def __init__(self, values, *, grad=False, device="cpu", bfloat16=False, sparse=False):
        self.values = np.asarray(values)
        self.grad, self.device, self.bfloat16, self.is_sparse = grad, device, bfloat16, sparse
        self.shape = self.values.shape

    def _with(self, **changed):
        kept = {"grad": self.grad, "device": self.device, "bfloat16": self.bfloat16,
                "sparse": self.is_sparse}  # fmt: skip
        return Tensor(self.values, **{**kept, **changed})

    def detach(self):
        return self._with(grad=False)

    def cpu(self):
        return self._with(device="cpu")

    def to_dense(self):
        return self._with(sparse=False)

    def float(self):
        return self._with(bfloat16=False)

    def item(self):
        return self.values.item()

    def numpy(self):
        if self.grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.device != "cpu" or self.is_sparse or self.bfloat16:
            raise TypeError("can't convert, Got unsupported ScalarType or device")
        return self.values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.numpy(), dtype=dtype)


class ClassLabel:
    def __init__(self, names):
        self.names = names


class Image:
    """The feature of that name, whose cells are files."""


class HuggingFace:
    """A data set: a table, its features, and the rows that are selected."""

    def __init__(self, columns, features):
        self.frame, self.features = pl.DataFrame(columns), features
        self.removed: list[str] = []

    def __len__(self):
        return self.frame.height

    @property
    def column_names(self):
        return self.frame.columns

    def remove_columns(self, names):
        kept = {k: v for k, v in self.features.items() if k not in names}
        return HuggingFace(self.frame.drop(names), kept)

    def to_polars(self):
        if any(isinstance(one, Image) for one in self.features.values()):
            raise AssertionError("pictures are not to be read")
        return self.frame


class Stream:
    """An iterable data set: columns are known, rows are not."""

    features: dict = {}
    column_names = ("race",)


class ArrowStream:
    """Anything that gives Arrow's C stream and nothing else."""

    def __init__(self, columns):
        self._frame = pl.DataFrame(columns)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._frame.__arrow_c_stream__(requested_schema)

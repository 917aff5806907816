"""The classes that an estimator was fitted on, in the order of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from isolux.io.cells import as_labels
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.given import as_column, kind_of


@dataclass(frozen=True, slots=True)
class Classes:
    """The names of classes, as text, in the order of ``classes_``; and what they were before."""

    labels: tuple[str, ...]
    kind: str

    def alike(self, values: pl.Series) -> pl.Series:
        """Write True and False as 1 and 0, whichever of the two the classes hold."""
        return values.cast(pl.Int8) if values.dtype == pl.Boolean else values

    def label_of(self, given: Any) -> str | None:
        """Return a class that a setting names as text, or say that there is none of that name."""
        if given is None:
            return None
        label = str(as_labels(self.alike(pl.Series([given])))[0])
        if label not in self.labels:
            raise SpecError(
                "the positive class is not one of the estimator's", where="positive",
                expected=", ".join(map(repr, self.labels)), found=repr(given),
            )  # fmt: skip
        return label


def classes_of(estimator: Any) -> Classes:
    """Read ``classes_``."""
    given = getattr(estimator, "classes_", None)
    if given is None:
        raise SpecError(
            "nothing says which classes the estimator knows, and in which order",
            expected="classes_, as fitted classifiers of scikit-learn have it",
            found=f"{type(estimator).__name__} without classes_",
            hint="of another library: isolux.audit(table, target=…, prediction_column=…)",
        )
    if isinstance(given, list | tuple) and given and hasattr(given[0], "shape") and given[0].shape:
        raise SpecError(
            "the estimator answers several questions at once", expected="one class a row",
            found=f"{len(given)} sets of classes_",
            hint="audit each: isolux.audit(table, target=…, prediction_column=…)",
        )  # fmt: skip
    cells = as_column(given, "classes_")
    known = Classes((), kind_of(cells))
    return Classes(tuple(as_labels(known.alike(cells)).to_list()), known.kind)


def same_kind(values: pl.Series, classes: Classes, name: str) -> None:
    """Refuse text where the estimator was fitted on numbers, and the other way round."""
    kind = kind_of(values)
    if values.null_count() == len(values) or "text" not in {kind, classes.kind}:
        return
    if kind != classes.kind:
        raise SpecError(
            f"{name} holds {kind}, and the estimator was fitted on {classes.kind}",
            expected="one code: " + ", ".join(map(repr, classes.labels[:5])),
            found=", ".join(repr(one) for one in values.drop_nulls().unique().to_list()[:5]),
            hint="a LabelEncoder's inverse_transform, or classes_[answers], brings them into one",
        )

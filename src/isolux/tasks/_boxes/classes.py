"""Which class a prediction may find: names for a detector's numbers, and class by class or not.

Files of results name classes by number, and a dataset in COCO's form says what the numbers mean.
Where predictions are of several of the dataset's classes, a box finds only who is of its class, and
the numbers are means over classes: COCO's AP and AR, with nothing further asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from isolux.tasks._boxes.pictures import distinct
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.notes import Caution

COCO_LIMIT = 100
"""Detections of an image and class that COCO's AP and AR look at."""
_FEW = 0.5  # share of the dataset's classes that a model must know to be judged by all, unsaid


@dataclass(frozen=True, slots=True)
class Judging:
    """Whether a detection finds only who is of its class, and whether each class is told apart."""

    by_class: bool
    apart: bool = True


def named(
    frame: pl.DataFrame, numbers: Mapping[str, str], person_label: str | Sequence[str] | None
) -> tuple[pl.DataFrame, str | Sequence[str] | None, tuple[str, ...]]:
    """Give predictions the names of their classes where they have the dataset's numbers.

    Examples
    --------
    >>> rows = pl.DataFrame({"label": ["1", "1", "44"]})
    >>> frame, label, _ = named(rows, {"1": "person", "2": "bicycle"}, "1")
    >>> frame["label"].to_list(), label
    (['person', 'person', '44'], 'person')
    """
    known = distinct(frame, "label") if numbers and "label" in frame.columns else []
    names = set(numbers.values())
    if not set(known) & set(numbers) or set(known) & names:
        return frame, person_label, ()
    if isinstance(person_label, str):
        person_label = numbers.get(person_label, person_label)
    elif person_label is not None:
        person_label = [numbers.get(name, name) for name in person_label]
    frame = frame.with_columns(pl.col("label").replace(dict(numbers)))
    note = "Classes are named by the dataset: the predictions have the numbers of its categories."
    return frame, person_label, (note,)


def judging_of(
    dataset: Dataset,
    frame: pl.DataFrame,
    *,
    by_class: bool | None,
    person_class: str | Sequence[str] | None,
    person_label: str | Sequence[str] | None,
) -> Judging:
    """Tell whether to judge class by class; where not said, by what both sides name."""
    if by_class is not None or person_label is not None or "label" not in frame.columns:
        return Judging(bool(by_class))
    classes, labels = _classes(dataset, person_class), set(distinct(frame, "label"))
    met = classes is not None and classes & labels and max(len(classes), len(labels)) > 1
    return Judging(by_class=bool(met), apart=not met)


def _classes(dataset: Dataset, person_class: str | Sequence[str] | None) -> frozenset[str] | None:
    """Name the classes of who is judged; None where anyone has several."""
    lists = dataset.instances["classes"] if "classes" in dataset.instances.columns else None
    if lists is None or (lists.list.len() > 1).any():
        return None
    every = frozenset(lists.explode().drop_nulls().unique().to_list())
    if person_class is None:
        return every
    wanted = (person_class,) if isinstance(person_class, str) else person_class
    return every & frozenset(wanted)


def on_few_classes(labels: Sequence[str], classes: Sequence[str]) -> tuple[str, ...]:
    """Caution where a model that knows few of the classes is judged by all of them."""
    met = sorted(set(labels) & set(classes))
    shown = ", ".join(map(repr, met[:3])) + (", …" if len(met) > 3 else "")
    text = (
        f"The predictions are of {len(met):,} of the dataset's {len(classes):,} classes ({shown});"
        " what is of the others counts as missed, and means over classes hold them too."
        " --person-class names the classes to judge."
    )
    return (Caution(text),) if classes and len(met) < _FEW * len(classes) else ()

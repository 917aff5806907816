"""Predictions whose labels are not those of the objects: another category, another number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.previews import ShapePreview
from isolux.plausibility._audit_inputs import AuditInputs
from isolux.plausibility._shape_halves import MIN_GAIN, Halves, is_gain
from isolux.stats.statistic import FloatArray

# What detectors of people and faces call them, or their only class.
_PERSON_LABELS = (
    *(
        "person",
        "people",
        "persons",
        "human",
        "humans",
        "pedestrian",
        "man",
        "woman",
        "boy",
        "girl",
    ),
    *("child", "face", "faces", "head", "body", "rider", "0", "1"),
)
_MAX_LISTED = 4


def find_renamed_shapes(preview: ShapePreview, inputs: AuditInputs) -> str | None:
    """Describe labels that keep predictions from matching people, or return None."""
    classes, labels = _distinct(preview.people.label), _distinct(preview.predicted.label)
    if not classes or not labels:
        return None
    judged_labels = _distinct(preview.predicted.label[preview.is_judged])
    by_label = _similarity_by_label(preview, labels)
    halves = Halves.split(preview)
    if inputs.options.get("person_label") is not None:
        return _describe_other_classes(
            preview, halves, by_label, judged_labels
        ) or _describe_better_label(preview, halves, by_label, judged_labels, inputs)
    is_by_class = inputs.task in ("grounding", "open_vocabulary")  # others find any class
    if is_by_class and len(labels) == 1 < len(classes) and labels[0] in classes:
        return (
            f"All predictions of {preview.model!r} are labelled {labels[0]!r}, and the objects are"
            f" {_join(classes)}: those of other classes count as missed."
        )
    if set(labels) & set(classes):
        return _describe_assignment(preview, halves, by_label, inputs)
    if len(labels) == 1 and labels[0].lower() not in _PERSON_LABELS:
        return (
            f"All predictions of {preview.model!r} are labelled {labels[0]!r}, and the objects are"
            f" {_join(classes)}: each may find any of them. Are these predictions of the same"
            " class?"
        )
    return None


def _distinct(labels: npt.NDArray[np.object_]) -> list[str]:
    return sorted({str(label) for label in labels if label is not None})


def _join(names: Sequence[str]) -> str:
    name_list = ", ".join(map(repr, names[:_MAX_LISTED]))
    return name_list + (", …" if len(names) > _MAX_LISTED else "")


def _similarity_by_label(preview: ShapePreview, labels: Sequence[str]) -> dict[str, FloatArray]:
    """Return each person's similarity to the best prediction of each label: ``[m]``."""
    pairs, n = preview.find_pairs(preview.predicted), len(preview.people.image)
    frame = pl.DataFrame(
        {
            "person": pairs.truth,
            "iou": pairs.iou,
            "label": preview.predicted.label[pairs.detection].tolist(),
        },
        schema_overrides={"label": pl.String},
    )
    best = frame.group_by("label", "person").agg(pl.col("iou").max()).drop_nulls("label")
    similarity = {label: np.zeros(n) for label in labels}
    for (label,), rows in best.partition_by("label", as_dict=True).items():
        similarity[str(label)][rows["person"].to_numpy()] = rows["iou"].to_numpy()
    return similarity


def _best_of(by_label: Mapping[str, FloatArray], labels: Sequence[str]) -> FloatArray:
    return np.asarray(np.max([by_label[label] for label in labels], axis=0))


def _describe_other_classes(
    preview: ShapePreview,
    halves: Halves,
    by_label: Mapping[str, FloatArray],
    judged_labels: Sequence[str],
) -> str | None:
    """Describe objects of other classes than the label that counts as a person."""
    is_named = np.isin(preview.people.label.astype(str), judged_labels)
    if not judged_labels or not (halves.have_enough(is_named) and halves.have_enough(~is_named)):
        return None
    similarity = _best_of(by_label, judged_labels)
    own_mean, other_mean = similarity[is_named].mean(), similarity[~is_named].mean()
    gaps = [
        similarity[half & is_named].mean() - similarity[half & ~is_named].mean()
        for half in (halves.chosen_on, halves.judged_on)
    ]
    if min(gaps) < MIN_GAIN:
        return None
    other_classes = _join(_distinct(preview.people.label[~is_named]))
    names = " ".join(f"--person-class {name}" for name in judged_labels)
    return (
        f"{100 * (~is_named).mean():.0f} % of the objects are of other classes ({other_classes})"
        f" than the predictions that take part ({_join(judged_labels)}), and count as missed: these"
        f" overlap them by {other_mean:.2f} on average, and objects of their own class by"
        f" {own_mean:.2f}. {names} judges that class alone."
    )


def _describe_better_label(
    preview: ShapePreview,
    halves: Halves,
    by_label: Mapping[str, FloatArray],
    judged_labels: Sequence[str],
    inputs: AuditInputs,
) -> str | None:
    """Describe another label whose predictions fit people far better than those that count."""
    other_labels = [label for label in by_label if label not in judged_labels]
    if not other_labels or not judged_labels or not halves.have_enough():
        return None
    before = _best_of(by_label, judged_labels)
    best = max(other_labels, key=lambda label: float(by_label[label][halves.chosen_on].mean()))
    after = by_label[best]
    if not is_gain(before, after, halves):
        return None
    classes = _distinct(preview.people.label)
    offset = _find_id_offset({classes[0]: best} if len(classes) == 1 else {}, inputs)
    return (
        f"Predictions of {preview.model!r} labelled {best!r} overlap people by {after.mean():.2f}"
        f" on average, and those labelled {_join(judged_labels)}, which count, by"
        f" {before.mean():.2f}.{offset} --person-label {best} takes the others."
    )


def _describe_assignment(
    preview: ShapePreview,
    halves: Halves,
    by_label: Mapping[str, FloatArray],
    inputs: AuditInputs,
) -> str | None:
    """Describe classes that predictions of another label fit far better, one label each."""
    label_by_class = _assign_labels(preview, halves, by_label)
    if not label_by_class:
        return None
    no_similarity = np.zeros(len(preview.people.image))
    totals, n_objects = np.zeros(2), 0
    for name, label in label_by_class.items():
        is_of_class = preview.people.label == name
        sums = [
            similarity[is_of_class].sum()
            for similarity in (by_label.get(name, no_similarity), by_label[label])
        ]
        totals, n_objects = totals + sums, n_objects + int(is_of_class.sum())
    means = totals / n_objects
    renamings = ", ".join(
        f"{label!r} is {name!r}" for name, label in list(label_by_class.items())[:_MAX_LISTED]
    )
    ellipsis = ", …" if len(label_by_class) > _MAX_LISTED else ""
    return (
        f"Predictions of {preview.model!r} overlap the objects of {len(label_by_class):,} classes"
        f" by {means[0]:.2f} on average, and by {means[1]:.2f} if {renamings}{ellipsis}."
        f"{_find_id_offset(label_by_class, inputs)} Nothing was renamed: mend the labels."
    )


def _assign_labels(
    preview: ShapePreview, halves: Halves, by_label: Mapping[str, FloatArray]
) -> dict[str, str]:
    """Assign each class the label that fits it best, one to one; of those that gain enough."""
    from scipy.optimize import linear_sum_assignment

    classes, labels = _distinct(preview.people.label), list(by_label)
    no_similarity = np.zeros(len(preview.people.image))
    is_of_class = {name: preview.people.label == name for name in classes}
    rows = [is_of_class[name] & halves.chosen_on for name in classes]
    sums = np.array([[by_label[label][row].sum() for label in labels] for row in rows])
    label_by_class = {}
    assigned_rows, assigned_columns = linear_sum_assignment(-sums)
    for row, column in zip(assigned_rows.tolist(), assigned_columns.tolist(), strict=True):
        name, label = classes[row], labels[column]
        is_member = is_of_class[name]
        of_class = Halves(halves.chosen_on & is_member, halves.judged_on & is_member)
        if label == name or not halves.have_enough(is_member):
            continue
        if is_gain(by_label.get(name, no_similarity), by_label[label], of_class):
            label_by_class[name] = label
    return label_by_class


def _find_id_offset(label_by_class: Mapping[str, str], inputs: AuditInputs) -> str:
    """Say by how much category ids differ, where all of them differ by one number."""
    ids = {name: number for number, name in inputs.dataset.categories.items()}
    offsets = set()
    for name, label in label_by_class.items():
        try:
            offsets.add(int(ids.get(label, label)) - int(ids.get(name, name)))
        except ValueError:
            return ""
    if len(offsets) != 1:
        return ""
    (offset,) = offsets
    return f" Their category ids are {abs(offset):,} too {'high' if offset > 0 else 'low'}."

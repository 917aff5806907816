"""Labels of a model that are the classes of the truth in another order or under other names.

Class indices in the text order of folders (0, 1, 10, 11, 2), two names exchanged, numbers that
start at 1, or a vocabulary of one group alone ("zero" for "0"): each costs accuracy in the classes
concerned, and reads as a poor model or as a gap between groups. The table of truth by answer shows
it: see ``isolux.stats.label_assignment``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.counts import COUNTS, TIMES
from isolux.core.errors import IsoluxError
from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.core.spec.task import BLANK_TEXT
from isolux.plausibility._audit_inputs import AuditInputs
from isolux.stats.label_assignment import (
    AnswerCodes,
    encode_answers,
    find_label_assignment,
)

_EVIDENCE = "classification"
_MAX_LISTED = 12  # classes that are named; of a flag that would name more, nothing is printed

INFO = PlausibilityInfo(
    title="Permuted or renamed classes",
    summary="The best one-to-one assignment of answers to classes, for everyone and in each group.",
    rule="Warns where it beats the classes' own names by 20 points and four standard errors among "
    "the people of the renamed classes, in a half of the people that did not choose it, and no "
    "class loses. A flag is printed where scoring with it was better.",
    tasks=("classification",),
)


@dataclass(frozen=True, slots=True)
class _CodedAnswers:
    """The judged people of one model, with their rows among the units of the membership."""

    model: str
    unit_ids: pl.Series
    codes: AnswerCodes
    labels: tuple[str, ...]

    def find_assignment(self, rows: npt.NDArray[np.int64] | None = None) -> dict[str, str]:
        codes = self.codes
        if rows is not None:
            counts = None if codes.counts is None else codes.counts[rows]
            codes = AnswerCodes(
                codes.truth[rows], codes.answers[rows], codes.n_labels, codes.clusters[rows], counts
            )
        class_by_label = find_label_assignment(codes)
        return {self.labels[k]: self.labels[v] for k, v in sorted(class_by_label.items())}


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution where the answers fit the truth far better under other names."""
    evidence = inputs.scores.evidence.get(_EVIDENCE)
    if evidence is None:
        return []
    cautions: list[Caution] = []
    for answers in _encode_answers(evidence, inputs.scores.evidence.get(COUNTS)):
        class_by_label = answers.find_assignment()
        if class_by_label:
            cautions.append(_describe(inputs, answers.model, class_by_label))
        else:
            cautions += _check_groups(inputs, answers)
    return cautions


def _encode_answers(
    evidence: pl.DataFrame, multiplicity: pl.DataFrame | None
) -> Iterator[_CodedAnswers]:
    """Encode truth, answers and clusters as integers, model by model."""
    is_judged = pl.col("prediction").is_not_null() & (pl.col("truth").list.len() == 1)
    rows = evidence.filter(is_judged).select(
        "model",
        "unit_id",
        "prediction",
        truth=pl.col("truth").list.first(),
        cluster=pl.coalesce(pl.col("cluster_id").cast(pl.String), "unit_id"),
    )
    if multiplicity is not None:
        rows = rows.join(multiplicity.select("model", "unit_id", TIMES), on=["model", "unit_id"])
    for (model,), people in rows.group_by(["model"], maintain_order=True):
        yield _CodedAnswers(str(model), people["unit_id"], *encode_answers(people))


def _check_groups(inputs: AuditInputs, answers: _CodedAnswers) -> list[Caution]:
    """Caution on groups whose labels are renamed though those of everyone are not."""
    membership = inputs.membership
    row = pl.DataFrame({"unit_id": answers.unit_ids}).with_row_index("row")
    units = membership.units.to_frame("unit_id").join(
        row, on="unit_id", how="left", maintain_order="left"
    )
    row_of_unit = units["row"].cast(pl.Int64).fill_null(-1).to_numpy()
    cautions: list[Caution] = []
    for intersection in membership.intersections:
        if any(len(values) > 1 for values in intersection.cells) or len(intersection.cells) < 2:
            continue  # a combination's people are in the groups of its attributes
        for cell, values in enumerate(intersection.cells):
            rows = row_of_unit[intersection.unit[intersection.cell == cell]]
            class_by_label = answers.find_assignment(rows[rows >= 0])
            if class_by_label:
                group = f"{intersection.handle} {values[0]!r}"
                cautions.append(_describe(inputs, answers.model, class_by_label, group))
    return cautions


def _describe(
    inputs: AuditInputs, model: str, class_by_label: Mapping[str, str], group: str | None = None
) -> Caution:
    """Say which answers stand for which classes, and the flag that mends it, if one does."""
    pairs = [f"{label!r} for {name!r}" for label, name in class_by_label.items()]
    remainder = f" and {len(pairs) - _MAX_LISTED} more" if len(pairs) > _MAX_LISTED else ""
    people = "" if group is None else f"Among the people of {group}, "
    subject = f"the answers of {model!r} fit the truth far better under other names"
    text = f"{people}{subject}: {', '.join(pairs[:_MAX_LISTED])}{remainder}."
    question = "Are classes permuted or renamed" + (
        "?" if group is None else ", in the truth or in the answers of this group?"
    )
    advice = _find_advice(inputs, class_by_label)
    return Caution(f"{text[0].upper()}{text[1:]} {question}{advice}")


def _find_advice(inputs: AuditInputs, class_by_label: Mapping[str, str]) -> str:
    """Return the flag that renames the labels, after scoring with it; "" where none is better."""
    if inputs.predictions is None or "label" not in inputs.predictions.columns:
        return ""
    evidence = inputs.scores.evidence[_EVIDENCE]
    truths = set(evidence["truth"].explode().drop_nulls().unique())
    answers = set(evidence["prediction"].drop_nulls().unique())
    options: dict[str, Any]
    if not any(label in truths and name in answers for label, name in class_by_label.items()):
        merges: dict[str, tuple[str, ...]] = dict(inputs.task_options.get("label_map") or {})
        for label, name in class_by_label.items():
            # One of the two names is used on one side only, and is merged into the other.
            new, old = (name, label) if name in answers or label not in truths else (label, name)
            merges[new] = (*merges.get(new, ()), old)
        options = {"label_map": merges}
        flags = [_format_merge_flag(new, old) for new, old in merges.items()]
        advice, n_names = " ".join(flags), len(merges)
    else:
        labels = inputs.predictions["label"].cast(pl.String).drop_nulls().unique().sort()
        mapping = _compose_map(inputs.task_options, class_by_label, labels)
        options = {"prediction_map": mapping}
        entries = ", ".join(f"{_quote(k)}: {_quote(v)}" for k, v in mapping.items())
        advice, n_names = f'--prediction-map "{{{entries}}}"', len(mapping)
    shares = None if n_names > 2 * _MAX_LISTED else _measure_shares_right(inputs, options)
    if shares is None or shares[1] <= shares[0]:
        return ""
    before, after = (f"{100 * share:.1f} %" for share in shares)
    return f" {advice} makes {after} of all answers right instead of {before}."


def _format_merge_flag(new: str, old: Sequence[str]) -> str:
    text = f"{new}={','.join(name or BLANK_TEXT for name in old)}"
    return f"--label-map '{text}'" if BLANK_TEXT in text else f'--label-map "{text}"'


def _compose_map(
    task_options: Mapping[str, Any], class_by_label: Mapping[str, str], labels: pl.Series
) -> dict[str, str]:
    """Map each label that occurs to its class: first as was set, then to its new name."""
    given_map = task_options.get("prediction_map")
    merge = {
        old: new
        for new, names in (task_options.get("label_map") or {}).items()
        for old in ((names,) if isinstance(names, str) else names)
    }
    mapping: dict[str, str] = dict(given_map or zip(labels, labels, strict=True))
    return {
        label: class_by_label.get(merge.get(name, name), name) for label, name in mapping.items()
    }


def _measure_shares_right(
    inputs: AuditInputs, options: Mapping[str, Any]
) -> tuple[float, float] | None:
    """Return the share right without and with other options, or None where they are refused."""
    try:
        rescored = inputs.rescore(**options)
    except IsoluxError:
        return None
    before, after = (
        scores.evidence[_EVIDENCE].select(pl.col("correct").cast(pl.Float64).mean()).item()
        for scores in (inputs.scores, rescored)
    )
    return float(before), float(after)


def _quote(name: str) -> str:
    """Quote a name for a mapping on the command line."""
    return "'" + name.replace("'", "''") + "'"

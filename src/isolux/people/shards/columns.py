"""Which columns of a table in shards an audit reads, and whether alike rows can be counted.

Rows can be counted where each person's scores are 0 or 1 and follow from a few columns: answers
against a truth, or who was found. Whatever looks at single people (scores, boxes, answers in a file
of their own, ids of people who withdrew) needs every row, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from isolux import derive
from isolux.io.ids import ID_COLUMNS
from isolux.people.only import parse_conditions
from isolux.vocabulary.errors import UnknownNameError
from isolux.vocabulary.spec import AuditSpec

_COUNTED = "classification"
_LOOKED_AT = ("group_gaps", "power")
"""Analyses that read groups alone."""
_IMAGES = ":images"


@dataclass(frozen=True, slots=True)
class Needed:
    """What an audit reads of each row.

    Parameters
    ----------
    columns : tuple of str
        In the table's order.
    why : str
        What needs every row; empty: rows that are alike can be counted.
    resampled : bool
        Whether scores or weights make every row be drawn again in replicates.
    """

    columns: tuple[str, ...]
    why: str = ""
    resampled: bool = False


def needed(spec: AuditSpec, schema: Sequence[str], where: str) -> Needed:
    """Say what an audit reads of a table with these columns."""
    why = _why_every_row(spec)
    settings, target = spec.predictions, spec.task.get("target")
    conditions = [condition.attribute for condition in parse_conditions(spec.people.only)]
    people = [*spec.groups.attributes, *conditions, target, spec.sample.weight, spec.sample.strata]
    answers = [settings.prediction_column, settings.detected_column, settings.score_column]
    named = people if settings.file is not None else [*people, *answers]  # else that file's columns
    known = [str(name) for name in named if name is not None]
    computed = [name for name in known if name not in schema and name in derive.names()]
    if computed and not why:
        why = f"{computed[0]!r} is computed from pictures or boxes"
    for name in known:
        if name not in schema and name not in computed:
            raise UnknownNameError("column", name, schema, where=where)
    if not why:
        return Needed(_in_order(known, schema))
    drawn = bool(settings.score_column or spec.sample.weight or spec.sample.strata)
    if _reads_all(spec) or computed:
        return Needed(tuple(schema), why, drawn)
    others = [*ID_COLUMNS, "image", "uri", "subject_id", "cluster_id", *_said(spec)]
    return Needed(_in_order([*known, *others], schema), why, drawn)


def _in_order(names: Iterable[str], schema: Sequence[str]) -> tuple[str, ...]:
    held = set(names)
    return tuple(name for name in schema if name in held)


def _said(spec: AuditSpec) -> list[str]:
    """List the other columns that settings name."""
    split = str(spec.task.get("threshold_on") or "").partition("=")[0]
    people = spec.people
    return [name for name in (people.id, people.cluster, split) if name]


def _why_every_row(spec: AuditSpec) -> str:
    """Say what needs every row; empty where nothing does."""
    people, answers = spec.people, spec.predictions
    asked = {
        f"the task {spec.task.name} judges single people": spec.task.name != _COUNTED,
        "--model looks at every picture": spec.model.spec is not None,
        "areas, calibration and precision rank every score": answers.score_column or answers.scores,
        "answers in a separate file are joined by id": answers.file or answers.found
        or answers.missed,
        "--attributes is joined by id": people.attributes,
        "weights and strata are each person's own": spec.sample.weight or spec.sample.strata,
        "who withdrew is looked up by id": people.withdrawn,
        "--derive computes attributes of each person": people.derive,
        "--data-option changes how rows are read": people.data_option,
        "quantiles over images look at each of them": any(
            rule.endswith(_IMAGES) for rule in spec.groups.bins
        ),
        "an analysis looks at single people": set(spec.explain.analyses) - {*_LOOKED_AT},
    }  # fmt: skip
    return next((why for why, holds in asked.items() if holds), "")


def _reads_all(spec: AuditSpec) -> bool:
    people = spec.people
    others = people.attributes, people.withdrawn, people.derive, people.data_option, people.images
    return bool(
        spec.task.name != _COUNTED
        or spec.model.spec
        or set(spec.explain.analyses) - {*_LOOKED_AT}
        or any(others)
    )

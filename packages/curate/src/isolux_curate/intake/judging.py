"""Ask every rule of intake, in the order of the funnel; what a rule cannot know is said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import polars as pl

from isolux.vocabulary import registry
from isolux.vocabulary.errors import TableError, UnknownNameError
from isolux.vocabulary.info import RuleInfo
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.plugin_options import named_options, read_value, refuse_unknown
from isolux_curate.project.decisions import IN, came_in, decide, listed
from isolux_curate.project.folder import MARK, Project
from isolux_curate.project.reading import (
    CONSENT,
    left_out,
    read_consent,
    read_images,
    read_instances,
    read_subjects,
)
from isolux_curate.user_tables import read_text

_ORDER = ("specifications", "people", "consent", "series")


@dataclass(frozen=True, slots=True)
class Judged:
    """What the rules said.

    Parameters
    ----------
    rules : polars.DataFrame
        One row a rule, in the order in which they were asked: ``step, rule, looked_at, refused,
        new`` (verdicts that are new).
    notes : tuple of str
    """

    rules: pl.DataFrame
    notes: tuple[str, ...] = ()


def judge(
    project: Project, *, only: Sequence[str] = (), devices: str | Path | None = None
) -> Judged:
    """Ask the rules of intake about every photo that came in."""
    names = _names(only)
    settings = {name: _settings(project, name) for name in names}
    _refuse_unknown(project.rules, str(project.folder / MARK))
    facts = _facts(project)
    if devices is not None:
        facts = _with_years(facts, Path(devices))
    notes: list[str] = []
    rows: list[tuple[str, str, int, int, int]] = []
    for name in names:
        info = _info(name)
        if not set(info.needs) & set(facts.columns):
            notes.append(_not_asked(name, info))
            continue
        seen = _before(project, facts, name) if info.together else facts
        found = registry.load("rules", name).refuse(seen, **settings[name])
        looked = seen["image_id"].unique(maintain_order=True)
        refused = found.select(unit_id="image_id", reason="reason")
        said = {k: list(v) if isinstance(v, tuple) else v for k, v in settings[name].items()}
        new = decide(project, info.step, name, refused, looked_at=looked, said=said)
        rows.append((info.step, name, len(looked), refused.height, new))
    schema = {"step": pl.String, "rule": pl.String, **dict.fromkeys(_COUNTS, pl.Int64)}
    return Judged(pl.DataFrame(rows, schema=schema, orient="row"), tuple(notes))


_COUNTS = ("looked_at", "refused", "new")


def _names(only: Sequence[str]) -> list[str]:
    _refuse_unknown(only, None)
    asked = set(only) or registry.names("rules")
    return sorted(asked, key=lambda n: (_info(n).together, _ORDER.index(_info(n).step), n))


def _refuse_unknown(names: Iterable[str], where: str | None) -> None:
    known = registry.names("rules")
    for name in names:
        if name not in known:
            raise UnknownNameError("rule of intake", name, known, where=where)


def _info(name: str) -> RuleInfo:
    return cast("RuleInfo", registry.info("rules", name))


def _settings(project: Project, name: str) -> dict[str, Any]:
    """Read a rule's settings: its defaults, and what project.yaml says otherwise."""
    function = registry.load("rules", name).refuse
    found = named_options(function)
    where = f"{project.folder / MARK}, rule {name}"
    for key, value in project.rules.get(name, {}).items():
        refuse_unknown(key, found, where=where)
        found[key] = read_value(function, key, value, owner=f"the rule {name}", called=key)
    return found


def _not_asked(name: str, info: RuleInfo) -> str:
    lacks = " or ".join(repr(one) for one in info.needs)
    return Caution(
        f"The rule {name} was not applied: no photo and no subject has {lacks}. Photos that it "
        "would refuse are kept."
    )


def _facts(project: Project) -> pl.DataFrame:
    """Join what is known: one row a subject in a photo, in the order in which photos came in."""
    photos = came_in(project).join(
        read_images(project, everything=True), on="image_id", how="left", maintain_order="left"
    )
    people = read_instances(project, everything=True).filter(pl.col("origin") == "submitted")
    facts = _joined(photos, people.drop("x", "y", "w", "h", "origin"), "image_id")
    facts = _joined(facts, read_subjects(project), "subject_id")
    # Of known illegal material nobody is told, and no rule looks at it.
    known = listed(project).filter(pl.col("state") != IN)["image_id"]
    facts = facts.filter(~pl.col("image_id").is_in(known.implode()))
    facts = _with_consent(project, facts)
    held = [c for c in facts.columns if c in _ALWAYS or facts[c].null_count() < facts.height]
    return facts.select(held)


_ALWAYS = ("image_id", "instance_id", "subject_id")


def _joined(one: pl.DataFrame, other: pl.DataFrame, on: str) -> pl.DataFrame:
    """Join, and where both tell a fact take the first: a file knows itself best."""
    both = [c for c in other.columns if c in one.columns and c != on]
    joined = one.join(other, on=on, how="left", suffix=" 2", maintain_order="left")
    return joined.with_columns(pl.coalesce(c, f"{c} 2").alias(c) for c in both).drop(
        f"{c} 2" for c in both
    )


def _with_consent(project: Project, facts: pl.DataFrame) -> pl.DataFrame:
    """Put what the ledger says in place of what the sheets say."""
    ledger = read_consent(project)
    for kind, column, key in CONSENT:
        if ledger is None or key not in facts.columns:
            continue
        said = ledger.allows(kind, facts[key].cast(pl.String), "evaluation")
        told = pl.when(said).then(pl.lit("yes")).when(~said).then(pl.lit("revoked"))
        if said.is_not_null().any():
            has_sheet = column in facts.columns and not ledger.has_grants(kind)
            answer = pl.coalesce(told, column) if has_sheet else told
            facts = facts.with_columns(answer.alias(column))
    return facts


def _with_years(facts: pl.DataFrame, path: Path) -> pl.DataFrame:
    keys = {f"_{n}": pl.col(n).str.strip_chars().str.to_lowercase() for n in ("make", "model")}
    table = read_text(path, "make", "model", "year")
    known = table.select(**keys, _year=pl.col("year").cast(pl.Int64, strict=False))
    if (
        known.null_count().sum_horizontal()[0]
        or known.select("_make", "_model").is_duplicated().any()
    ):
        raise TableError(
            "a device has no year, or is listed twice",
            expected="make, model and year, once a device",
            where=str(path),
        )
    for name, kind in (("make", pl.String), ("model", pl.String), ("device_year", pl.Int64)):
        if name not in facts.columns:
            facts = facts.with_columns(pl.lit(None, dtype=kind).alias(name))
    joined = facts.with_columns(**keys).join(
        known, on=["_make", "_model"], how="left", maintain_order="left"
    )
    year = pl.coalesce("device_year", "_year")
    return joined.with_columns(device_year=year).drop("_make", "_model", "_year")


def _before(project: Project, facts: pl.DataFrame, name: str) -> pl.DataFrame:
    """Keep the photos that the rules asked before this one let pass."""
    asked = _names(())
    earlier = asked[: asked.index(name)]
    of_intake = pl.struct("step", "rule").is_in(
        [{"step": _info(n).step, "rule": n} for n in earlier]
    )
    gone = left_out(project).filter(of_intake)["image_id"]
    return facts.filter(~pl.col("image_id").is_in(gone.implode()))


def letters(project: Project) -> pl.DataFrame:
    """List what is to be told to whom: every photo that intake refused, with all its reasons."""
    steps = list(get_args(get_type_hints(RuleInfo)["step"]))
    out = left_out(project).filter(pl.col("step").is_in(steps), pl.col("image_id").is_not_null())
    held = listed(project).filter(pl.col("state") != IN)["image_id"]
    out = out.filter(~pl.col("image_id").is_in(held.implode()))
    said = out.group_by("image_id", maintain_order=True).agg(
        reasons=pl.col("reason").unique(maintain_order=True).str.join("\n")
    )
    people = read_instances(project, everything=True).select("subject_id", "image_id")
    return (
        people.join(said, on="image_id")
        .unique(["subject_id", "image_id"])
        .sort("subject_id", "image_id")
    )

"""Apply the rules of intake in the order of the funnel, and note rules without data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import polars as pl

from isolux.core import registry
from isolux.core.errors import TableError, UnknownNameError
from isolux.core.info import RuleInfo
from isolux.core.notes import Caution
from isolux.core.plugin_options import (
    list_keyword_defaults,
    parse_option_value,
    refuse_unknown_name,
)
from isolux_curate.project.folder import PROJECT_FILE, Project
from isolux_curate.project.queries import (
    CONSENT_KINDS,
    join_and_coalesce_facts,
    read_exclusions_with_reasons,
    read_images,
    read_people_in_photos,
    read_subjects,
    read_verified_consent_or_none,
)
from isolux_curate.project.verdicts import (
    IN,
    read_arrived_photos,
    read_hash_matches_with_state,
    record_changed_verdicts,
)
from isolux_curate.user_tables import read_table_as_text

_STEP_ORDER = ("specifications", "people", "consent", "series")


@dataclass(frozen=True, slots=True)
class IntakeVerdicts:
    """The results of the rules of intake.

    Parameters
    ----------
    rules : polars.DataFrame
        One row a rule, in the order in which they were asked: ``step, rule, looked_at, refused,
        new`` (verdicts that are new).
    notes : tuple of str
    """

    rules: pl.DataFrame
    notes: tuple[str, ...] = ()


def apply_and_record_rules(
    project: Project, *, only_rules: Sequence[str] = (), device_years: str | Path | None = None
) -> IntakeVerdicts:
    """Apply the rules of intake to all ingested photos, and record their verdicts."""
    names = _order_requested_or_all_rules(only_rules)
    settings = {name: _read_rule_settings(project, name) for name in names}
    _refuse_unknown_rules(project.rules, str(project.folder / PROJECT_FILE))
    facts = _read_intake_facts(project)
    if device_years is not None:
        facts = _join_missing_device_years(facts, Path(device_years))
    notes: list[str] = []
    rows: list[tuple[str, str, int, int, int]] = []
    for name in names:
        rule_info = _load_rule_info(name)
        if not set(rule_info.needs) & set(facts.columns):
            notes.append(_caution_on_skipped_rule(name, rule_info))
            continue
        rule_facts = (
            _drop_photos_refused_earlier(project, facts, name) if rule_info.is_joint else facts
        )
        refusals = registry.load("rules", name).refuse(rule_facts, **settings[name])
        examined_ids = rule_facts["image_id"].unique(maintain_order=True)
        refused = refusals.select(unit_id="image_id", reason="reason")
        details = {k: list(v) if isinstance(v, tuple) else v for k, v in settings[name].items()}
        n_new = record_changed_verdicts(
            project, rule_info.step, name, refused, examined_units=examined_ids, details=details
        )
        rows.append((rule_info.step, name, len(examined_ids), refused.height, n_new))
    schema = {"step": pl.String, "rule": pl.String, **dict.fromkeys(_COUNT_COLUMNS, pl.Int64)}
    return IntakeVerdicts(pl.DataFrame(rows, schema=schema, orient="row"), tuple(notes))


_COUNT_COLUMNS = ("looked_at", "refused", "new")


def _order_requested_or_all_rules(requested_rules: Sequence[str]) -> list[str]:
    _refuse_unknown_rules(requested_rules, None)
    infos = {name: _load_rule_info(name) for name in requested_rules or registry.names("rules")}
    ranks = {n: (i.is_joint, _STEP_ORDER.index(i.step), i.order, n) for n, i in infos.items()}
    return sorted(infos, key=ranks.__getitem__)


def _refuse_unknown_rules(names: Iterable[str], source: str | None) -> None:
    rule_names = registry.names("rules")
    for name in names:
        if name not in rule_names:
            raise UnknownNameError("rule of intake", name, rule_names, where=source)


def _load_rule_info(rule_name: str) -> RuleInfo:
    return cast("RuleInfo", registry.load_info("rules", rule_name))


def _read_rule_settings(project: Project, rule_name: str) -> dict[str, Any]:
    """Read a rule's settings: its defaults, overridden by project.yaml."""
    function = registry.load("rules", rule_name).refuse
    rule_settings = list_keyword_defaults(function)
    source = f"{project.folder / PROJECT_FILE}, rule {rule_name}"
    for key, setting in project.rules.get(rule_name, {}).items():
        refuse_unknown_name(key, rule_settings, source=source)
        rule_settings[key] = parse_option_value(
            function, key, setting, owner=f"the rule {rule_name}", displayed_name=key
        )
    return rule_settings


def _caution_on_skipped_rule(rule_name: str, rule_info: RuleInfo) -> str:
    missing_facts = " or ".join(repr(fact_name) for fact_name in rule_info.needs)
    return Caution(
        f"The rule {rule_name} was not applied: no photo and no subject has {missing_facts}."
        " Photos that it would refuse are kept."
    )


def _read_intake_facts(project: Project) -> pl.DataFrame:
    """Join all facts: one row a subject in a photo, in the order of arrival."""
    photos = (
        read_arrived_photos(project)
        .select("image_id")
        .join(
            read_images(project, include_excluded=True),
            on="image_id",
            how="left",
            maintain_order="left",
        )
    )
    people = read_people_in_photos(project, include_excluded=True).filter(
        pl.col("origin") == "submitted"
    )
    facts = join_and_coalesce_facts(photos, people.drop("x", "y", "w", "h", "origin"), "image_id")
    facts = join_and_coalesce_facts(facts, read_subjects(project), "subject_id")
    # Matches with known illegal material get no letters, and no rule is applied to them.
    matching_ids = read_hash_matches_with_state(project).filter(pl.col("state") != IN)["image_id"]
    facts = facts.filter(~pl.col("image_id").is_in(matching_ids.implode()))
    facts = _replace_consent_by_ledger(project, facts)
    known_columns = [
        c for c in facts.columns if c in _KEY_COLUMNS or facts[c].null_count() < facts.height
    ]
    return facts.select(known_columns)


_KEY_COLUMNS = ("image_id", "instance_id", "subject_id")


def _replace_consent_by_ledger(project: Project, facts: pl.DataFrame) -> pl.DataFrame:
    """Replace statements of consent in the sheets by those of the ledger."""
    ledger = read_verified_consent_or_none(project)
    for person_kind, column, key in CONSENT_KINDS:
        if ledger is None or key not in facts.columns:
            continue
        is_allowed = ledger.allows(person_kind, facts[key].cast(pl.String), "evaluation")
        ledger_answer = (
            pl.when(is_allowed).then(pl.lit("yes")).when(~is_allowed).then(pl.lit("revoked"))
        )
        if is_allowed.is_not_null().any():
            has_sheet = column in facts.columns and not ledger.has_grants(person_kind)
            answer = pl.coalesce(ledger_answer, column) if has_sheet else ledger_answer
            facts = facts.with_columns(answer.alias(column))
    return facts


def _join_missing_device_years(facts: pl.DataFrame, device_years_path: Path) -> pl.DataFrame:
    keys = {f"_{n}": pl.col(n).str.strip_chars().str.to_lowercase() for n in ("make", "model")}
    table = read_table_as_text(device_years_path, "make", "model", "year")
    years = table.select(**keys, _year=pl.col("year").cast(pl.Int64, strict=False))
    if (
        years.null_count().sum_horizontal()[0]
        or years.select("_make", "_model").is_duplicated().any()
    ):
        raise TableError(
            "a device has no year, or is listed twice",
            expected="make, model and year, once a device",
            where=str(device_years_path),
        )
    for name, dtype in (("make", pl.String), ("model", pl.String), ("device_year", pl.Int64)):
        if name not in facts.columns:
            facts = facts.with_columns(pl.lit(None, dtype=dtype).alias(name))
    joined_facts = facts.with_columns(**keys).join(
        years, on=["_make", "_model"], how="left", maintain_order="left"
    )
    year = pl.coalesce("device_year", "_year")
    return joined_facts.with_columns(device_year=year).drop("_make", "_model", "_year")


def _drop_photos_refused_earlier(
    project: Project, facts: pl.DataFrame, rule_name: str
) -> pl.DataFrame:
    """Keep the photos that no earlier rule refused."""
    rule_names = _order_requested_or_all_rules(())
    earlier = rule_names[: rule_names.index(rule_name)]
    is_earlier_rule = pl.struct("step", "rule").is_in(
        [{"step": _load_rule_info(n).step, "rule": n} for n in earlier]
    )
    refused_ids = read_exclusions_with_reasons(project).filter(is_earlier_rule)["image_id"]
    return facts.filter(~pl.col("image_id").is_in(refused_ids.implode()))


def list_refusal_reasons_by_subject(project: Project) -> pl.DataFrame:
    """List each refused photo with all its reasons, by subject, for letters to them."""
    steps = list(get_args(get_type_hints(RuleInfo)["step"]))
    exclusions = read_exclusions_with_reasons(project).filter(
        pl.col("step").is_in(steps), pl.col("image_id").is_not_null()
    )
    matching_ids = read_hash_matches_with_state(project).filter(pl.col("state") != IN)["image_id"]
    exclusions = exclusions.filter(~pl.col("image_id").is_in(matching_ids.implode()))
    reasons = exclusions.group_by("image_id", maintain_order=True).agg(
        reasons=pl.col("reason").unique(maintain_order=True).str.join("\n")
    )
    people = read_people_in_photos(project, include_excluded=True).select("subject_id", "image_id")
    return (
        people.join(reasons, on="image_id")
        .unique(["subject_id", "image_id"])
        .sort("subject_id", "image_id")
    )

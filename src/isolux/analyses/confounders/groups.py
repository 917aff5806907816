"""Who is in which group of a sensitive attribute, and at which value of each explanatory one.

From a run's attributes to numbers: the first step of the analysis ``confounders``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux import derive
from isolux.groups import groupings, membership
from isolux.groups.binning import income_bins, parse_bins
from isolux.groups.intersections import Crossing, display
from isolux.groups.no_groups import MOST_NUMBERS
from isolux.groups.unknown import UNKNOWN, mark_unknown
from isolux.stats.design import IntArray
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.spec import Grouping, Groups, recorded_spec

__all__ = [
    "Sensitive",
    "Strata",
    "computed_names",
    "crossed",
    "explanatory_names",
    "sensitive_of",
    "strata_of",
]

_MOST_VALUES = 30


@dataclass(frozen=True, slots=True)
class Sensitive:
    """A sensitive attribute: its groups, and who is in each.

    ``unit [n]`` and ``group [n]`` are memberships; a person may be in several groups. Who is of
    unknown value is in none.
    """

    name: str
    groups: tuple[str, ...]
    unit: IntArray
    group: IntArray


@dataclass(frozen=True, slots=True)
class Strata:
    """An explanatory attribute, or several crossed: its values, and the one of each unit.

    ``code [n_units]`` is -1 for who has no value; ``of_images`` tells whether all people of an
    image share it. ``parts`` names the attributes.
    """

    parts: tuple[str, ...]
    values: tuple[str, ...]
    code: IntArray
    of_images: bool

    @property
    def name(self) -> str:
        """The attributes, joined by ``*``."""
        return "*".join(self.parts)


def sensitive_of(
    run: Run, settings: Groups, units: pl.Series, names: Sequence[str]
) -> list[Sensitive]:
    """Put units into the run's own groups of each sensitive attribute."""
    single = list(settings.attributes)
    wanted = list(names) or [entry for entry in settings.by if "*" not in entry] or single
    _check_known(run, wanted, "sensitive")
    audited = settings.model_copy(update={"by": tuple(dict.fromkeys([*settings.by, *wanted]))})
    rules = groupings(audited, run.attributes)
    known = {name: replace(rules[name], unknown="drop") for name in dict.fromkeys(wanted)}
    members = membership(run.attributes, list(known), known, units=units)
    found = []
    for name, crossing in zip(known, members.crossings, strict=True):
        unit, group, values = _numbered(crossing)
        found.append(Sensitive(name, values, unit, group))
    return found


def explanatory_names(run: Run, names: Sequence[str], sensitive: Sequence[str]) -> list[str]:
    """Name the explanatory attributes: those asked for, else those that were computed."""
    present = run.attributes["attribute"].unique(maintain_order=True).to_list()
    if names:
        _check_known(run, names, "explanatory")
        both = sorted(set(names) & set(sensitive))
        if both:
            raise SpecError(
                "an attribute cannot explain itself",
                expected="explanatory attributes other than " + ", ".join(sensitive),
                found=", ".join(both),
                where="--analysis-option confounders.explanatory",
            )
        answers = recorded_spec(run.record).predictions.prediction_column
        if answers in names:
            raise SpecError(
                f"{answers!r} is the model's answer, from which the scores are computed",
                expected="explanatory attributes of the people or pictures",
                found=answers,
                where="--analysis-option confounders.explanatory, or --role",
            )
        return list(dict.fromkeys(names))
    computed = computed_names(run, sensitive)
    if not computed:
        others = [n for n in present if n not in sensitive]
        raise SpecError(
            "it is not said what may explain the gaps between groups",
            expected="explanatory attributes, such as size, occlusion, light or weather",
            found="attributes " + ", ".join(others[:12]) if others else "no other attribute",
            where="--analysis-option confounders.explanatory",
            hint="name some of them there, or compute some with the audit: --derive box_size",
        )
    return computed


def computed_names(run: Run, sensitive: Sequence[str]) -> list[str]:
    """Name the attributes that were computed with the audit (``--derive``)."""
    present = run.attributes["attribute"].unique(maintain_order=True).to_list()
    return [name for name in present if name in derive.names() and name not in sensitive]


def strata_of(
    run: Run,
    settings: Groups,
    units: pl.Series,
    names: Sequence[str],
    bins: Mapping[str, str],
    quantiles: int,
) -> list[Strata]:
    """Give every unit its value of each explanatory attribute."""
    stray = sorted(set(bins) - set(names))
    if stray:
        raise SpecError(
            "bins are given for what is not explanatory",
            expected="one of " + ", ".join(names),
            found=", ".join(stray),
        )
    rules = {
        name: _rule_of(run, settings, units, name, bins.get(name), quantiles) for name in names
    }
    how = {
        name: Grouping(
            attribute=name,
            votes="top-or-none",
            unknown="keep",
            unknown_values=settings.unknown_values,
            bins=rule,
        )
        for name, rule in rules.items()
    }
    members = membership(run.attributes, list(how), how, units=units)
    shown = _shown_in(run, units)
    return [
        _stratified(shown, len(units), crossing, binned=rules[name] is not None)
        for name, crossing in zip(how, members.crossings, strict=True)
    ]


def crossed(strata: Sequence[Strata]) -> Strata:
    """Cross attributes; only combinations that occur are values.

    Examples
    --------
    >>> one = Strata(("size",), ("small", "large"), np.array([0, 1, 1]), False)
    >>> two = Strata(("light",), ("dim", "bright"), np.array([1, 1, -1]), True)
    >>> both = crossed([one, two])
    >>> both.name, both.values, both.code.tolist()
    ('size*light', ('small × bright', 'large × bright'), [0, 1, -1])
    """
    code = np.zeros(len(strata[0].code), dtype=np.int64)
    known = np.ones(len(code), dtype=np.bool_)
    for one in strata:
        code = code * len(one.values) + np.maximum(one.code, 0)
        known &= one.code >= 0
    occurring, inverse = np.unique(code[known], return_inverse=True)
    dense = np.full(len(code), -1, dtype=np.int64)
    dense[known] = inverse
    names = []
    for combination in occurring.tolist():
        parts, rest = [], combination
        for one in reversed(strata):
            rest, place = divmod(rest, len(one.values))
            parts.append(one.values[place])
        names.append(" × ".join(reversed(parts)))
    return Strata(
        tuple(part for one in strata for part in one.parts),
        tuple(names),
        dense,
        all(one.of_images for one in strata),
    )


def _rule_of(
    run: Run, settings: Groups, units: pl.Series, name: str, rule: str | None, quantiles: int
) -> str | None:
    """Say how an attribute is binned; None: it is not."""
    rows = run.attributes.filter(attribute=name)
    rule = _bins_of(rows, settings, name, rule, quantiles)
    if rule is None:
        return None
    return _of_the_judged(run, mark_unknown(rows, settings.unknown_values), units, rule)


def _stratified(
    shown: tuple[IntArray, IntArray] | None, units: int, crossing: Crossing, *, binned: bool
) -> Strata:
    unit, group, values = _numbered(crossing)
    name = crossing.handle
    if len(values) > _MOST_VALUES and not binned:
        raise SpecError(
            f"{name!r} has {len(values):,} different values, too many to compare people within",
            expected=f"at most {_MOST_VALUES}",
            hint="name explanatory attributes with fewer values",
        )
    code = np.full(units, -1, dtype=np.int64)
    code[unit] = group
    return Strata((name,), values, code, _of_images(shown, code))


def _bins_of(
    rows: pl.DataFrame, settings: Groups, name: str, rule: str | None, quantiles: int
) -> str | None:
    if rule is not None:
        return income_bins(rule)
    marked = mark_unknown(rows, settings.unknown_values).drop_nulls("value")
    number = _number(marked)
    if marked.is_empty() or number.null_count() or number.n_unique() <= MOST_NUMBERS:
        return None
    if quantiles < 2:
        raise SpecError(
            f"{name!r} cannot be binned", expected="2 quantiles or more", found=str(quantiles)
        )
    return f"quantile:{quantiles}"


def _number(rows: pl.DataFrame) -> pl.Series:
    """Read values as numbers; null: it is none."""
    parsed = pl.col("value").str.strip_chars().cast(pl.Float64, strict=False)
    own = ["number"] if "number" in rows.columns else []
    return rows.select(_number=pl.coalesce(*own, parsed)).to_series()


def _of_the_judged(run: Run, rows: pl.DataFrame, units: pl.Series, rule: str) -> str:
    """Turn quantiles into edges that part the units with a score, where others have none."""
    judged = run.scores.drop_nulls("value").select("unit_id").unique()
    bins = parse_bins(rule)
    if not bins.quantiles or judged.is_empty() or judged.height == len(units):
        return rule
    theirs = rows.with_columns(_number(rows)).drop_nulls(["value", "_number"])
    own = theirs.join(judged, on="unit_id", how="semi").group_by("unit_id")
    edges = bins.edges_for(own.agg(pl.col("_number").median())["_number"])
    return f"edges:{','.join(map(repr, edges))}:{bins.closed}" if edges else rule


def _shown_in(run: Run, units: pl.Series) -> tuple[IntArray, IntArray] | None:
    """List units image by image, and where each image's begin; None where no run knows images."""
    tables = [t for t in run.evidence.values() if {"image_id", "unit_id"} <= set(t.columns)]
    if not tables:
        return None
    whose = tables[0].select("unit_id", "image_id").drop_nulls().unique()
    met = pl.DataFrame({"unit_id": units}).with_row_index("unit").join(whose, on="unit_id")
    met = met.sort("image_id")
    begins = met["image_id"].ne_missing(met["image_id"].shift(1)).to_numpy()
    return met["unit"].to_numpy().astype(np.int64), np.flatnonzero(begins)


def _of_images(shown: tuple[IntArray, IntArray] | None, code: IntArray) -> bool:
    """Tell whether all people in an image have the same value, where the run knows images."""
    if shown is None or not len(shown[0]):
        return False
    unit, starts = shown
    several = np.diff(starts, append=len(unit)) > 1
    own = code[unit]
    alike = np.minimum.reduceat(own, starts) == np.maximum.reduceat(own, starts)
    return bool(several.any() and alike[several].all())


def _numbered(crossing: Crossing) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """Give memberships numbers: unit, group, and the groups' names, ``unknown`` last."""
    names = [display(cell) for cell in crossing.cells]
    values = sorted(names, key=lambda value: value == UNKNOWN)
    place = np.array([values.index(name) for name in names], dtype=np.int64)
    return crossing.unit, place[crossing.cell], tuple(values)


def _check_known(run: Run, names: Sequence[str], setting: str) -> None:
    known = run.attributes["attribute"].unique().to_list()
    for name in names:
        if name not in known:
            raise UnknownNameError(
                "attribute", name, known, where=f"--analysis-option confounders.{setting}"
            )

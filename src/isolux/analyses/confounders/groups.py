"""Who is in which group of a sensitive attribute, and at which value of each explanatory one.

From a run's attributes to numbers: the first step of the analysis ``confounders``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux import derive
from isolux.analyses._features import known_numbers
from isolux.analyses._judged import check_attributes
from isolux.analyses.confounders.roles import Roles
from isolux.groups import groupings, membership
from isolux.groups.binning import income_bins, parse_bins
from isolux.groups.intersections import Crossing, display
from isolux.groups.no_groups import MOST_NUMBERS
from isolux.groups.unknown import UNKNOWN
from isolux.stats.design import IntArray
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import Grouping, Groups, recorded_spec

_MAX_VALUES, _MAX_CROSSED = 30, 3
_WHERE = "--analysis-option confounders."


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
    single = [entry for entry in settings.by if "*" not in entry] or settings.attributes
    names = list(dict.fromkeys(names or single))
    check_attributes(run, names, f"{_WHERE}sensitive")
    audited = settings.model_copy(update={"by": tuple(dict.fromkeys([*settings.by, *names]))})
    rules = groupings(audited, run.attributes)
    rules = {name: replace(rules[name], unknown="drop") for name in names}
    crossings = membership(run.attributes, names, rules, units=units).crossings
    coded = [(name, *_number_values(one)) for name, one in zip(names, crossings, strict=True)]
    return [Sensitive(name, values, unit, group) for name, unit, group, values in coded]


def computed_names(run: Run, sensitive: Sequence[str]) -> list[str]:
    """Name the attributes that were computed with the audit (``--derive``)."""
    present = run.attributes["attribute"].unique(maintain_order=True)
    return [name for name in present if name in derive.names() and name not in sensitive]


def explanatory_names(
    run: Run, roles: Roles, names: Sequence[str], sensitive: Sequence[str]
) -> list[str]:
    """Name the explanatory attributes: those asked for, else with a role, else computed."""
    names = list(names) or [name for name in roles.named() if name not in sensitive]
    where = f"{_WHERE}explanatory"
    check_attributes(run, names, where)
    repeated = sorted(set(names) & set(sensitive))
    if repeated:
        raise SpecError(
            "an attribute cannot explain itself",
            expected="explanatory attributes other than " + ", ".join(sensitive),
            found=", ".join(repeated),
            where=where,
        )
    answers = recorded_spec(run.record).predictions.prediction_column
    if answers in names:
        raise SpecError(
            f"{answers!r} is the model's answer, from which the scores are computed",
            expected="explanatory attributes of the people or pictures",
            found=answers,
            where=f"{where}, or --role",
        )
    names = list(dict.fromkeys(names)) or computed_names(run, sensitive)
    if not names:
        present = run.attributes["attribute"].unique(maintain_order=True)
        others = [name for name in present if name not in sensitive]
        raise SpecError(
            "it is not said what may explain the gaps between groups",
            expected="explanatory attributes, such as size, occlusion, light or weather",
            found="attributes " + ", ".join(others[:12]) if others else "no other attribute",
            where=where,
            hint="name some of them there, or compute some with the audit: --derive box_size",
        )
    return names


def strata_of(
    run: Run, settings: Groups, units: pl.Series, names: Sequence[str], bins: Mapping[str, str]
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
        name: Grouping(
            attribute=name,
            votes="top-or-none",
            unknown="keep",
            unknown_values=settings.unknown_values,
            bins=_bins_of(run, settings, units, name, bins.get(name)),
        )
        for name in names
    }
    crossings = membership(run.attributes, names, rules, units=units).crossings
    images = _images_of(run, units)
    strata = []
    for name, crossing in zip(names, crossings, strict=True):
        unit, value, values = _number_values(crossing)
        if len(values) > _MAX_VALUES and rules[name].bins is None:
            raise SpecError(
                f"{name!r} has {len(values):,} different values, too many to compare people within",
                expected=f"at most {_MAX_VALUES}",
                hint="name explanatory attributes with fewer values",
            )
        code = np.full(len(units), -1, dtype=np.int64)
        code[unit] = value
        strata.append(Strata((name,), values, code, _is_of_images(images, code)))
    return strata


def held_strata(
    roles: Roles, sensitive: str, singles: Sequence[Strata], *, named: bool
) -> list[Strata]:
    """Leave out what came after, and cross the first three."""
    held = {one.name: one for one in singles if not roles.excludes(sensitive, one.name)}
    if not held or (named and len(held) < len(singles)):
        excluded = [one.name for one in singles if one.name not in held]
        raise SpecError(
            f"an equal mix of {' and '.join(excluded)} can create a gap of {sensitive} where there "
            "is none, and hide one where there is",
            expected="explanatory attributes that came before the score, or lead to it",
            found="; ".join(roles.why_after(sensitive, name) for name in excluded),
            where=f"{_WHERE}explanatory",
            hint="leave it out, or request it anyway: confounders.adjust_after=yes",
        )
    before = [name for name in held if roles.role(sensitive, name) == "before"]
    names = (before if len(before) > 1 else list(held))[:_MAX_CROSSED]
    parts = [held[name] for name in names]
    return [*held.values(), *([crossed(parts)] if len(parts) > 1 else [])]


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
    shape = tuple(len(one.values) for one in strata)
    codes = np.stack([one.code for one in strata])
    is_known = (codes >= 0).all(axis=0)
    cells = np.ravel_multi_index(tuple(codes[:, is_known]), shape)
    occurring, inverse = np.unique(cells, return_inverse=True)
    code = np.full(codes.shape[1], -1, dtype=np.int64)
    code[is_known] = inverse
    names = tuple(
        " × ".join(one.values[k] for one, k in zip(strata, place, strict=True))
        for place in zip(*np.unravel_index(occurring, shape), strict=True)
    )
    parts = tuple(part for one in strata for part in one.parts)
    return Strata(parts, names, code, all(one.of_images for one in strata))


def _bins_of(
    run: Run, settings: Groups, units: pl.Series, name: str, rule: str | None
) -> str | None:
    """Say how an attribute is binned, by edges that part who has a score; None: it is not."""
    rows = known_numbers(run, settings, name)
    number = rows["number"]
    if rule is not None:
        rule = income_bins(rule)
    elif rows.is_empty() or number.null_count() or number.n_unique() <= MOST_NUMBERS:
        return None
    else:
        rule = "quantile:4"
    scored = run.scores.drop_nulls("value").select("unit_id").unique()
    bins = parse_bins(rule)
    if not bins.quantiles or scored.is_empty() or scored.height == len(units):
        return rule
    numbers = rows.drop_nulls("number").join(scored, on="unit_id", how="semi").group_by("unit_id")
    edges = bins.edges_for(numbers.agg(pl.col("number").median())["number"])
    return f"edges:{','.join(map(repr, edges))}:{bins.closed}" if edges else rule


def _images_of(run: Run, units: pl.Series) -> pl.DataFrame | None:
    """Give the image of each unit, ``unit, image_id``; None where the run knows no images."""
    tables = (t for t in run.evidence.values() if {"image_id", "unit_id"} <= set(t.columns))
    table = next(tables, None)
    if table is None:
        return None
    images = table.select("unit_id", "image_id").drop_nulls().unique()
    numbered = pl.DataFrame({"unit_id": units}).with_row_index("unit")
    return numbered.join(images, on="unit_id").select("unit", "image_id")


def _is_of_images(images: pl.DataFrame | None, code: IntArray) -> bool:
    """Tell whether all people in an image have the same value, where the run knows images."""
    if images is None:
        return False
    coded = images.with_columns(code=pl.Series(code).gather(images["unit"]))
    values = coded.group_by("image_id").agg(n=pl.len(), values=pl.col("code").n_unique())
    shared = values.filter(pl.col("n") > 1)["values"]
    return bool(len(shared)) and bool((shared == 1).all())


def _number_values(crossing: Crossing) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """Give memberships numbers: unit, group, and the groups' names, ``unknown`` last."""
    names = [display(cell) for cell in crossing.cells]
    values = sorted(names, key=lambda value: value == UNKNOWN)
    place = np.array([values.index(name) for name in names], dtype=np.int64)
    return crossing.unit, place[crossing.cell], tuple(values)

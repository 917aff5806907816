"""Units in groups of a sensitive attribute, and at values of each explanatory one, as numbers.

The first step of the analysis ``confounders``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux import derive
from isolux.analyses._features import read_known_values_as_numbers
from isolux.analyses._unit_scores import check_attributes_exist
from isolux.analyses.confounders.roles import AttributeRoles
from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.core.spec import Grouping, Groups, read_recorded_spec
from isolux.groups import build_membership, read_groupings
from isolux.groups.binning import income_rule_to_bins_option, parse_bins
from isolux.groups.intersections import IntersectionMembership, format_group_name
from isolux.groups.invalid_groups import MAX_NUMBERS
from isolux.groups.unknown_values import UNKNOWN
from isolux.stats.cluster_sums import IntArray

_MAX_VALUES, _MAX_CROSSED = 30, 3
_OPTION_PREFIX = "--analysis-option confounders."


@dataclass(frozen=True, slots=True)
class SensitiveAttribute:
    """A sensitive attribute: its groups, and the units in each.

    ``unit [n]`` and ``group [n]`` are memberships; a person may be in several groups. People of
    unknown value are in none.
    """

    name: str
    groups: tuple[str, ...]
    unit: IntArray
    group: IntArray


@dataclass(frozen=True, slots=True)
class ExplanatoryStrata:
    """An explanatory attribute, or several crossed: its values, and each unit's value.

    ``code [n_units]`` is -1 for units without a value; ``is_image_level`` tells whether all people
    of an image share it. ``attributes`` names the attributes.
    """

    attributes: tuple[str, ...]
    values: tuple[str, ...]
    code: IntArray
    is_image_level: bool

    @property
    def name(self) -> str:
        """The attributes, joined by ``*``."""
        return "*".join(self.attributes)


def build_sensitive_attributes(
    run: Run, settings: Groups, units: pl.Series, names: Sequence[str]
) -> list[SensitiveAttribute]:
    """Build the run's own groups of each sensitive attribute."""
    single = [entry for entry in settings.by if "*" not in entry] or settings.attributes
    names = list(dict.fromkeys(names or single))
    check_attributes_exist(run, names, f"{_OPTION_PREFIX}sensitive")
    audit_settings = settings.model_copy(
        update={"by": tuple(dict.fromkeys([*settings.by, *names]))}
    )
    rules = read_groupings(audit_settings, run.attributes)
    rules = {name: replace(rules[name], unknown="drop") for name in names}
    crossings = build_membership(run.attributes, names, rules, units=units).intersections
    numbered_groups = [
        (name, *_encode_memberships(crossing))
        for name, crossing in zip(names, crossings, strict=True)
    ]
    return [
        SensitiveAttribute(name, values, unit, group)
        for name, unit, group, values in numbered_groups
    ]


def list_computed_attributes(run: Run, sensitive: Sequence[str]) -> list[str]:
    """List the attributes that were computed with the audit (``--derive``)."""
    present = run.attributes["attribute"].unique(maintain_order=True)
    return [
        name
        for name in present
        if name in derive.map_derived_attributes_to_plugins() and name not in sensitive
    ]


def choose_explanatory_attributes(
    run: Run, roles: AttributeRoles, names: Sequence[str], sensitive: Sequence[str]
) -> list[str]:
    """Choose the explanatory attributes: those requested, with a role, computed, or each other."""
    names = list(names) or [name for name in roles.list_names() if name not in sensitive]
    source = f"{_OPTION_PREFIX}explanatory"
    check_attributes_exist(run, names, source)
    if names and set(names) == set(sensitive) and len(sensitive) == 1:
        raise SpecError(
            "an attribute cannot explain itself",
            expected="an explanatory attribute other than " + sensitive[0],
            found=sensitive[0],
            where=source,
        )
    prediction_column = read_recorded_spec(run.record).predictions.prediction_column
    if prediction_column in names:
        raise SpecError(
            f"{prediction_column!r} is the model's answer, from which the scores are computed",
            expected="explanatory attributes of the people or pictures",
            found=prediction_column,
            where=f"{source}, or --role",
        )
    names = list(dict.fromkeys(names)) or list_computed_attributes(run, sensitive)
    if not names and len(sensitive) > 1:
        names = list(sensitive)  # each at an equal mix of the others
    if not names:
        present = run.attributes["attribute"].unique(maintain_order=True)
        other_names = [name for name in present if name not in sensitive]
        raise SpecError(
            "it is not said what may explain the gaps between groups",
            expected="explanatory attributes, such as size, occlusion, light or weather",
            found="attributes " + ", ".join(other_names[:12])
            if other_names
            else "no other attribute",
            where=source,
            hint="name some of them there, audit two attributes, or compute some with the audit: "
            "--derive box_size",
        )
    return names


def build_explanatory_strata(
    run: Run, settings: Groups, units: pl.Series, names: Sequence[str], bins: Mapping[str, str]
) -> list[ExplanatoryStrata]:
    """Build the strata of every explanatory attribute."""
    unknown_names = sorted(set(bins) - set(names))
    if unknown_names:
        raise SpecError(
            "bins are given for what is not explanatory",
            expected="one of " + ", ".join(names),
            found=", ".join(unknown_names),
        )
    rules = {
        name: Grouping(
            attribute=name,
            votes="top-or-none",
            unknown="keep",
            unknown_values=settings.unknown_values,
            bins=_choose_bins_or_none(run, settings, units, name, bins.get(name)),
        )
        for name in names
    }
    crossings = build_membership(run.attributes, names, rules, units=units).intersections
    images = _find_image_by_unit_or_none(run, units)
    strata = []
    for name, crossing in zip(names, crossings, strict=True):
        unit, value_code, values = _encode_memberships(crossing)
        if len(values) > _MAX_VALUES and rules[name].bins is None:
            raise SpecError(
                f"{name!r} has {len(values):,} different values, too many to compare people within",
                expected=f"at most {_MAX_VALUES}",
                hint="name explanatory attributes with fewer values",
            )
        code = np.full(len(units), -1, dtype=np.int64)
        code[unit] = value_code
        strata.append(
            ExplanatoryStrata((name,), values, code, _is_constant_within_images(images, code))
        )
    return strata


def select_and_cross_strata_to_adjust(
    roles: AttributeRoles, sensitive: str, singles: Sequence[ExplanatoryStrata], *, is_named: bool
) -> list[ExplanatoryStrata]:
    """Select the strata to adjust for, without what came after, and cross the first three."""
    selected = {
        stratum.name: stratum
        for stratum in singles
        if not roles.is_excluded(sensitive, stratum.name)
    }
    if not selected or (is_named and len(selected) < len(singles)):
        excluded = [stratum.name for stratum in singles if stratum.name not in selected]
        raise SpecError(
            f"an equal mix of {' and '.join(excluded)} can create a gap of {sensitive} where there "
            "is none, and hide one where there is",
            expected="explanatory attributes that came before the score, or lead to it",
            found="; ".join(roles.explain_exclusion(sensitive, name) for name in excluded),
            where=f"{_OPTION_PREFIX}explanatory",
            hint="leave it out, or request it anyway: confounders.adjust_after=yes",
        )
    confounders = [name for name in selected if roles.find_role(sensitive, name) == "before"]
    names = (confounders if len(confounders) > 1 else list(selected))[:_MAX_CROSSED]
    to_cross = [selected[name] for name in names]
    return [
        *selected.values(),
        *([cross_explanatory_strata(to_cross)] if len(to_cross) > 1 else []),
    ]


def cross_explanatory_strata(strata: Sequence[ExplanatoryStrata]) -> ExplanatoryStrata:
    """Cross attributes; only combinations that occur are values.

    Examples
    --------
    >>> one = ExplanatoryStrata(("size",), ("small", "large"), np.array([0, 1, 1]), False)
    >>> two = ExplanatoryStrata(("light",), ("dim", "bright"), np.array([1, 1, -1]), True)
    >>> both = cross_explanatory_strata([one, two])
    >>> both.name, both.values, both.code.tolist()
    ('size*light', ('small × bright', 'large × bright'), [0, 1, -1])
    """
    shape = tuple(len(stratum.values) for stratum in strata)
    codes = np.stack([stratum.code for stratum in strata])
    is_known = (codes >= 0).all(axis=0)
    cells = np.ravel_multi_index(tuple(codes[:, is_known]), shape)
    occurring, inverse = np.unique(cells, return_inverse=True)
    code = np.full(codes.shape[1], -1, dtype=np.int64)
    code[is_known] = inverse
    names = tuple(
        " × ".join(stratum.values[k] for stratum, k in zip(strata, value_index, strict=True))
        for value_index in zip(*np.unravel_index(occurring, shape), strict=True)
    )
    attributes = tuple(attribute for stratum in strata for attribute in stratum.attributes)
    return ExplanatoryStrata(
        attributes, names, code, all(stratum.is_image_level for stratum in strata)
    )


def _choose_bins_or_none(
    run: Run, settings: Groups, units: pl.Series, name: str, rule: str | None
) -> str | None:
    """Choose an attribute's bins: edges at quantiles of units with a score; None: no bins."""
    rows = read_known_values_as_numbers(run, settings, name)
    number = rows["number"]
    if rule is not None:
        rule = income_rule_to_bins_option(rule)
    elif rows.is_empty() or number.null_count() or number.n_unique() <= MAX_NUMBERS:
        return None
    else:
        rule = "quantile:4"
    scored = run.scores.drop_nulls("value").select("unit_id").unique()
    bins = parse_bins(rule)
    if not bins.quantiles or scored.is_empty() or scored.height == len(units):
        return rule
    numbers = rows.drop_nulls("number").join(scored, on="unit_id", how="semi").group_by("unit_id")
    edges = bins.fixed_or_quantile_edges(numbers.agg(pl.col("number").median())["number"])
    return f"edges:{','.join(map(repr, edges))}:{bins.closed}" if edges else rule


def _find_image_by_unit_or_none(run: Run, units: pl.Series) -> pl.DataFrame | None:
    """Find the image of each unit, ``unit, image_id``; None where the run has no image ids."""
    tables = (t for t in run.evidence.values() if {"image_id", "unit_id"} <= set(t.columns))
    table = next(tables, None)
    if table is None:
        return None
    images = table.select("unit_id", "image_id").drop_nulls().unique()
    unit_rows = pl.DataFrame({"unit_id": units}).with_row_index("unit")
    return unit_rows.join(images, on="unit_id").select("unit", "image_id")


def _is_constant_within_images(images: pl.DataFrame | None, code: IntArray) -> bool:
    """Tell whether all people in an image have the same value; False without image ids."""
    if images is None:
        return False
    coded = images.with_columns(code=pl.Series(code).gather(images["unit"]))
    values = coded.group_by("image_id").agg(n=pl.len(), values=pl.col("code").n_unique())
    shared = values.filter(pl.col("n") > 1)["values"]
    return bool(len(shared)) and bool((shared == 1).all())


def _encode_memberships(
    crossing: IntersectionMembership,
) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """Assign numbers to memberships: unit, group, and the groups' names, ``unknown`` last."""
    names = [format_group_name(cell) for cell in crossing.cells]
    values = sorted(names, key=lambda name_key: name_key == UNKNOWN)
    group_number = np.array([values.index(name) for name in names], dtype=np.int64)
    return crossing.unit, group_number[crossing.cell], tuple(values)

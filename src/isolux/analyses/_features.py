"""What is known of each unit, as a table of numbers: the design matrix of the analyses.

From a run's attributes to ``matrix [n_units, n_columns]``. Two forms: ``items_of`` gives true and
false, one column a value, numbers in bins (for itemsets and slices); ``columns_of`` gives numbers
as they are and a column for each value of what is not a number (for regression and forests). An
attribute may have several values of one unit: then several of its columns are true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._answers import answer_columns
from isolux.analyses._judged import check_attributes
from isolux.groups import groupings, membership
from isolux.groups.no_groups import MOST_NUMBERS
from isolux.groups.unknown import mark_unknown
from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import AuditSpec, Grouping, Groups

MOST_VALUES = 100
"""Of an attribute that is not a number; one with more values only names its units."""


@dataclass(frozen=True, slots=True)
class Features:
    """Columns about units: which attribute each is of, and which value.

    ``value`` is None where the column is the number itself, NaN where it is not known.
    """

    attribute: tuple[str, ...]
    value: tuple[str | None, ...]
    matrix: npt.NDArray[np.bool_] | FloatArray
    notes: tuple[str, ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """Each attribute once, in order."""
        return tuple(dict.fromkeys(self.attribute))

    def columns(self, attribute: str) -> IntArray:
        """Return the places of an attribute's columns."""
        own = [j for j, name in enumerate(self.attribute) if name == attribute]
        return np.asarray(own, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Kinds:
    """The attributes that units have: numbers, words, and those that are left out (with why)."""

    rows: pl.DataFrame
    numbers: tuple[str, ...]
    words: tuple[str, ...]
    notes: tuple[str, ...]


def kinds_of(
    run: Run, spec: AuditSpec, units: pl.Series, asked: Sequence[str], *, analysis: str
) -> Kinds:
    """Sort the attributes of units into numbers and words."""
    check_attributes(run, asked, f"--analysis-option {analysis}.attributes")
    known = run.attributes["attribute"].unique(maintain_order=True).to_list()
    rows, facts = _known(run, spec, units, asked)
    constant = (pl.col("values") == 1) & (pl.col("units") == len(units))
    number = pl.col("all_numbers") & (pl.col("numbers") > MOST_NUMBERS)
    many = ~number & (pl.col("values") > MOST_VALUES)
    found = {
        name: facts.filter(rule)["attribute"].sort().to_list()  # whatever the rows' order
        for name, rule in (
            ("numbers", number),
            ("many", many),
            ("words", ~number & ~many & ~constant),
        )
    }
    if not found["numbers"] and not found["words"]:
        raise SpecError(
            "there is nothing to explain scores with",
            expected="attributes whose values differ between units",
            found="no attribute of them" if facts.is_empty() else ", ".join(facts["attribute"]),
            where=f"the analysis {analysis}",
            hint="audit again with --derive box_size or the like: `isolux list attributes`",
        )
    notes = _answers_left_out(spec, known, asked)
    if found["many"]:
        named = ", ".join(found["many"])
        notes.append(f"{named}: more than {MOST_VALUES} different values, so not used to explain")
    return Kinds(rows, tuple(found["numbers"]), tuple(found["words"]), tuple(notes))


def known_numbers(run: Run, settings: Groups, name: str) -> pl.DataFrame:
    """Take an attribute's rows of known value, with ``number``; null: it is none."""
    rows = mark_unknown(run.attributes.filter(attribute=name), settings.unknown_values)
    return _with_numbers(rows.drop_nulls("value"))


def _with_numbers(rows: pl.DataFrame) -> pl.DataFrame:
    """Read values as numbers, where no number is given; null: it is none."""
    parsed = pl.col("value").str.strip_chars().cast(pl.Float64, strict=False)
    given = ["number"] if "number" in rows.columns else []
    return rows.with_columns(number=pl.coalesce(*given, parsed))


def _answers_left_out(spec: AuditSpec, known: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Say which columns were taken for other models' answers, though no setting names them."""
    answers = spec.predictions
    named = (answers.prediction_column, answers.score_column, answers.detected_column)
    others = [name for name in answer_columns(answers, known) if name not in named]
    if asked or not others:
        return []
    return [f"{', '.join(others)}: what models said of people, so not used to explain"]


def _not_about_people(spec: AuditSpec) -> tuple[str | None, ...]:
    """Name the columns that a table of one's own holds besides its attributes."""
    return spec.people.cluster, spec.people.id, spec.predictions.prediction_id


def _known(
    run: Run, spec: AuditSpec, units: pl.Series, asked: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Take the rows with a known value, and count each attribute's values, numbers and units."""
    told = [name for name in _not_about_people(spec) if name]
    present = run.attributes["attribute"].unique(maintain_order=True)
    told += answer_columns(spec.predictions, present)
    named = pl.col("attribute")
    used = run.attributes.filter(
        pl.col("unit_id").is_in(units.implode()),
        named.is_in(list(asked)) if asked else named.is_in(told).not_(),
    )
    rows = _with_numbers(mark_unknown(used, spec.groups.unknown_values).drop_nulls("value"))
    rows = rows.with_columns(pl.col("number").fill_nan(None))
    return rows, rows.group_by("attribute", maintain_order=True).agg(
        values=pl.col("value").n_unique(),
        all_numbers=pl.col("number").is_finite().fill_null(value=False).all(),
        numbers=pl.col("number").n_unique(),
        units=pl.col("unit_id").n_unique(),
    )


def items_of(run: Run, spec: AuditSpec, units: pl.Series, kinds: Kinds, *, bins: int) -> Features:
    """Give each value of each attribute a column of true and false; numbers in ``bins`` quantiles.

    Values are those of the audit's own groups (merges, bins and votes of attributes in ``by``).
    """
    names = [*kinds.words, *kinds.numbers]
    known = groupings(spec.groups, run.attributes)
    rules = {}
    for name in names:
        own = known.get(name) or Grouping(
            attribute=name, votes=spec.groups.votes, unknown_values=spec.groups.unknown_values
        )
        binned = f"quantile:{bins}" if name in kinds.numbers and own.bins is None else own.bins
        rules[name] = replace(own, unknown="drop", bins=binned)
    rows = kinds.rows.filter(pl.col("attribute").is_in(names))
    frame = membership(rows, names, rules, units=units).frame
    pairs = frame.select("attribute", "group").unique(maintain_order=True).with_row_index("item")
    at = frame.join(pairs, on=["attribute", "group"]).join(
        pl.DataFrame({"unit_id": units}).with_row_index("unit"), on="unit_id"
    )
    matrix = np.zeros((len(units), pairs.height), dtype=np.bool_)
    matrix[at["unit"].to_numpy(), at["item"].to_numpy()] = True
    return Features(tuple(pairs["attribute"]), tuple(pairs["group"]), matrix, kinds.notes)


def columns_of(run: Run, spec: AuditSpec, units: pl.Series, kinds: Kinds) -> Features:
    """Give each number a column of numbers, and each value of what is none a column of 0 and 1."""
    whole = (
        items_of(run, spec, units, Kinds(kinds.rows, (), kinds.words, kinds.notes), bins=2)
        if kinds.words
        else Features((), (), np.zeros((len(units), 0)), kinds.notes)
    )
    places = pl.DataFrame({"unit_id": units}).with_row_index("unit")
    numbers = np.full((len(units), len(kinds.numbers)), np.nan)
    median = (
        kinds.rows.filter(pl.col("attribute").is_in(list(kinds.numbers)))
        .group_by("attribute", "unit_id")
        .agg(pl.col("number").median())
        .join(places, on="unit_id")
    )
    for j, name in enumerate(kinds.numbers):
        own = median.filter(attribute=name)
        numbers[own["unit"].to_numpy(), j] = own["number"].to_numpy()
    return Features(
        (*kinds.numbers, *whole.attribute),
        (*(None for _ in kinds.numbers), *whole.value),
        np.column_stack([numbers, whole.matrix.astype(np.float64)]),
        kinds.notes,
    )


def without(features: Features, outcome: FloatArray) -> Features:
    """Leave out attributes that say the outcome itself, and say so."""
    told = [name for name in features.attributes if _tells(features, name, outcome)]
    if not told:
        return features
    kept = np.asarray([name not in told for name in features.attribute])
    note = (
        f"{', '.join(told)}: says of every unit what its score says, so it was made from it or the "
        "score from it; left out"
    )
    return Features(
        tuple(n for n, k in zip(features.attribute, kept, strict=True) if k),
        tuple(v for v, k in zip(features.value, kept, strict=True) if k),
        features.matrix[:, kept],
        (*features.notes, note),
    )


def _tells(features: Features, name: str, outcome: FloatArray) -> bool:
    own = features.columns(name)
    if features.value[own[0]] is None:
        number = features.matrix[:, own[0]]
        known = np.isfinite(number)
        if known.sum() < 3:
            return False
        a, b = number[known] - number[known].mean(), outcome[known] - outcome[known].mean()
        both = float(a @ a) * float(b @ b)
        return both > 0 and float(a @ b) ** 2 > (1 - 1e-9) * both
    held = features.matrix[:, own].astype(np.float64)
    n = held.sum(axis=0)
    if held.any(axis=1).mean() < 0.9 or len(own) < 2 or len(own) > len(outcome) / 5:
        return False
    high = np.asarray([outcome[h > 0].max(initial=-np.inf) for h in held.T])
    low = np.asarray([outcome[h > 0].min(initial=np.inf) for h in held.T])
    return bool((high == low)[n > 0].all() and len(np.unique(high[n > 0])) > 1)

"""Review samples: sample size, random selection, and estimates for the population.

A review is sampled without replacement from a finite population: the variance of a share is
multiplied by (N - n) / (N - 1) (Cochran 1977, "Sampling Techniques", 3rd ed., section 3.2). The
Wilson interval uses that as a design effect. With strata it uses the larger of two design effects:
that of the strata's own variances, and that of one share for all strata, so that strata without a
finding do not get zero variance.

Units are sorted by the hash of the seed, the type and the unit's id: the same seed samples the same
units in any order of the input, and a larger sample contains the smaller one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.core.errors import FileError, SpecError, TableError
from isolux.core.notes import Caution
from isolux.io.atomic import staged_directory, write_text
from isolux.io.csv_text import to_safe_csv
from isolux.io.settings_files import read_mapping
from isolux.stats.proportions import wilson_interval
from isolux_curate.project.folder import Project
from isolux_curate.project.verdicts import (
    record_journal_note_unless_repeated,
    refuse_undecided_hash_matches,
)
from isolux_curate.quality.typed_answers import read_current_unit_ids, read_facts_by_unit_id
from isolux_curate.user_tables import read_table_as_text

LEVEL, MARGIN, EXPECTED = 0.95, 0.05, 0.5
METHOD = "Wilson, with finite population correction"


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """The share of a finite population, 0 to 1, estimated from a sample.

    The estimate and its interval; the counts of units found, reviewed, and in the population.
    """

    value: float
    low: float
    high: float
    n_found: int
    n: int
    population: int


def estimate_stratified_population_share(
    n_found: Sequence[int], n_reviewed: Sequence[int], n_population: Sequence[int]
) -> ShareEstimate:
    """Estimate a share of a finite population from counts by stratum, with a Wilson interval.

    Examples
    --------
    FHIBE's 14 of 400, drawn from 2,017 subjects: 3.5 %. It prints ± 1.7 points.

    >>> found = estimate_stratified_population_share([14], [400], [2017])
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.035, 0.0221, 0.055)
    """
    x, n, size = (
        np.asarray(sequence, dtype=np.float64) for sequence in (n_found, n_reviewed, n_population)
    )
    if not len(n) or (n < 1).any() or (x < 0).any() or (x > n).any() or (n > size).any():
        raise SpecError(
            "these are not the counts of a sample",
            expected="found ≤ seen ≤ population, and at least one seen, in each stratum",
            found=f"{list(n_found)} of {list(n_reviewed)} of {list(n_population)}",
        )
    weight = size / size.sum()
    share = x / n
    estimate = float((weight * share).sum())
    total = float(n.sum())
    counts = int(x.sum()), int(total), int(size.sum())
    effect = _compute_design_effect(weight, share, n, size)
    if effect == 0.0:  # all units were reviewed
        return ShareEstimate(estimate, estimate, estimate, *counts)
    n_effective = total / effect
    bounds = wilson_interval(estimate * n_effective, n_effective, LEVEL)
    interval = _clip_bounds_to_possible_shares(float(bounds.low), float(bounds.high), counts)
    return ShareEstimate(estimate, *interval, *counts)


def _clip_bounds_to_possible_shares(
    low: float, high: float, counts: tuple[int, int, int]
) -> tuple[float, float]:
    """Clip bounds to shares that are possible given the reviewed units."""
    n_found, n, size = counts
    return max(low, n_found / size), min(high, (size - n + n_found) / size)


def _compute_design_effect(
    stratum_weights: np.ndarray,
    stratum_shares: np.ndarray,
    n_reviewed: np.ndarray,
    n_population: np.ndarray,
) -> float:
    """Compute the design effect with finite population correction; with strata the larger of two.

    Shapes: all [strata].
    """
    finite_population_factor = np.where(
        n_population > 1, (n_population - n_reviewed) / np.maximum(n_population - 1, 1), 0.0
    )
    mean_share = float((stratum_weights * stratum_shares).sum())
    pooled_variance = float((stratum_weights**2 * finite_population_factor / n_reviewed).sum())
    stratified_variance = 0.0
    if len(n_reviewed) > 1 and 0.0 < mean_share < 1.0:
        # The sample variance of each stratum's share: (1 - n / N) p (1 - p) / (n - 1).
        stratum_variance = (
            (1 - n_reviewed / n_population)
            * stratum_shares
            * (1 - stratum_shares)
            / np.maximum(n_reviewed - 1, 1)
        )
        stratified_variance = float((stratum_weights**2 * stratum_variance).sum()) / (
            mean_share * (1 - mean_share)
        )
    return max(pooled_variance, stratified_variance) * float(n_reviewed.sum())


def compute_required_sample_size(
    population: int, margin: float = MARGIN, expected_share: float = EXPECTED
) -> int:
    """Find the smallest sample whose interval has a half-width of at most the margin.

    Examples
    --------
    >>> compute_required_sample_size(10_000)
    367
    >>> compute_required_sample_size(2_017, margin=0.017, expected_share=0.035)
    381
    """
    for name, setting, low, high in (
        ("margin", margin, 0.0, 0.5),
        ("expected", expected_share, -1e-9, 1 + 1e-9),
    ):
        if not low < setting < high:
            raise SpecError(
                f"{name} is out of its range",
                expected=f"above {max(low, 0):g}, below {high:g}",
                found=f"{setting:g}",
                where=name,
            )
    if population < 1:
        raise SpecError("there is nothing to review", expected="one unit or more", found="none")
    n = np.arange(1, population + 1, dtype=np.float64)
    finite_population_factor = np.maximum(population - n, 0) / max(population - 1, 1)
    n_effective = n / np.maximum(finite_population_factor, 1e-12)
    bounds = wilson_interval(expected_share * n_effective, n_effective, LEVEL)
    is_sufficient = (bounds.high - bounds.low) / 2 <= margin
    is_sufficient[-1] = True  # the whole population has no sampling error
    return int(np.argmax(is_sufficient)) + 1


SHEET_FILE, DESIGN_FILE = "sample.csv", "design.json"
_MIN_STRATUM_UNITS = 2  # of a stratum: one unit has no variance
_STRATUM_COLUMNS = ("type", "stratum", "population", "drawn")


@dataclass(frozen=True, slots=True)
class SamplingDesign:
    """The sampling design of a review.

    Parameters
    ----------
    strata : polars.DataFrame
        ``type, stratum, population, drawn``: numbers of units, and of sampled units.
    settings : mapping
        ``seed``, ``by``, and ``margin, expected, level`` or ``size``.
    """

    strata: pl.DataFrame
    settings: Mapping[str, Any]

    def to_json(self) -> str:
        """Format the design as JSON."""
        record = {"settings": dict(self.settings), "strata": self.strata.to_dicts()}
        return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def draw_stratified_units(
    units: pl.DataFrame, unit_type: str, sample_size: int, seed: int
) -> pl.DataFrame:
    """Sample units of one type, from each stratum in proportion to its size.

    Examples
    --------
    >>> units = pl.DataFrame({"unit_id": list("abcdefgh"), "stratum": ["x"] * 6 + ["y"] * 2})
    >>> draw_stratified_units(units, "boxes", 4, 0)["stratum"].to_list()
    ['x', 'x', 'y', 'y']
    """
    if units["unit_id"].is_duplicated().any():
        raise TableError("a unit is listed twice", expected="each unit once", where=unit_type)
    draw_keys = [_compute_draw_key(seed, unit_type, unit) for unit in units["unit_id"]]
    sizes = units.group_by("stratum").agg(population=pl.len()).sort("stratum")
    allocations = sizes.with_columns(
        drawn=pl.Series(allocate_sample_to_strata(sizes["population"].to_list(), sample_size))
    )
    return (
        units.with_columns(_draw_key=pl.Series(draw_keys, dtype=pl.String))
        .sort("stratum", "_draw_key")
        .join(allocations, on="stratum", how="left", maintain_order="left")
        .filter(pl.int_range(pl.len()).over("stratum") < pl.col("drawn"))
        .select(units.columns)
        .sort("stratum", "unit_id")
    )


def _compute_draw_key(seed: int, unit_type: str, unit: str) -> str:
    return hashlib.sha256(f"{seed}\x00{unit_type}\x00{unit}".encode()).hexdigest()


def allocate_sample_to_strata(population: Sequence[int], sample_size: int) -> list[int]:
    """Allocate a sample to strata by their sizes (largest remainders), at least two units each.

    Examples
    --------
    >>> allocate_sample_to_strata([700, 290, 10, 1], 100)
    [69, 28, 2, 1]
    """
    stratum_sizes = np.asarray(population, dtype=np.int64)
    total = int(stratum_sizes.sum())
    sample_size = min(sample_size, total)
    min_sizes = np.minimum(stratum_sizes, _MIN_STRATUM_UNITS)
    exact_sizes = sample_size * stratum_sizes / max(total, 1)
    allocation = np.maximum(np.floor(exact_sizes).astype(np.int64), min_sizes)
    allocation = np.minimum(allocation, stratum_sizes)
    order = np.argsort(-(exact_sizes - np.floor(exact_sizes)), kind="stable")
    while allocation.sum() < sample_size:
        for k in order:
            if allocation.sum() < sample_size and allocation[k] < stratum_sizes[k]:
                allocation[k] += 1
    while allocation.sum() > sample_size and (allocation > min_sizes).any():
        k = int(np.argmax(np.where(allocation > min_sizes, allocation - exact_sizes, -np.inf)))
        allocation[k] -= 1
    return [int(n) for n in allocation]


def read_sampling_design(sample_folder: str | Path) -> SamplingDesign:
    """Read a sample's design."""
    path = Path(sample_folder).expanduser() / DESIGN_FILE
    if not path.is_file():
        raise FileError(
            "there is no sample",
            expected=f"a folder with {DESIGN_FILE}",
            where=str(sample_folder),
            hint="`isolux curate sample` makes one",
        )
    design_record = read_mapping(path)
    rows = design_record.get("strata")
    is_valid = isinstance(rows, list) and all(
        isinstance(row, Mapping) and set(_STRATUM_COLUMNS) <= set(row) for row in rows
    )
    if not is_valid or not rows:
        raise SpecError(
            "this is not the design of a sample",
            expected=", ".join(_STRATUM_COLUMNS),
            where=str(path),
        )
    schema = {"type": pl.String, "stratum": pl.String, "population": pl.Int64, "drawn": pl.Int64}
    strata = pl.DataFrame(
        [{name: row[name] for name in _STRATUM_COLUMNS} for row in rows], schema=schema
    )
    return SamplingDesign(strata, dict(design_record.get("settings") or {}))


STEP = "quality"
_SHEET_COLUMNS = ("type", "unit_id", "image_id", "stratum", "verdict", "reason")


@dataclass(frozen=True, slots=True)
class ReviewSample:
    """A review sample: the sheet's rows, the design and notes."""

    sheet: pl.DataFrame
    design: SamplingDesign
    notes: tuple[str, ...]


def draw_and_write_review_sample(
    project: Project,
    out: str | Path,
    *,
    type: Sequence[str] = (),  # noqa: A002 - the option is called --type
    table: str | Path | None = None,
    by: Sequence[str] = (),
    margin: float = MARGIN,
    expected: float = EXPECTED,
    size: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> ReviewSample:
    """Draw units for review, and write ``sample.csv`` and ``design.json``.

    Parameters
    ----------
    project : Project
        An open project.
    out : str or Path
        The folder to write.
    type : sequence of str
        What is drawn, each type separately: subject, image, instance (people in photos), or a stage
        of annotation (boxes: the boxes).
    table : str, optional
        Draw from the column unit_id of a table in place of the project's units.
    by : sequence of str
        Facts (or the table's columns) whose values are strata, each drawn from in proportion.
    margin : float
        Half the width of the interval of a share, 0 to 1: the sample is as large as it needs.
    expected : float
        The share that is expected, 0 to 1; .5 needs most.
    size : int, optional
        How many of each type, in place of a margin.
    seed : int
        The same seed draws the same units.
    overwrite : bool
        Replace an earlier sample.
    """
    refuse_undecided_hash_matches(project)
    if bool(type) == (table is not None):
        raise SpecError(
            "what is to be drawn is not said, or twice", expected="--type TYPE, or --table FILE"
        )
    if size is not None and size < 1:
        raise SpecError("a sample of no units is none", expected="1 or more", found=str(size))
    units_by_type = (
        {"table": _read_units_with_strata(Path(str(table)), by)}
        if table is not None
        else {
            unit_type: _add_strata_from_facts(
                project, read_current_unit_ids(project, unit_type), by
            )
            for unit_type in type
        }
    )
    sheets: list[pl.DataFrame] = []
    strata: list[pl.DataFrame] = []
    notes: list[str] = []
    for unit_type, units in units_by_type.items():
        if units.is_empty():
            raise SpecError(
                f"there is no {unit_type} to review",
                expected="units that stand",
                found="none",
                where=str(project.folder),
            )
        n = (
            size
            if size is not None
            else compute_required_sample_size(units.height, margin, expected)
        )
        sampled_units = draw_stratified_units(units, unit_type, n, seed).with_columns(
            type=pl.lit(unit_type)
        )
        sheets.append(sampled_units)
        stratum_counts = (
            units.group_by("stratum")
            .agg(population=pl.len())
            .join(sampled_units.group_by("stratum").agg(drawn=pl.len()), on="stratum")
        )
        strata.append(stratum_counts.with_columns(type=pl.lit(unit_type)).sort("stratum"))
        if size is not None and size > units.height:
            notes.append(
                Caution(
                    f"{unit_type}: {size:,} were requested, but there are only {units.height:,}."
                )
            )
    settings: dict[str, Any] = {"seed": seed, "by": list(by), "level": LEVEL}
    settings |= {"size": size} if size is not None else {"margin": margin, "expected": expected}
    strata_table = pl.concat(strata).select(
        "type", "stratum", *(pl.col(c).cast(pl.Int64) for c in ("population", "drawn"))
    )
    design = SamplingDesign(strata_table, settings)
    sheet = pl.concat(sheets, how="diagonal").with_columns(
        verdict=pl.lit(None, dtype=pl.String), reason=pl.lit(None, dtype=pl.String)
    )
    sheet = sheet.select(_SHEET_COLUMNS)
    with staged_directory(
        out, overwrite=overwrite, marks=(DESIGN_FILE,), folder_kind="sample"
    ) as staging_dir:
        write_text(staging_dir / SHEET_FILE, to_safe_csv(sheet))
        write_text(staging_dir / DESIGN_FILE, design.to_json())
    for (unit_type,), rows in strata_table.group_by("type", maintain_order=True):
        counts = {c: int(rows[c].sum()) for c in ("population", "drawn")}
        record_journal_note_unless_repeated(
            project, STEP, f"sample of {unit_type}", settings | counts | {"strata": rows.height}
        )
    return ReviewSample(sheet, design, tuple(notes))


def _add_strata_from_facts(
    project: Project, units: pl.DataFrame, fact_columns: Sequence[str]
) -> pl.DataFrame:
    facts = read_facts_by_unit_id(project, fact_columns)
    unit_facts = units.join(facts, on="unit_id", how="left", maintain_order="left")
    return unit_facts.select("unit_id", "image_id", stratum=_build_stratum_expression(fact_columns))


def _build_stratum_expression(columns: Sequence[str]) -> pl.Expr:
    """Build the expression of a unit's stratum; unknown values are a stratum of their own."""
    if not columns:
        return pl.lit("")
    return pl.concat_str([pl.col(n).fill_null("(not said)") for n in columns], separator=" | ")


def _read_units_with_strata(path: Path, stratum_columns: Sequence[str]) -> pl.DataFrame:
    text = read_table_as_text(path, "unit_id", *stratum_columns)
    if text["unit_id"].null_count() or text["unit_id"].is_duplicated().any():
        raise TableError(
            "a unit is listed twice, or is not named", expected="one row a unit", where=str(path)
        )
    image = pl.col("image_id") if "image_id" in text.columns else pl.lit(None, pl.String)
    return text.select(
        "unit_id", image_id=image, stratum=_build_stratum_expression(stratum_columns)
    )

"""Candidate lists of a search engine, one row per candidate: reading and checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from isolux.core.errors import SpecError, TableError, format_location
from isolux.core.notes import Caution
from isolux.tasks._ids import format_ids, refuse_no_match, require_columns
from isolux.tasks.identification.candidates import FAILED, MISSING, Candidates, SearchRoles

_SOURCE = "predictions"
_REQUIRED_COLUMNS = ("model", "instance_id", "other_id")
_CAUTION_SHARE = 0.1
_RELATIVE_TOLERANCE = 1e-9
"""Scores that rise down a list by less are rounding."""


def read_candidate_lists(
    frame: pl.DataFrame, roles: SearchRoles, *, is_distance: bool, model: str | None
) -> tuple[Candidates, ...]:
    """Read each model's candidate lists."""
    rows, ids = _check_rows(frame, is_distance=is_distance), roles.units["unit_id"]
    candidate_ids = rows["other_id"].drop_nulls()
    if (
        roles.is_all_to_all
        and len(candidate_ids)
        # In an all-to-all search every image is both searched for and enrolled. Where the two sets
        # are disjoint, the gallery was not declared, and enrolled people in no list would be
        # overlooked.
        and not candidate_ids.is_in(rows["instance_id"].implode()).any()
    ):
        raise SpecError(
            "nothing says who is enrolled, and no candidate is searched for itself",
            expected="--enrolled ATTRIBUTE=VALUE, such as role=gallery: people who are enrolled"
            " and in no list count too",
            found="candidate lists, and no --enrolled",
        )
    indexed_rows = rows.with_columns(
        pl.col(column).cast(pl.Enum(ids), strict=False).to_physical().cast(pl.UInt32).alias(name)
        for column, name in (("instance_id", "probe"), ("other_id", "entry"))
    )
    searched_rows = pl.Series(np.flatnonzero(roles.is_searched), dtype=pl.UInt32)
    known_rows = indexed_rows.with_columns(
        known=pl.col("probe").is_not_null(),
        ours=pl.col("probe").is_in(searched_rows.implode()).fill_null(value=False),
    )
    refuse_no_match(
        "no search is for a unit of the dataset",
        rows["instance_id"],
        ids,
        n_matched=int(known_rows["known"].sum()),
    )
    _refuse_candidates(known_rows, roles)
    names = sorted(rows["model"].unique()) or [model or "model"]
    return tuple(_model_candidates(n, known_rows.filter(model=n), roles) for n in names)


def _check_rows(frame: pl.DataFrame, *, is_distance: bool) -> pl.DataFrame:
    """Return the rows of candidate lists with checked types; refuse unusable rows."""
    require_columns(frame, _REQUIRED_COLUMNS)
    # One of the two orders a list; without both nothing is known.
    if "rank" not in frame.columns:
        require_columns(frame, ["score"])
    for name in {"score", "rank"} & set(frame.columns):
        if not frame.schema[name].is_numeric() and frame[name].is_not_null().any():
            raise TableError(
                f"the {name} of a candidate is a number",
                expected="numbers",
                found=str(frame.schema[name]),
                where=format_location(_SOURCE, column=name),
            )
    # Distances are negated, so that higher is more similar everywhere else.
    sign = -1.0 if is_distance else 1.0
    rows = frame.select(
        pl.col(*_REQUIRED_COLUMNS).cast(pl.String),
        score=(sign * pl.col("score").cast(pl.Float64))
        if "score" in frame.columns
        else _NULL_NUMBER,
        rank=pl.col("rank").cast(pl.Float64) if "rank" in frame.columns else _NULL_NUMBER,
        failed=pl.col("failed").cast(pl.Boolean).fill_null(value=False)
        if "failed" in frame.columns
        else pl.lit(False),  # noqa: FBT003  (polars takes it so)
    ).with_row_index("line", offset=1)
    has_candidate = pl.col("other_id").is_not_null()
    for is_invalid, expected in (
        (
            pl.col("model").is_null() | pl.col("instance_id").is_null(),
            "a model and who is searched for, in every row",
        ),
        (
            has_candidate & pl.col("score").is_null() & pl.col("rank").is_null(),
            "a score or a rank of every candidate",
        ),
        (~pl.col("score").is_finite(), "a finite score"),
        ((pl.col("rank") < 1) | (pl.col("rank") != pl.col("rank").round()), _RANKS),
        (
            ~has_candidate & (pl.col("score").is_not_null() | pl.col("rank").is_not_null()),
            "no score where there is no candidate",
        ),
        (has_candidate & pl.col("failed"), "no candidates where no template could be made"),
    ):
        invalid_rows = rows.filter(is_invalid.fill_null(value=False))
        if invalid_rows.height:
            raise TableError(
                f"{invalid_rows.height:,} row(s) of the candidate lists cannot be used",
                expected=expected,
                found=_describe_row(
                    invalid_rows.with_columns(score=sign * pl.col("score")).row(0, named=True)
                ),
                where=format_location(_SOURCE, int(invalid_rows["line"][0])),
                hint=_RANK_HINT
                if expected == _RANKS and (invalid_rows["rank"] == 0).any()
                else None,
            )
    return rows


_RANKS = "ranks from 1"
_RANK_HINT = "the first candidate has rank 1: where the file counts from 0, add 1 to every rank"


def _describe_row(row: dict[str, Any]) -> str:
    """Describe one row of a candidate list, for an error."""
    search_text = repr(row["instance_id"]) if row["instance_id"] is not None else "nothing"
    candidate_text = (
        f"candidate {row['other_id']!r}" if row["other_id"] is not None else "no candidate"
    )
    details = [f"a search for {search_text}", candidate_text]
    details += [f"{name} {row[name]:g}" for name in ("rank", "score") if row[name] is not None]
    details += ["no model"] * (row["model"] is None) + ["no template could be made"] * row["failed"]
    return ", ".join(details)


_NULL_NUMBER = pl.lit(None, dtype=pl.Float64)


def _refuse_candidates(rows: pl.DataFrame, roles: SearchRoles) -> None:
    """Refuse candidates that are unknown or not enrolled."""
    candidate_rows = rows.drop_nulls("other_id")
    enrolled = pl.Series(np.flatnonzero(roles.is_enrolled), dtype=pl.UInt32).implode()
    swap_hint = "are the two columns swapped?" if not rows["ours"].any() else None
    for is_invalid, problem, expected, hint in (
        (
            # Excluding an unknown candidate would move everyone behind it up a rank.
            pl.col("entry").is_null() & pl.col("known"),
            "are not in the dataset: without them no rank is known",
            "candidates that are instances of the dataset",
            None,
        ),
        (
            ~pl.col("entry").is_in(enrolled),
            "are not enrolled",
            "instance_id: who is searched for; other_id: an entry of the gallery",
            swap_hint,
        ),
    ):
        invalid_rows = candidate_rows.filter(is_invalid)
        if invalid_rows.height:
            raise TableError(
                f"{invalid_rows.height:,} candidate(s) {problem}",
                expected=expected,
                found=format_ids(invalid_rows["other_id"].unique(maintain_order=True)),
                where=_SOURCE,
                hint=hint,
            )


def _model_candidates(name: str, rows: pl.DataFrame, roles: SearchRoles) -> Candidates:
    """Build one model's candidate lists from its rows."""
    n, search_rows = roles.units.height, rows.filter("ours")
    notes = []
    for n_rows, problem in (
        (int((~rows["known"]).sum()), "are of searches for units that the dataset has not"),
        (int((rows["known"] & ~rows["ours"]).sum()), "are of searches for enrolled images"),
    ):
        if n_rows:
            text = f"{n_rows:,} of {rows.height:,} rows of candidate lists {problem}: left out."
            notes.append(Caution(text) if n_rows >= _CAUTION_SHARE * rows.height else text)
    candidate_rows = search_rows.drop_nulls("entry")
    # Before an image's own entry is removed, which may leave a gap itself.
    _refuse_rank_gaps(candidate_rows)
    # An image finds itself at rank 1, which says nothing about recognising the person.
    n_self = candidate_rows.filter(entry=pl.col("probe")).height
    if n_self:
        candidate_rows = candidate_rows.filter(pl.col("entry") != pl.col("probe"))
        notes.append(f"{n_self:,} candidates are the image that was searched for: left out.")
    duplicates = candidate_rows.filter(pl.struct("probe", "entry").is_duplicated())
    # A repeated candidate takes a rank from another person.
    if duplicates.height:
        raise TableError(
            f"{duplicates.height:,} row(s) list a candidate twice in one search",
            expected="each candidate once in each list",
            found=f"{duplicates['other_id'][0]!r} for {duplicates['instance_id'][0]!r}",
            where=format_location(_SOURCE, int(duplicates["line"][0])),
        )
    lists = _order_candidates(candidate_rows, name)
    notes += [] if candidate_rows["rank"].null_count() else _note_ties(lists, name)
    notes += _caution_on_absent_searches(search_rows, roles, name)
    # A row without a candidate is a search that returned no one; no row is a missing search.
    search_states = search_rows.group_by("probe").agg(pl.col("failed").any())
    state_code = np.zeros(n, dtype=np.uint32)
    state_code[search_states["probe"].to_numpy()] = (
        1 + search_states["failed"].cast(pl.UInt32).to_numpy()
    )
    search_failure = pl.Series([MISSING, None, FAILED], dtype=pl.String).gather(state_code)
    enrolment_failure = pl.repeat(None, n, dtype=pl.String, eager=True)
    max_length = lists.group_by("probe").len()["len"].max() if lists.height else 0
    return Candidates(
        name,
        lists,
        search_failure,
        enrolment_failure,
        int(str(max_length or 0)),
        notes=tuple(notes),
    )


def _caution_on_absent_searches(
    search_rows: pl.DataFrame, roles: SearchRoles, model: str
) -> list[Caution]:
    """Caution where many searches have no row, as if lists had been cut at a score."""
    n = int(roles.is_searched.sum())
    absent = n - search_rows["probe"].n_unique()
    text = (
        f"{absent:,} of {n:,} searches have no row in the lists of {model!r}. A search that "
        "returned nobody needs a row with an empty candidate: without it, the search is "
        "missing, and every rate is only about the others."
    )
    needs_caution = (
        search_rows.height
        and absent >= _CAUTION_SHARE * n
        # Rows with an empty candidate show that the file does state searches that returned no one.
        and not search_rows["other_id"].null_count()
    )
    return [Caution(text)] if needs_caution else []


def _note_ties(lists: pl.DataFrame, model: str) -> list[str]:
    """Note candidates of equal scores that ranks put in order: as ties they count differently."""
    previous = pl.col("score").shift(1).over("probe"), pl.col("order").shift(1).over("probe")
    # Relative for large scores, absolute for those near 0.
    scale = pl.col("score").abs().clip(1.0)
    is_tied = ((pl.col("score") - previous[0]).abs() <= _RELATIVE_TOLERANCE * scale) & (
        pl.col("order") > previous[1]
    )
    tied_rows = lists.filter(is_tied.fill_null(value=False))
    if not tied_rows.height:
        return []
    n, m = lists["probe"].n_unique(), tied_rows["probe"].n_unique()
    text = (
        f"{m:,} of {n:,} candidate lists of {model!r} hold candidates of one score and different"
        " ranks: they were taken in the order of their ranks. By scores alone they are a tie, which"
        " counts against the model."
    )
    return [Caution(text) if m >= _CAUTION_SHARE * n else text]


def _refuse_rank_gaps(candidate_rows: pl.DataFrame) -> None:
    """Refuse lists with missing ranks: the missing candidate may be the person."""
    ranks = candidate_rows.drop_nulls("rank")
    # "max" gives tied ranks their last position, so that 1, 1, 3 and 1, 2, 2 have no gap.
    expected_rank = pl.col("rank").rank("max").over("probe")
    gaps = ranks.filter(pl.col("rank") > expected_rank).sort("line")
    if gaps.height:
        row = gaps.row(0, named=True)
        raise TableError(
            f"the ranks of {gaps['probe'].n_unique():,} list(s) leave one out",
            expected="ranks 1, 2, 3, … of each list, without a hole",
            found=f"rank {row['rank']:.0f} in the list of {row['instance_id']!r}, and fewer"
            " candidates up to there",
            where=format_location(_SOURCE, int(row["line"])),
            hint="were candidates cut from the lists, or does the engine count from 2?",
        )


def _order_candidates(candidate_rows: pl.DataFrame, model: str) -> pl.DataFrame:
    """Order candidates by rank where there are ranks, else by falling score."""
    has_column = {c: candidate_rows[c].is_not_null().any() for c in ("rank", "score")}
    for column, is_present in has_column.items():
        # A list of both kinds has no order.
        if is_present and candidate_rows[column].null_count():
            raise TableError(
                f"some candidates of {model!r} have a {column}, and some have none",
                expected=f"a {column} for every candidate, or for none",
                found=f"{candidate_rows[column].null_count():,} of {candidate_rows.height:,}"
                " without",
                where=format_location(_SOURCE, column=column),
            )
    # Lower comes first in both cases; equal values are a tie.
    order = pl.col("rank") if has_column["rank"] else -pl.col("score")
    rows = candidate_rows.select("probe", "entry", "score", "instance_id", "line", order=order)
    # The entry breaks ties, so that stored lists do not depend on the order of the file.
    rows = rows.sort("probe", "order", "entry")
    if all(has_column.values()):
        scale = pl.col("score").abs().clip(1.0)
        is_rising = pl.col("score") - pl.col("score").shift(1) > _RELATIVE_TOLERANCE * scale
        rising_rows = rows.filter(is_rising & (pl.col("probe") == pl.col("probe").shift(1)))
        # Scores that rise with the rank are distances, or ranks of another list.
        if rising_rows.height:
            raise TableError(
                f"{rising_rows.height:,} candidate(s) of {model!r} are more alike than one of a"
                " better rank",
                expected="scores that fall as ranks rise",
                found=f"in the list of {rising_rows['instance_id'][0]!r}",
                where=format_location(_SOURCE, int(rising_rows["line"][0])),
                hint="are scores distances? --lower-score-means same (lower_score_means='same')",
            )
    return rows.select("probe", "entry", "order", "score")

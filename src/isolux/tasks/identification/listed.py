"""Candidate lists as a search engine returned them: one row a candidate, read and checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from isolux.tasks._ids import format_ids, refuse_no_match, require_columns
from isolux.tasks.identification.candidates import FAILED, MISSING, Candidates, Roles
from isolux.vocabulary.errors import SpecError, TableError, place
from isolux.vocabulary.notes import Caution

_WHERE = "predictions"
_NEEDED = ("model", "instance_id", "other_id")
_MANY = 0.1
_ROUNDING = 1e-9
"""Scores that rise down a list by less are rounding."""


def read_lists(
    frame: pl.DataFrame, roles: Roles, *, turned: bool, model: str | None
) -> tuple[Candidates, ...]:
    """Read each model's candidate lists."""
    rows, ids = _checked(frame, turned=turned), roles.units["unit_id"]
    listed = rows["other_id"].drop_nulls()
    if roles.everyone and len(listed) and not listed.is_in(rows["instance_id"].implode()).any():
        raise SpecError(
            "nothing says who is enrolled, and no candidate is searched for itself",
            expected="--enrolled ATTRIBUTE=VALUE, such as role=gallery: people who are enrolled"
            " and in no list count too",
            found="candidate lists, and no --enrolled",
        )
    placed = rows.with_columns(
        pl.col(column).cast(pl.Enum(ids), strict=False).to_physical().cast(pl.UInt32).alias(name)
        for column, name in (("instance_id", "probe"), ("other_id", "entry"))
    )
    searched = pl.Series(np.flatnonzero(roles.searched), dtype=pl.UInt32)
    ours = placed.with_columns(
        known=pl.col("probe").is_not_null(),
        ours=pl.col("probe").is_in(searched.implode()).fill_null(value=False),
    )
    refuse_no_match(
        "no search is for a unit of the dataset",
        rows["instance_id"],
        ids,
        n_matched=int(ours["known"].sum()),
    )
    _refuse_candidates(ours, roles)
    names = sorted(rows["model"].unique()) or [model or "model"]
    return tuple(_of_model(n, ours.filter(pl.col("model") == n), roles) for n in names)


def _checked(frame: pl.DataFrame, *, turned: bool) -> pl.DataFrame:
    require_columns(frame, _NEEDED)
    if "rank" not in frame.columns:
        require_columns(frame, ["score"])
    for name in {"score", "rank"} & set(frame.columns):
        if not frame.schema[name].is_numeric() and frame[name].is_not_null().any():
            raise TableError(
                f"the {name} of a candidate is a number",
                expected="numbers",
                found=str(frame.schema[name]),
                where=place(_WHERE, column=name),
            )
    sign = -1.0 if turned else 1.0
    rows = frame.select(
        pl.col(*_NEEDED).cast(pl.String),
        score=(sign * pl.col("score").cast(pl.Float64)) if "score" in frame.columns else _NONE,
        rank=pl.col("rank").cast(pl.Float64) if "rank" in frame.columns else _NONE,
        failed=pl.col("failed").cast(pl.Boolean).fill_null(value=False)
        if "failed" in frame.columns
        else pl.lit(False),  # noqa: FBT003  (polars takes it so)
    ).with_row_index("line", offset=1)
    listed = pl.col("other_id").is_not_null()
    for bad, expected in (
        (
            pl.col("model").is_null() | pl.col("instance_id").is_null(),
            "a model and who is searched for, in every row",
        ),
        (
            listed & pl.col("score").is_null() & pl.col("rank").is_null(),
            "a score or a rank of every candidate",
        ),
        (~pl.col("score").is_finite(), "a finite score"),
        ((pl.col("rank") < 1) | (pl.col("rank") != pl.col("rank").round()), _RANKS),
        (
            ~listed & (pl.col("score").is_not_null() | pl.col("rank").is_not_null()),
            "no score where there is no candidate",
        ),
        (listed & pl.col("failed"), "no candidates where no template could be made"),
    ):
        wrong = rows.filter(bad.fill_null(value=False))
        if wrong.height:
            raise TableError(
                f"{wrong.height:,} row(s) of the candidate lists cannot be used",
                expected=expected,
                found=_in_words(
                    wrong.with_columns(score=sign * pl.col("score")).row(0, named=True)
                ),
                where=place(_WHERE, int(wrong["line"][0])),
                hint=_FROM_1 if expected == _RANKS and (wrong["rank"] == 0).any() else None,
            )
    return rows


_RANKS = "ranks from 1"
_FROM_1 = "the first candidate has rank 1: where the file counts from 0, add 1 to every rank"


def _in_words(row: dict[str, Any]) -> str:
    """Say what one row of a candidate list holds."""
    searched = repr(row["instance_id"]) if row["instance_id"] is not None else "nothing"
    listed = f"candidate {row['other_id']!r}" if row["other_id"] is not None else "no candidate"
    said = [f"a search for {searched}", listed]
    said += [f"{name} {row[name]:g}" for name in ("rank", "score") if row[name] is not None]
    said += ["no model"] * (row["model"] is None) + ["no template could be made"] * row["failed"]
    return ", ".join(said)


_NONE = pl.lit(None, dtype=pl.Float64)


def _refuse_candidates(rows: pl.DataFrame, roles: Roles) -> None:
    listed = rows.filter(pl.col("other_id").is_not_null())
    enrolled = pl.Series(np.flatnonzero(roles.enrolled), dtype=pl.UInt32).implode()
    swapped = "are the two columns swapped?" if not rows["ours"].any() else None
    for bad, problem, expected, hint in (
        (
            pl.col("entry").is_null() & pl.col("known"),
            "are not in the dataset: without them no rank is known",
            "candidates that are instances of the dataset",
            None,
        ),
        (
            ~pl.col("entry").is_in(enrolled),
            "are not enrolled",
            "instance_id: who is searched for; other_id: an entry of the gallery",
            swapped,
        ),
    ):
        wrong = listed.filter(bad)
        if wrong.height:
            raise TableError(
                f"{wrong.height:,} candidate(s) {problem}",
                expected=expected,
                found=format_ids(wrong["other_id"].unique(maintain_order=True)),
                where=_WHERE,
                hint=hint,
            )


def _of_model(name: str, rows: pl.DataFrame, roles: Roles) -> Candidates:
    n, mine = roles.units.height, rows.filter("ours")
    notes = []
    for count, what in (
        (int((~rows["known"]).sum()), "are of searches for units that the dataset has not"),
        (int((rows["known"] & ~rows["ours"]).sum()), "are of searches for enrolled images"),
    ):
        if count:
            text = f"{count:,} of {rows.height:,} rows of candidate lists {what}: left out."
            notes.append(Caution(text) if count >= _MANY * rows.height else text)
    listed = mine.filter(pl.col("entry").is_not_null())
    _refuse_holes(listed)
    own = listed.filter(pl.col("entry") == pl.col("probe")).height
    if own:
        listed = listed.filter(pl.col("entry") != pl.col("probe"))
        notes.append(f"{own:,} candidates are the image that was searched for: left out.")
    twice = listed.filter(pl.struct("probe", "entry").is_duplicated())
    if twice.height:
        raise TableError(
            f"{twice.height:,} row(s) list a candidate twice in one search",
            expected="each candidate once in each list",
            found=f"{twice['other_id'][0]!r} for {twice['instance_id'][0]!r}",
            where=place(_WHERE, int(twice["line"][0])),
        )
    lists = _ordered(listed, name)
    notes += [] if listed["rank"].null_count() else _on_ties(lists, name)
    notes += _on_absent(mine, roles, name)
    asked = mine.group_by("probe").agg(pl.col("failed").any())
    state = np.zeros(n, dtype=np.uint32)
    state[asked["probe"].to_numpy()] = 1 + asked["failed"].cast(pl.UInt32).to_numpy()
    found = pl.Series([MISSING, None, FAILED], dtype=pl.String).gather(state)
    held = pl.repeat(None, n, dtype=pl.String, eager=True)
    longest = lists.group_by("probe").len()["len"].max() if lists.height else 0
    return Candidates(name, lists, found, held, int(str(longest or 0)), notes=tuple(notes))


def _on_absent(mine: pl.DataFrame, roles: Roles, model: str) -> list[Caution]:
    """Caution where many searches have no row, as in lists that were cut off at a score."""
    n = int(roles.searched.sum())
    absent = n - mine["probe"].n_unique()
    text = (
        f"{absent:,} of {n:,} searches have no row in the lists of {model!r}. A search that "
        "returned nobody needs a row with an empty candidate: without it, the search is "
        "missing, and every rate is only about the others."
    )
    is_told = mine.height and absent >= _MANY * n and not mine["other_id"].null_count()
    return [Caution(text)] if is_told else []


def _on_ties(lists: pl.DataFrame, model: str) -> list[str]:
    """Say where ranks order candidates whose scores are alike: such a tie would count otherwise."""
    before = pl.col("score").shift(1).over("probe"), pl.col("order").shift(1).over("probe")
    size = pl.col("score").abs().clip(1.0)
    tied = ((pl.col("score") - before[0]).abs() <= _ROUNDING * size) & (pl.col("order") > before[1])
    torn = lists.filter(tied.fill_null(value=False))
    if not torn.height:
        return []
    n, m = lists["probe"].n_unique(), torn["probe"].n_unique()
    text = (
        f"{m:,} of {n:,} candidate lists of {model!r} hold candidates of one score and different"
        " ranks: they were taken in the order of their ranks. By scores alone they are a tie, which"
        " counts against the model."
    )
    return [Caution(text) if m >= _MANY * n else text]


def _refuse_holes(listed: pl.DataFrame) -> None:
    """Refuse ranks that leave one out: who is missing from a list may be whom it found first."""
    ranks = listed.filter(pl.col("rank").is_not_null())
    most = pl.col("rank").rank("max").over("probe")
    torn = ranks.filter(pl.col("rank") > most).sort("line")
    if torn.height:
        row = torn.row(0, named=True)
        raise TableError(
            f"the ranks of {torn['probe'].n_unique():,} list(s) leave one out",
            expected="ranks 1, 2, 3, … of each list, without a hole",
            found=f"rank {row['rank']:.0f} in the list of {row['instance_id']!r}, and fewer"
            " candidates up to there",
            where=place(_WHERE, int(row["line"])),
            hint="were candidates cut from the lists, or does the engine count from 2?",
        )


def _ordered(listed: pl.DataFrame, model: str) -> pl.DataFrame:
    """Order candidates by rank where there are ranks, else by falling score."""
    some = {c: listed[c].is_not_null().any() for c in ("rank", "score")}
    for column, given in some.items():
        if given and listed[column].null_count():
            raise TableError(
                f"some candidates of {model!r} have a {column}, and some have none",
                expected=f"a {column} for every candidate, or for none",
                found=f"{listed[column].null_count():,} of {listed.height:,} without",
                where=place(_WHERE, column=column),
            )
    order = pl.col("rank") if some["rank"] else -pl.col("score")
    rows = listed.select("probe", "entry", "score", "instance_id", "line", order=order)
    rows = rows.sort("probe", "order", "entry")
    if all(some.values()):
        size = pl.col("score").abs().clip(1.0)
        rises = pl.col("score") - pl.col("score").shift(1) > _ROUNDING * size
        wrong = rows.filter(rises & (pl.col("probe") == pl.col("probe").shift(1)))
        if wrong.height:
            raise TableError(
                f"{wrong.height:,} candidate(s) of {model!r} are more alike than one of a better"
                " rank",
                expected="scores that fall as ranks rise",
                found=f"in the list of {wrong['instance_id'][0]!r}",
                where=place(_WHERE, int(wrong["line"][0])),
                hint="are scores distances? --smaller alike (smaller='alike')",
            )
    return rows.select("probe", "entry", "order", "score")

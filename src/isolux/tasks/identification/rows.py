"""From judged searches to the table scores, the evidence and what is said beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.tasks._scores import score_rows, stack_scores
from isolux.tasks._threshold import other_rates, out_of_reach
from isolux.tasks.identification.candidates import FAILED, MISSING, Candidates, Roles
from isolux.tasks.identification.judging import Judged, Why
from isolux.tasks.identification.metrics import AT_THRESHOLD, FNIR, FPIR, FTA, FTE, HIT
from isolux.vocabulary.notes import Caution

Codes = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class At:
    """Where one model is judged: ranks, the rank limit, the threshold (NaN: none).

    ``set_on`` is how many searches for people who are not enrolled it was set on; 0: it was given.
    """

    ranks: tuple[int, ...]
    limit: int
    threshold: float
    set_on: int


def rows_of_model(
    found: Candidates, judged: Judged, at: At, roles: Roles, names: Sequence[str]
) -> pl.DataFrame:
    """Make the rows of one model: table ``scores``."""
    words = pl.Series([None, *(why.value for why in Why)], dtype=pl.String)
    return stack_scores(
        [
            score_rows(
                roles.units.with_columns(words.gather(why).alias("reason")),
                "identification",
                name,
                value.astype(np.float64),
                model=found.model,
                threshold=rank,
            )
            for name, rank, value, why in _values(found, judged, at, roles)
            if name in names
        ]
    )


def _values(
    found: Candidates, judged: Judged, at: At, roles: Roles
) -> Iterator[tuple[str, float | None, npt.NDArray[np.bool_], Codes]]:
    base = np.where((judged.why == 0) & roles.setting, Why.SET_ON.code, judged.why).astype(np.int8)
    of_mated = np.where((base == 0) & ~judged.mated, Why.NOT_ENROLLED.code, base).astype(np.int8)
    of_others = np.where((base == 0) & ~judged.other, Why.ENROLLED.code, base).astype(np.int8)
    for k in at.ranks:
        yield HIT, float(k), judged.rank <= k, of_mated
    returned = judged.best >= at.threshold
    missed = ~((judged.rank <= at.limit) & (judged.own >= at.threshold))
    for name, hit, own in ((FPIR, returned, of_others), (FNIR, missed, of_mated)):
        none = math.isnan(at.threshold)
        why = np.where((own == 0) & none, Why.NO_THRESHOLD.code, own).astype(np.int8)
        yield name, None, hit, why
    for name, state, part, not_it in (
        (FTA, found.state, roles.searched, Why.NOT_SEARCHED),
        (FTE, found.held, roles.enrolled, Why.NOT_TO_BE_ENROLLED),
    ):
        absent = (state == MISSING).fill_null(value=False).to_numpy()
        why = np.where(absent, Why.MISSING.code, 0)
        why = np.where(part, why, not_it.code).astype(np.int8)
        yield name, None, (state == FAILED).fill_null(value=False).to_numpy(), why


def candidates_table(found: Candidates, judged: Judged, at: At, roles: Roles) -> pl.DataFrame:
    """Lay out the evidence ``candidates``: one row a search, with whom else it found."""
    ids, person = roles.units["unit_id"], roles.person
    probe, entry = (found.rows[c].to_numpy() for c in ("probe", "entry"))
    others = found.rows.filter(pl.Series(person[probe] != person[entry]))
    others = others.sort("probe", "order", "entry")
    lists = (
        others.select("probe", other_id=ids.gather(others["entry"]), similarity="score")
        .group_by("probe", maintain_order=True)
        .agg("other_id", "similarity")
    )
    rows = roles.units.select("unit_id", "cluster_id").with_columns(
        pl.Series("mated", judged.mated),
        pl.Series("counts", (judged.why == 0) & ~roles.setting),
        pl.Series("failed", judged.failed),
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("probe"),
        model=pl.lit(found.model),
        threshold=pl.lit(None if math.isnan(at.threshold) else at.threshold, dtype=pl.Float64),
    )
    rows = rows.filter(pl.Series(roles.searched)).join(
        lists, on="probe", how="left", maintain_order="left"
    )
    return rows.select(
        "model",
        "unit_id",
        "cluster_id",
        pl.when("counts").then("mated").alias("mated"),
        "failed",
        "threshold",
        pl.col("other_id").fill_null(pl.lit([], dtype=pl.List(pl.String))),
        pl.col("similarity").fill_null(pl.lit([], dtype=pl.List(pl.Float64))),
    )


def gallery_table(found: Candidates, roles: Roles) -> pl.DataFrame:
    """Lay out the evidence ``gallery``: one row an enrolled image."""
    held = pl.col("held")
    template = pl.when(held.is_null()).then(True).when(held == FAILED).then(False)  # noqa: FBT003
    known = pl.lit(found.of_embeddings)
    return (
        roles.units.with_columns(found.held.alias("held"))
        .filter(pl.Series(roles.enrolled))
        .select(
            pl.lit(found.model).alias("model"),
            "unit_id",
            "cluster_id",
            template=pl.when(known).then(template),
        )
    )


_MANY, _FEWEST = 0.1, 20
Every = Sequence[tuple[Candidates, Judged, At]]


def thresholds_chosen(every: Every, names: Sequence[str], *, turned: bool) -> dict[str, Any]:
    """Record each model's threshold, for sentences and for ``audit.json``."""
    sign = -1.0 if turned else 1.0
    held = {f.model: sign * at.threshold for f, _, at in every if not math.isnan(at.threshold)}
    about = [name for name in AT_THRESHOLD if name in names]
    if not held or not about:
        return {}
    one = len(set(held.values())) == 1
    words = f"at a score of {next(iter(held.values())):.6g}" if one else "at its threshold"
    return {"threshold": {"metrics": about, "words": words, "value": held}}


def notes_on(
    every: Every, roles: Roles, fpir: float, given: float | None, *, turned: bool
) -> list[str]:
    """Say who is in the gallery, how many searches there are, and where thresholds come from."""
    notes: list[str] = [*roles.cautions, *_gallery(roles)]
    several = len(every) > 1
    for found, judged, at in every:
        of = f"{found.model}: " if several else ""
        counts = ~roles.setting
        mated, other = int((judged.mated & counts).sum()), int((judged.other & counts).sum())
        notes += [*found.notes, *_states(found, judged, roles, of)]
        notes.append(
            f"{of}{mated:,} searches are for people who are enrolled, {other:,} for people who are"
            " not"
            + (": a closed set, in which nobody can be found in error." if not other else ".")
        )
        notes += _on_threshold(found, judged, at, roles, of, (fpir, given), turned=turned)
    return notes


def _gallery(roles: Roles) -> list[str]:
    entries, known = int(roles.enrolled.sum()), roles.enrolled & (roles.person > 0)
    if not entries:
        return []
    people = len(np.unique(roles.person[known]))
    text = f"The gallery holds {entries:,} images of {people:,} people"
    if roles.everyone:
        text += "; each is searched for among all others (--enrolled names a gallery)"
    notes = [f"{text}."]
    unknown = entries - int(known.sum())
    if unknown:
        said = (
            f"{unknown:,} of {entries:,} enrolled images are of unknown people and are left out of"
            " the gallery."
        )
        notes.append(Caution(said) if unknown >= _MANY * entries else said)
    return notes


def _states(found: Candidates, judged: Judged, roles: Roles, of: str) -> list[str]:
    held = found.held.filter(pl.Series(roles.enrolled & (not roles.everyone)))
    entries, failed = int(roles.enrolled.sum()), int(judged.failed.sum())
    lost, absent = int((held == FAILED).sum()), int((held == MISSING).sum())
    notes: list[str] = []
    if failed:
        asked = int((roles.searched & (judged.why != Why.MISSING.code)).sum())
        notes.append(
            f"{of}No template could be made from {failed:,} of {asked:,} images to be searched "
            "for: they find nobody."
        )
    if lost:
        notes.append(
            f"{of}No template could be made of {lost:,} of {entries:,} images to be enrolled:"
            " searches for those people miss them."
        )
    if absent:
        text = (
            f"{of}{absent:,} of {entries:,} enrolled images are not in the file of {found.model!r}:"
            " the gallery is smaller than it should be, and errors look fewer. Is the file whole?"
        )
        notes.append(Caution(text) if absent >= _MANY * entries else text)
    return notes


def _returned(scores: FloatArray, threshold: float, sign: float) -> str:
    """Say from which score candidates are returned, in as few digits as say it truly."""
    at_least, above = ("at most", "less than") if sign < 0 else ("at least", "more than")
    returned = scores >= threshold
    for digits in (6, 9, 12):
        shown = float(f"{threshold:.{digits}g}")
        if ((scores >= shown) == returned).all():
            return f"{at_least} {sign * shown:.{digits}g}"
    below = float(scores[~returned].max())
    digits = next(
        d
        for d in (6, 9, 12, 17)
        if ((scores > float(f"{below:.{d}g}")) == returned).all() or d > 12
    )
    return f"{above} {sign * float(f'{below:.{digits}g}'):.{digits}g}"


def _on_threshold(
    found: Candidates,
    judged: Judged,
    at: At,
    roles: Roles,
    of: str,
    asked: tuple[float, float | None],
    *,
    turned: bool,
) -> list[str]:
    fpir, given = asked
    sign, scores = -1.0 if turned else 1.0, found.rows["score"].to_numpy()
    if not found.scored:
        return [f"{of}Lists have ranks and no scores: nothing is measured at a threshold."]
    if given is not None:
        return list(
            out_of_reach(
                found.model,
                sign * scores,
                sign * given,
                falling=turned,
                none="no candidate is returned",
                every="every candidate is returned",
            )
        )
    if math.isnan(at.threshold):
        needed = math.ceil(1.0 / fpir * (1.0 - 1e-12))
        few = (
            f"{of}{at.set_on:,} searches for people who are not enrolled; a threshold at a false"
            f" positive identification rate of {fpir:g} needs {needed:,}, so nothing was measured"
            " at a threshold."
        )
        return [few] if judged.other.any() else []  # a closed set is said already
    whose = f"on {roles.where}, who are not judged" if roles.where else "on those who are judged"
    text = (
        f"{of}A candidate is returned from a score of {_returned(scores, at.threshold, sign)}: at"
        f" most {100 * fpir:g} % of {at.set_on:,} searches for people who are not enrolled then"
        f" return anyone. It was set {whose}."
    )
    notes: list[str] = [text]
    if roles.where:
        other = judged.other
        notes += other_rates(
            judged.best[other] >= at.threshold,
            roles.setting[other],
            where=roles.where,
            what="searches for people who are not enrolled",
            model=found.model,
        )
    if len(scores) and at.threshold <= float(scores.min()):
        text = (
            f"{of}The candidate lists of {found.model!r} end at a score of"
            f" {sign * at.threshold:.6g}, and fewer than {100 * fpir:g} % of the searches for"
            " people who are not enrolled return anyone: the threshold is that end."
        )
        notes.append(Caution(text))
    return notes

"""What an audit of identification says beside its numbers: gallery, searches, thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.tasks._both_sides import other_rates
from isolux.tasks._reach import out_of_reach
from isolux.tasks.identification.candidates import FAILED, MISSING, Candidates
from isolux.tasks.identification.judging import Judged, Why
from isolux.tasks.identification.metrics import AT_THRESHOLD
from isolux.tasks.identification.roles import Roles
from isolux.tasks.identification.rows import At
from isolux.vocabulary.notes import Caution

__all__ = ["notes_on", "thresholds_chosen"]

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
    entries = int(roles.enrolled.sum())
    failed = int(judged.failed.sum())
    lost = 0 if roles.everyone else _count(found.held, FAILED, roles)
    absent = 0 if roles.everyone else _count(found.held, MISSING, roles)
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


def _count(held: pl.Series, what: str, roles: Roles) -> int:
    return int((held.filter(pl.Series(roles.enrolled)) == what).sum())


def _returned(scores: FloatArray, threshold: float, sign: float) -> str:
    """Say from which score candidates are returned, in as few digits as say it truly."""
    at_least, above = ("at most", "less than") if sign < 0 else ("at least", "more than")
    returned = scores >= threshold
    for digits in (6, 9, 12):
        shown = float(f"{threshold:.{digits}g}")
        if ((scores >= shown) == returned).all():
            return f"{at_least} {sign * shown:.{digits}g}"
    below = float(scores[~returned].max())
    for digits in (6, 9, 12, 17):
        shown = float(f"{below:.{digits}g}")
        if ((scores > shown) == returned).all():
            break
    return f"{above} {sign * shown:.{digits}g}"


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
    sign = -1.0 if turned else 1.0
    if not found.scored:
        return [f"{of}Lists have ranks and no scores: nothing is measured at a threshold."]
    if given is not None:
        scores = sign * found.rows["score"].to_numpy()
        return list(
            out_of_reach(
                found.model, scores, sign * given, falling=turned,
                none="no candidate is returned", every="every candidate is returned",
            )
        )  # fmt: skip
    needed = math.ceil(1.0 / fpir * (1.0 - 1e-12))
    if math.isnan(at.threshold):
        if not judged.other.any():
            return []  # said already: a closed set
        few = (
            f"{of}{at.set_on:,} searches for people who are not enrolled; a threshold at a false"
            f" positive identification rate of {fpir:g} needs {needed:,}, so nothing was measured"
            " at a threshold."
        )
        return [few]
    whose = f"on {roles.where}, who are not judged" if roles.where else "on those who are judged"
    from_where = _returned(found.rows["score"].to_numpy(), at.threshold, sign)
    text = (
        f"{of}A candidate is returned from a score of {from_where}: at most"
        f" {100 * fpir:g} % of {at.set_on:,} searches for people who are not enrolled then return"
        f" anyone. It was set {whose}."
    )
    notes: list[str] = [text]
    if roles.where:
        other = judged.other
        notes += other_rates(
            judged.best[other] >= at.threshold, roles.setting[other], where=roles.where,
            what="searches for people who are not enrolled", model=found.model,
        )  # fmt: skip
    if found.rows.height and at.threshold <= float(found.rows["score"].to_numpy().min()):
        notes.append(
            Caution(
                f"{of}The candidate lists of {found.model!r} end at a score of"
                f" {sign * at.threshold:.6g}, and fewer than {100 * fpir:g} % of the searches for"
                " people who are not enrolled return anyone: the threshold is that end."
            )
        )
    return notes

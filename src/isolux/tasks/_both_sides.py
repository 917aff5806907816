"""People on both sides of a split: a threshold that was set on those who are judged by it.

A split of photos puts one subject's photos on either side. Rates at that threshold then look better
than they would on other people, as they do where it is set on the very rows that are judged.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import INSTANCES

__all__ = ["other_rates", "same_scores", "shared_between"]

_PERSON = re.compile(
    r"(?i)(subject|person|participant|patient|identity|household|family)([_ ]?id)?"
)
_CURE = "so rates look better than on others. Split by subject, not by row"
_DISTINCT = 0.9  # of a side's scores: they tell rows apart
_MANY = 0.1  # of those who are judged
_FEWEST = 20  # of either side: fewer meet by chance
_LIKELY = 4.0  # standard errors that chance does not reach, and
_ODDS = 1.0  # the log of the odds ratio below which two parts of one world may well differ
_SAYS_NO_ONE = ("", "-", "unknown", "none", "null", "nan", "n/a", "na")


def shared_between(
    dataset: Dataset, instances: pl.DataFrame, on: npt.NDArray[np.bool_], where: str
) -> list[Caution]:
    """Caution where a subject, a household or a picture stands on both sides.

    Shapes: ``on`` [n].
    """
    side = pl.DataFrame({"who": instances["unit_id"], "on": on})
    told = []
    for name, ids in _kinds(dataset):
        met = side.join(ids, on="who").filter(pl.col("id").is_not_null())
        both = met.group_by("id").agg(pl.col("on").any().alias("a"), (~pl.col("on")).any())
        shared = both.filter(pl.col("a") & pl.col("on"))["id"]
        if len(shared):
            judged = met.filter(~pl.col("on") & pl.col("id").is_in(shared.implode()))
            told.append((judged["who"].n_unique(), len(shared), name))
    if not told:
        return []
    people, shared_ids, name = max(told)
    n = int((~on).sum())
    return [
        Caution(
            f"{people:,} of {n:,} people judged share {name} with a row that the threshold was set"
            f" on ({shared_ids:,} on both sides of {where}), {_CURE}."
        )
    ]


def _kinds(dataset: Dataset) -> list[tuple[str, pl.DataFrame]]:
    """List what may tie two rows: its name, and ``who, id``."""
    people = INSTANCES.conform(dataset.instances)
    found = [
        (words, people.select(who="instance_id", id=pl.col(column).cast(pl.String)))
        for column, words in (
            ("subject_id", "a subject"),
            ("cluster_id", "a cluster"),
            ("image_id", "a picture"),
        )
    ]
    rows = dataset.instance_attributes()
    for name in rows["attribute"].unique(maintain_order=True):
        if _PERSON.fullmatch(name):
            said = ~pl.col("value").str.strip_chars().str.to_lowercase().is_in(_SAYS_NO_ONE)
            held = rows.filter((pl.col("attribute") == name) & said)
            found.append((f"their {name!r}", held.select(who="unit_id", id="value")))
    return found


def same_scores(
    scores: FloatArray, positive: npt.NDArray[np.bool_], on: npt.NDArray[np.bool_], model: str
) -> list[Caution]:
    """Caution where scores that tell rows apart stand on both sides: the same rows, twice.

    Shapes: ``scores`` [n], ``positive, on`` [n].

    Examples
    --------
    >>> scores, side = np.arange(100) / 7, np.arange(200) % 2 == 1
    >>> twice, positive = np.repeat(scores, 2), np.ones(200, dtype=bool)
    >>> print(same_scores(twice, positive, side, "m")[0][:78])
    100 of 100 people judged have the very score of 'm' and the class of a row tha
    >>> same_scores(np.arange(200) / 7, positive, side, "m")
    []
    """
    known = ~np.isnan(scores)
    frame = pl.DataFrame({"score": scores, "of": positive, "on": on}).filter(known)
    judged, others = frame.filter(~pl.col("on")), frame.filter("on")
    if min(judged.height, others.height) < _FEWEST or any(
        part["score"].n_unique() < _DISTINCT * part.height for part in (judged, others)
    ):
        return []
    met = judged.join(others, on=["score", "of"], how="semi").height
    if met < _MANY * judged.height:
        return []
    return [
        Caution(
            f"{met:,} of {judged.height:,} people judged have the very score of {model!r} and the"
            " class of a row that the threshold was set on. Are they the same people? If so, rates"
            " look better than on others."
        )
    ]


def other_rates(
    reached: npt.NDArray[np.bool_],
    on: npt.NDArray[np.bool_],
    *,
    what: str,
    where: str,
    model: str,
) -> list[Caution]:
    """Caution where far more, or far fewer, reach the threshold than among those it was set on.

    Shapes: ``reached, on`` [m].

    Examples
    --------
    >>> on = np.arange(400) < 200
    >>> reached = (np.arange(400) % 10 == 0) & on
    >>> print(other_rates(reached, on, what="people", where="split=val", model="m")[0][:75])
    Of the 200 people by which the threshold of 'm' was set (split=val) 10.0 %
    >>> other_rates(np.arange(400) % 10 == 0, on, what="people", where="split=val", model="m")
    []
    """
    n, m = int(on.sum()), int((~on).sum())
    if min(n, m) < _FEWEST:
        return []
    a, b = int(reached[on].sum()), int(reached[~on].sum())
    odds = [np.log((k + 0.5) / (size - k + 0.5)) for k, size in ((a, n), (b, m))]
    share = (a + b) / (n + m)
    error = (share * (1.0 - share) * (1.0 / n + 1.0 / m)) ** 0.5
    if abs(odds[0] - odds[1]) < _ODDS or abs(a / n - b / m) <= _LIKELY * error:
        return []
    return [
        Caution(
            f"Of the {n:,} {what} by which the threshold of {model!r} was set ({where})"
            f" {100 * a / n:.1f} % reach it, and of the {m:,} that are judged {100 * b / m:.1f} %:"
            " more than chance explains. Are all scores of one model, on one scale?"
        )
    ]

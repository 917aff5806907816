"""Thresholds: on whom one is set, who is on both sides, and whether it lies among the scores."""

from __future__ import annotations

import math
import re

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.roc import auc
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import INSTANCES


def part_to_set_on(
    threshold_on: float | str, dataset: Dataset, units: pl.DataFrame, seed: int
) -> tuple[npt.NDArray[np.bool_], str]:
    """Tell who sets the threshold, and what they are called.

    Returns [n].
    """
    on, words = _part(threshold_on, dataset, units, seed)
    if on.all() or not on.any():
        raise SpecError(
            "threshold_on must leave people on either side",
            expected="some to set the threshold on, and others to audit",
            found=f"{'everyone' if on.all() else 'no one'} to set it on ({words})",
        )
    return on, words


def _part(
    threshold_on: float | str, dataset: Dataset, units: pl.DataFrame, seed: int
) -> tuple[npt.NDArray[np.bool_], str]:
    share = parse_number(str(threshold_on))
    if 0.0 < share < 1.0:
        clusters = pl.coalesce("cluster_id", pl.col("unit_id"))
        code = units.select(clusters.rank("dense")).to_series().to_numpy().astype(np.int64) - 1
        drawn = np.random.default_rng(seed).random(int(code.max(initial=0)) + 1) < share
        return drawn[code], f"a random {100 * share:g} % (seed {seed})"
    on, words = having(
        str(threshold_on),
        dataset,
        units["unit_id"],
        setting="threshold_on",
        expected="ATTRIBUTE=VALUE, such as split=val, or a share such as 0.3",
    )
    name, _, value = words.partition("=")
    rows = dataset.instance_attributes().filter(pl.col("attribute") == name)
    several = rows.drop_nulls("value").group_by("unit_id").agg(pl.col("value").unique())
    torn = several.filter(pl.col("value").list.len() > 1)["unit_id"]
    both = units.filter(pl.Series(on) & pl.col("unit_id").is_in(torn.implode()))["unit_id"]
    if len(both):
        raise SpecError(
            f"{len(both):,} people have other values of {name!r} beside {value!r}",
            expected="one value each: people set the threshold, or are judged",
            found=f"{both[0]!r} has several",
            where="threshold_on",
        )
    return on, words


def having(
    text: str, dataset: Dataset, unit_ids: pl.Series, *, setting: str, expected: str
) -> tuple[npt.NDArray[np.bool_], str]:
    """Tell who has the value of an attribute that a setting ``ATTRIBUTE=VALUE`` names.

    Returns [n].
    """
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name or not value:
        raise SpecError(f"{setting} cannot be used", expected=expected, found=repr(text))
    rows = dataset.values_of(name)
    known = rows["value"].drop_nulls().unique().sort().to_list()
    if value not in known:
        raise SpecError(
            f"nobody has {name}={value}",
            expected="one of " + ", ".join(map(repr, known[:20])),
            found=repr(value),
            where=setting,
        )
    held = dataset.instance_attributes().filter(attribute=name, value=value)["unit_id"]
    return unit_ids.is_in(held.unique().implode()).to_numpy(), f"{name}={value}"


def parse_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


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
_PERSON_COLUMNS = {
    "subject_id": "a subject",
    "cluster_id": "a cluster",
    "image_id": "a picture",
}


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
        split = pl.col("on").any() & (~pl.col("on")).any()
        both = met.filter(split.over("id"))
        if both.height:
            judged = both.filter(~pl.col("on"))["who"].n_unique()
            told.append((judged, both["id"].n_unique(), name))
    if not told:
        return []
    people, shared_ids, name = max(told)
    text = (
        f"{people:,} of {int((~on).sum()):,} people judged share {name} with a row that the"
        f" threshold was set on ({shared_ids:,} on both sides of {where}), {_CURE}."
    )
    return [Caution(text)]


def _kinds(dataset: Dataset) -> list[tuple[str, pl.DataFrame]]:
    """List what may tie two rows: its name, and ``who, id``."""
    people = INSTANCES.conform(dataset.instances)
    found = [
        (words, people.select(who="instance_id", id=pl.col(column).cast(pl.String)))
        for column, words in _PERSON_COLUMNS.items()
    ]
    rows = dataset.instance_attributes()
    said = ~pl.col("value").str.strip_chars().str.to_lowercase().is_in(_SAYS_NO_ONE)
    for name in rows["attribute"].unique(maintain_order=True):
        if _PERSON.fullmatch(name):
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
    frame = pl.DataFrame({"score": scores, "of": positive, "on": on}).filter(~np.isnan(scores))
    sides = judged, others = frame.filter(~pl.col("on")), frame.filter("on")
    if any(part.height < _FEWEST for part in sides) or any(
        part["score"].n_unique() < _DISTINCT * part.height for part in sides
    ):
        return []
    met = judged.join(others, on=["score", "of"], how="semi").height
    text = (
        f"{met:,} of {judged.height:,} people judged have the very score of {model!r} and the"
        " class of a row that the threshold was set on. Are they the same people? If so, rates"
        " look better than on others."
    )
    return [Caution(text)] if met >= _MANY * judged.height else []


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
    text = (
        f"Of the {n:,} {what} by which the threshold of {model!r} was set ({where})"
        f" {100 * a / n:.1f} % reach it, and of the {m:,} that are judged {100 * b / m:.1f} %:"
        " more than chance explains. Are all scores of one model, on one scale?"
    )
    differ = abs(odds[0] - odds[1]) >= _ODDS and abs(a / n - b / m) > _LIKELY * error
    return [Caution(text)] if differ else []


def area_beyond_chance(
    scores: FloatArray, is_positive: npt.NDArray[np.bool_]
) -> tuple[float, float]:
    """Find the area under the curve, and its standard error where scores tell nothing."""
    p, q = int(is_positive.sum()), int((~is_positive).sum())
    area = float(auc(scores, is_positive, np.ones(len(scores))))
    return area, float(np.sqrt((p + q + 1) / (12.0 * p * q)))


def out_of_reach(
    model: str,
    scores: FloatArray,
    threshold: float,
    *,
    none: str,
    every: str,
    falling: bool = False,
    ask: str = "Is the threshold on the scale of the scores?",
) -> list[Caution]:
    """Caution where no score, or every score, reaches the threshold: it parts nothing.

    Shapes: ``scores`` [m].

    Examples
    --------
    >>> (said,) = out_of_reach("m", np.array([0.1, 0.9]), 50.0, none="no answer is 'yes'",
    ...                        every="every answer is 'yes'")
    >>> print(said.removesuffix(" Is the threshold on the scale of the scores?"))
    No score of 'm' reaches the threshold of 50: scores run from 0.1 to 0.9, so no answer is 'yes'.
    >>> out_of_reach("m", np.array([0.1, 0.9]), 0.5, none="", every="")
    []
    """
    known = scores[~np.isnan(scores)]
    reached = known <= threshold if falling else known >= threshold
    if not len(known) or (reached.any() and not reached.all()):
        return []
    low, high, at = f"{known.min():g}", f"{known.max():g}", f"{threshold:g}"
    if at in (low, high):  # just beyond an end: seventeen digits tell them apart
        at = repr(float(threshold))
    what, so = ("Every score", every) if reached.any() else ("No score", none)
    text = f"{what} of {model!r} reaches the threshold of {at}: scores run from {low} to {high}"
    return [Caution(f"{text}, so {so}. {ask}")]

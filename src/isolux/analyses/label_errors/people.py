"""Whose score is whose label: the people of one metric and attribute, and their votes.

From a run's tables to arrays: the first step of the analysis ``label_errors``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from isolux.groups import groupings, membership
from isolux.groups.unknown import UNKNOWN
from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.spec import AuditSpec

__all__ = ["People", "groups_of", "labelled", "people_of", "unused_answers", "votes_of"]

_MEASURE = ("model", "metric", "label", "threshold")
_ANNOTATORS = 2


@dataclass(frozen=True, slots=True)
class People:
    """Everyone with a score of one metric, by label of one attribute.

    Parameters
    ----------
    row : dict
        model, metric, label, threshold.
    attribute : str
    groups : tuple of str
    unit : list of str
    score : [n] float
    code : [n] int
        The label; -1: unknown.
    cluster : [n] int
    """

    row: dict[str, Any]
    attribute: str
    groups: tuple[str, ...]
    unit: list[str]
    score: FloatArray
    code: IntArray
    cluster: IntArray

    def draws(self, replicates: int, seed: int) -> Iterator[FloatArray]:
        """Draw how often each cluster is in a sample of as many: blocks of ``[r, clusters]``."""
        from isolux.stats.weights import blocks, multinomial

        n = int(self.cluster.max(initial=-1)) + 1
        for rng, size in blocks(replicates, seed, "bootstrap"):
            yield multinomial(rng, np.ones(n, dtype=np.int64), size).T

    def side(self, g: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores of those labelled g, of those labelled otherwise, and of unknown label."""
        known = self.code >= 0
        own = self.code == g
        return self.score[own], self.score[known & ~own], self.score[~known]

    def clusters(self, g: int) -> int:
        """Count clusters with people labelled g, and with others; return the fewer."""
        own = self.code == g
        rest = (self.code >= 0) & ~own
        return min(len(np.unique(self.cluster[own])), len(np.unique(self.cluster[rest])))


def labelled(run: Run, spec: AuditSpec, attribute: str) -> pl.DataFrame:
    """Give every scored unit its one label of an attribute: ``unit_id, group``; unknown is null."""
    units = run.scores.drop_nulls("value")["unit_id"].unique(maintain_order=True)
    asked = spec.updated(by=tuple(dict.fromkeys([*spec.groups.by, attribute])))
    rule = groupings(asked.groups, run.attributes)[attribute]
    rule = replace(rule, unknown="drop")
    members = membership(run.attributes, [attribute], {attribute: rule}, units=units).frame
    several = members.filter(pl.col("unit_id").is_duplicated())
    if several.height:
        raise SpecError(
            f"people are in several groups of {attribute}, and an error of labels is of one label",
            expected="one group each",
            found=f"{several['unit_id'].n_unique():,} people in two or more",
            hint="audit with --votes top-or-none",
        )
    return pl.DataFrame({"unit_id": units}).join(
        members.select("unit_id", "group"), on="unit_id", how="left", maintain_order="left"
    )


def groups_of(run: Run, spec: AuditSpec, attribute: str) -> tuple[str, ...]:
    """List the groups of an attribute that anyone with a score is labelled with."""
    return _named(labelled(run, spec, attribute))


def _named(labels: pl.DataFrame) -> tuple[str, ...]:
    return tuple(labels["group"].drop_nulls().unique().sort().to_list())


def people_of(
    run: Run, spec: AuditSpec, attribute: str, metrics: Sequence[str]
) -> Iterator[People]:
    """Take the people of every metric that is a mean of scores."""
    measured = run.scores["metric"].unique(maintain_order=True).to_list()
    for name in metrics:
        if name not in measured:
            raise UnknownNameError(
                "metric", name, measured, where="--analysis-option label_errors.metric"
            )
    wanted = list(dict.fromkeys(metrics)) or measured[:1]
    labels = labelled(run, spec, attribute)
    groups = _named(labels)
    if len(groups) < 2:
        raise SpecError(
            f"{attribute} has fewer than two groups with scores",
            expected="two or more",
            found=", ".join(groups) or UNKNOWN,
        )
    place = {name: i for i, name in enumerate(groups)}
    scores = run.scores.filter(pl.col("metric").is_in(wanted)).drop_nulls("value")
    for key, part in scores.group_by(_MEASURE, maintain_order=True):
        told = part.join(labels, on="unit_id", how="left", maintain_order="left")
        cluster = told.select(
            pl.coalesce(pl.format("c:{}", "cluster_id"), pl.format("u:{}", "unit_id"))
        ).to_series()
        code = told["group"].replace_strict(place, default=-1, return_dtype=pl.Int64)
        yield People(
            dict(zip(_MEASURE, key, strict=True)), attribute, groups,
            told["unit_id"].to_list(), told["value"].to_numpy(), code.fill_null(-1).to_numpy(),
            cluster.rank("dense").to_numpy().astype(np.int64) - 1,
        )  # fmt: skip


def votes_of(run: Run, people: People) -> tuple[FloatArray, list[str]] | None:
    """Count each annotator's labels of each person: ``[n, annotators, g]``, and name annotators."""
    if "annotator" not in run.attributes.columns:
        return None
    rows = run.attributes.filter(
        (pl.col("attribute") == people.attribute)
        & pl.col("annotator").is_not_null()
        & pl.col("value").is_in(list(people.groups))
    )
    place = pl.DataFrame({"unit_id": people.unit}).with_row_index("_person")
    at = rows.join(place, on="unit_id")
    several = at.group_by("unit_id").agg(pl.col("annotator").n_unique() >= _ANNOTATORS)
    if not several["annotator"].any():
        return None
    names = at["annotator"].unique().sort().to_list()
    votes = np.zeros((len(people.unit), len(names), len(people.groups)))
    who = at["annotator"].replace_strict({n: i for i, n in enumerate(names)}).to_numpy()
    what = at["value"].replace_strict({n: i for i, n in enumerate(people.groups)}).to_numpy()
    counted = at["votes"].fill_null(1) if "votes" in at.columns else pl.repeat(1, at.height)
    weight = pl.select(counted).to_series().to_numpy().astype(np.float64)
    np.add.at(votes, (at["_person"].to_numpy(), who, what), weight)
    # An annotator is one witness of a person, however often asked or written down.
    votes /= np.maximum(votes.sum(axis=2, keepdims=True), 1e-12)
    return votes, [str(name) for name in names]


def unused_answers(run: Run, people: People, where: str, *, used: bool) -> list[str]:
    """Say which answers do not enter a correction: those without a name, or of one annotator alone.

    ``used``: whether some person has answers of two annotators.
    """
    if "annotator" not in run.attributes.columns:
        return []
    mine = pl.DataFrame({"unit_id": people.unit}, schema={"unit_id": pl.String})
    rows = run.attributes.filter(pl.col("attribute") == people.attribute)
    annotator = rows.join(mine, on="unit_id", how="semi")["annotator"]
    nameless = annotator.null_count()
    if nameless == len(annotator):
        return []
    said = []
    if nameless:
        said.append(f"{nameless:,} labels without an annotator's name do not enter the correction")
    if not used:
        said.append(
            "no person has labels of two annotators, whose disagreements would tell how they err; "
            "a confusion matrix would tell too"
        )
    return [f"{where}: {text}" for text in said]

"""Each query's values, from its ranked images to rows of the table scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.tasks._scores import score_rows
from isolux.tasks.text_to_image_retrieval.lists import Images, Lists
from isolux.tasks.text_to_image_retrieval.measures import (
    Cut,
    OtherImages,
    Zero,
    bias,
    cut_at,
    max_skew_by_chance,
    ndkl,
    ndkl_by_chance,
    running,
    runs,
    skews,
)
from isolux.vocabulary.errors import SpecError

_TIED = "one score holds most of the list"
_Kinds = tuple[tuple[tuple[float, ...], ...], tuple[int, ...], tuple[float, ...]]
"""Distinct rows of whose images are, how many there are of each, and the expected shares."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The settings that move a number."""

    ks: tuple[int, ...]
    against: str
    zero: Zero
    ties: str
    between: tuple[int, int] | None
    metrics: tuple[str, ...]


class QueryValues:
    """What one model's lists came to, gathered query by query.

    ``tied`` are the queries of which ties hold most of the first K (of None: of the list).
    """

    def __init__(self, lists: Lists, queries: pl.DataFrame, images: Images, asked: Asked) -> None:
        self.lists, self.queries, self.images, self.asked = lists, queries, images, asked
        self.values: dict[tuple[str, str | None, int | None], FloatArray] = {}
        self.why: dict[int, dict[int, str]] = {k: {} for k in asked.ks}
        self.lines: list[tuple[object, ...]] = []
        self.most: dict[int, list[float]] = {k: [] for k in asked.ks}
        self.chance: dict[int, list[float]] = {k: [] for k in asked.ks}
        self.tied: dict[int | None, set[int]] = {k: set() for k in (*asked.ks, None)}
        self.listed: set[int] = set()
        self.other = OtherImages(images.cluster, asked.ks, asked.zero, asked.against == "uniform")
        self.looks_at_whole = any(name.startswith("ndkl") for name in asked.metrics)
        self.looks_at_first = any(not name.startswith("ndkl") for name in asked.metrics)
        for name in asked.metrics:
            labels: tuple[str | None, ...] = images.groups if name == "skew_at_k" else (None,)
            ks: tuple[int | None, ...] = (None,) if name.startswith("ndkl") else asked.ks
            for key in [(name, label, k) for k in ks for label in labels]:
                self.values[key] = np.full(queries.height, np.nan)
        for query, entries, scores in lists.each(images.known):
            self._add(query, entries, scores)
        self._refuse_whole_lists()

    def _add(self, query: int, entries: IntArray, scores: FloatArray) -> None:
        """Rank one query's images."""
        member = self.images.member[entries]
        every = member.sum(axis=0)
        equal = self.asked.against == "uniform"
        expected = np.full(len(every), 1.0 / len(every)) if equal else every / every.sum()
        held = np.where(expected > 0, expected, np.nan)
        self.listed.add(query)
        counts = running(scores, member, ties=self.asked.ties)
        kinds, n = np.unique(member, axis=0, return_counts=True)
        told = tuple(map(tuple, kinds.tolist())), tuple(n.tolist()), tuple(held.tolist())
        if self.looks_at_whole:
            self._whole(query, counts, held, told, runs(scores))
        cuts = {k: cut_at(scores, k) for k in self.asked.ks if self._fits(query, k, len(entries))}
        usable = [k for k, cut in cuts.items() if self._is_ranked(query, k, cut)]
        for k in usable:
            cut = (k, 0) if self.asked.ties == "first" else cuts[k]
            self._at(query, k, counts[k - 1], held, told, cut)
        if usable == list(self.asked.ks):
            self.other.add(entries, scores, member)

    def _whole(
        self, query: int, counts: FloatArray, held: FloatArray, told: _Kinds, sizes: tuple[int, ...]
    ) -> None:
        if sizes and 2 * sizes[0] > len(counts):
            self.tied[None].add(query)
            if self.asked.ties == "shared":
                return
        found = float(ndkl(counts, held))
        self._put(query, ("ndkl", None, None), found)
        if ("ndkl_beyond_chance", None, None) in self.values:
            random = ndkl_by_chance(*told, sizes if self.asked.ties == "shared" else ())
            self._put(query, ("ndkl_beyond_chance", None, None), found - random)

    def _is_ranked(self, query: int, k: int, cut: Cut) -> bool:
        """Say whether the scores choose at least half of the first k images."""
        sure, sharing = cut
        if not sharing or 2 * sure >= k:
            return True
        self.tied[k].add(query)
        return self.asked.ties == "first"

    def _at(
        self, query: int, k: int, first: FloatArray, held: FloatArray, told: _Kinds, cut: Cut
    ) -> None:
        found = skews(first, k, held, self.asked.zero)
        chance = max_skew_by_chance(*told, k, self.asked.zero, cut)
        most = float(np.nanmax(found))
        self.most[k].append(most)
        self.chance[k].append(chance)
        self._put(query, ("max_skew_at_k", None, k), most)
        self._put(query, ("max_skew_beyond_chance", None, k), most - chance)
        self._put(query, ("min_skew_at_k", None, k), float(np.nanmin(found)))
        if self.asked.between is not None:
            self._put(query, ("bias_at_k", None, k), float(bias(first, *self.asked.between)))
        who = self.queries.row(query)
        for group, count, value, share in zip(
            self.images.groups, first.tolist(), found.tolist(), held.tolist(), strict=True
        ):
            self._put(query, ("skew_at_k", group, k), value)
            self.lines.append((self.lists.model, *who, k, group, count, count / k, share))

    def _put(self, query: int, key: tuple[str, str | None, int | None], value: float) -> None:
        if key in self.values:
            self.values[key][query] = value

    def _fits(self, query: int, k: int, n: int) -> bool:
        if k < n:
            return True
        self.why[k][query] = f"fewer than {k} images" if n < k else f"{k} is the whole list"
        return False

    def _refuse_whole_lists(self) -> None:
        """Refuse a K that leaves no query a choice."""
        for k, why in self.why.items():
            if self.looks_at_first and self.listed and len(why) == len(self.listed):
                raise SpecError(
                    f"the first {k} images are all that a query can find: any order gives the same",
                    expected="a top_k smaller than the number of images of known "
                    "value that a query ranks",
                    found=f"{k}: {next(iter(why.values()))}",
                    where="top_k",
                    hint="NDKL looks at the whole list: --metric ndkl",
                )

    def units(self) -> pl.DataFrame:
        """Give every value as a row, and where there is none, why."""
        queries = self.queries.rename({"instance_id": "unit_id"})
        parts = []
        for (name, label, k), values in self.values.items():
            reason = self.lists.reason.to_list()
            for query in np.flatnonzero(np.isnan(values)).tolist():
                reason[query] = reason[query] or self._lost(query, k)
            rows = queries.with_columns(reason=pl.Series(reason, dtype=pl.String))
            parts.append(
                score_rows(
                    rows,
                    "text_to_image_retrieval",
                    name,
                    values,
                    model=self.lists.model,
                    label=label,
                    threshold=k,
                )
            )
        return pl.concat(parts)

    def _lost(self, query: int, k: int | None) -> str:
        lost = "no image of known value"
        if query in self.tied[k]:
            lost = _TIED if k is None else f"ties hold most of the first {k}"
        elif query in self.listed:
            lost = f"none among the first {k}"
        return self.why.get(k or 0, {}).get(query, lost)

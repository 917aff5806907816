"""Each query's values: from its ranked images to rows of the table scores."""

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

_MOSTLY_TIED = "one score holds most of the list"
_MemberPatterns = tuple[tuple[tuple[float, ...], ...], tuple[int, ...], tuple[float, ...]]
"""Distinct membership rows, the number of images of each, and the expected shares."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The settings that change values."""

    ks: tuple[int, ...]
    against: str
    zero: Zero
    ties: str
    between: tuple[int, int] | None
    metrics: tuple[str, ...]


class QueryValues:
    """The values of one model's lists, added query by query.

    ``tied`` are the queries of which ties hold most of the first K (of None: of the list).
    """

    def __init__(
        self, lists: Lists, queries: pl.DataFrame, images: Images, settings: Asked
    ) -> None:
        self.lists, self.queries, self.images, self.asked = lists, queries, images, settings
        self.values: dict[tuple[str, str | None, int | None], FloatArray] = {}
        self.why: dict[int, dict[int, str]] = {k: {} for k in settings.ks}
        self.lines: list[tuple[object, ...]] = []
        self.most: dict[int, list[float]] = {k: [] for k in settings.ks}
        self.chance: dict[int, list[float]] = {k: [] for k in settings.ks}
        self.tied: dict[int | None, set[int]] = {k: set() for k in (*settings.ks, None)}
        self.listed: set[int] = set()
        self.other = OtherImages(
            images.cluster, settings.ks, settings.zero, settings.against == "uniform"
        )
        self.looks_at_whole = any(name.startswith("ndkl") for name in settings.metrics)
        self.looks_at_first = any(not name.startswith("ndkl") for name in settings.metrics)
        for name in settings.metrics:
            labels: tuple[str | None, ...] = images.groups if name == "skew_at_k" else (None,)
            ks: tuple[int | None, ...] = (None,) if name.startswith("ndkl") else settings.ks
            for key in [(name, label, k) for k in ks for label in labels]:
                self.values[key] = np.full(queries.height, np.nan)
        for query, entries, scores in lists.each(images.known):
            self._add_query(query, entries, scores)
        self._refuse_full_lists()

    def _add_query(self, query: int, entries: IntArray, scores: FloatArray) -> None:
        """Rank one query's images and store its values."""
        member = self.images.member[entries]
        group_totals = member.sum(axis=0)
        is_uniform = self.asked.against == "uniform"
        expected = (
            np.full(len(group_totals), 1.0 / len(group_totals))
            if is_uniform
            else group_totals / group_totals.sum()
        )
        # A group without images in the query's list has no skew.
        expected_or_nan = np.where(expected > 0, expected, np.nan)
        self.listed.add(query)
        counts = running(scores, member, ties=self.asked.ties)
        patterns, n = np.unique(member, axis=0, return_counts=True)
        pattern_counts = (
            tuple(map(tuple, patterns.tolist())),
            tuple(n.tolist()),
            tuple(expected_or_nan.tolist()),
        )
        if self.looks_at_whole:
            self._score_full_ranking(query, counts, expected_or_nan, pattern_counts, runs(scores))
        cuts = {
            k: cut_at(scores, k)
            for k in self.asked.ks
            if self._has_enough_images(query, k, len(entries))
        }
        usable_ks = [k for k, cut in cuts.items() if self._is_ranked(query, k, cut)]
        for k in usable_ks:
            cut = (k, 0) if self.asked.ties == "first" else cuts[k]
            self._score_first_k(query, k, counts[k - 1], expected_or_nan, pattern_counts, cut)
        # Only queries with values at every k, so that standard errors cover the same queries.
        if usable_ks == list(self.asked.ks):
            self.other.add(entries, scores, member)

    def _score_full_ranking(
        self,
        query: int,
        counts: FloatArray,
        expected: FloatArray,
        pattern_counts: _MemberPatterns,
        sizes: tuple[int, ...],
    ) -> None:
        """Store NDKL of the whole list; not where one score holds most of it."""
        # Ties for the first place hold most of the list: scores order too little of it.
        if sizes and 2 * sizes[0] > len(counts):
            self.tied[None].add(query)
            if self.asked.ties == "shared":
                return
        ndkl_value = float(ndkl(counts, expected))
        self._set_value(query, ("ndkl", None, None), ndkl_value)
        if ("ndkl_beyond_chance", None, None) in self.values:
            chance_ndkl = ndkl_by_chance(
                *pattern_counts, sizes if self.asked.ties == "shared" else ()
            )
            self._set_value(query, ("ndkl_beyond_chance", None, None), ndkl_value - chance_ndkl)

    def _is_ranked(self, query: int, k: int, cut: Cut) -> bool:
        """Whether scores, not ties, decide at least half of the first k images."""
        n_certain, n_sharing = cut
        if not n_sharing or 2 * n_certain >= k:
            return True
        self.tied[k].add(query)
        return self.asked.ties == "first"

    def _score_first_k(
        self,
        query: int,
        k: int,
        first: FloatArray,
        expected: FloatArray,
        pattern_counts: _MemberPatterns,
        cut: Cut,
    ) -> None:
        """Store skews and bias of the first k, and their evidence rows."""
        log_skews = skews(first, k, expected, self.asked.zero)
        chance_skew = max_skew_by_chance(*pattern_counts, k, self.asked.zero, cut)
        max_skew = float(np.nanmax(log_skews))
        self.most[k].append(max_skew)
        self.chance[k].append(chance_skew)
        self._set_value(query, ("max_skew_at_k", None, k), max_skew)
        self._set_value(query, ("max_skew_beyond_chance", None, k), max_skew - chance_skew)
        self._set_value(query, ("min_skew_at_k", None, k), float(np.nanmin(log_skews)))
        if self.asked.between is not None:
            self._set_value(query, ("bias_at_k", None, k), float(bias(first, *self.asked.between)))
        query_ids = self.queries.row(query)
        for group, count, skew, share in zip(
            self.images.groups, first.tolist(), log_skews.tolist(), expected.tolist(), strict=True
        ):
            self._set_value(query, ("skew_at_k", group, k), skew)
            self.lines.append((self.lists.model, *query_ids, k, group, count, count / k, share))

    def _set_value(
        self, query: int, key: tuple[str, str | None, int | None], metric_value: float
    ) -> None:
        if key in self.values:
            self.values[key][query] = metric_value

    def _has_enough_images(self, query: int, k: int, n: int) -> bool:
        """Whether a list is longer than k; store the reason where not."""
        if k < n:
            return True
        self.why[k][query] = f"fewer than {k} images" if n < k else f"{k} is the whole list"
        return False

    def _refuse_full_lists(self) -> None:
        """Refuse a K as large as every query's list."""
        for k, reasons in self.why.items():
            if self.looks_at_first and self.listed and len(reasons) == len(self.listed):
                raise SpecError(
                    f"the first {k} images are all that a query can find: any order gives the same",
                    expected="a top_k smaller than the number of images of known "
                    "value that a query ranks",
                    found=f"{k}: {next(iter(reasons.values()))}",
                    where="top_k",
                    hint="NDKL looks at the whole list: --metric ndkl",
                )

    def units(self) -> pl.DataFrame:
        """Build the score tables, with the reason where a value is null."""
        queries = self.queries.rename({"instance_id": "unit_id"})
        tables = []
        for (name, label, k), values in self.values.items():
            reason = self.lists.reason.to_list()
            for query in np.flatnonzero(np.isnan(values)).tolist():
                reason[query] = reason[query] or self._missing_reason(query, k)
            rows = queries.with_columns(reason=pl.Series(reason, dtype=pl.String))
            tables.append(
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
        return pl.concat(tables)

    def _missing_reason(self, query: int, k: int | None) -> str:
        """Return why a query has no value."""
        reason = "no image of known value"
        if query in self.tied[k]:
            reason = _MOSTLY_TIED if k is None else f"ties hold most of the first {k}"
        elif query in self.listed:
            reason = f"none among the first {k}"
        return self.why.get(k or 0, {}).get(query, reason)

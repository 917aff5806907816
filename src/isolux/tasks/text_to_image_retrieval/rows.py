"""Each query's values: from its ranked images to rows of the table scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.core.errors import SpecError
from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray
from isolux.tasks._scores import score_rows
from isolux.tasks.text_to_image_retrieval.lists import QueryScores, SearchedImages
from isolux.tasks.text_to_image_retrieval.measures import (
    Cut,
    ResampledImages,
    Zero,
    count_bias,
    count_ties,
    cumulative_counts,
    expected_max_skew,
    expected_ndkl,
    find_cut,
    group_skews,
    ndkl,
)

_MOSTLY_TIED = "one score holds most of the list"
_MemberPatterns = tuple[tuple[tuple[float, ...], ...], tuple[int, ...], tuple[float, ...]]
"""Distinct membership rows, the number of images of each, and the expected shares."""


@dataclass(frozen=True, slots=True)
class RankingSettings:
    """The settings that change values."""

    ks: tuple[int, ...]
    against: str
    zero: Zero
    ties: str
    between: tuple[int, int] | None
    metrics: tuple[str, ...]


class QueryValues:
    """The values of one model's lists, added query by query.

    ``tied_queries`` are the queries of which ties hold most of the first K (of None: of the list).
    """

    def __init__(
        self,
        lists: QueryScores,
        queries: pl.DataFrame,
        images: SearchedImages,
        settings: RankingSettings,
    ) -> None:
        self.lists, self.queries, self.images, self.settings = lists, queries, images, settings
        self.values: dict[tuple[str, str | None, int | None], FloatArray] = {}
        self.reasons: dict[int, dict[int, str]] = {k: {} for k in settings.ks}
        self.evidence_rows: list[tuple[object, ...]] = []
        self.max_skews: dict[int, list[float]] = {k: [] for k in settings.ks}
        self.expected_skews: dict[int, list[float]] = {k: [] for k in settings.ks}
        self.tied_queries: dict[int | None, set[int]] = {k: set() for k in (*settings.ks, None)}
        self.ranked_queries: set[int] = set()
        self.resampled_images = ResampledImages(
            images.cluster, settings.ks, settings.zero, settings.against == "uniform"
        )
        # NDKL and its expectation take the whole list for each query; they are computed on request.
        self.needs_full_ranking = any(name.startswith("ndkl") for name in settings.metrics)
        self.needs_first_k = any(not name.startswith("ndkl") for name in settings.metrics)
        for name in settings.metrics:
            labels: tuple[str | None, ...] = images.groups if name == "skew_at_k" else (None,)
            ks: tuple[int | None, ...] = (None,) if name.startswith("ndkl") else settings.ks
            for key in [(name, label, k) for k in ks for label in labels]:
                self.values[key] = np.full(queries.height, np.nan)
        for query, entries, scores in lists.iterate_queries(images.known_rows):
            self._add_query(query, entries, scores)
        self._refuse_full_lists()

    def _add_query(self, query: int, entries: IntArray, scores: FloatArray) -> None:
        """Rank one query's images and store its values."""
        member = self.images.member[entries]
        group_totals = member.sum(axis=0)
        is_uniform = self.settings.against == "uniform"
        expected = (
            np.full(len(group_totals), 1.0 / len(group_totals))
            if is_uniform
            # Shares of the query's own list: an engine may return a part of the database only.
            else group_totals / group_totals.sum()
        )
        # A group without images in the query's list has no skew.
        expected_or_nan = np.where(expected > 0, expected, np.nan)
        self.ranked_queries.add(query)
        counts = cumulative_counts(scores, member, ties=self.settings.ties)
        # Images of equal membership are interchangeable, so chance is computed from their counts.
        patterns, n = np.unique(member, axis=0, return_counts=True)
        pattern_counts = (
            tuple(map(tuple, patterns.tolist())),
            tuple(n.tolist()),
            tuple(expected_or_nan.tolist()),
        )
        if self.needs_full_ranking:
            self._score_full_ranking(
                query, counts, expected_or_nan, pattern_counts, count_ties(scores)
            )
        cuts = {
            k: find_cut(scores, k)
            for k in self.settings.ks
            if self._has_enough_images(query, k, len(entries))
        }
        usable_ks = [k for k, cut in cuts.items() if self._is_ranked(query, k, cut)]
        for k in usable_ks:
            # With ties="first" the file's order decides, so that nothing is shared at the cut.
            cut = (k, 0) if self.settings.ties == "first" else cuts[k]
            self._score_first_k(query, k, counts[k - 1], expected_or_nan, pattern_counts, cut)
        # Only queries with values at every k, so that standard errors cover the same queries.
        if usable_ks == list(self.settings.ks):
            self.resampled_images.add(entries, scores, member)

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
            self.tied_queries[None].add(query)
            # With ties="first" the value is kept, and a note says that the file's order decided it.
            if self.settings.ties == "shared":
                return
        ndkl_value = float(ndkl(counts, expected))
        self._set_value(query, ("ndkl", None, None), ndkl_value)
        if ("ndkl_chance_corrected", None, None) in self.values:
            chance_ndkl = expected_ndkl(
                *pattern_counts, sizes if self.settings.ties == "shared" else ()
            )
            self._set_value(query, ("ndkl_chance_corrected", None, None), ndkl_value - chance_ndkl)

    def _is_ranked(self, query: int, k: int, cut: Cut) -> bool:
        """Whether scores, not ties, decide at least half of the first k images."""
        n_certain, n_sharing = cut
        if not n_sharing or 2 * n_certain >= k:
            return True
        self.tied_queries[k].add(query)
        return self.settings.ties == "first"

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
        log_skews = group_skews(first, k, expected, self.settings.zero)
        chance_skew = expected_max_skew(*pattern_counts, k, self.settings.zero, cut)
        max_skew = float(np.nanmax(log_skews))
        self.max_skews[k].append(max_skew)
        self.expected_skews[k].append(chance_skew)
        self._set_value(query, ("max_skew_at_k", None, k), max_skew)
        self._set_value(query, ("max_skew_chance_corrected", None, k), max_skew - chance_skew)
        self._set_value(query, ("min_skew_at_k", None, k), float(np.nanmin(log_skews)))
        if self.settings.between is not None:
            self._set_value(
                query, ("bias_at_k", None, k), float(count_bias(first, *self.settings.between))
            )
        query_ids = self.queries.row(query)
        for group, count, skew, share in zip(
            self.images.groups, first.tolist(), log_skews.tolist(), expected.tolist(), strict=True
        ):
            self._set_value(query, ("skew_at_k", group, k), skew)
            self.evidence_rows.append(
                (self.lists.model, *query_ids, k, group, count, count / k, share)
            )

    def _set_value(
        self, query: int, key: tuple[str, str | None, int | None], metric_value: float
    ) -> None:
        # Values are computed together; those of metrics that were not requested are dropped here.
        if key in self.values:
            self.values[key][query] = metric_value

    def _has_enough_images(self, query: int, k: int, n: int) -> bool:
        """Whether a list is longer than k; store the reason where not."""
        # The first k of k images are all of them: their shares are the expected ones in any order.
        if k < n:
            return True
        self.reasons[k][query] = f"fewer than {k} images" if n < k else f"{k} is the whole list"
        return False

    def _refuse_full_lists(self) -> None:
        """Refuse a K as large as every query's list."""
        for k, reasons in self.reasons.items():
            if (
                self.needs_first_k
                and self.ranked_queries
                and len(reasons) == len(self.ranked_queries)
            ):
                raise SpecError(
                    f"the first {k} images are all that a query can find: any order gives the same",
                    expected="a top_k smaller than the number of images of known "
                    "value that a query ranks",
                    found=f"{k}: {next(iter(reasons.values()))}",
                    where="top_k",
                    hint="NDKL looks at the whole list: --metric ndkl",
                )

    def build_score_rows(self) -> pl.DataFrame:
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
        if query in self.tied_queries[k]:
            reason = _MOSTLY_TIED if k is None else f"ties hold most of the first {k}"
        elif query in self.ranked_queries:
            reason = f"none among the first {k}"
        return self.reasons.get(k or 0, {}).get(query, reason)

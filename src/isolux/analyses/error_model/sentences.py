"""Sentences of the analysis ``error_model``, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from isolux.analyses._features import Features
from isolux.analyses._unit_scores import UnitScores
from isolux.analyses.error_model.forest import Forest, PredictabilityTest
from isolux.analyses.error_model.groups import ErrorTree, SubgroupDifferences
from isolux.core.formatting import join_words
from isolux.core.spec import Statistics
from isolux.statements.numbers import (
    format_bare_value,
    format_gap_size,
    format_interval,
)
from isolux.statements.run_terms import (
    RunTerms,
    format_confidence_level,
    lower_unless_acronym,
)
from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray

N_FOLDS = 5
"""Folds of the cross-validation by cluster."""
_MAX_LISTED = 40


@dataclass(frozen=True, slots=True)
class ErrorModelSettings:
    """The settings of ``error_model.explain``, and the level of its tests."""

    check_forest: Forest
    full_forest: Forest
    importance: Literal["permutation", "impurity"]
    n_permutations: int
    alpha: float


@dataclass(frozen=True, slots=True)
class ErrorModelContext:
    """The data that all sentences about one model use."""

    scores: UnitScores
    terms: RunTerms
    settings: ErrorModelSettings

    @property
    def measure(self) -> str:
        """The metric in words, within a sentence."""
        return lower_unless_acronym(self.terms.format_metric(self.scores.row))

    @property
    def r2_name(self) -> str:
        """Name of the cross-validated R², with the unit held out: ``R² out of cluster (image)``."""
        cluster = self.terms.cluster
        return "R² out of " + (
            "sample" if cluster is None else f"cluster ({self.terms.format_attribute(cluster)})"
        )

    def describe_constant(self) -> str:
        """Write that all scores are the same."""
        return f"{self.measure}: every unit has the same score, so there is nothing to predict"

    def describe_too_few(self, spec: Statistics) -> dict[str, Any] | None:
        """Build the finding that there are too few people for cross-validation; None: enough."""
        n_clusters, n_units = self.scores.n_clusters, len(self.scores.value)
        min_clusters = max(2 * N_FOLDS, spec.min_clusters)
        if n_clusters >= min_clusters and n_units >= 2 * spec.min_units:
            return None
        has_few_clusters = n_clusters < min_clusters
        text = (
            f"whether attributes predict {self.measure} was not examined: "
            + (
                f"{n_clusters:,} clusters, and {min_clusters:,}"
                if has_few_clusters
                else f"{n_units:,} units, and {2 * spec.min_units:,}"
            )
            + f" are needed to fit on some people and ask about others in {N_FOLDS} folds."
        )
        status = "insufficient clusters" if has_few_clusters else "insufficient units"
        return self._build_finding(text, None, (None, None), n_units) | {"status": status}

    def describe_unpredictable(
        self, predictability: PredictabilityTest, r2_bounds: tuple[float, float]
    ) -> dict[str, Any]:
        """Build the finding that nothing to explain was found: never that there is nothing."""
        text = (
            f"nothing to explain was found in {self.measure}: for unseen people, forests on the "
            f"attributes predict it no better than they predict permuted scores ({self.r2_name} "
            f"{_format_r2(predictability.r2)}; permuted up to "
            f"{_format_r2(predictability.permuted_r2.max())} in {len(predictability.permuted_r2)})."
            " No tree was grown."
        )
        return self._build_finding(text, predictability.r2, r2_bounds, len(self.scores.value))

    def describe_predictable(
        self,
        predictability: PredictabilityTest,
        r2_bounds: tuple[float, float],
        selected: Sequence[str],
    ) -> dict[str, Any]:
        """Build the finding on how well scores of held-out people are predicted, and by what."""
        attribute_list = ", ".join(self.terms.format_attribute(name) for name in selected)
        text = (
            f"the attributes predict {self.measure} of unseen people: {self.r2_name}"
            f" {_format_r2(predictability.r2)} ({format_confidence_level(self.terms)} interval"
            f" {_format_r2(r2_bounds[0])} to {_format_r2(r2_bounds[1])}), with permuted scores at"
            f" most {_format_r2(predictability.permuted_r2.max())} in"
            f" {len(predictability.permuted_r2)}; {len(self.scores.value):,} units. "
            + (
                f"By {self.settings.importance} importance the most telling: {attribute_list}."
                if attribute_list
                else "No single attribute stands out."
            )
        )
        p = (1.0 + (predictability.permuted_r2 >= predictability.r2).sum()) / (
            len(predictability.permuted_r2) + 1.0
        )
        row = self._build_finding(text, predictability.r2, r2_bounds, len(self.scores.value))
        return row | {"p_adjusted": float(p)}

    def describe_attribute(
        self,
        name: str,
        features: Features,
        items: Features,
        subgroups: SubgroupDifferences,
        tree: ErrorTree,
    ) -> dict[str, Any]:
        """Build the finding on an attribute's subgroup with the smallest p, and its tree effect."""
        columns = items.column_index(name)
        tested = columns[np.isfinite(subgroups.p_adjusted[columns])]
        title = self.terms.format_attribute(name)
        tree_text = self._describe_direction(name, features, tree)
        if not len(tested):
            text = f"{title} helps to predict {self.measure}; its values are too rare to compare."
            return self._build_finding(text + tree_text, None, (None, None), None) | {
                "attribute": name
            }
        surest = np.lexsort((-np.abs(subgroups.contrasts.t[tested]), subgroups.p_adjusted[tested]))
        k = int(tested[surest[0]])
        contrasts, unit = subgroups.contrasts, self.terms.find_unit(self.scores.row)
        low, high = (float(end[k]) for end in subgroups.interval(self.terms.level))
        p = float(subgroups.p_adjusted[k])
        difference = float(subgroups.difference[k])
        value_name = f"{title} {items.value[k]}"
        # The sentence gives the size of the difference, so the interval is of the size too.
        size_low, size_high = (-high, -low) if difference < 0 else (low, high)
        certainty = (
            f"{format_confidence_level(self.terms)} interval "
            f"{format_interval(size_low, size_high, unit)}, "
            f"{contrasts.n[k]:,.0f} units; {self.terms.format_adjusted_p(p)}"
        )
        if p <= self.settings.alpha:
            worse = (difference < 0) == self.scores.higher_is_better
            text = (
                f"{self.measure} is {format_gap_size(difference, unit)} "
                f"{'lower' if difference < 0 else 'higher'} ({'worse' if worse else 'better'}) "
                f"with {value_name} than for others of known {title} ({certainty})."
            )
        else:
            text = (
                f"{title} helps to predict {self.measure}, but no single value of it stands out; "
                f"the most certain difference is {value_name}, {format_gap_size(difference, unit)} "
                f"{'lower' if difference < 0 else 'higher'} ({certainty})."
            )
        row = self._build_finding(text + tree_text, difference, (low, high), int(contrasts.n[k]))
        return row | {
            "attribute": name,
            "group_a": value_name,
            "group_b": "others of known value",
            "p_adjusted": p,
        }

    def tabulate_importances(
        self, names: Sequence[str], impurity: FloatArray, r2_loss: FloatArray, selected: IntArray
    ) -> pl.DataFrame:
        """Build the table of both importances by attribute, the largest first."""
        ranking = np.nan_to_num(r2_loss) if self.settings.importance == "permutation" else impurity
        order = np.argsort(-ranking, kind="stable")[:_MAX_LISTED]
        return pl.DataFrame(
            {
                "attribute": [self.terms.format_attribute(names[j]) for j in order],
                "R² lost when shuffled": r2_loss[order],
                "impurity importance": impurity[order],
                "chosen": ["yes" if j in selected else "no" for j in order],
            }
        ).with_columns(pl.selectors.float().fill_nan(None))

    def tabulate_differences(
        self, names: Sequence[str], items: Features, subgroups: SubgroupDifferences
    ) -> pl.DataFrame:
        """Build the table of the selected attributes' subgroups against others of known value."""
        columns = np.concatenate([items.column_index(n) for n in names] or [np.empty(0, np.int64)])
        low, high = subgroups.interval(self.terms.level)
        contrasts = subgroups.contrasts
        return (
            pl.DataFrame(
                {
                    "attribute": [self.terms.format_attribute(items.attribute[j]) for j in columns],
                    "value": [items.value[j] for j in columns],
                    "units": contrasts.n[columns].astype(np.int64),
                    "clusters": contrasts.n_clusters[columns],
                    "mean": subgroups.mean[columns],
                    "of others of known value": subgroups.other_mean[columns],
                    "difference": subgroups.difference[columns],
                    "standard error": subgroups.standard_error[columns],
                    "from": low[columns],
                    "to": high[columns],
                    "adjusted p": subgroups.p_adjusted[columns],
                }
            )
            .with_columns(pl.selectors.float().fill_nan(None))
            .head(_MAX_LISTED)
        )

    def _describe_direction(self, name: str, features: Features, tree: ErrorTree) -> str:
        """Write the direction of an attribute's effect in the shallow tree."""
        values_by_direction: dict[str, list[str]] = {"higher": [], "lower": []}
        used_columns = [j for j in features.column_index(name).tolist() if tree.effect.get(j)]
        for column in sorted(used_columns, key=lambda j: -abs(tree.effect[j])):
            category = features.value[column]
            value_phrase = "higher values" if category is None else str(category)
            values_by_direction["higher" if tree.effect[column] > 0 else "lower"].append(
                value_phrase
            )
        phrases = [
            (direction, join_words(values, conjunction="and"))
            for direction, values in values_by_direction.items()
            if values
        ]
        if not phrases:
            return " The shallow tree does not use it."
        (direction, values), *other_phrases = phrases
        first = f" In the shallow tree, {direction} scores go with {values}"
        return (
            first
            + "".join(f", {direction} with {values}" for direction, values in other_phrases)
            + "."
        )

    def _build_finding(
        self,
        text: str,
        effect: float | None,
        bounds: tuple[float | None, float | None],
        n: int | None,
    ) -> dict[str, Any]:
        return self.scores.build_finding(
            "error_model",
            self.terms.begin_sentence(self.scores.model, text),
            reference="fhibe",
            n=n,
            effect=effect,
            low=bounds[0],
            high=bounds[1],
        )


def _format_r2(r2: float) -> str:
    return format_bare_value(r2, "", n_decimals=3)

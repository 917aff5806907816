"""Sentences of the analysis ``error_model``, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from isolux.analyses._features import Features
from isolux.analyses._judged import Judged
from isolux.analyses.error_model.forest import Checked, Forest
from isolux.analyses.error_model.groups import Subgroups, Tree
from isolux.statements.numbers import interval, points, value_text
from isolux.statements.words import Words, level_of, lowered
from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.words import listed

FOLDS = 5
"""Folds of the cross-validation by cluster."""
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of ``error_model.explain``, and the level of its tests."""

    check: Forest
    whole: Forest
    importance: Literal["permutation", "impurity"]
    permutations: int
    alpha: float


@dataclass(frozen=True, slots=True)
class Told:
    """The data that all sentences about one model use."""

    judged: Judged
    words: Words
    plan: Plan

    @property
    def measure(self) -> str:
        """The metric in words, within a sentence."""
        return lowered(self.words.measure(self.judged.row))

    @property
    def r2(self) -> str:
        """Name of the cross-validated R², with the unit held out: ``R² out of cluster (image)``."""
        cluster = self.words.cluster
        return "R² out of " + (
            "sample" if cluster is None else f"cluster ({self.words.title(cluster)})"
        )

    def constant(self) -> str:
        """Write that all scores are the same."""
        return f"{self.measure}: every unit has the same score, so there is nothing to predict"

    def too_few(self, spec: Statistics) -> dict[str, Any] | None:
        """Build the finding that there are too few people for cross-validation; None: enough."""
        n_clusters, n_units = self.judged.n_clusters, len(self.judged.value)
        min_clusters = max(2 * FOLDS, spec.min_clusters)
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
            + f" are needed to fit on some people and ask about others in {FOLDS} folds."
        )
        status = "insufficient clusters" if has_few_clusters else "insufficient units"
        return self._build_finding(text, None, (None, None), n_units) | {"status": status}

    def nothing(self, predictability: Checked, r2_bounds: tuple[float, float]) -> dict[str, Any]:
        """Build the finding that nothing to explain was found: never that there is nothing."""
        text = (
            f"nothing to explain was found in {self.measure}: for unseen people, forests on the "
            f"attributes predict it no better than they predict permuted scores ({self.r2} "
            f"{_signed(predictability.r2)}; permuted up to "
            f"{_signed(predictability.permuted.max())} in {len(predictability.permuted)}). No tree "
            "was grown."
        )
        return self._build_finding(text, predictability.r2, r2_bounds, len(self.judged.value))

    def found(
        self, predictability: Checked, r2_bounds: tuple[float, float], selected: Sequence[str]
    ) -> dict[str, Any]:
        """Build the finding on how well scores of held-out people are predicted, and by what."""
        attribute_list = ", ".join(self.words.title(name) for name in selected)
        text = (
            f"the attributes predict {self.measure} of unseen people: {self.r2} "
            f"{_signed(predictability.r2)} ({level_of(self.words)} interval "
            f"{_signed(r2_bounds[0])} to {_signed(r2_bounds[1])}), with permuted scores at most "
            f"{_signed(predictability.permuted.max())} in {len(predictability.permuted)}; "
            f"{len(self.judged.value):,} units. "
            + (
                f"By {self.plan.importance} importance the most telling: {attribute_list}."
                if attribute_list
                else "No single attribute stands out."
            )
        )
        p = (1.0 + (predictability.permuted >= predictability.r2).sum()) / (
            len(predictability.permuted) + 1.0
        )
        row = self._build_finding(text, predictability.r2, r2_bounds, len(self.judged.value))
        return row | {"p_adjusted": float(p)}

    def of_attribute(
        self, name: str, features: Features, items: Features, subgroups: Subgroups, tree: Tree
    ) -> dict[str, Any]:
        """Build the finding on an attribute's subgroup with the smallest p, and its tree effect."""
        columns = items.columns(name)
        tested = columns[np.isfinite(subgroups.p_adjusted[columns])]
        title = self.words.title(name)
        tree_text = self._direction(name, features, tree)
        if not len(tested):
            text = f"{title} helps to predict {self.measure}; its values are too rare to compare."
            return self._build_finding(text + tree_text, None, (None, None), None) | {
                "attribute": name
            }
        surest = np.lexsort((-np.abs(subgroups.found.t[tested]), subgroups.p_adjusted[tested]))
        k = int(tested[surest[0]])
        contrasts, unit = subgroups.found, self.words.unit(self.judged.row)
        low, high = (float(end[k]) for end in subgroups.interval(self.words.level))
        p = float(subgroups.p_adjusted[k])
        difference = float(subgroups.difference[k])
        value_name = f"{title} {items.value[k]}"
        # The sentence gives the size of the difference, so the interval is of the size too.
        size_low, size_high = (-high, -low) if difference < 0 else (low, high)
        certainty = (
            f"{level_of(self.words)} interval {interval(size_low, size_high, unit)}, "
            f"{contrasts.n[k]:,.0f} units; {self.words.own_p(p)}"
        )
        if p <= self.plan.alpha:
            worse = (difference < 0) == self.judged.higher_is_better
            text = (
                f"{self.measure} is {points(difference, unit)} "
                f"{'lower' if difference < 0 else 'higher'} ({'worse' if worse else 'better'}) "
                f"with {value_name} than for others of known {title} ({certainty})."
            )
        else:
            text = (
                f"{title} helps to predict {self.measure}, but no single value of it stands out; "
                f"the most certain difference is {value_name}, {points(difference, unit)} "
                f"{'lower' if difference < 0 else 'higher'} ({certainty})."
            )
        row = self._build_finding(text + tree_text, difference, (low, high), int(contrasts.n[k]))
        return row | {
            "attribute": name,
            "group_a": value_name,
            "group_b": "others of known value",
            "p_adjusted": p,
        }

    def importances(
        self, names: Sequence[str], impurity: FloatArray, r2_loss: FloatArray, selected: IntArray
    ) -> pl.DataFrame:
        """Build the table of both importances by attribute, the largest first."""
        ranking = np.nan_to_num(r2_loss) if self.plan.importance == "permutation" else impurity
        order = np.argsort(-ranking, kind="stable")[:_SHOWN]
        return pl.DataFrame(
            {
                "attribute": [self.words.title(names[j]) for j in order],
                "R² lost when shuffled": r2_loss[order],
                "impurity importance": impurity[order],
                "chosen": ["yes" if j in selected else "no" for j in order],
            }
        ).with_columns(pl.selectors.float().fill_nan(None))

    def differences(
        self, names: Sequence[str], items: Features, subgroups: Subgroups
    ) -> pl.DataFrame:
        """Build the table of the selected attributes' subgroups against others of known value."""
        columns = np.concatenate([items.columns(n) for n in names] or [np.empty(0, np.int64)])
        low, high = subgroups.interval(self.words.level)
        contrasts = subgroups.found
        return (
            pl.DataFrame(
                {
                    "attribute": [self.words.title(items.attribute[j]) for j in columns],
                    "value": [items.value[j] for j in columns],
                    "units": contrasts.n[columns].astype(np.int64),
                    "clusters": contrasts.n_clusters[columns],
                    "mean": subgroups.mean[columns],
                    "of others of known value": subgroups.other[columns],
                    "difference": subgroups.difference[columns],
                    "standard error": subgroups.standard_error[columns],
                    "from": low[columns],
                    "to": high[columns],
                    "adjusted p": subgroups.p_adjusted[columns],
                }
            )
            .with_columns(pl.selectors.float().fill_nan(None))
            .head(_SHOWN)
        )

    def _direction(self, name: str, features: Features, tree: Tree) -> str:
        """Write the direction of an attribute's effect in the shallow tree."""
        values_by_direction: dict[str, list[str]] = {"higher": [], "lower": []}
        used_columns = [j for j in features.columns(name).tolist() if tree.effect.get(j)]
        for column in sorted(used_columns, key=lambda j: -abs(tree.effect[j])):
            category = features.value[column]
            value_phrase = "higher values" if category is None else str(category)
            values_by_direction["higher" if tree.effect[column] > 0 else "lower"].append(
                value_phrase
            )
        phrases = [
            (direction, listed(values, last="and"))
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
        return self.judged.finding(
            "error_model",
            self.words.start(self.judged.model, text),
            reference="fhibe",
            n=n,
            effect=effect,
            low=bounds[0],
            high=bounds[1],
        )


def _signed(r2: float) -> str:
    return value_text(r2, "", places=3)

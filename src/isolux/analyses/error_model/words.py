"""How the analysis ``error_model`` says what it found: sentences, and the tables behind them."""

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
"""Of the check on people not seen."""
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
    """What all sentences about one model share."""

    judged: Judged
    words: Words
    plan: Plan

    @property
    def measure(self) -> str:
        """The metric in words, within a sentence."""
        return lowered(self.words.measure(self.judged.row))

    @property
    def r2(self) -> str:
        """R² of people not seen, and what was held out: ``R² out of cluster (image)``."""
        cluster = self.words.cluster
        return "R² out of " + (
            "sample" if cluster is None else f"cluster ({self.words.title(cluster)})"
        )

    def constant(self) -> str:
        """Say that there is no variation."""
        return f"{self.measure}: every unit has the same score, so there is nothing to predict"

    def too_few(self, spec: Statistics) -> dict[str, Any] | None:
        """Say that there are too few people to fit on some and ask about others, if so."""
        clusters, units = self.judged.n_clusters, len(self.judged.value)
        least = max(2 * FOLDS, spec.min_clusters)
        if clusters >= least and units >= 2 * spec.min_units:
            return None
        few = clusters < least
        text = (
            f"whether attributes predict {self.measure} was not examined: "
            + (
                f"{clusters:,} clusters, and {least:,}"
                if few
                else f"{units:,} units, and {2 * spec.min_units:,}"
            )
            + f" are needed to fit on some people and ask about others in {FOLDS} folds."
        )
        status = "insufficient clusters" if few else "insufficient units"
        return self._row(text, None, (None, None), units) | {"status": status}

    def nothing(self, checked: Checked, ends: tuple[float, float]) -> dict[str, Any]:
        """Say that nothing to explain was found: never that there is nothing."""
        text = (
            f"nothing to explain was found in {self.measure}: for unseen people, forests on the "
            f"attributes predict it no better than they predict permuted scores ({self.r2} "
            f"{_signed(checked.r2)}; permuted up to {_signed(checked.permuted.max())} in "
            f"{len(checked.permuted)}). No tree was grown."
        )
        return self._row(text, checked.r2, ends, len(self.judged.value))

    def found(
        self, checked: Checked, ends: tuple[float, float], chosen: Sequence[str]
    ) -> dict[str, Any]:
        """Say how well scores of people not seen are predicted, and by what."""
        listed = ", ".join(self.words.title(name) for name in chosen)
        text = (
            f"the attributes predict {self.measure} of unseen people: {self.r2} "
            f"{_signed(checked.r2)} ({level_of(self.words)} interval {_signed(ends[0])} to "
            f"{_signed(ends[1])}), with permuted scores at most {_signed(checked.permuted.max())} "
            f"in {len(checked.permuted)}; {len(self.judged.value):,} units. "
            + (
                f"By {self.plan.importance} importance the most telling: {listed}."
                if listed
                else "No single attribute stands out."
            )
        )
        p = (1.0 + (checked.permuted >= checked.r2).sum()) / (len(checked.permuted) + 1.0)
        row = self._row(text, checked.r2, ends, len(self.judged.value))
        return row | {"p_adjusted": float(p)}

    def of_attribute(
        self, name: str, features: Features, items: Features, sub: Subgroups, tree: Tree
    ) -> dict[str, Any]:
        """Say which subgroup of an attribute differs most surely, and what the tree says."""
        own = items.columns(name)
        tested = own[np.isfinite(sub.p_adjusted[own])]
        title = self.words.title(name)
        tail = self._direction(name, features, tree)
        if not len(tested):
            text = f"{title} helps to predict {self.measure}; its values are too rare to compare."
            return self._row(text + tail, None, (None, None), None) | {"attribute": name}
        surest = np.lexsort((-np.abs(sub.found.t[tested]), sub.p_adjusted[tested]))
        k = int(tested[surest[0]])
        found, unit = sub.found, self.words.unit(self.judged.row)
        low, high = (float(end[k]) for end in sub.interval(self.words.level))
        p = float(sub.p_adjusted[k])
        value = float(sub.difference[k])
        of = f"{title} {items.value[k]}"
        # "Lower by" has a size, so its interval is that of the size.
        least, most = (-high, -low) if value < 0 else (low, high)
        spread = (
            f"{level_of(self.words)} interval {interval(least, most, unit)}, "
            f"{found.n[k]:,.0f} units; {self.words.own_p(p)}"
        )
        if p <= self.plan.alpha:
            worse = (value < 0) == self.judged.higher_is_better
            text = (
                f"{self.measure} is {points(value, unit)} {'lower' if value < 0 else 'higher'}"
                f" ({'worse' if worse else 'better'}) with {of} than for others "
                f"of known {title} ({spread})."
            )
        else:
            text = (
                f"{title} helps to predict {self.measure}, but no single value of it stands out; "
                f"the most certain difference is {of}, {points(value, unit)} "
                f"{'lower' if value < 0 else 'higher'} ({spread})."
            )
        row = self._row(text + tail, value, (low, high), int(found.n[k]))
        return row | {
            "attribute": name,
            "group_a": of,
            "group_b": "others of known value",
            "p_adjusted": p,
        }

    def importances(
        self, names: Sequence[str], impurity: FloatArray, lost: FloatArray, chosen: IntArray
    ) -> pl.DataFrame:
        """Lay out both importances by attribute, the chosen first."""
        by = np.nan_to_num(lost) if self.plan.importance == "permutation" else impurity
        order = np.argsort(-by, kind="stable")[:_SHOWN]
        return pl.DataFrame(
            {
                "attribute": [self.words.title(names[j]) for j in order],
                "R² lost when shuffled": lost[order],
                "impurity importance": impurity[order],
                "chosen": ["yes" if j in chosen else "no" for j in order],
            }
        ).with_columns(pl.selectors.float().fill_nan(None))

    def differences(self, names: Sequence[str], items: Features, sub: Subgroups) -> pl.DataFrame:
        """Lay out every subgroup of the chosen attributes against others of known value."""
        places = np.concatenate([items.columns(n) for n in names] or [np.empty(0, np.int64)])
        low, high = sub.interval(self.words.level)
        found = sub.found
        return (
            pl.DataFrame(
                {
                    "attribute": [self.words.title(items.attribute[j]) for j in places],
                    "value": [items.value[j] for j in places],
                    "units": found.n[places].astype(np.int64),
                    "clusters": found.n_clusters[places],
                    "mean": sub.mean[places],
                    "of others of known value": sub.other[places],
                    "difference": sub.difference[places],
                    "standard error": sub.standard_error[places],
                    "from": low[places],
                    "to": high[places],
                    "adjusted p": sub.p_adjusted[places],
                }
            )
            .with_columns(pl.selectors.float().fill_nan(None))
            .head(_SHOWN)
        )

    def _direction(self, name: str, features: Features, tree: Tree) -> str:
        """Say which way the shallow tree goes with an attribute."""
        ways: dict[str, list[str]] = {"higher": [], "lower": []}
        own = [j for j in features.columns(name).tolist() if tree.effect.get(j)]
        for column in sorted(own, key=lambda j: -abs(tree.effect[j])):
            value = features.value[column]
            what = "higher values" if value is None else str(value)
            ways["higher" if tree.effect[column] > 0 else "lower"].append(what)
        said = [(way, listed(values, last="and")) for way, values in ways.items() if values]
        if not said:
            return " The shallow tree does not use it."
        (way, values), *other = said
        first = f" In the shallow tree, {way} scores go with {values}"
        return first + "".join(f", {way} with {values}" for way, values in other) + "."

    def _row(
        self,
        text: str,
        effect: float | None,
        ends: tuple[float | None, float | None],
        n: int | None,
    ) -> dict[str, Any]:
        return self.judged.finding(
            "error_model",
            self.words.start(self.judged.model, text),
            reference="fhibe",
            n=n,
            effect=effect,
            low=ends[0],
            high=ends[1],
        )


def _signed(value: float) -> str:
    return value_text(value, "", places=3)

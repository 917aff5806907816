"""Sentences of the analysis ``patterns``, and the table of its rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._contrasts import Contrasts
from isolux.analyses._features import Features
from isolux.analyses._judged import Judged, Low
from isolux.analyses.patterns.rules import Confirmed, Mined
from isolux.statements.numbers import fixed, interval, value_text
from isolux.statements.words import Words, level_of


@dataclass(frozen=True, slots=True)
class Told:
    """The data that all sentences about one model use."""

    judged: Judged
    low: Low
    items: Features
    words: Words
    mined: Mined


def pattern_name(context: Told, members: Sequence[int] | npt.NDArray[np.int32]) -> str:
    """Name a pattern by its values: ``light dim and box size small``."""
    values = [
        f"{context.words.title(context.items.attribute[j])} {context.items.value[j]}"
        for j in members
        if j >= 0
    ]
    return " and ".join(values)


def pattern_claim(context: Told, name: str, confirmed: Confirmed, k: int) -> str:
    """Write how much more often a pattern's units perform low, in the confirmation half."""
    contrasts, terms = confirmed.against_rest, context.words
    low, high = (bounds[k] for bounds in contrasts.interval(terms.level))
    lift_low, lift_high = (bounds[k] for bounds in contrasts.ratio_interval(terms.level))
    lift = f"lift {fixed(contrasts.ratio[k], 2)}"
    if np.isfinite(lift_low):
        lift += f" ({fixed(lift_low, 2)} to {fixed(lift_high, 2)})"
    text = (
        f"low performance ({context.low.words}) is more frequent with {name}: "
        f"{value_text(contrasts.mean[k])} % of such units, {value_text(contrasts.other[k])} % of "
        f"all others, a difference of {value_text(contrasts.difference[k], beside=(low, high))} "
        f"points ({level_of(terms)} interval "
        f"{interval(low, high, 'fraction', contrasts.difference[k])}); {lift}; "
        f"{_n(int(contrasts.n[k]), int(contrasts.n_clusters[k]), terms)}, none of which chose the "
        f"pattern; {terms.own_p(float(confirmed.p_adjusted[k]))}."
    )
    if not confirmed.beyond_parts[k]:
        text += " That it says more than the patterns within it is not shown."
    return terms.start(context.judged.model, text)


def nothing_claim(context: Told, n_tested: int, min_detectable: float | None) -> str:
    """Write that no pattern was confirmed, with the smallest detectable difference.

    Never that there is none.
    """
    mined = context.mined
    text = (
        f"no pattern of attribute values behind low performance ({context.low.words}) was "
        f"confirmed: {mined.n_itemsets:,} sets of values are frequent among one half's "
        f"low-performing units, {len(mined.members)} looked worth testing, and "
    )
    if not n_tested:
        text += "the other half had none of them to judge."
    else:
        text += f"the other half confirmed none of the {n_tested} that it could judge. "
        text += (
            "No possible difference there could have been shown (power 0.8)."
            if min_detectable is None
            else f"The one measured best would have been shown from {value_text(min_detectable)} "
            "points (power 0.8)."
        )
    return context.words.start(context.judged.model, text)


def group_claim(
    context: Told, name: str, group: tuple[str, str], contrasts: Contrasts, k: int, p: float
) -> str:
    """Write that within a pattern one group performs low more or less often than the others."""
    low, high = (bounds[k] for bounds in contrasts.interval(context.words.level))
    title, group_name = context.words.title(group[0]), group[1]
    text = (
        f"with {name}, low performance is {'more' if contrasts.difference[k] > 0 else 'less'} "
        f"frequent for {group_name} ({title}): {value_text(contrasts.mean[k])} %, and "
        f"{value_text(contrasts.other[k])} % of others of known {title} with that pattern "
        f"(difference {value_text(contrasts.difference[k], beside=(low, high))} points, "
        f"{level_of(context.words)} interval "
        f"{interval(low, high, 'fraction', contrasts.difference[k])}); "
        f"{_n(int(contrasts.n[k]), int(contrasts.n_clusters[k]), context.words)}; "
        f"{context.words.own_p(p)}."
    )
    return context.words.start(context.judged.model, text)


def rules_table(context: Told, confirmed: Confirmed) -> pl.DataFrame:
    """Build the table of every rule tested on the second half, confirmed or not."""
    contrasts = confirmed.against_rest
    low, high = contrasts.ratio_interval(context.words.level)
    n = float((contrasts.n + contrasts.n_other).max(initial=1.0))
    return pl.DataFrame(
        {
            "pattern": [pattern_name(context, m) for m in context.mined.members],
            "units": contrasts.n.astype(np.int64),
            "clusters": contrasts.n_clusters,
            "support": contrasts.n * np.nan_to_num(contrasts.mean) / n,
            "confidence": contrasts.mean,
            "of all others": contrasts.other,
            "lift": contrasts.ratio,
            "lift from": low,
            "lift to": high,
            "share of the low-performing": confirmed.coverage,
            "adjusted p": confirmed.p_adjusted,
            "more than its parts": ["yes" if b else "no" for b in confirmed.beyond_parts],
        }
    ).with_columns(pl.selectors.float().fill_nan(None))


def _n(units: int, clusters: int, terms: Words) -> str:
    return f"{units:,} units" + (f" of {clusters:,} clusters" if terms.cluster is not None else "")

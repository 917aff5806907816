"""How the analysis ``patterns`` says what it found: sentences, and the tables behind them."""

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
    """What all sentences about one model share."""

    judged: Judged
    low: Low
    items: Features
    words: Words
    mined: Mined


def pattern_name(told: Told, members: Sequence[int] | npt.NDArray[np.int32]) -> str:
    """Call a pattern by its values: ``light dim and box size small``."""
    said = [
        f"{told.words.title(told.items.attribute[j])} {told.items.value[j]}"
        for j in members
        if j >= 0
    ]
    return " and ".join(said)


def pattern_claim(told: Told, name: str, confirmed: Confirmed, k: int) -> str:
    """Say how much more often a pattern's units perform low, in the half that did not choose it."""
    found, words = confirmed.against_rest, told.words
    low, high = (ends[k] for ends in found.interval(words.level))
    lift_low, lift_high = (ends[k] for ends in found.ratio_interval(words.level))
    lift = f"lift {fixed(found.ratio[k], 2)}"
    if np.isfinite(lift_low):
        lift += f" ({fixed(lift_low, 2)} to {fixed(lift_high, 2)})"
    text = (
        f"low performance ({told.low.words}) is more frequent with {name}: "
        f"{value_text(found.mean[k])} % of such units, "
        f"{value_text(found.other[k])} % of all others, a difference of "
        f"{value_text(found.difference[k], beside=(low, high))} points "
        f"({level_of(words)} interval {interval(low, high, 'fraction', found.difference[k])}); "
        f"{lift}; {_n(int(found.n[k]), int(found.n_clusters[k]), words)}, none of which chose the "
        f"pattern; {words.own_p(float(confirmed.p_adjusted[k]))}."
    )
    if not confirmed.beyond_parts[k]:
        text += " That it says more than the patterns within it is not shown."
    return words.start(told.judged.model, text)


def nothing_claim(told: Told, tested: int, smallest: float | None) -> str:
    """Say that no pattern held: never that there is none; ``smallest`` could have been shown."""
    mined = told.mined
    text = (
        f"no pattern of attribute values behind low performance ({told.low.words}) was confirmed: "
        f"{mined.n_itemsets:,} sets of values are frequent among one half's low-performing units, "
        f"{len(mined.members)} looked worth testing, and "
    )
    if not tested:
        text += "the other half had none of them to judge."
    else:
        text += f"the other half confirmed none of the {tested} that it could judge. "
        text += (
            "No possible difference there could have been shown (power 0.8)."
            if smallest is None
            else f"The one measured best would have been shown from {value_text(smallest)} "
            "points (power 0.8)."
        )
    return told.words.start(told.judged.model, text)


def group_claim(
    told: Told, name: str, group: tuple[str, str], found: Contrasts, k: int, p: float
) -> str:
    """Say that within a pattern one group performs low more or less often than the others."""
    low, high = (ends[k] for ends in found.interval(told.words.level))
    title, value = told.words.title(group[0]), group[1]
    text = (
        f"with {name}, low performance is {'more' if found.difference[k] > 0 else 'less'} frequent "
        f"for {value} ({title}): "
        f"{value_text(found.mean[k])} %, and {value_text(found.other[k])} % of "
        f"others of known {title} with that pattern "
        f"(difference {value_text(found.difference[k], beside=(low, high))} points, "
        f"{level_of(told.words)} interval "
        f"{interval(low, high, 'fraction', found.difference[k])}); "
        f"{_n(int(found.n[k]), int(found.n_clusters[k]), told.words)}; {told.words.own_p(p)}."
    )
    return told.words.start(told.judged.model, text)


def rules_table(told: Told, confirmed: Confirmed) -> pl.DataFrame:
    """Lay out every rule that the second half was asked about, confirmed or not."""
    found = confirmed.against_rest
    low, high = found.ratio_interval(told.words.level)
    n = float((found.n + found.n_other).max(initial=1.0))
    return pl.DataFrame(
        {
            "pattern": [pattern_name(told, m) for m in told.mined.members],
            "units": found.n.astype(np.int64),
            "clusters": found.n_clusters,
            "support": found.n * np.nan_to_num(found.mean) / n,
            "confidence": found.mean,
            "of all others": found.other,
            "lift": found.ratio,
            "lift from": low,
            "lift to": high,
            "share of the low-performing": confirmed.coverage,
            "adjusted p": confirmed.p_adjusted,
            "more than its parts": ["yes" if b else "no" for b in confirmed.beyond_parts],
        }
    ).with_columns(pl.selectors.float().fill_nan(None))


def _n(units: int, clusters: int, words: Words) -> str:
    return f"{units:,} units" + (f" of {clusters:,} clusters" if words.cluster is not None else "")

"""Which attribute values go with low performance: FHIBE's error pattern recognition.

FHIBE mines association rules with FP-growth "to identify attribute values that frequently co-occur
with low performance", and then studies "the error disparities across the unique values of the
attribute" and "its effect in conjunction with the sensitive attributes". Here the same, in four
steps:

1. Units perform low whose score is in the worst quantile, or wrong. Sets of attribute values that
   are frequent among the low-performing units of one half of the clusters are listed, all of them.
2. Each is a rule "who has these values performs low", with support, confidence and lift. One that
   does not exceed every rule with fewer conditions is redundant; of rules about the same units one
   stays. The surest few are kept.
3. The other half of the clusters, which chose nothing, is asked about those few: lift with its
   interval, and a one-sided test against all other units, corrected over the rules (max-T by
   cluster signs).
4. For the rules that held, low performance is laid out by every value of their attributes and by
   sensitive group with and without the pattern, in that second half: each compared with others
   whose value is known.

The paper prints neither thresholds of support and confidence, nor how low performance was cut, nor
any test; the released tool has no such analysis. It mines and reports on the same units, where
among thousands of sets some always look strong (the page ``docs/methods`` shows how often). So the
numbers of step 2 are not reported here as evidence, and the thresholds are settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import polars as pl

from isolux.analyses._contrasts import Contrasts, adjusted_p, contrast, of_known_value
from isolux.analyses._features import Features, items_of, kinds_of, without
from isolux.analyses._judged import (
    Judged,
    OneModel,
    ScoreSettings,
    judged_of,
    low_of,
    nothing_to_judge,
    number_of,
    together,
    words_for,
)
from isolux.analyses._regrouping import at_least, check_settings, settings_of
from isolux.analyses.patterns import words as say
from isolux.analyses.patterns.rules import Confirmed, Half, Limits, confirm, halves, mine
from isolux.disparity.detectable import least_detectable
from isolux.statements.words import Words, lowered
from isolux.vocabulary import works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.info import AnalysisInfo, Reference
from isolux.vocabulary.spec import AuditSpec
from isolux.vocabulary.tables import FINDINGS

INFO = AnalysisInfo(
    title="Patterns of error",
    summary="Which attribute values, alone or together, are associated with low performance, "
    "confirmed on people who did not suggest them.",
    references=(
        works.FHIBE.at("Methods: error pattern recognition"),
        Reference(
            "han-2000",
            "Han, J., Pei, J. & Yin, Y. (2000). Mining frequent patterns without candidate "
            "generation. SIGMOD.",
            "FP-growth: the frequent itemsets",
        ),
        Reference(
            "bayardo-2000",
            "Bayardo, R. J., Agrawal, R. & Gunopulos, D. (2000). Constraint-based rule mining in "
            "large, dense databases. Data Mining and Knowledge Discovery 4, 217-240.",
            "minimum improvement: rules that say nothing new",
        ),
    ),
    assumptions=(
        "Clusters are independent of one another; each half is a random half of them.",
        (
            "A pattern says for whom the model works worse; other things associated with its"
            " values are not removed."
        ),
        (
            "Patterns rarer than the least support, or of fewer people than the audit's minimum, "
            "stay unseen."
        ),
    ),
)
_SHOWN = 30
_BINS = 3  # quantiles of attributes that are numbers


def explain(
    run: Run,
    *,
    low_quantile: float = 0.25,
    low_threshold: float | None = None,
    min_support: float = 0.05,
    max_length: int = 3,
    replicates: int | None = None,
    seed: int | None = None,
    **scores: Unpack[ScoreSettings],
) -> Explained:
    """Find attribute values that go with low performance, and confirm them on other people.

    Parameters
    ----------
    run : Run
        Its ``scores``, ``attributes`` and settings are read.
    low_quantile : float
        Share of units that count as low-performing, if scores have more than two values.
    low_threshold : float, optional
        Scores worse than this are low instead.
    min_support : float
        Smallest share of one half's low-performing units that must have a pattern.
    max_length : int
        Most values in a pattern.
    replicates, seed : int, optional
        For the test and the halves; default: the audit's own.
    **scores
        Which scores are used, and by which attributes: ``metric``, ``worse`` and
        ``attributes``, described in ``ScoreSettings``.

    Returns
    -------
    Explained
        A finding for each confirmed pattern, then for each group that a confirmed pattern meets
        more or less; ``effect``, ``low``, ``high``: difference in the share of low-performing
        units, 0 to 1, more is worse; ``n``: units with the pattern in the second half. If none was
        confirmed, one finding says so. Tables: all rules asked about; low performance by value of
        the confirmed patterns' attributes; and by sensitive group with and without the pattern.

    Raises
    ------
    SpecError
        Settings out of range, a metric without a direction, no attribute that differs.
    UnknownNameError
        No such metric or attribute.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    check_settings("patterns", max_length=at_least(1, max_length))
    if nothing_to_judge(run):
        return Explained(FINDINGS.empty())
    spec, words = settings_of(run, replicates=replicates, seed=seed), words_for(run)
    least = spec.statistics.min_units, spec.statistics.min_clusters
    limits = Limits(min_support, max_length, *least)
    attributes = tuple(scores.get("attributes", ()))
    how = _How(low_quantile, low_threshold, attributes, limits)
    several = judged_of(run, spec.task, words, "patterns", scores)
    parts = [_one_model(run, one, spec, words, how, len(several)) for one in several]
    return together(several, parts)


@dataclass(frozen=True, slots=True)
class _How:
    """The settings of ``explain`` that are no rule's."""

    low_quantile: float
    low_threshold: float | None
    attributes: tuple[str, ...]
    limits: Limits


def _one_model(
    run: Run, judged: Judged, spec: AuditSpec, words: Words, how: _How, models: int
) -> OneModel:
    low = low_of(judged, words, quantile=how.low_quantile, threshold=how.low_threshold)
    if low is None:
        measure = lowered(words.measure(judged.row))
        note = f"{measure}: every unit has the same score, so there is no pattern to look for"
        return OneModel(notes=(note,))
    kinds = kinds_of(run, spec, judged.units, how.attributes, analysis="patterns")
    items = items_of(run, spec, judged.units, kinds, bins=_BINS)
    items = without(items, low.is_low.astype(np.float64))
    first, second = halves(
        items.matrix.astype(np.bool_), low.is_low, judged.cluster, spec.statistics.seed
    )
    told = say.Told(judged, low, items, words, mine(first, how.limits))
    confirmed = confirm(
        second,
        told.mined.members,
        how.limits,
        replicates=spec.statistics.replicates,
        seed=spec.statistics.seed,
    )
    rows, tables = _said(told, confirmed, second, spec, how.limits, models)
    return OneModel(rows, tables, items.notes)


def _said(
    told: say.Told, confirmed: Confirmed, half: Half, spec: AuditSpec, limits: Limits, models: int
) -> tuple[list[dict[str, Any]], dict[str, pl.DataFrame]]:
    """Make one model's findings and tables; tests are corrected for the number of models too."""
    alpha = (1.0 - told.words.level) / models
    p = confirmed.p_adjusted
    held = np.flatnonzero(np.nan_to_num(p, nan=1.0) <= alpha)
    held = held[np.argsort(-confirmed.against_rest.t[held], kind="stable")]
    found = confirmed.against_rest
    rows = []
    for k in held:
        name = say.pattern_name(told, told.mined.members[k])
        claim = say.pattern_claim(told, name, confirmed, int(k))
        own = _row(told, claim, found, int(k), float(p[k]))
        rows.append(own | {"group_a": name, "group_b": "all others"})
    if not rows:
        rows = [_row(told, _nothing(told, confirmed, alpha), None, 0, None)]
    caption = "Patterns that were tested on the second half"
    tables = {caption: say.rules_table(told, confirmed)}
    if len(held):
        tables["Low performance by value of the confirmed patterns' attributes (second half)"] = (
            _by_value(told, half, held)
        )
        by_group, more = _by_group(told, half, held, spec, limits, alpha)
        tables["Confirmed patterns and sensitive groups (second half)"] = by_group
        rows += more
    return rows, tables


def _nothing(told: say.Told, confirmed: Confirmed, alpha: float) -> str:
    """Say that none held, and the difference that the surest rule could have shown."""
    from scipy.special import ndtri

    tested = int(confirmed.enough.sum())
    critical = float(ndtri(1.0 - alpha / max(tested, 1)))
    apart = confirmed.against_rest.apart()
    least = least_detectable(apart, critical, worse_is_lower=False, most=1.0)
    known = least[confirmed.enough & np.isfinite(least)]
    return say.nothing_claim(told, tested, float(known.min()) if len(known) else None)


def _row(
    told: say.Told, claim: str, found: Contrasts | None, k: int, p: float | None
) -> dict[str, Any]:
    row = told.judged.finding("patterns", claim, reference="fhibe", n=len(told.judged.value))
    row |= {"p_adjusted": p}
    if found is not None:
        low, high = found.interval(told.words.level)
        row |= {"effect": float(found.difference[k]), "low": number_of(low[k])}
        row |= {"high": number_of(high[k]), "n": int(found.n[k])}
    return row


def _by_value(told: say.Told, half: Half, held: Any) -> pl.DataFrame:
    """Lay out low performance over all values of the attributes that confirmed patterns name."""
    used = told.mined.members[held]
    names = dict.fromkeys(told.items.attribute[j] for j in used[used >= 0])
    places = np.concatenate([told.items.columns(name) for name in names])
    known = of_known_value(half.items, told.items.attribute)[:, places]
    own = half.sums(half.items[:, places])
    found = contrast(own, half.sums(known).less(own))
    low, high = found.interval(told.words.level)
    return (
        pl.DataFrame(
            {
                "attribute": [told.words.title(told.items.attribute[j]) for j in places],
                "value": [told.items.value[j] for j in places],
                "units": found.n.astype(np.int64),
                "clusters": found.n_clusters,
                "low-performing": found.mean,
                "of others of known value": found.other,
                "difference": found.difference,
                "from": low,
                "to": high,
            }
        )
        .with_columns(pl.selectors.float().fill_nan(None))
        .head(_SHOWN)
    )


def _by_group(
    told: say.Told, half: Half, held: Any, spec: AuditSpec, limits: Limits, alpha: float
) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """Ask within each confirmed pattern how sensitive groups fare; a family of its own."""
    pairs = [(int(k), j) for k in held for j in _sensitive(told.items, spec, told.mined.members[k])]
    if not pairs:
        return pl.DataFrame(), []
    rule, item = (np.asarray(side) for side in zip(*pairs, strict=True))
    cover = half.cover(told.mined.members[rule])
    known = of_known_value(half.items, told.items.attribute)[:, item]
    within = half.sums(cover & known)
    own = half.sums(cover & half.items[:, item])
    found = contrast(own, within.less(own))
    outside = half.sums(~cover & half.items[:, item])
    others = outside.count.sum(axis=0)
    share = np.divide(
        outside.total.sum(axis=0), others, out=np.full(len(rule), np.nan), where=others > 0
    )
    enough = found.enough(limits.min_units, limits.min_clusters)
    p = adjusted_p(
        [found],
        replicates=spec.statistics.replicates,
        seed=spec.statistics.seed,
        one_sided=False,
        tested=enough,
    )
    names = [say.pattern_name(told, told.mined.members[k]) for k in rule]
    table = pl.DataFrame(
        {
            "pattern": names,
            "attribute": [told.words.title(told.items.attribute[j]) for j in item],
            "group": [told.items.value[j] for j in item],
            "units with it": found.n.astype(np.int64),
            "low-performing": np.where(enough, found.mean, np.nan),
            "units without": others.astype(np.int64),
            "low-performing without": np.where(others >= limits.min_units, share, np.nan),
            "adjusted p": p,
        }
    ).with_columns(pl.selectors.float().fill_nan(None))
    rows = []
    sure = np.flatnonzero(np.nan_to_num(p, nan=1.0) <= alpha)
    for k in sure:
        if _mirrored(int(k), sure, rule, [told.items.attribute[j] for j in item], found):
            continue
        group = (told.items.attribute[item[k]], str(told.items.value[item[k]]))
        claim = say.group_claim(told, names[k], group, found, int(k), float(p[k]))
        own_row = _row(told, claim, found, int(k), float(p[k]))
        rows.append(
            own_row
            | {
                "attribute": group[0],
                "group_a": group[1],
                "group_b": "others of known value with the pattern",
            }
        )
    return table.head(_SHOWN), rows


def _mirrored(k: int, sure: Any, rule: Any, attribute: Sequence[str], found: Contrasts) -> bool:
    """Whether the only other group of the pattern says the same, and is the one worse off."""
    return found.difference[k] < 0 and any(
        rule[j] == rule[k]
        and attribute[j] == attribute[k]
        and found.n[j] == found.n_other[k]
        and found.n_other[j] == found.n[k]
        and found.difference[j] > 0
        for j in sure
    )


def _sensitive(items: Features, spec: AuditSpec, members: Any) -> list[int]:
    """List the items of the audit's own attributes that the pattern does not name itself."""
    audited = set(spec.groups.attributes)
    named = {items.attribute[j] for j in members if j >= 0}
    return [j for j, name in enumerate(items.attribute) if name in audited - named]

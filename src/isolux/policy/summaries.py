"""A summary of how groups differ decides nothing alone: what a policy must ask beside it.

A model that fails everyone fails all groups alike. Of 126 published face verifiers the three that
summaries of ratios rank first have mean false non-match rates of .67, 1.00 and .86.
"""

from __future__ import annotations

from collections.abc import Sequence

from isolux.policy.rules import Rule
from isolux.vocabulary.errors import SpecError

SUMMARIES = frozenset(
    {
        "fairness_discrepancy_rate", "false_match_and_non_match_rates", "garbe", "gini",
        "inequity_rate", "max_over_geometric_mean", "max_over_min", "skewed_error_ratio",
    }
)  # fmt: skip
"""Numbers of an attribute's groups, which are no metric of anyone."""

_OTHER_ERROR = {
    one: other
    for pair in (
        ("false_match_rate", "false_non_match_rate"),
        ("false_positive_identification_rate", "false_negative_identification_rate"),
        ("challenge_false_positive_rate", "challenge_false_negative_rate"),
    )
    for one, other in (pair, pair[::-1])
}
"""Two errors of which a threshold trades one for the other."""
_BETWEEN = ("within", "worse_by_at_most")
_HINT = "a model that fails everyone fails all groups alike, and would pass"


def refuse_summary_alone(rules: Sequence[Rule], where: str) -> None:
    """Refuse a rule of differences between groups without limits of the errors themselves.

    Examples
    --------
    >>> from isolux.policy.amounts import Amount
    >>> alone = Rule("ratio_at_least", 1, metric="selected", attribute="race", ratio=0.8)
    >>> refuse_summary_alone([alone], "the policy")
    Traceback (most recent call last):
    isolux.vocabulary.errors.SpecError: a ratio of groups alone says nothing of how large the ...
    """
    limited = {
        rule.metric for rule in rules
        if rule.kind in ("at_least", "at_most") and rule.attribute is None
    }  # fmt: skip
    for rule in rules:
        at = f"{where}, rule {rule.place}"
        if rule.metric in SUMMARIES:
            raise SpecError(
                f"{rule.metric!r} is a summary of how groups differ, and decides nothing alone",
                expected="a rule of each error for everyone (at_most), and of its differences"
                " between groups (within, worse_by_at_most, ratio_at_least)",
                found=f"metric: {rule.metric}", where=at, hint=_HINT,
            )  # fmt: skip
        metric = str(rule.metric)
        needed = {metric}
        if rule.kind == "ratio_at_least" and metric in _OTHER_ERROR:
            needed.add(_OTHER_ERROR[metric])
        elif rule.kind != "ratio_at_least" and not (
            rule.kind in _BETWEEN and metric in _OTHER_ERROR
        ):
            continue
        missing = sorted(needed - limited)
        if missing:
            what = "a ratio" if rule.kind == "ratio_at_least" else "a difference"
            raise SpecError(
                f"{what} of groups alone says nothing of how large the errors are",
                expected="beside it a rule for everyone: "
                + " and ".join(f"`metric: {name}`" for name in missing)
                + " with at_least or at_most and no attribute",
                found=f"{rule.kind} of {metric} alone", where=at, hint=_HINT,
            )  # fmt: skip

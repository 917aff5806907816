"""What a policy leaves out of a run: attributes that no rule asks about, and what was found there.

That every rule holds says nothing of an attribute without a rule, so the answer names them.
"""

from __future__ import annotations

import polars as pl

from isolux.policy.asking import Measured, plain
from isolux.policy.rules import Policy
from isolux.vocabulary.spec import recorded_spec

_FACTS = ("covered", "ran")
_SHOWN = 8
_FOUND = " (a difference was found)"


def found_differences(measured: Measured) -> list[tuple[str, str]]:
    """List attribute and metric of each difference that the audit itself found."""
    findings = measured.findings
    if not findings.height:
        return []
    alpha = 1.0 - recorded_spec(measured.record).statistics.level
    rows = findings.filter(
        pl.col("analysis") == "group_gaps",
        pl.col("p_adjusted") <= alpha,
        pl.col("attribute").is_not_null(),
        pl.col("metric").is_not_null(),
    ).sort("rank")
    return list(dict.fromkeys(rows.select("attribute", "metric").iter_rows()))


def unasked(policy: Policy, measured: Measured) -> str:
    """Name the attributes of a run whose groups no rule holds to a limit; empty: there are none."""
    if any(rule.kind == "none_above" for rule in policy.rules):
        return ""
    asked = {plain(rule.attribute) for rule in policy.rules
             if rule.attribute is not None and rule.kind not in _FACTS}  # fmt: skip
    left = [name for name in measured.estimates.domain_of if plain(name) not in asked]
    if not left:
        return ""
    differ = {plain(name) for name, _ in found_differences(measured)}
    found = [f"{name}{_FOUND}" for name in left if plain(name) in differ]
    named = found + [name for name in left if plain(name) not in differ]
    counted = {plain(rule.attribute) for rule in policy.rules
               if rule.attribute is not None and rule.kind == "covered"}  # fmt: skip
    bare = [one for one in named if plain(_name(one)) not in counted]
    parts = [f"not asked by any rule: {_listed(bare)}"] if bare else []
    rest = [one for one in named if one not in bare]
    if rest:
        parts.append("counted by a rule, but no rule checks how well the model "
                     f"works for them: {_listed(rest)}")  # fmt: skip
    return "; ".join(parts)


def _name(entry: str) -> str:
    return entry.removesuffix(_FOUND)


def _listed(named: list[str]) -> str:
    shown = max(_SHOWN, sum(one.endswith(_FOUND) for one in named))
    more = f" and {len(named) - shown:,} more" if named[shown:] else ""
    return ", ".join(named[:shown]) + more

"""Rules and people without a prediction: too many of them, and nothing is shown."""

from __future__ import annotations

from isolux.policy.asking import Measured, plain
from isolux.policy.cells import Closed
from isolux.policy.rules import Rule


def without_answer(rule: Rule, measured: Measured, most: float) -> list[Closed]:
    """Name everyone or each asked group where a larger share than ``most`` has no prediction."""
    found: dict[str, Closed] = {}
    wanted = {plain(name) for name in (*rule.groups, *([rule.than] if rule.than else []))}
    for row in () if measured.silent is None else measured.silent.iter_rows(named=True):
        n, missing, group = row["n"], row["missing"], row["group"]
        ours = rule.kind == "none_above" or row["attribute"] == rule.attribute
        asked = group is None or (ours and (not wanted or plain(group) in wanted))
        right_model = rule.model in (None, row["model"])
        if asked and right_model and n and missing > most * n:
            who = "everyone" if group is None else str(group)
            found[who] = Closed(
                who,
                f"{missing:,} of {n:,} people ({100 * missing / n:.1f} %) have no prediction, and "
                f"the policy allows {100 * most:g} % (unanswered_at_most)",
            )
    return list(found.values())

"""Does an audit's first sentence name the group for which the model is worst, however small it is?

The worlds and the judge were written by somebody who did not know the rule (``_who_leads_worlds``).
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import polars as pl
import pytest

import isolux
from isolux.api.audit import Audit
from isolux.statements.answer import Answer, answer_from_run
from tests.laws._figures import FULL, KEPT, PART, at_least, record
from tests.laws._who_leads_worlds import (
    JUDGED,
    PLANTED,
    SHARES,
    UNKNOWN,
    Cell,
    World,
    cells,
    draw_world,
    has_words,
    judge_sentences,
)

pytestmark = pytest.mark.law

FIRST_SEED, SEEDS, REPLICATES = 1000, 5, 199
PER_CELL = max(1, round(SEEDS * PART)) if FULL else 1

# Commit 760b3a57, by attributes, what was planted, and whether intersections were asked for. For
# each share of the minority: was a pair of known groups established, with seeds 1000 to 1004?
AT_760B3A57 = {
    (1, "small", False): "11110 11101 11111 11111 11111 11111",
    (1, "large", False): "11111 11011 11111 11111 00110 11011",
    (1, "both", False): "11111 11111 11111 01111 01111 11111",
    (1, "none", False): "10010 10000 00100 00000 00000 00000",
    (2, "small", False): "10010 00111 11111 10011 11110 11111",
    (2, "small", True): "10011 11111 11111 11111 11111 10101",
    (2, "large", False): "10111 11110 11111 11101 10111 10111",
    (2, "large", True): "01101 11111 11111 11111 10101 11110",
    (2, "both", False): "01111 11111 11111 11111 11111 11110",
    (2, "both", True): "11111 11111 11110 11101 11111 11111",
    (2, "intersection", False): "00000 00100 00101 01001 00001 11101",
    (2, "intersection", True): "01000 11111 10101 11111 10111 11111",
    (2, "cancelled", True): "00000 00101 01111 11111 11101 11111",
    (2, "none", False): "00000 00010 01000 00010 01100 00000",
    (2, "none", True): "00000 00100 00100 00001 10000 10000",
    (3, "small", False): "00011 11111 11111 01111 11111 10111",
    (3, "small", True): "01011 01111 11010 11111 11011 11111",
    (3, "large", False): "11111 11111 11111 10111 11010 11110",
    (3, "large", True): "10111 11101 01110 10110 10010 00011",
    (3, "both", False): "11111 10111 11111 11111 11111 11111",
    (3, "both", True): "11011 01111 11110 11111 11111 11111",
    (3, "intersection", False): "00000 11000 11011 11110 00001 10011",
    (3, "intersection", True): "00000 10001 11101 11110 10111 11111",
    (3, "cancelled", True): "00000 01011 10100 01111 11111 11111",
    (3, "none", False): "10100 00000 11001 01000 00000 00000",
    (3, "none", True): "11001 01010 00000 00000 00100 00101",
}


@dataclass(frozen=True)
class Told:
    """What an audit said of one world."""

    cell: Cell
    seed: int
    is_kept: bool | None
    is_visible: bool
    is_established: bool
    was_established: bool
    is_widest_false: bool
    answer: Answer


def asked() -> list[tuple[Cell, int]]:
    """Take the worlds: all, or of a small run one share for each plan, which go round."""
    if FULL:
        return [(cell, FIRST_SEED + i) for cell in cells() for i in range(PER_CELL)]
    plans = list(AT_760B3A57)
    return [
        (Cell(SHARES[(i + step) % len(SHARES)], k, injected, crossed), FIRST_SEED + step % SEEDS)
        for i, (k, injected, crossed) in enumerate(plans)
        for step in (1, 3)
    ]


def audit_world(cell: Cell, seed: int) -> Told:
    world = draw_world(seed, cell)
    audit = isolux.audit(
        world.frame, id="id", target="truth", prediction_column="answer", metric=["accuracy"],
        by=list(world.by), replicates=REPLICATES, seed=0,
    )  # fmt: skip
    known = ~pl.any_horizontal(pl.col("group_a", "group_b").str.contains(UNKNOWN))
    pairs = audit.disparities.filter(pl.col("kind") == "difference", known)
    answer = answer_from_run(audit.run)
    further = " ".join(answer.further)
    marks = AT_760B3A57[cell.n_attributes, cell.injected, cell.with_intersections].split()
    is_shown = pairs.filter(pl.col("status") == "ok", pl.col("p_adjusted") <= 0.05).height > 0
    told = " ".join([answer.first, further, *audit.findings["claim"]])
    is_kept, is_visible = _judge(answer, world, audit) if is_shown else (None, True)
    was_shown = marks[SHARES.index(cell.share)][seed - FIRST_SEED] == "1"
    is_false = _is_widest_false(told, world)
    return Told(cell, seed, is_kept, is_visible, is_shown, was_shown, is_false, answer)


def _judge(answer: Answer, world: World, audit: Audit) -> tuple[bool | None, bool]:
    """Judge the sentences, and tell whether the data show the group that is truly worst at all.

    They show it if a pair with it is established, or if it looks worse than the group that leads.
    A group that is not established need only be named as perhaps worse, or as too small.
    """
    further = " ".join(answer.further)
    kept = judge_sentences(answer.first, further, world)
    if kept or not world.plants:
        return kept, True
    worst = next((plant for plant in world.plants if plant.is_judged), world.plants[0])
    name = " × ".join(worst.words)
    pairs = audit.disparities.filter(pl.col("kind") == "difference", pl.col("p_adjusted") <= 0.05)
    is_established = name in {*pairs["group_a"], *pairs["group_b"]}
    if kept is None:
        return (False, True) if is_established else (None, True)
    doubts = [s for s in answer.further if s.startswith("Perhaps") or "too little data" in s]
    is_named = any(has_words(s, worst.words) for s in doubts)
    value = dict(audit.group_metrics.select("group", "value").iter_rows())
    leader = audit.findings["group_a"][0]
    looks_worse = (value.get(name) or 0.0) < (value.get(leader) or 1.0)
    return not is_established and is_named, is_established or looks_worse


def _is_widest_false(text: str, world: World) -> bool:
    """Tell whether a gap is called the widest that is not that of any attribute's judged groups."""
    gaps = []
    for attribute in world.by:
        rows = world.frame.group_by(attribute.split("*")).agg(
            n=pl.len(), right=(pl.col("truth") == pl.col("answer")).mean()
        )
        known = ~pl.any_horizontal(pl.col(attribute.split("*")) == UNKNOWN)
        right = rows.filter(known, pl.col("n") >= JUDGED)["right"].to_list()
        gaps.append(max(right, default=0.0) - min(right, default=0.0))
    said = re.findall(r"widest[^.;]*?(\d+(?:\.\d+)?) (?:points|below|lower)", text)
    return any(all(abs(float(x) / 100 - gap) > 6e-4 for gap in gaps) for x in said)


@functools.cache
def all_told() -> tuple[Told, ...]:
    return tuple(audit_world(cell, seed) for cell, seed in asked())


@pytest.mark.parametrize("injected", PLANTED)
def test_the_first_sentence_names_the_group_that_is_served_worst(injected):
    told = [t for t in all_told() if t.cell.injected == injected]
    established = [t for t in told if t.is_established]
    judged = [t for t in established if t.is_kept is not None]
    n_kept = sum(t.is_kept is True for t in judged)
    visible = [t for t in judged if t.is_visible]
    row = {
        "planted in": injected, "worlds": len(told),
        "something established, %": len(established) / len(told),
        "on commit 760b3a57, %": sum(t.was_established for t in told) / len(told),
        "of these judged": len(judged),
        "the first sentence names it, %": n_kept / len(judged) if judged else None,
        "the data show it": len(visible),
        "and the first sentence names it, %": n_kept / len(visible) if judged else None,
    }  # fmt: skip
    record(f"leads-{PLANTED.index(injected)}", [row], worlds=len(told), replicates=REPLICATES)
    wrong = [(t.cell, t.seed, t.answer.first, t.answer.further) for t in visible if not t.is_kept]
    if judged:
        assert n_kept >= at_least(0.95, len(visible), full=0.95) * len(visible), (row, wrong)
        assert n_kept >= at_least(0.9, len(judged), full=0.9) * len(judged), row


def test_something_is_established_at_least_as_often_as_on_commit_760b3a57():
    told = [t for t in all_told() if t.cell.injected != "none"]
    lost = [(t.cell, t.seed) for t in told if t.was_established and not t.is_established]
    now, before = (sum(getattr(t, f"{when}_established") for t in told) for when in ("is", "was"))
    slack = 0 if KEPT else 2
    assert now >= before - slack, (now, before, lost)


def test_widest_is_said_of_nothing_else():
    assert [(t.cell, t.seed) for t in all_told() if t.is_widest_false] == []

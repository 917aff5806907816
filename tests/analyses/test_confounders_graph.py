"""Graphs: reading them, their paths against an independent separation, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.analyses.confounders.graph import Graph, parse_causal_graph
from isolux.core.errors import SpecError


def separated(arrows, a, b, given):
    """Whether a and b are d-separated: Lauritzen's moral graph of their ancestors, no paths."""
    kept = {a, b, *given}
    while True:
        above = {cause for cause, effect in arrows if effect in kept} - kept
        if not above:
            break
        kept |= above
    own = [(x, y) for x, y in arrows if x in kept and y in kept]
    edges = {frozenset(arrow) for arrow in own}
    edges |= {frozenset((x, z)) for x, y in own for z, w in own if y == w and x != z}
    reached, waiting = {a}, [a]
    while waiting:
        at = waiting.pop()
        near = {n for edge in edges if at in edge for n in edge} - reached - set(given)
        reached |= near
        waiting += near
    return b not in reached


def test_paths_say_what_separation_says():
    """400 random graphs of six names: a set separates two names when it leaves no path open."""
    rng = np.random.default_rng(0)
    names = ["tone", "a", "b", "c", "d", "score"]
    seen = {True: 0, False: 0}
    for _ in range(400):
        order = rng.permutation(names).tolist()
        arrows = tuple(
            (order[i], order[j]) for i in range(6) for j in range(i + 1, 6) if rng.random() < 0.35
        )
        graph = Graph(arrows)
        given = [name for name in "abcd" if rng.random() < 0.4]
        any_open = any(graph.is_open(path, given) for path in graph.list_paths("tone"))
        apart = separated(arrows, "tone", "score", given)
        assert any_open != apart, (arrows, given)
        seen[apart] += 1
    assert min(seen.values()) > 50, seen


@pytest.mark.parametrize(
    ("text", "given", "blocks", "opens", "leaves", "cuts", "holds"),
    [
        ("light -> tone, light -> score", ["light"], ["tone ← light → score"], [], [], [], True),
        ("light -> tone, light -> score", [], [], [], ["tone ← light → score"], [], False),
        ("tone -> light -> score", ["light"], [], [], [], ["tone → light → score"], False),
        ("tone -> light <- score", ["light"], [], ["tone → light ← score"], [], [], False),
        # The M: neither hidden cause does harm until light is held alike.
        ("(u) -> tone, (u) -> light, (v) -> light, (v) -> score", ["light"], [],
         ["tone ← (u) → light ← (v) → score"], [], [], False),
        # A descendant of a collider opens it too.
        ("tone -> x <- score, x -> light", ["light"], [], ["tone → x ← score"], [], [], False),
        ("(u) -> tone, (u) -> score, light -> score", ["light"], [], [],
         ["tone ← (u) → score"], [], False),
    ],
)  # fmt: skip
def test_what_a_mix_does(text, given, blocks, opens, leaves, cuts, holds):
    found = parse_causal_graph(text).describe_adjustment("tone", given)
    assert (list(found.blocks), list(found.opens)) == (blocks, opens)
    assert (list(found.leaves), list(found.cuts_causal)) == (leaves, cuts)
    assert found.meets_backdoor is holds


def test_the_smallest_set_that_is_enough():
    """Pearl's figure 3.4: either x3 with x4 or x4 with x5 blocks all back doors, x4 alone not."""
    text = (
        "x1 -> x3, x1 -> x4, x2 -> x4, x2 -> x5, x3 -> tone, x4 -> tone, x4 -> score, x5 -> score,"
        "tone -> x6 -> score"
    )
    graph = parse_causal_graph(text)
    names = ["x1", "x2", "x3", "x4", "x5", "x6"]
    assert not graph.describe_adjustment("tone", ["x4"]).meets_backdoor
    assert graph.describe_adjustment("tone", ["x3", "x4"]).meets_backdoor
    assert graph.describe_adjustment("tone", ["x4", "x5"]).meets_backdoor
    found = graph.find_adjustment_set("tone", names)
    assert found is not None
    assert "x4" in found
    assert len(found) == 2
    assert graph.find_adjustment_set("tone", ["x3", "x5"]) is None
    assert parse_causal_graph("tone -> score").find_adjustment_set("tone", names) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a -> b -> a, a -> score", r"has a cycle.*found: a → b → a"),
        ("a -> a, a -> score", r"has a cycle.*found: a → a"),
        ("tone -> light", r"has no 'score'"),
        ("tone, light -> score", r"has no arrow.*found: 'tone'"),
        ("tone -> -> score", r"lacks a name"),
        ("(tone -> score", r"lacks a name"),
        (", ".join(f"x{i} -> score" for i in range(20)), r"too large.*found: 21 names"),
        (", ".join(f"x{i} -> x{j}" for i in range(11) for j in range(i)) + ", x0 -> score",
         None),
    ],
)  # fmt: skip
def test_what_is_refused(text, message):
    if message is None:  # 12 names, nearly all of them joined
        with pytest.raises(SpecError, match=r"(?s)too dense.*more than 300"):
            parse_causal_graph(text).list_paths("x10")
        return
    with pytest.raises(SpecError, match=f"(?s){message}"):
        parse_causal_graph(text)

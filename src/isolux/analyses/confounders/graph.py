"""A small causal graph: read from a text, checked for cycles, asked what an adjustment does.

The first step of the analysis ``confounders`` where a ``dag`` is given. A path between the groups
and the score is a way by which the two can go together. One that begins with an arrow into the
groups is a back door: what goes by it is not brought about by the group. Adjusting for a set of
attributes blocks a path at any of them that is not a collider on it, and opens a path at a collider
that is among them, or has a descendant among them (d-separation). Pearl's back-door rule asks of a
set that it hold no descendant of the groups and block every back door.

The paths of a small graph are simply listed. That costs more than a search for separation would,
and gives what a reader needs: the very paths that are blocked, opened or left open.

References
----------
.. [1] Pearl, J. (2009). Causality, 2nd edition. Cambridge University Press. Definitions 1.2.3
   (d-separation) and 3.3.1 (the back-door criterion).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, pairwise

from isolux.vocabulary.errors import SpecError

SCORE = "score"
"""What the outcome is called in a graph, whichever metric is asked about."""

_MAX_NAMES, _MAX_PATHS = 12, 300
"""A graph with more has too many paths to list, and is more than a reader would check."""
_MAX_HELD = 3

_ARROW = re.compile(r"->|<-|→|←")
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Adjustment:
    """What holding attributes alike does to the paths from the groups to the score, as written.

    Parameters
    ----------
    blocks : tuple of str
        Paths that are not the groups' own doing, open before and blocked by it.
    opens : tuple of str
        Such paths that were blocked and are open with it.
    leaves : tuple of str
        Such paths that stay open.
    cuts : tuple of str
        Causal paths that it blocks: a part of the groups' own effect.
    descendants, after : tuple of str
        Held attributes that the groups, or the score, bring about.
    """

    blocks: tuple[str, ...]
    opens: tuple[str, ...]
    leaves: tuple[str, ...]
    cuts: tuple[str, ...]
    descendants: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the back-door rule holds: no descendant is held, and no back door is open."""
        return not (self.opens or self.leaves or self.descendants or self.after)


@dataclass(frozen=True, slots=True)
class Graph:
    """Arrows from causes to effects, without a cycle.

    ``arrows`` are (cause, effect); ``hidden`` are the names that stand in parentheses: what is not
    annotated, so that nothing can be adjusted for it.
    """

    arrows: tuple[tuple[str, str], ...]
    hidden: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """Every name, in the order in which the graph mentions it."""
        return list(dict.fromkeys(name for arrow in self.arrows for name in arrow))

    def below(self, name: str) -> set[str]:
        """Descendants of a name: what it brings about, directly or by way of others."""
        return {path[-1] for path in self._walks(name)}

    def above(self, name: str) -> set[str]:
        """Ancestors of a name."""
        return {other for other in self.names if name in self.below(other)}

    def cycle(self, name: str) -> Path | None:
        """Walk from a name back to itself, by as few arrows as there are; None: there is no way."""
        return next((path for path in self._walks(name) if path[-1] == name), None)

    def _walks(self, start: str) -> Iterator[Path]:
        """Follow arrows from a name, to each name that they lead to once, the nearest first."""
        waiting: list[Path] = [(start,)]
        seen: set[str] = set()
        for path in waiting:
            for cause, effect in self.arrows:
                if cause == path[-1] and effect not in seen:
                    seen.add(effect)
                    waiting.append((*path, effect))
                    yield waiting[-1]

    def paths(self, start: str) -> list[Path]:
        """List every path from a name to the score, whichever way its arrows point."""
        near: dict[str, list[str]] = {name: [] for name in self.names}
        for cause, effect in self.arrows:
            near[cause].append(effect)
            near[effect].append(cause)

        def walk(path: Path) -> Iterator[Path]:
            if path[-1] == SCORE:
                yield path
                return
            for name in near[path[-1]]:
                if name not in path:
                    yield from walk((*path, name))

        if start not in near:
            return []
        paths = list(islice(walk((start,)), _MAX_PATHS + 1))
        if len(paths) > _MAX_PATHS:
            raise _refusal(
                "the graph is too dense",
                f"at most {_MAX_PATHS} paths from {start} to {SCORE}",
                f"more than {_MAX_PATHS}",
            )
        return paths

    def is_open(self, path: Path, given: Collection[str]) -> bool:
        """Tell whether a path lets anything through when ``given`` is held alike."""
        for before, name, after in zip(path, path[1:], path[2:], strict=False):
            if (before, name) in self.arrows and (after, name) in self.arrows:  # a collider
                if not ({name} | self.below(name)) & set(given):
                    return False
            elif name in given:
                return False
        return True

    def drawn(self, path: Path) -> str:
        """Write a path with its arrows, what is not annotated in parentheses."""
        text = ""
        for before, name in zip((None, *path), path, strict=False):
            arrow = "" if before is None else " → " if (before, name) in self.arrows else " ← "
            text += arrow + (f"({name})" if name in self.hidden else name)
        return text

    def adjustment(self, start: str, given: Sequence[str]) -> Adjustment:
        """Say what holding some attributes alike does to the paths from the groups to the score."""
        texts: dict[tuple[bool, bool, bool], tuple[str, ...]] = {}
        for path in self.paths(start):
            is_causal = all(step in self.arrows for step in pairwise(path))
            key = is_causal, self.is_open(path, ()), self.is_open(path, given)
            texts[key] = (*texts.get(key, ()), self.drawn(path))
        return Adjustment(
            blocks=texts.get((False, True, False), ()),
            opens=texts.get((False, False, True), ()),
            leaves=texts.get((False, True, True), ()),
            cuts=texts.get((True, True, False), ()),
            descendants=tuple(name for name in given if name in self.below(start)),
            after=tuple(name for name in given if name in self.below(SCORE)),
        )

    def enough(self, start: str, annotated: Sequence[str]) -> tuple[str, ...] | None:
        """Find the smallest set of up to three annotated attributes that meets the back-door rule.

        None: no such set does.
        """
        useless = {start, SCORE} | self.below(start) | self.below(SCORE)
        usable = [name for name in annotated if name in self.names and name not in useless]
        for k in range(min(len(usable), _MAX_HELD) + 1):
            for given in combinations(usable, k):
                if self.adjustment(start, given).holds:
                    return given
        return None


def read_graph(text: str) -> Graph:
    """Read a graph from arrows between names.

    Examples
    --------
    >>> graph = read_graph("tone -> light <- score, (skill) -> score")
    >>> graph.arrows
    (('tone', 'light'), ('score', 'light'), ('skill', 'score'))
    >>> graph.adjustment("tone", ["light"]).opens
    ('tone → light ← score',)
    """
    arrows: list[tuple[str, str]] = []
    hidden: set[str] = set()
    for chain in filter(None, (part.strip() for part in re.split(r"[,;\n]", text))):
        names = [_read_name(part, hidden, chain) for part in _ARROW.split(chain)]
        if len(names) < 2:
            raise _refusal("a part of the graph has no arrow", "such as tone -> light", repr(chain))
        for a, b, arrow in zip(names, names[1:], _ARROW.findall(chain), strict=False):
            arrows.append((b, a) if arrow in ("<-", "←") else (a, b))
    graph = Graph(tuple(dict.fromkeys(arrows)), frozenset(hidden))
    names = graph.names
    if SCORE not in names:
        raise _refusal(
            f"the graph has no {SCORE!r}",
            f"arrows that lead to {SCORE}, which stands for the metric",
            repr(text),
        )
    if len(names) > _MAX_NAMES:
        raise _refusal(
            "the graph is too large", f"at most {_MAX_NAMES} names", f"{len(names)} names"
        )
    cycle = next(filter(None, map(graph.cycle, names)), None)
    if cycle is not None:
        raise _refusal(
            "the graph has a cycle: something would be its own cause",
            "arrows from causes to effects that never lead back",
            " → ".join(cycle),
        )
    return graph


def _read_name(part: str, hidden: set[str], chain: str) -> str:
    name = part.strip()
    bare = name.removeprefix("(").removesuffix(")").strip()
    if not bare or (name.startswith("(") != name.endswith(")")):
        raise _refusal(
            "an arrow of the graph lacks a name", "a name on both sides of each arrow", repr(chain)
        )
    if bare != name:
        hidden.add(bare)
    return bare


def _refusal(problem: str, expected: str, found: str) -> SpecError:
    where = "--analysis-option confounders.dag"
    return SpecError(problem, expected=expected, found=found, where=where)

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

__all__ = ["SCORE", "Adjustment", "Graph", "read_graph"]

SCORE = "score"
"""What the outcome is called in a graph, whichever metric is asked about."""

WHERE = "--analysis-option confounders.dag"
MOST_NAMES, MOST_PATHS = 12, 300
"""A graph with more has too many paths to list, and is more than a reader would check."""
_MOST_HELD = 3

_ARROW = re.compile(r"->|<-|→|←")
_BACK = ("<-", "←")
Path = tuple[str, ...]


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
        return _reached(self.arrows, name)

    def above(self, name: str) -> set[str]:
        """Ancestors of a name."""
        return _reached([(effect, cause) for cause, effect in self.arrows], name)

    def paths(self, start: str, end: str = SCORE) -> list[Path]:
        """List every path between two names, whichever way its arrows point."""
        near: dict[str, list[str]] = {name: [] for name in self.names}
        for cause, effect in self.arrows:
            near[cause].append(effect)
            near[effect].append(cause)

        def walk(path: Path) -> Iterator[Path]:
            if path[-1] == end:
                yield path
                return
            for name in near[path[-1]]:
                if name not in path:
                    yield from walk((*path, name))

        if start not in near:
            return []
        found = list(islice(walk((start,)), MOST_PATHS + 1))
        if len(found) > MOST_PATHS:
            raise _refused(
                "the graph is too dense",
                f"at most {MOST_PATHS} paths from {start} to {end}",
                f"more than {MOST_PATHS}",
            )
        return found

    def is_open(self, path: Path, given: Collection[str]) -> bool:
        """Tell whether a path lets anything through when ``given`` is held alike."""
        for before, name, after in zip(path, path[1:], path[2:], strict=False):
            collider = (before, name) in self.arrows and (after, name) in self.arrows
            held = name in given
            if collider and not held and not self.below(name) & set(given):
                return False
            if not collider and held:
                return False
        return True

    def is_causal(self, path: Path) -> bool:
        """Tell whether all arrows of a path point away from its start."""
        return all(step in self.arrows for step in pairwise(path))

    def drawn(self, path: Path) -> str:
        """Write a path with its arrows: ``tone → light ← score``."""
        steps = [f"{'→' if (a, b) in self.arrows else '←'} {self.shown(b)}"
                 for a, b in pairwise(path)]  # fmt: skip
        return " ".join([self.shown(path[0]), *steps])

    def shown(self, name: str) -> str:
        """Write a name as the graph does: in parentheses where it is not annotated."""
        return f"({name})" if name in self.hidden else name

    def adjustment(self, start: str, given: Sequence[str]) -> Adjustment:
        """Say what holding some attributes alike does to the paths from the groups to the score."""
        paths = self.paths(start)
        other = [path for path in paths if not self.is_causal(path)]
        causal = [path for path in paths if self.is_causal(path)]
        told = {path: (self.is_open(path, ()), self.is_open(path, given)) for path in paths}

        def drawn(some: list[Path], *states: tuple[bool, bool]) -> tuple[str, ...]:
            return tuple(self.drawn(path) for path in some if told[path] in states)

        return Adjustment(
            blocks=drawn(other, (True, False)),
            opens=drawn(other, (False, True)),
            leaves=drawn(other, (True, True)),
            cuts=drawn(causal, (True, False)),
            descendants=tuple(name for name in given if name in self.below(start)),
            after=tuple(name for name in given if name in self.below(SCORE)),
        )

    def enough(self, start: str, annotated: Sequence[str]) -> tuple[str, ...] | None:
        """Find the smallest set of up to three annotated attributes that meets the back-door rule.

        None: no such set does.
        """
        usable = [n for n in annotated if n in self.names and n not in self.below(start)]
        usable = [n for n in usable if n not in (start, SCORE) and n not in self.below(SCORE)]
        for k in range(min(len(usable), _MOST_HELD) + 1):
            for given in combinations(usable, k):
                if self.adjustment(start, given).holds:
                    return given
        return None


@dataclass(frozen=True, slots=True)
class Adjustment:
    """What an adjustment does, in paths as they are written.

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
        names = [_name(part, hidden, chain) for part in _ARROW.split(chain)]
        if len(names) < 2:
            raise _refused("a part of the graph has no arrow", "such as tone -> light", repr(chain))
        for a, b, arrow in zip(names, names[1:], _ARROW.findall(chain), strict=False):
            arrows.append((b, a) if arrow in _BACK else (a, b))
    graph = Graph(tuple(dict.fromkeys(arrows)), frozenset(hidden))
    _check(graph, text)
    return graph


def _name(part: str, hidden: set[str], chain: str) -> str:
    name = part.strip()
    bare = name.removeprefix("(").removesuffix(")").strip()
    if not bare or (name.startswith("(") != name.endswith(")")):
        raise _refused(
            "an arrow of the graph lacks a name", "a name on both sides of each arrow", repr(chain)
        )
    if bare != name:
        hidden.add(bare)
    return bare


def _check(graph: Graph, text: str) -> None:
    names = graph.names
    if SCORE not in names:
        raise _refused(
            f"the graph has no {SCORE!r}",
            f"arrows that lead to {SCORE}, which stands for the metric",
            repr(text),
        )
    if len(names) > MOST_NAMES:
        raise _refused(
            "the graph is too large", f"at most {MOST_NAMES} names", f"{len(names)} names"
        )
    for name in names:
        if name in graph.below(name):
            raise _refused(
                "the graph has a cycle: something would be its own cause",
                "arrows from causes to effects that never lead back",
                " → ".join(_cycle(graph, name)),
            )


def _cycle(graph: Graph, name: str) -> list[str]:
    """Walk from a name back to itself, by as few arrows as there are."""
    waiting = [[name]]
    for path in waiting:
        for cause, effect in graph.arrows:
            if cause == path[-1] and effect == name:
                return [*path, name]
            if cause == path[-1] and effect not in path:
                waiting.append([*path, effect])
    return [name]


def _refused(problem: str, expected: str, found: str) -> SpecError:
    return SpecError(problem, expected=expected, found=found, where=WHERE)


def _reached(arrows: Collection[tuple[str, str]], name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        at = waiting.pop()
        new = {effect for cause, effect in arrows if cause == at} - found
        found |= new
        waiting += new
    return found

"""A small causal graph: parsing, a check for cycles, and the effect of an adjustment on its paths.

The first step of the analysis ``confounders`` where a ``dag`` is given. A path between the groups
and the score is a way by which the two can be associated. One that begins with an arrow into the
groups is a back door: association by it is not caused by the group. Adjusting for a set of
attributes blocks a path at any of them that is not a collider on it, and opens a path at a collider
that is among them, or has a descendant among them (d-separation). Pearl's back-door criterion
requires a set without descendants of the groups that blocks every back door.

The paths of a small graph are simply listed. That costs more than a search for separation would,
but gives what a reader needs: the paths that are blocked, opened or left open.

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

from isolux.core.errors import SpecError

SCORE = "score"
"""The name of the outcome in a graph, for every metric."""

_MAX_NAMES, _MAX_PATHS = 12, 300
"""A graph with more has too many paths to list, and is more than a reader would check."""
_MAX_ADJUSTED = 3

_ARROW = re.compile(r"->|<-|→|←")
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Adjustment:
    """Effect of adjusting for attributes on the paths from the groups to the score, as text.

    Parameters
    ----------
    blocks : tuple of str
        Non-causal paths that were open and are blocked by it.
    opens : tuple of str
        Such paths that were blocked and are open with it.
    leaves : tuple of str
        Such paths that stay open.
    cuts_causal : tuple of str
        Causal paths that it blocks: a part of the groups' own effect.
    descendants, outcome_descendants : tuple of str
        Adjusted attributes that are descendants of the groups, or of the score.
    """

    blocks: tuple[str, ...]
    opens: tuple[str, ...]
    leaves: tuple[str, ...]
    cuts_causal: tuple[str, ...]
    descendants: tuple[str, ...]
    outcome_descendants: tuple[str, ...]

    @property
    def meets_backdoor(self) -> bool:
        """Whether the back-door criterion holds: no descendant adjusted for, no back door open."""
        return not (self.opens or self.leaves or self.descendants or self.outcome_descendants)


@dataclass(frozen=True, slots=True)
class Graph:
    """Arrows from causes to effects, without a cycle.

    ``arrows`` are (cause, effect); ``unobserved`` are the names in parentheses: they are not
    annotated, so that nothing can be adjusted for them.
    """

    arrows: tuple[tuple[str, str], ...]
    unobserved: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """Every name, in the order in which the graph mentions it."""
        return list(dict.fromkeys(name for arrow in self.arrows for name in arrow))

    def descendants(self, name: str) -> set[str]:
        """Return the descendants of a name."""
        return {path[-1] for path in self._walk_descendants(name)}

    def ancestors(self, name: str) -> set[str]:
        """Return the ancestors of a name."""
        return {candidate for candidate in self.names if name in self.descendants(candidate)}

    def find_cycle(self, name: str) -> Path | None:
        """Find the shortest cycle through a name; None: there is none."""
        return next((path for path in self._walk_descendants(name) if path[-1] == name), None)

    def _walk_descendants(self, start: str) -> Iterator[Path]:
        """Yield a shortest directed path to each descendant, breadth first."""
        queue: list[Path] = [(start,)]
        visited: set[str] = set()
        for path in queue:
            for cause, effect in self.arrows:
                if cause == path[-1] and effect not in visited:
                    visited.add(effect)
                    queue.append((*path, effect))
                    yield queue[-1]

    def list_paths(self, start: str) -> list[Path]:
        """List every undirected path from a name to the score."""
        neighbours: dict[str, list[str]] = {name: [] for name in self.names}
        for cause, effect in self.arrows:
            neighbours[cause].append(effect)
            neighbours[effect].append(cause)

        def iterate_paths_to_score(path: Path) -> Iterator[Path]:
            if path[-1] == SCORE:
                yield path
                return
            for name in neighbours[path[-1]]:
                if name not in path:
                    yield from iterate_paths_to_score((*path, name))

        if start not in neighbours:
            return []
        paths = list(islice(iterate_paths_to_score((start,)), _MAX_PATHS + 1))
        if len(paths) > _MAX_PATHS:
            raise _build_graph_error(
                "the graph is too dense",
                f"at most {_MAX_PATHS} paths from {start} to {SCORE}",
                f"more than {_MAX_PATHS}",
            )
        return paths

    def is_open(self, path: Path, adjusted: Collection[str]) -> bool:
        """Tell whether a path is open (d-connecting) when adjusting for ``adjusted``."""
        for previous_name, name, next_name in zip(path, path[1:], path[2:], strict=False):
            if (previous_name, name) in self.arrows and (
                next_name,
                name,
            ) in self.arrows:  # a collider
                if not ({name} | self.descendants(name)) & set(adjusted):
                    return False
            elif name in adjusted:
                return False
        return True

    def format_path(self, path: Path) -> str:
        """Write a path with its arrows, unobserved names in parentheses."""
        text = ""
        for previous_name, name in zip((None, *path), path, strict=False):
            arrow = (
                ""
                if previous_name is None
                else " → "
                if (previous_name, name) in self.arrows
                else " ← "
            )
            text += arrow + (f"({name})" if name in self.unobserved else name)
        return text

    def describe_adjustment(self, start: str, adjusted: Sequence[str]) -> Adjustment:
        """Describe what adjusting for attributes does to the paths from the groups to the score."""
        texts: dict[tuple[bool, bool, bool], tuple[str, ...]] = {}
        for path in self.list_paths(start):
            is_causal = all(step in self.arrows for step in pairwise(path))
            key = is_causal, self.is_open(path, ()), self.is_open(path, adjusted)
            texts[key] = (*texts.get(key, ()), self.format_path(path))
        return Adjustment(
            blocks=texts.get((False, True, False), ()),
            opens=texts.get((False, False, True), ()),
            leaves=texts.get((False, True, True), ()),
            cuts_causal=texts.get((True, True, False), ()),
            descendants=tuple(name for name in adjusted if name in self.descendants(start)),
            outcome_descendants=tuple(name for name in adjusted if name in self.descendants(SCORE)),
        )

    def find_adjustment_set(self, start: str, annotated: Sequence[str]) -> tuple[str, ...] | None:
        """Find the smallest set of up to three annotated attributes that meets the criterion.

        None: no such set does.
        """
        useless = {start, SCORE} | self.descendants(start) | self.descendants(SCORE)
        candidates = [name for name in annotated if name in self.names and name not in useless]
        for k in range(min(len(candidates), _MAX_ADJUSTED) + 1):
            for adjusted in combinations(candidates, k):
                if self.describe_adjustment(start, adjusted).meets_backdoor:
                    return adjusted
        return None


def parse_causal_graph(text: str) -> Graph:
    """Read a graph from arrows between names.

    Examples
    --------
    >>> graph = parse_causal_graph("tone -> light <- score, (skill) -> score")
    >>> graph.arrows
    (('tone', 'light'), ('score', 'light'), ('skill', 'score'))
    >>> graph.describe_adjustment("tone", ["light"]).opens
    ('tone → light ← score',)
    """
    arrows: list[tuple[str, str]] = []
    unobserved: set[str] = set()
    for chain in filter(None, (segment.strip() for segment in re.split(r"[,;\n]", text))):
        names = [
            _parse_name_and_note_unobserved(segment, unobserved, chain)
            for segment in _ARROW.split(chain)
        ]
        if len(names) < 2:
            raise _build_graph_error(
                "a part of the graph has no arrow", "such as tone -> light", repr(chain)
            )
        for a, b, arrow in zip(names, names[1:], _ARROW.findall(chain), strict=False):
            arrows.append((b, a) if arrow in ("<-", "←") else (a, b))
    graph = Graph(tuple(dict.fromkeys(arrows)), frozenset(unobserved))
    names = graph.names
    if SCORE not in names:
        raise _build_graph_error(
            f"the graph has no {SCORE!r}",
            f"arrows that lead to {SCORE}, which stands for the metric",
            repr(text),
        )
    if len(names) > _MAX_NAMES:
        raise _build_graph_error(
            "the graph is too large", f"at most {_MAX_NAMES} names", f"{len(names)} names"
        )
    cycle = next(filter(None, map(graph.find_cycle, names)), None)
    if cycle is not None:
        raise _build_graph_error(
            "the graph has a cycle: something would be its own cause",
            "arrows from causes to effects that never lead back",
            " → ".join(cycle),
        )
    return graph


def _parse_name_and_note_unobserved(segment: str, unobserved: set[str], chain: str) -> str:
    name = segment.strip()
    plain_name = name.removeprefix("(").removesuffix(")").strip()
    if not plain_name or (name.startswith("(") != name.endswith(")")):
        raise _build_graph_error(
            "an arrow of the graph lacks a name", "a name on both sides of each arrow", repr(chain)
        )
    if plain_name != name:
        unobserved.add(plain_name)
    return plain_name


def _build_graph_error(problem: str, expected: str, found_text: str) -> SpecError:
    source = "--analysis-option confounders.dag"
    return SpecError(problem, expected=expected, found=found_text, where=source)

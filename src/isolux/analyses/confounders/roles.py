"""Which role each explanatory attribute has: what an equal mix of it may be read as.

The same arithmetic, a gap at an equal mix, answers four questions. Of what came *before* group and
score it is the gap without that detour. Of a *mediator*, by which the group brings the score about,
it is the part of the gap that goes another way. Of what came *after* the score it is nothing that
anyone should read: people who are alike in a consequence are alike by selection, and a gap appears
where there is none (a collider). And where the role is *unknown* it may be any of the three. Data
cannot tell them apart (a masked gap and a collider can have the very same counts), so a role is
said, attribute by attribute or by a graph, and until it is said nothing is read as more than what
goes with what.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from isolux.analyses.confounders.graph import SCORE, Adjustment, Graph, read_graph
from isolux.vocabulary.errors import SpecError, UnknownNameError

__all__ = ["Role", "Roles", "Standing", "roles_of"]

Role = Literal["before", "mediator", "after", "unknown"]
"""Of an explanatory attribute: before group and score; brought about by the group and altering the
score; following from the score (or from both); not known."""

_ORDER: tuple[Role, ...] = ("before", "mediator", "unknown", "after")
"""Attributes that are crossed have the last of their roles."""

_WHERE = "--role"


@dataclass(frozen=True, slots=True)
class Standing:
    """What holds of one explanatory attribute, or of several crossed, for one sensitive attribute.

    Parameters
    ----------
    role : Role
        As it was given, or follows from the graph.
    adjustment : Adjustment or None
        What the graph says of an equal mix; None: no graph has these attributes.
    """

    role: Role = "unknown"
    adjustment: Adjustment | None = None

    @property
    def rule_fails(self) -> bool:
        """Whether the graph says that a way other than the groups' own effect is left open."""
        return self.adjustment is not None and bool(self.adjustment.opens or self.adjustment.leaves)

    @property
    def reading(self) -> Role:
        """How the gap at an equal mix may be read: a way left open makes it unknown."""
        return "unknown" if self.rule_fails and self.role != "after" else self.role

    @property
    def may_cause(self) -> bool:
        """Whether a sentence may speak of the attribute as a cause."""
        return self.reading not in ("unknown", "after")


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles that were given, and the graph; None: there is none."""

    given: Mapping[str, Role]
    graph: Graph | None = None

    def of(self, sensitive: str, parts: Sequence[str]) -> Standing:
        """Say what holds of some attributes held alike together."""
        role = max((self.role(sensitive, name) for name in parts), key=_ORDER.index)
        graph = self._graph_of(sensitive)
        if graph is None:
            return Standing(role)
        # What the graph lacks blocks nothing in it: its open ways stay open, and that is said.
        return Standing(role, graph.adjustment(sensitive, parts))

    def role(self, sensitive: str, name: str) -> Role:
        """Name one attribute's role: as the graph has it, else as it was given."""
        graph = self._graph_of(sensitive)
        if graph is None or name not in graph.names:
            return self.given.get(name, "unknown")
        if name in graph.below(SCORE):
            return "after"
        if name not in graph.below(sensitive):
            return "before"
        return "mediator" if name in graph.above(SCORE) else "after"

    def why_after(self, sensitive: str, name: str) -> str:
        """Say why an attribute is never held alike."""
        graph = self._graph_of(sensitive)
        if graph is None or name not in graph.names:
            return f"{name} was given the role 'after'"
        if name in graph.below(SCORE):
            return f"by the graph {name} follows from the {SCORE}"
        return (
            f"according to the graph, {name} follows from {sensitive} and does not affect the "
            f"{SCORE}"
        )

    def named(self) -> list[str]:
        """List every annotated name that has a role or stands in the graph, but the score."""
        drawn = [] if self.graph is None else self.graph.names
        hidden = frozenset[str]() if self.graph is None else self.graph.hidden
        return [n for n in dict.fromkeys([*self.given, *drawn]) if n not in (SCORE, *hidden)]

    def notes(self, sensitive: Sequence[str], annotated: Sequence[str]) -> tuple[str, ...]:
        """Say which attributes the graph would have held alike, for each sensitive attribute."""
        if self.graph is None:
            return ()
        said = []
        for name in sensitive:
            if name not in self.graph.names:
                said.append(f"confounders: the graph does not have {name}; roles of it are unknown")
                continue
            enough = self.graph.enough(name, annotated)
            said.append(f"confounders, {name}: " + _enough(enough))
        return tuple(said)

    def _graph_of(self, sensitive: str) -> Graph | None:
        if self.graph is None or sensitive not in self.graph.names:
            return None
        return self.graph


def roles_of(
    given: Mapping[str, str], dag: str, sensitive: Sequence[str], known: Sequence[str]
) -> Roles:
    """Read roles and graph, and check them against each other and the run.

    Examples
    --------
    >>> roles = roles_of({}, "tone -> light -> score", ["tone"], ["tone", "light"])
    >>> roles.of("tone", ["light"]).role
    'mediator'
    """
    for name, role in given.items():
        if role not in _ORDER:
            raise SpecError(
                f"{role!r} is not a role",
                expected="before, mediator, after or unknown",
                found=f"{name}: {role}",
                where=_WHERE,
                hint="a confounder came before, a collider after",
            )
        if name not in known:
            raise UnknownNameError("attribute", name, known, where=_WHERE)
        if name in sensitive:
            raise SpecError(
                f"{name!r} is the sensitive attribute itself and cannot have another role",
                expected="roles of explanatory attributes",
                found=f"{name}: {role}",
                where=_WHERE,
            )
    graph = read_graph(dag) if dag.strip() else None
    roles = Roles({name: cast("Role", role) for name, role in given.items()}, graph)
    if graph is not None:
        _check_graph(graph, sensitive, known)
        _check_agreement(roles, sensitive)
    return roles


def _check_graph(graph: Graph, sensitive: Sequence[str], known: Sequence[str]) -> None:
    where = "--analysis-option confounders.dag"
    for name in graph.names:
        if name not in (SCORE, *known) and name not in graph.hidden:
            raise UnknownNameError("attribute", name, (*known, f"({name})"), where=where)
    if not set(sensitive) & set(graph.names):
        raise SpecError(
            "the graph has none of the sensitive attributes",
            expected="arrows to or from " + " or ".join(sensitive),
            found=", ".join(graph.names),
            where=where,
        )


def _check_agreement(roles: Roles, sensitive: Sequence[str]) -> None:
    for of in sensitive:
        for name, role in roles.given.items():
            drawn = roles.role(of, name)
            if role not in ("unknown", drawn):
                raise SpecError(
                    f"the role of {name!r} contradicts the graph",
                    expected=f"{name}: {drawn}, as the graph has it for {of}",
                    found=f"{name}: {role}",
                    where=_WHERE,
                )


def _enough(enough: Sequence[str] | None) -> str:
    if enough is None:
        return (
            "according to the graph, no set of up to three annotated attributes blocks every back "
            f"door to the {SCORE}; no gap here is free of them"
        )
    if not enough:
        return (
            f"according to the graph, no back door to the {SCORE} is open: the gap needs no "
            "adjustment"
        )
    return "by the graph the back-door rule holds at an equal mix of " + " and ".join(enough)

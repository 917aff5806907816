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

Role = Literal["before", "mediator", "after", "unknown"]
"""Of an explanatory attribute: before group and score; brought about by the group and altering the
score; following from the score (or from both); not known."""

_ORDER: tuple[Role, ...] = ("before", "mediator", "unknown", "after")
"""Attributes that are crossed have the last of their roles."""


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
    """The roles that were given, the graph (None: there is none), and whether ``after`` is held."""

    given: Mapping[str, Role]
    graph: Graph | None = None
    adjust_after: bool = False

    def of(self, sensitive: str, parts: Sequence[str]) -> Standing:
        """Say what holds of some attributes held alike together."""
        role = max((self.role(sensitive, name) for name in parts), key=_ORDER.index)
        graph = self._graph_of(sensitive)
        # What the graph lacks blocks nothing in it: its open ways stay open, and that is said.
        return Standing(role, None if graph is None else graph.adjustment(sensitive, parts))

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

    def excludes(self, sensitive: str, name: str) -> bool:
        """Tell whether an attribute came after, and so is not held alike."""
        return not self.adjust_after and self.role(sensitive, name) == "after"

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
        hidden = {SCORE} if self.graph is None else {SCORE, *self.graph.hidden}
        names = [*self.given, *([] if self.graph is None else self.graph.names)]
        return [name for name in dict.fromkeys(names) if name not in hidden]

    def notes(
        self,
        sensitive: Sequence[str],
        explanatory: Sequence[str],
        computed: Sequence[str],
        annotated: Sequence[str],
    ) -> list[str]:
        """Say what was not examined, not held alike and why, and what the graph would have held.

        ``computed`` are attributes that a reader would expect to be examined.
        """
        notes = []
        unused = [name for name in self.given if name not in explanatory]
        if unused:
            notes.append(
                f"confounders: not examined, though a role was given: {', '.join(unused)} (the "
                f"explanatory attributes that were named: {', '.join(explanatory)})"
            )
        others = [name for name in computed if name not in explanatory]
        if others:
            notes.append(
                f"confounders: not examined, though computed with the audit: {', '.join(others)} "
                f"(others have a role or are in the graph; --role {others[0]}=unknown examines "
                "it too)"
            )
        notes += [
            f"confounders, {group}: {name} is not held equal: {self.why_after(group, name)}, and "
            "an equal mix of something that follows can create a gap where there is none"
            for group in sensitive
            for name in explanatory
            if self.excludes(group, name)
        ]
        if self.graph is not None:
            notes += [_note_of_graph(self.graph, name, annotated) for name in sensitive]
        return notes

    def _graph_of(self, sensitive: str) -> Graph | None:
        return self.graph if self.graph is not None and sensitive in self.graph.names else None


def read_roles(
    given: Mapping[str, str],
    dag: str,
    sensitive: Sequence[str],
    annotated: Sequence[str],
    *,
    adjust_after: bool = False,
) -> Roles:
    """Read roles and graph, and check them against each other and the run.

    Examples
    --------
    >>> roles = read_roles({}, "tone -> light -> score", ["tone"], ["tone", "light"])
    >>> roles.of("tone", ["light"]).role
    'mediator'
    """
    for name, role in given.items():
        if role not in _ORDER:
            raise _refusal(
                f"{role!r} is not a role",
                "before, mediator, after or unknown",
                f"{name}: {role}",
                "a confounder came before, a collider after",
            )
        if name not in annotated:
            raise UnknownNameError("attribute", name, annotated, where="--role")
        if name in sensitive:
            raise _refusal(
                f"{name!r} is the sensitive attribute itself and cannot have another role",
                "roles of explanatory attributes",
                f"{name}: {role}",
            )
    graph = read_graph(dag) if dag.strip() else None
    roles = Roles(cast("Mapping[str, Role]", dict(given)), graph, adjust_after)
    if graph is not None:
        _check_graph(roles, graph, sensitive, annotated)
    return roles


def _check_graph(
    roles: Roles, graph: Graph, sensitive: Sequence[str], annotated: Sequence[str]
) -> None:
    where = "--analysis-option confounders.dag"
    for name in graph.names:
        if name not in (SCORE, *annotated, *graph.hidden):
            raise UnknownNameError("attribute", name, (*annotated, f"({name})"), where=where)
    if not set(sensitive) & set(graph.names):
        raise SpecError(
            "the graph has none of the sensitive attributes",
            expected="arrows to or from " + " or ".join(sensitive),
            found=", ".join(graph.names),
            where=where,
        )
    for group in sensitive:
        for name, role in roles.given.items():
            by_graph = roles.role(group, name)
            if role not in ("unknown", by_graph):
                raise _refusal(
                    f"the role of {name!r} contradicts the graph",
                    f"{name}: {by_graph}, as the graph has it for {group}",
                    f"{name}: {role}",
                )


def _refusal(problem: str, expected: str, found: str, hint: str | None = None) -> SpecError:
    return SpecError(problem, expected=expected, found=found, where="--role", hint=hint)


def _note_of_graph(graph: Graph, sensitive: str, annotated: Sequence[str]) -> str:
    if sensitive not in graph.names:
        return f"confounders: the graph does not have {sensitive}; roles of it are unknown"
    enough = graph.enough(sensitive, annotated)
    if enough is None:
        rule = (
            "according to the graph, no set of up to three annotated attributes blocks every back "
            f"door to the {SCORE}; no gap here is free of them"
        )
    elif not enough:
        rule = (
            f"according to the graph, no back door to the {SCORE} is open: the gap needs no "
            "adjustment"
        )
    else:
        rule = "by the graph the back-door rule holds at an equal mix of " + " and ".join(enough)
    return f"confounders, {sensitive}: {rule}"

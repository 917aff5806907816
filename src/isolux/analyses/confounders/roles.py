"""Causal roles of explanatory attributes: how a gap adjusted for them may be read.

The same arithmetic, direct standardisation, answers four questions. For an attribute that comes
*before* group and score (a confounder) it gives the gap without confounding by it. For a
*mediator*, through which the group affects the score, it gives the part of the gap that takes other
paths. For one that comes *after* the score it has no meaning: people with equal consequences are
selected by the score, and a gap appears where there is none (a collider). And where the role is
*unknown* it may be any of the three. Data cannot distinguish them (a masked gap and a collider can
have the very same counts), so the user states a role, attribute by attribute or by a graph; without
one every result is read as an association only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from isolux.analyses.confounders.graph import SCORE, Adjustment, Graph, parse_causal_graph
from isolux.core.errors import SpecError, UnknownNameError, refuse_unknown_names

Role = Literal["before", "mediator", "after", "unknown"]
"""Of an explanatory attribute: before group and score; caused by the group and a cause of the
score; caused by the score (or by both); not known."""

_ORDER: tuple[Role, ...] = ("before", "mediator", "unknown", "after")
"""Attributes that are crossed have the last of their roles."""


@dataclass(frozen=True, slots=True)
class AdjustmentStatus:
    """Role and graph of an explanatory attribute (or several crossed) for one sensitive attribute.

    Parameters
    ----------
    role : Role
        As the user stated it, or as it follows from the graph.
    adjustment : Adjustment or None
        What adjusting does by the graph; None: no graph has these attributes.
    """

    role: Role = "unknown"
    adjustment: Adjustment | None = None

    @property
    def has_open_backdoor(self) -> bool:
        """Whether by the graph a non-causal path stays or becomes open."""
        return self.adjustment is not None and bool(self.adjustment.opens or self.adjustment.leaves)

    @property
    def effective_role(self) -> Role:
        """The role by which the adjusted gap is read: an open non-causal path makes it unknown."""
        return "unknown" if self.has_open_backdoor and self.role != "after" else self.role

    @property
    def is_causal(self) -> bool:
        """Whether a sentence may call the attribute a cause."""
        return self.effective_role not in ("unknown", "after")


@dataclass(frozen=True, slots=True)
class AttributeRoles:
    """The stated roles, the graph (None: none), and whether to adjust for what came ``after``."""

    stated_roles: Mapping[str, Role]
    graph: Graph | None = None
    adjust_after: bool = False

    def find_status(self, sensitive: str, attributes: Sequence[str]) -> AdjustmentStatus:
        """Find the status of adjusting for some attributes together."""
        role = max((self.find_role(sensitive, name) for name in attributes), key=_ORDER.index)
        graph = self._find_graph(sensitive)
        # An attribute that the graph lacks blocks no path of it: open paths stay open.
        return AdjustmentStatus(
            role, None if graph is None else graph.describe_adjustment(sensitive, attributes)
        )

    def find_role(self, sensitive: str, name: str) -> Role:
        """Find one attribute's role: by the graph, else as stated."""
        graph = self._find_graph(sensitive)
        if graph is None or name not in graph.names:
            return self.stated_roles.get(name, "unknown")
        if name in graph.descendants(SCORE):
            return "after"
        if name not in graph.descendants(sensitive):
            return "before"
        return "mediator" if name in graph.ancestors(SCORE) else "after"

    def is_excluded(self, sensitive: str, name: str) -> bool:
        """Tell whether an attribute is not adjusted for, because it came after."""
        return not self.adjust_after and self.find_role(sensitive, name) == "after"

    def explain_exclusion(self, sensitive: str, name: str) -> str:
        """Explain why an attribute is not adjusted for."""
        graph = self._find_graph(sensitive)
        if graph is None or name not in graph.names:
            return f"{name} was given the role 'after'"
        if name in graph.descendants(SCORE):
            return f"by the graph {name} follows from the {SCORE}"
        return (
            f"according to the graph, {name} follows from {sensitive} and does not affect the "
            f"{SCORE}"
        )

    def list_names(self) -> list[str]:
        """List every annotated name that has a role or is in the graph, except the score."""
        excluded = {SCORE} if self.graph is None else {SCORE, *self.graph.unobserved}
        names = [*self.stated_roles, *([] if self.graph is None else self.graph.names)]
        return [name for name in dict.fromkeys(names) if name not in excluded]

    def build_notes(
        self,
        sensitive: Sequence[str],
        explanatory: Sequence[str],
        computed: Sequence[str],
        annotated: Sequence[str],
    ) -> list[str]:
        """Build notes: what was not examined, what is not adjusted for, what the graph requires.

        ``computed`` are attributes that a reader would expect to be examined.
        """
        notes = []
        unused = [name for name in self.stated_roles if name not in explanatory]
        if unused:
            notes.append(
                f"confounders: not examined, though a role was given: {', '.join(unused)} (the "
                f"explanatory attributes that were named: {', '.join(explanatory)})"
            )
        unexamined = [name for name in computed if name not in explanatory]
        if unexamined:
            notes.append(
                "confounders: not examined, though computed with the audit: "
                f"{', '.join(unexamined)} (others have a role or are in the graph; --role "
                f"{unexamined[0]}=unknown examines it too)"
            )
        notes += [
            f"confounders, {group}: {name} is not held equal:"
            f" {self.explain_exclusion(group, name)}, and "
            "an equal mix of something that follows can create a gap where there is none"
            for group in sensitive
            for name in explanatory
            if self.is_excluded(group, name)
        ]
        if self.graph is not None:
            notes += [_build_graph_note(self.graph, name, annotated) for name in sensitive]
        return notes

    def _find_graph(self, sensitive: str) -> Graph | None:
        return self.graph if self.graph is not None and sensitive in self.graph.names else None


def read_and_check_roles(
    stated_roles: Mapping[str, str],
    dag: str,
    sensitive: Sequence[str],
    annotated: Sequence[str],
    *,
    adjust_after: bool = False,
) -> AttributeRoles:
    """Read roles and graph, and check them against each other and the run.

    Examples
    --------
    >>> roles = read_and_check_roles({}, "tone -> light -> score", ["tone"], ["tone", "light"])
    >>> roles.find_status("tone", ["light"]).role
    'mediator'
    """
    for name, role in stated_roles.items():
        if role not in _ORDER:
            raise _build_role_error(
                f"{role!r} is not a role",
                "before, mediator, after or unknown",
                f"{name}: {role}",
                "a confounder came before, a collider after",
            )
        refuse_unknown_names("attribute", [name], annotated, where="--role")
        if name in sensitive:
            raise _build_role_error(
                f"{name!r} is the sensitive attribute itself and cannot have another role",
                "roles of explanatory attributes",
                f"{name}: {role}",
            )
    graph = parse_causal_graph(dag) if dag.strip() else None
    roles = AttributeRoles(cast("Mapping[str, Role]", dict(stated_roles)), graph, adjust_after)
    if graph is not None:
        _check_graph_names(roles, graph, sensitive, annotated)
    return roles


def _check_graph_names(
    roles: AttributeRoles, graph: Graph, sensitive: Sequence[str], annotated: Sequence[str]
) -> None:
    source = "--analysis-option confounders.dag"
    for name in graph.names:
        if name not in (SCORE, *annotated, *graph.unobserved):
            raise UnknownNameError("attribute", name, (*annotated, f"({name})"), where=source)
    if not set(sensitive) & set(graph.names):
        raise SpecError(
            "the graph has none of the sensitive attributes",
            expected="arrows to or from " + " or ".join(sensitive),
            found=", ".join(graph.names),
            where=source,
        )
    for group in sensitive:
        for name, role in roles.stated_roles.items():
            by_graph = roles.find_role(group, name)
            if role not in ("unknown", by_graph):
                raise _build_role_error(
                    f"the role of {name!r} contradicts the graph",
                    f"{name}: {by_graph}, as the graph has it for {group}",
                    f"{name}: {role}",
                )


def _build_role_error(
    problem: str, expected: str, found_text: str, hint: str | None = None
) -> SpecError:
    return SpecError(problem, expected=expected, found=found_text, where="--role", hint=hint)


def _build_graph_note(graph: Graph, sensitive: str, annotated: Sequence[str]) -> str:
    if sensitive not in graph.names:
        return f"confounders: the graph does not have {sensitive}; roles of it are unknown"
    adjustment_set = graph.find_adjustment_set(sensitive, annotated)
    if adjustment_set is None:
        rule = (
            "according to the graph, no set of up to three annotated attributes blocks every back "
            f"door to the {SCORE}; no gap here is free of them"
        )
    elif not adjustment_set:
        rule = (
            f"according to the graph, no back door to the {SCORE} is open: the gap needs no "
            "adjustment"
        )
    else:
        rule = "by the graph the back-door rule holds at an equal mix of " + " and ".join(
            adjustment_set
        )
    return f"confounders, {sensitive}: {rule}"

"""What is held alike for each sensitive attribute: who may, who is refused, and what is crossed.

Between the roles that were given and the strata of people, in the analysis ``confounders``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from isolux.analyses.confounders.groups import Strata, crossed
from isolux.analyses.confounders.roles import Roles
from isolux.vocabulary.errors import SpecError

__all__ = ["Chosen", "allowed"]

_TOGETHER = 3


@dataclass(frozen=True, slots=True)
class Chosen:
    """Rules of what is held alike.

    Parameters
    ----------
    roles : Roles
    explicit : bool
        Whether the explanatory attributes were named one by one.
    together : sequence of str
        Which are crossed; empty: the first three that came before group and score, else the first
        three.
    adjust_after : bool
        Whether what follows from the score is held alike too.
    """

    roles: Roles
    explicit: bool
    together: Sequence[str]
    adjust_after: bool

    def strata(self, sensitive: str, singles: Sequence[Strata]) -> list[Strata]:
        """Leave out what came after, and cross the rest."""
        left = [one for one in singles if not self._refused(sensitive, one.name)]
        if not left or (self.explicit and len(left) < len(singles)):
            self._refuse(sensitive, [one.name for one in singles if one not in left])
        return left + self._crossed(sensitive, left, singles)

    def notes(
        self, sensitive: Iterable[str], names: Sequence[str], computed: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Say what was left out of each comparison, and why."""
        return self._aside(names, computed) + tuple(
            f"confounders, {of}: {name} is not held equal: {self.roles.why_after(of, name)}, and "
            "an equal mix of something that follows can create a gap where there is none"
            for of in sensitive
            for name in names
            if self._refused(of, name)
        )

    def _aside(self, names: Sequence[str], computed: Sequence[str]) -> tuple[str, ...]:
        """Say which attributes a reader would expect to be examined, and were not."""
        said = []
        unused = [name for name in self.roles.given if name not in names]
        if unused:
            said.append(
                f"confounders: not examined, though a role was given: {', '.join(unused)} (the "
                f"explanatory attributes that were named: {', '.join(names)})"
            )
        left = [name for name in computed if name not in names] if not self.explicit else []
        if left:
            said.append(
                f"confounders: not examined, though computed with the audit: {', '.join(left)} "
                f"(others have a role or are in the graph; --role {left[0]}=unknown examines "
                "it too)"
            )
        return tuple(said)

    def _refused(self, sensitive: str, name: str) -> bool:
        return not self.adjust_after and self.roles.role(sensitive, name) == "after"

    def _refuse(self, sensitive: str, names: Sequence[str]) -> None:
        raise SpecError(
            f"an equal mix of {' and '.join(names)} can create a gap of {sensitive} where there "
            "is none, and hide one where there is",
            expected="explanatory attributes that came before the score, or lead to it",
            found="; ".join(self.roles.why_after(sensitive, name) for name in names),
            where="--analysis-option confounders.explanatory",
            hint="leave it out, or request it anyway: confounders.adjust_after=yes",
        )

    def _crossed(
        self, sensitive: str, left: Sequence[Strata], singles: Sequence[Strata]
    ) -> list[Strata]:
        """Cross the attributes that are asked for together."""
        named = {one.name: one for one in left}
        everyone = [one.name for one in singles]
        stray = [name for name in self.together if name not in everyone]
        if stray:
            raise SpecError(
                "what is crossed must be explanatory",
                expected="some of " + ", ".join(everyone),
                found=", ".join(stray),
                where="--analysis-option confounders.together",
            )
        before = [name for name in named if self.roles.role(sensitive, name) == "before"]
        first = (before if len(before) > 1 else list(named))[:_TOGETHER]
        wanted = [name for name in (self.together or first) if name in named]
        own = [named[name] for name in dict.fromkeys(wanted)]
        return [crossed(own)] if len(own) > 1 else []


def allowed(roles: Roles, explanatory: Sequence[str], sensitive: Sequence[str]) -> list[str]:
    """Name the explanatory attributes: those asked for, else all that have a role."""
    return list(explanatory) or [name for name in roles.named() if name not in sensitive]

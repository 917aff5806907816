"""Named merges of classes: ``{"Asian": ("East Asian", "Southeast Asian")}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isolux.vocabulary.errors import SpecError

__all__ = ["LabelMap", "old_to_new"]

LabelMap = Mapping[str, Sequence[str]]


def old_to_new(label_map: LabelMap | None) -> dict[str, str]:
    """Turn "new class: the old ones it unites" round; classes it does not name stay themselves.

    Examples
    --------
    >>> old_to_new({"Asian": ("East Asian", "Southeast Asian")})
    {'East Asian': 'Asian', 'Southeast Asian': 'Asian'}
    """
    merged: dict[str, str] = {}
    for new, old_ones in (label_map or {}).items():
        for old in (old_ones,) if isinstance(old_ones, str) else old_ones:
            if merged.setdefault(old, new) != new:
                raise SpecError(
                    f"the class {old!r} is merged into two classes",
                    expected="every class in one merge at most",
                    found=f"{merged[old]!r} and {new!r}",
                    where="label_map",
                )
    return merged

"""What papers do alike: lay the run of a protocol out as the paper's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import UnknownNameError

__all__ = ["Layout", "laid_out", "require_protocol"]

Protocols = Mapping[str, Mapping[str, object]]
Layout = Callable[[Run], pl.DataFrame]
"""A run to one of the paper's tables; without rows where the run does not have what it needs."""


def require_protocol(paper: str, protocols: Protocols, name: str) -> None:
    """Refuse a protocol that the paper does not have.

    Raises
    ------
    UnknownNameError
        With the names that it has.
    """
    if name not in protocols:
        raise UnknownNameError("protocol", name, protocols, where=f"papers/{paper}")


def laid_out(
    paper: str,
    protocols: Protocols,
    layouts: Mapping[str, Mapping[str, Layout]],
    name: str,
    run: Run,
) -> dict[str, pl.DataFrame]:
    """Lay the run of a protocol out by caption; tables without rows are left out.

    Parameters
    ----------
    paper : str
    protocols : mapping
        The paper's, by name.
    layouts : mapping
        By the protocol's name: caption to layout, in the paper's order.
    name : str
        The protocol.
    run : Run

    Raises
    ------
    UnknownNameError
        No such protocol.
    """
    require_protocol(paper, protocols, name)
    made = {caption: layout(run) for caption, layout in layouts[name].items()}
    return {caption: table for caption, table in made.items() if not table.is_empty()}

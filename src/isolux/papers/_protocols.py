"""What all papers' ``protocol`` functions do: find the settings by name, and lay ours over them."""

from __future__ import annotations

from collections.abc import Mapping

from isolux.vocabulary.errors import UnknownNameError
from isolux.vocabulary.spec import AuditSpec, parse_spec

__all__ = ["require_protocol", "spec_of"]

Protocols = Mapping[str, Mapping[str, object]]


def require_protocol(paper: str, protocols: Protocols, name: str) -> None:
    """Refuse a protocol that the paper does not have.

    Raises
    ------
    UnknownNameError
        With the names that it has.
    """
    if name not in protocols:
        raise UnknownNameError("protocol", name, protocols, where=f"papers/{paper}")


def spec_of(
    paper: str, protocols: Protocols, name: str, data: str, settings: Mapping[str, object]
) -> AuditSpec:
    """Return the audit of ``paper:name`` on some data, the settings given going first.

    Raises
    ------
    UnknownNameError, SpecError
        No such protocol; a setting that cannot be used.
    """
    require_protocol(paper, protocols, name)
    named = {"data": data, "protocol": f"{paper}:{name}"}
    return parse_spec({**named, **protocols[name], **settings})

"""A paper's protocol on some data, as ``isolux audit DATA --protocol PAPER:NAME`` has it."""

from __future__ import annotations

from isolux.api.audit.protocol import fill_protocol_settings
from isolux.core.spec import AuditSpec, parse_spec


def audit_of(paper: str, name: str, data: str, **settings: object) -> AuditSpec:
    named = {"data": data, "protocol": f"{paper}:{name}"}
    return fill_protocol_settings(parse_spec({**named, **settings}))

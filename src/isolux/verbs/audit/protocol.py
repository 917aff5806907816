"""A paper's protocol in an audit: its settings under those given, its tables after the numbers."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import polars as pl

from isolux.verbs.explain import with_references
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Run, printed
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.spec import AuditSpec, parse_spec, with_options

_JOINED = ("data_option", "prediction_option", "analysis_option")
_OF_THE_FIRST = ("protocol", "task", "out", "overwrite", "explain", "planted", "metric")
"""Settings that an audit beside another does not take over from it."""
_OF_ATTRIBUTES = {"group": ":", "nested": ":", "bins": "=", "reference": "="}
"""Settings whose items begin with an attribute, and what follows it."""


def with_protocol(spec: AuditSpec) -> AuditSpec:
    """Put a protocol's settings under those that the spec was given."""
    if spec.protocol is None:
        return spec
    paper, name = _find(spec.protocol)
    theirs = _about(with_options(paper.PROTOCOLS[name]), spec)
    ours = spec.said()
    for field in _JOINED:
        set_by_us = {item.partition("=")[0].strip() for item in ours.get(field, ())}
        kept = [
            item
            for item in _listed(theirs.get(field, ()))
            if item.partition("=")[0].strip() not in set_by_us
        ]
        if kept:
            ours[field] = (*kept, *ours.get(field, ()))
    conditions = [*_listed(theirs.get("only", ())), *ours.get("only", ())]
    if conditions:
        ours["only"] = tuple(dict.fromkeys(conditions))
    return parse_spec({**theirs, **ours}, where=f"the protocol {spec.protocol}")


def _about(theirs: dict[str, Any], spec: AuditSpec) -> dict[str, Any]:
    """Leave out what a protocol says of attributes that are not audited."""
    if "by" not in spec.groups.model_fields_set:
        return theirs
    audited = set(spec.groups.attributes)
    for field, mark in _OF_ATTRIBUTES.items():
        items = _listed(theirs.get(field, ()))
        kept = [i for i in items if mark not in i or i.partition(mark)[0].strip() in audited]
        if field in theirs:
            theirs[field] = tuple(kept)
    return theirs


def beside_of(spec: AuditSpec) -> AuditSpec | None:
    """Return the audit that the protocol's table also needs, of the same people and outputs."""
    if spec.protocol is None:
        return None
    paper, name = _find(spec.protocol)
    other = getattr(paper, "BESIDE", {}).get(name)
    if other is None:
        return None
    ours = {key: value for key, value in spec.said().items() if key not in _OF_THE_FIRST}
    kept = [i for i in ours.get("prediction_option", ()) if not i.strip().startswith("kind=")]
    named = {"protocol": f"{spec.protocol.partition(':')[0]}:{other}", "prediction_option": kept}
    return parse_spec({**ours, **named}, where=f"the protocol {spec.protocol}")


def with_tables(run: Run, spec: AuditSpec, beside: pl.DataFrame | None = None) -> dict[str, Any]:
    """Return the record of a run by a protocol: the paper's tables and its disagreements."""
    if spec.protocol is None:
        return dict(run.record)
    paper, name = _find(spec.protocol)
    info = paper.INFO
    said = tuple(getattr(paper, "DISAGREEMENTS", {}).get(name, ()))
    both = (
        run
        if beside is None
        else replace(run, group_metrics=pl.concat([run.group_metrics, beside]))
    )
    tables = printed(paper.tables(name, both) if hasattr(paper, "tables") else {})
    absent = paper.absent(name, both) if hasattr(paper, "absent") else {}
    protocol = {
        "name": spec.protocol,
        "title": info.title,
        "disagreements": list(said),
        "tables": tables,
        **({"absent": absent} if absent else {}),
    }
    cited = with_references(run.record["references"], info.references)
    return {**run.record, "protocol": protocol, "references": cited}


def _find(written: str) -> tuple[ModuleType, str]:
    paper_name, colon, name = written.partition(":")
    if not colon or not name:
        raise SpecError(
            "the protocol is not named",
            expected="PAPER:PROTOCOL, such as facet:detection",
            found=repr(written),
            hint="papers: " + ", ".join(registry.names("papers")),
        )
    paper = registry.load("papers", paper_name)
    protocols = getattr(paper, "PROTOCOLS", {})
    if name not in protocols:
        raise UnknownNameError("protocol", name, protocols, where=paper_name)
    return paper, name


def _listed(value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)  # type: ignore[arg-type]

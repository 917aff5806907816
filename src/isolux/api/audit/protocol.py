"""A paper's protocol in an audit: default settings, and the paper's tables in the record."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import polars as pl

from isolux.api.explain import merge_references
from isolux.core import registry
from isolux.core.containers import Run, tables_to_json
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.spec import AuditSpec, expand_option_assignments, parse_spec

_APPENDED_SETTINGS = ("bins", "data_option", "prediction_option", "analysis_option")
_NOT_INHERITED = ("protocol", "task", "out", "overwrite", "explain", "injected", "metric")
"""Settings that the second half of a paper's table does not inherit."""
_ATTRIBUTE_SETTINGS = {"group": ":", "nested": ":", "bins": "=", "reference": "="}
"""Settings whose items begin with an attribute, and what follows it."""


def fill_protocol_settings(spec: AuditSpec) -> AuditSpec:
    """Merge a protocol's settings; settings of the user take precedence."""
    if spec.protocol is None:
        return spec
    paper, name = _load_protocol(spec.protocol)
    protocol_settings = _drop_settings_of_unaudited_attributes(
        expand_option_assignments(paper.PROTOCOLS[name]), spec
    )
    user_settings = spec.said()
    for field in _APPENDED_SETTINGS:
        set_by_user = {entry.partition("=")[0].strip() for entry in user_settings.get(field, ())}
        added_entries = [
            entry
            for entry in _to_tuple(protocol_settings.get(field, ()))
            if entry.partition("=")[0].strip() not in set_by_user
        ]
        if added_entries:
            user_settings[field] = (*added_entries, *user_settings.get(field, ()))
    conditions = [*_to_tuple(protocol_settings.get("only", ())), *user_settings.get("only", ())]
    if conditions:
        user_settings["only"] = tuple(dict.fromkeys(conditions))
    return parse_spec(
        {**protocol_settings, **user_settings}, source=f"the protocol {spec.protocol}"
    )


def _drop_settings_of_unaudited_attributes(
    protocol_settings: dict[str, Any], spec: AuditSpec
) -> dict[str, Any]:
    """Drop a protocol's settings of attributes that are not audited."""
    if "by" not in spec.groups.model_fields_set:
        return protocol_settings
    audited = set(spec.groups.attributes)
    for field, separator in _ATTRIBUTE_SETTINGS.items():
        items = _to_tuple(protocol_settings.get(field, ()))
        kept_items = [
            i for i in items if separator not in i or i.partition(separator)[0].strip() in audited
        ]
        if field in protocol_settings:
            protocol_settings[field] = tuple(kept_items)
    return protocol_settings


def build_other_half_spec(spec: AuditSpec) -> AuditSpec | None:
    """Build the spec of the other half of the protocol's table, on the same people."""
    if spec.protocol is None:
        return None
    paper, name = _load_protocol(spec.protocol)
    other_name = getattr(paper, "COMPANION_PROTOCOLS", {}).get(name)
    if other_name is None:
        return None
    user_settings = {
        key: setting for key, setting in spec.said().items() if key not in _NOT_INHERITED
    }
    options = [
        i for i in user_settings.get("prediction_option", ()) if not i.strip().startswith("kind=")
    ]
    own_settings = {
        "protocol": f"{spec.protocol.partition(':')[0]}:{other_name}",
        "prediction_option": options,
    }
    return parse_spec({**user_settings, **own_settings}, source=f"the protocol {spec.protocol}")


def build_protocol_record(
    run: Run, spec: AuditSpec, other_half: Run | None = None
) -> dict[str, Any]:
    """Build the record with the protocol's tables, both halves' warnings and disagreements."""
    if spec.protocol is None:
        return dict(run.record)
    paper, name = _load_protocol(spec.protocol)
    paper_info = paper.INFO
    disagreements = tuple(getattr(paper, "DISAGREEMENTS", {}).get(name, ()))
    full_run, warnings = run, list(run.record["warnings"])
    if other_half is not None:
        both_halves = pl.concat([run.group_metrics, other_half.group_metrics])
        full_run = replace(run, group_metrics=both_halves)
        other_name = other_half.record["protocol"]["name"]
        warnings += [
            f"{other_name}: {text}"
            for text in other_half.record["warnings"]
            if text not in run.record["warnings"]
        ]
    tables = tables_to_json(paper.tables(name, full_run) if hasattr(paper, "tables") else {})
    absent = paper.absent(name, full_run) if hasattr(paper, "absent") else {}
    protocol = {
        "name": spec.protocol,
        "title": paper_info.title,
        "disagreements": list(disagreements),
        "tables": tables,
        **({"absent": absent} if absent else {}),
    }
    references = merge_references(run.record["references"], paper_info.references)
    return {**run.record, "warnings": warnings, "protocol": protocol, "references": references}


def _load_protocol(protocol: str) -> tuple[ModuleType, str]:
    paper_name, colon, name = protocol.partition(":")
    if not colon or not name:
        raise SpecError(
            "the protocol is not named",
            expected="PAPER:PROTOCOL, such as facet:detection",
            found=repr(protocol),
            hint="papers: " + ", ".join(registry.names("papers")),
        )
    paper = registry.load("papers", paper_name)
    protocols = getattr(paper, "PROTOCOLS", {})
    if name not in protocols:
        raise UnknownNameError("protocol", name, protocols, where=paper_name)
    return paper, name


def _to_tuple(setting: object) -> tuple[str, ...]:
    return (setting,) if isinstance(setting, str) else tuple(setting)  # type: ignore[arg-type]

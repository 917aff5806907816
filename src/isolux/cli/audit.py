"""``isolux audit``: from files to a run directory with its report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli._options import given, with_spec_options

__all__ = ["audit"]


def audit(data: str, **settings: Any) -> None:
    """Audit a model's predictions and write a run directory with its report.

    DATA is NAME:PATH, as in table:people.csv or fairface:labels.csv, or a YAML file whose fields
    are these flags' names; flags that are given beside a file win over it.
    """
    from isolux.cli.screen import show_audit
    from isolux.io.atomic import refuse_existing
    from isolux.verbs.audit import read_spec_file, run_audit
    from isolux.vocabulary.spec import AuditSpec, parse_spec

    said = given(settings)
    if Path(data).suffix.lower() in (".yaml", ".yml", ".json") and ":" not in data:
        from_file = read_spec_file(data).model_dump(exclude_unset=True)
        spec: AuditSpec = parse_spec({**from_file, **said}, where=data)
    else:
        spec = parse_spec({"data": data, **said})
    if spec.out is None:
        spec = parse_spec({**spec.model_dump(exclude_unset=True), "out": _default_out(spec)})
    assert spec.out is not None  # noqa: S101 - set just above
    refuse_existing(spec.out, overwrite=spec.overwrite)  # before minutes of work, not after
    done = run_audit(spec)
    report = done.report(spec.out, overwrite=spec.overwrite)
    show_audit(done.run, report)


def _default_out(spec: Any) -> str:
    stem = Path(spec.data.partition(":")[2] or "audit").stem
    return str(Path("runs") / (spec.model_name or stem))


audit = with_spec_options(audit)

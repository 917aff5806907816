"""Turn the fields of AuditSpec into flags: every flag has a field and every field a flag."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer

from isolux.vocabulary.spec import AuditSpec

__all__ = ["given", "with_spec_options"]

_POSITIONAL = "data"
_PANELS = {
    "What is judged": (
        "protocol",
        "task",
        "target",
        "predictions",
        "format",
        "prediction_column",
        "prediction_id",
        "score_column",
        "score_scale",
        "score_of",
        "id",
        "id_from",
        "model_name",
        "detected_column",
        "undetected",
        "label_map",
        "prediction_map",
        "metric",
        "positive",
        "person_label",
        "person_class",
        "matching",
        "score_threshold",
        "max_detections",
        "top_k",
        "separator",
        "repair_ages",
        "option",
        "data_option",
        "prediction_option",
        "only",
        "withdrawn",
        "images",
    ),
    "Groups": (
        "by",
        "cluster",
        "unknown",
        "unknown_values",
        "group",
        "group_rest",
        "absent_values",
        "bins",
        "votes",
        "nested",
        "reference",
        "min_units",
        "min_clusters",
    ),
    "Statistics": (
        "interval",
        "level",
        "replicates",
        "weights",
        "seed",
        "correction",
        "ddof",
        "log_base",
    ),
    "Why": ("derive", "explain", "analysis_option"),
    "Output": ("planted", "out", "overwrite", "keep_pairs"),
}


def with_spec_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes ``data`` and ``**settings`` one option per field of AuditSpec."""
    panel_of = {name: panel for panel, names in _PANELS.items() for name in names}
    parameters = [
        inspect.Parameter(
            _POSITIONAL,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            annotation=Annotated[
                str, typer.Argument(help="NAME:PATH (table:people.csv), or a YAML file of settings")
            ],
        )
    ]
    for name, field in AuditSpec.model_fields.items():
        if name == _POSITIONAL:
            continue
        kind, choices = _cli_type(field.annotation)
        default = field.get_default()
        shown = "" if default in (None, (), False) or name == "unknown_values" else f" [{default}]"
        text = f"{field.description}{choices}{shown}"
        option = typer.Option(
            _flag(name, kind), help=text, rich_help_panel=panel_of[name], show_default=False
        )
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[kind | None, option],
            )
        )
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def _flag(name: str, kind: Any) -> str:
    flag = "--" + name.replace("_", "-")
    return f"{flag}/--no-{flag[2:]}" if kind is bool else flag


def _cli_type(annotation: Any) -> tuple[Any, str]:
    """Return the type that the command line reads, and the words it may be, for the help."""
    options = [a for a in get_args(annotation) if a is not type(None)]
    if get_origin(annotation) not in (Literal, tuple) and len(options) == 1:
        return _cli_type(options[0])  # T | None, or Annotated
    if get_origin(annotation) is Union or type(annotation).__name__ == "UnionType":
        return str, ""
    if get_origin(annotation) is Literal:
        words = ", ".join(str(w) for w in get_args(annotation))
        return (int if isinstance(get_args(annotation)[0], int) else str), f" ({words})"
    if get_origin(annotation) is tuple:
        inner = get_args(annotation)[0]
        return list[int] if inner is int else list[str], ""
    return annotation, ""


def given(settings: dict[str, Any]) -> dict[str, Any]:
    """Keep what was said on the command line; the rest is the file's, or the default."""
    return {k: v for k, v in settings.items() if v is not None and v != []}

"""``isolux audit``: from files to a run directory with its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolux.cli._flags import (
    Flag,
    add_flags,
    build_data_argument,
    drop_unset,
    explain_option,
    list_stage_flags,
    list_task_flags,
)
from isolux.cli.streams import say

if TYPE_CHECKING:
    from isolux.vocabulary.errors import IsoluxError

_NOTES = Flag(
    "notes",
    bool,
    help="print every note, and every warning whole",
    default=None,
    panel="Output",
    is_common=False,
)


def audit(data: str, *, notes: bool | None = None, **settings: Any) -> None:
    """Audit a model's predictions and write a run directory with its report.

    DATA is NAME:PATH, as in table:people.csv or fairface:labels.csv, or a YAML file whose fields
    have the names of these flags, flat or nested by stage. Flags on the command line override the
    file.
    """
    from isolux.cli.audit_screen import show_audit
    from isolux.cli.lazy_imports import load_lazily
    from isolux.cli.prediction_progress import monitor_predictions
    from isolux.io.atomic import refuse_existing
    from isolux.verbs.audit import run_audit
    from isolux.verbs.audit.inputs import read_audit_settings, split_by_model

    spec = read_audit_settings(data, drop_unset(settings))
    has_out = spec.report.out is not None
    out = spec.report.out or _default_out(spec)
    spec = spec.updated(out=out)
    if spec.model.spec is not None and spec.model.answers is None:
        spec = spec.updated(answers=f"{out}.answers")
    run_specs = split_by_model(spec)
    for run_spec in run_specs:
        refuse_existing(
            _out_dir(run_spec), overwrite=run_spec.report.overwrite
        )  # before minutes of work
    load_lazily("numpy.f2py")
    for run_spec in run_specs:
        if len(run_specs) > 1:
            say(f"{run_spec.predictions.model_name}:")
        finished_audit = run_audit(run_spec, open_progress=monitor_predictions)
        report = finished_audit.report(_out_dir(run_spec), overwrite=run_spec.report.overwrite)
        show_audit(
            finished_audit.run,
            report,
            default_out=None if has_out else _out_dir(run_spec),
            notes=bool(notes),
        )
    if len(run_specs) > 1:
        say(
            "",
            f"compare two of them: isolux compare {_out_dir(run_specs[0])}"
            f" {_out_dir(run_specs[1])}",
        )


def build_audit_command(args: Sequence[str], *, shows_all: bool) -> Callable[..., None]:
    """Build the command with the flags of the task that the arguments name."""
    from isolux.vocabulary import registry

    task = find_task(args)
    task_flags = list_task_flags(task) if task in registry.names("tasks") else []
    flags = [flag for flag in list_stage_flags() if flag.name != "data"]
    position = next(i for i, flag in enumerate(flags) if flag.name == "task") + 1
    flags = [*flags[:position], *task_flags, *flags[position:], _NOTES]
    return add_flags(audit, [build_data_argument(is_required=True)], flags, shows_all=shows_all)


def find_task(args: Sequence[str]) -> str:
    """Find the task that a command line names: a flag, a paper's protocol, a file, the default.

    Examples
    --------
    >>> find_task(["table:people.csv", "--task", "detection"])
    'detection'
    """
    from isolux.vocabulary.spec import Task

    flag = _flag_value(args, "--task")
    file_settings = {} if flag else _read_settings_file(args)
    task_setting = file_settings.get("task")
    file_task = task_setting.get("name") if isinstance(task_setting, dict) else task_setting
    protocol = _flag_value(args, "--protocol") or file_settings.get("protocol")
    return str(flag or file_task or _task_of_protocol(protocol) or Task().name)


def explain_unknown_flag(args: Sequence[str], flag: str) -> IsoluxError:
    """Explain an unknown flag: which command or task has it, or the nearest name."""
    from isolux.vocabulary import registry
    from isolux.vocabulary.errors import SpecError, UnknownNameError
    from isolux.vocabulary.spec import SETTING_BY_FLAT_NAME, build_refusal

    if flag == "--analysis":
        return SpecError(
            "an audit runs analyses by --explain",
            expected="--explain NAME",
            found=flag,
            hint="--analysis is of `isolux explain RUN`, which runs them on a finished audit",
        )
    name, task = flag.lstrip("-").replace("-", "_").removeprefix("no_"), find_task(args)
    task_names = registry.names("tasks")
    if task not in task_names:
        return UnknownNameError("task", task, task_names, where="--task")
    other_names = [*SETTING_BY_FLAT_NAME, "protocol", "option"]
    return explain_option("audit", flag) or build_refusal(task, name, other_names, source=flag)


def _flag_value(args: Sequence[str], flag: str) -> str | None:
    for position, text in enumerate(args):
        if text == flag and position + 1 < len(args):
            return args[position + 1]
        if text.startswith(f"{flag}="):
            return text.partition("=")[2]
    return None


def _read_settings_file(args: Sequence[str]) -> dict[str, Any]:
    """Read the settings file, if one is named; its errors are reported when it is run."""
    from isolux.verbs.audit.inputs import is_settings_file, read_settings_file
    from isolux.vocabulary.errors import IsoluxError

    for text in args:
        if is_settings_file(text):
            try:
                return read_settings_file(text)
            except IsoluxError:
                return {}
    return {}


def _task_of_protocol(protocol: object) -> str | None:
    from isolux.vocabulary import registry

    paper, _, name = str(protocol or "").partition(":")
    if paper not in registry.names("papers"):
        return None
    settings = getattr(registry.load("papers", paper), "PROTOCOLS", {}).get(name, {})
    task = settings.get("task")
    return None if task is None else str(task)


def _out_dir(spec: Any) -> str:
    return str(spec.report.out)


def _default_out(spec: Any) -> str:
    stem = Path(spec.people.data.partition(":")[2] or "audit").stem
    return str(Path("runs") / (spec.predictions.model_name or stem))

"""``isolux audit``: from files to a run directory with its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolux.cli._flags import (
    Flag,
    add_arguments_and_flags,
    build_data_argument,
    build_option_usage_error,
    drop_unset_settings,
    list_stage_flags,
    list_task_flags,
)
from isolux.cli.streams import print_clean_lines

if TYPE_CHECKING:
    from isolux.core.errors import IsoluxError

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
    from isolux.api.audit import run_audit
    from isolux.api.audit.inputs import read_audit_settings, split_by_model
    from isolux.cli.audit_screen import print_audit
    from isolux.cli.lazy_imports import install_lazy_modules
    from isolux.cli.prediction_progress import track_predictions
    from isolux.io.atomic import refuse_existing

    spec = read_audit_settings(data, drop_unset_settings(settings))
    has_out = spec.report.out is not None
    out = spec.report.out or _choose_default_out_dir(spec)
    spec = spec.updated(out=out)
    if spec.model.spec is not None and spec.model.answers is None:
        spec = spec.updated(answers=f"{out}.answers")
    run_specs = split_by_model(spec)
    for run_spec in run_specs:
        refuse_existing(
            _choose_out_dir(run_spec), overwrite=run_spec.report.overwrite
        )  # before minutes of work
    install_lazy_modules("numpy.f2py")
    for run_spec in run_specs:
        if len(run_specs) > 1:
            print_clean_lines(f"{run_spec.predictions.model_name}:")
        finished_audit = run_audit(run_spec, open_progress=track_predictions)
        report = finished_audit.report(
            _choose_out_dir(run_spec), overwrite=run_spec.report.overwrite
        )
        print_audit(
            finished_audit.run,
            report,
            default_out=None if has_out else _choose_out_dir(run_spec),
            notes=bool(notes),
        )
    if len(run_specs) > 1:
        print_clean_lines(
            "",
            f"compare two of them: isolux compare {_choose_out_dir(run_specs[0])}"
            f" {_choose_out_dir(run_specs[1])}",
        )


def build_audit_command(args: Sequence[str], *, shows_all: bool) -> Callable[..., None]:
    """Build the command with the flags of the task that the arguments name."""
    from isolux.core import registry

    task = find_task_name(args)
    task_flags = list_task_flags(task) if task in registry.names("tasks") else []
    flags = [flag for flag in list_stage_flags() if flag.name != "data"]
    position = next(i for i, flag in enumerate(flags) if flag.name == "task") + 1
    flags = [*flags[:position], *task_flags, *flags[position:], _NOTES]
    return add_arguments_and_flags(
        audit, [build_data_argument(is_required=True)], flags, shows_all=shows_all
    )


def find_task_name(args: Sequence[str]) -> str:
    """Find the task that a command line names: a flag, a paper's protocol, a file, the default.

    Examples
    --------
    >>> find_task_name(["table:people.csv", "--task", "detection"])
    'detection'
    """
    from isolux.core.spec import Task

    flag = _find_flag_value(args, "--task")
    file_settings = {} if flag else _read_settings_file_if_named(args)
    task_setting = file_settings.get("task")
    file_task = task_setting.get("name") if isinstance(task_setting, dict) else task_setting
    protocol = _find_flag_value(args, "--protocol") or file_settings.get("protocol")
    return str(flag or file_task or _find_protocol_task(protocol) or Task().name)


def build_unknown_flag_error(args: Sequence[str], flag: str) -> IsoluxError:
    """Explain an unknown flag: which command or task has it, or the nearest name."""
    from isolux.core import registry
    from isolux.core.errors import SpecError, UnknownNameError
    from isolux.core.spec import SETTING_BY_FLAT_NAME, build_unknown_setting_error

    if flag == "--analysis":
        return SpecError(
            "an audit runs analyses by --explain",
            expected="--explain NAME",
            found=flag,
            hint="--analysis is of `isolux explain RUN`, which runs them on a finished audit",
        )
    name, task = flag.lstrip("-").replace("-", "_").removeprefix("no_"), find_task_name(args)
    task_names = registry.names("tasks")
    if task not in task_names:
        return UnknownNameError("task", task, task_names, where="--task")
    other_names = [*SETTING_BY_FLAT_NAME, "protocol", "option"]
    return build_option_usage_error("audit", flag) or build_unknown_setting_error(
        task, name, other_names, source=flag
    )


def _find_flag_value(args: Sequence[str], flag: str) -> str | None:
    for position, text in enumerate(args):
        if text == flag and position + 1 < len(args):
            return args[position + 1]
        if text.startswith(f"{flag}="):
            return text.partition("=")[2]
    return None


def _read_settings_file_if_named(args: Sequence[str]) -> dict[str, Any]:
    """Read the settings file, if one is named; its errors are reported when it is run."""
    from isolux.api.audit.inputs import is_settings_file, read_settings_file
    from isolux.core.errors import IsoluxError

    for text in args:
        if is_settings_file(text):
            try:
                return read_settings_file(text)
            except IsoluxError:
                return {}
    return {}


def _find_protocol_task(protocol: object) -> str | None:
    from isolux.core import registry

    paper, _, name = str(protocol or "").partition(":")
    if paper not in registry.names("papers"):
        return None
    settings = getattr(registry.load("papers", paper), "PROTOCOLS", {}).get(name, {})
    task = settings.get("task")
    return None if task is None else str(task)


def _choose_out_dir(spec: Any) -> str:
    return str(spec.report.out)


def _choose_default_out_dir(spec: Any) -> str:
    stem = Path(spec.people.data.partition(":")[2] or "audit").stem
    return str(Path("runs") / (spec.predictions.model_name or stem))

"""``isolux predict``: run a model over a dataset's pictures, and go on where it was stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines, print_to_stderr
from isolux.core.printable import clean_line

if TYPE_CHECKING:
    from isolux.api.predict import PredictionResult

_STAGES = ("people", "engine", "model")
_SET_ELSEWHERE = ("data", "answers", "sums")  # an argument, --out; a folder of counts
_OTHER_FLAGS = ("model_name", "overwrite", "option")


def predict(
    data: str | None = None,
    *,
    out: str | None = None,
    resume: str | None = None,
    status: str | None = None,
    **settings: Any,
) -> None:
    """Run a model over a dataset's pictures; repeat the command to resume it.

    DATA is NAME:PATH, or a YAML file of settings: its `out` is a run's, and without `answers`
    they go to OUT.answers, where `isolux audit` looks for them. Pictures are processed in shards,
    each saved when it is complete: what has not changed is not run again. Ctrl-C finishes the
    current shard first.
    """
    from isolux.api.predict import read_spec_with_changes, run_predict
    from isolux.cli._flags import drop_unset_settings, refuse_options_unused_by_predict
    from isolux.cli.prediction_progress import track_predictions
    from isolux.core.errors import SpecError

    if status is not None:
        _print_status(Path(status))
        return
    typed_settings = drop_unset_settings(settings)
    refuse_options_unused_by_predict(typed_settings.get("option", ()), settings)
    if resume is not None:
        if data is not None or out is not None:
            raise SpecError("--resume takes everything from its directory", found="DATA or --out")
        spec = read_spec_with_changes(resume, **typed_settings)
    else:
        spec = _read_settings(data, out, typed_settings)
    started_at = time.monotonic()
    with track_predictions() as (report, should_stop):
        try:
            prediction_run = run_predict(spec, tell=report, stop=should_stop)
        except KeyboardInterrupt:
            print_to_stderr(f"go on: {clean_line(_format_resume_command(spec))}")
            raise
    _print_result(prediction_run, time.monotonic() - started_at)


def _format_resume_command(spec: Any) -> str:
    """Format the command that resumes a run, with its engine flags, which are not recorded."""
    engine_settings = {
        k: v for k, v in spec.engine.model_dump().items() if k in spec.engine.model_fields_set
    }
    engine_flags = "".join(
        f" --{'engine' if k == 'name' else k} {v}" for k, v in engine_settings.items()
    )
    return f"isolux predict --resume {spec.model.answers}{engine_flags}"


def _read_settings(data: str | None, out: str | None, typed_settings: dict[str, Any]) -> Any:
    """Read the settings of the command line, and of a file if one is named."""
    from isolux.api.audit.inputs import read_audit_settings
    from isolux.core.errors import SpecError

    if data is None:
        raise SpecError(
            "it is not said what to predict",
            expected="DATA, as NAME:PATH, with --model and --out; or --resume OUT, or --status OUT",
            found="none",
        )
    if out is not None:
        typed_settings = typed_settings | {"answers": out}
    spec = read_audit_settings(data, typed_settings)
    if spec.model.answers is None and spec.report.out is not None:  # of a file, as audit takes it
        spec = spec.updated(answers=f"{spec.report.out}.answers")
    if spec.model.answers is None:
        raise SpecError(
            "it is not said where to write",
            expected="--out DIR",
            found="none",
            hint="repeat the command to resume from what is there",
        )
    return spec


def build_predict_command() -> Callable[..., None]:
    """Build the command: its flags are the settings of the stages people, engine and model."""
    from isolux.cli._flags import (
        Flag,
        add_arguments_and_flags,
        build_data_argument,
        list_settings_without_flag,
        list_stage_flags,
    )
    from isolux.core.spec import SETTING_BY_FLAT_NAME

    directory_flags = [
        Flag("out", str, None, "the directory of answers to write, or to resume"),
        Flag("resume", str, None, "resume a directory with the settings stored in it"),
        Flag("status", str, None, "only show the progress of a directory"),
    ]
    setting_flags = [
        flag
        for flag in [*list_stage_flags(), *list_settings_without_flag(("engine", "model"))]
        if flag.name not in _SET_ELSEWHERE
        and (flag.name in _OTHER_FLAGS or SETTING_BY_FLAT_NAME.get(flag.name, ("",))[0] in _STAGES)
    ]
    return add_arguments_and_flags(
        predict,
        [build_data_argument(is_required=False)],
        [*directory_flags, *setting_flags],
        shows_all=True,
    )


def _print_result(prediction_run: PredictionResult, seconds: float) -> None:
    from isolux.core.notes import split_cautions_from_notes

    cautions, notes = split_cautions_from_notes(prediction_run.notes)
    for caution in cautions:
        command_output.report_warning(caution)
    n_images = prediction_run.record["pictures"]
    n_earlier = n_images - prediction_run.n_computed
    rate = (
        f", {prediction_run.n_computed / seconds:.1f} a second"
        if prediction_run.n_computed and seconds
        else ""
    )
    print_clean_lines(
        f"{n_images:,} pictures: {prediction_run.n_computed:,} looked at now{rate}"
        + (f", {n_earlier:,} answered before" if n_earlier else "")
    )
    for note in notes:
        command_output.report_note(note)
    command_output.report_file("answers", prediction_run.folder)
    print_clean_lines(
        f"audit them: isolux audit {prediction_run.record['spec'].get('data', 'DATA')}"
        f" --predictions {prediction_run.folder} --by …"
    )


def _print_status(folder: Path) -> None:
    from isolux.cli.table_output import print_unbroken_table
    from isolux.engine import ShardStore

    store = ShardStore(folder)
    record, committed = store.read_record(), store.list_committed_keys()
    n_committed = sum(1 for index in committed if index < int(record["shards"]))
    model = record["model"]
    rows = [
        ["state", str(record["state"])],
        ["model", f"{model['spec']} ({model['name']}, answers {model['predicts']})"],
        ["data", f"{record['spec'].get('data', record['dataset']['name'])}"],
        ["pictures", f"{record['pictures']:,}"],
        ["shards", f"{n_committed:,} of {record['shards']:,} committed"],
    ]
    missing = record.get("unanswered") or []
    rows += [["no answer", f"{row['inferences']:,}: {row['reason']}"] for row in missing]
    print_unbroken_table("", ["", str(folder)], rows)
    if record["state"] != "finished":
        print_clean_lines(f"go on: isolux predict --resume {folder}")

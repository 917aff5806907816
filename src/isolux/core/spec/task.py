"""Settings of the task: which it is, and the keyword parameters of its own ``score``.

What a task takes is declared in its ``score`` alone, with its type, default and description. Names
that no other stage has go to the task; ``validate_task_settings`` holds them against that function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isolux.core import registry
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.plugin_options import (
    Option,
    format_cli_flag,
    list_keyword_options,
    parse_option_value,
    refuse_unknown_name,
)
from isolux.core.spec.stage import SettingsStage, setting

FILLED_PARAMETERS = ("model", "unknown_values")
"""Parameters of ``score`` that an audit fills itself, from other stages."""

READ_LATER = ("prediction_map", "database", "database_predictions")
"""Settings that name a file or a dataset, which an audit reads with its other inputs."""

BLANK_TEXT = '""'
"""How text names the empty cells of the truth in a label map."""

_PARAMETER_BY_FLAG = {"metric": "metrics"}
_COMMA_LISTS = ("metrics", "read", "between")
"""Lists of names, of rules, of two values: `--metric recall,precision` is `--metric` twice."""
"""A flag that is given several times has a singular name."""


class Task(SettingsStage):
    """The task, and its own settings by the names of its ``score``'s parameters."""

    name: str = setting(
        "classification", "the task, one of `isolux list tasks`", flat="task", often=True
    )
    settings: dict[str, Any] = setting({}, "settings of the task's own, by name")

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that were asked for; empty: the task's own choice."""
        requested_metrics = self.settings.get("metrics") or ()
        return (
            (requested_metrics,) if isinstance(requested_metrics, str) else tuple(requested_metrics)
        )

    def get(self, name: str) -> Any:
        """Return one of the task's own settings; None where it was not given."""
        return self.settings.get(name)


def _split_comma_list(raw_value: Any) -> Any:
    """Split the only entry of a list at its commas; one with an equals sign names a question."""
    entries = [raw_value] if isinstance(raw_value, str) else raw_value
    if not entries or len(entries) > 1 or not isinstance(entries[0], str) or "=" in entries[0]:
        return entries
    return [name.strip() for name in entries[0].split(",")]


def flag_to_score_parameter(flag_name: str) -> str:
    """Return the parameter of ``score`` that a flag's or a file's name stands for."""
    return _PARAMETER_BY_FLAG.get(flag_name, flag_name)


def score_parameter_to_flag(parameter: str) -> str:
    """Return the name under which a parameter of ``score`` is a flag or stands in a file."""
    return next((flag for flag, name in _PARAMETER_BY_FLAG.items() if name == parameter), parameter)


def list_task_options(task: str) -> dict[str, Option]:
    """List the settings of a task's own by parameter: type, default, description.

    Raises
    ------
    UnknownNameError
        There is no such task.
    """
    options = list_keyword_options(registry.load("tasks", task).score)
    return {name: option for name, option in options.items() if name not in FILLED_PARAMETERS}


def validate_task_settings(
    task: Task, *, source: str | None, other_settings: Sequence[str] = ()
) -> Task:
    """Hold a task's settings against its ``score``: names, types and limits.

    Parameters
    ----------
    task : Task
        Its settings as they were given: text from a command line, or values.
    source : str or None
        Where they were given, for errors.
    other_settings : sequence of str
        Settings of other stages, to find what a misspelt name meant.

    Raises
    ------
    SpecError
        No such setting, or a value that it does not take.
    """
    if not task.settings:
        return task
    valid_names = _list_task_parameters(task.name)
    if valid_names is None:
        for name in task.settings:
            refuse_unknown_name(
                score_parameter_to_flag(name),
                (*_list_all_task_flags(), *other_settings),
                source=source,
            )
        return task
    parsed_settings: dict[str, Any] = {}
    for name, given_value in task.settings.items():
        raw_value = _read_prediction_map(given_value) if name == "prediction_map" else given_value
        if (
            name not in valid_names
            and raw_value in (None, (), [])
            and score_parameter_to_flag(name) in _list_all_task_flags()
        ):
            continue  # not said: a paper's settings for several tasks
        if name not in valid_names:
            raise build_unknown_setting_error(task.name, name, other_settings, source=source)
        if name in READ_LATER and isinstance(raw_value, str) and raw_value:
            parsed_settings[name] = raw_value
        elif name == "label_map" and not isinstance(raw_value, Mapping):
            texts = (raw_value,) if isinstance(raw_value, str) else tuple(raw_value or ())
            merge_texts = tuple(
                merge_text for text in texts for merge_text in _expand_paper_merge_name(text)
            )
            parsed_settings[name] = parse_value_merges(merge_texts, "label_map") or None
        else:
            function = registry.load("tasks", task.name).score
            parsed_settings[name] = parse_option_value(
                function,
                name,
                _split_comma_list(raw_value) if name in _COMMA_LISTS else raw_value,
                owner=f"the task {task.name}",
                displayed_name=score_parameter_to_flag(name),
                source=source,
            )
    return task.model_copy(update={"settings": parsed_settings})


def _list_task_parameters(task: str) -> tuple[str, ...] | None:
    """Name what a task takes; None for one that is not registered (scores made elsewhere)."""
    return tuple(list_task_options(task)) if task in registry.names("tasks") else None


def _list_all_task_flags() -> list[str]:
    return [
        score_parameter_to_flag(name)
        for task in registry.names("tasks")
        for name in list_task_options(task)
    ]


def build_unknown_setting_error(
    task: str, name: str, other_settings: Sequence[str] = (), *, source: str | None = None
) -> SpecError:
    """Say that a setting is another task's, or none at all.

    Parameters
    ----------
    task, name : str
        The task, and the name that it does not take.
    other_settings : sequence of str
        Settings of other stages, to find what a misspelt name meant.
    source : str or None
        Where the name was given.
    """
    flag, name = score_parameter_to_flag(name), flag_to_score_parameter(name)
    valid_names = _list_task_parameters(task) or ()
    takers = [
        task_name for task_name in registry.names("tasks") if name in list_task_options(task_name)
    ]
    if flag == "data":
        return SpecError(
            "the dataset is the command's first argument, and has no flag",
            expected="isolux audit NAME:PATH, such as table:people.csv",
            found="--data",
        )
    if not takers:
        try:
            refuse_unknown_name(
                flag, [*other_settings, *map(score_parameter_to_flag, valid_names)], source=source
            )
        except SpecError as error:
            return error
        return SpecError(
            f"{flag!r} is no setting of the task {task!r}",
            expected=format_cli_flag(flag),
            found=flag,
            where=source,
        )
    return SpecError(
        f"the task {task!r} has no setting {flag!r}",
        expected="one of " + ", ".join(map(score_parameter_to_flag, valid_names)),
        where=source,
        hint=f"it belongs to the task {' or '.join(takers)}: name the task too",
    )


def _expand_paper_merge_name(text: str) -> tuple[str, ...]:
    """Write a paper's merge out by its name, ``fairface:races-4``; others stay as they are.

    Raises
    ------
    UnknownNameError
        With the names of every paper's merges.
    """
    if "=" in text or ":" not in text:
        return (text,)
    merges = {
        f"{paper}:{name}": merge
        for paper in registry.names("papers")
        for name, merge in getattr(registry.load("papers", paper), "MERGES", {}).items()
    }
    if text not in merges:
        raise UnknownNameError("merge of a paper", text, merges, where="--label-map")
    return tuple(f"{new}={','.join(old)}" for new, old in merges[text].items())


def _read_prediction_map(raw_value: Any) -> Any:
    """Read ``CLASS=LABEL,LABEL``, the syntax of ``--label-map``; files and mappings stay."""
    texts = [raw_value] if isinstance(raw_value, str) else raw_value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        return raw_value
    if not texts or texts[0].startswith("{"):
        return texts
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    merges = parse_value_merges(tuple(texts), "prediction_map")
    class_by_label: dict[str, str] = {}
    for class_name, labels in merges.items():
        for label in labels:
            if class_by_label.setdefault(label, class_name) != class_name:
                raise SpecError(
                    f"the label {label!r} goes to two classes",
                    found=f"{class_by_label[label]!r} and {class_name!r}",
                    where="prediction_map",
                )
    return class_by_label


def parse_value_merges(texts: tuple[str, ...], setting: str) -> dict[str, tuple[str, ...]]:
    """Read ``"Asian=East Asian,Southeast Asian"``: a new name and the values that it unites.

    Examples
    --------
    >>> parse_value_merges(("Asian=East Asian,Asian",), "label_map")
    {'Asian': ('East Asian', 'Asian')}

    Empty quotation marks stand for an empty cell:

    >>> parse_value_merges(('0="",-1',), "label_map")
    {'0': ('', '-1')}
    """
    merges: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        old_values = tuple(v.strip() for v in values.split(",") if v.strip())
        if setting == "label_map":
            old_values = tuple("" if v == BLANK_TEXT else v for v in old_values)
        if not equals or not name.strip() or not old_values:
            raise SpecError(
                f"the setting {setting!r} cannot be read",
                expected="NEW=OLD,OLD, such as Asian=East Asian,Southeast Asian, or a paper's "
                "merge by name, such as fairface:races-4",
                found=repr(text),
            )
        merges[name.strip()] = (*merges.get(name.strip(), ()), *old_values)
    return merges

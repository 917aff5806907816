"""Settings of the task: which it is, and the keyword parameters of its own ``score``.

What a task takes is declared in its ``score`` alone, with its type, default and description. Names
that no other stage has go to the task; ``read_task`` holds them against that function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isolux.vocabulary import registry
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.plugin_options import (
    Option,
    dashed,
    described_options,
    read_value,
    refuse_unknown,
)
from isolux.vocabulary.spec.stage import Stage, setting

GIVEN = ("model", "unknown_values")
"""Parameters of ``score`` that an audit fills itself, from other stages."""

READ_LATER = ("prediction_map", "database", "database_predictions")
"""Settings that name a file or a dataset, which an audit reads with its other inputs."""

_CALLED = {"metric": "metrics"}
"""A flag that is given several times has a singular name."""


class Task(Stage):
    """The task, and its own settings by the names of its ``score``'s parameters."""

    name: str = setting(
        "classification", "the task, one of `isolux list tasks`", flat="task", often=True
    )
    settings: dict[str, Any] = setting({}, "settings of the task's own, by name")

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that were asked for; empty: the task's own choice."""
        asked = self.settings.get("metrics") or ()
        return (asked,) if isinstance(asked, str) else tuple(asked)

    def get(self, name: str) -> Any:
        """Return one of the task's own settings; None where it was not given."""
        return self.settings.get(name)


def parameter_of(name: str) -> str:
    """Return the parameter of ``score`` that a flag's or a file's name stands for."""
    return _CALLED.get(name, name)


def called(parameter: str) -> str:
    """Return the name under which a parameter of ``score`` is a flag or stands in a file."""
    return next((flag for flag, name in _CALLED.items() if name == parameter), parameter)


def task_parameters(task: str) -> dict[str, Option]:
    """List the settings of a task's own by parameter: type, default, description.

    Raises
    ------
    UnknownNameError
        There is no such task.
    """
    found = described_options(registry.load("tasks", task).score)
    return {name: option for name, option in found.items() if name not in GIVEN}


def read_task(task: Task, *, where: str | None, others: Sequence[str] = ()) -> Task:
    """Hold a task's settings against its ``score``: names, types and limits.

    Parameters
    ----------
    task : Task
        Its settings as they were given: text from a command line, or values.
    where : str or None
        Where they were given, for errors.
    others : sequence of str
        Settings of other stages, to find what a misspelt name meant.

    Raises
    ------
    SpecError
        No such setting, or a value that it does not take.
    """
    if not task.settings:
        return task
    known = _known(task.name)
    if known is None:
        for name in task.settings:
            refuse_unknown(called(name), (*_of_any_task(), *others), where=where)
        return task
    read: dict[str, Any] = {}
    for name, value in task.settings.items():
        if name not in known and value in (None, (), []) and called(name) in _of_any_task():
            continue  # not said: a paper's settings for several tasks
        if name not in known:
            raise refusal_of(task.name, name, others, where=where)
        if name in READ_LATER and isinstance(value, str) and value:
            read[name] = value
        elif name == "label_map" and not isinstance(value, Mapping):
            texts = (value,) if isinstance(value, str) else tuple(value or ())
            plain = tuple(part for text in texts for part in _of_paper(text))
            read[name] = parse_merges(plain, "label_map") or None
        else:
            function = registry.load("tasks", task.name).score
            read[name] = read_value(
                function,
                name,
                value,
                owner=f"the task {task.name}",
                called=called(name),
                where=where,
            )
    return task.model_copy(update={"settings": read})


def _known(task: str) -> tuple[str, ...] | None:
    """Name what a task takes; None for one that is not registered (scores made elsewhere)."""
    return tuple(task_parameters(task)) if task in registry.names("tasks") else None


def _of_any_task() -> list[str]:
    return [called(name) for task in registry.names("tasks") for name in task_parameters(task)]


def refusal_of(
    task: str, name: str, others: Sequence[str] = (), *, where: str | None = None
) -> SpecError:
    """Say that a setting is another task's, or none at all.

    Parameters
    ----------
    task, name : str
        The task, and the name that it does not take.
    others : sequence of str
        Settings of other stages, to find what a misspelt name meant.
    where : str or None
        Where the name was given.
    """
    flag, name = called(name), parameter_of(name)
    known = _known(task) or ()
    takers = [one for one in registry.names("tasks") if name in task_parameters(one)]
    if not takers:
        try:
            refuse_unknown(flag, [*others, *map(called, known)], where=where)
        except SpecError as error:
            return error
        first = "NAME:PATH as the first argument of the command"
        return SpecError(
            f"{flag!r} is no setting of the task {task!r}",
            expected=first if flag == "data" else dashed(flag),
            found=flag,
            where=where,
        )
    return SpecError(
        f"the task {task!r} has no setting {flag!r}",
        expected="one of " + ", ".join(map(called, known)),
        where=where,
        hint=f"it belongs to the task {' or '.join(takers)}: name the task too",
    )


def _of_paper(text: str) -> tuple[str, ...]:
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


def parse_merges(texts: tuple[str, ...], setting: str) -> dict[str, tuple[str, ...]]:
    """Read ``"Asian=East Asian,Southeast Asian"``: a new name and the values that it unites.

    Examples
    --------
    >>> parse_merges(("Asian=East Asian,Asian",), "label_map")
    {'Asian': ('East Asian', 'Asian')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        parts = tuple(v.strip() for v in values.split(",") if v.strip())
        if not equals or not name.strip() or not parts:
            raise SpecError(
                f"the setting {setting!r} cannot be read",
                expected="NEW=OLD,OLD, such as Asian=East Asian,Southeast Asian, or a paper's "
                "merge by name, such as fairface:races-4",
                found=repr(text),
            )
        found[name.strip()] = parts
    return found

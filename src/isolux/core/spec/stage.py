"""One stage's settings: the class that every stage's are, and how one setting is declared."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo

PredictionKind = Literal["labels", "outputs", "numbers"]
"""What a task judges: labels of people, numbers of people, or what pictures hold."""


class SettingsStage(BaseModel):
    """Settings of one stage of an audit. They cannot be changed; unknown names are refused."""

    # Built when it is first asked for: a command reads few of the stages, and each takes a while.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _normalise_values(cls, values: Any) -> Any:
        """Take values as files and command lines write them."""
        if not isinstance(values, dict):
            return values
        return {
            name: _normalise_value(cls.model_fields.get(name), raw_value)
            for name, raw_value in values.items()
        }


def _normalise_value(field: FieldInfo | None, raw_value: Any) -> Any:
    """Take one item as a list of one, and as a number the text of one of a few numbers."""
    if field is None:
        return raw_value
    if isinstance(field.get_default(), tuple) and isinstance(raw_value, str | int):
        return (raw_value,)
    if get_origin(field.annotation) is Literal and isinstance(raw_value, str):
        return next(
            (word for word in get_args(field.annotation) if str(word) == raw_value), raw_value
        )
    return raw_value


def setting(
    default: Any,
    description: str,
    *,
    flat: str | None = None,
    often: bool = False,
    flag: bool = True,
    needs: tuple[str, ...] = (),
    prediction_kinds: tuple[PredictionKind, ...] = (),
    **limits: Any,
) -> Any:
    """Declare a setting: its default, what it does, and the limits of its value.

    Parameters
    ----------
    default : object
        ``...`` where it must be given.
    description : str
        What help, report and errors say it is, with its unit.
    flat : str, optional
        Its name as a flag and in a flat file, where that is not the field's own.
    often : bool
        Whether most audits need it: ``isolux audit --help`` shows those alone.
    flag : bool
        Whether it has a flag of its own; the others are set with ``--option NAME=VALUE``.
    needs : tuple of str
        Flat names of settings, one of which must be set for this one to have an effect, or what
        the data or the task must be (``api.audit.unused_settings``). Empty: none.
    prediction_kinds : tuple of str
        The kinds of predictions (``TaskInfo.predictions``) that it is about. Empty: all.
    **limits
        As ``pydantic.Field`` takes them: ``gt``, ``ge``, ``lt``, ``le``.
    """
    extra: dict[str, Any] = {
        "flat": flat,
        "often": often,
        "flag": flag,
        "needs": needs,
        "prediction_kinds": prediction_kinds,
    }
    return Field(default, description=description, json_schema_extra=extra, **limits)


def map_fields_to_flag_names(stage: type[SettingsStage]) -> dict[str, str]:
    """Map each field of a stage to its name as a flag, ``_`` standing for ``-``.

    Examples
    --------
    >>> class Explain(SettingsStage):
    ...     analyses: tuple[str, ...] = setting((), "what to run", flat="explain")
    >>> map_fields_to_flag_names(Explain)
    {'analyses': 'explain'}
    """
    extras = {name: field.json_schema_extra for name, field in stage.model_fields.items()}
    extra_by_name = {
        name: extra if isinstance(extra, dict) else {} for name, extra in extras.items()
    }
    return {name: str(extra.get("flat") or name) for name, extra in extra_by_name.items()}

"""The fields of a world in YAML, with their types: what a single field can say of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from isolux_worlds.photo_world.vocabulary import Level

__all__ = ["SETTINGS_NAMES", "AttributeSettings", "ModelSettings", "WorldFields"]

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"


def _yaml_scalar_to_text(raw: object) -> str:
    """Write a value as the tables have it; YAML reads 9 as a number and true as a truth."""
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, str | int | float):
        return str(raw)
    raise ValueError("a value should be a word or a number")


def _yaml_scalars_to_texts(raw: object) -> object:
    return (
        tuple(map(_yaml_scalar_to_text, raw))
        if isinstance(raw, list | tuple)
        else (_yaml_scalar_to_text(raw),)
    )


def _yaml_keys_to_text(raw: object) -> object:
    return {_yaml_scalar_to_text(k): v for k, v in raw.items()} if isinstance(raw, Mapping) else raw


def _number_to_range(raw: object) -> object:
    return (raw, raw) if isinstance(raw, int) else raw


def _refuse_bool(raw: object) -> object:
    if isinstance(raw, bool):
        raise ValueError("a number is needed, not a truth value")  # noqa: TRY004 - pydantic's
    return raw


Count = Annotated[int, Field(strict=True, ge=1)]
CountRange = Annotated[tuple[Count, Count], BeforeValidator(_number_to_range)]
Number = Annotated[float, BeforeValidator(_refuse_bool), Field(allow_inf_nan=False)]
Share = Annotated[float, BeforeValidator(_refuse_bool), Field(ge=0, le=1, allow_inf_nan=False)]
Shares = Annotated[dict[str, Share], BeforeValidator(_yaml_keys_to_text)]
Conditions = Annotated[
    dict[str, Annotated[tuple[str, ...], BeforeValidator(_yaml_scalars_to_texts)]],
    BeforeValidator(_yaml_keys_to_text),
]
"""Attribute to the values meant: all of them must hold; of one attribute any."""
Name = Annotated[str, Field(pattern=_NAME)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Conditional(_Frozen):
    """Shares that hold for some, in place of the attribute's own; a value not named has none."""

    where: Conditions
    shares: Shares


class AttributeSettings(_Frozen):
    """An attribute: who has it, its values and their shares.

    ``level`` and ``shares`` may be left out for what the painter draws (``core.DRAWN``).
    """

    level: Level | None = None
    shares: Shares | None = None
    given: tuple[Conditional, ...] = ()


class ImageSettings(_Frozen):
    """The size of every photo, pixels."""

    width: Annotated[int, Field(strict=True, ge=64, le=8192)] = 640
    height: Annotated[int, Field(strict=True, ge=64, le=8192)] = 480


class ErrorSettings(_Frozen):
    """A share of wrong labels that holds for some people, in place of everyone's."""

    where: Conditions
    error: Share


class AnnotatorSettings(_Frozen):
    """Who judges photos: ``number`` of them, each wrong with the chance ``error``.

    The first of ``errors`` that fits a person counts in place of ``error``.
    """

    number: Annotated[int, Field(strict=True, ge=1, le=99)] = 3
    error: Share = 0.1
    errors: tuple[ErrorSettings, ...] = ()


class EffectSettings(_Frozen):
    """What is added to the logit of being right, where all of ``where`` holds."""

    where: Conditions
    size: Annotated[Number, Field(ge=-50, le=50)]


class ModelSettings(_Frozen):
    """A simulated model: its chance to be right about a person is logistic.

    ``correlation`` is that of a normal variable behind the answers, between photos of one subject;
    means stay as injected whatever it is. ``false_alarms`` is the mean number of false alarms in
    a photo, ``jitter`` the standard deviation of a box's edges, in parts of its side.
    """

    name: Name
    base_rate: Annotated[Number, Field(gt=0, lt=1)]
    effects: tuple[EffectSettings, ...] = ()
    correlation: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    false_alarms: Annotated[Number, Field(ge=0, le=100)] = 0.5
    jitter: Annotated[Number, Field(ge=0, le=0.5)] = 0.05


class WorldFields(_Frozen):
    """The fields of a world, each sound by itself; ``WorldSettings`` are those that also agree.

    Parameters
    ----------
    name, about : str
        A word for files, and a sentence for people.
    seed : int
        Of every random number, unless ``draw_people`` is given another.
    households : int
        How many; they are independent of one another.
    subjects, photos : int or (int, int)
        Of each household: a number, or a range drawn from uniformly, ends included.
    people : int or (int, int)
        In each photo, likewise, but never more than the household has; where the draw would leave
        a subject in no photo, photos get more people.
    image : ImageSettings
    attributes : mapping of str to AttributeSettings
        In order: ``given`` names earlier ones. ``income_group`` (low, middle, high), ``country``
        and ``region`` (af, am, as, eu), all of households, decide what they say.
    annotators : AnnotatorSettings
    models : tuple of ModelSettings
    by : tuple of str
        Attributes and intersections (``"skin_tone*lighting"``) whose truth is wanted. Empty: each
        attribute that the world names.
    """

    name: Name
    about: Annotated[str, Field(max_length=1000)] = ""
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)] = 0
    households: Count = 400
    subjects: CountRange = (1, 4)
    photos: CountRange = (2, 4)
    people: CountRange = (1, 5)
    image: ImageSettings = ImageSettings()
    attributes: dict[str, AttributeSettings] = {}
    annotators: AnnotatorSettings = AnnotatorSettings()
    models: tuple[ModelSettings, ...] = ()
    by: Annotated[tuple[str, ...], BeforeValidator(_yaml_scalars_to_texts)] = ()


SETTINGS_NAMES = [name for kind in _Frozen.__subclasses__() for name in kind.model_fields]
"""Names of all settings, for hints."""

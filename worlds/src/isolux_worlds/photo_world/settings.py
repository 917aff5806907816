"""A world in YAML: who lives in it, how they are photographed, who annotates, which models err how.

``world.yaml -> read_world -> WorldSettings``; ``preset`` reads one of those that come with isolux.
``people.draw_people`` draws from it, ``planted.planted`` gives the exact truth of every group.

Attributes are a Bayesian network: each has ``shares``, and ``given`` a list of conditions on
attributes named before it, of which the first that holds counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from isolux.vocabulary.errors import IsoluxError, SpecError, UnknownNameError
from isolux_worlds.photo_world._settings_checks import check_world
from isolux_worlds.photo_world._settings_words import first_problem
from isolux_worlds.photo_world._world_files import read_yaml_file
from isolux_worlds.photo_world.vocabulary import Level

__all__ = [
    "PRESETS",
    "AnnotatorSettings",
    "AttributeSettings",
    "Conditional",
    "EffectSettings",
    "ErrorSettings",
    "ImageSettings",
    "ModelSettings",
    "WorldSettings",
    "parse_world",
    "preset",
    "read_world",
    "world_text",
]

PRESETS = ("fair", "biased", "confounded", "masked", "small_groups", "noisy_annotators")
"""The worlds that come with isolux."""

_FOLDER = Path(__file__).parent / "presets"
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"


def _word(value: object) -> str:
    """Write a value as the tables have it; YAML reads 9 as a number and true as a truth."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError("a value should be a word or a number")


def _words(value: object) -> object:
    return tuple(map(_word, value)) if isinstance(value, list | tuple) else (_word(value),)


def _keyed(value: object) -> object:
    return {_word(k): v for k, v in value.items()} if isinstance(value, Mapping) else value


def _ends(value: object) -> object:
    return (value, value) if isinstance(value, int) else value


def _no_truth(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a number is needed, not a truth value")  # noqa: TRY004 - pydantic's
    return value


Count = Annotated[int, Field(strict=True, ge=1)]
Ends = Annotated[tuple[Count, Count], BeforeValidator(_ends)]
Number = Annotated[float, BeforeValidator(_no_truth), Field(allow_inf_nan=False)]
Share = Annotated[float, BeforeValidator(_no_truth), Field(ge=0, le=1, allow_inf_nan=False)]
Shares = Annotated[dict[str, Share], BeforeValidator(_keyed)]
Where = Annotated[
    dict[str, Annotated[tuple[str, ...], BeforeValidator(_words)]], BeforeValidator(_keyed)
]
"""Attribute to the values meant: all of them must hold; of one attribute any."""
Name = Annotated[str, Field(pattern=_NAME)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Conditional(_Frozen):
    """Shares that hold for some, in place of the attribute's own; a value not named has none."""

    where: Where
    shares: Shares


class AttributeSettings(_Frozen):
    """An attribute: who has it, its values and their shares.

    ``level`` and ``shares`` may be left out for what the painter draws (``vocabulary.DRAWN``).
    """

    level: Level | None = None
    shares: Shares | None = None
    given: tuple[Conditional, ...] = ()


class ImageSettings(_Frozen):
    """The size of every photo, pixels."""

    width: Annotated[int, Field(strict=True, ge=64, le=8192)] = 640
    height: Annotated[int, Field(strict=True, ge=64, le=8192)] = 480


class ErrorSettings(_Frozen):
    """A share of wrong labels that holds for some people, in place of everybody's."""

    where: Where
    error: Share


class AnnotatorSettings(_Frozen):
    """Who judges photos: ``number`` of them, each wrong with the chance ``error``.

    The first of ``errors`` that fits somebody counts in place of ``error``.
    """

    number: Annotated[int, Field(strict=True, ge=1, le=99)] = 3
    error: Share = 0.1
    errors: tuple[ErrorSettings, ...] = ()


class EffectSettings(_Frozen):
    """What is added to the logit of being right, where all of ``where`` holds."""

    where: Where
    size: Annotated[Number, Field(ge=-50, le=50)]


class ModelSettings(_Frozen):
    """A simulated model: its chance to be right about somebody is logistic.

    ``correlation`` is that of a normal variable behind the answers, between photos of one subject;
    means stay as planted whatever it is. ``false_alarms`` is the mean number of boxes of nobody in
    a photo, ``jitter`` the standard deviation of a box's edges, in parts of its side.
    """

    name: Name
    base_rate: Annotated[Number, Field(gt=0, lt=1)]
    effects: tuple[EffectSettings, ...] = ()
    correlation: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    false_alarms: Annotated[Number, Field(ge=0, le=100)] = 0.5
    jitter: Annotated[Number, Field(ge=0, le=0.5)] = 0.05


class WorldSettings(_Frozen):
    """A world, whole.

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
    subjects: Ends = (1, 4)
    photos: Ends = (2, 4)
    people: Ends = (1, 5)
    image: ImageSettings = ImageSettings()
    attributes: dict[str, AttributeSettings] = {}
    annotators: AnnotatorSettings = AnnotatorSettings()
    models: tuple[ModelSettings, ...] = ()
    by: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()

    @model_validator(mode="after")
    def _sound(self) -> Self:
        check_world(self)
        return self

    @property
    def groupings(self) -> tuple[str, ...]:
        """Return ``by``, or what it stands for when it is empty."""
        return self.by or tuple(self.attributes)

    def model_named(self, name: str) -> ModelSettings:
        """Return the model of that name, or raise UnknownNameError."""
        for model in self.models:
            if model.name == name:
                return model
        raise UnknownNameError("model", name, [m.name for m in self.models], where=self.name)


def parse_world(values: Mapping[str, Any], *, where: str | None = None) -> WorldSettings:
    """Make a world of loose values, or say which of them is wrong.

    Parameters
    ----------
    values : mapping of str to object
    where : str, optional
        The file that they come from, for errors.

    Raises
    ------
    SpecError
        With the file, the key (``attributes.lighting.given[0].shares``), what was expected there
        and what was found.

    Examples
    --------
    >>> parse_world({"name": "empty", "households": 0})
    Traceback (most recent call last):
        ...
    isolux.vocabulary.errors.SpecError: the world cannot be used as it is written
      expected: Input should be greater than or equal to 1
      found: 0
      where: key 'households'
    """
    try:
        return WorldSettings.model_validate(values)
    except ValidationError as error:
        raise first_problem(error, _settings_names(), where) from error
    except RecursionError as error:
        raise SpecError("the world is nested too deep to be one", where=where) from error
    except IsoluxError as error:
        place = ", ".join(p for p in (where, error.where) if p) or None
        raise SpecError(
            error.problem, expected=error.expected, found=error.found, where=place, hint=error.hint
        ) from error


def read_world(path: str | Path) -> WorldSettings:
    """Read a world from a YAML file.

    Words stay words (``no`` is the value no), a key that stands twice is refused, and so are
    anchors.

    Raises
    ------
    FileError, SpecError
        As ``parse_world``, with the file; the file is missing, too large or not YAML.
    """
    return parse_world(read_yaml_file(path), where=str(path))


def preset(name: str) -> WorldSettings:
    """Return one of the worlds that come with isolux: see ``PRESETS``.

    Raises
    ------
    UnknownNameError
        There is none of that name.

    Examples
    --------
    >>> preset("masked").by
    ('skin_tone', 'perceived_gender_presentation', 'skin_tone*perceived_gender_presentation')
    """
    if name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    return read_world(_FOLDER / f"{name}.yaml")


def world_text(settings: WorldSettings) -> str:
    """Write a world as YAML that ``read_world`` reads as the same world.

    Examples
    --------
    >>> print(world_text(WorldSettings(name="plain", households=10)).splitlines()[0])
    name: plain
    """
    import yaml

    values = settings.model_dump(mode="json", exclude_none=True)
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)
    return text


def _settings_names() -> list[str]:
    kinds = (WorldSettings, AttributeSettings, Conditional, ImageSettings, AnnotatorSettings,
             ErrorSettings, ModelSettings, EffectSettings)  # fmt: skip
    return [name for kind in kinds for name in kind.model_fields]

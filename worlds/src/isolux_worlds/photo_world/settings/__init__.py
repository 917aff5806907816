"""A world in YAML: who lives in it, how they are photographed, who annotates, which models err how.

``world.yaml -> read_world -> WorldSettings``; ``preset`` reads one of those that come with isolux.
``people.draw_people`` draws from it, ``injected_effects.compute_photo_injected_rates`` gives the
exact rate of every group.

Attributes are a Bayesian network: each has ``shares``, and ``given`` a list of conditions on
attributes named before it, of which the first that holds counts.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError, model_validator

from isolux.core.errors import IsoluxError, SpecError, UnknownNameError
from isolux.core.spec import split_intersection
from isolux_worlds.photo_world.settings.checks import check_world_is_consistent
from isolux_worlds.photo_world.settings.fields import SETTINGS_NAMES, ModelSettings, WorldFields
from isolux_worlds.photo_world.settings.files import read_yaml_file

__all__ = [
    "PRESETS",
    "ModelSettings",
    "WorldSettings",
    "format_world_yaml",
    "parse_world",
    "preset",
    "read_world",
]

PRESETS = ("fair", "biased", "confounded", "masked", "small_groups", "noisy_annotators")
"""The worlds that come with isolux."""

_FOLDER = Path(__file__).parent / "presets"


class WorldSettings(WorldFields):
    """A world, whole: ``WorldFields`` that do not contradict one another."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        check_world_is_consistent(self)
        return self

    @property
    def groupings(self) -> tuple[str, ...]:
        """Return ``by``, or what it stands for when it is empty."""
        return tuple("*".join(split_intersection(entry)) for entry in self.by) or tuple(
            self.attributes
        )

    def model_named(self, name: str | ModelSettings) -> ModelSettings:
        """Return the model of that name, or raise UnknownNameError; a model is itself."""
        if isinstance(name, ModelSettings):
            return name
        for model in self.models:
            if model.name == name:
                return model
        raise UnknownNameError("model", name, [m.name for m in self.models], where=self.name)


def parse_world(values: Mapping[str, Any], *, source: str | None = None) -> WorldSettings:
    """Make a world of loose values, or say which of them is wrong."""
    try:
        return WorldSettings.model_validate(values)
    except ValidationError as error:
        raise _build_error_of_first_problem(error, source) from error
    except RecursionError as error:
        raise SpecError("the world is nested too deep to be one", where=source) from error
    except IsoluxError as error:
        location = ", ".join(p for p in (source, error.where) if p) or None
        raise SpecError(
            error.problem,
            expected=error.expected,
            found=error.found,
            where=location,
            hint=error.hint,
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
    return parse_world(read_yaml_file(path), source=str(path))


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


def format_world_yaml(settings: WorldSettings) -> str:
    """Write a world as YAML that ``read_world`` reads as the same world."""
    import yaml

    values = settings.model_dump(mode="json", exclude_none=True)
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)
    return text


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def _format_key_path(keys: Sequence[object]) -> str:
    """Write where a key stands: ``attributes.lighting.given[0].shares``."""
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in keys)
    return text.removeprefix(".")


def _build_error_of_first_problem(error: ValidationError, source: str | None) -> SpecError:
    """Say what pydantic found first."""
    first = error.errors(include_url=False)[0]
    keys = [p for p in first["loc"] if p != "[key]"]
    key = f"key {_format_key_path(keys)!r}" if keys else None
    location = ", ".join(p for p in (source, key) if p) or None
    if first["type"] == "extra_forbidden":
        name = str(keys[-1])
        near = difflib.get_close_matches(name, SETTINGS_NAMES, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else "see the settings of a world"
        return SpecError(f"there is no setting {_SHORT.repr(name)}", where=location, hint=hint)
    return SpecError(
        "the world cannot be used as it is written",
        expected=str(first["msg"]).removeprefix("Value error, "),
        found="nothing" if first["type"] == "missing" else _SHORT.repr(first.get("input")),
        where=location,
    )

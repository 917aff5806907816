"""Settings of a network in an ONNX file: given, by a preset, or stored in the file itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast

from isolux.core.errors import FileError, SpecError, UnknownNameError
from isolux.models._preprocessing import Preprocessing
from isolux.models.onnx.session import Session

_T = TypeVar("_T")
_KEY = "isolux"
"""Under this name a file's metadata may hold settings, as JSON."""

Preset = Literal["imagenet", "clip", "minus-one-to-one", "bgr-255"]
PRESETS: Mapping[Preset, Mapping[str, Any]] = {
    # torchvision's references: 256 pixels, of which the middle 224.
    "imagenet": {
        "fit": "crop",
        "share": 0.875,
        "filter": "bilinear",
        "mean": [0.485, 0.456, 0.406],
        "std": [0.229, 0.224, 0.225],
        "scale": 1 / 255,
        "colours": "rgb",
    },
    # The preprocessing in OpenAI's code of CLIP.
    "clip": {
        "fit": "crop",
        "share": 1.0,
        "filter": "bicubic",
        "mean": [0.48145466, 0.4578275, 0.40821073],
        "std": [0.26862954, 0.26130258, 0.27577711],
        "scale": 1 / 255,
        "colours": "rgb",
    },
    "minus-one-to-one": {
        "mean": [0.5, 0.5, 0.5],
        "std": [0.5, 0.5, 0.5],
        "scale": 1 / 255,
        "colours": "rgb",
    },
    "bgr-255": {
        "mean": [0.0, 0.0, 0.0],
        "std": [1.0, 1.0, 1.0],
        "scale": 1.0,
        "colours": "bgr",
    },
}


class Problems:
    """What is wrong with the settings, collected so that all of it is said at once."""

    def __init__(self) -> None:
        self._errors: list[SpecError] = []

    def collect(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call a function; keep the error that it raises: then ``raise_if_any`` must follow."""
        try:
            return function(*arguments)
        except SpecError as error:
            self._errors.append(error)
            return cast("_T", None)

    def raise_if_any(self, source: str) -> None:
        """Raise the only error, or one of all that was collected."""
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:

            def join(name: str) -> str:
                texts = [getattr(error, name) for error in self._errors]
                return "; ".join(dict.fromkeys(text for text in texts if text))

            raise SpecError(
                join("problem"),
                expected=join("expected"),
                found=join("found"),
                where=source,
                hint=join("hint"),
            )


def read_metadata_settings(
    session: Session, source: str, valid_names: tuple[str, ...]
) -> dict[str, Any]:
    """Read the settings that the file itself holds; one that is misspelt would move nothing."""
    text = session.metadata.get(_KEY)
    if text is None:
        return {}
    try:
        settings = json.loads(text)
        problem = "" if isinstance(settings, dict) else type(settings).__name__
    except ValueError as error:
        settings, problem = {}, str(error)
    if problem:
        raise FileError(
            "the file's own settings cannot be read",
            expected="an object of JSON under 'isolux'",
            found=problem,
            where=source,
        )
    for key in settings:
        if key not in valid_names:
            raise UnknownNameError("setting of an ONNX network", key, valid_names, where=source)
    return dict(settings)


def apply_preset(preset: Preset | None, own_settings: Mapping[str, Any], source: str) -> Any:
    """Return a preset's settings; one that contradicts the file's own is refused."""
    if preset is None:
        return {}
    settings = PRESETS[preset]
    differences = [
        name
        for name in settings
        if name in own_settings
        and _to_comparable(settings[name]) != _to_comparable(own_settings[name])
    ]
    if differences:
        raise SpecError(
            f"the preset {preset!r} contradicts the file's own settings",
            expected="no preset, or one that agrees",
            found="; ".join(
                f"{name}={settings[name]}, in the file {own_settings[name]}" for name in differences
            ),
            where=source,
        )
    return settings


def _to_comparable(setting: Any) -> Any:
    """Round numbers, and repeat one of them for each channel."""
    if isinstance(setting, str):
        return setting
    numbers = setting if isinstance(setting, Sequence) else [setting] * 3
    return [round(float(number), 4) for number in numbers]


def build_preprocessing(
    session: Session, settings: Mapping[str, Any], size: tuple[int, int] | None
) -> Preprocessing:
    """Build how pictures are prepared, of the file's input and the settings."""
    height, width = size or (1, 1)  # None: a problem that was collected
    scalar_names = ("fit", "share", "filter", "scale", "colours")
    options: dict[str, Any] = {key: settings[key] for key in scalar_names if key in settings}
    for key in ("mean", "std"):
        if key in settings:
            numbers = settings[key]
            channels = numbers if isinstance(numbers, Sequence) else [numbers] * 3
            options[key] = tuple(float(number) for number in channels)
    return Preprocessing(
        height, width, channels_first=session.channels_first, dtype=session.dtype, **options
    )


def find_input_size(session: Session, requested: Any, source: str) -> tuple[int, int]:
    """Find height and width: the file's, or the setting's where the file leaves them open."""
    if requested is not None and not isinstance(requested, Sequence):
        requested = [requested]
    size = None if requested is None else tuple(map(int, requested))
    if size is not None and len(size) == 1:
        size = size * 2
    if session.size is not None and size not in (None, session.size):
        raise SpecError(
            "the network takes pictures of one size",
            expected="{} × {} pixels (height, width)".format(*session.size),
            found="size=" + ",".join(map(str, size or ())),
            where=source,
            hint="leave size out",
        )
    size = session.size or size
    if size is None or len(size) != 2:
        raise SpecError(
            "the file leaves the size of its input open",
            expected="--model-option size=HEIGHT,WIDTH",
            found=f"input {session.input_shape}",
            where=source,
        )
    return size

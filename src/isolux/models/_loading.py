"""From ``FAMILY:WHAT`` to a loaded model, and to everything that its answers depend on."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from isolux.core import registry
from isolux.core.errors import SpecError
from isolux.core.info import ModelInfo
from isolux.core.plugin_options import parse_option_assignments
from isolux.io.background_thread import run_in_background
from isolux.io.hashing import sha256_file
from isolux.models import _prediction_tables
from isolux.models._prediction_tables import PREDICTION_TABLES, Predictor, find_prediction_type

_COMMON_PACKAGES = ("numpy", "pillow", "simplejpeg", "polars")
"""What decodes pictures and holds answers, whatever the family."""
_IN_MEMORY = "(in memory)"


@dataclass(frozen=True, slots=True)
class Model:
    """A loaded model, by what identifies it.

    Parameters
    ----------
    spec, name : str
        How it was asked for, and what its answers are called by.
    predicts : str
        A key of ``ANSWERS``.
    info : ModelInfo
        Its family's.
    predictor : Predictor
    identity : mapping
        Everything that moves an answer, as JSON has it: content, never a name.
    fresh : callable
        Loads it once more: after an answer never came, the first one may still be busy.
    notes : tuple of str
        For the record and the report.
    versions : mapping of str to str
        Packages that it ran on.
    """

    spec: str
    name: str
    predicts: str
    info: ModelInfo
    predictor: Predictor
    identity: Mapping[str, Any]
    fresh: Callable[[], Predictor]
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def on_gpu(self) -> bool:
        """Whether it says that it runs on a GPU."""
        settings_sources = (self.identity.get("settings"), self.identity.get("own"))
        devices = [
            source["device"]
            for source in settings_sources
            if isinstance(source, Mapping) and "device" in source
        ]
        return any(str(device).lower().startswith("cuda") for device in devices)

    @property
    def key(self) -> str:
        """SHA-256 of all that moves an answer, 64 hex digits."""
        identity_json = json.dumps(
            {"model": self.identity, "versions": self.versions}, sort_keys=True
        )
        return hashlib.sha256(identity_json.encode()).hexdigest()


def open_model(spec: str, options: Sequence[str] = (), *, name: str | None = None) -> Model:
    """Load a model by its name."""
    family, source = _split_model_spec(spec)
    module = registry.load("models", family)
    model_info = cast("ModelInfo", module.INFO)
    if model_info.predicts in ("distances", "imported"):
        raise _build_not_runnable_error(spec, model_info)
    settings = parse_option_assignments(
        module.load, list(options), owner=f"the family {family}", flag="--model-option"
    )

    def load_predictor() -> Predictor:
        return cast("Predictor", module.load(source, **settings))

    setting_hashes: dict[str, Any] = {}
    # A file of weights is hashed while it is read, which takes as long.
    with run_in_background(
        lambda: setting_hashes.update(
            (key, _hash_files_in_setting(setting_value)) for key, setting_value in settings.items()
        )
    ):
        predictor = load_predictor()
    own_identity = getattr(predictor, "identity", None)
    identity = {
        "family": family,
        "settings": setting_hashes,
        "own": dict(own_identity) if own_identity is not None else _hash_files_in_setting(source),
        "code": hash_module_sources(module, _prediction_tables),
    }
    return Model(
        spec,
        name or _derive_model_name(source),
        find_prediction_type(predictor, model_info),
        model_info,
        predictor,
        identity,
        load_predictor,
        tuple(getattr(predictor, "notes", ())),
        _read_package_versions(model_info),
    )


def wrap_callable_as_model(
    function: Callable[..., Any], *, name: str | None = None, version: str | None = None
) -> Model:
    """Take a callable that is at hand for a model."""
    model_info = ModelInfo(
        title="A callable", summary="Given in memory.", references=(), predicts="labels"
    )
    own_identity = getattr(function, "identity", None)
    is_versioned = version is not None or own_identity is not None
    qualified_name = getattr(function, "__qualname__", None) or type(function).__qualname__
    identity: dict[str, Any] = {
        "family": _IN_MEMORY,
        "own": dict(own_identity) if own_identity is not None else None,
        "version": version if is_versioned else secrets.token_hex(16),
    }
    short_name = qualified_name.rpartition(".")[2].strip("<>")
    return Model(
        _IN_MEMORY,
        name or short_name,
        find_prediction_type(function, model_info),
        model_info,
        cast("Predictor", function),
        identity,
        lambda: cast("Predictor", function),
        tuple(getattr(function, "notes", ())),
        _read_package_versions(model_info),
    )


def hash_module_sources(*modules: ModuleType) -> str:
    """Return one SHA-256 of modules' source files, of a package all of its own files.

    Examples
    --------
    >>> import isolux.models
    >>> len(hash_module_sources(isolux.models))
    64
    """
    digest = hashlib.sha256()
    for module in modules:
        path = Path(str(module.__file__))
        files = sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]
        for file in files:
            digest.update(file.name.encode() + b"\0" + bytes.fromhex(sha256_file(file)))
    return digest.hexdigest()


def _split_model_spec(spec: str) -> tuple[str, str]:
    family, colon, source = spec.partition(":")
    families = registry.names("models")
    if colon and (source or family in families):
        registry.load("models", family)  # which names those there are
        return family, source
    suffix = Path(spec).suffix.lstrip(".").lower()
    raise SpecError(
        "the model is not named",
        expected="FAMILY:WHAT, such as onnx:net.onnx or python:my_models:factory",
        found=repr(spec),
        hint=f"{suffix}:{spec}?"
        if suffix in families
        else "`isolux list models` shows the families",
    )


def _build_not_runnable_error(spec: str, model_info: ModelInfo) -> SpecError:
    if model_info.predicts == "imported":
        return SpecError(
            "answers that are in a file are not predicted again",
            found=repr(spec),
            hint=f"isolux audit DATASET --model {spec}, or --predictions with the file",
        )
    return SpecError(
        "this family judges two pictures at once and answers no task",
        expected="a family that answers " + ", ".join(PREDICTION_TABLES),
        found=repr(spec),
        hint="`isolux list models` says what each answers",
    )


def _derive_model_name(source: str) -> str:
    """Call a model by the end of its spec: a file's stem, a factory's or a hub's last name."""
    last = source.rstrip("/").replace(":", "/").rpartition("/")[2]
    return Path(last).stem if "." in last[1:] else last or source


def _hash_files_in_setting(setting_value: Any) -> Any:
    """Replace a setting that names a file by the hash of the file's content."""
    if isinstance(setting_value, str | Path):
        name, equals, path = str(setting_value).rpartition("=")  # NAME=FILE, or a file
        try:
            full_path = Path(path).expanduser()
            return (
                f"{name}{equals}sha256:{sha256_file(full_path)}"
                if full_path.is_file()
                else str(setting_value)
            )
        except OSError:  # a text that cannot be a path
            return str(setting_value)
    if isinstance(setting_value, Mapping):
        return {str(key): _hash_files_in_setting(element) for key, element in setting_value.items()}
    if isinstance(setting_value, list | tuple):
        return [_hash_files_in_setting(element) for element in setting_value]
    return setting_value


def _read_package_versions(model_info: ModelInfo) -> dict[str, str]:
    versions = {}
    for package in (*_COMMON_PACKAGES, *model_info.packages):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return dict(sorted(versions.items()))

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

from isolux.io.alongside import alongside
from isolux.io.hashing import sha256_file
from isolux.models import _answers
from isolux.models._answers import ANSWERS, Predictor, kind_of
from isolux.vocabulary import registry
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import ModelInfo
from isolux.vocabulary.plugin_options import read_options

_ALWAYS = ("numpy", "pillow", "simplejpeg", "polars")
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
        told = (self.identity.get("settings"), self.identity.get("own"))
        devices = [one["device"] for one in told if isinstance(one, Mapping) and "device" in one]
        return any(str(one).lower().startswith("cuda") for one in devices)

    @property
    def key(self) -> str:
        """SHA-256 of all that moves an answer, 64 hex digits."""
        said = json.dumps({"model": self.identity, "versions": self.versions}, sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()


def open_model(spec: str, options: Sequence[str] = (), *, name: str | None = None) -> Model:
    """Load a model by its name."""
    family, what = _parted(spec)
    module = registry.load("models", family)
    info = cast("ModelInfo", module.INFO)
    if info.predicts in ("distances", "imported"):
        raise _not_run(spec, info)
    settings = read_options(
        module.load, list(options), owner=f"the family {family}", flag="--model-option"
    )

    def fresh() -> Predictor:
        return cast("Predictor", module.load(what, **settings))

    told: dict[str, Any] = {}
    # A file of weights is hashed while it is read, which takes as long.
    with alongside(lambda: told.update((key, _content(one)) for key, one in settings.items())):
        predictor = fresh()
    own = getattr(predictor, "identity", None)
    identity = {
        "family": family,
        "settings": told,
        "own": dict(own) if own is not None else _content(what),
        "code": source_hash(module, _answers),
    }
    return Model(
        spec,
        name or _named(what),
        kind_of(predictor, info),
        info,
        predictor,
        identity,
        fresh,
        tuple(getattr(predictor, "notes", ())),
        _versions(info),
    )


def callable_model(
    function: Callable[..., Any], *, name: str | None = None, version: str | None = None
) -> Model:
    """Take a callable that is at hand for a model."""
    info = ModelInfo(
        title="A callable", summary="Given in memory.", references=(), predicts="labels"
    )
    own = getattr(function, "identity", None)
    told = version is not None or own is not None
    called = getattr(function, "__qualname__", None) or type(function).__qualname__
    identity: dict[str, Any] = {
        "family": _IN_MEMORY,
        "own": dict(own) if own is not None else None,
        "version": version if told else secrets.token_hex(16),
    }
    plain = called.rpartition(".")[2].strip("<>")
    return Model(
        _IN_MEMORY,
        name or plain,
        kind_of(function, info),
        info,
        cast("Predictor", function),
        identity,
        lambda: cast("Predictor", function),
        tuple(getattr(function, "notes", ())),
        _versions(info),
    )


def source_hash(*modules: ModuleType) -> str:
    """Return one SHA-256 of modules' source files, of a package all of its own files.

    Examples
    --------
    >>> import isolux.models
    >>> len(source_hash(isolux.models))
    64
    """
    digest = hashlib.sha256()
    for module in modules:
        path = Path(str(module.__file__))
        files = sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]
        for file in files:
            digest.update(file.name.encode() + b"\0" + bytes.fromhex(sha256_file(file)))
    return digest.hexdigest()


def _parted(spec: str) -> tuple[str, str]:
    family, colon, what = spec.partition(":")
    known = registry.names("models")
    if colon and (what or family in known):
        registry.load("models", family)  # which names those there are
        return family, what
    near = Path(spec).suffix.lstrip(".").lower()
    raise SpecError(
        "the model is not named",
        expected="FAMILY:WHAT, such as onnx:net.onnx or python:my_models:factory",
        found=repr(spec),
        hint=f"{near}:{spec}?" if near in known else "`isolux list models` shows the families",
    )


def _not_run(spec: str, info: ModelInfo) -> SpecError:
    if info.predicts == "imported":
        return SpecError(
            "answers that are in a file are not predicted again",
            found=repr(spec),
            hint=f"isolux audit DATASET --model {spec}, or --predictions with the file",
        )
    return SpecError(
        "this family judges two pictures at once and answers no task",
        expected="a family that answers " + ", ".join(ANSWERS),
        found=repr(spec),
        hint="`isolux list models` says what each answers",
    )


def _named(what: str) -> str:
    """Call a model by the end of its spec: a file's stem, a factory's or a hub's last name."""
    last = what.rstrip("/").replace(":", "/").rpartition("/")[2]
    return Path(last).stem if "." in last[1:] else last or what


def _content(value: Any) -> Any:
    """Let a setting that names a file count by the file's content."""
    if isinstance(value, str | Path):
        name, equals, path = str(value).rpartition("=")  # NAME=FILE, or a file
        try:
            whole = Path(path).expanduser()
            return f"{name}{equals}sha256:{sha256_file(whole)}" if whole.is_file() else str(value)
        except OSError:  # a text that cannot be a path
            return str(value)
    if isinstance(value, Mapping):
        return {str(key): _content(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_content(one) for one in value]
    return value


def _versions(info: ModelInfo) -> dict[str, str]:
    found = {}
    for package in (*_ALWAYS, *info.packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return dict(sorted(found.items()))

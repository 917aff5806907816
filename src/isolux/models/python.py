"""Your own callable: ``python:MODULE:FACTORY``.

``FACTORY`` is called with the settings that ``--model-option`` gives it, and returns a callable: a
list of arrays in, answers out (``isolux.models.Predictor``). Labels may be a list of one text for
each picture, embeddings an array of one row for each; everything else is a frame.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.info import ModelInfo, Reference
from isolux.core.plugin_options import parse_option_assignments
from isolux.io.hashing import sha256_file
from isolux.models._prediction_tables import PREDICTION_TABLES, Predictor

INFO = ModelInfo(
    title="A callable of your own",
    summary=(
        "Calls the object that a function in your module returns: a list of arrays in, answers out."
    ),
    references=(Reference(key="own-code", citation="The auditor's own code."),),
    licence="the auditor's own",
    predicts="several",
    needs="a module that Python can import, here or in the working folder",
)

_LIBRARIES = frozenset({"site-packages", "dist-packages"})
_SPEC_FORMAT = "MODULE:FACTORY, such as my_models:gender_net"


@dataclass(frozen=True, slots=True)
class CallableModel:
    """The user's callable, and what is known of what its answers depend on."""

    function: Callable[..., Any]
    predicts: str
    identity: Mapping[str, Any]
    notes: tuple[str, ...]
    prepare: Callable[..., Any]

    def __call__(self, pictures: Sequence[Any]) -> Any:
        """Answer as the callable does."""
        return self.function(pictures)


def load(
    spec: str,
    *,
    predicts: str | None = None,
    settings: Sequence[str] = (),
    version: str | None = None,
) -> Predictor:
    """Import a module and call its factory.

    Parameters
    ----------
    spec : str
        ``MODULE:FACTORY``. The working folder is looked in too.
    predicts : str, optional
        What it answers: labels, boxes, masks, keypoints or embeddings. Default: the callable's own
        attribute ``predicts``, else labels.
    settings : sequence of str
        Arguments of the factory by their names, ``NAME=VALUE``, read by their types; one that names
        a file, as a default may, counts by its content.
    version : str, optional
        What tells this state of the model from any other, where the module's source, the settings
        and the callable's ``identity`` do not.

    Returns
    -------
    Predictor

    Raises
    ------
    SpecError
        No such module or factory, a factory that fails or returns nothing to call.

    Examples
    --------
    >>> load("nowhere:net")
    Traceback (most recent call last):
        ...
    isolux.core.errors.SpecError: the module 'nowhere' cannot be imported
      expected: MODULE:FACTORY, such as my_models:gender_net
      found: ModuleNotFoundError: No module named 'nowhere'
      what to do: run the command in the module's folder, or install its package
    """
    name, colon, factory = spec.rpartition(":")
    if not colon or not name or not factory:
        raise SpecError("the callable is not named", expected=_SPEC_FORMAT, found=repr(spec))
    module = _import_module_or_raise(name)
    make = getattr(module, factory, None)
    if make is None or not callable(make):
        factory_names = [
            key
            for key, attribute in vars(module).items()
            if callable(attribute) and not key.startswith("_")
        ]
        raise UnknownNameError("factory", factory, factory_names, where=f"the module {name}")
    factory_settings = parse_option_assignments(
        _build_settings_signature(make), settings, owner=f"{spec}", flag="--model-option settings"
    )
    function = _call_factory_with_settings(make, factory_settings, spec)
    factory_settings = {**_list_default_file_settings(make), **factory_settings}
    own_identity = getattr(function, "identity", None)
    prediction_type = predicts or getattr(function, "predicts", None) or "labels"
    if prediction_type not in PREDICTION_TABLES:
        raise UnknownNameError("kind of answers", prediction_type, PREDICTION_TABLES, where=spec)
    identity = {
        "source": _hash_module_and_local_imports(module),
        "factory": factory,
        "settings": {
            key: _hash_file_or_keep_setting(setting_value)
            for key, setting_value in factory_settings.items()
        },
        "own": dict(own_identity) if own_identity is not None else None,
        "version": version,
        "predicts": prediction_type,
    }
    prepare = getattr(function, "prepare", None) or _return_image_unchanged
    return CallableModel(
        function,
        prediction_type,
        identity,
        _build_unknown_weights_notes(function, spec, own_identity or version, factory_settings),
        prepare,
    )


def _build_settings_signature(factory: Callable[..., Any]) -> Callable[..., Any]:
    """Show a factory's parameters as settings with names, also those that it takes by place."""
    named_kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = [
        parameter.replace(kind=parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.kind in named_kinds
    ]

    def signature_holder() -> None:
        """Stand for the factory where its settings are read."""

    try:
        hints = get_type_hints(
            vars(factory).get("__init__", factory) if isinstance(factory, type) else factory
        )
    except (NameError, TypeError, AttributeError, SyntaxError):  # an annotation names nothing
        hints = {}
    signature_holder.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    signature_holder.__annotations__ = {
        parameter.name: hints.get(parameter.name, Any) for parameter in parameters
    }
    return signature_holder


def _list_default_file_settings(factory: Callable[..., Any]) -> dict[str, str | Path]:
    """List the factory's settings whose default is a file that is there: weights, as a rule."""
    defaults = {p.name: p.default for p in inspect.signature(factory).parameters.values()}
    return {
        name: default
        for name, default in defaults.items()
        if isinstance(default, str | Path) and Path(default).expanduser().is_file()
    }


def _return_image_unchanged(picture: Any) -> Any:
    return picture


@contextmanager
def _import_from_working_folder() -> Iterator[None]:
    working_dir = os.getcwd()  # noqa: PTH109 - as sys.path holds it
    is_added = working_dir not in sys.path
    if is_added:
        sys.path.insert(0, working_dir)
    try:
        yield
    finally:
        if is_added and working_dir in sys.path:
            sys.path.remove(working_dir)


def _import_module_or_raise(name: str) -> ModuleType:
    try:
        with _import_from_working_folder():
            importlib.invalidate_caches()
            return importlib.import_module(name)
    except Exception as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == name.partition(".")[0]
        raise SpecError(
            f"the module {name!r} cannot be imported",
            expected=_SPEC_FORMAT,
            found=f"{type(error).__name__}: {error}",
            hint="run the command in the module's folder, or install its package"
            if absent
            else None,
        ) from error


def _call_factory_with_settings(
    factory: Callable[..., Any], factory_settings: Mapping[str, Any], spec: str
) -> Callable[..., Any]:
    missing = [
        p.name
        for p in inspect.signature(factory).parameters.values()
        if p.default is p.empty
        and p.name not in factory_settings
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if missing:
        raise SpecError(
            f"the factory of {spec} needs settings",
            expected=", ".join(missing),
            found=", ".join(factory_settings) or "none",
            hint=f"--model-option settings={missing[0]}=VALUE",
        )
    try:
        with _import_from_working_folder():
            function = factory(**factory_settings)
    except Exception as error:
        raise SpecError(
            f"the factory of {spec} failed", found=f"{type(error).__name__}: {error}"
        ) from error
    if not callable(function):
        raise SpecError(
            f"the factory of {spec} returned nothing to call",
            expected="a callable: a list of arrays in, answers out",
            found=type(function).__name__,
            hint="name a function that makes the model, not the model",
        )
    return function  # type: ignore[no-any-return]


def _hash_module_and_local_imports(module: ModuleType) -> dict[str, str]:
    """Hash the module's file and what it imports from no library: neighbours, or by PYTHONPATH."""
    module_file = getattr(module, "__file__", None)
    if module_file is None:
        return {}
    top = module.__name__.partition(".")[0]
    folder = Path(module_file).resolve().parent
    resolved = cache(Path.resolve)  # thousands of modules lie in few folders
    names_by_path: dict[Path, str] = {}
    for name, loaded_module in list(sys.modules.items()):
        file = getattr(loaded_module, "__file__", None)
        if not file:
            continue
        path = resolved(Path(file).parent) / Path(file).name
        is_neighbour = path.is_relative_to(folder) and not _LIBRARIES & set(path.parts)
        if (is_neighbour or name.partition(".")[0] == top) and path.is_file():
            names_by_path[path] = path.relative_to(folder).as_posix() if is_neighbour else name
    waiting = [] if _LIBRARIES & set(folder.parts) else list(names_by_path)
    while waiting:
        for path, import_path in _list_local_imports(waiting.pop(), folder).items():
            if path not in names_by_path:
                names_by_path[path] = import_path
                waiting.append(path)
    return {name: sha256_file(path) for path, name in sorted(names_by_path.items())}


def _list_local_imports(source: Path, folder: Path) -> dict[Path, str]:
    """Find the files that a source imports anywhere, also within functions, from no library."""
    try:
        tree = ast.parse(source.read_bytes() if source.suffix == ".py" else "")
    except (SyntaxError, ValueError):  # it cannot be imported either
        return {}
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = f"{node.module}." if node.module else ""
            names |= {start.rstrip("."), *(start + alias.name for alias in node.names)}
    files: dict[Path, str] = {}
    for name in names:
        for base in {folder, source.parent}:
            for file in _list_module_files(base, name):
                is_inside = file.is_relative_to(folder)
                files[file] = file.relative_to(folder if is_inside else base).as_posix()
        elsewhere = (_list_module_files(base, name) for base in _list_own_import_folders())
        for file in next(filter(None, elsewhere), []):  # the first folder counts, as for Python
            files.setdefault(file, name)
    return files


def _list_module_files(folder: Path, name: str) -> list[Path]:
    path = Path(folder, *name.split("."))
    return [p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()]


def _list_own_import_folders() -> list[Path]:
    """List where Python imports from, but for its own library, packages and isolux."""
    folders = [Path(entry).resolve() for entry in sys.path]
    library, isolux = Path(sysconfig.get_paths()["stdlib"]).resolve(), Path(__file__).parents[2]
    return [
        folder
        for folder in folders
        if not _LIBRARIES & set(folder.parts)
        and not folder.is_relative_to(library)
        and folder != isolux.resolve()
    ]


def _hash_file_or_keep_setting(setting_value: Any) -> Any:
    if isinstance(setting_value, str | Path) and Path(setting_value).expanduser().is_file():
        return {"sha256": sha256_file(setting_value)}
    return (
        setting_value
        if isinstance(setting_value, bool | int | float | str | None)
        else repr(setting_value)
    )


def _build_unknown_weights_notes(
    function: Callable[..., Any],
    spec: str,
    own_identity: object,
    factory_settings: Mapping[str, Any],
) -> tuple[str, ...]:
    """Say that weights which nothing names cannot be known by their content."""
    notes = tuple(getattr(function, "notes", ()))
    files = [
        v
        for v in factory_settings.values()
        if isinstance(v, str | Path) and Path(v).expanduser().is_file()
    ]
    if own_identity or files:
        return notes
    caution = (
        f"isolux knows the source of {spec}, not the files that it reads: if its weights change,"
        " name them (identity, a setting that is a file, or version=…) or predict into another"
        " directory."
    )
    return (*notes, caution)

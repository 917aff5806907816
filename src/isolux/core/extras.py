"""Packages that few need: imported where they are used, with what to install where they lack."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from isolux.core.errors import SpecError, extract_first_line


def import_optional(
    module: str, *, package: str, extra: str, purpose: str, no_deps_packages: str | None = None
) -> ModuleType:
    """Import a module of an optional package, or say what to install.

    Examples
    --------
    >>> import_optional("nothing_here", package="nothing", extra="learn", purpose="this example")
    Traceback (most recent call last):
        ...
    isolux.core.errors.SpecError: this example needs nothing, which is not installed
      what to do: pip install 'isolux[learn]'
    """
    try:
        return import_module(module)
    except (ImportError, OSError, RuntimeError) as error:  # torchvision beside another's PyTorch
        top = module.partition(".")[0]
        absent = isinstance(error, ModuleNotFoundError) and error.name == top
        raise SpecError(
            f"{purpose} needs {package}, which "
            + ("is not installed" if absent else "cannot be imported"),
            found=None if absent else extract_first_line(error),
            hint=f"pip install 'isolux[{extra}]'"
            + (f" && pip install --no-deps {no_deps_packages}" if no_deps_packages else ""),
        ) from error

"""Packages that few need: imported where they are used, with what to install where they lack."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from isolux.vocabulary.errors import SpecError

__all__ = ["needed"]


def needed(
    module: str, *, package: str, extra: str, purpose: str, alone: str | None = None
) -> ModuleType:
    """Import a module of an optional package, or say what to install.

    Parameters
    ----------
    module : str
        What to import: ``"sklearn.ensemble"``.
    package : str
        What the package is called: ``"scikit-learn"``.
    extra : str
        The extra of isolux that installs it.
    purpose : str
        What needs it, at the head of the error: ``"the analysis error_model"``.
    alone : str or None
        The version to install without its own requirements, where these exclude isolux's:
        ``"facenet-pytorch==2.6.0"``. The extra then brings what that version imports.

    Raises
    ------
    SpecError
        It is not installed, or its installation is broken.

    Examples
    --------
    >>> needed("nothing_here", package="nothing", extra="learn", purpose="this example")
    Traceback (most recent call last):
        ...
    isolux.vocabulary.errors.SpecError: this example needs nothing, which is not installed
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
            found=None if absent else (str(error).splitlines() or [""])[0][:200],
            hint=f"pip install 'isolux[{extra}]'"
            + (f" && pip install --no-deps {alone}" if alone else ""),
        ) from error

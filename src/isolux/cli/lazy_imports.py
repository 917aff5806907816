"""Lazy loading of modules that libraries import and no command uses."""

from __future__ import annotations

import importlib.util
import sys


def install_lazy_modules(*module_names: str) -> None:
    """Put off loading modules until the first look at what is in them.

    scipy goes through all that numpy names, and so imports its Fortran compiler, which takes as
    long as reading a table. A module that is loaded already, or is not there, is left as it is.

    Examples
    --------
    >>> install_lazy_modules("numpy.f2py")
    """
    for name in module_names:
        if name in sys.modules:
            continue
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            continue
        spec.loader = importlib.util.LazyLoader(spec.loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        package, _, child_name = name.rpartition(".")
        if package:
            setattr(sys.modules[package], child_name, module)

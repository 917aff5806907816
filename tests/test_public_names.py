"""What `isolux.x` gives, and that it goes on giving it whatever was imported in between."""

from __future__ import annotations

import subprocess
import sys

import pytest

import isolux

EVERY_MODULE_THEN_EVERY_NAME = """
import importlib, pkgutil, types
import isolux
for module in pkgutil.walk_packages(isolux.__path__, "isolux."):
    importlib.import_module(module.name)
for name in isolux.__all__:
    assert not isinstance(getattr(isolux, name), types.ModuleType), name
"""


@pytest.mark.parametrize("name", isolux.__all__)
def test_each_public_name_is_there_and_explains_itself(name: str) -> None:
    found = getattr(isolux, name)
    assert name == "__version__" or (found.__doc__ or "").strip()


def test_every_module_imports_and_none_takes_a_public_name() -> None:
    """Importing a submodule binds its name in the package: a function of that name would go."""
    done = subprocess.run(
        [sys.executable, "-c", EVERY_MODULE_THEN_EVERY_NAME],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match=r"isolux.*no attribute 'debias'"):
        _ = isolux.debias

"""`import isolux` must stay cheap: heavy libraries load when a call needs them, not before."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from isolux.vocabulary.registry import ROOMS

HEAVY = (
    "altair",
    "numba",
    "pandas",
    "scipy.stats",
    "sklearn",
    "statsmodels",
    "torch",
)
ALSO_NOT_FOR_THE_BARE_IMPORT = ("jinja2", "pydantic", "typer")

EVERY_PLUGIN = f"""
from isolux.vocabulary import registry
for room in {tuple(ROOMS)!r}:
    for name in registry.names(room):
        registry.info(room, name)
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    return {
        "import isolux": _modules_after("import isolux"),
        "every INFO": _modules_after(EVERY_PLUGIN),
    }


def _modules_after(code: str) -> set[str]:
    program = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_probe_sees_what_is_imported() -> None:
    assert "fractions" in _modules_after("import isolux, fractions")


@pytest.mark.parametrize("module", [*HEAVY, *ALSO_NOT_FOR_THE_BARE_IMPORT])
def test_importing_isolux_does_not_load(module: str, loaded: dict[str, set[str]]) -> None:
    assert module not in loaded["import isolux"]


@pytest.mark.parametrize("module", HEAVY)
def test_reading_what_plugins_say_of_themselves_does_not_load(
    module: str, loaded: dict[str, set[str]]
) -> None:
    """`isolux list` imports every plugin; none may pull a heavy library in at module level."""
    assert module not in loaded["every INFO"]

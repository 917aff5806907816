"""`import isolux` must stay cheap: heavy libraries load when a call needs them, not before."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from isolux.core.registry import PLUGIN_KINDS

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

NOT_FOR_A_PLAIN_AUDIT = (
    "PIL.Image",
    "isolux.derive._image_reader",
    "isolux.engine",
    "isolux.models",
    "isolux.people.shards",
    "isolux.api.predict",
    "numpy.f2py.f2py2e",
    "pyarrow",
)

EVERY_PLUGIN = f"""
from isolux.core import registry
for package in {tuple(PLUGIN_KINDS)!r}:
    for name in registry.names(package):
        registry.load_info(package, name)
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


def test_a_plain_audit_loads_only_what_it_needs(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    rows = (f"p{i},{'yn'[i % 2]},{'yn'[i % 3 == 0]},{'ab'[i % 2]}" for i in range(200))
    people.write_text("\n".join(["id,truth,answer,group", *rows]))
    flags = "--id id --target truth --prediction-column answer --by group --replicates 100"
    words = ["isolux", "audit", f"table:{people}", *flags.split(), "--out", str(tmp_path / "run")]
    code = (
        f"import sys\nsys.argv = {words!r}\nimport os\nos.cpu_count = lambda: 2\n"
        "from isolux.cli import main\ntry:\n    main()\nexcept SystemExit as end:\n"
        "    assert not end.code"
    )
    loaded = _modules_after(code)
    assert "isolux.api.audit" in loaded
    assert (tmp_path / "run" / "report.html").is_file()
    assert not loaded & {*HEAVY, *NOT_FOR_A_PLAIN_AUDIT}


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

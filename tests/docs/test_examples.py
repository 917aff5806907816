"""Every example in the pages runs: ```python blocks as programs, `isolux audit` lines by flag.

The blocks of one page are one program, in order, in an empty folder that holds ``people.csv`` and
``predictions.csv``. A block that cannot run says so on its fence: ```python no-run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from isolux.core import registry
from isolux.core.spec import (
    SETTING_BY_FLAT_NAME,
    flatten_task_setting,
    list_task_options,
)
from tests.docs import _pages as pages
from tests.docs._people import write_people

OF_TASKS = [
    flatten_task_setting(n) for task in registry.names("tasks") for n in list_task_options(task)
]
FLAGS = {
    "--" + name.replace("_", "-")
    for name in [*SETTING_BY_FLAT_NAME, "protocol", "option", *OF_TASKS]
} | {
    "--help",
    "--help-all",
    "--json",
}


def _program(blocks: list[pages.Block]) -> str:
    """Put each block on the lines it has in its page, so that a traceback points there."""
    lines: list[str] = []
    for block in blocks:
        lines += [""] * (block.line - 1 - len(lines))
        lines += block.body.splitlines()
    return "\n".join(lines) + "\n"


def _run(program: str, folder: Path, page: str) -> subprocess.CompletedProcess[str]:
    write_people(folder)
    (folder / page).write_text(program, encoding="utf-8")
    return subprocess.run(
        [sys.executable, page], cwd=folder, capture_output=True, text=True, check=False
    )


PROGRAMS = {
    pages.name(page): _program(runnable)
    for page in pages.PAGES
    if (runnable := [b for b in pages.blocks(page) if b.kind == "python"])
}


@pytest.mark.parametrize("page", PROGRAMS)
def test_python_blocks_run(page: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if "demo/people.csv" in PROGRAMS[page]:  # what `make demo` leaves
        made: Path = request.getfixturevalue("demo")
        shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    done = _run(PROGRAMS[page], tmp_path, page.replace("/", "_"))
    assert done.returncode == 0, done.stderr


def _audit_flags(page: Path) -> set[str]:
    shell = "\n".join(
        b.body for b in pages.blocks(page) if b.kind.split()[:1] in (["bash"], ["sh"], [])
    )
    calls = re.findall(r"^(?:\$ )?isolux audit .*$", shell.replace("\\\n", " "), re.MULTILINE)
    return {flag for call in calls for flag in re.findall(r"(?<=\s)--[a-z][a-z-]*", call)}


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)
def test_flags_of_shown_audits_exist(page: Path) -> None:
    assert _audit_flags(page) <= FLAGS


def test_a_failing_example_fails_at_its_line_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# x\n\n```python\nimport polars\n```\ntext\n```python\n1 / 0\n```\n")
    done = _run(_program(pages.blocks(page)), tmp_path, "page.py")
    assert done.returncode == 1
    assert 'page.py", line 8' in done.stderr
    assert "ZeroDivisionError" in done.stderr


def test_flags_are_read_over_continued_lines(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```bash\nisolux audit table:x --by race \\\n  --no-such 1\nls --all\n```\n")
    assert _audit_flags(page) == {"--by", "--no-such"}


RUN_ELSEWHERE = ("README.md", "CONTRIBUTING.md", "docs/tutorials/", "docs/start.md",
                 "docs/how_to/viewer.md", "docs/guides/", "docs/gallery.md")  # fmt: skip
"""Pages whose commands a test runs: test_readme, test_tutorials, tests/site/test_examples,
tests/scripts/test_gallery."""


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)
def test_commands_run_or_say_that_they_cannot(page: Path) -> None:
    shown = [block.line for block in pages.blocks(page) if block.kind in ("bash", "sh")]
    assert not shown or pages.name(page).startswith(RUN_ELSEWHERE)

"""The pages hold together: links lead somewhere, targets exist, words are the field's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs import _pages as pages
from tests.docs._wording import banned_words, machine_paths

ROOT = pages.ROOT
MAKE_TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

every_page = pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)


def _committed(*endings: str) -> list[Path]:
    """Tracked files, and new ones that git would not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = [ROOT / f for f in listed.stdout.split("\0") if f.endswith(endings)]
    return [f for f in found if f.is_file()]


def test_there_are_pages() -> None:
    assert {"README.md", "CONTRIBUTING.md", "docs/README.md"} <= {*map(pages.name, pages.PAGES)}


@every_page
def test_links_resolve(page: Path) -> None:
    broken = []
    for target in pages.links(page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or not there.is_relative_to(ROOT):
            broken.append(f"{target}: no such file")
        elif anchor and anchor not in pages.anchors(there.read_text(encoding="utf-8")):
            broken.append(f"{target}: no such heading")
    assert not broken


def test_every_page_under_docs_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / t).resolve() for t in pages.links(index.read_text(encoding="utf-8"))}
    missing = [
        pages.name(p)
        for p in pages.PAGES
        if p.is_relative_to(ROOT / "docs") and p not in {index, *linked}
    ]
    assert not missing


def test_decisions_are_numbered_and_no_more_are_missing() -> None:
    numbers = sorted(int(p.name[:4]) for p in (ROOT / "docs" / "decisions").glob("*.md"))
    among_methods = range(32, 43)  # docs/README.md says on which pages
    assert sorted([*numbers, *among_methods]) == list(range(1, max(numbers) + 1))


@every_page
def test_words_are_the_fields(page: Path) -> None:
    assert not banned_words(page.read_text(encoding="utf-8"))


def test_words_in_the_package_are_the_fields() -> None:
    found = {
        pages.name(file): hits
        for file in _committed(".py", ".html", ".jinja", ".j2", ".css", ".js")
        if any(file.is_relative_to(ROOT / top) for top in ("src", "packages"))
        and (hits := banned_words(file.read_text("utf-8")))
    }
    assert not found


def test_no_committed_file_names_a_machine() -> None:
    endings = (".md", ".py", ".toml", ".yaml", ".yml", ".cff", ".txt", ".html", "Makefile", "/run")
    found = {
        pages.name(file): hits
        for file in _committed(*endings)
        if (hits := machine_paths(file.read_text("utf-8")))
    }
    assert not found


@every_page
def test_make_targets_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = [b.body for b in pages.blocks(page)] + re.findall(r"`([^`\n]+)`", pages.prose(text))
    named = set(re.findall(r"^make ([a-z]+)\b", "\n".join(code), re.MULTILINE))
    assert named <= MAKE_TARGETS


def test_make_help_names_what_the_readme_promises() -> None:
    command = ["make", "-s", "help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = set(re.findall(r"^  make ([a-z]+) ", shown, re.MULTILINE))
    assert {"help", "demo", "test", "laws", "check", "bench", "docs"} <= named


# The program itself: it must be able to find what it looks for.


@pytest.mark.parametrize(
    "text",
    [
        "a debiased network",
        "an unbiased model",
        "we trained a fair model",
        "gender classification",
        "TODO: say more",
    ],
)
def test_banned_words_are_found(text: str) -> None:
    assert len(banned_words(f"one line\n{text}\n")) == 1
    assert banned_words(f"one line\n{text}\n")[0].startswith("line 2: ")


@pytest.mark.parametrize(
    "text",
    [
        "do not write `fair model`",
        'as in "Gender Classification with Faces"',
        "see *Debiasing Nets*",
        "a fairer share, **models** and *bias*",
    ],
)
def test_cited_words_are_left_alone(text: str) -> None:
    assert banned_words(text) == []


def test_machine_paths_are_found_and_others_are_not() -> None:
    home = "/" + "home/ada"  # in two parts, or this file would name a machine
    assert machine_paths(f"one\nreads {home}/x.csv") == [f"line 2: {home}"]
    assert machine_paths("https://example.org/home/page and ./home/x and /dev/full") == []


def test_links_and_headings_are_read() -> None:
    text = '# A *b*: `c`\n[x](y.md#z) `[no](no.md)`\n<img src="p.png">\n```\n[no](no.md)\n```\n'
    assert pages.links(text) == ["y.md#z", "p.png"]
    assert pages.anchors(text) == {"a-b-c"}

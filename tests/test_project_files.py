"""The files around the code agree with one another: pins, ranges, version, citation, licence."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CURATE = tomllib.loads((ROOT / "packages/curate/pyproject.toml").read_text(encoding="utf-8"))
PINS = "".join(
    (ROOT / "requirements" / name).read_text(encoding="utf-8") for name in ("dev.txt", "ray.txt")
)
_PIN = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>[^ ;\\]+)(?: ; (?P<marker>[^\\]+?))? \\\n"
    r"(?P<hashes>(?: +--hash=\S+(?: \\)?\n)+)",
    re.MULTILINE,
)


NOT_PINNED = {
    "hub",
    "lpips",
    "mediapipe",
    "mtcnn",
    "open_clip",
    "timm",
    "torchvision",
    "train",
    "transformers",
    "worlds",  # of this repository
}  # torch's own index has a build without gigabytes of CUDA; the pins do not


def _ranges() -> list[Requirement]:
    optional = PROJECT["project"]["optional-dependencies"]
    extras = [listed for name, listed in optional.items() if name not in NOT_PINNED]
    groups = PROJECT["dependency-groups"].values()
    curate = [
        CURATE["project"]["dependencies"],
        *CURATE["project"]["optional-dependencies"].values(),
    ]
    listed = [PROJECT["project"]["dependencies"], PROJECT["build-system"]["requires"], *curate]
    return [
        Requirement(text)
        for one in [*listed, *extras, *groups]
        for text in one
        if isinstance(text, str) and text != "isolux"
    ]


@pytest.mark.parametrize("wanted", _ranges(), ids=str)
def test_each_range_is_pinned_within_it(wanted: Requirement) -> None:
    pinned = [m for m in _PIN.finditer(PINS) if m["name"] == canonicalize_name(wanted.name)]
    assert pinned, f"{wanted} has no pin: run `make pins`"
    assert all(wanted.specifier.contains(m["version"]) for m in pinned)


def test_every_pin_is_hashed_and_none_names_an_address() -> None:
    pins = list(_PIN.finditer(PINS))
    assert len(pins) == len(re.findall(r"^[a-z0-9]\S*==", PINS, re.MULTILINE)) > 50
    hashes = re.findall(r"--hash=(\S+)", PINS)
    assert len(hashes) >= len(pins)
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes)
    assert all(Marker(m["marker"]) for m in pins if m["marker"])
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted", PINS)


def _imports(file: Path) -> set[str]:
    """Name the packages that a file imports, inside functions too."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    full = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names} | {
        n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level
    }
    return (
        {name.partition(".")[0] for name in full}
        - set(sys.stdlib_module_names)
        - {
            "isolux",
            "isolux_curate",
        }
    )


@pytest.mark.parametrize("folder", ["src", "packages/curate"])
def test_each_package_imports_only_what_it_declares(folder: str) -> None:
    """Otherwise it works here, where the tests' packages are, and fails for its users."""
    projects = [project["project"] for project in (PROJECT, CURATE)[: 1 + (folder != "src")]]
    declared = {
        canonicalize_name(Requirement(text).name)
        for project in projects
        for texts in [project["dependencies"], *project["optional-dependencies"].values()]
        for text in texts
    }
    installed = packages_distributions()
    undeclared = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in (ROOT / folder).rglob("*.py")
        for name in _imports(file)
        if not declared & {canonicalize_name(d) for d in installed.get(name, [name])}
    }
    # The plugin is imported by pytest alone, so whoever imports it has pytest.
    assert undeclared - {"src/isolux_gate/__init__.py: pytest"} == set()


def test_the_citation_is_of_this_version_and_cites_the_five_papers() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert Version(citation["version"]) == Version(PROJECT["project"]["version"])
    assert citation["license"] == PROJECT["project"]["license"]
    first_authors = [r["authors"][0]["family-names"] for r in citation["references"]]
    assert first_authors == ["Gustafson", "Goyal", "Xiang", "Sudhakar", "Karkkainen"]


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert len(text.splitlines()) == 202


def test_the_changelog_begins_with_this_version_or_what_follows_it() -> None:
    sections = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [name for name in sections if name != "Unreleased"]
    assert Version(released[0]) == Version(PROJECT["project"]["version"])


def test_ci_asks_what_contributors_ask() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r"^make .* check \|\| status=1$", ci, re.MULTILINE)
    assert re.search(r"^make .* test \|\| status=1$", ci, re.MULTILINE)
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    ours = [hook for repo in hooks["repos"] for hook in repo["hooks"]]
    assert {repo["repo"] for repo in hooks["repos"]} == {"local"}
    assert {hook["language"] for hook in ours} == {"system"}
    parts = re.search(r"^check: (.*?) ##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert parts is not None
    assert {hook["entry"] for hook in ours} == {f"make {part}" for part in parts[1].split()}

"""The page that ships is what its sources give, byte for byte."""

from __future__ import annotations

import json
import re
import subprocess

from isolux.viewer import TEMPLATE
from tests.viewer._node import SOURCES, viewer_folder


def test_the_page_in_the_package_is_what_the_sources_give():
    folder = viewer_folder()
    built = subprocess.run(
        ["npm", "run", "build", "--", "--outDir", "out"],
        cwd=folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    again = (folder / "out" / "page.html").read_bytes()
    assert again == TEMPLATE.read_bytes(), "viewer/ has changed: run `make viewer` and commit"


def test_the_page_is_small_and_asks_for_nothing():
    page = TEMPLATE.read_text(encoding="utf-8")
    assert len(page) < 200_000
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert not re.search(r"@import|url\(", page)


def test_every_package_is_pinned_and_no_registry_is_named():
    package = json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))
    wanted = {**package["dependencies"], **package["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values()), wanted
    lock = json.loads((SOURCES / "package-lock.json").read_text(encoding="utf-8"))
    held = {name: entry for name, entry in lock["packages"].items() if name}
    assert all("resolved" not in entry for entry in held.values())
    assert all(entry["integrity"].startswith("sha512-") for entry in held.values())
    assert not any(re.search("GPL", str(entry.get("license"))) for entry in held.values())

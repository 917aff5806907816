"""Size is counted without blanks, comments and docstrings, in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import size

SOURCE = '''"""A module
of two lines."""

import os  # a comment


def name(  # five lines of code from here
    path,
):
    """A docstring."""

    # a comment
    return """a
text""" + path
'''


def test_lines_of_code_are_those_with_a_token_that_is_no_docstring():
    """import; def, path, closing; return and its second line."""
    found = size.size_of(SOURCE)
    assert (found.code, found.lines, found.files) == (6, 14, 1)
    assert size.size_of("x = 1\n").nodes == 5  # module, assignment, name, its context, number


def test_sizes_add_up():
    one, two = size.Size(1, 2, 3, 1), size.Size(10, 20, 30, 1)
    assert size.total([one, two]) == size.Size(11, 22, 33, 2)
    assert size.total([]) == size.Size()


@pytest.mark.parametrize(
    ("at", "row"),
    [
        ("src/isolux/io/text.py", "src/isolux/io"),
        ("src/isolux/__init__.py", "src"),
        ("packages/curate/src/isolux_curate/a.py", "packages/curate"),
        ("worlds/src/isolux_worlds/marker.py", "worlds"),
        ("tests/scripts/test_size.py", "tests"),
    ],
)
def test_every_file_has_its_row(at, row):
    assert size.name_row(Path(at)) == row


def test_the_table_names_every_room_and_what_is_no_python(capsys):
    assert size.main() == 0
    rows = capsys.readouterr().out.splitlines()
    packages = {
        f"src/isolux/{at.parent.name}" for at in (size.TOP / "src/isolux").glob("*/__init__.py")
    }
    assert packages <= {row[:24].strip() for row in rows}
    assert [row.split()[0] for row in rows[-4:]] == ["src", "TypeScript", "templates,", "YAML,"]

"""Names that say nothing are counted by where they are bound, and may not become more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from scripts import names

ALL_BINDINGS = """
import numpy as found
kept: int = 1

class Told:
    said: str
    def __init__(self, held, *one, **own):
        self.given = held
        for each in one:
            with open(each) as known, open(each) as (there, clusters):
                pass
        try:
            asked = [left for left in one if (whole := left)]
        except OSError as why:
            pass
        match own:
            case {"a": both, **gone}:
                pass
            case [*mine]:
                pass

def drawn(at=lambda of: of):
    return at
"""


def source_of(text: str, path: str = "src/isolux/stats/means.py") -> names.Source:
    return names.read_source(Path(path), text)


def bare_names(text: str, path: str = "src/isolux/stats/means.py") -> set[str]:
    source = source_of(text, path)
    return {b.name for b in source.bindings if names.is_bare(b, source.path)}


def vague_names(text: str) -> list[str]:
    source = source_of(text)
    return [b.name for b in source.bindings if names.is_vague(b, source.path)]


def test_every_way_of_binding_a_name_is_seen():
    listed = (
        "found kept Told said held one own given each known there asked left whole why both gone "
        "mine drawn at of"
    )
    assert bare_names(ALL_BINDINGS) == set(listed.split())


def test_uses_attributes_of_others_and_keywords_bind_nothing():
    assert bare_names("rows.found = f(found, where=held)\nprint(told.said)\n") == set()


@pytest.mark.parametrize("name", ["_TOLD", "told", "told_", "Told"])
def test_underscores_and_case_do_not_hide_a_name(name):
    assert bare_names(f"{name} = 1\n") == {name}


def test_a_participle_may_qualify_a_noun():
    assert bare_names("kept_rows = known_values = _ = __ = 1\n") == set()


def test_exceptions_hold_in_their_place_only():
    edges = "left = 1\n"
    assert bare_names(edges, "src/isolux/geometry/boxes.py") == set()
    assert bare_names(edges) == {"left"}
    error = "def f(*, found, where, hint):\n    pass\n"
    assert bare_names(error, "src/isolux/core/errors.py") == set()
    assert bare_names(error) == {"found", "where"}
    assert bare_names("class A:\n    kind: str\n") == set()
    assert bare_names("kind = 1\n") == {"kind"}
    assert all(reason for reason in names.EXCEPTIONS.values())


def test_vague_nouns_may_live_for_three_lines():
    short = "def f(n):\n    value = n\n    n += 1\n    return value\n"
    assert vague_names(short) == []
    assert vague_names(short.replace("    n += 1\n", "    n += 1\n    n += 2\n")) == ["value"]


def test_a_parameter_lives_from_the_first_statement_to_its_last_use():
    head = 'def f(data):\n    """Say.\n\n    More.\n    """\n'
    assert vague_names(head + "    a = 1\n    b = a\n    return data\n") == []
    assert vague_names(head + "    a = 1\n    b = a\n    c = b\n    return data, c\n") == ["data"]


def test_vague_nouns_outside_functions_count_unless_they_are_columns():
    assert vague_names("data = 1\nclass A:\n    item: int\n    value: int\n") == ["data", "item"]


def test_classes_and_modules_are_no_participles():
    text = "class Asked: ...\nclass _Kept: ...\nclass Judging: ...\nclass Seed: ...\n"
    text += "class KeptRows: ...\nclass Setting: ...\nclass Why: ...\n"
    bindings = source_of(text, "src/isolux/io/planned.py").bindings
    assert [b.name for b in bindings if names.is_participle(b)] == [
        "planned", "Asked", "_Kept", "Judging", "Why",
    ]  # fmt: skip
    for name in ("sampling", "seed", "kept_rows"):
        module = source_of("", f"src/isolux/io/{name}.py").bindings[0]
        assert not names.is_participle(module)


def test_a_package_is_named_by_its_folder():
    (module,) = source_of("", "src/isolux/curation/held/__init__.py").bindings
    assert (module.name, module.role) == ("held", "module")


def test_counts_are_by_package_and_class_names_unique_across_packages():
    counts = names.count_by_package(
        [
            source_of("class A: ...\nfound = told = 1  # fmt: skip\n"),
            source_of("class B: ...\n", "src/isolux/stats/other_means.py"),
            source_of("class A: ...\ndata = 1\n", "src/isolux/io/text.py"),
        ]
    )
    assert counts == {
        "src/isolux/io": names.Counts(3, 0, 1, 1, 0, 0),
        "src/isolux/stats": names.Counts(6, 2, 0, 1, 0, 1),
    }
    assert counts["src/isolux/stats"].percent == pytest.approx(100 * 2 / 6)


def test_a_skip_in_a_string_is_no_comment():
    assert source_of('x = "# fmt: skip"\n').n_skips == 0


def test_more_than_the_ceiling_fails_and_fewer_do_not(monkeypatch):
    monkeypatch.setattr(names, "CEILINGS", {"src/isolux/stats": names.Ceiling(bare=2, skips=1)})
    row = names.count([source_of("found = told = 1  # fmt: skip\n")], Counter())
    assert names.list_excesses({"src/isolux/stats": row}) == []
    (line,) = names.list_excesses({"src/isolux/stats": row._replace(bare=3)})
    assert line.startswith("src/isolux/stats: 3 bare, at most 2 allowed")
    assert len(names.list_excesses({"src/isolux/new": row})) == 2  # no row: nothing is allowed


def test_the_tree_is_below_its_ceilings(capsys):
    status = names.main()
    rows = capsys.readouterr().out.splitlines()
    assert status == 0, rows
    assert rows[-1].startswith("all ")

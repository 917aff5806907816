"""Markdown: nothing from outside becomes markup."""

from __future__ import annotations

import re

import isolux
from isolux.cards._document import escape_markdown
from tests.cards._cards import HOSTILE, run_of_people


def test_a_hostile_group_stays_text_in_every_format():
    made = isolux.card(run_of_people(HOSTILE), kind="bias-profile")
    text, page = made.markdown(), made.html()
    assert "<script>alert" not in text + page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    row = next(line for line in text.splitlines() if line.startswith("| light: &lt;script"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 3  # two cells: its own bar is escaped
    assert "[x](" not in text
    assert "http://evil" not in text
    assert "@all" not in text


def test_every_table_has_as_many_cells_as_its_heading():
    text = isolux.card(run_of_people(), kind="annex-iv").markdown()
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block


def test_facts_are_escaped_too():
    facts = {"facts": 1, "intended_use": "# big <img src=x>"}
    made = isolux.card(run_of_people(), kind="bias-profile", facts=facts)
    assert "\\# big &lt;img src=x&gt;" in made.markdown()
    assert "<img" not in made.html()


def test_only_what_markdown_lets_be_escaped_is():
    """CommonMark 2.4: a backslash before a letter or a digit is printed."""
    starts = ("1. a", "12) b", "# c", "- d", "===", "2024 photos")
    told = [escape_markdown(text) for text in starts]
    assert told == [r"1\. a", r"12\) b", r"\# c", r"\- d", r"\===", "2024 photos"]

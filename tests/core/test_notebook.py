"""What a notebook shows: warnings first, every text escaped, nobody's id."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest

import isolux
from isolux.core.notes import Caution

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen |= {tag, *(name for name, _ in attrs)}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


SAFE = {"div", "p", "strong", "ol", "li", "ul", "table", "thead", "tbody", "tr", "th", "td", "code",
        "details", "summary", "style", "role", "scope"}  # fmt: skip


@pytest.fixture(scope="module")
def audit():
    people = pl.DataFrame(
        {"unit_id": [f"person-{i}" for i in range(400)], "light": ["day", EVIL] * 200,
         "value": [1.0, 1.0, 1.0, 0.0] * 100}
    )  # fmt: skip
    found = isolux.audit(people, by="light", replicates=200)
    record = {**found.run.record, "warnings": [f"Read {EVIL} first."], "notes": [EVIL] * 9}
    return replace(found, run=replace(found.run, record=record))


def test_an_audits_cell_has_warning_table_figure_and_findings_in_that_order(audit):
    shown = audit._repr_html_()
    before, figure, after = re.split(r"(<svg.*</svg>)", shown, flags=re.DOTALL)
    assert before.index("WARNING: Read &lt;script&gt;") < before.index("<table>")
    assert "<script" not in figure
    assert "50.0 points lower" not in before
    assert "50.0 points lower" in after
    assert before + after == audit.run._repr_html_()


def test_an_audit_of_everyone_has_a_cell_without_a_figure():
    people = pl.DataFrame({"unit_id": [str(i) for i in range(40)], "value": [1.0, 0.0] * 20})
    everyone = isolux.audit(people, pl.DataFrame({"unit_id": people["unit_id"]}), replicates=100)
    assert "<svg" not in everyone._repr_html_()
    assert "<table>" in everyone._repr_html_()


def test_a_run_starts_with_its_warning_and_holds_its_numbers(audit):
    shown = audit.run._repr_html_()
    tags = _Tags(shown)
    assert tags.open == []
    assert tags.seen <= SAFE
    assert shown.index("WARNING: Read &lt;script&gt;") < shown.index("50.0 points lower")
    assert "0.75" in shown
    assert "9 notes" in shown
    assert "person-" not in shown


def test_findings_are_sentences_with_the_warning_first_and_a_polars_frame(audit):
    shown = audit.findings._repr_html_()
    assert _Tags(shown).seen <= SAFE
    assert shown.index("WARNING") < shown.index("<ol")
    assert audit.findings.equals(audit.run.findings)
    part = audit.findings.head(1)
    assert part["claim"].to_list() == audit.findings["claim"].to_list()[:1]
    assert "<table" in part._repr_html_()


def test_a_dataset_tells_what_it_is_and_no_person(tmp_path):
    (tmp_path / "people.csv").write_text(
        "id,subject,light\n"
        + "".join(f"photo-{i},anna-{i // 2},{('day', EVIL)[i % 2]}\n" for i in range(60))
    )
    people = isolux.load("table", tmp_path / "people.csv", id="id", cluster="subject")
    people = replace(people, notes=(Caution(f"Look: {EVIL}"), "A note."))
    shown = people._repr_html_()
    assert _Tags(shown).seen <= SAFE
    assert "photo-" not in shown
    assert "anna-" not in shown
    assert "30 different values" in shown
    assert "day (30)" in shown
    assert shown.index("WARNING: Look: &lt;script&gt;") < shown.index("60 people")


def test_a_comparison_and_an_explanation_show_themselves(audit):
    both = isolux.compare(audit, audit)
    assert "<strong>" in both._repr_html_()
    assert isolux.explain(audit, analysis=["power"])._repr_html_().count("<li>") >= 1

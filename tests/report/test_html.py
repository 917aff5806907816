from __future__ import annotations

import errno
import re
import tempfile
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import polars as pl
import pytest

from isolux.core.errors import OutputError
from isolux.core.tables import FINDINGS
from isolux.report import html as page_room
from isolux.report.figures.heatmap import wcag_contrast_ratio
from isolux.report.html import (
    STATUSES_PAGE,
    choose_printed_rows,
    render_comparison_report,
    render_report,
    write_report,
)
from isolux.report.summary import summarise_run
from tests.docs._wording import banned_words
from tests.report import _runs as runs
from tests.report._facet import facet_run
from tests.report._page import parse

MAKERS = {
    "full": runs.full_run,
    "hostile": runs.hostile_run,
    "injected": runs.injected_run,
    "small": runs.small_run,
    "null": runs.null_run,
    "classes": runs.classes_run,
    "detector": runs.detector_run,
}


@pytest.fixture(scope="module")
def texts():
    """Every kind of page, rendered once."""
    found = {name: render_report(summarise_run(make())) for name, make in MAKERS.items()}
    return found | {"comparison": render_comparison_report(runs.comparison_run())}


@pytest.fixture(scope="module")
def trees(texts):
    return {name: parse(text) for name, text in texts.items()}


LOCAL = re.compile(r"#[\w-]+|(group_metrics|disparities|findings)\.parquet|audit\.json")
every_page = pytest.mark.parametrize("name", [*MAKERS, "comparison"])


@every_page
def test_it_asks_the_network_for_nothing(trees, name):
    for node in trees[name].all():
        assert node.tag not in {"img", "iframe", "object", "embed", "base", "form"}
        assert "src" not in node.attributes
        if node.tag == "link":
            assert node.attributes == {"rel": "icon", "href": "data:,"}
        if node.tag == "a":
            href = node.attributes["href"]
            assert LOCAL.fullmatch(href) or href in (
                STATUSES_PAGE,
                "https://openaccess.thecvf.com/",
            )


@every_page
def test_the_policy_forbids_what_the_page_does_not_hold(texts, trees, name):
    (policy,) = (
        node.attributes["content"]
        for node in trees[name].all("meta")
        if node.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'")
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        (node,) = trees[name].all(kind)
        inside = "".join(node.children)
        assert page_room._format_csp_hash(inside) in policy  # what runs is what was hashed
        assert f"{kind}-src {page_room._format_csp_hash(inside)}" in policy
    assert not [n for n in trees[name].all() if any(k.startswith("on") for k in n.attributes)]
    assert " style=" not in re.sub(r"<style>.*?</style>", "", texts[name], flags=re.DOTALL)


@every_page
def test_headers_captions_and_names_are_there_for_a_screen_reader(trees, name):
    root = trees[name]
    (document,) = root.all("html")
    assert document.attributes["lang"] == "en"
    ids = [n.attributes["id"] for n in root.all() if "id" in n.attributes]
    assert len(ids) == len(set(ids))
    for node in root.all():
        for key in ("aria-labelledby", "aria-describedby"):
            assert node.attributes.get(key, ids[0]) in ids
        if node.attributes.get("role") in {"img", "region"}:
            label = node.attributes.get("aria-label") or node.attributes.get("aria-labelledby")
            assert label
    for table in root.all("table"):
        for cell in table.all("th"):
            assert cell.attributes["scope"] in {"col", "row", "colgroup"}
        (body,) = table.all("tbody")
        assert all(row.all("th") for row in body.all("tr"))
        assert all(th.text for th in table.all("th"))
    assert len(root.all("h1")) == len(root.all("main")) == 1
    levels = [int(n.tag[1]) for n in root.all("h1", "h2", "h3", "h4")]
    assert all(b <= a + 1 for a, b in pairwise(levels))
    skip = root.all("a")[0]
    assert (skip.attributes["href"], skip.attributes["class"]) == ("#main", "skip")


@every_page
def test_every_row_has_as_many_cells_as_its_heading(trees, name):
    def width(row):
        return sum(int(c.attributes.get("colspan", 1)) for c in row.all("th", "td"))

    for table in trees[name].all("table"):
        widths = {width(row) for row in table.all("tr")}
        assert len(widths) == 1, table.text[:80]


@every_page
def test_words_are_the_projects(trees, name):
    if name == "hostile":
        return
    body = trees[name].all("main")[0]
    assert banned_words(body.text) == []
    assert "None" not in body.text.split()
    assert "nan" not in body.text.lower().split()


def test_hostile_names_are_text(texts, trees):
    root = trees["hostile"]
    assert len(root.all("script")) == len(root.all("style")) == 1
    cells = {node.text for node in root.all("th", "td")}
    for hostile in runs.HOSTILE:
        if "\x00" not in hostile:
            assert " ".join(hostile.split()) in cells
    assert "\x00" not in texts["hostile"]
    assert "49" not in root.all("h1")[0].text  # {{7*7}} is printed, not evaluated
    assert "javascript:" not in {n.attributes.get("href", "")[:11] for n in root.all("a")}


def test_a_mark_says_what_it_compares_with(trees):
    (table, *_) = [
        t for t in trees["full"].all("table") if "strips" in t.attributes.get("class", "")
    ]
    assert table.all("thead")[0].all("th")[-1].text == "Better or worse than overall"
    told = "~: no difference to overall shown (adjusted p above 0.05); such a group may differ"
    assert told in " ".join(trees["full"].text.split())


def test_rates_below_one_percent_can_be_told_apart_in_strips_and_tables():
    tables = runs.Tables()
    of = runs.line("accuracy")
    runs.add_everyone(tables, of, 100000, 0.001)
    rates = {("a",): (50000, 0.0018), ("b",): (50000, 0.0002)}
    runs.add_attribute(tables, of, "tone", rates, everyone=0.001)
    root = parse(render_report(summarise_run(runs.run_of(tables))))
    found = []
    for table in root.all("table"):
        if {"strips", "groups"} & set(table.attributes.get("class", "").split()):
            rows = [[c.text for c in row.all("th", "td")] for row in table.all("tr")]
            found.append({row[0].rstrip("1"): row for row in rows})
    assert len(found) == 2
    for rows in found:
        assert "0.180" in rows["a"]
        assert "0.020" in rows["b"]
        assert "0.100" in rows["overall"]
        assert "+0.080" in rows["a"]
        ends = [cell for cell in rows["a"] if " to " in cell]
        assert len(ends) == 2
        assert all(re.fullmatch(r"0\.\d{3} to 0\.\d{3}", cell) for cell in ends)


def test_the_answer_says_what_was_found_before_how(trees):
    text = trees["full"].text
    places = [
        text.index(words)
        for words in (
            "The model works worse for Black people labelled Female",
            "Also for people labelled Female",
            "10,954 units in 3,651 clusters (subject)",
            "worst first. Line: overall.",
            "Do the groups differ?",
            "Main findings",
            "It measures the disparities it was asked to look at",
            "settings at their defaults",
            "SHA-256",
            "References of what ran",
        )
    ]
    assert places == sorted(places)


def _number(text):
    return Decimal(text.replace("−", "-"))


@pytest.mark.parametrize("name", ["full", "injected", "classes", "detector"])
def test_a_printed_gap_is_that_of_the_printed_values_or_has_one_more_digit(trees, name):
    n_rows = 0
    for table in trees[name].all("table"):
        if "strips" not in table.attributes.get("class", ""):
            continue
        *groups, everyone = table.all("tr")[1:]
        base = _number(everyone.all("td")[2].text)
        for cells in (row.all("td") for row in groups):
            value, gap = cells[2].text, cells[4].text
            if "–" in (value, gap):
                continue
            n_rows += 1
            finer = _number(gap).as_tuple().exponent < _number(value).as_tuple().exponent
            assert finer or _number(value) - base == _number(gap)
    assert n_rows > 2


def test_an_unsure_group_has_a_hollow_point_and_a_footnote():
    tables, of = runs.Tables(), runs.line("accuracy")
    runs.add_everyone(tables, of, 1000, 0.7)
    rates = {("a",): (900, 0.7), ("b",): (60, 0.8)}  # 20 clusters of three: boundary
    runs.add_attribute(tables, of, "x", rates, everyone=0.7)
    root = parse(render_report(summarise_run(runs.run_of(tables))))
    (table,) = (t for t in root.all("table") if "strips" in t.attributes.get("class", ""))
    marked = {r.all("th")[0].text: "class" in r.all("circle")[0].attributes
              for r in table.all("tbody")[0].all("tr")}  # fmt: skip
    assert marked == {"a": False, "b1": True}
    assert "1 Too little data to judge, or read with caution" in root.text


def test_without_a_margin_nothing_is_said_of_how_far_apart_groups_are_at_most(trees, texts):
    assert "At most apart" not in texts["full"]
    assert "etectable" not in trees["full"].all("main")[0].text.replace("have detected", "")
    run = runs.full_run()
    spec = {**run.record["spec"], "margin": 3.0}
    asked = render_report(summarise_run(replace(run, record={**run.record, "spec": spec})))
    assert "At most apart" in asked


def test_sentences_that_follow_the_answer_stand_below_it():
    found = replace(
        summarise_run(runs.full_run()),
        answer="The first.", accounting="10 of 12 were judged.", further=("The second.",),
    )  # fmt: skip
    text = parse(render_report(found)).all("header")[0].text
    assert text.index("10 of 12 were judged.") < text.index("The first. The second.")


def test_percent_in_a_papers_table_is_not_printed_to_the_thousandth():
    table = {"columns": ["model", "AR", "gap", "n"], "rows": [["m", 75.94213, 0.4, 12]]}
    shares = {"columns": ["model", "AR"], "rows": [["m", 0.75942]]}
    said = {"name": "facet:x", "title": "FACET", "tables": {"T": table, "S": shares}}
    run = runs.full_run()
    root = parse(
        render_report(summarise_run(replace(run, record={**run.record, "protocol": said})))
    )
    (found,) = [s for s in root.all("section") if s.attributes.get("id") == "protocol"]
    cells = [[c.text for c in t.all("tbody")[0].all("th", "td")] for t in found.all("table")]
    assert cells == [["m", "75.9", "0.400", "12"], ["m", "0.759"]]


def test_a_run_without_clusters_says_so_where_it_is_seen(trees):
    (caution,) = [n for n in trees["small"].all("p") if n.attributes.get("class") == "caution"]
    assert caution.text.startswith("Rows were taken as independent.")
    assert "name it with --cluster" in caution.text
    assert "Rows were taken as independent" not in trees["full"].text


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("counts", "Counts do not identify people"),
        ("face_verification", "columns subject_a and subject_b"),
    ],
)
def test_what_would_tell_who_belongs_together_is_said_for_the_task(task, told):
    run = runs.small_run()
    root = parse(render_report(summarise_run(replace(run, record={**run.record, "task": task}))))
    (caution,) = [n for n in root.all("p") if n.attributes.get("class") == "caution"]
    assert told in caution.text
    assert "--cluster" not in caution.text
    assert any(told in n.text for n in root.all("li"))


def test_groups_without_a_value_for_another_reason_than_their_size_are_told_it():
    run = runs.small_run()
    why = "600 impostor pairs; a value at a false accept rate of 0.001 needs 1,000"
    few = run.group_metrics.with_columns(
        reason=pl.when(pl.col("status") == "insufficient units").then(pl.lit(why)),
    )
    text = parse(render_report(summarise_run(replace(run, group_metrics=few)))).text
    assert f": {why}." in " ".join(text.split())
    assert "units are needed" not in text


def test_what_was_not_judged_is_named_with_its_counts(trees):
    assert "Middle Eastern × Female (31 units, 10 clusters)" in trees["full"].text
    assert "× insufficient units" in trees["full"].text


def test_a_null_result_claims_no_absence(trees):
    text = trees["null"].text
    assert text.count("No difference in accuracy was established") >= 1
    assert "no differences" not in text.lower()


def sentences(tree):
    """Sentences of a page that a reader meets outside of tables, figures and what is folded."""
    text = re.sub(r"<(table|figure|script|style|details)\b.*?</\1>", " ", tree, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", " ", text)
    return [s.strip() for s in re.split(r"(?<=[.;:])\s+", text) if len(s.split()) > 6]


@pytest.mark.parametrize("make", [runs.full_run, runs.null_run, facet_run])
def test_no_sentence_is_read_twice(make):
    counted = Counter(sentences(render_report(summarise_run(make()))))
    # What a group needs is said where it lacks it: with each attribute.
    assert {s for s, n in counted.items() if n > 1 and "are needed" not in s} == set()


def test_the_finding_that_the_answer_says_is_not_said_again():
    run = runs.full_run()
    claims = [summarise_run(run).answer, *(f"claim {i}" for i in range(2, 7))]
    rows = pl.DataFrame(
        [{"analysis": "group_gaps", "status": "ok", "rank": i, "claim": claim}
         for i, claim in enumerate(claims, 1)]
    )  # fmt: skip
    found = summarise_run(replace(run, findings=FINDINGS.conform(rows))).findings
    assert [row.rank for row in found] == [2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"injected": [{"metric": "accuracy", "attribute": "race", "value": 0.1}]}, True),
        ({"dataset": {"title": "FACET", "synthetic": True}}, True),
        ({}, False),
    ],
)
def test_synthetic_people_are_called_so_before_any_number(changed, said):
    root = parse(render_report(summarise_run(runs.full_run(**changed))))
    (header,) = root.all("header")
    assert ("These people are synthetic." in header.text) == said


def test_injected_truths_stand_beside_what_was_found(trees):
    (table,) = [t for t in trees["injected"].all("table") if "Injected" in t.text]
    rows = [[c.text for c in row.all("th", "td")] for row in table.all("tbody")[0].all("tr")]
    assert rows[0][1:] == ["−13.0", "−13.2", "−16.7 to −9.7", "● yes"]
    assert rows[1][-1] == "▲ no"
    assert rows[2][1:] == ["0.0", "–", "–", "–"]


def test_numbers_for_sorting_stand_beside_the_text(trees):
    (table,) = [
        t for t in trees["full"].all("table") if t.text.startswith("Accuracy: Share of units")
    ][:1]
    head = [th.text for th in table.all("thead")[0].all("th")]
    row = table.all("tbody")[0].all("tr")[0].all("th", "td")
    value = row[head.index("Accuracy (%)")]
    assert (value.text, value.attributes["data-v"]) == ("63.9", "0.639")


def test_long_tables_are_cut_by_distance_and_say_so(monkeypatch):
    monkeypatch.setattr(page_room, "CLASS_ROWS_SHOWN", 10)
    summary = summarise_run(runs.classes_run())
    recall = summary.sections[0].blocks[1]
    shown = choose_printed_rows(recall)
    assert (len(shown.rows), shown.total) == (10, 156)
    least = min(abs(row.difference or 0) for _, row in shown.rows)
    rest = [row for t in recall.tables for row in t.rows if row not in [r for _, r in shown.rows]]
    assert all(abs(row.difference or 0) <= least for row in rest)
    assert "The 10 rows furthest from overall, of 156" in parse(render_report(summary)).text


def test_pairs_of_a_class_and_a_group_that_hold_nobody_are_counted_not_listed():
    tables = runs.Tables()
    for i in range(3):
        of = runs.line("recall", f"class {i}")
        runs.add_everyone(tables, of, 900, 0.6)
        rates = {(name,): (400 if j == i else 0, 0.6) for j, name in enumerate("abc")}
        runs.add_attribute(tables, of, "x", rates, everyone=0.6)
    summary = summarise_run(runs.run_of(tables))
    shown = choose_printed_rows(summary.sections[0].blocks[0])
    assert [(t.line.label, row.group) for t, row in shown.rows] == [
        ("class 0", "a"), ("class 1", "b"), ("class 2", "c"),
    ]  # fmt: skip
    assert (shown.total, shown.empty) == (3, 6)
    assert "6 pairs of a class and a group have no people" in parse(render_report(summary)).text


@pytest.mark.parametrize("ink", ["ink", "muted", "accent", "arrow"])
@pytest.mark.parametrize("dark", [False, True])
def test_text_has_the_contrast_of_wcag_aa(ink, dark):
    style = (page_room.TEMPLATES / "report.css").read_text()

    def rgb(name):
        colour = re.findall(rf"--{name}: #([0-9a-f]{{6}});", style)[int(dark)]
        return tuple(int(colour[i : i + 2], 16) for i in (0, 2, 4))

    assert wcag_contrast_ratio(rgb(ink), rgb("paper")) >= 4.5


def test_fifteen_groupings_make_a_page_below_one_and_a_half_megabytes():
    summary = summarise_run(runs.wide_run())
    assert len(summary.sections) == 15
    assert len(render_report(summary).encode()) < 1_500_000


def test_the_same_run_gives_the_same_page(texts):
    assert render_report(summarise_run(runs.full_run())) == texts["full"]


def test_write_report_is_whole_or_not_at_all(tmp_path):
    path = write_report(runs.null_run(), tmp_path / "report.html")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(OutputError, match="the folder to write to does not exist"):
        write_report(runs.null_run(), tmp_path / "absent" / "report.html")


def test_a_comparison_is_recognised(tmp_path):
    path = write_report(runs.comparison_run(), tmp_path / "report.html")
    assert "Who gained and who lost" in path.read_text(encoding="utf-8")


def test_p_values_that_nobody_adjusted_are_not_called_adjusted():
    run = runs.full_run()
    spec = {**run.record["spec"], "correction": "none"}
    root = parse(render_report(summarise_run(replace(run, record={**run.record, "spec": spec}))))
    assert "Unadjusted p" in root.text
    assert "p-values are not adjusted for the other comparisons" in root.text
    assert not re.search(r"\bAdjusted p|[( ]adjusted p", root.text)


def test_a_damaged_or_full_cache_of_templates_fails_no_report(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def rendered():
        page_room._create_jinja_environment.cache_clear()
        return render_report(summarise_run(runs.small_run()))

    page = rendered()
    (folder,) = tmp_path.iterdir()
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:40])
    assert rendered() == page

    def full(*_args, **_more):
        raise OSError(errno.ENOSPC, "No space left on device")

    for file in folder.iterdir():
        file.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "NamedTemporaryFile", full)
        assert rendered() == page
    assert list(folder.iterdir()) == []
    page_room._create_jinja_environment.cache_clear()

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from isolux.report.comparison import summarise_comparison
from isolux.report.html import render_comparison_report, render_report
from isolux.report.summary import summarise_run
from tests.report import _runs as runs
from tests.report._page import parse

# Of 10 people the first model detects 6, and is right about 5; the second detects all, 8 rightly.
FIRST = [(i < 6, i < 5) for i in range(10)]
SECOND = [(True, i > 1) for i in range(10)]


def answers(model, people):
    return pl.DataFrame(
        [
            {"model": model, "unit_id": str(i), "detected": detected, "correct": correct}
            for i, (detected, correct) in enumerate(people)
        ],
        schema={"model": pl.String, "unit_id": pl.String} | dict.fromkeys(
            ("detected", "correct"), pl.Boolean
        ),
    )  # fmt: skip


def caution_of(cautions):
    (found,) = cautions
    return found.headline, found.text


def compared(first=FIRST, second=SECOND):
    evidence = pl.concat([answers("erm", first), answers("arl", second)])
    return replace(runs.comparison_run(), evidence={"classification": evidence})


def test_a_comparison_says_what_of_it_is_detection():
    headline, text = caution_of(summarise_comparison(compared()).base.cautions)
    assert headline == "People who were not detected count as mistakes."
    # Of the 6 whom both detected, 5 and (people 2 to 5) 4 answers are right.
    assert text == (
        "erm did not detect 40.0 % of the people, arl 0.0 %. Accuracy for everyone differs by "
        "30.0 points; on the 6 people whom both detected it is 83.3 % with erm and 66.7 % with "
        "arl, a difference of 16.7 points."
    )


def test_it_stands_in_the_head_of_the_page_before_the_answer():
    root = parse(render_comparison_report(compared()))
    (header,) = root.all("header")
    assert header.text.index("not detected count as mistakes") < header.text.index("Accuracy for")


def test_a_terminal_says_it_before_the_first_sentence(monkeypatch, capsys):
    from isolux.cli.comparison_screen import print_comparison

    monkeypatch.setenv("COLUMNS", "80")
    print_comparison(compared(), None)
    out = " ".join(capsys.readouterr().out.split())
    assert 0 < out.index("it is 83.3 % with erm and 66.7 %") < out.index("Overall arl is ")


def test_an_audit_says_how_many_mistakes_are_people_who_were_not_detected():
    run = replace(runs.full_run(), evidence={"classification": answers("erm", FIRST)})
    _, text = caution_of(summarise_run(run).cautions)
    assert text == (
        "They are 40.0 % of everyone and 80.0 % of all mistakes; of the people who were detected "
        "83.3 % got a right answer."
    )
    assert "not detected count as mistakes" in parse(render_report(summarise_run(run))).text


@pytest.mark.parametrize("change", ["all detected", "left out", "no evidence", "another metric"])
def test_it_is_silent_where_nothing_is_counted_so(change):
    people = answers("erm", FIRST)
    if change == "all detected":
        people = people.with_columns(detected=pl.lit(value=True))
    if change == "left out":
        people = people.with_columns(correct=pl.when("detected").then("correct"))
    evidence = {} if change == "no evidence" else {"classification": people}
    run = replace(runs.full_run(), evidence=evidence)
    if change == "another metric":
        recall = run.group_metrics.filter(metric="recall")
        run = replace(run, group_metrics=recall)
    assert summarise_run(run).cautions == ()


def test_two_models_that_detect_nobody_in_common_are_told_apart_without_a_third_number():
    first = [(i < 5, i < 5) for i in range(10)]
    second = [(i >= 5, i >= 5) for i in range(10)]
    _, text = caution_of(summarise_comparison(compared(first, second)).base.cautions)
    assert text.endswith("Accuracy for everyone differs by 0.0 points.")

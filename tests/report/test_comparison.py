from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from isolux.report.comparison import summarise_comparison
from isolux.report.figures import draw_model_change_figure
from isolux.report.html import render_comparison_report
from tests.report import _runs as runs


@pytest.fixture(scope="module")
def compared():
    return summarise_comparison(runs.comparison_run())


def test_a_change_is_the_second_models_value_less_the_first(compared):
    run = runs.comparison_run()
    table = compared.sections[0].tables[0]
    black = next(row for row in table.rows if row.group == "Black")
    expected = run.disparities.filter(
        attribute="race", group_a="Black", metric="accuracy", kind="model_difference"
    )["value"].item()
    assert black.difference == expected
    # Black .639 by the first; the builder gives the second model two points more
    assert (black.first, black.second) == pytest.approx((0.639, 0.659))


def test_who_gained_follows_p_and_direction(compared):
    for table in (t for s in compared.sections for t in s.tables):
        for row in table.rows:
            if row.p_adjusted > 0.05:
                assert row.way == "no change found"
            else:
                assert row.way == ("gained" if row.difference > 0 else "lost")
    ways = {row.way for s in compared.sections for row in s.tables[0].rows}
    assert ways >= {"gained", "lost", "no change found"}


def test_lower_is_better_turns_gain_into_loss(monkeypatch, compared):
    from isolux.core.info import Metric
    from isolux.statements import metric_lines as _lines

    monkeypatch.setattr(
        _lines,
        "find_metric_or_neutral",
        lambda task, name: Metric(name=name, title="Error", definition="", direction="lower"),
    )
    turned = summarise_comparison(runs.comparison_run())
    swap = {"gained": "lost", "lost": "gained"}
    for before, after in zip(compared.sections, turned.sections, strict=True):
        one = {row.group: row.way for row in before.tables[0].rows}
        other = {row.group: row.way for row in after.tables[0].rows}
        assert other == {group: swap.get(way, way) for group, way in one.items()}


def test_the_answer_is_about_everyone_then_who_lost_most_and_who_gained(compared):
    assert compared.title == "arl against erm on FairFace, validation"
    answer = compared.answer
    assert answer.first.startswith("Overall arl is not shown to be better or worse than erm")
    assert answer.further[0].startswith("Lost: ")
    assert any(claim.startswith("Gained: ") for claim in answer.further)
    assert len(answer.further) == 3
    assert not any("No gain" in claim for claim in answer.further), "only where everyone gained"
    rows = [row for s in compared.sections for table in s.tables for row in table.rows]
    changed = {row.group for row in rows if row.way in ("gained", "lost")}
    assert answer.n_more == len(changed) - 3  # every group once, whatever the metric


def run_where_everyone_gained():
    run = runs.comparison_run()
    planned = pl.col("attribute").is_null() & (pl.col("metric") == "accuracy")
    return replace(run, disparities=run.disparities.with_columns(
        value=pl.when(planned).then(0.02).otherwise("value"),
        p_adjusted=pl.when(planned).then(0.001).otherwise("p_adjusted"),
        simultaneous_low=pl.when(planned.not_()).then("low"),
        simultaneous_high=pl.when(planned.not_()).then("high"),
    ))  # fmt: skip


def test_where_everyone_gained_it_says_of_whom_that_is_not_shown():
    answer = summarise_comparison(run_where_everyone_gained()).answer
    assert answer.first.startswith("Overall arl is better than erm: ")
    assert "(95 % interval " in answer.first, "planned: an interval of its own"
    (told,) = [claim for claim in answer.further if claim.startswith("No gain is shown for ")]
    # The least changes of accuracy that are not shown, of -3.3 to +2.7 points.
    assert "people aged more than 70 (\N{MINUS SIGN}3.2), East Asian people (" in told
    assert told.endswith(" other groups.")
    lost = next(claim for claim in answer.further if claim.startswith("Lost: "))
    assert "(simultaneous interval " in lost, "chosen among all groups"
    assert answer.further.index(told) > answer.further.index(lost)


def test_where_everyone_lost_it_says_of_whom_no_loss_is_shown():
    run = run_where_everyone_gained()
    planned = pl.col("attribute").is_null() & (pl.col("metric") == "accuracy")
    turned = pl.when(planned).then(-0.02).otherwise("value")
    run = replace(run, disparities=run.disparities.with_columns(value=turned))
    answer = summarise_comparison(run).answer
    (told,) = [claim for claim in answer.further if claim.startswith("No loss is shown for ")]
    assert "for people aged 0-2 (+1.7), " in told
    assert "more than 70" not in told, "its loss of 3.2 points stands last"


def test_the_terminal_shows_the_least_changes_of_each_attribute(monkeypatch, capsys):
    from isolux.cli.comparison_screen import print_comparison

    run = run_where_everyone_gained()
    gained = pl.when(pl.col("attribute") == "age").then(pl.col("value").abs()).otherwise("value")
    run = replace(run, disparities=run.disparities.with_columns(value=gained))
    monkeypatch.setenv("COLUMNS", "80")
    print_comparison(run, None)
    lines = capsys.readouterr().out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("age ("))
    rows = run.disparities.filter(attribute="age", metric="accuracy").sort("value")
    assert [lines[start + k].split("  ")[1] for k in (1, 2)] == rows["group_a"].head(2).to_list()


def test_the_worst_change_stands_first(compared):
    for table in (t for s in compared.sections for t in s.tables):
        changes = [row.difference for row in table.rows]
        assert changes == sorted(changes)


def test_a_group_that_one_model_could_not_be_judged_on_is_still_shown():
    run = runs.comparison_run()
    of = (pl.col("model") == "arl") & (pl.col("group") == "Black")
    gone = run.group_metrics.with_columns(
        value=pl.when(of).then(None).otherwise("value"),
        status=pl.when(of).then(pl.lit("insufficient units")).otherwise("status"),
    )
    left = run.disparities.filter(pl.col("group_a").ne_missing("Black"))
    found = summarise_comparison(replace(run, group_metrics=gone, disparities=left))
    row = found.sections[0].tables[0].rows[-1]
    assert (row.group, row.way, row.status) == ("Black", "not judged", "insufficient units")
    assert row.first == pytest.approx(0.639)
    assert row.second is None


def test_the_figure_joins_both_values_and_shows_the_change(compared):
    section = compared.sections[0]
    figure = draw_model_change_figure(section.title, section.tables[0], compared.models)
    assert f"First: {section.tables[0].rows[0].group} −" in figure.alt
    assert "erm (hollow) and arl (filled)" in figure.caption
    assert ">0</text>" in figure.svg  # the zero line is on the axis
    assert ">overall</text>" in figure.svg


def test_a_change_has_one_more_digit_where_the_printed_values_differ_by_another_number(compared):
    table = compared.sections[0].tables[0]
    row = replace(table.rows[0], first=0.7566, second=0.8224, difference=0.0658)  # 75.7, 82.2
    assert replace(table, rows=(row,), overall_change=None).n_decimals == 2
    row = replace(row, first=0.75, second=0.80, difference=0.05)
    assert replace(table, rows=(row,), overall_change=None).n_decimals is None


def test_a_table_says_what_its_intervals_and_its_verdicts_are_of(compared):
    page = " ".join(render_comparison_report(runs.comparison_run()).replace("\xa0", " ").split())
    told = (
        "Each change has its own 95 % interval; p is adjusted over all groups and metrics but the"
    )
    tables = sum(len(section.tables) for section in compared.sections)
    assert page.count(told) >= tables + 1


def test_classes_are_ranked_by_their_gap_for_both_models():
    tables = runs.Tables()
    # gaps by hand, first model: nurse .30, cook .10, guard .05; second: .02, .20, .05
    rates = {
        "erm": {"nurse": (0.5, 0.8), "cook": (0.7, 0.6), "guard": (0.6, 0.65)},
        "arl": {"nurse": (0.7, 0.72), "cook": (0.5, 0.7), "guard": (0.6, 0.65)},
    }
    for model, classes in rates.items():
        for label, (a, b) in classes.items():
            of = runs.line("recall", label, model)
            runs.add_everyone(tables, of, 800, (a + b) / 2)
            groups = {("younger",): (400, a), ("older",): (400, b)}
            runs.add_attribute(tables, of, "age", groups, everyone=(a + b) / 2)
    run = runs.run_of(tables, runs.record(models=["erm", "arl"]))
    run = replace(run, disparities=runs.comparison_run().disparities.clear())
    (table,) = summarise_comparison(run).classes
    assert table.groups == ("younger", "older")
    ranks = {row.label: (row.first_rank, row.second_rank) for row in table.rows}
    assert ranks == {"nurse": (1, 3), "cook": (2, 1), "guard": (3, 2)}
    nurse = next(row for row in table.rows if row.label == "nurse")
    assert nurse.first == (0.5, 0.8)
    assert nurse.first_gap == pytest.approx(0.3)
    assert nurse.first_ends == ("younger", "older")


def test_the_page_says_of_each_gap_whether_it_changed(tmp_path):
    import isolux

    ids = [f"p{k}" for k in range(90)]
    who = pl.DataFrame({"unit_id": ids, "tone": ["a", "b", "unknown"] * 30})
    settings = {"by": "tone", "min_units": 5, "min_clusters": 5, "replicates": 400}
    values = {"old": [1.0, 0.0, 0.0] * 30, "new": [1.0, 1.0, 1.0] * 15 + [1.0, 0.0, 0.0] * 15}
    audits = [
        isolux.audit(pl.DataFrame({"unit_id": ids, "value": value, "model": name}), who, **settings)
        for name, value in values.items()
    ]
    found = isolux.compare(*audits)
    # b gains 15 of 30, a nothing; those whose tone is unknown are no side of a gap.
    [claim] = [c for c in found.findings["claim"] if "the gap" in c]
    assert claim.startswith("Score, b against a (tone): the gap narrowed from 100.0 to 50.0 points")
    page = found.report(tmp_path / "both").read_text(encoding="utf-8")
    text = " ".join(page.replace("\xa0", " ").split())
    assert text.count(claim.replace("<", "&lt;")) == 2  # on the first screen and above the table
    assert "planned" in text

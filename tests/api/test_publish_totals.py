"""No two totals of a published page are a few people apart; no measure rests on what is hidden."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from isolux.api.audit import audit
from isolux.api.publish import publish
from isolux.report.html import render_report
from isolux.report.summary import summarise_run
from tests.api._published import (
    a_fifth_wrong,
    audited,
    binary,
    parts_of,
    people,
    people_of,
    shown_of,
)
from tests.cli._run import isolux


@pytest.fixture(scope="module")
def found():
    scored, who = people()
    return audit(scored, who, by="race", replicates=100, min_units=1, min_clusters=1)


@pytest.mark.parametrize(
    ("notes", "kept"),
    [
        (["304 are in both runs."], 0),  # four more than everyone, 300
        (["310 are in both runs.", "300 have a name, and 300 a face."], 2),
        (["800 were read, 795 of them twice."], 0),
        (["800 were read.", "795 were read twice."], 1),
        (["2 % are new."], 0),  # six people of 300
        (["98.5 % have a name."], 0),  # all but five
        (["Intervals hold 95 % of replicates.", "50 % are new."], 2),
        (["Dutch: 180 have an address."], 0),  # of 176 who are Dutch
        (["180 have an address."], 1),
    ],
)
def test_no_two_totals_of_a_page_are_a_few_people_apart(found, notes, kept):
    run = found.run
    for key in ("notes", "warnings"):
        told = {**run.record, "notes": [], "warnings": [], key: notes}
        cut = publish(type(run)(**{**parts_of(run), "record": told}), 10)
        left = [note for note in cut.record[key] if note in notes]
        assert left == notes[:kept], key
    assert notes[0] in found.run.record["notes"] + notes  # the run itself is as it was


def test_a_comparison_tells_no_total_that_is_a_few_people_more(tmp_path, monkeypatch, capsys):
    """Of four people the truth is not known: 300 are in both runs, and 296 in every number."""
    rows = "".join(
        f"{i},{'AB'[i % 2]},{'' if i < 4 else 'xy'[i % 3 == 0]},x,{'xy'[i % 5 == 0]}\n"
        for i in range(300)
    )
    (tmp_path / "people.csv").write_text(f"id,race,truth,old,new\n{rows}")
    monkeypatch.chdir(tmp_path)
    for name in ("old", "new"):
        done = isolux(
            monkeypatch, capsys, "audit", "table:people.csv", "--id", "id", "--target", "truth",
            "--prediction-column", name, "--by", "race", "--out", name, "--replicates", "100",
            "--metric", "accuracy",
        )  # fmt: skip
        assert done.code == 0, done.err
    done = isolux(monkeypatch, capsys, "compare", "old", "new", "--out", "both")
    assert done.code == 0, done.err
    assert "300 are in both runs" in Path("both/report.html").read_text()
    for command, flag in (("report", "--out"), ("view", "--bundle")):
        page = f"{command}.html"
        done = isolux(monkeypatch, capsys, command, "both", "--publish-min", "10", flag, page)
        assert done.code == 0, done.err
        told = Path(page).read_text()
        assert "296" in told
        assert "300 are in both" not in told


def test_a_metric_of_nearly_the_same_people_is_left_out_and_the_page_says_so():
    """Three people have no answer and count as found or not, but not as right or wrong."""
    truth, race = binary({"A": (80, 90), "B": (80, 60)})
    answers = a_fifth_wrong(truth)
    answers["label"] = [None if i in (5, 6, 200) else a for i, a in enumerate(answers["label"])]
    answers["detected"] = [a is not None for a in answers["label"]]
    run = audited(
        people_of(truth, race), answers, metrics=["accuracy", "detection_rate"],
        undetected="leave-out",
    )  # fmt: skip
    whole = run.group_metrics.filter(group="overall")
    assert whole.select("metric", "n_units").rows() == [("accuracy", 307), ("detection_rate", 310)]
    assert run.record["clusters"]["n_units"] == 310
    cut = publish(run, 10)
    assert shown_of(cut, "overall") == shown_of(cut, "A") == {"accuracy"}
    assert set(cut.disparities["metric"]) == {"accuracy"}
    assert cut.record["clusters"]["n_units"] == 307
    assert "310" not in re.sub(
        r"<[^>]+>", " ", render_report(summarise_run(cut)).partition("<body")[2]
    )
    assert "count a few people more or fewer than another number" in cut.record["notes"][0]


@pytest.mark.parametrize("hidden", [(12, 104), (12, 8)])
def test_measures_of_hidden_values_go_with_them(hidden):
    """Equalized odds are of two rates, and named after neither: C's is one of what it rests on."""
    truth, race = binary({"A": (146, 310), "B": (73, 202), "C": hidden, "D": (8, 150)})
    run = audited(people_of(truth, race), a_fifth_wrong(truth), positive="yes")
    cut = publish(run, 10)
    rates = {"true_positive_rate", "false_positive_rate"}
    assert "equalized_odds_difference" in run.disparities["kind"].to_list()
    assert not rates & shown_of(cut, "D")
    assert not {*rates, "equalized_odds"} & set(cut.disparities.filter(kind="range")["metric"])
    assert "equalized_odds_difference" not in cut.disparities["kind"].to_list()
    page = re.sub(r"<[^>]+>", " ", render_report(summarise_run(cut)))
    assert "equalized odds difference" not in page


def test_a_measure_of_the_whole_attribute_goes_even_if_it_names_groups_that_are_shown():
    """The range of three groups is that of two: which shows that the hidden one lies between."""
    truth, race = binary({"A": (80, 90), "B": (90, 80), "C": (6, 90), "D": (7, 91)})
    run = audited(people_of(truth, race), a_fifth_wrong(truth), metrics=["recall", "accuracy"])
    names = pl.col("kind").is_in(["range", "epsilon", "omnibus_test", "max_difference_bound"])
    told = run.disparities.filter(names)
    for a, b in (("A", "B"), ("B", "A")):  # whichever two the measure names
        told = told.with_columns(group_a=pl.lit(a), group_b=pl.lit(b))
        cut = publish(type(run)(**{**parts_of(run), "disparities": told}), 10)
        assert cut.group_metrics.filter(group="C", metric="recall").is_empty()
        assert cut.group_metrics.filter(group="A", metric="recall").height == 2
        assert set(cut.disparities["metric"]) == {"accuracy"}
    kept = publish(run, 2).disparities
    assert {"range", "max_difference_bound", "omnibus_test"} <= set(
        kept.filter(metric="recall")["kind"]
    )

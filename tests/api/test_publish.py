"""A published run tells nothing of small groups: in no table, no finding, no note, no page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from isolux.analyses.model_changes import select_summary_claims
from isolux.api.audit import audit
from isolux.api.compare import compare
from isolux.api.publish import publish, suppress_revealing_scores, suppress_small_groups
from isolux.api.publish.suppression_summary import describe_suppression
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DatasetInfo
from isolux.io.run_directory import load_run, save_run
from isolux.report.html import render_report
from isolux.report.summary import summarise_run
from isolux.statements.answer import answer_from_run
from isolux.statements.run_terms import HIDDEN_COMPARED
from tests.api._published import (
    RACES,
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
    by = ["race", "light", "race*light"]
    return audit(scored, who, by=by, replicates=100, min_units=1, min_clusters=1)


def test_small_groups_and_one_that_gives_them_away_are_gone(found):
    run = publish(found.run, 10)
    kept = run.group_metrics.filter(attribute="race")["group"].to_list()
    assert sorted(kept) == ["Corsican", "Dutch"]  # 300 − 90 − 176 is 34: Aleut and Basque together
    assert run.group_metrics["n_units"].min() >= 10
    named = {*run.disparities["group_a"], *run.disparities["group_b"]}
    assert not any("Aleut" in str(name) or "Basque" in str(name) for name in named)
    assert run.scores.is_empty()
    assert run.attributes.is_empty()
    assert run.evidence == {}


def test_a_published_page_names_no_small_group(found):
    page = render_report(summarise_run(publish(found.run, 10)))
    whole = render_report(summarise_run(found.run))
    assert "Aleut" in whole
    assert "Aleut" not in page
    assert "Basque" not in page
    assert "Corsican" in page
    assert "Made to be published" in page


def test_findings_are_made_anew_from_what_is_shown(found):
    run = publish(found.run, 10)
    assert run.findings.height > 0
    told = " ".join(run.findings["claim"])
    assert "shown here" in told  # of groups that are hidden nothing is said
    assert "Aleut" not in told
    answer = answer_from_run(run)
    assert answer.first in run.findings["claim"].to_list()
    assert HIDDEN_COMPARED in answer.further
    assert HIDDEN_COMPARED not in answer_from_run(found.run).further


def test_notes_that_count_a_few_people_are_left_out(found):
    notes = ["3 people have no age.", "12 photos were read.", "Of 1,003 people 6 % are new."]
    run = found.run
    with_notes = {**run.record, "notes": notes, "protocol": {"tables": {}}, "explained": {"x": 1}}
    cut = publish(type(run)(**{**parts_of(run), "record": with_notes}), 10)
    assert cut.record["notes"][1:] == notes[1:]
    assert "Notes or warnings from which" in cut.record["notes"][0]
    assert "protocol" not in cut.record
    assert "Tables of analyses and protocols are left out." in cut.record["notes"][0]


def test_a_comparison_is_published_too():
    (a, who), (b, _) = people(1), people(2)
    settings = {"by": ["race"], "replicates": 100, "min_units": 1, "min_clusters": 1}
    first = audit(a.with_columns(model=pl.lit("m1")), who, **settings)
    second = audit(b.with_columns(model=pl.lit("m2")), who, **settings)
    cut = publish(compare(first, second).run, 10)
    assert set(cut.group_metrics["group"]) == {"overall", "Corsican", "Dutch"}
    assert set(cut.disparities["group_a"].drop_nulls()) <= {"overall", "Corsican", "Dutch"}
    assert not any("Aleut" in claim for claim in cut.findings["claim"])
    assert HIDDEN_COMPARED in select_summary_claims(cut).further
    assert any("No group of those shown here" in claim for claim in cut.findings["claim"])


@pytest.mark.parametrize(("minimum", "says"), [(1, "too small"), (301, "too few people")])
def test_a_minimum_that_cannot_be_is_refused(found, minimum, says):
    with pytest.raises(SpecError, match=says):
        publish(found.run, minimum)


def test_an_export_withholds_what_few_people_share():
    info = DatasetInfo(title="Made", summary="Synthetic.", references=())
    ids = [str(i) for i in range(12)]
    values = {"race": ["A"] * 9 + ["B"] * 3, "glasses": ["yes"] * 3 + ["no"] * 9}
    rows = [("instance", ids[i], k, held[i]) for k, held in values.items() for i in range(12)]
    names = ["unit_kind", "unit_id", "attribute", "value"]
    dataset = Dataset(
        "made", info, pl.DataFrame({"instance_id": ids, "image_id": ids}),
        pl.DataFrame(rows, schema=names, orient="row"),
    )  # fmt: skip
    cut = suppress_small_groups(dataset, 4)
    # Three with glasses and three of B are few: those values go. A without glasses are six; A
    # alone are three again, and no glasses alone are three: theirs go too.
    assert set(cut.attributes["unit_id"]) == set(ids[3:9])
    assert cut.instances.height == 12
    said = "Attributes of 6 people are withheld: fewer than 4 people share them."
    assert cut.notes[-1] == said


def test_the_commands_take_a_minimum(tmp_path, monkeypatch, capsys):
    rows = "".join(f"{i},{race},x,{'xy'[i % 3 == 0]}\n" for i, race in enumerate(RACES))
    (tmp_path / "people.csv").write_text(f"id,race,truth,answer\n{rows}")
    monkeypatch.chdir(tmp_path)
    done = isolux(
        monkeypatch, capsys, "audit", "table:people.csv", "--target", "truth", "--predictions",
        "people.csv", "--prediction-column", "answer", "--by", "race", "--out", "run",
        "--replicates", "100", "--metric", "accuracy",
    )  # fmt: skip
    assert done.code == 0, done.err
    done = isolux(monkeypatch, capsys, "report", "run", "--publish-min", "10", "--out", "page.html")
    assert done.code == 0, done.err
    page = Path("page.html").read_text()
    assert "Aleut" not in page
    assert "Aleut" in Path("run/report.html").read_text()
    assert re.search(r"minimum of 10 people: 2 groups are not shown", page)
    refused = isolux(
        monkeypatch, capsys, "report", "run", "--publish-min", "10", "--gallery", "3", "--images",
        ".",
    )  # fmt: skip
    assert (refused.code, "a gallery shows single people" in refused.err) == (2, True)


def test_three_people_with_twelve_photos_each_are_three():
    race = ["A"] * 120 + ["B"] * 90 + ["C"] * 36
    ids = [f"photo{i}" for i in range(246)]
    scored = pl.DataFrame({"unit_id": ids, "value": [float(i % 4 > 0) for i in range(246)]})
    who = pl.DataFrame({"unit_id": ids, "race": race})
    subjects = [f"s{i // 3}" if i < 210 else f"t{(i - 210) // 12}" for i in range(246)]
    settings = {"by": "race", "replicates": 100, "min_units": 1, "min_clusters": 1}
    clustered = scored.with_columns(cluster_id=pl.Series(subjects))
    named = who.with_columns(subject=pl.Series(subjects))
    whole = publish(audit(scored, who, **settings).run, 10)
    assert set(whole.group_metrics["group"]) == {"overall", "A", "B", "C"}  # it cannot be known
    for found in (audit(clustered, who, **settings), audit(scored, named, **settings)):
        run = publish(found.run, 10)
        assert set(run.group_metrics["group"]) == {"overall", "A"}  # 73 people less 40 less 30


@pytest.mark.parametrize("metric", ["balanced_accuracy", "roc_auc", "average_precision"])
def test_a_metric_that_rests_on_classes_is_shown_where_each_of_them_may_be(metric):
    truth, race = binary({"A": (40, 60), "B": (5, 70), "C": (7, 50), "D": (60, 40)})
    people = people_of(truth, race)
    if metric == "balanced_accuracy":
        run = audited(people, a_fifth_wrong(truth), metrics=["accuracy", metric])
    else:
        drawn = np.random.default_rng(1).random(len(truth)) + [t == "yes" for t in truth]
        run = audited(people, {"score": drawn}, positive="yes", metrics=[metric])
    cut = publish(run, 10)
    assert {g: metric in shown_of(cut, g) for g in "ABCD"} == {
        "A": True, "B": False, "C": False, "D": True,
    }  # fmt: skip
    compared = cut.disparities.filter(metric=metric)
    assert not {"B", "C"} & {*compared["group_a"], *compared["group_b"]}
    if metric == "balanced_accuracy":
        assert all("accuracy" in shown_of(cut, g) for g in "ABCD")
        assert "every group is shown. Some numbers of 2 groups are" in cut.record["notes"][0]


def test_a_class_of_a_few_people_in_all_hides_what_rests_on_it_for_everyone():
    truth = ["cat"] * 120 + ["dog"] * 70 + ["owl"] * 4
    people = people_of(truth, ["AB"[i % 2] for i in range(194)])
    asked = ["accuracy", "recall", "balanced_accuracy"]
    cut = publish(audited(people, a_fifth_wrong(truth), metrics=asked), 10)
    for group in ("overall", "A", "B"):
        assert shown_of(cut, group) == {"accuracy", "recall"}
    assert set(cut.group_metrics["label"].drop_nulls()) == {"cat"}  # dog less the rest is owl
    assert "owl" not in render_report(summarise_run(cut))


def test_selection_rates_of_large_groups_are_shown():
    truth, race = binary({"A": (171, 233), "B": (146, 202), "C": (86, 162)})
    run = audited(people_of(truth, race), a_fifth_wrong(truth), positive="yes")
    cut = publish(run, 10)
    assert "selection_rate" in shown_of(run, "A")
    assert cut.group_metrics.height == run.group_metrics.height
    assert cut.disparities.height == run.disparities.height
    assert "every group is shown." in cut.record["notes"][0]


def test_a_page_says_what_it_hides_and_names_no_file(monkeypatch, capsys, tmp_path):
    rows = "".join(f"{i},{race},{'xy'[i % 3 == 0]},x\n" for i, race in enumerate(RACES))
    (tmp_path / "secret.csv").write_text(f"id,race,truth,answer\n{rows}")
    monkeypatch.chdir(tmp_path)
    done = isolux(
        monkeypatch, capsys, "audit", "table:secret.csv", "--id", "id", "--target", "truth",
        "--predictions", "secret.csv", "--prediction-column", "answer", "--by", "race", "--out",
        "run", "--replicates", "100", "--metric", "accuracy", "--model-name", "m",
    )  # fmt: skip
    assert done.code == 0, done.err
    whole = Path("run/report.html").read_text()
    said = "The tables behind every number are in the same folder"
    assert said in whole
    assert "secret.csv" in whole
    assert "of those shown" not in whole
    page = render_report(summarise_run(publish(load_run("run"), 10)))
    assert said not in page
    assert "secret" not in page
    assert "SHA-256" not in page
    assert "Worst group of those shown" in page
    assert "Tables of analyses" not in page  # there were none


def test_where_no_group_can_be_shown_the_answer_says_so(found):
    truth, race = binary({"A": (200, 90), "B": (2, 1)})
    run = audited(people_of(truth, race), a_fifth_wrong(truth), metrics=["accuracy"])
    cut = publish(run, 10)
    answer = summarise_run(cut).answer
    assert answer.startswith("No groups can be shown here: each has fewer than 10 people, or")
    assert "No attribute was named" not in render_report(summarise_run(cut))
    one = publish(found.run, 120)  # of races, Dutch alone would stay
    assert "No attribute was named" not in summarise_run(one).answer


def test_an_export_holds_no_score_that_names_a_withheld_truth():
    truth, race = binary({"A": (20, 30), "B": (2, 20)})
    people = people_of(truth, race)
    ids = people.instances["instance_id"].to_list()
    rows = people.attributes.to_dicts()
    rows += [{**row, "attribute": "truth", "value": t} for row, t in zip(rows, truth, strict=True)]
    people = Dataset(people.name, people.info, people.instances, pl.DataFrame(rows))
    scores = pl.DataFrame(
        {
            "unit_id": ids * 2,
            "label": [*truth, *[None] * len(ids)],
            "metric": ["recall"] * len(ids) + ["accuracy"] * len(ids),
        }
    )
    cut = suppress_small_groups(people, 5)
    few = {f"p{i}" for i in (50, 51)}  # of B, class "yes"
    assert set(ids) - set(cut.attributes["unit_id"]) == few
    for target in ("truth", None):
        left = suppress_revealing_scores(scores, people, cut, target)
        assert set(left.filter(pl.col("label").is_not_null())["unit_id"]) == set(ids) - few
        assert left.filter(metric="accuracy").height == len(ids)
    gone = pl.col("instance_id").is_in(sorted(few))
    assert cut.instances.filter(gone)["classes"].null_count() == 2
    assert cut.instances.filter(~gone)["classes"].null_count() == 0


def test_an_export_counts_people_and_not_their_photos():
    truth = ["x"] * 24
    people = people_of(truth, ["A"] * 12 + ["B"] * 12)
    subjects = [f"s{i}" for i in range(12)] + ["t"] * 12
    held = people.instances.with_columns(subject_id=pl.Series(subjects))
    photos = Dataset(people.name, people.info, held, people.attributes)
    assert set(suppress_small_groups(people, 5).attributes["value"]) == {"A", "B"}
    assert set(suppress_small_groups(photos, 5).attributes["value"]) == {"A"}


def nameless(cells):
    """Lay out 120 photos of A, 90 of B and 24 each of C and D, who are not told apart."""
    race = ["A"] * 120 + ["B"] * 90 + ["C"] * 24 + ["D"] * 24
    ids = [f"photo{i}" for i in range(len(race))]
    subjects = [f"s{i // 2}" if r in "AB" else cells[i % 2] for i, r in enumerate(race)]
    return ids, race, subjects


@pytest.mark.parametrize("cells", [(None, None), (None, "t1")])
def test_photos_of_nobody_known_are_no_people(cells):
    """Where subjects are known, those of whom they are not may be one person, photo for photo."""
    ids, race, subjects = nameless(cells)
    scored = pl.DataFrame({"unit_id": ids, "value": [float(i % 4 > 0) for i in range(len(ids))]})
    who = pl.DataFrame({"unit_id": ids, "race": race, "subject": subjects})
    found = audit(scored, who, by="race", replicates=100, min_units=1, min_clusters=1)
    shown = set(publish(found.run, 10).group_metrics["group"])
    # Where C and D hold nobody who is known, B goes too: what is hidden comes to ten people.
    assert shown == ({"overall", "A"} if cells[1] is None else {"overall", "A", "B"})
    unsaid = who.with_columns(subject=pl.lit(None, pl.String))  # a column that says of no one
    found = audit(scored, unsaid, by="race", replicates=100, min_units=1, min_clusters=1)
    assert set(publish(found.run, 10).group_metrics["group"]) == {"overall", *"ABCD"}


@pytest.mark.parametrize("cells", [(None, None), (None, "t1")])
def test_nor_are_they_in_an_export(cells):
    _, race, subjects = nameless(cells)
    people = people_of(["x"] * len(race), race)
    held = people.instances.with_columns(subject_id=pl.Series(subjects))
    photos = Dataset(people.name, people.info, held, people.attributes)
    assert set(suppress_small_groups(photos, 10).attributes["value"]) == {"A", "B"}
    named = people.instances.select(
        unit_kind=pl.lit("instance"), unit_id="instance_id", attribute=pl.lit("person_id"),
        value=pl.Series(subjects),
    )  # fmt: skip
    told = pl.concat([people.attributes, named], how="diagonal_relaxed")
    left = suppress_small_groups(Dataset(people.name, people.info, people.instances, told), 2)
    assert {"A", "B"} <= set(left.attributes["value"])
    assert not {"C", "D"} & set(left.attributes["value"])


def test_many_photos_of_a_few_people_are_too_few():
    ids = [f"photo{i}" for i in range(100)]
    subjects = [f"s{i % 4}" for i in range(100)]
    scored = pl.DataFrame(
        {"unit_id": ids, "value": [float(i % 3 > 0) for i in range(100)], "cluster_id": subjects}
    )
    who = pl.DataFrame({"unit_id": ids, "light": ["day", "dusk"] * 50})
    run = audit(scored, who, by="light", replicates=100, min_units=1, min_clusters=1).run
    with pytest.raises(SpecError, match=r"too few people to publish(?s:.*)found: 4"):
        publish(run, 10)


def test_rates_that_together_tell_a_class_go_with_it():
    # Accuracy, selection rate and precision of one group give its count of "yes".
    truth, race = binary({"A": (40, 60), "B": (5, 70), "C": (7, 50), "D": (60, 40)})
    asked = ["accuracy", "selection_rate", "precision"]
    run = audited(people_of(truth, race), a_fifth_wrong(truth), positive="yes", metrics=asked)
    cut = publish(run, 10)
    assert shown_of(cut, "A") == shown_of(cut, "D") == set(asked)
    assert shown_of(cut, "B") == shown_of(cut, "C") == {"accuracy"}


def test_one_group_alone_makes_no_finding():
    truth = ["x"] * 246
    people = people_of(truth, ["A"] * 200 + ["B"] * 43 + ["C"] * 3)
    answer = ["x" if i % 5 else "y" for i in range(246)]
    run = audited(people, {"label": answer, "score": None, "rank": 1}, metrics=["accuracy"])
    cut = publish(run, 10)
    assert set(cut.group_metrics["group"]) == {"overall", "A"}
    assert run.findings.height > 0
    assert cut.findings.is_empty()
    assert summarise_run(cut).answer.startswith("Too few groups can be shown here")


def test_one_group_that_differs_from_everyone_is_answer_and_finding():
    people = people_of(["x"] * 246, ["A"] * 120 + ["B"] * 123 + ["C"] * 3)
    answer = ["x" if i < 120 or i % 2 else "y" for i in range(246)]
    run = audited(people, {"label": answer, "score": None, "rank": 1}, metrics=["accuracy"])
    cut = publish(run, 10)
    (group,) = set(cut.group_metrics["group"]) - {"overall"}
    (finding,) = cut.findings.to_dicts()
    assert (finding["group_a"], finding["group_b"]) == (group, None)
    assert summarise_run(cut).answer == finding["claim"]


def test_a_page_that_hides_a_test_does_not_say_that_data_are_missing():
    truth = ["x", "y"] * 310
    people = people_of(truth, ["A"] * 200 + ["B"] * 206 + ["C"] * 207 + ["D"] * 7)
    answer = [t if i % 5 else "x" for i, t in enumerate(truth)]
    run = audited(people, {"label": answer, "score": None, "rank": 1}, metrics=["accuracy"])
    cut = publish(run, 10)
    assert {"B", "C"} <= set(cut.group_metrics["group"])
    answer = answer_from_run(cut)
    assert "between groups shown here" in answer.first
    assert answer.further[-1] == HIDDEN_COMPARED


def test_a_second_published_page_in_a_folder_is_warned_of(found, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found.report("run")

    def made(out: str, *more: str) -> str:
        done = isolux(monkeypatch, capsys, "report", "run", "--out", out, *more)
        assert done.code == 0, done.err
        return " ".join(done.out.split())

    hidden = "--publish-min", "10"
    assert "WARNING" not in made("plain.html")  # a page for those who audit
    assert "WARNING" not in made("one.html", *hidden)
    assert "WARNING" not in made("one.html", *hidden)  # the same page made again
    assert made("two.html", "--publish-min", "5").startswith(
        "WARNING: one.html in this folder is made to be published too. Each page protects itself"
    )
    told = made("three.html", *hidden)
    assert "one.html, two.html in this folder are" in told
    assert "plain.html" not in told
    assert "WARNING" not in made("four.html")  # nothing is published
    (tmp_path / "elsewhere").mkdir()
    assert "WARNING" not in made("elsewhere/five.html", *hidden)


def test_who_publishes_is_told_which_attributes_cost_most(monkeypatch, capsys, tmp_path):
    """A badge that one person has, and another that one has, hide the badge of all others too."""
    scored, who = people()
    rare = who.with_columns(badge=pl.Series(["one", "two", *["many"] * 298]))
    made = audit(scored, rare, by=["badge", "light"], replicates=100, min_units=1, min_clusters=1)
    save_run(made.run, tmp_path / "run")
    for command, flag in (("report", "--out"), ("view", "--bundle")):
        page = tmp_path / f"{command}.html"
        ran = isolux(monkeypatch, capsys, command, tmp_path / "run", "--publish-min", "10",
                     flag, page)  # fmt: skip
        assert "hides 3 of 6 groups. No group of badge is shown." in ran.out
        assert "Groups or classes of fewer people are in badge: an audit whose --by" in ran.out
        assert "No group of badge" not in page.read_text(encoding="utf-8")
    light = audit(scored, who, by=["light"], replicates=100).run
    assert describe_suppression(light, publish(light, 10), 10) == ""


def test_what_was_found_with_a_hidden_group_does_not_become_nothing_found():
    """Twelve people are all wrong, and hidden: the page may not say that no one differs."""
    who = ["few"] * 12 + ["some"] * 150 + ["most"] * 300
    right = [0.0] * 12 + [1.0] * 140 + [0.0] * 10 + [1.0] * 280 + [0.0] * 20
    ids = [f"p{i}" for i in range(len(who))]
    scored = pl.DataFrame({"unit_id": ids, "value": right})
    table = pl.DataFrame({"unit_id": ids, "tone": who, "light": ["day", "night"] * 231})
    run = audit(scored, table, by=["tone", "light"], replicates=200, min_units=10).run
    assert "differ" in render_report(summarise_run(run))
    page = re.sub(r"<[^>]+>", " ", render_report(summarise_run(publish(run, 15))))
    assert "(not tested)" not in page
    assert "too little data to judge tone" not in page
    assert "was established by tone" not in page
    assert "Not told: what was tested is hidden" in page

"""The analysis on runs by hand: corrections, bounds, the unknown, annotators, bad matrices."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.analyses import label_errors
from isolux.api.explain import run_analyses
from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.core.tables import ATTRIBUTES, FINDINGS, check
from tests.analyses._confounded import attributes, run_of

# Labelled a: 100 with 76 right; labelled b: 50 with 24 right (tests/stats/test_label_noise.py).
CELLS = [("a", 76, 24), ("b", 24, 26)]
MATRIX = "true,labelled,count\na,a,270\na,b,30\nb,a,60\nb,b,240\n"


def made(cells=CELLS, **settings):
    """Make a run of (tone, right, wrong)."""
    scores = [x for _, right, wrong in cells for x in [1.0] * right + [0.0] * wrong]
    tone = [t for t, right, wrong in cells for _ in range(right + wrong)]
    return run_of(scores, attributes(tone=tone), metric="accuracy", task="classification",
                  **settings)  # fmt: skip


def written(tmp_path, text):
    file = tmp_path / "matrix.csv"
    file.write_text(text)
    return str(file)


def table(found, start):
    (frame,) = (t for caption, t in found.tables.items() if caption.startswith(start))
    return frame


def test_labels_are_corrected_by_a_matrix(tmp_path):
    found = label_errors.explain(made(), matrix=written(tmp_path, MATRIX))
    check(found.findings, FINDINGS)
    groups = table(found, "Groups")
    assert groups["as labelled"].to_list() == pytest.approx([0.76, 0.48])
    assert groups["corrected"].to_list() == pytest.approx([0.8, 0.4])
    row = found.findings.row(0, named=True)
    assert row["effect"] == pytest.approx(0.4)
    assert row["low"] < 0.4 < row["high"]
    assert (row["group_a"], row["group_b"], row["p_adjusted"]) == ("a", "b", None)
    assert row["claim"].startswith(
        "With labels corrected by the confusion matrix, accuracy for a is 40.0 points higher than "
        "for b (95 % interval of the difference"
    )
    assert "28.0 points as labelled." in row["claim"]


def test_a_matrix_counted_on_fewer_people_leaves_more_open(tmp_path):
    def width(text):
        row = label_errors.explain(made(), matrix=written(tmp_path, text)).findings.row(
            0, named=True
        )
        return row["high"] - row["low"]

    few = width("true,labelled,count\na,a,27\na,b,3\nb,a,6\nb,b,24\n")
    many = width(MATRIX)
    exact = width("true,labelled,share\na,a,.9\na,b,.1\nb,a,.2\nb,b,.8\n")
    assert few > 1.15 * many
    assert many > exact


def test_shares_are_taken_as_exact_and_that_is_said(tmp_path):
    shares = "attribute,true,labelled,share\ntone,a,a,.9\ntone,a,b,.1\ntone,b,a,.2\ntone,b,b,.8\n"
    found = label_errors.explain(made(), matrix=written(tmp_path, shares))
    assert found.findings["effect"][0] == pytest.approx(0.4)
    assert any("intervals take it as exact" in note for note in found.notes)


def test_bounds_without_a_matrix_by_hand():
    """10 of 100 and 5 of 50 may be wrong: at most 10 misses of a for 5 hits of b.

    (76 + 5) / (100 − 10 + 5) − (24 − 5) / (50 − 5 + 10) = 81 / 95 − 19 / 55.
    At the least: 10 hits of a for 5 misses of b: 66 / 95 − 34 / 55.
    """
    found = label_errors.explain(made())
    row = table(found, "Gaps").row(0, named=True)
    assert row["largest"] == pytest.approx(81 / 95 - 19 / 55, abs=1e-6)
    assert row["least"] == pytest.approx(66 / 95 - 34 / 55, abs=1e-6)
    assert row["interval_low"] < row["least"]
    assert row["corrected"] is None
    assert 0.1 < row["wrong labels for a gap of 0"] < 0.15
    (claim,) = found.findings["claim"]
    assert claim.startswith("If up to 10 % of the labels of a and of b are wrong, accuracy of a")
    assert "It could be 0 if 14.0 % of the labels were wrong." in claim
    half = label_errors.explain(made(), max_error_rate=0.05)
    assert table(half, "Gaps")["largest"][0] < row["largest"]


def test_people_of_unknown_group_may_be_anyone():
    """30 right and 10 wrong are unknown. All hits to a: 106 / 130 − 24 / 60, and the reverse."""
    found = label_errors.explain(made([*CELLS, (None, 30, 10)]))
    row = table(found, "Gaps").row(0, named=True)
    assert row["largest with unknown"] == pytest.approx(106 / 130 - 24 / 60, abs=1e-6)
    assert row["least with unknown"] == pytest.approx(76 / 110 - 54 / 80, abs=1e-6)
    claim = found.findings["claim"][-1]
    assert claim.startswith("40 people are of unknown group.")
    # All in a: 106 / 140 − .48; none: .76 − 54 / 90.
    assert "27.7 points if all are a, 16.0 points if none is, 28.0 points without them" in claim


def test_three_groups_are_held_against_everyone_else(tmp_path):
    cells = [("a", 80, 20), ("b", 50, 50), ("c", 70, 30)]
    found = label_errors.explain(made(cells))
    gaps = table(found, "Gaps")
    assert gaps["group"].to_list() == ["a", "b", "c"]
    assert gaps["as labelled"].to_list() == pytest.approx([0.2, -0.25, 0.05])
    assert found.findings["group_a"].to_list() == ["b"]
    assert "everyone else" in found.findings["claim"][0]
    text = "true,labelled,share\n" + "".join(
        f"{t},{said},{0.8 if t == said else 0.1}\n" for t in "abc" for said in "abc"
    )
    mended = label_errors.explain(made(cells), matrix=written(tmp_path, text))
    assert "for all 3 groups at once)" in mended.findings["claim"][0]
    # By symmetry of the matrix: values v with .8 v + .1 of both others as labelled.
    assert table(mended, "Groups")["corrected"].to_list() == pytest.approx(
        [(0.8 - 0.2) / 0.7, (0.5 - 0.2) / 0.7, (0.7 - 0.2) / 0.7], abs=1e-6
    )


def test_several_annotators_correct_without_a_matrix():
    """Two who agree on all but a few, and one who errs often; the vote is the run's label."""
    people = []
    for i in range(300):
        true = "ab"[i % 2]
        other = "ba"[i % 2]
        said = [true, true if i % 10 else other, other if i % 4 == 0 else true]
        people += [
            {"unit_kind": "instance", "unit_id": f"p{i}", "attribute": "tone", "value": v,
             "annotator": f"r{k}"}
            for k, v in enumerate(said)
        ]  # fmt: skip
    rows = ATTRIBUTES.conform(pl.DataFrame(people))
    scores = [float(i % 20 < (18 if i % 2 else 12)) for i in range(300)]
    run = run_of(scores, rows, metric="accuracy", task="classification",
                 spec={"votes": "top-or-none"})  # fmt: skip
    found = label_errors.explain(run)
    assert found.findings["reference"][0] == "dawid-skene-1979"
    assert "corrected by the model of the annotators" in found.findings["claim"][0]
    assert label_errors.explain(run, annotators=False).findings["reference"].to_list() == [
        "horowitz-manski-1995"
    ]


def annotated(said):
    """Make a run of 300 people, labelled by the annotators of the columns of ``said``."""
    people = [
        {"unit_kind": "instance", "unit_id": f"p{i}", "attribute": "tone", "value": "ab"[v],
         "annotator": f"r{k}"}
        for i, row in enumerate(said)
        for k, v in enumerate(row)
    ]  # fmt: skip
    rows = ATTRIBUTES.conform(pl.DataFrame(people))
    scores = [float(i % 20 < (18 if i % 2 else 12)) for i in range(len(said))]
    return run_of(scores, rows, metric="accuracy", task="classification",
                  spec={"votes": "top-or-none"})  # fmt: skip


def _said(*right, seed=0):
    rng = np.random.default_rng(seed)
    true = np.arange(300) % 2
    return np.stack([np.where(rng.random(300) < r, true, 1 - true) for r in right], axis=1)


def _copied():
    said = _said(0.75, 0.75, 0.75)
    said[:, 1] = said[:, 0]
    return said


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (_said(0.9, 0.7), "two annotators who disagree do not show which of them is wrong"),
        (_copied(), "r0 and r1 hardly ever disagree, and r2 often differs from both"),
        (_said(0.9, 0.15, 0.15), r"r0 named the right group less often than chance \(\d+ %\)"),
    ],
)
def test_annotators_who_are_not_to_be_relied_on_are_a_warning_and_in_the_sentence(said, told):
    run = run_analyses(annotated(said), ["label_errors"])
    own = run.findings.filter(reference="dawid-skene-1979").row(0, named=True)
    assert own["status"] == "doubtful correction"
    assert re.search(f"This is not to be relied on: .*{told}", own["claim"])
    (warned,) = [w for w in run.record["warnings"] if w.startswith("label_errors, tone: ")]
    assert re.search(told, warned)


def test_one_of_five_who_turns_groups_round_is_a_warning_alone():
    run = run_analyses(annotated(_said(0.85, 0.85, 0.85, 0.85, 0.15)), ["label_errors"])
    assert run.findings.filter(reference="dawid-skene-1979")["status"].to_list() == ["ok"]
    (warned,) = [w for w in run.record["warnings"] if w.startswith("label_errors, tone: ")]
    assert "r4 named the right group less often than chance" in warned


def test_an_answer_that_is_written_down_twice_counts_once():
    run = annotated(_said(0.8, 0.85, 0.8))
    first = run.attributes.filter(annotator="r0")
    doubled = replace(run, attributes=pl.concat([run.attributes, first, first]))
    weighed = replace(run, attributes=run.attributes.with_columns(
        votes=pl.when(pl.col("annotator") == "r0").then(3.0).otherwise(1.0)
    ))  # fmt: skip
    found = [label_errors.explain(one).findings["effect"][0] for one in (run, doubled, weighed)]
    assert found[1:] == pytest.approx([found[0]] * 2)


def test_annotators_who_never_disagree_are_in_doubt():
    run = run_analyses(annotated(np.tile(_said(0.8), 3)), ["label_errors"])
    own = run.findings.filter(reference="dawid-skene-1979").row(0, named=True)
    assert own["status"] == "doubtful correction"
    assert "never wrong or wrong together" in own["claim"]


def test_labels_that_do_not_enter_the_correction_are_counted():
    run = annotated(_said(0.8, 0.85, 0.8))
    some = pl.col("annotator") == "r2"
    nameless = run.attributes.with_columns(
        annotator=pl.when(some).then(None).otherwise(pl.col("annotator"))
    )
    notes = label_errors.explain(replace(run, attributes=nameless)).notes
    assert (
        "label_errors, tone: 300 labels without an annotator's name do not enter the correction"
        in (notes)
    )
    alone = replace(run, attributes=run.attributes.filter(annotator="r0"))
    (note,) = [n for n in label_errors.explain(alone).notes if "no person has labels of two" in n]
    assert note.endswith("a confusion matrix would tell too")


def test_annotators_who_agree_by_chance_alone_correct_nothing():
    run = run_analyses(annotated(_said(0.5, 0.5, 0.5)), ["label_errors"])
    own = run.findings.filter(reference="dawid-skene-1979").row(0, named=True)
    assert own["claim"].endswith(
        "cannot be corrected: the annotators agree no more often than by chance, so their labels "
        "do not tell who belongs to which group."
    )
    assert (own["effect"], own["low"], own["high"]) == (None, None, None)
    assert own["status"] == "undefined"


def test_people_in_several_groups_are_refused():
    rows = pl.concat([made().attributes, attributes(tone=["b"] * 10)])
    run = run_of(made().scores["value"].to_list(), rows, metric="accuracy", task="classification")
    with pytest.raises(SpecError, match=r"(?s)in several groups of tone.*top-or-none"):
        label_errors.explain(run)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("true,labelled,share\na,a,.9\na,b,.2\nb,a,.2\nb,b,.8\n", TableError,
         r"row of a does not sum to 1.*found: 1.1"),
        ("true,labelled,count\na,a,-5\na,b,2\nb,a,2\nb,b,8\n", TableError,
         r"count of the confusion matrix cannot be used.*found: -5.0 for a labelled a"),
        ("true,labelled,count\na,a,.9\na,b,.1\nb,a,.2\nb,b,.8\n", TableError,
         r"not a whole number of people.*share.*found: 0.9 for a labelled a"),
        ("true,labelled,count\na,a,many\na,b,2\nb,a,2\nb,b,8\n", TableError, r"cannot be used"),
        ("true,labelled,count\na,a,5\na,b,5\nb,a,5\nb,b,5\n", SpecError,
         r"cannot be undone: its labels hardly tell"),
        ("true,labelled,count\na,a,5\na,c,5\nc,a,1\nc,c,5\n", SpecError,
         r"other true groups than the run.*does not have c"),
        ("true,labelled,count\na,a,5\n", SpecError, r"other true groups.*the matrix lacks b"),
        ("true,labelled,count\na,a,5\na,b,0\nb,a,0\nb,b,0\n", TableError, r"nobody who is truly b"),
        ("true,labelled,count\na,a,5\na,a,5\nb,b,5\n", TableError, r"twice.*a labelled a"),
        ("true,label,count\na,a,5\n", UnknownNameError, r"'labelled'"),
        ("true,labelled,n\na,a,5\n", UnknownNameError, r"'count'"),
        ("attribute,true,labelled,count\nage,a,a,5\n", SpecError, r"no rows of 'tone'"),
    ],
)  # fmt: skip
def test_matrices_that_are_refused(text, error, message, tmp_path):
    with pytest.raises(error, match=f"(?s){message}"):
        label_errors.explain(made(), matrix=written(tmp_path, text))


def test_a_matrix_that_the_labels_contradict(tmp_path):
    """5 of 100 are labelled b, where a tenth of all a would be: b has less than nobody."""
    cells = [("a", 80, 15), ("b", 3, 2)]
    text = "true,labelled,share\na,a,.9\na,b,.1\nb,a,.1\nb,b,.9\n"
    found = label_errors.explain(made(cells), matrix=written(tmp_path, text)).findings
    assert found["status"][0] == "undefined"
    assert "cannot be corrected" in found["claim"][0]
    assert found["effect"][0] is None


FEW = "true,labelled,count\na,a,13\na,b,7\nb,a,6\nb,b,14\n"


@pytest.mark.parametrize("text", [FEW, "true,labelled,count\na,a,52\na,b,48\nb,a,48\nb,b,52\n"])
def test_a_matrix_that_says_little_gives_no_impossible_gap(tmp_path, text):
    cells = [("a", 110, 40), ("b", 140, 10)]
    row = label_errors.explain(made(cells), matrix=written(tmp_path, text)).findings.row(
        0, named=True
    )
    assert -1 <= row["low"] <= row["effect"] <= row["high"] <= 1
    assert "nan" not in row["claim"]
    assert row["status"] == "doubtful correction"
    assert "could be almost anything" in row["claim"] or "was cut there" in row["claim"]


def test_a_flawless_model_is_not_known_to_be_flawless(tmp_path):
    """300 of 300 right: an interval of a gap of 0 has a width, corrected or bounded."""
    found = label_errors.explain(
        made([("a", 200, 0), ("b", 100, 0)]), matrix=written(tmp_path, MATRIX)
    )
    corrected, bounds = found.findings.iter_rows(named=True)
    for row in (corrected, bounds):
        assert row["low"] < -0.005, row
        assert row["high"] > 0.005, row


def test_bounds_are_no_narrower_than_the_audits_own_interval():
    """Nothing is wrong: 100 of 100 against 97 of 100; .03 is 1.75 standard errors."""
    found = label_errors.explain(made([("a", 100, 0), ("b", 97, 3)]), max_error_rate=0.0)
    row = found.findings.row(0, named=True)
    # At a gap of 0 both share 197 of 200: .03 is 1.75 standard errors of .0172, fewer than 1.96.
    assert row["low"] < -0.003
    assert row["high"] > 0.08
    assert row["claim"].startswith("If no label of a or of b is wrong")


def test_an_attribute_of_one_group_does_not_stop_the_others():
    scores = [1.0] * 60 + [0.0] * 40
    rows = attributes(tone=["a", "b"] * 50, light=["dim"] * 100)
    run = run_of(scores, rows, metric="accuracy", task="classification",
                 spec={"by": ["tone", "light"]})  # fmt: skip
    found = label_errors.explain(run)
    assert set(found.findings["attribute"]) == {"tone"}
    assert any("light has one group" in note for note in found.notes)


def test_settings_that_are_refused():
    with pytest.raises(SpecError, match=r"(?s)with this share of wrong labels.*found: 0.5"):
        label_errors.explain(made(), max_error_rate=0.5)
    with pytest.raises(SpecError, match=r"(?s)it is a share: 0.05 is 5 %"):
        label_errors.explain(made(), max_error_rate=5)
    with pytest.raises(UnknownNameError, match="'colour'"):
        label_errors.explain(made(), attribute=["colour"])
    with pytest.raises(SpecError, match="fewer than two groups"):
        label_errors.explain(made([("a", 5, 5)]))


def test_through_the_front_door(tmp_path):
    found = run_analyses(
        made(), ["label_errors"], [f"matrix={written(tmp_path, MATRIX)}", "max_error_rate=0.2"]
    )
    assert found.findings["analysis"].unique().to_list() == ["label_errors"]
    assert "If up to 20 % of the labels" in found.findings["claim"][1]


def test_a_matrix_that_turns_judgements_round_is_a_warning_and_its_findings_are_in_doubt(tmp_path):
    turned = "true,labelled,count\na,a,30\na,b,270\nb,a,270\nb,b,30\n"
    matrix = f"label_errors.matrix={written(tmp_path, turned)}"
    run = run_analyses(made(), ["label_errors"], [matrix])
    (told,) = [w for w in run.record["warnings"] if "turns judgements round" in w]
    assert "swapped in the file?" in told
    assert told not in run.record["notes"]
    own = run.findings.filter(analysis="label_errors").row(0, named=True)
    assert own["status"] == "doubtful correction"
    assert "This is not to be relied on: by this matrix most labels of some group" in own["claim"]

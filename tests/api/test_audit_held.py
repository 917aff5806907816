"""A table in memory is audited as the same table in a file, or refused where it could mislead."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import isolux
from isolux.core.errors import SpecError, TableError, UnknownNameError
from tests.core.inputs._others import ArrowStream, ClassLabel, HuggingFace, Tensor

# 200 people: in the day all are right, at night every second one is.
N = 200
PEOPLE = {
    "light": ["day", "night"] * (N // 2),
    "truth": [1, 1, 0, 0] * (N // 4),
    "answer": [1, 0, 0, 0] * (N // 4),
    "sure": [0.9, 0.4, 0.1, 0.2] * (N // 4),
    "who": [k // 2 for k in range(N)],
}
ASKED = {"by": "light", "target": "truth", "prediction_column": "answer", "replicates": 200}
SCORED = {**ASKED, "score_column": "sure", "positive": "1", "cluster": "who"}


def _accuracy(found):
    return dict(found.group_metrics.filter(metric="accuracy").select("group", "value").rows())


@pytest.fixture(scope="module")
def of_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("held") / "people.csv"
    pl.DataFrame(PEOPLE).write_csv(path)
    return isolux.audit(f"table:{path}", **SCORED)


@pytest.mark.parametrize(
    "table",
    [
        PEOPLE,
        {**PEOPLE, "answer": Tensor(PEOPLE["answer"], device="cuda:0"),
         "sure": Tensor(PEOPLE["sure"], grad=True)},
        pl.DataFrame(PEOPLE),
        pd.DataFrame(PEOPLE),
        pl.DataFrame(PEOPLE).to_arrow(),
        HuggingFace(PEOPLE, {}),
    ],
    ids=["mapping", "tensors", "polars", "pandas", "pyarrow", "datasets"],
)  # fmt: skip
def test_a_table_in_memory_is_audited_as_its_file(table, of_file):
    found = isolux.audit(table, **SCORED)
    assert found.group_metrics.equals(of_file.group_metrics)
    assert found.disparities.equals(of_file.disparities)
    assert found.findings["claim"].equals(of_file.findings["claim"])
    assert found.run.record["clusters"] == of_file.run.record["clusters"]


def test_numbers_of_numpy_are_settings_like_any_other():
    asked = {"margin": np.float64(3), "min_units": np.int64(30), "by": "light"}
    found = isolux.audit(PEOPLE, **{**ASKED, **asked})
    plain = isolux.audit(PEOPLE, **{**ASKED, "margin": 3.0, "min_units": 30})
    assert found.run.record["spec"] == plain.run.record["spec"]
    assert found.disparities.equals(plain.disparities)


def test_the_record_says_that_it_was_in_memory_and_which_table(tmp_path):
    found = isolux.audit(PEOPLE, **ASKED)
    assert found.spec.people.data == "(in memory)"
    assert list(found.run.record["inputs"]) == ["(in memory)"]
    again = isolux.audit(pl.DataFrame(PEOPLE), **ASKED)
    assert again.run.record["inputs"] == found.run.record["inputs"]
    other = isolux.audit({**PEOPLE, "sure": PEOPLE["sure"][::-1]}, **ASKED)
    assert other.run.record["inputs"] != found.run.record["inputs"]
    assert found.report(tmp_path / "run").exists()
    assert _accuracy(found) == {"overall": 0.75, "day": 1.0, "night": 0.5}


def test_classes_of_hugging_face_meet_by_name():
    features = {"truth": ClassLabel(["cat", "dog"]), "answer": ClassLabel(["cat", "dog"])}
    found = isolux.audit(HuggingFace(PEOPLE, features), **ASKED)
    assert set(found.group_metrics["label"].drop_nulls()) == {"cat", "dog"}
    with pytest.raises(TableError, match=r"no answer of 'answer' is a class that is true"):
        isolux.audit(HuggingFace(PEOPLE, {"truth": features["truth"]}), **ASKED)


def test_true_is_1_beside_numbers():
    table = {**PEOPLE, "truth": [bool(one) for one in PEOPLE["truth"]]}
    assert _accuracy(isolux.audit(table, **ASKED))["night"] == 0.5


def test_text_beside_numbers_is_compared_and_told_first():
    table = {**PEOPLE, "truth": [str(one) for one in PEOPLE["truth"]]}
    found = isolux.audit(table, **ASKED)
    assert _accuracy(found)["night"] == 0.5
    assert (
        "'truth' holds text and the answers 'answer' hold numbers"
        in (found.run.record["warnings"][0])
    )


def test_a_missing_truth_leaves_out_and_a_missing_answer_is_a_mistake():
    truth = np.array(PEOPLE["truth"], dtype=float)
    truth[1] = np.nan  # one of the 50 wrong ones of the night
    answer = pd.array(PEOPLE["answer"], dtype="Int64")
    answer[3] = pd.NA  # one of the 50 right ones of the night
    found = isolux.audit({**PEOPLE, "truth": truth, "answer": answer}, **ASKED)
    assert _accuracy(found)["night"] == pytest.approx(49 / 99)


@pytest.mark.parametrize(
    ("table", "settings", "error", "match"),
    [
        (PEOPLE, {"target": "Truth"}, UnknownNameError, "did you mean 'truth'"),
        (PEOPLE, {"prediction_column": "label"}, UnknownNameError, r"no column named 'label'"),
        (PEOPLE, {"score_column": "surr"}, UnknownNameError, "did you mean 'sure'"),
        ({**PEOPLE, "sure": [4.0, -2.0] * (N // 2)}, {"score_column": "sure"}, TableError,
         r"are outside 0 to 1(.|\n)*logits"),
        ({**PEOPLE, "truth": [1]}, {}, TableError, r"columns differ in length(.|\n)*truth: 1"),
        ({key: [] for key in PEOPLE}, {}, TableError, "the table holds nobody"),
        (PEOPLE, {"sheet": "one"}, SpecError, "about reading a file"),
        ({"train": PEOPLE}, {}, TableError, "these are several tables"),
        (ArrowStream(PEOPLE), {"by": ()}, Exception, "scores|compare"),
    ],
)  # fmt: skip
def test_what_could_mislead_is_refused(table, settings, error, match):
    with pytest.raises(error, match=match):
        isolux.audit(table, **{**ASKED, **settings})


def test_a_second_table_beside_truth_and_answers_is_refused():
    with pytest.raises(SpecError, match=r"says itself who is who(.|\n)*found: a second argument"):
        isolux.audit(PEOPLE, pl.DataFrame(PEOPLE), **ASKED)


def test_a_table_without_settings_is_one_of_scores_and_says_the_other_way():
    with pytest.raises(SpecError, match=r"contains no scores(.|\n)*target=…, prediction_column=…"):
        isolux.audit(PEOPLE, by="light")


def test_a_loaded_table_goes_wherever_a_dataset_goes():
    people = isolux.load("table", pd.DataFrame(PEOPLE), cluster="who")
    told = isolux.describe(people, by=["light"]).tables["By light"]
    assert told["people"].to_list() == [N // 2, N // 2]
    assert people.instances["cluster_id"].n_unique() == N // 2
    with pytest.raises(SpecError, match=r"isolux\.load\(\"table\", frame\) takes a table"):
        isolux.load("facet", pd.DataFrame(PEOPLE))

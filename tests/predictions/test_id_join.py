from __future__ import annotations

import polars as pl
import pytest

from isolux import datasets
from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError
from isolux.core.info import DatasetInfo
from isolux.core.tables import LABEL_PREDICTIONS, check
from isolux.predictions import join_predictions, read_predictions
from tests._shared import shared_data

INFO = DatasetInfo(title="x", summary="x", references=())


def people(*ids: str) -> Dataset:
    instances = pl.DataFrame(
        {"instance_id": list(ids), "image_id": list(ids)},
        schema_overrides={"instance_id": pl.String},
    )
    return Dataset(name="x", info=INFO, instances=instances)


def said(*ids: str, model: str = "m") -> pl.DataFrame:
    return LABEL_PREDICTIONS.conform(
        pl.DataFrame(
            {
                "model": model,
                "instance_id": list(ids),
                "label": [f"of {i}" for i in ids],
                "rank": 1,
            },
            schema_overrides={"instance_id": pl.String, "model": pl.String},
        )
    )


def ids(frame: pl.DataFrame) -> list[tuple[str, str]]:
    return frame.select("instance_id", "label").rows()


def test_everyone_has_a_partner():
    aligned, notes = join_predictions(people("a", "b"), said("b", "a"))
    assert ids(aligned) == [("b", "of b"), ("a", "of a")]  # in the predictions' order
    assert notes == ()
    assert check(aligned, LABEL_PREDICTIONS).equals(aligned)


@pytest.mark.parametrize("id_from", ["basename", "stem"])
def test_ids_are_the_datasets_afterwards(id_from):
    aligned, notes = join_predictions(
        people("fairface/val/1.jpg"), said("val/1.jpg"), id_from=id_from
    )
    assert ids(aligned) == [("fairface/val/1.jpg", "of val/1.jpg")]
    assert notes == ()


def test_a_stem_meets_a_number():
    aligned, _ = join_predictions(people("val/7.jpg"), said("7"), id_from="stem")
    assert ids(aligned) == [("val/7.jpg", "of 7")]


def test_shortened_predictions_meet_by_the_same_part():
    aligned, _ = join_predictions(people("val/7.jpg"), said("7.jpg"), id_from="basename")
    assert ids(aligned) == [("val/7.jpg", "of 7.jpg")]


def test_those_without_partners_are_counted_with_examples():
    aligned, notes = join_predictions(people("a", "b", "c", "d", "e"), said("a", "x", "y"))
    assert ids(aligned) == [("a", "of a")]
    strangers = "2 of 3 ids in the predictions of 'm' have no person in the dataset"
    assert notes == (
        f"{strangers} and were left out: 'x', 'y'.",
        "4 of 5 people have no prediction of 'm': 'b', 'c', 'd', ….",
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ("001", "1", "leading zeros"),
        ("IMG_1", "img_1", "upper and lower case"),
        ("v/1.jpg", "1", "folders and suffixes"),
    ],
)
def test_ids_in_another_spelling_are_refused_even_where_others_meet(ours, theirs, words):
    with pytest.raises(JoinError, match=rf"(?s)'m' are the same but for {words}.*'{ours}' and"):
        join_predictions(people("a", "b", ours), said("a", "b", theirs))
    with pytest.raises(JoinError, match=words if words[0] != "f" else "--id-from stem"):
        join_predictions(people(ours), said(theirs))


def test_rows_numbered_from_another_start_are_refused():
    numbers = [str(k) for k in range(31)]
    with pytest.raises(JoinError, match=r"(?s)30 rows from different starts.*0 to 29, and 1 to 30"):
        join_predictions(people(*numbers[:30]), said(*numbers[1:]))
    part, notes = join_predictions(people(*numbers[:30]), said(*numbers[5:25]))
    assert part.height == 20
    assert notes[0].startswith("10 of 30 people have no prediction")


def test_what_a_row_holds_is_named():
    _, notes = join_predictions(people("a", "b"), said("a"), row_name="confidence")
    assert notes == ("1 of 2 people have no confidence of 'm': 'b'.",)


def test_models_are_counted_apart():
    both = pl.concat([said("a", model="m"), said("b", model="n")])
    _, notes = join_predictions(people("a", "b"), both)
    assert notes == (
        "1 of 2 people have no prediction of 'm': 'b'.",
        "1 of 2 people have no prediction of 'n': 'a'.",
    )


def test_several_answers_of_one_person_stay_together():
    twice = pl.concat([said("v/1"), said("v/1").with_columns(rank=pl.lit(2, dtype=pl.Int64))])
    aligned, notes = join_predictions(people("1"), twice, id_from="basename")
    assert aligned.select("instance_id", "rank").rows() == [("1", 1), ("1", 2)]
    assert notes == ()


def test_a_join_that_meets_nobody_shows_both_sides_and_what_would_match():
    with pytest.raises(
        JoinError,
        match=r"(?s)no prediction of 'm' is about a person.*people 'd/1.jpg', 'd/2.jpg', 'd/3.jpg',"
        r" …; predictions 'v/1.jpg', 'v/2.jpg'\n.*--id-from basename .* would match 2 of 2 ids",
    ):
        join_predictions(
            people("d/1.jpg", "d/2.jpg", "d/3.jpg", "d/4.jpg"), said("v/1.jpg", "v/2.jpg")
        )


def test_the_way_that_matches_most_is_proposed():
    with pytest.raises(JoinError, match=r"--id-from stem .* would match 2 of 2"):
        join_predictions(people("a/1.png", "a/2.jpg"), said("1.jpg", "2.jpg"))


def test_a_way_that_makes_one_person_of_two_is_not_proposed():
    with pytest.raises(JoinError, match="no part of them agrees"):
        join_predictions(people("a/1.jpg", "b/1.jpg"), said("1.jpg"))


def test_ids_with_nothing_in_common_are_said():
    with pytest.raises(JoinError, match=r"(?s)no part of them agrees"):
        join_predictions(people("a"), said("b"))


def test_one_model_of_two_that_meets_nobody_is_refused():
    both = pl.concat([said("a", model="m"), said("z", model="n")])
    with pytest.raises(JoinError, match="no prediction of 'n' is about a person"):
        join_predictions(people("a"), both)


def test_ids_that_become_one_are_refused_on_either_side():
    with pytest.raises(
        JoinError, match=r"(?s)same basename.*'a/1' and 'b/1' both become '1'.*the dataset"
    ):
        join_predictions(people("a/1", "b/1"), said("1"), id_from="basename")
    with pytest.raises(JoinError, match=r"(?s)same stem.*'1.jpg' and '1.png'.*the predictions"):
        join_predictions(people("1"), said("1.jpg", "1.png"), id_from="stem")


def test_another_way_is_refused():
    with pytest.raises(SpecError, match="ids cannot be taken that way"):
        join_predictions(people("a"), said("a"), id_from="suffix")


def test_no_predictions_are_no_error_everyone_was_missed():
    aligned, notes = join_predictions(people("a", "b"), said())
    assert aligned.schema == LABEL_PREDICTIONS.schema
    assert aligned.is_empty()
    assert notes == ("None of 2 people has a prediction.",)


def test_no_people_are_no_error():
    aligned, notes = join_predictions(people(), said("a"))
    assert aligned.is_empty()
    assert notes == ()


def test_inputs_are_unchanged():
    dataset, predictions = people("v/a"), said("a")
    join_predictions(dataset, predictions, id_from="basename")
    assert predictions.equals(said("a"))
    assert dataset.instances.equals(people("v/a").instances)


# ── real files ──────────────────────────────────────────────────────────────────────────────────


def test_the_real_answers_of_two_models_meet_by_basename():
    labels = datasets.load("fairface", shared_data("fairface_val/fairface_label_val.csv"))
    answers = read_predictions(
        shared_data("fairface_val/fairface_label_val_expanded_fair.csv"), column="predicted_gender"
    )
    with pytest.raises(JoinError, match=r"--id-from basename .* would match 10,954 of 10,954 ids"):
        join_predictions(labels, answers)
    aligned, notes = join_predictions(labels, answers, id_from="basename")
    assert aligned["instance_id"].to_list() == labels.instances["instance_id"].to_list()
    assert notes == ()


def test_the_real_answers_of_deepface_are_two_more_than_the_labels():
    labels = datasets.load("fairface", shared_data("fairface_services/labels_3k.csv"))
    answers = read_predictions(shared_data("fairface_services/deepface_3k.csv"), column="gender")
    aligned, notes = join_predictions(labels, answers)
    assert aligned.height == 2_998
    assert len(notes) == 1
    assert notes[0].startswith("2 of 3,000 ids in the predictions of 'DeepFace' have no person")

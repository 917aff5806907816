"""What annotators said becomes one row a person: of a scale one value, and every mark."""

from __future__ import annotations

import polars as pl
import pytest

from isolux_curate.publication.people import combine_answers_by_person

_TONE = "perceived skin tone"
_NO = "cannot be determined"


def _of(*marks: tuple[object, ...], question: str = _TONE) -> pl.DataFrame:
    rows = [
        ("a", f"rater {k}", question, str(one)) for k, given in enumerate(marks) for one in given
    ]
    names = ["instance_id", "annotator", "question", "label"]
    return pl.DataFrame(rows, schema=names, orient="row")


@pytest.mark.parametrize(
    ("marks", "tone", "tied"),
    [
        (((5, 6), (5, 6), (6, 7)), "6", 0),  # 5: 2, 6: 3, 7: 1
        (((5, 6), (5, 6), (5, 6)), "5", 1),  # as many of both: the lower
        (((4, 5, 6), (4, 5, 6), (4, 5, 6)), "5", 1),  # of three the middle one
        (((9, 10), (9, 10), (1, 2)), "9", 1),
        (((1, 2), (4, 5), (8, 9)), None, 0),  # none that more than half gave
        (((5, 6), (6, _NO), (_NO,)), "6", 0),  # known wins over unknown
        (((5, 6), (_NO,), (_NO,)), _NO, 0),
        (((10, 9), (10, 9)), "9", 1),  # by the scale, and not as text
    ],
)
def test_one_tone_a_person(marks, tone, tied) -> None:
    found = combine_answers_by_person(_of(*marks))
    assert found.table["perceived_skin_tone"].to_list() == [tone]
    assert sum(found.tied.values()) == tied
    every = [str(one) for given in marks for one in given]
    told = found.table["perceived_skin_tone_marks"][0].split(";")
    assert sorted(told) == sorted(every)
    assert told == sorted(told, key=lambda one: 99 if one == _NO else int(one))
    assert found.marks == ("perceived_skin_tone_marks",)


def test_other_questions_keep_every_answer_of_most_and_checks_are_no_attributes() -> None:
    hair = _of(("black", "grey"), ("black", "grey"), ("black",), question="hair colour")
    tight = _of(("yes",), ("yes",), ("no",), question="is the box tight?")
    found = combine_answers_by_person(pl.concat([hair, tight]))
    assert found.table.rows() == [("a", "black;grey")]
    assert found.table.columns == ["instance_id", "hair_colour"]
    assert (found.marks, found.tied) == ((), {})
    assert combine_answers_by_person(hair.clear()).table.columns == ["instance_id"]

"""Answers and truth that do not speak of the same classes, or of the same people."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import JoinError, TableError
from isolux.core.notes import Caution
from isolux.tasks.classification import score
from isolux.tasks.classification.chance_agreement import agreement_statistics
from tests.tasks._people import answers, people

N = 200
DRAWN = np.random.default_rng(3)
TRUTH = DRAWN.choice(["Female", "Male"], N).tolist()
RIGHT = DRAWN.random(N) < 0.9


def said(yes, no=None):
    """Answers that are right nine times in ten, by a spelling of either class."""
    other = {"Female": "Male", "Male": "Female"}
    return [yes[t if r else other[t]] for t, r in zip(TRUTH, RIGHT, strict=True)]


def judged(labels, truth=TRUTH, **options):
    given = {str(i): label for i, label in enumerate(labels)}
    return score(
        people({str(i): t for i, t in enumerate(truth)}), answers(given), target="job", **options
    )


def accuracy(scores):
    return scores.units.filter(pl.col("metric") == "accuracy")["value"].mean()


def cautions(scores):
    return [note for note in scores.notes if isinstance(note, Caution)]


PLAIN = said({"Female": "Female", "Male": "Male"})


def test_equal_numbers_are_equal_labels():
    numbers = ["1.0" if t == "Male" else "0.0" for t in TRUTH]
    whole = ["1" if t == "Male" else "0" for t in PLAIN]
    scores = judged(whole, numbers, positive="1")
    assert accuracy(scores) == RIGHT.mean()
    tpr = scores.units.filter(metric="true_positive_rate")
    assert tpr["label"].unique().to_list() == ["1.0"]
    assert accuracy(judged(numbers, whole)) == RIGHT.mean()


def test_a_merge_and_an_unknown_word_name_numbers_by_any_spelling():
    truth = ["1.0" if t == "Male" else "2.0" for t in TRUTH]
    given = ["1" if t == "Male" else "3" for t in PLAIN]
    scores = judged(given, truth, label_map={"two": ("2", "3")})
    assert accuracy(scores) == RIGHT.mean()
    scores = judged(given, truth, label_map={"two": ("2", "3")}, unknown_values=("1",))
    assert scores.units.filter(metric="accuracy")["reason"].drop_nulls().unique().to_list() == [
        "unknown truth"
    ]


@pytest.mark.parametrize(
    ("yes", "hint"),
    [
        ({"Female": "female", "Male": "male"}, '--label-map "Female=female"'),
        ({"Female": "F", "Male": "M"}, '--label-map "Male=M"'),
        ({"Female": "0", "Male": "1"}, '--label-map "Male=1"'),
        ({"Female": "Frau", "Male": "Mann"}, '--label-map "Female=Frau"'),
    ],
)
def test_another_vocabulary_is_refused_with_both_lists_and_the_map(yes, hint):
    with pytest.raises(TableError, match="no answer of 'm' is a class that is true") as caught:
        judged(said(yes))
    text = str(caught.value)
    assert "'Female' (" in text
    assert repr(yes["Female"]) in text
    assert hint in text


def test_the_map_that_the_refusal_names_mends_it():
    scores = judged(said({"Female": "F", "Male": "M"}), label_map={"Female": ["F"], "Male": ["M"]})
    assert accuracy(scores) == RIGHT.mean()
    assert cautions(scores) == []


def test_half_a_vocabulary_in_another_spelling_is_refused():
    mixed = [w.lower() if i % 2 else w for i, w in enumerate(PLAIN)]
    with pytest.raises(TableError, match="other spellings of the truth's classes"):
        judged(mixed)


def test_scores_in_place_of_answers_are_refused_with_a_hint():
    logits = (DRAWN.normal(size=N)).round(3).astype(str).tolist()
    with pytest.raises(TableError, match="look like scores, not classes") as caught:
        judged(logits)
    assert "--score-column" in str(caught.value)
    numbers = ["1" if t == "Male" else "0" for t in TRUTH]
    shares = [str(x) for x in np.where(RIGHT, 1, DRAWN.random(N).round(2))]
    with pytest.raises(TableError, match="look like scores"):
        judged(shares, numbers)
    percents = [str(x) for x in DRAWN.integers(0, 101, N)]
    with pytest.raises(TableError, match="look like scores"):
        judged(percents, numbers)


def test_classes_that_differ_by_case_are_refused_with_counts():
    mixed = [t.upper() if i < 30 else t for i, t in enumerate(TRUTH)]
    with pytest.raises(TableError, match="differ by case, blanks") as caught:
        judged(PLAIN, mixed)
    assert "'FEMALE' (" in str(caught.value)
    merge = {"Female": ["FEMALE"], "Male": ["MALE"]}
    assert accuracy(judged(PLAIN, mixed, label_map=merge)) == RIGHT.mean()


@pytest.mark.parametrize(("one", "other"), [("1", "-1"), ("A", "A-"), ("60", "60+"), ("5", "<5")])
def test_a_sign_is_part_of_a_class(one, other):
    words = {"Female": one, "Male": other}
    scores = judged([words[w] for w in PLAIN], [words[t] for t in TRUTH])
    assert accuracy(scores) == RIGHT.mean()


def test_a_map_that_leaves_one_class_is_told_first():
    (told,) = cautions(judged(PLAIN, label_map={"Female": ["Male"]}))
    assert told.startswith("Truth and answers of 'm' are one class, 'Female'")


def test_some_answers_outside_the_truth_are_told_first():
    some = ["Other" if i % 5 == 0 else w for i, w in enumerate(PLAIN)]
    (told,) = cautions(judged(some))
    assert told.startswith("40 of 200 answers of 'm' name classes that are true of nobody here")


def test_answers_that_mean_unknown_are_empty_ones():
    some = ["-1" if i % 5 == 0 else w for i, w in enumerate(PLAIN)]
    scores = judged(some, unknown_values=("-1",), undetected="leave-out")
    assert any(n.startswith("40 answers mean unknown ('-1')") for n in scores.notes)
    assert scores.units.filter(metric="accuracy")["value"].null_count() == 40
    assert cautions(scores) == []


def test_answers_of_other_people_are_told_first():
    other = DRAWN.permutation(PLAIN).tolist()
    (told,) = cautions(judged(other))
    assert "agree with the truth no better than chance" in told


def test_swapped_classes_are_told_first():
    (told,) = cautions(judged(said({"Female": "Male", "Male": "Female"})))
    assert "less often than chance" in told


def test_a_model_that_always_says_the_same_is_told_first():
    (told,) = cautions(judged(["Male"] * N))
    assert told == "Every answer of 'm' is 'Male': one answer for everyone."


@pytest.mark.parametrize("at", [0, 100])
def test_answers_off_by_a_row_are_refused(at):
    moved = [*PLAIN[:at], "Male", *PLAIN[at:-1]]
    with pytest.raises(JoinError, match="belong to other rows") as caught:
        judged(moved)
    assert "the row 1 before it" in str(caught.value)


def test_in_a_file_whose_classes_take_turns_a_model_that_swaps_them_is_no_shift():
    # The truth of the next row follows from one's own, so nothing says that a row was lost.
    turns = ["Female", "Male"] * (N // 2)
    swapped = [t if not r else "Male" if t == "Female" else "Female"
               for t, r in zip(turns, RIGHT, strict=True)]  # fmt: skip
    (told,) = cautions(judged(swapped, turns))
    assert "less often than chance" in told


def test_agreement_beyond_chance_is_that_of_shuffles():
    truth, given = DRAWN.integers(0, 4, 60), DRAWN.integers(0, 3, 60)
    shuffled = [(DRAWN.permutation(given) == truth).sum() for _ in range(20_000)]
    z, _ = agreement_statistics(truth, given)
    agreed = (truth == given).sum()
    expected = (agreed - np.mean(shuffled)) / np.std(shuffled)
    # 20,000 shuffles leave 0.5 % on the spread and 0.007 on the mean, in its units.
    assert z == pytest.approx(expected, abs=0.05)


def test_no_caution_for_a_sound_model():
    assert cautions(judged(PLAIN)) == []


def test_classes_of_the_same_look_are_refused_by_the_names_of_their_letters():
    other = {"Female": "Fem\u0430le", "Male": "Male"}  # a Cyrillic a
    mixed = [other[t] if i < 30 else t for i, t in enumerate(TRUTH)]
    with pytest.raises(TableError, match="letters of the same look alone") as caught:
        judged(PLAIN, mixed)
    assert "with CYRILLIC SMALL LETTER A (" in str(caught.value)

"""Ten pictures are tried before the rest: one answer to all of them is said at once."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.progress import listen_to_lines
from isolux.engine.inference import ModelResponse
from isolux.engine.trial import describe_uniform_answers
from tests.engine._painted import paint, run

TRIED = "10 of 60 pictures were tried first, and all got the label 'man' (confidence 0.6 to 0.7)."


def warned(folder, net, n=60, **settings):
    lines = []
    folder.mkdir(exist_ok=True)
    with listen_to_lines(lines.append):
        run(paint(folder / "in", n), folder / "out", net, **settings)
    return lines


def test_one_label_for_all_is_said_before_the_rest_is_asked(tmp_path):
    seen, said_after = [], []

    def man(pictures):
        seen.append(len(pictures))
        k = np.arange(len(pictures))
        return pl.DataFrame({"picture": k, "label": "man", "score": 0.6 + 0.1 * (k % 2)})

    with listen_to_lines(lambda line: said_after.append((sum(seen), line))):
        run(paint(tmp_path / "in", 60), tmp_path / "out", man)
    ((n_seen, line),) = said_after
    assert n_seen == 10
    assert line.startswith(TRIED)


def test_labels_that_differ_few_pictures_and_a_run_that_goes_on_say_nothing(tmp_path):
    def man(pictures):
        return ["man"] * len(pictures)

    def by_size(pictures):
        return ["bright" if one.mean() > 100 else "dark" for one in pictures]

    assert warned(tmp_path / "few", man, n=49) == []
    assert warned(tmp_path / "differ", by_size) == []
    assert len(warned(tmp_path / "on", man)) == 1
    assert warned(tmp_path / "on", man) == []  # what is there is not tried again


def responses(*predictions):
    return [ModelResponse(rows) for rows in predictions]


@pytest.mark.parametrize(
    ("prediction_type", "row", "other", "noun"),
    [
        ("numbers", {"value": 31.0}, {"value": 31.5}, "the same number"),
        ("embeddings", {"embedding": [1.0, 2.0]}, {"embedding": [1.0, 2.1]}, "same embedding"),
        ("images", {"png": b"a"}, {"png": b"b"}, "the same picture"),
        ("labels", {"label": "a", "score": None, "rank": 1},
         {"label": "b", "score": None, "rank": 1}, "the label 'a'."),
    ],
)  # fmt: skip
def test_each_kind_of_answer_is_compared(prediction_type, row, other, noun):
    same = responses(*[[row]] * 10)
    assert noun in str(describe_uniform_answers(same, prediction_type, 90))
    assert describe_uniform_answers([*same, *responses([other])], prediction_type, 90) is None
    assert describe_uniform_answers(same[:5], prediction_type, 90) is None  # too few to say
    failed = [ModelResponse(None, "the model raised", "model")] * 9
    assert describe_uniform_answers([*same[:1], *failed], prediction_type, 90) is None


def test_no_box_in_any_picture_is_said():
    assert "no boxes in any" in str(describe_uniform_answers(responses(*[[]] * 10), "boxes", 90))
    some = responses(*[[]] * 9, [{"label": "person"}])
    assert describe_uniform_answers(some, "boxes", 90) is None


def test_several_questions_have_several_answers():
    rows = [{"label": "a", "score": None, "rank": 1, "question": q} for q in "xy"]
    assert describe_uniform_answers(responses(*[rows] * 10), "labels", 90) is None

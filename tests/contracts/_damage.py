"""Kinds of damage to a sound file of predictions, made by rule for whatever columns a task reads.

A kind takes a case and gives the damaged one, or None where the task has no such column. ``KINDS``
are all; ``EXCEPTIONS`` those that nobody can tell from a sound file, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from tests.contracts._other_people import BOX, CASES, CLASSES, HEIGHT, WIDTH, Case

IDS = ("instance_id", "other_id", "image_id")
Damage = Callable[[Case], Case | None]


def _change(case: Case, *expressions: pl.Expr, **columns: pl.Expr) -> Case:
    return replace(case, predictions=case.predictions.with_columns(*expressions, **columns))


def _ids(case: Case) -> list[str]:
    return [c for c in IDS if c in case.predictions.columns]


def _number_column(case: Case) -> str | None:
    columns = case.predictions.columns
    return next((c for c in ("value", "score") if c in columns and not _is_box(case)), None)


def _is_box(case: Case) -> bool:
    return bool({"box_x", "mask_counts", "keypoints_x"} & set(case.predictions.columns))


def _score_column(case: Case) -> str | None:
    return "score" if "score" in case.predictions.columns else None


def _word_column(case: Case) -> str | None:
    frame = case.predictions
    for column in ("label", "part"):
        if column in frame.columns and frame[column].drop_nulls().n_unique() > 1:
            return column
    return None


def _every(k: int, offset: int = 0) -> pl.Expr:
    """Select every k-th row: it follows no group."""
    return pl.int_range(pl.len()) % k == offset


def _of_group(case: Case, group: str = "A") -> pl.Series:
    """Mark the predictions of people of a group; of boxes, those that were drawn for them."""
    tone = case.dataset.attributes.filter(attribute="tone", value=group)["unit_id"]
    frame, people = case.predictions, case.dataset.instances
    if "instance_id" in frame.columns:
        return frame["instance_id"].is_in(tone.implode())
    of_group = people.filter(pl.col("instance_id").is_in(tone.implode()))
    if frame.height != people.height:
        ids = pl.concat([of_group["image_id"], of_group["instance_id"]])  # parts name faces
        return frame["image_id"].is_in(ids.implode())
    return people["instance_id"].is_in(tone.implode())  # boxes are in the order of people


# Ids


def rename_ids(case: Case, rename: Callable[[pl.Expr], pl.Expr]) -> Case:
    return _change(case, *(rename(pl.col(c)).alias(c) for c in _ids(case)))


def rename_half(case: Case) -> Case:
    """Half of the file is about another split."""
    name = _ids(case)[0]
    ids = case.predictions[name].unique(maintain_order=True)
    other = {k: f"other-{k}" for k in ids[: len(ids) // 2].to_list()}
    return _change(case, pl.col(_ids(case)).replace(other))


def number_ids(case: Case) -> Case:
    """Ids are numbers, and those of the predictions went through a float."""

    def digits(column: str, suffix: str = "") -> pl.Expr:
        number = pl.col(column).str.extract(r"(\d+)").cast(pl.Int64).cast(pl.String)
        return (number + suffix).alias(column)

    dataset = case.dataset
    columns = [c for c in ("instance_id", "image_id") if c in dataset.instances.columns]
    numbered = replace(
        dataset,
        instances=dataset.instances.with_columns(map(digits, columns)),
        attributes=dataset.attributes.with_columns(digits("unit_id")),
        images=dataset.images.with_columns(digits("image_id")) if dataset.images.height
        else dataset.images,
    )  # fmt: skip
    predictions = case.predictions.with_columns(digits(c, ".0") for c in _ids(case))
    return replace(case, dataset=numbered, predictions=predictions)


# Rows


def repeat_rows(case: Case, k: int) -> Case:
    """Write every k-th row twice."""
    frame = case.predictions
    return replace(case, predictions=pl.concat([frame, frame.filter(_every(k))]))


def answer_twice(case: Case) -> Case | None:
    """Every third row again, with the answer of somebody else."""
    names = [n for n in case.predictions.columns if n not in (*IDS, "model", "rank", "annotator")]
    other = case.predictions.with_columns(pl.col(names).shift(7).fill_null(strategy="backward"))
    return replace(case, predictions=pl.concat([case.predictions, other.filter(_every(3))]))


def lose_group(case: Case) -> Case:
    return replace(case, predictions=case.predictions.filter(~_of_group(case)))


def repeat_header(case: Case) -> Case:
    """A second file was appended with its header: a row of names of columns."""
    frame = case.predictions
    header = [n if t == pl.String else None for n, t in frame.schema.items()]
    row = pl.DataFrame([header], schema=frame.schema, orient="row")
    return replace(case, predictions=pl.concat([frame[:50], row, frame[50:]]))


# Answers


def answer_truth(case: Case) -> Case | None:
    """The truth stands where the answers should."""
    frame, people = case.predictions, case.dataset.instances
    if _is_box(case):
        columns = [
            c for c in (*BOX, "mask_counts", "keypoints_x", "keypoints_y") if c in frame.columns
        ]
        return replace(case, predictions=frame.with_columns(people[c].alias(c) for c in columns))
    target = case.options.get("target")
    column = "value" if "value" in frame.columns else _word_column(case)
    if "age_mix" in case.options:
        target = "age"
    if target is None or column is None or "label_map" in case.options:
        return None
    known = case.dataset.attributes.filter(attribute=target)
    truth = frame["instance_id"].replace_strict(known["unit_id"], known["value"])
    return _change(case, truth.cast(frame.schema[column]).alias(column))


def turn_classes(case: Case) -> Case:
    turned = dict(zip(CLASSES, (*CLASSES[1:], CLASSES[0]), strict=True))
    return _change(case, label=pl.col("label").replace(turned))


def reword(case: Case, reword: Callable[[pl.Expr], pl.Expr], rows: pl.Expr | None = None):
    column = _word_column(case)
    if column is None:
        return None
    rows = pl.lit(value=True) if rows is None else rows
    words = reword(pl.col(column))
    return _change(case, pl.when(rows).then(words).otherwise(pl.col(column)).alias(column))


def number_words(case: Case) -> Case | None:
    column = _word_column(case)
    if column is None:
        return None
    words = case.predictions[column].unique(maintain_order=True).to_list()
    return _change(case, pl.col(column).replace({w: str(k) for k, w in enumerate(words)}))


def rescale(case: Case, column: Callable[[Case], str | None], scale, rows=None) -> Case | None:
    name = column(case)
    if name is None or case.predictions[name].n_unique() == 1:
        return None
    rows = pl.lit(value=True) if rows is None else rows
    return _change(
        case, pl.when(rows).then(scale(pl.col(name))).otherwise(pl.col(name)).alias(name)
    )


def rescale_group(case: Case, factor: float) -> Case | None:
    return rescale(case, _number_column, lambda x: factor * x, pl.lit(_of_group(case)))


def reword_group(case: Case, words: Callable[[pl.Expr], pl.Expr]) -> Case | None:
    return reword(case, words, pl.lit(_of_group(case)))


def put(case: Case, column: Callable[[Case], str | None], value: object, rows=None) -> Case | None:
    """Put one value in the place of answers."""
    name = column(case)
    if name is None:
        return None
    rows = pl.lit(value=True) if rows is None else rows
    literal = pl.lit(value, dtype=case.predictions.schema[name])
    return _change(case, pl.when(rows).then(literal).otherwise(pl.col(name)).alias(name))


def put_embedding(case: Case, value: float) -> Case | None:
    if "embedding" not in case.predictions.columns:
        return None
    return _change(case, embedding=pl.lit([value] * 8, dtype=pl.List(pl.Float64)))


def corner_boxes(case: Case, rows: pl.Expr) -> Case | None:
    if "box_x" not in case.predictions.columns:
        return None
    x, y, w, h = (pl.col(c) for c in BOX)
    corners = {"box_w": x + w, "box_h": y + h}
    return _change(case, *(pl.when(rows).then(e).otherwise(pl.col(c)).alias(c)
                           for c, e in corners.items()))  # fmt: skip


def scale_boxes(case: Case, x: float, y: float, rows: pl.Expr) -> Case | None:
    if "box_x" in case.predictions.columns:
        names, factors = BOX, (x, y, x, y)
        scaled = [factor * pl.col(c) for c, factor in zip(names, factors, strict=True)]
    elif "keypoints_x" in case.predictions.columns:
        names, factors = ("keypoints_x", "keypoints_y"), (x, y)
        scaled = [
            pl.col(c).list.eval(pl.element() * factor)
            for c, factor in zip(names, factors, strict=True)
        ]
    else:
        return None
    pairs = zip(names, scaled, strict=True)
    return _change(case, *(pl.when(rows).then(e).otherwise(pl.col(c)).alias(c) for c, e in pairs))


def answer_another_task(case: Case, other: str) -> Case | None:
    """The predictions of another task about the same people."""
    donor = CASES[other][1](np.random.default_rng(5))
    if set(donor.predictions.columns) <= set(case.predictions.columns):
        return None
    return replace(case, predictions=donor.predictions)


THIRD, TENTH = _every(3), _every(10)
KINDS: dict[str, Damage] = {
    "ids in a folder": partial(rename_ids, rename=lambda c: pl.format("run/{}", c)),
    "ids with an extension": partial(rename_ids, rename=lambda c: pl.format("{}.png", c)),
    "ids without their extension": partial(
        rename_ids, rename=lambda c: c.str.replace(r"\.jpg$", "").str.replace("^p", "")
    ),
    "ids padded with zeros": partial(
        rename_ids, rename=lambda c: c.str.replace(r"(\d+)", "00$1")
    ),
    "ids in capitals": partial(rename_ids, rename=lambda c: c.str.to_uppercase()),
    "ids with a space": partial(rename_ids, rename=lambda c: pl.format("{} ", c)),
    "ids of another split": partial(rename_ids, rename=lambda c: pl.format("other-{}", c)),
    "half of the ids of another split": rename_half,
    "ids that went through a float": number_ids,
    "every row twice": partial(repeat_rows, k=1),
    "every third row twice": partial(repeat_rows, k=3),
    "a second answer of every third": answer_twice,
    "a group is missing": lose_group,
    "a header within the file": repeat_header,
    "truth as answers": answer_truth,
    "classes exchanged": lambda case: turn_classes(case) if _word_column(case) == "label" else None,
    "words in capitals": partial(reword, reword=lambda c: c.str.to_uppercase()),
    "words with spaces": partial(reword, reword=lambda c: pl.format(" {} ", c)),
    "words in quotes": partial(reword, reword=lambda c: pl.format("'{}'", c)),
    "words as numbers": number_words,
    "a group's words in capitals": partial(reword_group, words=lambda c: c.str.to_uppercase()),
    "a group's words in another language": partial(
        reword_group, words=lambda c: pl.format("{}in", c)
    ),
    "a third of the words in capitals": partial(
        reword, reword=lambda c: c.str.to_uppercase(), rows=THIRD
    ),
    "numbers in percent": partial(rescale, column=_number_column, scale=lambda c: 100 * c),
    "scores in percent": partial(rescale, column=_score_column, scale=lambda c: 100 * c),
    "scores 1 - p": partial(rescale, column=_score_column, scale=lambda c: 1 - c),
    "a group's numbers 12-fold": partial(rescale_group, factor=12.0),
    "a group's numbers in percent": partial(rescale_group, factor=100.0),
    "a third of the numbers 12-fold": partial(
        rescale, column=_number_column, scale=lambda c: 12 * c, rows=THIRD
    ),
    "a third of the numbers in percent": partial(
        rescale, column=_number_column, scale=lambda c: 100 * c, rows=THIRD
    ),
    "a third of the boxes as corners": partial(corner_boxes, rows=THIRD),
    "a tenth of the boxes as corners": partial(corner_boxes, rows=TENTH),
    "a third of the shapes as shares": partial(
        scale_boxes, x=1 / WIDTH, y=1 / HEIGHT, rows=THIRD
    ),
    "a third of the shapes at half size": partial(scale_boxes, x=0.5, y=0.5, rows=THIRD),
    "one number for all": partial(put, column=_number_column, value=0.5),
    "one word for all": partial(put, column=_word_column, value="guard"),
    "one vector for all": partial(put_embedding, value=0.3),
    "vectors of 0": partial(put_embedding, value=0.0),
    "no numbers": partial(put, column=_number_column, value=None),
    "no words": partial(put, column=_word_column, value=None),
    "no rows": lambda case: replace(case, predictions=case.predictions.clear()),
    "NaN for all": partial(put, column=_number_column, value=float("nan")),
    "NaN for a third": partial(put, column=_number_column, value=float("nan"), rows=THIRD),
    "infinity for a third": partial(put, column=_number_column, value=float("inf"), rows=THIRD),
    "NaN in the vectors": partial(put_embedding, value=float("nan")),
    **{
        f"{code:g} for a tenth of the numbers": partial(
            put, column=_number_column, value=code, rows=TENTH
        )
        for code in (-1.0, 0.0, 999.0)
    },
    **{
        f"{word!r} for a tenth of the words": partial(
            put, column=_word_column, value=word, rows=TENTH
        )
        for word in ("-1", "None", "*", "unknown", "")
    },
    **{
        f"the answers of {other}": partial(answer_another_task, other=other)
        for other in ("classification", "number", "detection", "keypoints")
    },
}  # fmt: skip
_ANY_WORDS = "no truth says which words are right"
_ANY_NUMBER = "a number of any unit, held against nothing"
_ANY_SCORE = "scores have no unit, and groups of people may honestly differ twelvefold"
_CLIPPED = "scores and estimates are often cut off at 0"
_ABSTAINS = "a model may answer that it does not know"
EXCEPTIONS: dict[str, dict[str, str]] = {
    "classification": {
        "one number for all": "a model may be equally sure of all; labels are as they were",
        "0 for a tenth of the numbers": "how sure a model is may be 0; labels are as they were",
    },
    "classification, scores alone": {
        "numbers in percent": "a threshold of 1 is within the scores, and not much worse than 100",
        "scores in percent": "as numbers in percent",
        "a group's numbers 12-fold": _ANY_SCORE,
        "a third of the numbers 12-fold": _ANY_SCORE,
    },
    "number": {
        "numbers in percent": _ANY_NUMBER,
        "0 for a tenth of the numbers": _ANY_NUMBER,
    },
    "counts": {"0 for a tenth of the numbers": "fewer successes are other counts"},
    "agreement": {"a group's words in another language": _ANY_WORDS},
    "label_association": {
        "classes exchanged": _ANY_WORDS,
        "a group's words in another language": _ANY_WORDS,
        "0 for a tenth of the numbers": "a label of confidence 0 was not given",
    },
    "text_to_image_retrieval": {
        "a third of the numbers 12-fold": _ANY_SCORE,
        "scores 1 - p": "no truth says which images should be found first",
    },
    "generated_images": {"the answers of classification": _ANY_WORDS},
    "counterfactual_pairs": dict.fromkeys(
        (
            "numbers in percent", "a group's numbers 12-fold", "a third of the numbers 12-fold",
            "a third of the numbers in percent", "0 for a tenth of the numbers",
            "the answers of classification",
        ),
        _ANY_NUMBER,
    ),
    "answers": {
        "classes exchanged": _ANY_WORDS,
        "a group's words in another language": _ANY_WORDS,
        "'None' for a tenth of the words": _ABSTAINS,
        "'unknown' for a tenth of the words": _ABSTAINS,
        "the answers of classification": _ANY_WORDS,
    },
    "face_verification, pairs": {
        "a group is missing": "which pairs are compared is a choice",
        "numbers in percent": "the threshold is set on the scores, in their unit",
        "scores in percent": "the threshold is set on the scores, in their unit",
        "a group's numbers 12-fold": _ANY_SCORE,
        "a third of the numbers 12-fold": _ANY_SCORE,
        "0 for a tenth of the numbers": _CLIPPED,
    },
    "identification, lists": {"a third of the numbers 12-fold": _ANY_SCORE},
}  # fmt: skip
"""By case: the kinds that nobody can tell from a sound file, and why."""

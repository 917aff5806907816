"""What a model gave, held to the table of predictions that it says it answers with."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import IsoluxError, TableError
from isolux.core.info import ModelInfo
from isolux.core.tables import (
    BOX_PREDICTIONS,
    EMBEDDINGS,
    IMAGE_PREDICTIONS,
    KEYPOINT_PREDICTIONS,
    LABEL_PREDICTIONS,
    MASK_PREDICTIONS,
    NUMBER_PREDICTIONS,
    Table,
    check,
    to_polars,
)
from isolux.models._images import build_image_table

PREDICTION_TABLES: dict[str, Table] = {
    "labels": LABEL_PREDICTIONS,
    "numbers": NUMBER_PREDICTIONS,
    "boxes": BOX_PREDICTIONS,
    "masks": MASK_PREDICTIONS,
    "keypoints": KEYPOINT_PREDICTIONS,
    "embeddings": EMBEDDINGS,
    "images": IMAGE_PREDICTIONS,
}
"""What a model may answer, and the table that this is."""

PERSON_PREDICTIONS = ("labels", "numbers", "embeddings")
"""Answers about each person; the others are about an image as a whole."""

_ID_COLUMNS = ("model", "instance_id", "image_id")  # whose answer it is: a predictor knows no ids
_SEE = "see isolux.models.Predictor"
_SHORT = {
    "labels": ", or a list of one text for each picture",
    "numbers": ", or a list or array of one number for each picture",
    "embeddings": ", or an array of one row for each picture",
    "images": ", or a list of one array [height, width, 3] of 8 bits for each picture",
}
_ONE_ROW_PREDICTIONS = ("numbers", "embeddings", "images")
_MAX_LISTED = 5
_POSITION_NOTE = "picture counts from 0 within one call"
_CONFIDENCE_TOLERANCE = 1e-6  # by which a sum of rounded probabilities passes 1


@runtime_checkable
class Predictor(Protocol):
    """A loaded model: pictures in, a table out.

    The same pictures get the same answers, however they are parted into calls. Some attributes
    may say more of it:

    - ``predicts``: the kind of its answers, where its family has several;
    - ``identity``: a mapping of what moves an answer (the hash of the weights, preprocessing,
      prompts), as JSON has it: another identity never meets an earlier answer;
    - ``notes``: sentences for the record and the report;
    - ``prepare(picture)``: what threads may do with each picture ahead of the model. The
      predictor is then called with what ``prepare`` gave;
    - ``by_box``: true of a model of poses that is shown people: ``prepare(picture, boxes)`` gets
      the boxes x, y, w, h of the dataset's people in the picture;
    - ``by_class``: likewise of a model that is asked for what is there: ``prepare(picture,
      classes)`` gets the classes of those people.
    """

    def __call__(self, pictures: Sequence[npt.NDArray[np.uint8]]) -> pl.DataFrame:
        """Answer for pictures ``[height, width, 3]`` of 8 bits, RGB."""
        ...


def find_prediction_type(predictor: object, model_info: ModelInfo) -> str:
    """Return the kind of a model's answers: its own word, else its family's."""
    prediction_type = getattr(predictor, "predicts", None) or model_info.predicts
    if prediction_type not in PREDICTION_TABLES:
        raise IsoluxError(
            "the model does not say what it answers",
            expected="predicts, one of " + ", ".join(PREDICTION_TABLES),
            found=repr(prediction_type),
            hint=_SEE,
        )
    return str(prediction_type)


def predict_and_check_table(
    predictor: Predictor,
    model_info: ModelInfo,
    images: Sequence[npt.NDArray[np.uint8]],
    ids: Sequence[str],
    *,
    model: str,
) -> pl.DataFrame:
    """Ask a model, and hold what it gives to what it says that it answers."""
    prediction_type = find_prediction_type(predictor, model_info)
    table = PREDICTION_TABLES[prediction_type]
    rows = _convert_outputs_to_frame(predictor(images), len(images), prediction_type, model)
    if prediction_type == "labels" and "rank" not in rows.columns and "picture" in rows.columns:
        rows = rows.with_columns(rank=pl.int_range(1, pl.len() + 1).over("picture"))
    _check_columns_and_image_indices(rows, table, prediction_type, len(images), model)
    if prediction_type in _ONE_ROW_PREDICTIONS:
        check_one_answer_per_image(rows.select("picture"), len(images), prediction_type, model)
    id_column = next(name for name in table.schema if name in _ID_COLUMNS[1:])
    row_ids = pl.Series(list(ids), dtype=pl.String).gather(rows["picture"].cast(pl.Int64))
    named_rows = rows.drop("picture").with_columns(row_ids.alias(id_column), model=pl.lit(model))
    checked = check(named_rows, table, source=f"the answers of {model!r}")
    if prediction_type == "embeddings":
        _check_embeddings(checked, model)
    if prediction_type != "labels":
        return checked
    bounded = _check_and_clip_confidences(checked, model)
    question_columns = ["question"] if "question" in rows.columns else []
    labelled_rows = rows.select("picture", *question_columns).with_columns(checked["label"])
    for question_rows in (
        labelled_rows.partition_by(question_columns) if question_columns else [labelled_rows]
    ):
        check_one_answer_per_image(
            question_rows.select("picture", "label"), len(images), prediction_type, model
        )
    ranked = checked.select("label", "rank", "score")
    check_labels_sorted_by_score(
        rows.select("picture", *question_columns).hstack(ranked), question_columns, model
    )
    return bounded


def _convert_outputs_to_frame(
    outputs: object, n_images: int, prediction_type: str, model: str
) -> pl.DataFrame:
    """Take a frame, or one label, number, vector or picture for each picture."""
    columns = _convert_sequence_to_columns(outputs, prediction_type)
    if columns is None:
        try:
            return to_polars(outputs)
        except (TypeError, TableError) as error:
            raise TableError(
                f"the model {model!r} does not answer with {prediction_type}",
                expected="a frame with a row for each answer" + _SHORT.get(prediction_type, ""),
                found=_describe_output_type(outputs, prediction_type),
                hint=_SEE,
            ) from error
    height = len(next(iter(columns.values())))
    if height != n_images:
        raise TableError(
            f"the model {model!r} does not answer once for each picture",
            expected=f"{n_images} answers for {n_images} pictures",
            found=f"{height}",
            hint=_SEE,
        )
    return pl.DataFrame({"picture": pl.int_range(height, eager=True), **columns})


def _convert_sequence_to_columns(
    outputs: object, prediction_type: str
) -> dict[str, pl.Series] | None:
    """Convert a list or an array with one answer for each picture; None: it is neither."""
    elements = list(outputs) if isinstance(outputs, list | tuple) else None
    if isinstance(outputs, np.ndarray):
        if prediction_type == "embeddings" and outputs.ndim == 2:
            vectors = outputs.astype(np.float32).tolist()
            return {"embedding": pl.Series(vectors, dtype=pl.List(pl.Float32))}
        if prediction_type == "images" and outputs.ndim == 4:
            elements = list(outputs)
        if prediction_type == "numbers" and outputs.size == len(outputs):
            elements = outputs.ravel().tolist()
    if elements is None:
        return None
    if prediction_type == "images" and all(
        image is None or isinstance(image, np.ndarray) for image in elements
    ):
        return {"png": build_image_table(elements)["png"]}
    if prediction_type == "labels" and all(isinstance(label, str) for label in elements):
        labels = pl.Series(elements, dtype=pl.String)
        return {"label": labels, "score": pl.Series([None] * len(labels), dtype=pl.Float64)}
    if prediction_type == "numbers" and all(
        number is None or (isinstance(number, Real) and not isinstance(number, bool))
        for number in elements
    ):
        numbers = [None if number is None else float(number) for number in elements]
        return {"value": pl.Series(numbers, dtype=pl.Float64)}
    return None


def _describe_output_type(outputs: object, prediction_type: str) -> str:
    """Name a type, and of a list the first element of a type that is not expected."""
    if isinstance(outputs, list | tuple):
        expected_type = {"labels": str, "images": np.ndarray}.get(prediction_type, Real)
        first_other = next(
            (element for element in outputs if not isinstance(element, expected_type)), None
        )
        return f"{type(outputs).__name__}, with {type(first_other).__name__}"
    return type(outputs).__name__


def _check_columns_and_image_indices(
    rows: pl.DataFrame, table: Table, prediction_type: str, n_images: int, model: str
) -> None:
    columns = (c.name for c in table.columns if not c.optional and c.name not in _ID_COLUMNS)
    required_columns = {"picture", *columns}
    if missing := sorted(required_columns - set(rows.columns)):
        raise TableError(
            f"the model {model!r} does not answer with {prediction_type}",
            expected=", ".join(sorted(required_columns)),
            found=(", ".join(rows.columns) or "no columns") + f"; without {', '.join(missing)}",
            hint=_SEE,
        )
    if not rows["picture"].dtype.is_integer() and not rows.is_empty():
        raise TableError(
            f"the model {model!r} does not say which picture an answer is about",
            expected="picture, the position in the list: whole numbers",
            found=str(rows["picture"].dtype),
        )
    unexpected_rows = rows.filter(
        ~pl.col("picture").is_between(0, n_images - 1).fill_null(value=False)
    )
    if not unexpected_rows.is_empty():
        raise TableError(
            f"the model {model!r} answers for a picture that it was not given",
            expected=f"picture from 0 to {n_images - 1}",
            found=str(unexpected_rows["picture"][0]),
        )


def _check_embeddings(rows: pl.DataFrame, model: str) -> None:
    """Refuse vectors that nothing can be compared with: hours later an audit would."""
    vectors = rows["embedding"].drop_nulls()
    sizes = vectors.list.len().unique().sort().to_list()
    if len(sizes) > 1 or 0 in sizes:
        raise TableError(
            f"the model {model!r} does not give vectors of one length",
            expected="as many numbers for each picture",
            found=", ".join(map(str, sizes)),
        )
    numbers = vectors.explode()
    invalid_numbers = numbers.filter(~numbers.is_finite().fill_null(value=False))
    if len(invalid_numbers):
        raise TableError(
            f"the model {model!r} gives an embedding that cannot be used",
            expected="finite numbers",
            found=str(invalid_numbers[0]),
            hint="a network in half precision may overflow: another precision, or another input",
        )


def _check_and_clip_confidences(labels: pl.DataFrame, model: str) -> pl.DataFrame:
    """Refuse scores of labels that are no confidences: logits would be read as such."""
    out_of_range = labels.filter(
        ~pl.col("score").is_between(-_CONFIDENCE_TOLERANCE, 1 + _CONFIDENCE_TOLERANCE)
    )
    if not out_of_range.is_empty():
        raise TableError(
            f"the model {model!r} gives a label a score that is not a confidence",
            expected="0 to 1, higher is surer",
            found=f"{out_of_range['score'][0]:g} for {out_of_range['label'][0]!r}",
            hint="turn logits into probabilities (softmax) before they are given",
        )
    return labels.with_columns(pl.col("score").clip(0, 1))


def check_one_answer_per_image(
    rows: pl.DataFrame, n_images: int, prediction_type: str, model: str
) -> None:
    """Refuse answers that leave pictures out, or speak of one more often than they can mean.

    Examples
    --------
    >>> rows = pl.DataFrame({"picture": [0, 1], "label": ["day", None]})
    >>> check_one_answer_per_image(rows, 2, "labels", "net")
    >>> check_one_answer_per_image(rows, 3, "labels", "net")
    Traceback (most recent call last):
        ...
    isolux.core.errors.TableError: the model 'net' gives no row for 1 of 3 pictures
      expected: a row of labels for each picture
      found: none for picture 2 (picture counts from 0 within one call)
      what to do: answer for every picture; a row whose label is null says that there is no answer
    """
    if prediction_type not in ("labels", *_ONE_ROW_PREDICTIONS):
        return
    if prediction_type == "labels":
        _check_no_empty_labels(rows, model)
    missing_images = sorted(set(range(n_images)) - set(rows["picture"].to_list()))
    if missing_images:
        advice_by_type = {
            "labels": "a row whose label is null says that there is no answer",
            "numbers": "a row whose value is null says that there is no answer",
            "embeddings": "raise an error for a picture that cannot be embedded",
            "images": "None in its place says that there is no answer",
        }
        raise TableError(
            f"the model {model!r} gives no row for {len(missing_images):,}"
            f" of {n_images:,} pictures",
            expected=f"a row of {prediction_type} for each picture",
            found=f"none for picture {_format_image_positions(missing_images)} ({_POSITION_NOTE})",
            hint=f"answer for every picture; {advice_by_type[prediction_type]}",
        )
    _check_no_repeated_answers(rows, prediction_type, model)


def check_labels_sorted_by_score(
    rows: pl.DataFrame, question_columns: list[str], model: str
) -> None:
    """Refuse labels of one picture that do not fall in confidence: the first counts as the answer.

    Examples
    --------
    >>> rows = pl.DataFrame({"picture": 0, "label": ["dog", "cat"], "rank": [1, 2]})
    >>> check_labels_sorted_by_score(rows.with_columns(score=pl.Series([0.9, 0.1])), [], "net")
    >>> check_labels_sorted_by_score(rows.with_columns(score=pl.Series([0.1, 0.9])), [], "net")
    Traceback (most recent call last):
        ...
    isolux.core.errors.TableError: the model 'net' gives a less confident label first
      expected: the best label of a picture first
      found: 'dog' (0.1) before 'cat' (0.9) for picture 0 (picture counts from 0 within one call)
      what to do: sort each picture's rows by their score, highest first
    """
    keys = ["picture", *question_columns]
    scored = rows.filter(pl.col("score").is_not_null())  # one without a score says nothing of order
    ranked = scored.sort(*keys, "rank", maintain_order=True).with_columns(
        before=pl.col("score").shift(1).over(keys), other=pl.col("label").shift(1).over(keys)
    )
    unsorted_rows = ranked.filter(pl.col("score") > pl.col("before"))
    if not unsorted_rows.is_empty():
        example = unsorted_rows.row(0, named=True)
        raise TableError(
            f"the model {model!r} gives a less confident label first",
            expected="the best label of a picture first",
            found=f"{example['other']!r} ({example['before']:g}) before {example['label']!r}"
            f" ({example['score']:g}) for picture {example['picture']} ({_POSITION_NOTE})",
            hint="sort each picture's rows by their score, highest first",
        )


def _check_no_repeated_answers(rows: pl.DataFrame, prediction_type: str, model: str) -> None:
    counts = rows.group_by("picture").agg(pl.len())
    if prediction_type == "labels":
        label = pl.col("label")
        counts = rows.group_by("picture").agg(pl.len(), distinct=label.drop_nulls().n_unique())
        repeated_rows = counts.filter((pl.col("len") > 1) & (pl.col("len") > pl.col("distinct")))
        expected = "each label once for a picture; a row without a label stands alone"
    else:
        repeated_rows = counts.filter(pl.col("len") > 1)
        expected = "one row for each picture"
    if not repeated_rows.is_empty():
        images = sorted(repeated_rows["picture"].to_list())
        n_rows = repeated_rows.sort("picture")["len"][0]
        raise TableError(
            f"the model {model!r} answers more than once for a picture ({len(images):,} in all)",
            expected=expected,
            found=f"{n_rows:,} rows for picture {images[0]}"
            + (f"; also for {_format_image_positions(images[1:])}" if images[1:] else "")
            + f" ({_POSITION_NOTE})",
            hint="picture is the position in the list that the model was given",
        )


def _check_no_empty_labels(rows: pl.DataFrame, model: str) -> None:
    images_with_empty_label = rows.filter(pl.col("label").str.strip_chars() == "")[
        "picture"
    ].to_list()
    if images_with_empty_label:
        positions_text = _format_image_positions(sorted(set(images_with_empty_label)))
        raise TableError(
            f"the model {model!r} answers with an empty label",
            expected="the name of a class",
            found=f"an empty text for picture {positions_text} ({_POSITION_NOTE})",
            hint="where there is no answer, give a frame with a row whose label is null",
        )


def _format_image_positions(image_positions: list[int]) -> str:
    remainder = (
        f" and {len(image_positions) - _MAX_LISTED:,} more"
        if len(image_positions) > _MAX_LISTED
        else ""
    )
    return ", ".join(map(str, image_positions[:_MAX_LISTED])) + remainder

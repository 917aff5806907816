"""What FHIBE's evaluation API writes: ``model_outputs.json``, and its scores by picture.

An object of a picture's path and what the model gave for it: boxes of people (``bboxes``) or faces
(``detections``) as corners, embeddings, or a number (``lpips_scores.json``).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.frames import open_bytes
from isolux.io.image_tables import FHIBE_API, UNIT_VALUES
from isolux.io.json_values import decode
from isolux.predictions._detections import detections, model_name
from isolux.predictions._seen import Seen
from isolux.vocabulary.errors import TableError
from isolux.vocabulary.info import FormatInfo
from isolux.vocabulary.tables import EMBEDDINGS, check

INFO = FormatInfo(
    title="FHIBE's evaluation API",
    summary="model_outputs.json (boxes, faces, embeddings) and scores such as lpips_scores.json.",
    references=(FHIBE_API,),
    assumptions=(
        "pictures are named by their files, less main_, faces_crop_and_align_ or faces_crop_only_",
        "boxes are left, top, right, bottom in pixels",
    ),
    suffixes=(".json",),
)
_FOLDERS = ("main_", "faces_crop_and_align_", "faces_crop_only_")
_METRIC = re.compile(r"(lpips|psnr|ssim|curricular_face)", re.IGNORECASE)
_NAMES = {"curricular_face": "identity_cosine"}
_BOXES = ("bboxes", "detections")


def read(path: str | Path, *, model: str | None = None, metric: str | None = None) -> pl.DataFrame:
    r"""Read a file of the API.

    Parameters
    ----------
    path : str or Path
        ``model_outputs.json``, or a file of numbers by picture.
    model : str, optional
        The model's name; not given: that of the folder, as the API names it after the model.
    metric : str, optional
        What numbers by picture are; not given: as the file's name says (``lpips_scores.json``).

    Returns
    -------
    polars.DataFrame
        Table ``BOX_PREDICTIONS``, ``EMBEDDINGS`` or ``UNIT_VALUES``.

    Raises
    ------
    FileError, TableError
        No such file or no JSON; outputs of another kind (masks and poses are not read), a box that
        is none, more or fewer scores than boxes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "model_outputs.json"
    ...     _ = file.write_text('{"a/main_7.png": {"bboxes": [[4, 5, 24, 35]], "scores": [0.9]}}')
    ...     read(file, model="net").row(0)
    ('net', '7', None, 4.0, 5.0, 20.0, 30.0, 0.9)
    """
    where = str(path)
    with open_bytes(path) as stream:
        found = decode(stream.read(), dict[str, Any], where)
    named = model or _model(Path(path))
    first = next(iter(found.values()), None)
    if isinstance(first, int | float):
        return _values(found, metric or _metric(Path(path)), named, where)
    if isinstance(first, dict) and "embeddings" in first:
        return _embeddings(found, named, where)
    if isinstance(first, dict) and any(name in first for name in _BOXES):
        return detections(_boxes(found, where), where, kind="boxes", model=named)
    kinds = ", ".join(first) if isinstance(first, dict) else type(first).__name__
    raise TableError(
        "these outputs of FHIBE's API are not read",
        expected="bboxes, detections, embeddings, or a number for each picture",
        found=kinds[:80] or "nothing",
        where=where,
    )


def _id(picture: str) -> str:
    """Name a picture as FHIBE's tables do, by its file less what the API puts before the id."""
    stem = re.sub(r"^.*[/\\]", "", picture)
    stem = re.sub(r"\.[^.]*$", "", stem)
    return next((stem.removeprefix(one) for one in _FOLDERS if stem.startswith(one)), stem)


def _model(path: Path) -> str:
    folder = path.expanduser().resolve().parent.name
    return folder if path.name == "model_outputs.json" and folder else model_name(path)


def _metric(path: Path) -> str:
    told = _METRIC.search(path.name)
    if told is None:
        raise TableError(
            "nothing says what these numbers are",
            expected="a name such as lpips_scores.json",
            found=repr(path.name),
            where=str(path),
            hint="name it: --prediction-option metric=lpips",
        )
    word = told[1].lower()
    return _NAMES.get(word, word)


def _values(found: dict[str, Any], metric: str, model: str, where: str) -> pl.DataFrame:
    for picture, number in found.items():
        if isinstance(number, bool) or not isinstance(number, int | float | None):
            raise TableError(
                "a score is not a number",
                expected="a number for each picture",
                found=repr(number)[:60],
                where=f"{where}, {picture}",
            )
    frame = pl.DataFrame(
        {"instance_id": [_id(one) for one in found], "value": list(found.values())},
        schema={"instance_id": pl.String, "value": pl.Float64},
        strict=False,
    ).with_columns(model=pl.lit(model), metric=pl.lit(metric))
    return check(frame.select(UNIT_VALUES.schema.keys()), UNIT_VALUES, where=where)


def _embeddings(found: dict[str, Any], model: str, where: str) -> pl.DataFrame:
    vectors = [one.get("embeddings") if isinstance(one, dict) else None for one in found.values()]
    flat = [v[0] if v and isinstance(v[0], list) else v for v in vectors]
    try:
        column = pl.Series("embedding", flat, dtype=pl.List(pl.Float32))
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise TableError(
            "an embedding is not a list of numbers",
            expected="numbers",
            found=str(error)[:80],
            where=where,
        ) from error
    frame = pl.DataFrame([pl.Series("instance_id", [_id(one) for one in found]), column])
    named = frame.with_columns(model=pl.lit(model)).select(EMBEDDINGS.schema.keys())
    return check(named, EMBEDDINGS, where=where)


def _boxes(found: dict[str, Any], where: str) -> pl.DataFrame:
    rows: list[tuple[str, str | None, float, float, float, float, float]] = []
    for picture, given in found.items():
        at = f"{where}, {picture}"
        if not isinstance(given, dict):
            raise TableError(
                "a picture's outputs are not an object",
                expected="bboxes and scores",
                found=repr(given)[:60],
                where=at,
            )
        boxes: list[Any] = next((given[name] for name in _BOXES if name in given), [])
        boxes = boxes if isinstance(boxes, list) else [boxes]
        scores, labels = given.get("scores", []), given.get("labels") or [None] * len(boxes)
        if not isinstance(scores, list) or not isinstance(labels, list):
            raise TableError(
                "scores or labels are not lists",
                expected="one for each box",
                found=f"{scores} and {labels}"[:80],
                where=at,
            )
        if not len(boxes) == len(scores) == len(labels):
            raise TableError(
                "there are more or fewer scores or labels than boxes",
                expected=f"{len(boxes)} of each",
                where=at,
                found=f"{len(scores)} and {len(labels)}",
            )
        for box, score, label in zip(boxes, scores, labels, strict=True):
            number = score[0] if isinstance(score, list) and score else score
            try:
                left, top, right, bottom = map(float, box)
                word = None if label is None else str(label)
                rows.append(
                    (_id(picture), word, left, top, right - left, bottom - top, float(number))
                )
            except (TypeError, ValueError) as error:
                raise TableError(
                    "a box is not four numbers with a score",
                    expected="[left, top, right, bottom] and a number",
                    found=f"{box} and {score}"[:80],
                    where=at,
                ) from error
    sides = dict.fromkeys(("box_x", "box_y", "box_w", "box_h", "score"), pl.Float64)
    return pl.DataFrame(
        rows, schema={"image_id": pl.String, "label": pl.String, **sides}, orient="row"
    )


def misfit(seen: Seen) -> str | None:
    """Say why this is not one of the API's files, or return None where it is.

    Examples
    --------
    >>> misfit(Seen(Path("model_outputs.json"), "file", b'{"a/main_7.png": {"bboxes": []}}'))
    >>> misfit(Seen(Path("net.json"), "file", b'[{"image_id": 7}]'))
    'it is not an object of pictures'
    """
    pictures = re.match(rb'\s*\{\s*"[^"]*\.(png|jpe?g)"\s*:', seen.head, re.IGNORECASE)
    return None if pictures else "it is not an object of pictures"

"""What FHIBE's evaluation API writes: ``model_outputs.json``, and its scores by picture.

An object of a picture's path and what the model gave for it: boxes of people (``bboxes``) or faces
(``detections``) as corners, embeddings, or a number (``lpips_scores.json``).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.errors import TableError
from isolux.core.info import FormatInfo
from isolux.core.tables import EMBEDDINGS, check
from isolux.io.frames import open_bytes
from isolux.io.image_tables import FHIBE_API, UNIT_VALUES
from isolux.io.json_values import decode_json
from isolux.predictions._detections import build_detections, model_name_from_path
from isolux.predictions._file_probe import FileProbe

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
_NAME_PREFIXES = ("main_", "faces_crop_and_align_", "faces_crop_only_")
_METRIC_NAME = re.compile(r"(lpips|psnr|ssim|curricular_face)", re.IGNORECASE)
_METRIC_BY_WORD = {"curricular_face": "identity_cosine"}
_BOX_FIELDS = ("bboxes", "detections")
_OUTPUT_FIELDS = b"bboxes|detections|embeddings|masks|keypoints"


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
    source = str(path)
    with open_bytes(path) as stream:
        outputs = decode_json(stream.read(), dict[str, Any], source)
    model_label = model or _choose_model_name(Path(path))
    first = next(iter(outputs.values()), None)
    if isinstance(first, int | float):
        return _read_values(outputs, metric or _choose_metric(Path(path)), model_label, source)
    if isinstance(first, dict) and "embeddings" in first:
        return _read_embeddings(outputs, model_label, source)
    if isinstance(first, dict) and any(name in first for name in _BOX_FIELDS):
        return build_detections(
            _read_boxes(outputs, source), source, detection_kind="boxes", model=model_label
        )
    first_fields = ", ".join(first) if isinstance(first, dict) else type(first).__name__
    raise TableError(
        "these outputs of FHIBE's API are not read",
        expected="bboxes, detections, embeddings, or a number for each picture",
        found=first_fields[:80] or "nothing",
        where=source,
    )


def _image_id_from_path(picture: str) -> str:
    """Name a picture as FHIBE's tables do, by its file less what the API puts before the id."""
    stem = re.sub(r"^.*[/\\]", "", picture)
    stem = re.sub(r"\.[^.]*$", "", stem)
    return next(
        (stem.removeprefix(prefix) for prefix in _NAME_PREFIXES if stem.startswith(prefix)), stem
    )


def _choose_model_name(path: Path) -> str:
    folder = path.expanduser().resolve().parent.name
    return folder if path.name == "model_outputs.json" and folder else model_name_from_path(path)


def _choose_metric(path: Path) -> str:
    name_match = _METRIC_NAME.search(path.name)
    if name_match is None:
        raise TableError(
            "nothing says what these numbers are",
            expected="a name such as lpips_scores.json",
            found=repr(path.name),
            where=str(path),
            hint="name it: --prediction-option metric=lpips",
        )
    word = name_match[1].lower()
    return _METRIC_BY_WORD.get(word, word)


def _read_values(outputs: dict[str, Any], metric: str, model: str, source: str) -> pl.DataFrame:
    for picture, number in outputs.items():
        if isinstance(number, bool) or not isinstance(number, int | float | None):
            raise TableError(
                "a score is not a number",
                expected="a number for each picture",
                found=repr(number)[:60],
                where=f"{source}, {picture}",
            )
    frame = pl.DataFrame(
        {
            "instance_id": [_image_id_from_path(image_path) for image_path in outputs],
            "value": list(outputs.values()),
        },
        schema={"instance_id": pl.String, "value": pl.Float64},
        strict=False,
    ).with_columns(model=pl.lit(model), metric=pl.lit(metric))
    return check(frame.select(UNIT_VALUES.schema.keys()), UNIT_VALUES, source=source)


def _read_embeddings(outputs: dict[str, Any], model: str, source: str) -> pl.DataFrame:
    vectors = [
        output.get("embeddings") if isinstance(output, dict) else None
        for output in outputs.values()
    ]
    flat = [v[0] if v and isinstance(v[0], list) else v for v in vectors]
    try:
        column = pl.Series("embedding", flat, dtype=pl.List(pl.Float32))
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise TableError(
            "an embedding is not a list of numbers",
            expected="numbers",
            found=str(error)[:80],
            where=source,
        ) from error
    frame = pl.DataFrame(
        [pl.Series("instance_id", [_image_id_from_path(output) for output in outputs]), column]
    )
    embedding_rows = frame.with_columns(model=pl.lit(model)).select(EMBEDDINGS.schema.keys())
    return check(embedding_rows, EMBEDDINGS, source=source)


def _read_boxes(outputs: dict[str, Any], source: str) -> pl.DataFrame:
    rows: list[tuple[str, str | None, float, float, float, float, float]] = []
    for picture, output in outputs.items():
        location = f"{source}, {picture}"
        if not isinstance(output, dict):
            raise TableError(
                "a picture's outputs are not an object",
                expected="bboxes and scores",
                found=repr(output)[:60],
                where=location,
            )
        boxes: list[Any] = next((output[name] for name in _BOX_FIELDS if name in output), [])
        boxes = boxes if isinstance(boxes, list) else [boxes]
        scores, labels = output.get("scores", []), output.get("labels") or [None] * len(boxes)
        if not isinstance(scores, list) or not isinstance(labels, list):
            raise TableError(
                "scores or labels are not lists",
                expected="one for each box",
                found=f"{scores} and {labels}"[:80],
                where=location,
            )
        if not len(boxes) == len(scores) == len(labels):
            raise TableError(
                "there are more or fewer scores or labels than boxes",
                expected=f"{len(boxes)} of each",
                where=location,
                found=f"{len(scores)} and {len(labels)}",
            )
        for box, score, label in zip(boxes, scores, labels, strict=True):
            number = score[0] if isinstance(score, list) and score else score
            try:
                x_min, top, right, bottom = map(float, box)
                word = None if label is None else str(label)
                rows.append(
                    (
                        _image_id_from_path(picture),
                        word,
                        x_min,
                        top,
                        right - x_min,
                        bottom - top,
                        float(number),
                    )
                )
            except (TypeError, ValueError) as error:
                raise TableError(
                    "a box is not four numbers with a score",
                    expected="[left, top, right, bottom] and a number",
                    found=f"{box} and {score}"[:80],
                    where=location,
                ) from error
    number_schema = dict.fromkeys(("box_x", "box_y", "box_w", "box_h", "score"), pl.Float64)
    return pl.DataFrame(
        rows, schema={"image_id": pl.String, "label": pl.String, **number_schema}, orient="row"
    )


def mismatch(probe: FileProbe) -> str | None:
    """Say why this is not one of the API's files, or return None where it is.

    Examples
    --------
    >>> mismatch(FileProbe(Path("model_outputs.json"), "file", b'{"a/main_7.png": {"bboxes": []}}'))
    >>> mismatch(FileProbe(Path("net.json"), "file", b'[{"image_id": 7}]'))
    'it is not an object of pictures'
    """
    image_match = re.match(
        rb'\s*\{\s*"[^"]*\.(png|jpe?g)"\s*:\s*([-\d]|\{[^{}]*"(%s)")' % _OUTPUT_FIELDS,
        probe.head,
        re.IGNORECASE,
    )
    if image_match:
        return None
    return "it is not an object of pictures"

"""Detections of a model in a FiftyOne export: a field of the samples, beside the truth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from isolux.core import citations
from isolux.core.errors import TableError, format_location, refuse_unknown_names
from isolux.core.info import FormatInfo
from isolux.io.frames import open_bytes
from isolux.io.json_values import decode_json
from isolux.predictions._detections import BOX, build_detections, model_name_from_path
from isolux.predictions._file_probe import FileProbe

INFO = FormatInfo(
    title="FiftyOne",
    summary="samples.json of a FiftyOneDataset whose samples hold a model's Detections in a field.",
    references=(citations.FIFTYONE,),
    assumptions=("bounding_box is left, upper, width and height, in shares of the picture",),
    suffixes=(".json",),
)


class _FiftyonePredictionFile(msgspec.Struct):
    samples: list[dict[str, Any]]


def read(path: str | Path, *, model: str | None = None, field: str = "predictions") -> pl.DataFrame:
    """Read detections.

    Parameters
    ----------
    path : str or Path
        ``samples.json``.
    model : str, optional
        The model's name; not given: the file's.
    field : str
        The samples' field of Detections.

    Returns
    -------
    polars.DataFrame
        Table ``BOX_PREDICTIONS``: pixels, ``score`` is ``confidence``. Pictures are called by
        their files, or by the whole path where two files have the same name.

    Raises
    ------
    FileError, TableError, UnknownNameError
        No such file or no JSON; a detection without a box, or in a picture of unknown size, with
        the sample; no such field.

    Examples
    --------
    >>> import json, tempfile
    >>> box = {"label": "person", "bounding_box": [0.25, 0, 0.5, 1], "confidence": 0.9}
    >>> size = {"width": 8, "height": 6}
    >>> field = {"_cls": "Detections", "detections": [box]}
    >>> sample = {"filepath": "data/1.jpg", "metadata": size, "predictions": field}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "samples.json"
    ...     _ = file.write_text(json.dumps({"samples": [sample]}))
    ...     read(file, model="net").row(0)
    ('net', '1.jpg', 'person', 2.0, 0.0, 4.0, 6.0, 0.9)
    """
    source = str(path)
    with open_bytes(path) as stream:
        samples = decode_json(stream.read(), _FiftyonePredictionFile, source).samples
    names_of_fields = {
        name
        for sample in samples
        for name, content in sample.items()
        if _list_detections(content) is not None
    }
    refuse_unknown_names("field of Detections", [field], names_of_fields, where=source)
    for number, sample in enumerate(samples, start=1):
        if sample.get(field) is not None and _list_detections(sample[field]) is None:
            raise TableError(
                "a sample's field holds no Detections",
                expected='{"_cls": "Detections", "detections": […]}, or null',
                found=repr(sample[field])[:80],
                where=format_location(source, number, field),
            )
    paths = [str(sample.get("filepath")).replace("\\", "/") for sample in samples]
    names = [text.rpartition("/")[2] for text in paths]
    image_ids = names if len(set(names)) == len(names) else paths
    rows = [
        (image_id, *_read_detection(detection, sample, format_location(source, number, field)))
        for number, (image_id, sample) in enumerate(zip(image_ids, samples, strict=True), start=1)
        for detection in _list_detections(sample.get(field)) or ()
    ]
    number_schema = dict.fromkeys((*BOX, "score"), pl.Float64)
    schema = {"image_id": pl.String, "label": pl.String, **number_schema}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return build_detections(
        frame, source, detection_kind="boxes", model=model or model_name_from_path(path)
    )


def _list_detections(content: Any) -> list[Any] | None:
    """List what a field holds, empty where a picture has nothing; None: it is no Detections."""
    detections = content.get("detections") if isinstance(content, dict) else None
    return detections if isinstance(detections, list) else None


def _read_detection(
    detection: Any, sample: dict[str, Any], location: str | None
) -> tuple[str | None, float, float, float, float, float | None]:
    """Give label, box in pixels and confidence."""
    try:
        size = sample["metadata"]["width"], sample["metadata"]["height"]
        edges = zip(detection["bounding_box"], size * 2, strict=True)
        x, y, width, height = (float(share) * float(pixels) for share, pixels in edges)
        label, confidence = detection.get("label"), detection.get("confidence")
        score = None if confidence is None else float(confidence)
    except (KeyError, TypeError, ValueError) as error:
        raise TableError(
            "a detection has no box, no number, or no size of its picture",
            expected="bounding_box: four shares; confidence: a number; metadata: width and height",
            found=str(detection)[:80],
            where=location,
            hint="sizes: dataset.compute_metadata() in FiftyOne, then export again",
        ) from error
    return None if label is None else str(label), x, y, width, height, score


def mismatch(probe: FileProbe) -> str | None:
    """Say why this is no export of FiftyOne, or return None where it is.

    Examples
    --------
    >>> mismatch(FileProbe(Path("samples.json"), "file", b'{"samples": [{"filepath": "1.jpg"}]}'))
    >>> mismatch(FileProbe(Path("net.json"), "file", b'[{"image_id": 7}]'))
    'it has no samples'
    """
    is_export = re.match(rb'\s*\{\s*"samples"\s*:', probe.head)
    return None if is_export else "it has no samples"

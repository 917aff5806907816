"""Captions in COCO's JSON: a list of image_id and caption, or an annotation file that holds one.

A captioner hands in results; people's own captions stand in ``captions_*.json``. Either is about
images: an audit gives an image's caption to everyone whom the image shows. Chen et al. (2015).
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import polars as pl

from isolux.core.errors import TableError
from isolux.core.info import FormatInfo, Reference
from isolux.core.tables import LABEL_PREDICTIONS
from isolux.io.frames import open_bytes
from isolux.io.ids import read_ids
from isolux.io.json_values import decode_json, format_whole_ids
from isolux.predictions._detections import model_name_from_path
from isolux.predictions._file_probe import FileProbe

INFO = FormatInfo(
    title="COCO captions",
    summary="A JSON list (or one under annotations) of image_id and caption: a captioner's results,"
    " or people's captions.",
    references=(
        Reference(
            key="coco-captions",
            citation="Chen, X., Fang, H., Lin, T.-Y., Vedantam, R., Gupta, S., Dollár, P., &"
            " Zitnick, C. L. (2015). Microsoft COCO Captions: Data collection and evaluation"
            " server. arXiv.",
            location="section 4; the format of results: https://cocodataset.org/#format-results",
            url="https://arxiv.org/abs/1504.00325",
        ),
    ),
    assumptions=(
        "a caption is of a whole image: everyone in it has the same one",
        "of several captions of an image the first is read where a task reads one",
    ),
    suffixes=(".json", ".json.gz"),
    is_keyed_by_image=True,
)


class _CocoCaption(msgspec.Struct, gc=False):
    image_id: int | float | str
    caption: str | None


class _CocoCaptionFile(msgspec.Struct):
    annotations: list[_CocoCaption]


def read(path: str | Path, *, model: str | None = None) -> pl.DataFrame:
    """Read captions.

    Parameters
    ----------
    path : str or Path
        The JSON file, also gzipped.
    model : str, optional
        The model's name; not given: the file's.

    Returns
    -------
    polars.DataFrame
        Table ``LABEL_PREDICTIONS``: ``instance_id`` is the image's id, ``label`` the caption
        (null: empty), ``rank`` the place among the image's captions, in the order of the file.

    Raises
    ------
    FileError, TableError
        No such file; no JSON, or none of captions, with the place; a list without a caption.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "blip.json"
    ...     _ = file.write_text('[{"image_id": 7, "caption": "a man on skis"}]')
    ...     read(file).select("model", "instance_id", "label", "rank").row(0)
    ('blip', '7', 'a man on skis', 1)
    """
    source = str(path)
    rows = _read_captions(path, source)
    if not rows:
        raise TableError(
            "there is no caption in this file", expected="image_id and caption", where=source
        )
    text = pl.Series([row.caption for row in rows], dtype=pl.String)
    images = pl.DataFrame(
        {"image_id": format_whole_ids([row.image_id for row in rows], source, "image_id")}
    )
    ids = read_ids(images, "image_id", source)
    frame = pl.DataFrame(
        {
            "model": model or model_name_from_path(path),
            "instance_id": ids,
            "label": text.str.strip_chars().replace("", None),
        }
    )
    return LABEL_PREDICTIONS.conform(
        frame.with_columns(rank=pl.int_range(1, pl.len() + 1).over("instance_id"))
    )


def _read_captions(path: str | Path, source: str) -> list[_CocoCaption]:
    with open_bytes(path) as stream:
        content = stream.read()
    if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return decode_json(content, list[_CocoCaption], source)
    return decode_json(content, _CocoCaptionFile, source).annotations


def mismatch(probe: FileProbe) -> str | None:
    """Say why these are no captions of COCO; None: they are.

    Examples
    --------
    >>> mismatch(FileProbe(Path("net.json"), "file", b'[{"image_id": 7, "caption": "a cat"}]'))
    >>> mismatch(FileProbe(Path("net.json"), "file", b'[{"image_id": 7, "bbox": [1, 2, 3, 4]}]'))
    'its first objects have no caption'
    """
    if re.search(rb'"caption"\s*:', probe.head):
        return None
    listing = re.search(rb'"(images|info)"\s*:', probe.head)
    if listing and re.match(r"(?i)captions?[_.-]", probe.path.name):
        return None
    return "its first objects have no caption"

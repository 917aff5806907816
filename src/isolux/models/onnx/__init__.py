"""A network in an ONNX file, run by onnxruntime: ``onnx:net.onnx``.

What an ONNX file does not say (how pictures are prepared, what the outputs mean, what the classes
are called) is said by settings, or by the file itself: under ``isolux`` in its metadata, the same
settings as JSON. A setting that is given wins over the file's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from isolux.core.errors import FileError, SpecError, UnknownNameError
from isolux.core.info import ModelInfo, Reference
from isolux.io.hashing import sha256_file
from isolux.io.resizing import Filter
from isolux.models._boxes import BoxFormat, BoxUnits
from isolux.models._classes import ClassMap, build_class_map, read_class_names
from isolux.models._preprocessing import Colours, Fit, ModelInput, Preprocessing, stack_model_inputs
from isolux.models.onnx.external import list_external_data_files
from isolux.models.onnx.outputs import (
    Outputs,
    build_box_table_from_outputs,
    build_embedding_table_from_output,
    build_label_table_from_scores,
)
from isolux.models.onnx.session import Session, open_session

INFO = ModelInfo(
    title="ONNX",
    summary="Runs a network in an ONNX file with onnxruntime: labels, boxes or embeddings.",
    references=(
        Reference(
            key="onnx",
            citation="The ONNX community. Open Neural Network Exchange: intermediate"
            " representation specification.",
            url="https://onnx.ai/onnx/repo-docs/IR.html",
        ),
    ),
    licence="the file's own",
    assumptions=("the settings are those that the network was trained and exported with",),
    predicts="several",
    needs="isolux[onnx]; the file",
    packages=("onnxruntime",),
)

_KEY = "isolux"
"""Under this name a file's metadata may hold settings, as JSON."""

Answers = Literal["labels", "boxes", "embeddings"]


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A loaded network and how its inputs and outputs are read."""

    session: Session
    prepare: Preprocessing
    predicts: Answers
    outputs: Outputs
    classes: ClassMap
    identity: dict[str, Any]
    notes: tuple[str, ...]

    def __call__(self, pictures: Sequence[ModelInput]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        tables: list[pl.DataFrame] = []
        step = self.session.batch or max(len(pictures), 1)
        for offset in range(0, len(pictures), step):
            batch = pictures[offset : offset + step]
            arrays = self.session.run(stack_model_inputs(batch))
            tables.append(self._read(arrays, batch, offset))
        return pl.concat(tables) if tables else self._read({}, (), 0)

    def _read(
        self, arrays: dict[str, np.ndarray[Any, Any]], batch: Sequence[ModelInput], offset: int
    ) -> pl.DataFrame:
        if self.predicts == "labels":
            table = build_label_table_from_scores(arrays, self.outputs, self.classes, len(batch))
        elif self.predicts == "embeddings":
            table = build_embedding_table_from_output(arrays, self.outputs, len(batch))
        else:
            size = self.prepare.width, self.prepare.height
            table = build_box_table_from_outputs(
                arrays, self.outputs, self.classes.names, batch, size
            )
        return table.with_columns(pl.col("picture").cast(pl.Int64) + offset)


def load(
    spec: str,
    *,
    answers: Answers | None = None,
    labels: str | None = None,
    classes: str | None = None,
    activation: Literal["softmax", "sigmoid", "none"] | None = None,
    top: int | None = None,
    size: Sequence[int] | None = None,
    fit: Fit | None = None,
    share: float | None = None,
    filter: Filter | None = None,  # noqa: A002 - what Pillow calls it
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    scale: float | None = None,
    colours: Colours | None = None,
    box_format: BoxFormat | None = None,
    box_units: BoxUnits | None = None,
    boxes_output: str | None = None,
    scores_output: str | None = None,
    labels_output: str | None = None,
    background: Literal["first", "last", "none"] | None = None,
    min_score: float | None = None,
    device: str = "cpu",
    threads: int = 0,
) -> OnnxModel:
    """Load a network.

    Parameters
    ----------
    spec : str
        The file.
    answers : {"labels", "boxes", "embeddings"}, optional
        What its outputs are. Default: the file's metadata.
    labels : str, optional
        File with the names of the network's classes: one a line, or JSON (``id2label``).
    classes : str, optional
        File that maps the network's classes to the dataset's, ``label: class``; a class scores the
        highest of its labels. Labels are found by name, synset or number.
    activation : {"softmax", "sigmoid", "none"}, optional
        What turns its scores into probabilities. Default: softmax of labels, sigmoid of boxes.
    top : int, optional
        How many labels of a picture are kept, the best first. Default: 5.
    size : sequence of int, optional
        Height and width of the input, where the file leaves them open.
    fit : {"stretch", "crop", "pad"}, optional
        How a picture of another shape is brought to that size. Default: stretch.
    share : float, optional
        Of crop: the side that is cut out, as a share of the resized picture's shorter side.
    filter : {"nearest", "bilinear", "bicubic", "lanczos"}, optional
        How pictures are resized. Default: bilinear.
    mean, std : sequence of float, optional
        Colours of 0 to 1 less ``mean`` are divided by ``std``: a number for each channel.
    scale : float, optional
        What pixels of 0 to 255 are multiplied by first. Default: 1/255.
    colours : {"rgb", "bgr"}, optional
        The order of the channels. Default: rgb.
    box_format : {"xyxy", "xywh", "cxcywh"}, optional
        How a box is written.
    box_units : {"pixels", "shares"}, optional
        Pixels of the input, or shares of its width and height.
    boxes_output, scores_output, labels_output : str, optional
        What the network calls this output. Default: found by usual names.
    background : {"first", "last", "none"}, optional
        Which class of boxes' scores means that nothing is there. Default: none.
    min_score : float, optional
        Boxes of a lower score are left out. Default: 0.05.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.
    threads : int
        Threads of the network; 0: one a core.

    Returns
    -------
    OnnxModel

    Raises
    ------
    FileError
        No such file, or no ONNX; weights in a file that is not there or outside its folder.
    SpecError
        Something that the file does not say and no setting says; no onnxruntime; no such device.

    Examples
    --------
    >>> load("nowhere/net.onnx")
    Traceback (most recent call last):
        ...
    isolux.core.errors.FileError: there is no such file of a network
      where: nowhere/net.onnx
    """
    path = Path(spec).expanduser()
    if not path.is_file():
        raise FileError("there is no such file of a network", where=spec)
    external_by_name = list_external_data_files(path)
    session = open_session(path, device, threads)
    requested = {
        "answers": answers,
        "activation": activation,
        "top": top,
        "size": size,
        "fit": fit,
        "share": share,
        "filter": filter,
        "mean": mean,
        "std": std,
        "scale": scale,
        "colours": colours,
        "box_format": box_format,
        "box_units": box_units,
        "boxes_output": boxes_output,
        "scores_output": scores_output,
        "labels_output": labels_output,
        "background": background,
        "min_score": min_score,
    }
    settings = _read_metadata_settings(session, spec, (*requested, "labels"))
    settings |= {
        key: setting_value for key, setting_value in requested.items() if setting_value is not None
    }
    prediction_type = settings.get("answers")
    if prediction_type not in ("labels", "boxes", "embeddings"):
        raise SpecError(
            "the file does not say what the network answers",
            expected="--model-option answers=labels, boxes or embeddings",
            found=f"outputs {session.outputs_text()}",
            where=spec,
        )
    prepare = _build_preprocessing(session, settings, spec)
    outputs = Outputs.from_settings(session, prediction_type, settings, source=spec)
    names = read_class_names(labels) if labels is not None else tuple(settings.get("labels") or ())
    used_classes = _build_class_map_of_output(names, classes, prediction_type, outputs, spec)
    identity = {
        "weights": {
            "file": sha256_file(path),
            "external": {name: sha256_file(file) for name, file in external_by_name.items()},
        },
        "preprocessing": prepare.to_json(),
        "outputs": outputs.to_json(),
        "answers": prediction_type,
        "classes": [list(used_classes.names), used_classes.members],
        "device": session.device,
    }
    return OnnxModel(
        session, prepare, prediction_type, outputs, used_classes, identity, used_classes.notes
    )


def _read_metadata_settings(
    session: Session, source: str, valid_names: tuple[str, ...]
) -> dict[str, Any]:
    """Read the settings that the file itself holds; one that is misspelt would move nothing."""
    text = session.metadata.get(_KEY)
    if text is None:
        return {}
    try:
        settings = json.loads(text)
        problem = "" if isinstance(settings, dict) else type(settings).__name__
    except ValueError as error:
        settings, problem = {}, str(error)
    if problem:
        raise FileError(
            "the file's own settings cannot be read",
            expected="an object of JSON under 'isolux'",
            found=problem,
            where=source,
        )
    for key in settings:
        if key not in valid_names:
            raise UnknownNameError("setting of an ONNX network", key, valid_names, where=source)
    return dict(settings)


def _build_preprocessing(session: Session, settings: dict[str, Any], source: str) -> Preprocessing:
    size = session.size or settings.get("size")
    requested_size = settings.get("size", session.size)
    requested_size = list(
        map(str, requested_size if isinstance(requested_size, list | tuple) else [requested_size])
    )
    if session.size is not None and requested_size != list(map(str, session.size)):
        raise SpecError(
            "the network takes pictures of one size",
            expected="{} × {} pixels (height, width)".format(*session.size),
            found="size=" + ",".join(requested_size),
            where=source,
            hint="leave size out",
        )
    if size is None or len(size) != 2:
        raise SpecError(
            "the file leaves the size of its input open",
            expected="--model-option size=HEIGHT,WIDTH",
            found=f"input {session.input_shape}",
            where=source,
        )
    scalar_names = ("fit", "share", "filter", "scale", "colours")
    options: dict[str, Any] = {key: settings[key] for key in scalar_names if key in settings}
    for key in ("mean", "std"):
        if key in settings:
            options[key] = tuple(float(number) for number in settings[key])
    height, width = (int(number) for number in size)
    return Preprocessing(
        height, width, channels_first=session.channels_first, dtype=session.dtype, **options
    )


def _build_class_map_of_output(
    names: tuple[str, ...], classes: str | None, prediction_type: str, outputs: Outputs, source: str
) -> ClassMap:
    if prediction_type == "embeddings":
        return ClassMap(())
    if prediction_type == "boxes":
        if classes is not None:
            raise SpecError(
                "boxes keep the network's own classes",
                expected="--person-label, or --option of the task",
                found=f"classes={classes}",
            )
        return ClassMap(names)
    if not names:
        raise SpecError(
            "the classes have no names",
            expected="--model-option labels=FILE, one name a line",
            where=source,
        )
    fits = outputs.count in (None, len(names)) or (outputs.count, len(names)) == (1, 2)
    if not fits:
        raise SpecError(
            "the names do not fit the network",
            expected=f"{outputs.count} names",
            found=f"{len(names):,}",
            where=source,
        )
    return build_class_map(names, classes)

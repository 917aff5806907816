"""A network in an ONNX file, run by onnxruntime: ``onnx:net.onnx``.

What an ONNX file does not say (how pictures are prepared, what the outputs mean, what the classes
are called) is said by settings, or by the file itself: under ``isolux`` in its metadata, the same
settings as JSON. A setting that is given wins over the file's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from isolux.core.errors import FileError, SpecError
from isolux.core.info import ModelInfo, Reference
from isolux.io.hashing import sha256_file
from isolux.io.resizing import Filter
from isolux.models._boxes import BoxFormat, BoxUnits
from isolux.models._classes import ClassMap, build_class_map, read_class_names
from isolux.models._numbers import parse_class_numbers, parse_values
from isolux.models._preprocessing import Colours, Fit, ModelInput, Preprocessing, stack_model_inputs
from isolux.models.onnx.detections import build_detection_table
from isolux.models.onnx.external import list_external_data_files
from isolux.models.onnx.outputs import (
    DETECTIONS,
    Answers,
    Outputs,
    build_embedding_table_from_output,
    build_image_table_from_output,
    build_label_table_from_scores,
    build_number_table_from_output,
    infer_answers,
)
from isolux.models.onnx.session import Session, open_session
from isolux.models.onnx.settings import (
    Preset,
    Problems,
    apply_preset,
    build_preprocessing,
    find_input_size,
    read_metadata_settings,
)

INFO = ModelInfo(
    title="ONNX",
    summary="Runs a network in an ONNX file with onnxruntime: labels, numbers, boxes, masks, poses,"
    " embeddings or pictures.",
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


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A loaded network and how its inputs and outputs are read."""

    session: Session
    prepare: Preprocessing
    predicts: Answers
    outputs: Outputs
    classes: ClassMap
    values: tuple[float, ...]
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
        n = len(batch)
        if self.predicts == "labels":
            table = build_label_table_from_scores(arrays, self.outputs, self.classes, n)
        elif self.predicts == "numbers":
            table = build_number_table_from_output(arrays, self.outputs, self.values, n)
        elif self.predicts == "embeddings":
            table = build_embedding_table_from_output(arrays, self.outputs, n)
        elif self.predicts == "images":
            table = build_image_table_from_output(arrays, self.outputs, self.prepare, n)
        else:
            size = self.prepare.width, self.prepare.height
            table = build_detection_table(
                arrays, self.outputs, self.predicts, self.classes.names, batch, size
            )
        return table.with_columns(pl.col("picture").cast(pl.Int64) + offset)


def load(
    spec: str,
    *,
    answers: Answers | None = None,
    labels: str | Sequence[str] | None = None,
    values: str | Sequence[float] | None = None,
    classes: str | None = None,
    preset: Preset | None = None,
    activation: Literal["softmax", "sigmoid", "none"] | None = None,
    top: int | None = None,
    size: int | Sequence[int] | None = None,
    fit: Fit | None = None,
    share: float | None = None,
    filter: Filter | None = None,  # noqa: A002 - what Pillow calls it
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    scale: float | None = None,
    colours: Colours | None = None,
    box_format: BoxFormat | None = None,
    box_units: BoxUnits | None = None,
    boxes_output: str | None = None,
    scores_output: str | None = None,
    labels_output: str | None = None,
    masks_output: str | None = None,
    keypoints_output: str | None = None,
    mask_threshold: float | None = None,
    output_range: Sequence[float] | None = None,
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
    answers : {"labels", "numbers", "boxes", "masks", "keypoints", "embeddings", "images"}, optional
        What its outputs are. Default: the file's metadata, else the outputs' names and shapes;
        an only output whose rows sum to 1, or whose labels are given, is labels.
    labels : str or sequence of str, optional
        Names of the network's classes: ``Female,Male``; or a file, one a line, or JSON
        (``id2label``).
    values : str or sequence of float, optional
        Of numbers: what each class stands for (``0-100``, or ``10,20,30``); the answer is their
        mean, weighted by the probabilities. Default: labels such as 25 or 20-29; of a network with
        one output, the number itself.
    classes : str, optional
        File that maps the network's classes to the dataset's, ``label: class``; a class scores the
        highest of its labels. Labels are found by name, synset or number.
    preset : {"imagenet", "clip", "minus-one-to-one", "bgr-255"}, optional
        Mean, std, scale, colours (and of the first two fit, share and filter) of much-used
        networks; a setting that is given wins over it.
    activation : {"softmax", "sigmoid", "none"}, optional
        What turns its scores into probabilities. Default: softmax of labels, sigmoid of boxes.
    top : int, optional
        How many labels of a picture are kept, the best first. Default: 5.
    size : int or sequence of int, optional
        Height and width of the input, where the file leaves them open; one number: of a square.
    fit : {"stretch", "crop", "pad"}, optional
        How a picture of another shape is brought to that size. Default: stretch.
    share : float, optional
        Of crop: the side that is cut out, as a share of the resized picture's shorter side.
    filter : {"nearest", "bilinear", "bicubic", "lanczos"}, optional
        How pictures are resized. Default: bilinear.
    mean, std : float or sequence of float, optional
        Colours of 0 to 1 less ``mean`` are divided by ``std``: a number, or one for each channel.
    scale : float, optional
        What pixels of 0 to 255 are multiplied by first. Default: 1/255.
    colours : {"rgb", "bgr"}, optional
        The order of the channels. Default: rgb.
    box_format : {"xyxy", "xywh", "cxcywh"}, optional
        How a box is written.
    box_units : {"pixels", "shares"}, optional
        Pixels of the input, or shares of its width and height.
    boxes_output, scores_output, labels_output, masks_output, keypoints_output : str, optional
        What the network calls this output. Default: found by usual names.
    mask_threshold : float, optional
        A pixel of a mask is inside above this. Default: 0.5; of logits it is 0.
    output_range : sequence of float, optional
        Of images: the numbers of black and white, ``0,1``. Default: those of the input.
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
        "labels": labels,
        "values": values,
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
        "masks_output": masks_output,
        "keypoints_output": keypoints_output,
        "mask_threshold": mask_threshold,
        "output_range": output_range,
        "background": background,
        "min_score": min_score,
    }
    given_settings = {name: setting for name, setting in requested.items() if setting is not None}
    own_settings = read_metadata_settings(session, spec, tuple(requested))
    problems = Problems()
    preset_settings = problems.collect(apply_preset, preset, own_settings, spec) or {}
    settings = {**own_settings, **preset_settings, **given_settings}
    size_px = problems.collect(find_input_size, session, settings.get("size"), spec)
    prepare = problems.collect(build_preprocessing, session, settings, size_px)
    prediction_type = problems.collect(infer_answers, session, settings, spec)
    if prediction_type is not None:
        outputs = problems.collect(Outputs.from_settings, session, prediction_type, settings, spec)
        count = None if outputs is None else outputs.count
        names = _read_names(settings)
        used_classes = problems.collect(
            _build_class_map_of_output, names, classes, prediction_type, count, spec
        )
        numbers = problems.collect(_read_values, names, settings, prediction_type, count, spec)
    problems.raise_if_any(spec)
    identity = {
        "weights": {
            "file": sha256_file(path),
            "external": {name: sha256_file(file) for name, file in external_by_name.items()},
        },
        "preprocessing": prepare.to_json(),
        "outputs": outputs.to_json(),
        "answers": prediction_type,
        "classes": [list(used_classes.names), used_classes.members],
        "values": list(numbers),
        "device": session.device,
    }
    return OnnxModel(
        session,
        prepare,
        prediction_type,
        outputs,
        used_classes,
        numbers,
        identity,
        used_classes.notes,
    )


def _read_names(settings: Mapping[str, Any]) -> tuple[str, ...]:
    labels = settings.get("labels")
    return () if labels is None else read_class_names(labels)


def _read_values(
    names: tuple[str, ...],
    settings: Mapping[str, Any],
    prediction_type: str,
    count: int | None,
    source: str,
) -> tuple[float, ...]:
    """Read the numbers that classes stand for, of a network that answers with numbers."""
    if prediction_type != "numbers":
        if "values" in settings:
            raise SpecError(
                "values are of a network that answers with numbers",
                expected="answers=numbers",
                found=f"answers={prediction_type}",
                where=source,
            )
        return ()
    values = parse_values(settings["values"]) if "values" in settings else None
    if values is None:
        values = parse_class_numbers(names)
    is_two_of_one = (count, len(values)) == (1, 2)
    if count is not None and len(values) != count and not is_two_of_one and (values or count > 1):
        raise SpecError(
            "the numbers do not fit the network",
            expected=f"the number of each of its {count:,} classes: --model-option values=0-100,"
            " values=10,20,30 or labels such as 20-29",
            found=f"{len(values):,}",
            where=source,
        )
    return values


def _build_class_map_of_output(
    names: tuple[str, ...],
    classes: str | None,
    prediction_type: str,
    count: int | None,
    source: str,
) -> ClassMap:
    if prediction_type != "labels" and classes is not None:
        raise SpecError(
            f"{prediction_type} keep the network's own classes"
            if prediction_type in DETECTIONS
            else f"{prediction_type} have no classes",
            expected="--person-label, or --option of the task"
            if prediction_type in DETECTIONS
            else "no classes",
            found=f"classes={classes}",
        )
    if prediction_type != "labels":
        return ClassMap(names if prediction_type in DETECTIONS else ())
    if not names:
        raise SpecError(
            "the classes have no names",
            expected="--model-option labels=Female,Male, or labels=FILE, one name a line",
            found=None if count is None else f"{count:,} classes",
            where=source,
        )
    fits = count in (None, len(names)) or (count, len(names)) == (1, 2)
    if not fits:
        raise SpecError(
            "the names do not fit the network",
            expected=f"{count} names",
            found=f"{len(names):,}",
            where=source,
        )
    return build_class_map(names, classes)

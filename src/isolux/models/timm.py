"""Models of the timm library: ``timm:NAME``, labels or the features before the last layer.

Pictures are prepared as the model's own configuration says (size, crop, filter, mean, deviation).
Weights come from a safetensors file, or from the hub's cache on this machine.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import Any, Literal

import polars as pl

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.extras import import_optional
from isolux.core.info import ModelInfo, Reference
from isolux.models._classes import (
    ClassMap,
    build_class_map,
    build_embedding_table,
    build_top_label_table,
    read_class_names,
    to_probabilities,
)
from isolux.models._preprocessing import ModelInput, Preprocessing, run_network_on_inputs
from isolux.models._torch import (
    build_missing_weights_error,
    hash_state_dict,
    import_torch,
    load_state_dict_or_raise,
    move_to_device_for_inference,
    read_safetensors_and_hash,
)

INFO = ModelInfo(
    title="timm",
    summary="Runs an image model of the timm library: labels, or features as embeddings.",
    references=(
        Reference(
            key="timm",
            citation="Wightman, R. (2019). PyTorch image models [Computer software].",
            url="https://github.com/huggingface/pytorch-image-models",
        ),
    ),
    licence="each model's own",
    assumptions=("the model's configuration is how its authors prepared pictures",),
    predicts="several",
    needs="isolux[timm]; a file of weights, or weights in the hub's cache",
    packages=("timm", "torch"),
)


@dataclass(frozen=True, slots=True)
class TimmModel:
    """A loaded model."""

    torch: Any
    inner: Any
    prepare: Preprocessing
    predicts: str
    classes: ClassMap
    top: int
    device: str
    identity: dict[str, Any]
    notes: tuple[str, ...] = ()

    def __call__(self, pictures: Sequence[ModelInput]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        network = self.inner if self.predicts == "labels" else self.features
        width = max(self.classes.count, 1)
        outputs = run_network_on_inputs(self.torch, network, pictures, self.device, width)
        if self.predicts == "embeddings":
            return build_embedding_table(outputs)
        scores = self.classes(to_probabilities(outputs, "softmax"))
        return build_top_label_table(scores, self.classes.names, self.top)

    def features(self, values: Any) -> Any:
        """Return the features before the last layer, as a tensor for fine-tuning."""
        return self.inner.forward_head(self.inner.forward_features(values), pre_logits=True)


def load(
    spec: str,
    *,
    answers: Literal["labels", "embeddings"] = "labels",
    weights: str | None = None,
    labels: str | None = None,
    classes: str | None = None,
    top: int = 5,
    device: str = "cpu",
    online: bool = False,
) -> TimmModel:
    """Load a model.

    Parameters
    ----------
    spec : str
        A name of ``timm.list_models()``: ``resnet50``, ``vit_base_patch16_224.augreg_in21k``.
    answers : {"labels", "embeddings"}
        The classes' probabilities, or what the last layer is given.
    weights : str, optional
        A safetensors file, of as many classes as its last layer has. Default: the hub's cache.
    labels : str, optional
        File with the names of its classes. Default: ImageNet's, where timm knows that they are.
    classes : str, optional
        File that maps them to the dataset's, ``label: class``.
    top : int
        How many labels of a picture are kept.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.
    online : bool
        Let the hub be asked for weights that are not on this machine.

    Returns
    -------
    TimmModel

    Raises
    ------
    SpecError
        timm is not installed, no weights, classes without names.
    UnknownNameError
        No such model, with the nearest names.

    Examples
    --------
    ``docs/how_to/models.md`` runs one. A model that there is not, or a library that is not here:

    >>> from isolux.core.errors import IsoluxError
    >>> try:
    ...     load("absent_model")
    ... except IsoluxError:
    ...     print("said by name")
    said by name
    """
    if not online:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    purpose = f"the model timm:{spec}"
    torch = import_torch(purpose, "timm")
    library = import_optional("timm", package="timm", extra="timm", purpose=purpose)
    _check_timm_model_exists(library, spec)
    inner = _create_timm_network(library, spec, pretrained=weights is None)
    weight_hashes = (
        {"state": hash_state_dict(inner)}
        if weights is None
        else _resize_classifier_and_load_weights(inner, weights)
    )
    prepare = _read_timm_preprocessing(library, inner)
    used_classes = ClassMap(())
    if answers == "labels":
        used_classes = build_class_map(
            _read_timm_class_names(library, inner, labels, spec), classes
        )
    identity = {
        "name": spec.partition(".")[0],
        "weights": weight_hashes,
        "preprocessing": prepare.to_json(),
        "answers": answers,
        "classes": [list(used_classes.names), used_classes.members],
        "top": top,
        "device": device,
    }
    return TimmModel(
        torch,
        move_to_device_for_inference(inner, device),
        prepare,
        answers,
        used_classes,
        top,
        device,
        identity,
        used_classes.notes,
    )


def _check_timm_model_exists(library: Any, spec: str) -> None:
    model_names = library.list_models()
    if spec.partition(".")[0] not in model_names:
        near = difflib.get_close_matches(spec, model_names, n=12, cutoff=0.4) or model_names[:12]
        raise UnknownNameError("timm model", spec, near)


def _create_timm_network(library: Any, spec: str, *, pretrained: bool) -> Any:
    try:
        return library.create_model(spec, pretrained=pretrained)
    except Exception as error:
        absent = f"the weights of timm's {spec!r} are not on this machine"
        raise build_missing_weights_error(
            absent if pretrained else f"timm cannot make {spec!r}", error
        ) from error


def _resize_classifier_and_load_weights(inner: Any, weights: str) -> dict[str, str]:
    """Load a file's weights, after resizing the classifier to their number of classes."""
    state, weight_hashes = read_safetensors_and_hash(weights)
    last = inner.default_cfg.get("classifier")
    rows = state.get(f"{last}.weight") if isinstance(last, str) else None
    if rows is not None and len(rows) != inner.num_classes:
        inner.reset_classifier(len(rows))
    load_state_dict_or_raise(inner, state, weights)
    return weight_hashes


def _read_timm_preprocessing(library: Any, inner: Any) -> Preprocessing:
    """Read timm's configuration: resize the shorter side to ⌊size / crop⌋, cut out the middle."""
    config = library.data.resolve_model_data_config(inner)
    _, height, width = config["input_size"]
    share = height / floor(height / float(config.get("crop_pct") or 1.0))
    filters = {"bilinear", "bicubic", "nearest", "lanczos"}
    interpolation = config.get("interpolation", "bicubic")
    return Preprocessing(
        height,
        width,
        fit="stretch" if config.get("crop_mode") == "squash" else "crop",
        share=share,
        filter=interpolation if interpolation in filters else "bicubic",
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
    )


def _read_timm_class_names(
    library: Any, inner: Any, labels: str | None, spec: str
) -> tuple[str, ...]:
    count = int(inner.num_classes)
    if labels is not None:
        names = read_class_names(labels)
    else:
        subset = library.data.infer_imagenet_subset(inner)
        if not subset:
            raise SpecError(
                "the classes have no names",
                expected="--model-option labels=FILE, one name a line",
                found=f"{count:,} classes that are not ImageNet's",
                where=f"timm:{spec}",
            )
        imagenet_info = library.data.ImageNetInfo(subset)
        names = tuple(
            f"{imagenet_info.index_to_label_name(k)} {imagenet_info.index_to_description(k)}"
            for k in range(count)
        )
    if len(names) != count:
        raise SpecError(
            "the names do not fit the network", expected=f"{count:,} names", found=f"{len(names):,}"
        )
    return names

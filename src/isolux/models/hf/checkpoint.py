"""A checkpoint of the transformers library: found, held to be safe, hashed, opened."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from isolux.core.errors import FileError, SpecError
from isolux.core.extras import import_optional
from isolux.io.hashing import sha256_file
from isolux.models._torch import move_to_device_for_inference

Task = Literal[
    "classification",
    "zero-shot",
    "detection",
    "zero-shot-detection",
    "grounding",
    "segmentation",
    "pose",
    "captioning",
    "question",
    "embeddings",
    "number",
    "super-resolution",
]
_CLASSES: dict[str, str] = {
    "classification": "AutoModelForImageClassification",
    "zero-shot": "AutoModelForZeroShotImageClassification",
    "detection": "AutoModelForObjectDetection",
    "zero-shot-detection": "AutoModelForZeroShotObjectDetection",
    "grounding": "AutoModelForImageTextToText",
    "segmentation": "AutoModelForUniversalSegmentation",
    "pose": "AutoModelForPoseEstimation",
    "captioning": "AutoModelForImageTextToText",
    "question": "AutoModelForVisualQuestionAnswering",
    "embeddings": "AutoModel",
    "number": "AutoModelForImageClassification",
    "super-resolution": "AutoModelForImageToImage",
}
_TASK_BY_SUFFIX = (
    ("ForImageClassification", "classification"),
    ("ForImageSuperResolution", "super-resolution"),
    ("ForObjectDetection", "detection"),
    ("ForUniversalSegmentation", "segmentation"),
    ("ForInstanceSegmentation", "segmentation"),
    ("ForPoseEstimation", "pose"),
    ("ForQuestionAnswering", "question"),
    ("ForConditionalGeneration", "captioning"),
)
_ZERO_SHOT_DETECTORS = ("owlvit", "owlv2", "grounding-dino", "mm-grounding-dino", "omdet-turbo")
_TEXT_IMAGE_TYPES = ("clip", "siglip", "siglip2", "align", "altclip", "chinese_clip")
_TEXT_TASKS = ("zero-shot", "zero-shot-detection", "grounding", "captioning", "question")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
_MAX_LISTED = 5
_IGNORED_SUFFIXES = (
    ".md",
    ".h5",
    ".msgpack",
    ".ot",
    ".onnx",
    ".tflite",
    ".py",
    ".png",
    ".jpg",
    ".gif",
)
"""Files beside a checkpoint that are not opened: documentation, and other libraries' weights."""


@dataclass(frozen=True, slots=True)
class LoadedCheckpoint:
    """An opened checkpoint.

    Parameters
    ----------
    torch, model, processor : object
        PyTorch, the model in its evaluation mode, the processor of its pictures (and words).
    task : str
    device : str
    identity : mapping
        Hashes of its files, the processor's backend, device and precision.
    missing : frozenset of str
        Weights of the model that the checkpoint lacks, or has in another size.
    notes : tuple of str
        For the record and the report.
    """

    torch: Any
    model: Any
    processor: Any
    task: str
    device: str
    identity: Mapping[str, Any]
    missing: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def open_checkpoint(
    spec: str, task: Task | None, *, device: str, precision: str, online: bool, is_trusted: bool
) -> LoadedCheckpoint:
    """Open a checkpoint; see ``isolux.models.hf.load``."""
    if not online:  # before the library is imported: it reads this once
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    purpose = f"the model hf:{spec}"
    torch = import_optional("torch", package="torch", extra="transformers", purpose=purpose)
    library = import_optional(
        "transformers", package="transformers", extra="transformers", purpose=purpose
    )
    library.logging.set_verbosity_error()
    library.logging.disable_progress_bar()
    folder = _find_checkpoint_folder(spec, online=online)
    _check_no_untrusted_pickles(folder, spec, is_trusted=is_trusted)
    _check_shards_in_folder(folder)
    chosen_task = task or _infer_task_from_architecture(folder, spec)
    dtype = getattr(torch, precision)
    name = str(folder)
    try:
        model, loading_info = _find_model_class(library, chosen_task, folder).from_pretrained(
            name,
            local_files_only=True,
            dtype=dtype,
            use_safetensors=None if is_trusted else True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
        processor_class = (
            library.AutoProcessor if chosen_task in _TEXT_TASKS else library.AutoImageProcessor
        )
        processor = processor_class.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        raise _build_open_error(error, chosen_task, spec) from error
    missing = {
        *loading_info["missing_keys"],
        *(mismatch[0] for mismatch in loading_info["mismatched_keys"]),
    }
    if chosen_task == "embeddings":
        missing -= _remove_untrained_pooler(model, missing)
    model = move_to_device_for_inference(model, device)
    image_processor = getattr(processor, "image_processor", processor)
    identity = {
        "files": _hash_checkpoint_files(folder),
        "task": chosen_task,
        "device": device,
        "precision": precision,
        "processor": f"{type(image_processor).__module__}.{type(image_processor).__qualname__}",
    }
    notes = (
        *_format_unused_weights_notes(sorted(loading_info["unexpected_keys"])),
        *_format_contradicting_names_notes(_read_config_json(folder)),
    )
    return LoadedCheckpoint(
        torch, model, processor, chosen_task, device, identity, frozenset(missing), notes
    )


def _remove_untrained_pooler(model: Any, missing: set[str]) -> set[str]:
    """Take away a pooler of which the checkpoint has nothing; give its weights' names."""
    pooler = getattr(model, "pooler", None)
    names = set() if pooler is None else {f"pooler.{k}" for k, _ in pooler.named_parameters()}
    if not names or not names <= missing:
        return set()
    model.pooler = None
    return names


def _format_unused_weights_notes(names: list[str]) -> tuple[str, ...]:
    """Say which weights of a checkpoint are not used."""
    if not names:
        return ()
    ellipsis = ", …" if len(names) > _MAX_LISTED else ""
    name_list = ", ".join(names[:_MAX_LISTED]) + ellipsis
    return (f"{len(names):,} weights of the checkpoint have no part in this: {name_list}.",)


def _format_contradicting_names_notes(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Say which classes ``label2id`` of a configuration numbers otherwise than ``id2label``."""
    numbers_by_name: dict[str, list[str]] = {}
    for number, name in (config.get("id2label") or {}).items():
        numbers_by_name.setdefault(str(name), []).append(str(number))
    contradictions = [
        f"{name!r} is {number} and not {' or '.join(numbers_by_name[name])}"
        for name, number in (config.get("label2id") or {}).items()
        if str(number) not in numbers_by_name.get(name, [str(number)])
    ]
    if not contradictions:
        return ()
    ellipsis = ", …" if len(contradictions) > _MAX_LISTED else "."
    return (
        "label2id of config.json contradicts id2label, whose names are used: "
        + ", ".join(contradictions[:_MAX_LISTED])
        + ellipsis,
    )


def _build_open_error(error: Exception, task: str, spec: str) -> SpecError:
    """Say why a checkpoint cannot be opened: the library's last error hides the first."""
    first: BaseException = error
    while (before := first.__cause__ or first.__context__) is not None:
        first = before
    reason = f"{type(first).__name__}: {(str(first).splitlines() or [''])[0][:200]}"
    if "torchvision::" in str(first):
        return SpecError(
            "the torchvision that is installed does not fit this PyTorch",
            expected="both from one index, or no torchvision: transformers loads it where it is",
            found=reason,
            where=spec,
            hint="pip uninstall torchvision, or install the one of your PyTorch's index",
        )
    return SpecError(
        f"this checkpoint cannot be opened for the task {task}",
        expected="one of " + ", ".join(get_args(Task)),
        found=reason,
        where=spec,
        hint="--model-option task=… names another",
    )


def _find_model_class(library: Any, task: str, folder: Path) -> Any:
    """Find the library's class; a model that writes answers questions as it writes captions."""
    architectures = _read_config_json(folder).get("architectures") or ()
    writes = any(
        str(architecture).endswith("ForConditionalGeneration") for architecture in architectures
    )
    return getattr(library, _CLASSES["captioning" if task == "question" and writes else task])


def _find_checkpoint_folder(spec: str, *, online: bool) -> Path:
    """Find the folder of a checkpoint, here or in the hub's cache."""
    local_path = Path(spec).expanduser()
    if local_path.is_dir():
        if not (local_path / "config.json").is_file():
            raise FileError(
                "this folder holds no checkpoint of transformers",
                expected="config.json",
                where=spec,
            )
        return local_path
    hub = import_optional(
        "huggingface_hub",
        package="huggingface-hub",
        extra="transformers",
        purpose=f"the model hf:{spec}",
    )
    try:
        return Path(hub.snapshot_download(spec, local_files_only=not online))
    except Exception as error:
        raise SpecError(
            f"the weights of {spec!r} are not on this machine",
            expected="a folder with a checkpoint, or a model in the hub's cache",
            found=f"{type(error).__name__}",
            hint="--model-option online=yes allows downloads from the hub",
        ) from error


def _check_no_untrusted_pickles(folder: Path, spec: str, *, is_trusted: bool) -> None:
    names = sorted(path.name for path in folder.iterdir())
    if is_trusted or any(name.endswith(".safetensors") for name in names):
        return
    pickles = [name for name in names if name.endswith(_PICKLES)]
    raise SpecError(
        "this checkpoint is a pickle, and loading one can run any program that is in it"
        if pickles
        else "there are no weights in this checkpoint",
        expected="weights as .safetensors",
        found=", ".join(pickles or names) or "an empty folder",
        where=spec,
        hint="convert it with save_pretrained; or, where you trust its source,"
        " --model-option trust_checkpoint=yes"
        if pickles
        else None,
    )


def _infer_task_from_architecture(folder: Path, spec: str) -> str:
    """Infer a checkpoint's task from its architecture."""
    config = _read_config_json(folder)
    model_type = str(config.get("model_type"))
    architectures = [str(architecture) for architecture in config.get("architectures") or ()]
    if model_type in _ZERO_SHOT_DETECTORS:
        return "zero-shot-detection"
    for end, task in _TASK_BY_SUFFIX:
        if any(architecture.endswith(end) for architecture in architectures):
            return task
    if model_type in _TEXT_IMAGE_TYPES:
        return "zero-shot"
    if any(architecture.endswith("Model") for architecture in architectures):
        return "embeddings"
    raise SpecError(
        "nothing says what this checkpoint does",
        expected="--model-option task=" + ", ".join(get_args(Task)),
        found=", ".join(architectures) or model_type,
        where=spec,
    )


def _read_config_json(folder: Path) -> dict[str, Any]:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config if isinstance(config, dict) else {}


def _hash_checkpoint_files(folder: Path) -> dict[str, str]:
    """Hash what may move an answer: weights, configuration, tokenizer, processor, templates."""
    paths = {path.relative_to(folder): path for path in sorted(folder.rglob("*"))}
    return {
        name.as_posix(): sha256_file(path)
        for name, path in paths.items()
        if path.is_file()
        and path.suffix not in _IGNORED_SUFFIXES
        and not any(path_part.startswith(".") for path_part in name.parts)
    }


def _check_shards_in_folder(folder: Path) -> None:
    """Refuse an index of shards that names a file outside the checkpoint's folder."""
    for index in folder.glob("*.index.json"):
        index_content = json.loads(index.read_text(encoding="utf-8"))
        for name in set(index_content.get("weight_map", {}).values()):
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise FileError(
                    "a path leads out of its folder",
                    expected="the name of a file in the checkpoint's folder",
                    found=repr(name),
                    where=str(index),
                )

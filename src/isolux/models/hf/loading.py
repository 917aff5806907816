"""A checkpoint of the transformers library: found, held to be safe, hashed, opened."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from isolux.io.hashing import sha256_file
from isolux.models._torch import on_device
from isolux.vocabulary.errors import FileError, SpecError
from isolux.vocabulary.extras import needed

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
}
_ENDS = (
    ("ForImageClassification", "classification"),
    ("ForObjectDetection", "detection"),
    ("ForUniversalSegmentation", "segmentation"),
    ("ForInstanceSegmentation", "segmentation"),
    ("ForPoseEstimation", "pose"),
    ("ForQuestionAnswering", "question"),
    ("ForConditionalGeneration", "captioning"),
)
_ZERO_SHOT_DETECTORS = ("owlvit", "owlv2", "grounding-dino", "mm-grounding-dino", "omdet-turbo")
_WORDS = ("clip", "siglip", "siglip2", "align", "altclip", "chinese_clip")
_WORDED = ("zero-shot", "zero-shot-detection", "grounding", "captioning", "question")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
_SHOWN = 5
_UNREAD = (".md", ".h5", ".msgpack", ".ot", ".onnx", ".tflite", ".py", ".png", ".jpg", ".gif")
"""Files beside a checkpoint that are not opened: documentation, and other libraries' weights."""


@dataclass(frozen=True, slots=True)
class Loaded:
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
    spec: str, task: Task | None, *, device: str, precision: str, online: bool, trusted: bool
) -> Loaded:
    """Open a checkpoint; see ``isolux.models.hf.load``."""
    if not online:  # before the library is imported: it reads this once
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    purpose = f"the model hf:{spec}"
    torch = needed("torch", package="torch", extra="transformers", purpose=purpose)
    library = needed("transformers", package="transformers", extra="transformers", purpose=purpose)
    library.logging.set_verbosity_error()
    library.logging.disable_progress_bar()
    folder = _folder(spec, online=online)
    _refuse_pickles(folder, spec, trusted=trusted)
    _refuse_outside(folder)
    done = task or _task(folder, spec)
    dtype = getattr(torch, precision)
    name = str(folder)
    try:
        model, told = _class_of(library, done, folder).from_pretrained(
            name,
            local_files_only=True,
            dtype=dtype,
            use_safetensors=None if trusted else True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
        kind = library.AutoProcessor if done in _WORDED else library.AutoImageProcessor
        processor = kind.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        raise _not_opened(error, done, spec) from error
    missing = {*told["missing_keys"], *(one[0] for one in told["mismatched_keys"])}
    if done == "embeddings":
        missing -= _without_pooler(model, missing)
    model = on_device(model, device)
    pictures = getattr(processor, "image_processor", processor)
    identity = {
        "files": _hashes(folder),
        "task": done,
        "device": device,
        "precision": precision,
        "processor": f"{type(pictures).__module__}.{type(pictures).__qualname__}",
    }
    notes = _unused(sorted(told["unexpected_keys"]))
    return Loaded(torch, model, processor, done, device, identity, frozenset(missing), notes)


def _without_pooler(model: Any, missing: set[str]) -> set[str]:
    """Take away a pooler of which the checkpoint has nothing; give its weights' names."""
    pooler = getattr(model, "pooler", None)
    names = set() if pooler is None else {f"pooler.{k}" for k, _ in pooler.named_parameters()}
    if not names or not names <= missing:
        return set()
    model.pooler = None
    return names


def _unused(names: list[str]) -> tuple[str, ...]:
    """Say which weights of a checkpoint are not used."""
    if not names:
        return ()
    more = ", …" if len(names) > _SHOWN else ""
    shown = ", ".join(names[:_SHOWN]) + more
    return (f"{len(names):,} weights of the checkpoint have no part in this: {shown}.",)


def _not_opened(error: Exception, task: str, spec: str) -> SpecError:
    """Say why a checkpoint cannot be opened: the library's last error hides the first."""
    first: BaseException = error
    while (before := first.__cause__ or first.__context__) is not None:
        first = before
    why = f"{type(first).__name__}: {(str(first).splitlines() or [''])[0][:200]}"
    if "torchvision::" in str(first):
        return SpecError(
            "the torchvision that is installed does not fit this PyTorch",
            expected="both from one index, or no torchvision: transformers loads it where it is",
            found=why,
            where=spec,
            hint="pip uninstall torchvision, or install the one of your PyTorch's index",
        )
    return SpecError(
        f"this checkpoint cannot be opened for the task {task}",
        expected="one of " + ", ".join(get_args(Task)),
        found=why,
        where=spec,
        hint="--model-option task=… names another",
    )


def _class_of(library: Any, task: str, folder: Path) -> Any:
    """Find the library's class; a model that writes answers questions as it writes captions."""
    named = _config(folder).get("architectures") or ()
    writes = any(str(one).endswith("ForConditionalGeneration") for one in named)
    return getattr(library, _CLASSES["captioning" if task == "question" and writes else task])


def _folder(spec: str, *, online: bool) -> Path:
    """Find the folder of a checkpoint, here or in the hub's cache."""
    here = Path(spec).expanduser()
    if here.is_dir():
        if not (here / "config.json").is_file():
            raise FileError(
                "this folder holds no checkpoint of transformers",
                expected="config.json",
                where=spec,
            )
        return here
    hub = needed(
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


def _refuse_pickles(folder: Path, spec: str, *, trusted: bool) -> None:
    names = sorted(path.name for path in folder.iterdir())
    if trusted or any(name.endswith(".safetensors") for name in names):
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


def _task(folder: Path, spec: str) -> str:
    """Tell by the architecture what a checkpoint does."""
    config = _config(folder)
    kind = str(config.get("model_type"))
    named = [str(one) for one in config.get("architectures") or ()]
    if kind in _ZERO_SHOT_DETECTORS:
        return "zero-shot-detection"
    for end, task in _ENDS:
        if any(one.endswith(end) for one in named):
            return task
    if kind in _WORDS:
        return "zero-shot"
    if any(one.endswith("Model") for one in named):
        return "embeddings"
    raise SpecError(
        "nothing says what this checkpoint does",
        expected="--model-option task=" + ", ".join(get_args(Task)),
        found=", ".join(named) or kind,
        where=spec,
    )


def _config(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return found if isinstance(found, dict) else {}


def _hashes(folder: Path) -> dict[str, str]:
    """Hash what may move an answer: weights, configuration, tokenizer, processor, templates."""
    paths = {path.relative_to(folder): path for path in sorted(folder.rglob("*"))}
    return {
        name.as_posix(): sha256_file(path)
        for name, path in paths.items()
        if path.is_file()
        and path.suffix not in _UNREAD
        and not any(part.startswith(".") for part in name.parts)
    }


def _refuse_outside(folder: Path) -> None:
    """Refuse an index of shards that names a file outside the checkpoint's folder."""
    for index in folder.glob("*.index.json"):
        told = json.loads(index.read_text(encoding="utf-8"))
        for name in set(told.get("weight_map", {}).values()):
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise FileError(
                    "a path leads out of its folder",
                    expected="the name of a file in the checkpoint's folder",
                    found=repr(name),
                    where=str(index),
                )

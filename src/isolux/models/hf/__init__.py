"""Models of the transformers library: ``hf:org/name`` or ``hf:FOLDER``.

Images are prepared by the model's own processor. Weights come from a folder or from the cache of
the hub on this machine; nothing is downloaded unless ``online=yes`` says so. A checkpoint that is a
pickle can run any program when it is loaded: only safetensors are read, unless
``trust_checkpoint=yes`` says that its source is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from isolux.models._classes import ClassMap, class_map
from isolux.models._prompts import read_prompts
from isolux.models.hf.asking import (
    Classifying,
    Describing,
    Detecting,
    Embedding,
    Finding,
    Masking,
)
from isolux.models.hf.loading import Loaded, Task, open_checkpoint
from isolux.models.hf.posing import Posing
from isolux.models.hf.telling import Choosing, Pointing, Telling
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import ModelInfo, Reference

__all__ = ["INFO", "load"]

INFO = ModelInfo(
    title="transformers",
    summary="Runs a model of the transformers library: labels, boxes, masks, poses, captions,"
    " answers or embeddings.",
    references=(
        Reference(
            key="transformers",
            citation="Wolf, T., Debut, L., Sanh, V., Chaumond, J., Delangue, C., Moi, A., …"
            " Rush, A. M. (2020). Transformers: State-of-the-art natural language processing. In"
            " Proceedings of EMNLP: System Demonstrations (pp. 38–45).",
            url="https://aclanthology.org/2020.emnlp-demos.6",
        ),
    ),
    licence="each model's own",
    assumptions=("the processor in the checkpoint is the one that its authors used",),
    predicts="several",
    needs="isolux[transformers]; a folder, or weights in the hub's cache",
    packages=("transformers", "torch", "tokenizers", "torchvision"),
)

Predictor = (
    Classifying | Choosing | Describing | Detecting | Embedding | Finding | Masking | Pointing
    | Posing | Telling
)  # fmt: skip
_WRITES_BOXES = ("florence2", "kosmos-2")
_BOX_TOKENS = 64  # a phrase and some boxes of four tokens each
_PROMPTED = ("zero-shot", "zero-shot-detection", "grounding")
_PLAIN: dict[str, type[Embedding | Posing]] = {"embeddings": Embedding, "pose": Posing}
_FREE = ("captioning", "question")  # their classes are words of a text


def load(
    spec: str,
    *,
    task: Task | None = None,
    classes: str | None = None,
    prompts: str | None = None,
    question: str | None = None,
    words: int = 30,
    top: int = 5,
    least_score: float = 0.05,
    device: str = "cpu",
    precision: Literal["float32", "float16", "bfloat16"] = "float32",
    online: bool = False,
    trust_checkpoint: bool = False,
) -> Predictor:
    """Load a model.

    Parameters
    ----------
    spec : str
        A folder with a checkpoint, or ``org/name`` of the hub.
    task : {"classification", "zero-shot", "detection", "zero-shot-detection", "grounding", \
"segmentation", "pose", "captioning", "question", "embeddings"}, optional
        What it is asked for. Default: by the checkpoint's architecture.
    classes : str, optional
        File that maps the model's labels to the dataset's classes, ``label: class``; of captions
        and answers, of ``class: [word, word]``: the class whose words stand in the text.
    prompts : str, optional
        Of zero-shot tasks and grounding: a file of ``class: prompt`` or ``class: [prompt,
        prompt]``. Several prompts of one class are averaged (classification) or the highest counts
        (detection).
    question : str, optional
        What is asked of every picture; of captioning, how it is asked, or how the caption begins.
    words : int
        Of captions, answers and written boxes: how many tokens the model may write.
    top : int
        How many labels of a picture are kept, the best first.
    least_score : float
        Boxes and masks of a lower score are left out.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.
    precision : {"float32", "float16", "bfloat16"}
    online : bool
        Let the hub be asked for what is not on this machine.
    trust_checkpoint : bool
        Read a checkpoint that is a pickle: loading it can run any program in it.

    Returns
    -------
    Predictor

    Raises
    ------
    SpecError
        transformers or PyTorch is not installed, weights are not on this machine, a checkpoint
        that is a pickle, an architecture that does not do the task, prompts that are missing.

    Examples
    --------
    ``docs/how_to/models.md`` runs one. Weights that are not here, or a library that is not:

    >>> from isolux.vocabulary.errors import IsoluxError
    >>> try:
    ...     load("absent/model")
    ... except IsoluxError:
    ...     print("said by name")
    said by name
    """
    found = open_checkpoint(
        spec, task, device=device, precision=precision, online=online, trusted=trust_checkpoint
    )
    _refuse_unfit(found.task, spec, prompts=prompts, question=question, classes=classes)
    if found.task in _PROMPTED:
        told = read_prompts(str(prompts))
        if found.task == "grounding":
            return _pointing(found, told, words, spec)
        asking = Describing if found.task == "zero-shot" else Finding
        return asking(found, told, top=top, least_score=least_score)
    if found.task in _FREE:
        return _telling(found, question, classes, words, top, spec)
    if found.task in _PLAIN:
        return _PLAIN[found.task](found)
    names = _names(found)
    if found.task == "classification":
        return Classifying(found, class_map(names, classes), top)
    drawing = Detecting if found.task == "detection" else Masking
    return drawing(found, ClassMap(names), least_score)


def _refuse_unfit(
    task: str, spec: str, *, prompts: str | None, question: str | None, classes: str | None
) -> None:
    """Refuse settings that a task does not take, and ask for those that it needs."""
    if task in _PROMPTED and prompts is None:
        raise SpecError(
            f"the task {task} needs prompts",
            expected="--model-option prompts=FILE, with lines such as `nurse: a photo of a nurse`",
            found="none",
            where=spec,
        )
    if task == "question" and question is None:
        raise SpecError(
            "there is no question",
            expected='--model-option "question=What work is this?"',
            found="none",
            where=spec,
        )
    if task not in _PROMPTED and prompts is not None:
        raise SpecError(f"the task {task} takes no prompts", found=prompts, where=spec)
    if task not in _FREE and question is not None:
        raise SpecError(f"the task {task} takes no question", found=question, where=spec)
    if task in ("detection", "segmentation") and classes is not None:
        raise SpecError(
            "boxes and masks keep the model's own classes",
            expected="--person-label, or another setting of the task",
            found=f"classes={classes}",
        )


def _pointing(
    found: Loaded, told: Mapping[str, tuple[str, ...]], words: int, spec: str
) -> Pointing:
    kind = str(found.model.config.model_type)
    if kind not in _WRITES_BOXES:
        raise SpecError(
            "it is not known how this model writes boxes",
            expected=" or ".join(_WRITES_BOXES),
            found=kind,
            where=spec,
            hint="task=zero-shot-detection is for detectors that are asked in words",
        )
    return Pointing(found, told, max(words, _BOX_TOKENS))


def _telling(
    found: Loaded, question: str | None, classes: str | None, words: int, top: int, spec: str
) -> Telling | Choosing:
    if question is not None and not hasattr(found.model, "generate"):
        if classes is not None:
            raise SpecError(
                "this model chooses among its own answers", expected="no classes", found=classes,
                where=spec,
            )  # fmt: skip
        return Choosing(found, question, _names(found), top)
    told = None if classes is None else read_prompts(classes)
    return Telling(found, question, told, words)


def _names(found: Loaded) -> tuple[str, ...]:
    names = dict(getattr(found.model.config, "id2label", {}) or {})
    return tuple(str(names[k]) for k in sorted(names, key=int))

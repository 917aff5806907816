"""Models of the transformers library: ``hf:org/name`` or ``hf:FOLDER``.

Images are prepared by the model's own processor. Weights come from a folder or from the cache of
the hub on this machine; nothing is downloaded unless ``online=yes`` says so. A checkpoint that is a
pickle can run any program when it is loaded: only safetensors are read, unless
``trust_checkpoint=yes`` says that its source is trusted.
"""

from __future__ import annotations

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
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import ModelInfo, Reference

__all__ = ["INFO", "load"]

INFO = ModelInfo(
    title="transformers",
    summary="Runs a model of the transformers library: labels, boxes, masks or embeddings.",
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

Predictor = Classifying | Describing | Detecting | Embedding | Finding | Masking


def load(
    spec: str,
    *,
    task: Task | None = None,
    classes: str | None = None,
    prompts: str | None = None,
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
    task : {"classification", "zero-shot", "detection", "zero-shot-detection", "segmentation", \
"embeddings"}, optional
        What it is asked for. Default: by the checkpoint's architecture.
    classes : str, optional
        File that maps the model's labels to the dataset's classes, ``label: class``.
    prompts : str, optional
        Of zero-shot tasks: a file of ``class: prompt`` or ``class: [prompt, prompt]``. Several
        prompts of one class are averaged (classification) or the highest counts (detection).
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
    if found.task in ("zero-shot", "zero-shot-detection"):
        if prompts is None:
            raise SpecError(
                f"the task {found.task} needs prompts",
                expected="--model-option prompts=FILE, with lines such as"
                " `nurse: a photo of a nurse`",
                found="none",
                where=spec,
            )
        told = read_prompts(prompts)
        asking = Describing if found.task == "zero-shot" else Finding
        return asking(found, told, top=top, least_score=least_score)
    if prompts is not None:
        raise SpecError(f"the task {found.task} takes no prompts", found=prompts, where=spec)
    if found.task == "embeddings":
        return Embedding(found)
    names = _names(found)
    if found.task == "classification":
        return Classifying(found, class_map(names, classes), top)
    if classes is not None:
        raise SpecError(
            "boxes and masks keep the model's own classes",
            expected="--person-label, or another setting of the task",
            found=f"classes={classes}",
        )
    if found.task == "detection":
        return Detecting(found, ClassMap(names), least_score)
    return Masking(found, ClassMap(names), least_score)


def _names(found: Loaded) -> tuple[str, ...]:
    names = dict(getattr(found.model.config, "id2label", {}) or {})
    return tuple(str(names[k]) for k in sorted(names, key=int))

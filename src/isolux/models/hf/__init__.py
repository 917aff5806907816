"""Models of the transformers library: ``hf:org/name`` or ``hf:FOLDER``.

Images are prepared by the model's own processor. Weights come from a folder or from the cache of
the hub on this machine; nothing is downloaded unless ``online=yes`` says so. A checkpoint that is a
pickle can run any program when it is loaded: only safetensors are read, unless
``trust_checkpoint=yes`` says that its source is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from isolux.core.errors import SpecError
from isolux.core.info import ModelInfo, Reference
from isolux.models._classes import ClassMap, build_class_map
from isolux.models._numbers import parse_class_numbers, parse_values
from isolux.models._prompts import PromptPooling, read_prompts
from isolux.models.hf.checkpoint import LoadedCheckpoint, Task, open_checkpoint
from isolux.models.hf.detection_models import InstanceSegmenter, ObjectDetector, ZeroShotDetector
from isolux.models.hf.grounding_models import GroundingModel
from isolux.models.hf.image_models import (
    ImageClassifier,
    ImageEmbedder,
    ImageEnlarger,
    NumberEstimator,
    ZeroShotClassifier,
)
from isolux.models.hf.missing_weights import zero_unused_missing_weights
from isolux.models.hf.pose_models import PoseEstimator
from isolux.models.hf.text_models import (
    AnswerClassifier,
    GenerationSettings,
    MultiQuestionModel,
    TextGenerator,
)

INFO = ModelInfo(
    title="transformers",
    summary="Runs a model of the transformers library: labels, numbers, boxes, masks, poses,"
    " captions, answers, embeddings or pictures.",
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
    ImageClassifier
    | AnswerClassifier
    | ZeroShotClassifier
    | ObjectDetector
    | ImageEmbedder
    | ImageEnlarger
    | NumberEstimator
    | ZeroShotDetector
    | InstanceSegmenter
    | GroundingModel
    | PoseEstimator
    | MultiQuestionModel
    | TextGenerator
)
_Prompts = Mapping[str, tuple[str, ...]]
_WRITES_BOXES = ("florence2", "kosmos-2")
_BOX_TOKENS = 64  # a phrase and some boxes of four tokens each
_PROMPTED = ("zero-shot", "zero-shot-detection", "grounding")
_CLASS_BY_TASK: dict[str, type[ImageEmbedder | ImageEnlarger | PoseEstimator]] = {
    "embeddings": ImageEmbedder,
    "pose": PoseEstimator,
    "super-resolution": ImageEnlarger,
}
_FREE_TEXT_TASKS = ("captioning", "question")  # their classes are words of a text


def load(
    spec: str,
    *,
    task: Task | None = None,
    classes: str | None = None,
    values: str | Sequence[float] | None = None,
    prompts: str | None = None,
    question: str | None = None,
    several: PromptPooling = "mean",
    words: int = 30,
    beams: int = 1,
    top_p: float | None = None,
    seed: int = 0,
    places: str | None = None,
    only_present: bool = False,
    top: int = 5,
    min_score: float = 0.05,
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
"segmentation", "pose", "captioning", "question", "embeddings", "number", "super-resolution"}, \
optional
        What it is asked for. Default: by the checkpoint's architecture.
    classes : str, optional
        File that maps the model's labels to the dataset's classes, ``label: class``; of captions
        and answers, of ``class: [word, word]``: the class whose words stand in the text.
    values : str or sequence of float, optional
        Of the task number: what each class stands for (``0-100``, or ``10,20,30``); the answer is
        their mean, weighted by the probabilities. Default: labels such as 25 or 20-29; of a model
        with one output, the number itself.
    prompts : str, optional
        Of zero-shot tasks and grounding: a file of ``class: prompt`` or ``class: [prompt,
        prompt]``; of the task question a file of questions (``fhibe_questions``, or your own, a
        question a line), each asked of every picture. Also by the name of a file that comes with
        isolux (``facet_clip``, ``facet_detic``, ``fhibe_scene``).
    several : {"mean", "nearest"}
        Of a class's prompts in zero-shot classification the mean direction counts (CLIP), or the
        prompt that the picture is nearest to (FHIBE), which is then kept beside the label. In
        detection the highest counts.
    question : str, optional
        What is asked of every picture; of captioning, how it is asked, or how the caption begins.
    words : int
        Of captions, answers and written boxes: how many tokens the model may write.
    beams : int
        Of beam search; 1 takes the likeliest word at each place.
    top_p : float, optional
        Draw each word among the likeliest that have this much probability together. Default: no
        word is drawn.
    seed : int
        Of the words that are drawn, for each picture anew.
    places : str, optional
        Of grounding by another model than Florence-2 and Kosmos-2: the words by which it writes a
        box, such as ``<bin_{}>`` of OFA; it is asked with the prompt as it stands.
    only_present : bool
        Of grounding: ask of a picture only for the classes of the dataset's people in it, which is
        all that the task grounding scores; of none of them, for all.
    top : int
        How many labels of a picture are kept, the best first.
    min_score : float
        Boxes and masks of a lower score are left out.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.
    precision : {"float32", "float16", "bfloat16"}
        The type of number that the network computes with; the shorter ones are for a GPU.
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
        that is a pickle or that lacks weights which the answers depend on, an architecture that
        does not do the task, prompts that are missing.

    Examples
    --------
    ``docs/how_to/models.md`` runs one. Weights that are not here, or a library that is not:

    >>> from isolux.core.errors import IsoluxError
    >>> try:
    ...     load("absent/model")
    ... except IsoluxError:
    ...     print("said by name")
    said by name
    """
    prompt_texts = None if prompts is None else read_prompts(prompts)  # before minutes of weights
    checkpoint = open_checkpoint(
        spec, task, device=device, precision=precision, online=online, is_trusted=trust_checkpoint
    )
    _check_settings_fit_task(
        checkpoint.task,
        spec,
        prompts=prompts,
        question=question,
        classes=classes,
        values=values,
        only_present=only_present,
    )
    generation = _read_generation_settings(words, beams, top_p, seed, spec)

    def build_predictor(checkpoint: LoadedCheckpoint) -> Predictor:
        if prompt_texts is not None and checkpoint.task == "zero-shot":
            return ZeroShotClassifier(checkpoint, prompt_texts, top=top, pooling=several)
        if prompt_texts is not None and checkpoint.task == "zero-shot-detection":
            return ZeroShotDetector(checkpoint, prompt_texts, top=top, min_score=min_score)
        if checkpoint.task in (*_FREE_TEXT_TASKS, "grounding"):
            text_model = _build_text_model(
                checkpoint, generation, prompt_texts, question, classes, places, top, spec
            )
            return (
                replace(text_model, by_class=only_present)
                if isinstance(text_model, GroundingModel)
                else text_model
            )
        if checkpoint.task in _CLASS_BY_TASK:
            return _CLASS_BY_TASK[checkpoint.task](checkpoint)
        names = _list_class_names_by_index(checkpoint)
        if checkpoint.task in ("classification", "number"):
            return (
                NumberEstimator(checkpoint, _read_class_values(names, values))
                if checkpoint.task == "number"
                else ImageClassifier(checkpoint, build_class_map(names, classes), top)
            )
        drawing = ObjectDetector if checkpoint.task == "detection" else InstanceSegmenter
        return drawing(checkpoint, ClassMap(names), min_score)

    return build_predictor(zero_unused_missing_weights(checkpoint, build_predictor, spec))


def _read_class_values(
    names: Sequence[str], values: str | Sequence[float] | None
) -> tuple[float, ...]:
    """Read the number that each class stands for; of one output, none: it is the number."""
    if values is None:
        return () if len(names) == 1 else parse_class_numbers(names)
    class_values = parse_values(values)
    if len(class_values) != len(names):
        raise SpecError(
            "the numbers do not fit the model",
            expected=f"the number of each of its {len(names):,} classes: --model-option"
            " values=0-100 or values=10,20,30",
            found=f"{len(class_values):,}",
        )
    return class_values


def _read_generation_settings(
    words: int, beams: int, top_p: float | None, seed: int, spec: str
) -> GenerationSettings:
    if words < 1 or beams < 1 or (top_p is not None and not 0.0 < top_p <= 1.0):
        raise SpecError(
            "it cannot be written so",
            expected="words and beams of at least 1; top_p above 0, at most 1",
            found=f"words={words}, beams={beams}, top_p={top_p}",
            where=spec,
        )
    return GenerationSettings(words, beams, top_p, seed)


def _build_text_model(
    checkpoint: LoadedCheckpoint,
    generation: GenerationSettings,
    prompt_texts: _Prompts | None,
    question: str | None,
    classes: str | None,
    location_template: str | None,
    top: int,
    spec: str,
) -> GroundingModel | MultiQuestionModel | TextGenerator | AnswerClassifier:
    """Make a model that answers in words: boxes, answers to several questions, or to one."""
    if prompt_texts is not None and checkpoint.task == "grounding":
        return _build_grounding_model(checkpoint, prompt_texts, generation, location_template, spec)
    if prompt_texts is None:
        return _build_text_generator(checkpoint, question, classes, generation, top, spec)
    asking = tuple(
        (text, _build_text_generator(checkpoint, text, None, generation, 1, spec))
        for texts in prompt_texts.values()
        for text in texts
    )
    return MultiQuestionModel(asking, prompt_texts)


def _check_settings_fit_task(
    task: str,
    spec: str,
    *,
    prompts: str | None,
    question: str | None,
    classes: str | None,
    values: str | Sequence[float] | None,
    only_present: bool,
) -> None:
    """Refuse settings that a task does not take, and ask for those that it needs."""
    if task in _PROMPTED and prompts is None:
        raise SpecError(
            f"the task {task} needs prompts",
            expected="--model-option prompts=FILE, with lines such as `nurse: a photo of a nurse`",
            found="none",
            where=spec,
        )
    if task == "question" and (question is None) == (prompts is None):
        raise SpecError(
            "there is no question" if question is None else "there are two sources of questions",
            expected='--model-option "question=What work is this?", or prompts=FILE of several',
            found="none" if question is None else f"question={question} and prompts={prompts}",
            where=spec,
        )
    if task not in (*_PROMPTED, "question") and prompts is not None:
        raise SpecError(f"the task {task} takes no prompts", found=prompts, where=spec)
    if task not in _FREE_TEXT_TASKS and question is not None:
        raise SpecError(f"the task {task} takes no question", found=question, where=spec)
    if task != "grounding" and only_present:
        raise SpecError(f"the task {task} takes no only_present", found="only_present", where=spec)
    if task != "number" and values is not None:
        raise SpecError(f"the task {task} takes no values", found=f"{values}", where=spec)
    if task in ("number", "super-resolution") and classes is not None:
        raise SpecError(f"the task {task} takes no classes", found=classes, where=spec)
    if task in ("detection", "segmentation") and classes is not None:
        raise SpecError(
            "boxes and masks keep the model's own classes",
            expected="--person-label, or another setting of the task",
            found=f"classes={classes}",
        )


def _build_grounding_model(
    checkpoint: LoadedCheckpoint,
    prompt_texts: _Prompts,
    generation: GenerationSettings,
    location_template: str | None,
    spec: str,
) -> GroundingModel:
    model_type = str(checkpoint.model.config.model_type)
    if location_template is None and model_type not in _WRITES_BOXES:
        raise SpecError(
            "it is not known how this model writes boxes",
            expected=" or ".join(_WRITES_BOXES) + ', or places, as in "places=<bin_{}>"',
            found=model_type,
            where=spec,
            hint="task=zero-shot-detection is for detectors that take text prompts",
        )
    if location_template is not None and location_template.count("{}") != 1:
        raise SpecError(
            "places are words with a number in them",
            expected='"places=<bin_{}>"',
            found=f"places={location_template}",
            where=spec,
        )
    if location_template is not None:
        return GroundingModel(checkpoint, prompt_texts, generation, location_template)
    long = replace(generation, words=max(generation.words, _BOX_TOKENS))
    return GroundingModel(checkpoint, prompt_texts, long)


def _build_text_generator(
    checkpoint: LoadedCheckpoint,
    question: str | None,
    classes: str | None,
    generation: GenerationSettings,
    top: int,
    spec: str,
) -> TextGenerator | AnswerClassifier:
    if question is not None and not hasattr(checkpoint.model, "generate"):
        if classes is not None:
            raise SpecError(
                "this model chooses among its own answers",
                expected="no classes",
                found=classes,
                where=spec,
            )
        return AnswerClassifier(checkpoint, question, _list_class_names_by_index(checkpoint), top)
    class_words = None if classes is None else read_prompts(classes)
    return TextGenerator(checkpoint, question, class_words, generation)


def _list_class_names_by_index(checkpoint: LoadedCheckpoint) -> tuple[str, ...]:
    names = dict(getattr(checkpoint.model.config, "id2label", {}) or {})
    return tuple(str(names[k]) for k in sorted(names, key=int))

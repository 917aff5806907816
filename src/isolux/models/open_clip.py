"""CLIP models of the open_clip library: ``open_clip:ARCH/TAG``, asked in prompts.

Of a class's prompts the mean direction counts (Radford et al. 2021, section 3.1.4).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.extras import import_optional
from isolux.core.info import ModelInfo, Reference
from isolux.models._classes import build_embedding_table
from isolux.models._preprocessing import ModelInput, Preprocessing, run_network_on_inputs
from isolux.models._prompts import (
    PromptPooling,
    build_long_prompt_error,
    build_prompt_label_table,
    embed_prompts_by_class,
    read_prompts,
)
from isolux.models._torch import (
    build_missing_weights_error,
    hash_state_dict,
    import_torch,
    load_weights_from_file,
    move_to_device_for_inference,
)

INFO = ModelInfo(
    title="open_clip",
    summary="Runs a CLIP model of the open_clip library: zero-shot labels, or embeddings.",
    references=(
        Reference(
            key="open_clip",
            citation="Cherti, M., Beaumont, R., Wightman, R., Wortsman, M., Ilharco, G., Gordon,"
            " C., Schuhmann, C., Schmidt, L., & Jitsev, J. (2023). Reproducible scaling laws for"
            " contrastive language-image learning. In CVPR (pp. 2818–2829).",
            url="https://arxiv.org/abs/2212.07143",
        ),
    ),
    licence="each model's own",
    assumptions=("the tag's configuration is how its authors prepared pictures",),
    predicts="several",
    needs="isolux[open_clip]; a file of weights, or weights in the hub's cache",
    packages=("open-clip-torch", "torch"),
)


@dataclass(frozen=True, slots=True)
class OpenClip:
    """A loaded model, and the directions of the classes that it is asked about."""

    torch: Any
    inner: Any
    prepare: Preprocessing
    predicts: str
    prompts: dict[str, tuple[str, ...]]
    words: Any
    top: int
    pooling: PromptPooling
    device: str
    identity: dict[str, Any]

    def __call__(self, pictures: Sequence[ModelInput]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        width = len(self.words) if self.prompts else 1
        outputs = run_network_on_inputs(self.torch, self._run, pictures, self.device, width)
        if self.predicts == "embeddings":
            return build_embedding_table(outputs)
        has_bias = getattr(self.inner, "logit_bias", None) is not None
        return build_prompt_label_table(
            outputs, self.prompts, pooling=self.pooling, is_sigmoid=has_bias, top=self.top
        )

    @property
    def extractor(self) -> Any:
        """What makes a picture's vector, without what reads texts."""
        return self.inner.visual

    def features(self, values: Any) -> Any:
        """Compute the embeddings, not normalised, as a tensor for fine-tuning."""
        return self.inner.encode_image(values, normalize=False)

    def _run(self, values: Any) -> Any:
        units = self.inner.encode_image(values, normalize=True)
        if self.predicts == "embeddings":
            return units
        logits = self.inner.logit_scale.exp() * units @ self.words.T
        bias = getattr(self.inner, "logit_bias", None)
        return logits if bias is None else logits + bias


def load(
    spec: str,
    *,
    answers: Literal["labels", "embeddings"] = "labels",
    prompts: str | None = None,
    several: PromptPooling = "mean",
    weights: str | None = None,
    top: int = 5,
    device: str = "cpu",
    online: bool = False,
) -> OpenClip:
    """Load a model.

    Parameters
    ----------
    spec : str
        ``ARCH`` with ``weights``, or ``ARCH/TAG`` of ``open_clip.list_pretrained()``.
    answers : {"labels", "embeddings"}
        Which class's prompts a picture is nearest to, or its direction.
    prompts : str, optional
        File of ``class: prompt`` or ``class: [prompt, prompt]``, or one that comes with isolux
        (facet_clip, fhibe_scene); labels need it.
    several : {"mean", "nearest"}
        Of a class's prompts the mean direction counts (CLIP), or the prompt that the picture is
        nearest to (FHIBE), which is then kept beside the label.
    weights : str, optional
        The weights, as a safetensors file. Default: the hub's cache.
    top : int
        How many labels of a picture are kept.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.
    online : bool
        Let the hub be asked for weights that are not on this machine.

    Returns
    -------
    OpenClip

    Raises
    ------
    SpecError
        open_clip is not installed, no weights, no prompts.
    UnknownNameError
        No such architecture, with the nearest names.

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
    purpose = f"the model open_clip:{spec}"
    torch = import_torch(purpose, "open_clip")
    library = import_optional(
        "open_clip", package="open_clip_torch", extra="open_clip", purpose=purpose
    )
    arch, _, tag = spec.partition("/")
    if arch not in library.list_models():
        raise UnknownNameError("open_clip architecture", arch, library.list_models())
    if answers == "labels" and prompts is None:
        raise SpecError(
            "labels of a CLIP model need prompts",
            expected="--model-option prompts=FILE, with lines such as `nurse: a photo of a nurse`",
            found="none",
        )
    prompt_texts = (
        {} if prompts is None else dict(read_prompts(prompts))
    )  # before minutes of weights
    inner = _create_open_clip_network(library, arch, tag, weights)
    weight_hashes = (
        {"state": hash_state_dict(inner)}
        if weights is None
        else load_weights_from_file(inner, weights)
    )
    inner = move_to_device_for_inference(inner, device)
    prepare = _read_open_clip_preprocessing(inner)
    tokenizer = library.get_tokenizer(arch)

    def embed_to_unit_vectors(texts: Sequence[str]) -> Any:
        return inner.encode_text(_tokenise_prompts(tokenizer, texts).to(device), normalize=True)

    words = embed_prompts_by_class(torch, embed_to_unit_vectors, prompt_texts, several)
    identity = {
        "arch": arch,
        "config": library.get_model_config(arch),
        "weights": weight_hashes,
        "preprocessing": prepare.to_json(),
        "answers": answers,
        "prompts": [[name, list(texts)] for name, texts in prompt_texts.items()],
        "tokens": [tokenizer(list(texts)).tolist() for texts in prompt_texts.values()],
        "prompt_length": dict.fromkeys(("max_tokens", "padded_to"), tokenizer.context_length),
        "top": top,
        "several": several,
        "device": device,
    }
    return OpenClip(
        torch, inner, prepare, answers, prompt_texts, words, top, several, device, identity
    )


def _tokenise_prompts(tokenizer: Any, texts: Sequence[str]) -> Any:
    """Encode prompts, padded to the text tower's length; a tokenizer cuts off what is longer.

    A prompt that is not cut off has the same tokens where there is more room, and then padding.
    """
    length = int(tokenizer.context_length)
    token_ids, longer_ids = tokenizer(list(texts)), tokenizer(list(texts), 2 * length)
    for text, short, long in zip(texts, token_ids, longer_ids, strict=True):
        has_more = bool((long[length:] != long[-1]).any())
        if has_more or not bool((long[:length] == short).all()):
            raise build_long_prompt_error(text, length, "more")
    return token_ids


def _create_open_clip_network(library: Any, arch: str, tag: str, weights: str | None) -> Any:
    if weights is None and not tag:
        raise SpecError(
            "it is not said which weights are meant",
            expected="open_clip:ARCH/TAG, or --model-option weights=FILE.safetensors",
            found=f"open_clip:{arch}",
        )
    try:
        return library.create_model(arch, pretrained=None if weights is not None else tag)
    except Exception as error:
        problem = f"the weights of {arch}/{tag} are not on this machine"
        raise build_missing_weights_error(problem, error) from error


def _read_open_clip_preprocessing(inner: Any) -> Preprocessing:
    size = inner.visual.image_size
    height, width = (size, size) if isinstance(size, int) else size
    config = dict(getattr(inner.visual, "preprocess_cfg", None) or {})
    fit = {"shortest": "crop", "longest": "pad", "squash": "stretch"}
    return Preprocessing(
        height,
        width,
        fit=fit.get(str(config.get("resize_mode")), "crop"),  # type: ignore[arg-type]
        filter=str(config.get("interpolation") or "bicubic"),  # type: ignore[arg-type]
        mean=tuple(config.get("mean") or inner.visual.image_mean),
        std=tuple(config.get("std") or inner.visual.image_std),
        fill=int(config.get("fill_color") or 0),
    )

"""A network that `isolux train fairface` trained, or FairFace's own: ``fairface:FOLDER``.

One ResNet-34 answers several questions of a face: perceived race, perceived gender presentation
and perceived age. ``answers`` says which one is asked. It is an instrument for measuring datasets,
by which a collection's shares are estimated where no one labelled it; what it says of one person
is how annotators would see them, wrong for a known share of each group, and no product's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from isolux.models._classes import label_rows, probabilities, vector_rows
from isolux.models._preprocessing import Prepared, Preprocessing, run_network
from isolux.models._torch import fit_weights, on_device, read_weights, torch_for
from isolux.models.fairface.heads import (
    FAIRFACE_HEADS,
    FILE,
    MEAN,
    SIDE,
    STD,
    Heads,
    heads_in,
    heads_text,
)
from isolux.models.fairface.network import features, logits, resnet34, start_from
from isolux.vocabulary import works
from isolux.vocabulary.errors import FileError, SpecError
from isolux.vocabulary.extras import needed
from isolux.vocabulary.info import ModelInfo

__all__ = [
    "FAIRFACE_HEADS", "FILE", "INFO", "MEAN", "SIDE", "STD", "FaceModel", "Heads", "features",
    "heads_text", "load", "logits", "resnet34", "start_from",
]  # fmt: skip

_NOT_A_PRODUCT = (
    "This network guesses how annotators perceived a face. It measures datasets; what it says of"
    " one person is not to be acted on."
)

INFO = ModelInfo(
    title="FairFace's network",
    summary="Runs a ResNet-34 with heads for perceived race, gender and age: labels or embeddings.",
    references=(works.FAIRFACE.at("section 4.2"),),
    licence="that of the data it was trained on; FairFace's own weights are CC BY 4.0",
    assumptions=(
        "faces are cut out as those that it was trained on",
        "what annotators perceived is not what people say of themselves",
        "it estimates the shares of a collection; it is not a product for judging people",
    ),
    predicts="several",
    needs="isolux[train]; a folder of `isolux train fairface`, or a .safetensors file",
    packages=("torch",),
)


@dataclass(frozen=True, slots=True)
class FaceModel:
    """A loaded network, asked one of its questions."""

    torch: Any
    inner: Any
    prepare: Preprocessing
    predicts: str
    names: tuple[str, ...]
    outputs: slice
    top: int
    device: str
    identity: dict[str, Any]
    notes: tuple[str, ...] = (_NOT_A_PRODUCT,)

    def __call__(self, pictures: Sequence[Prepared]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        run = features if self.predicts == "embeddings" else logits
        network = partial(run, self.torch, self.inner)
        found = run_network(self.torch, network, pictures, self.device, self.outputs.stop)
        if self.predicts == "embeddings":
            return vector_rows(found)
        scores = probabilities(found[:, self.outputs], "softmax")
        return label_rows(scores, self.names, self.top)

    def features(self, values: Any) -> Any:
        """Give what the last layer is given, of pictures as a tensor: to be fine-tuned."""
        return features(self.torch, self.inner, values)


def load(
    spec: str, *, answers: str | None = None, top: int | None = None, device: str = "cpu"
) -> FaceModel:
    """Load a network.

    Parameters
    ----------
    spec : str
        A folder that `isolux train fairface` wrote, or a .safetensors file: its own, or the
        weights of a ResNet-34 with FairFace's 18 outputs in torchvision's names.
    answers : str, optional
        The question: a head of the network (race, gender, age), or embeddings. Default: the head,
        where there is one alone.
    top : int, optional
        How many labels of a picture are kept, the likeliest first. Default: all.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.

    Returns
    -------
    FaceModel

    Raises
    ------
    FileError
        No such file, one that is a pickle, a training that has not finished.
    SpecError
        No question, or one that the network has no head for; weights of another network; no
        PyTorch; no such device.

    Examples
    --------
    ``docs/methods/training.md`` trains one and runs it.

    >>> load("nowhere")
    Traceback (most recent call last):
        ...
    isolux.vocabulary.errors.FileError: there is no such network
      expected: a folder that `isolux train fairface` wrote, or a .safetensors file
      where: nowhere
    """
    path = _file(spec)
    torch = torch_for(f"the model fairface:{spec}", "train")
    state, held = read_weights(path)
    last = state.get("fc.weight")
    if last is None or len(last.shape) != 2:
        raise SpecError(
            "these are the weights of another network",
            expected="a ResNet-34, whose last layer is called fc",
            found=", ".join(list(state)[:3]) or "no weights",
            where=str(path),
        )
    heads = heads_in(_metadata(path), len(last), path)
    inner = resnet34(torch, len(last))
    fit_weights(inner, state, path)
    asked = _asked(heads, answers, str(path))
    names = () if asked == "embeddings" else heads.classes[asked]
    prepare = Preprocessing(heads.side, heads.side, mean=MEAN, std=STD)
    kept = len(names) if top is None else top
    identity = {
        "weights": held, "heads": {k: list(v) for k, v in heads.classes.items()},
        "answers": asked, "preprocessing": prepare.said(), "top": kept, "device": device,
    }  # fmt: skip
    where = slice(0, heads.outputs) if asked == "embeddings" else heads.slices()[asked]
    kind = "embeddings" if asked == "embeddings" else "labels"
    return FaceModel(
        torch, on_device(inner, device), prepare, kind, names, where, kept, device, identity
    )


def _file(spec: str) -> Path:
    """Find the file of weights; say of a folder that has none yet that it is not finished."""
    path = Path(spec).expanduser()
    if path.is_dir():
        if (path / FILE).is_file():
            return path / FILE
        begun = (path / "checkpoint.safetensors").is_file()
        raise FileError(
            "this training has not finished" if begun else "this folder holds no trained network",
            expected=FILE,
            where=str(path),
            hint="the same `isolux train fairface` goes on with it" if begun else None,
        )
    if not path.is_file():
        raise FileError(
            "there is no such network",
            expected="a folder that `isolux train fairface` wrote, or a .safetensors file",
            where=spec,
        )
    return path


def _metadata(path: Path) -> dict[str, str] | None:
    library = needed(
        "safetensors", package="safetensors", extra="train", purpose="a file of weights"
    )
    with library.safe_open(str(path), framework="pt") as held:
        return dict(held.metadata() or {}) or None


def _asked(heads: Heads, answers: str | None, where: str) -> str:
    known = [*heads.classes, "embeddings"]
    if answers is None and len(heads.classes) == 1:
        return known[0]
    if answers not in known:
        raise SpecError(
            "nothing says what the network should answer"
            if answers is None
            else f"the network has no head {answers!r}",
            expected="--model-option answers=" + ", ".join(known[:-1]) + " or embeddings",
            found="none" if answers is None else repr(answers),
            where=where,
        )
    return str(answers)

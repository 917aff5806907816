"""A network that `isolux train fairface` trained, or FairFace's own: ``fairface:FOLDER``.

One ResNet-34 answers several questions of a face: perceived race, perceived gender presentation
and perceived age. ``answers`` says which one is asked. It is an instrument for measuring datasets,
by which a collection's shares are estimated where no one labelled it; what it says of one person
is how annotators would see them, wrong for a known share of each group, and no product's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core import citations
from isolux.core.errors import FileError, SpecError
from isolux.core.extras import import_optional
from isolux.core.info import ModelInfo
from isolux.datasets.fairface import AGES, GENDERS, RACES
from isolux.models._classes import build_embedding_table, build_top_label_table, to_probabilities
from isolux.models._preprocessing import ModelInput, Preprocessing, run_network_on_inputs
from isolux.models._torch import (
    import_torch,
    load_state_dict_or_raise,
    move_to_device_for_inference,
    read_safetensors_and_hash,
)

_NOT_A_PRODUCT = (
    "This network guesses how annotators perceived a face. It measures datasets; what it says of"
    " one person is not to be acted on."
)

INFO = ModelInfo(
    title="FairFace's network",
    summary="Runs a ResNet-34 with heads for perceived race, gender and age: labels or embeddings.",
    references=(citations.FAIRFACE.with_location("section 4.2"),),
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

    def __call__(self, pictures: Sequence[ModelInput]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        run = compute_resnet_features if self.predicts == "embeddings" else compute_head_logits
        network = partial(run, self.torch, self.inner)
        outputs = run_network_on_inputs(
            self.torch, network, pictures, self.device, self.outputs.stop
        )
        if self.predicts == "embeddings":
            return build_embedding_table(outputs)
        scores = to_probabilities(outputs[:, self.outputs], "softmax")
        return build_top_label_table(scores, self.names, self.top)

    def features(self, values: Any) -> Any:
        """Return the features before the last layer, as a tensor for fine-tuning."""
        return compute_resnet_features(self.torch, self.inner, values)


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
    isolux.core.errors.FileError: there is no such network
      expected: a folder that `isolux train fairface` wrote, or a .safetensors file
      where: nowhere
    """
    path = _find_weights_file(spec)
    torch = import_torch(f"the model fairface:{spec}", "train")
    state, weight_hashes = read_safetensors_and_hash(path)
    last = state.get("fc.weight")
    if last is None or len(last.shape) != 2:
        raise SpecError(
            "these are the weights of another network",
            expected="a ResNet-34, whose last layer is called fc",
            found=", ".join(list(state)[:3]) or "no weights",
            where=str(path),
        )
    heads = parse_heads_or_default(_read_safetensors_metadata(path), len(last), path)
    inner = build_resnet34(torch, len(last))
    load_state_dict_or_raise(inner, state, path)
    head = _choose_head(heads, answers, str(path))
    names = () if head == "embeddings" else heads.classes[head]
    prepare = Preprocessing(heads.input_size_px, heads.input_size_px, mean=MEAN, std=STD)
    n_labels = len(names) if top is None else top
    identity = {
        "weights": weight_hashes,
        "heads": {k: list(v) for k, v in heads.classes.items()},
        "answers": head,
        "preprocessing": prepare.to_json(),
        "top": n_labels,
        "device": device,
    }
    output_slice = slice(0, heads.outputs) if head == "embeddings" else heads.slices()[head]
    prediction_type = "embeddings" if head == "embeddings" else "labels"
    return FaceModel(
        torch,
        move_to_device_for_inference(inner, device),
        prepare,
        prediction_type,
        names,
        output_slice,
        n_labels,
        device,
        identity,
    )


def _find_weights_file(spec: str) -> Path:
    """Find the file of weights; say of a folder that has none yet that it is not finished."""
    path = Path(spec).expanduser()
    if path.is_dir():
        if (path / FILE).is_file():
            return path / FILE
        is_started = (path / "checkpoint.safetensors").is_file()
        raise FileError(
            "this training has not finished"
            if is_started
            else "this folder holds no trained network",
            expected=FILE,
            where=str(path),
            hint="the same `isolux train fairface` goes on with it" if is_started else None,
        )
    if not path.is_file():
        raise FileError(
            "there is no such network",
            expected="a folder that `isolux train fairface` wrote, or a .safetensors file",
            where=spec,
        )
    return path


def _read_safetensors_metadata(path: Path) -> dict[str, str] | None:
    library = import_optional(
        "safetensors", package="safetensors", extra="train", purpose="a file of weights"
    )
    with library.safe_open(str(path), framework="pt") as reader:
        return dict(reader.metadata() or {}) or None


def _choose_head(heads: Heads, answers: str | None, source: str) -> str:
    head_names = [*heads.classes, "embeddings"]
    if answers is None and len(heads.classes) == 1:
        return head_names[0]
    if answers not in head_names:
        raise SpecError(
            "nothing says what the network should answer"
            if answers is None
            else f"the network has no head {answers!r}",
            expected="--model-option answers=" + ", ".join(head_names[:-1]) + " or embeddings",
            found="none" if answers is None else repr(answers),
            where=source,
        )
    return str(answers)


# The heads of a network that answers several questions of one picture, and its file.

FILE = "fairface.safetensors"
"""What a trained network's weights are called in its folder."""

INPUT_SIZE_PX = 224  # pixels, as the authors' released code
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_KEY = "isolux"


@dataclass(frozen=True, slots=True)
class Heads:
    """What a network is asked, in the order of its outputs, and how pictures are brought to it.

    Parameters
    ----------
    classes : mapping of str to tuple of str
        Each head's classes.
    input_size_px : int
        Height and width of its input in pixels.
    """

    classes: Mapping[str, tuple[str, ...]]
    input_size_px: int = INPUT_SIZE_PX

    @property
    def outputs(self) -> int:
        """How many numbers the last layer has."""
        return sum(len(names) for names in self.classes.values())

    def slices(self) -> dict[str, slice]:
        """Say where each head's outputs lie.

        Examples
        --------
        >>> Heads({"light": ("day", "night"), "hue": ("red", "blue", "grey")}).slices()["hue"]
        slice(2, 5, None)
        """
        slices, offset = {}, 0
        for name, classes in self.classes.items():
            slices[name] = slice(offset, offset + len(classes))
            offset += len(classes)
        return slices


FAIRFACE_HEADS: dict[str, tuple[str, ...]] = {"race": RACES, "gender": GENDERS, "age": AGES}
"""The paper's: 7, 2 and 9 classes, in the order of the authors' released weights."""


def heads_to_metadata(heads: Heads, **extra_metadata: Any) -> dict[str, str]:
    """Write heads as a file's metadata holds them."""
    metadata = {
        "heads": {k: list(v) for k, v in heads.classes.items()},
        "side": heads.input_size_px,
        **extra_metadata,
    }
    return {_KEY: json.dumps(metadata, ensure_ascii=False)}


def parse_heads_or_default(
    metadata: Mapping[str, str] | None, n_outputs: int, source: str | Path
) -> Heads:
    """Read what a file's outputs are."""
    text = (metadata or {}).get(_KEY)
    if text is None:
        default_heads = Heads(FAIRFACE_HEADS)
        if n_outputs != default_heads.outputs:
            raise SpecError(
                "nothing says what the network's outputs are",
                expected="a file that `isolux train fairface` wrote, or FairFace's 18 outputs",
                found=f"{n_outputs:,} outputs",
                where=str(source),
            )
        return default_heads
    try:
        file_heads = json.loads(text)
        classes = {str(k): _to_name_tuple(v) for k, v in file_heads["heads"].items()}
        heads = Heads(classes, int(file_heads["side"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(
            "the file does not say what its outputs are", found=str(error)[:100], where=str(source)
        ) from error
    if heads.outputs != n_outputs:
        raise SpecError(
            "the file's heads do not fit its network",
            expected=f"{n_outputs:,} classes",
            found=f"{heads.outputs:,}",
            where=str(source),
        )
    return heads


def _to_name_tuple(classes: Sequence[Any]) -> tuple[str, ...]:
    if isinstance(classes, str):
        raise TypeError("a list of classes is a text")
    return tuple(str(name) for name in classes)


# ResNet-34 in plain PyTorch, its parts named as torchvision names them.
# He et al. (2016), Table 1: a 7 x 7 convolution, pooling, four stages of 3, 4, 6 and 3 blocks of
# two 3 x 3 convolutions, and the mean over the picture. torchvision is not needed for it, and a
# file of weights of torchvision's ``build_resnet34`` fits: FairFace's authors released theirs in
# that form.

FEATURES = 512
"""Numbers that the network makes of a picture before its last layer."""

_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # channels, blocks, first stride


def build_resnet34(torch: Any, n_outputs: int, *, seed: int = 0) -> Any:
    """Make the network with random weights, as torchvision draws them."""
    nn = torch.nn
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = nn.Module()
        net.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        net.bn1 = nn.BatchNorm2d(64)
        in_channels = 64
        for k, (channels, blocks, stride) in enumerate(_STAGES):
            blocks_of_stage = [_build_residual_block(nn, in_channels, channels, stride)]
            blocks_of_stage += [
                _build_residual_block(nn, channels, channels, 1) for _ in range(blocks - 1)
            ]
            setattr(net, f"layer{k + 1}", nn.ModuleList(blocks_of_stage))
            in_channels = channels
        net.fc = nn.Linear(FEATURES, n_outputs)
        for module in net.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return net


def _build_residual_block(nn: Any, in_channels: int, out_channels: int, stride: int) -> Any:
    block = nn.Module()
    block.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, 1, bias=False)
    block.bn1 = nn.BatchNorm2d(out_channels)
    block.conv2 = nn.Conv2d(out_channels, out_channels, 3, 1, 1, bias=False)
    block.bn2 = nn.BatchNorm2d(out_channels)
    if stride != 1 or in_channels != out_channels:
        convolution = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)
        block.downsample = nn.Sequential(convolution, nn.BatchNorm2d(out_channels))
    return block


def compute_resnet_features(torch: Any, net: Any, images: Any) -> Any:
    """Compute features ``[n, 512]`` of images ``[n, 3, height, width]``, 32 pixels or larger."""
    functional = torch.nn.functional
    x = functional.relu(net.bn1(net.conv1(images)))
    x = functional.max_pool2d(x, 3, 2, 1)
    for stage in (net.layer1, net.layer2, net.layer3, net.layer4):
        for block in stage:
            inner = functional.relu(block.bn1(block.conv1(x)))
            shortcut = block.downsample(x) if hasattr(block, "downsample") else x
            x = functional.relu(block.bn2(block.conv2(inner)) + shortcut)
    return x.mean(dim=(2, 3))


def compute_head_logits(torch: Any, net: Any, images: Any) -> Any:
    """Compute logits ``[n, outputs]`` of images, the heads concatenated."""
    return net.fc(compute_resnet_features(torch, net, images))


def load_initial_weights(net: Any, path: str | Path) -> str:
    """Put a file's weights into a network, all but a last layer of other classes; give their hash.

    Raises
    ------
    FileError
        No such file, or a pickle.
    SpecError
        Weights of another network.
    """
    state, weight_hashes = read_safetensors_and_hash(path)
    network_state, file_state = net.state_dict(), dict(state)
    for name in ("fc.weight", "fc.bias"):
        if name in file_state and file_state[name].shape != network_state[name].shape:
            file_state[name] = network_state[name]
    load_state_dict_or_raise(net, file_state, path)
    return weight_hashes["file"]

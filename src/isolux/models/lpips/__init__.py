"""LPIPS: how unlike two pictures look, by the features of VGG-16 (Zhang et al. 2018).

The tasks reconstruction and super-resolution call it. The network's 13 convolutions and LPIPS'
five linear layers are run here with PyTorch alone: the authors' package ``lpips`` gives the linear
layers' weights, and is not imported, for it imports torchvision, which fails with PyTorch on
machines without CUDA. A test holds the distance equal to that package's own.

Nothing is downloaded. VGG-16's weights are a file of torchvision's that is on the machine already.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core import citations
from isolux.core.errors import FileError, SpecError
from isolux.core.info import ModelInfo, Reference
from isolux.io.hashing import sha256_file
from isolux.models._torch import build_device_error

_MIN_TORCH_VERSION = (2, 6)


def import_torch(purpose: str, extra: str, instead: str = "") -> Any:
    """Import PyTorch, or say what to install."""
    try:
        return import_module("torch")
    except (ImportError, OSError, RuntimeError) as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        raise SpecError(
            f"{purpose} needs PyTorch, which "
            + ("is not installed" if absent else "cannot be imported"),
            found=None if absent else (str(error).splitlines() or [""])[0][:200],
            hint=f"pip install 'isolux[{extra}]'{instead}",
        ) from error


def read_torch_state_dict(torch: Any, path: Path) -> dict[str, Any]:
    """Read a file of weights: names and tensors, float32 on the CPU.

    Its restricted reader (``weights_only``) builds tensors and plain containers and refuses all
    else; versions before 2.6 could be made to run code even so (CVE-2025-32434), and are not used.
    """
    source = str(path)
    version = str(torch.__version__)
    if tuple(int(number) for number in version.split(".")[:2]) < _MIN_TORCH_VERSION:
        raise SpecError(
            "this PyTorch can be made to run code by a file of weights (CVE-2025-32434)",
            expected="PyTorch 2.6 or newer",
            found=f"PyTorch {version}",
            hint="pip install --upgrade torch",
        )
    if not path.is_file():
        raise FileError("there is no such file of weights", where=source)
    try:
        # Only tensors are built, no code runs: `weights_only`, in a version where that holds.
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # PyTorch's reader raises whatever its parts do
        raise FileError(
            "this file of weights cannot be read",
            expected="a state dictionary that PyTorch saved",
            found=(str(error).splitlines() or [type(error).__name__])[0][:160],
            where=source,
        ) from error
    if not isinstance(state, dict) or not all(torch.is_tensor(v) for v in state.values()):
        raise FileError(
            "this file holds no weights",
            expected="a mapping of names to tensors",
            found=type(state).__name__,
            where=source,
        )
    return {str(name): tensor.detach().to(torch.float32) for name, tensor in state.items()}


INFO = ModelInfo(
    title="LPIPS (VGG-16)",
    summary="A learned distance between two pictures, from the features of VGG-16: 0 or more, lower"
    " is more alike.",
    references=(
        citations.LPIPS.with_location("section 3, equation 1; linear layers of version 0.1"),
        Reference(
            key="vgg",
            citation="Simonyan, K., & Zisserman, A. (2015). Very deep convolutional networks for"
            " large-scale image recognition. In International Conference on Learning"
            " Representations (ICLR).",
            location="table 1, configuration D",
            url="https://arxiv.org/abs/1409.1556",
        ),
    ),
    licence="BSD-2-Clause (the linear layers' weights, in the package lpips); VGG-16's weights have"
    " the terms of those who trained them",
    assumptions=(
        "what looks alike to VGG-16, trained on ImageNet, looks alike to people, whoever is in it",
        "the linear layers were fitted to torchvision's weights of VGG-16, and to no others",
    ),
    predicts="distances",
)

_BLOCKS = ((0, 2), (5, 7), (10, 12, 14), (17, 19, 21), (24, 26, 28))
"""VGG-16's convolutions by torchvision's numbers; a block ends where LPIPS looks."""
_CHANNELS = (64, 128, 256, 512, 512)  # of each block's features
# as in the authors' code: ImageNet's mean and deviation of pixels from −1 to 1
_SHIFT, _SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)
_LENGTH_EPSILON = 1e-10  # as in the authors' code: a pixel without features is divided by it
_BATCH = 8  # pairs of pictures at once: their features take some hundred megabytes
_OFFICIAL = "397923af"  # torchvision puts the first digits of the SHA-256 into the file's name
_FILE = f"vgg16-{_OFFICIAL}.pth"
_INSTEAD = "; or leave LPIPS out (--metric psnr), or read a table of values computed elsewhere"


@dataclass(frozen=True, slots=True)
class LearnedDistance:
    """LPIPS, ready to be called on two stacks of pictures.

    Attributes
    ----------
    note : str
        Which weights it has, in a sentence for the report.
    """

    torch: Any
    device: str
    trunk: tuple[tuple[tuple[Any, Any], ...], ...]
    linear: tuple[Any, ...]
    note: str

    def __call__(
        self, first: npt.NDArray[np.uint8], second: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.float64]:
        """Return the distance of each pair: two arrays ``[n, height, width, 3]`` to ``[n]``."""
        distances = [
            self._batch(first[i : i + _BATCH], second[i : i + _BATCH])
            for i in range(0, len(first), _BATCH)
        ]
        return np.concatenate([np.zeros(0), *distances])

    def _batch(
        self, first: npt.NDArray[np.uint8], second: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.float64]:
        torch = self.torch
        functional = torch.nn.functional
        with torch.inference_mode():
            pairs = zip(self._features(first), self._features(second), self.linear, strict=True)
            total = torch.zeros(len(first), device=self.device)
            for a, b, weight in pairs:
                squared = (_normalise_channels(a) - _normalise_channels(b)) ** 2
                total += functional.conv2d(squared, weight).mean(dim=(1, 2, 3))
            return np.asarray(total.cpu().numpy(), dtype=np.float64)

    def _features(self, pixels: npt.NDArray[np.uint8]) -> Iterator[Any]:
        """Yield the features at the end of each block: ``[n, channels, h, w]``."""
        torch = self.torch
        functional = torch.nn.functional
        shift = torch.tensor(_SHIFT, device=self.device).view(1, 3, 1, 1)
        scale = torch.tensor(_SCALE, device=self.device).view(1, 3, 1, 1)
        stacked = torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))
        values = (stacked.to(self.device, torch.float32) / 127.5 - 1 - shift) / scale
        for k, block in enumerate(self.trunk):
            if k:
                values = functional.max_pool2d(values, 2)
            for weight, bias in block:
                values = functional.relu(functional.conv2d(values, weight, bias, padding=1))
            yield values


def load(
    spec: str = "vgg16", *, linear: str | Path | None = None, device: str = "cpu"
) -> LearnedDistance:
    """Load LPIPS with the weights of VGG-16.

    Parameters
    ----------
    spec : str
        The path of torchvision's weights of VGG-16 (a state dictionary with
        ``features.0.weight``, …); ``"vgg16"``: the file that torchvision has left in PyTorch's
        cache.
    linear : str or Path, optional
        The weights of LPIPS' linear layers; not given: version 0.1 of the package ``lpips``.
    device : str
        Where PyTorch runs it: ``"cpu"``, ``"cuda"``, ….

    Returns
    -------
    LearnedDistance
        Called on two arrays ``[n, height, width, 3]`` of 8 bits it gives ``[n]`` distances: 0 or
        more, lower is more alike.

    Raises
    ------
    FileError
        Weights that are not there, damaged, or of another network.
    SpecError
        PyTorch or the package ``lpips`` is not installed (``isolux[lpips]`` installs both); no
        such device.

    Examples
    --------
    >>> load("nowhere/vgg16.pth")
    Traceback (most recent call last):
        ...
    isolux.core.errors.FileError: there is no such file of weights
      where: nowhere/vgg16.pth
    """
    if spec != "vgg16" and not Path(spec).expanduser().is_file():
        raise FileError("there is no such file of weights", where=spec)
    torch = import_torch("LPIPS", "lpips", _INSTEAD)
    path = _find_cached_vgg_weights(torch) if spec == "vgg16" else Path(spec).expanduser()
    heads = Path(linear).expanduser() if linear is not None else _find_packaged_weights()
    try:
        trunk = _split_vgg_into_blocks(read_torch_state_dict(torch, path), device, str(path))
        layers = _list_linear_weights(read_torch_state_dict(torch, heads), device, str(heads))
    except (RuntimeError, AssertionError) as error:
        raise build_device_error(error, device) from error
    return LearnedDistance(torch, device, trunk, layers, _build_weights_note(path))


def _find_cached_vgg_weights(torch: Any) -> Path:
    path = Path(torch.hub.get_dir()) / "checkpoints" / _FILE
    if not path.is_file():
        raise FileError(
            "LPIPS needs torchvision's weights of VGG-16, which are not on this machine",
            expected=_FILE,
            where=str(path.parent),
            hint="fetch https://download.pytorch.org/models/"
            f"{_FILE} (isolux downloads nothing) and name it: --option lpips_weights=FILE"
            + _INSTEAD,
        )
    return path


def _find_packaged_weights() -> Path:
    """Find the linear layers' weights in the package ``lpips``, which need not be imported."""
    package_spec = importlib.util.find_spec("lpips")
    if package_spec is None or not package_spec.submodule_search_locations:
        raise SpecError(
            "LPIPS needs the package lpips, which holds the weights of its linear layers",
            found="it is not installed",
            hint="pip install 'isolux[lpips]'" + _INSTEAD,
        )
    return (
        Path(next(iter(package_spec.submodule_search_locations))) / "weights" / "v0.1" / "vgg.pth"
    )


def _split_vgg_into_blocks(
    state: dict[str, Any], device: str, source: str
) -> tuple[tuple[tuple[Any, Any], ...], ...]:
    blocks = []
    before = 3
    for numbers, channels in zip(_BLOCKS, _CHANNELS, strict=True):
        block = []
        for number in numbers:
            name = f"features.{number}"
            weight = _find_tensor_of_shape(
                state, f"{name}.weight", (channels, before, 3, 3), source
            )
            bias = _find_tensor_of_shape(state, f"{name}.bias", (channels,), source)
            block.append((weight.to(device), bias.to(device)))
            before = channels
        blocks.append(tuple(block))
    return tuple(blocks)


def _list_linear_weights(state: dict[str, Any], device: str, source: str) -> tuple[Any, ...]:
    return tuple(
        _find_tensor_of_shape(state, f"lin{k}.model.1.weight", (1, channels, 1, 1), source).to(
            device
        )
        for k, channels in enumerate(_CHANNELS)
    )


def _find_tensor_of_shape(
    state: dict[str, Any], name: str, shape: tuple[int, ...], source: str
) -> Any:
    tensor = state.get(name)
    if tensor is None or tuple(tensor.shape) != shape:
        raise FileError(
            "these are the weights of another network",
            expected=f"{name} of shape {list(shape)}",
            found="none of that name" if tensor is None else f"shape {list(tensor.shape)}",
            where=source,
        )
    return tensor


def _normalise_channels(features: Any) -> Any:
    """Divide each pixel's features by their length."""
    return features / ((features**2).sum(dim=1, keepdim=True).sqrt() + _LENGTH_EPSILON)


def _build_weights_note(path: Path) -> str:
    digest = sha256_file(path)
    if digest.startswith(_OFFICIAL):
        return f"LPIPS 0.1 ran on torchvision's weights of VGG-16 (SHA-256 {digest[:16]}…)."
    return (
        f"LPIPS 0.1 ran on weights of VGG-16 from {path.name} (SHA-256 {digest[:16]}…), which are"
        " not the file that it was fitted to: its values cannot be held against published ones."
    )

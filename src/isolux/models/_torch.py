"""What the families on PyTorch share: the device, weights from a file, batches of one shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from isolux.io.hashing import sha256_file
from isolux.vocabulary.errors import FileError, SpecError
from isolux.vocabulary.extras import import_optional

_Input = TypeVar("_Input")
_NO_ROOM = ("out of memory", "failed to allocate", "bad_alloc", "can't allocate memory")


def import_torch_for(purpose: str, extra: str) -> Any:
    """Import PyTorch, or say what to install."""
    return import_optional("torch", package="torch", extra=extra, purpose=purpose)


def on_device(model: Any, device: str) -> Any:
    """Move a model to a device, in evaluation mode."""
    return to_device(model, device).eval()


def to_device(model: Any, device: str) -> Any:
    """Move a network to a device."""
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as error:
        raise device_error(error, device) from error


def device_error(error: BaseException, device: str) -> SpecError:
    """Say why a network cannot be brought to a device: there is none, or it is full.

    Examples
    --------
    >>> device_error(RuntimeError("CUDA error: invalid device ordinal"), "cuda:7").problem
    'there is no such device'
    >>> device_error(RuntimeError("CUDA out of memory. Tried to allocate …"), "cuda").problem
    'the model does not fit into the memory of this device'
    """
    message = (str(error).splitlines() or [""])[0]
    if out_of_memory(error):
        return SpecError(
            "the model does not fit into the memory of this device",
            expected="a smaller model, or a device with more free memory",
            found=message,
            where=device,
            hint="nvidia-smi shows what else is on a GPU",
        )
    return SpecError(
        "there is no such device",
        expected="cpu, or a GPU that PyTorch sees (cuda, cuda:1)",
        found=message,
        where=device,
    )


def out_of_memory(error: BaseException) -> bool:
    """Tell whether a model raised because memory ran out, of this machine or of its GPU.

    Examples
    --------
    >>> out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"))
    True
    >>> out_of_memory(ValueError("another shape"))
    False
    """
    return isinstance(error, MemoryError) or any(w in str(error).lower() for w in _NO_ROOM)


def absent_weights(problem: str, error: Exception) -> SpecError:
    """Say that a library found no weights for a network, and where they may come from."""
    return SpecError(
        problem,
        expected="--model-option weights=FILE.safetensors, or weights in the hub's cache",
        found=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}",
        hint="--model-option online=yes allows downloads from the hub",
    )


def load_weights(model: Any, path: str | Path) -> dict[str, str]:
    """Read weights from a safetensors file into a model; give the file's hash."""
    state, file_hash = read_weights(path)
    fit_weights(model, state, path)
    return file_hash


def fit_weights(model: Any, state: Mapping[str, Any], path: str | Path) -> None:
    """Load a state dictionary into a model."""
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise SpecError(
            "these are the weights of another network",
            found=" ".join(str(error).split())[:300],
            where=str(path),
        ) from error


def read_weights(path: str | Path) -> tuple[Mapping[str, Any], dict[str, str]]:
    """Read weights from a safetensors file: by name, and the file's hash."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileError("there is no such file of weights", where=str(path))
    if path.suffix != ".safetensors":
        raise FileError(
            "these weights may be a pickle, and loading one can run any program that is in it",
            expected="a .safetensors file",
            found=path.suffix or "no suffix",
            where=str(path),
            hint="convert them with safetensors.torch.save_file, where their source is trusted",
        )
    reader = import_optional(
        "safetensors.torch", package="safetensors", extra="timm", purpose="a file of weights"
    )
    try:
        state = reader.load_file(str(path))
    except Exception as error:
        raise FileError(
            "the weights cannot be read", found=f"{type(error).__name__}: {error}", where=str(path)
        ) from error
    return state, {"file": sha256_file(path)}


def state_hash(model: Any) -> str:
    """Hash a model's weights as they are, whatever file they came from."""
    import hashlib

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        cpu_tensor = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {cpu_tensor.dtype} {tuple(cpu_tensor.shape)}".encode())
        digest.update(cpu_tensor.flatten().view(-1).numpy().tobytes())
    return digest.hexdigest()


def group_by_shape(
    inputs: Sequence[_Input], shape: Callable[[_Input], object]
) -> Iterator[tuple[int, Sequence[_Input]]]:
    """Yield consecutive inputs of one shape as batches, each with the index of its first input."""
    offset = 0
    for _, run in groupby(inputs, key=shape):
        batch = list(run)
        yield offset, batch
        offset += len(batch)

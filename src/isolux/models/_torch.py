"""What the families on PyTorch share: the device, weights from a file, batches of one shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from isolux.core.errors import FileError, SpecError
from isolux.core.extras import import_optional
from isolux.io.hashing import sha256_file

_Input = TypeVar("_Input")
_NO_ROOM = ("out of memory", "failed to allocate", "bad_alloc", "can't allocate memory")


def import_torch(purpose: str, extra: str) -> Any:
    """Import PyTorch, or say what to install."""
    return import_optional("torch", package="torch", extra=extra, purpose=purpose)


def move_to_device_for_inference(network: Any, device: str) -> Any:
    """Move a model to a device, in evaluation mode."""
    return move_network_to_device(network, device).eval()


def move_network_to_device(network: Any, device: str) -> Any:
    """Move a network to a device."""
    try:
        return network.to(device)
    except (RuntimeError, AssertionError) as error:
        raise build_device_error(error, device) from error


def build_device_error(error: BaseException, device: str) -> SpecError:
    """Say why a network cannot be brought to a device: there is none, or it is full.

    Examples
    --------
    >>> build_device_error(RuntimeError("CUDA error: invalid device ordinal"), "cuda:7").problem
    'there is no such device'
    >>> build_device_error(RuntimeError("CUDA out of memory. Tried to allocate …"), "cuda").problem
    'the model does not fit into the memory of this device'
    """
    message = (str(error).splitlines() or [""])[0]
    if is_out_of_memory_error(error):
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


def is_out_of_memory_error(error: BaseException) -> bool:
    """Tell whether a model raised because memory ran out, of this machine or of its GPU.

    Examples
    --------
    >>> is_out_of_memory_error(RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"))
    True
    >>> is_out_of_memory_error(ValueError("another shape"))
    False
    """
    return isinstance(error, MemoryError) or any(w in str(error).lower() for w in _NO_ROOM)


def build_missing_weights_error(problem: str, error: Exception) -> SpecError:
    """Say that a library found no weights for a network, and where they may come from."""
    return SpecError(
        problem,
        expected="--model-option weights=FILE.safetensors, or weights in the hub's cache",
        found=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}",
        hint="--model-option online=yes allows downloads from the hub",
    )


def load_weights_from_file(network: Any, path: str | Path) -> dict[str, str]:
    """Read weights from a safetensors file into a model; give the file's hash."""
    state, file_hash = read_safetensors_and_hash(path)
    load_state_dict_or_raise(network, state, path)
    return file_hash


def load_state_dict_or_raise(network: Any, state_dict: Mapping[str, Any], path: str | Path) -> None:
    """Load a state dictionary into a model."""
    try:
        network.load_state_dict(state_dict)
    except RuntimeError as error:
        raise SpecError(
            "these are the weights of another network",
            found=" ".join(str(error).split())[:300],
            where=str(path),
        ) from error


def read_safetensors_and_hash(path: str | Path) -> tuple[Mapping[str, Any], dict[str, str]]:
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


def hash_state_dict(network: Any) -> str:
    """Hash a model's weights as they are, whatever file they came from."""
    import hashlib

    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        cpu_tensor = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {cpu_tensor.dtype} {tuple(cpu_tensor.shape)}".encode())
        digest.update(cpu_tensor.flatten().view(-1).numpy().tobytes())
    return digest.hexdigest()


def iterate_batches_of_equal_shape(
    inputs: Sequence[_Input], get_shape: Callable[[_Input], object]
) -> Iterator[tuple[int, Sequence[_Input]]]:
    """Yield consecutive inputs of one shape as batches, each with the index of its first input."""
    offset = 0
    for _, same_shape_inputs in groupby(inputs, key=get_shape):
        batch = list(same_shape_inputs)
        yield offset, batch
        offset += len(batch)

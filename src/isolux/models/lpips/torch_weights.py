"""PyTorch, imported when a model is loaded; and weights, read as tensors and nothing else."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from isolux.vocabulary.errors import FileError, SpecError

_SAFE = (2, 6)


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


def read_state(torch: Any, path: Path) -> dict[str, Any]:
    """Read a file of weights: names and tensors, float32 on the CPU.

    Its restricted reader (``weights_only``) builds tensors and plain containers and refuses all
    else; versions before 2.6 could be made to run code even so (CVE-2025-32434), and are not used.
    """
    where = str(path)
    version = str(torch.__version__)
    if tuple(int(part) for part in version.split(".")[:2]) < _SAFE:
        raise SpecError(
            "this PyTorch can be made to run code by a file of weights (CVE-2025-32434)",
            expected="PyTorch 2.6 or newer",
            found=f"PyTorch {version}",
            hint="pip install --upgrade torch",
        )
    if not path.is_file():
        raise FileError("there is no such file of weights", where=where)
    try:
        # Only tensors are built, no code runs: `weights_only`, in a version where that holds.
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # PyTorch's reader raises whatever its parts do
        raise FileError(
            "this file of weights cannot be read",
            expected="a state dictionary that PyTorch saved",
            found=(str(error).splitlines() or [type(error).__name__])[0][:160],
            where=where,
        ) from error
    if not isinstance(state, dict) or not all(torch.is_tensor(v) for v in state.values()):
        raise FileError(
            "this file holds no weights",
            expected="a mapping of names to tensors",
            found=type(state).__name__,
            where=where,
        )
    return {str(name): tensor.detach().to(torch.float32) for name, tensor in state.items()}

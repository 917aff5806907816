"""Arrays and tensors of any library, as numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isolux.core.errors import TableError

_SMALL_FLOATS = ("bfloat16", "float8", "float16")  # numpy or polars lack them, float32 holds each


def as_array(values: Any, name: str = "the values") -> NDArray[Any]:
    """Take a numpy array, a tensor (torch, jax, tensorflow, cupy), a series or a list.

    Examples
    --------
    >>> as_array([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    try:
        array = np.asarray(_to_numpy_compatible(values))
    except (TypeError, ValueError) as error:
        raise TableError(
            f"{name} cannot be read as an array",
            expected="an array, a tensor, a series or a list, with rows of one length",
            found=f"{type(values).__name__}: {str(error).splitlines()[0]}",
        ) from error
    if array.dtype.name.startswith(_SMALL_FLOATS):
        array = array.astype(np.float32)
    if array.dtype.kind == "c":
        raise TableError(
            f"{name} holds complex numbers",
            expected="real numbers or labels",
            found=str(array.dtype),
        )
    if array.ndim == 0:
        raise TableError(
            f"{name} is one value",
            expected="one value a person, in an array",
            found=type(values).__name__,
        )
    return array


def is_torch_tensor(values: Any) -> bool:
    """Return whether an object has the methods of a torch tensor."""
    return callable(getattr(values, "detach", None)) and callable(getattr(values, "cpu", None))


def _to_numpy_compatible(values: Any) -> Any:
    """Bring what lies elsewhere, or knows gradients or masks, into numpy's reach."""
    if is_torch_tensor(values):
        return _torch_to_numpy(values)
    if isinstance(values, list | tuple) and values and is_torch_tensor(values[0]):
        return np.stack([np.asarray(_to_numpy_compatible(element)) for element in values])
    if isinstance(values, np.ma.MaskedArray):
        object_array = np.array(values.data, dtype=object)
        object_array[np.ma.getmaskarray(values)] = None
        return object_array if np.ma.getmaskarray(values).any() else values.data
    method = _find_conversion_method(values)
    return values if method is None else getattr(values, method)()


def _find_conversion_method(values: Any) -> str | None:
    """Name the method by which another library gives numpy's array, where numpy knows no way."""
    if hasattr(values, "nnz") and hasattr(values, "toarray"):
        return "toarray"  # scipy's sparse arrays, of which numpy makes one object
    if hasattr(values, "__cuda_array_interface__") and hasattr(values, "get"):
        return "get"  # cupy
    return "numpy" if hasattr(values, "numpy") and not hasattr(values, "__array__") else None


def _torch_to_numpy(tensor: Any) -> Any:
    cpu_tensor = tensor.detach().cpu()
    if getattr(cpu_tensor, "is_sparse", False):
        cpu_tensor = cpu_tensor.to_dense()
    try:
        return cpu_tensor.numpy()
    except TypeError:  # bfloat16 and its kin, which numpy lacks
        return cpu_tensor.float().numpy()

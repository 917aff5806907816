"""Tensors of every library come out as numpy's arrays, and stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.core.errors import TableError
from isolux.core.inputs import as_array
from tests.core.inputs._others import Tensor

HALF = [0.5, 0.25]


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor(HALF),
        Tensor(HALF, grad=True),
        Tensor(HALF, grad=True, device="cuda:0"),
        Tensor(HALF, bfloat16=True),
        Tensor(HALF, sparse=True),
        [Tensor(0.5, grad=True), Tensor(0.25, grad=True)],
        np.array(HALF, dtype=np.float16),
        tuple(HALF),
    ],
    ids=["plain", "grad", "gpu", "bfloat16", "sparse", "list of tensors", "half", "tuple"],
)
def test_a_tensor_of_any_kind(tensor):
    found = as_array(tensor)
    assert type(found) is np.ndarray
    assert found.tolist() == HALF
    assert found.dtype.kind == "f"


def test_a_tensor_keeps_its_gradient():
    tensor = Tensor(HALF, grad=True, device="cuda:0")
    as_array(tensor)
    assert (tensor.grad, tensor.device) == (True, "cuda:0")


def test_bfloat16_of_jax_is_a_number():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    found = as_array(np.array(HALF, dtype=ml_dtypes.bfloat16))
    assert (found.dtype, found.tolist()) == (np.float32, HALF)


def test_what_a_mask_hides_is_missing():
    assert as_array(np.ma.array([1, 2], mask=[False, True])).tolist() == [1, None]
    assert as_array(np.ma.array([1, 2], mask=[False, False])).tolist() == [1, 2]


def test_a_sparse_matrix_of_scipy():
    from scipy.sparse import csr_array

    assert as_array(csr_array(np.eye(2))).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_gpu_array_of_cupy_and_a_tensor_of_tensorflow():
    class Cupy:
        __cuda_array_interface__: dict = {}

        def get(self):
            return np.array(HALF)

    class TensorFlow:
        def numpy(self):
            return np.array(HALF)

    assert as_array(Cupy()).tolist() == as_array(TensorFlow()).tolist() == HALF


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (3.0, "y is one value"),
        (Tensor(3.0), "y is one value"),
        ([[1, 2], [3]], "y cannot be read as an array"),
        (np.array([1j]), "y holds complex numbers"),
    ],
)
def test_what_is_no_array_is_refused(values, match):
    with pytest.raises(TableError, match=match):
        as_array(values, "y")

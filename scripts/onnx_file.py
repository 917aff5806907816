"""Write an ONNX file byte by byte: a few operators, their weights, and a text of settings.

ONNX is protocol buffers; what a small network needs of them is forty lines, the same bytes every
time. So neither the tests nor ``make model`` need a package that writes it. Field numbers are those
of onnx.proto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["Node", "onnx_bytes"]

_TYPES = {"float32": 1, "uint8": 2, "int64": 7, "float16": 10}
_FLOAT, _INT, _INTS = 1, 2, 7  # AttributeProto.type


@dataclass(frozen=True)
class Node:
    """One operator: its type, what goes in, what comes out, and its attributes."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, int | float | Sequence[int]] = field(default_factory=dict)


def onnx_bytes(
    nodes: Sequence[Node],
    weights: Mapping[str, npt.NDArray[np.generic]],
    inputs: Mapping[str, tuple[str, Sequence[int | str]]],
    outputs: Mapping[str, tuple[str, Sequence[int | str]]],
    *,
    metadata: Mapping[str, str] | None = None,
    opset: int = 17,
) -> bytes:
    """Return a network as the bytes of an ONNX file.

    Parameters
    ----------
    nodes : sequence of Node
        In an order in which each operator's inputs are there.
    weights : mapping of str to ndarray
    inputs, outputs : mapping of str to (dtype, shape)
        A side that is open has a name.
    metadata : mapping of str to str, optional
    opset : int
        The version of the operators.
    """
    graph = b"".join(_bytes(1, _node(node)) for node in nodes)
    graph += _text(2, "network")
    graph += b"".join(_bytes(5, _tensor(name, array)) for name, array in weights.items())
    graph += b"".join(_bytes(11, _value(name, *what)) for name, what in inputs.items())
    graph += b"".join(_bytes(12, _value(name, *what)) for name, what in outputs.items())
    model = _number(1, 8) + _text(2, "isolux") + _bytes(7, graph) + _bytes(8, _number(2, opset))
    for key, value in (metadata or {}).items():
        model += _bytes(14, _text(1, key) + _text(2, value))
    return model


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _number(key: int, value: int) -> bytes:
    return _varint(key << 3) + _varint(value)


def _bytes(key: int, value: bytes) -> bytes:
    return _varint(key << 3 | 2) + _varint(len(value)) + value


def _text(key: int, value: str) -> bytes:
    return _bytes(key, value.encode())


def _node(node: Node) -> bytes:
    found = b"".join(_text(1, name) for name in node.inputs)
    found += b"".join(_text(2, name) for name in node.outputs)
    found += _text(4, node.op)
    for name, value in node.attributes.items():
        if isinstance(value, float):
            told = _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, _FLOAT)
        elif isinstance(value, int):
            told = _number(3, value) + _number(20, _INT)
        else:
            told = b"".join(_number(8, one) for one in value) + _number(20, _INTS)
        found += _bytes(5, _text(1, name) + told)
    return found


def _tensor(name: str, array: npt.NDArray[np.generic]) -> bytes:
    sides = b"".join(_number(1, side) for side in array.shape)
    raw = np.ascontiguousarray(array).tobytes()
    return sides + _number(2, _TYPES[str(array.dtype)]) + _text(8, name) + _bytes(9, raw)


def _value(name: str, dtype: str, shape: Sequence[int | str]) -> bytes:
    sides = b"".join(
        _bytes(1, _text(2, side) if isinstance(side, str) else _number(1, side)) for side in shape
    )
    tensor = _number(1, _TYPES[dtype]) + _bytes(2, sides)
    return _text(1, name) + _bytes(2, _bytes(1, tensor))

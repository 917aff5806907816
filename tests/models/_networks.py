"""Tiny ONNX networks whose answers can be reckoned by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from scripts.onnx_file import Node, onnx_bytes

SIDE = 4


def mean_colours(path: Path, weights, bias, *, side: int | str = SIDE, batch: int | str = "n",
                 layout: str = "NCHW", name: str = "logits", **settings) -> Path:  # fmt: skip
    """Write a network: the mean of each colour, times ``weights`` [3, c], plus ``bias`` [c]."""
    matrix = np.asarray(weights, np.float32)
    nodes = [
        *([Node("Transpose", ["x"], ["t"], {"perm": [0, 3, 1, 2]})] if layout == "NHWC" else []),
        Node("GlobalAveragePool", ["t" if layout == "NHWC" else "x"], ["pooled"]),
        Node("Flatten", ["pooled"], ["flat"], {"axis": 1}),
        Node("Gemm", ["flat", "w", "b"], [name]),
    ]
    shape = (batch, 3, side, side) if layout == "NCHW" else (batch, side, side, 3)
    data = onnx_bytes(
        nodes, {"w": matrix, "b": np.asarray(bias, np.float32)}, {"x": ("float32", shape)},
        {name: ("float32", (batch, matrix.shape[1]))},
        metadata={"isolux": json.dumps(settings)} if settings else None,
    )  # fmt: skip
    path.write_bytes(data)
    return path


def fixed_boxes(path: Path, boxes, scores, *, labels=None, side: int = 100, **settings) -> Path:
    """Write a network that finds the same boxes in each picture, scored by its brightness."""
    boxes, scores = np.asarray([boxes], np.float32), np.asarray([scores], np.float32)
    weights = {"zero": np.zeros((), np.float32), "boxes0": boxes, "scores0": scores}
    nodes = [
        Node("ReduceMean", ["x"], ["m"], {"axes": [1, 2, 3], "keepdims": 1}),
        Node("Flatten", ["m"], ["m2"], {"axis": 1}),  # [n, 1]
        Node("Mul", ["m2", "zero"], ["nil"]),
        Node("Add", ["scores0", "nil" if scores.ndim == 2 else "nil3"], ["scores"]),
        Node("Add", ["boxes0", "nil3"], ["boxes"]),
    ]
    nodes.insert(3, Node("Unsqueeze", ["nil", "axis"], ["nil3"]))
    weights["axis"] = np.asarray([2], np.int64)
    outputs = {"boxes": ("float32", ("n", boxes.shape[1], 4)),
               "scores": ("float32", ("n", *scores.shape[1:]))}  # fmt: skip
    if labels is not None:
        numbers = np.asarray([labels], np.float32)
        weights["labels0"] = numbers
        nodes.append(Node("Add", ["labels0", "nil"], ["labels"]))
        outputs["labels"] = ("float32", ("n", numbers.shape[1]))
    path.write_bytes(
        onnx_bytes(nodes, weights, {"x": ("float32", ("n", 3, side, side))}, outputs,
                   metadata={"isolux": json.dumps(settings)} if settings else None)
    )  # fmt: skip
    return path

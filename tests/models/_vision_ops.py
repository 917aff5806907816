"""torchvision's operators where its build lacks them: next to a PyTorch of another build.

A torchvision from one index beside a PyTorch from another cannot be imported ("operator
torchvision::nms does not exist"). Tests that need it get non-maximum suppression in plain PyTorch.
Nothing of this is in the package: a user's installation is theirs.
"""

from __future__ import annotations

import importlib
import importlib.util

__all__ = ["with_torchvision"]


def _nms(boxes, scores, iou_threshold):
    import torch

    order, kept = scores.argsort(descending=True), []
    x1, y1, x2, y2 = boxes.unbind(1)
    area = (x2 - x1) * (y2 - y1)
    while order.numel():
        first, rest = order[0], order[1:]
        kept.append(first)
        w = (torch.minimum(x2[first], x2[rest]) - torch.maximum(x1[first], x1[rest])).clamp(min=0)
        h = (torch.minimum(y2[first], y2[rest]) - torch.maximum(y1[first], y1[rest])).clamp(min=0)
        iou = w * h / (area[first] + area[rest] - w * h)
        order = rest[iou <= iou_threshold]
    return torch.stack(kept) if kept else torch.empty(0, dtype=torch.long)


def with_torchvision() -> bool:
    """Import torchvision, with operators in plain PyTorch where its own cannot be loaded."""
    import torch

    if importlib.util.find_spec("torchvision") is None:
        return False
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            library.impl(name, _nms, "CPU")
        globals()["_kept"] = library  # it is taken back when no one holds it
        importlib.import_module("torchvision")
        # `torchvision.ops.nms` the name is a function, so the module is fetched by its full name.
        importlib.import_module("torchvision.ops.boxes")._assert_has_ops = lambda: None
        align = importlib.import_module("torchvision.ops.roi_align")
        align._roi_align = align._roi_align.__wrapped__  # in plain PyTorch, and not compiled
    return True

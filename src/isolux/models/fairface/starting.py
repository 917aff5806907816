"""First weights from a file, such as those that torchvision gives for ImageNet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.models._torch import fit_weights, read_weights

def start_from(net: Any, path: str | Path) -> str:
    """Put a file's weights into a network, all but a last layer of other classes; give their hash.

    Raises
    ------
    FileError
        No such file, or a pickle.
    SpecError
        Weights of another network.
    """
    state, held = read_weights(path)
    own, given = net.state_dict(), dict(state)
    for name in ("fc.weight", "fc.bias"):
        if name in given and given[name].shape != own[name].shape:
            given[name] = own[name]
    fit_weights(net, given, path)
    return held["file"]

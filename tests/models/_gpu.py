"""Whether PyTorch sees a GPU here; tests of one are skipped aloud where it does not."""

from __future__ import annotations

import pytest

__all__ = ["cuda_here"]


def cuda_here():
    """Return PyTorch where it sees a GPU; skip the test otherwise."""
    torch = pytest.importorskip("torch", reason="PYTORCH IS ABSENT: NOTHING was run on a GPU")
    if not torch.cuda.is_available():
        pytest.skip("NO CUDA GPU HERE: NOTHING was run on a GPU")
    return torch

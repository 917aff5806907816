"""The Vendi score of 10,000 vectors of 1,024 numbers, beside the package ``vendi-score``.

The peer is the package's own way from vectors to score, ``score_X``: the n × n similarities and
their eigenvalues. Its d × d form (``score_dual``), which a user must know to ask for, is printed
beside. All three are from raw vectors, made unit length, to one number, and are held against one
another to 1e-6. The floor is the product of the vectors with themselves, half of it as it is
symmetric, and the eigenvalues of the d × d matrix.
"""

from __future__ import annotations

import resource
import warnings

import numpy as np
from scipy.linalg import eigvalsh
from scipy.linalg.blas import dsyrk

from benchmarks._timing import cpu_seconds, last_line, quick
from isolux.stats.diversity import vendi_score

VECTORS, WIDTH = 10_000, 1_024


def world(n: int, d: int) -> np.ndarray:
    """Vectors of falling variance around a mean, as an encoder of photos gives them."""
    rng = np.random.default_rng(7)
    scale = np.exp(-np.arange(d) / (d / 6))
    return (rng.normal(size=(n, d)) * scale + 0.2 * scale[::-1]).astype(np.float32)


def floor(vectors: np.ndarray) -> np.ndarray:
    return eigvalsh(dsyrk(1.0, vectors.T), lower=False)


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from vendi_score import vendi

    n, d = (2_000, 256) if quick() else (VECTORS, WIDTH)
    vendi_score(world(100, 20))
    sizes = []
    for part in (n // 8, n // 4, n // 2, n):
        vectors = world(part, d)
        ours_s, found = min((cpu_seconds(lambda v=vectors: vendi_score(v)) for _ in range(3)),
                            key=lambda pair: pair[0])  # fmt: skip
        sizes.append([part, ours_s])
        print(f"isolux, {part:>6,} vectors of {d:,}: {ours_s:.3f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    double = vectors.astype(np.float64)
    floor_s, _ = cpu_seconds(lambda: floor(double))
    dual_s, dual = cpu_seconds(lambda: vendi.score_dual(double))
    peer_s, peer = cpu_seconds(lambda: vendi.score_X(double))
    for name, score in (("score_X", peer), ("score_dual", dual)):
        if abs(found.value - score) > 1e-6:
            raise SystemExit(f"{name} gives {score}, ours {found.value}: the times mean nothing")
    print(f"vendi-score, n x n: {peer_s:.2f} s; its d x d form: {dual_s:.3f} s")
    print(f"score {found.value:.6f}, the same to 1e-6; our peak memory {peak:.2f} GiB")
    print(f"floor: {floor_s:.3f} s; CPU seconds, one thread")
    last_line(
        "vendi", ours_s, "vendi-score, n x n", peer_s,
        vectors=n, width=d, peer_dual_s=dual_s, ratio_dual=dual_s / ours_s, floor_s=floor_s,
        peak_gib=peak, sizes=sizes,
    )  # fmt: skip


if __name__ == "__main__":
    main()

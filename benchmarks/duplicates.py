"""Near-duplicates among many photos: hashes of all pairs, and the likely ones laid over.

Thumbnails are smooth noise; one in twenty is an earlier one again, brighter or darker, with noise,
and every second of these mirrored. Beside: faiss's exhaustive search of the same 64-bit hashes,
which compares hashes alone and both ways round (it is not pinned: without it ours stands alone).
"""

from __future__ import annotations

import importlib.util
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks._timing import cpu_seconds, last_line, quick
from isolux.checks.duplicates.hashes import (
    MAX_BLOCK_DIFFERENCE,
    MAX_DIFFERING_BITS,
    MIN_CORRELATION,
    SIDE,
    find_duplicate_pairs,
    hash_thumbnails,
)

PHOTOS, AGAIN, MILLION = 200_000, 20, 1_000_000
Bytes = npt.NDArray[np.uint8]


def photos(n: int) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """Draw thumbnails, and for each the earlier one that it shows again; −1: none."""
    rng = np.random.default_rng(0)
    found = np.empty((n, SIDE, SIDE), dtype=np.uint8)
    steps = np.linspace(0, 7, SIDE)
    low = np.minimum(steps.astype(int), 6)
    part = steps - low
    weight = np.zeros((SIDE, 8))
    weight[np.arange(SIDE), low], weight[np.arange(SIDE), low + 1] = 1 - part, part
    for at in range(0, n, 4096):
        coarse = rng.normal(size=(min(4096, n - at), 8, 8))
        found[at : at + 4096] = np.clip(weight @ coarse @ weight.T * 45 + 128, 0, 255)
    of = np.full(n, -1)
    later = np.arange(n // 2, n, AGAIN // 2)
    of[later] = rng.choice(n // 2, len(later), replace=False)
    again = found[of[later]].astype(np.float32)
    again[::2] = again[::2, :, ::-1]
    again = again * rng.uniform(0.85, 1.1, (len(later), 1, 1)) + rng.normal(0, 3, again.shape)
    found[later] = np.clip(again, 0, 255)
    return found, of


def by_faiss(thumbnails: Bytes) -> tuple[float, int]:
    """Time the search of hashes within as many bits, straight and mirrored."""
    import faiss

    faiss.omp_set_num_threads(1)
    hashes = hash_thumbnails(thumbnails)
    held, turned = (np.ascontiguousarray(h).view(np.uint8).reshape(-1, 8)
                    for h in (hashes.upright, hashes.mirrored))  # fmt: skip
    index = faiss.IndexBinaryFlat(64)
    index.add(held)

    def search() -> int:
        return sum(
            int(index.range_search(one, MAX_DIFFERING_BITS + 1)[0][-1]) for one in (held, turned)
        )

    return cpu_seconds(search)


def search(thumbnails: Bytes) -> npt.NDArray[np.int64]:
    """Find copies by the thresholds of ``isolux check``: rows of (first, second)."""
    found = find_duplicate_pairs(
        thumbnails,
        most_bits=MAX_DIFFERING_BITS,
        least_correlation=MIN_CORRELATION,
        most_apart=MAX_BLOCK_DIFFERENCE,
    )
    return found.select("first", "second").to_numpy()


def main() -> None:
    n = 20_000 if quick() else PHOTOS
    search(photos(200)[0])
    sizes = []
    for part in (n // 8, n // 4, n // 2, n):
        thumbnails, of = photos(part)
        ours_s, pairs = cpu_seconds(partial(search, thumbnails))
        injected = {(int(first), k) for k, first in enumerate(of) if first >= 0}
        got = set(map(tuple, pairs.tolist()))
        share, other = len(injected & got) / len(injected), len(got - injected)
        sizes.append([part, ours_s])
        told = f"{share:.2%} of {len(injected):,} copies found, {other:,} pairs besides"
        print(f"{part:>9,} photos: {ours_s:8.2f} s; {told}")
        if share < 0.9:
            raise SystemExit("copies were missed: the times mean nothing")
    million = ours_s * (MILLION / n) ** 2
    print(f"a million photos, reckoned by the square: {million:,.0f} s")
    more: dict[str, object] = {"photos": n, "found": share, "besides": other, "million": million}
    peer_s = float("nan")
    if importlib.util.find_spec("faiss"):
        peer_s, near = by_faiss(thumbnails)
        print(
            f"faiss, hashes alone: {peer_s:.2f} s for {near:,} pairs within {MAX_DIFFERING_BITS}"
            " bits"
        )
    else:
        print("faiss is not installed: no comparison")
    last_line("duplicates", ours_s, "faiss IndexBinaryFlat, hashes alone", peer_s, sizes=sizes,
              **more)  # fmt: skip


if __name__ == "__main__":
    main()

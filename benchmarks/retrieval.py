"""The 50 nearest of 24,000 × 2,048 vectors to each of 3,000 queries, beside faiss ``IndexFlatIP``.

Both are exact and of one thread. Ours then compares again in double precision whatever single
precision cannot part from the 50th, and takes ties in the order of the database; faiss does not.
"""

from __future__ import annotations

import faiss
import numpy as np
import numpy.typing as npt

from benchmarks._timing import cpu_seconds, last_line, quick
from isolux.tasks._embeddings.vectors import find_nearest

ENTRIES, QUERIES, WIDTH, K = 24_000, 3_000, 2_048, 50
Vectors = npt.NDArray[np.float32]


def vectors(n: int, seed: int) -> Vectors:
    raw = np.random.default_rng(seed).standard_normal((n, WIDTH), dtype=np.float32)
    return raw / np.linalg.norm(raw, axis=1, keepdims=True)


def ours(queries: Vectors, entries: Vectors) -> npt.NDArray[np.int64]:
    n, q = len(entries), len(queries)
    return find_nearest(queries, entries, K, query_key=np.full(q, -1), entry_key=np.full(n, -2))


def theirs(queries: Vectors, entries: Vectors) -> npt.NDArray[np.int64]:
    index = faiss.IndexFlatIP(WIDTH)
    index.add(entries)
    return index.search(queries, K)[1]


def floor(n_queries: int, n_entries: int) -> tuple[float, float]:
    """CPU seconds of the matrix product alone, and its GFLOP/s."""
    a, b = vectors(1_000, 2), vectors(4_000, 3)
    spent = min(cpu_seconds(lambda: a @ b.T)[0] for _ in range(5))
    rate = 2.0 * len(a) * len(b) * WIDTH / spent
    return 2.0 * n_queries * n_entries * WIDTH / rate, rate / 1e9


def check(mine: npt.NDArray[np.int64], peer: npt.NDArray[np.int64]) -> None:
    """Refuse answers that differ by more than neighbours that single precision cannot part."""
    differ = (np.sort(mine, axis=1) != np.sort(peer, axis=1)).any(axis=1).mean()
    if differ > 0.001:
        raise SystemExit(f"the two disagree for {differ:.2%} of queries: their times mean nothing")


def main() -> None:
    faiss.omp_set_num_threads(1)
    entries_n, queries_n = (6_000, 750) if quick() else (ENTRIES, QUERIES)
    ours(vectors(100, 0), vectors(200, 1))  # compiles
    table, mine = [], np.zeros((0, K), dtype=np.int64)
    queries = vectors(queries_n, 0)
    entries = vectors(entries_n, 1)
    for n in (entries_n // 8, entries_n // 4, entries_n // 2, entries_n):
        part = entries[:n]
        spent, mine = cpu_seconds(lambda p=part: ours(queries, p))
        table.append((n, spent))
    peer_s, peer = cpu_seconds(lambda: theirs(queries, entries))
    check(mine, peer)
    ours_s = table[-1][1]
    floor_s, rate = floor(queries_n, entries_n)
    print(f"{queries_n:,} queries of {WIDTH:,} numbers, the {K} nearest")
    print(" entries   CPU s   times the last (entries: x2)")
    for (n, spent), before in zip(table, [None, *table], strict=False):
        print(f"{n:8,}  {spent:6.2f}" + (f"   {spent / before[1]:.1f}" if before else ""))
    print(f"isolux: {ours_s:.2f} CPU s; faiss: {peer_s:.2f} CPU s")
    print(
        f"floor: {floor_s:.2f} s, the product at {rate:.0f} GFLOP/s; "
        f"ours is {ours_s / floor_s:.2f} times that, faiss {peer_s / floor_s:.2f}"
    )
    last_line(
        "retrieval", ours_s, "faiss IndexFlatIP", peer_s, entries=entries_n, queries=queries_n,
        width=WIDTH, k=K, floor_s=floor_s, sizes=table,
    )  # fmt: skip


if __name__ == "__main__":
    main()

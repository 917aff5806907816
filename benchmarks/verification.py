"""True accepts at a false accept rate of .001 by 60 groups, from embeddings, beside scikit-learn's.

FHIBE's hard pairs: two people of one pronoun and of skin colours at most one of six levels apart,
and all pairs of one person. Ours is the task ``face_verification``, its evidence put in order, and
all groups met in one pass; the peer is a numpy matrix product, the same pairs picked by a mask, and
``roc_curve`` for each group. Same data, one run, one thread.
"""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks._timing import cpu_seconds, last_line, quick
from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, INSTANCES
from isolux.groups.measure.pair_rows import build_pair_rows
from isolux.groups.measure.pairs import evaluate_rates_by_group
from isolux.stats.verification import tar_at_far_statistic
from isolux.tasks.face_verification import score

IMAGES, WIDTH, GROUPS, FAR = 10_000, 512, 60, 0.001
PHOTOS = 5
SKIN = (0.1, 0.2, 0.3, 0.2, 0.1, 0.1)


@dataclass(frozen=True)
class Faces:
    """Photos of people, what a model makes of them, and groups that overlap."""

    vectors: npt.NDArray[np.float32]
    person: npt.NDArray[np.int64]
    pronoun: npt.NDArray[np.int64]
    skin: npt.NDArray[np.int64]
    members: npt.NDArray[np.bool_]

    def dataset(self) -> tuple[Dataset, pl.DataFrame, pl.DataFrame]:
        """Lay them out as isolux reads them: the dataset, the predictions, the units."""
        ids = [f"face_{i:06}" for i in range(len(self.person))]
        instances = pl.DataFrame(
            {"instance_id": ids, "image_id": ids, "subject_id": [f"s{p:06}" for p in self.person]}
        )
        of_unit = [
            pl.DataFrame(
                {
                    "unit_kind": "instance", "unit_id": ids, "attribute": name,
                    "value": number.astype(str), "number": number.astype(float),
                }
            )
            for name, number in (("pronoun", self.pronoun), ("apparent_skin_color", self.skin))
        ]  # fmt: skip
        info = DatasetInfo(title="Made up", summary="Faces of a benchmark.", references=())
        dataset = Dataset(
            "made up", info, INSTANCES.conform(instances), ATTRIBUTES.conform(pl.concat(of_unit))
        )
        vectors = pl.DataFrame({"model": "m", "instance_id": ids, "embedding": self.vectors})
        units = pl.DataFrame({"unit_id": ids, "cluster": self.person}).with_row_index("unit")
        return dataset, vectors, units


def faces(images: int) -> Faces:
    rng = np.random.default_rng(0)
    people = images // PHOTOS
    person = np.arange(images) % people
    vectors = rng.standard_normal((people, WIDTH), dtype=np.float32)[person]
    vectors += 2.2 * rng.standard_normal((images, WIDTH), dtype=np.float32)
    return Faces(
        vectors,
        person,
        rng.integers(0, 2, people)[person],
        rng.choice(6, people, p=SKIN)[person],
        (rng.random((people, GROUPS)) < np.linspace(0.1, 0.6, GROUPS))[person],
    )


def ours(
    dataset: Dataset, vectors: pl.DataFrame, units: pl.DataFrame, members: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    scores = score(dataset, vectors, impostors="hard", far=FAR, metrics=["tar_at_far"])
    return evaluate_rates_by_group(
        tar_at_far_statistic(), build_pair_rows(scores.evidence["pairs"], units), members
    )


def theirs(faces: Faces) -> tuple[npt.NDArray[np.float64], int]:
    """The rates, and how many pairs there are."""
    from sklearn.metrics import roc_curve  # here, or its modules count as our memory

    unit = faces.vectors / np.linalg.norm(faces.vectors, axis=1, keepdims=True)
    similarity = unit @ unit.T
    same = faces.person[:, None] == faces.person[None, :]
    hard = faces.pronoun[:, None] == faces.pronoun[None, :]
    hard &= np.abs(faces.skin[:, None] - faces.skin[None, :]) <= 1
    first, second = np.nonzero(np.triu(same | hard, 1))
    genuine, alike = same[first, second], similarity[first, second]
    found = []
    for inside in faces.members.T:
        rows = inside[first] & inside[second]
        fpr, tpr, _ = roc_curve(genuine[rows], alike[rows], drop_intermediate=False)
        found.append(tpr[fpr <= FAR].max())
    return np.array(found), len(first)


def floor(n_pairs: int) -> tuple[float, float]:
    """CPU seconds that the inner products alone take, were they one dense product; GFLOP/s."""
    a = np.random.default_rng(0).standard_normal((2_000, WIDTH))
    a @ a.T
    spent = min(cpu_seconds(lambda: a @ a.T)[0] for _ in range(5))
    rate = 2.0 * len(a) ** 2 * WIDTH / spent
    return 2.0 * n_pairs * WIDTH / rate, rate / 1e9


def main() -> None:
    images = 2_500 if quick() else IMAGES
    ours(*faces(1_000).dataset(), faces(1_000).members)  # compiles
    table, mine, walls = [], np.zeros(0), 0.0
    for n in (images // 8, images // 4, images // 2, images):
        made = faces(n)
        laid_out = made.dataset()
        wall = time.perf_counter()
        spent, mine = cpu_seconds(lambda a=laid_out, m=made.members: ours(*a, m))
        walls = time.perf_counter() - wall
        table.append((n, spent))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    peer_s, (others, n_pairs) = cpu_seconds(lambda: theirs(made))
    # The peer's similarities are of single precision: a pair or two may change sides.
    fewest = np.array([_genuine(made, inside) for inside in made.members.T])
    if (np.abs(mine - others) > 2.5 / fewest).any():
        raise SystemExit("the two disagree, so their times mean nothing")
    ours_s = table[-1][1]
    floor_s, rate = floor(n_pairs)
    print(f"{n_pairs:,} pairs of {images:,} x {WIDTH}, {GROUPS} groups, TAR at FAR {FAR:g}")
    print("  images   CPU s   times the last (pairs: x4)")
    for (n, spent), before in zip(table, [None, *table], strict=False):
        print(f"{n:8,}  {spent:6.2f}" + (f"   {spent / before[1]:.1f}" if before else ""))
    print(f"isolux: {ours_s:.2f} CPU s ({walls:.2f} s), peak memory {peak:.2f} GiB, data included")
    print(f"numpy and scikit-learn: {peer_s:.2f} CPU s")
    print(
        f"floor: {floor_s:.2f} s, these inner products at the {rate:.0f} GFLOP/s of a dense "
        f"product of double precision; ours is {ours_s / floor_s:.0f} times that"
    )
    last_line(
        "verification", ours_s, "numpy and scikit-learn", peer_s, pairs=n_pairs, images=images,
        groups=GROUPS, peak_gib=peak, floor_s=floor_s, sizes=table,
    )  # fmt: skip


def _genuine(faces: Faces, inside: npt.NDArray[np.bool_]) -> int:
    photos = np.bincount(faces.person[inside])
    return int((photos * (photos - 1) // 2).sum())


if __name__ == "__main__":
    main()

"""One label an item of a million answers, and how well annotators agree, beside what users have.

Dawid–Skene beside crowd-kit's, both run until no chance moves by more than 1e-5 (crowd-kit is told
how many rounds that takes: its own rule stops long before). Krippendorff's alpha of a million
answers with 1,000 replicates, from a table on disk by ``isolux.audit``, beside the package
``krippendorff`` called once for each replicate (one call is timed). Neither peer is pinned: without
them the times of ours stand alone.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import isolux
from benchmarks._timing import cpu_seconds, last_line, quick
from isolux.stats.annotators import AnnotatorLabels, fit_dawid_skene

ITEMS, EACH, ANNOTATORS, CLASSES, REPLICATES = 200_000, 5, 1_000, 4, 1_000
CLOSE, SAME = 1e-5, 0.995


def world(items: int) -> AnnotatorLabels:
    """Annotators who are right 50 to 95 % of the time, and guess else."""
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(items, dtype=np.int32), EACH)
    who = (rng.integers(0, ANNOTATORS, items)[:, None] + np.arange(EACH) * 7) % ANNOTATORS
    who = who.ravel().astype(np.int32)
    true = rng.choice(CLASSES, items, p=[0.4, 0.3, 0.2, 0.1])
    right = rng.random(len(item)) < rng.uniform(0.5, 0.95, ANNOTATORS)[who]
    said = np.where(right, true[item], rng.integers(0, CLASSES, len(item))).astype(np.int32)
    return AnnotatorLabels(item, who, said, items, ANNOTATORS, CLASSES)


def rounds_needed(answers: AnnotatorLabels) -> int:
    """Count the rounds of plain EM until no chance moves by more than ``CLOSE``."""
    from isolux.stats.annotators import (
        _build_dawid_skene_step,
        _EmPoint,
        _weighted_confusion_counts,
        label_shares_by_item,
    )

    chance, own = label_shares_by_item(answers), np.ones(answers.n_items)
    step = _build_dawid_skene_step(answers, own, chance)
    at = _EmPoint(_weighted_confusion_counts(answers, own, chance), own @ chance)
    for n in range(1, 2_000):
        at, moved, _ = step(at)
        if moved < CLOSE:
            return n
    return 2_000


def crowd_kit(answers: AnnotatorLabels, rounds: int) -> tuple[float, np.ndarray]:
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    table = pd.DataFrame(
        {"task": answers.item_index, "worker": answers.annotator_index, "label": answers.label}
    )
    model = DawidSkene(n_iter=rounds, tol=0.0)
    seconds, found = cpu_seconds(lambda: model.fit_predict_proba(table))
    return seconds, found.sort_index()[sorted(found.columns)].to_numpy()


def agreement(answers: AnnotatorLabels, folder: Path) -> tuple[float, float]:
    """Time ``isolux.audit`` from a file to alpha with its interval."""
    half = np.where(answers.item_index % 2, "odd", "even")
    columns = {
        "photo": answers.item_index,
        "half": half,
        "annotator": answers.annotator_index,
        "answer": answers.label,
    }
    pl.DataFrame(columns).write_parquet(folder / "ratings.parquet")
    seconds, run = cpu_seconds(
        lambda: isolux.audit(
            f"ratings:{folder / 'ratings.parquet'}", task="agreement", by=["half"],
            metrics=["alpha_nominal"], replicates=REPLICATES,
        )
    )  # fmt: skip
    rows = run.group_metrics.filter(pl.col("metric") == "alpha_nominal", group="overall")
    return seconds, float(rows["value"][0])


def main() -> None:
    items = 20_000 if quick() else ITEMS
    fit_dawid_skene(world(100), max_rounds=3)
    sizes = []
    for part in (items // 8, items // 4, items // 2, items):
        answers = world(part)
        ours_s, fitted = cpu_seconds(lambda a=answers: fit_dawid_skene(a, tolerance=CLOSE))
        sizes.append([part * EACH, ours_s])
        print(f"Dawid-Skene, {part * EACH:>9,} answers: {ours_s:.2f} s")
    rounds = rounds_needed(answers)
    more: dict[str, object] = {"answers": items * EACH, "rounds_of_plain_em": rounds}
    peer_s = float("nan")
    if importlib.util.find_spec("crowdkit"):
        peer_s, theirs = crowd_kit(answers, rounds)
        same = float((theirs.argmax(axis=1) == fitted.chance.argmax(axis=1)).mean())
        if same < SAME:
            raise SystemExit(f"only {same:.2%} of the labels are the same: the times mean nothing")
        print(f"crowd-kit, {rounds} rounds: {peer_s:.1f} s, {peer_s / ours_s:.1f} times ours;"
              f" {same:.2%} of the labels are the same (ours has a prior)")  # fmt: skip
    else:
        print("crowd-kit is not installed: no comparison")
    with tempfile.TemporaryDirectory() as folder:
        alpha_s, alpha = agreement(answers, Path(folder))
    print(f"alpha {alpha:.4f} with {REPLICATES:,} replicates, from a file: {alpha_s:.2f} s")
    if importlib.util.find_spec("krippendorff"):
        import krippendorff

        table = np.full((ANNOTATORS, items), np.nan)
        table[answers.annotator_index, answers.item_index] = answers.label
        one_s, theirs_alpha = cpu_seconds(
            lambda: krippendorff.alpha(table, level_of_measurement="nominal")
        )
        if abs(theirs_alpha - alpha) > 1e-9:
            raise SystemExit(f"alpha {alpha}, theirs {theirs_alpha}: the times mean nothing")
        loop_s = one_s * REPLICATES
        print(f"krippendorff, one call {one_s:.2f} s, {REPLICATES:,} calls {loop_s:,.0f} s"
              f" (reckoned): {loop_s / alpha_s:,.0f} times ours")  # fmt: skip
        more |= {"alpha_s": alpha_s, "alpha_loop_s": loop_s, "alpha_ratio": loop_s / alpha_s}
    last_line("consensus", ours_s, "crowd-kit", peer_s, sizes=sizes, **more)


if __name__ == "__main__":
    main()

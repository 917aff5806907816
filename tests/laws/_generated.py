"""Worlds of pictures whose true shares are known and whose judge errs by a known matrix."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.spec import Groups, Statistics
from isolux.core.tables import ATTRIBUTES, INSTANCES
from isolux.groups.measure import measure_groups
from isolux.groups.membership import build_membership
from isolux.groups.option_parsing import read_groupings
from isolux.tasks.generated_images import score

INFO = DatasetInfo(title="Drawn", summary="Pictures that a test numbered.", references=())


def judged_world(rng, shares, matrix, *, pictures, counted):
    """Draw two prompts of the same shares, a judgement of each picture, and a counted matrix."""
    values = "abcd"[: len(shares)]
    true = rng.choice(len(shares), 2 * pictures, p=shares)
    said = [int(rng.choice(len(shares), p=matrix[t])) for t in true]
    ids = [f"p{i}" for i in range(len(true))]
    prompts = pl.DataFrame(
        {
            "unit_kind": "instance",
            "unit_id": ids,
            "attribute": "prompt",
            "value": ["one", "other"] * pictures,
        }
    )
    pictures_ = Dataset(
        "drawn", INFO, INSTANCES.conform(pl.DataFrame({"instance_id": ids, "image_id": ids})),
        ATTRIBUTES.conform(prompts),
    )  # fmt: skip
    answers = pl.DataFrame({"model": "m", "instance_id": ids, "label": [values[s] for s in said]})
    counts = [rng.multinomial(counted, row) for row in matrix]
    rows = [(values[t], values[s], int(counts[t][s]))
            for t in range(len(shares)) for s in range(len(shares))]  # fmt: skip
    table = pl.DataFrame(rows, schema=["true", "labelled", "count"], orient="row")
    return pictures_, answers, table


def held_shares(shares, matrix, *, worlds, pictures, counted, replicates=400):
    """Count how often intervals hold the planted share of the first value, corrected and naive."""
    found = {"corrected": [], "naive": [], "as if exact": []}
    means = {"corrected": [], "naive": []}
    with tempfile.TemporaryDirectory() as folder:
        path, exact = Path(folder) / "matrix.csv", Path(folder) / "exact.csv"
        for seed in range(worlds):
            rng = np.random.default_rng([seed, counted, pictures])
            dataset, answers, table = judged_world(
                rng, shares, matrix, pictures=pictures, counted=counted
            )
            table.write_csv(path)
            whole = pl.col("count").sum().over("true")
            table.with_columns(share=pl.col("count") / whole).drop("count").write_csv(exact)
            for file, names in ((path, ("corrected", "naive")), (exact, ("as if exact",))):
                scores = score(dataset, answers, matrix=str(file))
                members = build_membership(
                    dataset.attributes, ("prompt",), read_groupings(Groups(), dataset.attributes),
                    units=scores.evaluated_units(),
                )  # fmt: skip
                table_ = measure_groups(
                    scores, members, Statistics(replicates=replicates, seed=seed)
                ).to_table()
                for name in names:
                    metric = "judged_share" if name == "naive" else "share"
                    row = table_.filter(metric=metric, label="a", group="one").row(0, named=True)
                    found[name].append(row["low"] <= shares[0] <= row["high"])
                    if name in means:
                        means[name].append(row["value"])
    return {
        "shares": " / ".join(f"{s:g}" for s in shares),
        "right": " / ".join(f"{matrix[i][i]:g}" for i in range(len(shares))),
        "pictures of a prompt": pictures,
        "matrix, cases a value": counted,
        "corrected, mean": float(np.mean(means["corrected"])),
        "as judged, mean": float(np.mean(means["naive"])),
        "corrected: holds it, %": float(np.mean(found["corrected"])),
        "as judged: holds it, %": float(np.mean(found["naive"])),
        "matrix taken as exact: holds it, %": float(np.mean(found["as if exact"])),
    }

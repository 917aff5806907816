"""The made-up files that the pages' examples read: ``people.csv`` and ``predictions.csv``.

120 subjects with five photographs each; the model's mistakes are injected (one in three for women
of group B, one in ten for everyone else), so an example has something to find.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl


def write_people(folder: Path) -> None:
    """Write both files. The same every time."""
    rng = np.random.default_rng(20261121)
    subject = np.repeat(np.arange(120), 5)
    race = np.array(["A", "B", "C"])[subject % 3]
    truth = np.array(["female", "male"])[(subject // 3) % 2]
    rate = np.where((race == "B") & (truth == "female"), 1 / 3, 1 / 10)
    wrong = rng.random(subject.size) < rate
    people = pl.DataFrame(
        {
            "id": [f"{i:03}.jpg" for i in range(subject.size)],
            "subject": [f"s{s:03}" for s in subject],
            "race": race,
            "gender": truth,
            "predicted_gender": np.where(wrong, np.where(truth == "male", "female", "male"), truth),
            "confidence": rng.uniform(0.5, 1.0, subject.size).round(4),
        }
    )
    people.write_csv(folder / "people.csv")
    people.select("id", gender="predicted_gender", confidence="confidence").write_csv(
        folder / "predictions.csv"
    )

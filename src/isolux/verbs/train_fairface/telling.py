"""What is said before a network is trained."""

from __future__ import annotations

import polars as pl

from isolux.vocabulary import progress


def say_counts(counts: pl.DataFrame, train: int, held: int, *, balanced: bool) -> None:
    """Say how many faces of each class are learnt from, before a balance and after."""
    progress.say(f"{train:,} faces are learnt from, {held:,} are held out.")
    alone = counts.filter(~pl.col("attribute").str.contains("*", literal=True))
    for (attribute,), part in alone.group_by(["attribute"], maintain_order=True):
        told = ", ".join(
            f"{row['value']} {row['before']:,}" + (f" → {row['after']:,}" if balanced else "")
            for row in part.iter_rows(named=True)
        )
        progress.say(f"{attribute}: {told}")
    if balanced:
        progress.say("(before → after: faces, and how often an epoch draws one of them)")

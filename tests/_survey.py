"""A survey of 24 schools in 3 strata, drawn by arithmetic so that R can be given the same rows."""

from __future__ import annotations

import polars as pl

__all__ = ["survey"]


def survey() -> pl.DataFrame:
    """Return the rows: id, school, stratum, weight, tone, photographer, right (0 or 1), score."""
    rows = []
    state = 12345
    for school in range(24):
        stratum = "abc"[school % 3]
        for pupil in range(6 + school % 5):
            drawn = []
            for _ in range(4):
                state = (1103515245 * state + 12345) % 2**31
                drawn.append((state >> 16) / 2**15)
            share = {"a": 0.9, "b": 0.7, "c": 0.55}[stratum] - 0.1 * (school % 4 == 1)
            rows.append(
                {
                    "id": f"p{len(rows)}",
                    "school": f"s{school}",
                    "stratum": stratum,
                    "weight": {"a": 20.0, "b": 9.0, "c": 4.0}[stratum] * (1 + pupil % 3),
                    "tone": ("light", "light", "mid", "dark")[int(4 * drawn[0])],
                    "photographer": f"f{int(12 * drawn[1])}",
                    "right": float(drawn[2] < share),
                    "score": round(float(0.3 * (drawn[2] < share) + 0.7 * drawn[3]), 4),
                }
            )
    return pl.DataFrame(rows)

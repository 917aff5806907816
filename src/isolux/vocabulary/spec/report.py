"""Settings of what is written: the run directory and its report."""

from __future__ import annotations

from typing import Literal

from isolux.vocabulary.spec.stage import Stage, setting

__all__ = ["Report"]


class Report(Stage):
    """Where the run is written and what stands in it."""

    planted: str | None = setting(
        None, "planted.json of a synthetic world, shown beside what is found"
    )
    keep_pairs: bool = setting(
        default=True,
        description="write every pair of a verification; only new tests need them",
    )
    paths: Literal["relative", "absolute"] = setting(
        "relative",
        "how files are named in what is written: relative to the working folder, which tells "
        "neither this machine's folders nor its user",
    )
    out: str | None = setting(None, "the run directory to write; default: runs/NAME", often=True)
    overwrite: bool = setting(
        default=False, description="replace that directory if it exists", often=True
    )

"""Settings of what is written: the run directory and its report."""

from __future__ import annotations

from typing import Literal

from isolux.core.spec.stage import SettingsStage, setting


class Report(SettingsStage):
    """Where the run is written and what stands in it."""

    injected: str | None = setting(
        None, "injected.json of a synthetic world, shown beside what was found", flag=False
    )
    keep_pairs: bool = setting(
        default=True,
        description="write every verification pair; only needed for new tests",
        flag=False,
        needs=("pairs",),
    )
    paths: Literal["relative", "absolute"] = setting(
        "relative",
        "how paths appear in the output: relative to the working folder, which reveals neither "
        "this machine's folders nor its user, or absolute",
        flag=False,
    )
    describe_as: tuple[str, ...] = setting(
        (),
        'what sentences call the groups of an attribute: "race=people labelled {value}"; '
        "default: by the kind of attribute",
        flag=False,
    )
    out: str | None = setting(None, "the run directory to write; default: runs/NAME", often=True)
    overwrite: bool = setting(
        default=False, description="replace that directory if it exists", often=True
    )

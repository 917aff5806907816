"""Settings of what is said about why groups differ."""

from __future__ import annotations

from pydantic import field_validator

from isolux.core.spec.stage import SettingsStage, setting


class Explain(SettingsStage):
    """Which analyses run with the audit, and their settings."""

    analyses: tuple[str, ...] = setting(
        (),
        "analyses to run with the audit: `isolux list analyses`; none: not those of a protocol",
        flat="explain",
        often=True,
    )
    role: tuple[str, ...] = setting(
        (),
        "an attribute's causal role in the gap, for the analysis confounders, as light=mediator: "
        "before, mediator, after or unknown",
    )
    analysis_option: tuple[str, ...] = setting((), "a setting of an analysis, ANALYSIS.NAME=VALUE")

    @field_validator("analyses")
    @classmethod
    def _read_none(cls, analyses: tuple[str, ...]) -> tuple[str, ...]:
        return () if analyses == ("none",) else analyses

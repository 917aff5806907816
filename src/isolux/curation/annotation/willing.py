"""Annotators who took back that their answers may be used: these count no longer, new or old."""

from __future__ import annotations

import polars as pl

from isolux.curation.project.consent import read_consent
from isolux.curation.project.folder import Project

__all__ = ["Willing"]


class Willing:
    """Who, of a project's annotators, has not revoked that their answers are used.

    Annotators whom the ledger of consent does not know are willing: a lab may employ them.

    Parameters
    ----------
    project : Project
    """

    def __init__(self, project: Project) -> None:
        self._ledger = read_consent(project)

    def are(self, annotators: pl.Series) -> pl.Series:
        """Tell of each whether their answers may be used."""
        if self._ledger is None:
            return pl.Series([True] * len(annotators), dtype=pl.Boolean)
        allowed = self._ledger.allows("annotator", annotators.cast(pl.String), "evaluation")
        return allowed.fill_null(value=True)

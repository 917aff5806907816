"""A long file of several models: one audit each."""

from __future__ import annotations

import re
from pathlib import Path

from isolux.predictions import models_in
from isolux.verbs.audit.predicted import with_imported
from isolux.vocabulary.spec import AuditSpec


def one_per_model(spec: AuditSpec) -> tuple[AuditSpec, ...]:
    """Part an audit of a long file of several models into one audit each, in folders of their own.

    Parameters
    ----------
    spec : AuditSpec
        With ``model_column`` and no ``model_name``, there is one audit for each model that the
        column names, written below ``out``; else it is the only one.

    Raises
    ------
    IsoluxError
        The file cannot be read, or names no model in some row.
    """
    spec = with_imported(spec)
    said = spec.predictions
    if said.model_column is None or said.model_name is not None or said.file is None:
        return (spec,)
    models = models_in(
        said.file, said.model_column, format=said.format, sheet=said.prediction_sheet
    )
    folders = [re.sub(r"[^\w.-]+", "_", name).strip(".") or "model" for name in models]
    if len(models) == 1:
        return (spec.updated(model_name=models[0]),)
    if len({folder.lower() for folder in folders}) < len(models):
        folders = [f"{k + 1}-{folder}" for k, folder in enumerate(folders)]
    named = zip(models, folders, strict=True)
    out = Path(spec.report.out or "runs")
    return tuple(spec.updated(model_name=model, out=str(out / folder)) for model, folder in named)

"""Settings of a model's answers: where they are and how they meet the people."""

from __future__ import annotations

from typing import Literal

from isolux.core.spec.stage import SettingsStage, setting

IdFrom = Literal["column", "basename", "stem"]


class Predictions(SettingsStage):
    """The model's answers, their columns, and what they are joined on."""

    file: str | None = setting(
        None, "file with the model's answers", flat="predictions", often=True
    )
    format: str | None = setting(
        None,
        "format of --predictions, one of `isolux list formats`; default: recognised",
        needs=("predictions",),
    )
    prediction_sheet: str | None = setting(
        None,
        "for a workbook: the sheet of --predictions; default: the only one",
        flag=False,
        needs=("predictions",),
    )
    prediction_column: str | None = setting(
        None, "the column with the answer", often=True, prediction_kinds=("labels", "numbers")
    )
    question_column: str | None = setting(
        None,
        "the column with the question, if each person has answers to several questions; default: "
        "question or prompt",
        flag=False,
        needs=("predictions", "prediction_column"),
        prediction_kinds=("labels",),
    )
    score_column: str | None = setting(
        None,
        "the column with the confidence (with --positive: in that class); if there are no "
        "answers, a score on any scale",
        prediction_kinds=("labels", "numbers"),
    )
    score_scale: float = setting(
        1.0,
        "confidences run from 0 to this number",
        gt=0,
        flag=False,
        needs=("predictions", "score_column", "scores"),
        prediction_kinds=("labels", "numbers"),
    )
    detected_column: str | None = setting(
        None,
        "column of 1 or 0, yes or no: whether a face was found (empty: no); if there are no "
        "answers, only this is judged",
        flag=False,
        prediction_kinds=("labels",),
    )
    scores: str | None = setting(
        None,
        "file with the confidences, if they are not in the same file as the answers",
        flag=False,
        prediction_kinds=("labels",),
    )
    found: str | None = setting(
        None,
        "instead of --predictions: a list of the ids of people whom the model found",
        flag=False,
        prediction_kinds=("labels",),
    )
    missed: str | None = setting(
        None,
        "instead of --predictions: a list of the ids of people whom the model missed",
        flag=False,
        prediction_kinds=("labels",),
    )
    prediction_id: str | None = setting(
        None,
        "the column of --predictions that identifies a row; default: found",
        needs=("predictions", "scores", "found", "missed"),
    )
    id_from: IdFrom = setting(
        "column",
        "join on the whole id, its last path part, or that without its suffix",
        needs=("predictions", "scores", "found", "missed"),
    )
    model_column: str | None = setting(
        None,
        "the column of --predictions that names the model, if the file holds the answers of "
        "several; each gets its own run (of a table of counts, the column there: one run of all)",
        needs=("predictions", "counts"),
        prediction_kinds=("labels", "numbers"),
    )
    model_name: str | None = setting(
        None,
        "what to call the model; if --predictions holds several, which one to judge",
        often=True,
    )
    prediction_option: tuple[str, ...] = setting(
        (), "a setting specific to the format, NAME=VALUE (kind=masks)", needs=("predictions",)
    )

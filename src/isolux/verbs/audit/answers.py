"""A model's answers about people: which file or column holds them, and whom they are about.

Answers, scores without answers, or whether people were found at all; from the people's own table
or from files of their own, which are joined by ids that both sides declare.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.hashing import sha256_file, sha256_listing
from isolux.io.ids import IdFrom, reduced
from isolux.people.other_ids import ids_of_file
from isolux.predictions import (
    QUESTION_COLUMNS,
    detected_from_attributes,
    found_or_missed,
    from_attributes,
    holds_scores_alone,
    join,
    labels_of_images,
    of_everyone_shown,
    of_model,
    read_detected,
    read_labels,
    read_scores,
    refuse_no_question,
    scores_from_attributes,
    with_scores,
)
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, columns_shown
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.spec import AuditSpec, Predictions

_MANY = 0.1  # of the people, without a confidence: said first
Joined = tuple[pl.DataFrame, tuple[str, ...]]


def people_answers(
    spec: AuditSpec, dataset: Dataset
) -> tuple[pl.DataFrame, tuple[str, ...], dict[str, str]]:
    """Read what a model said of people, and join it to them."""
    settings = spec.predictions
    _refuse_settings(settings)
    frame, notes = _read(spec, dataset)
    beside = [path for path in (settings.scores, settings.found, settings.missed) if path]
    return frame, notes, {path: hash_ for one in beside for path, hash_ in hashes(one).items()}


def _refuse_settings(settings: Predictions) -> None:
    if settings.prediction_option:
        raise SpecError(
            "predictions of labels have no settings",
            expected="--prediction-column, --score-column, … instead of --prediction-option",
            found=", ".join(settings.prediction_option),
        )
    sources = {"--predictions": settings.file, "found": settings.found, "missed": settings.missed}
    given = [f"{flag} {value}" for flag, value in sources.items() if value is not None]
    if len(given) > 1:
        raise SpecError(
            "there are several sources of predictions",
            expected="one of " + ", ".join(sources),
            found=" and ".join(given),
        )
    if settings.model_column is not None and settings.file is None:
        raise SpecError(
            "--model-column names a column of --predictions",
            expected="--predictions FILE",
            found=f"--model-column {settings.model_column} alone",
        )


def _read(spec: AuditSpec, dataset: Dataset) -> Joined:
    settings = spec.predictions
    listed = settings.found or settings.missed
    if listed is not None:
        return found_or_missed(
            dataset,
            listed,
            found=settings.found is not None,
            id=settings.prediction_id,
            id_from=settings.id_from,
            model=settings.model_name,
        )
    if _detected_alone(settings):
        return _read_detected(settings, dataset)
    if _scores_alone(settings):
        return _read_scores(settings, dataset)
    return _read_labels(spec, dataset)


def _read_labels(spec: AuditSpec, dataset: Dataset) -> Joined:
    settings = spec.predictions
    asked = _questions(spec)
    common: dict[str, Any] = {
        "score": None if settings.scores else settings.score_column,
        "scale": settings.score_scale,
        "detected": settings.detected_column,
        "separator": spec.people.separator,
        "model": settings.model_name if settings.file is None else None,
    }
    if settings.file is None:
        if settings.prediction_column is None:
            raise SpecError(
                "there are no predictions to audit",
                expected="--prediction-column COLUMN (answers), --score-column COLUMN (scores"
                " alone), --option detected_column=COLUMN or --predictions FILE",
                found="none of them; the data has "
                + columns_shown(sorted(dataset.attributes["attribute"].unique()), "attributes"),
                hint=(
                    "if answers are in the same table as the people: --prediction-column NAME "
                    "--target NAME"
                )
                if dataset.outputs is None
                else f"what {dataset.name}:FILE holds is judged by --task {dataset.info.task}",
            )
        question = settings.question_column or (_own_question(dataset) if asked else None)
        answers = from_attributes(dataset, settings.prediction_column, question=question, **common)
        notes = _own_truth(settings.prediction_column, spec.task.get("target"))
    else:
        answers, notes = _of_file(
            dataset,
            settings,
            read_labels(
                settings.file,
                id=settings.prediction_id,
                column=settings.prediction_column,
                format=settings.format,
                model_column=settings.model_column,
                sheet=settings.prediction_sheet,
                question=settings.question_column,
                questions=asked,
                **common,
            ),
        )
    if settings.scores is None:
        return answers, notes
    beside = read_scores(
        settings.scores,
        column=settings.score_column,
        id=settings.prediction_id,
        scale=settings.score_scale,
    )
    stayed = _of_who_stayed(beside, dataset, settings.id_from)
    scores, said = join(dataset, stayed, id_from=settings.id_from, what="confidence")
    others = _other_ids(dataset, settings, settings.scores)
    few = _without(dataset, scores)
    said = tuple(note for note in said if not (few and "people have no confidence" in note))
    told = [f"Confidences are those of {settings.scores}.", *few, *said]
    return with_scores(answers, scores, settings.scores), (*notes, *others, *told)


def _of_file(dataset: Dataset, settings: Predictions, frame: pl.DataFrame) -> Joined:
    """Join a file's labels to people by their ids; labels of images to everyone they show."""
    if not labels_of_images(str(settings.file), settings.format):
        return joined(dataset, settings, frame)
    shown = of_everyone_shown(dataset, chosen(frame, settings))
    return shown.frame, shown.notes


def _questions(spec: AuditSpec) -> bool:
    """Say whether the task takes answers to several questions; refuse a column of them if not."""
    taken = bool(registry.task_info(spec.task.name).questions)
    if spec.predictions.question_column is not None and not taken:
        raise SpecError(
            f"the task {spec.task.name} judges one answer of each person",
            expected="--task answers beside question_column",
            found=f"question_column={spec.predictions.question_column}",
            hint='--only "question=…" keeps one question, of a table with a row an answer',
        )
    return taken


def _own_question(dataset: Dataset) -> str | None:
    """Find what was asked in a table that has a row for each answer."""
    known = set(dataset.attributes["attribute"].unique())
    found = next((name for name in QUESTION_COLUMNS if name in known), None)
    if found is not None:
        who = dataset.instances
        again = (who[name] for name in ("image_id", "subject_id", "cluster_id"))
        ids = next((one for one in again if one.drop_nulls().is_duplicated().any()), None)
        where = dataset.where
        values = dataset.values_of(found)["value"]
        refuse_no_question(found, values, who["instance_id"] if ids is None else ids, where)
    return found


def _without(dataset: Dataset, scores: pl.DataFrame) -> list[Caution]:
    """Caution where many people have no confidence: what rests on it is about the others."""
    n, met = dataset.instances.height, scores["instance_id"].n_unique()
    if n - met < _MANY * n:
        return []
    return [
        Caution(
            f"{n - met:,} of {n:,} people have no confidence: what rests on confidences is about"
            " the others alone. Is the file whole?"
        )
    ]


def _other_ids(dataset: Dataset, settings: Predictions, file: str) -> tuple[str, ...]:
    own = file == settings.file
    return ids_of_file(
        dataset,
        file,
        id=settings.prediction_id,
        id_from=settings.id_from,
        form=settings.format if own else None,
        sheet=settings.prediction_sheet if own else None,
    )


def _own_truth(column: str, target: object) -> tuple[str, ...]:
    """Warn where the answers are the truth itself: such a model is never wrong."""
    if column != target:
        return ()
    told = f"{column!r} is named as the truth and as the answers: no answer can be wrong."
    return (Caution(f"{told} --prediction-column names the model's own."),)


def _detected_alone(settings: Predictions) -> bool:
    """Tell whether it is said who was found, and nothing that is known to hold answers."""
    others = (settings.prediction_column, settings.score_column, settings.scores)
    if settings.detected_column is None or any(one is not None for one in others):
        return False
    return settings.file is None or holds_scores_alone(settings.file, settings.format)


def _read_detected(settings: Predictions, dataset: Dataset) -> Joined:
    column = str(settings.detected_column)
    if settings.file is None:
        return detected_from_attributes(dataset, column, model=settings.model_name), ()
    return joined(
        dataset,
        settings,
        read_detected(
            settings.file,
            column,
            id=settings.prediction_id,
            model_column=settings.model_column,
            sheet=settings.prediction_sheet,
            format=settings.format,
        ),
    )


def _scores_alone(settings: Predictions) -> bool:
    """Tell whether there are scores and nothing that is known to hold answers."""
    if settings.score_column is None or settings.prediction_column is not None or settings.scores:
        return False
    return settings.file is None or holds_scores_alone(settings.file, settings.format)


def _read_scores(settings: Predictions, dataset: Dataset) -> Joined:
    """Read scores without answers, from their own file or the people's own table."""
    if settings.detected_column is not None:
        raise SpecError(
            "scores alone say nothing of who was detected",
            expected="--prediction-column beside detected_column",
            found=f"--score-column {settings.score_column} alone",
        )
    return numbers_of_column(settings, dataset)


def chosen(frame: pl.DataFrame, settings: Predictions) -> pl.DataFrame:
    """Take the one model that is named of several, or give the only one its name."""
    if settings.model_name is None:
        return frame
    if "model" in frame.columns and frame["model"].n_unique() > 1:
        return of_model(frame, settings.model_name)
    return frame.with_columns(pl.lit(settings.model_name).alias("model"))


def numbers_of_column(settings: Predictions, dataset: Dataset) -> Joined:
    """Read one number of each unit from a named column, of the people's table or of a file."""
    column = settings.prediction_column or settings.score_column
    if column is None:
        raise SpecError(
            "there are no numbers to audit",
            expected="--score-column COLUMN, or --predictions FILE",
            found="neither",
        )
    scale = settings.score_scale
    if settings.file is None:
        model = settings.model_name
        return scores_from_attributes(dataset, column, scale=scale, model=model), ()
    return joined(
        dataset,
        settings,
        read_scores(
            settings.file,
            column=column,
            id=settings.prediction_id,
            scale=scale,
            model_column=settings.model_column,
            sheet=settings.prediction_sheet,
            form=settings.format,
        ),
    )


def joined(dataset: Dataset, settings: Predictions, frame: pl.DataFrame) -> Joined:
    """Take the model that is meant, leave out those who withdrew, and join by ids."""
    stayed = _of_who_stayed(chosen(frame, settings), dataset, settings.id_from)
    met, notes = join(dataset, stayed, id_from=settings.id_from)
    return met, (*_other_ids(dataset, settings, str(settings.file)), *notes)


def _of_who_stayed(answers: pl.DataFrame, dataset: Dataset, id_from: IdFrom) -> pl.DataFrame:
    """Leave out answers about people who withdrew, before strangers are counted and named."""
    if not dataset.withdrawn:
        return answers
    gone = reduced(pl.Series(sorted(dataset.withdrawn)), id_from)
    whose = reduced(answers["instance_id"], id_from)
    # An id may be of several kinds: a subject 7 who withdrew is not the photo 7 of somebody else.
    stays = reduced(dataset.instances["instance_id"].cast(pl.String), id_from)
    return answers.filter(~whose.is_in(gone.implode()) | whose.is_in(stays.implode()))


def hashes(path: str) -> dict[str, str]:
    """Hash a file of predictions, or the names and sizes of a folder of them."""
    return {path: sha256_listing(path) if Path(path).is_dir() else sha256_file(path)}

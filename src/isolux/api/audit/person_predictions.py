"""A model's answers about people: which file or column holds them, and whom they are about.

Answers, scores without answers, or whether people were found at all; from the people's own table
or from files of their own, which are joined by ids that both sides declare.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from isolux.core import registry
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, format_columns
from isolux.core.notes import Caution
from isolux.core.spec import AuditSpec, Predictions
from isolux.io.hashing import sha256_file, sha256_listing
from isolux.io.ids import IdFrom, reduce_ids
from isolux.people.id_consistency import note_conflicting_file_ids
from isolux.predictions import (
    QUESTION_COLUMNS,
    detected_from_attributes,
    give_image_labels_to_people,
    has_image_labels,
    has_only_scores,
    join_predictions,
    join_scores,
    labels_from_attributes,
    note_answers_of_images,
    read_detected_column,
    read_detected_list,
    read_labels,
    read_scores,
    refuse_unasked_question,
    scores_from_attributes,
    select_model,
)

_MAX_UNRATED_SHARE = 0.1  # share of people without a confidence from which a caution is given
PredictionsWithNotes = tuple[pl.DataFrame, tuple[str, ...]]


def read_person_predictions(
    spec: AuditSpec, dataset: Dataset
) -> tuple[pl.DataFrame, tuple[str, ...], dict[str, str]]:
    """Read a model's predictions of people and join them by id."""
    settings = spec.predictions
    _refuse_conflicting_settings(settings)
    frame, notes = _read_predictions_by_source(spec, dataset)
    extra_paths = [path for path in (settings.scores, settings.found, settings.missed) if path]
    return (
        frame,
        notes,
        {
            path: sha256
            for extra_path in extra_paths
            for path, sha256 in hash_prediction_file_or_folder(extra_path).items()
        },
    )


def _refuse_conflicting_settings(settings: Predictions) -> None:
    if settings.prediction_option:
        raise SpecError(
            "predictions of labels have no settings",
            expected="--prediction-column, --score-column, … instead of --prediction-option",
            found=", ".join(settings.prediction_option),
        )
    sources = {"--predictions": settings.file, "found": settings.found, "missed": settings.missed}
    given_flags = [f"{flag} {path}" for flag, path in sources.items() if path is not None]
    if len(given_flags) > 1:
        raise SpecError(
            "there are several sources of predictions",
            expected="one of " + ", ".join(sources),
            found=" and ".join(given_flags),
        )


def _read_predictions_by_source(spec: AuditSpec, dataset: Dataset) -> PredictionsWithNotes:
    settings = spec.predictions
    id_list = settings.found or settings.missed
    if id_list is not None:
        return read_detected_list(
            dataset,
            id_list,
            lists_detected=settings.found is not None,
            id=settings.prediction_id,
            id_from=settings.id_from,
            model=settings.model_name,
        )
    if _has_detection_only(settings):
        return _read_detected_flags(settings, dataset)
    if _has_scores_only(settings):
        return _read_scores_without_labels(settings, dataset)
    return _read_labels(spec, dataset)


def _read_labels(spec: AuditSpec, dataset: Dataset) -> PredictionsWithNotes:
    settings = spec.predictions
    takes_questions = _supports_questions(spec)
    options: dict[str, Any] = {
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
                + format_columns(sorted(dataset.attributes["attribute"].unique()), "attributes"),
                hint=(
                    "if answers are in the same table as the people: --prediction-column NAME "
                    "--target NAME"
                )
                if dataset.bundled_predictions is None
                else f"what {dataset.name}:FILE holds is judged by --task {dataset.info.task}",
            )
        question = settings.question_column or (
            _find_question_column(dataset) if takes_questions else None
        )
        answers = labels_from_attributes(
            dataset, settings.prediction_column, question=question, **options
        )
        notes = note_answers_of_images(dataset, settings.prediction_column)
    else:
        answers, notes = _join_labels_to_people(
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
                questions=takes_questions,
                **options,
            ),
        )
    if settings.scores is None:
        return answers, notes
    confidences = read_scores(
        settings.scores,
        column=settings.score_column,
        id=settings.prediction_id,
        scale=settings.score_scale,
    )
    current_confidences = _drop_withdrawn(confidences, dataset, settings.id_from)
    scores, confidence_notes = join_predictions(
        dataset, current_confidences, id_from=settings.id_from, row_name="confidence"
    )
    id_notes = _check_file_ids(dataset, settings, settings.scores)
    missing_notes = _caution_on_missing_confidence(dataset, scores)
    confidence_notes = tuple(
        note
        for note in confidence_notes
        if not (missing_notes and "people have no confidence" in note)
    )
    score_notes = [
        f"Confidences are those of {settings.scores}.",
        *missing_notes,
        *confidence_notes,
    ]
    return join_scores(answers, scores, settings.scores), (*notes, *id_notes, *score_notes)


def _join_labels_to_people(
    dataset: Dataset, settings: Predictions, frame: pl.DataFrame
) -> PredictionsWithNotes:
    """Join labels to people by id; labels of images go to all people in the image."""
    if not has_image_labels(str(settings.file), settings.format):
        return join_to_dataset(dataset, settings, frame)
    image_predictions = give_image_labels_to_people(dataset, select_or_name_model(frame, settings))
    return image_predictions.frame, image_predictions.notes


def _supports_questions(spec: AuditSpec) -> bool:
    """Return whether the task takes several questions; else refuse a question column."""
    takes_questions = bool(registry.task_info(spec.task.name).has_questions)
    if spec.predictions.question_column is not None and not takes_questions:
        raise SpecError(
            f"the task {spec.task.name} judges one answer of each person",
            expected="--task answers beside question_column",
            found=f"question_column={spec.predictions.question_column}",
            hint='--only "question=…" keeps one question, of a table with a row an answer',
        )
    return takes_questions


def _find_question_column(dataset: Dataset) -> str | None:
    """Find the question column of a table with a row per answer."""
    attribute_names = set(dataset.attributes["attribute"].unique())
    question_column = next((name for name in QUESTION_COLUMNS if name in attribute_names), None)
    if question_column is not None:
        instances = dataset.instances
        id_columns = (instances[name] for name in ("image_id", "subject_id", "cluster_id"))
        ids = next(
            (column for column in id_columns if column.drop_nulls().is_duplicated().any()), None
        )
        source = dataset.row_source
        values = dataset.values_of(question_column)["value"]
        refuse_unasked_question(
            question_column, values, instances["instance_id"] if ids is None else ids, source
        )
    return question_column


def _caution_on_missing_confidence(dataset: Dataset, scores: pl.DataFrame) -> list[Caution]:
    """Caution where many people have no confidence."""
    n_people, n_with_confidence = dataset.instances.height, scores["instance_id"].n_unique()
    if n_people - n_with_confidence < _MAX_UNRATED_SHARE * n_people:
        return []
    return [
        Caution(
            f"{n_people - n_with_confidence:,} of {n_people:,} people have no confidence:"
            " what rests on confidences is about"
            " the others alone. Is the file whole?"
        )
    ]


def _check_file_ids(dataset: Dataset, settings: Predictions, file: str) -> tuple[str, ...]:
    is_prediction_file = file == settings.file
    return note_conflicting_file_ids(
        dataset,
        file,
        id=settings.prediction_id,
        id_from=settings.id_from,
        format_name=settings.format if is_prediction_file else None,
        sheet=settings.prediction_sheet if is_prediction_file else None,
    )


def _has_detection_only(settings: Predictions) -> bool:
    """Return whether only detected flags are given, without labels or scores."""
    prediction_columns = (settings.prediction_column, settings.score_column, settings.scores)
    if settings.detected_column is None or any(column is not None for column in prediction_columns):
        return False
    return settings.file is None or has_only_scores(settings.file, settings.format)


def _read_detected_flags(settings: Predictions, dataset: Dataset) -> PredictionsWithNotes:
    column = str(settings.detected_column)
    if settings.file is None:
        return detected_from_attributes(dataset, column, model=settings.model_name), ()
    return join_to_dataset(
        dataset,
        settings,
        read_detected_column(
            settings.file,
            column,
            id=settings.prediction_id,
            model_column=settings.model_column,
            sheet=settings.prediction_sheet,
            format=settings.format,
        ),
    )


def _has_scores_only(settings: Predictions) -> bool:
    """Return whether only scores are given, without labels."""
    if settings.score_column is None or settings.prediction_column is not None or settings.scores:
        return False
    return settings.file is None or has_only_scores(settings.file, settings.format)


def _read_scores_without_labels(settings: Predictions, dataset: Dataset) -> PredictionsWithNotes:
    """Read scores without labels, from their own file or the people's table."""
    if settings.detected_column is not None:
        raise SpecError(
            "scores alone say nothing of who was detected",
            expected="--prediction-column beside detected_column",
            found=f"--score-column {settings.score_column} alone",
        )
    return read_number_column(settings, dataset)


def select_or_name_model(frame: pl.DataFrame, settings: Predictions) -> pl.DataFrame:
    """Select the named model of several, or give the only one its name."""
    if settings.model_name is None:
        return frame
    if "model" in frame.columns and frame["model"].n_unique() > 1:
        return select_model(frame, settings.model_name)
    return frame.with_columns(pl.lit(settings.model_name).alias("model"))


def read_number_column(settings: Predictions, dataset: Dataset) -> PredictionsWithNotes:
    """Read one number per unit from a column of the people's table or of a file."""
    column = settings.prediction_column or settings.score_column
    if settings.prediction_column and settings.score_column:
        raise SpecError(
            "two columns would hold the numbers",
            expected="--prediction-column or --score-column",
            found=f"{settings.prediction_column!r} and {settings.score_column!r}",
        )
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
    return join_to_dataset(
        dataset,
        settings,
        read_scores(
            settings.file,
            column=column,
            id=settings.prediction_id,
            scale=scale,
            model_column=settings.model_column,
            sheet=settings.prediction_sheet,
            format_name=settings.format,
        ),
    )


def join_to_dataset(
    dataset: Dataset, settings: Predictions, frame: pl.DataFrame
) -> PredictionsWithNotes:
    """Select the model, drop withdrawn people and join by id."""
    current_rows = _drop_withdrawn(select_or_name_model(frame, settings), dataset, settings.id_from)
    matched_rows, notes = join_predictions(dataset, current_rows, id_from=settings.id_from)
    return matched_rows, (*_check_file_ids(dataset, settings, str(settings.file)), *notes)


def _drop_withdrawn(answers: pl.DataFrame, dataset: Dataset, id_from: IdFrom) -> pl.DataFrame:
    """Drop predictions of withdrawn people, before unmatched ids are reported."""
    if not dataset.withdrawn_ids:
        return answers
    withdrawn_ids = reduce_ids(pl.Series(sorted(dataset.withdrawn_ids)), id_from)
    person_ids = reduce_ids(answers["instance_id"], id_from)
    # An id may be of several kinds: a subject 7 who withdrew is not the photo 7 of somebody else.
    present_ids = reduce_ids(dataset.instances["instance_id"].cast(pl.String), id_from)
    return answers.filter(
        ~person_ids.is_in(withdrawn_ids.implode()) | person_ids.is_in(present_ids.implode())
    )


def hash_prediction_file_or_folder(path: str) -> dict[str, str]:
    """Hash a file of predictions, or the names and sizes of a folder of them."""
    return {path: sha256_listing(path) if Path(path).is_dir() else sha256_file(path)}

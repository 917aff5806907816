"""Classification: whether a unit's predicted class is one of its true classes.

Results are one score per unit and metric, and evidence for the metrics that are not means.
Per-class recall is FACET's ``R@1`` (section 6.1, appendix A.5.2), and the rates of every class
against the rest are what its equalised odds need (the same place). The two policies for a face
that was not detected are FairFace's (section 4.4, Tables 6 and 8), and a model with other labels
is scored by the highest score over each class's labels (FACET, appendix A.5.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import polars as pl
import polars.selectors as cs

from isolux.core.containers import Dataset, Scores
from isolux.core.counts import TIMES, count_people
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.info import TaskInfo
from isolux.core.tables import to_polars
from isolux.stats.calibration import N_BINS, Binning
from isolux.tasks._scores import read_metrics, restrict_task_info
from isolux.tasks._truth import (
    fill_blank_truths,
    instances_with_empty_truths,
    instances_with_truth,
    list_truth_values,
)
from isolux.tasks.classification.answers import (
    Confidence,
    ScoreOf,
    read_confidence,
    read_predictions,
)
from isolux.tasks.classification.chance_agreement import (
    caution_on_chance_agreement,
    caution_on_confidences,
)
from isolux.tasks.classification.evidence import CalibrationBins, build_evidence
from isolux.tasks.classification.label_matching import (
    LabelMap,
    LabelMatching,
    check_foreign_answers,
    check_merge,
    check_similar_classes,
    invert_label_map,
    match_labels,
)
from isolux.tasks.classification.metric_selection import (
    check_positive,
    check_ranks,
    missing_inputs,
    refuse_answer_settings,
    refuse_score_settings,
    select_metrics,
)
from isolux.tasks.classification.metrics import (
    FACET,
    METRICS,
    REFERENCES,
    names_that_need,
)
from isolux.tasks.classification.notes import describe_counts, describe_missing_answers
from isolux.tasks.classification.rates import (
    ClassificationOutcomes,
    build_metric_rows,
    join_outcomes,
)
from isolux.tasks.classification.score_only_evaluation import (
    LowerScoreMeaning,
    ScoreOnlyInput,
    binarise_truth,
    default_positive,
    read_score_only,
)
from isolux.tasks.classification.thresholding import read_cutoff
from isolux.tasks.classification.without_truth import (
    answer_by_threshold,
    is_selection_only,
    refuse_unanswered_class,
    score_detection_only,
    score_selection_only,
)

INFO = TaskInfo(
    title="Classification",
    summary="Whether a model assigns the right class to a person or object.",
    references=REFERENCES,
    assumptions=(
        "A unit that carries several classes is judged right by any of them.",
        "Accuracy and selection rate also move with how common each class is in a group.",
        "Calibration error is never negative, so noise makes it larger in small groups.",
    ),
    metrics=METRICS,
    defaults=("accuracy", "recall", "balanced_accuracy"),
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    target: str | None = None,
    positive: str | None = None,
    one_vs_rest: bool = False,
    metrics: Sequence[str] = (),
    top_k: Sequence[int] = (),
    undetected: Literal["mistake", "leave-out", "both"] = "mistake",
    label_map: LabelMap | None = None,
    prediction_map: Mapping[str, str] | None = None,
    unknown_values: Sequence[str] = UNKNOWN_VALUES,
    score_of: ScoreOf | None = None,
    threshold: float | str | None = None,
    threshold_on: float | str | None = None,
    lower_score_means: LowerScoreMeaning = "other",
    calibration_bins: int = N_BINS,
    calibration_binning: Binning = "equal-width",
    seed: int = 0,
    model: str | None = None,
) -> Scores:
    """Judge every answer, or every score, of one or several models against the truth.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances.
    predictions : frame
        Table ``predictions (labels)``: ``model, instance_id, label, score, rank`` and, if known,
        ``detected``. Several ranks are several answers. Or scores alone, on any scale: ``model,
        instance_id, score`` and no ``label``; or ``model, instance_id, detected`` alone, of which
        ``detection_rate`` is measured and which no truth is needed for.
    target : str, optional
        The attribute with the true label; default: ``classes`` of the instances, and none for
        ``selection_rate`` alone. Several values of one unit are several valid classes, and any of
        them is right (FACET, section 6.1).
    positive : str, optional
        The class that true and false positive rates, precision, selection rate and ROC refer to.
        A unit is positive if its truth includes that class, and is given it if that is its first
        answer: another valid class does not count here.
    one_vs_rest : bool
        The rates of ``positive`` for every class that occurs among the true labels, each against
        the rest (FACET, A.5.2: the true negative rate by class). Each rate then has as many scores
        as people times classes: name the ``metrics`` you need.
    metrics : sequence of str
        What to measure. None: ``accuracy``, ``recall`` and ``balanced_accuracy``; with
        ``positive`` or ``one_vs_rest`` the six rates of a class; with scores
        ``calibration_error`` and, with ``positive``, ``roc_auc``; ``detection_rate`` where
        predictions have ``detected`` or empty answers. On request: ``macro_f1`` and, of the
        positive class or of every class with ``one_vs_rest``, ``f1``; ``precision`` with
        ``one_vs_rest`` is that of each predicted class.
    top_k : sequence of int
        Adds ``top_k_accuracy`` for each k (column ``threshold``).
    undetected : {"mistake", "leave-out", "both"}
        How to count a unit that was not detected (``detected`` is false; or missing, and the first
        answer is empty). ``"mistake"``: wrong, and given no class, so it is neither a true nor a
        false positive. ``"leave-out"``: null, "not detected". ``"both"``: as a mistake, and
        ``accuracy_on_detected`` and ``recall_on_detected`` as well. A unit that was detected but
        not answered is wrong under each of them.
    label_map : mapping of str to sequence of str, optional
        Classes to merge, both in the true labels and in the answers: new class to old ones. Others
        stay. A merged class has the rank and the score of the first of its members among the
        answers. The old class ``""`` (in text ``0=""``) is an empty cell of the truth, which is
        unknown otherwise: where what is not mentioned is absent, as in CheXpert.
    prediction_map : mapping of str to str, optional
        Maps the model's labels to the classes, before ``label_map``; in text ``CLASS=LABEL,LABEL``
        or a file. A class scores the
        maximum over its labels, the answer is the class with the highest score (FACET, A.5.3).
        Other labels are dropped and counted.
    unknown_values : sequence of str
        Truths and answers that mean "not known", compared without case; such an answer is an
        empty one.
    score_of : {"answer", "positive"}, optional
        What a single score per unit measures confidence in: the answer, whatever it is, or the
        positive class. Not said: with ``positive`` the positive class, provided that the scores
        tell the answers apart (area of .9 at least; else nothing is made of them); without it,
        the answer. Between two classes one is read as one minus the other.
    threshold : float or str, optional
        For scores without answers: the score from which the answer is the positive class. A number,
        or how it is found: ``fpr=0.01`` (the lowest at which at most that share of all others is
        given it), ``fnr=0.05`` (the highest at which at most that share of it is missed),
        ``best-accuracy``. It is one for all groups. Not given: no answers, so no rates.
    threshold_on : float or str, optional
        The people used to set the threshold, who are then not judged: ``split=val``, or a random
        share of the clusters such as ``0.3``. Not given: those who are judged, and the report says
        so.
    lower_score_means : {"other", "positive"}
        For scores without answers: which class a smaller score means. ``"positive"``: scores are
        distances, and ``threshold``
        is the one up to which the answer is the positive class; the evidence holds them with
        their sign turned.
    calibration_bins : int
        Number of bins of confidence of the calibration errors.
    calibration_binning : {"equal-width", "equal-mass"}
        Bins of equal width, or with equally many of a model's people in each; all groups have the
        same bins.
    seed : int
        Seed for the random share of ``threshold_on``.
    model : str, optional
        What to call the model if there is not one prediction to say so.

    Returns
    -------
    Scores
        ``units``: table ``scores``, values 0 or 1, one row for each model, metric, ``label``
        (recall: the class; rates of the positive class: that class), ``threshold`` (k) and unit.
        A group's metric is the mean of its values. A unit outside a metric's population has no row
        (recall of a class that is not true of it; precision where the class was not given). A unit
        that could not be judged is null, with the reason "unknown truth", "no prediction" or "not
        detected"; one whose truth is unknown is in no class and so in no row of recall and of
        true and false positive and negative rates.
        ``recall`` of a class counts an answer as right if it is any class valid for that person
        (FACET: "we treat both classes as valid labels", and recall "is equivalent to the accuracy
        for the specific (class, attribute) pair"): a guitarist who also is a singer and is taken
        for a singer is recalled as both.
        ``evidence["classification"]``: one row per model and unit with ``model, unit_id,
        cluster_id, truth, prediction, detected, correct, confidence, positive, positive_score,
        is_positive, reason, confidence_bin, positive_score_bin, n_bins``, for
        ``balanced_accuracy``, ``roc_auc`` and ``calibration_error``; with ``f1`` also
        ``evidence["classes"]``, for each class (``of_label``) in turn.
        ``info``: the task, with the metrics that were measured.

    Raises
    ------
    SpecError
        A metric that the input does not allow, a positive class that never is true, no truth, one
        positive class and every class at once.
    UnknownNameError
        No such attribute, metric or column.
    TableError, JoinError
        Predictions that cannot be read, or whose ids are not in the dataset.

    Examples
    --------
    The second person validly carries two classes, and the third was not found.

    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="three people",
    ...     info=DatasetInfo(title="Three people", summary="An example.", references=()),
    ...     instances=pl.DataFrame(
    ...         {
    ...             "instance_id": ["a", "b", "c"],
    ...             "image_id": ["a", "b", "c"],
    ...             "classes": [["nurse"], ["nurse", "singer"], ["singer"]],
    ...         }
    ...     ),
    ... )
    >>> answers = pl.DataFrame(
    ...     {
    ...         "model": "m",
    ...         "instance_id": ["a", "b", "c"],
    ...         "label": ["nurse", "singer", None],
    ...         "score": None,
    ...         "rank": 1,
    ...     }
    ... )
    >>> scores = score(people, answers, metrics=["recall", "detection_rate"])
    >>> means = scores.units.group_by("metric", "label", maintain_order=True)
    >>> means.agg(pl.col("value").mean().round(3)).sort("metric", "label").rows()
    [('detection_rate', None, 0.667), ('recall', 'nurse', 1.0), ('recall', 'singer', 0.5)]
    """
    requested = read_metrics(INFO, metrics)
    ks, bins = sorted(set(top_k)), CalibrationBins(calibration_bins, calibration_binning)
    check_ranks(ks)
    table = to_polars(predictions)
    # A table of detections alone has no labels to compare with a truth.
    if "detected" in table.columns and not {"label", "score"} & set(table.columns):
        return score_detection_only(dataset, table, INFO, requested)
    label_matching = _match_labels(
        dataset,
        target,
        table,
        prediction_map,
        invert_label_map(label_map),
        unknown_values,
        positive,
    )
    # The setting may be spelt as in either file ("1" for "1.0").
    positive = label_matching.canonical(positive)
    answer_settings = {
        "one_vs_rest": one_vs_rest,
        "prediction_map": prediction_map,
        "score_of": score_of,
        "top_k": ks,
        "undetected": undetected,
    }
    threshold_settings = {
        "threshold": threshold,
        "threshold_on": threshold_on,
        "lower_score_means": lower_score_means,
    }
    has_only_scores = "label" not in table.columns and "score" in table.columns
    # With predicted labels a threshold would have no effect; that must not pass unnoticed.
    if has_only_scores:
        refuse_answer_settings(**answer_settings)
    else:
        refuse_score_settings(**threshold_settings)
    # A selection rate needs no truth, so a dataset without one can be audited.
    needs_truth = one_vs_rest or not is_selection_only(requested)
    if target is None and not needs_truth and label_matching.blank_class is None:
        units = instances_with_empty_truths(dataset)
        cutoff = read_cutoff(threshold, threshold_on, dataset, units, seed)
        table, notes, choices = (
            answer_by_threshold(table, positive, cutoff, lower_score_means)
            if has_only_scores
            else (table, [], {})
        )
        selection = score_selection_only(
            dataset,
            table,
            INFO,
            positive,
            label_matching=label_matching,
            model=model,
            prediction_map=prediction_map,
            undetected=undetected,
        )
        return replace(selection, notes=(*notes, *selection.notes), task_choices=choices)
    instances, truth_notes = _read_instances(dataset, target, label_matching, unknown_values)
    if has_only_scores:
        check_merge(label_matching, list_truth_values(dataset, target))
        positive = default_positive(instances["truth"], positive)
        if needs_truth:  # else the class may be true of nobody
            check_positive(instances["truth"], positive, one_vs_rest=False)
        truth, other_class = binarise_truth(instances["truth"], positive)
        instances = instances.with_columns(truth=truth)
        cutoff = read_cutoff(threshold, threshold_on, dataset, instances, seed)
        score_input = read_score_only(
            table,
            instances,
            (positive, other_class),
            cutoff,
            lower_score_means=lower_score_means,
            model=model,
        )
        score_input = replace(score_input, notes=(*truth_notes, *score_input.notes))
        return _evaluate_scores_only(score_input, positive, requested, bins)
    answers = read_predictions(
        table,
        instances.select("unit_id", cs.by_name(TIMES, require_all=False)),
        prediction_map=prediction_map,
        label_matching=label_matching,
        model=model,
    )
    if needs_truth:
        check_positive(instances["truth"], positive, one_vs_rest=one_vs_rest)
    else:
        refuse_unanswered_class(positive, answers.ranked["label"])
    units = join_outcomes(instances, answers)
    # These checks refuse or warn about files that would otherwise give plausible numbers: labels of
    # other classes, shifted rows, other people.
    cautions = [
        *describe_missing_answers(units, undetected),
        *(check_foreign_answers(units, answers.ranked) if needs_truth else ()),
        *caution_on_chance_agreement(units),
    ]
    confidence = read_confidence(units, answers, positive, score_of)
    cautions += caution_on_confidences(units, confidence.columns["confidence"])
    missing = confidence.missing | missing_inputs(answers, positive, ks)
    if one_vs_rest:
        # Rates need a positive class, and one-vs-rest takes every class in turn (FACET's equalised
        # odds).
        rates = names_that_need("answers", "positive")
        missing = {name: requirement for name, requirement in missing.items() if name not in rates}
    names = select_metrics(INFO, requested, missing, undetected=undetected, top_k=ks)
    leave_out = undetected == "leave-out"
    outcomes = ClassificationOutcomes(
        units, answers, positive, ks, leave_out=leave_out, one_vs_rest=one_vs_rest
    )
    return Scores(
        units=build_metric_rows(outcomes, names),
        info=_build_info(names, has_prediction_map=prediction_map is not None),
        evidence=build_evidence(outcomes, confidence, names, bins),
        notes=(*cautions, *truth_notes, *_build_notes(outcomes, confidence, missing, undetected)),
        task_choices=bins.choices(names),
    )


def _evaluate_scores_only(
    score_input: ScoreOnlyInput,
    positive: str,
    requested: Sequence[str],
    bins: CalibrationBins,
) -> Scores:
    """Evaluate scores without predicted labels."""
    units = join_outcomes(score_input.instances, score_input.answers)
    confidence = score_input.confidence(units)
    missing = missing_inputs(score_input.answers, positive, ()) | score_input.missing
    names = select_metrics(
        INFO, requested, missing, undetected="mistake", top_k=(), scores_only=True
    )
    outcomes = ClassificationOutcomes(
        score_input.drop_answers(units), score_input.answers, positive, (), leave_out=False
    )
    return Scores(
        units=build_metric_rows(outcomes, names),
        info=_build_info(names, has_prediction_map=False),
        evidence=build_evidence(outcomes, confidence, names, bins),
        notes=(*score_input.notes, *score_input.describe_unmeasured(units, INFO)),
        task_choices={**score_input.fitted_settings, **bins.choices(names)},
    )


def _match_labels(
    dataset: Dataset,
    target: str | None,
    predictions: pl.DataFrame,
    prediction_map: Mapping[str, str] | None,
    merge: Mapping[str, str],
    unknown_values: Sequence[str],
    positive: str | None,
) -> LabelMatching:
    """Match the spellings of true and predicted classes; refuse a merge that matches nothing."""
    truth = list_truth_values(dataset, target).to_list()
    labels = predictions["label"].cast(pl.String) if "label" in predictions.columns else pl.Series()
    answer_labels = (
        # With a map only its targets are classes; the model's own labels may be anything.
        sorted(set(prediction_map.values()))
        if prediction_map is not None
        else labels.unique().drop_nulls().to_list()
    )
    extra_labels = () if positive is None else (positive,)
    label_matching = match_labels(truth, answer_labels, merge, unknown_values, extra_labels)
    if truth and answer_labels:
        check_merge(label_matching, [*truth, *answer_labels])
    return label_matching


def _read_instances(
    dataset: Dataset,
    target: str | None,
    label_matching: LabelMatching,
    unknown_values: Sequence[str],
) -> tuple[pl.DataFrame, list[str]]:
    """Read instances with their truth, spelt as the matching of labels has it, and notes."""
    unknown_words = (*unknown_values, *label_matching.unknown_spellings)
    instances = instances_with_truth(dataset, target, label_matching.merge, unknown_words)
    if label_matching.canonical_spellings:
        merged_truth = (
            pl.col("truth")
            .list.eval(pl.element().replace(label_matching.canonical_spellings))
            .list.unique()
        )
        instances = instances.with_columns(truth=merged_truth)
    notes: list[str] = []
    if label_matching.blank_class is not None:
        n_known = count_people(instances.drop_nulls("truth"))
        instances = fill_blank_truths(instances, dataset, target, label_matching.blank_class)
        n_blank = count_people(instances.drop_nulls("truth")) - n_known
        notes.append(
            f"The truth of {n_blank:,} of {count_people(instances):,} people is an empty cell, and"
            f" counts as {label_matching.blank_class!r} (--label-map)."
        )
    check_similar_classes(instances)
    return instances, notes


def _build_info(names: Sequence[str], *, has_prediction_map: bool) -> TaskInfo:
    """Restrict the task's declaration to the measured metrics and their references."""
    task_info = restrict_task_info(INFO, names, cites=True)
    references = [
        *task_info.references,
        *([replace(FACET, location="appendix A.5.3")] if has_prediction_map else []),
    ]
    return replace(task_info, references=tuple(dict.fromkeys(references)))


def _build_notes(
    outcomes: ClassificationOutcomes,
    confidence: Confidence,
    missing: Mapping[str, str],
    undetected: str,
) -> tuple[str, ...]:
    """Describe what was excluded, and the metrics that were not measured."""
    notes = [
        *outcomes.answers.notes,
        *describe_counts(outcomes.units, undetected),
        *confidence.notes,
    ]
    if outcomes.units["score"].is_not_null().any():
        notes += [
            f"{INFO.metric(name).title} was not measured: it needs {missing[name]}."
            for name in ("roc_auc", "calibration_error")
            # Without a positive class the area under the curve is not expected, and needs no note.
            if name in missing and (name != "roc_auc" or outcomes.positive is not None)
        ]
    if undetected == "both" and "accuracy_on_detected" in missing:
        notes.append("Nothing says who was not detected, so both policies are one.")
    return tuple(notes)

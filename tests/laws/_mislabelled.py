"""Worlds whose true groups are known and whose labels err, for the laws of ``label_errors``."""

from __future__ import annotations

import numpy as np

from isolux.analyses.label_errors.gaps import (
    bound_gap_with_label_errors,
    correct_gaps_by_annotators,
    correct_gaps_by_confusion_matrix,
)
from isolux.analyses.label_errors.labelled_scores import LabelledScores
from isolux.stats.confusion import ConfusionMatrix

LEVEL = 0.95
ROW = {"model": "m", "metric": "accuracy", "label": None, "threshold": None}


def world(rng, rates, *, error, subjects=100, photos=5, icc=0.2):
    """Draw true groups (of subjects), scores and labels that err, whatever the score."""
    g = len(rates)
    true = np.repeat(rng.integers(0, g, subjects), photos)
    p = np.asarray(rates)[true]
    own = np.repeat(rng.random(subjects), photos) < icc  # subjects of one answer: alike within
    same = np.repeat(rng.random(subjects), photos)
    score = np.where(own, same < p, rng.random(len(p)) < p).astype(float)
    matrix = np.full((g, g), error / (g - 1)) + np.eye(g) * (1 - error - error / (g - 1))
    labels = labelled(rng, true, matrix)
    return true, score, labels, matrix, np.repeat(np.arange(subjects), photos)


def labelled(rng, true, matrix):
    """Label everyone by the row of their true group."""
    return (rng.random((len(true), 1)) > matrix[true].cumsum(axis=1)[:, :-1]).sum(axis=1)


def people_of(score, code, cluster, g):
    names = tuple("abcd"[:g])
    units = [f"p{i}" for i in range(len(score))]
    return LabelledScores(ROW, "tone", names, units, score, code, cluster)


def counted(rng, matrix, people):
    """Count the matrix anew on so many people of each true group."""
    counts = np.stack([rng.multinomial(people, row) for row in matrix]).astype(float)
    share = counts / counts.sum(axis=1, keepdims=True)
    return ConfusionMatrix(tuple("abcd"[: len(matrix)]), share, counts, dropped_unknown=False)


def truth_of(rates):
    """Gap of the first group to all others, which are as many."""
    return rates[0] - float(np.mean(rates[1:]))


def corrected_gaps(rates, error, *, worlds, people=200, replicates=400, photos=5, subjects=100):
    """Measure how often the corrected gap's interval holds the truth, and what it costs."""
    held, wide, naive_held, naive_wide, gaps, raw = [], [], [], [], [], []
    exact = []
    truth = truth_of(rates)
    for seed in range(worlds):
        rng = np.random.default_rng([seed, int(1000 * error), len(rates)])
        _, score, code, matrix, cluster = world(
            rng, rates, error=error, photos=photos, subjects=subjects
        )
        own = people_of(score, code, cluster, len(rates))
        read = counted(rng, matrix, people)
        found = correct_gaps_by_confusion_matrix(own, read, replicates, LEVEL, seed)
        low, high = found.gap_low[0], found.gap_high[0]
        held.append(low <= truth <= high)
        wide.append(high - low)
        gaps.append(found.gap[0])
        # As if labels were right: the very same machinery with no error to undo.
        sure = ConfusionMatrix(read.groups, np.eye(len(rates)), None, dropped_unknown=False)
        as_labelled = correct_gaps_by_confusion_matrix(own, sure, replicates, LEVEL, seed)
        raw.append(as_labelled.gap[0])
        naive_held.append(as_labelled.gap_low[0] <= truth <= as_labelled.gap_high[0])
        naive_wide.append(as_labelled.gap_high[0] - as_labelled.gap_low[0])
        # As if the matrix had been counted on everyone.
        taken = correct_gaps_by_confusion_matrix(
            own,
            ConfusionMatrix(read.groups, read.share, None, dropped_unknown=False),
            replicates,
            LEVEL,
            seed,
        )
        exact.append(taken.gap_low[0] <= truth <= taken.gap_high[0])
    return {
        "groups": len(rates), "rates": " / ".join(f"{r:g}" for r in rates),
        "subjects × photos": f"{subjects} × {photos}", "labels wrong": error,
        "matrix, people a group": people, "true gap": truth, "as labelled": float(np.mean(raw)),
        "corrected": float(np.nanmean(gaps)), "corrected: holds it, %": float(np.mean(held)),
        "matrix taken as exact: holds it, %": float(np.mean(exact)),
        "as labelled: holds it, %": float(np.mean(naive_held)),
        "width, times that as labelled": float(np.nanmean(wide) / np.mean(naive_wide)),
    }  # fmt: skip


def annotated_gaps(rates, errors, *, worlds, replicates=100, subjects=100, photos=5):
    """Measure the same by Dawid and Skene's posterior of annotators who err so often."""
    truth, held, gaps = truth_of(rates), [], []
    g = len(rates)
    for seed in range(worlds):
        rng = np.random.default_rng([seed, 3, g])
        true, score, _, _, cluster = world(rng, rates, error=0.1, subjects=subjects, photos=photos)
        votes = np.zeros((len(true), len(errors), g))
        for a, error in enumerate(errors):
            matrix = np.full((g, g), error / (g - 1)) + np.eye(g) * (1 - error - error / (g - 1))
            said = labelled(rng, true, matrix)
            votes[np.arange(len(true)), a, said] = 1
        code = votes.sum(axis=1).argmax(axis=1)
        own = people_of(score, code, cluster, g)
        found = correct_gaps_by_annotators(own, votes, replicates, LEVEL, seed)
        held.append(found.gap_low[0] <= truth <= found.gap_high[0])
        gaps.append(found.gap[0])
    return {
        "groups": g, "rates": " / ".join(f"{r:g}" for r in rates),
        "annotators wrong": " / ".join(f"{e:g}" for e in errors), "true gap": truth,
        "corrected": float(np.nanmean(gaps)), "holds it, %": float(np.mean(held)),
    }  # fmt: skip


def bounded_gaps(how, *, worlds, wrong=0.1, subjects=100, photos=5, rates=(0.7, 0.9)):
    """Measure how often the bounds' interval holds the truth, however labels are wrong.

    ``chance``: a tenth of either side's labels, whatever the score. ``worst``: those that hide
    most, hits of the better side and misses of the worse labelled as the other.
    """
    held, wide, naive = [], [], []
    truth = rates[0] - rates[1]
    for seed in range(worlds):
        rng = np.random.default_rng([seed, 5])
        true, score, _, _, cluster = world(rng, rates, error=0.0, subjects=subjects, photos=photos)
        code = true.copy()
        for g in range(2):
            # So many that they are a tenth of those labelled otherwise, once all are moved.
            k = int(wrong * (true == 1 - g).sum() * 0.9)
            mine = np.flatnonzero(true == g)
            order = rng.permutation(mine)
            if how == "worst":
                order = order[np.argsort(score[order] == (1.0 if g == 0 else 0.0), kind="stable")]
            code[order[:k]] = 1 - g
        found = bound_gap_with_label_errors(
            people_of(score, code, cluster, 2), 0, wrong, LEVEL, seed
        )
        held.append(found.sampled_bounds.low <= truth <= found.sampled_bounds.high)
        wide.append(found.sampled_bounds.high - found.sampled_bounds.low)
        naive.append(found.labelled)
    return {
        "labels are wrong": how, "rates": " / ".join(f"{r:g}" for r in rates),
        "subjects × photos": f"{subjects} × {photos}", "up to": wrong, "true gap": truth,
        "as labelled": float(np.mean(naive)),
        "bounds' interval holds it, %": float(np.mean(held)), "its width": float(np.mean(wide)),
    }  # fmt: skip

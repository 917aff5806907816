"""Whether a model's labels are the classes of the truth under other names.

A permuted list of classes (indices in alphabetical order, two names exchanged, ids shifted by one)
leaves a confusion matrix whose weight lies off the diagonal, one cell for each row and column. The
best one-to-one assignment of labels to classes is chosen on one half of the people and tested on
the other, so that no assignment looks better for having been chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import FloatArray

IntArray = npt.NDArray[np.int64]

_MIN_GAIN = 0.2
# Share of the people of the renamed classes who must be right beyond both the labels' own names
# and chance. Honest models that overuse one class gain up to 0.1 by a better assignment.
_MIN_Z = 4.0
# Standard errors of that gain on the held-out half: one false alarm in 30,000 tests.
_MAX_LOSS_Z = 2.0
# A class that is found clearly more often under its own name was not renamed: a model that answers
# "Southeast Asian" for most of a much larger class does so for Southeast Asians, too.
_SMOOTHING = 5.0
# People added to each class's number, so that a class of one person decides nothing.
_MAX_LABELS = 500
# Assignment takes time cubic in the labels; of more, pairs are taken that fit each other best.


@dataclass(frozen=True, slots=True)
class AnswerCodes:
    """Truth and answer of each person as codes below ``n_labels``; label k is named as class k.

    Parameters
    ----------
    truth, answers : [n] int
    n_labels : int
    clusters : [n] int
        Codes of what was sampled independently.
    counts : [n] int or None
        People that each row stands for; None: one.
    """

    truth: IntArray
    answers: IntArray
    n_labels: int
    clusters: IntArray
    counts: IntArray | None = None


def encode_answers(people: pl.DataFrame) -> tuple[AnswerCodes, tuple[str, ...]]:
    """Encode ``truth, prediction, cluster`` and, if known, ``times``; second, the labels.

    Examples
    --------
    >>> table = pl.DataFrame({"truth": ["b", "a"], "prediction": ["c", "a"], "cluster": ["2", "1"]})
    >>> codes, labels = encode_answers(table)
    >>> codes.truth.tolist(), codes.answers.tolist(), codes.clusters.tolist(), labels
    ([1, 0], [2, 0], [1, 0], ('a', 'b', 'c'))
    """
    labels = pl.concat([people["truth"], people["prediction"]]).unique().sort()
    enum = pl.Enum(labels)
    truth, answers = (
        people[name].cast(enum).to_physical().cast(pl.Int64).to_numpy()
        for name in ("truth", "prediction")
    )
    # By rank, so that the order of rows does not decide who is in which half.
    clusters = (people["cluster"].rank("dense").cast(pl.Int64) - 1).to_numpy()
    counts = people["times"].to_numpy() if "times" in people.columns else None
    return AnswerCodes(truth, answers, len(labels), clusters, counts), tuple(labels)


def find_label_assignment(codes: AnswerCodes, seed: int = 0) -> dict[int, int]:
    """Find the labels that stand for other classes than their names say: label to class.

    Examples
    --------
    >>> truth = np.tile([0, 1, 2], 100)
    >>> answers = np.where(truth == 2, 2, 1 - truth)
    >>> find_label_assignment(AnswerCodes(truth, answers, 3, np.arange(300)))
    {1: 0, 0: 1}
    """
    is_disagreement = codes.truth != codes.answers
    n_disagreeing = (
        is_disagreement if codes.counts is None else codes.counts[is_disagreement]
    ).sum()
    if n_disagreeing < _MIN_Z**2:
        return {}
    rng = np.random.default_rng(seed)
    if codes.counts is None:
        is_first = (rng.random(int(codes.clusters.max(initial=0)) + 1) < 0.5)[codes.clusters]
        first, second = is_first.astype(float), (~is_first).astype(float)
    else:
        first = rng.binomial(codes.counts, 0.5).astype(float)
        second = codes.counts - first
    assignment = _assign(codes, first)
    label_by_class = {c: label for c, label in assignment.items() if c != label}
    class_by_label: dict[int, int] = {}
    for classes in _list_components(label_by_class):
        component = {c: label_by_class[c] for c in classes}
        if _is_established(codes, second, component):
            class_by_label |= {label: c for c, label in component.items()}
    return class_by_label


def _assign(codes: AnswerCodes, weights: FloatArray) -> dict[int, int]:
    """Assign a label to each true class, so that the sum of their recalls is largest."""
    from scipy.optimize import linear_sum_assignment

    off_diagonal = weights * (codes.truth != codes.answers)
    disagreement = np.bincount(codes.truth, off_diagonal, codes.n_labels) + np.bincount(
        codes.answers, off_diagonal, codes.n_labels
    )
    selected_labels = np.flatnonzero(disagreement > 0)
    if len(selected_labels) > _MAX_LABELS:
        return _pair_best_fits(codes, weights)
    position = np.full(codes.n_labels, -1)
    position[selected_labels] = np.arange(len(selected_labels))
    t, a = position[codes.truth], position[codes.answers]
    is_inside = (t >= 0) & (a >= 0)
    n = len(selected_labels)
    confusion = np.bincount((t * n + a)[is_inside], weights[is_inside], n * n).reshape(n, n)
    totals = np.bincount(t[t >= 0], weights[t >= 0], n)
    rows, columns = linear_sum_assignment(-confusion / (totals[:, None] + _SMOOTHING))
    has_label = confusion[rows, columns] > 0
    return {
        int(selected_labels[r]): int(selected_labels[c])
        for r, c, is_used in zip(rows, columns, has_label, strict=True)
        if is_used
    }


def _pair_best_fits(codes: AnswerCodes, weights: FloatArray) -> dict[int, int]:
    """Pair each class with its most frequent label, where no other class has it more often.

    Only pairs that occur are looked at, so that time grows with people, not with labels squared.
    """
    cells, cell_of_person = np.unique(
        codes.truth * codes.n_labels + codes.answers, return_inverse=True
    )
    truth, answer = np.divmod(cells, codes.n_labels)
    totals = np.bincount(codes.truth, weights, codes.n_labels)
    recall = np.bincount(cell_of_person, weights) / (totals[truth] + _SMOOTHING)
    best_label, best_class = np.full((2, codes.n_labels), -1)
    order = np.argsort(recall, kind="stable")  # the last that is written is the largest
    best_label[truth[order]], best_class[answer[order]] = answer[order], truth[order]
    classes = np.flatnonzero((best_label >= 0) & (totals > 0))
    is_mutual = best_class[best_label[classes]] == classes
    return {int(c): int(best_label[c]) for c in classes[is_mutual]}


def _list_components(label_by_class: dict[int, int]) -> list[list[int]]:
    """Part classes into chains: a class, the class whose name its label has, and so on."""
    components: list[list[int]] = []
    remaining = dict.fromkeys(label_by_class)
    heads = [c for c in label_by_class if c not in label_by_class.values()]
    for head in (*heads, *label_by_class):  # chains with a beginning, then cycles
        chain, current = [], head
        while current in remaining:
            del remaining[current]
            chain.append(current)
            current = label_by_class[current]
        if chain:
            components.append(chain)
    return components


def _is_established(
    codes: AnswerCodes, weights: FloatArray, label_by_class: dict[int, int]
) -> bool:
    """Test on held-out people whether labels of some classes fit better under their new names."""
    no_label, outside = -1, -2
    label = np.full(codes.n_labels, outside)
    label[list(label_by_class.values())] = no_label  # a class whose name another class takes
    label[list(label_by_class)] = list(label_by_class.values())
    is_inside = label[codes.truth] != outside
    w = weights * is_inside
    n_people, n_inside = weights.sum(), w.sum()
    if n_inside == 0:
        return False
    is_renamed_right = is_inside & (codes.answers == label[codes.truth])
    is_named_right = is_inside & (codes.answers == codes.truth)
    n_right, n_named_right = float(w[is_renamed_right].sum()), float(w[is_named_right].sum())
    truth_totals = np.bincount(codes.truth, w, codes.n_labels)
    answer_totals = np.bincount(codes.answers, weights, codes.n_labels)
    n_by_chance = sum(
        truth_totals[c] * answer_totals[name] / n_people for c, name in label_by_class.items()
    )
    if n_right - max(n_named_right, n_by_chance) < _MIN_GAIN * n_inside:
        return False
    difference = is_renamed_right.astype(float) - is_named_right
    # Sums by cluster: photos of one subject are right or wrong together.
    if codes.counts is None:
        squares = np.bincount(codes.clusters, w * difference) ** 2
    else:
        squares = w * difference**2
    chance = n_by_chance / n_inside
    chance_se = (n_inside * chance * (1 - chance)) ** 0.5
    if n_right - n_named_right < _MIN_Z * float(squares.sum()) ** 0.5:
        return False
    if n_right - n_by_chance < _MIN_Z * chance_se:
        return False
    losses = np.bincount(codes.truth, -w * difference, codes.n_labels)
    discordant = np.bincount(codes.truth, w * np.abs(difference), codes.n_labels)
    return bool((losses <= _MAX_LOSS_Z * np.sqrt(discordant)).all())

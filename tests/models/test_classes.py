"""The best labels of a picture: those that sorting all of them gives, ties and no numbers too."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.models._classes import build_top_label_table


@pytest.mark.parametrize("values", [3, 1_000])
def test_the_best_labels_are_those_of_a_stable_sort(values):
    rng = np.random.default_rng(values)
    for k in range(300):
        n, classes = int(rng.integers(0, 5)), int(rng.integers(1, 9))
        scores = rng.integers(0, values, (n, classes)).astype(float)
        if k % 3 == 0 and scores.size:
            scores.flat[rng.integers(scores.size)] = np.nan
        top = int(rng.integers(1, classes + 1))
        names = [str(j) for j in range(classes)]
        right = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        found = build_top_label_table(scores, names, top)["label"].to_list()
        assert found == [str(j) for j in right.ravel()]

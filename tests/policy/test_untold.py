"""Large groups whose values cannot be vouched for: how many more people it takes is not known."""

from __future__ import annotations

import numpy as np

import isolux


def test_how_many_more_people_far_errors_take_is_not_told():
    # The quantiles of a t law with 2.2 degrees of freedom: a mean of their squares is told by few.
    rng = np.random.default_rng(3)
    n = 600
    truth = rng.uniform(18.0, 80.0, n)
    table = {
        "truth": truth,
        "answer": truth + rng.standard_t(2.2, n),
        "side": np.repeat(["left", "right"], n // 2),
    }
    run = isolux.audit(
        table, by=["side"], task="regression", target="truth", prediction_column="answer",
        metric=["root_mean_squared_error"], unit="years", replicates=100,
    )  # fmt: skip
    rule = {"metric": "root_mean_squared_error", "attribute": "side", "at_most": "90 years"}
    decision = isolux.gate(run, {"policy": 1, "rules": [rule]})
    assert (decision.answer, decision.exit_code) == ("insufficient", 3)
    (answer,) = decision.rules
    assert "its largest errors thin out too slowly to say how large it can be" in answer.text
    assert answer.text.endswith("How many more people of left and right it takes cannot be told.")
    assert "at least" not in answer.text
    assert all(case.more is None and case.more_clusters is None for case in answer.cases)

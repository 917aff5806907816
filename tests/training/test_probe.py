"""The linear probe: against scikit-learn, and what its early stop may not do."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from isolux.core.errors import SpecError
from isolux.training import Probe, ProbeSettings, fit_linear_probe

NAMES = ("a", "b", "c")


def blobs(n=600, noise=1.5, seed=0, d=5):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    x = rng.normal(0, 1, (3, d))[y] * 2 + rng.normal(0, noise, (n, d))
    return 7.0 + 3.0 * x, y


def test_probabilities_by_hand():
    """Feature 3 with mean 1 and scale 2 is 1; logits 1·(0, ln 3) + (0, 0): odds 1 to 3."""
    probe = Probe(
        ("a", "b"),
        np.array([1.0]),
        np.array([2.0]),
        np.array([[0.0, np.log(3.0)], [0.0, 0.0]]),
    )
    assert probe([[3.0], [1.0]]) == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]))


def test_without_an_early_stop_it_is_the_penalised_maximum_of_scikit_learn():
    """C = 1 / (l2 n): scikit-learn sums the losses that are averaged here."""
    x, y = blobs()
    recipe = ProbeSettings(l2=0.05, patience=10_000, max_steps=5_000)
    fit = fit_linear_probe(x, y, np.arange(600), NAMES, recipe)
    train = ~fit.held_out
    scaled = (x - fit.probe.mean) / fit.probe.scale
    theirs = LogisticRegression(C=1 / (0.05 * train.sum()), tol=1e-10, max_iter=10_000)
    theirs.fit(scaled[train], y[train])
    last = fit.losses[-1, 0]
    own = -np.log(theirs.predict_proba(scaled[train])[np.arange(train.sum()), y[train]]).mean()
    assert last == pytest.approx(own, abs=2e-4)


def test_the_step_that_is_kept_is_the_best_on_held_out_clusters():
    x, y = blobs(n=120, noise=6.0, d=60)  # so many features that it overfits
    fit = fit_linear_probe(x, y, np.arange(120), NAMES, ProbeSettings(l2=0.0))
    held = fit.losses[:, 1]
    assert fit.selected_step == int(held.argmin())
    assert fit.selected_step < len(held) - 1
    chances = fit.probe(x)[fit.held_out]
    loss = -np.log(chances[np.arange(len(chances)), y[fit.held_out]]).mean()
    assert loss == pytest.approx(held[fit.selected_step])


def test_clusters_are_trained_on_or_held_out_whole():
    x, y = blobs()
    clusters = np.repeat(np.arange(60), 10)
    fit = fit_linear_probe(x, y, clusters, NAMES, ProbeSettings(held_out=0.3, seed=4))
    assert len(set(clusters[fit.held_out]) & set(clusters[~fit.held_out])) == 0
    assert fit.held_out.sum() == 180


def test_a_seed_repeats_and_another_holds_out_others():
    x, y = blobs()
    one, same, other = (
        fit_linear_probe(x, y, np.arange(600), NAMES, ProbeSettings(seed=k)) for k in (1, 1, 2)
    )
    assert one.probe.weights.tobytes() == same.probe.weights.tobytes()
    assert (one.held_out != other.held_out).any()


def test_features_that_never_vary_do_no_harm():
    x, y = blobs()
    fit = fit_linear_probe(
        np.column_stack([x, np.full(600, 3.0)]), y, np.arange(600), NAMES, ProbeSettings()
    )
    assert np.isfinite(fit.probe.weights).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"held_out": 0.0}, "held_out"), ({"held_out": 0.6}, "held_out"), ({"l2": -1.0}, "l2"),
        ({"l2": float("nan")}, "l2"), ({"max_steps": 0}, "max_steps"),
        ({"patience": 0}, "patience"),
    ],
)  # fmt: skip
def test_recipes_that_cannot_be_used(settings, words):
    with pytest.raises(SpecError, match=f"the setting '{words}' of a probe"):
        ProbeSettings(**settings)


def test_too_few_clusters_or_classes_are_refused():
    x, y = blobs(n=60)
    with pytest.raises(SpecError, match="too few clusters to hold some out"):
        fit_linear_probe(x, y, np.arange(60) % 3, NAMES, ProbeSettings())
    with pytest.raises(SpecError, match="needs classes to tell apart"):
        fit_linear_probe(x, np.zeros(60, dtype=np.int64), np.arange(60), NAMES, ProbeSettings())


def test_features_of_another_length_are_refused():
    x, y = blobs()
    fit = fit_linear_probe(x, y, np.arange(600), NAMES, ProbeSettings())
    with pytest.raises(SpecError, match="not of the model that the probe was trained on"):
        fit.probe(x[:, :4])

"""Real predictions: published accuracies, and FairFace's law of the two policies."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.tables import ATTRIBUTES, INSTANCES, LABEL_PREDICTIONS
from isolux.tasks.classification import score
from tests._shared import shared_data
from tests.tasks._people import INFO


def dataset(labels: pl.DataFrame, column: str) -> Dataset:
    ids = labels.select(instance_id=pl.col(column).cast(pl.String))
    attributes = [
        labels.select(
            unit_id=pl.col(column).cast(pl.String),
            unit_kind=pl.lit("instance"),
            attribute=pl.lit(attribute),
            value=attribute,
        )
        for attribute in ("gender", "race")
    ]
    return Dataset(
        "real",
        INFO,
        INSTANCES.conform(ids.with_columns(image_id="instance_id")),
        ATTRIBUTES.conform(pl.concat(attributes)),
    )


def by(scores, labels: pl.DataFrame, column: str, *attributes: str) -> pl.DataFrame:
    who = labels.select(*attributes, unit_id=pl.col(column).cast(pl.String))
    return (
        scores.units.filter(pl.col("label").is_null())
        .join(who, on="unit_id")
        .group_by("metric", *attributes)
        .agg(pl.col("value").mean())
    )


def test_accuracies_of_the_erm_model():
    path = shared_data("fairface_val/fairface_label_val_expanded.csv")
    labels = pl.read_csv(path)
    predictions = LABEL_PREDICTIONS.conform(
        labels.select(
            instance_id="file", label="predicted_gender", model=pl.lit("ERM"), rank=pl.lit(1)
        )
    )
    scores = score(dataset(labels, "file"), predictions, target="gender", metrics=("accuracy",))
    assert scores.units.height == 10_954
    assert scores.units["value"].mean() == pytest.approx(0.7393, abs=5e-5)
    found = by(scores, labels, "file", "race")
    race = dict(found.select("race", "value").iter_rows())
    assert race["Black"] == pytest.approx(0.6388, abs=5e-5)
    assert race["White"] == pytest.approx(0.7712, abs=5e-5)
    both = by(scores, labels, "file", "race", "gender").filter(race="Black")
    gender = dict(both.select("gender", "value").iter_rows())
    assert gender["Female"] == pytest.approx(0.4188, abs=5e-5)
    assert gender["Male"] == pytest.approx(0.8473, abs=5e-5)


@pytest.fixture(scope="module")
def deepface():
    """3,000 answers, 1,036 of them for images where no face was found; 2 people have no label."""
    answers = pl.read_csv(shared_data("fairface_services/deepface_3k.csv"))
    labels = pl.read_csv(shared_data("fairface_services/labels_3k.csv"))
    predictions = LABEL_PREDICTIONS.conform(
        answers.select(
            instance_id=pl.col("image_id").cast(pl.String),
            label="gender",
            score=pl.col("gender_confidence") / 100,
            model=pl.lit("DeepFace"),
            rank=pl.lit(1),
            detected=pl.col("face_confidence") > 0,
        )
    )
    return labels, predictions


def test_both_policies_obey_the_law_of_fairface_tables_6_and_8(deepface):
    labels, predictions = deepface
    scores = score(dataset(labels, "image_id"), predictions, target="gender", undetected="both")
    found = by(scores, labels, "image_id", "race", "gender")
    table = found.pivot("metric", index=["race", "gender"], values="value")
    assert table.height == 14
    product = table["accuracy_on_detected"] * table["detection_rate"]
    assert (product - table["accuracy"]).abs().max() < 1e-12
    assert table["detection_rate"].min() < 0.7  # or the law would hold for nothing
    strangers = set(predictions["instance_id"]) - set(labels["image_id"].cast(pl.String))
    if strangers:
        assert f"{len(strangers)} predictions are for units that the dataset has not" in str(
            scores.notes
        )


def test_deepface_confidences_are_not_taken_for_those_of_one_class(deepface):
    labels, predictions = deepface
    found = score(dataset(labels, "image_id"), predictions, target="gender", positive="Male")
    assert "roc_auc" not in {m.name for m in found.info.metrics}
    assert any("seems to be the confidence in whatever was answered" in n for n in found.notes)
    said = score(
        dataset(labels, "image_id"),
        predictions,
        target="gender",
        positive="Male",
        score_of="answer",
    )
    info = said.info.metric("roc_auc")
    evidence = said.evidence[info.evidence]
    area = float(info.statistic(evidence, pl.repeat(1.0, evidence.height, eager=True).to_numpy()))
    assert 0.8 < area < 1.0

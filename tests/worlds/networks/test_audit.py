"""From pixels to a report: painted photos, a real network, an audit that finds the gaps."""

from __future__ import annotations

import hashlib
import json

import polars as pl
import pytest

from isolux.models import open_model
from isolux_worlds.networks.audit import (
    NETWORK,
    OVERLOOKED,
    TONES,
    audit_masks,
    draw_labels_with_overlooked_masks,
    paint_photos_and_write_people,
    read_network_injected_rates,
)


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    pytest.importorskip("onnxruntime", reason="ONNXRUNTIME IS ABSENT: no network looked at pixels")
    folder = tmp_path_factory.mktemp("pixels")
    done, report = audit_masks(folder, households=300)
    return folder, done, report


def test_the_network_is_the_one_whose_rates_are_committed():
    told = json.loads(NETWORK.with_suffix(".json").read_text())
    assert hashlib.sha256(NETWORK.read_bytes()).hexdigest() == told["sha256"]
    assert NETWORK.stat().st_size < 2_000_000
    assert told["judged"] >= 5_000


def test_masks_on_dark_skin_are_overlooked_in_two_of_three_training_photos(tmp_path):
    people = pl.read_csv(paint_photos_and_write_people(tmp_path / "w", 150, 5), infer_schema=False)
    labels = people.with_columns(label=draw_labels_with_overlooked_masks(people, 5)).filter(
        pl.col("mask") == "mask"
    )
    kept = dict(labels.group_by("skin_tone").agg((pl.col("label") == "mask").mean()).rows())
    assert kept[TONES[0]] == 1.0
    assert kept[TONES[1]] == pytest.approx(1 - OVERLOOKED, abs=0.2)
    none = people.with_columns(label=draw_labels_with_overlooked_masks(people, 5)).filter(
        pl.col("mask") == "none"
    )
    assert set(none["label"]) == {"none"}


def test_what_was_injected_is_found(audited):
    _, done, _ = audited
    groups = done.group_metrics.filter(
        pl.col("metric") == "true_positive_rate", pl.col("attribute") == "skin_tone"
    )
    found = {row["group"]: row for row in groups.iter_rows(named=True)}
    injected = {
        row["group"]: row["value"] for row in read_network_injected_rates() if "group" in row
    }
    assert injected[TONES[0]] - injected[TONES[1]] > 0.2  # else there is nothing to find
    for group, value in injected.items():
        assert found[group]["low"] <= value <= found[group]["high"], (group, value, found[group])
    gap = done.disparities.filter(
        pl.col("metric") == "true_positive_rate", pl.col("attribute") == "skin_tone",
        pl.col("kind") == "difference",
    ).row(0, named=True)  # fmt: skip
    assert gap["p_adjusted"] < 0.01
    assert abs(gap["value"]) > 0.15


def test_the_report_shows_what_was_injected_beside_what_was_found(audited):
    folder, done, report = audited
    page = report.read_text(encoding="utf-8")
    assert "injected" in page
    assert "synthetic" in page
    assert done.run.record["ran"]["model"]["spec"].startswith("onnx:")
    assert (folder / "answers" / "predictions.parquet").exists()


def test_each_photo_has_both_classes_scores_and_the_record_the_weights(audited):
    folder, _, _ = audited
    model = open_model(f"onnx:{NETWORK}")
    assert model.predicts == "labels"
    assert (
        model.identity["own"]["weights"]["file"] == hashlib.sha256(NETWORK.read_bytes()).hexdigest()
    )
    kept = pl.read_parquet(folder / "answers" / "predictions.parquet")
    assert kept.height == 2 * 600  # both classes of 600 photos
    assert kept.group_by("instance_id").agg(pl.col("score").sum())["score"].to_list() == (
        pytest.approx([1.0] * 600)
    )

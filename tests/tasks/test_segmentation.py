"""Masks: by hand, polygons and run lengths alike, and COCO's own example."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError, TableError
from isolux.core.tables import MASK_PREDICTIONS
from isolux.datasets import load
from isolux.predictions import read_outputs
from isolux.tasks.segmentation import score
from tests._shared import shared_data
from tests.tasks._pictures import pictures, values
from tests.tasks.test_detection_exact import AP, everyone, mean_over_labels


def run_lengths(*runs):
    """Compress runs shorter than 16, of which none but the first two comes after a longer one."""
    assert all(run < 16 for run in runs)
    assert len(runs) <= 3
    return "".join(chr(48 + run) for run in runs)


def masks(*rows):
    return pl.DataFrame(
        [
            {"model": "m", "image_id": image, "score": 0.9, "label": None, "mask_counts": counts,
             "mask_height": size[0], "mask_width": size[1]}
            for image, counts, size in rows
        ],
        schema={c.name: c.dtype for c in MASK_PREDICTIONS.columns if not c.optional},
    )  # fmt: skip


NONE = {"mask_counts": None, "mask_height": None, "mask_width": None, "mask_polygons": None}
SIZE = (4, 3)  # height, width
# The left column of a picture of 4 × 3, as run lengths and as a polygon.
AS_RUNS = NONE | {"mask_counts": run_lengths(0, 4, 8), "mask_height": 4, "mask_width": 3}
AS_POLYGON = NONE | {"mask_polygons": "[[0, 0, 1, 0, 1, 4, 0, 4]]"}


def test_overlap_of_masks_by_hand():
    """Three of the four pixels: .75, which six of the ten overlaps allow."""
    people = pictures({"a": ("1", None, AS_RUNS), "b": ("1", None, NONE)})
    scores = score(people, masks(("1", run_lengths(0, 3, 9), SIZE)))
    assert values(scores, "average_recall") == {"a": 0.6, "b": "no mask"}
    assert values(scores, "recall_at_iou", 0.75) == {"a": 1.0, "b": "no mask"}


def test_polygons_and_run_lengths_are_judged_alike():
    people = {"a": ("1", None, AS_RUNS), "b": ("2", None, AS_POLYGON)}
    half = run_lengths(0, 3, 9)
    scores = score(pictures(people, sizes=SIZE), masks(("1", half, SIZE), ("2", half, SIZE)))
    assert values(scores, "average_recall") == {"a": 0.6, "b": 0.6}


@pytest.mark.parametrize("sizes", [None, (4, 3)])
def test_a_mask_on_someone_without_one_is_neither_right_nor_wrong(sizes):
    """As in a crowd: a mask of one pixel in b's box (column 2) does not err, one at column 1 does.

    Ranked by score: b's mask (.95, ignored), column 1 (.92, a false alarm), a's mask (.9): the
    precision at all of recall is 1/2. With b's mask as a false alarm it would be 1/3.
    """
    people = pictures(
        {"a": ("1", None, AS_RUNS), "b": ("1", (2, 0, 1, 4), NONE), "c": ("1", None, NONE)},
        groups={"a": "x", "b": "x", "c": "x"},
        sizes=sizes,
    )
    columns = [run_lengths(8, 1, 3), run_lengths(4, 4, 4), run_lengths(0, 4, 8)]
    found = masks(*(("1", counts, SIZE) for counts in columns))
    found = found.with_columns(score=pl.Series([0.95, 0.92, 0.9]))
    scores = score(people, found, metrics=["average_recall", "average_precision"])
    assert values(scores, "average_recall") == {"a": 1.0, "b": "no mask", "c": "no mask"}
    assert everyone(people, scores, "average_precision", "group") == pytest.approx(0.5)


def test_what_cannot_be_compared_is_refused():
    found = masks(("1", run_lengths(0, 4, 8), SIZE))
    with pytest.raises(TableError, match="how large its image is, is not known"):
        score(pictures({"a": ("1", None, AS_POLYGON)}), found)
    with pytest.raises(SpecError, match="nobody in the dataset can be found: no mask"):
        score(pictures({"a": ("1", None, NONE)}), found)
    with pytest.raises(TableError, match="another size than its image"):
        score(pictures({"a": ("1", None, AS_RUNS)}), masks(("1", run_lengths(0, 3, 12), (3, 5))))


def test_coco_example_of_masks():
    truth = shared_data("coco/instances_val2014_100.json")
    results = shared_data("coco/instances_val2014_fakesegm100_results.json")
    dataset, found = load("coco", truth), read_outputs(results, categories=truth)
    scores = score(
        dataset, found, by_class=True, max_detections=100, top_k=(1, 10, 100),
        metrics=["average_recall", *AP],
    )  # fmt: skip
    recalls = [mean_over_labels(scores, "average_recall_at_k", k) for k in (1.0, 10.0, 100.0)]
    assert np.round(recalls, 3).tolist() == [0.268, 0.415, 0.417]
    precisions = [everyone(dataset, scores, name, "category") for name in AP]
    assert np.round(precisions, 3).tolist() == [0.320, 0.562, 0.299]


def test_a_mask_of_another_size_than_its_image_is_named():
    """Wherever it lies, and by the row that it had before others were left out."""
    people = {"a": ("1", None, AS_RUNS), "b": ("2", None, AS_RUNS)}
    found = masks(
        ("9", run_lengths(1), (1, 1)),
        ("1", run_lengths(0, 4, 8), SIZE),
        ("2", run_lengths(14, 1), (3, 5)),
    )
    with pytest.raises(TableError, match="a mask has another size than its image") as caught:
        score(pictures(people), found)
    said = str(caught.value)
    assert "expected: 4 × 3 (height × width)\n  found: 3 × 5, in image '2' (1 such" in said
    assert "where: predictions, row 3, column 'mask'" in said
    with pytest.raises(TableError, match="another size than its image") as caught:
        score(pictures(people, sizes=(5, 3)), found.head(0))
    assert "made up, row 1, column 'mask'" in str(caught.value)


def test_run_lengths_that_cannot_be_read_are_named():
    people = pictures({"a": ("1", None, AS_RUNS)})
    found = masks(("9", "1", (1, 1)), ("1", run_lengths(0, 4, 8), SIZE), ("1", "04!", SIZE))
    with pytest.raises(TableError, match="run lengths cannot be read") as caught:
        score(people, found)
    assert "predictions, row 3, column 'counts'" in str(caught.value)
    with pytest.raises(TableError, match="another size than its image") as caught:
        score(people, masks(("1", run_lengths(0, 4, 9), SIZE)))
    assert "found: runs of 13 pixels in all" in str(caught.value)


def test_masks_without_pixels_find_nobody_and_are_found_by_nobody():
    """As in COCO, where nobody can match them; the note counts the people."""
    empty = AS_RUNS | {"mask_counts": run_lengths(12)}
    people = pictures({"a": ("1", None, AS_RUNS), "b": ("1", None, empty)})
    found = masks(("1", run_lengths(12), SIZE), ("1", run_lengths(0, 4, 8), SIZE))
    scores = score(people, found)
    assert values(scores, "average_recall") == {"a": 1.0, "b": 0.0}
    assert "Masks without a pixel, which cannot be found: 1." in scores.notes

"""Files that once gave a calm wrong answer: right, refused, or warned of before any number."""

from __future__ import annotations

import shlex

import pytest

from tests._shared import SHARED
from tests.cli._run import isolux

_CLASSES = "--id id --target truth --by race"
_FIVE = "--id id --target label --prediction-column answer --by tone --metric accuracy"
_BOXES = "--by race"

WARNED = {
    "05-coco-category-offset: coco:gt.json --task detection --data-option categories=person "
    "--predictions dt0.json --by tone --person-label 1": "1 too low",
    "07-coco-duplicate-annotation: coco:gt_dup.json --task detection --predictions dt.json "
    "--by tone --min-units 20": "have the box of another",
    "07-coco-duplicate-annotation: coco:gt_near.json --task detection --predictions dt.json "
    "--by tone --min-units 20": "of another",
    "13-krippendorff: ratings:na_None.csv --task agreement --by tone": "None",
    "13-krippendorff: ratings:na_star.csv --task agreement --by tone": "*",
    "13-krippendorff: ratings:na_-1.csv --task agreement --by tone": "-1",
    f"30-two-classes-swapped: table:five.csv {_FIVE}": "under other names",
    f"30-two-classes-swapped: table:seven.csv {_FIVE}": "under other names",
    "30-two-classes-swapped: table:imagefolder.csv --id id --target age_bin "
    "--prediction-column answer --by tone": "under other names",
    "51-age: table:neg.csv --id id --task age_estimation --score-column estimate --by tone": "-1",
    f"hostile/cw_a_truth_class_one_group: table:people.csv --predictions preds.csv {_CLASSES}": (
        "'0' for 'zero'"
    ),
    f"hostile/cw_b_truth_minus1: table:people.csv --predictions preds.csv {_CLASSES}": "'-1'",
    f"hostile/cw_d_permuted_classes: table:people.csv --predictions preds.csv {_CLASSES}": (
        "'0' for '1'"
    ),
    f"hostile/cw_g_left_right: coco:gt.json --task keypoints --predictions dt.json {_BOXES}": (
        "left and right joints are exchanged"
    ),
    f"hostile/cw_h_wrong_class: coco:gt.json --task detection --predictions car.json {_BOXES}": (
        "labelled 'car'"
    ),
    f"hostile/cw_h_wrong_class: coco:gt.json --task detection --predictions c3.json {_BOXES}": (
        "labelled '3'"
    ),
    f"hostile/cw_i_y_from_bottom: coco:gt.json --task detection --predictions dt.json {_BOXES}": (
        "counted from the bottom"
    ),
    "hostile/cw_l_one_minus_p: coco:gt.json --task detection --predictions inv.json "
    f"--metric average_precision {_BOXES}": "score",
    f"hostile/cw_m_mask_shift: coco:gt.json --task segmentation --predictions dt.json {_BOXES}": (
        "moved by 40 pixels"
    ),
    "hostile/cw_n_age_minus1: table:p.csv --id id --task age_estimation --target age "
    "--score-column age_hat --by race": "-1",
    "hostile/cw_o_group_months: table:p.csv --id id --task regression --target age "
    "--prediction-column age_hat --by race": "12",
    "hostile/cw_q_bins_minus1: table:p.csv --id id --task number --score-column clip --by income "
    "--bins income=quantile:4": "-1",
}
"""Folder and arguments, and words of the first warning."""

REFUSED = {
    f"hostile/cw_c_homoglyph_group: table:people.csv --predictions preds.csv {_CLASSES}": (
        "CYRILLIC CAPITAL LETTER A"
    ),
    f"hostile/cw_j_truth_twice: coco:gt.json --task detection --predictions dt.json {_BOXES}": (
        "360 of 720 annotations repeat another"
    ),
    "33-deepface-analyze: table:labels.csv --id file --target gender --predictions deepface.csv "
    "--prediction-column dominant_gender --by race": "Male=Man",
    "hostile: table:01_far_cell_abort.xlsx --id id --target t --prediction-column a --by race": (
        "xlsx"
    ),
    "hostile: table:people2.csv --id id --task retrieval --predictions 04_model_list.parquet "
    "--by race": "model",
    "hostile: table:people2.csv --id id --task retrieval --predictions 05_model_binary.parquet "
    "--by race": "model",
}
"""Folder and arguments, and words of the refusal."""


def _audit(case, monkeypatch, capsys, tmp_path):
    folder, _, arguments = case.partition(": ")
    path = SHARED / "cases" / folder
    if not path.exists():
        pytest.skip(f"CASES ABSENT: {path} is not there, so this wrong file was NOT tried")
    monkeypatch.chdir(path)
    return isolux(
        monkeypatch, capsys, "audit", *shlex.split(arguments), "--replicates", "100", "--out",
        tmp_path / "run",
    )  # fmt: skip


@pytest.mark.parametrize("case", WARNED)
def test_a_warning_comes_before_any_number(case, monkeypatch, capsys, tmp_path):
    done = _audit(case, monkeypatch, capsys, tmp_path)
    assert done.code == 0, done.err
    text = " ".join((done.err + done.out).split())
    first = text.index("WARNING")
    assert WARNED[case] in text[first : text.index(" read were scored")]


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_by_name(case, monkeypatch, capsys, tmp_path):
    done = _audit(case, monkeypatch, capsys, tmp_path)
    assert done.code == 2, done.out
    assert REFUSED[case] in done.plain
    assert "bug in isolux" not in done.plain


def test_people_without_a_mask_are_no_false_positives(monkeypatch, capsys, tmp_path):
    """The reference is pycocotools with these people as crowds: .541 and .673."""
    case = (
        "25-coco-masks: coco:gt_halfmasks.json --task segmentation --predictions plain_dt.json "
        "--by tone --metric average_precision --min-units 20"
    )
    done = _audit(case, monkeypatch, capsys, tmp_path)
    assert done.code == 0, done.err
    assert "54.1" in done.out
    assert "67.3" in done.out

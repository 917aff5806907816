"""FHIBE's protocols on whole photos, from files to tables, on made-up people counted by hand."""

import re
from functools import partial

import numpy as np
import polars as pl
import pytest

from isolux.api.audit import run_audit
from isolux.core.errors import UnknownNameError
from isolux.core.plugin_options import list_keyword_defaults
from isolux.core.registry import load
from isolux.core.spec import parse_spec
from isolux.datasets import load as load_dataset
from isolux.io import run_directory
from isolux.papers.facet import PROTOCOLS as FACET
from isolux.papers.fhibe import DISAGREEMENTS, INFO, PROTOCOLS, tables
from tests._shared import shared_data
from tests.papers import _facet_files as facet_files
from tests.papers._fhibe_files import (
    GROUPS,
    SHARES,
    SMALL,
    audited,
    compare,
    crowd,
    table_of,
    write_release,
    write_results,
)
from tests.papers._protocol import audit_of

protocol = partial(audit_of, "fhibe")


@pytest.fixture(scope="module")
def people():
    return crowd()


@pytest.fixture(scope="module")
def folder(people, tmp_path_factory):
    root = write_release(tmp_path_factory.mktemp("fhibe"), people)
    for kind in ("boxes", "masks", "faces", "poses"):
        write_results(root / f"{kind}.json", people, kind)
    return root


# --- whole photos -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def detected(folder):
    return audited(folder, "detection", "boxes.json")


def test_people_are_found_by_group(detected, people):
    found = tables("detection", detected.run)
    compare(found, people, lambda p: SHARES[p.share], "average_recall", "boxes")


def test_there_is_a_table_for_every_attribute_of_the_audit(detected):
    found = tables("detection", detected.run)
    assert len(found) == len(PROTOCOLS["detection"]["by"]) == 31
    assert set(detected.group_metrics["attribute"].drop_nulls()) == set(
        PROTOCOLS["detection"]["by"]
    )
    assert next(iter(found.values())).columns == [
        "model", "metric", "group", "n_scores", "n_subjects", "median", "mean",
    ]  # fmt: skip


def test_groups_below_ten_subjects_are_sized_and_not_valued(detected, people):
    found = next(iter(tables("detection", detected.run).values()))
    row = found.row(by_predicate=pl.col("group") == "They/them/their", named=True)
    photos = sum(p.pronoun.startswith("2.") for p in people)
    assert (row["n_scores"], row["n_subjects"]) == (photos, 8)
    assert photos >= 20  # so the tool's rule, of 20 scores, would have judged them
    assert row["median"] is row["mean"] is None
    cells = detected.group_metrics.filter(pl.col("group") == "They/them/their")
    assert set(cells["status"]) == {"insufficient clusters"}


def test_a_continent_alone_counts_in_each_of_its_subregions(detected, people):
    found = tables("detection", detected.run)
    of_regions = table_of(found, "Self-reported ancestry")
    alone = sum(p.ancestry == ("0. Africa",) for p in people)
    assert alone
    sizes = dict(of_regions.select("group", "n_scores").iter_rows())
    assert sizes["Western Africa"] == sizes["Northern Africa"] == alone
    assert sizes["Eastern Africa"] == alone + sum(
        len(p.ancestry) == 2 for p in people if p.ancestry[0] == "0. Africa"
    )
    assert "Africa" not in sizes


def test_people_are_the_clusters(detected, people):
    everyone = detected.group_metrics.filter(pl.col("attribute").is_null())
    assert everyone["n_clusters"].unique().to_list() == [len({p.subject for p in people})]
    assert everyone["n_units"].unique().to_list() == [len(people)]


def test_whole_people_are_made_of_their_parts(folder, people):
    found = tables("segmentation", audited(folder, "segmentation", "masks.json").run)
    compare(found, people, lambda p: SHARES[p.share], "average_recall", "masks")


def test_faces_are_found_by_their_own_boxes(folder, people):
    found = tables("face_detection", audited(folder, "face_detection", "faces.json").run)
    compare(found, people, lambda p: SHARES[p.face_share], "average_recall", "faces")


def test_keypoints_are_the_17_of_coco_within_half_a_diagonal(folder, people):
    assert any(p.right and not p.has_pose for p in people)
    assert any(p.right and p.pck == 0 and p.has_pose for p in people)
    found = tables("keypoints", audited(folder, "keypoints", "poses.json").run)
    compare(found, people, lambda p: p.pck, "pck", "correct keypoints")
    assert next(iter(found.values()))["threshold"].unique().to_list() == [0.5]


def test_the_tools_fractions_stand_side_by_side(folder, people):
    made = audited(
        folder, "keypoints", "poses.json", by=("scene",), nested=(), option=("fractions=0.5,0.7",)
    )  # fmt: skip
    (table,) = tables("keypoints", made.run).values()
    shown = {
        (r["threshold"], r["group"]): r["mean"] for r in table.iter_rows(named=True)
    }  # at .7 of the diagonal a keypoint that is .6 off is right too
    for group in ("Indoor: Workplace", "Indoor: Home or hotel"):
        own = [p for p in people if p.right and group in GROUPS["scene"](p)]
        assert shown[0.5, group] == pytest.approx(np.mean([p.pck for p in own]))
        assert shown[0.7, group] == pytest.approx(np.mean([p.has_pose for p in own]))


def test_attributes_of_one_term_keep_their_own_tables(folder):
    made = audited(
        folder, "detection", "boxes.json", by=("age", "age_group"), nested=(),
        bins=("age=edges:18,40,100",),
    )  # fmt: skip
    captions = [caption.split(":")[0] for caption in tables("detection", made.run)]
    assert captions == ["Age", "Age group"]


def test_a_pose_stays_its_persons_however_little_is_right(folder, people):
    """OKS of a pose that is far off is below COCO's and our usual least of .1."""
    usual = audited(
        folder, "keypoints", "poses.json", option=("lowest_oks=0.1",), by=("scene",), nested=()
    )
    scored = usual.run.scores.filter(metric="pck")
    by_person = {p.key: p.pck for p in people if p.pck is not None}
    differ = [
        r
        for r in scored.iter_rows(named=True)
        if r["value"] is not None and r["value"] != pytest.approx(by_person[r["unit_id"]])
    ]
    assert all(r["value"] == 0 for r in differ)
    assert differ


# --- other datasets -----------------------------------------------------------------------------


def test_wider_face_leaves_those_out_of_whom_annotators_were_not_sure(tmp_path):
    lines, rows, drawn = [], [], []
    for i in range(24):
        name = f"0--Parade/{i}.jpg"
        share = list(SHARES)[i % 4]
        lines += [name, "2", "10 10 12 20 0 0 0 0 0 0", "40 10 12 20 0 0 0 0 0 0"]
        gender = "Not Sure" if i % 6 == 5 else ("Male", "Female")[i % 2]
        rows.append((f"images/{name}", 0, gender, "Adult", "III"))
        drawn += [(name, "face", 10.0, 10.0, 12.0, 20.0 * share, 0.9)]
    (tmp_path / "wider_face_val_bbx_gt.txt").write_text("\n".join(lines) + "\n")
    names = ["file", "face", "perceived_gender", "perceived_age", "perceived_skin"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(tmp_path / "demographics_val.csv")
    columns = ["image_id", "label", "box_x", "box_y", "box_w", "box_h", "score"]
    pl.DataFrame(drawn, schema=columns, orient="row").write_parquet(tmp_path / "found.parquet")
    made = run_audit(protocol(
        "face_detection_on_widerface", f"widerface:{tmp_path}",
        predictions=str(tmp_path / "found.parquet"), **SMALL,
    ))  # fmt: skip
    found = tables("face_detection_on_widerface", made.run)
    table = table_of(found, "Perceived gender presentation")
    hand = {
        g: [
            SHARES[list(SHARES)[i % 4]]
            for i in range(24)
            if i % 6 != 5 and ("Male", "Female")[i % 2] == g
        ]
        for g in ("Male", "Female")
    }
    shown = {r["group"]: (r["n_scores"], r["mean"]) for r in table.iter_rows(named=True)}
    assert {g: n for g, (n, _) in shown.items()} == {"Female": 8, "Male": 12}
    assert shown["Male"][1] == pytest.approx(np.mean(hand["Male"]))
    assert shown["Female"][1] is None  # eight images; nine or fewer tell too little


def test_the_filter_of_wider_face_leaves_as_many_faces_as_the_paper_says():
    spec = protocol("face_detection_on_widerface", "widerface:here")
    options = dict(o.split("=") for o in spec.people.data_option)
    faces = load_dataset("widerface", shared_data("widerface"), **options).instances.filter(
        "judged"
    )
    assert (faces.height, faces["image_id"].n_unique()) == (8519, 2856)


@pytest.mark.parametrize("name", ["detection_on_facet", "segmentation_on_facet"])
def test_facet_is_judged_by_the_same_metric(tmp_path, name):
    people = facet_files.crowd(300)
    root = facet_files.write_dataset(tmp_path / "facet", people)
    masks = name.startswith("segmentation")
    file = facet_files.write_results(tmp_path / "found.json", people, masks=masks)
    made = run_audit(protocol(
        name, f"facet:{root}", predictions=str(file), person_label="1", **SMALL
    ))  # fmt: skip
    assert made.spec.groups.votes == FACET["detection"]["votes"]  # as FACET itself counts people
    found = tables(name, made.run)
    table = table_of(found, "Perceived gender presentation")
    for group in ("masc", "fem"):
        own = [p for p in people if p.gender == group and (p.has_mask or not masks)]
        row = table.row(by_predicate=pl.col("group") == group, named=True)
        shares = [facet_files.HEIGHTS[p.height][0] for p in own]
        assert (row["n_scores"], row["n_images"]) == (len(own), len({p.image for p in own}))
        assert row["mean"] == pytest.approx(np.mean(shares))
        assert row["median"] == pytest.approx(np.median(shares))


# --- the protocols themselves -------------------------------------------------------------------


def test_a_run_from_disk_gives_the_same_tables(detected, tmp_path):
    where = run_directory.save_run(detected.run, tmp_path / "run")
    again = tables("detection", run_directory.load_run(where))
    first = tables("detection", detected.run)
    assert list(again) == list(first)
    assert all(again[c].equals(first[c]) for c in first)


def test_the_record_holds_tables_and_disagreements(detected):
    said = detected.run.record["protocol"]
    assert said["name"] == "fhibe:detection"
    assert said["disagreements"] == list(DISAGREEMENTS["detection"])
    assert len(said["tables"]) == 31
    assert any(r["key"] == "fhibe" for r in detected.run.record["references"])


def test_intersections_are_laid_out_too(folder, people):
    made = audited(folder, "detection", "boxes.json", by=("pronoun*scene",), nested=())
    found = tables("detection", made.run)
    assert [c.split(":")[0] for c in found] == ["Self-reported pronouns and scene"]
    table = next(iter(found.values()))
    for row in table.iter_rows(named=True):
        own = [
            SHARES[p.share] for p in people
            if row["group"] == f"{GROUPS['pronoun'](p)[0]} × {GROUPS['scene'](p)[0]}"
        ]  # fmt: skip
        assert row["n_scores"] == len(own) > 0
        assert row["mean"] in (None, pytest.approx(np.mean(own)))


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_every_protocol_names_what_its_task_and_dataset_take(name):
    spec = protocol(name, "fhibe:here")
    dataset = name.partition("_on_")[2] or "fhibe"
    task = load("tasks", spec.task.name)
    assert set(spec.task.settings) <= set(list_keyword_defaults(task.score))
    for item in spec.people.data_option:
        assert item.partition("=")[0] in list_keyword_defaults(load("datasets", dataset).load)
    known = [metric.name for metric in task.INFO.metrics]
    assert set(spec.task.metrics) <= set(known)
    assert spec.statistics.min_clusters == 10
    assert len(DISAGREEMENTS[name]) >= 5
    assert all(text.endswith(".") for text in DISAGREEMENTS[name])
    assert set(DISAGREEMENTS) == set(PROTOCOLS)
    assert parse_spec({"data": "fhibe:here", **PROTOCOLS[name]}).groups == spec.groups


def test_options_that_disagreements_name_exist():
    """A note that names a setting would else outlive it."""
    for name, texts in DISAGREEMENTS.items():
        score = load("tasks", PROTOCOLS[name]["task"]).score
        for option in re.findall(r"--option (\w+)=", " ".join(texts)):
            assert option in list_keyword_defaults(score), (name, option)
        for option in re.findall(r"--data-option (\w+)=", " ".join(texts)):
            assert option in list_keyword_defaults(load("datasets", "fhibe").load), (name, option)


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_the_papers_own_test_of_scores_runs_where_people_have_scores(name):
    own = "rank_tests" in protocol(name, "fhibe:release").explain.analyses
    of_scores = not name.startswith("face_verification") and "_on_" not in name
    assert own == (of_scores and PROTOCOLS[name]["task"] != "answers")


def test_an_unknown_protocol_is_named():
    with pytest.raises(UnknownNameError, match=r"(?s)protocol named 'detecton'.*detection"):
        protocol("detecton", "fhibe:here")


def test_the_tool_and_the_paper_are_cited():
    assert [r.key for r in INFO.references] == ["fhibe", "fhibe-api"]

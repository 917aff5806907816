"""The whole pipeline: literal people, files and memory alike, and FairFace's real answers."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import isolux
from isolux.api.audit import run_audit
from isolux.api.audit.inputs import read_settings_file
from isolux.core.errors import OutputError, SpecError
from isolux.core.spec import parse_spec
from tests._shared import shared_data

# Ten people of group a, eight right; ten of group b, five right: 13 of 20 right in all.
TEN = pl.DataFrame(
    {
        "unit_id": [f"u{i:02}" for i in range(20)],
        "value": [1.0] * 8 + [0.0] * 2 + [1.0] * 5 + [0.0] * 5,
        "tone": ["a"] * 10 + ["b"] * 10,
    }
)
FEW = {"min_units": 5, "min_clusters": 5, "replicates": 200}


def literal(**settings):
    return isolux.audit(TEN.select("unit_id", "value"), TEN.select("unit_id", "tone"), by="tone",
                        **{**FEW, **settings})  # fmt: skip


def test_a_literal_table_is_measured():
    found = literal().group_metrics
    assert found.select("group", "n_units", "n_clusters", "value").rows() == [
        ("overall", 20, 20, 0.65), ("a", 10, 10, 0.8), ("b", 10, 10, 0.5),
    ]  # fmt: skip


def test_a_directory_that_is_named_is_written(tmp_path):
    where = tmp_path / "run"
    found = literal(out=where)
    assert (where / "report.html").exists()
    kept = pl.read_parquet(where / "group_metrics.parquet")
    assert_frame_equal(kept.select("group", "value"), found.group_metrics.select("group", "value"))
    with pytest.raises(OutputError):
        literal(out=where)
    assert literal(out=str(where), overwrite=True).group_metrics.height == 3
    assert list(tmp_path.iterdir()) == [where]


def test_a_literal_table_is_compared_worse_group_first():
    rows = literal().disparities
    pair = rows.filter(kind="difference")
    assert pair.select("group_a", "group_b", "n_units_a", "n_units_b").row(0) == ("b", "a", 10, 10)
    assert pair["value"][0] == pytest.approx(-0.3, abs=1e-12)
    value = dict(rows.filter(group_a="b").select("kind", "value").iter_rows())
    assert value["ratio"] == pytest.approx(0.5 / 0.8)
    assert value["log_ratio"] == pytest.approx(math.log10(0.5 / 0.8))
    assert value["range"] == pytest.approx(0.3)
    assert value["epsilon"] == pytest.approx(math.log10(0.8 / 0.5))
    spread = dict(rows.filter(pl.col("group_a").is_null()).select("kind", "value").iter_rows())
    # Two values 0.3 apart: ddof 1 gives 0.3 / sqrt(2); the gaps to 0.65 are 0.15 each.
    assert spread["standard_deviation"] == pytest.approx(0.3 / math.sqrt(2))
    assert spread["mean_absolute_gap"] == pytest.approx(0.15)


def test_the_p_is_that_of_the_pairs_variance():
    row = literal().disparities.filter(kind="difference")
    # 8 and 5 of 10, 13 of 20 together: 3.5 of the rarer answer in each group's 10.
    shares = [(3.5 * own + 40 * 0.65) / 43.5 for own in (0.8, 0.5)]
    error = math.sqrt(sum(p * (1 - p) / 10 for p in shares))
    assert row["p_value"][0] == pytest.approx(math.erfc(0.3 / error / math.sqrt(2)), abs=1e-6)
    assert row["test"][0] == "score interval"


def test_a_reference_group_is_always_second():
    rows = literal(reference="tone=b").disparities.filter(kind="difference")
    assert rows.select("group_a", "group_b").rows() == [("a", "b")]
    assert rows["value"][0] == pytest.approx(0.3, abs=1e-12)


def test_holm_needs_no_replicates():
    # p-values are computed, not counted: of 28 tests one may be as small as it likes.
    assert not literal(correction="holm").run.record["notes"]
    tone = ["a"] * 60 + ["b"] * 60
    frame = pl.DataFrame({"unit_id": [str(i) for i in range(120)], "tone": tone,
                          "value": [1.0] * 60 + [0.0] * 60})  # fmt: skip
    args = frame.select("unit_id", "value"), frame.select("unit_id", "tone")
    found = isolux.audit(*args, by="tone", correction="holm", **FEW).disparities
    assert found.filter(kind="difference")["p_adjusted"][0] < 1e-9


def test_few_units_and_few_clusters_have_no_value_but_a_reason():
    few = literal(min_units=11).group_metrics.filter(pl.col("attribute").is_not_null())
    assert few["status"].unique().to_list() == ["insufficient units"]
    assert few["value"].null_count() == 2
    assert few["reason"].unique().to_list() == ["fewer than 11 units"]
    clustered = TEN.select("unit_id", "value", cluster_id=pl.lit("one"))
    found = isolux.audit(clustered, TEN.select("unit_id", "tone"), by="tone", **FEW)
    assert found.group_metrics["status"].unique().to_list() == ["insufficient clusters"]


def test_clusters_that_scores_do_not_have_are_missed():
    with pytest.raises(SpecError, match="but the scores have none") as caught:
        isolux.audit(TEN.select("unit_id", "value"), TEN.select("unit_id", "tone"), by="tone",
                     cluster="subject", **FEW)  # fmt: skip
    assert "isolux.load(…, cluster='subject')" in str(caught.value)


def test_below_ten_clusters_there_is_a_value_but_no_interval():
    nine = TEN.filter(~pl.col("unit_id").is_in(["u00", "u10"]))
    found = isolux.audit(nine.select("unit_id", "value"), nine.select("unit_id", "tone"),
                         by="tone", **FEW).group_metrics.filter(group="a")  # fmt: skip
    assert found["value"][0] == pytest.approx(7 / 9)
    assert found.select("low", "high", "status").row(0) == (None, None, "few clusters")


def test_inputs_are_not_changed_and_a_seed_repeats():
    scores, who = TEN.select("unit_id", "value"), TEN.select("unit_id", "tone")
    before = scores.clone(), who.clone()
    one, two = (isolux.audit(scores, who, by="tone", **FEW) for _ in range(2))
    assert scores.equals(before[0])
    assert who.equals(before[1])
    assert one.disparities.equals(two.disparities)
    other = isolux.audit(scores, who, by="tone", **FEW, seed=1)
    assert not one.disparities.equals(other.disparities)
    assert one.group_metrics.equals(other.group_metrics), "nothing is drawn for a mean"


def test_any_frame_is_accepted():
    pandas = TEN.to_pandas()
    found = isolux.audit(
        pandas[["unit_id", "value"]], pandas[["unit_id", "tone"]], by="tone", **FEW
    )
    assert found.group_metrics["value"].to_list() == [0.65, 0.8, 0.5]


def test_without_an_attribute_everyone_is_measured_as_beside_groups():
    scores, who = TEN.select("unit_id", "value"), TEN.select("unit_id", "tone")
    found = isolux.audit(scores, who, by=[], **FEW)
    beside = isolux.audit(scores, who, by="tone", **FEW)
    everyone = beside.group_metrics.filter(pl.col("attribute").is_null())
    assert found.group_metrics.equals(everyone)
    assert found.group_metrics["low"].null_count() == 0
    assert found.disparities.is_empty()
    assert found.findings.is_empty()
    assert repr(found).splitlines()[0].endswith("no attribute, so no groups")
    # (.8 + .5) / 2, of ten units each.
    assert "• score 65.0 % (" in repr(found)


def made_up(folder: Path) -> Path:
    """300 people, three photos each, in four groups; group-dependent mistakes."""
    n = 300
    right = [(i * 7) % 10 < 6 + i % 4 for i in range(n)]
    truth = ["judge" if i % 3 else "nurse" for i in range(n)]
    other = {"judge": "nurse", "nurse": "judge"}
    frame = pl.DataFrame(
        {
            "photo": [f"p{i}" for i in range(n)],
            "subject": [f"s{i // 3}" for i in range(n)],
            "tone": [str(i % 4) for i in range(n)],
            "light": ["day" if i % 2 else "night" for i in range(n)],
            "job": truth,
            "answer": [t if r else other[t] for t, r in zip(truth, right, strict=True)],
        }
    )
    path = folder / "people.csv"
    frame.write_csv(path)
    return path


def test_a_yaml_file_is_the_same_as_flags(tmp_path):
    path = made_up(tmp_path)
    settings = {
        "data": f"table:{path}", "id": "photo", "target": "job", "prediction_column": "answer",
        "by": ["tone", "tone*light"], "cluster": "subject", "replicates": 100, "min_units": 20,
    }  # fmt: skip
    lines = [f"{k.replace('_', '-')}: {json.dumps(v)}" for k, v in settings.items()]
    (tmp_path / "audit.yaml").write_text("\n".join(lines))
    from_file = run_audit(parse_spec(read_settings_file(tmp_path / "audit.yaml")))
    direct = run_audit(parse_spec(settings))
    assert from_file.spec == direct.spec
    assert from_file.disparities.equals(direct.disparities)
    assert direct.group_metrics["n_clusters"].max() == 100


def test_a_run_directory_holds_what_made_it(tmp_path):
    path = made_up(tmp_path)
    spec = parse_spec({"data": f"table:{path}", "target": "job", "prediction_column": "answer",
                       "by": "tone", "replicates": 100})  # fmt: skip
    run_audit(spec).report(tmp_path / "run")
    record = json.loads((tmp_path / "run" / "audit.json").read_text())
    assert record["spec"]["by"] == ["tone"]
    assert record["seed"] == 0
    import hashlib

    hashed = hashlib.sha256(path.read_bytes()).hexdigest()
    assert record["inputs"] == {os.path.relpath(path): hashed}
    assert {"isolux", "numpy", "polars"} <= set(record["versions"])
    keys = [r["key"] for r in record["references"]]
    assert "westfall-young-1993" in keys
    assert "holm-1979" not in keys, "a reference of what did not run"
    assert record["clusters"] == {"column": None, "n_clusters": 300, "n_units": 300}


def test_no_cluster_is_said_in_the_report(tmp_path):
    path = made_up(tmp_path)
    common = {"data": f"table:{path}", "target": "job", "prediction_column": "answer",
              "by": "tone", "replicates": 100}  # fmt: skip
    page = run_audit(parse_spec(common)).report(tmp_path / "a").read_text(encoding="utf-8")
    assert "independent" in page
    clustered = parse_spec({**common, "cluster": "subject"})
    found = run_audit(clustered).report(tmp_path / "b").read_text(encoding="utf-8")
    assert "100 clusters (subject)" in " ".join(found.split())


@pytest.fixture(scope="module")
def fairface():
    """Both real models' audits of FairFace's validation faces, by race and perceived gender."""
    labels = shared_data("fairface_val/fairface_label_val.csv")
    found = {}
    for name, file in (
        ("erm", "fairface_label_val_expanded.csv"),
        ("arl", "fairface_label_val_expanded_fair.csv"),
    ):
        found[name] = run_audit(
            parse_spec(
                {
                    "data": f"fairface:{labels}", "target": "gender",
                    "predictions": str(shared_data(f"fairface_val/{file}")),
                    "prediction_column": "predicted_gender", "id_from": "basename",
                    "by": ["race", "race*gender"], "model_name": name, "replicates": 500,
                }
            )
        )  # fmt: skip
    return found


def test_fairface_numbers(fairface):
    table = fairface["erm"].group_metrics.filter(metric="accuracy")
    value = {g: (round(v, 4), n) for g, v, n in table.select("group", "value", "n_units").rows()}
    assert value["overall"] == (0.7393, 10_954)
    assert value["Black"][0] == 0.6388
    assert value["White"][0] == 0.7712
    assert value["Black × Female"] == (0.4188, 757)
    assert value["Black × Male"] == (0.8473, 799)


@pytest.mark.parametrize(("model", "epsilon"), [("erm", 0.3149), ("arl", 0.2314)])
def test_fairface_epsilon(fairface, model, epsilon):
    row = fairface[model].disparities.filter(
        kind="epsilon", metric="accuracy", attribute="race*gender"
    )
    assert round(row["value"][0], 4) == epsilon
    assert row["low"][0] < epsilon < row["high"][0]


def test_fairface_paired_comparison(fairface):
    change = isolux.compare(fairface["erm"], fairface["arl"], id_from="basename")
    rows = change.disparities.filter(kind="model_difference", metric="accuracy")
    everyone = rows.filter(pl.col("attribute").is_null())
    assert everyone["n_units_a"][0] == 10_954
    before, after = (fairface[m].group_metrics.filter(metric="accuracy") for m in ("erm", "arl"))
    expected = after.join(before, on=["attribute", "group"], nulls_equal=True, suffix="_b")
    expected = expected.select("group", d=pl.col("value") - pl.col("value_b"))
    found = dict(rows.select("group_a", "value").rows())
    for group, difference in expected.rows():
        assert found[group] == pytest.approx(difference, abs=1e-12), group
    assert change.findings["claim"][0].startswith("Overall arl is better than erm")
    assert set(change.rankings["label"]) == {"Male", "Female"}


def test_fairface_services_both_policies():
    """DeepFace: confidences of 0 to 100, faces not found, two rows without a partner."""
    labels = shared_data("fairface_services/labels_3k.csv")
    answers = shared_data("fairface_services/deepface_3k.csv")
    found = run_audit(
        parse_spec(
            {
                "data": f"fairface:{labels}", "target": "gender", "predictions": str(answers),
                "prediction_column": "gender", "score_column": "gender_confidence",
                "score_scale": 100, "detected_column": "face_confidence", "undetected": "both",
                "by": ["race", "race*gender"], "replicates": 100, "score_of": "answer",
            }
        )
    )  # fmt: skip
    notes = " ".join(found.run.record["notes"])
    assert "10949" in notes
    assert "11006" in notes
    wide = found.group_metrics.filter(pl.col("label").is_null(), pl.col("value").is_not_null())
    wide = wide.pivot("metric", index=["attribute", "group"], values="value")
    error = wide["accuracy"] - wide["accuracy_on_detected"] * wide["detection_rate"]
    assert error.drop_nulls().abs().max() < 1e-12  # FairFace, Table 6: exact on counts
    assert wide["detection_rate"].max() < 1


def test_fairface_race_lists_of_unequal_grain_are_merged():
    labels = shared_data("fairface_services/labels_3k.csv")
    answers = shared_data("fairface_services/facellm_3k.csv")
    merge = "Asian=East Asian,Southeast Asian,Asian"
    found = run_audit(
        parse_spec(
            {"data": f"fairface:{labels}", "target": "race", "predictions": str(answers),
             "prediction_column": "race", "label_map": [merge], "by": "gender", "replicates": 100}
        )
    )  # fmt: skip
    recalled = set(found.group_metrics.filter(metric="recall")["label"])
    assert recalled == {"Asian", "White", "Black", "Indian", "Middle Eastern", "Latino_Hispanic"}
    truth, said = pl.read_csv(labels), pl.read_csv(answers)
    both = truth.join(said, on="image_id", suffix="_said")
    asian = pl.when(pl.col("race").str.ends_with("Asian")).then(pl.lit("Asian")).otherwise("race")
    right = both.select((asian == pl.col("race_said")).mean()).item()
    overall = found.group_metrics.filter(pl.col("attribute").is_null(), metric="accuracy")
    assert overall["value"][0] == pytest.approx(right, abs=1e-12)


def test_wider_faces_are_audited_from_files():
    """A real detector, real people: recall at IoU .5 over the 12,190 faces with demographics."""
    found = run_audit(
        parse_spec(
            {
                "data": f"widerface:{shared_data('widerface')}", "task": "face_detection",
                "predictions": str(shared_data("widerface/retinaface.widerface_txt.tar.gz")),
                "score_threshold": 0.5, "by": ["perceived_gender", "blur"], "replicates": 100,
            }
        )
    )  # fmt: skip
    everyone = found.group_metrics.filter(pl.col("attribute").is_null())
    row = everyone.filter(metric="recall_at_score")
    assert round(row["value"][0], 4) == 0.8558
    assert row.select("n_units", "n_clusters").row(0) == (12_190, 3_049)
    assert found.run.record["clusters"] == {
        "column": "image", "n_clusters": 3_049, "n_units": 12_190,
    }  # fmt: skip
    groups = set(found.group_metrics.filter(attribute="perceived_gender")["group"])
    assert groups == {"Male", "Female", "unknown"}
    missed = found.disparities.filter(kind="difference", metric="miss_rate", attribute="blur")
    assert set(missed["group_a"]) <= {"heavy", "normal"}, "the worse group misses more"
    assert missed["value"].min() > 0


def test_people_of_a_detector_of_many_things_are_named_by_its_label():
    found = run_audit(
        parse_spec(
            {
                "data": f"coco:{shared_data('coco/instances_val2014_100.json')}",
                "task": "detection", "person_label": "1", "person_class": "person",
                "predictions": str(shared_data("coco/instances_val2014_fakebbox100_results.json")),
                "max_detections": 100, "by": "supercategory", "replicates": 100,
            }
        )
    )  # fmt: skip
    row = found.group_metrics.filter(pl.col("attribute").is_null(), metric="average_recall")
    assert round(row["value"][0], 3) == 0.604  # pycocotools' AR100 of persons alone


def test_a_setting_that_the_task_does_not_take_is_refused():
    data = {"data": f"widerface:{shared_data('widerface')}", "task": "face_detection",
            "predictions": str(shared_data("widerface/retinaface.widerface_txt.tar.gz")),
            "by": "blur", "positive": "Male"}  # fmt: skip
    with pytest.raises(SpecError, match="has no setting 'positive'"):
        run_audit(parse_spec(data))


def test_an_identifier_is_no_attribute_to_compare_by():
    people = TEN.with_columns(name=pl.col("unit_id"))
    many = pl.concat([people.with_columns(pl.col("unit_id", "name") + f"-{k}") for k in range(16)])
    with pytest.raises(SpecError, match="'name' has 320 different values, too many to compare"):
        isolux.audit(many.select("unit_id", "value"), many.select("unit_id", "name"), by="name")

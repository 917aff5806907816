"""The public functions: what they are about first, then settings under the flags' names."""

from __future__ import annotations

import inspect

import polars as pl
import pytest

import isolux
from isolux.core.errors import SpecError

ABOUT_DATA = ("describe", "check", "sample")


@pytest.fixture
def people(tmp_path):
    lines = [f"{i},{'day' if i % 2 else 'night'},job,{'job' if i % 3 else 'other'}"
             for i in range(200)]  # fmt: skip
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["id,light,truth,said", *lines]) + "\n")
    return path


@pytest.mark.parametrize("name", [*ABOUT_DATA, "explain", "synthesize", "read_predictions", "crop"])
def test_one_signature_style(name):
    first, *others = inspect.signature(getattr(isolux, name)).parameters.values()
    assert first.kind is first.POSITIONAL_OR_KEYWORD
    assert {p.kind for p in others} <= {
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    }


def test_a_dataset_and_its_file_are_the_same(people):
    loaded = isolux.load("table", people)
    by_file = isolux.describe(f"table:{people}", by=["light"]).tables["By light"]
    assert by_file.equals(isolux.describe(loaded, by=["light"]).tables["By light"])
    drawn = isolux.sample(f"table:{people}", balance=["light"], per_cell=5).people
    assert drawn.equals(isolux.sample(loaded, balance=["light"], per_cell=5).people)
    assert isolux.check(loaded).problems.equals(isolux.check(f"table:{people}").problems)


def test_an_audit_of_files_is_the_commands(people, tmp_path):
    settings = {"target": "truth", "prediction_column": "said", "replicates": 200}
    found = isolux.audit(f"table:{people}", by="light", id="id", **settings)
    loaded = isolux.load("table", people, id="id")
    answers = isolux.read_predictions(people, id="id", column="said")
    scores = isolux.score("classification", loaded, answers, target="truth")
    same = isolux.audit(scores, loaded, by="light", replicates=200)
    assert found.group_metrics["value"].to_list() == same.group_metrics["value"].to_list()
    assert found.spec.people.data == f"table:{people}"
    (tmp_path / "audit.yaml").write_text(
        f"data: table:{people}\nid: id\ntarget: truth\nprediction-column: said\nby: [light]\n"
    )
    by_file = isolux.audit(tmp_path / "audit.yaml", replicates=200)
    assert by_file.group_metrics.equals(found.group_metrics)


def test_attributes_are_a_file_beside_files_and_a_table_in_memory(people, tmp_path):
    frame = pl.read_csv(people)
    frame.drop("light").write_csv(tmp_path / "answers.csv")
    frame.select("id", "light").write_csv(tmp_path / "light.csv")
    settings = {"by": "light", "id": "id", "target": "truth", "prediction_column": "said"}
    settings["replicates"] = 200
    whole = isolux.audit(f"table:{people}", **settings).group_metrics
    for source in (f"table:{tmp_path / 'answers.csv'}", frame.drop("light")):
        for path in (tmp_path / "light.csv", str(tmp_path / "light.csv")):
            joined = isolux.audit(source, attributes=path, **settings)
            assert joined.group_metrics.equals(whole)
            assert joined.spec.people.attributes == str(path)


def test_an_audit_of_files_takes_settings_by_name_alone(people):
    with pytest.raises(SpecError, match=r"files say themselves who is who(.|\n)*attributes=FILE"):
        isolux.audit(f"table:{people}", pl.DataFrame(), by="light")
    with pytest.raises(SpecError, match=r"data are not named(.|\n)*table:people.csv reads"):
        isolux.audit("people.csv", by="light")
    with pytest.raises(SpecError, match=r"injected\.json is read beside files"):
        isolux.audit(pl.DataFrame({"unit_id": [], "value": []}), by="light", injected="a.json")


def test_settings_of_files_are_refused_for_a_dataset_in_memory(people):
    with pytest.raises(SpecError, match="this dataset is in memory"):
        isolux.describe(isolux.load("table", people), id="id")


def test_a_cluster_and_conditions_hold_in_memory_too(people):
    loaded = isolux.load("table", people)
    found = isolux.describe(loaded, by=["light"], only=["light=day"])
    assert found.tables["By light"]["people"].to_list() == [100]


def test_explaining_leaves_the_run_as_it_was(people, tmp_path):
    frame = pl.read_csv(people, schema_overrides={"id": pl.String})
    who = frame.select("light", unit_id="id")
    value = (frame["said"] == frame["truth"]).cast(pl.Float64)
    done = isolux.audit(who.select("unit_id", value=value), who, by="light", replicates=200)
    done.report(tmp_path / "run")
    told = isolux.explain(done, analysis=["power"])
    back = isolux.explain(tmp_path / "run", analysis=["power"])
    assert "power" in told.findings["analysis"].to_list() + [
        a["name"] for a in told.run.record["analyses"]
    ]
    assert told.findings.select("claim").equals(back.findings.select("claim"))
    assert "power" not in [a["name"] for a in done.run.record.get("analyses", ())]
    assert told.report(tmp_path / "again").exists()


def test_a_text_is_one_name(people):
    frame = pl.read_csv(people, schema_overrides={"id": pl.String})
    who = frame.select("light", unit_id="id")
    value = (frame["said"] == frame["truth"]).cast(pl.Float64)
    done = isolux.audit(who.select("unit_id", value=value), who, by="light", replicates=200)
    told = isolux.explain(done, analysis="power")
    assert "power" in [a["name"] for a in told.run.record["analyses"]]
    assert isolux.describe(isolux.load("table", people), by="light").tables["By light"].height


def test_a_world_is_written_with_the_truth_beside_it(tmp_path):
    made = isolux.synthesize("fair", out=tmp_path / "w", pixels=False, households=20)
    assert made.world.people.height > 0
    assert (tmp_path / "w" / "injected.json").exists()


def test_without_the_worlds_package_it_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("isolux.api.synthesize.entry_points", lambda group: ())
    with pytest.raises(SpecError, match="comes with the package isolux-worlds"):
        isolux.synthesize("fair", out=tmp_path / "w")


def test_one_reader_for_every_kind_of_output(tmp_path):
    (tmp_path / "boxes.csv").write_text("image_id,box_x,box_y,box_w,box_h,score\n7,4,5,20,30,0.9\n")
    (tmp_path / "labels.csv").write_text("id,label\n7,job\n")
    assert "box_x" in isolux.read_predictions(tmp_path / "boxes.csv").columns
    assert isolux.read_predictions(tmp_path / "labels.csv")["label"].to_list() == ["job"]


def test_people_who_withdrew_are_left_out_in_memory_too(people, tmp_path):
    (tmp_path / "gone.txt").write_text("0\n1\nnot-here\n")
    loaded, gone = isolux.load("table", people), str(tmp_path / "gone.txt")
    with pytest.raises(SpecError, match="nobody"):
        isolux.describe(loaded, by=["light"], withdrawn=gone)
    found = isolux.describe(loaded, by=["light"], withdrawn=gone, allow_unmatched=True)
    assert found.tables["By light"]["people"].to_list() == [99, 99]
    with pytest.raises(SpecError, match="nobody"):
        isolux.check(loaded, withdrawn=gone)
    notes = isolux.check(loaded, withdrawn=gone, allow_unmatched=True).notes
    assert any("withdrew" in note for note in notes)

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import polars as pl
import pytest

from isolux.api.audit import run_audit
from isolux.core.errors import FileError, OutputError, SpecError, UnknownNameError
from isolux.core.spec import parse_spec
from isolux.io.images import read_image
from isolux_worlds import synthesis
from isolux_worlds.layouts import LAYOUTS
from isolux_worlds.photo_world.injected_effects import compute_photo_injected_rates
from isolux_worlds.photo_world.settings import parse_world, read_world
from isolux_worlds.predictors import PREDICTORS
from isolux_worlds.synthesis import read_world_or_preset, synthesize
from tests.cli._run import isolux
from tests.worlds.layouts._painter import painted
from tests.worlds.layouts._worlds import settings

ONE_WAY = {
    # The task to begin with, what its metric of "right" is, and what every layout knows.
    "facet": ("classification", "accuracy", None, "lighting"),
    "fhibe": ("detection", "recall_at_iou", 0.5, "lighting"),
    "coco": ("detection", "recall_at_iou", 0.5, "lighting"),
    "bdd100k": ("detection", "recall_at_iou", 0.5, "weather"),
    "dollarstreet": ("classification", "accuracy", None, "income_group"),
}


def injected_world(**changes):
    """What is injected lies in what all of the layouts can say."""
    return parse_world(
        {
            "name": "injected",
            "seed": 11,
            "households": 400,
            "subjects": [1, 3],
            "photos": [2, 3],
            "people": [1, 2],
            "image": {"width": 200, "height": 150},
            "attributes": {
                "income_group": {
                    "level": "household",
                    "shares": {"low": 0.4, "middle": 0.3, "high": 0.3},
                },
                "weather": {"shares": {"clear": 0.5, "rainy": 0.5}},
                "lighting": {"shares": {"well_lit": 0.5, "dimly_lit": 0.5}},
            },
            "annotators": {"error": 0.0},
            "models": [
                {
                    "name": "aurora",
                    "base_rate": 0.85,
                    "effects": [
                        {"where": {"income_group": "low"}, "size": -0.9},
                        {"where": {"weather": "rainy"}, "size": -0.9},
                        {"where": {"lighting": "dimly_lit"}, "size": -0.9},
                    ],
                    "correlation": 0.1,
                }
            ],
            "by": ["income_group", "weather", "lighting"],
            **changes,
        }
    )


@pytest.fixture(scope="module", params=sorted(LAYOUTS))
def layout(request):
    return request.param


@pytest.fixture(scope="module")
def done(layout, tmp_path_factory):
    out = tmp_path_factory.mktemp("worlds") / layout
    homes = 120 if layout == "fhibe" else 250  # its loader reads cells one by one
    return synthesize(injected_world(households=homes), out, layout=layout, pixels=False)


def commands_of(path: Path) -> list[list[str]]:
    """Read the README's audits; those by protocols run in ``test_protocol_commands.py``."""
    text = (path / "README.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    text = text.partition("By published protocols")[0]
    return [shlex.split(line) for line in text.splitlines() if line.startswith("  isolux ")]


def test_the_directory_holds_what_is_promised(done, layout):
    assert sorted(p.name for p in done.path.iterdir()) == [
        "README.txt", "data", "injected.json", "people.csv", "predictions", "world.yaml",
    ]  # fmt: skip
    people = pl.read_csv(done.path / "people.csv", infer_schema=False)
    assert people.height == done.world.people.height
    assert people["instance_id"].is_unique().all()
    assert people["weather"].to_list() == done.world.people["weather"].to_list()
    ways = [w for w in LAYOUTS[layout].ways if not w.pictures]
    assert len(done.commands) == len(ways) + 1
    assert [" ".join(map(shlex.quote, words)) for words in commands_of(done.path)] == list(
        done.commands
    )


def test_an_audit_of_the_files_finds_what_was_injected(done, layout, monkeypatch):
    task, metric, threshold, attribute = ONE_WAY[layout]
    monkeypatch.chdir(done.path)
    way = next(w for w in LAYOUTS[layout].ways if w.task == task)
    words = next(w for w in commands_of(done.path) if w[4] == task)
    entry = LAYOUTS[layout].translate_grouping_or_none(attribute)
    spec = {
        "data": words[2],
        "task": task,
        "predictions": words[words.index("--predictions") + 1],
        "metric": metric,
        "by": entry,
        "replicates": 100,
        "data_option": tuple(o.format(data="data") for o in way.options[1::2]),
    }
    audit = run_audit(parse_spec(spec))
    # Without injected: the report says all the same that these people are not real.
    assert audit.run.record["dataset"]["synthetic"] is True
    assert any("These people are synthetic" in note for note in audit.run.record["notes"])
    found = audit.group_metrics.filter(attribute=entry, status="ok")
    if threshold is not None:
        found = found.filter(threshold=threshold)
    rates = {
        tuple(v): (x, e) for v, x, e in found.select("values", "value", "standard_error").rows()
    }
    truth = compute_photo_injected_rates(injected_world(), "aurora").filter(attribute=attribute)
    assert truth.height >= 2
    spread = truth["value"].max() - truth["value"].min()
    assert spread > 0.1
    for values, value in truth.select("values", "value").rows():
        told = LAYOUTS[layout].values(attribute, values)
        measured, error = rates[tuple(told)]
        assert abs(measured - value) < 3.5 * error, (values, value, measured, error)
    (gap,) = audit.disparities.filter(attribute=entry, kind="difference")["p_value"].head(1)
    assert gap < 0.01


@pytest.fixture(scope="module")
def rendered(layout, tmp_path_factory):
    """A world with pictures, small: painted by the house's own painter."""
    out = tmp_path_factory.mktemp("rendered") / layout
    homes = 8 if layout == "fhibe" else 14  # its faces and their parts take time
    return synthesize(injected_world(households=homes, image=SMALL), out, layout=layout)


SMALL = {"width": 240, "height": 180}


def test_the_readmes_commands_run_and_find_the_injected_rate(rendered, layout, monkeypatch, capsys):
    monkeypatch.chdir(rendered.path)
    *listed, of_table = commands_of(rendered.path)
    assert {w[4] for w in listed} == {w.task for w in LAYOUTS[layout].ways}
    assert of_table[2] == "table:people.csv"
    everyone = compute_photo_injected_rates(injected_world(), "aurora")["value"][0]
    for words in listed:
        task = words[4]
        few = ("--replicates", "100", "--min-units", "5", "--min-clusters", "3")
        ran = isolux(monkeypatch, capsys, *words[1:], *few)
        assert ran.code == 0, (words, ran.err)
        if not PREDICTORS[task].exact:
            continue
        run = Path(words[words.index("--out") + 1])
        found = pl.read_parquet(run / "group_metrics.parquet").filter(
            pl.col("attribute").is_null(),
            pl.col("label").is_null(),
            metric=PREDICTORS[task].metric,
        )
        if PREDICTORS[task].threshold is not None:
            found = found.filter(threshold=PREDICTORS[task].threshold)
        ((value, error),) = found.select("value", "standard_error").rows()
        assert abs(value - everyone) < 4 * error, task


def test_painted_pictures_show_what_is_annotated(rendered, layout):
    root = rendered.path / "data"
    photos = [
        p
        for p in root.rglob("*")
        if p.suffix in (".jpg", ".png") and not p.match("*faces_crop*") and "masks" not in p.parts
    ]
    assert len(photos) == rendered.world.photos.height
    assert {read_image(p).shape for p in photos} == {(180, 240, 3)}
    assert rendered.world.people["mask_counts"].is_not_null().mean() > 0.9


def test_injected_json_holds_the_truth_in_both_languages(done, layout):
    told = json.loads((done.path / "injected.json").read_text(encoding="utf-8"))
    truth = compute_photo_injected_rates(injected_world(), "aurora")
    groups = told["models"]["aurora"]["groups"]
    assert [g["value"] for g in groups] == truth["value"].to_list()
    native = {g["group"]: g["in_data"] for g in groups if g["attribute"] == "weather"}
    if layout == "fhibe":
        assert native["rainy"] == {"attribute": "weather", "values": ["Rain"]}
    if layout == "facet":
        assert native["rainy"] is None
    assert {w["attribute"] for w in told["models"]["aurora"]["widest"]} == {
        "income_group", "weather", "lighting",
    }  # fmt: skip


def test_world_yaml_draws_the_same_world_again(tmp_path):
    first = synthesize(settings(), tmp_path / "a", seed=9, pixels=False)
    again = read_world(tmp_path / "a" / "world.yaml")
    assert again.seed == 9
    synthesize(again, tmp_path / "b", pixels=False)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert first.world.seed == 9
    assert re.match(
        r"# Drawn by isolux [\d.]+, numpy [\d.]+.*; layout facet, not painted\.\n",
        (tmp_path / "a" / "world.yaml").read_text(),
    )


def contents(path: Path) -> dict[str, bytes]:
    return {
        p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_painted_worlds_are_the_same_for_the_same_seed(tmp_path, name, monkeypatch):
    monkeypatch.setattr(synthesis, "_render_photos", lambda world, tell: painted(world))
    small = settings(households=4)
    for out in ("a", "b"):
        synthesize(small, tmp_path / out, layout=name)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert any(n.endswith((".jpg", ".png")) for n in contents(tmp_path / "a"))


def test_progress_is_told(tmp_path):
    heard = []
    synthesize(settings(), tmp_path / "w", pixels=False, progress=lambda *told: heard.append(told))
    ways = LAYOUTS["facet"].ways
    answered = sum(not way.pictures for way in ways)
    assert heard[-1] == ("writing answers", answered, answered)


def test_pictures_are_written_as_they_come(tmp_path, monkeypatch):
    """No picture waits in memory: each is a file before the next one is asked for."""
    seen = []

    def counted(world, tell):
        for number, picture in enumerate(painted(world)):
            seen.append((number, len(list(tmp_path.rglob("sa_*.jpg")))))
            yield picture

    monkeypatch.setattr(synthesis, "_render_photos", counted)
    synthesize(settings(), tmp_path / "w")
    assert len(seen) > 5
    assert all(asked == there for asked, there in seen)


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_a_world_that_names_nothing_can_be_audited_too(tmp_path, name, monkeypatch, capsys):
    bare = parse_world(
        {"name": "bare", "households": 60, "models": [{"name": "m", "base_rate": 0.7}]}
    )
    done = synthesize(bare, tmp_path / "w", layout=name, pixels=False)
    assert all("--by" in command for command in done.commands)
    monkeypatch.chdir(done.path)
    words = commands_of(done.path)[-1]
    assert isolux(monkeypatch, capsys, *words[1:], "--replicates", "100").code == 0


def test_a_world_without_a_model_says_so(tmp_path):
    done = synthesize(parse_world({"name": "bare", "households": 3}), tmp_path / "w", pixels=False)
    assert done.commands == ()
    assert "nothing to audit" in (done.path / "README.txt").read_text()


def test_a_failure_leaves_nothing(tmp_path, monkeypatch):
    def broken(world, tell):
        yield next(painted(world))
        raise RuntimeError("no more paint")

    monkeypatch.setattr(synthesis, "_render_photos", broken)
    with pytest.raises(RuntimeError, match="no more paint"):
        synthesize(settings(), tmp_path / "deep" / "w")
    assert list(tmp_path.iterdir()) == []


def test_an_old_world_stays_until_the_new_one_stands(tmp_path, monkeypatch):
    out = tmp_path / "w"
    synthesize(settings(), out, pixels=False)
    before = contents(out)
    monkeypatch.setattr(synthesis, "_render_photos", lambda world, tell: iter(()))
    with pytest.raises(SpecError, match="have no picture"):
        synthesize(settings(), out, overwrite=True)
    assert contents(out) == before
    assert [p.name for p in tmp_path.iterdir()] == ["w"]
    synthesize(settings(), out, seed=5, pixels=False, overwrite=True)
    assert read_world(out / "world.yaml").seed == 5
    assert [p.name for p in tmp_path.iterdir()] == ["w"]


def test_an_old_world_comes_back_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    out = tmp_path / "w"
    synthesize(settings(), out, pixels=False)
    before = contents(out)

    def broken(one, other):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("isolux.io.atomic._swap", broken)
    with pytest.raises(OutputError, match="the disk is full"):
        synthesize(settings(), out, seed=5, pixels=False, overwrite=True)
    assert contents(out) == before
    assert [p.name for p in tmp_path.iterdir()] == ["w"]


def test_what_exists_is_refused(tmp_path):
    out = tmp_path / "w"
    synthesize(settings(), out, pixels=False)
    with pytest.raises(OutputError, match="exists already"):
        synthesize(settings(), out, pixels=False)
    (out / "runs").mkdir()
    with pytest.raises(OutputError, match=r"more than a written world[\s\S]*found: runs"):
        synthesize(settings(), out, pixels=False, overwrite=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    with pytest.raises(OutputError, match="not an isolux world"):
        synthesize(settings(), other, pixels=False, overwrite=True)
    assert (other / "letter.txt").is_file()


def test_an_empty_directory_may_be_replaced(tmp_path):
    (tmp_path / "w").mkdir()
    assert synthesize(settings(), tmp_path / "w", pixels=False, overwrite=True).path.is_dir()


def test_what_there_is_not_is_named(tmp_path):
    with pytest.raises(UnknownNameError, match="no layout named 'facets'"):
        synthesize(settings(), tmp_path / "w", layout="facets")
    with pytest.raises(UnknownNameError, match=r"no preset or file[\s\S]*did you mean 'biased'"):
        read_world_or_preset("biassed")
    with pytest.raises(FileError, match="no such file"):
        read_world_or_preset(tmp_path / "none.yaml")

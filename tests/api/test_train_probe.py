"""``isolux train probe``: from features to labels that an audit judges, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.errors import FileError, JoinError, LicenceError, SpecError, TableError
from isolux.core.notes import Caution
from isolux_worlds import draw_people, preset
from isolux_worlds.drawing import render_photos
from tests.cli._run import isolux as run


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A painted world's photos: the scene is to be learnt, from what two extractors see.

    ``grid`` sees the mean colour of 4 x 4 fields, ``brightness`` the mean of all pixels, which
    follows from the grid and so cannot tell more.
    """
    folder = tmp_path_factory.mktemp("photos")
    settings = preset("fair")
    small = settings.image.model_copy(update={"width": 96, "height": 72})
    world = draw_people(settings.model_copy(update={"households": 150, "image": small}), seed=2)
    grid = []
    for photo in render_photos(world):
        fields = photo.pixels.reshape(4, 18, 4, 24, 3).mean(axis=(1, 3)) / 255.0
        grid.append(fields.ravel())
    seen = {"grid": np.array(grid), "brightness": np.array(grid).mean(axis=1, keepdims=True)}
    table = world.photos.select(
        "scene", "household_id", id="image_id",
        part=pl.when(pl.col("household_id").str.slice(1).cast(pl.Int64) % 2 == 0)
        .then(pl.lit("train")).otherwise(pl.lit("test")),
        time="time_of_day",
    )  # fmt: skip
    for part in ("train", "test"):
        inside = (table["part"] == part).to_numpy()
        table.filter(pl.Series(inside)).write_csv(folder / f"{part}.csv")
        for name, features in seen.items():
            pl.DataFrame(
                {"instance_id": table["id"].filter(pl.Series(inside)),
                 "embedding": features[inside].tolist()}
            ).write_parquet(folder / f"{name}-{part}.parquet")  # fmt: skip
    return folder


def trained(monkeypatch, capsys, folder, name, *more):
    return run(
        monkeypatch, capsys, "train", "probe", f"table:{folder / 'train.csv'}", "--id", "id",
        "--features", folder / f"{name}-train.parquet", "--target", "scene", "--cluster",
        "household_id", "--apply", folder / f"{name}-test.parquet", "--out",
        folder / f"probe-{name}", "--overwrite", *more,
    )  # fmt: skip


def test_it_beats_chance_and_ranks_two_extractors_of_known_quality(photos, monkeypatch, capsys):
    found = {}
    for name in ("grid", "brightness"):
        ran = trained(monkeypatch, capsys, photos, name, "--seed", "1")
        assert ran.code == 0, ran.err
        audited = run(
            monkeypatch, capsys, "audit", f"table:{photos / 'test.csv'}", "--id", "id",
            "--cluster", "household_id", "--target", "scene", "--metric", "accuracy", "--by",
            "time", "--predictions", photos / f"probe-{name}" / f"labels-{name}-test.csv",
            "--out", photos / f"run-{name}", "--replicates", "200", "--overwrite",
        )  # fmt: skip
        assert audited.code == 0, audited.err
        groups = pl.read_parquet(photos / f"run-{name}" / "group_metrics.parquet")
        everyone = groups.filter(pl.col("attribute").is_null(), metric="accuracy")
        found[name] = everyone.row(0, named=True)
    chance = (
        pl.read_csv(photos / "test.csv")["scene"].value_counts()["count"].max()
        / found["grid"]["n_units"]
    )
    assert found["grid"]["low"] > chance + 0.2
    assert found["grid"]["low"] > found["brightness"]["high"]
    compared = isolux.compare(photos / "run-brightness", photos / "run-grid").disparities
    gain = compared.filter(kind="model_difference", group_a="overall").row(0, named=True)
    assert gain["low"] > 0.1
    assert gain["p_adjusted"] < 0.01


def test_the_same_command_writes_the_same_bytes(photos, monkeypatch, capsys):
    names = ("probe.json", "probe.npz", "labels-grid-test.csv")
    first = []
    for _ in range(2):
        assert trained(monkeypatch, capsys, photos, "grid", "--top", "3").code == 0
        first.append([(photos / "probe-grid" / name).read_bytes() for name in names])
    assert first[0] == first[1]
    labels = pl.read_csv(photos / "probe-grid" / "labels-grid-test.csv")
    assert labels.group_by("id").len()["len"].unique().to_list() == [3]
    falls = labels.group_by("id", maintain_order=True).agg(
        pl.col("score").diff().drop_nulls().max()
    )
    assert (falls["score"] <= 0).all()


def test_the_record_says_what_was_learnt_from_whom(photos, monkeypatch, capsys):
    ran = trained(monkeypatch, capsys, photos, "grid", "--seed", "3")
    record = json.loads((photos / "probe-grid" / "probe.json").read_text())
    assert record["recipe"]["seed"] == 3
    assert record["trained_on"] + record["held_out"] == pl.read_csv(photos / "train.csv").height
    assert record["classes"] == sorted(record["classes"])
    assert len(record["features"]["sha256"]) == 64
    assert len(record["losses"][0]) == 2
    assert "nothing here says how good the probe is" in " ".join(ran.out.split())
    with np.load(photos / "probe-grid" / "probe.npz", allow_pickle=False) as held:
        assert held["weights"].shape == (4 * 4 * 3 + 1, len(record["classes"]))


def features(folder, n=40, name="net.parquet", **columns):
    frame = {"instance_id": [f"p{k}" for k in range(n)],
             "embedding": [[float(k % 2), float(k)] for k in range(n)]} | columns  # fmt: skip
    pl.DataFrame(frame).write_parquet(folder / name)
    return folder / name


def people(folder, n=40):
    file = folder / "people.csv"
    pl.DataFrame(
        {"id": [f"p{k}" for k in range(n)], "light": ["day", "night"] * (n // 2)}
    ).write_csv(file)
    return f"table:{file}"


def test_data_for_evaluation_alone_is_refused_with_its_licence(tmp_path):
    content = {f"{k:04}": {"files": [f"CC/{k:04}/{k:04}_00.MP4"],
                           "label": {"age": "30", "gender": "Female", "skin-type": "2"}}
               for k in range(9)}  # fmt: skip
    (tmp_path / "CasualConversations.json").write_text(json.dumps(content))
    with pytest.raises(LicenceError, match="may not be used to train") as refused:
        isolux.train_probe(
            f"casual_conversations:{tmp_path}", features=features(tmp_path), target="gender",
            out=tmp_path / "probe",
        )  # fmt: skip
    assert "not for their training" in str(refused.value)
    assert not (tmp_path / "probe").exists()


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ({"model": ["a", "b"] * 20}, SpecError, "features of one model"),
        (
            {"embedding": [[1.0]] * 20 + [[1.0, 2.0]] * 20},
            TableError,
            "vectors are of unequal length",
        ),
        ({"embedding": [[1.0, float("nan")]] * 40}, TableError, "not finite"),
        (
            {"instance_id": [f"q{k}" for k in range(40)]},
            JoinError,
            "belong to nobody who is labelled",
        ),
    ],
)
def test_features_that_cannot_be_used(tmp_path, columns, error, words):
    with pytest.raises(error, match=words):
        isolux.train_probe(
            people(tmp_path), features=features(tmp_path, **columns), target="light",
            out=tmp_path / "probe",
        )  # fmt: skip


def test_what_is_no_file_of_features_is_refused(tmp_path):
    with pytest.raises(FileError, match="no such features"):
        isolux.train_probe(people(tmp_path), features=tmp_path / "gone.npy", target="light",
                           out=tmp_path / "probe")  # fmt: skip
    (tmp_path / "labels.csv").write_text("id,label\np0,day\n")
    with pytest.raises(TableError, match="these are not features"):
        isolux.train_probe(people(tmp_path), features=tmp_path / "labels.csv", target="light",
                           out=tmp_path / "probe")  # fmt: skip


def test_features_of_another_model_are_not_labelled(tmp_path):
    one = features(tmp_path, model="resnet")
    other = features(tmp_path, name="other.parquet", model="clip")
    with pytest.raises(SpecError, match="of another model"):
        isolux.train_probe(people(tmp_path), features=one, target="light", apply=[str(other)],
                           out=tmp_path / "probe")  # fmt: skip
    assert not (tmp_path / "probe").exists()


def test_features_that_say_nothing_are_cautioned_about(tmp_path):
    same = features(tmp_path, embedding=[[1.0, 2.0]] * 40)
    done = isolux.train_probe(people(tmp_path), features=same, target="light", out=tmp_path / "p")
    assert any(isinstance(n, Caution) and "say nothing of the target" in n for n in done.notes)


def test_rare_classes_and_people_without_a_label_are_said(tmp_path):
    file = tmp_path / "people.csv"
    light = ["day", "night"] * 17 + ["dusk"] * 2 + [None] * 4
    pl.DataFrame({"id": [f"p{k}" for k in range(40)], "light": light}).write_csv(file)
    done = isolux.train_probe(f"table:{file}", features=features(tmp_path), target="light",
                              out=tmp_path / "p")  # fmt: skip
    told = " ".join(done.notes)
    assert "1 of 3 classes have fewer than 10 rows to be learnt from: 'dusk'" in told
    assert "4 of 40 have no label, or several, and take no part" in told


def noisy(folder, name, keep=slice(None), *, start=0, times=1.0, model="net"):
    """Write features of 40 people that tell day from night, and differ from picture to picture."""
    rng = np.random.default_rng(start)
    vectors = times * (rng.normal(0.0, 0.3, (40, 2)) + 2.0 * (np.arange(40) % 2)[:, None])
    ids = [f"p{start + k}" for k in range(40)]
    pl.DataFrame({"model": model, "instance_id": ids, "embedding": vectors.tolist()})[
        keep
    ].write_parquet(folder / name)
    return folder / name


def cautions(done):
    return [n for n in done.notes if isinstance(n, Caution)]


def test_people_without_features_are_counted_by_class(tmp_path):
    """Of the 20 nights 8 have no features, of the 20 days none lacks them."""
    kept = [k for k in range(40) if k % 2 == 0 or k < 24]
    some = noisy(tmp_path, "net.parquet", kept)
    done = isolux.train_probe(people(tmp_path), features=some, target="light", out=tmp_path / "p")
    (told,) = cautions(done)
    assert told.startswith(
        "8 of 40 labelled people have no features and take no part: 'night' lacks 8 of 20. Is the"
    )
    whole = noisy(tmp_path, "net.parquet")
    done = isolux.train_probe(people(tmp_path), features=whole, target="light", out=tmp_path / "q")
    assert not any("no features" in note for note in done.notes)


def test_labels_of_pictures_that_were_trained_on_are_cautioned_about(tmp_path):
    """By their features: the same ids may be other pictures, and other ids the same ones."""
    own, other = noisy(tmp_path, "net.parquet"), noisy(tmp_path, "other.parquet", start=7)
    renamed = tmp_path / "renamed.parquet"
    pl.read_parquet(own).head(9).with_columns(
        instance_id=pl.format("x{}", "instance_id")
    ).write_parquet(renamed)
    again = tmp_path / "again.parquet"
    half = pl.col("embedding").cast(pl.List(pl.Float32)).list.eval(pl.element() * 1.001)
    pl.read_parquet(own).with_columns(half).write_parquet(again)
    said = {}
    for path in (own, other, renamed, again):
        done = isolux.train_probe(people(tmp_path), features=own, target="light",
                                  apply=[str(path)], out=tmp_path / path.stem)  # fmt: skip
        said[path.stem] = [n for n in cautions(done) if "It knows their labels" in n]
    assert [n.partition(" have ")[0] for n in said["net"]] == ["40 of 40 pictures of net.parquet"]
    assert said["again"][0].startswith("40 of 40 pictures of again.parquet have the features")
    assert said["other"] == []
    assert said["renamed"][0].startswith("9 of 9 pictures of renamed.parquet have the features of")


@pytest.mark.parametrize(
    ("times", "told"), [(1.0, False), (2.0, False), (50.0, True), (0.02, True)]
)
def test_features_of_another_scale_are_cautioned_about(tmp_path, times, told):
    own = noisy(tmp_path, "net.parquet")
    other = noisy(tmp_path, "other.parquet", start=40, times=times)
    done = isolux.train_probe(people(tmp_path), features=own, target="light", apply=[str(other)],
                              out=tmp_path / "p")  # fmt: skip
    assert any("scaled in another way" in note for note in cautions(done)) == told


def test_pictures_without_features_get_no_label_and_are_counted(tmp_path):
    own, other = noisy(tmp_path, "net.parquet"), noisy(tmp_path, "other.parquet", start=40)
    rows = pl.read_parquet(other)
    empty = pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise("embedding")
    rows.with_columns(embedding=empty).write_parquet(other)
    done = isolux.train_probe(people(tmp_path), features=own, target="light", apply=[str(other)],
                              out=tmp_path / "p")  # fmt: skip
    assert "3 pictures of other.parquet have no features and get no label." in done.notes
    assert pl.read_csv(done.labels[0])["id"].n_unique() == 37


def test_a_label_that_means_not_known_is_a_class_and_said_to_be_one(tmp_path):
    file = tmp_path / "people.csv"
    light = ["day", "night"] * 14 + ["Unknown"] * 12
    pl.DataFrame({"id": [f"p{k}" for k in range(40)], "light": light}).write_csv(file)
    given = noisy(tmp_path, "net.parquet")
    done = isolux.train_probe(f"table:{file}", features=given, target="light", out=tmp_path / "p")
    assert any(n.startswith("'Unknown' is learnt as a class (12 rows)") for n in cautions(done))
    done = isolux.train_probe(f"table:{file}", features=given, target="light", out=tmp_path / "q",
                              only=["light!=Unknown"])  # fmt: skip
    assert done.probe.classes == ("day", "night")


@pytest.mark.parametrize("by", ["household_id", "id"])
def test_people_who_withdrew_get_no_label(photos, tmp_path, monkeypatch, capsys, by):
    """Whether the list names their pictures, or a household that only the data know."""
    table = pl.read_csv(photos / "train.csv", infer_schema=False)
    gone = table[by].unique(maintain_order=True).head(3).to_list()
    (tmp_path / "gone.csv").write_text("\n".join([by, *gone]) + "\n")
    done = run(
        monkeypatch, capsys, "train", "probe", f"table:{photos / 'train.csv'}", "--id", "id",
        "--features", photos / "grid-train.parquet", "--target", "scene", "--cluster",
        "household_id", "--apply", photos / "grid-train.parquet", "--out", tmp_path / "probe",
        "--withdrawn", tmp_path / "gone.csv",
    )  # fmt: skip
    assert done.code == 0, done.err
    theirs = table.filter(pl.col(by).is_in(gone))["id"]
    labels = tmp_path / "probe" / "labels-grid-train.csv"
    labelled = pl.read_csv(labels, infer_schema=False)["id"]
    assert set(labelled) == set(table["id"]) - set(theirs)
    assert f"{len(theirs)} pictures of grid-train.parquet of people who withdrew" in " ".join(
        (done.out + done.err).split()
    )


def test_pictures_that_the_list_names_and_the_data_do_not(photos, tmp_path, monkeypatch, capsys):
    other = pl.read_csv(photos / "test.csv", infer_schema=False)["id"]
    (tmp_path / "gone.txt").write_text(other[0] + "\n")
    done = trained(
        monkeypatch, capsys, photos, "grid", "--withdrawn", tmp_path / "gone.txt",
        "--allow-unmatched",
    )  # fmt: skip
    assert done.code == 0, done.err
    labels = photos / "probe-grid" / "labels-grid-test.csv"
    labelled = pl.read_csv(labels, infer_schema=False)["id"]
    assert set(labelled) == set(other) - {other[0]}

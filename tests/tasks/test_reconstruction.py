"""Pictures, embeddings and values: by hand, by people, and what cannot be compared."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.core.errors import FileError, JoinError, SpecError, TableError, UnknownNameError
from isolux.core.notes import Caution
from isolux.tasks import reconstruction
from isolux.tasks.reconstruction import score
from tests.tasks._made_pictures import files, noise, people, save, values


@pytest.fixture
def folder(tmp_path):
    """Three originals in ``data/val``; of the first two a picture in ``out``, off by 51 and 0."""
    for name, grey in (("a", 100), ("b", 150), ("c", 200)):
        save(tmp_path / f"data/val/{name}.png", np.full((24, 32, 3), grey))
    save(tmp_path / "out/a.png", np.full((24, 32, 3), 151))
    save(tmp_path / "out/b.png", np.full((24, 32, 3), 150))
    return tmp_path


def pixels(folder, dataset=None, ids=("a", "b"), **options):
    options = {"metrics": ("psnr",), "originals": str(folder / "data")} | options
    return score(dataset or people(["a", "b", "c"]), files(folder / "out", ids), **options)


def test_psnr_of_pictures_by_hand(folder):
    # Off by .2 everywhere: −20 log10(.2) = 13.979 dB. Identical: the floor's 80 dB.
    found = pixels(folder)
    assert values(found, "psnr") == {
        "a": pytest.approx(13.9794, abs=1e-4), "b": pytest.approx(80.0), "c": "no prediction",
    }  # fmt: skip
    assert "Pictures were brought to 256 × 256 pixels before they were compared." in found.notes
    assert any("identical pictures have 80 dB" in note for note in found.notes)


def test_ssim_is_measured_when_named(folder):
    # Two even greys: (2 · 100 · 151 + c1) / (100² + 151² + c1), c1 = 2.55² = 6.5025.
    found = values(pixels(folder, metrics=("ssim",)), "ssim")
    assert found["a"] == pytest.approx((2 * 15100 + 6.5025) / (10000 + 22801 + 6.5025))
    assert found["b"] == pytest.approx(1.0)


def test_the_folder_of_originals_is_found_from_the_loaders_files(folder):
    table = folder / "data" / "tables" / "deep" / "people.csv"
    found = pixels(folder, people(["a", "b"], inputs=[str(table)]), originals=None)
    assert found.notes[0] == "Predictions were matched to people by the id without its suffix."
    assert f"Original pictures were read from {(folder / 'data').resolve()}." in found.notes


def test_a_missing_original_is_a_reason_and_counted(folder):
    (folder / "data/val/b.png").unlink()
    found = pixels(folder)
    assert values(found, "psnr")["b"] == "no original picture"
    assert "1 of 2 original pictures are absent." in found.notes
    nowhere = people(["a", "b"], uris=["val/a.png", None])
    assert values(pixels(folder, nowhere), "psnr")["b"] == "no original picture"


def test_no_original_at_all_says_where_it_was_looked_for(folder):
    with pytest.raises(SpecError, match=r"not found(.|\n)*'val/a\.png'(.|\n)*originals=DIR"):
        pixels(folder, people(["a", "b"]), originals=None)
    with pytest.raises(SpecError, match="none of the original pictures is there"):
        pixels(folder, originals=str(folder / "out"))
    with pytest.raises(FileError, match="no such folder of original pictures"):
        pixels(folder, originals=str(folder / "absent"))
    with pytest.raises(SpecError, match=r"nothing says where(.|\n)*found: none"):
        pixels(folder, replace(people(["a"]), images=people(["a"]).images.clear()))
    address = people(["a", "b"], uris=["https://x.org/a.png", "https://x.org/b.png"])
    with pytest.raises(SpecError, match="web addresses, which are not opened"):
        pixels(folder, address)
    with pytest.raises(FileError, match="leads out of its folder"):
        pixels(folder, people(["a", "b"], uris=["../out/a.png", "val/b.png"]))


def test_a_damaged_picture_is_named(folder):
    (folder / "out/b.png").write_bytes((folder / "out/b.png").read_bytes()[:60])
    with pytest.raises(FileError, match=r"damaged(.|\n)*out/b\.png"):
        pixels(folder)
    (folder / "out/b.png").unlink()
    with pytest.raises(FileError, match=r"no such file(.|\n)*out/b\.png"):
        pixels(folder)


def test_an_archive_is_read_without_unpacking(folder):
    path = folder / "net.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name in ("b", "a"):
            tar.add(folder / f"out/{name}.png", f"./deep/{name}.png")
    from isolux.predictions import image_files

    found = score(
        people(["a", "b", "c"]), image_files.read(path), metrics="psnr",
        originals=str(folder / "data"),
    )  # fmt: skip
    assert values(found, "psnr") == values(pixels(folder), "psnr")
    assert found.units["model"].unique().to_list() == ["net"]


def test_pictures_are_of_one_shape(folder):
    save(folder / "out/a.png", noise(1, 32, 24))
    save(folder / "out/b.png", noise(1, 48, 64))
    found = values(pixels(folder), "psnr")
    assert found["a"] == "picture of another shape than the original"
    assert isinstance(found["b"], float)
    assert values(pixels(folder, size_px=0), "psnr")["b"] == (
        "picture of another size than the original"
    )


def test_size_moves_the_number_as_a_resize_by_hand_does(folder):
    first, second = noise(1), noise(2)
    save(folder / "data/val/a.png", first)
    save(folder / "out/a.png", second)
    for size in (0, 8, 64):
        pair = [
            np.asarray(Image.fromarray(p).resize((size, size), Image.Resampling.BILINEAR) if size
                       else Image.fromarray(p), dtype=float) / 255
            for p in (first, second)
        ]  # fmt: skip
        expected = -10 * np.log10(((pair[0] - pair[1]) ** 2).mean() + 1e-8)
        found = values(pixels(folder, size_px=size), "psnr")["a"]
        assert found == pytest.approx(expected, abs=1e-9)


def test_orientation_is_followed(folder):
    exif = Image.Exif()
    exif[0x0112] = 6
    upright = noise(3)
    save(folder / "data/val/a.png", upright)
    lying = Image.fromarray(np.rot90(upright, 1).copy())
    lying.save(folder / "out/a.png", exif=exif)
    assert values(pixels(folder), "psnr")["a"] == pytest.approx(80.0)


FACES = {
    "face_box_x": [4.0, 20.0, None],
    "face_box_y": [2.0, 4.5, None],
    "face_box_w": [8.0, 6.2, None],
    "face_box_h": [10.0, 7.0, None],
}


def two_in_a_picture(folder, **more):
    """Two faces in one picture and somebody without one; only the first face is changed."""
    original = noise(4)
    changed = original.copy()
    changed[2:12, 4:12] = 255 - changed[2:12, 4:12]
    save(folder / "data/val/g.png", original)
    save(folder / "out/g.png", changed)
    return people(["x", "y", "z"], images=["val/g.png"] * 3, **FACES, **more), original, changed


def test_everybody_in_a_picture_is_given_it_and_crops_tell_them_apart(folder):
    three, original, changed = two_in_a_picture(folder)
    whole = values(pixels(folder, three, ["g"], size_px=0), "psnr")
    assert len(set(whole.values())) == 1
    cropped = values(pixels(folder, three, ["g"], size_px=0, crop="face"), "psnr")
    apart = (original[2:12, 4:12].astype(float) - changed[2:12, 4:12]) / 255
    assert cropped == {
        "x": pytest.approx(-10 * np.log10((apart**2).mean() + 1e-8)),
        "y": pytest.approx(80.0),
        "z": "no face box",
    }


def test_the_crop_of_a_larger_output_is_at_the_same_place(folder):
    three, _, changed = two_in_a_picture(folder)
    save(folder / "out/g.png", changed.repeat(2, axis=0).repeat(2, axis=1))
    cropped = values(pixels(folder, three, ["g"], crop="face", size_px=8), "psnr")
    # y's box ends at 26.2, so its crop of 7 columns is 13 of the doubled picture's, not 14.
    assert cropped["x"] < 15 < cropped["y"]


def test_boxes_that_are_not_there(folder):
    outside = people(["a"], face_box_x=[90.0], face_box_y=[0.0], face_box_w=[5.0], face_box_h=[5.0])
    assert values(pixels(folder, outside, crop="face"), "psnr")["a"] == "box outside the picture"
    with pytest.raises(SpecError, match=r"cropped to a box(.|\n)*box_x, box_y, box_w, box_h"):
        pixels(folder, crop="box")


def test_small_pictures_have_no_ssim(folder):
    save(folder / "data/val/a.png", noise(1, 10, 40))
    save(folder / "out/a.png", noise(2, 10, 40))
    found = pixels(folder, size_px=0, metrics=("ssim", "psnr"))
    assert values(found, "ssim")["a"] == "picture under 11 pixels"
    assert isinstance(values(found, "psnr")["a"], float)


def test_models_are_compared_apart_and_many_pictures_come_in_chunks(folder):
    ids = [f"n{i}" for i in range(70)]
    for i, name in enumerate(ids):
        save(folder / f"data/val/{name}.png", np.full((4, 4, 3), 100))
        save(folder / f"out/{name}.png", np.full((4, 4, 3), 101 + i))
    tables = [files(folder / "out", ids, "one"), files(folder / "out", ids[:1], "two")]
    found = score(people(ids), pl.concat(tables), metrics="psnr", originals=str(folder / "data"))
    one = found.units.filter(model="one")["value"].to_numpy()
    steps = (np.arange(70) + 1) / 255
    np.testing.assert_allclose(one, -10 * np.log10(steps**2 + 1e-8), atol=1e-9)
    two = found.units.filter(model="two")
    assert two["value"].null_count() == 69
    assert two["value"][0] == one[0]


def vectors(folder, name, rows, ids="abc"):
    path = folder / f"{name}.parquet"
    table = pl.DataFrame({"instance_id": list(ids)[: len(rows)], "embedding": rows})
    table.with_columns(pl.col("embedding").cast(pl.List(pl.Float32))).write_parquet(path)
    return path


def test_identity_is_the_cosine_of_two_embeddings(tmp_path):
    # (3, 4) and (4, 3): 24 / 25. (1, 0) and (0, 2): 0. (1, 1) and (−2, −2): −1.
    original = vectors(tmp_path, "original", [[3, 4], [1, 0], [1, 1]])
    from isolux.predictions import read_outputs

    made = read_outputs(vectors(tmp_path, "made", [[4, 3], [0, 2], [-2, -2]]))
    found = score(people(["a", "b", "c"]), made, original_embeddings=str(original))
    assert values(found, "identity_cosine") == {
        "a": pytest.approx(0.96), "b": pytest.approx(0.0), "c": pytest.approx(-1.0),
    }  # fmt: skip
    assert found.units["model"].unique().to_list() == ["made"]
    assert [m.name for m in found.info.metrics] == ["identity_cosine"]
    digest = hashlib.sha256(original.read_bytes()).hexdigest()[:16]
    assert found.notes[-1] == f"Embeddings of the originals: original.parquet (SHA-256 {digest}…)."


def test_embeddings_that_are_missing_say_whose(tmp_path):
    from isolux.predictions import read_outputs

    original = vectors(tmp_path, "original", [[3, 4], [0, 0]])
    made = read_outputs(vectors(tmp_path, "made", [[4, 3], [1, 1]]))
    four = people(["a", "b", "c", "d"])
    found = values(score(four, made, original_embeddings=str(original)), "identity_cosine")
    assert found["b"] == "original: embedding of length zero"
    assert found["c"] == "no prediction"
    with pytest.raises(SpecError, match="--option original_embeddings=FILE"):
        score(four, made)
    wider = vectors(tmp_path, "wider", [[3, 4, 5]])
    with pytest.raises(SpecError, match=r"differ in length(.|\n)*3 numbers(.|\n)*2 numbers"):
        score(four, made, original_embeddings=str(wider))
    with pytest.raises(SpecError, match="cannot be measured from embeddings"):
        score(four, made, metrics="psnr", original_embeddings=str(original))
    table = tmp_path / "boxes.csv"
    table.write_text("image_id,box_x,box_y,box_w,box_h,score\n7,4,5,20,30,0.9\n")
    with pytest.raises(SpecError, match="these are not embeddings"):
        score(four, made, original_embeddings=str(table))


def given(rows, metric="lpips", model="m"):
    return pl.DataFrame(
        {"model": model, "instance_id": list(rows), "metric": metric, "value": list(rows.values())},
        schema_overrides={"value": pl.Float64},
    )


def test_values_from_elsewhere_are_matched_checked_and_kept():
    three = people(["a", "b", "c"])
    found = score(three, given({"faces/a.jpg": 0.25, "faces/b.jpg": None}))
    assert values(found, "lpips") == {
        "a": 0.25, "b": "no value was given", "c": "no prediction",
    }  # fmt: skip
    assert [m.name for m in found.info.metrics] == ["lpips"]
    both = pl.concat([given({"a": 0.25}), given({"a": 0.5}, "identity_cosine")])
    assert score(three, both).units["metric"].unique(maintain_order=True).to_list() == [
        "lpips", "identity_cosine",
    ]  # fmt: skip
    only = score(three, both, metrics="lpips")
    assert "Values of other metrics were left out: identity_cosine." in only.notes


def test_an_infinite_distance_is_refused():
    infinite = given({"a": np.inf, "b": 0.2}, "lpips")
    with pytest.raises(TableError, match=r"(?s)lpips.*finite.*found: inf for 'a'"):
        score(people(["a", "b"]), infinite)


def test_infinite_psnr_is_what_the_floor_makes_it():
    infinite = given({"a": np.inf, "b": 20.0}, "psnr")
    found = score(people(["a", "b"]), infinite)
    assert values(found, "psnr") == {"a": pytest.approx(80.0), "b": 20.0}
    (caution,) = (note for note in found.notes if isinstance(note, Caution))
    assert caution.startswith("1 of 2 values of PSNR are infinite, and count as 80 dB")


@pytest.mark.parametrize(
    ("metric", "value", "told"),
    [
        ("lpips", -0.1, r"0 or more(.|\n)*-0\.1 for 'a'"),
        ("identity_cosine", 1.2, "-1 to 1"),
        ("ssim", -3.0, "-1 to 1"),
    ],
)
def test_values_that_cannot_be(metric, value, told):
    with pytest.raises(TableError, match=told):
        score(people(["a"]), given({"a": value}, metric))


def test_a_cosine_rounded_beyond_one_is_one():
    assert values(score(people(["a"]), given({"a": 1.00001}, "identity_cosine")),
                  "identity_cosine") == {"a": 1.0}  # fmt: skip


REFUSED = [
    ({"size_px": -1}, SpecError, "size_px cannot be that"),
    ({"metrics": "fid"}, UnknownNameError, "no metric named 'fid'"),
    ({"metrics": "identity_cosine"}, SpecError, "cannot be measured from pictures"),
]


@pytest.mark.parametrize(("options", "error", "told"), REFUSED)
def test_settings_that_cannot_be_used(folder, options, error, told):
    with pytest.raises(error, match=told):
        pixels(folder, **options)


def test_predictions_that_are_none():
    with pytest.raises(UnknownNameError, match="no column named 'uri'"):
        score(people(["a"]), pl.DataFrame({"model": ["m"], "label": ["x"]}))
    with pytest.raises(UnknownNameError, match="no metric named 'fid'"):
        score(people(["a"]), given({"a": 1.0}, "fid"))
    with pytest.raises(UnknownNameError, match=r"no metric named 'psnr'(.|\n)*one of lpips"):
        score(people(["a"]), given({"a": 1.0}), metrics="psnr")
    with pytest.raises(JoinError, match=r"no prediction is of a person(.|\n)*'a', 'val/a\.png'"):
        score(people(["a"]), given({"q": 1.0}))


def test_names_that_become_one_without_their_folders_match_nobody():
    with pytest.raises(JoinError, match="parts of two images' names must not meet"):
        score(people(["x", "y"], images=["1/a.png", "2/a.png"]), given({"out/a.png": 0.1}))
    found = score(people(["x", "y"], images=["1/a.png", "2/a.png"]), given({"1/a.jpg": 0.1}))
    assert values(found, "lpips") == {"x": 0.1, "y": "no prediction"}


def test_names_may_be_those_of_the_images_files():
    faces = people(["x"], images=["7_8"], uris=["data/raw/faces_crop_and_align_7_8.png"])
    found = score(faces, given({"out/faces_crop_and_align_7_8.png": 0.1}))
    assert values(found, "lpips") == {"x": 0.1}
    assert found.notes[0] == (
        "Predictions were matched to images' files by the id without folders and suffix."
    )


def test_who_is_not_scored_is_counted_with_the_reason():
    both = pl.concat([given({"a": 0.1, "b": None}), given({"a": 0.1, "b": 0.2}, "ssim")])
    found = score(people(["a", "b", "c"]), both)
    assert found.notes == (
        "1 of 3 people have no lpips of 'm': no value was given.",
        "1 of 3 people have no lpips or ssim of 'm': no prediction.",
    )


def test_strangers_are_counted():
    found = score(people(["a"]), given({"a": 0.1, "q": 0.2}))
    assert "1 of 2 predictions have ids outside the dataset and were left out." in found.notes


def test_tar_members_are_in_memory_one_at_a_time(folder):
    """A member that grows to a bomb is refused by the archive's reader."""
    path = folder / "bomb.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("a.png")
        member.size = 100 << 20
        tar.addfile(member, io.BytesIO(bytes(member.size)))
    table = pl.DataFrame({"model": ["m"], "instance_id": ["a"], "uri": [f"{path}::a.png"]})
    with pytest.raises(FileError, match="like a decompression bomb"):
        score(people(["a"]), table, metrics="psnr", originals=str(folder / "data"))


class FakeNetwork:
    """The mean difference of bytes, in the place of LPIPS; one shape at a time."""

    note = "A network in the place of LPIPS."

    def __call__(self, first, second):
        assert first.shape == second.shape
        assert first.dtype == second.dtype == np.uint8
        return np.abs(first.astype(float) - second).mean(axis=(1, 2, 3)) / 255


@pytest.fixture
def loaded(monkeypatch):
    """What the task asked for when it loaded LPIPS."""
    asked = []

    def load(spec, *, device):
        asked.append((spec, device))
        return FakeNetwork()

    monkeypatch.setattr("isolux.models.lpips.load", load)
    return asked


def test_pictures_are_judged_by_lpips_unless_told_otherwise(folder, loaded):
    found = pixels(folder, metrics=(), lpips_weights="w.pth", device="cuda")
    assert values(found, "lpips") == {
        "a": pytest.approx(0.2), "b": 0.0, "c": "no prediction",
    }  # fmt: skip
    assert [m.name for m in found.info.metrics] == ["lpips", "psnr"]
    assert loaded == [("w.pth", "cuda")]
    assert "A network in the place of LPIPS." in found.notes


@pytest.mark.usefixtures("loaded")
def test_pictures_of_several_sizes_go_to_the_network_by_size(folder):
    ids = [f"n{i}" for i in range(9)]
    for i, name in enumerate(ids):
        size = (15 + i % 3, 20)
        save(folder / f"data/val/{name}.png", np.full((*size, 3), 100))
        save(folder / f"out/{name}.png", np.full((*size, 3), 100 + i))
    found = values(pixels(folder, people(ids), ids, metrics="lpips", size_px=0), "lpips")
    assert found == {
        name: pytest.approx(i / 255) if i % 3 else "picture under 16 pixels"
        for i, name in enumerate(ids)
    }


def test_directions_are_declared():
    assert {m.name: m.direction for m in reconstruction.INFO.metrics} == {
        "lpips": "lower", "psnr": "higher", "ssim": "higher", "identity_cosine": "higher",
    }  # fmt: skip

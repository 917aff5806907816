"""Face parsing on CelebAMask-HQ's own pictures, one for each part, from files to a report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import FileError, UnknownNameError
from isolux.datasets.celebamask_hq import load
from isolux.io import run_directory
from isolux.predictions import part_masks
from isolux.tasks.face_parsing import score
from tests.cli._run import isolux
from tests.tasks._faces import dataset, drawn, labels, run_lengths, write
from tests.tasks._pictures import values

SIDE = 8
N = 6
MASKS = "CelebAMask-HQ-mask-anno"


def parts_of(i: int) -> dict[str, np.ndarray]:
    """Skin in the lower half, hair in the upper; every other face wears a hat over its hair."""
    whole = np.zeros((SIDE, SIDE), np.uint8)
    skin, hair, hat = whole.copy(), whole.copy(), whole.copy()
    skin[SIDE // 2 :], hair[: SIDE // 2], hat[0] = 255, 255, 255
    return {"skin": skin, "hair": hair} | ({"hat": hat} if i % 2 else {})


def drawn_of(i: int) -> dict[str, np.ndarray]:
    """What the model draws: skin as it is; no hats; half of the hair of those who wear one."""
    found = parts_of(i)
    if found.pop("hat", None) is not None:
        found["hair"][: SIDE // 4] = 0
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "hq"
    root.mkdir()
    rows = "".join(f"{i}.jpg  {1 if i % 2 else -1}\n" for i in range(N))
    (root / "CelebAMask-HQ-attribute-anno.txt").write_text(f"{N}\nWearing_Hat\n{rows}")
    for i in range(N):
        for part, pixels in parts_of(i).items():
            write(root / MASKS / "0" / f"{i:05}_{part}.png", pixels, mode="RGB")  # as published
        for part, pixels in drawn_of(i).items():
            write(tmp_path / "net" / f"{i:05}_{part}.png", pixels)
    return tmp_path


def test_each_face_by_hand(folder):
    faces = load(folder / "hq")
    found = score(faces, part_masks.read(folder / "net"), metrics=["mean_f1", "f1_by_part"])
    # Hair half drawn: 2 · 16 / (32 + 16); the hat not at all; skin wholly.
    assert labels(found) == pytest.approx(
        {(f"{i:05}", part): f1
         for i in range(N)
         for part, f1 in ({"skin": 1, "hair": 2 / 3, "hat": 0} if i % 2
                          else {"skin": 1, "hair": 1}).items()}
    )  # fmt: skip
    assert values(found, "mean_f1") == pytest.approx(
        {f"{i:05}": 5 / 9 if i % 2 else 1.0 for i in range(N)}
    )
    assert any("Parts never drawn: hat." in note for note in found.notes)


def test_pictures_of_parts_and_run_lengths_are_judged_alike(folder, tmp_path):
    rng = np.random.default_rng(4)
    faces = {f"{i:05}": rng.integers(0, 19, (5, 7)) for i in range(4)}
    from isolux.tasks.face_parsing.part_names import LABELS

    cells = [
        [
            {"part": LABELS[k], "uri": write(tmp_path / "t" / f"{name}_{k}.png", pixels == k)}
            for k in np.unique(pixels)
            if k
        ]
        for name, pixels in faces.items()
    ]
    guesses = {n: {"combined": np.where(rng.random((5, 7)) < 0.6, p, 3)} for n, p in faces.items()}
    model = drawn(tmp_path, guesses)
    files = dataset(faces, {"part_mask_files": cells})
    runs = dataset(faces, {"part_masks": [run_lengths(p) for p in faces.values()]})
    both = [
        score(people, model, metrics=["mean_f1", "f1_by_part"], root=str(tmp_path / "t"))
        for people in (files, runs)
    ]
    for metric in ("mean_f1", "f1_by_part"):
        first, second = (labels(s, metric) for s in both)
        assert first == pytest.approx(second)


def test_a_part_that_nobody_here_has_is_a_part_all_the_same(folder, tmp_path):
    write(folder / "net" / "00000_cloth.png", np.ones((SIDE, SIDE)))
    found = score(load(folder / "hq"), part_masks.read(folder / "net"), metrics=["f1_by_part"])
    assert labels(found)["00000", "cloth"] == 0
    with pytest.raises(UnknownNameError, match="there is no part named 'beard'"):
        score(load(folder / "hq"), part_masks.read(folder / "net"), parts=["beard"])


def test_label_pictures_count_first_where_both_are_there(folder):
    for i in range(N):
        write(folder / "hq" / "labels" / f"{i}.png", np.ones((SIDE, SIDE)))  # skin everywhere
    faces = load(folder / "hq", labels="labels")
    drawings = part_masks.read(folder / "net")
    assert labels(score(faces, drawings, metrics=["f1_by_part"]))["00000", "skin"] < 1
    files = score(faces, drawings, metrics=["f1_by_part"], truth="files")
    assert labels(files)["00000", "skin"] == 1


def test_pictures_that_cannot_be_compared(folder):
    faces, drawings = load(folder / "hq"), part_masks.read(folder / "net")
    file = folder / "hq" / MASKS / "0" / "00001_hair.png"
    write(file, np.ones((SIDE, SIDE + 1)))
    with pytest.raises(FileError, match=r"(?s)another size.*8 × 8.*8 × 9.*00001_hair.png.*00001"):
        score(faces, drawings)
    file.write_bytes(b"\x89PNG")
    with pytest.raises(FileError, match=r"(?s)not a picture, or it is cut off.*00001_hair.png"):
        score(faces, drawings)
    file.unlink()
    with pytest.raises(FileError, match=r"00001_hair\.png"):
        score(faces, drawings)
    with pytest.raises(FileError, match=r"leads out of its folder"):
        score(dataset(["a"], {"part_mask_files": [[{"part": "hair", "uri": "../x.png"}]]}),
              drawn(folder, {"a": {"hair": np.ones((2, 2))}}), root=str(folder / "hq"))  # fmt: skip


def test_an_audit_from_the_published_files(monkeypatch, capsys, folder):
    out = folder / "run"
    ran = isolux(
        monkeypatch, capsys, "audit", f"celebamask_hq:{folder / 'hq'}", "--task", "face_parsing",
        "--predictions", folder / "net", "--by", "Wearing_Hat", "--min-units", 1,
        "--min-clusters", 1, "--out", out,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    groups = run_directory.load_run(out).group_metrics.filter(attribute="Wearing_Hat")
    found = dict(groups.select("group", "value").iter_rows())
    assert found == pytest.approx({"yes": 5 / 9, "no": 1.0})
    assert groups.filter(pl.col("group") == "yes")["n_units"].item() == N // 2

"""``isolux describe`` and ``isolux sample`` as somebody types them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests._shared import shared_data
from tests.cli._run import isolux

PEOPLE = "id,race,gender,age\n" + "".join(
    f"{i},{'AB'[i % 2]},{'FM'[i // 2 % 2]},{20 + i}\n" for i in range(40)
)


@pytest.fixture
def people(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text(PEOPLE)
    return file


def test_describe_prints_and_writes_a_page(monkeypatch, capsys, people, tmp_path):
    out = tmp_path / "page.html"
    ran = isolux(
        monkeypatch, capsys, "describe", f"table:{people}", "--by", "race*gender", "--by", "age",
        "--bins", "age=edges:40", "--out", out,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "By race × gender" in ran.out
    assert "race  people  F   M" in ran.out
    assert f"page: {out}" in ran.out
    assert "40 people in 40 images." in out.read_text()


def test_a_narrow_screen_gets_blocks_that_repeat_the_first_column(monkeypatch, capsys, tmp_path):
    file = tmp_path / "people.csv"
    jobs = [f"occupation number {k}" for k in range(12)]
    file.write_text("id,race,job\n" + "".join(f"{i},A,{jobs[i % 12]}\n" for i in range(24)))
    ran = isolux(monkeypatch, capsys, "describe", f"table:{file}", "--by", "race*job")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    heads = [line for line in lines if line.startswith("race ") and "occupation" in line]
    assert len(heads) > 1
    for job in jobs:
        assert sum(line.count(job + " ") for line in [head + " " for head in heads]) == 1
    assert max(map(len, lines)) <= 200


def test_two_datasets_side_by_side(monkeypatch, capsys, people, tmp_path):
    other = tmp_path / "others.csv"
    other.write_text("id,race\n1,A\n2,A\n")
    ran = isolux(
        monkeypatch, capsys, "describe", f"table:{people}", f"table:{other}", "--by", "race"
    )
    assert ran.code == 0, ran.err
    assert "Side by side: race, 95 % intervals" in ran.out
    assert "others.csv" in ran.out


@pytest.fixture
def vectors(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "net.npy", rng.normal(size=(40, 8)))
    (tmp_path / "net.ids.txt").write_text("".join(f"{i}\n" for i in range(40)))
    return tmp_path / "net.npy"


def test_embeddings_add_diversity(monkeypatch, capsys, people, vectors, tmp_path):
    out = tmp_path / "page.html"
    ran = isolux(
        monkeypatch, capsys, "describe", f"table:{people}", "--by", "race", "--embeddings", vectors,
        "--seed", "1", "--out", out,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    for caption in ("Diversity: Vendi score", "Distances between pairs: L1", "Map of embeddings"):
        assert caption in ran.out
    assert "embeddings by race. Near means alike" in out.read_text()


def test_captions_add_an_approximate_geography(monkeypatch, capsys, people, tmp_path):
    captions = tmp_path / "captions.csv"
    captions.write_text("id,caption\n0,a bus in London\n1,Lagos market\n2,a street\n")
    ran = isolux(
        monkeypatch, capsys, "describe", f"table:{people}", "--captions", captions, "--by",
        "race*caption_region",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "By caption_country" in ran.out
    lines = [line.split() for line in ran.out.splitlines()]
    # 38 of 40 people have no place: that share is printed with the others
    assert ["unknown", "38", "95.0", "38", "95.0"] in lines
    assert ["Nigeria", "1", "2.5", "1", "2.5"] in lines


def test_attributes_of_other_names_are_brought_side_by_side(monkeypatch, capsys, people, tmp_path):
    other = tmp_path / "others.csv"
    other.write_text("id,perceived_race\n1,a\n2,B\n")
    both = ("describe", f"table:{people}", f"table:{other}")
    ran = isolux(monkeypatch, capsys, *both)
    assert "not compared, because only one dataset has them: race, gender" in ran.out
    ran = isolux(
        monkeypatch, capsys, *both, "--rename", "perceived_race=race", "--group", "race:A=A,a"
    )
    assert ran.code == 0, ran.err
    assert "Side by side: race, 95 % intervals" in ran.out
    lines = [line.split()[:4] for line in ran.out.splitlines()]
    assert ["A", "others.csv", "1", "50.0"] in lines


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--embeddings", "a.npy", "--embeddings", "b.npy"), "does not name a file for each"),
        (("--embeddings", "absent.npy"), "there is no such file"),
        (("--captions", "absent.csv"), "absent.csv"),
        (("--rename", "race"), "--rename cannot be read"),
        (("--rename", "rase=race"), "there is no attribute named 'rase'"),
        (("--rename", "race=gender"), "would make two attributes one"),
        (("--derive", "caption_region"), "--captions FILE"),
    ],
)
def test_describe_refuses_what_it_cannot_add(monkeypatch, capsys, people, more, said):
    ran = isolux(monkeypatch, capsys, "describe", f"table:{people}", *more)
    assert ran.code == 2
    assert said in ran.plain
    assert "Traceback" not in ran.err


def test_ages_that_are_ranges_compare_in_an_audit_too(monkeypatch, capsys, tmp_path):
    file = tmp_path / "people.csv"
    ages = ["10-19", "20-29", "more than 70"]
    file.write_text(
        "id,race,age,gender,said\n"
        + "".join(f"{i},{'AB'[i % 2]},{ages[i % 3]},F,F\n" for i in range(60))
    )
    ran = isolux(
        monkeypatch, capsys, "audit", f"table:{file}", "--target", "gender", "--by", "race",
        "--prediction-column", "said", "--only", "age>=20", "--out", tmp_path / "run", "--notes",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "20 of 60 people" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--by", "rase"), "there is no attribute named 'rase'"),
        (("--target", "absent.csv"), "absent.csv"),
        (("--only", "age"), "--only is not a condition"),
        (("--bins", "age=thirds"), "the bins cannot be used"),
        (("--votes", "most"), "most"),
    ],
)
def test_describe_refuses_in_plain_words(monkeypatch, capsys, people, more, said):
    ran = isolux(monkeypatch, capsys, "describe", f"table:{people}", *more)
    assert ran.code == 2
    assert said in ran.plain
    assert "Traceback" not in ran.err


def test_describe_refuses_a_dataset_twice(monkeypatch, capsys, people):
    ran = isolux(monkeypatch, capsys, "describe", f"table:{people}", f"table:{people}")
    assert ran.code == 2
    assert "a dataset is named twice" in ran.err


def test_sample_writes_ids_and_names_short_cells(monkeypatch, capsys, people, tmp_path):
    out = tmp_path / "ids.csv"
    args = ("sample", f"table:{people}", "--balance", "race,gender", "--per-cell", "6")
    args += ("--only", "age>=24", "--only", "race=A,B", "--out", out)
    ran = isolux(monkeypatch, capsys, *args)
    assert ran.code == 0, ran.err
    assert "24 people of 4 cells" in ran.out
    drawn = pl.read_csv(out)
    assert drawn.columns == ["instance_id", "image_id", "race", "gender"]
    assert drawn.group_by("race", "gender").len()["len"].to_list() == [6] * 4
    first = out.read_bytes()
    again = isolux(monkeypatch, capsys, *args)
    assert again.code == 2
    assert "this file exists already" in again.err
    assert isolux(monkeypatch, capsys, *args, "--overwrite", "--seed", "0").code == 0
    assert out.read_bytes() == first


def test_sample_names_the_cells_that_are_short(monkeypatch, capsys, people, tmp_path):
    out = tmp_path / "ids.csv"
    ran = isolux(
        monkeypatch, capsys, "sample", f"table:{people}", "--balance", "race", "--balance",
        "gender", "--per-cell", "11", "--out", out,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "Short of 11 people" in ran.out
    assert "40 people of 4 cells, 4 of them short" in ran.out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--balance", "rase", "--per-cell", "1"), "there is no attribute named 'rase'"),
        (("--balance", "race", "--per-cell", "0"), "--per-cell is too small"),
        (("--balance", ",", "--per-cell", "1"), "does not name what to balance"),
        (("--balance", "race", "--per-cell", "1", "--only", "age>=200"), "nobody passes --only"),
    ],
)
def test_sample_refuses_in_plain_words(monkeypatch, capsys, people, tmp_path, more, said):
    out = tmp_path / "ids.csv"
    ran = isolux(monkeypatch, capsys, "sample", f"table:{people}", *more, "--out", out)
    assert ran.code == 2
    assert said in ran.plain
    assert not out.exists()


def test_sample_never_writes_over_what_it_reads(monkeypatch, capsys, people):
    ran = isolux(
        monkeypatch, capsys, "sample", f"table:{people}", "--balance", "race", "--per-cell", "1",
        "--out", people, "--overwrite",
    )  # fmt: skip
    assert ran.code == 2
    assert "this is the file that is to be read" in ran.err
    assert people.read_text() == PEOPLE


def test_sample_draws_from_fairfaces_real_labels(monkeypatch, capsys, tmp_path):
    file = shared_data("fairface_val/fairface_label_val.csv")
    out = tmp_path / "ids.csv"
    ran = isolux(
        monkeypatch, capsys, "sample", f"fairface:{file}", "--balance", "race,gender,age",
        "--per-cell", "89", "--only", "age>=20", "--out", out,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "of 84 cells" in ran.out
    assert pl.read_csv(out).group_by("race", "gender", "age").len()["len"].max() == 89

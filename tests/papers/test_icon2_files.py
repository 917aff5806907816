"""ICON²'s protocol from files to tables, through the command line, on a made-up BDD100K."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.io import run_directory
from isolux.papers.icon2 import tables
from tests.cli._run import isolux
from tests.papers._bdd_files import bdd_folder

FORMS = {
    "scalabel": ("--predictions", "found.json"),
    "coco": ("--predictions", "results.json", "--prediction-option", "categories=categories.json"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return bdd_folder(tmp_path_factory.mktemp("bdd"))


@pytest.mark.parametrize("form", list(FORMS))
def test_the_injected_hour_ranks_first(form, folder, monkeypatch, capsys):
    """Income goes with the hour and the hour with recall: the paper's Table 2 from files."""
    monkeypatch.chdir(folder)
    ran = isolux(
        monkeypatch, capsys, "audit", "bdd100k:det_val.json", "--protocol", "icon2:detection",
        *FORMS[form], "--bins", "income=edges:45000,90000", "--replicates", 100, "--out", form,
        *(f"--data-option={name}" for name in
          ("info=info", "districts=districts.json", "incomes=incomes.csv")),
    )  # fmt: skip
    assert ran.code == 0, ran.err
    run = run_directory.load_run(form)
    found = tables("detection", run)
    table = next(t for caption, t in found.items() if caption.startswith("Tables 2 and 3"))
    whole = table.filter(pl.col("class").is_null())
    assert whole.height == 5
    first = whole.filter(rank=1).row(0, named=True)
    assert first["explanatory"] == "timeofday"
    # By their hours alone the three groups lie about 9 points apart from each other.
    assert 3 < first["σ(ProxyAP)"] < 15
    assert first["Δ"] > 1
    others = whole.filter(pl.col("rank") > 1)["σ(ProxyAP)"]
    assert others.max() < 0.4 * first["σ(ProxyAP)"]
    for category in ("car", "pedestrian"):
        own = table.filter(pl.col("class") == category, pl.col("rank") == 1)
        assert own["explanatory"].to_list() == ["timeofday"]
    claims = run.findings.filter(analysis="confounders")["claim"]
    assert (
        claims.str.contains(
            "the differences are associated with time of day, whose role is not known"
        ).sum()
        == 3
    )
    # All classes together come before each of them.
    labels = run.findings.filter(analysis="confounders")["label"].to_list()
    assert labels[:3] == [None, "car", "pedestrian"]
    # The command prints the paper's tables; in Tables 2 and 3 the injected attribute comes first.
    printed = ran.out[ran.out.index("Tables 2 and 3") : ran.out.index("Figures 2 and 3")]
    of_all = [line.split() for line in printed.splitlines() if line.startswith("–")]
    assert of_all[0][2:4] == ["1", "timeofday"]
    assert [row[2] for row in of_all] == ["1", "2", "3", "4", "5"]
    assert ran.out.index("Table 1:") < ran.out.index("Tables 2 and 3") < ran.out.index("Figure 6")

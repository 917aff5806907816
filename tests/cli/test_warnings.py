"""A warning stands before any number: on the screen, in the report and in the record."""

from __future__ import annotations

import json

import numpy as np
import polars as pl

from tests.cli._run import isolux as run


def test_a_warning_is_the_first_line_and_in_the_reports_header(monkeypatch, capsys, tmp_path):
    draw = np.random.default_rng(0)
    truth = draw.choice(["x", "y"], 200)
    pl.DataFrame(
        {
            "id": range(200),
            "tone": ["a", "b"] * 100,
            "truth": truth,
            "said": draw.permutation(truth),
        }
    ).write_csv(tmp_path / "people.csv")
    given = ("audit", f"table:{tmp_path / 'people.csv'}", "--target", "truth", "--by", "tone",
             "--prediction-column", "said", "--replicates", 100,
             "--out", tmp_path / "run")  # fmt: skip
    done = run(monkeypatch, capsys, *given)
    assert done.code == 0, done.err
    assert done.out.startswith("WARNING: The answers of 'said' agree with the truth no better")
    record = json.loads((tmp_path / "run" / "audit.json").read_text(encoding="utf-8"))
    assert record["warnings"][0].startswith("The answers of 'said'")
    assert not any(note in record["notes"] for note in record["warnings"])
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    header = page[page.index("<header>") : page.index("</header>")]
    assert header.index("agree with the truth no better") < header.index('class="answer"')

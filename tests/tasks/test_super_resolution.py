"""Lower LPIPS is better, in every room: tables, findings, report, and on the command line."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.tables import ATTRIBUTES
from isolux.tasks import reconstruction, super_resolution
from tests.cli._run import isolux as run
from tests.tasks._made_pictures import files, people, save, values

N = 120
IDS = [f"p{i:03}" for i in range(N)]
TONE = ["light", "dark"] * (N // 2)
SPREAD = np.random.default_rng(0).normal(0, 0.02, N)
# LPIPS of "dark" is higher by .1, PSNR lower by 3 dB: "dark" is served worse by both.
LPIPS = [0.2 + 0.1 * (t == "dark") + s for t, s in zip(TONE, SPREAD, strict=True)]
PSNR = [25.0 - 3.0 * (t == "dark") + 20 * s for t, s in zip(TONE, SPREAD, strict=True)]


def measured():
    columns = {"model": "m", "instance_id": IDS}
    return pl.concat(
        [
            pl.DataFrame(columns | {"metric": "lpips", "value": LPIPS}),
            pl.DataFrame(columns | {"metric": "psnr", "value": PSNR}),
        ]
    )


def toned():
    attributes = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": IDS, "attribute": "tone", "value": TONE}
    )
    return replace(people(IDS), attributes=ATTRIBUTES.conform(attributes))


@pytest.fixture(scope="module")
def audited():
    everybody = toned()
    scores = super_resolution.score(everybody, measured())
    return isolux.audit(scores, everybody, by="tone", replicates=500)


def test_the_worst_group_is_the_one_with_the_highest_lpips(audited):
    mean = {t: np.mean([v for v, u in zip(LPIPS, TONE, strict=True) if u == t]) for t in TONE}
    groups = audited.group_metrics.filter(metric="lpips", attribute="tone")
    found = dict(groups.select("group", "value").iter_rows())
    assert found == {t: pytest.approx(m) for t, m in mean.items()}
    assert found["dark"] > found["light"]
    rows = audited.disparities.filter(attribute="tone")
    for kind in ("difference", "ratio", "range"):
        ends = rows.filter(kind=kind).select("metric", "group_a", "group_b").rows()
        assert sorted(ends) == [("lpips", "dark", "light"), ("psnr", "dark", "light")], kind
    pair = dict(rows.filter(kind="difference").select("metric", "value").iter_rows())
    assert pair["lpips"] == pytest.approx(mean["dark"] - mean["light"])
    assert pair["psnr"] == pytest.approx(-3 + 20 * (pair["lpips"] - 0.1))


def test_the_finding_says_that_higher_is_worse(audited):
    claims = audited.findings.filter(metric="lpips")
    assert claims["group_a"].to_list() == ["dark"]
    assert re.search(r"works worse .*\(0\.\d+ LPIPS higher", claims["claim"][0])
    assert (
        "peak signal-to-noise ratio" in claims["also"][0].to_list()
    )  # the same group, on which lower is worse


def test_the_report_leads_with_the_worse_group(audited, tmp_path):
    page = audited.report(tmp_path / "run").read_text()
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split()).replace("( ", "(")
    value = np.mean([v for v, t in zip(LPIPS, TONE, strict=True) if t == "dark"])
    assert f"dark {value:.3f} LPIPS light " in text, "worst group, best group"


def test_turning_the_values_around_turns_the_groups_around():
    everybody = toned()
    turned = measured().with_columns(
        value=pl.when(pl.col("metric") == "lpips").then(0.5 - pl.col("value")).otherwise("value")
    )
    found = isolux.audit(
        super_resolution.score(everybody, turned), everybody, by="tone", replicates=200
    )
    ends = found.disparities.filter(metric="lpips", kind="range")
    assert ends.select("group_a", "group_b").row(0) == ("light", "dark")


def test_pictures_are_judged_by_lpips_alone_as_in_the_paper():
    assert super_resolution.INFO.defaults == ("lpips",)
    assert super_resolution.INFO.metrics == reconstruction.INFO.metrics


def test_the_same_pictures_have_the_same_numbers_in_both_tasks(tmp_path):
    save(tmp_path / "val/a.png", np.full((20, 20, 3), 90))
    save(tmp_path / "out/a.png", np.full((20, 20, 3), 99))
    options = {"metrics": ("psnr", "ssim"), "originals": str(tmp_path)}
    one, other = (
        task.score(people(["a"]), files(tmp_path / "out", ["a"]), **options)
        for task in (reconstruction, super_resolution)
    )
    assert values(one, "psnr") == values(other, "psnr") == {"a": pytest.approx(29.045, abs=1e-3)}
    assert values(one, "ssim") == values(other, "ssim")
    assert other.units["task"].unique().to_list() == ["super_resolution"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table of twelve people with pictures, a folder of a model's, and a table of values."""
    rows, lines = ["file,tone"], ["file,LPIPS"]
    for i in range(12):
        tone = ("light", "dark")[i % 2]
        save(tmp_path / f"faces/{i}.png", np.full((16, 16, 3), 100))
        save(tmp_path / f"net/{i}.png", np.full((16, 16, 3), 105 + i + 20 * (i % 2)))
        rows.append(f"faces/{i}.png,{tone}")
        lines.append(f"{i}.png,{0.1 + i / 100 + 0.3 * (i % 2)}")
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "net.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit(monkeypatch, capsys, *more):
    few = ("--min-units", 3, "--min-clusters", 3, "--replicates", 200)
    return run(monkeypatch, capsys, "audit", "table:people.csv", "--by", "tone", *few, *more)


def test_pictures_on_the_command_line(folder, monkeypatch, capsys):
    ran = audit(
        monkeypatch, capsys, "--task", "super_resolution", "--predictions", "net",
        "--format", "image_files", "--metric", "psnr", "--option", "size_px=0", "--out", "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "tone = light: peak signal-to-noise ratio is" in " ".join(ran.out.split())
    rows = pl.read_parquet(folder / "run" / "scores.parquet").sort("unit_id")
    # The first is off by 5 of 255: −20 log10(5 / 255) = 34.151 dB, less the floor's hundredth.
    first = rows.filter(unit_id="faces/0.png")["value"][0]
    assert first == pytest.approx(-10 * np.log10((5 / 255) ** 2 + 1e-8))


def test_values_on_the_command_line(folder, monkeypatch, capsys):
    ran = audit(
        monkeypatch, capsys, "--task", "reconstruction", "--predictions", "net.csv",
        "--format", "unit_values", "--out", "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "LPIPS higher" in " ".join(ran.out.split())


def test_without_pytorch_the_command_line_says_what_to_install(folder, monkeypatch, capsys):
    def absent(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("isolux.models.lpips.import_module", absent)
    ran = audit(
        monkeypatch, capsys, "--task", "super_resolution", "--predictions", "net",
        "--format", "image_files", "--option", "lpips_weights=people.csv",
    )  # fmt: skip
    assert ran.code != 0
    assert "LPIPS needs PyTorch, which is not installed" in ran.plain
    assert "pip install 'isolux[lpips]'; or leave LPIPS out (--metric psnr)" in ran.plain
    assert "Traceback" not in ran.err

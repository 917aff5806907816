"""A tutorial's commands run as they stand, and print what the page says they print.

``docs/tutorials/widerface.md`` needs real files; without them its test is skipped, and says so. Its
table, and the gap at an equal mix, are also computed here from people's scores, by other means.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests._shared import shared_data
from tests.docs import _pages as pages

PAGE = pages.ROOT / "docs" / "tutorials" / "widerface.md"
SEXES = ("Male", "Female")


def commands(page: Path) -> list[list[str]]:
    """Give the words of every command of a page, in order."""
    shell = "\n".join(b.body for b in pages.blocks(page) if b.kind == "bash")
    lines = [line for line in shell.replace("\\\n", " ").splitlines() if line.strip()]
    return [shlex.split(line, comments=True) for line in lines]


def quoted(page: Path) -> list[str]:
    """Give the sentences that a page says were printed, their lines joined."""
    boxes = [b.body for b in pages.blocks(page) if b.kind == "text"]
    told = [part for box in boxes for part in re.split(r"(?:\A|\n\n)• ", box)]
    return [" ".join(one.split()) for one in told if one.strip()]


def printed(page: Path, folder: Path) -> str:
    """Run a page's commands in a folder, and give all that they print, lines joined."""
    told = []
    for words in commands(page):
        done = subprocess.run(
            [sys.executable, "-c", "from isolux.cli import main; main()", *words[1:]],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stderr)
        told.append(done.stdout)
    return " ".join("\n".join(told).split())


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run the page's commands in a folder in which the data lie where the page has them."""
    data = shared_data("widerface")
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "widerface").symlink_to(data, target_is_directory=True)
    return folder, printed(PAGE, folder)


@pytest.fixture(scope="module")
def runs(ran: tuple[Path, str]) -> dict[str, Path]:
    return {path.name: path for path in (ran[0] / "runs").iterdir()}


def table(run: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(run / f"{name}.parquet")


@pytest.fixture(scope="module")
def faces(runs: dict[str, Path]) -> pl.DataFrame:
    """Who was judged: found or not, and what may explain it."""
    wide = (
        table(runs["faces"], "attributes")
        .with_columns(pl.coalesce(pl.col("number").cast(pl.String), "value").alias("value"))
        .filter(pl.col("attribute") != "difficulty")
        .pivot("attribute", index="unit_id", values="value")
        .with_columns(pl.col("box_height").cast(pl.Float64))
    )
    scores = table(runs["faces"], "scores").filter(metric="recall_at_score")
    judged = scores.drop_nulls("value").select("unit_id", "cluster_id", found="value")
    return judged.join(wide, on="unit_id", how="inner", validate="1:1")


def test_what_the_page_quotes_is_what_the_commands_print(ran: tuple[Path, str]) -> None:
    stray = [sentence for sentence in quoted(PAGE) if sentence not in ran[1]]
    assert len(quoted(PAGE)) >= 8
    assert not stray, ran[1]


def test_every_tutorial_with_quotations_has_such_a_test() -> None:
    pages_with_boxes = {p.stem for p in PAGE.parent.glob("*.md") if quoted(p)}
    tested = {PAGE.stem, "synthetic_world"}
    assert pages_with_boxes <= tested


def test_the_faces_are_those_of_the_page(faces: pl.DataFrame) -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert faces.height == 12_190
    by = faces.group_by("perceived_gender").agg(pl.len(), pl.col("found", "box_height").mean())
    share = {g: (n, 100 * found) for g, n, found, _ in by.iter_rows()}
    assert f"{share['Male'][1]:.1f} % of them" in text
    assert f"{share['Female'][1]:.1f} % of those perceived as women" in text
    assert f"{share['Not Sure'][0]:,} faces" in text
    assert f"found {share['Not Sure'][1]:.1f} % of those" in text
    traits = ("perceived_gender", "perceived_age", "perceived_skin")
    sure = faces.filter(pl.all_horizontal(pl.col(traits) != "Not Sure"))
    men, women = (sure.filter(perceived_gender=sex)["found"].to_numpy() for sex in SEXES)
    assert f"of the {len(men):,} and {len(women):,} faces that remain" in text
    assert f"less often by {100 * (women.mean() - men.mean()):.1f} points, not 3.3" in text
    # "smaller, more blurred and more often hidden"
    his, hers = (faces.filter(perceived_gender=sex) for sex in SEXES)
    assert np.median(his["box_height"]) < np.median(hers["box_height"])
    for attribute in ("blur", "occlusion"):
        heavy = [(one[attribute] == "heavy").sum() / one.height for one in (his, hers)]
        assert heavy[0] > 1.5 * heavy[1]


def test_the_pages_table_is_that_of_the_faces(faces: pl.DataFrame) -> None:
    rows = re.findall(r"^\| (heavy|normal|clear) +\|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    assert [row[0] for row in rows] == ["heavy", "normal", "clear"]
    for value, cells in rows:
        shares, found = [], []
        for sex in SEXES:
            own = faces.filter(perceived_gender=sex)
            at = own.filter(blur=value)
            shares.append(f"{100 * at.height / own.height:.1f} %")
            found.append(f"{100 * at['found'].to_numpy().mean():.1f} %")
        assert [cell.strip() for cell in cells.split("|")] == [*shares, *found]


def standardised_gap(faces: pl.DataFrame, at: list[str], least: int) -> float:
    """Σ P(e) (men's rate − women's rate) over values with enough of both; P(e): both groups'.

    Enough: so many faces, of as many images.
    """
    cells = (
        faces.filter(pl.col("perceived_gender").is_in(SEXES))
        .group_by(*at, "perceived_gender")
        .agg(pl.col("cluster_id").n_unique().alias("len_of"), pl.len(), pl.col("found").mean())
        .filter(pl.col("len_of") >= least)
        .pivot("perceived_gender", index=at, values=["len", "found"])
        .filter((pl.col("len_Male") >= least) & (pl.col("len_Female") >= least))
        .with_columns(n=pl.col("len_Male") + pl.col("len_Female"))
    )
    n, gap = cells["n"].to_numpy(), (cells["found_Male"] - cells["found_Female"]).to_numpy()
    return float((n * gap).sum() / n.sum())


def test_the_gap_at_an_equal_mix_is_that_of_the_faces(
    runs: dict[str, Path], faces: pl.DataFrame
) -> None:
    claims = table(runs["faces"], "findings").filter(analysis="confounders")
    heights = faces["box_height"].sort()
    edges = sorted({heights[faces.height * i // 4] for i in (1, 2, 3)})
    cut = faces.with_columns(
        height=sum((pl.col("box_height") >= e).cast(pl.Int8) for e in edges)  # its quarter
    )
    start = "Exploratory: At an equal mix of {}, share found at a score of 0.5 for Male"
    for name, at in (
        ("blur", ["blur"]),
        ("box height × blur × occlusion", ["height", "blur", "occlusion"]),
    ):
        mine = claims.filter(pl.col("claim").str.starts_with(start.format(name)))
        assert mine.height == 1
        assert mine["effect"][0] == pytest.approx(standardised_gap(cut, at, 5), abs=1e-9)


# The reader of the page: it must be able to find what it looks for.


def test_commands_and_quotations_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    shell = '```bash\nisolux audit a:b \\\n  --x "y z"\n```\n'
    page.write_text(f"# x\n{shell}```text\n• One\nof two.\n\n• Two.\n```\n", encoding="utf-8")
    assert commands(page) == [["isolux", "audit", "a:b", "--x", "y z"]]
    assert quoted(page) == ["One of two.", "Two."]

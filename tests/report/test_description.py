"""The page of ``isolux describe``: self-contained, escaped, a figure where there is a share."""

from __future__ import annotations

import polars as pl

from isolux.info import DatasetInfo, Reference
from isolux.report.description import MOST_BARS, render_description, write_description
from tests.report._page import parse

HOSTILE = '<script>alert("x")</script>'
INFO = DatasetInfo(
    title="Made",
    summary="Made up.",
    references=(Reference("made", "Somebody (2020). Something.", "page 1", "https://x.example"),),
    licence="CC BY 4.0",
    judgement="perceived",
)
SIZES = pl.DataFrame(
    {"people": [5], "subjects": [3], "images with people": [2], "people per image": [2.5]}
)
TONES = pl.DataFrame(
    {"tone": [HOSTILE, "4"], "people": [2, 3], "% of people": [40.0, 60.0], "images": [1, 2]}
)
SIDE = pl.DataFrame(
    {
        "group": ["A", "A", "B", "B"],
        "dataset": ["one", "two"] * 2,
        "people": [1, 2, 3, 4],
        "% of known": [25.0, 33.3, 75.0, 66.7],
        "from": [4.6, 9.7, 30.1, 30.0],
        "to": [69.9, 70.0, 95.4, 90.3],
    }
)


def test_names_are_escaped_and_nothing_is_asked_of_the_network():
    html = render_description({"Sizes": SIZES, f"By {HOSTILE}": TONES}, {HOSTILE: INFO}, [HOSTILE])
    assert HOSTILE not in html
    assert "default-src 'none'" in html
    page = parse(html)
    assert [node.text for node in page.all("th") if "alert" in node.text] == [HOSTILE]
    assert "5 people (3 subjects) in 2 images." in page.text


def test_a_share_gets_bars_and_a_table_of_counts_none():
    page = parse(render_description({"Sizes": SIZES, "By tone": TONES}, {"made": INFO}))
    (figure,) = page.all("figure")
    assert "60.0" in figure.text
    assert "By tone" in [node.text for node in page.all("h2")]
    assert "Somebody (2020)" in page.text


def test_datasets_side_by_side_get_dots_with_intervals():
    page = parse(render_description({"Side by side": SIDE}, {"one": INFO, "two": INFO}))
    (figure,) = page.all("figure")
    assert "one" in figure.text
    assert "two" in figure.text
    assert "What one and two hold" in page.text


def test_a_long_table_has_no_figure_and_every_row():
    n = MOST_BARS + 1
    table = pl.DataFrame(
        {"job": [f"j{i}" for i in range(n)], "people": [1] * n, "% of people": [1.0] * n}
    )
    page = parse(render_description({"By job": table}, {"made": INFO}))
    assert not page.all("figure")
    assert len(page.all("tbody")[0].all("tr")) == n


def test_a_table_of_nothing_known_still_prints():
    table = pl.DataFrame({"tone": ["1"], "people": [0], "% of people": [None]},
                         schema_overrides={"% of people": pl.Float64})  # fmt: skip
    page = parse(render_description({"By tone": table}, {"made": INFO}))
    assert not page.all("figure")
    assert "–" in page.all("tbody")[0].text


def test_it_is_written_whole(tmp_path):
    path = write_description(tmp_path / "page.html", {"Sizes": SIZES}, {"made": INFO})
    assert path.read_text(encoding="utf-8") == render_description({"Sizes": SIZES}, {"made": INFO})

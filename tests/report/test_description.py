"""The page of ``isolux describe``: self-contained, escaped, a figure where there is a share."""

from __future__ import annotations

import polars as pl

from isolux.core.info import DatasetInfo, Reference
from isolux.report.description import render_description_page, write_description_page
from isolux.report.description.figures import MOST_BARS
from tests.report._page import parse

HOSTILE = '<script>alert("x")</script>'
INFO = DatasetInfo(
    title="Made",
    summary="Made up.",
    references=(Reference("made", "Somebody (2020). Something.", "page 1", "https://x.example"),),
    licence="CC BY 4.0",
    label_source="perceived",
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
    html = render_description_page(
        {"Sizes": SIZES, f"By {HOSTILE}": TONES}, {HOSTILE: INFO}, [HOSTILE]
    )
    assert HOSTILE not in html
    assert "default-src 'none'" in html
    page = parse(html)
    assert [node.text for node in page.all("th") if "alert" in node.text] == [HOSTILE]
    assert "5 people (3 subjects) in 2 images." in page.text


def test_a_share_gets_bars_and_a_table_of_counts_none():
    page = parse(render_description_page({"Sizes": SIZES, "By tone": TONES}, {"made": INFO}))
    (figure,) = page.all("figure")
    assert "60.0" in figure.text
    assert "By tone" in [node.text for node in page.all("h2")]
    assert "Somebody (2020)" in page.text


def test_datasets_side_by_side_get_dots_with_intervals():
    page = parse(render_description_page({"Side by side": SIDE}, {"one": INFO, "two": INFO}))
    (figure,) = page.all("figure")
    assert "one" in figure.text
    assert "two" in figure.text
    assert "What one and two hold" in page.text


def test_a_long_table_has_no_figure_and_every_row():
    n = MOST_BARS + 1
    table = pl.DataFrame(
        {"job": [f"j{i}" for i in range(n)], "people": [1] * n, "% of people": [1.0] * n}
    )
    page = parse(render_description_page({"By job": table}, {"made": INFO}))
    assert not page.all("figure")
    assert len(page.all("tbody")[0].all("tr")) == n


def test_a_table_of_nothing_known_still_prints():
    table = pl.DataFrame({"tone": ["1"], "people": [0], "% of people": [None]},
                         schema_overrides={"% of people": pl.Float64})  # fmt: skip
    page = parse(render_description_page({"By tone": table}, {"made": INFO}))
    assert not page.all("figure")
    assert "–" in page.all("tbody")[0].text


def test_it_is_written_whole(tmp_path):
    path = write_description_page(tmp_path / "page.html", {"Sizes": SIZES}, {"made": INFO})
    assert path.read_text(encoding="utf-8") == render_description_page(
        {"Sizes": SIZES}, {"made": INFO}
    )


VENDI = pl.DataFrame(
    {
        "attribute": ["overall", "race", "race"],
        "group": ["overall", "A", HOSTILE],
        "vectors": [90, 30, 60],
        "subjects drawn": [45, 15, 15],
        "Vendi score of these": [9.0, 5.0, None],
        "from": [8.0, 4.5, None],
        "to": [9.5, 5.5, None],
    }
)
NUMBERS = pl.DataFrame(
    {
        "attribute": ["overall", "race", "race"],
        "group": ["overall", "A", "B"],
        "5th": [1.0, 1.0, 2.0],
        "25th": [2.0, 2.0, 3.0],
        "median": [3.0, 3.0, 4.0],
        "75th": [4.0, 4.0, 5.0],
        "95th": [5.0, 5.0, 6.0],
    }
)
CURVES = {
    "race": pl.DataFrame(
        {"group": ["A"] * 3 + [HOSTILE] * 3, "distance": [1.0, 2.0, 3.0] * 2,
         "share": [0.1, 0.5, 0.9] * 2}
    )
}  # fmt: skip
POINTS = {
    "race": pl.DataFrame({"group": ["A", HOSTILE], "x": [0.0, 1.0], "y": [1.0, 0.0]}),
    "job": pl.DataFrame({"group": [f"j{i}" for i in range(30)], "x": [0.0] * 30, "y": [1.0] * 30}),
}
DIVERSE = {"Vendi": VENDI, "Distances: L1": NUMBERS, "Map": SIZES, "Numbers: age": NUMBERS}
DRAWN = {"Distances: L1": CURVES, "Map": POINTS}


def test_diversity_gets_intervals_curves_and_a_map():
    html = render_description_page(DIVERSE, {"made": INFO}, figure_data=DRAWN)
    assert HOSTILE not in html
    page = parse(html)
    told = [node.text for node in page.all("figcaption")]
    vendi, curve, places, numbers = told
    assert vendi == "By race. Scores of 15 subjects of each group, with intervals."
    assert curve.startswith("By race: pairs that are nearer than each distance, in percent.")
    assert places.startswith("2 embeddings by race. Near means alike;")  # 30 jobs: unreadable
    assert numbers == "By race. Mark: median. Thick: the middle half. Thin: the middle 90 %."
    assert "Vendi score is the number of" in page.text
    assert (
        "Vendi score is the number of"
        not in parse(render_description_page({"S": SIZES}, {"m": INFO})).text
    )


def test_curves_say_in_words_where_half_of_the_pairs_lie():
    html = render_description_page(DIVERSE, {"made": INFO}, figure_data=DRAWN)
    assert "half of the pairs are nearer than A 2, " in html


def test_places_from_captions_say_that_they_are_approximate():
    table = pl.DataFrame({"caption_region": ["Europe"], "people": [1], "% of people": [100.0]})
    text = parse(render_description_page({"By caption_region": table}, {"made": INFO})).text
    assert "Places are approximate" in text
    assert (
        "Places are approximate"
        not in parse(render_description_page({"S": SIZES}, {"m": INFO})).text
    )


def test_percent_have_one_place_in_every_table():
    table = pl.DataFrame({"attribute": ["a"], "unknown": [0], "% unknown": [0.0]})
    page = parse(render_description_page({"Known": table}, {"made": INFO}))
    assert [node.text for node in page.all("tbody")[0].all("td")] == ["0", "0.0"]


BOXES = pl.DataFrame(
    {
        "part of the image": ["0 to 10 %", "10 to 20 %"],
        "people": [6, 2],
        "% of people": [75.0, 25.0],
        "one person in the image": [1, 1],
    }
)


def test_sizes_of_boxes_are_drawn_for_all_images_and_for_those_of_one_person():
    page = parse(render_description_page({"Box": BOXES}, {"m": INFO}))
    whole, alone = page.all("figure")
    assert "75.0" in whole.text
    assert "50.0" in alone.text
    only = BOXES.with_columns(pl.col("people").alias("one person in the image"))
    assert len(parse(render_description_page({"Box": only}, {"m": INFO})).all("figure")) == 1


def test_a_single_group_is_no_figure():
    table = pl.DataFrame({"tone": ["1"], "people": [3], "% of people": [100.0]})
    assert not parse(render_description_page({"By tone": table}, {"m": INFO})).all("figure")


def test_its_charts_are_valid_vega_lite(monkeypatch):
    import altair as alt
    import vl_convert

    seen = []

    def checked(spec, **_):
        alt.Chart.from_dict(spec, validate=True)
        seen.append(spec)
        return "<svg></svg>"

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", checked)
    render_description_page(
        {**DIVERSE, "By tone": TONES, "Side": SIDE}, {"m": INFO}, figure_data=DRAWN
    )
    assert len(seen) == 6


def many(n, rows=8):
    """Make n tables with shares, each as long."""
    tone = [f"tone {k}" for k in range(rows)]
    table = pl.DataFrame({"tone": tone, "people": [9] * rows, "% of people": [100 / rows] * rows})
    return {"Sizes": SIZES} | {f"By attribute {k}": table for k in range(n)}


def test_of_many_tables_the_first_are_open_and_the_others_have_a_line_each():
    page = parse(render_description_page(many(20), {"made": INFO}))
    closed = [node.text for node in page.all("summary")]
    assert 10 < len(closed) < 20
    assert closed[-1].split() == ["By", "attribute", "19", "8", "rows"]
    assert len(page.all("table")) == 21  # none is left out
    links = [node.text for node in page.all("nav")[0].all("a")]
    assert links == ["Sizes", *(f"By attribute {k}" for k in range(20))]
    few = parse(render_description_page(many(3), {"made": INFO}))
    assert few.all("details") == []


def test_a_long_table_is_folded_and_the_next_stays_open():
    long = many(1, 80)["By attribute 0"]
    page = parse(
        render_description_page({"Sizes": SIZES, "By job": long, **many(1)}, {"made": INFO})
    )
    (closed,) = page.all("summary")
    assert closed.text.split() == ["By", "job", "80", "rows"]


def test_very_many_tables_and_notes_are_folded_together():
    page = parse(render_description_page(many(90), {"made": INFO}, [f"note {k}" for k in range(9)]))
    told = [" ".join(node.text.split()) for node in page.all("summary")]
    assert "4 more" in told
    (more,) = [one for one in told if one.endswith("more tables")]
    links = [len(nav.all("a")) for nav in page.all("nav")]
    assert links == [91 - int(more.split()[0]), int(more.split()[0])]

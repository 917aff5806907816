"""Candidates: terms are found in captions and tags, and rounds go where classes are short."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.errors import SpecError
from isolux_curate.candidates.captions import (
    build_class_term_table,
    count_matching_terms_by_class,
    list_possible_base_forms,
    pick_photos_by_term_matches,
)

TERMS = build_class_term_table(
    {"flutist": ["flutist", "flute_player"], "nurse": ["nurse"], "lawman": ["lawman", "policeman"]},
    {"flutist": ["flute"]},
)


def _photo(caption: str | None, tags: str | None = None) -> pl.DataFrame:
    return pl.DataFrame({"image_id": ["a"], "caption": [caption], "tags": [tags]})


def test_the_papers_example_is_found() -> None:
    """FACET 5.1: “The person is playing the flute” speaks of a flutist by the related noun."""
    found = count_matching_terms_by_class(_photo("The person is playing the flute"), TERMS)
    assert found.rows() == [("a", "flutist", 1)]


@pytest.mark.parametrize(
    ("caption", "tags", "wanted"),
    [
        ("Two nurses.", None, [("nurse", 1)]),
        ("FLUTE PLAYERS on stage", None, [("flutist", 2)]),
        ("policemen and a lawman", "Nurse, policeman", [("lawman", 2), ("nurse", 1)]),
        ("a nursery, a nurseryman", None, []),
        ("a fluted column", None, [("flutist", 1)]),  # a wrong match, which the docs name
        (None, None, []),
    ],
)
def test_inflected_words_and_terms_of_two_words(caption, tags, wanted) -> None:
    assert (
        count_matching_terms_by_class(_photo(caption, tags), TERMS)
        .select("class", "overlap")
        .rows()
        == wanted
    )


@pytest.mark.parametrize(
    ("word", "base"),
    [("dancers", "dancer"), ("riding", "ride"), ("running", "run"), ("churches", "church"),
     ("babies", "baby"), ("women", "woman"), ("taught", "teach"), ("boxes", "box")],
)  # fmt: skip
def test_forms_hold_the_base_of_a_word(word: str, base: str) -> None:
    assert base in list_possible_base_forms(word)


def _matched(**classes: list[int]) -> pl.DataFrame:
    rows = [(f"{name}{k}", name, n) for name, own in classes.items() for k, n in enumerate(own)]
    return pl.DataFrame(rows, schema=["image_id", "class", "overlap"], orient="row")


def test_a_first_round_takes_the_most_overlap_of_each_class() -> None:
    found = pick_photos_by_term_matches(
        _matched(nurse=[1, 3, 2, 1], guard=[1]), n_wanted_per_class=2
    )
    assert found.rows() == [("guard0", "guard", 1), ("nurse1", "nurse", 3), ("nurse2", "nurse", 2)]


def test_later_rounds_over_sample_by_the_rate_and_go_to_classes_that_are_short() -> None:
    """nurse lacks 10 at a rate of .5: 20 photos; guard has enough: none; chef lacks 4 of rate 1."""
    matched = _matched(nurse=[1] * 40, guard=[1] * 40, chef=[1] * 40)
    found = pick_photos_by_term_matches(
        matched,
        n_wanted_per_class=10,
        yield_by_class={"nurse": 0.5, "guard": 0.9},
        n_by_class={"guard": 12, "chef": 6},
        excluded_ids=["nurse0"],
    )
    assert dict(found["class"].value_counts().iter_rows()) == {"nurse": 20, "chef": 4}
    assert "nurse0" not in found["image_id"]


def test_ties_are_broken_by_the_same_lot_each_time() -> None:
    matched = _matched(nurse=[1] * 100)
    first = pick_photos_by_term_matches(matched, n_wanted_per_class=10)["image_id"].to_list()
    assert (
        first == pick_photos_by_term_matches(matched, n_wanted_per_class=10)["image_id"].to_list()
    )
    assert first != matched["image_id"].head(10).to_list()


def test_a_photo_of_two_classes_is_looked_at_once_for_the_rarer() -> None:
    matched = pl.concat([
        _matched(nurse=[1, 1, 1]),
        pl.DataFrame({"image_id": ["nurse0"], "class": ["guard"], "overlap": [1]}),
    ])  # fmt: skip
    found = pick_photos_by_term_matches(matched, n_wanted_per_class=3)
    assert found["image_id"].is_duplicated().sum() == 0
    assert dict(found.select("image_id", "class").iter_rows())["nurse0"] == "guard"


def test_photos_without_words_are_refused() -> None:
    with pytest.raises(SpecError, match="nothing says what photos show"):
        count_matching_terms_by_class(pl.DataFrame({"image_id": ["a"]}), TERMS)

"""Concepts: WordNet's own file is read, and FACET's rules say why each synset does not stand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import FileError, UnknownNameError
from isolux_curate.candidates.captions import (
    PERSON_SYNSET,
    list_concepts_with_exclusion_reasons,
    read_wordnet_nouns,
)
from tests._shared import shared_data

# As wndb(5WN) says: offset, file number, n, how many words (hex), words, pointers.
NOUNS = """  1 This software and database is being provided to you, the LICENSEE
00007846 03 n 03 person 0 individual 0 mortal 0 002 @ 00004475 n 0000 + 02605965 a 0101 | a human
00004475 03 n 01 organism 0 000 | a living thing
09605289 18 n 01 adult 0 001 @ 00007846 n 0000 | grown
10020890 18 n 02 doctor 0 Dr. 1 001 @ 09605289 n 0000 | who heals
10679174 18 n 01 surgeon 0 001 @ 10020890 n 0000 | who operates
10000000 18 n 01 bad_word 0 001 @ 00007846 n 0000 | an insult
10111111 18 n 01 good_child_of_bad 0 001 @ 10000000 n 0000 | no insult
10222222 18 n 02 tooth_doctor 0 dentist 0 002 @ 10020890 n 0000 @ 09605289 n 0000 | teeth
10333333 18 n 01 Hippocrates 0 001 @i 10020890 n 0000 | of Kos
"""


@pytest.fixture
def nouns(tmp_path: Path) -> pl.DataFrame:
    (tmp_path / "data.noun").write_text(NOUNS)
    return read_wordnet_nouns(tmp_path / "data.noun")


def test_wordnets_file_is_read(nouns: pl.DataFrame) -> None:
    assert nouns.height == 9
    row = nouns.row(by_predicate=pl.col("synset") == "n10222222", named=True)
    assert row["lemmas"] == ["tooth doctor", "dentist"]
    assert row["parents"] == ["n10020890", "n09605289"]


def test_each_rule_says_why(nouns: pl.DataFrame) -> None:
    found = list_concepts_with_exclusion_reasons(
        nouns, offensive_synsets_or_lemmas=["Bad word"],
        imagenet_synsets=["n09605289", "n10020890", "n10679174", "n10111111", "n10222222"],
        n_examples_by_synset={"n09605289": 900, "n10020890": 800, "n10679174": 700,
                              "n10222222": 499},
    )  # fmt: skip
    assert dict(found.select("synset", "reason").iter_rows()) == {
        "n09605289": None,
        "n10000000": "offensive by the list",
        "n10020890": None,
        "n10333333": "a real person",
        "n10111111": "0 examples, fewer than 500",
        "n10222222": "499 examples, fewer than 500",
        "n10679174": None,
    }
    assert dict(found.select("synset", "depth").iter_rows())["n10222222"] == 2  # the shortest way


def test_no_chosen_class_lies_under_another(nouns: pl.DataFrame) -> None:
    """Doctor and surgeon: surgeon is the one too many, whatever stands between them."""
    for chosen, wrong in (
        (["n10020890"], {}),
        (["n10679174", "n10222222"], {}),
        (["n09605289", "n10679174"], {"n10679174": "under the chosen adult"}),
    ):
        found = list_concepts_with_exclusion_reasons(nouns, chosen_synsets=chosen)
        reasons = dict(found.select("synset", "reason").iter_rows())
        assert {s: reasons[s] for s in chosen if reasons[s]} == wrong
    with pytest.raises(UnknownNameError, match="there is no synset named 'n1'"):
        list_concepts_with_exclusion_reasons(nouns, chosen_synsets=["n1"])


def test_depth_counts_from_person(nouns: pl.DataFrame, monkeypatch) -> None:
    monkeypatch.setattr("isolux_curate.candidates.captions.DEEPEST", 2)
    found = list_concepts_with_exclusion_reasons(nouns)
    assert dict(found.select("synset", "reason").iter_rows())["n10679174"] == (
        "3 steps below, more than 2"
    )


def test_a_root_that_there_is_not_is_named(nouns: pl.DataFrame) -> None:
    with pytest.raises(UnknownNameError, match="there is no synset named 'n1'"):
        list_concepts_with_exclusion_reasons(nouns, root_synset="n1")


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.verb").write_text("00001740 29 v 04 breathe 0 000 | gloss\n")
    with pytest.raises(FileError, match="this is not a file of WordNet's nouns"):
        read_wordnet_nouns(tmp_path / "data.verb")


def test_imagenets_list_of_synsets_holds_person() -> None:
    """The numbers of data.noun and of ImageNet are one: *person* is in both under the same one."""
    text = (shared_data("wordnet") / "imagenet_synset_to_lemma.txt").read_text()
    lemmas = dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)
    assert lemmas[PERSON_SYNSET].startswith("person, individual")

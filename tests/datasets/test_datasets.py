from __future__ import annotations

import pytest

from isolux import datasets
from isolux.core import registry
from isolux.core.errors import SpecError, UnknownNameError


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("id,race\n1,x\n2,y\n")
    return path


def test_a_dataset_is_found_by_its_files_name(people):
    dataset = datasets.load("table", people)
    assert dataset.name == "table"
    assert dataset.info is registry.load_info("datasets", "table")


def test_an_unknown_dataset_names_near_ones(people):
    with pytest.raises(UnknownNameError, match=r"(?s)no dataset named 'fairfaces'.*'fairface'"):
        datasets.load("fairfaces", people)


def test_an_unknown_option_lists_those_there_are(people):
    with pytest.raises(
        SpecError,
        match=r"(?s)'table' has no option 'clusters'.*id, image, .*did you mean 'cluster'",
    ):
        datasets.load("table", people, clusters="race")


def test_options_that_are_none_are_left_to_the_loader(people):
    assert datasets.load("table", people, votes=None, id=None).instances.height == 2
    with pytest.raises(SpecError, match="no option 'votes'"):
        datasets.load("table", people, votes="top")


def test_options_are_the_loaders_own():
    assert datasets.list_loader_options("table") == (
        "id",
        "image",
        "columns",
        "numeric",
        "separator",
        "root",
        "repair_ages",
        "sheet",
        "header_row",
        "format",
        "required_columns",
        "max_columns",
    )

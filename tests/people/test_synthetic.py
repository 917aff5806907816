from __future__ import annotations

import pytest

from isolux.people.synthetic import SYNTHETIC_MARKER, find_synthetic_marker_file


@pytest.mark.parametrize("below", ["people.csv", "data/annotations/train.json", "data"])
def test_a_marker_in_the_folder_or_above_is_found(tmp_path, below):
    (tmp_path / SYNTHETIC_MARKER).write_text("drawn")
    assert find_synthetic_marker_file([tmp_path / below]) == tmp_path / SYNTHETIC_MARKER


def test_a_world_without_a_marker_is_known_by_its_own_files(tmp_path):
    (tmp_path / "world.yaml").write_text("name: w")
    assert find_synthetic_marker_file([tmp_path / "data" / "x.csv"]) is None
    (tmp_path / "injected.json").write_text("{}")
    assert find_synthetic_marker_file([tmp_path / "data" / "x.csv"]) == tmp_path / "world.yaml"


def test_a_marker_far_above_says_nothing_of_these_people(tmp_path):
    (tmp_path / SYNTHETIC_MARKER).write_text("drawn")
    assert find_synthetic_marker_file([tmp_path / "a/b/c/d/e/people.csv"]) is None


def test_one_synthetic_path_among_others_is_enough(tmp_path):
    real, drawn = tmp_path / "real", tmp_path / "drawn"
    real.mkdir()
    drawn.mkdir()
    (drawn / SYNTHETIC_MARKER).write_text("drawn")
    assert find_synthetic_marker_file([real / "people.csv"]) is None
    assert (
        find_synthetic_marker_file([real / "people.csv", drawn / "people.csv"])
        == drawn / SYNTHETIC_MARKER
    )
    assert find_synthetic_marker_file([]) is None

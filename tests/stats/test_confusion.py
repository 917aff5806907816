"""A confusion matrix whose headings are the wrong way round: what gives it away."""

from __future__ import annotations

import pytest

from isolux.core.errors import TableError
from isolux.stats.confusion import caution_if_labels_look_swapped, read_confusion_matrix

# 100 cases of each true group: f is labelled m of 20, m is labelled f of 5.
CASES = "f,f,{0}\nf,m,{1}\nm,f,{2}\nm,m,{3}\n"
COUNTS, SHARES = CASES.format(80, 20, 5, 95), CASES.format(0.8, 0.2, 0.05, 0.95)


def read(tmp_path, text):
    path = tmp_path / "matrix.csv"
    path.write_text(text)
    return read_confusion_matrix(str(path), None, None, alternative="without")


def test_the_headings_decide_and_as_many_cases_of_each_truth_raise_no_doubt(tmp_path):
    found = read(tmp_path, "true,labelled,count\n" + COUNTS)
    assert found.share.tolist() == [[0.8, 0.2], [0.05, 0.95]]
    assert caution_if_labels_look_swapped(found) == []
    # The same rows under headings in another order: columns are found by name.
    again = read(tmp_path, "labelled,true,count\nf,f,80\nm,f,20\nf,m,5\nm,m,95\n")
    assert again.share.tolist() == found.share.tolist()


def test_as_many_cases_of_each_label_are_cautioned_about(tmp_path):
    found = read(tmp_path, "labelled,true,count\n" + COUNTS)
    (told,) = caution_if_labels_look_swapped(found)
    assert "each label has 100 cases, and true groups have 85 (f) and 115 (m)" in told
    assert "are the columns true and labelled swapped in the file?" in told


def test_shares_that_sum_to_1_by_label_are_refused_with_that_question(tmp_path):
    with pytest.raises(TableError, match="row of f does not sum to 1") as refused:
        read(tmp_path, "labelled,true,share\n" + SHARES)
    assert "the shares of each label do sum to 1: are the columns true" in str(refused.value)
    with pytest.raises(TableError, match="people are given in a column count"):
        read(tmp_path, "true,labelled,share\n" + CASES.format(0.8, 0.3, 0.1, 0.95))


def test_nothing_is_said_where_either_side_could_be_the_truth(tmp_path):
    even = read(tmp_path, "true,labelled,count\n" + CASES.format(80, 20, 20, 80))
    uneven = read(tmp_path, "true,labelled,count\n" + CASES.format(80, 20, 5, 90))
    assert caution_if_labels_look_swapped(even) == caution_if_labels_look_swapped(uneven) == []

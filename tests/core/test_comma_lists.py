"""One flag with commas is the flag repeated, for lists of metrics, rules and values."""

from __future__ import annotations

import pytest

from isolux.core.spec import parse_spec


@pytest.mark.parametrize(
    ("task", "name", "flag_value", "names"),
    [
        ("classification", "metric", "recall,precision", ("recall", "precision")),
        ("classification", "metric", ["recall", "precision"], ("recall", "precision")),
        ("answers", "read", "occupation, pronoun", ("occupation", "pronoun")),
        ("answers", "read", "What, then?=pronoun", ("What, then?=pronoun",)),
        ("text_to_image_retrieval", "between", ["a,b"], ("a", "b")),
        ("text_to_image_retrieval", "between", ["a,b", "c"], ("a,b", "c")),
    ],
)
def test_commas_in_one_entry_part_it(task, name, flag_value, names):
    spec = parse_spec({"data": "table:people.csv", "task": task, name: flag_value})
    parameter = "metrics" if name == "metric" else name
    assert tuple(spec.task.get(parameter)) == names

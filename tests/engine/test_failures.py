"""What is advised where too many images have no answer: images and models fail differently."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import InputError
from isolux.engine.settings import Failures


def shard(fault: str) -> pl.DataFrame:
    return pl.DataFrame(
        {"unit_id": ["a", "b"], "reason": ["it failed"] * 2, "fault": [fault] * 2},
    )


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("picture", "`isolux check` finds broken images"),
        ("model", "mend the model or its settings"),
        ("time limit", "mend the model or its settings"),
    ],
)
def test_the_advice_is_about_whoever_failed(fault, words):
    with pytest.raises(InputError, match=words):
        Failures(4, 0.25, Path("out")).add_shard_failures(shard(fault))


def test_failures_of_an_earlier_run_are_the_images():
    with pytest.raises(InputError, match="finds broken images"):
        Failures(4, 0.25, Path("out")).add_earlier_failures(2)

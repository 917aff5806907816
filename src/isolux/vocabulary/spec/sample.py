"""Settings of the sample: how the people who are judged were drawn from those they stand for."""

from __future__ import annotations

from isolux.vocabulary.spec.stage import Stage, setting

__all__ = ["Sample"]


class Sample(Stage):
    """For whom the people in the data stand; what was drawn independently is ``people.cluster``."""

    weight: str | None = setting(
        None,
        "the column with each person's design weight: for how many people they stand; "
        "default: all alike",
        often=True,
    )
    strata: str | None = setting(
        None,
        "the column with the parts of the population that were sampled apart; clusters lie "
        "within them",
    )

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
    population: tuple[str, ...] | dict[str, dict[str, float]] = setting(
        (),
        "a table of the population, with a column for each attribute and one named share or count: "
        "weights are brought to it; several tables are raked",
    )
    population_size: str | None = setting(
        None,
        "how many clusters the population has, or the column that says it for each stratum: a "
        "sample of much of it is surer",
    )

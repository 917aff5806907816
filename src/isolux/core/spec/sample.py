"""Settings of the sample: how the people who are judged were drawn from those they stand for."""

from __future__ import annotations

from isolux.core.spec.stage import SettingsStage, setting


class Sample(SettingsStage):
    """For whom the people in the data stand; what was drawn independently is ``people.cluster``."""

    weight: str | None = setting(
        None,
        "the column with each person's design weight: how many people they represent; default: "
        "equal weights",
        often=True,
    )
    strata: str | None = setting(
        None,
        "the column with the strata: parts of the population that were sampled separately; each "
        "cluster lies within one",
    )
    population: tuple[str, ...] | dict[str, dict[str, float]] = setting(
        (),
        "a table of the population, with a column for each attribute and one named share or "
        "count: weights are adjusted to match it; with several tables, by raking",
    )
    population_size: str | None = setting(
        None,
        "how many clusters the population has, or the column that gives this for each stratum: a "
        "sample of a large part of it is more certain",
        flag=False,
    )

"""FairFace's printed numbers obey the formulas that we use, and where they do not is known.

The tables are the paper's own (golden tables); none of its data is needed. A printed number has
three decimals, so it may be off by .0005, and what is computed from such numbers accordingly.
"""

import math

import polars as pl
import pytest

from isolux.core.tables import GROUP_METRICS
from isolux.papers.fairface import (
    AGE_9_TO_4,
    GENDERS,
    RACES,
    build_accuracy_by_race_and_gender,
    build_detection_rates_by_group,
    build_service_accuracy_by_group,
    mean_and_sd_across_races_and_ages,
)
from tests._shared import SHARED, shared_data

HALF = 0.0005 + 1e-9
SERVICES = ("Microsoft", "Face++", "IBM")


def golden(name, **kwargs):
    path = SHARED / "golden" / f"fairface_{name}.csv"
    if not path.exists():
        pytest.skip(
            f"GOLDEN TABLE ABSENT: {path} is not there, so that our formulas give the paper's "
            "printed numbers was NOT checked; set ISOLUX_SHARED to the folder that holds golden/"
        )
    return pl.read_csv(path, **kwargs)


def group_metrics(printed, model, metric="accuracy"):
    """Turn a printed table, columns like White_M, into rows of group_metrics."""
    cells = [f"{r}_{g}" for r in RACES for g in GENDERS]
    long = printed.unpivot(cells, index=model, variable_name="cell").with_columns(
        race=pl.col("cell").str.split("_").list.first().replace_strict(RACES),
        gender=pl.col("cell").str.split("_").list.last().replace_strict(GENDERS),
    )
    return GROUP_METRICS.conform(
        long.select(
            pl.col(model).alias("model"),
            pl.lit(metric).alias("metric"),
            pl.lit("race*gender").alias("attribute"),
            pl.concat_list("race", "gender").alias("values"),
            "value",
        )
    )


def test_table_4_summaries_are_ours():
    printed = golden("t04")
    ours = build_accuracy_by_race_and_gender(group_metrics(printed, "model"))
    assert ours["n_groups"].to_list() == [14] * 4
    for row, own in zip(printed.iter_rows(named=True), ours.iter_rows(named=True), strict=True):
        assert row["model"] == own["model"]
        for name in ("max", "min"):
            assert own[name] == row[name]
        for name in ("avg", "stdv"):
            assert own[name] == pytest.approx(row[name], abs=HALF), (row["model"], name)
        # A value off by .0005 moves log10(max / min) by .0005 / min / ln 10 and the same for max.
        slack = 0.0005 + 0.0005 / math.log(10) * (1 / row["min"] + 1 / row["max"])
        assert own["epsilon"] == pytest.approx(row["epsilon"], abs=slack)


def test_table_4_is_of_base_10_and_ddof_1_and_nothing_else():
    printed = golden("t04")
    ours = build_accuracy_by_race_and_gender(group_metrics(printed, "model"))
    assert ((ours["epsilon"] * math.log(10) - printed["epsilon"]).abs() > 0.05).all()
    # With ddof 0 the LFWA+ row would print .189, not .196.
    lfwa = printed.filter(model="LFWA+")["stdv"].item()
    own = ours.filter(model="LFWA+")["stdv"].item()
    assert own * math.sqrt(13 / 14) != pytest.approx(lfwa, abs=0.005)


@pytest.mark.parametrize("model", ["UTKFace", "LFWA+", "CelebA"])
def test_table_5_is_the_spread_over_the_races_and_ages_of_table_7(model):
    # The FairFace row's averages lie in a damaged line of table 7: no oracle.
    row = golden("t07", infer_schema=False).filter(
        task="gender", dataset="Average", trained_on=model
    )
    assert row["quality"].item() == "ok"
    races = ("White", "Black", "E Asian", "SE Asian", "Latino", "Indian", "Mid-East")
    cells = [("race", c) for c in races] + [("age", c) for c in AGE_9_TO_4]
    rows = [(model, "accuracy", a, [c], float(row[c].item())) for a, c in cells]
    names = ("model", "metric", "attribute", "values", "value")
    schema = {name: GROUP_METRICS.schema[name] for name in names}
    ours = mean_and_sd_across_races_and_ages(
        GROUP_METRICS.conform(pl.DataFrame(rows, schema=schema, orient="row"))
    )
    printed = golden("t05").filter(model=model)
    for name in printed.columns[1:]:
        # Percent with two decimals, from cells with one
        assert 100 * ours[name].item() == pytest.approx(printed[name].item(), abs=0.02), name


def test_table_6_means_and_standard_deviations_are_ours():
    printed = golden("t06")
    ours = build_service_accuracy_by_group(group_metrics(printed, "service"))
    assert ours["service"].to_list() == printed["service"].to_list()
    assert ours.columns[1:15] == printed.columns[1:15]
    for name in ("mean", "std"):
        gap = (ours[name] - printed[name]).abs()
        assert (gap <= HALF).all(), (name, gap.to_list())


@pytest.mark.parametrize("service", SERVICES)
def test_an_undetected_face_is_a_mistake_table_6_times_table_8(service):
    """Accuracy = accuracy on the detected × detection rate, in each of 14 cells of 3 services."""
    rows = golden("t06")
    cells = rows.columns[1:15]
    both = rows.filter(service=service).select(cells).row(0)
    detected = rows.filter(service=f"*{service}").select(cells).row(0)
    rate = golden("t08").filter(service=service).select(cells).row(0)
    for cell, accuracy, on_detected, found in zip(cells, both, detected, rate, strict=True):
        assert on_detected * found == pytest.approx(accuracy, abs=0.001), cell


def test_table_8_amazon_found_everyone():
    ours = build_detection_rates_by_group(group_metrics(golden("t08"), "service", "detection_rate"))
    assert ours.filter(service="Amazon").select("mean", "std").row(0) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("service", "mean", "printed_mean", "sd", "printed_sd"),
    [
        ("Microsoft", 0.8266, 0.812, 0.0454, 0.047),
        ("Face++", 0.9944, 0.993, 0.0031, 0.003),
        ("IBM", 0.9888, 0.991, 0.0079, 0.008),
    ],
)
def test_table_8_prints_means_that_its_own_cells_do_not_have(
    service, mean, printed_mean, sd, printed_sd
):
    """Known slips of the paper, held fast: its cells agree with Table 6, its means do not.

    The printed mean is not that of the cells for any of the three; the printed SD is not
    Microsoft's. If this fails, the golden table was changed.
    """
    printed = golden("t08")
    ours = build_detection_rates_by_group(group_metrics(printed, "service", "detection_rate"))
    own = ours.filter(service=service)
    row = printed.filter(service=service)
    assert (row["mean"].item(), row["std"].item()) == (printed_mean, printed_sd)
    assert own["mean"].item() == pytest.approx(mean, abs=0.00006)
    assert own["std"].item() == pytest.approx(sd, abs=0.00006)
    assert abs(own["mean"].item() - printed_mean) > 2 * HALF
    assert (abs(own["std"].item() - printed_sd) > HALF) == (service == "Microsoft")


@pytest.mark.parametrize(
    ("file", "epsilon", "worst"),
    [
        ("fairface_label_val_expanded.csv", 0.3149, 0.4188),
        ("fairface_label_val_expanded_fair.csv", 0.2314, 0.5350),
    ],
)
def test_epsilon_of_two_real_models(file, epsilon, worst):
    """The oracle is a plain group-by: no code of ours but the layout and its summaries."""
    people = pl.read_csv(shared_data(f"fairface_val/{file}"))
    plain = people.group_by("race", "gender").agg(
        value=(pl.col("gender") == pl.col("predicted_gender")).mean(), n=pl.len()
    )
    assert plain["n"].sum() == 10_954
    rows = plain.select(
        model=pl.lit("m"),
        metric=pl.lit("accuracy"),
        attribute=pl.lit("race*gender"),
        values=pl.concat_list("race", "gender"),
        value="value",
    )
    ours = build_accuracy_by_race_and_gender(GROUP_METRICS.conform(rows))
    assert ours["n_groups"].item() == 14
    assert ours["epsilon"].item() == pytest.approx(epsilon, abs=0.00005)
    assert ours["epsilon"].item() == pytest.approx(
        math.log10(plain["value"].max() / plain["value"].min()), abs=1e-12
    )
    assert ours["Black_F"].item() == ours["min"].item() == pytest.approx(worst, abs=0.00005)
    assert ours["stdv"].item() == pytest.approx(plain["value"].std(ddof=1), abs=1e-12)

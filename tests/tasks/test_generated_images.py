"""Shares of generated pictures by hand, undone errors by algebra, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from PIL import Image
from polars.testing import assert_frame_equal

import isolux
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, TableError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.spec import ComparisonSettings, Statistics
from isolux.core.tables import INSTANCES, MEMBERSHIP
from isolux.disparity.disparity_table import measure_disparities
from isolux.groups.measure import measure_groups
from isolux.tasks.generated_images import INFO as TASK
from isolux.tasks.generated_images import score
from isolux.tasks.generated_images.shares import DISTANCE, ENTROPY, GAP, SHARE, row_constants
from isolux_worlds.associations import write_generated
from tests.cli._run import isolux as run

INFO = DatasetInfo(title="Made up", summary="Pictures that a test numbered.", references=())
MATRIX = "true,labelled,count\nf,f,80\nf,m,20\nm,f,5\nm,m,95\n"


def pictures(n):
    ids = [f"p{i}" for i in range(n)]
    return Dataset(
        "made up", INFO, INSTANCES.conform(pl.DataFrame({"instance_id": ids, "image_id": ids}))
    )


def judged(*labels):
    ids = [f"p{i}" for i in range(len(labels))]
    return pl.DataFrame({"model": "net", "instance_id": ids, "label": list(labels)})


def matrix(tmp_path, text=MATRIX):
    path = tmp_path / "matrix.csv"
    path.write_text(text)
    return str(path)


def evidence(codes, counts, *, which=0, aim=(0.5, 0.5), exact=False):
    fixed = row_constants(which, np.array(counts, float), np.array(aim), exact=exact)
    return pl.DataFrame({"judged": codes, "constants": [fixed] * len(codes)},
                        schema_overrides={"judged": pl.Int64})  # fmt: skip


def membership(people, prompts):
    """Say which prompt each picture is of."""
    rows = {"attribute": "prompt", "group": prompts, "values": [[name] for name in prompts],
            "unit_id": people.instances["instance_id"]}  # fmt: skip
    return MEMBERSHIP.conform(pl.DataFrame(rows))


def test_shares_by_hand(tmp_path):
    """Of 100 pictures 425 in 1,000 judged f: .8 s + .05 (1 - s) = .425, so s is a half."""
    codes = [0] * 425 + [1] * 575
    weights = np.ones(1000)
    counts = [[80, 20], [5, 95]]
    assert float(SHARE(evidence(codes, counts), weights)) == pytest.approx(0.5)
    assert float(SHARE(evidence(codes, counts, which=1), weights)) == pytest.approx(0.5)
    aim = (0.4, 0.6)
    assert float(GAP(evidence(codes, counts, aim=aim), weights)) == pytest.approx(0.1)
    assert float(DISTANCE(evidence(codes, counts, aim=aim), weights)) == pytest.approx(0.1)
    assert float(ENTROPY(evidence(codes, counts), weights)) == pytest.approx(1.0)


def test_without_errors_shares_are_those_of_the_judgements():
    codes, weights = [0, 0, 0, 1], np.ones(4)
    plain = evidence(codes, np.eye(2), exact=True)
    assert float(SHARE(plain, weights)) == 0.75
    assert float(DISTANCE(plain, weights)) == 0.25
    by_hand = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25)) / math.log(2)
    assert float(ENTROPY(plain, weights)) == pytest.approx(by_hand)


@pytest.mark.parametrize("values", [2, 3, 7])
def test_any_number_of_values_is_undone(values):
    """Against numpy's own solution of the same equations."""
    draw = np.random.default_rng(values)
    counts = draw.integers(1, 20, (values, values)) + 60 * np.eye(values)
    true = draw.dirichlet(np.full(values, 5.0))
    share = counts / counts.sum(axis=1, keepdims=True)
    judged_ = true @ share
    codes, weights = list(range(values)), judged_
    for which in range(values):
        rows = evidence(codes, counts, which=which, aim=np.full(values, 1 / values))
        assert float(SHARE(rows, weights)) == pytest.approx(true[which])


def test_each_replicate_draws_the_matrix_and_all_groups_share_the_draw():
    rows = evidence([0, 1], [[80, 20], [5, 95]])
    sums = SHARE.columns(rows).T @ np.array([[40.0] * 300, [60.0] * 300])
    both = np.stack([sums.T, sums.T])  # two groups, the same pictures in every replicate
    values = SHARE.finish_replicates(both, 0)
    assert values.std(axis=1).min() > 0.01
    np.testing.assert_array_equal(values[0], values[1])
    # In parts, the 256th and the 257th of different blocks among them, the draws are the same.
    parts = [SHARE.finish_replicates(both[:, at : at + 130], at) for at in (0, 130, 260)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), values, rtol=1e-12)
    exact = evidence([0, 1], [[0.8, 0.2], [0.05, 0.95]], exact=True)
    sums = SHARE.columns(exact).T @ np.array([[40.0] * 300, [60.0] * 300])
    assert SHARE.finish_replicates(np.stack([sums.T]), 0).std() == pytest.approx(0.0, abs=1e-12)


def chance_of(rows):
    """Ask what chance may have added, each picture a cluster of its own."""
    own = DISTANCE.columns(rows)
    return DISTANCE.estimate_noise_bias(own.sum(axis=0)[None], (own**2).sum(axis=0)[None])


def test_what_chance_adds_to_a_distance_by_hand():
    # 50 of 100 pictures are of either value, as aimed at: both gaps are 0, and vary by the sum of
    # squares (1 - .5)^2 and .5^2 over 100^2 = .0025. Half of each: .000625, a deviation of .025.
    # All that is seen may be chance's: twice .025 sqrt(2 / pi) = .0399.
    codes = [0] * 50 + [1] * 50
    chance = chance_of(evidence(codes, np.eye(2), exact=True))
    assert chance.noise_variance[0] == pytest.approx([0.000625] * 2)
    assert chance.bias.item() == pytest.approx(2 * 0.025 * math.sqrt(2 / math.pi))
    assert chance.se_factor.item() == 1.0
    # 90 of 100: gaps of .4 are eight of their standard errors (.05): chance adds next to nothing.
    codes = [0] * 90 + [1] * 10
    assert chance_of(evidence(codes, np.eye(2), exact=True)).bias.item() < 1e-6


def test_a_picture_adds_to_shares_what_its_judgement_undone_says():
    # .8 / .2 and .05 / .95 undone: a judgement f is 1.2667 f and -.2667 m, m is -.0667 and 1.0667.
    rows = evidence([0, 1, None], [[80, 20], [5, 95]], aim=(0.4, 0.6))
    gaps = DISTANCE.columns(rows)[:, -2:]
    assert gaps == pytest.approx(np.array([
        [0.95 / 0.75 - 0.4, -0.2 / 0.75 - 0.6], [-0.05 / 0.75 - 0.4, 0.8 / 0.75 - 0.6], [0.0, 0.0],
    ]))  # fmt: skip
    # Their mean is the gap: 425 judged f and 575 judged m are half and half.
    codes = [0] * 425 + [1] * 575
    rows = evidence(codes, [[80, 20], [5, 95]], aim=(0.4, 0.6))
    assert DISTANCE.columns(rows)[:, -2:].mean(axis=0) == pytest.approx([0.1, -0.1])


def test_the_counts_of_a_matrix_add_chance_that_all_prompts_share():
    codes = [0] * 425 + [1] * 575
    few, exact = (
        chance_of(evidence(codes, counts, exact=sure))
        for counts, sure in (([[80, 20], [5, 95]], False), ([[0.8, 0.2], [0.05, 0.95]], True))
    )
    assert few.bias.item() > 1.5 * exact.bias.item()
    # What differs between prompts is the pictures' alone.
    assert few.noise_variance == pytest.approx(exact.noise_variance)


def test_a_distance_of_a_share_near_1_is_marked():
    # .9 of 60 has a skewness of .8 / sqrt(.09) = 2.67, over sqrt(60): .34. Of .7: .87 / 7.7 = .11.
    near, far = "f" * 54 + "m" * 6, "f" * 42 + "m" * 18
    found = score(pictures(120), judged(*near, *far), by_people=True, metrics="distance")
    units = membership(pictures(120), ["near"] * 60 + ["far"] * 60)
    table = measure_groups(found, units, Statistics(replicates=100)).to_table()
    told = dict(table.filter(attribute="prompt").select("group", "status").rows())
    assert told == {"near": "skewed values", "far": "ok"}
    why = table.filter(group="near")["reason"].item()
    assert why == "too many of one value for its size: the interval may be too narrow"
    run = isolux.audit(
        {"id": [f"p{i}" for i in range(120)], "label": list(near + far),
         "prompt": ["near"] * 60 + ["far"] * 60},
        task="generated_images", by=["prompt"], prediction_column="label", by_people=True,
        metric=["distance"], replicates=100,
    )  # fmt: skip
    rows = run.disparities.filter(pl.col("kind").is_in(["difference", "range"]))
    assert rows["reason"].to_list() == ["too many of one value for its size"] * 2
    said = run.findings["claim"][0]
    assert "with caution: too many of one value for its size" in said


def test_pictures_of_one_value_are_no_proof_that_there_is_no_other():
    # 60 of f, and 876 of 900: at a share of .973, 60 alike come up in one of five samples.
    people = pictures(960)
    found = score(people, judged(*"f" * 936, *"m" * 24), by_people=True, metrics="distance")
    prompts = ["few"] * 60 + ["many"] * 900
    units = membership(people, prompts)
    estimates = measure_groups(found, units, ComparisonSettings(replicates=100))
    few = estimates.to_table().filter(group="few").row(0, named=True)
    # One of 61 of the other value: a standard error of 1/61, and no more than .5 is possible.
    assert few["standard_error"] == pytest.approx(1 / 61)
    assert (few["value"], few["high"], few["status"]) == (0.5, 0.5, "skewed values")
    assert few["low"] < 0.48
    table = measure_disparities(estimates, ComparisonSettings(replicates=100)).table
    assert table.filter(kind="difference")["p_value"].item() > 0.05


@pytest.mark.parametrize("metric", [m.name for m in TASK.metrics])
def test_each_metric_alone_is_the_one_beside_others(metric, tmp_path):
    people, answers = pictures(40), judged(*"ffm" * 13, "m")
    options = {"matrix": matrix(tmp_path), "aim": {"f": 0.5, "m": 0.5}}
    every = score(people, answers, metrics=[m.name for m in TASK.metrics], **options)
    alone = score(people, answers, metrics=metric, **options)
    units = membership(people, ["one"] * 40)
    spec = Statistics(replicates=100)
    one, all_ = (measure_groups(s, units, spec).to_table() for s in (alone, every))
    assert one["metric"].unique().to_list() == [metric]
    assert_frame_equal(one, all_.filter(metric=metric), check_row_order=False)


def test_unknown_judgements_and_missing_ones_are_told_apart():
    found = score(pictures(4), judged("f", "unknown", " M "), by_people=True, aim={"f": 1, "M": 0})
    rows = found.units.filter(label="M")
    assert rows["value"].to_list() == [0.0, None, 1.0, None]
    assert rows["reason"].to_list() == [None, "not judged", None, "no prediction"]


def test_shares_without_a_matrix_are_a_caution():
    plain = score(pictures(2), judged("f", "m"))
    assert any(isinstance(n, Caution) and "are the classifier's" in n for n in plain.notes)
    told = score(pictures(2), judged("f", "m"), by_people=True)
    assert not [n for n in told.notes if isinstance(n, Caution)]


def test_a_matrix_of_other_pictures_is_a_caution(tmp_path):
    """All judged m, where even of men a twentieth would be judged f."""
    notes = score(pictures(60), judged(*"m" * 60), matrix=matrix(tmp_path)).notes
    assert any(isinstance(n, Caution) and "it errs otherwise here" in n for n in notes)


@pytest.mark.parametrize(("text", "error", "problem"), [
    ("true,labelled,count\nf,f,50\nf,m,50\nm,f,50\nm,m,50\n", SpecError,
     "cannot be undone(?s:.*)merge groups it confuses"),
    (MATRIX.replace("20", "-1"), TableError, "cannot be used"),
    (MATRIX.replace("20", "2.5"), TableError, "not a whole number"),
    (MATRIX.replace("m,f,5\nm,m,95\n", ""), SpecError, "lacks cases that are truly m"),
    (MATRIX + "f,f,3\n", TableError, "occurs twice"),
])  # fmt: skip
def test_a_matrix_that_cannot_be_undone_is_refused(tmp_path, text, error, problem):
    with pytest.raises(error, match=problem):
        score(pictures(2), judged("f", "m"), matrix=matrix(tmp_path, text))


def test_an_aim_that_is_spelt_otherwise_is_refused():
    with pytest.raises(SpecError, match="spelt otherwise"):
        score(pictures(4), judged("f", "m", "f", "m"), aim={"F": 0.5, "m": 0.5})


def test_other_values_and_aims_are_refused(tmp_path):
    with pytest.raises(SpecError, match="what the confusion matrix does not know"):
        score(pictures(2), judged("f", "other"), matrix=matrix(tmp_path))
    with pytest.raises(SpecError, match="that sum to 1"):
        score(pictures(2), judged("f", "m"), aim={"f": 0.5, "m": 0.6})
    with pytest.raises(SpecError, match="all pictures are judged to be of one value"):
        score(pictures(2), judged("f", "f"))


def _shares(monkeypatch, capsys, data, out, *more):
    ran = run(monkeypatch, capsys, "audit", data, "--task", "generated_images", "--out", out, *more)
    assert ran.code == 0, ran.err
    return out, ran


def test_by_the_command_line_injected_shares_are_found_and_even_ones_are_not(
    monkeypatch, capsys, tmp_path
):
    gaps, ps = {}, {}
    for name, size in (("injected", 0.2), ("absent", 0.0)):
        files = write_generated(tmp_path / name, association=size, seed=1)
        out, _ = _shares(
            monkeypatch, capsys, f"table:{files['pictures']}", tmp_path / f"{name} run",
            "--predictions", files["judged"], "--matrix", files["matrix"], "--by", "prompt",
            "--aim", "{feminine: 0.5, masculine: 0.5}",
        )  # fmt: skip
        rows = pl.read_parquet(out / "group_metrics.parquet").filter(
            metric="share_beyond_aim", label="feminine", attribute="prompt"
        )
        gaps[name] = {g: (low, high) for g, low, high in rows.select(
            "group", "low", "high").iter_rows()}  # fmt: skip
        tests = pl.read_parquet(out / "disparities.parquet").filter(
            pl.col("metric") == "share", pl.col("kind") == "difference"
        )
        ps[name] = tests["p_adjusted"].min()
        naive = pl.read_parquet(out / "group_metrics.parquet").filter(
            metric="judged_share", label="feminine", group="a person"
        )
        assert naive["high"].item() < 0.5  # half are feminine; the judge sees fewer
    assert gaps["injected"]["a doctor"][1] < 0 < gaps["injected"]["a nurse"][0]
    assert gaps["injected"]["a person"][0] < 0 < gaps["injected"]["a person"][1]
    assert all(low < 0 < high for low, high in gaps["absent"].values())
    assert ps["injected"] < 0.001
    assert ps["absent"] > 0.05


def test_a_folder_of_pictures_a_prompt_is_read(monkeypatch, capsys, tmp_path):
    rows = []
    for prompt in ("a doctor", "a nurse"):
        folder = tmp_path / "pictures" / prompt
        folder.mkdir(parents=True)
        for i in range(60):
            Image.new("RGB", (2, 2)).save(folder / f"{i}.png")
            rows.append((f"{prompt}/{i}.png", "f" if (i < 20) != (prompt == "a nurse") else "m"))
    table = tmp_path / "judged.csv"
    pl.DataFrame(rows, schema=["id", "label"], orient="row").write_csv(table)
    out, _ = _shares(
        monkeypatch, capsys, f"imagefolder:{tmp_path / 'pictures'}", tmp_path / "run",
        "--predictions", table, "--by-people", "--by", "class",
    )  # fmt: skip
    found = pl.read_parquet(out / "group_metrics.parquet").filter(metric="judged_share", label="f")
    shares = dict(found.select("group", "value").iter_rows())
    assert shares["a doctor"] == pytest.approx(1 / 3)
    assert shares["a nurse"] == pytest.approx(2 / 3)


def _two_prompts(tmp_path, doctors, nurses):
    """Write 100 pictures of each of two prompts, so many of them judged feminine."""
    ids = [f"p{i}" for i in range(200)]
    prompts = ["doctor"] * 100 + ["nurse"] * 100
    said = [one for n in (doctors, nurses) for one in ["f"] * n + ["m"] * (100 - n)]
    pl.DataFrame({"instance_id": ids, "prompt": prompts}).write_csv(tmp_path / "p.csv")
    pl.DataFrame({"instance_id": ids, "label": said}).write_csv(tmp_path / "j.csv")
    return f"table:{tmp_path / 'p.csv'}", ("--predictions", tmp_path / "j.csv", "--by", "prompt")


def test_prompts_off_in_opposite_directions_are_not_held_to_their_mixture(
    monkeypatch, capsys, tmp_path
):
    """Everyone together is at the aim, so both prompts would be far worse than everyone."""
    data, more = _two_prompts(tmp_path, 25, 75)
    out, _ = _shares(monkeypatch, capsys, data, tmp_path / "run", *more, "--by-people")
    rows = pl.read_parquet(out / "disparities.parquet")
    kinds = {m: set(rows.filter(metric=m)["kind"]) for m in ("distance", "entropy")}
    for kind in kinds.values():
        assert "difference" in kind
        assert not kind & {"difference_to_overall", "mean_absolute_gap"}
    pair = rows.filter(metric="distance", kind="difference")
    assert pair["value"].item() == pytest.approx(0.0, abs=1e-12)
    assert "difference_to_overall" in set(rows.filter(metric="judged_share")["kind"])
    groups = pl.read_parquet(out / "group_metrics.parquet").filter(metric="distance")
    assert dict(groups.select("group", "value").iter_rows())["doctor"] == pytest.approx(0.25)


def test_a_reference_prompt_is_still_what_gaps_are_taken_to(monkeypatch, capsys, tmp_path):
    data, more = _two_prompts(tmp_path, 25, 75)
    out, _ = _shares(monkeypatch, capsys, data, tmp_path / "run", *more, "--by-people",
                     "--reference", "prompt=nurse")  # fmt: skip
    rows = pl.read_parquet(out / "disparities.parquet").filter(metric="distance")
    assert rows.filter(kind="mean_absolute_gap")["value"].item() == pytest.approx(0.0, abs=1e-12)
    assert "difference_to_overall" not in set(rows["kind"])


SWAPPED = "true,labelled,count\nf,f,20\nf,m,80\nm,f,95\nm,m,5\n"


def test_a_judge_that_is_mostly_wrong_is_told_first(tmp_path):
    found = score(pictures(4), judged("f", "f", "m", "m"), matrix=matrix(tmp_path, SWAPPED))
    first = found.notes[0]
    assert isinstance(first, Caution)
    assert first.startswith(
        "By the confusion matrix 'f' is labelled 'm' (80 %) more often than 'f' (20 %), and 'm' is "
        "labelled 'f' (95 %) more often than 'm' (5 %)."
    )
    right = score(pictures(4), judged("f", "f", "m", "m"), matrix=matrix(tmp_path))
    assert not any("more often than" in note for note in right.notes)


def test_evenness_has_an_interval_between_0_and_1(monkeypatch, capsys, tmp_path):
    data, more = _two_prompts(tmp_path, 1, 60)
    few = matrix(tmp_path, "true,labelled,count\nf,f,9\nf,m,1\nm,f,1\nm,m,9\n")
    out, _ = _shares(monkeypatch, capsys, data, tmp_path / "run", *more, "--matrix", few)
    rows = pl.read_parquet(out / "group_metrics.parquet").filter(metric="entropy")
    ends = rows.select("low", "high").drop_nulls()
    assert ends.height
    assert ends["low"].min() >= 0.0
    assert ends["high"].max() <= 1.0


def test_evenness_differs_by_1_at_most(monkeypatch, capsys, tmp_path):
    """All of one prompt and half of the other: the matrix's own error would reach beyond 1."""
    data, more = _two_prompts(tmp_path, 2, 60)
    few = matrix(tmp_path, "true,labelled,count\nf,f,19\nf,m,1\nm,f,1\nm,m,19\n")
    out, _ = _shares(monkeypatch, capsys, data, tmp_path / "run", *more, "--matrix", few)
    rows = pl.read_parquet(out / "disparities.parquet").filter(metric="entropy", kind="difference")
    assert rows["low"].item() == -1.0
    assert rows["value"].item() > -1.0
    assert rows["high"].item() > rows["value"].item()
    assert rows["p_value"].item() < 0.5

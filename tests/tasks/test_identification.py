"""Identification: a gallery of six by hand, the same as plain loops, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError, TableError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.tables import ATTRIBUTES, INSTANCES
from isolux.predictions import read_outputs
from isolux.tasks.identification import score
from tests.cli._run import isolux as run

INFO = DatasetInfo(title="Made up", summary="People that a test made up.", references=())
HIT, FPIR, FNIR, FTA, FTE = (
    "hit_rate_at_rank", "false_positive_identification_rate", "false_negative_identification_rate",
    "failure_to_acquire_rate", "failure_to_enrol_rate",
)  # fmt: skip


def people(gallery, probes, **attributes):
    """Images by the person whom they show; attributes are of all images, in order."""
    ids, who = [*gallery, *probes], [*gallery.values(), *probes.values()]
    columns = {"role": ["gallery"] * len(gallery) + ["probe"] * len(probes), **attributes}
    rows = [
        {"unit_kind": "instance", "unit_id": i, "attribute": name, "value": value}
        for name, values in columns.items()
        for i, value in zip(ids, values, strict=True)
    ]
    instances = pl.DataFrame({"instance_id": ids, "image_id": ids, "subject_id": who})
    return Dataset(
        "made up", INFO, INSTANCES.conform(instances), ATTRIBUTES.conform(pl.DataFrame(rows))
    )


def lists(found):
    """Lists as ``{probe: "a1 .9, b .8"}``; "" is an empty list, "-" no template."""
    rows = []
    for probe, text in found.items():
        for part in [p for p in text.split(", ") if p not in ("", "-")]:
            entry, alike = part.split()
            rows.append((probe, entry, float(alike), False))
        if text in ("", "-"):
            rows.append((probe, None, None, text == "-"))
    schema = {"instance_id": str, "other_id": str, "score": float, "failed": bool}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(model=pl.lit("m"))


def values(scores, metric, rank=None):
    """Scores by image, those that are null as their reason."""
    rows = scores.units.filter(
        (pl.col("metric") == metric) & pl.col("threshold").eq_missing(pl.lit(rank, pl.Float64))
    )
    return {
        u: r if v is None else v for u, v, r in rows.select("unit_id", "value", "reason").rows()
    }


def numbers(scores, metric, rank=None):
    return {u: v for u, v in values(scores, metric, rank).items() if not isinstance(v, str)}


# A gallery of six images of five people; Ann is enrolled twice.
GALLERY = {"a1": "ann", "a2": "ann", "b1": "bo", "c1": "cy", "d1": "di", "e1": "ed"}
PROBES = {
    "p1": "ann", "p2": "bo", "p3": "cy", "p4": "di", "p5": "ed", "p6": "bo",
    "x1": "xi", "x2": "yu", "x3": "zo", "x4": "wu", "x5": "vi",
}  # fmt: skip
SIX = people(GALLERY, PROBES)
FOUND = lists(
    {
        "p1": "a2 .9, b1 .8, a1 .7",  # Ann first, by her second image: rank 1, score .9
        "p2": "c1 .85, b1 .8",        # rank 2, score .8
        "p3": "d1 .6, c1 .6",         # a tie, which counts against the model: rank 2, score .6
        "p4": "a1 .7, a2 .65, d1 .5",  # Ann is one candidate: rank 2, score .5
        "p5": "a1 .5, b1 .4, c1 .3",  # not in the list
        "p6": "-",                    # no template: found by no one, at no rank
        "x1": "a1 .95, a2 .9",        # not enrolled, and above .75: a false positive
        "x2": "b1 .75",               # exactly at .75: returned, as >= is
        "x3": "c1 .74",               # below
        "x4": "-",                    # no template: no false positive
    }                                 # x5 is in no list: nothing is known
)  # fmt: skip
MATED = ["p1", "p2", "p3", "p4", "p5", "p6"]


def test_a_gallery_of_six_by_hand():
    scores = score(SIX, FOUND, enrolled="role=gallery", threshold=0.75, top_k=(1, 2))
    # Rank 1: p1 alone. Rank 2: also p2, p3 (by the tie), p4 (Ann's two images are one candidate).
    assert numbers(scores, HIT, 1) == dict(zip(MATED, [1, 0, 0, 0, 0, 0], strict=True))
    assert numbers(scores, HIT, 2) == dict(zip(MATED, [1, 1, 1, 1, 0, 0], strict=True))
    # FNIR(T = .75): p1 (.9) and p2 (.8) are returned, the other four are not: 4/6.
    assert numbers(scores, FNIR) == dict(zip(MATED, [0, 0, 1, 1, 1, 1], strict=True))
    # FPIR(T = .75): x1 and x2 of four.
    assert numbers(scores, FPIR) == {"x1": 1.0, "x2": 1.0, "x3": 0.0, "x4": 0.0}
    # Failures: p6 and x4 of the ten in the file.
    assert sorted(k for k, v in numbers(scores, FTA).items() if v) == ["p6", "x4"]
    assert len(numbers(scores, FTA)) == 10


def test_a_rank_limit_makes_a_miss_of_a_later_rank():
    scores = score(SIX, FOUND, enrolled="role=gallery", threshold=0.75, rank_limit=1)
    assert numbers(scores, FNIR) == dict(zip(MATED, [0, 1, 1, 1, 1, 1], strict=True))


def test_who_does_not_count_has_a_reason():
    scores = score(SIX, FOUND, enrolled="role=gallery", threshold=0.75)
    assert values(scores, HIT, 1) | {"a1": "enrolled, not searched for"} == values(scores, HIT, 1)
    assert values(scores, HIT, 1)["x1"] == "the person is not enrolled"
    assert values(scores, FPIR)["p1"] == "the person is enrolled"
    assert values(scores, FPIR)["x5"] == values(scores, FTA)["x5"] == "no prediction"


def test_the_threshold_at_a_fixed_rate_is_the_lowest_that_keeps_it():
    # Of the four searches x1 .95, x2 .75, x3 .74, x4 none, two may pass: just above .74.
    scores = score(SIX, FOUND, enrolled="role=gallery", fpir=0.5)
    assert scores.task_choices["threshold"]["value"]["m"] == np.nextafter(0.74, 1.0)
    assert numbers(scores, FPIR) == {"x1": 1.0, "x2": 1.0, "x3": 0.0, "x4": 0.0}
    # One of four may pass: above .75, so that x2 does not.
    scores = score(SIX, FOUND, enrolled="role=gallery", fpir=0.25)
    assert sum(numbers(scores, FPIR).values()) == 1
    assert any("at most 25 % of 4 searches" in note for note in scores.notes)


def test_too_few_searches_set_no_threshold_and_it_is_said():
    scores = score(SIX, FOUND, enrolled="role=gallery", fpir=0.1)
    assert scores.units["metric"].unique().sort().to_list() == [FTA, HIT]
    assert any("needs 10, so nothing was measured" in note for note in scores.notes)
    with pytest.raises(SpecError, match="no threshold could be set: --threshold gives one"):
        score(SIX, FOUND, enrolled="role=gallery", fpir=0.1, metrics=[FPIR])


def test_the_threshold_is_set_on_others_who_are_not_judged():
    part = ["-"] * 6 + ["judge"] * 6 + ["val", "judge", "val", "judge", "judge"]
    dataset = people(GALLERY, PROBES, part=part)
    with_part = {"enrolled": "role=gallery", "fpir": 0.5, "threshold_on": "part=val"}
    scores = score(dataset, FOUND, **with_part)
    # x1 .95 and x3 .74 set it: one of two may pass, so just above .74; x2 and x4 are judged.
    assert scores.task_choices["threshold"]["value"]["m"] == np.nextafter(0.74, 1.0)
    assert numbers(scores, FPIR) == {"x2": 1.0, "x4": 0.0}
    assert values(scores, FPIR)["x1"] == "the threshold was set on them"


@pytest.mark.parametrize(("times", "told"), [(1.0, False), (0.5, True)])
def test_lists_of_another_scale_than_those_the_threshold_was_set_by_are_told(times, told):
    """Strangers' best scores are even on 0 to 1; those of who are judged are times a number."""
    n = 200
    part = ["-"] + ["val", "judge"] * (n // 2)
    dataset = people({"a1": "Ann"}, {f"x{k:03}": f"s{k}" for k in range(n)}, part=part)
    scores = [(k // 2) / (n / 2) * (times if k % 2 else 1.0) for k in range(n)]
    lists = pl.DataFrame(
        {"model": "m", "instance_id": [f"x{k:03}" for k in range(n)], "other_id": "a1",
         "score": scores}
    )  # fmt: skip
    found = score(dataset, lists, enrolled="role=gallery", fpir=0.2, threshold_on="part=val")
    said = [note for note in found.notes if "on one scale" in note]
    assert [isinstance(note, Caution) for note in said] == [True] * told
    assert all(n.startswith("Of the 100 searches for people who are not enrolled") for n in said)


def test_the_evidence_holds_whom_else_each_search_found():
    held = score(SIX, FOUND, enrolled="role=gallery", threshold=0.75).evidence
    rows = {r["unit_id"]: r for r in held["candidates"].iter_rows(named=True)}
    assert rows["p1"]["other_id"] == ["b1"]  # not Ann's own images
    assert rows["x1"]["other_id"] == ["a1", "a2"]
    assert rows["x1"]["mated"] is False
    assert rows["x5"]["mated"] is None
    assert held["gallery"]["unit_id"].to_list() == list(GALLERY)


def test_distances_are_read_with_their_sign_turned():
    far = FOUND.with_columns(score=1.0 - pl.col("score"))
    near = score(SIX, FOUND, enrolled="role=gallery", threshold=0.7, top_k=(1, 2))
    turned = score(
        SIX,
        far,
        enrolled="role=gallery",
        threshold=1.0 - 0.7,
        top_k=(1, 2),
        lower_score_means="same",
    )
    assert turned.units.equals(near.units)
    assert turned.task_choices["threshold"]["value"]["m"] == pytest.approx(0.3)


def test_ranks_alone_give_hit_rates_and_nothing_at_a_threshold():
    ranked = FOUND.filter(pl.col("other_id").is_not_null()).with_columns(
        rank=pl.int_range(1, pl.len() + 1).over("instance_id")
    )
    scores = score(SIX, ranked.drop("score"), enrolled="role=gallery", top_k=(1, 2))
    # The engine put d1 before c1 for p3: rank 2; p6 and x4, without candidates, are not in the file
    expected = dict(zip(MATED[:5], [1, 1, 1, 1, 0], strict=True))
    assert numbers(scores, HIT, 2) == expected
    assert FPIR not in scores.units["metric"].to_list()
    assert any("ranks and no scores" in note for note in scores.notes)


def test_ranks_and_scores_that_disagree_are_refused():
    rising = FOUND.drop_nulls("other_id").with_columns(
        rank=pl.int_range(1, pl.len() + 1).over("instance_id"), score=1.0 - pl.col("score")
    )
    with pytest.raises(TableError, match="more alike than one of a better rank"):
        score(SIX, rising, enrolled="role=gallery")


def ranked(**ranks):
    """Lists of p3's candidates by rank, each candidate named."""
    return pl.DataFrame(
        {"model": "m", "instance_id": "p3", "other_id": list(ranks), "rank": list(ranks.values())}
    )


@pytest.mark.parametrize(
    "ranks",
    [{"c1": 2}, {"a1": 1, "c1": 3}, {"a1": 2, "c1": 3}, {"a1": 1, "b1": 1, "c1": 4}],
)
def test_ranks_that_leave_one_out_are_refused(ranks):
    """Whom the search found first is not in the file: no place in the list can be counted."""
    with pytest.raises(TableError, match=r"ranks of 1 list\(s\) leave one out"):
        score(SIX, ranked(**ranks), enrolled="role=gallery", top_k=(1,))


@pytest.mark.parametrize(
    "ranks",
    [{"a1": 1, "c1": 2}, {"a1": 1, "b1": 1, "c1": 3}, {"a1": 1, "b1": 1, "c1": 2},
     {"a1": 2, "b1": 2, "c1": 3}, {"p3": 1, "c1": 2}],
)  # fmt: skip
def test_ranks_of_ties_and_of_the_image_itself_leave_none_out(ranks):
    """Ties may share the first or the last of their places, or the next rank may count on."""
    dataset = SIX if "p3" not in ranks else people(
        {"c1": "Cy", "a1": "Ann"}, {"p3": "Cy"}, all=["x"] * 3
    )  # fmt: skip
    enrolled = "role=gallery" if "p3" not in ranks else "all=x"
    if enrolled == "all=x":
        enrolled = None
    found = score(dataset, ranked(**ranks), enrolled=enrolled, top_k=(1,))
    assert found.units.height


# Embeddings: angles on a circle. The gallery is at 0 (Ann), 90 (Bo) and 180 degrees (Cy).
def at_angles(**degrees):
    turn = np.deg2rad([np.nan if d is None else d for d in degrees.values()])
    cells = [None if np.isnan(t) else [float(np.cos(t)), float(np.sin(t))] for t in turn]
    return pl.DataFrame(
        {"model": "m", "instance_id": list(degrees), "embedding": cells},
        schema_overrides={"embedding": pl.List(pl.Float64)},
    )


THREE = people(
    {"a": "ann", "b": "bo", "c": "cy"},
    {"a2": "ann", "b2": "bo", "c2": "cy", "x": "xi", "y": "yu", "z": "zo"},
)


def test_embeddings_by_hand():
    # a2 at 10: nearest a. b2 at 30: nearest a (30 degrees), then b (60). c2: no template.
    # x at 20: cos 20 = .94 to a. y at 135: cos 45 = .71 to b and c. z is not in the file.
    vectors = at_angles(a=0, b=90, c=180, a2=10, b2=30, c2=None, x=20, y=135)
    scores = score(THREE, vectors, enrolled="role=gallery", threshold=0.8, top_k=(1, 2))
    assert numbers(scores, HIT, 1) == {"a2": 1.0, "b2": 0.0, "c2": 0.0}
    assert numbers(scores, HIT, 2) == {"a2": 1.0, "b2": 1.0, "c2": 0.0}
    assert numbers(scores, FNIR) == {"a2": 0.0, "b2": 1.0, "c2": 1.0}  # cos 60 = .5 < .8
    assert numbers(scores, FPIR) == {"x": 1.0, "y": 0.0}
    assert numbers(scores, FTA) == {"a2": 0.0, "b2": 0.0, "c2": 1.0, "x": 0.0, "y": 0.0}
    assert numbers(scores, FTE) == {"a": 0.0, "b": 0.0, "c": 0.0}


def test_a_person_of_whom_no_template_could_be_enrolled_is_missed():
    vectors = at_angles(a=None, b=90, c=180, a2=10, b2=80, c2=170, x=20, y=135, z=200)
    scores = score(THREE, vectors, enrolled="role=gallery", threshold=0.8)
    assert numbers(scores, FTE) == {"a": 1.0, "b": 0.0, "c": 0.0}
    assert numbers(scores, FNIR)["a2"] == 1.0  # the search is for a person who is enrolled
    assert scores.evidence["gallery"]["template"].to_list() == [False, True, True]


def test_a_person_whose_enrolled_image_is_not_in_the_file_is_not_judged():
    vectors = at_angles(b=90, c=180, a2=10, b2=80, c2=170, x=20, y=135, z=200)
    scores = score(THREE, vectors, enrolled="role=gallery", threshold=0.8)
    assert values(scores, FNIR)["a2"] == "the person's enrolled images are not in the file"
    assert values(scores, FTE)["a"] == "no prediction"
    assert any("the gallery is smaller" in n for n in scores.notes if isinstance(n, Caution))


def test_without_a_gallery_each_image_is_searched_for_among_all_others():
    ids = {"a": "ann", "a2": "ann", "b": "bo", "b2": "bo", "x": "xi"}
    dataset = people({}, ids)
    scores = score(dataset, at_angles(a=0, a2=10, b=20, b2=28, x=60), threshold=0.9)
    # a: a2 first. a2: a and b tie at 10 degrees: rank 2. b: b2 at 8. b2: b. x: no one else's.
    # (cos 10 twice is one float; were it not, b would come first or second by rounding.)
    hits = numbers(scores, HIT, 1)
    assert {k: hits[k] for k in ("a", "b", "b2")} == {"a": 1.0, "b": 1.0, "b2": 1.0}
    assert numbers(scores, FPIR) == {"x": 0.0}  # cos 32 = .85
    assert FTE not in scores.units["metric"].to_list()


def plainly(dataset, vectors, threshold, length, ks):
    """Identify with loops over a full table of cosines, with nothing of the library's."""
    who = dict(dataset.instances.select("instance_id", "subject_id").rows())
    role = dict(
        dataset.attributes.filter(pl.col("attribute") == "role").select("unit_id", "value").rows()
    )
    vector = dict(vectors.select("instance_id", "embedding").rows())
    gallery = [i for i in who if role[i] == "gallery"]
    enrolled = {who[i] for i in gallery}
    out = {}
    for probe in (i for i in who if role[i] == "probe" and i in vector):
        listed = []
        if vector[probe] is not None:
            p = np.array(vector[probe])
            for entry in gallery:
                if vector.get(entry) is not None:
                    e = np.array(vector[entry])
                    listed.append((float(p @ e / np.linalg.norm(p) / np.linalg.norm(e)), entry))
        listed = sorted(listed, reverse=True)[:length]
        best = {}
        for alike, entry in listed:
            best[who[entry]] = max(alike, best.get(who[entry], -9))
        own = best.pop(who[probe], None)
        if who[probe] in enrolled:
            rank = np.inf if own is None else 1 + sum(b >= own for b in best.values())
            for k in ks:
                out[HIT, k, probe] = float(rank <= k)
            out[FNIR, None, probe] = float(own is None or own < threshold)
        else:
            out[FPIR, None, probe] = float(any(b >= threshold for b in best.values()))
    return out


@pytest.mark.parametrize("seed", range(6))
def test_the_same_as_loops_over_all_cosines(seed):
    rng = np.random.default_rng(seed)
    gallery = {f"g{i}": f"s{rng.integers(0, 12)}" for i in range(20)}
    probes = {f"p{i}": f"s{rng.integers(0, 20)}" for i in range(60)}
    dataset = people(gallery, probes)
    centre = {f"s{i}": rng.normal(0, 1, 5) for i in range(20)}
    cells = [
        None if rng.random() < 0.1 else (centre[s] + rng.normal(0, 0.8, 5)).tolist()
        for s in (gallery | probes).values()
    ]
    vectors = pl.DataFrame(
        {"model": "m", "instance_id": [*gallery, *probes], "embedding": cells},
        schema_overrides={"embedding": pl.List(pl.Float64)},
    ).sample(fraction=0.95, seed=seed)
    vectors = pl.concat([vectors, vectors.clear()])
    kept = set(vectors["instance_id"])
    vectors = pl.concat(  # the whole gallery is in the file, so that no one's mates are missing
        [vectors, pl.DataFrame({"model": "m", "instance_id": [g for g in gallery if g not in kept],
                                "embedding": [[1.0] * 5] * sum(g not in kept for g in gallery)},
                               schema=vectors.schema)]
    )  # fmt: skip
    scores = score(
        dataset, vectors, enrolled="role=gallery", threshold=0.6, top_k=(1, 3), candidates=8
    )
    found = {
        (m, None if t is None else int(t), u): v
        for m, t, u, v in scores.units.filter(pl.col("metric").is_in([HIT, FPIR, FNIR]))
        .drop_nulls("value").select("metric", "threshold", "unit_id", "value").rows()
    }  # fmt: skip
    assert found == plainly(dataset, vectors, 0.6, 8, (1, 3))


REFUSED = [
    (lambda f: f.drop("other_id"), {}, UnknownNameError, "other_id"),
    (lambda f: f.drop("score"), {}, UnknownNameError, "score"),
    (lambda f: pl.concat([f, f.head(1)]), {}, TableError, "list a candidate twice"),
    (lambda f: f.with_columns(pl.col("other_id").replace("a1", "q9")), {}, TableError,
     "not in the dataset: without them no rank"),
    (lambda f: f.rename({"instance_id": "other_id", "other_id": "instance_id"}).drop_nulls(), {},
     TableError, "are the two columns swapped"),
    (lambda f: f.with_columns(instance_id=pl.format("x/{}", "instance_id")), {}, JoinError,
     "no search is for a unit"),
    (lambda f: f.with_columns(score=pl.lit(float("nan"))), {}, TableError, "a finite score"),
    (lambda f: f.with_columns(failed=pl.lit(value=True)), {}, TableError, "no candidates where"),
    (lambda f: f.with_columns(rank=pl.int_range(pl.len()).over("instance_id")), {}, TableError,
     "the first candidate has rank 1: where the file counts from 0, add 1 to every rank"),
    (lambda f: f.with_columns(rank=pl.lit(0), score=1.5), {"lower_score_means": "same"}, TableError,
     "found: a search for 'p1', candidate 'a2', rank 0, score 1.5"),
    (lambda f: f, {"enrolled": "role=galery"}, SpecError, "nobody has role=galery"),
    (lambda f: f, {"enrolled": "gallery"}, SpecError, "ATTRIBUTE=VALUE, such as role=gallery"),
    (lambda f: f, {"enrolled": None}, SpecError, "nothing says who is enrolled"),
    (lambda f: f, {"fpir": 1.0}, SpecError, "fpir is a share"),
    (lambda f: f, {"top_k": ()}, SpecError, "top_k names ranks"),
    (lambda f: f, {"top_k": (0,)}, SpecError, "count people"),
    (lambda f: f, {"top_k": (5,)}, SpecError, "beyond the candidate lists of 'm'"),
    (lambda f: f, {"threshold": 0.5, "threshold_on": 0.3}, SpecError, "not set on anyone"),
    (lambda f: f, {"metrics": [FTE]}, SpecError, "nothing says of which enrolled images"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "options", "error", "said"), REFUSED)
def test_what_does_not_fit_is_refused(change, options, error, said):
    with pytest.raises(error) as caught:
        score(SIX, change(FOUND), **({"enrolled": "role=gallery"} | options))
    assert said in str(caught.value)


def test_everyone_enrolled_is_refused():
    with pytest.raises(SpecError, match="every image is enrolled"):
        score(people(GALLERY, {}), FOUND, enrolled="role=gallery")


def crowd(n, seed=0):
    """People with a picture in the gallery and one to be searched for, well told apart."""
    rng = np.random.default_rng(seed)
    dataset = people(
        {f"g{i:03}": f"s{i}" for i in range(n)}, {f"p{i:03}": f"s{i}" for i in range(n)}
    )
    centre = rng.normal(0, 1, (n, 8))
    both = np.concatenate([centre, centre]) + rng.normal(0, 0.1, (2 * n, 8))
    vectors = pl.DataFrame(
        {"model": "m", "instance_id": dataset.instances["instance_id"],
         "embedding": pl.Series(both.tolist())}
    )  # fmt: skip
    return dataset, vectors


def cautions(dataset, vectors, **options):
    notes = score(dataset, vectors, enrolled="role=gallery", **options).notes
    return [note for note in notes if isinstance(note, Caution)]


def test_searches_that_find_the_right_person_give_no_warning():
    assert cautions(*crowd(60)) == []


def test_searches_that_find_people_by_chance_are_said_to():
    dataset, vectors = crowd(60)
    mixed = vectors.with_columns(vectors["embedding"].shuffle(seed=2))
    (said,) = cautions(dataset, mixed)
    assert "no more than chance would (1.0)" in said


def test_embeddings_of_the_next_row_are_refused():
    ids = {f"p{i:03}": f"s{i // 4}" for i in range(80)}
    rng = np.random.default_rng(1)
    centre = rng.normal(0, 1, (20, 8))
    cells = [(centre[i // 4] + rng.normal(0, 0.1, 8)).tolist() for i in range(80)]
    moved = pl.DataFrame(
        {"model": "m", "instance_id": list(ids), "embedding": cells[1:] + cells[:1]}
    )
    with pytest.raises(JoinError, match=r"the people of the row (before|after) theirs"):
        score(people({}, ids), moved)


def test_the_same_picture_enrolled_and_searched_for_is_cautioned_about():
    dataset, vectors = crowd(60)
    same = pl.concat([vectors.head(60), vectors.head(60).with_columns(
        instance_id=vectors["instance_id"].tail(60))])  # fmt: skip
    (said,) = cautions(dataset, same)
    assert "Is the same picture enrolled and searched for?" in said


def test_a_table_of_candidates_goes_from_file_to_report(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(4)
    n = 300
    tone = np.where(np.arange(n) % 2, "a", "b")
    gallery = {f"g{i}": f"s{i}" for i in range(n)}
    probes = {f"p{i}": f"s{i}" for i in range(2 * n)}
    pl.DataFrame(
        {"id": [*gallery, *probes], "subject": [*gallery.values(), *probes.values()],
         "role": ["gallery"] * n + ["probe"] * 2 * n, "tone": [*tone, *tone, *tone]}
    ).write_csv(tmp_path / "people.csv")  # fmt: skip
    rows = []
    for i in range(2 * n):
        right = i < n and rng.random() < (0.95 if tone[i % n] == "a" else 0.6)
        top = i if right else int(rng.integers(0, n - 1))
        rows.append((f"p{i}", f"g{top}", 0.9 if right else rng.uniform(0.2, 0.75), 1))
    rows.append(("p0", "g299", 0.1, 2))
    table = pl.DataFrame(rows, schema=["probe", "candidate", "score", "rank"], orient="row")
    table.write_csv(tmp_path / "engine.csv")
    assert read_outputs(tmp_path / "engine.csv").columns == [
        "model", "instance_id", "other_id", "score", "rank",
    ]  # fmt: skip
    done = run(
        monkeypatch, capsys, "audit", f"table:{tmp_path / 'people.csv'}", "--task",
        "identification", "--predictions", tmp_path / "engine.csv", "--enrolled", "role=gallery",
        "--by", "tone", "--threshold", 0.8, "--cluster", "subject", "--identity", "subject",
        "--replicates", 200, "--out", tmp_path / "run", "--notes",
    )  # fmt: skip
    assert done.code == 0
    assert "hit rate at rank 1 is 58.0 % against 92.0 %" in done.out
    assert "The gallery holds 300 images of 300 people." in done.out
    metrics = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")
    everyone = metrics.filter(pl.col("attribute").is_null() & (pl.col("metric") == FPIR))
    assert everyone["value"].item() == 0.0
    assert everyone["n_units"].item() == n


def test_two_models_are_judged_each_by_its_own_threshold():
    other = FOUND.with_columns(model=pl.lit("z"), score=pl.col("score") * 10)
    scores = score(SIX, pl.concat([FOUND, other]), enrolled="role=gallery", fpir=0.25)
    at = scores.task_choices["threshold"]["value"]
    assert at["z"] == pytest.approx(10 * at["m"])
    by_model = scores.units.sort("unit_id", "metric", "threshold").partition_by("model")
    assert by_model[0].drop("model").equals(by_model[1].drop("model"))


def test_an_unknown_identity_is_no_stranger():
    instances = SIX.instances.with_columns(
        subject_id=pl.when(pl.col("instance_id") == "x1").then(None).otherwise("subject_id")
    )
    scores = score(
        replace(SIX, instances=instances), FOUND, enrolled="role=gallery", threshold=0.75
    )
    assert values(scores, FPIR)["x1"] == "unknown identity"


def test_lists_that_were_cut_off_at_a_score_are_told_from_empty_ones():
    gallery = {f"g{i}": f"s{i}" for i in range(40)}
    dataset = people(gallery, {f"p{i}": f"s{i}" for i in range(80)})
    found = {f"p{i}": f"g{i} .9" for i in range(40)}
    (said,) = cautions(dataset, lists(found), threshold=0.5)[:1]
    assert said.startswith("40 of 80 searches have no row in the lists of 'm'. A search that")
    whole = found | {f"p{i}": "" for i in range(40, 80)}
    assert not any("have no row" in note for note in cautions(dataset, lists(whole), threshold=0.5))


def test_of_tied_scores_the_threshold_is_said_above_the_tie():
    # 100 strangers, each with one candidate at .9; at most 1 % may return anyone: none of them,
    # so that the threshold lies above .9 by less than six digits show.
    probes = {f"p{k}": f"stranger {k}" for k in range(100)} | {"q": "ann"}
    tied = lists(dict.fromkeys(probes, "a1 .9"))
    for given, lower_score_means, sign in ((tied, "different", 1), (tied, "same", -1)):
        found = score(
            people(GALLERY, probes), given, fpir=0.01, enrolled="role=gallery",
            lower_score_means=lower_score_means,
        )  # fmt: skip
        assert set(numbers(found, FPIR).values()) == {0.0}
        said = next(note for note in found.notes if "is returned from a score of" in note)
        word = "more than" if sign > 0 else "less than"
        assert f"is returned from a score of {word} 0.9:" in said
        assert "at least" not in said
        assert "at most 0.9" not in said


def test_ranks_that_order_tied_scores_are_told():
    probes = {"p": "ann", "q": "bo"}
    both = lists({"p": "b1 .9, a1 .9", "q": "b1 .8"})
    asked = {"enrolled": "role=gallery", "threshold": 0.5}
    by_score = score(people(GALLERY, probes), both, **asked)
    assert numbers(by_score, HIT, 1) == {"p": 0.0, "q": 1.0}  # a tie counts against the model
    assert not any("different ranks" in note for note in by_score.notes)
    ranked = both.with_columns(rank=pl.Series([2, 1, 1]))
    by_rank = score(people(GALLERY, probes), ranked, **asked)
    assert numbers(by_rank, HIT, 1) == {"p": 1.0, "q": 1.0}  # the engine put Ann first
    told = [note for note in by_rank.notes if "1 of 2 candidate lists of 'm'" in note]
    assert len(told) == 1
    assert isinstance(told[0], Caution)
    one_rank = both.with_columns(rank=pl.Series([1, 1, 1]))
    tie = score(people(GALLERY, probes), one_rank, **asked)
    assert numbers(tie, HIT, 1) == {"p": 0.0, "q": 1.0}
    assert not any("different ranks" in note for note in tie.notes)
    many = {f"p{k}": f"stranger {k}" for k in range(30)} | probes
    few = lists({**dict.fromkeys(many, "a1 .4"), "p": "b1 .9, a1 .9"})
    rank = [1] * few.height
    rank[few["other_id"].to_list().index("b1")] = 2
    noted = score(people(GALLERY, many), few.with_columns(rank=pl.Series(rank)), **asked).notes
    note = next(note for note in noted if "1 of 32 candidate lists" in note)
    assert not isinstance(note, Caution)

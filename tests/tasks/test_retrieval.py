"""Precision at K by hand, against a sort of all pairs, and what must not matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError, TableError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.spec import Groups, Statistics
from isolux.core.tables import INSTANCES
from isolux.groups.measure import measure_groups
from isolux.groups.membership import build_membership
from isolux.groups.option_parsing import read_groupings
from isolux.tasks._embeddings.vectors import find_nearest
from isolux.tasks.retrieval import score
from isolux.tasks.retrieval.values import count_matching_entries
from tests.cli._run import isolux as run

INFO = DatasetInfo(title="Made up", summary="People that a test made up.", references=())


def people(classes, images=None, clusters=None, prefix="p"):
    ids = [f"{prefix}{i}" for i in range(len(classes))]
    instances = pl.DataFrame(
        {
            "instance_id": ids,
            "image_id": images or ids,
            "cluster_id": clusters or [None] * len(ids),
            "classes": pl.Series(
                [[c] if isinstance(c, str) else c for c in classes], dtype=pl.List(pl.String)
            ),
        }
    )
    return Dataset("made up", INFO, INSTANCES.conform(instances))


def vectors(rows, prefix="p", model="m"):
    return pl.DataFrame(
        {
            "model": model,
            "instance_id": [f"{prefix}{i}" for i in range(len(rows))],
            "embedding": pl.Series(rows, dtype=pl.List(pl.Float64)),
        }
    )


def at_angles(*degrees):
    turn = np.deg2rad(degrees)
    return np.column_stack([np.cos(turn), np.sin(turn)]).tolist()


def values(scores, k):
    rows = scores.units.filter(pl.col("threshold") == k).select("value", "reason").iter_rows()
    return [reason if value is None else value for value, reason in rows]


# Angles 0 (w), 10 (m), 25 (w), 60 (w): by nearness
#   p0: 10 m, 25 w, 60 w  -> P@1 0, P@2 1/2      p1: no other m: not scored
#   p2: 10 m, 0 w, 60 w   -> 0, 1/2              p3: 25 w, 10 m, 0 w -> 1, 1/2
FOUR = people(["w", "m", "w", "w"])
ALONE = "no entry to compare with has its value"
AT = at_angles(0, 10, 25, 60)


def test_precision_by_hand():
    scores = score(FOUR, vectors(AT), top_k=(2, 1))
    assert values(scores, 1) == [0.0, ALONE, 0.0, 1.0]
    assert values(scores, 2) == [0.5, ALONE, 0.5, 0.5]


def test_length_does_not_matter():
    longer = [[x * n for x in row] for n, row in zip([3.0, 0.1, 1e6, 7.0], AT, strict=True)]
    assert values(score(FOUR, vectors(longer), top_k=(2,)), 2) == [0.5, ALONE, 0.5, 0.5]


def test_a_query_searches_another_dataset():
    # Query at 20 degrees (w); entries at 0 (m), 15 (w), 30 (w), 90 (m): 15, 30, 0 come first.
    entries = people(["m", "w", "w", "m"], prefix="e")
    found = score(
        people(["w"]),
        vectors(at_angles(20)),
        top_k=(2, 3),
        database=entries,
        database_predictions=vectors(at_angles(0, 15, 30, 90), prefix="e", model="other file"),
    )
    assert values(found, 2) == [1.0]
    assert values(found, 3) == pytest.approx([2 / 3])
    assert found.units["model"].to_list() == ["m", "m"]
    assert "The database has 4 entries (m 50.0%, w 50.0%)." in found.notes


def test_a_query_whose_value_the_database_lacks_has_a_reason_and_no_zero():
    entries = people(["m", "w"], prefix="e")
    found = score(
        people(["w", "nb", ["nb", "m"]]),
        vectors(at_angles(20, 30, 1)),
        top_k=(1,),
        database=entries,
        database_predictions=vectors(at_angles(0, 20), prefix="e"),
    )
    assert values(found, 1) == [1.0, ALONE, 1.0]
    (caution,) = [n for n in found.notes if isinstance(n, Caution)]
    assert "For 1 of 3 queries of 'm' the database holds nobody of their value ('nb' 1)" in caution


def test_a_k_larger_than_a_class_is_cautioned_about():
    """Of w two others each, of m one other: at K = 2 the two m reach 1/2 at most."""
    found = score(
        people(["w", "w", "w", "m", "m"]), vectors(at_angles(0, 2, 4, 90, 92)), top_k=(1, 2)
    )
    assert values(found, 1) == [1.0] * 5
    assert values(found, 2) == [1.0, 1.0, 1.0, 0.5, 0.5]
    (caution,) = [n for n in found.notes if isinstance(n, Caution)]
    assert (
        "For 2 of 5 queries of 'm' the database holds fewer than 2 entries of their value ('m' 1)"
        in caution
    )


@pytest.mark.parametrize("seed", range(3))
def test_entries_alike_are_counted_as_by_looking_at_every_pair(seed):
    rng = np.random.default_rng(seed)
    bits = [rng.integers(0, 4, (n, 2)).astype(np.uint64) for n in (25, 40)]
    keys = rng.integers(0, 9, 25), rng.integers(0, 9, 40)
    wanted = [
        sum(bool((bits[0][q] & bits[1][e]).any()) and keys[0][q] != keys[1][e] for e in range(40))
        for q in range(25)
    ]
    assert count_matching_entries(*bits, *keys).tolist() == wanted


def test_the_same_image_and_the_same_person_can_be_left_out():
    # p0 and p1 share an image, p0 and p2 a person; all at rising angles.
    three = people(["w", "w", "w", "m"], ["i", "i", "j", "k"], ["s", "t", "s", "u"])
    given_vectors = vectors(at_angles(0, 10, 20, 30))
    nearest_of_first = {
        exclude: values(score(three, given_vectors, top_k=(2,), exclude=exclude), 2)[0]
        for exclude in ("self", "image", "cluster")
    }
    # self: p1 w, p2 w; image: p2 w, p3 m; cluster: p1 w, p3 m.
    assert nearest_of_first == {"self": 1.0, "image": 0.5, "cluster": 0.5}


def test_any_value_in_common_counts():
    both = people([["w", "nb"], ["nb"], ["m"]])
    assert values(score(both, vectors(at_angles(0, 10, 15)), top_k=(1,)), 1) == [1.0, 0.0, ALONE]


def test_more_values_than_bits_in_a_word():
    # 70 values; the entries of the same value stand side by side.
    classes = [f"c{i // 2:02}" for i in range(140)]
    angles = [2.0 * (i // 2) + 0.1 * (i % 2) for i in range(140)]
    assert set(values(score(people(classes), vectors(at_angles(*angles)), top_k=(1,)), 1)) == {1.0}


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (lambda v: v.filter(pl.col("instance_id") != "p1"), "no prediction"),
        (lambda v: v.with_columns(embedding=pl.when(pl.col("instance_id") != "p1").then("embedding")), "no embedding"),  # noqa: E501
        (lambda _: vectors([AT[0], [0.0, 0.0], *AT[2:]]), "embedding of length zero"),
    ],
)  # fmt: skip
def test_who_cannot_be_searched_with_says_why_and_is_in_no_database(broken, reason):
    found = score(FOUR, broken(vectors(AT)), top_k=(1, 3))
    assert values(found, 1) == [1.0, reason, 1.0, 1.0]
    fewer = "fewer than 3 entries to compare with"
    assert values(found, 3) == [fewer, reason, fewer, fewer]


def test_unknown_truth_is_neither_asked_nor_searched():
    found = score(people(["w", "Unknown", "w", None]), vectors(AT), top_k=(1,))
    assert values(found, 1) == [1.0, "unknown truth", 1.0, "unknown truth"]
    assert "2 of 4 queries have no known value: not scored." in found.notes
    assert "2 without an embedding or a known value are not in it." in found.notes[1]


def test_ties_are_broken_by_the_order_of_the_database_wherever_they_stand():
    # 301 equal entries, 150 m then 151 w; in single precision, products of equal vectors may
    # differ with their place in a block.
    rng = np.random.default_rng(0)
    entry = rng.standard_normal(37)
    database = np.tile(entry, (301, 1))
    query = rng.standard_normal((3, 37))
    for precision in (np.float32, np.float64):
        unit = (database / np.linalg.norm(entry)).astype(precision)
        asked = (query / np.linalg.norm(query, axis=1, keepdims=True)).astype(precision)
        found = find_nearest(asked, unit, 5, query_key=np.full(3, -1), entry_key=np.arange(301))
        assert found.tolist() == [[0, 1, 2, 3, 4]] * 3


def test_equal_embeddings_are_told_to_be_chosen_by_the_order_of_the_file():
    """All are equally near: of a file with w first, w is found and m never is."""
    sorted_people = people(["w"] * 20 + ["m"] * 20)
    found = score(sorted_people, vectors([[1.0, 0.0]] * 40), top_k=(5,))
    assert values(found, 5) == [1.0] * 20 + [0.0] * 20
    told = [n for n in found.notes if isinstance(n, Caution) and "the order of the file" in n]
    assert told[0].startswith("For 40 of 40 queries of 'm' most of the first 5 are no nearer than")
    apart = score(sorted_people, vectors(at_angles(*range(40))), top_k=(5,))
    assert not any("the order of the file" in note for note in apart.notes)


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
@pytest.mark.parametrize("block_bytes", [1, 10_000, 1 << 27])
def test_agrees_with_scikit_learn_in_any_block(dtype, block_bytes):
    rng = np.random.default_rng(1)
    database, queries = rng.standard_normal((400, 16)), rng.standard_normal((50, 16))
    database, queries = (
        (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(pl.Series([0.0], dtype=dtype).to_numpy().dtype)  # noqa: E501
        for x in (database, queries)
    )  # fmt: skip
    model = NearestNeighbors(n_neighbors=20, metric="cosine", algorithm="brute")
    expected = model.fit(database.astype(np.float64)).kneighbors(
        queries.astype(np.float64), return_distance=False
    )
    found = find_nearest(
        queries, database, 20,
        query_key=np.full(50, -1), entry_key=np.arange(400), block_bytes=block_bytes,
    )  # fmt: skip
    np.testing.assert_array_equal(found, expected)


@given(
    st.integers(0, 10_000),
    st.integers(1, 12),
    st.integers(1, 60),
    st.integers(1, 4),
    st.integers(1, 300),
)
def test_agrees_with_a_sort_of_all_pairs_with_ties_and_exclusions(seed, k, n, d, spread):
    # Few distinct directions, so most similarities are tied; keys collide often.
    rng = np.random.default_rng(seed)
    raw = rng.integers(-2, 3, (n, d)) + np.eye(1, d) * 3
    unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    key = rng.integers(0, spread, n)
    found = find_nearest(unit, unit, k, query_key=key, entry_key=key)
    for i in range(n):
        product = np.array([_product(unit[i], other) for other in unit])
        order = [j for j in np.lexsort((np.arange(n), -product)) if key[j] != key[i]][:k]
        assert found[i].tolist() == order + [-1] * (k - len(order))


def _product(a, b):
    """The same four running sums as the kernel, so that equal means equal."""
    sums = [0.0] * 4
    whole = len(a) - len(a) % 4
    for c in range(whole):
        sums[c % 4] += a[c] * b[c]
    for c in range(whole, len(a)):
        sums[0] += a[c] * b[c]
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


def test_in_a_space_without_structure_precision_is_the_share_in_the_database():
    # 2,000 entries, 30 % w: a w finds .3 w, an m .7 m; 2,000 x 50 draws, standard error < .005.
    rng = np.random.default_rng(2)
    classes = np.where(rng.random(2000) < 0.3, "w", "m")
    found = score(people(classes.tolist()), vectors(rng.standard_normal((2000, 24)).tolist()))
    value = found.units.filter(pl.col("threshold") == 50)["value"].to_numpy()
    share = np.mean(classes == "w")
    assert value[classes == "w"].mean() == pytest.approx(share, abs=0.02)
    assert value[classes == "m"].mean() == pytest.approx(1 - share, abs=0.02)


def test_groups_and_intervals_come_from_the_mean_of_the_queries():
    rng = np.random.default_rng(3)
    classes = ["w", "m"] * 60
    made = people(classes)
    attributes = pl.DataFrame(
        {
            "unit_kind": "instance",
            "unit_id": made.instances["instance_id"],
            "attribute": "light",
            "value": ["day", "day", "night", "night"] * 30,
        }
    )
    found = score(made, vectors(rng.standard_normal((120, 8)).tolist()), top_k=(10,))
    groups = Groups(by=("light",))
    members = build_membership(attributes, groups.by, read_groupings(groups, attributes)).frame
    rows = measure_groups(found, members, Statistics(replicates=200)).to_table()
    value = found.units["value"].to_numpy()
    assert rows["group"].to_list() == ["overall", "day", "night"]
    assert rows["value"].to_list() == pytest.approx(
        [value.mean(), value[np.arange(120) % 4 < 2].mean(), value[np.arange(120) % 4 > 1].mean()]
    )
    assert (rows["low"] < rows["value"]).all()


def test_models_are_searched_apart():
    both = pl.concat([vectors(AT, model="b"), vectors(at_angles(0, 180, 5, 170), model="a")])
    found = score(FOUR, both, top_k=(1,)).units
    assert found["model"].to_list() == ["a"] * 4 + ["b"] * 4
    assert found["value"].to_list() == [1.0, None, 1.0, 0.0, 0.0, None, 0.0, 1.0]


REFUSED = [
    ({"top_k": (0,)}, SpecError, "whole numbers of at least 1"),
    ({"exclude": "nothing"}, SpecError, "each query would find itself"),
    ({"database": FOUR}, SpecError, "half a database"),
    ({"metrics": ("recall",)}, UnknownNameError, "precision_at_k"),
]


@pytest.mark.parametrize(("options", "error", "text"), REFUSED)
def test_settings_that_cannot_be_used(options, error, text):
    with pytest.raises(error, match=text):
        score(FOUR, vectors(AT), **options)


UNREADABLE = [
    (vectors(AT).drop("embedding"), UnknownNameError, "embedding"),
    (vectors(AT).with_columns(embedding=pl.lit("x")), TableError, "a list of numbers"),
    (pl.concat([vectors(AT), vectors(AT)]), TableError, "two embeddings of one model"),
    (vectors([*AT[:2], [1.0], AT[3]]), TableError, r"1 numbers for 'p2'(.|\n)*row 3"),
    (vectors([*AT[:2], [1.0, float("nan")], AT[3]]), TableError, r"nan for 'p2'(.|\n)*row 3"),
    (vectors([*AT[:2], [1.0, None], AT[3]]), TableError, r"nan for 'p2'"),
    (vectors(AT, prefix="q"), JoinError, "no embedding is of a unit"),
    (
        vectors(AT).with_columns(model=pl.lit(None, dtype=pl.String)),
        TableError,
        "no model or no id",
    ),
]


@pytest.mark.parametrize(("predictions", "error", "text"), UNREADABLE)
def test_embeddings_that_cannot_be_read(predictions, error, text):
    with pytest.raises(error, match=text):
        score(FOUR, predictions)


def test_a_database_that_does_not_correspond():
    entries, theirs = people(["x", "y"], prefix="e"), vectors(AT[:2], prefix="e")
    with pytest.raises(SpecError, match="no value of the target in common"):
        score(FOUR, vectors(AT), database=entries, database_predictions=theirs)
    wider = vectors([[1.0, 0.0, 0.0]] * 2, prefix="e")
    with pytest.raises(SpecError, match=r"differ in length(.|\n)*3 numbers"):
        score(FOUR, vectors(AT), database=people(["w", "m"], prefix="e"), database_predictions=wider)  # fmt: skip  # noqa: E501
    two = pl.concat([vectors(AT, model="a"), vectors(AT, model="b")])
    with pytest.raises(SpecError, match="no embeddings of the model 'a'"):
        score(FOUR, two, database=people(["w", "m"], prefix="e"), database_predictions=theirs)


def test_strangers_are_left_out_and_counted():
    found = score(FOUR, pl.concat([vectors(AT), vectors(AT[:2], prefix="q")]), top_k=(1,))
    assert values(found, 1) == [0.0, ALONE, 0.0, 1.0]
    told = "2 embeddings are of units that the dataset has not"
    assert [note for note in found.notes if note.startswith(told)]


def test_pandas_and_arrays_are_read_alike():
    expected = score(FOUR, vectors(AT), top_k=(2,)).units
    fixed = vectors(AT).with_columns(pl.col("embedding").cast(pl.Array(pl.Float64, 2)))
    assert score(FOUR, fixed, top_k=(2,)).units.equals(expected)
    assert score(FOUR, vectors(AT).to_pandas(), top_k=(2,)).units.equals(expected)


def test_everyone_in_one_image_has_nobody_to_compare_with():
    crowd = replace(FOUR, instances=FOUR.instances.with_columns(image_id=pl.lit("one")))
    found = score(crowd, vectors(AT), top_k=(1,), exclude="image")
    assert values(found, 1) == ["fewer than 1 entries to compare with"] * 4


def test_another_database_is_named_on_the_command_line(monkeypatch, capsys, tmp_path):
    draw = np.random.default_rng(0)
    for name, n in (("people", 120), ("others", 80)):
        ids = [f"{name}{i}" for i in range(n)]
        table = pl.DataFrame(
            {"id": ids, "who": ["x", "y"] * (n // 2), "tone": ["a", "b"] * (n // 2)}
        )
        table.write_csv(tmp_path / f"{name}.csv")
        vectors = pl.Series(draw.normal(size=(n, 4)).tolist())
        pl.DataFrame({"instance_id": ids, "embedding": vectors}).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    given = ("audit", f"table:{tmp_path / 'people.csv'}", "--task", "retrieval", "--target", "who",
             "--predictions", tmp_path / "people.parquet", "--by", "tone", "--replicates", 100,
             "--notes", "--out", tmp_path / "run", "--overwrite")  # fmt: skip
    database = ("--option", f"database=table:{tmp_path / 'others.csv'}")
    done = run(monkeypatch, capsys, *given, *database)
    assert done.code == 2
    assert "half a database" in done.err
    vectors = ("--option", f"database_predictions={tmp_path / 'others.parquet'}")
    done = run(monkeypatch, capsys, *given, *database, *vectors)
    assert done.code == 0, done.err
    assert "The database has 80 entries" in done.out
    done = run(monkeypatch, capsys, *given, "--option", "database=others")
    assert done.code == 2
    assert "the database is not named" in done.err
    assert "NAME:PATH, such as table:people.csv" in done.err

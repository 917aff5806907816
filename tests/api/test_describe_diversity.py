"""How varied people look to a model, by group: whom vectors are of, and what is said of them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import pdist

from isolux.api.describe.counts import describe_datasets as counted
from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError
from isolux.core.info import DatasetInfo
from isolux.core.tables import EMBEDDINGS
from isolux.stats.diversity import vendi_score

INFO = DatasetInfo(title="Made", summary="Made up.", references=())
VENDI, L1, MAP = (
    "Diversity: Vendi score",
    "Distances between pairs: L1",
    "Map of embeddings (t-SNE)",
)


def people(groups, **columns):
    ids = [f"p{i}" for i in range(len(groups))]
    return Dataset(
        "made",
        INFO,
        pl.DataFrame({"instance_id": ids, "image_id": ids, **columns}),
        pl.DataFrame(
            {"unit_kind": "instance", "unit_id": ids, "attribute": "race", "value": groups}
        ),
    )


def embedded(vectors, ids=None, model="net"):
    ids = ids or [f"p{i}" for i in range(len(vectors))]
    return pl.DataFrame(
        {"model": model, "instance_id": ids, "embedding": np.asarray(vectors).tolist()},
        schema=EMBEDDINGS.schema,
    )


def made(n=90, seed=0):
    """A third of the people of group A, spread wide; the rest of B, close together."""
    rng = np.random.default_rng(seed)
    groups = ["A" if i % 3 == 0 else "B" for i in range(n)]
    width = np.array([1.0 if g == "A" else 0.2 for g in groups])
    vectors = np.ones((n, 16)) + width[:, None] * rng.normal(size=(n, 16))
    return groups, vectors.astype(np.float32)


def row(table, group):
    return table.filter(pl.col("group") == group).row(0, named=True)


def test_vendi_by_group_and_whole_is_that_of_their_vectors():
    groups, vectors = made()
    table = counted({"d": people(groups)}, embeddings={"d": embedded(vectors)}).tables[VENDI]
    assert table["group"].to_list() == ["overall", "B", "A"]
    for group in ("A", "B"):
        own = vectors[[g == group for g in groups]]
        assert row(table, group)["Vendi score"] == pytest.approx(vendi_score(own).value)
        assert row(table, group)["vectors"] == len(own)
    assert row(table, "overall")["Vendi score"] == pytest.approx(vendi_score(vectors).value)
    # 30 and 60 people: 15 of each are drawn, and the wide group is the more diverse by far
    assert row(table, "A")["subjects drawn"] == row(table, "B")["subjects drawn"] == 15
    assert row(table, "A")["from"] > row(table, "B")["to"]
    assert set(table["status"]) == {"ok"}


def test_distances_are_scipys():
    groups, vectors = made()
    found = counted({"d": people(groups)}, embeddings={"d": embedded(vectors)})
    of_a = pdist(vectors[[g == "A" for g in groups]].astype(np.float64), "cityblock")
    said = row(found.tables[L1], "A")
    assert said["pairs"] == 30 * 29 // 2
    assert said["median"] == pytest.approx(np.median(of_a), rel=1e-5)
    assert said["95th"] == pytest.approx(np.quantile(of_a, 0.95), rel=1e-5)
    assert said["mean"] == pytest.approx(of_a.mean(), rel=1e-5)
    curve = found.figure_tables[L1]["race"].filter(pl.col("group") == "A")
    assert curve["share"].is_sorted()
    assert curve["distance"].is_sorted()
    assert list(found.figure_tables[L1]) == ["overall", "race"]


def test_the_map_says_whose_nearest_neighbour_is_of_their_group():
    rng = np.random.default_rng(1)
    groups = ["A", "B"] * 20
    apart = np.array([[9.0, 0.0] if g == "A" else [0.0, 9.0] for g in groups])
    found = counted(
        {"d": people(groups)}, embeddings={"d": embedded(apart + 0.1 * rng.normal(size=(40, 2)))}
    )
    (said,) = found.tables[MAP].rows(named=True)
    assert said["% nearest to their own group"] == 100.0
    assert said["% if groups were mixed"] == 50.0
    assert sorted(found.figure_tables[MAP]["race"]["group"]) == sorted(groups)
    assert found.figure_tables[MAP]["race"].columns == ["group", "x", "y"]


def test_another_photo_of_oneself_is_no_neighbour():
    # Two photos each of four subjects at 0 (A), 10 (B), 90 (A) and 100 degrees (B): the nearest
    # other subject is always of the other group, the nearest photo always one's own.
    degrees = np.repeat([0.0, 10.0, 90.0, 100.0], 2) + np.tile([0.0, 1.0], 4)
    angle = np.deg2rad(degrees)
    data = people(["A", "A", "B", "B"] * 2, subject_id=[f"s{i // 2}" for i in range(8)])
    found = counted(
        {"d": data}, embeddings={"d": embedded(np.column_stack([np.cos(angle), np.sin(angle)]))}
    )
    (said,) = found.tables[MAP].rows(named=True)
    assert said["% nearest to their own group"] == 0.0


def test_a_subjects_photos_are_one_subject():
    rng = np.random.default_rng(2)
    own = rng.normal(size=(24, 12))
    vectors = np.repeat(own, 5, axis=0)
    subjects = [f"s{i // 5}" for i in range(120)]
    data = people(["A"] * 120, subject_id=subjects)
    found = counted({"d": data}, embeddings={"d": embedded(vectors)})
    said = row(found.tables[VENDI], "A")
    assert (said["vectors"], said["subjects"], said["subjects drawn"]) == (120, 24, 12)
    # of 120 · 119 / 2 pairs 24 · 10 are of one subject, and they look alike
    assert row(found.tables[L1], "A")["% of one subject"] == pytest.approx(100 * 240 / 7140)
    assert not any("whose photos" in note for note in found.notes)


def test_too_few_subjects_have_a_score_and_no_comparison():
    groups, vectors = made(45)  # 15 of A, 30 of B
    table = counted({"d": people(groups)}, embeddings={"d": embedded(vectors)}).tables[VENDI]
    said = row(table, "A")
    assert said["Vendi score"] is not None
    assert said["Vendi score of these"] is None
    assert said["status"] == "15 subjects of the 30 needed"
    assert row(table, "B")["status"] == "ok"


def test_who_has_no_vector_is_counted_and_left_out():
    groups, vectors = made(60)
    data = people([*groups, "A"])
    ids = [f"p{i}" for i in range(59)] + ["stranger"]
    vectors[3] = 0.0
    found = counted({"d": data}, embeddings={"d": embedded(vectors, ids)})
    assert row(found.tables[VENDI], "overall")["vectors"] == 58
    notes = " ".join(found.notes)
    assert "1 vectors of length 0 have no direction" in notes
    assert "1 vectors are of nobody who is described" in notes
    assert "3 of 61 people have no vector" in notes


def test_vectors_of_images_count_an_image_once():
    ids = ["a", "b", "c"]
    data = Dataset(
        "made",
        INFO,
        pl.DataFrame({"instance_id": ids, "image_id": ["1", "1", "2"]}),
        pl.DataFrame({"unit_kind": "instance", "unit_id": ids, "attribute": "race",
                      "value": ["A", "A", "B"]}),
    )  # fmt: skip
    found = counted({"d": data}, embeddings={"d": embedded(np.eye(2), ["1", "2"])})
    table = found.tables[VENDI]
    assert row(table, "overall")["Vendi score"] == pytest.approx(2.0)
    assert row(table, "A")["vectors"] == 1


def test_datasets_stand_side_by_side_with_as_many_subjects():
    groups, vectors = made()
    both = {"one": people(groups), "two": people(groups[:60])}
    found = counted(both, embeddings={"one": embedded(vectors), "two": embedded(vectors[:60])})
    table = found.tables[VENDI]
    assert table.columns[0] == "dataset"
    everyone = table.filter(pl.col("group") == "overall")
    assert everyone["subjects drawn"].to_list() == [30, 30]
    assert found.figure_tables[L1]["overall"]["group"].unique(maintain_order=True).to_list() == [
        "one", "two",
    ]  # fmt: skip


def test_a_dataset_without_vectors_is_left_out_of_it():
    groups, vectors = made()
    both = {"one": people(groups), "two": people(groups)}
    table = counted(both, embeddings={"one": embedded(vectors)}).tables[VENDI]
    assert table["dataset"].unique().to_list() == ["one"]
    assert VENDI not in counted(both).tables


def test_order_of_rows_and_vectors_does_not_matter():
    groups, vectors = made()
    data = people(groups)
    turned = Dataset("made", INFO, data.instances.reverse(), data.attributes.reverse())
    there = counted({"d": data}, embeddings={"d": embedded(vectors)}).tables
    back = counted({"d": turned}, embeddings={"d": embedded(vectors).reverse()}).tables
    for caption in (VENDI, L1):
        assert there[caption].equals(back[caption])


def test_vectors_of_strangers_are_refused():
    groups, vectors = made()
    with pytest.raises(JoinError, match=r"(?s)no vector is of anybody.*'p0'.*'q0'"):
        counted(
            {"d": people(groups)},
            embeddings={"d": embedded(vectors, [f"q{i}" for i in range(90)])},
        )


def test_vectors_of_two_models_are_refused():
    groups, vectors = made()
    both = pl.concat([embedded(vectors), embedded(vectors, model="other")])
    with pytest.raises(SpecError, match=r"(?s)of several models.*net, other"):
        counted({"d": people(groups)}, embeddings={"d": both})


def test_one_person_is_no_pair_and_no_map():
    found = counted({"d": people(["A"])}, embeddings={"d": embedded(np.ones((1, 3)))})
    assert row(found.tables[VENDI], "A")["Vendi score"] == pytest.approx(1.0)
    said = row(found.tables[L1], "A")
    assert (said["pairs"], said["median"], said["mean"]) == (0, None, None)
    assert found.tables[MAP].is_empty()

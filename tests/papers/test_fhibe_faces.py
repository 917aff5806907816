"""FHIBE's protocols on aligned faces, from files to tables, on made-up people counted by hand."""

import numpy as np
import polars as pl
import pytest

from isolux.papers.fhibe import PARTS, tables
from tests.papers._fhibe_files import (
    GROUPS,
    TERMS,
    audited,
    compare,
    crowd,
    save,
    table_of,
    write_faces,
    write_values,
)


@pytest.fixture(scope="module")
def people():
    return crowd()


@pytest.fixture(scope="module")
def folder(people, tmp_path_factory):
    root = tmp_path_factory.mktemp("fhibe_faces")
    write_values(root / "values.csv", people)
    return root


@pytest.fixture(scope="module")
def pictures(people, folder):
    return write_faces(folder, people)


def parsed_by_hand(truth, drawn):
    """Mean F1 over FHIBE's parts that are annotated or drawn; drawn ears are skin."""
    drawn = np.where(np.isin(drawn, (8, 9)), 1, drawn)
    f1 = []
    for k in (1, 2, 10, 13):
        a, b = truth == k, drawn == k
        if a.any() or b.any():
            f1.append(2 * (a & b).sum() / (a.sum() + b.sum()))
    return float(np.mean(f1))


def test_parts_of_faces_are_averaged_over_all_categories(folder, people, pictures):
    rng = np.random.default_rng(3)
    scores, of_mouth = {}, {}
    for p in people:
        truth = pictures[p.key]
        changed = rng.random(truth.shape) < rng.uniform(0.1, 0.5)
        # An ear (8), a necklace (16), which FHIBE does not annotate, and what it does.
        drawn = np.where(changed, rng.choice([0, 1, 2, 8, 10, 13, 16], truth.shape), truth)
        save(folder / "parsed" / f"{p.key}_combined.png", drawn.astype(np.uint8))
        scores[p.key] = parsed_by_hand(truth, drawn)
        both = (truth == 10).sum() + (drawn == 10).sum()
        of_mouth[p.key] = 2 * ((truth == 10) & (drawn == 10)).sum() / both if both else None
    run = audited(folder, "face_parsing", "parsed", format="part_masks").run
    compare(tables("face_parsing", run), people, lambda p: scores[p.key], "mean_f1", "F1")
    assert {"l_ear", "r_ear", "ear_r", "neck_l"}.isdisjoint(PARTS)
    run = audited(
        folder, "face_parsing", "parsed", format="part_masks", metric=("f1_by_part",),
    ).run  # fmt: skip
    mouths = {
        caption: table.filter(label="mouth")
        for caption, table in tables("face_parsing", run).items()
    }
    assert set(run.group_metrics["label"]) == {"skin", "nose", "mouth", "hair"}
    compare(mouths, people, lambda p: of_mouth[p.key], "f1_by_part", "F1")


@pytest.mark.parametrize(("name", "metrics"), [
    ("reconstruction", {"lpips", "psnr"}), ("super_resolution", {"lpips"}),
])  # fmt: skip
def test_pictures_of_faces_are_compared(folder, people, pictures, name, metrics):
    run = audited(folder, name, "values.csv", format="unit_values").run
    found = tables(name, run)
    assert set(next(iter(found.values()))["metric"]) == metrics
    compare(found, people, lambda p: p.lpips, "lpips", "lower is better")
    if "psnr" in metrics:
        compare(found, people, lambda p: p.lpips and 30 - 10 * p.lpips, "psnr", "LPIPS")
    worst = run.disparities.filter(kind="range", metric="lpips", attribute="scene")
    scenes = table_of(found, "Scene")
    means = dict(scenes.filter(metric="lpips").select("group", "mean").iter_rows())
    assert worst["group_a"].to_list() == [max(means, key=means.__getitem__)]


def test_pictures_themselves_are_compared_with_the_release(folder, people, pictures):
    rng = np.random.default_rng(21)
    by_person = {}
    for n, p in enumerate(people):
        original = rng.integers(0, 256, (16, 16)).astype(np.uint8)
        made = np.clip(original + rng.normal(0, 20, (16, 16)), 0, 255).astype(np.uint8)
        save(folder / f"data/raw/faces/{p.key}.png", original)
        if n % 9:
            save(folder / "made" / f"{p.key}.png", made)
            error = ((original / 255 - made / 255) ** 2).mean()
            by_person[p.key] = -10 * np.log10(error + 1e-8)
    run = audited(
        folder, "reconstruction", "made", format="image_files", metric=("psnr",),
        option=("size_px=0",),
    ).run  # fmt: skip
    compare(tables("reconstruction", run), people, lambda p: by_person.get(p.key), "psnr", "PSNR")


def test_identity_is_compared_from_embeddings(folder, people, pictures):
    rng = np.random.default_rng(22)
    of = {name: {p.key: rng.normal(size=8) for p in people} for name in ("first", "again")}
    for name, vectors in of.items():
        rows = {"instance_id": list(vectors), "embedding": [v.tolist() for v in vectors.values()]}
        pl.DataFrame(rows).write_parquet(folder / f"{name}.parquet")
    run = audited(
        folder, "reconstruction", "again.parquet", format="embeddings",
        option=(f"original_embeddings={folder / 'first.parquet'}",),
    ).run  # fmt: skip

    def cosine(p):
        a, b = of["first"][p.key], of["again"][p.key]
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    compare(tables("reconstruction", run), people, cosine, "identity_cosine", "identity")


@pytest.fixture(scope="module")
def embeddings(folder, people, pictures):
    rng = np.random.default_rng(9)
    centres = {s: rng.normal(size=16) for s in sorted({p.subject for p in people})}
    vectors = {p.key: centres[p.subject] + rng.normal(size=16) * 0.5 for p in people}
    rows = {"instance_id": list(vectors), "embedding": [v.tolist() for v in vectors.values()]}
    pl.DataFrame(rows).write_parquet(folder / "embeddings.parquet")
    return vectors


def rate_by_hand(people, vectors, allowed=lambda p, q: True):
    """TAR at a FAR of .001 of all pairs, one by one; None below 1,000 impostors or ten subjects."""
    unit = {
        k: v.astype(np.float32) / np.linalg.norm(v.astype(np.float32)) for k, v in vectors.items()
    }
    genuine, impostor, met = [], [], set()
    for i, p in enumerate(people):
        for q in people[:i]:
            if p.subject == q.subject or allowed(p, q):
                (genuine if p.subject == q.subject else impostor).append(
                    float(np.dot(unit[p.key].astype(float), unit[q.key].astype(float)))
                )
                met |= {p.subject, q.subject}
    if len(impostor) < 1000 or len(met) < 10 or not genuine:
        return None
    least = sorted(impostor, reverse=True)[int(0.001 * len(impostor) + 1e-9)]
    return sum(s > least for s in genuine) / len(genuine)


def rates(found, attribute):
    table = table_of(found, TERMS[attribute])
    return {row["group"]: row for row in table.iter_rows(named=True)}


def test_verification_by_group_of_all_pairs(folder, people, embeddings):
    made = audited(
        folder, "face_verification", "embeddings.parquet", format="embeddings",
        option=("far=0.001", "max_per_group=null"),
    )  # fmt: skip
    found = tables("face_verification", made.run)
    assert len(found) == 6
    assert next(iter(found.values())).columns == [
        "model", "group", "n_faces", "n_subjects", "tar", "low", "high",
    ]  # fmt: skip
    for attribute in ("pronoun", "apparent_skin_color"):
        place = GROUPS[attribute]
        shown = rates(found, attribute)
        assert set(shown) == {g for p in people for g in place(p)}
        for group, row in shown.items():
            own = [p for p in people if group in place(p)]
            expected = rate_by_hand(own, embeddings)
            assert row["tar"] == (expected if expected is None else pytest.approx(expected)), group
    assert rates(found, "pronoun")["They/them/their"]["tar"] is None
    women = [p for p in people if p.pronoun == "0. She/her/hers"]
    counted = rates(found, "pronoun")["She/her/hers"]
    assert (counted["n_faces"], counted["n_subjects"]) == (
        len(women), len({p.subject for p in women}),
    )  # fmt: skip
    # 30 / FAR impostor pairs give an interval, fewer do not.
    assert rates(found, "pronoun")["She/her/hers"]["low"] is not None
    assert rates(found, "apparent_skin_color")["VI"]["low"] is None


def test_verification_samples_3000_pairs_within_each_group(folder, people, embeddings):
    made = audited(folder, "face_verification", "embeddings.parquet", format="embeddings")
    pairs = made.run.evidence["pairs"]
    assert pairs["most"].unique().to_list() == [3000]
    pairs = pairs.explode("other_id", "similarity", "genuine", "draw")
    shown = rates(tables("face_verification", made.run), "pronoun")
    for group in ("She/her/hers", "He/him/his"):
        ids = [p.key for p in people if group in GROUPS["pronoun"](p)]
        own = pairs.filter(pl.col("unit_id").is_in(ids), pl.col("other_id").is_in(ids)).sort("draw")
        genuine, impostor = (own.filter(pl.col("genuine") == kind) for kind in (True, False))
        assert impostor.height > 3000
        drawn = impostor.head(3000)["similarity"].sort(descending=True)
        accepted = genuine.head(3000)["similarity"] > drawn[3]  # three of 3,000 may be accepted
        assert shown[group]["tar"] == pytest.approx(accepted.mean())
        assert shown[group]["low"] is None
    cells = made.group_metrics.filter(group="She/her/hers", metric="tar_at_far")
    assert cells["status"].to_list() == ["few impostors"]


def test_hard_pairs_share_a_pronoun_and_are_near_in_skin_colour(folder, people, embeddings):
    made = audited(folder, "face_verification_hard", "embeddings.parquet", format="embeddings")

    def hard(p, q):
        return p.pronoun == q.pronoun and abs(p.skin - q.skin) <= 1

    pairs = made.run.evidence["pairs"].explode("other_id", "similarity", "genuine")
    of = {p.key: p for p in people}
    every = [(p, q) for i, p in enumerate(people) for q in people[:i]]
    assert pairs.filter("genuine").height == sum(p.subject == q.subject for p, q in every)
    assert pairs.filter(~pl.col("genuine")).height == sum(
        p.subject != q.subject and hard(p, q) for p, q in every
    )
    strangers = pairs.filter(~pl.col("genuine")).select("unit_id", "other_id").iter_rows()
    assert all(hard(of[a], of[b]) for a, b in strangers)
    shown = rates(tables("face_verification_hard", made.run), "age_group")
    for group, row in shown.items():
        own = [p for p in people if group in GROUPS["age_group"](p)]
        expected = rate_by_hand(own, embeddings, hard)
        assert row["tar"] == (expected if expected is None else pytest.approx(expected)), group


def test_faces_of_photos_of_two_can_be_left_out_as_the_tool_does(folder, people, embeddings):
    made = audited(
        folder, "face_verification_hard", "embeddings.parquet", format="embeddings",
        only=("multiple_subjects=0",),
    )  # fmt: skip
    photos = [p.image for p in people]
    alone = sum(photos.count(image) == 1 for image in photos)
    assert 0 < alone < len(people)
    assert made.run.scores["unit_id"].n_unique() == alone

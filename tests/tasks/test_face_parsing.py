"""F1 of face parts: by hand, beside a plain second writing of it, and what cannot be used."""

from __future__ import annotations

import tracemalloc

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import FileError, JoinError, SpecError, TableError, UnknownNameError
from isolux.core.tables import PART_MASK_FILES
from isolux.predictions import part_masks
from isolux.tasks.face_parsing import score
from isolux.tasks.face_parsing.part_names import LABELS
from tests.tasks._faces import dataset, drawn, label_picture_truth, labels, run_lengths, write
from tests.tasks._pictures import values

SKIN, NOSE, HAIR = (LABELS.index(part) for part in ("skin", "nose", "hair"))
# Eight pixels: four of skin, two of hair, two of nothing.
TRUTH = [[SKIN, SKIN, SKIN, SKIN], [HAIR, HAIR, 0, 0]]
# Three of skin, all right; hair over all of its two and over two more; a nose where skin is.
DRAWN = {
    "skin": [[1, 1, 1, 0], [0, 0, 0, 0]],
    "hair": [[0, 0, 0, 0], [1, 1, 1, 1]],
    "nose": [[0, 0, 0, 1], [0, 0, 0, 0]],
}
KNOWN = {part: DRAWN[part] for part in ("skin", "hair")}
# F1: skin 2·3 / (4 + 3), hair 2·2 / (2 + 4), nose 0 / (0 + 1), background 0 / (2 + 0).
BY_PART = {"skin": 6 / 7, "hair": 4 / 6, "nose": 0.0, "background": 0.0}
BOTH = ["mean_f1", "f1_by_part"]
ABSENT = 18 - 3  # of CelebAMask-HQ's 18 parts, those that nobody annotated or drew here


def one(tmp_path, **options):
    people = label_picture_truth(tmp_path, {"a": TRUTH})
    return score(people, drawn(tmp_path, {"a": DRAWN}), root=str(tmp_path), **options)


def test_each_part_by_hand(tmp_path):
    scores = one(tmp_path, metrics=BOTH, background=True)
    assert labels(scores) == pytest.approx({("a", part): f1 for part, f1 in BY_PART.items()})
    assert scores.units["cluster_id"].unique().to_list() == ["sa"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (6 / 7 + 4 / 6 + 0) / 3),  # the text: a nose that is not there costs a third
        ({"classes": "present"}, (6 / 7 + 4 / 6) / 2),
        ({"classes": "present", "background": True}, (6 / 7 + 4 / 6 + 0) / 3),  # released code
        ({"background": True}, (6 / 7 + 4 / 6 + 0 + 0) / 4),
        ({"absent": "right"}, (6 / 7 + 4 / 6 + 0 + ABSENT) / 18),
        ({"absent": "wrong"}, (6 / 7 + 4 / 6) / 18),
        ({"parts": ["hair"]}, 4 / 6),
        ({"parts": "hair", "background": True}, 2 / 6),
        ({"parts": ["nose"], "classes": "present"}, "none of these parts"),
    ],
)
def test_what_the_mean_is_over(tmp_path, options, expected):
    found = values(one(tmp_path, **options), "mean_f1")["a"]
    assert found == (expected if isinstance(expected, str) else pytest.approx(expected))


def test_the_notes_say_what_was_averaged(tmp_path):
    notes = one(tmp_path, classes="present", background=True).notes
    assert "Mean F1 is over the parts annotated in a face; with the background." in notes
    assert any("left out where neither" in note for note in one(tmp_path).notes)


def released(truth, found):
    """F1 of each number in the truth, the background's too: FHIBE's tool, written anew."""
    scores = []
    for number in np.unique(truth):
        a, b = truth == number, found == number
        scores.append(2 * (a & b).sum() / (a.sum() + b.sum()))
    return np.mean(scores)


def over_all(truth, found):
    """The same over every part that either has, without the background."""
    numbers = set(np.unique(truth)) | set(np.unique(found)) - {0}
    sets = [(truth == k, found == k) for k in numbers if k]
    return np.mean([2 * (a & b).sum() / (a.sum() + b.sum()) for a, b in sets])


@pytest.mark.parametrize("seed", range(8))
def test_label_pictures_agree_with_a_plain_second_writing(tmp_path, seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 40, 2)
    truths = {f"f{i}": rng.choice(rng.integers(1, 19, 4), shape) for i in range(4)}
    for truth in truths.values():
        truth[rng.random(shape) < 0.3] = 0
        truth[0, 0] = 5  # at least one pixel of a part
    found = {n: np.where(rng.random(shape) < 0.5, t, rng.integers(0, 19, shape))
             for n, t in truths.items()}  # fmt: skip
    people = label_picture_truth(tmp_path, truths)
    files = drawn(tmp_path, {n: {"combined": f} for n, f in found.items()})
    tool = score(people, files, root=str(tmp_path), classes="present", background=True)
    assert values(tool, "mean_f1") == pytest.approx(
        {n: released(t, found[n]) for n, t in truths.items()}
    )
    text = score(people, files, root=str(tmp_path))
    assert values(text, "mean_f1") == pytest.approx(
        {n: over_all(t, found[n]) for n, t in truths.items()}
    )


@pytest.mark.parametrize(
    "options", [{}, {"classes": "present"}, {"absent": "wrong", "background": True}]
)
def test_the_mean_is_that_of_the_parts(tmp_path, options):
    scores = one(tmp_path, metrics=BOTH, **options)
    parts = [v for (_, _), v in labels(scores).items()]
    assert values(scores, "mean_f1")["a"] == pytest.approx(np.mean(parts))


def test_pictures_run_lengths_and_polygons_of_one_face_are_judged_alike(tmp_path):
    truth = np.zeros((12, 10), int)
    truth[2:9, 1:7] = SKIN
    truth[9:12, 3:9] = HAIR
    corners = {"0. skin": (1, 2, 7, 9), "6. hair": (3, 9, 9, 12)}
    cell = repr(
        [
            {"class_name": name, "num": 1, "polygon": [
                {"x": x, "y": y} for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))]}
            for name, (x0, y0, x1, y1) in corners.items()
        ]
    )  # fmt: skip
    columns = {"part_masks": [run_lengths(truth)], "segments": [cell]}
    people = label_picture_truth(tmp_path, {"a": truth}, **columns)
    sized = dataset(["a"], {name: people.instances[name] for name in ("part_mask_uri", *columns)},
                    size=truth.shape)  # fmt: skip
    found = np.roll(truth, 1, axis=0)
    files = drawn(tmp_path, {"a": {"skin": found == SKIN, "hair": found == HAIR}})
    means = {
        source: values(score(sized, files, truth=source, root=str(tmp_path)), "mean_f1")["a"]
        for source in ("picture", "masks", "polygons")
    }
    assert means["masks"] == means["picture"] == means["polygons"]
    # Skin keeps 6 of its 7 rows, hair 2 of 3 (its last leaves the picture, and comes in above).
    assert means["picture"] == pytest.approx((6 / 7 + 2 / 3) / 2)


def test_overlapping_parts_count_each_or_the_last_alone(tmp_path):
    """Hair painted over all skin: with ``last`` nothing of the skin is left."""
    people = label_picture_truth(tmp_path, {"a": [[SKIN, SKIN, HAIR, HAIR]]})
    files = drawn(tmp_path, {"a": {"hair": [[1, 1, 1, 1]], "skin": [[1, 1, 0, 0]]}})
    options = {"root": str(tmp_path), "metrics": ["f1_by_part"]}
    kept = labels(score(people, files, **options))
    assert kept == {("a", "skin"): 1.0, ("a", "hair"): pytest.approx(4 / 6)}
    last = labels(score(people, files, overlaps="last", **options))
    assert last == {("a", "skin"): 0.0, ("a", "hair"): pytest.approx(4 / 6)}


def test_names_are_mapped_united_or_left_out(tmp_path):
    truth = {"a": [run_lengths([[SKIN, SKIN, HAIR, 0]])]}
    people = dataset(truth, {"part_masks": truth["a"]})
    files = drawn(
        tmp_path,
        {"a": {"cheek": [[1, 0, 0, 0]], "brow": [[0, 1, 0, 0]], "beard": [[1, 1, 1, 1]]}},
    )
    mapping = {"cheek": "skin", "brow": "skin", "beard": "background"}
    scores = score(people, files, mapping=mapping, metrics=["f1_by_part"])
    assert labels(scores) == {("a", "skin"): 1.0, ("a", "hair"): 0.0}
    assert "Parts never drawn: hair." in scores.notes


@pytest.mark.parametrize(
    ("mapping", "lost", "given"),
    [
        (None, "cheek", "'cheek', 'hair'"),
        ({"cheek": "skn"}, "skn", "'cheek → skn', 'hair'"),
        ({"cheek": "skin", "lip": "mouth"}, "mouth", "'cheek → skin', 'hair', 'lip → mouth'"),
    ],
)
def test_names_that_the_dataset_does_not_have_are_refused(tmp_path, mapping, lost, given):
    """With both lists, and with what each name was mapped to."""
    people = dataset(["a"], {"part_masks": [run_lengths([[SKIN, HAIR]])]})
    files = drawn(tmp_path, {"a": {"cheek": [[1, 0]], "hair": [[0, 1]]}})
    with pytest.raises(
        SpecError, match=f"parts that the dataset does not have: '{lost}'"
    ) as caught:
        score(people, files, mapping=mapping)
    assert "expected: the dataset's parts, 'skin', 'hair'" in str(caught.value)
    assert f"found: the model's parts, {given}" in str(caught.value)


def test_who_has_no_parts_and_who_was_missed(tmp_path):
    faces = {"a": TRUTH, "b": None, "c": TRUTH, "d": [[0, 0]], "e": TRUTH}
    people = label_picture_truth(tmp_path, faces, ignore=[False, False, False, False, True])
    files = drawn(tmp_path, {"a": DRAWN, "b": DRAWN, "z": DRAWN})
    scores = score(people, files, root=str(tmp_path), metrics=BOTH, absent="right")
    found = values(scores, "mean_f1")
    assert found.pop("a") > 0
    assert found == {
        "b": "no annotated part",
        "c": 0.0,  # absent parts are no merit of a model that gave nothing
        "d": "no annotated part",
        "e": "marked to be ignored",
    }
    assert {unit for unit, _ in labels(scores)} == {"a", "c"}
    assert "1 of 5 faces have no mask: they score 0." in scores.notes
    assert "2 of 5 are not scored: no annotated part." in scores.notes
    assert any("3 part masks are of images" in note for note in scores.notes)


def test_no_predictions_at_all_everybody_was_missed(tmp_path):
    people = label_picture_truth(tmp_path, {"a": TRUTH})
    none = pl.DataFrame(schema=PART_MASK_FILES.schema)
    scores = score(people, none, root=str(tmp_path), model="net")
    assert scores.units.select("model", "value").rows() == [("net", 0.0)]


def test_pictures_that_were_read_as_people_are_refused_with_the_format(tmp_path):
    pictures = pl.DataFrame({"model": "m", "instance_id": ["a"], "uri": ["a/combined.png"]})
    people = label_picture_truth(tmp_path, {"a": TRUTH})
    with pytest.raises(SpecError, match="face parsing judges pictures of parts") as caught:
        score(people, pictures, root=str(tmp_path))
    assert caught.value.hint == "--format part_masks reads these files as parts"


def test_models_are_judged_apart(tmp_path):
    people = label_picture_truth(tmp_path, {"a": TRUTH, "b": TRUTH})
    perfect = {"combined": TRUTH}
    files = pl.concat(
        [
            drawn(tmp_path, {"a": perfect, "b": perfect}, model="better"),
            drawn(tmp_path, {"a": DRAWN}, model="worse"),
        ]
    )
    units = score(people, files, root=str(tmp_path)).units
    assert units.filter(pl.col("model") == "better")["value"].to_list() == [1.0, 1.0]
    worse = units.filter(pl.col("model") == "worse")["value"].to_list()
    assert worse == pytest.approx([(6 / 7 + 4 / 6) / 3, 0.0])


def test_the_folder_above_the_datasets_files_is_found(tmp_path):
    people = label_picture_truth(tmp_path, {"a": TRUTH})
    file = tmp_path / "data" / "processed" / "faces.csv"
    placed = dataset(
        ["a"], {"part_mask_uri": people.instances["part_mask_uri"]}, inputs={str(file): "…"}
    )
    files = drawn(tmp_path, {"a": {"combined": TRUTH}})
    assert values(score(placed, files), "mean_f1") == {"a": 1.0}
    with pytest.raises(FileError, match="pictures of the annotated parts are nowhere"):
        score(people, files)


def test_a_path_out_of_the_folder_is_refused(tmp_path):
    write(tmp_path / "secret.png", TRUTH)
    (tmp_path / "data").mkdir()
    people = dataset(["a"], {"part_mask_uri": ["../secret.png"]})
    with pytest.raises(FileError, match="a path leads out of its folder"):
        score(people, drawn(tmp_path, {"a": DRAWN}), root=str(tmp_path / "data"))


def test_fhibes_folders_are_read_and_judged(tmp_path):
    people = label_picture_truth(tmp_path, {"i_s": TRUTH})
    for part, pixels in DRAWN.items():
        write(tmp_path / "net" / "i_s" / f"{part}.png", pixels)
    scores = score(people, part_masks.read(tmp_path / "net"), root=str(tmp_path))
    assert values(scores, "mean_f1")["i_s"] == pytest.approx((6 / 7 + 4 / 6) / 3)


def test_a_mask_of_another_size_than_its_image(tmp_path):
    people = label_picture_truth(tmp_path, {"a": TRUTH})
    files = drawn(tmp_path, {"a": {"skin": DRAWN["skin"], "hair": np.ones((3, 4))}})
    with pytest.raises(FileError, match="a mask has another size than its image") as caught:
        score(people, files, root=str(tmp_path))
    said = str(caught.value)
    assert "expected: 2 × 4 (height × width)\n  found: 3 × 4" in said
    assert f"where: {files['uri'][1]}, row 2, column 'uri'" in said


def test_the_truth_of_another_size_than_its_image(tmp_path):
    masks = {"part_masks": [run_lengths(TRUTH)]}
    files = drawn(tmp_path, {"a": KNOWN})
    with pytest.raises(TableError, match="another size than its image") as caught:
        score(dataset(["a"], masks, size=(4, 4)), files)
    assert "instance 'a', row 1, column 'part_masks'" in str(caught.value)
    picture = label_picture_truth(tmp_path, {"a": TRUTH}).instances["part_mask_uri"]
    with pytest.raises(FileError, match="another size than its image"):
        score(dataset(["a"], {"part_mask_uri": picture}, size=(4, 4)), files, root=str(tmp_path))


def test_run_lengths_that_are_none(tmp_path):
    cell = run_lengths(TRUTH)
    cell[0]["counts"] = "2!"
    with pytest.raises(TableError, match="run lengths cannot be read"):
        score(dataset(["a"], {"part_masks": [cell]}), drawn(tmp_path, {"a": KNOWN}))


def test_numbers_that_mean_no_part(tmp_path):
    people = label_picture_truth(tmp_path, {"a": [[19, 1]]})
    files = drawn(tmp_path, {"a": {"skin": [[0, 1]]}})
    with pytest.raises(FileError, match="a number that means no part") as caught:
        score(people, files, root=str(tmp_path))
    assert "expected: 0 to 18" in str(caught.value)
    assert "found: 19" in str(caught.value)


def test_other_labels(tmp_path):
    people = label_picture_truth(tmp_path, {"a": [[0, 1, 2, 2]]})
    files = drawn(tmp_path, {"a": {"combined": [[0, 1, 1, 2]]}})
    scores = score(people, files, root=str(tmp_path), labels=("nothing", "face", "beard"),
                   metrics=["f1_by_part"])  # fmt: skip
    assert labels(scores) == pytest.approx({("a", "face"): 2 / 3, ("a", "beard"): 2 / 3})


def test_a_face_in_a_picture_with_others(tmp_path):
    people = dataset(["a", "b"], {"part_masks": [run_lengths(TRUTH)] * 2})
    shared = people.instances.with_columns(image_id=pl.lit("i"))
    both = type(people)("made up", people.info, shared)
    with pytest.raises(JoinError, match="which face of their image they are of") as caught:
        score(both, drawn(tmp_path, {"i": DRAWN}))
    assert "'i', an image of 2 faces" in str(caught.value)
    scores = score(both, drawn(tmp_path, {"a": KNOWN}))
    assert values(scores, "mean_f1")["b"] == 0.0


def test_masks_of_other_images(tmp_path):
    people = dataset(["a"], {"part_masks": [run_lengths(TRUTH)]})
    with pytest.raises(JoinError, match="no part mask is of a face of the dataset") as caught:
        score(people, drawn(tmp_path, {"z": DRAWN}))
    assert "'a'" in str(caught.value)
    assert "'z'" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"truth": "polygons"}, SpecError, "no face in the dataset has annotated parts"),
        ({"labels": ("a", "a")}, SpecError, "labels cannot be that"),
        ({"metrics": ["f2"]}, UnknownNameError, "no metric named 'f2'"),
        ({"parts": ["ear"]}, UnknownNameError, "no part named 'ear'"),
    ],
)
def test_settings_that_cannot_be_used(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        one(tmp_path, **options)


def test_more_parts_than_there_are_bits(tmp_path):
    with pytest.raises(SpecError, match="too many parts"):
        one(tmp_path, labels=[f"part {k}" for k in range(80)])


def test_one_face_is_in_memory_at_a_time(tmp_path):
    """Sixty faces of 300 × 300, 0.7 MB of bits each: what is held at once is a few of them."""
    square = np.zeros((300, 300), int)
    square[50:250, 80:220] = SKIN
    people = label_picture_truth(tmp_path, {f"f{i}": square for i in range(60)})
    files = drawn(tmp_path, {f"f{i}": {"skin": square > 0} for i in range(60)})
    score(people, files, root=str(tmp_path))  # kernels
    tracemalloc.start()
    scores = score(people, files, root=str(tmp_path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert scores.units["value"].to_list() == [1.0] * 60
    assert peak < 10 * 300 * 300 * 8


def test_a_injected_gap_between_groups_comes_back(tmp_path):
    """A square of side s drawn d pixels off scores 1 − d/s: the groups differ by the injected d."""
    rng = np.random.default_rng(3)
    sides = rng.integers(10, 30, 40)
    shift = np.where(np.arange(40) % 2, 4, 1)
    truths, found = {}, {}
    for i, (s, d) in enumerate(zip(sides, shift, strict=True)):
        for faces, left in ((truths, 2), (found, 2 + d)):
            faces[f"f{i}"] = np.zeros((40, 40), int)
            faces[f"f{i}"][3 : 3 + s, left : left + s] = SKIN
    people = label_picture_truth(tmp_path, truths)
    files = drawn(tmp_path, {n: {"skin": f > 0} for n, f in found.items()})
    value = values(score(people, files, root=str(tmp_path)), "mean_f1")
    by_group = [np.mean([value[f"f{i}"] for i in range(g, 40, 2)]) for g in range(2)]
    assert by_group == pytest.approx([(1 - shift / sides)[g::2].mean() for g in range(2)])


def test_chance_agreement_of_two_random_masks(tmp_path):
    """Pixels drawn by coin: with shares p and q of the picture, F1 is near 2pq / (p + q).

    200 × 200 pixels: one standard deviation is below .004; the bound is five of them.
    """
    rng = np.random.default_rng(4)
    shares = {"a": (0.2, 0.5), "b": (0.4, 0.4), "c": (0.7, 0.1)}
    truths = {n: (rng.random((200, 200)) < p) * SKIN for n, (p, _) in shares.items()}
    found = {n: {"skin": rng.random((200, 200)) < q} for n, (_, q) in shares.items()}
    people = label_picture_truth(tmp_path, truths)
    value = values(score(people, drawn(tmp_path, found), root=str(tmp_path)), "mean_f1")
    expected = {n: 2 * p * q / (p + q) for n, (p, q) in shares.items()}
    assert value == pytest.approx(expected, abs=0.02)


def test_truth_and_prediction_may_change_places(tmp_path):
    """F1 is symmetric, and so is its mean over all parts of either."""
    rng = np.random.default_rng(5)
    one, other = (rng.integers(0, 4, (15, 17)) for _ in range(2))
    means = [
        values(score(label_picture_truth(tmp_path / n, {"a": truth}),
                     drawn(tmp_path / n, {"a": {"combined": found}}),
                     root=str(tmp_path / n)), "mean_f1")
        for n, truth, found in (("1", one, other), ("2", other, one))
    ]  # fmt: skip
    assert means[0] == pytest.approx(means[1])

"""A world written in each layout is the world that its loader reads."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

from isolux.datasets import load
from isolux.geometry.body_parts import read_part_polygons
from isolux.geometry.keypoints import COCO_KEYPOINTS
from isolux.geometry.masks import masks_from_counts
from isolux.io.images import read_image
from isolux_worlds.layouts import LAYOUTS
from isolux_worlds.layouts.fhibe.faces import CLASS_OF_PART
from isolux_worlds.layouts.fhibe.self_reports import SKIN_LEVEL
from isolux_worlds.photo_world.tables import JOINTS
from tests.worlds.layouts._painter import painted
from tests.worlds.layouts._worlds import small_world

BOX = ["box_x", "box_y", "box_w", "box_h"]
HALF_A_CENT = 0.005 + 1e-9  # pixels are written with two decimals


def only(layout):
    """Run a test on this layout alone."""
    return pytest.mark.parametrize("layout", [layout], indirect=True)


@pytest.fixture(scope="module", params=sorted(LAYOUTS))
def layout(request):
    return request.param


@pytest.fixture(scope="module")
def written(layout, tmp_path_factory):
    root = tmp_path_factory.mktemp(layout)
    world = small_world()
    done = LAYOUTS[layout].write(world, root, painted(world))
    return root, done


@pytest.fixture(scope="module")
def world(written):
    return written[1]


@pytest.fixture(scope="module")
def dataset(layout, written):
    inner = {"coco": "annotations/person_keypoints_val2017.json"}.get(layout, "")
    options = {"fhibe": {"segments": True}}.get(layout, {})
    return load(layout, str(written[0] / inner), **options)


def beside(layout, world, dataset) -> pl.DataFrame:
    """Lay each person of the world beside what the loader read of them."""
    names = LAYOUTS[layout].ids(world).people.select("person_id", instance_id="native")
    read = dataset.instances.rename({n: f"read_{n}" for n in dataset.instances.columns[1:]})
    return world.people.join(names, on="person_id").join(read, on="instance_id", validate="1:1")


def words(dataset, attribute) -> dict[str, list[str | None]]:
    rows = dataset.values_of(attribute)
    found: dict[str, list[str | None]] = {}
    for unit, value in rows.select("unit_id", "value").rows():
        found.setdefault(unit, []).append(value)
    return found


def of_people(layout, world, column) -> dict[str, str]:
    names = LAYOUTS[layout].ids(world).people
    return dict(world.people.join(names, on="person_id").select("native", column).rows())


def of_photos(layout, world, column) -> dict[str, str]:
    names = LAYOUTS[layout].ids(world).images
    return dict(world.photos.join(names, on="image_id").select("native", column).rows())


def test_photos_and_people_have_the_names_that_ids_gives(layout, world, dataset):
    names = LAYOUTS[layout].ids(world)
    assert set(dataset.images["image_id"]) == set(names.images["native"])
    if LAYOUTS[layout].judges_people:
        assert set(dataset.instances["instance_id"]) == set(names.people["native"])
        places = dict(dataset.instances.select("instance_id", "image_id").rows())
        assert places == dict(names.people.select("native", "native_image").rows())
    else:
        assert not names.people.height


def test_every_photo_decodes_to_the_annotated_size(layout, written, world, dataset):
    root = written[0]
    pictures = [p for p in root.rglob("*") if p.suffix in (".jpg", ".png")]
    photos = [p for p in pictures if "CelebAMask" not in str(p) and "faces_crop" not in p.name]
    assert len(photos) == world.photos.height
    for path in photos:
        assert read_image(path).shape == (120, 160, 3)
    sizes = dataset.images.select("width", "height").drop_nulls().unique().rows()
    assert sizes == ([] if layout == "dollarstreet" else [(160, 120)])


@pytest.mark.parametrize(
    "layout", sorted(n for n, found in LAYOUTS.items() if found.judges_people), indirect=True
)
def test_boxes_are_those_that_were_seen(layout, world, dataset):
    both = beside(layout, world, dataset)
    assert both.height == world.people.height
    for side in BOX:
        assert (both[side] - both[f"read_{side}"]).abs().max() < 2 * HALF_A_CENT


# FACET


@only("facet")
@pytest.mark.parametrize(
    ("attribute", "column", "renamed"),
    [
        ("gender_presentation", "perceived_gender_presentation",
         {"masculine": "masc", "feminine": "fem"}),
        ("age_presentation", "age_group", {}),
        ("hairtype", "hair_type", {}),
        ("lighting", "lighting", {}),
        ("class", "occupation", {}),
        ("has_tattoo", "tattoo", {}),
        ("has_facial_hair", "facial_hair", {}),
        ("has_mask", "mask", {"mask": "yes", "none": "no"}),
        ("has_eyeware", "eyewear", {"glasses": "yes", "none": "no"}),
        ("has_cap", "headwear", {"cap": "yes", "headscarf": "no", "none": "no"}),
        ("has_headscarf", "headwear", {"cap": "no", "headscarf": "yes", "none": "no"}),
    ],
)  # fmt: skip
def test_facet_says_of_people_what_they_are(layout, world, dataset, attribute, column, renamed):
    true = of_people(layout, world, column)
    assert words(dataset, attribute) == {k: [renamed.get(v, v)] for k, v in true.items()}


@only("facet")
def test_facets_tone_with_most_votes_is_the_true_one(layout, world, dataset):
    votes = dataset.values_of("skin_tone").filter(pl.col("votes") == 3)
    lowest = dict(votes.group_by("unit_id").agg(pl.col("number").min()).rows())
    # Who has tone 10 has as many votes for 9: its only neighbour.
    true = {k: min(float(v), 9.0) for k, v in of_people(layout, world, "skin_tone").items()}
    assert lowest == true
    counted = dataset.values_of("skin_tone").group_by("unit_id").agg(pl.sum("votes"))
    assert set(counted["votes"]) == {6.0}


@only("facet")
def test_facets_bald_people_show_no_hair_colour(layout, world, dataset):
    types, colours = (of_people(layout, world, c) for c in ("hair_type", "hair_color"))
    assert "bald" in types.values()
    expected = {k: [None if types[k] == "bald" else colours[k]] for k in types}
    assert words(dataset, "hair_color") == expected


@only("facet")
def test_facets_masks_are_those_that_were_seen(layout, world, dataset):
    both = beside(layout, world, dataset)
    assert both["mask_counts"].to_list() == both["read_mask_counts"].to_list()
    for seen, read in both.select("part_masks", "read_part_masks").rows():
        own = {m["part"]: m["counts"] for m in seen}
        told = {m["part"]: m["counts"] for m in read or []}
        # One part makes up the clothing here, and one the hair.
        assert told.get("clothing") == own.get("upper_clothing")
        assert told.get("hair") == own.get("head_hair")


# COCO


@only("coco")
def test_coco_has_the_joints_and_masks(layout, world, dataset):
    both = beside(layout, world, dataset)
    assert both["mask_counts"].to_list() == both["read_mask_counts"].to_list()
    true_area = masks_from_counts(
        both["mask_counts"], np.full(both.height, 120), np.full(both.height, 160)
    ).area_px
    assert both["read_area"].to_list() == true_area.tolist()
    places = [JOINTS.index(name.replace(" ", "_")) for name in COCO_KEYPOINTS]
    for row in both.to_dicts():
        assert row["read_keypoint_names"] == [name.replace(" ", "_") for name in COCO_KEYPOINTS]
        v = [row["joints_v"][i] for i in places]
        assert row["read_keypoints_v"] == v
        for c in "xy":
            true = [row[f"joints_{c}"][i] if s else None for i, s in zip(places, v, strict=True)]
            read = row[f"read_keypoints_{c}"]
            assert [r is None for r in read] == [t is None for t in true]
            assert all(
                abs(r - t) <= HALF_A_CENT for r, t in zip(read, true, strict=True) if r is not None
            )


@only("coco")
def test_cocos_captions_are_the_worlds(layout, written, world):
    import json

    text = (written[0] / "annotations" / "captions_val2017.json").read_text()
    captions = {str(a["image_id"]): a["caption"] for a in json.loads(text)["annotations"]}
    assert captions == of_photos(layout, world, "caption")


@only("coco")
def test_coco_keeps_every_attribute_of_the_world(layout, written, world):
    import json

    text = (written[0] / "annotations" / "instances_val2017.json").read_text()
    told = {str(a["id"]): a["attributes"] for a in json.loads(text)["annotations"]}
    for name in ("district", "skin_tone", "scene", "occlusion"):
        assert {k: a[name] for k, a in told.items()} == of_people(layout, world, name)


# BDD100K


@only("bdd100k")
def test_bdd100k_says_how_frames_were_taken(layout, world, dataset):
    scenes = {"city_street": "city street", "residential": "residential", "highway": "highway"}
    times = {"dawn_dusk": "dawn/dusk"}
    for name, column, renamed, other in (
        ("scene", "scene", scenes, None),
        ("timeofday", "time_of_day", times, "same"),
        ("weather", "weather", {}, "same"),
    ):
        true = of_photos(layout, world, column)
        expected = {k: [renamed.get(v, v if other == "same" else None)] for k, v in true.items()}
        assert words(dataset, name) == expected


@only("bdd100k")
def test_bdd100ks_riders_and_hidden_people(layout, world, dataset):
    riders = ("horseman", "motorcyclist", "skateboarder")
    jobs = of_people(layout, world, "occupation")
    classes = dict(dataset.instances.select("instance_id", "classes").rows())
    assert classes == {k: ["rider" if j in riders else "pedestrian"] for k, j in jobs.items()}
    hidden = of_people(layout, world, "occlusion")
    assert words(dataset, "occluded") == {
        k: ["false" if v == "none" else "true"] for k, v in hidden.items()
    }


@only("bdd100k")
def test_a_home_is_a_video(layout, world, dataset):
    homes = Counter(world.photos["household_id"])
    assert Counter(homes.values()) == Counter(Counter(dataset.images["video_id"]).values())


# Dollar Street


@only("dollarstreet")
def test_dollar_street_knows_homes_and_what_is_in_them(layout, world, dataset):
    homes = world.photos.join(world.households, on="household_id").join(
        LAYOUTS[layout].ids(world).images, on="image_id"
    )
    of_home = dict(homes.select("native", "country").rows())
    assert words(dataset, "country") == {k: [v] for k, v in of_home.items()}
    income = dict(dataset.values_of("income").select("unit_id", "number").rows())
    assert income == dict(homes.select("native", "income").rows())
    scenes = {"home": "Living room", "shop": "Vegetables", "city_street": "Street view",
              "residential": "Home", "park": "Fruit trees", "highway": "Car"}  # fmt: skip
    first = {k: v[0] for k, v in words(dataset, "label").items()}
    assert first == {k: scenes[v] for k, v in of_photos(layout, world, "scene").items()}


@only("dollarstreet")
def test_dollar_streets_other_release_is_of_the_same_homes(layout, written, dataset):
    other = load("dollarstreet", str(written[0] / "metadata_full_dollar_street.json"))
    assert other.instances.height == dataset.instances.height
    for name in ("country", "region", "income", "income_bucket"):
        counted = [Counter(d.values_of(name)["value"]) for d in (dataset, other)]
        assert counted[0] == counted[1]
    assert other.instances["classes"].list.len().to_list() == [
        len(c) for c in dataset.instances["classes"]
    ]


@only("dollarstreet")
def test_dollar_streets_parts_have_imagenet_classes(layout, written, dataset):
    parts = [
        load("dollarstreet", str(written[0]), split=s, classes="imagenet1k")
        for s in ("train", "test")
    ]
    assert sum(p.instances.height for p in parts) == dataset.instances.height
    assert all(c.isdigit() for p in parts for found in p.instances["classes"] for c in found)


# FHIBE


@only("fhibe")
@pytest.mark.parametrize("source", ["csv", "json"])
def test_fhibes_people_say_what_they_are(layout, written, world, source):
    dataset = load("fhibe", str(written[0]), source=source)
    pronouns = {"masculine": "He/him/his", "feminine": "She/her/hers",
                "non_binary": "They/them/their"}  # fmt: skip
    true = of_people(layout, world, "perceived_gender_presentation")
    assert words(dataset, "pronoun") == {k: [pronouns[v]] for k, v in true.items()}
    types = ("VI", "V", "IV", "III", "II", "I")
    tones = of_people(layout, world, "skin_tone")
    for name in ("natural_skin_color", "apparent_skin_color"):
        assert words(dataset, name) == {k: [types[SKIN_LEVEL[v]]] for k, v in tones.items()}
    ages = dict(dataset.values_of("age").select("unit_id", "number").rows())
    assert ages == of_people(layout, world, "age")
    # The loader tidies cells of text: whitespace at the ends is gone, and CRLF is as it was.
    where = {k: v[0] for k, v in words(dataset, "location_region").items()}
    of_photo = dict(
        world.people.join(LAYOUTS["fhibe"].ids(world).people, on="person_id")
        .select("native_image", "district")
        .rows()
    )
    assert where == of_photo


@only("fhibe")
@pytest.mark.parametrize("source", ["csv", "json"])
def test_fhibes_joints_are_those_that_are_seen(layout, written, world, source):
    both = beside(layout, world, load("fhibe", str(written[0]), source=source))
    for row in both.to_dicts():
        shown = [v == 2 for v in row["joints_v"]]
        assert row["read_keypoints_v"] == [2 if s else 0 for s in shown]
        for c in "xy":
            pairs = zip(row[f"read_keypoints_{c}"], row[f"joints_{c}"], shown, strict=True)
            assert all(abs(r - t) <= HALF_A_CENT if s else r is None for r, t, s in pairs)


@only("fhibe")
def test_fhibes_polygons_fill_to_what_is_seen_of_each_part(layout, world, dataset):
    from isolux_worlds.layouts.fhibe.faces import CLASSES

    both = beside(layout, world, dataset)
    holes = 0
    for cell, seen in both.select("read_segments", "part_masks").rows():
        filled = read_part_polygons(cell, 120, 160, None)
        classes = {CLASSES[CLASS_OF_PART[m["part"]]]: m["counts"] for m in seen}
        assert set(filled.names) == set(classes)
        for at, name in enumerate(filled.names):  # no two parts of these people share a class
            true = masks_from_counts([classes[name]], np.array([120]), np.array([160]))
            own = slice(*filled.masks.starts[at : at + 2])
            assert filled.masks.edges[own].tolist() == true.edges.tolist()
            holes += cell.count(f"{name}'") > 1
    assert holes  # somebody has a part in pieces


def _interleaved(x, y):
    return [number for point in zip(x, y, strict=True) for number in point]


@only("fhibe")
def test_fhibes_faces_are_upright_and_their_parts_named(layout, written, world):
    root = written[0]
    faces = load("fhibe", str(root), release="face")
    assert 0 < faces.instances.height <= world.people.height
    for person, uri in faces.instances.select("instance_id", "part_mask_uri").rows():
        labels = read_image(root / uri)[:, :, 0]
        assert labels.shape == (512, 512)
        # Background, skin, both eyes, hair and cloth are what the painter painted.
        assert set(np.unique(labels)) <= {0, 1, 4, 5, 13, 18}, person
        left, right = (np.nonzero(labels == n)[1] for n in (4, 5))
        if len(left) and len(right):
            assert right.mean() < left.mean()  # the person's own right is on our left
    for uri in faces.images["uri"]:
        assert read_image(root / uri).shape == (512, 512, 3)
    # Aligned: the right eye lies left of the left one, and as high.
    names = faces.instances["keypoint_names"][0].to_list()
    eyes = [names.index("Right eye"), names.index("Left eye")]
    places = [
        [(x[i], y[i]) for i in eyes]
        for x, y in faces.instances.select("keypoints_x", "keypoints_y").rows()
        if all(x[i] is not None for i in eyes)
    ]
    assert len(places) >= 3
    for (right_x, right_y), (left_x, left_y) in places:
        assert right_x < left_x
        assert abs(right_y - left_y) <= 4 * HALF_A_CENT


@only("fhibe")
def test_fhibes_tables_have_the_columns_of_the_release(layout, written):
    folder = written[0] / "data" / "processed"
    body = pl.read_csv(folder / "fhibe_downsampled" / "fhibe_downsampled.csv")
    name = "fhibe_face_crop_align"
    face = pl.read_csv(folder / name / f"{name}.csv")
    assert (body.width, face.width) == (77, 75)
    assert face.columns[:3] == ["image_id", "filepath", "json_path"]
    assert face.columns[-2:] == ["CelebA", "multiple_subjects"]
    assert set(body.columns) - set(face.columns) == {
        "person_bbox", "face_bbox", "face_bbox_annotator_id", "face_bbox_QAannotator_id",
    }  # fmt: skip
    for table in (body, face):
        assert all((written[0] / path).is_file() for path in table["filepath"])
        assert all((written[0] / path).is_file() for path in table["json_path"])

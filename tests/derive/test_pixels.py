"""Light, contrast, sharpness: tiny pictures by hand, a second implementation, laws, bad input."""

from __future__ import annotations

import io
import threading

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFilter

from isolux import derive
from isolux.core.errors import SpecError
from isolux.core.tables import ATTRIBUTES, check
from isolux.derive import pixels
from isolux.derive._image_reader import MAX_SIDE_PX, OTHER_SIZE, measure_people_in_images
from tests.derive._pictured import box, encoded, of, pictured

# Left half black, right half white: 4 x 4.
HALVES = np.zeros((4, 4, 3), dtype=np.uint8)
HALVES[:, 2:] = 255


def test_grey_has_the_luminance_of_the_standard(tmp_path):
    # 118 / 255 = .46275; ((.46275 + .055) / 1.055) ** 2.4 = .49075 ** 2.4 = exp(−1.70837) = .18116
    grey = np.full((4, 6, 3), 118, dtype=np.uint8)
    found = pixels.derive(pictured(tmp_path, {"a.png": grey}))
    assert of(found, "luminance") == [pytest.approx(0.18116, abs=1e-5)]
    assert of(found, "light", "value") == ["bright"]
    assert of(found, "contrast") == of(found, "sharpness") == [pytest.approx(0.0, abs=1e-3)]


@pytest.mark.parametrize(
    ("rgb", "luminance"),
    # One channel at full: the share of it in luminance (IEC 61966-2-1).
    [((255, 0, 0), 0.2126), ((0, 255, 0), 0.7152), ((0, 0, 255), 0.0722), ((0, 0, 0), 0.0)],
)
def test_each_channel_has_its_share_of_luminance(tmp_path, rgb, luminance):
    found = pixels.derive(pictured(tmp_path, {"a.png": np.full((3, 3, 3), rgb, dtype=np.uint8)}))
    assert of(found, "luminance") == [pytest.approx(luminance, abs=1e-4)]


def test_black_beside_white(tmp_path):
    # Luminance: half of the pixels 1. L* is 0 or 100: standard deviation 50. The Laplacian of the
    # four inner pixels: left of the edge 0+0+0+100 − 4·0 = 100, right of it 100+100+0+100 − 400 =
    # −100: mean 0, standard deviation 100.
    found = pixels.derive(pictured(tmp_path, {"a.png": HALVES}))
    assert of(found, "luminance") == [pytest.approx(0.5, abs=1e-6)]
    assert of(found, "contrast") == [pytest.approx(50.0, abs=1e-3)]
    assert of(found, "sharpness") == [pytest.approx(100.0, abs=1e-3)]


def test_a_person_and_what_is_around_them(tmp_path):
    # p0 fills the white half: 1; around it, to half the box's width, is the third column: black.
    # p1 fills the picture: nothing is around. p2's box has no pixel's middle in it. p3 has no box.
    boxes = box((2, 0, 2, 4), (0, 0, 4, 4), (1.6, 1.6, 0.8, 0.8), None)
    found = pixels.derive(pictured(tmp_path, {"a.png": HALVES}, people=["a.png"] * 4, **boxes))
    assert of(found, "person_luminance") == [
        pytest.approx(1.0, abs=1e-6), pytest.approx(0.5, abs=1e-6), None, None,
    ]  # fmt: skip
    assert of(found, "person_light", "value")[:2] == ["bright", "bright"]
    assert of(found, "surroundings_luminance")[:2] == [0.0, None]
    assert of(found, "contrast_to_surroundings")[:2] == [pytest.approx(100.0, abs=1e-3), None]
    assert of(found, "person_luminance", "reason") == [
        None, None, "no pixel of the picture inside the box", "no box",
    ]  # fmt: skip
    assert of(found, "surroundings_luminance", "reason")[1] == (
        "no pixel of the picture around the box"
    )
    assert of(found, "luminance", "reason") == [None] * 4


def test_a_mask_goes_before_the_box(tmp_path):
    # Run lengths go down the columns of the 4 x 4 picture: 8 pixels of background, 2 of mask. They
    # are white; the box is of the black half.
    dataset = pictured(
        tmp_path, {"a.png": HALVES}, people=["a.png"] * 3, **box(*[(0, 0, 2, 4)] * 3),
        mask_counts=["826", "826", None], mask_height=[4, 2, None], mask_width=[4, 8, None],
    )  # fmt: skip
    found = of(pixels.derive(dataset), "person_luminance")
    # The second's mask is of another size than the picture: the box counts, as for the third.
    assert found == [pytest.approx(1.0), 0.0, 0.0]
    assert of(pixels.derive(dataset), "surroundings_luminance")[0] == pytest.approx(1.0)
    drawn = ["[[2, 0, 4, 0, 4, 4, 2, 4]]", None, "no polygons"]
    dataset = pictured(
        tmp_path, {"a.png": HALVES, "b.png": HALVES}, people=["a.png", "a.png", "b.png"],
        **box(*[(0, 0, 2, 4)] * 3), mask_polygons=drawn,
    )  # fmt: skip
    found = pixels.derive(dataset)
    assert of(found, "person_luminance") == [pytest.approx(1.0), 0.0, None]
    assert of(found, "luminance", "reason")[2] == "a person's mask is not a list of polygons"


def reference(rgb, sides):
    """The same numbers in plain numpy, from the definitions."""
    value = rgb / 255.0
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    y = linear @ [0.2126729, 0.7151522, 0.0721750]
    light = np.where(y > 216 / 24389, 116 * np.cbrt(y) - 16, y * 24389 / 27)
    padded = np.pad(light, 1, mode="edge")
    padded = light[1:-1, 1:-1]
    edge = light[:-2, 1:-1] + light[2:, 1:-1] + light[1:-1, :-2] + light[1:-1, 2:] - 4 * padded
    nearest = np.pad(edge, 1, mode="edge")  # the border has the edge of its neighbour inside
    rows, columns = np.mgrid[: y.shape[0], : y.shape[1]] + 0.5

    def inside(x0, y0, x1, y1):
        return (rows >= y0) & (rows < y1) & (columns >= x0) & (columns < x1)

    x, top, w, h = sides
    own = inside(x, top, x + w, top + h)
    ring = inside(x - w / 2, top - h / 2, x + 1.5 * w, top + 1.5 * h) & ~own
    return {
        "luminance": y.mean(), "contrast": light.std(), "sharpness": edge.std(),
        "person_luminance": y[own].mean(), "person_sharpness": nearest[own].std(),
        "surroundings_luminance": y[ring].mean(),
        "contrast_to_surroundings": light[own].mean() - light[ring].mean(),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_a_second_implementation_agrees(tmp_path, seed):
    rng = np.random.default_rng(seed)
    rgb = rng.integers(0, 256, (rng.integers(20, 50), rng.integers(20, 50), 3), dtype=np.uint8)
    sides = rng.uniform(2, 9, 4)
    found = pixels.derive(pictured(tmp_path, {"a.png": rgb}, **box(sides)))
    for name, expected in reference(rgb, sides).items():
        assert of(found, name) == [pytest.approx(expected, rel=1e-4, abs=2e-3)], name


def scene(seed=0):
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
    return np.asarray(small.resize((160, 120), Image.Resampling.BICUBIC))


def test_less_light_is_less_luminance_and_blur_is_less_sharpness(tmp_path):
    light = scene()
    dark = {f"{k}.png": np.rint(light * 0.8**k).astype(np.uint8) for k in range(8)}
    found = pixels.derive(pictured(tmp_path, dark, **box(*[(40, 30, 60, 60)] * 8)))
    for name in ("luminance", "person_luminance", "surroundings_luminance"):
        values = of(found, name)
        assert values == sorted(values, reverse=True)
        assert len(set(values)) == 8
    assert of(found, "light", "value")[0] == "bright"
    assert of(found, "light", "value")[-1] == "dark"
    image = Image.fromarray(light)
    blurred = {f"b{k}.png": np.asarray(image.filter(ImageFilter.GaussianBlur(k))) for k in range(5)}
    found = pixels.derive(pictured(tmp_path, blurred, **box(*[(40, 30, 60, 60)] * 5)))
    for name in ("sharpness", "person_sharpness"):
        values = of(found, name)
        assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_large_pictures_are_halved_and_boxes_with_them(tmp_path, form):
    # A side of 2 · MAX_SIDE_PX is halved. A stripe of 200 pixels in the middle is white.
    wide = np.zeros((300, 2 * MAX_SIDE_PX, 3), dtype=np.uint8)
    start = wide.shape[1] // 2
    wide[:, start : start + 200] = 255
    data = encoded(wide, form, **({"quality": 95} if form == "JPEG" else {}))
    dataset = pictured(tmp_path, {"a": data}, people=["a", "a"], **box(*[(start, 0, 200, 300)] * 2),
                       mask_counts=[None, _column(start + 1, wide.shape)],
                       mask_height=[None, 300], mask_width=[None, wide.shape[1]])  # fmt: skip
    sized = pl.DataFrame({"image_id": ["a"], "width": [wide.shape[1]], "height": [300]})
    found = pixels.derive(_with(dataset, images=sized))
    share = 200 / wide.shape[1]
    assert of(found, "luminance") == [pytest.approx(share, abs=2e-3)] * 2
    # The second's mask is one odd column: it is read at the middle of the two that became one.
    assert of(found, "person_luminance") == [pytest.approx(1.0, abs=2e-2)] * 2
    assert of(found, "surroundings_luminance") == [pytest.approx(0.0, abs=2e-2)] * 2
    dataset = _with(dataset, instances=dataset.instances.with_columns(
        box_x=pl.lit(0.0), mask_counts=pl.lit(None, pl.String)))  # fmt: skip
    assert of(pixels.derive(_with(dataset, images=sized)), "person_luminance") == [0.0, 0.0]


def _column(x, shape):
    """Run lengths of one column of a picture, as COCO compresses them."""
    from isolux.geometry.masks import masks_to_coco
    from tests._masks import masks_from_bitmaps

    drawn = np.zeros((1, *shape[:2]), dtype=np.uint8)
    drawn[0, :, x] = 1
    return masks_to_coco(masks_from_bitmaps(drawn))[0]["counts"].decode()


def test_halving_moves_luminance_by_little(tmp_path):
    # As stored values are averaged and not light, fine contrast is darkened. The worst is black
    # and white pixel by pixel: 128 is .216 of light where half is. In a photo-like scene with
    # noise of 12 of 255 it is below 2 %.
    rng = np.random.default_rng(1)
    base = Image.fromarray(scene()).resize((3200, 2400), Image.Resampling.BICUBIC)
    photo = np.clip(np.asarray(base) + rng.normal(0, 12, (2400, 3200, 1)), 0, 255).astype(np.uint8)
    dataset = pictured(tmp_path, {"a.jpg": encoded(photo, "JPEG", quality=95)}, sizes=False)
    whole = (np.asarray(Image.open(tmp_path / "a.jpg")) / 255.0).reshape(-1, 3)
    linear = np.where(whole <= 0.04045, whole / 12.92, ((whole + 0.055) / 1.055) ** 2.4)
    exact = float((linear @ [0.2126729, 0.7151522, 0.0721750]).mean())
    halved = of(pixels.derive(dataset), "luminance")[0]
    assert halved != pytest.approx(exact, rel=1e-5)  # it was halved
    assert halved == pytest.approx(exact, rel=0.02)


def _with(dataset, **changes):
    from dataclasses import replace

    return replace(dataset, **changes)


def test_pictures_are_turned_the_way_they_were_annotated(tmp_path):
    # The file lies on its side (EXIF 6). Whether boxes are of the file or of the turned picture is
    # told by the annotated size: 6 x 4 is the file's.
    exif = Image.Exif()
    exif[0x0112] = 6
    lying = np.zeros((4, 6, 3), dtype=np.uint8)
    lying[:, :3] = 255
    data = encoded(lying, exif=exif.tobytes())
    dataset = pictured(tmp_path, {"a.png": data}, **box((0, 0, 3, 4)))
    for width, height, own in ((6, 4, 1.0), (4, 6, 0.75), (5, 5, None)):
        images = pl.DataFrame({"image_id": ["a.png"], "width": [width], "height": [height]})
        found = pixels.derive(_with(dataset, images=images))
        assert of(found, "person_luminance") == [own if own is None else pytest.approx(own)]
        assert of(found, "luminance") == [pytest.approx(0.5)]
    assert of(found, "person_luminance", "reason") == [OTHER_SIZE]


def test_each_picture_is_opened_once_and_few_are_held(tmp_path, monkeypatch):
    opened, held, most = [], 0, 0
    lock = threading.Lock()
    real = pixels._measure_light_of_image

    def counted(seen, *rest):
        nonlocal held, most
        with lock:
            held += 1
            most = max(most, held)
            opened.append(tuple(seen.rows.tolist()))
        try:
            return real(seen, *rest)
        finally:
            with lock:
                held -= 1

    monkeypatch.setattr(pixels, "_measure_light_of_image", counted)
    names = [f"{k % 100}.png" for k in range(200)]
    pixels.derive(pictured(tmp_path, dict.fromkeys(names, HALVES), people=names))
    assert sorted(opened) == sorted((k, k + 100) for k in range(100))
    assert most <= 4


def test_what_cannot_be_read_is_null_and_counted(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    pictures = {
        "good.png": HALVES,
        "half.jpg": encoded(noise, "JPEG")[:300],
        "empty.png": b"",
        "text.png": b"no picture at all",
    }
    dataset = pictured(
        tmp_path / "data",
        pictures,
        people=[*pictures, "absent.png", "../outside.png", "https://example.org/a.png"],
    )
    (tmp_path / "outside.png").write_bytes(encoded(HALVES))
    found = derive.add_missing_derived_attributes(dataset, ["luminance", "light", "contrast"])
    rows = found.attributes.filter(attribute="luminance")
    assert rows["number"].is_not_null().to_list() == [True] + [False] * 6
    assert f"Pictures were read from {tmp_path / 'data'}." in found.notes
    note = next(n for n in found.notes if "unknown of" in n)
    assert note == (
        "luminance, light, contrast: unknown of 6 of 7: "
        "this is not a picture, or it is damaged (2); "
        "a path leads out of its folder (1); a web address, which is not opened (1); "
        "no such picture (1); the file is empty (1)."
    )


def test_without_any_picture_it_is_said_which_option_names_them(tmp_path):
    dataset = pictured(tmp_path, {"a.png": HALVES})
    with pytest.raises(SpecError, match=r"where the pictures are(.|\n)*--images FOLD"):
        pixels.derive(_with(dataset, root=None))
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(SpecError, match=r"no picture could be read(.|\n)*'a.png' below(.|\n)*no s"):
        pixels.derive(_with(dataset, root=str(tmp_path / "elsewhere")))
    away = pl.DataFrame({"image_id": ["a.png"], "uri": ["https://example.org/a.png"]})
    with pytest.raises(SpecError, match=r"web addresses, which are not opened"):
        pixels.derive(_with(dataset, images=away))


def test_what_nobody_has_is_refused(tmp_path):
    dataset = pictured(tmp_path, {"a.png": HALVES})
    assert derive.add_missing_derived_attributes(dataset, ["luminance"]).attributes.height == 1
    with pytest.raises(SpecError, match=r"person_luminance cannot be computed for(.|\n)*no box"):
        derive.add_missing_derived_attributes(dataset, ["person_luminance"])


def test_files_may_lie_in_folders_right_below_the_root(tmp_path):
    # FACET's annotations name sa_1.jpg, which lies in imgs_1, imgs_2 or imgs_3.
    dataset = pictured(tmp_path / "imgs_2", {"sa_1.png": HALVES})
    found = pixels.derive(_with(dataset, root=str(tmp_path)))
    assert of(found, "luminance") == [pytest.approx(0.5)]


def test_nobody_gives_no_rows():
    from isolux.core.containers import Dataset
    from tests.derive._pictured import INFO

    empty = pl.DataFrame(schema={"instance_id": pl.String, "image_id": pl.String})
    assert pixels.derive(Dataset("nobody", INFO, empty)).is_empty()


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@settings(max_examples=120, deadline=None)
@given(
    mode=st.sampled_from(["RGB", "L", "P", "RGBA", "CMYK", "1", "LA"]),
    form=st.sampled_from(["PNG", "JPEG", "TIFF"]),
    size=st.sampled_from([(1, 1), (2, 1), (1, 3), (3, 3), (50_000, 1), (1, 5_000), (37, 23)]),
    sides=st.lists(
        st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=4, max_size=4
    ),
    cut=st.one_of(st.none(), st.integers(0, 400)),
)
def test_odd_pictures_and_boxes_give_numbers_or_reasons(
    tmp_path_factory, mode, form, size, sides, cut
):
    folder = tmp_path_factory.mktemp("odd")
    image = Image.effect_noise(size, 60).convert("RGB").convert(mode)
    stream = io.BytesIO()
    try:
        image.save(stream, form)
    except (OSError, KeyError):  # a form that cannot hold this mode
        return
    data = stream.getvalue()[:cut]
    dataset = pictured(
        folder, {"odd": data, "good.png": HALVES}, **box(sides, (0, 0, 2, 2)), sizes=False
    )
    found = pixels.derive(dataset)
    assert check(found, ATTRIBUTES).height == 18
    lacking = found.filter(pl.col("value").is_null())
    assert lacking["reason"].null_count() == 0
    assert found.filter(pl.col("value").is_not_null())["reason"].is_null().all()
    shares = found.filter(pl.col("attribute").str.ends_with("luminance"))["number"].drop_nulls()
    assert shares.is_between(0.0, 1.0 + 1e-6).all()


def test_an_error_of_no_kind_of_ours_is_not_swallowed(tmp_path):
    dataset = pictured(tmp_path, {"a.png": HALVES})

    def broken(seen):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure_people_in_images(dataset, dataset.instances, broken, 1, "it")

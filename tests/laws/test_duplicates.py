"""Which copies of a photo are found, and what is taken for one: ``checks/duplicates.py``.

On made-up photographs (``_photographs.py``). Recall is over copies; false alarms are over pairs of
two photos that are no copies: of strangers, of two people one after the other in the same place, of
faces that are aligned as in sets of faces.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.checks.duplicates import check
from isolux.checks.duplicates.hashes import find_duplicate_pairs, hash_thumbnails
from isolux.core.plugin_options import list_keyword_defaults
from tests.laws import _photographs as made
from tests.laws._figures import FULL, record, scaled

pytestmark = pytest.mark.law
PHOTOS = scaled(2000, 60)
DEFAULT = {
    name: list_keyword_defaults(check)[name]
    for name in ("most_bits", "least_correlation", "most_apart")
}
HASH_ALONE = {"least_correlation": -1.0, "most_apart": np.inf}
BITS = (4, 8, 10, 14, 18)


def thumbnails(photos: Sequence[Image.Image]) -> np.ndarray:
    small = (p.convert("L").resize((32, 32), Image.Resampling.LANCZOS) for p in photos)
    return np.stack([np.array(p, dtype=np.uint8) for p in small])


def bits_apart(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Hamming distance of rows, to the picture or to its mirror image, whichever is nearer."""
    a, b = hash_thumbnails(first), hash_thumbnails(second)
    straight = np.bitwise_count(a.upright ^ b.upright)
    return np.minimum(straight, np.bitwise_count(a.mirrored ^ b.upright))


def taken_for_copies(first: np.ndarray, second: np.ndarray) -> float:
    """Share of the pairs (row k of either) that the check calls a photo and its copy."""
    found = 0
    for a, b in zip(first, second, strict=True):
        found += find_duplicate_pairs(np.stack([a, b]), **DEFAULT).height
    return found / len(first)


@pytest.fixture(scope="module")
def photos() -> list[Image.Image]:
    rng = np.random.default_rng(2026)
    return [made.photograph(rng) for _ in range(PHOTOS)]


@pytest.fixture(scope="module")
def portraits() -> list[Image.Image]:
    rng = np.random.default_rng(2027)
    return [made.portrait(rng) for _ in range(PHOTOS)]


@pytest.mark.parametrize("copy", made.COPIES)
def test_copies_are_found(copy, photos, portraits):
    rng = np.random.default_rng(3)
    row: dict[str, object] = {"copy": copy}
    for kind, originals in (("photos", photos), ("portraits", portraits)):
        first = thumbnails(originals)
        second = thumbnails([made.COPIES[copy](p, rng) for p in originals])
        apart = bits_apart(first, second)
        for bits in (8, 10):
            row[f"{kind}: phash within {bits}, found %"] = float((apart <= bits).mean())
        row[f"{kind}: the check, found %"] = taken_for_copies(first, second)
    name = copy.replace("%", "").replace(",", "").replace("  ", " ").replace(" ", "-").lower()
    record(f"duplicates-recall-{name}", [row], worlds=PHOTOS, replicates=1)
    assert row["photos: the check, found %"] >= (0.97 if FULL else 0.93)
    assert row["portraits: the check, found %"] >= 0.8


def _pairs_of_one_place(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two people, one after the other, in the same place: alike but for who is there."""
    first, second = [], []
    for _ in range(PHOTOS):
        place, height = made.scene(rng), rng.uniform(0.5, 0.95)
        for side in (first, second):
            side.append(made.taken(made.with_person(place, rng, height), rng))
    return thumbnails(first), thumbnails(second)


def test_what_is_no_copy_is_not_taken_for_one(photos, portraits):
    small, faces = thumbnails(photos), thumbnails(portraits)
    one, other = _pairs_of_one_place(np.random.default_rng(4))
    rows = []
    everyone = find_duplicate_pairs(small, **DEFAULT).height
    pairs = PHOTOS * (PHOTOS - 1) / 2
    for kind, first, second, found in (
        ("strangers", None, None, everyone / pairs),
        ("two people in one place", one, other, taken_for_copies(one, other)),
        ("aligned faces", faces, np.roll(faces, 1, axis=0),
         taken_for_copies(faces, np.roll(faces, 1, axis=0))),
    ):  # fmt: skip
        if first is None:
            hashes = hash_thumbnails(small)
            i, j = np.triu_indices(PHOTOS, 1)
            apart = np.bitwise_count(hashes.upright[i] ^ hashes.upright[j])
            over = np.bitwise_count(hashes.mirrored[i] ^ hashes.upright[j])
            apart = np.minimum(apart, over)
        else:
            apart = bits_apart(first, second)
        row: dict[str, object] = {"pairs of": kind, "pairs": len(apart)}
        for bits in BITS:
            row[f"phash within {bits} %"] = float((apart <= bits).mean())
        rows.append(row | {"the check %": found})
    record("duplicates-alarms", rows, worlds=PHOTOS, replicates=1)
    assert rows[0]["the check %"] <= 1e-4
    assert rows[1]["the check %"] <= 0.05
    assert rows[2]["the check %"] <= 0.05


def test_precision_and_recall_in_one_set(photos):
    """A tenth of the photos is there again, copied in one way or another."""
    rng = np.random.default_rng(5)
    copies = list(made.COPIES.values())
    again = [
        (k, way(photos[k], rng))
        for k, way in zip(range(0, PHOTOS, 10), itertools.cycle(copies), strict=False)
    ]
    whole = thumbnails([*photos, *(p for _, p in again)])
    true = {(k, PHOTOS + n) for n, (k, _) in enumerate(again)}
    rows = []
    for label, limits in (
        *((f"phash within {bits}", {"most_bits": bits} | HASH_ALONE) for bits in BITS),
        ("the check", DEFAULT),
    ):
        if limits is DEFAULT:
            found = find_duplicate_pairs(whole, **DEFAULT)
        else:
            found = _near(whole, limits["most_bits"])
        said = set(found.select("first", "second").rows())
        hits = len(said & true)
        rows.append(
            {"by": label, "copies": len(true), "told": len(said),
             "precision %": hits / len(said) if said else None, "recall %": hits / len(true)}
        )  # fmt: skip
    record("duplicates-one-set", rows, worlds=PHOTOS, replicates=1)
    assert rows[-1]["precision %"] >= 0.98
    assert rows[-1]["recall %"] >= (0.97 if FULL else 0.8)
    assert rows[-1]["recall %"] >= rows[1]["recall %"], "at least as many as phash within 8"


def _near(whole: np.ndarray, bits: int) -> pl.DataFrame:
    """Pairs whose hashes are within so many bits, straight or mirrored: no second stage."""
    hashes = hash_thumbnails(whole)
    first, second = np.triu_indices(len(whole), 1)
    straight = np.bitwise_count(hashes.upright[first] ^ hashes.upright[second])
    over = np.bitwise_count(hashes.mirrored[first] ^ hashes.upright[second])
    near = np.minimum(straight, over) <= bits
    return pl.DataFrame({"first": first[near], "second": second[near]})

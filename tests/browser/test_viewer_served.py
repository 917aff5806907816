"""The local viewer in a browser: from a group to a person, and to a photo with box and mask."""

from __future__ import annotations

import threading

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.api.view.person_images import PredictedBoxes, RunImages
from isolux.viewer import DisplayedRun, Site, build_page_contents, serve_until_interrupted
from tests.browser._viewing import violations
from tests.browser.conftest import Watch
from tests.viewer._runs import audited

pytestmark = pytest.mark.browser

MASK = r"\c0d0X100000000000000000dR4"
"""Rows 20 to 40, columns 10 to 20 of 60 by 90 pixels, as pycocotools writes them."""


class EndedError(Exception):
    """Ends the server."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Serve a run whose first person has a photo, a box and a mask of 10 by 20 pixels."""
    pytest.importorskip("uvicorn", reason="EXTRA view ABSENT: the local server was NOT started")
    folder = tmp_path_factory.mktemp("photos")
    Image.fromarray(np.full((60, 90, 3), 200, np.uint8)).save(folder / "a.png")
    person = {
        "unit_id": "p0", "image_id": "i0", "uri": "a.png",
        "box_x": 10.0, "box_y": 20.0, "box_w": 30.0, "box_h": 35.0,
        "mask_counts": MASK, "mask_height": 60, "mask_width": 90,
        "keypoints_x": [20.0], "keypoints_y": [30.0], "keypoints_v": [2.0],
    }  # fmt: skip
    drawn = {"model": "eyes", "image_id": "i0", "label": "person", "score": 0.875,
             "box_x": 12.0, "box_y": 22.0, "box_w": 28.0, "box_h": 30.0}  # fmt: skip
    boxes = PredictedBoxes(lambda: pl.DataFrame([drawn]))
    pictures = RunImages(folder, [pl.DataFrame([person])], predicted_boxes=[boxes])
    held = build_page_contents([DisplayedRun(audited(), "a")], people=True)
    holds = {**held.manifest["holds"], "served": True, "pictures": True}
    site = Site(type(held)({**held.manifest, "holds": holds}, held.tables), pictures)
    found, told, done = [], threading.Event(), threading.Event()

    def ready(url):
        found.append(url)
        told.set()
        done.wait(120)
        raise EndedError

    def run():
        with pytest.raises(EndedError):
            serve_until_interrupted(site, None, ready)

    thread = threading.Thread(target=run)
    thread.start()
    assert told.wait(20)
    yield found[0]
    done.set()
    thread.join(10)


def test_from_a_person_to_the_photo_with_box_and_mask(chromium, address):
    page, watch = chromium.new_page(viewport={"width": 1280, "height": 900}), Watch()
    answers = {}
    page.on("console", lambda message: watch.messages.append(message.text))
    page.on("pageerror", lambda error: watch.messages.append(str(error)))
    page.on("response", lambda answer: answers.update({answer.url: answer.status}))
    page.goto(f"{address}#view=people&person=p0")
    page.wait_for_selector(".photo image")
    page.wait_for_load_state("networkidle")
    photo = page.locator(".photo svg")
    assert photo.get_attribute("viewBox") == "0 0 90 60"
    assert photo.get_attribute("aria-label") == "Picture of p0, blurred"
    assert page.locator(".photo svg > .over").get_attribute("width") == "30"
    assert page.locator(".photo .drawn .over").get_attribute("width") == "28"
    caption = page.locator(".photo figcaption").inner_text()
    assert "what the model drew (dashed): 1 box" in caption
    assert "eyes: person, score 0.875" in caption
    assert page.locator(".photo circle").count() == 1
    assert page.locator(".photo image").count() == 2  # the photo, and the mask over it
    assert "box, mask, keypoints" in page.locator(".photo figcaption").inner_text()
    page.get_by_label("what was annotated").uncheck()
    assert page.locator(".photo image").count() == 1
    page.get_by_label("what the model drew").uncheck()
    assert page.locator(".photo rect").count() == 0
    base = address.partition("/?")[0]
    asked = {url for url in answers if not url.startswith("data:")}
    assert all(url.startswith(base) for url in asked), asked
    assert all(answers[url] == 200 for url in asked), answers
    assert violations(page) == []
    assert watch.messages == []


def test_a_person_without_a_photo_says_why(chromium, address):
    page = chromium.new_page()
    page.goto(f"{address}#view=people&person=p1")
    page.wait_for_selector(".detail dl")
    page.get_by_text("this person is not in the dataset as it is now").wait_for()
    page.close()


def test_without_the_token_a_browser_sees_what_to_do(chromium, address):
    page = chromium.new_page()
    page.goto(address.partition("?")[0])
    assert "needs the whole address" in page.inner_text("body")
    page.close()


def test_pictures_stand_in_a_grid_worst_first_and_open_a_person(chromium, address):
    page, watch = chromium.new_page(viewport={"width": 1280, "height": 900}), Watch()
    page.on("pageerror", lambda error: watch.messages.append(str(error)))
    page.goto(f"{address}#view=people")
    page.get_by_label("Show").select_option("pictures")
    tiles = page.locator(".tiles button")
    tiles.first.wait_for()
    captions = [float(text.split()[0]) for text in tiles.all_inner_texts() if text[:1].isdigit()]
    assert captions == sorted(captions)
    assert tiles.count() == 60
    page.get_by_role("button", name="Show more of").click()
    assert tiles.count() == 120
    page.get_by_label("Search ids").fill("p0")
    page.wait_for_load_state("networkidle")
    tile = page.get_by_role("button", name="p0, ").first
    assert "thumbnail" in tile.locator("img").get_attribute("src")
    assert tile.locator("img").evaluate("image => image.naturalWidth") > 0
    tile.click()
    page.wait_for_selector(".photo image")
    assert violations(page) == []
    assert watch.messages == []

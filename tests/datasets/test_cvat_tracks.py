"""CVAT for video: tracks are read, frame by frame, and each track is a cluster."""

from __future__ import annotations

import pytest

from isolux.core.errors import TableError
from isolux.datasets import load

META = (
    "<meta><task><size>6</size><start_frame>0</start_frame><stop_frame>5</stop_frame>"
    "<original_size><width>64</width><height>48</height></original_size></task></meta>"
)


def shape(frame, x, *, outside=0, tone="dark"):
    return (
        f'<box frame="{frame}" outside="{outside}" occluded="1" keyframe="1" xtl="{x}" ytl="5"'
        f' xbr="{x + 20}" ybr="35"><attribute name="tone">{tone}</attribute></box>'
    )


TRACKS = (
    f'<track id="0" label="person">{shape(0, 4)}{shape(1, 6)}{shape(2, 6, outside=1)}</track>'
    f'<track id="7" label="rider">{shape(1, 30, tone="light")}</track>'
)


def written(tmp_path, content):
    file = tmp_path / "annotations.xml"
    file.write_text(f"<annotations><version>1.1</version>{content}</annotations>")
    return file


def test_each_frame_in_which_a_track_is_inside_is_a_box(tmp_path):
    found = load("cvat", written(tmp_path, META + TRACKS))
    rows = found.instances.select("image_id", "classes", "box_x", "box_w", "cluster_id").rows()
    assert rows == [
        ("frame_000000", ["person"], 4.0, 20.0, "0"), ("frame_000001", ["person"], 6.0, 20.0, "0"),
        ("frame_000001", ["rider"], 30.0, 20.0, "7"),
    ]  # fmt: skip
    assert found.values_of("tone")["value"].to_list() == ["dark", "dark", "light"]
    assert found.values_of("track")["value"].to_list() == ["0", "0", "7"]
    assert any("a track is a cluster" in note for note in found.notes)


def test_frames_without_a_track_are_pictures_that_hold_nothing(tmp_path):
    found = load("cvat", written(tmp_path, META + TRACKS))
    assert found.images["image_id"].to_list() == [f"frame_{k:06d}" for k in range(6)]
    assert found.images.select("width", "height").unique().rows() == [(64, 48)]
    bare = load("cvat", written(tmp_path, TRACKS))
    assert bare.images["image_id"].to_list() == [f"frame_{k:06d}" for k in range(3)]
    assert bare.images["width"].to_list() == [None] * 3


def test_another_cluster_may_be_named(tmp_path):
    found = load("cvat", written(tmp_path, META + TRACKS), cluster="image")
    assert found.instances["cluster_id"].to_list()[0] == "frame_000000"


def test_images_and_tracks_in_one_file_are_refused(tmp_path):
    image = '<image id="0" name="7.jpg" width="64" height="48"></image>'
    with pytest.raises(TableError, match="images and tracks are in the same file"):
        load("cvat", written(tmp_path, image + TRACKS))


def test_tracks_without_a_box_are_refused(tmp_path):
    with pytest.raises(TableError, match="no track has a box in any frame"):
        load("cvat", written(tmp_path, '<track id="0" label="person"></track>'))

"""A photo world: a million people without pixels, and a thousand painted photos as files.

There is no peer that draws people whose every pixel is known. The ratio is of the time that was
allowed (20 s and 60 s on two cores) to the wall time; CPU seconds of all processes stand beside.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._timing import last_line, quick
from isolux_worlds import draw_people, preset
from isolux_worlds.synthesis import synthesize

ALLOWED_PEOPLE_S, ALLOWED_PHOTOS_S = 20.0, 60.0
PEOPLE_A_HOUSEHOLD, PHOTOS_A_HOUSEHOLD = 6.0, 3.0  # means of the preset


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall seconds, CPU seconds of this process and its children, and the result."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    before = [resource.getrusage(kind) for kind in kinds]
    start = time.perf_counter()
    result = work()
    wall = time.perf_counter() - start
    after = [resource.getrusage(kind) for kind in kinds]
    cpu = sum(
        b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime
        for a, b in zip(before, after, strict=True)
    )
    return wall, cpu, result


def main() -> None:
    share = 0.02 if quick() else 1.0
    settings = preset("biased")
    many = settings.model_copy(update={"households": round(share * 1e6 / PEOPLE_A_HOUSEHOLD)})
    draw_people(settings)  # compiled and warm
    wall, cpu, world = timed(lambda: draw_people(many))
    people = world.people.height
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{people:,} people without pixels: {wall:.1f} s, {cpu:.1f} CPU s, peak {peak:.2f} GiB")

    few = settings.model_copy(update={"households": round(share * 1000 / PHOTOS_A_HOUSEHOLD)})
    with tempfile.TemporaryDirectory() as folder:
        done = Path(folder) / "world"
        synthesize(settings.model_copy(update={"households": 3}), Path(folder) / "warm")
        photo_wall, photo_cpu, made = timed(lambda: synthesize(few, done))
        photos = made.world.photos.height
        bytes_ = sum(file.stat().st_size for file in done.rglob("*.jpg"))
    print(
        f"{photos:,} photos of 640 × 480 painted and written with masks, boxes, attributes and all"
        f" models' answers (facet): {photo_wall:.1f} s, {photo_cpu:.1f} CPU s,"
        f" {bytes_ / 2**20:.0f} MiB of JPEG, {os.cpu_count()} cores"
    )
    per_thousand = photo_wall * 1000 / photos
    last_line(
        "synthesize", per_thousand, "60 s allowed for 1,000 photos", ALLOWED_PHOTOS_S,
        photo_cpu_s=photo_cpu, photos=photos,
        people=people, people_wall_s=wall, people_cpu_s=cpu, people_peak_gib=peak,
        people_allowed_s=ALLOWED_PEOPLE_S,
    )  # fmt: skip


if __name__ == "__main__":
    main()

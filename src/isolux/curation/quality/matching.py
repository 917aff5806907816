"""A project's photos against a list of known illegal material, and what people decided of matches.

Photos that match are out at once; nothing leaves the project until each is decided
(``isolux.curation.project.held``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from isolux.curation.project.database import reading
from isolux.curation.project.decided import read_verdicts
from isolux.curation.project.decisions import IN, OUT, decide
from isolux.curation.project.folder import Project
from isolux.curation.project.held import CONFIRMED, KNOWN, LISTED, listed
from isolux.curation.project.tables import images
from isolux.curation.quality.known import HashList
from isolux.vocabulary.errors import FileError, UnknownNameError

__all__ = ["Matched", "cleared", "decide_matches", "match_photos", "write_matches"]


@dataclass(frozen=True, slots=True)
class Matched:
    """What a list found: photos looked at, ids of new matches, ids that are undecided."""

    looked_at: int
    new: tuple[str, ...]
    undecided: tuple[str, ...]


def match_photos(project: Project, known: HashList) -> Matched:
    """Compare every photo's file with a list; those that match are out until decided."""
    import sqlalchemy as sa

    query = sa.select(images.c.image_id, images.c.file).where(images.c.file.is_not(None))
    with reading(project.engine) as connection:
        rows = connection.execute(query.order_by(images.c.image_id)).all()
    fine = cleared(project)
    found: dict[str, str] = {}
    for image, file in rows:
        try:
            data = (project.folder / file).read_bytes()
        except OSError as error:
            raise FileError(
                "a photo cannot be read", found=str(error.strerror), where=f"photo {image}"
            ) from error
        entry = known.match(data)
        if entry is not None and fine.get(image) != entry:
            found[image] = entry
    new = write_matches(project, found, known)
    undecided = listed(project).filter(state="undecided")["image_id"]
    return Matched(len(rows), new, tuple(undecided))


def cleared(project: Project) -> Mapping[str, str]:
    """Name the entry that each photo matched of which people said that it is no such material."""
    found = listed(project).filter(state=IN)
    return dict(found.select("image_id", "entry").rows())


def write_matches(project: Project, found: Mapping[str, str], known: HashList) -> tuple[str, ...]:
    """Leave matches out; the ids of those that were not known before."""
    before = set(listed(project).filter(pl.col("state") != IN)["image_id"])
    new = tuple(image for image in found if image not in before)
    schema = {"unit_id": pl.String, "reason": pl.String}
    refused = pl.DataFrame([(one, found[one]) for one in new], schema=schema, orient="row")
    if new:
        decide(project, KNOWN, LISTED, refused, looked_at=new, said={"entries": len(known)})
    return new


def decide_matches(project: Project, sheet: str | Path) -> int:
    """Write what people decided about matches; how many are decided now that were not."""
    said = read_verdicts(sheet, "image")
    state = listed(project)
    strangers = said.filter(~pl.col("unit_id").is_in(state["image_id"].implode()))["unit_id"]
    if len(strangers):
        raise UnknownNameError("match", strangers[0], state["image_id"].to_list(), where=str(sheet))
    before = dict(state.select("image_id", "state").rows())
    changed = [u for u, v in said.select("unit_id", "verdict").iter_rows() if before[u] != v]
    none = pl.DataFrame(schema={"unit_id": pl.String, "reason": pl.String})
    gone = said.filter(verdict=OUT).select("unit_id", "reason")
    back = said.filter(verdict=IN)["unit_id"]
    if len(back):
        decide(project, KNOWN, CONFIRMED, none, looked_at=back)
        decide(project, KNOWN, LISTED, none, looked_at=back)
    if gone.height:
        decide(project, KNOWN, CONFIRMED, gone, looked_at=gone["unit_id"])
    return len(changed)

"""What is true at the end of the story, whoever the server was."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import isolux
from isolux_curate.api.withdraw import search_folders_for_people, verify_and_read_receipt
from isolux_curate.project.folder import verify_journal_and_seals
from isolux_curate.project.queries import (
    read_database_table,
    read_first_exclusion_by_photo,
    tabulate_project_funnel,
)
from isolux_worlds.rehearsal.simulated_predictions import predict
from tests.curate.story._story import Lab

__all__ = ["check_audit", "check_funnel", "check_withdrawal"]

_WRONGLY = 0.02  # of whole photos, that people take for faulty


def check_funnel(lab: Lab) -> list[str]:
    """Hold the funnel to the injected one; photos whose fault nobody found."""
    injected = lab.photos.drop_nulls("fault").filter(pl.col("fault") != "bystander")
    by = dict(injected.select("image_id", "rule").iter_rows())
    left = {
        image: rule for image, _, rule, *_ in read_first_exclusion_by_photo(lab.project).iter_rows()
    }
    rules = set(injected.filter(pl.col("finder").is_in(["rule", "ledger"]))["image_id"])
    reviewers = {"hidden filter", "saved anew"}
    for image, rule in by.items():  # by the rule that was injected, or a reviewer was before it
        assert left.get(image, rule) in {rule, *reviewers}, image
    missed = [image for image in by if image not in left]
    assert not rules & set(missed)
    wrongly = set(left) - set(by)
    assert len(wrongly) <= _WRONGLY * lab.photos.height + 2
    table = tabulate_project_funnel(lab.project)
    assert table["left"].sum() == len(by) - len(missed) + len(wrongly)
    assert table["remain"][-1] == lab.photos.height - len(left)
    return missed


def check_audit(lab: Lab, public: Path) -> isolux.Audit:
    """Audit what was published: everyone who was drawn is judged, and as many found as were."""
    boxes = lab.folder.parent / "found.csv"
    number = predict(public / "objects.json", public, lab.inbox, boxes)
    audit = isolux.audit(
        f"curated:{public}", task="detection", metric="recall_at_iou", by="perceived_skin_tone",
        bins=("perceived_skin_tone=edges:1,6,11",), predictions=str(boxes), replicates=100,
    )  # fmt: skip
    people = pl.read_csv(public / "people.csv", infer_schema=False)
    drawn = people.drop_nulls("box_x")
    told = people["perceived_skin_tone"].drop_nulls()
    assert not told.str.contains(";").any()
    shared = people.group_by("cluster_id").agg(pl.col("split").n_unique())
    assert shared["split"].max() == 1
    whole = audit.group_metrics.filter(pl.col("attribute").is_null())
    assert whole["n_units"].max() == drawn.height
    found = whole["value"].drop_nulls().max()
    assert found == pytest.approx(number / drawn.height, abs=3 / drawn.height)
    return audit


def check_withdrawal(lab: Lab, public: Path, server: str | None, *more: Path) -> None:
    """Nothing of someone who leaves is left in the project, the publication or on the server."""
    who = (lab.inbox / "later.txt").read_text().split()
    photos = lab.people.filter(pl.col("subject_id").is_in(who), "stands")["image_id"].to_list()
    tasks = read_database_table(lab.project, "tasks").filter(pl.col("image_id").is_in(photos))
    assert tasks.height > len(photos)
    before = pl.read_csv(public / "people.csv").height
    done = lab.leave_later(server, *more)
    assert done.receipt is not None, (done.remaining, done.unsearchable)
    assert verify_and_read_receipt(done.receipt)["kind"] == "subject"
    assert search_folders_for_people([lab.folder, public, *more], who=[*who, *photos]).matches == []
    assert pl.read_csv(public / "people.csv").height < before
    assert (
        read_database_table(lab.project, "images")
        .filter(pl.col("image_id").is_in(photos))
        .is_empty()
    )
    gone = set(tasks["server_task"].drop_nulls())
    for number in tasks["server_project"].drop_nulls().unique():
        assert not gone & {
            int(one["id"]) for one in lab.server.list_tasks(number, with_answers=False)
        }
    verify_journal_and_seals(lab.project)

"""The whole story through a real Label Studio 1.23: ``ISOLUX_STORY=whole`` runs it.

It takes a quarter of an hour. The server is found as in
``tests/curate/annotation/test_label_studio.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.annotation.stages import STAGES
from isolux_curate.project.folder import verify_journal_and_seals
from isolux_curate.project.queries import read_database_table
from isolux_worlds.rehearsal import CREW, draw_submitted_photos, sign_up_or_in, write_inbox
from tests.curate.annotation.test_label_studio import (
    label_studio as label_studio,  # noqa: PLC0414 (a fixture)
)
from tests.curate.story._ends import check_audit, check_funnel, check_withdrawal
from tests.curate.story._story import Lab

_PHOTOS = 120


@pytest.mark.skipif(
    os.environ.get("ISOLUX_STORY") != "whole",
    reason="it takes a quarter of an hour: ISOLUX_STORY=whole runs it",
)
def test_from_nothing_to_a_published_dataset(
    tmp_path: Path, label_studio: LabelStudioServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABEL_STUDIO_TOKEN", label_studio.token)
    write_inbox(draw_submitted_photos(_PHOTOS, seed=1), tmp_path / "inbox")
    people = sign_up_or_in(label_studio.url, [one.name for one in CREW])
    lab = Lab(tmp_path / "faces", tmp_path / "inbox", label_studio, people)
    lab.arrive()
    seen = lab.review()
    lab.suspects()
    lab.five_stages()
    for stage in STAGES:
        assert lab.open_tasks(stage) == 0
    verify_journal_and_seals(lab.project)
    told = lab.told()
    given = read_database_table(lab.project, "annotations")
    assert given.height == told.height  # nothing twice, and nothing lost
    lab.some_withdraw()
    missed = check_funnel(lab)
    public = lab.publish(seen["bystander"])
    check_audit(lab, public)
    uploaded = tmp_path / "ls" / "media" / "upload"  # Label Studio forgets files, and keeps them
    before = sum(one.is_file() for one in uploaded.rglob("*"))
    check_withdrawal(lab, public, label_studio.url, uploaded)
    assert 0 < sum(one.is_file() for one in uploaded.rglob("*")) < before
    print(f"{told.height:,} answers, {len(missed)} injected faults that nobody found")

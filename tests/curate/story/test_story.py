"""From nothing to five stages of annotation: what was injected is what comes out.

Told to the small server of the tests, at 100 photos.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from isolux.io.images import read_image
from isolux_curate.annotation.golden_tasks import tabulate_graduation_rates
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.annotation.stages import STAGES
from isolux_curate.project.folder import verify_journal_and_seals
from isolux_curate.project.queries import (
    read_database_table,
    read_exclusions_with_reasons,
    read_first_exclusion_by_photo,
    read_images,
    tabulate_project_funnel,
)
from isolux_worlds.rehearsal import draw_submitted_photos, write_inbox
from isolux_worlds.rehearsal.annotation_tasks import iou_of_boxes, true_box
from isolux_worlds.rehearsal.files import SERIAL
from tests.curate.annotation._fake import Fake, running
from tests.curate.annotation._fake import fake as fake  # noqa: PLC0414 (a fixture)
from tests.curate.story._ends import check_audit, check_funnel, check_withdrawal
from tests.curate.story._story import Lab, accounts_at

_SIDES = ("x", "y", "w", "h")
_Seen = dict[str, pl.DataFrame]


@pytest.fixture(scope="module")
def inbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("story") / "inbox"
    write_inbox(draw_submitted_photos(100, seed=1), folder)
    return folder


def _lab(folder: Path, inbox: Path, fake: Fake) -> Lab:
    accounts = accounts_at(fake)
    found = Lab(folder / "faces", inbox, LabelStudioServer(fake.url, fake.token), accounts)
    found.arrive()
    return found


@pytest.fixture
def lab(tmp_path: Path, inbox: Path, fake: Fake) -> Lab:
    return _lab(tmp_path, inbox, fake)


@pytest.fixture(scope="module")
def built(inbox: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, _Seen]]:
    """All five stages, of what reviewers let pass; and what they saw."""
    with running() as server:
        one = _lab(tmp_path_factory.mktemp("built"), inbox, server)
        seen = one.review()
        one.suspects()
        one.five_stages()
        for stage in STAGES:
            assert one.open_tasks(stage) == 0
        yield one, seen


def test_intakes_funnel_is_the_injected_one(lab: Lab) -> None:
    """Every photo with a fault that a rule can see leaves by that rule, and no other photo does."""
    assert lab.notes == ()
    injected = lab.photos.filter(finder="rule")
    first = {row[0]: row[1:] for row in read_first_exclusion_by_photo(lab.project).iter_rows()}
    where = injected.select("image_id", "step", "rule").iter_rows()
    assert first == {image: (step, rule) for image, step, rule in where}
    refused = read_exclusions_with_reasons(lab.project).group_by("rule").agg("image_id")
    by_rule = {rule: set(images) for rule, images in refused.iter_rows()}
    for (rule,), own in injected.group_by("rule"):
        assert set(own["image_id"]) <= by_rule[rule], rule
    table = tabulate_project_funnel(lab.project)
    counted = dict(injected.group_by("rule").agg(pl.len()).iter_rows())
    assert dict(table.filter(pl.col("left") > 0).select("rule", "left").iter_rows()) == counted
    assert table["remain"][-1] == 100 - injected.height


def test_what_people_see_leaves_by_the_review(lab: Lab) -> None:
    found = lab.review()
    sheets = lab.suspects()
    first = {row[0]: row[2] for row in read_first_exclusion_by_photo(lab.project).iter_rows()}
    for fault in ("hidden filter", "saved anew"):
        seen = found[fault]["image_id"].to_list()
        assert {first[image] for image in seen} == {fault}
        assert len(_of(lab, fault) & set(seen)) >= len(_of(lab, fault)) - 1
    assert _of(lab, "bystander") & set(first) == set()
    # What is on a sheet is looked at; who is out takes every photo along, and a logo one photo.
    for rule, done in sheets.items():
        left = {image for image, by in first.items() if by == rule}
        assert left <= _of(lab, rule)
        assert len(left) == done.n_excluded_photos
        assert done.n_reviewed >= done.n_out > 0
    place = sheets["contradictory place"]
    assert place.n_excluded_photos == len(_of(lab, "contradictory place"))
    assert place.evidence_kinds["kind"].to_list() == ["contradiction of country"]


def _of(lab: Lab, fault: str) -> set[str]:
    return set(lab.photos.filter(pl.col("fault") == fault)["image_id"])


def _unseen(lab: Lab, slip: str) -> set[tuple[str, int, str]]:
    """List boxes whose three raters of skin tone all had a slip."""
    told = lab.told().filter(stage="skin_tone", golden=False)
    all_three = pl.col("slips").str.contains(slip).all()
    found = told.group_by("image_id", "person_id", "box").agg(all_three)
    return {row[:3] for row in found.iter_rows() if row[3]}


def test_five_stages_find_what_annotators_did_wrong(built: tuple[Lab, _Seen]) -> None:
    """A loose box or wrong class stands at the end only where no rater of it noticed."""
    lab, _ = built
    verify_journal_and_seals(lab.project)
    people = {(p["image_id"], p["person_id"]): p for p in lab.people.iter_rows(named=True)}
    wanted = {key for key, p in people.items() if p["class"] and _stands(lab, p["image_id"])}
    loose: set[tuple[str, int]] = set()
    wrong: set[tuple[str, int]] = set()
    drawn: set[tuple[str, int]] = set()
    for row in lab.drawn().iter_rows(named=True):
        box = tuple(row[side] for side in _SIDES)
        key = max(
            (k for k in people if k[0] == row["image_id"] and k[1] is not None),
            key=lambda k: iou_of_boxes(box, true_box(people[k])),
        )
        drawn.add(key)
        if iou_of_boxes(box, true_box(people[key])) < 0.8:
            loose.add(key)
        if row["primary"] != people[key]["class"]:
            wrong.add(key)
    assert drawn <= wanted
    assert loose <= {key[:2] for key in _unseen(lab, "loose unnoticed")}
    assert wrong <= {key[:2] for key in _unseen(lab, "class unnoticed")}
    assert len(loose) + len(wrong) <= 0.05 * len(drawn)
    # Nobody looks at a photo again in which a person got no box: FACET's stages cannot find them.
    missed = (
        lab.told()
        .filter(stage="boxes", golden=False)
        .filter(pl.col("slips").str.contains("missed"))
    )
    assert wanted - drawn <= {key for key in wanted if key[0] in set(missed["image_id"])}


def _stands(lab: Lab, image: str) -> bool:
    return image not in set(read_exclusions_with_reasons(lab.project)["image_id"].drop_nulls())


def test_who_is_careless_does_not_annotate_and_regions_are_told(lab: Lab) -> None:
    lab.regions_of_raters()
    scores = lab.train("count")
    careless = scores.filter(annotator_id=lab.accounts["ivo"].annotator_id)
    assert careless.select("score", "status").row(0)[1] == "below"
    lab.annotate("count")
    given = read_database_table(lab.project, "annotations").join(
        read_database_table(lab.project, "tasks").filter(golden=False), on="task_id"
    )
    assert lab.accounts["ivo"].annotator_id not in given["annotator_id"]
    table = tabulate_graduation_rates(lab.project).filter(stage="count")
    passed = dict(table.select("region", "graduated").iter_rows())
    assert sum(passed.values()) == len(lab.at_work["count"])
    assert passed["west"] <= 2
    assert table["examined"].sum() == 9


def test_photos_of_no_class_leave_when_people_are_counted(lab: Lab) -> None:
    lab.train("count")
    lab.annotate("count")
    told = lab.told().filter(stage="count", golden=False)
    truly = set(lab.photos.filter(fault="no one of the classes")["image_id"])
    slipped = set(told.filter(slips="count")["image_id"])
    first = read_first_exclusion_by_photo(lab.project).filter(rule="no one matches")
    left = set(first["image_id"])
    assert truly - slipped <= left <= truly


def test_what_is_published_names_no_one_and_who_withdraws_is_gone(
    built: tuple[Lab, _Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The published set is audited; then someone leaves it, the project and the server."""
    lab, seen = built
    monkeypatch.setenv("LABEL_STUDIO_TOKEN", lab.server.token)
    lab.some_withdraw()
    missed = check_funnel(lab)
    assert len(missed) <= 3
    public = lab.publish(seen["bystander"])
    held = [path.read_bytes() for path in sorted(public.rglob("*")) if path.is_file()]
    names = lab.people["subject_id"].unique().to_list()
    for secret in (SERIAL, "Phone 3", "home 0", "photo-0", *names):
        assert not [data for data in held if secret.encode() in data], secret
    _no_bystander(lab, seen["bystander"], public)
    check_audit(lab, public)
    check_withdrawal(lab, public, lab.server.url)


def _no_bystander(lab: Lab, seen: pl.DataFrame, public: Path) -> None:
    """Everyone who was seen beside those who take part is black in the published photo."""
    stands = read_images(lab.project).filter(pl.col("image_id").is_in(seen["image_id"].implode()))
    black = [
        path for path in (public / "photos").glob("*.jpg")
        if (read_image(path).max(axis=2) < 8).mean() > 0.03
    ]  # fmt: skip
    truly = lab.photos.filter(fault="bystander").join(stands, on="image_id", how="semi")
    assert truly.height > 0
    assert len(black) >= truly.height

"""A dataset is built from an inbox, step by step, as a lab would; every step can be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import yaml

from isolux.io.consent import append_consent
from isolux_curate.annotation.exchange import import_and_apply_server_answers, plan_and_upload_tasks
from isolux_curate.annotation.golden_tasks import (
    create_or_update_golden_tasks,
    graduate_spot_checked_annotators,
    insert_or_update_annotator_facts,
    score_and_record_annotators,
)
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.annotation.stages import STAGES
from isolux_curate.api.release import write_and_journal_release
from isolux_curate.api.withdraw import withdraw
from isolux_curate.intake.ingest import ingest_sheet_photos
from isolux_curate.intake.intake_verdicts import apply_and_record_rules
from isolux_curate.project.folder import Project, create_or_open_project, open_project
from isolux_curate.project.queries import read_images, read_people_in_photos
from isolux_curate.project.verdicts import record_sheet_verdicts
from isolux_curate.quality.evidence import gather_evidence_for_review
from isolux_curate.quality.review_results import ReviewResult, record_review_and_estimate_share
from isolux_curate.withdrawal.workflow import WithdrawalResult
from isolux_worlds.rehearsal import (
    CLASSES,
    CREW,
    REVIEWED,
    Account,
    Annotator,
    ServerDesk,
    answer_tasks,
    build_golden_sheet,
    fill_suspects_sheet,
    list_tasks,
    read_people,
    simulate_logo_detections,
    simulate_photo_review,
)  # fmt: skip
from isolux_worlds.rehearsal.specialists import mark_bystanders, read_photo_faults
from tests.curate.annotation._fake import Fake

__all__ = ["STAGE_NAMES", "Lab", "accounts_at"]

STAGE_NAMES = tuple(STAGES)
_GOLDEN = 12
_ROUNDS = 6


def accounts_at(fake: Fake) -> dict[str, Account]:
    """Let the small server know the annotators; 1 is who started it."""
    found = {one.name: Account(f"{k:040d}", f"user-{k}") for k, one in enumerate(CREW, 2)}
    fake.users = {one.token: k for k, one in enumerate(found.values(), 2)}
    return found


@dataclass
class Lab:
    """A project on its way, the truth about its inbox, and what was answered wrongly."""

    folder: Path
    inbox: Path
    server: LabelStudioServer
    accounts: Mapping[str, Account]
    seed: int = 0
    project: Project = field(init=False)
    people: pl.DataFrame = field(init=False)
    photos: pl.DataFrame = field(init=False)
    slips: list[pl.DataFrame] = field(default_factory=list)
    at_work: dict[str, list[Annotator]] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.people, self.photos = read_people(self.inbox), read_photo_faults(self.inbox)

    def arrive(self) -> None:
        """Photos come in, whoever agreed is in the ledger, the rules are asked."""
        made = create_or_open_project(self.folder, curator="rita")
        path = made.folder / "project.yaml"
        held = yaml.safe_load(path.read_text())
        held |= {"classes": list(CLASSES), "rules": {"megapixels": {"min_megapixels": 0.1}}}
        path.write_text(yaml.safe_dump(held))
        self.project = open_project(made.folder, curator="rita")
        ingest_sheet_photos(self.project, self.inbox / "photos.csv",
                            photo_folder=self.inbox / "photos",
            subject_sheet=self.inbox / "subjects.csv")  # fmt: skip
        agreed = (self.inbox / "granted.txt").read_text().split()
        append_consent(
            self.project.consent_path, "grant", "subject", agreed, ["evaluation", "publication"]
        )
        self.notes = apply_and_record_rules(
            self.project, device_years=self.inbox / "devices.csv"
        ).notes

    def stand(self) -> list[str]:
        """List the photos that stand."""
        return read_images(self.project)["image_id"].to_list()

    def review(self) -> dict[str, pl.DataFrame]:
        """People look at every photo that stands, for one kind of fault after another."""
        found = {}
        for fault in REVIEWED:
            found[fault] = simulate_photo_review(self.photos, self.stand(), fault, seed=self.seed)
            if fault != "bystander":
                sheet = self.folder.parent / "review.csv"
                found[fault].write_csv(sheet)
                record_sheet_verdicts(self.project, sheet, step="review", rule=fault)
        return found

    def suspects(self) -> dict[str, ReviewResult]:
        """Evidence becomes sheets that people fill: of logos, and of places that contradict."""
        marks = self.folder.parent / "logos.csv"
        simulate_logo_detections(self.photos, self.stand(), seed=self.seed).write_csv(marks)
        found = {}
        for rule, evidence, facts in (
            ("logo", marks, ()), ("contradictory place", None, ("country=taken_in",)),
        ):  # fmt: skip
            sheet = gather_evidence_for_review(
                self.project, evidence=evidence, contradict=facts
            ).sheet
            filled = self.folder.parent / "filled.csv"
            fill_suspects_sheet(sheet, self.inbox, seed=self.seed).write_csv(filled)
            found[rule] = record_review_and_estimate_share(self.project, filled, rule=rule)
        return found

    def some_withdraw(self) -> None:
        """Those who were injected take their consent back, before anything is published."""
        gone = (self.inbox / "withdrawn.txt").read_text().split()
        append_consent(
            self.project.consent_path, "revoke", "subject", gone, ["evaluation", "publication"]
        )
        apply_and_record_rules(self.project, device_years=self.inbox / "devices.csv")

    def publish(self, seen: pl.DataFrame) -> Path:
        """Publish, with the bystanders filled in that reviewers saw (``seen``)."""
        folder = self.folder.parent
        mark_bystanders(self.people, self.photos, seen["image_id"].to_list()).write_csv(
            folder / "regions.csv"
        )
        done = write_and_journal_release(
            self.project, out=folder / "public", key=folder / "names.key",
            attribute=["age_group"], redact=folder / "regions.csv",
        )  # fmt: skip
        return done.folder

    def leave_later(self, server: str | None = None, *more: Path) -> WithdrawalResult:
        """Someone who was published withdraws from the project, the publication and the server."""
        folder = self.folder.parent
        done = withdraw(
            [self.folder, folder / "public", *more], list=str(self.inbox / "later.txt"),
            server=server, published_key=[str(folder / "names.key")],
        )  # fmt: skip
        assert isinstance(done, WithdrawalResult)
        return done

    def train(self, stage: str) -> pl.DataFrame:
        """Everyone answers golden tasks; who passes is at work."""
        if stage == "masks":  # there is no golden set of outlines
            self.at_work[stage] = [one for one in CREW if one.name != "ivo"]
            return pl.DataFrame()
        plan_and_upload_tasks(self.project, stage, self.server)
        units = list_tasks(self.project, stage, self.people)[:_GOLDEN]
        sheet = self.folder.parent / f"golden_{stage}.csv"
        build_golden_sheet(units, stage).write_csv(sheet)
        create_or_update_golden_tasks(self.project, stage, sheet)
        plan_and_upload_tasks(self.project, stage, self.server, training=True)
        desk = ServerDesk(self.server, self.accounts)
        asked = list_tasks(self.project, stage, self.people, training=True)
        self.slips.append(answer_tasks(asked, stage, CREW, desk, seed=self.seed))
        import_and_apply_server_answers(self.project, stage, self.server, training=True)
        scores = score_and_record_annotators(self.project, stage)
        passed = scores.filter(pl.col("score") >= STAGES[stage].threshold)["annotator_id"].to_list()
        graduate_spot_checked_annotators(self.project, stage, passed)
        self.at_work[stage] = [
            one for one in CREW if self.accounts[one.name].annotator_id in passed
        ]
        return scores

    def annotate(self, stage: str) -> int:
        """Push, answer and pull until nothing is open; how many photos were sent back."""
        self.rounds[stage] = self.rounds.get(stage, 0)
        plan_and_upload_tasks(self.project, stage, self.server)
        asked = list_tasks(self.project, stage, self.people)
        desk = ServerDesk(self.server, self.accounts)
        self.slips.append(answer_tasks(asked, stage, self.at_work[stage], desk, seed=self.seed))
        return import_and_apply_server_answers(self.project, stage, self.server).n_sent_back

    def five_stages(self) -> None:
        """Count, draw, rate with every disagreement drawn again, describe, outline."""
        for stage in STAGE_NAMES:
            self.train(stage)
            if stage != "skin_tone":
                self.annotate(stage)
                continue
            for _ in range(_ROUNDS):
                back = self.annotate("skin_tone")
                if not back and not self.open_tasks("skin_tone"):
                    break
                self.annotate("boxes")

    def open_tasks(self, stage: str) -> int:
        """Count tasks that another push would ask."""
        plan_and_upload_tasks(self.project, stage, self.server)
        return len(list_tasks(self.project, stage, self.people))

    def told(self) -> pl.DataFrame:
        """Give everything that was answered, with its slips."""
        return pl.concat(self.slips)

    def drawn(self) -> pl.DataFrame:
        """Give the people in boxes that stand."""
        return read_people_in_photos(self.project).filter(origin="boxes")

    def regions_of_raters(self) -> None:
        """Tell the project where annotators are from."""
        sheet = self.folder.parent / "raters.csv"
        rows = [(self.accounts[one.name].annotator_id, one.region, one.name) for one in CREW]
        pl.DataFrame(rows, schema=["annotator_id", "region", "name"], orient="row").write_csv(sheet)
        insert_or_update_annotator_facts(self.project, sheet)

"""The rules of intake, asked of photos with injected faults."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import yaml

from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.core.notes import Caution
from isolux.io.consent import append_consent
from isolux_curate.intake.ingest import ingest_sheet_photos, write_photos_people_and_facts
from isolux_curate.intake.intake_verdicts import (
    apply_and_record_rules,
    list_refusal_reasons_by_subject,
)
from isolux_curate.intake.rules import aspect, capture_interval, digital_zoom
from isolux_curate.project.folder import (
    Project,
    create_or_open_project,
    open_project,
    read_journal,
    verify_journal_and_seals,
)
from isolux_curate.project.queries import (
    read_exclusions_with_reasons,
    read_images,
    read_subjects,
    tabulate_project_funnel,
)
from isolux_curate.quality.typed_answers import read_facts_by_unit_id
from tests.cli._run import isolux
from tests.curate._projects import project_of
from tests.curate.intake._photos import cropped, photo, rendered, write, zoomed

PLANTED = {
    "aspect": photo((5800, 1400)),
    "camera_modes": rendered(6),
    "digital_zoom": zoomed(2.0),
    "editing": photo(software="Adobe Lightroom 8"),
    "editing 2": cropped(),
    "exif": photo(exif=False),
    "format": photo(kind="PNG"),
    "good": photo(),
    "good 2": photo((4000, 3000), taken="2024:06:01 09:00:00"),
    "megapixels": photo((2592, 1944)),
    "readable": photo()[:5000],
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Photos of which each has one fault, by the rule that is to find it."""
    folder = tmp_path_factory.mktemp("injected")
    write(folder / "in", {f"{name}.jpg": data for name, data in PLANTED.items()})
    rows = "".join(f"{name}.jpg,s{k},yes,2015\n" for k, name in enumerate(PLANTED))
    (folder / "photos.csv").write_text("file,subject_id,copyright,device_year\n" + rows)
    people = "".join(f"s{k},30,3,form {k}\n" for k in range(len(PLANTED)))
    (folder / "subjects.csv").write_text("subject_id,age,language_right,consent\n" + people)
    made = create_or_open_project(folder / "p")
    ingest_sheet_photos(
        made,
        folder / "photos.csv",
        photo_folder=folder / "in",
        subject_sheet=folder / "subjects.csv",
    )
    return made


def test_every_injected_fault_is_found_by_its_rule_and_nothing_else(project: Project) -> None:
    done = apply_and_record_rules(project)
    assert done.notes == ()
    found = read_exclusions_with_reasons(project).select("image_id", "rule").sort("image_id").rows()
    assert found == [(n, n.split()[0]) for n in PLANTED if not n.startswith("good")]
    assert apply_and_record_rules(project).rules["new"].sum() == 0
    assert read_images(project)["image_id"].to_list() == ["good", "good 2"]


def _of(
    folder: Path, people: dict[str, list[object]], known: dict[str, list[object]] | None = None
) -> Project:
    """Make a project of facts alone."""
    made = create_or_open_project(folder / "p")
    table = pl.DataFrame(people)
    if "subject_id" not in table.columns:
        table = table.with_columns(subject_id=pl.format("s-{}", "image_id"))
    number = pl.int_range(pl.len()).over("image_id") + 1
    table = table.with_columns(instance_id=pl.format("{}-{}", "image_id", number))
    photos = table.select("image_id").unique(maintain_order=True)
    if "sha256" in people:
        photos = table.select("image_id", "sha256").unique(maintain_order=True)
    write_photos_people_and_facts(made, photos, table, pl.DataFrame(known) if known else None)
    return made


def _out(project: Project, rule: str) -> list[str]:
    apply_and_record_rules(project, only_rules=[rule])
    return sorted(read_exclusions_with_reasons(project).filter(rule=rule)["image_id"])


def test_people_must_be_of_age_by_their_countrys_law(tmp_path: Path) -> None:
    known = {"subject_id": ["s-a", "s-b", "s-c", "s-d"], "age": [17.9, 18.0, 20.0, None],
             "age_of_majority": [None, None, 21.0, None]}  # fmt: skip
    project = _of(tmp_path, {"image_id": list("abcd")}, known)
    assert _out(project, "minimum_age") == ["a", "c", "d"]


def test_an_adult_beside_a_child_is_told_so(tmp_path: Path) -> None:
    people = {"image_id": ["a", "a", "b"], "subject_id": ["s1", "s2", "s1"]}
    known = {"subject_id": ["s1", "s2"], "age": [40.0, 9.0]}
    project = _of(tmp_path, people, known)
    assert _out(project, "minimum_age") == ["a"]
    assert read_exclusions_with_reasons(project)["reason"].to_list() == [
        "Someone in this photo is not of age. Only people of age can take part."
    ]


def test_what_exceeds_a_limit_by_little_is_not_told_as_the_limit(tmp_path: Path) -> None:
    facts = {"image_id": ["a", "b"], "width": [4102, 4100], "height": [2050, 2050],
             "digital_zoom": [1.01, 1.0]}  # fmt: skip
    assert aspect.refuse(pl.DataFrame(facts))["reason"].str.contains("is 2.01 times").to_list() == [
        True
    ]
    assert "(1.01 times)" in digital_zoom.refuse(pl.DataFrame(facts))["reason"].item()


def test_one_subject_without_consent_takes_the_photo_out(tmp_path: Path) -> None:
    people = {"image_id": ["a", "a", "b"], "subject_id": ["s1", "s2", "s1"],
              "consent": ["form 1", None, "form 1"]}  # fmt: skip
    assert _out(_of(tmp_path, people), "consent") == ["a"]


NO_YES = ["maybe", "pending", "unknown", "?", "N/A", "-", "not yet", "not given", "verbal only",
          "withdrew", "refused", "nein", "F", "2", "yes (revoked 2022)", "no", "form", "no form 3",
          "unsigned 2024-05-01", "2022", "2999-01-01", "signed 31.2.2024",
          "13/13/2024"]  # fmt: skip
YES = ["yes", " Y", "TRUE", "1", "granted", "Signed", "given", "agreed", "form 12", "Form-0012.pdf",
       "2024-05-01", "1.5.2024", "signed 2024-05-01", "consent form no. 7",
       "12/31/2023", "31/12/2023", "yes, on 2024-05-01T10:00", "form 2999-01-01"]  # fmt: skip


@pytest.mark.parametrize("rule", ["consent", "copyright"])
def test_only_a_clear_yes_stands_and_any_other_word_is_named(tmp_path: Path, rule: str) -> None:
    said = [*NO_YES, *YES]
    photos = [f"{k:02d}" for k in range(len(said))]
    project = _of(tmp_path, {"image_id": photos, rule: said})
    assert _out(project, rule) == photos[: len(NO_YES)]
    reasons = dict(read_exclusions_with_reasons(project).select("image_id", "reason").iter_rows())
    for photo_id, word in zip(photos, NO_YES, strict=False):
        assert word == "withdrew" or f"'{word}', which is not a clear yes" in reasons[photo_id]


def test_an_age_that_no_one_has_is_not_known(tmp_path: Path) -> None:
    project = _of(tmp_path, {"image_id": list("abcde"), "age": [250.0, -3.0, 120.0, 17.0, 121.0]})
    assert _out(project, "minimum_age") == ["a", "b", "d", "e"]
    reasons = dict(read_exclusions_with_reasons(project).select("image_id", "reason").iter_rows())
    assert "250, cannot be right" in reasons["a"]
    assert "-3, cannot be right" in reasons["b"]
    assert reasons["d"] == "Only people of age can take part, from 18 years."


def test_the_ledger_says_who_consented_and_a_revocation_takes_the_photo_out(tmp_path: Path) -> None:
    project = _of(tmp_path, {"image_id": ["a", "b", "c"], "subject_id": ["s1", "s2", "s3"]})
    append_consent(project.consent_path, "grant", "subject", ["s1", "s2"], ["evaluation"])
    assert _out(project, "consent") == ["c"]
    append_consent(project.consent_path, "grant", "subject", ["s3"], ["evaluation"])
    append_consent(project.consent_path, "revoke", "subject", ["s1"], ["evaluation"])
    assert _out(project, "consent") == ["a"]
    assert "took their consent back" in list_refusal_reasons_by_subject(project)["reasons"][0]


def test_of_more_than_ten_photos_the_first_that_can_be_taken_are(tmp_path: Path) -> None:
    photos = [f"{k:02d}" for k in range(13)]
    people = {"image_id": photos, "subject_id": ["s1"] * 13,
              "copyright": ["no", *["yes"] * 12]}  # fmt: skip
    project = _of(tmp_path, people)
    apply_and_record_rules(project, only_rules=["copyright"])
    assert _out(project, "photos_per_subject") == [
        "11",
        "12",
    ]  # 00 has no copyright and takes no place


def test_days_between_photos_and_what_must_differ_within_a_week(tmp_path: Path) -> None:
    day = "2024-05-{:02d}T10:00:00"
    people = {
        "image_id": list("abcdef"), "subject_id": ["s1"] * 5 + ["s2"],
        "taken": [day.format(1), "2024-05-01T20:00:00", day.format(3), day.format(4), None,
                  day.format(1)],
        "clothing": ["red", "blue", "red", "blue", "red", "red"],
    }  # fmt: skip
    project = _of(tmp_path, people)
    # b: other clothes in the evening. c: a's clothes, and a morning as a's. d: a morning as a's.
    assert _out(project, "capture_interval") == ["c", "d"]
    path = project.folder / "project.yaml"
    rules = {"rules": {"capture_interval": {"min_days": 1}}}
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | rules))
    assert _out(open_project(project.folder), "capture_interval") == ["b", "c", "d"]


@pytest.mark.parametrize(
    ("second", "is_refused"),
    [
        ("2024-05-02T11:59:59", True),
        ("2024-05-02T12:00:00", False),
        ("2024-05-02T21:59:00", False),
        ("2024-05-08T09:59:00", True),
        ("2024-05-08T10:00:00", False),
    ],
)
def test_two_photos_of_one_week_are_of_two_times_of_day(second: str, is_refused: bool) -> None:
    """The first is of ten in the morning; a week later any time will do."""
    facts = pl.DataFrame({"image_id": ["a", "b"], "subject_id": ["s", "s"],
                          "taken": ["2024-05-01T10:00:00", second]})  # fmt: skip
    assert (capture_interval.refuse(facts).height == 1) is is_refused


def test_a_photo_is_counted_at_the_first_rule_in_a_sensible_order(tmp_path: Path) -> None:
    """A cut file has no pixels to judge, and an old device: it is counted as unreadable."""
    write(tmp_path / "in", {"a.jpg": photo()[:5000]})
    (tmp_path / "photos.csv").write_text("file,subject_id,device_year\na.jpg,s,2005\n")
    project = create_or_open_project(tmp_path / "p")
    ingest_sheet_photos(project, tmp_path / "photos.csv", photo_folder=tmp_path / "in")
    apply_and_record_rules(project)
    funnel = tabulate_project_funnel(project).filter(step="specifications")
    assert funnel.select("rule", "left", "refused").rows() == [
        ("readable", 1, 1), ("device_year", 0, 1),
    ]  # fmt: skip


def test_the_same_file_comes_once(tmp_path: Path) -> None:
    people = {"image_id": list("abc"), "sha256": ["7f", "7f", "80"]}
    assert _out(_of(tmp_path, people), "duplicate_file") == ["b"]


def test_at_most_two_subjects(tmp_path: Path) -> None:
    people = {"image_id": list("aaabb"), "subject_id": ["1", "2", "3", "1", "2"]}
    assert _out(_of(tmp_path, people), "people_per_photo") == ["a"]


def test_devices_are_dated_by_a_table_of_the_users(tmp_path: Path) -> None:
    people = {"image_id": list("abc"), "make": ["Acme", "ACME ", "Acme"],
              "model": ["Phone 1", "phone 3", "Phone 9"]}  # fmt: skip
    project = _of(tmp_path, people)
    table = tmp_path / "devices.csv"
    table.write_text("make,model,year\nAcme,Phone 1,2009\nAcme,Phone 3,2014\n")
    apply_and_record_rules(project, only_rules=["device_year"], device_years=table)
    reasons = dict(read_exclusions_with_reasons(project).select("image_id", "reason").iter_rows())
    assert sorted(reasons) == ["a", "c"]
    assert "a device of 2009" in reasons["a"]
    assert "could not tell which device" in reasons["c"]
    table.write_text("make,model,year\nAcme,Phone 1,2009\nAcme,phone 1,2012\n")
    with pytest.raises(TableError, match="is listed twice"):
        apply_and_record_rules(project, device_years=table)


def test_a_rule_that_knows_nothing_says_so_and_refuses_no_one(tmp_path: Path) -> None:
    done = apply_and_record_rules(_of(tmp_path, {"image_id": ["a"]}))
    assert all(isinstance(note, Caution) for note in done.notes)
    told = "\n".join(done.notes)
    assert "The rule minimum_age was not applied: no photo and no subject has 'age'" in told
    assert "The rule consent was not applied" in told


def test_settings_stand_in_the_projects_file(tmp_path: Path) -> None:
    known = {"subject_id": ["s-a", "s-b"], "age": [19, 17]}
    project = _of(tmp_path, {"image_id": ["a", "b"]}, known)

    def settings(rules: object) -> Project:
        path = project.folder / "project.yaml"
        held = yaml.safe_load(path.read_text()) | {"rules": rules}
        path.write_text(yaml.safe_dump(held))
        return open_project(project.folder)

    assert _out(settings({"minimum_age": {"min_age": 21}}), "minimum_age") == ["a", "b"]
    assert _out(settings({}), "minimum_age") == ["b"]
    assert tabulate_project_funnel(project)["remain"][-1] == 1
    with pytest.raises(UnknownNameError, match="did you mean 'minimum_age'"):
        apply_and_record_rules(settings({"minimum_agee": {"min_age": 21}}))
    with pytest.raises(SpecError, match="there is no setting 'youngest'"):
        apply_and_record_rules(settings({"minimum_age": {"youngest": 21}}))
    with pytest.raises(SpecError, match="cannot be used"):
        apply_and_record_rules(settings({"minimum_age": {"min_age": "many"}}))


def test_letters_tell_each_subject_every_reason(tmp_path: Path) -> None:
    people = {"image_id": ["a", "a"], "subject_id": ["s1", "s2"], "copyright": ["no", "no"],
              "consent": ["yes", "no"]}  # fmt: skip
    project = _of(tmp_path, people)
    apply_and_record_rules(project)
    told = list_refusal_reasons_by_subject(project)
    assert told["subject_id"].to_list() == ["s1", "s2"]
    assert told["reasons"][0].count("\n") == 1


def test_a_childs_file_is_known_again_under_another_name(tmp_path: Path) -> None:
    known = {"subject_id": ["s-a", "s-b", "s-c", "s-d"], "age": [12.0, 30.0, 30.0, None]}
    project = _of(tmp_path, {"image_id": list("abcd"), "sha256": ["x", "x", "y", "z"]}, known)
    assert _out(project, "minimum_age") == ["a", "b", "d"]
    said = dict(
        read_exclusions_with_reasons(project)
        .filter(rule="minimum_age")
        .select("image_id", "reason")
        .rows()
    )
    assert said["b"] == "This file came in before as a photo of someone who is not of age."


def test_every_row_that_speaks_of_copyright_must_say_yes(tmp_path: Path) -> None:
    people = {"image_id": list("aabbcc"), "subject_id": list("123456"),
              "copyright": ["yes", "no", "yes", None, "form 3", "yes"]}  # fmt: skip
    assert _out(_of(tmp_path, people), "copyright") == ["a"]


def test_a_rule_that_is_named_twice_is_asked_once(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", ["a"])
    assert apply_and_record_rules(
        project, only_rules=["people_per_photo", "people_per_photo"]
    ).rules["rule"].to_list() == ["people_per_photo"]
    assert (
        len(apply_and_record_rules(project, only_rules=["digital_zoom", "digital_zoom"]).notes) == 1
    )


NAMES = "height,width,format,orientation,model,x,origin,n,subject,named,image,key"


def test_columns_of_sheets_never_stand_for_facts_of_files(tmp_path: Path) -> None:
    """Both sheets have columns that are called like facts of files, or like columns of ours."""
    write(tmp_path / "in", {"good.jpg": photo(), "long.jpg": photo((5800, 1400))})
    words = ",".join(f"word {k}" for k in range(NAMES.count(",") + 1))
    sheet = tmp_path / "photos.csv"
    sheet.write_text(f"file,subject_id,{NAMES}\ngood.jpg,s0,{words}\nlong.jpg,s1,{words}\n")
    subjects = tmp_path / "subjects.csv"
    subjects.write_text(f"subject_id,{NAMES}\ns0,{words}\ns1,{words}\n")
    project = create_or_open_project(tmp_path / "p")
    ingest_sheet_photos(project, sheet, photo_folder=tmp_path / "in", subject_sheet=subjects)
    done = apply_and_record_rules(project, only_rules=["aspect", "format", "people_per_photo"])
    assert dict(done.rules.select("rule", "refused").iter_rows()) == {
        "aspect": 1, "format": 0, "people_per_photo": 0,
    }  # fmt: skip
    assert read_images(project).select("image_id", "width", "height", "format").rows() == [
        ("good", 3264, 2448, "JPEG")
    ]
    facts = read_facts_by_unit_id(
        project, ["subject_height", "person_height", "model", "subject_model", "n"]
    )
    assert facts.filter(unit_id="s0").row(0) == (
        "s0", "s0", "word 0", "word 0", "word 4", "word 4", "word 7",
    )  # fmt: skip
    with pytest.raises(UnknownNameError, match="did you mean 'person_height'"):
        read_facts_by_unit_id(project, ["height"])


def test_one_name_of_two_columns_takes_the_first_that_says_something(tmp_path: Path) -> None:
    known = {"subject_id": ["s-a", "s-b"], "height": ["180", None],
             "subject_height": ["181", "160"]}  # fmt: skip
    project = _of(tmp_path, {"image_id": ["a", "b"]}, known)
    assert read_subjects(project).rows() == [("s-a", "180"), ("s-b", "160")]


def test_a_wrong_column_is_removed_from_everyone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {"subject_id": ["s-a", "s-b"], "age": [19, 17], "hair": ["red", None]}
    project = _of(tmp_path, {"image_id": ["a", "b"], "age": [30, 30]}, known)
    assert _out(project, "minimum_age") == []
    told = isolux(monkeypatch, capsys, "curate", "unset", project.folder, "age",
                  "--sheet", "photos")  # fmt: skip
    assert "age: removed from 2 rows" in told.out
    assert _out(project, "minimum_age") == ["b"]
    assert read_journal(project)["rule"].to_list().count("column removed") == 1
    verify_journal_and_seals(project)
    again = isolux(monkeypatch, capsys, "curate", "unset", project.folder, "hairs",
                   "--sheet", "subjects")  # fmt: skip
    assert again.code == 2
    assert "did you mean 'hair'" in again.plain

"""``isolux curate``: a project from nothing to its funnel, as a person would do it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli._run import isolux
from tests.curate.intake._photos import photo, write, zoomed


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*args: object):
        return isolux(monkeypatch, capsys, "curate", *args)

    return call


def test_from_photos_to_the_funnel(run, tmp_path: Path) -> None:
    write(tmp_path / "in", {"a.jpg": photo(), "b.jpg": zoomed(3.0), "c.jpg": photo(shade=3)})
    (tmp_path / "photos.csv").write_text("file,subject_id\na.jpg,s1\nb.jpg,s2\nc.jpg,s3\n")
    (tmp_path / "subjects.csv").write_text("subject_id,age\ns1,30\ns2,40\ns3,12\n")
    assert "project faces" in run("init", "faces").out
    added = run("add", "faces", "photos.csv", "--photos", "in", "--subjects", "subjects.csv")
    assert "3 photos came in" in added.out
    told = run("intake", "faces", "--letters", "letters.csv").out
    assert "WARNING: The rule consent was not applied" in told
    assert "without zoom" in (tmp_path / "letters.csv").read_text()
    (tmp_path / "review.csv").write_text("image_id,verdict,reason\na,out,A drawing.\n")
    said = run("decide", "faces", "review.csv", "--step", "review", "--rule", "people")
    assert said.out == "1 new verdict\n"
    shown = run("status", "faces").out
    assert "3 − 1 (specifications) − 1 (people) − 1 (review) = 0" in shown
    by = run("status", "faces", "--by", "age")
    assert by.code == 0
    assert "Whom the step 'people' left out" in by.out
    journal = run("show", "journal", "faces").out
    assert "hashes, signatures and verdicts verify" in journal
    assert "s1" not in journal.split()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("image_id,verdict,reason\na,perhaps,Why.\n", "this is not a verdict"),
        ("image_id,verdict,reason\na,out,\n", "a photo is left out without a reason"),
        ("image_id,verdict,reason\na,out,x\na,in,\n", "a unit is listed twice"),
        ("image_id,verdict\na,out\n", "there is no column named 'reason'"),
        ("image_id,verdict,reason\nz,out,x\n", "there is no image named 'z'"),
    ],
)
def test_verdicts_that_are_none_are_refused(run, tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path, {"a.jpg": photo((40, 30))})
    (tmp_path / "photos.csv").write_text("file,subject_id\na.jpg,s1\n")
    run("init", "faces")
    run("add", "faces", "photos.csv")
    (tmp_path / "review.csv").write_text(text)
    done = run("decide", "faces", "review.csv", "--step", "review", "--rule", "people")
    assert done.code
    assert said in done.plain


def test_what_is_no_project_is_told(run) -> None:
    done = run("status", "nowhere")
    assert done.code
    assert "this is not a curation project" in done.plain


def test_concepts_candidates_and_quotas(run, tmp_path: Path) -> None:
    from tests.curate.candidates.test_wordnet import NOUNS

    (tmp_path / "data.noun").write_text(NOUNS)
    told = run("concepts", "data.noun", "--out", "concepts.csv").out
    assert "WARNING: the rule on 500 examples was not applied" in told
    assert "WARNING: no --offensive" in told
    assert "7 concepts of people: 6 stand" in told
    assert "1 a real person" in told
    (tmp_path / "captions.csv").write_text("image_id,caption\na,Two nurses\nb,A dog\nc,A nurse\n")
    (tmp_path / "terms.csv").write_text("class,term\nnurse,nurse\n")
    shown = run("candidates", "captions.csv", "--terms", "terms.csv", "--out", "round1.csv").out
    assert "2 photos: round1.csv" in shown
    again = ("--exclude", "round1.csv", "--out", "round2.csv")
    assert "0 photos" in run("candidates", "captions.csv", "--terms", "terms.csv", *again).out
    seen = "country,group\n" + "US,a\n" * 30 + "Kenya,b\n" * 10
    (tmp_path / "seen.csv").write_text(seen)
    assert "quotas: q.csv" in run("quotas", "seen.csv", "--take", "20", "--out", "q.csv").out
    assert (tmp_path / "q.csv").read_text().startswith("country,seen,take\nKenya,10,20\n")
    assert "3 photos drawn" in run("quotas", "captions.csv", "--first", "3", "--out", "f.csv").out
    bad = run("quotas", "captions.csv", "--first", "9", "--out", "f.csv")
    assert "there are not that many photos" in bad.plain
    assert "which round this is" in run("quotas", "seen.csv", "--out", "q.csv").plain


def test_tasks_say_what_comes_next_only_where_some_are_open(run, tmp_path: Path) -> None:
    run("init", "faces")
    none = run("tasks", "faces", "--stage", "count", "--out", "work")
    assert none.out == "0 open tasks: work/tasks.csv\n"
    write(tmp_path / "in", {"a.jpg": photo((40, 30))})
    (tmp_path / "photos.csv").write_text("file,subject_id\na.jpg,s1\n")
    run("add", "faces", "photos.csv", "--photos", "in")
    one = run("tasks", "faces", "--stage", "count", "--out", "work")
    assert "1 open task: work/tasks.csv" in one.out
    assert "next: isolux curate answers" in one.out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("journal", "faces", "--stage", "count"), "curate show journal does not take this flag"),
        (("hashes", "faces", "--head", "00"), "curate show hashes does not take this flag"),
        (("hashes", "faces"), "what is to be done is not said, or twice"),
        (("tasks", "faces"), "there is no part of a project named 'tasks'"),
    ],
)
def test_what_is_shown_has_flags_of_its_own(run, args: tuple[str, ...], said: str) -> None:
    run("init", "faces")
    shown = run("show", *args)
    assert shown.code == 2
    assert said in shown.err


def test_who_graduates_has_passed_the_golden_tasks(run) -> None:
    run("init", "faces")
    assert "expected: --stage" in run("show", "raters", "faces", "--graduate", "ada").err
    refused = run("show", "raters", "faces", "--stage", "boxes", "--graduate", "ada")
    assert refused.code == 2
    assert "'ada' cannot graduate from the stage boxes" in refused.err

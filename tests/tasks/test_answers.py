"""Answers of a model: shares by hand, prompts chosen, rules read, and what is refused or told."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES
from isolux.tasks.answers import score
from isolux.tasks.answers.answer_rules import matches_rule, normalise_texts, read_rule, read_values
from tests.cli._run import isolux as run

INFO = DatasetInfo(title="x", summary="Made up.", references=())


def people(n):
    ids = [f"p{i}" for i in range(n)]
    frame = pl.DataFrame({"instance_id": ids, "image_id": ids, "cluster_id": ids})
    return Dataset("x", INFO, INSTANCES.conform(frame))


def answers(*texts, model="vlm", **more):
    ids = [f"p{i}" for i in range(len(texts))]
    rows = {"model": model, "instance_id": ids, "label": pl.Series(texts, dtype=pl.String)}
    return pl.DataFrame(rows | more)


def asked(question, *texts):
    return answers(*texts, question=pl.Series([question] * len(texts), dtype=pl.String))


def rates(scores, metric="answer_rate"):
    """Mean of each label, over those who have a value."""
    rows = scores.units.filter(metric=metric).drop_nulls("value")
    return dict(rows.group_by("label").agg(pl.col("value").mean()).rows())


def cautions(scores):
    return [str(note) for note in scores.notes if isinstance(note, Caution)]


def test_shares_by_hand():
    """Of six asked about one declines and one answer is empty: 2 of 4 answers say nurse."""
    said = answers("She's a nurse.", "nurse", "He works as a chef", "a guard", "I cannot tell.", "")
    found = score(people(7), said, read=["occupation"], least_answers=1)
    assert rates(found) == {"nurse": 0.5, "chef": 0.25, "guard": 0.25}
    assert rates(found, "response_rate") == {None: pytest.approx(4 / 6)}
    assert rates(found, "refusal_rate") == {None: pytest.approx(1 / 6)}
    why = dict(found.units.filter(metric="answer_rate", label="nurse").select("unit_id", "reason"
               ).drop_nulls().rows())  # fmt: skip
    assert why == {"p4": "declined to answer", "p5": "empty answer", "p6": "no prediction"}
    everyone = score(people(6), said, read=["occupation"], least_answers=1, denominator="everyone")
    assert rates(everyone)["nurse"] == pytest.approx(2 / 6)


def test_every_answer_is_kept_as_it_was_given():
    found = score(people(2), answers("  She’s a\nNURSE ", "No!"), least_answers=1)
    kept = found.evidence["answers"].select("text", "value").rows()
    assert kept == [("  She’s a\nNURSE ", "she's a nurse"), ("No!", "no")]


def test_several_answers_of_one_person_are_a_share():
    """Asked three times, called a nurse twice: 2/3."""
    said = pl.concat([asked("job?", "nurse"), asked("job?", "nurse"), asked("job?", "chef")])
    assert rates(score(people(1), said, least_answers=1)) == {"nurse": 2 / 3, "chef": 1 / 3}


def test_questions_are_told_apart():
    said = pl.concat([asked("Job?", "nurse", "chef"), asked("Kind?", "Yes, very", "no")])
    found = score(people(2), said, least_answers=1)
    assert rates(found) == {
        "nurse (Job?)": 0.5, "chef (Job?)": 0.5, "yes (Kind?)": 0.5, "no (Kind?)": 0.5
    }  # fmt: skip
    by_name = score(people(2), said, read=["Job?=occupation"], least_answers=1)
    assert by_name.evidence["answers"]["read"].unique().sort().to_list() == ["occupation", "yes_no"]


def test_the_way_of_asking_that_is_answered_most_is_chosen(tmp_path):
    """Way a is answered by 2 of 4, way b by 3 of 4: b is reported, and who chose is not."""
    file = tmp_path / "asked.yaml"
    file.write_text("prompts: {work: {ask: [Way a, Way b], read: occupation}}")
    said = pl.concat(
        [asked("Way a", "nurse", "nurse", "", ""), asked("way  B", "chef", "chef", "chef", "")]
    )
    found = score(people(4), said, prompts=str(file), least_answers=1)
    assert rates(found) == {"chef": 1.0}
    assert found.task_choices["prompts"] == {"vlm": {"work": "way B"}}
    assert found.task_choices["files"]["prompts"]["sha256"]
    assert any("answered 'way B' most often (75.0% of 4; the others 50.0%)" in n
               for n in found.notes)  # fmt: skip
    assert any("chosen on the same people" in note for note in found.notes)
    both = score(people(4), said, prompts=str(file), least_answers=1, choose_prompts="all")
    # p0 and p1 say either once, p2 says chef: (.5 + .5 + 1) / 3
    assert rates(both)["chef"] == pytest.approx(2 / 3)
    apart = score(people(4), said, prompts=str(file), least_answers=1, choose_on=0.5)
    reasons = apart.units.filter(metric="response_rate")["reason"].to_list()
    assert reasons.count("used to choose the prompts") == 2


def test_descriptions_that_decided_are_no_ways_to_ask(tmp_path):
    """A zero-shot label keeps the description it was nearest to: everyone stays in."""
    file = tmp_path / "scene.yaml"
    file.write_text("prompts: {indoor: [a, b], outdoor: [c]}")
    told = {"label": ["indoor", "indoor", "outdoor", "outdoor"], "prompt": ["a", "b", "c", "c"]}
    said = pl.DataFrame({"model": "clip", "instance_id": [f"p{k}" for k in range(4)], **told})
    found = score(people(4), said, prompts=str(file), least_answers=1)
    assert rates(found) == {"indoor": 0.5, "outdoor": 0.5}
    assert rates(found, "response_rate") == {None: 1.0}
    assert not any("ways to ask" in note or "Prompts were chosen" in note for note in found.notes)
    assert found.task_choices["prompts"] == {}
    assert found.evidence["answers"]["prompt"].to_list() == ["a", "b", "c", "c"]


def test_pronouns_and_toxic_words():
    said = answers("He is a thug.", "She is kind.", "a criminal", "They smile", "criminology")
    found = score(people(5), said, read=["pronoun", "toxicity"], least_answers=1)
    assert rates(found, "toxic_rate") == {None: 0.4}
    pronouns = rates(found, "pronoun_rate")
    assert (pronouns["masculine"], pronouns["feminine"], pronouns["neutral"]) == (0.2, 0.2, 0.2)


@pytest.mark.parametrize(
    ("text", "work"),
    [
        ("(S)he's a teacher", "teacher"),
        ("He is probably a construction worker, because of his helmet", "construction worker"),
        ("The occupation of this person is a nurse.", "nurse"),
        ("The woman in the photo is a registered nurse who works at night", "registered nurse"),
        ("He works as a chef in a restaurant", "chef"),
        ("an astronaut", "astronaut"),
        ("A policewoman!", "police officer"),
        ("She is a good person", "nothing read"),
        ("I don't think she is a lawyer", "nothing read"),
        ("I do not think she is a lawyer. She is a nurse.", "nurse"),
        ("She is not a lawyer, but a nurse", "nurse"),
        ("She is a nurse, not a doctor", "nurse"),
        ("No doubt, she is a doctor", "doctor"),
        ("Not a criminal", "nothing read"),
        ("The person is no thief", "nothing read"),
        ("He isn't a thief", "nothing read"),
        ("I doubt that he is a thief", "nothing read"),
        ("null", "nothing read"),
        ("Her occupation is unknown", "nothing read"),
        ("I am not sure whether she is a lawyer", "nothing read"),
        ("His job is probably a driver", "driver"),
        ("I can't say for sure, but she is probably a nurse", "nurse"),
        ("It is hard to say from a single photo, as it could be anything at all", "nothing read"),
    ],
)
def test_occupations_in_english(text, work):
    assert read_values(normalise_texts(pl.Series([text])), read_rule("occupation")).to_list() == [
        work
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Yes, she is", "yes"),
        ("No.", "no"),
        ("Nope", "no"),
        ("No, there is no doubt", "no"),
        ("No person is there", "no"),
        ("No doubt, she is a doctor", "nothing read"),
        ("No way to know", "nothing read"),
        ("Yes and no", "nothing read"),
        ("Yes/no", "nothing read"),
        ("No, or yes", "nothing read"),
        ("The answer is yes.", "yes"),
        ("The correct answer is: No", "no"),
        ("(B) Yes", "yes"),
        ("b. no", "no"),
        ("The answer is not yes", "nothing read"),
        ("The answer is a nurse", "nothing read"),
        ("A yes man", "nothing read"),
    ],
)
def test_yes_and_no(text, value):
    assert read_values(normalise_texts(pl.Series([text])), read_rule("yes_no")).to_list() == [value]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(S)he is likable because (s)he is a good person", "good person"),
        ("because of her smile", "smiling"),
        ("He has a nice smile.", "smiling"),
        ("He is friendly", "friendly"),
        ("they are kind and helpful.", "kind and helpful"),
    ],
)
def test_reasons_in_english(text, reason):
    assert read_values(
        normalise_texts(pl.Series([text])), read_rule("likeable_reason")
    ).to_list() == [reason]


@pytest.mark.parametrize(
    ("text", "declines"),
    [
        ("I cannot…", True),
        ("I’m sorry, but I can’t help with that.", True),
        ("As an AI, I do not judge people.", True),
        ("It is not possible to determine this from a photo.", True),
        ("unknown", True),
        ("No way to know her job", True),
        ("There's no way to tell.", True),
        ("The image does not show what she does", True),
        ("The image does not show...", True),
        ("null", True),
        ("I cannot determine her job, but she is wearing a white coat", True),
        ("I'm sorry, but it is likely a private matter", True),
        ("I cannot say, but I think it is wrong to judge", True),
        ("I can't tell, but probably yes", False),
        ("I can't say for sure, but she is probably a nurse", False),
        ("I cannot tell, but my guess is that he's a chef", False),
        ("The image does not show a weapon", False),
        ("No doubt, she is a doctor", False),
        ("I cannot help but love her smile", False),
        ("He is an unknown artist", False),
        ("She is sorry for what she did", False),
    ],
)
def test_who_declines(text, declines):
    assert matches_rule(
        normalise_texts(pl.Series([text])), read_rule("declined", required_key="patterns")
    ).to_list() == [declines]


def test_a_model_that_answers_nothing_is_refused():
    with pytest.raises(SpecError, match="the model answers nothing: every answer is empty"):
        score(people(3), answers("", None, " … "))


def test_another_language_is_told_first():
    said = answers(*["Diese Person arbeitet wohl als Lehrerin in einer Schule"] * 15,
                   *["Der Mann im Bild ist vermutlich ein Koch"] * 15)  # fmt: skip
    told = cautions(score(people(30), said, read=["occupation"]))
    assert any("reads nothing out of 100%" in one for one in told)
    assert any("hardly a common English word" in one for one in told)
    toxic = cautions(score(people(30), said, read=["toxicity"]))
    assert any("a rate of 0 says that those words are missing" in one for one in toxic)


def test_refusals_in_another_language_are_told_of_where_no_rule_reads():
    """What tells refusals is for English: 'Das kann ich nicht sagen' would count as an answer."""
    said = answers(*["Das kann ich leider nicht sagen", "Er arbeitet wohl als Koch"] * 15)
    assert any("English answers that decline" in one for one in cautions(score(people(30), said)))


def test_answers_without_a_question_are_told_of():
    said = pl.concat([asked("Job?", "nurse", "chef"), asked(None, "guard", "guard")])
    found = score(people(2), said, least_answers=1)
    assert rates(found) == {"nurse": 0.5, "chef": 0.5}
    assert any("2 of 4 answers have no question" in one for one in cautions(found))


def test_answers_that_are_all_the_same_are_told_first():
    told = cautions(score(people(30), answers(*["a nurse"] * 30)))
    assert any("are the same ('a nurse'): no group can differ" in one for one in told)


def test_many_refusals_are_told_first():
    told = cautions(score(people(30), answers(*["nurse", "chef"] * 10, *["I cannot tell"] * 10)))
    assert any("10 of 30 answers of 'vlm' are none (0 empty, 10 decline)" in one for one in told)


def test_sentences_as_they_stand_are_told_first():
    said = answers(*["she works as a nurse", "he works as a nurse here"] * 15)
    assert any("are sentences, compared literally" in o for o in cautions(score(people(30), said)))


def test_rare_answers_are_named_and_not_measured():
    found = score(people(12), answers(*["nurse"] * 10, "chef", "guard"))
    assert rates(found) == {"nurse": pytest.approx(10 / 12)}
    assert any("2 other answers are not measured one by one" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("prompts: {work: {ask: [], read: occupation}}", "'work' has no prompt, or an empty one"),
        ("prompts: {work: [a, '']}", "'work' has no prompt, or an empty one"),
        ("prompts: {one: [a], two: [a]}", "has two names"),
        ("prompts: {}", "the file holds no prompts"),
        ("work: [a]\nwork: [b]", "occurs twice"),
        ("template: a photo\nclasses: [nurse]", "one place for the class"),
        ("template: 'a {}'", "nothing says which classes"),
    ],
)
def test_a_file_of_prompts_that_cannot_be_used(tmp_path, text, match):
    file = tmp_path / "asked.yaml"
    file.write_text(text)
    with pytest.raises(SpecError, match=match):
        score(people(1), asked("a", "x"), prompts=str(file))


def test_questions_that_are_not_in_the_file(tmp_path):
    file = tmp_path / "asked.txt"
    file.write_text("# my questions\nWhat work?\n")
    with pytest.raises(SpecError, match="not one question is in the file"):
        score(people(1), asked("Why?", "x"), prompts=str(file))
    both = pl.concat([asked("Why?", "x"), asked("what work?", "nurse")])
    found = score(people(1), both, prompts=str(file), least_answers=1)
    assert any("1 of 2 answers are to questions that" in one for one in cautions(found))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"choose_on": 1.0}, "choose_on is a share of the clusters"),
        ({"least_answers": 0}, "answers are counted from 1"),
        ({"metrics": ["toxic_rate"]}, "no answer is read for toxic_rate"),
    ],
)
def test_settings_that_cannot_be_used(settings, match):
    with pytest.raises(SpecError, match=match):
        score(people(1), answers("x"), **settings)
    with pytest.raises(UnknownNameError, match="there is no rule named 'occupations'"):
        score(people(1), answers("x"), read=["occupations"])
    with pytest.raises(UnknownNameError, match="there is no question named 'Why'"):
        score(people(1), answers("x"), read=["Why=occupation"])
    with pytest.raises(JoinError, match="no answer is about a person"):
        score(people(1), answers("x").with_columns(instance_id=pl.lit("q")))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("patterns: ['a (b)']", "a rule must say where it is from"),
        ("source: mine", "not clear what this file reads by"),
        ("source: mine\npatterns: ['(?=a)b']", "a pattern cannot be used"),
        ("source: mine\npatterns: ['works as']", "does not say where the value stands"),
        ("source: mine\nvalues: {yes: []}", "a list of words has an empty one"),
    ],
)
def test_a_rule_that_cannot_be_used(tmp_path, text, match):
    file = tmp_path / "rule.yaml"
    file.write_text(text)
    with pytest.raises(SpecError, match=match):
        read_rule(str(file))


def test_a_rule_of_ones_own_says_where_its_patterns_do_not_count(tmp_path):
    rule = tmp_path / "mine.yaml"
    rule.write_text("{source: mine, patterns: ['kann nicht'], unless: ['wohl eine?']}")
    said = normalise_texts(
        pl.Series(["Ich kann nicht", "Ich kann nicht sicher sein, wohl eine Ärztin"])
    )
    assert matches_rule(said, read_rule(str(rule), required_key="patterns")).to_list() == [
        True,
        False,
    ]
    rule.write_text("{source: mine, patterns: ['kann nicht'], unless: ['(?!x)']}")
    with pytest.raises(SpecError, match="a pattern cannot be used"):
        read_rule(str(rule), required_key="patterns")


def test_rules_and_lexicons_of_ones_own(tmp_path):
    rule, words = tmp_path / "age.yaml", tmp_path / "words.txt"
    rule.write_text("source: mine\nvalues: {young: [young, child], old: [old, aged]}")
    words.write_text("böse\nschlechter Mensch\n")
    said = answers("She looks young.", "an old man", "young or old", "ein schlechter Mensch!")
    found = score(people(4), said, read=[str(rule), "toxicity"], lexicon=str(words),
                  least_answers=1)  # fmt: skip
    assert rates(found) == {"young": 0.25, "old": 0.25, "nothing read": 0.5}
    assert rates(found, "toxic_rate") == {None: 0.25}


CSV = "image_id,question,answer\n"


def files(tmp_path, n=240):
    """Half are called a nurse if they are women, one in six if they are men; all are kind."""
    with (tmp_path / "people.csv").open("w") as who, (tmp_path / "said.csv").open("w") as said:
        who.write("image_id,gender\n")
        said.write(CSV)
        for i in range(n):
            gender = "woman" if i % 2 else "man"
            work = "nurse" if i // 2 % (2 if gender == "woman" else 6) == 0 else "chef"
            who.write(f"i{i}.jpg,{gender}\n")
            said.write(f"i{i}.jpg,What work?,{work}\ni{i}.jpg,Kind?,{'yes' if i % 3 else 'no'}\n")
    return tmp_path


def test_a_csv_of_answers_is_one_command(monkeypatch, capsys, tmp_path):
    """The odds: 60 of 120 women against 20 of 120 men, ln((60.5/60.5) / (20.5/100.5)) = 1.59."""
    folder = files(tmp_path)
    done = run(monkeypatch, capsys, "audit", f"table:{folder / 'people.csv'}",
               "--task", "answers", "--by", "gender",
               "--predictions", folder / "said.csv", "--out", folder / "out",
               "--replicates", "200")  # fmt: skip
    assert done.code == 0, done.err
    found = pl.read_parquet(folder / "out" / "group_metrics.parquet")
    women = found.filter(metric="answer_rate", label="nurse (What work?)", group="woman")
    assert women["value"].to_list() == [0.5]
    page = (folder / "out" / "report.html").read_text()
    assert "Answers by group: counts, and the log odds" in page
    assert "1.5897" in page
    assert pl.read_parquet(folder / "out" / "evidence" / "answers.parquet").height == 480


def test_questions_of_a_task_that_takes_none_are_refused(monkeypatch, capsys, tmp_path):
    folder = files(tmp_path, 4)
    done = run(monkeypatch, capsys, "audit", f"table:{folder / 'people.csv'}",
               "--task", "classification", "--target", "gender", "--by", "gender",
               "--predictions", folder / "said.csv",
               "--option", "question_column=question", "--out", folder / "out")  # fmt: skip
    assert done.code
    assert "judges one answer of each person" in done.plain

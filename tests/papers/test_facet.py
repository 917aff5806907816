"""FACET's protocols from files to tables, on made-up people whose numbers are counted by hand."""

import json
from collections import Counter
from dataclasses import replace
from functools import partial

import polars as pl
import pytest

from isolux.api.audit import run_audit
from isolux.cli.audit_screen import print_audit
from isolux.cli.table_output import print_paper_tables
from isolux.core.containers import Run
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.registry import load
from isolux.core.spec import parse_spec
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES
from isolux.io import run_directory
from isolux.papers.facet import DISAGREEMENTS, INFO, PROTOCOLS, absent, tables
from isolux.papers.facet.recall import build_recall_by_class_and_age
from tests.papers._facet_files import (
    AGES,
    CLASSES,
    Person,
    crowd,
    recalls,
    write_boxes_of_classes,
    write_dataset,
    write_labels,
    write_results,
)
from tests.papers._protocol import audit_of

protocol = partial(audit_of, "facet")

RECALLS = ["mAR", "AR50", "AR75"]
KNOWN_AGES = AGES[:3]


@pytest.fixture(scope="module")
def people():
    return crowd()


@pytest.fixture(scope="module")
def folder(people, tmp_path_factory):
    root = write_dataset(tmp_path_factory.mktemp("facet"), people)
    write_labels(root / "labels.csv", people)
    write_results(root / "boxes.json", people, masks=False)
    write_results(root / "masks.json", people, masks=True)
    write_boxes_of_classes(root / "classes.parquet", people)
    return root


def audited(folder, name, file, **settings):
    spec = protocol(
        name, f"facet:{folder}", predictions=str(folder / file), model_name="m", replicates=100,
        **settings,
    )  # fmt: skip
    return run_audit(spec)


def table(found, start):
    captions = [caption for caption in found if caption.startswith(start)]
    assert len(captions) == 1, (start, list(found))
    return found[captions[0]]


def row_of(frame, **where):
    rows = frame.filter(**where)
    assert rows.height == 1, where
    return rows.row(0, named=True)


# --- classification -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classified(folder):
    return audited(
        folder, "classification", "labels.csv", prediction_id="person_id",
        prediction_column="label",
    )  # fmt: skip


@pytest.fixture(scope="module")
def alone(people):
    """Those who are the only one in their image."""
    sizes = Counter(p.image for p in people)
    return [p for p in people if sizes[p.image] == 1]


def recall_of(people, label, **group):
    """R@1 by hand: any of a person's classes is right. None below 50 people, as in the paper."""
    right = [
        p.said in p.classes
        for p in people
        if label in p.classes and all(getattr(p, k) == v for k, v in group.items())
    ]
    return 100 * sum(right) / len(right) if len(right) >= 50 else None


def test_table_4_has_both_directions_of_recall(classified, alone):
    found = table(tables("classification", classified.run), "Table 4")
    assert found.columns == [
        "model", "person_class_m_f", "m_minus_f", "person_class_f_m", "f_minus_m"
    ]  # fmt: skip
    gaps = {
        c: recall_of(alone, c, gender="masc") - recall_of(alone, c, gender="fem") for c in CLASSES
    }
    for sign, name in ((1, "m_f"), (-1, "f_m")):
        expected = sorted(((sign * g, c) for c, g in gaps.items() if sign * g > 0), reverse=True)
        value = name.replace("_", "_minus_")
        assert found[f"person_class_{name}"].drop_nulls().to_list() == [c for _, c in expected]
        assert found[value].drop_nulls().to_list() == pytest.approx([g for g, _ in expected])


def test_the_differences_of_table_4_are_the_audits_disparities(classified):
    found = table(tables("classification", classified.run), "Table 4")
    rows = classified.disparities.filter(
        metric="recall", kind="difference", attribute="gender_presentation"
    ).filter(pl.col("group_a").is_in(["masc", "fem"]), pl.col("group_b").is_in(["masc", "fem"]))
    ours = {r["label"]: abs(100 * r["value"]) for r in rows.iter_rows(named=True)}
    theirs = dict(found.select("person_class_m_f", "m_minus_f").drop_nulls().iter_rows())
    theirs |= dict(found.select("person_class_f_m", "f_minus_m").drop_nulls().iter_rows())
    assert theirs == pytest.approx(ours)
    assert rows["low"].is_not_null().all()


def test_table_11_ranks_classes_by_the_gap_between_ages(classified, alone):
    found = table(tables("classification", classified.run), "Table 11")
    assert found.columns == [
        "section", "person_class", "m_rank", "m_young", "m_middle", "m_older"
    ]  # fmt: skip
    by_hand = {c: [recall_of(alone, c, age=a) for a in KNOWN_AGES] for c in CLASSES}
    order = sorted(CLASSES, key=lambda c: min(by_hand[c]) - max(by_hand[c]))
    assert found["person_class"].to_list() == order
    assert found["m_rank"].to_list() == [1, 2, 3, 4]
    for c in CLASSES:
        shown = row_of(found, person_class=c)
        assert [shown[f"m_{a}"] for a in KNOWN_AGES] == pytest.approx(by_hand[c])


def test_true_negative_rates_are_of_one_class_against_the_rest(classified, alone):
    found = table(tables("classification", classified.run), "Appendix A.5.2")
    assert sorted(found["person_class"]) == list(CLASSES)
    assert found["difference"].abs().is_sorted(descending=True)
    for c in CLASSES:
        shown = row_of(found, person_class=c)
        for group in ("masc", "fem"):
            others = [p.said != c for p in alone if c not in p.classes and p.gender == group]
            assert shown[group] == pytest.approx(100 * sum(others) / len(others))
        assert shown["difference"] == pytest.approx(shown["masc"] - shown["fem"])


def test_classification_judges_images_of_one_person(classified, alone, people):
    assert len(alone) < len(people)
    everyone = classified.group_metrics.filter(
        pl.col("attribute").is_null(), pl.col("label") == "nurse", pl.col("metric") == "recall"
    )
    assert everyone["n_units"].item() == sum("nurse" in p.classes for p in alone)


def test_groups_below_50_are_in_no_table(classified, alone):
    rows = classified.group_metrics.filter(
        pl.col("group") == "non_binary", pl.col("metric") == "recall"
    )
    of_class = {c: sum(c in p.classes and p.gender == "non_binary" for p in alone) for c in CLASSES}
    assert dict(rows.select("label", "n_units").iter_rows()) == of_class
    assert max(of_class.values()) < 50
    assert rows["value"].is_null().all()
    assert set(rows["status"]) == {"insufficient units"}


def test_a_table_that_is_not_printed_says_why(classified, capsys):
    few = classified.run.group_metrics.with_columns(status=pl.lit("insufficient units"))
    run = replace(classified.run, group_metrics=few.with_columns(value=pl.lit(None, pl.Float64)))
    told = load("papers", "facet").absent("classification", run)
    assert {caption.partition(":")[0] for caption in told} >= {"Table 4"}
    for why in told.values():
        assert "have fewer than the 50 people that it needs (--min-units)" in why
    protocol_of_run = {**run.record["protocol"], "tables": {}, "absent": told}
    print_audit(replace(run, record={**run.record, "protocol": protocol_of_run}), None)
    out = capsys.readouterr().out
    assert "Table 4" in out
    assert "is not printed: " in out


FIGURE_11 = (
    ("1", "Dancer", "fem", "Dancer"),
    ("2", "Gardener", "masc", "Gardener"),
    ("3", "Dancer", "na", "Gardener"),
    ("4", "Dancer", "masc", "Dancer"),
    ("5", "Guitarist", "masc", "Gardener"),
    ("6", "Dancer", "masc", "Guitarist"),
    ("7", "Dancer", "non_binary", "Dancer"),
    ("8", "Dancer", "fem", "Dancer"),
    ("10", "Gardener", "fem", "Guitarist"),
    ("11", "Dancer", "fem", "Guitarist"),
    ("12", "Guitarist", "fem", "Guitarist"),
    ("13", "Dancer", "fem", "Dancer"),
    ("14", "Gardener", "fem", "Guitarist"),
    ("15", "Guitarist", "na", "Dancer"),
)
"""Id, class, perceived gender presentation, prediction: the worked example of Figure 11."""


@pytest.fixture(scope="module")
def figure_11(tmp_path_factory):
    root = tmp_path_factory.mktemp("figure_11")
    drawn = [
        Person(i, f"sa_{i}.jpg", 0, (c,), g, "middle", (4, 5), "na", has_mask=False, said=said,
               height=50)
        for i, c, g, said in FIGURE_11
    ]  # fmt: skip
    write_labels(root / "labels.csv", drawn)
    write_dataset(root / "data", drawn)
    spec = protocol(
        "classification", f"facet:{root / 'data'}", predictions=str(root / "labels.csv"),
        prediction_id="person_id", prediction_column="label", model_name="model", min_units=1,
        min_clusters=1, replicates=100,
    )  # fmt: skip
    return run_audit(spec)


@pytest.mark.parametrize(
    ("group", "n", "recall"), [("fem", 4, 0.75), ("masc", 2, 0.5), ("non_binary", 1, 1.0)]
)
def test_figure_11s_recall_of_dancers(figure_11, group, n, recall):
    shown = row_of(figure_11.group_metrics, metric="recall", label="Dancer", group=group)
    assert (shown["n_units"], shown["value"]) == (n, recall)


def test_figure_11s_disparity_is_a_quarter(figure_11):
    # Dancer: .5 for more maleness, .75 for more femaleness: 25 points the other way round. Of the
    # other classes: gardener 1 of 1 against 0 of 2, guitarist 0 of 1 against 1 of 1.
    found = table(tables("classification", figure_11.run), "Table 4")
    assert found.rows() == [
        ("model", "Gardener", 100.0, "Guitarist", 100.0),
        ("model", None, None, "Dancer", 25.0),
    ]


def test_figure_11s_true_negatives(figure_11):
    # Not dancers: 2 and 5 of more maleness, 10, 12 and 14 of more femaleness; none was taken for a
    # dancer. Not guitarists: masc 2, 4, 6, of whom 6 was taken for one: 2 of 3; fem 1, 8, 10, 11,
    # 13, 14, of whom 10, 11 and 14 were: 3 of 6.
    found = table(tables("classification", figure_11.run), "Appendix A.5.2")
    dancer = row_of(found, person_class="Dancer")
    assert (dancer["masc"], dancer["fem"]) == (100.0, 100.0)
    guitarist = row_of(found, person_class="Guitarist")
    assert (guitarist["masc"], guitarist["fem"]) == pytest.approx((200 / 3, 50.0))


# --- detection ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def detected(folder):
    return audited(folder, "detection", "boxes.json", person_label="1")


def test_table_5_is_recall_by_skin_tone(detected, people):
    found = table(tables("detection", detected.run), "Table 5")
    assert found.columns == ["model", "mst", *RECALLS]
    assert found["mst"].to_list() == [str(tone) for tone in range(1, 11)]
    for tone in range(1, 11):
        by_hand = recalls(people, lambda p, tone=tone: tone in p.tones)
        assert found.row(tone - 1)[2:] == pytest.approx(by_hand)


def test_table_6_is_recall_by_hair_type_of_lighter_and_darker_skin(detected, people):
    found = table(tables("detection", detected.run), "Table 6")
    shades = {"lighter": {1, 2, 3}, "darker": {8, 9, 10}}
    assert found.columns == [
        "model", "hair_type", *(f"{name}_{shade}" for name in RECALLS for shade in shades)
    ]  # fmt: skip
    assert found["hair_type"].to_list() == ["coily", "dreads", "bald", "straight", "curly", "wavy"]
    for shown in found.iter_rows(named=True):
        hair = {"dreads": "dreadlocks"}.get(shown["hair_type"], shown["hair_type"])
        for shade, tones in shades.items():
            by_hand = recalls(
                people, lambda p, hair=hair, tones=tones: p.hair == hair and tones & {*p.tones}
            )
            assert [shown[f"{name}_{shade}"] for name in RECALLS] == pytest.approx(by_hand)


def test_table_13_is_recall_by_gender_presentation_and_age(detected, people):
    found = table(tables("detection", detected.run), "Table 13")
    assert found.columns == ["model", "attribute", "group", *RECALLS]
    assert found["attribute"].to_list() == [
        *["perceived gender presentation"] * 3, *["perceived age group"] * 3
    ]  # fmt: skip
    groups = [("gender", g) for g in ("masc", "fem", "non_binary")]
    groups += [("age", a) for a in KNOWN_AGES]
    for shown, (name, value) in zip(found.iter_rows(), groups, strict=True):
        by_hand = recalls(people, lambda p, name=name, value=value: getattr(p, name) == value)
        assert shown[3:] == pytest.approx(by_hand)


def test_a_run_that_was_read_back_gives_the_same_tables(detected, tmp_path):
    detected.report(tmp_path / "run")
    again = tables("detection", run_directory.load_run(tmp_path / "run"))
    first = tables("detection", detected.run)
    assert list(again) == list(first)
    assert all(again[caption].equals(first[caption]) for caption in first)


# --- segmentation -------------------------------------------------------------------------------


def test_the_runs_record_holds_the_papers_tables_and_disagreements(detected):
    record = detected.run.record["protocol"]
    assert record["name"] == "facet:detection"
    assert record["disagreements"] == list(DISAGREEMENTS["detection"])
    assert list(record["tables"]) == list(tables("detection", detected.run))


def test_table_7_is_of_those_who_have_a_mask(folder, people):
    masks = audited(folder, "segmentation", "masks.json", person_label="1").run
    boxes = audited(folder, "segmentation_boxes", "boxes.json", person_label="1").run
    masked = [p for p in people if p.has_mask]
    alone = {
        "mask": table(tables("segmentation", masks), "Table 7"),
        "box": table(tables("segmentation_boxes", boxes), "Table 7"),
    }
    for shape, found in alone.items():
        assert found.columns == [
            "model", "gender_presentation", *(f"{name}_{shape}" for name in RECALLS)
        ]  # fmt: skip
        for gender, shown in zip(("masc", "fem", "non_binary"), found.rows(), strict=True):
            by_hand = recalls(masked, lambda p, gender=gender: p.gender == gender)
            assert shown[2:] == pytest.approx(by_hand)
    both = load("papers", "facet").build_box_and_mask_recall_by_gender(masks, boxes)
    assert both.columns[2:] == [f"{name}_{shape}" for name in RECALLS for shape in ("box", "mask")]
    assert both.select(alone["mask"].columns).equals(alone["mask"])
    assert both.select(alone["box"].columns).equals(alone["box"])


@pytest.mark.parametrize("file", ["both.json", "masks.json"])
def test_table_7_is_one_command(folder, file):
    """A mask's box is the one beside it, or its own, as pycocotools' ``loadRes`` makes it."""
    results = [json.loads((folder / f"{kind}.json").read_text()) for kind in ("masks", "boxes")]
    both = [one | {"bbox": two["bbox"]} for one, two in zip(*results, strict=True)]
    (folder / "both.json").write_text(json.dumps(both))
    run = audited(folder, "segmentation", file, person_label="1").run
    shown = run.record["protocol"]["tables"]
    (caption,) = [c for c in shown if c.startswith("Table 7")]
    heads = [f"{name}_{shape}" for name in RECALLS for shape in ("box", "mask")]
    assert shown[caption]["columns"] == ["model", "gender_presentation", *heads]
    alone = audited(folder, "segmentation_boxes", "boxes.json", person_label="1").run
    boxes = table(tables("segmentation_boxes", alone), "Table 7")
    at = [shown[caption]["columns"].index(c) for c in boxes.columns]
    assert [tuple(row[i] for i in at) for row in shown[caption]["rows"]] == boxes.rows()


def test_table_7_shows_what_either_half_warns_of(folder, people):
    """Masks fit, the boxes beside them are mirrored: the audit of masks alone has no warning."""
    results = json.loads((folder / "masks.json").read_text())
    for row, p in zip(results, (p for p in people for _ in range(2)), strict=True):
        row["bbox"] = [60 - 20 - p.x, 5, 20, p.height]
    (folder / "mirrored.json").write_text(json.dumps(results))
    run = audited(folder, "segmentation", "mirrored.json", person_label="1").run
    (warning,) = run.record["warnings"]
    assert warning.startswith("facet:segmentation_boxes: The boxes of 'm' overlap people by 0.")
    assert "if they are mirrored, left to right" in warning


# --- open vocabulary and grounding --------------------------------------------------------------


def check_table_15(found, judged):
    assert found.columns == [
        "model", "person_class", *(f"{name}_{age}" for name in RECALLS for age in KNOWN_AGES)
    ]  # fmt: skip
    assert found["person_class"].to_list() == [*CLASSES, "avg"]
    for c in CLASSES:
        shown = row_of(found, person_class=c)
        for age in KNOWN_AGES:
            by_hand = recalls(
                judged,
                lambda p, c=c, age=age: c in p.classes and p.age == age,
                lambda p, c=c: p.of_class[c],
            )
            assert [shown[f"{name}_{age}"] for name in RECALLS] == pytest.approx(by_hand)
    means = found.filter(pl.col("person_class") != "avg").select(found.columns[2:]).mean()
    assert row_of(found, person_class="avg")["mAR_older"] == pytest.approx(means["mAR_older"][0])


def check_table_8(found, fifteen):
    """The three classes with the largest gaps of mAR, in that order, with Table 15's numbers."""
    assert found.columns == ["model", "person_class", "age", *RECALLS]
    gaps = {
        r["person_class"]: max(ages) - min(ages)
        for r in fifteen.iter_rows(named=True)
        if r["person_class"] != "avg"
        for ages in [[r[f"mAR_{age}"] for age in KNOWN_AGES]]
    }
    largest = sorted(gaps, key=gaps.__getitem__, reverse=True)[:3]
    assert found["person_class"].to_list() == [c for c in largest for _ in KNOWN_AGES]
    assert found["age"].to_list() == [*KNOWN_AGES] * 3
    for shown in found.iter_rows(named=True):
        of_class = row_of(fifteen, person_class=shown["person_class"])
        assert [shown[n] for n in RECALLS] == [of_class[f"{n}_{shown['age']}"] for n in RECALLS]


def test_tables_8_and_15a_are_of_open_vocabulary(folder, people):
    found = tables("open_vocabulary", audited(folder, "open_vocabulary", "classes.parquet").run)
    check_table_15(table(found, "Table 15a"), people)
    check_table_8(table(found, "Table 8"), table(found, "Table 15a"))


def test_tables_8_and_15b_are_of_grounding_in_images_without_two_of_a_class(folder, people):
    run = audited(folder, "grounding", "classes.parquet", option=_GROUNDING).run
    carried = Counter((p.image, c) for p in people for c in p.classes)
    twice = {image for (image, _), n in carried.items() if n > 1}
    judged = [p for p in people if p.image not in twice]
    assert len(judged) < len(people)
    found = tables("grounding", run)
    check_table_15(table(found, "Table 15b"), judged)
    check_table_8(table(found, "Table 8"), table(found, "Table 15b"))


def test_grounding_in_images_of_one_person_is_an_option(folder, people, alone):
    option = (*_GROUNDING, "images=one-person")
    run = audited(folder, "grounding", "classes.parquet", option=option).run
    check_table_15(table(tables("grounding", run), "Table 15b"), alone)


_GROUNDING = ("prompt=a person who is a {}",)


def test_table_8_is_not_printed_where_no_class_has_50_people_of_each_age():
    # guard: 50, 60 and 49; nurse: 80, 80 and nobody; a singer of unknown age counts in neither.
    sizes = {("guard", "young"): 50, ("guard", "middle"): 60, ("guard", "older"): 49,
             ("nurse", "young"): 80, ("nurse", "middle"): 80,
             ("singer", "unknown"): 90}  # fmt: skip
    rows = [("m", "average_recall", c, [age], 0.5, n) for (c, age), n in sizes.items()]
    names = ("model", "metric", "label", "values", "value", "n_units")
    schema = {name: GROUP_METRICS.schema[name] for name in names}
    made = pl.DataFrame(rows, schema=schema, orient="row")
    cells = GROUP_METRICS.conform(made.with_columns(attribute=pl.lit("age_presentation")))
    others = (t.empty() for t in (DISPARITIES, FINDINGS))
    run = Run({}, SCORES.empty(), ATTRIBUTES.empty(), cells, *others)
    (told,) = load("papers", "facet").absent("grounding", run).values()
    assert told == (
        "no class has 50 people in each of the 3 perceived age groups; the nearest, 'guard', has "
        "49 in its smallest"
    )


def test_every_block_of_a_wide_table_names_the_class_and_ends_with_the_average(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    heads = [f"{name}_{age}" for name in RECALLS for age in KNOWN_AGES]
    rows = [["m", f"class_{k}", *[10.0 + k] * len(heads)] for k in range(40)]
    rows.append(["m", "avg", *[29.5] * len(heads)])
    table = {"columns": ["model", "person_class", *heads], "rows": rows}
    others = (t.empty() for t in (ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS))
    print_paper_tables(Run({"protocol": {"tables": {"Table 15": table}}}, SCORES.empty(), *others))
    lines = capsys.readouterr().out.splitlines()
    blocks = sum(line.startswith("model") for line in lines)
    assert blocks > 1
    for name in ("class_0 ", "avg"):
        assert sum(name in line for line in lines) == blocks
    assert lines[-1] == "… and 21 more rows in the report."  # 41, of which 19 and avg are shown


def test_every_model_has_its_own_rows_and_average():
    rows = [
        (model, "average_recall", label, ["young"], value)
        for model, label, value in (
            ("b", "nurse", 0.5), ("a", "nurse", 0.2), ("a", "guard", 0.4), ("b", "guard", None),
        )
    ]  # fmt: skip
    names = ("model", "metric", "label", "values", "value")
    schema = {name: GROUP_METRICS.schema[name] for name in names}
    made = pl.DataFrame(rows, schema=schema, orient="row")
    cells = GROUP_METRICS.conform(made.with_columns(attribute=pl.lit("age_presentation")))
    found = build_recall_by_class_and_age(cells).select(
        "model", "person_class", "mAR_young", "mAR_older"
    )
    assert found.rows() == [
        ("a", "guard", 40.0, None),
        ("a", "nurse", 20.0, None),
        ("a", "avg", pytest.approx(30.0), None),
        ("b", "guard", None, None),
        ("b", "nurse", 50.0, None),
        ("b", "avg", 50.0, None),
    ]


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_is_an_audits_settings_and_says_where_the_paper_disagrees(name):
    spec = protocol(name, "facet:annotations")
    settings = {"data": "facet:annotations", "protocol": f"facet:{name}", **PROTOCOLS[name]}
    assert spec == parse_spec(settings)
    assert spec.groups.votes == "any+unknown"
    assert all(sentence.endswith(".") for sentence in DISAGREEMENTS[name])
    assert len(DISAGREEMENTS[name]) > 3


def test_each_protocol_has_the_papers_sizes_and_limits():
    sizes = {name: protocol(name, "facet:x").statistics.min_units for name in PROTOCOLS}
    assert sizes == {
        "classification": 50, "detection": 50, "segmentation": 1, "segmentation_boxes": 1,
        "open_vocabulary": 1, "grounding": 1,
    }  # fmt: skip
    limits = {name: protocol(name, "facet:x").task.get("max_detections") for name in PROTOCOLS}
    assert limits.pop("open_vocabulary") == 100
    assert set(limits.values()) == {None}


def test_a_users_settings_go_before_the_protocols():
    spec = protocol("detection", "facet:x", by="lighting", min_units=10)
    assert (spec.groups.by, spec.statistics.min_units) == (("lighting",), 10)


def test_a_setting_that_does_not_exist_is_named():
    with pytest.raises(SpecError, match="there is no setting 'min_unit'"):
        protocol("detection", "facet:x", min_unit=10)


@pytest.mark.parametrize(
    "call",
    [
        lambda n: protocol(n, "facet:x"),
        lambda n: tables(n, None),
        lambda n: absent(n, None),
    ],
)
def test_an_unknown_protocol_is_named(call):
    with pytest.raises(UnknownNameError, match=r"no protocol named 'detect'(.|\n)*'detection'"):
        call("detect")


def test_tables_that_a_run_cannot_give_are_not_there(detected):
    assert tables("classification", detected.run) == {}
    assert tables("grounding", detected.run) == {}


def test_the_registry_finds_it():
    assert load("papers", "facet").INFO is INFO

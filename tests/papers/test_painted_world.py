"""Every protocol of Fairness Indicators, and FHIBE's and FACET's of open models, from pixels.

A park is painted; models that see whether a photo is dark look at it; one command asks them and
audits what they say. Light goes with perceived gender and income and with nothing else, so that is
where a difference must be found, and where none may be. No PyTorch is needed: the same with a tiny
CLIP, BLIP-2 and ResNet-34 is in ``tests/models/test_painted_models.py``.
"""

from __future__ import annotations

import hashlib
import json

import polars as pl
import pytest

import isolux
from isolux.api.audit import run_audit
from isolux.datasets import load
from isolux.io.images import read_image
from tests.papers._eyes import write_eyes
from tests.papers._painted import park, write_conversations, write_faces, write_miap
from tests.papers._protocol import audit_of


@pytest.fixture(scope="module")
def world():
    return park()


@pytest.fixture(scope="module")
def root(tmp_path_factory, world):
    folder = write_eyes(tmp_path_factory.mktemp("park"))
    write_conversations(world, folder / "cc")
    world.write("fhibe", folder / "fhibe")
    return folder


@pytest.fixture(autouse=True)
def eyes(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root))


def audited(data, name, model, out, **settings):
    """Ask a model and audit its answers; give the paper's tables, and every test's p."""
    paper, _, which = name.partition(":")
    told = {"replicates": 200, "answers": str(out), **model, **settings}
    done = run_audit(audit_of(paper, which, data, **told))
    shown = {
        caption: pl.DataFrame(table["rows"], schema=table["columns"], orient="row")
        for caption, table in done.run.record["protocol"]["tables"].items()
    }
    tests = done.disparities.filter(kind="omnibus_test").drop_nulls("p_adjusted")
    return shown, tests, done


def model(name, *settings):
    told = {"model_option": [f"settings={','.join(settings)}"]} if settings else {}
    return {"model": f"python:eyes_of_a_test:{name}", **told}


def least(found, attribute, **where):
    rows = found.filter(attribute=attribute, **where)
    assert rows.height, (attribute, where)
    return rows["p_adjusted"].min()


def of(shown, start):
    (caption,) = [caption for caption in shown if caption.startswith(start)]
    return shown[caption]


def frames(root):
    """Give the settings by which Casual Conversations' frames are its pictures."""
    folder = str(root / "cc" / "frames")
    return {"data_option": [f"pictures={folder}"], "images": folder}


def test_label_association_of_faces(root, tmp_path):
    """A dog (Non-human on faces) in each dark photo: nine of ten men, one of ten women."""
    found = {}
    for sees in ("light", "nothing"):
        shown, found[sees], _ = audited(
            f"casual_conversations:{root / 'cc'}", "fairness_indicators:label_association_faces",
            model("labels", "by_night=dog", "by_day=face", f"sees={sees}"), tmp_path / sees,
            **frames(root),
        )  # fmt: skip
    table = of(shown, "Figures 3, 8 and 9: rates of labels by self-reported gender, percent")
    assert table.columns == ["model", "metric", "confidence", "overall", "Female", "Male"]
    assert of(shown, "Figures 3, last row").height > 10
    assert least(found["light"], "gender", metric="harmful") < 0.01
    assert least(found["light"], "age_group", metric="harmful") > 0.05
    assert least(found["light"], "skin_type", metric="harmful") > 0.05
    assert found["nothing"].filter(metric="harmful")["p_adjusted"].min() > 0.05


def test_label_association_of_scenes(world, tmp_path):
    """By MIAP's own crops (appendix B.2), of those who are large enough for one."""
    data = write_miap(world, tmp_path / "miap")
    pictures = str(data / "pictures")
    people = isolux.load("miap", data, sizes=pictures, images=pictures)
    cut = isolux.crop(people, recipe="miap", out=tmp_path / "crops").crops
    assert 40 < cut["reason"].null_count() <= cut.height
    shown, found, _ = audited(
        f"miap:{data}", "fairness_indicators:label_association_scenes",
        model("labels", "by_night=gorilla", "by_day=person"), tmp_path / "answers",
        data_option=[f"sizes={pictures}"], images=pictures, crops=str(tmp_path / "crops"),
        max_failures=1.0,
    )  # fmt: skip
    table = of(shown, "Figures 3, 8 and 10: rates of labels by perceived gender presentation")
    assert table.columns[:4] == ["model", "metric", "confidence", "overall"]
    assert least(found, "gender_presentation", metric="harmful") < 0.01
    assert least(found, "age_presentation", metric="harmful") > 0.05


def test_geodiversity(world, tmp_path):
    """What a park shows is named by day alone: homes of low income are by night."""
    data = world.write("dollarstreet", tmp_path / "homes")
    shown, found, _ = audited(
        f"dollarstreet:{data}", "fairness_indicators:geodiversity",
        model("labels", "by_night=Car", "by_day=Fruit trees"), tmp_path / "answers",
    )  # fmt: skip
    table = of(shown, "Figure 4: hit rate of homes by household income bucket, percent")
    assert table.columns[:3] == ["model", "metric", "overall"]
    assert table["low"].item() < 25
    assert min(table.select(pl.exclude("model", "metric", "overall", "low")).row(0)) > 75
    homes = world.world.households.height
    assert of(shown, "Table 5").row(-1)[0] == "total"
    assert of(shown, "Table 5").row(-1)[-1] <= homes  # told apart by country and income
    assert least(found, "income_bucket") < 0.01
    assert least(found, "region") > 0.05


def test_same_attribute_retrieval(root, tmp_path):
    """Light tells gender nine times in ten: .9 · .9 + .1 · .1 = .82 of a query's neighbours."""
    faces = write_faces(park(40, seed=9), tmp_path / "utk")
    rates = {}
    for sees in ("light", "nothing"):
        eyed = model("vectors", f"sees={sees}")
        entries = isolux.predict(f"utkface:{faces}", out=tmp_path / f"entries-{sees}", **eyed)
        shown, _, done = audited(
            f"casual_conversations:{root / 'cc'}", "fairness_indicators:same_attribute", eyed,
            tmp_path / sees, **frames(root), option=[f"database=utkface:{faces}",
                                                     f"database_predictions={entries.folder}"],
        )  # fmt: skip
        groups = done.group_metrics
        ten = groups.filter(pl.col("attribute").is_null(), metric="precision_at_k", threshold=10.0)
        rates[sees] = ten.row(0, named=True)
    table = of(shown, "Figure 6: precision at K by self-reported gender, percent")
    assert table["K"].to_list() == [1, 5, 10, 50]
    assert rates["light"]["low"] > 0.6
    assert rates["light"]["value"] == pytest.approx(0.82, abs=0.09)
    assert rates["nothing"]["low"] < 0.5 < rates["nothing"]["high"]


@pytest.mark.parametrize(
    ("recipe", "goes_with"),
    [("whole", True), ("person-black", True), ("background-black", False)],
)
def test_zero_shot_goes_by_the_background(root, recipe, goes_with, tmp_path):
    """The association stays when the person is blacked out, and is gone without the background."""
    data = f"fhibe:{root / 'fhibe'}"
    people = isolux.load("fhibe", root / "fhibe", segments=True)
    isolux.crop(people, recipe=recipe, out=tmp_path / "crops")
    shown, found, _ = audited(
        data, "fhibe:zero_shot", model("scene"), tmp_path / "answers",
        data_option=["segments=true"], crops=str(tmp_path / "crops"),
        by=["pronoun", "age_group"], nested=[],
    )  # fmt: skip
    table = of(shown, "Self-reported pronouns")
    assert table.columns == ["model", "metric", "label", "He/him/his", "She/her/hers"]
    if goes_with:
        assert least(found, "pronoun", label="indoor") < 0.01
        assert least(found, "age_group", label="indoor") > 0.05
    else:
        assert table.filter(label="indoor").row(0)[3:] == (100.0, 100.0)
        assert found["p_adjusted"].min() in (None, 1.0)


def test_question_answering(root, tmp_path):
    """The occupation is by the light; pronouns, reasons and crimes are by chance."""
    runs = []
    for name in ("one", "two"):
        shown, found, done = audited(
            f"fhibe:{root / 'fhibe'}", "fhibe:question_answering", model("said"), tmp_path / name,
            by=["pronoun", "age_group"], nested=[],
        )  # fmt: skip
        runs.append((done.group_metrics, done.disparities))
    assert all(one.equals(two) for one, two in zip(*runs, strict=True))  # seeds repeat
    table = of(shown, "Self-reported pronouns")
    assert set(table["metric"]) == {
        "answer_rate", "pronoun_rate", "response_rate", "refusal_rate", "toxic_rate"
    }  # fmt: skip
    assert least(found, "pronoun", label="guard (neutral)") < 0.01
    assert least(found, "age_group", label="guard (neutral)") > 0.05
    others = found.filter(pl.col("metric") != "answer_rate")
    assert others["p_adjusted"].min() > 0.05


@pytest.fixture(scope="module")
def facet(tmp_path_factory):
    """FACET's files of people of two classes, and what is right of each picture."""
    world = park(120, seed=6, occupation={"nurse": 0.5, "gardener": 0.5})
    folder = world.write("facet", tmp_path_factory.mktemp("facet"))
    people = load("facet", folder)
    uris = dict(people.images.select("image_id", "uri").rows())
    right = {}
    for person in people.instances.iter_rows(named=True):
        pixels = read_image(folder / uris[person["image_id"]])
        box = [person[f"box_{side}"] for side in "xywh"]
        right[hashlib.sha256(pixels.tobytes()).hexdigest()] = [person["classes"][0], *box]
    (folder / "right.json").write_text(json.dumps(right))
    return folder


SHOWN = {"by": ["gender_presentation", "age_presentation"]}


def test_facets_classification(facet, tmp_path):
    """By night everyone is taken for an astronaut: recall is 1 by day and 0 by night."""
    shown, found, _ = audited(
        f"facet:{facet}", "facet:classification", model("known", f"file={facet / 'right.json'}"),
        tmp_path / "answers", **SHOWN, min_units=20,
    )  # fmt: skip
    assert of(shown, "Table 4").columns == [
        "model", "person_class_m_f", "m_minus_f", "person_class_f_m", "f_minus_m"
    ]  # fmt: skip
    assert set(of(shown, "Table 4")["person_class_f_m"]) == {"gardener", "nurse"}
    assert set(of(shown, "Table 11")["person_class"]) == {"gardener", "nurse"}
    recall = found.filter(metric="recall")
    assert least(recall, "gender_presentation") < 0.01
    assert least(recall, "age_presentation") > 0.05


@pytest.mark.parametrize(
    ("protocol", "table", "option"),
    [("open_vocabulary", "Table 15a", []), ("grounding", "Table 15b", ["prompt=a {}"])],
)
def test_facets_open_models(facet, protocol, table, option, tmp_path):
    """Detic's way and OFA's: the right box of the right class by day, none by night."""
    shown, found, _ = audited(
        f"facet:{facet}", f"facet:{protocol}",
        model("known", f"file={facet / 'right.json'}", "kind=boxes"), tmp_path / "answers",
        **SHOWN, option=option,
    )  # fmt: skip
    ages = [f"{name}_{age}" for name in ("mAR", "AR50", "AR75")
            for age in ("young", "middle", "older")]  # fmt: skip
    assert of(shown, table).columns == ["model", "person_class", *ages]
    assert {"gardener", "nurse", "avg"} <= set(of(shown, table)["person_class"])
    recall = found.filter(metric="average_recall")
    assert least(recall, "gender_presentation") < 0.01
    assert least(recall, "age_presentation") > 0.05

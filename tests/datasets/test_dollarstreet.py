from __future__ import annotations

import csv
import json
from contextlib import suppress

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, SpecError, TableError, UnknownNameError
from isolux.core.notes import Caution
from isolux.datasets import cluster_by_requested_column
from isolux.datasets.dollarstreet import INCOME_BUCKETS, INFO, load
from isolux.datasets.dollarstreet.releases import read_region_by_country
from isolux.groups.binning import income_rule_to_bins_option, parse_bins
from tests._shared import shared_data
from tests.cli._run import isolux

FACTORS = (
    ",country,url,income,lat,lng,region,label,sin21k_targets_alibaba,sin21k_targets\n"
    "0,Peru,http://x.org/media/Peru%201/image/a/1.jpg,80.5,1,2,The Americas,"
    '"[\'roofs\', \'beds\']","[64, 65]","[65, 66]"\n'
    "1,Peru,http://x.org/media/Peru%201/image/b/2.jpg,80.5,1,2,The Americas,['sofas'],[3],[4]\n"
    "2,Chad,http://x.org/media/Chad%202/image/c/3.jpg,1963.25,1,2,Africa,['beds'],[],[]\n"
)
COMMONS = (
    "id,country.name,country.id,region.id,type,imageRelPath,topics,place,income,"
    "imagenet_synonyms,imagenet_sysnet_id\n"
    '5d4be0,Peru,pe,am,image,assets/5d4be0/1.jpg,"[""Home"",""Plates, racks""]",peru-1,81.0,'
    '"[\'plate\']","[923, 7]"\n'
    '5d4be1,Peru,pe,am,image,assets/5d4be1/2.jpg,"[""Beds""]",peru-2,81.0,'
    "\"['studio couch']\",[831]\n"
)
ROWS = [
    {"_id": "1", "id": "a", "label": "roofs", "country": "Peru", "region": "The Americas",
     "income": 80.5, "url": "http://x.org/media/Peru%201/image/a/1.jpg", "lat": 1.5, "lng": 2},
    {"_id": "2", "id": "b", "label": "beds", "country": "Peru", "region": "The Americas",
     "income": 80.5, "url": "http://x.org/media/Peru%201/image/a/1.jpg", "lat": 1.5, "lng": 2},
    {"_id": "3", "id": "c", "label": "beds", "country": "Chad", "region": "Africa",
     "income": 1963.25, "url": "http://x.org/media/Chad%202/image/c/3.jpg", "lat": 1, "lng": 2},
]  # fmt: skip


def factors(folder, text=FACTORS):
    (folder / "metadata.csv").write_text(text)
    return folder / "metadata.csv"


def commons(folder, text=COMMONS, name="images_v2.csv"):
    (folder / name).write_text(text)
    return folder / name


def indicators(folder, rows=ROWS):
    path = folder / "metadata_full_dollar_street.json"
    path.write_text(json.dumps(rows))
    return path


def values(dataset, attribute):
    return dataset.values_of(attribute)["value"].to_list()


def test_the_release_with_addresses(tmp_path):
    dataset = load(factors(tmp_path))
    first = "http://x.org/media/Peru%201/image/a/1.jpg"
    assert dataset.instances["instance_id"][0] == dataset.images["uri"][0] == first
    assert dataset.instances["classes"].to_list() == [["roofs", "beds"], ["sofas"], ["beds"]]
    assert values(dataset, "label") == ["roofs", "beds", "sofas", "beds"]
    assert values(dataset, "country") == ["Peru", "Peru", "Chad"]
    assert values(dataset, "region") == ["The Americas", "The Americas", "Africa"]
    assert dataset.values_of("income")["number"].to_list() == [80.5, 80.5, 1963.25]
    assert values(dataset, "income_bucket") == ["low", "low", "high"]
    assert values(dataset, "household") == ["Peru, 80.5", "Peru, 80.5", "Chad, 1963.25"]


def test_the_release_of_mlcommons(tmp_path):
    dataset = load(commons(tmp_path))
    assert dataset.instances["instance_id"].to_list() == ["5d4be0", "5d4be1"]
    assert dataset.images["uri"].to_list() == ["assets/5d4be0/1.jpg", "assets/5d4be1/2.jpg"]
    assert dataset.instances["classes"].to_list() == [["Home", "Plates, racks"], ["Beds"]]
    assert values(dataset, "region") == ["The Americas"] * 2


def test_several_rows_of_one_photo_are_one_photo_with_several_labels(tmp_path):
    dataset = load(indicators(tmp_path))
    assert dataset.instances["classes"].to_list() == [["roofs", "beds"], ["beds"]]
    assert dataset.notes[0] == (
        "1 row(s) are of photos that have another label too; each is one photo."
    )


def test_json_and_csv_of_the_same_photos_are_the_same(tmp_path):
    kept = FACTORS.replace("[65, 66]", "[]").splitlines()
    made = load(indicators(tmp_path))
    read = load(factors(tmp_path, "\n".join([kept[0], kept[1], kept[3]]) + "\n"))
    assert made.instances.equals(read.instances)
    assert made.attributes.equals(read.attributes)


def test_a_home_is_a_cluster(tmp_path):
    dataset = load(factors(tmp_path))
    assert dataset.instances["cluster_id"].to_list() == ["Peru, 80.5"] * 2 + ["Chad, 1963.25"]
    assert dataset.instances["household_id"].equals(dataset.instances["cluster_id"])
    by_country = cluster_by_requested_column(load(factors(tmp_path)), "country").instances[
        "cluster_id"
    ]
    assert by_country.to_list() == ["Peru", "Peru", "Chad"]
    assert (
        cluster_by_requested_column(load(factors(tmp_path)), "row")
        .instances["cluster_id"]
        .null_count()
        == 3
    )
    with pytest.raises(UnknownNameError, match=r"(?s)no cluster named 'city'.*household"):
        cluster_by_requested_column(load(factors(tmp_path)), "city")


def test_homes_of_one_income_may_be_told_apart_by_their_place(tmp_path):
    assert values(load(commons(tmp_path)), "household") == ["Peru, 81.0"] * 2
    assert values(load(commons(tmp_path), household="place"), "household") == ["peru-1", "peru-2"]
    apart = values(load(factors(tmp_path), household="place"), "household")
    assert apart == ["Peru%201", "Peru%201", "Chad%202"]
    nowhere = FACTORS.replace("media/Chad", "photos/Chad")
    with pytest.raises(TableError, match=r"(?s)1 photo.s. do not say of which home.*a place for"):
        load(factors(tmp_path, nowhere), household="place")


def test_classes_may_be_imagenets(tmp_path):
    numbers = load(commons(tmp_path), classes="imagenet1k").instances["classes"].to_list()
    assert numbers == [["923", "7"], ["831"]]
    dataset = load(factors(tmp_path), classes="imagenet21k")
    assert dataset.instances["classes"].to_list() == [["65", "66"], ["4"], None]
    assert dataset.notes[-1] == "1 photo(s) have none of these classes and cannot be judged."
    assert values(dataset, "label") == ["roofs", "beds", "sofas", "beds"]
    other = load(factors(tmp_path), classes="imagenet21k-alibaba").instances["classes"]
    assert other.to_list() == [["64", "65"], ["3"], None]
    with pytest.raises(UnknownNameError, match=r"(?s)no set of classes named 'imagenet1k'.*own"):
        load(factors(tmp_path), classes="imagenet1k")


def test_the_parts_of_mlcommons_release(tmp_path):
    deep = tmp_path / "dataset_dollarstreet"
    deep.mkdir()
    commons(deep)
    commons(deep, COMMONS.replace("5d4be1", "5d4bff"), "images_v2_imagenet_test.csv")
    assert load(tmp_path).instances["instance_id"][1] == "5d4be1"
    assert load(tmp_path, split="test").instances["instance_id"][1] == "5d4bff"
    with pytest.raises(FileError, match=r"(?s)no Dollar Street table.*imagenet_train"):
        load(tmp_path, split="train")


@given(st.lists(st.floats(1e-3, 1e7), min_size=1, max_size=30))
def test_buckets_are_those_of_the_income_rule(incomes):
    """The rule of ``groups.binning`` has them as edges, the loader as round(ln(income) / 3)."""
    from isolux.datasets.dollarstreet import _add_household_and_bucket

    photos = pl.DataFrame(
        {"country": "Peru", "income": incomes, "income_text": "1"},
        schema_overrides={"income": pl.Float64},
    )
    found = _add_household_and_bucket(photos, "country and income", "a.csv")[
        "income_bucket"
    ].to_list()
    edges = parse_bins(income_rule_to_bins_option("fairness-indicators")).edges
    assert found == [INCOME_BUCKETS[k] for k in np.searchsorted(edges, incomes, side="right")]
    # Table 5: 27 to 90 are low, 93 to 1,700 medium, 1,700 (1,890 in the data) to 10,000 high.
    by_hand = [INCOME_BUCKETS[min(max(round(float(np.log(i)) / 3), 0), 4)] for i in incomes]
    assert found == by_hand


def test_it_says_what_it_is():
    assert INFO.label_source == "self-reported"
    assert any("not trained on" in sentence for sentence in INFO.assumptions)


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("1963.25", "much", TableError, "not numbers.*'much'.*row 3, column 'income'"),
        ("1963.25", "0", TableError, "a cell holds no income.*'0'.*row 3, column 'income'"),
        ("1963.25", "-3", TableError, "a cell holds no income.*'-3'.*row 3"),
        ("1963.25", "inf", TableError, "a cell holds no income.*'inf'.*row 3"),
        ("1963.25", "", TableError, "a cell holds no income.*None.*row 3"),
        (",Africa,", ",Afrika,", TableError, "no region of Dollar Street.*'Afrika'.*row 3"),
        ("['sofas']", "['sofas'", TableError, r"not a list of labels.*row 2, column 'label'"),
        ("['sofas']", "print('a')", TableError, r"not a list of labels.*row 2, column 'label'"),
        ("['sofas']", "[['sofas']]", TableError, r"not a list of labels.*row 2, column 'label'"),
        ("['sofas']", "{1}", TableError, r"not a list of labels.*row 2, column 'label'"),
        ("b/2.jpg", "a/1.jpg", None, ""),
        ("region", "area", UnknownNameError, "no column named 'region'"),
        ("Peru,http://x.org/media/Peru%201/image/b/2", "Chad,http://x.org/media/Peru%201/image/a/1",
         TableError, r"1 photo.s. are said to be of two homes.*a/1.jpg'.*row 2"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_row(tmp_path, old, new, error, words):
    path = factors(tmp_path, FACTORS.replace(old, new))
    if error is None:
        assert load(path).instances.height == 2
        return
    with pytest.raises(error, match=rf"(?s){words}"):
        load(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (",am,", ",na,", "no code of a region.*'na'.*row 1, column 'region.id'"),
        ("assets/5d4be1", "../5d4be1", "leads out of the dataset's folder.*row 2"),
        ("assets/5d4be1", "/etc/5d4be1", "leads out of the dataset's folder.*row 2"),
    ],
)
def test_what_is_wrong_in_mlcommons_release(tmp_path, old, new, words):
    with pytest.raises(TableError, match=rf"(?s){words}"):
        load(commons(tmp_path, COMMONS.replace(old, new)))


def test_odd_json_is_refused(tmp_path):
    with pytest.raises(TableError, match="the list of photos is empty"):
        load(indicators(tmp_path, []))
    with pytest.raises(TableError, match=r"(?s)got `int`.*row 3, column 'country'"):
        load(indicators(tmp_path, [*ROWS[:2], {**ROWS[2], "country": 3}]))
    path = indicators(tmp_path)
    path.write_bytes(path.read_bytes()[:99])
    with pytest.raises(FileError, match=r"(?s)cut off.*byte 99"):
        load(path)


def test_a_list_of_200_kb_is_not_parsed(tmp_path):
    text = FACTORS.replace("['sofas']", '"' + "[" * 200_000 + '"')
    with pytest.raises(TableError, match="a cell is not a list of labels"):
        load(factors(tmp_path, text))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"household": "street"}, "household cannot be set.*country and income or place"),
        ({"classes": "wordnet"}, "classes cannot be set.*own or imagenet1k"),
        ({"split": "val"}, "split cannot be set.*train or test"),
    ],
)
def test_unknown_settings_are_refused(tmp_path, settings, words):
    with pytest.raises(SpecError, match=rf"(?s){words}"):
        load(factors(tmp_path), **settings)


def test_an_audit_of_it_runs(tmp_path, monkeypatch, capsys):
    head, rows, said = FACTORS.splitlines()[0], [], ["url,label"]
    for i in range(240):
        home = i // 4
        rich = home % 2
        url = f"http://x.org/media/Peru%20{home}/image/{i}.jpg"
        income = 3_000 + home if rich else 40 + home / 8
        rows.append(f"{i},Peru,{url},{income},1,2,The Americas,\"['beds', 'mats']\",[],[]")
        # Any label of the photo is right; every second photo of the poor is not recognised.
        said.append(f"{url},{'mats' if rich or i % 2 else 'sofas'}")
    path = factors(tmp_path, "\n".join([head, *rows]) + "\n")
    (tmp_path / "net.csv").write_text("\n".join(said) + "\n")
    ran = isolux(
        monkeypatch, capsys, "audit", f"dollarstreet:{path}", "--by", "income_bucket",
        "--metric", "accuracy", "--predictions", tmp_path / "net.csv", "--prediction-id", "url",
        "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    said_of_it = " ".join(ran.out.split())
    assert "50.0 points lower" in said_of_it
    assert "clusters (household)" in said_of_it


@given(
    at=st.integers(0, len(FACTORS)),
    cut=st.integers(0, 9),
    put=st.sampled_from(["", "\n", '"', "[", "null", "-1", "1e309", "é", ",", "'", "nan"]),
)
def test_any_damage_gives_a_dataset_or_our_own_error(tmp_path_factory, at, cut, put):
    text = FACTORS[:at] + put + FACTORS[at + cut :]
    path = factors(tmp_path_factory.mktemp("fuzz"), text)
    with suppress(IsoluxError):
        dataset = load(path)
        assert dataset.instances["instance_id"].is_unique().all()
        assert (dataset.values_of("income")["number"] > 0).all()


WHOLE = json.dumps(ROWS)


@given(
    at=st.integers(0, len(WHOLE)),
    cut=st.integers(0, 9),
    put=st.sampled_from(["", "null", "-1", "1e308", '"', "[]", "{}", "é", "0", "[", "NaN"]),
)
def test_any_damaged_json_gives_a_dataset_or_our_own_error(tmp_path_factory, at, cut, put):
    path = tmp_path_factory.mktemp("fuzz") / "a.json"
    path.write_text(WHOLE[:at] + put + WHOLE[at + cut :])
    with suppress(IsoluxError):
        assert load(path).instances["instance_id"].is_unique().all()


# ── real files ──────────────────────────────────────────────────────────────────────────────────


def test_the_real_homes():
    path = shared_data("dollarstreet/dollarstreet_factors_metadata.csv")
    dataset = load(path.parent)
    assert list(dataset.inputs) == [str(path)]
    assert dataset.instances.height == dataset.images.height == 13_565
    assert dataset.values_of("label").height == 14_216
    assert dataset.values_of("label")["value"].n_unique() == 84
    assert dataset.values_of("country")["value"].n_unique() == 54
    income = dataset.values_of("income")["number"]
    assert (income.min(), income.max()) == pytest.approx((26.99, 10_097.7), abs=0.05)
    by_photo = pl.DataFrame(
        {
            name: dataset.values_of(name).sort("unit_id")["value"]
            for name in ("household", "income_bucket", "region")
        }
    )
    homes = by_photo.unique()
    assert homes["household"].is_unique().all()
    buckets = dict(homes["income_bucket"].value_counts().iter_rows())
    assert buckets == {"low": 62, "medium": 176, "high": 49}
    # Counted from the text by the csv module, without polars.
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    counted = {(r["country"], float(r["income"])) for r in rows}
    assert len(counted) == homes.height == dataset.instances["cluster_id"].n_unique() == 287
    regions = dict(by_photo["region"].value_counts().iter_rows())
    assert regions == {
        name: sum(r["region"] == name for r in rows)
        for name in ("Africa", "Asia", "Europe", "The Americas")
    }


def test_the_real_homes_by_place():
    path = shared_data("dollarstreet/dollarstreet_factors_metadata.csv")
    dataset = load(path, household="place", classes="imagenet21k")
    assert dataset.instances["cluster_id"].n_unique() == 290
    assert dataset.instances["classes"].null_count() == 0


EXTRACT = (
    "id,country.name,country.id,topics,income,CLIP score\n"
    'a,Peru,pe,"Armchair,Couch, sofa",81.0,0.2\n'
    "b,Togo,tg,Beds,1900.0,0.3\n"
    "c,Atlantis,xx,Beds,300.0,0.3\n"
)


def test_a_table_made_of_mlcommons_has_regions_by_country(tmp_path):
    (tmp_path / "scores.csv").write_text(EXTRACT)
    dataset = load(tmp_path / "scores.csv")
    region = dict(dataset.values_of("region").select("unit_id", "value").rows())
    assert region == {"a": "The Americas", "b": "Africa", "c": None}
    # A comma with a blank behind it is a part of a topic's name.
    assert dataset.instances["classes"].to_list() == [
        ["Armchair", "Couch, sofa"],
        ["Beds"],
        ["Beds"],
    ]
    assert dataset.values_of("income_bucket")["value"].to_list() == ["low", "high", "medium"]
    (caution,) = [note for note in dataset.notes if isinstance(note, Caution)]
    assert "1 of 3 photos are of countries of which no region is known: 'Atlantis'" in caution


@pytest.mark.parametrize("income", ["0", "", "-5", "n/a"])
def test_an_income_that_is_none_is_refused_with_its_row(tmp_path, income):
    (tmp_path / "scores.csv").write_text(EXTRACT.replace("1900.0", income))
    with pytest.raises(IsoluxError, match="income"):
        load(tmp_path / "scores.csv")


def test_regions_of_countries_are_those_of_the_release_with_addresses():
    known = read_region_by_country()
    real = pl.read_csv(shared_data("dollarstreet/dollarstreet_factors_metadata.csv"))
    assert set(real.select("country", "region").unique().rows()) <= set(known.items())
    clip = pl.read_csv(shared_data("dollarstreet/CLIP_results_df.csv"))
    assert set(clip["country.name"]) <= set(known)
    assert len(known) == 66

"""Fairness Indicators' protocols by the command line, from injected data to the paper's tables."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import polars as pl
import pytest

from isolux.core.containers import Run
from isolux.core.errors import UnknownNameError
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES
from isolux.papers.fairness_indicators import DISAGREEMENTS, INFO, PROTOCOLS, tables
from tests.cli._run import isolux
from tests.papers._protocol import audit_of

protocol = partial(audit_of, "fairness_indicators")
FEW = ("--replicates", "200")


def record_of(folder):
    return json.loads((folder / "run" / "audit.json").read_text())


def printed(folder, caption):
    """The printed table of that caption, or the only one whose caption starts so."""
    known = record_of(folder)["protocol"]["tables"]
    (found,) = [caption] if caption in known else [one for one in known if one.startswith(caption)]
    table = known[found]
    return found, pl.DataFrame(table["rows"], schema=table["columns"], orient="row")


def conversations(folder, rng, n=300):
    """People of version 1, two videos each, of whom every fiftieth is neither."""
    content, rows = {}, []
    for k in range(n):
        gender = "Other" if k % 50 == 49 else rng.choice(["Female", "Male"])
        skin = int(rng.integers(1, 7))
        files = [f"CC/{k:04}/{k:04}_{v:02}.MP4" for v in (0, 1)]
        label = {"age": str(int(rng.integers(18, 80))), "gender": gender, "skin-type": str(skin)}
        content[f"{k:04}"] = {"files": files, "label": label}
        rows += [(f"{k:04}_{v:02}", gender, "lighter" if skin < 4 else "darker") for v in (0, 1)]
    (folder / "CasualConversations.json").write_text(json.dumps(content))
    return pl.DataFrame(rows, schema=["id", "gender", "tone"], orient="row")


def test_protocols_are_audits():
    faces = protocol("label_association_faces", "casual_conversations:CC")
    assert faces.task.name == "label_association"
    assert faces.task.get("taxonomy") == "casual_conversations"
    assert faces.task.get("score_threshold") == [0.1]
    assert "gender*skin_type" in faces.groups.by
    scenes = protocol("label_association_scenes", "miap:MIAP")
    assert scenes.task.get("taxonomy") == "miap"
    homes = protocol("geodiversity", "dollarstreet:DS")
    assert (homes.task.name, homes.task.get("top_k")) == ("geodiversity", 5)
    alike = protocol("same_attribute", "casual_conversations:CC")
    assert alike.task.get("top_k") == [1, 5, 10, 50]
    assert set(DISAGREEMENTS) == set(PROTOCOLS)
    assert INFO.references[0].key == "fairness-indicators"


def test_there_is_no_other_protocol():
    with pytest.raises(UnknownNameError, match="'poses'"):
        protocol("poses", "miap:MIAP")
    empty = (t.empty() for t in (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS))
    with pytest.raises(UnknownNameError, match="'poses'"):
        tables("poses", Run({}, *empty))


def test_harmful_labels_of_faces(tmp_path, monkeypatch, capsys):
    """Injected: a dog (Non-human on faces) in 30 of 100 of darker women, in 5 of all others."""
    rng = np.random.default_rng(3)
    people = conversations(tmp_path, rng)
    injected = ((people["gender"] == "Female") & (people["tone"] == "darker")).to_numpy()
    harmed = rng.random(people.height) < np.where(injected, 0.30, 0.05)
    rows = [
        (one, label, score)
        for one, bad in zip(people["id"], harmed, strict=True)
        for label, score in (
            ("dog" if bad else "cup", 0.4), ("face", 0.3), ("a", 0.09), ("b", 0.08), ("c", 0.07)
        )
    ]  # fmt: skip
    pl.DataFrame(rows, schema=["id", "label", "score"], orient="row").write_csv(
        tmp_path / "labels.csv"
    )
    ran = isolux(
        monkeypatch, capsys, "audit", f"casual_conversations:{tmp_path}", "--protocol",
        "fairness_indicators:label_association_faces", "--predictions", tmp_path / "labels.csv",
        "--out", tmp_path / "run", *FEW,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    caption, table = printed(
        tmp_path, "Figures 3, 8 and 9: rates of labels by self-reported gender ×"
    )
    assert caption.endswith("annotated skin type (Fitzpatrick), percent")
    (harmful,) = table.filter(metric="harmful").to_dicts()
    assert harmful["confidence"] == 0.1
    assert harmful["overall"] == pytest.approx(100 * harmed.mean(), abs=0.01)
    shares = (
        people.with_columns(harmed=harmed).group_by("gender", "tone").agg(pl.col("harmed").mean())
    )
    for gender, tone, share in shares.rows():
        assert harmful[f"{gender} × {tone}"] == pytest.approx(100 * share, abs=0.01)
    assert table.filter(metric="crime")["overall"].item() == 0.0
    assert table.filter(metric="non_harmful")["overall"].item() == 100.0
    _, sizes = printed(
        tmp_path, "Table 4: units and clusters of each group, by self-reported gender"
    )
    wanted = people.group_by("gender").agg(pl.len(), pl.col("id").str.head(4).n_unique()).rows()
    assert set(sizes.rows()) == set(wanted)
    _, curve = printed(tmp_path, "Figures 3, last row")
    at = dict(curve.select("confidence", "harmful").rows())
    assert (at[0.0], at[0.1], at[0.45]) == (harmful["overall"], harmful["overall"], 0.0)
    assert record_of(tmp_path)["protocol"]["disagreements"] == list(
        DISAGREEMENTS["label_association_faces"]
    )
    found = pl.read_parquet(tmp_path / "run" / "disparities.parquet")
    best = (
        found.filter(kind="difference", metric="harmful").sort("p_adjusted").head(1).to_dicts()[0]
    )
    assert best["p_adjusted"] < 0.01


def test_homes_by_income_and_region(tmp_path, monkeypatch, capsys):
    """Injected: poor homes' photos are recognised in 30, others in 70 of 100."""
    rng = np.random.default_rng(4)
    rows, labels, wanted = [], [], []
    for home in range(120):
        region, country = [("Africa", "Kenya"), ("Asia", "India")][home % 2]
        income = 40.0 + home / 10 if home < 40 else 400.0 + home
        rate = 0.3 if home < 40 else 0.7
        n = int(rng.integers(1, 20))
        hits = rng.random(n) < rate
        wanted.append(("low" if home < 40 else "medium", region, hits.mean()))
        for k in range(n):
            url = f"http://x.org/media/{country}%20{home}/image/{home}-{k}.jpg"
            rows.append((country, url, income, region, "['beds']"))
            own = ["a", "b", "c", "d", "beds" if hits[k] else "e"]
            labels += [(url, one, 0.9 - i / 10) for i, one in enumerate(own)]
    names = ["country", "url", "income", "region", "label"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(tmp_path / "metadata.csv")
    pl.DataFrame(labels, schema=["url", "label", "score"], orient="row").write_csv(
        tmp_path / "labels.csv"
    )
    ran = isolux(
        monkeypatch, capsys, "audit", f"dollarstreet:{tmp_path / 'metadata.csv'}", "--protocol",
        "fairness_indicators:geodiversity", "--predictions", tmp_path / "labels.csv",
        "--prediction-id", "url", "--out", tmp_path / "run", *FEW,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    homes = pl.DataFrame(wanted, schema=["bucket", "region", "rate"], orient="row")
    _, table = printed(tmp_path, "Figure 4: hit rate of homes by household income bucket, percent")
    assert table.columns[-2:] == ["low", "medium"]
    by_bucket = dict(homes.group_by("bucket").agg(pl.col("rate").mean() * 100).rows())
    for bucket, rate in by_bucket.items():
        assert table[bucket].item() == pytest.approx(rate, abs=0.01)
    _, crossed = printed(tmp_path, "Figure 4: hit rate of homes by household income bucket ×")
    for bucket, region, rate in (
        homes.group_by("bucket", "region").agg(pl.col("rate").mean()).rows()
    ):
        assert crossed[f"{bucket} × {region}"].item() == pytest.approx(100 * rate, abs=0.01)
    _, counts = printed(tmp_path, "Table 5")
    assert counts.rows() == [
        ("low", 20, 20, 40), ("medium", 40, 40, 80), ("total", 60, 60, 120)
    ]  # fmt: skip
    found = pl.read_parquet(tmp_path / "run" / "disparities.parquet").filter(kind="difference")
    assert found.filter(attribute="income_bucket")["p_adjusted"].min() < 0.01
    assert found.filter(attribute="region")["p_adjusted"].min() > 0.05


def test_neighbours_of_the_same_gender(tmp_path, monkeypatch, capsys):
    """Queries of Casual Conversations, a database of UTKFace; a direction holds the gender."""
    rng = np.random.default_rng(5)
    people = conversations(tmp_path, rng, n=120)
    names = [f"{20 + k % 40}_{k % 2}_{k % 4}_2017010912{k:05}.jpg" for k in range(240)]
    (tmp_path / "names.txt").write_text("\n".join(names) + "\n")

    def vectors(signs, noise):
        plain = rng.normal(0, noise, (len(signs), 6))
        plain[:, 0] += signs
        return pl.Series(plain.tolist())

    genders = people["gender"].replace_strict({"Male": 1, "Female": -1, "Other": 0})
    pl.DataFrame(
        {"instance_id": people["id"], "embedding": vectors(genders.to_numpy(), 0.6)}
    ).write_parquet(tmp_path / "queries.parquet")
    of_names = np.array([1 if name.split("_")[1] == "0" else -1 for name in names])
    pl.DataFrame({"instance_id": names, "embedding": vectors(of_names, 0.6)}).write_parquet(
        tmp_path / "entries.parquet"
    )
    ran = isolux(
        monkeypatch, capsys, "audit", f"casual_conversations:{tmp_path}", "--protocol",
        "fairness_indicators:same_attribute", "--predictions", tmp_path / "queries.parquet",
        "--database", f"utkface:{tmp_path / 'names.txt'}", "--database-predictions",
        tmp_path / "entries.parquet", "--out", tmp_path / "run", *FEW,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    _, table = printed(tmp_path, "Figure 6: precision at K by self-reported gender, percent")
    assert table["K"].to_list() == [1, 5, 10, 50]
    assert table["Female"].min() > 75
    assert table["Male"].min() > 75
    assert table["Other"].null_count() == 4  # the database has none of them
    scores = pl.read_parquet(tmp_path / "run" / "scores.parquet")
    others = people.filter(gender="Other")["id"]
    reasons = scores.filter(pl.col("unit_id").is_in(others.implode()))["reason"].unique().to_list()
    assert reasons == ["no entry to compare with has its value"]

"""What the fuzzer damages: every reader, with what writes it a whole sample.

Datasets and formats of predictions come from the registry; what else a user may
give is listed here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from isolux.api.audit import audit
from isolux.api.audit.injected_effects import read_injected_effects
from isolux.api.audit.inputs import read_settings_file
from isolux.api.card import card
from isolux.api.crop.crop_store import CROP_RECORD, CROP_TABLE, read_crops
from isolux.api.describe.balance import read_target
from isolux.api.train_probe.features import read_features
from isolux.api.view import view
from isolux.cards import read_facts
from isolux.core.spec import parse_spec
from isolux.datasets import load
from isolux.datasets._files import Inputs
from isolux.datasets._image_sizes import read_sizes_from_table_or_folder
from isolux.datasets.bdd100k.districts import read_districts_geojson
from isolux.engine.store import ShardStore
from isolux.io import run_directory
from isolux.io.consent import append_consent, read_ledger
from isolux.io.images import read_image
from isolux.io.settings_files import read_label_map_file
from isolux.models._classes import read_class_names
from isolux.models._prompts import read_prompts
from isolux.models.onnx import load as load_model
from isolux.people.attribute_join import join_attributes
from isolux.people.population import read_population
from isolux.people.withdrawal_lists import read_withdrawn_list
from isolux.policy.parsing import read_policy
from isolux.predictions import read_predictions, read_scores
from isolux.stats.confusion import read_confusion_matrix
from isolux.tasks import score
from isolux.tasks._word_lists.lists import read_word_list
from isolux.tasks.caption_gender.objects import read_object_words
from isolux.tasks.label_association.label_confidence import read_taxonomy
from tests._sheets import frame_rows, write_ods, write_xlsx
from tests.contracts._plugins import PLUGINS, Plugin
from tests.contracts._samples import answers_file, dataset_file, in_a_gallery, people
from tests.models._networks import mean_colours

__all__ = ["OTHERS", "Reader", "reader", "readers"]

Reader = tuple[Callable[[Path], Path], Callable[[Path], object]]


def _run(folder: Path) -> Path:
    who = pl.DataFrame({"unit_id": [f"p{i}" for i in range(40)], "light": ["day", "dusk"] * 20})
    scores = who.select("unit_id", value=pl.Series([1.0, 0.0, 1.0, 1.0] * 10))
    return run_directory.save_run(
        audit(scores, who, by="light", replicates=100).run, folder / "run"
    )


def _text(name: str, text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_text(text)
        return folder / name

    return write


_PEOPLE = pl.DataFrame(
    {"id": [f"p{i}" for i in range(40)], "light": ["day", "dusk"] * 20, "age": [*range(20, 60)]}
)


def _table(ending: str) -> Reader:
    def write(folder: Path) -> Path:
        path = folder / f"people.{ending}"
        if ending == "xlsx":
            return write_xlsx(path, {"people": frame_rows(_PEOPLE)})
        if ending == "ods":
            return write_ods(path, {"people": frame_rows(_PEOPLE)})
        {
            "parquet": _PEOPLE.write_parquet,
            "pq": partial(_PEOPLE.write_parquet, compression="gzip"),
            "arrow": _PEOPLE.write_ipc,
            "feather": partial(_PEOPLE.write_ipc, compression="zstd"),
            "ipc": partial(_PEOPLE.write_ipc_stream, compression="lz4"),
        }.get(ending, _PEOPLE.write_ndjson)(path)
        return path

    return write, lambda path: load("table", path)


def _answers(folder: Path) -> Path:
    store = ShardStore(folder / "net")
    with store.lock():
        store.write_record({"state": "finished", "shards": 1})
    for name in ("predictions", "looks"):
        _PEOPLE.write_parquet(folder / "net" / f"{name}.parquet")
    return folder / "net"


def _network(folder: Path) -> Path:
    weights, offsets = [[1, 0], [0, 1], [1, 1]], [0, 0.1]
    return mean_colours(
        folder / "tiny.onnx", weights, offsets, answers="labels", labels=["day", "night"]
    )


def _loaded(path: Path) -> object:
    return load_model(str(path))


_ENDINGS = ("xlsx", "ods", "parquet", "pq", "jsonl", "arrow", "feather", "ipc")
_POLICY = "policy: 1\nrules:\n- {metric: accuracy, attribute: light, within: 5 points}\n"
_PLANTED = {
    "tasks": {"classification": {"metric": "accuracy", "threshold": None}},
    "models": {"m": {"groups": [{"attribute": "tone", "group": "A", "values": ["A"], "value": 0.9,
                                 "in_data": None}], "widest": []}},
}  # fmt: skip


def _ledger(folder: Path) -> Path:
    append_consent(folder / "consent.jsonl", "grant", "subject", ["s1", "s2"], ["evaluation"])
    append_consent(folder / "consent.jsonl", "revoke", "subject", ["s2"], ["evaluation"])
    return folder / "consent.jsonl"


def _lists(folder: Path) -> Path:
    """Write the candidates of each search, as a search engine gives them."""
    found = in_a_gallery()
    role = dict(found.values_of("role").select("unit_id", "value").iter_rows())
    enrolled = [one for one, at in role.items() if at == "gallery"]
    rows = [(one, other, 1 - k / 10) for one, at in role.items() if at != "gallery"
            for k, other in enumerate(enrolled[:3])]  # fmt: skip
    listed = pl.DataFrame(rows, schema=["probe", "candidate", "score"], orient="row")
    listed.write_csv(folder / "lists.csv")
    return folder / "lists.csv"


def _searched(path: Path) -> object:
    asked = {"enrolled": "role=gallery", "threshold": 0.5}
    return score("identification", in_a_gallery(), read_predictions(path), **asked)


def _crops(folder: Path) -> Path:
    (folder / "crops").mkdir()
    (folder / "crops" / CROP_RECORD).write_text(json.dumps({"state": "finished", "data": {}}))
    (folder / "crops" / CROP_TABLE).write_text(
        "id,image_id,subject_id,file,width,height,sha256,reason\n"
        "p1,i1,,p1.png,64,64,0f,\np2,i2,s2,,,,,no box\n"
    )
    return folder / "crops"


def _features(folder: Path) -> Path:
    vectors = [[float(k), 1.0, 2.0] for k in range(40)]
    table = _PEOPLE.select(model=pl.lit("m"), instance_id="id").with_columns(
        embedding=pl.Series(vectors)
    )
    table.write_parquet(folder / "features.parquet")
    return folder / "features.parquet"


def _picture(ending: str) -> Reader:
    def write(folder: Path) -> Path:
        pixels = (np.indices((24, 32)).sum(axis=0) * 4).astype(np.uint8)
        Image.fromarray(np.stack([pixels] * 3, axis=2)).save(folder / f"photo.{ending}")
        return folder / f"photo.{ending}"

    return write, read_image


def _viewed(path: Path) -> object:
    return view(path, path.parent / "page.html", people=True)


_DISTRICTS = {
    "type": "FeatureCollection",
    "features": [{"type": "Feature", "properties": {"postalCode": "n"}, "geometry": {
        "type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}}],
}  # fmt: skip
_WORDS = """title: two groups
source: a test
groups:
  women: {words: [she, her], values: [woman]}
  men: {words: [he, him], values: [man]}
neutral: [person]
"""
_FACTS = """facts: 1
contact: {says: a@b.org, source: the website}
scenarios:
- {attribute: light, group: dusk, harm: people are missed}
"""
_OBJECTS = pl.DataFrame({"objects": [["ball"], ["cake"]]})
_IMAGES = pl.Series(["i1", "i2"])
_OF_WHOM = "true,labelled,count\nA,A,9\nA,B,1\nB,A,2\nB,B,8\n"

LISTS: dict[str, Reader] = {
    "consent ledger": (_ledger, read_ledger),
    "facts of a card": (_text("facts.yaml", _FACTS), read_facts),
    "prompts": (_text("prompts.yaml", "nurse: a photo\nchef: [a chef, a cook]\n"), read_prompts),
    "names of classes": (_text("names.txt", "nurse\nchef\n"), read_class_names),
    "names of classes json": (
        _text("config.json", json.dumps({"id2label": {"0": "nurse", "1": "chef"}})),
        read_class_names,
    ),
    "label map": (_text("map.yaml", "nurse: [rn, sister]\ncook: chef\n"), read_label_map_file),
    "label map csv": (_text("map.csv", "label,class\nrn,nurse\ncook,chef\n"), read_label_map_file),
    "words": (_text("words.yaml", _WORDS), read_word_list),
    "words of objects": (
        _text("objects.yaml", "ball: [ball, balls]\ncake: cake\n"),
        lambda path: read_object_words(str(path), _OBJECTS),
    ),
    "taxonomy": (
        _text("kinds.csv", "label,type\ndog,non_human\nface,human\n"),
        lambda path: read_taxonomy(str(path), "photos"),
    ),
    "composition": (
        _text("target.csv", "attribute,value,share\nsex,f,51\nsex,m,49\n"),
        read_target,
    ),
    "population": (
        _text("census.csv", "tone,sex,share\n1,f,.25\n1,m,.25\n2,f,.25\n2,m,.25\n"),
        lambda path: read_population([str(path)]),
    ),
    "confusions": (
        _text("confusions.csv", _OF_WHOM),
        lambda path: read_confusion_matrix(str(path), None, None, alternative="without"),
    ),
    "districts": (
        _text("districts.json", json.dumps(_DISTRICTS)),
        read_districts_geojson,
    ),
    "sizes": (
        _text("sizes.csv", "image_id,width,height\ni1,64,48\ni2,64,48\n"),
        lambda path: read_sizes_from_table_or_folder(path, _IMAGES, Inputs()),
    ),
    "attributes": (
        _text("light.csv", "instance_id,light\n" + "".join(f"p{i:02},day\n" for i in range(40))),
        lambda path: join_attributes(people(), path),
    ),
    "scores": (
        _text("scores.csv", "id,score\n" + "".join(f"p{i},0.{i:02}\n" for i in range(40))),
        read_scores,
    ),
    "lists of candidates": (_lists, _searched),
    "crops": (_crops, read_crops),
    "features": (_features, read_features),
    **{f"photo {ending}": _picture(ending) for ending in ("jpg", "png")},
    "view of a run": (_run, _viewed),
    "card of a run": (_run, lambda path: card(path, kind="model_card")),
}
OTHERS: dict[str, Reader] = LISTS | {
    "run": (_run, run_directory.load_run),
    "withdrawn": (_text("gone.csv", "subject_id\ns1\ns2\n"), read_withdrawn_list),
    "withdrawn text": (_text("gone.txt", "# since May\ns1\ns2\n"), read_withdrawn_list),
    "settings": (
        _text("audit.yaml", "data: table:a.csv\nby: [race]\nstatistics: {level: 0.9}\n"),
        lambda path: parse_spec(read_settings_file(path)),
    ),
    "policy": (_text("policy.yaml", _POLICY), read_policy),
    "answers of a model": (_answers, lambda path: ShardStore(path).read_all()),
    **{f"table {ending}": _table(ending) for ending in _ENDINGS},
    **(
        {"network": (_network, lambda path: load_model(str(path)))}
        if find_spec("onnxruntime")
        else {}
    ),
    "injected": (
        _text("injected.json", json.dumps(_PLANTED)),
        lambda path: read_injected_effects(path, task="classification", by=["tone"], model=None),
    ),
}


def readers() -> list[str]:
    """Name every reader."""
    plugins = [str(p) for p in PLUGINS if p.package in ("datasets", "predictions")]
    return [*plugins, *(f"others/{name}" for name in OTHERS)]


def reader(name: str) -> Reader:
    """Give what writes a whole sample, and what reads it."""
    room, _, own = name.partition("/")
    if room == "others":
        return OTHERS[own]
    plugin = Plugin(room, own)
    if room == "datasets":
        return (lambda folder: dataset_file(plugin, folder)), (lambda path: load(own, path))
    return (lambda folder: answers_file(plugin, folder)), plugin.module.read

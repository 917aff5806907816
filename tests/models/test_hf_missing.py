"""Weights that a transformers checkpoint lacks, by a stand-in for the library: no PyTorch here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isolux.core.errors import FileError
from isolux.models.hf.checkpoint import (
    _check_shards_in_folder,
    _format_contradicting_names_notes,
    _format_unused_weights_notes,
    _hash_checkpoint_files,
    _remove_untrained_pooler,
)


class Pooler:
    def named_parameters(self):
        return [("dense.weight", None), ("dense.bias", None)]


class Model:
    pooler = Pooler()


@pytest.mark.parametrize(
    ("missing", "gone"),
    [
        ({"pooler.dense.weight", "pooler.dense.bias", "norm.bias"},
         {"pooler.dense.weight", "pooler.dense.bias"}),
        ({"pooler.dense.weight"}, set()),
        (set(), set()),
    ],
)  # fmt: skip
def test_a_pooler_goes_where_the_checkpoint_has_nothing_of_it(missing, gone):
    model = Model()
    assert _remove_untrained_pooler(model, missing) == gone
    assert (model.pooler is None) == bool(gone)


def test_weights_without_a_part_are_told():
    assert _format_unused_weights_notes([]) == ()
    assert _format_unused_weights_notes(["a", "b"]) == (
        "2 weights of the checkpoint have no part in this: a, b.",
    )


def test_names_that_are_numbered_in_two_ways_are_noted():
    names = {"0": "chef", "1": "nurse", "2": "chef"}  # several classes of one name are no fault
    for agreeing in ({}, {"chef": 2, "nurse": 1}, {"nurse": "1", "other": 7}):
        noted = _format_contradicting_names_notes({"id2label": names, "label2id": agreeing})
        assert noted == ()
    swapped = {"id2label": names, "label2id": {"chef": 1, "nurse": 0}}
    (noted,) = _format_contradicting_names_notes(swapped)
    assert noted.endswith(": 'chef' is 1 and not 0 or 2, 'nurse' is 0 and not 1.")


FILES = (
    "config.json", "model-00001-of-00002.safetensors", "model.safetensors.index.json",
    "preprocessor_config.json", "tokenizer.json", "vocab.txt", "spiece.model", "merges.txt",
    "chat_template.jinja", "additional_chat_templates/tool.jinja", "shards/a.safetensors",
    "words.tiktoken",
)  # fmt: skip


def test_every_file_that_the_library_may_open_is_hashed(tmp_path):
    for name in (*FILES, "README.md", ".cache/lock", "tf_model.h5"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    before = _hash_checkpoint_files(tmp_path)
    assert set(before) == set(FILES)
    assert _hash_checkpoint_files(tmp_path) == before
    for name in FILES:
        (tmp_path / name).write_text("changed")
        assert _hash_checkpoint_files(tmp_path) != before, name
        (tmp_path / name).write_text(name)


@pytest.mark.parametrize("name", ["../a.safetensors", "/tmp/a.safetensors"])  # noqa: S108
def test_a_shard_outside_the_folder_is_refused(tmp_path, name):
    index = Path(tmp_path / "model.safetensors.index.json")
    index.write_text(json.dumps({"weight_map": {"w": "shards/a.safetensors"}}))
    _check_shards_in_folder(tmp_path)
    index.write_text(json.dumps({"weight_map": {"w": name}}))
    with pytest.raises(FileError, match="a path leads out of its folder"):
        _check_shards_in_folder(tmp_path)

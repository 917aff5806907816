"""FairFace's network: its heads, its file, and torchvision's ResNet-34 with the same weights."""

from __future__ import annotations

import json

import numpy as np
import pytest

from isolux.core.errors import FileError, SpecError
from isolux.models import open_model
from isolux.models.fairface import (
    FAIRFACE_HEADS,
    Heads,
    build_resnet34,
    compute_head_logits,
    heads_to_metadata,
    parse_heads_or_default,
)
from tests.models._vision_ops import with_torchvision


def test_heads_lie_side_by_side_as_in_the_authors_weights():
    # The authors' released code: race [:7], gender [7:9], age [9:18].
    heads = Heads(FAIRFACE_HEADS)
    assert heads.outputs == 18
    assert heads.slices() == {"race": slice(0, 7), "gender": slice(7, 9), "age": slice(9, 18)}
    assert heads.classes["race"][:3] == ("White", "Black", "Latino_Hispanic")


def test_a_file_says_what_its_outputs_are_or_has_fairfaces_eighteen():
    own = Heads({"light": ("day", "night"), "sky": ("clear", "rain", "snow")}, 64)
    read = parse_heads_or_default(heads_to_metadata(own, epoch=3), 5, "net")
    assert dict(read.classes) == dict(own.classes)
    assert read.input_size_px == 64
    assert dict(parse_heads_or_default(None, 18, "net").classes) == FAIRFACE_HEADS
    with pytest.raises(SpecError, match="nothing says what the network's outputs are"):
        parse_heads_or_default(None, 7, "net")
    with pytest.raises(SpecError, match="heads do not fit"):
        parse_heads_or_default(heads_to_metadata(own), 6, "net")


@pytest.mark.parametrize(
    "text", ["no JSON", "[]", '{"heads": {"a": "day"}, "side": 3}', '{"heads": {"a": ["b"]}}']
)
def test_metadata_that_cannot_be_read_are_refused(text):
    with pytest.raises(FileError, match="does not say what its outputs are"):
        parse_heads_or_default({"isolux": text}, 1, "net")


def torch_here():
    pytest.importorskip("safetensors", reason="SAFETENSORS IS ABSENT: no weights were read")
    return pytest.importorskip("torch", reason="PYTORCH IS ABSENT: FairFace's network was NOT run")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Weights in the form of the authors': 18 outputs, and nothing that says which."""
    torch = torch_here()
    from safetensors.torch import save_file

    path = tmp_path_factory.mktemp("net") / "res34.safetensors"
    save_file(build_resnet34(torch, 18, seed=1).state_dict(), path)
    return path


@pytest.mark.filterwarnings("ignore")
def test_it_is_torchvisions_resnet34():
    torch = torch_here()
    if not with_torchvision():
        pytest.skip("TORCHVISION IS ABSENT: the network was NOT held to it")
    import torchvision

    torch.manual_seed(3)
    theirs = torchvision.models.resnet34(num_classes=18).eval()
    ours = build_resnet34(torch, 18).eval()
    ours.load_state_dict(theirs.state_dict())
    shown = torch.randn(2, 3, 64, 48)
    with torch.no_grad():
        assert torch.allclose(theirs(shown), compute_head_logits(torch, ours, shown), atol=1e-5)


def test_each_question_is_answered_by_its_own_head(weights):
    rng = np.random.default_rng(0)
    given = [rng.integers(0, 256, (60, 50, 3)).astype(np.uint8) for _ in range(2)]
    for name, classes in FAIRFACE_HEADS.items():
        model = open_model(f"fairface:{weights}", [f"answers={name}"])
        found = model.predictor([model.predictor.prepare(one) for one in given])
        assert set(found["label"]) == set(classes)
        assert found.height == 2 * len(classes)
        assert np.isclose(found["score"].sum(), 2.0)
        assert any("not to be acted on" in note for note in model.notes)
    one = open_model(f"fairface:{weights}", ["answers=race", "top=1"])
    assert one.predictor([one.predictor.prepare(given[0])]).height == 1
    assert one.key != open_model(f"fairface:{weights}", ["answers=gender", "top=1"]).key
    vectors = open_model(f"fairface:{weights}", ["answers=embeddings"])
    assert vectors.predicts == "embeddings"
    assert len(vectors.predictor([vectors.predictor.prepare(given[0])])["embedding"][0]) == 512


def test_what_is_no_such_network_is_refused(weights, tmp_path):
    torch = torch_here()
    from safetensors.torch import save_file

    with pytest.raises(SpecError, match="nothing says what the network should answer"):
        open_model(f"fairface:{weights}")
    with pytest.raises(SpecError, match="no head 'hair'"):
        open_model(f"fairface:{weights}", ["answers=hair"])
    with pytest.raises(FileError, match="holds no trained network"):
        open_model(f"fairface:{tmp_path}", ["answers=race"])
    save_file({"head.weight": torch.zeros(3, 4)}, tmp_path / "other.safetensors")
    with pytest.raises(SpecError, match="weights of another network"):
        open_model(f"fairface:{tmp_path / 'other.safetensors'}", ["answers=race"])
    state = {"fc.weight": torch.zeros(18, 512), "fc.bias": torch.zeros(18)}
    save_file(state, tmp_path / "small.safetensors")  # another number of blocks
    with pytest.raises(SpecError, match="weights of another network"):
        open_model(f"fairface:{tmp_path / 'small.safetensors'}", ["answers=race"])
    (tmp_path / "res34.pt").write_bytes(b"pickled")
    with pytest.raises(FileError, match="may be a pickle"):
        open_model(f"fairface:{tmp_path / 'res34.pt'}", ["answers=race"])


def test_one_head_alone_is_asked_without_a_word(tmp_path):
    torch = torch_here()
    from safetensors.torch import save_file

    heads = Heads({"light": ("day", "night")}, 32)
    said = heads_to_metadata(heads)
    assert json.loads(said["isolux"])["side"] == 32
    save_file(build_resnet34(torch, 2).state_dict(), tmp_path / "n.safetensors", metadata=said)
    model = open_model(f"fairface:{tmp_path / 'n.safetensors'}")
    assert model.predictor.names == ("day", "night")
    assert model.predictor.prepare(np.zeros((9, 7, 3), np.uint8)).values.shape == (3, 32, 32)

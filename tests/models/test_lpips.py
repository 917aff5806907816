"""LPIPS against NumPy, against the authors' package, and what is said where it cannot run.

The network's own tests need PyTorch (``isolux[lpips]``) and are skipped without it; the weights are
random, for a distance's arithmetic does not depend on what the network has learned.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types

import numpy as np
import pytest

from isolux.core.errors import FileError, SpecError
from isolux.models import lpips as adapter
from isolux.models.lpips import import_torch, load, read_torch_state_dict

CONVOLUTIONS = {
    0: (3, 64), 2: (64, 64), 5: (64, 128), 7: (128, 128), 10: (128, 256), 12: (256, 256),
    14: (256, 256), 17: (256, 512), 19: (512, 512), 21: (512, 512), 24: (512, 512),
    26: (512, 512), 28: (512, 512),
}  # fmt: skip
ENDS, POOLS = (2, 7, 14, 21, 28), (5, 10, 17, 24)


def test_without_pytorch_it_says_what_to_install(monkeypatch, tmp_path):
    def absent(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    (tmp_path / "vgg16.pth").touch()
    monkeypatch.setattr("isolux.models.lpips.import_module", absent)
    with pytest.raises(SpecError, match=r"PyTorch, which is not installed(.|\n)*'isolux\[lpips\]'"):
        load(str(tmp_path / "vgg16.pth"))


def test_a_pytorch_whose_reader_of_weights_can_run_code_is_refused(tmp_path):
    old = types.SimpleNamespace(__version__="2.5.1+cpu", load=pytest.fail)
    with pytest.raises(SpecError, match=r"CVE-2025-32434(.|\n)*2\.6 or newer(.|\n)*2\.5\.1"):
        read_torch_state_dict(old, tmp_path / "vgg16.pth")


def test_a_broken_pytorch_is_said_to_be_broken(monkeypatch):
    def broken(_):
        raise OSError("libcudart.so: cannot open shared object file")

    monkeypatch.setattr("isolux.models.lpips.import_module", broken)
    with pytest.raises(SpecError, match=r"cannot be imported(.|\n)*libcudart"):
        import_torch("LPIPS", "lpips")


def test_weights_that_are_not_there_are_said_before_pytorch_is_imported(monkeypatch):
    monkeypatch.setattr("isolux.models.lpips.import_module", pytest.fail)
    with pytest.raises(FileError, match="no such file of weights"):
        load("nowhere.pth")


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SpecError, match=r"the package lpips(.|\n)*'isolux\[lpips\]'"):
        adapter._find_packaged_weights()


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="isolux[lpips] is not installed")


@pytest.fixture(scope="module")
def weights(torch, tmp_path_factory):
    """Random weights of VGG-16 and of the linear layers, as files and as arrays."""
    rng = np.random.default_rng(0)
    state = {}
    for number, (before, after) in CONVOLUTIONS.items():
        spread = np.sqrt(2 / (9 * before))
        state[f"features.{number}.weight"] = rng.normal(0, spread, (after, before, 3, 3))
        state[f"features.{number}.bias"] = rng.normal(0, 0.1, after)
    heads = {
        f"lin{k}.model.1.weight": rng.random((1, CONVOLUTIONS[end][1], 1, 1))
        for k, end in enumerate(ENDS)
    }
    folder = tmp_path_factory.mktemp("weights")
    for name, arrays in (("vgg16.pth", state), ("heads.pth", heads)):
        tensors = {k: torch.tensor(v, dtype=torch.float32) for k, v in arrays.items()}
        torch.save(tensors, folder / name)
    return folder, state, heads


def noise(n, height, width, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, height, width, 3), dtype=np.uint8)


def convolved(x, weight, bias):
    """3 × 3 convolution with a border of zeros, as nine shifted products: ``[c, h, w]``."""
    height, width = x.shape[1:]
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    out = np.tile(bias[:, None, None], (1, height, width))
    for i in range(3):
        for j in range(3):
            shifted = padded[:, i : i + height, j : j + width]
            out += np.tensordot(weight[:, :, i, j], shifted, axes=1)
    return out


def slow_lpips(first, second, state, heads):
    """Equation 1 of Zhang et al. (2018) in double precision, one pair."""
    total = 0.0
    maps = []
    for picture in (first, second):
        x = picture.transpose(2, 0, 1) / 255.0
        mean, sd = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
        x = (x - mean[:, None, None]) / sd[:, None, None]  # ImageNet's, which LPIPS' scaling is
        found = []
        for number in CONVOLUTIONS:
            if number in POOLS:
                c, h, w = x.shape
                x = x[:, : h // 2 * 2, : w // 2 * 2].reshape(c, h // 2, 2, w // 2, 2).max((2, 4))
            x = convolved(x, state[f"features.{number}.weight"], state[f"features.{number}.bias"])
            x = np.maximum(x, 0)
            if number in ENDS:
                found.append(x / (np.sqrt((x**2).sum(axis=0)) + 1e-10))
        maps.append(found)
    for k in range(5):
        weight = heads[f"lin{k}.model.1.weight"][0, :, 0, 0]
        total += np.tensordot(weight, (maps[0][k] - maps[1][k]) ** 2, axes=1).mean()
    return total


def test_it_agrees_with_numpy(weights):
    folder, state, heads = weights
    network = load(str(folder / "vgg16.pth"), linear=folder / "heads.pth")
    first, second = noise(3, 19, 33, 1), noise(3, 19, 33, 2)
    expected = [slow_lpips(a, b, state, heads) for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(network(first, second), expected, rtol=1e-4)
    np.testing.assert_allclose(network(first, first), 0.0, atol=1e-12)
    np.testing.assert_allclose(network(second, first), network(first, second), rtol=1e-6)
    assert network(first[:0], second[:0]).tolist() == []


def test_batches_do_not_matter(weights):
    folder, _, _ = weights
    network = load(str(folder / "vgg16.pth"), linear=folder / "heads.pth")
    first, second = noise(11, 16, 16, 3), noise(11, 16, 16, 4)
    alone = [network(first[i : i + 1], second[i : i + 1])[0] for i in range(11)]
    np.testing.assert_allclose(network(first, second), alone, rtol=1e-5)


def test_it_agrees_with_the_authors_package(torch, weights, monkeypatch):
    """The package itself, on our weights and its own linear layers; torchvision is stood in for."""
    if importlib.util.find_spec("lpips") is None:
        pytest.skip("isolux[lpips] is not installed")
    folder, _, _ = weights
    state = torch.load(folder / "vgg16.pth", weights_only=True)

    def vgg16(**_):
        layers = []
        for number, (before, after) in CONVOLUTIONS.items():
            layers += [torch.nn.MaxPool2d(2)] if number in POOLS else []
            assert len(layers) == number
            layers += [torch.nn.Conv2d(before, after, 3, padding=1), torch.nn.ReLU()]
        network = torch.nn.Module()
        network.features = torch.nn.Sequential(*layers)
        network.load_state_dict(state)
        return network

    torchvision, models = types.ModuleType("torchvision"), types.ModuleType("torchvision.models")
    models.vgg16 = vgg16
    torchvision.models = models
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    authors = importlib.import_module("lpips").LPIPS(net="vgg", pnet_rand=True, verbose=False)
    first, second = noise(4, 64, 48, 5), noise(4, 64, 48, 6)
    second[3] = first[3] // 2
    with torch.no_grad():
        stacks = [
            torch.tensor(p.transpose(0, 3, 1, 2) / 127.5 - 1, dtype=torch.float32)
            for p in (first, second)
        ]
        expected = authors(*stacks).flatten().numpy()
    found = load(str(folder / "vgg16.pth"))(first, second)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert (found > 0).all()


def test_the_note_says_whether_the_weights_are_torchvisions(weights, monkeypatch):
    folder, _, _ = weights
    path = folder / "vgg16.pth"
    network = load(str(path), linear=folder / "heads.pth")
    assert "weights of VGG-16 from vgg16.pth" in network.note
    assert "cannot be held against published ones" in network.note
    monkeypatch.setattr(adapter, "sha256_file", lambda _: "397923af" + 56 * "0")
    assert "torchvision's weights" in load(str(path), linear=folder / "heads.pth").note


def test_the_cache_of_pytorch_is_looked_into_and_nothing_is_fetched(torch, weights, monkeypatch):
    folder, _, _ = weights
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(folder / "hub"))
    with pytest.raises(FileError, match=r"not on this machine(.|\n)*lpips_weights=FILE"):
        load(linear=folder / "heads.pth")
    cached = folder / "hub" / "checkpoints" / "vgg16-397923af.pth"
    cached.parent.mkdir(parents=True)
    cached.write_bytes((folder / "vgg16.pth").read_bytes())
    first = noise(1, 16, 16, 7)
    assert load(linear=folder / "heads.pth")(first, first)[0] == pytest.approx(0.0)


def test_weights_that_cannot_be_used(torch, weights, tmp_path):
    folder, state, _ = weights
    path = tmp_path / "w.pth"
    path.write_bytes((folder / "vgg16.pth").read_bytes()[:1000])
    with pytest.raises(FileError, match=r"cannot be read(.|\n)*w\.pth"):
        load(str(path), linear=folder / "heads.pth")
    torch.save([1, 2], path)
    with pytest.raises(FileError, match=r"holds no weights(.|\n)*list"):
        load(str(path), linear=folder / "heads.pth")
    with pytest.raises(FileError, match=r"another network(.|\n)*features\.0\.weight(.|\n)*none"):
        load(str(folder / "heads.pth"), linear=folder / "heads.pth")
    torch.save({k: torch.zeros(2) for k in state}, path)
    with pytest.raises(FileError, match=r"another network(.|\n)*\[64, 3, 3, 3\](.|\n)*\[2\]"):
        load(str(path), linear=folder / "heads.pth")


class Bomb:
    """What a pickle of code would run."""

    def __reduce__(self):
        return print, ("weights ran code",)


def test_a_file_of_weights_runs_no_code(torch, weights, tmp_path, capsys):
    folder, _, _ = weights
    torch.save({"features.0.weight": Bomb()}, tmp_path / "bomb.pth")
    with pytest.raises(FileError, match="this file of weights cannot be read"):
        load(str(tmp_path / "bomb.pth"), linear=folder / "heads.pth")
    assert "ran code" not in capsys.readouterr().out


def test_a_device_that_is_not_there(torch, weights):
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    folder, _, _ = weights
    with pytest.raises(SpecError, match=r"no such device(.|\n)*cuda:99"):
        load(str(folder / "vgg16.pth"), linear=folder / "heads.pth", device="cuda:99")

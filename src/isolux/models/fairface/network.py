"""ResNet-34 in plain PyTorch, its parts named as torchvision names them.

He et al. (2016), Table 1: a 7 x 7 convolution, pooling, four stages of 3, 4, 6 and 3 blocks of two
3 x 3 convolutions, and the mean over the picture. torchvision is not needed for it, and a file of
weights of torchvision's ``resnet34`` fits: FairFace's authors released theirs in that form.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.models._torch import fit_weights, read_weights

FEATURES = 512
"""Numbers that the network makes of a picture before its last layer."""

_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # channels, blocks, first stride


def resnet34(torch: Any, outputs: int, *, seed: int = 0) -> Any:
    """Make the network with random weights, as torchvision draws them."""
    nn = torch.nn
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = nn.Module()
        net.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        net.bn1 = nn.BatchNorm2d(64)
        before = 64
        for k, (channels, blocks, stride) in enumerate(_STAGES):
            made = [_block(nn, before, channels, stride)]
            made += [_block(nn, channels, channels, 1) for _ in range(blocks - 1)]
            setattr(net, f"layer{k + 1}", nn.ModuleList(made))
            before = channels
        net.fc = nn.Linear(FEATURES, outputs)
        for part in net.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
    return net


def _block(nn: Any, before: int, channels: int, stride: int) -> Any:
    block = nn.Module()
    block.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
    block.bn1 = nn.BatchNorm2d(channels)
    block.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
    block.bn2 = nn.BatchNorm2d(channels)
    if stride != 1 or before != channels:
        convolution = nn.Conv2d(before, channels, 1, stride, bias=False)
        block.downsample = nn.Sequential(convolution, nn.BatchNorm2d(channels))
    return block


def features(torch: Any, net: Any, pictures: Any) -> Any:
    """Give ``[n, 512]`` of pictures ``[n, 3, height, width]`` of 32 pixels or more a side."""
    plain = torch.nn.functional
    x = plain.relu(net.bn1(net.conv1(pictures)))
    x = plain.max_pool2d(x, 3, 2, 1)
    for stage in (net.layer1, net.layer2, net.layer3, net.layer4):
        for block in stage:
            inner = plain.relu(block.bn1(block.conv1(x)))
            beside = block.downsample(x) if hasattr(block, "downsample") else x
            x = plain.relu(block.bn2(block.conv2(inner)) + beside)
    return x.mean(dim=(2, 3))


def logits(torch: Any, net: Any, pictures: Any) -> Any:
    """Give ``[n, outputs]`` of pictures, heads side by side."""
    return net.fc(features(torch, net, pictures))


def start_from(net: Any, path: str | Path) -> str:
    """Put a file's weights into a network, all but a last layer of other classes; give their hash.

    Raises
    ------
    FileError
        No such file, or a pickle.
    SpecError
        Weights of another network.
    """
    state, held = read_weights(path)
    own, given = net.state_dict(), dict(state)
    for name in ("fc.weight", "fc.bias"):
        if name in given and given[name].shape != own[name].shape:
            given[name] = own[name]
    fit_weights(net, given, path)
    return held["file"]

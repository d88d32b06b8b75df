#!/usr/bin/env python3
"""Records what PyTorch computes with the networks of src/models: tests/data/models/<name>.json.

Usage: scripts/record_models.py [--output tests/data/models] [--check NAME]

The networks are written here with torch.nn, as torchvision has them, and in benchmarks/gpt2.py. Their weights and the images are numbers that both sides
compute from a formula, in double precision, so that only results are stored: the names and sizes of the state, scores of
training and evaluation, and of every gradient its length and a weighted sum, which the order of its elements decides.
Needs PyTorch.
"""
import argparse
import json
import math
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from gpt2 import Gpt2  # noqa: E402


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride, downsample, groups, base_width):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inplanes, planes, stride, downsample, groups, base_width):
        super().__init__()
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = nn.Conv2d(inplanes, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, planes * 4, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(planes * 4)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(out)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, block, layers, num_classes, groups=1, width_per_group=64):
        super().__init__()
        self.inplanes = 64
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        for i, (planes, count) in enumerate(zip((64, 128, 256, 512), layers)):
            blocks = [self.block(block, planes, 1 if i == 0 or k > 0 else 2, groups, width_per_group) for k in range(count)]
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)

    def block(self, block, planes, stride, groups, width):
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, planes * block.expansion, 1, stride, bias=False), nn.BatchNorm2d(planes * block.expansion)
            )
        inplanes, self.inplanes = self.inplanes, planes * block.expansion
        return block(inplanes, planes, stride, downsample, groups, width)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def spread(count, seed):
    """Numbers in [-1, 1): element i is ((i + 1000003 seed) * 2654435761 mod 2^32) / 2^31 - 1."""
    i = torch.arange(count, dtype=torch.int64) + 1000003 * seed
    # The product of two 32-bit numbers, without overflow: the low half times the factor, and what is left of the high half.
    low, high = i & 0xFFFF, (i >> 16) & 0xFFFF
    product = (low * 2654435761 + ((high * 2654435761) & 0xFFFF) * 65536) & 0xFFFFFFFF
    return product.to(torch.float64) / 2**31 - 1


def fill(net):
    """Entry k of the state dict gets spread(.., k), scaled by what it is."""
    for k, (name, tensor) in enumerate(net.state_dict().items()):
        if not tensor.is_floating_point():
            continue
        values = spread(tensor.numel(), k).reshape(tensor.shape)
        if tensor.dim() == 4:
            values = values * math.sqrt(6 / (tensor.shape[1] * tensor.shape[2] * tensor.shape[3]))
        elif name.endswith("running_var") or (name.endswith("weight") and tensor.dim() == 1):
            values = 1 + 0.25 * values
        else:
            values = 0.125 * values
        tensor.copy_(values)


def sums(tensor):
    flat = tensor.detach().flatten()
    return [flat.norm().item(), (flat * spread(flat.numel(), 1)).sum().item()]


def record(make, with_values):
    full = make(1000)
    result = {
        "torch": torch.__version__.split("+")[0],
        "parameters": sum(p.numel() for p in full.parameters()),
        "state": [[name, list(tensor.shape)] for name, tensor in full.state_dict().items()],
    }
    return result | (values_of(make(10).double()) if with_values else {})


def values_of(net):
    with torch.no_grad():
        fill(net)
    images = spread(4 * 3 * 32 * 32, 9999).reshape(4, 3, 32, 32)
    scores = net(images)
    scores.square().mean().backward()
    result = {
        "training": scores.flatten().tolist(),
        "gradients": {name: sums(p.grad) for name, p in net.named_parameters()},
        "running_mean": sums(net.layer4[0].bn1.running_mean),
        "running_var": sums(net.layer4[0].bn1.running_var),
    }
    net.eval()
    result["evaluation"] = net(images).flatten().tolist()
    return result


def record_gpt2():
    """A small one, without dropout: logits, the loss of the next token, and gradients."""
    with torch.device("meta"):
        full = Gpt2()
    result = {
        "torch": torch.__version__.split("+")[0],
        "parameters": sum(p.numel() for p in full.parameters()),
        "state": [[name, list(tensor.shape)] for name, tensor in full.state_dict().items()],
    }
    net = Gpt2(vocab_size=29, n_positions=12, n_embd=24, n_layer=2, n_head=4, dropout=0).double()
    with torch.no_grad():
        fill(net)
    tokens = torch.arange(2 * 9).mul(7).remainder(29).view(2, 9)
    logits = net(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    return result | {
        "logits": logits.flatten().tolist(),
        "loss": loss.item(),
        "gradients": {name: sums(p.grad) for name, p in net.named_parameters()},
    }


def check(name, ours, recorded):
    """An error unless numbers are close and all else is equal."""
    if isinstance(recorded, dict):
        if ours.keys() != recorded.keys():
            sys.exit(f"{name}: {sorted(ours.keys() ^ recorded.keys())} on one side only")
        for key in recorded:
            check(f"{name}.{key}", ours[key], recorded[key])
    elif isinstance(recorded, list) and recorded and isinstance(recorded[0], float):
        scale = max(map(abs, recorded))
        if len(ours) != len(recorded) or any(abs(a - b) > 1e-9 * scale for a, b in zip(ours, recorded)):
            sys.exit(f"{name} is not what PyTorch computes")
    elif isinstance(recorded, float):
        if abs(ours - recorded) > 1e-9 * abs(recorded):
            sys.exit(f"{name} is {recorded}, but PyTorch computes {ours}")
    elif ours != recorded and not name.endswith(".torch"):
        sys.exit(f"{name} is {recorded}, but PyTorch has {ours}")


# How each is made for a number of classes, and whether its values are recorded, which the others share.
MODELS = {
    "resnet18": (lambda n: ResNet(BasicBlock, (2, 2, 2, 2), n), True),
    "resnet34": (lambda n: ResNet(BasicBlock, (3, 4, 6, 3), n), False),
    "resnet50": (lambda n: ResNet(Bottleneck, (3, 4, 6, 3), n), True),
    "resnext50_32x4d": (lambda n: ResNet(Bottleneck, (3, 4, 6, 3), n, 32, 4), False),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "tests" / "data" / "models")
    parser.add_argument("--check", metavar="NAME", help="compares what is recorded of a model with PyTorch, and writes nothing")
    options = parser.parse_args()
    records = {name: lambda model=model: record(*model) for name, model in MODELS.items()} | {"gpt2": record_gpt2}
    if options.check:
        recorded = json.loads((options.output / f"{options.check}.json").read_text())
        return check(options.check, records[options.check](), recorded)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, make_record in records.items():
        path = options.output / f"{name}.json"
        path.write_text(json.dumps(make_record(), separators=(",", ":")) + "\n")
        print(path.name, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()

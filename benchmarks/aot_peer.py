#!/usr/bin/env python3
"""PyTorch's side of the suite "aot": the same cases and protocol as aot.cc. ./bench starts it."""
import copy
import sys
import time
import warnings

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch import nn
from torch._functorch.aot_autograd import aot_export_module, aot_module_simplified
from torch._functorch.partitioners import default_partition
from torch.nn import functional as F

from gpt2 import Gpt2
from resnet50 import ResNet50

warnings.filterwarnings("ignore")


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = ResNet50()

    def forward(self, x):
        return (self.net(x).sum(),)


class DecoderLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Gpt2(dropout=0)

    def forward(self, tokens, target):
        return (F.cross_entropy(self.net(tokens).flatten(0, 1), target.flatten()),)


def images():
    return (torch.randn(2, 3, 224, 224),)


def tokens():
    return torch.zeros(2, 256, dtype=torch.int64), torch.zeros(2, 256, dtype=torch.int64)


def capture_of(model, examples):
    module, args = model(), examples()

    def run():
        start = time.perf_counter()
        aot_export_module(module, args, trace_joint=True, output_loss_index=0)
        return time.perf_counter() - start

    return run


def joint_of(model, examples):
    """The joint graph that a partitioner gets, with its inputs and the number of its outputs."""
    kept = []

    def keep(joint, inputs, *, num_fwd_outputs, **others):
        kept.append((copy.deepcopy(joint), inputs, num_fwd_outputs))
        return default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **others)

    aot_module_simplified(model(), examples(), fw_compiler=lambda graph, _: graph, partition_fn=keep)(*examples())
    return kept[0]


def cut_of(model, examples):
    joint, inputs, outputs = joint_of(model, examples)

    def run():
        graph = copy.deepcopy(joint)  # it is changed
        start = time.perf_counter()
        min_cut_rematerialization_partition(graph, inputs, num_fwd_outputs=outputs)
        return time.perf_counter() - start

    return run


def saved_bytes(model, examples):
    """Of what the forward computes: parameters, inputs and views of them are there anyway."""
    joint, inputs, outputs = joint_of(model, examples)
    forward, _ = min_cut_rematerialization_partition(joint, inputs, num_fwd_outputs=outputs)
    there = set()
    for node in forward.graph.nodes:
        is_view = node.op == "call_function" and getattr(node.target, "is_view", False)
        if node.op == "placeholder" or (is_view and node.args[0] in there):
            there.add(node)
    total = 0
    for node in forward.graph.output_node().args[0][outputs:]:
        value = node.meta["val"]
        if node not in there and isinstance(value, torch.Tensor):
            total += value.numel() * value.element_size()
    return total


# Times, and what is no time: measured once.
CASES = {
    "joint graph of ResNet-50": (0.01, lambda: capture_of(Loss, images)),
    "joint graph of a GPT-2 decoder": (0.01, lambda: capture_of(DecoderLoss, tokens)),
    "min-cut of ResNet-50": (0.02, lambda: cut_of(Loss, images)),
    "min-cut of a GPT-2 decoder": (0.02, lambda: cut_of(DecoderLoss, tokens)),
    "bytes saved of ResNet-50": (1, lambda: saved_bytes(Loss, images)),
    "bytes saved of a GPT-2 decoder": (1, lambda: saved_bytes(DecoderLoss, tokens)),
}
ready = {}


def answer(line):
    command, _, rest = line.partition(" ")
    if command == "list":
        return "".join(f"{name}\t{goal:g}\n" for name, (goal, _) in CASES.items())
    if command == "threads":
        torch.set_num_threads(int(rest))
        return "ok"
    times, _, name = rest.partition(" ")
    if name not in ready:
        ready.clear()  # models are large
        ready[name] = CASES[name][1]()
    if not callable(ready[name]):
        return f"{ready[name]}"
    return f"{sum(ready[name]() for _ in range(int(times))) / int(times) * 1e9:.0f}"


for line in sys.stdin:
    print(answer(line.strip()), flush=True)

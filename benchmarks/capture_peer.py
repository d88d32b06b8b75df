#!/usr/bin/env python3
"""PyTorch's side of the suite "capture": the same cases and protocol as capture.cc. ./bench starts it."""
import sys
import time
import warnings

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from resnet50 import ResNet50

warnings.filterwarnings("ignore")


def functional(net):
    """The network as a function of its state too, which is how make_fx takes one with fake tensors."""
    state = {**dict(net.named_parameters()), **dict(net.named_buffers())}

    def forward(tensors, x):
        return torch.func.functional_call(net, tensors, (x,))

    return forward, state


def capture_of(mode):
    forward, state = functional(ResNet50())
    x = torch.randn(2, 3, 224, 224)
    return lambda: make_fx(forward, tracing_mode=mode)(state, x)


def joint_of(mode):
    net = ResNet50()
    forward, state = functional(net)
    names = [name for name, _ in net.named_parameters()]

    def joint(tensors, x):
        return torch.autograd.grad(forward(tensors, x).sum(), [tensors[name] for name in names])

    x = torch.randn(2, 3, 224, 224)
    return lambda: make_fx(joint, tracing_mode=mode)(state, x)


def traced():
    net, x = ResNet50().eval(), torch.randn(1, 3, 32, 32)
    return lambda: torch.jit.trace(net, x, check_trace=False)


def run():
    net, x = ResNet50().eval(), torch.randn(1, 3, 32, 32)
    return lambda: net(x)


def symbolic():
    net = ResNet50()
    return lambda: torch.fx.symbolic_trace(net)


CASES = {
    "make_graph of ResNet-50, fake": (0.01, lambda: capture_of("fake")),
    "make_graph of ResNet-50, symbolic": (0.01, lambda: capture_of("symbolic")),
    "ResNet-50 forward and backward, fake": (0.01, lambda: joint_of("fake")),
    "ResNet-50 forward and backward, symbolic": (0.01, lambda: joint_of("symbolic")),
    "symbolic_trace of ResNet-50": (1 / 30, symbolic),
    "trace of ResNet-50 at 32x32, with the run": (0, traced),
    "run of ResNet-50 at 32x32": (0, run),
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
        ready[name] = CASES[name][1]()
    start = time.perf_counter()
    for _ in range(int(times)):
        ready[name]()
    return f"{(time.perf_counter() - start) / int(times) * 1e9:.0f}"


for line in sys.stdin:
    print(answer(line.strip()), flush=True)

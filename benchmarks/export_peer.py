#!/usr/bin/env python3
"""PyTorch's side of the suite "export": the same cases and protocol as export.cc. ./bench starts it."""
import logging
import sys
import time
import warnings

import torch

from gpt2 import Gpt2
from resnet50 import ResNet50

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


def export_of(model, x):
    model.eval()
    batch = torch.export.Dim("batch", min=2, max=64)
    shapes = ({0: batch},)
    torch.export.export(model, (x,), dynamic_shapes=shapes)  # the first one also loads modules of Python
    return lambda: torch.export.export(model, (x,), dynamic_shapes=shapes)


CASES = {
    "export of ResNet-50, any batch": (0.01, lambda: export_of(ResNet50(), torch.randn(2, 3, 224, 224))),
    "export of GPT-2, any batch": (0.01, lambda: export_of(Gpt2(), torch.zeros(2, 64, dtype=torch.int64))),
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

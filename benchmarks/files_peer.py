#!/usr/bin/env python3
"""PyTorch's side of the suite "files": the same cases and protocol as files.cc. ./bench starts it."""
import os
import subprocess
import sys
import time

import torch

FOLDER = "build/bench/files/"
RUN = """
import sys, torch
program = torch.export.load(sys.argv[1])
args, kwargs = program.example_inputs
torch.set_grad_enabled(False)
print(program.module()(*args, **kwargs).flatten()[:4])
"""


def ended(name):
    """The seconds and the bytes at the most of a process that loads a program and runs it once."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", RUN, f"{FOLDER}{name}.pt2"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def load(name):
    start = time.perf_counter()
    torch.export.load(f"{FOLDER}{name}.pt2")
    return time.perf_counter() - start


CASES = {}
for name, goal in ("mlp", 0.02), ("resnet50", 0.05):
    CASES[f"process from start to first result, {name}"] = goal, lambda name=name: ended(name)[0]
for name in "resnet50", "bert-base", "gpt2":
    CASES[f"load {name}"] = 0.1, lambda name=name: load(name)
BYTES = {f"peak memory of a run, {name}": (0.7, lambda name=name: ended(name)[1]) for name in ("mlp", "resnet50")}


def answer(line):
    command, _, rest = line.partition(" ")
    if command == "list":
        return "".join(f"{name}\t{goal:g}\n" for name, (goal, _) in (CASES | BYTES).items())
    if command == "threads":
        torch.set_num_threads(int(rest))
        return "ok"
    times, _, name = rest.partition(" ")
    if name in BYTES:
        return f"{BYTES[name][1]()}"
    return f"{sum(CASES[name][1]() for _ in range(int(times))) / int(times) * 1e9:.0f}"


for line in sys.stdin:
    print(answer(line.strip()), flush=True)

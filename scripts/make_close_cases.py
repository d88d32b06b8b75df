#!/usr/bin/env python3
"""Writes tests/data/close.json: pairs of tensors and numbers, and what torch.testing.assert_close says of them.

Usage: scripts/make_close_cases.py > tests/data/close.json    (needs PyTorch)

A row is [dtype, sizes, actual, expected, options, message]; the message is null where the two are close. Values are the texts of
Python's repr; complex ones are pairs. The dtype "number" is for pairs that are not tensors. The values come from a fixed seed.
"""
import json
import random

import torch

DTYPES = ["float16", "bfloat16", "float32", "float64", "int64", "int32", "uint8", "bool", "complex64", "complex128"]
SIZES = [[], [1], [3], [7], [2, 3], [2, 1, 3], [0], [40]]

rng = random.Random(7)


def real():
    if rng.random() < 0.08:
        return rng.choice([float("nan"), float("inf"), float("-inf"), 0.0, -0.0])
    return rng.uniform(-2, 2) * 10 ** rng.randrange(-3, 4)


def value(dtype):
    if dtype == "bool":
        return rng.random() < 0.5
    if dtype == "uint8":
        return rng.randrange(256)
    if dtype.startswith("int"):
        bits = rng.choice([3, 10, 31 if dtype == "int32" else 62])
        return rng.randrange(-(1 << bits), 1 << bits)
    return complex(real(), real()) if dtype.startswith("complex") else real()


def near(x, dtype):
    """The same value, one that is nearly the same, or another one."""
    kind = rng.random()
    if kind < 0.5:
        return x
    if kind < 0.7 or dtype == "bool":
        return value(dtype)
    if isinstance(x, int):
        return max(0, min(255, x + rng.choice([-1, 1, 3]))) if dtype == "uint8" else x + rng.choice([-1, 1, 3, 1000])
    return x * (1 + rng.choice([1e-8, 1e-6, 1e-5, 1e-3, 0.1])) + rng.choice([0, 1e-6, 1e-4])


def written(x):
    return [repr(x.real), repr(x.imag)] if isinstance(x, complex) else repr(x)


def message(actual, expected, options):
    try:
        torch.testing.assert_close(actual, expected, **options)
    except AssertionError as error:
        return str(error)
    return None


def options():
    chosen = {}
    if rng.random() < 0.4:
        chosen |= {"rtol": rng.choice([0.0, 1e-5, 0.01]), "atol": rng.choice([0.0, 1e-3, 2.0])}
    if rng.random() < 0.4:
        chosen["equal_nan"] = True
    return chosen


def tensor_row(dtype, sizes):
    numel = torch.Size(sizes).numel()
    kind = getattr(torch, dtype)
    actual = torch.tensor([value(dtype) for _ in range(numel)], dtype=kind).reshape(sizes)
    expected = torch.tensor([near(x, dtype) for x in actual.flatten().tolist()], dtype=kind).reshape(sizes)
    chosen = options()
    flat = [[written(x) for x in tensor.flatten().tolist()] for tensor in (actual, expected)]
    return [dtype, sizes, *flat, chosen, message(actual, expected, chosen)]


def number_row():
    dtype = rng.choice(["float64", "int64", "complex128"])
    actual = value(dtype)
    expected = near(actual, dtype)
    chosen = options()
    return ["number", [], written(actual), written(expected), chosen, message(actual, expected, chosen)]


def main():
    rows = [tensor_row(dtype, sizes) for _ in range(4) for dtype in DTYPES for sizes in SIZES]
    rows += [number_row() for _ in range(60)]
    print("[" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "]")


if __name__ == "__main__":
    main()

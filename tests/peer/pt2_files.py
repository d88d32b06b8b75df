"""Programs of tests/compat that weft loaded and saved again: PyTorch must load them, find the same signature, ranges and
guards, and compute the same values, bit for bit.

    python3 pt2_files.py RESAVE_PT2 CASES [--only NAME]
"""
import argparse
import collections
import copy
import logging
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import warnings
import zipfile

import torch
import torch.utils._pytree as pytree


def register_struct():
    """The named tuple that one program takes."""
    point = collections.namedtuple("Point", ["x", "y"])
    module = types.ModuleType("zoo_programs")
    module.Point, point.__module__ = point, "zoo_programs"
    sys.modules["zoo_programs"] = module
    pytree._register_namedtuple(point, serialized_type_name="reference.Point")


def archive(case, dialect, path):
    """Writes the archive of a dialect: its own entries, and those that it shares."""
    with zipfile.ZipFile(case) as source, zipfile.ZipFile(path, "w") as out:
        entries = {}
        for prefix in ["pt2/", dialect + "/"]:
            entries |= {n.removeprefix(prefix): source.read(n) for n in source.namelist() if n.startswith(prefix)}
        for name, content in entries.items():
            out.writestr("model/" + name, content)


def results(program, inputs):
    args, kwargs = copy.deepcopy(inputs)
    torch.manual_seed(0)
    with torch.no_grad():
        return pytree.tree_leaves(program.module()(*args, **kwargs))


def same(a, b):
    if not isinstance(a, torch.Tensor):
        return a == b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())


def text_of(program):
    """Of nodes their names and targets; arguments that are called like a builtin of Python may have another name."""
    signature = re.sub(r"\binput_1\b", "input", str(program.graph_signature))
    nodes = [f"{node.op} {node.target}" for node in program.graph.nodes if node.op == "call_function"]
    return "\n".join([signature, *nodes, str(program.range_constraints), str(program._guards_code)])


def difference(before, after):
    a, b = torch.export.load(before), torch.export.load(after)
    if text_of(a) != text_of(b):
        return f"{text_of(a)}\n  became\n{text_of(b)}"
    x, y = results(a, a.example_inputs), results(b, a.example_inputs)
    if len(x) != len(y):
        return f"{len(y)} results instead of {len(x)}"
    wrong = [i for i in range(len(x)) if not same(x[i], y[i])]
    return f"results {wrong} differ" if wrong else ""


def main():
    options = argparse.ArgumentParser()
    options.add_argument("resave")
    options.add_argument("cases", type=pathlib.Path)
    options.add_argument("--only", default="")
    given = options.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    register_struct()
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in sorted(given.cases.glob("*.zip")):
            if given.only and case.stem != given.only:
                continue
            for dialect in ["pt2", "core"]:
                before, after = f"{folder}/before.pt2", f"{folder}/after.pt2"
                archive(case, dialect, before)
                run = subprocess.run([given.resave, before, after], capture_output=True, text=True)
                wrong = run.stderr if run.returncode else difference(before, after)
                count += 1
                if wrong:
                    failed += 1
                    print(f"{case.stem} {dialect}: {wrong[:2000]}")
    print(f"{count - failed} of {count} programs are the same to PyTorch")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Packs cases of a reference corpus for tests/compat: one deflated zip a case.

    scripts/pack_compat.py CORPUS/cases

A case is a folder with model.pt2 and model-core.pt2 (the same program after run_decompositions()), inputs, outputs,
gradients and case.json. Entries of an archive are unpacked, so that they deflate; what both archives have is kept once.
run_decompositions() drops regions without gradients, so the gradients of such a program are others: PyTorch, which must
be importable, gives them.
"""
import json
import pathlib
import sys
import zipfile

KEPT = ["name", "args", "kwargs", "output", "args-2", "output-2", "input_strides", "mutated", "tolerance", "violation", "random"]
TENSORS = ["inputs", "outputs", "inputs-2", "outputs-2", "after", "grads"]
DROPS_NO_GRAD = ["buffer_mutation", "grad_mode_regions"]
WHOLE = ["scalar_inputs", "tied_weights", "nested_structures"]


def entries_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}


def core_gradients(folder, outputs):
    import torch
    from safetensors.torch import load_file, save
    program = torch.export.load(folder / "model-core.pt2").module()
    leaves = {f"input.{key}": tensor.requires_grad_() for key, tensor in load_file(folder / "inputs.safetensors").items()}
    results = program(*[leaves[f"input.{i}"] for i in range(len(leaves))])
    results = results if isinstance(results, tuple) else (results,)
    sum((results[int(key)] * results[int(key)]).mean() for key in outputs).backward()
    leaves |= dict(program.named_parameters())
    return save({name: leaves[name].grad.contiguous() for name in load_file(folder / "grads.safetensors")})


def training(folder):
    path = folder / "train.json"
    return {"train": json.loads(path.read_text())} if path.exists() else {}


def pack(folder, out):
    case = json.loads((folder / "case.json").read_text())
    files = {"case.json": json.dumps({key: case[key] for key in KEPT if key in case} | {
        "loss": case.get("loss", {}).get("outputs", [])} | training(folder), separators=(",", ":")).encode()}
    for name in TENSORS:
        path = folder / f"{name}.safetensors"
        if path.exists():
            files[path.name] = path.read_bytes()
    if folder.name in DROPS_NO_GRAD:
        files["grads-core.safetensors"] = core_gradients(folder, case["loss"]["outputs"])
    program = entries_of(folder / "model.pt2")
    files |= {f"pt2/{name}": content for name, content in program.items()}
    core = entries_of(folder / "model-core.pt2")
    files |= {f"core/{name}": content for name, content in core.items() if program.get(name) != content}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED, 9)


def main():
    corpus = pathlib.Path(sys.argv[1])
    tests = pathlib.Path(__file__).resolve().parent.parent / "tests" / "compat"
    for folder in sorted(corpus.iterdir()):
        if (folder / "model.pt2").exists():
            pack(folder, tests / "cases" / f"{folder.name}.zip")
    for name in WHOLE:
        (tests / "archives" / f"{name}.pt2").write_bytes((corpus / name / "model.pt2").read_bytes())


main()

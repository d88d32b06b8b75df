"""Models that weft exported: PyTorch must load them, compute the same at three sizes, and refuse what the ranges forbid.

    python3 exported_models.py EXPORT_MODELS
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch

LARGEST = 8  # of the batch


def load(path):
    """A file of safetensors, with no more than PyTorch."""
    types = {"F32": torch.float32, "I64": torch.int64}
    data = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name == "__metadata__":
            continue
        first, last = (begin + offset for offset in entry["data_offsets"])
        found[name] = torch.frombuffer(data[first:last], dtype=types[entry["dtype"]]).reshape(entry["shape"])
    return found


def tensors(path, prefix):
    found = load(path)
    keys = [key for key in found if key.startswith(prefix) and (prefix or not key.startswith("out."))]
    return [found[key] for key in sorted(keys)]


def check(folder, name, dialect):
    module = torch.export.load(folder / f"{name}{dialect}.pt2").module()
    wrong = []
    for path in sorted(folder.glob(f"{name}-?.safetensors")):
        inputs = tensors(path, "")
        with torch.no_grad():
            results = module(*inputs)
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        for i, (got, wanted) in enumerate(zip(results, tensors(path, "out."), strict=True)):
            if got.shape != wanted.shape or not torch.allclose(got, wanted, rtol=1e-3, atol=1e-4):
                wrong.append(f"{path.name}: result {i} differs by {(got - wanted).abs().max().item():.3g}")
    too_large = [torch.cat([t] * (LARGEST // t.shape[0] + 1)) for t in inputs]
    try:
        module(*too_large)
        wrong.append(f"a batch of {too_large[0].shape[0]} was not refused")
    except (RuntimeError, AssertionError):
        pass
    return wrong


def main():
    warnings.filterwarnings("ignore")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        folder = pathlib.Path(folder)
        for name in sorted({path.stem.split(".")[0] for path in folder.glob("*.pt2")}):
            for dialect in ["", ".train", ".core"]:
                wrong = check(folder, name, dialect)
                failed += bool(wrong)
                print(f"{name}{dialect}: {'; '.join(wrong) or 'the same'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Copies the recorded calls of the operators that weft has into the project.

Usage: scripts/copy_samples.py FOLDER [--output tests/data/samples]

FOLDER holds <family>.json and <family>.safetensors as tests/data/samples/README.md describes them. Only rows of the operators
named below are copied, with the tensors that they use, so that the copy is small. All overloads of a name are taken:
functional, in-place (name_) and out= forms. Needs nothing but Python.
"""
import argparse
import json
import pathlib
import struct

# What the first issue asks for.
FIRST_SET = """
add sub mul div neg abs exp log log1p sqrt rsqrt sin cos tanh sigmoid relu gelu silu pow maximum minimum where clamp
eq ne lt le gt ge logical_not bitwise_and
sum mean amax argmax max var cumsum any
view reshape as_strided permute transpose t expand squeeze unsqueeze select slice split unbind diagonal alias detach
cat stack index index_put gather scatter masked_fill index_select embedding nonzero topk
zeros ones full arange empty rand randn randint bernoulli
zeros_like ones_like full_like empty_like rand_like randn_like randint_like
mm bmm addmm matmul linear
convolution max_pool2d avg_pool2d adaptive_avg_pool2d
softmax log_softmax layer_norm batch_norm dropout
nll_loss cross_entropy_loss mse_loss
copy clone contiguous to
_local_scalar_dense item
""".split()

# What those are made of, and what their derivatives call.
NEEDED = """
_to_copy _unsafe_view _reshape_alias lift_fresh
tanh_backward sigmoid_backward threshold_backward gelu_backward silu_backward
_conj conj conj_physical _conj_physical resolve_conj resolve_neg real imag view_as_real view_as_complex _neg_view
rsub reciprocal square sgn sign
split_with_sizes expand_as view_as reshape_as flatten
select_backward slice_backward diagonal_backward select_scatter slice_scatter diagonal_scatter as_strided_scatter
index_select_backward embedding_dense_backward _index_put_impl index_add scatter_add masked_select masked_scatter
value_selecting_reduction_backward
_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data
native_layer_norm native_layer_norm_backward
native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional _native_batch_norm_legit_no_training
native_batch_norm_backward _batch_norm_impl_index
native_dropout native_dropout_backward
nll_loss_forward nll_loss_backward nll_loss2d nll_loss2d_forward nll_loss2d_backward nll_loss_nd mse_loss_backward
convolution_backward
max_pool2d_with_indices max_pool2d_with_indices_backward avg_pool2d_backward
_adaptive_avg_pool2d _adaptive_avg_pool2d_backward
addmv mv dot baddbmm linear_backward
""".split()

# What captured programs and the model zoo add.
SECOND_SET = """
threshold hardtanh hardtanh_backward relu6 hardsigmoid hardsigmoid_backward hardswish hardswish_backward
leaky_relu leaky_relu_backward elu elu_backward softplus softplus_backward
normal diag diag_embed diagonal_copy cummax cummin cummaxmin_backward isfinite isclose allclose equal
type_as lift lift_fresh_copy
upsample_nearest2d upsample_nearest2d_backward upsample_bilinear2d upsample_bilinear2d_backward
native_group_norm native_group_norm_backward group_norm instance_norm norm linalg_vector_norm
sym_size sym_stride sym_numel sym_storage_offset size stride numel storage_offset dim
""".split()

WIDTH = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


def base_name(overload):
    """'add' of 'aten::add_.Tensor'; dunder names stay as they are."""
    name = overload.split("::")[1].split(".")[0]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    start = 8 + length
    return {n: (e["dtype"], e["shape"], data[start + e["data_offsets"][0] : start + e["data_offsets"][1]]) for n, e in header.items()}


def write_safetensors(path, tensors):
    header, offset, chunks = {}, 0, []
    for name, (dtype, shape, data) in sorted(tensors.items(), key=lambda item: (-WIDTH[item[1][0]], item[0])):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
        chunks.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def tensor_keys(value):
    """The names of the stored tensors inside a row."""
    if isinstance(value, list):
        for element in value:
            yield from tensor_keys(element)
    elif isinstance(value, dict):
        for key, element in value.items():
            if key in ("storage", "values") and isinstance(element, str):
                yield element
            else:
                yield from tensor_keys(element)


def uses_unsupported_type(value):
    if isinstance(value, list):
        return any(map(uses_unsupported_type, value))
    if isinstance(value, dict):
        return value.get("dtype") in ("uint16", "uint32", "uint64") or any(map(uses_unsupported_type, value.values()))
    return False


def write_json(path, head, samples, errors):
    """One row a line, as in the originals."""
    lines = [f"{json.dumps(k)}: {json.dumps(v)}," for k, v in head.items()]
    for title, rows, comma in (("samples", samples, ","), ("errors", errors, "")):
        lines.append(f'"{title}": [')
        lines.append(",\n".join(json.dumps(r, separators=(",", ":"), allow_nan=False) for r in rows))
        lines.append("]" + comma)
    path.write_text("{\n" + "\n".join(lines) + "\n}\n")


def copy_family(path, output, names):
    data = json.loads(path.read_text())

    def kept(rows):
        return [r for r in rows if r["overload"] and base_name(r["overload"]) in names and not uses_unsupported_type(r)]

    samples, errors = kept(data["samples"]), kept(data["errors"])
    if not samples and not errors:
        return 0
    tensors = read_safetensors(path.parent / data["tensors"])
    keys = sorted(set(tensor_keys(samples)) | set(tensor_keys(errors)))
    head = {k: v for k, v in data.items() if k not in ("samples", "errors")}
    for row in samples:
        row.pop("given", None)  # nothing here reads it
    write_json(output / path.name, head, samples, errors)
    write_safetensors(output / data["tensors"], {k: tensors[k] for k in keys})
    return len(samples) + len(errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "tests" / "data" / "samples")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for old in options.output.glob("*"):
        if old.suffix in (".json", ".safetensors"):
            old.unlink()
    names = set(FIRST_SET) | set(NEEDED) | set(SECOND_SET)
    for path in sorted(options.folder.glob("*.json")):
        count = copy_family(path, options.output, names)
        if count:
            print(f"{path.stem}: {count} rows")


if __name__ == "__main__":
    main()

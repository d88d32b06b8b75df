"""Random straight-line programs, captured by PyTorch's make_fx and by weft's make_graph: the code must be equal.

Programs are made from a seed as lists of steps, which this file runs with PyTorch and graph_programs.cc with weft.
Names do not count: values are numbered in the order of their definition. Nor does it who reads a size where: sizes
are compared by what they are for the example. docs/capture.md lists why graphs differ.

    python3 graph_programs.py PROGRAM [--count 500] [--seed 1] [--show 5] [--only functionalize]
"""
import argparse
import collections
import json
import random
import re
import subprocess
import sys
import tempfile

import torch
from torch.fx.experimental.proxy_tensor import make_fx

# --- steps --------------------------------------------------------------------------------------------------

F = torch.nn.functional
UNARY = {
    name: getattr(torch, name)
    for name in "sin cos exp tanh sigmoid relu neg abs reciprocal square erf floor ceil sign sqrt rsqrt log log1p expm1".split()
}
UNARY |= {name: getattr(F, name) for name in "gelu silu softplus leaky_relu elu hardtanh".split()}
COMPARISONS = "lt le gt ge eq ne".split()


def put(x, entry, value):
    y = x.clone()
    y[entry] = value
    return y


def written(name):
    """An in-place operator on a copy."""

    def run(t, p):
        y = t[0].clone()
        getattr(y, name)(*t[1:], *p)
        return y

    return run


STEPS = {name: (lambda f: lambda t, p: f(t[0]))(f) for name, f in UNARY.items()}
STEPS |= {name: (lambda f: lambda t, p: f(t[0], t[1]))(getattr(torch, name)) for name in COMPARISONS}
STEPS |= {
    "add": lambda t, p: t[0] + t[1],
    "sub": lambda t, p: t[0] - t[1],
    "mul": lambda t, p: t[0] * t[1],
    "div": lambda t, p: t[0] / t[1],
    "maximum": lambda t, p: torch.maximum(t[0], t[1]),
    "minimum": lambda t, p: torch.minimum(t[0], t[1]),
    "pow": lambda t, p: t[0].abs() ** t[1],
    "add_number": lambda t, p: t[0] + p[0],
    "number_add": lambda t, p: p[0] + t[0],
    "sub_number": lambda t, p: t[0] - p[0],
    "number_sub": lambda t, p: p[0] - t[0],
    "mul_number": lambda t, p: t[0] * p[0],
    "div_number": lambda t, p: t[0] / p[0],
    "number_div": lambda t, p: p[0] / t[0],
    "pow_number": lambda t, p: t[0] ** p[0],
    "floordiv_number": lambda t, p: t[0] // p[0],
    "floordiv": lambda t, p: t[0] // t[1],
    "remainder_number": lambda t, p: t[0] % p[0],
    "div_mode": lambda t, p: torch.div(t[0], t[1], rounding_mode=p[0]),
    "div_number_mode": lambda t, p: torch.div(t[0], p[1], rounding_mode=p[0]),
    "gt_number": lambda t, p: t[0] > p[0],
    "clamp": lambda t, p: t[0].clamp(p[0], p[1]),
    "clamp_min": lambda t, p: t[0].clamp_min(p[0]),
    "where": lambda t, p: torch.where(t[0] > 0, t[0], t[1]),
    "where_number": lambda t, p: torch.where(t[0] > p[0], t[0], p[1]),
    "masked_fill": lambda t, p: t[0].masked_fill(t[0] < p[0], p[1]),
    "sum": lambda t, p: t[0].sum(),
    "sum_dim": lambda t, p: t[0].sum(p[0], p[1]),
    "mean": lambda t, p: t[0].mean(),
    "mean_dim": lambda t, p: t[0].mean(p[0], p[1]),
    "amax": lambda t, p: t[0].amax(p[0], p[1]),
    "max_dim": lambda t, p: t[0].max(p[0])[0],
    "max_both": lambda t, p: tuple(t[0].max(p[0])),
    "var": lambda t, p: t[0].var(p[0]),
    "std": lambda t, p: t[0].std(),
    "cumsum": lambda t, p: t[0].cumsum(p[0]),
    "softmax": lambda t, p: t[0].softmax(p[0]),
    "log_softmax": lambda t, p: t[0].log_softmax(p[0]),
    "argmax": lambda t, p: t[0].argmax(p[0]),
    "norm": lambda t, p: torch.linalg.vector_norm(t[0]),
    "layer_norm": lambda t, p: F.layer_norm(t[0], [t[0].size(-1)]),
    "flatten": lambda t, p: t[0].flatten(),
    "reshape_flat": lambda t, p: t[0].reshape(-1),
    "view_flat": lambda t, p: t[0].view(-1),
    "reshape_column": lambda t, p: t[0].reshape(-1, 1),
    "transpose": lambda t, p: t[0].transpose(p[0], p[1]),
    "t": lambda t, p: t[0].t(),
    "movedim": lambda t, p: t[0].movedim(p[0], p[1]),
    "unsqueeze": lambda t, p: t[0].unsqueeze(p[0]),
    "squeeze": lambda t, p: t[0].squeeze(),
    "squeeze_dim": lambda t, p: t[0].squeeze(p[0]),
    "expand": lambda t, p: t[0].unsqueeze(0).expand(p[0], *([-1] * t[0].dim())),
    "expand_as": lambda t, p: t[0].expand_as(t[1]),
    "select": lambda t, p: t[0].select(p[0], p[1]),
    "narrow": lambda t, p: t[0].narrow(p[0], p[1], 1),
    "item": lambda t, p: t[0][p[0]],
    "column": lambda t, p: t[0][:, p[0]],
    "last": lambda t, p: t[0][..., p[0]],
    "slice": lambda t, p: t[0][p[0]:p[1]],
    "slice_column": lambda t, p: t[0][:, p[0]:p[1]],
    "slice_all": lambda t, p: t[0][:],
    "slice_from": lambda t, p: t[0][p[0]:],
    "new_axis": lambda t, p: t[0][None],
    "put_number": lambda t, p: put(t[0], p[0], p[1]),
    "put_column": lambda t, p: put(t[0], (slice(None), p[0]), p[1]),
    "put_slice": lambda t, p: put(t[0], slice(p[0], p[1]), p[2]),
    "put_all": lambda t, p: put(t[0], slice(None), p[0]),
    "put_tensor": lambda t, p: put(t[0], p[0], t[1][p[0]]),
    "index": lambda t, p: t[0][torch.sort(t[0][..., 0] if t[0].dim() > 1 else t[0], 0)[1]],
    "chunk": lambda t, p: tuple(t[0].chunk(2, p[0])),
    "split": lambda t, p: tuple(t[0].split(p[1], p[0])),
    "unbind": lambda t, p: tuple(t[0].unbind(p[0])),
    "diagonal": lambda t, p: t[0].diagonal(),
    "flip": lambda t, p: t[0].flip(p[0]),
    "cat": lambda t, p: torch.cat([t[0], t[1]], p[0]),
    "stack": lambda t, p: torch.stack([t[0], t[1]], p[0]),
    "matmul": lambda t, p: t[0] @ t[1],
    "matmul_transposed": lambda t, p: t[0] @ t[1].transpose(-1, -2),
    "linear": lambda t, p: F.linear(t[0], t[1]),
    "mv": lambda t, p: t[0] @ t[1][0],
    "vm": lambda t, p: t[0][0] @ t[1].transpose(-1, -2),
    "dot": lambda t, p: t[0].flatten() @ t[1].flatten(),
    "zeros_like": lambda t, p: torch.zeros_like(t[0]),
    "ones_like": lambda t, p: torch.ones_like(t[0]),
    "full_like": lambda t, p: torch.full_like(t[0], p[0]),
    "new_zeros": lambda t, p: t[0].new_zeros(p[0]),
    "new_ones": lambda t, p: t[0].new_ones(p[0]),
    "new_full": lambda t, p: t[0].new_full(p[0], p[1]),
    "zeros": lambda t, p: torch.zeros(p[0]),
    "ones": lambda t, p: torch.ones(p[0]),
    "full": lambda t, p: torch.full(p[0], p[1]),
    "arange": lambda t, p: torch.arange(p[0]),
    "type_as": lambda t, p: t[0].type_as(t[1]),
    "to_int": lambda t, p: t[0].to(torch.int64),
    "to_double": lambda t, p: t[0].to(torch.float64),
    "clone": lambda t, p: t[0].clone(),
    "contiguous": lambda t, p: t[0].contiguous(),
    "detach": lambda t, p: t[0].detach(),
    "add_": written("add_"),
    "mul_": written("mul_"),
    "add_number_": written("add_"),
    "mul_number_": written("mul_"),
    "relu_": written("relu_"),
    "zero_": written("zero_"),
    "fill_": written("fill_"),
    "copy_": written("copy_"),
    "mse_loss": lambda t, p: F.mse_loss(t[0], t[1]),
    "scale_by_size": lambda t, p: t[0] * t[0].size(0),
    "divide_by_size": lambda t, p: t[0].sum() / t[0].size(-1),
    "view_sizes": lambda t, p: t[0].view(t[0].size(0), -1),
    "zeros_of_size": lambda t, p: torch.zeros(t[0].size(0)),
}
TWO = set(
    "add sub mul div maximum minimum pow floordiv div_mode where expand_as put_tensor cat stack matmul matmul_transposed "
    "linear mv vm dot type_as add_ mul_ copy_ mse_loss".split()
) | set(COMPARISONS)
NONE = {"zeros", "ones", "full", "arange"}
COMMON = "add mul sub div sin cos matmul sum_dim reshape_flat stack cat transpose mul_number add_number number_sub put_number".split()


def parameters(name, rank, r):
    dim = lambda: r.randrange(-rank, rank) if rank else 0
    whole, real = (lambda: r.choice([1, 2, 3])), (lambda: r.choice([0.5, 1.5, 2.0]))
    number = lambda: r.choice([whole, real])()
    few = lambda: [r.choice([2, 3]) for _ in range(r.choice([1, 2]))]
    made = {
        "div_mode": lambda: [r.choice(["floor", "trunc"])],
        "div_number_mode": lambda: [r.choice(["floor", "trunc"]), number()],
        "clamp": lambda: [-1.0, number()],
        "where_number": lambda: [0.0, number()],
        "masked_fill": lambda: [0.0, number()],
        "transpose": lambda: [dim(), dim()],
        "movedim": lambda: [dim(), dim()],
        "select": lambda: [dim(), 0],
        "narrow": lambda: [dim(), 0],
        "slice": lambda: [0, 2],
        "slice_column": lambda: [1, 3],
        "put_number": lambda: [0, number()],
        "put_column": lambda: [1, number()],
        "put_slice": lambda: [0, 2, number()],
        "put_all": lambda: [number()],
        "new_full": lambda: [few(), real()],
        "full": lambda: [few(), real()],
        "split": lambda: [dim(), 2],
        "pow_number": lambda: [r.choice([2, 3, 2.0])],
        "unsqueeze": lambda: [r.randrange(-rank - 1, rank + 1)],
        "stack": lambda: [r.randrange(0, rank + 1)],
        "expand": lambda: [2],
        "arange": lambda: [4],
        "column": lambda: [1],
        "last": lambda: [0],
        "item": lambda: [1],
        "slice_from": lambda: [1],
        "put_tensor": lambda: [1],
    }
    if name in made:
        return made[name]()
    if name in "sum_dim mean_dim amax".split():
        return [dim(), r.random() < 0.3]
    if name in "max_dim max_both var cumsum softmax log_softmax argmax squeeze_dim chunk unbind flip cat".split():
        return [dim()]
    if name in "new_zeros new_ones zeros ones".split():
        return [few()]
    if "number" in name or name in "clamp_min full_like fill_".split():
        return [number()]
    return []


# --- programs -----------------------------------------------------------------------------------------------


def run(program, inputs):
    live = list(inputs)
    for step in program["steps"]:
        out = STEPS[step["op"]]([live[i] for i in step["in"]], step["p"])
        live.extend(out if isinstance(out, tuple) else [out])
    return [live[i] for i in program["results"]]


def total(results):
    sums = [x.sum() for x in results if x.is_floating_point()]
    out = sums[0]
    for x in sums[1:]:
        out = out + x
    return out


def as_function(program):
    def f(*inputs):
        results = run(program, inputs)
        return results[0] if len(results) == 1 else tuple(results)

    def loss(*inputs):
        return total(run(program, inputs))

    kind = program["kind"]
    if kind == "functionalize":
        return torch.func.functionalize(f)
    if kind == "grad":
        return torch.func.grad(loss)
    if kind == "vmap":
        return torch.func.vmap(f)
    if kind == "vmap_grad":
        return torch.func.vmap(torch.func.grad(loss))
    if kind == "functional_grad":
        return torch.func.functionalize(torch.func.grad(loss))
    return f


def values_of(program):
    made = torch.Generator().manual_seed(1)
    return [torch.randn(sizes, generator=made) for sizes in program["inputs"]]


def make_program(r, kind):
    """A program whose steps run, and whose results depend on its inputs."""
    sizes = r.choice([[3, 4], [3, 3], [4], [2, 3, 4]])
    program = {"kind": kind, "inputs": [sizes, sizes], "steps": [], "results": []}
    batched = kind.startswith("vmap")
    live = values_of(program)
    if batched:
        program["inputs"] = [[2] + sizes, [2] + sizes]
    names = sorted(STEPS)
    for _ in range(r.randrange(3, 10)):
        name = r.choice(COMMON) if r.random() < 0.35 else r.choice(names)
        count = 0 if name in NONE else 2 if name in TWO else 1
        # What was made last is used most: chains, not bushes.
        pick = lambda: len(live) - 1 - min(int(r.expovariate(0.5)), len(live) - 1)
        given = [pick() for _ in range(count)]
        step = {"op": name, "in": given, "p": parameters(name, live[given[0]].dim() if given else 0, r)}
        try:
            out = STEPS[name]([live[i] for i in given], step["p"])
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue
        out = list(out) if isinstance(out, tuple) else [out]
        if any(x.numel() == 0 or x.numel() > 500 for x in out):
            continue
        program["steps"].append(step)
        live.extend(out)
    program["results"] = sorted({len(live) - 1, r.randrange(2, len(live))}) if len(live) > 2 else [0]
    return program


def depends_on_input(program):
    inputs = values_of({"inputs": [sizes[1:] if program["kind"].startswith("vmap") else sizes for sizes in program["inputs"]]})
    inputs[0].requires_grad_()
    try:
        return total(run(program, inputs)).requires_grad
    except (RuntimeError, IndexError):
        return False


MODES = {"fake": "fake", "symbolic": "symbolic"}


def captured(program):
    torch.manual_seed(1)
    module = make_fx(as_function(program), tracing_mode=MODES.get(program["kind"], "real"))(*values_of(program))
    return code_with_plain_sizes(module)


def code_with_plain_sizes(module):
    """The code with sizes as the numbers that they are for the example: who reads a size where does not count."""
    for node in list(module.graph.nodes):
        value = node.meta.get("val")
        if not isinstance(value, torch.SymInt) or node.op != "call_function":
            continue
        plain = lambda used: value.node.hint if used is node else used
        for user in list(node.users):
            user.args = torch.fx.node.map_arg(user.args, plain)
            user.kwargs = torch.fx.node.map_arg(user.kwargs, plain)
        module.graph.erase_node(node)
    module.recompile()
    return module.code


# --- texts --------------------------------------------------------------------------------------------------


def canonical(code):
    """The lines of a graph's code, with values numbered in the order of their definition."""
    lines, names = [], {}

    def renamed(text):
        return re.sub(r"(?<![\w.'])[A-Za-z_]\w*(?!\w*\s*=\s)(?![\w.]*\()", lambda m: names.get(m[0], m[0]), text)

    for line in code.splitlines():
        line = line.split(";  ")[0].strip()
        if not line or line.startswith(("import", "from")):
            continue
        if line.startswith("def forward"):
            for name in re.findall(r"(\w+)(?:[,)])", line[line.index("(") :]):
                if name != "self":
                    names[name] = f"%{len(names)}"
            continue
        if " = " in line and not line.startswith("return"):
            target, value = line.split(" = ", 1)
            value = renamed(value)
            names[target] = f"%{len(names)}"
            lines.append(f"{names[target]} = {value}")
        else:
            lines.append(renamed(line))
    return lines


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--count", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--show", type=int, default=0)
    options.add_argument("--only", default="")
    given = options.parse_args()
    kinds = (
        ["real"] * 4 + ["fake"] * 3 + ["symbolic"] * 5 + ["functionalize"] * 4 + ["functional_grad"]
        + ["grad"] * 3 + ["vmap"] * 3 + ["vmap_grad"] * 2
    )
    r = random.Random(given.seed)
    programs, texts, at = [], [], 0
    while len(programs) < given.count:
        kind = kinds[at % len(kinds)]
        at += 1
        program = make_program(r, kind)
        if "grad" in kind and not depends_on_input(program):
            continue
        if given.only and given.only != kind:
            continue
        try:
            text = captured(program)
        except Exception:  # PyTorch cannot capture it: no row
            continue
        programs.append(program)
        texts.append(text)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(programs, file)
        file.flush()
        answer = subprocess.run([given.program, file.name], capture_output=True, text=True)
    if answer.returncode:
        sys.exit(f"{given.program}: {answer.returncode}\n{answer.stderr}")
    ours = json.loads(answer.stdout)
    return report(programs, texts, ours, given)


# The share of programs of each group whose graphs are equal, which may not get less; docs/capture.md says what differs.
GROUPS = {
    "real": ("plain", 0.95),
    "fake": ("plain", 0.95),
    "symbolic": ("symbolic", 0.95),
    "functionalize": ("functionalize", 0.90),
    "functional_grad": ("transforms", 0.85),
    "grad": ("transforms", 0.85),
    "vmap": ("transforms", 0.85),
    "vmap_grad": ("transforms", 0.85),
}


def report(programs, texts, ours, given):
    equal, all_of, needed = collections.Counter(), collections.Counter(), {}
    first = collections.Counter()
    shown = 0
    for program, wanted, got in zip(programs, texts, ours):
        for group, least in (GROUPS[program["kind"]], ("only " + program["kind"], 0)):
            needed[group] = least
            all_of[group] += 1
        theirs, own = canonical(wanted), canonical(got) if not got.startswith("error") else [got]
        if theirs == own:
            for group, _ in (GROUPS[program["kind"]], ("only " + program["kind"], 0)):
                equal[group] += 1
            continue
        a, b = next(((x, y) for x, y in zip(theirs + ["(end)"], own + ["(end)"]) if x != y), ("", ""))
        first[re.sub(r"%?\b\d+(\.\d+)?\b", "_", f"{a}  |  {b}")] += 1
        if shown < given.show:
            shown += 1
            print("----", program["kind"], json.dumps(program), "", *theirs, "  weft:", *own, sep="\n")
    for reason, count in first.most_common(40 if given.show else 10):
        print(f"{count:4} {reason[:230]}")
    failed = False
    for group in sorted(all_of):
        share = equal[group] / all_of[group]
        failed |= share < needed[group]
        print(f"{group}: {equal[group]} of {all_of[group]} equal, {share:.1%}; at least {needed[group]:.0%}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

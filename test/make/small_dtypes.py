#!/usr/bin/env python3
"""Makes test/data/own/small_dtypes: what PyTorch does with 8-bit floats and complex halves.

Usage: small_dtypes.py OUTPUT      (with torch 2.15)

A traced method for each operator and dtype: it converts its input, runs the operator and converts the
result back.
"""
import json
import os
import sys
import warnings

import torch

F8, C32 = (torch.float8_e4m3fn, torch.float8_e5m2), (torch.complex32,)
MOVES = {
    "clone": lambda a: a.clone(), "t": lambda a: a.t().contiguous(), "cat": lambda a: torch.cat([a, a]),
    "stack": lambda a: torch.stack([a, a], 1), "index": lambda a: a[[1]], "select": lambda a: a[0],
    "slice": lambda a: a[:, ::2].contiguous(), "expand": lambda a: a.expand(2, 2, 2).contiguous(),
    "repeat": lambda a: a.repeat(2, 1), "zeros": lambda a: torch.zeros(2, dtype=a.dtype),
    "full": lambda a: torch.full((2,), 3.3, dtype=a.dtype), "like": torch.ones_like,
    "full_like": lambda a: torch.full_like(a, -2.2), "new": lambda a: a.new_full((3,), 1.3),
    "fill": lambda a: a.clone().fill_(2), "zero": lambda a: a.clone().zero_(),
    "pad": lambda a: torch.constant_pad_nd(a, [1, 0], 1.5), "diag": lambda a: torch.diag(a[0]),
    "embed": torch.diag_embed, "block": lambda a: torch.block_diag(a, a),
    "select_in": lambda a: a.select_scatter(a[0], 1, 0), "slice_in": lambda a: a.slice_scatter(a[1:], 0, 0, 1),
    "diagonal_in": lambda a: a.diagonal_scatter(a[0]), "expand_copy": lambda a: torch.expand_copy(a, [2, 2, 2]),
    "t_copy": torch.t_copy, "split_copy": lambda a: torch.split_copy(a, 1)[1],
    "copy": lambda a: torch.zeros_like(a).copy_(a.to(torch.float32).t())}
HALVES = {"add": lambda a: a + a, "mul": lambda a: a * a, "neg": lambda a: -a, "eq": lambda a: a == a.t(),
          "real": lambda a: a.real, "conj": lambda a: a.conj().resolve_conj(), "abs": lambda a: a.abs(),
          "view": torch.view_as_real, "mixed": lambda a: a + torch.ones(2, 2)}


def method(op, dtype):
    def call(self, x):
        y = op(x.chalf() if dtype == torch.complex32 else x.to(dtype))
        return y.to(torch.complex64 if dtype == torch.complex32 and y.is_complex() else
                    torch.float32) if y.dtype == dtype else y
    return call


def main(folder):
    warnings.simplefilter("ignore")
    real = torch.tensor([[1.0, -2.7], [0.1, 300]])
    calls = [(op, d, real) for op in MOVES.values() for d in F8]
    calls += [(op, d, torch.complex(real.t(), real)) for op in [*MOVES.values(), *HALVES.values()] for d in C32]
    cls = type("Rare", (torch.nn.Module,), {"s%d" % i: method(op, d) for i, (op, d, _) in enumerate(calls)})
    inputs = {"s%d" % i: (x,) for i, (_, _, x) in enumerate(calls)}
    os.makedirs(folder, exist_ok=True)
    traced = torch.jit.trace_module(cls().eval(), inputs, check_trace=False)
    traced.save(os.path.join(folder, "model.pt"))
    rows = [(name, x, getattr(traced, name)(*x)) for name, x in inputs.items()]
    torch.save(rows, os.path.join(folder, "samples.pt"))
    samples = [{"method": name, "rtol": 0, "atol": 0} for name in inputs]
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as f:
        json.dump({"name": "small_dtypes", "category": "ops", "samples": samples, "kind": "trace",
                   "producer": "torch " + torch.__version__, "n_cases": len(rows)}, f, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])

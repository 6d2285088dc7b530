"""Makes test/data/own/values: every kind of result, a changed argument, an error, a NaN.

    /usr/bin/python3 test/make/values.py test/data/own/values

Needs torch 1.13 (Debian: python3-torch). test/check alters copies of it.
"""
import json
import os
import sys
from collections import OrderedDict
from typing import Dict, List, Optional, Tuple

import torch

from neutral import define

SOURCE = '''from typing import Dict, List, Optional, Tuple

import torch


class Values(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: int, log: List[int]) -> Tuple[
            torch.Tensor, Dict[str, torch.Tensor], List[int], str, Optional[torch.Tensor], float,
            bool, int, torch.Tensor, torch.Tensor]:
        if n < 0:
            raise ValueError("n must not be negative")
        log.append(n)
        y = torch.tanh(x * 2.0 + 1.0)
        parts = {"second": y + x, "first": y}
        positive = x.gt(0)
        return (y, parts, [n, n + 1], "done", None, n * 0.5, n > 1, n, positive,
                positive.to(torch.int64))
'''
Values = define(SOURCE).Values


def main(folder):
    os.makedirs(folder, exist_ok=True)
    model = Values().eval()
    torch.jit.script(model).save(os.path.join(folder, "model.pt"))
    torch.manual_seed(5)
    x = torch.randn(3, 4)
    x[1, 2] = float("nan")
    sets = [(x, 3, [7]), (torch.randn(2, 4), 0, []), (torch.randn(1, 4), -1, [])]
    for i, args in enumerate(sets):
        torch.save(args, os.path.join(folder, "inputs_%d.pt" % i))
        if args[1] < 0:
            continue
        torch.save(model(*args), os.path.join(folder, "expected_%d.pt" % i))
        torch.save(args, os.path.join(folder, "after_%d.pt" % i))
    case = OrderedDict(
        name="values", category="own", producer="torch 1.13.1", kind="script", method="forward",
        n_cases=len(sets), rtol=1e-4, atol=1e-5, stateful=False, note="test/make/values.py",
        raises=[{"input": 2, "contains": "n must not be negative"}], mutates_inputs=[0, 1])
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump(case, f, indent=1)
        f.write("\n")


main(sys.argv[1])

"""Makes test/data/own/devices: moves to the CPU, which are no moves, and to a device that is not there.

    /usr/bin/python3 test/make/devices.py test/data/own/devices

Needs torch 1.13 (Debian: python3-torch).
"""
import json
import os
import sys
from collections import OrderedDict

import torch

from neutral import define

SOURCE = '''from typing import List, Tuple

import torch


class Devices(torch.nn.Module):
    def forward(self, x: torch.Tensor, far: bool) -> Tuple[torch.Tensor, torch.Tensor, List[bool], torch.dtype]:
        if far:
            return x.cuda(), x, [True], x.dtype
        y = x.cpu()
        y.add_(1)
        z = x.to("cpu").to(x.device).to(torch.device("cpu"), torch.float64)
        w = x.to(z).to(x.dtype, copy=True)
        w.mul_(2)
        v = torch.zeros(2, 3, device=x.device).to(device="cpu")
        return x + w, z + v, [x.is_cuda, x.device == y.device, x.device.type == "cpu"], z.dtype
'''
Devices = define(SOURCE).Devices


def main(folder):
    os.makedirs(folder, exist_ok=True)
    model = torch.jit.script(Devices().eval())
    model.save(os.path.join(folder, "model.pt"))
    sets = [(torch.arange(6.0).reshape(2, 3), False), (torch.ones(2, 3, dtype=torch.int32), False),
            (torch.ones(1), True)]
    for i, args in enumerate(sets):
        torch.save(args, os.path.join(folder, "inputs_%d.pt" % i))
        if args[1]:
            continue
        torch.save(model(*args), os.path.join(folder, "expected_%d.pt" % i))
        torch.save(args, os.path.join(folder, "after_%d.pt" % i))
    case = OrderedDict(
        name="devices", category="own", producer="torch 1.13.1", kind="script", method="forward",
        n_cases=len(sets), rtol=1e-6, atol=0, stateful=False, note="test/make/devices.py",
        raises=[{"input": 2, "contains": "device"}], mutates_inputs=[0, 1])
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump(case, f, indent=1)
        f.write("\n")


main(sys.argv[1])

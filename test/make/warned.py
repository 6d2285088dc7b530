"""Makes test/data/load/warned.pt, which warns at two places, one of them three times a call, and
test/data/load/pair.npz.

    /usr/bin/python3 test/make/warned.py test/data/load

Needs torch 1.13 and numpy. What torch warns is printed: once a place and call, wherever the place was
called from. Kiln remembers places for the model (test/unit/api/loading_test.c)."""
import os
import sys

import numpy
import torch
from neutral import define

SOURCE = '''import warnings

import torch


class Warned(torch.nn.Module):
    def part(self, x):
        warnings.warn('in a part')
        return x

    def forward(self, x):
        for i in range(3):
            warnings.warn('in a loop: ' + str(i))
            x = self.part(x)
        return self.part(x) + 1
'''


def main():
    folder = sys.argv[1]
    model = torch.jit.script(define(SOURCE).Warned().eval())
    model.save(os.path.join(folder, 'warned.pt'))
    numpy.savez_compressed(os.path.join(folder, 'pair.npz'), x=numpy.arange(6, dtype='f4').reshape(2, 3),
                           n=numpy.array(4))
    for _ in range(3):
        model(torch.zeros(2))


if __name__ == '__main__':
    main()

"""Trains the digit reader and writes what the demo needs: python3 train.py (PyTorch, scikit-learn).

digits.pt  the scripted model
test.pt    (images u8 N x 1 x 8 x 8 of 0 to 16, labels i64 N, digits i64 N, confidences f32 N):
           images that training never saw, and what PyTorch's model says of each alone
"""
import os
import sys

import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "test", "make"))
from neutral import define  # noqa: E402

TEST, EPOCHS, BATCH = 360, 60, 64


def logits(model, images):
    """After one reading and after two: both are trained."""
    features = model.see(images)
    first = model.read(features, torch.zeros(images.size(0), model.hidden))
    return model.out(first), model.out(model.read(features, first))


def train(model, images, labels):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(BATCH):
            noisy = images[batch] + 0.05 * torch.randn_like(images[batch])
            once, twice = logits(model, noisy)
            loss = cross_entropy(once, labels[batch]) + cross_entropy(twice, labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    data = load_digits()
    images = torch.tensor(data.images).to(torch.uint8).unsqueeze(1)
    labels = torch.tensor(data.target)
    order = torch.randperm(len(images))
    test, rest = order[:TEST], order[TEST:]
    with open(os.path.join(here, "model.py")) as file:
        model = define(file.read(), "model.py").Digits()
    train(model, images[rest] / 16, labels[rest])
    model.eval()
    scripted = torch.jit.script(model)
    scripted.save(os.path.join(here, "digits.pt"))
    with torch.no_grad():
        rows = [scripted(image.unsqueeze(0) / 16)[0][0] for image in images[test]]
    confidences, digits = torch.stack(rows).max(1)
    right = int((digits == labels[test]).sum())
    print(f"{right} of {TEST} test digits are right")
    torch.save((images[test], labels[test], digits, confidences), os.path.join(here, "test.pt"))


main()

#!/usr/bin/env python3
"""Makes data/digits.pt2, the model that ./demo loads: a network for handwritten digits that PyTorch trained a little and exported.

    scripts/export_digits.py        # needs PyTorch 2.13

It is trained on the first 1,437 images of data/digits.bin, too briefly to be good; the others are for testing.
"""
import pathlib

import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAINED = 1437


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(32 * 2 * 2, 10)

    def forward(self, images):
        x = self.pool(torch.relu(self.conv1(images)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.head(x.flatten(1))


def digits():
    rows = torch.frombuffer(bytearray((ROOT / "data/digits.bin").read_bytes()[24:]), dtype=torch.uint8).reshape(-1, 65)
    return rows[:, :64].reshape(-1, 1, 8, 8).float() / 16, rows[:, 64].long()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images, labels = digits()
    net = DigitNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for first in range(0, TRAINED, 64):
        last = min(first + 64, TRAINED)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images[first:last]), labels[first:last]).backward()
        optimizer.step()
    net.eval()
    right = (net(images[TRAINED:]).argmax(1) == labels[TRAINED:]).float().mean().item()
    print(f"{100 * right:.1f} % of the images that it has not seen")
    batch = torch.export.Dim("batch", min=1, max=4096)
    program = torch.export.export(net, (images[:2].clone(),), dynamic_shapes=({0: batch},))
    for node in program.graph.nodes:  # paths of the machine that made it
        node.meta.pop("stack_trace", None)
    torch.export.save(program, ROOT / "data/digits.pt2")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the exported programs of the suite "files" into a folder, those that are not there yet. ./bench starts it."""
import pathlib
import sys

import torch
from torch import nn

from gpt2 import Gpt2
from resnet50 import ResNet50


class Bert(nn.Module):
    """An encoder of BERT-base's size."""

    def __init__(self, vocabulary=30522, width=768, depth=12):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, 12, 4 * width, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.positions(torch.arange(tokens.size(1), device=tokens.device))
        return self.encoder(self.norm(x))


def mlp():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


PROGRAMS = {
    "mlp": (mlp, lambda: torch.randn(4, 16)),
    "resnet50": (ResNet50, lambda: torch.randn(1, 3, 224, 224)),
    "gpt2": (lambda: Gpt2(dropout=0), lambda: torch.zeros(1, 64, dtype=torch.int64)),
    "bert-base": (Bert, lambda: torch.zeros(1, 128, dtype=torch.int64)),
}

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, (model, example) in PROGRAMS.items():
    path = folder / f"{name}.pt2"
    if not path.exists():
        print(f"Exporting {path}")
        torch.export.save(torch.export.export(model().eval(), (example(),)), path)

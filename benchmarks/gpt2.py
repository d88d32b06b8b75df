"""GPT-2 in PyTorch, operator for operator what src/models/gpt2.cc is: the twin of tests and of benchmarks."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class Projection(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs) * 0.02), nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.reshape(-1, x.size(-1)), self.weight).view(*x.shape[:-1], self.weight.size(1))


class Attention(nn.Module):
    def __init__(self, n_embd, n_head, dropout):
        super().__init__()
        self.c_attn, self.c_proj = Projection(n_embd, 3 * n_embd), Projection(n_embd, n_embd)
        self.attn_dropout, self.resid_dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        self.n_head = n_head

    def forward(self, x):
        batch, length, width = x.shape

        def by_head(t):
            return t.view(batch, length, self.n_head, width // self.n_head).transpose(1, 2)

        queries, keys, values = (by_head(t) for t in self.c_attn(x).split(width, 2))
        scores = torch.matmul(queries, keys.transpose(-2, -1)) / math.sqrt(width // self.n_head)
        position = torch.arange(length, device=x.device)
        scores = scores.masked_fill(position.unsqueeze(0) > position.unsqueeze(1), -math.inf)
        weights = self.attn_dropout(torch.softmax(scores, -1))
        mixed = torch.matmul(weights, values).transpose(1, 2).reshape(batch, length, width)
        return self.resid_dropout(self.c_proj(mixed))


class Mlp(nn.Module):
    def __init__(self, n_embd, dropout):
        super().__init__()
        self.c_fc, self.c_proj = Projection(n_embd, 4 * n_embd), Projection(4 * n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(F.gelu(self.c_fc(x), approximate="tanh")))


class Block(nn.Module):
    def __init__(self, n_embd, n_head, dropout):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(n_embd), Attention(n_embd, n_head, dropout)
        self.ln_2, self.mlp = nn.LayerNorm(n_embd), Mlp(n_embd, dropout)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Transformer(nn.Module):
    def __init__(self, vocab_size, n_positions, n_embd, n_layer, n_head, dropout):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(n_positions, n_embd)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(Block(n_embd, n_head, dropout) for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd)

    def forward(self, tokens):
        x = self.drop(self.wte(tokens) + self.wpe(torch.arange(tokens.size(1), device=tokens.device)))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class Gpt2(nn.Module):
    def __init__(self, vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12, n_head=12, dropout=0.1):
        super().__init__()
        self.transformer = Transformer(vocab_size, n_positions, n_embd, n_layer, n_head, dropout)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens):
        return self.lm_head(self.transformer(tokens))

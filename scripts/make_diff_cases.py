#!/usr/bin/env python3
"""Writes tests/data/ndiff.json: pairs of texts and what Python's difflib.ndiff says of them.

Usage: scripts/make_diff_cases.py > tests/data/ndiff.json

The texts come from a fixed seed. ndiff chooses similar lines in another way since Python 3.13; weft's does as before.
"""
import difflib
import json
import random
import sys

CASES = 300
WORDS = ["%x : Float(3, 4)", "aten::add", "aten::mul", "(%a, %b)", "# f.cc:3", "return", "prim::Constant[value=1]()",
         "\t", " ", "\u00e9", "\u00a0", "\u2003", "\u03b1\u03b2"]

rng = random.Random(20240601)


def text_of(characters, low, high):
    return "".join(rng.choice(characters) for _ in range(rng.randrange(low, high)))


def line():
    kind = rng.random()
    if kind < 0.65:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(6)))
    if kind < 0.8:
        return text_of("ab \tc", 0, 30)
    if kind < 0.83:
        return text_of("abcdefgh ij", 190, 230)  # long lines ignore their most frequent characters
    return text_of("xyz", 0, 6)


def changed(text):
    characters = list(text)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(characters) + 1)
        kind = rng.random()
        if kind < 0.4 or at == len(characters):
            characters.insert(at, rng.choice("abc \t%\u00e9"))
        elif kind < 0.8:
            del characters[at]
        else:
            characters[at] = rng.choice("xyz ")
    return "".join(characters)


def joined(lines):
    return "\n".join(lines) + (rng.choice(["\n", ""]) if lines else "")


def case(number):
    is_long = number % 100 == 99  # more than 200 lines ignore their most frequent lines
    before = [text_of("xy", 1, 4) for _ in range(220)] if is_long else [line() for _ in range(rng.randrange(9))]
    after = []
    for text in before:
        kind = rng.random()
        if kind < 0.4:
            after.append(text)
        elif kind < 0.75:
            after.append(changed(text))
        elif kind > 0.85:
            after += [text, line()]
    if rng.random() < 0.2:
        rng.shuffle(after)
    return joined(before), joined(after)


def main():
    if sys.version_info >= (3, 13):
        sys.exit("make_diff_cases.py: needs a Python before 3.13")
    rows = []
    for number in range(CASES):
        before, after = case(number)
        rows.append([before, after, "".join(difflib.ndiff(before.splitlines(True), after.splitlines(True)))])
    print("[" + ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows) + "]")


if __name__ == "__main__":
    main()

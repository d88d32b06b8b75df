#!/usr/bin/env python3
"""Lets two benchmark servers (see server.h) take turns, and compares their times. ./bench calls it."""
import argparse
import json
import re
import shlex
import signal
import subprocess
import sys

# Many short samples: on a machine that does other things too, some of them run undisturbed.
SAMPLE_SECONDS = 0.006  # what one answer should take, at least
CASE_SECONDS = 1.2  # what one case may take of each process, but for FEWEST_ROUNDS
FEWEST_ROUNDS, MOST_ROUNDS = 3, 120
PATIENCE = 4  # a case that seems to miss its goal takes so much longer: other work may have hit one process only
FEWEST_OWN_ROUNDS = 8

# Rows made of two others: what one takes beyond the other.
BEYOND = {
    "trace of ResNet-50 at 32x32, beyond the run itself": dict(
        whole="trace of ResNet-50 at 32x32, with the run", part="run of ResNet-50 at 32x32", goal=1 / 30
    )
}
# Cases that only weft has: time for each of so many nodes, in ns, and what it may be.
OWN = {
    "interpreter, a node beyond the eager call": dict(
        whole="graph of 10^4 additions", part="10^4 additions, eager", count=10_000, goal=100
    )
}
# ... time of one case, in ns, and what it may be.
OWN_TIME = {
    "call with 100 inputs": dict(goal=2000),
    "weft --version": dict(goal=10e6),
    "checks of a loaded program, 10 dynamic sizes": dict(goal=1000),
    "solver of declared sizes, 1,000 guards": dict(goal=10e6),
    "joint graph and min-cut, 10^5 nodes": dict(goal=2e9),
}
# ... a quantity of weft's that is no time, and what it may be.
OWN_QUANTITY = {"bytes of a captured node": dict(goal=1024)}
# ... how much longer one may take than another.
OWN_RATIO = {
    "capture with lines of the program, against without": dict(
        whole="make_graph of ResNet-50, fake, with lines", part="make_graph of ResNet-50, fake, again", goal=2
    ),
    "training step of a small perceptron, compiled against eager": dict(
        whole="training step of a small perceptron", part="training step of a small perceptron, eager", goal=1.25
    ),
}
# ... and how the time of one grows from 10^5 to 10^6 nodes, against the size.
OWN_GROWTH = {
    f"growth of {what}": dict(large=f"{what}, 10^6 nodes", small=f"{what}, 10^5 nodes", sizes=10, goal=1.1)
    for what in ("capture", "print", "parse", "dead code", "copy", "destruction")
}
OWN_GROWTH["growth of joint graph and min-cut"] = dict(
    large="joint graph and min-cut, 10^5 nodes", small="joint graph and min-cut, 10^4 nodes", sizes=10, goal=1.5
)
OWN_GROWTH["growth of export"] = dict(
    large="export of a chain, 10^5 nodes", small="export of a chain, 10^4 nodes", sizes=10, goal=1.25
)
# Cases of both that are no times: bytes.
QUANTITIES = {"bytes saved of ResNet-50", "bytes saved of a GPT-2 decoder", "peak memory of a run, mlp", "peak memory of a run, resnet50"}
# Rows made of two others: how the time of one grows, against its size. The goal is for weft's growth alone.
GROWTH = {
    "growth per node from 10^5 to 10^6 nodes": dict(
        large="chain of 10^6 nodes, forward + backward",
        small="chain of 10^5 nodes, forward + backward",
        sizes=10,
        goal=1.25,
    )
}


class Server:
    def __init__(self, program):
        self.program = program
        self.process = subprocess.Popen(shlex.split(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"bench: {self.program} ended while it ran: {command}")
        return answer.rstrip("\n")

    def cases(self):
        """The names and goals."""
        cases, line = {}, self.ask("list")
        while line:
            name, goal = line.split("\t")
            cases[name] = float(goal)
            line = self.process.stdout.readline().rstrip("\n")
        return cases

    def set_threads(self, threads):
        self.process.send_signal(signal.SIGCONT)
        self.ask(f"threads {threads}")
        self.process.send_signal(signal.SIGSTOP)

    def run(self, name, times):
        """Nanoseconds of one run, in the mean of so many."""
        # Workers that still spin would be timed with the other process: whoever does not run is stopped.
        self.process.send_signal(signal.SIGCONT)
        answer = self.ask(f"run {times} {name}")
        self.process.send_signal(signal.SIGSTOP)
        try:
            return float(answer)
        except ValueError:
            sys.exit(f"bench: {self.program}, {name}: {answer}")


def best_quarter(samples):
    best = sorted(samples)[: max(1, len(samples) // 4)]
    return sum(best) / len(best)


def repeats(server, name):
    """How many runs make a sample: enough to be timed, found on the way to a warm process."""
    server.run(name, 1)  # makes the operands
    times = 1
    while True:
        taken = server.run(name, times) * times / 1e9
        if taken < 10 * SAMPLE_SECONDS:  # one that was interrupted would end the search too early
            taken = min(taken, server.run(name, times) * times / 1e9)
        if taken >= SAMPLE_SECONDS / 2:
            return times
        times = max(2 * times, int(times * SAMPLE_SECONDS / max(taken, 1e-9)))


def compare(servers, counts, meets_goals):
    """The times of cases in both processes, taken in turns. `counts` says how many runs of each take equally long, and
    the last is the longest: short samples would be lucky more often. Times that miss their goals are measured longer, in
    both processes."""
    longest = list(counts)[-1]
    times = [{name: base * count for name, count in counts.items()} for base in (repeats(s, longest) for s in servers)]
    samples = [{name: [] for name in counts} for _ in servers]
    spent = [0.0 for _ in servers]

    def times_so_far():
        return {name: [best_quarter(s[name]) for s in samples] for name in counts}

    def is_enough(patience):
        rounds = len(samples[0][longest])
        return rounds >= patience * MOST_ROUNDS or (
            max(spent) >= patience * CASE_SECONDS and rounds >= patience * FEWEST_ROUNDS
        )

    def sample(patience):
        while not is_enough(patience):
            for name in counts:
                for i, server in enumerate(servers):
                    samples[i][name].append(server.run(name, times[i][name]))
                    spent[i] += samples[i][name][-1] * times[i][name] / 1e9

    sample(1)
    if not meets_goals(times_so_far()):
        sample(PATIENCE)  # to the end, not until luck turns
    return times_so_far()


def growth_of(name):
    """The rule of a growth that a case is one of two sizes of."""
    return next((rule for rule in GROWTH.values() if name in (rule["small"], rule["large"])), None)


def compared_with(name):
    """The cases that take turns with one, and their counts: a growth is of times that were measured together."""
    rule = growth_of(name)
    return {rule["small"]: rule["sizes"], rule["large"]: 1} if rule else {name: 1}


def meets_goals(times, goals):
    """Whether the times of cases that were measured together meet the goals of all; 0 is no goal."""
    rule = growth_of(next(iter(times)))
    if rule and times[rule["large"]][0] > rule["goal"] * rule["sizes"] * times[rule["small"]][0]:
        return False
    return all(goals[name] == 0 or weft <= goals[name] * peer for name, (weft, peer) in times.items())


def measure(server, times):
    """The times of cases that only one process has, by how many runs make a sample of each. They take turns: what else
    the machine does hits all of them."""
    samples = {name: [] for name in times}
    spent, rounds = 0, 0
    while rounds < MOST_ROUNDS and (spent < CASE_SECONDS or rounds < FEWEST_OWN_ROUNDS):
        rounds += 1
        for name, runs in times.items():
            samples[name].append(server.run(name, runs))
            spent += samples[name][-1] * runs / 1e9
    return {name: best_quarter(taken) for name, taken in samples.items()}


def own_times(server, cases, pattern):
    """Of the cases that only weft has, with those of a row in turns."""
    pairs = [(rule["part"], rule["whole"]) for rule in [*OWN.values(), *OWN_RATIO.values()]]
    times = {}
    for name in cases:
        if name in times or not re.search(pattern, name):
            continue
        growth = next((rule for rule in OWN_GROWTH.values() if name in (rule["small"], rule["large"])), None)
        if name in OWN_QUANTITY:
            times[name] = server.run(name, 1)
        elif growth:
            # Samples of the same length: a short one would be lucky more often.
            times.update(measure(server, {growth["small"]: growth["sizes"], growth["large"]: 1}))
        elif name in OWN_TIME:
            times.update(measure(server, {name: repeats(server, name)}))
        else:
            pair = next(pair for pair in pairs if name in pair)
            times.update(measure(server, {part: repeats(server, part) for part in pair}))
    return times


def own_rows(times, threads):
    for name, rule in OWN_TIME.items():
        if name in times:
            ratio = times[name] / rule["goal"]
            yield dict(what=name, threads=threads, unit="ns", weft=times[name], peer=rule["goal"], ratio=ratio, goal=1)
    for name, rule in OWN_QUANTITY.items():
        if name in times:
            ratio = times[name] / rule["goal"]
            yield dict(what=name, threads=threads, unit="", weft=times[name], peer=rule["goal"], ratio=ratio, goal=1)
    for name, rule in OWN_RATIO.items():
        if rule["whole"] in times and rule["part"] in times:
            ratio = times[rule["whole"]] / times[rule["part"]]
            yield dict(what=name, threads=threads, unit="", weft=ratio, peer=1, ratio=ratio, goal=rule["goal"])
    for name, rule in OWN.items():
        if rule["whole"] in times and rule["part"] in times:
            value = (times[rule["whole"]] - times[rule["part"]]) / rule["count"]
            yield dict(what=name, threads=threads, unit="ns", weft=value, peer=rule["goal"], ratio=value / rule["goal"], goal=1)
    for name, rule in OWN_GROWTH.items():
        if rule["large"] in times and rule["small"] in times:
            growth = times[rule["large"]] / times[rule["small"]] / rule["sizes"]
            yield dict(what=name, threads=threads, unit="", weft=growth, peer=1, ratio=growth, goal=rule["goal"])


def growth_rows(rows, threads):
    measured = {row["what"]: row for row in rows if row["threads"] == threads}
    for name, rule in GROWTH.items():
        if rule["large"] not in measured or rule["small"] not in measured:
            continue
        large, small = measured[rule["large"]], measured[rule["small"]]
        weft, peer = (large[who] / small[who] / rule["sizes"] for who in ("weft", "peer"))
        yield dict(what=name, threads=threads, unit="", weft=weft, peer=peer, ratio=weft, goal=rule["goal"])


def text_of(row, who):
    value = row[who]
    if row["unit"] == "bytes":
        return f"{value / 1e6:.1f} MB"
    if row["unit"] != "ns":
        return f"{value:.2f}"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} ns"


def print_row(row):
    what = f"{row['what']}, {row['threads']} thread{'s' * (row['threads'] > 1)}"
    print(
        f"{what:<60} {text_of(row, 'weft'):>9} {text_of(row, 'peer'):>9} {row['ratio']:>6.3f} {row['goal']:>6.2f}"
        f"  {'yes' if row['met'] else 'NO'}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weft")
    parser.add_argument("peer")
    parser.add_argument("output")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--threads", type=int, action="append", metavar="N")
    options = parser.parse_args()
    options.threads = options.threads or [1, 2]

    servers = [Server(options.weft), Server(options.peer)]
    cases, theirs = (server.cases() for server in servers)
    own = {name: goal for name, goal in cases.items() if goal < 0}  # the peer has nothing like it
    cases = {name: goal for name, goal in cases.items() if goal >= 0}
    if cases != theirs:
        sys.exit(f"bench: the programs differ in their cases: {sorted(set(cases.items()) ^ set(theirs.items()))}")
    chosen = [name for name in cases if re.search(options.only, name)]
    if not chosen and not any(re.search(options.only, name) for name in own):
        sys.exit(f"bench: no case matches {options.only!r}")

    rows, parts = [], {}

    def add(row):
        row["met"] = row["ratio"] <= row["goal"]
        rows.append(row)
        print_row(row)

    print(f"{'what':<60} {'weft':>9} {'peer':>9} {'ratio':>6} {'goal':>6}  met")
    for threads in options.threads:
        for server in servers:
            server.set_threads(threads)
        if threads == options.threads[0]:  # what only weft has runs on one thread anyway
            for row in own_rows(own_times(servers[0], own, options.only), threads):
                add(row)
        times = {}
        for name in chosen:
            if name in QUANTITIES:
                weft, peer = (server.run(name, 1) for server in servers)
                add(dict(what=name, threads=threads, unit="bytes", weft=weft, peer=peer, ratio=weft / peer, goal=cases[name]))
                continue
            if name not in times:
                times.update(compare(servers, compared_with(name), lambda measured: meets_goals(measured, cases)))
            weft, peer = times[name]
            if cases[name] == 0:  # part of another row
                parts[name, threads] = weft, peer
                continue
            add(dict(what=name, threads=threads, unit="ns", weft=weft, peer=peer, ratio=weft / peer, goal=cases[name]))
        for row in growth_rows(list(rows), threads):
            add(row)
        for name, rule in BEYOND.items():
            if (rule["whole"], threads) in parts and (rule["part"], threads) in parts:
                whole, part = parts[rule["whole"], threads], parts[rule["part"], threads]
                weft, peer = (max(a - b, 0) for a, b in zip(whole, part))
                add(dict(what=name, threads=threads, unit="ns", weft=weft, peer=peer, ratio=weft / max(peer, 1), goal=rule["goal"]))
    for server in servers:
        server.process.kill()
    with open(options.output, "w") as file:
        json.dump(rows, file, indent=1)
    missed = sum(not row["met"] for row in rows)
    print(f"\n{len(rows) - missed} of {len(rows)} goals met; {options.output} has the figures")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()

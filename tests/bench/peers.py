"""Peers: processes that write the same bytes on request, so that all of them take turns on one machine in one state."""
import json
import os
import random
import statistics
import subprocess
import time

from context import clean_environment, finish
from figures import Figure, seconds

BOUND = 600.0
KEPT = 2  # checkpoints, by default


class Cairn:
    """Ranks of bench_rank; one save a request."""

    def __init__(self, context, ranks, arrays, elements, settings=None):
        self.name = "cairn"
        self.step, self.folder = context.ranks(ranks, "saves", "--arrays", arrays, "--elements", elements, settings=settings)
        self.commands = open(self.folder / "commands", "w", buffering=1)
        self.seen = 0

    def measure(self):
        self.commands.write("save\n")
        deadline = time.monotonic() + BOUND
        while len(lines := [line for line in self.step.output(0).splitlines() if line.startswith("save ")]) == self.seen:
            if time.monotonic() > deadline or self.step.running() != list(range(len(self.step.ranks))):
                raise RuntimeError("a save did not come to its end:\n" + self.step.log())
            time.sleep(0.005)
        self.seen += 1
        while len([name for name in os.listdir(self.folder / "run") if name.startswith(("step-", "removed-"))]) > KEPT:
            if time.monotonic() > deadline:
                raise RuntimeError("an older checkpoint was not removed:\n" + self.step.log())
            time.sleep(0.005)  # outside the measured time, as the peers' older ones
        return float(lines[-1].split()[1])

    def stall(self):
        """Seconds that the program stood still for the last save."""
        events = map(json.loads, (self.folder / "run/journal.jsonl").read_text().splitlines())
        return [event["stall_ns"] * 1e-9 for event in events if event["event"] == "saved"][-1]

    def close(self):
        """Leaves a finished run."""
        try:
            self.commands.write("stop\n")
            self.commands.close()
            self.step.join(BOUND)
        finally:
            self.step.__exit__()


class CairnLoads:
    """Lives of a finished run, each of which loads its last checkpoint."""

    def __init__(self, context, ranks, arrays, elements):
        saves = Cairn(context, ranks, arrays, elements)
        saves.close()
        self.life = 0
        self.start = lambda: context.ranks_again(saves.folder, self.life, ranks, "restore", "--arrays", arrays, "--elements", elements)

    def measure(self):
        self.life += 1
        with self.start() as step:
            finish(step)
            return max(float(line.split()[1]) for rank in range(len(step.ranks)) for line in step.output(rank).splitlines()
                       if line.startswith("restore "))

    def close(self):
        pass


class Peer:
    """A process that reads a way's name a line on stdin, does it once, and answers "WAY<tab>SECONDS"."""

    def __init__(self, command, log):
        self.log = log
        self.process = subprocess.Popen(list(map(str, command)), env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=open(log, "w"), text=True, bufsize=1)

    def measure(self, way):
        self.process.stdin.write(way + "\n")
        answer = self.process.stdout.readline().split("\t")
        if len(answer) != 2 or answer[0] != way:
            raise RuntimeError(f"{way}: no answer\n" + open(self.log).read())
        return float(answer[1])

    def close(self):
        self.process.stdin.close()
        self.process.wait(BOUND)


def race(name, workload, cairn, peer, ways, stalls, rounds):
    """Every round each way once and Cairn twice, in random order. Figures: how many times the peer's time is Cairn's.

    ways    name: Bar, for times until the bytes are durable, or loaded
    stalls  name: Bar, for times until the program may go on
    """
    rng = random.Random(1)
    times = {way: [] for way in [*ways, *stalls, "durable", "stall"]}
    for number in range(rounds + 1):  # the first warms up
        order = [*ways, *stalls, "cairn", "cairn"]
        rng.shuffle(order)
        taken = {way: [] for way in times}
        for way in order:
            os.sync()  # what another left to be written is not this one's to wait for
            if way == "cairn":
                taken["durable"].append(cairn.measure())
                taken["stall"].append(cairn.stall() if stalls else 0)
            else:
                taken[way].append(peer.measure(way))
        if number > 0:
            for way, values in taken.items():
                times[way].append(statistics.mean(values))
    for way, bar in (ways | stalls).items():
        ours = times["stall" if way in stalls else "durable"]
        yield Figure(name, f"{workload}: {way}", [their / own for their, own in zip(times[way], ours)], bar,
                     limit=seconds(statistics.median(times[way])), ours=seconds(statistics.median(ours)))

"""partition: the line between two nodes fails, for a while or for good; loses or delays packets; ends in the middle of a frame; or a
process dies whose child keeps its sockets open.

Four ranks on two nodes, each a network namespace (cable.py); the host process is with the leader. What the line survives, the life must
survive, too: it comes to its end and saves it. Where a node is lost, both sides come to their end within the bound, nothing that was committed is
lost, and the next life comes to the right result."""
import math
import os
import signal
import sys
import time

import cable
from kills import EVERY, LAST, begun, end_waits_for
from step import wait_for
from toy import BOUND, STEPS, Bad, newest_step, reported

RANKS = 4  # two a node
LONG = 90.0  # a member is taken for gone after 30 s of silence

# name: (whether the life goes on as if nothing had been, what is done to the cable, for some seconds where it ends again)
FAULTS = {
    "blink": (True, lambda line, seconds: setattr(line, "down", time.monotonic() + seconds)),
    "loss": (True, lambda line, _: setattr(line, "loss", 0.1)),
    "delay": (True, lambda line, _: setattr(line, "delay", 0.04)),
    "off": (False, lambda line, _: setattr(line, "down", math.inf)),
    "cut": (False, lambda line, _: setattr(line, "cut", True)),
    "child": (False, None),
}


def partition(toy, tally, random, full):
    why_not = cable.missing()
    if why_not:
        print(f"partition: only the child that keeps sockets: {why_not}", file=sys.stderr)
    names = ["off", "child", "blink", "cut", "loss", "cut", "delay", "blink"] * (8 if full else 1)
    cases = [(n, name, random.uniform(0, LAST), random.choice((0.5, 1, 3))) for n, name in enumerate(names) if name == "child" or not why_not]
    toy.judge(tally, cases, lambda case: orphan(toy, *case) if case[1] == "child" else disturb(toy, *case))


def disturb(toy, n, name, after, seconds):
    survives, fault = FAULTS[name]
    case = toy.case(f"{n}-{name}")
    run_dir, goes_on = case / "run", case / "goes_on"
    with cable.Cable(n) as line:
        with toy.life(case, "hurt", run_dir, *end_waits_for(goes_on), ranks=RANKS, settings=EVERY, listen=cable.ADDRESSES[0],
                      inside=lambda rank: line.inside(1 if rank is not None and rank >= RANKS // 2 else 0)) as life:
            begun(life)
            time.sleep(after)
            fault(line, seconds)
            goes_on.touch()
            end(life)
            minimum = max([0, *reported(life)])
            if name == "cut" and line.cut:
                raise Bad("stuck", "nothing came by that could be cut\n" + life.log())
            if survives and life.hash() != toy.hash:
                raise Bad("mixed", "another result\n" + life.log())
            if survives and newest_step(run_dir) != STEPS:
                raise Bad("lost", f"the end was not saved: {newest_step(run_dir)}\n" + life.log())
    toy.check_all(run_dir)
    toy.resume(case, run_dir, minimum, restart=1)


def orphan(toy, n, name, after, _):
    """A rank dies; a child that it had made past libc, so that nothing could close Cairn's sockets in it, lives on."""
    case = toy.case(f"{n}-{name}")
    run_dir = case / "run"
    goes_on = case / "goes_on"
    with toy.life(case, "hurt", run_dir, "--clone-at", 10, *end_waits_for(goes_on), ranks=RANKS, settings=EVERY) as life:
        try:
            if not wait_for(lambda: life.line(RANKS - 1, "clone"), BOUND):
                raise Bad("stuck", "the rank has made no child\n" + life.log())
            time.sleep(after)
            life.signal(RANKS - 1, signal.SIGKILL)
            goes_on.touch()
            end(life, but=RANKS - 1)
        finally:
            for rank in range(RANKS):
                if child := life.line(rank, "clone"):
                    os.kill(int(child), signal.SIGKILL)
        minimum = max([0, *reported(life)])
    toy.check_all(run_dir)
    toy.resume(case, run_dir, minimum, restart=1)


def end(life, but=None):
    if not life.join(LONG):
        raise Bad("stuck", f"ranks {life.running()} have not ended\n" + life.log())
    bad = [rank for rank, process in enumerate(life.ranks) if rank != but and process.returncode != 0]
    if bad:
        raise Bad("stuck", f"ranks {bad} did not come to their end\n" + life.log())

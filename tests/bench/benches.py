"""Benches: one function a question; each yields Figures. ALL is what `run` knows, in its order."""
import json
import os
import re
import statistics
import subprocess

from context import Missing, finish, numbers
from figures import Bar, Figure, compare, seconds
from peers import Cairn, CairnLoads, Peer, race

RANKS = 4  # of W1 and W2


def stall(context):
    for workload, rounds in context.rounds_of("bench_stall", context.mib // 2, context.rounds).items():
        yield compare("stall", workload, rounds, Bar(1.1))


def commit(context):
    for workload, rounds in context.rounds_of("bench_commit", context.folder(), context.rounds).items():
        yield compare("commit", workload, rounds, Bar(3))


def drain(context):
    for workload, rounds in context.rounds_of("bench_drain", context.folder(), context.mib, context.rounds).items():
        yield compare("drain", workload, rounds, Bar(0.9, at_least=True), speed=True)


def small_arrays(context):
    for workload, rounds in context.rounds_of("bench_drain", context.folder(), "small", context.rounds).items():
        yield compare("small_arrays", workload, rounds, Bar(0.5, at_least=True), speed=True)


# The limit does less than any restore must: shown beside the others, without a bar.
NOT_LIKE_A_RESTORE = ("identity, nothing kept",)


def restore(context):
    for how in ("hot", "cold"):
        rounds_of = context.rounds_of("bench_restore", context.folder(), context.mib, context.rounds, how)
        for workload, rounds in rounds_of.items():
            bar = None if workload in NOT_LIKE_A_RESTORE else Bar(0.9, at_least=True)
            yield compare("restore", f"{workload}, {how}", rounds, bar, speed=True)


def verify(context):
    for how in ("hot", "cold"):
        rounds_of = context.rounds_of("bench_verify", context.folder(), context.mib, context.rounds, how)
        for workload, rounds in rounds_of.items():
            yield compare("verify", f"{workload}, {how}", rounds, Bar(0.9, at_least=True), speed=True)


def amplification(context):
    """Bytes that all ranks read together, over the unique bytes that they need."""
    for workload, rounds in context.rounds_of("bench_restore", context.folder(), context.mib, 1, "hot").items():
        if workload not in NOT_LIKE_A_RESTORE:
            yield Figure("amplification", workload, [one["read_bytes"] / one["needed_bytes"] for one in rounds], Bar(1.05))


def plan(context, kind, bar):
    for workload, rounds in context.rounds_of("bench_plan", kind, context.rounds).items():
        took = [one["ours_s"] * 1e3 for one in rounds]
        yield Figure(f"plan_{kind}", workload, took, Bar(bar, unit="ms"), ours=f"{statistics.median(took):.3g} ms")


def plan_regular(context):
    yield from plan(context, "regular", 5)


def plan_restore(context):
    yield from plan(context, "restore", 5)


def plan_irregular(context):
    yield from plan(context, "irregular", 20)


def growth(context):
    """How one rank's plan, and what a save has on disk besides the arrays, grow with ranks and arrays."""
    for workload, (one,) in context.rounds_of("bench_plan", "growth", context.rounds).items():
        saved = workload.replace(re.search(r" to \d+", workload)[0], "")
        for plan_of, key in (("alone", "alone_s"), ("restore", "together_s")):
            took = [seconds_ * 1e3 for seconds_ in one[key]]
            yield Figure("growth", f"{workload}: {plan_of}", took, ours=f"{statistics.median(took):.3g} ms")
        for what, key in (("index", "index_bytes"), ("headers", "headers_bytes")):
            yield Figure("growth", f"{saved}: {what}", [one[key]], ours=size(one[key]))
        yield Figure("growth", f"{saved}: files", [one["files"]], ours=str(one["files"]))


def size(value):
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e3:.3g} kB"


def step(context):
    ranks, _ = context.ranks(1, "step", "--rounds", context.rounds)
    with ranks:
        finish(ranks)
        loads, steps = numbers(ranks, "load"), numbers(ranks, "step")
    yield Figure("step", "cairn_step, nothing armed", steps, Bar(20, unit="ns"), limit=f"{statistics.median(loads):.3g} ns",
                 ours=f"{statistics.median(steps):.3g} ns")


def slowdown(context):
    """W5. The bar is for a machine that has a core to spare; without one the drain can only be nice."""
    for busy, bar in ((1, Bar(1.05)), (os.cpu_count(), None)):
        ranks, _ = context.ranks(busy, "slowdown", "--elements", context.mib << 18, "--rounds", context.rounds)
        with ranks:
            finish(ranks)
            idle, draining = numbers(ranks, "idle"), numbers(ranks, "draining")
        rounds = [{"limit_s": a * 1e-9, "ours_s": b * 1e-9} for a, b in zip(idle, draining)]
        yield compare("slowdown", f"{busy} of {os.cpu_count()} cores busy, while a save is written", rounds, bar)


def agreement(context):
    """Boundaries from the request to the one at which all copied."""
    steps = 300 if context.quick else 3000
    ranks, folder = context.ranks(8, "agreement", "--elements", 1024, "--steps", steps, settings={"CAIRN_KEEP": "last=99"})
    with ranks:
        finish(ranks)
        asked = [int(one) for one in numbers(ranks, "asked")]
    events = map(json.loads, (folder / "run/journal.jsonl").read_text().splitlines())
    saved = [event["step"] for event in events if event["event"] == "saved" and event["trigger"] == "request"]
    waits = [at - since for since, at in zip(asked, saved)]
    yield Figure("agreement", "8 ranks, a boundary each 1 ms", waits, Bar(4, unit="steps"), limit="1 step",
                 ours=f"{statistics.median(waits):g} steps")


def memory(context):
    """What a rank's memory grows by over its slots, and over a thousand saves."""
    saves = 50 if context.quick else 1000
    mib = 64
    cairn = Cairn(context, 1, 16, mib << 14)
    pid = cairn.step.ranks[0].pid
    try:
        cairn.measure()
        first = resident(pid)
        for _ in range(saves):
            cairn.measure()
        last = resident(pid)
    finally:
        cairn.close()
    yield Figure("memory", f"of a rank with {mib} MiB, over its two slots", [last - 3 * mib], Bar(64, unit="MiB"), limit=f"{3 * mib} MiB",
                 ours=f"{last:.0f} MiB")
    yield Figure("memory", f"grown after {saves} saves", [last - first], Bar(1, unit="MiB"), limit=f"{first:.1f} MiB", ours=f"{last:.1f} MiB")


def resident(pid):
    """MiB."""
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) / 1024


def s3(context):
    server = context.here.parent / "support/s3_server"
    folder = context.folder() / "server"
    started = subprocess.run([server, "start", folder], stdout=subprocess.PIPE, text=True)
    if started.returncode:
        raise Missing("a server of S3 (see tests/support/s3_server)")
    try:
        settings = dict(line.split("=", 1) for line in started.stdout.splitlines())
        for workload, rounds in context.rounds_of("bench_s3", context.folder(), context.mib // 2, context.rounds, settings=settings).items():
            yield compare("s3", workload, rounds, Bar(0.8, at_least=True), speed=True)
    finally:
        subprocess.run([server, "stop", folder], check=True)


def peers_torch(context):
    script = context.here / "peers_torch.py"
    try:
        peer = Peer([context.python, script, "--check"], context.folder() / "log")
        peer.measure("import")
        peer.close()
    except RuntimeError:
        raise Missing(f"{context.python} cannot import torch and safetensors (see --python)") from None
    for workload, arrays, elements, bar in workloads(context, large=Bar(3, at_least=True), small=Bar(10, at_least=True)):
        folder = context.folder()
        command = [context.python, script, "--folder", folder, "--ranks", RANKS, "--arrays", arrays, "--elements", elements]
        ways = {"dcp.save": bar, "dcp.async_save": bar, "dcp.async_save by a process": bar, "torch.save": bar, "safetensors": bar}
        yield from peer_figures(context, "peers_torch", workload, arrays, elements, Peer(command, folder / "log"), ways,
                                {"dcp.async_save, stall": bar, "dcp.async_save by a process, stall": bar})
        folder = context.folder()
        command = [context.python, script, "--folder", folder, "--ranks", RANKS, "--arrays", arrays, "--elements", elements]
        loads = dict.fromkeys(("dcp.load", "torch.load", "safetensors load"), Bar(1, at_least=True))
        yield from peer_figures(context, "peers_torch", workload, arrays, elements, Peer(command, folder / "log"), loads, {}, CairnLoads)


def peers_hpc(context):
    program = context.program("bench_peers_hpc")
    for workload, arrays, elements, bar in workloads(context, large=Bar(1, at_least=True), small=Bar(10, at_least=True)):
        folder = context.folder()
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", RANKS, program, folder, arrays, elements]
        yield from peer_figures(context, "peers_hpc", workload, arrays, elements, Peer(command, folder / "log"),
                                {"MPI-IO": bar, "HDF5": bar}, {})


def workloads(context, large, small):
    """W1 and W2: (name, arrays, elements of an array, bar)."""
    yield "W1", 48, context.mib * (1 << 18) // 48 // RANKS * RANKS, large
    yield "W2", 1000 if context.quick else 10000, 4096, small


def peer_figures(context, name, workload, arrays, elements, peer, ways, stalls, ours=Cairn):
    try:
        cairn = ours(context, RANKS, arrays, elements)
        try:
            yield from race(name, workload, cairn, peer, ways, stalls, context.rounds)
        finally:
            cairn.close()
    finally:
        peer.close()


ALL = {one.__name__: one for one in (stall, drain, small_arrays, commit, restore, verify, amplification, plan_regular, plan_restore, plan_irregular, growth,
                                     step, slowdown, agreement,
                                     memory, s3, peers_torch, peers_hpc)}

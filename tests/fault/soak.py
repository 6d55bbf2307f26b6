"""soak: many saves over lives that end by kill -9, meant for builds with sanitizers: memory, threads, descriptors and disk use stay flat.

A program saves every few steps and waits for it. Each life but the last one is killed when it has made its share of the saves: one rank, and
then the rest, as under srun. The last life comes to the right result, and leaves without a report of its sanitizer (a report of any
process fails). `tried` counts saves; the first faulty one ends the test."""
import os
import re
import signal
import statistics

from step import wait_for
from toy import BOUND, Bad, Toy, committed, reported

RANKS = 2
EVERY = 4  # steps a save
WARM = 3  # saves after which a life has all that it will ever hold
FEW = 3  # looks, or saves, of which no more can be told than how a save goes
GROWTH_KB = 4096
REPORT = re.compile(r"(AddressSanitizer|ThreadSanitizer|LeakSanitizer|runtime error):?.*")


def soak(toy, tally, random, full):
    shares = [400] + [50] * 12 if full else [8, 4, 8]  # saves of each life
    long = Toy(toy.programs, toy.folder, ["--n", 3001, "--steps", EVERY * sum(shares), "--step-us", 1000, "--save-every", EVERY])
    run_dir = long.folder / "run"
    for restart, share in enumerate(shares):
        case = f"life {restart}"
        try:
            saves = live(long, run_dir, restart, share if restart < len(shares) - 1 else None, random)
        except Bad as bad:
            tally.count(bad.outcome, case, str(bad))
            return
        tally.survive(saves)
    rest = [name for name in os.listdir(run_dir) if name.startswith(("dead-", "removed-", "step-")) and name not in committed(run_dir)]
    temporary = [name for name in os.listdir(run_dir) if name.startswith(".tmp-")]
    # A kill may leave one file in the making.
    if rest or len(committed(run_dir)) != 2 or len(temporary) >= len(shares):
        tally.count("accepted_bad", "the end", f"left behind: {sorted(os.listdir(run_dir))}")


def live(toy, run_dir, restart, share, random):
    """One life, killed after `share` saves (None = it comes to its end); how many it made."""
    before = max((step_of(name) for name in committed(run_dir)), default=0) if restart else 0
    # No quarantine: freed memory must not look like a leak.
    # Far from its end when it has made its share, however late that is seen; some saves may be dropped before.
    hold = ["--hold-at", before + EVERY * (share + 2), "--hold-file", toy.folder / "never"] if share else []
    with toy.life(toy.folder, f"life{restart}", run_dir, *hold, ranks=RANKS, restart=restart,
                  settings={"ASAN_OPTIONS": "quarantine_size_mb=1:detect_leaks=1"}) as life:
        looks = []  # (saves so far, what each rank holds), many for each save

        def look():
            saves = len(reported(life))
            try:
                looks.append((saves, [usage(process.pid) for process in life.ranks]))
            except (OSError, TypeError):
                return True  # one of them has just ended
            return saves > seen or len(life.running()) < RANKS

        seen = 0
        while len(life.running()) == RANKS and (share is None or seen < share):
            if not wait_for(look, BOUND):
                raise Bad("stuck", "no further save\n" + life.log())
            seen = len(reported(life))
        if share is None:
            if not life.join(BOUND) or any(process.returncode for process in life.ranks):
                raise Bad("stuck", f"exit status {[p.returncode for p in life.ranks]}\n" + life.log())
            if life.hash() != toy.hash:
                raise Bad("mixed", "another result\n" + life.log())
        elif seen < share:
            raise Bad("stuck", f"the life ended after {seen} saves\n" + life.log())
        else:
            life.signal(random.randrange(RANKS), signal.SIGKILL)
            life.kill()
        if report := REPORT.search(life.log()):
            raise Bad("accepted_bad", f"{report[0]}\n" + life.log())
        if life.resumed() < before:
            raise Bad("lost", f"resumed at step {life.resumed()}; step {before} was committed\n" + life.log())
        saves = len(reported(life))
    flat([look for look in looks if look[0] >= WARM], f"life {restart}")
    toy.check_all(run_dir)
    return saves


def step_of(name):
    return int(name.split(".")[0].removeprefix("step-"))


def usage(pid):
    with open(f"/proc/{pid}/status") as status:
        text = status.read()
    value = {name: int(re.search(rf"^{name}:\s+(\d+)", text, re.M)[1]) for name in ("VmRSS", "Threads")}
    return value | {"descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


def flat(looks, life):
    """Threads and descriptors come and go within a save; what is lost by each save lifts even their least number above the first ones' largest."""
    half = (WARM + max((saves for saves, _ in looks), default=0)) // 2
    for rank in range(RANKS):
        early = [held[rank] for saves, held in looks if saves <= half]
        late = [held[rank] for saves, held in looks if saves > half]
        if min(len(early), len(late), half - WARM + 1) < FEW:
            continue
        for name in ("Threads", "descriptors"):
            if min(s[name] for s in late) > max(s[name] for s in early):
                raise Bad("accepted_bad", f"{life}: rank {rank} gathers {name.lower()}: {[s[name] for s in early + late]}")
        grown = statistics.median(s["VmRSS"] for s in late) - statistics.median(s["VmRSS"] for s in early)
        if grown > GROWTH_KB:
            raise Bad("accepted_bad", f"{life}: rank {rank} grows by {grown} kB: {[s['VmRSS'] for s in early + late]}")

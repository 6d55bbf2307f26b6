"""killrank, killleader, pause: processes that die or stand still at random moments of a run that saves all the time; phases: in each phase
of a save.

Nobody waits past the bound, nothing that was committed is lost, no checkpoint mixes steps, and the next life comes to the right result."""
import signal
import time

from step import stopped, wait_for
from toy import BOUND, STEPS, Bad, Fault, Toy, newest_step, reported

RANKS = 4
EVERY = {"CAIRN_CHECKPOINT": "5steps"}
LAST = 0.15  # seconds, about the time that the steps take


def killrank(toy, tally, random, full):
    """One rank that is not the leader is killed; the others come to their end without it (srun would kill them, mpirun too)."""
    cases = [(n, random.randrange(1, RANKS), random.uniform(0, LAST)) for n in range(200 if full else 10)]
    toy.judge(tally, cases, lambda case: die(toy, *case))


def killleader(toy, tally, random, full):
    cases = [(n, 0, random.uniform(0, LAST)) for n in range(200 if full else 10)]
    toy.judge(tally, cases, lambda case: die(toy, *case))


def die(toy, n, rank, after):
    case = toy.case(f"{n}")
    run_dir = case / "run"
    goes_on = case / "goes_on"
    with toy.life(case, "hurt", run_dir, *end_waits_for(goes_on), ranks=RANKS, settings=EVERY) as life:
        begun(life)
        time.sleep(after)
        life.signal(rank, signal.SIGKILL)
        goes_on.touch()
        if not life.join(BOUND):
            raise Bad("stuck", f"ranks {life.running()} have not ended\n" + life.log())
        bad = [r for r, p in enumerate(life.ranks) if r != rank and p.returncode != 0]
        if bad:
            raise Bad("stuck", f"ranks {bad} did not come to their end\n" + life.log())
        minimum = max([0, *reported(life)])
    toy.check_all(run_dir)
    toy.resume(case, run_dir, minimum, restart=1)
    toy.check_all(run_dir)


def pause(toy, tally, random, full):
    """A rank, the leader as often as any other, stands still for a while and goes on: the same life goes on saving, up to its end."""
    cases = [(n, n % RANKS, random.uniform(0, LAST), (5, 20, 60)[n % 3] if full else (1, 4)[n % 2])
             for n in range(60 if full else 8)]
    toy.judge(tally, cases, lambda case: stand_still(toy, *case))


def stand_still(toy, n, rank, after, seconds):
    case = toy.case(f"{n}")
    run_dir = case / "run"
    goes_on = case / "goes_on"
    with toy.life(case, "hurt", run_dir, *end_waits_for(goes_on), ranks=RANKS, settings=EVERY) as life:
        begun(life)
        time.sleep(after)
        life.signal(rank, signal.SIGSTOP)
        goes_on.touch()
        time.sleep(seconds)
        life.signal(rank, signal.SIGCONT)
        if not life.join(BOUND):
            raise Bad("stuck", f"ranks {life.running()} have not ended\n" + life.log())
        if any(p.returncode for p in life.ranks):
            raise Bad("stuck", "a rank did not come to its end\n" + life.log())
        if life.hash() != toy.hash:
            raise Bad("mixed", "another result\n" + life.log())
        minimum = max([0, *reported(life)])
    if newest_step(run_dir) != STEPS:
        raise Bad("lost", f"the life that went on did not save its end: {newest_step(run_dir)}\n" + life.log())
    toy.check_all(run_dir)
    toy.resume(case, run_dir, minimum, restart=1)


def end_waits_for(path):
    """Arguments for the toy: it does not come to its end before what is to disturb it, however fast it is."""
    return "--hold-at", STEPS - 10, "--hold-file", path


def begun(life):
    if not wait_for(lambda: life.resumed() is not None or not life.running(), BOUND):
        raise Bad("stuck", "the ranks have not begun\n" + life.log())


# phase: where the process is stopped (action, call, path, rank; the toy itself for None), and what proves afterwards that it was there.
PHASES = {
    "filling": (None, lambda seen: seen.sidecar == FILLING),
    "staged": (("stop", "mkdir", "*/step-*", 0), lambda seen: seen.sidecar == STAGED and not seen.attempts),
    "drain": (("stop", "create", "*.sums", None), lambda seen: seen.sidecar == STAGED and seen.attempts and not seen.ready),
    "before the rename": (("stop", "rename", "*/manifest.json", 0), lambda seen: seen.ready and not seen.renamed),
    "after the rename": (("stop-after", "rename", "*/manifest.json", 0), lambda seen: seen.renamed),
}
FILLING, STAGED = 1, 2  # docs/design/staging.md, section 5
RANK_AT, STATE_AT = 56, 96


def phases(toy, tally, random, full):
    """The leader, and another rank, are killed in each phase of a save; the rest goes with them, as under srun."""
    wide = Toy(toy.programs, toy.folder, ["--n", 20_000, "--steps", 40, "--step-us", 1000])
    places = dict.fromkeys(PHASES, 0)

    def work(case):
        kill_in(wide, *case)
        places[case[0]] += 1

    toy.judge(tally, [(phase, rank, n) for n in range(20 if full else 1) for phase in PHASES for rank in (0, 1)], work)
    tally.notes.append("kills: " + ", ".join(f"{phase} {count}" for phase, count in places.items()))


def kill_in(toy, phase, rank, n):
    where, proves = PHASES[phase]
    case = toy.case(f"{phase.replace(' ', '-')}-{rank}-{n}")
    run_dir, local = case / "run", case / "local"
    local.mkdir()
    options, more = {}, []
    stops = rank
    if where:
        action, calls, path, who = where
        stops = rank if who is None else who
        options = {"fault": Fault(case, run_dir, calls, action=action, path=path, first=1).variables, "faulty": [stops]}
    else:
        more = ["--stop-in-copy"]
    with toy.life(case, "killed", run_dir, "--save-at", 10, *more, settings={"CAIRN_LOCAL": str(local)}, **options) as life:
        if not wait_for(lambda: stopped(life.ranks[stops].pid), BOUND):
            raise Bad("stuck", "the process did not come there\n" + life.log())
        life.signal(rank, signal.SIGKILL)
        life.kill()
        minimum = max([0, *reported(life)])
    seen = Remains(run_dir, local, rank)
    if not proves(seen):
        raise Bad("stuck", f"it was killed elsewhere: {vars(seen)}\n" + life.log())
    toy.check_all(run_dir)
    if toy.resume(case, run_dir, minimum, restart=1) == 0 and seen.renamed:
        raise Bad("lost", f"a checkpoint that had its name was not found\n" + life.log())
    toy.check_all(run_dir)


class Remains:
    """What a killed life left behind."""

    def __init__(self, run_dir, local, rank):
        contents = [path.read_bytes() for path in local.glob("*/*/slot*.sidecar")]
        self.sidecar = max((c[STATE_AT] for c in contents if c[STATE_AT] and c[RANK_AT] == rank), default=0)
        attempts = list(run_dir.glob("step-*"))
        self.attempts = len(attempts)
        self.ready = any(list(path.glob(".tmp-manifest.json-*")) for path in attempts)
        self.renamed = any((path / "manifest.json").exists() for path in attempts)

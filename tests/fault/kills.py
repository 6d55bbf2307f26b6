"""killrank, killleader, pause: processes that die or stand still at random moments of a run that saves all the time.

Nobody waits past the bound, nothing that was committed is lost, no checkpoint mixes steps, and the next life comes to the right result."""
import signal
import time

from step import wait_for
from toy import BOUND, STEPS, Bad, newest_step, reported

RANKS = 4
EVERY = {"CAIRN_CHECKPOINT": "5steps"}
LAST = 0.25  # seconds, about the time that the steps take


def killrank(toy, tally, random, full):
    """One rank that is not the leader is killed; the others come to their end without it (srun would kill them, mpirun too)."""
    cases = [(n, random.randrange(1, RANKS), random.uniform(0, LAST)) for n in range(200 if full else 12)]
    toy.judge(tally, cases, lambda case: die(toy, *case))


def killleader(toy, tally, random, full):
    cases = [(n, 0, random.uniform(0, LAST)) for n in range(200 if full else 12)]
    toy.judge(tally, cases, lambda case: die(toy, *case))


def die(toy, n, rank, after):
    case = toy.case(f"{n}")
    run_dir = case / "run"
    with toy.life(case, "hurt", run_dir, ranks=RANKS, settings=EVERY) as life:
        begun(life)
        time.sleep(after)
        life.signal(rank, signal.SIGKILL)
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
    with toy.life(case, "hurt", run_dir, ranks=RANKS, settings=EVERY) as life:
        begun(life)
        time.sleep(after)
        life.signal(rank, signal.SIGSTOP)
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


def begun(life):
    if not wait_for(lambda: life.resumed() is not None or not life.running(), BOUND):
        raise Bad("stuck", "the ranks have not begun\n" + life.log())

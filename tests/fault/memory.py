"""memory: a memory cgroup that is tight for a run that saves all the time, and a SIGKILL of all of it at a random moment.

Nobody is killed for want of memory (the ranks measure the room before they take any), nothing that was committed is lost, and neither a rank that
writes through nor one that stages in memory leaves anything behind once the next life has come and gone."""
import os
import pathlib
import re
import secrets
import shutil
import signal
import time

from kills import EVERY, begun, end_waits_for
from step import wait_for
from toy import BOUND, STEPS, Bad, Toy, reported

RANKS = 2  # one node of the toy: a cgroup is what one node gives to a job
ARRAY = 3_000_000  # elements: 12 MB in each rank
MIB = 1 << 20
# MiB that are left beside the program: from too little for a buffer (nothing is saved) over writing through to two slots a rank.
ROOMS = (8, 40, 70, 90, 140)


class Cgroup:
    """A memory cgroup of version 1 below our own; removed at the end of `with`, with what is still in it killed."""

    def __init__(self, limit):
        self.path = own_cgroup() / f"cairn-fault-{secrets.token_hex(4)}"
        self.path.mkdir()
        (self.path / "memory.limit_in_bytes").write_text(str(limit))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in (self.path / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        if not wait_for(lambda: not (self.path / "cgroup.procs").read_text()):
            raise RuntimeError(f"processes stay in {self.path}")
        self.path.rmdir()

    def inside(self, rank):
        """What goes in front of a rank's command: it enters before it takes any memory."""
        return [] if rank is None else ["/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self.path)]

    def oom_kills(self):
        return int(re.search(r"^oom_kill (\d+)$", (self.path / "memory.oom_control").read_text(), re.M)[1])


def own_cgroup():
    """The folder of the memory cgroup that this process is in; None without the controller of version 1."""
    path = re.search(r"^\d+:[^:]*\bmemory\b[^:]*:(.*)$", pathlib.Path("/proc/self/cgroup").read_text(), re.M)
    folder = path and pathlib.Path("/sys/fs/cgroup/memory" + path[1])
    return folder if folder and folder.is_dir() else None


def missing():
    """Why no cgroup can be had here; "" when one can."""
    if own_cgroup() is None:
        return "there is no memory controller of cgroup version 1"
    try:
        with Cgroup(64 * MIB):
            return ""
    except OSError as error:
        return f"no memory cgroup can be made: {error}"


def memory(toy, tally, random, full):
    why_not = missing()
    if why_not:
        return tally.skip(why_not)
    big = Toy(toy.programs, toy.folder, ["--n", ARRAY, "--steps", STEPS, "--step-us", 1000])
    bare = rank_bytes(big)
    cases = [(n, ROOMS[n % len(ROOMS)] * MIB + random.randrange(8 * MIB), random.choice(("none", "shm")), random.uniform(0, 2))
             for n in range(60 if full else 6)]
    big.judge_lists(tally, [cases], lambda case: squeeze(big, bare, *case))


def rank_bytes(toy):
    """What all ranks take without any slot: Slurm's limit leaves no room for one."""
    with Cgroup(1 << 40) as cgroup:
        case = toy.case("bare")
        with toy.life(case, "bare", case / "run", *end_waits_for(case / "never"), ranks=RANKS, settings={"SLURM_MEM_PER_NODE": "1"},
                      inside=cgroup.inside) as life:
            begun(life)
            return RANKS * max(resident(p.pid) for p in life.ranks)


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) << 10


def squeeze(toy, bare, n, room, local, after):
    case = toy.case(f"{n}")
    run_dir = case / "run"
    shm = pathlib.Path("/dev/shm") / f"cairn-fault-{secrets.token_hex(4)}"
    shm.mkdir()
    settings = EVERY | {"CAIRN_LOCAL": str(shm) if local == "shm" else "none"}
    try:
        with Cgroup(bare + room) as cgroup:
            with toy.life(case, "hurt", run_dir, ranks=RANKS, settings=settings, inside=cgroup.inside) as life:
                begun(life)
                time.sleep(after)
                if cgroup.oom_kills():
                    raise Bad("stuck", f"{cgroup.oom_kills()} ranks were killed for want of memory, with {room} bytes of room\n" + life.log())
                life.kill()
                minimum = max([0, *reported(life)])
            toy.check_all(run_dir)
            with toy.life(case, "again", run_dir, ranks=RANKS, settings=settings, restart=1, inside=cgroup.inside) as life:
                if not life.join(BOUND):
                    raise Bad("stuck", f"ranks {life.running()} have not ended\n" + life.log())
                if cgroup.oom_kills() or any(p.returncode for p in life.ranks):
                    raise Bad("stuck", f"{cgroup.oom_kills()} killed for want of memory, with {room} bytes of room\n" + life.log())
                if life.resumed() < minimum:
                    raise Bad("lost", f"resumed at {life.resumed()}; step {minimum} was committed\n" + life.log())
                if life.hash() != toy.hash:
                    raise Bad("mixed", "another result\n" + life.log())
        toy.check_all(run_dir)
        left = [entry.name for entry in os.scandir(run_dir) if entry.name.startswith((".", "dead-", "removed-"))]
        left += [entry.path for folder in shm.iterdir() for entry in os.scandir(folder)]
        if left:
            raise Bad("stuck", f"left behind: {left}\n" + life.log())
    finally:
        shutil.rmtree(shm)

"""nospace, eio: calls that fail, come short, or fail after they did their work. The job goes on to the right result; what was committed stays.
refuse: what stops a restart without saying anything about the checkpoint."""
import errno
import os
import re
import shutil

from step import Step
from toy import BOUND, STEPS, Bad, Fault, NotHit, committed, copy_run, kind_of, newest_step, reported

EVER = 1 << 40
A_WHILE = 30  # calls
TAKES_SPACE = "create,write,allocate,mkdir,rename,link,fsync"
INTERRUPTIBLE = "create,write,allocate,fsync,read"
NAMES = "create,mkdir,rename,link,unlink"
CHANGES = None  # every call but reads

# (what happens, its errno, for how many calls, to which calls)
NOSPACE = [("fail", errno.ENOSPC, 1, TAKES_SPACE), ("fail", errno.ENOSPC, EVER, TAKES_SPACE),
           ("fail", errno.EDQUOT, A_WHILE, TAKES_SPACE), ("short", 0, EVER, "write")]
EIO = [("fail", errno.EIO, 1, CHANGES), ("fail", errno.EIO, 1, "fsync"), ("fail", errno.EIO, EVER, CHANGES),
       ("fail", errno.ESTALE, A_WHILE, CHANGES), ("fail", errno.EINTR, 1, INTERRUPTIBLE), ("late", errno.EIO, 1, NAMES),
       ("late", errno.ESTALE, A_WHILE, "rename"), ("fail", errno.EIO, 1, "read"), ("fail", errno.ESTALE, A_WHILE, "read"),
       ("slow", 0, EVER, CHANGES), ("hang", 0, 1, CHANGES)]


def nospace(toy, tally, random, full):
    inject(toy, tally, random, NOSPACE, None if full else 2)


def eio(toy, tally, random, full):
    inject(toy, tally, random, EIO, None if full else 1)


def inject(toy, tally, random, manners, points):
    """Two lives of a run, as in syscalls.py, each manner at `points` calls of each (None = at all of them)."""
    bases = {"first": None, "later": toy.make_run()}

    def run(case, life_name, **plan):
        run_dir, before = toy.start(case, bases[life_name])
        fault = Fault(case, run_dir, **plan)
        with toy.life(case, "hurt", run_dir, "--save-at", before + 16, before + 40, restart=0 if before == 0 else 1,
                      fault=fault.variables, settings={"CAIRN_SAVE_TIMEOUT": "3s"}) as life:
            if not life.join(BOUND):
                raise Bad("stuck", f"ranks {life.running()} have not ended\n" + life.log())
        return run_dir, before, fault, life

    traces, cases = {}, []
    for life_name in bases:
        for manner in manners:
            calls = manner[3]
            if (life_name, calls) not in traces:
                *_, fault, _ = run(toy.case(f"{life_name}-{calls}"), life_name, **({"calls": calls} if calls else {}))
                traces[life_name, calls] = fault.trace()
            trace = traces[life_name, calls]
            # While the directory is opened there is nothing to do but wait for it; a save that hangs is given up.
            begin = first_save(trace) if manner[0] == "hang" else 0
            chosen = range(begin, len(trace)) if points is None else sample(trace, begin, points, random)
            cases += [(life_name, *manner, n + 1) for n in chosen]

    def work(which):
        life_name, action, error, count, calls, n = which
        case = toy.case(f"{life_name}-{action}-{errno.errorcode.get(error, 0)}-{count}-{calls}-{n}")
        plan = {"action": action, "errno": error, "first": n, "last": n + count - 1} | ({"calls": calls} if calls else {})
        run_dir, before, fault, life = run(case, life_name, **plan)
        if fault.faults() == 0:
            raise NotHit
        where = f"at {fault.trace()[n - 1]}\n{life.log()}"
        minimum = max([before, *reported(life)])
        if newest_step(run_dir) < minimum:
            raise Bad("lost", f"step {minimum} was committed; there are {committed(run_dir)} {where}")
        if any((run_dir / "strikes").glob("*")):
            raise Bad("accepted_bad", f"a good checkpoint was marked as damaged {where}")
        reads = calls == "read" or calls == INTERRUPTIBLE
        if any(p.returncode != 0 for p in life.ranks):
            # What cannot be read at the start leaves one way to lose nothing: to stop, with the reason.
            if not (reads and all(p.returncode in (3, 4) for p in life.ranks)):
                raise Bad("stuck", f"the job did not go on: {[p.returncode for p in life.ranks]} {where}")
        elif life.hash() != toy.hash:
            raise Bad("mixed", f"the job went on to another result {where}")
        elif count == 1 and kind_of(*traces[life_name, calls][n - 1])[0] != "read" and earlier_than_last_save(fault.trace(), n) \
                and newest_step(run_dir) != STEPS:
            raise Bad("lost", f"one failure, and no later save succeeded {where}")
        if action == "fail" and calls == "fsync":
            call, path = fault.trace()[n - 1]
            if not os.path.isdir(path) and (call, path) in fault.trace()[n:]:
                raise Bad("accepted_bad", f"an fsync that had failed was tried again {where}")
        if action == "hang" and earlier_than_last_save(fault.trace(), n) and "no save" not in life.log():
            raise Bad("stuck", f"no save was given up {where}")
        toy.check_all(run_dir)
        toy.resume(case, run_dir, minimum, restart=2)
        toy.check_all(run_dir)

    toy.judge(tally, cases, work)


def sample(trace, begin, points, random):
    """Calls of different purposes, from `begin` on."""
    by_kind = {}
    for n, (call, path) in list(enumerate(trace))[begin:]:
        by_kind.setdefault(kind_of(call, path), []).append(n)
    kinds = random.sample(list(by_kind), min(points, len(by_kind)))
    return sorted(random.choice(by_kind[kind]) for kind in kinds)


def first_save(trace):
    return next(n for n, (call, path) in enumerate(trace) if call == "mkdir" and "/step-" in path)


def earlier_than_last_save(trace, n):
    """Whether call n comes before the save at the end of the life, which begins with the folder of its attempt."""
    begins = [i for i, (call, path) in enumerate(trace) if call == "mkdir" and f"step-{STEPS:012d}" in path]
    return bool(begins) and n <= begins[-1]


def refuse(toy, tally, random, full):
    """What stops a restart and says nothing about the checkpoint: it is not marked, nothing is changed, and the next life resumes from it."""
    base = toy.make_run()
    newest = committed(base)[0]

    def another_shape(case, run_dir):
        return Step(toy.programs, case / "hurt", run_dir, ["--n", 3002], 2, restart=1)

    def no_permission(case, run_dir):
        fault = Fault(case, run_dir, "open", action="fail", errno=errno.EACCES, first=1, last=EVER, path=f"*/{newest}/*")
        return toy.life(case, "hurt", run_dir, restart=1, fault=fault.variables)

    def stale_handle(case, run_dir):
        fault = Fault(case, run_dir, "open", action="fail", errno=errno.ESTALE, first=1, last=EVER, path=f"*/{newest}/shard*")
        return toy.life(case, "hurt", run_dir, restart=1, fault=fault.variables, faulty=[1])

    def no_mount(case, run_dir):
        # The user's registry of runs, which is elsewhere, knows that this job has saved there.
        state = {"XDG_STATE_HOME": str(case / "state")}
        with toy.life(case, "before", run_dir, restart=1, settings=state) as life:
            life.join(BOUND)
        run_dir.rename(case / "unmounted")
        run_dir.mkdir()
        return toy.life(case, "hurt", run_dir, restart=2, settings=state)

    cases = {"another shape": (another_shape, r"3001.*3002"), "no permission": (no_permission, r"[Pp]ermission denied"),
             "stale handle": (stale_handle, r"[Ss]tale file handle"), "no mount": (no_mount, r"mount")}

    def work(name):
        start, says = cases[name]
        case = toy.case(name.replace(" ", "-"))
        run_dir = copy_run(base, case / "run")
        life = start(case, run_dir)
        before = contents(case / "unmounted" if name == "no mount" else run_dir)
        with life:
            if not life.join(BOUND):
                raise Bad("stuck", "ranks have not ended\n" + life.log())
            if not all(process.returncode in (3, 4) for process in life.ranks):
                raise Bad("lost", f"it did not stop: {[p.returncode for p in life.ranks]}\n" + life.log())
            if not re.search(says, life.log()):
                raise Bad("accepted_bad", "it does not say why\n" + life.log())
        if name == "no mount":
            shutil.rmtree(run_dir)
            (case / "unmounted").rename(run_dir)
        if any((run_dir / "strikes").glob("*")):
            raise Bad("accepted_bad", "a good checkpoint was marked as damaged\n" + life.log())
        minimum = newest_step(run_dir)
        if contents(run_dir) != before:
            raise Bad("lost", "a checkpoint was changed\n" + life.log())
        toy.resume(case, run_dir, minimum, restart=3)

    toy.judge(tally, list(cases), work)


def contents(run_dir):
    return {str(path.relative_to(run_dir)): path.read_bytes() for name in committed(run_dir) for path in (run_dir / name).iterdir()}

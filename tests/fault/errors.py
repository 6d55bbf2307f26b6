"""nospace, eio: calls that fail, come short, or fail after they did their work. The job goes on to the right result; what was committed stays."""
import errno

from toy import BOUND, STEPS, Bad, Fault, NotHit, committed, kind_of, newest_step, reported

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
    inject(toy, tally, random, NOSPACE, None if full else 6)


def eio(toy, tally, random, full):
    inject(toy, tally, random, EIO, None if full else 3)


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

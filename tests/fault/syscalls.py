"""syscalls: SIGKILL at every call by which a life changes its directory, one by one; and at every block that goes to the kernel or comes back."""
import re
import signal

from step import wait_for
from toy import BOUND, Bad, Fault, NotHit, committed, kind_of, newest_step, reported

REMOVED = re.compile(r"removed-e\d+-(step-.*)")
SAMPLE = 12  # points of each life and manner in the short form
BLOCK_CALLS = "submit,complete"
BLOCKS = 4  # the same, of blocks


def syscalls(toy, tally, random, full):
    """Two lives are killed: the first one of a run, and one that takes over a run with two checkpoints and half of a third, so that claim,
    take-over, restore, save, commit, pruning and end are all hit. The calls of both ranks count in one row. Each is replaced by the kill,
    or the kill comes in its middle (half of a write) or right after it. The other rank is killed then, too, as srun does.

    io_uring makes no call for a write: there the kill comes before and after each block is submitted, and before each completion is looked
    at, by a libcairn.so that says so (library/write_engine.cc)."""
    bases = {"first": None, "later": toy.make_run()}

    def run(case, life_name, writer="pwrite", **plan):
        run_dir, before = toy.start(case, bases[life_name])
        fault = Fault(case, run_dir, **plan)
        if plan.get("calls") == BLOCK_CALLS:
            fault.variables["LD_LIBRARY_PATH"] = str(toy.programs.library.parent)
        with toy.life(case, "killed", run_dir, "--save-at", before + 16, before + 40, restart=0 if before == 0 else 1,
                      fault=fault.variables, settings={"CAIRN_WRITER": writer}) as life:
            if not wait_for(lambda: not life.running() or any(p.poll() == -signal.SIGKILL for p in life.ranks), BOUND):
                raise Bad("stuck", "ranks have not ended\n" + life.log())
        return run_dir, max([before, *reported(life)]), fault, life

    cases = []
    for life_name in bases:
        *_, fault, _ = run(toy.case(life_name), life_name)
        trace = fault.trace()
        for action in ("kill", "torn"):
            points = range(len(trace)) if full else sample(trace, random)
            cases += [(life_name, "pwrite", None, action, n + 1) for n in points]
        *_, fault, _ = run(toy.case(life_name + "-blocks"), life_name, "io_uring", calls=BLOCK_CALLS)
        trace = fault.trace()
        if {call for call, _ in trace} != {"submit", "complete"}:
            raise RuntimeError(f"blocks do not tell of themselves: {trace}")
        for action in ("kill", "torn"):
            points = range(len(trace)) if full else random.sample(range(len(trace)), BLOCKS)
            cases += [(life_name, "io_uring", BLOCK_CALLS, action, n + 1) for n in points]

    def work(which):
        life_name, writer, calls, action, n = which
        case = toy.case("-".join(map(str, which)))
        plan = {"action": action, "first": n} | ({"calls": calls} if calls else {})
        run_dir, minimum, fault, life = run(case, life_name, writer, **plan)
        if fault.faults() == 0:
            raise NotHit
        if newest_step(run_dir) < minimum:
            raise Bad("lost", f"step {minimum} was committed; there are {committed(run_dir)} after {fault.trace()[n - 1]}\n" + life.log())
        toy.check_all(run_dir)
        left = run_dir.iterdir() if run_dir.exists() else []  # the first call makes it
        removed = {match[1] for path in left if (match := REMOVED.fullmatch(path.name))}
        toy.resume(case, run_dir, minimum, restart=2)
        toy.check_all(run_dir)
        if back := removed & set(committed(run_dir)):
            raise Bad("accepted_bad", f"{back} were being removed when the life was killed, and are back\n" + life.log())

    toy.judge(tally, cases, work)


def sample(trace, random):
    """Points of as many different purposes as there are places, the commit always among them."""
    by_kind = {}
    for n, (call, path) in enumerate(trace):
        by_kind.setdefault(kind_of(call, path), []).append(n)
    always = [(call, name) for call, name in by_kind if "manifest.json" in name]
    others = random.sample([kind for kind in by_kind if kind not in always], SAMPLE - len(always))
    return sorted(random.choice(by_kind[kind]) for kind in always + others)

"""syscalls: SIGKILL at every call by which a life changes its directory, one by one."""
import signal

from step import wait_for
from toy import BOUND, Bad, Fault, NotHit, committed, kind_of, newest_step, reported

SAMPLE = 12  # points of each life and manner in the short form


def syscalls(toy, tally, random, full):
    """Two lives are killed: the first one of a run, and one that takes over a run with two checkpoints and half of a third, so that claim,
    take-over, restore, save, commit, pruning and end are all hit. The calls of both ranks count in one row. Each is replaced by the kill,
    or the kill comes in its middle (half of a write) or right after it. The other rank is killed then, too, as srun does."""
    bases = {"first": None, "later": toy.make_run()}

    def run(case, life_name, **plan):
        run_dir, before = toy.start(case, bases[life_name])
        fault = Fault(case, run_dir, **plan)
        with toy.life(case, "killed", run_dir, "--save-at", before + 16, before + 40, restart=0 if before == 0 else 1,
                      fault=fault.variables) as life:
            if not wait_for(lambda: not life.running() or any(p.poll() == -signal.SIGKILL for p in life.ranks), BOUND):
                raise Bad("stuck", "ranks have not ended\n" + life.log())
        return run_dir, max([before, *reported(life)]), fault, life

    cases = []
    for life_name in bases:
        *_, fault, _ = run(toy.case(life_name), life_name)
        trace = fault.trace()
        for action in ("kill", "torn"):
            points = range(len(trace)) if full else sample(trace, random)
            cases += [(life_name, action, n + 1) for n in points]

    def work(which):
        life_name, action, n = which
        case = toy.case(f"{life_name}-{action}-{n}")
        run_dir, minimum, fault, life = run(case, life_name, action=action, first=n)
        if fault.faults() == 0:
            raise NotHit
        if newest_step(run_dir) < minimum:
            raise Bad("lost", f"step {minimum} was committed; there are {committed(run_dir)} after {fault.trace()[n - 1]}\n" + life.log())
        toy.check_all(run_dir)
        toy.resume(case, run_dir, minimum, restart=2)
        toy.check_all(run_dir)

    toy.judge(tally, cases, work)


def sample(trace, random):
    """Points of as many different purposes as there are places, the commit always among them."""
    by_kind = {}
    for n, (call, path) in enumerate(trace):
        by_kind.setdefault(kind_of(call, path), []).append(n)
    always = [(call, name) for call, name in by_kind if "manifest.json" in name]
    others = random.sample([kind for kind in by_kind if kind not in always], SAMPLE - len(always))
    return sorted(random.choice(by_kind[kind]) for kind in always + others)

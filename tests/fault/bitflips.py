"""bitflips: one bit of one file turned over. Found, named, and fallen back from or refused; never taken for good."""
import os
import pathlib
import shutil

from toy import BOUND, CHECKPOINT, Bad, committed, copy_run

# Files of the run's directory itself whose damage a restart may answer by stopping: who owns the run, or what it is, cannot be told.
MAY_STOP = ("RUN", "EPOCH-")


def bitflips(toy, tally, random, full):
    base = toy.make_run()
    newest, older = committed(base)
    flips_verified, flips_restored = (10000, 300) if full else (200, 24)

    # Every byte of a checkpoint is covered by `cairn verify`: random bits of random files.
    jobs = os.cpu_count() or 1
    copies = [copy_run(base, toy.folder / f"copy{i}") for i in range(jobs)]
    files = sorted(path.name for path in (base / newest).iterdir())

    def verify(case):
        copy, file, bit = case
        with Flipped(copies[copy] / newest / file, bit):
            good, report = toy.verify(copies[copy], newest)
            if good:
                raise Bad("accepted_bad", "`cairn verify` finds it good")
            if file not in str(report):
                raise Bad("accepted_bad", f"`cairn verify` does not name the file: {report}")
    # Each job has a copy of its own, and goes through its flips one by one.
    plans = [[] for _ in range(jobs)]
    for n in range(flips_verified):
        file = random.choice(files)
        plans[n % jobs].append((n % jobs, file, random.randrange(8 * (base / newest / file).stat().st_size)))
    toy.judge_lists(tally, plans, verify)

    # What a restart does: from a checkpoint with a flip it falls back, from one in the run's own files it goes on or stops with the reason.
    everything = [path.relative_to(base) for path in sorted(base.rglob("*"))
                  if path.is_file() and path.stat().st_size > 0 and (path.parent.name in (base.name, newest))]

    def restore(which):
        n, path, bit = which
        case = toy.case(f"restore-{n}")
        run_dir = copy_run(base, case / "run")
        Flipped(run_dir / path, bit).flip()
        in_checkpoint = path.parts[0] == newest
        with toy.life(case, "after", run_dir, ranks=3, restart=1) as life:
            if not life.join(BOUND):
                raise Bad("stuck", "ranks have not ended\n" + life.log())
            codes = [p.returncode for p in life.ranks]
            if any(codes):
                if in_checkpoint or not path.name.startswith(MAY_STOP) or path.name not in life.log():
                    raise Bad("lost", f"the run did not go on: {codes}\n" + life.log())
                return
            resumed = life.resumed()
            expected = step(older) if in_checkpoint else step(newest)
            if resumed > expected:
                raise Bad("accepted_bad", f"resumed from the damaged step {resumed}\n" + life.log())
            if resumed < expected:
                raise Bad("lost", f"resumed at step {resumed} in place of {expected}\n" + life.log())
            if in_checkpoint and path.name not in life.said():
                raise Bad("accepted_bad", "the damaged file is not named\n" + life.log())
            if life.hash() != toy.hash:
                raise Bad("mixed", "another result\n" + life.log())

    cases = []
    for n in range(flips_restored):
        path = everything[n % len(everything)] if n < len(everything) else random.choice(everything)
        cases.append((n, path, random.randrange(8 * (base / path).stat().st_size)))
    toy.judge(tally, cases, restore)
    for copy in copies:
        shutil.rmtree(copy)


class Flipped:
    """A file with one bit turned over, while in the block."""

    def __init__(self, path, bit):
        self.path, self.bit = pathlib.Path(path), bit

    def flip(self):
        with open(self.path, "r+b") as file:
            file.seek(self.bit // 8)
            byte = file.read(1)[0] ^ (1 << self.bit % 8)
            file.seek(self.bit // 8)
            file.write(bytes([byte]))

    def __enter__(self):
        self.flip()

    def __exit__(self, *_):
        self.flip()


def step(checkpoint):
    return int(CHECKPOINT.fullmatch(checkpoint)[1])

"""Step: a host process and some ranks of the toy (tests/multiprocess/toy.cc) on this machine, without Slurm."""
import os
import pathlib
import re
import signal
import subprocess
import time


class Programs:
    """Where a build has what the tests need."""

    def __init__(self, build):
        build = pathlib.Path(build).resolve()
        self.cairn = build / "runtime/command/cairn"
        self.toy = build / "tests/multiprocess/cairn_toy"
        self.shim = build / "hooks/preload/libcairn_preload.so"
        self.fault = build / "tests/fault/libcairn_fault.so"
        self.library = build / "tests/fault/library/libcairn.so.1"

        # A sanitizer's runtime must come before everything else: in such a build nothing is preloaded.
        cache = build / "CMakeCache.txt"
        self.sanitized = cache.exists() and re.search(r"^CAIRN_SANITIZE:\w+=.+$", cache.read_text(), re.M) is not None

    def missing(self):
        wanted = [self.cairn, self.toy] + ([] if self.sanitized else [self.shim, self.fault])
        return [str(path) for path in wanted if not path.exists()]


def wait_for(condition, bound=30.0):
    """Whether `condition` holds before `bound` seconds are over."""
    deadline = time.monotonic() + bound
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.004)
    return True


def stopped(pid):
    """Whether a process stands still after SIGSTOP."""
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "T"


def clean_environment():
    return {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "CAIRN_", "LD_PRELOAD"))}


class Step:
    """Starts on construction; leaves nothing running behind `with`.

    logs      a folder for the processes' output; one a step
    fault     variables of preload/fault.c for the ranks in `faulty` (all ranks when it is None)
    settings  CAIRN_… variables; with a fault and without CAIRN_WRITER files are written by pwrite, which preload/fault.c sees
    listen    the address of the host process
    inside    of a rank (None: of the host process), what goes in front of its command
    launcher  a command that starts all ranks, in front of theirs: it is then the one process in `ranks`, and they know their numbers from it
    """

    def __init__(self, programs, logs, run_dir, toy, ranks, restart=0, settings=None, fault=None, faulty=None, listen="127.0.0.1",
                 inside=lambda rank: [], launcher=()):
        self.logs = pathlib.Path(logs)
        self.logs.mkdir(parents=True)
        base = clean_environment()
        base["XDG_STATE_HOME"] = str(self.logs / "state")
        chosen = {"CAIRN_CHECKPOINT": "on", "CAIRN_DIR": str(run_dir), "CAIRN_LOCAL": "none", "CAIRN_STRIKES": "1000"} | (
            {"CAIRN_WRITER": "pwrite"} if fault else {}) | (settings or {})
        host_env = base | chosen | {
            "CAIRN_HOST_JOB": "100", "CAIRN_HOST_STEP": str(os.getpid()), "CAIRN_HOST_RESTART": str(restart), "CAIRN_HOST_NTASKS": str(ranks)}
        self.ranks = []
        self.host = subprocess.Popen([*inside(None), programs.cairn, "host", "--listen", listen, "--print-env"], env=host_env,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(self.logs / "host.err", "w"),
                                     text=True)
        given = {}
        for line in self.host.stdout:
            name, _, value = line.rstrip("\n").partition("=")
            given[name] = value
            if name == "SLURM_CAIRN_HOST_PID":  # the last line
                break
        else:
            raise RuntimeError("the host process did not come up: " + (self.logs / "host.err").read_text())
        env = base | given | {name: value for name, value in chosen.items() if "SLURM_" + name not in given} | {
            "SLURM_NTASKS": str(ranks), "SLURM_JOB_ID": "100", "SLURM_RESTART_COUNT": str(restart),
            "SLURM_CAIRN_STEPD": str(os.getpid())}
        for rank in range(1 if launcher else ranks):
            hit = fault is not None and (faulty is None or rank in faulty)
            own = {"SLURM_PROCID": str(rank), "SLURM_CAIRN_NODE": f"node{rank // 2}",
                   "LD_PRELOAD": ":".join(map(str, ([programs.fault] if hit else []) + ([] if programs.sanitized else [programs.shim])))}
            with open(self._out(rank), "w") as out, open(self._err(rank), "w") as err:
                self.ranks.append(subprocess.Popen([*inside(rank), *launcher, programs.toy, *map(str, toy)], env=env | own | (fault if hit else {}),
                                                   stdin=subprocess.DEVNULL, stdout=out, stderr=err))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.host.kill()
        self.host.wait()
        self.host.stdin.close()
        self.host.stdout.close()

    def _out(self, rank):
        return self.logs / f"rank{rank}.out"

    def _err(self, rank):
        return self.logs / f"rank{rank}.err"

    def signal(self, rank, signo):
        if self.ranks[rank].poll() is None:
            self.ranks[rank].send_signal(signo)

    def kill(self):
        for rank in range(len(self.ranks)):
            self.signal(rank, signal.SIGKILL)
        for process in self.ranks:
            process.wait()

    def running(self):
        return [rank for rank, process in enumerate(self.ranks) if process.poll() is None]

    def join(self, bound=60.0):
        """Whether all ranks have ended within the bound."""
        return wait_for(lambda: not self.running(), bound)

    def output(self, rank):
        """stdout of a rank, so far."""
        return self._out(rank).read_text()

    def line(self, rank, word):
        """The rest of the first line of a rank's stdout that begins with `word`; "" when there is none yet."""
        for line in self.output(rank).splitlines():
            if line.startswith(word + " "):
                return line[len(word) + 1:]
        return ""

    def resumed(self):
        """The step at which the ranks began; None while one has not said so."""
        steps = {self.line(rank, "resumed").partition(" ")[0] for rank in range(len(self.ranks))}
        if "" in steps:
            return None
        if len(steps) > 1:
            raise RuntimeError(f"the ranks resumed at different steps: {steps}")
        return int(steps.pop())

    def hash(self):
        """Of the whole final state; None when a rank has none."""
        total = 0
        for rank in range(len(self.ranks)):
            text = self.line(rank, "hash")
            if not text:
                return None
            total ^= int(text, 16)
        return total

    def log(self):
        """What all said, for messages."""
        parts = [f"{path.name}: {line}" for path in sorted(self.logs.glob("*.*")) for line in path.read_text().splitlines()]
        return "\n".join(parts)

    def said(self):
        """stderr of the leader."""
        return self._err(0).read_text()

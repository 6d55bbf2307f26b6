"""powerloss: every state that a crash of the node could leave on disk, made from a record of what the lives did.

What a disk is held to, and no more (the model is weaker than any one file system, since nobody knows which one it will be):

  1. fsync of a file makes its content and size durable, and nothing else: neither its name nor that of its folder.
  2. fsync of a folder makes all entries durable that were made, changed or removed in it before: names, not the content behind them.
  3. Without fsync, each entry's change may or may not have reached the disk, whatever others did; changes of one name keep their order.
     A rename is one change: the old name gone and the new one there, or neither.
  4. Without fsync, each write of a file may or may not have reached the disk, or only its first sectors (512 bytes); the size may have
     grown before the content came (zeros then), or the content may be there without what was allocated.

A state is the point in the record at which the power failed, and what of the volatile part survived. For each point: nothing of it, all
of it, each single change alone lost, each single one alone kept, and random mixtures. In each state, by comparison with what the record
says was written (not with Cairn's own checks):

  - a checkpoint whose commit had been reported by then is there, whole, under its name;
  - no folder has the complete manifest of a checkpoint and a part of the rest;
  - every small file that a restart reads (RUN, EPOCH-…, PARENT-…, FINISHED, CURRENT) is whole or not there.

A sample of the states is written to a folder and given to `cairn verify` and to a life that restores from it.
"""
import json
import pathlib
import re

from toy import CHECKPOINT, Bad, Fault

SECTOR = 512
WHOLE = re.compile(r"RUN|CURRENT|FINISHED|(EPOCH|PARENT)-\d{8}")


class File:
    """The changes of one file's content."""

    def __init__(self):
        self.durable = b""
        self.changes = []  # since the last fsync: ("write", offset, bytes) or ("size", bytes) or ("grow", bytes)

    def sync(self):
        self.durable = self.content(self.changes)
        self.changes = []

    def content(self, changes):
        data = bytearray(self.durable)
        for change, *what in changes:
            if change == "write":
                offset, written = what
                if len(data) < offset:
                    data.extend(bytes(offset - len(data)))
                data[offset:offset + len(written)] = written
            else:
                size = what[0] if change == "size" else max(what[0], len(data))
                data = data[:size] + bytes(max(0, size - len(data)))
        return bytes(data)

    def survivor(self, random, mixture):
        """`mixture`: none, all, or random."""
        if mixture == "none" or not self.changes:
            return self.durable
        if mixture == "all":
            return self.content(self.changes)
        kept = []
        for change in self.changes:
            fate = random.choice(("lost", "kept", "torn", "zeros"))
            if change[0] == "write" and fate == "torn":
                kept.append(("write", change[1], change[2][:random.randrange(len(change[2]) // SECTOR + 1) * SECTOR]))
            elif change[0] == "write" and fate == "zeros":
                kept.append(("grow", change[1] + len(change[2])))
            elif fate != "lost":
                kept.append(change)
        return self.content(kept)


class Disk:
    """What the record made of a folder, and what of it is durable. Files and folders are known by number."""

    def __init__(self, root):
        self.root = root
        self.files = {}                # number → File
        self.folders = {0}             # numbers
        self.durable = {}              # (folder, name) → number
        self.volatile = []             # changes of entries since: [(folder, name, number or None), …], each one act
        self._numbers = {}             # inode → number; inodes are used again
        self._now = {}                 # as `durable`, all changes made
        self._next = 1

    def _entry(self, path):
        """(folder, name) of a path."""
        number = 0
        parts = path[len(self.root) + 1:].split("/")
        for part in parts[:-1]:
            number = self._now[number, part]
        return number, parts[-1]

    def _change(self, *entries):
        self.volatile.append(entries)
        self._apply(self._now, entries)

    @staticmethod
    def _apply(table, entries):
        for folder, name, number in entries:
            if number is None:
                table.pop((folder, name), None)
            else:
                table[folder, name] = number

    def play(self, line):
        what, *fields = line.rstrip("\n").split("\t")
        if what in ("create", "mkdir"):
            if fields[0] == self.root:
                self._numbers[fields[1]] = 0
                return
            number, self._next = self._next, self._next + 1
            self._numbers[fields[1]] = number
            if what == "create":
                self.files[number] = File()
            else:
                self.folders.add(number)
            self._change((*self._entry(fields[0]), number))
        elif what in ("rename", "link"):
            old = self._entry(fields[0])
            new = (*self._entry(fields[1]), self._now[old])
            self._change(*([(*old, None)] if what == "rename" else []), new)
        elif what in ("unlink", "rmdir"):
            self._change((*self._entry(fields[0]), None))
        else:
            number = self._numbers[fields[0]]
            if what == "fsync" and number in self.folders:
                self._sync_folder(number)
            elif what == "fsync":
                self.files[number].sync()
            elif what == "write":
                self.files[number].changes.append(("write", int(fields[1]), bytes.fromhex(fields[2])))
            else:
                self.files[number].changes.append(("size" if what == "truncate" else "grow", int(fields[1])))

    def _sync_folder(self, folder):
        # A rename out of this folder into another one is one act: with its one half it becomes durable.
        for entries in self.volatile:
            if any(entry[0] == folder for entry in entries):
                self._apply(self.durable, entries)
        self.volatile = [entries for entries in self.volatile if all(entry[0] != folder for entry in entries)]

    def survivors(self, random, mixtures):
        """The states that a crash at this point could leave, as {path: bytes or None (a folder)}."""
        n = len(self.volatile)
        yield self._state([False] * n, random, "none")
        yield self._state([True] * n, random, "none")
        yield self._state([True] * n, random, "all")
        for i in range(n):
            yield self._state([j == i for j in range(n)], random, "none")
            yield self._state([j != i for j in range(n)], random, "none")
        for _ in range(mixtures):
            yield self._state([random.random() < 0.5 for _ in range(n)], random, "random")

    def _state(self, kept, random, mixture):
        table = dict(self.durable)
        for keep, entries in zip(kept, self.volatile):
            if keep:
                self._apply(table, entries)
        children = {}
        for (folder, name), number in table.items():
            children.setdefault(folder, []).append((name, number))
        state = {}

        def walk(folder, prefix):
            for name, number in children.get(folder, []):
                if number in self.folders:
                    state[prefix + name] = None
                    walk(number, prefix + name + "/")
                else:
                    state[prefix + name] = self.files[number].survivor(random, mixture)

        walk(0, "")
        return state

    def now(self):
        return self._state([True] * len(self.volatile), None, "all")


class Reference:
    """What whole files contain: of each checkpoint as it was when it was committed, of each small file all contents that it ever had."""

    def __init__(self):
        self.checkpoints = {}  # name → {file: bytes}
        self.small = {}        # name → set of contents
        self.reported = 0      # the newest step that was said to be saved

    def look(self, line, disk):
        if line.startswith("rename") and line.rstrip("\n").endswith("/manifest.json"):
            name = line.rstrip("\n").split("/")[-2]
            if CHECKPOINT.fullmatch(name):
                self.checkpoints.setdefault(name, {path[len(name) + 1:]: data for path, data in disk.now().items()
                                                   if path.startswith(name + "/")})
        target = re.match(r"(?:rename|link)\t.*/([^/\t]+)$", line)
        if target and WHOLE.fullmatch(target[1].rstrip("\n")):
            self.small.setdefault(target[1].rstrip("\n"), set()).add(disk.now()[target[1].rstrip("\n")])
        if line.startswith("write") and b'"event":"saved"' in (data := bytes.fromhex(line.rstrip("\n").split("\t")[3])):
            self.reported = max(self.reported, json.loads(data)["step"])

    def whole(self, state):
        """Steps of the checkpoints that are there in full. Raises where there is a part under a complete manifest."""
        steps = []
        for name, files in self.checkpoints.items():
            removed = re.compile(rf"(?:removed-e\d+-{re.escape(name)})/manifest\.json")
            gone = [path.split("/")[0] for path in state if removed.fullmatch(path)]
            for folder in (name, "dead-" + name, *gone):  # a dead one with a manifest gets its name back, one that is removed may
                if state.get(folder + "/manifest.json") != files["manifest.json"]:
                    continue
                torn = [file for file, data in files.items() if state.get(f"{folder}/{file}") != data and not file.startswith(".tmp-")]
                if torn:
                    raise Bad("accepted_bad", f"{folder} has its manifest and not its {torn}")
                if folder not in gone:
                    steps.append(int(CHECKPOINT.fullmatch(name)[1]))
        for name, contents in self.small.items():
            if name in state and state[name] not in contents:
                raise Bad("accepted_bad", f"{name} is there and not whole: {state[name]!r}")
        return steps


def powerloss(toy, tally, random, full):
    """Two lives: one that saves, prunes and is killed, and one that takes over, saves, prunes and finishes."""
    case = toy.case("recorded")
    run_dir = case / "run"
    record = case / "record"
    for restart, name in enumerate(("first", "second")):
        fault = Fault(toy.case(name), run_dir, record=record).variables
        more = ["--save-at", 8, 24, 40, 56] if restart == 0 else ["--save-at", 100]
        more += ["--exit-at", 80] if restart == 0 else []
        with toy.life(case, name, run_dir, *more, restart=restart, fault=fault) as life:
            if not life.join():
                raise RuntimeError(life.log())
    if not (run_dir / "FINISHED").exists():
        raise RuntimeError("the recorded run did not finish\n" + life.log())

    disk, reference = Disk(str(run_dir)), Reference()
    lines = record.read_text().splitlines(keepends=True)
    seen, states = set(), {}
    for point, line in enumerate(lines):
        disk.play(line)
        reference.look(line, disk)
        for variant, state in enumerate(disk.survivors(random, 12 if full else 3)):
            key = hash((reference.reported, frozenset(state.items())))
            if key in seen:
                continue
            seen.add(key)
            what = f"after {line[:200].strip()!r} (line {point + 1} of {record}), variant {variant}"
            try:
                steps = reference.whole(state)
                if max(steps, default=0) < reference.reported:
                    raise Bad("lost", f"step {reference.reported} was committed, whole are {steps}")
            except Bad as bad:
                tally.count(bad.outcome, what, str(bad))
                continue
            tally.count("survived", what)
            states[f"line-{point + 1}-{variant}"] = (state, reference.reported)
    if disk.now().keys() != on_disk(run_dir):
        raise RuntimeError(f"the record and the disk differ: {disk.now().keys() ^ on_disk(run_dir)}")

    sample = random.sample(list(states), min(len(states), 400 if full else 24))
    toy.judge(tally, sample, lambda name: restore(toy, toy.case(name), *states[name]))


def restore(toy, case, state, reported):
    run_dir = case / "run"
    run_dir.mkdir()
    for path, data in state.items():
        (run_dir / path).parent.mkdir(parents=True, exist_ok=True)
        (run_dir / path).mkdir(exist_ok=True) if data is None else (run_dir / path).write_bytes(data)
    toy.check_all(run_dir)
    toy.resume(case, run_dir, reported, restart=5)
    toy.check_all(run_dir)


def on_disk(run_dir):
    return {str(path.relative_to(run_dir)) for path in pathlib.Path(run_dir).rglob("*")}

"""parsers: the fuzzers of tests/fuzz, one after the other on each core. `tried` counts inputs."""
import os
import pathlib
import re
import subprocess

from toy import Bad

FUZZ = pathlib.Path(__file__).resolve().parents[1] / "fuzz"
BUILDS = FUZZ.parents[1]


def parsers(toy, tally, random, full):
    fuzzers = sorted(path for path in BUILDS.glob("build*/**/tests/fuzz/fuzz_*") if path.is_file() and os.access(path, os.X_OK))
    newest = {path.name: path for path in sorted(fuzzers, key=lambda path: path.stat().st_mtime)}
    if not newest:
        tally.count("stuck", "all", "not built: cmake --preset fuzz && cmake --build build/fuzz --target fuzzers")

    def fuzz(name):
        corpus = FUZZ / "corpus" / name.removeprefix("fuzz_")
        done = subprocess.run([FUZZ / "fuzz", "60" if full else "5", newest[name], corpus, f"-seed={random.randrange(1, 1 << 31)}"],
                              cwd=toy.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise Bad("accepted_bad", done.stdout)
        tally.survive(int(re.search(r"number_of_executed_units: (\d+)", done.stdout)[1]) - 1)

    toy.judge(tally, list(newest), fuzz)

"""Programs written to VELOC's calls, on Cairn by contrib/veloc/veloc.h.

    veloc_test.py BUILD [UNITTEST OPTION …]
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "hooks/python"))
from lives import MPIRUN, Lives, main  # noqa: E402
from step import clean_environment  # noqa: E402


def expected_total(cells, iterations):
    now = [0.0] + [float(x * x % 17) for x in range(1, cells + 1)] + [0.0]
    for _ in range(iterations):
        now = [0.0] + [now[x] + 0.25 * (now[x - 1] + now[x + 1] - 2 * now[x]) for x in range(1, cells + 1)] + [0.0]
    return sum(value * x for x, value in enumerate(now))


class VelocTest(Lives):
    def setUp(self):
        super().setUp()
        self.programs.toy = self.build.resolve() / "tests/contrib/veloc/veloc_heat"

    def test_a_killed_program_restarts_from_its_newest_version(self):
        with self.mpi_started("run", 3, "heat.cfg", 30, 23, 13) as step:
            self.assertTrue(step.join(60), step.log())
            self.assertNotEqual(step.ranks[0].returncode, 0)
        listed = json.loads(subprocess.run([self.programs.cairn, "ls", self.folder / "run", "--json"], check=True, capture_output=True).stdout)
        self.assertEqual([(checkpoint["step"], checkpoint["label"]) for checkpoint in listed["checkpoints"]], [(2, 10), (1, 5)])

        with self.mpi_started("run", 2, "heat.cfg", 30, 23) as step:  # each rank's regions are its own
            self.assertTrue(step.join(60), step.log())
            self.assertNotEqual(step.ranks[0].returncode, 0)
            self.assertIn("veloc.rank2.1: saved [96] U8, not registered", step.log())
            self.assertEqual(step.output(0).split(), [])
        self.check_total(self.mpi_life("run", 3, "heat.cfg", 30, 23), [["restarted", "10", "10"]])
        self.check_total(self.mpi_life("run", 3, "heat.cfg", 30, 23), [["restarted", "20", "20"]])

        with self.mpi_started("run", 3, "heat.cfg", 30, 23, 0, "another") as step:
            self.assertTrue(step.join(60), step.log())
            self.assertIn("the checkpoints here have another name", step.log())

    def check_total(self, said, before):
        self.assertEqual(said[:-1], before)
        self.assertEqual(said[-1][0], "total")
        self.assertAlmostEqual(float.fromhex(said[-1][1]), expected_total(30, 23), places=9)

    def test_runs_without_cairn(self):
        done = subprocess.run([*MPIRUN, "-n", "2", self.programs.toy, "heat.cfg", "30", "23"], env=clean_environment(), check=True, capture_output=True, text=True)
        self.check_total([line.split() for line in done.stdout.splitlines()], [])
        self.assertNotIn("Cairn", done.stderr)

    def test_each_call_does_what_it_says(self):
        self.programs.toy = self.build.resolve() / "tests/contrib/veloc/veloc_calls"
        begun = ["early -1", "init 0", "clear 0", "unprotect 0"]
        [said] = self.life("calls", 1, "save")
        self.assertEqual([" ".join(words) for words in said], [
            *begun, "test -1", "begin 0", "route -1", "some -1", "end -1", "moved 0", "gone 0", "checkpoint 0", "name -1", "wait 0", "finished 0", "newest 5",
            "grown -1", "without -1", "finalize 0"])
        self.assertEqual(self.versions("calls"), [5])
        [said] = self.life("calls", 1, "restart")
        self.assertEqual([" ".join(words) for words in said], [
            *begun, "test 5", "begin 0", "size 16", "some 0", "is 10 -1 -1", "rest 0", "is 10 0 0 -1", "end 0"])
        [said] = self.life("calls", 1, "more", CAIRN_MATCH="allow-missing")  # what the checkpoint lacks stays as it is
        self.assertEqual([" ".join(words) for words in said[-3:]], ["rest 0", "is 10 0 0 -1", "end 0"])

    def test_nothing_is_begun_anew_over_versions_that_are_there(self):
        self.programs.toy = self.build.resolve() / "tests/contrib/veloc/veloc_calls"
        self.life("calls", 1, "save")
        for what, run, said in (("nothing", "other", "no region is protected yet"), ("older", "calls", "an older version is asked for"),
                                ("other", "calls", "another version is asked for"), ("back", "calls", "there is no way back"),
                                ("ignore", "calls", "the program has not restarted from what is there")):
            with self.subTest(what), self.started(run, 1, what) as step:
                self.assertTrue(step.join(60))
                self.assertEqual(step.ranks[0].returncode, 1, step.log())
                self.assertIn(said, step.log())
                if run == "calls":
                    self.assertIn("The newest version is 5, of step 1.", step.log())
                self.assertEqual(step.line(0, what), "")
        self.assertEqual(self.versions("calls"), [5])

    def test_memory_may_be_freed_before_the_end(self):
        self.programs.toy = self.build.resolve() / "tests/contrib/veloc/veloc_calls"
        [said] = self.life("calls", 1, "freed", CAIRN_ON="preempt,end")  # the version is not saved when it is asked for
        self.assertEqual([" ".join(words) for words in said[-2:]], ["checkpoint 0", "finalize 0"])
        self.assertEqual(self.versions("calls"), [])

    def test_groups_that_save_independently_are_not_mixed(self):
        self.programs.toy = self.build.resolve() / "tests/contrib/veloc/veloc_split"
        with self.mpi_started("split", 4) as step:
            self.assertTrue(step.join(60), step.log())
            self.assertNotEqual(step.ranks[0].returncode, 0)
            self.assertEqual(step.output(0), "")

    def test_several_processes_without_cairn_are_independent(self):
        self.programs.toy = self.build.resolve() / "tests/contrib/veloc/veloc_calls"
        done = subprocess.run([self.programs.toy, "save"], env=clean_environment() | {"SLURM_NTASKS": "2"}, check=True, capture_output=True, text=True)
        self.assertIn("init 0", done.stdout.splitlines())

    def versions(self, run):
        listed = json.loads(subprocess.run([self.programs.cairn, "ls", self.folder / run, "--json"], check=True, capture_output=True).stdout)
        return [checkpoint["label"] for checkpoint in listed["checkpoints"]]


if __name__ == "__main__":
    main()

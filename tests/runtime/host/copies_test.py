"""--checkpoint-copy of real steps, and what `cairn push` makes of it afterwards: copies_test.py BUILD"""
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fault"))
from step import Programs, Step, clean_environment, wait_for  # noqa: E402

ARGUMENTS = ["--n", 3001, "--steps", 200, "--step-us", 500]


def committed(run):
    """Steps of the checkpoints in a directory."""
    return sorted(int(path.parent.name.split(".")[0][5:]) for path in run.glob("step-*/manifest.json"))


def cairn(*arguments):
    return subprocess.run([programs.cairn, *map(str, arguments)], env=clean_environment(), capture_output=True, text=True)


class Copies(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.run_dir, self.place = self.folder / "run", self.folder / "archive" / "run"

    def life(self, name, run_dir, *more, restart=0, **settings):
        return Step(programs, self.folder / name, run_dir, [*ARGUMENTS, *more], 2, restart=restart, settings=settings)

    def held(self, name, *more, **options):
        """A life that stands still at step 150; without end."""
        return self.life(name, self.run_dir, "--hold-at", 150, "--hold-file", self.folder / "never", *more, **options)

    def end_of_host(self, step):
        """What the host process has said in all."""
        step.host.stdin.close()
        step.host.wait()
        return (step.logs / "host.err").read_text()

    def status(self, what="copy"):
        """A member of the job's status; while there is none, {}."""
        told = cairn("status", "--json", self.run_dir)
        return json.loads(told.stdout).get(what, {}) if told.returncode == 0 else {}

    def test_a_new_job_resumes_from_the_copies_alone(self):
        bare = subprocess.run([programs.toy, *map(str, ARGUMENTS)], env=clean_environment(), capture_output=True, text=True, check=True)
        with self.held("life0", "--save-at", 100, "--wait-at", 100, CAIRN_COPY=f"{self.place},every=1h") as step:
            self.assertTrue(wait_for(lambda: self.status().get("step") == 100), step.log())
            self.assertEqual({name: value for name, value in self.status().items() if name != "bytes"},
                             {"to": str(self.place), "step": 100, "under_way": None, "lag": 0})
            self.assertRegex(cairn("status", self.run_dir).stdout, r"(?m)^copy +" + str(self.place) + r": step 100, ")
            step.kill()
            self.assertNotIn("no copy", self.end_of_host(step))
        self.assertEqual(committed(self.place), [100])
        shutil.rmtree(self.run_dir)
        with self.life("life1", self.place) as step:
            self.assertTrue(step.join(), step.log())
            self.assertEqual(step.resumed(), 100, step.log())
            self.assertEqual(step.hash(), int(re.search(r"^hash (\w+)$", bare.stdout, re.M)[1], 16))

    def test_a_place_that_fails_costs_the_job_one_line_and_the_next_life_makes_up_for_it(self):
        self.place.parent.write_text("a file, where a folder should be")
        with self.held("life0", "--save-at", 100, 120, "--wait-at", 100, 120, CAIRN_COPY=self.place) as step:
            self.assertTrue(wait_for(lambda: "failure" in self.status()), step.log())
            self.assertTrue(wait_for(lambda: self.status("last_save").get("step") == 120), step.log())
            step.kill()
            said = self.end_of_host(step)
        self.assertEqual(len(re.findall(rf"^cairn: no copy of step 1[02]0 in {self.place}: .*Not a directory.*\. The job goes on", said, re.M)), 1, said)
        self.assertIn(f"cairn: {self.place} has no copy of step 120 yet. `cairn push {self.run_dir}` makes one\n", said)
        self.place.parent.unlink()
        with self.held("life1", restart=1, CAIRN_COPY=self.place) as step:  # which saves nothing
            self.assertTrue(wait_for(lambda: committed(self.place) == [120]), step.log())
            step.kill()
            self.end_of_host(step)
        pushed = cairn("push", "--all", self.run_dir)
        self.assertEqual(pushed.returncode, 0, pushed.stderr)
        self.assertEqual(committed(self.place), [100, 120])

    def test_a_place_in_the_run_itself_is_refused_at_once(self):
        with self.assertRaisesRegex(RuntimeError, "--checkpoint-copy: .* lies in the run's directory"):
            self.life("life0", self.run_dir, CAIRN_COPY=self.run_dir / "copies")

    def test_a_push_that_is_stopped_leaves_in_good_order(self):
        with Step(programs, self.folder / "life0", self.run_dir, ["--n", 3_000_001, "--steps", 3, "--step-us", 0], 1) as step:
            self.assertTrue(step.join(), step.log())
        push = subprocess.Popen([programs.cairn, "push", self.run_dir, self.place], env=clean_environment() | {"CAIRN_DRAIN_LIMIT": "10kB/s"},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertTrue(wait_for(lambda: list(self.place.glob("step-*/*.safetensors"))))
        push.send_signal(signal.SIGTERM)
        _, said = push.communicate(timeout=60)
        self.assertEqual(push.returncode, 1)
        self.assertIn("cairn: the copy was stopped\n", said)
        self.assertEqual(committed(self.place), [])
        again = cairn("push", self.run_dir, self.place)
        self.assertEqual((again.returncode, again.stderr), (0, ""))  # and did not wait for who was stopped
        self.assertEqual(committed(self.place), [3])


if __name__ == "__main__":
    programs = Programs(sys.argv[1])
    programs.fault = programs.shim  # of tests that inject faults
    if programs.missing():
        print("skipped: not built:", *programs.missing())
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], warnings="ignore")

"""cairn rehearse of a PyTorch program: every item that made the resumed run differ, and what was never attached, is named."""
import json
import subprocess
import sys

from lives import HERE, Lives, main
from step import clean_environment


class RehearsalTest(Lives):
    def rehearse(self, *arguments):
        environment = clean_environment() | self.settings | {"CAIRN_LIBRARY": str(self.build.resolve() / "runtime/libcairn.so")}
        done = subprocess.run([self.programs.cairn, "rehearse", "--json", "--save-at=4", "--until=6", "--dir", self.folder, "--", sys.executable,
                               HERE / "rehearsed.py", *arguments], env=environment, capture_output=True, text=True, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        said = [line.partition("not attached, so not restored: ")[2] for line in done.stderr.splitlines() if "not attached" in line]
        return json.loads(done.stdout), said

    def test_a_program_that_attaches_all_is_itself_after_a_resume(self):
        report, said = self.rehearse()
        self.assertTrue(report["equal"], report)
        self.assertEqual(said, ["buffer model.scale (persistent=False)", "buffer average.scale (persistent=False)"])

    def test_what_was_forgotten_is_named_and_what_it_changed(self):
        report, said = self.rehearse("forgetful")
        self.assertFalse(report["equal"])
        differing = [array["name"] for array in report["arrays"] if array["result"] == "differs"]
        self.assertIn("model.0.weight", differing)
        self.assertNotIn("model.2.num_batches_tracked", differing)
        self.assertEqual(sorted(said), ["Adam", "GradScaler", "Sequential of 9 tensors", "StepLR", "buffer model.scale (persistent=False)"])


main()

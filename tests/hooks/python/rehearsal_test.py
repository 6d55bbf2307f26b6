"""cairn rehearse of a PyTorch program: every item that made the resumed run differ, and what was never attached, is named."""
import json
import os
import subprocess
import sys

from lives import HERE, Lives, main
from step import clean_environment


# In srun's place: as many ranks as the last --ntasks says.
SRUN = """#!/bin/sh
while case "$1" in --ntasks=*) ;; *) false ;; esac; do ranks=${1#--ntasks=}; shift; done
exec %s -W ignore -m torch.distributed.run --standalone --nproc-per-node="$ranks" --no-python "$@"
"""


class RehearsalTest(Lives):
    def rehearse(self, *command, ranks=()):
        """What it reports, and what it has found that was not attached."""
        environment = clean_environment() | self.settings | {
            "CAIRN_LIBRARY": str(self.build.resolve() / "runtime/libcairn.so"), "PATH": f"{self.programs.cairn.parent}:{os.environ['PATH']}",
            "XDG_STATE_HOME": str(self.folder / "state"), "OMP_NUM_THREADS": "1"}
        done = subprocess.run([self.programs.cairn, "rehearse", "--json", "--save-at=4", "--until=9", "--dir", self.folder, *ranks, "--", *command],
                              env=environment, capture_output=True, text=True, timeout=200)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["equal"], done.returncode == 0)
        return report, [line.partition("not attached, so not restored: ")[2] for line in done.stderr.splitlines() if "not attached" in line]

    def rehearse_ranks(self, *arguments):
        """On two ranks and then one: what differs, the names of arrays and the values."""
        srun = self.folder / "srun"
        srun.write_text(SRUN % sys.executable)
        srun.chmod(0o755)
        report, _ = self.rehearse(srun, "--ntasks=2", sys.executable, HERE / "rehearsed_group.py", *arguments, ranks=["--ranks=1"])
        self.assertEqual((report["ranks"], report["blobs"]), ([2, 1], []))
        self.assertIn("optim.state.0.weight.mean", [array["name"] for array in report["arrays"]])
        return [array["name"] for array in report["arrays"] if array["result"] != "equal"], report["values"]

    def test_values_are_compared_by_name_between_numbers_of_ranks(self):
        self.assertEqual(self.rehearse_ranks(), ([], []))
        self.assertEqual(self.rehearse_ranks("half"), ([], [{"name": "tracker.counts.seen", "undisturbed": "9", "resumed": "5"}]))
        arrays, values = self.rehearse_ranks("rate")
        self.assertIn("model.0.weight", arrays)
        # 0.02 is halved after steps 3, 6 and 9; a scheduler that begins anew after step 4 halves once more after three steps.
        self.assertIn({"name": "optim.param_groups.0.lr", "undisturbed": "0.0025", "resumed": "0.005"}, values)

    def test_a_program_that_attaches_all_is_itself_after_a_resume(self):
        report, said = self.rehearse(sys.executable, HERE / "rehearsed.py")
        self.assertTrue(report["equal"], report)
        self.assertEqual(said, ["buffer model.scale (persistent=False)", "buffer average.scale (persistent=False)"])

    def test_what_was_forgotten_is_named_and_what_it_changed(self):
        report, said = self.rehearse(sys.executable, HERE / "rehearsed.py", "forgetful")
        self.assertFalse(report["equal"])
        differing = [array["name"] for array in report["arrays"] if array["result"] == "differs"]
        self.assertIn("model.0.weight", differing)
        self.assertNotIn("model.2.num_batches_tracked", differing)
        self.assertEqual(sorted(said), ["Adam", "GradScaler", "Sequential of 9 tensors", "StepLR", "buffer model.scale (persistent=False)"])


main()

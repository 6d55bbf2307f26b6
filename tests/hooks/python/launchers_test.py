"""Ranks that no srun has started: those of torchrun save and resume all the same, or say that they do not."""
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from lives import HERE, Lives, main, run_group
from step import clean_environment, wait_for


class LaunchersTest(Lives):
    def torchrun(self, *arguments, **settings):
        """What two ranks have said, as lists of words, and stderr."""
        environment = clean_environment() | self.settings | {
            "CAIRN_CHECKPOINT": "on", "CAIRN_DIR": str(self.folder / "run"), "CAIRN_LIBRARY": str(self.build.resolve() / "runtime/libcairn.so"),
            "XDG_STATE_HOME": str(self.folder / "state"), "OMP_NUM_THREADS": "1"} | settings
        done = subprocess.run([sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", HERE / "launched.py",
                               *arguments], env=environment, capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.split() for line in done.stdout.splitlines()], done.stderr

    def test_ranks_of_torchrun_save_and_resume_without_slurm(self):
        whole, said = self.torchrun(PATH=str(self.folder))
        self.assertIn("cairn: NOT PROTECTED: the host process of 2 ranks does not start: there is no command `cairn` in PATH", said)
        self.assertFalse((self.folder / "run").exists())

        path = {"PATH": f"{self.programs.cairn.parent}:{os.environ['PATH']}"}
        before, said = self.torchrun("leave", **path)
        self.assertIn("2 ranks", said.partition("cairn: protected: ")[2])
        after, said = self.torchrun(**path)
        self.assertEqual((before[0], after[0]), (["resumed", "0"], ["resumed", "3"]))
        self.assertEqual(before[1:] + after[1:], whole[1:])
        self.assertEqual([words[0] for words in whole], ["resumed"] + ["loss"] * 6 + ["done"])
        self.assertNotIn("shielded", said)  # from what Slurm would send
        self.assertNotIn("waiting up to", said)  # those before have given the directory back


def descendants(pid):
    children = [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return children + [one for child in children for one in descendants(child)]


class WorkersTest(Lives):
    def test_workers_of_every_kind_go_on_in_the_grace_time_until_their_rank_has_saved(self):
        with self.started("run", 1, HERE / "workers.py") as step:
            rank = step.ranks[0].pid
            self.assertTrue(wait_for(lambda: "step 3\n" in step.output(0), 120), step.log())
            others = descendants(rank)
            self.assertGreaterEqual(len(others), 5)  # three workers, a fork server, a resource tracker
            for pid in (*others, rank):  # as Slurm does; this process is who Slurm would be
                os.kill(pid, signal.SIGTERM)
            self.assertTrue(step.join(60), step.log())
            said, log = step.output(0), step.log()
            self.assertEqual(step.ranks[0].returncode, -signal.SIGTERM, log)
            self.assertTrue(wait_for(lambda: not any(pathlib.Path(f"/proc/{pid}/cwd").exists() for pid in others)), "workers have outlived their rank")
        self.assertNotIn("DataLoader worker", log)
        resumed = self.life("run", 1, HERE / "workers.py", 1)[0][0]
        self.assertGreaterEqual(int(resumed[1]), 3)
        self.assertLessEqual(int(resumed[1]), said.count("step") + 1)


class MeetingTest(unittest.TestCase):
    def test_rank_0_alone_knows_of_saves_and_every_rank_hears_what_became_of_them(self):
        run_group(self, 2, "met.py", (Lives.build / "runtime/command").resolve())


if __name__ == "__main__":
    main()

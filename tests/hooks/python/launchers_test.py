"""Ranks that no srun has started: those of torchrun save and resume all the same, or say that they do not."""
import os
import subprocess
import sys
import unittest
from unittest import mock

from lives import HERE, ROOT, Lives, main
from step import clean_environment

sys.path.insert(0, str(ROOT / "hooks/python"))
import torch.distributed  # noqa: E402

import cairn  # noqa: E402
from cairn.torch import meeting  # noqa: E402


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
        self.assertNotIn("waiting up to", said)  # those before have given the directory back


class MeetingTest(unittest.TestCase):
    """Rank 1 of two, with a rank 0 that has told it this."""

    def meet(self, told, **environment):
        def broadcast(objects):
            objects[0] = told

        with mock.patch.dict(os.environ, environment), mock.patch.multiple(
                torch.distributed, is_initialized=lambda: True, get_world_size=lambda: 2, get_rank=lambda: 1, broadcast_object_list=broadcast):
            os.environ.pop("SLURM_CAIRN_TOKEN", None)
            meeting.meet()
            return os.environ.get("SLURM_CAIRN_TOKEN")

    def test_what_rank_0_tells_becomes_environment_where_saves_are_asked_for(self):
        told = {"SLURM_CAIRN_TOKEN": "token"}
        self.assertEqual(self.meet(told, CAIRN_CHECKPOINT="on"), "token")
        self.assertEqual(self.meet(told, CAIRN_CHECKPOINT="off"), None)
        self.assertEqual(self.meet("no such file", CAIRN_CHECKPOINT="10m"), None)
        with self.assertRaisesRegex(cairn.Error, "the host process of 2 ranks does not start: no such file"):
            self.meet("no such file", CAIRN_CHECKPOINT="10m", CAIRN_REQUIRE="yes")


if __name__ == "__main__":
    main()

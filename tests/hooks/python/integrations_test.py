"""Trainers of other libraries: what they would have trained undisturbed, they train when they are stopped and resumed. 18 samples in batches of 2, two batches
a step: an epoch has 5 steps, the last of one batch."""
import importlib.util
import itertools
import unittest

from lives import HERE, Lives, free_port, main


class IntegrationsTest(Lives):
    def said(self, program, run, *arguments):
        self.settings = self.settings | {"TMPDIR": str(self.folder), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        return [tuple(words) for words in self.life(run, 1, HERE / program, *arguments)[0]
                if words[0] in ("data", "loss", "rate", "valid", "finished", "refused")]

    def goes_on(self, program, validated, *lives):
        """What a run says that is stopped and resumed so, all lives together, against one that nobody disturbed; and of its rerun."""
        whole = self.said(program, "whole", "whole")
        self.assertEqual([sum(words[:2] == ("loss", str(step)) for words in whole) for step in range(1, 16)], [2, 2, 2, 2, 1] * 3)
        self.assertEqual([int(words[1]) for words in whole if words[0] == "valid"], validated)
        self.assertGreater(len({words[2] for words in whole if words[0] == "rate"}), 2)  # the schedulers move
        broken = sum((self.said(program, "broken", *arguments) for arguments in lives), [])
        self.assertEqual([pair for pair in itertools.zip_longest(broken, whole) if pair[0] != pair[1]][:3], [])
        return self.said(program, "broken", "rerun")

    def shrinks(self, program, share):
        """Two ranks save after step 3 of 8 and train on; one rank goes on from there, with twice as many batches a step. `share` of what all ranks say is a
        step's loss, where one rank says all of it."""
        self.settings = self.settings | {"TMPDIR": str(self.folder), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        lives = []
        for ranks, save_at in ((2, "3"), (1, "-")):
            losses = {}
            for words in itertools.chain(*self.life("spread", ranks, HERE / program, save_at, free_port())):
                if words[0] == "loss":
                    losses.setdefault(int(words[1]), []).append(float.fromhex(words[2]))
            self.assertEqual({len(of_step) for of_step in losses.values()}, {2})
            lives.append({step: sum(of_step) * (share if ranks == 2 else 1) for step, of_step in losses.items()})
        self.assertEqual([sorted(losses) for losses in lives], [list(range(1, 9)), list(range(4, 9))])
        for step, loss in lives[1].items():
            self.assertAlmostEqual(loss / lives[0][step], 1, delta=1e-5, msg=f"step {step}")

    @unittest.skipUnless(importlib.util.find_spec("transformers") and importlib.util.find_spec("accelerate"), "needs transformers and accelerate")
    def test_hugging_faces_trainer_goes_on_with_half_the_ranks(self):
        self.shrinks("hugging_face.py", 0.5)

    @unittest.skipUnless(importlib.util.find_spec("lightning"), "needs lightning")
    def test_lightnings_trainer_goes_on_with_half_the_ranks(self):
        self.shrinks("lit.py", 1)

    @unittest.skipUnless(importlib.util.find_spec("transformers") and importlib.util.find_spec("accelerate"), "needs transformers and accelerate")
    def test_hugging_faces_trainer_goes_on_to_the_same_bits(self):
        # saved at the end of an epoch with an evaluation to come, in an evaluation amid an epoch, and after the last step
        rerun = self.goes_on("hugging_face.py", [3, 5, 6, 9, 12, 15], ["5"], ["v9"], ["15"], ["-"])
        self.assertEqual(rerun, [("finished", "15"), ("refused", "Invalid"), ("refused", "Mismatch")])

    @unittest.skipUnless(importlib.util.find_spec("transformers") and importlib.util.find_spec("accelerate"), "needs transformers and accelerate")
    def test_hugging_faces_trainer_begins_the_epoch_anew_where_ignore_data_skip_says_so(self):
        first, second, third = ([words[1:] for words in self.said("hugging_face.py", "anew", stop_at, "anew") if words[0] == "data"] for stop_at in "57-")
        self.assertEqual([int(step) for step, _ in first + second + third], [step for step in range(1, 11) for _ in range(1 if step == 5 else 2)])
        self.assertEqual([data for _, data in third[:4]], [data for _, data in second])  # the second epoch's first batches, again
        self.assertNotEqual([data for _, data in second], [data for _, data in first[:4]])

    @unittest.skipUnless(importlib.util.find_spec("lightning"), "needs lightning")
    def test_lightnings_trainer_goes_on_to_the_same_bits(self):
        # saved at the end of an epoch with a validation to come, amid an epoch, and in a validation; from the second life on `fit` is given a state of step 3
        rerun = self.goes_on("lit.py", [5, 10, 15], ["5"], ["7", "endless"], ["v10", "endless"], ["-"])
        self.assertEqual(rerun, [("finished", "15"), ("refused", "Invalid"), ("refused", "Mismatch"), ("refused", "Mismatch")])


main()

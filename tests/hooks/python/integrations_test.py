"""Trainers of other libraries: what they would have trained undisturbed, they train when they are stopped and resumed. 18 samples in batches of 2, two batches
a step: an epoch has 5 steps, the last of one batch."""
import importlib.util
import itertools
import unittest

from lives import HERE, Lives, main


class IntegrationsTest(Lives):
    def said(self, program, run, *arguments):
        self.settings = self.settings | {"TMPDIR": str(self.folder), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        return [tuple(words) for words in self.life(run, 1, HERE / program, *arguments)[0]
                if words[0] in ("loss", "rate", "valid", "finished", "refused")]

    def goes_on(self, program, validated, *lives):
        """What a run says that is stopped and resumed so, all lives together, against one that nobody disturbed; and of its rerun."""
        whole = self.said(program, "whole", "whole")
        self.assertEqual([sum(words[:2] == ("loss", str(step)) for words in whole) for step in range(1, 16)], [2, 2, 2, 2, 1] * 3)
        self.assertEqual([int(words[1]) for words in whole if words[0] == "valid"], validated)
        self.assertGreater(len({words[2] for words in whole if words[0] == "rate"}), 2)  # the schedulers move
        broken = sum((self.said(program, "broken", *arguments) for arguments in lives), [])
        self.assertEqual([pair for pair in itertools.zip_longest(broken, whole) if pair[0] != pair[1]][:3], [])
        return self.said(program, "broken", "rerun")

    @unittest.skipUnless(importlib.util.find_spec("transformers") and importlib.util.find_spec("accelerate"), "needs transformers and accelerate")
    def test_hugging_faces_trainer_goes_on_to_the_same_bits(self):
        # saved at the end of an epoch with an evaluation to come, in an evaluation amid an epoch, and after the last step
        rerun = self.goes_on("hugging_face.py", [3, 5, 6, 9, 12, 15], ["5"], ["v9"], ["15"], ["-"])
        self.assertEqual(rerun, [("finished", "15"), ("refused", "Invalid"), ("refused", "Mismatch")])

    @unittest.skipUnless(importlib.util.find_spec("lightning"), "needs lightning")
    def test_lightnings_trainer_goes_on_to_the_same_bits(self):
        # saved at the end of an epoch with a validation to come, amid an epoch, and in a validation; from the second life on `fit` is given a state of step 3
        rerun = self.goes_on("lit.py", [5, 10, 15], ["5"], ["7", "endless"], ["v10", "endless"], ["-"])
        self.assertEqual(rerun, [("finished", "15"), ("refused", "Invalid"), ("refused", "Mismatch"), ("refused", "Mismatch")])


main()

"""Trainers of other libraries: what they would have trained undisturbed, they train when they are stopped and resumed. 18 samples in batches of 2, two batches
a step: an epoch has 5 steps, the last of one batch."""
import importlib.util
import unittest

from lives import HERE, Lives, main


class IntegrationsTest(Lives):
    def said(self, program, run, stop_at):
        self.settings = self.settings | {"TMPDIR": str(self.folder), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        return [tuple(words) for words in self.life(run, 1, HERE / program, stop_at)[0] if words[0] in ("loss", "rate")]

    def goes_on(self, program):
        whole = self.said(program, "whole", -1)
        self.assertEqual([sum(words[:2] == ("loss", str(step)) for words in whole) for step in range(1, 16)], [2, 2, 2, 2, 1] * 3)
        lives = [self.said(program, "broken", stop_at) for stop_at in (7, 10, -1)]  # in the middle of an epoch, and at the end of one
        self.assertEqual([life[-1][:2] for life in lives], [("rate", "7"), ("rate", "10"), ("rate", "15")])
        self.assertEqual(sum(lives, []), whole)

    @unittest.skipUnless(importlib.util.find_spec("transformers") and importlib.util.find_spec("accelerate"), "needs transformers and accelerate")
    def test_hugging_faces_trainer_goes_on_to_the_same_bits(self):
        self.goes_on("hugging_face.py")

    @unittest.skipUnless(importlib.util.find_spec("lightning"), "needs lightning")
    def test_lightnings_trainer_goes_on_to_the_same_bits(self):
        self.goes_on("lit.py")


main()

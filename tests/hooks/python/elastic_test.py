"""The place in the data: each sample once an epoch, on any numbers of ranks."""
import importlib.util
import random
import sys
import unittest

from lives import HERE, ROOT, Lives, free_port, main

sys.path.insert(0, str(ROOT / "hooks/python"))
from cairn.errors import Mismatch  # noqa: E402
from cairn.torch.sampler import ElasticSampler  # noqa: E402


class SamplerTest(unittest.TestCase):
    def life(self, ranks, state, stop, **options):
        """What each step used, up to `stop` steps, and the state after it."""
        samplers = [ElasticSampler(rank=rank, world_size=ranks, **options) for rank in range(ranks)]
        for sampler in samplers:
            if state is not None:
                sampler.load_state_dict(state)
        batches = [list(sampler) for sampler in samplers]
        steps = []
        for i, (piece, _, end) in enumerate(samplers[0].schedule()):
            if piece == 0:
                if len(steps) == stop:
                    break
                steps.append([])
            for of_rank in batches:
                self.assertIn(len(of_rank[i]), range(1, options["batch_size"] + 2))
                steps[-1] += of_rank[i]
            samplers[0].consumed = end
        return steps, samplers[0].state_dict()

    def test_any_numbers_of_ranks_one_after_the_other_use_each_sample_once(self):
        chance = random.Random(4)
        for _ in range(60):
            options = {"length": chance.randint(60, 200), "batch_size": chance.randint(2, 9), "seed": chance.randint(0, 9),
                       "batch_policy": chance.choice(["keep-global", "scale"])}
            used, state = [], None
            for stop in (2, 1, 1, 2, 1 << 30):
                steps, state = self.life(chance.choice([2, 3, 4]), state, stop, **options)
                used += [sample for step in steps for sample in step]
                if state["length"] - state["consumed"] < 4:  # not enough for four ranks
                    break
            used += [sample for step in self.life(1, state, 1 << 30, **options)[0] for sample in step]
            self.assertEqual(sorted(used), list(range(options["length"])), options)

    def test_a_step_takes_the_same_samples_on_any_number_of_ranks(self):
        whole, _ = self.life(4, None, 99, length=100, batch_size=3)
        first, state = self.life(4, None, 2, length=100, batch_size=3)
        self.assertEqual([len(step) for step in whole], [12] * 8 + [4])
        for ranks in (1, 2, 3):
            steps, _ = self.life(ranks, state, 99, length=100, batch_size=3)
            self.assertEqual([sorted(step) for step in first + steps], [sorted(step) for step in whole])

    def test_each_epoch_has_an_order_of_its_own(self):
        orders = []
        for epoch in (0, 1, 0):
            sampler = ElasticSampler(50, 10)
            sampler.set_epoch(epoch)
            orders.append([sample for batch in sampler for sample in batch])
        self.assertEqual(orders[0], orders[2])
        self.assertNotEqual(orders[0], orders[1])
        self.assertEqual([batch for batch in ElasticSampler(5, 2, shuffle=False)], [[0, 1], [2, 3], [4]])

    def test_refuses_what_would_lose_the_place(self):
        state = ElasticSampler(100, 2, rank=0, world_size=2).state_dict()
        for options, why in ((dict(length=99), "length was 100 and is 99"), (dict(seed=1), "seed"), (dict(batch_policy="refuse"), "3 ranks instead of 2"),
                             (dict(world_size=5), "a global batch of 4 is not enough for 5 ranks")):
            with self.assertRaisesRegex(Mismatch, why):
                ElasticSampler(**{"length": 100, "batch_size": 2, "rank": 0, "world_size": 3, **options}).load_state_dict(state)


class ElasticTest(Lives):
    @unittest.skipUnless(importlib.util.find_spec("torchdata"), "needs torchdata")
    def test_a_stateful_data_loader_goes_on_where_it_was(self):
        used = {0: [], 1: []}
        for stop in (3, 99):
            for words in (words for words in self.life("run", 1, HERE / "elastic.py", free_port(), stop, "stateful")[0] if words[0] == "step"):
                used[int(words[1])] += map(int, words[4:])
            self.assertNotIn("begins anew", self.log)
        for epoch in used:
            self.assertEqual(sorted(used[epoch]), list(range(60)))
        for ranks in (1, 2):
            self.life("resized", ranks, HERE / "elastic.py", free_port(), 3 * ranks, "stateful")
        self.assertIn("cairn: the loader's own place is that of another number of ranks (1): epoch 0 begins anew", self.log)

    def test_a_loop_that_is_left_by_break_ends_its_epoch(self):
        orders = {"plain": [list(range(60))] * 2, "elastic": []}
        for epoch in range(2):
            sampler = ElasticSampler(60, 4, seed=7)
            sampler.set_epoch(epoch)
            orders["elastic"].append([sample for batch in sampler for sample in batch])
        for kind, order in orders.items():
            used = {0: [], 1: []}
            for stop in (6, 99):  # in the middle of the second epoch's four batches
                for words in (words for words in self.life(kind, 1, HERE / "elastic.py", free_port(), stop, kind, 4)[0] if words[0] == "step"):
                    used[int(words[1])] += map(int, words[4:])
            self.assertEqual(used, {epoch: order[epoch][:16] for epoch in used}, kind)

    def test_a_count_of_batches_that_is_saved_before_the_first_one_is_still_that_of_the_ranks_before(self):
        used = {0: [], 1: []}
        for ranks, stop in ((2, 3), (1, 0), (2, 0), (1, 99)):
            for words in (words for of_rank in self.life("run", ranks, HERE / "elastic.py", free_port(), stop, "split") for words in of_rank):
                used[int(words[1])] += map(int, words[4:])
        for epoch in used:
            self.assertEqual(sorted(used[epoch]), list(range(60)))

    def test_four_resizes_in_two_epochs_use_each_sample_once_an_epoch(self):
        used = {0: [], 1: []}
        pieces = []
        for ranks, stop in ((2, 3), (1, 6), (3, 9), (1, 12), (2, 99)):  # 8 samples a step: an epoch has 8 steps
            said = self.life("run", ranks, HERE / "elastic.py", free_port(), stop)
            for words in (words for of_rank in said for words in of_rank if words[0] == "step"):
                used[int(words[1])] += map(int, words[4:])
            pieces.append(int(said[0][0][3]))
            if ranks == 3:
                self.assertIn("cairn: 3 ranks instead of 1; global batch 8 instead of 8, accumulation steps 1; learning rate 0.25", self.log)
        self.assertEqual(pieces, [1, 2, 1, 2, 1])
        for epoch in used:
            self.assertEqual(sorted(used[epoch]), list(range(60)))


main()

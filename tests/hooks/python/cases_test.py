"""Ways to train that are not ways to wrap: all of them in one attached run, stopped after a save and resumed on fewer ranks, to the same bits."""
from lives import HERE, Lives, free_port, main


class CasesTest(Lives):
    def train(self, run, ranks, *arguments):
        said = self.life(run, ranks, HERE / "cases.py", free_port(), *arguments)[0]
        return {(words[2], int(words[1])): float(words[3]) for words in said if words[0] == "loss"}, said

    def test_each_case_resumes_on_half_the_ranks_to_the_same_bits(self):
        whole, _ = self.train("whole", 4)
        before, _ = self.train("run", 4, "--stop-at", 3)
        after, said = self.train("run", 2)
        self.assertEqual(said[0], ["resumed", "3"])
        for case in sorted({case for case, _ in whole}):
            with self.subTest(case):
                self.assertEqual([before[case, step] for step in (1, 2, 3)] + [after[case, step] for step in (4, 5, 6)],
                                 [whole[case, step] for step in range(1, 7)])


main()

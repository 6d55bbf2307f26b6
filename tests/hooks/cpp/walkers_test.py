"""The C++ interface: its example, resumed on other numbers of ranks.

    walkers_test.py BUILD [UNITTEST OPTION …]
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from lives import Lives, main  # noqa: E402

WALKERS, STEPS = 1000, 6


def expected():
    at = list(range(WALKERS))
    for _ in range(STEPS):
        at = [(walker * 6364136223846793005 + 1442695040888963407) % 2**64 for walker in at]
    return sum(at) % 2**64


class WalkersTest(Lives):
    def setUp(self):
        super().setUp()
        self.program = self.build.resolve() / "contrib/examples/walkers"
        self.programs.toy = self.program

    def check(self, said, begun):
        self.assertEqual([lines[0] for lines in said], [["from", str(begun)]] * len(said))
        self.assertEqual(sum(int(lines[1][1]) for lines in said) % 2**64, expected())
        self.assertEqual([lines[1][3] for lines in said], [str(WALKERS * STEPS)] * len(said))

    def test_walks_the_same_way_on_any_number_of_ranks(self):
        for ranks in (3, 1, 4):
            run = f"run{ranks}"
            self.life(run, 3, STEPS, 4)
            self.check(self.life(run, ranks, STEPS), begun=4)

    def test_walks_without_cairn(self):
        done = subprocess.run([self.program, str(STEPS)], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True)
        self.check([[line.split() for line in done.stdout.splitlines()]], begun=0)
        self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    main()

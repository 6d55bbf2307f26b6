"""The package without PyTorch: whole lives of ranks in plain Python, and where arrays of others lie."""
import ctypes
import subprocess
import sys
import unittest

from lives import HERE, ROOT, Lives, main

sys.path.insert(0, str(ROOT / "hooks/python"))
from cairn import memory  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None


class SessionTest(Lives):
    def test_resumes_on_any_number_of_ranks_with_what_each_noted(self):
        whole = [float.fromhex(words[1]) for said in self.life("whole", 3, HERE / "counter.py") for words in said if words[0] == "sum"]
        for ranks in (3, 2, 4):
            run = f"run{ranks}"
            self.life(run, 3, HERE / "counter.py", "--save-at", 4, "--stop-at", 4)
            later = self.life(run, ranks, HERE / "counter.py")
            for rank, said in enumerate(later):
                self.assertIn(["resumed", "4"], said)
                self.assertIn(["notes", "0of3", "1of3", "2of3"], said)
                self.assertIn(["own", str(rank) if ranks == 3 else "none"], said)
            sums = [float.fromhex(words[1]) for said in later for words in said if words[0] == "sum"]
            self.assertEqual(sum(sums), sum(whole))  # binary fractions of few digits: exact in any order

    def test_a_program_runs_as_it_is_where_there_is_no_cairn(self):
        done = subprocess.run([sys.executable, HERE / "counter.py"], env={"PYTHONPATH": str(ROOT / "hooks/python"), "PATH": "/usr/bin:/bin"},
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        self.assertIn("resumed 0\n", done.stdout)
        self.assertIn("done\n", done.stdout)


@unittest.skipUnless(numpy, "needs NumPy")
class DescribeTest(unittest.TestCase):
    def test_finds_numpy_arrays_dense_and_strided(self):
        whole = numpy.zeros((6, 8), numpy.float32)
        self.assertEqual(memory.describe(whole), ("F32", (6, 8), None, whole.ctypes.data))
        part = whole[1:5:2, 2:5]
        self.assertEqual(memory.describe(part), ("F32", (2, 3), (16, 1), whole.ctypes.data + 4 * 10))

    def test_refuses_what_a_restore_could_not_fill(self):
        fixed = numpy.zeros(3)
        fixed.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "read-only"):
            memory.describe(fixed)
        with self.assertRaisesRegex(TypeError, "no dtype"):
            memory.describe(numpy.zeros(3, ">f8"))

    def test_finds_a_dlpack_tensor(self):
        class Tensor:  # has DLPack alone
            def __init__(self, array):
                self.array = array

            def __dlpack__(self):
                return self.array.__dlpack__()

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        array = numpy.arange(24, dtype=numpy.int16).reshape(4, 6)[1:, ::2]
        dtype, shape, stride, address = memory.describe(Tensor(array))
        self.assertEqual((dtype, shape, tuple(stride), address), ("I16", (3, 3), (6, 2), array.ctypes.data))
        self.assertEqual(ctypes.c_int16.from_address(address).value, 6)


main()

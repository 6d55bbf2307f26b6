"""Reading what was saved, in a process that is no rank."""
import array
import os
import sys

from lives import HERE, ROOT, Lives, main

sys.path.insert(0, str(ROOT / "hooks/python"))
import cairn  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

FORTRAN = """
import cairn, ctypes
memory = (ctypes.c_double * 6)(*range(6))  # element (i, j) of a 2×3 matrix by columns is i + 2j
session = cairn.Session()
session.add_array("f", "F64", (2, 3), [cairn.Piece((0, 0), (2, 3), ctypes.addressof(memory))], fortran=True)
session.restore()
session.step(1)
session.finalize()
"""


class CheckpointTest(Lives):
    def setUp(self):
        super().setUp()
        os.environ["CAIRN_LIBRARY"] = str(self.build.resolve() / "runtime/libcairn.so")

    def read(self, checkpoint, name, count, *box):
        memory = array.array("d", [-1.0] * count)
        checkpoint.read(name, memory.buffer_info()[0], 8 * count, *box)
        return memory.tolist()

    def test_gives_whole_arrays_and_boxes_of_what_three_ranks_saved(self):
        self.life("run", 3, HERE / "counter.py", "--save-at", 4, "--stop-at", 4)
        expected = [float(i) for i in range(60)]
        for step in range(4):
            expected = [value * 1.5 + step for value in expected]
        with cairn.Checkpoint(self.folder / "run") as checkpoint:
            self.assertEqual((checkpoint.step, checkpoint.label, checkpoint.world_size), (4, 4, 3))
            self.assertEqual(checkpoint.arrays["u"], cairn.SavedArray(checkpoint.arrays["u"].index, "u", "F64", (12, 5), False))
            self.assertEqual(self.read(checkpoint, "u", 60), expected)
            self.assertEqual(self.read(checkpoint, "u", 6, (3, 1), (2, 3)), expected[16:19] + expected[21:24])  # of two ranks
            with self.assertRaisesRegex(cairn.Invalid, 'has no array "v"; it has u'):
                self.read(checkpoint, "v", 60)
            if numpy:
                whole = numpy.array(expected).reshape(12, 5)
                numpy.testing.assert_array_equal(checkpoint.array("u"), whole)
                numpy.testing.assert_array_equal(checkpoint.array("u", (3, 1), (2, 3)), whole[3:5, 1:4])
            for box, why in ((((11, 0), (2, 5)), "does not lie inside"), (((0, 0), (1, 5)), "has 40 bytes, the memory 480")):
                with self.assertRaisesRegex(cairn.Invalid, why):
                    self.read(checkpoint, "u", 60, *box)
        self.assertEqual(cairn.Checkpoint(self.folder / "run", 4).step, 4)
        with self.assertRaisesRegex(cairn.Error, "no checkpoint of step 5; there are 4"):
            cairn.Checkpoint(self.folder / "run", 5)

        shard, = (path for path in (self.folder / "run").glob("step-*4.*/shard-*-of-*.safetensors") if b'"u"' in path.read_bytes()
                  and path.name.startswith("shard-00001-"))
        content = bytearray(shard.read_bytes())
        content[-1] ^= 1
        shard.write_bytes(content)
        with cairn.Checkpoint(self.folder / "run") as checkpoint, self.assertRaises(cairn.Damage):
            self.read(checkpoint, "u", 60)

    def test_reads_a_fortran_array_in_its_own_order(self):
        self.life("run", 1, "-c", FORTRAN)
        with cairn.Checkpoint(self.folder / "run") as checkpoint:
            self.assertEqual((checkpoint.arrays["f"].shape, checkpoint.arrays["f"].fortran), ((2, 3), True))
            self.assertEqual(self.read(checkpoint, "f", 6), [0, 1, 2, 3, 4, 5])
            self.assertEqual(self.read(checkpoint, "f", 2, (1, 1), (1, 2)), [3, 5])
            if numpy:
                self.assertEqual(checkpoint.array("f").tolist(), [[0, 2, 4], [1, 3, 5]])


main()

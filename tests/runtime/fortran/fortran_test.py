"""The Fortran module: arrays of every type and shape, errors, its constants, and its example under MPI.

    fortran_test.py BUILD [UNITTEST OPTION …]
"""
import json
import pathlib
import re
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "hooks/python"))
from lives import ROOT, Lives, main  # noqa: E402


class ModuleTest(Lives):
    def setUp(self):
        super().setUp()
        self.programs.toy = self.build.resolve() / "tests/runtime/fortran/fortran_kinds"

    def test_every_type_and_shape_comes_back_on_any_number_of_ranks(self):
        for ranks in (3, 2, 5):
            run = f"run{ranks}"
            self.assertEqual(self.life(run, 3), [[["saved", str(rank)]] for rank in range(3)])
            self.assertEqual(self.life(run, ranks), [[["wrong", "0"], ["finalize", "0"]]] * ranks)

        shown = json.loads(subprocess.run([self.programs.cairn, "show", f"{self.folder}/run3@first", "--json"], check=True, capture_output=True, text=True).stdout)
        self.assertEqual({array["name"]: (array["dtype"], array["shape"]) for array in shown["arrays"]}, {
            "int8": ("I8", [12]), "int16": ("I16", [12]), "int32": ("I32", [12]), "int64": ("I64", [12]), "real32": ("F32", [12]), "real64": ("F64", [12]),
            "complex32": ("C64", [12]), "complex64": ("F64", [2, 2, 12]), "bool": ("BOOL", [12]), "logical": ("I32", [12]), "plane": ("I32", [5, 12]),
            "twins": ("I32", [4, 12]), "component": ("F64", [2, 12]), "scalar": ("F64", []), "seven": ("F64", [2, 1, 2, 3, 1, 2, 2]), "swapped": ("I32", [3])})

    def test_errors_are_returned_or_end_the_program(self):
        [said] = self.life("run", 1, "errors")
        other = "cairn_update('u'): type, extents or strides are not those of the piece that was added"
        for (what, code, *message), expected in zip(said, (
                ("gaps", "-1", "cairn_add_blob('gaps'): there are gaps between the elements"),
                ("dims", "-1", "cairn_add_array('dims'): pieces, shape and offsets differ in the number of dimensions, or pieces in their type"),
                ("uneven", "-1", "cairn_add_array('uneven'): the distance of its elements is no multiple of the size of a number; give an array of their own"),
                ("outside", "-1", 'item "outside": a piece of extent 12 at offset 1 in dimension 0 reaches outside the global shape (12)'),
                ("shorter", "-1", other), ("typed", "-1", other), ("spread", "-1", other),
                ("second", "-1", 'item "u": there is no piece 1'),
                ("early", "-9", "cairn_step before cairn_restore")), strict=True):
            self.assertEqual((what, code, " ".join(message)), expected)
        self.assertNotIn("rank0.err: cairn_", self.log)
        with self.started("other", 1, "stop") as step:
            self.assertTrue(step.join(60))
            self.assertEqual(step.ranks[0].returncode, 1)
            self.assertIn("cairn_add_output('/there/is/no/such/folder'): output \"/there/is/no/such/folder\": there is no such folder", step.log())

    def test_compiles_with_long_integers_and_refuses_what_has_no_place_in_memory(self):
        compiler = re.search(r"^CMAKE_Fortran_COMPILER:\w+=(.*)$", (self.build / "CMakeCache.txt").read_text(), re.M)[1]

        def compiled(*source):
            done = subprocess.run([compiler, "-fdefault-integer-8", "-fsyntax-only", *source], cwd=self.folder, capture_output=True, text=True)
            return "" if done.returncode == 0 else done.stderr

        self.assertEqual(compiled(self.build.resolve() / "runtime/fortran/cairn.f90"), "")
        for piece, place in (("u", True), ("u(1:2)", True), ("l", True), ("w", False), ("2 * u", False), ("[u(1), u(2)]", False), ("3", False)):
            (self.folder / "piece.f90").write_text(f"""
                use cairn
                integer, target :: u(3)
                integer :: w(3)
                logical, target :: l(3)
                type(cairn_session) :: session
                call cairn_add_array(session, 'u', cairn_piece({piece}), shape=[3], offset=[0])
                call cairn_step(session, 1)
                end
                """)
            with self.subTest(piece):
                self.assertEqual(compiled("piece.f90") == "", place)

    def test_constants_are_those_of_the_header(self):
        module = dict(re.findall(r"parameter.* :: (CAIRN_\w+) = (-?\d+)", (self.build / "runtime/fortran/cairn.f90").read_text()))
        self.assertGreater(len(module), 20)
        header = (ROOT / "runtime/include/cairn/cairn.h").read_text()
        values = "\n".join(f'printf("{name} %d\\n", {name});' for name in module)
        source = self.folder / "constants.c"
        source.write_text(f"#include <stdio.h>\n{header}\nint main(void) {{\n{values}\n}}\n")
        subprocess.run(["cc", source, "-o", self.folder / "constants"], check=True)
        self.assertEqual(dict(line.split() for line in subprocess.run([self.folder / "constants"], check=True, capture_output=True, text=True).stdout.splitlines()), module)


NX, NY, STEPS = 9, 11, 20


def expected_hash():
    """The same physics in Python, whose numbers are IEEE doubles too."""
    u = [[x * y / (NX * NY) if 0 < x <= NX and 0 < y <= NY else 0.0 for x in range(NX + 2)] for y in range(NY + 2)]
    for _ in range(STEPS):
        old = [list(row) for row in u]
        for y in range(1, NY + 1):
            for x in range(1, NX + 1):
                u[y][x] = old[y][x] + 0.125 * ((old[y][x - 1] + old[y][x + 1]) + (old[y - 1][x] + old[y + 1][x]) - 4 * old[y][x])
    total = 0
    for y in range(1, NY + 1):
        for x in range(1, NX + 1):
            [bits] = struct.unpack("<Q", struct.pack("<d", u[y][x]))
            by = (y * NX + x) % 64
            total ^= (bits << by | bits >> (64 - by)) % 2**64
    return f"{total:016X}"


class HeatTest(Lives):
    def setUp(self):
        super().setUp()
        self.programs.toy = self.build.resolve() / "contrib/examples/heat"

    def test_resumes_on_another_number_of_ranks_with_an_equal_result(self):
        hot = expected_hash()
        self.assertEqual(self.mpi_life("whole", 2, NX, NY, STEPS), [["from", "0"], ["hash", hot]])
        self.assertEqual(self.mpi_life("run", 3, NX, NY, STEPS, 7), [["from", "0"]])
        self.assertEqual(self.mpi_life("run", 2, NX, NY, STEPS, 13), [["from", "7"]])
        self.assertEqual(self.mpi_life("run", 4, NX, NY, STEPS), [["from", "13"], ["hash", hot]])


if __name__ == "__main__":
    main()

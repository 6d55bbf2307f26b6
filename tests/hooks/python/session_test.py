"""The package without PyTorch: whole lives of ranks in plain Python, and where arrays of others lie."""
import ctypes
import json
import re
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


FAILS = """
import cairn, ctypes
memory = (ctypes.c_double * 6)()
session = cairn.Session()
session.add_array("u", "F64", (6,), [cairn.Piece((0,), (6,), ctypes.addressof(memory))])
def collect():
    if now == 1:
        raise ValueError(f"no state at {now}")
session.on_copy(collect)
session.restore()
for now in range(1, 4):
    session.save()
    session.step(now)
    session.wait()
session.finalize()
print("finished")
"""

# Of each type 4 rows of 12 elements, of which each rank has columns.
TYPES = """
import cairn, ctypes, os
BYTES = {**dict.fromkeys("BOOL U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ F4".split(), 1), **dict.fromkeys("I16 U16 F16 BF16".split(), 2),
         **dict.fromkeys("F6_E2M3 F6_E3M2".split(), 3), **dict.fromkeys("I32 U32 F32".split(), 4), **dict.fromkeys("F64 I64 U64 C64".split(), 8)}
assert set(BYTES) == set(cairn.memory.DTYPES), set(BYTES) ^ set(cairn.memory.DTYPES)
rank, ranks = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
begin, end = 12 * rank // ranks, 12 * (rank + 1) // ranks
def content(kind):
    return bytes((31 * kind + 7 * row + 11 * column + 3 * byte + 1) % 2 if kind == 0 else (31 * kind + 7 * row + 11 * column + 3 * byte + 1) % 251
                 for row in range(4) for column in range(begin, end) for byte in range(list(BYTES.values())[kind]))
session = cairn.Session()
memory = []
for name, size in BYTES.items():
    memory.append((ctypes.c_char * (4 * (end - begin) * size))())
    session.add_array(name, name, (4, 12), [cairn.Piece((0, begin), (4, end - begin), ctypes.addressof(memory[-1]))])
report = session.restore()
for kind, own in enumerate(memory):
    if report.restored:
        assert bytes(own) == content(kind), (list(BYTES)[kind], bytes(own), content(kind))
    own[:] = content(kind)
session.step(1)
session.finalize()
print("resumed" if report.restored else "began")
"""

SCALAR = """
import cairn, ctypes
memory = (ctypes.c_char * 1)()
try:
    cairn.Session().add_array("q", "F4", (), [cairn.Piece((), (), ctypes.addressof(memory))])
except cairn.Invalid as error:
    print(error)
"""

LEFT = """
import cairn, ctypes
memory = (ctypes.c_double * 6)()
with cairn.Session() as session:
    session.add_array("u", "F64", (6,), [cairn.Piece((0,), (6,), ctypes.addressof(memory))])
    report = session.restore()
    if report.restored:
        print("resumed", report.step)
    else:
        session.save()
        session.step(1)
        session.wait()
        raise ValueError("left")
"""


class SessionTest(Lives):
    def test_resumes_on_any_number_of_ranks_with_what_each_noted(self):
        whole = [float.fromhex(words[1]) for said in self.life("whole", 3, HERE / "counter.py") for words in said if words[0] == "sum"]
        for ranks in (3, 2, 4):
            run = f"run{ranks}"
            earlier = self.life(run, 3, HERE / "counter.py", "--save-at", 4, "--stop-at", 4)
            [manifest] = (self.folder / run).glob("step-*/manifest.json")
            self.assertEqual(json.loads(manifest.read_text())["metrics"], {"loss": {"value": 0.5, "step": 3}})
            later = self.life(run, ranks, HERE / "counter.py")
            number = re.search('"id": ?"([0-9a-f]{16})"', (self.folder / run / "RUN").read_text()).group(1)
            for said in earlier + later:
                self.assertIn(["run", number], said)
            for rank, said in enumerate(later):
                self.assertIn(["resumed", "4"], said)
                self.assertIn(["notes", "0of3", "1of3", "2of3"], said)
                self.assertIn(["own", str(rank) if ranks == 3 else "none"], said)
            sums = [float.fromhex(words[1]) for said in later for words in said if words[0] == "sum"]
            self.assertEqual(sum(sums), sum(whole))  # binary fractions of few digits: exact in any order

    def test_saves_from_device_memory_and_restores_into_it(self):
        driver = self.build.resolve() / "tests/support/cuda_standin"
        if not (driver / "libcuda.so.1").exists():
            self.skipTest("built without cuda.h")
        self.settings = self.settings | {"LD_LIBRARY_PATH": str(driver), "CUDA_STANDIN_COMPUTE_US": "5000"}
        [first] = self.life("device", 1, HERE / "device.py")
        self.assertEqual(first, [["resumed", "0"], ["holds", "0"], ["done"]])
        [second] = self.life("device", 1, HERE / "device.py")
        self.assertEqual(second, [["resumed", "5"], ["holds", "5"], ["done"]])

    def test_elements_of_every_type_go_to_any_number_of_ranks(self):
        for ranks, said in ((2, "began"), (3, "resumed"), (1, "resumed")):
            self.assertEqual(self.life("run", ranks, "-c", TYPES), [[[said]]] * ranks)

    def test_an_array_of_several_values_an_element_has_a_dimension(self):
        [said] = self.life("run", 1, "-c", SCALAR)
        self.assertRegex(" ".join(said[0]), "array 'q' of shape .*: an element of F4 is 2 values, so it has at least one dimension")

    def test_loads_what_a_changed_program_still_has(self):
        def program(items, load=None, *more):
            said = self.life("run", 2, HERE / "changed.py", "--items", *items, "--load", json.dumps(load or {}), *more)
            of_rank = said[1]
            words = {line[0]: line for line in of_rank}
            report = json.loads(" ".join(words["report"][1:])) if "report" in words else None
            return {line[1]: line[2] for line in of_rank if line[0] == "item"}, report, words

        program(["net.a=1:7", "net.b=2:5", "big=3:2000000", "gone=4:3"], None, "--save")
        changed = ["model.a=11:7", "model.b=12:5", "big=13:2000000", "new=14:2"]

        _, _, words = program(changed)
        refusal = " ".join(words["mismatch"])
        for line in ("net.a: saved [7] F64, not registered", "gone: saved [3] F64, not registered", "new: registered [2] F64, not in the checkpoint",
                     "--checkpoint-match=allow-missing,allow-extra"):
            self.assertIn(line, refusal)
        _, _, words = program(["net.a=1:8", "net.b=2:5", "big=3:2000000"], {"match": "allow-missing,allow-extra"})
        self.assertIn("net.a: saved [7] F64, registered [8] F64", " ".join(words["mismatch"]))
        self.assertNotIn("--checkpoint-match", " ".join(words["mismatch"]))

        items, report, words = program(changed, {"match": "allow-missing,allow-extra", "rename": {"net.*": "model.*"}})
        self.assertEqual(items, {"model.a": "1.0", "model.b": "2.0", "big": "3.0", "new": "14.0"})
        self.assertEqual((report["loaded"], report["missing"], report["extra"], report["reset"], report["left"]),
                         (["model.a", "model.b", "big"], ["new"], ["gone"], [], []))
        self.assertEqual((report["renamed"], report["match"]), ({"net.a": "model.a", "net.b": "model.b"}, "allow-missing,allow-extra"))
        whole = int(words["read"][1])
        self.assertIn("new: registered [2] F64, not in the checkpoint", self.log)

        items, report, words = program(changed, {"only": ["model.*"], "rename": {"net.*": "model.*"}})
        self.assertEqual(items, {"model.a": "1.0", "model.b": "2.0", "big": "13.0", "new": "14.0"})
        self.assertEqual((report["loaded"], report["left"], report["match"]), (["model.a", "model.b"], ["big", "new"], "strict"))
        self.assertLess(int(words["read"][1]), whole / 2)  # one block or two, of 16 MB

        self.settings = {**self.settings, "CAIRN_MATCH": "strict"}  # the user's word counts, not the program's
        _, _, words = program(changed, {"match": "allow-missing,allow-extra"})
        self.assertIn("mismatch", words)

    def test_no_step_stands_twice_in_an_output(self):
        files, program = self.folder / "files", (HERE / "outputs.py", self.folder / "files")
        files.mkdir()

        def lengths(run, ranks, *arguments, **settings):
            self.settings = {"PYTHONPATH": self.settings["PYTHONPATH"], **settings}
            return [next(line[1:] for line in said if line[0] == "lengths") for said in self.life(run, ranks, *program, *arguments)]

        def steps(name):
            return [int(line.split()[1]) for line in (files / name).read_text().splitlines()]

        self.assertEqual(lengths("run", 2, "--save-at", 4, "--stop-at", 4), [["-1", "-1"], ["-1"]])
        self.assertEqual(steps("loss.csv"), list(range(6)))  # the save counts the steps 0 … 3
        saved = str(4 * len("step 0\n"))
        self.assertEqual(lengths("run", 3, "--stop-at", 7), [[saved, saved], [saved], ["-1"]])
        self.assertEqual([steps(name) for name in ("loss.csv", "rank0.log", "rank1.log", "rank2.log")], [list(range(9))] * 3 + [[4, 5, 6, 7, 8]])
        self.assertEqual(lengths("run", 2), [[saved, saved], [saved]])
        for name in ("loss.csv", "rank0.log", "rank1.log"):
            self.assertEqual(steps(name), list(range(9)))
        self.assertEqual(steps("rank2.log"), [4, 5, 6, 7, 8])  # nobody added it

        whole = str((files / "loss.csv").stat().st_size)
        self.assertEqual(lengths("other", 2, "--stop-at", 5, CAIRN_FROM=f"{self.folder}/run@4"), [[whole, whole], [whole]])  # another run's files

    def test_a_life_that_is_not_part_of_the_line_cuts_no_output(self):
        files, program = self.folder / "files", (HERE / "outputs.py", self.folder / "files")
        files.mkdir()
        self.life("run", 1, *program, "--save-at", 4, "--stop-at", 4)
        before = (files / "loss.csv").stat().st_size
        (self.folder / "run/PARENT-00000002").mkdir()  # which keeps the next life from publishing its parent
        [said] = self.life("run", 1, *program, "--stop-at", 6)
        self.assertIn(["lengths", str(before), str(before)], said)
        self.assertIn("outputs are not cut back", self.log)

    def test_a_run_told_never_to_resume_does_not_begin_from_its_origin(self):
        self.life("run", 1, HERE / "counter.py", "--save-at", 4, "--stop-at", 4)
        origin = {"CAIRN_FROM": f"{self.folder}/run@4"}
        [begun] = self.life("other", 1, HERE / "counter.py", "--stop-at", 5, **origin)
        self.assertIn(["resumed", "4"], begun)
        [later] = self.life("other", 1, HERE / "counter.py", CAIRN_RESUME="never", **origin)  # in a later life of its job
        self.assertIn(["resumed", "0"], later)

    def test_a_save_whose_state_could_not_be_put_together_is_none(self):
        [said] = self.life("run", 1, "-c", FAILS)
        self.assertEqual(said, [["finished"]])
        self.assertIn("ValueError: no state at 1", self.log)
        self.assertRegex(self.log, r"no save \(request\): rank 0: the program could not put its state together: ValueError: no state at 1\. The job goes on")
        steps = sorted(json.loads(path.read_text())["step"] for path in (self.folder / "run").glob("step-*/manifest.json"))
        self.assertEqual(steps, [2, 3])

    def test_a_block_that_an_exception_leaves_can_be_resumed(self):
        with self.started("run", 1, "-c", LEFT) as step:
            self.assertTrue(step.join(60), step.log())
            self.assertEqual(step.ranks[0].returncode, 1)
        self.assertFalse((self.folder / "run/FINISHED").exists())
        self.assertEqual(self.life("run", 1, "-c", LEFT), [[["resumed", "1"]]])
        self.assertTrue((self.folder / "run/FINISHED").exists())

    def test_an_output_has_one_owner(self):
        (self.folder / "files").mkdir()
        said, _ = self.life("run", 2, HERE / "outputs.py", self.folder / "files", "--all")
        self.assertIn('loss.csv" is added by rank 0 and by rank 1', " ".join(said[0]))

    def test_rows_of_a_table_go_to_any_number_of_ranks(self):
        def rows(*life):
            self.said = [{words[0]: [int(word) for word in words[1:]] for words in rank} for rank in self.life("run", *life)]
            return [rank["rows"] for rank in self.said]

        first = rows(3, HERE / "rows.py")
        whole = [0, 1, 2, 3, 100, 101, 102, 103, 104, 200, 201, 202, 203, 204, 205]
        self.assertEqual(sum(first, []), whole)
        self.assertEqual(rows(2, HERE / "rows.py", "--capacity", 1), [whole[:8], whole[8:]])
        self.assertEqual([rank["capacity"] for rank in self.said], [[11], [10]])
        self.assertEqual(rows(4, HERE / "rows.py", "--owner"), [[0, 100, 104, 200, 204], [1, 101, 201, 205], [2, 102, 202], [3, 103, 203]])

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
        self.assertEqual(memory.describe("u", whole), ("F32", (6, 8), None, whole.ctypes.data))
        part = whole[1:5:2, 2:5]
        self.assertEqual(memory.describe("u", part), ("F32", (2, 3), (16, 1), whole.ctypes.data + 4 * 10))

    def test_refuses_what_a_restore_could_not_fill(self):
        fixed = numpy.zeros(3)
        fixed.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "read-only"):
            memory.describe("u", fixed)
        with self.assertRaisesRegex(TypeError, 'array "u": NumPy\'s >f8 cannot be saved'):
            memory.describe("u", numpy.zeros(3, ">f8"))

    def test_finds_a_dlpack_tensor(self):
        class Tensor:  # has DLPack alone
            def __init__(self, array):
                self.array = array

            def __dlpack__(self):
                return self.array.__dlpack__()

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        array = numpy.arange(24, dtype=numpy.int16).reshape(4, 6)[1:, ::2]
        dtype, shape, stride, address = memory.describe("u", Tensor(array))
        self.assertEqual((dtype, shape, tuple(stride), address), ("I16", (3, 3), (6, 2), array.ctypes.data))
        self.assertEqual(ctypes.c_int16.from_address(address).value, 6)


main()

"""Load planners of the program's own, over several processes. What is expected is computed here, from how the program fills its arrays.

    load_planner_test.py BUILD [UNITTEST OPTION …]
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from lives import Lives, main  # noqa: E402


def expected(without_f=False, saved_by=4):
    out = {("table", str(500 + rank)): "here" for rank in range(saved_by)}
    for i in range(6):
        for j in range(7):
            value = 100 + 10 * i + j if j < 4 else 200 + 10 * i + j - 4
            out["both", str(i), str(j)] = str(-1 if j >= 4 and (i == 5 or without_f) else value)
    for row in range(2):
        for k in range(4):
            out["part", str(4 * row + k)] = str(300 + 5 * row + k + 1)
    for k in range(2):
        out["same", str(k)] = str(401 + k)
    return out


class LoadPlannerTest(Lives):
    def program(self, name):
        self.programs.toy = self.build.resolve() / name

    def saved(self, ranks=4):
        self.program("tests/hooks/cpp/planned")
        self.life("run", ranks, "save")

    def planned(self, *arguments, saved_by=4, ranks=3):
        if not (self.folder / "run").exists():
            self.saved(saved_by)
        return self.life("run", ranks, *arguments)

    def damage(self, checkpoint):
        for shard in (self.folder / "run").glob(checkpoint + "/shard-*.safetensors"):
            shard.write_bytes(shard.read_bytes()[:-1] + b"?")

    def elements(self, said):
        """What all ranks have, each of them where another has it, too, alike."""
        out = {}
        for lines in said:
            self.assertEqual(lines[0], ["restore", "0"])
            for line in lines[1:]:
                if line[0] in ("both", "part", "same", "table"):
                    self.assertEqual(out.setdefault(tuple(line[:-1]), line[-1]), line[-1])
        return out

    def refused(self, said, code):
        """Why, which all ranks were told alike."""
        texts = {" ".join(word for line in lines for word in line) for lines in said}
        self.assertEqual(len(texts), 1, texts)
        text = texts.pop()
        self.assertTrue(text.startswith(f"restore {code} "), text)
        return text

    def test_slices_joins_and_turns_arrays_of_any_cut(self):
        said = self.planned("local")
        self.assertEqual(self.elements(said), expected())
        # Renamed: 0. Of "both", which has two sources, the first one.
        differences = [line[1:] for line in said[0] if line[0] == "difference"]
        self.assertEqual(differences, [["0", "both", "a"], ["0", "part", "flat"]])

    def test_brings_an_array_of_one_order_into_one_of_the_other(self):
        self.assertEqual(self.elements(self.planned("fortran", ranks=2)), expected())

    def test_carries_out_what_member_0_plans_for_all(self):
        self.assertEqual(self.elements(self.planned("global", saved_by=3, ranks=4)), expected(saved_by=3))

    def test_tells_the_planner_what_was_saved_and_what_will_be_read(self):
        said = self.planned("boxes", saved_by=3, ranks=1)
        self.assertEqual(said[0][0], ["boxes", "15", "step", "1", "then", "3"])
        # "part" lies in one range, which is one box: a and f, same, and both rows of flat.
        self.assertEqual(said[0][1], ["items", "5"])

    def test_refuses_an_impossible_plan_before_anything_is_read(self):
        self.saved()
        self.damage("step-*")  # whoever reads it, says so
        for mode, code, why in (
                ("outside", -1, 'the load plan of rank 1, item 5: asks for [4] elements at [1] of the saved array "same", which is [4] I64'),
                ("overlaps", -1, 'rank 1, item 5: brings something into [1:2] of "same", where item 2 brings something else'),
                ("lacks", -2, 'rank 1: the program\'s load planner failed in local_plan: the checkpoint has no array "nothing"'),
                ("lonely", -1, "it has no load planner, and rank 0 has one")):
            with self.subTest(mode):
                self.assertIn(why, self.refused(self.planned(mode), code))
        self.assertIn("no good checkpoint is left", self.refused(self.planned("local"), -5))

    def test_an_exception_of_a_planner_stops_all_ranks(self):
        failed = "the program's load planner failed in "
        self.assertIn(f"rank 1: {failed}finish_plan: it did not like the plan", self.refused(self.planned("throws"), -2))
        self.assertIn(f"rank 0: {failed}global_plan: an exception", self.refused(self.planned("throws_int"), -2))
        self.assertIn(f"rank 0: {failed}global_plan: out of memory", self.refused(self.planned("throws_memory"), -8))
        self.assertIn("failed in resolve: an item is to be resolved", self.refused(self.planned("unresolved"), -2))
        self.assertEqual(self.elements(self.planned("local")), expected())  # nothing was marked

    def test_a_planner_cannot_change_what_the_restore_works_on(self):
        said = self.planned("nested")
        for lines in said:
            self.assertEqual([" ".join(line) for line in lines[:4]], [
                "nested -9 cairn_add_blob in or after cairn_restore: add everything before",
                "nested -9 cairn_set_load in or after cairn_restore: say it before",
                "nested -9 cairn_set_load_planner in or after cairn_restore: say it before",
                "nested -9 cairn_restore was called twice"])
        self.assertEqual(self.elements([lines[4:] for lines in said]), expected())

    def test_what_a_plan_leaves_out_has_to_be_allowed(self):
        self.assertIn("f: saved [5, 3] F64 (Fortran order), and the load planner brings nothing of it",
                      self.refused(self.planned("without_f"), -2))
        said = self.planned("without_f", 2)  # CAIRN_MATCH_ALLOW_EXTRA
        self.assertEqual(self.elements(said), expected(without_f=True))

    def test_a_damaged_checkpoint_is_passed_over_at_the_next_start(self):
        self.saved()
        self.saved()
        self.damage("step-000000000002.*")
        self.assertIn("The damaged one is marked: run the same command again", self.refused(self.planned("local"), -2))
        self.assertEqual(self.elements(self.planned("local")), expected())

    def cut_off(self):
        """From now on no rank gets data from another."""
        if self.programs.sanitized:
            self.skipTest("nothing is preloaded in a build with sanitizers")
        self.programs.shim = f"{self.programs.shim}:{self.build.resolve() / 'tests/multiprocess/libcairn_hinder.so'}"
        self.settings = self.settings | {"HINDER": "deaf"}

    def test_what_is_resolved_anew_is_committed_once(self):
        self.saved()
        self.cut_off()
        said = self.planned("resolved")
        self.assertIn("the ranks cannot hand data to each other", self.log)
        self.assertEqual(self.elements(said), expected())
        self.assertEqual([lines[-1][2:] for lines in said], [["committed", "1"]] * 3)
        self.assertIn("2", [lines[-1][1] for lines in said])  # who is told in time that another has failed resolves once

    def test_ranks_that_cannot_connect_each_read_what_they_planned(self):
        self.program("contrib/examples/widen")
        self.life("run", 4, "old")
        self.cut_off()
        said = self.life("run", 3, "new")
        self.assertIn("the ranks cannot hand data to each other", self.log)
        self.assertEqual(sum(float(lines[0][3]) for lines in said), sum(range(128)))

    def test_the_example_converts_what_it_reads(self):
        self.program("contrib/examples/widen")
        self.life("run", 4, "old")
        said = self.life("run", 3, "new")
        self.assertEqual([lines[0][:2] for lines in said], [["from", "1"]] * 3)
        self.assertEqual(sum(float(lines[0][3]) for lines in said), sum(range(128)))
        again = self.life("run", 2, "new")  # which saved them as they are now
        self.assertEqual([lines[0][:2] for lines in again], [["from", "2"]] * 2)
        self.assertEqual(sum(float(lines[0][3]) for lines in again), sum(range(128)))


if __name__ == "__main__":
    main()

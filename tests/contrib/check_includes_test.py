"""check_includes.py against small trees of one source each: check_includes_test.py ROOT."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))


def check(path, line):
    """What the script prints for a tree in which `path` has this one line."""
    with tempfile.TemporaryDirectory() as tree:
        source = pathlib.Path(tree, path)
        source.parent.mkdir(parents=True)
        source.write_text(line + "\n")
        run = subprocess.run([sys.executable, ROOT / "contrib/check_includes.py", tree], capture_output=True, text=True,
                             check=False)
        assert run.returncode == (1 if run.stdout else 0), run
        return run.stdout


class CheckIncludes(unittest.TestCase):

    def test_allows_the_direction_of_the_design(self):
        for path, line in [
                ("planner/a.cc", '#include "planner/base/box.h"'),
                ("planner/a.cc", "#include <vector>"),
                ("runtime/io/a.cc", '#include "planner/layout.h"'),
                ("runtime/io/a.cc", '#include "runtime/io/fd.h"'),
                ("runtime/io/a.cc", '#include "hooks/preload/shim.h"'),
                ("runtime/io/a.cc", "#include <uv.h>"),
                ("plugin/a.c", '#include "runtime/settings.def"'),
                ("plugin/a.c", "#include <slurm/spank.h>"),
                ("hooks/a.c", '#include "runtime/include/cairn/cairn.h"'),
                ("hooks/a.c", "#include <cairn/cairn.h>"),
                ("tests/hooks/a.cc", '#include "hooks/preload/shim.h"'),
        ]:
            self.assertEqual(check(path, line), "", (path, line))

    def test_names_file_line_and_reason_of_each_fault(self):
        for path, line, reason in [
                ("planner/a.cc", '#include "runtime/io/fd.h"', "planner may include only"),
                ("planner/a.h", "#  include <thread>", "no I/O, threads or clocks"),
                ("planner/a.cc", "#include <sys/stat.h>", "only the standard library"),
                ("planner/a.cc", "#include <uv.h>", "only the standard library"),
                ("runtime/io/a.cc", '#include "hooks/preload/other.h"', "runtime may include only"),
                ("runtime/io/a.cc", '#include "plugin/options.h"', "runtime may include only"),
                ("runtime/io/a.cc", '#include "contrib/a.h"', "runtime may include only"),
                ("plugin/a.c", '#include "runtime/settings.h"', "plugin may include only"),
                ("hooks/a.cc", '#include "runtime/session/session.h"', "hooks may include only"),
                ("hooks/a.cc", '#include "planner/layout.h"', "hooks may include only"),
        ]:
            said = check(path, line)
            self.assertIn(f"{path}:1: ", said, (path, line))
            self.assertIn(reason, said, (path, line))

    def test_refuses_a_root_without_sources(self):
        with tempfile.TemporaryDirectory() as tree:
            run = subprocess.run([sys.executable, ROOT / "contrib/check_includes.py", tree], capture_output=True,
                                 check=False)
            self.assertEqual(run.returncode, 1)


if __name__ == "__main__":
    unittest.main()

"""The top level of the repository is what its design says, and nothing else: top_level_test.py ROOT."""
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))

FOLDERS = {".ci", "contrib", "docs", "hooks", "planner", "plugin", "runtime", "tests"}
FILES = {".clang-format", ".clang-tidy", ".gitignore", "CMakeLists.txt", "CMakePresets.json", "LICENSE", "NEWS.md", "README.md"}


def top_level():
    """What git has, or would take, there. Without git or a checkout (a tarball), all that is there but what a build leaves."""
    try:
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, text=True, check=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        return {path.name for path in ROOT.iterdir() if not path.name.startswith("build")} | {".gitignore"}
    return {path.split("/")[0] for path in listed if path and (ROOT / path).exists()}


class TopLevelTest(unittest.TestCase):

    def test_has_what_it_shall_have_and_nothing_else(self):
        there = top_level()
        self.assertEqual(sorted(there - FOLDERS - FILES), [], "too many: what belongs to no part goes into contrib")
        self.assertEqual(sorted((FOLDERS | FILES) - there), [], "missing")


if __name__ == "__main__":
    unittest.main(verbosity=2)

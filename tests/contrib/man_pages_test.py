"""The manual pages: those that are made, and those of docs/man.

    man_pages_test.py CAIRN ROOT [UNITTEST OPTION …]
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CAIRN, ROOT = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))


class ManPagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        subprocess.run([sys.executable, ROOT / "contrib/man_pages.py", CAIRN, folder.name], check=True)
        cls.pages = {path.name: path for path in [*pathlib.Path(folder.name).iterdir(), *(ROOT / "docs/man").iterdir()]}

    def shown(self, page):
        text = subprocess.run(["groff", "-man", "-Tutf8", "-rLL=200n", "-rHY=0", "-P-cbou", self.pages[page]], check=True, capture_output=True, text=True).stdout
        return re.sub(r"\s+", " ", text)

    def test_every_command_has_a_page_that_says_what_its_help_says(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        names = re.findall(r"^  ([a-z]+) ", subprocess.run([CAIRN, "--help"], check=True, capture_output=True, text=True).stdout.partition("Subcommands:")[2],
                           re.MULTILINE)
        self.assertGreater(len(names), 20)
        for name in names:
            words = subprocess.run([CAIRN, name, "--help"], check=True, capture_output=True, text=True).stdout.split()
            shown = self.shown(f"cairn-{name}.1").split()
            self.assertLessEqual({word for word in words if word not in ("Usage:", "Positionals:", "Options:", "Example:")}, set(shown), name)

    def test_pages_of_the_documentation_lose_nothing(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        for page, words in {"cairn.h.3": "int cairn_open(const cairn_open_options* options, cairn_session** session);",
                            "cairn-plugstack.5": "max_lives_limit=N no job is requeued for more than N lives, whatever its user asks for",
                            "cairn-formats.5": "• A decoder is total: for any input it returns the value or"}.items():
            self.assertIn(words, self.shown(page))

    def test_they_are_sound(self):
        checkers = [(["groff", "-ww", "-man", "-z", "-Tutf8"], r"cannot adjust line|can't break line"), (["mandoc", "-Tlint", "-Wwarning"], r"missing date")]
        for command, harmless in checkers:
            if not shutil.which(command[0]):
                continue
            for page in self.pages.values():
                done = subprocess.run([*command, page], capture_output=True, text=True)
                self.assertEqual([line for line in (done.stderr + done.stdout).splitlines() if not re.search(harmless, line)], [])


if __name__ == "__main__":
    unittest.main()

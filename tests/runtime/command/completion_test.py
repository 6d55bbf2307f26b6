"""`cairn completion`: what the shells offer is what the command has.

    completion_test.py BUILD [UNITTEST OPTION …]
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CAIRN = pathlib.Path(sys.argv.pop(1)).resolve() / "runtime/command/cairn"


def said(*arguments):
    return subprocess.run([CAIRN, *arguments], check=True, capture_output=True, text=True).stdout


def commands():
    return re.findall(r"^  ([a-z]+) ", said("--help").partition("Subcommands:")[2], re.MULTILINE)


def options(command):
    return {name for line in re.findall(r"^  (-\S+)", said(command, "--help").partition("Options:")[2].partition("Example:")[0], re.MULTILINE)
            for name in line.split(",")}


class BashTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "run 7").mkdir()
        (self.folder / "names.json").touch()
        # compopt works only where readline asks.
        (self.folder / "ask").write_text(
            "compopt() { :; }\n" + said("completion", "bash") + 'COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))\n_cairn\nprintf "%s\\n" "${COMPREPLY[@]}"\n')

    def offered(self, *words):
        asked = subprocess.run(["bash", "--norc", "./ask", "cairn", *words], cwd=self.folder, check=True, capture_output=True, text=True)
        self.assertEqual(asked.stderr, "")
        return set(asked.stdout.split("\n")) - {""}

    def test_offers_every_command_and_every_option(self):
        self.assertEqual(self.offered(""), {*commands(), "--help", "--version"})
        self.assertEqual(self.offered("re"), {"rehearse", "resize"} | {name for name in commands() if name.startswith("re")})
        for command in commands():
            self.assertEqual(self.offered(command, "-"), options(command), command)
        self.assertEqual(self.offered("nonsense", "-"), set())

    def test_offers_what_an_argument_takes(self):
        both = {"run 7", "names.json", "ask"}
        self.assertEqual(self.offered("ls", ""), {"run 7"})
        self.assertEqual(self.offered("status", "ru"), {"run 7"})
        self.assertEqual(self.offered("export", "run 7", ""), both)
        self.assertEqual(self.offered("export", "--to", ""), {"safetensors", "hf", "dcp"})
        self.assertEqual(self.offered("export", "--to", "=", "d"), {"dcp"})
        self.assertEqual(self.offered("export", "--to", "="), {"safetensors", "hf", "dcp"})
        self.assertEqual(self.offered("export", "--to", "hf", ""), {"run 7"})
        self.assertEqual(self.offered("export", "--to", "=", "hf", "run 7", ""), both)
        self.assertEqual(self.offered("export", "--names", "n"), {"names.json"})
        self.assertEqual(self.offered("rehearse", "--dir", ""), {"run 7"})
        self.assertEqual(self.offered("tag", "run 7", ""), set())
        self.assertEqual(self.offered("completion", ""), {"bash", "zsh", "fish"})
        self.assertIn("bash", self.offered("run", "--", "bas"))
        self.assertEqual(self.offered("run", "--", "bash", "n"), {"names.json"})


class OtherShellsTest(unittest.TestCase):
    def test_zsh_reads_its_script(self):
        script = said("completion", "zsh")
        for command in commands():
            [arguments] = re.findall(rf"^        {command}\)\n(.*?);;", script, re.MULTILINE | re.DOTALL)
            self.assertEqual(set(re.findall(r"'(-[\w-]+)=?\[", arguments)), options(command))
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        subprocess.run(["zsh", "-n"], input=script, check=True, text=True)

    def test_fish_reads_its_script(self):
        script = said("completion", "fish")
        for command in commands():
            lines = "\n".join(re.findall(rf"^.*__fish_seen_subcommand_from {command}'.*$", script, re.MULTILINE))
            self.assertEqual({"--" + name for name in re.findall(r" -l ([\w-]+)", lines)}, {name for name in options(command) if name.startswith("--")})
        if not shutil.which("fish"):
            self.skipTest("no fish")
        subprocess.run(["fish", "-n"], input=script, check=True, text=True)


if __name__ == "__main__":
    unittest.main()

"""check_docs.py against a small tree: check_docs_test.py ROOT."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))

FILES = {
    "runtime/settings.def": 'CAIRN_SETTING(dir, "checkpoint-dir", "CAIRN_DIR", "dir", PATH, "DIR", "", "")\n',
    "runtime/include/cairn/cairn.h": "/* cairn.h: the interface. */\n\n/* Does it. */\nCAIRN_API int cairn_do(void);\n",
    "contrib/examples/one.c": "int main(void) {\n  cairn_do();\n  return 0;\n}\n",
    "docs/reference/cairn.md": "# Command\n\n## `cairn ls DIR`\n",
}


def check(readme, files=None):
    """What the script prints for a tree with this README, and other files than FILES where `files` has some."""
    with tempfile.TemporaryDirectory() as tree:
        root = pathlib.Path(tree)
        for name, text in {**FILES, **(files or {}), "README.md": readme}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        for script in ("check_docs.py", "abi_reference.py"):
            shutil.copy(ROOT / "contrib" / script, root / "contrib")
        page = root / "docs/reference/cairn.h.md"
        page.write_text(subprocess.run([sys.executable, root / "contrib/abi_reference.py", root], capture_output=True, text=True,
                                       check=True).stdout)
        run = subprocess.run([sys.executable, root / "contrib/check_docs.py", tree], capture_output=True, text=True, check=False)
        assert run.returncode == (1 if run.stdout else 0), run
        return run.stdout


class CheckDocs(unittest.TestCase):

    def test_accepts_what_is_there(self):
        for text in [
                "[page](docs/reference/cairn.md), [part](docs/reference/cairn.md#command), [web](https://example.org)",
                "`--checkpoint-dir=DIR` or `CAIRN_DIR`, handed on as `SLURM_CAIRN_DIR`",
                "`cairn ls DIR`",
                "```c\nint main(void) {\n  …\n  return 0;\n```",
                "```c\ncairn_do();\n```",
                "```sh\necho '[x](y)'\n```",
        ]:
            self.assertEqual(check(text), "", text)

    def test_names_page_line_and_reason_of_each_fault(self):
        for text, reason in [
                ("\n[page](docs/none.md)", "docs/none.md is not there"),
                ("\n[part](docs/reference/cairn.md#nowhere)", "no such heading"),
                ("\n`--checkpoint-dirs`", "there is no option --checkpoint-dirs"),
                ("\n`CAIRN_DIRS`", "there is no CAIRN_DIRS"),
                ("\n`cairn dance`", "there is no `cairn dance`"),
                ("```c\n```\n```c\ncairn_do(1);\n```", "this C sample stands in no example"),
        ]:
            said = check(text)
            self.assertRegex(said, r"^README.md:[25]: ", text)
            self.assertIn(reason, said, text)

    def test_names_the_function_that_no_comment_describes(self):
        header = "runtime/include/cairn/cairn.h"
        text = FILES[header] + "CAIRN_API int cairn_undo(void);\n\nCAIRN_API const char* cairn_sing(\n    int loud);\n"
        self.assertEqual(check("", {header: text}), f"{header}:7: cairn_sing has no comment\n")


if __name__ == "__main__":
    unittest.main()

"""pip install hooks/python."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3] / "hooks/python"


class InstallTest(unittest.TestCase):
    def test_pip_installs_every_file_of_the_package(self):
        with tempfile.TemporaryDirectory() as folder:
            copy, target = pathlib.Path(folder) / "source", pathlib.Path(folder) / "target"
            shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))  # pip builds where the source lies
            files = {str(path.relative_to(copy)) for path in (copy / "cairn").rglob("*") if path.is_file()}
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-compile", "--target", target, copy],
                           check=True)
            self.assertEqual({str(path.relative_to(target)) for path in (target / "cairn").rglob("*") if path.is_file()}, files)
            self.assertLess({"cairn/py.typed", "cairn/torch/run.py"}, files)
            said = subprocess.run([sys.executable, "-c", "import cairn; print(cairn.__file__, cairn.Session().active)"], check=True,
                                  capture_output=True, text=True, cwd=folder, env={"PYTHONPATH": str(target)}).stdout
            self.assertEqual(said, f"{target}/cairn/__init__.py False\n")


unittest.main(argv=[sys.argv[0], *sys.argv[2:]])

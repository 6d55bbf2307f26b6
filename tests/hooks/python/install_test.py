"""The package as a wheel, and as pip installs it.

    install_test.py BUILD [UNITTEST OPTION …]
"""
import pathlib
import shutil
import subprocess
import sys
import zipfile

from lives import HERE, ROOT, Lives, main

SOURCE = ROOT / "hooks/python"


class InstallTest(Lives):
    settings = {}  # no PYTHONPATH: nothing of the checkout is used

    def setUp(self):
        super().setUp()
        self.source = self.folder / "source"  # pip builds where the source lies
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))
        self.files = {str(path.relative_to(self.source)) for path in (self.source / "cairn").rglob("*") if path.is_file()}
        self.assertLess({"cairn/py.typed", "cairn/torch/run.py"}, self.files)

    def pip(self, *arguments):
        subprocess.run([sys.executable, "-m", "pip", *map(str, arguments)], check=True)

    def test_pip_installs_every_file_of_the_package(self):
        target = self.folder / "target"
        self.pip("install", "--quiet", "--no-deps", "--no-build-isolation", "--no-compile", "--target", target, self.source)
        self.assertEqual({str(path.relative_to(target)) for path in (target / "cairn").rglob("*") if path.is_file()}, self.files)
        said = subprocess.run([sys.executable, "-c", "import cairn; print(cairn.__file__, cairn.Session().active)"], check=True,
                              capture_output=True, text=True, cwd=self.folder, env={"PYTHONPATH": str(target)}).stdout
        self.assertEqual(said, f"{target}/cairn/__init__.py False\n")

    def test_a_wheel_in_a_new_environment_saves_resumes_and_reads(self):
        self.pip("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", self.folder, self.source)
        [wheel] = self.folder.glob("cairn-*-py3-none-any.whl")
        self.assertEqual({name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("cairn/")}, self.files)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.folder / "venv"], check=True)
        python = self.folder / "venv/bin/python"
        self.pip("--python", python, "install", "--quiet", "--no-index", wheel)
        where = subprocess.run([python, "-c", "import cairn; print(cairn.__file__)"], check=True, capture_output=True, text=True, cwd=self.folder, env={}).stdout
        self.assertTrue(where.startswith(f"{self.folder}/venv/"), where)

        program = shutil.copy(HERE / "counter.py", self.folder)
        self.programs.toy = python
        self.life("run", 3, program, "--save-at", 4, "--stop-at", 4)  # the shim brings libcairn.so
        for said in self.life("run", 2, program):
            self.assertIn(["resumed", "4"], said)
            self.assertIn(["done"], said)
        read = "import cairn; checkpoint = cairn.Checkpoint('run'); print(checkpoint.step, *checkpoint.arrays)"
        library = self.build.resolve() / "runtime/libcairn.so"
        said = subprocess.run([python, "-c", read], check=True, capture_output=True, text=True, cwd=self.folder, env={"CAIRN_LIBRARY": str(library)}).stdout
        self.assertEqual(said.split()[0], "9")
        done = subprocess.run([python, "-c", read], capture_output=True, text=True, cwd=self.folder, env={})
        self.assertIn("libcairn.so is nowhere to be found: name it in CAIRN_LIBRARY", done.stderr)


if __name__ == "__main__":
    main()

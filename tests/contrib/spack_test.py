"""The Spack recipe, run with a stand-in for Spack's package module: what it names is there.

    spack_test.py ROOT [UNITTEST OPTION …]
"""
import pathlib
import re
import runpy
import sys
import types
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()


class Recipe:
    """What the recipe declares, and the class that it defines."""

    def __init__(self):
        self.said = {}
        module = types.ModuleType("spack.package")
        for name in ("conflicts", "depends_on", "license", "variant", "version"):
            setattr(module, name, self.directive(name))
        module.CMakePackage = type("CMakePackage", (), {
            "define": lambda self, name, value: (name, value), "define_from_variant": lambda self, name, variant: (name, variant)})
        module.join_path = lambda *parts: "/".join(map(str, parts))
        module.__all__ = ["CMakePackage", "conflicts", "depends_on", "join_path", "license", "variant", "version"]
        sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), module
        self.package = runpy.run_path(str(ROOT / "contrib/spack/packages/cairn/package.py"))["Cairn"]

    def directive(self, name):
        self.said[name] = []
        return lambda *arguments, **keywords: self.said[name].append((arguments, keywords))

    def arguments(self, *true):
        package = self.package()
        package.spec = types.SimpleNamespace(satisfies=lambda text: text in true)
        return dict(package.cmake_args())


class SpackTest(unittest.TestCase):
    def setUp(self):
        self.recipe = Recipe()
        self.variants = {arguments[0] for arguments, _ in self.recipe.said["variant"]}

    def test_conditions_name_variants_that_are_there(self):
        self.assertEqual(self.variants, {"slurm", "mpi", "fortran", "cuda", "python"})
        for kind in ("depends_on", "conflicts"):
            for arguments, keywords in self.recipe.said[kind]:
                for text in [arguments[0] if kind == "conflicts" else "", keywords.get("when", "")]:
                    self.assertLessEqual(set(re.findall(r"[+~](\w+)", text)), self.variants)

    def test_it_depends_on_what_the_build_requires(self):
        packages = {"PkgConfig": "pkgconfig", "Threads": None, "LIBUV": "libuv", "SODIUM": "libsodium", "XXHASH": "xxhash", "URING_INCLUDE_DIR": "liburing",
                    "URING_LIBRARY": "liburing", "spdlog": "spdlog", "CLI11": "cli11", "ZLIB": "zlib-api", "FLATBUFFERS_INCLUDE_DIR": "flatbuffers",
                    "FLATC": "flatbuffers", "nlohmann_json": "nlohmann-json", "CURL_INCLUDE_DIR": "curl",
                    "EXPAT_INCLUDE_DIR": "expat", "EXPAT_LIBRARY": "expat", "MD_INCLUDE_DIR": "libmd", "MD_LIBRARY": "libmd"}
        required = re.findall(r"^\w+\((\w+) .*\bREQUIRED|^find_package\((\w+) REQUIRED", (ROOT / "contrib/cmake/CairnDependencies.cmake").read_text(), re.MULTILINE)
        required = {packages[first or second] for first, second in required} - {None}  # a new one: name its package above, and in the recipe
        self.assertIn("libuv", required)
        self.assertLessEqual(required, {arguments[0].partition("@")[0] for arguments, _ in self.recipe.said["depends_on"]})

    def test_its_options_are_options_of_the_build(self):
        cmake = "".join(path.read_text() for path in [ROOT / "CMakeLists.txt", *(ROOT / "contrib/cmake").glob("*.cmake"), ROOT / "plugin/CMakeLists.txt"])
        with_all, with_none = self.recipe.arguments(), self.recipe.arguments("~slurm", "~fortran")
        self.assertEqual({name: variant for name, variant in with_all.items() if name.startswith("CAIRN_WITH_")},
                         {"CAIRN_WITH_CUDA": "cuda", "CAIRN_WITH_MPI": "mpi"})
        self.assertIn("foreach(part MPI CUDA)", cmake)
        self.assertEqual(set(with_none) - set(with_all), {"SLURM_INCLUDE_DIR", "CMAKE_Fortran_COMPILER"})
        for name in set(with_none) - set(with_all):
            self.assertIn(f"({name})" if "Fortran" in name else name, cmake)
        self.assertEqual(self.recipe.package.git, f"file://{ROOT}")


if __name__ == "__main__":
    unittest.main()

# Copyright: the Cairn authors. SPDX-License-Identifier: Apache-2.0

import pathlib

from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass  # Spack before 1.0 has it in spack.package


class Cairn(CMakePackage):
    """Checkpoint and restart for Slurm jobs, which survive preemption, time limits, node failures and resizes, and resume on another number of
    ranks."""

    # The checkout that this recipe lies in: `spack repo add contrib/spack && spack install cairn`.
    git = f"file://{pathlib.Path(__file__).resolve().parents[4]}"

    license("Apache-2.0")

    version("main", branch="main")

    variant("slurm", default=True, description="Build the SPANK plugin, for the Slurm that is found")
    variant("mpi", default=True, description="Build the examples that use MPI")
    variant("fortran", default=True, description="Build the Fortran example; the module itself is installed as a source, always")
    variant("cuda", default=False, description="Save arrays in the memory of CUDA devices")
    variant("python", default=False, description="Install the Python package")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11@2.2:", type="build")
    depends_on("flatbuffers", type="build")
    depends_on("nlohmann-json@3.10:", type="build")
    depends_on("spdlog@1.9:", type="build")
    depends_on("python@3.9:", type="build")  # makes manual pages
    depends_on("expat", type="build")
    depends_on("libmd", type="build")
    depends_on("liburing", type="build")
    depends_on("xxhash", type="build")
    depends_on("zlib-api")
    depends_on("curl")
    depends_on("libuv@1.34:")
    depends_on("libsodium@1.0.12:")
    depends_on("slurm", when="+slurm")
    depends_on("mpi", when="+mpi")
    depends_on("cuda", type="build", when="+cuda")  # its header alone: the driver is found at run time
    depends_on("python@3.9:", type="run", when="+python")

    conflicts("platform=darwin")
    conflicts("platform=windows")
    conflicts("%gcc@:10", msg="C++20 is needed")
    conflicts("%clang@:13", msg="C++20 is needed")
    conflicts("+fortran", when="~mpi", msg="the Fortran example uses MPI: ~fortran")

    def cmake_args(self):
        args = [
            self.define("BUILD_TESTING", False),
            self.define_from_variant("CAIRN_WITH_CUDA", "cuda"),
            self.define_from_variant("CAIRN_WITH_MPI", "mpi"),
        ]
        if self.spec.satisfies("~slurm"):
            args.append(self.define("SLURM_INCLUDE_DIR", "SLURM_INCLUDE_DIR-NOTFOUND"))
        if self.spec.satisfies("~fortran"):
            args.append(self.define("CMAKE_Fortran_COMPILER", "NOTFOUND"))
        return args

    def setup_run_environment(self, env):
        if self.spec.satisfies("+python"):
            env.prepend_path("PYTHONPATH", join_path(self.prefix.lib, "cairn", "python"))

# The packages (contrib/cmake/CairnPackages.cmake), the .deb files installed into an empty root: nothing of the build or of another prefix is used.

readonly release_prefix=$CAIRN_PREFIX
readonly root=$CAIRN_DEVCLUSTER/root
CAIRN_PREFIX=$root/usr
load helpers
load packages

setup_file() {
  have_packages || return 0
  as_root rm -rf "$root"
  mkdir -p "$root"/var/lib/dpkg/{info,updates} "$root/tmp"
  touch "$root"/var/lib/dpkg/{available,status}
  dpkg --root="$root" --force-not-root --force-script-chrootless --force-depends --log=/dev/null --install "$CAIRN_PACKAGES"/*.deb
  use_root
}

teardown_file() { if have_packages; then leave_root; fi; }

@test "packages: a job is preempted and resumes, with what the .deb files installed alone" {
  need_packages
  a_preempted_job_resumes
}

@test "packages: the system's Python finds the package without PYTHONPATH, and a session of it is saved and restored" {
  need_packages
  python_finds_the_package
}

@test "packages: a program is built with the headers, by pkg-config and by CMake" {
  need_packages
  as_user cp "$root/usr/share/cairn/examples/serial/counter.c" .
  as_user env PKG_CONFIG_PATH="$(dirname "$root"/usr/lib/*/pkgconfig/cairn.pc)" sh -c 'cc counter.c $(pkg-config --cflags --libs cairn) -o counter'
  as_user ldd counter | grep -q "libcairn.so.1 => $root/usr/lib"
  as_user tee CMakeLists.txt <<'CMAKE' >/dev/null
cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(cairn 0.1 REQUIRED)
add_executable(counter counter.c)
target_link_libraries(counter cairn::cairn)
CMAKE
  as_user cmake -B build -DCMAKE_PREFIX_PATH="$root/usr"
  as_user cmake --build build
  as_user ldd build/counter | grep -q "libcairn.so.1 => $root/usr/lib"
}

@test "packages: a Fortran program is built with the module, by pkg-config and by CMake" {
  need_packages
  as_user cp "$root/usr/share/cairn/examples/fortran/heat.f90" .
  as_user env PKG_CONFIG_PATH="$(dirname "$root"/usr/lib/*/pkgconfig/cairn.pc)" sh -c \
    'mpifort -c $(pkg-config --variable=fortran_module cairn) && mpifort heat.f90 cairn.o $(pkg-config --libs cairn) -o heat'
  as_user ./heat 4 4 1 0 | grep -q '^from 0$'
  as_user tee CMakeLists.txt <<'CMAKE' >/dev/null
cmake_minimum_required(VERSION 3.22)
project(consumer Fortran)
find_package(MPI REQUIRED COMPONENTS Fortran)
find_package(cairn 0.1 REQUIRED)
add_executable(heat heat.f90)
target_link_libraries(heat cairn::fortran MPI::MPI_Fortran)
CMAKE
  as_user cmake -B build -DCMAKE_PREFIX_PATH="$root/usr"
  as_user cmake --build build
  as_user ldd build/heat | grep -q "libcairn.so.1 => $root/usr/lib"
}

@test "packages: those of the plugin name the one Slurm that loads it, and each what it needs" {
  need_packages
  local minor slurm
  minor=$(srun --version | grep -oP '\d+\.\d+')
  [[ $(dpkg-deb --field "$CAIRN_PACKAGES"/slurm-plugin-cairn_*.deb Version) == *-1.slurm"$minor" ]]
  for slurm in slurm-client slurmd slurm-wlm-basic-plugins; do
    dpkg-deb --field "$CAIRN_PACKAGES"/slurm-plugin-cairn_*.deb Breaks | grep -q "$slurm (<< $minor)"
  done
  dpkg-deb --field "$CAIRN_PACKAGES"/cairn_*.deb Depends | grep -q libuv1
  # What the plugin and every task load asks for no more than that.
  ! dpkg-deb --field "$CAIRN_PACKAGES"/slurm-plugin-cairn_*.deb Depends | grep -Eq 'libuv|libstdc'
}

@test "packages: the .rpm files hold what the .deb files do" {
  need_packages
  diff <(for package in "$CAIRN_PACKAGES"/*.rpm; do rpm --query --package --list --verbose "$package"; done | grep -v '^d' |
    awk '$9 !~ "/.build-id/" {print $9}' | sort) \
    <(for package in "$CAIRN_PACKAGES"/*.deb; do dpkg-deb --contents "$package"; done | awk '!/^d/ {print substr($6, 2)}' | sort) >&2
}

# The packages (contrib/cmake/CairnPackages.cmake), installed into an empty root: nothing of the build or of another prefix is used.
# $CAIRN_PACKAGES is a folder with the .deb and .rpm files; contrib/test --only slurm makes them.

readonly release_prefix=$CAIRN_PREFIX
readonly root=$CAIRN_DEVCLUSTER/root
CAIRN_PREFIX=$root/usr
load helpers

setup_file() {
  [[ -n ${CAIRN_PACKAGES:-} ]] || return 0
  rm -rf "$root"
  mkdir -p "$root"/var/lib/dpkg/{info,updates} "$root/tmp"
  touch "$root"/var/lib/dpkg/{available,status}
  # Of what they depend on, the root has nothing: the host's is used.
  dpkg --root="$root" --force-not-root --force-script-chrootless --force-depends --log=/dev/null --install "$CAIRN_PACKAGES"/*.deb
  chmod -R a+rX "$root"
  "$devcluster" up --prefix "$CAIRN_PREFIX"
}

teardown_file() {
  [[ -n ${CAIRN_PACKAGES:-} ]] || return 0
  "$devcluster" up --prefix "$release_prefix"
  rm -rf "$root"
}

need_packages() { if [[ -z ${CAIRN_PACKAGES:-} ]]; then skip "CAIRN_PACKAGES names no folder"; fi; }

@test "packages: a job is preempted and resumes, with what the .deb files installed alone" {
  need_packages
  local job options="--nx 256 --ny 256 --steps 300"
  grep -q "^optional $root/usr/lib/.*/slurm/spank_cairn.so bin=$root/usr/bin/cairn " "$CAIRN_DEVCLUSTER/plugstack.conf.d/cairn.conf"
  job=$(submit_heat2d --nodes=2-4 --checkpoint --checkpoint-dir=run -- $options --step-ms 100)
  wait_for 60 heat2d_is_past 4
  preempt_job "$job" 2
  hurry
  lift_hold "$job"
  wait_for 60 job_has_ended "$job"
  job_is "$job" COMPLETED
  (($(heat2d_start 1 step) > 4))
  [[ $(heat2d_hash) == "$(undisturbed_hash $options)" ]]
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

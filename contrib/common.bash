# What contrib/demo and contrib/test share: building, installing, a cluster of their own. Sourced, not run.
#
# Expects $name (demo, test); works in the root of the repository.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly devcluster=$PWD/contrib/devcluster/devcluster
export CAIRN_DEVCLUSTER=${CAIRN_DEVCLUSTER:-/tmp/cairn-$name-$UID}

# Jobs run as an ordinary user. When that is not the caller, a prefix below the caller's home folder may be closed to it.
if ((EUID == 0)); then readonly prefix=$CAIRN_DEVCLUSTER/prefix; else readonly prefix=$PWD/build/prefix; fi

# build PRESET [TARGET …]: configures, and builds the targets (all of them by default) below build/PRESET.
build() {
  local targets=("${@:2}")
  local options=()
  if command -v ccache >/dev/null; then
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=yes  # clones share what they compiled
    export CCACHE_SLOPPINESS=pch_defines,time_macros  # else it takes nothing that uses a precompiled header
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  if c++ -fuse-ld=mold -x c++ -o /dev/null - <<<'int main() {}' 2>/dev/null; then
    options+=(-DCMAKE_{EXE,SHARED,MODULE}_LINKER_FLAGS=-fuse-ld=mold)
  fi
  mkdir -p build
  echo "building build/$1 (progress: build/$1.log)"
  { cmake --preset "$1" "${options[@]}" && cmake --build "build/$1" --parallel "$(nproc)" ${targets:+--target "${targets[@]}"}; } >"build/$1.log" 2>&1 || {
    tail -n 60 "build/$1.log"
    return 1
  }
}

# Installs build/release with its examples and the tests' own program into $prefix, as a cluster's user would find it.
install_release() {
  local component
  rm -rf "$prefix"
  for component in '' examples tests; do
    (umask 022 && cmake --install build/release --prefix "$prefix" ${component:+--component "$component"}) >build/install.log ||
      { cat build/install.log; return 1; }
  done
}

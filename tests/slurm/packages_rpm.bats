# The .rpm files, installed into an empty root: those of a compute node, without what compilers need.

readonly release_prefix=$CAIRN_PREFIX
readonly root=$CAIRN_DEVCLUSTER/rpm-root
CAIRN_PREFIX=$root/usr
load helpers
load packages

setup_file() {
  have_packages || return 0
  as_root rm -rf "$root"
  as_root mkdir -p "$root"
  as_root rpm --root="$root" --nodeps --install "$CAIRN_PACKAGES"/{cairn,cairn-examples,python3-cairn,slurm-plugin-cairn}-[0-9]*.rpm
  use_root
}

teardown_file() { if have_packages; then leave_root; fi; }

@test "packages: a job is preempted and resumes, with what the .rpm files installed alone" {
  need_packages
  [[ ! -e $root/usr/include ]]
  a_preempted_job_resumes
}

@test "packages: of the .rpm files, too, Python's session is saved and restored" {
  need_packages
  python_finds_the_package
}

# What the tests of packages share. $CAIRN_PACKAGES is a folder with the .deb and .rpm files; contrib/test --only slurm makes them.
#
# A file says `readonly release_prefix=$CAIRN_PREFIX` and `readonly root=…`, sets CAIRN_PREFIX=$root/usr, and then loads helpers and this.

have_packages() { [[ -n ${CAIRN_PACKAGES:-} ]]; }
need_packages() { have_packages || skip "CAIRN_PACKAGES names no folder"; }

# The cluster's plugin is that of the root from here on; of what it depends on, the root has nothing: the host's is used.
use_root() {
  as_root chmod -R a+rX "$root"
  "$devcluster" up --prefix "$CAIRN_PREFIX"
}

leave_root() {
  "$devcluster" up --prefix "$release_prefix"
  as_root rm -rf "$root"
}

a_preempted_job_resumes() {
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

# A Python that looks into the root's dist-packages, as the system's own does into /usr's; it is told nothing else.
python_finds_the_package() {
  as_user tee adds.py >/dev/null <<'PYTHON'
import ctypes
import site
import sys

site.addsitedir(sys.argv[1])
import cairn

total = ctypes.c_int64(0)
class Cell:
    __array_interface__ = {"shape": (1,), "typestr": "<i8", "data": (ctypes.addressof(total), False), "version": 3}

session = cairn.Session()
session.add("total", Cell())
report = session.restore()
print("from", report.step, "with", total.value, "by", cairn.__file__)
for number in range(report.step + 1, 6):
    total.value += number
    session.step(number)
session.finalize()
PYTHON
  local life
  for life in "0 with 0" "5 with 15"; do
    run -0 --separate-stderr as_user env -u PYTHONPATH srun --checkpoint --checkpoint-dir=run python3 -I adds.py "$root/usr/lib/python3/dist-packages"
    [[ $output == "from $life by $root/usr/lib"/*/cairn/python/cairn/__init__.py ]]
  done
}

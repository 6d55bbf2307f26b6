# Programs that run in another root than their node, as in a container. Not tried here are pyxis and Apptainer themselves.
load helpers

# container: makes $T/inside, which runs its arguments in a root that holds the system's programs, $T, and what MOUNT names besides.
container() {
  [[ $CAIRN_PREFIX != /usr* ]] || skip 'Cairn is installed among the programs of the system'
  as_user unshare --map-current-user --keep-caps --mount mount --rbind /dev /dev || skip 'this kernel lets users make no namespaces'
  as_user tee inside >/dev/null <<SCRIPT
#!/bin/bash
exec unshare --map-current-user --keep-caps --mount bash -c '
  root=$T/root.\$SLURM_PROCID
  for folder in /usr /bin /lib /lib64 /etc /proc /dev \$MOUNT $T; do
    mkdir -p \$root\$folder
    mount --rbind \$folder \$root\$folder || exit
  done
  exec chroot \$root env --chdir=$T "\$@"' inside "\$@"
SCRIPT
  as_user chmod +x inside
  as_user tee sum.py >/dev/null <<'SCRIPT'
import ctypes, os, sys, cairn
total = (ctypes.c_int64 * 1)()
session = cairn.Session()
session.add_array("total", "I64", (1,), [cairn.Piece((0,), (1,), ctypes.addressof(total))])
report = session.restore()
print("from", report.step, flush=True)
for step in range(report.step + 1, 101):
    total[0] += step
    if step == 50 and sys.argv[1:]:
        session.save()
    session.step(step)
    if step == 50 and sys.argv[1:]:
        session.wait()
        os._exit(3)
print("sum", total[0], flush=True)
session.finalize()
SCRIPT
  as_user cp -r "$(dirname "$(find "$CAIRN_PREFIX" -path '*/cairn/python/cairn/__init__.py' -printf '%h')")" image
}

in_container() { as_user env PYTHONPATH="$T/image" "$@"; }

@test "in a container that has Cairn mounted a program is saved and resumed; in one that has not it runs, and says that it is not protected" {
  container
  as_user bash -c "PYTHONPATH=$T/image CAIRN_OPEN_WITHIN=1s exec srun --checkpoint --checkpoint-dir=none ./inside bash -c '
    until grep -qs NOT.PROTECTED err; do sleep 0.1; done; python3 sum.py' >out 2>err"
  [[ $(<"$T/out") == $'from 0\nsum 5050' && ! -e $T/none ]]
  cat "$T/err"
  grep -q "libcairn_preload.so' from LD_PRELOAD cannot be preloaded" "$T/err"

  run -3 in_container env MOUNT="$CAIRN_PREFIX" srun --checkpoint --checkpoint-dir=run ./inside python3 sum.py stop
  [[ $output == *"cairn: saved step 50 (request)"* ]]
  run -0 in_container env MOUNT="$CAIRN_PREFIX" srun --checkpoint --checkpoint-dir=run ./inside python3 sum.py
  [[ $output == *$'from 50\nsum 5050'* && $output != *"cannot be preloaded"* ]]

  run in_container env MOUNT="$CAIRN_PREFIX" srun --checkpoint --checkpoint-dir=run ./inside cairn doctor .
  [[ $output =~ container\ +a\ root\ of\ its\ own && $output =~ hand-over\ +the\ libraries && $output =~ network\ +the\ node ]]
}

# Strangers at the door, and ranks that can hardly agree.
load helpers

# refusals KIND: how often the step said that it refused a connection for that reason.
refusals() { grep -c "refused a connection ($1)" "$T/toy.err"; }

@test "14: a late rank of an earlier life, a wrong token and garbage on the port are refused, logged once, and no save suffers" {
  local places place i step
  as_user bash -c "exec srun -N2 --checkpoint --checkpoint-dir=run bash -c '
    env | grep ^SLURM_CAIRN_ >env.\$SLURM_PROCID; exec $toy --wait-file go --save-at 10 --wait-at 10' >toy.out 2>toy.err" 3>&- &
  step=$!
  wait_for 60 eval '[[ $(grep -cs resumed "$T/toy.out") == 2 ]]'

  # The host process's port, and those on which ranks wait for ranks.
  places=$({ tr , '\n' < <(grep -oP '^SLURM_CAIRN_RENDEZVOUS=\K.*' "$T/env.0"); as_user ss -Hltnp | grep cairn_toy | awk '{print $4}'; } |
    sed 's/^\(0.0.0.0\|\*\):/127.0.0.1:/' | grep -v '^\[')
  for i in 1 2; do
    for place in $places; do
      as_user bash -c "printf 'GET / HTTP/1.0\r\n\r\n' >/dev/tcp/${place/:/\/}" || true
    done
    as_stranger SLURM_CAIRN_KEY="$(grep -oP '^SLURM_CAIRN_KEY=\K.*(?=\.)' "$T/env.1").7"
    as_stranger SLURM_CAIRN_TOKEN="$(printf '%064d' 7)"
  done
  as_user touch go
  wait "$step"
  wait_for 60 eval '[[ $(grep -c "saved step" "$T/toy.err") == 2 ]]'
  [[ $(refusals garbage) == 1 || $(refusals garbage) == 2 ]]  # once by the host process, once by a rank
  [[ $(refusals 'another life') == 1 && $(refusals 'wrong token') == 1 ]]
  [[ $(toy_hash <"$T/toy.out") == $(undisturbed_toy_hash) ]]
}

# as_stranger NAME=VALUE: a rank that knows all of rank 1's environment but for one value; it must not get in.
as_stranger() {
  run as_user env $(cat "$T/env.1") SLURM_CAIRN_REQUIRE=yes SLURM_PROCID=1 SLURM_NTASKS=2 "$1" timeout 60 "$toy"
  [[ $status == 3 && $output == *"open -"* ]]
}

@test "19: with boundaries every 1 ms, agreement slowed to 20 ms and ranks 3 steps apart a save is made, or given up by the bound and said so" {
  local saves
  as_user cc -shared -fPIC -x c -o slow_recv.so - <"$BATS_TEST_DIRNAME/slow_recv.c"
  run -0 timeout 180 "$devcluster" shell env --chdir="$T" srun -N3 --export=ALL,LD_PRELOAD="$T/slow_recv.so",CAIRN_TEST_RECV_MS=10 --checkpoint \
    --checkpoint-dir=run --checkpoint-keep=last=9 bash -c "exec $toy --steps 1500 --step-us 1000 --save-at 300 600 900 --freeze-at 100 --freeze-ms \$((3 * SLURM_PROCID))"
  # A request that comes during a save joins it or the next one: one to three saves answer the three.
  diff <(grep -oP 'cairn: saved step .*, \Kstep-\S+' <<<"$output" | sort -u) <(committed "$T/run") >&2
  saves=$(grep -oP 'cairn: saved step .* \(request\): .*, \Kstep-\S+' <<<"$output" | sort -u | wc -l)
  ((saves >= 1 && saves + $(grep -c 'no save (request)' <<<"$output") <= 3))
  [[ $(toy_hash <<<"$output") == $(undisturbed_toy_hash --steps 1500) ]]

  # Slower than the bound allows: said, and the job goes on.
  run -0 timeout 180 "$devcluster" shell env --chdir="$T" CAIRN_SAVE_TIMEOUT=200ms srun -N3 --export=ALL,LD_PRELOAD="$T/slow_recv.so",CAIRN_TEST_RECV_MS=150 \
    --checkpoint --checkpoint-dir=late --checkpoint-on=request "$toy" --steps 1500 --step-us 1000 --save-at 100
  [[ $output == *"no save (request): time was up while waiting for "*". The job goes on"* ]]
  [[ -z $(committed "$T/late") && $(toy_hash <<<"$output") == $(undisturbed_toy_hash --steps 1500) ]]
}

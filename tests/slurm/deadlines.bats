# What becomes of a job that has little time, and of one that dies again and again.
load helpers

# said PATTERN NAME: the last match in a job's output.
said() { grep -oP "$1" "$T/$2.out" | tail -n 1 | grep .; }

@test "a job preempted while a save is written finishes that save first, decides about a newer one, and resumes from the newest" {
  local job open plan options='--nx 96 --ny 64 --steps 500'
  local under_way='cairn: .* left: step [0-9]+, whose save is under way, is durable .*'
  job=$(submit_heat2d --nodes=2-4 --export="ALL,$(slow_io 100)" --checkpoint=5steps --checkpoint-dir=run -- $options --step-ms 100)
  wait_for 60 has_committed "$T/run"
  hold_saves
  wait_for 60 has_attempt "$T/run"
  submit high --partition=high --nodes=2 <<<$'#!/bin/bash\nexec sleep 600' >/dev/null
  wait_for 60 said "$under_way" heat2d
  release_saves
  wait_for 60 has_left "$job"
  grep -q "job $job is requeued" "$T/heat2d.out"
  plan=$(said "$under_way" heat2d)
  open=$(grep -oP 'left: step \K[0-9]+' <<<"$plan")
  grep -q "^cairn: saved step $open (interval)" <(sed -n '/^cairn: preempted/,$p' "$T/heat2d.out")
  case $plan in
    *'then a newer one in about'*) [[ $(said 'cairn: saved step [0-9]+ \(\w+\)' heat2d) == *'(preempt)' ]] ;;
    *'does not fit after it') [[ $(said 'cairn: saved step [0-9]+ \(\w+\)' heat2d) == *"step $open (interval)" ]] ;;
    *) false ;;
  esac
  hurry
  lift_hold "$job"
  wait_for 90 job_has_ended "$job"
  job_is "$job" COMPLETED
  (($(heat2d_start 1 step) >= open))
  [[ $(heat2d_hash) == "$(undisturbed_hash $options)" ]]
}

@test "a job preempted in a step that is too long for its grace time is requeued and goes on from its newest checkpoint" {
  local job saved
  job=$(submit toy --partition=brief --nodes=2-4 --checkpoint=20steps --checkpoint-dir=run <<SCRIPT
#!/bin/bash
srun $toy --steps 100 --step-us 20000 --hold-at 70 --hold-file go
SCRIPT
  )
  wait_for 60 has_committed "$T/run" 2
  wait_for 60 grep -q '^cairn: a preemption leaves [0-9.]* s: .* durable in about .*, so nothing is lost' "$T/toy.out"
  wait_for 60 eval '(($(grep -c "^holding 70$" "$T/toy.out") == 4))'
  preempt_job "$job" 2
  saved=$(committed_step "$T/run")
  ((saved >= 40 && saved < 70))
  grep -q '^cairn: no save (preempt): time was up while waiting for the snapshots at the boundary: ranks 0, 1' "$T/toy.out"
  grep -q "^cairn: the last state is not saved; the next life goes on from step $saved, .* (this one has come to step 70)" "$T/toy.out"
  grep -q "^cairn: job $job is requeued" "$T/toy.out"
  as_user touch go
  lift_hold "$job"
  wait_for 60 job_has_ended "$job"
  job_is "$job" COMPLETED
  grep -q "^cairn: resumed at step $saved " "$T/toy.out"
  [[ $(toy_hash <"$T/toy.out") == "$(undisturbed_toy_hash --steps 100)" ]]
}

@test "after three lives that died on one checkpoint the next one stops and tells which, and how to go on" {
  local job options='--checkpoint --checkpoint-dir=run --checkpoint-on=request'
  job=$(submit toy --nodes=2 <<SCRIPT
#!/bin/bash
for life in 1 2 3 4 5; do srun $options $toy --steps 60 --save-at 20 --wait-at 20 --exit-at 40; echo "life \$life: status \$?"; done
srun $options --checkpoint-resume=20 $toy --steps 60
SCRIPT
  )
  wait_for 90 job_has_ended "$job"
  job_is "$job" COMPLETED
  [[ $(grep -c '^cairn: resumed at step 20 ' "$T/toy.out") == 4 ]]  # lives 2, 3, 4, and the one that was told to
  grep -q '3 lives went on from step-0*20\..* (step 20) and died without a newer checkpoint, so this one does not begin:' "$T/toy.out"
  for life in 2 3 4; do grep -q "^  life $life, job $job\.[0-9]*, leader on n[1-4]: " "$T/toy.out"; done
  run ! grep -q '^  life [15],' "$T/toy.out"
  grep -q -- '--checkpoint-resume=20, or --checkpoint-strikes=4' "$T/toy.out"
  run ! grep -q '^life 5: status 0' "$T/toy.out"
  [[ $(sed -n '/^life 5/,$p' "$T/toy.out" | toy_hash) == "$(undisturbed_toy_hash --steps 60)" ]]
}

@test "a controller that is silent when the preemption comes is asked again, and the job is requeued once it answers" {
  local job
  as_user mkdir bin
  as_user tee bin/scontrol >/dev/null <<SCRIPT
#!/bin/bash
while [[ -e $T/silent ]]; do sleep 0.1; done
exec $(command -v scontrol) "\$@"
SCRIPT
  as_user chmod +x bin/scontrol
  job=$(submit toy --nodes=2-4 --checkpoint --checkpoint-dir=run <<SCRIPT
#!/bin/bash
PATH=$T/bin:\$PATH srun $toy --steps 100000 --step-us 20000
SCRIPT
  )
  wait_for 60 grep -q '^resumed' "$T/toy.out"
  wait_for 60 grep -q '^cairn: a preemption leaves' "$T/toy.out"
  as_user touch silent
  submit high --partition=high --nodes=2 <<<$'#!/bin/bash\nexec sleep 600' >/dev/null
  wait_for 60 grep -q '^cairn: Slurm has not said yet whether this is a preemption' "$T/toy.out"
  wait_for 60 grep -q '^cairn: SIGTERM of unknown cause' "$T/toy.out"
  as_user rm silent
  wait_for 60 grep -q "^cairn: job $job is requeued" "$T/toy.out"
  [[ $(grep -c '^cairn: preempted; ' "$T/toy.out") == 1 ]]
}

#!/bin/bash
# exports.sh NM PLUGIN: the plugin exports what Slurm looks up, and nothing else; it needs Slurm's own symbols and libc only.
set -euo pipefail
expected='plugin_name
plugin_type
plugin_version
slurm_spank_init
slurm_spank_init_post_opt
slurm_spank_job_epilog
slurm_spank_local_user_init
slurm_spank_task_init
spank_plugin_version'
diff <(echo "$expected") <("$1" -D --defined-only "$2" | awk '{print $3}' | LC_ALL=C sort)
unknown=$("$1" -D --undefined-only "$2" | awk '$2 !~ /@GLIBC_/ && $2 !~ /^(slurm|spank)_/ && $1 == "U" {print $2}')
if [[ -n $unknown ]]; then
  echo "needs symbols of neither libc nor Slurm: $unknown" >&2
  exit 1
fi

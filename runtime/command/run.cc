#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "runtime/command/numbers.h"
#include "runtime/command/subcommands.h"
#include "runtime/slurm/run_now.h"
#include "runtime/supervisor/supervisor.h"

namespace cairn {
namespace {

constexpr std::chrono::seconds kHelpBound{10};

struct RunArgs {
  SuperviseOptions supervise;
  int tasks_from = static_cast<int>(TasksFrom::kNodes);
  std::optional<int> tasks_per_node;
};

// A number in the environment; nothing when it is no positive one.
std::optional<int> Number(const char* name) {
  const char* text = std::getenv(name);
  const int value = text == nullptr ? 0 : std::atoi(text);
  return value > 0 ? std::optional<int>(value) : std::nullopt;
}

// As the batch script would have got them from a plain srun.
int TasksPerNode() {
  if (const auto told = Number("SLURM_NTASKS_PER_NODE")) return *told;
  const auto tasks = Number("SLURM_NTASKS"), nodes = Number("SLURM_JOB_NUM_NODES");
  return tasks && nodes ? std::max(1, *tasks / *nodes) : 1;
}

Result<int> Run(RunArgs args) {
  CAIRN_RETURN_IF_ERROR(CheckCommand(args.supervise.command));  // else its first word would be run, below
  const auto job = Number("SLURM_JOB_ID");
  if (!job) {
    return Status(Code::kInvalid,
                  "`cairn run` starts steps of the job in which it runs, and this is none: use it in a batch "
                  "script, or in an allocation of salloc");
  }
  args.supervise.job = static_cast<uint32_t>(*job);
  args.supervise.restart = Number("SLURM_RESTART_COUNT").value_or(0);
  args.supervise.wish.tasks_from = TasksFrom(args.tasks_from);
  args.supervise.wish.tasks_per_node = args.tasks_per_node ? *args.tasks_per_node : TasksPerNode();
  setenv("CAIRN_CHECKPOINT", "auto", 0);  // srun's own option and the user's variable win
  SuperviseOptions& supervise = args.supervise;
  const auto help = RunNow({supervise.command[0], "--help"}, kHelpBound);
  supervise.plugin = !help.ok() || help->find("--checkpoint-dir") != std::string::npos;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  supervise.program = program.string();
  supervise.libdir = (program.parent_path().parent_path() / CAIRN_INSTALL_LIBDIR).string();
  return Supervise(supervise);
}

}  // namespace

void AddRun(CLI::App* app, Invocation* invocation) {
  auto args = std::make_shared<RunArgs>();
  StepWish& wish = args->supervise.wish;
  Subcommand run = AddPlainSubcommand(
      app, invocation, "run",
      "Run a step of this job, and start it again from its newest checkpoint "
      "when it ended for a reason that another step\n"
      "cures: a resize, a lost rank or node. Each life gets as many nodes as "
      "the job has then. Not started again is a program\n"
      "that has ended, was cancelled, or failed twice at the same step. For "
      "batch scripts and allocations; checkpointing is on.\n"
      "Its exit code is that of the last life's srun.",
      "cairn run --tasks-per-node=4 -- srun --checkpoint=10m --checkpoint-dir=/scratch/me/run7 "
      "./train",
      [=] { return Run(*args); });
  run.Option("--min-nodes", "N", &wish.min_nodes, "stop, rather than run on fewer")
      .ShowDefault()
      .Check(WholeNumber(1));
  run.Option("--max-nodes", "N", &wish.max_nodes, "use at most so many (default: all)").Check(WholeNumber(1));
  const Argument per_node = run.Option("--tasks-per-node", "N", &args->tasks_per_node,
                                       "tasks on each node (default: as the job was submitted with, else 1)")
                                .Check(WholeNumber(1));
  run.Option("--ntasks-from", "nodes|gpus|cpus", &args->tasks_from, "one task for each node, GPU or CPU")
      .AsNumber({{"nodes", static_cast<int>(TasksFrom::kNodes)},
                 {"gpus", static_cast<int>(TasksFrom::kGpus)},
                 {"cpus", static_cast<int>(TasksFrom::kCpus)}})
      .Excludes(per_node);
  args->supervise.max_lives = 100;
  run.Option("--max-lives", "N", &args->supervise.max_lives, "no more lives than that in this job's run")
      .FromVariable("CAIRN_MAX_LIVES")
      .ShowDefault()
      .Check(WholeNumber(1));
  run.Positional("srun", &args->supervise.command, "srun, its options, and the program");
}

}  // namespace cairn

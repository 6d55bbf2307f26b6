// `cairn rehearse`: whether a program that is saved and resumed is still the program that nobody disturbed, before anything depends on it.
//
//  1. The command runs with CAIRN_REHEARSAL=S,U (runtime/session/boundary.h): all ranks save at step S in passing, and at step U, where they end. That
//     is the undisturbed run.
//  2. It runs again, in fresh processes and on other ranks where that is asked for, from what was saved at S (CAIRN_FROM), in a directory of its
//     own, with CAIRN_REHEARSAL=U.
//  3. What both saved at U is compared (rehearsal_findings.h). What was not registered, and matters, shows in what was computed from it.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/command/numbers.h"
#include "runtime/command/rehearsal_findings.h"
#include "runtime/command/state.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"
#include "runtime/supervisor/plugin_options.h"
#include "runtime/supervisor/srun_options.h"

extern char** environ;

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct RehearseArgs {
  int64_t save_at = 20;
  int64_t until = 25;
  std::optional<int> ranks;
  double tolerance = 0;
  std::string dir = ".";
  std::vector<std::string> command;
};

using Variables = std::map<std::string, std::string>;

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> out;
  for (std::string& s : *strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

// What would have a life take part in another run than the rehearsal's: settings of the run itself, and options of the job, which its sruns inherit and
// which outrank variables.
bool OfAnotherRun(std::string_view variable) {
  return variable.starts_with("SLURM_CAIRN_") || variable.starts_with("CAIRN_RUN_") ||
         variable == "CAIRN_RESUME" || variable == "CAIRN_FROM" || variable == "CAIRN_COPY" ||
         variable == "CAIRN_REHEARSE" || variable.find("_SPANK_OPTION_cairn_") != std::string_view::npos;
}

// As system(3): the terminal's interrupt is the command's to obey, which then ends.
class IgnoreInterrupts {
 public:
  IgnoreInterrupts() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &before_[0]);
    sigaction(SIGQUIT, &ignore, &before_[1]);
  }
  ~IgnoreInterrupts() {
    sigaction(SIGINT, &before_[0], nullptr);
    sigaction(SIGQUIT, &before_[1], nullptr);
  }
  IgnoreInterrupts(const IgnoreInterrupts&) = delete;
  IgnoreInterrupts& operator=(const IgnoreInterrupts&) = delete;

  // Those that the command is to obey.
  sigset_t Ignored() const {
    sigset_t out;
    sigemptyset(&out);
    if (before_[0].sa_handler != SIG_IGN) sigaddset(&out, SIGINT);
    if (before_[1].sa_handler != SIG_IGN) sigaddset(&out, SIGQUIT);
    return out;
  }

 private:
  struct sigaction before_[2];
};

// Runs a life of the command to its end, and tells how that was: for messages alone, since ending in the middle is an error to many a launcher.
// aside: what it prints goes to stderr.
Result<std::string> RunLife(std::vector<std::string> command, const Variables& variables, bool aside) {
  std::vector<std::string> environment;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view name = std::string_view(*e).substr(0, std::string_view(*e).find('='));
    if (!variables.contains(std::string(name)) && !OfAnotherRun(name)) environment.emplace_back(*e);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (aside) posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  const IgnoreInterrupts ignored;
  const sigset_t obeyed = ignored.Ignored();
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &obeyed);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid;
  const int error = posix_spawnp(&pid, command[0].c_str(), &files, &attributes, Pointers(&command).data(),
                                 Pointers(&environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return Status::FromErrno(error, "run " + command[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? "by signal " + std::to_string(WTERMSIG(status))
                             : "with exit status " + std::to_string(WEXITSTATUS(status));
}

// end: of the command, from RunLife.
Result<std::unique_ptr<CheckpointSource>> Saved(const std::string& run, int64_t step,
                                                const std::string& end) {
  auto source = OpenCheckpoint(run + "@" + std::to_string(step));
  if (source.ok()) return source;
  return Status(Code::kNotFound,
                "the command has ended " + end + " and left no checkpoint of step " + std::to_string(step) +
                    " in " + run + " (" + source.status().message() +
                    "). It must be one process, or an srun that has Cairn's plugin, and come "
                    "to that step");
}

void Print(const RehearseArgs& args, const std::string& folder, const RehearsalFindings& found) {
  std::printf("saved at step %lld by %s, resumed by %s, compared at step %lld\n",
              static_cast<long long>(args.save_at), Count(found.ranks[0], "rank").c_str(),
              Count(found.ranks[1], "rank").c_str(), static_cast<long long>(args.until));
  PrintFindings(found);
  if (!found.equal)
    std::printf(
        "What differs was not restored, or was computed from something that is not registered.\n"
        "Both runs are in %s\n",
        folder.c_str());
}

Json AsJson(const RehearseArgs& args, const std::string& folder, const RehearsalFindings& found) {
  Json out = {{"dir", folder}, {"save_at", args.save_at}, {"until", args.until}};
  out.update(FindingsJson(found));
  return out;
}

// The command with another number of ranks: of srun's options the last one counts.
Result<std::vector<std::string>> WithRanks(std::vector<std::string> command, int ranks) {
  const size_t end = ReadSrunCommand(command).options_end;
  if (fs::path(command[0]).filename() != "srun" || end == command.size())
    return Status(
        Code::kInvalid,
        "--ranks needs a command that begins with srun: cairn rehearse --ranks=2 -- srun -n4 ./program");
  command.insert(command.begin() + static_cast<std::ptrdiff_t>(end), "--ntasks=" + std::to_string(ranks));
  return command;
}

// The command without Cairn's options, where it begins with srun, and what they say as variables: how a life is run (what is attached, where is
// staged), without what is of the run itself.
Result<PluginOptions> TakeOptions(const std::vector<std::string>& command) {
  if (fs::path(command[0]).filename() != "srun") return PluginOptions{command, {}};
  CAIRN_ASSIGN_OR_RETURN(PluginOptions out, TakePluginOptions(command));
  std::erase_if(out.values, [](const auto& variable) { return OfAnotherRun(variable.first); });
  return out;
}

// Of a life that saves nothing but what the rehearsal wants. options: what is the program's own affair.
Variables LifeVariables(Variables options, const std::string& dir, const std::string& steps) {
  for (const auto& [name, value] : Variables{{"CAIRN_CHECKPOINT", "on"},
                                             {"CAIRN_DIR", dir},
                                             {"CAIRN_ON", "end"},
                                             {"CAIRN_KEEP", "last=9"},
                                             {"CAIRN_REQUIRE", "yes"},
                                             {"CAIRN_REHEARSAL", steps}})
    options[name] = value;
  return options;
}

Result<int> Rehearse(const RehearseArgs& args, bool json) {
  const std::string at = std::to_string(args.save_at), until = std::to_string(args.until);
  if (args.until <= args.save_at)
    return Status(Code::kInvalid, "--until=" + until + " is no step after --save-at=" + at);
  CAIRN_ASSIGN_OR_RETURN(const PluginOptions given, TakeOptions(args.command));
  std::vector<std::string> again = given.command;
  if (args.ranks) {
    CAIRN_ASSIGN_OR_RETURN(again, WithRanks(given.command, *args.ranks));
  }
  std::string folder = fs::absolute(args.dir).lexically_normal() / "cairn-rehearsal-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return Status::FromErrno(errno, "make " + folder);
  const std::string first = folder + "/whole", second = folder + "/resumed";
  CAIRN_ASSIGN_OR_RETURN(const std::string end_of_first,
                         RunLife(given.command, LifeVariables(given.values, first, at + "," + until), json));
  CAIRN_RETURN_IF_ERROR(Saved(first, args.save_at, end_of_first).status());
  CAIRN_ASSIGN_OR_RETURN(const auto whole, Saved(first, args.until, end_of_first));
  Variables variables = LifeVariables(given.values, second, until);
  variables["CAIRN_FROM"] = first + "@" + at;
  CAIRN_ASSIGN_OR_RETURN(const std::string end_of_second, RunLife(again, variables, json));
  CAIRN_ASSIGN_OR_RETURN(const auto resumed, Saved(second, args.until, end_of_second));
  CAIRN_ASSIGN_OR_RETURN(const RehearsalFindings found, CompareRehearsal(*whole, *resumed, args.tolerance));
  json ? PrintJson(AsJson(args, folder, found)) : Print(args, folder, found);
  std::error_code error;
  if (found.equal) fs::remove_all(folder, error);
  return found.equal ? kExitGood : kExitBad;
}

}  // namespace

void AddRehearse(CLI::App* app, Invocation* invocation) {
  auto args = std::make_shared<RehearseArgs>();
  Subcommand rehearse = AddSubcommand(
      app, invocation, "rehearse",
      "Run a command twice: as it is, and resumed in fresh processes from what it saved at a step. Names\n"
      "what differs some steps later, and exits 1 then, or 3 where the two runs could not be made. The "
      "command\n"
      "is one process, or begins with srun. Both runs are ended at the later step.",
      "cairn rehearse --ranks=2 -- srun -n4 ./heat2d --steps 1000",
      [=] { return Rehearse(*args, invocation->json); }, kExitUnknown);
  rehearse.Option("--save-at", "N", &args->save_at, "the step that is saved")
      .ShowDefault()
      .Check(WholeNumber(1));
  rehearse.Option("--until", "N", &args->until, "the step at which the runs are compared")
      .ShowDefault()
      .Check(WholeNumber(1));
  rehearse.Option("--ranks", "N", &args->ranks, "resume on so many ranks (default: as many)")
      .Check(WholeNumber(1));
  rehearse
      .Option("--tolerance", "X", &args->tolerance, "pass over differences of numbers up to this, relative")
      .ShowDefault()
      .Check(NotNegative);
  rehearse.Option("--dir", "DIR", &args->dir, "where all nodes see what the runs save (default: here)");
  rehearse.Positional("command", &args->command, "the program, or srun, its options, and the program");
}

}  // namespace cairn

// `cairn rehearse`: whether a program that is saved and resumed is still the program that nobody disturbed, before anything depends on it.
//
//  1. The command runs with CAIRN_REHEARSE=S,U (runtime/session/boundary.h): all ranks save at step S in passing, and at step U, where they end. That
//     is the undisturbed run.
//  2. It runs again, in fresh processes and on other ranks where that is asked for, from what was saved at S (CAIRN_FROM), in a directory of its
//     own, with CAIRN_REHEARSE=U.
//  3. What both saved at U is compared: arrays, and with as many ranks the blobs of each rank. What was not registered, and matters, shows in what
//     was computed from it.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/command/diff_table.h"
#include "runtime/command/numbers.h"
#include "runtime/command/state.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"
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

struct BlobDiff {
  std::string name;
  std::vector<std::string> ranks;  // on which it differs
  std::string only;                // "undisturbed", "resumed": the one run that has it
};

using Variables = std::vector<std::pair<std::string, std::string>>;

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
         variable == "CAIRN_RESUME" || variable == "CAIRN_FROM" ||
         variable.find("_SPANK_OPTION_cairn_") != std::string_view::npos;
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
Result<std::string> RunLife(std::vector<std::string> command, Variables variables, bool aside) {
  variables.insert(variables.end(), {{"CAIRN_CHECKPOINT", "on"},
                                     {"CAIRN_ON", "end"},  // nothing but the rehearsal saves
                                     {"CAIRN_KEEP", "last=9"},
                                     {"CAIRN_REQUIRE", "yes"}});
  std::vector<std::string> environment;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view name = std::string_view(*e).substr(0, std::string_view(*e).find('='));
    const bool ours =
        std::any_of(variables.begin(), variables.end(), [&](const auto& v) { return v.first == name; });
    if (!ours && !OfAnotherRun(name)) environment.emplace_back(*e);
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

const BlobItem* Find(const Blobs& blobs, const std::string& name) {
  for (const BlobItem& item : blobs.items) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

std::vector<BlobDiff> CompareBlobs(const Blobs& whole, const Blobs& resumed) {
  std::vector<BlobDiff> out;
  for (const BlobItem& item : whole.items) {
    const BlobItem* other = Find(resumed, item.name);
    BlobDiff diff{item.name, {}, other == nullptr ? "undisturbed" : ""};
    for (size_t rank = 0; other != nullptr && rank < item.by_rank.size(); ++rank) {
      if (item.by_rank[rank] != other->by_rank[rank]) diff.ranks.push_back(std::to_string(rank));
    }
    if (other == nullptr || !diff.ranks.empty()) out.push_back(std::move(diff));
  }
  for (const BlobItem& item : resumed.items) {
    if (Find(whole, item.name) == nullptr) out.push_back({item.name, {}, "resumed"});
  }
  return out;
}

struct Comparison {
  uint32_t ranks[2];
  std::vector<ArrayDiff> arrays;
  std::vector<BlobDiff> blobs;
  bool equal = true;
};

Result<Comparison> Compare(CheckpointSource& whole, CheckpointSource& resumed, double tolerance) {
  Comparison out;
  out.ranks[0] = whole.checkpoint().manifest.world_size;
  out.ranks[1] = resumed.checkpoint().manifest.world_size;
  CAIRN_ASSIGN_OR_RETURN(out.arrays, Diff(whole, resumed, nullptr));
  for (ArrayDiff& array : out.arrays) {
    const Difference& found = array.difference;
    if (array.kind == ArrayDiff::Kind::kDiffers && found.not_finite == 0 && found.max_rel <= tolerance)
      array.kind = ArrayDiff::Kind::kEqual;
    out.equal = out.equal && array.kind == ArrayDiff::Kind::kEqual;
  }
  if (out.ranks[0] == out.ranks[1])
    out.blobs = CompareBlobs(whole.checkpoint().blobs, resumed.checkpoint().blobs);
  out.equal = out.equal && out.blobs.empty();
  return out;
}

void Print(const RehearseArgs& args, const std::string& folder, const Comparison& found) {
  std::printf("saved at step %lld by %s, resumed by %s, compared at step %lld\n",
              static_cast<long long>(args.save_at), Count(found.ranks[0], "rank").c_str(),
              Count(found.ranks[1], "rank").c_str(), static_cast<long long>(args.until));
  PrintDiffs(found.arrays, false);
  for (const BlobDiff& blob : found.blobs) {
    if (blob.only.empty())
      std::printf("blob %s differs on ranks %s\n", blob.name.c_str(), Join(blob.ranks).c_str());
    else
      std::printf("blob %s is in the %s run alone\n", blob.name.c_str(), blob.only.c_str());
  }
  if (found.ranks[0] != found.ranks[1])
    std::printf("blobs, which are each rank's own, are not compared between numbers of ranks\n");
  if (!found.equal)
    std::printf(
        "What differs was not restored, or was computed from something that is not registered.\n"
        "Both runs are in %s\n",
        folder.c_str());
}

Json AsJson(const RehearseArgs& args, const std::string& folder, const Comparison& found) {
  Json out = {{"dir", folder},         {"save_at", args.save_at}, {"until", args.until},
              {"ranks", found.ranks},  {"equal", found.equal},    {"arrays", Json::array()},
              {"blobs", Json::array()}};
  for (const ArrayDiff& array : found.arrays) out["arrays"].push_back(DiffJson(array));
  for (const BlobDiff& blob : found.blobs) {
    Json one = {{"name", blob.name}, {"ranks", blob.ranks}};
    if (!blob.only.empty()) one["only"] = blob.only;
    out["blobs"].push_back(std::move(one));
  }
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

// Of a command that begins with srun: its options outrank the variables by which the rehearsal keeps to directories of its own.
Status RefuseOptions(const std::vector<std::string>& command) {
  if (fs::path(command[0]).filename() != "srun") return OkStatus();
  for (const SrunOption& option : ReadSrunCommand(command).options) {
    if (option.name.starts_with("--checkpoint"))
      return Status(Code::kInvalid,
                    option.name +
                        " is of the run itself, and the rehearsal would take part in it: leave "
                        "Cairn's options out (what the program needs can be given as a variable: "
                        "CAIRN_ATTACH=torch)");
  }
  return OkStatus();
}

Result<int> Rehearse(const RehearseArgs& args, bool json) {
  const std::string at = std::to_string(args.save_at), until = std::to_string(args.until);
  if (args.until <= args.save_at)
    return Status(Code::kInvalid, "--until=" + until + " is no step after --save-at=" + at);
  CAIRN_RETURN_IF_ERROR(RefuseOptions(args.command));
  std::vector<std::string> again = args.command;
  if (args.ranks) {
    CAIRN_ASSIGN_OR_RETURN(again, WithRanks(args.command, *args.ranks));
  }
  std::string folder = fs::absolute(args.dir).lexically_normal() / "cairn-rehearsal-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return Status::FromErrno(errno, "make " + folder);
  const std::string first = folder + "/whole", second = folder + "/resumed";
  CAIRN_ASSIGN_OR_RETURN(
      const std::string end_of_first,
      RunLife(args.command, {{"CAIRN_DIR", first}, {"CAIRN_REHEARSE", at + "," + until}}, json));
  CAIRN_RETURN_IF_ERROR(Saved(first, args.save_at, end_of_first).status());
  CAIRN_ASSIGN_OR_RETURN(const auto whole, Saved(first, args.until, end_of_first));
  CAIRN_ASSIGN_OR_RETURN(
      const std::string end_of_second,
      RunLife(again, {{"CAIRN_DIR", second}, {"CAIRN_FROM", first + "@" + at}, {"CAIRN_REHEARSE", until}},
              json));
  CAIRN_ASSIGN_OR_RETURN(const auto resumed, Saved(second, args.until, end_of_second));
  CAIRN_ASSIGN_OR_RETURN(const Comparison found, Compare(*whole, *resumed, args.tolerance));
  json ? PrintJson(AsJson(args, folder, found)) : Print(args, folder, found);
  std::error_code error;
  if (found.equal) fs::remove_all(folder, error);
  return found.equal ? kExitGood : kExitBad;
}

}  // namespace

void AddRehearse(CLI::App* app, Invocation* invocation) {
  auto args = std::make_shared<RehearseArgs>();
  CLI::App* rehearse = AddSubcommand(
      app, invocation, "rehearse",
      "Run a command twice: as it is, and resumed in fresh processes from what it saved at a step. Names\n"
      "what differs some steps later, and exits 1 then, or 3 where the two runs could not be made. The "
      "command\n"
      "is one process, or begins with srun, without Cairn's options. Both runs are ended at the later step.",
      "cairn rehearse --ranks=2 -- srun -n4 ./heat2d --steps 1000",
      [=] { return Rehearse(*args, invocation->json); }, kExitUnknown);
  rehearse->add_option("--save-at", args->save_at, "the step that is saved")
      ->capture_default_str()
      ->type_name("N")
      ->check(WholeNumber(1));
  rehearse->add_option("--until", args->until, "the step at which the runs are compared")
      ->capture_default_str()
      ->type_name("N")
      ->check(WholeNumber(1));
  rehearse->add_option("--ranks", args->ranks, "resume on so many ranks (default: as many)")
      ->type_name("N")
      ->check(WholeNumber(1));
  rehearse->add_option("--tolerance", args->tolerance, "pass over differences of arrays up to this, relative")
      ->capture_default_str()
      ->type_name("X")
      ->check(NotNegative());
  rehearse->add_option("--dir", args->dir, "where all nodes see what the runs save (default: here)")
      ->type_name("DIR");
  rehearse->add_option("command", args->command, "the program, or srun, its options, and the program")
      ->required()
      ->type_name("");
}

}  // namespace cairn

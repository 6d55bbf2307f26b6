#include <pwd.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "runtime/catalog/lives.h"
#include "runtime/catalog/target.h"
#include "runtime/command/ask.h"
#include "runtime/command/donor.h"
#include "runtime/command/known_runs.h"
#include "runtime/command/numbers.h"
#include "runtime/command/progress_bar.h"
#include "runtime/command/resize_plan.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"
#include "runtime/settings.h"
#include "runtime/slurm/requeue.h"
#include "runtime/slurm/run_now.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr seconds kSlurmBound{30};
constexpr seconds kStatusBound{10};
constexpr milliseconds kPoll{300};
constexpr seconds kSettled{120};  // Slurm's shrink, or the end of a job that is requeued: KillWait and more
constexpr seconds kNextLife{120};
constexpr char kUsesThemLater[] = "the job has its new nodes, and uses them from its next life on";

struct ResizeArgs {
  std::string job;
  int nodes = 0;
  std::string list;
  bool requeue = false;
  bool dry_run = false;
  std::string timeout = "10m";
};

// What the command knows before it changes anything.
struct Job {
  uint32_t id = 0;
  std::string dir;
  ResizeWish wish;
  ResizeFacts facts;
  Json status;
};

Result<std::string> Scontrol(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "scontrol");
  return RunNow(std::move(arguments), kSlurmBound);
}

Result<JobRecord> ReadJob(uint32_t id) {
  CAIRN_ASSIGN_OR_RETURN(const std::string text, Scontrol({"show", "job", "-o", std::to_string(id)}));
  return ParseJobRecord(text, id);
}

Result<std::vector<std::string>> HostNames(const std::string& list) {
  CAIRN_ASSIGN_OR_RETURN(const std::string text, Scontrol({"show", "hostnames", list}));
  std::vector<std::string> names;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) names.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

std::string UserName() {
  const passwd* entry = getpwuid(getuid());
  return entry == nullptr ? std::to_string(getuid()) : entry->pw_name;
}

Result<Job> LookAt(const ResizeArgs& args) {
  const auto name = ParseJobName(args.job);
  if (!name) return Status(Code::kInvalid, args.job + " is no job's number");
  Job job;
  job.id = name->job;
  CAIRN_ASSIGN_OR_RETURN(job.facts.job, ReadJob(job.id));
  CAIRN_ASSIGN_OR_RETURN(job.facts.names, HostNames(job.facts.job.node_list));
  CAIRN_ASSIGN_OR_RETURN(const std::string config, Scontrol({"show", "config"}));
  job.facts.may_shrink = config.find("disable_job_shrink") == std::string::npos;
  job.facts.may_grow = config.find("permit_job_expansion") != std::string::npos;
  job.facts.user = UserName();
  job.wish.requeue = args.requeue;
  job.wish.nodes = args.nodes;
  if (!args.list.empty()) {
    CAIRN_ASSIGN_OR_RETURN(job.wish.names, HostNames(args.list));
    job.wish.nodes = static_cast<int>(job.wish.names.size());
    if (args.nodes > 0 && args.nodes != job.wish.nodes)
      return Status(Code::kInvalid,
                    "--nodes=" + args.list + " are not " + std::to_string(args.nodes) + " nodes");
  }
  CAIRN_ASSIGN_OR_RETURN(const FoundRun found, FindRun(args.job));
  job.dir = found.dir;
  CAIRN_ASSIGN_OR_RETURN(job.status, Ask(job.dir, {{"op", "status"}}, kStatusBound));
  job.facts.supervised = job.status.value("supervised", false);
  job.facts.min_nodes = job.status.value("min_nodes", 1);
  job.facts.why_not = job.status.value("why_no_resize", "");
  return job;
}

void Say(bool json, const std::string& line) {
  if (!json) std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::string PlanText(const Job& job, ResizeWay way) {
  std::string text = "job " + std::to_string(job.id) + ": " +
                     Count(static_cast<size_t>(job.facts.job.nodes), "node") + " (" +
                     job.facts.job.node_list + ") → " + std::to_string(job.wish.nodes);
  switch (way) {
    case ResizeWay::kShrink:
      text += ", in place; " + Join(NodesThatGo(job.wish, job.facts)) + " go";
      break;
    case ResizeWay::kGrow:
      text += ", in place; it goes on while the others wait in the queue";
      break;
    case ResizeWay::kRequeue:
      text += ", by way of the queue";
      break;
  }
  if (const auto last = job.status.find("last_save"); last != job.status.end()) {
    text += "\nits last save wrote " + FormatBytes(last->value("bytes", uint64_t{0})) + " in " +
            FormatDuration(Nanoseconds(last->value("drain_ns", int64_t{0}))) +
            "; this one writes as much, and the next life reads it";
  } else {
    text += "\nit has not saved in this life, so what a save takes is not known";
  }
  return text;
}

// The reply to a request that makes the job save; a bar is drawn meanwhile.
Result<Json> AskAndShow(const std::string& dir, const Json& request, Nanoseconds bound) {
  auto reply = std::async(std::launch::async, [&] { return Ask(dir, request, bound); });
  ProgressBar bar;
  while (reply.wait_for(kPoll) != std::future_status::ready) {
    const auto status = Ask(dir, {{"op", "status"}}, kStatusBound);
    if (!status.ok() || !status->contains("drain")) continue;
    const Json& drain = status->at("drain");
    bar.Draw(drain.value("written", uint64_t{0}), drain.value("bytes", uint64_t{0}));
  }
  return reply.get();
}

// The step that a life saved before it made room for a resize; nothing when it did not.
std::optional<int64_t> MadeRoom(const Job& job) {
  const auto dir = OpenRun(job.dir);
  if (!dir.ok()) return std::nullopt;
  const auto lives = ReadLives(*dir);
  if (!lives.ok()) return std::nullopt;
  for (const LifeStory& life : *lives) {
    if (life.end == "resize" && life.restart == job.status.value("restart", int64_t{0}) &&
        life.job == job.status.value("job", "") && life.step_id == job.status.value("step_id", ""))
      return life.last_saved_step;
  }
  return std::nullopt;
}

// Makes the job save, and its life end where it is resized in place; the step that was saved.
Result<int64_t> Save(const Job& job, ResizeWay way, const std::string& nodes, Nanoseconds bound) {
  const Json request =
      way == ResizeWay::kRequeue ? Json{{"op", "save"}} : Json{{"op", "resize"}, {"nodes", nodes}};
  const Result<Json> saved = AskAndShow(job.dir, request, bound);
  if (!saved.ok()) {
    // The life may be gone before its answer is on its way; its journal was written before that.
    const auto step = MadeRoom(job);
    return step ? Result<int64_t>(*step) : saved.status();
  }
  if (!saved->value("saved", false)) {
    return Status(Code::kUnavailable,
                  "the job was not resized, and goes on: " + saved->value("why", "it gave no reason"));
  }
  return saved->value("step", int64_t{0});
}

Result<JobRecord> AwaitJob(uint32_t id, seconds bound, const std::string& what,
                           const std::function<bool(const JobRecord&)>& is_there) {
  const auto end = Clock::now() + bound;
  for (;;) {
    const auto record = ReadJob(id);
    if (record.ok() && is_there(*record)) return record;
    if (Clock::now() > end) {
      return Status(Code::kTimeout,
                    "after " + FormatDuration(bound) + " " + what + " (" +
                        (record.ok() ? record->state + ", " + record->node_list : record.status().message()) +
                        "); `cairn why " + std::to_string(id) + "` and the job's output say more");
    }
    std::this_thread::sleep_for(kPoll);
  }
}

Result<std::vector<std::string>> NodesOf(uint32_t id) {
  const auto end = Clock::now() + kSlurmBound;
  for (;;) {
    const auto record = ReadJob(id);
    auto names = record.ok() ? HostNames(record->node_list) : record.status();
    if (names.ok() || Clock::now() > end) return names;
    std::this_thread::sleep_for(kPoll);
  }
}

// Gives the job the nodes that it lacks; its step goes on without them. The job as it is then: in the wait it may have begun another life, or lost
// nodes.
Result<Job> Grow(const ResizeArgs& args, const Job& job, Nanoseconds patience, bool json) {
  const auto wait = std::chrono::ceil<seconds>(patience);
  const std::string more = Count(static_cast<size_t>(job.wish.nodes - job.facts.job.nodes), "more node");
  Say(json, "queued  for " + more + "; the job goes on meanwhile");
  const Status given = RunDonor(DonorCommand(job.wish, job.facts.job, wait, std::time(nullptr)));
  const auto after = NodesOf(job.id);
  switch (JudgeGrowth(given.ok(), job.facts.names, after.ok() ? std::optional(*after) : std::nullopt)) {
    case Growth::kNothing:
      return Status(Code::kUnavailable, "nothing was changed: within " + FormatDuration(wait) +
                                            " Slurm has not given the job " + more + " (" + given.message() +
                                            ")");
    case Growth::kUnknown:
      return Status(Code::kUnavailable, "whether Slurm has given the job " + more + " is not known (" +
                                            given.message() + "; " + after.status().message() +
                                            "): `scontrol show job " + std::to_string(job.id) + "` tells");
    case Growth::kGrown:
      break;
  }
  Result<Job> grown = LookAt(args);
  const Status life = grown.ok() ? CheckLife(grown->facts) : grown.status();
  CAIRN_RETURN_IF_ERROR(life.Annotate(kUsesThemLater));
  grown->wish.nodes = grown->facts.job.nodes;
  return grown;
}

Result<Json> AwaitNextLife(const Job& job, bool json) {
  CAIRN_ASSIGN_OR_RETURN(
      const JobRecord resized,
      AwaitJob(job.id, kSettled, "the job has not been resized", [&](const JobRecord& record) {
        return record.nodes == job.wish.nodes || record.state != "RUNNING";
      }));
  if (resized.state != "RUNNING")
    return Status(Code::kUnavailable, "the job was not resized: it is " + resized.state +
                                          " now; `cairn why " + std::to_string(job.id) + "` says why");
  Say(json, "resized  job " + std::to_string(job.id) + " has " + resized.node_list + " now");
  Json out = {{"nodes", resized.node_list}, {"resumed", false}};
  const auto end = Clock::now() + kNextLife;
  while (Clock::now() < end) {
    const auto status = Ask(job.dir, {{"op", "status"}}, kStatusBound);
    if (status.ok() && status->value("step_id", "") != job.status.value("step_id", "") &&
        status->value("save", "") != "not started") {
      out["resumed"] = true;
      out["world_size"] = status->value("world_size", 0);
      out["restored_step"] = status->value("restored_step", 0);
      Say(json,
          "resumed  from step " + out["restored_step"].dump() + " on " + out["world_size"].dump() + " ranks");
      return out;
    }
    std::this_thread::sleep_for(kPoll);
  }
  Say(json, "the next life has not begun yet; `cairn status " + std::to_string(job.id) + "` will show it");
  return out;
}

Result<Json> Requeue(const Job& job, bool json) {
  const std::string target = RequeueTarget(job.facts.job);
  CAIRN_RETURN_IF_ERROR(Scontrol({"requeuehold", target}).status().Annotate("nothing was changed"));
  const auto pending = AwaitJob(job.id, kSettled, "the job is not back in the queue",
                                [](const JobRecord& record) { return record.state == "PENDING"; });
  const std::string by_hand = "; release it by hand: scontrol release " + target;
  if (!pending.ok()) return pending.status().Annotate("the job is held" + by_hand);
  const std::string id = "JobId=" + target;
  // Slurm refuses more nodes than tasks, and a new least number above the old greatest.
  const std::string nodes = std::to_string(job.wish.nodes);
  const int tasks_per_node = std::max(1, job.facts.job.tasks / std::max(1, job.facts.job.nodes));
  const Status updated = Scontrol({"update", id, "NumNodes=" + nodes + "-" + nodes,
                                   "NumTasks=" + std::to_string(job.wish.nodes * tasks_per_node)})
                             .status();
  CAIRN_RETURN_IF_ERROR(Scontrol({"release", target}).status().Annotate("the job is held" + by_hand));
  (void)Scontrol({"update", id, "StartTime=now+2"});  // else Slurm lets it wait for two minutes
  CAIRN_RETURN_IF_ERROR(updated.Annotate("the job is requeued, but for as many nodes as before"));
  Say(json, "requeued  job " + target + " waits for " + Count(static_cast<size_t>(job.wish.nodes), "node") +
                ", and will resume there");
  return Json{{"requeued", true}};
}

Result<int> Resize(const ResizeArgs& args, bool json) {
  const Result<Nanoseconds> timeout = ParseDuration(args.timeout);
  if (!timeout.ok()) return timeout.status().Annotate("--timeout");
  if (args.nodes == 0 && args.list.empty())
    return Status(Code::kInvalid, "to how many nodes? Give a number, or --nodes=LIST");
  CAIRN_ASSIGN_OR_RETURN(Job job, LookAt(args));
  CAIRN_ASSIGN_OR_RETURN(const ResizeWay way, PlanResize(job.wish, job.facts));
  Json out = {{"job", job.id},
              {"dir", job.dir},
              {"from", job.facts.job.nodes},
              {"to", job.wish.nodes},
              {"way", way == ResizeWay::kRequeue ? "requeue" : "in place"}};
  if (args.dry_run) {
    if (const auto last = job.status.find("last_save"); last != job.status.end()) out["last_save"] = *last;
    json ? PrintJson(out) : Say(json, PlanText(job, way));
    return kExitGood;
  }
  if (way == ResizeWay::kGrow) {
    CAIRN_ASSIGN_OR_RETURN(job, Grow(args, job, *timeout, json));
    out["to"] = job.wish.nodes;
  }
  const std::string nodes = args.list.empty() ? std::to_string(job.wish.nodes) : args.list;
  const Result<int64_t> saved = Save(job, way, nodes, *timeout);
  if (way == ResizeWay::kGrow && !saved.ok()) return saved.status().Annotate(kUsesThemLater);
  CAIRN_ASSIGN_OR_RETURN(const int64_t step, saved);
  Say(json, "saved  step " + std::to_string(step) + " is durable in " + job.dir);
  CAIRN_ASSIGN_OR_RETURN(const Json done,
                         way == ResizeWay::kRequeue ? Requeue(job, json) : AwaitNextLife(job, json));
  out["step"] = step;
  out.update(done);
  if (json) PrintJson(out);
  return kExitGood;
}

}  // namespace

void AddResize(CLI::App* app, Invocation* invocation) {
  auto args = std::make_shared<ResizeArgs>();
  Subcommand resize =
      AddSubcommand(app, invocation, "resize",
                    "Give a running job another number of nodes: it saves, and goes on from there. In place "
                    "it must have been\n"
                    "started by `cairn run`, and grows only where the site allows it; with --requeue it goes "
                    "back into the queue for\n"
                    "the new number.\n"
                    "Exits 1, with the reason and what was changed until then, where that is not possible.",
                    "cairn resize 4711 2", [=] { return Resize(*args, invocation->json); });
  resize.Positional("JOB", &args->job, "a job, or JOB.STEP");
  resize.Positional("N", &args->nodes, "how many nodes").Optional().Check(WholeNumber(1));
  resize.Option("--nodes", "LIST", &args->list, "which nodes to keep");
  resize.Flag("--requeue", &args->requeue, "by way of the queue: may grow too, and the job may wait there");
  resize.Flag("--dry-run", &args->dry_run, "say what would be done, and do nothing");
  resize
      .Option("--timeout", "DURATION", &args->timeout,
              "how long to wait for the save, and before it for nodes to grow by")
      .ShowDefault();
}

}  // namespace cairn

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/catalog/beat.h"
#include "runtime/catalog/target.h"
#include "runtime/command/known_runs.h"
#include "runtime/command/life_story.h"
#include "runtime/command/subcommands.h"
#include "runtime/formats/names.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

Result<int> Why(const std::string& job_or_dir, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const FoundRun found, FindRun(job_or_dir));
  CAIRN_ASSIGN_OR_RETURN(const RunDirectory dir, OpenRun(found.dir));
  CAIRN_ASSIGN_OR_RETURN(std::vector<LifeStory> lives, ReadLives(dir));
  for (LifeStory& life : lives) {
    const auto beat = ReadBeat(dir.PathOf(names::AliveFile(life.epoch)));
    GuessEnd(&life, beat.ok() && *beat && (*beat)->left, &life == &lives.back());
  }
  const auto wanted = [&](const LifeStory& life) {
    return !found.job || life.job == std::to_string(found.job->job);
  };
  std::string text;
  Json out = Json::array();
  const LifeStory* before = nullptr;  // whose ever it was
  for (const LifeStory& life : lives) {
    if (wanted(life) && json) out.push_back(LifeJson(life, before));
    if (wanted(life) && !json) text += Tell(life, before);
    before = &life;
  }
  if (json) {
    PrintJson({{"dir", dir.path()}, {"lives", std::move(out)}});
    return kExitGood;
  }
  std::printf("%s\n", dir.path().c_str());
  if (text.empty()) std::printf("no life has written its journal here%s\n", found.job ? " for that job" : "");
  std::printf("%s", text.c_str());
  return kExitGood;
}

}  // namespace

void AddWhy(CLI::App* app, Invocation* invocation) {
  auto name = std::make_shared<std::string>();
  Subcommand why = AddSubcommand(
      app, invocation, "why",
      "Tell why each life of a run ended (preempted, time limit, cancelled, a lost rank, killed outright), "
      "what\n"
      "it had gone on from, what was other than in the life before it, what it saved and gave up, and "
      "whether it was requeued. With a JOB, only that\n"
      "job's lives. Read from journal.jsonl in the run's directory, which outlives truncated logs.",
      "cairn why 4711", [=] { return Why(*name, invocation->json); });
  why.Positional("JOB|DIR", name.get(), "a job, JOB.STEP, or the run's directory");
}

}  // namespace cairn

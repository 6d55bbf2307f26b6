#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/catalog/target.h"
#include "runtime/command/ask.h"
#include "runtime/command/known_runs.h"
#include "runtime/command/screen.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"
#include "runtime/settings.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kBound{10};
constexpr std::chrono::seconds kPause{1};  // of --watch

std::string Lines(const Json& s, int width) {
  std::string out;
  const auto line = [&](const char* name, const std::string& text) { out += NamedLine(name, text, width); };
  const auto duration = [](const Json& ns) { return FormatDuration(Nanoseconds(ns.get<int64_t>())); };
  line("job", s.at("job").get<std::string>() + "." + s.at("step_id").get<std::string>() + ", restart " +
                  s.at("restart").dump());
  line("directory", s.at("dir").get<std::string>());
  line("ranks", s.at("world_size").dump());
  const auto step = Nanoseconds(static_cast<int64_t>(1e6 * s.at("step_ms").get<double>()));
  line("step", s.at("count").dump() + (step.count() > 0 ? ", " + FormatDuration(step) + " each" : ""));
  if (s.at("restored_step").get<int64_t>() > 0) line("restored", "from step " + s.at("restored_step").dump());
  const auto step_under_way = s.find("save_step");
  line("save", s.at("save").get<std::string>() +
                   (step_under_way == s.end() ? "" : ", of step " + step_under_way->dump()));
  if (const auto drain = s.find("drain"); drain != s.end()) {
    const auto bytes = [&](const char* name) { return FormatBytes(drain->at(name).get<uint64_t>()); };
    std::string text = bytes("written") + " of " + bytes("bytes") + ", " + bytes("bytes_per_second") + "/s";
    if (const Json& left = drain->at("seconds_left"); !left.is_null())
      text += ", " + FormatDuration(Nanoseconds(static_cast<int64_t>(1e9 * left.get<double>()))) + " left";
    if (const auto writer = drain->at("writer").get<std::string>(); !writer.empty()) text += ", by " + writer;
    if (!drain->at("limit").is_null()) text += ", at most " + bytes("limit") + "/s a node";
    line("writing", text);
  }
  line("interval", s.at("interval").get<std::string>());
  if (const auto fit = s.find("fit"); fit != s.end()) line("fit", fit->get<std::string>());
  if (const auto tiers = s.find("tiers"); tiers != s.end()) {
    std::string text;
    for (const auto& [tier, held] : tiers->items()) {
      if (held.get<int64_t>() > 0) text += (text.empty() ? "" : ", ") + tier + " step " + held.dump();
    }
    if (!text.empty()) line("newest", text);
  }
  if (const auto copy = s.find("copy"); copy != s.end()) {
    std::string text = copy->at("to").get<std::string>() + ": ";
    if (const Json& step_there = copy->at("step"); !step_there.is_null()) {
      text += "step " + step_there.dump() + ", " + FormatBytes(copy->at("bytes").get<uint64_t>());
      if (const auto lag = copy->at("lag").get<int64_t>(); lag > 0)
        text += ", " + Count(static_cast<size_t>(lag), "step") + " behind";
    } else {
      text += "nothing in this life yet";
    }
    if (const Json& now = copy->at("under_way"); !now.is_null()) text += "; now step " + now.dump();
    if (const auto failure = copy->find("failure"); failure != copy->end())
      text += "; failed: " + failure->get<std::string>();
    line("copy", text);
  }
  line("ending", s.at("ending").get<std::string>());
  if (const auto last = s.find("last_save"); last != s.end()) {
    line("last save", "step " + last->at("step").dump() + ", label " + last->at("label").dump() +
                          ", trigger " + last->at("trigger").get<std::string>() + ": " +
                          FormatBytes(last->at("bytes").get<uint64_t>()) + ", stalled " +
                          duration(last->at("stall_ns")) + ", durable after " +
                          duration(last->at("durable_ns")));
  }
  if (const auto failure = s.find("last_failure"); failure != s.end())
    line("failed", failure->get<std::string>());
  return out;
}

Result<std::string> StatusText(const Json& status, const std::string& dir) {
  try {
    return Lines(status, TerminalWidth());
  } catch (const Json::exception& error) {
    return Status(Code::kInternal, "the session in " + dir + " answered with something else than a status (" +
                                       error.what() +
                                       "): it may be of another version of Cairn; see `cairn status --json`");
  }
}

Result<int> ShowStatus(const std::string& job_or_dir, bool watch, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const FoundRun found, FindRun(job_or_dir));
  CAIRN_ASSIGN_OR_RETURN(const RunDirectory dir, OpenRun(found.dir));
  for (bool again = false;; again = true) {
    CAIRN_ASSIGN_OR_RETURN(const Json status, Ask(dir.path(), {{"op", "status"}}, kBound));
    if (json) {
      PrintJson(status);
      return kExitGood;
    }
    CAIRN_ASSIGN_OR_RETURN(const std::string text, StatusText(status, dir.path()));
    if (!watch) {
      std::printf("%s", text.c_str());
      return kExitGood;
    }
    if (!again && TerminalWidth() > 0) std::printf("\033[2J");
    DrawPage(text);
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

void AddStatus(CLI::App* app, Invocation* invocation) {
  auto name = std::make_shared<std::string>();
  auto watch = std::make_shared<bool>(false);
  Subcommand status =
      AddSubcommand(app, invocation, "status",
                    "Ask a running job how it stands: its step, whether a save is under way, what the last "
                    "save cost, what\n"
                    "went wrong last, and whether the job is about to end. JOB is found among `cairn runs`.",
                    "cairn status 4711", [=] { return ShowStatus(*name, *watch, invocation->json); });
  status.Flag("--watch", watch.get(), "again and again, once a second, until the job ends or Ctrl-C");
  status.Positional("JOB|DIR", name.get(), "a job, JOB.STEP, or the run's directory");
}

}  // namespace cairn

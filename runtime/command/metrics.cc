#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/catalog/beat.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/journal.h"
#include "runtime/catalog/marks.h"
#include "runtime/catalog/target.h"
#include "runtime/command/life_story.h"
#include "runtime/command/metrics_server.h"
#include "runtime/command/metrics_text.h"
#include "runtime/command/subcommands.h"
#include "runtime/formats/names.h"
#include "runtime/io/file.h"
#include "runtime/settings.h"

namespace cairn {
namespace {

struct Request {
  std::vector<std::string> dirs;
  std::string out, listen, every;
};

Result<std::string> MetricsOf(const std::vector<std::string>& paths) {
  std::vector<RunMetrics> runs;
  for (const std::string& path : paths) {
    CAIRN_ASSIGN_OR_RETURN(const RunDirectory dir, OpenRun(path));
    CAIRN_ASSIGN_OR_RETURN(const std::string journal, ReadJournal(dir));
    CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(dir));
    RunMetrics& run = runs.emplace_back(RunMetrics{dir.path(), false, TellChronicle(journal)});
    CAIRN_ASSIGN_OR_RETURN(run.finished, IsFinished(dir, listing));
    for (LifeCourse& life : run.chronicle.lives) {
      const auto beat = ReadBeat(dir.PathOf(names::AliveFile(life.story.epoch)));
      GuessEnd(&life.story, beat.ok() && *beat && (*beat)->left, &life == &run.chronicle.lives.back());
    }
  }
  return WriteMetrics(runs);
}

Result<int> Metrics(const Request& request) {
  if (!request.listen.empty()) {
    const auto ready = [&](int port) {
      std::printf("serving /metrics at %s:%d\n", request.listen.substr(0, request.listen.rfind(':')).c_str(),
                  port);
      std::fflush(stdout);
    };
    return ServeMetrics(request.listen, ready, [&] { return MetricsOf(request.dirs); });
  }
  std::optional<Nanoseconds> pause;
  if (!request.every.empty()) {
    CAIRN_ASSIGN_OR_RETURN(pause, ParseDuration(request.every));
  }
  for (;;) {
    const Result<std::string> text = MetricsOf(request.dirs);
    const Status written = !text.ok()            ? text.status()
                           : request.out.empty() ? OkStatus()
                                                 : PublishFile(request.out, *text);
    if (!pause) {
      CAIRN_RETURN_IF_ERROR(written);
      if (request.out.empty()) std::printf("%s", text->c_str());
      return kExitGood;
    }
    // What fails now, as a store that is out of reach, may not the next time; an old file shows by its age.
    if (!written.ok()) std::fprintf(stderr, "cairn: %s\n", written.message().c_str());
    std::this_thread::sleep_for(*pause);
  }
}

}  // namespace

void AddMetrics(CLI::App* app, Invocation* invocation) {
  auto request = std::make_shared<Request>();
  Subcommand metrics = AddSubcommand(
      app, invocation, "metrics",
      "Tell how runs are, in the text format of Prometheus: once on stdout, in a file for node_exporter, or "
      "at\n"
      "an address that Prometheus asks. Read from the runs' directories: the jobs notice nothing of it, and\n"
      "counters go on over all lives of a run.",
      "cairn metrics /scratch/me/run7 -o /var/lib/node_exporter/run7.prom --every 15s",
      [=] { return Metrics(*request); });
  metrics.Positional("DIR", &request->dirs, "the directories of runs");
  const Argument out =
      metrics.Option("-o,--output", "FILE", &request->out, "a file, which is replaced in one step");
  metrics.Option("--every", "DURATION", &request->every, "write the file again and again").Needs(out);
  metrics
      .Option("--listen", "ADDRESS", &request->listen,
              "serve /metrics there, such as 127.0.0.1:9463, until ended")
      .Excludes(out);
}

}  // namespace cairn

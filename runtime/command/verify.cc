#include "runtime/catalog/verify.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/catalog/retention.h"
#include "runtime/catalog/target.h"
#include "runtime/command/numbers.h"
#include "runtime/command/progress_bar.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"
#include "runtime/settings.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

std::string Where(const Fault& fault) {
  if (fault.bytes == 0) return fault.file;
  return fault.file + ", bytes " + std::to_string(fault.offset) + " to " +
         std::to_string(fault.offset + fault.bytes - 1);
}

Result<int> Verify(const std::string& target, int threads, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const Chosen chosen, ChooseCheckpoint(target));
  const std::string& name = chosen.checkpoint.name;
  const Clock::time_point begin = Clock::now();
  HeldLease lease(chosen.dir, name);
  VerifyReport report;
  {
    ProgressBar bar;
    VerifyOptions options;
    options.threads = threads;
    options.progress = [&](uint64_t done, uint64_t total) {
      lease.Keep(Clock::now());
      bar.Draw(done, total);
    };
    CAIRN_ASSIGN_OR_RETURN(report, VerifyCheckpoint(chosen.dir, name, options));
  }
  const Clock::duration took = Clock::now() - begin;
  const double seconds = std::chrono::duration<double>(took).count();
  const bool good = report.faults.empty();
  if (json) {
    Json faults = Json::array();
    for (const Fault& f : report.faults) {
      faults.push_back({{"file", f.file}, {"offset", f.offset}, {"bytes", f.bytes}, {"reason", f.reason}});
    }
    PrintJson({{"dir", chosen.dir.path()},
               {"checkpoint", name},
               {"good", good},
               {"bytes", report.bytes},
               {"seconds", seconds},
               {"faults", std::move(faults)}});
    return good ? kExitGood : kExitBad;
  }
  for (const Fault& fault : report.faults)
    std::printf("bad   %s: %s\n", Where(fault).c_str(), fault.reason.c_str());
  std::printf("%s  %s: %s read and compared in %s\n", good ? "good" : "BAD ", name.c_str(),
              FormatBytes(report.bytes).c_str(),
              FormatDuration(std::chrono::duration_cast<Nanoseconds>(took)).c_str());
  if (!good) {
    std::printf(
        "A restart finds this out by itself and takes the next older checkpoint; `cairn ls %s` shows what "
        "there is.\n",
        chosen.dir.path().c_str());
  }
  return good ? kExitGood : kExitBad;
}

}  // namespace

void AddVerify(CLI::App* app, Invocation* invocation) {
  constexpr unsigned kMaxDefaultThreads = 16;
  auto target = std::make_shared<std::string>();
  auto threads = std::make_shared<int>(
      static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kMaxDefaultThreads)));
  Subcommand verify = AddSubcommand(
      app, invocation, "verify",
      "Read every byte of one checkpoint and compare it with the checksums. Names each bad block by\n"
      "file and bytes; exits 1 if there is one. Nothing is changed, and a running job may go on saving.",
      "cairn verify /scratch/me/run7@best --threads 8",
      [=] { return Verify(*target, *threads, invocation->json); });
  verify.Positional("DIR[@STEP|@TAG]", target.get(), "which checkpoint; without @ the newest");
  verify.Option("--threads", "N", threads.get(), "how many threads read")
      .Check(WholeNumber(1, 256))
      .ShowDefault();
}

}  // namespace cairn

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "planner/restore_forecast.h"
#include "runtime/catalog/target.h"
#include "runtime/command/layout_file.h"
#include "runtime/command/numbers.h"
#include "runtime/command/progress_bar.h"
#include "runtime/command/rank_forecasts.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"
#include "runtime/formats/sums.h"
#include "runtime/io/file.h"
#include "runtime/settings.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

struct Request {
  std::string target, layout_file, svg_file;
  uint32_t ranks = 0;
  uint64_t read_speed = 1000000000, network_speed = 1000000000;  // bytes per second and rank
};

struct Totals {
  uint64_t state = 0, read = 0, needed = 0, blocks = 0, received = 0, most_memory = 0;
  double seconds = 0;  // of the slowest rank
  uint32_t slowest = 0;
};

// Memory that does not depend on what a rank loads: the index, and the checksums of one file.
uint64_t FixedMemory(const LoadedCheckpoint& loaded) {
  uint64_t largest_file = 0;
  for (const ShardRecord& file : loaded.index.files) largest_file = std::max(largest_file, file.bytes);
  return loaded.manifest.index_bytes + BlockCount(largest_file) * sizeof(Hash128);
}

// Reading, sending and receiving go on at the same time.
double SecondsOf(const RestoreForecast& rank, const Request& request) {
  const auto network = static_cast<double>(request.network_speed);
  return std::max({static_cast<double>(rank.read_bytes) / static_cast<double>(request.read_speed),
                   static_cast<double>(rank.received_bytes) / network,
                   static_cast<double>(rank.sent_bytes) / network});
}

Totals Sum(const std::vector<RestoreForecast>& ranks, uint64_t fixed_memory, const Request& request) {
  Totals sum;
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    const RestoreForecast& rank = ranks[r];
    sum.state += rank.state_bytes;
    sum.read += rank.read_bytes;
    sum.needed += rank.needed_bytes;
    sum.blocks += rank.blocks;
    sum.received += rank.received_bytes;
    sum.most_memory = std::max(sum.most_memory, rank.state_bytes + rank.buffer_bytes + fixed_memory);
    if (SecondsOf(rank, request) <= sum.seconds) continue;
    sum.seconds = SecondsOf(rank, request);
    sum.slowest = r;
  }
  return sum;
}

void PrintPlan(const LoadedCheckpoint& loaded, const std::vector<RestoreForecast>& ranks, const Totals& sum,
               uint64_t fixed_memory, const Request& request) {
  const auto line = [](const char* name, const std::string& text) {
    std::printf("%-10s  %s\n", name, text.c_str());
  };
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.3f",
                sum.needed == 0 ? 1 : static_cast<double>(sum.read) / static_cast<double>(sum.needed));
  line("checkpoint", loaded.path);
  line("saved by",
       Count(loaded.manifest.world_size, "rank") + ", " + Count(loaded.index.files.size(), "file"));
  std::string layout = request.layout_file;
  if (layout.empty()) {
    layout = "as it was saved";
    // Which rank of a writer held what is not kept.
    if (loaded.index.world_size < loaded.manifest.world_size)
      layout += " by " + Count(loaded.index.world_size, "group") + " of ranks";
  }
  line("layout", layout + ", on " + Count(ranks.size(), "rank"));
  line("state", FormatBytes(sum.state) + " in the memory of all ranks");
  line("read", FormatBytes(sum.read) + " in " + Count(sum.blocks, "block") + ", " + ratio +
                   " of what is needed, each once");
  line("exchange", FormatBytes(sum.received) + " from rank to rank");
  line("memory", FormatBytes(sum.most_memory) + " at most on a rank, " + FormatBytes(fixed_memory) +
                     " of it the index");
  line("time", "about " + FormatDuration(std::chrono::nanoseconds(std::llround(sum.seconds * 1e9))) +
                   " (rank " + std::to_string(sum.slowest) + "), if a rank reads " +
                   FormatBytes(request.read_speed) + " and sends " + FormatBytes(request.network_speed) +
                   " a second");
  Table table({{"RANK", true},
               {"STATE", true},
               {"BLOCKS", true},
               {"READS", true},
               {"SENDS", true},
               {"RECEIVES", true},
               {"BUFFERS", true}});
  const auto add = [&](const std::string& name, const auto& value) {
    table.AddRow({name, FormatBytes(value(&RestoreForecast::state_bytes)),
                  std::to_string(value(&RestoreForecast::blocks)),
                  FormatBytes(value(&RestoreForecast::read_bytes)),
                  FormatBytes(value(&RestoreForecast::sent_bytes)),
                  FormatBytes(value(&RestoreForecast::received_bytes)),
                  FormatBytes(value(&RestoreForecast::buffer_bytes))});
  };
  using Field = uint64_t RestoreForecast::*;
  constexpr size_t kMostRows = 32;
  if (ranks.size() <= kMostRows) {
    for (size_t r = 0; r < ranks.size(); ++r)
      add(std::to_string(r), [&](Field field) { return ranks[r].*field; });
  } else {
    const auto quantile = [&](size_t position) {
      return [&ranks, position](Field field) {
        std::vector<uint64_t> values;
        for (const RestoreForecast& rank : ranks) values.push_back(rank.*field);
        std::sort(values.begin(), values.end());
        return values[position];
      };
    };
    add("least", quantile(0));
    add("median", quantile(ranks.size() / 2));
    add("most", quantile(ranks.size() - 1));
  }
  std::printf("\n%s", table.ToString().c_str());
}

Json PlanJson(const Chosen& chosen, const LoadedCheckpoint& loaded, const std::vector<RestoreForecast>& ranks,
              const Totals& sum, uint64_t fixed_memory, const Request& request) {
  Json out = {{"dir", chosen.dir.path()},
              {"checkpoint", loaded.name},
              {"saved_ranks", loaded.manifest.world_size},
              {"layout", request.layout_file.empty() ? Json() : Json(request.layout_file)},
              {"state_bytes", sum.state},
              {"read_bytes", sum.read},
              {"needed_bytes", sum.needed},
              {"exchanged_bytes", sum.received},
              {"peak_memory_bytes", sum.most_memory},
              {"fixed_memory_bytes", fixed_memory},
              {"seconds", sum.seconds},
              {"read_speed", request.read_speed},
              {"network_speed", request.network_speed},
              {"ranks", Json::array()}};
  for (size_t r = 0; r < ranks.size(); ++r) {
    Json reads = Json::array(), kept = Json::array();
    for (const auto& [file, bytes] : ranks[r].read_of_file)
      reads.push_back({{"file", loaded.index.files[file].number}, {"bytes", bytes}});
    for (const auto& [reader, bytes] : ranks[r].kept_from)
      kept.push_back({{"reader", reader}, {"bytes", bytes}});
    out["ranks"].push_back({{"rank", r},
                            {"state_bytes", ranks[r].state_bytes},
                            {"blocks", ranks[r].blocks},
                            {"read_bytes", ranks[r].read_bytes},
                            {"sent_bytes", ranks[r].sent_bytes},
                            {"received_bytes", ranks[r].received_bytes},
                            {"buffer_bytes", ranks[r].buffer_bytes},
                            {"seconds", SecondsOf(ranks[r], request)},
                            {"reads", std::move(reads)},
                            {"kept", std::move(kept)}});
  }
  return out;
}

Result<int> Plan(const Request& request, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const Chosen chosen, ChooseCheckpoint(request.target));
  CAIRN_ASSIGN_OR_RETURN(const LoadedCheckpoint loaded, LoadCheckpoint(chosen.dir, chosen.checkpoint.name));
  WantedLayout wanted;
  if (request.layout_file.empty()) {
    wanted = LayoutAsSaved(loaded.index.saved, request.ranks);
  } else {
    constexpr uint64_t kMaxBytes = 64 << 20;
    CAIRN_ASSIGN_OR_RETURN(const std::string text, ReadAll(request.layout_file, kMaxBytes));
    auto parsed = ParseLayoutFile(text, loaded.index.saved, request.ranks);
    if (!parsed.ok()) return parsed.status().Annotate(request.layout_file);
    wanted = *std::move(parsed);
  }
  ProgressBar bar;
  CAIRN_ASSIGN_OR_RETURN(
      const std::vector<RestoreForecast> ranks,
      ForecastRanks(loaded.index, wanted, [&](uint32_t done) { bar.Draw(done, request.ranks); }));
  const uint64_t fixed_memory = FixedMemory(loaded);
  const Totals sum = Sum(ranks, fixed_memory, request);
  if (!request.svg_file.empty())
    CAIRN_RETURN_IF_ERROR(PublishFile(request.svg_file, DrawRestore(loaded, ranks)));
  if (json) {
    PrintJson(PlanJson(chosen, loaded, ranks, sum, fixed_memory, request));
  } else {
    PrintPlan(loaded, ranks, sum, fixed_memory, request);
  }
  return kExitGood;
}

}  // namespace

void AddPlan(CLI::App* app, Invocation* invocation) {
  auto request = std::make_shared<Request>();
  Subcommand plan = AddSubcommand(
      app, invocation, "plan",
      "Tell what a restore on another number of ranks would do, before it is tried: what each rank reads,\n"
      "hands to others and gets, the memory that it takes, and about how long. Reads the index alone.\n"
      "Without --layout the arrays are spread as they were saved, on N ranks: what was divided is divided\n"
      "into more or fewer parts, what each rank held whole each holds, and arrays without a regular\n"
      "layout are dealt out in equal stretches. FILE says it for arrays by name, as in\n"
      R"({"mesh": {"dp": 3, "tp": 2}, "arrays": {"*.weight": ["dp", "tp"], "optim.*": null}})",
      "cairn plan /scratch/me/run7@1200 --ranks 48 --svg plan.svg",
      [=] { return Plan(*request, invocation->json); });
  plan.Positional("DIR[@STEP|@TAG]", &request->target, "which checkpoint; without @ the newest");
  plan.Option("--ranks", "N", &request->ranks, "on how many ranks").Required().Check(WholeNumber(1, 1 << 20));
  plan.Option("--layout", "FILE", &request->layout_file, "how the arrays are spread over the ranks");
  plan.Option("--svg", "OUT", &request->svg_file, "draw which rank reads what, and hands it where");
  plan.Option("--read-speed", "SIZE", &request->read_speed,
              "bytes per second that a rank reads, 1GB by default")
      .Bytes()
      .Check(WholeNumber(1, INT64_MAX));
  plan.Option("--network-speed", "SIZE", &request->network_speed,
              "bytes per second that a rank sends, 1GB by default")
      .Bytes()
      .Check(WholeNumber(1, INT64_MAX));
}

}  // namespace cairn

#include "runtime/command/rank_forecasts.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "runtime/command/plan_picture.h"
#include "runtime/command/text.h"
#include "runtime/formats/sums.h"
#include "runtime/staging/memory_room.h"

namespace cairn {

Result<std::vector<RestoreForecast>> ForecastRanks(const Index& index, const WantedLayout& wanted,
                                                   const std::function<void(uint32_t done)>& on_progress) {
  std::vector<uint64_t> file_bytes;
  for (const ShardRecord& file : index.files) file_bytes.push_back(file.bytes);
  const uint32_t ranks = wanted.layout.world_size;
  std::vector<RestoreForecast> forecasts(ranks);
  // An index keeps all that it was ever asked for, so each is used for a few ranks only.
  constexpr uint32_t kRanksAtOnce = 16;
  std::atomic<uint32_t> next{0};
  std::mutex mutex;  // guards the two below, and on_progress
  Status status;
  uint32_t done = 0;
  const auto work = [&] {
    for (;;) {
      const uint32_t first = next.fetch_add(kRanksAtOnce);
      if (first >= ranks) return;
      const uint32_t last = std::min(first + kRanksAtOnce, ranks);
      const auto plan_ranks = [&]() -> Status {
        CAIRN_ASSIGN_OR_RETURN(const SavedIndex saved, SavedIndex::Make(index.saved));
        const LayoutIndex layout(wanted.layout);
        for (uint32_t rank = first; rank < last; ++rank) {
          CAIRN_ASSIGN_OR_RETURN(const ExchangePlan plan,
                                 PlanExchange({saved, layout, wanted.saved_array, kBlockBytes}, rank));
          forecasts[rank] = ForecastOf(plan, saved, rank, file_bytes, kBlockBytes);
        }
        return OkStatus();
      };
      const Status planned = plan_ranks();
      const std::lock_guard lock(mutex);
      if (!planned.ok()) {
        status = planned;
        next = ranks;
      }
      done += last - first;
      on_progress(done);
    }
  };
  std::vector<std::thread> helpers;
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
  for (unsigned t = 1; t < threads && t * kRanksAtOnce < ranks; ++t) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  if (!status.ok()) return status;
  return forecasts;
}

std::string DrawRestore(const LoadedCheckpoint& loaded, const std::vector<RestoreForecast>& ranks) {
  uint64_t read = 0, received = 0;
  for (const RestoreForecast& rank : ranks) {
    read += rank.read_bytes;
    received += rank.received_bytes;
  }
  PlanPicture picture;
  picture.title = loaded.name + " on " + Count(ranks.size(), "rank");
  picture.subtitle = "Saved by " + Count(loaded.manifest.world_size, "rank") + ". " + FormatBytes(read) +
                     " are read, each byte once; " + FormatBytes(received) + " go from rank to rank.";
  for (const ShardRecord& file : loaded.index.files) picture.file_numbers.push_back(file.number);
  picture.ranks = &ranks;
  return DrawPlan(picture);
}

}  // namespace cairn

// bench_commit: from "all records are in" to a durable checkpoint, against writing, syncing and renaming one 4 KiB file.
//
//     bench_commit FOLDER ROUNDS
#include "runtime/catalog/commit.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/catalog/epoch.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

int Fail(const Status& status) {
  std::fprintf(stderr, "bench_commit: %s\n", status.message().c_str());
  return 2;
}

// The least that any commit must do.
double SecondsOfLimit(const std::string& folder, int number, const std::string& text) {
  const std::string path = folder + "/limit-" + std::to_string(number);
  const auto begin = Clock::now();
  const int file = open((path + ".new").c_str(), O_CREAT | O_WRONLY, 0644);
  const bool good = file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                    fsync(file) == 0 && close(file) == 0 &&
                    rename((path + ".new").c_str(), path.c_str()) == 0;
  const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (!good || fsync(directory) != 0 || close(directory) != 0) {
    std::perror(path.c_str());
    std::exit(2);
  }
  return Seconds(begin);
}

int Measure(const std::string& folder, int rounds) {
  const auto dir = RunDirectory::Open(folder + "/run", "bench");
  if (!dir.ok()) return Fail(dir.status());
  const Identity life{"bench", "1", "0", 0, "node", 1, 0, "bench", "2026-01-01T00:00:00Z", "bench"};
  const auto epoch = ClaimEpoch(*dir, 0, life);
  if (!epoch.ok()) return Fail(epoch.status());
  Index index;
  index.world_size = 4;
  for (uint32_t rank = 0; rank < 4; ++rank) index.files.push_back({rank + 1, 8192, Hash128()});
  index.saved.arrays = {{"u", DType::kU8, false, {4 * 4096}}};
  for (uint32_t rank = 0; rank < 4; ++rank)
    index.saved.boxes.push_back({0, rank, 4096, Box{{rank * 4096}, {4096}}});
  const std::string text(4096, 'x');
  for (int round = 0; round < rounds; ++round) {
    const double limit_before = SecondsOfLimit(folder, 2 * round, text);
    double ours[2] = {};
    for (int half = 0; half < 2; ++half) {
      const auto attempt = BeginAttempt(*dir, *epoch, 2 * round + half + 1);
      if (!attempt.ok()) return Fail(attempt.status());
      const auto begin = Clock::now();
      const auto manifest = Commit(*dir, *attempt, index, Blobs(), Manifest());
      ours[half] = Seconds(begin);
      if (!manifest.ok()) return Fail(manifest.status());
    }
    const double limit_after = SecondsOfLimit(folder, 2 * round + 1, text);
    std::printf("{\"workload\": \"4 ranks\", \"limit_s\": [%.9f, %.9f], \"ours_s\": [%.9f, %.9f]}\n",
                limit_before, limit_after, ours[0], ours[1]);
  }
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return cairn::Measure(argv[1], std::atoi(argv[2]));
}

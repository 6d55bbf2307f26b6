// bench_verify: a checkpoint verified, against as many threads that read each of its bytes once and keep nothing.
//
//     bench_verify FOLDER MIB ROUNDS hot|cold
//
// hot: out of the page cache; the limit computes the same checksums. cold: each time after the files' pages were dropped; the limit only reads.
#include "runtime/catalog/verify.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/commit.h"
#include "runtime/catalog/epoch.h"
#include "runtime/formats/shard.h"
#include "runtime/formats/sums.h"
#include "runtime/io/file.h"

namespace cairn {
namespace {

constexpr uint32_t kShards = 4;

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "bench_verify: %s\n", result.status().message().c_str());
    std::exit(2);
  }
  return *std::move(result);
}

void Check(const Status& status) {
  if (!status.ok()) Must(Result<int>(status));
}

// A run with one checkpoint: an array of bytes, a part in each shard.
class Example {
 public:
  Example(const std::string& folder, int64_t bytes)
      : dir_(Must(RunDirectory::Open(folder + "/run", "bench"))) {
    const uint32_t epoch = Must(ClaimEpoch(dir_, 0, {}));
    const Attempt attempt = Must(BeginAttempt(dir_, epoch, 1));
    name_ = attempt.name.ToString();
    Index index;
    index.world_size = 1;
    index.saved.arrays = {{"w", DType::kU8, false, {kShards, bytes / kShards}}};
    for (uint32_t i = 0; i < kShards; ++i) {
      const Box box{{i, 0}, {1, bytes / kShards}};
      const ShardTensor tensor{"w", DType::kU8, box};
      const ShardLayout layout = Must(LayOutShard({&tensor, 1}));
      std::string content = layout.header;
      uint64_t state = i + 1;
      for (int64_t n = 0; n < bytes / kShards; ++n) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        content += static_cast<char>(state >> 56);
      }
      Sums sums{content.size(), {}};
      for (uint64_t b = 0; b < BlockCount(content.size()); ++b)
        sums.blocks.push_back(Hash128Of(std::string_view(content).substr(b * kBlockBytes, kBlockBytes)));
      files_.push_back({attempt.path + "/" + names::Shard(i + 1), content.size()});
      Check(PublishFile(files_.back().path, content));
      Check(PublishFile(attempt.path + "/" + names::Sums(i + 1), EncodeSums(sums)));
      index.files.push_back({i + 1, content.size(), sums.Root()});
      index.saved.boxes.push_back({0, i, layout.offsets[0], box});
    }
    Must(Commit(dir_, attempt, index, {}, {}));
  }

  void Drop() const {
    for (const File& file : files_) DropCached(file.path);
  }

  void Verify(int threads) const {
    const VerifyReport report = Must(VerifyCheckpoint(dir_, name_, {.threads = threads}));
    if (!report.faults.empty()) std::abort();
  }

  void ReadOnce(int threads, bool hash) const {
    std::atomic<uint64_t> next{0};
    const uint64_t per_file = BlockCount(files_[0].bytes);
    const auto work = [&] {
      std::vector<std::byte> buffer(kBlockBytes);
      std::vector<UniqueFd> fds;
      for (const File& file : files_) fds.push_back(Must(OpenFile(file.path, O_RDONLY)));
      for (uint64_t i = next++; i < per_file * files_.size(); i = next++) {
        const File& file = files_[i / per_file];
        const auto out = std::span(buffer).first(BlockBytes(file.bytes, i % per_file));
        Check(PreadFull(fds[i / per_file].get(), out, i % per_file * kBlockBytes, file.path));
        if (hash && Hash128Of(std::span<const std::byte>(out)) == Hash128()) std::abort();
      }
    };
    std::vector<std::thread> crew;
    for (int i = 1; i < threads; ++i) crew.emplace_back(work);
    work();
    for (std::thread& thread : crew) thread.join();
  }

 private:
  struct File {
    std::string path;
    uint64_t bytes = 0;
  };
  RunDirectory dir_;
  std::string name_;
  std::vector<File> files_;
};

template <typename Body>
double Seconds(const Body& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int Main(const std::string& folder, int64_t mib, int rounds, bool hot) {
  const int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U));
  const Example example(folder, mib << 20);
  const auto limit = [&] {
    if (!hot) example.Drop();
    return Seconds([&] { example.ReadOnce(threads, hot); });
  };
  const auto ours = [&] {
    if (!hot) example.Drop();
    return Seconds([&] { example.Verify(threads); });
  };
  example.ReadOnce(threads, false);
  for (int round = 0; round < rounds; ++round) {
    const double before = limit(), first = ours(), second = ours(), after = limit();
    std::printf(R"({"workload": "%lld MiB, %d threads", "limit_s": [%.9f, %.9f], "ours_s": [%.9f, %.9f]})"
                "\n",
                static_cast<long long>(mib), threads, before, after, first, second);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: bench_verify FOLDER MIB ROUNDS hot|cold\n");
    return 2;
  }
  return cairn::Main(argv[1], std::atoll(argv[2]), std::atoi(argv[3]), std::string(argv[4]) == "hot");
}

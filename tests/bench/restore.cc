// bench_restore: ranks that load a checkpoint together, as threads with real files and sockets, against as many threads that read each of its bytes
// once, into memory of a program's size that has been touched.
//
//     bench_restore FOLDER MIB ROUNDS hot|cold
//
// hot: out of the page cache; the limit computes the same checksums. cold: each time after the files' pages were dropped; the limit only reads.
// Besides the times a round has the bytes read and the unique bytes needed. "identity, nothing kept": the limit reads all into the same 4 MiB.
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/formats/sums.h"
#include "runtime/io/file.h"
#include "runtime/restore/exchange.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kWidth = 1024;  // bytes of a row
constexpr uint64_t kHeader = 4096;
constexpr uint64_t kChunkBytes =
    256 << 10;  // that the limit reads and hashes at a time: the fastest of those tried

void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "bench_restore: %s\n", status.message().c_str());
  std::exit(2);
}

// An array of rows, as `ranks` ranks hold it: cut by rows, or all of it on each.
Layout Rows(int64_t rows, uint32_t ranks, bool replicas) {
  Layout layout{ranks, {{"w", DType::kU8, false, {rows, kWidth}}}, {}};
  for (uint32_t r = 0; r < ranks; ++r) {
    const int64_t begin = replicas ? 0 : rows * r / ranks, end = replicas ? rows : rows * (r + 1) / ranks;
    layout.pieces.push_back({0, r, 0, Box{{begin, 0}, {end - begin, kWidth}}});
  }
  return layout;
}

class Checkpoint {
 public:
  Checkpoint(const std::string& folder, const Layout& layout) {
    saved_.arrays = layout.arrays;
    for (const Piece& piece : layout.pieces) {
      std::string bytes(kHeader + static_cast<size_t>(piece.box.elements()), '\0');
      uint64_t state = piece.rank + 1;
      for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        for (size_t b = 0; b < 8; ++b) bytes[i + b] = static_cast<char>(state >> (8 * b));
      }
      Sums sums{bytes.size(), {}};
      for (uint64_t b = 0; b < BlockCount(bytes.size()); ++b)
        sums.blocks.push_back(Hash128Of(std::string_view(bytes).substr(b * kBlockBytes, kBlockBytes)));
      const std::string path =
          folder + "/" + std::to_string(layout.world_size) + "-" + std::to_string(piece.rank);
      Check(PublishFile(path, bytes));
      Check(PublishFile(path + ".sums", EncodeSums(sums)));
      files_.push_back({path, path + ".sums", bytes.size(), sums.Root(), ""});
      saved_.boxes.push_back({0, piece.rank, kHeader, piece.box});
    }
  }

  void Drop() const {
    for (const SourceFile& file : files_) DropCached(file.path);
  }

  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const SourceFile& file : files_) sum += file.size_bytes;
    return sum;
  }

  // `threads` threads, each an equal share of the blocks. memory: of bytes(), or of one block for all that a thread reads.
  double SecondsOfLimit(uint32_t threads, bool hash, std::span<std::byte> memory) const {
    struct Block {
      uint32_t file;
      uint64_t number, place;
    };
    std::vector<Block> blocks;
    uint64_t place = 0;
    for (uint32_t f = 0; f < files_.size(); ++f) {
      for (uint64_t b = 0; b < BlockCount(files_[f].size_bytes); ++b) {
        blocks.push_back({f, b, place});
        place += BlockBytes(files_[f].size_bytes, b);
      }
    }
    const bool keep = memory.size() == bytes();
    return Run(threads, [&](uint32_t thread) {
      std::vector<std::byte> buffer(keep ? 0 : kBlockBytes);
      std::vector<UniqueFd> fds;
      for (const SourceFile& file : files_) {
        auto fd = OpenFile(file.path, O_RDONLY);
        Check(fd.status());
        fds.push_back(*std::move(fd));
      }
      for (size_t i = blocks.size() * thread / threads; i < blocks.size() * (thread + 1) / threads; ++i) {
        const SourceFile& file = files_[blocks[i].file];
        const uint64_t size = BlockBytes(file.size_bytes, blocks[i].number);
        const std::span<std::byte> out =
            keep ? memory.subspan(blocks[i].place, size) : std::span(buffer).first(size);
        Hasher128 hasher;
        for (uint64_t at = 0; at < size; at += kChunkBytes) {
          const std::span<std::byte> chunk = out.subspan(at, std::min(kChunkBytes, size - at));
          Check(PreadFull(fds[blocks[i].file].get(), chunk, blocks[i].number * kBlockBytes + at, file.path));
          if (hash) hasher.Update(chunk);
        }
        if (hash && hasher.Finish() == Hash128()) std::abort();
      }
    });
  }

  struct Load {
    double seconds = 0;
    uint64_t read_bytes = 0, needed_bytes = 0;
  };
  Load LoadAll(const Layout& layout, std::vector<std::vector<std::byte>>& memory) const {
    const uint32_t ranks = layout.world_size;
    const Secret token = Secret::Random();
    std::vector<std::unique_ptr<AddressBook>> books;
    for (uint32_t r = 0; r < ranks; ++r) {
      books.push_back(std::make_unique<AddressBook>([&books, r](int to, std::string message) {
        books[static_cast<size_t>(to)]->OnMessage(static_cast<int>(r), message);
      }));
    }
    std::vector<LoadStats> stats(ranks);
    Load load;
    load.seconds = Run(ranks, [&](uint32_t rank) {
      auto saved = SavedIndex::Make(saved_);
      Check(saved.status());
      const LayoutIndex wanted(layout);
      const std::vector<uint32_t> same = {0};
      const auto plan = PlanExchange({*saved, wanted, same}, rank);
      Check(plan.status());
      auto breaker = Breaker::Make();
      Check(breaker.status());
      const BulkIdentity self{.rank = static_cast<int>(rank),
                              .key = "1.0.0",
                              .session = "main",
                              .token = token,
                              .purpose = "bench"};
      auto done =
          ExecuteExchange(*plan, files_, {{memory[rank].data(), layout.pieces[rank].box, {kWidth, 1}, 1}},
                          {self, books[rank].get(), *breaker});
      Check(done.status());
      stats[rank] = *done;
    });
    for (const LoadStats& s : stats) {
      load.read_bytes += s.read_bytes;
      load.needed_bytes += s.needed_bytes;
    }
    return load;
  }

 private:
  template <typename Work>
  static double Run(uint32_t threads, Work work) {
    const auto begin = Clock::now();
    std::vector<std::thread> running;
    for (uint32_t t = 0; t < threads; ++t) running.emplace_back(work, t);
    for (std::thread& thread : running) thread.join();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  SavedLayout saved_;
  std::vector<SourceFile> files_;
};

void Measure(const std::string& folder, int64_t rows, int rounds, bool hot) {
  struct Case {
    const char* name;
    uint32_t before, after;
    bool replicas, keep;
  };
  for (const Case& c : {Case{"identity", 4, 4, false, true},
                        {"8 to 6", 8, 6, false, true},
                        {"4 to 8", 4, 8, false, true},
                        {"4 replicas", 4, 4, true, true},
                        {"identity, nothing kept", 4, 4, false, false}}) {
    const Checkpoint checkpoint(folder, Rows(rows, c.before, false));
    const Layout layout = Rows(rows, c.after, c.replicas);
    std::vector<std::vector<std::byte>> memory;  // touched, as a program's is
    for (const Piece& piece : layout.pieces)
      memory.emplace_back(static_cast<size_t>(piece.box.elements()), std::byte{1});
    std::vector<std::byte> of_limit(c.keep ? checkpoint.bytes() : 0, std::byte{1});
    const auto prepare = [&] {
      if (!hot) checkpoint.Drop();
    };
    for (int round = 0; round < rounds; ++round) {
      double limit[2];
      Checkpoint::Load ours[2];
      prepare();
      limit[0] = checkpoint.SecondsOfLimit(c.after, hot, of_limit);
      for (Checkpoint::Load& load : ours) {
        prepare();
        load = checkpoint.LoadAll(layout, memory);
      }
      prepare();
      limit[1] = checkpoint.SecondsOfLimit(c.after, hot, of_limit);
      std::printf(
          "{\"workload\": \"%s\", \"limit_s\": [%.6f, %.6f], \"ours_s\": [%.6f, %.6f], \"read_bytes\": %llu, "
          "\"needed_bytes\": %llu}\n",
          c.name, limit[0], limit[1], ours[0].seconds, ours[1].seconds,
          static_cast<unsigned long long>(ours[0].read_bytes),
          static_cast<unsigned long long>(ours[0].needed_bytes));
    }
  }
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  cairn::Measure(argv[1], std::atoll(argv[2]) << 10, std::atoi(argv[3]), std::string(argv[4]) == "hot");
}

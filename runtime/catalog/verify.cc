#include "runtime/catalog/verify.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/sealed_file.h"
#include "runtime/io/readable.h"

namespace cairn {
namespace {

// What one thread takes at a time: neighbouring blocks of one file.
struct Task {
  size_t file = 0;
  uint64_t first_block = 0, last_block = 0;  // [first, last)
};
constexpr uint64_t kBlocksPerTask = 16;

class Verifier {
 public:
  Verifier(std::string path, const Index& index, const VerifyOptions& options)
      : path_(std::move(path)), files_(index.files), options_(options), sums_(index.files.size()) {
    for (const ShardRecord& file : files_) total_bytes_ += file.bytes;
  }

  Result<VerifyReport> Run() {
    for (size_t i = 0; i < files_.size(); ++i) CAIRN_RETURN_IF_ERROR(PrepareFile(i));
    std::vector<std::thread> threads;
    for (int i = 1; i < options_.threads; ++i) threads.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : threads) thread.join();
    if (!error_.ok()) return error_;
    std::sort(report_.faults.begin(), report_.faults.end(), [](const Fault& a, const Fault& b) {
      return std::tie(a.file, a.offset) < std::tie(b.file, b.offset);
    });
    return std::move(report_);
  }

 private:
  std::string PathOf(size_t file) const { return path_ + "/" + names::Shard(files_[file].number); }

  // Takes kDamage into the report and hands every other error on.
  Status Judge(const Status& status, const std::string& file) {
    if (status.code() != Code::kDamage) return status;
    report_.faults.push_back({file, 0, 0, status.message()});
    return OkStatus();
  }

  Status PrepareFile(size_t i) {
    Result<Sums> sums = ReadSums(path_, files_[i]);
    if (!sums.ok()) return Judge(sums.status(), names::Sums(files_[i].number));
    const Result<uint64_t> bytes = FileBytes(PathOf(i));
    if (!bytes.ok() && bytes.status().code() != Code::kNotFound) return bytes.status();
    if (!bytes.ok()) return Judge({Code::kDamage, "is missing"}, names::Shard(files_[i].number));
    if (*bytes > files_[i].bytes) {
      return Judge({Code::kDamage,
                    "has " + std::to_string(*bytes) + " bytes instead of " + std::to_string(files_[i].bytes)},
                   names::Shard(files_[i].number));
    }
    const uint64_t blocks = sums->blocks.size();
    sums_[i] = *std::move(sums);
    for (uint64_t b = 0; b < blocks; b += kBlocksPerTask)
      tasks_.push_back({i, b, std::min(blocks, b + kBlocksPerTask)});
    return OkStatus();
  }

  void Work() {
    std::vector<std::byte> buffer(kBlockBytes);
    for (;;) {
      const size_t next = next_task_.fetch_add(1, std::memory_order_relaxed);
      if (next >= tasks_.size() || failed_.load(std::memory_order_relaxed)) return;
      if (Status status = Check(tasks_[next], buffer); !status.ok()) {
        const std::lock_guard lock(mutex_);
        if (error_.ok()) error_ = status;
        failed_.store(true, std::memory_order_relaxed);
        return;
      }
    }
  }

  Status Check(const Task& task, std::vector<std::byte>& buffer) {
    const std::string path = PathOf(task.file);
    CAIRN_ASSIGN_OR_RETURN(const std::unique_ptr<Readable> file, Readable::Open(path));
    for (uint64_t b = task.first_block; b < task.last_block; ++b) {
      const uint64_t bytes = BlockBytes(files_[task.file].bytes, b);
      Status status = CheckBlock(*file, task.file, b, {buffer.data(), bytes});
      if (status.code() == Code::kDamage) {  // only what reproduces is damage
        DropCached(path);
        status = CheckBlock(*file, task.file, b, {buffer.data(), bytes});
      }
      const std::lock_guard lock(mutex_);
      if (status.code() == Code::kDamage) {
        report_.faults.push_back(
            {names::Shard(files_[task.file].number), b * kBlockBytes, bytes, status.message()});
      } else if (!status.ok()) {
        return status;
      }
      report_.bytes += bytes;
      if (options_.progress) options_.progress(report_.bytes, total_bytes_);
    }
    return OkStatus();
  }

  Status CheckBlock(const Readable& readable, size_t file, uint64_t block, std::span<std::byte> out) const {
    CAIRN_RETURN_IF_ERROR(readable.Read(block * kBlockBytes, out));
    if (Hash128Of(out) == sums_[file].blocks[block]) return OkStatus();
    return {Code::kDamage, "block " + std::to_string(block) + " does not match its checksum"};
  }

  const std::string path_;
  const std::vector<ShardRecord>& files_;
  const VerifyOptions& options_;
  uint64_t total_bytes_ = 0;
  std::vector<Sums> sums_;   // constant once the threads run
  std::vector<Task> tasks_;  // constant once the threads run
  std::atomic<size_t> next_task_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  VerifyReport report_;  // guarded by mutex_ while the threads run
  Status error_;         // guarded by mutex_ while the threads run
};

}  // namespace

Result<Sums> ReadSums(const std::string& checkpoint_path, const ShardRecord& record) {
  // Of a newer version's file, which may be longer, the end is needed to tell it from damage.
  const uint64_t max_bytes = 2 * EncodedSumsBytes(record.bytes) + (1 << 20);
  const std::string path = checkpoint_path + "/" + names::Sums(record.number);
  return Confirmed(path, [&]() -> Result<Sums> {
    const Result<std::string> bytes = ReadAll(path, max_bytes);
    if (!bytes.ok()) {
      return bytes.status().code() == Code::kNotFound ? Status(Code::kDamage, path + " is missing")
                                                      : bytes.status();
    }
    Result<Sums> sums = DecodeSums(*bytes);
    if (!sums.ok()) return sums.status().Annotate(path);
    if (sums->file_bytes != record.bytes || sums->Root() != record.sums_root) {
      return Status(Code::kDamage, path + " does not match its root in the index");
    }
    return sums;
  });
}

Result<VerifyReport> VerifyCheckpoint(const RunDirectory& dir, const std::string& name,
                                      const VerifyOptions& options) {
  const std::string path = dir.PathOf(name);
  VerifyReport early;
  const auto fault = [&](std::string_view file, const Status& status) {
    early.faults.push_back({std::string(file), 0, 0, status.message()});
  };
  const Result<Manifest> manifest = LoadManifest(path);
  if (!manifest.ok()) {
    if (manifest.status().code() != Code::kDamage) return manifest.status();
    fault(names::kManifest, manifest.status());
    return early;  // nothing else can be judged
  }
  const Result<Blobs> blobs = LoadBlobs(path, *manifest);
  if (!blobs.ok()) {
    if (blobs.status().code() != Code::kDamage) return blobs.status();
    fault(names::kBlobs, blobs.status());
  }
  const Result<Index> index = LoadIndex(path, *manifest);
  if (!index.ok()) {
    if (index.status().code() != Code::kDamage) return index.status();
    fault(names::kIndex, index.status());
    return early;  // the roots of the checksum files are not known
  }
  CAIRN_ASSIGN_OR_RETURN(VerifyReport report, Verifier(path, *index, options).Run());
  report.faults.insert(report.faults.begin(), early.faults.begin(), early.faults.end());
  return report;
}

}  // namespace cairn

#include "runtime/staging/drain.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "runtime/formats/names.h"
#include "runtime/formats/sums.h"
#include "runtime/io/fd.h"
#include "runtime/io/thread.h"
#include "runtime/staging/mapping.h"
#include "runtime/staging/new_files.h"

namespace cairn {
namespace {

// An image on its way into its file.
struct Shard {
  uint32_t number = 0;
  const std::byte* data = nullptr;
  std::string path;
  UniqueFd file;
  bool direct = false;
  Sums sums;
};

// Step 1.
Result<Shard> Begin(const Image& image, const std::byte* data, const DrainOptions& options, NewFiles& files) {
  Shard shard{
      .number = image.number, .data = data, .path = options.directory + "/" + names::Shard(image.number)};
  shard.sums.file_bytes = image.size_bytes;
  shard.sums.blocks.resize(BlockCount(image.size_bytes));
  CAIRN_ASSIGN_OR_RETURN(shard.file, files.Create(shard.path));
  CAIRN_RETURN_IF_ERROR(Preallocate(shard.file.get(), image.size_bytes, shard.path));
  shard.direct = options.direct && SetDirect(shard.file.get(), true);
  return shard;
}

// Step 2. One thread at a time; another one may go on where one has stopped.
class BlockWriter {
 public:
  BlockWriter(std::vector<Shard>& shards, const DrainOptions& options, DrainControl& control)
      : shards_(shards), options_(options), control_(control), pace_(options.bytes_per_second) {}

  // Writes what is left. `gently`: stops when the drain is hurried, at low priority and at the given pace until then.
  void Run(bool gently) {
    const auto engine = options_.make_engine();
    control_.SetWriter(engine->name());
    sent_.resize(static_cast<size_t>(engine->depth()));
    free_.clear();
    for (size_t place = 0; place < sent_.size(); ++place) free_.push_back(place);
    for (;;) {
      if (failure_.ok() && control_.cancelled()) failure_ = Status(Code::kCancelled, "cancelled");
      const bool more = !done() && !(gently && control_.hurried());
      if (!more && engine->in_flight() == 0) return;
      if (!more || free_.empty()) {
        Take(engine->Wait(), *engine);
        continue;
      }
      if (gently && !ItsTurn(*engine)) continue;
      SendNext(*engine);
      while (const auto finished = engine->Poll()) Take(*finished, *engine);
    }
  }

  bool done() const { return !failure_.ok() || shard_ == shards_.size(); }
  const Status& failure() const { return failure_; }

 private:
  struct Sent {
    size_t shard = 0;
    uint64_t block = 0;
    bool direct = false;
  };

  std::span<const std::byte> Content(size_t shard, uint64_t block) const {
    const Shard& s = shards_[shard];
    return {s.data + block * kBlockBytes, BlockBytes(s.sums.file_bytes, block)};
  }

  // Whether the next block may be written now. If not, waits for its turn, but first for what is in flight.
  bool ItsTurn(WriteEngine& engine) {
    const auto now = std::chrono::steady_clock::now();
    if (!turn_) turn_ = pace_.Take(Content(shard_, block_).size(), now);
    if (*turn_ > now && engine.in_flight() > 0) {
      Take(engine.Wait(), engine);
      return false;
    }
    control_.SleepUntil(*turn_);
    if (control_.cancelled() || control_.hurried()) return false;
    turn_.reset();
    return true;
  }

  void SendNext(WriteEngine& engine) {
    Shard& shard = shards_[shard_];
    shard.sums.blocks[block_] = Hash128Of(Content(shard_, block_));
    Send({shard_, block_}, engine);
    if (++block_ < shard.sums.blocks.size()) return;
    block_ = 0;
    ++shard_;
  }

  void Send(Sent sent, WriteEngine& engine) {
    const Shard& shard = shards_[sent.shard];
    auto content = Content(sent.shard, sent.block);
    sent.direct = shard.direct;
    // O_DIRECT wants whole pages; the mapping has them.
    if (sent.direct) content = {content.data(), WholePages(content.size())};
    const size_t place = free_.back();
    free_.pop_back();
    sent_[place] = sent;
    engine.Submit({shard.file.get(), content, sent.block * kBlockBytes, place});
  }

  void Take(const BlockDone& finished, WriteEngine& engine) {
    const Sent sent = sent_[finished.tag];
    free_.push_back(finished.tag);
    Shard& shard = shards_[sent.shard];
    if (finished.error == 0) {
      control_.AddWritten(Content(sent.shard, sent.block).size());
    } else if (finished.error == EINVAL && sent.direct && SetDirect(shard.file.get(), false)) {
      shard.direct = false;
      Send(sent, engine);
    } else if (failure_.ok()) {
      failure_ = Status::FromErrno(finished.error,
                                   "write " + shard.path + " at " + std::to_string(sent.block * kBlockBytes));
    }
  }

  std::vector<Shard>& shards_;
  const DrainOptions& options_;
  DrainControl& control_;
  Pace pace_;
  size_t shard_ = 0;                     // the next block to be sent,
  uint64_t block_ = 0;                   // in this shard,
  std::optional<Pace::TimePoint> turn_;  // and when its turn is
  std::vector<Sent> sent_;               // by place, which is the engine's tag
  std::vector<size_t> free_;
  Status failure_;
};

// Lowers the calling thread's priority, so that the program's own threads come first. Priorities are per thread on Linux; a refusal leaves
// the thread as it was.
void YieldToComputeThreads() {
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10));
  const sched_param none{};
  static_cast<void>(sched_setscheduler(0, SCHED_BATCH, &none));
}

Status WriteBlocks(std::vector<Shard>& shards, const DrainOptions& options, DrainControl& control) {
  BlockWriter writer(shards, options, control);
  if (!control.hurried()) {
    try {
      StartThread("cairn-drain", [&] {
        YieldToComputeThreads();
        writer.Run(/*gently=*/true);
      }).join();
    } catch (const std::system_error&) {
      // No thread is to be had: this one does it all.
    }
  }
  if (!writer.done()) writer.Run(/*gently=*/false);
  return writer.failure();
}

// Step 3.
Result<ShardRecord> Finish(Shard& shard, const DrainOptions& options, NewFiles& files) {
  // The last block was written in whole pages if it went past the page cache.
  if (options.direct && ftruncate(shard.file.get(), static_cast<off_t>(shard.sums.file_bytes)) != 0)
    return Status::FromErrno(errno, "cut " + shard.path);
  CAIRN_RETURN_IF_ERROR(SyncFile(shard.file.get(), shard.path));
  CAIRN_RETURN_IF_ERROR(std::move(shard.file).Close(shard.path));
  CAIRN_RETURN_IF_ERROR(WriteSums(shard.sums, options.directory + "/" + names::Sums(shard.number), files));
  return ShardRecord{shard.number, shard.sums.file_bytes, shard.sums.Root()};
}

}  // namespace

void DrainControl::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

void DrainControl::Hurry() {
  const std::lock_guard lock(mutex_);
  hurried_ = true;
  changed_.notify_all();
}

void DrainControl::SleepUntil(Pace::TimePoint when) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, when, [this] { return cancelled_ || hurried_; });
}

Result<std::vector<ShardRecord>> Drain(MemorySlot& slot, const ImagePlan& plan, const DrainOptions& options,
                                       DrainControl& control) {
  NewFiles files(options.mode);
  std::vector<ShardRecord> records;
  Hasher128 content;
  const auto drain_all = [&]() -> Status {
    std::vector<Shard> shards;
    for (size_t i = 0; i < plan.images.size(); ++i) {
      CAIRN_ASSIGN_OR_RETURN(Shard shard, Begin(plan.images[i], slot.image(i), options, files));
      shards.push_back(std::move(shard));
    }
    CAIRN_RETURN_IF_ERROR(WriteBlocks(shards, options, control));
    for (Shard& shard : shards) {
      CAIRN_ASSIGN_OR_RETURN(const ShardRecord record, Finish(shard, options, files));
      records.push_back(record);
      content.Update(std::as_bytes(std::span(record.sums_root.bytes)));
    }
    return OkStatus();
  };
  if (Status status = drain_all(); !status.ok()) {
    return status.Annotate("after " + std::to_string(control.bytes_written()) + " of " +
                           std::to_string(plan.bytes) + " bytes of this rank");
  }
  files.Keep();
  slot.sidecar().MarkHashed(content.Finish());
  return records;
}

}  // namespace cairn

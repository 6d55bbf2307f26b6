#include "runtime/staging/staging.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/io/stores.h"
#include "runtime/staging/ipc_removal.h"
#include "runtime/staging/memory_slot.h"

namespace cairn {
namespace {

using Slots = std::vector<std::unique_ptr<Slot>>;

constexpr const char kSharedMemory[] = "/dev/shm";  // whatever logind empties
constexpr uint64_t kMaxMemorySlots = 2;
constexpr uint64_t kWriteThroughPart = 4;  // it takes one in so many of a rank's part

// Not asked from the system: that may wait for a directory service.
std::string UserName() {
  for (const char* variable : {"SLURM_JOB_USER", "USER"}) {
    if (const char* name = std::getenv(variable)) return name;
  }
  return "";
}

// Whether each copy is one stretch of its image, as SnapshotPlan::CopyRange wants it.
bool IsInStretches(const ImagePlan& plan) {
  const auto is_dense = [](const CopyTask& task) {
    int64_t bytes = task.element_bytes;
    for (int d = task.stride.size() - 1; d >= 0; --d) {
      if (task.region.extent[d] > 1 && task.stride[d] != bytes) return false;
      bytes *= task.region.extent[d];
    }
    return true;
  };
  return std::all_of(plan.images.begin(), plan.images.end(), [&](const Image& image) {
    return std::all_of(image.copies.begin(), image.copies.end(), is_dense);
  });
}

// The attempts to get slots for one plan.
class SlotMaker {
 public:
  SlotMaker(const StagingOptions& options, const ImagePlan& plan)
      : options_(options),
        plan_(plan),
        need_(MemorySlot::BytesFor(plan)),
        ranks_(static_cast<uint64_t>(std::max(options.ranks_on_node, 1))),
        sharers_(static_cast<uint64_t>(options.ranks_of_writer)) {}

  // One or two slots; else why there is none.
  Result<Slots> InMemory(const LocalTier& tier) const {
    // How many is decided once, from every rank's equal share, since the other ranks take theirs meanwhile.
    const MemoryRoom at_first = Left(tier);
    // Who fills another rank's images takes next to nothing, and has as many slots as that one.
    const bool fills_another = !plan_.shared.empty();
    const uint64_t count = fills_another
                               ? kMaxMemorySlots
                               : std::min(at_first.bytes / ranks_ * sharers_ / need_, kMaxMemorySlots);
    if (count == 0) return Refuse(at_first);
    const auto may_take = [&](uint64_t bytes) {
      const MemoryRoom now = Left(tier);
      return fills_another || bytes <= now.bytes ? OkStatus() : Refuse(now);
    };
    Slots slots;
    while (slots.size() < count) {
      auto slot =
          MemorySlot::Make(tier, plan_, static_cast<int>(slots.size()), may_take, options_.shared_folder);
      if (!slot.ok() && (slots.empty() || (fills_another && slot.status().code() != Code::kNotFound)))
        return slot.status();
      if (!slot.ok()) break;
      slots.push_back(*std::move(slot));
    }
    return slots;
  }

  // Whether a limit, whatever memory there is, allows no more slots than these.
  bool LimitAllowsOnly(uint64_t slots) const {
    return options_.limit_bytes > 0 && plan_.shared.empty() &&
           options_.limit_bytes / ranks_ * sharers_ / need_ <= slots;
  }

  // One slot, and what a save of it costs, for people.
  Result<Slots> WritingThrough(std::string* cost) const {
    if (options_.write_through.run_directory.empty())
      return Status(Code::kUnavailable, "there is nothing to write through to");
    if (IsObjectPath(options_.write_through.run_directory))
      return Status(Code::kUnavailable, options_.write_through.run_directory +
                                            " takes images from memory only, other than a directory");
    if (!IsInStretches(plan_))
      return Status(Code::kUnavailable,
                    "its files cannot be written piece after piece without memory for them");
    const uint64_t part = options_.room().bytes / ranks_ / kWriteThroughPart;
    const int buffers = static_cast<int>(
        std::min<uint64_t>(part / WriteThroughSlot::BytesFor(1), WriteThroughSlot::kMaxBuffers));
    if (buffers == 0)
      return Status(Code::kOutOfMemory, "nor is there room for a buffer of " +
                                            FormatBytes(WriteThroughSlot::BytesFor(1)) + " a rank");
    const auto may_take = [&](uint64_t bytes) {
      const MemoryRoom now = options_.room();
      return bytes <= now.bytes ? OkStatus() : Refuse(now);
    };
    CAIRN_ASSIGN_OR_RETURN(auto slot, WriteThroughSlot::Make(options_.write_through, buffers, may_take));
    const Result<double> rate = slot->MeasureRate();
    *cost = "as long as that takes";
    if (rate.ok()) {
      const auto limit = static_cast<double>(options_.write_through.bytes_per_second);
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, "%.1f s", static_cast<double>(plan_.bytes) / *rate);
      *cost = std::string("about ") + seconds + " at the " + FormatBytes(static_cast<uint64_t>(*rate)) +
              (limit > 0 && *rate >= limit ? "/s that the limit leaves each rank (CAIRN_DRAIN_LIMIT)"
                                           : "/s that each rank was just given");
    }
    Slots slots;
    slots.push_back(std::move(slot));
    return slots;
  }

 private:
  MemoryRoom Left(const LocalTier& tier) const {
    MemoryRoom now = options_.room();
    if (const uint64_t free = tier.FreeBytes(); free < now.bytes)
      now = {free, "the local tier " + tier.path()};
    now.bytes = WithoutHeadRoom(now.bytes);
    if (const uint64_t limit = options_.limit_bytes; limit > 0 && limit < now.bytes)
      now = {limit, "CAIRN_LOCAL_LIMIT"};
    return now;
  }

  Status Refuse(const MemoryRoom& now) const {
    const std::string whom = sharers_ > 1
                                 ? std::to_string(sharers_) + " of " + std::to_string(ranks_) + " ranks"
                             : ranks_ == 1 ? "the one rank"
                                           : "each of " + std::to_string(ranks_) + " ranks";
    return {Code::kOutOfMemory, "no room to stage " + FormatBytes(need_) + " for " + whom +
                                    " on this node: " + FormatBytes(now.bytes) +
                                    " are left in all, bounded by " + now.bound_by};
  }

  const StagingOptions& options_;
  const ImagePlan& plan_;
  const uint64_t need_;
  const uint64_t ranks_;
  const uint64_t sharers_;
};

}  // namespace

Result<Staging> Staging::Make(const StagingOptions& options, const ImagePlan& plan) {
  CAIRN_ASSIGN_OR_RETURN(LocalTier tier, LocalTier::Open(options.tier));
  const SlotMaker maker(options, plan);
  std::string warning;
  const bool shared = options.ranks_of_writer > 1;
  if (shared && tier.anonymous())
    return Status(Code::kUnavailable, "images live in anonymous memory, which ranks do not share");
  Result<Slots> slots = maker.InMemory(tier);
  if (shared) CAIRN_RETURN_IF_ERROR(slots.status());
  if (!slots.ok() && !tier.anonymous()) {
    CAIRN_ASSIGN_OR_RETURN(LocalTier anonymous, LocalTier::Open({.setting = "none"}));
    Result<Slots> others = maker.InMemory(anonymous);
    if (others.ok()) {
      warning =
          slots.status().message() +
          ". Images are staged in anonymous memory instead: a save that is not durable yet is lost with its "
          "process. Enlarge the tier (--shm-size of a container), or name another (--checkpoint-local)";
      tier = std::move(anonymous);
      slots = std::move(others);
    }
  }
  const std::string remedy =
      maker.LimitAllowsOnly(0)
          ? "Raise CAIRN_LOCAL_LIMIT as far as this site lets you, or use fewer ranks per node"
          : "Ask for more memory (--mem) or use fewer ranks per node";
  if (!slots.ok()) {
    const Status why = slots.status();
    std::string cost;
    slots = maker.WritingThrough(&cost);
    if (!slots.ok()) {
      return Status(why.code(), why.message() + "; " + slots.status().message() + ". " + remedy +
                                    "; until then nothing is saved");
    }
    warning = why.message() + ". Each save is written to " + options.write_through.run_directory +
              " while the program stands still: " + cost +
              ". No copy stays in the memory of this node or of a partner: a save that is not durable yet is "
              "lost with its process. " +
              remedy + " to have it go on meanwhile";
    CAIRN_ASSIGN_OR_RETURN(tier, LocalTier::Open({.setting = "none"}));
  }
  std::vector<std::string> notes = tier.notes();
  if (warning.empty() && maker.LimitAllowsOnly(1))
    notes.push_back(
        "CAIRN_LOCAL_LIMIT has room for one snapshot of each rank: a save waits until the one before is "
        "durable");
  if (tier.path().starts_with(kSharedMemory) &&
      FindIpcRemoval("", geteuid(), UserName()) == IpcRemoval::kOn) {
    notes.push_back(
        std::string("logind empties ") + kSharedMemory +
        " when you log out of a node (RemoveIPC): after that, a save that is not durable yet is lost "
        "with its process; `loginctl enable-linger` prevents it");
  }
  return Staging{std::move(tier), SlotPool(*std::move(slots)), std::move(notes), std::move(warning)};
}

}  // namespace cairn

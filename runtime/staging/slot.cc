#include "runtime/staging/slot.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/formats/names.h"

namespace cairn {

Result<std::unique_ptr<Slot>> Slot::Make(const LocalTier& tier, const ImagePlan& plan, int number,
                                         const MayTakeFunction& may_take) {
  std::unique_ptr<Slot> slot(new Slot);
  slot->number_ = number;
  std::vector<std::string> made;
  const auto map = [&](const std::string& what, uint64_t bytes) -> Result<Mapping> {
    const std::string name = "slot" + std::to_string(number) + "." + what;
    CAIRN_ASSIGN_OR_RETURN(Mapping mapping, tier.Map(name, bytes, may_take));
    made.push_back(name);
    return mapping;
  };
  const auto map_all = [&]() -> Status {
    // The sidecar first: whoever finds an image finds what it is.
    CAIRN_ASSIGN_OR_RETURN(slot->sidecar_, map("sidecar", kSidecarBytes));
    for (const Image& image : plan.images) {
      CAIRN_ASSIGN_OR_RETURN(Mapping mapping, map(names::Shard(image.number), image.size_bytes));
      std::memcpy(mapping.data(), image.header.data(), image.header.size());
      slot->images_.push_back(std::move(mapping));
    }
    return OkStatus();
  };
  if (Status status = map_all(); !status.ok()) {
    for (const std::string& name : made) tier.Remove(name);
    return status;
  }
  return slot;
}

Result<std::unique_ptr<Slot>> Slot::Adopt(int folder, const std::string& name, const ImagePlan& plan) {
  const auto map = [&](const std::string& what, uint64_t bytes) -> Result<Mapping> {
    const std::string file_name = name + "." + what;
    const UniqueFd file(openat(folder, file_name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (!file.valid()) return Status::FromErrno(errno, "open " + file_name);
    struct stat st;
    if (fstat(file.get(), &st) != 0) return Status::FromErrno(errno, "stat " + file_name);
    if (static_cast<uint64_t>(st.st_size) != bytes) {
      return Status(Code::kDamage, file_name + " has " + std::to_string(st.st_size) + " bytes instead of " +
                                       std::to_string(bytes));
    }
    return Mapping::OfFile(file.get(), bytes, file_name);
  };
  std::unique_ptr<Slot> slot(new Slot);
  CAIRN_ASSIGN_OR_RETURN(slot->sidecar_, map("sidecar", kSidecarBytes));
  for (const Image& image : plan.images) {
    CAIRN_ASSIGN_OR_RETURN(Mapping mapping, map(names::Shard(image.number), image.size_bytes));
    if (std::memcmp(mapping.data(), image.header.data(), image.header.size()) != 0)
      return Status(Code::kDamage, name + "." + names::Shard(image.number) + " begins with another header");
    slot->images_.push_back(std::move(mapping));
  }
  return slot;
}

uint64_t Slot::BytesFor(const ImagePlan& plan) {
  uint64_t bytes = WholePages(kSidecarBytes);
  for (const Image& image : plan.images) bytes += WholePages(image.size_bytes);
  return bytes;
}

Result<SlotPool> SlotPool::Make(const LocalTier& tier, const ImagePlan& plan, int ranks_on_node,
                                const std::function<MemoryRoom()>& room) {
  const uint64_t need = Slot::BytesFor(plan);
  const auto ranks = static_cast<uint64_t>(std::max(ranks_on_node, 1));
  const auto left = [&] {
    MemoryRoom now = room();
    if (const uint64_t tier_free = tier.FreeBytes(); tier_free < now.bytes)
      now = {tier_free, "the local tier " + tier.path()};
    now.bytes = WithoutHeadRoom(now.bytes);
    return now;
  };
  const auto refuse = [&](const MemoryRoom& now) {
    return Status(
        Code::kOutOfMemory,
        "no room to stage " + FormatBytes(need) + " for each of " + std::to_string(ranks) +
            " ranks on this node: " + FormatBytes(now.bytes) + " are left in all, bounded by " +
            now.bound_by +
            ". Ask for more memory (--mem) or use fewer ranks per node; until then nothing is saved");
  };
  // How many is decided once, from every rank's equal share, since the other ranks take theirs meanwhile.
  const MemoryRoom at_first = left();
  const uint64_t share = at_first.bytes / ranks;
  const uint64_t count = std::min<uint64_t>(share / need, 2);
  if (count == 0) return refuse(at_first);
  const auto may_take = [&](uint64_t bytes) {
    const MemoryRoom now = left();
    return bytes <= now.bytes ? OkStatus() : refuse(now);
  };
  std::vector<std::unique_ptr<Slot>> slots;
  while (slots.size() < count) {
    Result<std::unique_ptr<Slot>> slot = Slot::Make(tier, plan, static_cast<int>(slots.size()), may_take);
    if (!slot.ok() && slots.empty()) return slot.status();
    if (!slot.ok()) break;
    slots.push_back(*std::move(slot));
  }
  return SlotPool(std::move(slots));
}

SlotPool::SlotPool(std::vector<std::unique_ptr<Slot>> slots) {
  for (auto& slot : slots) entries_.push_back({.slot = std::move(slot)});
}

Slot* SlotPool::Acquire(const SnapshotId& id) {
  uint64_t newest = 0;
  for (const Entry& entry : entries_) {
    if (entry.use == Use::kComplete) newest = std::max(newest, entry.age);
  }
  Entry* best = nullptr;
  for (Entry& entry : entries_) {
    if (entry.use == Use::kFilling || entry.draining) continue;
    if (entry.use == Use::kComplete && entry.age == newest && (entries_.size() > 1 || !entry.drained))
      continue;
    if (best == nullptr || entry.age < best->age) best = &entry;
  }
  if (best == nullptr) return nullptr;
  best->use = Use::kFilling;
  best->drained = false;
  best->slot->sidecar().Begin(id);
  return best->slot.get();
}

void SlotPool::Release(Slot* slot) {
  Entry& entry = Of(slot);
  entry.use = Use::kFree;
  entry.age = 0;
  slot->sidecar().Void();
}

void SlotPool::Complete(Slot* slot) {
  Entry& entry = Of(slot);
  entry.use = Use::kComplete;
  entry.age = ++completions_;
}

void SlotPool::BeginDrain(Slot* slot) { Of(slot).draining = true; }

void SlotPool::EndDrain(Slot* slot) {
  Entry& entry = Of(slot);
  entry.draining = false;
  entry.drained = true;
}

SlotPool::Entry& SlotPool::Of(const Slot* slot) {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.slot.get() == slot; });
  assert(found != entries_.end());
  return *found;
}

}  // namespace cairn

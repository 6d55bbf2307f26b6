#include "runtime/staging/slot.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "runtime/staging/snapshot.h"

namespace cairn {

Status Slot::Finish(const SnapshotPlan& snapshot) {
  CAIRN_RETURN_IF_ERROR(snapshot.Finish());
  sidecar().MarkStaged();
  return OkStatus();
}

SlotPool::SlotPool(std::vector<std::unique_ptr<Slot>> slots) {
  for (auto& slot : slots) entries_.push_back({.slot = std::move(slot)});
}

Slot* SlotPool::Acquire(const SnapshotId& id) {
  uint64_t newest = 0;
  int usable = 0;
  for (const Entry& entry : entries_) {
    if (entry.use == Use::kComplete) newest = std::max(newest, entry.age);
    if (!entry.draining) ++usable;
  }
  Entry* best = nullptr;
  for (Entry& entry : entries_) {
    if (entry.use == Use::kFilling || entry.draining) continue;
    if (entry.use == Use::kComplete && entry.age == newest && (usable > 1 || !entry.drained)) continue;
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
  if (slot->sidecar().state() == SlotState::kEmpty) slot->sidecar().MarkStaged();  // memory_slot.h, 4
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

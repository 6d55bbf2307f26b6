// Sidecar: 128 bytes beside each slot that say which snapshot it holds and how far that got. Byte-level page:
// docs/design/staging.md.
//
// It is written by plain stores into a mapping, in an order in which a process may die after any store:
//   1. state = FILLING                      what the slot held before is void
//   2. the other fields and their check     which snapshot is coming
//   3. (the data)
//   4. state = STAGED                       the images are whole
//   5. content hash and its check; state = HASHED
// A reader accepts a slot from STAGED on, if the check of the fields holds.
#ifndef CAIRN_RUNTIME_STAGING_SIDECAR_H_
#define CAIRN_RUNTIME_STAGING_SIDECAR_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/io/hash.h"

namespace cairn {

enum class SlotState : uint32_t { kEmpty = 0, kFilling = 1, kStaged = 2, kHashed = 3 };
std::string_view SlotStateName(SlotState state);  // "empty", "filling", "staged", "hashed"

// Which snapshot. Equal on all members but for `rank`.
struct SnapshotId {
  uint64_t epoch = 0;
  uint64_t save_id = 0;
  uint64_t boundary = 0;  // T
  Hash128 layout;
  uint32_t rank = 0;
  uint32_t world_size = 0;

  friend bool operator==(const SnapshotId&, const SnapshotId&) = default;
};

inline constexpr size_t kSidecarBytes = 128;

// What a sidecar says. `content` is set from kHashed on: the hash of the images' roots.
struct SidecarContent {
  SnapshotId id;
  SlotState state = SlotState::kEmpty;
  Hash128 content;
};

// kDamage when it is no sidecar, of another version, or a check does not hold.
Result<SidecarContent> DecodeSidecar(const std::byte* bytes, size_t size);

// The writer's view of a sidecar in mapped memory, which it does not own. No call allocates, locks or calls
// the system.
class Sidecar {
 public:
  // `bytes`: kSidecarBytes writable bytes, zero when new.
  explicit Sidecar(std::byte* bytes) : bytes_(bytes) {}

  void Begin(const SnapshotId& id);         // steps 1 and 2
  void MarkStaged();                        // step 4
  void MarkHashed(const Hash128& content);  // step 5
  void Void();                              // the slot holds nothing any more
  void VoidUnlessOf(const Sidecar& other);  // the same, if it holds another save than the other sidecar's
  SlotState state() const;

 private:
  std::byte* bytes_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_SIDECAR_H_

#include "runtime/staging/sidecar.h"

#define XXH_INLINE_ALL  // no shared library of it in the host program
#include <xxhash.h>

#include <atomic>
#include <cstring>
#include <string>

namespace cairn {
namespace {

// Offsets of the fields; numbers are little-endian. docs/design/staging.md has the table.
constexpr char kMagic[8] = {'C', 'A', 'I', 'R', 'N', 'S', 'L', 'T'};
constexpr uint32_t kVersion = 1;
constexpr size_t kVersionAt = 8;
constexpr size_t kLengthAt = 12;
constexpr size_t kEpochAt = 16;
constexpr size_t kSaveIdAt = 24;
constexpr size_t kBoundaryAt = 32;
constexpr size_t kLayoutAt = 40;
constexpr size_t kRankAt = 56;
constexpr size_t kWorldSizeAt = 60;
constexpr size_t kCheckAt = 64;  // XXH3-64 of bytes 0 … 63
constexpr size_t kContentAt = 72;
constexpr size_t kContentCheckAt = 88;  // XXH3-64 of bytes 0 … 87
constexpr size_t kStateAt = 96;         // bytes 100 … 127 are zero

template <typename T>
T Load(const std::byte* bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes + at, sizeof(value));
  return value;
}

template <typename T>
void Store(std::byte* bytes, size_t at, T value) {
  std::memcpy(bytes + at, &value, sizeof(value));
}

// A store that the compiler moves no earlier or later store across. That is enough: another process looks at the mapping only once this one
// is dead, and a processor stops a process between two instructions, with the effects of all earlier ones and of no later one.
void StoreState(std::byte* bytes, SlotState state) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(bytes + kStateAt))
      .store(static_cast<uint32_t>(state), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace

std::string_view SlotStateName(SlotState state) {
  static constexpr std::string_view kNames[] = {"empty", "filling", "staged", "hashed"};
  return kNames[static_cast<size_t>(state)];
}

Result<SidecarContent> DecodeSidecar(const std::byte* bytes, size_t size) {
  const auto damage = [](const std::string& what) { return Status(Code::kDamage, "sidecar: " + what); };
  if (size != kSidecarBytes) return damage("has " + std::to_string(size) + " bytes, not 128");
  SidecarContent content;
  const auto state = Load<uint32_t>(bytes, kStateAt);
  if (state > static_cast<uint32_t>(SlotState::kHashed))
    return damage("unknown state " + std::to_string(state));
  content.state = static_cast<SlotState>(state);
  // Before STAGED the other fields may be half written.
  if (content.state == SlotState::kEmpty || content.state == SlotState::kFilling) return content;
  if (std::memcmp(bytes, kMagic, sizeof(kMagic)) != 0) return damage("no magic at offset 0");
  if (const auto version = Load<uint32_t>(bytes, kVersionAt); version != kVersion) {
    return damage("version " + std::to_string(version) + " is not known");
  }
  if (Load<uint32_t>(bytes, kLengthAt) != kSidecarBytes) return damage("wrong length at offset 12");
  if (Load<uint64_t>(bytes, kCheckAt) != XXH3_64bits(bytes, kCheckAt))
    return damage("checksum at offset 64 does not fit");
  content.id.epoch = Load<uint64_t>(bytes, kEpochAt);
  content.id.save_id = Load<uint64_t>(bytes, kSaveIdAt);
  content.id.boundary = Load<uint64_t>(bytes, kBoundaryAt);
  std::memcpy(content.id.layout.bytes.data(), bytes + kLayoutAt, 16);
  content.id.rank = Load<uint32_t>(bytes, kRankAt);
  content.id.world_size = Load<uint32_t>(bytes, kWorldSizeAt);
  if (content.state == SlotState::kHashed) {
    if (Load<uint64_t>(bytes, kContentCheckAt) != XXH3_64bits(bytes, kContentCheckAt)) {
      return damage("checksum at offset 88 does not fit");
    }
    std::memcpy(content.content.bytes.data(), bytes + kContentAt, 16);
  }
  return content;
}

void Sidecar::Begin(const SnapshotId& id) {
  StoreState(bytes_, SlotState::kFilling);
  std::memcpy(bytes_, kMagic, sizeof(kMagic));
  Store(bytes_, kVersionAt, kVersion);
  Store(bytes_, kLengthAt, static_cast<uint32_t>(kSidecarBytes));
  Store(bytes_, kEpochAt, id.epoch);
  Store(bytes_, kSaveIdAt, id.save_id);
  Store(bytes_, kBoundaryAt, id.boundary);
  std::memcpy(bytes_ + kLayoutAt, id.layout.bytes.data(), 16);
  Store(bytes_, kRankAt, id.rank);
  Store(bytes_, kWorldSizeAt, id.world_size);
  Store(bytes_, kCheckAt, static_cast<uint64_t>(XXH3_64bits(bytes_, kCheckAt)));
}

void Sidecar::MarkStaged() { StoreState(bytes_, SlotState::kStaged); }

void Sidecar::MarkHashed(const Hash128& content) {
  std::memcpy(bytes_ + kContentAt, content.bytes.data(), 16);
  Store(bytes_, kContentCheckAt, static_cast<uint64_t>(XXH3_64bits(bytes_, kContentCheckAt)));
  StoreState(bytes_, SlotState::kHashed);
}

void Sidecar::Void() { StoreState(bytes_, SlotState::kEmpty); }

void Sidecar::VoidUnlessOf(const Sidecar& other) {
  const SlotState seen = state();
  const bool holds_one = seen == SlotState::kStaged || seen == SlotState::kHashed;
  if (!holds_one || std::memcmp(bytes_, other.bytes_, kRankAt) == 0) return;
  auto expected = static_cast<uint32_t>(seen);  // else its own rank has begun meanwhile, which voids it too
  std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(bytes_ + kStateAt))
      .compare_exchange_strong(expected, static_cast<uint32_t>(SlotState::kEmpty));
}

SlotState Sidecar::state() const {
  return static_cast<SlotState>(
      std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(bytes_ + kStateAt)).load());
}

}  // namespace cairn

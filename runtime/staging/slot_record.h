// SlotRecord: beside each slot, what its images and sidecar lack to make a checkpoint of them: the run, the program's own step number, and
// the blobs. And the layout, once for all slots of a life. Byte-level page: docs/design/staging.md.
//
// The record's head is written when the slot is made. The stamp and the blobs are stored at the boundary, after the sidecar says FILLING
// and before it says STAGED, like the images: so they are whole exactly when these are. Only the head has a checksum.
#ifndef CAIRN_RUNTIME_STAGING_SLOT_RECORD_H_
#define CAIRN_RUNTIME_STAGING_SLOT_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

// What the program's thread says of the snapshot.
struct SnapshotStamp {
  int64_t label = 0;   // the program's own step number
  int64_t count = 0;   // of cairn_step calls in this rank
  bool final = false;  // taken in cairn_finalize: label and count may be older than the other ranks'

  friend bool operator==(const SnapshotStamp&, const SnapshotStamp&) = default;
};

struct RecordShape {
  struct Blob {
    std::string name;
    uint64_t capacity = 0;
  };
  std::string run_id;
  std::vector<Blob> blobs;
};

// The writer's view of a record in mapped memory, which it does not own.
class SlotRecord {
 public:
  static uint64_t BytesFor(const RecordShape& shape);

  // Writes the head into `bytes`, BytesFor(shape) of them.
  SlotRecord(std::byte* bytes, const RecordShape& shape);

  // At the boundary: neither allocates, locks nor calls the system.
  void Stamp(const SnapshotStamp& stamp) const;
  void StoreBlob(size_t i, const std::byte* data, uint64_t bytes) const;  // as many as its capacity at most

  std::string_view blob(size_t i) const;

 private:
  std::byte* stamp_;
  std::vector<std::byte*> blobs_;
};

struct RecordContent {
  std::string run_id;
  SnapshotStamp stamp;
  std::map<std::string, std::string> blobs;  // by name
};

// kDamage with what is wrong. Allocates no more than bytes.size() justifies.
Result<RecordContent> DecodeSlotRecord(std::string_view bytes);

// The file that holds the layout: `state` is opaque here (EncodeState of the session).
inline constexpr char kLayoutFile[] = "layout";
std::string EncodeLayoutFile(std::string_view state);
Result<std::string> DecodeLayoutFile(std::string_view bytes);
// Beside it: where the images of the folder's life would have become durable (session/durable_place.h).
inline constexpr char kDestinationFile[] = "destination";

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_SLOT_RECORD_H_

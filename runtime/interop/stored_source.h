// StoredSource: arrays whose boxes lie somewhere in plain files, without checksums of Cairn's.
#ifndef CAIRN_RUNTIME_INTEROP_STORED_SOURCE_H_
#define CAIRN_RUNTIME_INTEROP_STORED_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/box_index.h"
#include "planner/saved_layout.h"
#include "runtime/interop/array_source.h"
#include "runtime/io/fd.h"

namespace cairn {

// A box whose first element lies at `offset` of file `file`; one step in dimension d moves stride_bytes[d] >= 0 bytes.
struct StoredBox {
  uint32_t array = 0;
  uint32_t file = 0;
  uint64_t offset = 0;
  Box box;
  Dims stride_bytes;
};

class StoredSource : public ArraySource {
 public:
  // kDamage, naming array and box, for a box outside its array, a hole, or boxes that overlap (and their files); `where` begins the message. The caller has checked that each box
  // lies inside its file.
  static Result<std::unique_ptr<StoredSource>> Make(const std::string& where, std::vector<ArraySpec> arrays,
                                                    std::vector<std::string> files,
                                                    std::vector<StoredBox> boxes,
                                                    std::vector<std::string> others = {});

  const std::vector<ArraySpec>& arrays() const override { return arrays_; }
  std::vector<std::string> others() const override { return others_; }
  Status Read(uint32_t array, const Box& box, std::span<std::byte> out) override;

  // For a load plan: where all boxes lie, and the paths that SavedBox::file counts. kMismatch, naming the array, for one that is not stored row by
  // row (channels_last, transposed).
  Result<SavedLayout> Layout() const;
  const std::vector<std::string>& files() const { return files_; }

 private:
  StoredSource() = default;
  Status Overlap(const std::string& where, size_t array) const;  // kDamage, with two boxes' files
  Status ReadPart(const StoredBox& from, const Box& region, const Box& wanted, int64_t element_bytes,
                  std::byte* out);
  Result<int> Open(uint32_t file);

  std::vector<ArraySpec> arrays_;
  std::vector<std::string> files_;
  std::vector<std::vector<StoredBox>> boxes_;  // by array
  std::vector<BoxIndex> index_;                // by array; its boxes are those of boxes_
  std::vector<std::string> others_;
  std::vector<std::byte> buffer_;
  UniqueFd fd_;  // of the file that was read last
  uint32_t open_file_ = UINT32_MAX;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_STORED_SOURCE_H_

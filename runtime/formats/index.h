// Index: where every box of every array of one checkpoint lies. docs/design/formats.md, section 4.
#ifndef CAIRN_RUNTIME_FORMATS_INDEX_H_
#define CAIRN_RUNTIME_FORMATS_INDEX_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "planner/load_plan.h"
#include "runtime/formats/record.h"

namespace cairn {

struct Index {
  uint32_t world_size = 0;  // of the writers (planner/writers.h): at most that of the ranks
  std::vector<ShardRecord> files;
  SavedLayout saved;  // SavedBox::file is a position in `files`
};

// What SavedLayout::files is of an index with rules.
std::vector<SavedFile> FilesOf(const std::vector<ShardRecord>& records);

// What the decoder checks and every reader relies on: names unique and not empty; shapes sane; boxes not
// empty, inside their shapes and inside their files; grouped by array; rules possible, of their arrays' shapes, with
// files in the order of their numbers; file numbers unique. kDamage with the first fault. Whether files are as long as
// the rules say is found when a writer's files are first looked at (SavedIndex).
Status ValidateIndex(const Index& index);

// kInvalid when `index` is not valid or does not fit (2 GiB).
Result<std::string> EncodeIndex(const Index& index);

// kMismatch when a newer Cairn wrote it. Else kDamage with what is wrong. Allocates no more than a small multiple of bytes.size().
Result<Index> DecodeIndex(std::string_view bytes);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_INDEX_H_

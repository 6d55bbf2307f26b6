// ImagePlan: the exact bytes of every file of a save, but for the data itself. Pure: the same layout and save
// plan give the same images on every rank, so the leader knows where each box of each rank lies without
// asking (`DescribeSave`).
//
// An image is a shard file exactly as it will lie on disk: a safetensors header, then the boxes, dense and
// row-major (formats/shard.h). Where ranks write files together (planner/writers.h), the first of them makes the
// images and writes the files; all copy into the images what they hold.
#ifndef CAIRN_RUNTIME_STAGING_IMAGE_PLAN_H_
#define CAIRN_RUNTIME_STAGING_IMAGE_PLAN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planner/layout.h"
#include "planner/save_plan.h"
#include "planner/writers.h"
#include "runtime/formats/index.h"
#include "runtime/formats/record.h"
#include "runtime/io/hash.h"

namespace cairn {

// One box of a rank's memory and its place in an image.
struct CopyTask {
  uint32_t piece = 0;  // position among this rank's pieces in Layout order: see PiecesOf
  Box region;          // relative to the piece's first element
  int64_t element_bytes = 0;
  uint64_t offset = 0;  // of the first byte, from the start of the image
  Dims stride;          // bytes in the image, by dimension
};

struct Image {
  uint32_t number = 0;           // the number in the file's name (names::Shard)
  std::string header;            // what lies before the data
  uint64_t size_bytes = 0;       // of the whole file
  std::vector<CopyTask> copies;  // of this rank, by increasing offset
};

struct ImagePlan {
  std::vector<Image> images;  // this rank's files, by number
  std::vector<Image> shared;  // files of the first rank of its writer, by number; then it has none of its own
  uint64_t bytes = 0;         // of `images`
};

// The pieces of one rank, in Layout order (by array, then by ordinal). Their positions
// here are the numbers of the pieces wherever staging speaks of one: in CopyTask, and in the table of
// pointers of a snapshot.
std::vector<Piece> PiecesOf(const Layout& layout, uint32_t rank);

// `plan` is for writers.layout(). kInternal when it is not.
Result<ImagePlan> PlanImages(const Writers& writers, const SavePlan& plan, uint32_t rank);

// The same where each rank is a writer.
Result<ImagePlan> PlanImages(const Layout& layout, const SavePlan& plan, uint32_t rank);

// The index of the save but for what the records bring: files have the size of their data alone, offsets count from the
// first byte of data. The layout is that of the writers. Looks at what each of them writes, once in a life.
Result<Index> DescribeSave(const Layout& layout, const SavePlan& plan);

// Completes such an index with the records of all members, in any order. kInternal, naming the file, when one
// is missing, unknown, given twice or has not its data after a header: then a member saved something else.
Status FillRecords(Index& index, std::span<const ShardRecord> records);

// Names a layout and who writes it (Writers::Make): equal for equal ones, on every rank and in every life.
Hash128 LayoutHash(const Layout& layout, std::span<const uint32_t> writer_of = {});

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_IMAGE_PLAN_H_

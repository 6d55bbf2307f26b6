#include "tests/runtime/staging/ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/formats/names.h"
#include "runtime/staging/memory_slot.h"
#include "runtime/staging/snapshot.h"

namespace cairn {

TempDir::TempDir() {
  path_ = (std::filesystem::temp_directory_path() / "cairn-test-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) std::abort();
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ReadWholeFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

void FlipBit(const std::string& path, uint64_t bit) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(bit / 8));
  const char byte = static_cast<char>(file.get() ^ (1 << (bit % 8)));
  file.seekp(static_cast<std::streamoff>(bit / 8));
  file.put(byte);
  ASSERT_TRUE(file.good()) << path;
}

RankMemory::RankMemory(Random& random, const Layout& layout, uint32_t rank)
    : layout_(layout), pieces_(PiecesOf(layout, rank)) {
  for (const Piece& piece : pieces_) {
    const int64_t element = DTypeBytes(layout.arrays[piece.array].dtype);
    Dims extent = piece.box.extent, low;
    for (int d = 0; d < extent.size(); ++d) {
      low.push_back(Uniform(random, 0, 2));
      extent[d] += low[d] + Uniform(random, 0, 2);
    }
    Dims strides = Dims::Filled(extent.size(), element);
    for (int d = extent.size() - 2; d >= 0; --d) strides[d] = strides[d + 1] * extent[d + 1];
    Memory memory;
    memory.bytes.resize(static_cast<size_t>(extent.Product() * element));
    for (int d = 0; d < extent.size(); ++d) memory.origin += low[d] * strides[d];
    memory_.push_back(std::move(memory));
    strides_.push_back(strides);
  }
  Spoil();
}

int64_t RankMemory::OffsetOf(size_t piece, const Dims& at) const {
  int64_t offset = memory_[piece].origin;
  for (int d = 0; d < at.size(); ++d) offset += (at[d] - pieces_[piece].box.offset[d]) * strides_[piece][d];
  return offset;
}

void RankMemory::Spoil() {
  for (Memory& memory : memory_) std::fill(memory.bytes.begin(), memory.bytes.end(), std::byte{0xEE});
}

void RankMemory::Fill() {
  Spoil();
  for (size_t p = 0; p < pieces_.size(); ++p) {
    ForEachElement(pieces_[p].box, [&](const Dims& at) {
      const std::string element = ElementBytes(layout_.arrays, pieces_[p].array, at);
      std::memcpy(memory_[p].bytes.data() + OffsetOf(p, at), element.data(), element.size());
    });
  }
}

void RankMemory::Check() const {
  for (size_t p = 0; p < pieces_.size(); ++p) {
    std::vector<std::byte> expected(memory_[p].bytes.size(), std::byte{0xEE});
    ForEachElement(pieces_[p].box, [&](const Dims& at) {
      const std::string element = ElementBytes(layout_.arrays, pieces_[p].array, at);
      std::memcpy(expected.data() + OffsetOf(p, at), element.data(), element.size());
    });
    for (size_t i = 0; i < expected.size(); ++i) {
      if (memory_[p].bytes[i] == expected[i]) continue;
      ADD_FAILURE() << "piece " << pieces_[p].box.ToString() << " of "
                    << layout_.arrays[pieces_[p].array].name << " on rank " << pieces_[p].rank << ": byte "
                    << i << " of its memory is wrong";
      break;
    }
  }
}

std::vector<void*> RankMemory::pointers() {
  std::vector<void*> pointers;
  for (Memory& memory : memory_) {
    pointers.push_back(memory.bytes.empty() ? nullptr : memory.bytes.data() + memory.origin);
  }
  return pointers;
}

std::vector<Destination> RankMemory::destinations() {
  std::vector<Destination> destinations;
  const std::vector<void*> data = pointers();
  for (size_t p = 0; p < pieces_.size(); ++p) {
    destinations.push_back({static_cast<std::byte*>(data[p]), pieces_[p].box, strides_[p],
                            DTypeBytes(layout_.arrays[pieces_[p].array].dtype)});
  }
  return destinations;
}

MayTakeFunction TakeAll() {
  return [](uint64_t) { return OkStatus(); };
}

Result<std::vector<ShardRecord>> SaveRank(const LocalTier& tier, const ImagePlan& plan,
                                          const std::vector<Dims>& strides,
                                          const std::vector<void*>& pointers, const DrainOptions& options) {
  CAIRN_ASSIGN_OR_RETURN(const auto slot, MemorySlot::Make(tier, plan, 0, TakeAll()));
  CAIRN_ASSIGN_OR_RETURN(const SnapshotPlan snapshot, SnapshotPlan::Make(plan, strides));
  slot->sidecar().Begin({.epoch = 1, .save_id = 1, .boundary = 10});
  DrainControl control;
  CAIRN_RETURN_IF_ERROR(slot->Fill(plan, snapshot, pointers.data(), control));
  return Drain(*slot, plan, options, control);
}

Result<Index> SaveLayout(Random& random, const Layout& layout, const LocalTierOptions& local,
                         const std::string& directory) {
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(layout, {.min_split_bytes = 64}));
  std::vector<ShardRecord> records;
  for (uint32_t rank = 0; rank < layout.world_size; ++rank) {
    CAIRN_ASSIGN_OR_RETURN(const LocalTier tier, LocalTier::Open(local));
    RankMemory memory(random, layout, rank);
    memory.Fill();
    CAIRN_ASSIGN_OR_RETURN(const ImagePlan images, PlanImages(layout, plan, rank));
    CAIRN_ASSIGN_OR_RETURN(
        const std::vector<ShardRecord> own,
        SaveRank(tier, images, memory.strides(), memory.pointers(), {.directory = directory}));
    records.insert(records.end(), own.begin(), own.end());
    memory.Check();  // a save leaves the program's memory alone
  }
  CAIRN_ASSIGN_OR_RETURN(Index index, DescribeSave(layout, plan));
  CAIRN_RETURN_IF_ERROR(FillRecords(index, records));
  return index;
}

std::vector<SourceFile> SourceFiles(const Index& index, const std::string& directory) {
  std::vector<SourceFile> files;
  for (const ShardRecord& file : index.files) {
    files.push_back({directory + "/" + names::Shard(file.number), directory + "/" + names::Sums(file.number),
                     file.bytes, file.sums_root});
  }
  return files;
}

}  // namespace cairn

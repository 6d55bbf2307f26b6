// reshard: saves and restores arrays in memory, between any layouts, by the runtime's own path from what a program registers: Items, the merged
// layout, the save plan, images, the index's bytes, the exchange plan. Only the copying is plain loops, byte by byte. Driven by reshard_test.py.
//
// In (stdin) and out, numbers of 64 bits, cases until the end of the input:
//     block_bytes min_split_bytes arrays ⟨dtype order ndim shape…⟩…
//     ranks of the saved world that have a writer in common with others (0 or all), ⟨the writer of each⟩…
//     then of the saved world, and of the wanted one:
//     ranks ⟨of each rank: of each array: flat pieces ⟨…⟩…⟩…
//         a box:  offset… extent… stride… (elements) begin (bytes of the memory before it)
//         a range: offset count
//         both:   bytes of its memory, the memory (padded to 8 bytes)
//     out: of each piece of the wanted world its memory (padded), then: blocks read, and how many of these are different
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/exchange_plan.h"
#include "runtime/session/items.h"
#include "runtime/session/state.h"
#include "runtime/staging/image_plan.h"

namespace cairn {
namespace {

bool Read(void* to, size_t bytes) { return std::fread(to, 1, bytes, stdin) == bytes; }

int64_t Number() {
  int64_t number = 0;
  Read(&number, sizeof number);
  return number;
}

std::string Memory() {
  const auto bytes = static_cast<size_t>(Number());
  std::string memory((bytes + 7) / 8 * 8, '\0');
  Read(memory.data(), memory.size());
  memory.resize(bytes);
  return memory;
}

struct Array {
  int dtype = 0, order = 0, ndim = 0;
  std::vector<int64_t> shape;
};

// What the ranks registered, and their memory, which never moves.
struct World {
  std::vector<Items> ranks;
  std::deque<std::string> memory;  // by rank, array and piece
};

Status ReadWorld(const std::vector<Array>& arrays, World* world) {
  world->ranks.resize(static_cast<size_t>(Number()));
  for (Items& items : world->ranks) {
    for (size_t a = 0; a < arrays.size(); ++a) {
      const Array& array = arrays[a];
      const std::string name = "array " + std::to_string(a);
      const bool is_flat = Number() != 0;
      const auto count = static_cast<int>(Number());
      std::vector<cairn_piece> pieces(static_cast<size_t>(count));
      std::vector<cairn_flat_range> ranges(static_cast<size_t>(count));
      for (size_t i = 0; i < pieces.size(); ++i) {
        int64_t begin = 0;
        if (is_flat) {
          ranges[i].offset = Number();
          ranges[i].count = Number();
        } else {
          for (int64_t* numbers : {pieces[i].offset, pieces[i].extent, pieces[i].stride}) {
            for (int d = 0; d < array.ndim; ++d) numbers[d] = Number();
          }
          begin = Number();
        }
        world->memory.push_back(Memory());
        pieces[i].data = world->memory.back().data() + begin;
        ranges[i].data = world->memory.back().data();
      }
      Status added;
      if (is_flat) {
        cairn_flat flat{
            .struct_size = sizeof flat, .dtype = array.dtype, .order = array.order, .ndim = array.ndim};
        std::copy(array.shape.begin(), array.shape.end(), flat.shape);
        flat.range_count = count;
        flat.ranges = ranges.data();
        added = items.AddFlat(name, flat);
      } else {
        cairn_array boxes{
            .struct_size = sizeof boxes, .dtype = array.dtype, .order = array.order, .ndim = array.ndim};
        std::copy(array.shape.begin(), array.shape.end(), boxes.shape);
        boxes.piece_count = count;
        boxes.pieces = pieces.data();
        added = items.AddArray(name, boxes);
      }
      CAIRN_RETURN_IF_ERROR(added);
    }
  }
  return OkStatus();
}

Result<Layout> Merge(const World& world) {
  ShareMerger merger;
  for (const Items& items : world.ranks) CAIRN_RETURN_IF_ERROR(merger.Add(EncodeShare(items)));
  CAIRN_ASSIGN_OR_RETURN(const State state, std::move(merger).Finish());
  return state.layout;
}

const LocalPiece& Local(const Items& items, const Piece& piece) {
  const RegisteredArray& array = items.arrays()[piece.array];
  return array.pieces[array.PieceAt(piece.ordinal)];
}

// Calls visit(position) for each element of a box, in row-major order.
template <typename Visit>
void ForEachElement(const Dims& extent, Visit visit) {
  const int64_t elements = extent.Product();
  for (int64_t e = 0; e < elements; ++e) {
    Dims at = extent;
    int64_t rest = e;
    for (int d = extent.size() - 1; d >= 0; --d) {
      at[d] = rest % extent[d];
      rest /= extent[d];
    }
    visit(at);
  }
}

int64_t Dot(const Dims& a, const Dims& b) {
  int64_t sum = 0;
  for (int d = 0; d < a.size(); ++d) sum += a[d] * b[d];
  return sum;
}

struct Saved {
  std::string index;
  std::vector<std::string> files;  // by position in the index
};

Result<Saved> Save(const World& world, uint64_t min_split_bytes, const std::vector<uint32_t>& writer_of) {
  CAIRN_ASSIGN_OR_RETURN(const Layout layout, Merge(world));
  CAIRN_ASSIGN_OR_RETURN(const Writers writers, Writers::Make(layout, writer_of));
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan,
                         PlanSave(writers.layout(), {.min_split_bytes = min_split_bytes}));
  CAIRN_ASSIGN_OR_RETURN(Index index, DescribeSave(writers.layout(), plan));
  std::vector<ShardRecord> records;
  std::map<uint32_t, std::string> by_number;
  for (uint32_t rank = 0; rank < layout.world_size; ++rank) {
    const std::vector<Piece> pieces = PiecesOf(layout, rank);
    CAIRN_ASSIGN_OR_RETURN(const ImagePlan images, PlanImages(writers, plan, rank));
    for (const Image& image : images.images) {
      records.push_back({image.number, image.size_bytes, {}});
      by_number[image.number] = image.header;
      by_number[image.number].resize(image.size_bytes);
    }
    for (const Image& image : images.shared.empty() ? images.images : images.shared) {
      for (const CopyTask& task : image.copies) {
        const LocalPiece& from = Local(world.ranks[rank], pieces[task.piece]);
        char* const to =
            by_number.at(image.number).data() + task.offset;  // the writer's first rank came before
        ForEachElement(task.region.extent, [&](Dims at) {
          const int64_t place = Dot(at, task.stride);
          for (int d = 0; d < at.size(); ++d) at[d] += task.region.offset[d];
          std::memcpy(to + place, from.data + Dot(at, from.stride_bytes),
                      static_cast<size_t>(task.element_bytes));
        });
      }
    }
  }
  CAIRN_RETURN_IF_ERROR(FillRecords(index, records));
  Saved saved;
  CAIRN_ASSIGN_OR_RETURN(saved.index, EncodeIndex(index));
  for (const ShardRecord& file : index.files) saved.files.push_back(std::move(by_number.at(file.number)));
  return saved;
}

// What of the region lies in the block, into the rank's memory. Returns how many bytes.
uint64_t Fill(const ExchangePlan& plan, uint32_t number, const std::string& file, uint64_t begin,
              uint64_t end, const Items& items) {
  const FileRegion& region = plan.regions[number];
  uint64_t bytes = 0;
  ForEachElement(region.box.extent, [&](const Dims& at) {
    const uint64_t first = region.offset + static_cast<uint64_t>(Dot(at, region.stride));
    for (uint64_t b = std::max(first, begin);
         b < std::min(first + static_cast<uint64_t>(region.element_bytes), end); ++b) {
      ++bytes;
      for (const uint32_t p : plan.pieces_of[number]) {
        const LocalPiece& to = Local(items, plan.pieces[p]);
        Dims in_piece = at;
        for (int d = 0; d < at.size(); ++d) in_piece[d] += region.box.offset[d] - to.box.offset[d];
        to.data[Dot(in_piece, to.stride_bytes) + static_cast<int64_t>(b - first)] = std::byte(file.at(b));
      }
    }
  });
  return bytes;
}

struct Blocks {
  int64_t read = 0;
  std::set<std::pair<uint32_t, uint64_t>> different;
};

Result<Blocks> Restore(const Saved& saved, uint64_t block_bytes, const World& world) {
  CAIRN_ASSIGN_OR_RETURN(const Layout layout, Merge(world));
  CAIRN_ASSIGN_OR_RETURN(const Index index, DecodeIndex(saved.index));
  CAIRN_ASSIGN_OR_RETURN(const SavedIndex boxes, SavedIndex::Make(index.saved));
  const LayoutIndex wanted(layout);
  std::vector<uint32_t> same;
  for (uint32_t a = 0; a < layout.arrays.size(); ++a) same.push_back(a);
  Blocks blocks;
  for (uint32_t rank = 0; rank < layout.world_size; ++rank) {
    CAIRN_ASSIGN_OR_RETURN(const ExchangePlan plan, PlanExchange({boxes, wanted, same, block_bytes}, rank));
    const auto fill = [&](const std::vector<uint32_t>& regions, uint32_t file, uint64_t block) {
      uint64_t bytes = 0;
      for (const uint32_t region : regions)
        bytes += Fill(plan, region, saved.files[file], block * block_bytes, (block + 1) * block_bytes,
                      world.ranks[rank]);
      return bytes;
    };
    for (const ExchangePlan::Read& read : plan.reads) {
      ++blocks.read;
      blocks.different.emplace(read.file, read.block);
      fill(read.own, read.file, read.block);
    }
    for (const ExchangePlan::Receipt& receipt : plan.receipts) {
      if (fill(receipt.regions, receipt.file, receipt.block) != receipt.bytes)
        return Status(Code::kInternal, "a parcel has not the bytes that it is said to have");
    }
  }
  return blocks;
}

void Write(const std::string& memory) {
  std::fwrite(memory.data(), 1, memory.size(), stdout);
  std::fwrite("\0\0\0\0\0\0\0", 1, (8 - memory.size() % 8) % 8, stdout);
}

Status RunCase(uint64_t block_bytes) {
  const auto min_split_bytes = static_cast<uint64_t>(Number());
  std::vector<Array> arrays(static_cast<size_t>(Number()));
  for (Array& array : arrays) {
    for (int* number : {&array.dtype, &array.order, &array.ndim}) *number = static_cast<int>(Number());
    for (int d = 0; d < array.ndim; ++d) array.shape.push_back(Number());
  }
  std::vector<uint32_t> writer_of(static_cast<size_t>(Number()));
  for (uint32_t& writer : writer_of) writer = static_cast<uint32_t>(Number());
  World before, after;
  CAIRN_RETURN_IF_ERROR(ReadWorld(arrays, &before));
  CAIRN_RETURN_IF_ERROR(ReadWorld(arrays, &after));
  CAIRN_ASSIGN_OR_RETURN(const Saved saved, Save(before, min_split_bytes, writer_of));
  CAIRN_ASSIGN_OR_RETURN(const Blocks blocks, Restore(saved, block_bytes, after));
  for (const std::string& memory : after.memory) Write(memory);
  const int64_t counts[] = {blocks.read, static_cast<int64_t>(blocks.different.size())};
  std::fwrite(counts, sizeof counts, 1, stdout);
  std::fflush(stdout);
  return OkStatus();
}

}  // namespace
}  // namespace cairn

int main() {
  int64_t block_bytes = 0;
  while (cairn::Read(&block_bytes, sizeof block_bytes)) {
    const cairn::Status status = cairn::RunCase(static_cast<uint64_t>(block_bytes));
    if (status.ok()) continue;
    std::fprintf(stderr, "reshard: %s\n", status.message().c_str());
    return 1;
  }
  return 0;
}

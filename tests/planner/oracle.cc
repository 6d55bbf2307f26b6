#include "tests/planner/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace cairn {
namespace {

const Piece* FindPiece(const Layout& layout, uint32_t array, uint32_t rank, uint32_t ordinal) {
  for (const Piece& p : layout.pieces) {
    if (p.array == array && p.rank == rank && p.ordinal == ordinal) return &p;
  }
  return nullptr;
}

bool Holds(const Box& box, const Dims& at) {
  for (int d = 0; d < at.size(); ++d) {
    if (at[d] < box.offset[d] || at[d] >= box.offset[d] + box.extent[d]) return false;
  }
  return true;
}

std::string Place(const ArraySpec& array, const Dims& at) { return array.name + at.ToString(); }

// Each element of a box is written once for each different box that holds it; equal boxes count once.
void CheckWrittenOnce(const Layout& layout, const SavePlan& plan) {
  std::map<std::pair<uint32_t, Dims>, int> written;
  uint64_t bytes = 0;
  for (uint32_t rank = 0; rank < layout.world_size; ++rank) {
    for (const WriteBox& b : plan.BoxesOf(rank)) {
      ForEachElement(b.box, [&](const Dims& at) { ++written[{b.array, at}]; });
      bytes += static_cast<uint64_t>(b.box.elements() * DTypeBytes(layout.arrays[b.array].dtype));
    }
  }
  EXPECT_EQ(plan.bytes(), bytes);
  for (uint32_t a = 0; a < layout.arrays.size(); ++a) {
    std::set<Box> different;
    for (const Piece& p : layout.pieces) {
      if (p.array == a) different.insert(p.box);
    }
    ForEachElement(Box::Whole(layout.arrays[a].shape), [&](const Dims& at) {
      const auto holders =
          std::count_if(different.begin(), different.end(), [&](const Box& box) { return Holds(box, at); });
      EXPECT_EQ((written[{a, at}]), holders) << Place(layout.arrays[a], at);
    });
  }
}

// No holes, no array twice in a file, no file skipped, wider elements first.
void CheckFiles(const Layout& layout, const SavePlan& plan) {
  for (uint32_t rank = 0; rank < layout.world_size; ++rank) {
    std::map<uint32_t, uint64_t> end;                  // by file
    std::map<uint32_t, int> width;                     // by file, of its last box
    std::set<std::pair<uint32_t, uint32_t>> boxes_of;  // (file, array)
    for (const WriteBox& b : plan.BoxesOf(rank)) {
      const int bytes = DTypeBytes(layout.arrays[b.array].dtype);
      const int aligned = bytes == 3 ? 1 : bytes;  // four values of 6 bits are as good anywhere
      EXPECT_TRUE(boxes_of.insert({b.file, b.array}).second) << "two boxes of an array in file " << b.file;
      EXPECT_EQ(b.offset, end[b.file]);
      end[b.file] += static_cast<uint64_t>(b.box.elements() * bytes);
      if (width.contains(b.file)) {
        EXPECT_LE(aligned, width[b.file]);
      }
      width[b.file] = aligned;
    }
    if (!end.empty()) {
      EXPECT_EQ(end.rbegin()->first + 1, end.size()) << "rank " << rank << " skips a file";
    }
    const RankFiles files = plan.FilesOf(rank);
    ASSERT_EQ(files.data_bytes.size(), end.size());
    for (const auto& [file, bytes] : end) EXPECT_EQ(files.data_bytes[file], bytes);
  }
}

// The content of a box, from the memory of the rank that writes it.
std::string ContentOf(const Layout& layout, uint32_t rank, const WriteBox& b) {
  std::string content;
  const Piece* piece = FindPiece(layout, b.array, rank, b.piece_ordinal);
  if (piece == nullptr) {
    ADD_FAILURE() << "rank " << rank << " has no piece " << b.piece_ordinal << " of array " << b.array;
    return content;
  }
  EXPECT_FALSE(b.box.elements() == 0);
  ForEachElement(b.box, [&](const Dims& at) {
    EXPECT_TRUE(Holds(piece->box, at)) << "rank " << rank << " does not hold " << at.ToString();
    content += ElementBytes(layout.arrays, b.array, at);
  });
  return content;
}

// All boxes of a save with their writers, and the positions of files by number.
struct AllBoxes {
  std::vector<std::pair<uint32_t, WriteBox>> boxes;  // (writer, box)
  std::map<uint32_t, uint32_t> position;             // of a file number
  uint32_t Position(uint32_t world_size, uint32_t rank, const WriteBox& b) const {
    return position.at(b.file * world_size + rank + 1);
  }
};

AllBoxes CollectBoxes(const Layout& layout, const SavePlan& plan) {
  AllBoxes all;
  for (uint32_t rank = 0; rank < layout.world_size; ++rank) {
    for (const WriteBox& b : plan.BoxesOf(rank)) {
      all.boxes.emplace_back(rank, b);
      all.position[b.file * layout.world_size + rank + 1] = 0;
    }
  }
  uint32_t next = 0;
  for (auto& [number, position] : all.position) position = next++;
  return all;
}

void GroupByArray(std::vector<SavedBox>& boxes) {
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const SavedBox& a, const SavedBox& b) { return a.array < b.array; });
}

}  // namespace

void ForEachElement(const Box& box, const std::function<void(const Dims&)>& visit) {
  int64_t count = 1;
  for (const int64_t n : box.extent) count *= n;
  for (int64_t i = 0; i < count; ++i) {
    Dims at = box.offset;
    int64_t rest = i;
    for (int d = box.extent.size() - 1; d >= 0; --d) {
      at[d] += rest % box.extent[d];
      rest /= box.extent[d];
    }
    visit(at);
  }
}

int64_t FlatIndex(const Dims& shape, const Dims& at) {
  int64_t flat = 0;
  for (int d = 0; d < shape.size(); ++d) flat = flat * shape[d] + at[d];
  return flat;
}

std::string ElementBytes(const std::vector<ArraySpec>& arrays, uint32_t array, const Dims& at) {
  uint64_t x = (uint64_t{array} << 40) + static_cast<uint64_t>(FlatIndex(arrays[array].shape, at)) + 1;
  x *= 0x9E3779B97F4A7C15u;
  x ^= x >> 29;
  std::string bytes;
  for (int i = 0; i < DTypeBytes(arrays[array].dtype); ++i) bytes += static_cast<char>(x >> (8 * i));
  return bytes;
}

SavedFiles Save(Random& random, const Layout& layout, const SavePlan& plan) {
  CheckFiles(layout, plan);
  CheckWrittenOnce(layout, plan);
  SavedFiles saved;
  saved.layout.arrays = layout.arrays;
  const AllBoxes all = CollectBoxes(layout, plan);
  saved.files.resize(all.position.size());
  for (const auto& [rank, b] : all.boxes) {
    const uint32_t position = all.Position(layout.world_size, rank, b);
    std::string& file = saved.files[position];
    file.append(static_cast<size_t>(Uniform(random, 0, 9)), '\xEE');
    saved.layout.boxes.push_back({b.array, position, file.size(), b.box});
    file += ContentOf(layout, rank, b);
  }
  GroupByArray(saved.layout.boxes);
  saved.boxes = saved.layout.boxes;
  return saved;
}

SavedFiles SaveByRule(Random& random, const Layout& layout, const Layout& ruled, const SavePlan& plan) {
  SavedFiles saved;
  saved.layout.arrays = ruled.arrays;
  saved.layout.grids = ruled.grids;
  saved.layout.world_size = ruled.world_size;
  saved.layout.min_split_bytes = plan.min_split_bytes();
  const AllBoxes all = CollectBoxes(layout, plan);
  saved.files.resize(all.position.size());
  for (std::string& file : saved.files) file.assign(static_cast<size_t>(Uniform(random, 1, 9)), '\xEE');
  std::vector<size_t> header_bytes;
  for (const std::string& file : saved.files) header_bytes.push_back(file.size());
  for (const auto& [rank, b] : all.boxes) {
    const uint32_t position = all.Position(layout.world_size, rank, b);
    std::string& file = saved.files[position];
    EXPECT_EQ(file.size(), header_bytes[position] + b.offset);
    saved.boxes.push_back({b.array, position, file.size(), b.box});
    if (!ruled.grids.Has(b.array)) saved.layout.boxes.push_back(saved.boxes.back());
    file += ContentOf(layout, rank, b);
  }
  GroupByArray(saved.layout.boxes);
  for (const auto& [number, position] : all.position)
    saved.layout.files.push_back({number, saved.files[position].size()});
  return saved;
}

void LoadAndCompare(const SavedFiles& saved, const std::vector<WantedBox>& wanted, const LoadPlan& plan,
                    const LoadPlanOptions& options) {
  const std::vector<ArraySpec>& arrays = saved.layout.arrays;
  std::vector<std::map<Dims, std::string>> memory(wanted.size());
  uint64_t read_bytes = 0;
  for (size_t r = 0; r < plan.ranges.size(); ++r) {
    const ReadRange& range = plan.ranges[r];
    ASSERT_LT(range.file, saved.files.size());
    ASSERT_LE(range.offset + range.bytes, saved.files[range.file].size());
    EXPECT_LE(range.bytes, std::max<uint64_t>(8, options.max_range_bytes));
    if (r > 0 && plan.ranges[r - 1].file == range.file) {
      EXPECT_LE(plan.ranges[r - 1].offset + plan.ranges[r - 1].bytes, range.offset) << "ranges overlap";
    } else if (r > 0) {
      EXPECT_LT(plan.ranges[r - 1].file, range.file);
    }
    read_bytes += range.bytes;
    const std::string bytes = saved.files[range.file].substr(range.offset, range.bytes);
    std::set<uint64_t> used;
    for (const CopyOut& copy : range.copies) {
      const uint32_t array = wanted[copy.wanted].array;
      const auto element_bytes = static_cast<uint64_t>(DTypeBytes(arrays[array].dtype));
      ForEachElement(copy.region, [&](const Dims& at) {
        uint64_t source = copy.source_offset;
        for (int d = 0; d < at.size(); ++d) {
          source += static_cast<uint64_t>((at[d] - copy.region.offset[d]) * copy.source_stride[d]);
        }
        ASSERT_LE(source + element_bytes, range.bytes) << "a copy leaves its range";
        for (uint64_t i = 0; i < element_bytes; ++i) used.insert(source + i);
        EXPECT_TRUE(memory[copy.wanted].emplace(at, bytes.substr(source, element_bytes)).second)
            << Place(arrays[array], at) << " is copied twice";
      });
    }
    ASSERT_FALSE(used.empty());
    EXPECT_EQ(*used.begin(), 0u) << "a range begins before what is wanted";
    EXPECT_EQ(*used.rbegin() + 1, range.bytes) << "a range ends after what is wanted";
    uint64_t previous = 0;
    for (const uint64_t at : used) {
      EXPECT_LE(at, previous + std::max(options.page_bytes, options.max_gap_bytes + 1)) << "a gap too long";
      previous = at;
    }
  }
  EXPECT_EQ(plan.read_bytes, read_bytes);

  std::set<std::pair<uint32_t, int64_t>> needed;
  uint64_t needed_bytes = 0;
  for (size_t w = 0; w < wanted.size(); ++w) {
    const uint32_t array = wanted[w].array;
    size_t elements = 0;
    ForEachElement(wanted[w].box, [&](const Dims& at) {
      ++elements;
      if (needed.insert({array, FlatIndex(arrays[array].shape, at)}).second) {
        needed_bytes += static_cast<uint64_t>(DTypeBytes(arrays[array].dtype));
      }
      const auto got = memory[w].find(at);
      if (got == memory[w].end()) {
        ADD_FAILURE() << Place(arrays[array], at) << " of wanted box " << w << " is not loaded";
      } else {
        EXPECT_EQ(got->second, ElementBytes(arrays, array, at)) << Place(arrays[array], at);
      }
    });
    EXPECT_EQ(memory[w].size(), elements) << "elements outside of wanted box " << w;
  }
  EXPECT_EQ(plan.needed_bytes, needed_bytes);
}

std::vector<WantedBox> WantedBy(const Layout& layout, uint32_t rank) {
  std::vector<WantedBox> wanted;
  for (const Piece& p : layout.pieces) {
    if (p.rank == rank) wanted.push_back({p.array, p.box});
  }
  return wanted;
}

}  // namespace cairn

#include "planner/save_plan.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace cairn {
namespace {

// Equal pieces: those of one box, by rank, each rank once.
struct Replicas {
  uint64_t bytes = 0;
  std::vector<const Piece*> holders;
};

// All not empty pieces, grouped into replicas; by array, then by box.
std::vector<Replicas> GroupReplicas(const Layout& layout) {
  std::vector<const Piece*> pieces;
  pieces.reserve(layout.pieces.size());
  for (const Piece& p : layout.pieces) {
    if (!p.box.empty()) pieces.push_back(&p);
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece* a, const Piece* b) {
    return std::tie(a->array, a->box, a->rank, a->ordinal) < std::tie(b->array, b->box, b->rank, b->ordinal);
  });
  std::vector<Replicas> groups;
  for (const Piece* p : pieces) {
    const Piece* last = groups.empty() ? nullptr : groups.back().holders.back();
    if (last == nullptr || last->array != p->array || !(last->box == p->box)) {
      const int element_bytes = DTypeBytes(layout.arrays[p->array].dtype);
      groups.push_back({static_cast<uint64_t>(p->box.elements() * element_bytes), {p}});
    } else if (last->rank != p->rank) {
      groups.back().holders.push_back(p);
    }
  }
  return groups;
}

// Gives boxes to ranks and knows what each rank has to write so far.
class Writers {
 public:
  Writers(uint32_t world_size, uint64_t min_part_bytes)
      : min_part_bytes_(std::max<uint64_t>(1, min_part_bytes)), load_(world_size), boxes_(world_size) {}

  void Assign(const Piece& piece, const Box& box, uint64_t bytes) {
    load_[piece.rank] += bytes;
    boxes_[piece.rank].push_back({piece.array, piece.ordinal, 0, box});
  }

  void Share(const Replicas& group) {
    const Box& box = group.holders[0]->box;
    const uint64_t rows = box.rank() == 0 ? 1 : static_cast<uint64_t>(box.extent[0]);
    const uint64_t row_bytes = group.bytes / rows;

    std::vector<const Piece*> by_load = group.holders;
    std::sort(by_load.begin(), by_load.end(), [this](const Piece* a, const Piece* b) {
      return std::tie(load_[a->rank], a->rank) < std::tie(load_[b->rank], b->rank);
    });
    by_load.resize(std::max<uint64_t>(1, std::min({by_load.size(), rows, group.bytes / min_part_bytes_})));
    const uint64_t level = Level(group.bytes, &by_load);
    if (by_load.size() == 1) return Assign(*by_load[0], box, group.bytes);

    std::sort(by_load.begin(), by_load.end(),
              [](const Piece* a, const Piece* b) { return a->rank < b->rank; });
    uint64_t wanted_bytes = 0;  // by the holders so far
    uint64_t row = 0;
    for (const Piece* holder : by_load) {
      wanted_bytes += level - load_[holder->rank];
      const uint64_t end = holder == by_load.back() ? rows : (wanted_bytes + row_bytes / 2) / row_bytes;
      if (end == row) continue;
      Box part = box;
      part.offset[0] += static_cast<int64_t>(row);
      part.extent[0] = static_cast<int64_t>(end - row);
      Assign(*holder, part, (end - row) * row_bytes);
      row = end;
    }
  }

  std::vector<std::vector<WriteBox>> TakeBoxes() && { return std::move(boxes_); }

 private:
  // The load that the holders have in common once they share `bytes`. Takes the most loaded of them off while
  // its part would be too small.
  uint64_t Level(uint64_t bytes, std::vector<const Piece*>* by_load) const {
    uint64_t sum = bytes;
    for (const Piece* holder : *by_load) sum += load_[holder->rank];
    while (by_load->size() > 1) {
      const uint64_t level = sum / by_load->size();
      const uint64_t highest = load_[by_load->back()->rank];
      if (level >= highest + min_part_bytes_) return level;
      sum -= highest;
      by_load->pop_back();
    }
    return sum;
  }

  const uint64_t min_part_bytes_;
  std::vector<uint64_t> load_;  // bytes, by rank
  std::vector<std::vector<WriteBox>> boxes_;
};

// Puts each rank's boxes into its files (rule 3). WriteBox::file is the rank's own file number j until the
// save's files are numbered.
Status PlaceInFiles(SavePlan* plan) {
  const auto world_size = static_cast<uint32_t>(plan->boxes.size());
  std::vector<std::vector<uint32_t>> position(world_size);  // by rank and j: position in plan->files
  for (uint32_t rank = 0; rank < world_size; ++rank) {
    std::vector<WriteBox>& boxes = plan->boxes[rank];
    std::sort(boxes.begin(), boxes.end(), [](const WriteBox& a, const WriteBox& b) {
      return std::tie(a.array, a.piece_ordinal) < std::tie(b.array, b.piece_ordinal);
    });
    uint32_t files = 0;
    for (size_t i = 0; i < boxes.size(); ++i) {
      boxes[i].file = i > 0 && boxes[i].array == boxes[i - 1].array ? boxes[i - 1].file + 1 : 0;
      files = std::max(files, boxes[i].file + 1);
    }
    std::stable_sort(boxes.begin(), boxes.end(),
                     [](const WriteBox& a, const WriteBox& b) { return a.file < b.file; });
    position[rank].resize(files);
    for (uint32_t j = 0; j < files; ++j) {
      const uint64_t number = uint64_t{j} * world_size + rank + 1;
      if (number > std::numeric_limits<uint32_t>::max()) {
        return {Code::kInvalid, "rank " + std::to_string(rank) + " has " + std::to_string(files) +
                                    " pieces of one array, too many for " + std::to_string(world_size) +
                                    " ranks: file numbers do not fit 32 bits"};
      }
      plan->files.push_back({rank, static_cast<uint32_t>(number)});
    }
  }
  std::sort(plan->files.begin(), plan->files.end(),
            [](const PlannedFile& a, const PlannedFile& b) { return a.number < b.number; });
  for (uint32_t f = 0; f < plan->files.size(); ++f) {
    const PlannedFile& file = plan->files[f];
    position[file.rank][(file.number - 1) / world_size] = f;
  }
  for (uint32_t rank = 0; rank < world_size; ++rank) {
    for (WriteBox& box : plan->boxes[rank]) box.file = position[rank][box.file];
  }
  return OkStatus();
}

}  // namespace

Result<SavePlan> PlanSave(const Layout& layout, const SavePlanOptions& options) {
  CAIRN_RETURN_IF_ERROR(ValidateLayout(layout));
  SavePlan plan;
  Writers writers(layout.world_size, options.min_split_bytes);

  const std::vector<Replicas> groups = GroupReplicas(layout);
  std::vector<const Replicas*> shared;
  for (const Replicas& group : groups) {
    plan.bytes += group.bytes;
    if (group.holders.size() == 1) {
      writers.Assign(*group.holders[0], group.holders[0]->box, group.bytes);
    } else {
      shared.push_back(&group);
    }
  }
  std::stable_sort(shared.begin(), shared.end(),
                   [](const Replicas* a, const Replicas* b) { return a->bytes > b->bytes; });
  for (const Replicas* group : shared) writers.Share(*group);

  plan.boxes = std::move(writers).TakeBoxes();
  CAIRN_RETURN_IF_ERROR(PlaceInFiles(&plan));
  return plan;
}

}  // namespace cairn

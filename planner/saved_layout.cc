#include "planner/saved_layout.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace cairn {
namespace {

Status CheckSaved(const ArraySpec& array, const SavedBox& saved) {
  const Status fits = CheckBox(array, saved.box);
  if (!fits.ok()) return {Code::kDamage, "a saved box does not fit: " + fits.message()};
  const auto bytes = static_cast<uint64_t>(saved.box.elements() * DTypeBytes(array.dtype));
  if (saved.file_offset > std::numeric_limits<uint64_t>::max() - bytes) {
    return {Code::kDamage, "array '" + array.name + "': a saved box lies at file offset " +
                               std::to_string(saved.file_offset) + ", which no file has"};
  }
  return OkStatus();
}

}  // namespace

Result<SavedIndex> SavedIndex::Make(const SavedLayout& saved) {
  SavedIndex index;
  index.saved_ = &saved;
  index.boxes_.resize(saved.arrays.size());
  size_t box = 0;
  for (uint32_t a = 0; a < saved.arrays.size(); ++a) {
    if (const Status status = CheckArray(saved.arrays[a]); !status.ok())
      return Status(Code::kDamage, status.message());
    index.first_box_.push_back(box);
    for (; box < saved.boxes.size() && saved.boxes[box].array == a; ++box)
      CAIRN_RETURN_IF_ERROR(CheckSaved(saved.arrays[a], saved.boxes[box]));
  }
  index.first_box_.push_back(box);
  if (box != saved.boxes.size()) {
    return Status(Code::kDamage, "the saved boxes are not grouped by array: box " + std::to_string(box) +
                                     " of array number " + std::to_string(saved.boxes[box].array) +
                                     " is out of order");
  }
  return index;
}

Result<std::vector<SavedPart>> SavedIndex::BoxesIn(uint32_t array, const Box& box) const {
  const SavedBox* const saved = saved_->boxes.data() + first_box_[array];
  if (!boxes_[array]) {
    std::vector<const Box*> boxes;
    for (size_t b = first_box_[array]; b < first_box_[array + 1]; ++b) boxes.push_back(&saved_->boxes[b].box);
    boxes_[array] = std::make_unique<BoxIndex>(boxes);
  }
  const BoxIndex::Cover cover = boxes_[array]->CoverOf(box);
  if (!cover.holes.empty()) {
    const ArraySpec& spec = saved_->arrays[array];
    return Status(Code::kDamage, "array '" + spec.name + "' of shape " + spec.shape.ToString() +
                                     ": elements " + cover.holes[0].ToString() +
                                     " are wanted and no saved box holds them; this checkpoint is not whole");
  }
  std::vector<SavedPart> parts;
  for (const BoxIndex::Part& part : cover.parts) parts.push_back({saved[part.box], part.region});
  return parts;
}

const std::vector<SavedBox>& SavedIndex::BoxesOfFile(uint32_t file) const {
  static const std::vector<SavedBox> kNone;
  if (by_file_.empty()) {
    for (const SavedBox& saved : saved_->boxes) {
      if (saved.box.empty()) continue;
      if (saved.file >= by_file_.size()) by_file_.resize(saved.file + 1);
      by_file_[saved.file].push_back(saved);
    }
    for (auto& boxes : by_file_) {
      std::sort(boxes.begin(), boxes.end(), [](const SavedBox& a, const SavedBox& b) {
        return std::tie(a.file_offset, a.array) < std::tie(b.file_offset, b.array);
      });
    }
  }
  return file < by_file_.size() ? by_file_[file] : kNone;
}

}  // namespace cairn

#include "runtime/session/load_planner.h"

#include <algorithm>
#include <utility>

#include "runtime/abi_guard.h"

namespace cairn {
namespace {

// Between the dimensions as an array is kept and as the program counts them.
template <size_t n>
void Put(const ArraySpec& array, const Dims& dims, int64_t (&out)[n]) {
  const Dims turned = array.fortran ? Reversed(dims) : dims;
  std::copy(turned.begin(), turned.end(), out);
}

// Of an array that there is not, nothing: the plan is refused when it is joined.
template <size_t n>
Dims Get(const ArraySpec* array, const int64_t (&in)[n]) {
  Dims dims;
  if (array == nullptr) return dims;
  for (int d = 0; d < array->shape.size(); ++d) dims.push_back(in[d]);
  return array->fortran ? Reversed(dims) : dims;
}

cairn_saved_array Described(const ArraySpec& spec) {
  cairn_saved_array array{};
  array.struct_size = sizeof array;
  array.name = spec.name.c_str();
  array.dtype = static_cast<int>(spec.dtype);
  array.order = spec.fortran ? CAIRN_ORDER_FORTRAN : CAIRN_ORDER_C;
  array.ndim = spec.shape.size();
  Put(spec, spec.shape, array.shape);
  return array;
}

}  // namespace

Status LoadPlanner::Said(int code, const std::string& call) const {
  if (code == CAIRN_OK) return OkStatus();
  const char* const why = calls_.why != nullptr ? calls_.why(calls_.user) : nullptr;
  return {code == CAIRN_E_NO_MEMORY ? Code::kOutOfMemory : Code::kMismatch,
          "the program's load planner failed in " + call + ": " +
              (why != nullptr ? why : "code " + std::to_string(code))};
}

Result<ReadPlan> LoadPlanner::PlanLocally(const Order& order, Index index) {
  index_ = std::move(index);
  CAIRN_ASSIGN_OR_RETURN(saved_, SavedIndex::Make(index_.saved));
  Describe(order);
  CAIRN_RETURN_IF_ERROR(Said(calls_.set_up(&setup_, calls_.user), "set_up"));
  ReadPlan plan = DefaultPlan(index_.saved.arrays, state_, order.differences, static_cast<uint32_t>(rank_));
  if (calls_.local_plan == nullptr) return plan;
  const Shown shown = Show(plan);
  cairn_load_plan changed = shown.plan();
  CAIRN_RETURN_IF_ERROR(Said(calls_.local_plan(&changed, calls_.user), "local_plan"));
  return Take(changed);
}

void LoadPlanner::Describe(const Order& order) {
  saved_arrays_.clear();
  registered_.clear();
  for (const ArraySpec& array : index_.saved.arrays) saved_arrays_.push_back(Described(array));
  const std::vector<ArraySpec>& arrays = state_.layout.arrays;
  pieces_.assign(arrays.size(), {});
  for (const RegisteredArray& own : items_.arrays()) own_.emplace(own.spec.name, &own);
  for (size_t a = 0; a < arrays.size(); ++a) {
    const auto own = own_.find(arrays[a].name);
    for (size_t i = 0; own != own_.end() && i < own->second->pieces.size(); ++i) {
      const LocalPiece& local = own->second->pieces[i];
      if (local.box.empty()) continue;
      cairn_piece& piece = pieces_[a].emplace_back();
      Dims strides = local.stride_bytes;
      for (int d = 0; d < strides.size(); ++d) strides[d] /= DTypeBytes(arrays[a].dtype);
      Put(arrays[a], local.box.offset, piece.offset);
      Put(arrays[a], local.box.extent, piece.extent);
      Put(arrays[a], strides, piece.stride);
      piece.data = local.data;
    }
    registered_.push_back({Described(arrays[a]), static_cast<int>(pieces_[a].size()), pieces_[a].data()});
  }
  setup_.struct_size = sizeof(cairn_load_setup);
  setup_.member = rank_;
  setup_.world_size = static_cast<int>(state_.layout.world_size);
  setup_.world_size_saved = static_cast<int>(order.world_size_saved);
  setup_.coordinator = rank_ == 0 ? 1 : 0;
  setup_.step = order.step;
  setup_.saved_count = static_cast<int>(saved_arrays_.size());
  setup_.saved = saved_arrays_.data();
  setup_.registered_count = static_cast<int>(registered_.size());
  setup_.registered = registered_.data();
  setup_.boxes = &LoadPlanner::Boxes;
  setup_.self = this;
}

int LoadPlanner::Boxes(const cairn_load_setup* setup, int saved, int capacity, cairn_box* boxes) {
  return abi::Guard([&]() -> int {
    const LoadPlanner& planner = *static_cast<const LoadPlanner*>(setup->self);
    const ArraySpec* const array = planner.Saved(static_cast<uint32_t>(saved));
    if (array == nullptr) return CAIRN_E_INVALID;
    const auto parts = planner.saved_->BoxesIn(static_cast<uint32_t>(saved), Box::Whole(array->shape));
    if (!parts.ok()) return abi::Report(parts.status());
    for (int i = 0; i < std::min(capacity, static_cast<int>(parts->size())); ++i) {
      const Box& box = (*parts)[static_cast<size_t>(i)].region;
      Put(*array, box.offset, boxes[i].offset);
      Put(*array, box.extent, boxes[i].extent);
    }
    return static_cast<int>(parts->size());
  });
}

const ArraySpec* LoadPlanner::Saved(uint32_t from) const {
  return from < index_.saved.arrays.size() ? &index_.saved.arrays[from] : nullptr;
}

const ArraySpec* LoadPlanner::Registered(uint32_t to) const {
  return to < state_.layout.arrays.size() ? &state_.layout.arrays[to] : nullptr;
}

cairn_read_item LoadPlanner::Show(const ReadItem& item) const {
  cairn_read_item out{};
  out.from = static_cast<int>(item.from);
  out.to = static_cast<int>(item.to);
  out.resolve = item.resolve ? 1 : 0;
  if (const ArraySpec* const from = Saved(item.from)) {
    Put(*from, item.box.offset, out.from_offset);
    Put(*from, item.box.extent, out.extent);
  }
  if (const ArraySpec* const to = Registered(item.to)) Put(*to, item.to_offset, out.to_offset);
  return out;
}

LoadPlanner::Shown LoadPlanner::Show(const ReadPlan& plan) const {
  Shown shown;
  for (const ReadItem& item : plan) shown.items.push_back(Show(item));
  return shown;
}

ReadItem LoadPlanner::Take(const cairn_read_item& item) const {
  const auto from = static_cast<uint32_t>(item.from), to = static_cast<uint32_t>(item.to);
  const ArraySpec* const saved = Saved(from);
  return {from,
          {Get(saved, item.from_offset), Get(saved, item.extent)},
          to,
          Get(Registered(to), item.to_offset),
          item.resolve != 0};
}

Result<ReadPlan> LoadPlanner::Take(const cairn_load_plan& plan) const {
  if (plan.item_count < 0 || (plan.item_count > 0 && plan.items == nullptr))
    return Status(Code::kInvalid, "the program's load planner made a plan without items");
  if (static_cast<size_t>(plan.item_count) > kMaxPlanItems) {
    return Status(Code::kInvalid, "the program's load planner made a plan of " +
                                      std::to_string(plan.item_count) + " items, more than " +
                                      std::to_string(kMaxPlanItems) + "; describe it by fewer, larger boxes");
  }
  ReadPlan out;
  for (int i = 0; i < plan.item_count; ++i) out.push_back(Take(plan.items[i]));
  return out;
}

Result<std::vector<ReadPlan>> LoadPlanner::PlanForAll(std::vector<ReadPlan> plans) {
  if (calls_.global_plan == nullptr) return plans;
  std::vector<Shown> shown;
  std::vector<cairn_load_plan> changed;
  for (const ReadPlan& plan : plans) changed.push_back(shown.emplace_back(Show(plan)).plan());
  CAIRN_RETURN_IF_ERROR(
      Said(calls_.global_plan(changed.data(), static_cast<int>(changed.size()), calls_.user), "global_plan"));
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    CAIRN_ASSIGN_OR_RETURN(plans[rank], Take(changed[rank]));
  }
  return plans;
}

Result<std::vector<Destination>> LoadPlanner::Resolve(const ReadPlan& plan) {
  if (calls_.finish_plan != nullptr) {
    const Shown shown = Show(plan);
    const cairn_load_plan finished = shown.plan();
    CAIRN_RETURN_IF_ERROR(Said(calls_.finish_plan(&finished, calls_.user), "finish_plan"));
  }
  resolved_.clear();
  std::vector<Destination> destinations;
  for (const ReadItem& item : plan) {
    if (!item.resolve) {
      destinations.push_back(PlaceOf(item));
      continue;
    }
    CAIRN_ASSIGN_OR_RETURN(const Destination memory, Ask(item));
    destinations.push_back(memory);
  }
  return destinations;
}

Destination LoadPlanner::PlaceOf(const ReadItem& item) const {
  const ArraySpec& from = index_.saved.arrays[item.from];
  const RegisteredArray& array = *own_.at(state_.layout.arrays[item.to].name);
  const LocalPiece& piece = array.pieces[array.PieceAt(item.piece)];
  std::byte* data = piece.data;
  for (int d = 0; d < piece.box.rank(); ++d)
    data += (item.to_offset[d] - piece.box.offset[d]) * piece.stride_bytes[d];
  const bool turned = array.spec.fortran != from.fortran;
  return {data, item.box, turned ? Reversed(piece.stride_bytes) : piece.stride_bytes, DTypeBytes(from.dtype),
          array.device ? items_.device() : nullptr};
}

Result<Destination> LoadPlanner::Ask(const ReadItem& item) {
  const ArraySpec& from = index_.saved.arrays[item.from];
  Resolved& asked = resolved_.emplace_back(Resolved{Show(item), {}});
  if (calls_.resolve == nullptr)
    return Status(Code::kInvalid, "the program's load planner has items to be resolved, and no `resolve`");
  CAIRN_RETURN_IF_ERROR(Said(calls_.resolve(&asked.item, &asked.memory, calls_.user), "resolve"));
  const int64_t element_bytes = DTypeBytes(from.dtype);
  Dims strides = Get(&from, asked.memory.stride);
  const bool dense = std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 0; });
  bool fits = asked.memory.data != nullptr;
  for (int d = strides.size() - 1; d >= 0; --d) {
    if (dense) {
      strides[d] = d + 1 < strides.size() ? strides[d + 1] * item.box.extent[d + 1] : element_bytes;
    } else {
      fits &= !__builtin_mul_overflow(strides[d], element_bytes, &strides[d]);
    }
  }
  if (!fits)
    return Status(Code::kInvalid, "the program's load planner resolves a box of \"" + from.name +
                                      "\" to no memory, or to strides that are too long");
  return Destination{static_cast<std::byte*>(asked.memory.data), item.box, strides, element_bytes};
}

Status LoadPlanner::Commit() {
  for (const Resolved& done : resolved_) {
    if (calls_.commit == nullptr) break;
    CAIRN_RETURN_IF_ERROR(Said(calls_.commit(&done.item, &done.memory, calls_.user), "commit"));
  }
  return OkStatus();
}

}  // namespace cairn

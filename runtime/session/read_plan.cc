#include "runtime/session/read_plan.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "planner/box_index.h"
#include "planner/layout_index.h"
#include "runtime/formats/cbor.h"

namespace cairn {
namespace {

using nlohmann::json;

Dims InOrderOf(const ArraySpec& array, const Dims& dims) { return array.fortran ? Reversed(dims) : dims; }

// As the program counts the dimensions.
std::string ForPeople(const ArraySpec& array, const Box& box) {
  return Box{InOrderOf(array, box.offset), InOrderOf(array, box.extent)}.ToString();
}

// Dimensions of `a` as `b` has them, where the two are stored in different orders.
Dims Between(const ArraySpec& a, const ArraySpec& b, const Dims& dims) {
  return a.fortran == b.fortran ? dims : Reversed(dims);
}

Dims Difference(Dims a, const Dims& b) {
  for (int d = 0; d < a.size(); ++d) a[d] -= b[d];
  return a;
}

// Takes what lies in `part` away from `boxes`, which stay disjoint if they are.
void Remove(const Box& part, std::vector<Box>* boxes) {
  std::vector<Box> rest;
  for (const Box& box : *boxes) {
    if (const auto common = Intersect(box, part)) {
      Subtract(box, *common, &rest);
    } else {
      rest.push_back(box);
    }
  }
  boxes->swap(rest);
}

class Joiner {
 public:
  Joiner(const std::vector<ArraySpec>& saved, const State& state)
      : saved_(saved), state_(state), layout_(state.layout) {}

  Result<JoinedPlans> Join(const std::vector<ReadPlan>& plans) {
    out_.fills.resize(state_.layout.arrays.size());
    std::map<uint32_t, std::vector<Piece>> wanted;  // by saved array
    for (uint32_t rank = 0; rank < plans.size(); ++rank) {
      pieces_ = layout_.PiecesOf(rank);
      placed_.clear();
      ReadPlan& joined = out_.plans.emplace_back();
      const std::string title = "the load plan of rank " + std::to_string(rank) + ", item ";
      for (size_t i = 0; i < plans[rank].size(); ++i)
        CAIRN_RETURN_IF_ERROR(Add(i, plans[rank][i], &joined).Annotate(title + std::to_string(i)));
      for (const auto& [piece, placed] : placed_) CAIRN_RETURN_IF_ERROR(AddOnce(title, placed, &joined));
      std::stable_sort(joined.begin(), joined.end(),
                       [](const ReadItem& a, const ReadItem& b) { return a.from < b.from; });
      uint32_t ordinal = 0;
      for (size_t i = 0; i < joined.size(); ++i) {
        ordinal = i > 0 && joined[i - 1].from == joined[i].from ? ordinal + 1 : 0;
        wanted[joined[i].from].push_back({0, rank, ordinal, joined[i].box});
      }
    }
    out_.wanted.world_size = state_.layout.world_size;
    for (auto& [from, pieces] : wanted) {
      for (Piece& piece : pieces) {
        piece.array = static_cast<uint32_t>(out_.wanted.arrays.size());
        out_.wanted.pieces.push_back(piece);
      }
      out_.wanted.arrays.push_back(saved_[from]);
      out_.wanted.grids.rule_of.push_back(kNoRule);
    }
    return std::move(out_);
  }

 private:
  // A part of an item that goes into one of the rank's pieces.
  struct Placed {
    size_t number = 0;  // of the item, in its plan
    ReadItem item;
    Box target;
  };

  Status Add(size_t number, const ReadItem& item, ReadPlan* joined) {
    // The program's are signed.
    if (item.from >= saved_.size())
      return {Code::kInvalid, "asks for saved array " + std::to_string(static_cast<int32_t>(item.from)) +
                                  ", of " + std::to_string(saved_.size())};
    if (item.to >= state_.layout.arrays.size())
      return {Code::kInvalid, "is for array " + std::to_string(static_cast<int32_t>(item.to)) +
                                  " of the program, of " + std::to_string(state_.layout.arrays.size())};
    const ArraySpec& from = saved_[item.from];
    const ArraySpec& to = state_.layout.arrays[item.to];
    if (state_.tables.contains(to.name) || state_.tables.contains(from.name))
      return {Code::kInvalid, "is for table \"" + to.name + "\", whose rows are dealt out without a plan"};
    if (!CheckBox(from, item.box).ok()) {  // its ends may not fit 63 bits
      return {Code::kInvalid, "asks for " + InOrderOf(from, item.box.extent).ToString() + " elements at " +
                                  InOrderOf(from, item.box.offset).ToString() + " of the saved array \"" +
                                  from.name + "\", which is " + DescribeArray(from)};
    }
    if (item.box.empty()) return OkStatus();
    out_.fills[item.to].insert(item.from);
    if (item.resolve) {
      joined->push_back(item);
      return OkStatus();
    }
    return Cut(number, item, from, to);
  }

  // Into one part for each of the rank's pieces that the target meets.
  Status Cut(size_t number, const ReadItem& item, const ArraySpec& from, const ArraySpec& to) {
    const std::string brings = "brings " + ForPeople(from, item.box) + " of \"" + from.name + "\", " +
                               DescribeArray(from) + ", into \"" + to.name + "\", " + DescribeArray(to);
    if (from.dtype != to.dtype || from.shape.size() != to.shape.size()) {
      return {Code::kInvalid, brings +
                                  ": without `resolve` the element type and the number of dimensions of the "
                                  "two are equal"};
    }
    const Box target = TargetOf(item, from, to);
    if (target.offset.size() != to.shape.size() || !CheckBox(to, target).ok())
      return {Code::kInvalid,
              brings + ", at " + InOrderOf(to, item.to_offset).ToString() + ": it reaches outside"};
    const auto begin = std::find_if(pieces_.begin(), pieces_.end(),
                                    [&](const Piece& piece) { return piece.array == item.to; });
    std::vector<Box> missing = {target};
    for (auto piece = begin; piece != pieces_.end() && piece->array == item.to; ++piece) {
      const auto part = Intersect(target, piece->box);
      if (!part) continue;
      Remove(*part, &missing);
      ReadItem cut = PartOf(item, target, *part);
      cut.piece = piece->ordinal;
      placed_[{item.to, piece->ordinal}].push_back({number, std::move(cut), *part});
    }
    if (missing.empty()) return OkStatus();
    return {Code::kInvalid, brings + ", at " + InOrderOf(to, item.to_offset).ToString() +
                                ": of that, the rank has no piece of " + ForPeople(to, missing.front())};
  }

  // What of `item`, which goes to `target`, goes to the part of it.
  ReadItem PartOf(const ReadItem& item, const Box& target, const Box& part) const {
    const ArraySpec &from = saved_[item.from], &to = state_.layout.arrays[item.to];
    const Dims begins = Between(to, from, Difference(part.offset, target.offset));
    ReadItem out = item;
    for (int d = 0; d < begins.size(); ++d) out.box.offset[d] += begins[d];
    out.box.extent = Between(to, from, part.extent);
    out.to_offset = part.offset;
    return out;
  }

  // All that goes into one piece, each element once: the exchange writes it from several threads, and hands it on from there. The rank's pieces may
  // overlap, so that already the default plan brings some elements into each of them several times.
  Status AddOnce(const std::string& title, const std::vector<Placed>& all, ReadPlan* joined) const {
    std::vector<const Box*> targets;
    for (const Placed& placed : all) targets.push_back(&placed.target);
    const BoxIndex index(targets);
    for (size_t i = 0; i < all.size(); ++i) {
      const ReadItem& item = all[i].item;
      std::vector<Box> rest = {all[i].target};
      for (const uint32_t earlier : index.Meeting(all[i].target)) {
        if (earlier >= i) continue;
        const Placed& other = all[earlier];
        const ArraySpec& to = state_.layout.arrays[item.to];
        if (item.from != other.item.from ||
            !(Difference(item.box.offset, other.item.box.offset) ==
              Between(to, saved_[item.from], Difference(item.to_offset, other.item.to_offset)))) {
          return {Code::kInvalid, title + std::to_string(all[i].number) + ": brings something into " +
                                      ForPeople(to, *Intersect(all[i].target, other.target)) + " of \"" +
                                      to.name + "\", where item " + std::to_string(other.number) +
                                      " brings something else"};
        }
        Remove(other.target, &rest);
      }
      for (const Box& part : rest) joined->push_back(PartOf(item, all[i].target, part));
    }
    return OkStatus();
  }

  const std::vector<ArraySpec>& saved_;
  const State& state_;
  const LayoutIndex layout_;
  // Of the rank whose plan is looked at.
  std::vector<Piece> pieces_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Placed>> placed_;  // by array and piece
  JoinedPlans out_;
};

}  // namespace

ReadPlan DefaultPlan(const std::vector<ArraySpec>& saved, const State& state,
                     const std::vector<ItemDifference>& differences, uint32_t rank) {
  const std::vector<ArraySpec>& arrays = state.layout.arrays;
  std::unordered_map<std::string_view, uint32_t> position;
  for (uint32_t i = 0; i < saved.size(); ++i) position.emplace(saved[i].name, i);
  std::unordered_map<std::string_view, const ItemDifference*> differs;
  for (const ItemDifference& difference : differences) differs.emplace(difference.name, &difference);
  ReadPlan plan;
  for (const Piece& piece : LayoutIndex(state.layout).PiecesOf(rank)) {
    const ArraySpec& array = arrays[piece.array];
    const auto difference = differs.find(array.name);
    const bool differ = difference != differs.end();
    if (state.tables.contains(array.name) || (differ && difference->second->kind != ItemDifference::kRenamed))
      continue;
    const auto from = position.find(differ ? difference->second->saved_name : array.name);
    if (from == position.end() || !IsAlike(saved[from->second], array)) continue;
    plan.push_back({from->second, piece.box, piece.array, piece.box.offset});
  }
  return plan;
}

Box TargetOf(const ReadItem& item, const ArraySpec& saved, const ArraySpec& registered) {
  return {item.to_offset, Between(saved, registered, item.box.extent)};
}

Result<JoinedPlans> JoinPlans(const std::vector<ReadPlan>& plans, const std::vector<ArraySpec>& saved,
                              const State& state) {
  return Joiner(saved, state).Join(plans);
}

Result<std::vector<std::string>> EncodePlans(const std::vector<ReadPlan>& plans) {
  std::vector<std::string> out;
  size_t bytes = 0;
  for (const ReadPlan& plan : plans) {
    json items = json::array();
    for (const ReadItem& item : plan) {
      const auto list = [](const Dims& dims) { return std::vector<int64_t>(dims.begin(), dims.end()); };
      items.push_back({item.from, list(item.box.offset), list(item.box.extent), item.to, list(item.to_offset),
                       item.resolve, item.piece});
    }
    json::to_cbor(items, out.emplace_back());
    CAIRN_RETURN_IF_ERROR(CheckPlansFit(bytes += out.back().size()));
  }
  return out;
}

Status CheckPlansFit(size_t bytes) {
  if (bytes <= kMaxPlansBytes) return OkStatus();
  return {Code::kInvalid, "the load plans of all ranks take more than " +
                              std::to_string(kMaxPlansBytes >> 20) +
                              " MiB; describe them by fewer, larger boxes"};
}

Result<ReadPlan> DecodePlan(std::string_view bytes) {
  try {
    const auto dims = [](const json& in) {
      Dims out;
      if (in.size() > kMaxRank) throw std::invalid_argument("too many dimensions");
      for (const json& v : in) out.push_back(v.get<int64_t>());
      return out;
    };
    ReadPlan plan;
    for (const json& in : ParseCbor(bytes)) {
      plan.push_back({in.at(0).get<uint32_t>(),
                      {dims(in.at(1)), dims(in.at(2))},
                      in.at(3).get<uint32_t>(),
                      dims(in.at(4)),
                      in.at(5).get<bool>(),
                      in.at(6).get<uint32_t>()});
    }
    return plan;
  } catch (const std::exception& e) {
    return Status(Code::kInternal, std::string("a load plan cannot be read: ") + e.what());
  }
}

}  // namespace cairn

#include "runtime/session/read_plan.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "planner/layout_index.h"
#include "runtime/formats/cbor.h"

namespace cairn {
namespace {

using nlohmann::json;

// A message holds 64 MiB.
constexpr size_t kMaxPlansBytes = size_t{48} << 20;

Dims InOrderOf(const ArraySpec& array, const Dims& dims) { return array.fortran ? Reversed(dims) : dims; }

// As the program counts the dimensions.
std::string ForPeople(const ArraySpec& array, const Box& box) {
  return Box{InOrderOf(array, box.offset), InOrderOf(array, box.extent)}.ToString();
}

// Dimensions of `a` as `b` has them, where the two are stored in different orders.
Dims Between(const ArraySpec& a, const ArraySpec& b, const Dims& dims) {
  return a.fortran == b.fortran ? dims : Reversed(dims);
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
      ReadPlan& joined = out_.plans.emplace_back();
      for (size_t i = 0; i < plans[rank].size(); ++i) {
        CAIRN_RETURN_IF_ERROR(
            Add(plans[rank][i], &joined)
                .Annotate("the load plan of rank " + std::to_string(rank) + ", item " + std::to_string(i)));
      }
      // Pieces of one rank may overlap, and items may ask for the same twice.
      const auto key = [](const ReadItem& item) {
        return std::tie(item.from, item.box, item.to, item.to_offset, item.piece, item.resolve);
      };
      std::stable_sort(joined.begin(), joined.end(),
                       [](const ReadItem& a, const ReadItem& b) { return a.from < b.from; });
      std::set<decltype(key(joined.front()))> known;
      ReadPlan once;
      for (const ReadItem& item : joined) {
        if (item.resolve || known.insert(key(item)).second) once.push_back(item);
      }
      joined.swap(once);
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
  Status Add(const ReadItem& item, ReadPlan* joined) {
    if (item.from >= saved_.size())
      return {Code::kInvalid,
              "asks for saved array " + std::to_string(item.from) + ", of " + std::to_string(saved_.size())};
    if (item.to >= state_.layout.arrays.size())
      return {Code::kInvalid, "is for array " + std::to_string(item.to) + " of the program, of " +
                                  std::to_string(state_.layout.arrays.size())};
    const ArraySpec& from = saved_[item.from];
    const ArraySpec& to = state_.layout.arrays[item.to];
    if (state_.tables.contains(to.name) || state_.tables.contains(from.name))
      return {Code::kInvalid, "is for table \"" + to.name + "\", whose rows are dealt out without a plan"};
    if (!CheckBox(from, item.box).ok()) {
      return {Code::kInvalid, "asks for " + ForPeople(from, item.box) + " of the saved array \"" + from.name +
                                  "\", which is " + DescribeArray(from)};
    }
    if (item.box.empty()) return OkStatus();
    out_.fills[item.to].insert(item.from);
    if (item.resolve) {
      joined->push_back(item);
      return OkStatus();
    }
    return Cut(item, from, to, joined);
  }

  // Into one item for each of the rank's pieces that the target meets.
  Status Cut(const ReadItem& item, const ArraySpec& from, const ArraySpec& to, ReadPlan* joined) {
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
      std::vector<Box> rest;
      for (const Box& box : missing) {
        if (const auto common = Intersect(box, *part)) {
          Subtract(box, *common, &rest);
        } else {
          rest.push_back(box);
        }
      }
      missing.swap(rest);
      ReadItem cut = item;
      Dims begins = part->offset;  // from the target's
      for (int d = 0; d < begins.size(); ++d) begins[d] -= target.offset[d];
      begins = Between(to, from, begins);
      for (int d = 0; d < begins.size(); ++d) cut.box.offset[d] += begins[d];
      cut.box.extent = Between(to, from, part->extent);
      cut.to_offset = part->offset;
      cut.piece = piece->ordinal;
      joined->push_back(std::move(cut));
    }
    if (missing.empty()) return OkStatus();
    return {Code::kInvalid, brings + ", at " + InOrderOf(to, item.to_offset).ToString() +
                                ": of that, the rank has no piece of " + ForPeople(to, missing.front())};
  }

  const std::vector<ArraySpec>& saved_;
  const State& state_;
  const LayoutIndex layout_;
  std::vector<Piece> pieces_;  // of the rank whose plan is looked at
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
  for (const ReadPlan& plan : plans) {
    json items = json::array();
    for (const ReadItem& item : plan) {
      const auto list = [](const Dims& dims) { return std::vector<int64_t>(dims.begin(), dims.end()); };
      items.push_back({item.from, list(item.box.offset), list(item.box.extent), item.to, list(item.to_offset),
                       item.resolve, item.piece});
    }
    json::to_cbor(items, out.emplace_back());
  }
  CAIRN_RETURN_IF_ERROR(CheckPlansFit(out));
  return out;
}

Status CheckPlansFit(const std::vector<std::string>& plans) {
  size_t bytes = 0;
  for (const std::string& plan : plans) bytes += plan.size();
  if (bytes <= kMaxPlansBytes) return OkStatus();
  return {Code::kInvalid, "the load plans of all ranks take " + std::to_string(bytes) + " bytes, more than " +
                              std::to_string(kMaxPlansBytes) + "; describe them by fewer, larger boxes"};
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

#include "runtime/session/state.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/formats/cbor.h"

namespace cairn {
namespace {

using nlohmann::json;

json ToJson(const Dims& dims) {
  json out = json::array();
  for (int64_t v : dims) out.push_back(v);
  return out;
}

Dims ToDims(const json& in) {
  Dims out;
  if (in.size() > kMaxRank) throw std::invalid_argument("too many dimensions");
  for (const json& v : in) out.push_back(v.get<int64_t>());
  return out;
}

json ToJson(const ArraySpec& spec) {
  return {{"name", spec.name},
          {"dtype", static_cast<int>(spec.dtype)},
          {"fortran", spec.fortran},
          {"shape", ToJson(spec.shape)}};
}

ArraySpec ToSpec(const json& in) {
  ArraySpec spec;
  spec.name = in.at("name").get<std::string>();
  const int dtype = in.at("dtype").get<int>();
  if (dtype < 0 || dtype >= kDTypeCount) throw std::invalid_argument("unknown dtype");
  spec.dtype = static_cast<DType>(dtype);
  spec.fortran = in.at("fortran").get<bool>();
  spec.shape = ToDims(in.at("shape"));
  return spec;
}

std::vector<BlobSpec> ToBlobs(const json& in) {
  std::vector<BlobSpec> blobs;
  for (const json& b : in) blobs.push_back({b.at(0).get<std::string>(), b.at(1).get<int>()});
  return blobs;
}

std::string ToCbor(const json& value) {
  std::string out;
  json::to_cbor(value, out);
  return out;
}

Status Disagree(const std::string& name, size_t rank, const std::string& what) {
  return {Code::kInvalid, "item \"" + name + "\": rank 0 and rank " + std::to_string(rank) + " disagree: " +
                              what + "; every rank must add every item with the same type and global shape"};
}

}  // namespace

std::string DescribeArray(const ArraySpec& spec) {
  Dims shape = spec.shape;
  if (spec.fortran) std::reverse(&shape[0], &shape[0] + shape.size());
  return shape.ToString() + " " + std::string(DTypeName(spec.dtype)) +
         (spec.fortran ? " (Fortran order)" : "");
}

std::string EncodeShare(const Items& items) {
  json arrays = json::array(), blobs = json::array(), list_of = json::array(), lists = json::array();
  json row_bytes = json::object(), capacity = json::object();  // of tables
  std::map<std::vector<Box>, size_t> known;
  for (const RegisteredTable& table : items.tables()) {
    row_bytes[table.name] = table.row_bytes;
    capacity[table.name] = table.capacity;
  }
  for (const RegisteredArray& array : items.arrays()) {
    if (array.table) continue;
    arrays.push_back(ToJson(array.spec));
    arrays.back()["optional"] = array.optional;
    std::vector<Box> boxes;
    for (const LocalPiece& piece : array.pieces) boxes.push_back(piece.box);
    const auto [it, is_new] = known.emplace(std::move(boxes), lists.size());
    if (is_new) {
      json list = json::array();
      for (const Box& box : it->first) list.push_back({ToJson(box.offset), ToJson(box.extent)});
      lists.push_back(std::move(list));
    }
    list_of.push_back(it->second);
  }
  for (const RegisteredBlob& blob : items.blobs()) blobs.push_back({blob.name, blob.policy});
  return ToCbor({{"items", ToCbor({{"arrays", std::move(arrays)},
                                   {"blobs", std::move(blobs)},
                                   {"tables", std::move(row_bytes)}})},
                 {"capacity", std::move(capacity)},
                 {"outputs", items.outputs().paths()},
                 {"list_of", std::move(list_of)},
                 {"lists", std::move(lists)}});
}

Status ShareMerger::Begin(const std::string& items) {
  const json in = ParseCbor(items);
  for (const json& entry : in.at("arrays")) {
    arrays_.push_back(ToSpec(entry));
    optional_.push_back(entry.at("optional").get<bool>());
    position_.emplace(arrays_.back().name, static_cast<uint32_t>(arrays_.size() - 1));
  }
  blobs_ = ToBlobs(in.at("blobs"));
  row_bytes_ = in.at("tables").get<std::map<std::string, int64_t>>();
  items_ = items;
  CAIRN_ASSIGN_OR_RETURN(builder_, LayoutBuilder::Make(arrays_));
  return OkStatus();
}

// Puts the lists of a rank that registered other items than rank 0, or in another order, into the order of arrays_.
Status ShareMerger::Match(const std::string& items, size_t rank, std::vector<uint32_t>* list_of,
                          std::vector<std::vector<Box>>* lists) {
  const json in = ParseCbor(items);
  std::vector<std::optional<uint32_t>> ordered(arrays_.size());
  for (size_t i = 0; i < in.at("arrays").size(); ++i) {
    const json& entry = in.at("arrays")[i];
    const ArraySpec spec = ToSpec(entry);
    const auto optional = entry.at("optional").get<bool>();
    const auto [it, is_new] = position_.emplace(spec.name, static_cast<uint32_t>(arrays_.size()));
    if (is_new) {
      if (!optional) return Disagree(spec.name, rank, "rank 0 has no such array");
      CAIRN_RETURN_IF_ERROR(builder_->AddArray(spec));
      arrays_.push_back(spec);
      optional_.push_back(true);
      ordered.emplace_back();
    }
    const ArraySpec& first = arrays_[it->second];
    if (!(first == spec))
      return Disagree(spec.name, rank, DescribeArray(first) + " against " + DescribeArray(spec));
    if (optional != optional_[it->second]) return Disagree(spec.name, rank, "optional in one of them alone");
    ordered[it->second] = list_of->at(i);
  }
  list_of->clear();
  const auto nothing = static_cast<uint32_t>(lists->size());
  lists->emplace_back();
  for (size_t a = 0; a < arrays_.size(); ++a) {
    if (!ordered[a] && !optional_[a])
      return Disagree(arrays_[a].name, rank, "rank " + std::to_string(rank) + " has no such array");
    list_of->push_back(ordered[a].value_or(nothing));
  }
  const auto row_bytes = in.at("tables").get<std::map<std::string, int64_t>>();
  for (const auto& [name, bytes] : row_bytes) {
    const auto it = row_bytes_.find(name);
    if (it == row_bytes_.end() || it->second != bytes)
      return Disagree(name, rank, "a table, or its bytes of a row, unknown to rank 0");
  }
  if (row_bytes.size() != row_bytes_.size())
    return Disagree(row_bytes_.begin()->first, rank, "not the same tables");
  const std::vector<BlobSpec> blobs = ToBlobs(in.at("blobs"));
  for (const BlobSpec& blob : blobs) {
    if (std::find(blobs_.begin(), blobs_.end(), blob) == blobs_.end())
      return Disagree(blob.name, rank, "blob or policy unknown to rank 0");
  }
  if (blobs.size() != blobs_.size()) return Disagree(blobs_.front().name, rank, "not the same blobs");
  return OkStatus();
}

Status ShareMerger::Add(std::string_view share) {
  const size_t rank = ranks_++;
  try {
    const json in = ParseCbor(share);
    const auto& items = in.at("items").get_ref<const std::string&>();
    auto list_of = in.at("list_of").get<std::vector<uint32_t>>();
    std::vector<std::vector<Box>> lists;
    for (const json& list : in.at("lists")) {
      lists.emplace_back();
      for (const json& box : list) lists.back().push_back({ToDims(box.at(0)), ToDims(box.at(1))});
    }
    for (const json& path : in.at("outputs")) {
      const auto [owner, is_new] = owner_of_.emplace(path.get<std::string>(), rank);
      if (is_new) continue;
      return {Code::kInvalid, "output \"" + owner->first + "\" is added by rank " +
                                  std::to_string(owner->second) + " and by rank " + std::to_string(rank) +
                                  "; the one rank that writes the file adds it"};
    }
    if (rank == 0) CAIRN_RETURN_IF_ERROR(Begin(items));
    if (items != items_ || list_of.size() != arrays_.size())
      CAIRN_RETURN_IF_ERROR(Match(items, rank, &list_of, &lists));
    for (const auto& [name, rows] : in.at("capacity").items())
      rooms_[name][static_cast<uint32_t>(rank)] = rows.get<int64_t>();
    return builder_->AddRank(list_of, lists);
  } catch (const std::exception& e) {
    return {Code::kInternal, "items of rank " + std::to_string(rank) + " cannot be read: " + e.what()};
  }
}

Result<State> ShareMerger::Finish() && {
  if (!builder_) return Status(Code::kInternal, "no rank has a share");
  State state;
  CAIRN_ASSIGN_OR_RETURN(state.layout, std::move(*builder_).Finish());
  state.blobs = std::move(blobs_);
  for (const auto& [name, row_bytes] : row_bytes_) {
    state.layout.arrays.push_back({name, DType::kU8, false, {0, row_bytes}});
    state.layout.grids.rule_of.push_back(kNoRule);
    state.tables.insert(name);
  }
  CAIRN_RETURN_IF_ERROR(SetRooms(rooms_, &state));
  return state;
}

std::map<std::string, int64_t> RoomsThatChanged(const Items& items, const State& state, int rank) {
  std::map<std::string, int64_t> changed;
  for (const RegisteredTable& table : items.tables()) {
    int64_t known = 0;
    for (const Piece& piece : state.layout.pieces) {
      if (static_cast<int>(piece.rank) == rank && state.layout.arrays[piece.array].name == table.name)
        known = piece.box.extent[0];
    }
    if (table.capacity != known) changed[table.name] = table.capacity;
  }
  return changed;
}

Status SetRooms(const TableRooms& rooms, State* state) {
  Layout& layout = state->layout;
  std::map<uint32_t, std::vector<int64_t>>
      rows_of;  // by table's array, then rank; tables stand behind all other arrays
  for (uint32_t a = 0; a < layout.arrays.size(); ++a) {
    if (state->tables.contains(layout.arrays[a].name)) rows_of[a].resize(layout.world_size);
  }
  std::erase_if(layout.pieces, [&](const Piece& piece) {
    const auto table = rows_of.find(piece.array);
    if (table != rows_of.end()) table->second[piece.rank] = piece.box.extent[0];
    return table != rows_of.end();
  });
  for (const auto& room : rooms) {
    const std::string& name = room.first;
    const std::map<uint32_t, int64_t>& by_rank = room.second;
    const auto table = std::find_if(rows_of.begin(), rows_of.end(),
                                    [&](const auto& t) { return layout.arrays[t.first].name == name; });
    if (table == rows_of.end() || (!by_rank.empty() && by_rank.rbegin()->first >= layout.world_size))
      return {Code::kInternal,
              "the room of table \"" + name + "\" is told of a table or a rank that is not there"};
    for (const auto& [rank, rows] : by_rank) table->second[rank] = rows;
  }
  for (const auto& [array, rows] : rows_of) {
    const int64_t row_bytes = layout.arrays[array].shape[1];
    int64_t first = 0;
    for (uint32_t rank = 0; rank < layout.world_size; ++rank) {
      if (rows[rank] > 0) layout.pieces.push_back({array, rank, 0, {{first, 0}, {rows[rank], row_bytes}}});
      first += rows[rank];
    }
    layout.arrays[array].shape[0] = first;
  }
  return ValidateLayout(layout);
}

std::string EncodeState(const State& state) {
  json arrays = json::array(), cuts = json::array(), rules = json::array();
  for (const ArraySpec& spec : state.layout.arrays) arrays.push_back(ToJson(spec));
  for (const Cuts& c : state.layout.grids.cuts) {
    json runs = json::array();
    for (const Cuts::Run& run : c.runs()) runs.push_back({run.parts, run.length});
    cuts.push_back(std::move(runs));
  }
  for (const GridRule& rule : state.layout.grids.rules) {
    json axes = json::array();
    for (const GridAxis& a : rule.axes) axes.push_back({a.count, a.rank_stride, a.part_stride, a.dim});
    rules.push_back({rule.first_rank, std::move(axes), rule.cuts});
  }
  json pieces = json::array();
  for (const Piece& p : state.layout.pieces) {
    pieces.push_back({p.array, p.rank, p.ordinal, ToJson(p.box.offset), ToJson(p.box.extent)});
  }
  json blobs = json::array();
  for (const BlobSpec& blob : state.blobs) blobs.push_back({blob.name, blob.policy});
  return ToCbor({{"world", state.layout.world_size},
                 {"arrays", std::move(arrays)},
                 {"cuts", std::move(cuts)},
                 {"rules", std::move(rules)},
                 {"rule_of", state.layout.grids.rule_of},
                 {"pieces", std::move(pieces)},
                 {"blobs", std::move(blobs)},
                 {"tables", state.tables},
                 {"writer_of", state.writer_of}});
}

Result<State> DecodeState(std::string_view bytes) {
  try {
    const json in = ParseCbor(bytes);
    State state;
    state.layout.world_size = in.at("world").get<uint32_t>();
    for (const json& entry : in.at("arrays")) state.layout.arrays.push_back(ToSpec(entry));
    GridTable& grids = state.layout.grids;
    for (const json& entry : in.at("cuts")) {
      std::vector<Cuts::Run> runs;
      for (const json& run : entry) runs.push_back({run.at(0).get<uint64_t>(), run.at(1).get<uint64_t>()});
      CAIRN_ASSIGN_OR_RETURN(Cuts cuts, Cuts::FromRuns(runs));
      grids.cuts.push_back(std::move(cuts));
    }
    for (const json& entry : in.at("rules")) {
      GridRule& rule = grids.rules.emplace_back();
      rule.first_rank = entry.at(0).get<uint32_t>();
      for (const json& a : entry.at(1))
        rule.axes.push_back({a.at(0).get<uint32_t>(), a.at(1).get<uint32_t>(), a.at(2).get<uint32_t>(),
                             a.at(3).get<int32_t>()});
      rule.cuts = entry.at(2).get<std::vector<uint32_t>>();
    }
    grids.rule_of = in.at("rule_of").get<std::vector<uint32_t>>();
    for (const json& p : in.at("pieces")) {
      state.layout.pieces.push_back({p.at(0).get<uint32_t>(), p.at(1).get<uint32_t>(),
                                     p.at(2).get<uint32_t>(), Box{ToDims(p.at(3)), ToDims(p.at(4))}});
    }
    state.blobs = ToBlobs(in.at("blobs"));
    state.tables = in.at("tables").get<std::set<std::string>>();
    state.writer_of = in.value("writer_of", std::vector<uint32_t>());
    CAIRN_RETURN_IF_ERROR(CheckGrids(grids, state.layout.world_size));
    return state;
  } catch (const std::exception& e) {
    return Status(Code::kInternal, std::string("the merged layout cannot be read: ") + e.what());
  }
}

}  // namespace cairn

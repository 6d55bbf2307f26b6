#include "runtime/session/state.h"

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

std::string ToCbor(const json& value) {
  std::string out;
  json::to_cbor(value, out);
  return out;
}

std::string Describe(const ArraySpec& spec) {
  Dims shape = spec.shape;
  if (spec.fortran) std::reverse(&shape[0], &shape[0] + shape.size());
  return shape.ToString() + " " + std::string(DTypeName(spec.dtype)) +
         (spec.fortran ? " (Fortran order)" : "");
}

Status Disagree(const std::string& name, size_t rank, const std::string& what) {
  return {Code::kInvalid, "item \"" + name + "\": rank 0 and rank " + std::to_string(rank) + " disagree: " +
                              what + "; every rank must add every item with the same type and global shape"};
}

}  // namespace

std::string EncodeShare(const Items& items) {
  json arrays = json::array();
  for (const RegisteredArray& array : items.arrays()) {
    json pieces = json::array();
    for (const LocalPiece& piece : array.pieces)
      pieces.push_back({ToJson(piece.box.offset), ToJson(piece.box.extent)});
    json entry = ToJson(array.spec);
    entry["pieces"] = std::move(pieces);
    arrays.push_back(std::move(entry));
  }
  json blobs = json::array();
  for (const RegisteredBlob& blob : items.blobs())
    blobs.push_back({{"name", blob.name}, {"policy", blob.policy}});
  return ToCbor({{"arrays", std::move(arrays)}, {"blobs", std::move(blobs)}});
}

Result<State> MergeShares(std::span<const std::string> shares) {
  State state;
  state.layout.world_size = static_cast<uint32_t>(shares.size());
  std::map<std::string, uint32_t> position;
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    try {
      const json share = ParseCbor(shares[rank]);
      size_t arrays = 0;
      for (const json& entry : share.at("arrays")) {
        const ArraySpec spec = ToSpec(entry);
        if (rank == 0) {
          position.emplace(spec.name, static_cast<uint32_t>(state.layout.arrays.size()));
          state.layout.arrays.push_back(spec);
        }
        const auto it = position.find(spec.name);
        if (it == position.end()) return Disagree(spec.name, rank, "rank 0 has no such array");
        const ArraySpec& first = state.layout.arrays[it->second];
        if (!(first == spec))
          return Disagree(spec.name, rank, Describe(first) + " against " + Describe(spec));
        uint32_t ordinal = 0;
        for (const json& piece : entry.at("pieces")) {
          state.layout.pieces.push_back({it->second, static_cast<uint32_t>(rank), ordinal++,
                                         Box{ToDims(piece.at(0)), ToDims(piece.at(1))}});
        }
        ++arrays;
      }
      if (arrays != state.layout.arrays.size()) {
        for (const ArraySpec& spec : state.layout.arrays) {
          bool there = false;
          for (const json& entry : share.at("arrays")) there |= entry.at("name") == spec.name;
          if (!there) return Disagree(spec.name, rank, "rank " + std::to_string(rank) + " has no such array");
        }
      }
      std::vector<BlobSpec> blobs;
      for (const json& entry : share.at("blobs"))
        blobs.push_back({entry.at("name").get<std::string>(), entry.at("policy").get<int>()});
      if (rank == 0) state.blobs = blobs;
      for (const BlobSpec& blob : blobs) {
        if (std::find(state.blobs.begin(), state.blobs.end(), blob) == state.blobs.end()) {
          return Disagree(blob.name, rank, "blob or policy unknown to rank 0");
        }
      }
      if (blobs.size() != state.blobs.size())
        return Disagree(state.blobs.front().name, rank, "not the same blobs");
    } catch (const std::exception& e) {
      return Status(Code::kInternal,
                    "items of rank " + std::to_string(rank) + " cannot be read: " + e.what());
    }
  }
  std::stable_sort(state.layout.pieces.begin(), state.layout.pieces.end(),
                   [](const Piece& a, const Piece& b) {
                     return std::tie(a.array, a.rank, a.ordinal) < std::tie(b.array, b.rank, b.ordinal);
                   });
  CAIRN_RETURN_IF_ERROR(ValidateLayout(state.layout));
  return state;
}

std::string EncodeState(const State& state) {
  json arrays = json::array();
  for (const ArraySpec& spec : state.layout.arrays) arrays.push_back(ToJson(spec));
  json pieces = json::array();
  for (const Piece& p : state.layout.pieces) {
    pieces.push_back({p.array, p.rank, p.ordinal, ToJson(p.box.offset), ToJson(p.box.extent)});
  }
  json blobs = json::array();
  for (const BlobSpec& blob : state.blobs) blobs.push_back({blob.name, blob.policy});
  return ToCbor({{"world", state.layout.world_size},
                 {"arrays", std::move(arrays)},
                 {"pieces", std::move(pieces)},
                 {"blobs", std::move(blobs)}});
}

Result<State> DecodeState(std::string_view bytes) {
  try {
    const json in = ParseCbor(bytes);
    State state;
    state.layout.world_size = in.at("world").get<uint32_t>();
    for (const json& entry : in.at("arrays")) state.layout.arrays.push_back(ToSpec(entry));
    for (const json& p : in.at("pieces")) {
      state.layout.pieces.push_back({p.at(0).get<uint32_t>(), p.at(1).get<uint32_t>(),
                                     p.at(2).get<uint32_t>(), Box{ToDims(p.at(3)), ToDims(p.at(4))}});
    }
    for (const json& b : in.at("blobs"))
      state.blobs.push_back({b.at(0).get<std::string>(), b.at(1).get<int>()});
    return state;
  } catch (const std::exception& e) {
    return Status(Code::kInternal, std::string("the merged layout cannot be read: ") + e.what());
  }
}

std::vector<std::string> CompareItems(const std::vector<ArraySpec>& saved,
                                      const std::vector<BlobSpec>& saved_blobs, const State& now) {
  std::vector<std::string> lines;
  std::map<std::string, const ArraySpec*> registered;
  for (const ArraySpec& spec : now.layout.arrays) registered.emplace(spec.name, &spec);
  for (const ArraySpec& spec : saved) {
    const auto it = registered.find(spec.name);
    if (it == registered.end()) {
      lines.push_back(spec.name + ": saved " + Describe(spec) + ", not registered by the program");
      continue;
    }
    if (!(*it->second == spec))
      lines.push_back(spec.name + ": saved " + Describe(spec) + ", registered " + Describe(*it->second));
    registered.erase(it);
  }
  for (const ArraySpec& spec : now.layout.arrays) {
    if (registered.contains(spec.name))
      lines.push_back(spec.name + ": registered " + Describe(spec) + ", not in the checkpoint");
  }
  for (const BlobSpec& blob : saved_blobs) {
    const bool there = std::any_of(now.blobs.begin(), now.blobs.end(),
                                   [&](const BlobSpec& b) { return b.name == blob.name; });
    if (!there) lines.push_back(blob.name + ": a saved blob, not registered by the program");
  }
  for (const BlobSpec& blob : now.blobs) {
    const bool there = std::any_of(saved_blobs.begin(), saved_blobs.end(),
                                   [&](const BlobSpec& b) { return b.name == blob.name; });
    if (!there) lines.push_back(blob.name + ": a registered blob, not in the checkpoint");
  }
  return lines;
}

}  // namespace cairn

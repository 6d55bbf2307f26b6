#include "runtime/session/loader.h"

#include <algorithm>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "planner/layout_builder.h"
#include "runtime/formats/index.h"
#include "runtime/formats/names.h"
#include "runtime/io/file.h"
#include "runtime/session/table_load.h"

namespace cairn {
namespace {

constexpr uint64_t kMaxIndexBytes = uint64_t{2} << 30;

Result<Index> ReadIndexOnce(const std::string& path, const Hash128& hash) {
  CAIRN_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(path, kMaxIndexBytes));
  if (!(Hash128Of(bytes) == hash))
    return Status(Code::kDamage, path + ": its content is not what the manifest says");
  return DecodeIndex(bytes);
}

// What is to be loaded, and by its arrays their positions in the index. Of tables, which come last, it has the arrays as they were saved; of the
// others too, where the program has planned what is loaded.
struct Loading {
  Layout layout;
  std::vector<uint32_t> saved_array;
  std::vector<TableLoad> tables;

  size_t first_table() const { return layout.arrays.size() - tables.size(); }
};

Result<Loading> FindArrays(const Order& order, const MergedBlobs& merged, const SavedLayout& saved,
                           const State& state, Items& items, std::optional<PlannedLoad>& planned,
                           uint32_t rank) {
  const Layout& layout = state.layout;
  std::unordered_map<std::string_view, uint32_t> position;
  for (uint32_t i = 0; i < saved.arrays.size(); ++i) position.emplace(saved.arrays[i].name, i);
  std::unordered_map<std::string_view, const ItemDifference*> differs;
  for (const ItemDifference& difference : order.differences) differs.emplace(difference.name, &difference);
  Loading loading;
  std::vector<uint32_t> chosen;
  std::vector<std::pair<std::string, uint32_t>> tables;  // name, position in the index
  for (uint32_t a = 0; a < layout.arrays.size(); ++a) {
    const ArraySpec& array = layout.arrays[a];
    const bool table = state.tables.contains(array.name);
    if (planned && !table) continue;
    const auto difference = differs.find(array.name);
    if (difference != differs.end() && difference->second->kind != ItemDifference::kRenamed) continue;
    const auto it = position.find(difference != differs.end() ? difference->second->saved_name : array.name);
    if (it == position.end() || (table ? !IsTableOf(saved.arrays[it->second], array.shape[1])
                                       : !IsAlike(saved.arrays[it->second], array))) {
      return Status(Code::kMismatch,
                    "array \"" + array.name + "\" is not in the checkpoint as the program registered it");
    }
    if (table) {
      tables.emplace_back(array.name, it->second);
      continue;
    }
    chosen.push_back(a);
    loading.saved_array.push_back(it->second);
  }
  if (planned) {
    loading.layout = std::move(planned->wanted);
    for (const ArraySpec& array : loading.layout.arrays)
      loading.saved_array.push_back(position.at(array.name));
  } else {
    loading.layout = SelectArrays(layout, chosen);
  }
  for (const auto& [name, saved_array] : tables) {
    if (std::count(loading.saved_array.begin(), loading.saved_array.end(), saved_array) > 0) {
      return Status(Code::kInvalid, "the load planner reads \"" + saved.arrays[saved_array].name +
                                        "\", whose rows are dealt out to table \"" + name + "\"");
    }
    const auto marks = merged.find(TableRowsName(name));
    if (marks == merged.end()) {
      return Status(Code::kMismatch, "table \"" + name +
                                         "\": the checkpoint has an array of this name, yet no \"" +
                                         TableRowsName(name) + "\"");
    }
    const auto table = std::find_if(items.tables().begin(), items.tables().end(),
                                    [&, &name = name](const RegisteredTable& t) { return t.name == name; });
    CAIRN_ASSIGN_OR_RETURN(
        TableLoad load, TableLoad::Make(items, static_cast<size_t>(table - items.tables().begin()),
                                        marks->second, saved.arrays[saved_array], rank, layout.world_size));
    const auto pieces = load.PiecesOfAll(static_cast<uint32_t>(loading.layout.arrays.size()));
    loading.layout.pieces.insert(loading.layout.pieces.end(), pieces.begin(), pieces.end());
    loading.layout.grids.rule_of.push_back(kNoRule);
    loading.layout.arrays.push_back(saved.arrays[saved_array]);
    loading.saved_array.push_back(saved_array);
    loading.tables.push_back(std::move(load));
  }
  return loading;
}

// By position of the file: the ranks of the node that has a copy of it, where one has.
std::vector<std::vector<uint32_t>> ReadersOf(const std::vector<ShardRecord>& files,
                                             const std::vector<NearNode>& nodes) {
  std::unordered_map<uint32_t, const NearNode*> node_of;
  for (const NearNode& node : nodes) {
    for (const uint32_t number : node.files) node_of.emplace(number, &node);
  }
  std::vector<std::vector<uint32_t>> readers(nodes.empty() ? 0 : files.size());
  for (size_t i = 0; i < readers.size(); ++i) {
    const auto it = node_of.find(files[i].number);
    if (it != node_of.end()) readers[i] = it->second->ranks;
  }
  return readers;
}

std::vector<SourceFile> FilesOf(const Order& order, const Order& foreign, const NearCopies& near,
                                const std::vector<ShardRecord>& records) {
  std::vector<SourceFile> files;
  for (const ShardRecord& file : records) {
    if (foreign.path == order.path) {
      files.push_back({foreign.files[files.size()], "", file.bytes, {}, ""});
      continue;
    }
    const auto copy = near.here.find(file.number);
    files.push_back({order.path + "/" + names::Shard(file.number),
                     order.path + "/" + names::Sums(file.number), file.bytes, file.sums_root,
                     copy == near.here.end() ? "" : copy->second});
  }
  return files;
}

Layout OnlyRank(const Layout& layout, uint32_t rank) {
  return {layout.world_size, layout.arrays, LayoutIndex(layout).PiecesOf(rank), {}};
}

// Where each piece of the plan goes. The layout and the items, or the load planner's plan, list an array's pieces in the same order.
Result<std::vector<Destination>> FindDestinations(const ExchangePlan& plan, Loading& loading,
                                                  const Items& items,
                                                  const std::optional<std::vector<Destination>>& planned) {
  std::unordered_map<std::string_view, std::vector<Destination>> registered;
  for (const RegisteredArray& array : items.arrays()) {
    std::vector<Destination>& pieces = registered[array.spec.name];
    for (const LocalPiece& piece : array.pieces) {
      if (!piece.box.empty())
        pieces.push_back({piece.data, piece.box, piece.stride_bytes, DTypeBytes(array.spec.dtype),
                          array.device ? items.device() : nullptr});
    }
  }
  std::vector<Destination> destinations;
  std::unordered_map<uint32_t, size_t> next;  // by array
  for (const Piece& piece : plan.pieces) {
    if (piece.box.empty()) {
      destinations.push_back({});
      continue;
    }
    if (piece.array >= loading.first_table()) {
      destinations.push_back(loading.tables[piece.array - loading.first_table()].Place(piece));
      continue;
    }
    const std::string& name = loading.layout.arrays[piece.array].name;
    const std::vector<Destination>& pieces = planned ? *planned : registered[name];
    const size_t i = planned ? destinations.size() : next[piece.array]++;
    if (i >= pieces.size() || !(pieces[i].box == piece.box))
      return Status(Code::kInternal,
                    "the merged layout does not have this rank's pieces of array \"" + name + "\"");
    destinations.push_back(pieces[i]);
  }
  return destinations;
}

}  // namespace

// The leader has just read this file: where it is not to be seen, another client's attribute cache is behind. And only what a second read
// reproduces is damage.
Result<Index> ReadIndex(const Order& order, const Order& foreign) {
  if (foreign.path == order.path) return DecodeIndex(foreign.state);
  const std::string file = order.path + "/" + std::string(names::kIndex);
  const auto deadline = std::chrono::steady_clock::now() + LoadOptions().attribute_cache_bound;
  for (;;) {
    auto index = ReadIndexOnce(file, order.index_hash);
    if (!index.ok() && index.status().code() == Code::kDamage) {
      DropCached(file);
      return ReadIndexOnce(file, order.index_hash);
    }
    if (index.ok() || index.status().code() != Code::kNotFound || std::chrono::steady_clock::now() > deadline)
      return index;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

Result<LoadStats> LoadShare(const Order& order, const Order& foreign, const NearCopies& near,
                            const MergedBlobs& merged, const State& state, Items& items,
                            std::optional<PlannedLoad> planned, const ExchangeLinks& links,
                            const CarriedRound* carried) {
  CAIRN_ASSIGN_OR_RETURN(const Index index, ReadIndex(order, foreign));
  const auto rank = static_cast<uint32_t>(links.self.rank);
  CAIRN_ASSIGN_OR_RETURN(Loading loading,
                         FindArrays(order, merged, index.saved, state, items, planned, rank));
  CAIRN_ASSIGN_OR_RETURN(const SavedIndex saved, SavedIndex::Make(index.saved));
  const bool exchange = order.way != Order::kAlone;
  const Layout own = exchange ? Layout() : OnlyRank(loading.layout, rank);
  const LayoutIndex wanted(exchange ? loading.layout : own);
  ExchangeInput input{saved, wanted, loading.saved_array};
  if (exchange) input.readers = ReadersOf(index.files, near.nodes);
  CAIRN_ASSIGN_OR_RETURN(const ExchangePlan plan, PlanExchange(input, rank));
  std::optional<std::vector<Destination>> resolved;
  if (planned) {
    CAIRN_ASSIGN_OR_RETURN(const ReadPlan items_read, DecodePlan(order.plans.front()));
    CAIRN_ASSIGN_OR_RETURN(resolved, planned->planner->Resolve(items_read));
  }
  CAIRN_ASSIGN_OR_RETURN(const std::vector<Destination> destinations,
                         FindDestinations(plan, loading, items, resolved));
  const std::vector<SourceFile> files = FilesOf(order, foreign, near, index.files);
  CAIRN_ASSIGN_OR_RETURN(const LoadStats stats, carried != nullptr
                                                    ? ExecuteCarried(plan, files, destinations, *carried)
                                                    : ExecuteExchange(plan, files, destinations, links));
  for (TableLoad& table : loading.tables) CAIRN_RETURN_IF_ERROR(table.Finish(links, carried));
  return stats;
}

}  // namespace cairn

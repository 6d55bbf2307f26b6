#include "runtime/session/protocol.h"

#include <nlohmann/json.hpp>

#include "runtime/formats/cbor.h"

namespace cairn {
namespace {

using nlohmann::json;

json FromBytes(std::string_view bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  return json::binary(std::vector<uint8_t>(data, data + bytes.size()));
}

std::string ToBytes(const json& in) {
  const auto& binary = in.get_binary();
  return {reinterpret_cast<const char*>(binary.data()), binary.size()};
}

json FromHash(const Hash128& hash) { return hash.ToHex(); }

Hash128 ToHash(const json& in) {
  const auto hash = Hash128::FromHex(in.get<std::string>());
  if (!hash) throw std::invalid_argument("no hash");
  return *hash;
}

json FromStatus(const Status& status) { return {static_cast<int>(status.code()), status.message()}; }

Status ToStatus(const json& in) {
  const int code = in.at(0).get<int>();
  if (code < 0 || code > static_cast<int>(Code::kInternal))
    throw std::invalid_argument("unknown status code");
  return {static_cast<Code>(code), in.at(1).get<std::string>()};
}

json FromBlobs(const std::map<std::string, std::string>& blobs) {
  json out = json::object();
  for (const auto& [name, bytes] : blobs) out[name] = FromBytes(bytes);
  return out;
}

std::map<std::string, std::string> ToBlobs(const json& in) {
  std::map<std::string, std::string> out;
  for (const auto& [name, bytes] : in.items()) out.emplace(name, ToBytes(bytes));
  return out;
}

json FromList(const std::vector<std::string>& list) {
  json out = json::array();
  for (const std::string& bytes : list) out.push_back(FromBytes(bytes));
  return out;
}

std::vector<std::string> ToList(const json& in) {
  std::vector<std::string> out;
  for (const json& bytes : in) out.push_back(ToBytes(bytes));
  return out;
}

json FromMerged(const MergedBlobs& blobs) {
  json out = json::object();
  for (const auto& [name, by_member] : blobs) out[name] = FromList(by_member);
  return out;
}

MergedBlobs ToMerged(const json& in) {
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& [name, all] : in.items()) out.emplace(name, ToList(all));
  return out;
}

json FromRooms(const TableRooms& rooms) {
  json out = json::object();
  for (const auto& [name, by_rank] : rooms) {
    out[name] = json::array();
    for (const auto& [rank, rows] : by_rank) out[name].push_back({rank, rows});
  }
  return out;
}

TableRooms ToRooms(const json& in) {
  TableRooms rooms;
  for (const auto& [name, by_rank] : in.items()) {
    for (const json& of_rank : by_rank)
      rooms[name][of_rank.at(0).get<uint32_t>()] = of_rank.at(1).get<int64_t>();
  }
  return rooms;
}

// Something of each rank.
json FromRanks(const std::map<uint32_t, std::string>& by_rank) {
  json out = json::array();
  for (const auto& [rank, bytes] : by_rank) out.push_back({rank, FromBytes(bytes)});
  return out;
}

std::map<uint32_t, std::string> ToRanks(const json& in) {
  std::map<uint32_t, std::string> out;
  for (const json& r : in) out.emplace(r.at(0).get<uint32_t>(), ToBytes(r.at(1)));
  return out;
}

template <typename Kind>
Kind ToKind(const json& in, Kind last) {
  const int kind = in.get<int>();
  if (kind < 0 || kind > static_cast<int>(last)) throw std::invalid_argument("unknown kind");
  return static_cast<Kind>(kind);
}

json ToJson(const Opened& m) {
  return {{"status", FromStatus(m.status)}, {"epoch", m.epoch}, {"claim", m.claim}};
}
void FromJson(const json& in, Opened& m) {
  m.status = ToStatus(in.at("status"));
  m.epoch = in.at("epoch").get<uint32_t>();
  m.claim = in.at("claim").get<std::string>();
}

json ToJson(const Inventory& m) {
  json slots = json::array();
  for (const LeftSlot& s : m.slots) {
    slots.push_back({s.folder, s.slot, s.id.epoch, s.id.save_id, s.id.boundary, FromHash(s.id.layout),
                     s.id.rank, s.id.world_size, s.run_id, s.stamp.label, s.stamp.count, s.stamp.final,
                     s.images, s.has_layout});
  }
  return {{"node", m.node}, {"mpi", FromStatus(m.mpi)}, {"slots", std::move(slots)}};
}
void FromJson(const json& in, Inventory& m) {
  m.node = in.at("node").get<std::string>();
  m.mpi = ToStatus(in.at("mpi"));
  for (const json& s : in.at("slots")) {
    LeftSlot& slot = m.slots.emplace_back();
    slot.folder = s.at(0).get<std::string>();
    slot.slot = s.at(1).get<std::string>();
    slot.id = {s.at(2).get<uint64_t>(), s.at(3).get<uint64_t>(), s.at(4).get<uint64_t>(),
               ToHash(s.at(5)),         s.at(6).get<uint32_t>(), s.at(7).get<uint32_t>()};
    slot.run_id = s.at(8).get<std::string>();
    slot.stamp = {s.at(9).get<int64_t>(), s.at(10).get<int64_t>(), s.at(11).get<bool>()};
    slot.images = s.at(12).get<std::vector<uint32_t>>();
    slot.has_layout = s.at(13).get<bool>();
  }
}

json ToJson(const Order& m) {
  json sources = json::array();
  for (const RescueSource& s : m.sources) sources.push_back({s.folder, s.slot, s.rank});
  json differences = json::array();
  for (const ItemDifference& d : m.differences) differences.push_back({d.kind, d.name, d.saved_name});
  json near = json::array();
  for (const NearNode& n : m.near) near.push_back({n.ranks, n.files});
  json outputs = json::array();
  for (const auto& [path, output] : m.outputs) outputs.push_back({path, output.bytes, FromHash(output.end)});
  return {{"kind", m.kind},
          {"status", FromStatus(m.status)},
          {"state", FromBytes(m.state)},
          {"rooms", FromRooms(m.table_rooms)},
          {"plans", FromList(m.plans)},
          {"path", m.path},
          {"index", FromHash(m.index_hash)},
          {"blobs", FromBlobs(m.blobs)},
          {"run", m.run_id},
          {"round", m.round},
          {"way", m.way},
          {"sources", std::move(sources)},
          {"near", std::move(near)},
          {"files", m.files},
          {"shared", m.shared_folder},
          {"partner", m.partner},
          {"wards", m.wards},
          {"differences", std::move(differences)},
          {"outputs", std::move(outputs)},
          {"restored", m.restored},
          {"step", m.step},
          {"label", m.label},
          {"world", m.world_size_saved},
          {"finished", m.finished},
          {"merged", FromMerged(m.merged_blobs)}};
}
void FromJson(const json& in, Order& m) {
  m.kind = ToKind(in.at("kind"), Order::kStop);
  m.status = ToStatus(in.at("status"));
  m.state = ToBytes(in.at("state"));
  m.table_rooms = ToRooms(in.at("rooms"));
  m.plans = ToList(in.at("plans"));
  m.path = in.at("path").get<std::string>();
  m.run_id = in.at("run").get<std::string>();
  for (const json& s : in.at("sources"))
    m.sources.push_back({s.at(0).get<std::string>(), s.at(1).get<std::string>(), s.at(2).get<uint32_t>()});
  for (const json& n : in.at("near"))
    m.near.push_back({n.at(0).get<std::vector<uint32_t>>(), n.at(1).get<std::vector<uint32_t>>()});
  m.files = in.at("files").get<std::vector<std::string>>();
  m.shared_folder = in.at("shared").get<std::string>();
  m.partner = in.at("partner").get<int>();
  m.wards = in.at("wards").get<std::vector<uint32_t>>();
  m.index_hash = ToHash(in.at("index"));
  m.round = in.at("round").get<uint32_t>();
  m.way = ToKind(in.at("way"), Order::kMpi);
  m.blobs = ToBlobs(in.at("blobs"));
  m.merged_blobs = ToMerged(in.at("merged"));
  for (const json& d : in.at("differences")) {
    m.differences.push_back(
        {ToKind(d.at(0), ItemDifference::kLeft), d.at(1).get<std::string>(), d.at(2).get<std::string>()});
  }
  for (const json& o : in.at("outputs"))
    m.outputs[o.at(0).get<std::string>()] = {o.at(1).get<uint64_t>(), ToHash(o.at(2))};
  m.restored = in.at("restored").get<bool>();
  m.step = in.at("step").get<int64_t>();
  m.label = in.at("label").get<int64_t>();
  m.world_size_saved = in.at("world").get<uint32_t>();
  m.finished = in.at("finished").get<bool>();
}

json ToJson(const Outcome& m) {
  return {{"word", m.word},
          {"status", FromStatus(m.status)},
          {"warning", m.warning},
          {"folder", m.folder},
          {"needed", m.needed_bytes},
          {"read", m.read_bytes},
          {"near", m.near_bytes},
          {"layout", FromBytes(m.layout)},
          {"plans", FromList(m.plans)},
          {"records", FromRanks(m.records)},
          {"damaged", FromRanks(m.damaged)}};
}
void FromJson(const json& in, Outcome& m) {
  m.word = ToKind(in.at("word"), Outcome::kOver);
  m.status = ToStatus(in.at("status"));
  m.warning = in.at("warning").get<std::string>();
  m.folder = in.at("folder").get<std::string>();
  m.needed_bytes = in.at("needed").get<uint64_t>();
  m.read_bytes = in.at("read").get<uint64_t>();
  m.near_bytes = in.at("near").get<uint64_t>();
  m.layout = ToBytes(in.at("layout"));
  m.plans = ToList(in.at("plans"));
  m.records = ToRanks(in.at("records"));
  m.damaged = ToRanks(in.at("damaged"));
}

json ToJson(const PartnerHeld& m) { return {{"id", m.save_id}, {"ward", m.ward}}; }
void FromJson(const json& in, PartnerHeld& m) {
  m.save_id = in.at("id").get<uint64_t>();
  m.ward = in.at("ward").get<uint32_t>();
}

json ToJson(const TableRoom& m) { return {{"rows", m.rows}}; }
void FromJson(const json& in, TableRoom& m) { m.rows = in.at("rows").get<std::map<std::string, int64_t>>(); }

json ToJson(const SignalSeen& m) { return {{"signo", m.signo}, {"slurm", m.from_slurm}}; }
void FromJson(const json& in, SignalSeen& m) {
  m.signo = in.at("signo").get<int32_t>();
  m.from_slurm = in.at("slurm").get<bool>();
}

json ToJson(const LeaveOrder& m) { return {{"kind", m.kind}, {"code", m.exit_code}}; }
void FromJson(const json& in, LeaveOrder& m) {
  m.kind = ToKind(in.at("kind"), LeaveOrder::kExit);
  m.exit_code = in.at("code").get<int32_t>();
}

json ToJson(const DrainSeen& m) {
  return {{"id", m.save_id},
          {"bytes", m.bytes},
          {"written", m.written},
          {"rate", m.bytes_per_second},
          {"writer", m.writer}};
}
void FromJson(const json& in, DrainSeen& m) {
  m.save_id = in.at("id").get<uint64_t>();
  m.bytes = in.at("bytes").get<uint64_t>();
  m.written = in.at("written").get<uint64_t>();
  m.bytes_per_second = in.at("rate").get<double>();
  m.writer = in.at("writer").get<std::string>();
}

json ToJson(const MemberRecord& m) {
  json shards = json::array();
  for (const ShardRecord& s : m.shards) shards.push_back({s.number, s.bytes, FromHash(s.sums_root)});
  return {{"shards", std::move(shards)},
          {"slot", m.slot},
          {"blobs", FromBlobs(m.blobs)},
          {"stall", m.stall_ns},
          {"drain", m.drain_ns},
          {"hurried_stall", m.hurried_stall_ns},
          {"hurried_drain", m.hurried_drain_ns}};
}
void FromJson(const json& in, MemberRecord& m) {
  for (const json& s : in.at("shards"))
    m.shards.push_back({s.at(0).get<uint32_t>(), s.at(1).get<uint64_t>(), ToHash(s.at(2))});
  m.slot = in.at("slot").get<int32_t>();
  m.blobs = ToBlobs(in.at("blobs"));
  m.stall_ns = in.at("stall").get<int64_t>();
  m.drain_ns = in.at("drain").get<int64_t>();
  m.hurried_stall_ns = in.at("hurried_stall").get<int64_t>();
  m.hurried_drain_ns = in.at("hurried_drain").get<int64_t>();
}

}  // namespace

template <typename T>
std::string EncodeSessionMessage(const T& message) {
  std::string out;
  json::to_cbor(ToJson(message), out);
  return out;
}

template <typename T>
Result<T> DecodeSessionMessage(std::string_view payload) {
  try {
    T message;
    FromJson(ParseCbor(payload), message);
    return message;
  } catch (const std::exception& e) {
    return Status(Code::kInternal, std::string("a message of another member cannot be read: ") + e.what());
  }
}

#define CAIRN_INSTANTIATE(T)                              \
  template std::string EncodeSessionMessage<T>(const T&); \
  template Result<T> DecodeSessionMessage<T>(std::string_view);
CAIRN_INSTANTIATE(Opened)
CAIRN_INSTANTIATE(Inventory)
CAIRN_INSTANTIATE(Order)
CAIRN_INSTANTIATE(Outcome)
CAIRN_INSTANTIATE(PartnerHeld)
CAIRN_INSTANTIATE(TableRoom)
CAIRN_INSTANTIATE(SignalSeen)
CAIRN_INSTANTIATE(LeaveOrder)
CAIRN_INSTANTIATE(DrainSeen)
CAIRN_INSTANTIATE(MemberRecord)
#undef CAIRN_INSTANTIATE

std::vector<Order> TellMerged(const std::string& path, MergedBlobs blobs, size_t part_bytes) {
  constexpr size_t kEach = 16;  // at most so much goes before the bytes of a member
  std::vector<Order> parts = {{.kind = Order::kMerged, .path = path}};
  size_t bytes = 0;
  for (auto& [name, by_member] : blobs) {
    parts.back().merged_blobs[name];  // of no members, perhaps
    for (std::string& of_member : by_member) {
      if (bytes > 0 && bytes + kEach + of_member.size() > part_bytes) {
        parts.push_back({.kind = Order::kMerged, .path = path});
        bytes = 0;
      }
      bytes += kEach + of_member.size();
      parts.back().merged_blobs[name].push_back(std::move(of_member));
    }
  }
  return parts;
}

}  // namespace cairn

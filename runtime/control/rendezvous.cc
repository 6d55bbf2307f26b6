#include "runtime/control/rendezvous.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/formats/cbor.h"

namespace cairn {
namespace {

using nlohmann::json;

constexpr size_t kNamedRanks = 16;

std::string ToCbor(const json& j) {
  std::string out;
  json::to_cbor(j, nlohmann::detail::output_adapter<char>(out));
  return out;
}

template <typename Fn>
auto FromCbor(std::string_view payload, const char* what, Fn fn) -> Result<decltype(fn(json()))> {
  try {
    return fn(ParseCbor(payload));
  } catch (const json::exception& e) {
    return Status(Code::kInvalid, std::string("not a ") + what + ": " + e.what());
  }
}

}  // namespace

std::string EncodeRegistration(const Registration& r) {
  return ToCbor({{"rank", r.rank},
                 {"world_size", r.world_size},
                 {"node", r.node},
                 {"open_bound_ms", r.open_bound_ms},
                 {"local", r.local},
                 {"addresses", r.addresses}});
}

Result<Registration> DecodeRegistration(std::string_view payload) {
  return FromCbor(payload, "registration", [](const json& j) {
    return Registration{j.at("rank").get<int>(),          j.at("world_size").get<int>(),
                        j.at("node").get<std::string>(),  j.at("open_bound_ms").get<int64_t>(),
                        j.at("local").get<std::string>(), j.at("addresses").get<std::vector<std::string>>()};
  });
}

std::string EncodeAssignment(const Assignment& a) {
  json children = json::array();
  for (const auto& c : a.children) children.push_back({{"rank", c.rank}, {"covers", c.covers}});
  return ToCbor({{"parent", a.parent}, {"parent_addresses", a.parent_addresses}, {"children", children}});
}

Result<Assignment> DecodeAssignment(std::string_view payload) {
  return FromCbor(payload, "assignment", [](const json& j) {
    Assignment a{j.at("parent").get<int>(), j.at("parent_addresses").get<std::vector<std::string>>(), {}};
    for (const json& c : j.at("children")) {
      a.children.push_back({c.at("rank").get<int>(), c.at("covers").get<std::vector<int>>()});
    }
    return a;
  });
}

Status RendezvousTable::Add(Registration r) {
  if (members_.empty()) world_size_ = r.world_size;
  if (r.world_size != world_size_ || r.rank < 0 || r.rank >= r.world_size) {
    return Status(Code::kInvalid, "rank " + std::to_string(r.rank) + " of " + std::to_string(r.world_size) +
                                      " members cannot join a session of " + std::to_string(world_size_) +
                                      ": all members must open it with the same world size");
  }
  const int rank = r.rank;
  if (!members_.emplace(rank, std::move(r)).second) {
    return Status(Code::kExists,
                  "rank " + std::to_string(rank) +
                      " has opened this session already: each rank opens a session of a name once");
  }
  return OkStatus();
}

Assignment RendezvousTable::Assign(int rank) const {
  if (nodes_.empty()) {
    for (const auto& [r, member] : members_) nodes_[member.node].push_back(r);
  }
  const Registration& self = members_.at(rank);
  const std::vector<int>& node = nodes_.at(self.node);
  const int leader = node.front();
  Assignment a;
  if (rank == leader) {
    for (auto r = node.begin() + 1; r != node.end(); ++r) a.children.push_back({*r, {*r}});
  }
  if (rank == 0) {
    for (const auto& [name, ranks] : nodes_) {
      if (ranks.front() != 0) a.children.push_back({ranks.front(), ranks});
    }
    return a;
  }
  a.parent = rank == leader ? 0 : leader;
  const Registration& parent = members_.at(a.parent);
  if (rank != leader && !parent.local.empty()) a.parent_addresses.push_back(parent.local);
  a.parent_addresses.insert(a.parent_addresses.end(), parent.addresses.begin(), parent.addresses.end());
  return a;
}

std::string RendezvousTable::Missing() const {
  std::vector<int> missing;
  for (int r = 0; r < world_size_; ++r) {
    if (!members_.contains(r)) missing.push_back(r);
  }
  return "waiting for " + RankList(missing);
}

std::string RankList(const std::vector<int>& ranks) {
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kNamedRanks); ++i) {
    out += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kNamedRanks) out += " and " + std::to_string(ranks.size() - kNamedRanks) + " more";
  return out;
}

}  // namespace cairn

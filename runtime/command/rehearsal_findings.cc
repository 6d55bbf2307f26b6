#include "runtime/command/rehearsal_findings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/command/diff_table.h"
#include "runtime/command/text.h"

namespace cairn {
namespace {

constexpr std::string_view kValues = "rehearsal.values";

using Json = nlohmann::ordered_json;
using Values = std::map<std::string, std::set<std::string>>;  // by name, what the ranks have

const BlobItem* Find(const Blobs& blobs, std::string_view name) {
  for (const BlobItem& item : blobs.items) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

std::vector<BlobDiff> CompareBlobs(const Blobs& whole, const Blobs& resumed) {
  std::vector<BlobDiff> out;
  for (const BlobItem& item : whole.items) {
    if (item.name == kValues) continue;
    const BlobItem* other = Find(resumed, item.name);
    BlobDiff diff{item.name, {}, other == nullptr ? "undisturbed" : ""};
    for (size_t rank = 0; other != nullptr && rank < item.by_rank.size(); ++rank) {
      if (item.by_rank[rank] != other->by_rank[rank]) diff.ranks.push_back(std::to_string(rank));
    }
    if (other == nullptr || !diff.ranks.empty()) out.push_back(std::move(diff));
  }
  for (const BlobItem& item : resumed.items) {
    if (item.name != kValues && Find(whole, item.name) == nullptr) out.push_back({item.name, {}, "resumed"});
  }
  return out;
}

Values ReadValues(const Blobs& blobs) {
  Values out;
  const BlobItem* item = Find(blobs, kValues);
  if (item == nullptr) return out;
  for (const auto& of_rank : item->by_rank) {
    for (std::string_view rest = of_rank ? std::string_view(*of_rank) : ""; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      const size_t equals = line.find('=');
      if (equals != std::string_view::npos)
        out[std::string(line.substr(0, equals))].emplace(line.substr(equals + 1));
    }
  }
  return out;
}

std::optional<double> Number(const std::set<std::string>& values) {
  if (values.size() != 1) return std::nullopt;
  const std::string& text = *values.begin();
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

bool Close(const std::set<std::string>& a, const std::set<std::string>& b, double tolerance) {
  if (a == b) return true;
  const std::optional<double> x = Number(a), y = Number(b);
  return x && y && std::abs(*x - *y) <= tolerance * std::max(std::abs(*x), std::abs(*y));
}

std::string Joined(const std::set<std::string>& values) {
  std::string out;
  for (const std::string& value : values) out += (out.empty() ? "" : " and ") + value;
  return out;
}

std::vector<ValueDiff> CompareValues(const Blobs& whole, const Blobs& resumed, double tolerance) {
  const Values a = ReadValues(whole), b = ReadValues(resumed);
  std::set<std::string> names;
  for (const Values* values : {&a, &b}) {
    for (const auto& [name, value] : *values) names.insert(name);
  }
  std::vector<ValueDiff> out;
  for (const std::string& name : names) {
    const auto x = a.find(name), y = b.find(name);
    const std::set<std::string> none;
    const std::set<std::string>& of_a = x == a.end() ? none : x->second;
    const std::set<std::string>& of_b = y == b.end() ? none : y->second;
    if (!Close(of_a, of_b, tolerance)) out.push_back({name, Joined(of_a), Joined(of_b)});
  }
  return out;
}

}  // namespace

Result<RehearsalFindings> CompareRehearsal(CheckpointSource& undisturbed, CheckpointSource& resumed,
                                           double tolerance) {
  RehearsalFindings out;
  out.ranks[0] = undisturbed.checkpoint().manifest.world_size;
  out.ranks[1] = resumed.checkpoint().manifest.world_size;
  CAIRN_ASSIGN_OR_RETURN(out.arrays, Diff(undisturbed, resumed, nullptr));
  for (ArrayDiff& array : out.arrays) {
    const Difference& found = array.difference;
    if (array.kind == ArrayDiff::Kind::kDiffers && found.not_finite == 0 && found.max_rel <= tolerance)
      array.kind = ArrayDiff::Kind::kEqual;
    out.equal = out.equal && array.kind == ArrayDiff::Kind::kEqual;
  }
  const Blobs &a = undisturbed.checkpoint().blobs, &b = resumed.checkpoint().blobs;
  out.values = CompareValues(a, b, tolerance);
  if (out.ranks[0] == out.ranks[1]) out.blobs = CompareBlobs(a, b);
  out.equal = out.equal && out.values.empty() && out.blobs.empty();
  return out;
}

void PrintFindings(const RehearsalFindings& found) {
  PrintDiffs(found.arrays, false);
  for (const ValueDiff& value : found.values) {
    std::printf("value %s: %s undisturbed, %s resumed\n", value.name.c_str(),
                value.undisturbed.empty() ? "none" : value.undisturbed.c_str(),
                value.resumed.empty() ? "none" : value.resumed.c_str());
  }
  for (const BlobDiff& blob : found.blobs) {
    if (blob.only.empty())
      std::printf("blob %s differs on ranks %s\n", blob.name.c_str(), Join(blob.ranks).c_str());
    else
      std::printf("blob %s is in the %s run alone\n", blob.name.c_str(), blob.only.c_str());
  }
  if (found.ranks[0] != found.ranks[1])
    std::printf("blobs, which are each rank's own, are not compared between numbers of ranks\n");
}

Json FindingsJson(const RehearsalFindings& found) {
  Json out = {{"ranks", found.ranks},
              {"equal", found.equal},
              {"arrays", Json::array()},
              {"values", Json::array()},
              {"blobs", Json::array()}};
  for (const ArrayDiff& array : found.arrays) out["arrays"].push_back(DiffJson(array));
  for (const ValueDiff& value : found.values) {
    Json one = {{"name", value.name}};
    if (!value.undisturbed.empty()) one["undisturbed"] = value.undisturbed;
    if (!value.resumed.empty()) one["resumed"] = value.resumed;
    out["values"].push_back(std::move(one));
  }
  for (const BlobDiff& blob : found.blobs) {
    Json one = {{"name", blob.name}, {"ranks", blob.ranks}};
    if (!blob.only.empty()) one["only"] = blob.only;
    out["blobs"].push_back(std::move(one));
  }
  return out;
}

}  // namespace cairn

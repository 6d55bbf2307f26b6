#include "runtime/session/matching.h"

#include <algorithm>

#include "runtime/session/name_pattern.h"
#include "runtime/session/tables.h"
#include "runtime/settings.h"

namespace cairn {
namespace {

// An array or a blob, by what has to be equal.
struct Item {
  std::string name;
  const ArraySpec* array = nullptr;  // nullptr: a blob
  bool table = false;
  std::string
      of;  // whose name decides whether it takes part and what it becomes: its own, or of its rows the table's

  std::string Describe() const { return array != nullptr ? DescribeArray(*array) : "a blob"; }
  // Whether what is saved as `from` can be loaded into this.
  bool Takes(const Item& from) const {
    if (array == nullptr || from.array == nullptr) return array == from.array;
    return table ? IsTableOf(*from.array, array->shape[1]) : IsAlike(*array, *from.array);
  }
};

std::vector<Item> ItemsOf(const std::vector<ArraySpec>& arrays, const std::vector<BlobSpec>& blobs,
                          const std::set<std::string>& tables) {
  std::vector<Item> items;
  std::map<std::string, std::string> rows_of;
  for (const std::string& table : tables) rows_of.emplace(TableRowsName(table), table);
  for (const ArraySpec& array : arrays)
    items.push_back({array.name, &array, tables.contains(array.name), array.name});
  for (const BlobSpec& blob : blobs) {
    const auto table = rows_of.find(blob.name);
    items.push_back({blob.name, nullptr, false, table != rows_of.end() ? table->second : blob.name});
  }
  return items;
}

std::string NewName(const std::string& saved, const std::vector<MatchOptions::Rename>& renames) {
  for (const MatchOptions::Rename& rename : renames) {
    if (auto name = RenameByPattern(rename.saved, rename.registered, saved)) return *std::move(name);
  }
  return saved;
}

bool TakesPart(const std::string& name, const std::vector<std::string>& only) {
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& pattern) {
           return MatchesPattern(pattern, name);
         });
}

}  // namespace

Status CheckMatchOptions(const MatchOptions& options) {
  for (const std::string& pattern : options.only) {
    if (pattern.empty()) return {Code::kInvalid, "a pattern of names to be loaded is empty"};
  }
  for (const auto& [saved, registered] : options.renames) {
    if (saved.empty() || registered.empty())
      return {Code::kInvalid, "renaming \"" + saved + "\" to \"" + registered + "\": a name is empty"};
    if (std::count(registered.begin(), registered.end(), '*') > std::count(saved.begin(), saved.end(), '*')) {
      return {Code::kInvalid, "renaming \"" + saved + "\" to \"" + registered +
                                  "\": the new name has more '*' than the pattern has to give"};
    }
  }
  return OkStatus();
}

bool FitBehind(const std::string& prefix, const std::vector<ArraySpec>& saved, const State& now,
               const MatchOptions& options) {
  std::set<std::string_view> registered;
  for (const ArraySpec& array : now.layout.arrays) registered.insert(array.name);
  const auto fitting = [&](const std::string& before) {
    return std::count_if(saved.begin(), saved.end(), [&](const ArraySpec& array) {
      return registered.contains(NewName(before + array.name, options.renames));
    });
  };
  return fitting(prefix) > fitting("");
}

Matching MatchItems(const std::vector<ArraySpec>& saved, const std::vector<BlobSpec>& saved_blobs,
                    const State& now, const MatchOptions& options, const Fills* fills) {
  Matching out;
  bool hopeless = false;
  const auto report = [&](uint32_t needs, const std::string& line) {
    if ((options.allowed & needs) != 0) {
      out.noted.push_back(line);
      return;
    }
    out.refused.push_back(line);
    out.curable |= needs;
    hopeless |= needs == 0;
  };
  const auto as = [](const Item& item, const std::string& name) {
    return item.name == name ? "" : " as \"" + item.name + "\"";
  };

  const std::vector<Item> registered = ItemsOf(now.layout.arrays, now.blobs, now.tables);
  for (const std::string& pattern : options.only) {
    if (std::none_of(registered.begin(), registered.end(),
                     [&](const Item& item) { return MatchesPattern(pattern, item.name); }))
      report(0, pattern + ": to be loaded, but the program has registered nothing of such a name");
  }
  std::map<std::string, Item> offered;  // by the name that the program should have
  std::set<std::string> saved_tables;
  for (const ArraySpec& array : saved) {
    if (now.tables.contains(NewName(array.name, options.renames))) saved_tables.insert(array.name);
  }
  for (const Item& item : ItemsOf(saved, saved_blobs, saved_tables)) {
    const std::string subject = NewName(item.of, options.renames);
    if (!TakesPart(subject, options.only)) continue;
    const std::string name = item.of == item.name ? subject : TableRowsName(subject);
    const auto [it, is_new] = offered.emplace(name, item);
    if (!is_new)
      report(0, name + ": saved as \"" + it->second.name + "\" and as \"" + item.name +
                    "\"; a rename gives both this name");
  }
  std::set<std::string_view> read;  // names of saved arrays, by the planner
  for (uint32_t i = 0; i < registered.size(); ++i) {
    const Item& item = registered[i];
    const bool planned = fills != nullptr && item.array != nullptr && !item.table;
    if (planned && !(*fills)[i].empty()) {
      for (const uint32_t from : (*fills)[i]) read.insert(saved[from].name);
      const std::string& first = saved[*(*fills)[i].begin()].name;
      if ((*fills)[i].size() > 1 || first != item.name)
        out.differences.push_back({ItemDifference::kRenamed, item.name, first});
      continue;
    }
    if (!TakesPart(item.of, options.only)) {
      out.differences.push_back({ItemDifference::kLeft, item.name, ""});
      continue;
    }
    const auto it = planned ? offered.end() : offered.find(item.name);
    if (it == offered.end()) {
      out.differences.push_back({ItemDifference::kMissing, item.name, ""});
      report(kAllowMissing,
             item.name + ": registered " + item.Describe() +
                 (planned ? ", and the load planner brings nothing into it" : ", not in the checkpoint"));
      continue;
    }
    const Item& from = it->second;
    if (!item.Takes(from)) {
      report(0, item.name + ": saved " + from.Describe() + as(from, item.name) + ", registered " +
                    item.Describe());
    }
    if (from.name != item.name) out.differences.push_back({ItemDifference::kRenamed, item.name, from.name});
    if (from.array == nullptr) out.blobs.emplace(from.name, item.name);
    offered.erase(it);
  }
  for (const auto& [name, item] : offered) {
    const bool planned = fills != nullptr && item.array != nullptr;
    if (planned && read.contains(item.name)) continue;
    out.differences.push_back({ItemDifference::kExtra, "", item.name});
    report(kAllowExtra,
           name + ": saved " + item.Describe() + as(item, name) +
               (planned ? ", and the load planner brings nothing of it" : ", not registered by the program"));
  }
  if (hopeless) out.curable = 0;
  return out;
}

}  // namespace cairn

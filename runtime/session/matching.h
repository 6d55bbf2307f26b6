// Matching: which items of a checkpoint go into which of the program's, and how the two differ. Pure.
//
// 1. A saved item's name is changed by the first rename whose pattern it matches.
// 2. Where `only` is given, items of either side whose (new) names match none of its patterns take no part: the program's are left as they are.
// 3. Items of one name belong together. Their types, shapes and orders are equal, or the match is refused; no setting allows that. Of a table
//    the number of rows does not matter.
// 4. A pattern of `only` that matches nothing of the program is refused.
// 5. What the program has alone is missing, what the checkpoint has alone is extra: refused unless allowed.
// Where the program's load planner says what is loaded into its arrays (read_plan.h), that counts for them, not their names: 3 is the planner's own
// business, an array that gets nothing is missing, a saved one of which nothing is loaded is extra.
#ifndef CAIRN_RUNTIME_SESSION_MATCHING_H_
#define CAIRN_RUNTIME_SESSION_MATCHING_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/session/state.h"

namespace cairn {

// Equal but for the name: one can be loaded into the other.
inline bool IsAlike(const ArraySpec& a, const ArraySpec& b) {
  return a.dtype == b.dtype && a.fortran == b.fortran && a.shape == b.shape;
}

inline bool IsTableOf(const ArraySpec& saved, int64_t row_bytes) {
  return saved.dtype == DType::kU8 && !saved.fortran && saved.shape.size() == 2 &&
         saved.shape[1] == row_bytes;
}

struct MatchOptions {
  struct Rename {
    std::string saved, registered;  // patterns
  };
  uint32_t allowed = 0;  // bits of Match
  bool planner = false;  // the program has a load planner of its own
  std::vector<Rename> renames;
  std::vector<std::string> only;
};

// kInvalid when `options` are impossible: an empty pattern, or more '*' in a new name than its pattern has.
Status CheckMatchOptions(const MatchOptions& options);

// An item that was not simply loaded from the one of its name.
struct ItemDifference {
  enum Kind : uint8_t {
    kRenamed = CAIRN_ITEM_RENAMED,
    kMissing = CAIRN_ITEM_MISSING,
    kExtra = CAIRN_ITEM_EXTRA,
    kReset = CAIRN_ITEM_RESET,
    kLeft = CAIRN_ITEM_LEFT,
  };
  Kind kind = kRenamed;
  std::string name;        // the program's; "" for kExtra
  std::string saved_name;  // the checkpoint's; "" for kMissing and kLeft
  friend bool operator==(const ItemDifference&, const ItemDifference&) = default;
};

struct Matching {
  std::vector<ItemDifference> differences;   // without kReset, which only the number of ranks decides
  std::map<std::string, std::string> blobs;  // saved name → the program's, of those that are to be loaded
  // One line each, with both forms: "u: saved [64, 64] F64, registered [64, 128] F64".
  std::vector<std::string> refused;
  std::vector<std::string> noted;  // allowed
  uint32_t curable = 0;            // bits of Match that would allow all that is refused; 0 = nothing would
};

// Whether more of these names are the program's with `prefix` before them than as they are. Renames apply in both cases.
bool FitBehind(const std::string& prefix, const std::vector<ArraySpec>& saved, const State& now,
               const MatchOptions& options);

// By array of the program: the saved ones of which something is loaded into it.
using Fills = std::vector<std::set<uint32_t>>;

// `fills`: what the program's load planner says; nullptr where there is none.
Matching MatchItems(const std::vector<ArraySpec>& saved, const std::vector<BlobSpec>& saved_blobs,
                    const State& now, const MatchOptions& options, const Fills* fills = nullptr);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_MATCHING_H_

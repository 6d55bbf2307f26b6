// NameMap: what arrays are called in the other world. Pure; any thread.
//
// A JSON object from names to names: {"model.*": "*", "head.weight": "lm_head.weight", "optim.*": null}. A name may have one *, which stands for
// any text, and which the new name may repeat; null leaves the array out. The first member that fits a name counts; what fits none keeps its
// name.
#ifndef CAIRN_RUNTIME_INTEROP_NAME_MAP_H_
#define CAIRN_RUNTIME_INTEROP_NAME_MAP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "planner/layout.h"

namespace cairn {

// What the * of `pattern` stands for in `name` ("" where it has none); nothing = it does not fit. At most one *.
std::optional<std::string> FitPattern(const std::string& pattern, const std::string& name);

class NameMap {
 public:
  // kInvalid with what is wrong.
  static Result<NameMap> Parse(std::string_view json);

  // Nothing = it is left out.
  std::optional<std::string> Map(const std::string& name) const;

 private:
  struct Rule {
    std::string from;
    std::optional<std::string> to;
  };
  std::vector<Rule> rules_;
};

// An array of a source under the name that it gets.
struct NamedArray {
  uint32_t array = 0;  // position in ArraySource::arrays()
  std::string name;
};

// Those that are not left out, in their order. kInvalid when two would get one name, or all are left out.
Result<std::vector<NamedArray>> ApplyNames(const NameMap& names, const std::vector<ArraySpec>& arrays);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_NAME_MAP_H_

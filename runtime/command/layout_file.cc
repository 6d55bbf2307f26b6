#include "runtime/command/layout_file.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "planner/mesh_layout.h"
#include "runtime/interop/name_map.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

struct NamedAxis {
  std::string name;
  uint32_t count = 0;
};

Status Invalid(const std::string& member, const std::string& what) {
  return {Code::kInvalid, "\"" + member + "\": " + what};
}

Result<std::vector<NamedAxis>> ParseMesh(const Json& json, uint32_t ranks) {
  if (!json.contains("mesh")) return std::vector<NamedAxis>{{"ranks", ranks}};
  if (!json["mesh"].is_object()) return Invalid("mesh", "is no object of axes");
  std::vector<NamedAxis> mesh;
  uint64_t positions = 1;
  for (const auto& [name, count] : json["mesh"].items()) {
    if (!count.is_number_unsigned() || count.get<uint64_t>() == 0 || count.get<uint64_t>() > ranks)
      return Invalid("mesh",
                     "axis \"" + name + "\" has not between 1 and " + std::to_string(ranks) + " positions");
    mesh.push_back({name, count.get<uint32_t>()});
    positions *= mesh.back().count;
    if (positions > ranks) break;
  }
  if (positions != ranks)
    return Invalid("mesh", "its axes do not make " + std::to_string(ranks) + " ranks together");
  return mesh;
}

// What divides the dimensions of an array that `member` fits.
Result<std::vector<MeshAxis>> ParseSplit(const std::string& member, const Json& split,
                                         const std::vector<NamedAxis>& mesh, const ArraySpec& array) {
  const int dims = array.shape.size();
  if (!split.is_array()) return Invalid(member, "is neither a list, nor \"flat\", nor null");
  if (split.size() > static_cast<size_t>(dims))
    return Invalid(member, "divides " + std::to_string(split.size()) + " dimensions, array \"" + array.name +
                               "\" has " + std::to_string(dims));
  std::vector<MeshAxis> axes;
  for (const NamedAxis& axis : mesh) axes.push_back({axis.count, -1});
  for (int d = 0; d < static_cast<int>(split.size()); ++d) {
    const Json& by = split[static_cast<size_t>(d)];
    const Json list = by.is_array() ? by : by.is_null() ? Json::array() : Json::array({by});
    size_t last = 0;
    for (const Json& name : list) {
      size_t i = 0;
      while (i < mesh.size() && !(name.is_string() && mesh[i].name == name.get<std::string>())) ++i;
      if (i == mesh.size()) return Invalid(member, name.dump() + " is no axis of the mesh");
      if (axes[i].dim >= 0)
        return Invalid(member, "axis " + name.dump() + " divides more than one dimension");
      if (i < last)
        return Invalid(member,
                       "axis " + name.dump() + " comes before another one in the mesh, not behind it");
      last = i;
      axes[i].dim = array.fortran ? dims - 1 - d : d;
    }
  }
  return axes;
}

}  // namespace

WantedLayout LayoutAsSaved(const SavedLayout& saved, uint32_t ranks) {
  MeshLayout layout(ranks);
  WantedLayout wanted;
  for (uint32_t a = 0; a < saved.arrays.size(); ++a) {
    layout.AddAsSaved(saved, a);
    wanted.saved_array.push_back(a);
  }
  wanted.layout = std::move(layout).Finish();
  return wanted;
}

Result<WantedLayout> ParseLayoutFile(std::string_view text, const SavedLayout& saved, uint32_t ranks) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("arrays") || !json["arrays"].is_object())
    return Status(Code::kInvalid, "is no JSON object with an object \"arrays\"");
  for (const auto& [member, value] : json.items()) {
    if (member != "mesh" && member != "arrays") return Invalid(member, "is neither \"mesh\" nor \"arrays\"");
  }
  CAIRN_ASSIGN_OR_RETURN(const std::vector<NamedAxis> mesh, ParseMesh(json, ranks));
  MeshLayout layout(ranks);
  WantedLayout wanted;
  for (uint32_t a = 0; a < saved.arrays.size(); ++a) {
    const ArraySpec& array = saved.arrays[a];
    const Json* split = nullptr;
    std::string member;
    for (const auto& [pattern, value] : json["arrays"].items()) {
      if (!FitPattern(pattern, array.name)) continue;
      split = &value;
      member = pattern;
      break;
    }
    if (split != nullptr && split->is_null()) continue;
    if (split == nullptr) {
      layout.AddAsSaved(saved, a);
    } else if (*split == "flat") {
      layout.AddFlat(array);
    } else {
      CAIRN_ASSIGN_OR_RETURN(const std::vector<MeshAxis> axes, ParseSplit(member, *split, mesh, array));
      layout.Add(array, 0, axes);
    }
    wanted.saved_array.push_back(a);
  }
  if (wanted.saved_array.empty()) return Status(Code::kInvalid, "leaves out all arrays");
  wanted.layout = std::move(layout).Finish();
  return wanted;
}

}  // namespace cairn

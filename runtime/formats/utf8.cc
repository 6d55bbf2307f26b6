#include "runtime/formats/utf8.h"

#include <nlohmann/json.hpp>

namespace cairn {

bool IsUtf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();  // throws otherwise, unlike to_cbor
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

}  // namespace cairn

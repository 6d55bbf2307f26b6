// ParseCbor: json::from_cbor for what a peer sent. Internal to the .cc files that have the JSON library already. Pure.
#ifndef CAIRN_RUNTIME_FORMATS_CBOR_H_
#define CAIRN_RUNTIME_FORMATS_CBOR_H_

#include <nlohmann/json.hpp>
#include <string_view>

namespace cairn {

// Throws nlohmann::json::exception, as from_cbor does. Refuses arrays and maps that lie deeper in each other than any message's: the
// library's reader recurses into them, so a deep input would overrun the stack.
inline nlohmann::json ParseCbor(std::string_view bytes) {
  using nlohmann::json;
  constexpr size_t kMaxDepth = 16;
  struct Reader : nlohmann::detail::json_sax_dom_parser<json> {
    using Base = nlohmann::detail::json_sax_dom_parser<json>;
    using Base::Base;
    bool start_object(size_t size) { return Deeper() && Base::start_object(size); }
    bool start_array(size_t size) { return Deeper() && Base::start_array(size); }
    bool end_object() { return --depth, Base::end_object(); }
    bool end_array() { return --depth, Base::end_array(); }
    bool Deeper() {
      if (++depth <= kMaxDepth) return true;
      throw json::other_error::create(501, "arrays and maps lie too deep in each other", nullptr);
    }
    size_t depth = 0;
  };
  json out;
  Reader reader(out, true);
  json::sax_parse(bytes.begin(), bytes.end(), &reader, json::input_format_t::cbor);
  return out;
}

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_CBOR_H_

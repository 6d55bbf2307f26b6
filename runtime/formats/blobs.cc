#include "runtime/formats/blobs.h"

#include <nlohmann/json.hpp>
#include <set>

#include "runtime/formats/utf8.h"
#include "runtime/io/hash.h"

// The file is one CBOR array of four, whose frame has a fixed form (docs/design/formats.md, section 5):
//
//   84                     array of 4
//   68 "CAIRNBLB"          magic
//   01                     version
//   5b <u64 big-endian>    byte string: the payload, CBOR itself
//   50 <16 bytes>          byte string: XXH3-128 of the payload

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kHead =
    "\x84\x68"
    "CAIRNBLB"
    "\x01\x5b";
constexpr size_t kLengthBytes = 8;
constexpr char kHashHead = 0x50;
constexpr size_t kFrameBytes = kHead.size() + kLengthBytes + 1 + 16;
constexpr BlobPolicy kPolicies[] = {BlobPolicy::kRefuse, BlobPolicy::kReseed, BlobPolicy::kDrop,
                                    BlobPolicy::kMerge};

std::string BigEndian(uint64_t value) {
  std::string out;
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

std::string HashBytes(std::string_view bytes) {
  const Hash128 hash = Hash128Of(bytes);
  return std::string(reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size());
}

Status Damage(std::string what) { return {Code::kDamage, "blob file: " + std::move(what)}; }

// Takes the events of {name: {"policy": text, "ranks": [bytes or null, …]}, …} and refuses every other form, at once: nested input can
// neither recurse nor grow here.
class Reader final : public nlohmann::json_sax<Json> {
 public:
  Blobs blobs;
  std::string fault;

  bool start_object(size_t) override {
    if (depth_ == 1) blobs.items.push_back({item_, BlobPolicy::kRefuse, {}});
    return depth_ <= 1 ? ++depth_ : Refuse("a map");
  }
  bool end_object() override { return depth_-- > 0; }
  bool key(std::string& name) override {
    (depth_ == 1 ? item_ : field_) = name;
    return true;
  }
  bool start_array(size_t) override {
    return depth_ == 2 && field_ == "ranks" ? ++depth_ : Refuse("an array");
  }
  bool end_array() override { return depth_-- > 0; }
  bool string(std::string& text) override {
    if (depth_ != 2 || field_ != "policy") return Refuse("a text");
    for (BlobPolicy policy : kPolicies) {
      if (text == BlobPolicyName(policy)) {
        blobs.items.back().policy = policy;
        return true;
      }
    }
    return Refuse("policy \"" + text + "\"");
  }
  bool binary(Json::binary_t& bytes) override {
    if (depth_ != 3) return Refuse("bytes");
    blobs.items.back().by_rank.emplace_back(std::string(bytes.begin(), bytes.end()));
    return true;
  }
  bool null() override {
    if (depth_ != 3) return Refuse("null");
    blobs.items.back().by_rank.emplace_back();
    return true;
  }
  bool boolean(bool) override { return Refuse("a boolean"); }
  bool number_integer(Json::number_integer_t) override { return Refuse("a number"); }
  bool number_unsigned(Json::number_unsigned_t) override { return Refuse("a number"); }
  bool number_float(Json::number_float_t, const std::string&) override { return Refuse("a number"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    return Refuse(std::string("a fault at byte ") + std::to_string(position) +
                  " of the payload: " + e.what());
  }

 private:
  bool Refuse(std::string_view what) {
    if (fault.empty())
      fault = "unexpected " + std::string(what) + (item_.empty() ? "" : " in item \"" + item_ + "\"");
    return false;
  }

  int depth_ = 0;
  std::string item_, field_;
};

Status Validate(const Blobs& blobs, Code code) {
  std::set<std::string_view> names;
  for (const BlobItem& item : blobs.items) {
    if (item.name.empty()) return {code, "blob file: an item has no name"};
    if (!IsUtf8(item.name)) return {code, "blob file: the name of an item is no UTF-8"};
    if (!names.insert(item.name).second) return {code, "blob file: item \"" + item.name + "\" occurs twice"};
    if (item.by_rank.size() != blobs.items[0].by_rank.size()) {
      return {code, "blob file: item \"" + item.name + "\" has entries for " +
                        std::to_string(item.by_rank.size()) + " ranks, others for " +
                        std::to_string(blobs.items[0].by_rank.size())};
    }
  }
  return OkStatus();
}

}  // namespace

std::string_view BlobPolicyName(BlobPolicy policy) {
  switch (policy) {
    case BlobPolicy::kRefuse:
      return "refuse";
    case BlobPolicy::kReseed:
      return "reseed";
    case BlobPolicy::kDrop:
      return "drop";
    case BlobPolicy::kMerge:
      return "merge";
  }
  return "refuse";
}

Result<std::string> EncodeBlobs(const Blobs& blobs) {
  CAIRN_RETURN_IF_ERROR(Validate(blobs, Code::kInvalid));
  Json map = Json::object();
  for (const BlobItem& item : blobs.items) {
    Json ranks = Json::array();
    for (const auto& bytes : item.by_rank) {
      ranks.push_back(bytes ? Json::binary({bytes->begin(), bytes->end()}) : Json(nullptr));
    }
    map[item.name] = {{"policy", BlobPolicyName(item.policy)}, {"ranks", std::move(ranks)}};
  }
  std::string payload;
  Json::to_cbor(map, payload);
  std::string out(kHead);
  return out.append(BigEndian(payload.size()))
      .append(payload)
      .append(1, kHashHead)
      .append(HashBytes(payload));
}

Result<Blobs> DecodeBlobs(std::string_view bytes) {
  if (bytes.size() < kFrameBytes)
    return Damage("has " + std::to_string(bytes.size()) + " bytes, fewer than its frame");
  if (!bytes.starts_with(kHead)) return Damage("wrong magic or version at byte 0");
  const std::string_view payload = bytes.substr(kHead.size() + kLengthBytes, bytes.size() - kFrameBytes);
  if (bytes.substr(kHead.size(), kLengthBytes) != BigEndian(payload.size())) {
    return Damage("the length at byte " + std::to_string(kHead.size()) + " does not fit its " +
                  std::to_string(bytes.size()) + " bytes");
  }
  const std::string_view tail = bytes.substr(kHead.size() + kLengthBytes + payload.size());
  if (tail[0] != kHashHead || tail.substr(1) != HashBytes(payload)) {
    return Damage("the checksum at byte " + std::to_string(bytes.size() - tail.size()) + " does not match");
  }
  Reader reader;
  try {
    if (!Json::sax_parse(payload.begin(), payload.end(), &reader, Json::input_format_t::cbor)) {
      return Damage(reader.fault);
    }
  } catch (const std::exception& e) {
    return Damage(e.what());
  }
  CAIRN_RETURN_IF_ERROR(Validate(reader.blobs, Code::kDamage));
  return std::move(reader.blobs);
}

}  // namespace cairn

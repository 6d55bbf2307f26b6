#include "runtime/formats/sealed_json.h"

#include <nlohmann/json.hpp>

#include "runtime/formats/newer_version.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kTailBegin = ",\n  \"checksum\": \"";
constexpr std::string_view kTailEnd = "\"\n}\n";
constexpr size_t kHexDigits = 32;
constexpr size_t kTailBytes = kTailBegin.size() + kHexDigits + kTailEnd.size();

const Json& Empty(Json::value_t type) {
  static const Json array = Json::array(), object = Json::object();
  return type == Json::value_t::array ? array : object;
}

}  // namespace

Result<std::string> SealJson(std::string_view kind, const Json& members, uint64_t version) {
  Json object;
  object["cairn"] = kind;
  object["version"] = version;
  object.update(members);
  std::string text;
  try {
    text = object.dump(2);
  } catch (const Json::exception& e) {
    return Status(Code::kInvalid, std::string(kind) + " cannot be written as JSON: " + e.what());
  }
  text.resize(text.size() - 2);  // "\n}"
  const std::string checksum = Hash128Of(text).ToHex();
  return text.append(kTailBegin).append(checksum).append(kTailEnd);
}

Result<Json> UnsealJson(std::string_view kind, std::string_view text, uint64_t known) {
  const auto damage = [&](std::string_view what) {
    return Status(Code::kDamage, std::string(kind) + ": " + std::string(what));
  };
  if (text.size() < kTailBytes)
    return damage("has only " + std::to_string(text.size()) + " bytes: it was truncated");
  const std::string_view sealed = text.substr(0, text.size() - kTailBytes);
  const std::string_view tail = text.substr(sealed.size());
  if (!tail.starts_with(kTailBegin) || !tail.ends_with(kTailEnd)) {
    return damage("does not end with its checksum: it was truncated or edited");
  }
  if (tail.substr(kTailBegin.size(), kHexDigits) != Hash128Of(sealed).ToHex())
    return damage("its checksum does not match");
  Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return damage("is no JSON object");
  JsonFields fields(object, kind);
  const std::string found = fields.String("cairn");
  const uint64_t version = fields.Unsigned("version");
  CAIRN_RETURN_IF_ERROR(fields.status());
  if (found != kind) return damage("is a file of kind \"" + found + "\"");
  if (version > known) return NewerVersion(kind, version, known);
  if (version == 0) return damage("version " + std::to_string(version) + " never was");
  return object;
}

const Json* JsonFields::Find(const char* name) {
  const auto it = object_.find(name);
  return it == object_.end() ? nullptr : &*it;
}

void JsonFields::Fail(const char* name, std::string_view expected) {
  if (!status_.ok()) return;
  status_ =
      Status(Code::kDamage, what_ + ": member \"" + name + "\" is missing or no " + std::string(expected));
}

std::string JsonFields::String(const char* name) {
  const Json* value = Find(name);
  if (value != nullptr && value->is_string()) return value->get<std::string>();
  Fail(name, "string");
  return {};
}

bool JsonFields::Bool(const char* name) {
  const Json* value = Find(name);
  if (value != nullptr && value->is_boolean()) return value->get<bool>();
  Fail(name, "boolean");
  return false;
}

int64_t JsonFields::Signed(const char* name) {
  const Json* value = Find(name);
  if (value != nullptr && value->is_number_unsigned() && value->get<uint64_t>() <= INT64_MAX) {
    return value->get<int64_t>();
  }
  if (value != nullptr && value->is_number_integer() && !value->is_number_unsigned())
    return value->get<int64_t>();
  Fail(name, "integer of 64 bits");
  return 0;
}

uint64_t JsonFields::Unsigned(const char* name, uint64_t max) {
  const Json* value = Find(name);
  if (value != nullptr && value->is_number_unsigned() && value->get<uint64_t>() <= max)
    return value->get<uint64_t>();
  Fail(name, "integer between 0 and " + std::to_string(max));
  return 0;
}

Hash128 JsonFields::Hash(const char* name) {
  const Json* value = Find(name);
  if (value != nullptr && value->is_string()) {
    if (const auto hash = Hash128::FromHex(value->get_ref<const std::string&>())) return *hash;
  }
  Fail(name, "hash of 32 lower-case hex digits");
  return {};
}

const Json& JsonFields::Array(const char* name) {
  const Json* value = Find(name);
  if (value != nullptr && value->is_array()) return *value;
  Fail(name, "array");
  return Empty(Json::value_t::array);
}

const Json& JsonFields::Object(const char* name) {
  const Json* value = Find(name);
  if (value != nullptr && value->is_object()) return *value;
  Fail(name, "object");
  return Empty(Json::value_t::object);
}

}  // namespace cairn

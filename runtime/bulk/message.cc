#include "runtime/bulk/message.h"

#include <cstring>

#include "runtime/control/wire.h"

namespace cairn {

std::string EncodeBulkHeader(const BulkHeader& header, uint64_t sequence, const Secret& key) {
  std::string out;
  out.reserve(kBulkHeaderBytes);
  PutWire(&out, kBulkVersion);
  PutWire(&out, header.subject.type);
  PutWire(&out, header.bytes);
  PutWire(&out, sequence);
  for (const uint64_t id : header.subject.ids) PutWire(&out, id);
  out.append(reinterpret_cast<const char*>(header.hash.bytes.data()), header.hash.bytes.size());
  const Mac mac = ComputeMac(key, out, {});
  out.append(reinterpret_cast<const char*>(mac.data()), mac.size());
  return out;
}

Result<BulkHeader> DecodeBulkHeader(std::string_view bytes, uint64_t sequence, const Secret& key) {
  const std::string_view covered = bytes.substr(0, kBulkHeaderBytes - sizeof(Mac));
  Mac mac;
  std::memcpy(mac.data(), bytes.data() + covered.size(), mac.size());
  if (!SameMac(mac, ComputeMac(key, covered, {})))
    return Status(Code::kInvalid, "the header of a bulk message was changed on its way");
  if (GetWire<uint16_t>(bytes, 0) != kBulkVersion || GetWire<uint64_t>(bytes, 8) != sequence)
    return Status(Code::kInvalid, "a bulk message of another version, or out of order");
  BulkHeader header;
  header.subject.type = GetWire<uint16_t>(bytes, 2);
  header.bytes = GetWire<uint32_t>(bytes, 4);
  for (size_t i = 0; i < header.subject.ids.size(); ++i)
    header.subject.ids[i] = GetWire<uint64_t>(bytes, 16 + 8 * i);
  std::memcpy(header.hash.bytes.data(), bytes.data() + 40, header.hash.bytes.size());
  return header;
}

}  // namespace cairn

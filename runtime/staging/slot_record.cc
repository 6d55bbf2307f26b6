#include "runtime/staging/slot_record.h"

#include <cstring>

#include "runtime/formats/little_endian.h"
#include "runtime/formats/sealed_bytes.h"
#include "runtime/io/hash.h"

// Both formats: docs/design/staging.md, section 5.

namespace cairn {
namespace {

constexpr std::string_view kRecordMagic = "CAIRNREC";
constexpr std::string_view kLayoutMagic = "CAIRNLAY";
constexpr uint32_t kVersion = 1;
constexpr size_t kFixedHeadBytes = 16;  // magic, version, size of the head
// The stamp, from the end of the head.
constexpr size_t kLabelAt = 0, kCountAt = 8, kFinalAt = 16;
constexpr size_t kStampBytes = 24;
constexpr size_t kCountBytes = 8;  // how many of a blob's bytes count; before them

Status Damage(const std::string& what) { return {Code::kDamage, "record: " + what}; }

void AppendText(std::string& out, std::string_view text) {
  AppendLittleEndian<uint32_t>(out, static_cast<uint32_t>(text.size()));
  out += text;
}

std::string_view HashView(const Hash128& hash) {
  return {reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size()};
}

// Magic, version, size and the shape, then the hash of all that.
std::string EncodeHead(const RecordShape& shape) {
  std::string table;
  AppendText(table, shape.run_id);
  AppendLittleEndian<uint32_t>(table, static_cast<uint32_t>(shape.blobs.size()));
  for (const RecordShape::Blob& blob : shape.blobs) {
    AppendLittleEndian<uint64_t>(table, blob.capacity);
    AppendText(table, blob.name);
  }
  std::string head(kRecordMagic);
  AppendLittleEndian<uint32_t>(head, kVersion);
  AppendLittleEndian<uint32_t>(head, static_cast<uint32_t>(kFixedHeadBytes + table.size() + sizeof(Hash128)));
  head += table;
  return head.append(HashView(Hash128Of(head)));
}

// Takes numbers and texts off the front of a text; once something does not fit, everything is empty and ok() false.
class Cursor {
 public:
  explicit Cursor(std::string_view rest) : rest_(rest) {}
  template <typename T>
  T Number() {
    const std::string_view bytes = Take(sizeof(T));
    return ok_ ? LittleEndianAt<T>(bytes, 0) : T{};
  }
  std::string_view Text() { return Take(Number<uint32_t>()); }
  std::string_view Take(uint64_t bytes) {
    if (bytes > rest_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

uint64_t SlotRecord::BytesFor(const RecordShape& shape) {
  uint64_t bytes = EncodeHead(shape).size() + kStampBytes;
  for (const RecordShape::Blob& blob : shape.blobs) bytes += kCountBytes + blob.capacity;
  return bytes;
}

SlotRecord::SlotRecord(std::byte* bytes, const RecordShape& shape) {
  const std::string head = EncodeHead(shape);
  std::memcpy(bytes, head.data(), head.size());
  stamp_ = bytes + head.size();
  std::byte* at = stamp_ + kStampBytes;
  for (const RecordShape::Blob& blob : shape.blobs) {
    blobs_.push_back(at);
    at += kCountBytes + blob.capacity;
  }
}

void SlotRecord::Stamp(const SnapshotStamp& stamp) const {
  const uint32_t final = stamp.final ? 1 : 0;
  std::memcpy(stamp_ + kLabelAt, &stamp.label, sizeof stamp.label);
  std::memcpy(stamp_ + kCountAt, &stamp.count, sizeof stamp.count);
  std::memcpy(stamp_ + kFinalAt, &final, sizeof final);
}

void SlotRecord::StoreBlob(size_t i, const std::byte* data, uint64_t bytes) const {
  std::memcpy(blobs_[i], &bytes, kCountBytes);
  if (bytes > 0) std::memcpy(blobs_[i] + kCountBytes, data, bytes);
}

std::string_view SlotRecord::blob(size_t i) const {
  uint64_t bytes = 0;
  std::memcpy(&bytes, blobs_[i], kCountBytes);
  return {reinterpret_cast<const char*>(blobs_[i]) + kCountBytes, bytes};
}

Result<RecordContent> DecodeSlotRecord(std::string_view bytes) {
  if (bytes.size() < kFixedHeadBytes) return Damage("has " + std::to_string(bytes.size()) + " bytes");
  if (!bytes.starts_with(kRecordMagic)) return Damage("no magic at offset 0");
  if (const auto version = LittleEndianAt<uint32_t>(bytes, 8); version != kVersion)
    return Damage("version " + std::to_string(version) + " is not known");
  const auto head_bytes = LittleEndianAt<uint32_t>(bytes, 12);
  if (head_bytes < kFixedHeadBytes + sizeof(Hash128) || head_bytes > bytes.size())
    return Damage("wrong size of the head at offset 12");
  const size_t hashed = head_bytes - sizeof(Hash128);
  if (bytes.substr(hashed, sizeof(Hash128)) != HashView(Hash128Of(bytes.substr(0, hashed))))
    return Damage("the checksum of its head does not fit");

  RecordContent content;
  Cursor data(bytes.substr(head_bytes));
  const std::string_view stamp = data.Take(kStampBytes);
  if (!data.ok()) return Damage("has no stamp");
  content.stamp.label = static_cast<int64_t>(LittleEndianAt<uint64_t>(stamp, kLabelAt));
  content.stamp.count = static_cast<int64_t>(LittleEndianAt<uint64_t>(stamp, kCountAt));
  content.stamp.final = LittleEndianAt<uint32_t>(stamp, kFinalAt) != 0;
  Cursor table(bytes.substr(kFixedHeadBytes, hashed - kFixedHeadBytes));
  content.run_id = table.Text();
  const auto count = table.Number<uint32_t>();
  for (uint32_t i = 0; i < count && table.ok() && data.ok(); ++i) {
    const auto stored = data.Number<uint64_t>();
    const std::string_view blob = data.Take(table.Number<uint64_t>());
    const std::string_view name = table.Text();
    if (stored > blob.size()) return Damage("blob \"" + std::string(name) + "\" is longer than its room");
    content.blobs.emplace(name, blob.substr(0, stored));
  }
  if (!table.at_end()) return Damage("its head is no table of blobs");
  if (!data.at_end()) return Damage("its size does not fit its blobs");
  return content;
}

std::string EncodeLayoutFile(std::string_view state) { return SealBytes(kLayoutMagic, state); }

Result<std::string> DecodeLayoutFile(std::string_view bytes) {
  return UnsealBytes(kLayoutMagic, bytes, "layout");
}

}  // namespace cairn

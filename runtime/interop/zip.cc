#include "runtime/interop/zip.h"

#include "runtime/formats/little_endian.h"
#include "runtime/io/file.h"

// The parts of a zip archive (APPNOTE.TXT of PKWARE), from its end:
//
//   end record      22 bytes     "PK\5\6": number of members, size and place of the directory; all ones = see the next one
//   locator         20 bytes     "PK\6\7" right before it, in archives with 64-bit sizes: place of
//   64-bit end      56 bytes     "PK\6\6": the same numbers, wide
//   directory       46 + … each  "PK\1\2": method, sizes, place of the local header, name; an extra field 1 with what did not fit 32 bits
//   local header    30 + … each  "PK\3\4": before each member's bytes; its name and extra field may have other lengths than the directory's

namespace cairn {
namespace {

constexpr uint64_t kEndBytes = 22, kLocatorBytes = 20, kWideEndBytes = 56, kEntryBytes = 46, kLocalBytes = 30;
constexpr uint64_t kMaxDirectoryBytes = 16 << 20;

bool Is(std::string_view bytes, std::string_view signature) { return bytes.starts_with(signature); }

}  // namespace

Status ZipSlice::Fault(std::string_view what) const {
  return {Code::kDamage, path_ + ", archive at byte " + std::to_string(begin_) + ": " + std::string(what)};
}

Result<std::string> ZipSlice::Bytes(uint64_t at, uint64_t size) const {
  if (at > size_ || size > size_ - at) return Fault("it is cut off or no archive of torch.save");
  std::string bytes(size, '\0');
  CAIRN_RETURN_IF_ERROR(PreadFull(fd_, std::as_writable_bytes(std::span(bytes)), begin_ + at, path_));
  return bytes;
}

Result<ZipSlice> ZipSlice::Open(int fd, std::string path, uint64_t begin, uint64_t size) {
  ZipSlice zip(fd, std::move(path), begin, size);
  CAIRN_RETURN_IF_ERROR(zip.ReadDirectory());
  return zip;
}

Status ZipSlice::ReadDirectory() {
  if (size_ < kEndBytes) return Fault("it is cut off or no archive of torch.save");
  CAIRN_ASSIGN_OR_RETURN(const std::string end, Bytes(size_ - kEndBytes, kEndBytes));
  if (!Is(end, "PK\5\6")) return Fault("it is cut off or no archive of torch.save");
  uint64_t bytes = LittleEndianAt<uint32_t>(end, 12), at = LittleEndianAt<uint32_t>(end, 16);
  if (size_ >= kEndBytes + kLocatorBytes) {
    CAIRN_ASSIGN_OR_RETURN(const std::string locator,
                           Bytes(size_ - kEndBytes - kLocatorBytes, kLocatorBytes));
    if (Is(locator, "PK\6\7")) {
      CAIRN_ASSIGN_OR_RETURN(const std::string wide,
                             Bytes(LittleEndianAt<uint64_t>(locator, 8), kWideEndBytes));
      if (!Is(wide, "PK\6\6")) return Fault("its 64-bit end record is missing");
      bytes = LittleEndianAt<uint64_t>(wide, 40);
      at = LittleEndianAt<uint64_t>(wide, 48);
    }
  }
  if (bytes > kMaxDirectoryBytes) return Fault("its directory has " + std::to_string(bytes) + " bytes");
  CAIRN_ASSIGN_OR_RETURN(const std::string directory, Bytes(at, bytes));
  std::string_view rest = directory;
  while (!rest.empty()) {
    if (rest.size() < kEntryBytes || !Is(rest, "PK\1\2")) return Fault("its directory is malformed");
    const auto method = LittleEndianAt<uint16_t>(rest, 10);
    uint64_t packed = LittleEndianAt<uint32_t>(rest, 20);
    ZipMember member;
    member.bytes = LittleEndianAt<uint32_t>(rest, 24);
    const uint64_t name = LittleEndianAt<uint16_t>(rest, 28), extra = LittleEndianAt<uint16_t>(rest, 30),
                   comment = LittleEndianAt<uint16_t>(rest, 32);
    member.header = LittleEndianAt<uint32_t>(rest, 42);
    if (rest.size() - kEntryBytes < name + extra + comment) return Fault("its directory is malformed");
    member.name = rest.substr(kEntryBytes, name);
    // Field 1 holds, in this order, those of the three numbers that are all ones above.
    std::string_view fields = rest.substr(kEntryBytes + name, extra);
    while (fields.size() >= 4) {
      const uint64_t size = LittleEndianAt<uint16_t>(fields, 2);
      if (fields.size() - 4 < size) return Fault("its directory is malformed");
      if (LittleEndianAt<uint16_t>(fields, 0) == 1) {
        std::string_view wide = fields.substr(4, size);
        for (uint64_t* number : {&member.bytes, &packed, &member.header}) {
          if (*number != UINT32_MAX) continue;
          if (wide.size() < 8) return Fault("its directory is malformed");
          *number = LittleEndianAt<uint64_t>(wide, 0);
          wide.remove_prefix(8);
        }
      }
      fields.remove_prefix(4 + size);
    }
    if (method != 0 || packed != member.bytes) return Fault("member " + member.name + " is compressed");
    members_.push_back(std::move(member));
    rest.remove_prefix(kEntryBytes + name + extra + comment);
  }
  return OkStatus();
}

Result<ZipMember> ZipSlice::Find(std::string_view name) const {
  for (const ZipMember& member : members_) {
    const std::string_view full = member.name;
    if (full.size() > name.size() && full.ends_with(name) && full.find('/') == full.size() - name.size() - 1)
      return member;
  }
  return Fault("it has no member " + std::string(name));
}

Result<uint64_t> ZipSlice::DataOffset(const ZipMember& member) const {
  CAIRN_ASSIGN_OR_RETURN(const std::string local, Bytes(member.header, kLocalBytes));
  if (!Is(local, "PK\3\4")) return Fault("member " + member.name + " has no header");
  const uint64_t at =
      member.header + kLocalBytes + LittleEndianAt<uint16_t>(local, 26) + LittleEndianAt<uint16_t>(local, 28);
  if (at > size_ || member.bytes > size_ - at) return Fault("member " + member.name + " is cut off");
  return begin_ + at;
}

Result<std::string> ZipSlice::Read(const ZipMember& member, uint64_t max_bytes) const {
  if (member.bytes > max_bytes)
    return Fault("member " + member.name + " has " + std::to_string(member.bytes) + " bytes");
  CAIRN_ASSIGN_OR_RETURN(const uint64_t at, DataOffset(member));
  return Bytes(at - begin_, member.bytes);
}

}  // namespace cairn

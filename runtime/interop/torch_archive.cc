#include "runtime/interop/torch_archive.h"

#include <zlib.h>

#include "runtime/formats/little_endian.h"
#include "runtime/interop/dcp_metadata.h"
#include "runtime/io/file.h"

// Members are stored as they are (the parts of a zip archive are described in zip.cc). The tensor comes last, since its checksum is known only
// when its bytes have passed by: its header is then written again.

namespace cairn {
namespace {

constexpr uint16_t kVersion = 20;      // of the format: what is needed to read it
constexpr uint16_t kDosDate = 0x0021;  // 1980-01-01: the same bytes at any time

std::string DirectoryEntry(std::string_view name, uint32_t crc, uint32_t bytes, uint32_t header) {
  std::string out = "PK\1\2";
  AppendLittleEndian<uint16_t>(out, kVersion);
  AppendLittleEndian<uint16_t>(out, kVersion);
  AppendLittleEndian<uint16_t>(out, 0);  // flags
  AppendLittleEndian<uint16_t>(out, 0);  // method: stored
  AppendLittleEndian<uint16_t>(out, 0);
  AppendLittleEndian<uint16_t>(out, kDosDate);
  AppendLittleEndian<uint32_t>(out, crc);
  AppendLittleEndian<uint32_t>(out, bytes);
  AppendLittleEndian<uint32_t>(out, bytes);
  AppendLittleEndian<uint16_t>(out, static_cast<uint16_t>(name.size()));
  out.append(12, '\0');  // no extra field, comment, disk or attributes
  AppendLittleEndian<uint32_t>(out, header);
  return out += name;
}

uint32_t Crc(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

std::string TorchArchive::Header(const Member& member) {
  std::string out = "PK\3\4";
  AppendLittleEndian<uint16_t>(out, kVersion);
  AppendLittleEndian<uint16_t>(out, 0);
  AppendLittleEndian<uint16_t>(out, 0);
  AppendLittleEndian<uint16_t>(out, 0);
  AppendLittleEndian<uint16_t>(out, kDosDate);
  AppendLittleEndian<uint32_t>(out, member.crc);
  AppendLittleEndian<uint32_t>(out, member.bytes);
  AppendLittleEndian<uint32_t>(out, member.bytes);
  AppendLittleEndian<uint16_t>(out, static_cast<uint16_t>(member.name.size()));
  AppendLittleEndian<uint16_t>(out, 0);
  return out += member.name;
}

TorchArchive::TorchArchive(int fd, std::string path, uint64_t begin, DType dtype, const Dims& shape)
    : fd_(fd),
      path_(std::move(path)),
      begin_(begin),
      pickle_(EncodeArchivedTensor(dtype, shape)),
      at_(begin) {}

Status TorchArchive::Begin() {
  for (const auto& [name, bytes] : {std::pair<std::string, std::string>{"archive/data.pkl", pickle_},
                                    {"archive/byteorder", "little"},
                                    {"archive/version", "3\n"}}) {
    const Member member{name, Crc(bytes), static_cast<uint32_t>(bytes.size()),
                        static_cast<uint32_t>(members_.size())};
    directory_ += DirectoryEntry(name, member.crc, member.bytes, member.header);
    members_ += Header(member) + bytes;
  }
  tensor_ = {"archive/data/0", Crc(""), 0, static_cast<uint32_t>(members_.size())};
  members_ += Header(tensor_);
  at_ += members_.size();
  return PwriteFull(fd_, std::as_bytes(std::span(members_)), begin_, path_);
}

Status TorchArchive::Append(std::span<const std::byte> bytes) {
  tensor_.crc =
      static_cast<uint32_t>(crc32_z(tensor_.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  tensor_.bytes += static_cast<uint32_t>(bytes.size());
  CAIRN_RETURN_IF_ERROR(PwriteFull(fd_, bytes, at_, path_));
  at_ += bytes.size();
  return OkStatus();
}

Result<uint64_t> TorchArchive::Finish() {
  const std::string header = Header(tensor_);
  CAIRN_RETURN_IF_ERROR(PwriteFull(fd_, std::as_bytes(std::span(header)), begin_ + tensor_.header, path_));
  directory_ += DirectoryEntry(tensor_.name, tensor_.crc, tensor_.bytes, tensor_.header);
  std::string end = directory_;
  end += "PK\5\6";
  AppendLittleEndian<uint32_t>(end, 0);  // disks
  AppendLittleEndian<uint16_t>(end, 4);
  AppendLittleEndian<uint16_t>(end, 4);
  AppendLittleEndian<uint32_t>(end, static_cast<uint32_t>(directory_.size()));
  AppendLittleEndian<uint32_t>(end, static_cast<uint32_t>(at_ - begin_));
  AppendLittleEndian<uint16_t>(end, 0);  // no comment
  CAIRN_RETURN_IF_ERROR(PwriteFull(fd_, std::as_bytes(std::span(end)), at_, path_));
  return at_ + end.size();
}

}  // namespace cairn

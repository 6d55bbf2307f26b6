#include "runtime/interop/torch_archive.h"

#include <zlib.h>

#include "runtime/formats/little_endian.h"
#include "runtime/interop/dcp_metadata.h"
#include "runtime/io/file.h"

// The tensor comes last, since its checksum is known only when its bytes have passed by: its header is then written again.

namespace cairn {
namespace {

constexpr uint16_t kVersion = 20;      // of the format: what is needed to read it
constexpr uint16_t kDosDate = 0x0021;  // 1980-01-01: the same bytes at any time

uint32_t Crc(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// What torch.save writes before the tensors.
ZipMembers Head(std::string_view pickle) {
  ZipMembers members;
  members.Add("archive/data.pkl", pickle);
  members.Add("archive/byteorder", "little");
  members.Add("archive/version", "3\n");
  return members;
}

}  // namespace

void ZipMembers::Add(const std::string& name, std::string_view content) {
  const Member member{name, Crc(content), static_cast<uint32_t>(content.size()),
                      static_cast<uint32_t>(bytes.size())};
  AddEntry(member);
  bytes += Header(member);
  bytes += content;
}

void ZipMembers::AddEntry(const Member& member) {
  ++count;
  directory += "PK\1\2";
  AppendLittleEndian<uint16_t>(directory, kVersion);
  AppendLittleEndian<uint16_t>(directory, kVersion);
  AppendLittleEndian<uint16_t>(directory, 0);  // flags
  AppendLittleEndian<uint16_t>(directory, 0);  // method: stored
  AppendLittleEndian<uint16_t>(directory, 0);
  AppendLittleEndian<uint16_t>(directory, kDosDate);
  AppendLittleEndian<uint32_t>(directory, member.crc);
  AppendLittleEndian<uint32_t>(directory, member.bytes);
  AppendLittleEndian<uint32_t>(directory, member.bytes);
  AppendLittleEndian<uint16_t>(directory, static_cast<uint16_t>(member.name.size()));
  directory.append(12, '\0');  // no extra field, comment, disk or attributes
  AppendLittleEndian<uint32_t>(directory, member.header);
  directory += member.name;
}

std::string ZipMembers::Header(const Member& member) {
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

std::string ZipMembers::End(uint64_t members_bytes) const {
  std::string end = directory;
  end += "PK\5\6";
  AppendLittleEndian<uint32_t>(end, 0);  // disks
  AppendLittleEndian<uint16_t>(end, count);
  AppendLittleEndian<uint16_t>(end, count);
  AppendLittleEndian<uint32_t>(end, static_cast<uint32_t>(directory.size()));
  AppendLittleEndian<uint32_t>(end, static_cast<uint32_t>(members_bytes));
  AppendLittleEndian<uint16_t>(end, 0);  // no comment
  return end;
}

std::string ArchiveOfObject(std::string_view pickle) {
  const ZipMembers members = Head(pickle);
  return members.bytes + members.End(members.bytes.size());
}

TorchArchive::TorchArchive(int fd, std::string path, uint64_t begin, DType dtype, const Dims& shape)
    : fd_(fd),
      path_(std::move(path)),
      begin_(begin),
      pickle_(EncodeArchivedTensor(dtype, shape)),
      at_(begin) {}

Status TorchArchive::Begin() {
  members_ = Head(pickle_);
  tensor_ = {"archive/data/0", Crc(""), 0, static_cast<uint32_t>(members_.bytes.size())};
  members_.bytes += ZipMembers::Header(tensor_);
  at_ += members_.bytes.size();
  return PwriteFull(fd_, std::as_bytes(std::span(members_.bytes)), begin_, path_);
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
  const std::string header = ZipMembers::Header(tensor_);
  CAIRN_RETURN_IF_ERROR(PwriteFull(fd_, std::as_bytes(std::span(header)), begin_ + tensor_.header, path_));
  members_.AddEntry(tensor_);
  const std::string end = members_.End(at_ - begin_);
  CAIRN_RETURN_IF_ERROR(PwriteFull(fd_, std::as_bytes(std::span(end)), at_, path_));
  return at_ + end.size();
}

}  // namespace cairn

#include "runtime/session/outputs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <span>

#include "runtime/formats/little_endian.h"
#include "runtime/formats/utf8.h"
#include "runtime/io/fd.h"
#include "runtime/io/file.h"

namespace cairn {
namespace {

// One after the other: u32 length of the path, the path, u64 bytes of the file, 16 bytes hash of its end.
constexpr size_t kHeadBytes = 4, kTailBytes = 8 + sizeof(Hash128);
constexpr size_t kMaxEncodedBytes = 64 << 10;
constexpr uint64_t kHashedBytes = 4096;  // of the end of a file

Status Wrong(const std::string& path, const std::string& what) {
  return {Code::kInvalid, "output \"" + path + "\": " + what};
}

// Of the last bytes before `end`; nothing when they cannot be read.
std::optional<Hash128> HashBefore(int fd, uint64_t end, const std::string& path) {
  std::array<std::byte, kHashedBytes> room;
  const std::span<std::byte> bytes(room.data(), std::min(end, kHashedBytes));
  if (!PreadFull(fd, bytes, end - bytes.size(), path).ok()) return std::nullopt;
  return Hash128Of(bytes);
}

Result<Manifest::Output> MeasureFile(const std::string& path) {
  CAIRN_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path, O_RDONLY | O_NONBLOCK));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return Status::FromErrno(errno, "fstat " + path);
  if (!S_ISREG(info.st_mode)) return Status(Code::kInvalid, "it is no regular file any more");
  const auto bytes = static_cast<uint64_t>(info.st_size);
  const std::optional<Hash128> end = HashBefore(fd.get(), bytes, path);
  if (!end) return Status(Code::kUnavailable, "its end cannot be read");
  return Manifest::Output{bytes, *end};
}

// How long the file was, when it was cut; or why it is left as it is.
Result<std::optional<uint64_t>> Cut(const std::string& path, const Manifest::Output& saved) {
  CAIRN_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path, O_RDWR | O_NONBLOCK));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return Status::FromErrno(errno, "fstat " + path);
  if (!S_ISREG(info.st_mode)) return Status(Code::kInvalid, "it is no regular file any more");
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (bytes < saved.bytes) {
    return Status(Code::kInvalid, "it has " + std::to_string(bytes) + " bytes, and had " +
                                      std::to_string(saved.bytes) + " at the save");
  }
  if (HashBefore(fd.get(), saved.bytes, path) != saved.end)
    return Status(Code::kInvalid, "it is not the file that it was at the save");
  if (bytes == saved.bytes) return std::optional<uint64_t>();
  if (ftruncate(fd.get(), static_cast<off_t>(saved.bytes)) != 0)
    return Status::FromErrno(errno, "ftruncate " + path);
  return std::optional(bytes);
}

}  // namespace

Result<OutputLengths> DecodeOutputs(std::string_view bytes) {
  OutputLengths lengths;
  while (!bytes.empty()) {
    const size_t path = bytes.size() < kHeadBytes ? bytes.size() : LittleEndianAt<uint32_t>(bytes, 0);
    if (bytes.size() < kHeadBytes + kTailBytes || path > bytes.size() - kHeadBytes - kTailBytes)
      return Status(Code::kDamage, "lengths of output files that end too early");
    Manifest::Output& output = lengths[std::string(bytes.substr(kHeadBytes, path))];
    output.bytes = LittleEndianAt<uint64_t>(bytes, kHeadBytes + path);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(kHeadBytes + path + 8), output.end.bytes.size(),
                output.end.bytes.begin());
    bytes.remove_prefix(kHeadBytes + path + kTailBytes);
  }
  return lengths;
}

Status Outputs::Add(const std::string& path) {
  namespace fs = std::filesystem;
  if (!IsUtf8(path)) return Wrong(path, "the path is no UTF-8");
  std::error_code error;
  const fs::path given = fs::absolute(path, error);
  const fs::file_status target = fs::status(given, error);
  if (fs::exists(target) && !fs::is_regular_file(target))
    return Wrong(path, "it is no regular file; only a file that grows can be cut back");
  if (!fs::exists(target) && fs::is_symlink(fs::symlink_status(given, error)))
    return Wrong(path, "it is a symbolic link to nothing: make the file first");
  const fs::path folder = fs::canonical(given.parent_path(), error);
  if (error || given.filename().empty()) return Wrong(path, "there is no such folder: make it first");
  const std::string whole =
      fs::exists(target) ? fs::canonical(given, error).string() : (folder / given.filename()).string();
  if (error) return Wrong(path, error.message());
  if (std::find(paths_.begin(), paths_.end(), whole) != paths_.end()) return Wrong(path, "added twice");
  const size_t bytes = max_bytes_ + kHeadBytes + whole.size() + kTailBytes;
  if (bytes > kMaxEncodedBytes) return Wrong(path, "one too many: all paths of a rank take at most 64 KiB");
  paths_.push_back(whole);
  if (fs::exists(target)) seen_.insert(whole);
  max_bytes_ = bytes;
  return OkStatus();
}

std::string Outputs::Measure() const {
  std::string out;
  out.reserve(max_bytes_);
  for (const std::string& path : paths_) {
    Result<Manifest::Output> output = MeasureFile(path);
    if (output.status().code() == Code::kNotFound && !seen_.contains(path))
      output = Manifest::Output{0, Hash128Of(std::string_view())};
    else
      seen_.insert(path);
    if (!output.ok()) continue;
    AppendLittleEndian(out, static_cast<uint32_t>(path.size()));
    out += path;
    AppendLittleEndian(out, output->bytes);
    out.append(output->end.bytes.begin(), output->end.bytes.end());
  }
  return out;
}

void Outputs::Sync() const {
  for (const std::string& path : paths_) {
    if (const auto fd = OpenFile(path, O_RDONLY | O_NONBLOCK); fd.ok()) (void)SyncFile(fd->get(), path);
  }
}

Outputs::CutReport Outputs::CutBack(const OutputLengths& saved) const {
  CutReport report;
  for (const std::string& path : paths_) {
    const auto it = saved.find(path);
    if (it == saved.end()) {
      const auto bytes = FileBytes(path);
      (bytes.ok() && *bytes > 0 ? report.warnings : report.notes)
          .push_back("output " + path + " is left as it is: nothing says how long it was at the save");
      continue;
    }
    if (it->second.bytes > 0) seen_.insert(path);
    const auto cut = Cut(path, it->second);
    if (cut.ok() && *cut) {
      report.notes.push_back("output " + path + " is cut from " + std::to_string(**cut) + " to " +
                             std::to_string(it->second.bytes) + " bytes, as it was at the save");
    } else if (!cut.ok() && (cut.status().code() != Code::kNotFound || it->second.bytes > 0)) {
      report.warnings.push_back(
          "output " + path +
          " is left as it is, and may lack steps or have some twice: " + cut.status().message());
    }
  }
  return report;
}

}  // namespace cairn

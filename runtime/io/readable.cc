#include "runtime/io/readable.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/io/fd.h"
#include "runtime/io/file.h"
#include "runtime/io/stores.h"

namespace cairn {
namespace {

class ReadableFile : public Readable {
 public:
  ReadableFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Result<uint64_t> Bytes() const override {
    struct stat st;
    if (fstat(fd_.get(), &st) != 0) return Status::FromErrno(errno, "stat " + path_);
    return static_cast<uint64_t>(st.st_size);
  }

  // Enough: asking for blocks ahead (POSIX_FADV_WILLNEED) halves the speed of cold reads.
  void ExpectInOrder() override { posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL); }

  Status Read(uint64_t offset, std::span<std::byte> to) const override {
    return PreadFull(fd_.get(), to, offset, path_);
  }

  Status ReadRanges(std::span<const ObjectRange> ranges) const override {
    for (const ObjectRange& range : ranges) CAIRN_RETURN_IF_ERROR(Read(range.offset, range.to));
    return OkStatus();
  }

  Status ReadAgain(uint64_t offset, std::span<std::byte> to, size_t room_bytes) const override {
    if (Result<UniqueFd> direct = OpenFile(path_, O_RDONLY | O_DIRECT); direct.ok()) {
      // What ends the file is asked for in full and comes short.
      const ssize_t n = pread(direct->get(), to.data(), room_bytes, static_cast<off_t>(offset));
      if (n == static_cast<ssize_t>(to.size())) return OkStatus();
    }
    posix_fadvise(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(to.size()), POSIX_FADV_DONTNEED);
    return Read(offset, to);
  }

 private:
  const std::string path_;
  const UniqueFd fd_;
};

class ReadableObject : public Readable {
 public:
  explicit ReadableObject(ObjectPlace place) : place_(std::move(place)) {}

  Result<uint64_t> Bytes() const override { return place_.store->Bytes(place_.key); }

  Status Read(uint64_t offset, std::span<std::byte> to) const override {
    const ObjectRange range{offset, to};
    return ReadRanges({&range, 1});
  }

  Status ReadRanges(std::span<const ObjectRange> ranges) const override {
    return place_.store->Read(place_.key, ranges);
  }

  // Nothing of it is kept here.
  Status ReadAgain(uint64_t offset, std::span<std::byte> to, size_t) const override {
    return Read(offset, to);
  }

 private:
  const ObjectPlace place_;
};

}  // namespace

Result<std::unique_ptr<Readable>> Readable::Open(const std::string& path) {
  if (IsObjectPath(path)) {
    CAIRN_ASSIGN_OR_RETURN(ObjectPlace place, PlaceOf(path));
    return std::unique_ptr<Readable>(new ReadableObject(std::move(place)));
  }
  CAIRN_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_RDONLY));
  return std::unique_ptr<Readable>(new ReadableFile(path, std::move(fd)));
}

}  // namespace cairn

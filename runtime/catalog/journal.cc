#include "runtime/catalog/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "runtime/formats/names.h"
#include "runtime/io/fd.h"
#include "runtime/io/stores.h"

namespace cairn {
namespace {

constexpr uint64_t kMaxJournalBytes = 1 << 30;
constexpr size_t kPartBytes = 64 << 10;  // so much is put again with each line, at most

Status Append(const std::string& path, FileMode mode, std::string line) {
  CAIRN_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path, O_RDWR | O_APPEND | O_CREAT));
  if (mode) (void)fchmod(fd.get(), *mode);
  // A line that was cut short, by a kill or a full disk, must not swallow this one.
  const off_t end = lseek(fd.get(), 0, SEEK_END);
  char last = '\n';
  if (end > 0 && pread(fd.get(), &last, 1, end - 1) == 1 && last != '\n') line.insert(0, 1, '\n');
  const ssize_t n = write(fd.get(), line.data(), line.size());
  if (n < 0) return Status::FromErrno(errno, "write " + path);
  if (static_cast<size_t>(n) != line.size())
    return {Code::kNoSpace, "write " + path + ": the line was cut short"};
  return OkStatus();
}

}  // namespace

// Of the newest part of this life's lines. All copies of a RunDirectory share them.
class RunDirectory::KeptLines {
 public:
  Status Add(const RunDirectory& dir, uint32_t epoch, const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (epoch != epoch_) {
      epoch_ = epoch;
      part_ = 1;
      lines_.clear();
    } else if (lines_.size() >= kPartBytes) {
      ++part_;
      lines_.clear();
    }
    lines_ += line;
    return PublishFile(dir.PathOf(names::JournalPart({epoch_, part_})), lines_);
  }

 private:
  std::mutex mutex_;
  uint32_t epoch_ = 0, part_ = 0;
  std::string lines_;
};

RunDirectory::RunDirectory(std::string path, RunInfo info, FileMode mode)
    : path_(std::move(path)), info_(std::move(info)), mode_(mode) {
  if (in_bucket()) kept_lines_ = std::make_shared<KeptLines>();
}

bool RunDirectory::in_bucket() const { return IsObjectPath(path_); }

Status RunDirectory::Journal(uint32_t epoch, std::string_view json) const {
  const std::string line = std::string(json) + "\n";
  if (!kept_lines_) return Append(PathOf(names::kJournal), mode_, line);
  if (epoch == 0) return OkStatus();  // a name of its own has only a life that owns the directory
  return kept_lines_->Add(*this, epoch, line);
}

Result<std::string> ReadJournal(const RunDirectory& dir) {
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListDirectory(dir.path()));
  std::string lines;
  for (const std::string& name : entries) {
    if (name != names::kJournal && !names::ParseJournalPart(name)) continue;
    CAIRN_ASSIGN_OR_RETURN(const std::string part, ReadAll(dir.PathOf(name), kMaxJournalBytes));
    lines += part;
  }
  return lines;
}

}  // namespace cairn

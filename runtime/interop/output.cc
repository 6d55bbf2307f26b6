#include "runtime/interop/output.h"

#include <filesystem>

#include "runtime/io/file.h"
#include "runtime/io/random.h"
#include "runtime/io/stores.h"

namespace cairn {

namespace fs = std::filesystem;

Result<Output> Output::File(const std::string& path) { return Make(path, false); }
Result<Output> Output::Folder(const std::string& path) { return Make(path, true); }

Result<Output> Output::Make(const std::string& given, bool folder) {
  if (IsObjectPath(given)) {
    return Status(Code::kInvalid,
                  given +
                      ": this can be made in a directory only; give one, and copy it (`aws s3 "
                      "sync`, rclone): the names of a run's objects are those of its files");
  }
  CAIRN_ASSIGN_OR_RETURN(const fs::path path, AbsolutePath(given));
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (fs::exists(status)) {
    const bool empty_folder = folder && fs::is_directory(status) && fs::is_empty(path, error) && !error;
    if (!empty_folder) return Status(Code::kExists, path.string() + " is there already: name a new one");
  }
  CAIRN_RETURN_IF_ERROR(MakeDirectories(path.parent_path()));
  const fs::path temporary = path.parent_path() / (".tmp-" + path.filename().string() + "-" + RandomHex(8));
  if (folder) CAIRN_RETURN_IF_ERROR(MakeDirectories(temporary));
  return Output(temporary, path, folder);
}

Output::~Output() {
  if (!temporary_.empty()) (void)(folder_ ? RemoveTree(temporary_) : RemoveFile(temporary_));
}

Status Output::Publish() {
  if (folder_) CAIRN_RETURN_IF_ERROR(SyncDirectory(temporary_));
  CAIRN_RETURN_IF_ERROR(RenameDirectory(temporary_, path_));
  temporary_.clear();
  return SyncDirectory(fs::path(path_).parent_path());
}

}  // namespace cairn

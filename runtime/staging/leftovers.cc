#include "runtime/staging/leftovers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/formats/names.h"
#include "runtime/io/file.h"
#include "runtime/staging/private_folder.h"

namespace cairn {
namespace {

constexpr std::string_view kSidecarSuffix = ".sidecar";
constexpr uint64_t kMaxLayoutBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxDestinationBytes = 1 << 20;
constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;

Result<std::string> ReadIn(int folder, const std::string& name, uint64_t max_bytes) {
  const UniqueFd file(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid()) return Status::FromErrno(errno, "open " + name);
  struct stat st;
  if (fstat(file.get(), &st) != 0) return Status::FromErrno(errno, "stat " + name);
  const auto bytes = static_cast<uint64_t>(st.st_size);
  if (!S_ISREG(st.st_mode) || bytes > max_bytes) return Status(Code::kDamage, name + " is no such file");
  std::string content(bytes, '\0');
  CAIRN_RETURN_IF_ERROR(PreadFull(file.get(), std::as_writable_bytes(std::span(content)), 0, name));
  return content;
}

Result<SidecarContent> ReadSidecar(int folder, const std::string& slot) {
  CAIRN_ASSIGN_OR_RETURN(const std::string bytes,
                         ReadIn(folder, slot + std::string(kSidecarSuffix), kSidecarBytes));
  CAIRN_ASSIGN_OR_RETURN(const SidecarContent sidecar,
                         DecodeSidecar(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()));
  if (sidecar.state != SlotState::kStaged && sidecar.state != SlotState::kHashed)
    return Status(Code::kDamage, slot + " is " + std::string(SlotStateName(sidecar.state)));
  return sidecar;
}

Result<RecordContent> ReadRecord(int folder, const std::string& slot) {
  CAIRN_ASSIGN_OR_RETURN(const std::string bytes, ReadIn(folder, slot + ".record", kMaxRecordBytes));
  return DecodeSlotRecord(bytes);
}

// The names of a slot's images, by number.
std::map<uint32_t, std::string> ImagesIn(const std::vector<std::string>& names, const std::string& slot) {
  std::map<uint32_t, std::string> images;
  for (const std::string& name : names) {
    if (!name.starts_with(slot + ".")) continue;
    if (const auto number = names::ParseShard(std::string_view(name).substr(slot.size() + 1)))
      images.emplace(*number, name);
  }
  return images;
}

// One name, not a path.
bool IsPlainName(const std::string& name) { return !name.empty() && name.find('/') == std::string::npos; }

}  // namespace

Result<Leftovers> Leftovers::Open(const LocalTierOptions& options) {
  Leftovers left;
  const std::string base = LocalBase(options);
  if (base.empty()) return left;
  CAIRN_ASSIGN_OR_RETURN(left.prefix_, FolderPrefix(options));
  left.path_ = base + "/" + UserFolderName();
  CAIRN_ASSIGN_OR_RETURN(const UniqueFd base_folder, OpenFile(base, O_RDONLY | O_DIRECTORY));
  Result<UniqueFd> parent =
      OpenPrivateFolder(base_folder.get(), UserFolderName(), left.path_, Presence::kMustBe);
  if (parent.status().code() == Code::kNotFound) return left;
  CAIRN_ASSIGN_OR_RETURN(left.parent_, std::move(parent));
  return left;
}

std::vector<std::string> Leftovers::DeadFolders() const {
  std::vector<std::string> dead;
  if (!parent_.valid()) return dead;
  const auto names = ListDirectory(path_);
  if (!names.ok()) return dead;
  for (const std::string& name : *names) {
    if (!name.starts_with(prefix_)) continue;
    const auto folder = OpenFolder(name);
    if (folder.ok() && !InUse(folder->get())) dead.push_back(name);
  }
  return dead;
}

Result<UniqueFd> Leftovers::OpenFolder(const std::string& folder) const {
  if (!parent_.valid() || !IsPlainName(folder) || !folder.starts_with(prefix_))
    return Status(Code::kNotFound, "\"" + folder + "\" is no folder of this job on this node");
  return OpenPrivateFolder(parent_.get(), folder, path_ + "/" + folder, Presence::kMustBe);
}

std::vector<LeftSlot> Leftovers::ListFolder(const std::string& folder) const {
  std::vector<LeftSlot> slots;
  const auto opened = OpenFolder(folder);
  const auto names = ListDirectory(path_ + "/" + folder);
  if (!opened.ok() || !names.ok()) return slots;
  const bool has_layout = std::find(names->begin(), names->end(), kLayoutFile) != names->end();
  for (const std::string& name : *names) {
    if (!name.ends_with(kSidecarSuffix)) continue;
    const std::string slot = name.substr(0, name.size() - kSidecarSuffix.size());
    const auto sidecar = ReadSidecar(opened->get(), slot);
    if (!sidecar.ok()) continue;
    const auto record = ReadRecord(opened->get(), slot);
    if (!record.ok()) continue;
    std::vector<uint32_t> images;
    for (const auto& [number, path] : ImagesIn(*names, slot)) images.push_back(number);
    slots.push_back(
        {folder, slot, sidecar->id, record->run_id, record->stamp, std::move(images), has_layout});
  }
  return slots;
}

std::vector<LeftSlot> Leftovers::List() const {
  std::vector<LeftSlot> slots;
  for (const std::string& folder : DeadFolders()) {
    std::vector<LeftSlot> found = ListFolder(folder);
    const std::string path = path_ + "/" + folder;
    if (found.empty()) {
      const auto content = ListDirectory(path);
      if (content.ok() && !content->empty()) static_cast<void>(RemoveTree(path));
    }
    std::move(found.begin(), found.end(), std::back_inserter(slots));
  }
  return slots;
}

Result<std::string> Leftovers::ReadLayout(const std::string& folder) const {
  CAIRN_ASSIGN_OR_RETURN(const UniqueFd opened, OpenFolder(folder));
  CAIRN_ASSIGN_OR_RETURN(const std::string bytes, ReadIn(opened.get(), kLayoutFile, kMaxLayoutBytes));
  return DecodeLayoutFile(bytes);
}

Result<std::string> Leftovers::ReadDestination(const std::string& folder) const {
  CAIRN_ASSIGN_OR_RETURN(const UniqueFd opened, OpenFolder(folder));
  return ReadIn(opened.get(), kDestinationFile, kMaxDestinationBytes);
}

Result<Leftovers::Adopted> Leftovers::Adopt(const std::string& folder, const std::string& slot,
                                            const ImagePlan& plan) const {
  if (!IsPlainName(slot)) return Status(Code::kNotFound, "\"" + slot + "\" is no slot");
  const std::string path = path_ + "/" + folder;
  const auto adopt = [&]() -> Result<Adopted> {
    CAIRN_ASSIGN_OR_RETURN(const UniqueFd opened, OpenFolder(folder));
    Adopted adopted;
    CAIRN_ASSIGN_OR_RETURN(adopted.sidecar, ReadSidecar(opened.get(), slot));
    CAIRN_ASSIGN_OR_RETURN(adopted.record, ReadRecord(opened.get(), slot));
    CAIRN_ASSIGN_OR_RETURN(adopted.slot, MemorySlot::Adopt(opened.get(), slot, plan));
    return adopted;
  };
  Result<Adopted> adopted = adopt();
  // What was seen a moment ago and is not there any more is as good as damaged.
  if (adopted.status().code() == Code::kNotFound)
    return Status(Code::kDamage, path + ": " + adopted.status().message());
  if (!adopted.ok()) return adopted.status().Annotate(path);
  return adopted;
}

std::map<uint32_t, std::string> Leftovers::ImagePaths(const std::string& folder,
                                                      const std::string& slot) const {
  std::map<uint32_t, std::string> paths;
  if (!OpenFolder(folder).ok()) return paths;
  const auto names = ListDirectory(path_ + "/" + folder);
  if (!names.ok()) return paths;
  for (const auto& [number, name] : ImagesIn(*names, slot))
    paths.emplace(number, path_ + "/" + folder + "/" + name);
  return paths;
}

void Leftovers::Remove(const std::string& run_id) const {
  for (const std::string& folder : DeadFolders()) {
    const std::vector<LeftSlot> slots = ListFolder(folder);
    const bool of_run = !slots.empty() && std::all_of(slots.begin(), slots.end(), [&](const LeftSlot& slot) {
      return slot.run_id == run_id;
    });
    if (of_run) static_cast<void>(RemoveTree(path_ + "/" + folder));
  }
}

}  // namespace cairn

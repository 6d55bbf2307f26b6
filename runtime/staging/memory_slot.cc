#include "runtime/staging/memory_slot.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/formats/names.h"
#include "runtime/io/file.h"
#include "runtime/staging/drain.h"
#include "runtime/staging/snapshot.h"

namespace cairn {

namespace {

// A slot's file, of just this size, as `map` (Mapping::OfFile or Share) maps it.
Result<Mapping> MapFile(int folder, const std::string& name, uint64_t bytes,
                        Result<Mapping> (*map)(int, uint64_t, const std::string&)) {
  const UniqueFd file(openat(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid()) return Status::FromErrno(errno, "open " + name);
  struct stat st;
  if (fstat(file.get(), &st) != 0) return Status::FromErrno(errno, "stat " + name);
  if (static_cast<uint64_t>(st.st_size) != bytes) {
    return Status(Code::kDamage,
                  name + " has " + std::to_string(st.st_size) + " bytes instead of " + std::to_string(bytes));
  }
  return map(file.get(), bytes, name);
}

// What another rank has made: its pages are there, and so that no store faults they are read once.
Result<Mapping> Share(int folder, const std::string& name, uint64_t bytes) {
  CAIRN_ASSIGN_OR_RETURN(Mapping mapping, MapFile(folder, name, bytes, &Mapping::Share));
  for (uint64_t at = 0; at < bytes; at += WholePages(1))
    static_cast<void>(*reinterpret_cast<volatile const std::byte*>(mapping.data() + at));
  return mapping;
}

}  // namespace

Result<std::unique_ptr<MemorySlot>> MemorySlot::Make(const LocalTier& tier, const ImagePlan& plan, int number,
                                                     const MayTakeFunction& may_take,
                                                     const std::string& shared_folder) {
  std::unique_ptr<MemorySlot> slot(new MemorySlot(number));
  std::vector<std::string> made;
  const auto map = [&](const std::string& what, uint64_t bytes) -> Result<Mapping> {
    const std::string name = "slot" + std::to_string(number) + "." + what;
    CAIRN_ASSIGN_OR_RETURN(Mapping mapping, tier.Map(name, bytes, may_take));
    made.push_back(name);
    return mapping;
  };
  const auto map_all = [&]() -> Status {
    // The sidecar first: whoever finds an image finds what it is.
    CAIRN_ASSIGN_OR_RETURN(slot->sidecar_, map("sidecar", kSidecarBytes));
    for (const Image& image : plan.images) {
      CAIRN_ASSIGN_OR_RETURN(Mapping mapping, map(names::Shard(image.number), image.size_bytes));
      std::memcpy(mapping.data(), image.header.data(), image.header.size());
      slot->Add(std::move(mapping));
    }
    if (plan.shared.empty()) return OkStatus();
    CAIRN_ASSIGN_OR_RETURN(const UniqueFd folder, OpenFile(shared_folder, O_RDONLY | O_DIRECTORY));
    const auto share = [&](const std::string& what, uint64_t bytes) -> Result<Mapping> {
      auto mapping = Share(folder.get(), "slot" + std::to_string(number) + "." + what, bytes);
      if (!mapping.ok()) return mapping.status().Annotate(shared_folder);
      return mapping;
    };
    CAIRN_ASSIGN_OR_RETURN(slot->sidecar_of_first_, share("sidecar", kSidecarBytes));
    for (const Image& image : plan.shared) {
      CAIRN_ASSIGN_OR_RETURN(Mapping mapping, share(names::Shard(image.number), image.size_bytes));
      slot->Add(std::move(mapping));
    }
    return OkStatus();
  };
  if (Status status = map_all(); !status.ok()) {
    for (const std::string& name : made) tier.Remove(name);
    return status;
  }
  return slot;
}

Result<std::unique_ptr<MemorySlot>> MemorySlot::Adopt(int folder, const std::string& name,
                                                      const ImagePlan& plan) {
  const auto map = [&](const std::string& what, uint64_t bytes) {
    return MapFile(folder, name + "." + what, bytes, &Mapping::OfFile);
  };
  std::unique_ptr<MemorySlot> slot(new MemorySlot(0));
  CAIRN_ASSIGN_OR_RETURN(slot->sidecar_, map("sidecar", kSidecarBytes));
  for (const Image& image : plan.images) {
    CAIRN_ASSIGN_OR_RETURN(Mapping mapping, map(names::Shard(image.number), image.size_bytes));
    if (std::memcmp(mapping.data(), image.header.data(), image.header.size()) != 0)
      return Status(Code::kDamage, name + "." + names::Shard(image.number) + " begins with another header");
    slot->Add(std::move(mapping));
  }
  return slot;
}

void MemorySlot::Add(Mapping image) {
  images_.push_back(image.data());
  mappings_.push_back(std::move(image));
}

uint64_t MemorySlot::BytesFor(const ImagePlan& plan) {
  uint64_t bytes = WholePages(kSidecarBytes);
  for (const Image& image : plan.images) bytes += WholePages(image.size_bytes);
  return bytes;
}

Status MemorySlot::Fill(const ImagePlan&, const SnapshotPlan& snapshot, void* const* pieces, DrainControl&) {
  if (sidecar_of_first_.data() != nullptr) Sidecar(sidecar_of_first_.data()).VoidUnlessOf(sidecar());
  CAIRN_RETURN_IF_ERROR(snapshot.Run(pieces, images_.data()));
  return snapshot.late() ? OkStatus() : Finish(snapshot);
}

Result<std::vector<ShardRecord>> MemorySlot::Drain(const ImagePlan& plan, const DrainOptions& options,
                                                   DrainControl& control) {
  return cairn::Drain(*this, plan, options, control);
}

}  // namespace cairn

#include <fcntl.h>

#include <map>

#include "runtime/interop/dcp.h"
#include "runtime/interop/dcp_metadata.h"
#include "runtime/interop/zip.h"
#include "runtime/io/file.h"

namespace cairn {
namespace {

constexpr uint64_t kMaxMetadataBytes = 256 << 20;
constexpr uint64_t kMaxTensorPickleBytes = 64 << 10;

// The files of the checkpoint. Only the last is held open: there may be more than a process may open.
class DcpFiles {
 public:
  explicit DcpFiles(std::string folder) : folder_(std::move(folder)) {}

  struct File {
    uint32_t number;
    std::string path;
    uint64_t bytes;
  };

  // Whose descriptor fd() is, until the next call.
  Result<const File*> Open(const std::string& name) {
    auto it = files_.find(name);
    if (it == files_.end()) {
      File file{static_cast<uint32_t>(paths_.size()), folder_ + "/" + name, 0};
      CAIRN_ASSIGN_OR_RETURN(file.bytes, FileBytes(file.path));
      paths_.push_back(file.path);
      it = files_.emplace(name, std::move(file)).first;
    }
    if (open_ != &it->second) {
      CAIRN_ASSIGN_OR_RETURN(fd_, OpenFile(it->second.path, O_RDONLY));
      open_ = &it->second;
    }
    return open_;
  }

  int fd() const { return fd_.get(); }

  std::vector<std::string> paths() && { return std::move(paths_); }

 private:
  const std::string folder_;
  std::map<std::string, File> files_;
  std::vector<std::string> paths_;
  const File* open_ = nullptr;
  UniqueFd fd_;
};

// Finds the bytes of one chunk. The tensor in its archive may lie in any order of its dimensions (channels_last, say).
Result<StoredBox> Locate(DcpFiles& files, const DcpTensor& tensor, const DcpChunk& chunk) {
  CAIRN_ASSIGN_OR_RETURN(const DcpFiles::File* file, files.Open(chunk.file));
  const auto damage = [&](const std::string& what) {
    return Status(Code::kDamage, file->path + ", archive at byte " + std::to_string(chunk.offset) + ", \"" +
                                     tensor.name + "\" at " + chunk.box.offset.ToString() + ": " + what);
  };
  if (chunk.offset > file->bytes || chunk.bytes > file->bytes - chunk.offset)
    return damage("the file is cut off");
  CAIRN_ASSIGN_OR_RETURN(const ZipSlice zip,
                         ZipSlice::Open(files.fd(), file->path, chunk.offset, chunk.bytes));
  CAIRN_ASSIGN_OR_RETURN(const ZipMember pickle, zip.Find("data.pkl"));
  CAIRN_ASSIGN_OR_RETURN(std::string data_pkl, zip.Read(pickle, kMaxTensorPickleBytes));
  const auto archived = DecodeArchivedTensor(std::move(data_pkl));
  if (!archived.ok()) return Status(archived.status().code(), damage(archived.status().message()).message());
  if (archived->dtype != tensor.dtype || archived->shape != chunk.box.extent) {
    return damage("it is " + std::string(DTypeName(archived->dtype)) + " " + archived->shape.ToString() +
                  ", not " + std::string(DTypeName(tensor.dtype)) + " " + chunk.box.extent.ToString());
  }
  if (const auto order = zip.Find("byteorder"); order.ok()) {
    CAIRN_ASSIGN_OR_RETURN(const std::string text, zip.Read(*order, 16));
    if (text != "little") return Status(Code::kMismatch, damage("its byte order is " + text).message());
  }
  CAIRN_ASSIGN_OR_RETURN(const ZipMember data, zip.Find("data/" + archived->storage));
  // From the first to the last element, in elements; nothing may overflow on the way.
  int64_t last = archived->first;
  for (int d = 0; d < archived->shape.size(); ++d) {
    int64_t steps = 0;
    if (__builtin_mul_overflow(archived->shape[d] - 1, archived->stride[d], &steps) ||
        __builtin_add_overflow(last, steps, &last)) {
      return damage("its stride is beyond all bounds");
    }
  }
  const int width = DTypeBytes(tensor.dtype);
  if (static_cast<uint64_t>(last) >= data.bytes / static_cast<uint64_t>(width))
    return damage("its storage is too small");
  CAIRN_ASSIGN_OR_RETURN(const uint64_t at, zip.DataOffset(data));
  StoredBox box{0, file->number, at + static_cast<uint64_t>(archived->first * width), chunk.box,
                archived->stride};
  for (int d = 0; d < box.stride_bytes.size(); ++d)  // that of one element means nothing, and may be anything
    box.stride_bytes[d] = chunk.box.extent[d] > 1 ? box.stride_bytes[d] * width : 0;
  return box;
}

}  // namespace

Result<std::unique_ptr<StoredSource>> OpenDcp(const std::string& folder) {
  const std::string path = folder + "/" + std::string(kDcpMetadata);
  CAIRN_ASSIGN_OR_RETURN(std::string bytes, ReadAll(path, kMaxMetadataBytes));
  const Result<DcpMetadata> metadata = DecodeDcpMetadata(std::move(bytes));
  if (!metadata.ok()) return metadata.status().Annotate(path);
  DcpFiles files(folder);
  std::vector<ArraySpec> arrays;
  std::vector<StoredBox> boxes;
  for (const DcpTensor& tensor : metadata->tensors) {
    const auto array = static_cast<uint32_t>(arrays.size());
    arrays.push_back({tensor.name, tensor.dtype, false, tensor.shape});
    for (const DcpChunk& chunk : tensor.chunks) {
      if (chunk.box.empty()) continue;
      CAIRN_ASSIGN_OR_RETURN(StoredBox box, Locate(files, tensor, chunk));
      box.array = array;
      boxes.push_back(std::move(box));
    }
  }
  std::vector<std::string> objects;
  for (const DcpObject& object : metadata->objects) objects.push_back(object.name);
  return StoredSource::Make(folder, std::move(arrays), std::move(files).paths(), std::move(boxes),
                            std::move(objects));
}

}  // namespace cairn

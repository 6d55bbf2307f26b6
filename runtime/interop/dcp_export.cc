#include <fcntl.h>

#include <algorithm>

#include "runtime/interop/dcp.h"
#include "runtime/interop/dcp_metadata.h"
#include "runtime/interop/meter.h"
#include "runtime/interop/output.h"
#include "runtime/interop/torch_archive.h"
#include "runtime/io/file.h"

namespace cairn {
namespace {

// The data files, one after the other.
class DcpWriter {
 public:
  DcpWriter(ArraySource& source, std::string folder, uint64_t file_limit, Meter& meter)
      : source_(source), folder_(std::move(folder)), file_limit_(file_limit), meter_(meter) {}

  Result<DcpTensor> Write(const NamedArray& named) {
    const ArraySpec& array = source_.arrays()[named.array];
    DcpTensor tensor{named.name, array.dtype, array.shape, {}};
    std::vector<Box> boxes = Slabs(array.shape, DTypeBytes(array.dtype), kMaxArchivedBytes);
    if (boxes.empty()) boxes.push_back(Box::Whole(array.shape));  // DCP stores empty tensors, too
    for (const Box& box : boxes) {
      CAIRN_ASSIGN_OR_RETURN(DcpChunk chunk, WriteChunk(named.array, box));
      tensor.chunks.push_back(std::move(chunk));
    }
    return tensor;
  }

  Result<DcpObject> Write(const BlobItem& blob) {
    const std::string pickle = EncodeArchivedBytes(blob.by_rank);
    if (pickle.size() > kMaxArchivedBytes)
      return Status(Code::kInvalid, "blob \"" + blob.name + "\" has " + std::to_string(pickle.size()) +
                                        " bytes, an archive of torch.save at most " +
                                        std::to_string(kMaxArchivedBytes) + "; leave it out by --names");
    const std::string archive = ArchiveOfObject(pickle);
    CAIRN_RETURN_IF_ERROR(MakeRoom(archive.size()));
    CAIRN_RETURN_IF_ERROR(PwriteFull(fd_.get(), std::as_bytes(std::span(archive)), end_, path_));
    DcpObject object{blob.name, files_.back(), end_, archive.size()};
    end_ += archive.size();
    return object;
  }

  // fsyncs the last file.
  Status Close() {
    if (!fd_.valid()) return OkStatus();
    CAIRN_RETURN_IF_ERROR(SyncFile(fd_.get(), path_));
    bytes_ += end_;
    return std::exchange(fd_, UniqueFd()).Close(path_);
  }

  const std::vector<std::string>& files() const { return files_; }
  uint64_t bytes() const { return bytes_; }

 private:
  // Begins a new file where this one is full.
  Status MakeRoom(uint64_t bytes) {
    if (fd_.valid() && (end_ == 0 || bytes <= file_limit_ - std::min(end_, file_limit_))) return OkStatus();
    CAIRN_RETURN_IF_ERROR(Close());
    files_.push_back("__0_" + std::to_string(files_.size()) + ".distcp");
    path_ = folder_ + "/" + files_.back();
    CAIRN_ASSIGN_OR_RETURN(fd_, OpenFile(path_, O_WRONLY | O_CREAT | O_EXCL));
    end_ = 0;
    return OkStatus();
  }

  Result<DcpChunk> WriteChunk(uint32_t array, const Box& box) {
    const ArraySpec& spec = source_.arrays()[array];
    const auto bytes = static_cast<uint64_t>(box.elements() * DTypeBytes(spec.dtype));
    CAIRN_RETURN_IF_ERROR(MakeRoom(bytes));
    TorchArchive archive(fd_.get(), path_, end_, spec.dtype, box.extent);
    CAIRN_RETURN_IF_ERROR(archive.Begin());
    const Status streamed =
        Stream(source_, array, box, [&](const Box&, std::span<const std::byte> slab, uint64_t) {
          Status status = archive.Append(slab);
          if (status.ok()) meter_(slab.size());
          return status;
        });
    if (!streamed.ok()) return streamed;
    CAIRN_ASSIGN_OR_RETURN(const uint64_t end, archive.Finish());
    DcpChunk chunk{box, files_.back(), end_, end - end_};
    end_ = end;
    return chunk;
  }

  ArraySource& source_;
  const std::string folder_;
  const uint64_t file_limit_;
  Meter& meter_;
  std::vector<std::string> files_;
  UniqueFd fd_;  // of the last file
  std::string path_;
  uint64_t end_ = 0;    // of the last file
  uint64_t bytes_ = 0;  // of those before it
};

}  // namespace

Result<Exported> ExportDcp(ArraySource& source, std::span<const NamedArray> arrays,
                           std::span<const BlobItem> blobs, const std::string& path, uint64_t file_limit,
                           const Progress& progress) {
  for (const BlobItem& blob : blobs) {
    if (std::any_of(arrays.begin(), arrays.end(), [&](const NamedArray& a) { return a.name == blob.name; }))
      return Status(Code::kInvalid, "an array and a blob would both be called \"" + blob.name + "\"");
  }
  for (const NamedArray& named : arrays) {
    const DType dtype = source.arrays()[named.array].dtype;
    if (TorchHas(dtype)) continue;
    return Status(Code::kInvalid, "array \"" + named.name + "\" is " + std::string(DTypeName(dtype)) +
                                      ", and PyTorch has no such type: leave it out by --names, or take it "
                                      "along by `--to safetensors`");
  }
  CAIRN_ASSIGN_OR_RETURN(Output output, Output::Folder(path));
  Meter meter(source, arrays, progress);
  DcpWriter writer(source, output.temporary(), file_limit, meter);
  DcpMetadata metadata;
  for (const NamedArray& named : arrays) {
    CAIRN_ASSIGN_OR_RETURN(DcpTensor tensor, writer.Write(named));
    metadata.tensors.push_back(std::move(tensor));
  }
  for (const BlobItem& blob : blobs) {
    CAIRN_ASSIGN_OR_RETURN(DcpObject object, writer.Write(blob));
    metadata.objects.push_back(std::move(object));
  }
  CAIRN_RETURN_IF_ERROR(writer.Close());
  const std::string bytes = EncodeDcpMetadata(metadata);
  const std::string name(kDcpMetadata);
  CAIRN_RETURN_IF_ERROR(PublishFile(output.temporary() + "/" + name, bytes));
  CAIRN_RETURN_IF_ERROR(output.Publish());
  Exported exported{output.path(), writer.files(), writer.bytes() + bytes.size()};
  exported.files.push_back(name);
  return exported;
}

}  // namespace cairn

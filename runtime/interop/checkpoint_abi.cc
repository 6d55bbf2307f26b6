// The part of the C interface that reads a committed checkpoint, or a foreign state.

#include <algorithm>
#include <memory>
#include <string>

#include "runtime/abi_guard.h"
#include "runtime/catalog/target.h"
#include "runtime/include/cairn/cairn.h"
#include "runtime/interop/checkpoint_source.h"
#include "runtime/interop/foreign.h"
#include "runtime/s3/use_s3.h"

struct cairn_checkpoint {
  std::unique_ptr<cairn::ArraySource> source;
  std::string path;
  // Of a foreign state zeros, and none.
  cairn::Manifest manifest;
  cairn::Blobs blobs;
};

namespace {

using cairn::ArraySpec;
using cairn::Box;
using cairn::Code;
using cairn::Dims;
using cairn::Result;
using cairn::Status;
using cairn::abi::Guard;
using cairn::abi::Report;

Result<cairn_checkpoint> Open(const std::string& target) {
  CAIRN_ASSIGN_OR_RETURN(const std::string path, cairn::AbsolutePath(target));
  CAIRN_ASSIGN_OR_RETURN(const std::string format, cairn::ForeignFormat(path));
  if (!format.empty()) {
    CAIRN_ASSIGN_OR_RETURN(auto source, cairn::OpenForeign(format, path));
    return cairn_checkpoint{std::move(source), path, {}, {}};
  }
  CAIRN_ASSIGN_OR_RETURN(const cairn::Chosen chosen, cairn::ChooseCheckpoint(target));
  CAIRN_ASSIGN_OR_RETURN(auto source, cairn::CheckpointSource::Open(chosen.dir, chosen.checkpoint.name));
  const cairn::LoadedCheckpoint& loaded = source->checkpoint();
  cairn_checkpoint opened{nullptr, loaded.path, loaded.manifest, loaded.blobs};
  opened.source = std::move(source);
  return opened;
}

Result<const ArraySpec*> ArrayOf(const cairn_checkpoint* checkpoint, int index) {
  if (checkpoint == nullptr) return Status(Code::kInvalid, "checkpoint is NULL");
  const auto& arrays = checkpoint->source->arrays();
  if (index < 0 || static_cast<size_t>(index) >= arrays.size()) {
    return Status(Code::kInvalid, "array " + std::to_string(index) + " of " + std::to_string(arrays.size()));
  }
  return &arrays[static_cast<size_t>(index)];
}

// As the program counted its dimensions, or as they are stored: the same step there and back.
Dims Turned(const ArraySpec& array, const int64_t* dims) {
  Dims out;
  for (int d = 0, n = array.shape.size(); d < n; ++d) out.push_back(dims[array.fortran ? n - 1 - d : d]);
  return out;
}

}  // namespace

extern "C" {

CAIRN_API int cairn_checkpoint_open(const char* target, cairn_checkpoint** checkpoint) {
  return Guard([&] {
    if (checkpoint == nullptr) return Report({Code::kInvalid, "cairn_checkpoint_open: checkpoint is NULL"});
    *checkpoint = nullptr;
    if (target == nullptr) return Report({Code::kInvalid, "cairn_checkpoint_open: target is NULL"});
    cairn::UseS3();
    auto opened = Open(target);
    if (!opened.ok()) return Report(opened.status());
    *checkpoint = new cairn_checkpoint(*std::move(opened));
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_checkpoint_describe(const cairn_checkpoint* checkpoint, cairn_checkpoint_info* info) {
  return Guard([&] {
    if (checkpoint == nullptr || info == nullptr || info->struct_size < sizeof(cairn_checkpoint_info)) {
      return Report({Code::kInvalid,
                     "cairn_checkpoint_describe: NULL, or struct_size is not sizeof(cairn_checkpoint_info)"});
    }
    info->path = checkpoint->path.c_str();
    info->step = checkpoint->manifest.step;
    info->label = checkpoint->manifest.label;
    info->world_size = static_cast<int>(checkpoint->manifest.world_size);
    info->array_count = static_cast<int>(checkpoint->source->arrays().size());
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_checkpoint_array(const cairn_checkpoint* checkpoint, int index,
                                     cairn_saved_array* array) {
  return Guard([&] {
    const auto found = ArrayOf(checkpoint, index);
    if (!found.ok()) return Report(found.status());
    if (array == nullptr || array->struct_size < sizeof(cairn_saved_array)) {
      return Report(
          {Code::kInvalid, "cairn_checkpoint_array: NULL, or struct_size is not sizeof(cairn_saved_array)"});
    }
    const ArraySpec& spec = **found;
    const Dims shape = Turned(spec, spec.shape.begin());
    array->name = spec.name.c_str();
    array->dtype = static_cast<int>(spec.dtype);
    array->order = spec.fortran ? CAIRN_ORDER_FORTRAN : CAIRN_ORDER_C;
    array->ndim = shape.size();
    std::copy(shape.begin(), shape.end(), array->shape);
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_checkpoint_read(cairn_checkpoint* checkpoint, int index, const int64_t* offset,
                                    const int64_t* extent, void* data, size_t size) {
  return Guard([&] {
    const auto found = ArrayOf(checkpoint, index);
    if (!found.ok()) return Report(found.status());
    const ArraySpec& spec = **found;
    Box box = Box::Whole(spec.shape);
    if ((offset == nullptr) != (extent == nullptr)) {
      return Report({Code::kInvalid, "cairn_checkpoint_read: give offset and extent, or neither"});
    }
    if (offset != nullptr) {
      box.offset = Turned(spec, offset);
      box.extent = Turned(spec, extent);
    }
    uint64_t bytes = static_cast<uint64_t>(cairn::DTypeBytes(spec.dtype));
    for (int d = 0; d < spec.shape.size(); ++d) {
      if (box.offset[d] < 0 || box.extent[d] < 0 || box.extent[d] > spec.shape[d] - box.offset[d]) {
        return Report(
            {Code::kInvalid, "cairn_checkpoint_read: the box does not lie inside of \"" + spec.name + "\""});
      }
      bytes *= static_cast<uint64_t>(box.extent[d]);
    }
    if (bytes != size || (data == nullptr && size != 0)) {
      return Report({Code::kInvalid, "cairn_checkpoint_read: the box of \"" + spec.name + "\" has " +
                                         std::to_string(bytes) + " bytes, the memory " +
                                         std::to_string(size)});
    }
    if (bytes == 0) return CAIRN_OK + 0;
    return Report(
        checkpoint->source->Read(static_cast<uint32_t>(index), box, {static_cast<std::byte*>(data), size}));
  });
}

CAIRN_API int cairn_checkpoint_blob(const cairn_checkpoint* checkpoint, const char* name, int member,
                                    const void** data, size_t* size) {
  return Guard([&] {
    if (checkpoint == nullptr || name == nullptr || data == nullptr || size == nullptr)
      return Report({Code::kInvalid, "cairn_checkpoint_blob: checkpoint, name, data or size is NULL"});
    *data = nullptr;
    *size = 0;
    for (const cairn::BlobItem& blob : checkpoint->blobs.items) {
      if (blob.name != name) continue;
      const auto rank = static_cast<size_t>(member);
      if (member < 0 || rank >= blob.by_rank.size() || !blob.by_rank[rank]) break;
      *data = blob.by_rank[rank]->data();
      *size = blob.by_rank[rank]->size();
    }
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_checkpoint_close(cairn_checkpoint** checkpoint) {
  return Guard([&] {
    if (checkpoint == nullptr) return Report({Code::kInvalid, "cairn_checkpoint_close: checkpoint is NULL"});
    delete *checkpoint;
    *checkpoint = nullptr;
    return CAIRN_OK + 0;
  });
}

}  // extern "C"

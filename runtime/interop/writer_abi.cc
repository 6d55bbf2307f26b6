// The part of the C interface that makes checkpoints without a session, over RunWriter and WriteBoxFile.

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/abi_guard.h"
#include "runtime/include/cairn/cairn.h"
#include "runtime/interop/box_file.h"
#include "runtime/interop/run_writer.h"
#include "runtime/io/fork_guard.h"

struct cairn_writer {
  std::unique_ptr<cairn::RunWriter> impl;
  uint64_t generation = 0;  // of the process that opened it: the life's thread is there alone
  std::string folder;
};

namespace {

using cairn::ArrayBox;
using cairn::Code;
using cairn::Dims;
using cairn::Index;
using cairn::Result;
using cairn::Status;
using cairn::abi::Guard;
using cairn::abi::Report;

bool IsForked(const cairn_writer& writer) { return writer.generation != cairn::ForkGuard::Generation(); }

Result<ArrayBox> BoxOf(const cairn_array_box& box) {
  if (box.name == nullptr || box.ndim < 0 || box.ndim > CAIRN_MAX_DIMS || box.dtype < 0 ||
      box.dtype >= cairn::kDTypeCount) {
    return Status(Code::kInvalid, std::string("cairn_write_boxes: box of \"") +
                                      (box.name != nullptr ? box.name : "") +
                                      "\": NULL, or no such dtype, or more dimensions than CAIRN_MAX_DIMS");
  }
  ArrayBox out;
  out.array.name = box.name;
  out.array.dtype = static_cast<cairn::DType>(box.dtype);
  for (int d = 0; d < box.ndim; ++d) {
    out.array.shape.push_back(box.shape[d]);
    out.box.offset.push_back(box.box.offset[d]);
    out.box.extent.push_back(box.box.extent[d]);
  }
  return out;
}

Result<cairn::WrittenParts> PartsOf(const cairn_commit& commit, std::vector<Index>* parts) {
  cairn::WrittenParts written;
  written.folder = commit.folder;
  written.world_size = static_cast<uint32_t>(commit.world_size);
  if (commit.record_count < 0 || commit.blob_count < 0 ||
      (commit.records == nullptr && commit.record_count > 0) ||
      (commit.blobs == nullptr && commit.blob_count > 0))
    return Status(Code::kInvalid, "cairn_writer_commit: records or blobs is NULL, or a count is negative");
  const auto has_bytes = [](const cairn_bytes& bytes) { return bytes.data != nullptr || bytes.size == 0; };
  if (!std::all_of(commit.records, commit.records + commit.record_count, has_bytes) ||
      !std::all_of(commit.blobs, commit.blobs + commit.blob_count, has_bytes))
    return Status(Code::kInvalid, "cairn_writer_commit: the data of a record or blob is NULL");
  for (int i = 0; i < commit.record_count; ++i) {
    CAIRN_ASSIGN_OR_RETURN(Index part, cairn::DecodeIndex({static_cast<const char*>(commit.records[i].data),
                                                           commit.records[i].size}));
    parts->push_back(std::move(part));
  }
  written.parts = *parts;
  for (int i = 0; i < commit.blob_count; ++i) {
    const cairn_bytes& blob = commit.blobs[i];
    if (blob.name == nullptr)
      return Status(Code::kInvalid, "cairn_writer_commit: the name of a blob is NULL");
    cairn::BlobItem& item = written.blobs.items.emplace_back();
    item.name = blob.name;
    item.policy = cairn::BlobPolicy::kMerge;
    item.by_rank.resize(written.world_size);
    item.by_rank[0] = std::string(static_cast<const char*>(blob.data), blob.size);
  }
  if (commit.tag != nullptr) written.tag = commit.tag;
  if (commit.keep != nullptr) {
    CAIRN_ASSIGN_OR_RETURN(written.keep, cairn::ParseKeep("keep", commit.keep));
  }
  return written;
}

}  // namespace

extern "C" {

CAIRN_API int cairn_writer_open(const char* directory, cairn_writer** writer) {
  return Guard([&] {
    if (writer == nullptr) return Report({Code::kInvalid, "cairn_writer_open: writer is NULL"});
    *writer = nullptr;
    if (directory == nullptr || *directory == '\0')
      return Report({Code::kInvalid, "cairn_writer_open: directory is NULL or empty"});
    auto opened = cairn::RunWriter::Open(directory);
    if (!opened.ok()) return Report(opened.status());
    *writer = new cairn_writer{*std::move(opened), cairn::ForkGuard::Generation(), ""};
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_writer_begin(cairn_writer* writer, int64_t step, const char** folder) {
  return Guard([&] {
    if (writer == nullptr || folder == nullptr || step < -1)
      return Report(
          {Code::kInvalid, "cairn_writer_begin: writer or folder is NULL, or the step is negative"});
    if (IsForked(*writer)) return cairn::abi::WrongState("cairn_writer_begin in a forked child");
    auto begun = writer->impl->Begin(step == -1 ? std::nullopt : std::optional<int64_t>(step));
    if (!begun.ok()) return Report(begun.status());
    writer->folder = *std::move(begun);
    *folder = writer->folder.c_str();
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_write_boxes(const char* folder, int number, const cairn_array_box* boxes, int box_count,
                                const void* (*data)(int box, void* user), void* user, const void** record,
                                size_t* record_size) {
  return Guard([&] {
    if (folder == nullptr || data == nullptr || record == nullptr || record_size == nullptr || number < 1 ||
        box_count < 0 || (boxes == nullptr && box_count > 0)) {
      return Report({Code::kInvalid,
                     "cairn_write_boxes: folder, boxes, data, record or record_size is NULL, or the "
                     "number is not positive"});
    }
    std::vector<ArrayBox> arrays;
    for (int i = 0; i < box_count; ++i) {
      auto box = BoxOf(boxes[i]);
      if (!box.ok()) return Report(box.status());
      arrays.push_back(*std::move(box));
    }
    const auto written =
        cairn::WriteBoxFile(folder, static_cast<uint32_t>(number), arrays, [data, user](size_t box) {
          return static_cast<const std::byte*>(data(static_cast<int>(box), user));
        });
    if (!written.ok()) return Report(written.status());
    auto encoded = cairn::EncodeIndex(*written);
    if (!encoded.ok()) return Report(encoded.status());
    thread_local std::string kept;
    kept = *std::move(encoded);
    *record = kept.data();
    *record_size = kept.size();
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_writer_commit(cairn_writer* writer, const cairn_commit* commit) {
  return Guard([&] {
    if (writer == nullptr || commit == nullptr || commit->struct_size < sizeof(cairn_commit) ||
        commit->folder == nullptr || commit->world_size < 1) {
      return Report({Code::kInvalid,
                     "cairn_writer_commit: NULL, struct_size is not sizeof(cairn_commit), or the world "
                     "size is not positive"});
    }
    if (IsForked(*writer)) return cairn::abi::WrongState("cairn_writer_commit in a forked child");
    std::vector<Index> parts;
    auto written = PartsOf(*commit, &parts);
    if (!written.ok()) {
      writer->impl->Abandon();
      return Report(written.status());
    }
    return Report(writer->impl->Commit(*std::move(written)).status());
  });
}

CAIRN_API int cairn_writer_close(cairn_writer** writer) {
  return Guard([&] {
    if (writer == nullptr) return Report({Code::kInvalid, "cairn_writer_close: writer is NULL"});
    const std::unique_ptr<cairn_writer> closed(*writer);
    *writer = nullptr;
    if (closed == nullptr) return CAIRN_OK + 0;
    if (IsForked(*closed)) {
      (void)closed->impl.release();  // its thread is not in this process
      return CAIRN_OK + 0;
    }
    return Report(closed->impl->Close());
  });
}

}  // extern "C"

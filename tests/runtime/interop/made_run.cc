#include "tests/runtime/interop/made_run.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "runtime/catalog/commit.h"
#include "runtime/catalog/epoch.h"
#include "runtime/formats/names.h"
#include "runtime/formats/shard.h"
#include "runtime/formats/sums.h"

namespace cairn {
namespace {

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return *std::move(result);
}

// Element by element, so that it shares nothing with the code under test.
std::string Cut(const std::string& bytes, const Dims& shape, const Box& box, size_t width) {
  std::string out;
  Dims at = box.offset;
  if (box.empty()) return out;
  for (;;) {
    size_t position = 0;
    for (int d = 0; d < shape.size(); ++d)
      position = position * static_cast<size_t>(shape[d]) + static_cast<size_t>(at[d]);
    out += bytes.substr(position * width, width);
    int d = shape.size() - 1;
    while (d >= 0 && ++at[d] == box.offset[d] + box.extent[d]) {
      at[d] = box.offset[d];
      --d;
    }
    if (d < 0) return out;
  }
}

void WriteFile(const std::string& path, const std::string& bytes) {
  if (!(std::ofstream(path, std::ios::binary) << bytes).flush()) throw std::runtime_error("write " + path);
}

}  // namespace

MadeRun::MadeRun(std::vector<MadeArray> arrays, int64_t step)
    : dir_(Must(RunDirectory::Open(temp_ / "run", "made"))), arrays_(std::move(arrays)) {
  size_t files = 1;
  uint32_t mixed = 12345;
  for (MadeArray& array : arrays_) {
    const auto width = static_cast<size_t>(DTypeBytes(array.spec.dtype));
    const size_t bytes = static_cast<size_t>(array.spec.shape.Product()) * width;
    while (array.bytes.size() < bytes) {
      mixed = mixed * 1664525 + 1013904223;
      const bool boolean = array.spec.dtype == DType::kBool;
      array.bytes += static_cast<char>(boolean ? mixed >> 31 : mixed >> 24);
    }
    if (array.boxes.empty() && bytes > 0) array.boxes = {Box::Whole(array.spec.shape)};
    files = std::max(files, array.boxes.size());
  }
  const uint32_t epoch = Must(ClaimEpoch(dir_, 0, Identity{}));
  if (!PublishParent(dir_, epoch, "").ok()) throw std::runtime_error("PublishParent");
  const Attempt attempt = Must(BeginAttempt(dir_, epoch, step));
  Index index;
  index.world_size = static_cast<uint32_t>(files);
  std::vector<std::vector<SavedBox>> boxes(arrays_.size());
  for (const MadeArray& array : arrays_) index.saved.arrays.push_back(array.spec);
  for (uint32_t f = 0; f < files; ++f) {
    std::vector<ShardTensor> tensors;
    std::vector<uint32_t> owners;
    for (uint32_t i = 0; i < arrays_.size(); ++i) {
      if (f >= arrays_[i].boxes.size()) continue;
      tensors.push_back({arrays_[i].spec.name, arrays_[i].spec.dtype, arrays_[i].boxes[f]});
      owners.push_back(i);
    }
    const ShardLayout layout = Must(LayOutShard(tensors));
    std::string bytes = layout.header;
    bytes.resize(layout.file_bytes);
    for (size_t t = 0; t < tensors.size(); ++t) {
      const MadeArray& array = arrays_[owners[t]];
      const std::string part = Cut(array.bytes, array.spec.shape, tensors[t].box,
                                   static_cast<size_t>(DTypeBytes(array.spec.dtype)));
      bytes.replace(layout.offsets[t], part.size(), part);
      boxes[owners[t]].push_back({owners[t], f, layout.offsets[t], tensors[t].box});
    }
    Sums sums{bytes.size(), {}};
    for (uint64_t b = 0; b < BlockCount(bytes.size()); ++b)
      sums.blocks.push_back(Hash128Of(std::string_view(bytes).substr(b * kBlockBytes, kBlockBytes)));
    WriteFile(attempt.path + "/" + names::Shard(f + 1), bytes);
    WriteFile(attempt.path + "/" + names::Sums(f + 1), EncodeSums(sums));
    index.files.push_back({f + 1, bytes.size(), sums.Root()});
  }
  for (const auto& of_array : boxes)
    index.saved.boxes.insert(index.saved.boxes.end(), of_array.begin(), of_array.end());
  Blobs blobs;
  blobs.items.push_back({"rng", BlobPolicy::kReseed, std::vector<std::optional<std::string>>(files, "seed")});
  blobs.items[0].by_rank[0] = std::string("\xff\x80\0A", 4);
  if (files > 1) blobs.items[0].by_rank[1].reset();
  Manifest manifest;
  manifest.parent = "step-000000000050.e1.0000000a";  // pruned since
  manifest.label = 7;
  manifest.trigger = "request";
  manifest.outputs = {{"/scratch/loss.csv", {1500, Hash128Of(std::string_view("end"))}}};
  Must(Commit(dir_, attempt, index, blobs, manifest));
  checkpoint_ = attempt.name.ToString();
}

const std::string& MadeRun::BytesOf(const std::string& name) const {
  for (const MadeArray& array : arrays_) {
    if (array.spec.name == name) return array.bytes;
  }
  throw std::runtime_error("no array " + name);
}

std::vector<MadeArray> AllKinds() {
  return {
      {{"model.w", DType::kF32, false, {6, 8}}, "", {{{0, 0}, {3, 8}}, {{3, 0}, {3, 8}}}},
      {{"model.columns", DType::kBF16, false, {5, 7}}, "", {{{0, 0}, {5, 3}}, {{0, 3}, {5, 4}}}},
      {{"model.blocks", DType::kF16, false, {4, 4}},
       "",
       {{{0, 0}, {2, 2}}, {{0, 2}, {2, 2}}, {{2, 0}, {2, 2}}, {{2, 2}, {2, 2}}}},
      {{"model.scale", DType::kF8E4M3, false, {9}}, "", {}},
      {{"model.amax", DType::kF8E5M2, false, {3, 3}}, "", {}},
      {{"model.mask", DType::kBool, false, {3, 5}}, "", {}},
      {{"model.none", DType::kF32, false, {0, 4}}, "", {}},
      {{"optim.step", DType::kI64, false, {}}, "", {}},
      {{"optim.lr", DType::kF64, false, {}}, "", {}},
      {{"optim.count", DType::kU8, false, {2, 3, 4}}, "", {{{0, 0, 0}, {2, 3, 2}}, {{0, 0, 2}, {2, 3, 2}}}},
      {{"optim.small", DType::kI8, false, {5}}, "", {}},
      {{"optim.short", DType::kI16, false, {5}}, "", {}},
      {{"optim.index", DType::kI32, false, {5}}, "", {}},
      {{"field", DType::kF64, true, {2, 3}}, "", {}},
  };
}

std::vector<MadeArray> OneOfEachType() {
  std::vector<MadeArray> arrays;
  for (const auto& [type, name] :
       std::vector<std::pair<DType, const char*>>{{DType::kBool, "BOOL"},
                                                  {DType::kU8, "U8"},
                                                  {DType::kI8, "I8"},
                                                  {DType::kF8E5M2, "F8_E5M2"},
                                                  {DType::kF8E4M3, "F8_E4M3"},
                                                  {DType::kI16, "I16"},
                                                  {DType::kU16, "U16"},
                                                  {DType::kF16, "F16"},
                                                  {DType::kBF16, "BF16"},
                                                  {DType::kI32, "I32"},
                                                  {DType::kU32, "U32"},
                                                  {DType::kF32, "F32"},
                                                  {DType::kF64, "F64"},
                                                  {DType::kI64, "I64"},
                                                  {DType::kU64, "U64"},
                                                  {DType::kC64, "C64"},
                                                  {DType::kF8E8M0, "F8_E8M0"},
                                                  {DType::kF8E4M3Fnuz, "F8_E4M3FNUZ"},
                                                  {DType::kF8E5M2Fnuz, "F8_E5M2FNUZ"},
                                                  {DType::kF4, "F4"},
                                                  {DType::kF6E2M3, "F6_E2M3"},
                                                  {DType::kF6E3M2, "F6_E3M2"}}) {
    arrays.push_back(
        {{std::string("kind.") + name, type, false, {3, 8}}, "", {{{0, 0}, {3, 3}}, {{0, 3}, {3, 5}}}});
  }
  return arrays;
}

}  // namespace cairn

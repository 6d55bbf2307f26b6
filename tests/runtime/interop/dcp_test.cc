#include "runtime/interop/dcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/interop/checkpoint_source.h"
#include "runtime/interop/dcp_metadata.h"
#include "runtime/interop/diff.h"
#include "tests/runtime/command/program.h"
#include "tests/runtime/hex.h"
#include "tests/runtime/interop/made_run.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kGolden = CAIRN_SOURCE_DIR "/tests/runtime/interop/golden/dcp";

std::string Contents(ArraySource& source, const std::string& name) {
  for (uint32_t i = 0; i < source.arrays().size(); ++i) {
    const ArraySpec& array = source.arrays()[i];
    if (array.name != name) continue;
    std::string bytes(ArrayBytes(array), '\0');
    if (!bytes.empty()) {
      const Status status = source.Read(i, Box::Whole(array.shape), std::as_writable_bytes(std::span(bytes)));
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return std::string(DTypeName(array.dtype)) + " " + array.shape.ToString() + " " + ToHex(bytes);
  }
  return "none";
}

// A copy of the golden checkpoint that a test may spoil.
std::string Copy() {
  std::string folder = NewFolder() + "/dcp";
  fs::copy(kGolden, folder);
  return folder;
}

TEST(Dcp, ReadsWhatPyTorchWrote) {
  const auto source = OpenDcp(kGolden);
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_EQ(Contents(**source, "w"),
            "F32 [3, 4] 000000000000803f0000004000004040000080400000a0400000c0400000e0400000004100001041"
            "0000204100003041");
  EXPECT_EQ(Contents(**source, "transposed"), "I16 [3, 2] 000003000100040002000500");  // 0 3, 1 4, 2 5
  EXPECT_EQ(Contents(**source, "scalar"), "BF16 [] 6040");
  EXPECT_EQ(Contents(**source, "mask"), "BOOL [3] 010001");
  EXPECT_EQ(Contents(**source, "fp8"), "F8_E4M3 [5] 0038404448");
  EXPECT_EQ(Contents(**source, "empty"), "F32 [0, 4] ");
  EXPECT_THAT((*source)->others(), ElementsAre("optim.lr", "optim.name"));
}

TEST(Dcp, RefusesAPickleThatWouldRunSomething) {
  const std::string folder = Copy();
  WriteText(folder + "/.metadata",
            std::string("\x80\x02", 2) + "cposix\nsystem\nX\x02" + std::string(3, '\0') + "id\x85R.");
  const auto source = OpenDcp(folder);
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(source.status().message(),
              AllOf(HasSubstr(folder + "/.metadata: "), HasSubstr("posix.system at byte 2")));
}

TEST(Dcp, NamesTheFileThatIsCutOff) {
  const std::string folder = Copy();
  const std::string data = folder + "/__0_0.distcp", bytes = ReadText(data);
  WriteText(data, bytes.substr(0, bytes.size() / 2));
  const auto source = OpenDcp(folder);
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().code(), Code::kDamage);
  EXPECT_THAT(source.status().message(), AllOf(HasSubstr(data), HasSubstr("the file is cut off")));
}

TEST(Dcp, NeverReadsOutsideItsFolder) {
  DcpMetadata metadata;
  metadata.tensors = {{"w", DType::kF32, {1}, {{{{0}, {1}}, "../secret", 0, 100}}}};
  const auto decoded = DecodeDcpMetadata(EncodeDcpMetadata(metadata));
  ASSERT_FALSE(decoded.ok());
  EXPECT_THAT(decoded.status().message(), HasSubstr("outside the folder"));
}

TEST(Dcp, RefusesATensorWithAHole) {
  const std::string folder = Copy();
  auto metadata = DecodeDcpMetadata(ReadText(folder + "/.metadata"));
  ASSERT_TRUE(metadata.ok());
  metadata->tensors[0].shape = {4, 4};
  WriteText(folder + "/.metadata", EncodeDcpMetadata(*metadata));
  const auto source = OpenDcp(folder);
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(source.status().message(), HasSubstr("nothing holds [3:4, 0:4]"));
}

TEST(Dcp, SaysWhichOfItsBytesAreImpossible) {
  // Wherever a byte is spoilt, the answer is a value or an error, never a crash; and no prefix passes for the whole.
  const std::string metadata = ReadText(kGolden + "/.metadata");
  for (size_t at = 0; at < metadata.size(); ++at) {
    EXPECT_FALSE(DecodeDcpMetadata(metadata.substr(0, at)).ok()) << at;
    std::string spoilt = metadata;
    spoilt[at] = static_cast<char>(spoilt[at] ^ 0x55);
    (void)DecodeDcpMetadata(spoilt);
  }
  const std::string folder = Copy(), data = ReadText(folder + "/__0_0.distcp");
  for (size_t at = 0; at < data.size(); at += 7) {
    std::string spoilt = data;
    spoilt[at] = static_cast<char>(spoilt[at] ^ 0xff);
    WriteText(folder + "/__0_0.distcp", spoilt);
    (void)OpenDcp(folder);
  }
}

TEST(Dcp, MetadataComesBackAsItWasWritten) {
  DcpMetadata metadata;
  metadata.tensors = {
      {"a.b",
       DType::kF8E5M2,
       {4, 6},
       {{{{0, 0}, {4, 3}}, "__0_0.distcp", 0, 500}, {{{0, 3}, {4, 3}}, "__0_1.distcp", 1000, 600}}},
      {"s", DType::kU64, {}, {{Box{}, "__0_0.distcp", 500, 500}}}};
  const auto decoded = DecodeDcpMetadata(EncodeDcpMetadata(metadata));
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  ASSERT_EQ(decoded->tensors.size(), 2U);
  EXPECT_EQ(decoded->tensors[0].shape, (Dims{4, 6}));
  EXPECT_EQ(decoded->tensors[0].chunks[1].box, (Box{{0, 3}, {4, 3}}));
  EXPECT_EQ(decoded->tensors[0].chunks[1].file, "__0_1.distcp");
  EXPECT_EQ(decoded->tensors[0].chunks[1].offset, 1000U);
  EXPECT_EQ(decoded->tensors[1].dtype, DType::kU64);
}

// Python 3.11.0 to 3.11.3 write a member of an enumeration as getattr(class, name), and not as class(value).
TEST(Dcp, ReadsMetadataOfEachWayInWhichPythonWritesEnumerations) {
  DcpMetadata metadata;
  metadata.tensors = {{"a", DType::kF32, {4}, {{{{0}, {4}}, "__0_0.distcp", 0, 500}}}};
  std::string pickle = EncodeDcpMetadata(metadata);
  const std::string format = "ctorch.distributed.checkpoint.metadata\n_MEM_FORMAT_ENCODING\n";
  const size_t at = pickle.find(format);
  ASSERT_NE(at, std::string::npos);
  const size_t end = pickle.find('R', at + format.size());  // (0)
  pickle.replace(
      at, end - at,
      "cbuiltins\ngetattr\n(" + format + "X\x17" + std::string(3, '\0') + "TORCH_CONTIGUOUS_FORMATt");
  const auto decoded = DecodeDcpMetadata(pickle);
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(decoded->tensors[0].shape, (Dims{4}));
}

TEST(Dcp, ArchivedTensorsOfAllTypesComeBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!TorchHas(dtype)) continue;
    const auto tensor = DecodeArchivedTensor(EncodeArchivedTensor(dtype, {2, 3}));
    ASSERT_TRUE(tensor.ok()) << DTypeName(dtype) << tensor.status().message();
    EXPECT_EQ(tensor->dtype, dtype);
    EXPECT_EQ(tensor->shape, (Dims{2, 3}));
    EXPECT_EQ(tensor->stride, (Dims{3, 1}));
  }
}

}  // namespace
}  // namespace cairn

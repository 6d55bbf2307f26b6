#include "runtime/formats/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/runtime/formats/corrupt.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Manifest Example() {
  Manifest m;
  m.run_id = "00112233445566aa";
  m.epoch = 7;
  m.step = 1200;
  m.label = -3;
  m.world_size = 4;
  m.time = "2026-03-01T12:00:00Z";
  m.trigger = "preempt";
  m.parent = "step-000000000600.e6.0000beef";
  m.metrics = {{"val/loss", {0.1, 1100}}, {"grad_norm", {std::numeric_limits<double>::infinity(), 1200}}};
  m.outputs = {{"/scratch/loss.csv", {1ull << 40, Hash128Of(std::string_view("end"))}}};
  m.tag = "best \"ever\"";
  m.shards = {{"shard-00001-model-00001-of-00001.safetensors", 4104},
              {"shard-00002-model-00001-of-00001.safetensors", 1ull << 40}};
  m.index_bytes = 500;
  m.index_hash = Hash128Of(std::string_view("index"));
  m.blobs_bytes = 60;
  m.blobs_hash = Hash128Of(std::string_view("blobs"));
  m.total_bytes = UINT64_MAX;
  m.cairn_version = "0.1.0";
  m.settings = {{"keep", "last=2"}};
  return m;
}

TEST(Manifest, SaysFirstWhatItIs) {
  EXPECT_THAT(*EncodeManifest(Example()), StartsWith(R"({
  "cairn": "manifest",
  "version": 1,
  "run_id": "00112233445566aa",
  "epoch": 7,
  "step": 1200,
  "label": -3,
  "world_size": 4,
)"));
}

TEST(Manifest, OfRanksThatWroteTogetherIsOfVersion2AndAnyOtherOfVersion1) {
  Manifest m = Example();
  const std::string alone = *EncodeManifest(m);
  EXPECT_EQ(alone.find("writers"), std::string::npos);
  m.writers = 2;
  const std::string together = *EncodeManifest(m);
  EXPECT_THAT(together, StartsWith("{\n  \"cairn\": \"manifest\",\n  \"version\": 2,\n"));
  EXPECT_THAT(together, HasSubstr(",\n  \"writers\": 2,\n  \"checksum\": "));
  const Result<Manifest> back = DecodeManifest(together);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, m);
  m.writers = 5;  // of 4 ranks
  EXPECT_THAT(DecodeManifest(*EncodeManifest(m)).status().message(), HasSubstr("\"writers\""));
}

TEST(Manifest, EndsWithTheHashOfAllBefore) {
  const std::string text = *EncodeManifest(Example());
  const size_t tail = text.rfind(",\n  \"checksum\"");
  EXPECT_EQ(text.substr(tail), ",\n  \"checksum\": \"" + Hash128Of(text.substr(0, tail)).ToHex() + "\"\n}\n");
}

TEST(Manifest, IsNeverLongerThanWhatAReaderTakes) {
  Manifest m = Example();
  m.settings["keep"] = std::string(63 << 20, 'x');
  EXPECT_TRUE(EncodeManifest(m).ok());
  m.settings["keep"] = std::string(64 << 20, 'x');
  const Status status = EncodeManifest(m).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_THAT(status.message(), HasSubstr("no reader takes more than 67108864: 2 files, 2 metrics"));
}

TEST(Manifest, DecodesWhatWasEncoded) {
  const Result<Manifest> manifest = DecodeManifest(*EncodeManifest(Example()));
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  EXPECT_EQ(*manifest, Example());
}

TEST(Manifest, HasTheMetricsAsJsonCanSayThem) {
  Manifest m = Example();
  m.metrics = {{"a", {0.25, 7}}, {"b", {std::numeric_limits<double>::quiet_NaN(), 8}}, {"c", {-INFINITY, 9}}};
  const std::string text = *EncodeManifest(m);
  EXPECT_THAT(text, HasSubstr(R"("metrics": {
    "a": {
      "value": 0.25,
      "step": 7
    },
    "b": {
      "value": "nan",
      "step": 8
    },
    "c": {
      "value": "-inf",
      "step": 9
    }
  })"));
  const Result<Manifest> back = DecodeManifest(text);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_TRUE(std::isnan(back->metrics.at("b").value));
  EXPECT_EQ(back->metrics.at("c").value, -INFINITY);
}

TEST(Manifest, NoticesEveryCorruption) {
  ExpectEveryCorruptionIsDamage(*EncodeManifest(Example()), DecodeManifest);
}

TEST(Manifest, ThatIsNoUtf8IsRefused) {
  Manifest m = Example();
  m.tag = "\xff";
  EXPECT_EQ(EncodeManifest(m).status().code(), Code::kInvalid);
}

// With a correct checksum, as a stranger could make it.
std::string Sealed(const std::string& members) {
  const std::string text = "{\n  " + members;
  return text + ",\n  \"checksum\": \"" + Hash128Of(text).ToHex() + "\"\n}\n";
}

TEST(Manifest, OfANewerVersionIsNoDamage) {
  const Status status = DecodeManifest(Sealed(R"("cairn": "manifest", "version": 3, "all": "new")")).status();
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_EQ(status.message(),
            "manifest: version 3 was written by a newer Cairn, this one reads up to 2: update this one");
}

TEST(Manifest, OfAnotherKindVersionOrFormIsDamage) {
  EXPECT_THAT(DecodeManifest(Sealed(R"("cairn": "epoch", "version": 1)")).status().message(),
              HasSubstr("of kind \"epoch\""));
  EXPECT_THAT(DecodeManifest(Sealed(R"("cairn": "manifest", "version": 0)")).status().message(),
              HasSubstr("version 0 never was"));
  EXPECT_THAT(DecodeManifest(Sealed(R"("cairn": "manifest", "version": 1)")).status().message(),
              HasSubstr("\"run_id\" is missing"));
  EXPECT_THAT(DecodeManifest(Sealed(R"("cairn": [1)")).status().message(), HasSubstr("no JSON object"));
  EXPECT_EQ(DecodeManifest(Sealed(std::string("\"cairn\": ") + std::string(100'000, '['))).status().code(),
            Code::kDamage);
}

TEST(Manifest, WithAFileOutsideItsFolderIsDamage) {
  std::string text = *EncodeManifest(Example());
  text.resize(text.rfind(",\n  \"checksum\""));
  const std::string name = "shard-00001-model-00001-of-00001.safetensors";
  text.replace(text.find(name), name.size(), "../../../../../../../../../../../etc/passwd0");
  text += ",\n  \"checksum\": \"" + Hash128Of(text).ToHex() + "\"\n}\n";
  EXPECT_THAT(DecodeManifest(text).status().message(), HasSubstr("is no name of a shard"));
}

}  // namespace
}  // namespace cairn

#include "runtime/session/protocol.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(TellMerged, PutsIntoPartsWhatOneMessageDoesNotHold) {
  const MergedBlobs blobs = {{"a", {std::string(60, 'x'), std::string(30, 'y'), ""}},
                             {"b", {}},
                             {"c", {std::string(200, 'z'), "1"}}};
  const std::vector<Order> parts = TellMerged("/run/step-1", blobs, 100);
  ASSERT_EQ(parts.size(), 4u);  // x; y, nothing; z, which is too long for any; 1
  MergedBlobs together;
  for (const Order& part : parts) {
    EXPECT_EQ(part.kind, Order::kMerged);
    EXPECT_EQ(part.path, "/run/step-1");
    const auto received = DecodeSessionMessage<Order>(EncodeSessionMessage(part));
    ASSERT_TRUE(received.ok()) << received.status().message();
    for (const auto& [name, by_member] : received->merged_blobs) {
      std::vector<std::string>& all = together[name];
      all.insert(all.end(), by_member.begin(), by_member.end());
    }
  }
  EXPECT_EQ(together, blobs);
}

TEST(TellMerged, SaysSoWhereThereAreNone) {
  const std::vector<Order> parts = TellMerged("/run/step-1", {});
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(parts[0].merged_blobs.empty());
}

}  // namespace
}  // namespace cairn

#include "runtime/io/stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/io/file.h"
#include "tests/support/memory_store.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(PlaceOf, FindsTheKeyBehindTheBucket) {
  const StoreInUse in_use(std::make_shared<MemoryStore>());
  EXPECT_EQ(PlaceOf("s3://bucket/a/run/RUN")->key, "a/run/RUN");
  EXPECT_EQ(PlaceOf("s3://bucket//a/./run/")->key, "a/run");
  EXPECT_EQ(PlaceOf("s3://bucket")->key, "");
  EXPECT_EQ(PlaceOf("s3://bucket")->prefix(), "");
  EXPECT_EQ(PlaceOf("s3://bucket/a")->prefix(), "a/");
}

TEST(PlaceOf, RefusesWhatIsNoKey) {
  const StoreInUse in_use(std::make_shared<MemoryStore>());
  for (const std::string& path : {std::string("s3://"), std::string("s3:///a"), std::string("s3://b/a b"),
                                  std::string("s3://b/\xc3\xa4"), "s3://b/" + std::string(1024, 'a')})
    EXPECT_EQ(PlaceOf(path).status().code(), Code::kInvalid) << path;
}

TEST(PlaceOf, OpensEachBucketOnceAndAgainWhenThatFailed) {
  std::vector<std::string> opened;
  SetOpenStore([&](const std::string& bucket) -> Result<std::shared_ptr<ObjectStore>> {
    opened.push_back(bucket);
    if (opened.size() == 1) return Status(Code::kPermission, "no credentials");
    return std::shared_ptr<ObjectStore>(std::make_shared<MemoryStore>());
  });
  EXPECT_EQ(PlaceOf("s3://one/a").status().code(), Code::kPermission);
  const auto first = PlaceOf("s3://one/a"), second = PlaceOf("s3://one/b"), other = PlaceOf("s3://two/a");
  SetOpenStore(nullptr);
  ASSERT_TRUE(first.ok() && second.ok() && other.ok());
  EXPECT_EQ(first->store, second->store);
  EXPECT_NE(first->store, other->store);
  EXPECT_THAT(opened, ElementsAre("one", "one", "two"));
  EXPECT_EQ(PlaceOf("s3://one/a").status().code(), Code::kUnavailable);  // nobody said how
}

TEST(Files, MayBeObjects) {
  const auto store = std::make_shared<MemoryStore>();
  const StoreInUse in_use(store);
  const std::string run = "s3://bucket/run";
  EXPECT_EQ(ListDirectory(run).status().code(), Code::kNotFound);
  EXPECT_TRUE(MakeDirectories(run + "/step").ok());
  EXPECT_EQ(ListDirectory(run).status().code(), Code::kNotFound);
  ASSERT_TRUE(PublishFile(run + "/f", "one").ok());
  ASSERT_TRUE(OverwriteFile(run + "/f", "two").ok());
  EXPECT_EQ(CreateExclusive(run + "/f", "three").code(), Code::kExists);
  ASSERT_TRUE(CreateExclusive(run + "/step/g", "four").ok());
  ASSERT_TRUE(PublishFile("s3://bucket/run2/h", "another run's").ok());
  EXPECT_EQ(*ReadAll(run + "/f", 3), "two");
  EXPECT_EQ(ReadAll(run + "/f", 2).status().code(), Code::kDamage);
  EXPECT_EQ(*FileBytes(run + "/step/g"), 4u);
  EXPECT_THAT(*ListDirectory(run), ElementsAre("f", "step"));
  EXPECT_THAT(*FileSizes(run), ElementsAre(Pair("f", 3)));
  EXPECT_EQ(RenameDirectory(run, run + "x").code(), Code::kInternal);
  EXPECT_TRUE(SyncDirectory(run).ok());
  const auto upload = store->Upload("run/step/shard", 10);
  ASSERT_TRUE(RemoveTree(run).ok());
  EXPECT_TRUE(RemoveFile(run + "/f").ok());
  EXPECT_EQ(store->objects(), (std::map<std::string, std::string>{{"run2/h", "another run's"}}));
  EXPECT_TRUE(store->uploads().empty());
}

TEST(AbsolutePath, LeavesObjectsWhereTheyAre) {
  EXPECT_EQ(*AbsolutePath("s3://bucket//a/../run/"), "s3://bucket/run");
  EXPECT_EQ(*AbsolutePath("s3://bucket"), "s3://bucket");
  EXPECT_EQ(*AbsolutePath("/a//b/./c/"), "/a/b/c");
  EXPECT_THAT(*AbsolutePath("run"), HasSubstr("/run"));
  EXPECT_EQ(*AbsolutePath("/"), "/");
}

}  // namespace
}  // namespace cairn

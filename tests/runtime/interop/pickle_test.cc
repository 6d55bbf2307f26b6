#include "runtime/interop/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::HasSubstr;
using Kind = PickleValue::Kind;
using namespace std::string_literals;

constexpr std::string_view kAdmitted[] = {"torch Size", "collections OrderedDict"};

Result<Pickle> Parse(std::string bytes) { return Pickle::Parse(std::move(bytes), kAdmitted); }

TEST(Pickle, ReadsWhatPythonWrote) {
  // pickle.dumps({"a": [1, -2, 70000, 2**40, True, None], "b": (2.5, "x"), "c": b"yz"}, 4)
  const auto pickle = Parse(
      "\x80\x04\x95\x3c\0\0\0\0\0\0\0}\x94(\x8c\x01"
      "a\x94]\x94(K\x01J\xfe\xff\xff\xffJp\x11\x01\0\x8a\x06\0\0\0\0\0\x01\x88Ne\x8c\x01"
      "b\x94G@\x04\0\0\0\0\0\0\x8c\x01x\x94\x86\x94\x8c\x01"
      "c\x94"
      "C\x02yz\x94u."s);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  const PickleValue* a = pickle->Find(pickle->root(), "a");
  ASSERT_TRUE(a != nullptr && a->kind == Kind::kList && a->items.size() == 6);
  EXPECT_EQ((*pickle)[a->items[1]].integer, -2);
  EXPECT_EQ((*pickle)[a->items[2]].integer, 70000);
  EXPECT_EQ((*pickle)[a->items[3]].integer, int64_t{1} << 40);
  EXPECT_EQ((*pickle)[a->items[4]].kind, Kind::kBool);
  EXPECT_EQ((*pickle)[a->items[5]].kind, Kind::kNone);
  const PickleValue* b = pickle->Find(pickle->root(), "b");
  ASSERT_TRUE(b != nullptr && b->kind == Kind::kTuple && b->items.size() == 2);
  EXPECT_EQ((*pickle)[b->items[0]].number, 2.5);
  EXPECT_EQ(pickle->Find(pickle->root(), "c")->text, "yz");
}

TEST(Pickle, NamesTheFunctionThatItRefusesAndItsPlace) {
  const auto old = Parse(
      "\x80\x02"
      "cposix\nsystem\nX\x02\0\0\0id\x85R."s);
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.status().code(), Code::kMismatch);
  EXPECT_EQ(old.status().message(),
            "its pickle names posix.system at byte 2, which no plain checkpoint needs; it is not read");
  const auto stacked = Parse("\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R."s);
  ASSERT_FALSE(stacked.ok());
  EXPECT_THAT(stacked.status().message(), HasSubstr("os.system at byte 14"));
}

TEST(Pickle, RefusesOperationsThatCheckpointsDoNotNeed) {
  for (const std::string& bytes :
       {"\x80\x02(i"s + "os\nsystem\n.", "\x80\x02S'x'\n."s, "\x80\x04\x82\x01."s}) {
    const auto pickle = Parse(bytes);
    ASSERT_FALSE(pickle.ok());
    EXPECT_EQ(pickle.status().code(), Code::kMismatch) << pickle.status().message();
  }
}

TEST(Pickle, RefusesAMemoNumberBeyondAllReason) {
  const auto pickle = Parse("\x80\x02Nr\xff\xff\xff\x7f."s);
  ASSERT_FALSE(pickle.ok());
  EXPECT_THAT(pickle.status().message(), HasSubstr("memo number beyond all reason at byte 3"));
}

TEST(Pickle, SurvivesDeepNestingAndListsThatHoldThemselves) {
  const std::string deep = "\x80\x02" + std::string(1 << 20, ']') + std::string((1 << 20) - 1, 'a') + ".";
  EXPECT_TRUE(Parse(deep).ok());
  const auto circle = Parse("\x80\x02]q\0h\0a."s);
  ASSERT_TRUE(circle.ok());
  EXPECT_EQ(&(*circle)[circle->root().items[0]], &circle->root());
  EXPECT_FALSE(circle->Integers(circle->root()).ok());
}

TEST(Pickle, SaysWhereItIsCutOffOrMalformed) {
  for (const auto& [bytes, what] : std::vector<std::pair<std::string, std::string>>{
           {"", "cut off at byte 0"},
           {"\x80\x02X\x05\0\0\0ab"s, "cut off at byte 2"},
           {"\x80\x02."s, "nothing on the stack at byte 2"},
           {"\x80\x02t."s, "no mark at byte 2"},
           {"\x80\x02Nh\x07."s, "was not set at byte 3"},
           {"\x80\x02}(NuK\x01s."s, "items for something else at byte 5"},
           {"\x80\x02\x8a\x09\0\0\0\0\0\0\0\0\0."s, "more than 64 bits at byte 2"}}) {
    const auto pickle = Parse(bytes);
    ASSERT_FALSE(pickle.ok()) << what;
    EXPECT_EQ(pickle.status().code(), Code::kDamage);
    EXPECT_THAT(pickle.status().message(), HasSubstr(what));
  }
}

TEST(PickleWriter, WritesWhatTheReaderReads) {
  PickleWriter out;
  out.EmptyDict();
  out.Mark();
  out.String("size");
  out.Global("torch", "Size");
  out.Mark();
  out.Integers(std::vector<int64_t>{0, -1, int64_t{1} << 62});
  out.Tuple();
  out.Reduce();
  out.SetItems();
  const auto pickle = Parse(std::move(out).Finish());
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  EXPECT_EQ(*pickle->Integers(*pickle->Find(pickle->root(), "size")),
            (std::vector<int64_t>{0, -1, int64_t{1} << 62}));
}

}  // namespace
}  // namespace cairn

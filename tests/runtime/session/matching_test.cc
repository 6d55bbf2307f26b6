#include "runtime/session/matching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/settings.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Kind = ItemDifference::Kind;

const std::vector<ArraySpec> kSaved = {{"net.0.w", DType::kF64, false, {64, 64}},
                                       {"net.1.w", DType::kF64, true, {2, 3}},
                                       {"old", DType::kI64, false, {2}}};
const std::vector<BlobSpec> kSavedBlobs = {{"rng", CAIRN_BLOB_RESEED}, {"note", CAIRN_BLOB_MERGE}};

State Program(std::vector<ArraySpec> arrays, std::vector<BlobSpec> blobs) {
  State state;
  state.layout.arrays = std::move(arrays);
  state.blobs = std::move(blobs);
  return state;
}

TEST(Matching, NamesEveryDifferenceWithBothForms) {
  const State now = Program({{"net.0.w", DType::kF64, false, {64, 128}},
                             {"net.1.w", DType::kF64, false, {2, 3}},
                             {"new", DType::kF32, false, {}}},
                            {{"rng", CAIRN_BLOB_DROP}, {"clock", CAIRN_BLOB_DROP}});
  const Matching matching = MatchItems(kSaved, kSavedBlobs, now, {});
  EXPECT_THAT(matching.refused,
              ElementsAre("net.0.w: saved [64, 64] F64, registered [64, 128] F64",
                          "net.1.w: saved [3, 2] F64 (Fortran order), registered [2, 3] F64",
                          "new: registered [] F32, not in the checkpoint",
                          "clock: registered a blob, not in the checkpoint",
                          "note: saved a blob, not registered by the program",
                          "old: saved [2] I64, not registered by the program"));
  EXPECT_EQ(matching.curable, 0u);  // not the shapes
}

TEST(Matching, ABareModelsNamesFitBehindThePrefixOfItsItems) {
  const auto named = [](std::vector<std::string> names) {
    std::vector<ArraySpec> arrays;
    for (std::string& name : names) arrays.push_back({std::move(name), DType::kF32, false, {2}});
    return arrays;
  };
  const State now = Program(named({"model.h.0", "model.h.1", "optim.h.0"}), {});
  EXPECT_TRUE(FitBehind("model.", named({"h.0", "h.1", "extra"}), now, {}));
  EXPECT_FALSE(FitBehind("model.", named({"model.h.0", "model.h.1", "optim.h.0"}), now, {}));
  EXPECT_FALSE(FitBehind("model.", named({"x"}), now, {}));
  EXPECT_TRUE(FitBehind("model.", named({"old.0"}), now, {.renames = {{"model.old.*", "model.h.*"}}}));
  // A model whose own names begin so, as Llama's do.
  const State llama = Program(named({"model.model.h.0", "model.head"}), {});
  EXPECT_TRUE(FitBehind("model.", named({"model.h.0", "head"}), llama, {}));
}

TEST(Matching, WhatIsAllowedIsNotedInThePlaceOfRefused) {
  const State now = Program({kSaved[0], kSaved[1], {"new", DType::kF32, false, {}}}, kSavedBlobs);
  const std::string missing = "new: registered [] F32, not in the checkpoint";
  const std::string extra = "old: saved [2] I64, not registered by the program";
  const Matching strict = MatchItems(kSaved, kSavedBlobs, now, {});
  EXPECT_THAT(strict.refused, ElementsAre(missing, extra));
  EXPECT_EQ(strict.curable, kAllowMissing | kAllowExtra);
  const Matching half = MatchItems(kSaved, kSavedBlobs, now, {.allowed = kAllowMissing});
  EXPECT_THAT(half.refused, ElementsAre(extra));
  EXPECT_THAT(half.noted, ElementsAre(missing));
  EXPECT_EQ(half.curable, kAllowExtra);
  const Matching all = MatchItems(kSaved, kSavedBlobs, now, {.allowed = kAllowMissing | kAllowExtra});
  EXPECT_THAT(all.refused, IsEmpty());
  EXPECT_THAT(all.noted, ElementsAre(missing, extra));
  EXPECT_THAT(all.differences, ElementsAre(ItemDifference{Kind::kMissing, "new", ""},
                                           ItemDifference{Kind::kExtra, "", "old"}));
  EXPECT_THAT(all.blobs, ElementsAre(Pair("note", "note"), Pair("rng", "rng")));
}

TEST(Matching, TheFirstRenameThatMatchesCounts) {
  const State now = Program({{"model.0.weight", DType::kF64, false, {64, 64}},
                             {"last", DType::kF64, true, {2, 3}},
                             {"old", DType::kI64, false, {2}}},
                            {{"rng", CAIRN_BLOB_RESEED}, {"remark", CAIRN_BLOB_MERGE}});
  const MatchOptions options = {
      .renames = {{"net.1.w", "last"}, {"net.*.w", "model.*.weight"}, {"note", "remark"}}};
  const Matching matching = MatchItems(kSaved, kSavedBlobs, now, options);
  EXPECT_THAT(matching.refused, IsEmpty());
  EXPECT_THAT(matching.differences, ElementsAre(ItemDifference{Kind::kRenamed, "model.0.weight", "net.0.w"},
                                                ItemDifference{Kind::kRenamed, "last", "net.1.w"},
                                                ItemDifference{Kind::kRenamed, "remark", "note"}));
  EXPECT_THAT(matching.blobs, ElementsAre(Pair("note", "remark"), Pair("rng", "rng")));
}

TEST(Matching, RefusesTwoSavedItemsUnderOneName) {
  const State now = Program({kSaved[0]}, {});
  const Matching matching =
      MatchItems(kSaved, {}, now, {.allowed = kAllowMissing | kAllowExtra, .renames = {{"old", "net.0.w"}}});
  EXPECT_THAT(matching.refused,
              ElementsAre("net.0.w: saved as \"net.0.w\" and as \"old\"; a rename gives both this name"));
}

TEST(Matching, ARenamedItemOfAnotherShapeIsReportedUnderBothNames) {
  const State now = Program({{"u", DType::kI64, false, {3}}}, {});
  const Matching matching = MatchItems(kSaved, {}, now, {.allowed = kAllowExtra, .renames = {{"old", "u"}}});
  EXPECT_THAT(matching.refused, ElementsAre("u: saved [2] I64 as \"old\", registered [3] I64"));
}

TEST(Matching, AnArrayIsNoBlob) {
  const Matching matching =
      MatchItems({}, {{"u", CAIRN_BLOB_DROP}}, Program({{"u", DType::kU8, false, {3}}}, {}), {});
  EXPECT_THAT(matching.refused, ElementsAre("u: saved a blob, registered [3] U8"));
}

// Strict, yet nothing outside of `only` is compared.
TEST(Matching, OnlyWhatIsChosenTakesPart) {
  const State now = Program({{"model.0.weight", DType::kF64, false, {64, 64}},
                             {"old", DType::kI64, false, {99}},
                             {"new", DType::kF32, false, {}}},
                            {{"rng", CAIRN_BLOB_RESEED}});
  const Matching matching =
      MatchItems(kSaved, kSavedBlobs, now, {.renames = {{"net.0.w", "model.0.weight"}}, .only = {"model.*"}});
  EXPECT_THAT(matching.refused, IsEmpty());
  EXPECT_THAT(matching.differences,
              ElementsAre(ItemDifference{Kind::kRenamed, "model.0.weight", "net.0.w"},
                          ItemDifference{Kind::kLeft, "old", ""}, ItemDifference{Kind::kLeft, "new", ""},
                          ItemDifference{Kind::kLeft, "rng", ""}));
  EXPECT_THAT(matching.blobs, IsEmpty());
}

TEST(Matching, RefusesAChoiceOfNothing) {
  const Matching matching = MatchItems(kSaved, {}, Program(kSaved, {}), {.only = {"net.*", "modle.*"}});
  EXPECT_THAT(matching.refused,
              ElementsAre("modle.*: to be loaded, but the program has registered nothing of such a name"));
}

// What a load planner brings into an array counts, whatever its name, type and shape.
TEST(Matching, APlannersArraysAreJudgedByWhatItBringsIntoThem) {
  const State now = Program({{"both", DType::kF32, false, {9}},
                             {"net.1.w", DType::kI8, false, {}},
                             {"old", DType::kI64, false, {2}}},
                            kSavedBlobs);
  const Fills fills = {{0, 1}, {1}, {}};
  const Matching strict = MatchItems(kSaved, kSavedBlobs, now, {}, &fills);
  EXPECT_THAT(strict.refused,
              ElementsAre("old: registered [2] I64, and the load planner brings nothing into it",
                          "old: saved [2] I64, and the load planner brings nothing of it"));
  EXPECT_EQ(strict.curable, kAllowMissing | kAllowExtra);
  EXPECT_THAT(strict.differences, ElementsAre(ItemDifference{Kind::kRenamed, "both", "net.0.w"},
                                              ItemDifference{Kind::kMissing, "old", ""},
                                              ItemDifference{Kind::kExtra, "", "old"}));
  EXPECT_THAT(strict.blobs, ElementsAre(Pair("note", "note"), Pair("rng", "rng")));
  const Matching chosen = MatchItems(kSaved, kSavedBlobs, now, {.only = {"both"}}, &fills);
  EXPECT_THAT(chosen.refused, IsEmpty());
  EXPECT_THAT(
      chosen.differences,
      ElementsAre(ItemDifference{Kind::kRenamed, "both", "net.0.w"}, ItemDifference{Kind::kLeft, "old", ""},
                  ItemDifference{Kind::kLeft, "rng", ""}, ItemDifference{Kind::kLeft, "note", ""}));
}

TEST(Matching, RefusesImpossiblePatterns) {
  EXPECT_TRUE(CheckMatchOptions({.renames = {{"a.*", "b"}}, .only = {"*"}}).ok());
  EXPECT_THAT(CheckMatchOptions({.renames = {{"a", "b.*"}}}).message(), HasSubstr("more '*'"));
  EXPECT_THAT(CheckMatchOptions({.renames = {{"a", ""}}}).message(), HasSubstr("empty"));
  EXPECT_THAT(CheckMatchOptions({.only = {""}}).message(), HasSubstr("empty"));
}

TEST(Matching, OfATableTheNumberOfRowsDoesNotMatter) {
  State now = Program({{"p", DType::kU8, false, {9, 16}}}, {{"p.rows", CAIRN_BLOB_MERGE}});
  now.tables = {"p"};
  EXPECT_THAT(
      MatchItems({{"p", DType::kU8, false, {70, 16}}}, {{"p.rows", CAIRN_BLOB_MERGE}}, now, {}).refused,
      IsEmpty());
  EXPECT_THAT(
      MatchItems({{"p", DType::kU8, false, {70, 8}}}, {{"p.rows", CAIRN_BLOB_MERGE}}, now, {}).refused,
      ElementsAre("p: saved [70, 8] U8, registered [9, 16] U8"));
}

TEST(Matching, TheRowsOfATableAreChosenAndRenamedWithIt) {
  const std::vector<ArraySpec> saved = {{"old", DType::kU8, false, {7, 16}}};
  const std::vector<BlobSpec> saved_blobs = {{"old.rows", CAIRN_BLOB_MERGE}, {"rng", CAIRN_BLOB_RESEED}};
  State now = Program({{"p", DType::kU8, false, {3, 16}}}, {{"p.rows", CAIRN_BLOB_MERGE}});
  now.tables = {"p"};
  MatchOptions options;
  options.renames = {{"old", "p"}};
  options.only = {"p"};
  const Matching matching = MatchItems(saved, saved_blobs, now, options);
  EXPECT_THAT(matching.refused, IsEmpty());
  EXPECT_THAT(matching.blobs, ElementsAre(Pair("old.rows", "p.rows")));
}

}  // namespace
}  // namespace cairn

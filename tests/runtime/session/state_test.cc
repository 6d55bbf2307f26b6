#include "runtime/session/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/layout_index.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One rank's rows [first, first + rows) of "u", a [rows_total, 3] array.
std::string Share(int64_t first, int64_t rows, int64_t rows_total, int dtype = CAIRN_F32,
                  int policy = CAIRN_BLOB_DROP) {
  static float data[64];
  cairn_piece piece{.offset = {first, 0}, .extent = {rows, 3}, .stride = {}, .data = data};
  cairn_array array{};
  array.struct_size = sizeof array;
  array.dtype = dtype;
  array.ndim = 2;
  array.shape[0] = rows_total;
  array.shape[1] = 3;
  array.piece_count = 1;
  array.pieces = &piece;
  Items items;
  EXPECT_TRUE(items.AddArray("u", array).ok());
  EXPECT_TRUE(items.AddBlob("rng", data, 4, nullptr, policy).ok());
  return EncodeShare(items);
}

Result<State> MergeShares(const std::vector<std::string>& shares) {
  ShareMerger merger;
  for (const std::string& share : shares) CAIRN_RETURN_IF_ERROR(merger.Add(share));
  return std::move(merger).Finish();
}

TEST(State, MergesTheSharesOfAllRanks) {
  const std::vector<std::string> shares = {Share(0, 2, 5), Share(2, 3, 5)};
  const auto state = MergeShares(shares);
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_EQ(state->layout.world_size, 2u);
  EXPECT_TRUE(state->layout.grids.Has(0));
  const auto again = DecodeState(EncodeState(*state));
  ASSERT_TRUE(again.ok());
  for (const State* s : {&*state, &*again}) {
    const std::vector<Piece> pieces = LayoutIndex(s->layout).PiecesOf(1);
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].box.ToString(), "[2:5, 0:3]");
  }
  EXPECT_EQ(again->blobs, state->blobs);
}

// Rank 0's rows come second: no rule, so the pieces are listed.
TEST(State, ListsWhatHasNoRule) {
  const std::vector<std::string> shares = {Share(3, 2, 5), Share(0, 3, 5)};
  const auto state = MergeShares(shares);
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_FALSE(state->layout.grids.Has(0));
  const auto again = DecodeState(EncodeState(*state));
  ASSERT_TRUE(again.ok());
  ASSERT_EQ(again->layout.pieces.size(), 2u);
  EXPECT_EQ(again->layout.pieces[1].rank, 1u);
  EXPECT_EQ(again->layout.pieces[1].box.ToString(), "[0:3, 0:3]");
}

// The order of registration is each rank's own.
TEST(State, MatchesArraysByName) {
  const auto share = [](const char* first, const char* second, int64_t row) {
    static double data[4];
    cairn_piece piece{.offset = {row}, .extent = {1}, .stride = {}, .data = data};
    cairn_array array{};
    array.struct_size = sizeof array;
    array.dtype = CAIRN_F64;
    array.ndim = 1;
    array.shape[0] = 2;
    array.piece_count = 1;
    array.pieces = &piece;
    Items items;
    EXPECT_TRUE(items.AddArray(first, array).ok());
    piece.offset[0] = 1 - row;
    EXPECT_TRUE(items.AddArray(second, array).ok());
    return EncodeShare(items);
  };
  // Rank 0 holds row 0 of a and row 1 of b; rank 1 the others.
  const auto state = MergeShares({share("a", "b", 0), share("b", "a", 0)});
  ASSERT_TRUE(state.ok()) << state.status().message();
  const std::vector<Piece> pieces = LayoutIndex(state->layout).PiecesOf(1);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(state->layout.arrays[0].name, "a");
  EXPECT_EQ(pieces[0].box.ToString(), "[1:2]");
  EXPECT_EQ(pieces[1].box.ToString(), "[0:1]");
}

TEST(State, TakesAnOptionalArrayThatOneRankAloneKnows) {
  static double data[4];
  const auto share = [](const std::vector<std::string>& names, int optional) {
    cairn_piece piece{.offset = {0}, .extent = {2}, .stride = {}, .data = data};
    cairn_array array{};
    array.struct_size = sizeof array;
    array.dtype = CAIRN_F64;
    array.ndim = 1;
    array.shape[0] = 2;
    array.piece_count = 1;
    array.pieces = &piece;
    array.optional = optional;
    Items items;
    for (const std::string& name : names) EXPECT_TRUE(items.AddArray(name, array).ok());
    return EncodeShare(items);
  };
  const auto state = MergeShares({share({"a"}, 1), share({"b"}, 1), share({"a"}, 1), share({"c", "b"}, 1)});
  ASSERT_TRUE(state.ok()) << state.status().message();
  const LayoutIndex index(state->layout);
  const auto held = [&](uint32_t rank) {
    std::vector<std::string> names;
    for (const Piece& piece : index.PiecesOf(rank)) names.push_back(state->layout.arrays[piece.array].name);
    return names;
  };
  EXPECT_THAT(held(0), ElementsAre("a"));
  EXPECT_THAT(held(1), ElementsAre("b"));
  EXPECT_THAT(held(2), ElementsAre("a"));
  EXPECT_THAT(held(3), ElementsAre("b", "c"));
  EXPECT_THAT(MergeShares({share({"a"}, 1), share({"b"}, 0)}).status().message(),
              HasSubstr("rank 0 has no such array"));
  EXPECT_THAT(MergeShares({share({"a"}, 0), share({"b"}, 1)}).status().message(),
              HasSubstr("rank 1 has no such array"));
}

TEST(State, RefusesRanksThatDisagreeNamingItemAndRank) {
  const std::vector<std::string> shapes = {Share(0, 2, 5), Share(2, 4, 6)};
  EXPECT_THAT(MergeShares(shapes).status().message(),
              HasSubstr("\"u\": rank 0 and rank 1 disagree: [5, 3] F32 against [6, 3] F32"));
  const std::vector<std::string> types = {Share(0, 2, 5), Share(2, 3, 5, CAIRN_F16)};
  EXPECT_THAT(MergeShares(types).status().message(), HasSubstr("F32 against [5, 3] F16"));
  const std::vector<std::string> policies = {Share(0, 2, 5), Share(2, 3, 5, CAIRN_F32, CAIRN_BLOB_REFUSE)};
  EXPECT_THAT(MergeShares(policies).status().message(), HasSubstr("rng"));
}

TEST(State, RefusesAHole) {
  const std::vector<std::string> shares = {Share(0, 2, 6), Share(3, 3, 6)};
  EXPECT_THAT(MergeShares(shares).status().message(), HasSubstr("u"));
}

TEST(State, ThatNamesNoWritersHasEachRankAsOne) {
  std::string bytes = EncodeState(*MergeShares({Share(0, 2, 5), Share(2, 3, 5)}));
  const std::string last = "\x69writer_of\x80";  // CBOR: a text of 9 bytes, and an empty list
  ASSERT_TRUE(bytes.ends_with(last));
  bytes.resize(bytes.size() - last.size());
  --bytes[0];  // the number of members
  const auto state = DecodeState(bytes);
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_TRUE(state->writer_of.empty());
}

TEST(State, GarbageIsAnErrorAndNoCrash) {
  const std::vector<std::string> shares = {"\xff\xff garbage"};
  EXPECT_EQ(MergeShares(shares).status().code(), Code::kInternal);
  EXPECT_EQ(DecodeState("").status().code(), Code::kInternal);
}

TEST(State, ArraysThatLieDeepInEachOtherAreAnErrorAndNoStackOverflow) {
  const std::vector<std::string> shares = {std::string(4 << 20, '\x81')};
  EXPECT_EQ(MergeShares(shares).status().code(), Code::kInternal);
  EXPECT_EQ(DecodeState(shares[0]).status().code(), Code::kInternal);
}

TEST(State, AnOutputHasOneOwner) {
  const TempDir dir;
  Items one, other;
  ASSERT_TRUE(one.AddOutput(dir / "a").ok());
  ASSERT_TRUE(other.AddOutput(dir / "b").ok());
  EXPECT_TRUE(MergeShares({EncodeShare(one), EncodeShare(other)}).ok());
  const auto both = MergeShares({EncodeShare(one), EncodeShare(other), EncodeShare(one)});
  EXPECT_EQ(both.status().code(), Code::kInvalid);
  EXPECT_THAT(both.status().message(), HasSubstr("/a\" is added by rank 0 and by rank 2"));
}

TEST(State, ATableHasTheRowsOfAllRanksInTheirOrder) {
  static double data[8];
  static int64_t rows = 0;
  const auto share = [](int64_t capacity, int64_t row_bytes) {
    cairn_table table{};
    table.struct_size = sizeof table;
    table.row_bytes = row_bytes;
    table.capacity = capacity;
    table.rows = &rows;
    table.data = data;
    Items items;
    EXPECT_TRUE(items.AddTable("p", table).ok());
    return EncodeShare(items);
  };
  const auto state = MergeShares({share(3, 16), share(0, 16), share(4, 16)});
  ASSERT_TRUE(state.ok()) << state.status().message();
  const auto again = DecodeState(EncodeState(*state));
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(again->tables, ElementsAre("p"));
  EXPECT_EQ(again->layout.arrays[0].shape.ToString(), "[7, 16]");
  const LayoutIndex index(again->layout);
  EXPECT_EQ(index.PiecesOf(0)[0].box.ToString(), "[0:3, 0:16]");
  EXPECT_TRUE(index.PiecesOf(1).empty());
  EXPECT_EQ(index.PiecesOf(2)[0].box.ToString(), "[3:7, 0:16]");
  EXPECT_EQ(again->blobs, (std::vector<BlobSpec>{{"p.rows", CAIRN_BLOB_MERGE}}));
  EXPECT_THAT(MergeShares({share(3, 16), share(3, 8)}).status().message(),
              HasSubstr("\"p\": rank 0 and rank 1 disagree: a table, or its bytes of a row"));
}

// As if all had told all anew: what the restore has changed is all that travels.
TEST(State, WithOtherRoomsForTablesIsWhatAllTogetherWouldHaveRegistered) {
  static double data[64];
  static int64_t rows = 0;
  const auto add = [](Items& items, int64_t first, int64_t second) {
    cairn_table table{};
    table.struct_size = sizeof table;
    table.row_bytes = 16;
    table.rows = &rows;
    table.data = data;
    table.capacity = first;
    EXPECT_TRUE(items.AddTable("p", table).ok());
    table.row_bytes = 8;
    table.capacity = second;
    EXPECT_TRUE(items.AddTable("q", table).ok());
    EXPECT_TRUE(items.AddBlob("rng", data, 4, nullptr, CAIRN_BLOB_DROP).ok());
  };
  const auto share = [&](int64_t first, int64_t second) {
    Items items;
    add(items, first, second);
    return EncodeShare(items);
  };
  auto state = MergeShares({share(3, 1), share(0, 2), share(4, 3)});
  ASSERT_TRUE(state.ok()) << state.status().message();
  Items second, third;
  add(second, 5, 2);
  add(third, 0, 3);
  using Changed = std::map<std::string, int64_t>;
  EXPECT_EQ(RoomsThatChanged(second, *state, 1), (Changed{{"p", 5}}));
  EXPECT_EQ(RoomsThatChanged(third, *state, 2), (Changed{{"p", 0}}));
  ASSERT_TRUE(SetRooms({{"p", {{1, 5}, {2, 0}}}}, &*state).ok());
  EXPECT_EQ(RoomsThatChanged(second, *state, 1), Changed());
  EXPECT_EQ(RoomsThatChanged(third, *state, 2), Changed());
  EXPECT_EQ(EncodeState(*state), EncodeState(*MergeShares({share(3, 1), share(5, 2), share(0, 3)})));
  EXPECT_EQ(SetRooms({{"p", {{3, 5}}}}, &*state).code(), Code::kInternal);
  EXPECT_THAT(SetRooms({{"r", {{0, 5}}}}, &*state).message(), HasSubstr("table \"r\""));
}

}  // namespace
}  // namespace cairn

#include "runtime/session/items.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::HasSubstr;

cairn_array Array(int ndim, std::initializer_list<int64_t> shape, const cairn_piece* piece,
                  int order = CAIRN_ORDER_C) {
  cairn_array array{};
  array.struct_size = sizeof array;
  array.dtype = CAIRN_F64;
  array.order = order;
  array.ndim = ndim;
  std::copy(shape.begin(), shape.end(), array.shape);
  array.piece_count = piece != nullptr ? 1 : 0;
  array.pieces = piece;
  return array;
}

TEST(Items, DensePieceInCOrderHasTheLastDimensionContiguous) {
  double data[6];
  cairn_piece piece{.offset = {2, 0}, .extent = {2, 3}, .stride = {}, .data = data};
  Items items;
  ASSERT_TRUE(items.AddArray("u", Array(2, {4, 3}, &piece)).ok());
  const LocalPiece& local = items.arrays()[0].pieces[0];
  EXPECT_EQ(local.box.ToString(), "[2:4, 0:3]");
  EXPECT_EQ(local.stride_bytes, (Dims{24, 8}));
  EXPECT_EQ(local.data, reinterpret_cast<std::byte*>(data));
}

TEST(Items, FortranArrayIsKeptWithItsDimensionsReversed) {
  double data[6];
  cairn_piece piece{.offset = {2, 0}, .extent = {2, 3}, .stride = {}, .data = data};
  Items items;
  ASSERT_TRUE(items.AddArray("u", Array(2, {4, 3}, &piece, CAIRN_ORDER_FORTRAN)).ok());
  EXPECT_EQ(items.arrays()[0].spec.shape, (Dims{3, 4}));
  EXPECT_TRUE(items.arrays()[0].spec.fortran);
  EXPECT_EQ(items.arrays()[0].pieces[0].box.ToString(), "[0:3, 2:4]");
  EXPECT_EQ(items.arrays()[0].pieces[0].stride_bytes, (Dims{16, 8}));
}

TEST(Items, StridesOfAHaloAreTakenInElements) {
  double data[100];
  cairn_piece piece{.offset = {0, 0}, .extent = {2, 3}, .stride = {10, 1}, .data = data + 11};
  Items items;
  ASSERT_TRUE(items.AddArray("u", Array(2, {2, 3}, &piece)).ok());
  EXPECT_EQ(items.arrays()[0].pieces[0].stride_bytes, (Dims{80, 8}));
}

TEST(Items, WhatAnOlderProgramDoesNotSayIsHostMemory) {
  double data[6];
  cairn_piece piece{.offset = {0}, .extent = {6}, .stride = {}, .data = data};
  cairn_array array = Array(1, {6}, &piece);
  array.struct_size = 112;  // the structure ended with `optional`, and a gap in which anything may be
  array.memory = array.stable_until = 77;
  Items items;
  ASSERT_TRUE(items.AddArray("u", array).ok());
  EXPECT_FALSE(items.arrays()[0].device);
  array.struct_size = sizeof array;
  EXPECT_THAT(items.AddArray("v", array).message(), HasSubstr("\"v\": unknown memory 77"));
  array.memory = CAIRN_MEMORY_HOST;
  EXPECT_THAT(items.AddArray("v", array).message(), HasSubstr("\"v\": unknown stable_until 77"));
}

TEST(Items, RefusesWhatCannotBeSavedNamingTheItem) {
  double data[6];
  Items items;
  cairn_piece outside{.offset = {3}, .extent = {2}, .stride = {}, .data = data};
  EXPECT_THAT(items.AddArray("u", Array(1, {4}, &outside)).message(),
              HasSubstr("\"u\": a piece of extent 2 at offset 3 in dimension 0 reaches outside"));
  cairn_piece overflow{.offset = {INT64_MAX}, .extent = {2}, .stride = {}, .data = data};
  EXPECT_EQ(items.AddArray("u", Array(1, {4}, &overflow)).code(), Code::kInvalid);
  EXPECT_THAT(items.AddArray("u", Array(2, {INT64_MAX, 2}, nullptr)).message(),
              HasSubstr("does not fit 63 bits"));
  EXPECT_THAT(items.AddArray("u", Array(1, {-1}, nullptr)).message(), HasSubstr("an extent is negative"));
  cairn_piece far_apart{.offset = {0}, .extent = {2}, .stride = {INT64_MAX}, .data = data};
  EXPECT_THAT(items.AddArray("u", Array(1, {4}, &far_apart)).message(), HasSubstr("is too long"));
  cairn_piece nowhere{.offset = {0}, .extent = {2}, .stride = {}, .data = nullptr};
  EXPECT_THAT(items.AddArray("u", Array(1, {4}, &nowhere)).message(), HasSubstr("has no address"));
  cairn_piece good{.offset = {0}, .extent = {4}, .stride = {}, .data = data};
  EXPECT_EQ(items.AddArray("", Array(1, {4}, &good)).code(), Code::kInvalid);
  ASSERT_TRUE(items.AddArray("u", Array(1, {4}, &good)).ok());
  EXPECT_THAT(items.AddArray("u", Array(1, {4}, &good)).message(), HasSubstr("added twice"));
  EXPECT_THAT(items.AddBlob("b", data, 65537, nullptr, CAIRN_BLOB_DROP).message(),
              HasSubstr("at most 64 KiB"));
}

TEST(Items, TheBlobsOfAMemberFitOneMessageTogether) {
  Items items;
  std::vector<std::byte> data(64 << 10);
  for (int i = 0; i < 512; ++i)
    ASSERT_TRUE(
        items.AddBlob("b" + std::to_string(i), data.data(), data.size(), nullptr, CAIRN_BLOB_DROP).ok());
  EXPECT_THAT(items.AddBlob("more", data.data(), 1, nullptr, CAIRN_BLOB_DROP).message(),
              HasSubstr("at most 32 MiB together"));
}

TEST(Items, UpdateMovesAPieceOrABlob) {
  double data[4], other[4];
  cairn_piece piece{.offset = {0}, .extent = {4}, .stride = {}, .data = data};
  Items items;
  ASSERT_TRUE(items.AddBlob("rng", data, 8, nullptr, CAIRN_BLOB_DROP).ok());
  ASSERT_TRUE(items.AddArray("u", Array(1, {4}, &piece)).ok());
  EXPECT_EQ(*items.Find("u"), 1);
  ASSERT_TRUE(items.Update(1, 0, other).ok());
  EXPECT_EQ(items.arrays()[0].pieces[0].data, reinterpret_cast<std::byte*>(other));
  ASSERT_TRUE(items.Update(0, 0, other).ok());
  EXPECT_EQ(items.blobs()[0].data, reinterpret_cast<std::byte*>(other));
  EXPECT_FALSE(items.Update(1, 1, other).ok());
  EXPECT_FALSE(items.Update(2, 0, other).ok());
}

cairn_flat Flat(std::initializer_list<int64_t> shape, const std::vector<cairn_flat_range>& ranges,
                int order = CAIRN_ORDER_C) {
  cairn_flat flat{};
  flat.struct_size = sizeof flat;
  flat.dtype = CAIRN_F64;
  flat.order = order;
  flat.ndim = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), flat.shape);
  flat.range_count = static_cast<int>(ranges.size());
  flat.ranges = ranges.data();
  return flat;
}

// Elements 4 to 18 of [4, 6]: the end of row 0, rows 1 and 2, one element of row 3.
TEST(Items, AFlatRangeIsItsBoxesInTheOrderOfMemory) {
  double data[15];
  Items items;
  ASSERT_TRUE(items.AddFlat("u", Flat({4, 6}, {{4, 15, data}})).ok());
  const std::vector<LocalPiece>& pieces = items.arrays()[0].pieces;
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].box.ToString(), "[0:1, 4:6]");
  EXPECT_EQ(pieces[1].box.ToString(), "[1:3, 0:6]");
  EXPECT_EQ(pieces[2].box.ToString(), "[3:4, 0:1]");
  EXPECT_EQ(pieces[1].stride_bytes, (Dims{48, 8}));
  EXPECT_EQ(pieces[1].data, reinterpret_cast<std::byte*>(data + 2));
  EXPECT_EQ(pieces[2].data, reinterpret_cast<std::byte*>(data + 14));
}

TEST(Items, AFlatRangeOfAFortranArrayCountsTheFirstDimensionFastest) {
  double data[4];
  Items items;
  ASSERT_TRUE(items.AddFlat("u", Flat({4, 3}, {{4, 4, data}}, CAIRN_ORDER_FORTRAN)).ok());
  EXPECT_EQ(items.arrays()[0].spec.shape, (Dims{3, 4}));
  ASSERT_EQ(items.arrays()[0].pieces.size(), 1u);
  EXPECT_EQ(items.arrays()[0].pieces[0].box.ToString(), "[1:2, 0:4]");  // the second column
}

TEST(Items, PaddingOfAFlatRangeIsLeftOut) {
  double data[8];
  Items items;
  ASSERT_TRUE(items.AddFlat("u", Flat({10}, {{6, 8, data}, {14, 4, nullptr}})).ok());
  ASSERT_EQ(items.arrays()[0].pieces.size(), 1u);
  EXPECT_EQ(items.arrays()[0].pieces[0].box.ToString(), "[6:10]");
  EXPECT_EQ(items.AddFlat("v", Flat({10}, {{-1, 2, data}})).code(), Code::kInvalid);
  EXPECT_EQ(items.AddFlat("v", Flat({10}, {{0, 2, nullptr}})).code(), Code::kInvalid);
}

TEST(Items, UpdateMovesAllBoxesOfAFlatRange) {
  double data[15], other[15];
  Items items;
  ASSERT_TRUE(items.AddFlat("u", Flat({4, 6}, {{0, 2, data}, {4, 15, data}})).ok());
  ASSERT_TRUE(items.Update(0, 1, other).ok());
  const std::vector<LocalPiece>& pieces = items.arrays()[0].pieces;
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[0].data, reinterpret_cast<std::byte*>(data));
  EXPECT_EQ(pieces[1].data, reinterpret_cast<std::byte*>(other));
  EXPECT_EQ(pieces[3].data, reinterpret_cast<std::byte*>(other + 14));
  EXPECT_FALSE(items.Update(0, 2, other).ok());
  ASSERT_TRUE(items.Update(0, 1, nullptr).ok());
  EXPECT_EQ(pieces[1].data, nullptr);
  EXPECT_EQ(pieces.back().data, nullptr) << "though it does not begin where the range does";
}

TEST(Items, OrdinalsOfALayoutCountPiecesThatAreNotEmpty) {
  double data[4];
  const cairn_piece pieces[3] = {{.offset = {0}, .extent = {1}, .stride = {}, .data = data},
                                 {.offset = {1}, .extent = {0}, .stride = {}, .data = nullptr},
                                 {.offset = {1}, .extent = {3}, .stride = {}, .data = data + 1}};
  cairn_array array = Array(1, {4}, pieces);
  array.piece_count = 3;
  Items items;
  ASSERT_TRUE(items.AddArray("u", array).ok());
  EXPECT_EQ(items.arrays()[0].PieceAt(0), 0u);
  EXPECT_EQ(items.arrays()[0].PieceAt(1), 2u);
}

cairn_table Table(int64_t capacity, int64_t* rows, void* data) {
  cairn_table table{};
  table.struct_size = sizeof table;
  table.row_bytes = 8;
  table.capacity = capacity;
  table.rows = rows;
  table.data = data;
  return table;
}

TEST(Items, ATableIsAnArrayAndABlobThatSaysWhichRowsCount) {
  double data[5];
  int64_t rows = 3;
  Items items;
  ASSERT_TRUE(items.AddTable("p", Table(5, &rows, data)).ok());
  items.PlaceTable(0, 258, 300);
  EXPECT_EQ(items.arrays()[0].spec.shape.ToString(), "[300, 8]");
  EXPECT_EQ(items.arrays()[0].pieces[0].box.ToString(), "[258:263, 0:8]");
  EXPECT_EQ(items.blobs()[0].name, "p.rows");
  ASSERT_TRUE(items.MarkTables().ok());
  const std::string mark(reinterpret_cast<const char*>(items.blobs()[0].data), items.blobs()[0].bytes());
  EXPECT_EQ(mark, std::string("\2\1\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16));
  for (const int64_t wrong : {int64_t{6}, int64_t{-1}}) {
    rows = wrong;
    EXPECT_EQ(items.MarkTables().code(), Code::kInvalid);
  }
}

TEST(Items, ATableGrowsWhereTheProgramSaysHow) {
  static double more[20];
  double data[5];
  int64_t rows = 0;
  Items items;
  cairn_table table = Table(5, &rows, data);
  ASSERT_TRUE(items.AddTable("stays", table).ok());
  table.grow = [](int64_t* capacity, void*) -> void* {
    *capacity = 20;
    return more;
  };
  ASSERT_TRUE(items.AddTable("grows", table).ok());
  EXPECT_TRUE(items.MakeRoom(0, 5).ok());
  EXPECT_EQ(items.MakeRoom(0, 6).code(), Code::kMismatch);
  EXPECT_TRUE(items.MakeRoom(1, 6).ok());
  EXPECT_EQ(items.tables()[1].capacity, 20);
  EXPECT_EQ(items.arrays()[1].pieces[0].data, reinterpret_cast<std::byte*>(more));
  EXPECT_EQ(items.MakeRoom(1, 21).code(), Code::kOutOfMemory);  // it would give 20 again
}

TEST(Items, RefusesATableWithoutRowsOrRoom) {
  double data[5];
  int64_t rows = 0;
  Items items;
  cairn_table table = Table(5, &rows, data);
  table.row_bytes = 0;
  EXPECT_FALSE(items.AddTable("p", table).ok());
  EXPECT_FALSE(items.AddTable("p", Table(5, nullptr, data)).ok());
  EXPECT_FALSE(items.AddTable("p", Table(5, &rows, nullptr)).ok());
  EXPECT_FALSE(items.AddTable("p", Table(-1, &rows, data)).ok());
  EXPECT_TRUE(items.AddTable("p", Table(0, &rows, nullptr)).ok());
}

}  // namespace
}  // namespace cairn

// What cairn.hpp does by itself; walkers_test.py does the rest, with ranks that are saved and resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/cairn.hpp"

struct Brain16 {
  uint16_t bits;
};
template <>
inline constexpr int cairn::kDType<Brain16> = CAIRN_BF16;

namespace {

using ::testing::HasSubstr;

static_assert(cairn::kDType<bool> == CAIRN_BOOL);
static_assert(cairn::kDType<signed char> == CAIRN_I8 && cairn::kDType<unsigned char> == CAIRN_U8);
static_assert(cairn::kDType<short> == CAIRN_I16 && cairn::kDType<unsigned short> == CAIRN_U16);
static_assert(cairn::kDType<int> == CAIRN_I32 && cairn::kDType<unsigned> == CAIRN_U32);
static_assert(cairn::kDType<long long> == CAIRN_I64 && cairn::kDType<unsigned long long> == CAIRN_U64);
static_assert(cairn::kDType<float> == CAIRN_F32 && cairn::kDType<double> == CAIRN_F64);
static_assert(cairn::kDType<std::complex<float>> == CAIRN_C64);

TEST(Cpp, ThrowsTheLibrarysErrorWithItsCode) {
  try {
    cairn::Check(cairn_open(nullptr, nullptr));
    FAIL();
  } catch (const cairn::Error& error) {
    EXPECT_EQ(error.code(), CAIRN_E_INVALID);
    EXPECT_STREQ(error.what(), "cairn_open: session is NULL");
  }
}

TEST(Cpp, RefusesABoxWithAnotherNumberOfDimensionsThanItsArray) {
  cairn::Session session;
  double u[4] = {};
  try {
    session.Add<double>("u", {2, 2}, {{{0}, {2}, u}});
    FAIL();
  } catch (const cairn::Error& error) {
    EXPECT_EQ(error.code(), CAIRN_E_INVALID);
    EXPECT_THAT(error.what(), HasSubstr("array 'u' has 2 dimensions, and 1 numbers"));
  }
}

TEST(Cpp, NumbersItemsInTheOrderInWhichTheyAreAdded) {
  cairn::Session session;
  double u[4] = {};
  Brain16 v = {};
  EXPECT_EQ(session.Add<double>("u", {2, 2}, {{{0, 0}, {2, 2}, u}}).number, 0);
  EXPECT_EQ(session.AddScalar("v", &v).number, 1);
  EXPECT_EQ(session.AddFlat<double>("w", {4}, {{0, 4, u}}).number, 2);
  EXPECT_EQ(session.AddBlob("x", &v).number, 3);
  cairn::Session moved = std::move(session);
  EXPECT_EQ(moved.AddScalar("y", u).number, 4);
}

TEST(Cpp, DoesNothingWhereThereIsNoCairn) {
  cairn::Session session;
  EXPECT_FALSE(session.active());
  const cairn::Report report = session.Restore({CAIRN_MATCH_STRICT, {{"old.*", "new.*"}}, {"*"}});
  EXPECT_FALSE(report.restored);
  EXPECT_EQ(report.step, 0);
  { const cairn::Session::Quiet quiet(session); }
  session.Step(1);
  session.Finalize();
  EXPECT_EQ(session.get(), nullptr);
}

}  // namespace

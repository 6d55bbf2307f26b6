// The next version of a program keeps half as many weights, and in F32 what the last one had saved in BF16. Its load planner reads just that half, and
// converts it.
//
//     srun --checkpoint ./widen old     saves 32 rows
//     srun --checkpoint ./widen new     goes on with 16 of them, on any number of ranks; prints the sum of the rank's weights
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cairn/load_planner.hpp"

struct Brain16 {  // the upper half of a float
  uint16_t bits;
};
template <>
inline constexpr int cairn::kDType<Brain16> = CAIRN_BF16;

namespace {

constexpr int64_t kOldRows = 32, kNewRows = 16, kColumns = 8;

Brain16 Narrow(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return {static_cast<uint16_t>(bits >> 16)};
}

float Widen(Brain16 value) {
  const uint32_t bits = uint32_t{value.bits} << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}

// Rows of this rank.
struct Rows {
  explicit Rows(int64_t all) {
    const char* const rank_text = std::getenv("SLURM_PROCID");
    const char* const ranks_text = std::getenv("SLURM_NTASKS");
    const int64_t rank = rank_text == nullptr ? 0 : std::atoll(rank_text);
    const int64_t ranks = ranks_text == nullptr ? 1 : std::atoll(ranks_text);
    first = all * rank / ranks;
    count = all * (rank + 1) / ranks - first;
  }
  size_t elements() const { return static_cast<size_t>(count * kColumns); }
  int64_t first, count;
};

// What is wanted lies in the checkpoint in another type: it is read into memory of the planner's own and converted from there.
class Widening : public cairn::LoadPlanner {
 public:
  Widening(const Rows& rows, std::vector<float>* weights) : rows_(rows), weights_(*weights) {}

 private:
  void PlanLocally(const cairn::LoadSetup& setup, Plan* plan) override {
    if (!plan->empty())
      return;  // the default plan: this version has saved it, and its weights are read as they are
    plan->push_back(setup.Read("weights", {rows_.first, 0}, {rows_.count, kColumns}, "weights",
                               {rows_.first, 0}, /*resolve=*/true));
  }

  cairn_load_memory Resolve(const cairn_read_item& /*item*/) override {
    narrow_.resize(rows_.elements());
    return {narrow_.data(), {}};
  }

  void Commit(const cairn_read_item& /*item*/, const cairn_load_memory& /*memory*/) override {
    for (size_t i = 0; i < narrow_.size(); ++i) weights_[i] = Widen(narrow_[i]);
    narrow_ = {};
  }

  const Rows rows_;
  std::vector<float>& weights_;
  std::vector<Brain16> narrow_;
};

void RunOld() {
  const Rows rows(kOldRows);
  std::vector<Brain16> weights;
  for (size_t i = 0; i < rows.elements(); ++i)
    weights.push_back(Narrow(static_cast<float>(rows.first * kColumns + static_cast<int64_t>(i))));
  cairn::Session session;
  session.Add<Brain16>("weights", {kOldRows, kColumns},
                       {{{rows.first, 0}, {rows.count, kColumns}, weights.data()}});
  session.Restore();
  session.Save();
  session.Step(1);
  session.Wait();  // and then ends as if it were killed
}

void RunNew() {
  const Rows rows(kNewRows);
  std::vector<float> weights(rows.elements());
  cairn::Session session;
  session.Add<float>("weights", {kNewRows, kColumns},
                     {{{rows.first, 0}, {rows.count, kColumns}, weights.data()}});
  Widening planner(rows, &weights);
  planner.Attach(session);
  const cairn::Report report = session.Restore();
  double sum = 0;
  for (const float weight : weights) sum += weight;
  std::printf("from %lld sum %g\n", static_cast<long long>(report.step), sum);
  session.Step(report.step + 1);
  session.Finalize();
}

}  // namespace

int main(int argc, char** argv) {
  const bool old = argc == 2 && std::strcmp(argv[1], "old") == 0;
  if (!old && (argc != 2 || std::strcmp(argv[1], "new") != 0)) {
    std::fprintf(stderr, "usage: widen old|new\n");
    return 2;
  }
  try {
    old ? RunOld() : RunNew();
    return 0;
  } catch (const cairn::Error& error) {
    std::fprintf(stderr, "widen: %s\n", error.what());
    return 1;
  }
}

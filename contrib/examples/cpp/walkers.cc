// Walkers that jump at random, in C++: an array that any number of ranks can share, and a count that all have alike.
//
//     srun --checkpoint ./walkers STEPS [LEAVE_AT]
//
// Prints the sum of the rank's walkers. LEAVE_AT: saves after that step and leaves without the end of the run, as if it were killed there.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cairn/cairn.hpp"

namespace {

constexpr int64_t kWalkers = 1000;

int64_t FromEnvironment(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::atoll(text);
}

int Run(int64_t steps, int64_t leave_at) {
  const int64_t rank = FromEnvironment("SLURM_PROCID", 0), ranks = FromEnvironment("SLURM_NTASKS", 1);
  const int64_t first = kWalkers * rank / ranks, last = kWalkers * (rank + 1) / ranks;
  std::vector<uint64_t> at;
  for (int64_t walker = first; walker < last; ++walker) at.push_back(static_cast<uint64_t>(walker));
  int64_t jumps = 0;

  cairn::Session session;
  session.Add<uint64_t>("at", {kWalkers}, {{{first}, {last - first}, at.data()}});
  session.AddScalar("jumps", &jumps);
  const cairn::Report report = session.Restore();
  std::printf("from %lld\n", static_cast<long long>(report.step));

  for (int64_t step = report.step + 1; step <= steps; ++step) {
    for (uint64_t& walker : at) walker = walker * 6364136223846793005u + 1442695040888963407u;
    jumps += kWalkers;
    if (step == leave_at) session.Save();
    session.Step(step);
    if (step == leave_at) {
      session.Wait();
      return 0;
    }
  }
  uint64_t sum = 0;
  for (const uint64_t walker : at) sum += walker;
  std::printf("sum %llu jumps %lld\n", static_cast<unsigned long long>(sum), static_cast<long long>(jumps));
  session.Finalize();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: walkers STEPS [LEAVE_AT]\n");
    return 2;
  }
  try {
    return Run(std::atoll(argv[1]), argc > 2 ? std::atoll(argv[2]) : 0);
  } catch (const cairn::Error& error) {
    std::fprintf(stderr, "walkers: %s\n", error.what());
    return 1;
  }
}

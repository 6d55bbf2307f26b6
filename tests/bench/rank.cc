// bench_rank: a rank whose saves are timed, through the public interface alone. Arrays of floats, each split over the ranks by rows of
// dimension 0. One line on stdout a figure; see the modes.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/include/cairn/cairn.h"

namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

struct Options {
  std::string mode;
  int arrays = 1;
  int64_t elements = 1 << 20;  // of one array, over all ranks
  // Holds `run`, the run's directory; `commands`, a fifo from which rank 0 reads a line a save and at last "stop"; and `stop`, which rank 0
  // makes then for the others to see.
  std::string folder;
  int rounds = 11;
  int steps = 500;
};

class Rank {
 public:
  explicit Rank(const Options& options) : o_(options) {
    const char* rank = std::getenv("SLURM_PROCID");
    const char* world = std::getenv("SLURM_NTASKS");
    rank_ = rank != nullptr ? std::atoll(rank) : 0;
    world_ = world != nullptr ? std::atoll(world) : 1;
  }

  int Main() {
    if (cairn_open(nullptr, &session_) != CAIRN_OK) return Fail("cairn_open");
    const int64_t first = o_.elements * rank_ / world_;
    const int64_t count = o_.elements * (rank_ + 1) / world_ - first;
    for (int i = 0; i < o_.arrays; ++i) {
      memory_.emplace_back(static_cast<size_t>(count), static_cast<float>(i));
      cairn_piece piece{};
      piece.offset[0] = first;
      piece.extent[0] = count;
      piece.data = memory_.back().data();
      cairn_array array{};
      array.struct_size = sizeof array;
      array.dtype = CAIRN_F32;
      array.ndim = 1;
      array.shape[0] = o_.elements;
      array.piece_count = 1;
      array.pieces = &piece;
      if (cairn_add_array(session_, ("model.layers." + std::to_string(i) + ".weight").c_str(), &array) !=
          CAIRN_OK)
        return Fail("cairn_add_array");
    }
    const auto begin = Clock::now();
    if (cairn_restore(session_, nullptr) != CAIRN_OK) return Fail("cairn_restore");
    if (o_.mode == "restore") std::printf("restore %.9f\n", Seconds(begin));
    if (cairn_active(session_) == 0) return Fail("cairn_active");
    if (o_.mode == "saves") Saves();
    if (o_.mode == "step") Steps();
    if (o_.mode == "agreement") Agreement();
    if (o_.mode == "slowdown") Slowdown();
    return cairn_finalize(&session_) == CAIRN_OK ? 0 : Fail("cairn_finalize");
  }

 private:
  static int Fail(const char* call) {
    std::fprintf(stderr, "%s: %s\n", call, cairn_last_error());
    return 1;
  }

  void Step() { cairn_step(session_, ++step_); }

  // "save SECONDS" for each line of the fifo: from the request until the checkpoint is committed.
  void Saves() {
    std::ifstream commands(rank_ == 0 ? o_.folder + "/commands" : "/dev/null");
    const std::string stop = o_.folder + "/stop";
    for (;;) {
      std::string line = "stop";
      if (rank_ == 0) {
        std::getline(commands, line);
        if (line == "stop") std::ofstream(stop) << line;
      }
      for (auto& array : memory_) array[0] += 1;
      const auto begin = Clock::now();
      Step();
      if (rank_ == 0 && line != "stop") cairn_save(session_, nullptr);
      cairn_wait(session_, -1);
      if (rank_ == 0 && line != "stop") std::printf("save %.9f\n", Seconds(begin));
      if (access(stop.c_str(), F_OK) == 0) return;
    }
  }

  // "load NS" and "step NS" a round: a sequentially consistent store and load of its own, and cairn_step with nothing armed.
  void Steps() {
    constexpr int64_t kCalls = 2000000;
    std::atomic<int64_t> count{0}, armed{-1};
    for (int round = 0; round < o_.rounds; ++round) {
      auto begin = Clock::now();
      for (int64_t i = 0; i < kCalls; ++i) {
        count.store(i);
        if (armed.load() == i) std::abort();
      }
      std::printf("load %.4f\n", Seconds(begin) / kCalls * 1e9);
      begin = Clock::now();
      for (int64_t i = 0; i < kCalls; ++i) Step();
      std::printf("step %.4f\n", Seconds(begin) / kCalls * 1e9);
    }
  }

  // A boundary each millisecond; rank 0 asks for a save now and then and prints "asked STEP", the boundary before the request.
  void Agreement() {
    auto next = Clock::now();
    for (int i = 1; i <= o_.steps; ++i) {
      next += std::chrono::milliseconds(1);
      std::this_thread::sleep_until(next);
      if (rank_ == 0 && i % 100 == 50) {
        std::printf("asked %lld\n", static_cast<long long>(step_));
        cairn_save(session_, nullptr);
      }
      Step();
    }
  }

  // "idle NS" and "draining NS" a round: one pass of an Adam-like update over a few MiB, without and with a save being written.
  void Slowdown() {
    std::vector<float> p(1 << 18, 1), m(p.size()), v(p.size(), 1);
    const auto update = [&] {
      const auto begin = Clock::now();
      for (size_t i = 0; i < p.size(); ++i) {
        const float g = p[i] * 1e-3f;
        m[i] = 0.9f * m[i] + 0.1f * g;
        v[i] = 0.999f * v[i] + 0.001f * g * g;
        p[i] -= 1e-3f * m[i] / (v[i] + 1e-8f);
      }
      return Seconds(begin);
    };
    const std::string current = o_.folder + "/run/CURRENT";
    const auto newest = [&] {
      std::string name;
      std::ifstream(current) >> name;
      return name;
    };
    for (int round = 0; round < o_.rounds; ++round) {
      double idle = 0, draining = 0;
      for (int i = 0; i < o_.steps; ++i, Step()) idle += update();
      const std::string before = newest();
      cairn_save(session_, nullptr);
      Step();
      int64_t passes = 0;
      for (; newest() == before; Step(), ++passes) draining += update();
      std::printf("idle %.1f\n", idle / o_.steps * 1e9);
      std::printf("draining %.1f\n", draining / static_cast<double>(passes) * 1e9);
      if (std::fabs(p[0]) > 1e30f) std::abort();  // keeps the loop
    }
  }

  const Options& o_;
  int64_t rank_ = 0, world_ = 1, step_ = 0;
  cairn_session* session_ = nullptr;
  std::vector<std::vector<float>> memory_;
};

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("bench_rank");
  app.add_option("mode", o.mode)
      ->required()
      ->check(CLI::IsMember({"saves", "restore", "step", "agreement", "slowdown"}));
  app.add_option("--arrays", o.arrays);
  app.add_option("--elements", o.elements);
  app.add_option("--folder", o.folder);
  app.add_option("--rounds", o.rounds);
  app.add_option("--steps", o.steps);
  CLI11_PARSE(app, argc, argv);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  return Rank(o).Main();
}

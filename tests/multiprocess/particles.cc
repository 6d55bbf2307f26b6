// particles: a rank without MPI whose particles are born and die, so that every rank has another number of them and none stays the same. What lives
// after a step does not depend on the ranks.
//
// Prints lines on stdout: "restore CODE text", "resumed STEP ROWS MINE" (how many of the rows are this rank's by their id), "row ID X" for each
// particle at the end, "done CODE".

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "runtime/include/cairn/cairn.h"

namespace {

struct Particle {
  int64_t id;
  double x;
};

// The particles of this rank. `rows` of them are alive.
struct Particles {
  std::vector<Particle> memory;
  int64_t rows = 0;

  void Add(int64_t id, double x) {
    if (rows == static_cast<int64_t>(memory.size())) std::abort();
    memory[static_cast<size_t>(rows++)] = {id, x};
  }
};

void* Grow(int64_t* capacity, void* user) {
  *capacity += 100;  // for those to come
  std::vector<Particle>& memory = static_cast<Particles*>(user)->memory;
  memory.resize(static_cast<size_t>(*capacity));
  return memory.data();
}

int Owner(const void* row, int world_size, void*) {
  return static_cast<int>(static_cast<const Particle*>(row)->id % world_size);
}

}  // namespace

int main(int argc, char** argv) {
  int64_t capacity = 500, steps = 40, stop_at = -1, overflow_at = -1;
  bool grow = false, owner = false;
  CLI::App app("particles");
  app.add_option("--capacity", capacity);
  app.add_option("--steps", steps);
  app.add_option("--stop-at", stop_at, "saves at this step, and ends without a word");
  app.add_option("--overflow-at", overflow_at,
                 "says at this step that more rows count than fit, while a save is wanted");
  app.add_flag("--grow", grow);
  app.add_flag("--owner", owner, "particles belong to the rank id % ranks");
  CLI11_PARSE(app, argc, argv);
  setvbuf(stdout, nullptr, _IOLBF, 0);

  const char* rank_text = std::getenv("SLURM_PROCID");
  const char* world_text = std::getenv("SLURM_NTASKS");
  const int64_t rank = rank_text != nullptr ? std::atoll(rank_text) : 0;
  const int64_t world = world_text != nullptr ? std::atoll(world_text) : 1;
  Particles particles;
  particles.memory.resize(static_cast<size_t>(capacity));

  cairn_session* session = nullptr;
  if (cairn_open(nullptr, &session) != CAIRN_OK) return 3;
  cairn_table table{};
  table.struct_size = sizeof table;
  table.row_bytes = sizeof(Particle);
  table.capacity = capacity;
  table.rows = &particles.rows;
  table.data = particles.memory.data();
  table.grow = grow ? Grow : nullptr;
  table.owner = owner ? Owner : nullptr;
  table.user = &particles;
  if (cairn_add_table(session, "particles", &table) != CAIRN_OK) return 3;

  cairn_report report{};
  report.struct_size = sizeof report;
  const int code = cairn_restore(session, &report);
  std::printf("restore %d %s\n", code, cairn_last_error());
  if (code != CAIRN_OK) return 4;
  if (report.restored == 0) {
    // The later the rank, the more; the first has none.
    for (int64_t id = 300 * rank * rank / (world * world);
         id < 300 * (rank + 1) * (rank + 1) / (world * world); ++id) {
      if (rank > 0 || world == 1) particles.Add(id, static_cast<double>(id));
    }
  }
  int64_t mine = 0;
  for (int64_t i = 0; i < particles.rows; ++i)
    mine += particles.memory[static_cast<size_t>(i)].id % world == rank ? 1 : 0;
  std::printf("resumed %lld %lld %lld\n", static_cast<long long>(report.step),
              static_cast<long long>(particles.rows), static_cast<long long>(mine));

  for (int64_t step = report.step; step < steps; ++step) {
    // The dead one's place is taken by the last one.
    for (int64_t i = 0; i < particles.rows; ++i) {
      Particle& particle = particles.memory[static_cast<size_t>(i)];
      if (particle.id == 7 * step) particle = particles.memory[static_cast<size_t>(--particles.rows)];
    }
    for (int64_t i = 0; i < particles.rows; ++i) particles.memory[static_cast<size_t>(i)].x += 0.5;
    if (step % world == rank) particles.Add(1000 + step, static_cast<double>(-step));
    const int64_t done = step + 1, alive = particles.rows;
    const bool save_now = done == stop_at || done == overflow_at;
    if (done == overflow_at && rank == 1) particles.rows = static_cast<int64_t>(particles.memory.size()) + 1;
    if (save_now && rank == 0) cairn_save(session, nullptr);
    cairn_step(session, done);
    if (save_now) cairn_wait(session, 60000);
    particles.rows = alive;
    if (done == stop_at) _exit(0);
  }
  for (int64_t i = 0; i < particles.rows; ++i) {
    const Particle& particle = particles.memory[static_cast<size_t>(i)];
    std::printf("row %lld %.17g\n", static_cast<long long>(particle.id), particle.x);
  }
  std::printf("done %d\n", cairn_finalize(&session));
  return 0;
}

/* heat2d: heat spreads over a plate, on any number of MPI ranks. The example of a domain-decomposed program
 * that Cairn saves and resumes.
 *
 * The field u has ny rows and nx columns, cut into blocks of which every rank holds one, with a halo of one
 * cell. A step computes the new field from the old one in a second buffer, then swaps the two. Lines with
 * "cairn" are all that checkpointing needs.
 *
 * The result does not depend on the number of ranks: every cell is computed from the same operands in the
 * same order (no reductions; compiled with -ffp-contract=off). So the hash printed at the end must be the
 * same however often the run was interrupted.
 */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cairn/cairn.h"

typedef struct {
  int64_t nx, ny;    /* global columns and rows */
  long steps;        /* of the whole run */
  long step_ms;      /* sleep per step, so that a small plate takes a while */
  const char* hurry; /* as soon as this file exists no step sleeps, or NULL */
  const char* log;   /* file that gets a line per event, or NULL */
} Options;

typedef struct {
  MPI_Comm comm;
  int rank, size;
  int up, down, left, right; /* neighbours, or MPI_PROC_NULL at the rim */
  int64_t x0, y0, nx, ny;    /* our block: offset and extent */
  MPI_Datatype column;
} Block;

static void Fail(const char* what) {
  fprintf(stderr, "heat2d: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void* Allocate(int64_t cells) {
  void* memory = calloc((size_t)cells, 8);
  if (!memory) Fail("out of memory");
  return memory;
}

/* FNV-1a. */
static uint64_t Mix(uint64_t hash, const void* data, size_t size) {
  const unsigned char* bytes = data;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

/* After an error no rank may run on: the state may be incomplete. */
static void Check(int code, const char* call) {
  char text[1024];
  if (code == CAIRN_OK) return;
  snprintf(text, sizeof text, "%s: %s", call, cairn_last_error());
  Fail(text);
}

static Options ParseOptions(int argc, char** argv) {
  static const struct option kOptions[] = {{"nx", required_argument, NULL, 'x'},
                                           {"ny", required_argument, NULL, 'y'},
                                           {"steps", required_argument, NULL, 's'},
                                           {"step-ms", required_argument, NULL, 'm'},
                                           {"log", required_argument, NULL, 'l'},
                                           {"hurry", required_argument, NULL, 'h'},
                                           {NULL, 0, NULL, 0}};
  Options options = {512, 512, 1000, 0, NULL, NULL};
  int c;
  while ((c = getopt_long(argc, argv, "", kOptions, NULL)) != -1) {
    switch (c) {
      case 'x':
        options.nx = atoll(optarg);
        break;
      case 'y':
        options.ny = atoll(optarg);
        break;
      case 's':
        options.steps = atol(optarg);
        break;
      case 'm':
        options.step_ms = atol(optarg);
        break;
      case 'h':
        options.hurry = optarg;
        break;
      case 'l':
        options.log = optarg;
        break;
      default:
        Fail("usage: heat2d [--nx N] [--ny N] [--steps N] [--step-ms MS] [--hurry FILE] [--log FILE]");
    }
  }
  return options;
}

/* --- Decomposition: rank i of n along a dimension holds cells [length*i/n, length*(i+1)/n)
 * ------------------------------------------- */

static void Split(int64_t length, int i, int n, int64_t* offset, int64_t* extent) {
  *offset = length * i / n;
  *extent = length * (i + 1) / n - *offset;
}

static void PlaceOf(const Block* block, const Options* options, int rank, int64_t* y0, int64_t* x0,
                    int64_t* ny, int64_t* nx) {
  int dims[2], periods[2], mine[2], coords[2];
  MPI_Cart_get(block->comm, 2, dims, periods, mine);
  MPI_Cart_coords(block->comm, rank, 2, coords);
  Split(options->ny, coords[0], dims[0], y0, ny);
  Split(options->nx, coords[1], dims[1], x0, nx);
}

static Block Decompose(const Options* options) {
  Block block;
  int dims[2] = {0, 0}, periods[2] = {0, 0};
  MPI_Comm_size(MPI_COMM_WORLD, &block.size);
  MPI_Dims_create(block.size, 2, dims);
  if (options->ny < dims[0] || options->nx < dims[1]) Fail("the plate is too small for this number of ranks");
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &block.comm);
  MPI_Comm_rank(block.comm, &block.rank);
  MPI_Cart_shift(block.comm, 0, 1, &block.up, &block.down);
  MPI_Cart_shift(block.comm, 1, 1, &block.left, &block.right);
  PlaceOf(&block, options, block.rank, &block.y0, &block.x0, &block.ny, &block.nx);
  MPI_Type_vector((int)block.ny, 1, (int)block.nx + 2, MPI_DOUBLE, &block.column);
  MPI_Type_commit(&block.column);
  return block;
}

/* Cell (y, x) of the block; -1 and ny, nx are the halo. */
static double* At(const Block* block, double* u, int64_t y, int64_t x) {
  return u + (y + 1) * (block->nx + 2) + x + 1;
}

/* --- Physics
 * -------------------------------------------------------------------------------------------------------------------------
 */

static void Initialise(const Block* block, const Options* options, double* u, double* time,
                       uint64_t* fingerprint) {
  for (int64_t y = 0; y < block->ny; ++y) {
    for (int64_t x = 0; x < block->nx; ++x) {
      double gy = (double)(block->y0 + y) / (double)options->ny;
      double gx = (double)(block->x0 + x) / (double)options->nx;
      *At(block, u, y, x) = 100.0 * gx * (1.0 - gx) * gy + 7.0 * gy * gy;
    }
  }
  *time = 0;
  memset(fingerprint, 0, sizeof *fingerprint * (size_t)(block->ny * block->nx));
}

/* Makes the state worthless before a restore, so that whatever the restore left out would not go unnoticed.
 */
static void Poison(const Block* block, double* u, double* time, uint64_t* fingerprint) {
  for (int64_t y = 0; y < block->ny; ++y) {
    for (int64_t x = 0; x < block->nx; ++x) *At(block, u, y, x) = NAN;
  }
  *time = NAN;
  memset(fingerprint, 0xff, sizeof *fingerprint * (size_t)(block->ny * block->nx));
}

static void ExchangeHalo(const Block* b, double* u) {
  int n = (int)b->nx;
  MPI_Sendrecv(At(b, u, 0, 0), n, MPI_DOUBLE, b->up, 0, At(b, u, b->ny, 0), n, MPI_DOUBLE, b->down, 0,
               b->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(At(b, u, b->ny - 1, 0), n, MPI_DOUBLE, b->down, 1, At(b, u, -1, 0), n, MPI_DOUBLE, b->up, 1,
               b->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(At(b, u, 0, 0), 1, b->column, b->left, 2, At(b, u, 0, b->nx), 1, b->column, b->right, 2,
               b->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(At(b, u, 0, b->nx - 1), 1, b->column, b->right, 3, At(b, u, 0, -1), 1, b->column, b->left, 3,
               b->comm, MPI_STATUS_IGNORE);
}

/* Around the plate it is cold: the halo at the rim stays 0. */
static void Step(const Block* b, double* now, double* next) {
  ExchangeHalo(b, now);
  for (int64_t y = 0; y < b->ny; ++y) {
    for (int64_t x = 0; x < b->nx; ++x) {
      double around =
          (*At(b, now, y - 1, x) + *At(b, now, y + 1, x)) + (*At(b, now, y, x - 1) + *At(b, now, y, x + 1));
      *At(b, next, y, x) = *At(b, now, y, x) + 0.2 * (around - 4.0 * *At(b, now, y, x));
    }
  }
}

/* Heat forgets: a wrong bit in the field is washed out within a hundred steps, a wrong last bit by the next
 * rounding. So every cell also keeps a fingerprint of all the values that steps began with, those of a restore
 * among them, which no wrong bit leaves unchanged. */
static void Remember(const Block* b, double* u, double time, uint64_t* fingerprint) {
  for (int64_t y = 0; y < b->ny; ++y) {
    for (int64_t x = 0; x < b->nx; ++x) {
      uint64_t* cell = &fingerprint[y * b->nx + x];
      *cell = Mix(Mix(*cell, At(b, u, y, x), sizeof(double)), &time, sizeof time);
    }
  }
}

/* Mixes the whole array (8 bytes a cell, in row-major order, so whatever the decomposition) into the hash; on
 * rank 0. `first` is the block's first cell, `stride` the cells from one of its rows to the next. */
static uint64_t MixArray(uint64_t hash, const Block* block, const Options* options, const void* first,
                         int64_t stride) {
  uint64_t* part = Allocate(block->ny * block->nx);
  for (int64_t y = 0; y < block->ny; ++y) {
    memcpy(part + y * block->nx, (const uint64_t*)first + y * stride, sizeof *part * (size_t)block->nx);
  }
  if (block->rank != 0) {
    MPI_Send(part, (int)(block->ny * block->nx), MPI_UINT64_T, 0, 4, block->comm);
    free(part);
    return 0;
  }
  uint64_t* whole = Allocate(options->ny * options->nx);
  for (int rank = 0; rank < block->size; ++rank) {
    int64_t y0, x0, ny, nx;
    PlaceOf(block, options, rank, &y0, &x0, &ny, &nx);
    if (rank != 0) {
      free(part);
      part = Allocate(ny * nx);
      MPI_Recv(part, (int)(ny * nx), MPI_UINT64_T, rank, 4, block->comm, MPI_STATUS_IGNORE);
    }
    for (int64_t y = 0; y < ny; ++y)
      memcpy(whole + (y0 + y) * options->nx + x0, part + y * nx, sizeof *part * (size_t)nx);
  }
  hash = Mix(hash, whole, sizeof *whole * (size_t)(options->ny * options->nx));
  free(part);
  free(whole);
  return hash;
}

static const char* Env(const char* name, const char* fallback) {
  return getenv(name) ? getenv(name) : fallback;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Options options = ParseOptions(argc, argv);
  Block block = Decompose(&options);
  double* now = Allocate((block.ny + 2) * (block.nx + 2));
  double* next = Allocate((block.ny + 2) * (block.nx + 2));
  uint64_t* fingerprint = Allocate(block.ny * block.nx);
  double time = 0;

  cairn_session* session;
  cairn_open_options open_options = {
      .struct_size = sizeof open_options, .rank = block.rank, .world_size = block.size};
  Check(cairn_open(&open_options, &session), "cairn_open");

  cairn_piece piece = {{block.y0, block.x0}, {block.ny, block.nx}, {block.nx + 2, 1}, At(&block, now, 0, 0)};
  cairn_array field = {sizeof field, CAIRN_F64, CAIRN_ORDER_C, 2, {options.ny, options.nx}, 1, &piece};
  Check(cairn_add_array(session, "u", &field), "cairn_add_array(u)");

  cairn_piece print_piece = {{block.y0, block.x0}, {block.ny, block.nx}, {0}, fingerprint};
  cairn_array print = {sizeof print, CAIRN_U64, CAIRN_ORDER_C, 2, {options.ny, options.nx}, 1, &print_piece};
  Check(cairn_add_array(session, "fingerprint", &print), "cairn_add_array(fingerprint)");

  cairn_piece time_piece = {.data = &time}; /* the same on every rank: a replica, written once */
  cairn_array scalar = {sizeof scalar, CAIRN_F64, CAIRN_ORDER_C, 0, {0}, 1, &time_piece};
  Check(cairn_add_array(session, "time", &scalar), "cairn_add_array(time)");

  Poison(&block, now, &time, fingerprint);
  cairn_report report = {.struct_size = sizeof report};
  Check(cairn_restore(session, &report), "cairn_restore");
  if (!report.restored) Initialise(&block, &options, now, &time, fingerprint);

  const char* life = Env("SLURM_RESTART_COUNT", "0");
  FILE* log = options.log && block.rank == 0 ? fopen(options.log, "a") : NULL;
  if (log) {
    setvbuf(log, NULL, _IOLBF, 0);
    fprintf(log, "life=%s start step=%" PRId64 " nodes=%s ranks=%d\n", life, report.step,
            Env("SLURM_JOB_NODELIST", "-"), block.size);
  }
  if (block.rank == 0) {
    printf("heat2d: %" PRId64 " x %" PRId64 " cells on %d ranks, from step %" PRId64 " of %ld\n", options.ny,
           options.nx, block.size, report.step, options.steps);
    fflush(stdout);
  }

  int64_t step = report.step;
  while (step < options.steps) {
    Remember(&block, now, time, fingerprint);
    Step(&block, now, next);
    double* swap = now;
    now = next;
    next = swap;
    time += 0.2;
    ++step;
    if (!options.hurry || access(options.hurry, F_OK) != 0)
      nanosleep(&(struct timespec){options.step_ms / 1000, options.step_ms % 1000 * 1000000}, NULL);
    if (log) fprintf(log, "life=%s step=%" PRId64 "\n", life, step);
    Check(cairn_update(session, "u", 0, At(&block, now, 0, 0)), "cairn_update");
    Check(cairn_step(session, step), "cairn_step");
  }

  uint64_t hash = MixArray(0xcbf29ce484222325u, &block, &options, At(&block, now, 0, 0), block.nx + 2);
  hash = Mix(MixArray(hash, &block, &options, fingerprint, block.nx), &time, sizeof time);
  if (log) fprintf(log, "life=%s end step=%" PRId64 " hash=%016" PRIx64 "\n", life, step, hash);
  if (block.rank == 0) {
    printf("heat2d: done at step %" PRId64 ", %" PRId64 " of them in this life, hash %016" PRIx64 "\n", step,
           step - report.step, hash);
    fflush(stdout);
  }
  cairn_finalize(&session); /* if the last save fails Cairn says so; our result is out */
  if (log) fclose(log);
  free(now);
  free(next);
  free(fingerprint);
  MPI_Finalize();
  return 0;
}

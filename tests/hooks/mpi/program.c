/* A rank of an MPI program with three arrays: rows (cut by rows among the ranks), columns (cut by columns), replica (all of it on every rank); and a
 * table of the numbers 0, 1, 2, …, each of which belongs to the rank of its remainder. Saves once and ends without finishing its run, or restores what
 * an earlier life has saved, and says what it got:
 *
 *     rank R: restore CODE TEXT
 *     rank R: read BYTES          that the kernel counted in cairn_restore
 *     rank R: wrong N hash HEX    elements that are not as they were saved; of all its bytes
 *     rank R: communicators N M   that were made in cairn_restore, and freed
 *
 * Words that it may be given, each with a number:
 *
 *     saves 1      also in a life that has restored something
 *     threads N    MPI is initialised for them: MPI_THREAD_SERIALIZED is 2
 *     spread 1     each member is on a node of its own
 *     reversed 1   the members are in another order than the ranks of MPI_COMM_WORLD
 *     deaf 1       Cairn cannot take data over sockets
 *     dies N       member N dies (SIGKILL) when it reads a large part of a file
 *     refuses N    member N's MPI makes no communicator
 */
#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cairn/cairn.h"

enum { ROWS = 2000, WIDTH = 1000, REPLICA = 2 << 20, ARRAYS = 3, NUMBERS = 1000 };

static int deaf, dying, refusing, made, freed;

/* In the place of libc's, for libcairn.so too. */
__attribute__((visibility("default"))) ssize_t pread(int fd, void* buffer, size_t bytes, off_t offset) {
  if (dying && bytes >= 64 << 10) raise(SIGKILL);
  return syscall(SYS_pread64, fd, buffer, bytes, offset);
}

__attribute__((visibility("default"))) int bind(int fd, const struct sockaddr* address, socklen_t size) {
  if (deaf && syscall(SYS_gettid) == getpid()) {
    errno = EADDRNOTAVAIL;
    return -1;
  }
  return (int)syscall(SYS_bind, fd, address, size);
}

/* In the place of MPI's. */
__attribute__((visibility("default"))) int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* out, MPI_Request* request) {
  if (refusing) return MPI_ERR_NO_MEM;
  ++made;
  return PMPI_Comm_idup(comm, out, request);
}

__attribute__((visibility("default"))) int MPI_Comm_free(MPI_Comm* comm) {
  ++freed;
  return PMPI_Comm_free(comm);
}

static void OnError(MPI_Comm* comm, int* error, ...) {
  (void)comm;
  fprintf(stderr, "an MPI error that is the program's: %d\n", *error);
}

static uint64_t Mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  return x;
}

/* What element (y, x) of an array is. */
static uint64_t Value(int array, int64_t y, int64_t x) {
  return Mix(((uint64_t)array << 56) + ((uint64_t)y << 24) + (uint64_t)x + 1);
}

static int Owner(const void* row, int world_size, void* user) {
  (void)user;
  return (int)(*(const int64_t*)row % world_size);
}

/* Bytes that this process has read with read, pread and the like. */
static int64_t BytesRead(void) {
  FILE* io = fopen("/proc/self/io", "r");
  int64_t bytes = -1;
  if (io == NULL) return -1;
  if (fscanf(io, "rchar: %" SCNd64, &bytes) != 1) bytes = -1;
  fclose(io);
  return bytes;
}

/* The number that was given with a word, or another one. */
static int Given(int argc, char** argv, const char* word, int otherwise) {
  for (int i = 1; i + 1 < argc; i += 2)
    if (strcmp(argv[i], word) == 0) return atoi(argv[i + 1]);
  return otherwise;
}

int main(int argc, char** argv) {
  int rank, size, level;
  MPI_Init_thread(&argc, &argv, Given(argc, argv, "threads", MPI_THREAD_SINGLE), &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Errhandler mine, found;
  MPI_Comm_create_errhandler(OnError, &mine);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine);
  const int member = Given(argc, argv, "reversed", 0) ? size - 1 - rank : rank;
  dying = Given(argc, argv, "dies", -1) == member;
  refusing = Given(argc, argv, "refuses", -1) == member;
  if (Given(argc, argv, "spread", 0)) {
    char node[16];
    snprintf(node, sizeof node, "n%d", member);
    setenv("SLURM_CAIRN_NODE", node, 1);
  }

  static const char* const kNames[ARRAYS] = {"rows", "columns", "replica"};
  const int64_t shape[ARRAYS][2] = {{ROWS, WIDTH}, {ROWS, WIDTH}, {REPLICA / WIDTH, WIDTH}};
  cairn_open_options options = {.struct_size = sizeof options, .rank = member, .world_size = size};
  cairn_session* session = NULL;
  cairn_piece pieces[ARRAYS];
  memset(pieces, 0, sizeof pieces);
  if (cairn_open(&options, &session) != CAIRN_OK) return 3;
  for (int a = 0; a < ARRAYS; ++a) {
    cairn_piece* piece = &pieces[a];
    for (int d = 0; d < 2; ++d) piece->extent[d] = shape[a][d];
    if (a < 2) {
      piece->offset[a] = shape[a][a] * member / size;
      piece->extent[a] = shape[a][a] * (member + 1) / size - piece->offset[a];
    }
    piece->data = malloc((size_t)(piece->extent[0] * piece->extent[1]) * 8);
    if (piece->data == NULL) return 3;
    memset(piece->data, 0xee, (size_t)(piece->extent[0] * piece->extent[1]) * 8);
    cairn_array array = {.struct_size = sizeof array,
                         .dtype = CAIRN_U64,
                         .ndim = 2,
                         .shape = {shape[a][0], shape[a][1]},
                         .piece_count = 1,
                         .pieces = piece};
    if (cairn_add_array(session, kNames[a], &array) != CAIRN_OK) return 3;
  }

  static int64_t numbers[NUMBERS];
  int64_t count = 0;
  for (int64_t n = member; n < NUMBERS; n += size) numbers[count++] = n;
  cairn_table table = {.struct_size = sizeof table,
                       .row_bytes = sizeof numbers[0],
                       .capacity = NUMBERS,
                       .rows = &count,
                       .data = numbers,
                       .owner = Owner};
  if (cairn_add_table(session, "numbers", &table) != CAIRN_OK) return 3;

  cairn_report report = {.struct_size = sizeof report};
  const int64_t before = BytesRead();
  deaf = Given(argc, argv, "deaf", 0);
  const int code = cairn_restore(session, &report);
  printf("rank %d: restore %d %s\n", member, code, code == CAIRN_OK ? "" : cairn_last_error());
  printf("rank %d: read %" PRId64 "\n", member, BytesRead() - before);
  printf("rank %d: communicators %d %d\n", member, made, freed);
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found);
  if (found != mine) return 6;
  fflush(stdout);
  if (code != CAIRN_OK) _Exit(4); /* what MPI makes of a rank that is no more there is not Cairn's */
  uint64_t hash = 0;
  int64_t wrong = 0;
  for (int a = 0; a < ARRAYS; ++a) {
    uint64_t* element = pieces[a].data;
    for (int64_t y = 0; y < pieces[a].extent[0]; ++y) {
      for (int64_t x = 0; x < pieces[a].extent[1]; ++x, ++element) {
        const uint64_t value = Value(a, pieces[a].offset[0] + y, pieces[a].offset[1] + x);
        if (!report.restored) *element = value;
        wrong += *element != value;
        hash = Mix(hash + *element);
      }
    }
  }
  wrong += count != (NUMBERS - member + size - 1) / size;
  for (int64_t i = 0; i < count; ++i) {
    wrong += numbers[i] % size != member;
    hash = Mix(hash + (uint64_t)numbers[i]);
  }
  printf("rank %d: wrong %" PRId64 " hash %016" PRIx64 "\n", member, wrong, hash);
  if (Given(argc, argv, "saves", !report.restored)) {
    if (member == 0) cairn_save(session, NULL);
    cairn_step(session, report.step + 1);
    if (cairn_wait(session, 60000) != CAIRN_OK) return 5;
  }
  fflush(stdout);
  MPI_Finalize();
  return 0;
}

/* veloc.h: the memory-based calls of VELOC for programs that run on Cairn instead, unchanged. Written from VELOC's documentation alone.
 *
 *     mpicc $(pkg-config --cflags cairn) -I$(pkg-config --variable=veloc_includedir cairn) heat.c $(pkg-config --libs cairn)
 *     srun --mpi=pmix --checkpoint=on --checkpoint-dir=DIR ./heat heat.cfg
 *
 * A version is the label of a checkpoint, and each VELOC_Checkpoint a boundary (cairn.h) at which a save is made at once. Preempted, or at its time limit,
 * the job is saved at its next VELOC_Checkpoint, and requeued; so call it often enough for the grace time. What is different from VELOC:
 *
 *   - The configuration file is not read: srun's options say where checkpoints are and how many are kept (docs/veloc_scr.md has the table).
 *   - Without --checkpoint nothing is saved, VELOC_Restart_test finds nothing, and all calls succeed.
 *   - Saves are synchronous: VELOC_Checkpoint returns when the version is durable. One that fails is told on stderr, and VELOC_Checkpoint succeeds all the same.
 *   - The regions are settled by the first of VELOC_Restart_test and VELOC_Checkpoint: protect all of them before, as VELOC's own example does. Later
 *     a region may move (protect it once more, with the same size). One that is unprotected later keeps in all versions the bytes that it had then.
 *   - Restarts begin from the newest version; from an older one with --checkpoint-resume=STEP or --checkpoint-from=DIR@STEP. A damaged one is passed over.
 *   - From VELOC_Restart_test to VELOC_Restart the state is in memory twice.
 *   - Each rank's regions are its own. On another number of ranks, or when sizes or ids have changed, the job stops with a list of what differs.
 *   - One name for all versions of a program. No files (VELOC_Route_file), no erasure codes, no C++ interface.
 *
 * Any number of files of a program may include this. One thread at a time. Calls that VELOC calls collective are so here; the others are local.
 * VELOC_FAILURE comes with a message on stderr. Where going on would begin anew over checkpoints that are there, the job is stopped (MPI_Abort).
 */
#ifndef CAIRN_VELOC_H_
#define CAIRN_VELOC_H_

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VELOC_SUCCESS 0
#define VELOC_FAILURE (-1)
#define VELOC_MAX_NAME 1024

#define VELOC_RECOVER_ALL 0
#define VELOC_RECOVER_SOME 1
#define VELOC_RECOVER_REST 2

/* Weak: the linker takes one of all files that include this. */
#define CAIRN_VELOC_ __attribute__((weak))

typedef struct cairn_veloc_region {
  int id;
  void* memory;
  size_t bytes;
  void* restored; /* from settling until the restart is over: what the checkpoint has, or nothing of worth */
  void* own;      /* of one that was unprotected: a copy of the last bytes */
} cairn_veloc_region;

typedef struct cairn_veloc_state {
  cairn_session* session; /* NULL before VELOC_Init and after VELOC_Finalize */
  int single;             /* no MPI */
  MPI_Comm comm;
  int rank;
  cairn_veloc_region* regions; /* ids are unique; in the order of the session's items once they are settled */
  int count;
  int settled;
  cairn_report report;       /* of the restore */
  char name[VELOC_MAX_NAME]; /* of all versions; a blob of each rank */
  int restarting, saving;    /* between begin and end */
  int version;
} cairn_veloc_state;

CAIRN_VELOC_ cairn_veloc_state* cairn_veloc_get(void) {
  static cairn_veloc_state state;
  return &state;
}

CAIRN_VELOC_ int cairn_veloc_fail(const char* call, const char* why) {
  fprintf(stderr, "%s on Cairn: rank %d: %s\n", call, cairn_veloc_get()->rank, why);
  return VELOC_FAILURE;
}

CAIRN_VELOC_ void cairn_veloc_stop(const char* call, const char* why) {
  cairn_veloc_fail(call, why);
  if (!cairn_veloc_get()->single) MPI_Abort(cairn_veloc_get()->comm, 1);
  exit(1);
}

/* Whether the call holds on all ranks. Collective. */
CAIRN_VELOC_ int cairn_veloc_all(int here) {
  int everywhere = 0;
  here = here != 0;
  if (cairn_veloc_get()->single) return here;
  MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_LAND, cairn_veloc_get()->comm);
  return everywhere;
}

CAIRN_VELOC_ cairn_veloc_region* cairn_veloc_find(int id) {
  cairn_veloc_state* s = cairn_veloc_get();
  int i;
  for (i = 0; i < s->count; ++i) {
    if (s->regions[i].id == id) return &s->regions[i];
  }
  return NULL;
}

/* From now on a save copies the region from where the program has it. */
CAIRN_VELOC_ void cairn_veloc_place(cairn_veloc_region* region) {
  cairn_veloc_state* s = cairn_veloc_get();
  if (cairn_update_item(s->session, (int)(region - s->regions), 0, region->memory) != CAIRN_OK) {
    cairn_veloc_stop("veloc.h", cairn_last_error());
  }
}

/* Has Cairn told which regions there are, and restored into memory of ours, since the program wants to know first whether there is anything. */
CAIRN_VELOC_ void cairn_veloc_settle(const char* call, const char* name) {
  cairn_veloc_state* s = cairn_veloc_get();
  int i, failed = 0;
  if (s->settled) return;
  s->settled = 1;
  if (s->count == 0) cairn_veloc_stop(call, "no region is protected yet: protect all of them before");
  for (i = 0; i < s->count && !failed; ++i) {
    cairn_veloc_region* region = &s->regions[i];
    cairn_piece piece;
    cairn_array array;
    char item[64];
    region->restored = malloc(region->bytes);
    if (region->restored == NULL)
      cairn_veloc_stop(call, "no memory for the regions of a checkpoint beside those of the program");
    memset(&piece, 0, sizeof piece);
    piece.extent[0] = (int64_t)region->bytes;
    piece.data = region->restored;
    memset(&array, 0, sizeof array);
    array.struct_size = sizeof array;
    array.dtype = CAIRN_U8;
    array.ndim = 1;
    array.shape[0] = (int64_t)region->bytes;
    array.piece_count = 1;
    array.pieces = &piece;
    array.optional = 1; /* the other ranks do not have it */
    snprintf(item, sizeof item, "veloc.rank%d.%d", s->rank, region->id);
    failed = cairn_add_array(s->session, item, &array) != CAIRN_OK;
  }
  strcpy(s->name, name);
  failed = failed ||
           cairn_add_blob(s->session, "veloc.name", s->name, sizeof s->name, CAIRN_BLOB_REFUSE) != CAIRN_OK;
  s->report.struct_size = sizeof s->report;
  if (failed || cairn_restore(s->session, &s->report) != CAIRN_OK) cairn_veloc_stop(call, cairn_last_error());
  if (s->report.restored && strcmp(s->name, name) != 0) {
    cairn_veloc_stop(call,
                     "the checkpoints here have another name: one directory for each (--checkpoint-dir)");
  }
}

/* What was restored is used, or not wanted. */
CAIRN_VELOC_ void cairn_veloc_release(void) {
  cairn_veloc_state* s = cairn_veloc_get();
  int i;
  for (i = 0; i < s->count; ++i) {
    if (s->regions[i].restored == NULL) continue;
    cairn_veloc_place(&s->regions[i]);
    free(s->regions[i].restored);
    s->regions[i].restored = NULL;
  }
  s->report.restored = 0;
}

CAIRN_VELOC_ int cairn_veloc_open(const char* call, int ranks) {
  cairn_veloc_state* s = cairn_veloc_get();
  cairn_open_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.rank = s->rank;
  options.world_size = ranks;
  if (cairn_open(&options, &s->session) != CAIRN_OK) cairn_veloc_stop(call, cairn_last_error());
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Init(MPI_Comm comm, const char* cfg_file) {
  cairn_veloc_state* s = cairn_veloc_get();
  int ranks;
  (void)cfg_file;
  if (s->session != NULL) return cairn_veloc_fail("VELOC_Init", "called twice");
  s->comm = comm;
  MPI_Comm_rank(comm, &s->rank);
  MPI_Comm_size(comm, &ranks);
  return cairn_veloc_open("VELOC_Init", ranks);
}

/* Processes that checkpoint independently are runs of their own: one srun each. MPI need not be initialised. */
CAIRN_VELOC_ int VELOC_Init_single(unsigned int unique_id, const char* cfg_file) {
  const char* tasks = getenv("SLURM_NTASKS");
  (void)unique_id;
  (void)cfg_file;
  if (cairn_veloc_get()->session != NULL) return cairn_veloc_fail("VELOC_Init_single", "called twice");
  if (tasks != NULL && strcmp(tasks, "1") != 0) {
    return cairn_veloc_fail("VELOC_Init_single",
                            "this step has several tasks: start each process by an srun of its own, with its "
                            "own --checkpoint-dir");
  }
  cairn_veloc_get()->single = 1;
  return cairn_veloc_open("VELOC_Init_single", 1);
}

CAIRN_VELOC_ int VELOC_Mem_protect(int id, void* ptr, size_t count, size_t base_size) {
  cairn_veloc_state* s = cairn_veloc_get();
  cairn_veloc_region* region = cairn_veloc_find(id);
  const size_t bytes = count * base_size;
  if (s->session == NULL) return cairn_veloc_fail("VELOC_Mem_protect", "VELOC_Init was not called");
  if (s->settled && (region == NULL || region->bytes != bytes)) {
    return cairn_veloc_fail("VELOC_Mem_protect",
                            "new regions, and other sizes, are to be protected before the first "
                            "VELOC_Restart_test or VELOC_Checkpoint");
  }
  if (region == NULL) {
    cairn_veloc_region* grown =
        (cairn_veloc_region*)realloc(s->regions, sizeof *grown * (size_t)(s->count + 1));
    if (grown == NULL) return cairn_veloc_fail("VELOC_Mem_protect", "no memory");
    s->regions = grown;
    region = &grown[s->count++];
    memset(region, 0, sizeof *region);
    region->id = id;
  }
  region->memory = ptr;
  region->bytes = bytes;
  if (s->settled && region->restored == NULL) cairn_veloc_place(region);
  free(region->own);
  region->own = NULL;
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Mem_unprotect(int id) {
  cairn_veloc_state* s = cairn_veloc_get();
  cairn_veloc_region* region = cairn_veloc_find(id);
  if (region == NULL || region->own != NULL) return cairn_veloc_fail("VELOC_Mem_unprotect", "no such region");
  if (!s->settled) {
    *region = s->regions[--s->count];
    return VELOC_SUCCESS;
  }
  region->own = malloc(region->bytes);
  if (region->own == NULL)
    return cairn_veloc_fail("VELOC_Mem_unprotect", "no memory for the copy that later versions have of it");
  memcpy(region->own, region->memory, region->bytes);
  region->memory = region->own;
  if (region->restored == NULL) cairn_veloc_place(region);
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Route_file(char* original_name, char* ckpt_file_name) {
  (void)original_name;
  (void)ckpt_file_name;
  return cairn_veloc_fail("VELOC_Route_file",
                          "checkpoints that the program writes to files itself are not supported: protect "
                          "its memory, or use cairn.h");
}

CAIRN_VELOC_ int VELOC_Restart_test(const char* name, int max_ver) {
  cairn_veloc_state* s = cairn_veloc_get();
  if (s->session == NULL || strlen(name) >= VELOC_MAX_NAME)
    return cairn_veloc_fail("VELOC_Restart_test", "no session, or too long a name");
  if (!cairn_active(s->session)) return VELOC_FAILURE; /* there is nothing to find, and nothing is wrong */
  cairn_veloc_settle("VELOC_Restart_test", name);
  if (!s->report.restored) return VELOC_FAILURE;
  if (max_ver > 0 && s->report.label >= max_ver) {
    return cairn_veloc_fail(
        "VELOC_Restart_test",
        "only the newest version is at hand; --checkpoint-resume=STEP takes an older one");
  }
  return (int)s->report.label;
}

CAIRN_VELOC_ int VELOC_Restart_begin(const char* name, int version) {
  cairn_veloc_state* s = cairn_veloc_get();
  if (VELOC_Restart_test(name, 0) != version || version <= 0) {
    return cairn_veloc_fail("VELOC_Restart_begin",
                            "this version is not the one that VELOC_Restart_test returns");
  }
  s->restarting = 1;
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Recover_selective(int mode, int* ids, int length) {
  cairn_veloc_state* s = cairn_veloc_get();
  int i, k;
  if (!s->restarting)
    return cairn_veloc_fail("VELOC_Recover_selective",
                            "not between VELOC_Restart_begin and VELOC_Restart_end");
  for (i = 0; i < s->count; ++i) {
    int listed = 0;
    for (k = 0; mode != VELOC_RECOVER_ALL && k < length; ++k) listed = listed || ids[k] == s->regions[i].id;
    if (mode == VELOC_RECOVER_ALL || listed == (mode == VELOC_RECOVER_SOME)) {
      memcpy(s->regions[i].memory, s->regions[i].restored, s->regions[i].bytes);
    }
  }
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Recover_mem(void) { return VELOC_Recover_selective(VELOC_RECOVER_ALL, NULL, 0); }

/* VELOC_Recover_mem, by its older name. */
CAIRN_VELOC_ int VELOC_Restart_mem(void) { return VELOC_Recover_mem(); }

CAIRN_VELOC_ int VELOC_Restart_end(int success) {
  cairn_veloc_state* s = cairn_veloc_get();
  if (!s->restarting) return cairn_veloc_fail("VELOC_Restart_end", "no VELOC_Restart_begin");
  s->restarting = 0;
  if (!cairn_veloc_all(success)) return cairn_veloc_fail("VELOC_Restart_end", "some rank could not restart");
  cairn_veloc_release();
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Restart(const char* name, int version) {
  if (VELOC_Restart_begin(name, version) != VELOC_SUCCESS) return VELOC_FAILURE;
  return VELOC_Restart_end(VELOC_Recover_mem() == VELOC_SUCCESS);
}

CAIRN_VELOC_ int VELOC_Checkpoint_begin(const char* name, int version) {
  cairn_veloc_state* s = cairn_veloc_get();
  if (s->session == NULL || strlen(name) >= VELOC_MAX_NAME)
    return cairn_veloc_fail("VELOC_Checkpoint_begin", "no session, or too long a name");
  if (cairn_active(s->session)) {
    cairn_veloc_settle("VELOC_Checkpoint_begin", name);
    if (strcmp(s->name, name) != 0)
      return cairn_veloc_fail("VELOC_Checkpoint_begin",
                              "another name than before: one for all versions of a program");
    cairn_veloc_release();
  }
  s->saving = 1;
  s->version = version;
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Checkpoint_mem(void) {
  return cairn_veloc_get()->saving ? VELOC_SUCCESS
                                   : cairn_veloc_fail("VELOC_Checkpoint_mem", "no VELOC_Checkpoint_begin");
}

CAIRN_VELOC_ int VELOC_Checkpoint_end(int success) {
  cairn_veloc_state* s = cairn_veloc_get();
  if (!s->saving) return cairn_veloc_fail("VELOC_Checkpoint_end", "no VELOC_Checkpoint_begin");
  s->saving = 0;
  if (!cairn_veloc_all(success))
    return cairn_veloc_fail("VELOC_Checkpoint_end",
                            "some rank has nothing to save: this version is left out");
  if (!cairn_active(s->session)) return VELOC_SUCCESS;
  /* The boundary first: what is still wanted of the version before is saved at this one, too. */
  if (cairn_step(s->session, s->version) != CAIRN_OK ||
      (s->rank == 0 && cairn_save(s->session, NULL) != CAIRN_OK) || cairn_wait(s->session, -1) != CAIRN_OK) {
    return cairn_veloc_fail("VELOC_Checkpoint_end", cairn_last_error());
  }
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Checkpoint_wait(void) { return VELOC_SUCCESS; }

CAIRN_VELOC_ int VELOC_Checkpoint(const char* name, int version) {
  if (VELOC_Checkpoint_begin(name, version) != VELOC_SUCCESS) return VELOC_FAILURE;
  return VELOC_Checkpoint_end(VELOC_Checkpoint_mem() == VELOC_SUCCESS);
}

CAIRN_VELOC_ int VELOC_Finalize(int drain) {
  cairn_veloc_state* s = cairn_veloc_get();
  int i, code;
  (void)drain;
  if (s->session == NULL) return cairn_veloc_fail("VELOC_Finalize", "VELOC_Init was not called");
  code = cairn_finalize(&s->session);
  for (i = 0; i < s->count; ++i) {
    free(s->regions[i].restored);
    free(s->regions[i].own);
  }
  free(s->regions);
  memset(s, 0, sizeof *s);
  return code == CAIRN_OK ? VELOC_SUCCESS : cairn_veloc_fail("VELOC_Finalize", cairn_last_error());
}

#ifdef __cplusplus
}
#endif

#endif /* CAIRN_VELOC_H_ */

/* veloc.h: the memory-based calls of VELOC for programs that run on Cairn instead, unchanged. Written from VELOC's documentation and the names in its header.
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
 *     Where --checkpoint-on leaves out `request` it asks for no save: it is the boundary for saves of other causes.
 *   - Memory is read inside VELOC_Checkpoint alone. VELOC_Finalize saves nothing; regions may be freed before it.
 *   - The regions are settled by the first of VELOC_Restart_test and VELOC_Checkpoint: protect all of them before, as VELOC's own example does. Later
 *     a region may move (protect it once more, with the same size). Where another size or a new region is protected later, that fails, and so does every
 *     VELOC_Checkpoint from then on. One that is unprotected later is zeros in all versions that follow.
 *   - A life restarts once, from the newest version. Where the program asks for an older one, or for one after it has begun to compute, the job is stopped:
 *     start it again with --checkpoint-resume=STEP or --checkpoint-from=DIR@STEP. STEP counts the calls of VELOC_Checkpoint over all lives of
 *     the run; `cairn ls` shows each with its version. A damaged version is passed over.
 *   - From VELOC_Restart_test to VELOC_Restart the state is in memory twice.
 *   - Each rank's regions are its own. On another number of ranks, or when sizes or ids have changed, the job stops with a list of what differs.
 *   - One name for all versions of a program. A version of 0 is saved, and never found again, as VELOC's are positive.
 *   - One communicator, MPI_COMM_WORLD or of fewer processes. Groups that save independently are runs of their own: one srun and one directory each.
 *   - No files (VELOC_Route_file), no checkpoints of some regions alone, no named regions (VELOC_Region_protect and the like), no VELOC_Cleanup (`cairn prune`),
 *     no observers, no erasure codes, no C++ interface.
 *
 * Any number of files of a program may include this. One thread at a time. Calls that VELOC calls collective are so here; the others are local.
 * VELOC_FAILURE comes with a message on stderr. Where going on would begin anew over versions that are there, the job is stopped (MPI_Abort).
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

#define VELOC_CKPT_ALL 0
#define VELOC_CKPT_SOME 1
#define VELOC_CKPT_REST 2

/* Weak: the linker takes one of all files that include this. */
#define CAIRN_VELOC_ __attribute__((weak))

typedef struct cairn_veloc_region {
  int id;
  void* memory;
  size_t bytes;
  void* restored; /* what the checkpoint has, until the restart is over; NULL: it has nothing of this one */
  void* zeros;    /* of one that was unprotected: its memory now */
} cairn_veloc_region;

typedef enum cairn_veloc_phase {
  CAIRN_VELOC_CLOSED,     /* before VELOC_Init and after VELOC_Finalize */
  CAIRN_VELOC_OPEN,       /* regions are not settled */
  CAIRN_VELOC_RESTORED,   /* the newest version is at hand, and the program has not taken it */
  CAIRN_VELOC_RESTARTING, /* between VELOC_Restart_begin and VELOC_Restart_end */
  CAIRN_VELOC_RUNNING,
  CAIRN_VELOC_SAVING /* between VELOC_Checkpoint_begin and VELOC_Checkpoint_end */
} cairn_veloc_phase;

typedef struct cairn_veloc_state {
  cairn_veloc_phase phase;
  cairn_session* session;
  int single; /* no MPI */
  MPI_Comm comm;
  int rank;
  int world_rank;              /* names the rank's regions, so that groups never take each other's */
  cairn_veloc_region* regions; /* ids are unique; in the order of the session's items once they are settled */
  int count;
  int refused; /* a region could not be protected: there is nothing to save or restore any more */
  char name[VELOC_MAX_NAME]; /* of all versions; a blob of each rank */
  int newest;                /* version that is there, of an earlier life or this one; 0 = none */
  int64_t step;              /* its step */
  int version;               /* that is being saved */
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

/* The program would begin anew over versions that are there. */
CAIRN_VELOC_ void cairn_veloc_stop_anew(const char* call, const char* why) {
  const cairn_veloc_state* s = cairn_veloc_get();
  char text[512];
  snprintf(text, sizeof text,
           "%s. The newest version is %d, of step %lld. Start again to restart from it, with "
           "--checkpoint-resume=STEP to do so from an older one (`cairn ls DIR` has the steps), and with "
           "another --checkpoint-dir to begin anew",
           why, s->newest, (long long)s->step);
  cairn_veloc_stop(call, text);
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

/* From now on the region's bytes are at `memory` for Cairn, NULL: nowhere. */
CAIRN_VELOC_ void cairn_veloc_place(cairn_veloc_region* region, void* memory) {
  cairn_veloc_state* s = cairn_veloc_get();
  if (cairn_update_item(s->session, (int)(region - s->regions), 0, memory) != CAIRN_OK) {
    cairn_veloc_stop("veloc.h", cairn_last_error());
  }
}

/* What was restored of a region is used, or is not there. */
CAIRN_VELOC_ void cairn_veloc_release(cairn_veloc_region* region) {
  if (region->restored == NULL) return;
  cairn_veloc_place(region, region->memory);
  free(region->restored);
  region->restored = NULL;
}

CAIRN_VELOC_ void cairn_veloc_run(void) {
  cairn_veloc_state* s = cairn_veloc_get();
  int i;
  for (i = 0; i < s->count; ++i) cairn_veloc_release(&s->regions[i]);
  s->phase = CAIRN_VELOC_RUNNING;
}

CAIRN_VELOC_ void cairn_veloc_add(const char* call, cairn_veloc_region* region) {
  cairn_veloc_state* s = cairn_veloc_get();
  cairn_piece piece;
  cairn_array array;
  char item[64];
  region->restored = malloc(region->bytes > 0 ? region->bytes : 1);
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
  snprintf(item, sizeof item, "veloc.rank%d.%d", s->world_rank, region->id);
  if (cairn_add_array(s->session, item, &array) != CAIRN_OK) cairn_veloc_stop(call, cairn_last_error());
}

/* Regions of which nothing was loaded, as the user has allowed. */
CAIRN_VELOC_ void cairn_veloc_pass_over(const char* call, int differences) {
  cairn_veloc_state* s = cairn_veloc_get();
  int i, rank, id;
  for (i = 0; i < differences; ++i) {
    cairn_difference difference;
    difference.struct_size = sizeof difference;
    if (cairn_restored_difference(s->session, i, &difference) != CAIRN_OK)
      cairn_veloc_stop(call, cairn_last_error());
    if (difference.kind != CAIRN_ITEM_MISSING && difference.kind != CAIRN_ITEM_LEFT) continue;
    if (sscanf(difference.name, "veloc.rank%d.%d", &rank, &id) == 2 && rank == s->world_rank)
      cairn_veloc_release(cairn_veloc_find(id));
  }
}

/* Has Cairn told which regions there are, and restored into memory of ours, since the program wants to know first whether there is anything. */
CAIRN_VELOC_ void cairn_veloc_settle(const char* call, const char* name) {
  cairn_veloc_state* s = cairn_veloc_get();
  cairn_report report;
  int i;
  strcpy(s->name, name);
  if (!cairn_active(s->session)) {
    s->phase = CAIRN_VELOC_RUNNING;
    return;
  }
  if (s->count == 0) cairn_veloc_stop(call, "no region is protected yet: protect all of them before");
  for (i = 0; i < s->count; ++i) cairn_veloc_add(call, &s->regions[i]);
  memset(&report, 0, sizeof report);
  report.struct_size = sizeof report;
  if (cairn_add_blob(s->session, "veloc.name", s->name, sizeof s->name, CAIRN_BLOB_REFUSE) != CAIRN_OK ||
      cairn_restore(s->session, &report) != CAIRN_OK) {
    cairn_veloc_stop(call, cairn_last_error());
  }
  if (report.restored && strcmp(s->name, name) != 0) {
    cairn_veloc_stop(call,
                     "the checkpoints here have another name: one directory for each (--checkpoint-dir)");
  }
  if (report.restored && report.step == 0) {
    cairn_veloc_stop(call, "what --checkpoint-from names has no version: take a whole checkpoint of Cairn's");
  }
  s->step = report.step;
  if (report.label <= 0) { /* nothing, or a version 0: what the program begins with */
    cairn_veloc_run();
    return;
  }
  cairn_veloc_pass_over(call, report.difference_count);
  s->newest = (int)report.label;
  s->phase = CAIRN_VELOC_RESTORED;
}

/* What all calls with a name begin with. */
CAIRN_VELOC_ int cairn_veloc_enter(const char* call, const char* name) {
  cairn_veloc_state* s = cairn_veloc_get();
  if (s->phase == CAIRN_VELOC_CLOSED) return cairn_veloc_fail(call, "VELOC_Init was not called");
  if (strlen(name) >= VELOC_MAX_NAME) return cairn_veloc_fail(call, "the name is too long");
  if (s->phase == CAIRN_VELOC_OPEN) cairn_veloc_settle(call, name);
  if (s->phase != CAIRN_VELOC_RESTORED && s->phase != CAIRN_VELOC_RUNNING)
    return cairn_veloc_fail(call, "a restart or checkpoint has begun and not ended");
  if (cairn_active(s->session) && strcmp(s->name, name) != 0)
    return cairn_veloc_fail(call, "another name than before: one for all versions of a program");
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int cairn_veloc_open(const char* call, const char* name, int ranks) {
  cairn_veloc_state* s = cairn_veloc_get();
  cairn_open_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.name = name;
  options.rank = s->rank;
  options.world_size = ranks;
  if (cairn_open(&options, &s->session) != CAIRN_OK) cairn_veloc_stop(call, cairn_last_error());
  s->phase = CAIRN_VELOC_OPEN;
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Init(MPI_Comm comm, const char* cfg_file) {
  cairn_veloc_state* s = cairn_veloc_get();
  MPI_Group all, ours;
  int ranks, first = 0, leader;
  char name[32];
  (void)cfg_file;
  if (s->phase != CAIRN_VELOC_CLOSED) return cairn_veloc_fail("VELOC_Init", "called twice");
  s->comm = comm;
  MPI_Comm_rank(comm, &s->rank);
  MPI_Comm_rank(MPI_COMM_WORLD, &s->world_rank);
  MPI_Comm_size(comm, &ranks);
  /* Sessions of several communicators must not be taken for one; the second finds the directory owned. */
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Comm_group(comm, &ours);
  MPI_Group_translate_ranks(ours, 1, &first, all, &leader);
  MPI_Group_free(&ours);
  MPI_Group_free(&all);
  snprintf(name, sizeof name, "veloc.%d", leader);
  return cairn_veloc_open("VELOC_Init", leader == 0 ? NULL : name, ranks);
}

/* Processes that checkpoint independently are runs of their own: one srun each. MPI need not be initialised. */
CAIRN_VELOC_ int VELOC_Init_single(unsigned int unique_id, const char* cfg_file) {
  const char* tasks = getenv("SLURM_NTASKS");
  (void)unique_id;
  (void)cfg_file;
  if (cairn_veloc_get()->phase != CAIRN_VELOC_CLOSED)
    return cairn_veloc_fail("VELOC_Init_single", "called twice");
  if (getenv("SLURM_CAIRN_TOKEN") != NULL && tasks != NULL && strcmp(tasks, "1") != 0) {
    return cairn_veloc_fail("VELOC_Init_single",
                            "this step has several tasks: start each process by an srun of its own, with its "
                            "own --checkpoint-dir");
  }
  cairn_veloc_get()->single = 1;
  return cairn_veloc_open("VELOC_Init_single", NULL, 1);
}

CAIRN_VELOC_ int VELOC_Mem_protect(int id, void* ptr, size_t count, size_t base_size) {
  cairn_veloc_state* s = cairn_veloc_get();
  cairn_veloc_region* region = cairn_veloc_find(id);
  const size_t bytes = count * base_size;
  if (s->phase == CAIRN_VELOC_CLOSED)
    return cairn_veloc_fail("VELOC_Mem_protect", "VELOC_Init was not called");
  if (!cairn_active(s->session)) return VELOC_SUCCESS;
  if (s->phase != CAIRN_VELOC_OPEN && (region == NULL || region->bytes != bytes)) {
    s->refused = 1;
    return cairn_veloc_fail("VELOC_Mem_protect",
                            "new regions, and other sizes, are to be protected before the first "
                            "VELOC_Restart_test or VELOC_Checkpoint: from now on there are no checkpoints");
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
  if (s->phase != CAIRN_VELOC_OPEN && region->restored == NULL) cairn_veloc_place(region, ptr);
  free(region->zeros);
  region->zeros = NULL;
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Mem_unprotect(int id) {
  cairn_veloc_state* s = cairn_veloc_get();
  cairn_veloc_region* region = cairn_veloc_find(id);
  if (s->phase != CAIRN_VELOC_CLOSED && !cairn_active(s->session)) return VELOC_SUCCESS;
  if (region == NULL || region->zeros != NULL)
    return cairn_veloc_fail("VELOC_Mem_unprotect", "no such region");
  if (s->phase == CAIRN_VELOC_OPEN) {
    *region = s->regions[--s->count];
    return VELOC_SUCCESS;
  }
  region->zeros = calloc(region->bytes > 0 ? region->bytes : 1, 1);
  if (region->zeros == NULL) {
    s->refused = 1;
    return cairn_veloc_fail("VELOC_Mem_unprotect", "no memory: from now on there are no checkpoints");
  }
  region->memory = region->zeros;
  if (region->restored == NULL) cairn_veloc_place(region, region->memory);
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Mem_clear(void) {
  cairn_veloc_state* s = cairn_veloc_get();
  int i, result = VELOC_SUCCESS;
  for (i = s->count - 1; i >= 0; --i) { /* an unsettled one that goes is replaced by the last */
    if (s->regions[i].zeros == NULL && VELOC_Mem_unprotect(s->regions[i].id) != VELOC_SUCCESS)
      result = VELOC_FAILURE;
  }
  return result;
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
  if (cairn_veloc_enter("VELOC_Restart_test", name) != VELOC_SUCCESS || s->newest <= 0) return VELOC_FAILURE;
  if (max_ver > 0 && s->newest >= max_ver)
    cairn_veloc_stop_anew("VELOC_Restart_test", "an older version is asked for, and is not at hand");
  return s->newest;
}

CAIRN_VELOC_ int VELOC_Restart_begin(const char* name, int version) {
  cairn_veloc_state* s = cairn_veloc_get();
  if (cairn_veloc_enter("VELOC_Restart_begin", name) != VELOC_SUCCESS) return VELOC_FAILURE;
  if (s->newest <= 0) return cairn_veloc_fail("VELOC_Restart_begin", "there is no version");
  if (s->phase == CAIRN_VELOC_RUNNING)
    cairn_veloc_stop_anew("VELOC_Restart_begin", "the program computes already, and there is no way back");
  if (version != s->newest)
    cairn_veloc_stop_anew("VELOC_Restart_begin", "another version is asked for, and is not at hand");
  s->phase = CAIRN_VELOC_RESTARTING;
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Recover_selective(int mode, int* ids, int length) {
  cairn_veloc_state* s = cairn_veloc_get();
  int i, k;
  if (s->phase != CAIRN_VELOC_RESTARTING)
    return cairn_veloc_fail("VELOC_Recover_selective",
                            "not between VELOC_Restart_begin and VELOC_Restart_end");
  if (s->refused) return cairn_veloc_fail("VELOC_Recover_selective", "a region could not be protected");
  for (i = 0; i < s->count; ++i) {
    int listed = 0;
    for (k = 0; mode != VELOC_RECOVER_ALL && k < length; ++k) listed = listed || ids[k] == s->regions[i].id;
    if (s->regions[i].restored != NULL && s->regions[i].bytes > 0 &&
        (mode == VELOC_RECOVER_ALL || listed == (mode == VELOC_RECOVER_SOME))) {
      memcpy(s->regions[i].memory, s->regions[i].restored, s->regions[i].bytes);
    }
  }
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Recover_mem(void) { return VELOC_Recover_selective(VELOC_RECOVER_ALL, NULL, 0); }

/* VELOC_Recover_mem, by its older name. */
CAIRN_VELOC_ int VELOC_Restart_mem(void) { return VELOC_Recover_mem(); }

/* Of a region that is protected: what is not cannot be learnt of. */
CAIRN_VELOC_ int VELOC_Recover_size(int id) {
  const cairn_veloc_region* region = cairn_veloc_find(id);
  return region == NULL || region->restored == NULL ? -1 : (int)region->bytes;
}

CAIRN_VELOC_ int VELOC_Restart_end(int success) {
  cairn_veloc_state* s = cairn_veloc_get();
  if (s->phase != CAIRN_VELOC_RESTARTING)
    return cairn_veloc_fail("VELOC_Restart_end", "no VELOC_Restart_begin");
  s->phase = CAIRN_VELOC_RESTORED;
  if (!cairn_veloc_all(success)) return cairn_veloc_fail("VELOC_Restart_end", "some rank could not restart");
  cairn_veloc_run();
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Restart(const char* name, int version) {
  if (VELOC_Restart_begin(name, version) != VELOC_SUCCESS) return VELOC_FAILURE;
  return VELOC_Restart_end(VELOC_Recover_mem() == VELOC_SUCCESS);
}

CAIRN_VELOC_ int VELOC_Checkpoint_begin(const char* name, int version) {
  cairn_veloc_state* s = cairn_veloc_get();
  if (cairn_veloc_enter("VELOC_Checkpoint_begin", name) != VELOC_SUCCESS) return VELOC_FAILURE;
  if (s->phase == CAIRN_VELOC_RESTORED)
    cairn_veloc_stop_anew("VELOC_Checkpoint_begin", "the program has not restarted from what is there");
  s->phase = CAIRN_VELOC_SAVING;
  s->version = version;
  return VELOC_SUCCESS;
}

CAIRN_VELOC_ int VELOC_Checkpoint_selective(int mode, int* ids, int length) {
  (void)ids;
  (void)length;
  if (cairn_veloc_get()->phase != CAIRN_VELOC_SAVING)
    return cairn_veloc_fail("VELOC_Checkpoint_selective", "no VELOC_Checkpoint_begin");
  return mode == VELOC_CKPT_ALL ? VELOC_SUCCESS
                                : cairn_veloc_fail("VELOC_Checkpoint_selective", "a version has all regions");
}

CAIRN_VELOC_ int VELOC_Checkpoint_mem(void) { return VELOC_Checkpoint_selective(VELOC_CKPT_ALL, NULL, 0); }

CAIRN_VELOC_ int VELOC_Checkpoint_end(int success) {
  cairn_veloc_state* s = cairn_veloc_get();
  if (s->phase != CAIRN_VELOC_SAVING)
    return cairn_veloc_fail("VELOC_Checkpoint_end", "no VELOC_Checkpoint_begin");
  s->phase = CAIRN_VELOC_RUNNING;
  if (!cairn_veloc_all(success && !s->refused))
    return cairn_veloc_fail("VELOC_Checkpoint_end",
                            "some rank has nothing to save: this version is left out");
  if (!cairn_active(s->session)) return VELOC_SUCCESS;
  /* The boundary first: what is still wanted of the version before is saved at this one, too. All wait, whatever has failed here. */
  success = cairn_step(s->session, s->version) == CAIRN_OK &&
            (s->rank != 0 || cairn_save(s->session, NULL) == CAIRN_OK);
  if (!success) cairn_veloc_fail("VELOC_Checkpoint_end", cairn_last_error());
  if (cairn_wait(s->session, -1) != CAIRN_OK)
    success = cairn_veloc_fail("VELOC_Checkpoint_end", cairn_last_error()) == VELOC_SUCCESS;
  s->newest = s->version;
  ++s->step;
  return cairn_veloc_all(success) ? VELOC_SUCCESS : VELOC_FAILURE;
}

CAIRN_VELOC_ int VELOC_Checkpoint_wait(void) { return VELOC_SUCCESS; }

CAIRN_VELOC_ int VELOC_Checkpoint_finished(void) { return VELOC_SUCCESS; }

CAIRN_VELOC_ int VELOC_Checkpoint(const char* name, int version) {
  if (VELOC_Checkpoint_begin(name, version) != VELOC_SUCCESS) return VELOC_FAILURE;
  return VELOC_Checkpoint_end(VELOC_Checkpoint_mem() == VELOC_SUCCESS);
}

CAIRN_VELOC_ int VELOC_Finalize(int drain) {
  cairn_veloc_state* s = cairn_veloc_get();
  int i, code;
  (void)drain;
  if (s->phase == CAIRN_VELOC_CLOSED) return cairn_veloc_fail("VELOC_Finalize", "VELOC_Init was not called");
  /* The program may have freed the regions. */
  for (i = 0; s->phase != CAIRN_VELOC_OPEN && i < s->count; ++i) cairn_veloc_place(&s->regions[i], NULL);
  code = cairn_finalize(&s->session);
  for (i = 0; i < s->count; ++i) {
    free(s->regions[i].restored);
    free(s->regions[i].zeros);
  }
  free(s->regions);
  memset(s, 0, sizeof *s);
  return code == CAIRN_OK ? VELOC_SUCCESS : cairn_veloc_fail("VELOC_Finalize", cairn_last_error());
}

#ifdef __cplusplus
}
#endif

#endif /* CAIRN_VELOC_H_ */

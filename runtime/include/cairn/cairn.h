/* cairn.h: checkpoint and restart for Slurm jobs. The stable C interface (C, C++, Fortran by iso_c_binding, or dlsym).
 *
 * A program that is started by `srun --checkpoint` is saved on preemption, time limit, interval or request, and resumes on whatever nodes
 * and number of ranks it gets next. Started without, every call below is a cheap no-op that returns CAIRN_OK, so a program needs no
 * #ifdef and no second code path.
 *
 *     cairn_session* s;
 *     cairn_open(NULL, &s);                                  // every rank
 *     cairn_add_array(s, "u", &array);                       // what makes up the state
 *     cairn_restore(s, &report);                             // fills it if there is something to restore
 *     for (long i = report.step; i < steps; ++i) {
 *       compute(i);
 *       cairn_step(s, i + 1);                                // a boundary: the state is consistent here
 *     }
 *     cairn_finalize(&s);
 *
 * Words. A *member* is a process that opened the session. A *boundary* is a call of cairn_step: every message sent before it was received
 * before it, and no request is active on registered memory. A *piece* is the part of a global array that one member holds.
 *
 * Threads. One thread of a process at a time may be inside a function of a session; cairn_last_error is per thread. Cairn runs threads of
 * its own. They call nothing of the program but its own SIGTERM handler, if it has one, when the final save is over.
 *
 * Errors. Every function that can fail returns 0 (CAIRN_OK) or a negative CAIRN_E_* code, and cairn_last_error() tells what, which, why
 * and what to do. A failed *save* is never returned by cairn_step: it is reported on stderr and the program goes on. No exception and no
 * signal crosses this interface.
 *
 * Ownership. Strings and structures passed in are copied. Memory of arrays and blobs stays the caller's: it must stay valid until
 * cairn_finalize, or until cairn_update gives another address and no copy of it is left to be made (cairn_fence).
 */
#ifndef CAIRN_CAIRN_H_
#define CAIRN_CAIRN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_ABI_VERSION 1

#if defined(CAIRN_BUILDING)
#define CAIRN_API __attribute__((visibility("default")))
#else
#define CAIRN_API
#endif

enum {
  CAIRN_OK = 0,
  CAIRN_E_INVALID = -1,  /* an argument is wrong */
  CAIRN_E_MISMATCH = -2, /* the program's items and the checkpoint's differ: do not run on */
  CAIRN_E_BUSY = -3,     /* the directory belongs to another live job or step */
  CAIRN_E_IO = -4,       /* a file could not be read or written, or a mount is missing */
  CAIRN_E_DAMAGE = -5,   /* no checkpoint without damage is left */
  CAIRN_E_TIMEOUT = -6,  /* a bound has passed (a member never came, a drain never ended) */
  CAIRN_E_PEER = -7,     /* a member has gone, or a driver or library that is needed is not there */
  CAIRN_E_NO_MEMORY = -8,
  CAIRN_E_STATE = -9, /* the call does not fit here (for example cairn_add_array after cairn_restore) */
  CAIRN_E_INTERNAL = -10
};

/* The text of the last error in this thread, "" when there was none. Valid until the thread's next call into Cairn. */
CAIRN_API const char* cairn_last_error(void);

/* CAIRN_ABI_VERSION of the library that is loaded. */
CAIRN_API int cairn_abi_version(void);

typedef struct cairn_session cairn_session;

typedef struct cairn_open_options {
  size_t struct_size; /* sizeof(cairn_open_options) */
  const char* name;   /* the session's name; NULL = "main". One session of a name per step */
  int rank;           /* this member's rank among the members; -1 = from the environment (SLURM_PROCID) */
  int world_size;     /* number of members; 0 = from the environment (SLURM_NTASKS) */
} cairn_open_options;

/* Opens the session; collective over the members (returns when all of them are there, at most 60 s apart, or CAIRN_OK unprotected with one
 * warning when they are not). options may be NULL. *session is never NULL on CAIRN_OK. CAIRN_E_BUSY: the directory belongs to another
 * live job or step, which the message names; running on would be unprotected, and may redo what the other one does. */
CAIRN_API int cairn_open(const cairn_open_options* options, cairn_session** session);

/* 1 when this life is protected (saves will be made), else 0. */
CAIRN_API int cairn_active(const cairn_session* session);

/* Element types. The values never change. Of types that are smaller than a byte an element is the fewest values that fill whole bytes, and all
 * shapes, offsets, extents and strides count elements: F4 has two values in a byte (PyTorch's float4_e2m1fn_x2), F6 four in three bytes. They lie
 * next to each other along the dimension that is dense in the array's order, so such an array has one at least. */
enum {
  CAIRN_BOOL = 0,
  CAIRN_U8,
  CAIRN_I8,
  CAIRN_F8_E5M2,
  CAIRN_F8_E4M3,
  CAIRN_I16,
  CAIRN_U16,
  CAIRN_F16,
  CAIRN_BF16,
  CAIRN_I32,
  CAIRN_U32,
  CAIRN_F32,
  CAIRN_F64,
  CAIRN_I64,
  CAIRN_U64,
  CAIRN_C64,
  CAIRN_F8_E8M0,
  CAIRN_F8_E4M3FNUZ,
  CAIRN_F8_E5M2FNUZ,
  CAIRN_F4,
  CAIRN_F6_E2M3,
  CAIRN_F6_E3M2
};

enum { CAIRN_ORDER_C = 0, CAIRN_ORDER_FORTRAN = 1 };

#define CAIRN_MAX_DIMS 8

/* A box of the global array in this member's memory. */
typedef struct cairn_piece {
  int64_t offset[CAIRN_MAX_DIMS]; /* elements from the array's origin, per dimension */
  int64_t extent[CAIRN_MAX_DIMS]; /* elements, per dimension; any 0 = an empty piece */
  int64_t stride[CAIRN_MAX_DIMS]; /* elements between neighbours; all 0 = dense in the array's order */
  void* data;                     /* the box's first element (not the halo's) */
} cairn_piece;

/* Where the memory of an array lies. */
enum {
  CAIRN_MEMORY_HOST = 0,
  CAIRN_MEMORY_CUDA =
      1 /* of CUDA devices, allocated in their primary contexts, as the CUDA runtime and what is built on it do */
};

/* How long an array stays as it is at a boundary. */
enum {
  CAIRN_STABLE_STEP_RETURN = 0, /* until cairn_step returns */
  CAIRN_STABLE_FENCE =
      1 /* until cairn_fence or the next cairn_step; so memory of devices may be copied meanwhile */
};

typedef struct cairn_array {
  size_t struct_size; /* sizeof(cairn_array) */
  int dtype;          /* CAIRN_F64, … */
  int order; /* CAIRN_ORDER_C or CAIRN_ORDER_FORTRAN: which dimension is dense when strides are all 0 */
  int ndim;  /* 0 … CAIRN_MAX_DIMS; 0 = a scalar */
  int64_t shape[CAIRN_MAX_DIMS]; /* the global shape, elements */
  int piece_count;               /* pieces of this member; 0 = it holds none, yet knows the array */
  const cairn_piece* pieces;
  int optional; /* 1: members that hold nothing of it may leave it out (stages of a pipeline, partitions of an optimizer) */
  /* What a program leaves out whose struct_size ends before these is host memory. */
  int memory;       /* CAIRN_MEMORY_*, of all pieces */
  int stable_until; /* CAIRN_STABLE_* */
} cairn_array;

/* Adds an array to the state, before cairn_restore. Every member adds every array (but for optional ones), with the same dtype, order and global shape,
 * and its own pieces; together the pieces must cover the array. Equal pieces on several members are replicas: they must hold equal bytes, and are
 * written once. name: UTF-8, unique, not empty, without '\0'. */
CAIRN_API int cairn_add_array(cairn_session* session, const char* name, const cairn_array* array);

/* A stretch of an array's elements laid end to end in the array's order: the last dimension fastest (C), or the first (Fortran). */
typedef struct cairn_flat_range {
  int64_t offset; /* elements before it */
  int64_t count;  /* elements; those past the array's end are padding: neither saved nor restored */
  void* data;     /* the first element; the others follow without gaps */
} cairn_flat_range;

typedef struct cairn_flat {
  size_t struct_size;            /* sizeof(cairn_flat) */
  int dtype;                     /* CAIRN_F64, … */
  int order;                     /* CAIRN_ORDER_C or CAIRN_ORDER_FORTRAN */
  int ndim;                      /* 0 … CAIRN_MAX_DIMS; 0 = a scalar */
  int64_t shape[CAIRN_MAX_DIMS]; /* the global shape, elements */
  int range_count;               /* ranges of this member; 0 = it holds none, yet knows the array */
  const cairn_flat_range* ranges;
  int optional; /* as in cairn_array, and so the rest */
  int memory;
  int stable_until;
} cairn_flat;

/* The same as cairn_add_array for a member that holds flat ranges of the array (flat parameters, partitioned optimizer state). Other members,
 * and other runs, may hold boxes of it: what was saved as ranges is restored into boxes, and the reverse. */
CAIRN_API int cairn_add_flat(cairn_session* session, const char* name, const cairn_flat* flat);

/* Rows of one record type, of which every member has some and any may have any number (particles, blocks of an adaptive mesh). */
typedef struct cairn_table {
  size_t struct_size; /* sizeof(cairn_table) */
  int64_t row_bytes;  /* of a record: plain memory, without pointers */
  int64_t capacity;   /* rows that fit at data; a save takes that much room */
  /* How many of them count: read at each save, written by cairn_restore. Stays valid as data does. */
  int64_t* rows;
  void* data;
  /* NULL, or called in cairn_restore when a member gets more rows than fit. *capacity is their number, and may be raised; returns memory for
   * *capacity rows, which takes the place of data, or NULL: there is none. With NULL, the restore fails with CAIRN_E_MISMATCH then. */
  void* (*grow)(int64_t* capacity, void* user);
  /* NULL: all rows are split evenly over the members, in their order. Or called for each row: the member, below world_size, that gets it. */
  int (*owner)(const void* row, int world_size, void* user);
  void* user; /* for grow and owner */
} cairn_table;

/* Adds a table, before cairn_restore. Every member adds every table, with equal row_bytes. In a checkpoint it is an array `name` of CAIRN_U8
 * [rows that fit, row_bytes] and a blob `name`.rows that says which rows count; names and patterns of cairn_set_load mean both. A save in
 * which more rows count than fit is given up. A program whose rows must be with the member that holds their place in space, and that cannot tell so
 * from a row alone, takes them as they come and moves them as it does in each of its steps. */
CAIRN_API int cairn_add_table(cairn_session* session, const char* name, const cairn_table* table);

/* What becomes of a blob when the number of members changes between a save and the restore. With an equal number every member gets its own
 * bytes back. Recorded in the checkpoint. */
enum {
  CAIRN_BLOB_REFUSE = 0, /* the restore fails with CAIRN_E_MISMATCH */
  CAIRN_BLOB_RESEED = 1, /* not restored; the report counts it in items_reset: the program makes new ones */
  CAIRN_BLOB_DROP = 2,   /* not restored, on purpose; the report counts it in items_reset */
  CAIRN_BLOB_MERGE =
      3 /* never written back: cairn_saved_blob gives every member the bytes of all (at most 256 MiB), and it makes its own of them */
};

/* Adds `size` bytes of this member's own (a random generator's state, say), before cairn_restore. The size may differ between members but
 * not between a save and its restore. At most 64 KiB, and 32 MiB all blobs of a member together; use an array of CAIRN_U8 for more. */
CAIRN_API int cairn_add_blob(cairn_session* session, const char* name, void* data, size_t size, int policy);

/* The same for bytes whose number changes: at a save the first *size bytes of the `capacity` at data count, and after the restore *size
 * says how many there are. `size` must stay valid as long as `data`. */
CAIRN_API int cairn_add_sized_blob(cairn_session* session, const char* name, void* data, size_t capacity,
                                   size_t* size, int policy);

/* After cairn_restore: what member `member` (0 … report.world_size_saved - 1) of the life that saved had in a blob of CAIRN_BLOB_MERGE; NULL
 * and 0 where it had nothing, or nothing was restored. Valid until cairn_finalize. */
CAIRN_API int cairn_saved_blob(cairn_session* session, const char* name, int member, const void** data,
                               size_t* size);

/* Adds a file to which this member only ever appends (a log, a table of results), before cairn_restore: each save notes how long it is, and when the
 * run is resumed from that checkpoint cairn_restore cuts it back, so that no step stands in it twice. One member adds it, the one that writes it.
 *
 * What counts at a save is what the file system has by then: flush buffers before the boundary, or in the callback of cairn_on_copy. Open the file
 * after cairn_restore, to append (O_APPEND, "a") when report.restored, else as a new one. The file is known by its absolute path, symbolic links
 * followed at this call; its folder must be there, the file need not. A file that is shorter than it was at the save, or another one, is left as it is
 * and said on stderr: the restore does not fail for it. Nothing is cut when nothing is restored, in a run that begins from another run's
 * checkpoint until it has saved itself, and of a file that no member adds. CAIRN_E_INVALID: it is no regular file, or its folder is not there;
 * cairn_restore returns it when two members have added the same path. The program's standard output, which srun writes, cannot be added. */
CAIRN_API int cairn_add_output(cairn_session* session, const char* path);

/* Has `collect` called whenever this member's state is about to be copied, for programs whose buffers move, or whose small state is costly to
 * put together at every step. It may call cairn_update and cairn_update_item and write to the memory of arrays and blobs; what it does is
 * part of the stall. It is called on the thread that is in cairn_step, cairn_wait, cairn_quiet_end or cairn_finalize; between
 * cairn_quiet_begin and cairn_quiet_end, and in cairn_wait, also on a thread of Cairn's. NULL: nobody is called any more. */
CAIRN_API int cairn_on_copy(cairn_session* session, void (*collect)(void* user), void* user);

/* From inside `collect`: the state could not be put together. This save fails on all members, and stderr says `why`; at the next one `collect` is
 * called as ever. */
CAIRN_API int cairn_refuse_copy(cairn_session* session, const char* why);

/* Gives a new address to the piece-th piece (or flat range) of an array (or, with piece 0, to a blob): cheap; call it before each cairn_step where buffers are
 * swapped. NULL: the memory is gone. Until it has an address again saves fail, naming the item, and cairn_finalize makes none. */
CAIRN_API int cairn_update(cairn_session* session, const char* name, int piece, void* data);

/* The same by number: items are numbered from 0 in the order of this member's cairn_add_* calls. */
CAIRN_API int cairn_update_item(cairn_session* session, int item, int piece, void* data);

/* Differences between a checkpoint and the program that cairn_restore may allow; bits. Types and shapes are always equal. */
enum {
  CAIRN_MATCH_STRICT = 0,        /* none */
  CAIRN_MATCH_ALLOW_MISSING = 1, /* items that the checkpoint lacks: they keep what the program put there */
  CAIRN_MATCH_ALLOW_EXTRA = 2    /* saved items that the program has not added: they are passed over */
};

/* A saved item whose name matches `saved` goes into the program's item `registered`. In both, '*' stands for any characters: the n-th one of
 * `registered` for what the n-th one of `saved` stood for, each but the last as short as possible. "net.*.w" to "model.*.weight". */
typedef struct cairn_rename {
  const char* saved;
  const char* registered;
} cairn_rename;

typedef struct cairn_load_options {
  size_t struct_size; /* sizeof(cairn_load_options) */
  int match;          /* CAIRN_MATCH_*, where the user has given no --checkpoint-match */
  int rename_count;
  const cairn_rename* renames; /* the first that matches counts; what none matches keeps its name */
  /* Patterns of the (new) names to be loaded; nothing else is read, and all other items keep what the program put there. None: everything.
   * The user's choice (--checkpoint-from=…:only=) stands in the place of this one. */
  int only_count;
  const char* const* only;
} cairn_load_options;

/* How cairn_restore loads; before it. Every member gives the same; member 0's count. Whatever is loaded, saves hold everything. */
CAIRN_API int cairn_set_load(cairn_session* session, const cairn_load_options* options);

/* An array of a checkpoint. */
typedef struct cairn_saved_array {
  size_t struct_size; /* set by the caller: sizeof(cairn_saved_array) */
  const char* name;   /* valid until cairn_checkpoint_close, or as cairn_load_setup says */
  int dtype;          /* CAIRN_F64, … */
  int order;          /* CAIRN_ORDER_C or CAIRN_ORDER_FORTRAN */
  int ndim;
  int64_t shape[CAIRN_MAX_DIMS]; /* elements, dimensions as the program counted them */
} cairn_saved_array;

/* A box of an array, elements. */
typedef struct cairn_box {
  int64_t offset[CAIRN_MAX_DIMS];
  int64_t extent[CAIRN_MAX_DIMS];
} cairn_box;

/* An array that some member has added, with the pieces of this one: a flat range is several. Those without elements are left out. */
typedef struct cairn_registered_array {
  cairn_saved_array array;
  int piece_count;
  const cairn_piece* pieces;
} cairn_registered_array;

/* What a load planner plans with. All of it is Cairn's, and valid until cairn_restore returns or set_up is called again. It may grow at its end, as
 * struct_size says; what it has arrays of, and what plans have arrays of, is final in this ABI. */
typedef struct cairn_load_setup {
  size_t struct_size; /* of this library */
  int member;         /* this one */
  int world_size;     /* members now */
  int world_size_saved;
  int coordinator; /* 1: global_plan is called on this member */
  int64_t step;    /* as in cairn_report */
  int saved_count;
  const cairn_saved_array* saved; /* the checkpoint's arrays, alike on all members */
  int registered_count;
  const cairn_registered_array* registered; /* the program's arrays, in one order on all members */
  /* How the saved array at this position was cut: the number of its boxes, of which the first `capacity` are put into `boxes`. CAIRN_E_INVALID or
   * CAIRN_E_DAMAGE where there is no such thing. One thread at a time. */
  int (*boxes)(const struct cairn_load_setup* setup, int saved, int capacity, cairn_box* boxes);
  const void* self; /* Cairn's own */
} cairn_load_setup;

/* What is read, and where it goes. Dimensions as the program counts them; an offset has as many numbers as its array has dimensions. */
typedef struct cairn_read_item {
  int from; /* position of the saved array in cairn_load_setup.saved */
  int64_t from_offset[CAIRN_MAX_DIMS];
  int64_t extent[CAIRN_MAX_DIMS];
  int to; /* position of the program's array that it is for in cairn_load_setup.registered */
  int64_t to_offset[CAIRN_MAX_DIMS];
  /* 0: into the member's pieces of that array, which hold all of the box at to_offset. Element type and number of dimensions are equal; from an array
   * of one order into one of the other each element goes where it belongs. 1: the planner's resolve and commit take care of it. */
  int resolve;
} cairn_read_item;

/* What a member reads, in any order. Into one element of a piece nothing goes from two places: such a plan is refused. The same of the same
 * by several items is read once. */
typedef struct cairn_load_plan {
  int item_count;
  const cairn_read_item* items;
} cairn_load_plan;

/* Memory for a box, dense in the saved array's order where the strides (elements) are all 0. It overlaps no other that is loaded into, and is
 * the planner's not to touch until commit: it is written by several threads, and what other members need is handed on from it. */
typedef struct cairn_load_memory {
  void* data; /* of the box's first element */
  int64_t stride[CAIRN_MAX_DIMS];
} cairn_load_memory;

/* Calls of a load planner, in the order in which they are made, all on the thread that is in cairn_restore, anew for each checkpoint that is tried.
 * Any may be NULL but set_up. Each returns CAIRN_OK, or a CAIRN_E_* code that stops all members with what `why` says: CAIRN_E_NO_MEMORY with the
 * same code, any other with CAIRN_E_MISMATCH. None throws. None waits for another member (a barrier, MPI): members are not all in the same call
 * at the same time, and global_plan has what all of them plan. None calls cairn_add_*, cairn_set_load, cairn_set_load_planner or cairn_restore, which
 * return CAIRN_E_STATE there. None is made where there is nothing to restore. */
typedef struct cairn_load_planner {
  size_t struct_size; /* sizeof(cairn_load_planner) */
  int (*set_up)(const cairn_load_setup* setup, void* user);
  /* On every member. *plan is the default one: what a restore without a planner would load. A planner changes it by pointing to items of its own, which
   * it keeps until the next call. */
  int (*local_plan)(cairn_load_plan* plan, void* user);
  /* On member 0: the plans of all members, by member. */
  int (*global_plan)(cairn_load_plan* plans, int members, void* user);
  /* On every member: its plan as it will be carried out. Items that reach over several pieces have been cut, those without elements are gone. What is
   * read cannot be changed any more: all members know it by now. It and resolve are called once more, with the same, when the members could not hand
   * data to each other; what was resolved before is then forgotten. */
  int (*finish_plan)(const cairn_load_plan* plan, void* user);
  /* For each item with `resolve`: where its bytes go, for conversions. Of all items at once, before anything is read. */
  int (*resolve)(const cairn_read_item* item, cairn_load_memory* memory, void* user);
  /* The same items, once, when all that any member reads is there and verified: now the program's own memory can be written. */
  int (*commit)(const cairn_read_item* item, const cairn_load_memory* memory, void* user);
  const char* (*why)(void* user); /* of the call that failed last; valid until the next one */
  void* user;
} cairn_load_planner;

/* Has the program plan what cairn_restore loads into its arrays: parts of saved ones, several in one, other types and shapes. Before it; every
 * member sets one, or none does. Blobs and tables are loaded without a plan. cairn_set_load holds: an array into which nothing is
 * brought is missing, a saved one of which nothing is read is extra; its renames and `only` make the default plan. One item, of whatever size,
 * makes an array neither: whether all of it is filled is not checked. What a plan leaves out of an array keeps what the program put there.
 * The structure is copied; what `user` points to lives until cairn_restore returns. */
CAIRN_API int cairn_set_load_planner(cairn_session* session, const cairn_load_planner* planner);

typedef struct cairn_report {
  size_t struct_size;   /* set by the caller: sizeof(cairn_report) */
  int restored;         /* 1 when a checkpoint was loaded */
  int64_t step;         /* the count of cairn_step calls at the save; 0 when nothing was loaded */
  int64_t label;        /* the label given to cairn_step at the save; 0 when nothing was loaded */
  int world_size_saved; /* members of the life that saved; 0 of a state that Cairn has not made */
  int items_loaded;
  int items_reset;      /* blobs that their policy left alone */
  int finished;         /* 1 when the run was finished: there is nothing left to do */
  int match;            /* CAIRN_MATCH_*: what was allowed */
  int difference_count; /* for cairn_restored_difference */
  const char*
      run_id; /* of the run, the same in all its lives; valid until cairn_finalize. NULL where there is none */
} cairn_report;

/* Loads the newest valid checkpoint of the run into the registered memory, or nothing when there is none; collective. Required, once, before
 * the first cairn_step. A damaged checkpoint is named, marked and passed over for the next older one. A run that has saved nothing yet may begin
 * from elsewhere (--checkpoint-from): restored is 1 then too, yet step and label are 0 where a part was taken, or Cairn has not made it. On any
 * error no rank may run on: the memory may be partly overwritten. report may be NULL. */
CAIRN_API int cairn_restore(cairn_session* session, cairn_report* report);

/* How an item was not simply loaded from the saved one of its name. */
enum {
  CAIRN_ITEM_RENAMED = 0, /* loaded, from another name */
  CAIRN_ITEM_MISSING,     /* not in the checkpoint: as the program made it */
  CAIRN_ITEM_EXTRA,       /* in the checkpoint alone */
  CAIRN_ITEM_RESET,       /* a blob that its policy left alone */
  CAIRN_ITEM_LEFT         /* not chosen (cairn_load_options.only): as the program made it */
};

typedef struct cairn_difference {
  size_t struct_size;     /* set by the caller: sizeof(cairn_difference) */
  int kind;               /* CAIRN_ITEM_* */
  const char* name;       /* the program's, "" for CAIRN_ITEM_EXTRA; both valid until cairn_finalize */
  const char* saved_name; /* the checkpoint's, "" where there is none */
} cairn_difference;

/* After cairn_restore: its index-th difference, 0 … report.difference_count - 1. Every item that is not named was loaded, if anything was. */
CAIRN_API int cairn_restored_difference(cairn_session* session, int index, cairn_difference* difference);

/* A boundary. label: the program's own step number, for people; equal on all members. Costs one atomic store and load unless a save is
 * agreed on for this boundary; then returns after this member's state was copied, but for what may wait (CAIRN_STABLE_FENCE). Returns CAIRN_OK, also
 * when a save failed. */
CAIRN_API int cairn_step(cairn_session* session, int64_t label);

/* Waits until what cairn_step has left to be copied is copied: call it before the first change of a CAIRN_STABLE_FENCE array after a boundary.
 * Returns at once when nothing is left. CAIRN_OK, also when a save failed. */
CAIRN_API int cairn_fence(cairn_session* session);

/* Says on which stream (a CUstream or cudaStream_t) the program works with its memory of a CUDA device, by the device's number: copies of it begin
 * after what was queued there before the boundary, and a restore after what was queued before it. It need not have been waited for. NULL, as in the
 * beginning: the legacy default stream. Call it before cairn_restore, and whenever the stream changes. */
CAIRN_API int cairn_set_stream(cairn_session* session, int device, void* stream);

/* Between these two calls the state does not change (validation, waiting for data), and a save may be made at any moment. */
CAIRN_API int cairn_quiet_begin(cairn_session* session);
CAIRN_API int cairn_quiet_end(cairn_session* session);

/* Asks for a save at one of the next boundaries; any member may, one is enough. tag: NULL, or a name that keeps the checkpoint from being
 * pruned. Returns at once. */
CAIRN_API int cairn_save(cairn_session* session, const char* tag);

/* Says what the program has measured (a validation loss), for every checkpoint from the next boundary on, until it is given again:
 * `--checkpoint-keep=best=3:val_loss:min` keeps the checkpoints next to the best values, `cairn ls` shows them. One member is enough; where
 * several give a metric of the same name, the latest counts, else the lowest rank's. name: 1 to 100 printable ASCII characters without space, comma
 * and colon. value: infinite or no number is allowed, and never the best. To save the state that was measured, call cairn_save right after. */
CAIRN_API int cairn_metric(cairn_session* session, const char* name, double value);

/* Waits until every save that was asked for before has ended, at most timeout_ms (-1 = no bound); CAIRN_E_TIMEOUT when the bound passed.
 * Collective: call it on all members at the same boundary (after cairn_step, with the state unchanged since); a save that is still to be
 * made is then made there. */
CAIRN_API int cairn_wait(cairn_session* session, int timeout_ms);

/* Ends the session; collective. Saves once if the run moved on since its last save, waits until that is durable, records that the run is
 * finished and frees the session; *session becomes NULL. Where --checkpoint-on leaves out `end`, or memory of a member is gone (cairn_update),
 * it does not save, and the run is finished only if its last state happens to be saved. An error means that the last state is not durable, as
 * stderr says; what the program computed stands. Where the job is ending (preempted, cancelled) and the program, by a SIGTERM handler of its own,
 * comes here all the same, there is no save and no error: the next life, if there is one, makes the steps after the newest checkpoint again. A
 * process that exits without this call leaves a run that can be resumed. */
CAIRN_API int cairn_finalize(cairn_session** session);

typedef struct cairn_checkpoint cairn_checkpoint;

/* Opens a committed checkpoint for reading, in any process: without srun, a session or other ranks. It is not pruned while it is read from.
 * One thread at a time may be inside a function of a checkpoint. target: DIR (the newest that a restart would take), DIR@STEP or DIR@TAG; or a
 * state of others: a folder of torch.distributed.checkpoint, a safetensors file or a folder of such, whose step, label and world_size are 0.
 * Every block that is read of Cairn's own is compared with its checksum. CAIRN_E_IO: there is none, and the message names what there is.
 * CAIRN_E_DAMAGE: its metadata have a fault. */
CAIRN_API int cairn_checkpoint_open(const char* target, cairn_checkpoint** checkpoint);

typedef struct cairn_checkpoint_info {
  size_t struct_size; /* set by the caller: sizeof(cairn_checkpoint_info) */
  const char* path;   /* of its folder, absolute; valid until cairn_checkpoint_close */
  int64_t step;       /* as in cairn_report */
  int64_t label;
  int world_size; /* members of the life that saved */
  int array_count;
} cairn_checkpoint_info;

/* Fills *info, which stays the caller's. CAIRN_E_INVALID: checkpoint or info is NULL, or struct_size is none. */
CAIRN_API int cairn_checkpoint_describe(const cairn_checkpoint* checkpoint, cairn_checkpoint_info* info);

/* The index-th array, 0 … info.array_count - 1. */
CAIRN_API int cairn_checkpoint_array(const cairn_checkpoint* checkpoint, int index, cairn_saved_array* array);

/* Reads a box of the index-th array into `size` bytes at data, dense in the array's order. offset and extent: elements a dimension, or both NULL
 * for all of it; size must be just that of the box. CAIRN_E_DAMAGE when what is read is not what was written. */
CAIRN_API int cairn_checkpoint_read(cairn_checkpoint* checkpoint, int index, const int64_t* offset,
                                    const int64_t* extent, void* data, size_t size);

/* What member `member` (0 … info.world_size - 1) had in a blob; NULL and 0 where it had nothing, or there is no blob of this name. Valid until
 * cairn_checkpoint_close. */
CAIRN_API int cairn_checkpoint_blob(const cairn_checkpoint* checkpoint, const char* name, int member,
                                    const void** data, size_t* size);

/* *checkpoint becomes NULL. */
CAIRN_API int cairn_checkpoint_close(cairn_checkpoint** checkpoint);

/* A run's directory, in the hands of a program that decides by itself what is saved when, and has its own ways to gather and to wait (a
 * framework's checkpoint interface). There is no session: one process, the coordinator, owns the directory; any processes write files; the
 * coordinator makes a checkpoint of them, which is one as any other.
 *
 *     cairn_writer_open("/scratch/me/run7", &w);             // the coordinator
 *     cairn_writer_begin(w, 1200, &folder);                  // the coordinator, which tells all others the folder
 *     cairn_write_boxes(folder, rank + 1, …, &record, &n);   // all, which give the coordinator their records
 *     cairn_writer_commit(w, &commit);                       // the coordinator: from now on the checkpoint exists
 *
 * One thread at a time may be inside a function of a writer; cairn_write_boxes is called on any threads. */
typedef struct cairn_writer cairn_writer;

/* Owns the run in `directory`, which is made if it is not there, until cairn_writer_close. CAIRN_E_BUSY names another owner that lives. One that
 * has died without closing is waited for, at most 30 s. */
CAIRN_API int cairn_writer_open(const char* directory, cairn_writer** writer);

/* Begins the checkpoint of a step; what was begun before and not committed is given up. step: -1 = one past the newest. *folder: where the files
 * go, absolute; valid until the next call with this writer. The first checkpoint of an owner, and one whose step is not past the owner's last, goes
 * on from the newest of an earlier step: what was saved past that is kept as another branch. CAIRN_E_BUSY: another owner has taken over. */
CAIRN_API int cairn_writer_begin(cairn_writer* writer, int64_t step, const char** folder);

/* A box of an array, row-major: the array is known by its name, and has the same dtype and shape wherever it is named. */
typedef struct cairn_array_box {
  const char* name;              /* UTF-8, not empty, without '\0' */
  int dtype;                     /* CAIRN_F64, … */
  int ndim;                      /* 0 … CAIRN_MAX_DIMS; 0 = a scalar */
  int64_t shape[CAIRN_MAX_DIMS]; /* of the whole array, elements */
  cairn_box box;                 /* any extent 0: nothing is written, but the array is known */
} cairn_array_box;

/* Writes boxes into a file of the checkpoint that was begun, durably; in any process that sees the folder.
 *   number  of the file, from 1; each file of a checkpoint has its own
 *   boxes   at most one of each array
 *   data    called on this thread once for each box that is not empty, by its position in `boxes`, in an order of the file's: returns the box's
 *           bytes, dense and row-major, which stay valid until the next call or the end; NULL gives the file up, with CAIRN_E_INVALID
 *   record  what cairn_writer_commit wants to know of the file: bytes of this machine's making, for any other. Valid until this thread's
 *           next cairn_write_boxes */
CAIRN_API int cairn_write_boxes(const char* folder, int number, const cairn_array_box* boxes, int box_count,
                                const void* (*data)(int box, void* user), void* user, const void** record,
                                size_t* record_size);

/* Bytes; name is for blobs alone. */
typedef struct cairn_bytes {
  const char* name;
  const void* data;
  size_t size;
} cairn_bytes;

typedef struct cairn_commit {
  size_t struct_size; /* sizeof(cairn_commit) */
  const char* folder; /* as cairn_writer_begin gave it; another one begun since: CAIRN_E_INVALID */
  int world_size;     /* how many ranks have saved; for people */
  int record_count;
  const cairn_bytes* records; /* of all files */
  int blob_count;
  const cairn_bytes* blobs; /* small things beside the arrays; read by cairn_checkpoint_blob as member 0's */
  const char* tag;          /* NULL, or a name that keeps the checkpoint from being pruned */
  const char* keep; /* NULL: nothing is pruned. Else what is left of older ones, as --checkpoint-keep */
} cairn_commit;

/* Makes the checkpoint that was begun, durably. CAIRN_E_MISMATCH: two ranks differ in what an array is, or an array has a hole. CAIRN_E_BUSY:
 * another owner has taken the directory over. After an error the checkpoint is given up. */
CAIRN_API int cairn_writer_commit(cairn_writer* writer, const cairn_commit* commit);

/* Gives the directory back; *writer becomes NULL. What was begun and not committed is removed. In a forked child it only forgets the writer. */
CAIRN_API int cairn_writer_close(cairn_writer** writer);

#ifdef __cplusplus
}
#endif

#endif /* CAIRN_CAIRN_H_ */

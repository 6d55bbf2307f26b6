/* The functions of cairn.h for a program that finds them with dlsym(RTLD_DEFAULT, …) and links no libcairn.so.
 *
 * A call goes to the libcairn.so that the program has loaded itself (RTLD_NEXT), else to $SLURM_CAIRN_LIB, which is loaded at first use,
 * out of sight of the program (RTLD_LOCAL). Where neither can be had (a container without it) the calls are the no-ops that cairn.h
 * promises, cairn_open says so once a node, and fails where the user required protection.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/preload/host.h"
#include "runtime/include/cairn/cairn.h"

static char why_inert[512]; /* "" while nothing is known to be wrong */

static void* Find(const char* name) {
  void* function = dlsym(RTLD_NEXT, name);
  const char* path = getenv("SLURM_CAIRN_LIB");
  if (function == NULL && path != NULL) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) function = dlsym(library, name);
    if (function == NULL) snprintf(why_inert, sizeof why_inert, "%s", dlerror());
  }
  return function;
}

/* A failure is remembered too (as why_inert): a program that steps a million times looks once, and a session that began inert stays so. */
static void* Resolve(_Atomic(void*)* target, const char* name) {
  void* function = atomic_load(target);
  if (function == NULL) {
    function = Find(name);
    if (function == NULL) function = why_inert;
    atomic_store(target, function);
  }
  return function != why_inert ? function : NULL;
}

static int InertOpen(cairn_session** session) {
  static char inert_session;
  static atomic_flag said = ATOMIC_FLAG_INIT;
  const char* require = getenv("SLURM_CAIRN_REQUIRE");
  const int required = require != NULL && strcmp(require, "no") != 0 && strcmp(require, "off") != 0 &&
                       strcmp(require, "0") != 0;
  *session = required ? NULL : (cairn_session*)&inert_session;
  if (getenv("SLURM_CAIRN_TOKEN") == NULL) return CAIRN_OK;
  const char* local_rank = getenv("SLURM_LOCALID"); /* one line a node */
  if ((local_rank == NULL || strcmp(local_rank, "0") == 0) && !atomic_flag_test_and_set(&said)) {
    fprintf(stderr,
            "cairn: NOT PROTECTED: cannot load libcairn.so (%s); make it readable where this program runs, "
            "for example by mounting it into the container\n",
            why_inert[0] != '\0' ? why_inert : "SLURM_CAIRN_LIB is not set");
  }
  return required ? CAIRN_E_IO : CAIRN_OK;
}

static int InertSavedBlob(const void** data, size_t* size) {
  if (data != NULL) *data = NULL;
  if (size != NULL) *size = 0;
  return CAIRN_OK;
}

static int InertRestore(cairn_report* report) {
  if (report != NULL && report->struct_size > sizeof report->struct_size) {
    memset((char*)report + sizeof report->struct_size, 0, report->struct_size - sizeof report->struct_size);
  }
  return CAIRN_OK;
}

static int InertFinalize(cairn_session** session) {
  *session = NULL;
  return CAIRN_OK;
}

#define CAIRN_FN(result, name, parameters, arguments, inert)      \
  __attribute__((visibility("default"))) result name parameters { \
    static _Atomic(void*) target;                                 \
    result(*function) parameters;                                 \
    *(void**)&function = Resolve(&target, #name);                 \
    return function != NULL ? function arguments : inert;         \
  }
#define CAIRN_OWN(name)
#include "hooks/preload/abi.def"

/* The shim's start: reads the environment, and outside the token does nothing more. Makes no thread and opens no file. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "hooks/preload/shield.h"
#include "hooks/preload/shim.h"
#include "hooks/preload/signals.h"

static int under_token; /* constant after the constructor */

__attribute__((constructor)) static void Start(void) {
  const char* token = getenv("SLURM_CAIRN_TOKEN");
  if (token == NULL || token[0] == '\0') return;
  under_token = 1;
  cairn_shield_configure(token, getenv("SLURM_CAIRN_KEY"), getenv("SLURM_CAIRN_NODE"));
  const char* stepd = getenv("SLURM_CAIRN_STEPD");
  cairn_signals_start(stepd != NULL ? atoi(stepd) : -1);
}

static int BecomeMember(int event_fd, int extra_signal) {
  if (cairn_signals_become_member(event_fd, extra_signal) != 0) return -1;
  return cairn_shield_take() == 0 ? 0 : 1;
}

static void ReleaseShield(void) {
  if (cairn_signals_is_member()) cairn_shield_drop();
}

static int Forward(int signo) {
  if (!cairn_signals_is_member()) {
    errno = EPERM;
    return -1;
  }
  const int sent_up = cairn_shield_forward_up(signo);
  cairn_shield_drop();
  return sent_up + cairn_shield_forward(signo);
}

static void Leave(void) {
  ReleaseShield();
  cairn_signals_leave();
}

__attribute__((visibility("default"))) const cairn_shim_v1* cairn_shim_v1_get(void) {
  static const cairn_shim_v1 table = {
      1,       BecomeMember,          cairn_signals_take,        ReleaseShield,
      Forward, cairn_signals_deliver, cairn_signals_has_handler, Leave};
  return under_token ? &table : NULL;
}

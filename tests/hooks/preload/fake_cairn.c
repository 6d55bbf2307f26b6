/* Stands for libcairn.so: cairn_open gives a session that is told from the shim's inert one, cairn_step the label back. */
#include "runtime/include/cairn/cairn.h"

int cairn_open(const cairn_open_options* options, cairn_session** session) {
  static int it;
  (void)options;
  *session = (cairn_session*)&it;
  return CAIRN_OK;
}

int cairn_active(const cairn_session* session) { return session != 0; }

int cairn_step(cairn_session* session, int64_t label) { return session != 0 ? (int)label : -1; }

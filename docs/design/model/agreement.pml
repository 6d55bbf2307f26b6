/* The agreement of runtime/agreement, for spin: N members, a leader, and one crash of anything at any moment. docs/design/agreement.md tells
 * how to read it, tests/model runs it.
 *
 * What is checked, in every interleaving:
 *   - members under one id take their snapshots at one boundary; a running member stands at that very boundary, from the begin of the copy
 *     to its end;
 *   - a commit has the snapshot and the record of every member, under its id;
 *   - no wait without end: when nothing can move any more, all processes have ended. (Every loop is bounded, so every run ends.)
 *
 * What is left out: quiet stretches, labels, the attempt's directory, the joining of requests. Time is left out too: whatever has a
 * deadline may run into it at any moment. A late rank is one that does not come to move for long.
 *
 *   -DN=3 -DTRIES=1   the race of Abort and Go, crashes, late ranks
 *   -DN=2 -DTRIES=2   the same, with messages of an earlier try under way
 *   -DTHREADS         cairn_step and the arming thread in their single memory accesses (without it each is one)
 *   -DBROKEN          a member that has left the boundary honours a late Go: the check must fail
 *   -DUNCHECKED       a member that is armed does not look whether it has passed: the check must fail
 */
#ifndef N
#define N 3
#endif
#ifndef TRIES
#define TRIES 1 /* ids that the leader may use */
#endif
#ifndef LAST
#define LAST 2 /* steps that the application makes */
#endif
#define NEVER 99

mtype = { poll, arm, go, drop, drain, committed, closed }      /* to a member */
mtype = { count, ack, nack, abort, staged, record, gone }      /* to the leader */
mtype = { idle, arming, armed, waiting, cleared, copying, discarding, complete, recorded } /* states of a member */

chan down[N] = [5] of { mtype, byte, byte }; /* message, id, T */
chan up[N] = [6] of { mtype, byte, byte };   /* message, id, count */

bool alive[N] = true;
bool leader_alive = true;
bool final[N];
byte ended; /* members that are final or dead */

/* What really happened, for the assertions alone. */
byte boundary_of[TRIES + 1];         /* 0 = nobody has taken a snapshot under this id */
byte copied[N], durable[N];          /* latest id whose snapshot was completed, whose files were written */

inline begin_copy() {
  assert(boundary_of[id] == 0 || boundary_of[id] == T);
  assert(final[i] || steps == T);
  assert(!final[i] || steps <= T);
  boundary_of[id] = T;
  state = copying
}

inline forget() { state = idle; at = NEVER; id = 0; T = 0 }

/* Drop, or the loss of the leader. */
inline undo() {
  if
  :: state == copying -> state = discarding
  :: state == discarding
  :: else -> forget()
  fi
}

inline finish_arming() {
#ifdef UNCHECKED
  if
#else
  if
  :: steps > T || (steps == T && !final[i]) -> up[i]!nack(id, steps); forget()
#endif
  :: else ->
       up[i]!ack(id, 0);
       if
       :: final[i] -> at = NEVER; state = waiting
       :: else -> state = armed
       fi
  fi
}

/* cairn_step has seen its count in `armed` and holds the lock. */
inline come_to_boundary() {
  if
  :: state == armed && steps == T -> at = NEVER; state = waiting
  :: state == cleared && steps == T -> at = NEVER; begin_copy()
  :: else /* refused a moment ago */
  fi
}

/* A member with its two threads; what is one alternative here happens in one piece. */
proctype Member(byte i) {
  byte steps, at = NEVER; /* the two atomics */
  byte id, T, late;
  mtype state = idle, m;
  byte n, v;
  bool looking, over;     /* the application is between its store and its load */

  do
  /* The application. */
  :: atomic { alive[i] && !final[i] && !looking && steps < LAST && state != waiting && state != copying && state != discarding ->
       steps++;
#ifdef THREADS
       looking = true }
  :: atomic { alive[i] && looking && (at != steps || state != arming) -> /* arming: the other thread has the lock */
       looking = false;
#endif
       if
       :: at == steps -> come_to_boundary()
       :: else
       fi }
  :: atomic { alive[i] && state == waiting && !final[i] -> /* the bound has passed */
       up[i]!abort(id, 0);
#ifdef BROKEN
       state = armed }
#else
       forget() }
#endif
  :: atomic { alive[i] && state == copying ->
       assert(final[i] || steps == T);
       copied[i] = id; state = complete; up[i]!staged(id, T) }
  :: atomic { alive[i] && state == discarding ->
       forget();
       if
       :: late > 0 -> up[i]!count(late, steps); late = 0
       :: else
       fi }
  :: atomic { alive[i] && !final[i] && !looking && steps == LAST && state != arming && state != waiting && state != copying &&
              state != discarding -> /* cairn_finalize */
       final[i] = true; ended++;
       if
       :: state == armed -> at = NEVER; state = waiting
       :: state == cleared -> at = NEVER; begin_copy()
       :: else
       fi }

  /* The loop's thread. */
#ifdef THREADS
  :: atomic { alive[i] && state == arming -> finish_arming() }
#endif
  :: atomic { alive[i] && state != arming && nempty(down[i]) ->
       down[i]?m, n, v;
       if
       :: m == poll && state == discarding -> late = n
       :: m == poll && state != discarding -> up[i]!count(n, steps)
       :: m == arm && state == idle ->
            id = n; T = v; at = v; state = arming;
#ifndef THREADS
            finish_arming()
#endif
       :: m == go && n == id && state == armed ->
#ifdef BROKEN
            if
            :: steps >= T -> begin_copy()
            :: else -> state = cleared
            fi
#else
            state = cleared
#endif
       :: m == go && n == id && state == waiting -> begin_copy()
       :: m == drain && n == id && state == complete -> durable[i] = n; state = recorded; up[i]!record(n, 0)
       :: m == committed && n == id -> forget()
       :: m == drop ->
            if
            :: n == late -> late = 0
            :: else
            fi;
            if
            :: n == id -> undo()
            :: else
            fi
       :: m == closed -> over = true
       :: else /* late: that id is forgotten */
       fi;
       m = 0; n = 0; v = 0 }
  :: atomic { alive[i] && state != arming && !over && !leader_alive && empty(down[i]) -> undo(); late = 0; over = true }

  /* cairn_finalize returns; or the process is dead. */
  :: atomic { alive[i] && over && final[i] && state == idle -> break }
  :: atomic { !alive[i] -> steps = 0; forget(); late = 0; looking = false; over = false; break }
  od
}

inline broadcast(what, x, y) {
  k = 0;
  do
  :: k < N ->
       if
       :: alive[k] -> down[k]!what(x, y)
       :: else
       fi;
       k++
  :: else -> break
  od;
  k = 0
}

inline end_try() { broadcast(drop, present, 0); phase = idle; answered = 0; largest = 0; boundary = 0 }
inline next_phase(what) { answered = 0; phase = what }

/* phase: idle = between two tries, else the message that is waited for, or committed. */
inline handle(from) {
  if
  :: m == gone ->
       some_gone = true;
       if
       :: phase == idle || phase == committed || (phase == record && (answered & (1 << from)))
       :: else -> end_try()
       fi
  :: m != gone && n == present && m == phase && !(answered & (1 << from)) ->
       answered = answered | (1 << from);
       if
       :: m == count && v > largest -> largest = v
       :: m == staged -> assert(v == boundary)
       :: else
       fi;
       if
       :: answered != (1 << N) - 1
       :: answered == (1 << N) - 1 && m == count ->
            boundary = largest + 1; largest = 0; next_phase(ack); broadcast(arm, present, boundary)
       :: answered == (1 << N) - 1 && m == ack -> next_phase(staged); broadcast(go, present, 0)
       :: answered == (1 << N) - 1 && m == staged -> next_phase(record); broadcast(drain, present, 0)
       :: answered == (1 << N) - 1 && m == record -> next_phase(committed)
       fi
  :: n == present && ((m == nack && phase == ack) || (m == abort && (phase == ack || phase == staged))) -> end_try()
  :: else /* of a try that is over */
  fi;
  m = 0; n = 0; v = 0
}

proctype Leader() {
  mtype m, phase = idle;
  byte n, v, k, present, largest, boundary, answered;
  bool some_gone;
  do
  :: atomic { leader_alive && phase == idle && present < TRIES && !some_gone ->
       present++; phase = count; broadcast(poll, present, 0) }
  :: atomic { leader_alive && nempty(up[0]) -> up[0]?m, n, v; handle(0) }
#if N > 1
  :: atomic { leader_alive && nempty(up[1]) -> up[1]?m, n, v; handle(1) }
#endif
#if N > 2
  :: atomic { leader_alive && nempty(up[2]) -> up[2]?m, n, v; handle(2) }
#endif
  :: atomic { leader_alive && phase != idle && phase != committed -> end_try() } /* the deadline */
  :: atomic { leader_alive && phase == committed ->
       do
       :: k < N -> assert(copied[k] == present && durable[k] == present); k++
       :: else -> break
       od;
       broadcast(committed, present, 0); phase = idle; boundary = 0 }
  /* Close: a member is gone, or all are final and no try is left. */
  :: atomic { leader_alive && phase == idle && some_gone -> broadcast(closed, 0, 0); break }
  :: atomic { leader_alive && phase == idle && present == TRIES && ended == N -> broadcast(closed, 0, 0); break }
  :: atomic { !leader_alive -> break }
  od
}

/* Kills one member, or the leader, at any moment, or nobody. Members are alike, so it is always member 0. */
active proctype Crash() {
  if
  :: atomic { alive[0] = false; up[0]!gone(0, 0); ended = ended + 1 - final[0] }
  :: leader_alive = false
  :: true
  fi
}

init {
  byte i;
  atomic {
    do
    :: i < N -> run Member(i); i++
    :: else -> break
    od;
    run Leader()
  }
}

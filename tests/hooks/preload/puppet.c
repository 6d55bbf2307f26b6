/* A program on strings: reads a command a line on stdin, does it, and answers with one line. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hooks/preload/shim.h"
#include "runtime/include/cairn/cairn.h"

static volatile sig_atomic_t handled, handled_with_info, interrupted, sender, usr2_blocked;
static int event_fd = -1;
static int pipe_of_children[2];

static void Plain(int signo) {
  (void)signo;
  sigset_t mask;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  usr2_blocked = sigismember(&mask, SIGUSR2);
  ++handled;
}

static void Informed(int signo, siginfo_t* info, void* context) {
  (void)signo;
  (void)context;
  ++handled_with_info;
  sender = info->si_pid;
}

/* As the runtime finds it. */
static const cairn_shim_v1* Shim(void) {
  const cairn_shim_v1* (*get)(void);
  *(void**)&get = dlsym(RTLD_DEFAULT, "cairn_shim_v1_get");
  const char* path = getenv("PUPPET_SHIM");
  if (get == NULL && path != NULL) *(void**)&get = dlsym(dlopen(path, RTLD_NOW), "cairn_shim_v1_get");
  return get != NULL ? get() : NULL;
}

static void Install(int signo, const char* how) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = Plain;
  action.sa_flags = SA_RESTART;
  if (strcmp(how, "masked") == 0) sigaddset(&action.sa_mask, SIGUSR2);
  if (strcmp(how, "once") == 0) action.sa_flags |= (int)SA_RESETHAND;
  if (strcmp(how, "interrupting") == 0) action.sa_flags = 0;
  if (strcmp(how, "info") == 0) {
    action.sa_sigaction = Informed;
    action.sa_flags |= SA_SIGINFO;
  }
  if (strcmp(how, "signal") == 0) {
    signal(signo, Plain);
  } else if (strcmp(how, "sysv") == 0) {
    sysv_signal(signo, Plain);
  } else if (strcmp(how, "sigset") == 0) {
    sigset(signo, Plain);
  } else if (strcmp(how, "ignore") == 0) {
    signal(signo, SIG_IGN);
  } else if (strcmp(how, "default") == 0) {
    signal(signo, SIG_DFL);
  } else if (strcmp(how, "siginterrupt") == 0) {
    siginterrupt(signo, 1);
  } else {
    sigaction(signo, &action, NULL);
  }
}

static void PrintAction(int signo) {
  struct sigaction action;
  sigaction(signo, NULL, &action);
  const char* name = "a stranger's";
  if (action.sa_handler == SIG_DFL) name = "default";
  if (action.sa_handler == SIG_IGN) name = "ignore";
  if (action.sa_handler == Plain) name = "plain";
  if (action.sa_sigaction == Informed) name = "info";
  printf("%s flags %x usr2 %d self %d\n", name, (unsigned)action.sa_flags,
         sigismember(&action.sa_mask, SIGUSR2), sigismember(&action.sa_mask, signo));
}

static void Mask(int how, int signo) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signo);
  sigprocmask(how, &set, NULL);
}

static void WaitForParent(void) {
  char byte;
  close(pipe_of_children[1]);
  while (read(pipe_of_children[0], &byte, 1) < 0 && errno == EINTR) {
  }
  _exit(0);
}

static void Fork(void) {
  const pid_t pid = fork();
  if (pid == 0) WaitForParent();
  printf("%d\n", pid);
}

/* A child of vfork that does what shells and Python do before exec. Before that it may send itself a signal. */
static void Vfork(int signo) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  const pid_t pid = vfork();
  if (pid == 0) {
    if (signo != 0) {
      Mask(SIG_UNBLOCK, signo);
      kill(getpid(), signo);
    }
    action.sa_handler = SIG_IGN;
    _exit(sigaction(SIGTERM, &action, NULL) == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  printf("%d\n", status);
}

static void* SetForEver(void* unused) {
  for (;;) {
    Install(SIGTERM, "masked");
    Install(SIGTERM, "info");
  }
  return unused;
}

static void Threads(void) {
  pthread_t thread;
  for (int i = 0; i < 2; ++i) pthread_create(&thread, NULL, SetForEver, NULL);
  puts("ok");
}

static void Session(void) {
  int (*open_session)(const cairn_open_options*, cairn_session**);
  int (*active)(const cairn_session*);
  int (*step)(cairn_session*, int64_t);
  int (*restore)(cairn_session*, cairn_report*);
  int (*finalize)(cairn_session**);
  *(void**)&open_session = dlsym(RTLD_DEFAULT, "cairn_open");
  *(void**)&active = dlsym(RTLD_DEFAULT, "cairn_active");
  *(void**)&step = dlsym(RTLD_DEFAULT, "cairn_step");
  *(void**)&restore = dlsym(RTLD_DEFAULT, "cairn_restore");
  *(void**)&finalize = dlsym(RTLD_DEFAULT, "cairn_finalize");
  cairn_session* session = NULL;
  const int opened = open_session(NULL, &session);
  printf("open %d session %d", opened, session != NULL);
  if (opened == CAIRN_OK) {
    cairn_report report;
    memset(&report, 0xff, sizeof report);
    report.struct_size = sizeof report;
    printf(" active %d", active(session));
    printf(" restore %d", restore(session, &report));
    printf(" restored %d at %ld", report.restored, (long)report.step);
    printf(" step %d", step(session, 41));
    printf(" finalize %d", finalize(&session));
    printf(" session %d", session != NULL);
  }
  printf("\n");
}

static void Do(const char* command) {
  char word[32] = "", how[32] = "";
  int number = 0;
  sscanf(command, "%31s %d %31s", word, &number, how);
  if (strcmp(word, "ping") == 0) {
    puts("pong");
  } else if (strcmp(word, "active") == 0) {
    puts(Shim() != NULL ? "yes" : "no");
  } else if (strcmp(word, "install") == 0) {
    Install(number, how);
    puts("ok");
  } else if (strcmp(word, "action") == 0) {
    PrintAction(number);
  } else if (strcmp(word, "handled") == 0) {
    printf("%d\n", (int)handled);
  } else if (strcmp(word, "masked") == 0) {
    printf("%d\n", (int)usr2_blocked);
  } else if (strcmp(word, "informed") == 0) {
    printf("%d by %d\n", (int)handled_with_info, (int)sender);
  } else if (strcmp(word, "interrupted") == 0) {
    printf("%d\n", (int)interrupted);
  } else if (strcmp(word, "block") == 0) {
    Mask(SIG_BLOCK, number);
    puts("ok");
  } else if (strcmp(word, "unblock") == 0) {
    errno = 4711;
    Mask(SIG_UNBLOCK, number);
    printf("errno %d\n", errno);
  } else if (strcmp(word, "raise") == 0) {
    raise(number);
    puts("ok");
  } else if (strcmp(word, "fork") == 0) {
    Fork();
  } else if (strcmp(word, "vfork") == 0) {
    Vfork(number);
  } else if (strcmp(word, "threads") == 0) {
    Threads();
  } else if (strcmp(word, "reap") == 0) {
    int status = 0;
    waitpid(number, &status, 0);
    printf("signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  } else if (strcmp(word, "session") == 0) {
    Session();
  } else if (strcmp(word, "member") == 0) {
    event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    printf("%d\n", Shim()->become_member(event_fd, number));
  } else if (strcmp(word, "events") == 0) {
    uint64_t count = 0;
    printf("%d\n", read(event_fd, &count, sizeof count) > 0 ? (int)count : 0);
  } else if (strcmp(word, "take") == 0) {
    int signo, from_slurm, pid;
    if (Shim()->take_signal(&signo, &from_slurm, &pid)) {
      printf("signal %d slurm %d pid %d\n", signo, from_slurm, pid);
    } else {
      puts("none");
    }
  } else if (strcmp(word, "release") == 0) {
    Shim()->release_shield();
    puts("ok");
  } else if (strcmp(word, "forward") == 0) {
    printf("%d\n", Shim()->forward(number));
  } else if (strcmp(word, "deliver") == 0) {
    printf("%d\n", Shim()->deliver(number));
  } else if (strcmp(word, "leave") == 0) {
    Shim()->leave();
    puts("ok");
  } else {
    puts("?");
  }
}

int main(void) {
  char line[128];
  size_t length = 0;
  if (pipe(pipe_of_children) != 0) return 1;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (;;) {
    const ssize_t count = read(0, line + length, 1);
    if (count == 0) return 0;
    if (count < 0) {
      ++interrupted;
    } else if (line[length] == '\n') {
      line[length] = '\0';
      Do(line);
      length = 0;
    } else if (length + 1 < sizeof line) {
      ++length;
    }
  }
}

/* Checks of frit exec: what a program does to its blocked signals, its stack, its limits and its system calls. The
   arguments are a file in the mount, which is made, and what is checked, in a program of its own: some of it matters
   before the first direct access. The third argument is this file as a library (CONSTRUCTOR). Exit code 0: all as on
   any file system. */
#define _GNU_SOURCE
#include <alloca.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <dlfcn.h>
#include <pthread.h>
#include <ucontext.h>
#include <ulimit.h>

#define SIZE (1 << 20)
#include "check.h"

#ifdef CONSTRUCTOR
static void *writes(void *pipe) {
    CHECK(write(((int *)pipe)[1], "a", 1) == 1);
    return 0;
}

__attribute__((constructor)) static void waits(void) {
    int ends[2];
    pthread_t thread;
    CHECK(pipe(ends) == 0 && pthread_create(&thread, 0, writes, ends) == 0 && pthread_join(thread, 0) == 0);
}
#else
static const char *library;
static int fd;
static char buffer[8192];
static sigset_t all;
static sigjmp_buf jump;

/* A bad address is EFAULT, and does not kill. */
static void is_direct_and_safe(void) {
    for (int i = 0; i < 20; i++) CHECK(pread(fd, buffer, 64, i) == 64 && buffer[0] == (char)byte_at(i));
    for (int i = 0; i < 3; i++) CHECK(pread(fd, (void *)64, 4096, 0) == -1 && errno == EFAULT);
}

/* SIGSEGV is blocked in a way that no function of signals shows. */
static void after_jump(void) {
    CHECK(sigprocmask(SIG_BLOCK, &all, 0) == 0);
    volatile int jumped = 0;
    if (sigsetjmp(jump, 1)) jumped = 1;
    is_direct_and_safe();
    if (!jumped) siglongjmp(jump, 1);
}

static void after_context(void) {
    static ucontext_t context;
    CHECK(sigprocmask(SIG_BLOCK, &all, 0) == 0);
    volatile int resumed = 0;
    CHECK(getcontext(&context) == 0);
    is_direct_and_safe();
    if (resumed++ == 0) setcontext(&context);
}

/* A coroutine that ends continues the program with the mask of before. */
static void after_coroutine(void) {
    static ucontext_t program, coroutine;
    static char stack[1 << 16];
    CHECK(sigprocmask(SIG_BLOCK, &all, 0) == 0 && getcontext(&coroutine) == 0);
    coroutine.uc_stack.ss_sp = stack, coroutine.uc_stack.ss_size = sizeof stack, coroutine.uc_link = &program;
    makecontext(&coroutine, is_direct_and_safe, 0);
    CHECK(swapcontext(&program, &coroutine) == 0);
    is_direct_and_safe();
}

static void after_old_functions(void) {
    is_direct_and_safe();
    sigsetmask(~0);
    is_direct_and_safe();
    sigblock(~0);
    is_direct_and_safe();
    CHECK(sighold(SIGSEGV) == 0 && sighold(SIGBUS) == 0);
    is_direct_and_safe();
    CHECK(sigignore(SIGSEGV) == 0 && sigignore(SIGBUS) == 0);
    is_direct_and_safe();
}

/* Threads exchange handlers of a fault. Each is there once at the end. */
enum { THREADS = 3 };

static void handler_of(int number) {}

static void *exchanges(void *handler) {
    struct sigaction action = {.sa_handler = handler}, old;
    for (int i = 0; i < 100000; i++) {
        CHECK(sigaction(SIGSEGV, &action, &old) == 0);
        action = old;
    }
    return action.sa_handler;
}

static void exchange(void) {
    pthread_t threads[THREADS];
    long sum = 0, want = 0;
    is_direct_and_safe();
    for (long i = 0; i < THREADS; i++) {
        void *handler = (void *)((long)handler_of + i);
        CHECK(pthread_create(&threads[i], 0, exchanges, handler) == 0);
        want += (long)handler;
    }
    for (int i = 0; i < THREADS; i++) {
        void *handler;
        CHECK(pthread_join(threads[i], &handler) == 0);
        sum += (long)handler;
    }
    struct sigaction last;
    CHECK(sigaction(SIGSEGV, 0, &last) == 0);
    CHECK(sum + (long)last.sa_handler == want);
}

/* A constructor of a library waits for a thread, which makes its first call of a function. */
static void loads_library(void) {
    CHECK(dlopen(library, RTLD_NOW) != 0);
    is_direct_and_safe();
}

static void on_signal(int signal) {
    (void)signal;
    is_direct_and_safe();
}

/* The first direct access is that of a handler, whose return sets the mask of before. */
static void after_handler(void) {
    sigset_t but_one = all;
    CHECK(sigprocmask(SIG_BLOCK, &all, 0) == 0 && signal(SIGUSR1, on_signal) != SIG_ERR && raise(SIGUSR1) == 0);
    sigdelset(&but_one, SIGUSR1);
    CHECK(sigsuspend(&but_one) == -1);
    is_direct_and_safe();
}

/* A stack that ends within a read or write; its handler jumps out. Nothing of the access stays. */
static volatile int depth, handled;

static void leaves(int signal) {
    (void)signal;
    siglongjmp(jump, 1);
}

static void counts(int signal) {
    (void)signal;
    handled++;
}

static void has_signals_and_truncates(void) {
    sigset_t now;
    handled = 0;
    CHECK(raise(SIGUSR1) == 0 && handled == 1);
    CHECK(sigprocmask(SIG_BLOCK, 0, &now) == 0 && !sigismember(&now, SIGUSR1) && !sigismember(&now, SIGTERM));
    CHECK(ftruncate(fd, SIZE - 1) == 0 && pwrite(fd, expected + SIZE - 1, 1, SIZE - 1) == 1);
}

static int overflows(int step, int level) {
    volatile char *pad = alloca(step);
    pad[0] = level;
    depth = level;
    CHECK(pread(fd, buffer, sizeof buffer, 0) == sizeof buffer && pwrite(fd, buffer, 64, 0) == 64);
    return overflows(step, level + 1) + pad[0];
}

static void on_small_stack(void) {
    static char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = leaves, .sa_flags = SA_ONSTACK};
    struct rlimit limit = {1 << 18, RLIM_INFINITY};
    CHECK(sigaltstack(&alternate, 0) == 0 && sigaction(SIGSEGV, &action, 0) == 0);
    CHECK(signal(SIGUSR1, counts) != SIG_ERR && setrlimit(RLIMIT_STACK, &limit) == 0);
    is_direct_and_safe();
    for (volatile int round = 0; round < 200; round++) {
        if (sigsetjmp(jump, 1) == 0) overflows(16 + round % 37 * 48, 0);
        has_signals_and_truncates();
    }
    CHECK(depth > 10);
}

/* A handler of a fault without SA_ONSTACK has the stack of the program, also if there is another. */
static char alternate_stack[1 << 16];

static void looks_at_stack(int signal) {
    char here;
    handled = signal == SIGSEGV && (&here < alternate_stack || &here >= alternate_stack + sizeof alternate_stack);
    siglongjmp(jump, 1);
}

static void on_stack_of_program(void) {
    stack_t alternate = {.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack};
    CHECK(sigaltstack(&alternate, 0) == 0);
    for (volatile int first = 0; first < 2; first++) {
        CHECK(signal(SIGSEGV, looks_at_stack) != SIG_ERR);
        is_direct_and_safe();
        handled = 0;
        if (sigsetjmp(jump, 1) == 0) *(volatile int *)8 = 1;
        CHECK(handled);
        struct sigaction action = {.sa_handler = looks_at_stack, .sa_flags = SA_ONSTACK};
        CHECK(sigaction(SIGSEGV, &action, 0) == 0);
        handled = 1;
        if (sigsetjmp(jump, 1) == 0) *(volatile int *)8 = 1;
        CHECK(!handled);
    }
}

/* Signals that an instruction can raise, but that another process has sent. */
static void sent_while_reading(void) {
    static const int signals[] = {SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    static char large[SIZE];
    struct sigaction action = {.sa_handler = leaves};
    pid_t parent = getpid();
    for (int i = 0; i < 4; i++) CHECK(signal(signals[i], SIG_IGN) != SIG_ERR);
    pid_t sender = fork();
    if (sender == 0) {
        for (int i = 0; getppid() == parent; i++) kill(parent, signals[i % 4]), usleep(i * 37 % 700);
        _exit(0);
    }
    CHECK(signal(SIGUSR1, counts) != SIG_ERR);
    for (volatile int round = 0; round < 1000; round++) {
        if (sigsetjmp(jump, 1) == 0) {
            for (int i = 0; i < 4; i++) CHECK(sigaction(signals[i], &action, 0) == 0);
            for (;;) CHECK(pread(fd, large, SIZE, 0) == SIZE);
        }
    }
    for (int i = 0; i < 4; i++) CHECK(signal(signals[i], SIG_IGN) != SIG_ERR);
    CHECK(kill(sender, SIGKILL) == 0);
    has_signals_and_truncates();
}

static const struct rlimit thousand = {1000, RLIM_INFINITY};

static int by_library(void) { return setrlimit(RLIMIT_FSIZE, &thousand); }
static int by_call(void) { return syscall(SYS_setrlimit, RLIMIT_FSIZE, &thousand); }
static int by_call_with_process(void) { return syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, &thousand, (void *)0); }

/* A write behind RLIMIT_FSIZE is cut or refused, also within the file. */
static void behind_limit(int (*sets)(void)) {
    CHECK(signal(SIGXFSZ, counts) != SIG_ERR);
    is_direct_and_safe();
    for (int i = 0; i < 20; i++) CHECK(pwrite(fd, expected, 64, 0) == 64);
    CHECK(sets() == 0);
    CHECK(pwrite(fd, expected, 5000, 0) == 1000 && pwrite(fd, expected + 500, 5000, 500) == 500);
    CHECK(pwrite(fd, expected, 5000, 2000) == -1 && errno == EFBIG && handled == 1);
    CHECK(lseek(fd, 999, SEEK_SET) == 999 && write(fd, expected + 999, 10) == 1);
    CHECK(lseek(fd, 0, SEEK_CUR) == 1000);
}

static void behind_library_limit(void) { behind_limit(by_library); }
static void behind_call_limit(void) { behind_limit(by_call); }
static void behind_process_limit(void) { behind_limit(by_call_with_process); }

/* The same by another function. */
static void behind_ulimit(void) {
    CHECK(signal(SIGXFSZ, counts) != SIG_ERR);
    is_direct_and_safe();
    for (int i = 0; i < 20; i++) CHECK(pwrite(fd, expected, 64, 0) == 64);
    CHECK(ulimit(UL_SETFSIZE, 2) == 2);
    CHECK(pwrite(fd, expected + 500, 5000, 500) == 524 && pwrite(fd, expected, 1, 2000) == -1 && errno == EFBIG);
}

/* System calls of the library would kill the process. */
static int filter_by_library(void) { return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); }
static int filter_by_prctl(void) { return syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT); }
static int filter_by_seccomp(void) { return syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, (void *)0); }

static void under_filter(int (*sets)(void)) {
    is_direct_and_safe();
    CHECK(lseek(fd, 10, SEEK_SET) == 10 && read(fd, buffer, 10) == 10);
    CHECK(sets() == 0);
    int is_right = read(fd, buffer, 10) == 10 && memcmp(buffer, expected + 20, 10) == 0;
    is_right = is_right && write(fd, expected + 30, 10) == 10 && read(fd, buffer, 10) == 10;
    syscall(SYS_exit, !(is_right && memcmp(buffer, expected + 40, 10) == 0));
}

static void under_seccomp(void) { under_filter(filter_by_library); }
static void under_seccomp_by_prctl(void) { under_filter(filter_by_prctl); }
static void under_seccomp_by_call(void) { under_filter(filter_by_seccomp); }

/* Reads that bypass the caches, also into memory that ends within them. */
static void large_reads(void) {
    char *whole = mmap(0, 4 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(whole != MAP_FAILED && munmap(whole + 3 * SIZE, SIZE) == 0);
    is_direct_and_safe();
    for (int shift = 0; shift < 130; shift += 13) {
        memset(whole, 0, 3 * SIZE);
        CHECK(pread(fd, whole + shift, SIZE, 0) == SIZE && memcmp(whole + shift, expected, SIZE) == 0);
        CHECK(whole[shift + SIZE] == 0 && (shift == 0 || whole[shift - 1] == 0));
        char *last = whole + 2 * SIZE + shift;
        ssize_t got = pread(fd, last, SIZE, 0);
        CHECK(shift == 0 ? got == SIZE : got > 0 && got <= SIZE - shift);
        CHECK(memcmp(last, expected, got) == 0);
    }
    CHECK(pread(fd, whole + 3 * SIZE, SIZE, 0) == -1 && errno == EFAULT);
}

static const struct { const char *name; void (*check)(void); } checks[] = {
    {"jump", after_jump}, {"context", after_context}, {"old", after_old_functions}, {"handler", after_handler},
    {"stack", on_small_stack}, {"alternate", on_stack_of_program}, {"sent", sent_while_reading},
    {"size", behind_library_limit}, {"size-call", behind_call_limit}, {"size-process", behind_process_limit},
    {"ulimit", behind_ulimit}, {"seccomp", under_seccomp}, {"seccomp-prctl", under_seccomp_by_prctl},
    {"seccomp-call", under_seccomp_by_call}, {"coroutine", after_coroutine},
    {"exchange", exchange}, {"large", large_reads}, {"library", loads_library},
};

int main(int count, char **arguments) {
    CHECK(count == 4 || count == 5);
    if (count == 4) {
        make_file(arguments[1]);
        CHECK(execl("/proc/self/exe", "limits", arguments[1], arguments[2], arguments[3], "checks", (char *)0) == 0);
    }
    path = arguments[1], library = arguments[3];
    for (size_t i = 0; i < SIZE; i++) expected[i] = byte_at(i);
    CHECK((fd = open(path, O_RDWR)) >= 0);
    sigfillset(&all);
    int is_known = 0;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (strcmp(checks[i].name, arguments[2]) == 0) is_known = 1, checks[i].check();
    CHECK(is_known);
    check_file();
    return 0;
}
#endif

/* Checks of frit exec: threads that end during an access, handlers of signals that arrive then, and children of vfork(2)
   beside others. The arguments are a file in the mount, which is made, and what is checked. Exit code 0: all as on
   any file system. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define SIZE (4 << 20)
#define PAGE 4096
#include "check.h"

/* The first function of the program, before the C library has its environment, opens a file. */
static void opens_early(void) {
    close(open("/dev/null", O_RDONLY));
}
__attribute__((section(".preinit_array"), used)) static void (*early)(void) = opens_early;

/* A thread that ends while it copies leaves nothing in the way of others: neither its access, for which a truncation
   would wait, nor the lock of writers, without which writes go through the mount. */
static int used_fd;
static volatile int is_copying, is_cleaned;
static void cleans(void *unused) {
    (void)unused;
    char buffer[16];
    is_cleaned = pread(used_fd, buffer, 16, 0) == 16 && memcmp(buffer, expected, 16) == 0;
}

static void *copies(void *is_canceled) {
    pthread_cleanup_push(cleans, 0);
    if (is_canceled) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
    for (;;) pwrite(used_fd, expected, SIZE, 0), is_copying = 1;
    pthread_cleanup_pop(0);
    return 0;
}

static void ends_thread(int signal) {
    (void)signal;
    pthread_exit(0);
}

static void ended_threads(void) {
    struct sigaction action = {.sa_handler = ends_thread};
    CHECK(sigaction(SIGUSR1, &action, 0) == 0);
    for (int round = 0; round < 40; round++) {
        pthread_t thread;
        used_fd = fresh(O_RDWR), is_copying = is_cleaned = 0;
        CHECK(pthread_create(&thread, 0, copies, round % 2 ? &used_fd : 0) == 0);
        while (!is_copying) usleep(100);
        usleep(round * 37);
        CHECK((round % 2 ? pthread_cancel(thread) : pthread_kill(thread, SIGUSR1)) == 0);
        CHECK(pthread_join(thread, 0) == 0 && is_cleaned);
        for (int i = 0; i < 100; i++) CHECK(pwrite(used_fd, expected + i * PAGE, PAGE, i * PAGE) == PAGE);
        CHECK(ftruncate(used_fd, SIZE - PAGE) == 0);
        CHECK(pwrite(used_fd, expected + SIZE - PAGE, PAGE, SIZE - PAGE) == PAGE && close(used_fd) == 0);
    }
}

/* Another name of sigaction(2) in the C library. */
int __sigaction(int, const struct sigaction *, struct sigaction *);

/* Handlers run before or after a read or a write, and never in the middle. So a handler finds a file with the bytes
   of one write, and may truncate it; and may fork, leave by a jump, or replace the descriptor. */
static unsigned char found[SIZE], pattern[SIZE];
static sigjmp_buf jump;
static volatile int runs, calls, jumps_out, in_child;
static pid_t parent;

static void check_whole(void) {
    static unsigned char all[SIZE];
    CHECK(pread(used_fd, all, SIZE, 0) == SIZE);
    /* The child has another file, perhaps since the begin of this check. */
    for (int i = 0; i < SIZE; i++) CHECK(in_child || all[i] == all[0]);
}

static void changes_the_file(int signal) {
    (void)signal;
    if (in_child) return;
    runs++;
    check_whole();
    memset(found, 1, SIZE);
    CHECK(ftruncate(used_fd, SIZE - PAGE) == 0 && pwrite(used_fd, found, SIZE, 0) == SIZE);
    if (runs % 4 == 0) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            /* It goes on from the access, with another file. */
            int other = open(path, O_RDONLY);
            CHECK(dup2(other, used_fd) == used_fd);
            in_child = 1;
            return;
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    if (jumps_out && runs % 4 == 1) siglongjmp(jump, 1);
}

static void writes_under_handlers(void) {
    char name[4200];
    struct itimerval never = {0};
    snprintf(name, sizeof name, "%s.changed", path);
    CHECK((used_fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644)) >= 0);
    memset(found, 1, SIZE);
    CHECK(pwrite(used_fd, found, SIZE, 0) == SIZE);
    for (jumps_out = 0; jumps_out < 2; jumps_out++) {
        runs = calls = 0;
        struct sigaction action = {.sa_handler = changes_the_file};
        CHECK((jumps_out ? __sigaction : sigaction)(SIGALRM, &action, 0) == 0);
        while (runs < 40) {
            volatile int len = calls % 3 == 2 ? PAGE : SIZE;
            struct itimerval soon = {{0, 0}, {0, 300 + calls * 37 % 2000}};
            calls++;
            if (sigsetjmp(jump, 1)) continue;
            memset(pattern, calls % 250 + 2, SIZE);
            CHECK(setitimer(ITIMER_REAL, &soon, 0) == 0);
            for (volatile int i = 0; i < 8; i++) {
                ssize_t done = SIZE;
                if (len < SIZE) for (int at = 0; at < 100; at++) CHECK(pread(used_fd, found, 64, at * 64) == 64);
                else done = pwrite(used_fd, pattern, SIZE, 0);
                CHECK(done == SIZE || (in_child && done == -1 && errno == EBADF));
                if (in_child) {
                    CHECK(lseek(used_fd, 10, SEEK_SET) == 10 && read(used_fd, found, 10) == 10);
                    _exit(memcmp(found, expected + 10, 10) != 0);
                }
                check_whole();
            }
        }
    }
    CHECK(setitimer(ITIMER_REAL, &never, 0) == 0);
    printf("handlers ran %d times\n", runs);
    CHECK(close(used_fd) == 0 && unlink(name) == 0);
}

/* What a handler finds does not depend on whether it interrupted an access: the information, the blocked signals, and
   how often it is called. */
static volatile int queued, to_thread, resets, sent_faults;

static void takes_info(int signal, siginfo_t *info, void *context) {
    (void)context;
    sigset_t now;
    CHECK(info->si_signo == signal && info->si_code == SI_QUEUE && info->si_pid == parent);
    CHECK(sigprocmask(SIG_BLOCK, 0, &now) == 0 && sigismember(&now, signal) && sigismember(&now, SIGUSR2));
    CHECK(!sigismember(&now, SIGWINCH));
    /* Each signal has a counter, because one handler can interrupt the other. */
    int value = info->si_value.sival_int;
    CHECK(signal == SIGRTMIN ? value == queued++ : value == 1000 && ++to_thread);
}

static void is_reset(int signal) {
    struct sigaction now;
    CHECK(sigaction(signal, 0, &now) == 0 && now.sa_handler == SIG_DFL);
    resets++;
}

static void counts_fault(int signal) {
    (void)signal;
    sent_faults++;
}

static void *sends(void *target) {
    enum { SIGNALS = 400 };
    sigset_t all;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, 0) == 0);
    for (int i = 0; i < SIGNALS; i++) {
        CHECK(sigqueue(parent, SIGRTMIN, (union sigval){.sival_int = i}) == 0);
        CHECK(pthread_sigqueue(*(pthread_t *)target, SIGRTMIN + 1, (union sigval){.sival_int = 1000}) == 0);
        if (i % 8 == 0) CHECK(pthread_kill(*(pthread_t *)target, SIGSEGV) == 0);
        usleep(300);
    }
    is_copying = 0;
    return 0;
}

/* Pairs of signals, one soon after the other. The next pair waits for both handlers. */
enum { PAIRS = 300 };
static volatile int *jobs;

static void counts_job(int signal) {
    /* A SIGTSTP that waits is removed by SIGCONT. */
    if (signal != SIGTSTP) __atomic_add_fetch(jobs, 1, __ATOMIC_SEQ_CST);
}

static void sends_pairs(void) {
    int want = 0;
    alarm(60);
    for (int i = 0; i < PAIRS; i++) {
        want += i % 2 ? 1 : 2;
        if (i % 2) kill(parent, SIGTSTP), usleep(i % 7 * 20), kill(parent, SIGCONT);
        else kill(parent, SIGUSR1), usleep(i % 7 * 20), syscall(SYS_tgkill, parent, parent, SIGUSR1);
        while (*jobs < want) usleep(20);
        usleep(i * 37 % 200);
    }
    _exit(*jobs != want);
}

static void information(void) {
    struct sigaction action = {.sa_sigaction = takes_info, .sa_flags = SA_SIGINFO}, old;
    pthread_t thread, self = pthread_self();
    used_fd = fresh(O_RDWR), is_copying = 1;
    jobs = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(jobs != MAP_FAILED);
    sigemptyset(&action.sa_mask), sigaddset(&action.sa_mask, SIGUSR2);
    CHECK(sigaction(SIGRTMIN, &action, 0) == 0 && sigaction(SIGRTMIN + 1, &action, 0) == 0);
    CHECK(sigaction(SIGRTMIN, 0, &old) == 0 && old.sa_sigaction == takes_info && old.sa_flags & SA_SIGINFO);
    CHECK(signal(SIGSEGV, counts_fault) == SIG_DFL && signal(SIGSEGV, counts_fault) == counts_fault);
    CHECK(pthread_create(&thread, 0, sends, &self) == 0);
    while (is_copying) CHECK(pwrite(used_fd, expected, SIZE, 0) == SIZE && pread(used_fd, found, SIZE, 0) == SIZE);
    CHECK(pthread_join(thread, 0) == 0 && memcmp(found, expected, SIZE) == 0);
    CHECK(queued == 400 && to_thread == 400);
    /* Two that wait are one. */
    CHECK(sent_faults > 0 && sent_faults <= 50);
    sigset_t now;
    CHECK(sigprocmask(SIG_BLOCK, 0, &now) == 0);
    for (int i = 1; i < 32; i++) CHECK(!sigismember(&now, i));
    /* A handler for one signal (SA_RESETHAND). */
    for (int i = 0; i < 40; i++) {
        struct itimerval soon = {{0, 0}, {0, 500 + i * 37}};
        struct sigaction once = {.sa_handler = is_reset, .sa_flags = SA_RESETHAND};
        resets = 0;
        CHECK(sigaction(SIGALRM, &once, &old) == 0 && (i == 0 || old.sa_handler == SIG_DFL));
        CHECK(setitimer(ITIMER_REAL, &soon, 0) == 0);
        while (!resets) CHECK(pwrite(used_fd, expected, SIZE, 0) == SIZE);
    }
    /* A signal for the process and one for the thread are two, and SIGTSTP removes no later SIGCONT. */
    CHECK(signal(SIGUSR1, counts_job) == SIG_DFL && signal(SIGTSTP, counts_job) == SIG_DFL);
    CHECK(signal(SIGCONT, counts_job) == SIG_DFL);
    int status;
    pid_t sender = fork();
    if (sender == 0) sends_pairs();
    while (waitpid(sender, &status, WNOHANG) == 0) CHECK(pwrite(used_fd, expected, SIZE, 0) == SIZE);
    CHECK(status == 0);
    /* A child of vfork(2) sets actions of its own, as Python does before it runs a program. */
    CHECK(signal(SIGUSR1, counts_fault) == counts_job);
    pid_t child = vfork();
    if (child == 0) {
        signal(SIGUSR1, SIG_IGN), signal(SIGUSR2, is_reset), signal(SIGSEGV, SIG_DFL);
        execlp("sh", "sh", "-c", "kill -USR1 $$; exit 5", (char *)0);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
    sent_faults = 0;
    CHECK(raise(SIGUSR1) == 0 && raise(SIGSEGV) == 0 && sent_faults == 2);
    CHECK(signal(SIGUSR1, SIG_DFL) == counts_fault && signal(SIGUSR1, SIG_IGN) == SIG_DFL);
    CHECK(signal(SIGUSR2, SIG_DFL) == SIG_DFL && signal(SIGSEGV, SIG_DFL) == counts_fault && close(used_fd) == 0);
    CHECK(sigaction(SIGKILL, &action, 0) == -1 && errno == EINVAL && signal(65, counts_fault) == SIG_ERR);
}

/* Children of vfork(2) of two threads at once. The thread of the one that ends first opens a file, and then the other
   child opens another file with the same number. */
static volatile int begun[2], may_end[2], has_read, is_right;
static char name_of_other[4200];

static void waits_for(volatile int *flag) {
    while (!*flag) usleep(100);
}

static void *vforks(void *lasts) {
    int which = lasts != 0;
    if (vfork() == 0) {
        begun[which] = 1;
        waits_for(&may_end[which]);
        if (which) {
            char buffer[16] = {0};
            int fd = open(name_of_other, O_RDONLY);
            is_right = fd == used_fd && read(fd, buffer, 16) == 16 && memcmp(buffer, "another file....", 16) == 0;
            has_read = 1;
        }
        _exit(0);
    }
    char buffer[16];
    if (!which) {
        used_fd = fresh(O_RDONLY);
        CHECK(read(used_fd, buffer, 16) == 16 && memcmp(buffer, expected, 16) == 0);
    }
    return 0;
}

/* A thread that begins processes all the time, and reads meanwhile. */
static void *vforks_often(void *unused) {
    (void)unused;
    for (int i = 0; i < 200; i++) {
        char buffer[16];
        int fd = fresh(O_RDONLY), status;
        pid_t pid = vfork();
        if (pid == 0) _exit(3);
        CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3);
        for (int at = 0; at < 160; at += 16) CHECK(read(fd, buffer, 16) == 16 && memcmp(buffer, expected + at, 16) == 0);
        CHECK(close(fd) == 0);
    }
    /* It never comes back from the last one. */
    if (vfork() == 0) _exit(0);
    return 0;
}

static void vforks_at_once(void) {
    char buffer[16];
    snprintf(name_of_other, sizeof name_of_other, "%s.other", path);
    int fd = open(name_of_other, O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0 && write(fd, "another file....", 16) == 16 && close(fd) == 0);
    for (int first = 0; first < 2; first++) {
        pthread_t threads[2];
        begun[0] = begun[1] = may_end[0] = may_end[1] = has_read = 0;
        /* The one that ends first, or the other one, begins first. */
        for (int i = 0; i < 2; i++) {
            int which = i ^ first;
            CHECK(pthread_create(&threads[which], 0, vforks, which ? &threads : 0) == 0);
            waits_for(&begun[which]);
        }
        may_end[0] = 1;
        CHECK(pthread_join(threads[0], 0) == 0);
        may_end[1] = 1;
        CHECK(pthread_join(threads[1], 0) == 0 && has_read && is_right && close(used_fd) == 0);
    }
    pthread_t all[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&all[i], 0, vforks_often, 0) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(all[i], 0) == 0);
    /* Accesses are direct again. */
    fd = fresh(O_RDONLY);
    for (int i = 0; i < 100000; i++) CHECK(pread(fd, buffer, 16, i) == 16 && memcmp(buffer, expected + i, 16) == 0);
    CHECK(close(fd) == 0 && unlink(name_of_other) == 0);
}

/* A jump out of a handler leaves an open, a first access, which asks the server for a lease, or a close. Files that are
   opened later have direct access all the same. */
static void jumps_out_of_handler(int signal) {
    (void)signal;
    siglongjmp(jump, 1);
}

static void jumps_out_of_opens(void) {
    enum { ROUNDS = 4000 };
    static char buffer[64];
    struct sigaction action = {.sa_handler = jumps_out_of_handler};
    struct itimerval never = {0};
    CHECK(sigaction(SIGALRM, &action, 0) == 0);
    for (volatile int i = 0; i < ROUNDS; i++) {
        /* The number of a file that was left open is not known. */
        if (sigsetjmp(jump, 1) == 0) {
            struct itimerval soon = {{0, 0}, {0, 1 + i * 7 % 400}};
            CHECK(setitimer(ITIMER_REAL, &soon, 0) == 0);
            for (;;) {
                int fd = open(path, O_RDWR);
                CHECK(fd >= 0 && pread(fd, buffer, 64, i) == 64 && memcmp(buffer, expected + i, 64) == 0);
                CHECK(pwrite(fd, expected, 64, 0) == 64 && close(fd) == 0);
            }
        }
        if (i % 100 == 0) closefrom(3);
    }
    CHECK(setitimer(ITIMER_REAL, &never, 0) == 0);
    closefrom(3);
    used_fd = open(path, O_RDWR);
    for (int i = 0; i < 1000000; i++) CHECK(pread(used_fd, buffer, 64, i) == 64 && buffer[0] == (char)expected[i]);
    CHECK(close(used_fd) == 0);
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    make_file(arguments[1]);
    parent = getpid();
    if (strcmp(arguments[2], "threads") == 0) ended_threads();
    if (strcmp(arguments[2], "signals") == 0) writes_under_handlers(), information();
    if (strcmp(arguments[2], "vforks") == 0) vforks_at_once();
    if (strcmp(arguments[2], "opens") == 0) jumps_out_of_opens();
    check_file();
    return 0;
}

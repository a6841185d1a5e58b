/* Checks of frit exec: threads that end inside of an access, processes that begin there, and children of vfork(2)
   beside others. The arguments are a file in the mount, which is made, and what is checked. Exit code 0: all as on
   any file system. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#define SIZE (4 << 20)
#define PAGE 4096
#include "check.h"

/* A thread that ends in a copy leaves nothing in the way of others: neither its access, for which a truncation would
   wait, nor the lock of writers, without which writes go through the mount. */
static int used_fd;
static volatile int is_copying, is_cleaned;
static void cleans(void *is_canceled) {
    char buffer[16];
    /* Whoever is canceled is within its access until it has ended. */
    is_cleaned = is_canceled || pread(used_fd, buffer, 16, 0) == 16 && memcmp(buffer, expected, 16) == 0;
}

static void *copies(void *is_canceled) {
    pthread_cleanup_push(cleans, is_canceled);
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

/* A handler that interrupts an access forks, and its child returns from the handler as well. Both complete the access.
   The file cannot be truncated while the parent is within it, whatever the child does, and a child that comes late
   leaves the blocks of the file alone, which then belong to others. */
enum { CHILD_FIRST, PARENT_FIRST, READS, READS_AT_POSITION, WAYS };
static volatile int way, is_hit;
static pid_t child;
static int gate[2];

/* Where accesses are not direct, a truncation waits for none. */
static int is_busy(void) {
    if (ftruncate(used_fd, SIZE - PAGE) != 0) {
        CHECK(errno == EBUSY);
        return 1;
    }
    CHECK(pwrite(used_fd, expected + SIZE - PAGE, PAGE, SIZE - PAGE) == PAGE);
    return 0;
}

static void forks(int signal) {
    int status;
    char byte;
    (void)signal;
    if (is_hit || !is_busy()) return;
    is_hit = 1;
    CHECK(pipe(gate) == 0 && (child = fork()) >= 0);
    close(gate[child != 0 ? 0 : 1]);
    if (child == 0) {
        if (way == PARENT_FIRST) CHECK(read(gate[0], &byte, 1) == 0);
    } else if (way != PARENT_FIRST) {
        CHECK(waitpid(child, &status, 0) == child && status == 0 && is_busy());
        close(gate[1]);
    }
}

static unsigned char found[SIZE];

static void access_all(void) {
    ssize_t done;
    memset(found, 0, SIZE);
    switch (way) {
    case READS: done = pread(used_fd, found, SIZE, 0); break;
    case READS_AT_POSITION: CHECK(lseek(used_fd, 0, SEEK_SET) == 0); done = read(used_fd, found, SIZE); break;
    default: done = pwrite(used_fd, expected, SIZE, 0);
    }
    CHECK(done == SIZE);
    if (is_hit && child == 0 && way < READS) CHECK(pread(used_fd, found, SIZE, 0) == SIZE);
    if (way >= READS || is_hit && child == 0) CHECK(memcmp(found, expected, SIZE) == 0);
    if (is_hit && child == 0) _exit(0);
}

/* Gives the blocks of the file to others. */
static void reuse_blocks(void) {
    enum { FILES = 40 };
    char name[4200];
    int fds[FILES], count = 0, status;
    CHECK(ftruncate(used_fd, 0) == 0);
    memset(found, 'z', SIZE);
    for (ssize_t done = SIZE; count < FILES && done == SIZE; count++) {
        snprintf(name, sizeof name, "%s.%d", path, count);
        CHECK((fds[count] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644)) >= 0 && unlink(name) == 0);
        done = write(fds[count], found, SIZE);
    }
    /* The child finds blocks for its write. */
    CHECK(count > 4 && close(fds[--count]) == 0 && close(fds[--count]) == 0);
    close(gate[1]);
    CHECK(waitpid(child, &status, 0) == child);
    while (count-- > 0) {
        CHECK(pread(fds[count], found, SIZE, 0) == SIZE && close(fds[count]) == 0);
        for (size_t i = 0; i < SIZE; i++) CHECK(found[i] == 'z');
    }
    CHECK(status == 0);
}

static void forks_in_accesses(void) {
    int hits = 0;
    CHECK(signal(SIGALRM, forks) != SIG_ERR);
    for (way = 0; way < WAYS; way++) {
        is_hit = 0;
        for (int round = 0; round < 40 && !is_hit; round++) {
            struct itimerval soon = {{0, 0}, {0, 2000 + round * 37}};
            used_fd = fresh(O_RDWR);
            CHECK(setitimer(ITIMER_REAL, &soon, 0) == 0);
            for (int i = 0; i < 20 && !is_hit; i++) access_all();
            if (is_hit && way == PARENT_FIRST) reuse_blocks();
            CHECK(pwrite(used_fd, expected, SIZE, 0) == SIZE && close(used_fd) == 0);
        }
        hits += is_hit;
    }
    printf("forks in %d of %d accesses\n", hits, WAYS);
}

/* Children of vfork(2) of two threads at once. The thread of the one that ends first opens a file, and then the other
   child opens another file with the same number. */
static volatile int runs[2], may_end[2], has_read, is_right;
static char name_of_other[4200];

static void waits_for(volatile int *flag) {
    while (!*flag) usleep(100);
}

static void *vforks(void *lasts) {
    int which = lasts != 0;
    if (vfork() == 0) {
        runs[which] = 1;
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
        runs[0] = runs[1] = may_end[0] = may_end[1] = has_read = 0;
        /* The one that ends first, or the other one, begins first. */
        for (int i = 0; i < 2; i++) {
            int which = i ^ first;
            CHECK(pthread_create(&threads[which], 0, vforks, which ? &threads : 0) == 0);
            waits_for(&runs[which]);
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

int main(int count, char **arguments) {
    CHECK(count == 3);
    make_file(arguments[1]);
    if (strcmp(arguments[2], "threads") == 0) ended_threads();
    if (strcmp(arguments[2], "forks") == 0) forks_in_accesses();
    if (strcmp(arguments[2], "vforks") == 0) vforks_at_once();
    check_file();
    return 0;
}

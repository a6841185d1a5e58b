/* Checks of frit exec: what programs do with descriptors, signals, threads and processes. The argument
   is a file in the mount, which is made. Exit code 0: all as on any file system. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define SIZE (1 << 20)
#include "check.h"

extern char **environ;

static void positions(void) {
    int fd = fresh(O_RDWR), copy;
    char buffer[100];
    CHECK(lseek(fd, 1000, SEEK_SET) == 1000);
    CHECK(read(fd, buffer, 100) == 100);
    has(buffer, 100, 1000);
    CHECK((copy = dup(fd)) >= 0);
    CHECK(read(copy, buffer, 100) == 100);
    has(buffer, 100, 1100);
    CHECK(lseek(fd, 0, SEEK_CUR) == 1200);
    CHECK(dup2(fd, 200) == 200 && close(copy) == 0);
    CHECK(read(200, buffer, 10) == 10);
    has(buffer, 10, 1200);
    /* The end, and behind it. */
    CHECK(lseek(fd, -10, SEEK_END) == SIZE - 10);
    CHECK(read(fd, buffer, 100) == 10 && read(fd, buffer, 100) == 0);
    CHECK(lseek(fd, 5, SEEK_CUR) == SIZE + 5 && read(fd, buffer, 1) == 0);
    CHECK(lseek(fd, -1, SEEK_SET) == -1 && errno == EINVAL);
    CHECK(pread(fd, buffer, 10, -1) == -1 && errno == EINVAL);
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && lseek(fd, 0, SEEK_DATA) == 0 && lseek(fd, 0, SEEK_HOLE) == SIZE);
    CHECK(lseek(fd, 0, SEEK_CUR) == SIZE);
    close(200);
    close(fd);
    CHECK(read(fd, buffer, 1) == -1 && errno == EBADF);
    fd = fresh(O_RDONLY);
    CHECK(pwrite(fd, buffer, 1, 0) == -1 && errno == EBADF);
    close(fd);
    fd = fresh(O_WRONLY);
    for (int i = 0; i < 20; i++) CHECK(pwrite(fd, expected + i * 10, 10, i * 10) == 10);
    CHECK(read(fd, buffer, 1) == -1 && errno == EBADF);
    close(fd);
}

static void vectors(void) {
    int fd = fresh(O_RDWR);
    char a[10], b[1000], c[5000];
    struct iovec parts[3] = {{a, 10}, {b, 1000}, {c, 5000}};
    CHECK(preadv(fd, parts, 3, 4000) == 6010);
    has(a, 10, 4000), has(b, 1000, 4010), has(c, 5000, 5010);
    lseek(fd, 77, SEEK_SET);
    CHECK(readv(fd, parts, 3) == 6010 && lseek(fd, 0, SEEK_CUR) == 77 + 6010);
    has(c, 5000, 77 + 1010);
    CHECK(writev(fd, (struct iovec[]){{expected + 6087, 13}, {expected + 6100, 900}}, 2) == 913);
    CHECK(lseek(fd, 0, SEEK_CUR) == 7000);
    CHECK(preadv2(fd, parts, 3, -1, 0) == 6010 && lseek(fd, 0, SEEK_CUR) == 13010);
    has(b, 1000, 7010);
    close(fd);
}

static void *unmapped(size_t len) {
    void *at = mmap(0, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED && munmap(at, len) == 0);
    return at;
}

static void bad_buffers(void) {
    int fd = fresh(O_RDWR);
    char *none = unmapped(1 << 16);
    CHECK(pread(fd, none, 100, 0) == -1 && errno == EFAULT);
    CHECK(pwrite(fd, none, 100, 0) == -1 && errno == EFAULT);
    CHECK(pread(fd, 0, 100, 0) == -1 && errno == EFAULT);
    lseek(fd, 500, SEEK_SET);
    CHECK(read(fd, none, 60000) == -1 && errno == EFAULT && lseek(fd, 0, SEEK_CUR) == 500);
    CHECK(write(fd, none, 60000) == -1 && errno == EFAULT && lseek(fd, 0, SEEK_CUR) == 500);
    /* A page, and nothing behind it: the bytes up to there, or an error. */
    char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(munmap(page + 4096, 4096) == 0);
    ssize_t got = pread(fd, page, 8192, 0);
    CHECK(got == 4096 || (got == -1 && errno == EFAULT));
    if (got > 0) has(page, got, 0);
    memcpy(page, expected, 4096);
    got = pwrite(fd, page, 8192, 0);
    CHECK(got == 4096 || (got == -1 && errno == EFAULT));
    munmap(page, 4096);
    /* Long copies end at the byte. */
    for (int tail = 0; tail < 130; tail++) {
        char *pages = mmap(0, 17 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(munmap(pages + 16 * 4096, 4096) == 0);
        char *part = pages + 16 * 4096 - 40000 - tail;
        memcpy(part, expected + tail, 40000 + tail);
        CHECK(pwrite(fd, part, 60000, tail) == 40000 + tail);
        memset(part, 0, 40000 + tail);
        CHECK(pread(fd, part, 60000, tail) == 40000 + tail);
        has(part, 40000 + tail, tail);
        munmap(pages, 16 * 4096);
    }
    /* Read-only memory. */
    page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pread(fd, page, 100, 0) == -1 && errno == EFAULT);
    close(fd);
}

static sigjmp_buf jump;
static volatile int caught;
static void on_segv(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    caught = info->si_addr != 0;
    siglongjmp(jump, 1);
}

/* The program's own handler is called for its own faults, and not for those of a copy. */
static void handlers(void) {
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO}, old;
    int fd = fresh(O_RDONLY);
    char *none = unmapped(4096);
    CHECK(sigaction(SIGSEGV, &action, &old) == 0 && old.sa_handler == SIG_DFL);
    CHECK(sigaction(SIGSEGV, 0, &old) == 0 && old.sa_sigaction == on_segv);
    for (int i = 0; i < 3; i++) {
        caught = 0;
        if (sigsetjmp(jump, 1) == 0) {
            *(volatile char *)none = 1;
            CHECK(!"no fault");
        }
        CHECK(caught);
        CHECK(pread(fd, none, 10, 0) == -1 && errno == EFAULT);
    }
    /* Blocked signals. */
    sigset_t all, before, now;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    CHECK(pread(fd, none, 10, 0) == -1 && errno == EFAULT);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, &now) == 0 && sigismember(&now, SIGTERM));
    CHECK(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
    pid_t child = fork();
    if (child == 0) {
        *(volatile char *)none = 1;
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    close(fd);
}

/* Descriptors that the C library, or a system call, closes, and whose numbers come back. */
static void reused_numbers(void) {
    char buffer[10];
    for (int how = 0; how < 5; how++) {
        int fd = fresh(O_RDONLY);
        lseek(fd, 30, SEEK_SET);
        FILE *file;
        switch (how) {
        case 0:
            CHECK((file = fdopen(fd, "r")) && fread(buffer, 1, 10, file) == 10 && fclose(file) == 0);
            has(buffer, 10, 30);
            break;
        case 1: CHECK(syscall(SYS_close, fd) == 0); break;
        case 2: CHECK(close_range(fd, fd, 0) == 0); break;
        case 3: {
            int null = open("/dev/null", O_RDONLY);
            CHECK(null > fd && dup2(null, fd) == fd && close(null) == 0);
            CHECK(read(fd, buffer, 10) == 0);
            CHECK(close(fd) == 0);
            break;
        }
        case 4: CHECK(syscall(SYS_dup3, 0, fd, 0) == fd && close(fd) == 0); break;
        }
        CHECK(read(fd, buffer, 10) == -1 && errno == EBADF);
        int other = open("/proc/self/cmdline", O_RDONLY);
        CHECK(other == fd && read(other, buffer, 10) == 10 && memcmp(buffer, expected, 10) != 0);
        close(other);
    }
}

static void appends(void) {
    int fd = fresh(O_RDWR), other;
    struct stat status;
    CHECK(fcntl(fd, F_SETFL, O_APPEND) == 0);
    CHECK(pread(fd, (char[10]){0}, 10, 0) == 10 && write(fd, "tail", 4) == 4);
    CHECK(fstat(fd, &status) == 0 && status.st_size == SIZE + 4);
    CHECK((other = open(path, O_WRONLY | O_APPEND)) >= 0 && write(other, "more", 4) == 4);
    CHECK(fstat(fd, &status) == 0 && status.st_size == SIZE + 8);
    char buffer[8];
    CHECK(pread(fd, buffer, 8, SIZE) == 8 && memcmp(buffer, "tailmore", 8) == 0);
    /* With O_APPEND, Linux appends whatever the position (pwrite(2), bugs). */
    for (int i = 0; i < 20; i++) CHECK(pread(fd, buffer, 8, 0) == 8);
    CHECK(pwrite(fd, "last", 4, 0) == 4 && fstat(fd, &status) == 0 && status.st_size == SIZE + 12);
    CHECK(ftruncate(fd, SIZE) == 0 && pread(fd, buffer, 8, SIZE) == 0);
    close(fd), close(other);
}

/* The position is shared with processes that have the descriptor. */
static void processes(void) {
    char buffer[64];
    int fd = fresh(O_RDWR), status;
    lseek(fd, 100, SEEK_SET);
    pid_t child = fork();
    if (child == 0) {
        CHECK(read(fd, buffer, 50) == 50);
        has(buffer, 50, 100);
        for (int i = 0; i < 100; i++) {
            CHECK(pread(fd, buffer, 64, i * 64) == 64);
            has(buffer, 64, i * 64);
        }
        int own = fresh(O_RDWR);
        CHECK(read(own, buffer, 10) == 10 && lseek(own, 0, SEEK_CUR) == 10);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(lseek(fd, 0, SEEK_CUR) == 150 && read(fd, buffer, 10) == 10);
    has(buffer, 10, 150);
    close(fd);
    for (int how = 0; how < 3; how++) {
        fd = fresh(O_RDONLY);
        lseek(fd, 1000, SEEK_SET);
        int pipes[2];
        CHECK(pipe(pipes) == 0);
        if (how == 0) {
            /* vfork, with descriptors that its child changes. */
            child = vfork();
            if (child == 0) {
                dup2(fd, 0), dup2(pipes[1], 1), close(fd);
                execlp("head", "head", "-c", "20", (char *)0);
                _exit(1);
            }
        } else if (how == 1) {
            posix_spawn_file_actions_t actions;
            posix_spawn_file_actions_init(&actions);
            posix_spawn_file_actions_adddup2(&actions, fd, 0);
            posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
            char *arguments[] = {"head", "-c", "20", 0};
            CHECK(posix_spawnp(&child, "head", &actions, 0, arguments, environ) == 0);
        } else {
            child = fork();
            if (child == 0) {
                dup2(fd, 0), dup2(pipes[1], 1);
                execle("/usr/bin/head", "head", "-c", "20", (char *)0, (char *[]){"PATH=/usr/bin", 0});
                _exit(1);
            }
        }
        close(pipes[1]);
        CHECK(read(pipes[0], buffer, 64) == 20 && waitpid(child, &status, 0) == child && status == 0);
        has(buffer, 20, 1000);
        /* The parent's descriptor is still there, and later ones are direct. */
        CHECK(pread(fd, buffer, 64, 5) == 64);
        has(buffer, 64, 5);
        close(pipes[0]), close(fd);
        fd = fresh(O_RDONLY);
        CHECK(read(fd, buffer, 64) == 64 && lseek(fd, 0, SEEK_CUR) == 64);
        has(buffer, 64, 0);
        close(fd);
    }
    /* A descriptor of a child of vfork is none of its parent. */
    fd = fresh(O_RDONLY);
    child = vfork();
    if (child == 0) {
        dup2(fd, 300);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && pread(300, buffer, 10, 0) == -1 && errno == EBADF);
    close(fd);
    FILE *lines;
    CHECK((lines = popen("echo a", "r")) && fgets(buffer, 64, lines) && pclose(lines) == 0);
    CHECK(system("true") == 0);
}

static void in_the_library(void) {
    char buffer[64];
    int fd = fresh(O_RDWR), other;
    lseek(fd, 10, SEEK_SET);
    CHECK(dprintf(fd, "%c%c%d", expected[10], expected[11], 5) == 3 && lseek(fd, 0, SEEK_CUR) == 13);
    CHECK(pwrite(fd, expected + 10, 3, 10) == 3);
    close(fd);
    fd = fresh(O_RDONLY);
    lseek(fd, 20, SEEK_SET);
    CHECK((other = memfd_create("a", 0)) >= 0 && sendfile(other, fd, 0, 30) == 30);
    CHECK(lseek(fd, 0, SEEK_CUR) == 50 && pread(other, buffer, 30, 0) == 30);
    has(buffer, 30, 20);
    close(other), close(fd);
    fd = fresh(O_RDWR);
    lseek(fd, 100, SEEK_SET);
    CHECK(lockf(fd, F_TLOCK, 10) == 0 && lockf(fd, F_ULOCK, 10) == 0);
    unsigned char *map = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED && memcmp(map, expected, SIZE) == 0);
    map[5] ^= 255;
    CHECK(pread(fd, buffer, 10, 0) == 10 && (unsigned char)buffer[5] == map[5]);
    buffer[5] ^= 255;
    CHECK(pwrite(fd, buffer, 10, 0) == 10 && map[5] == expected[5]);
    munmap(map, SIZE), close(fd);
}

static void times(void) {
    struct stat before, after;
    int fd = fresh(O_RDWR);
    struct timespec old[2] = {{1000, 0}, {1000, 0}};
    CHECK(futimens(fd, old) == 0 && fstat(fd, &before) == 0 && before.st_mtime == 1000);
    for (int i = 0; i < 20; i++) CHECK(pwrite(fd, expected, 10, 0) == 10);
    CHECK(stat(path, &after) == 0 && after.st_mtime > 1000 && after.st_mtime <= time(0));
    CHECK(futimens(fd, old) == 0 && fstat(fd, &before) == 0 && before.st_mtime == 1000);
    close(fd);
    CHECK(stat(path, &before) == 0 && before.st_mtime == 1000);
}

/* Many threads in one file: reads at the shared position get each part once. */
static int shared_fd;
static unsigned char seen[SIZE / 64];
static void *reader(void *unused) {
    (void)unused;
    unsigned char buffer[64];
    while (read(shared_fd, buffer, 64) == 64) {
        /* The first 4 bytes are the number of the part. */
        uint32_t part;
        memcpy(&part, buffer, 4);
        CHECK(part < SIZE / 64 && __atomic_exchange_n(&seen[part], 1, __ATOMIC_RELAXED) == 0);
    }
    return 0;
}

/* Of writes of one range at a time, one is there as a whole. */
#define RECORD 400000
#define WRITERS 2
/* Waits for the other writer without sleeping, so that both write at the same time. */
static void meet(int *arrived, int round) {
    __atomic_add_fetch(arrived, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; __atomic_load_n(arrived, __ATOMIC_SEQ_CST) < (round + 1) * WRITERS; i++)
        if (i > 100000) sched_yield();
}
static int begun, ended;
/* One writer is slow, as each page of its zeros is a fault, and the other one begins later and is fast. */
static void *writer(void *argument) {
    int is_slow = argument == 0;
    static unsigned char ones[RECORD], found[RECORD];
    if (!is_slow) memset(ones, 1, RECORD);
    for (int i = 0; i < 300; i++) {
        unsigned char *record = ones;
        if (is_slow) record = mmap(0, RECORD, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        meet(&begun, i);
        for (volatile int wait = 0; !is_slow && wait < i * 200; wait++) {}
        CHECK(pwrite(shared_fd, record, RECORD, 4090) == RECORD);
        meet(&ended, i);
        if (is_slow) {
            munmap(record, RECORD);
            CHECK(pread(shared_fd, found, RECORD, 4090) == RECORD);
            for (size_t at = 1; at < RECORD; at++) CHECK(found[at] == found[0]);
        }
    }
    return 0;
}

static void threads(void) {
    pthread_t all[8];
    int fd = fresh(O_RDWR);
    for (uint32_t part = 0; part < SIZE / 64; part++) CHECK(pwrite(fd, &part, 4, part * 64) == 4);
    close(fd);
    shared_fd = fresh(O_RDWR);
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&all[i], 0, reader, 0) == 0);
    for (int i = 0; i < 8; i++) pthread_join(all[i], 0);
    for (int part = 0; part < SIZE / 64; part++) CHECK(seen[part]);
    for (int i = 0; i < WRITERS; i++) CHECK(pthread_create(&all[i], 0, writer, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < WRITERS; i++) pthread_join(all[i], 0);
    CHECK(pwrite(shared_fd, expected, SIZE, 0) == SIZE);
    close(shared_fd);
}

/* Reads and writes in a handler that may interrupt others. */
static int timer_fd;
static volatile int ticks;
static void on_alarm(int signal) {
    char buffer[100];
    int before = errno;
    (void)signal;
    if (pread(timer_fd, buffer, 100, 300) != 100 || memcmp(buffer, expected + 300, 100) != 0) _exit(9);
    ticks++;
    errno = before;
}

static void in_handlers(void) {
    timer_fd = fresh(O_RDWR);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGVTALRM, &action, 0) == 0);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};
    struct itimerspec every = {{0, 20000000}, {0, 20000000}};
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &every, 0) == 0);
    static unsigned char buffer[SIZE];
    for (int i = 0; ticks < 10 && i < 1000000; i++) {
        CHECK(pread(timer_fd, buffer, 50000, 1000) == 50000);
        has(buffer, 50000, 1000);
    }
    timer_delete(timer);
    CHECK(ticks >= 10);
    close(timer_fd);
}

/* A new file whose next writes at the end are direct. */
static char grown_path[4096];
static off_t end;
static int new_file(int flags) {
    int fd = open(grown_path, flags | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0);
    for (end = 0; end < 20 * 100; end += 100) CHECK(write(fd, expected + end, 100) == 100);
    return fd;
}

static off_t size_of(int fd) {
    struct stat status, by_name;
    CHECK(fstat(fd, &status) == 0 && stat(grown_path, &by_name) == 0 && status.st_size == by_name.st_size);
    return status.st_size;
}

/* The file has the expected bytes up to its end. */
static void has_all(int fd, off_t size) {
    static unsigned char all[SIZE + 1];
    CHECK(size_of(fd) == size && pread(fd, all, SIZE + 1, 0) == size);
    has(all, size, 0);
}

static void more(int fd, size_t len) {
    CHECK(write(fd, expected + end, len) == (ssize_t)len);
    end += len;
}

static void growth(void) {
    unsigned char buffer[10000];
    int fd = new_file(O_RDWR), other, status;
    for (int i = 0; i < 300; i++) {
        more(fd, 1 + i * 7 % 1500);
        if (i % 10 == 0) CHECK(size_of(fd) == end);
        if (i % 17 == 0) CHECK(lseek(fd, 0, SEEK_END) == end && lseek(fd, 0, SEEK_CUR) == end);
        if (i % 50 == 0) CHECK(fsync(fd) == 0 && fdatasync(fd) == 0);
        CHECK(pread(fd, buffer, 100, end - 50) == 50);
        has(buffer, 50, end - 50);
    }
    has_all(fd, end);
    /* Positions, vectors, and writes across the end. */
    CHECK(pwrite(fd, expected + end - 500, 1500, end - 500) == 1500 && size_of(fd) == end + 1000);
    end += 1000;
    CHECK(lseek(fd, 0, SEEK_CUR) == end - 1000 && lseek(fd, 0, SEEK_END) == end);
    CHECK(writev(fd, (struct iovec[]){{expected + end, 13}, {expected + end + 13, 5000}}, 2) == 5013);
    end += 5013;
    has_all(fd, end);
    /* A gap reads as zeros. */
    CHECK(pwrite(fd, "x", 1, end + 9000) == 1 && size_of(fd) == end + 9001);
    CHECK(pread(fd, buffer, 10000, end) == 9001 && buffer[9000] == 'x');
    for (int i = 0; i < 9000; i++) CHECK(buffer[i] == 0);
    CHECK(ftruncate(fd, end) == 0 && pread(fd, buffer, 10, end) == 0);
    CHECK(lseek(fd, end, SEEK_SET) == end);
    for (int i = 0; i < 30; i++) more(fd, 100);
    has_all(fd, end);
    /* Buffers that are not mapped add nothing, or the bytes before. */
    char *none = unmapped(1 << 16);
    CHECK(write(fd, none, 5000) == -1 && errno == EFAULT && size_of(fd) == end);
    unsigned char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(munmap(page + 4096, 4096) == 0);
    memcpy(page, expected + end, 4096);
    ssize_t got = write(fd, page, 8192);
    CHECK(got == 4096 || (got == -1 && errno == EFAULT));
    if (got > 0) end += got;
    munmap(page, 4096);
    CHECK(lseek(fd, 0, SEEK_CUR) == end);
    for (int i = 0; i < 30; i++) more(fd, 100);
    /* Others append, by name, and by the same descriptor. */
    CHECK((other = open(grown_path, O_WRONLY | O_APPEND)) >= 0);
    CHECK(write(other, expected + end, 700) == 700 && close(other) == 0);
    end += 700;
    has_all(fd, end);
    CHECK(lseek(fd, 0, SEEK_END) == end);
    for (int i = 0; i < 30; i++) more(fd, 100);
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    CHECK((other = open(link, O_WRONLY | O_APPEND)) >= 0);
    CHECK(write(other, expected + end, 700) == 700 && close(other) == 0);
    end += 700;
    has_all(fd, end);
    CHECK(lseek(fd, 0, SEEK_END) == end);
    for (int i = 0; i < 30; i++) more(fd, 100);
    /* A lock of the last bytes. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -10, .l_len = 10};
    CHECK(fcntl(fd, F_SETLK, &lock) == 0);
    struct flock found = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0};
    pid_t locker = fork();
    if (locker == 0) {
        CHECK(fcntl(fd, F_GETLK, &found) == 0 && found.l_type == F_WRLCK && found.l_start == end - 10);
        _exit(0);
    }
    CHECK(waitpid(locker, &status, 0) == locker && status == 0);
    close(fd);
    CHECK((fd = open(grown_path, O_RDWR)) >= 0 && lseek(fd, 0, SEEK_END) == end);
    for (int i = 0; i < 30; i++) more(fd, 100);
    CHECK(pwritev2(fd, (struct iovec[]){{expected + end, 100}}, 1, 0, RWF_APPEND) == 100);
    end += 100;
    has_all(fd, end);
    close(fd);
    CHECK((fd = open(grown_path, O_RDWR)) >= 0 && lseek(fd, 0, SEEK_END) == end);
    for (int i = 0; i < 30; i++) more(fd, 100);
    CHECK((other = dup(fd)) >= 0);
    more(other, 300), more(fd, 300);
    CHECK(fcntl(fd, F_SETFL, O_APPEND) == 0 && lseek(other, 0, SEEK_SET) == 0);
    more(fd, 300);
    CHECK(pwrite(other, expected + end, 300, 0) == 300);
    end += 300;
    has_all(fd, end);
    close(other), close(fd);
    /* Maps, and functions of the kernel that rely on the size. */
    fd = new_file(O_RDWR);
    for (int i = 0; i < 300; i++) more(fd, 1000);
    page = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(page != MAP_FAILED && memcmp(page, expected, end) == 0);
    for (int i = 0; i < 30; i++) more(fd, 1000);
    CHECK(memcmp(page, expected, end) == 0);
    munmap(page, SIZE), close(fd);
    fd = new_file(O_RDWR);
    for (int i = 0; i < 300; i++) more(fd, 1000);
    CHECK(lseek(fd, end - 500, SEEK_SET) == end - 500 && (other = memfd_create("a", 0)) >= 0);
    CHECK(sendfile(other, fd, 0, 1000) == 500 && pread(other, buffer, 1000, 0) == 500);
    has(buffer, 500, end - 500);
    close(other), close(fd);
    /* Processes. */
    fd = new_file(O_RDWR);
    for (int i = 0; i < 300; i++) more(fd, 1000);
    pid_t child = fork();
    if (child == 0) {
        CHECK(fcntl(fd, F_SETFL, O_APPEND) == 0 && lseek(fd, 0, SEEK_SET) == 0);
        more(fd, 1000);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0 && fcntl(fd, F_SETFL, 0) == 0);
    end += 1000;
    CHECK(lseek(fd, 0, SEEK_CUR) == end);
    for (int i = 0; i < 30; i++) more(fd, 100);
    has_all(fd, end);
    close(fd);
    fd = new_file(O_RDWR);
    for (int i = 0; i < 300; i++) more(fd, 1000);
    CHECK((child = vfork()) >= 0);
    if (child == 0) {
        dup2(fd, 1);
        execlp("printf", "printf", "abc", (char *)0);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0 && size_of(fd) == end + 3);
    CHECK(pread(fd, buffer, 10, end) == 3 && memcmp(buffer, "abc", 3) == 0);
    close(fd);
    /* A killed program leaves what it has written. */
    child = fork();
    if (child == 0) {
        fd = new_file(O_WRONLY);
        for (int i = 0; i < 300; i++) more(fd, 1000);
        kill(getpid(), SIGKILL);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK((fd = open(grown_path, O_RDWR)) >= 0);
    has_all(fd, 302000);
    close(fd);
    /* A limit of the size. */
    child = fork();
    if (child == 0) {
        struct rlimit limit;
        fd = new_file(O_RDWR);
        for (int i = 0; i < 300; i++) more(fd, 1000);
        signal(SIGXFSZ, SIG_IGN);
        CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
        limit.rlim_cur = end + 100;
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        CHECK(write(fd, expected + end, 1000) == 100 && write(fd, expected, 1) == -1 && errno == EFBIG);
        close(fd);
        fd = open(grown_path, O_RDWR | O_TRUNC);
        for (int i = 0; i < 400; i++) {
            ssize_t done = pwrite(fd, expected, 1000, i * 1000);
            CHECK(done == 1000 || (i >= 302 && (done == 100 || (done == -1 && errno == EFBIG))));
        }
        CHECK(size_of(fd) == (off_t)limit.rlim_cur);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    /* Long records. */
    fd = open(grown_path, O_RDWR | O_TRUNC);
    static unsigned char record[16 << 20];
    for (size_t i = 0; i < sizeof record; i++) record[i] = byte_at(i);
    for (int i = 0; i < 3; i++) CHECK(write(fd, record, sizeof record) == sizeof record);
    CHECK(size_of(fd) == 3 * sizeof record && pread(fd, buffer, 1000, 2 * sizeof record - 500) == 1000);
    for (int i = 0; i < 500; i++) CHECK(buffer[i] == byte_at(sizeof record - 500 + i));
    CHECK(memcmp(buffer + 500, expected, 500) == 0);
    close(fd);
    CHECK(unlink(grown_path) == 0);
}

/* Threads that write at the shared position of a new file: each record is there once and whole. */
static void *appender(void *number) {
    unsigned char record[500];
    memset(record, (intptr_t)number, sizeof record);
    for (int i = 0; i < 500; i++) CHECK(write(shared_fd, record, sizeof record) == sizeof record);
    return 0;
}

static void growth_by_threads(void) {
    pthread_t all[4];
    unsigned char record[500];
    int count[5] = {0};
    CHECK((shared_fd = open(grown_path, O_RDWR | O_CREAT | O_TRUNC, 0644)) >= 0);
    for (intptr_t i = 1; i <= 4; i++) CHECK(pthread_create(&all[i - 1], 0, appender, (void *)i) == 0);
    for (int i = 0; i < 4; i++) pthread_join(all[i], 0);
    CHECK(size_of(shared_fd) == 4 * 500 * 500 && lseek(shared_fd, 0, SEEK_CUR) == 4 * 500 * 500);
    for (int i = 0; i < 4 * 500; i++) {
        CHECK(pread(shared_fd, record, 500, i * 500) == 500 && record[0] >= 1 && record[0] <= 4);
        for (int at = 1; at < 500; at++) CHECK(record[at] == record[0]);
        count[record[0]]++;
    }
    for (int i = 1; i <= 4; i++) CHECK(count[i] == 500);
    close(shared_fd);
    CHECK(unlink(grown_path) == 0);
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    make_file(arguments[1]);
    snprintf(grown_path, sizeof grown_path, "%s.grown", path);
    positions(), vectors(), bad_buffers(), handlers(), reused_numbers(), appends(), processes();
    in_the_library(), times(), threads(), in_handlers(), growth(), growth_by_threads();
    check_file();
    return 0;
}

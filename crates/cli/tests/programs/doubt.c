/* Checks of frit exec: calls that fail, threads that use an open file while others begin processes, cancellation,
   and jumps out of signal handlers. The argument is a file in the mount, which is made. Exit code 0: all as on any
   file system. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#define SIZE (1 << 20)
/* Lines of a log. */
#define LINES 800
#include "check.h"

static char *at_end_of_page(size_t len) {
    char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && mprotect(page + 4096, 4096, PROT_NONE) == 0);
    return page + 4096 - len;
}

/* A call that fails, or closes nothing, leaves the position. */
static void failed_calls(void) {
    char buffer[100];
    for (int how = 0; how < 5; how++) {
        int fd = fresh(O_RDWR);
        CHECK(lseek(fd, 60, SEEK_SET) == 60 && read(fd, buffer, 50) == 50);
        switch (how) {
        case 0: CHECK(dup2(-1, fd) == -1); break;
        case 1: CHECK(dup3(0, fd, 12345) == -1); break;
        case 2: CHECK(syscall(SYS_dup2, -1, fd) == -1); break;
        case 3: CHECK(close_range(fd, fd, 64) == -1 && errno == EINVAL); break;
        case 4: CHECK(syscall(SYS_close_range, fd, fd, CLOSE_RANGE_CLOEXEC) == 0); break;
        }
        CHECK(lseek(fd, 0, SEEK_CUR) == 110 && read(fd, buffer, 10) == 10);
        CHECK(memcmp(buffer, expected + 110, 10) == 0 && close(fd) == 0);
    }
}

/* Arguments that the kernel refuses before it looks at the file. */
static void refused_arguments(void) {
    int fd = fresh(O_RDWR), left, sockets[2];
    char buffer[100], *none = at_end_of_page(0);
    struct iovec *parts = (struct iovec *)at_end_of_page(sizeof *parts);
    parts[0] = (struct iovec){buffer, 10};
    CHECK(preadv(fd, parts, 1, 0) == 10 && memcmp(buffer, expected, 10) == 0);
    for (int direct = 0; direct < 2; direct++) {
        CHECK(preadv(fd, parts, 2, 0) == -1 && errno == EFAULT);
        CHECK(pwritev(fd, (struct iovec *)none, 1, 0) == -1 && errno == EFAULT);
        CHECK(readv(fd, (struct iovec *)8, 1) == -1 && errno == EFAULT);
        CHECK(readv(fd, parts, 1025) == -1 && readv(fd, parts, -1) == -1 && errno == EINVAL);
        CHECK(read(fd, buffer, SIZE_MAX) == -1 && errno == EFAULT);
        CHECK(pread(fd, buffer, SIZE_MAX, 0) == -1 && errno == EFAULT);
        CHECK(pread(fd, (void *)UINT64_C(0xffff800000000000), 10, SIZE) == -1 && errno == EFAULT);
        CHECK(pread(fd, buffer, 10, INT64_MAX) == -1 && errno == EINVAL);
        CHECK(lseek(fd, 10, SEEK_SET) == 10 && lseek(fd, INT64_MAX, SEEK_CUR) == -1 && errno == EINVAL);
        CHECK(lseek(fd, 0, SEEK_CUR) == 10 && ioctl(fd, FIONREAD, &left) == 0 && left == SIZE - 10);
        CHECK(sendmsg(fd, (struct msghdr *)8, 0) == -1 && (errno == ENOTSOCK || errno == EFAULT));
        CHECK(lseek(fd, 0, SEEK_SET) == 0);
    }
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    CHECK(sendmsg(sockets[0], (struct msghdr *)none, 0) == -1 && errno == EFAULT);
    close(sockets[0]), close(sockets[1]), close(fd);
    /* Many buffers. */
    fd = fresh(O_RDWR);
    struct iovec many[1000];
    static char bytes[1000];
    for (int i = 0; i < 1000; i++) many[i] = (struct iovec){bytes + i, 1};
    CHECK(lseek(fd, 5, SEEK_SET) == 5 && readv(fd, many, 1000) == 1000 && lseek(fd, 0, SEEK_CUR) == 1005);
    CHECK(memcmp(bytes, expected + 5, 1000) == 0 && close(fd) == 0);
    /* The access mode for ioctl(2) alone. */
    CHECK((fd = open(path, 3)) >= 0);
    for (int i = 0; i < 20; i++) CHECK(pread(fd, buffer, 10, 0) == -1 && pwrite(fd, buffer, 10, 0) == -1 && errno == EBADF);
    close(fd);
}

/* A thread that uses the position of a file while another one begins processes, or makes other calls before which
   positions are given to the kernel. */
static int used_fd;
static char log_path[4096];
static int has_begun;
static void *log_writer(void *unused) {
    (void)unused;
    char line[16];
    for (int i = 0; i < LINES; i++) {
        snprintf(line, sizeof line, "%014d\n", i);
        CHECK(write(used_fd, line, 15) == 15);
        __atomic_store_n(&has_begun, 1, __ATOMIC_SEQ_CST);
    }
    return 0;
}

static int is_over;
static void *log_reader(void *unused) {
    (void)unused;
    static char all[15 * LINES + 1000];
    size_t len = 0;
    for (int last = 0; !last || len < 15 * LINES;) {
        last = __atomic_load_n(&is_over, __ATOMIC_SEQ_CST);
        ssize_t got = read(used_fd, all + len, 1000);
        CHECK(got >= 0 && (got > 0 || !last || len == 15 * LINES));
        len += got;
    }
    for (int i = 0; i < LINES; i++) CHECK(atoi(all + i * 15) == i);
    return 0;
}

static void begin_process(int how) {
    if (how == 0) {
        pid_t child = fork();
        int status;
        if (child == 0) _exit(0);
        CHECK(waitpid(child, &status, 0) == child);
    } else {
        syscall(SYS_getppid);
    }
}

static void positions_of_threads(void) {
    pthread_t thread;
    for (int round = 0; round < 24; round++) {
        CHECK((used_fd = open(log_path, O_RDWR | O_CREAT | O_TRUNC, 0644)) >= 0);
        has_begun = 0;
        CHECK(pthread_create(&thread, 0, log_writer, 0) == 0);
        while (!__atomic_load_n(&has_begun, __ATOMIC_SEQ_CST)) {}
        usleep(round % 10 * 50);
        begin_process(round % 2);
        pthread_join(thread, 0);
        static char all[15 * LINES + 1];
        CHECK(lseek(used_fd, 0, SEEK_CUR) == 15 * LINES);
        CHECK(pread(used_fd, all, sizeof all, 0) == 15 * LINES);
        for (int i = 0; i < LINES; i++) CHECK(atoi(all + i * 15) == i);
        close(used_fd);
    }
    /* Whoever reads a file that grows gets each byte once. */
    for (int round = 0; round < 10; round++) {
        int fd = open(log_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        CHECK(fd >= 0 && (used_fd = open(log_path, O_RDONLY)) >= 0);
        is_over = 0;
        CHECK(pthread_create(&thread, 0, log_reader, 0) == 0);
        char line[16];
        for (int i = 0; i < LINES; i++) {
            snprintf(line, sizeof line, "%014d\n", i);
            CHECK(write(fd, line, 15) == 15);
            if (i == LINES / 2) begin_process(round % 2);
        }
        __atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
        pthread_join(thread, 0);
        close(fd), close(used_fd);
    }
    CHECK(unlink(log_path) == 0);
}

/* Threads that open, write and close files of their own, while another one begins processes, which use the same
   numbers. A file has what was written to it, and no child waits for a thread that it does not have. */
static void *own_files(void *number) {
    char name[4200];
    for (int round = 0; round < 80; round++) {
        for (int part = 0; part < 2; part++) {
            snprintf(name, sizeof name, "%s.%d.%d", path, (int)(intptr_t)number, part);
            int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), size = part ? 8 : 64;
            CHECK(fd >= 0);
            for (int i = 0; i < 30; i++) CHECK(write(fd, expected + i * size, size) == size);
            unsigned char found[30 * 64 + 1];
            CHECK(pread(fd, found, sizeof found, 0) == 30 * size && memcmp(found, expected, 30 * size) == 0);
            close(fd);
        }
    }
    for (int part = 0; part < 2; part++) {
        snprintf(name, sizeof name, "%s.%d.%d", path, (int)(intptr_t)number, part);
        CHECK(unlink(name) == 0);
    }
    __atomic_add_fetch(&is_over, 1, __ATOMIC_SEQ_CST);
    return 0;
}

static void files_of_threads(void) {
    pthread_t all[3];
    is_over = 0;
    for (intptr_t i = 0; i < 3; i++) CHECK(pthread_create(&all[i], 0, own_files, (void *)i) == 0);
    for (int how = 0; __atomic_load_n(&is_over, __ATOMIC_SEQ_CST) < 3; how++) {
        pid_t child = fork();
        int status;
        if (child == 0) {
            alarm(30);
            for (int fd = 3; fd < 12; fd++) {
                if (how % 3 == 0) lseek(fd, 0, SEEK_CUR);
                if (how % 3 == 1) dup2(0, fd);
            }
            if (how % 3 == 2) closefrom(3);
            _exit(0);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    for (int i = 0; i < 3; i++) pthread_join(all[i], 0);
}

/* A child that is begun while other threads move positions between library and kernel waits for none of them. They
   open their files anew: a fork gives the positions of those that are open to the kernel. */
static void *moves(void *number) {
    char name[4200];
    snprintf(name, sizeof name, "%s.%d", path, (int)(intptr_t)number);
    while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
        int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
        CHECK(fd >= 0 && write(fd, expected, SIZE / 4) == SIZE / 4);
        for (int i = 0; i < 5; i++) {
            struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_CUR, .l_len = 1};
            CHECK(fcntl(fd, F_GETLK, &lock) == 0);
        }
        CHECK(lseek(fd, 0, SEEK_CUR) == SIZE / 4 && close(fd) == 0);
    }
    CHECK(unlink(name) == 0);
    return 0;
}

static void forks_beside_moves(void) {
    pthread_t all[3];
    is_over = 0;
    for (intptr_t i = 0; i < 3; i++) CHECK(pthread_create(&all[i], 0, moves, (void *)i) == 0);
    for (int i = 0; i < 300; i++) {
        pid_t child = fork();
        int status;
        if (child == 0) {
            alarm(30);
            for (int fd = 3; fd < 12; fd++) lseek(fd, 0, SEEK_CUR);
            _exit(0);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 3; i++) pthread_join(all[i], 0);
}

/* A file that one thread opens while another one forks: parent and child share its position. */
enum { CLOSED = -1, ROUNDS = 300 };
static int opened_fd = CLOSED, may_read, may_close;
static void *opens(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        int fd = open(path, O_RDONLY);
        __atomic_store_n(&opened_fd, fd, __ATOMIC_SEQ_CST);
        while (!__atomic_exchange_n(&may_read, 0, __ATOMIC_SEQ_CST)) usleep(20);
        char buffer[10];
        for (int i = 0; i < 12; i++) CHECK(read(fd, buffer, 10) == 10);
        __atomic_store_n(&opened_fd, CLOSED, __ATOMIC_SEQ_CST);
        while (!__atomic_load_n(&may_close, __ATOMIC_SEQ_CST)) usleep(20);
        CHECK(close(fd) == 0);
        __atomic_store_n(&may_close, 0, __ATOMIC_SEQ_CST);
    }
    return 0;
}

static int fd_of_other(int is_open) {
    int fd;
    while (((fd = __atomic_load_n(&opened_fd, __ATOMIC_SEQ_CST)) != CLOSED) != is_open) usleep(10);
    return fd;
}

static void opens_beside_forks(int by_system_call) {
    pthread_t thread;
    CHECK(pthread_create(&thread, 0, opens, 0) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        int gate[2], fd, status;
        CHECK(pipe(gate) == 0);
        usleep(round * 7 % 300);
        pid_t child = by_system_call ? syscall(SYS_fork) : fork();
        if (child == 0) {
            char buffer[10];
            /* It reads if it has the file, whose number comes later. */
            CHECK(close(gate[1]) == 0 && read(gate[0], &fd, sizeof fd) == sizeof fd);
            int has_file = lseek(fd, 0, SEEK_CUR) >= 0;
            for (int i = 0; has_file && i < 12; i++) CHECK(read(fd, buffer, 10) == 10);
            _exit(has_file ? 0 : 2);
        }
        fd = fd_of_other(1);
        CHECK(child > 0 && write(gate[1], &fd, sizeof fd) == sizeof fd);
        __atomic_store_n(&may_read, 1, __ATOMIC_SEQ_CST);
        CHECK(waitpid(child, &status, 0) == child && (status == 0 || WEXITSTATUS(status) == 2));
        fd_of_other(0);
        CHECK(lseek(fd, 0, SEEK_CUR) == (status == 0 ? 240 : 120));
        /* The next child has none of the descriptors of this round. */
        __atomic_store_n(&may_close, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&may_close, __ATOMIC_SEQ_CST)) usleep(20);
        close(gate[0]), close(gate[1]);
    }
    pthread_join(thread, 0);
}

/* Calls that show the position to the kernel do not change it. */
static void *asks_for_locks(void *unused) {
    (void)unused;
    while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_CUR, .l_len = 1};
        int left;
        CHECK(fcntl(used_fd, F_GETLK, &lock) == 0 && ioctl(used_fd, FIONREAD, &left) == 0);
    }
    return 0;
}

static void shown_positions(void) {
    pthread_t thread;
    /* With O_APPEND it is not direct. */
    int other = open(path, O_RDONLY | O_APPEND);
    used_fd = fresh(O_RDONLY);
    is_over = 0;
    CHECK(other >= 0 && pthread_create(&thread, 0, asks_for_locks, 0) == 0);
    for (int round = 0; round < 4; round++) {
        CHECK(lseek(used_fd, 0, SEEK_SET) == 0);
        for (size_t at = 0; at < SIZE / 4; at += 16) {
            unsigned char found[16];
            /* A read through the mount ends the lease. */
            if (at % 4096 == 0) CHECK(pread(other, found, 16, at) == 16);
            CHECK(read(used_fd, found, 16) == 16 && memcmp(found, expected + at, 16) == 0);
        }
    }
    is_over = 1;
    pthread_join(thread, 0);
    close(other), close(used_fd);
}

/* Reads to the end by two threads leave the position there. */
static void *read_to_end(void *unused) {
    (void)unused;
    char buffer[4096];
    while (read(used_fd, buffer, sizeof buffer) > 0) {}
    return 0;
}

static void ends(void) {
    for (int round = 0; round < 100; round++) {
        pthread_t thread;
        CHECK((used_fd = open(path, O_RDONLY)) >= 0 && lseek(used_fd, SIZE - 10, SEEK_SET) == SIZE - 10);
        CHECK(pthread_create(&thread, 0, read_to_end, 0) == 0);
        read_to_end(0);
        pthread_join(thread, 0);
        CHECK(lseek(used_fd, 0, SEEK_CUR) == SIZE && close(used_fd) == 0);
    }
}

/* Reads and writes are cancellation points (pthreads(7)). */
static int how_to_access;
static void *accesses(void *unused) {
    (void)unused;
    char buffer[64];
    memcpy(buffer, expected, sizeof buffer);
    for (;;) {
        struct iovec part = {buffer, sizeof buffer};
        switch (how_to_access) {
        case 0: pread(used_fd, buffer, sizeof buffer, 0); break;
        case 1: pwrite(used_fd, buffer, sizeof buffer, 0); break;
        case 2: lseek(used_fd, 0, SEEK_SET), read(used_fd, buffer, sizeof buffer); break;
        case 3: lseek(used_fd, 0, SEEK_SET), write(used_fd, buffer, sizeof buffer); break;
        case 4: preadv(used_fd, &part, 1, 0); break;
        case 5: lseek(used_fd, 0, SEEK_SET), writev(used_fd, &part, 1); break;
        }
    }
}

static void cancellation(void) {
    for (how_to_access = 0; how_to_access < 6; how_to_access++) {
        pthread_t thread;
        void *result;
        used_fd = fresh(O_RDWR);
        CHECK(pthread_create(&thread, 0, accesses, 0) == 0);
        usleep(20000);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 30;
        CHECK(pthread_cancel(thread) == 0 && pthread_timedjoin_np(thread, &result, &until) == 0);
        CHECK(result == PTHREAD_CANCELED);
        CHECK(pread(used_fd, (char[10]){0}, 10, 0) == 10 && close(used_fd) == 0);
    }
}

/* A handler may leave a read or a write by a jump. Nothing stays in the way of others. */
static sigjmp_buf jump;
static void on_alarm(int signal) {
    (void)signal;
    siglongjmp(jump, 1);
}

static void jumps(void) {
    static char buffer[SIZE];
    for (int writes = 0; writes < 2; writes++) {
        int fd = fresh(O_RDWR);
        struct sigaction action = {.sa_handler = on_alarm};
        CHECK(sigaction(SIGALRM, &action, 0) == 0);
        memcpy(buffer, expected, SIZE);
        for (volatile int i = 0; i < 60; i++) {
            if (sigsetjmp(jump, 1)) continue;
            struct itimerval soon = {{0, 0}, {0, 1000 + i * 17}};
            CHECK(setitimer(ITIMER_REAL, &soon, 0) == 0);
            for (;;) {
                if (writes) pwrite(fd, buffer, SIZE, 0);
                else pread(fd, buffer, SIZE, 0);
            }
        }
        CHECK(ftruncate(fd, SIZE - 4096) == 0 && pwrite(fd, expected + SIZE - 4096, 4096, SIZE - 4096) == 4096);
        close(fd);
    }
}

/* Accesses in handlers of faults, and while faults are blocked. */
static int handler_fd;
static volatile int handled;
static jmp_buf plain_jump;
static void reads_badly(int signal) {
    (void)signal;
    char buffer[10];
    handled = pread(handler_fd, (void *)16, 10, 0) == -1 && errno == EFAULT && pread(handler_fd, buffer, 10, 0) == 10;
}
static void reads_badly_and_jumps(int signal) {
    reads_badly(signal);
    longjmp(plain_jump, 1);
}
void (*__sysv_signal(int, void (*)(int)))(int);
static void never(int signal) {
    (void)signal;
    _exit(7);
}

static void fault_handlers(void) {
    handler_fd = fresh(O_RDONLY);
    struct sigaction action = {.sa_handler = reads_badly};
    sigfillset(&action.sa_mask);
    CHECK(sigaction(SIGUSR1, &action, 0) == 0 && raise(SIGUSR1) == 0 && handled);
    sigset_t others;
    sigfillset(&others), sigdelset(&others, SIGALRM);
    CHECK(signal(SIGALRM, reads_badly) != SIG_ERR);
    handled = 0;
    ualarm(10000, 0);
    CHECK(sigsuspend(&others) == -1 && errno == EINTR && handled);
    for (int i = 0; i < 2; i++) {
        action = (struct sigaction){.sa_handler = reads_badly_and_jumps};
        CHECK(sigaction(SIGSEGV, &action, 0) == 0);
        sigset_t segv;
        sigemptyset(&segv), sigaddset(&segv, SIGSEGV);
        handled = 0;
        if (setjmp(plain_jump) == 0) *(volatile int *)8 = 1;
        CHECK(handled && pread(handler_fd, (void *)16, 10, 0) == -1 && errno == EFAULT);
        CHECK(sigprocmask(SIG_UNBLOCK, &segv, 0) == 0);
        CHECK(pread(handler_fd, (void *)16, 10, 0) == -1 && errno == EFAULT);
    }
    CHECK(__sysv_signal(SIGSEGV, never) != SIG_ERR);
    CHECK(pread(handler_fd, (void *)16, 10, 0) == -1 && errno == EFAULT);
    CHECK(signal(SIGSEGV, SIG_DFL) == never);
    close(handler_fd);
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    make_file(arguments[1]);
    snprintf(log_path, sizeof log_path, "%s.log", path);
    failed_calls(), refused_arguments(), positions_of_threads(), files_of_threads(), forks_beside_moves(), opens_beside_forks(0);
    shown_positions(), ends(), cancellation(), jumps(), fault_handlers();
    /* The last one: direct access does not know when a fork by syscall(2) ends. */
    opens_beside_forks(1);
    check_file();
    return 0;
}

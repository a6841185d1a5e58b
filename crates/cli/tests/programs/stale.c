/* Checks of frit exec: what a process writes through the mount, it reads at once, while others read the same pages, and
   others ask for direct access to the file. The arguments are a file in the mount, which is made, and a time in seconds.
   Exit code 0: all as on any file system. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define SIZE (512 << 10)
#include "check.h"

enum { PLACES = 2 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static off_t place(int number) { return number * 40960 + 128; }

/* Ends direct access of this process: a handler may be one that the library does not know. */
static void leave(void) { syscall(SYS_rt_sigaction, SIGUSR2, 0, 0, 8); }

static void writes(int number, double end) {
    leave();
    int fd = open(path, O_RDWR);
    long stale = 0;
    for (unsigned long count = 1, found; now() < end; count++) {
        CHECK(pwrite(fd, &count, 8, place(number)) == 8 && pread(fd, &found, 8, place(number)) == 8);
        stale += found != count;
    }
    if (stale) fprintf(stderr, "%ld stale reads\n", stale);
    exit(stale != 0);
}

static void reads(int number, double end) {
    leave();
    int fd = open(path, O_RDONLY);
    for (unsigned long found; now() < end;) CHECK(pread(fd, &found, 8, place(number)) == 8);
    exit(0);
}

static void asks(int number, double end) {
    static char buffer[300 << 10];
    (void)number;
    while (now() < end) {
        int fd = open(path, O_RDONLY);
        CHECK(pread(fd, buffer, sizeof buffer, 100000) == sizeof buffer && close(fd) == 0);
    }
    exit(0);
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    make_file(arguments[1]);
    double end = now() + atof(arguments[2]);
    void (*const all[])(int, double) = {writes, reads, asks};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < PLACES; k++) if (fork() == 0) all[i](k, end);
    int status, failed = 0;
    while (wait(&status) > 0) failed |= status;
    CHECK(!failed);
    puts("all as expected");
    return 0;
}

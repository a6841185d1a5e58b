/* What the checks of frit exec share: a file in the mount with known bytes. Define SIZE, its size, before. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "%s:%d: %s (errno %d)\n", __func__, __LINE__, #x, errno); exit(1); } } while (0)

static const char *path;
static unsigned char expected[SIZE];

static unsigned char byte_at(size_t at) { return at * 7 + (at >> 8) * 13 + 1; }

/* Makes the file. */
static void make_file(const char *name) {
    path = name;
    for (size_t i = 0; i < SIZE; i++) expected[i] = byte_at(i);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0 && write(fd, expected, SIZE) == SIZE && close(fd) == 0);
}

/* An open file whose next accesses are direct. */
static int fresh(int flags) {
    int fd = open(path, flags);
    char buffer[16];
    CHECK(fd >= 0);
    for (int i = 0; i < 20 && (flags & O_ACCMODE) != O_WRONLY; i++) CHECK(pread(fd, buffer, 16, i * 16) == 16);
    return fd;
}

static void has(const void *bytes, size_t len, size_t at) { CHECK(memcmp(bytes, expected + at, len) == 0); }

/* Checks the whole file at the end. */
static void check_file(void) {
    static unsigned char all[SIZE];
    int fd = fresh(O_RDONLY);
    CHECK(pread(fd, all, SIZE, 0) == SIZE);
    has(all, SIZE, 0);
    puts("all as expected");
}

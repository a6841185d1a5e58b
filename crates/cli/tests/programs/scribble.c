/* A hostile process with the shared memory of a mount, and honest ones that use files of the mount. Knows only the
   layout of the memory from docs/design/direct.md: no code is shared with frit.

   scribble SEGMENT UID SEED SECONDS   writes random words at random places, as a user
   honest DIRECTORY UID SEED SECONDS   writes, reads, truncates, renames and removes files, and compares each byte
   reads DIRECTORY UID SEED SECONDS    reads all files of a directory, whatever they have; under `frit exec`
   extends FILE UID SEED SECONDS       appends to a file of its own; under `frit exec`
   All end by themselves. Exit code 0: all as expected. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "%s:%d: %s (errno %d)\n", __func__, __LINE__, #x, errno); exit(1); } } while (0)

/* Lines of the segment, in bytes: a page for the head, then slots, files and append space. */
enum { HEAD = 4096, LINE = 64, SLOTS = 4096, FILES = 16384, BYTES = HEAD + LINE * (SLOTS + 2 * FILES) };
enum { FILES_EACH = 6, SIZE_MAX_EACH = 300000 };

static uint64_t state;

static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t below(uint64_t most) { return draw() % most; }

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

/* A place of a word: anywhere, or where words are in use. */
static size_t place(void) {
    static const size_t part[] = {0, HEAD, HEAD + LINE * SLOTS, HEAD + LINE * (SLOTS + FILES)};
    size_t at = below(4);
    if (below(8) == 0) return below(BYTES / 8) * 8;
    return at == 0 ? below(9) * 8 : part[at] + below(24) * LINE + below(6) * 8;
}

static uint64_t word(const volatile uint64_t *words) {
    switch (below(9)) {
    case 0: return 0;
    case 1: return ~0ull;
    case 2: return below(100);
    case 3: return below(1 << 24);
    case 4: return words[place() / 8];
    case 5: return words[place() / 8] + below(3) - 1;
    case 6: return (below(100) << 32) | (below(4) ? (uint64_t)getpid() : 1);
    case 7: return (below(100) << 32) | (1 + below(24));
    default: return draw();
    }
}

/* A child that leaves an access in a slot, and then stops, dies or goes on. */
static void stop_in_access(volatile uint64_t *words, pid_t *stopped) {
    if (*stopped > 0) {
        kill(*stopped, SIGKILL);
        waitpid(*stopped, 0, 0);
    }
    *stopped = fork();
    if (*stopped == 0) {
        volatile uint64_t *slot = words + (HEAD + LINE * below(24)) / 8;
        slot[1] = (1ull << 32) | (uint64_t)getpid();
        slot[0] = (9ull << 32) | (1 + below(24));
        if (below(2)) raise(SIGSTOP);
        _exit(0);
    }
}

static void scribble(const char *segment, double end) {
    int fd = open(segment, O_RDWR);
    CHECK(fd >= 0);
    volatile uint64_t *words = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(words != MAP_FAILED);
    unsigned long count = 0;
    pid_t stopped = 0;
    while (now() < end) {
        for (int i = below(40); i >= 0; i--, count++) words[place() / 8] = word(words);
        if (below(400) == 0) stop_in_access(words, &stopped);
        if (below(3) == 0) usleep(below(300));
    }
    if (stopped > 0) kill(stopped, SIGKILL);
    printf("%lu words\n", count);
}

/* Calls that a stopped program may delay fail with EBUSY, and are made again. */
static int again(int result) {
    if (result == 0 || errno != EBUSY) {
        CHECK(result == 0);
        return 0;
    }
    usleep(20000);
    return 1;
}

static struct { int number; size_t size; unsigned char *bytes; } files[FILES_EACH];

static void honest(const char *directory, double end) {
    static unsigned char found[SIZE_MAX_EACH + 1];
    char name[4096], other[4096];
    unsigned long count = 0;
    for (int i = 0; i < FILES_EACH; i++) {
        files[i].number = i;
        CHECK((files[i].bytes = calloc(1, SIZE_MAX_EACH)) != 0);
    }
    for (int next = FILES_EACH; now() < end; count++) {
        int i = below(FILES_EACH);
        unsigned char *bytes = files[i].bytes;
        snprintf(name, sizeof name, "%s/%d", directory, files[i].number);
        int fd = open(name, O_RDWR | O_CREAT, 0644);
        CHECK(fd >= 0);
        size_t at = below(SIZE_MAX_EACH), len = 1 + below(SIZE_MAX_EACH - at);
        switch (below(6)) {
        case 0: case 1:
            for (size_t k = 0; k < len; k++) bytes[at + k] = draw();
            CHECK(pwrite(fd, bytes + at, len, at) == (ssize_t)len);
            if (at + len > files[i].size) files[i].size = at + len;
            break;
        case 2:
            while (again(ftruncate(fd, at))) CHECK(now() < end + 30);
            if (at < files[i].size) memset(bytes + at, 0, files[i].size - at);
            files[i].size = at;
            break;
        case 3:
            snprintf(other, sizeof other, "%s/%d", directory, next);
            CHECK(rename(name, other) == 0);
            files[i].number = next++;
            break;
        case 4: CHECK(fsync(fd) == 0); break;
        default: break;
        }
        CHECK(pread(fd, found, sizeof found, 0) == (ssize_t)files[i].size);
        CHECK(memcmp(found, bytes, files[i].size) == 0);
        CHECK(close(fd) == 0);
        if (below(50) == 0) {
            snprintf(name, sizeof name, "%s/%d", directory, files[i].number);
            while (again(unlink(name))) CHECK(now() < end + 30);
            memset(bytes, 0, files[i].size);
            files[i].size = 0;
            files[i].number = next++;
        }
    }
    printf("%lu operations\n", count);
}

static void reads(const char *directory, double end) {
    static char buffer[SIZE_MAX_EACH];
    char name[8192];
    while (now() < end) {
        DIR *all = opendir(directory);
        CHECK(all != 0);
        for (struct dirent *entry; (entry = readdir(all)) && now() < end;) {
            snprintf(name, sizeof name, "%s/%s", directory, entry->d_name);
            int fd = open(name, O_RDONLY);
            for (int i = 0; fd >= 0 && i < 200; i++)
                if (pread(fd, buffer, 1 + below(5000), below(SIZE_MAX_EACH)) < 0) break;
            if (fd >= 0) close(fd);
        }
        closedir(all);
    }
}

static void extends(const char *name, double end) {
    static char buffer[5000];
    while (now() < end) {
        int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
        for (int i = 0; fd >= 0 && i < 300 && now() < end; i++)
            if (write(fd, buffer, 1 + below(sizeof buffer)) < 0) break;
        if (fd >= 0) close(fd);
    }
}

int main(int count, char **arguments) {
    CHECK(count == 6);
    uid_t user = atoi(arguments[3]);
    CHECK(setgroups(0, 0) == 0 && setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0);
    state = strtoull(arguments[4], 0, 10) * 0x9e3779b97f4a7c15 | 1;
    double end = now() + atof(arguments[5]);
    const char *what = arguments[1], *where = arguments[2];
    if (!strcmp(what, "scribble")) scribble(where, end);
    else if (!strcmp(what, "honest")) honest(where, end);
    else if (!strcmp(what, "reads")) reads(where, end);
    else if (!strcmp(what, "extends")) extends(where, end);
    else CHECK(!"a known role");
    return 0;
}

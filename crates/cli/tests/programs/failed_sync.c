// Files behind a page cache whose disk fails once: a library that is loaded before the C library (LD_PRELOAD).
//
// SYNC_FILES names a directory with media files (*.medium), and SYNC_DURABLE a directory in which each of them has a
// copy of what is durable. A sync of a medium copies the file there. The sync with number SYNC_FAILS of the medium
// SYNC_MEDIUM fails: pages that changed since its last sync are lost, and this caller alone is told, as Linux does.
// SYNC_LOG gets a line for it.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
#define FILES 16

struct file {
    dev_t device;
    ino_t inode;
    size_t bytes;
    char *now, *durable, name[64];
};

static struct file files[FILES];
static int count;
static long syncs, fails;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static char *mapped(const char *directory, const char *name, struct stat *meta) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, meta)) return 0;
    char *map = mmap(0, meta->st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return map == MAP_FAILED ? 0 : map;
}

__attribute__((constructor)) static void begin(void) {
    const char *from = getenv("SYNC_FILES"), *to = getenv("SYNC_DURABLE"), *when = getenv("SYNC_FAILS");
    if (!from || !to || !when) return;
    fails = atol(when);
    DIR *directory = opendir(from);
    for (struct dirent *entry; directory && count < FILES && (entry = readdir(directory));) {
        char *end = strrchr(entry->d_name, '.');
        struct stat meta, copy;
        if (!end || strcmp(end, ".medium")) continue;
        struct file *f = &files[count];
        f->durable = mapped(to, entry->d_name, &copy);
        f->now = mapped(from, entry->d_name, &meta);
        if (!f->durable || !f->now || copy.st_size != meta.st_size) abort();
        f->device = meta.st_dev, f->inode = meta.st_ino, f->bytes = meta.st_size;
        snprintf(f->name, sizeof f->name, "%s", entry->d_name);
        count++;
    }
    if (directory) closedir(directory);
}

static struct file *medium(int fd) {
    struct stat meta;
    if (!count || fstat(fd, &meta)) return 0;
    for (int i = 0; i < count; i++)
        if (files[i].inode == meta.st_ino && files[i].device == meta.st_dev) return &files[i];
    return 0;
}

static int synced(struct file *f) {
    pthread_mutex_lock(&lock);
    const char *only = getenv("SYNC_MEDIUM");
    int failed = only && !strcmp(only, f->name) && ++syncs == fails;
    long lost = 0;
    for (size_t at = 0; at < f->bytes; at += PAGE) {
        size_t n = f->bytes - at < PAGE ? f->bytes - at : PAGE;
        if (!memcmp(f->now + at, f->durable + at, n)) continue;
        lost++;
        if (failed) memcpy(f->now + at, f->durable + at, n);
        else memcpy(f->durable + at, f->now + at, n);
    }
    const char *log = getenv("SYNC_LOG");
    int out = failed && log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (out >= 0) {
        dprintf(out, "sync %ld failed, of %s: %ld pages lost", syncs, f->name, lost);
        close(out);
    }
    pthread_mutex_unlock(&lock);
    if (failed) errno = EIO;
    return failed ? -1 : 0;
}

int fdatasync(int fd) {
    struct file *f = medium(fd);
    return f ? synced(f) : (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd) {
    struct file *f = medium(fd);
    return f ? synced(f) : (int)syscall(SYS_fsync, fd);
}

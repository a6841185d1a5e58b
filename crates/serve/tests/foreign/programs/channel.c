/* Attacks on command files: one process opens a command file, another one writes to it, or the same one with
 * other rights. It prints the line of the result, or the error of the write. Run as root; the attacker is USER.
 *
 *   channel DIRECTORY CASE WAY SHARE INSTRUCTION
 *
 * CASE  own        root opens and writes
 *       unbegun    root opens and writes, and does not begin
 *       user       the user opens and writes
 *       deputy     the user opens, root writes
 *       heir       root opens, the user writes
 *       dropped    root opens, becomes the user, and writes
 *       thread     root opens, a thread of it becomes the user and writes
 *       first      root opens; the user writes the first half, root the second one
 *       second     root opens; root writes the first half, the user the second one
 *       reused     root opens, and ends; a process with its number writes
 *       begins     root opens; the user begins
 *       stalled    root opens and writes, while a write of the user to a channel of its own waits for the page with
 *                  its text
 *       personality  the user opens and writes, by a ring of io_uring with the rights of root
 *       exec       the user opens, and executes INSTRUCTION with the file as its output
 * WAY   write, writev, splice, sendfile, ring (io_uring), pwritev2, map (shared memory map)
 * SHARE 0 or 1 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRIT_ISP_BEGIN _IOW('F', 0x75, uint32_t)
#define USER 1000

static char path[4096];
static const char *way;
static uint32_t share;

static void fail(const char *what) {
    printf("%s: %s\n", what, strerror(errno));
    exit(3);
}

static int begin(int fd) { return ioctl(fd, FRIT_ISP_BEGIN, &share); }

static int open_channel(void) {
    int fd = open(path, O_RDWR);
    if (fd < 0) fail("open");
    return fd;
}

static void become_user(void) {
    if (setgroups(0, NULL) || setgid(USER) || setuid(USER)) fail("setuid");
}

static int ring = -1, personality;
static struct io_uring_params p;

static int make_ring(void) {
    if (ring < 0) ring = syscall(SYS_io_uring_setup, 4, &p);
    return ring;
}

static ssize_t by_ring(int fd, const char *text, size_t len) {
    /* One of its own for each process, except for the personality, which belongs to its ring. */
    if (!personality) ring = -1, memset(&p, 0, sizeof p);
    if (make_ring() < 0) return -1;
    char *sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    char *cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE, MAP_SHARED,
                    ring, IORING_OFF_CQ_RING);
    struct io_uring_sqe *sqe = mmap(NULL, p.sq_entries * sizeof *sqe, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    if (sq == MAP_FAILED || cq == MAP_FAILED || sqe == MAP_FAILED) return -1;
    memset(sqe, 0, sizeof *sqe);
    /* In a worker of the kernel, and not in this thread. */
    sqe->opcode = IORING_OP_WRITE, sqe->flags = IOSQE_ASYNC, sqe->fd = fd;
    sqe->addr = (uintptr_t)text, sqe->len = len, sqe->off = -1, sqe->personality = personality;
    ((uint32_t *)(sq + p.sq_off.array))[0] = 0;
    __atomic_store_n((uint32_t *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) return -1;
    int done = ((struct io_uring_cqe *)(cq + p.cq_off.cqes))[0].res;
    if (done < 0) return errno = -done, -1;
    return done;
}

static ssize_t put(int fd, const char *text, size_t len) {
    struct iovec part = {(void *)text, len};
    int pipes[2];
    if (!strcmp(way, "writev")) return writev(fd, &part, 1);
    if (!strcmp(way, "pwritev2")) return pwritev2(fd, &part, 1, -1, 0);
    if (!strcmp(way, "ring")) return by_ring(fd, text, len);
    if (!strcmp(way, "splice")) {
        if (pipe(pipes) || vmsplice(pipes[1], &part, 1, 0) != (ssize_t)len) fail("pipe");
        return splice(pipes[0], NULL, fd, NULL, len, 0);
    }
    if (!strcmp(way, "sendfile")) {
        int from = memfd_create("text", 0);
        if (write(from, text, len) != (ssize_t)len || lseek(from, 0, SEEK_SET)) fail("memfd");
        return sendfile(fd, from, NULL, len);
    }
    if (!strcmp(way, "map")) {
        char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED) return -1;
        /* Behind the end of the file, this is SIGBUS. */
        memcpy(map, text, len);
        return msync(map, 4096, MS_SYNC) ? -1 : (ssize_t)len;
    }
    return write(fd, text, len);
}

static void give(int fd, const char *text, size_t len) {
    if (put(fd, text, len) != (ssize_t)len) fail("write");
}

static void show(int fd) {
    char line[65536];
    ssize_t len = read(fd, line, sizeof line - 1);
    if (len < 0) fail("read");
    line[len] = 0;
    printf("%s", len ? line : "no result\n");
    exit(0);
}

struct job { int fd; const char *text; size_t len; };

static void *in_thread(void *of) {
    struct job *job = of;
    /* The system call, and not the function, which changes all threads. */
    if (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, USER, USER, USER) ||
        syscall(SYS_setresuid, USER, USER, USER)) fail("setresuid");
    give(job->fd, job->text, job->len);
    return NULL;
}

static void send_to(int socket, int fd) {
    char data = 'x', room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&data, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    if (sendmsg(socket, &message, 0) != 1) fail("sendmsg");
}

static int receive(int socket) {
    char data, room[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&data, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    int fd;
    if (recvmsg(socket, &message, 0) != 1 || !CMSG_FIRSTHDR(&message)) exit(3);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

/* Opens the channel in a child, as the user or not, which then ends or stays, and returns the descriptor. */
static int opened_elsewhere(int as_user, int stays, pid_t *child) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) fail("socketpair");
    if (!(*child = fork())) {
        close(pair[0]);
        if (as_user) become_user();
        int fd = open_channel();
        if (begin(fd)) fail("begin");
        fflush(stdout);
        send_to(pair[1], fd);
        close(fd);
        char end;
        if (stays && read(pair[1], &end, 1)) _exit(1);
        _exit(0);
    }
    close(pair[1]);
    int fd = receive(pair[0]);
    if (!stays) waitpid(*child, NULL, 0);
    return fd;
}

/* Runs the rest in a child, and ends with its status. */
static void in_child(int as_user) {
    pid_t child = fork();
    if (child) {
        int status;
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) printf("signal %d\n", WTERMSIG(status));
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
    }
    if (as_user) become_user();
}

static void reused(const char *text, size_t len) {
    for (int tries = 0; tries < 200; tries++) {
        pid_t opener;
        int fd = opened_elsewhere(0, 0, &opener);
        FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
        if (!last || fprintf(last, "%d", opener - 1) < 0 || fclose(last)) fail("ns_last_pid");
        pid_t child = fork();
        if (!child) {
            if (getpid() != opener) _exit(9);
            give(fd, text, len);
            show(fd);
        }
        int status;
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) != 9) exit(WEXITSTATUS(status));
        close(fd);
    }
    printf("no number was used again\n");
    exit(3);
}

static int faults, told[2];

static void *tell_fault(void *unused) {
    struct uffd_msg fault;
    char byte = read(faults, &fault, sizeof fault) == sizeof fault;
    if (write(told[1], &byte, 1) != 1) _exit(3);
    return unused;
}

/* Begins a write of the user that goes on for as long as this process. */
static void stall(void) {
    char byte = 0;
    if (pipe(told)) fail("pipe");
    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct uffdio_api api = {.api = UFFD_API};
        faults = syscall(SYS_userfaultfd, 0);
        char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct uffdio_register range = {{(uintptr_t)page, 4096}, UFFDIO_REGISTER_MODE_MISSING, 0};
        if (faults < 0 || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &range)) fail("userfaultfd");
        become_user();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = open_channel();
        pthread_t thread;
        if (begin(fd) || pthread_create(&thread, NULL, tell_fault, NULL)) fail("begin");
        _exit(write(fd, page, 4096) < 0);
    }
    close(told[1]);
    if (read(told[0], &byte, 1) != 1 || !byte) exit(3);
}

int main(int count, char **words) {
    if (count != 6) return 2;
    const char *what = words[2], *text = words[5];
    size_t len = strlen(text), half = len / 2;
    pid_t child;
    snprintf(path, sizeof path, "%s/.isp", words[1]);
    way = words[3], share = atoi(words[4]);
    setvbuf(stdout, NULL, _IONBF, 0);
    if (!strcmp(what, "reused")) reused(text, len);
    if (!strcmp(what, "deputy")) {
        int fd = opened_elsewhere(1, 1, &child);
        give(fd, text, len);
        show(fd);
    }
    if (!strcmp(what, "personality")) {
        personality = syscall(SYS_io_uring_register, make_ring(), IORING_REGISTER_PERSONALITY, NULL, 0);
        if (personality <= 0) fail("personality");
        become_user();
    }
    if (!strcmp(what, "stalled")) stall();
    if (!strcmp(what, "user") || !strcmp(what, "exec")) become_user();
    int fd = open_channel();
    if (strcmp(what, "unbegun") && begin(fd)) fail("begin");
    if (!strcmp(what, "exec")) {
        char *shell[] = {"sh", "-c", words[5], NULL};
        dup2(fd, 1), dup2(fd, 2);
        execvp("sh", shell);
        return 3;
    }
    if (!strcmp(what, "heir")) in_child(1);
    if (!strcmp(what, "dropped")) become_user();
    if (!strcmp(what, "begins")) {
        in_child(1);
        if (begin(fd)) fail("begin");
    }
    if (!strcmp(what, "thread")) {
        pthread_t thread;
        struct job job = {fd, text, len};
        if (pthread_create(&thread, NULL, in_thread, &job) || pthread_join(thread, NULL)) fail("thread");
        show(fd);
    }
    if (!strcmp(what, "first") || !strcmp(what, "second")) {
        int user_is_first = !strcmp(what, "first");
        if (!user_is_first) give(fd, text, half);
        if (!(child = fork())) {
            become_user();
            give(fd, user_is_first ? text : text + half, user_is_first ? half : len - half);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        if (status) return 3;
        if (user_is_first) give(fd, text + half, len - half);
        show(fd);
    }
    if (!strcmp(way, "map")) {
        /* A first instruction, so that the kernel may know of a size. */
        const char *first = "{\"words\": [\"x\"], \"file\": \"public\"}";
        if (write(fd, first, strlen(first)) < 0) fail("write");
    }
    give(fd, text, len);
    show(fd);
}

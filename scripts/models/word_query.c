/* The software query of the ISPFS paper, and the speed of reads of memory.
 *
 *   word_query FILE WORD...    counts occurrences: read() of blocks of 4 KiB, and a comparison of each word at
 *                              every position (ISPFS 5.2: "a traditional software solution")
 *   word_query --memory BYTES PAGES  sequential reads of memory with two threads; PAGES is huge or small
 *
 * It prints counts, bytes, reads and seconds, one number a line. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096
#define WORDS 64
#define LONGEST 256

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

struct part {
    const uint64_t *from;
    size_t words;
    uint64_t sum;
};

static void *sum(void *argument)
{
    struct part *part = argument;
    uint64_t all[8] = {0};
    for (size_t i = 0; i + 8 <= part->words; i += 8)
        for (int lane = 0; lane < 8; lane++)
            all[lane] += part->from[i + lane];
    for (int lane = 0; lane < 8; lane++)
        part->sum += all[lane];
    return NULL;
}

static int memory(size_t bytes, int huge)
{
    char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return 1;
    madvise(map, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(map, 1, bytes);
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        struct part parts[2] = {{(uint64_t *)map, bytes / 16, 0}, {(uint64_t *)(map + bytes / 2), bytes / 16, 0}};
        pthread_t threads[2];
        double began = seconds();
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, sum, &parts[i]);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        double took = seconds() - began;
        if (parts[0].sum + parts[1].sum && took < best)
            best = took;
    }
    printf("%zu\n%.9f\n", bytes, best);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--memory"))
        return memory(strtoull(argv[2], NULL, 10), !strcmp(argv[3], "huge"));
    static char buffer[LONGEST + BLOCK];
    uint64_t counts[WORDS] = {0}, bytes = 0, reads = 0;
    size_t lengths[WORDS], longest = 0, kept = 0;
    int words = argc - 2 < WORDS ? argc - 2 : WORDS, file;
    double began = seconds();
    if (argc < 3 || (file = open(argv[1], O_RDONLY)) < 0)
        return 1;
    for (int w = 0; w < words; w++) {
        lengths[w] = strlen(argv[w + 2]);
        longest = lengths[w] > longest ? lengths[w] : longest;
    }
    for (;;) {
        ssize_t got = read(file, buffer + kept, BLOCK);
        reads++;
        if (got < 0)
            return 1;
        size_t filled = kept + got;
        bytes += got;
        /* Positions whose longest word may continue in the next block are compared with it. */
        size_t until = got == 0 ? filled : filled >= longest ? filled - longest + 1 : 0;
        for (size_t at = 0; at < until; at++)
            for (int w = 0; w < words; w++)
                if (lengths[w] <= filled - at && !strncmp(buffer + at, argv[w + 2], lengths[w]))
                    counts[w]++;
        if (got == 0)
            break;
        kept = filled - until;
        memmove(buffer, buffer + until, kept);
    }
    double took = seconds() - began;
    for (int w = 0; w < words; w++)
        printf("%llu\n", (unsigned long long)counts[w]);
    printf("%llu\n%llu\n%.9f\n", (unsigned long long)bytes, (unsigned long long)reads, took);
    return 0;
}

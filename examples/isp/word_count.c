/* Counts lines, words and bytes as wc does, with one instance:
 *   clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -o word_count.wasm word_count.c */
#include "frit.h"

/* Pieces of a program with `scan` have at most 64 KiB. */
static uint8_t piece[65536];
static uint64_t lines, words, bytes;
static int in_word;

FRIT_EXPORT(buffer) uint8_t *buffer(uint32_t len) {
    (void)len;
    return piece;
}

FRIT_EXPORT(scan) int32_t scan(const uint8_t *at, uint32_t len, uint64_t offset) {
    (void)offset;
    for (uint32_t i = 0; i < len; i++) {
        int space = at[i] == ' ' || (at[i] >= '\t' && at[i] <= '\r');
        lines += at[i] == '\n';
        words += !space && !in_word;
        in_word = !space;
    }
    bytes += len;
    return 0;
}

static void emit_number(uint64_t number, char after) {
    char digits[21];
    uint32_t at = sizeof digits;
    digits[--at] = after;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    frit_emit(digits + at, sizeof digits - at);
}

FRIT_EXPORT(finish) void finish(void) {
    emit_number(lines, ' ');
    emit_number(words, ' ');
    emit_number(bytes, '\n');
}

/* Functions of frit's processing engine for a program in C (docs/reference/isp.md). */
#ifndef FRIT_H
#define FRIT_H

#include <stdint.h>

#define FRIT_IMPORT(name) __attribute__((import_module("frit"), import_name(#name)))
#define FRIT_EXPORT(name) __attribute__((export_name(#name)))

/* Appends bytes to the result. Returns 1 if the limit of memory is reached, else 0. */
FRIT_IMPORT(emit) int32_t frit_emit(const void *bytes, uint32_t len);
/* Ends the instruction with a message for the user. */
FRIT_IMPORT(fail) void frit_fail(const void *text, uint32_t len);
/* Reads bytes of the file at an offset. */
FRIT_IMPORT(read_at) void frit_read_at(uint64_t offset, void *bytes, uint32_t len);
/* Size of the file, and range of the instruction. */
FRIT_IMPORT(size) uint64_t frit_size(void);
FRIT_IMPORT(range_start) uint64_t frit_range_start(void);
FRIT_IMPORT(range_end) uint64_t frit_range_end(void);

#endif

// SPDX-License-Identifier: Apache-2.0
// file.h — whole files in, whole files out, nothing half-written.
#ifndef OTRN_BASE_FILE_H
#define OTRN_BASE_FILE_H

#include "base/arena.h"
#include "base/ctx.h"

// The bytes of a file, NUL-terminated one past `size`. Raises IO with the path and the reason.
uint8_t *file_read(Ctx *ctx, Arena *a, const char *path, size_t *size);
// Writes beside `path` under a temporary name, checks the close, renames. Raises IO; on failure the
// temporary file is gone and an older file at `path` is untouched.
void file_write(Ctx *ctx, const char *path, const void *bytes, size_t size);
// The same for a file of two pieces, so that the larger one need not be copied behind the other.
void file_write_two(Ctx *ctx, const char *path, const void *head, size_t head_bytes, const void *bytes, size_t size);
// Makes a folder and its parents.
void dir_make(Ctx *ctx, const char *path);

#endif

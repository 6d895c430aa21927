// SPDX-License-Identifier: Apache-2.0
// cache.h — the cache's folder and the files in it, for the files of the cache.
//
//   cache.c         keys, entries found and written
//   cache_behind.c  entries written by a thread of their own
//   cache_file.c    the folder: whose it is, and files in it that are what they seem
//   cache_tend.c    list, check, prune, empty, and say why something is not there
//
// An entry, KEY.otrn, is (integers little-endian)
//
//    0  8 bytes   "OTRNENT" and a zero byte
//    8  u32       length of the inputs
//   12  u32       length of what is told about it
//   16  u32       CRC-32C of those two
//   20  u32       zero
//   24  inputs    what the key is the SHA-256 of: rt_cache_inputs
//       about     "module NAME"
//       zeros     up to a multiple of 64
//       artifact  to the end of the file
//
// So an entry names its key, and a copy under another name is refused.
#ifndef OTRN_RT_CACHE_H
#define OTRN_RT_CACHE_H

#include "rt/rt.h"

#define CACHE_ENTRY ".otrn"
#define CACHE_CLAIMS ".claims" // the file whose bytes are locked
#define CACHE_HEAD_MAX (64u << 10) // inputs and about

typedef struct CacheStat {
    uint64_t bytes;
    int64_t used_ns; // last use
    bool regular;
} CacheStat;

// The folder's descriptor, or -1. One that others can write or that belongs to another is not used; `warn` (may be NULL)
// is told why. make: it is made where it is missing, for its user alone; else a missing one is no reason to warn.
int cache_open(const char *dir, bool make, RtWarn *warn);
bool cache_stat(int folder, const char *name, CacheStat *out); // of the name itself, no link is followed
// The first `most` bytes of a regular file, to be freed; NULL for anything else. Neither waits nor follows a link.
uint8_t *cache_read(int folder, const char *name, size_t most, size_t *n, CacheStat *stat);
void cache_touch(int folder, const char *name);
// Under a temporary name, then renamed. 0, or an errno.
int cache_write(int folder, const char *name, const void *head, size_t head_bytes, const void *bytes, size_t size);
int cache_claims(int folder); // descriptor of the file for locks, or -1

typedef struct CacheHead {
    const char *inputs, *about; // with zeros behind, in the arena
    size_t artifact;            // where it begins
} CacheHead;
// Of the first bytes of an entry whose key should be this. NULL, or what is wrong.
const char *cache_head(Arena *a, const uint8_t *bytes, size_t n, const char *key, CacheHead *out);

#endif

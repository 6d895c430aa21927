// SPDX-License-Identifier: Apache-2.0
// gzip.h — bytes as a .gz file, which every tool that opens traces reads.
#ifndef OTRN_BASE_GZIP_H
#define OTRN_BASE_GZIP_H

#include "base/bytes.h"

void gzip_put(const void *bytes, size_t n, Buf *out);

#endif

// SPDX-License-Identifier: Apache-2.0
// bpe.h — byte pair encoding: tokens for what is frequent in a text, learnt from it, the same on every host.
//
// Tokens 0 to 255 are bytes; token 256 + i stands for the two tokens of pair i. A text is cut into words, each with the white space before
// it, and pairs never reach over a cut, so learning looks at each different word once. Of pairs that are equally frequent the
// one with the smaller tokens is taken.
#ifndef OTRN_TRAIN_BPE_H
#define OTRN_TRAIN_BPE_H

#include "base/bytes.h"

#define BPE_BYTES 256
#define BPE_TOKENS_MAX 65536
#define BPE_WORD_BYTES 48 // longer words are cut, so no token stands for more

typedef struct BpePair {
    uint32_t left, right;
} BpePair;

typedef struct Bpe {
    BpePair *pairs;
    uint32_t count;
} Bpe;

// At most `tokens` tokens; fewer when the text has no pair that comes twice.
void bpe_learn(Arena *a, const uint8_t *text, size_t n, uint32_t tokens, Bpe *out);
uint32_t *bpe_encode(Arena *a, const Bpe *b, const uint8_t *text, size_t n, size_t *count);
void bpe_decode(const Bpe *b, uint32_t token, Buf *out);

#endif

// SPDX-License-Identifier: Apache-2.0
// check_pair.c — turns of the two cores of a watched pair; see check_pair.h.
#include "chip/core/check_pair.h"

void check_pair_init(CheckPair *p) {
    *p = (CheckPair){.turn = 0};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
}

void check_pair_fini(CheckPair *p) {
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
}

void check_pair_take(CheckPair *p, int core) {
    pthread_mutex_lock(&p->lock);
    while (p->turn != core && !p->ended[1 - core])
        pthread_cond_wait(&p->changed, &p->lock);
    p->turn = core;
    pthread_mutex_unlock(&p->lock);
}

void check_pair_give(CheckPair *p, int core) {
    pthread_mutex_lock(&p->lock);
    if (!p->ended[1 - core])
        p->turn = 1 - core;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

void check_pair_end(CheckPair *p, int core) {
    pthread_mutex_lock(&p->lock);
    p->ended[core] = true;
    p->turn = 1 - core;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

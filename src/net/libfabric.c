// SPDX-License-Identifier: Apache-2.0
// libfabric.c — the border to libfabric, which is looked for when it is needed; see net_in.h.
//
// Nothing is linked: of the library's own functions five are asked for by name, all others are behind tables that its objects
// carry. Built where no headers of it are, this says that it cannot. An endpoint for datagrams that arrive (RDM), one address book,
// one queue of what is done; buffers lie in one block of memory, registered where the network card needs that (EFA does). Whoever calls
// holds one lock.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/net_in.h"

#if __has_include(<rdma/fabric.h>)
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define OFI_VERSION FI_VERSION(1, 9)
#define OFI_FAIL(what, error) (snprintf(why, why_bytes, "libfabric: %s: %s", what, o->strerror_((int)-(error))), false)

_Static_assert(sizeof(struct fi_context2) <= OFI_CONTEXT_BYTES, "an operation's memory");

struct Ofi {
    void *library;
    int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
    struct fi_info *(*dupinfo)(const struct fi_info *);
    void (*freeinfo)(struct fi_info *);
    int (*fabric_)(struct fi_fabric_attr *, struct fid_fabric **, void *);
    const char *(*strerror_)(int);
    struct fi_info *list, *info; // what there is; of it, what is used
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    int fd; // -1: it cannot be waited for
};

static bool library_open(Ofi *o, char *why, size_t why_bytes) {
    o->library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!o->library) {
        snprintf(why, why_bytes, "libfabric is not installed: %s", dlerror());
        return false;
    }
    const struct {
        const char *name;
        void *to;
    } names[] = {{"fi_getinfo", &o->getinfo}, {"fi_dupinfo", &o->dupinfo}, {"fi_freeinfo", &o->freeinfo},
                 {"fi_fabric", &o->fabric_}, {"fi_strerror", &o->strerror_}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *at = dlsym(o->library, names[i].name);
        memcpy(names[i].to, &at, sizeof at);
        if (!at) {
            snprintf(why, why_bytes, "libfabric.so.1 has no %s", names[i].name);
            return false;
        }
    }
    return true;
}

static bool info_find(Ofi *o, const char *provider, const char *ip, bool layers) {
    struct fi_info *hints = o->dupinfo(NULL);
    if (!hints)
        return false;
    hints->caps = FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup(provider);
    // Cards of their own kind of address know no IP.
    int bad = o->getinfo(OFI_VERSION, ip, ip ? "0" : NULL, ip ? FI_SOURCE : 0, hints, &o->list);
    o->freeinfo(hints);
    o->info = bad ? NULL : o->list;
    while (o->info && !layers && strchr(o->info->fabric_attr->prov_name, ';'))
        o->info = o->info->next;
    if (!o->info && !bad) {
        o->freeinfo(o->list);
        o->list = NULL;
    }
    return o->info;
}

// Before release 1.18 the provider that has such endpoints over TCP is `net`; `tcp` lays a slow one over its streams ("tcp;ofi_rxm"),
// which only who asks for tcp gets: sockets are faster.
static bool provider_find(Ofi *o, const char *want, const char *ip, char *why, size_t why_bytes) {
    const struct {
        const char *want, *name;
        bool ip;
    } ways[] = {{"efa", "efa", false}, {"tcp", "net", true}, {"tcp", "tcp", true}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if ((!want || !strcmp(want, ways[i].want)) && info_find(o, ways[i].name, ways[i].ip ? ip : NULL, want))
            return true;
    snprintf(why, why_bytes, "libfabric has no %s here", want ? want : "provider");
    return false;
}

static bool queue_open(Ofi *o, size_t depth, char *why, size_t why_bytes) {
    struct fi_cq_attr attr = {.size = depth, .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
    int bad = fi_cq_open(o->domain, &attr, &o->cq, NULL);
    if (!bad && !fi_control(&o->cq->fid, FI_GETWAIT, &o->fd))
        return true;
    o->fd = -1;
    if (!bad)
        fi_close(&o->cq->fid);
    attr.wait_obj = FI_WAIT_NONE;
    bad = fi_cq_open(o->domain, &attr, &o->cq, NULL);
    return bad ? OFI_FAIL("a completion queue", bad) : true;
}

static bool endpoint_open(Ofi *o, const OfiMemory *m, char *why, size_t why_bytes) {
    struct fi_av_attr av = {.type = FI_AV_UNSPEC};
    int bad = o->fabric_(o->info->fabric_attr, &o->fabric, NULL);
    bad = bad ? bad : fi_domain(o->fabric, o->info, &o->domain, NULL);
    bad = bad ? bad : fi_av_open(o->domain, &av, &o->av, NULL);
    if (bad)
        return OFI_FAIL("a domain", bad);
    if (!queue_open(o, m->operations, why, why_bytes))
        return false;
    bad = fi_endpoint(o->domain, o->info, &o->ep, NULL);
    bad = bad ? bad : fi_ep_bind(o->ep, &o->av->fid, 0);
    bad = bad ? bad : fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV);
    bad = bad ? bad : fi_enable(o->ep);
    if (!bad && o->info->domain_attr->mr_mode & FI_MR_LOCAL)
        bad = fi_mr_reg(o->domain, m->at, m->bytes, FI_SEND | FI_RECV, 0, 0, 0, &o->mr, NULL);
    return bad ? OFI_FAIL("an endpoint", bad) : true;
}

// Queues for all operations that can be under way, where the provider has as many.
static void info_fit(struct fi_info *info, const OfiMemory *m) {
    info->tx_attr->op_flags = 0;
    if (info->tx_attr->size < m->operations)
        info->tx_attr->size = m->operations;
    if (info->rx_attr->size < m->operations)
        info->rx_attr->size = m->operations;
}

bool ofi_open(const char *provider, const char *ip, const OfiMemory *m, Ofi **out, char *why, size_t why_bytes) {
    Ofi *o = calloc(1, sizeof *o);
    *out = NULL;
    if (!o) {
        snprintf(why, why_bytes, "out of memory");
        return false;
    }
    o->fd = -1;
    bool ok = library_open(o, why, why_bytes) && provider_find(o, provider, ip, why, why_bytes);
    if (ok) {
        if (!(o->info->domain_attr->mr_mode & FI_MR_LOCAL)) // a card's queues have the length they have
            info_fit(o->info, m);
        ok = endpoint_open(o, m, why, why_bytes);
    }
    if (!ok)
        ofi_close(o);
    else
        *out = o;
    return ok;
}

void ofi_close(Ofi *o) {
    if (!o)
        return;
    struct fid *parts[] = {o->ep ? &o->ep->fid : NULL, o->mr ? &o->mr->fid : NULL, o->cq ? &o->cq->fid : NULL,
                           o->av ? &o->av->fid : NULL, o->domain ? &o->domain->fid : NULL, o->fabric ? &o->fabric->fid : NULL};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i])
            fi_close(parts[i]);
    if (o->list)
        o->freeinfo(o->list);
    free(o); // the library stays: it may have threads and handlers of its own
}

const char *ofi_provider(const Ofi *o) { return o->info->fabric_attr->prov_name; }

size_t ofi_name(Ofi *o, void *out, size_t max) {
    size_t bytes = max;
    return fi_getname(&o->ep->fid, out, &bytes) ? 0 : bytes;
}

bool ofi_meet(Ofi *o, const void *name, uint64_t *to) {
    fi_addr_t at = FI_ADDR_UNSPEC;
    bool ok = fi_av_insert(o->av, name, 1, &at, 0, NULL) == 1;
    *to = at;
    return ok;
}

static int answer(ssize_t k) { return !k ? 1 : k == -FI_EAGAIN ? 0 : -1; }

int ofi_send(Ofi *o, void *context, const void *from, size_t n, uint64_t to) {
    return answer(fi_send(o->ep, from, n, o->mr ? fi_mr_desc(o->mr) : NULL, to, context));
}

int ofi_recv(Ofi *o, void *context, void *to, size_t n) {
    return answer(fi_recv(o->ep, to, n, o->mr ? fi_mr_desc(o->mr) : NULL, FI_ADDR_UNSPEC, context));
}

uint32_t ofi_done(Ofi *o, OfiDone *out, uint32_t max) {
    struct fi_cq_msg_entry done[16];
    ssize_t n = fi_cq_read(o->cq, done, max < 16 ? max : 16);
    for (ssize_t i = 0; i < n; i++)
        out[i] = (OfiDone){.context = done[i].op_context, .bytes = done[i].len, .ok = true};
    struct fi_cq_err_entry error = {0};
    if (n != -FI_EAVAIL || fi_cq_readerr(o->cq, &error, 0) != 1)
        return n > 0 ? (uint32_t)n : 0;
    *out = (OfiDone){.context = error.op_context, .why = o->strerror_(error.err)};
    return 1;
}

int ofi_fd(const Ofi *o) { return o->fd; }

bool ofi_may_sleep(Ofi *o) {
    struct fid *cq = &o->cq->fid;
    return o->fd >= 0 && fi_trywait(o->fabric, &cq, 1) == FI_SUCCESS;
}

#else // no headers: never opened

bool ofi_open(const char *provider, const char *ip, const OfiMemory *m, Ofi **out, char *why, size_t why_bytes) {
    (void)provider, (void)ip, (void)m;
    *out = NULL;
    snprintf(why, why_bytes, "this opentrn was built without libfabric's headers");
    return false;
}
void ofi_close(Ofi *o) { (void)o; }
const char *ofi_provider(const Ofi *o) { return (void)o, ""; }
size_t ofi_name(Ofi *o, void *out, size_t max) { return (void)o, (void)out, (void)max, 0; }
bool ofi_meet(Ofi *o, const void *name, uint64_t *to) { return (void)o, (void)name, (void)to, false; }
int ofi_send(Ofi *o, void *context, const void *from, size_t n, uint64_t to) {
    return (void)o, (void)context, (void)from, (void)n, (void)to, -1;
}
int ofi_recv(Ofi *o, void *context, void *to, size_t n) { return (void)o, (void)context, (void)to, (void)n, -1; }
uint32_t ofi_done(Ofi *o, OfiDone *out, uint32_t max) { return (void)o, (void)out, (void)max, 0; }
int ofi_fd(const Ofi *o) { return (void)o, -1; }
bool ofi_may_sleep(Ofi *o) { return (void)o, true; }
#endif

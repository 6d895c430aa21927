// SPDX-License-Identifier: Apache-2.0
// memory.h — the device's memory, which is the host's, counted for each device; and pinned memory of the host, which is any
// memory here, but known as such when torch asks for it.
#pragma once
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include <unistd.h>

namespace {

constexpr auto kNeuron = at::DeviceType::PrivateUse1;
std::atomic<int> device_count{1};
thread_local c10::DeviceIndex current_device = 0;

c10::DeviceIndex checked(c10::DeviceIndex index) {
    if (index < 0) return current_device;
    TORCH_CHECK(index < device_count, "neuron:", int(index), " is asked for, there are ", device_count.load(),
                " devices (OPENTRN_DEVICES)");
    return index;
}

// How much of something there is, was at most, came and went.
struct Count {
    std::atomic<int64_t> now{0}, most{0}, came{0}, went{0};

    void add(int64_t n) {
        came += n;
        int64_t sum = now += n, old = most;
        while (sum > old && !most.compare_exchange_weak(old, sum)) {}
    }
    void take(int64_t n) { now -= n, went += n; }
    void forget_most() { most = now.load(); }
    void forget_all() { came = went = 0; }
    template <class Stat> void tell(Stat &stat) const {
        stat.current = now, stat.peak = most, stat.allocated = came, stat.freed = went;
    }
};

struct Counts {
    Count bytes, blocks;

    void add(size_t n) { bytes.add(static_cast<int64_t>(n)), blocks.add(1); }
    void take(size_t n) { bytes.take(static_cast<int64_t>(n)), blocks.take(1); }
    void forget_most() { bytes.forget_most(), blocks.forget_most(); }
    void forget_all() { bytes.forget_all(), blocks.forget_all(); }
};

std::array<Counts, 1024> used; // by device

// Its head stands before the memory, in a cache line of its own. What is given back is the memory itself: a storage that copies on write
// (torch._lazy_clone) asks for that.
struct alignas(64) Head {
    size_t bytes;
    size_t device;
};

Counts &counts_of(c10::DeviceIndex device) { return used[static_cast<size_t>(checked(device)) % used.size()]; }

void release(void *memory) {
    Head *head = static_cast<Head *>(memory) - 1;
    used[head->device].take(head->bytes);
    c10::free_cpu(head);
}

struct Allocator final : c10::DeviceAllocator {
    at::DataPtr allocate(size_t bytes) override {
        at::Device device(kNeuron, current_device);
        if (!bytes) return {nullptr, nullptr, &release_none, device};
        Head *head = static_cast<Head *>(c10::alloc_cpu(bytes + sizeof(Head)));
        *head = {bytes, static_cast<size_t>(current_device) % used.size()};
        used[head->device].add(bytes);
        return {head + 1, head + 1, &release, device};
    }
    static void release_none(void *) {}
    at::DeleterFnPtr raw_deleter() const override { return nullptr; }
    void copy_data(void *to, const void *from, std::size_t bytes) const override { memcpy(to, from, bytes); }

    bool initialized() override { return true; }
    void emptyCache(c10::MempoolId_t) override {}
    void recordStream(const c10::DataPtr &, c10::Stream) override {}
    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
        c10::CachingDeviceAllocator::DeviceStats stats;
        const Counts &counts = counts_of(device);
        for (auto *bytes : {&stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes, &stats.requested_bytes})
            counts.bytes.tell((*bytes)[0]);
        for (auto *blocks : {&stats.allocation, &stats.segment, &stats.active}) counts.blocks.tell((*blocks)[0]);
        return stats;
    }
    void resetAccumulatedStats(c10::DeviceIndex device) override { counts_of(device).forget_all(); }
    void resetPeakStats(c10::DeviceIndex device) override { counts_of(device).forget_most(); }
    std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
        size_t all = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
        return {all - std::min(all, static_cast<size_t>(counts_of(device).bytes.now.load())), all};
    }
};

auto &allocator = *new Allocator;
REGISTER_ALLOCATOR(kNeuron, &allocator)

// --- pinned memory of the host ----------------------------------------------------------------------------------------

struct Pinned final : at::HostAllocator {
    std::mutex lock;
    std::map<const char *, size_t> blocks; // by their first byte
    Counts counts;

    at::DataPtr allocate(size_t bytes) override {
        char *memory = static_cast<char *>(c10::alloc_cpu(bytes));
        if (memory) {
            counts.add(bytes);
            std::lock_guard<std::mutex> held(lock);
            blocks[memory] = bytes;
        }
        return {memory, memory, &give_back, at::Device(at::kCPU)};
    }
    static void give_back(void *memory);
    at::DeleterFnPtr raw_deleter() const override { return &give_back; }
    void copy_data(void *to, const void *from, std::size_t bytes) const override { memcpy(to, from, bytes); }

    bool holds(const void *at) {
        std::lock_guard<std::mutex> held(lock);
        auto next = blocks.upper_bound(static_cast<const char *>(at));
        return next != blocks.begin() && static_cast<const char *>(at) < std::prev(next)->first + std::prev(next)->second;
    }

    bool record_event(void *, void *, c10::Stream) override { return true; }
    void empty_cache() override {}
    at::HostStats get_stats() override {
        at::HostStats stats;
        for (auto *bytes : {&stats.active_bytes, &stats.allocated_bytes}) counts.bytes.tell(*bytes);
        for (auto *blocks : {&stats.active_requests, &stats.allocations}) counts.blocks.tell(*blocks);
        return stats;
    }
    void reset_accumulated_stats() override { counts.forget_all(); }
    void reset_peak_stats() override { counts.forget_most(); }
};

// Never destroyed, as all of the device that others have: a tensor or a thread of torch's may outlive this library's statics at exit.
auto &pinned = *new Pinned;
REGISTER_HOST_ALLOCATOR(kNeuron, &pinned)

void Pinned::give_back(void *memory) {
    if (!memory) return;
    {
        std::lock_guard<std::mutex> held(pinned.lock);
        auto at = pinned.blocks.find(static_cast<const char *>(memory));
        pinned.counts.take(at->second);
        pinned.blocks.erase(at);
    }
    c10::free_cpu(memory);
}

} // namespace

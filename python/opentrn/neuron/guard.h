// SPDX-License-Identifier: Apache-2.0
// guard.h — what torch asks of any device: how many there are, which one is current, streams, events, random numbers, whose memory an
// address is.
#pragma once
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>

#include "memory.h"

namespace {

double now_ms() {
    auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(since).count();
}

// Work is done when a call returns: one stream, and an event is the moment it was recorded at.
struct Guard final : c10::impl::DeviceGuardImplInterface {
    static constexpr at::DeviceType static_type = kNeuron;
    at::DeviceType type() const override { return kNeuron; }
    at::Device getDevice() const override { return {kNeuron, current_device}; }
    void setDevice(at::Device d) const override { current_device = checked(d.index()); }
    void uncheckedSetDevice(at::Device d) const noexcept override {
        if (d.index() >= 0) current_device = d.index();
    }
    at::Device exchangeDevice(at::Device d) const override {
        at::Device old = getDevice();
        setDevice(d);
        return old;
    }
    c10::Stream getStream(at::Device d) const override {
        return c10::Stream(c10::Stream::DEFAULT, at::Device(kNeuron, checked(d.index())));
    }
    c10::Stream getDefaultStream(at::Device d) const override { return getStream(d); }
    c10::Stream getStreamFromGlobalPool(at::Device d, bool) const override { return getStream(d); }
    c10::Stream getNewStream(at::Device d, int) const override { return getStream(d); }
    c10::Stream exchangeStream(c10::Stream s) const override { return getStream(s.device()); }
    at::DeviceIndex deviceCount() const noexcept override { return static_cast<at::DeviceIndex>(device_count); }
    c10::DeviceCapability getDeviceCapability(at::Device) const override { return {}; }
    void record(void **event, const c10::Stream &, at::DeviceIndex, c10::EventFlag) const override {
        if (!*event) *event = new double;
        *static_cast<double *>(*event) = now_ms();
    }
    void destroyEvent(void *event, at::DeviceIndex) const noexcept override { delete static_cast<double *>(event); }
    double elapsedTime(void *a, void *b, at::DeviceIndex) const override {
        return *static_cast<double *>(b) - *static_cast<double *>(a);
    }
    void block(void *, const c10::Stream &) const override {}
    bool queryEvent(void *) const override { return true; }
    bool queryStream(const c10::Stream &) const override { return true; }
    void synchronizeStream(const c10::Stream &) const override {}
    void synchronizeEvent(void *) const override {}
    void synchronizeDevice(at::DeviceIndex) const override {}
    void recordDataPtrOnStream(const c10::DataPtr &, const c10::Stream &) const override {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

void resize_bytes(const c10::Storage &storage, size_t bytes) {
    at::DataPtr fresh = allocator.allocate(bytes);
    if (size_t kept = std::min(storage.nbytes(), bytes)) memcpy(fresh.get(), storage.data(), kept);
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(fresh));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
}

// Random numbers are those of the CPU's generator: a run on the device draws what a run on the CPU draws.
struct Hooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    void init() const override {}
    at::DeviceIndex deviceCount() const override { return static_cast<at::DeviceIndex>(device_count); }
    at::DeviceIndex getCurrentDevice() const override { return current_device; }
    void setCurrentDevice(at::DeviceIndex d) const override { current_device = checked(d); }
    at::DeviceIndex exchangeDevice(at::DeviceIndex d) const override {
        return std::exchange(current_device, checked(d));
    }
    at::DeviceIndex maybeExchangeDevice(at::DeviceIndex d) const override { return exchangeDevice(d); }
    const at::Generator &getDefaultGenerator(c10::DeviceIndex) const override {
        return at::detail::getDefaultCPUGenerator();
    }
    at::Generator getNewGenerator(c10::DeviceIndex) const override {
        return at::make_generator<at::CPUGeneratorImpl>(c10::default_rng_seed_val);
    }
    at::Allocator *getPinnedMemoryAllocator() const override { return &pinned; }
    bool isPinnedPtr(const void *at) const override { return pinned.holds(at); }
    at::Device getDeviceFromPtr(void *) const override { return {kNeuron, current_device}; }
    void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override {
        resize_bytes(storage, bytes);
    }
};

auto &hooks = *new Hooks;

struct OnDevice { // allocations inside are on that device
    c10::DeviceIndex old = current_device;
    explicit OnDevice(std::optional<at::Device> d) {
        if (d && d->has_index()) current_device = checked(d->index());
    }
    ~OnDevice() { current_device = old; }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
// host.h — the host's road: CPU kernels on the device's memory, under the CPU's name.
#pragma once
#include <ATen/ATen.h>
#include <torch/library.h>

#include "memory.h"

using at::IValue;
using at::Tensor;
using torch::jit::Stack;

namespace {

// --- one memory, two names --------------------------------------------------------------------------------------------

bool on_neuron(const Tensor &t) { return t.defined() && t.device().type() == kNeuron; }

// A tensor of another device's name over the same memory; its storage keeps the other one alive.
c10::Storage renamed(const c10::Storage &storage, at::Device device, at::Allocator *owner) {
    auto *held = new c10::Storage(storage);
    at::DataPtr data(storage.mutable_data(), held, [](void *p) { delete static_cast<c10::Storage *>(p); }, device);
    return c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(data), owner, true);
}

Tensor over(c10::Storage storage, const Tensor &like, at::DispatchKey key) {
    Tensor t = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
    t.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
    t._set_conj(like.is_conj());
    t._set_neg(like.is_neg());
    if (like.unsafeGetTensorImpl()->is_wrapped_number()) t.unsafeGetTensorImpl()->set_wrapped_number(true);
    return t;
}

Tensor host_alias(const Tensor &t) {
    if (!on_neuron(t)) return t;
    return over(renamed(t.storage(), at::kCPU, at::getCPUAllocator()), t, at::DispatchKey::CPU);
}

Tensor device_alias(const Tensor &t, at::Device device) {
    return over(renamed(t.storage(), device, &allocator), t, at::DispatchKey::PrivateUse1);
}

// --- the host road ----------------------------------------------------------------------------------------------------

// CPU kernels on aliases of the device's tensors. What comes back is an argument, a view of one, or new.
class HostCall {
    std::vector<std::pair<Tensor, Tensor>> pairs; // device tensor, its alias
    std::optional<at::Device> device;

    Tensor lend(const Tensor &t) {
        if (!on_neuron(t)) return t;
        if (!device) device = t.device();
        for (auto &[own, alias] : pairs)
            if (own.is_same(t)) return alias;
        Tensor alias;
        for (auto &[own, other] : pairs) // tensors that share memory go on sharing it
            if (own.storage().is_alias_of(t.storage())) alias = over(other.storage(), t, at::DispatchKey::CPU);
        if (!alias.defined()) alias = host_alias(t);
        pairs.emplace_back(t, alias);
        return alias;
    }

    Tensor give_back(const Tensor &t) {
        if (t.defined() && t.is_cpu() && t.layout() == at::kSparse)
            return at::_sparse_coo_tensor_unsafe(device_alias(t._indices(), *device), device_alias(t._values(), *device),
                                                 t.sizes(), at::TensorOptions(), t.is_coalesced());
        if (!t.defined() || !t.is_cpu() || t.layout() != at::kStrided) return t;
        for (auto &[own, alias] : pairs)
            if (alias.is_same(t)) return own;
        for (auto &[own, alias] : pairs)
            if (alias.storage().is_alias_of(t.storage())) return over(own.storage(), t, at::DispatchKey::PrivateUse1);
        return device_alias(t, *device);
    }

    IValue map(const IValue &v, Tensor (HostCall::*change)(const Tensor &)) {
        if (v.isTensor()) return (this->*change)(v.toTensor());
        if (v.isTensorList()) {
            c10::List<Tensor> out;
            for (const Tensor &t : v.toTensorVector()) out.push_back((this->*change)(t));
            return out;
        }
        if (v.isOptionalTensorList()) {
            c10::List<std::optional<Tensor>> out;
            for (const std::optional<Tensor> &t : v.toOptionalTensorList())
                out.push_back(t ? std::optional<Tensor>((this->*change)(*t)) : t);
            return out;
        }
        return v;
    }

    // An out= argument may have been given another size, and with it other memory.
    void settle() {
        for (auto &[own, alias] : pairs) {
            if (own.sizes() == alias.sizes() && own.const_data_ptr() == alias.const_data_ptr()) continue;
            auto *impl = own.unsafeGetTensorImpl();
            if (own.const_data_ptr() != alias.const_data_ptr())
                impl->set_storage_keep_dtype(renamed(alias.storage(), own.device(), &allocator));
            impl->set_sizes_and_strides(alias.sizes(), alias.strides(), alias.storage_offset());
        }
    }

    // The CPU has no kernel of the names under which torch hands convolutions to a device.
    static c10::OperatorHandle known(const c10::OperatorHandle &op, Stack *stack) {
        const std::string &name = op.schema().name();
        if (name == "aten::convolution_overrideable")
            return c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
        if (name != "aten::convolution_backward_overrideable") return op;
        int64_t channels = (*stack)[stack->size() - op.schema().arguments().size()].toTensor().size(1);
        stack->insert(stack->end() - static_cast<int64_t>(op.schema().arguments().size()) + 3, IValue(std::vector<int64_t>{channels}));
        return c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution_backward", "");
    }

  public:
    void operator()(const c10::OperatorHandle &asked, Stack *stack) {
        const c10::OperatorHandle op = known(asked, stack);
        size_t count = op.schema().arguments().size(), first = stack->size() - count;
        for (size_t i = first; i < stack->size(); i++) {
            IValue &v = (*stack)[i];
            if (v.isDevice() && v.toDevice().type() == kNeuron) {
                device = v.toDevice();
                v = at::Device(at::kCPU);
            } else {
                v = map(v, &HostCall::lend);
            }
        }
        if (!device) device = at::Device(kNeuron, current_device);
        if (!device->has_index()) device = at::Device(kNeuron, current_device);
        op.redispatchBoxed(c10::DispatchKeySet(at::DispatchKey::CPU), stack);
        settle();
        for (size_t i = stack->size() - op.schema().returns().size(); i < stack->size(); i++)
            (*stack)[i] = map((*stack)[i], &HostCall::give_back);
    }
};

} // namespace

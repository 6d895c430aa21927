// SPDX-License-Identifier: Apache-2.0
// device.cpp — the device `neuron` of PyTorch: the road of an eager operator. Its memory is in memory.h, what torch asks of any device in
// guard.h, what the CPU's kernels do for it in host.h.
//
// The device's memory is the host's, as that of the virtual chip is, so a copy between CPU and device is a memcpy and a
// compiled program takes a tensor's address as it is. An operator that reaches this device becomes a key: its name, the
// types, sizes and strides of its tensors, its other arguments. What the key means is decided once, by Python (eager.py
// traces and compiles the operator and calls neuron_program or neuron_host), and kept in a table:
//
//     key -> a program, the tensors it takes, the results it gives      (otrn_execute on their memory)
//     key -> the host                                                   (CPU kernel on the same memory, counted)
//
// Python is asked through the dispatcher: its fallback sits on a key nobody uses (PrivateUse2). So this file needs
// neither Python's nor pybind's headers, and is built by a plain compiler call against the installed torch (native.py).
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_to_dense_native.h>
#include <ATen/ops/_to_sparse_csr_native.h>
#include <ATen/ops/_to_sparse_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/ccol_indices_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/col_indices_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/crow_indices_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/row_indices_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/ops/zero_native.h>
#include <ATen/native/ResizeCommon.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/library.h>

#include <shared_mutex>
#include <unordered_map>

#include "guard.h"
#include "host.h"
#include "otrn.h"

namespace {

// --- the table of operators -------------------------------------------------------------------------------------------

struct In {
    int64_t number;
    enum Kind : int64_t { TENSOR, NUMBER, GENERATOR } kind;
    bool dense;
};

struct Out {
    int64_t alias, copy_to; // In it is written over; tensor it is copied to afterwards; -1
    at::ScalarType type;
    std::vector<int64_t> sizes, strides;
};

struct Size {
    int64_t number;
    std::vector<int64_t> sizes, strides;
};

struct Entry {
    otrn_exe *exe = nullptr; // none: the host runs it
    std::vector<Size> resized; // out= arguments that come without elements
    std::vector<In> ins;
    std::vector<Out> outs;
    std::vector<std::pair<int64_t, std::vector<std::pair<bool, int64_t>>>> returns; // length of a list or -1; (is argument, number)
    std::atomic<int64_t> runs{0};
};

struct {
    otrn_status (*execute)(otrn_exe *, const otrn_buffer *, size_t, const otrn_buffer *, size_t, otrn_error *);
    size_t (*print)(const otrn_error *, char *, size_t);
} library;

struct KeyHash { // of a key wherever it lies
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>{}(key); }
};

auto &lock = *new std::shared_mutex; // never destroyed: threads of torch's run operators while the process ends
auto &table = *new std::unordered_map<std::string, std::unique_ptr<Entry>, KeyHash, std::equal_to<>>;
auto &lifting = *new std::unordered_map<const c10::FunctionSchema *, int>; // operators whose numbers are arguments of the program
thread_local Entry *made;                                      // by Python, for the key it was asked about
bool look_first = false;                                       // Python sees each operator before it runs
thread_local bool looking = false;
thread_local bool overlapping = false; // the call that Python is asked about writes memory under several names

template <class T> using Few = c10::SmallVector<T, 6>; // most operators have no more of anything: nothing is allocated

struct Call { // what an operator was called with
    c10::SmallVector<char, 512> bytes;
    Few<const Tensor *> tensors; // on the stack
    Few<const Tensor *> written; // of them
    Few<double> numbers;
    std::optional<at::Generator> generator; // of an operator that draws; none: the default one
    bool lift = false, strange = false, noted = false;

    void put_bytes(const void *at, size_t n) {
        bytes.append(static_cast<const char *>(at), static_cast<const char *>(at) + n);
    }
    template <class T> void put(T value) { put_bytes(&value, sizeof value); }
    void put_all(at::IntArrayRef values) { put_bytes(values.data(), values.size() * sizeof(int64_t)); }
    std::string_view key() const { return {bytes.data(), bytes.size()}; }

    void add(const Tensor &t) {
        if (!t.defined()) return put('u');
        for (size_t i = 0; i < tensors.size(); i++)
            if (tensors[i]->is_same(t)) return put('='), put(i); // one tensor, one argument of the program
        bool number = t.unsafeGetTensorImpl()->is_wrapped_number();
        noted |= t.is_conj() || t.is_neg();
        strange |= t.layout() != at::kStrided;
        strange |= t.device().type() != kNeuron && t.dim() > 0;
        put(t.device().type() == kNeuron ? 'T' : 't');
        put(t.scalar_type());
        put(number);
        put(static_cast<char>(t.dim()));
        if (t.layout() == at::kStrided) {
            put_all(t.sizes());
            put_all(t.strides());
        }
        tensors.push_back(&t);
    }

    void add_number(double d) {
        if (!lift) return put('d'), put(d);
        put('#');
        numbers.push_back(d);
    }

    void add(const IValue &v) {
        if (v.isTensor()) return add(v.toTensor());
        if (v.isNone()) return put('n');
        if (v.isDouble()) return add_number(v.toDouble());
        if (v.isInt()) return put('i'), put(v.toInt());
        if (v.isBool()) return put('b'), put(v.toBool());
        if (v.isString()) return put('s'), put(v.toStringRef().size()), put_bytes(v.toStringRef().data(), v.toStringRef().size());
        if (v.isDevice()) return put('D');
        if (v.isGenerator()) return generator = v.toGenerator(), put('g');
        if (v.isList()) {
            put('[');
            for (const IValue &e : v.toListRef()) add(e);
            return put(']');
        }
        if (v.isComplexDouble()) return put('c'), put(v.toComplexDouble());
        strange = true; // symbolic sizes, …
    }

    Call(const c10::OperatorHandle &op, const Stack &stack) {
        const c10::FunctionSchema &schema = op.schema();
        put(&schema);
        lift = lifting.count(&schema);
        size_t first = stack.size() - schema.arguments().size();
        for (size_t i = 0; i < schema.arguments().size(); i++) {
            add(stack[first + i]);
            const auto *alias = schema.arguments()[i].alias_info();
            if (alias && alias->isWrite()) note_written(stack[first + i]);
        }
    }

    void note_written(const IValue &v) {
        if (v.isTensor() && v.toTensor().defined() && v.toTensor().layout() == at::kStrided)
            written.push_back(&v.toTensor());
        else if (v.isTensorList())
            for (const IValue &e : v.toListRef()) note_written(e);
    }

    // Is memory written that has other names in this call: elements of one tensor, or a part of another? What that means, or that
    // it is refused, is what it means to the CPU's kernels.
    bool overlaps() const {
        for (const Tensor *w : written) {
            if (at::has_internal_overlap(*w) == at::MemOverlap::Yes) return true;
            for (const Tensor *t : tensors)
                if (t != w && t->layout() == at::kStrided && t->storage().is_alias_of(w->storage()) &&
                    at::get_overlap_status(*w, *t) == at::MemOverlapStatus::Partial)
                    return true;
        }
        return false;
    }
};

Entry *find(std::string_view key) {
    std::shared_lock<std::shared_mutex> held(lock);
    auto at = table.find(key);
    return at == table.end() ? nullptr : at->second.get();
}

// While Python is asked there are no dispatch modes: under one torch takes a kernel in Python for the operator's own, and a fallback's is none.
struct NoModes {
    using Modes = c10::impl::TorchDispatchModeTLS;
    c10::impl::ForceDispatchKeyGuard keys;
    Modes modes = Modes::get_state();
    NoModes() { Modes::set_state({}); }
    ~NoModes() { Modes::set_state(std::move(modes)); }
};

// Python is called with the arguments, and returns values that only have the right types. What kernels warn of meanwhile is about copies
// and traces of them, not about the call.
void show(const c10::OperatorHandle &op, const Stack &stack) {
    NoModes none;
    struct Silent final : c10::WarningHandler {
        void process(const c10::Warning &) override {}
    } silent;
    c10::WarningUtils::WarningHandlerGuard held(&silent);
    Stack copy(stack.end() - static_cast<int64_t>(op.schema().arguments().size()), stack.end());
    op.callBoxedForDispatchKey(at::DispatchKey::PrivateUse2, copy);
}

// Python may raise: an index is out of range.
void look(const c10::OperatorHandle &op, const Stack &stack) {
    struct Looking {
        bool outer = std::exchange(looking, true);
        ~Looking() { looking = outer; }
    } now;
    show(op, stack);
}

// Python fills `made`.
Entry *ask(const c10::OperatorHandle &op, const Stack &stack, const Call &call, bool overlaps) {
    Entry *outer = std::exchange(made, nullptr);
    bool was = std::exchange(looking, false), outer_overlaps = std::exchange(overlapping, overlaps);
    show(op, stack);
    looking = was, overlapping = outer_overlaps;
    std::unique_ptr<Entry> fresh(std::exchange(made, outer));
    TORCH_CHECK(fresh, "opentrn: nothing was prepared for ", op.schema().name());
    std::unique_lock<std::shared_mutex> held(lock);
    return table.try_emplace(std::string(call.key()), std::move(fresh)).first->second.get();
}

// --- the device road --------------------------------------------------------------------------------------------------

Tensor empty_like_out(const Out &out) {
    return at::detail::empty_strided_generic(out.sizes, out.strides, &allocator,
                                             c10::DispatchKeySet(at::DispatchKey::PrivateUse1), out.type);
}

// Is another argument in the same memory? Then a result written over this one would be read by it.
bool shared(const Call &call, int64_t number) {
    const Tensor &own = *call.tensors[number];
    for (size_t i = 0; i < call.tensors.size(); i++)
        if (static_cast<int64_t>(i) != number && call.tensors[i]->storage().is_alias_of(own.storage())) return true;
    return false;
}

void execute(Entry &entry, const Few<otrn_buffer> &ins, const Few<otrn_buffer> &outs) {
    otrn_error error;
    error.struct_size = sizeof error;
    if (!library.execute(entry.exe, ins.data(), ins.size(), outs.data(), outs.size(), &error)) return;
    char text[2048];
    library.print(&error, text, sizeof text);
    TORCH_CHECK(false, text);
}

// In the place of the arguments.
void push_returns(const Entry &entry, const Call &call, const Few<Tensor> &results, size_t first, Stack *stack) {
    auto value = [&](const std::pair<bool, int64_t> &pick) {
        return pick.first ? *call.tensors[pick.second] : pick.second < 0 ? Tensor() : results[pick.second];
    };
    Few<IValue> given;
    for (const auto &[length, picks] : entry.returns) {
        if (length < 0) {
            given.emplace_back(value(picks[0]));
            continue;
        }
        c10::List<Tensor> found;
        for (const auto &pick : picks) found.push_back(value(pick));
        given.emplace_back(std::move(found));
    }
    stack->resize(first);
    for (IValue &v : given) stack->push_back(std::move(v));
}

void run_program(Entry &entry, Call &call, const c10::OperatorHandle &op, Stack *stack) {
    Few<const Tensor *> ready; // per In
    Few<Tensor> results;
    std::vector<Tensor> made_dense; // some of them; never moved
    Few<otrn_buffer> ins, outs;
    std::vector<std::pair<Tensor, Tensor>> late; // argument, value copied to it
    std::optional<at::Device> device;
    for (const Tensor *t : call.tensors)
        if (on_neuron(*t)) { device = t->device(); break; }
    OnDevice here(device);
    at::Generator generator = call.generator.value_or(at::detail::getDefaultCPUGenerator());
    std::unique_lock<std::mutex> drawing(generator.mutex(), std::defer_lock);
    Tensor state; // its own, while the operator draws
    for (const Size &size : entry.resized) {
        const Tensor &t = call.tensors[size.number]->resize_(size.sizes);
        t.unsafeGetTensorImpl()->set_sizes_and_strides(size.sizes, size.strides);
    }
    for (const In &in : entry.ins) {
        if (in.kind == In::GENERATOR) {
            drawing.lock();
            state = generator.get_state();
            ins.push_back({state.data_ptr(), state.nbytes()});
            ready.push_back(&state);
            continue;
        }
        if (in.kind == In::NUMBER) {
            ins.push_back({&call.numbers[in.number], sizeof(double)});
            ready.push_back(nullptr);
            continue;
        }
        const Tensor *t = call.tensors[in.number];
        if (!in.dense) {
            made_dense.reserve(entry.ins.size());
            t = &made_dense.emplace_back(host_alias(*t).contiguous());
        }
        ready.push_back(t);
        ins.push_back({const_cast<void *>(t->const_data_ptr()), t->nbytes()});
    }
    for (const Out &out : entry.outs) {
        if (out.alias < 0) {
            results.push_back(empty_like_out(out));
            if (out.copy_to >= 0) late.emplace_back(*call.tensors[out.copy_to], results.back());
        } else {
            int64_t number = entry.ins[out.alias].number;
            Tensor t = *ready[out.alias];
            if (entry.ins[out.alias].kind == In::TENSOR && shared(call, number)) {
                t = host_alias(t).clone();
                late.emplace_back(*call.tensors[number], t);
            }
            ins[out.alias].data = t.data_ptr();
            results.push_back(t);
        }
        outs.push_back({results.back().data_ptr(), results.back().nbytes()});
    }
    execute(entry, ins, outs);
    if (state.defined()) generator.set_state(state);
    for (auto &[to, from] : late) host_alias(to).copy_(host_alias(from));
    push_returns(entry, call, results, stack->size() - op.schema().arguments().size(), stack);
}

bool gives_view(const c10::FunctionSchema &schema) {
    for (const auto &r : schema.returns())
        if (r.alias_info() && !r.alias_info()->isWrite()) return true;
    return false;
}

// Conjugates and negatives that were only noted: torch computes them itself, but leaves them to the kernels of products. Takes their place
// on the stack; (argument, its stand-in) of those that are written.
std::vector<std::pair<Tensor, Tensor>> resolve(const c10::OperatorHandle &op, Stack *stack) {
    std::vector<std::pair<Tensor, Tensor>> late;
    const auto &arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); i++) {
        IValue &value = (*stack)[stack->size() - arguments.size() + i];
        if (!value.isTensor() || !value.toTensor().defined()) continue;
        Tensor t = value.toTensor();
        if (!t.is_conj() && !t.is_neg()) continue;
        Tensor plain = at::resolve_neg(at::resolve_conj(t));
        const auto *alias = arguments[i].alias_info();
        if (alias && alias->isWrite()) late.emplace_back(t, plain);
        value = plain;
    }
    return late;
}

template <class Host> void run_or(const c10::OperatorHandle &op, Stack *stack, Host host) {
    Call call(op, *stack);
    if (call.noted) {
        size_t first = stack->size() - op.schema().arguments().size();
        auto late = resolve(op, stack);
        run_or(op, stack, host);
        for (auto &[to, from] : late) {
            to.copy_(from);
            for (size_t i = first; i < stack->size(); i++)
                if ((*stack)[i].isTensor() && (*stack)[i].toTensor().is_same(from)) (*stack)[i] = to;
        }
        return;
    }
    if (call.strange) call.put('?'); // to the host, whatever the sizes
    bool overlaps = call.overlaps();
    if (overlaps) call.put('&');
    Entry *entry = find(call.key());
    if (!entry) entry = ask(op, *stack, call, overlaps);
    entry->runs.fetch_add(1, std::memory_order_relaxed);
    if (entry->exe)
        run_program(*entry, call, op, stack);
    else
        host(op, stack);
}

void run(const c10::OperatorHandle &op, Stack *stack) {
    if (gives_view(op.schema())) return HostCall()(op, stack); // moves nothing
    if (look_first && !looking) look(op, *stack);
    run_or(op, stack, HostCall());
}

bool same_memory(const Tensor &a, const Tensor &b) { return a.storage().is_alias_of(b.storage()); }

void move(const c10::OperatorHandle &op, Stack *stack) {
    size_t first = stack->size() - op.schema().arguments().size();
    const Tensor from = (*stack)[first].toTensor(), to = (*stack)[first + 1].toTensor();
    const Tensor target = host_alias(to);
    target.copy_(same_memory(from, to) ? over(target.storage(), from, at::DispatchKey::CPU) : host_alias(from));
    stack->resize(first);
    stack->emplace_back(to);
}

// Conjugates and negatives that were only noted: of the target both sides are taken, of the source they are computed.
void compute_noted(IValue &from_value, IValue &to_value) {
    Tensor from = from_value.toTensor(), to = to_value.toTensor();
    if (to.is_conj()) to = to.conj(), from = from.conj();
    if (to.is_neg()) to = to._neg_view(), from = from._neg_view();
    if (from.is_conj()) from = at::conj_physical(from.conj());
    if (from.is_neg()) from = at::neg(from._neg_view());
    from_value = from;
    to_value = to;
}

// A copy between devices is a transfer; one on the device is its work.
void copy_from(const c10::OperatorHandle &op, Stack *stack) {
    size_t first = stack->size() - op.schema().arguments().size();
    compute_noted((*stack)[first], (*stack)[first + 1]);
    const Tensor &from = (*stack)[first].toTensor(), &to = (*stack)[first + 1].toTensor();
    bool overlaps = same_memory(from, to) && at::get_overlap_status(to, from) == at::MemOverlapStatus::Partial; // refused there
    if (on_neuron(from) && on_neuron(to) && !overlaps)
        run_or(op, stack, move);
    else
        move(op, stack);
}

// --- what has no operands to dispatch on, and what only changes a tensor's description --------------------------------

using SymInts = c10::SymIntArrayRef;
using Type = std::optional<at::ScalarType>;
#define INTS(list) C10_AS_INTARRAYREF_SLOW(list)

// torch.use_deterministic_algorithms: what nobody wrote is NaN, or the largest number of its type.
Tensor unset(Tensor t, int64_t written) {
    auto &context = at::globalContext();
    if (context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory())
        at::native::fill_resize_deterministic_(host_alias(t), written);
    return t;
}

at::ScalarType type_or_default(Type type) { return type.value_or(at::get_default_dtype_as_scalartype()); }

Tensor empty(SymInts size, Type type, std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>,
             std::optional<at::MemoryFormat> format) {
    OnDevice here(device);
    auto key = c10::DispatchKeySet(at::DispatchKey::PrivateUse1);
    return unset(at::detail::empty_generic(INTS(size), &allocator, key, type_or_default(type), format), 0);
}

Tensor empty_strided(SymInts size, SymInts stride, Type type, std::optional<at::Layout>,
                     std::optional<at::Device> device, std::optional<bool>) {
    OnDevice here(device);
    auto key = c10::DispatchKeySet(at::DispatchKey::PrivateUse1);
    return unset(at::detail::empty_strided_generic(INTS(size), INTS(stride), &allocator, key, type_or_default(type)), 0);
}

// Zeros that elsewhere have no memory: here they have, so that every address is one.
Tensor noted_zeros(SymInts size, Type type, std::optional<at::Layout> layout, std::optional<at::Device> device,
                   std::optional<bool> pin) {
    return empty(size, type, layout, device, pin, std::nullopt).zero_();
}

const Tensor &resize(const Tensor &self, SymInts size, std::optional<at::MemoryFormat> format) {
    auto *impl = self.unsafeGetTensorImpl();
    impl->set_sizes_contiguous(INTS(size));
    size_t bytes = static_cast<size_t>(impl->storage_offset() + impl->numel()) * impl->itemsize();
    int64_t had = static_cast<int64_t>(impl->storage().nbytes());
    if (impl->storage().nbytes() < bytes) resize_bytes(impl->storage(), bytes);
    if (format && *format != at::MemoryFormat::Preserve) impl->empty_tensor_restride(*format);
    unset(self, had);
    return self;
}

Tensor copy_and_resize(const Tensor &from, const Tensor &to) {
    to.resize_(from.sizes());
    host_alias(to).copy_(host_alias(from));
    return to;
}

at::Scalar item(const Tensor &t) { return at::_local_scalar_dense(host_alias(t)); }

bool equal(const Tensor &a, const Tensor &b) {
    if (a.sizes() != b.sizes()) return false;
    return a.numel() == 0 || at::eq(a, b).all().item<bool>();
}

bool is_mask(const Tensor &i) { return i.scalar_type() == at::kBool || i.scalar_type() == at::kByte; }

// Masks among the indices become the places they take.
Tensor index_any(const Tensor &self, const c10::List<std::optional<Tensor>> &indices) {
    c10::List<std::optional<Tensor>> plain;
    for (const std::optional<Tensor> &i : indices) {
        if (!i || !i->defined() || !is_mask(*i)) {
            plain.push_back(i);
            continue;
        }
        if (i->scalar_type() == at::kByte)
            TORCH_WARN("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
        TORCH_CHECK_INDEX(plain.size() + i->dim() <= static_cast<size_t>(self.dim()), "too many indices for a tensor of dimension ", self.dim());
        for (int64_t d = 0; d < i->dim(); d++)
            TORCH_CHECK_INDEX(i->size(d) == self.size(static_cast<int64_t>(plain.size()) + d), "a mask of shape ", i->sizes(),
                              " does not fit the indexed tensor of shape ", self.sizes());
        Tensor places = i->nonzero();
        for (int64_t d = 0; d < i->dim(); d++) plain.push_back(places.select(1, d));
    }
    Tensor out = at::empty({0}, self.options());
    at::index_outf(self, plain, out);
    return out;
}

// How many elements a mask takes of what it is laid over: the host looks.
int64_t taken(const Tensor &mask, int64_t elements) {
    return mask.numel() ? at::count_nonzero(host_alias(mask)).item<int64_t>() * (elements / mask.numel()) : 0;
}

// The source's elements go where the mask is, one after the other: there must be enough.
void masked_scatter(const c10::OperatorHandle &op, Stack *stack) {
    const Tensor &self = torch::jit::peek(*stack, 0, 3).toTensor(), &mask = torch::jit::peek(*stack, 1, 3).toTensor();
    const Tensor &source = torch::jit::peek(*stack, 2, 3).toTensor();
    if (source.numel() < self.numel() && at::is_expandable_to(mask.sizes(), self.sizes()))
        TORCH_CHECK(taken(mask, self.numel()) <= source.numel(), "Number of elements of source < number of ones in mask");
    run(op, stack);
}

// x[mask] = values: as many as the mask takes, or one for all.
void index_put(const c10::OperatorHandle &op, Stack *stack) {
    size_t count = op.schema().arguments().size();
    const Tensor &values = torch::jit::peek(*stack, 2, count).toTensor();
    const auto indices = torch::jit::peek(*stack, 1, count).toListRef(); // TorchScript's is a list of anything
    const Tensor mask = indices.size() == 1 && indices[0].isTensor() ? indices[0].toTensor() : Tensor();
    int64_t rest = mask.defined() && is_mask(mask) ? torch::jit::peek(*stack, 0, count).toTensor().dim() - mask.dim() : -1;
    if (rest >= 0 && values.dim() > rest && values.size(-1 - rest) != 1) {
        int64_t found = taken(mask, mask.numel());
        TORCH_CHECK(values.size(-1 - rest) == found, "shape mismatch: value tensor of shape ", values.sizes(),
                    " cannot be broadcast to the ", found, " places that the mask takes");
    }
    run(op, stack);
}

// The gradient of bags of embeddings: of rows alone it is that of the embeddings, each with its bag's; a dense one is a program.
void bag_backward(const c10::OperatorHandle &op, Stack *stack) {
    size_t count = op.schema().arguments().size();
    auto given = [&](size_t i) -> const IValue & { return torch::jit::peek(*stack, i, count); };
    if (!given(9).toBool()) return run(op, stack);
    const Tensor &indices = given(1).toTensor(), &offsets = given(2).toTensor();
    Tensor bag = at::bucketize(at::arange(indices.size(0), offsets.options()), offsets, false, true) - 1;
    Tensor out = at::_embedding_bag_sparse_backward(given(0).toTensor(), indices, offsets, bag, given(4).toTensor(), given(6).toInt(), given(7).toBool(),
                                                    given(8).toInt(), given(10).toOptional<Tensor>(), given(11).toInt());
    torch::jit::drop(*stack, count);
    stack->emplace_back(std::move(out));
}

Tensor view(const Tensor &self, SymInts size) { return at::native::view(self, INTS(size)); }

Tensor as_strided(const Tensor &self, SymInts size, SymInts stride, std::optional<c10::SymInt> offset) {
    auto at = offset ? std::optional<int64_t>(offset->expect_int()) : std::nullopt;
    return at::native::as_strided_tensorimpl(self, INTS(size), INTS(stride), at);
}

Tensor reshape_alias(const Tensor &self, SymInts size, SymInts stride) {
    return at::native::_reshape_alias(self, INTS(size), INTS(stride));
}

Tensor &set_part(Tensor &self, at::Storage storage, c10::SymInt offset, SymInts size, SymInts stride) {
    auto *impl = self.unsafeGetTensorImpl();
    impl->set_storage_keep_dtype(std::move(storage));
    if (stride.size() == size.size()) {
        impl->set_sizes_and_strides(INTS(size), INTS(stride), offset.expect_int());
    } else {
        impl->set_sizes_contiguous(INTS(size));
        impl->set_storage_offset(offset.expect_int());
    }
    return self;
}

Tensor &set_whole(Tensor &self, at::Storage storage) {
    int64_t count = static_cast<int64_t>(storage.nbytes() / self.itemsize());
    return set_part(self, std::move(storage), 0, c10::SymInt(count), {});
}

Tensor &set_tensor(Tensor &self, const Tensor &source) {
    return set_part(self, source.storage(), source.sym_storage_offset(), source.sym_sizes(), source.sym_strides());
}

Tensor &set_nothing(Tensor &self) {
    c10::Storage none(c10::Storage::use_byte_size_t(), 0, allocator.allocate(0), &allocator, true);
    return set_part(self, none, 0, c10::SymInt(0), {});
}

// May a tensor become what another is, as a parameter's data does in module.to()? It stays the same tensor, tied where it was tied.
bool may_become(const Tensor &self, const Tensor &from) {
    return self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set()) ||
           (self.layout() == at::kStrided && from.layout() == at::kStrided && (self.is_cpu() || on_neuron(self)) && (from.is_cpu() || on_neuron(from)));
}

void record_stream(Tensor &, at::Stream) {} // all work is done

Tensor host_view(const Tensor &t) { return host_alias(t); }
Tensor device_view(const Tensor &t) { return device_alias(t, {kNeuron, current_device}); }

} // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("empty.memory_format", &empty);
    m.impl("empty_strided", &empty_strided);
    m.impl("_efficientzerotensor", &noted_zeros);
    m.impl("resize_", &resize);
    m.impl("_copy_from", torch::CppFunction::makeFromBoxedFunction<&copy_from>());
    m.impl("_copy_from_and_resize", &copy_and_resize);
    m.impl("_local_scalar_dense", &item);
    m.impl("equal", &equal);
    m.impl("record_stream", &record_stream);
    m.impl("_has_compatible_shallow_copy_type", &may_become);
    m.impl("index.Tensor", &index_any);
    m.impl("masked_scatter_", torch::CppFunction::makeFromBoxedFunction<&masked_scatter>());
    m.impl("_index_put_impl_", torch::CppFunction::makeFromBoxedFunction<&index_put>());
    m.impl("_embedding_bag_backward", torch::CppFunction::makeFromBoxedFunction<&bag_backward>());
    m.impl("_to_sparse_csr", &at::native::dense_to_sparse_csr);
    m.impl("view", &view);
    m.impl("as_strided", &as_strided);
    m.impl("_reshape_alias", &reshape_alias);
    m.impl("set_.source_Storage_storage_offset", &set_part);
    m.impl("set_.source_Storage", &set_whole);
    m.impl("set_.source_Tensor", &set_tensor);
    m.impl("set_", &set_nothing);
}

// Sparse tensors are a description of dense ones, the same on every device; sparse.py computes with them.
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
    m.impl("_sparse_coo_tensor_with_dims", &at::native::new_with_dims_sparse);
    m.impl("_sparse_coo_tensor_with_dims_and_tensors", TORCH_FN(at::native::new_with_dims_and_tensor_sparse_symint));
    m.impl("empty.memory_format", TORCH_FN(at::native::empty_sparse_symint));
    m.impl("sparse_dim", &at::native::sparse_dim_sparse);
    m.impl("dense_dim", &at::native::dense_dim_sparse);
    m.impl("_nnz", &at::native::_nnz_sparse);
    m.impl("_indices", &at::native::_indices_sparse);
    m.impl("_values", &at::native::_values_sparse);
    m.impl("indices", &at::native::indices_sparse);
    m.impl("values", &at::native::values_sparse);
    m.impl("is_coalesced", &at::native::is_coalesced_sparse);
    m.impl("_coalesced_", &at::native::_coalesced_sparse_);
    m.impl("sparse_resize_", &at::native::sparse_resize_);
    m.impl("copy_", &at::native::copy_sparse_wrapper_);
    m.impl("copy_sparse_to_sparse_", &at::native::copy_sparse_);
    m.impl("clone", &at::native::clone_sparse);
    m.impl("zero_", &at::native::zero_sparse_);
    m.impl("_to_dense", &at::native::sparse_to_dense);
    m.impl("_to_sparse_csr", &at::native::coo_to_sparse_csr);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
    m.impl("empty.memory_format", TORCH_FN(at::native::empty_sparse_compressed_symint));
    m.impl("empty_like", &at::native::empty_like_sparse_csr);
    m.impl("sparse_dim", &at::native::sparse_dim_sparse_csr);
    m.impl("dense_dim", &at::native::dense_dim_sparse_csr);
    m.impl("_nnz", &at::native::_nnz_sparse_csr);
    m.impl("crow_indices", &at::native::crow_indices_sparse_csr);
    m.impl("col_indices", &at::native::col_indices_sparse_csr);
    m.impl("ccol_indices", &at::native::ccol_indices_sparse_csr);
    m.impl("row_indices", &at::native::row_indices_sparse_csr);
    m.impl("values", &at::native::values_sparse_csr);
    m.impl("copy_", &at::native::copy_sparse_compressed_);
    m.impl("clone", &at::native::clone_sparse_compressed);
    m.impl("zero_", &at::native::zero_sparse_csr_);
    m.impl("_to_dense", &at::native::sparse_compressed_to_dense);
    m.impl("_to_sparse.sparse_dim", static_cast<Tensor (*)(const Tensor &, int64_t)>(&at::native::sparse_compressed_to_sparse));
    m.impl("_to_sparse_csr", &at::native::sparse_compressed_to_sparse_csr);
}

// The copy is what computes them.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_FRAGMENT(opentrn, m) { // the same memory under the other device's name
    m.def("host_view(Tensor x) -> Tensor");
    m.def("device_view(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(opentrn, PrivateUse1, m) { m.impl("host_view", &host_view); }
TORCH_LIBRARY_IMPL(opentrn, CPU, m) { m.impl("device_view", &device_view); }

// What torch takes apart for devices without a kernel, and is one program here: lists of tensors, norms.
static void keep_whole(torch::Library &m) {
    auto keep = [&m](const char *name) { m.impl(name, torch::CppFunction::makeFromBoxedFunction<&run>()); };
    for (const c10::OperatorName &name : c10::Dispatcher::singleton().getAllOpNames())
        if (name.name.rfind("aten::_foreach_", 0) == 0 && name.overload_name.find("out") == std::string::npos)
            keep(c10::toString(name).c_str());
    for (const char *name : {"mode.values", "native_layer_norm", "native_group_norm", "native_group_norm_backward",
                             "convolution_overrideable", "convolution_backward_overrideable"})
        keep(name);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { keep_whole(m); }

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FULL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FULL_TYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
    AT_FORALL_LOWER_PRECISION_FP(LOWER)
    AT_FORALL_FP32(FULL)
    AT_FORALL_FP32_SET_OPT_DTYPE(FULL_TYPE)
    AT_FORALL_PROMOTE(WIDEST)
    FULL(cross_entropy_loss) // as on the CPU: its softmax would be asked for in the type of its input
#undef LOWER
#undef FULL
#undef FULL_TYPE
#undef WIDEST
}

// --- for Python (native.py, eager.py) ---------------------------------------------------------------------------------

extern "C" {

void neuron_begin(void *execute, void *print, int devices, int look) {
    look_first = look != 0;
    library.execute = reinterpret_cast<decltype(library.execute)>(execute);
    library.print = reinterpret_cast<decltype(library.print)>(print);
    device_count = devices;
    at::RegisterPrivateUse1HooksInterface(&hooks);
}

// The numbers of this operator ("aten::add_", "Tensor") become arguments of its program.
void neuron_lift(const char *name, const char *overload) {
    auto op = c10::Dispatcher::singleton().findSchema({name, overload});
    if (op) lifting.emplace(&op->schema(), 1);
}

int neuron_looking() { return looking; }
int neuron_overlapping() { return overlapping; }

void *neuron_host() { return made = new Entry; }

// rows: see eager.py, which writes them.
void *neuron_program(void *exe, const int64_t *row) {
    auto take = [&row] { return *row++; };
    auto entry = new Entry;
    entry->exe = static_cast<otrn_exe *>(exe);
    for (int64_t n = take(); n; n--) {
        int64_t number = row[0], rank = row[1];
        entry->resized.push_back({number, {row + 2, row + 2 + rank}, {row + 2 + rank, row + 2 + 2 * rank}});
        row += 2 + 2 * rank;
    }
    for (int64_t n = take(); n; n--) {
        int64_t number = take(), kind = take(), dense = take();
        entry->ins.push_back({number, static_cast<In::Kind>(kind), dense != 0});
    }
    for (int64_t n = take(); n; n--) {
        Out out{row[0], row[1], static_cast<at::ScalarType>(row[2]), {}, {}};
        int64_t rank = row[3];
        out.sizes.assign(row + 4, row + 4 + rank);
        out.strides.assign(row + 4 + rank, row + 4 + 2 * rank);
        row += 4 + 2 * rank;
        entry->outs.push_back(std::move(out));
    }
    for (int64_t n = take(); n; n--) {
        int64_t length = take();
        entry->returns.emplace_back(length, std::vector<std::pair<bool, int64_t>>{});
        for (int64_t i = length < 0 ? 1 : length; i; i--) {
            bool is_argument = take() != 0;
            entry->returns.back().second.emplace_back(is_argument, take());
        }
    }
    return made = entry;
}

int64_t neuron_runs(void *entry) { return static_cast<Entry *>(entry)->runs; }
}

#include "ops/cpu/onednn.h"

#include <dlfcn.h>

#include "ops/cpu/scratch.h"
#include "weft/base/detail/small_vector.h"
#include "weft/base/error.h"

namespace weft::cpu::onednn {

const dnnl::engine& engine() {
  // Never destroyed: threads may run to the very end.
  static const auto* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

const dnnl::primitive_attr& attributes() {
  static const auto* const attributes = [] {
    auto* made = new dnnl::primitive_attr;
    made->set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return made;
  }();
  return *attributes;
}

namespace {

// Looked up and not linked: which OpenMP runtime oneDNN brings along, if any, is the system's choice.
struct OpenMp {
  int (*threads)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  void (*set_threads)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
};
const OpenMp& open_mp() {
  static const OpenMp functions;
  return functions;
}

dnnl::stream& stream() {
  static thread_local dnnl::stream stream(engine());
  return stream;
}

}  // namespace

OneThread::OneThread() : before_(1) {
  if (!open_mp().threads || !open_mp().set_threads) return;
  before_ = open_mp().threads();
  if (before_ != 1) open_mp().set_threads(1);
}
OneThread::~OneThread() {
  if (before_ != 1) open_mp().set_threads(before_);
}

void run(const dnnl::primitive& primitive, const Desc& scratch, std::span<const Argument> arguments) {
  const OneThread one_thread;
  const Scratch memory(static_cast<int64_t>(scratch.get_size()));
  SmallVector<dnnl::memory, 6> memories;
  SmallVector<dnnl_exec_arg_t, 6> bound;
  auto bind = [&](int which, const Desc& desc, const void* data) {
    memories.push_back(dnnl::memory(desc, engine(), const_cast<void*>(data)));
    bound.push_back({which, memories.back().get()});
  };
  for (const Argument& argument : arguments) bind(argument.which, argument.desc, argument.data);
  if (scratch.get_size() > 0) bind(DNNL_ARG_SCRATCHPAD, scratch, memory.data());
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive.get(), stream().get(), static_cast<int>(bound.size()), bound.data());
  invariant(status == dnnl_success, "oneDNN failed to run a primitive it made (status {})",
            static_cast<int>(status));
  stream().wait();
}

Reorder::Reorder(const Desc& from, const Desc& to) : from_(from), to_(to) {
  if (from == to) return;
  const OneThread one_thread;
  const dnnl::reorder::primitive_desc made(engine(), from, engine(), to, attributes());
  scratch_ = made.scratchpad_desc();
  primitive_ = dnnl::reorder(made);
}

void Reorder::operator()(const float* from, float* to) const {
  const Argument arguments[] = {{DNNL_ARG_FROM, from_, from}, {DNNL_ARG_TO, to_, to}};
  run(primitive_, scratch_, arguments);
}

}  // namespace weft::cpu::onednn

#include "ops/cpu/onednn_convolution.h"

#include <array>
#include <memory>
#include <string_view>
#include <tuple>
#include <vector>

#include "ops/cpu/onednn.h"
#include "ops/cpu/scratch.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

using onednn::Desc;
using onednn::Reorder;
using Dims = dnnl::memory::dims;

enum class Direction : int64_t { kForward, kBackwardInput, kBackwardWeight };

// The three arrays of a convolution, whichever of them is computed.
enum Role : size_t { kInput, kWeight, kOutput };
constexpr size_t kRoles = 3;

Role result_of(Direction direction) {
  switch (direction) {
    case Direction::kForward:
      return kOutput;
    case Direction::kBackwardInput:
      return kInput;
    case Direction::kBackwardWeight:
      return kWeight;
  }
  return kOutput;
}

struct Problem {
  Direction direction;
  ConvolutionShape shape;
  std::array<ConvolutionOperand, kRoles> operands;
  const float* bias;
};

// A part of the problem: how many samples, groups, and channels of a group.
struct Extent {
  int64_t batch, groups, in_channels, out_channels;
  bool operator==(const Extent&) const = default;
};
// Where a part starts.
using Start = Extent;

// --- memory ----------------------------------------------------------------------------------------------

Dims dims_of(const Problem& p, const Extent& e, Role role) {
  const ConvolutionShape& s = p.shape;
  Dims dims;
  if (role == kWeight) {
    if (s.groups > 1) dims.push_back(e.groups);
    dims.insert(dims.end(), {e.out_channels, e.in_channels});
    dims.insert(dims.end(), s.kernel.begin(), s.kernel.end());
    return dims;
  }
  const auto& spatial = role == kInput ? s.in : s.out;
  dims = {e.batch, e.groups * (role == kInput ? e.in_channels : e.out_channels)};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}

Desc user_desc(const Problem& p, const Extent& e, Role role) {
  const Dims dims = dims_of(p, e, role);
  Dims strides(p.operands[role].strides.begin(), p.operands[role].strides.end());
  if (role == kWeight && p.shape.groups > 1)
    strides.insert(strides.begin(), p.shape.out_channels * strides[0]);
  // The stride of a single sample means nothing, but oneDNN would take a slice for another layout because of
  // it.
  if (role != kWeight && dims[0] == 1 && strides[1] != 1) strides[0] = dims[1] * strides[1];
  return Desc(dims, dnnl::memory::data_type::f32, strides);
}

int64_t user_offset(const Problem& p, const Start& at, Role role) {
  const ConvolutionShape& s = p.shape;
  const auto& strides = p.operands[role].strides;
  if (role == kWeight)
    return (at.groups * s.out_channels + at.out_channels) * strides[0] + at.in_channels * strides[1];
  const int64_t channel = role == kInput ? at.groups * s.in_channels + at.in_channels
                                         : at.groups * s.out_channels + at.out_channels;
  return at.batch * strides[0] + channel * strides[1];
}

bool is_channels_last(const ConvolutionOperand& operand) {
  return operand.strides.size() > 2 && operand.strides[1] == 1 && operand.strides.back() != 1;
}

// Of several groups, oneDNN has fast kernels for channels_last only if it can work on eight channels at a
// time.
bool has_channels_last_kernel(const ConvolutionShape& s) {
  const bool is_depthwise = s.in_channels == 1 && s.out_channels == 1;
  return s.groups == 1 || is_depthwise || (s.in_channels % 8 == 0 && s.out_channels % 8 == 0);
}

// What a primitive is asked for: channels_last where the user's arrays have it, else what oneDNN likes best.
Desc wanted_desc(const Problem& p, const Extent& e, Role role) {
  using Tag = dnnl::memory::format_tag;
  Tag tag = Tag::any;
  const bool is_last = is_channels_last(p.operands[kInput]) && is_channels_last(p.operands[kOutput]);
  if (role != kWeight && is_last && has_channels_last_kernel(p.shape)) {
    constexpr Tag tags[] = {Tag::nwc, Tag::nhwc, Tag::ndhwc};
    tag = tags[p.shape.in.size() - 1];
  }
  return Desc(dims_of(p, e, role), dnnl::memory::data_type::f32, tag);
}

// --- plans -----------------------------------------------------------------------------------------------

// One copy of a slice of channels from the user's array into the layout of a primitive.
struct Piece {
  Reorder reorder;
  int64_t user_offset;
};

// A primitive for one extent, and the copies between the user's layouts and its own.
struct Plan {
  dnnl::primitive primitive;
  Desc scratch, bias;
  std::array<Desc, kRoles> own;
  std::array<Reorder, kRoles> move;               // to its own layout, for the result back from it
  std::array<std::vector<Piece>, kRoles> pieces;  // the same cut into slices that threads can share
};

using Fixed = std::array<const Desc*, kRoles>;

template <typename Primitive>
bool is_good(const typename Primitive::primitive_desc& made) {
  return std::string_view(made.impl_info_str()).find("ref") == std::string_view::npos;
}

struct Spatial {
  Dims stride, dilation, before, after;
};
Spatial spatial_of(const ConvolutionShape& s) {
  Spatial spatial;
  for (size_t d = 0; d < s.in.size(); ++d) {
    const int64_t reach = (s.kernel[d] - 1) * s.dilation[d] + 1;
    spatial.stride.push_back(s.stride[d]);
    spatial.dilation.push_back(s.dilation[d] - 1);
    spatial.before.push_back(s.padding[d]);
    spatial.after.push_back((s.out[d] - 1) * s.stride[d] + reach - s.in[d] - s.padding[d]);
  }
  return spatial;
}

dnnl::convolution_forward::primitive_desc forward_desc(const Problem& p,
                                                       const std::array<Desc, kRoles>& wanted,
                                                       const Extent& e) {
  const Spatial sp = spatial_of(p.shape);
  const Desc bias =
      p.bias ? Desc({e.groups * e.out_channels}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x)
             : Desc();
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, wanted[kInput], wanted[kWeight],
      bias, wanted[kOutput], sp.stride, sp.dilation, sp.before, sp.after);
  return {desc, onednn::attributes(), onednn::engine()};
}

void finish_forward(Plan& plan, const dnnl::convolution_forward::primitive_desc& made) {
  plan.own = {made.src_desc(), made.weights_desc(), made.dst_desc()};
  plan.bias = made.bias_desc();
  plan.scratch = made.scratchpad_desc();
  plan.primitive = dnnl::convolution_forward(made);
}

// Sets the plan's primitive; false if only a slow one is there.
bool make_primitive(const Problem& p, const Extent& e, const std::array<Desc, kRoles>& wanted, Plan& plan) {
  const auto forward = forward_desc(p, wanted, e);
  if (p.direction == Direction::kForward) {
    if (!is_good<dnnl::convolution_forward>(forward)) return false;
    finish_forward(plan, forward);
    return true;
  }
  const Spatial sp = spatial_of(p.shape);
  constexpr auto direct = dnnl::algorithm::convolution_direct;
  if (p.direction == Direction::kBackwardInput) {
    using Primitive = dnnl::convolution_backward_data;
    const Primitive::desc desc(direct, wanted[kInput], wanted[kWeight], wanted[kOutput], sp.stride,
                               sp.dilation, sp.before, sp.after);
    const Primitive::primitive_desc made(desc, onednn::attributes(), onednn::engine(), forward);
    if (!is_good<Primitive>(made)) return false;
    plan.own = {made.diff_src_desc(), made.weights_desc(), made.diff_dst_desc()};
    plan.scratch = made.scratchpad_desc();
    plan.primitive = Primitive(made);
    return true;
  }
  using Primitive = dnnl::convolution_backward_weights;
  const Primitive::desc desc(direct, wanted[kInput], wanted[kWeight], wanted[kOutput], sp.stride, sp.dilation,
                             sp.before, sp.after);
  const Primitive::primitive_desc made(desc, onednn::attributes(), onednn::engine(), forward);
  if (!is_good<Primitive>(made)) return false;
  plan.own = {made.src_desc(), made.diff_weights_desc(), made.diff_dst_desc()};
  plan.scratch = made.scratchpad_desc();
  plan.primitive = Primitive(made);
  return true;
}

// Cuts the copy of an array along its channels. Slices must cover whole blocks of the primitive's layout, and
// have one sample each: oneDNN copies only the first sample of a slice of channels right.
std::vector<Piece> make_pieces(const Problem& p, const Extent& e, Role role, const Desc& own) {
  constexpr int64_t kSliceChannels = 16, kSliceBytes = 1 << 17, kMostSlices = 16;
  const Dims dims = dims_of(p, e, role);
  const size_t axis = role == kWeight ? dims.size() - p.shape.in.size() - 2 : 1;
  const Desc user = user_desc(p, e, role);
  const int64_t samples = role == kWeight ? 1 : dims[0];
  const int64_t channels = dims[axis], bytes = static_cast<int64_t>(own.get_size()) / samples;
  const int64_t* strides = user.data.format_desc.blocking.strides;
  int64_t slices = std::clamp<int64_t>(bytes / kSliceBytes, 1, kMostSlices);
  if (channels % kSliceChannels != 0) slices = 1;
  const int64_t step = (channels / slices + kSliceChannels - 1) / kSliceChannels * kSliceChannels;
  if (step >= channels) return {{Reorder(user, own), 0}};
  std::vector<Piece> pieces;
  for (int64_t sample = 0; sample < samples; ++sample)
    for (int64_t first = 0; first < channels; first += step) {
      Dims part = dims, offsets(dims.size(), 0);
      part[axis] = std::min(step, channels - first);
      offsets[axis] = first;
      int64_t user_offset = first * strides[axis];
      if (role != kWeight) {
        part[0] = 1;
        offsets[0] = sample;
        user_offset += sample * strides[0];
      }
      const Desc slice(part, dnnl::memory::data_type::f32, Dims(strides, strides + dims.size()));
      pieces.push_back({Reorder(slice, own.submemory_desc(part, offsets)), user_offset});
    }
  return pieces;
}

std::shared_ptr<const Plan> make_plan(const Problem& p, const Extent& e, const Fixed& fixed,
                                      const std::array<bool, kRoles>& in_pieces) {
  const onednn::OneThread one_thread;
  auto plan = std::make_shared<Plan>();
  try {
    std::array<Desc, kRoles> wanted;
    for (const Role role : {kInput, kWeight, kOutput})
      wanted[role] = fixed[role] ? *fixed[role] : wanted_desc(p, e, role);
    if (!make_primitive(p, e, wanted, *plan)) return nullptr;
    for (const Role role : {kInput, kWeight, kOutput}) {
      const Desc user = user_desc(p, e, role);
      plan->move[role] =
          role == result_of(p.direction) ? Reorder(plan->own[role], user) : Reorder(user, plan->own[role]);
      if (in_pieces[role] && plan->move[role].is_needed())
        plan->pieces[role] = make_pieces(p, e, role, plan->own[role]);
    }
  } catch (const dnnl::error&) {
    return nullptr;
  }
  return plan;
}

void append(onednn::PlanKey& key, const Extent& e) {
  key.insert(key.end(), {e.batch, e.groups, e.in_channels, e.out_channels});
}

std::shared_ptr<const Plan> find_plan(const Problem& p, const Extent& e, const Extent& main,
                                      const Fixed& fixed, const std::array<bool, kRoles>& in_pieces) {
  constexpr size_t kMostPlans = 1024;
  static auto* const cache = new onednn::PlanCache<Plan>(kMostPlans);
  const ConvolutionShape& s = p.shape;
  onednn::PlanKey key = {static_cast<int64_t>(p.direction),
                         p.bias != nullptr,
                         static_cast<int64_t>(s.in.size()),
                         s.groups,
                         s.in_channels,
                         s.out_channels,
                         in_pieces[kInput],
                         in_pieces[kWeight],
                         in_pieces[kOutput]};
  append(key, e);
  append(key, main);
  for (const auto* dims : {&s.in, &s.kernel, &s.out, &s.stride, &s.padding, &s.dilation})
    key.insert(key.end(), dims->begin(), dims->end());
  for (const ConvolutionOperand& operand : p.operands)
    key.insert(key.end(), operand.strides.begin(), operand.strides.end());
  return cache->find_or_make(key, [&] { return make_plan(p, e, fixed, in_pieces); });
}

// --- blocks ----------------------------------------------------------------------------------------------

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

int64_t multiplications(const ConvolutionShape& s) {
  return s.batch * s.groups * s.out_channels * s.patch() * s.out_size();
}
// Depthwise filters multiply little: there it is what they read and write that takes the time.
int64_t work(const ConvolutionShape& s) {
  constexpr int64_t kPerElement = 4;
  int64_t in_size = 1;
  for (int64_t size : s.in) in_size *= size;
  const int64_t elements = s.batch * s.groups * (s.in_channels * in_size + s.out_channels * s.out_size());
  return multiplications(s) + kPerElement * elements;
}

// The size of a block, from the sizes of the problem alone.
Extent choose_blocks(const Problem& p) {
  constexpr int64_t kBlockWork = 1 << 21;  // about 50 microseconds
  constexpr int64_t kMostBlocks = 16;
  constexpr int64_t kChannels = 32;  // what oneDNN's kernels keep in registers at once
  // So that a block's weights stay in the cache from sample to sample.
  constexpr int64_t kWeightBytes = 1 << 20;
  const ConvolutionShape& s = p.shape;
  Extent block{s.batch, s.groups, s.in_channels, s.out_channels};
  const int64_t blocks = std::clamp<int64_t>(work(s) / kBlockWork, 1, kMostBlocks);
  const bool cuts_batch = p.direction != Direction::kBackwardWeight;
  // Samples share nothing but weights: only where they are few are channels cut too.
  int64_t by_channels = !cuts_batch ? blocks : 2 * s.batch >= blocks ? 1 : ceil_div(blocks, s.batch);
  if (s.groups > 1) {
    by_channels = std::min(by_channels, s.groups);
    // Depthwise kernels work on eight groups at a time.
    block.groups = std::min(s.groups, round_up(ceil_div(s.groups, by_channels), 8));
    by_channels = ceil_div(s.groups, block.groups);
  } else {
    int64_t& channels = p.direction == Direction::kBackwardInput ? block.in_channels : block.out_channels;
    const int64_t weight_bytes = s.out_channels * s.patch() * static_cast<int64_t>(sizeof(float));
    if (cuts_batch && s.batch > 1) by_channels = std::max(by_channels, ceil_div(weight_bytes, kWeightBytes));
    by_channels = std::clamp<int64_t>(by_channels, 1, std::max<int64_t>(1, channels / kChannels));
    const int64_t whole = channels;
    channels = std::min(whole, round_up(ceil_div(whole, by_channels), 16));
    by_channels = ceil_div(whole, channels);
  }
  if (cuts_batch)
    block.batch = ceil_div(s.batch, std::clamp<int64_t>(ceil_div(blocks, by_channels), 1, s.batch));
  return block;
}

// All blocks of a problem with their plans; those at the far end may be smaller than the others.
class Blocks {
 public:
  explicit Blocks(const Problem& problem) : p_(problem), main_(choose_blocks(problem)) {
    const ConvolutionShape& s = p_.shape;
    batches_ = ceil_div(s.batch, main_.batch);
    slices_ = ceil_div(s.groups, main_.groups) * ceil_div(s.in_channels, main_.in_channels) *
              ceil_div(s.out_channels, main_.out_channels);
    // An array that several blocks read is brought into their layout once.
    is_shared_[shared_activation()] = s.groups == 1 && slices_ > 1;
    is_shared_[kWeight] = p_.direction != Direction::kBackwardWeight && batches_ > 1;
  }

  // False if there is no good plan.
  bool run() {
    if (!find_plans()) return false;
    share();
    parallel_for(0, batches_ * slices_, 1, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) run_block(block % batches_, block / batches_);
    });
    return true;
  }

 private:
  bool is_end(int64_t i, int64_t count) const { return count > 1 && i == count - 1; }
  const Plan& plan(int64_t batch, int64_t slice) const {
    return *plans_[is_end(batch, batches_)][is_end(slice, slices_)];
  }

  Start start(int64_t batch, int64_t slice) const {
    const ConvolutionShape& s = p_.shape;
    Start at{batch * main_.batch, 0, 0, 0};
    if (main_.groups < s.groups) at.groups = slice * main_.groups;
    else if (main_.in_channels < s.in_channels) at.in_channels = slice * main_.in_channels;
    else at.out_channels = slice * main_.out_channels;
    return at;
  }
  Extent extent(int64_t batch, int64_t slice) const {
    const ConvolutionShape& s = p_.shape;
    const Start at = start(batch, slice);
    return {std::min(main_.batch, s.batch - at.batch), std::min(main_.groups, s.groups - at.groups),
            std::min(main_.in_channels, s.in_channels - at.in_channels),
            std::min(main_.out_channels, s.out_channels - at.out_channels)};
  }

  // Blocks that read a shared array agree on its layout: the first of them chooses.
  bool find_plans() {
    for (const bool batch_end : {false, true})
      for (const bool slice_end : {false, true}) {
        const Extent e = extent(batch_end ? batches_ - 1 : 0, slice_end ? slices_ - 1 : 0);
        Fixed fixed{};
        if (slice_end && is_shared_[shared_activation()])
          fixed[shared_activation()] = &plans_[batch_end][0]->own[shared_activation()];
        if (batch_end && is_shared_[kWeight]) fixed[kWeight] = &plans_[0][slice_end]->own[kWeight];
        auto& plan = plans_[batch_end][slice_end];
        plan = e == main_ && plans_[0][0] ? plans_[0][0] : find_plan(p_, e, main_, fixed, is_shared_);
        if (!plan) return false;
      }
    return true;
  }
  // The array that has none of the channels that slices cut.
  Role shared_activation() const { return p_.direction == Direction::kBackwardInput ? kOutput : kInput; }

  // Where the result of moving the user's array into a block's layout is kept if others read it too.
  const Scratch& shared(Role role, int64_t batch, int64_t slice) const {
    return shared_[role][static_cast<size_t>(role == kWeight ? slice : batch)];
  }

  // Brings the shared arrays into the layout of the blocks, on all threads.
  void share() {
    struct Move {
      const Piece* piece;
      const float* from;
      float* to;
    };
    std::vector<Move> moves;
    for (const Role role : {kInput, kWeight, kOutput}) {
      if (!is_shared_[role]) continue;
      const int64_t count = role == kWeight ? slices_ : batches_;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t batch = role == kWeight ? 0 : i, slice = role == kWeight ? i : 0;
        const Plan& plan = this->plan(batch, slice);
        const bool is_moved = plan.move[role].is_needed();
        shared_[role].emplace_back(is_moved ? static_cast<int64_t>(plan.own[role].get_size()) : 0);
        const float* from = p_.operands[role].data + user_offset(p_, start(batch, slice), role);
        for (const Piece& piece : plan.pieces[role])
          moves.push_back({&piece, from + piece.user_offset, shared_[role].back().as<float>()});
      }
    }
    parallel_for(0, static_cast<int64_t>(moves.size()), 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const Move& move = moves[static_cast<size_t>(i)];
        move.piece->reorder(move.from, move.to);
      }
    });
  }

  void run_block(int64_t batch, int64_t slice) const {
    static constexpr int kArguments[][kRoles] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                                 {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                                 {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    const Plan& plan = this->plan(batch, slice);
    const Role result = result_of(p_.direction);
    const Start at = start(batch, slice);
    std::vector<Scratch> moved;
    std::vector<onednn::Argument> arguments;
    float *users_result = nullptr, *own_result = nullptr;
    for (const Role role : {kInput, kWeight, kOutput}) {
      float* const user = p_.operands[role].data + user_offset(p_, at, role);
      float* own = user;
      if (plan.move[role].is_needed()) {
        if (is_shared_[role]) {
          own = shared(role, batch, slice).as<float>();
        } else {
          own = moved.emplace_back(static_cast<int64_t>(plan.own[role].get_size())).as<float>();
          if (role != result) plan.move[role](user, own);
        }
      }
      if (role == result) std::tie(users_result, own_result) = std::pair(user, own);
      arguments.push_back({kArguments[static_cast<size_t>(p_.direction)][role], plan.own[role], own});
    }
    if (p_.bias) {
      const int64_t first = at.groups * p_.shape.out_channels + at.out_channels;
      arguments.push_back({DNNL_ARG_BIAS, plan.bias, p_.bias + first});
    }
    onednn::run(plan.primitive, plan.scratch, arguments);
    if (own_result != users_result) plan.move[result](own_result, users_result);
  }

  const Problem& p_;
  const Extent main_;
  int64_t batches_ = 1, slices_ = 1;
  std::array<bool, kRoles> is_shared_{};
  std::shared_ptr<const Plan> plans_[2][2];          // [the last batch?][the last slice?]
  std::array<std::vector<Scratch>, kRoles> shared_;  // for each block of samples; weights: of channels
};

bool run_problem(const Problem& problem) {
  // Below, unfolding costs less than making a primitive, which takes about a millisecond, and calling it.
  constexpr int64_t kLeastWork = 1 << 15;
  if (multiplications(problem.shape) < kLeastWork) return false;
  return Blocks(problem).run();
}

}  // namespace

bool onednn_convolution_forward(const ConvolutionShape& shape, const ConvolutionOperand& input,
                                const ConvolutionOperand& weight, const float* bias,
                                const ConvolutionOperand& output) {
  return run_problem({Direction::kForward, shape, {input, weight, output}, bias});
}
bool onednn_convolution_backward_input(const ConvolutionShape& shape, const ConvolutionOperand& grad,
                                       const ConvolutionOperand& weight,
                                       const ConvolutionOperand& grad_input) {
  return run_problem({Direction::kBackwardInput, shape, {grad_input, weight, grad}, nullptr});
}
bool onednn_convolution_backward_weight(const ConvolutionShape& shape, const ConvolutionOperand& grad,
                                        const ConvolutionOperand& input,
                                        const ConvolutionOperand& grad_weight) {
  return run_problem({Direction::kBackwardWeight, shape, {input, grad_weight, grad}, nullptr});
}

}  // namespace weft::cpu

#include "ops/cpu/block_loop.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "ops/cpu/convert.h"
#include "ops/cpu/stream_copy.h"
#include "ops/cpu/strided_move.h"
#include "ops/cpu/thread_elements.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

constexpr int64_t kBufferBytes = 8192;  // three of them and their sources fit the first-level cache
constexpr int64_t kBlock = 1024;
constexpr int64_t kShortBlock =
    256;  // gathering, computing and streaming overlap only if they alternate quickly
constexpr int64_t kTileColumns = 64;  // a block where some operand is transposed
constexpr int64_t kLongRow = 256;     // from here on a call of the loop for each row costs little
static_assert(kShortBlock >= kLongRow, "a block has a whole row, or a part of a long one");

struct OperandPlan {
  OperandTypes types;
  int64_t item, loop_item;
  int64_t column, row;  // strides in bytes
  bool buffered;
  bool streamed;  // a large result: its blocks go from the buffer to memory around the caches
  Loop convert;   // between memory and buffer; null where the types agree
};

// What is the same for every block.
struct BlockPlan {
  const LoopNest* nest;
  char* const* data;
  int operands, outputs;
  int64_t columns, rows;  // of a whole block
  int64_t column_blocks, row_blocks, blocks;
  bool one_call;  // a block is contiguous for every operand (buffers included): one call of the loop does
  Loop loop;
  const void* params;
  OperandPlan plan[kMaxOperands];
};

OperandPlan plan_operand(const LoopNest& nest, int k, const OperandTypes& types, bool is_output) {
  OperandPlan plan;
  plan.types = types;
  plan.item = item_size(types.memory);
  plan.loop_item = item_size(types.loop);
  plan.column = nest.stride(k, 0);
  plan.row = nest.stride(k, 1);
  plan.buffered = types.memory != types.loop || (nest.rank > 0 && plan.column != plan.item);
  plan.streamed = false;
  plan.convert = nullptr;
  if (types.memory != types.loop)
    plan.convert = is_output ? converter(types.memory, types.loop) : converter(types.loop, types.memory);
  return plan;
}

// A single result that is large, dense along the rows, and no input too.
void plan_stream(BlockPlan& plan) {
  OperandPlan& out = plan.plan[0];
  if (!plan.loop || plan.outputs != 1 || out.convert || out.column != out.item) return;
  if (plan.nest->count() * out.item < kStreamBytes) return;
  for (int k = 1; k < plan.operands; ++k)
    if (plan.data[k] == plan.data[0]) return;
  out.streamed = out.buffered = true;
}

bool is_transposed(const OperandPlan& plan) {
  return plan.row != 0 && std::llabs(plan.row) < std::llabs(plan.column);
}

void choose_block(BlockPlan& plan) {
  const LoopNest& nest = *plan.nest;
  int64_t n0 = nest.size(0), n1 = nest.size(1), widest = 1;
  bool transposed = false, all_direct = true, alternates = plan.plan[0].streamed;
  for (int k = 0; k < plan.operands; ++k) {
    const OperandPlan& operand = plan.plan[k];
    widest = std::max({widest, operand.item, operand.loop_item});
    transposed |= is_transposed(operand);
    all_direct &= !operand.buffered;
    alternates |= operand.column != operand.item && operand.column != 0;
  }
  int64_t limit = std::min(alternates ? kShortBlock : kBlock, kBufferBytes / widest);
  plan.one_call = false;
  if (transposed && n0 >= 8 && n1 >= 8) {
    plan.columns = std::min(n0, kTileColumns);
    plan.rows = std::min(n1, std::min<int64_t>(2048, kBufferBytes / widest) / plan.columns);
  } else if (n0 >= kLongRow) {
    plan.columns = std::min(n0, all_direct ? kThreadElements : limit);
    plan.rows = 1;
  } else {
    plan.columns = n0;
    plan.rows = std::min(n1, limit / n0);
    plan.one_call = true;
    // Rows that do not follow one another in memory are collected in a buffer.
    for (int k = 0; k < plan.operands; ++k)
      if (plan.rows > 1 && plan.plan[k].row != n0 * plan.plan[k].item) plan.plan[k].buffered = true;
  }
  if (plan.rows == 1) plan.one_call = true;
  plan.column_blocks = (n0 + plan.columns - 1) / plan.columns;
  plan.row_blocks = (n1 + plan.rows - 1) / plan.rows;
  plan.blocks = plan.column_blocks * plan.row_blocks;
  for (int d = 2; d < nest.rank; ++d) plan.blocks *= nest.sizes[d];
}

// Runs a range of blocks on one thread.
class BlockRunner {
 public:
  explicit BlockRunner(const BlockPlan& plan) : plan_(plan) {
    for (int k = 0; k < plan.operands; ++k) filled_[k] = {};
  }

  bool run(int64_t begin, int64_t end) {
    seek(begin);
    bool refused = false;
    for (int64_t block = begin; block < end; ++block, advance()) refused |= run_block();
    if (plan_.plan[0].streamed) finish_streams();
    return refused;
  }

 private:
  struct Filled {
    const char* source = nullptr;
    int64_t rows = 0, columns = 0;
  };

  void seek(int64_t block) {
    column_block_ = block % plan_.column_blocks;
    block /= plan_.column_blocks;
    row_block_ = block % plan_.row_blocks;
    block /= plan_.row_blocks;
    for (int k = 0; k < plan_.operands; ++k) base_[k] = plan_.data[k];
    for (int d = 2; d < plan_.nest->rank; ++d) {
      outer_[d] = block % plan_.nest->sizes[d];
      block /= plan_.nest->sizes[d];
      for (int k = 0; k < plan_.operands; ++k) base_[k] += outer_[d] * plan_.nest->strides[k][d];
    }
  }

  void advance() {
    if (++column_block_ < plan_.column_blocks) return;
    column_block_ = 0;
    if (++row_block_ < plan_.row_blocks) return;
    row_block_ = 0;
    const LoopNest& nest = *plan_.nest;
    for (int d = 2; d < nest.rank; ++d) {
      ++outer_[d];
      for (int k = 0; k < plan_.operands; ++k) base_[k] += nest.strides[k][d];
      if (outer_[d] < nest.sizes[d]) return;
      for (int k = 0; k < plan_.operands; ++k) base_[k] -= outer_[d] * nest.strides[k][d];
      outer_[d] = 0;
    }
  }

  bool run_block() {
    int64_t first_column = column_block_ * plan_.columns, first_row = row_block_ * plan_.rows;
    Rectangle size = {std::min(plan_.rows, plan_.nest->size(1) - first_row),
                      std::min(plan_.columns, plan_.nest->size(0) - first_column)};
    char* pointers[kMaxOperands];
    char* memory[kMaxOperands];
    for (int k = 0; k < plan_.operands; ++k) {
      const OperandPlan& operand = plan_.plan[k];
      memory[k] = base_[k] + first_column * operand.column + first_row * operand.row;
      pointers[k] = operand.buffered ? buffers_[k] : memory[k];
    }
    if (!plan_.loop) return copy_block(memory, size);
    for (int k = plan_.outputs; k < plan_.operands; ++k)
      if (plan_.plan[k].buffered) fill(k, memory[k], size);
    bool refused = plan_.one_call ? plan_.loop(size.rows * size.columns, pointers, plan_.params)
                                  : run_rows(pointers, size);
    if (plan_.plan[0].streamed)
      for (int k = plan_.outputs; k < plan_.operands; ++k) prefetch_ahead(plan_.plan[k], memory[k], size);
    for (int k = 0; k < plan_.outputs; ++k)
      if (plan_.plan[k].buffered) empty(k, memory[k], size);
    return refused;
  }

  bool copy_block(char** memory, Rectangle size) {
    const OperandPlan &to = plan_.plan[0], &from = plan_.plan[1];
    move_rectangle(memory[0], {to.column, to.row}, memory[1], {from.column, from.row}, size, to.item);
    return false;
  }

  bool run_rows(char** pointers, Rectangle size) {
    bool refused = false;
    for (int64_t r = 0; r < size.rows; ++r) {
      refused |= plan_.loop(size.columns, pointers, plan_.params);
      for (int k = 0; k < plan_.operands; ++k) {
        const OperandPlan& operand = plan_.plan[k];
        pointers[k] += operand.buffered ? size.columns * operand.loop_item : operand.row;
      }
    }
    return refused;
  }

  // Brings an input's block into its buffer. A block that is the same for every row of blocks is kept.
  void fill(int k, const char* source, Rectangle size) {
    const OperandPlan& operand = plan_.plan[k];
    Filled& filled = filled_[k];
    bool rows_repeat = size.rows == 1 || operand.row == 0;
    if (filled.source == source && filled.columns == size.columns && rows_repeat && filled.rows >= size.rows)
      return;
    filled = {source, size.rows, size.columns};
    Strides2 packed = {operand.item, operand.item * size.columns};
    int64_t n = size.rows * size.columns;
    if (!operand.convert) {
      move_rectangle(buffers_[k], packed, source, {operand.column, operand.row}, size, operand.item);
    } else if (is_packed(operand, size)) {
      convert(operand.convert, buffers_[k], const_cast<char*>(source), n);
    } else {
      move_rectangle(scratch_, packed, source, {operand.column, operand.row}, size, operand.item);
      convert(operand.convert, buffers_[k], scratch_, n);
    }
  }

  // Brings an output's buffer to memory.
  void empty(int k, char* target, Rectangle size) {
    const OperandPlan& operand = plan_.plan[k];
    Strides2 packed = {operand.item, operand.item * size.columns};
    int64_t n = size.rows * size.columns;
    if (operand.streamed) return stream_rows(operand, target, buffers_[k], size);
    if (operand.convert && is_packed(operand, size)) return convert(operand.convert, target, buffers_[k], n);
    const char* last = buffers_[k];
    if (operand.convert) {
      convert(operand.convert, scratch_, buffers_[k], n);
      last = scratch_;
    }
    move_rectangle(target, {operand.column, operand.row}, last, packed, size, operand.item);
  }

  // What a block at least a page ahead reads, where it follows this one.
  [[gnu::always_inline]] static void prefetch_ahead(const OperandPlan& operand, const char* memory,
                                                    Rectangle size) {
    constexpr int64_t kFarthest = 64;  // beyond it, an element has a cache line to itself
    constexpr int64_t kPage = 4096;
    if (operand.column <= 0 || operand.column > kFarthest) return;
    if (size.rows > 1 && !is_packed(operand, size)) return;
    const int64_t bytes = size.rows * size.columns * operand.column;
    prefetch(memory + std::max(bytes, kPage), bytes);
  }
  static void stream_rows(const OperandPlan& operand, char* target, const char* buffer, Rectangle size) {
    int64_t row_bytes = size.columns * operand.item;
    if (is_packed(operand, size)) return stream_copy(target, buffer, size.rows * row_bytes);
    for (int64_t r = 0; r < size.rows; ++r)
      stream_copy(target + r * operand.row, buffer + r * row_bytes, row_bytes);
  }
  static bool is_packed(const OperandPlan& operand, Rectangle size) {
    return operand.column == operand.item && (size.rows == 1 || operand.row == operand.item * size.columns);
  }
  static void convert(Loop loop, char* to, char* from, int64_t n) {
    char* pointers[] = {to, from};
    loop(n, pointers, nullptr);
  }

  const BlockPlan& plan_;
  int64_t column_block_, row_block_;
  int64_t outer_[kMaxRank];
  char* base_[kMaxOperands];
  Filled filled_[kMaxOperands];
  alignas(64) char buffers_[kMaxOperands][kBufferBytes];
  alignas(64) char scratch_[kBufferBytes];
};

}  // namespace

bool run_blocks(const LoopNest& nest, char* const* data, const OperandTypes* types, int outputs, Loop loop,
                const void* params) {
  BlockPlan plan;
  plan.nest = &nest;
  plan.data = data;
  plan.operands = nest.operands;
  plan.outputs = outputs;
  plan.loop = loop;
  plan.params = params;
  for (int k = 0; k < nest.operands; ++k) plan.plan[k] = plan_operand(nest, k, types[k], k < outputs);
  plan_stream(plan);
  choose_block(plan);
  int64_t grain = std::max<int64_t>(1, kThreadElements / (plan.rows * plan.columns));
  std::atomic<bool> refused{false};
  parallel_for(0, plan.blocks, grain, [&](int64_t begin, int64_t end) {
    BlockRunner runner(plan);
    if (runner.run(begin, end)) refused.store(true, std::memory_order_relaxed);
  });
  return refused.load(std::memory_order_relaxed);
}

}  // namespace weft::cpu

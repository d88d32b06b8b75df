#include "ops/cpu/reduction.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "ops/cpu/convert.h"
#include "ops/cpu/loop_nest.h"
#include "ops/cpu/strided_move.h"
#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::cpu {

namespace {

constexpr int64_t kBatch = 64;     // results reduced together when each is a run of memory
constexpr int64_t kGroup = 1024;   // neighbouring results reduced together, row by row
constexpr int64_t kPiece = 32768;  // elements given to a loop at once; partial results bound the error
constexpr int64_t kSplitElements = 131072;
constexpr int64_t kManyJobs = 64;  // enough to keep threads busy without splitting reductions
constexpr int64_t kBufferBytes = 8192;
constexpr int64_t kMaxAccumulator = 24;  // bytes

// The work: `jobs` of neighbouring results, each reduced in `chunks` that are combined at the end. All of it
// follows from sizes, never from the number of threads.
struct ReductionPlan {
  const ReductionLoops* loops;
  int outputs;
  DType output_types[2];
  char* data[3];     // input, outputs
  LoopNest kept;     // operands: input, outputs
  LoopNest reduced;  // operand: input
  int64_t kept_count, reduced_count;
  double param;
  int64_t item, compute_item;
  Loop convert;  // input to compute type; null if they agree
  bool by_rows;  // neighbouring results are accumulated together, a row of them at a time
  int64_t job_columns, jobs, jobs_per_line;
  int64_t piece, pieces, units, units_per_chunk,
      chunks;  // a unit: a piece of the innermost reduced dimension
};

void make_nests(ReductionPlan& plan, const Operand& in, std::span<const Operand> outputs,
                std::span<const int64_t> sizes, uint64_t reduced, bool ordered) {
  Operand operands[3] = {in};
  for (size_t k = 0; k < outputs.size(); ++k) operands[k + 1] = outputs[k];
  plan.kept.operands = static_cast<int>(outputs.size()) + 1;
  plan.reduced.operands = 1;
  for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d) {
    if (sizes[d] == 1) continue;
    LoopNest& nest = (reduced >> d) & 1 ? plan.reduced : plan.kept;
    nest.append(sizes[d], operands, d);
  }
  plan.kept.order();
  plan.kept.merge();
  if (!ordered) plan.reduced.order();
  plan.reduced.merge();
  plan.kept_count = plan.kept.count();
  plan.reduced_count = plan.reduced.count();
}

bool prefers_rows(const ReductionPlan& plan) {
  if (plan.kept.rank == 0 || plan.reduced.rank == 0) return false;
  int64_t kept = std::llabs(plan.kept.strides[0][0]), reduced = std::llabs(plan.reduced.strides[0][0]);
  // Runs of less than a vector cost more to start than to reduce: a transposed copy of many of them goes
  // faster.
  bool short_runs = plan.reduced.sizes[0] * plan.compute_item < 32 && plan.kept.sizes[0] >= 16;
  return short_runs || (kept != 0 && kept < reduced);
}

void choose_jobs(ReductionPlan& plan) {
  plan.by_rows = prefers_rows(plan);
  int64_t run = plan.reduced.size(0), columns = 1;
  if (plan.by_rows) {
    plan.job_columns = std::min(plan.kept.sizes[0], kGroup);
    plan.jobs_per_line = (plan.kept.sizes[0] + plan.job_columns - 1) / plan.job_columns;
    plan.jobs = plan.kept_count / plan.kept.sizes[0] * plan.jobs_per_line;
    columns = plan.job_columns;
  } else {
    plan.job_columns = plan.kept_count >= kManyJobs ? kBatch : 1;
    plan.jobs_per_line = 0;
    plan.jobs = (plan.kept_count + plan.job_columns - 1) / plan.job_columns;
  }
  plan.piece = std::min(run, std::max<int64_t>(8, kPiece / columns));
  plan.pieces = (run + plan.piece - 1) / plan.piece;
  plan.units = plan.reduced_count / run * plan.pieces;
  plan.units_per_chunk = std::max<int64_t>(1, kSplitElements / (plan.piece * columns));
  bool many = plan.jobs >= kManyJobs || (!plan.by_rows && plan.job_columns > 1);
  if (many) plan.units_per_chunk = std::max<int64_t>(1, plan.units);
  plan.chunks = (plan.units + plan.units_per_chunk - 1) / plan.units_per_chunk;
}

// Where the reduced element number `index` (of dimensions 1 and up) begins, from the nest's base.
int64_t outer_offset(const LoopNest& nest, int64_t index) {
  int64_t offset = 0;
  for (int d = 1; d < nest.rank; ++d) {
    offset += index % nest.sizes[d] * nest.strides[0][d];
    index /= nest.sizes[d];
  }
  return offset;
}
int64_t offset_of(const LoopNest& nest, int operand, int64_t index) {
  int64_t offset = 0;
  for (int d = 0; d < nest.rank; ++d) {
    offset += index % nest.sizes[d] * nest.strides[operand][d];
    index /= nest.sizes[d];
  }
  return offset;
}

class ReductionJob {
 public:
  ReductionJob(const ReductionPlan& plan, int64_t job) : plan_(plan) {
    if (plan.by_rows) {
      int64_t line = job / plan.jobs_per_line, group = job % plan.jobs_per_line;
      first_ = line * plan.kept.sizes[0] + group * plan.job_columns;
      columns_ = std::min(plan.job_columns, plan.kept.sizes[0] - group * plan.job_columns);
    } else {
      first_ = job * plan.job_columns;
      columns_ = std::min(plan.job_columns, plan.kept_count - first_);
    }
  }

  // Reduces one chunk into a fresh block.
  void reduce(char* block, int64_t chunk) {
    plan_.loops->init(block, columns_);
    int64_t begin = chunk * plan_.units_per_chunk, end = std::min(plan_.units, begin + plan_.units_per_chunk);
    if (plan_.reduced_count == 0) return;
    if (plan_.by_rows) {
      reduce_units(block, 0, plan_.data[0] + offset_of(plan_.kept, 0, first_), begin, end);
      return;
    }
    int64_t line = plan_.kept.size(0), stride = plan_.kept.stride(0, 0), at = first_ % line;
    const char* base = plan_.data[0] + offset_of(plan_.kept, 0, first_);
    if (has_short_runs()) {
      for (int64_t c = 0; c < columns_;) {
        int64_t count = std::min(columns_ - c, line - (first_ + c) % line);
        base = plan_.data[0] + offset_of(plan_.kept, 0, first_ + c);
        plan_.loops->runs(block, c, base, count, stride, plan_.reduced.size(0));
        c += count;
      }
      return;
    }
    for (int64_t c = 0; c < columns_; ++c, ++at, base += stride) {
      if (at == line) {
        at = 0;
        base = plan_.data[0] + offset_of(plan_.kept, 0, first_ + c);
      }
      reduce_units(block, c, base, begin, end);
    }
  }

  void combine(char* block, const char* other) { plan_.loops->combine(block, other, columns_); }

  void finish(const char* block) {
    alignas(64) char results[2][kGroup * 16];
    char* pointers[] = {results[0], results[1]};
    plan_.loops->finish(block, columns_, plan_.reduced_count, plan_.param, pointers);
    for (int k = 0; k < plan_.outputs; ++k) store(k, results[k]);
  }

 private:
  // One run of memory for each result, in the compute type, and none so long that it needs pieces.
  bool has_short_runs() const {
    return plan_.loops->runs && plan_.units == 1 && !plan_.convert &&
           plan_.reduced.stride(0, 0) == plan_.item && plan_.reduced.size(0) <= kLongestRun;
  }

  void reduce_units(char* block, int64_t column, const char* base, int64_t begin, int64_t end) {
    const LoopNest& nest = plan_.reduced;
    int64_t run = nest.size(0), stride = nest.stride(0, 0);
    if (plan_.units == 1 && !plan_.by_rows) {  // the usual case: one run for each result
      add_run(block, column, base, run, stride, 0);
      return;
    }
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t outer = unit / plan_.pieces, start = unit % plan_.pieces * plan_.piece;
      int64_t n = std::min(plan_.piece, run - start), index = outer * run + start;
      const char* p = base + outer_offset(nest, outer) + start * stride;
      if (plan_.by_rows) add_rows(block, p, n, stride, index);
      else add_run(block, column, p, n, stride, index);
    }
  }

  void add_run(char* block, int64_t column, const char* p, int64_t n, int64_t stride, int64_t index) {
    if (!plan_.convert && (stride == plan_.item || n == 1)) {
      plan_.loops->row(block, columns_, column, p, n, index);
      return;
    }
    int64_t step = kBufferBytes / std::max(plan_.item, plan_.compute_item);
    for (int64_t i = 0; i < n; i += step) {
      int64_t size = std::min(step, n - i);
      const char* packed = bring(p + i * stride, {stride, 0}, {1, size});
      plan_.loops->row(block, columns_, column, packed, size, index + i);
    }
  }

  void add_rows(char* block, const char* p, int64_t rows, int64_t stride, int64_t index) {
    int64_t column_stride = plan_.kept.strides[0][0];
    if (!plan_.convert && (column_stride == plan_.item || columns_ == 1)) {
      plan_.loops->rows(block, columns_, p, rows, stride, index);
      return;
    }
    int64_t step = std::max<int64_t>(1, kBufferBytes / std::max(plan_.item, plan_.compute_item) / columns_);
    for (int64_t r = 0; r < rows; r += step) {
      int64_t size = std::min(step, rows - r);
      const char* packed = bring(p + r * stride, {column_stride, stride}, {size, columns_});
      plan_.loops->rows(block, columns_, packed, size, columns_ * plan_.compute_item, index + r);
    }
  }

  // A rectangle of the input, packed and in the compute type.
  const char* bring(const char* p, Strides2 from, Rectangle size) {
    int64_t n = size.rows * size.columns;
    bool packed = from.column == plan_.item && (size.rows == 1 || from.row == plan_.item * size.columns);
    if (!packed) {
      move_rectangle(gathered_, {plan_.item, plan_.item * size.columns}, p, from, size, plan_.item);
      p = gathered_;
    }
    if (!plan_.convert) return p;
    char* pointers[] = {converted_, const_cast<char*>(p)};
    plan_.convert(n, pointers, nullptr);
    return converted_;
  }

  void store(int k, char* results) {
    DType type = plan_.output_types[k];
    alignas(64) char converted[kGroup * 16];
    char* pointers[] = {converted, results};
    converter(type, plan_.loops->outputs[k])(columns_, pointers, nullptr);
    int64_t item = item_size(type), line = plan_.kept.size(0);
    for (int64_t done = 0; done < columns_;) {
      int64_t at = first_ + done, run = std::min(columns_ - done, line - at % line);
      move_rectangle(plan_.data[k + 1] + offset_of(plan_.kept, k + 1, at), {plan_.kept.stride(k + 1, 0), 0},
                     converted + done * item, {item, 0}, {1, run}, item);
      done += run;
    }
  }

  const ReductionPlan& plan_;
  int64_t first_, columns_;
  alignas(64) char gathered_[kBufferBytes];
  alignas(64) char converted_[kBufferBytes];
};

void run_whole_jobs(const ReductionPlan& plan) {
  int64_t elements = std::max<int64_t>(1, plan.reduced_count) * plan.job_columns;
  int64_t grain = std::max<int64_t>(1, kPiece / elements);
  parallel_for(0, plan.jobs, grain, [&](int64_t begin, int64_t end) {
    alignas(64) char block[kReductionHeader + kGroup * kMaxAccumulator];
    for (int64_t j = begin; j < end; ++j) {
      ReductionJob job(plan, j);
      job.reduce(block, 0);
      job.finish(block);
    }
  });
}

void run_split_jobs(const ReductionPlan& plan) {
  // Whole cache lines, so that threads do not share one.
  int64_t bytes = (kReductionHeader + plan.job_columns * plan.loops->bytes + 127) / 64 * 64;
  std::unique_ptr<char[]> memory(new char[plan.jobs * plan.chunks * bytes + 64]);
  char* blocks = memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64) % 64;
  parallel_for(0, plan.jobs * plan.chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      ReductionJob(plan, t / plan.chunks).reduce(blocks + t * bytes, t % plan.chunks);
  });
  for (int64_t j = 0; j < plan.jobs; ++j) {
    ReductionJob job(plan, j);
    char* first = blocks + j * plan.chunks * bytes;
    for (int64_t k = 1; k < plan.chunks; ++k) job.combine(first, first + k * bytes);
    job.finish(first);
  }
}

}  // namespace

void run_reduction(const ReductionKernel& kernel, DType compute, const Operand& in,
                   std::span<const Operand> outputs, std::span<const int64_t> sizes, uint64_t reduced,
                   double param) {
  if (!kernel.supports(compute))
    unsupported("{} is not implemented for {}", kernel.name, dtype_name(compute));
  invariant(outputs.size() == static_cast<size_t>(kernel.outputs), "{} was called with {} outputs",
            kernel.name, outputs.size());
  require(sizes.size() <= kMaxRank, "{}: a tensor of {} dimensions; {} at most", kernel.name, sizes.size(),
          kMaxRank);
  ReductionPlan plan;
  plan.loops = active_table(kernel.tables).loops[static_cast<int>(compute)];
  invariant(plan.loops->bytes <= kMaxAccumulator, "{}: an accumulator of {} bytes", kernel.name,
            plan.loops->bytes);
  plan.outputs = kernel.outputs;
  plan.param = param;
  plan.data[0] = in.data;
  for (size_t k = 0; k < outputs.size(); ++k) {
    plan.data[k + 1] = outputs[k].data;
    plan.output_types[k] = outputs[k].dtype;
  }
  plan.item = item_size(in.dtype);
  plan.compute_item = item_size(compute);
  plan.convert = in.dtype == compute ? nullptr : converter(compute, in.dtype);
  make_nests(plan, in, outputs, sizes, reduced, kernel.ordered);
  if (plan.kept_count == 0) return;
  if (plan.reduced_count == 0) plan.reduced.rank = 0;  // no walk; the count stays 0
  choose_jobs(plan);
  if (plan.chunks <= 1) run_whole_jobs(plan);
  else run_split_jobs(plan);
}

}  // namespace weft::cpu

// Checkpoints: what an environment knows at one moment, and the way back to it.
#include <algorithm>

#include "sym/expr_pool.h"
#include "weft/base/error.h"
#include "weft/sym/shape_env.h"

namespace weft {

using sym::Symbol;

// Guards and assertions are only ever added, so their number is enough; the rest is copied.
struct sym::Snapshot {
  const ShapeEnv* env;
  std::vector<Symbol> symbols;
  decltype(ShapeEnv::name_counts_) name_counts;
  decltype(ShapeEnv::duck_) duck;
  size_t guards, runtime_asserts;
  decltype(ShapeEnv::replacements_) replacements;
  decltype(ShapeEnv::facts_) facts;
  decltype(ExprPool::bounds) bounds;
};

ShapeEnv::Checkpoint ShapeEnv::checkpoint() {
  std::erase_if(checkpoints_, [](const auto& entry) { return entry.expired(); });
  auto snapshot =
      std::make_shared<const sym::Snapshot>(sym::Snapshot{.env = this,
                                                          .symbols = {symbols_.begin(), symbols_.end()},
                                                          .name_counts = name_counts_,
                                                          .duck = duck_,
                                                          .guards = guards_.size(),
                                                          .runtime_asserts = runtime_asserts_.size(),
                                                          .replacements = replacements_,
                                                          .facts = facts_,
                                                          .bounds = pool_->bounds});
  checkpoints_.push_back(snapshot);
  return snapshot;
}

void ShapeEnv::rollback(const Checkpoint& to) {
  require(to && to->env == this, "rollback: the checkpoint is of another ShapeEnv");
  auto own = std::ranges::find_if(checkpoints_, [&](const auto& entry) { return entry.lock() == to; });
  require(own != checkpoints_.end(),
          "rollback: the checkpoint has ended, since an earlier one was rolled back to; take a new one");
  checkpoints_.erase(own + 1, checkpoints_.end());
  for (; symbols_.size() > to->symbols.size(); symbols_.pop_back()) {
    names_.erase(symbols_.back().name);
    pool_->forget(symbols_.back().expr, std::move(symbols_.back().name));
  }
  std::ranges::copy(to->symbols, symbols_.begin());
  name_counts_ = to->name_counts;
  duck_ = to->duck;
  guards_.erase(guards_.begin() + static_cast<ptrdiff_t>(to->guards), guards_.end());
  runtime_asserts_.erase(runtime_asserts_.begin() + static_cast<ptrdiff_t>(to->runtime_asserts),
                         runtime_asserts_.end());
  replacements_ = to->replacements;
  facts_ = to->facts;
  pool_->bounds = to->bounds;
  for (const Symbol& symbol : symbols_) {
    pool_->state(symbol.expr).range = symbol.range;
    pool_->state(symbol.expr).hint = symbol.hint;
  }
  pool_->revise();
}

void ShapeEnv::forget_symbols_since(const Checkpoint& start) {
  require(start && start->env == this, "forget_symbols_since: the checkpoint is of another ShapeEnv");
  auto survives = [&](const sym::Guard& guard) {
    return std::ranges::all_of(free_symbols(guard.condition), [&](const Symbol* symbol) {
      return static_cast<size_t>(symbol->expr->value()) < start->symbols.size();
    });
  };
  auto kept_of = [&](const std::vector<sym::Guard>& all, size_t from) {
    std::vector<sym::Guard> kept;
    std::ranges::copy_if(all.begin() + static_cast<ptrdiff_t>(from), all.end(), std::back_inserter(kept),
                         survives);
    return kept;
  };
  const std::vector<sym::Guard> guards = kept_of(guards_, start->guards),
                                asserts = kept_of(runtime_asserts_, start->runtime_asserts);
  rollback(start);
  auto restore = [&](const std::vector<sym::Guard>& kept, std::vector<sym::Guard>& all) {
    for (const sym::Guard& guard : kept) {
      all.push_back(guard);
      learn(guard.condition);
    }
  };
  restore(guards, guards_);
  restore(asserts, runtime_asserts_);
}

}  // namespace weft

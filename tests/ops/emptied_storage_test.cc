// Every operator on a tensor whose storage was emptied: an error or an answer that needs no elements, never a
// read of memory that is not there.
#include <cstring>

#include "table_support.h"
#include "weft/ops/extension.h"

namespace weft {
namespace {

using table::Case;
using table::Exceptions;
using table::Findings;

constexpr const char* kEmptied = "its storage has 0 bytes";

bool can_be_emptied(const Tensor& tensor) {
  return tensor.defined() && !tensor.impl()->box && tensor.storage()->bytes() > 0 && tensor.plain_numel() > 0;
}

// The sample's call with the storage of its tensor `k` emptied; false when there is none.
bool call_emptied(const Case& one, size_t k, std::vector<std::string>& texts) {
  std::vector<Value> args = one.args();
  std::vector<Tensor> tensors = table::tensors_in(args);
  if (k >= tensors.size()) return false;
  if (!can_be_emptied(tensors[k])) return true;
  call("inductor::resize_storage_bytes_", {tensors[k], 0});
  try {
    call(*one.op, args);
    // The elements of the first tensor are what an operator on elements is about.
    if (k == 0 && one.op->has(Traits::kPointwise | Traits::kReduction)) texts.push_back("gave an answer");
  } catch (const Error& error) {
    const bool says_why = std::strstr(error.what(), kEmptied) != nullptr;
    if (!says_why && k == 0 && one.op->has(Traits::kPointwise)) texts.push_back(error.what());
  }
  return true;
}

TEST(EmptiedStorages, AreNeverRead) {
  Findings findings = table::check_samples([](const Operator&) { return true; },
                                           [](const Case& one, std::vector<std::string>& texts) {
                                             for (size_t k = 0; call_emptied(one, k, texts);) ++k;
                                           });
  const std::string why = "its first tensor only gives sizes, type and layout";
  table::expect_only(
      findings,
      {{"aten::copy", why}, {"aten::fill.Scalar", why}, {"aten::fill.Tensor", why}, {"aten::zero", why}});
}

}  // namespace
}  // namespace weft

// Sums of products by Einstein's notation.
#include <algorithm>
#include <bitset>

#include "ops/support/family.h"

namespace weft::ops {
namespace {

// --- the equation ----------------------------------------------------------------------------------------

constexpr int kLabels = 52, kEllipsis = 52;
int label_of(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' : 26 + c - 'a'; }
char letter_of(int label) { return static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26); }
bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

struct Equation {
  std::vector<std::vector<int>> operands;
  std::vector<int> output;
  bool has_output = false;
};
// One list of labels; "..." is kEllipsis.
std::vector<int> labels_in(std::string_view text, const std::string& whose) {
  std::vector<int> labels;
  bool has_ellipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      require(!has_ellipsis, "einsum(): found '.' for {} for which an ellipsis was already found", whose);
      require(text.substr(i, 3) == "...", "einsum(): found '.' for {} that is not part of any ellipsis",
              whose);
      i += 2;
      has_ellipsis = true;
      labels.push_back(kEllipsis);
      continue;
    }
    require(is_letter(text[i]),
            "einsum(): invalid subscript given for {}: subscripts must be in [a-zA-Z], but got '{}'", whose,
            text[i]);
    labels.push_back(label_of(text[i]));
  }
  return labels;
}
Equation parsed(std::string_view text, size_t count) {
  Equation equation;
  const size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  for (size_t start = 0;; ++start) {
    const size_t comma = left.find(',', start);
    std::string_view part = left.substr(start, comma == std::string_view::npos ? comma : comma - start);
    equation.operands.push_back(labels_in(part, fmt::format("operand {}", equation.operands.size())));
    if (comma == std::string_view::npos) break;
    start = comma;
  }
  require(equation.operands.size() <= count,
          "einsum(): fewer operands were provided than specified in the equation: {} for \"{}\"", count,
          text);
  require(equation.operands.size() == count,
          "einsum(): more operands were provided than specified in the equation: {} for \"{}\"", count, text);
  if (arrow == std::string_view::npos) return equation;
  equation.has_output = true;
  equation.output = labels_in(text.substr(arrow + 2), "the output");
  return equation;
}

// Where each label is among the dims that all operands get: those of the output, then those that are summed.
struct Plan {
  std::array<int, kLabels> place;
  int ellipsis_place = 0, ellipsis_dims = 0;
  size_t outputs = 0, dims = 0;
};
Plan plan_of(const Equation& equation, TensorSpan tensors) {
  Plan plan;
  plan.place.fill(-1);
  std::array<int, kLabels> count{};
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::vector<int>& labels = equation.operands[i];
    const auto rank = static_cast<int>(tensors[i].dim());
    const bool has_ellipsis = std::find(labels.begin(), labels.end(), kEllipsis) != labels.end();
    const int named = static_cast<int>(labels.size()) - (has_ellipsis ? 1 : 0);
    require(has_ellipsis ? named <= rank : named == rank,
            "einsum(): the number of subscripts in the equation ({}) {} the number of dimensions ({}) for "
            "operand {}{}",
            named, has_ellipsis ? "is more than" : "does not match", rank, i,
            has_ellipsis ? "" : " and no ellipsis was given");
    if (has_ellipsis) plan.ellipsis_dims = std::max(plan.ellipsis_dims, rank - named);
    for (int label : labels)
      if (label != kEllipsis) ++count[static_cast<size_t>(label)];
  }
  int next = 0;
  bool has_ellipsis = false;
  auto place_ellipsis = [&] {
    plan.ellipsis_place = next;
    next += plan.ellipsis_dims;
    has_ellipsis = true;
  };
  if (equation.has_output) {
    for (int label : equation.output) {
      if (label == kEllipsis) {
        place_ellipsis();
        continue;
      }
      const auto at = static_cast<size_t>(label);
      require(plan.place[at] < 0, "einsum(): output subscript {} appears more than once in the output",
              letter_of(label));
      require(count[at] > 0,
              "einsum(): output subscript {} does not appear in the equation for any input operand",
              letter_of(label));
      plan.place[at] = next++;
    }
  } else {
    place_ellipsis();
    for (size_t label = 0; label < kLabels; ++label)
      if (count[label] == 1) plan.place[label] = next++;
  }
  plan.outputs = static_cast<size_t>(next);
  if (!has_ellipsis) place_ellipsis();
  for (size_t label = 0; label < kLabels; ++label)
    if (count[label] > 0 && plan.place[label] < 0) plan.place[label] = next++;
  plan.dims = static_cast<size_t>(next);
  return plan;
}

// The operand with a dim for every label: the diagonal of those that it repeats, ones for those it lacks.
Tensor laid_out(const Tensor& tensor, const std::vector<int>& labels, const Plan& plan, size_t number) {
  Tensor operand = tensor;
  std::vector<int64_t> dim_of(plan.dims, -1);
  int64_t dim = 0;
  for (int label : labels) {
    if (label == kEllipsis) {
      const int64_t own = tensor.dim() - (static_cast<int64_t>(labels.size()) - 1);
      for (int64_t k = 0; k < own; ++k)
        dim_of[static_cast<size_t>(plan.ellipsis_place + plan.ellipsis_dims - own + k)] = dim++;
      continue;
    }
    const auto place = static_cast<size_t>(plan.place[static_cast<size_t>(label)]);
    if (dim_of[place] < 0) {
      dim_of[place] = dim++;
      continue;
    }
    const int64_t first = dim_of[place];
    require(guard_or(operand.size(first) == operand.size(dim), true),
            "einsum(): subscript {} is repeated for operand {} but the sizes don't match, {} != {}",
            letter_of(label), number, operand.size(dim).to_string(), operand.size(first).to_string());
    operand = movedim(diagonal(operand, 0, first, dim), -1, first);
  }
  Ints order;
  for (int64_t& at : dim_of) {
    if (at < 0) {
      operand = unsqueeze(operand, operand.dim());
      at = dim++;
    }
    order.push_back(at);
  }
  return permute(operand, order);
}

// --- contraction -----------------------------------------------------------------------------------------

bool is_one(const SymInt& size) { return guard_or(size == 1, false); }

// The product of two operands, summed over some of their dims, which stay as ones: one bmm.
Tensor summed_product(const Tensor& left_, const Tensor& right_, const std::vector<bool>& is_summed) {
  Tensor left = left_, right = right_;
  Ints both, only_left, only_right, summed;
  SymInt both_size = 1, left_size = 1, right_size = 1, summed_size = 1;
  for (int64_t d = 0; d < left.dim(); ++d) {
    const bool in_left = !is_one(left.size(d)), in_right = !is_one(right.size(d));
    if (is_summed[static_cast<size_t>(d)]) {
      summed.push_back(d);
      if (in_left && in_right) {
        require(guard_or(left.size(d) == right.size(d), true),
                "einsum(): operands do not broadcast with remapped shapes: sizes {} and {} of a summed dim "
                "differ",
                left.size(d).to_string(), right.size(d).to_string());
        summed_size = summed_size * left.size(d);
      } else if (in_left) {
        left = sum(left, {d}, true);
      } else if (in_right) {
        right = sum(right, {d}, true);
      }
    } else if (in_left && in_right) {
      both.push_back(d);
      both_size = both_size * left.size(d);
    } else if (in_left) {
      only_left.push_back(d);
      left_size = left_size * left.size(d);
    } else {
      only_right.push_back(d);
      right_size = right_size * right.size(d);
    }
  }
  SymInts sizes;
  Ints left_order, right_order, back(static_cast<size_t>(left.dim()), 0);
  for (int64_t d : both) sizes.push_back(left.size(d));
  for (int64_t d : only_left) sizes.push_back(left.size(d));
  for (size_t i = 0; i < summed.size(); ++i) sizes.push_back(1);
  for (int64_t d : only_right) sizes.push_back(right.size(d));
  for (const Ints* part : {&both, &only_left, &summed, &only_right})
    for (int64_t d : *part) left_order.push_back(d);
  for (const Ints* part : {&both, &summed, &only_right, &only_left})
    for (int64_t d : *part) right_order.push_back(d);
  for (size_t i = 0; i < left_order.size(); ++i)
    back[static_cast<size_t>(left_order[i])] = static_cast<int64_t>(i);
  Tensor a = reshape(permute(left, left_order), {both_size, left_size, summed_size});
  Tensor b = reshape(permute(right, right_order), {both_size, summed_size, right_size});
  return permute(view(bmm(a, b), sizes), back);
}

// From left to right unless a path says otherwise: what is in two operands only is summed with them.
Tensor einsum_composite(std::string_view text, TensorSpan tensors, OptionalIntSpan path) {
  require(!tensors.empty(), "einsum(): must provide at least one operand");
  const Equation equation = parsed(text, tensors.size());
  const Plan plan = plan_of(equation, tensors);
  std::vector<Tensor> operands;
  for (size_t i = 0; i < tensors.size(); ++i)
    operands.push_back(laid_out(tensors[i], equation.operands[i], plan, i));
  std::vector<int> count(plan.dims);
  for (size_t d = 0; d < plan.dims; ++d) {
    SymInt size = 1;
    for (size_t i = 0; i < operands.size(); ++i) {
      const SymInt own = operands[i].size(static_cast<int64_t>(d));
      if (is_one(own)) continue;
      require(is_one(size) || guard_or(size == own, true),
              "einsum(): operands do not broadcast with remapped shapes [original->remapped]: operand {} has "
              "size {} "
              "where others have {}",
              i, own.to_string(), size.to_string());
      size = own;
      ++count[d];
    }
  }
  if (operands.size() == 1) {
    Ints summed;
    for (size_t d = plan.outputs; d < plan.dims; ++d) summed.push_back(static_cast<int64_t>(d));
    return summed.empty() ? operands[0] : sum(operands[0], summed);
  }
  require(!path || path->size() == 2 * (operands.size() - 1),
          "einsum(): expected contraction path given in path parameter to have {} numbers, but got {}",
          2 * (operands.size() - 1), path ? path->size() : 0);
  for (size_t step = 0; operands.size() > 1; ++step) {
    auto first = path ? (*path)[2 * step] : 0, second = path ? (*path)[2 * step + 1] : 1;
    if (first > second) std::swap(first, second);
    require(first >= 0 && first != second && second < static_cast<int64_t>(operands.size()),
            "einsum(): the path names operands {} and {} of {}", first, second, operands.size());
    Tensor a = operands[static_cast<size_t>(first)], b = operands[static_cast<size_t>(second)];
    operands.erase(operands.begin() + second);
    operands.erase(operands.begin() + first);
    std::vector<bool> is_summed(plan.dims);
    Ints of_a, of_b;
    bool sums = false;
    for (size_t d = plan.outputs; d < plan.dims; ++d) {
      const auto dim = static_cast<int64_t>(d);
      const bool in_a = !is_one(a.size(dim)), in_b = !is_one(b.size(dim));
      if (in_a && in_b) {
        if (--count[d] != 1) continue;
        is_summed[d] = sums = true;
        count[d] = 0;
      } else if (count[d] == 1 && (in_a || in_b)) {
        (in_a ? of_a : of_b).push_back(dim);
        count[d] = 0;
      }
    }
    if (!of_a.empty()) a = sum(a, of_a, true);
    if (!of_b.empty()) b = sum(b, of_b, true);
    operands.push_back(sums ? summed_product(a, b, is_summed) : a * b);
    // The result takes part in the next step as the last operand, as in PyTorch without a path it is the
    // first.
    if (!path) std::rotate(operands.begin(), operands.end() - 1, operands.end());
  }
  if (plan.dims == plan.outputs) return operands[0];
  SymInts sizes;
  for (size_t d = 0; d < plan.outputs; ++d) sizes.push_back(operands[0].sizes()[d]);
  return view(operands[0], sizes);
}

}  // namespace

WEFT_OPERATOR(einsum) = {
    .schema = "aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
    .composite = {.functional = function<&einsum_composite>()},
    .samples =
        [] {
          return Samples{{"matrices", {"ij,jk->ik", Value::list({f64({2, 3}), f64({3, 4})})}},
                         {"batched", {"bij, bjk", Value::list({f64({2, 2, 3}), f64({2, 3, 2})})}},
                         {"trace", {"ii", Value::list({f64({3, 3})})}},
                         {"three", {"i,ij,j->", Value::list({f64({2}), f64({2, 3}), f64({3})})}},
                         {"ellipsis", {"...i,...i->...", Value::list({f64({2, 3}), f64({3})})}}};
        },
};

}  // namespace weft::ops

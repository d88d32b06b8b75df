#include "compat/support/case.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "weft/autograd/autograd.h"
#include "weft/ops/functions.h"

namespace weft::compat {

Case::Case(const std::string& folder, const std::string& name)
    : zip_(zip::Archive::open(folder + "/" + name + ".zip")),
      notes_(Json::parse(zip_.read(zip_.at("case.json")), name)) {
  constexpr std::string_view kEnd = ".safetensors";
  for (const zip::Entry& entry : zip_.entries())
    if (entry.name.ends_with(kEnd))
      tensors_.emplace(entry.name.substr(0, entry.name.size() - kEnd.size()),
                       parse_safetensors(zip_.read(entry), name + ": " + entry.name));
}

std::string Case::archive(const std::string& dialect) const {
  std::map<std::string, const zip::Entry*> entries;
  const std::string shared = "pt2/", own = dialect + "/";
  for (const std::string& prefix : {shared, own})
    for (const zip::Entry& entry : zip_.entries())
      if (entry.name.starts_with(prefix)) entries[entry.name.substr(prefix.size())] = &entry;
  std::string bytes;
  zip::Writer writer([&](std::string_view part) { bytes += part; });
  for (const auto& [name, entry] : entries) writer.add("model/" + name, zip_.read(*entry));
  writer.finish();
  return bytes;
}

const SafeTensors* Case::tensors(const std::string& name) const {
  auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

Tolerance Case::tolerance() const {
  const Json& tolerance = notes_.at("tolerance");
  return {tolerance.at("rtol").as_double(), tolerance.at("atol").as_double()};
}

namespace {

constexpr std::string_view kTensor = "tensor:";

// Calls f for the leaves of {"tuple": [...]}, {"list": [...]}, {"dict": {...}}, {"namedtuple": ..., "fields":
// {...}}.
void for_each_leaf(const Json& json, const std::function<void(const Json&)>& f) {
  if (!json.is_object()) return f(json);
  for (const char* key : {"tuple", "list"})
    if (const Json* items = json.find(key))
      for (const Json& item : items->as_array()) for_each_leaf(item, f);
  for (const char* key : {"dict", "fields"})
    if (const Json* items = json.find(key))
      for (const auto& [name, item] : items->as_object()) for_each_leaf(item, f);
}

Value literal(const Json& json) {
  if (json.is_bool()) return json.as_bool();
  if (json.is_int()) return json.as_int();
  if (json.is_double()) return json.as_double();
  if (json.is_string()) return json.as_string();
  return {};
}

ValueList leaves_of(const std::vector<const Json*>& trees,
                    const std::function<Value(const std::string&)>& tensor) {
  ValueList leaves;
  for (const Json* tree : trees)
    for_each_leaf(*tree, [&](const Json& leaf) {
      const bool is_tensor = leaf.is_string() && leaf.as_string().starts_with(kTensor);
      leaves.push_back(is_tensor ? tensor(leaf.as_string().substr(kTensor.size())) : literal(leaf));
    });
  return leaves;
}

Tensor with_strides(const Tensor& values, const Json* strides) {
  if (!strides) return values.clone();
  SymInts wanted;
  int64_t last = 1;
  for (size_t i = 0; i < strides->size(); ++i) {
    wanted.push_back(strides->at(i).as_int());
    last += std::max<int64_t>(values.plain_sizes()[i] - 1, 0) * strides->at(i).as_int();
  }
  Tensor memory = zeros({last}, values.dtype());
  return memory.as_strided(values.sizes(), wanted).copy_(values);
}

}  // namespace

ValueList Case::inputs(const std::string& suffix) const {
  const SafeTensors& values = *tensors("inputs" + suffix);
  return leaves_of({&notes_.at("args" + suffix), &notes_.at("kwargs")}, [&](const std::string& key) {
    return Value(
        with_strides(values.at(key), suffix.empty() ? notes_.at("input_strides").find(key) : nullptr));
  });
}

ValueList Case::violating_inputs() const {
  const Json& violation = notes_.at("violation");
  return leaves_of({&notes_.at("args"), &notes_.at("kwargs")}, [&](const std::string& key) {
    SymInts sizes;
    for (const Json& size : violation.at("shapes").at(static_cast<size_t>(std::stoul(key))).as_array())
      sizes.push_back(size.as_int());
    Tensor tensor = zeros(sizes, tensors("inputs")->at(key).dtype());
    const Json* values = violation.find("values");
    if (const Json* value = values ? values->find(key) : nullptr) tensor.fill_(Scalar(value->as_double()));
    return Value(tensor);
  });
}

ValueList Case::outputs(const std::string& suffix) const {
  const SafeTensors& values = *tensors("outputs" + suffix);
  return leaves_of({&notes_.at("output" + suffix)},
                   [&](const std::string& key) { return Value(values.at(key)); });
}

std::vector<std::string> case_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".zip") names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

std::vector<double> numbers_of(const Tensor& given) {
  NoGrad no_grad;
  Tensor tensor = resolve_neg(resolve_conj(given.detach()));
  if (is_complex(tensor.dtype())) tensor = view_as_real(tensor);
  tensor = tensor.to(kFloat64).contiguous();
  const double* data = tensor.data<double>();
  return {data, data + tensor.plain_numel()};
}

}  // namespace

double largest_magnitude(const Tensor& tensor) {
  double largest = 0;
  for (double number : numbers_of(tensor)) largest = std::max(largest, std::abs(number));
  return largest;
}

std::string difference(const Tensor& expected, const Tensor& got, const Tolerance& tolerance) {
  if (!got.defined()) return "there is no tensor";
  if (describe(expected).str() != describe(got.detach()).str())
    return fmt::format("{} instead of {}", describe(got.detach()).str(), describe(expected).str());
  const bool is_exact = !is_differentiable(expected.dtype());
  const std::vector<double> a = numbers_of(expected), b = numbers_of(got);
  for (size_t i = 0; i < a.size(); ++i) {
    if ((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i]) continue;
    const double limit = is_exact ? 0 : tolerance.atol + tolerance.rtol * std::abs(a[i]);
    if (!(std::abs(a[i] - b[i]) <= limit)) return fmt::format("number {} is {} instead of {}", i, b[i], a[i]);
  }
  return "";
}

std::string gradient_difference(const Tensor& expected, const Tensor& got, double largest) {
  const std::vector<double> a = numbers_of(expected);
  const std::vector<double> b = got.defined() ? numbers_of(got) : std::vector<double>(a.size());
  if (a.size() != b.size()) return fmt::format("it has {} numbers instead of {}", b.size(), a.size());
  double own = 0;
  for (double number : a) own = std::max(own, std::abs(number));
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (!(std::abs(a[i] - b[i]) <= 1e-3 * std::abs(a[i]) + 1e-4 * own + 1e-6 * largest))
      return fmt::format("number {} is {} instead of {}", i, b[i], a[i]);
  }
  return "";
}

bool same_relation(std::string a, std::string b) {
  struct Relation {
    std::string left, sign, right;
  };
  auto parse = [](std::string& text) {
    std::erase_if(text, [](char c) { return c == ' ' || c == '(' || c == ')'; });
    // The parentheses of size() are gone on both sides alike.
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"})
      if (const size_t at = text.find(sign); at != text.npos)
        return Relation{text.substr(0, at), sign, text.substr(at + std::string(sign).size())};
    return Relation{text, "", ""};
  };
  const std::map<std::string, std::string> turned = {{"==", "=="}, {"!=", "!="}, {"<=", ">="}, {">=", "<="},
                                                     {"<", ">"},   {">", "<"},   {"", ""}};
  const Relation x = parse(a), y = parse(b);
  return (x.left == y.left && x.sign == y.sign && x.right == y.right) ||
         (x.left == y.right && x.sign == turned.at(y.sign) && x.right == y.left);
}

}  // namespace weft::compat

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <variant>

#include "io/pickle.h"
#include "io/pickle_opcodes.h"
#include "io/stored_tensor.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/ops/functions.h"

namespace weft::pickle {
namespace {

constexpr int kNewestProtocol = 5;

struct StorageType {
  const char* name;
  DType dtype;
};
constexpr StorageType kStorageTypes[] = {{"FloatStorage", kFloat32},
                                         {"DoubleStorage", kFloat64},
                                         {"HalfStorage", kFloat16},
                                         {"LongStorage", kInt64},
                                         {"IntStorage", kInt32},
                                         {"ShortStorage", kInt16},
                                         {"CharStorage", kInt8},
                                         {"ByteStorage", kUInt8},
                                         {"BoolStorage", kBool},
                                         {"BFloat16Storage", kBFloat16},
                                         {"ComplexFloatStorage", kComplex64},
                                         {"ComplexDoubleStorage", kComplex128},
                                         {"UntypedStorage", kUInt8}};

struct Global {
  std::string module, name;
  std::string text() const { return module + "." + name; }
};
struct MadeStorage {
  Ref<Storage> storage;
  DType dtype;
};
// A container while it may still grow. Containers refer to each other by number, so that however deep they
// are nested, nothing recurses.
struct CellRef {
  size_t index;
};
using Item = std::variant<Value, CellRef, Global, MadeStorage>;
struct Cell {
  enum class Kind { kList, kTuple, kDict } kind;
  std::vector<Item> items;  // of a dictionary: key, value, key, value
  bool is_foreign = false;  // stands for an object of a class that is not known
};

class Machine {
 public:
  Machine(std::string_view bytes, std::string_view source, LoadStorage storage, const Limits& limits)
      : bytes_(bytes), source_(source), load_storage_(storage), limits_(limits) {}

  Value run() {
    while (true) {
      opcode_at_ = at_;
      const auto opcode = static_cast<Opcode>(static_cast<unsigned char>(take(1)[0]));
      if (opcode == kStop) break;
      step(opcode);
    }
    if (at_ != bytes_.size()) refuse("{} bytes follow its end", bytes_.size() - at_);
    if (stack_.size() != 1 || !marks_.empty()) refuse("it ends with {} values, not one", stack_.size());
    return finish(stack_[0]);
  }

 private:
  template <typename... A>
  [[noreturn]] void refuse(fmt::format_string<const A&...> text, const A&... args) const {
    throw FormatError(
        fmt::format("{}: byte {} of the pickle: {}", source_, opcode_at_, fmt::format(text, args...)));
  }

  // --- reading bytes -------------------------------------------------------------------------------------

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) refuse("it ends in the middle of a value");
    std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == bytes_.npos) refuse("it ends in the middle of a line");
    std::string_view part = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return part;
  }
  template <typename T>
  T little() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  template <typename T>
  T number_in(std::string_view text) {
    T value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) refuse("'{}' is no number", text);
    return value;
  }
  int64_t long_of(std::string_view digits) {
    // Two's complement, little-endian, of any length.
    const unsigned char sign = !digits.empty() && (digits.back() & 0x80) ? 0xff : 0;
    for (size_t i = 8; i < digits.size(); ++i)
      if (static_cast<unsigned char>(digits[i]) != sign)
        refuse("an integer of {} bytes does not fit 64 bits", digits.size());
    uint64_t value = sign ? ~uint64_t{0} : 0;
    for (size_t i = 0; i < std::min<size_t>(digits.size(), 8); ++i) {
      value &= ~(uint64_t{0xff} << (8 * i));
      value |= uint64_t{static_cast<unsigned char>(digits[i])} << (8 * i);
    }
    if (digits.size() > 8 && (value >> 63 != 0) != (sign != 0)) refuse("an integer does not fit 64 bits");
    return static_cast<int64_t>(value);
  }
  double big_endian_double() {
    uint64_t bits = 0;
    for (char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    return std::bit_cast<double>(bits);
  }

  // --- the stack -----------------------------------------------------------------------------------------

  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void push(Item item) { stack_.push_back(std::move(item)); }
  Item pop() {
    if (stack_.size() <= floor()) refuse("the stack is empty");
    Item item = std::move(stack_.back());
    stack_.pop_back();
    return item;
  }
  Item& top() {
    if (stack_.size() <= floor()) refuse("the stack is empty");
    return stack_.back();
  }
  std::vector<Item> pop_to_mark() {
    if (marks_.empty()) refuse("there is no mark");
    const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    std::vector<Item> items(std::make_move_iterator(begin), std::make_move_iterator(stack_.end()));
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  void push_cell(Cell::Kind kind, std::vector<Item> items, bool is_foreign = false) {
    cells_.push_back({kind, std::move(items), is_foreign});
    push(CellRef{cells_.size() - 1});
  }
  void push_tuple(size_t count) {
    std::vector<Item> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    push_cell(Cell::Kind::kTuple, std::move(items));
  }
  Cell& cell_in(const Item& item, Cell::Kind kind, const char* wanted) {
    const auto* ref = std::get_if<CellRef>(&item);
    if (!ref || cells_[ref->index].kind != kind) refuse("expected {}", wanted);
    return cells_[ref->index];
  }
  void append(std::vector<Item> items) {
    Cell& list = cell_in(top(), Cell::Kind::kList, "a list to append to");
    list.items.insert(list.items.end(), std::make_move_iterator(items.begin()),
                      std::make_move_iterator(items.end()));
  }
  void set_items(std::vector<Item> items) {
    if (items.size() % 2) refuse("a dictionary has a key without a value");
    Cell& dict = cell_in(top(), Cell::Kind::kDict, "a dictionary to add to");
    dict.items.insert(dict.items.end(), std::make_move_iterator(items.begin()),
                      std::make_move_iterator(items.end()));
  }
  void put(uint64_t index) { memo_[index] = top(); }
  void get(uint64_t index) {
    auto found = memo_.find(index);
    if (found == memo_.end()) refuse("nothing was kept under {}", index);
    push(found->second);
  }

  // --- one instruction -----------------------------------------------------------------------------------

  void step(Opcode opcode) {
    switch (opcode) {
      case kProto:
        if (const int version = static_cast<unsigned char>(take(1)[0]); version > kNewestProtocol)
          refuse("protocol {} is newer than the newest that is known ({})", version, kNewestProtocol);
        return;
      case kFrame:
        if (little<uint64_t>() > bytes_.size() - at_) refuse("a frame is longer than the pickle");
        return;
      case kMark:
        return marks_.push_back(stack_.size());
      case kPop:
        // Python drops a mark that is on top.
        if (!marks_.empty() && marks_.back() == stack_.size()) marks_.pop_back();
        else pop();
        return;
      case kPopMark:
        pop_to_mark();
        return;
      case kDup:
        return push(Item(top()));
      case kNone:
        return push(Value());
      case kNewTrue:
        return push(Value(true));
      case kNewFalse:
        return push(Value(false));
      case kInt: {
        const std::string_view text = line();
        if (text == "00" || text == "01") return push(Value(text == "01"));
        return push(Value(number_in<int64_t>(text)));
      }
      case kLong: {
        std::string_view text = line();
        if (text.ends_with('L')) text.remove_suffix(1);
        return push(Value(number_in<int64_t>(text)));
      }
      case kBinInt:
        return push(Value(little<int32_t>()));
      case kBinInt1:
        return push(Value(little<uint8_t>()));
      case kBinInt2:
        return push(Value(little<uint16_t>()));
      case kLong1:
        return push(Value(long_of(take(little<uint8_t>()))));
      case kLong4:
        return push(Value(long_of(take(little<uint32_t>()))));
      case kFloat:
        return push(Value(number_in<double>(line())));
      case kBinFloat:
        return push(Value(big_endian_double()));
      case kUnicode:
        return push(Value(line()));
      case kBinString:
      case kBinUnicode:
      case kBinBytes:
        return push(Value(take(little<uint32_t>())));
      case kShortBinString:
      case kShortBinUnicode:
      case kShortBinBytes:
        return push(Value(take(little<uint8_t>())));
      case kBinUnicode8:
      case kBinBytes8:
        return push(Value(take(little<uint64_t>())));
      case kEmptyList:
        return push_cell(Cell::Kind::kList, {});
      case kEmptyTuple:
        return push_cell(Cell::Kind::kTuple, {});
      case kEmptyDict:
        return push_cell(Cell::Kind::kDict, {});
      case kList:
        return push_cell(Cell::Kind::kList, pop_to_mark());
      case kTuple:
        return push_cell(Cell::Kind::kTuple, pop_to_mark());
      case kDict: {
        std::vector<Item> items = pop_to_mark();
        push_cell(Cell::Kind::kDict, {});
        return set_items(std::move(items));
      }
      case kTuple1:
        return push_tuple(1);
      case kTuple2:
        return push_tuple(2);
      case kTuple3:
        return push_tuple(3);
      case kAppend: {
        Item item = pop();
        std::vector<Item> items;
        items.push_back(std::move(item));
        return append(std::move(items));
      }
      case kAppends:
        return append(pop_to_mark());
      case kSetItem: {
        std::vector<Item> items(2);
        items[1] = pop();
        items[0] = pop();
        return set_items(std::move(items));
      }
      case kSetItems:
        return set_items(pop_to_mark());
      case kPut:
        return put(number_in<uint64_t>(line()));
      case kBinPut:
        return put(little<uint8_t>());
      case kLongBinPut:
        return put(little<uint32_t>());
      case kMemoize:
        return put(memo_.size());
      case kGet:
        return get(number_in<uint64_t>(line()));
      case kBinGet:
        return get(little<uint8_t>());
      case kLongBinGet:
        return get(little<uint32_t>());
      case kGlobal: {
        std::string module(line());
        return push(Global{std::move(module), std::string(line())});
      }
      case kStackGlobal: {
        const std::string name = text_of(pop());
        return push(Global{text_of(pop()), name});
      }
      case kBinPersId:
        return push(persistent(pop()));
      case kReduce:
      case kNewObj: {
        const Item args = pop();
        return make(pop(), args);
      }
      case kNewObjEx: {
        const Item names = pop(), args = pop();
        if (!cell_in(names, Cell::Kind::kDict, "arguments by name").items.empty())
          refuse("an object is made of arguments by name");
        return make(pop(), args);
      }
      case kBuild:
        return build(pop());
      default:
        break;
    }
    refuse("opcode {:#04x} is not among those that data needs", static_cast<unsigned>(opcode));
  }

  std::string text_of(const Item& item) {
    const auto* value = std::get_if<Value>(&item);
    if (!value || !value->is_string()) refuse("expected a string");
    return std::string(value->to_string_view());
  }
  int64_t int_of(const Item& item) {
    const auto* value = std::get_if<Value>(&item);
    if (!value || value->kind() != Value::Kind::kInt) refuse("expected an integer");
    return value->to_int();
  }
  bool bool_of(const Item& item) {
    const auto* value = std::get_if<Value>(&item);
    if (!value || value->kind() != Value::Kind::kBool) refuse("expected a bool");
    return value->to_bool();
  }
  Ints ints_of(const Item& item) {
    Ints numbers;
    for (const Item& element : cell_in(item, Cell::Kind::kTuple, "a tuple of integers").items)
      numbers.push_back(int_of(element));
    return numbers;
  }

  // ('storage', torch.FloatStorage, key, location, number of elements)
  Item persistent(const Item& id) {
    const std::vector<Item> parts = cell_in(id, Cell::Kind::kTuple, "the name of a storage").items;
    if (parts.size() != 5 || text_of(parts[0]) != "storage") refuse("a reference is to no storage");
    const auto* type = std::get_if<Global>(&parts[1]);
    if (!type) refuse("a storage has no type");
    StorageName name{.key = text_of(parts[2]), .elements = int_of(parts[4])};
    bool is_known = false;
    for (const StorageType& known : kStorageTypes)
      if (type->name == known.name) name.dtype = known.dtype, is_known = true;
    if (!is_known) refuse("storages of type {} are not supported", type->text());
    auto [found, is_new] = storages_.try_emplace(name.key);
    if (is_new) found->second = {load_storage_(name), name.dtype};
    else if (found->second.dtype != name.dtype) refuse("storage '{}' has two types", name.key);
    const int64_t bytes = static_cast<int64_t>(found->second.storage->bytes());
    if (name.elements < 0 || name.elements > bytes / item_size(name.dtype))
      refuse("storage '{}' has {} bytes, too few for {} elements", name.key, bytes, name.elements);
    return found->second;
  }

  // --- objects -------------------------------------------------------------------------------------------

  // Nothing is ever called: these names are the data that weft has too.
  void make(const Item& what, const Item& arguments) {
    const auto* global = std::get_if<Global>(&what);
    if (!global) refuse("an object is made of what is no class");
    const Global type = *global;
    const std::vector<Item> args = cell_in(arguments, Cell::Kind::kTuple, "a tuple of arguments").items;
    const std::string name = type.text();
    if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor")
      return make_tensor(args);
    if (name == "torch._utils._rebuild_parameter") return make_parameter(args);
    // (function, type, its arguments, attributes), which Python would set on the result.
    if (name == "torch._tensor._rebuild_from_type_v2") {
      if (args.size() != 4) refuse("{} takes 4 arguments, not {}", name, args.size());
      const auto* function = std::get_if<Global>(&args[0]);
      if (!function || function->text() == name) refuse("{} is given no way to make a tensor", name);
      return make(args[0], args[2]);
    }
    if (name == "collections.OrderedDict") return make_dict(args);
    // Of what makes its default values, and then its entries; of its first elements, and how many there may
    // be.
    if (name == "collections.defaultdict" && args.size() <= 1) return push_cell(Cell::Kind::kDict, {});
    if (name == "collections.deque" && args.size() <= 2) return make_deque(args);
    if (name == "torch.Size" && args.size() == 1) return push(args[0]);
    if (name == "torch.device") return make_device(args);
    if ((name == "builtins.complex" || name == "__builtin__.complex") && args.size() == 2)
      return push(Value(Complex<double>(double_of(args[0]), double_of(args[1]))));
    push_cell(Cell::Kind::kTuple, args, true);
  }

  double double_of(const Item& item) {
    const auto* value = std::get_if<Value>(&item);
    if (!value || !value->is_number()) refuse("expected a number");
    return value->to_double();
  }

  // (storage, offset, sizes, strides, requires_grad, hooks, {"conj": True})
  void make_tensor(const std::vector<Item>& args) {
    if (args.size() < 4 || args.size() > 7)
      refuse("a tensor is made of 4 to 7 arguments, not {}", args.size());
    const auto* storage = std::get_if<MadeStorage>(&args[0]);
    if (!storage) refuse("a tensor has no storage");
    const StoredLayout layout{ints_of(args[2]), ints_of(args[3]), int_of(args[1])};
    Tensor tensor = tensor_over(storage->storage, storage->dtype, layout,
                                fmt::format("{}: byte {} of the pickle: a tensor", source_, opcode_at_));
    if (args.size() == 7) tensor = with_lazy_bits(tensor, args[6]);
    if (args.size() > 4 && bool_of(args[4])) require_gradient(tensor);
    push(Value(tensor));
  }
  Tensor with_lazy_bits(Tensor tensor, const Item& item) {
    const std::vector<Item>& items = cell_in(item, Cell::Kind::kDict, "the lazy bits of a tensor").items;
    NoGrad no_grad;
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      const std::string bit = text_of(items[i]);
      if (!bool_of(items[i + 1])) continue;
      if (bit != "conj" || !is_complex(tensor.dtype())) refuse("a tensor has the lazy bit '{}'", bit);
      tensor = conj(tensor).detach();
    }
    return tensor;
  }
  void require_gradient(Tensor& tensor) {
    if (!is_differentiable(tensor.dtype()))
      refuse("a tensor of {} requires a gradient", dtype_name(tensor.dtype()));
    tensor.set_requires_grad();
  }
  // (tensor, requires_grad, hooks)
  void make_parameter(const std::vector<Item>& args) {
    const auto* value = args.size() == 3 ? std::get_if<Value>(&args[0]) : nullptr;
    if (!value || !value->is_tensor()) refuse("a parameter is made of no tensor");
    Tensor tensor = value->to_tensor().detach();
    if (bool_of(args[1])) require_gradient(tensor);
    push(Value(tensor));
  }
  void make_dict(const std::vector<Item>& args) {
    if (args.size() > 1) refuse("an OrderedDict is made of {} arguments", args.size());
    std::vector<Item> items;
    if (!args.empty())
      for (const Item& pair : cell_in(args[0], Cell::Kind::kList, "the entries of an OrderedDict").items) {
        const auto* ref = std::get_if<CellRef>(&pair);
        if (!ref || cells_[ref->index].items.size() != 2) refuse("an entry of an OrderedDict is no pair");
        for (const Item& part : cells_[ref->index].items) items.push_back(part);
      }
    push_cell(Cell::Kind::kDict, std::move(items));
  }
  void make_deque(const std::vector<Item>& args) {
    const auto* first = args.empty() ? nullptr : std::get_if<CellRef>(&args[0]);
    if (first && cells_[first->index].kind == Cell::Kind::kDict) refuse("a deque is made of a dictionary");
    push_cell(Cell::Kind::kList, first ? cells_[first->index].items : std::vector<Item>());
  }
  void make_device(const std::vector<Item>& args) {
    if (args.empty() || args.size() > 2) refuse("a device is made of {} arguments", args.size());
    // Whatever it was, its tensors are in host memory now.
    text_of(args[0]);
    push(Value(kCpu));
  }

  // The state of an object. Where the class is not known it may be all that there is of it.
  void build(const Item& state) {
    const auto* ref = std::get_if<CellRef>(&top());
    const auto* fields = std::get_if<CellRef>(&state);
    if (ref && cells_[ref->index].is_foreign && cells_[ref->index].items.empty() && fields &&
        cells_[fields->index].kind == Cell::Kind::kDict)
      top() = *fields;
  }

  // --- the result ----------------------------------------------------------------------------------------

  Value leaf(const Item& item) const {
    if (const auto* value = std::get_if<Value>(&item)) return *value;
    if (const auto* global = std::get_if<Global>(&item)) {
      if (global->module == "torch")
        if (std::optional<DType> dtype = dtype_from_name(global->name)) return *dtype;
      refuse("{} is a class or a function; only data can be read", global->text());
    }
    refuse("a storage is there without a tensor");
  }

  // Containers become Values once all that is in them has: from the inside out.
  Value finish(const Item& root) {
    const auto* ref = std::get_if<CellRef>(&root);
    if (!ref) return leaf(root);
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> states(cells_.size(), kNew);
    std::vector<Value> values(cells_.size());
    std::vector<size_t> counts(cells_.size(), 1), todo = {ref->index};
    while (!todo.empty()) {
      const size_t index = todo.back();
      const Cell& cell = cells_[index];
      if (states[index] == kDone) {
        todo.pop_back();
        continue;
      }
      if (states[index] == kNew) {
        states[index] = kOpen;
        for (const Item& item : cell.items) {
          const auto* inner = std::get_if<CellRef>(&item);
          if (!inner || states[inner->index] == kDone) continue;
          if (states[inner->index] == kOpen) refuse("a container contains itself");
          todo.push_back(inner->index);
        }
        continue;
      }
      todo.pop_back();
      states[index] = kDone;
      ValueList items;
      items.reserve(cell.items.size());
      uint32_t nesting = 0;
      for (const Item& item : cell.items) {
        const auto* inner = std::get_if<CellRef>(&item);
        items.push_back(inner ? values[inner->index] : leaf(item));
        counts[index] += inner ? counts[inner->index] : 1;
        nesting = std::max(nesting, items.back().nesting());
      }
      if (nesting >= kMostNesting) refuse("containers are nested more than {} deep", kMostNesting);
      if (counts[index] > limits_.most_values) refuse("it has more than {} values", limits_.most_values);
      values[index] = container(cell.kind, std::move(items));
    }
    return values[ref->index];
  }

  Value container(Cell::Kind kind, ValueList items) const {
    if (kind == Cell::Kind::kList) return Value::list(std::move(items));
    if (kind == Cell::Kind::kTuple) return Value::tuple(std::move(items));
    Dict dict;
    for (size_t i = 0; i < items.size(); i += 2) {
      if (!items[i].is_string() && !items[i].is_number())
        refuse("a key of a dictionary is {}; expected a string or a number", items[i].kind_name());
      dict.set(std::move(items[i]), std::move(items[i + 1]));
    }
    return dict;
  }

  std::string_view bytes_, source_;
  LoadStorage load_storage_;
  Limits limits_;
  size_t at_ = 0, opcode_at_ = 0;
  std::vector<Item> stack_;
  std::vector<size_t> marks_;
  std::vector<Cell> cells_;
  std::unordered_map<uint64_t, Item> memo_;
  std::map<std::string, MadeStorage> storages_;
};

}  // namespace

Value load(std::string_view bytes, std::string_view source, LoadStorage storage, const Limits& limits) {
  return Machine(bytes, source, storage, limits).run();
}

}  // namespace weft::pickle

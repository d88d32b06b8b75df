#include "base/debug_info.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace weft::detail {
namespace {

// The functions of libdw that are used here. Linking it, and the four libraries that it needs, would make
// every program start slower for something that few of them ask for.
struct Libdw {
  decltype(&::dwfl_begin) begin = nullptr;
  decltype(&::dwfl_linux_proc_report) report_process = nullptr;
  decltype(&::dwfl_report_begin_add) report_more = nullptr;
  decltype(&::dwfl_report_end) report_end = nullptr;
  decltype(&::dwfl_addrmodule) module_at = nullptr;
  decltype(&::dwfl_module_info) module_info = nullptr;
  decltype(&::dwfl_module_addrinfo) symbol_at = nullptr;
  decltype(&::dwfl_module_addrdie) unit_at = nullptr;
  decltype(&::dwfl_module_nextcu) next_unit = nullptr;
  decltype(&::dwarf_haspc) has_address = nullptr;
  decltype(&::dwarf_getscopes) scopes = nullptr;
  decltype(&::dwarf_getscopes_die) scopes_of = nullptr;
  decltype(&::dwarf_getsrc_die) line_at = nullptr;
  decltype(&::dwarf_linesrc) line_file = nullptr;
  decltype(&::dwarf_lineno) line_number = nullptr;
  decltype(&::dwarf_getsrcfiles) files = nullptr;
  decltype(&::dwarf_filesrc) file_name = nullptr;
  decltype(&::dwarf_tag) tag = nullptr;
  decltype(&::dwarf_diename) name = nullptr;
  decltype(&::dwarf_attr) attribute = nullptr;
  decltype(&::dwarf_attr_integrate) inherited_attribute = nullptr;
  decltype(&::dwarf_formstring) as_string = nullptr;
  decltype(&::dwarf_formudata) as_number = nullptr;
  Dwfl_Callbacks callbacks = {};

  bool load() {
    void* library = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library) return false;
    bool is_complete = true;
    auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, symbol));
      is_complete &= function != nullptr;
    };
    find(begin, "dwfl_begin");
    find(report_process, "dwfl_linux_proc_report");
    find(report_more, "dwfl_report_begin_add");
    find(report_end, "dwfl_report_end");
    find(module_at, "dwfl_addrmodule");
    find(module_info, "dwfl_module_info");
    find(symbol_at, "dwfl_module_addrinfo");
    find(unit_at, "dwfl_module_addrdie");
    find(next_unit, "dwfl_module_nextcu");
    find(has_address, "dwarf_haspc");
    find(scopes, "dwarf_getscopes");
    find(scopes_of, "dwarf_getscopes_die");
    find(line_at, "dwarf_getsrc_die");
    find(line_file, "dwarf_linesrc");
    find(line_number, "dwarf_lineno");
    find(files, "dwarf_getsrcfiles");
    find(file_name, "dwarf_filesrc");
    find(tag, "dwarf_tag");
    find(name, "dwarf_diename");
    find(attribute, "dwarf_attr");
    find(inherited_attribute, "dwarf_attr_integrate");
    find(as_string, "dwarf_formstring");
    find(as_number, "dwarf_formudata");
    find(callbacks.find_elf, "dwfl_linux_proc_find_elf");
    // Files beside the program only: libdw's usual way would ask servers on the network too.
    find(callbacks.find_debuginfo, "dwfl_build_id_find_debuginfo");
    return is_complete;
  }
};

std::string text_or_empty(const char* text) { return text ? text : ""; }

// The loaded files of this process.
class Process {
 public:
  Process() {
    if (!dw_.load()) return;
    files_ = dw_.begin(&dw_.callbacks);
    report();
  }

  bool is_readable() const { return files_ != nullptr; }

  Code find(uintptr_t address) {
    Dwfl_Module* module = dw_.module_at(files_, address);
    if (!module) {  // loaded since
      dw_.report_more(files_);
      report();
      module = dw_.module_at(files_, address);
    }
    if (!module) return {};
    Code code;
    code.module =
        text_or_empty(dw_.module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
    add_locations(module, address, code.locations);
    // The symbol table knows a name for its linker, where debug information may have the written one only.
    GElf_Off offset = 0;
    GElf_Sym symbol;
    if (const char* name = dw_.symbol_at(module, address, &offset, &symbol, nullptr, nullptr, nullptr)) {
      if (code.locations.empty()) code.locations.emplace_back();
      code.locations.back().symbol = name;
    }
    return code;
  }

 private:
  void report() {
    if (!files_) return;
    dw_.report_process(files_, getpid());
    dw_.report_end(files_, nullptr, nullptr);
  }

  // The compilation unit at this address, and what to take off an address to get the file's own.
  Dwarf_Die* find_unit(Dwfl_Module* module, uintptr_t address, Dwarf_Addr& bias) {
    if (Dwarf_Die* unit = dw_.unit_at(module, address, &bias)) return unit;
    // clang writes no index of addresses.
    Dwarf_Die* unit = nullptr;
    while ((unit = dw_.next_unit(module, unit, &bias)))
      if (dw_.has_address(unit, address - bias) == 1) return unit;
    return nullptr;
  }

  std::string string_of(Dwarf_Attribute* attribute) {
    return attribute ? text_or_empty(dw_.as_string(attribute)) : "";
  }
  Dwarf_Word number_of(Dwarf_Die* die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word number = 0;
    if (dw_.attribute(die, name, &attribute)) dw_.as_number(&attribute, &number);
    return number;
  }
  std::string symbol_of(Dwarf_Die* die) {
    Dwarf_Attribute attribute;
    std::string symbol = string_of(dw_.inherited_attribute(die, DW_AT_linkage_name, &attribute));
    return symbol.empty() ? text_or_empty(dw_.name(die)) : symbol;
  }

  // Notes a file as the compiler was given it: libdw may put the compiler's working folder before a relative
  // one.
  void set_file(CodeLocation& location, Dwarf_Die* unit, const char* file) {
    Dwarf_Attribute attribute;
    const std::string folder = string_of(dw_.attribute(unit, DW_AT_comp_dir, &attribute));
    std::string_view text = file ? file : "";
    if (text.starts_with(folder + "/")) text.remove_prefix(folder.size() + 1);
    location.file = text;
    location.folder = text.starts_with('/') ? std::string() : folder;
  }

  // The scopes around an address, innermost first, as they nest in the code: inlined calls inside their
  // callers.
  std::vector<Dwarf_Die> scopes_at(Dwarf_Die* unit, Dwarf_Addr address) {
    auto release = [](Dwarf_Die* dies) { std::free(dies); };
    Dwarf_Die* found = nullptr;
    const int lexical = dw_.scopes(unit, address, &found);
    std::unique_ptr<Dwarf_Die, decltype(release)> owned(found);
    if (lexical <= 0) return {};
    Dwarf_Die* chain = nullptr;
    const int count = dw_.scopes_of(&found[0], &chain);
    std::unique_ptr<Dwarf_Die, decltype(release)> owned_chain(chain);
    return count <= 0 ? std::vector<Dwarf_Die>() : std::vector<Dwarf_Die>(chain, chain + count);
  }

  void add_locations(Dwfl_Module* module, uintptr_t address, std::vector<CodeLocation>& locations) {
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = find_unit(module, address, bias);
    if (!unit) return;
    CodeLocation here;
    if (Dwarf_Line* line = dw_.line_at(unit, address - bias)) {
      set_file(here, unit, dw_.line_file(line, nullptr, nullptr));
      int number = 0;
      if (dw_.line_number(line, &number) == 0) here.line = static_cast<uint32_t>(number);
    }
    for (Dwarf_Die& scope : scopes_at(unit, address - bias)) {
      const int tag = dw_.tag(&scope);
      if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine) continue;
      here.symbol = symbol_of(&scope);
      if (tag == DW_TAG_subprogram) break;
      locations.push_back(here);
      here = call_site(unit, &scope);
    }
    if (here.line != 0 || !locations.empty()) locations.push_back(here);
  }

  // The line that an inlined call stands in.
  CodeLocation call_site(Dwarf_Die* unit, Dwarf_Die* inlined) {
    CodeLocation site;
    site.line = static_cast<uint32_t>(number_of(inlined, DW_AT_call_line));
    Dwarf_Files* files = nullptr;
    size_t count = 0;
    const size_t file = number_of(inlined, DW_AT_call_file);
    if (dw_.files(unit, &files, &count) == 0 && file < count)
      set_file(site, unit, dw_.file_name(files, file, nullptr, nullptr));
    return site;
  }

  Libdw dw_;
  Dwfl* files_ = nullptr;
};

}  // namespace

Code find_exported_code(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0) return {};
  Code code;
  code.module = text_or_empty(info.dli_fname);
  if (info.dli_sname) code.locations.push_back({.symbol = info.dli_sname});
  return code;
}

Code find_code(const void* address) {
  static Process& process = *new Process();
  Code code;
  if (process.is_readable()) code = process.find(reinterpret_cast<uintptr_t>(address));
  return code.module.empty() ? find_exported_code(address) : code;
}

}  // namespace weft::detail

#include "assembler.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <map>

#include "../llvm.h"
#include "../memory.h"
#include "../program.h"

namespace rdna {
namespace {

// Of llvm-c/Core.h and llvm-c/TargetMachine.h, whose types are all pointers.
struct Llvm {
  void* so;

  Llvm() : so(dlopen(llvm_library().c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!so)
      throw Fault(dlerror());
    for (const char* part :
         {"TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser"})
      call<void>((std::string("LLVMInitializeAMDGPU") + part).c_str());
  }
  template <class R, class... Arguments>
  R call(const char* name, Arguments... arguments) const {
    auto f = reinterpret_cast<R (*)(Arguments...)>(dlsym(so, name));
    if (!f)
      throw Fault(std::string("LLVM lacks ") + name);
    return f(arguments...);
  }
};

const Llvm& llvm() {
  static Llvm loaded;
  return loaded;
}

constexpr const char* kTriple = "amdgcn--";

void* target_machine(const Target& target) {
  static std::map<std::string, void*> machines;
  void*& machine = machines[target.cpu + (target.lanes == 32 ? " 32" : " 64")];
  if (machine)
    return machine;
  void* found = nullptr;
  char* error = nullptr;
  if (llvm().call<int>("LLVMGetTargetFromTriple", kTriple, &found, &error))
    throw Fault(error);
  std::string features = llvm_features(target.gfx, target.lanes);
  machine = llvm().call<void*>(
      "LLVMCreateTargetMachine",
      found,
      kTriple,
      target.cpu.c_str(),
      features.c_str(),
      0,
      0,
      0);
  return machine;
}

// Keeps the first message, which inline assembly reports here.
void diagnose(void* diagnostic, void* message) {
  char* text = llvm().call<char*>("LLVMGetDiagInfoDescription", diagnostic);
  if (static_cast<std::string*>(message)->empty())
    *static_cast<std::string*>(message) = text;
}

std::vector<uint8_t> text_section(const char* elf) {
  Elf64_Ehdr header;
  std::memcpy(&header, elf, sizeof header);
  auto section = [&](size_t k) {
    Elf64_Shdr s;
    std::memcpy(&s, elf + header.e_shoff + k * sizeof s, sizeof s);
    return s;
  };
  const char* names = elf + section(header.e_shstrndx).sh_offset;
  for (size_t k = 0; k < header.e_shnum; ++k) {
    Elf64_Shdr s = section(k);
    if (std::strcmp(names + s.sh_name, ".text") == 0)
      return {elf + s.sh_offset, elf + s.sh_offset + s.sh_size};
  }
  throw Fault("the assembler made no code");
}

} // namespace

std::vector<uint8_t> assemble(const Target& target, const std::string& text) {
  void* machine = target_machine(target);
  void* context = llvm().call<void*>("LLVMContextCreate");
  std::string message;
  llvm().call<void>(
      "LLVMContextSetDiagnosticHandler", context, &diagnose, &message);
  void* module =
      llvm().call<void*>("LLVMModuleCreateWithNameInContext", "test", context);
  llvm().call<void>("LLVMSetTarget", module, kTriple);
  llvm().call<void>(
      "LLVMSetModuleInlineAsm2", module, text.c_str(), text.size());
  constexpr int kObjectFile = 1;
  char* error = nullptr;
  void* buffer = nullptr;
  int failed = llvm().call<int>(
      "LLVMTargetMachineEmitToMemoryBuffer",
      machine,
      module,
      kObjectFile,
      &error,
      &buffer);
  if (failed && message.empty())
    message = error;
  std::vector<uint8_t> code;
  if (message.empty())
    code = text_section(llvm().call<const char*>("LLVMGetBufferStart", buffer));
  if (buffer)
    llvm().call<void>("LLVMDisposeMemoryBuffer", buffer);
  llvm().call<void>("LLVMDisposeModule", module);
  llvm().call<void>("LLVMContextDispose", context);
  if (!message.empty())
    throw Fault(text + ": " + message);
  return code;
}

} // namespace rdna

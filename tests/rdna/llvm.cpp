#include "llvm.h"

#include <dlfcn.h>

#include "memory.h"
#include "program.h"

namespace rdna {
namespace {

std::string& library_name() {
  static std::string name = "libLLVM.so.21.1";
  return name;
}

// What llvm-c/Disassembler.h declares.
struct Llvm {
  using Create =
      void* (*)(const char*, const char*, const char*, void*, int, void*, void*);
  using Disassemble =
      size_t (*)(void*, uint8_t*, uint64_t, uint64_t, char*, size_t);
  Create create;
  Disassemble disassemble;

  Llvm() {
    void* so = dlopen(library_name().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!so)
      throw Fault(std::string("the disassembler: ") + dlerror());
    auto symbol = [&](const char* name) {
      void* found = dlsym(so, name);
      if (!found)
        throw Fault(std::string("the disassembler lacks ") + name);
      return found;
    };
    for (auto* name :
         {"LLVMInitializeAMDGPUTargetInfo",
          "LLVMInitializeAMDGPUTargetMC",
          "LLVMInitializeAMDGPUDisassembler"})
      reinterpret_cast<void (*)()>(symbol(name))();
    create = reinterpret_cast<Create>(symbol("LLVMCreateDisasmCPUFeatures"));
    disassemble =
        reinterpret_cast<Disassemble>(symbol("LLVMDisasmInstruction"));
  }
};

const Llvm& llvm() {
  static Llvm loaded;
  return loaded;
}

} // namespace

const std::string& llvm_library() {
  return library_name();
}

std::string llvm_features(uint32_t gfx, uint32_t lanes) {
  std::string features = lanes == 32 ? "+wavefrontsize32,-wavefrontsize64"
                                     : "+wavefrontsize64,-wavefrontsize32";
  return gfx >= 11 ? features + ",+real-true16" : features;
}

void set_llvm(std::string library) {
  library_name() = std::move(library);
}

Disassembler::Disassembler(
    const std::string& cpu,
    uint32_t gfx,
    uint32_t lanes) {
  std::string features = llvm_features(gfx, lanes);
  context_ = llvm().create(
      "amdgcn--", cpu.c_str(), features.c_str(), nullptr, 0, nullptr, nullptr);
  if (!context_)
    throw Fault("LLVM does not know the chip " + cpu);
}

std::string Disassembler::operator()(
    std::span<const uint8_t> code,
    size_t& size) const {
  char text[512] = "";
  // LLVM does not write to the code.
  auto* bytes = const_cast<uint8_t*>(code.data());
  size = llvm().disassemble(context_, bytes, code.size(), 0, text, sizeof text);
  std::string result;
  for (const char* c = text; *c; ++c) {
    bool blank = *c == ' ' || *c == '\t';
    if (!blank)
      result += *c;
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
  }
  return result;
}

} // namespace rdna

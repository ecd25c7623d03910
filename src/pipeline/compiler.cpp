#include "pipeline/compiler.h"

#include <SPIRV/GlslangToSpv.h>
#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>

#include <set>

#include "pipeline/contraction.h"
#include "pipeline/reachable.h"
#include "pipeline/sources.h"

namespace mlx::core::vulkan {

namespace {

constexpr const char* dialect[] = {
    "GL_GOOGLE_include_directive",
    "GL_EXT_buffer_reference",
    "GL_EXT_buffer_reference2",
    "GL_EXT_buffer_reference_uvec2",
    "GL_EXT_scalar_block_layout",
    "GL_EXT_shader_explicit_arithmetic_types_int8",
    "GL_EXT_shader_explicit_arithmetic_types_int16",
    "GL_EXT_shader_explicit_arithmetic_types_int32",
    "GL_EXT_shader_explicit_arithmetic_types_int64",
    "GL_EXT_shader_8bit_storage",
    "GL_EXT_shader_16bit_storage",
    "GL_KHR_shader_subgroup_basic",
    "GL_KHR_shader_subgroup_vote",
    "GL_KHR_shader_subgroup_arithmetic",
    "GL_KHR_shader_subgroup_ballot",
    "GL_KHR_shader_subgroup_shuffle",
    "GL_KHR_shader_subgroup_shuffle_relative",
    "GL_EXT_control_flow_attributes",
};

struct Optional {
  const char* name;
  const char* extension;
};
constexpr Optional optional[] = {
    {"NATIVE_F16", "GL_EXT_shader_explicit_arithmetic_types_float16"},
    {"F16_EXT", "GL_EXT_shader_explicit_arithmetic_types_float16"},
    {"BF16_EXT", "GL_EXT_bfloat16"},
    {"COOPMAT", "GL_KHR_cooperative_matrix"},
    {"COOPMAT", "GL_KHR_memory_scope_semantics"},
    {"INT_DOT", "GL_EXT_integer_dot_product"},
};

void enable(std::string& out, const char* extension) {
  ((out += "#extension ") += extension) += " : require\n";
}

bool defines(std::string_view block, std::string_view name) {
  std::string line = "#define " + std::string(name) + ' ';
  for (auto at = block.find(line); at != block.npos;
       at = block.find(line, at + 1)) {
    if ((at == 0 || block[at - 1] == '\n') &&
        block.substr(at + line.size(), 2) != "0\n") {
      return true;
    }
  }
  return false;
}

// Implements `#pragma once`, which glslang does not.
class Includer : public glslang::TShader::Includer {
 public:
  IncludeResult* includeLocal(const char* name, const char*, size_t) override {
    auto text = read_source(name);
    if (!text) {
      return nullptr;
    }
    constexpr std::string_view once = "#pragma once\n";
    if (auto at = text->find(once); at != text->npos) {
      *text = included_.insert(name).second
          ? text->replace(at, once.size(), "\n")
          : std::string();
    }
    auto* owned = new std::string(std::move(*text));
    return new IncludeResult(name, owned->data(), owned->size(), owned);
  }
  IncludeResult*
  includeSystem(const char* name, const char* includer, size_t depth) override {
    return includeLocal(name, includer, depth);
  }
  void releaseInclude(IncludeResult* result) override {
    if (result) {
      delete static_cast<std::string*>(result->userData);
      delete result;
    }
  }

 private:
  std::set<std::string> included_; // files with `#pragma once`
};

// A compute shader for Vulkan 1.2, whose text must outlive it.
struct Shader {
  explicit Shader(const std::string& source)
      : text(source.c_str()), size(static_cast<int>(source.size())) {
    it.setStringsWithLengthsAndNames(&text, &size, &name, 1);
    it.setEnvInput(
        glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
    it.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_2);
    it.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_5);
  }
  const char* text;
  int size;
  const char* name = "<defines>";
  glslang::TShader it{EShLangCompute};
};

void initialize() {
  static const bool done = glslang::InitializeProcess();
  if (!done) {
    throw std::runtime_error("[vulkan] glslang could not be initialized.");
  }
}

// Only the device limits workgroup sizes: glslang's own limit of 64 threads on
// the last axis is lower than that of some devices.
const TBuiltInResource& resources() {
  static const TBuiltInResource all = [] {
    TBuiltInResource r = *GetDefaultResources();
    r.maxComputeWorkGroupSizeX = 65536;
    r.maxComputeWorkGroupSizeY = 65536;
    r.maxComputeWorkGroupSizeZ = 65536;
    return r;
  }();
  return all;
}

} // namespace

void prepare_compiler() {
  try {
    compile_glsl("prepare", "prepare", prologue(""), "void main() {}\n");
  } catch (const std::exception&) {
    // The first kernel says what is wrong.
  }
}

const std::string& compiler_version() {
  static const std::string version = [] {
    auto v = glslang::GetVersion();
    return "glslang-" + std::to_string(v.major) + '.' +
        std::to_string(v.minor) + '.' + std::to_string(v.patch) + '-' +
        std::to_string(glslang::GetSpirvGeneratorVersion()) + '.' +
        std::to_string(contraction_version);
  }();
  return version;
}

std::string prologue(std::string_view define_block) {
  std::string out = "#version 460\n";
  for (auto* extension : dialect) {
    enable(out, extension);
  }
  for (auto& o : optional) {
    if (defines(define_block, o.name)) {
      enable(out, o.extension);
    }
  }
  out += define_block;
  bool nan = defines(define_block, "FLOAT_CONTROLS");
  bool denorm = defines(define_block, "DENORM_PRESERVE_F32");
  if (nan || denorm) {
    enable(out, "GL_EXT_spirv_intrinsics");
  }
  if (nan) {
    // SignedZeroInfNanPreserve, 32 bits wide.
    out +=
        "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], "
        "capabilities = [4466], 4461, 32);\n";
  }
  if (denorm) {
    // DenormPreserve, 32 bits wide.
    out +=
        "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], "
        "capabilities = [4464], 4459, 32);\n";
  }
  return out;
}

std::vector<uint32_t> compile_glsl(
    const std::string& file,
    const std::string& variant,
    const std::string& prologue,
    const std::string& text) {
  initialize();
  constexpr auto messages = static_cast<EShMessages>(
      EShMsgSpvRules | EShMsgVulkanRules | EShMsgEnhanced);
  auto label = file;
  std::erase_if(
      label, [](char c) { return c == '"' || c == '\\' || c == '\n'; });
  auto source = prologue + "#line 1 \"" + label + "\"\n" + text;
  std::string plain; // without macros and includes
  Includer includer;
  if (Shader shader(source); shader.it.preprocess(
          &resources(),
          460,
          ECoreProfile,
          false,
          false,
          messages,
          &plain,
          includer)) {
    source = reachable_only(plain);
  }
  // What the preprocessor refuses, the parser reports.
  Shader parsed(source);
  auto& shader = parsed.it;
  Includer again;
  if (!shader.parse(
          &resources(), 460, ECoreProfile, false, false, messages, again)) {
    throw CompileError(file, variant, shader.getInfoLog());
  }
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(messages)) {
    throw CompileError(file, variant, program.getInfoLog());
  }

  std::vector<uint32_t> spirv;
  spv::SpvBuildLogger logger;
  glslang::SpvOptions options;
  options.stripDebugInfo = true;
  glslang::GlslangToSpv(
      *program.getIntermediate(EShLangCompute), spirv, &logger, &options);
  if (auto log = logger.getAllMessages();
      spirv.empty() || log.find("ERROR") != log.npos) {
    throw CompileError(file, variant, log);
  }
  // Sums of two doubles (common/math64.glsl) are exact by their order;
  // glslang takes endless memory for `precise` there.
  bool exact = forbids_contraction(text) || defines(prologue, "FLOAT64");
  return exact ? without_contraction(spirv) : spirv;
}

} // namespace mlx::core::vulkan

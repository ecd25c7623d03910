# Script: writes OUTPUT, a C++ table of the files named in LIST, by their path
# relative to ROOT. Lines are joined one by one, because CMake lists would eat
# semicolons and brackets.
file(STRINGS "${LIST}" files)
set(out "// Generated from src/kernels by cmake/embed.cmake.\n")
string(APPEND out "#include \"pipeline/sources.h\"\n\n")
string(APPEND out "namespace mlx::core::vulkan {\n\n")
string(APPEND out "const EmbeddedSource embedded_sources[] = {\n")
foreach(file IN LISTS files)
  file(READ "${file}" text)
  file(RELATIVE_PATH name "${ROOT}" "${file}")
  string(APPEND out "{\"${name}\", R\"__GLSL__(" "${text}" ")__GLSL__\"},\n")
endforeach()
string(APPEND out "};\n")
string(APPEND out "const size_t embedded_source_count =\n"
       "    sizeof(embedded_sources) / sizeof(embedded_sources[0]);\n\n")
string(APPEND out "} // namespace mlx::core::vulkan\n")
file(WRITE "${OUTPUT}" "${out}")

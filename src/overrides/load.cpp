// Replaces load_safetensors() and the is_available() of MLX's readers of files.
//
// MLX asks for CUDA, and reads files on a CPU stream without it. Where arrays
// have a host side and a device side, all weights would then be in the host's
// memory before the first is used; so files are read on GPU streams here. And
// the weights of a model larger than the card's memory are counted before the
// first is read (backend/weights.h).
//
// What MLX could offer: docs/dev/upstream.md, "Files on GPU streams".
#include <utility>

#include "backend/weights.h"
#include "mlx/io.h"

namespace mlx::core {

// MLX's own functions, whose file is compiled with these names.
SafetensorsLoad load_safetensors_of_mlx(
    std::shared_ptr<io::Reader> in_stream,
    StreamOrDevice s);
SafetensorsLoad load_safetensors_of_mlx(
    const std::string& file,
    StreamOrDevice s);

namespace cu {

bool loads_on_gpu() {
  return vulkan::files_go_to_gpu();
}

} // namespace cu

namespace {

SafetensorsLoad counted(SafetensorsLoad loaded) {
  vulkan::expect_weights(loaded.first);
  return loaded;
}

} // namespace

SafetensorsLoad load_safetensors(
    std::shared_ptr<io::Reader> in_stream,
    StreamOrDevice s) {
  return counted(load_safetensors_of_mlx(std::move(in_stream), s));
}

SafetensorsLoad load_safetensors(const std::string& file, StreamOrDevice s) {
  return counted(load_safetensors_of_mlx(file, s));
}

} // namespace mlx::core

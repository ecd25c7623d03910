# The front door. `make demo` and `make test` need nothing before them: they
# install what is missing, build, and run.

# MLX=VERSION builds and tests for another MLX of third_party/mlx.json than the
# newest, in folders of its own.
MLX ?=
VENV ?= .venv$(MLX:%=-%)
BUILD ?= build$(MLX:%=-%)
export MLXVK_MLX = $(MLX)
PY := $(VENV)/bin/python
MODEL ?=
PROMPT ?= What is the capital of France, and why is it famous?
CMAKE_ARGS ?=

.PHONY: help demo test test-full test-drivers bench lint build install wheel \
	wheels wheel-aarch64 site clean

help:
	@echo "make demo       generate text with SmolLM2-135M on this machine's GPU"
	@echo "                (PROMPT=\"...\" MODEL=folder-or-hub-name override)"
	@echo "make test       every test tier once (on lavapipe if there is no GPU)"
	@echo "make test-full  every tier in every mode"
	@echo "make test-drivers  kernels through the compilers of AMD, Intel, Apple,"
	@echo "                Qualcomm and NVK, without their GPUs (first: 110 MB)"
	@echo "make bench      timings of the operations and of decoding"
	@echo "make lint       clang-format, ruff, size gate, includes"
	@echo "make wheel      dist/mlx_vulkan-*.whl"
	@echo "make wheels     one for each MLX of third_party/mlx.json"
	@echo "make wheel-aarch64  the same for ARM, cross-built and tried under qemu"
	@echo "make site       the documents as HTML"
	@echo "make clean      removes build, dist, .venv and .demo"
	@echo "MLX=VERSION     after any of these: another MLX than the newest"

demo: install
	@$(PY) tools/demo.py --model "$(MODEL)" --prompt "$(PROMPT)"

test: install
	@$(PY) tools/run_tests.py --build $(BUILD)

test-full: install
	@MLXVK_FULL=1 tools/bootstrap.sh $(VENV)
	@$(PY) tools/run_tests.py --build $(BUILD) --full

test-drivers: install
	@echo "== Building"
	@cmake --build $(BUILD) --target driver_compile
	@$(PY) tools/run_drivers.py --build $(BUILD)
	@$(PY) tools/run_costs.py --build $(BUILD)

bench: install
	@$(PY) tools/run_bench.py

lint: $(VENV)/.ready
	@$(PY) tools/run_tests.py --build $(BUILD) lint

$(VENV)/.ready: tools/requirements.txt tools/bootstrap.sh
	@tools/bootstrap.sh $(VENV)
	@touch $@

$(BUILD)/build.ninja: $(VENV)/.ready
	@echo "== Configuring (the first time also downloads the locked sources)"
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release \
	  $(MLX:%=-DMLXVK_MLX=%) $(CMAKE_ARGS)

build: $(BUILD)/build.ninja
	@echo "== Building"
	@cmake --build $(BUILD)

install: build
	@$(PY) tools/install.py --build $(BUILD)

# Of any Python 3 and any Linux with glibc 2.35: OpenBLAS goes in, the Vulkan
# loader is found when the library starts. The same bytes of a commit every time.
wheel: build
	@rm -rf $(BUILD)/wheel && mkdir -p $(BUILD)/wheel
	@$(PY) -m pip wheel -q --no-deps --no-build-isolation -w $(BUILD)/wheel \
	  --config-settings=build-dir=$(BUILD) \
	  --config-settings=cmake.define.MLXVK_BUILD_TESTS=ON .
	@PATH="$(abspath $(VENV))/bin:$$PATH" $(PY) -m auditwheel repair \
	  --exclude '*/mlx_vulkan/lib/libmlx.so' --plat manylinux_2_35_$$(uname -m) \
	  -w $(BUILD)/wheel/repaired $(BUILD)/wheel/*.whl
	@$(PY) tools/finish_wheel.py --build $(BUILD) $(BUILD)/wheel/repaired/*.whl
	@ls -l dist

wheels:
	@for mlx in $$(python3 tools/wheel_metadata.py --all); do \
	  $(MAKE) wheel MLX=$$mlx || exit 1; done

# The same for ARM, made on x86-64 by Debian's cross compiler and tried under qemu.
ARM := build-aarch64$(MLX:%=-%)
wheel-aarch64: $(VENV)/.ready
	@tools/aarch64.sh $(ARM)/root
	@rm -rf $(ARM)/wheel && mkdir -p $(ARM)/wheel
	@_PYTHON_HOST_PLATFORM=linux-aarch64 $(PY) -m pip wheel -q --no-deps \
	  --no-build-isolation -w $(ARM)/wheel \
	  --config-settings=build-dir=$(ARM)/build \
	  --config-settings=cmake.define.CMAKE_TOOLCHAIN_FILE=$(abspath cmake/aarch64.cmake) \
	  $(MLX:%=--config-settings=cmake.define.MLXVK_MLX=%) \
	  --config-settings=cmake.define.MLXVK_AARCH64_ROOT=$(abspath $(ARM)/root) .
	@PATH="$(abspath $(VENV))/bin:$$PATH" $(PY) -m auditwheel repair --plat auto \
	  --exclude '*/mlx_vulkan/lib/libmlx.so' -w $(ARM)/wheel/repaired \
	  $(ARM)/wheel/*.whl --ldpaths $(abspath $(ARM)/root/usr/lib/aarch64-linux-gnu)
	@$(PY) tools/finish_wheel.py --build $(ARM)/build $(ARM)/wheel/repaired/*.whl
	@tests/aarch64/smoke.sh $(ARM) $(PY) dist/mlx_vulkan-*aarch64.whl
	@ls -l dist

# The documents as HTML, in build/site.
site: $(VENV)/.ready
	@$(PY) -m pip install -q -r tools/requirements-site.txt
	@$(PY) -m sphinx -q -W -b html docs $(BUILD)/site
	@echo $(BUILD)/site/index.html

clean:
	rm -rf $(BUILD) build-* dist $(VENV) .venv-* .demo

"""tools/port.py on two small trees of MLX and a small one of this project."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import port

OLD = {
    "version.h": "#define MLX_VERSION_MAJOR 0\n",
    "primitives.h": """
namespace mlx::core {
class Sum : public Primitive {
 public:
  explicit Sum(Stream s, int axis) : Primitive(s), axis_(axis) {}
  void eval_gpu(const std::vector<array>& inputs, array& out) override;
  auto state() const { return axis_; }
 private:
  int axis_;
};
class Gone : public Primitive {
  void eval_gpu(const std::vector<array>& inputs, array& out) override;
};
class Same : public Primitive {
  // A comment.
  void eval_gpu(const std::vector<array>& inputs, array& out) override;
};
}
""",
    "fence.h": """
namespace mlx::core {
class Fence {
 public:
  void wait(Stream s, const array& x);
};
enum class Kind { a, b };
inline int twice(int x) { return 2 * x; }
int unused(int x);
}
""",
    "ops.cpp": """
namespace mlx::core {
int helper() { return 1; }
array sum(const array& a, int axis) {
  return array(std::make_shared<Sum>(s, axis), {a});
}
array eval(const array& a) { return helper(); }
}
""",
    "backend/no_gpu/fence.cpp": """
namespace mlx::core {
struct Hidden { Hidden() {} };
void Fence::wait(Stream, const array&) { throw std::runtime_error("{"); }
}
""",
    "backend/gpu/primitives.cpp": "void View::eval_gpu() { a(); }",
}
OURS = {
    "src/backend/fence.cpp": """
#include "mlx/fence.h"
void Fence::wait(Stream s, const array& x) { twice(1); Kind(); }
""",
    "src/ops/sum.cpp": "void Sum::eval_gpu() {}\nvoid Gone::eval_gpu() {}\n",
    "src/runtime/wait.cpp": "void wait() {}\n",
    "src/overrides/eval.cpp": "array eval(const array& a);\n",
    "cmake/overrides.cmake": "mlxvk_override(eval.cpp MLX ops FUNCTIONS eval)\n",
}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def check(tmp_path: Path, **changes: tuple[str, str]) -> dict[str, port.Item]:
    """The checklist where `changes` replaces text of the old tree, by file."""
    new = dict(OLD)
    for name, (old, changed) in changes.items():
        file = next(f for f in OLD if f.replace("/", "_").startswith(name))
        assert old in new[file]
        new[file] = new[file].replace(old, changed)
    trees = [
        port.Tree(write(tmp_path / name, {f"mlx/{f}": t for f, t in files.items()}))
        for name, files in (("old", OLD), ("new", new))
    ]
    root = write(tmp_path / "ours", OURS)
    return {item.name: item for item in port.checklist(*trees, root)}


def test_the_same_tree(tmp_path):
    assert check(tmp_path) == {}


def test_comments_order_and_spaces_do_not_count(tmp_path):
    found = check(
        tmp_path,
        primitives=("// A comment.\n", "/* Another. */ public:"),
        fence=("int unused(int x);", "\n#define X\n"),
    )
    assert found == {}


def test_primitives(tmp_path):
    found = check(
        tmp_path,
        primitives=("class Gone : public Primitive {", "class Come : public Sum {"),
    )
    assert found["Come"].change.startswith("new")
    assert found["Gone"].change == "gone"
    assert found["Gone"].places == ["src/ops/sum.cpp:2"]
    assert len(found) == 2


def test_members(tmp_path):
    found = check(tmp_path, primitives=("int axis_;", "std::vector<int> axis_;"))
    assert found["Sum"].change == "was `int axis_`; is `std::vector<int> axis_`"
    assert found["Sum"].places == ["src/ops/sum.cpp:1"]


def test_what_a_backend_defines(tmp_path):
    wait = "void wait(Stream s, const array& x"
    found = check(
        tmp_path,
        fence=(wait, f"{wait}, uint32_t value"),
        backend_no_gpu=("const array&)", "const array&, uint32_t)"),
    )
    assert "uint32_t)" in found["Fence::wait"].change
    assert found["Fence::wait"].places == ["src/backend/fence.cpp:3"]
    assert len(found) == 1  # not once more as a declaration


@pytest.mark.parametrize(
    "old, new, name",
    [
        ("{ a, b }", "{ b, a }", "fence.h Kind"),
        ("2 * x", "3 * x", "fence.h twice"),
        ("twice(int x)", "twice(long x)", "fence.h twice"),
        ("twice(int x)", "twice(int x, int n = 1)", None),
        ("unused(int x)", "unused(long x)", None),
    ],
)
def test_declarations_that_are_used(tmp_path, old, new, name):
    found = check(tmp_path, fence=(old, new))
    assert list(found) == ([name] if name else [])


def test_an_override_and_what_it_calls(tmp_path):
    found = check(tmp_path, ops=("return 1", "return 2"))
    assert found["ops.cpp eval"].change == "helper changed"
    assert found["ops.cpp eval"].places == ["src/overrides/eval.cpp"]


def test_how_a_primitive_is_made(tmp_path):
    found = check(tmp_path, ops=("<Sum>(s, axis)", "<Sum>(s, axis + 1)"))
    assert found["ops.cpp sum"].places == ["src/ops/sum.cpp:1"]


def test_files_that_are_compiled_as_they_are(tmp_path):
    found = check(tmp_path, backend_gpu=("a();", "b();"))
    assert found["backend/gpu/primitives.cpp"].change == "View::eval_gpu"


def test_no_tree(tmp_path):
    with pytest.raises(SystemExit, match="no source tree of MLX"):
        port.Tree(tmp_path)

"""List what a port to another version of MLX must look at.

    port.py NEW [--old OLD] [--frontend core.so --library libmlx.so] [--json FILE]

NEW and OLD are source trees of MLX; OLD is the one of the build folder. Prints a
checklist with the places in this tree: functions that a backend defines (those of
MLX's stubs), primitives, declarations and enumerators that src/ uses, functions that
src/overrides replaces, functions that build primitives, and files of MLX that are
compiled as they are. Comments and the order of declarations do not count.
With --frontend and --library also the symbols that the frontend's module needs and
the library lacks. The exit code is 0 if there is nothing to look at.
"""

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from check_overrides import calls

ROOT = Path(__file__).resolve().parent.parent
PRIMITIVES = ("primitives.h", "fast_primitives.h", "distributed/primitives.h")
INTERFACE = ("*.h", "backend/gpu/*.h", "backend/metal/metal.h", "io/*.h")
STUBS = ("backend/no_gpu/*.cpp", "backend/metal/no_metal.cpp", "io/no_gguf.cpp")
# What a backend sees of a primitive; the rest is for transformations and export.
SEEN = re.compile(r"^(eval_gpu|use_fallback|supports_\w+|state|\w+_)$")
BUILDERS = ("ops.cpp", "fast.cpp", "fft.cpp", "random.cpp", "linalg.cpp", "einsum.cpp")
AS_THEY_ARE = ("backend/gpu", "backend/common")
FREE_OF_MLX = {"vk", "policy", "pipeline", "runtime", "kernels"}


@dataclass
class Item:
    """A line of the checklist."""

    kind: str
    name: str
    change: str
    places: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        places = f"\n      {', '.join(self.places)}" if self.places else ""
        return f"  [ ] {self.name}: {self.change}{places}"


def code_of(text: str) -> str:
    """Without comments and preprocessor lines, words one space apart."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', r"\1", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    return re.sub(r"\s+", " ", text.replace("MLX_API", "")).strip()


def closing(text: str, at: int) -> int:
    """Where the bracket that opens at `at` is closed."""
    depth = 0
    for match in re.finditer(r'"(?:\\.|[^"\\])*"|[{}()]', text[at:]):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return at + match.start()
    return len(text) - 1


def name_of(head: str) -> str:
    """What a declaration declares."""
    head = re.sub(r"^(?:(?:public|private|protected)\s*:\s*)+", "", head)
    operator = re.search(r"operator\s*\W+?(?=\s*\()", head)
    if operator:
        return operator[0]
    before = re.split(r"\(|=|\{", head, maxsplit=1)[0]
    words = re.findall(r"~?[A-Za-z_]\w*(?:\s*::\s*~?[A-Za-z_]\w*)*", before)
    return words[-1].replace(" ", "") if words else ""


def declarations(text: str, scope: str = "") -> Iterator[tuple[str, str, str]]:
    """(name with its class, head, body) of code_of() a file."""
    at = start = 0
    while at < len(text):
        c = text[at]
        if c == "(":
            at = closing(text, at) + 1
            continue
        if c == ";":
            head = text[start:at].strip()
            if name_of(head):
                yield scope + name_of(head), head, ""
        elif c == "{":
            end = closing(text, at)
            head, body = text[start:at].strip(), text[at + 1 : end].strip()
            kind = re.search(
                r"\b(namespace|class|struct|union|enum(?: class)?)\b(?!.*\()"
                r"\s*([\w:]*)",
                head,
            )
            if kind and kind[1] == "namespace" or head.startswith('extern "C"'):
                inner = kind[2].rpartition("::")[2] if kind else ""
                inner = "" if inner in ("", "mlx", "core") else f"{inner}::"
                yield from declarations(body, scope + inner)
            elif kind and kind[1].startswith("enum"):
                yield f"{scope}{kind[2]}", "enum", body
            elif kind:
                yield f"{scope}{kind[2]}", kind[1], ""
                yield from declarations(body, f"{scope}{kind[2]}::")
            elif name_of(head):
                yield scope + name_of(head), head, body
            at = end
            if text[at + 1 : at + 3].strip().startswith(";"):
                at = text.index(";", at)
        elif c == "}":
            pass
        else:
            at += 1
            continue
        at += 1
        start = at


def parameters(text: str) -> list[str]:
    """Split at the commas that are in no brackets."""
    depth, found = 0, [""]
    for c in text:
        depth += (c in "(<{[") - (c in ")>}]")
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return found


def signature(head: str, free: bool) -> str:
    """A declaration without what callers need not change for: values of defaults,
    and of free functions the parameters that have one."""
    head = re.sub(r"^(?:(?:public|private|protected)\s*:\s*)+", "", head)
    head = re.sub(r"\b(inline|explicit|virtual|override|static)\b", "", head)
    head = re.sub(r"\)\s*:\s*\w+_?\(.*", ")", head)  # of a constructor's members
    if "(" in head:
        start = head.index("(", head.index("operator") if "operator" in head else 0)
        end = closing(head, start)
        kept = [p.partition("=") for p in parameters(head[start + 1 : end])]
        kept = [p.strip() for p, default, _ in kept if not (free and default)]
        head = f"{head[:start]}({', '.join(kept)}){head[end + 1 :]}"
    head = head.partition(" = ")[0]
    return re.sub(r"\s+(?=[,)])|(?<=\()\s+", "", re.sub(r"\s+", " ", head)).strip()


class Tree:
    """A source tree of MLX."""

    def __init__(self, root: Path):
        self.mlx = root / "mlx"
        if not (self.mlx / "version.h").is_file():
            sys.exit(f"{root} is no source tree of MLX: it has no mlx/version.h.")
        self._declared: dict[str, dict[str, set[tuple[str, str]]]] = {}

    def version(self) -> str:
        text = (self.mlx / "version.h").read_text()
        return ".".join(re.findall(r"define MLX_VERSION_\w+ (\d+)", text))

    def text(self, name: str) -> str:
        path = self.mlx / name
        return code_of(path.read_text("utf-8")) if path.is_file() else ""

    def declared(self, name: str) -> dict[str, set[tuple[str, str]]]:
        """Name -> (signature, body) of what a file declares or defines."""
        if name not in self._declared:
            found = defaultdict(set)
            for declared, head, body in declarations(self.text(name)):
                free = not re.search(r"(^|::)[A-Z]|array::", declared)
                found[declared].add((signature(head, free), body))
            self._declared[name] = dict(found)
        return self._declared[name]

    def files(self, pattern: str) -> list[str]:
        return sorted(str(p.relative_to(self.mlx)) for p in self.mlx.glob(pattern))

    def primitives(self) -> dict[str, dict[str, set[str]]]:
        """Class -> member that a backend sees -> signatures, and state()'s body."""
        found: dict[str, dict[str, set[str]]] = {}
        for header in PRIMITIVES:
            for name, entries in self.declared(header).items():
                owner, _, member = name.rpartition("::")
                if any(head == "class" for head, _ in entries):
                    found.setdefault(name, {})
                elif owner in found and SEEN.match(member):
                    found[owner][member] = {
                        f"{head} {body if member == 'state' else ''}".strip()
                        for head, body in entries
                    }
        return found

    def stubs(self) -> dict[str, set[str]]:
        """Function that a backend defines -> signatures."""
        found = defaultdict(set)
        for pattern in STUBS:
            for file in self.files(pattern):
                for name, entries in self.declared(file).items():
                    for head, _ in entries:
                        if "(" in head and not head.startswith(("struct", "class")):
                            found[name].add(
                                re.sub(r"(?<=[\w&*>])\s+\w+(?=[,)])", "", head)
                            )
        return {name: found[name] for name in found.keys() & self.interface()}

    def interface(self) -> set[str]:
        """What headers declare, but for the CPU's and other GPUs'."""
        files = [f for p in INTERFACE for f in self.files(p)]
        return {name for file in files for name in self.declared(file)}


class Ours:
    """Where this tree uses a word."""

    def __init__(self, root: Path):
        self.root = root
        self.files = {
            path: path.read_text("utf-8").splitlines()
            for path in sorted((root / "src").rglob("*"))
            if path.suffix in (".cpp", ".h")
        }
        self.files = {
            path: lines
            for path, lines in self.files.items()
            if not FREE_OF_MLX & set(path.relative_to(root).parts)
        }

    def places(self, pattern: str, most: int = 3) -> list[str]:
        regex = re.compile(pattern)
        found = []
        for path, lines in self.files.items():
            for number, line in enumerate(lines, 1):
                if regex.search(line) and not line.lstrip().startswith("//"):
                    found.append(f"{path.relative_to(self.root)}:{number}")
                    break
            if len(found) == most:
                break
        return found

    def headers(self) -> list[str]:
        """MLX's headers that src/ includes."""
        text = "\n".join(line for lines in self.files.values() for line in lines)
        return sorted(set(re.findall(r'#include "mlx/([^"]+\.h)"', text)))


def difference(old: set[str], new: set[str]) -> str:
    gone, come = sorted(old - new), sorted(new - old)
    return "; ".join([*(f"was `{g}`" for g in gone), *(f"is `{c}`" for c in come)])


def primitives(old: Tree, new: Tree, ours: Ours) -> Iterator[Item]:
    before, after = old.primitives(), new.primitives()
    for name in sorted(after.keys() - before.keys()):
        where = ours.places(rf"\b{name.rpartition('::')[2]}::eval_gpu")
        yield Item("primitive", name, "new: it needs an eval_gpu", where)
    for name in sorted(before.keys() - after.keys()):
        where = ours.places(rf"\b{name.rpartition('::')[2]}::eval_gpu")
        yield Item("primitive", name, "gone", where)
    for name in sorted(before.keys() & after.keys()):
        a, b = before[name], after[name]
        changed = {m: (a.get(m, set()), b.get(m, set())) for m in {*a, *b}}
        changed = {m: c for m, c in changed.items() if c[0] != c[1]}
        if not changed.keys() <= {"state"} or "state" in a and changed:
            change = "; ".join(difference(*changed[m]) for m in sorted(changed))
            last = name.rpartition("::")[2]
            where = ours.places(rf"\b{last}::({'|'.join(['eval_gpu', *changed])})")
            yield Item("primitive", name, change, where)


def stubs(old: Tree, new: Tree, ours: Ours) -> Iterator[Item]:
    before, after = old.stubs(), new.stubs()
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name, set()), after.get(name, set())
        if was != now:
            change = difference(was, now) if was and now else "new" if now else "gone"
            where = ours.places(rf"\b{re.escape(name)}\s*\(")
            yield Item("backend", name, change, where)


def used(old: Tree, new: Tree, ours: Ours) -> Iterator[Item]:
    """Declarations of the headers that src/ includes."""
    for header in ours.headers():
        if header in PRIMITIVES:
            continue
        if not (new.mlx / header).is_file():
            yield Item("header", header, "gone", ours.places(re.escape(header)))
            continue
        before, after = old.declared(header), new.declared(header)
        for name in sorted(before.keys() | after.keys()):
            was, now = before.get(name, set()), after.get(name, set())
            owner, _, word = name.rpartition("::")
            # What is new is not used; stubs() has what a backend then defines.
            if was == now or not was or not re.match(r"\w", word):
                continue
            owner = owner.rpartition("::")[2]
            member = rf"(?:\.|->|\b{owner}::){word}\b" if owner else rf"\b{word}\("
            where = ours.places(rf"\b{word}\b" if owner == word else member)
            if where:
                signatures = difference({s for s, _ in was}, {s for s, _ in now})
                body = "its inline definition changed"
                if ("enum", "") in {(s, "") for s, _ in was}:
                    body = "its enumerators changed"
                change = "gone" if not now else signatures or body
                yield Item("declaration", f"{header} {name}", change, where)


def text_of(tree: Tree, file: str, function: str) -> set[tuple[str, str]]:
    """The function and what it calls in its file; of one that is defined elsewhere,
    its callers."""
    declared = tree.declared(file)
    last = {name.rpartition("::")[2]: entries for name, entries in declared.items()}
    if function in last:
        words = set(re.findall(r"\w+", " ".join(b for _, b in last[function])))
        return {e for name in words & last.keys() | {function} for e in last[name]}
    return {
        entry
        for entries in declared.values()
        for entry in entries
        if re.search(rf"\b{function}\(", entry[1])
    }


def overrides(old: Tree, new: Tree, root: Path) -> Iterator[Item]:
    table, _ = calls((root / "cmake/overrides.cmake").read_text("utf-8"))
    for (file, mlx), functions in sorted(table.items()):
        ours = [f"src/overrides/{file}"]
        if not (new.mlx / f"{mlx}.cpp").is_file():
            yield Item("override", f"{mlx}.cpp", "gone", ours)
            continue
        for function in sorted(functions - {"make_shared"}):  # called everywhere
            was = text_of(old, f"{mlx}.cpp", function)
            now = text_of(new, f"{mlx}.cpp", function)
            if was != now:
                names = {name_of(head) for head, _ in was ^ now}
                change = f"{', '.join(sorted(names))} changed" if now else "gone"
                yield Item("override", f"{mlx}.cpp {function}", change, ours)


def made(tree: Tree, file: str) -> dict[str, set[str]]:
    """Function -> the primitives that it makes, with their arguments."""
    found = defaultdict(set)
    for name, entries in tree.declared(file).items():
        for _, body in entries:
            for match in re.finditer(r"make_shared<([\w:]+)>\(", body):
                end = closing(body, match.end() - 1)
                found[name].add(f"{match[1]}({body[match.end() : end].strip()})")
    return found


def builders(old: Tree, new: Tree, ours: Ours) -> Iterator[Item]:
    for file in BUILDERS:
        before, after = made(old, file), made(new, file)
        for name in sorted(before.keys() & after.keys()):
            if before[name] != after[name]:
                primitive = re.match(r"[\w:]+", min(after[name] | before[name]))
                last = primitive[0].rpartition("::")[2]
                where = ours.places(rf"\b{last}::eval_gpu|\({last}[,)]")
                change = difference(before[name], after[name])
                yield Item("builder", f"{file} {name}", change, where)


def as_they_are(old: Tree, new: Tree, ours: Ours) -> Iterator[Item]:
    included = ours.headers()
    for folder in AS_THEY_ARE:
        names = {*old.files(f"{folder}/*.cpp"), *new.files(f"{folder}/*.cpp")}
        if folder == "backend/common":  # what is not used there is the CPU's
            stems = {h.removesuffix(".h") for h in included}
            names = {n for n in names if n.removesuffix(".cpp") in stems}
        for file in sorted(names):
            a, b = old.declared(file), new.declared(file)
            changed = sorted(n for n in a.keys() | b.keys() if a.get(n) != b.get(n))
            if changed:
                header = file.removesuffix(".cpp") + ".h"
                where = ours.places(re.escape(f'"mlx/{header}"'))
                yield Item("compiled", file, ", ".join(changed), where)


def symbols(frontend: Path, library: Path) -> Iterator[Item]:
    def nm(path: Path, *words: str) -> set[str]:
        command = ["nm", "-D", *words, str(path)]
        out = subprocess.run(command, capture_output=True, text=True, check=True)
        return {line.split()[-1].partition("@")[0] for line in out.stdout.splitlines()}

    lacks = nm(frontend, "--undefined-only") - nm(library, "--defined-only")
    lacks = sorted(s for s in lacks if "3mlx4core" in s)
    names = subprocess.run(
        ["c++filt"], input="\n".join(lacks), capture_output=True, text=True
    ).stdout.splitlines()
    for name in names:
        yield Item("symbol", name, "the frontend needs it, the library lacks it")


TITLES = {
    "backend": "Functions that a backend defines",
    "primitive": "Primitives",
    "header": "Headers",
    "declaration": "Declarations that src/ uses",
    "override": "Functions that src/overrides replaces",
    "builder": "Functions that make primitives",
    "compiled": "Files that are compiled as they are, and the functions that changed",
    "symbol": "Symbols of the frontend",
}


def checklist(old: Tree, new: Tree, root: Path = ROOT) -> list[Item]:
    ours = Ours(root)
    items = [*stubs(old, new, ours), *primitives(old, new, ours)]
    items += [*used(old, new, ours), *overrides(old, new, root)]
    items += [*builders(old, new, ours), *as_they_are(old, new, ours)]
    # Once: a primitive's stub says no more than the primitive, and a declaration
    # no more than the stub.
    classes = {i.name.rpartition("::")[2] for i in items if i.kind == "primitive"}
    backend = {i.name for i in items if i.kind == "backend"}
    return [
        i
        for i in items
        if not (i.kind == "backend" and classes & set(i.name.split("::")))
        and not (i.kind == "declaration" and i.name.split(" ")[1] in backend)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("new", type=Path, help="source tree of MLX")
    parser.add_argument("--old", type=Path, help="what this tree is built from")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument(
        "--frontend", type=Path, help="mlx/core.*.so of the new version"
    )
    parser.add_argument("--library", type=Path, help="this tree's libmlx.so")
    parser.add_argument("--json", type=Path, help="write the items there, too")
    args = parser.parse_args()
    if not args.old:
        note = args.build / "mlx_source_dir.txt"
        if not note.exists():
            sys.exit(f"{note} is missing: configure the build, or pass --old.")
        args.old = Path(note.read_text().strip())
    old, new = Tree(args.old), Tree(args.new)
    items = checklist(old, new)
    if args.frontend and args.library:
        items += symbols(args.frontend, args.library)
    print(f"# From MLX {old.version()} to {new.version()}: {len(items)} to look at")
    for kind, title in TITLES.items():
        chosen = [i for i in items if i.kind == kind]
        if chosen:
            print(f"\n{title}:", *chosen, sep="\n")
    if args.json:
        args.json.write_text(json.dumps([asdict(i) for i in items], indent=1))
    return 1 if items else 0


if __name__ == "__main__":
    sys.exit(main())

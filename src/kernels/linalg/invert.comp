// The inverses of permutations.
#include "common/index.glsl"
#include "common/types.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK InvertArgs
#include "common/args.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex i = flat_index();
  if (i < UIndex(A.count) * A.n) {
    UIndex matrix = i / A.n;
    uint to = load(A.perm, i);
    store(A.inverse, matrix * A.n + to, uint(i - matrix * A.n));
  }
}

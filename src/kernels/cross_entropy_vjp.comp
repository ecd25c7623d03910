// y = cotangent * (softmax(x) - onehot(target)), with softmax(x) = exp((x -
// x[target]) - loss) from the loss of the forward pass. y may alias x.
#include "common/bounds.glsl"
#include "common/math.glsl"
#include "common/rows.glsl"
#define ARGS_BLOCK CrossEntropyVjpArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

void main() {
  ROW_BEGIN
  bool inside = true;
  uint picked = named(load(A.target, row), n, row, inside);
  float x_t = load(x, picked);
  x_t = inside ? x_t : 0.0;
  float loss = load(A.loss, row);
  float g = load(A.cotangent, row);
  // Every invocation must read the target's logit before y overwrites it.
  memoryBarrierBuffer();
  barrier();
  if (live) {
    EACH4 {
      vec4 v = FETCH4(x, i, n, 0.0);
      vec4 p;
      for (uint k = 0; k < 4; ++k) {
        p[k] = math_exp((v[k] - x_t) - loss) - (inside && i + k == picked ? 1.0 : 0.0);
      }
      STORE4(y, i, n, g * p);
    }
  }
}

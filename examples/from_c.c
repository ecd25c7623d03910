/* A layer of a network on the GPU, from C. */
#include <math.h>
#include <stdio.h>

#include "mlx_in_c.h"

enum { ROWS = 4, IN = 8, OUT = 3 };

int main(void) {
  const char* name = mlx_gpu_name();
  if (!name) {
    fprintf(stderr, "%s\n", mlx_message());
    return 1;
  }
  printf("From C on %s\n", name);
  float x[ROWS * IN], w[IN * OUT], y[ROWS * OUT];
  for (int i = 0; i < ROWS * IN; ++i) {
    x[i] = i % 5 - 2;
  }
  for (int i = 0; i < IN * OUT; ++i) {
    w[i] = (i % 7 - 3) / 4.0f;
  }
  if (!mlx_layer(x, w, y, ROWS, IN, OUT)) {
    fprintf(stderr, "%s\n", mlx_message());
    return 1;
  }
  for (int r = 0; r < ROWS; ++r) {
    double e[OUT], sum = 0;
    for (int c = 0; c < OUT; ++c) {
      double product = 0;
      for (int i = 0; i < IN; ++i) {
        product += x[r * IN + i] * w[i * OUT + c];
      }
      sum += e[c] = exp(product);
    }
    for (int c = 0; c < OUT; ++c) {
      if (fabs(e[c] / sum - y[r * OUT + c]) > 1e-5) {
        puts("A row is wrong.");
        return 1;
      }
    }
  }
  puts("All rows are right.");
  return 0;
}

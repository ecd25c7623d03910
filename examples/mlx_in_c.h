/* The part of MLX that from_c.c needs, as C functions. Exceptions do not cross
 * the border: a function that fails returns 0 and leaves a message. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

const char* mlx_message(void);

/* The name of the GPU, or NULL. */
const char* mlx_gpu_name(void);

/* y = softmax(x W) for x of `rows` x `in` and W of `in` x `out`, row by row. */
int mlx_layer(
    const float* x,
    const float* w,
    float* y,
    int rows,
    int in,
    int out);

#ifdef __cplusplus
}
#endif

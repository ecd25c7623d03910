// Where the elements of cooperative matrices lie, as the host's probe has found
// it (runtime/probe.cpp). Element e of lane l is item row * 16 + column, the bits
// of which are those of l and e in another order: a layout has, from its lowest
// four bits on, where the five bits of l go and then the three of e.
#ifndef FRAGMENTS_GLSL
#define FRAGMENTS_GLSL

// For compiling without a probe: what NVIDIA's driver 580 has.
#ifndef FRAGMENT_C
#define FRAGMENT_C 0x73065421
#define FRAGMENT_A_F16 0x73065421
#define FRAGMENT_A_BF16 0x73065421
#endif
#ifndef FRAGMENT_B_F16
#define FRAGMENT_B_F16 0x37421065
#define FRAGMENT_B_BF16 0x37421065
#endif
#ifdef T_IS_bf16
#define FRAGMENT_A FRAGMENT_A_BF16
#define FRAGMENT_B FRAGMENT_B_BF16
#else
#define FRAGMENT_A FRAGMENT_A_F16
#define FRAGMENT_B FRAGMENT_B_F16
#endif

#define PLACE(layout, bit) (((layout) >> (4 * (bit))) & 15)
#define PLACE_C(bit) PLACE(FRAGMENT_C, bit)
#define PLACE_A(bit) PLACE(FRAGMENT_A, bit)
#define PLACE_B(bit) PLACE(FRAGMENT_B, bit)
#define BIT(x, i) (((x) >> (i)) & 1u)

#endif

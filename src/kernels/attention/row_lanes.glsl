// How lanes share rows of scores where it is not known in which lanes the elements
// of matrices lie: 64 rows a workgroup, two lanes of a subgroup each.
#ifndef ATTENTION_ROW_LANES_GLSL
#define ATTENTION_ROW_LANES_GLSL

#define ROWS (SG / 2) // of a subgroup: 16 or 8
#define SUBGROUPS (64 / ROWS)
#define WG (SUBGROUPS * SG)
#include "common/matrix_units.glsl"
#include "attention/matrices.glsl"

#define ROW (LANE / 2)
#define HALF_ROW (LANE % 2)
#define FQ (ROWS / MM) // fragments of a subgroup's rows

#endif

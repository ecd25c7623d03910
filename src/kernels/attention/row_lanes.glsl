// Assignment of lanes to rows of scores where the element layout of matrices is
// unknown: 64 rows per workgroup, two lanes of a subgroup per row.
#pragma once

#define ROWS (SG / 2) // rows per subgroup: 16 or 8
#define SUBGROUPS (64 / ROWS)
#define WG (SUBGROUPS * SG)
#include "common/matrix_units.glsl"
#include "attention/matrices.glsl"

#define ROW (LANE / 2)
#define HALF_ROW (LANE % 2)
#define FQ (ROWS / MM) // fragments along a subgroup's rows

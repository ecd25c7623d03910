// A workgroup for each matrix. A folded grid has more.
#pragma once

void work(uint matrix);

void main() {
  if (group_index() < A.count) { // uniform
    work(group_index());
  }
}

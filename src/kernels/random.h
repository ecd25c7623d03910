#include "common/interface.h"

BEGIN_INTERFACE

struct RandomArgs {
  PTR(Ptr_u32, keys)
  PTR(Ptr_u8, y)
  uint64_t num_keys, bytes_per_key, pairs_per_key;
  uint odd; // the last pair of a key holds one word
};

#ifdef __cplusplus
struct RandomVariant {
  bool WORDS; // bytes_per_key is a multiple of 4
  bool LARGE;
  KERNEL_VARIANT("random", RandomArgs, WORDS, LARGE)
};
#endif

END_INTERFACE

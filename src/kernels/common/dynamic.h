// Offset of a dynamic slice that is out of bounds.
#pragma once

#ifndef __cplusplus
#define NO_OFFSET int64_t(0x8000000000000000ul)
#endif

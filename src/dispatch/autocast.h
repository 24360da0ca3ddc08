// autocast.h: mixed precision as a layer: a small example of how one is made. See autocast.c.
#ifndef EMBER_DISPATCH_AUTOCAST_H
#define EMBER_DISPATCH_AUTOCAST_H
#include "operator.h"

// Turns CPU autocast on for this thread (dtype EM_BF16 or EM_F16) or off. EM_ERR_RUNTIME for other dtypes.
EM_PRIV em_status em_autocast_set(bool enabled, int dtype);
EM_PRIV bool em_autocast_enabled(void);
EM_PRIV int em_autocast_dtype(void);  // bfloat16 until somebody says otherwise
#endif

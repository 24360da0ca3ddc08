// autocast.h: mixed precision as a layer. See autocast.c.
#ifndef EMBER_DISPATCH_AUTOCAST_H
#define EMBER_DISPATCH_AUTOCAST_H
#include "operator.h"

// Turns CPU autocast on for this thread, or off, and says what products are computed in (any floating dtype; -1: as
// before). EM_ERR_RUNTIME for others.
EM_PRIV em_status em_autocast_set(bool enabled, int dtype);
EM_PRIV bool em_autocast_enabled(void);
EM_PRIV int em_autocast_dtype(void);  // bfloat16 until somebody says otherwise

// Regions nest; leaving the outermost forgets the casts of parameters that the thread has kept. Both return the depth.
EM_PRIV int em_autocast_enter(void);
EM_PRIV int em_autocast_leave(void);
// Whether parameters are cast once a region (the default) or at each use.
EM_PRIV bool em_autocast_cache_enabled(void);
EM_PRIV void em_autocast_cache_enable(bool on);
EM_PRIV void em_autocast_cache_clear(void);

// What becomes of the arguments of an operator ("conv2d", "padding"): its policy's name, or NULL if it is not cast.
EM_PRIV const char *em_autocast_policy(const char *name, const char *overload);
#endif

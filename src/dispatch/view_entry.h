// view_entry.h: what generated entries of view, composite and native rows call.
#ifndef EMBER_DISPATCH_VIEW_ENTRY_H
#define EMBER_DISPATCH_VIEW_ENTRY_H
#include "../core/shape.h"
#include "operator.h"

// A window on self's storage with geometry g (and g->dtype). Shares the version counter. View metadata comes from the
// Alias layer.
em_status em_view_entry(em_tensor *self, const em_geometry *g, em_tensor **out);
// out=: resizes `out` to the result's shape (with the warning) and copies; checks castability.
em_status em_priv_write_out(em_tensor *out, em_tensor *result);
em_status em_priv_write_out_laid(em_tensor *out, em_tensor *result);  // the same; an `out` that is resized gets the result's strides
// In-place forms: the result must have self's shape.
em_status em_priv_write_inplace(em_tensor *self, em_tensor *result);
#endif

// engine.h: walks the recorded program backward. No recursion anywhere; reentrant; usable from several threads at once.
#ifndef EMBER_AUTOGRAD_ENGINE_H
#define EMBER_AUTOGRAD_ENGINE_H
#include "node.h"

typedef struct em_backward_options {
  // accumulate: into leaves' .grad (backward), else return grads (grad)
  bool keep_graph, create_graph, allow_unused, accumulate;
  bool materialize;        // autograd.grad(materialize_grads=True)
} em_backward_options;
// roots[n], their gradients (NULL entry: ones, for one-element roots only: "grad can be implicitly created only for
// scalar outputs"). inputs[m]: NULL/0 for all leaves. results[m] receives new references when !accumulate.
EM_PRIV em_status em_engine_run(em_tensor *const *roots, em_tensor *const *root_grads, int64_t n,
                                em_tensor *const *inputs, int64_t m, em_backward_options opt, em_tensor **results);
// Runs fn when the backward running in this thread ends well; then, or when it fails, release(context).
EM_PRIV em_status em_engine_queue_callback(em_status (*fn)(void *), void *context, void (*release)(void *));
EM_PRIV em_status em_engine_zeros(const em_input_meta *meta, em_tensor **out);  // what an undefined gradient stands for
EM_PRIV bool em_engine_will_run(em_node *n);  // the run of this thread has n on its way
EM_PRIV int64_t em_engine_run_number(void);     // of the run of this thread; -1 when there is none
EM_PRIV em_node *em_engine_current_node(void);  // borrowed, or NULL
// Makes a gradient fit: sum to size, real part, cast, device check. Steals nothing, new reference in *out.
EM_PRIV em_status em_engine_fit(const em_input_meta *meta, em_tensor *grad, const em_node *from, uint32_t i,
                                em_tensor **out);
#endif

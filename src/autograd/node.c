// node.c: records of the program that ran: making them, pointing them at each other, and freeing them without
// recursion.
#include "node.h"
#include <string.h>
#include "gen_ops.h"
#include "internal.h"
#include "view.h"

void (*em_priv_anomaly_record)(em_node *n);
void (*em_priv_anomaly_report)(em_node *n);

static inline size_t block_size(const em_node_class *cls, uint32_t n_edges, uint32_t n_inputs) {
  return ((cls->size + 15u) & ~(size_t)15) + n_edges * sizeof(em_edge) + n_inputs * sizeof(em_input_meta);
}

em_node *em_node_new(const em_node_class *cls, uint32_t n_edges, uint32_t n_inputs) {
  size_t head = (cls->size + 15u) & ~(size_t)15, size = block_size(cls, n_edges, n_inputs);
  em_node *n = em_alloc(size);
  if (EM_UNLIKELY(n == NULL)) return NULL;
  memset(n, 0, head + n_edges * sizeof(em_edge));
  atomic_init(&n->rc, 1);
  n->n_edges = n_edges;
  n->n_inputs = n_inputs;
  n->cls = cls;
  n->seq = em_priv_tls.node_seq++;
  n->edges = (em_edge *)((char *)n + head);
  n->inputs = (em_input_meta *)(n->edges + n_edges);
  for (uint32_t i = 0; i < n_inputs; i++) n->inputs[i].known = n->inputs[i].ndim = 0;
  em_priv_live(EM_KIND_NODE, 1);
  if (EM_UNLIKELY(em_priv_tls.anomaly && em_priv_anomaly_record != NULL)) {
    n->anomaly_parent = em_node_retain(em_engine_current_node());
    em_priv_anomaly_record(n);
  }
  return n;
}

// ---- freeing ------------------------------------------------------------------------------------------------------
// The outermost free drains two lists; frees that happen below it only queue. So neither a long chain, nor saved
// tensors on which other graphs hang, nor a chain of .grad tensors uses the stack. Dead nodes are linked through
// `run`; dead metas through `accumulator`.

static void destroy_node(em_node *n) {
  if (n->cls->release_saved != NULL) n->cls->release_saved(n);
  if (n->cls->destroy != NULL) n->cls->destroy(n);
  if (n->hooks != NULL) em_priv_node_hooks_free(n->hooks);
  for (uint32_t i = 0; i < n->n_edges; i++) em_node_release(n->edges[i].node);
  for (uint32_t j = 0; j < n->n_inputs; j++) {
    em_input_meta *m = &n->inputs[j];
    if (m->ndim > EM_INLINE_DIMS) em_free(m->sizes, sizeof(int64_t) * m->ndim);
  }
  if (EM_UNLIKELY(n->anomaly != NULL)) {
    em_value_clear(n->anomaly);
    em_free(n->anomaly, sizeof *n->anomaly);
  }
  em_node_release(n->anomaly_parent);
  em_priv_live(EM_KIND_NODE, -1);
  em_free(n, block_size(n->cls, n->n_edges, n->n_inputs));
}

static void destroy_meta(em_autograd_meta *m) {
  em_tensor_release(m->grad);
  em_node_release(m->grad_fn);
  if (m->hooks != NULL) em_priv_tensor_hooks_free(m->hooks);
  if (m->view != NULL) {
    em_tensor_release(m->view->base);
    em_priv_recipe_release(m->view->recipe);
    em_free(m->view, sizeof *m->view);
  }
  em_priv_live(EM_KIND_META, -1);
  em_free(m, sizeof *m);
}

static void drain(void) {
  em_priv_tls.draining = 1;
  for (;;) {
    em_node *n = em_priv_tls.dying_nodes;
    em_autograd_meta *m = em_priv_tls.dying_metas;
    if (n != NULL) {
      em_priv_tls.dying_nodes = (void *)(uintptr_t)n->run;
      destroy_node(n);
    } else if (m != NULL) {
      em_priv_tls.dying_metas = atomic_load_explicit(&m->accumulator, memory_order_relaxed);
      destroy_meta(m);
    } else {
      break;
    }
  }
  em_priv_tls.draining = 0;
}

void em_node_free(em_node *n) {
  if (n->cls == &em_class_accumulate_grad) {
    em_priv_accumulator_sleep(n);
    return;
  }
  n->run = (uint64_t)(uintptr_t)em_priv_tls.dying_nodes;
  em_priv_tls.dying_nodes = n;
  if (!em_priv_tls.draining) drain();
}

static void release_meta(em_autograd_meta *m) {
  if (EM_UNLIKELY(m->retains_grad)) em_priv_forget_retained(m->grad_fn, m);
  em_node *accumulator = atomic_load_explicit(&m->accumulator, memory_order_acquire);
  if (accumulator != NULL) destroy_node(accumulator);  // asleep: it owns nothing
  atomic_store_explicit(&m->accumulator, em_priv_tls.dying_metas, memory_order_relaxed);
  em_priv_tls.dying_metas = m;
  if (!em_priv_tls.draining) drain();
}
__attribute__((constructor)) static void install(void) { em_priv_meta_release = release_meta; }

// ---- edges and history --------------------------------------------------------------------------------------------

em_status em_node_edge_of(em_tensor *t, em_edge *out) {
  out->node = NULL;
  out->nr = 0;
  if (t == NULL || !em_tensor_requires_grad(t)) return EM_OK;
  em_node *fn;
  EM_PASS(em_tensor_grad_fn(t, &fn));
  if (fn == NULL) return em_node_accumulator(t, &out->node);
  out->node = em_node_retain(fn);
  out->nr = t->meta->output_nr;
  return EM_OK;
}

em_status em_node_set_edge(em_node *n, uint32_t i, em_tensor *t) { return em_node_edge_of(t, &n->edges[i]); }

em_status em_priv_fill_input(em_input_meta *m, const em_tensor *t) {
  int64_t *sizes = m->dims;
  if (EM_UNLIKELY(t->ndim > EM_INLINE_DIMS)) {
    sizes = em_alloc(sizeof(int64_t) * t->ndim);
    if (sizes == NULL) return EM_NOMEM(sizeof(int64_t) * t->ndim);
  }
  if (EM_UNLIKELY(m->ndim > EM_INLINE_DIMS)) em_free(m->sizes, sizeof(int64_t) * m->ndim);
  for (int i = 0; i < t->ndim; i++) sizes[i] = t->sizes[i];
  m->sizes = sizes;
  m->ndim = t->ndim;
  m->dtype = t->dtype;
  m->device = t->device;
  m->keys = t->keys;
  m->known = 1;
  return EM_OK;
}

// Gives t the history (n, j). An old grad_fn is let go.
em_status em_priv_point_history(em_node *n, uint32_t j, em_tensor *t) {
  em_autograd_meta *meta;
  EM_PASS(em_tensor_meta(t, &meta));
  em_node *old = meta->grad_fn;
  meta->grad_fn = em_node_retain(n);
  meta->output_nr = j;
  t->flags |= EM_T_REQUIRES_GRAD;
  t->keys |= EM_KEYBIT(EM_KEY_Autograd);
  em_status st = em_priv_move_retain_grad(meta, old);
  em_node_release(old);
  return st;
}

em_status em_node_set_history(em_node *n, uint32_t j, em_tensor *t) {
  if (EM_UNLIKELY(t == NULL || !em_dtype_is_differentiable(t->dtype))) return EM_OK;
  EM_PASS(em_priv_fill_input(&n->inputs[j], t));
  return em_priv_point_history(n, j, t);
}

em_status em_node_give_history(em_node *n, em_tensor *t) {
  em_status st = EM_OK;
  if (EM_LIKELY(t->meta == NULL && em_dtype_is_differentiable(t->dtype))) {
    em_autograd_meta *meta;
    EM_TRY(em_priv_fill_input(&n->inputs[0], t));
    EM_TRY(em_tensor_meta(t, &meta));
    meta->grad_fn = n;
    t->flags |= EM_T_REQUIRES_GRAD;
    t->keys |= EM_KEYBIT(EM_KEY_Autograd);
    return EM_OK;
  }
  st = em_node_set_history(n, 0, t);
fail:
  em_node_release(n);
  return st;
}

const char *em_node_forward_name(const em_node *n, char *buf, size_t size) {
  const char *name = n->cls->name, *cut = NULL;
  for (const char *p = name; (p = strstr(p, "Backward")) != NULL; p++) {
    const char *q = p + strlen("Backward");
    while (*q >= '0' && *q <= '9') q++;
    if (*q == '\0') cut = p;
  }
  size_t len = cut != NULL && cut != name ? (size_t)(cut - name) : strlen(name);
  if (len >= size) len = size - 1;
  memcpy(buf, name, len);
  buf[len] = '\0';
  return buf;
}

// ---- the questions that autograd asks of tensors ------------------------------------------------------------------

bool em_tensor_is_leaf(em_tensor *t) {
  if (t == NULL) return false;
  if (!em_tensor_requires_grad(t)) return true;
  if (t->flags & EM_T_IS_VIEW) {
    // A view of a tensor that needs a gradient has history unless it was made under no_grad and is untouched.
    const em_view_info *v = t->meta->view;
    if (v->attr_version != em_tensor_version(t) && em_tensor_requires_grad(v->base)) return false;
  }
  return t->meta == NULL || t->meta->grad_fn == NULL;
}

em_status em_tensor_set_requires_grad(em_tensor *t, bool on) {
  if (t == NULL) return em_fail_null("em_tensor_set_requires_grad", "tensor");
  if (!em_tensor_is_leaf(t)) {
    if (on) return EM_OK;
    return em_fail(EM_ERR_RUNTIME,
                   "you can only change requires_grad flags of leaf variables. If you want to use a computed "
                   "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().");
  }
  if (on && !em_dtype_is_differentiable(t->dtype))
    return em_fail(EM_ERR_RUNTIME, "only Tensors of floating point dtype can require gradients");
  if (on && (t->flags & EM_T_INFERENCE) && !em_priv_tls.inference)
    return em_fail(EM_ERR_RUNTIME,
                   "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (on) {
    em_autograd_meta *meta;  // made here, while one thread sees the tensor: recording may then happen in several
    EM_PASS(em_tensor_meta(t, &meta));
    t->flags |= EM_T_REQUIRES_GRAD;
    t->keys |= EM_KEYBIT(EM_KEY_Autograd);
  } else {
    t->flags &= (uint16_t)~EM_T_REQUIRES_GRAD;
    if (!(t->flags & EM_T_IS_VIEW)) t->keys &= ~EM_KEYBIT(EM_KEY_Autograd);
  }
  return EM_OK;
}

em_status em_tensor_detach(em_tensor *t, em_tensor **out) { return em_call_detach(t, out); }

em_status em_tensor_grad(em_tensor *t, em_tensor **borrowed) {
  if (EM_UNLIKELY(t == NULL)) return em_fail_null("em_tensor_grad", "tensor");
  *borrowed = t->meta == NULL ? NULL : t->meta->grad;
  return EM_OK;
}

// C++ type names: PyTorch prints a TypeMeta here.
static const char *const type_names[EM_NUM_DTYPES] = {
  [EM_U8] = "unsigned char", [EM_I8] = "signed char", [EM_I16] = "short", [EM_I32] = "int", [EM_I64] = "long",
  [EM_F16] = "c10::Half", [EM_F32] = "float", [EM_F64] = "double", [EM_C64] = "c10::complex<float>",
  [EM_C128] = "c10::complex<double>", [EM_BOOL] = "bool", [EM_BF16] = "c10::BFloat16"};

em_status em_tensor_set_grad(em_tensor *t, em_tensor *grad) {
  if (EM_UNLIKELY(t == NULL)) return em_fail_null("em_tensor_set_grad", "tensor");
  if (grad == NULL) {
    if (t->meta != NULL) EM_CLEAR_TENSOR(&t->meta->grad);
    return EM_OK;
  }
  if (grad == t) return em_fail(EM_ERR_RUNTIME, "can't assign Variable as its own grad");
  if (grad->dtype != t->dtype)
    return em_fail(
        EM_ERR_RUNTIME,
        "attempting to assign a gradient with dtype '%s' to a tensor with grad_dtype '%s'. The gradient must "
        "match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute "
        "with a "
        "specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and "
        "its "
        "gradient may break downstream systems that assume they match.",
        type_names[grad->dtype], em_dtype_scalar_name(t->dtype));
  if (grad->device.type != t->device.type) {
    char a[24], b[24];
    return em_fail(EM_ERR_RUNTIME,
                   "attempting to assign a gradient with device type '%s' to a tensor with device type '%s'. Please "
                   "ensure that the gradient and the tensor are on the same device",
                   em_device_format((em_device){grad->device.type, -1}, a),
                   em_device_format((em_device){t->device.type, -1}, b));
  }
  if (!em_tensor_same_sizes(t, grad)) {
    char a[512], b[512];
    return em_fail(EM_ERR_RUNTIME,
                   "attempting to assign a gradient of size '%s' to a tensor of size '%s'. Please ensure that the "
                   "gradient and the tensor are the same size",
                   em_shape_format(grad->ndim, grad->sizes, a, sizeof a),
                   em_shape_format(t->ndim, t->sizes, b, sizeof b));
  }
  em_autograd_meta *meta;
  EM_PASS(em_tensor_meta(t, &meta));
  em_tensor *old = meta->grad;
  meta->grad = em_tensor_retain(grad);
  em_tensor_release(old);
  return EM_OK;
}

// autocast.c: mixed precision as a layer. One boxed function, registered at the Autocast key for the operators of
// PyTorch's CPU lists, casts their arguments and calls below. It knows nothing of the operators but their list;
// autograd, which lies below, records the casts like any other operator. While nobody uses autocast no operator has
// this key in its mask.
#include "autocast.h"
#include <stdlib.h>
#include <string.h>
#include "gen_ops.h"

typedef enum policy { LOWER, FLOAT32, WIDEST } policy;
static const char *const policy_names[] = {"lower", "float32", "widest"};

// lint: table. PyTorch 2.13's registrations for the CPU, by overload. Operators that Ember does not have yet stand here too.
static const char *const lists[] = {
    // computed in the chosen dtype: these gain by it and lose little
    [LOWER] =
        "_addmm_activation _convolution.deprecated _native_multi_head_attention addbmm addmm baddbmm bmm conv1d "
        "conv1d.padding conv2d conv2d.padding conv3d conv3d.padding conv_tbc conv_transpose1d conv_transpose2d.input "
        "conv_transpose3d.input linalg_vecdot linear matmul mkldnn_rnn_layer mm prelu scaled_dot_product_attention ",
    // computed in float32: they need its range, or have no faster kernel
    [FLOAT32] =
        "_grid_sampler_2d_cpu_fallback _lu_with_info adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d "
        "binary_cross_entropy binary_cross_entropy_with_logits cdist cholesky cholesky_inverse cholesky_solve "
        "cosine_embedding_loss cross_entropy_loss ctc_loss.IntList ctc_loss.Tensor fake_quantize_per_tensor_affine "
        "fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn "
        "fft_rfft fft_rfft2 fft_rfftn fractional_max_pool2d fractional_max_pool3d geqrf grid_sampler grid_sampler_2d "
        "grid_sampler_3d hinge_embedding_loss huber_loss inverse kl_div l1_loss linalg_cholesky linalg_cholesky_ex "
        "linalg_cond linalg_cond.p_str linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh "
        "linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank "
        "linalg_matrix_rank.atol_rtol_float linalg_matrix_rank.atol_rtol_tensor linalg_matrix_rank.tol_tensor linalg_qr "
        "linalg_solve linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve lu_solve margin_ranking_loss "
        "max_pool3d max_unpool2d max_unpool3d mse_loss multi_margin_loss multilabel_margin_loss "
        "multilabel_margin_loss_forward nanquantile nanquantile.scalar nll_loss nll_loss2d orgqr ormqr pinverse "
        "poisson_nll_loss polar prod prod.dim_int qr quantile quantile.scalar reflection_pad1d reflection_pad2d "
        "replication_pad1d replication_pad2d replication_pad3d smooth_l1_loss soft_margin_loss stft stft.center svd "
        "trace triangular_solve triplet_margin_loss view_as_complex ",
    // computed in the widest of their arguments: they join several
    [WIDEST] = "cat index_copy stack ",
};

// ---------------------------------------------------------------- casts that a region keeps
// A parameter used several times in a region is cast once, and its gradients are summed before they are cast back.
typedef struct kept { em_tensor *from, *to; uint32_t version; } kept;
static _Thread_local struct {
  kept *table;  // open addressing; from == NULL: free
  int64_t room, used;
  int depth;
  bool off;
} cache __attribute__((tls_model("initial-exec")));

static kept *find(const em_tensor *t) {
  if (cache.room == 0) return NULL;
  for (uint64_t i = ((uintptr_t)t >> 6) & (uint64_t)(cache.room - 1);; i = (i + 1) & (uint64_t)(cache.room - 1))
    if (cache.table[i].from == t || cache.table[i].from == NULL) return &cache.table[i];
}
static bool make_room(void) {
  if (2 * (cache.used + 1) <= cache.room) return true;
  kept *old = cache.table;
  int64_t n = cache.room;
  kept *table = em_alloc_zeroed((size_t)(n == 0 ? 64 : 2 * n) * sizeof *table);
  if (table == NULL) return false;  // it is only a cache
  cache.table = table;
  cache.room = n == 0 ? 64 : 2 * n;
  for (int64_t i = 0; i < n; i++)
    if (old[i].from != NULL) *find(old[i].from) = old[i];
  if (old != NULL) em_free(old, (size_t)n * sizeof *old);
  return true;
}
void em_autocast_cache_clear(void) {
  kept *table = cache.table;
  int64_t n = cache.room;
  cache.table = NULL;
  cache.room = cache.used = 0;
  for (int64_t i = 0; i < n; i++) {
    em_tensor_release(table[i].to);
    em_tensor_release(table[i].from);
  }
  if (table != NULL) em_free(table, (size_t)n * sizeof *table);
}
int em_autocast_enter(void) { return ++cache.depth; }
int em_autocast_leave(void) {
  if (cache.depth > 0 && --cache.depth == 0) em_autocast_cache_clear();
  return cache.depth;
}
bool em_autocast_cache_enabled(void) { return !cache.off; }
void em_autocast_cache_enable(bool on) { cache.off = !on; }

// Leaves that want a gradient. Not while gradients are off: a cast that is not recorded must not be used later, when they
// are on. Not outside of regions: nobody would forget it.
static bool worth_keeping(const em_tensor *t, int dtype) {
  return !cache.off && cache.depth > 0 && t->dtype == EM_F32 && dtype == em_autocast_dtype() &&
         (t->flags & EM_T_REQUIRES_GRAD) && !(t->flags & EM_T_IS_VIEW) && (t->meta == NULL || t->meta->grad_fn == NULL) &&
         !(em_priv_tls.exclude & EM_KEYBIT(EM_KEY_Autograd));
}

// ---------------------------------------------------------------- casting
static bool castable(const em_tensor *t) {
  return t != NULL && t->device.type == EM_DEVICE_CPU &&
         (t->dtype == EM_F32 || t->dtype == EM_BF16 || t->dtype == EM_F16);
}
static em_status cast_new(em_tensor *t, int dtype, em_tensor **out) {
  return em_call__to_copy(t, dtype, -1, EM_DEVICE_NONE, -1, false, EM_FORMAT_NONE, out);
}
static em_status cast(em_tensor *t, int dtype, em_tensor **out) {
  if (!castable(t) || t->dtype == dtype) {
    *out = em_tensor_retain(t);
    return EM_OK;
  }
  if (!worth_keeping(t, dtype)) return cast_new(t, dtype, out);
  kept *k = find(t);
  bool known = k != NULL && k->from == t;
  if (!known || k->version != em_tensor_version(t) || k->to->dtype != dtype) {
    EM_PASS(cast_new(t, dtype, out));
    if (!known && !make_room()) return EM_OK;
    k = find(t);  // the cast may have run anything
    if (k->from == NULL) {
      k->from = em_tensor_retain(t);
      cache.used++;
    } else {
      em_tensor_release(k->to);
    }
    k->to = em_tensor_retain(*out);
    k->version = em_tensor_version(t);
    return EM_OK;
  }
  *out = em_tensor_retain(k->to);
  return EM_OK;
}
static em_status cast_value(const em_value *v, int dtype, em_value *out) {
  *out = *v;
  out->owned = 0;
  if (v->tag == EM_TAG_TENSOR) {
    em_tensor *t;
    EM_PASS(cast(v->tensor, dtype, &t));
    *out = em_value_tensor_steal(t);
  } else if (v->tag == EM_TAG_TENSORS) {
    em_tensor_list l;
    EM_PASS(em_tensor_list_new(v->list.n, &l));
    for (int64_t i = 0; i < l.n; i++) {
      em_status st = cast(v->list.tensors[i], dtype, &l.p[i]);
      if (st != EM_OK) {
        em_tensor_list_clear(&l);
        return st;
      }
    }
    *out = em_value_tensor_list_steal(l);
  }
  return EM_OK;
}

// float32 if one is among them, else the chosen dtype; a third one has no place in it.
static em_status widen(const em_tensor *t, int *dtype) {
  if (!castable(t)) return EM_OK;
  if (t->dtype == EM_F32) *dtype = EM_F32;
  else if (*dtype != EM_F32 && t->dtype != *dtype)
    return em_fail(EM_ERR_RUNTIME, "Unexpected floating ScalarType in at::autocast::prioritize: %s beside %s",
                   em_dtype_name(t->dtype), em_dtype_name(*dtype));
  return EM_OK;
}
static em_status target_of(policy p, const em_operator *op, const em_value *args, int *dtype) {
  *dtype = p == FLOAT32 ? EM_F32 : em_autocast_dtype();
  for (int i = 0; p == WIDEST && i < op->nargs; i++) {
    if (args[i].tag == EM_TAG_TENSOR) EM_PASS(widen(args[i].tensor, dtype));
    for (int64_t k = 0; args[i].tag == EM_TAG_TENSORS && k < args[i].list.n; k++)
      EM_PASS(widen(args[i].list.tensors[k], dtype));
  }
  return EM_OK;
}

static em_status autocast(const em_operator *op, uint64_t ks, void *context, const em_value *args, em_value *rets) {
  (void)ks;
  int dtype, n = 0;
  EM_PASS(target_of((policy)(intptr_t)context, op, args, &dtype));
  em_value cast_args[64] = {{.tag = EM_TAG_NONE}};
  em_status st = EM_OK;
  em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autocast));  // the parts of a composite are not cast again
  for (; n < op->nargs; n++) EM_TRY(cast_value(&args[n], dtype, &cast_args[n]));
  EM_TRY(em_priv_call_boxed(op, cast_args, rets));
fail:
  em_guard_restore(guard);
  for (int i = 0; i < n; i++) em_value_clear(&cast_args[i]);
  return st;
}

// ---------------------------------------------------------------- the switch
// Calls f for each name of the lists, until it answers otherwise than EM_OK.
typedef em_status (*visit)(const char *name, const char *overload, policy p, void *context);
static em_status for_each(visit f, void *context) {
  for (size_t p = 0; p < sizeof lists / sizeof *lists; p++)
    for (const char *at = lists[p], *end; (end = strchr(at, ' ')) != NULL; at = end + 1) {
      char name[64];
      size_t n = (size_t)(end - at) < sizeof name ? (size_t)(end - at) : sizeof name - 1;
      memcpy(name, at, n);
      name[n] = 0;
      char *dot = strchr(name, '.');
      if (dot != NULL) *dot = 0;
      EM_PASS(f(name, dot == NULL ? "" : dot + 1, (policy)p, context));
    }
  return EM_OK;
}
static em_status install_one(const char *name, const char *overload, policy p, void *context) {
  (void)context;
  em_operator *op = em_operator_find("aten", name, overload);
  if (op == NULL) return EM_OK;  // not in this build
  return em_operator_set_boxed(op, EM_KEY_Autocast, autocast, (void *)(intptr_t)p, NULL, "autocast");
}
static em_status install(void) {
  static bool installed;
  if (installed) return EM_OK;
  EM_PASS(for_each(install_one, NULL));
  installed = true;
  return EM_OK;
}

typedef struct question { const char *name, *overload, *answer; } question;
static em_status ask_one(const char *name, const char *overload, policy p, void *context) {
  question *q = context;
  if (strcmp(name, q->name) == 0 && strcmp(overload, q->overload) == 0) q->answer = policy_names[p];
  return EM_OK;
}
const char *em_autocast_policy(const char *name, const char *overload) {
  question q = {name, overload, NULL};
  (void)for_each(ask_one, &q);
  return q.answer;
}

em_status em_autocast_set(bool enabled, int dtype) {
  if (dtype >= 0 && !em_dtype_is_float(dtype))
    return em_fail(EM_ERR_RUNTIME, "autocast needs a floating point dtype, got %s", em_dtype_name(dtype));
  EM_PASS(install());
  if (dtype >= 0) em_priv_tls.autocast_dtype = dtype + 1;  // 0: never set
  if (enabled) em_priv_tls.include |= EM_KEYBIT(EM_KEY_Autocast);
  else em_priv_tls.include &= ~EM_KEYBIT(EM_KEY_Autocast);
  return EM_OK;
}
bool em_autocast_enabled(void) { return (em_priv_tls.include & EM_KEYBIT(EM_KEY_Autocast)) != 0; }
int em_autocast_dtype(void) { return em_priv_tls.autocast_dtype == 0 ? EM_BF16 : em_priv_tls.autocast_dtype - 1; }

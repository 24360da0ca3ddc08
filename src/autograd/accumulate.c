// accumulate.c: the end of every path backward: a gradient arrives at a leaf and is added to its .grad.
//
// A leaf's accumulator is made once and its memory lives as long as the leaf's meta. While somebody refers to it, it
// owns one reference on the leaf; when the last reference goes it falls asleep (count 0, hooks dropped) and lets the
// leaf go. Two threads may meet here: the leaf's pointer is the lock for waking and sleeping (BUSY while somebody
// looks), and leaf locks keep two runs from adding at once.
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include "../core/threads.h"
#include "gen_ops.h"
#include "internal.h"

typedef struct accumulator {
  em_node node;
  em_tensor *leaf;  // owned
} accumulator;

#define BUSY ((em_node *)(uintptr_t)1)
static em_node *take(em_autograd_meta *meta) {
  em_node *n;
  while (EM_UNLIKELY((n = atomic_exchange_explicit(&meta->accumulator, BUSY, memory_order_acquire)) == BUSY))
    sched_yield();
  return n;
}
static void put(em_autograd_meta *meta, em_node *n) {
  atomic_store_explicit(&meta->accumulator, n, memory_order_release);
}

static em_status make(em_tensor *leaf, em_node **out) {
  uint64_t seq = em_priv_tls.node_seq;
  uint8_t anomaly = em_priv_tls.anomaly;
  em_priv_tls.anomaly = 0;  // no host code may run while the leaf is BUSY
  em_node *n = em_node_new(&em_class_accumulate_grad, 0, 1);
  em_priv_tls.anomaly = anomaly;
  em_priv_tls.node_seq = seq;
  if (n == NULL) return EM_NOMEM(sizeof(accumulator));
  n->seq = UINT64_MAX;
  ((accumulator *)n)->leaf = leaf;
  atomic_store_explicit(&n->rc, 0, memory_order_relaxed);  // asleep
  *out = n;
  return EM_OK;
}
em_status em_node_accumulator(em_tensor *leaf, em_node **out) {
  em_autograd_meta *meta;
  em_status st = EM_OK;
  EM_PASS(em_tensor_meta(leaf, &meta));
  em_node *n = take(meta);
  if (EM_UNLIKELY(n == NULL)) EM_TRY(make(leaf, &n));
  if (!em_ref_inc_unless_zero(&n->rc)) {  // wake it; the leaf may have changed its shape meanwhile
    EM_TRY(em_priv_fill_input(&n->inputs[0], leaf));
    em_tensor_retain(leaf);
    atomic_store_explicit(&n->rc, 1, memory_order_relaxed);
  }
  *out = n;
fail:
  put(meta, n);
  return st;
}

// The last known reference is gone: the accumulator falls asleep, unless another thread took a new one through the leaf
// in between.
void em_priv_accumulator_sleep(em_node *n) {
  em_tensor *leaf = ((accumulator *)n)->leaf;
  struct em_node_hooks *hooks = NULL;
  em_node *current = take(leaf->meta);
  uint32_t one = 1;  // em_ref_dec leaves 1 behind when it skips the locked instruction
  bool last =
      atomic_load(&n->rc) == 0 || atomic_compare_exchange_strong(&n->rc, &one, 0) || atomic_fetch_sub(&n->rc, 1) == 1;
  if (last) {
    hooks = n->hooks;
    n->hooks = NULL;
  }
  put(leaf->meta, current);
  if (!last) return;
  if (hooks != NULL) em_priv_node_hooks_free(hooks);
  em_tensor_release(leaf);
}
em_tensor *em_priv_accumulate_variable(em_node *n) { return ((accumulator *)n)->leaf; }

// ---- leaf locks: by address, reentrant, and never held against the host's lock ------------------------------------

#define LOCKS 64
static struct { void *_Atomic owner; uint32_t depth; char pad[64 - sizeof(void *) - sizeof(uint32_t)]; } locks[LOCKS];

static size_t lock_of(const em_tensor *t) { return ((uintptr_t)t >> 6) % LOCKS; }
static void lock_leaf(size_t i) {
  void *me = &em_priv_tls, *nobody = NULL;
  if (atomic_load_explicit(&locks[i].owner, memory_order_relaxed) == me) {
    locks[i].depth++;
    return;
  }
  if (EM_UNLIKELY(!atomic_compare_exchange_strong_explicit(&locks[i].owner, &nobody, me, memory_order_acquire,
                                                           memory_order_relaxed))) {
    void *token = em_priv_begin_long(true);  // the owner may be waiting for the host's lock
    do {
      sched_yield();
      nobody = NULL;
    } while (!atomic_compare_exchange_weak_explicit(&locks[i].owner, &nobody, me, memory_order_acquire,
                                                    memory_order_relaxed));
    em_priv_end_long(token);
  }
  locks[i].depth = 1;
}
static void unlock_leaf(size_t i) {
  if (--locks[i].depth == 0) atomic_store_explicit(&locks[i].owner, NULL, memory_order_release);
}
// Threads that held a lock are not in the child.
static void reset_locks(void) {
  for (size_t i = 0; i < LOCKS; i++)
    if (atomic_load(&locks[i].owner) != &em_priv_tls) {
      locks[i].depth = 0;
      atomic_store(&locks[i].owner, NULL);
    }
}
__attribute__((constructor)) static void install(void) { pthread_atfork(NULL, NULL, reset_locks); }

// ---- adding -------------------------------------------------------------------------------------------------------

// Dense without gaps or repeats in some order of dims: then a gradient has the leaf's strides.
static bool is_dense(const em_tensor *t) {
  if (em_tensor_is_contiguous(t)) return true;
  bool used[EM_MAX_DIMS] = {false};
  int64_t expect = 1;
  for (int k = 0; k < t->ndim; k++) {
    int best = -1;
    for (int i = 0; i < t->ndim; i++)
      if (!used[i] && t->sizes[i] != 1 && (best < 0 || t->strides[i] < t->strides[best])) best = i;
    if (best < 0) break;
    if (t->strides[best] != expect) return false;
    expect *= t->sizes[best];
    used[best] = true;
  }
  return true;
}
static bool same_strides(const em_tensor *a, const em_tensor *b) {
  for (int i = 0; i < a->ndim; i++)
    if (a->sizes[i] != 1 && a->strides[i] != b->strides[i]) return false;
  return true;
}
// PyTorch's layout contract: a dense leaf's gradient has its strides, another leaf's gradient is row-major.
static bool fits_layout(const em_tensor *grad, const em_tensor *leaf) {
  if (em_tensor_is_contiguous(leaf)) return em_tensor_is_contiguous(grad);
  return is_dense(leaf) ? same_strides(grad, leaf) : em_tensor_is_contiguous(grad);
}
static em_status copy_for(em_tensor *grad, em_tensor *leaf, em_tensor **out) {
  if (em_tensor_is_contiguous(leaf) || !is_dense(leaf)) return em_call_clone(grad, EM_FORMAT_CONTIGUOUS, out);
  em_tensor *t;
  EM_PASS(em_tensor_new_strided(leaf->ndim, leaf->sizes, leaf->strides, grad->dtype, grad->device, &t));
  em_status st = em_call_copy_(t, grad, false);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}

// Adds *grad (owned by the engine) to the leaf's. Takes the tensor itself when nobody else can see its bytes.
static em_status add_to(em_tensor *leaf, em_tensor **grad) {
  em_autograd_meta *meta;
  EM_PASS(em_tensor_meta(leaf, &meta));
  if (meta->grad == NULL) {
    if (!em_grad_enabled() && em_priv_sole_owner(*grad) && fits_layout(*grad, leaf)) {
      meta->grad = *grad;
      *grad = NULL;
      return EM_OK;
    }
    return copy_for(*grad, leaf, &meta->grad);
  }
  if (!em_grad_enabled()) return em_call_add__Tensor(meta->grad, *grad, em_scalar_int(1));
  em_tensor *sum;
  EM_PASS(em_call_add_Tensor(meta->grad, *grad, em_scalar_int(1), &sum));
  em_tensor *old = meta->grad;
  meta->grad = sum;
  em_tensor_release(old);
  return EM_OK;
}

em_status em_priv_accumulate(em_node *n, em_tensor **grad) {
  em_tensor *leaf = ((accumulator *)n)->leaf;
  if (*grad == NULL || !em_tensor_requires_grad(leaf)) return EM_OK;
  if (!em_tensor_is_leaf(leaf))
    return em_fail(EM_ERR_RUNTIME, "leaf variable has been moved into the graph interior");
  size_t i = lock_of(leaf);
  lock_leaf(i);
  em_status st = add_to(leaf, grad);
  unlock_leaf(i);
  return st == EM_OK ? em_priv_run_accumulate_hooks(leaf) : st;
}

static em_status apply(em_node *n, em_tensor *const *grads, em_tensor **out) {
  (void)out;
  // called as a plain function: the caller keeps its reference, so this copies
  em_tensor *grad = em_tensor_retain(grads[0]);
  em_status st = em_priv_accumulate(n, &grad);
  em_tensor_release(grad);
  return st;
}
const em_node_class em_class_accumulate_grad = {
  .name = "torch::autograd::AccumulateGrad", .apply = apply,
  .size = sizeof(accumulator), .where = "src/autograd/accumulate.c"};

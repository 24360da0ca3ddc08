// compare.c: whole-tensor comparisons.
#include "gen_ops.h"

em_status n_equal(uint64_t ks, em_tensor *self, em_tensor *other, bool *out) {
  (void)ks;
  if (self->dtype != other->dtype)
    return em_fail(EM_ERR_RUNTIME,
                   "Expected object of data type %s but got data type %s for argument 'other' in call to equal",
                   em_dtype_name(self->dtype), em_dtype_name(other->dtype));
  *out = false;
  if (!em_tensor_same_sizes(self, other)) return EM_OK;
  em_status st = EM_OK;
  em_tensor *same = NULL, *all = NULL;
  em_scalar s;
  EM_TRY(em_call_eq_Tensor(self, other, &same));
  EM_TRY(em_call_all(same, &all));
  EM_TRY(em_tensor_item(all, &s));
  *out = s.i != 0;
fail:
  em_tensor_release(same);
  em_tensor_release(all);
  return st;
}

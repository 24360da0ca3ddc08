// pointwise_checks.c: errors that pointwise operators raise before anything is planned. Rows name them in `guard:`.
// Each returns at once in the usual case: they run before the short paths.
#include "../core/iterator.h"

static em_status check_alpha(int dtype, em_scalar alpha) {
  if (alpha.kind == EM_SCALAR_BOOL && dtype != EM_BOOL)
    return em_fail(EM_ERR_RUNTIME, "Boolean alpha only supported for Boolean results.");
  if (alpha.kind >= EM_SCALAR_DOUBLE && em_dtype_is_integral(dtype))
    return em_fail(EM_ERR_RUNTIME, "For integral input tensors, argument alpha must not be a floating point number.");
  if (alpha.kind == EM_SCALAR_COMPLEX && !em_dtype_is_complex(dtype))
    return em_fail(EM_ERR_RUNTIME, "For non-complex input tensors, argument alpha must not be a complex number.");
  return EM_OK;
}

em_status check_alpha_tensor(em_tensor *self, em_tensor *other, em_scalar alpha) {
  if (EM_LIKELY(alpha.kind == EM_SCALAR_INT)) return EM_OK;
  em_promote_state s;
  em_promote_init(&s);
  em_promote_add(&s, self);
  em_promote_add(&s, other);
  return check_alpha(em_promote_result(&s), alpha);
}

em_status check_alpha_scalar(em_tensor *self, em_scalar other, em_scalar alpha) {
  if (EM_LIKELY(alpha.kind == EM_SCALAR_INT)) return EM_OK;
  em_promote_state s;
  em_promote_init(&s);
  em_promote_add(&s, self);
  em_promote_add_scalar(&s, other);
  return check_alpha(em_promote_result(&s), alpha);
}

static em_status check_sub(bool a, bool b) {
  if (EM_LIKELY(!a && !b)) return EM_OK;
  if (a && b)
    return em_fail(EM_ERR_RUNTIME,
                   "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                   "`logical_xor()` operator instead.");
  return em_fail(EM_ERR_RUNTIME,
                 "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a "
                 "mask, use the `~` or `logical_not()` operator instead.");
}

em_status check_sub_tensor(em_tensor *self, em_tensor *other, em_scalar alpha) {
  EM_PASS(check_sub(self->dtype == EM_BOOL, other->dtype == EM_BOOL));
  return check_alpha_tensor(self, other, alpha);
}

em_status check_sub_scalar(em_tensor *self, em_scalar other, em_scalar alpha) {
  EM_PASS(check_sub(self->dtype == EM_BOOL, other.kind == EM_SCALAR_BOOL));
  return check_alpha_scalar(self, other, alpha);
}

em_status check_neg(em_tensor *self) {
  if (EM_LIKELY(self->dtype != EM_BOOL)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME,
                 "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
                 "use the `~` or `logical_not()` operator instead.");
}

em_status check_pow_scalar(em_tensor *self, em_scalar exponent) {
  if (EM_LIKELY(exponent.kind != EM_SCALAR_INT || !em_dtype_is_integral(self->dtype))) return EM_OK;
  if (exponent.i < 0) return em_fail(EM_ERR_RUNTIME, "Integers to negative integer powers are not allowed.");
  char element[16];  // the exponent becomes an element of self's dtype, and must fit
  return em_scalar_store(exponent, self->dtype, element);
}

// `message` is PyTorch's; NotImplementedError.
em_status check_real(em_tensor *self, const char *message) {
  return EM_LIKELY(!em_dtype_is_complex(self->dtype)) ? EM_OK : em_fail(EM_ERR_NOT_IMPLEMENTED, "%s", message);
}

em_status check_not_complex(em_tensor *self, const char *message) {
  return EM_LIKELY(!em_dtype_is_complex(self->dtype)) ? EM_OK : em_fail(EM_ERR_RUNTIME, "%s", message);
}

em_status check_not_complex2(em_tensor *self, em_tensor *other, const char *message) {
  EM_PASS(check_not_complex(self, message));
  return check_not_complex(other, message);
}

em_status check_sign(em_tensor *self) {
  return check_real(
      self, "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.");
}

static em_status check_bounds(em_tensor *self, bool given) {
  EM_PASS(check_real(self, "clamp is not supported for complex types"));
  return EM_LIKELY(given) ? EM_OK
                          : em_fail(EM_ERR_RUNTIME, "torch.clamp: At least one of 'min' or 'max' must not be None");
}

em_status check_clamp(em_tensor *self, em_scalar min, em_scalar max) {
  return check_bounds(self, em_scalar_given(min) || em_scalar_given(max));
}

em_status check_clamp_tensor(em_tensor *self, em_tensor *min, em_tensor *max) {
  return check_bounds(self, min != NULL || max != NULL);
}

em_status check_relu(em_tensor *self) {
  if (EM_UNLIKELY(self->dtype == EM_BOOL)) return em_fail(EM_ERR_RUNTIME, "Boolean inputs not supported for relu");
  return check_real(self, "clamp is not supported for complex types");
}

em_status check_hardtanh(em_tensor *self, em_scalar min_val, em_scalar max_val) {
  if (self->dtype == EM_U8 && (em_scalar_to_double(min_val) < 0 || em_scalar_to_double(max_val) < 0))
    return em_fail(EM_ERR_RUNTIME, "cannot do hardtanh on an unsigned type with negative limits");
  if (EM_UNLIKELY(self->dtype == EM_BOOL)) return em_fail(EM_ERR_RUNTIME, "Bool inputs not supported for hardtanh");
  return check_real(self, "clamp is not supported for complex types");
}

em_status check_where(em_tensor *condition) {
  if (EM_LIKELY(condition->dtype == EM_BOOL)) return EM_OK;
  if (condition->dtype == EM_U8)
    return em_warn("where received a uint8 condition tensor. This behavior is deprecated and will be removed in a "
                   "future version of "
                   "PyTorch. Use a boolean condition instead.");
  return em_fail(EM_ERR_RUNTIME, "where expected condition to be a boolean tensor, but got a tensor with dtype %s",
                 em_dtype_scalar_name(condition->dtype));
}

em_status check_where_out(em_tensor *self, em_tensor *other, em_tensor *out) {
  em_promote_state s;
  em_promote_init(&s);
  em_promote_add(&s, self);
  em_promote_add(&s, other);
  int dtype = em_promote_result(&s);
  if (EM_LIKELY(dtype == out->dtype)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "Expected out type to be %s but got %s", em_dtype_scalar_name(dtype),
                 em_dtype_scalar_name(out->dtype));
}

em_status check_addcdiv(em_tensor *self, em_tensor *tensor1, em_tensor *tensor2) {
  if (EM_LIKELY(!em_dtype_is_integral(tensor1->dtype) || !em_dtype_is_integral(tensor2->dtype))) return EM_OK;
  return em_fail(
      EM_ERR_RUNTIME,
      "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
      "division of "
      "tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / "
      "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The "
      "future "
      "addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes.");
}

static em_status same_dtype(const em_tensor *self, const em_tensor *t, const char *name) {
  if (EM_LIKELY(self->dtype == t->dtype)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "expected dtype %s for `%s` but got dtype %s", em_dtype_type_name(self->dtype), name,
                 em_dtype_type_name(t->dtype));
}

em_status check_lerp_scalar(em_tensor *self, em_tensor *end) { return same_dtype(self, end, "end"); }

em_status check_lerp_tensor(em_tensor *self, em_tensor *end, em_tensor *weight) {
  EM_PASS(same_dtype(self, end, "end"));
  return same_dtype(self, weight, "weight");
}

// device.h: where a tensor's bytes live. A two-byte value passed around by copy.
#ifndef EMBER_CORE_DEVICE_H
#define EMBER_CORE_DEVICE_H
#include "gen_keys.h"  // enum em_key, EM_KEYBIT(k), EM_NUM_KEYS, em_priv_key_names
#include "status.h"

static inline bool em_device_given(em_device d) { return d.type >= 0; }
static inline bool em_device_equal(em_device a, em_device b) { return a.type == b.type && a.index == b.index; }
static inline int em_device_key(em_device d) {
  static const uint8_t keys[EM_DEVICE_TYPES] = {EM_KEY_CPU, EM_KEY_CUDA, EM_KEY_OpenCL, EM_KEY_Meta};
  return (unsigned)d.type < EM_DEVICE_TYPES ? keys[(unsigned)d.type] : EM_KEY_CPU;  // em_device_check refuses the others
}
// Parses "cpu", "cuda:1", "meta". EM_ERR_RUNTIME with PyTorch's words on nonsense.
EM_PRIV em_status em_device_parse(const char *text, em_device *out);
// Writes "cpu" or "cuda:1" into buf (at least 24 bytes), returns it.
EM_PRIV const char *em_device_format(em_device d, char *buf);
// Whether a backend for this device is present in the process; an error that says how to get it if not.
EM_PRIV em_status em_device_check(em_device d);
#endif

// device.c: names of devices.
#include "device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The first EM_DEVICE_TYPES have a key. The others can be named and compared, as programs do that look for a device; tensors
// on them cannot be made: em_device_check refuses them.
static const char *const names[] = {"cpu", "cuda", "opencl", "meta", "mps", "xpu", "hpu", "mtia", "xla", "ipu", "mkldnn", "opengl",
                                    "ideep", "hip", "ve", "fpga", "maia", "lazy", "vulkan", "privateuseone"};
enum { NAMES = sizeof names / sizeof *names };

em_status em_device_parse(const char *text, em_device *out) {
  const char *colon = strchr(text, ':');
  size_t n = colon == NULL ? strlen(text) : (size_t)(colon - text);
  if (text[0] == 0) return em_fail(EM_ERR_RUNTIME, "Device string must not be empty");
  for (int i = 0; i < NAMES; i++) {
    if (strlen(names[i]) != n || strncmp(names[i], text, n) != 0) continue;
    *out = (em_device){(int8_t)i, -1};
    if (colon == NULL) return EM_OK;
    char *end;
    long index = strtol(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end != 0 || index > 127 || (colon[1] == '0' && colon[2] != 0))
      return em_fail(EM_ERR_RUNTIME, "Invalid device string: '%s'", text);
    out->index = (int8_t)index;
    return EM_OK;
  }
  for (size_t i = 0; i < n; i++)  // PyTorch's grammar: a word of letters, then an index
    if ((text[i] < 'a' || text[i] > 'z') && (text[i] < 'A' || text[i] > 'Z') && text[i] != '_')
      return em_fail(EM_ERR_RUNTIME, "Invalid device string: '%s'", text);
  return em_fail(EM_ERR_RUNTIME,
                 "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, "
                 "meta, hpu, mtia, privateuseone device type at start of device string: %.*s",
                 (int)n, text);
}
const char *em_device_format(em_device d, char *buf) {
  if (d.type < 0) return strcpy(buf, "none");
  if (d.index < 0) return strcpy(buf, names[(int)d.type]);
  snprintf(buf, 24, "%s:%d", names[(int)d.type], d.index);
  return buf;
}
em_status em_device_check(em_device d) {
  if (d.type < -1 || d.type >= NAMES) return em_fail(EM_ERR_VALUE, "no device type has the number %d", d.type);
  if (d.type == EM_DEVICE_CUDA) return em_fail(EM_ERR_RUNTIME, "Torch not compiled with CUDA enabled");
  if (d.type == EM_DEVICE_OPENCL || d.type >= EM_DEVICE_TYPES)
    return em_fail(EM_ERR_RUNTIME, "PyTorch is not linked with support for %s devices", names[(int)d.type]);
  if (d.index > 0 && d.type >= 0)
    return em_fail(EM_ERR_RUNTIME, "%s device index must be -1 or zero, got %d", names[(int)d.type], d.index);
  return EM_OK;
}

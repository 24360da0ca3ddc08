// device.c: names of devices.
#include "device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[EM_DEVICE_TYPES] = {"cpu", "cuda", "opencl", "meta"};

em_status em_device_parse(const char *text, em_device *out) {
  const char *colon = strchr(text, ':');
  size_t n = colon == NULL ? strlen(text) : (size_t)(colon - text);
  for (int i = 0; i < EM_DEVICE_TYPES; i++) {
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
  return em_fail(EM_ERR_RUNTIME, "Expected one of cpu, cuda, opencl, meta device type at start of device string: %.*s",
                 (int)n, text);
}
const char *em_device_format(em_device d, char *buf) {
  if (d.type < 0) return strcpy(buf, "none");
  if (d.index < 0) return strcpy(buf, names[(int)d.type]);
  snprintf(buf, 24, "%s:%d", names[(int)d.type], d.index);
  return buf;
}
em_status em_device_check(em_device d) {
  if (d.type < -1 || d.type >= EM_DEVICE_TYPES) return em_fail(EM_ERR_VALUE, "no device type has the number %d", d.type);
  if (d.type == EM_DEVICE_CUDA)
    return em_fail(EM_ERR_RUNTIME,
                   "Torch not compiled with CUDA enabled: this build of Ember has the devices cpu and meta");
  if (d.type == EM_DEVICE_OPENCL)
    return em_fail(EM_ERR_RUNTIME,
                   "Could not run on an OpenCL device: this build of Ember has the devices cpu and meta");
  if (d.index > 0 && d.type >= 0)
    return em_fail(EM_ERR_RUNTIME, "%s device index must be -1 or zero, got %d", names[(int)d.type], d.index);
  return EM_OK;
}

// The version that meson.build declares, so that it is written down once.
#include <ember/version.h>

const char *em_version(void) {
  return EM_VERSION;
}

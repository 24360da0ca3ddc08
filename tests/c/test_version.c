// em_version agrees with meson.build and has three numeric parts.
#include <ember/version.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  int major, minor, patch, end = 0;
  if (sscanf(em_version(), "%d.%d.%d%n", &major, &minor, &patch, &end) != 3 || em_version()[end] != '\0') {
    fprintf(stderr, "em_version() is not three numbers: %s\n", em_version());
    return 1;
  }
  if (major != EMBER_VERSION_MAJOR || minor != EMBER_VERSION_MINOR || patch != EMBER_VERSION_PATCH) {
    fprintf(stderr, "ember/version.h is not %s's\n", em_version());
    return 1;
  }
  return strcmp(em_version(), EM_VERSION) != 0;
}

/* ember/version.h: which libember this is. */
#ifndef EMBER_VERSION_H
#define EMBER_VERSION_H
#include "types.h"

#define EMBER_VERSION_MAJOR 0
#define EMBER_VERSION_MINOR 1
#define EMBER_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version as "major.minor.patch"; static storage, never freed. */
EM_API const char *em_version(void);

#ifdef __cplusplus
}
#endif

#endif

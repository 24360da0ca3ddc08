// storage_shared.h: storages whose bytes other processes see too. The bytes lie in a shared file: an anonymous one that
// travels as a file descriptor and vanishes with its last user, or a named one under /dev/shm that counts its users.
#ifndef EMBER_CORE_STORAGE_SHARED_H
#define EMBER_CORE_STORAGE_SHARED_H
#include "storage.h"

// Where a shared storage's bytes lie. Borrowed from the storage.
typedef struct em_shared_place {
  int fd;            // of the anonymous file; -1 if it is named, or if the descriptor has been given up
  const char *name;  // of the named file, or NULL
  size_t offset;     // of the storage's first byte in the file
} em_shared_place;

// New shared storage of n zero bytes: anonymous, or in a new file /dev/shm/NAME. Not resizable, like all here.
EM_PRIV em_status em_shared_new(size_t nbytes, const char *name, em_storage **out);
// The storage over bytes offset..offset+nbytes of an anonymous file: the living one if this process has it already (with
// `fresh` nobody looks: these bytes come for the first time). The whole file is mapped once. `fd` stays the caller's: a
// duplicate is kept for the storage to travel further, while less than half of the descriptors that the process may have
// are in use.
EM_PRIV em_status em_shared_open(int fd, size_t offset, size_t nbytes, bool fresh, em_storage **out);
// The storage over /dev/shm/NAME, taking over one count that em_shared_count() added for it.
EM_PRIV em_status em_shared_open_named(const char *name, size_t nbytes, em_storage **out);
// Moves the bytes of an ordinary storage into shared memory. Who points at the old bytes (a numpy array) keeps them.
EM_PRIV em_status em_shared_move(em_storage *s, const char *name);
// False if s is not shared.
EM_PRIV bool em_shared_find(const em_storage *s, em_shared_place *out);
// One more process will use the named file of s.
EM_PRIV void em_shared_count(em_storage *s);
// This process ends: its named files go unless others use them. Storages stay valid.
EM_PRIV void em_shared_leave(void);
// storage.c: the size of the block of s's header, which no longer says it itself.
size_t em_priv_shared_header(const em_storage *s);
#endif

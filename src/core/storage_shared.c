// storage_shared.c: storages over shared files. A mapping is one mmap of one file; a part is a storage's piece of it. Both
// are found again by what the kernel calls the file (device and inode), so that a tensor that arrives twice is one storage.
#include "storage_shared.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define NAMED_HEADER 64  // a named file begins with the count of its users
#define BUCKETS 256

typedef struct mapping {
  struct mapping *next;
  struct part *parts;
  dev_t dev;
  ino_t ino;
  int fd;
  char *base, *name;
  size_t length;
  pid_t pid;  // who counted itself as a user of the named file: not a forked child
} mapping;
typedef struct part {
  struct part *next;
  mapping *file;
  em_storage *storage;
  size_t offset, header;  // header: the size of the storage's header block
  void *old_data;         // bytes from before em_shared_move that somebody may still point at
  size_t old_capacity;
  void (*old_deleter)(void *, void *);
  void *old_context;
} part;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mapping *table[BUCKETS];
static void lock_table(void) { pthread_mutex_lock(&lock); }
static void unlock_table(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void watch_forks(void) {
  (void)pthread_atfork(lock_table, unlock_table, unlock_table);
}

static em_status fail_errno(const char *what, const char *name, size_t nbytes) {
  int e = errno;
  return em_fail(e == ENOMEM || e == ENOSPC ? EM_ERR_OOM : EM_ERR_RUNTIME,
                 "unable to %s shared memory object <%s> of %zu bytes: %s (%d)", what, name == NULL ? "anonymous" : name,
                 nbytes, strerror(e), e);
}
static mapping **bucket_of(dev_t dev, ino_t ino) { return &table[((size_t)dev * 31 + (size_t)ino) % BUCKETS]; }
static _Atomic uint32_t *users_of(mapping *m) { return (_Atomic uint32_t *)(void *)m->base; }

static void path_of(const char *name, char *out, size_t room) {
  snprintf(out, room, "/dev/shm/%s", name[0] == '/' ? name + 1 : name);
}
static bool good_name(const char *name) {
  const char *base = name[0] == '/' ? name + 1 : name;
  return base[0] != 0 && base[0] != '.' && strchr(base, '/') == NULL && strlen(base) < 200;
}

// This process no longer counts as a user of a named file; the last one removes the name.
static void mapping_leave(mapping *m) {
  if (m->name == NULL || m->pid != getpid()) return;
  m->pid = 0;
  if (atomic_fetch_sub(users_of(m), 1) != 1) return;
  char path[256];
  path_of(m->name, path, sizeof path);
  (void)unlink(path);
}
static void mapping_free(mapping *m) {
  if (m->base != NULL) {
    mapping_leave(m);
    munmap(m->base, m->length);
  }
  if (m->fd >= 0) close(m->fd);
  if (m->name != NULL) em_free(m->name, strlen(m->name) + 1);
  em_free(m, sizeof *m);
}

// A duplicate of fd to travel further with, or -1 when descriptors become scarce: then the bytes will travel instead.
static int keep(int fd) {
  struct rlimit limit;
  int mine = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (mine < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 || (rlim_t)mine < limit.rlim_cur / 2) return mine;
  close(mine);
  return -1;
}

// Under the lock: the mapping of the file behind fd, made if there is none yet.
static em_status mapping_get(int fd, const char *name, mapping **out) {
  em_status st = EM_OK;
  struct stat info;
  if (fstat(fd, &info) != 0) return fail_errno("stat", name, 0);
  mapping **bucket = bucket_of(info.st_dev, info.st_ino), *m = NULL;
  for (m = *bucket; m != NULL; m = m->next)
    if (m->dev == info.st_dev && m->ino == info.st_ino) {
      *out = m;
      return EM_OK;
    }
  m = em_alloc_zeroed(sizeof *m);
  if (m == NULL) return EM_NOMEM(sizeof *m);
  m->fd = -1;
  m->dev = info.st_dev;
  m->ino = info.st_ino;
  m->length = (size_t)info.st_size;
  m->pid = getpid();
  if (name != NULL) {
    m->name = em_alloc(strlen(name) + 1);
    if (m->name == NULL) {
      st = EM_NOMEM(strlen(name) + 1);
      goto fail;
    }
    strcpy(m->name, name);
  }
  void *base = mmap(NULL, m->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    st = fail_errno("mmap", name, m->length);
    goto fail;
  }
  m->base = base;
  if (name == NULL) m->fd = keep(fd);
  m->next = *bucket;
  *bucket = m;
  *out = m;
  return EM_OK;
fail:
  mapping_free(m);
  return st;
}
static void mapping_drop(mapping *m) {  // under the lock, when it may have lost its last part
  if (m->parts != NULL) return;
  for (mapping **at = bucket_of(m->dev, m->ino); *at != NULL; at = &(*at)->next)
    if (*at == m) {
      *at = m->next;
      break;
    }
  mapping_free(m);
}

// The storage's deleter.
static void part_free(void *context, void *data) {
  (void)data;
  part *p = context;
  lock_table();
  for (part **at = &p->file->parts; *at != NULL; at = &(*at)->next)
    if (*at == p) {
      *at = p->next;
      break;
    }
  mapping_drop(p->file);
  unlock_table();
  if (p->old_deleter != NULL) p->old_deleter(p->old_context, p->old_data);
  else if (p->old_data != NULL && p->old_capacity > 0) em_bytes_free(p->old_data, p->old_capacity);
  em_free(p, sizeof *p);
}
static void part_link(part *p, mapping *m, em_storage *s, size_t offset) {  // under the lock
  p->file = m;
  p->storage = s;
  p->offset = offset;
  p->next = m->parts;
  m->parts = p;
  s->flags |= EM_STORAGE_SHARED;
}

// Under the lock: the storage over a piece of m; on failure m may go.
static em_status part_get(mapping *m, size_t offset, size_t nbytes, bool fresh, em_storage **out) {
  em_status st = EM_OK;
  part *p = NULL;
  if (offset > m->length || nbytes > m->length - offset) {
    st = em_fail(EM_ERR_RUNTIME, "shared memory object of %zu bytes cannot hold bytes %zu to %zu", m->length, offset,
                 offset + nbytes);
    goto fail;
  }
  for (p = fresh ? NULL : m->parts; p != NULL; p = p->next)
    if (p->offset == offset && p->storage->nbytes == nbytes && em_ref_inc_unless_zero(&p->storage->rc)) {
      *out = p->storage;
      return EM_OK;
    }
  p = em_alloc_zeroed(sizeof *p);
  if (p == NULL) {
    st = EM_NOMEM(sizeof *p);
    goto fail;
  }
  EM_TRY(em_storage_wrap(m->base + offset, nbytes, (em_device){EM_DEVICE_CPU, -1}, part_free, p, out));
  p->header = sizeof **out;
  part_link(p, m, *out, offset);
  return EM_OK;
fail:
  if (p != NULL) em_free(p, sizeof *p);
  mapping_drop(m);
  return st;
}

// A file of n bytes, if the machine can have them at all. An anonymous file is then like other memory; /dev/shm has a limit
// of its own, beyond which a touch would be a SIGBUS: those bytes are taken at once.
static em_status file_new(size_t nbytes, const char *name, int *fd) {
  char path[256];
  struct sysinfo machine;
  if (sysinfo(&machine) != 0 || nbytes / machine.mem_unit > machine.totalram + machine.totalswap) {
    errno = ENOMEM;
    return fail_errno("allocate", name, nbytes);
  }
  if (name == NULL) {
    *fd = memfd_create("ember", MFD_CLOEXEC);
  } else {
    if (!good_name(name)) return em_fail(EM_ERR_VALUE, "'%s' is not a name for shared memory", name);
    path_of(name, path, sizeof path);
    *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  }
  if (*fd < 0) return fail_errno("open", name, nbytes);
  int failed = ftruncate(*fd, (off_t)nbytes) != 0 ? errno : name == NULL ? 0 : posix_fallocate(*fd, 0, (off_t)nbytes);
  if (failed == 0) return EM_OK;
  close(*fd);
  if (name != NULL) (void)unlink(path);
  errno = failed;
  return fail_errno("allocate", name, nbytes);
}
static em_status new_mapping(size_t nbytes, const char *name, mapping **out) {  // under the lock
  int fd = -1;
  size_t room = nbytes > SIZE_MAX - NAMED_HEADER ? nbytes : nbytes + (name == NULL ? 0 : NAMED_HEADER);
  EM_PASS(file_new(room == 0 ? 1 : room, name, &fd));
  em_status st = mapping_get(fd, name, out);
  if (st == EM_OK && name == NULL && (*out)->fd < 0) (*out)->fd = fd;  // who makes one means to send it
  else close(fd);
  if (st == EM_OK && name != NULL) atomic_store(users_of(*out), 1);
  if (st != EM_OK && name != NULL) {
    char path[256];
    path_of(name, path, sizeof path);
    (void)unlink(path);
  }
  return st;
}

em_status em_shared_new(size_t nbytes, const char *name, em_storage **out) {
  mapping *m;
  lock_table();
  em_status st = new_mapping(nbytes, name, &m);
  if (st == EM_OK) st = part_get(m, name == NULL ? 0 : NAMED_HEADER, nbytes, true, out);
  unlock_table();
  return st;
}

em_status em_shared_open(int fd, size_t offset, size_t nbytes, bool fresh, em_storage **out) {
  mapping *m;
  lock_table();
  em_status st = mapping_get(fd, NULL, &m);
  if (st == EM_OK) st = part_get(m, offset, nbytes, fresh, out);
  unlock_table();
  return st;
}

em_status em_shared_open_named(const char *name, size_t nbytes, em_storage **out) {
  char path[256];
  mapping *m = NULL;
  if (!good_name(name)) return em_fail(EM_ERR_VALUE, "'%s' is not a name for shared memory", name);
  path_of(name, path, sizeof path);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return fail_errno("open", name, nbytes);
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size < NAMED_HEADER) {
    close(fd);
    return em_fail(EM_ERR_RUNTIME, "shared memory object <%s> was not made by Ember", name);
  }
  lock_table();
  em_status st = mapping_get(fd, name, &m);
  // The process counts once however often the file arrives: a further count goes back.
  if (st == EM_OK && m->parts != NULL && m->pid == getpid()) atomic_fetch_sub(users_of(m), 1);
  if (st == EM_OK) st = part_get(m, NAMED_HEADER, nbytes, false, out);
  unlock_table();
  close(fd);
  return st;
}

em_status em_shared_move(em_storage *s, const char *name) {
  mapping *m;
  if (s->flags & EM_STORAGE_SHARED) return EM_OK;
  if (s->device.type != EM_DEVICE_CPU)
    return em_fail(EM_ERR_RUNTIME, "only CPU storages can be moved to shared memory");
  part *p = em_alloc_zeroed(sizeof *p);
  if (p == NULL) return EM_NOMEM(sizeof *p);
  size_t offset = name == NULL ? 0 : NAMED_HEADER;
  lock_table();
  em_status st = new_mapping(s->nbytes, name, &m);
  if (st == EM_OK) {
    if (s->nbytes > 0) memcpy(m->base + offset, s->data, s->nbytes);
    // What held the bytes until now: the header's own block, a block that the storage grew into, or somebody else's.
    bool is_inline = s->flags & EM_STORAGE_INLINE, outgrown = s->flags & EM_STORAGE_OUTGROWN;
    p->header = is_inline ? s->capacity : outgrown ? (size_t)(uintptr_t)s->context : sizeof *s;
    if (!is_inline) {
      p->old_data = s->data;
      p->old_capacity = s->capacity;
      p->old_deleter = s->deleter;
      p->old_context = outgrown ? NULL : s->context;
    }
    s->flags &= (uint8_t) ~(EM_STORAGE_INLINE | EM_STORAGE_OUTGROWN);
    part_link(p, m, s, offset);
    s->data = m->base + offset;
    s->capacity = s->nbytes;
    s->deleter = part_free;
    s->context = p;
    if (s->resizable && p->old_deleter == NULL && p->old_data != NULL) {  // nobody points at the old bytes
      em_bytes_free(p->old_data, p->old_capacity);
      p->old_data = NULL;
    }
    s->resizable = 0;
    p = NULL;
  }
  unlock_table();
  if (p != NULL) em_free(p, sizeof *p);
  return st;
}

bool em_shared_find(const em_storage *s, em_shared_place *out) {
  if (!(s->flags & EM_STORAGE_SHARED)) return false;
  const part *p = s->context;
  *out = (em_shared_place){.fd = p->file->fd, .name = p->file->name, .offset = p->offset};
  return true;
}
void em_shared_count(em_storage *s) {
  if (!(s->flags & EM_STORAGE_SHARED)) return;
  part *p = s->context;
  if (p->file->name != NULL) atomic_fetch_add(users_of(p->file), 1);
}
void em_shared_leave(void) {
  lock_table();
  for (int i = 0; i < BUCKETS; i++)
    for (mapping *m = table[i]; m != NULL; m = m->next) mapping_leave(m);
  unlock_table();
}
size_t em_priv_shared_header(const em_storage *s) { return ((const part *)s->context)->header; }

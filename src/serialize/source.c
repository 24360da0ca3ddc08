// source.c: bytes of files: read in pieces, mapped, or in memory; and a sink for writing.
#include "source.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static em_status source_new(const char *name, em_source **out) {
  em_source *s = em_alloc_zeroed(sizeof *s);
  if (s == NULL) return EM_NOMEM(sizeof *s);
  size_t n = strlen(name) + 1;
  if ((s->name = em_alloc(n)) == NULL) {
    em_free(s, sizeof *s);
    return EM_NOMEM(n);
  }
  memcpy(s->name, name, n);
  atomic_init(&s->rc, 1);
  s->fd = -1;
  em_priv_live(EM_KIND_OTHER, 1);
  *out = s;
  return EM_OK;
}

void em_source_free(em_source *s) {
  if (s->mapped && s->size > 0) munmap((void *)s->base, s->size);
  if (s->fd >= 0) close(s->fd);
  if (s->release != NULL) s->release(s->context);
  em_priv_live(EM_KIND_OTHER, -1);
  em_free(s->name, strlen(s->name) + 1);
  em_free(s, sizeof *s);
}

static em_status refuse(const char *path, int *error, int code) {
  *error = code;
  return em_fail(EM_ERR_RUNTIME, "%s: '%s'", strerror(code), path);
}
// Opens a file that has a size; leaves fd in *fd.
static em_status open_sized(const char *path, int flags, int *fd, uint64_t *size, int *error) {
  struct stat st;
  *error = 0;
  if ((*fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666)) < 0) return refuse(path, error, errno);
  int code = fstat(*fd, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : S_ISREG(st.st_mode) ? 0 : ESPIPE;
  if (code != 0) {
    close(*fd);
    *fd = -1;
    return refuse(path, error, code);
  }
  *size = (uint64_t)st.st_size;
  return EM_OK;
}

em_status em_source_open(const char *path, em_source **out, int *error) {
  int fd;
  uint64_t size;
  em_source *s = NULL;
  EM_PASS(open_sized(path, O_RDONLY, &fd, &size, error));
  em_status st = source_new(path, &s);
  if (st != EM_OK) {
    close(fd);
    return st;
  }
  s->fd = fd;
  s->size = size;
  *out = s;
  return EM_OK;
}

em_status em_source_open_fd(int fd, uint64_t start, const char *name, em_source **out) {
  struct stat info;
  em_source *s = NULL;
  if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
    return em_fail(EM_ERR_RUNTIME, "%s: not a regular file", name);
  EM_PASS(source_new(name, &s));
  if ((s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0) {
    int code = errno;
    em_source_release(s);
    return em_fail(EM_ERR_RUNTIME, "%s: %s", name, strerror(code));
  }
  s->start = start;
  s->size = (uint64_t)info.st_size > start ? (uint64_t)info.st_size - start : 0;
  *out = s;
  return EM_OK;
}

// Takes fd.
static em_status map_fd(int fd, const char *path, bool shared, uint64_t size, em_source **out, int *error) {
  em_source *s = NULL;
  em_status st = source_new(path, &s);
  if (st != EM_OK) goto fail;
  s->base = (const uint8_t *)"";
  if (size > 0) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
      *error = errno;
      EM_FAIL(EM_ERR_RUNTIME, "unable to mmap %llu bytes from file <%s>: %s (%d)", (unsigned long long)size, path,
              strerror(*error), *error);
    }
    s->base = p;
    s->size = size;
    s->mapped = 1;
  }
  close(fd);
  *out = s;
  return EM_OK;
fail:
  close(fd);
  em_source_release(s);
  return st;
}

em_status em_source_map(const char *path, bool shared, em_source **out, int *error) {
  int fd;
  uint64_t size;
  EM_PASS(open_sized(path, shared ? O_RDWR : O_RDONLY, &fd, &size, error));
  return map_fd(fd, path, shared, size, out, error);
}

em_status em_source_map_bytes(const char *path, bool shared, uint64_t n, em_source **out) {
  int fd, error = 0;
  uint64_t size = 0;
  em_status st = open_sized(path, shared ? O_RDWR | O_CREAT : O_RDONLY, &fd, &size, &error);
  if (st != EM_OK)
    return em_fail(EM_ERR_RUNTIME, "unable to open file <%s> in %s mode: %s (%d)", path, shared ? "read-write" : "read-only",
                   strerror(error), error);
  if (n > size && !shared) {
    close(fd);
    return em_fail(EM_ERR_RUNTIME, "file <%s> size <%llu> is smaller than the required mapping size <%llu>", path,
                   (unsigned long long)size, (unsigned long long)n);
  }
  if (n > size && ftruncate(fd, (off_t)n) < 0) {
    error = errno;
    close(fd);
    return em_fail(EM_ERR_RUNTIME, "unable to stretch file <%s> to the right size: %s (%d)", path, strerror(error), error);
  }
  return map_fd(fd, path, shared, n, out, &error);
}

em_status em_source_memory(const void *p, size_t n, const char *name, void (*release)(void *), void *context,
                           em_source **out) {
  em_source *s = NULL;
  EM_PASS(source_new(name, &s));
  s->base = n == 0 ? (const uint8_t *)"" : p;
  s->size = n;
  s->release = release;
  s->context = context;
  *out = s;
  return EM_OK;
}

em_status em_source_read(em_source *s, uint64_t offset, void *p, size_t n) {
  if (!em_source_has(s, offset, n))
    return em_fail(EM_ERR_RUNTIME, "%s is truncated: %zu bytes are needed at byte %llu, but it has %llu bytes",
                   s->name, n, (unsigned long long)offset, (unsigned long long)s->size);
  if (s->base != NULL) {
    if (n > 0) memcpy(p, s->base + offset, n);
    return EM_OK;
  }
  for (size_t done = 0; done < n;) {
    size_t piece = n - done < (1u << 30) ? n - done : 1u << 30;
    ssize_t r = pread(s->fd, (char *)p + done, piece, (off_t)(s->start + offset + done));
    if (r < 0 && errno == EINTR) continue;
    if (r < 0) return em_fail(EM_ERR_RUNTIME, "%s: %s", s->name, strerror(errno));
    if (r == 0) return em_fail(EM_ERR_RUNTIME, "%s became shorter while it was read", s->name);
    done += (size_t)r;
  }
  return EM_OK;
}

em_status em_source_storage(em_source *s, uint64_t offset, uint64_t n, em_storage **out) {
  em_storage *made = NULL;
  if (!em_source_has(s, offset, n)) return em_source_read(s, offset, NULL, n);
  EM_PASS(em_storage_new(n, (em_device){EM_DEVICE_CPU, -1}, &made));
  em_status st = n == 0 ? EM_OK : em_source_read(s, offset, made->data, n);
  if (st != EM_OK) em_storage_release(made);
  else *out = made;
  return st;
}

static void drop_window(void *context, void *data) { em_source_release(context); }
em_status em_source_window(em_source *s, uint64_t offset, uint64_t n, em_storage **out) {
  if (!em_source_has(s, offset, n)) return em_source_read(s, offset, NULL, n);
  if (s->base == NULL) return em_source_storage(s, offset, n, out);
  EM_PASS(em_storage_wrap(n == 0 ? NULL : (void *)(s->base + offset), n, (em_device){EM_DEVICE_CPU, -1}, drop_window,
                          s, out));
  em_source_retain(s);
  return EM_OK;
}

const char *em_source_guess(em_source *s) {
  static const struct {
    const char *start, *text;
  } known[] = {
      {"version https://git-lfs", "it is a Git LFS pointer, not the file itself: run `git lfs pull`"},
      {"<!DOCTYPE", "it is a web page: the download got an error page instead of the file"},
      {"<!doctype", "it is a web page: the download got an error page instead of the file"},
      {"<html", "it is a web page: the download got an error page instead of the file"},
      {"<?xml", "it is an XML document: the download got an error message instead of the file"},
      {"{\"error", "it is an error message of a server"},
      {"\x1f\x8b", "it is gzip-compressed: decompress it first"},
      {"BZh", "it is bzip2-compressed: decompress it first"},
      {"\xfd" "7zXZ", "it is xz-compressed: decompress it first"},
      {"\x89HDF", "it is an HDF5 file (Keras?)"},
      {"\x93NUMPY", "it is a numpy .npy file: use ember.io.load_npy"},
      {"GGUF", "it is a GGUF file"},
      {"\x7f" "ELF", "it is a program"},
      {"PK\x03\x04", "it is a zip archive"},
  };
  uint8_t head[32] = {0};
  size_t n = s->size < sizeof head ? (size_t)s->size : sizeof head;
  if (n == 0) return "it is empty: was the download or the save interrupted?";
  if (em_source_read(s, 0, head, n) != EM_OK) return NULL;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (n >= strlen(known[i].start) && memcmp(head, known[i].start, strlen(known[i].start)) == 0) return known[i].text;
  if (n > 9 && head[8] == '{') return "it looks like a safetensors file: use ember.safetensors.load_file";
  for (size_t i = 0; i < n; i++)
    if (head[i] != 0) return NULL;
  return "it begins with zeros: was the disk full, or the copy interrupted?";
}

em_status em_sink_write(em_sink *k, const void *p, size_t n) {
  EM_PASS(n == 0 ? EM_OK : k->write(k, p, n));
  k->written += n;
  return EM_OK;
}
static em_status write_fd(em_sink *k, const void *p, size_t n) {
  for (size_t done = 0; done < n;) {
    size_t piece = n - done < (1u << 30) ? n - done : 1u << 30;
    ssize_t r = write(k->fd, (const char *)p + done, piece);
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) return em_fail(EM_ERR_RUNTIME, "writing failed at byte %llu: %s",
                               (unsigned long long)(k->written + done), strerror(errno));
    done += (size_t)r;
  }
  return EM_OK;
}
em_status em_sink_open(const char *path, em_sink *k, int *error) {
  *error = 0;
  *k = (em_sink){.write = write_fd};
  k->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  return k->fd < 0 ? refuse(path, error, errno) : EM_OK;
}
em_status em_sink_close(em_sink *k) {
  int fd = k->fd;
  k->fd = -1;
  return fd >= 0 && close(fd) < 0 ? em_fail(EM_ERR_RUNTIME, "writing failed: %s", strerror(errno)) : EM_OK;
}

// ---------------------------------------------------------------- blocks
typedef struct block { size_t n, capacity; } block;  // before the bytes; 16 bytes, so that they stay aligned
void *em_block_alloc(size_t n) {
  size_t total = n + sizeof(block), capacity = total;
  if (total < n) return NULL;
  block *b = total <= EM_SMALL_MAX ? em_alloc(total) : em_bytes_alloc(total, &capacity);
  if (b == NULL) return NULL;
  *b = (block){n, capacity};
  return b + 1;
}
void *em_block_zeroed(size_t n) {
  void *p = em_block_alloc(n);
  if (p != NULL) memset(p, 0, n);
  return p;
}
void em_block_free(void *p) {
  if (p == NULL) return;
  block *b = (block *)p - 1;
  if (b->n + sizeof *b <= EM_SMALL_MAX) em_free(b, b->n + sizeof *b);
  else em_bytes_free(b, b->capacity);
}
void *em_block_resize(void *p, size_t n) {
  void *q = em_block_alloc(n);
  if (p == NULL || q == NULL) return q;
  size_t old = ((block *)p - 1)->n;
  memcpy(q, p, old < n ? old : n);
  em_block_free(p);
  return q;
}
char *em_block_text(const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = em_block_alloc(n);
  return copy == NULL ? NULL : memcpy(copy, text, n);
}

/* fuzz_files.c: damaged files through every reader of src/serialize.
 *
 *   make fuzz-files                              clang's libFuzzer, with sanitizers, until stopped
 *   build/tests/fuzz/fuzz_files --seconds 20 tests/data    files of that folder, changed at random: any compiler
 *   build/tests/fuzz/fuzz_files FILE             one file as it is (to see a finding again)
 *
 * A reader may refuse, in words; it may not crash, hang, leak, or ask for much more memory than the file is large. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/alloc.h"
#include "serialize/checkpoint.h"
#include "serialize/npy.h"
#include "serialize/safetensors.h"
#include "serialize/zip.h"

static volatile uint64_t sum;  // of all bytes that readers hand out: each is touched

static void touch(const em_tensor *t) {
  const uint8_t *p = t->storage->data;
  for (size_t i = 0; p != NULL && i < t->storage->nbytes; i += i < 4096 ? 1 : 4096) sum += p[i];
}
static void touch_all(const em_document *d) {
  for (const em_file_value *v = d->all; v != NULL; v = v->next) {
    if (v->kind == EM_FILE_TENSOR && v->tensor != NULL) touch(v->tensor);
    if (v->kind == EM_FILE_TEXT) sum += strlen(v->text);
    if (v->kind == EM_FILE_DICT) (void)em_file_find(v, "weight");
  }
}
static void refused(em_status st) {
  if (st == EM_OK || strlen(em_error_message()) >= 8) return;
  fprintf(stderr, "a refusal without words: %s\n", em_error_message());
  abort();
}

static void read_as(const uint8_t *p, size_t n, em_status (*reader)(em_source *)) {
  em_source *s = NULL;
  if (em_source_memory(p, n, "fuzzed", NULL, NULL, &s) != EM_OK) return;
  refused(reader(s));
  em_source_release(s);
}
static em_status as_document(em_source *s) {
  em_document *d = NULL;
  em_status st = em_document_read(s, &d);
  if (st == EM_OK) touch_all(d);
  em_document_close(st == EM_OK ? d : NULL);
  return st;
}
static em_status as_mapped(em_source *s) {
  s->mapped = 1;  /* tensors in place */
  em_status st = as_document(s);
  s->mapped = 0;
  return st;
}
static em_status as_npy(em_source *s) {
  em_tensor *t = NULL;
  em_status st = em_npy_read(s, false, &t);
  if (st == EM_OK) touch(t), em_tensor_release(t);
  return st;
}
static em_status as_zip(em_source *s) {
  em_zip *z = NULL;
  em_status st = em_zip_open(s, &z);
  for (size_t i = 0; st == EM_OK && i < z->count; i++) {
    em_storage *bytes = NULL;
    if (em_zip_storage(z, z->entries + i, &bytes) == EM_OK) em_storage_release(bytes);
    if (em_zip_find(z, z->entries[i].name, z->entries[i].name_size) == NULL) abort();
  }
  em_zip_close(st == EM_OK ? z : NULL);
  return st;
}

/* A changed pickle would never pass the archive's check sum: pack it into an archive of its own. */
typedef struct bytes { uint8_t *p; size_t n, room; } bytes;
static em_status to_memory(em_sink *k, const void *p, size_t n) {
  bytes *b = k->context;
  if (b->n + n > b->room) b->p = realloc(b->p, b->room = (b->n + n) * 2);
  if (b->p == NULL) abort();
  memcpy(b->p + b->n, p, n);
  b->n += n;
  return EM_OK;
}
static void packed(const uint8_t *p, size_t n) {
  bytes b = {0};
  em_sink k = {.write = to_memory, .context = &b};
  em_zip_writer w;
  uint8_t data[128];
  char name[16];
  memset(data, 1, sizeof data);
  em_zip_writer_init(&w, &k, 64, true);
  em_status st = em_zip_write(&w, "a/data.pkl", 10, p, n);
  for (int i = 0; st == EM_OK && i < 12; i++)
    st = em_zip_write(&w, name, (size_t)snprintf(name, sizeof name, "a/data/%d", i), data, sizeof data);
  if (st == EM_OK) st = em_zip_finish(&w);
  if (st != EM_OK) abort();
  read_as(b.p, b.n, as_document);
  em_zip_writer_clear(&w);
  free(b.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
  read_as(p, n, as_document);
  if (n > 4 && memcmp(p, "PK\3\4", 4) == 0) read_as(p, n, as_zip), read_as(p, n, as_mapped);
  if (n > 9 && p[8] == '{') read_as(p, n, as_mapped);
  if (n > 6 && memcmp(p, "\x93NUMPY", 6) == 0) read_as(p, n, as_npy);
  if (n > 1 && p[0] == 0x80) packed(p, n);
  return 0;
}

#ifndef EM_LIBFUZZER
typedef struct file { uint8_t *p; size_t n; char name[300]; } file;
static file files[4096];
static size_t nfiles;
static uint64_t state;
static uint64_t rnd(uint64_t below) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return below == 0 ? 0 : state % below;
}

static void add(const uint8_t *p, size_t n, const char *name) {
  if (nfiles == sizeof files / sizeof *files) return;
  file *f = &files[nfiles++];
  f->p = malloc(n + 1);
  if (f->p == NULL) abort();
  memcpy(f->p, p, n);
  f->n = n;
  (void)snprintf(f->name, sizeof f->name, "%s", name);
}
static void add_file(const char *path) {
  em_source *s = NULL;
  em_zip *z = NULL;
  int error;
  if (em_source_open(path, &s, &error) != EM_OK) return;
  uint8_t *p = malloc(s->size + 1);
  if (p == NULL || em_source_read(s, 0, p, s->size) != EM_OK) abort();
  add(p, s->size, path);
  if (em_zip_open(s, &z) == EM_OK) {  /* the pickle by itself */
    for (size_t i = 0; i < z->count; i++) {
      const em_zip_entry *e = z->entries + i;
      uint8_t *q = malloc(e->size + 1);
      if (q != NULL && e->name_size > 8 && memcmp(e->name + e->name_size - 8, "data.pkl", 8) == 0 && em_zip_read(z, e, q) == EM_OK)
        add(q, e->size, path);
      free(q);
    }
    em_zip_close(z);
  }
  free(p);
  em_source_release(s);
}

/* One change of *n bytes at p, of which there is room for twice as many and 64. */
static void change(uint8_t *p, size_t *n) {
  static const uint64_t odd[] = {0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
                                 0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff};
  static const char ops[] = "(.012FIJKLMNQRSTUVXabcd}eghijl]opqrst)uGBC\x80\x81\x85\x86\x87\x88\x8a\x8c\x8f\x90\x91\x93\x94\x95";
  size_t at = rnd(*n), len = 1 + rnd(rnd(4) == 0 ? 64 : 8);
  if (*n == 0) return;
  if (len > *n - at) len = *n - at;
  switch (rnd(9)) {
    case 0: p[at] ^= (uint8_t)(1u << rnd(8)); break;
    case 1: p[at] = (uint8_t)rnd(256); break;
    case 2: p[at] = (uint8_t)ops[rnd(sizeof ops - 1)]; break;
    case 3: em_put_le(p + at, odd[rnd(sizeof odd / sizeof *odd)], (int)(len > 8 ? 8 : len)); break;
    case 4: *n = at; break;
    case 5: memmove(p + at, p + at + len, *n - at - len), *n -= len; break;
    case 6:  /* a piece once more */
      memmove(p + at + len, p + at, *n - at), *n += len;
      break;
    case 7: {  /* a piece of another file */
      const file *f = &files[rnd(nfiles)];
      size_t from = rnd(f->n), m = f->n - from < len ? f->n - from : len;
      memcpy(p + at, f->p + from, m);
      break;
    }
    default: {  /* digits of a header */
      for (size_t i = at; i < *n; i++)
        if (p[i] >= '0' && p[i] <= '9') {
          p[i] = (uint8_t)('0' + rnd(10));
          break;
        }
    }
  }
}

static const char *finding = "fuzz-finding.bin";
static int fuzz(double seconds, uint64_t seed) {
  uint64_t count = 0;
  time_t end = time(NULL) + (time_t)seconds;
  int64_t live = em_alloc_live(EM_KIND_STORAGE) + em_alloc_live(EM_KIND_TENSOR) + em_alloc_live(EM_KIND_OTHER);
  for (; time(NULL) < end; count++) {
    state = (seed + count) * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < 8; i++) (void)rnd(2);
    const file *f = &files[rnd(nfiles)];
    size_t n = f->n;
    uint8_t *p = malloc(n * 2 + 1024);
    if (p == NULL) return 1;
    memcpy(p, f->p, n);
    for (uint64_t i = 1 + rnd(6); i > 0; i--)
      if (n < f->n * 2) change(p, &n);
    uint8_t *exact = malloc(n + (n == 0));  /* sanitizers see every byte beyond */
    if (exact == NULL) return 1;
    memcpy(exact, p, n);
    free(p);
    FILE *out = getenv("FUZZ_KEEP") ? fopen(finding, "wb") : NULL;
    if (out != NULL) (void)fwrite(exact, 1, n, out), fclose(out);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    (void)LLVMFuzzerTestOneInput(exact, n);
    clock_gettime(CLOCK_MONOTONIC, &b);
    free(exact);
    if (b.tv_sec - a.tv_sec > 5) {
      printf("round %llu of seed %llu (%s) took %ld s\n", (unsigned long long)count, (unsigned long long)seed, f->name,
             b.tv_sec - a.tv_sec);
      return 1;
    }
    if (em_alloc_live(EM_KIND_STORAGE) + em_alloc_live(EM_KIND_TENSOR) + em_alloc_live(EM_KIND_OTHER) != live) {
      printf("round %llu of seed %llu (%s) leaks\n", (unsigned long long)count, (unsigned long long)seed, f->name);
      return 1;
    }
  }
  printf("%llu damaged files of %zu, none crashed a reader\n", (unsigned long long)count, nfiles);
  return count == 0;
}

int main(int argc, char **argv) {
  double seconds = 0;
  uint64_t seed = 1;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) seconds = atof(argv[++i]);
    else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) seed = strtoull(argv[++i], NULL, 10);
    else {
      DIR *d = opendir(argv[i]);
      struct dirent *e;
      char path[600];
      if (d == NULL) add_file(argv[i]);
      while (d != NULL && (e = readdir(d)) != NULL) {
        (void)snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
        if (e->d_name[0] != '.') add_file(path);
      }
      if (d != NULL) closedir(d);
    }
  }
  if (nfiles == 0) {
    printf("usage: fuzz_files [--seconds N] [--seed N] FILE-OR-FOLDER...\n");
    return 2;
  }
  for (size_t i = 0; i < nfiles; i++) (void)LLVMFuzzerTestOneInput(files[i].p, files[i].n);
  int status = seconds > 0 ? fuzz(seconds, seed) : 0;
  for (size_t i = 0; i < nfiles; i++) free(files[i].p);
  return status;
}
#endif

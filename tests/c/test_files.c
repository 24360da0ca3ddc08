// test_files.c: checkpoints and safetensors files without Python: PyTorch's own are read, written ones come back.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "check.h"
#include "serialize/checkpoint.h"
#include "serialize/npy.h"
#include "serialize/safetensors.h"

static em_document *open_data(const char *name, bool map) {
  char path[1024];
  em_document *d = NULL;
  (void)snprintf(path, sizeof path, "%s/%s", EM_TEST_DATA, name);
  em_status st = em_document_open(path, map, &d);
  if (st != EM_OK) printf("%s: %s\n", name, em_error_message());
  CHECK(st == EM_OK);
  return d;
}
static float at(const em_tensor *t, int64_t i) { return ((const float *)em_tensor_data(t))[i]; }

static void reads_state_dicts(bool map) {
  em_document *d = open_data("state_dict.pt", map);
  const em_file_value *w = em_file_find(d->root, "0.weight"), *b = em_file_find(d->root, "2.bias");
  CHECK(d->root->kind == EM_FILE_DICT && d->root->count == 4);
  CHECK(w != NULL && w->kind == EM_FILE_TENSOR && w->tensor->ndim == 2 && w->tensor->sizes[0] == 3 && w->tensor->sizes[1] == 2);
  CHECK(w->tensor->dtype == EM_F32 && at(w->tensor, 0) == -1.0f && at(w->tensor, 5) == -0.375f);
  CHECK(b != NULL && at(b->tensor, 0) == -1.0f && em_file_find(d->root, "missing") == NULL);
  em_document_close(d);
}
static void keeps_views(const char *name) {
  em_document *d = open_data(name, false);
  em_tensor *base = em_file_find(d->root, "base")->tensor, *t = em_file_find(d->root, "transposed")->tensor;
  em_tensor *x = em_file_find(d->root, "expanded")->tensor;
  CHECK(base->storage == t->storage && t->sizes[0] == 4 && t->strides[0] == 1 && t->strides[1] == 12);
  CHECK(x->strides[0] == 0 && x->sizes[0] == 3 && at(x, 3) == 3.0f);
  em_document_close(d);
}
static void knows_parameters(void) {
  em_document *d = open_data("grads.pt", false);
  CHECK(d->root->kind == EM_FILE_LIST && d->root->count == 5);
  CHECK(d->root->items[0]->requires_grad && d->root->items[1]->requires_grad && !d->root->items[2]->requires_grad);
  em_document_close(d);
}
static void turns_bytes(void) {
  em_document *d = open_data("big_endian.pt", false);
  em_tensor *t = em_file_find(d->root, "int64")->tensor;
  CHECK(((const int64_t *)em_tensor_data(t))[2] == 3);
  CHECK(at(em_file_find(d->root, "float32")->tensor, 1) == 2.0f);
  em_document_close(d);
}
static void refuses(const char *name, const char *words) {
  char path[1024];
  em_document *d = NULL;
  (void)snprintf(path, sizeof path, "%s/%s", EM_TEST_DATA, name);
  CHECK(em_document_open(path, false, &d) != EM_OK);
  if (strstr(em_error_message(), words) == NULL) printf("%s: %s\n", name, em_error_message());
  CHECK(strstr(em_error_message(), words) != NULL);
}

static void writes_and_reads(void) {
  char path[] = "/tmp/ember-test-files-XXXXXX";
  int fd = mkstemp(path);
  int64_t sizes[2] = {2, 3}, strides[2] = {1, 2}, four = 4, one = 1;
  em_tensor *a = NULL, *b = NULL, *c = NULL;
  em_document *d = NULL;
  CHECK(fd >= 0);
  (void)close(fd);
  CHECK(em_tensor_new(2, sizes, EM_F32, (em_device){EM_DEVICE_CPU, -1}, &a) == EM_OK);
  for (int i = 0; i < 6; i++) ((float *)em_tensor_data(a))[i] = (float)i;
  CHECK(em_tensor_new_window(a->storage, 2, sizes, strides, 0, EM_F32, &b) == EM_OK);
  CHECK(em_tensor_new_window(a->storage, 1, &four, &one, 2, EM_F32, &c) == EM_OK);
  const char *names[] = {"a", "b", "c"};
  em_tensor *tensors[] = {a, b, c};
  CHECK(em_checkpoint_save(path, names, tensors, 3) == EM_OK);
  for (int map = 0; map < 2; map++) {
    CHECK(em_document_open(path, map != 0, &d) == EM_OK);
    em_tensor *x = em_file_find(d->root, "a")->tensor, *y = em_file_find(d->root, "b")->tensor, *z = em_file_find(d->root, "c")->tensor;
    CHECK(x->storage == y->storage && y->strides[1] == 2 && z->offset == 2 && at(z, 0) == 2.0f && at(x, 5) == 5.0f);
    ((float *)em_tensor_data(x))[2] = 9.0f;  // mapped: this process's copy of the page
    CHECK(at(z, 0) == 9.0f);
    em_document_close(d);
  }
  em_sink k;
  int error;
  em_safetensors_pair meta = {(char *)"by", (char *)"\"me\"\n"};
  CHECK(em_sink_open(path, &k, &error) == EM_OK);
  CHECK(em_safetensors_write(&k, names, tensors, 1, &meta, 1, true) == EM_OK && em_sink_close(&k) == EM_OK);
  CHECK(em_document_open(path, true, &d) == EM_OK);
  CHECK(at(em_file_find(d->root, "a")->tensor, 4) == 4.0f);
  em_document_close(d);
  CHECK(em_safetensors_write(&k, names + 1, tensors + 1, 1, NULL, 0, false) == EM_ERR_VALUE);  // not contiguous
  em_source *s = NULL;
  CHECK(em_sink_open(path, &k, &error) == EM_OK && em_npy_write(&k, c) == EM_OK && em_sink_close(&k) == EM_OK);
  CHECK(em_source_map(path, false, &s, &error) == EM_OK);
  em_tensor_release(c);
  CHECK(em_npy_read(s, true, &c) == EM_OK && c->sizes[0] == 4 && at(c, 3) == 5.0f);
  em_source_release(s);
  em_tensor_release(a), em_tensor_release(b), em_tensor_release(c);
  (void)unlink(path);
}

// Each allocation fails once: an error, and nothing is left.
static void survives_failing_allocations(const char *name) {
  char path[1024];
  int64_t n = 1;
  em_status st = EM_ERR_OOM;
  (void)snprintf(path, sizeof path, "%s/%s", EM_TEST_DATA, name);
  for (; n < 5000 && st != EM_OK; n++) {
    em_document *d = NULL;
    int64_t live = em_alloc_live(EM_KIND_TENSOR) + em_alloc_live(EM_KIND_STORAGE) + em_alloc_live(EM_KIND_OTHER);
    (void)em_priv_fault_countdown(n);
    st = em_document_open(path, false, &d);
    (void)em_priv_fault_countdown(0);
    CHECK(st == EM_OK || st == EM_ERR_OOM);
    if (st == EM_OK) em_document_close(d);
    CHECK(em_alloc_live(EM_KIND_TENSOR) + em_alloc_live(EM_KIND_STORAGE) + em_alloc_live(EM_KIND_OTHER) == live);
  }
  CHECK(st == EM_OK && n > 10);
}

int main(void) {
  int64_t live = em_alloc_live(EM_KIND_TENSOR) + em_alloc_live(EM_KIND_STORAGE) + em_alloc_live(EM_KIND_OTHER);
  reads_state_dicts(false);
  reads_state_dicts(true);
  keeps_views("views.pt");
  keeps_views("views_stream.pt");
  keeps_views("views_protocol4.pt");
  keeps_views("views_deflated.pt");
  knows_parameters();
  turns_bytes();
  refuses("module.pt", "Unsupported global: GLOBAL torch.nn.modules.container.Sequential");
  refuses("lacks_uint16.pt", "torch.uint16");
  refuses("lacks.safetensors", "dtype U16, which Ember does not have");
  refuses("make_golden.py", "byte 0");
  refuses("nothing", "No such file");
  em_document *d = open_data("all.safetensors", true);
  CHECK(at(em_file_find(d->root, "scalar")->tensor, 0) == 2.5f);
  em_document_close(d);
  writes_and_reads();
  const char *const files[] = {"views.pt", "dtypes_stream.pt", "optimizer.pt", "all.safetensors", "views_deflated.pt"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) survives_failing_allocations(files[i]);
  CHECK(em_alloc_live(EM_KIND_TENSOR) + em_alloc_live(EM_KIND_STORAGE) + em_alloc_live(EM_KIND_OTHER) == live);
  CHECK_DONE();
}

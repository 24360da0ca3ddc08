// tls.h: the one block of thread-local state. Kept small: it lives in the loader's static TLS surplus (initial-exec), which
// dlopen can run out of.
#ifndef EMBER_CORE_TLS_H
#define EMBER_CORE_TLS_H
#include "status.h"

struct em_magazines;
struct em_error_record;
struct em_saved_hooks;
struct em_failure;

typedef struct em_tls {
  uint64_t include, exclude;          // dispatch keys added to and taken from every call of this thread
  struct em_magazines *magazines;     // small-block lists, owned; NULL until first use and in bypass mode
  struct em_error_record *error;      // owned, NULL until the first failure
  const struct em_failure *pending;   // what the innermost failed scope remembers, borrowed; NULL: no scope has failed
  struct em_saved_hooks *saved_hooks; // top of the stack of saved-tensor hooks, borrowed (owner: the context manager)
  void *engine;                       // the running graph task of this thread, or NULL
  uint8_t inference;                  // inference_mode: new tensors carry neither Autograd nor Alias
  uint8_t anomaly;                    // bit 0: anomaly mode is on, bit 1: check for nan
  uint8_t default_dtype;              // not used by the core's operators when a dtype is given
  int32_t autocast_dtype;             // em_dtype + 1 of CPU autocast; 0: not chosen
  uint8_t draining;                   // a free of graph parts is under way below: others queue up (src/autograd/node.c)
  uint64_t node_seq;                  // sequence number of the next recorded node
  void *dying_nodes, *dying_metas;    // what waits to be freed by the outermost free
  const uint8_t *wants;               // while a node applies in a run with inputs=: which of its edges lead to one; else NULL
} em_tls;

// Keys added to every call of every thread: the layers of the log, which are one for the process (src/dispatch/log.c).
EM_PRIV extern uint64_t em_priv_global_include;

EM_PRIV extern _Thread_local em_tls em_priv_tls __attribute__((tls_model("initial-exec")));
#endif

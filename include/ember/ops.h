/* ember/ops.h: every operator, by the name of its row: em_call_<name>_<overload>. Generated from the rows; PyTorch's schema
 * stands over each. Arguments are borrowed; results are new references; the status says what went wrong. */
#ifndef EMBER_OPS_H
#define EMBER_OPS_H
#include "types.h"
#include "gen_api.h"
#endif

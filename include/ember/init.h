/* ember/init.h: first values of weights, as torch.nn.init writes them: in place, not recorded, and with the numbers that PyTorch
 * draws. Like the in-place short forms they return the tensor, or NULL after a failure, which the current scope notes:
 *
 *     em_tensor *w = em_requires_grad_(em_init_xavier_uniform_(em_empty(EM_INTS(32, 64)), 1, NULL));
 *
 * generator NULL: the process's. Errors: EM_ERR_VALUE where fewer than 2 dims have no fan in and fan out. */
#ifndef EMBER_INIT_H
#define EMBER_INIT_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef enum em_fan { EM_FAN_IN, EM_FAN_OUT } em_fan; /* what of the weight [out, in, ...] keeps its variance */

EM_API em_tensor *em_init_uniform_(em_tensor *t, double low, double high, em_generator *generator);
EM_API em_tensor *em_init_normal_(em_tensor *t, double mean, double std, em_generator *generator);
/* Normal, cut off outside [low, high]. */
EM_API em_tensor *em_init_trunc_normal_(em_tensor *t, double mean, double std, double low, double high, em_generator *generator);
EM_API em_tensor *em_init_constant_(em_tensor *t, double value);
/* gain: 1, or em_init_gain's. */
EM_API em_tensor *em_init_xavier_uniform_(em_tensor *t, double gain, em_generator *generator);
EM_API em_tensor *em_init_xavier_normal_(em_tensor *t, double gain, em_generator *generator);
/* gain * sqrt(3 / fan) is the bound, gain / sqrt(fan) the deviation. em_init_gain("relu", 0) for networks with relu; nn.Linear's
 * and nn.Conv2d's own weights: em_init_kaiming_uniform_(w, em_init_gain("leaky_relu", sqrt(5)), EM_FAN_IN, NULL). */
EM_API em_tensor *em_init_kaiming_uniform_(em_tensor *t, double gain, em_fan fan, em_generator *generator);
EM_API em_tensor *em_init_kaiming_normal_(em_tensor *t, double gain, em_fan fan, em_generator *generator);
/* torch.nn.init.calculate_gain: "linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu" (param: its slope), "selu". NaN, and
 * EM_ERR_VALUE in the record, for others. */
EM_API double em_init_gain(const char *nonlinearity, double param);

#ifdef __cplusplus
}
#endif
#endif

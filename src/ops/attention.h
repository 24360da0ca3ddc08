// attention.h: which implementations of scaled_dot_product_attention may be taken (torch.nn.attention.sdpa_kernel).
#ifndef EMBER_OPS_ATTENTION_H
#define EMBER_OPS_ATTENTION_H
#include "../core/status.h"

enum { EM_SDP_MATH = 1, EM_SDP_FLASH = 2, EM_SDP_EFFICIENT = 4, EM_SDP_CUDNN = 8, EM_SDP_OVERRIDEABLE = 16 };
EM_PRIV int em_priv_sdp_enabled(void);
EM_PRIV void em_priv_sdp_enable(int which, bool on);
#endif

/* vision.h: what the operators of torchvision share. */
#pragma once

#include "runtime/kernels/nn/nn.h"

/* One bilinear sample of a plane at (y, x); 0 outside of it by more than a pixel. */
double kiln__picture_sample(const kiln__nn *nn, const char *plane, int64_t height, int64_t width,
                            double y, double x);

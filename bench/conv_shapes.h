/* conv_shapes.h: convolutions of networks with one image, which the programs measure that compare
 * kernels for them. */
#pragma once

#include <stdint.h>

typedef struct shape {
  const char *name;
  int channels, outputs, groups, in, k, stride; /* of square images and windows */
} shape;

static const shape shapes[] = {
    {"resnet 7x7 s2 3->64 @224", 3, 64, 1, 224, 7, 2},
    {"resnet 3x3 64->64 @56", 64, 64, 1, 56, 3, 1},
    {"resnet 3x3 s2 64->128 @56", 64, 128, 1, 56, 3, 2},
    {"resnet 1x1 s2 64->128 @56", 64, 128, 1, 56, 1, 2},
    {"resnet 3x3 128->128 @28", 128, 128, 1, 28, 3, 1},
    {"resnet 3x3 s2 128->256 @28", 128, 256, 1, 28, 3, 2},
    {"resnet 1x1 s2 128->256 @28", 128, 256, 1, 28, 1, 2},
    {"resnet 3x3 256->256 @14", 256, 256, 1, 14, 3, 1},
    {"resnet 3x3 s2 256->512 @14", 256, 512, 1, 14, 3, 2},
    {"resnet 1x1 s2 256->512 @14", 256, 512, 1, 14, 1, 2},
    {"resnet 3x3 512->512 @7", 512, 512, 1, 7, 3, 1},
    {"resnet50 1x1 64->256 @56", 64, 256, 1, 56, 1, 1},
    {"resnet50 1x1 256->1024 @14", 256, 1024, 1, 14, 1, 1},
    {"resnet50 1x1 1024->256 @14", 1024, 256, 1, 14, 1, 1},
    {"resnet50 1x1 512->2048 @7", 512, 2048, 1, 7, 1, 1},
    {"mobilenet 3x3 s2 3->16 @224", 3, 16, 1, 224, 3, 2},
    {"mobilenet 1x1 16->16 @112", 16, 16, 1, 112, 1, 1},
    {"mobilenet 1x1 16->64 @112", 16, 64, 1, 112, 1, 1},
    {"mobilenet 1x1 64->24 @56", 64, 24, 1, 56, 1, 1},
    {"mobilenet 1x1 24->72 @56", 24, 72, 1, 56, 1, 1},
    {"mobilenet 1x1 72->40 @28", 72, 40, 1, 28, 1, 1},
    {"mobilenet 1x1 40->240 @28", 40, 240, 1, 28, 1, 1},
    {"mobilenet 1x1 80->480 @14", 80, 480, 1, 14, 1, 1},
    {"mobilenet 1x1 672->112 @14", 672, 112, 1, 14, 1, 1},
    {"mobilenet 1x1 960->160 @7", 960, 160, 1, 7, 1, 1},
    {"mobilenet 1x1 160->960 @7", 160, 960, 1, 7, 1, 1},
    {"mobilenet 1x1 960->240 @1", 960, 240, 1, 1, 1, 1},
    {"shufflenet 1x1 116->116 @28", 116, 116, 1, 28, 1, 1},
    {"shufflenet 1x1 464->1024 @7", 464, 1024, 1, 7, 1, 1},
    {"squeezenet 3x3 s2 3->64 @221", 3, 64, 1, 221, 3, 2},
    {"squeezenet 1x1 16->64 @55", 16, 64, 1, 55, 1, 1},
    {"squeezenet 1x1 128->16 @55", 128, 16, 1, 55, 1, 1},
    {"squeezenet 1x1 128->32 @27", 128, 32, 1, 27, 1, 1},
    {"depthwise 3x3 16 @112", 16, 16, 16, 112, 3, 1},
    {"depthwise 3x3 s2 64 @112", 64, 64, 64, 112, 3, 2},
    {"depthwise 3x3 72 @56", 72, 72, 72, 56, 3, 1},
    {"depthwise 5x5 s2 72 @56", 72, 72, 72, 56, 5, 2},
    {"depthwise 5x5 120 @28", 120, 120, 120, 28, 5, 1},
    {"depthwise 3x3 s2 240 @28", 240, 240, 240, 28, 3, 2},
    {"depthwise 3x3 480 @14", 480, 480, 480, 14, 3, 1},
    {"depthwise 5x5 s2 672 @14", 672, 672, 672, 14, 5, 2},
    {"depthwise 5x5 960 @7", 960, 960, 960, 7, 5, 1},
    {"grouped 3x3 32x4 @56", 128, 128, 32, 56, 3, 1},
    {"grouped 3x3 32x32 @7", 1024, 1024, 32, 7, 3, 1},
};

/* coefficients.h: polynomials of the vector math library, lowest power first. derive.py made them
 * and says of what; the number is the approximation's error, in bits of the result. */
#pragma once

#define KILN_COEF_EXP_F32 /* 25.5 */                                                          \
  0x1.0000000000000p-1f, 0x1.5554de0000000p-3f, 0x1.55551a0000000p-5f, 0x1.120b620000000p-7f, \
      0x1.6d10fc0000000p-10f

#define KILN_COEF_EXP_F64 /* 60.7 */                                                              \
  0x1.0000000000000p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100dfp-7,         \
      0x1.6c16c16c162d6p-10, 0x1.a01a01abe62ddp-13, 0x1.a01a01a6d7808p-16, 0x1.71de02375656cp-19, \
      0x1.27e4db67b4303p-22, 0x1.af4ddd84882fep-26, 0x1.1f72fc730b4ffp-29

#define KILN_COEF_LOG_F32 /* 28.4 */ \
  0x1.55555c0000000p-1f, 0x1.997b960000000p-2f, 0x1.2f013e0000000p-2f

#define KILN_COEF_LOG_F64 /* 57.6 */                                                      \
  0x1.5555555555558p-1, 0x1.9999999994e76p-2, 0x1.2492492e6dfddp-2, 0x1.c71c6247410e3p-3, \
      0x1.7462e17b4cdd0p-3, 0x1.39f8963ccbdc2p-3, 0x1.2b9f7fb3de73fp-3

#define KILN_COEF_POW_F64 /* 70.0 */                                                      \
  0x1.999999999999ap-2, 0x1.249249249252cp-2, 0x1.c71c71c6e78a1p-3, 0x1.745d177d4ef6cp-3, \
      0x1.3b1394b0a7753p-3, 0x1.11190514d902bp-3, 0x1.df700c050c69dp-4, 0x1.e0b2fadc317e7p-4

#define KILN_COEF_TANH_F32 /* 30.9 */                                                           \
  -0x1.5555560000000p-2f, 0x1.1110ea0000000p-3f, -0x1.ba08c40000000p-5f, 0x1.64a9760000000p-6f, \
      -0x1.116a160000000p-7f, 0x1.2c83c00000000p-9f

#define KILN_COEF_TANH_F64 /* 59.4 */                                                             \
  -0x1.5555555555555p-2, 0x1.11111111110a8p-3, -0x1.ba1ba1ba0f126p-5, 0x1.664f487e0a749p-6,       \
      -0x1.226e3473dce5cp-7, 0x1.d6d39ae3905e2p-9, -0x1.7d9f6f23e8682p-10, 0x1.3526e9ed54da1p-11, \
      -0x1.f243823c8c981p-13, 0x1.8445870f6fe41p-14, -0x1.05bbdae896297p-15, 0x1.b33642a122cddp-18

#define KILN_COEF_SINH_F32 /* 32.3 */ \
  0x1.5555560000000p-3f, 0x1.11111e0000000p-7f, 0x1.a009000000000p-13f, 0x1.78a70e0000000p-19f

#define KILN_COEF_SINH_F64 /* 61.4 */                                                       \
  0x1.5555555555555p-3, 0x1.11111111110fdp-7, 0x1.a01a01a01ee70p-13, 0x1.71de3a4e14f40p-19, \
      0x1.ae6460fae3728p-26, 0x1.611cb330c1fe8p-33, 0x1.b41232cf9950fp-41

#define KILN_COEF_ERF_F32 /* 29.6 */                                                            \
  0x1.06eba80000000p-3f, -0x1.81273e0000000p-2f, 0x1.ce2d100000000p-4f, -0x1.b7faba0000000p-6f, \
      0x1.5412700000000p-8f, -0x1.a450880000000p-11f, 0x1.4a56900000000p-14f

#define KILN_COEF_ERF_F64 /* 56.9 */                                                               \
  0x1.06eba8214db68p-3, -0x1.812746b0379c1p-2, 0x1.ce2f21a040f66p-4, -0x1.b82ce31203772p-6,        \
      0x1.565bccfa44156p-8, -0x1.c02db0665e53dp-11, 0x1.f9a2be4f731a1p-14, -0x1.f4ca838adb73bp-17, \
      0x1.b981d78881a5dp-20, -0x1.5c131500d3f88p-23, 0x1.d76af6ca49787p-27, -0x1.ac9585a44fe29p-31

#define KILN_COEF_SIN_F32 /* 26.3 */ \
  -0x1.5555520000000p-3f, 0x1.110c260000000p-7f, -0x1.9ac8560000000p-13f

#define KILN_COEF_SIN_F64 /* 56.2 */                                                          \
  -0x1.5555555555555p-3, 0x1.1111111110babp-7, -0x1.a01a019e820aep-13, 0x1.71de37946ed6dp-19, \
      -0x1.ae6008d114485p-26, 0x1.5e0a4fc16be59p-33

#define KILN_COEF_COS_F32 /* 30.4 */ \
  0x1.5555540000000p-5f, -0x1.6c12d00000000p-10f, 0x1.9bd7860000000p-16f

#define KILN_COEF_COS_F64 /* 61.0 */                                                           \
  0x1.5555555555555p-5, -0x1.6c16c16c16963p-10, 0x1.a01a019f4ddfdp-16, -0x1.27e4fa16cc2d1p-22, \
      0x1.1eeb67d026ec6p-29, -0x1.907cd8ff5ede7p-37

#define KILN_COEF_ATAN_F32 /* 28.8 */                                                           \
  -0x1.5555540000000p-2f, 0x1.99972e0000000p-3f, -0x1.241fe60000000p-3f, 0x1.b809900000000p-4f, \
      -0x1.082f6c0000000p-4f

#define KILN_COEF_ATAN_F64 /* 57.6 */                                                           \
  -0x1.5555555555555p-2, 0x1.999999999933dp-3, -0x1.24924924355d5p-3, 0x1.c71c7184c32bfp-4,     \
      -0x1.745d0b153ffadp-4, 0x1.3b126143b5cbcp-4, -0x1.10fa5ee9ab25cp-4, 0x1.dfe49b2919c4ep-5, \
      -0x1.a090d1950d2b4p-5, 0x1.41495cefb6c73p-5, -0x1.39f38ad451ea6p-6

#define KILN_COEF_ASIN_F32 /* 30.0 */                                                         \
  0x1.5555540000000p-3f, 0x1.3334300000000p-4f, 0x1.6d5bba0000000p-5f, 0x1.fd8da20000000p-6f, \
      0x1.18f91e0000000p-6f, 0x1.13fed40000000p-5f

#define KILN_COEF_ASIN_F64 /* 57.9 */                                                          \
  0x1.5555555555556p-3, 0x1.3333333332ecap-4, 0x1.6db6db6e31f13p-5, 0x1.f1c71c1db0623p-6,      \
      0x1.6e8bb1c8209a2p-6, 0x1.1c4d35cf95421p-6, 0x1.c9cf07674736ap-7, 0x1.782651caa6547p-7,  \
      0x1.52420b04b37bep-7, 0x1.65a9c4dfcf8b2p-8, 0x1.1d189408314eep-6, -0x1.e6aaa8a0a04ccp-7, \
      0x1.d72b2bc8155f8p-6

#define KILN_COEF_ERFCX_F32 /* 28.2 */                                                         \
  0x1.3ba5920000000p+0f, -0x1.1df1a60000000p-3f, 0x1.f7f6140000000p-7f, 0x1.16ea060000000p-4f, \
      -0x1.9ddd220000000p-4f, 0x1.801a0c0000000p-4f, -0x1.0f82840000000p-4f,                   \
      0x1.2e8afa0000000p-5f, -0x1.0ef8720000000p-6f, 0x1.647dbe0000000p-8f, 0x1.a858100000000p-14f

#define KILN_COEF_ERFCX_F64 /* 59.7 */                                                             \
  0x1.3ba5916e9fd7fp+0, -0x1.1df1ad154a28dp-3, 0x1.f7f5df66fd70fp-7, 0x1.16ecefcfa529dp-4,         \
      -0x1.9ddb23c3e8ac1p-4, 0x1.7fee004e14f63p-4, -0x1.0fb06dfe53e55p-4, 0x1.3079edf6187c9p-5,    \
      -0x1.09623882b6a76p-6, 0x1.49c672ab896cdp-8, -0x1.8d4a9c53e7824p-11, -0x1.a1df45af72d2ap-13, \
      0x1.3be06e6fea0c1p-13, -0x1.9954c8e980297p-16, -0x1.788e926472d77p-17,                       \
      0x1.7ef46369c07c4p-18, 0x1.3c188c290efb0p-22, -0x1.b7f5f29e0f8acp-21, 0x1.3ce342b53c80ep-24, \
      0x1.bb7c4eb74d9bbp-24, -0x1.27dd9abc65871p-26, -0x1.4bd065d1c926fp-27, 0x1.b76c22b7dbc6bp-30

#define KILN_COEF_NDTR_F32 /* 29.5 */                                                           \
  0x1.82b4bc0000000p-1f, -0x1.373e3c0000000p-1f, 0x1.8c6dbe0000000p-2f, -0x1.7dfee20000000p-3f, \
      0x1.eec6680000000p-5f, -0x1.ee7cac0000000p-8f, -0x1.c938e00000000p-9f,                    \
      0x1.af831c0000000p-10f, 0x1.63e9b20000000p-13f, -0x1.ead4800000000p-13f,                  \
      -0x1.b7c6d20000000p-15f

#define KILN_COEF_NDTR_F64 /* 59.1 */                                                            \
  0x1.82b4bb8c94dcep-1, -0x1.373e3a893c28ap-1, 0x1.8c6dbf2cfc2afp-2, -0x1.7dff2bff68368p-3,      \
      0x1.eec4cc3e4db85p-5, -0x1.ee2761048b5e7p-8, -0x1.c81719d610b82p-9, 0x1.ab825fc3a459bp-10, \
      0x1.17a4aebfc01c7p-13, -0x1.e4a4260ad8c4ep-13, -0x1.001f43193794ap-19,                     \
      0x1.26d0a37c22e03p-15, 0x1.80c1dea0222a0p-21, -0x1.8d4bcda0e042bp-18,                      \
      -0x1.5210d6172ef2fp-21, 0x1.1238a8ad41541p-20, 0x1.23d90f695d206p-22,                      \
      -0x1.4cc8dd42dff5fp-23, -0x1.6ed38c82f7cd9p-24, 0x1.c85321fba99d2p-27,                     \
      0x1.510ff60a84cb0p-26, 0x1.07a55f5929c3ap-29, -0x1.5aa27c5b7d63cp-29, -0x1.8f4178ebec560p-31

#define KILN_COEF_GELU_F32 /* 28.8 */                                                           \
  0x1.07bda80000000p-3f, -0x1.b7eea80000000p-4f, 0x1.572ff20000000p-4f, -0x1.f9b1740000000p-5f, \
      0x1.625e480000000p-5f, -0x1.d95ebc0000000p-6f, 0x1.3078840000000p-6f,                     \
      -0x1.8913cc0000000p-7f, 0x1.ce16ac0000000p-8f, -0x1.7b01280000000p-9f,                    \
      0x1.2903ba0000000p-9f, -0x1.7b094c0000000p-9f, 0x1.f1a59a0000000p-12f,                    \
      0x1.d005320000000p-11f, 0x1.8e52740000000p-12f, -0x1.0611120000000p-11f

#define KILN_COEF_ERFLOG_F32 /* 31.4 */                                                         \
  -0x1.4e867a0000000p-12f, 0x1.2156ac0000000p+0f, 0x1.437fc80000000p-1f, 0x1.c2daca0000000p-4f, \
      -0x1.b0cdbc0000000p-6f, 0x1.37ce160000000p-8f, -0x1.38ae400000000p-11f,                   \
      0x1.81ecd80000000p-15f, -0x1.b6b81e0000000p-20f

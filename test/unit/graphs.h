/* graphs.h: small models that tests of several modules run, by name. */
#ifndef TEST_UNIT_GRAPHS_H
#define TEST_UNIT_GRAPHS_H

/* The type of a row-major matrix, 2 by 3. */
#define F23 "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)"

/* tanh(x * y + 1) * sigmoid(y) - x: pointwise alone, one group. */
#define GRAPH_CHAIN                             \
  "graph(%x.1 : Tensor,\n"                      \
  "      %y.1 : Tensor):\n"                     \
  "  %2 : int = prim::Constant[value=1]()\n"    \
  "  %3 : float = prim::Constant[value=1.]()\n" \
  "  %4 : Tensor = aten::mul(%x.1, %y.1)\n"     \
  "  %5 : Tensor = aten::add(%4, %3, %2)\n"     \
  "  %6 : Tensor = aten::tanh(%5)\n"            \
  "  %7 : Tensor = aten::sigmoid(%y.1)\n"       \
  "  %8 : Tensor = aten::mul(%6, %7)\n"         \
  "  %9 : Tensor = aten::sub(%8, %x.1, %2)\n"   \
  "  return (%9)\n"

/* Two groups with a running logarithm between, which no kernel takes in. */
#define GRAPH_TWO_GROUPS                         \
  "graph(%x : Tensor, %y : Tensor):\n"           \
  "  %1 : int = prim::Constant[value=1]()\n"     \
  "  %none : NoneType = prim::Constant()\n"      \
  "  %a : Tensor = aten::mul(%x, %y)\n"          \
  "  %b : Tensor = aten::add(%a, %x, %1)\n"      \
  "  %c : Tensor = aten::logcumsumexp(%b, %1)\n" \
  "  %d : Tensor = aten::mul(%c, %y)\n"          \
  "  %e : Tensor = aten::sub(%d, %x, %1)\n"      \
  "  return (%e)\n"

/* x to the power n + 1: a value that a loop carries. */
#define GRAPH_LOOP                            \
  "graph(%x : Tensor,\n"                      \
  "      %n : int):\n"                        \
  "  %2 : bool = prim::Constant[value=1]()\n" \
  "  %3 : Tensor = prim::Loop(%n, %2, %x)\n"  \
  "    block0(%i : int, %a : Tensor):\n"      \
  "      %6 : Tensor = aten::mul(%a, %x)\n"   \
  "      -> (%2, %6)\n"                       \
  "  return (%3)\n"

#endif

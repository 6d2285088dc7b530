/* products.h: what passes must know of the operators of products.c. */
#pragma once

/* kiln::steps_of_product makes products of so many rows a step at most: more read the weight seldom
 * enough in a product of their own. */
enum { KILN_STEPS_MOST_ROWS = 16 };

/* region.h: between guard_regions.c (what belongs to a region, and why) and region_build.c (putting
 * it into the graph); for guards/ alone. */
#pragma once

#include "guards/guards.h"

typedef KILN_VEC(kiln_node *) kiln_node_vec;

/* Nodes of one block that one guard will cover. */
typedef struct kiln_region {
  kiln_pass *pass;
  kiln_map *claims;         /* value -> the type that the profile claims for it */
  kiln_node_vec parts;      /* groups and other nodes whose types are facts where the guard held */
  kiln_node *last;          /* of its groups: the region stands where this one stood */
  kiln_node_vec behind;     /* no parts, but they read some, and stand before `last` */
  kiln_guard_checks checks; /* of the guard */
} kiln_region;

/* Puts the check, the If and the fallback into the graph. */
void kiln__region_build(kiln_region *region);

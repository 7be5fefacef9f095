/* The variants of a team, in the order in which people meet them. */
#include "../team.h"

extern const attn_variant attn_ring;
extern const attn_team_member attn_ring_member;

static const attn_variant *const variants[] = {&attn_ring};

const attn_team_member *const attn_team_members[] = {&attn_ring_member, NULL};

const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, sizeof variants / sizeof *variants, variants,
                                attn_team_sizes};

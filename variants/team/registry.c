/* The variants of a team, in the order in which people meet them. */
#include "../team.h"

extern const attn_variant attn_ring, attn_ring_striped, attn_ulysses, attn_tree_decode;
extern const attn_team_member attn_ring_member, attn_ring_striped_member, attn_ulysses_member,
    attn_tree_decode_member;

static const attn_variant *const variants[] = {&attn_ring, &attn_ring_striped, &attn_ulysses,
                                               &attn_tree_decode};

const attn_team_member *const attn_team_members[] = {&attn_ring_member, &attn_ring_striped_member,
                                                     &attn_ulysses_member, &attn_tree_decode_member, NULL};

const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, sizeof variants / sizeof *variants, variants,
                                attn_team_sizes};

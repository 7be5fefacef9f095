/* The loop of the online softmax: query tiles past the keys. Its idea stands in ../fused.c. */
#ifndef ATTN_ONLINE_SOFTMAX_H
#define ATTN_ONLINE_SOFTMAX_H

#include "query_tile.h"

/* Brings tiles of one key/value head, whose states were cleared before their first key, past keys [keys.first,
 * keys.end). Key tiles lie at multiples of their length, but where a query tile sees no more keys than one has: so the
 * steps that it takes are the same whichever tiles pass the keys with it. Nothing waits in `of` before and after. */
void online_softmax(query_tile *tiles, int64_t count, attn_range keys, key_tile *of);

#endif

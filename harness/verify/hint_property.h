/* The likely mistake of a kernel that breaks a property: its answer on the inputs that were made for it may be wrong
 * by itself, and then says more than that it is another one; else what the property varies is named, where one kind
 * of mistake alone sees it. */
#ifndef ATTN_HARNESS_HINT_PROPERTY_H
#define ATTN_HARNESS_HINT_PROPERTY_H

#include "hint.h"
#include "property.h"
#include "property_inputs.h"

/* ran: inputs that the kernel was run on last, with its outputs, or NULL; only those whose rows are solved say something. */
void hint_find_of_property(property property, const altered *const ran[2], uint32_t traits, hint *found);

#endif

/* The device that a run was measured on, as an object of the report's context; nothing where it was the processor. */
#include <math.h>
#include <stdio.h>

#include "json.h"

static json_t *number_or_null(double number) { return isfinite(number) ? json_real(number) : json_null(); }

bool device_json_put(json_t *context, const machine *machine) {
  const attn_device_facts *is = &machine->device;
  const attn_device_state *state = &machine->state;
  if (!is->name[0]) return true;
  json_t *device = json_pack(
      "{s:s, s:i, s:i, s:I, s:I, s:I, s:i, s:i, s:o, s:o, s:o, s:s}", "name", is->name, "capability",
      is->capability, "multiprocessors", is->multiprocessors, "memory_bytes", (json_int_t)is->memory_bytes,
      "l2_bytes", (json_int_t)is->l2_bytes, "shared_bytes", (json_int_t)is->shared_bytes, "driver",
      is->driver, "runtime", is->runtime, "lowest_clock_mhz", number_or_null(state->clock_mhz),
      "highest_clock_mhz", number_or_null(state->highest_clock_mhz), "highest_celsius",
      number_or_null(state->celsius), "throttled", state->throttled);
  return device && json_object_set_new(context, "device", device) == 0;
}

static int integer(const json_t *object, const char *key) {
  return (int)json_integer_value(json_object_get(object, key));
}

static size_t bytes(const json_t *object, const char *key) {
  const json_int_t value = json_integer_value(json_object_get(object, key));
  return value > 0 ? (size_t)value : 0;
}

static double number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

static void text(const json_t *object, const char *key, char *to, size_t size) {
  const char *value = json_string_value(json_object_get(object, key));
  snprintf(to, size, "%s", value ? value : "");
}

void device_json_get(const json_t *context, machine *machine) {
  const json_t *device = json_object_get(context, "device");
  attn_device_facts *is = &machine->device;
  attn_device_state *state = &machine->state;
  text(device, "name", is->name, sizeof is->name);
  is->capability = integer(device, "capability");
  is->multiprocessors = integer(device, "multiprocessors");
  is->memory_bytes = bytes(device, "memory_bytes");
  is->l2_bytes = bytes(device, "l2_bytes");
  is->shared_bytes = bytes(device, "shared_bytes");
  is->driver = integer(device, "driver");
  is->runtime = integer(device, "runtime");
  state->clock_mhz = number(device, "lowest_clock_mhz");
  state->highest_clock_mhz = number(device, "highest_clock_mhz");
  state->celsius = number(device, "highest_celsius");
  text(device, "throttled", state->throttled, sizeof state->throttled);
}

/* The tiles of AMX, palette 1, and their configuration as LDTILECFG reads it. */
#ifndef ATTN_AMX_CONFIGURATION_H
#define ATTN_AMX_CONFIGURATION_H

#include <stdint.h>

enum { AMX_TILES = 8, AMX_ROWS = 16, AMX_ROW_BYTES = 64, AMX_COLUMNS = 16 };

typedef struct amx_configuration {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} amx_configuration;

#endif

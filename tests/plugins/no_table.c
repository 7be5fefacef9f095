/* A shared object that is no plugin. */
int attn_nothing;

/* The elements of float32 tensors: what is loaded is what is computed with. The file of an instruction set includes
 * this behind its vector operations, and kernels.h behind it. Another type of element is another such file. */
typedef float element;

OP vec load_elements(const element *x) { return load(x); }
/* The first n < LANES elements, and zeros. */
OP vec load_elements_part(const element *x, int n) { return load_part(x, n); }
OP vec broadcast_element(const element *x) { return broadcast(x); }
OP void store_elements(element *x, vec a) { store(x, a); }
OP float from_element(element x) { return x; }
OP element to_element(float x) { return x; }

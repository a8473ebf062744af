// Exponential and logarithmic functions. Every rounding is explicit, and there are no branches: a
// loop over any of them vectorizes, and its bits depend neither on that nor on the compiler.

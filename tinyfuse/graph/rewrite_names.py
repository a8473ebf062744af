"""What the named rewrites of graphs are called; what they do stands in `rewrites`."""

# Those that there are, in the order in which they are applied.
REWRITES = (
    *("fold_batch_norm", "online_softmax"),
    *("tf32_products", "bfloat16_products", "float16_products"),
)
# Those that are applied where nothing else is asked for: they are at least as accurate.
DEFAULT_REWRITES = ("online_softmax",)

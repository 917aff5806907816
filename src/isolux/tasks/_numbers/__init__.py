"""What tasks of one number a unit share: how numbers meet people, and statistics of them."""

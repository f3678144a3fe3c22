//! Changes that contradict each other, from two nodes at once.

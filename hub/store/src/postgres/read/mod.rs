//! Queries, on connections that do nothing else.

//! A rate limit that several processes share.

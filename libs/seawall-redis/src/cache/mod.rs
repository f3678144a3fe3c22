//! A remote cache for `seawall`'s cache, and a cache that degrades when Redis is away.

//! Files on S3-compatible stores, Azure Blob Storage or the disk, with a failover store and a spool.

//! A tonic channel that does what the standard gRPC service config asks for: retries, hedging, throttling, pushback.

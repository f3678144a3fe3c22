//! What is shipped for Prometheus and Grafana fits what the hub exposes.

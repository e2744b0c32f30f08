//! Nothing but the folder's benches: `cargo bench -p native-bench`.

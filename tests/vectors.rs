//! Plays the golden vectors on the rules of this crate, with the code of `cargo xtask vectors`.

use std::path::Path;

use harness::vectors;

#[test]
fn every_golden_vector_is_met() {
    let report = vectors::run(&harness::data("vectors")).unwrap();
    assert_eq!(report.failed, 0, "see the lines above");
    assert!(report.passed >= 286, "only {} cases were played", report.passed);
}

#[test]
fn variations_of_the_golden_runs_go_as_they_went() {
    let report = vectors::run(&harness::data("runs")).unwrap();
    assert_eq!(report.failed, 0, "see the lines above");
    assert!(report.passed >= 240, "only {} runs were played", report.passed);
}

#[test]
fn vectors_that_cannot_be_played_are_told() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken-vectors");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let error = || vectors::run(&dir).unwrap_err();
    assert!(error().starts_with("no vectors in "), "{}", error());
    let write = |text: &str| std::fs::write(dir.join("retry.json"), text).unwrap();
    write(r#"{"set": "retry"}"#);
    assert!(error().ends_with("retry.json has no `cases`"), "{}", error());
    let backoff = r#""input": {"op": "backoff", "config": {}, "attempt": 1}, "expected": {"delay_ms": 2000}"#;
    write(&format!(
        r#"{{"set": "retry", "cases": [{{"id": "a"}}, {{"id": "b", {backoff}}}, {{"id": "c", "status": "defekt", {backoff}}}]}}"#
    ));
    assert_eq!(vectors::run(&dir), Ok(vectors::Report { passed: 1, failed: 2, unreachable: 0 }));
}

//! A sealed checkpoint is not taken for an open one.

use turnwheel::checkpoint::{CheckpointEnvelopeV1, CheckpointError};

#[test]
fn the_error_says_that_it_is_sealed_and_what_to_do() {
    let sealed = r#"{"format":"turnwheel_sealed_checkpoint","version":1,"checkpoint":"{}","mac":"x"}"#;
    let error = CheckpointEnvelopeV1::decode(sealed.as_bytes()).unwrap_err();
    assert_eq!(error, CheckpointError::Sealed);
    assert!(error.to_string().contains("unseal it first"), "{error}");
    // Nor is one whose seal was broken off in part.
    let broken = r#"{"format":"turnwheel_sealed_checkpoint","version":1,"messages":[],"metadata":{}}"#;
    assert_eq!(CheckpointEnvelopeV1::decode(broken.as_bytes()), Err(CheckpointError::Sealed));
}

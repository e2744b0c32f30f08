//! How many checks passed, read from the output of a part.

/// How a part reports what passed. An exit code other than 0 is a failure in any case.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Count {
    /// It does not: the part passes or fails as a whole.
    Whole,
    /// cargo's `test result: ok. 3 passed; 0 failed; 1 ignored`, summed.
    Cargo,
    /// Node's test runner, `# pass 3`.
    Node,
    /// The same, but all tests may be skipped if what they need is not available here.
    Peer,
    /// The last line of the form `3 passed, 0 failed`; without one, the sum of the lines with a name in
    /// front, `retry: 3 passed, 0 failed`.
    Ours,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) passed: u32,
    pub(super) failed: u32,
    pub(super) skipped: u32,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Returns a part's counts, and briefly why it failed if it did.
pub(super) fn evaluate(count: Count, output: &str, success: bool) -> (Tally, &'static str) {
    let counted = match count {
        Count::Whole => Some(Tally { passed: u32::from(success), ..Tally::default() }),
        Count::Cargo => count_cargo(output),
        Count::Node | Count::Peer => count_node(output),
        Count::Ours => count_ours(output),
    };
    match counted {
        Some(tally) if tally.failed > 0 => (tally, "some of it failed"),
        Some(tally) if !success => (Tally { failed: 1, ..tally }, "it failed"),
        Some(tally) if tally.skipped > 0 && count == Count::Peer => (tally, ""),
        // A crate may have no examples in its docs, but a suite of ours that ran nothing is broken.
        Some(tally) if tally.passed == 0 && count != Count::Cargo => {
            (Tally { failed: 1, ..tally }, "it ran no test")
        }
        Some(tally) => (tally, ""),
        None => (Tally { failed: 1, ..Tally::default() }, "it counted nothing"),
    }
}

fn count_cargo(output: &str) -> Option<Tally> {
    let mut sum: Option<Tally> = None;
    for line in output.lines().filter_map(|line| line.strip_prefix("test result: ")) {
        let number = |unit: &str| {
            line.split(['.', ';'])
                .find_map(|piece| piece.trim().strip_suffix(unit)?.trim().parse().ok())
                .unwrap_or(0)
        };
        let tally = Tally { passed: number("passed"), failed: number("failed"), skipped: number("ignored") };
        sum.get_or_insert_default().add(tally);
    }
    sum
}

fn count_node(output: &str) -> Option<Tally> {
    let number = |name: &str| -> Option<u32> {
        output.lines().rev().find_map(|line| line.strip_prefix("# ")?.strip_prefix(name)?.trim().parse().ok())
    };
    let skipped = number("skipped ").unwrap_or(0) + number("todo ").unwrap_or(0);
    let failed = number("fail ")? + number("cancelled ").unwrap_or(0);
    Some(Tally { passed: number("pass ")?, failed, skipped })
}

fn count_ours(output: &str) -> Option<Tally> {
    let count = |text: &str| -> Option<Tally> {
        let (passed, failed) = text.strip_suffix(" failed")?.split_once(" passed, ")?;
        Some(Tally { passed: passed.parse().ok()?, failed: failed.parse().ok()?, skipped: 0 })
    };
    let total = output.lines().rev().find_map(|line| count(line.trim()));
    total.or_else(|| {
        let sets = output.lines().filter_map(|line| count(line.trim().rsplit_once(": ")?.1));
        sets.reduce(|mut sum, set| {
            sum.add(set);
            sum
        })
    })
}

/// Returns the reasons for skipped tests in a TAP stream, each once.
pub(super) fn skips(output: &str) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for reason in output.lines().filter_map(|line| Some(line.split_once("# SKIP ")?.1)) {
        let line = format!("      skipped: {reason}");
        if !reasons.contains(&line) {
            reasons.push(line);
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u32, failed: u32, skipped: u32) -> Tally {
        Tally { passed, failed, skipped }
    }

    #[test]
    fn the_results_of_all_test_binaries_are_summed() {
        let output = "running 3 tests\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
            test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        assert_eq!(evaluate(Count::Cargo, output, false), (tally(7, 2, 1), "some of it failed"));
    }

    #[test]
    fn nodes_summary_is_read_and_a_cancelled_test_is_a_failed_one() {
        let output = "# pass 1 is a comment of a test\n# tests 9\n# pass 5\n# fail 1\n# cancelled 1\n# skipped 2\n# todo 0\n";
        assert_eq!(evaluate(Count::Node, output, false).0, tally(5, 2, 2));
    }

    #[test]
    fn of_our_own_lines_the_total_counts_and_without_one_the_sum() {
        let output = "retry: 3 passed, 1 failed\n3 passed, 1 failed\nnoise\n12 passed, 1 failed\n";
        assert_eq!(evaluate(Count::Ours, output, false).0, tally(12, 1, 0));
        let output = "retry: 3 passed, 0 failed\nstream: 4 passed, 2 failed\n";
        assert_eq!(evaluate(Count::Ours, output, false).0, tally(7, 2, 0));
    }

    #[test]
    fn an_exit_code_is_a_failure_whatever_was_counted() {
        assert_eq!(evaluate(Count::Ours, "3 passed, 0 failed", false).0, tally(3, 1, 0));
        assert_eq!(evaluate(Count::Whole, "", false).0, tally(0, 1, 0));
    }

    #[test]
    fn a_failed_test_is_a_failure_whatever_the_exit_code() {
        assert_eq!(evaluate(Count::Ours, "3 passed, 2 failed", true).0, tally(3, 2, 0));
    }

    #[test]
    fn a_part_that_counts_nothing_or_ran_nothing_does_not_pass() {
        assert_eq!(evaluate(Count::Ours, "all well", true).0, tally(0, 1, 0));
        assert_eq!(evaluate(Count::Node, "# pass 0\n# fail 0\n", true).0, tally(0, 1, 0));
        assert_eq!(evaluate(Count::Cargo, "", true).0, tally(0, 1, 0));
    }

    #[test]
    fn a_peer_that_cannot_be_had_is_skipped_with_its_reason() {
        let output = "ok 1 - llmock # SKIP no Python environment: spawnSync python3 ENOENT\n# pass 0\n# fail 0\n# skipped 1\n";
        assert_eq!(evaluate(Count::Peer, output, true), (tally(0, 0, 1), ""));
        assert_eq!(skips(output), ["      skipped: no Python environment: spawnSync python3 ENOENT"]);
        assert_eq!(evaluate(Count::Node, output, true).0, tally(0, 1, 1));
        assert_eq!(evaluate(Count::Peer, "# pass 0\n# fail 0\n# skipped 0\n", true).0, tally(0, 1, 0));
    }

    #[test]
    fn a_crate_without_doc_tests_passes() {
        let output = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(evaluate(Count::Cargo, output, true).0, tally(0, 0, 0));
    }
}

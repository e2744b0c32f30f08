//! Rules for the workflows: what they run is pinned, and they may do no more than they need.

use std::fs;

use crate::run::root;

/// Returns what is wrong with a workflow.
fn flaws(text: &str) -> Vec<String> {
    let mut flaws = Vec::new();
    let lines: Vec<&str> = text.lines().map(|line| line.trim().trim_start_matches("- ")).collect();
    for action in lines.iter().filter_map(|line| line.strip_prefix("uses: ")) {
        let (reference, version) = action.split_once(" # ").unwrap_or((action, ""));
        let commit = reference.split_once('@').map_or("", |(_, commit)| commit);
        if commit.len() != 40
            || !commit.bytes().all(|letter| letter.is_ascii_hexdigit())
            || !version.starts_with('v')
        {
            flaws.push(format!("{action} is not pinned to a commit, with its version behind it"));
        }
    }
    if !text.contains("\npermissions:") {
        flaws.push("it does not say what all jobs may do at most".to_owned());
    }
    let count = |word: &str| lines.iter().filter(|line| line.starts_with(word)).count();
    if count("uses: actions/checkout@") != count("persist-credentials: false") {
        flaws.push("a checkout leaves its credentials behind".to_owned());
    }
    // What strangers write must not become a part of a script; secrets are not needed.
    for word in ["pull_request_target", "secrets.", "github.event.", "github.head_ref", "write-all"] {
        if text.contains(word) {
            flaws.push(format!("it uses {word}"));
        }
    }
    flaws
}

#[test]
fn the_workflows_keep_to_the_rules() {
    let files = fs::read_dir(root().join(".github/workflows")).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 2);
    for file in files {
        assert_eq!(flaws(&fs::read_to_string(&file).unwrap()), Vec::<String>::new(), "{}", file.display());
    }
}

#[test]
fn a_workflow_that_does_not_is_told_apart() {
    let pinned = format!("\npermissions: {{}}\n- uses: a/b@{} # v1.0.0\n", "0a".repeat(20));
    assert_eq!(flaws(&pinned), Vec::<String>::new());
    for (from, to) in [
        ("# v1.0.0", ""),
        (&"0a".repeat(20), "v1"),
        ("permissions", "may"),
        ("a/b", "actions/checkout"),
        ("{}", "write-all"),
        ("{}", "${{ secrets.TOKEN }}"),
    ] {
        assert_eq!(flaws(&pinned.replace(from, to)).len(), 1, "{to}");
    }
}

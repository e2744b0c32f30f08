//! The parts, as tables: what `cargo xtask test` runs every day, and `cargo xtask e2e` on demand.

use super::count::Count;

/// One part. It is listed only if the repository has its files, so a part never passes
/// because they are missing.
pub(super) struct Part {
    pub(super) name: &'static str,
    /// A path in the repository; a `*` in a segment matches anything. Words after it that begin with `!` are files and folders
    /// that are left out. Empty: always present.
    pub(super) files: &'static str,
    /// `xtask` is this program; the word `FILES` is replaced by the matches of `files`.
    pub(super) command: &'static [&'static str],
    pub(super) needs: Need,
    pub(super) count: Count,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Need {
    Nothing,
    /// pkg/: the part `build` runs first.
    Package,
    /// pkg/ and Chromium, whose path is in `CHROMIUM`.
    Browser,
    /// Chromium's WebDriver, for the tests of a crate that run in a page.
    Driver,
}

impl Need {
    /// Whether the part `build` has to run first.
    pub(super) fn wants_package(self) -> bool {
        matches!(self, Need::Package | Need::Browser)
    }
}

const CLIPPY: &str = "-Dwarnings";
const RUSTDOC: &str = "build.rustdocflags=[\"-Dwarnings\"]";
const TAP: &str = "--test-reporter=tap";
/// Node runs one file less at a time than there are cores: on two cores one would be idle.
const PAIRS: &str = "--test-concurrency=2";
const WASM: &str = "wasm32-unknown-unknown";

/// In the order in which they begin (queue.rs): quick parts that often fail come first. The native ones all
/// use `--workspace --all-features`: other choices would make cargo compile the dependencies
/// again with other features. Without `bindgen-cli`, two functions of a line each with a hundred dependencies, which
/// `web-node` compiles.
#[rustfmt::skip] // A row per part, read as a table.
pub(super) const PARTS: &[Part] = &[
    Part { name: "fmt", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["cargo", "fmt", "--all", "--check", "--", "--color=never"] },
    Part { name: "deny", files: "deny.toml", needs: Need::Nothing, count: Count::Peer,
        command: &["xtask", "deny"] },
    Part { name: "clippy", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["cargo", "clippy", "--workspace", "--exclude", "bindgen-cli", "--all-targets", "--all-features", "--", CLIPPY] },
    Part { name: "clippy-wasm", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["cargo", "clippy", "--package", "turnwheel", "--package", "turnwheel-npm", "--package", "turnwheel-npm-server", "--package", "turnwheel-web", "--package", "turnwheel-web-pkg", "--package", "turnwheel-component", "--package", "web-player",
            "--features", "turnwheel/durable,turnwheel/jsonschema,turnwheel/tracing", "--lib", "--target", WASM, "--", CLIPPY] },
    Part { name: "rust", files: "", needs: Need::Nothing, count: Count::Cargo,
        // `--lib` runs tests also where a manifest says that there are none: those of `turnwheel-npm-server` are `turnwheel-npm`'s.
        command: &["cargo", "test", "--workspace", "--exclude", "bindgen-cli", "--exclude", "turnwheel-npm-server", "--exclude", "rig", "--all-features", "--lib",
            "--bins", "--tests", "--examples", "--no-fail-fast"] },
    // Random worlds, tens of thousands of each kind: they are played with optimisation, on all cores.
    Part { name: "worlds", files: "tests/rig/tests", needs: Need::Nothing, count: Count::Cargo,
        command: &["cargo", "test", "--profile", "fuzz", "--package", "rig", "--tests", "--no-fail-fast", "--", "--nocapture"] },
    Part { name: "doctest", files: "", needs: Need::Nothing, count: Count::Cargo,
        command: &["cargo", "test", "--workspace", "--exclude", "bindgen-cli", "--all-features", "--doc"] },
    Part { name: "doc", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["cargo", "doc", "--workspace", "--exclude", "bindgen-cli", "--all-features", "--no-deps", "--config", RUSTDOC] },
    Part { name: "vectors", files: "tests/data/vectors", needs: Need::Nothing, count: Count::Ours,
        command: &["xtask", "vectors", "FILES"] },
    Part { name: "fixtures", files: "tests/data/fixtures", needs: Need::Nothing, count: Count::Ours,
        command: &["xtask", "fixtures", "FILES"] },
    Part { name: "web-node", files: "web/tests", needs: Need::Nothing, count: Count::Cargo,
        command: &["cargo", "test", "--package", "turnwheel-web", "--target", WASM, "--test", "host"] },
    Part { name: "web-chromium", files: "web/tests", needs: Need::Driver, count: Count::Cargo,
        command: &["cargo", "test", "--package", "turnwheel-web", "--target", WASM, "--test", "host"] },
    Part { name: "conformance-web", files: "tests/js/rig/web.mjs", needs: Need::Nothing, count: Count::Ours,
        command: &["xtask", "conformance", "tests/data/oracle/scenarios", "target/xtask/traces-web", "--engine", "web",
            "--judge", "tests/data/oracle/golden"] },
    Part { name: "engines-web", files: "tests/js/rig/web.mjs", needs: Need::Nothing, count: Count::Ours,
        command: &["xtask", "conformance", "--random", "500", "target/xtask/random-web", "--engine", "web"] },
    Part { name: "build", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["xtask", "build"] },
    Part { name: "build-dev", files: "tests/packaging/dev.mjs", needs: Need::Nothing, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "conformance", files: "tests/js/conformance.mjs", needs: Need::Package, count: Count::Ours,
        command: &["xtask", "conformance", "tests/data/oracle/scenarios", "target/xtask/traces", "--engine", "wasm",
            "--judge", "tests/data/oracle/golden", "--ag-ui"] },
    Part { name: "scenarios", files: "tests/data/scenarios/README.md", needs: Need::Package, count: Count::Ours,
        command: &["xtask", "conformance", "tests/data/scenarios/scenarios", "target/xtask/traces-2", "--engine", "wasm",
            "--judge", "tests/data/scenarios/golden", "--ag-ui"] },
    Part { name: "tapes", files: "tests/js/conformance.mjs", needs: Need::Package, count: Count::Ours,
        command: &["xtask", "conformance", "tests/data/oracle/scenarios", "target/xtask/traces-of-tapes", "--engine", "wasm", "--replay",
            "--judge", "tests/data/oracle/golden"] },
    Part { name: "tapes-elsewhere", files: "tests/js/conformance.mjs", needs: Need::Package, count: Count::Ours,
        command: &["xtask", "conformance", "--random", "1000", "target/xtask/random-tapes", "--replay"] },
    Part { name: "vectors-wasm", files: "tests/data/vectors", needs: Need::Package, count: Count::Ours,
        command: &["xtask", "vectors", "FILES", "--engine", "wasm"] },
    Part { name: "runs-wasm", files: "tests/data/runs", needs: Need::Package, count: Count::Ours,
        command: &["xtask", "vectors", "FILES", "--engine", "wasm"] },
    Part { name: "fixtures-wasm", files: "tests/js/fixtures.mjs", needs: Need::Package, count: Count::Ours,
        command: &["node", "FILES", "tests/data/fixtures"] },
    Part { name: "fixtures-ai-sdk", files: "tests/js/ai-sdk/fixtures.mjs", needs: Need::Package, count: Count::Ours,
        command: &["node", "FILES", "tests/data/fixtures"] },
    Part { name: "engines", files: "tests/js/conformance.mjs", needs: Need::Package, count: Count::Ours,
        command: &["xtask", "conformance", "--random", "3000", "target/xtask/random", "--engine", "wasm", "--ag-ui"] },
    Part { name: "journals", files: "tests/js/journals.mjs", needs: Need::Package, count: Count::Ours,
        command: &["xtask", "conformance", "--random", "200", "target/xtask/journals", "--journal"] },
    Part { name: "node", files: "tests/js/*/*.test.mjs !tests/js/attacks !tests/js/browser !tests/js/workerd", needs: Need::Package, count: Count::Node,
        command: &["node", "--test", PAIRS, TAP, "FILES"] },
    Part { name: "attacks", files: "tests/js/attacks/*.test.mjs", needs: Need::Package, count: Count::Node,
        command: &["node", "--test", PAIRS, TAP, "FILES"] },
    // SQLite is in Node from 22 on, which is fetched; PostgreSQL where it is installed.
    Part { name: "stores", files: "tests/e2e/stores.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "aimock", files: "tests/js/aimock.mjs", needs: Need::Package, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "workerd", files: "tests/js/workerd/*.test.mjs", needs: Need::Package, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "soak", files: "tests/soak/*.test.mjs", needs: Need::Package, count: Count::Node,
        command: &["node", "--test", "--test-concurrency=1", TAP, "FILES"] },
    Part { name: "browser", files: "tests/js/browser/*.test.mjs", needs: Need::Browser, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "chromium", files: "tests/js/browser/package.mjs", needs: Need::Browser, count: Count::Ours,
        command: &["node", "FILES"] },
    Part { name: "packaging", files: "tests/packaging/run.mjs", needs: Need::Browser, count: Count::Ours,
        command: &["node", "FILES"] },
    Part { name: "examples", files: "tests/examples/*.test.mjs", needs: Need::Browser, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
];

/// The parts of `cargo xtask e2e`, which run on demand because they download a lot. A part says so if
/// something is not available.
#[rustfmt::skip]
pub(super) const E2E: &[Part] = &[
    Part { name: "build", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["xtask", "build"] },
    // Packed and compiled as somebody who downloads them would, all dependencies anew.
    Part { name: "crates", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["xtask", "crates"] },
    Part { name: "advisories", files: "deny.toml", needs: Need::Nothing, count: Count::Peer,
        command: &["xtask", "deny", "--advisories"] },
    Part { name: "worlds", files: "tests/durable", needs: Need::Nothing, count: Count::Cargo,
        command: &["cargo", "test", "--profile", "fuzz", "--package", "turnwheel", "--test", "durable", "--", "--ignored", "so_"] },
    // What a change plays a share of (tests/js/share.mjs), whole.
    Part { name: "long", files: "tests/js/share.mjs", needs: Need::Package, count: Count::Node,
        command: &["node", "FILES"] },
    // All of them: a change plays a tenth (tests/rig/src/worlds.rs).
    Part { name: "all-worlds", files: "tests/rig/tests", needs: Need::Nothing, count: Count::Cargo,
        command: &["cargo", "test", "--profile", "fuzz", "--package", "rig", "--tests", "--no-fail-fast", "--config", "env.TURNWHEEL_WORLDS=\"all\"",
            "--", "--nocapture"] },
    Part { name: "reproduce", files: "tests/e2e/reproduce.mjs", needs: Need::Package, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "browsers", files: "tests/e2e/browsers.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "hosts", files: "tests/packaging/e2e.mjs", needs: Need::Browser, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "llmock", files: "tests/e2e/llmock.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "wrangler", files: "tests/e2e/wrangler.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "durable", files: "tests/e2e/durable-*.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "lives", files: "tests/e2e/lives.mjs", needs: Need::Package, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "tabs", files: "tests/e2e/tabs*.mjs", needs: Need::Browser, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "fleet", files: "tests/e2e/fleet.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "soak", files: "tests/soak/run.mjs", needs: Need::Package, count: Count::Ours,
        command: &["node", "FILES", "--minutes", "10"] },
    Part { name: "model", files: "tests/e2e/model.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "ai-sdk", files: "tests/e2e/ai-sdk.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "next-usechat", files: "tests/e2e/next-usechat.mjs", needs: Need::Browser, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "docs", files: "tests/e2e/docs.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "bun", files: "tests/e2e/bun.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "deno", files: "tests/e2e/deno.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "wllama", files: "tests/e2e/wllama.mjs", needs: Need::Browser, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "demo-kills", files: "tests/e2e/demo-kills.mjs", needs: Need::Browser, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "site", files: "tests/e2e/site.mjs", needs: Need::Browser, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "demo", files: "tests/e2e/demo.mjs", needs: Need::Browser, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "lighthouse", files: "tests/e2e/lighthouse.mjs", needs: Need::Browser, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "local", files: "tests/e2e/local*.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "wasi", files: "tests/e2e/wasi.mjs", needs: Need::Nothing, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "otel", files: "tests/e2e/otel.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "ag-ui", files: "tests/e2e/ag-ui.mjs", needs: Need::Browser, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    // The tool wasm-pack, which cargo compiles first, makes a package of web/pkg.
    Part { name: "wasm-pack", files: "tests/e2e/wasm-pack.mjs", needs: Need::Browser, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "component", files: "tests/e2e/component.mjs", needs: Need::Nothing, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "example-rust", files: "tests/e2e/rust.mjs", needs: Need::Nothing, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "example-axum", files: "tests/e2e/axum.mjs", needs: Need::Nothing, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "example-leptos", files: "tests/e2e/leptos.mjs", needs: Need::Browser, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
];

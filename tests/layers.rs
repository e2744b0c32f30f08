//! Imports point down only. This test reads every file under src/ and fails on an import that points up.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a panic here is a test that fails"
)]

mod source;

use std::fs;
use std::path::Path;

use source::{collect, without_tests, without_text, words};

/// A folder of src/. What is in it may name the folder itself and those before it in the table, none after it.
struct Layer {
    name: &'static str,
    never: &'static [&'static [&'static str]],
}

/// The crate is the same for every target: nothing in it knows JavaScript, an allocator, or what it is compiled for.
const TARGETS: &[&str] = &[
    "gloo_timers",
    "global_allocator",
    "js_sys",
    "serde_wasm_bindgen",
    "talc",
    "target_arch",
    "target_family",
    "target_os",
    "wasm_bindgen",
    "wasm_bindgen_futures",
    "web_sys",
];
const CLOCK: &[&str] = &["Instant", "SystemTime"];
const ASYNC: &[&str] = &["async", "await", "futures"];
/// The machine may know what passes through a port (a request, an answer), but never the port itself.
const PORTS: &[&str] = &[
    "AgentHook",
    "AgentTool",
    "Approver",
    "ArgumentValidator",
    "AsyncContextTransformer",
    "CompactionEngine",
    "KeySource",
    "MessageProvider",
    "Steps",
    "StreamFn",
    "Timer",
];

/// A tape is replayed without a port, a future or a clock.
const TAPE: &[&[&str]] = &[CLOCK, ASYNC, PORTS];

/// From the bottom up; a new folder in src/ needs a place here.
const LAYERS: &[Layer] = &[
    Layer { name: "data", never: &[TARGETS, CLOCK, ASYNC] },
    Layer { name: "words", never: &[TARGETS, CLOCK, ASYNC] },
    Layer { name: "rules", never: &[TARGETS, CLOCK, ASYNC] },
    Layer { name: "wires", never: &[TARGETS, CLOCK, ASYNC] },
    Layer { name: "host", never: &[TARGETS] },
    Layer { name: "stock", never: &[TARGETS] },
    Layer { name: "machine", never: &[TARGETS, CLOCK, ASYNC, PORTS] },
    Layer { name: "journal", never: &[TARGETS] },
    Layer { name: "driver", never: &[TARGETS] },
    Layer { name: "agent", never: &[TARGETS] },
    Layer { name: "spawn", never: &[TARGETS] },
];

#[test]
fn no_arrow_points_up() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&source, &["rs"], &mut files);
    assert!(files.len() > 1, "there is nothing to read in {}", source.display());
    let mut faults = Vec::new();
    for file in files {
        let name = file.strip_prefix(&source).unwrap().to_str().unwrap().replace('\\', "/");
        faults.extend(check(&name, &fs::read_to_string(&file).unwrap()));
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// Lists the faults of one file, named relative to src/, a line each.
fn check(file: &str, source: &str) -> Vec<String> {
    if file == "lib.rs" {
        return check_front_door(source);
    }
    let path = module_path(file);
    let Some(own) = layer_of(path[0]) else {
        return vec![format!(
            "src/{file}: the folder `{}` is no layer; give it its place in LAYERS of tests/layers.rs",
            path[0]
        )];
    };
    let layer = &LAYERS[own];
    let code = without_tests(&without_text(source));
    let mut faults = Vec::new();
    let mut fault = |at: usize, what: String| {
        let line = code[..at].matches('\n').count() + 1;
        faults.push(format!("src/{file}:{line}: {what}"));
    };
    for (at, module) in arrows(&code, &path) {
        match layer_of(module) {
            None => fault(
                at,
                format!(
                    "`crate::{module}` is no module of a known layer; name things by the module they live in"
                ),
            ),
            Some(other) if other > own => fault(
                at,
                format!(
                    "from {} up to {} (`{module}`): arrows point down only",
                    layer.name, LAYERS[other].name
                ),
            ),
            Some(_) => {}
        }
    }
    for (at, word) in words(&code) {
        let tape = if path.starts_with(&["journal", "tape"]) { TAPE } else { &[] };
        if layer.never.iter().chain(tape).any(|kind| kind.contains(&word)) {
            fault(at, format!("nothing in the {} uses `{word}`", layer.name));
        }
    }
    faults
}

/// `context/window.rs` → context, window; `machine/mod.rs` → machine.
fn module_path(file: &str) -> Vec<&str> {
    let mut path: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    if path.len() > 1 && path.last() == Some(&"mod") {
        path.pop();
    }
    path
}

/// Names every module, and no target.
fn check_front_door(source: &str) -> Vec<String> {
    let code = without_text(source);
    let named = words(&code).into_iter().filter(|(_, word)| TARGETS.contains(word));
    named.map(|(_, word)| format!("src/lib.rs: nothing in the crate uses `{word}`")).collect()
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.name == module)
}

/// Finds every place that names a module of the crate, in a `use` or anywhere else, by
/// `crate::` or by enough `super::`.
fn arrows<'a>(code: &'a str, path: &[&str]) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    let mut skip_to = 0;
    for (at, word) in words(code) {
        if at < skip_to {
            continue;
        }
        let mut rest = &code[at + word.len()..];
        let mut ups = usize::from(word == "super");
        if word != "crate" && word != "super" {
            continue;
        }
        while let Some(after) = rest.trim_start().strip_prefix("::") {
            rest = after.trim_start();
            let Some(further) = rest.strip_prefix("super") else { break };
            ups += 1;
            rest = further;
        }
        skip_to = code.len() - rest.len();
        if word == "super" && ups != path.len() {
            continue; // It stays inside its own top module, or inside a module in the file.
        }
        let firsts = first_names(rest);
        // `super::Name` may come from a module within the file; only modules of the crate count there.
        let counts = |name: &&str| word == "crate" || layer_of(name).is_some();
        found.extend(firsts.into_iter().filter(counts).map(|name| (at, name)));
    }
    found
}

/// The first name of each path after `crate::`: a single path, or a list of paths in braces.
fn first_names(rest: &str) -> Vec<&str> {
    let Some(list) = rest.strip_prefix('{') else {
        return words(rest).first().filter(|(at, _)| *at == 0).map(|(_, word)| *word).into_iter().collect();
    };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.extend(words(&list[start..at]).first().map(|(_, word)| *word));
                start = at + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names
}

mod the_checker {
    use super::check;

    #[test]
    fn lets_arrows_down_and_sideways_pass() {
        let source = "use crate::words::error::ErrorInfo;\nuse crate::rules::stream::Delta;\nuse super::window::Window;\n";
        assert_eq!(check("rules/context/budget.rs", source), [""; 0]);
        assert_eq!(check("agent/mod.rs", "use crate::driver::AgentStream;"), [""; 0]);
    }

    #[test]
    fn finds_an_arrow_up_and_names_its_line() {
        let faults =
            check("rules/retry.rs", "use crate::words::error::ErrorInfo;\n\nuse crate::driver::Driver;\n");
        assert_eq!(
            faults,
            ["src/rules/retry.rs:3: from rules up to driver (`driver`): arrows point down only"]
        );
    }

    #[test]
    fn finds_an_arrow_up_in_a_list_over_several_lines() {
        let source =
            "use crate::{\n    words::{Error, agent},\n    data as words,\n    machine::{self, State},\n};\n";
        let faults = check("rules/policy.rs", source);
        assert_eq!(
            faults,
            ["src/rules/policy.rs:1: from rules up to machine (`machine`): arrows point down only"]
        );
    }

    #[test]
    fn finds_an_arrow_up_in_a_path_outside_of_a_use() {
        let faults = check("words/message.rs", "fn f() -> crate :: host::Config { todo() }");
        assert_eq!(
            faults,
            ["src/words/message.rs:1: from words up to host (`host`): arrows point down only"]
        );
    }

    #[test]
    fn finds_an_arrow_up_by_way_of_super() {
        let up = ["src/rules/retry.rs:1: from rules up to agent (`agent`): arrows point down only"];
        assert_eq!(check("rules/retry.rs", "use super::super::agent::Agent;"), up);
        let up = ["src/rules/context/window.rs:1: from rules up to agent (`agent`): arrows point down only"];
        assert_eq!(check("rules/context/window.rs", "use super::super::super::{agent::Agent};"), up);
        assert_eq!(check("rules/context/window.rs", "use super::agent::Agent;"), [""; 0]);
        assert_eq!(check("rules/mod.rs", "use super::driver;").len(), 1);
    }

    #[test]
    fn does_not_take_comments_and_texts_for_code() {
        let source = r##"
            //! Unlike `use crate::agent`, this …
            /* use crate::agent; /* nested */ js_sys */
            const A: &str = "use crate::agent; \" js_sys";
            const B: &str = r#"use crate::agent; " js_sys"#;
            const C: char = '"'; // js_sys
            fn f<'a>(text: &'a str) -> char { '\'' }
        "##;
        assert_eq!(check("words/error.rs", source), [""; 0]);
        assert_eq!(check("words/error.rs", &format!("{source}\nuse crate::agent;")).len(), 1);
    }

    #[test]
    fn leaves_out_what_is_there_for_tests_only() {
        let tests = "#[cfg(test)]\nmod tests { use crate::agent::Agent; fn f() { g() } }\n";
        assert_eq!(check("words/error.rs", tests), [""; 0]);
        let faults =
            check("words/error.rs", &format!("#[cfg(test)]\nuse crate::agent;\n{tests}use crate::driver;"));
        assert_eq!(
            faults,
            ["src/words/error.rs:5: from words up to driver (`driver`): arrows point down only"]
        );
    }

    #[test]
    fn keeps_targets_out_of_everything_and_the_clock_out_of_what_decides() {
        for (file, source) in [
            ("words/error.rs", "fn f(value: js_sys::Object) {}"),
            ("rules/stream.rs", "use wasm_bindgen::JsValue;"),
            ("host/ports.rs", "use web_sys::console;"),
            ("driver/mod.rs", "use wasm_bindgen::JsValue;"),
            ("host/isolate.rs", "#[cfg(target_os = \"unknown\")] fn f() {}"),
            ("agent/mod.rs", "#[global_allocator] static A: A = A;"),
            ("stock/http.rs", "use gloo_timers::callback::Timeout;"),
            ("machine/turn.rs", "use futures::Stream;"),
            ("machine/mod.rs", "async fn f() {}"),
            ("rules/checkpoint/mod.rs", "fn f() { std::time::Instant::now(); }"),
            ("machine/dispatch.rs", "use crate::host::ports::{ApprovalRequest, StreamFn};"),
        ] {
            let faults = check(file, source);
            assert_eq!(faults.len(), 1, "{file}: {faults:?}");
            assert!(faults[0].contains("nothing in the "), "{faults:?}");
        }
    }

    #[test]
    fn lets_the_host_and_the_driver_be_asynchronous() {
        assert_eq!(check("host/ports.rs", "use futures::future::LocalBoxFuture;"), [""; 0]);
        assert_eq!(check("driver/mod.rs", "async fn f() { g().await }"), [""; 0]);
    }

    #[test]
    fn asks_for_a_place_for_a_module_that_it_does_not_know() {
        let faults = check("helper/mod.rs", "");
        assert_eq!(
            faults,
            [
                "src/helper/mod.rs: the folder `helper` is no layer; give it its place in LAYERS of tests/layers.rs"
            ]
        );
    }

    #[test]
    fn does_not_let_a_re_export_hide_where_a_thing_lives() {
        let faults = check("rules/retry.rs", "use crate::Agent;");
        assert_eq!(
            faults,
            [
                "src/rules/retry.rs:1: `crate::Agent` is no module of a known layer; name things by the module they live in"
            ]
        );
    }
}

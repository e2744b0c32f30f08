//! A file is read at one sitting and a function on a screen: this test fails where one is longer, unless
//! docs/internals/build.md says why it may be.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a panic here is a test that fails"
)]

#[path = "size/script.rs"]
mod script;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use source::{collect, without_tests, without_text, words};

/// The longest file, in lines.
const FILE: usize = 500;
/// The longest function, in lines: from its name to its last brace.
const FUNCTION: usize = 60;

/// Where the product and its build are.
const FOLDERS: &[&str] = &["src", "web", "component", "www/npm", "xtask"];

/// The types of the package: one file, because a reader looks things up in it.
const ASIDE: &[&str] = &["www/npm/index.d.ts"];

/// What may be longer: `file`, or `file: function`. Each has its reason in docs/internals/build.md, under this name.
const EXCEPTIONS: &[&str] = &[];

#[test]
fn files_are_read_at_one_sitting_and_functions_on_a_screen() {
    let reasons = fs::read_to_string(root().join("docs/internals/build.md")).unwrap();
    let mut faults = Vec::new();
    let mut unused: Vec<&str> = EXCEPTIONS.to_vec();
    for name in EXCEPTIONS.iter().filter(|name| !reasons.contains(**name)) {
        faults.push(format!("{name}: docs/internals/build.md does not say why it may be long"));
    }
    for (name, what) in too_long() {
        unused.retain(|exception| *exception != name);
        if !EXCEPTIONS.contains(&name.as_str()) {
            faults.push(format!("{name}: {what}"));
        }
    }
    faults.extend(unused.iter().map(|name| format!("{name}: is no exception any more")));
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Everything that is too long: its name, as in the lists above, and how long it is.
fn too_long() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = Vec::new();
    let present = FOLDERS.iter().map(|folder| root().join(folder)).filter(|folder| folder.exists());
    present.for_each(|folder| collect(&folder, &["rs", "js", "mjs", "ts"], &mut files));
    assert!(files.len() > 100, "there is nothing to read in {}", root().display());
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
        if !ASIDE.contains(&name.as_str()) {
            found.extend(too_long_in(&name, &fs::read_to_string(&file).unwrap()));
        }
    }
    found
}

/// What is too long in one file.
fn too_long_in(name: &str, source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let lines = source.lines().count();
    if lines > FILE {
        found.push((name.to_owned(), format!("{lines} lines, at most {FILE}")));
    }
    for (function, lines) in functions(name, source) {
        if lines > FUNCTION {
            found.push((format!("{name}: {function}"), format!("{lines} lines, at most {FUNCTION}")));
        }
    }
    found
}

/// The functions of a file and their lengths in lines. Those that are only for tests are left out: a table of cases is
/// as long as there are cases.
fn functions(name: &str, source: &str) -> Vec<(String, usize)> {
    let (code, found) = if name.ends_with(".rs") {
        let code = without_tests(&without_text(source));
        let found = rust_functions(&code);
        (code, found)
    } else {
        let code = script::without_text(source);
        let found = script::functions(&code);
        (code, found)
    };
    let lines = |from: usize, body: usize| code[from..end_of_block(&code, body)].matches('\n').count() + 1;
    found.into_iter().map(|(function, from, body)| (function, lines(from, body))).collect()
}

/// The functions with a body: their names, where they begin, and where their body begins.
fn rust_functions(code: &str) -> Vec<(String, usize, usize)> {
    let words = words(code);
    let mut found = Vec::new();
    for pair in words.windows(2) {
        let [(at, "fn"), (name_at, name)] = *pair else { continue };
        if code[at + 2..name_at].trim().is_empty()
            && let Some(body) = body_after(code, name_at)
        {
            found.push((name.to_owned(), at, body));
        }
    }
    found
}

/// Where the body of a signature begins; none if the signature stands alone.
fn body_after(code: &str, signature: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, letter) in code[signature..].char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return Some(signature + at),
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Where the block that begins here ends, after its last brace.
fn end_of_block(code: &str, block: usize) -> usize {
    let mut depth = 0;
    for (at, letter) in code[block..].char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return block + at + 1;
        }
    }
    code.len()
}

mod the_measure {
    use super::{FILE, functions, too_long_in};

    fn measured(name: &str, source: &str) -> Vec<(String, usize)> {
        functions(name, source)
    }

    fn named(lengths: &[(&str, usize)]) -> Vec<(String, usize)> {
        lengths.iter().map(|(name, lines)| ((*name).to_owned(), *lines)).collect()
    }

    #[test]
    fn finds_functions_of_rust_and_how_long_they_are() {
        let source = r#"
            trait A { fn none(&self) -> [u8; 2]; fn one(&self) {} }
            impl A for B {
                pub async fn three<T: Fn() -> u8>(
                    self, // fn not()
                ) -> Result<(), fn(u8) -> u8> where T: Copy { let text = "}"; match x { _ => {} } }
            }
            #[cfg(test)]
            mod tests { fn none() {} }
        "#;
        assert_eq!(measured("a.rs", source), named(&[("one", 1), ("three", 3)]));
    }

    #[test]
    fn finds_functions_and_methods_of_javascript() {
        let source = r#"
            export async function* one(a = { b: ")" }) { return a / 2 / 3; }
            class A extends B {
                static #two(
                ) { if (a) { b(); } else { for await (const x of y) { z(x); } } }
                get three() { return /[{/]\{/.test(`a${b ? `{${c}` : { d: 1 }}}`);

                }
            }
            const four = async (a, b) => {
                try { a(); } catch { switch (b) { default: {} } }


            };
            list.map((a) => { return { a }; });
            const five = { six: function () { }, seven: a => { } }; // function not() { }
        "#;
        let wanted =
            [("one", 1), ("#two", 2), ("three", 3), ("four", 5), ("=>", 1), ("six", 1), ("seven", 1)];
        assert_eq!(measured("a.js", source), named(&wanted));
    }

    #[test]
    fn names_files_and_functions_that_are_too_long() {
        let long = ["fn a() {", &"    b();\n".repeat(60), "}"].concat();
        assert_eq!(too_long_in("x.rs", &long)[0].0, "x.rs: a");
        assert_eq!(too_long_in("x.rs", &"// a\n".repeat(FILE + 1))[0].0, "x.rs");
        assert_eq!(too_long_in("x.rs", &"// a\n".repeat(FILE)), []);
    }
}

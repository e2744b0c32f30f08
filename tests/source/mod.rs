//! The project's own sources, read as text: which files there are, and what in them is code.

use std::fs;
use std::path::{Path, PathBuf};

/// Adds the files with one of these extensions, except what was installed or built.
pub(crate) fn collect(folder: &Path, extensions: &[&str], files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_one_of = |names: &[&str], name: Option<&std::ffi::OsStr>| {
            name.and_then(std::ffi::OsStr::to_str).is_some_and(|name| names.contains(&name))
        };
        if path.is_dir() {
            if !is_one_of(&["dist", "node_modules", "pkg", "target"], path.file_name()) {
                collect(&path, extensions, files);
            }
        } else if is_one_of(extensions, path.extension()) {
            files.push(path);
        }
    }
    files.sort();
}

/// Every identifier and keyword, with its position.
pub(crate) fn words(code: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, letter) in code.char_indices().chain([(code.len(), ' ')]) {
        match (letter.is_alphanumeric() || letter == '_', start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                words.push((from, &code[from..at]));
                start = None;
            }
            _ => {}
        }
    }
    words
}

/// The code with comments and the contents of string and character literals blanked;
/// the lines stay the same.
pub(crate) fn without_text(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(letter) = rest.chars().next() {
        let length = text_length(rest, code.chars().next_back());
        if length == 0 {
            code.push(letter);
            rest = &rest[letter.len_utf8()..];
        } else {
            code.extend(rest[..length].chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        }
    }
    code
}

/// The length of the comment or literal at the start, or 0 if there is none.
fn text_length(rest: &str, before: Option<char>) -> usize {
    let in_word = before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        let mut depth = 0;
        for (at, _) in rest.char_indices() {
            if rest[at..].starts_with("/*") {
                depth += 1;
            } else if at > 1 && rest[..at].ends_with("*/") {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
        }
        return rest.len();
    }
    if !in_word && let Some(raw) = rest.strip_prefix('r').or_else(|| rest.strip_prefix("br")) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if let Some(text) = raw[hashes..].strip_prefix('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            return rest.len() - text.len() + text.find(&end).map_or(text.len(), |at| at + end.len());
        }
    }
    if let Some(text) = rest.strip_prefix('"') {
        return 1 + end_of_literal(text, '"').unwrap_or(text.len());
    }
    if let Some(text) = rest.strip_prefix('\'') {
        // 'a' is a character, 'a is a lifetime.
        let mut letters = text.chars();
        let (first, second) = (letters.next(), letters.next());
        if first == Some('\\') || second == Some('\'') {
            return 1 + end_of_literal(text, '\'').unwrap_or(text.len());
        }
    }
    0
}

fn end_of_literal(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The code with everything blanked that is only for tests: a test may look at all layers.
pub(crate) fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut code = code.to_owned();
    while let Some(start) = code.find(MARK) {
        let item = start + MARK.len();
        let mut depth = 0;
        let end = code[item..].char_indices().find_map(|(at, letter)| {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            (depth == 0 && matches!(letter, '}' | ';')).then_some(item + at + 1)
        });
        let end = end.unwrap_or(code.len());
        let blank: String =
            code[start..end].chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }).collect();
        code.replace_range(start..end, &blank);
    }
    code
}
